"""What shading languages have: interpolation, clamping, reflection and refraction."""

from __future__ import annotations

import math
from typing import Any

from tinote.lang.maths.arithmetic import div, floor, max, min, select
from tinote.lang.maths.builtin import composed
from tinote.lang.maths.elementary import sqrt
from tinote.lang.maths.vectors import dot

__all__ = ["clamp", "degrees", "fract", "mix", "radians", "reflect", "refract", "smoothstep", "step"]

_RADIANS = math.pi / 180
_DEGREES = 180 / math.pi


@composed()
def clamp(x: Any, xmin: Any, xmax: Any) -> Any:
    """x, or the end of the range [xmin, xmax] that it is beyond."""
    return min(max(x, xmin), xmax)


@composed()
def mix(x: Any, y: Any, a: Any) -> Any:
    """x · (1 - a) + y · a, on the line from x to y."""
    return x * (1.0 - a) + y * a


@composed()
def smoothstep(edge0: Any, edge1: Any, x: Any) -> Any:
    """0 where x is below edge0, 1 where it is above edge1, and 3t² - 2t³ between."""
    t = clamp(div(x - edge0, edge1 - edge0), 0.0, 1.0)
    return t * t * (3.0 - 2.0 * t)


@composed()
def step(edge: Any, x: Any) -> Any:
    """0 where x is below the edge, 1 elsewhere; its derivative is 0."""
    return select(x < edge, 0.0, 1.0)


@composed()
def fract(x: Any) -> Any:
    """The fraction of x, x - floor(x), in [0, 1)."""
    return x - floor(x)


@composed(math.radians)
def radians(x: Any) -> Any:
    """An angle x in degrees as radians."""
    return x * _RADIANS


@composed(math.degrees)
def degrees(x: Any) -> Any:
    """An angle x in radians as degrees."""
    return x * _DEGREES


@composed()
def reflect(x: Any, n: Any) -> Any:
    """The direction x mirrored at a surface with unit normal n."""
    return x - 2.0 * dot(n, x) * n


@composed()
def refract(x: Any, n: Any, eta: Any) -> Any:
    """The unit direction x behind a surface with unit normal n, for the ratio eta of refractive indices; zero at total
    reflection.
    """
    along = dot(n, x)
    k = 1.0 - eta * eta * (1.0 - along * along)
    across = (eta * along + sqrt(max(k, 0.0))) * n
    return select(k < 0.0, 0.0, eta * x - across)
