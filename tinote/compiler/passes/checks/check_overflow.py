"""Reports integer overflow, in debug mode: a check after every operation on signed integers whose result may wrap.

    %c: i32 = add %a, %b                            %c: i32 = add %a, %b
                                                    %1: i64 = cast %a
                                                    %2: i64 = cast %b
                                              ->    %3: i64 = add %1, %2
                                                    %4: i64 = cast %c
                                                    %5: u1 = eq %3, %4
                                                    check overflow "{} + {} does not fit into i32" %5, %a, %b

It runs on the program as it was written, before any simplification. Narrow results are compared with those in i64;
i64 has its own conditions. An atomic `+=` is checked through the old value.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinote.ir import primitives as p
from tinote.ir.nodes import Atom, Atomic, Check, FaultKind, Function, Lit, Op, Prim, Var
from tinote.ir.overflow import may_overflow, overflow_text
from tinote.ir.primitives import Primitive
from tinote.ir.rewrite import DROP, KEEP, Decision, Rewriter
from tinote.ir.types import Scalar, f64, i64, u1


def check_overflow(fn: Function) -> Function:
    """`fn`, in the SCALAR form, with overflow checks."""
    return _Checker().run(fn)


class _Checker(Rewriter):
    def on(self, op: Op) -> Decision | Sequence[Atom]:
        if not may_overflow(op) or (isinstance(op, Prim) and all(isinstance(a, Lit) for a in op.args)):
            return KEEP
        if isinstance(op, Atomic):
            self.atomic(op)
            return DROP
        assert isinstance(op, Prim)
        self.emit(op)
        self.check(op, op.prim, op.args, op.out)
        return op.outs

    def atomic(self, op: Atomic) -> None:
        t = op.buffer.dtype
        old = op.outs[0] if op.outs else Var(t)
        self.emit(op if op.outs else op.rebuilt(op.args, (), (old,)))
        self.check(op, op.prim, (old, op.value), self.apply(op.prim, t, op, old, op.value))

    def check(self, op: Op, prim: Primitive, args: tuple[Atom, ...], result: Atom) -> None:
        t = result.type
        assert isinstance(t, Scalar)
        condition = self.fits(op, prim, t, args, result)
        self.emit(Check(FaultKind.OVERFLOW, (condition, *args), overflow_text(prim, t), 0, op.loc))

    def fits(self, op: Op, prim: Primitive, t: Scalar, args: tuple[Atom, ...], result: Atom) -> Atom:
        """Whether `result`, which is `prim` on `args`, equals the exact integer result."""
        lowest, zero = Lit(t.lowest, t), Lit(0, t)
        if prim in (p.neg, p.absolute):
            return self.truth(op, p.ne, args[0], lowest)
        a, b = args
        if prim in (p.floordiv, p.raw_div):
            return self.truth(op, p.or_, self.truth(op, p.ne, a, lowest), self.truth(op, p.ne, b, Lit(-1, t)))
        if prim is p.shl:
            return self.truth(op, p.eq, self.apply(p.shr, t, op, result, b), a)
        if prim is p.power:
            real = self.apply(p.power, f64, op, self.cast(op, a, f64), self.cast(op, b, f64))
            limit = Lit(2.0 ** (t.bits - 1), f64)
            above = self.truth(op, p.ge, real, self.apply(p.neg, f64, op, limit))
            within = self.truth(op, p.and_, above, self.truth(op, p.lt, real, limit))
            # Only the base itself and 1 may be close enough to the limit to be rounded to it.
            return self.truth(op, p.or_, within, self.truth(op, p.lt, b, Lit(2, t)))
        if t.bits < 64:
            exact = self.apply(prim, i64, op, self.cast(op, a, i64), self.cast(op, b, i64))
            return self.truth(op, p.eq, exact, self.cast(op, result, i64))
        if prim is p.mul:
            # Check by dividing back; zero and -1 (whose division wraps itself) are separate cases.
            back = self.truth(op, p.eq, self.apply(p.raw_div, t, op, result, self.divisor(op, a)), b)
            plain = self.truth(op, p.or_, self.truth(op, p.eq, a, zero), back)
            wraps = self.truth(op, p.and_, self.truth(op, p.eq, a, Lit(-1, t)), self.truth(op, p.eq, b, lowest))
            return self.truth(op, p.and_, plain, self.truth(op, p.logical_not, wraps))
        # A sum has overflowed when its sign is that of neither operand; a difference when its sign is not that of the
        # first operand, and the operands' signs differ.
        other = b if prim is p.sub else result
        first = self.apply(p.xor, t, op, a, other)
        second = self.apply(p.xor, t, op, a if prim is p.sub else b, result)
        return self.truth(op, p.ge, self.apply(p.and_, t, op, first, second), zero)

    def divisor(self, op: Op, a: Atom) -> Atom:
        """`a`, or 1 in place of 0."""
        assert isinstance(a.type, Scalar)
        zero = self.truth(op, p.eq, a, Lit(0, a.type))
        return self.apply(p.select, a.type, op, zero, Lit(1, a.type), a)

    def cast(self, op: Op, a: Atom, t: Scalar) -> Atom:
        return Lit(p.cast_number(t, a.value), t) if isinstance(a, Lit) else self.apply(p.cast, t, op, a)

    def truth(self, op: Op, prim: Primitive, *args: Atom) -> Var:
        return self.apply(prim, u1, op, *args)
