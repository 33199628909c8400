"""Takes a loop over the cells of a block apart where its body goes to neighbours: into a nest with a loop for each
dimension.

    for %c: i32 in 0i32 .. 128i32:                  for %i: i32 in 0i32 .. 8i32:
      %i: i32 = shr %c, 4i32                          for %j: i32 in 0i32 .. 16i32:
      %j: i32 = and %c, 15i32                           %a: i32 = mul %i, 16i32
      … x[%b, %c], y[f(%i), g(%j)] …        ->          %c: i32 = add %a, %j
                                                        … x[%b, %c], y[f(%i), g(%j)] …

What depends on an outer dimension alone, such as the block of `x[i + 1, j]`, is then computed once a row, and the rows
of other memory are rows of the loop, too. A loop whose body stays in its cell is the better one as it is: it is longer.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinote.ir import primitives as p
from tinote.ir.nodes import For, Function, Lit, MemoryOp, Op, Prim, Region, Var
from tinote.ir.query import walk
from tinote.ir.rewrite import Rewriter
from tinote.ir.types import i32

#: Shorter rows are no work for vector lanes.
_SHORTEST_ROW = 8


def unflatten(fn: Function) -> Function:
    """`fn` with nests in the place of loops over cells."""
    return _Unflattener().run(fn)


class _Unflattener(Rewriter):
    def nest(self, op: Op) -> None:
        if isinstance(op, For) and not op.parallel and not op.outs:
            digits = _digits(op)
            if digits and digits[0][0] >= _SHORTEST_ROW and _leaves_its_cell(op.body, [v for _, v in digits]):
                op = self.nested(op, digits)
        super().nest(op)

    def nested(self, op: For, digits: Sequence[tuple[int, Var]]) -> For:
        """The nest; `digits`: the extents, innermost first, and what the body calls each digit."""
        indices = [Var(i32, digit.name) for _, digit in digits]
        self.env.update(zip([digit for _, digit in digits], indices, strict=True))
        joined: list[Op] = []
        whole = indices[-1]
        for (extent, _), index in reversed(list(zip(digits[:-1], indices[:-1], strict=True))):
            row, cell = Var(i32), op.index if index is indices[0] else Var(i32)
            joined.append(Prim(p.mul, (whole, Lit(extent, i32)), (row,), op.loc, op.origin))
            joined.append(Prim(p.add, (row, index), (cell,), op.loc, op.origin))
            whole = cell
        made = {v for _, v in digits}
        body: tuple[Op, ...] = (*joined, *[inner for inner in op.body.body if made.isdisjoint(inner.outs)])
        for (extent, _), index in zip(digits, indices, strict=True):
            region = Region((index,), body)
            nest = For(Lit(0, i32), Lit(extent, i32), (), region, (), op.loc, reverse=op.reverse, origin=op.origin)
            body = (nest,)
        return nest  # pyright: ignore[reportPossiblyUnboundVariable]


def _digits(op: For) -> list[tuple[int, Var]]:
    """The digits that the body takes its index apart into, innermost first, with their extents; [] if it does not."""
    if op.lo != Lit(0, i32) or not isinstance(op.hi, Lit):
        return []
    count = int(op.hi.value)
    quotients: dict[Var, int] = {op.index: 1}
    remainders: dict[int, tuple[int, Var]] = {}
    for inner in op.body.body:
        if not isinstance(inner, Prim) or len(inner.args) != 2 or not isinstance(by := inner.args[1], Lit):
            continue
        a, n = inner.args[0], int(by.value)
        if a is op.index and inner.prim in (p.shr, p.floordiv) and n > 0:
            quotients[inner.out] = 1 << n if inner.prim is p.shr else n
        elif (
            isinstance(a, Var) and a in quotients and (inner.prim is p.mod or (inner.prim is p.and_ and not n & n + 1))
        ):
            remainders[quotients[a]] = (n if inner.prim is p.mod else n + 1), inner.out
    found: list[tuple[int, Var]] = []
    divisor = 1
    while divisor in remainders:
        found.append(remainders[divisor])
        divisor *= found[-1][0]
    last = next((v for v, d in quotients.items() if d == divisor), None)
    if not found or last is None or count % divisor or count == divisor:
        return []
    return [*found, (count // divisor, last)]


def _leaves_its_cell(body: Region, digits: Sequence[Var]) -> bool:
    """Whether an index of memory depends on the digits."""
    dependent = set(digits)
    for op in walk(body):
        if not dependent.isdisjoint(op.index if isinstance(op, MemoryOp) else op.args):
            if isinstance(op, MemoryOp):
                return True
            dependent.update(op.outs)
    return False
