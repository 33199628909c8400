"""Random sequences of accesses: the tape finds exactly the elements for which the two rules, taken literally, fail."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import overwrites
from tests.autodiff.validated import debugging  # noqa: F401
from tinote.errors import AccessRuleError

pytestmark = overwrites

READ, STORE, ADD, MULTIPLY, SCALE = range(5)  # SCALE: x[i] = x[i] * 0.5
N = 8


class Act(NamedTuple):
    """One access to one element, in a launch (from 1) or by Python between launches."""

    what: int
    element: int


def accesses(act: Act) -> list[str]:
    """What an act is to the rules."""
    return {READ: ["read"], STORE: ["="], ADD: ["+="], MULTIPLY: ["read", "*="], SCALE: ["read", "="]}[act.what]


def broken(history: list[Act], has_gradient: bool) -> set[int]:
    """The elements that break a rule, by the words of the rules."""
    found: set[int] = set()
    for element in range(N):
        log = [access for act in history if act.element == element for access in accesses(act)]
        changed_after_read = any(before == "read" and after != "read" for before, after in pairwise(log))
        writes = [access for access in log if access != "read"]
        rewritten = has_gradient and any(access != "+=" for access in writes[1:])
        if changed_after_read or rewritten:
            found.add(element)
    return found


@pytest.mark.parametrize("place", ["dense", "pointer", "bitmasked"])
@pytest.mark.parametrize("has_gradient", [True, False])
def test_random_sequences(has_gradient: bool, place: str) -> None:
    x = ti.field(ti.f64, needs_grad=has_gradient, name="x")
    if place == "pointer":
        ti.root.pointer(ti.i, 2).dense(ti.i, N // 2).place(x)
    else:
        getattr(ti.root, place)(ti.i, N).place(x)
    loss = ti.field(ti.f64, shape=(), needs_grad=True, name="loss")

    @ti.kernel
    def perform(acts: ti.types.ndarray(dtype=ti.i32, ndim=2)):
        ti.loop_config(serialize=True)
        for k in range(acts.shape[0]):
            what, i = acts[k, 0], acts[k, 1]
            if what == READ:
                loss[None] += x[i]
            elif what == STORE:
                x[i] = 1.0
            elif what == ADD:
                x[i] += 1.0
            elif what == MULTIPLY:
                # The old value is used where that alone makes it a read.
                old = ti.atomic_mul(x[i], 0.5)
                loss[None] += 0.0 * old
            else:
                x[i] = x[i] * 0.5

    rng = random.Random(5)
    broke = kept = 0
    for _ in range(150):
        # Mostly accesses that can be legal, so that both outcomes are frequent.
        weights = rng.choice(((6, 1, 4, 0, 0), (3, 2, 4, 1, 1)))
        launches = [
            [Act(rng.choices(range(5), weights)[0], rng.randrange(N)) for _ in range(rng.randint(1, 3))]
            for _ in range(rng.randint(1, 4))
        ]
        history: list[Act] = []
        wrong: set[int] = set()
        first = 0
        while first < len(launches) and not wrong:
            history += launches[first]
            first += 1
            wrong = broken(history, has_gradient)
        tape = ti.ad.Tape(loss, validation=True)
        launched = 0
        try:
            with tape:
                for acts in launches:
                    launched += 1
                    if rng.random() < 0.3 and len(acts) == 1 and acts[0].what == STORE:
                        x[acts[0].element] = 2.0
                    else:
                        perform(np.array(acts, np.int32))
        except AccessRuleError:
            broke += 1
        else:
            kept += 1
        assert launched == first, launches
        assert {int(i) for v in tape.violations for (i,) in v.elements} == wrong, (launches, tape.violations)
    assert broke > 30 and kept > 30


def torn(iterations: list[list[Act]]) -> set[int]:
    """The elements that one iteration of a parallel loop changes and another one reads: iterations have no order."""
    found: set[int] = set()
    for element in range(N):
        logs = [
            [access for act in iteration if act.element == element for access in accesses(act)]
            for iteration in iterations
        ]
        readers = {iteration for iteration, log in enumerate(logs) if "read" in log}
        writers = {iteration for iteration, log in enumerate(logs) if any(access != "read" for access in log)}
        if readers and writers and len(readers | writers) > 1:
            found.add(element)
    return found


def test_random_iterations_of_parallel_loops() -> None:
    """Two loops a launch: what one loop wrote, the next may read."""
    x = ti.field(ti.f64, shape=N, needs_grad=True, name="x")
    loss = ti.field(ti.f64, shape=(), needs_grad=True, name="loss")

    @ti.func
    def act(what, i):
        if what == READ:
            loss[None] += x[i]
        elif what == STORE:
            x[i] = 1.0
        else:
            x[i] += 1.0

    @ti.kernel
    def perform(first: ti.types.ndarray(dtype=ti.i32, ndim=3), second: ti.types.ndarray(dtype=ti.i32, ndim=3)):
        for iteration in range(first.shape[0]):
            for k in range(first.shape[1]):
                act(first[iteration, k, 0], first[iteration, k, 1])
        for iteration in range(second.shape[0]):
            for k in range(second.shape[1]):
                act(second[iteration, k, 0], second[iteration, k, 1])

    rng = random.Random(8)
    broke = kept = 0
    for _ in range(100):
        loops = [
            [[Act(rng.choices((READ, STORE, ADD), (3, 1, 3))[0], rng.randrange(N)) for _ in range(2)] for _ in range(2)]
            for _ in range(2)
        ]
        history = [act for loop in loops for iteration in loop for act in iteration]
        wrong = broken(history, True) | torn(loops[0]) | torn(loops[1])
        with ti.ad.Tape(loss, validation="collect") as tape:
            perform(*[np.array(loop, np.int32) for loop in loops])
        assert {int(i) for v in tape.violations for (i,) in v.elements} == wrong, (loops, tape.violations)
        broke, kept = broke + bool(wrong), kept + (not wrong)
    assert broke > 20 and kept > 10
