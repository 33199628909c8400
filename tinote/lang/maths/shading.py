"""Functions of shading languages: interpolation, clamping, reflection and refraction."""

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
    """x limited to the range [xmin, xmax].

    Parameters
    ----------
    x : number, vector or matrix
        The values.
    xmin, xmax : number, vector or matrix
        The ends of the range.

    Returns
    -------
    number, vector or matrix
        Of the shape of `x`, component by component.

    Examples
    --------
    >>> ti.clamp(1.5, 0.0, 1.0)
    1.0
    """
    return min(max(x, xmin), xmax)


@composed()
def mix(x: Any, y: Any, a: Any) -> Any:
    """x · (1 - a) + y · a, on the line from x to y.

    Parameters
    ----------
    x, y : number, vector or matrix
        The ends of the line.
    a : number, vector or matrix
        The share of `y`, from 0 to 1.

    Returns
    -------
    number, vector or matrix
        Of the common shape of `x` and `y`.

    Examples
    --------
    >>> ti.mix(10.0, 20.0, 0.25)
    12.5
    """
    return x * (1.0 - a) + y * a


@composed()
def smoothstep(edge0: Any, edge1: Any, x: Any) -> Any:
    """0 where x is below edge0, 1 where it is above edge1, and 3t² - 2t³ between.

    Parameters
    ----------
    edge0, edge1 : number, vector or matrix
        Where the rise begins and ends.
    x : number, vector or matrix
        The values.

    Returns
    -------
    number, vector or matrix
        In [0, 1].

    Examples
    --------
    >>> ti.smoothstep(0.0, 1.0, 0.25)
    0.15625
    """
    t = clamp(div(x - edge0, edge1 - edge0), 0.0, 1.0)
    return t * t * (3.0 - 2.0 * t)


@composed()
def step(edge: Any, x: Any) -> Any:
    """0 where x is below the edge, 1 elsewhere; its derivative is 0.

    Parameters
    ----------
    edge : number, vector or matrix
        Where the step is.
    x : number, vector or matrix
        The values.

    Returns
    -------
    number, vector or matrix
        0 or 1.

    Examples
    --------
    >>> ti.step(0.5, ti.Vector([0.25, 0.75]))
    Vector([0.0, 1.0])
    """
    return select(x < edge, 0.0, 1.0)


@composed()
def fract(x: Any) -> Any:
    """The fraction of x, x - floor(x), in [0, 1).

    Parameters
    ----------
    x : number, vector or matrix
        Numbers of any type.

    Returns
    -------
    number, vector or matrix
        Of the shape of `x`, component by component.

    Examples
    --------
    >>> ti.fract(2.25)
    0.25
    """
    return x - floor(x)


@composed(math.radians)
def radians(x: Any) -> Any:
    """An angle x in degrees as radians.

    Parameters
    ----------
    x : number, vector or matrix
        An angle in degrees.

    Returns
    -------
    number, vector or matrix
        The angle in radians.

    Examples
    --------
    >>> ti.radians(180.0)
    3.14159265...
    """
    return x * _RADIANS


@composed(math.degrees)
def degrees(x: Any) -> Any:
    """An angle x in radians as degrees.

    Parameters
    ----------
    x : number, vector or matrix
        An angle in radians.

    Returns
    -------
    number, vector or matrix
        The angle in degrees.

    Examples
    --------
    >>> ti.degrees(ti.math.pi)
    180.0
    """
    return x * _DEGREES


@composed()
def reflect(x: Any, n: Any) -> Any:
    """The direction x mirrored at a surface with unit normal n.

    Parameters
    ----------
    x : vector
        The incoming direction.
    n : vector
        The unit normal of the surface.

    Returns
    -------
    vector
        x - 2 (n · x) n.

    Examples
    --------
    >>> ti.reflect(ti.Vector([1.0, -1.0]), ti.Vector([0.0, 1.0]))
    Vector([1.0, 1.0])
    """
    return x - 2.0 * dot(n, x) * n


@composed()
def refract(x: Any, n: Any, eta: Any) -> Any:
    """The unit direction x behind a surface with unit normal n, for the ratio eta of refractive indices.

    Zero at total reflection.

    Parameters
    ----------
    x : vector
        The incoming unit direction.
    n : vector
        The unit normal of the surface, against `x`.
    eta : number
        The refractive index before the surface, divided by that behind it.

    Returns
    -------
    vector
        The outgoing unit direction, by Snell's law.

    Examples
    --------
    >>> ti.refract(ti.Vector([0.0, -1.0]), ti.Vector([0.0, 1.0]), 0.75)
    Vector([0.0, -1.0])
    """
    along = dot(n, x)
    k = 1.0 - eta * eta * (1.0 - along * along)
    across = (eta * along + sqrt(max(k, 0.0))) * n
    return select(k < 0.0, 0.0, eta * x - across)
