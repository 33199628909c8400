"""Scales of axes and colour maps: linear, logarithmic, and logarithmic on both sides of zero; and ticks at round
numbers. `static/draw/scale.js` has the same rules.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tinote.viz.draw.arguments import shown
from tinote.viz.draw.arrays import ViewError

SCALES = ("linear", "log", "symlog")

FEWEST_TICKS = 3
"""One tick says nothing of the scale, and two do not show whether it is linear."""

AIR = 0.06
"""Parts of the range that an axis has beyond the values at both ends."""

_FACTORS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

Tick = tuple[float, str]
"""A number, and how it is written."""


def nice_ticks(low: float, high: float, about: int) -> list[float]:
    """Round numbers, a step of 1, 2 or 5 times a power of ten, within [low, high]: about `about` of them, and at least
    three if that many are wanted.
    """
    span = high - low
    if not (math.isfinite(span) and span > 0):
        return [low] if math.isfinite(low) else []
    raw = span / max(about, 1)
    power = 10.0 ** math.floor(math.log10(raw)) if raw else 0.0
    if not power:
        return [low]  # Closer together than numbers can tell.
    fewest = min(about, FEWEST_TICKS)
    at = next(index for index in range(len(_FACTORS)) if power * _FACTORS[index] >= raw * (1 - 1e-9))
    # A step that is just too large for three leaves one or two; the next smaller one, or the one after, has three.
    for index in range(at, -1, -1):
        step = power * _FACTORS[index]
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first + 1 >= fewest:
            break
    return [index * step for index in range(first, last + 1)]


def tick_text(value: float, step: float) -> str:
    """A tick's label, with the digits that ticks `step` apart need: very large and very small ones with a power of ten,
    and with true minus signs.
    """
    if abs(value) < step * 1e-6:
        return "0"
    digits = -math.floor(math.log10(step) + 1e-9) if step > 0 else 3
    if abs(value) < 1e6 and step >= 1e-4:
        return signed(f"{value:.{max(0, digits)}f}")
    decimals = digits + math.floor(math.log10(abs(value)) + 1e-9) if step > 0 else 2
    mantissa, _, exponent = f"{value:.{min(max(0, decimals), 15)}e}".partition("e")
    return times_power(mantissa, int(exponent))


def times_power(mantissa: str, exponent: int) -> str:
    """A number with a power of ten, such as 1.5×10⁹, 10⁻⁶ or −10⁹."""
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    power = f"10{str(exponent).translate(_SUPERSCRIPTS)}"
    return signed(mantissa.removesuffix("1") + power if mantissa in ("1", "-1") else f"{mantissa}×{power}")


def signed(text: str) -> str:
    """A number as text, with a true minus sign."""
    return text.replace("-", "−")


def number_text(value: float, digits: int = 4) -> str:
    """A number next to a view, with so many digits."""
    if not math.isfinite(value):
        return signed(str(value))
    size = abs(value)
    if size and (size >= 1e6 or size < 1e-4):
        mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
        return times_power(mantissa, int(exponent))
    return signed(f"{float(f'{value:.{digits}g}'):.15g}")


def linear_ticks(low: float, high: float, about: int) -> list[Tick]:
    """Evenly spaced ticks with their texts."""
    ticks = nice_ticks(low, high, about)
    step = ticks[1] - ticks[0] if len(ticks) > 1 else high - low
    return [(one, tick_text(one, step)) for one in ticks]


# ---- what a user writes


class ScaleForm(NamedTuple):
    """A scale before its ends are known: its kind, and of "symlog" the size up to which numbers lie about evenly, or 0
    where that follows from the numbers.
    """

    kind: str = "linear"
    bend: float = 0.0

    def fitted(self, values: np.ndarray | Sequence[float], limits: tuple[float, float] | None = None) -> Scale:
        """The scale that shows these values, or from one limit to the other, with some room at both ends."""
        given = np.asarray(values, np.float64)
        usable = given[np.isfinite(given) & (given > 0)] if self.kind == "log" else given[np.isfinite(given)]
        if limits is not None:
            return self.between(*limits)
        if not usable.size:
            return self.between(*((0.1, 10.0) if self.kind == "log" else (0.0, 1.0)))
        low, high = float(usable.min()), float(usable.max())
        scale = self.between(low, high)
        if high - low <= 1e-12 * max(abs(low), abs(high)):
            if self.kind == "log":
                return self.between(low / 10.0, high * 10.0)
            air = 0.1 * abs(high) or 1.0
            return scale._replace(low=low - air, high=high + air)
        first, last = scale.forward(low), scale.forward(high)
        air = AIR * (last - first)
        return scale._replace(low=float(scale.backward(first - air)), high=float(scale.backward(last + air)))

    def between(self, low: float, high: float) -> Scale:
        """The scale with these ends."""
        bend = self.bend
        if self.kind == "symlog" and not bend:
            most = max(abs(low), abs(high))
            bend = 10.0 ** (math.floor(math.log10(most) + 1e-9) - 2) if most > 0 else 1.0
        return Scale(self.kind, low, high, bend)


def form_of(given: Any) -> ScaleForm:
    """What a user has written for a scale, checked by `scale_form`."""
    return ScaleForm(given) if isinstance(given, str) else ScaleForm(*given)


def scale_form(name: str, value: Any) -> str | tuple[str, float]:
    """A kind of scale, or "symlog" with a number. Raises `ViewError` for anything else."""
    if isinstance(value, str) and value in SCALES:
        return value
    try:
        kind, bend = value
        if kind == "symlog" and 0.0 < float(bend) < math.inf:
            return kind, float(bend)
    except (TypeError, ValueError):
        pass
    raise ViewError(
        f"{name} must be {', '.join(map(repr, SCALES[:-1]))} or {SCALES[-1]!r}, not {shown(value)}",
        hint='("symlog", 0.01) is about linear from -0.01 to 0.01',
    )


# ---- where numbers lie


class Scale(NamedTuple):
    """A scale from `low` to `high`; a symmetric logarithm is about linear up to `bend` on both sides of zero."""

    kind: str
    low: float
    high: float
    bend: float = 0.0

    def forward(self, values: Any) -> Any:
        """Numbers, as they lie evenly; minus infinity or NaN where a logarithm has none."""
        if self.kind == "linear":
            return values
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log10(values) if self.kind == "log" else np.arcsinh(np.asarray(values) / self.bend)

    def backward(self, values: Any) -> Any:
        """The inverse."""
        if self.kind == "linear":
            return values
        return 10.0 ** np.clip(values, -307.0, 308.0) if self.kind == "log" else self.bend * np.sinh(values)

    def place(self, values: Any) -> Any:
        """The parts of the axis at which numbers lie."""
        first, last = self.forward(self.low), self.forward(self.high)
        return (self.forward(values) - first) / ((last - first) or 1.0)

    def at(self, part: float) -> Any:
        """The number that lies at a part of the axis."""
        first, last = self.forward(self.low), self.forward(self.high)
        return self.backward(first + part * (last - first))

    def ticks(self, about: int) -> list[Tick]:
        """About so many ticks, in order; at least three if that many are wanted."""
        if self.kind == "linear":
            return linear_ticks(self.low, self.high, about)
        found: list[tuple[int, int]] = []
        if self.kind == "log":
            found = _powers(self.low, self.high, about)
        else:
            both = self.low < 0 < self.high
            each = max(2, about // 2) if both else about
            if self.low < 0:
                down = _powers(max(self.bend, -self.high), -self.low, each, only_ones=both)
                found += [(-one, power) for one, power in reversed(down)]
            if self.low <= 0 <= self.high:
                found.append((0, 0))
            if self.high > 0:
                found += _powers(max(self.bend, self.low), self.high, each, only_ones=both)
        if len(found) < min(about, FEWEST_TICKS):
            return linear_ticks(self.low, self.high, about)
        # All of an axis are written alike.
        is_plain = all(-3 <= power <= 4 for _, power in found)
        return [(_raised(one, power), _text(one, power, is_plain)) for one, power in found]


def _powers(low: float, high: float, about: int, *, only_ones: bool = False) -> list[tuple[int, int]]:
    """Powers of ten between positive numbers, or 1, 2 and 5 times them where there are few: digits and exponents."""
    if not 0 < low <= high < math.inf:
        return []
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    fewest = min(about, FEWEST_TICKS)
    for every in range(max(1, math.ceil((last - first + 1) / max(about, 1))), 0, -1):
        powers = [(1, power) for power in range(first, last + 1) if power % every == 0]
        if len(powers) >= fewest or (only_ones and powers):
            return powers
    if only_ones:
        return []
    finer = [(one, power) for power in range(first - 1, last + 1) for one in (1, 2, 5)]
    return [pair for pair in finer if low * (1 - 1e-9) <= _raised(*pair) <= high * (1 + 1e-9)]


def _raised(one: int, power: int) -> float:
    return one * 10.0**power if power >= 0 else one / 10.0**-power


def _text(one: int, power: int, is_plain: bool) -> str:
    if not one:
        return "0"
    return signed(f"{_raised(one, power):g}") if is_plain else times_power(str(one), power)
