"""Making a failing program smaller, so that it can be read: operations go as long as it still fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.properties.writer import Program
from tinote.errors import TinoteError
from tinote.ir.forms import InvalidIR
from tinote.ir.interpret import StepLimitError
from tinote.ir.nodes import For, Function, If, Lit, Op, Region
from tinote.ir.query import walk
from tinote.ir.rewrite import Rewriter
from tinote.ir.types import Scalar
from tinote.ir.verify import verify

__all__ = ["shrunk"]

Cut = Callable[["_Cutter", Op], None]
Problem = Callable[[Program], str]


class _Cutter(Rewriter):
    """Applies `cut` to the operations with these numbers, in the order in which they stand."""

    def __init__(self, numbers: range, cut: Cut) -> None:
        super().__init__()
        self.numbers = numbers
        self.cut = cut
        self.count = 0

    def visit(self, op: Op) -> None:
        self.count += 1
        if self.count - 1 in self.numbers:
            self.cut(self, op)
        else:
            super().visit(op)

    def inline(self, op: Op, region: Region) -> None:
        for inner in region.body:
            super().visit(inner)
        for out, y in zip(op.outs, region.yields, strict=True):
            self.env[out] = self.get(y)


def _literal(value: int) -> Cut:
    """The operation goes; what it bound becomes a literal."""

    def cut(cutter: _Cutter, op: Op) -> None:
        for out in op.outs:
            if isinstance(out.type, Scalar):
                number = float(value) if out.type.kind == "f" else value
                cutter.env[out] = Lit(number, out.type)

    return cut


def _operand(k: int) -> Cut:
    """What the operation bound becomes one of its operands."""

    def cut(cutter: _Cutter, op: Op) -> None:
        if len(op.outs) == 1 and k < len(op.args) and op.args[k].type == op.out.type:
            cutter.env[op.out] = cutter.get(op.args[k])
        else:
            super(_Cutter, cutter).visit(op)

    return cut


def _side(k: int) -> Cut:
    """An `if` becomes one of its sides, a loop its first iteration."""

    def cut(cutter: _Cutter, op: Op) -> None:
        if isinstance(op, If):
            cutter.inline(op, op.regions[k])
        elif isinstance(op, For) and op.lo.type == op.index.type:
            for v, a in zip(op.body.params, (op.lo, *op.initial), strict=True):
                cutter.env[v] = cutter.get(a)
            cutter.inline(op, op.body)
        else:
            super(_Cutter, cutter).visit(op)

    return cut


_SINGLE = (_literal(1), _operand(0), _operand(1), _side(0), _side(1))


def shrunk(program: Program, problem: Problem) -> Program:
    """The smallest program found that has a problem as `program` has one.

    A problem is what `problem` says, or an exception that it raises; then all smaller programs raise one of its class.
    """
    kind = _kind(program, problem)
    assert kind is not None
    smaller = True
    while smaller:
        smaller = False
        for candidate in _candidates(program.function):
            made = program._replace(function=candidate)
            if _valid(made) and _kind(made, problem) is kind:
                program, smaller = made, True
                break
    return program


def _candidates(fn: Function) -> Iterator[Function]:
    """Programs with something less, those with much less first."""
    count = sum(1 for _ in walk(fn.region))
    if fn.region.yields:
        yield Function(fn.name, Region(fn.region.params, fn.region.body), fn.loc)
    size = count
    while size:
        for start in range(0, count, size):
            yield _cut(fn, range(start, start + size), _literal(0))
        size //= 2
    for cut in _SINGLE:
        for at in range(count):
            candidate = _cut(fn, range(at, at + 1), cut)
            if candidate is not fn:
                yield candidate


def _cut(fn: Function, numbers: range, cut: Cut) -> Function:
    return fn.with_region(_Cutter(numbers, cut).region(fn.region))


def _valid(program: Program) -> bool:
    try:
        verify(program.function)
    except (InvalidIR, TypeError):
        return False
    return True


def _kind(program: Program, problem: Problem) -> type | None:
    """What class of problem a program has: `str`, an exception's, or None."""
    try:
        return str if problem(program) else None
    except (TinoteError, StepLimitError):
        return None  # an index out of range, say: no longer a program that keeps the promises
    except Exception as error:
        return type(error)
