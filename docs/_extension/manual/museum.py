"""The museum: wrong results that were reported in public, with what each system gives for them today."""

from __future__ import annotations

import inspect
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import tinote
from manual.places import REPOSITORY, write

TITLES = {
    "tinote": "tinote",
    "taichi": "Taichi",
    "quadrants": "Quadrants",
    "warp": "Warp",
    "jax": "JAX",
    "numba": "Numba",
}
MARKS = {"right": "✓", "wrong": "✗", "refused": "error", "ended": "crash", "differs": "differs"}
HEAD = """# Museum of wrong results

Each exhibit is a public report of a silently wrong result, or of a crash or refusal, in a system of this kind: an
automatic differentiation or a parallel compiler. Its program was written again, small, and is run as a test of tinote
at every change. The right value is known independently. The table shows what the packages give that can be installed,
in the versions named; many of the reports were of older versions or other systems and have been mended since.

✓: the right value. ✗: another value, without a word. *error*: an error in place of a value. *differs*: mathematics
leaves a choice, and the convention is another one. A blank: the program does not exist for that package. A parallel
program whose iterations race may be right in one run and wrong in the next; one run was recorded.

"""


def write_museum(target: Path) -> None:
    """Write the page as a source of the site."""
    sys.path.insert(0, str(REPOSITORY))
    try:
        exhibits: Any = import_module("tests.museum.exhibits")
        reports = exhibits.reports()
        programs = {r.name: import_module(f"tests.museum.reports.{r.name}") for r in reports}
    finally:
        sys.path.remove(str(REPOSITORY))
    peers = exhibits.recorded()
    found = {package: entry["results"] for package, entry in peers.items()}
    versions = {"tinote": tinote.__version__, **{package: entry["version"] for package, entry in peers.items()}}
    header = ["", *(f"{TITLES[package]} {versions[package]}" for package in TITLES)]
    rows = [header, ["---"] * len(header)]
    for report in reports:
        results = {package: given.get(report.name) for package, given in found.items()}
        marks = {package: MARKS[exhibits.verdict(report, result)] for package, result in results.items() if result}
        # The tests hold this to be so.
        marks["tinote"] = MARKS["right" if report.ours == report.right else "differs"]
        rows.append([f"[{report.name}](#{report.name})", *(marks.get(package, "") for package in TITLES)])
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    parts = [HEAD + table]
    for report in reports:
        program = "tinote" if "tinote" in report.programs else "dialect"
        given = {"tinote": {"value": report.ours}}
        given |= {
            package: entry["results"][report.name]
            for package, entry in peers.items()
            if report.name in entry["results"]
        }
        lines = [
            f"## {report.name}",
            f"**{report.situation}** {report.explanation} ([report]({report.address}))",
            f"Right: `{shown(report.right)}`, since {report.known}.",
            report.convention and f"Convention: {report.convention}",
            report.history and f"History: {report.history}",
            "\n".join(f"- {TITLES[package]}: {described(result)}" for package, result in given.items()),
            f"```python\n{inspect.getsource(getattr(programs[report.name], program)).rstrip()}\n```",
        ]
        parts.append("\n\n".join(filter(None, lines)))
    write(target, "\n\n".join(parts) + "\n")


def described(result: dict[str, Any]) -> str:
    """What a package gave, in a few words."""
    if "crashed" in result:
        return f"the process ended with status {result['crashed']}"
    return f"error: `{result['error']}`" if "error" in result else f"`{shown(result['value'])}`"


def shown(value: Any) -> str:
    """A value with six digits, cut after 80 characters."""
    text = repr(_rounded(value)).replace("'nan'", "nan").replace("'inf'", "inf").replace("'-inf'", "-inf")
    return text if len(text) <= 80 else f"{text[:77]}…"


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value
