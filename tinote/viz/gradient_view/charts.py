"""A sweep's report as charts: axes, lines and bars in parts of the plot's width and height, and the values under the
pointer. The page (`static/views/gradients.js`) and the still picture draw the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tinote.lang.ad.checks.horizons import HorizonReport
from tinote.lang.ad.sweep_report import AdjointNorms, SweepReport, SweptLaunch
from tinote.runtime.memory import readable_size
from tinote.source import location_name
from tinote.viz.draw.axes import Place, linear, logarithmic, seconds_text, seconds_unit
from tinote.viz.draw.pen import LIGHT

MOST_POINTS = 600
"""Of a line: of more, the largest and the smallest of each interval stay."""

MOST_BARS = 160
_LENGTHS = 12
MOST_ROWS = 400
"""Places that the pointer and the keys stop at."""

_OTHERS = len(LIGHT.series) - 1  # the colour of what is not distinguished, grey

Chart = dict[str, Any]


def facts(report: SweepReport, horizons: HorizonReport | None) -> dict[str, Any]:
    """All that the view shows."""
    charts = [_norms_chart(report)] if report.norms else []
    if report.launches:
        charts.append(_times_chart(report))
    if report.kept_bytes:
        charts.append(_memory_chart(report))
    if horizons:
        charts.append(_horizons_chart(horizons))
    count = len(report.launches)
    statements = list(report.statements)
    if report.finding is not None:
        statements.append(f"{report.finding.message}: {location_name(report.finding.span)}")
    if horizons is not None:
        statements.append(horizons.statement)
    if not report.ran_forward:
        statements.append("the launches themselves were not run again: open the tape with keep=True for their times")
    return {
        "title": f"Gradients of {count:,} launch{'' if count == 1 else 'es'}",
        "statements": [one[:1].upper() + one[1:] for one in statements],
        "charts": charts,
        "kernels": _kernels(report),
    }


def as_text(shown: dict[str, Any], report: SweepReport) -> str:
    """The same where there are no pictures."""
    return "\n".join([shown["title"], *shown["statements"], repr(report.kernels)])


# ---- the charts


def _norms_chart(report: SweepReport) -> Chart:
    count = len(report.launches)
    chosen = sorted(report.norms.values(), key=lambda one: -len(one.values))
    series = sorted(chosen[: len(LIGHT.series)], key=lambda one: one.name)
    x, x_axis = linear(0, max(count, 1), "launch (0: the start)", whole=True)
    finite = [v for one in series for v in one.values if math.isfinite(v) and v > 0]
    y, y_axis = logarithmic(finite, "")
    lines = [_line(one.name, index, one.launches, one.values, x, y) for index, one in enumerate(series)]
    marks = []
    bad = report.nonfinite
    if bad is not None:
        words = f"first NaN or infinity: gradient of launch {bad.number}, '{bad.kernel}', {location_name(bad.span)}"
        marks.append({"at": x(bad.number), "to": x(bad.number), "text": words})
    stops = _spread([k for one in series for k in one.launches])
    if bad is not None:
        stops = sorted({*stops, bad.number})
    rows = [[_launch_name(report, k), *[_number(_at(one, k)) for one in series]] for k in stops]
    left_out = len(report.norms) - len(series)
    more = f"; {left_out} more in `report.norms`" if left_out else ""
    return {
        "id": "norms",
        "title": "Norms of the adjoints",
        "about": f"‖∂loss/∂f‖ of what each launch wrote to a field f, as it left it{more}",
        "x": x_axis,
        "y": y_axis,
        "lines": lines,
        "bars": [],
        "marks": marks,
        "legend": [{"name": one.name, "color": index} for index, one in enumerate(series)],
        "stops": [x(k) for k in stops],
        "heads": ["launch", *[one.name for one in series]],
        "rows": rows,
    }


def _times_chart(report: SweepReport) -> Chart:
    kernels = [one.kernel for one in report.kernels]
    colors = {kernel: min(number, _OTHERS) for number, kernel in enumerate(dict.fromkeys(kernels))}
    # A checkpointed loop stands in the table alone: what it runs again belongs to no launch.
    bins = _bins([one for one in report.launches if not one.within])
    back = [sum(one.backward for one in group) for group in bins]
    forth = [sum(one.forward or 0.0 for one in group) for group in bins]
    unit, scale = seconds_unit(max([*back, *forth], default=0.0))
    x, x_axis = linear(0.5, len(report.launches) + 0.5, "launch", whole=True)
    y, y_axis = linear(-max(forth, default=0.0) * scale, max([*back, 1e-12]) * scale, unit, apart=4)
    y_axis["ticks"] = [{**tick, "text": tick["text"].lstrip("-−")} for tick in y_axis["ticks"]]
    bars: list[dict[str, Any]] = []
    rows: list[list[str]] = []
    stops: list[float] = []
    for group, b, f in zip(bins, back, forth, strict=True):
        first, last = x(group[0].number - 0.5), x(group[-1].number + 0.5)
        for sign, seconds in ((1, _backward), (-1, _forward)):
            level = 0.0
            for kernel, part in _by_kernel(group, seconds):
                ends = sorted([y(sign * level * scale), y(sign * (level + part) * scale)])
                bars.append({"x": [first, last], "y": ends, "color": colors[kernel], "faint": sign < 0})
                level += part
        stops.append((first + last) / 2)
        rows.append([_span_name(group), seconds_text(f) if report.ran_forward else "–", seconds_text(b)])
    below = "the launches below" if report.ran_forward else "the launches were not run again"
    drawn = {one.kernel for group in bins for one in group}
    named = [name for name, number in colors.items() if number < _OTHERS]
    legend = [{"name": name, "color": colors[name]} for name in named if name in drawn]
    if len(colors) > len(named):
        legend.append({"name": "others", "color": _OTHERS})
    return {
        "id": "times",
        "title": "Time",
        "about": f"the gradients above, {below}; the shortest of some runs",
        "x": x_axis,
        "y": y_axis,
        "lines": [{"color": None, "runs": [[[0.0, y(0.0)], [1.0, y(0.0)]]], "dashed": False}],
        "bars": bars,
        "marks": [],
        "legend": legend,
        "stops": stops,
        "heads": ["launch", "forward", "backward"],
        "rows": rows,
    }


def _memory_chart(report: SweepReport) -> Chart:
    bins = _bins(report.launches)
    kept = [sum(one.kept_bytes for one in group) for group in bins]
    unit, scale = next(
        (name, 1 / size) for name, size in (("MiB", 1 << 20), ("KiB", 1 << 10), ("bytes", 1)) if max(kept) >= size
    )
    x, x_axis = linear(0.5, len(report.launches) + 0.5, "launch", whole=True)
    y, y_axis = linear(0.0, max(kept) * scale, unit, apart=3)
    bars = []
    stops = []
    for group, nbytes in zip(bins, kept, strict=True):
        ends = [x(group[0].number - 0.5), x(group[-1].number + 0.5)]
        stops.append(sum(ends) / 2)
        if nbytes:
            bars.append({"x": ends, "y": [y(0.0), y(nbytes * scale)], "color": 0, "faint": False})
    return {
        "id": "memory",
        "title": "Memory",
        "about": f"what the tape keeps because of each launch, {readable_size(sum(kept))} in all",
        "x": x_axis,
        "y": y_axis,
        "lines": [],
        "bars": bars,
        "marks": [],
        "legend": [],
        "stops": stops,
        "heads": ["launch", "kept"],
        "rows": [[_span_name(group), readable_size(n)] for group, n in zip(bins, kept, strict=True)],
    }


def _horizons_chart(report: HorizonReport) -> Chart:
    steps = [one.steps for one in report]
    spreads = steps[-1] >= 16 * steps[0]
    last = max(steps[-1], steps[0] + 1)
    x, x_axis = logarithmic([steps[0], last], "steps") if spreads else linear(steps[0], last, "steps", whole=True)
    if spreads:
        shown = [steps[0] * 2**k for k in range(60) if steps[0] * 2**k <= steps[-1]]
        shown = shown[:: max(1, len(shown) // 8)]
        x_axis["ticks"] = [{"at": x(k), "text": f"{k:,}"} for k in shown]
    found = [abs(v) for one in report for v in (one.reverse, one.difference) if math.isfinite(v) and v]
    y, y_axis = logarithmic(found, "")
    names = ("reverse mode", "difference")
    values = [abs(one.reverse) for one in report], [abs(one.difference) for one in report]
    lines = [_line(name, k, steps, values[k], x, y, dots=True) for k, name in enumerate(names)]
    lines[1]["dashed"] = True
    marks = []
    broken = next((one.steps for one in report if one.steps > report.meaningful), None)
    if broken is not None:
        words = f"from {broken:,} steps on the derivative says nothing about a change by ±{report.change:.2g}"
        marks.append({"at": x(broken), "to": 1.0, "text": words})
    return {
        "id": "horizons",
        "title": "Derivative against differences",
        "about": f"along one random direction, by horizon; agreement means within {report.tolerance:.0%}",
        "x": x_axis,
        "y": y_axis,
        "lines": lines,
        "bars": [],
        "marks": marks,
        "legend": [{"name": name, "color": k} for k, name in enumerate(names)],
        "stops": [x(k) for k in steps],
        "heads": ["steps", *names, "deviation"],
        "rows": [[f"{s:,}", _number(r), _number(d), f"{one.deviation:.1e}"] for one in report for s, r, d in [one]],
    }


def _kernels(report: SweepReport) -> dict[str, Any]:
    """The table of kernels, with the parts of the longest bar that their times have."""
    kernels = report.kernels
    longest = max([max(one.backward, one.forward or 0.0) for one in kernels], default=0.0) or 1.0
    colors = {kernel: min(n, _OTHERS) for n, kernel in enumerate(dict.fromkeys(one.kernel for one in kernels))}
    rows = [
        {
            "name": one.kernel,
            "place": location_name(one.span),
            "launches": f"{one.launches:,}",
            "forward": "–" if one.forward is None else seconds_text(one.forward),
            "backward": seconds_text(one.backward),
            "kept": readable_size(one.kept_bytes) if one.kept_bytes else "–",
            "bars": [(one.forward or 0.0) / longest, one.backward / longest],
            "color": colors[one.kernel],
        }
        for one in kernels
    ]
    return {"heads": ["kernel", "launches", "forward", "backward", "kept"], "rows": rows}


# ---- axes


# ---- lines and bars


def _line(
    name: str, color: int, at: Sequence[int], values: Sequence[float], x: Place, y: Place, *, dots: bool = False
) -> dict[str, Any]:
    """A line with gaps where a logarithm has no values."""
    runs: list[list[list[float]]] = [[]]
    for k, value in _thinned(at, values):
        if math.isfinite(value) and value > 0:
            runs[-1].append([x(k), y(value)])
        elif runs[-1]:
            runs.append([])
    return {"name": name, "color": color, "runs": [run for run in runs if run], "dashed": False, "dots": dots}


def _thinned(at: Sequence[int], values: Sequence[float]) -> list[tuple[int, float]]:
    pairs = list(zip(at, values, strict=True))
    if len(pairs) <= MOST_POINTS:
        return pairs
    size = math.ceil(2 * len(pairs) / MOST_POINTS)
    kept: list[tuple[int, float]] = []
    for begin in range(0, len(pairs), size):
        part = pairs[begin : begin + size]
        bad = [pair for pair in part if not math.isfinite(pair[1])]
        ends = {min(part, key=lambda pair: pair[1]), max(part, key=lambda pair: pair[1]), *bad[:1]}
        kept += sorted(ends, key=lambda pair: pair[0])
    return kept


def _spread(numbers: Iterable[int]) -> list[int]:
    """At most `most` of the numbers, evenly."""
    found = sorted(set(numbers))
    every = math.ceil(len(found) / MOST_ROWS) or 1
    return [*found[::every], *found[-1:]]


def _bins(launches: Sequence[SweptLaunch]) -> list[Sequence[SweptLaunch]]:
    """Launches in parts of one length, of a few lengths the one whose parts are most alike: a part that cuts
    the steps of a simulation now here and now there makes a pattern of its own.
    """
    least = math.ceil(len(launches) / MOST_BARS) or 1
    names = [one.kernel for one in launches]

    def kinds(size: int) -> int:
        return len({tuple(sorted(names[begin : begin + size])) for begin in range(0, len(names), size)})

    size = min(range(least, least + (_LENGTHS if least > 1 else 1)), key=kinds)
    return [launches[begin : begin + size] for begin in range(0, len(launches), size)]


def _backward(one: SweptLaunch) -> float:
    return one.backward


def _forward(one: SweptLaunch) -> float:
    return one.forward or 0.0


def _by_kernel(group: Sequence[SweptLaunch], seconds: Callable[[SweptLaunch], float]) -> list[tuple[str, float]]:
    found: dict[str, float] = {}
    for one in group:
        found[one.kernel] = found.get(one.kernel, 0.0) + seconds(one)
    return [(kernel, part) for kernel, part in found.items() if part > 0]


# ---- words


def _at(one: AdjointNorms, launch: int) -> float | None:
    """The norm of what the field holds after a launch."""
    known = [value for k, value in zip(one.launches, one.values, strict=True) if k <= launch]
    return known[-1] if known else None


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _launch_name(report: SweepReport, number: int) -> str:
    return f"{number:,} {report.launches[number - 1].kernel}" if number else "start"


def _span_name(group: Sequence[SweptLaunch]) -> str:
    if len(group) == 1:
        return f"{group[0].number:,} {group[0].kernel}"
    return f"{group[0].number:,} to {group[-1].number:,}"
