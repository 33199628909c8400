"""`python -m benchmarks compare COMMIT`: is anything slower than it was?

The package of COMMIT and that of the present tree run the present benchmarks, in processes of their own. A round gives
every row a fresh pair of processes, whose short slices alternate; rounds are repeated until the time is over, so that
what disturbs the machine for a while touches a round or two of every row. `verdict.py` says how they are judged. A row
that comes out slower is measured again, as often, and is slower only if that says so by itself.

The exit status is 1 if anything is slower by more than the tolerance beyond its spread, fails, or is wrong in this
tree; and 2 where COMMIT cannot be read.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.contract import TOLERANCE as LARGEST_DEVIATION
from benchmarks.contract import Case, Contender, Mode, UnavailableError
from benchmarks.harness import SETTLE
from benchmarks.report import duration, machine, tell
from benchmarks.runners import ROOT, ContenderError, Interpreters, runner_for
from benchmarks.trees import PACKAGE, Trees, TreesError, two_trees
from benchmarks.verdict import LEAST_ROUNDS, TOLERANCE, Estimate, Judgement, Round, Verdict, judge
from benchmarks.workloads import WORKLOADS

__all__ = ["Row", "main", "rows_of"]

# Pairs of slices that a pair of processes gives. Where every slice is a process, a second pair shows a disturbance.
PAIRS = 10
PAIRS_OF_PROCESSES = 2


@dataclass(slots=True)
class Row:
    """One contender of one case, in both trees: its rounds, or the reasons why there are none."""

    workload: str
    case: Case
    contender: Contender
    rounds: list[Round] = field(default_factory=list)
    again: list[Round] = field(default_factory=list)
    lacking: str = ""
    failed: str = ""

    @property
    def name(self) -> str:
        """The case, and the contender where it is not simply the package."""
        variant = self.contender.name.removeprefix(PACKAGE).strip()
        return f"{self.case.title} ({variant})" if variant else self.case.title

    @property
    def measurable(self) -> bool:
        """Whether further rounds may say something."""
        return not self.lacking and not self.failed


@dataclass(frozen=True, slots=True)
class Result:
    """What is said about a row."""

    row: Row
    judgement: Judgement | None
    note: str

    @property
    def verdict(self) -> str:
        """The word in the table."""
        if self.row.failed:
            return "FAILED"
        return self.judgement.verdict.value if self.judgement else "not compared"

    @property
    def bad(self) -> bool:
        """Whether the exit status is 1."""
        return bool(self.row.failed) or (self.judgement is not None and self.judgement.verdict is Verdict.SLOWER)


def main(
    arguments: Sequence[str] | None = None,
    workloads: Mapping[str, tuple[Case, ...]] = WORKLOADS,
    repository: Path = ROOT,
) -> int:
    """Compare as the command line asks for, print Markdown, and write files if asked."""
    described = parser(workloads)
    options = described.parse_args(arguments)
    if unknown := [name for name in options.workloads if name not in workloads]:
        described.error(f"no workload {unknown[0]!r}; there are {', '.join(workloads)}")
    rows = rows_of(workloads, options.workloads, options.row)
    if not rows:
        described.error("no row has all of these words in its name")
    if options.list:
        print("\n".join([f"{row.workload}: {row.name}" for row in rows]))
        return 0
    if not options.commit:
        described.error("which commit?")
    about = machine()
    begun = time.monotonic()
    try:
        with two_trees(options.commit, repository) as trees:
            compare(rows, trees, options.minutes * 60, options.slice / 1000, options.tolerance / 100, tell)
            commit = trees.commit
    except TreesError as error:
        described.error(str(error))
    tell("")
    about |= {"commit": commit, "minutes": round((time.monotonic() - begun) / 60, 1)}
    results = [result_of(row, options.tolerance / 100) for row in rows]
    text = markdown(results, about)
    print(text)
    if options.markdown:
        options.markdown.write_text(text + "\n", encoding="utf-8")
    if options.json:
        options.json.write_text(json.dumps(as_json(results, about), indent=1) + "\n", encoding="utf-8")
    return int(any(result.bad for result in results))


def parser(workloads: Mapping[str, tuple[Case, ...]]) -> argparse.ArgumentParser:
    """Return the command line's description."""
    described = argparse.ArgumentParser(prog="python -m benchmarks compare", description=__doc__)
    described.formatter_class = argparse.RawDescriptionHelpFormatter
    described.add_argument("commit", nargs="?", help="what to compare with: a commit, tag or branch")
    described.add_argument(
        "workloads", nargs="*", metavar="WORKLOAD", help=f"which to run: {', '.join(workloads)} (default: all)"
    )
    described.add_argument(
        "--row", action="append", default=[], metavar="WORD", help="only rows with this in their name (repeatable: all)"
    )
    described.add_argument("--list", action="store_true", help="show the rows, and measure nothing")
    described.add_argument(
        "--minutes",
        type=float,
        default=10.0,
        help=f"time for all rows (default: %(default)g; at least {LEAST_ROUNDS} rounds are run)",
    )
    described.add_argument(
        "--slice", type=float, default=20.0, metavar="MS", help="length of a slice (default: %(default)g ms)"
    )
    described.add_argument(
        "--tolerance",
        type=float,
        default=100 * TOLERANCE,
        metavar="PERCENT",
        help="how much slower is not yet slower (default: %(default)g)",
    )
    described.add_argument("--markdown", type=Path, metavar="OUT", help="write the table to this file too")
    described.add_argument("--json", type=Path, metavar="OUT", help="write everything measured to this file")
    return described


def rows_of(workloads: Mapping[str, tuple[Case, ...]], names: Sequence[str], words: Sequence[str]) -> list[Row]:
    """Return the rows of our own package in the workloads called `names` (all, if none), whose names hold `words`."""
    found = [
        Row(name, case, contender)
        for name in names or workloads
        for case in workloads[name]
        for contender in case.contenders
        if contender.package == PACKAGE
    ]
    return [row for row in found if all(word.lower() in row.name.lower() for word in words)]


def compare(
    rows: Sequence[Row],
    trees: Trees,
    seconds: float,
    slice_seconds: float,
    tolerance: float,
    tell: Callable[[str], None] = lambda _: None,
) -> None:
    """Fill `rows`: rounds for about `seconds`, then as many again for those that seem slower."""
    deadline = time.monotonic() + seconds
    number = 0
    while number < LEAST_ROUNDS or time.monotonic() < deadline:
        for row in filter(lambda row: row.measurable, rows):
            tell(f"round {number + 1}: {row.name}")
            row.rounds += one_round(row, trees, slice_seconds, number)
        number += 1
        if not any(row.measurable for row in rows):
            return
    suspects = [row for row in rows if row.rounds and judge(row.rounds, tolerance).verdict is Verdict.SLOWER]
    for repeated in range(number):
        for row in filter(lambda row: row.measurable, suspects):
            tell(f"once more, round {repeated + 1}: {row.name}")
            row.again += one_round(row, trees, slice_seconds, repeated)


def one_round(row: Row, trees: Trees, slice_seconds: float, number: int) -> list[Round]:
    """Return the round of a fresh pair of processes; where there is none, return nothing and say in `row` why.

    Which of them is started first, and which has the first slice, alternates.
    """
    order = [trees.old, trees.new] if number % 2 == 0 else [trees.new, trees.old]
    runners = {tree: runner_for(row.contender, row.case, Interpreters(), tree) for tree in order}
    tree = trees.old  # whose fault it is, if something is raised
    try:
        for tree in order:
            demand_right(runners[tree].start())
        taken: dict[Path, list[float]] = {tree: [] for tree in order}
        for pair in range(PAIRS if row.case.mode is Mode.STEADY else PAIRS_OF_PROCESSES):
            for tree in order if pair % 2 else order[::-1]:
                time.sleep(SETTLE)
                taken[tree].append(runners[tree].slice(slice_seconds) * runners[tree].parts)
        for tree in order:
            demand_right(runners[tree].finish())
    except (ContenderError, UnavailableError) as failure:
        if tree == trees.old:
            row.lacking = f"the old tree cannot run it: {failure}"
        else:
            row.failed = str(failure)
        return []
    finally:
        for runner in runners.values():
            runner.close()
    return [Round(tuple(zip(taken[trees.old], taken[trees.new], strict=True)))]


def demand_right(deviation: float) -> None:
    """Raise `ContenderError` where an answer is not that of the reference."""
    if not deviation <= LARGEST_DEVIATION:
        raise ContenderError(f"wrong: deviates by {deviation:.1e}")


def result_of(row: Row, tolerance: float) -> Result:
    """Judge a row; what was slower and is not when it is measured again is unclear."""
    if not row.rounds or not row.measurable:
        return Result(row, None, row.failed or row.lacking)
    first = judge(row.rounds, tolerance)
    if not row.again:
        return Result(row, first, "")
    second = judge(row.again, tolerance)
    both = judge(row.rounds + row.again, tolerance)
    if second.verdict is Verdict.SLOWER:
        return Result(row, both, "confirmed by a second measurement")
    unconfirmed = replace(both, verdict=Verdict.UNCLEAR)
    return Result(row, unconfirmed, f"slower at first ({first.minima.ratio:.3f}), not when it was measured again")


def markdown(results: Sequence[Result], about: Mapping[str, object]) -> str:
    """Return the table and what it rests on."""
    lines = [
        f"New (this tree) beside old ({str(about['commit'])[:12]}): {about['processor']}, {about['cores']} cores, "
        f"load {about['load']}, Python {about['python']}, {about['minutes']} minutes",
        "",
        "| row | old | new | new / old | interval | median of pairs | interval | rounds | verdict |",
        "|---|--:|--:|--:|:-:|--:|:-:|--:|---|",
    ]
    for result in results:
        lines.append(f"| {result.row.name} | {' | '.join(cells(result))} |")
    counted = [result.verdict for result in results]
    lines += ["", ", ".join([f"{counted.count(word)} {word}" for word in dict.fromkeys(counted)])]
    return "\n".join(lines)


def cells(result: Result) -> list[str]:
    """Return the cells of a row after its name."""
    judgement = result.judgement
    if judgement is None:
        return [*[""] * 7, f"{result.verdict}: {result.note}"]
    rounds = result.row.rounds + result.row.again
    shown = f"{judgement.rounds}" + (f" ({judgement.disturbed_rounds} disturbed)" if judgement.disturbed_rounds else "")
    return [
        duration(min([one.old for one in rounds])),
        duration(min([one.new for one in rounds])),
        f"{judgement.minima.ratio:.3f}",
        f"{judgement.minima.low:.3f}–{judgement.minima.high:.3f}",
        f"{judgement.paired.ratio:.3f}",
        f"{judgement.paired.low:.3f}–{judgement.paired.high:.3f}",
        shown,
        result.verdict + (f": {result.note}" if result.note else ""),
    ]


def as_json(results: Sequence[Result], about: Mapping[str, object]) -> dict[str, object]:
    """Return everything that was measured, what was made of it, and on what machine."""

    def interval(found: Estimate) -> list[float | None]:
        return [found.low, found.high if found.high < math.inf else None]  # JSON has no infinity

    def described(result: Result) -> dict[str, object]:
        row, judgement = result.row, result.judgement
        found: dict[str, object] = {
            "workload": row.workload,
            "name": row.name,
            "mode": row.case.mode.name.lower(),
            "verdict": result.verdict,
            "note": result.note,
            "rounds": [one.pairs for one in row.rounds],
            "rounds_again": [one.pairs for one in row.again],
        }
        if judgement:
            found |= {
                "ratio": judgement.minima.ratio,
                "interval": interval(judgement.minima),
                "median_of_pairs": judgement.paired.ratio,
                "interval_of_pairs": interval(judgement.paired),
                "disturbed_rounds": judgement.disturbed_rounds,
                "disturbed_pairs": judgement.disturbed_pairs,
            }
        return found

    return {"machine": dict(about), "rows": [described(result) for result in results]}
