"""Constant folding: operations on literals, algebraic identities, decided branches and loops.

    %a: i32 = add 2i32, 3i32
    %b: i32 = add %n, %a                            %c: i32 = add %n, 6i32
    %c: i32 = add %b, 1i32                    ->    store @x[%n], %c
    %t: u1 = lt %a, 9i32
    if %t:
      for %k: i32 in 0i32 .. 1i32:
        store @x[%n], %c

An `if` on a literal becomes its side; inside an `if` the condition is a literal; one that only chooses between two
values becomes `select`. A loop without iterations is removed, one of a single iteration becomes its body, and unchanged
carried values are no longer carried. Checks that hold are removed, known extents become literals. The algebra is in
`identities`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinote.compiler.passes.simplification.identities import Algebra
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.primitives import Primitive
from tinote.ir.query import trip_count
from tinote.ir.rewrite import DROP, KEEP, Decision, Rewriter, keeping
from tinote.ir.types import Scalar, Tensor, Type, i32


def fold(fn: ir.Function, fast_math: bool = False) -> ir.Function:
    """`fn` with constants folded. `fast_math` permits identities that may round differently (see `identities`)."""
    return _Folder(fast_math).run(fn)


class _Folder(Rewriter):
    def __init__(self, fast_math: bool) -> None:
        super().__init__()
        self.algebra = Algebra(fast_math, self.applied)
        self.near: ir.Op | None = None

    def applied(self, prim: Primitive, args: tuple[ir.Atom, ...], t: Type) -> ir.Var:
        """Emit an application before the operation that is being simplified."""
        assert self.near is not None
        out = ir.Var(t)
        op = ir.Prim(prim, args, (out,), self.near.loc, self.near.origin)
        self.algebra.definitions[out] = op
        self.emit(op)
        return out

    # control flow is simplified before it is walked

    def nest(self, op: ir.Op) -> None:
        if isinstance(op, ir.If):
            self.branch(op)
        elif isinstance(op, ir.For):
            self.loop(op)
        elif isinstance(op, ir.While):
            self.carrying_less(op, [self.get(a) for a in op.initial])
        else:
            super().nest(op)

    def inline(self, op: ir.Op, region: ir.Region) -> None:
        """Replace `op` by the operations of `region`."""
        for inner in region.body:
            self.visit(inner)
        for out, y in zip(op.outs, region.yields, strict=True):
            self.env[out] = self.get(y)

    def branch(self, op: ir.If) -> None:
        condition = self.get(op.condition)
        negated = self.algebra.made_by(condition, p.logical_not)
        opposite = self.get(negated[0]) if negated is not None else None
        if isinstance(opposite, ir.Lit):
            condition = ir.false if opposite.value else ir.true  # known here, not where the negation was computed
        if isinstance(condition, ir.Lit):
            self.inline(op, op.then if condition.value else op.orelse)
            return
        then = self.assuming(condition, True, op.then)
        orelse = self.assuming(condition, False, op.orelse)
        if not op.outs and not then.body and not orelse.body:
            return
        new: ir.Op = op
        if condition is not op.condition or then is not op.then or orelse is not op.orelse:
            new = op.rebuilt((condition,), (then, orelse))
        simple = not then.body and not orelse.body
        kept: list[int] = []
        for k, (out, a, b) in enumerate(zip(op.outs, then.yields, orelse.yields, strict=True)):
            if a == b:
                self.env[out] = a
            elif a == ir.true and b == ir.false:
                self.env[out] = condition
            elif simple and isinstance(out.type, Scalar | Tensor):
                self.emit_prim(ir.Prim(p.select, (condition, a, b), (out,), op.loc, op.origin))
            else:
                kept.append(k)
        if len(kept) < len(op.outs):
            if simple and not kept:
                return
            new = keeping(new, kept)
        self.out.append(new)

    def assuming(self, condition: ir.Var, value: bool, region: ir.Region) -> ir.Region:
        """`region` rewritten where `condition` is known to be `value`."""
        known = self.implied(condition, value)
        for v, truth in known.items():
            self.env[v] = ir.true if truth else ir.false
        region = self.region(region)
        for v in known:
            del self.env[v]
        return region

    def implied(self, condition: ir.Var, value: bool) -> dict[ir.Var, bool]:
        """The conditions implied when `condition` is `value`: both sides of an `and` that holds, and so on."""
        known: dict[ir.Var, bool] = {}
        waiting: list[tuple[ir.Atom, bool]] = [(condition, value)]
        while waiting:
            atom, truth = waiting.pop()
            if not isinstance(atom, ir.Var) or atom in self.env or atom in known:
                continue
            known[atom] = truth
            op = self.algebra.definitions.get(atom)
            if op is None:
                continue
            if op.prim is p.logical_not:
                waiting.append((op.args[0], not truth))
            elif op.prim is (p.and_ if truth else p.or_):
                waiting += [(a, truth) for a in op.args]
        return known

    def loop(self, op: ir.For) -> None:
        lo, hi = self.get(op.lo), self.get(op.hi)
        initial = [self.get(a) for a in op.initial]
        count = 0 if lo is hi else trip_count(lo, hi)
        if count == 0:
            self.env.update(zip(op.outs, initial, strict=True))
            return
        if count == 1:
            self.env.update(zip(op.body.params, (lo, *initial), strict=True))
            self.inline(op, op.body)
            return
        self.carrying_less(op, initial)

    def carrying_less(self, op: ir.For | ir.While, initial: Sequence[ir.Atom]) -> None:
        """Rewrite a loop without the carried values that never change: their initial values replace these."""
        lead = len(op.body.params) - len(op.outs)
        groups = [op.outs, *[r.params[lead:] for r in op.regions]]
        kept: list[int] = []
        for k, (start, param, y) in enumerate(zip(initial, groups[-1], op.body.yields, strict=True)):
            if y is param or self.get(y) == start:
                self.env.update(dict.fromkeys([group[k] for group in groups], start))
            else:
                kept.append(k)
        super().nest(op if len(kept) == len(op.outs) else keeping(op, kept))

    # everything else

    def on(self, op: ir.Op) -> Decision | Sequence[ir.Atom]:
        if isinstance(op, ir.Prim):
            return self.prim(op)
        if isinstance(op, ir.While):
            if not op.condition.body and op.condition.yields[0] == ir.false:
                return op.initial
        elif isinstance(op, ir.Check):
            if op.args[0] == ir.true:
                return DROP
        elif isinstance(op, ir.Extent):
            known = op.buffer.shape[op.axis]
            if known is not None:
                return (ir.Lit(known, i32),)
        return KEEP

    def emit_prim(self, op: ir.Prim) -> None:
        """Emit a new application, simplified."""
        decision = self.prim(op)
        if decision is KEEP:
            self.out.append(op)
        elif not isinstance(decision, Decision) and decision[0] is not op.out:
            self.env[op.out] = decision[0]

    def prim(self, op: ir.Prim) -> Decision | Sequence[ir.Atom]:
        algebra, t = self.algebra, op.outs[0].type
        self.near = op
        prim, args = op.prim, op.args
        while True:
            result = algebra.simplify(prim, args, t)
            if result is None:
                break
            if isinstance(result, tuple):
                prim, args = result
            elif result.type == t:
                return (result,)
            else:
                break  # A scalar that is broadcast over a tensor.
        if prim is op.prim and args is op.args:
            algebra.definitions[op.outs[0]] = op
            return KEEP
        new = ir.Prim(prim, args, op.outs, op.loc, op.origin)
        algebra.definitions[op.outs[0]] = new
        self.emit(new)
        return op.outs
