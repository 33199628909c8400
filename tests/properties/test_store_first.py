"""Gradients that store what they add first find the same as those that add it, whatever was where they store for
certain.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import pytest

from tests.properties.generate import Program
from tests.properties.smooth import generate_smooth, generate_uneven
from tests.properties.test_programs import (
    SMOOTH_SIZE,
    STRICT,
    UNVERIFIED,
    after_primal,
    few_lanes,
    gradients_after,
    report,
)
from tinote.compiler import pipeline
from tinote.compiler.pipeline import Snapshot, run_pipeline, steps_for
from tinote.compiler.requests import GRADIENT
from tinote.errors import CompilerBug
from tinote.ir.affine import Interval
from tinote.ir.launch_values import SymbolicRegions
from tinote.ir.nodes import Buffer
from tinote.ir.text import show


@pytest.fixture(autouse=True)
def lanes_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "machine_of", few_lanes)


def elements(regions: SymbolicRegions, program: Program) -> Iterator[tuple[Buffer, tuple[int, ...]]]:
    """The numbers that the regions say are stored."""
    memory, arguments = program.memory(), list[Any](program.arguments)
    lengths = [memory.full_shape(buffer)[axis] for buffer, axis in regions.lengths]
    found: list[Interval] = []
    for node in regions.nodes:
        found.append(node.interval(arguments, lengths, found))
    for buffer, axes in regions.written:
        spans = [range(low, high + 1) for low, high in [found[node] for node in axes]]
        for index in itertools.product(*spans, *map(range, buffer.element)):
            yield buffer, index


def wrong_when_stored(program: Program, counts: list[int]) -> str:
    """Where a gradient that stores first finds something else."""
    assert program.loss is not None and program.loss.adjoint is not None
    snapshots: list[Snapshot] = []

    def listen(snapshot: Snapshot) -> None:
        if snapshot.step == "store_first" or (snapshots and snapshot.after is not snapshot.before):
            snapshots.append(snapshot)

    zeroed = [buffer.adjoint for buffer in program.contents if buffer is not program.loss]
    request = GRADIENT.into(frozenset([one for one in zeroed if one is not None]))
    try:
        machine = few_lanes(STRICT)._replace(fast_math=True)
        _, context = run_pipeline(program.function, steps_for(request), STRICT, listen, machine=machine)
        plain, _ = run_pipeline(program.function, steps_for(GRADIENT), UNVERIFIED)
    except CompilerBug as error:
        return str(error)
    assert context.gradient is not None and context.filled is not None
    begin = after_primal(program, context.gradient.live_in_before)
    begin.store(program.loss.adjoint, (), 1.0)
    wanted = gradients_after(program, plain, begin)
    for buffer, index in elements(context.filled, program):
        counts.append(1)
        begin.store(buffer, index, math.nan)
    size = 1 + sum(map(abs, wanted.values()))
    for snapshot in snapshots:
        for place, value in gradients_after(program, snapshot.after, begin).items():
            if not math.isclose(value, wanted[place], rel_tol=1e-9, abs_tol=1e-9 * size):
                where = f"{place[0].name}{list(place[1])}"
                text = f"after '{snapshot.step}' the derivative by {where} is {value}, not {wanted[place]}"
                return f"{text}\n\n{show(snapshot.after)}"
    return ""


def test_gradients_that_store_first_are_those_that_add(random_programs: range) -> None:
    counts: list[int] = []
    seeds = random_programs[::2]
    for seed in seeds:
        make = generate_uneven if seed % 8 == 6 else generate_smooth
        report(make, lambda program: wrong_when_stored(program, counts), seed, SMOOTH_SIZE)
    assert len(counts) > len(seeds), "elements that are stored first, an average program has one at least"
