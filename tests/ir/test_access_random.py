"""What the access analysis claims, held against what random programs do.

Each program prints, before every access, the indices of the loops around it and the elements that it touches; the
claims are then looked up in that record.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.properties.generate import Program, generate
from tinote.compiler.passes.checks.check_bounds import check_bounds
from tinote.compiler.passes.lowering.infer_types import infer_types
from tinote.compiler.passes.lowering.promote_locals import promote_locals
from tinote.compiler.passes.lowering.scalarise import scalarise
from tinote.compiler.passes.simplification.cse import cse
from tinote.compiler.passes.simplification.fold import fold
from tinote.compiler.passes.simplification.hoist_invariants import hoist_invariants
from tinote.ir.access import Access, Accesses
from tinote.ir.interpret import interpret
from tinote.ir.nodes import Atom, Atomic, For, Function, Load, Op, Print, Region, Store, Var
from tinote.ir.primitives import Defaults
from tinote.ir.ranges import Loop
from tinote.ir.rewrite import Rewriter
from tinote.ir.text import show
from tinote.ir.types import Scalar, f32, i32


class Visit(NamedTuple):
    """One execution of an access: which, when, in which iterations of the loops around it, and the element."""

    access: int
    iterations: tuple[int, ...]
    element: tuple[int, ...]


class Recorder(Rewriter):
    """Prints before each access; and before each operation the integers in scope whose form is to be tried."""

    def __init__(self, accesses: Accesses) -> None:
        super().__init__()
        self.accesses = accesses
        self.order = {access.op: k for k, access in enumerate(accesses.all())}
        self.scope: list[Var] = []
        self.marks: list[int] = []
        self.tried: list[tuple[Var, list[Var]]] = []

    def enter(self, region: Region) -> None:
        self.marks.append(len(self.scope))
        self.scope += region.params

    def leave(self, region: Region) -> None:
        del self.scope[self.marks.pop() :]

    def say(self, word: str, atoms: list[Atom]) -> None:
        parts: list[str | None] = [word]
        for _ in atoms:
            parts += [" ", None]
        self.emit(Print(tuple(parts), tuple(atoms)))

    def visit(self, op: Op) -> None:
        if isinstance(op, Load | Store | Atomic):
            access = self.accesses.of(op)
            iterations: list[Atom] = [loop.index for loop in access.loops if loop.index is not None]
            self.say(f"@access {self.order[op]} {len(iterations)}", [*iterations, *op.index])
        super().visit(op)
        for out in op.outs:
            self.scope.append(out)
            if isinstance(out.type, Scalar) and out.type.kind in "iu":
                terms = list(self.accesses.affine(out).terms)
                if all(v in self.scope for v in terms):
                    self.say(f"@value {len(self.tried)}", [out, *terms])
                    self.tried.append((out, terms))


def scalar(program: Program) -> Function:
    fn = scalarise(promote_locals(infer_types(program.function, Defaults(f32, i32))))
    for _ in range(3):
        fn = hoist_invariants(cse(fold(fn)))
    return fn


def numbered(loop: Loop) -> bool:
    """Whether every loop around and including this one has an index, so that the record tells iterations apart."""
    return all(isinstance(l.op, For) for l in loop.chain())  # noqa: E741


def check_pair(accesses: Accesses, a: Access, b: Access, first: list[Visit], second: list[Visit]) -> Iterator[str]:
    """The claims about a pair that the record refutes."""

    def meet(x: Visit, y: Visit) -> bool:
        return all(i == j for i, j in zip(x.element, y.element, strict=False))

    if not accesses.may_meet(a, b) and any(meet(x, y) for x in first for y in second):
        yield "may_meet"
    for depth, loop in enumerate(zip(a.loops, b.loops, strict=False)):
        if loop[0] is not loop[1] or not numbered(loop[0]):
            return
        around = loop[0]
        same_outer = [
            (x, y) for x in first for y in second if x.iterations[:depth] == y.iterations[:depth] and meet(x, y)
        ]
        backwards = isinstance(around.op, For) and around.op.reverse
        if not accesses.may_meet_within(a, b, around):
            if any(x.iterations[depth] == y.iterations[depth] for x, y in same_outer):
                yield f"may_meet_within {around.index!r}"
        if not accesses.may_meet_later(a, b, around):
            if any(
                (y.iterations[depth] > x.iterations[depth]) != backwards and x.iterations[depth] != y.iterations[depth]
                for x, y in same_outer
            ):
                yield f"may_meet_later {around.index!r}"


@pytest.mark.parametrize("seed", range(30))
def test_claims_hold(seed: int) -> None:
    program = generate(1000 + seed, 6 + seed % 20, maths=False)
    fn = scalar(program)
    accesses = Accesses(fn)
    recorder = Recorder(accesses)
    recorded = recorder.run(fn)
    lines: list[str] = []
    interpret(recorded, program.arguments, program.memory(), on_print=lines.append)
    visits: dict[int, list[Visit]] = {}
    for line in lines:
        word, *rest = line.split() or [""]
        if word == "@access":
            number, depth, *values = map(int, rest)
            visits.setdefault(number, []).append(Visit(number, tuple(values[:depth]), tuple(values[depth:])))
        elif word == "@value":
            number, value, *terms = map(int, rest)
            out, variables = recorder.tried[number]
            form = accesses.affine(out)
            said = form.const + sum(form.terms[v] * t for v, t in zip(variables, terms, strict=True))
            assert said == value, f"{out!r} is {value}, not {form}, with {terms}, in\n{show(fn)}"
            low, high = accesses.interval(out)
            assert low <= value <= high, f"{out!r} is {value}, not in {low}..{high}, in\n{show(fn)}"
    found = accesses.all()
    for number, mine in visits.items():
        access = found[number]
        for axis, form in enumerate(access.forms):
            assert form is not None
            at_least, below = accesses.in_range(access, axis)
            extent = program.memory().full_shape(access.buffer)[axis]
            for visit in mine:
                assert (not at_least or visit.element[axis] >= 0) and (not below or visit.element[axis] < extent)
        for other, theirs in visits.items():
            if other >= number and found[other].buffer is access.buffer:
                for a, b, first, second in ((access, found[other], mine, theirs), (found[other], access, theirs, mine)):
                    wrong = list(check_pair(accesses, a, b, first[:60], second[:60]))
                    assert not wrong, f"{wrong} of {a} and {b} in\n{show(fn)}"


@pytest.mark.parametrize("seed", range(20))
def test_checks_do_not_change_a_program_whose_indices_are_in_range(seed: int) -> None:
    program = generate(2000 + seed, 6 + seed % 20)
    fn = scalar(program)
    plain, checked = program.memory(), program.memory()
    assert interpret(fn, program.arguments, plain) is not None
    interpret(check_bounds(fn), program.arguments, checked)
    assert repr(plain.cells) == repr(checked.cells)
