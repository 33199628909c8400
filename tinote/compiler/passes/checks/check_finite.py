"""Inserts checks that stop a launch where a NaN or infinity arises that reaches memory, a carried value or a branch's
result.

    %b: f32 = sqrt %a                         %b: f32 = sqrt %a
    %c: f32 = div 1.0f32, %b                  %c: f32 = div 1.0f32, %b
    atomic add @x.grad[%i], %c        ->      atomic add @x.grad[%i], %c
                                              if %c is not finite:
                                                check finite "1.0 / {} is {}, in iteration i = {}" …   for %c, and so on

The values that end in such a *sink* are followed back through the operations of its region and of those around it: an
operation is at fault when its result is not finite, its operands are finite, and its result reaches the sink. The
operand that a `select` does not choose is therefore not a fault, nor is an infinity that a minimum discards. In a
gradient only adjoints are sinks. Loops run in order, so that the first fault in program order is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tinote.autodiff.adjoints import adjoint_operations
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.build import Builder
from tinote.ir.messages import FaultKind, iteration_text
from tinote.ir.types import Scalar, u1

_INFIX = {p.add: "+", p.sub: "-", p.mul: "*", p.div: "/", p.mod: "%", p.floordiv: "//", p.power: "**"}

#: Values that a fault shows. Chosen, not measured.
_MAX_SHOWN = 6


def check_finite(fn: ir.Function) -> ir.Function:
    """`fn` (SCALAR form) with the checks, its parallel loops in order."""
    return fn.with_region(_Checker(fn).region(fn.region, (), ()))


class _Checker:
    def __init__(self, fn: ir.Function) -> None:
        self._adjoints = adjoint_operations(fn)
        self._b = Builder()
        self._values = {v for op in self._adjoints for v in op.outs}

    def region(self, region: ir.Region, before: tuple[ir.Op, ...], loops: tuple[ir.Var, ...]) -> ir.Region:
        """`region` with checks at its end. `before`: the operations ahead of it whose results are in scope; `loops`:
        the indices of the loops around it.
        """
        b = self._b
        sinks: dict[ir.Var, None] = {}
        with b.region() as opened:
            for k, op in enumerate(region.body):
                b.emit(self._inside(op, (*before, *region.body[:k]) if op.regions else (), loops))
                value = self._sent(op)
                if value is not None:
                    sinks[value] = None
                if isinstance(op, ir.Atomic) and value is not None:
                    self._check_sum(op, value, loops)
            sinks.update(dict.fromkeys(y for y in region.yields if type(y) is ir.Var and self._counts(y)))
            if sinks:
                self._follow_back(list(sinks), (*before, *region.body), loops)
        return ir.Region(region.params, tuple(opened.body), region.yields)

    def _inside(self, op: ir.Op, before: tuple[ir.Op, ...], loops: tuple[ir.Var, ...]) -> ir.Op:
        if not op.regions:
            return op
        inner = (*loops, op.index) if isinstance(op, ir.For) else loops
        new = op.rebuilt(op.args, tuple([self.region(r, before, inner) for r in op.regions]))
        if isinstance(new, ir.For):
            new.parallel = False
        return new

    # ---- sinks

    def _counts(self, v: ir.Var) -> bool:
        """Whether a value matters: in a gradient, if it is an adjoint."""
        return _is_float(v) and (not self._adjoints or v in self._values)

    def _sent(self, op: ir.Op) -> ir.Var | None:
        """The value that an operation sends to a sink."""
        if not isinstance(op, ir.Store | ir.Atomic | ir.Push) or (self._adjoints and op not in self._adjoints):
            return None
        value = op.args[-1]
        return value if type(value) is ir.Var and _is_float(value) else None

    def _check_sum(self, op: ir.Atomic, value: ir.Var, loops: tuple[ir.Var, ...]) -> None:
        """Finite numbers may add up to an infinity."""
        b = self._b
        b.loc, b.origin = op.loc, op.origin
        now = b.load(op.buffer, op.index)
        fine = b.prim(p.or_, self._finite(now), b.prim(p.logical_not, self._finite(value)))
        element, index = self._element(op.buffer, op.index)
        self._check(op, fine, f"{element} becomes {{}} when {{}} is put to it", (*index, now, value), loops)

    # ---- blame

    def _follow_back(self, sinks: list[ir.Var], scope: Sequence[ir.Op], loops: tuple[ir.Var, ...]) -> None:
        b = self._b
        culprits = _slice_of(sinks, scope)
        blamed: dict[ir.Var, ir.Var] = {v: b.prim(p.logical_not, self._finite(v)) for v in sinks}
        trouble = self._any(blamed.values())
        with b.region() as inside:
            for op in reversed(culprits):
                if isinstance(op, ir.Prim) and op.out in blamed:
                    self._pass_on(op, blamed)
            for op in culprits:
                for v in op.outs:
                    if v in blamed:
                        self._accuse(op, v, blamed[v], loops)
        b.if_(trouble, inside.close())

    def _pass_on(self, op: ir.Prim, blamed: dict[ir.Var, ir.Var]) -> None:
        """Propagate blame from an operation's result to its operands."""
        b, flag = self._b, blamed[op.out]
        for k, a in enumerate(op.args):
            if type(a) is not ir.Var or not _is_float(a):
                continue
            guilty = b.prim(p.and_, flag, b.prim(p.logical_not, self._finite(a)))
            if op.prim is p.select and k:
                chosen = op.args[0] if k == 1 else b.prim(p.logical_not, op.args[0])
                guilty = b.prim(p.and_, guilty, chosen)
            blamed[a] = b.prim(p.or_, blamed[a], guilty) if a in blamed else guilty

    def _accuse(self, op: ir.Op, v: ir.Var, flag: ir.Var, loops: tuple[ir.Var, ...]) -> None:
        """Emit the check that stops if the operation with result `v` is at fault, not its operands."""
        b = self._b
        b.loc, b.origin = op.loc, op.origin
        fine = b.prim(p.logical_not, flag)
        if isinstance(op, ir.Load):
            element, index = self._element(op.buffer, op.index)
            self._check(op, fine, f"{element} holds {{}}", (*index, v), loops)
        elif isinstance(op, ir.Prim):
            if op.prim is p.select or any(isinstance(a, ir.Lit) and not _is_finite(a) for a in op.args):
                return
            operands = [a for a in op.args if _is_float(a)]
            for a in operands:
                if type(a) is ir.Var:
                    fine = b.prim(p.or_, fine, b.prim(p.logical_not, self._finite(a)))
            short = len(op.args) < _MAX_SHOWN // 2 and all(isinstance(a.type, Scalar) for a in op.args)
            text = _written(op.prim, len(op.args)) if short else f"a result of {op.prim.name}"
            self._check(op, fine, f"{text} is {{}}", (*(op.args if short else ()), v), loops)
        else:
            what = "a value that was saved" if isinstance(op, ir.Pop) else "what this loop or branch computes"
            self._check(op, fine, f"{what} is {{}}", (v,), loops)

    def _check(
        self, op: ir.Op, fine: ir.Atom, text: str, shown: tuple[ir.Atom, ...], loops: tuple[ir.Var, ...]
    ) -> None:
        origin = op.origin
        slope = (
            self._adjoints and isinstance(op, ir.Prim) and isinstance(origin, ir.Prim) and op.prim is not origin.prim
        )
        if isinstance(origin, ir.Prim) and (slope or op in self._adjoints):
            text = f"in the derivative of {origin.prim.name}: {text}"
        indices = loops[: max(0, _MAX_SHOWN - len(shown))]
        text += iteration_text([v.name or f"index {k}" for k, v in enumerate(indices)])
        loc = op.loc if op.loc.line or origin is None else origin.loc
        self._b.emit(ir.Check(FaultKind.FINITE, (fine, *shown, *indices), text, 0, loc))

    # ---- small pieces

    def _element(self, buffer: ir.Buffer, index: tuple[ir.Atom, ...]) -> tuple[str, tuple[ir.Atom, ...]]:
        """An element as the user writes it, with placeholders, and its index as the user counts."""
        b, rank = self._b, buffer.rank
        shown = list(index)
        for axis, first in enumerate(buffer.offset):
            t = index[axis].type
            assert isinstance(t, Scalar)
            shown[axis] = b.prim(p.add, index[axis], ir.Lit(first, t)) if first else index[axis]
        holes = ["{:d}"] * len(index)
        name = f"{buffer.name}[{', '.join(holes[:rank]) or 'None'}]"
        return (f"{name}[{', '.join(holes[rank:])}]" if holes[rank:] else name), tuple(shown)

    def _finite(self, a: ir.Atom) -> ir.Var:
        b = self._b
        t = a.type
        assert isinstance(t, Scalar)
        return b.prim(p.le, b.prim(p.absolute, a), ir.Lit(_largest(t), t))

    def _any(self, flags: Iterable[ir.Var]) -> ir.Var:
        first, *others = flags
        for flag in others:
            first = self._b.prim(p.or_, first, flag)
        assert first.type is u1
        return first


def _slice_of(sinks: list[ir.Var], scope: Sequence[ir.Op]) -> list[ir.Op]:
    """The backward slice of the sinks in `scope`, in program order."""
    wanted = set(sinks)
    found: list[ir.Op] = []
    for op in reversed(scope):
        hit = [v for v in op.outs if v in wanted]
        if not hit:
            continue
        found.append(op)
        if isinstance(op, ir.Prim):
            wanted.update(a for a in op.args if type(a) is ir.Var and _is_float(a))
    return found[::-1]


def _is_float(a: ir.Atom) -> bool:
    return isinstance(a.type, Scalar) and a.type.kind == "f"


def _is_finite(a: ir.Lit) -> bool:
    return abs(a.value) < float("inf")


def _largest(t: Scalar) -> float:
    """The largest number of a float type."""
    digits, exponent = {16: (10, 15), 32: (23, 127), 64: (52, 1023)}[t.bits]
    return (2.0 - 2.0**-digits) * 2.0**exponent


def _written(prim: p.Primitive, count: int) -> str:
    """An operation with a placeholder for each operand."""
    sign = _INFIX.get(prim)
    return f"{{}} {sign} {{}}" if sign else f"{prim.name}({', '.join(['{}'] * count)})"
