"""Random programs mean the same after the passes that move and mark accesses, in whatever order the iterations run; and
what the marks promise holds when they do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.passes.running import shuffled
from tests.passes.witness import broken_promises
from tests.properties.compare import difference, run
from tests.properties.generate import Program, generate
from tinote.compiler.passes.loops import interchange as interchanging
from tinote.compiler.passes.loops import unroll_partially as unrolling
from tinote.compiler.passes.loops.if_convert import if_convert
from tinote.compiler.passes.loops.interchange import interchange
from tinote.compiler.passes.loops.mark_vector_loops import mark_vector_loops
from tinote.compiler.passes.loops.narrow_loops import narrow_loops
from tinote.compiler.passes.loops.scatter_to_gather import scatter_to_gather
from tinote.compiler.passes.loops.split_loops import split_loops
from tinote.compiler.passes.loops.unroll_partially import unroll_partially
from tinote.compiler.passes.lowering.infer_types import infer_types
from tinote.compiler.passes.lowering.lower_arrays import lower_arrays
from tinote.compiler.passes.lowering.offload import offload
from tinote.compiler.passes.lowering.promote_locals import promote_locals
from tinote.compiler.passes.lowering.scalarise import scalarise
from tinote.compiler.passes.simplification.hoist_invariants import hoist_invariants
from tinote.compiler.passes.simplification.solve_inductions import solve_inductions
from tinote.compiler.passes.updates import privatise as privatisation
from tinote.compiler.passes.updates.accumulate import accumulate
from tinote.compiler.passes.updates.demote_atomics import demote_atomics
from tinote.compiler.passes.updates.privatise import privatise
from tinote.ir.nodes import Atomic, For, Function, Task
from tinote.ir.parse import parse
from tinote.ir.primitives import Defaults
from tinote.ir.query import walk
from tinote.ir.verify import Form, verify

PROGRAMS = 60

Pass = Callable[[Function], Function]
STEPS: tuple[tuple[Pass, Form], ...] = (
    (promote_locals, Form.PROMOTED),
    (scalarise, Form.SCALAR),
    (hoist_invariants, Form.SCALAR),
    (narrow_loops, Form.SCALAR),
    (solve_inductions, Form.SCALAR),
    (split_loops, Form.SCALAR),
    (scatter_to_gather, Form.SCALAR),
    (accumulate, Form.SCALAR),
    (interchange, Form.SCALAR),
    (offload, Form.TASKS),
    (privatise, Form.TASKS),
    (demote_atomics, Form.TASKS),
    (lower_arrays, Form.TASKS),
    (unroll_partially, Form.TASKS),
    (mark_vector_loops, Form.TASKS),
    (if_convert, Form.TASKS),
)


def stages(fn: Function) -> Iterator[tuple[str, Form, Function]]:
    """The function after each pass that changed it."""
    fn = infer_types(fn, Defaults())
    for step, form in STEPS:
        new = step(fn)
        if new is not fn:
            fn = new
            yield step.__name__, form, fn


def whether_it_pays_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """The buffers of random programs are small and their loops short."""
    monkeypatch.setattr(privatisation, "_MIN_UPDATES_PER_ELEMENT", 0)
    monkeypatch.setattr(interchanging, "_MIN_PARALLEL", 1)
    monkeypatch.setattr(unrolling, "_MIN_ITERATIONS", 1)


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_a_random_program_means_the_same_after_every_pass(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whether_it_pays_or_not(monkeypatch)
    program = generate(seed, 4 + seed % 40)
    wanted = run(program, program.function)
    fn = program.function
    for name, form, fn in stages(program.function):
        verify(fn, form)
        for order in (None, shuffled):
            found = difference(program, wanted, run(program, fn, order))
            assert not found, f"{name}: {found} in\n{program}"
    assert broken_promises(fn, program.arguments, program.memory()) == [], str(program)


def test_the_random_programs_reach_what_they_test(monkeypatch: pytest.MonkeyPatch) -> None:
    whether_it_pays_or_not(monkeypatch)
    counts = {"accumulate": 0, "private": 0, "plain": 0, "vectorised": 0, "unroll_partially": 0}
    for seed in range(PROGRAMS):
        fn = generate(seed, 4 + seed % 40).function
        for name, _, new in stages(fn):
            fn = new
            if name in counts:
                counts[name] += 1
        for op in walk(fn.region):
            counts["private"] += len(op.privates) if isinstance(op, Task) else 0
            counts["plain"] += isinstance(op, Atomic) and op.plain
            counts["vectorised"] += isinstance(op, For | Task) and op.vectorize
    assert all(count > 8 for count in counts.values()), counts


WRONG = {
    "iterations [1, 2] of": "for vectorize %j: i32 in 0i32 .. 2i32:\n      store @y[3i32], %j",
    "iterations [1, 2, 3, 4, 5, 6, 7, 8] of": "atomic plain add @y[0i32], %i",
}


@pytest.mark.parametrize("message", WRONG)
def test_the_witness_sees_a_broken_promise(message: str) -> None:
    """The watch itself: wrong marks are found."""
    fn = parse(f"buffer @y: i32 field (8)\nfunc f():\n  task parallel %i: i32 in 0i32 .. 8i32:\n    {WRONG[message]}\n")
    program = Program(0, 0, fn, (), {}, frozenset(), True)
    found = broken_promises(fn, (), program.memory())
    assert found and all(text.startswith(message) for text in found)
