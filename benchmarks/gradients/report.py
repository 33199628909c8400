"""`python -m benchmarks gradients`: the report on derivatives, as Markdown, JSON and a picture.

Two workloads make it: `ad`, where the fastest of tinote's styles is held against the better of JAX and C on one thread,
and `gradients`, where a gradient is held against its own program. What is measured goes to the JSON after each table,
and the texts are made of that alone: a run that was interrupted goes on with `--keep`, and `--render` makes the texts
anew without measuring.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

from benchmarks import ad
from benchmarks.contract import OURS, Case
from benchmarks.gradients import PROGRAMS
from benchmarks.harness import Row, Settings, measure
from benchmarks.report import as_json, duration, tell
from benchmarks.runners import ROOT, Interpreters
from benchmarks.workloads import WORKLOADS, restrict

__all__ = ["Comparison", "comparison_of", "geometric_mean", "main", "markdown", "picture"]

REPORTS = ROOT / "benchmarks" / "reports"
NAME = "gradients"
GOAL = 0.9
"""What the geometric mean over all comparisons with the best peer is to be at most."""
MOST_BETWEEN_STYLES = 2.0
"""How many times the fastest style any other one may take."""
SCALES = 1.7
"""How many times faster all threads are to be, where one takes `LONG` seconds and memory is not what it waits for."""
LONG = 1e-3

Record = Mapping[str, Any]
"""A table, or a row of one, as JSON has it."""


class Comparison(NamedTuple):
    """One size of a workload of `ad`: seconds by row, of those whose answer is right, and what is made of them."""

    title: str
    workload: str
    seconds: dict[str, float]
    at_most: float | None

    @property
    def styles(self) -> dict[str, float]:
        """The seconds of tinote's styles on one thread."""
        names = {f"{OURS} {style}": style for style in ad.STYLES}
        return {names[name]: found for name, found in self.seconds.items() if name in names}

    @property
    def ours(self) -> float | None:
        """The fastest style."""
        return min(self.styles.values(), default=None)

    @property
    def peers(self) -> dict[str, float]:
        """The seconds of the others on one thread."""
        return {name: self.seconds[name] for name in ("c", "jax") if name in self.seconds}

    @property
    def ratio(self) -> float | None:
        """The fastest style over the best peer."""
        best = min(self.peers.values(), default=None)
        return None if self.ours is None or best is None else self.ours / best

    @property
    def over_primal(self) -> float | None:
        """R: the fastest style over the program alone."""
        primal = self.seconds.get(f"{OURS} primal")
        return None if self.ours is None or primal is None else self.ours / primal

    @property
    def between_styles(self) -> float | None:
        """The slowest style over the fastest, if all were measured."""
        return None if len(self.styles) < len(ad.STYLES) else max(self.styles.values()) / min(self.styles.values())

    @property
    def scaling(self) -> float | None:
        """One thread over all, for fields."""
        one, every = self.seconds.get(f"{OURS} fields"), self.seconds.get(f"{OURS} fields, all threads")
        return None if one is None or every is None else one / every

    @property
    def scalings(self) -> dict[str, tuple[float, float]]:
        """The seconds on one thread and on all, of the styles that take long on one."""
        every = {style: self.seconds.get(f"{OURS} {style}, all threads") for style in self.styles}
        return {style: (one, found) for style, one in self.styles.items() if one >= LONG and (found := every[style])}

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without one, or without a figure."""
        return None if self.ratio is None or self.at_most is None else self.ratio <= self.at_most


def main(arguments: Sequence[str] | None = None, workloads: Mapping[str, tuple[Case, ...]] = WORKLOADS) -> int:
    """Measure, and write the three files; return 1 if any row failed or was wrong, else 0."""
    described = parser()
    options = described.parse_args(arguments)
    files = {kind: options.out / f"{NAME}.{kind}" for kind in ("json", "md", "svg")}
    kept: list[Record] = []
    if options.keep or options.render:
        try:
            known = json.loads(files["json"].read_text(encoding="utf-8"))
        except OSError as error:
            described.error(f"cannot read {files['json']}: {error.strerror}")
        kept = known["cases"]
    cases = [case for name in ("ad", "gradients") for case in workloads[name] if chosen(case, options.case)]
    if not cases:
        described.error("no table has any of these words in its title")
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        described.error(f"cannot make {options.out}: {error.strerror}")
    interpreters = Interpreters(options.peer_python)
    settings = Settings(options.rounds, options.slice / 1000, interpreters)
    if options.render:
        record = known
    else:
        record = measured(cases, settings, kept, options.only, files["json"])
    files["md"].write_text(markdown(record), encoding="utf-8")
    files["svg"].write_text(picture(comparisons_of(record)), encoding="utf-8")
    print(markdown(record))
    return int(any(row["failed"] or row["wrong"] for case in record["cases"] for row in case["rows"]))


def parser() -> argparse.ArgumentParser:
    """Return the command line's description."""
    described = argparse.ArgumentParser(prog="python -m benchmarks gradients", description=__doc__)
    described.formatter_class = argparse.RawDescriptionHelpFormatter
    described.add_argument(
        "--case", action="append", default=[], metavar="WORD", help="only tables with this in their title (repeatable)"
    )
    described.add_argument(
        "--only", action="append", metavar="NAME", help="only contenders whose name begins with this word (repeatable)"
    )
    described.add_argument("--rounds", type=int, default=10, help="slices a contender gets (default: %(default)s)")
    described.add_argument(
        "--slice", type=float, default=50.0, metavar="MS", help="length of a slice (default: %(default)g ms)"
    )
    described.add_argument("--peer-python", metavar="PATH", help="interpreter for the peers")
    described.add_argument(
        "--out", type=Path, default=REPORTS, metavar="FOLDER", help="where the files go (default: %(default)s)"
    )
    described.add_argument("--keep", action="store_true", help="do not measure again what the JSON file has")
    described.add_argument("--render", action="store_true", help="make the texts of the JSON file, measure nothing")
    return described


def chosen(case: Case, words: Sequence[str]) -> bool:
    """Whether a title has one of the words, if there are any."""
    return not words or any(word in case.title for word in words)


def measured(
    cases: Iterable[Case], settings: Settings, kept: list[Record], only: Sequence[str] | None, out: Path
) -> Record:
    """Measure the cases that are not among the kept ones; what is there is written after each of them."""
    done = {case["title"]: case for case in kept}
    record: dict[str, Any] = {}
    for case in cases:
        if case.title not in done:
            contenders = restrict(case, only)
            rows: list[Row] = measure(contenders, settings, tell)
            record = as_json([(contenders, rows)], settings)
            done[case.title] = record["cases"][0]
            tell("")
        record = {**as_json([], settings), "cases": list(done.values())}
        out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return record


# ---- what is made of it


def seconds_of(case: Record) -> dict[str, float]:
    """The minima of the rows whose answer is right."""
    return {row["name"]: row["seconds"] for row in case["rows"] if row["seconds"] is not None and not row["wrong"]}


def comparison_of(case: Record) -> Comparison:
    """One table of `ad`."""
    return Comparison(case["title"], case["parameters"]["workload"], seconds_of(case), case["at_most_best"])


def comparisons_of(record: Record) -> list[Comparison]:
    """All tables of `ad`."""
    return [comparison_of(case) for case in record["cases"] if "workload" in case["parameters"]]


def geometric_mean(ratios: Sequence[float]) -> float | None:
    """The geometric mean; None of nothing."""
    return statistics.geometric_mean(ratios) if ratios else None


def markdown(record: Record) -> str:
    """The report for people."""
    about = record["machine"]
    found = comparisons_of(record)
    own = [case for case in record["cases"] if "workload" not in case["parameters"]]
    missed = {case["title"] for case in own if misses(case)}
    versions = sorted(
        {f"{row['package']} {row['version']}" for case in record["cases"] for row in case["rows"] if row["version"]}
    )
    lines = [
        "# What derivatives cost",
        "",
        f"`python -m benchmarks gradients`, {about['time']}: {about['processor']}, {about['cores']} cores (load "
        f"{about['load']}), {about['system']}, Python {about['python']}, {about['c_compiler'] or 'no C compiler'}"
        f"{''.join(f', {version}' for version in versions)}.",
        "",
        f"Minimum of {record['rounds']} slices of {1000 * record['slice_seconds']:g} ms, contenders in turn, each in a "
        "process of its own. Every derivative was checked before and after; one that is wrong has no figure.",
        "",
    ]
    if found:
        lines += [
            "## Compared with JAX and C, on one thread",
            "",
            "Each figure is the time of the value and its derivative. The last columns: the fastest style over the "
            "better peer and what was aimed at; R, the fastest style over the program alone; the slowest style over "
            "the fastest; how much faster fields are on all threads.",
            "",
            "| | C | JAX | fields | ndarrays | functional | ÷ best | target | R | styles | threads |",
            "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
            *map(line_of, found),
            "",
            *summary_of(found),
        ]
    if long := [line for one in found for line in lines_of_threads(one)]:
        lines += [
            "## On all threads",
            "",
            f"What takes {1000 * LONG:g} ms and more on one thread. Wanted, where it does not wait for memory: "
            f"{SCALES:g} times faster on two. {NOT_SHARED}",
            "",
            "| | one thread | all | times faster |",
            "|---|--:|--:|--:|",
            *long,
            "",
        ]
    if own:
        lines += [
            "## A gradient over its own program, on all threads",
            "",
            "| | program | gradient | R | target |",
            "|---|--:|--:|--:|--:|",
            *[line for case in own for line in lines_over_primal(case)],
            "",
            *lines_of_reasons({title: why for title, why in PROGRAMS.values() if title in missed}),
        ]
    remarks = [
        f"- {case['title']}, {row['name']}: {why}"
        for case in record["cases"]
        for row in case["rows"]
        if (why := remark(row))
    ]
    return "\n".join([*lines, *(["## Rows without a figure", "", *remarks, ""] if remarks else [])])


def remark(row: Record) -> str:
    """Why a row has no figure, if it has none."""
    if row["failed"] or row["unavailable"]:
        return str(row["failed"] or row["unavailable"])
    if not row["wrong"]:
        return ""
    deviation = row["deviation"]
    return f"wrong by {deviation if isinstance(deviation, str) else format(deviation, '.1e')}"


def line_of(one: Comparison) -> str:
    """One row of the table."""
    times = [one.seconds.get(name) for name in ("c", "jax", *(f"{OURS} {style}" for style in ad.STYLES))]
    at_most = "" if one.at_most is None else f"{one.at_most:g}{'' if one.met else ', missed'}"
    cells = [
        *map(shown_time, times),
        shown(one.ratio),
        at_most if one.ratio is not None else "",
        shown(one.over_primal),
    ]
    return f"| {one.title} | {' | '.join([*cells, shown(one.between_styles), shown(one.scaling)])} |"


def lines_of_threads(one: Comparison) -> list[str]:
    """A row for each style that takes long on one thread."""
    return [
        f"| {one.title}, {style} | {duration(single)} | {duration(every)} | {single / every:.2f} |"
        for style, (single, every) in one.scalings.items()
    ]


STYLES_APART = (
    "Styles are far apart where a case consists of short launches: a tape launches one by one, and looks up for each "
    "what it overwrites and, for ndarrays, where they are (5 to 9 µs), while the launches of a function become one "
    "native call once it has run a few times, and so do those of a step of `ti.capture` under a tape, which these rows "
    "do not measure."
)
NOT_SHARED = (
    "Less where a launch is short or waits for memory: those of Runge-Kutta move 8 to 80 kB in 1 to 70 µs, and the 14 "
    "bits of an LSTM are lanes of one thread, beside which a second one has the sums over the text."
)


def summary_of(found: Sequence[Comparison]) -> list[str]:
    """What all rows say together, and why what was missed was missed."""
    ratios = [one.ratio for one in found if one.ratio is not None]
    mean = geometric_mean(ratios)
    if mean is None:
        return []
    aimed = [one for one in found if one.met is not None]
    apart = [one for one in found if (one.between_styles or 0) > MOST_BETWEEN_STYLES]
    lines = [
        f"Geometric mean of {len(ratios)} cases: **{mean:.2f}** times the better peer (target {GOAL:g}); "
        f"{sum(bool(one.met) for one in aimed)} of {len(aimed)} targets met. In {len(apart)} of {len(found)} cases a "
        f"style takes more than {MOST_BETWEEN_STYLES:g} times the fastest.",
        "",
        *([STYLES_APART, ""] if apart else []),
    ]
    missed = dict.fromkeys(one.workload for one in aimed if not one.met)
    return [*lines, *lines_of_reasons({name.replace("_", " "): ad.WORKLOADS[name].missed for name in missed})]


def lines_of_reasons(reasons: Mapping[str, str]) -> list[str]:
    """A list of what was missed, by its name."""
    known = [f"- {name}: {why}" for name, why in reasons.items() if why]
    return ["What was missed, and why:", "", *known, ""] if known else []


def misses(case: Record) -> bool:
    """Whether the gradient takes more than it may in units of its own program."""
    seconds = seconds_of(case)
    over = next((row["over"] for row in case["rows"] if row["name"] == OURS), None)
    mine, primal, most = seconds.get(OURS), seconds.get(over or ""), case["at_most_over"]
    return mine is not None and primal is not None and most is not None and mine > most * primal


def lines_over_primal(case: Record) -> list[str]:
    """A row for each package that ran the program and its gradient."""
    seconds = seconds_of(case)
    lines: list[str] = []
    for row in case["rows"]:
        mine, primal = seconds.get(row["name"]), seconds.get(row["over"])
        if mine is not None and primal is not None:
            target = f"{case['at_most_over']:g}" if row["name"] == OURS and case["at_most_over"] is not None else ""
            missed = ", missed" if target and misses(case) else ""
            lines.append(
                f"| {case['title']}, {row['name']} | {duration(primal)} | {duration(mine)} | {mine / primal:.2f} | "
                f"{target}{missed} |"
            )
    return lines


def shown_time(seconds: float | None) -> str:
    """One cell."""
    return "" if seconds is None else duration(seconds)


def shown(ratio: float | None) -> str:
    """One cell."""
    return "" if ratio is None else f"{ratio:.2f}"


# ---- the picture

WIDTH, LABELS, LINE, TOP = 980, 450, 19, 46
LEAST, MOST = 1 / 16, 64.0
MET, MISSED, FREE, INK, GRID = "#2b8a5f", "#d9822b", "#5b7083", "#24292f", "#d8dee4"


def picture(found: Sequence[Comparison]) -> str:
    """The fastest style over the best peer, one bar a case on a logarithmic scale; a tick where it was to end."""
    bars = [one for one in found if one.ratio is not None]
    mean = geometric_mean([one.ratio for one in bars if one.ratio is not None])
    height = TOP + LINE * (len(bars) + 1) + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="system-ui, sans-serif" font-size="12" role="img">',
        "<title>Time of a derivative over that of the better of JAX and C</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="20" fill="{INK}" font-weight="600">Value and derivative, one thread: tinote over the better '
        "of JAX and C (shorter is faster)</text>",
    ]
    bottom = TOP + LINE * (len(bars) + 1)
    exponents = range(round(math.log2(LEAST)), round(math.log2(MOST)) + 1)
    for exponent in exponents:
        x = place(2.0**exponent)
        strong = exponent == 0
        parts.append(
            f'<line x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{bottom}" stroke="{INK if strong else GRID}"/>'
            f'<text x="{x:.1f}" y="{TOP - 12}" fill="{INK}" text-anchor="middle">{scale(exponent)}</text>'
        )
    rows = [(one.title, one.ratio, one.at_most, one.met) for one in bars]
    if mean is not None:
        rows.append(("geometric mean", mean, GOAL, mean <= GOAL))
    for number, (title, ratio, at_most, met) in enumerate(rows):
        assert ratio is not None
        y = TOP + LINE * number
        ends = sorted((place(1.0), place(ratio)))
        colour = FREE if met is None else MET if met else MISSED
        weight = ' font-weight="600"' if title == "geometric mean" else ""
        parts.append(
            f'<text x="{LABELS - 8}" y="{y + 13}" fill="{INK}" text-anchor="end"{weight}>{escape(title)}</text>'
            f'<rect x="{ends[0]:.1f}" y="{y + 3}" width="{max(ends[1] - ends[0], 1):.1f}" height="{LINE - 6}" '
            f'fill="{colour}"/>'
            f'<text x="{WIDTH - 10}" y="{y + 13}" fill="{INK}" text-anchor="end"{weight}>{ratio:.2f}</text>'
        )
        if at_most is not None:
            x = place(at_most)
            parts.append(
                f'<line x1="{x:.1f}" y1="{y + 1}" x2="{x:.1f}" y2="{y + LINE - 1}" stroke="{INK}" stroke-width="2"/>'
            )
    parts.append(
        f'<text x="12" y="{height - 8}" fill="{INK}">Black ticks: targets. Green: met; orange: missed; grey: none.'
        "</text></svg>"
    )
    return "\n".join(parts) + "\n"


def place(ratio: float) -> float:
    """Where a ratio is on the axis."""
    low, high = math.log(LEAST), math.log(MOST)
    share = (min(max(math.log(ratio), low), high) - low) / (high - low)
    return LABELS + share * (WIDTH - LABELS - 60)


def scale(exponent: int) -> str:
    """A power of two as the axis has it."""
    return str(2**exponent) if exponent >= 0 else f"1/{2**-exponent}"
