"""The table for people, the JSON for programs, and progress meanwhile."""

from __future__ import annotations

import math
import os
import platform
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.c_compiler import compiler_version
from benchmarks.contract import OURS, Case
from benchmarks.harness import Row, Settings

__all__ = ["as_json", "duration", "machine", "table", "tell"]

C = "C"


def duration(seconds: float) -> str:
    """Return `seconds` with three digits and a fitting unit."""
    units = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))
    unit, size = next((pair for pair in units if seconds >= pair[1]), units[-1])
    value = seconds / size
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"


def table(case: Case, rows: Sequence[Row]) -> str:
    """Return the table of one case: each contender's minimum, and that in units of ours and of C (C's first row).
    Where rows are shown over other ones, these take the place of C.

    The median of the rounds says how quiet the machine was: far above the minimum, one lucky round made the figure.
    """
    ours = baseline(rows, OURS)
    native = baseline(rows, C)
    times = {row.contender.name: row.comparable for row in rows}
    paired = unit_of(rows)
    width = max(18, *(len(row.contender.name) + 1 for row in rows))
    header = f"{'':{width}}{'minimum':>10}{'median':>10}{'/ ' + OURS:>10}{f'/ {paired or C}':>10}"
    lines = [case.title, "-" * len(case.title), header]
    for row in rows:
        seconds = row.seconds
        minimum = duration(seconds) if seconds is not None else ""
        median = duration(statistics.median(row.minima)) if seconds is not None else ""
        unit = times.get(row.contender.over) if paired else native
        cells = f"{minimum:>10}{median:>10}{ratio(row.comparable, ours)}{ratio(row.comparable, unit)}"
        lines.append(f"{row.contender.name:{width}}{cells}  {remark(row)}".rstrip())
    if case.at_most is not None:
        lines.append(f"target: {OURS} at most {duration(case.at_most)}; {verdict(ours, case.at_most)}")
    if case.at_most_over is not None:
        found, over = multiple(rows, OURS), next((row.contender.over for row in rows if row.contender.name == OURS), "")
        rival = f"its {unit_of(rows)}" if over.startswith(OURS) else over
        lines.append(
            f"target: {OURS} at most {case.at_most_over:.3g} times {rival}; {verdict(found, case.at_most_over)}"
        )
    if case.at_most_best is not None:
        found, rival = against_best(rows)
        lines.append(
            f"target: {OURS}'s fastest style at most {case.at_most_best:g} times {rival or 'its best peer'}; "
            f"{verdict(found, case.at_most_best)}"
        )
    return "\n".join(lines)


def unit_of(rows: Sequence[Row]) -> str:
    """Return what rows are shown over, "primal" or the name of a package; empty if none is shown over another."""
    return next((row.contender.over.partition(",")[0].split()[-1] for row in rows if row.contender.over), "")


def against_best(rows: Sequence[Row]) -> tuple[float | None, str]:
    """Return the time of our fastest row in units of the fastest one of another package, and the name of that.

    Only rows for the same work count: those that are shown over another, on as many threads.
    """
    work = [row for row in rows if row.contender.over and row.comparable and "threads" not in row.contender.parameters]
    ours = [row for row in work if row.contender.package == OURS]
    others = [row for row in work if row.contender.package != OURS]
    if not ours or not others:
        return None, ""
    best = min(others, key=lambda row: row.comparable or math.inf)
    return min(row.comparable or math.inf for row in ours) / (best.comparable or math.inf), best.contender.name


def baseline(rows: Sequence[Row], word: str) -> float | None:
    """Return the figure of the first contender whose name begins with `word`; None without one, or if it is wrong."""
    return next((row.comparable for row in rows if row.contender.name.split()[0] == word), None)


def multiple(rows: Sequence[Row], name: str) -> float | None:
    """Return the time of the row called `name` in units of the row that it is shown over."""
    times = {row.contender.name: row.comparable for row in rows}
    mine = next((row for row in rows if row.contender.name == name), None)
    unit = times.get(mine.contender.over) if mine else None
    return None if mine is None or mine.comparable is None or not unit else mine.comparable / unit


def ratio(seconds: float | None, unit: float | None) -> str:
    """Return one cell: `seconds` in units of `unit`."""
    return f"{'' if seconds is None or unit is None else f'{seconds / unit:.2f}':>10}"


def remark(row: Row) -> str:
    """Return what has to be said about a row: nothing, if all is well."""
    if row.failed:
        return f"FAILED: {row.failed}"
    if row.unavailable:
        return row.unavailable
    return f"WRONG: deviates by {row.deviation:.1e}" if row.wrong else ""


def verdict(ours: float | None, at_most: float) -> str:
    """Return whether the target is met."""
    if ours is None:
        return "not measured"
    return "met" if ours <= at_most else f"missed by {ours / at_most:.2f}"


def as_json(results: Sequence[tuple[Case, list[Row]]], settings: Settings) -> dict[str, object]:
    """Return everything that was measured, and on what."""
    return {
        "machine": machine(),
        "rounds": settings.rounds,
        "slice_seconds": settings.slice_seconds,
        "cases": [
            {
                "title": case.title,
                "mode": case.mode.name.lower(),
                "parameters": dict(case.parameters),
                "at_most_seconds": case.at_most,
                "at_most_over": case.at_most_over,
                "at_most_best": case.at_most_best,
                "rows": [
                    {
                        "name": row.contender.name,
                        "over": row.contender.over,
                        "package": row.contender.package,
                        "version": row.version,
                        "seconds": row.seconds,
                        "minima": row.minima,
                        # JSON has no infinity
                        "deviation": row.deviation if row.deviation < float("inf") else "infinite",
                        "wrong": row.wrong,
                        "unavailable": row.unavailable,
                        "failed": row.failed,
                    }
                    for row in rows
                ],
            }
            for case, rows in results
        ],
    }


def machine() -> dict[str, str | int | float]:
    """Return what the figures depend on: processor, cores, load (others at work on it), Python, C compiler, time."""
    return {
        "processor": processor_name(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else 0.0,
        "system": f"{platform.system()}, {platform.machine()}",
        "python": platform.python_version(),
        "c_compiler": compiler_version(),
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }


def processor_name() -> str:
    """Return the processor's name where the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def tell(progress: str) -> None:
    """Show progress on a terminal, in one line that the next replaces."""
    if sys.stderr.isatty():
        print(f"\r\033[K{progress}", end="", file=sys.stderr, flush=True)
