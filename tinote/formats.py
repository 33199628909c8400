"""Formats of numbers: those of Python, and those that the dialect takes over from C.

f"{n:i}"  f"{n:u}"      as `d`
f"{n:.4d}"              at least four digits: 0042, -0042
"%5.2f" % x             Python's operator: `percent_spec` says which format each of its fields is
"""

from __future__ import annotations

import re

#: C's letters for integers at the end of a format, perhaps with their size.
_WHOLE = re.compile(r"(?:hh|ll|[hlL])?([diuxXo])")
#: A format of integers with a least number of digits, which Python's own do not have.
_DIGITS = re.compile(r"(?:(.)?([<>=^]))?([-+ ]?)(#?)0?(\d*)\.(\d+)([bdoxX])")
#: A field of a text for `%`: its name, flags, width, precision and letter.
PERCENT_FIELD = re.compile(r"%(?:\((\w+)\))?([#0\- +]*)(\*|\d+)?(?:\.(\*|\d*))?(?:hh|ll|[hlL])?([a-zA-Z%])")


class UnknownFormat(ValueError):
    """A field of a text for `%` that has no format for numbers."""


def as_python(spec: str) -> str:
    """A format with C's letters for integers as one that `in_format` takes."""
    letter = _WHOLE.search(spec)
    if letter is None or letter.end() < len(spec):
        return spec
    return spec[: letter.start()] + ("d" if letter[1] in "iu" else letter[1])


def in_format(value: float, spec: str) -> str:
    """A number in a format that is Python's, or has a least number of digits. Raises `ValueError` as `format` does."""
    found = _DIGITS.fullmatch(spec)
    if found is None or isinstance(value, float):
        return format(value, spec)
    fill, align, sign, base, width, digits, letter = found.groups()
    number = format(abs(value), letter).rjust(int(digits), "0")
    prefix = f"0{letter}" if base and letter != "d" else ""
    number = ("-" if value < 0 else sign.strip("-")) + prefix + number
    return format(number, f"{fill or ''}{'>' if align in (None, '=') else align}{width}")


def percent_spec(flags: str, width: str | None, precision: str | None, letter: str) -> str:
    """The format that a field of a text for `%` is. Raises `UnknownFormat`."""
    if "*" in (width, precision):
        raise UnknownFormat("a width or precision `*` is not known at compile time")
    if letter not in "diouxXeEfFgGsr":
        raise UnknownFormat(f"`%{letter}` shows no number")
    left = "-" in flags
    if letter in "sr":
        if precision is not None:
            raise UnknownFormat(f"`%.{precision}{letter}` cuts off text, not numbers")
        return ("<" if left else ">") + width if width else ""
    sign = "+" if "+" in flags else " " if " " in flags else ""
    zeros = "0" if "0" in flags and not left else ""
    digits = "" if precision is None else f".{precision or 0}"
    align = "<" if left and width else ""
    return as_python(f"{align}{sign}{'#' if '#' in flags else ''}{zeros}{width or ''}{digits}{letter}")
