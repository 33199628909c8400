"""The explorer's panel of the roofline: what the loops of a launch reach of what this machine moves and computes.

It shows what was measured last, by `kernel.roofline(…)` or here, on request, in copies of the fields.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinote.compiler.driver import Specialisation
from tinote.compiler.requests import GRADIENT, PRIMAL
from tinote.lang.kernels.roofline import ROOFLINE_COLUMNS, LoopRoofline, Roofline, in_copies, last_measured, measure
from tinote.viz.draw.axes import logarithmic
from tinote.viz.explorer.panels import Json, row_of, table_of
from tinote.viz.explorer.rows import Rows
from tinote.viz.explorer.values import numbers_for, parameters_of

#: The part of the ceiling from which on a loop counts as fast. Chosen, not measured.
_GOOD = 0.75


def roofline_panel(specialisation: Specialisation, gradient: bool, rows: Rows) -> Json:
    """The loops as a table and in a chart, notes for their lines, and what a measurement asks for."""
    measured = last_measured(specialisation, GRADIENT if gradient else PRIMAL) or Roofline()
    shown = [row_of(rows.location(one.span), str(one.span.line), *one.cells, tone=_tone(one)) for one in measured]
    notes = [
        {"row": row["place"][0], "text": row["cells"][-1], "tone": row["tone"], "title": f"lost to: {row['cells'][2]}"}
        for row in shown
        if row["place"][0] >= 0
    ]
    name = specialisation.source.name
    arrays = (
        f"It takes arrays, which have their memory only during a launch: call "
        f"{name}{'.grad' if gradient else ''}.roofline(…) with its arguments, and explore it again."
        if specialisation.arrays
        else ""
    )
    return {
        "tables": [table_of("Loops", ("line", *ROOFLINE_COLUMNS), shown, "not measured yet")],
        "notes": notes,
        "chart": _chart(measured),
        "measures": {"parameters": parameters_of(specialisation, measured.numbers), "refused": arrays},
    }


def measure_in_copies(specialisation: Specialisation, gradient: bool, arguments: Sequence[float]) -> None:
    """Measure a kernel without arrays, or its gradient. What the program has in its fields stays as it is. Raises
    `TinoteError` for what cannot be measured.
    """
    numbers = numbers_for(specialisation.lowered.function, arguments)
    measure(specialisation, tuple(numbers), GRADIENT if gradient else PRIMAL, in_copies())


def _tone(one: LoopRoofline) -> str:
    return "good" if one.fraction >= _GOOD else "costly"


def _chart(measured: Roofline) -> Json | None:
    """Loops that compute, over the operations for each byte that they move, under the roofs of this machine."""
    loops = [one for one in measured if one.operations and one.nbytes]
    if not loops:
        return None
    intensities = [(one.operations or 0) / one.nbytes for one in loops]
    ridges = [one.peak / one.bandwidth for one in loops]
    first, last = min(*intensities, *ridges) / 2, max(*intensities, *ridges) * 2
    rates = [1e-9 * (one.operations or 0) / one.seconds for one in loops]
    roofs = [
        [(first, 1e-9 * one.bandwidth * first), (ridge, 1e-9 * one.peak), (last, 1e-9 * one.peak)]
        for one, ridge in zip(loops, ridges, strict=True)
    ]
    x, x_axis = logarithmic([first, last], "operations a byte")
    y, y_axis = logarithmic([*rates, *(rate for roof in roofs for _, rate in roof)], "Gop/s")
    return {
        "x": x_axis,
        "y": y_axis,
        "roofs": [[(float(x(at)), float(y(rate))) for at, rate in roof] for roof in roofs],
        "loops": [
            {"at": float(x(at)), "rate": float(y(rate)), "line": one.span.line, "tone": _tone(one)}
            for at, rate, one in zip(intensities, rates, loops, strict=True)
        ],
    }
