"""Random programs mean the same after every pass: the interpreter's memory, results and prints agree bit for bit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from tests.passes.dense import dense
from tests.properties.generate import generate
from tinote.compiler.passes.lowering.infer_types import infer_types
from tinote.compiler.passes.lowering.promote_locals import promote_locals
from tinote.compiler.passes.lowering.scalarise import scalarise
from tinote.compiler.passes.simplification.cse import cse
from tinote.compiler.passes.simplification.eliminate_dead import eliminate_dead
from tinote.compiler.passes.simplification.fold import fold
from tinote.compiler.passes.simplification.forward_stores import forward_stores
from tinote.compiler.passes.simplification.hoist_invariants import hoist_invariants
from tinote.compiler.passes.simplification.solve_inductions import solve_inductions
from tinote.errors import TinoteError
from tinote.ir.interpret import interpret
from tinote.ir.memory import DictMemory
from tinote.ir.nodes import Atom, Function, Get, Local, Print, Region, Var
from tinote.ir.primitives import Defaults
from tinote.ir.rewrite import Rewriter
from tinote.ir.text import show
from tinote.ir.types import Ref, f32, i32
from tinote.ir.verify import Form, verify

SIMPLIFY: tuple[Callable[[Function], Function], ...] = (
    fold,
    solve_inductions,
    cse,
    eliminate_dead,
    forward_stores,
    hoist_invariants,
)
ROUNDS = 10
PROGRAMS = 40


class Observer(Rewriter):
    """Prints at the end of each region what it computed and what its locals hold: no wrong value goes unseen."""

    def leave(self, region: Region) -> None:
        values: list[Atom] = []
        for op in list(self.out):
            for out in op.outs:
                if isinstance(op, Local):
                    assert isinstance(out.type, Ref)
                    values.append(Var(out.type.content))
                    self.emit(Get((out,), (values[-1],)))  # type: ignore[arg-type]
                else:
                    values.append(out)
        self.emit(Print(tuple([part for _ in values for part in (" ", None)]), tuple(values)))


def bits(value: Any) -> Any:
    """A value that compares equal only to the same bits (NaNs to each other, zeros by sign)."""
    if isinstance(value, tuple):
        return tuple([bits(v) for v in value])  # type: ignore[misc]
    if isinstance(value, float):
        return "nan" if math.isnan(value) else (value, math.copysign(1.0, value))
    return value


def flattened(value: Any) -> list[Any]:
    """Returned tensors become their components when they are taken apart."""
    return [b for v in value for b in flattened(v)] if isinstance(value, tuple) else [bits(value)]


def outcome(fn: Function, arguments: Sequence[float], memory: DictMemory) -> tuple[Any, ...]:
    """What a run leaves: memory, returned values, what was printed, and the fault that ended it."""
    printed: list[str] = []
    results: list[Any] = []
    fault = ""
    try:
        results = flattened(interpret(fn, arguments, memory, on_print=printed.append))
    except TinoteError as error:
        fault = f"{type(error).__name__} {error.message}"
    # What was never written is zero, so zeros do not count.
    cells = {
        (buffer.name, place): bits(value)
        for buffer, held in memory.cells.items()
        for place, value in held.items()
        if value != 0 or math.copysign(1.0, value) < 0
    }
    return cells, results, printed, fault


def stages(fn: Function) -> Iterator[tuple[str, Form, Function]]:
    """The function after each pass that changed it."""
    fn = infer_types(fn, Defaults(f32, i32))
    yield "infer_types", Form.TYPED, fn
    fn = promote_locals(fn)
    yield "promote_locals", Form.PROMOTED, fn
    fn = scalarise(fn)
    yield "scalarise", Form.SCALAR, fn
    for _ in range(ROUNDS):
        before = fn
        for run in SIMPLIFY:
            new = run(fn)
            if new is not fn:
                fn = new
                yield run.__name__, Form.SCALAR, fn
        if fn is before:
            return
    raise AssertionError(f"does not settle in {ROUNDS} rounds:\n{show(fn)}")


@pytest.mark.parametrize("observed", [False, True], ids=["as it is", "observed"])
@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_a_random_program_means_the_same_after_every_pass(seed: int, observed: bool) -> None:
    program = generate(seed, 4 + seed % 30)
    first = Observer().run(program.function) if observed else program.function
    verify(first, Form.FIRST)
    wanted = outcome(first, program.arguments, program.memory())
    for name, form, fn in stages(first):
        verify(fn, form)
        found = outcome(fn, program.arguments, program.memory())
        assert found == wanted, f"{name} changes the meaning of\n{program}\nnow\n{show(fn)}"


@pytest.mark.parametrize("seed", range(120))
def test_control_flow_and_memory_mean_the_same_after_every_pass(seed: int) -> None:
    first = dense(seed)
    verify(first, Form.TYPED)
    for n in (0, 2):
        wanted = outcome(first, (n,), DictMemory())
        for name, form, fn in stages(first):
            verify(fn, form)
            found = outcome(fn, (n,), DictMemory())
            assert found == wanted, f"{name} changes the meaning of\n{show(first)}\nnow\n{show(fn)}"
