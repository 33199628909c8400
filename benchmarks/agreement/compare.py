"""Whether two results of a program agree."""

from __future__ import annotations

import math
import re
from typing import Any

__all__ = ["difference"]

#: How far floats may be apart, relative to their size: both systems compute in single precision unless told otherwise.
TOLERANCE = 2e-5
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def difference(ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    """What is different between two results of a program; nothing when they agree."""
    for result, package in ((ours, "tinote"), (theirs, "taichi")):
        if "crashed" in result:
            return f"{package} ends the process"
    if "error" in ours or "error" in theirs:
        if "error" in ours and "error" in theirs:
            return ""  # the program asks for what neither has; which class is raised is a matter of `errors`
        package, result = ("tinote", ours) if "error" in ours else ("taichi", theirs)
        return f"{package} raises {result['error']}"
    if not _same(ours["value"], theirs["value"]):
        return f"{_short(ours['value'])} instead of {_short(theirs['value'])}"
    for mine, its in zip(ours["printed"], theirs["printed"], strict=False):
        if not _same_text(mine, its):
            return f"prints {mine!r} instead of {its!r}"
    if len(ours["printed"]) != len(theirs["printed"]):
        return f"prints {len(ours['printed'])} lines instead of {len(theirs['printed'])}"
    return ""


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, int | float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return a == b


def _same_text(a: str, b: str) -> bool:
    """Whether two lines differ in the digits of numbers only, and these little."""
    if _NUMBER.sub("0", a) != _NUMBER.sub("0", b):
        return False
    return all(_same(float(x), float(y)) for x, y in zip(_NUMBER.findall(a), _NUMBER.findall(b), strict=True))


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "…"
