"""Induction variable elimination: replaces integers whose step per iteration is constant or linear by closed forms in
the loop's index.

    %q: i32 = for %j: i32 in 0i32 .. %n             for %j: i32 in 0i32 .. %n:
        carrying %p: i32 = %a:                        %t: i32 = mul %j, 3i32
      %v: f32 = load @x[%p]                           %p: i32 = add %a, %t
      store @y[%j], %v                                %v: f32 = load @x[%p]
      %r: i32 = add %p, 3i32                  ->      store @y[%j], %v
      yield %r                                      %m: i32 = max %n, 0i32
                                                    %u: i32 = mul %m, 3i32
                                                    %q: i32 = add %a, %u

Iterations then do not depend on each other: the access analysis sees affine indices, proves them in range or hoists
their checks, the loop can be vectorised, and a reverse sweep stores no indices. Integers wrap, and the closed form
wraps to the same number; where a step is itself such an integer, or the index, t (t - 1) / 2 is computed in u64, where
it does not overflow.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.primitives import Primitive
from tinote.ir.query import bound_in
from tinote.ir.rewrite import KEEP, Decision, Rewriter, Rewriting, keeping
from tinote.ir.types import Scalar, i32, i64, is_integer, u32, u64

#: Additions that may lead from a carried integer to its value in the next iteration. Chosen, not measured.
_MAX_ADDITIONS = 16


def solve_inductions(fn: ir.Function) -> ir.Function:
    """`fn` with induction variables in closed form."""
    return _Solver().run(fn)


class _Line:
    """A value as a linear function of the iteration t: the sum of `parts` (with their signs) plus t times the sum of
    `slopes`.
    """

    def __init__(self, parts: list[tuple[int, ir.Atom]], slopes: list[tuple[int, ir.Atom]]) -> None:
        self.parts = parts
        self.slopes = slopes


class _Solver(Rewriter):
    """Solves inner loops first, so that an outer loop sees their closed forms."""

    def on(self, op: ir.Op) -> Decision | Sequence[ir.Atom]:
        if not isinstance(op, ir.For) or not op.outs or op.index.type not in (i32, u32, i64):
            return KEEP
        if not any(_is_number(out) for out in op.outs):
            return KEEP
        return _Loop(self, op).solved()


def _is_number(v: ir.Atom) -> bool:
    return isinstance(v.type, Scalar) and is_integer(v.type)


class _Loop:
    def __init__(self, solver: _Solver, op: ir.For) -> None:
        self.solver = solver
        self.op = op
        self.bound = bound_in(op.body)
        self.made = {inner.outs[0]: inner for inner in op.body.body if isinstance(inner, ir.Prim)}
        #: the solved carried integers: the step of each in iteration t
        self.steps: dict[ir.Var, _Line] = {}

    def solved(self) -> Decision | Sequence[ir.Atom]:
        op = self.op
        carried = list(zip(op.carried, op.body.yields, strict=True))
        for even in (True, False):  # The first round may solve the step of a value of the second.
            for param, result in carried:
                if _is_number(param) and param not in self.steps:
                    step = self.step(param, result)
                    line = None if step is None else self.line(step, even)
                    if line is not None:
                        self.steps[param] = line
        if not self.steps:
            return KEEP
        return self.rewritten()

    def step(self, param: ir.Var, result: ir.Atom) -> list[tuple[int, ir.Atom]] | None:
        """The step of a carried integer per iteration, as a list of numbers with their signs."""
        found: list[tuple[int, ir.Atom]] = []
        waiting = [(1, result)]
        itself = 0
        for _ in range(_MAX_ADDITIONS):
            if not waiting:
                return found if itself == 1 else None
            sign, atom = waiting.pop()
            op = self.made.get(atom) if isinstance(atom, ir.Var) else None
            if atom is param:
                itself += sign
            elif op is not None and op.prim in (p.add, p.sub):
                waiting += [(sign if op.prim is p.add else -sign, op.args[1]), (sign, op.args[0])]
            else:
                found.append((sign, atom))
        return None

    def line(self, step: list[tuple[int, ir.Atom]], even: bool) -> _Line | None:
        """A step as a linear function of t; with `even`, only a constant one."""
        line = _Line([], [])
        for sign, atom in step:
            if isinstance(atom, ir.Lit) or atom not in self.bound:
                line.parts.append((sign, atom))
                continue
            if even:
                return None
            if atom is self.op.index:
                if self.op.index.type is i64:
                    return None
                # It starts at one bound and goes to the other.
                if self.op.reverse:
                    line.parts += [(sign, self.op.hi), (-sign, ir.Lit(1, self.op.hi.type))]  # type: ignore[arg-type]
                else:
                    line.parts.append((sign, self.op.lo))
                line.slopes.append((-sign if self.op.reverse else sign, ir.Lit(1, self.op.index.type)))  # type: ignore[arg-type]
            elif atom in self.steps and not self.steps[atom].slopes and self.op.index.type is not i64:
                line.parts.append((sign, self.op.initial[self.op.carried.index(atom)]))
                line.slopes += [(sign * s, part) for s, part in self.steps[atom].parts]
            else:
                return None
        return line

    # ---- the closed forms

    def rewritten(self) -> Sequence[ir.Atom]:
        op, solver = self.op, self.solver
        head = Rewriting()
        env: dict[ir.Var, ir.Atom] = {}
        kept = [k for k, param in enumerate(op.carried) if param not in self.steps]
        outs: dict[ir.Var, ir.Atom] = {}
        index_type = op.index.type
        assert isinstance(index_type, Scalar)
        end = op.hi if op.hi is op.lo else solver.apply(p.maximum, index_type, op, op.hi, op.lo)
        for param, out, start in zip(op.carried, op.outs, op.initial, strict=True):
            line = self.steps.get(param)
            if line is None:
                continue
            first, last = (op.index, op.lo) if not op.reverse else (op.hi, op.index)
            env[param] = self.value(start, line, first, last, head, less=1 if op.reverse else 0)
            outs[out] = self.value(start, line, end, op.lo, solver)
        inner = Rewriter(env).region(op.body)
        body = ir.Region(op.body.params, (*head.out, *inner.body), inner.yields)
        solver.emit(keeping(op.rebuilt(op.args, (body,)), kept))
        return [outs.get(out, out) for out in op.outs]

    def value(
        self, start: ir.Atom, line: _Line, to: ir.Atom, since: ir.Atom, into: Rewriting, less: int = 0
    ) -> ir.Atom:
        """`start` and the steps of the iterations from `since` to `to`, less by some."""
        t = start.type
        assert isinstance(t, Scalar)

        def apply(prim: Primitive, *args: ir.Atom, type: Scalar = t) -> ir.Var:
            return into.apply(prim, type, self.op, *args)

        def cast(atom: ir.Atom, type: Scalar) -> ir.Atom:
            return atom if atom.type is type else apply(p.cast, atom, type=type)

        def count(type: Scalar) -> ir.Atom:
            found = cast(to, type)
            for amount in (cast(since, type), ir.Lit(less, type)):
                found = found if amount == ir.Lit(0, type) else apply(p.sub, found, amount, type=type)
            return found

        def half_of_the_product(whole: ir.Atom) -> ir.Atom:
            before = apply(p.sub, whole, ir.Lit(1, u64), type=u64)
            return cast(apply(p.shr, apply(p.mul, whole, before, type=u64), ir.Lit(1, u64), type=u64), t)

        total = start
        for several, factor in ((line.parts, lambda: count(t)), (line.slopes, lambda: half_of_the_product(count(u64)))):
            times = factor() if several else None
            for sign, part in several:
                assert times is not None
                same = cast(part, t)
                added = times if same == ir.Lit(1, t) else apply(p.mul, times, same)
                total = apply(p.add if sign > 0 else p.sub, total, added)
        return total
