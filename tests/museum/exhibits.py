"""The reports as data, and what a package gives for them."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.agreement.child import plain

__all__ = ["PACKAGES", "RECORD", "REPORTS", "Report", "as_expected", "call", "close", "recorded", "reports", "verdict"]

REPORTS = Path(__file__).with_name("reports")
#: What the peers gave, with their versions.
RECORD = Path(__file__).with_name("peers.json")
#: The programs of a report that each package runs: the first that the report has.
PACKAGES = {
    "tinote": ("tinote", "dialect"),
    "taichi": ("dialect",),
    "quadrants": ("dialect",),
    "warp": ("warp",),
    "jax": ("jax",),
    "numba": ("numba",),
}


@dataclass(frozen=True, slots=True)
class Report:
    """One file of `reports/`."""

    name: str
    situation: str
    explanation: str
    address: str
    right: Any
    known: str
    convention: str
    history: str
    """What tinote gave before, where it was wrong itself."""
    ours: Any
    """What tinote gives: the right value but where a convention leads to another one."""
    tolerance: float
    programs: tuple[str, ...]

    @classmethod
    def read(cls, name: str) -> Report:
        """The report of a file; raises `ValueError` if a part is missing."""
        module = importlib.import_module(f"tests.museum.reports.{name}")
        situation, _, explanation = (module.__doc__ or "").strip().partition("\n")
        values = vars(module)
        missing = [part for part in ("REPORT", "RIGHT", "KNOWN") if part not in values]
        missing += [] if situation and explanation.strip() else ["a docstring of a line and a paragraph"]
        programs = tuple(p for p in ("tinote", "dialect", "warp", "jax", "numba") if callable(values.get(p)))
        if not {"tinote", "dialect"} & set(programs):
            missing.append("dialect() or tinote()")
        if "TINOTE" in values and "CONVENTION" not in values:
            missing.append("CONVENTION, which TINOTE needs")
        if missing:
            raise ValueError(f"tests/museum/reports/{name}.py lacks {', '.join(missing)}")
        return cls(
            name=name,
            situation=situation,
            explanation=" ".join(explanation.split()),
            address=values["REPORT"],
            right=plain(values["RIGHT"]),
            known=values["KNOWN"],
            convention=values.get("CONVENTION", ""),
            history=values.get("HISTORY", ""),
            ours=plain(values.get("TINOTE", values["RIGHT"])),
            tolerance=values.get("TOLERANCE", 1e-5),
            programs=programs,
        )

    def program(self, package: str) -> str | None:
        """The function that a package runs, if the report has one for it."""
        return next((p for p in PACKAGES[package] if p in self.programs), None)


def reports() -> list[Report]:
    """All reports, by the names of their files."""
    return [Report.read(file.stem) for file in sorted(REPORTS.glob("[a-z]*.py"))]


def call(name: str, function: str, package: Any) -> Any:
    """What a report's program gives with a package, as JSON has it."""
    program: Callable[[Any], Any] = getattr(importlib.import_module(f"tests.museum.reports.{name}"), function)
    return plain(program(package))


def verdict(report: Report, result: dict[str, Any]) -> str:
    """`right`, `wrong`, `refused` (with an error), `ended` (the process), or `differs` where conventions do."""
    if "crashed" in result:
        return "ended"
    if "error" in result:
        return "refused"
    if close(result["value"], report.right, report.tolerance):
        return "right"
    return "differs" if report.convention else "wrong"


def as_expected(report: Report, result: dict[str, Any]) -> bool:
    """Whether tinote gives what it should: the right value, or what its convention leads to."""
    return "value" in result and close(result["value"], report.ours, report.tolerance)


def close(a: Any, b: Any, tolerance: float) -> bool:
    """Whether two results are the same within a tolerance; NaN is equal to nothing."""
    if isinstance(a, Sequence) and isinstance(b, Sequence) and not isinstance(a, str) and not isinstance(b, str):
        return len(a) == len(b) and all(close(x, y, tolerance) for x, y in zip(a, b, strict=True))
    if isinstance(a, int | float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)
    return a == b


def recorded() -> dict[str, dict[str, Any]]:
    """By package its version and, by report, its result."""
    return json.loads(RECORD.read_text("utf-8"))
