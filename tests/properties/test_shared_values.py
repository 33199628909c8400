"""Random programs whose launch saves what their gradient would compute a second time: both find the same as without."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.properties.compare import run
from tests.properties.generate import Program
from tests.properties.smooth import generate_smooth, generate_uneven
from tests.properties.test_programs import SMOOTH_SIZE, STRICT, UNVERIFIED, few_lanes, gradients_after, report
from tinote.compiler import pipeline
from tinote.compiler.pipeline import Snapshot, run_pipeline, steps_for
from tinote.compiler.requests import GRADIENT, SHARED_GRADIENT, SHARING
from tinote.errors import CompilerBug
from tinote.ir.interpret import interpret


@pytest.fixture(autouse=True)
def lanes_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "machine_of", few_lanes)


def wrong_when_shared(program: Program, counts: list[int]) -> str:
    """Where the launch that saves leaves something else, or the gradient that reads it finds something else."""
    assert program.loss is not None and program.loss.adjoint is not None
    snapshots: list[Snapshot] = []

    def listen(snapshot: Snapshot) -> None:
        if snapshot.step == "reverse" or (snapshots and snapshot.after is not snapshot.before):
            snapshots.append(snapshot)

    try:
        machine = few_lanes(STRICT)._replace(fast_math=True)
        saving, recorded = run_pipeline(program.function, steps_for(SHARING), STRICT, machine=few_lanes(STRICT))
        shared, found = run_pipeline(program.function, steps_for(SHARED_GRADIENT), STRICT, listen, machine=machine)
        plain, alone = run_pipeline(program.function, steps_for(GRADIENT), UNVERIFIED)
    except CompilerBug as error:
        return str(error)
    gradient, wanted, saved = found.gradient, alone.gradient, recorded.old_values
    assert gradient is not None and wanted is not None and saved is not None
    pairs = list(zip(gradient.old_values.values, saved.values, strict=bool(gradient.old_values.values)))
    counts.append(len(pairs))
    begin = program.memory()
    shapes = saved.shapes.shapes(program.arguments, begin)
    begin.shapes.update(zip([value.buffer for value in saved.values], shapes, strict=True))
    interpret(saving, program.arguments, begin)
    by_itself = run(program, program.function)
    left = by_itself._replace(contents={b: begin.nested(b) for b in program.contents})
    # In which order parallel loops add up is open, so that sums may differ by rounding.
    for buffer, contents in by_itself.contents.items():
        if not np.allclose(np.asarray(left.contents[buffer]), np.asarray(contents), rtol=1e-12, atol=1e-12):
            return f"the launch that saves left {left.contents[buffer]} in {buffer.name} instead of {contents}"
    for reads, writes in pairs:
        begin.cells[reads.buffer] = begin.cells.get(writes.buffer, {})
        begin.shapes[reads.buffer] = begin.shapes[writes.buffer]
    begin.store(program.loss.adjoint, (), 1.0)
    given = begin.copy()
    for buffer in wanted.live_in_before:
        given.fill(buffer, program.contents[buffer])
    for buffer in gradient.live_in_before:
        begin.fill(buffer, program.contents[buffer])
    right = gradients_after(program, plain, given)
    size = 1 + sum(map(abs, right.values()))
    for fn in (*[snapshot.after for snapshot in snapshots], shared):
        for place, value in gradients_after(program, fn, begin).items():
            if not math.isclose(value, right[place], rel_tol=1e-9, abs_tol=1e-9 * size):
                return f"the derivative by {place[0].name}{list(place[1])} is {value}, not {right[place]}"
    return ""


def test_gradients_that_share_work_are_those_that_do_not(random_programs: range) -> None:
    counts: list[int] = []
    for seed in random_programs[::3]:
        make = generate_uneven if seed % 8 == 5 else generate_smooth
        report(make, lambda program: wrong_when_shared(program, counts), seed, SMOOTH_SIZE)
    assert any(counts)
