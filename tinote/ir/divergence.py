"""Divergence: which values differ between the iterations of a parallel loop that run at once, and how.

The iterations stand side by side in lanes. A value has a *step*: 0 when it is the same for all lanes (uniform), k when
it grows by k from lane to lane (linear), None when it is anyhow (varying). A step may be known only
while the code runs: a number times uniform values (`Stride`). The loop's index has the step 1.

    for parallel %i: i32 in 0i32 .. %n:             step of %i: 1
      %a: i64 = cast %i                                      1
      %b: i64 = mul %a, 4i64                                 4
      %c: i64 = mul %b, %e                                   4 times %e, where %e is the same for all iterations
      %v: f32 = load @x.flat[%b]                             None
      %w: f32 = mul %a, 2.0f32                               0, where %a is the same for all iterations

A linear value is exact as its first lane's number and the step as long as it does not wrap between two lanes. It is in
its own type; an offset that was widened from a narrower type is so where the access is in range, which is where it
counts (`step` serves accesses; a value that is needed for other purposes is computed lane by lane).

A stack is as what is pushed on it. Control flow diverges where a condition or a trip count is not uniform: what a loop
carries is then varying, because lanes leave it at different times.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.types import Scalar, i32, i64


class Stride(NamedTuple):
    """A step that is known while the code runs only: `factor` times all of `by`, which are the same for all lanes."""

    factor: int
    by: tuple[ir.Var, ...]


Step = int | Stride | None


class Divergence:
    """The steps of all values in a loop. `definitions`: of the variables of the function."""

    def __init__(self, loop: ir.For | ir.Task, definitions: Mapping[ir.Var, ir.Op] | None = None) -> None:
        self.index = loop.regions[0].params[0]
        self._definitions = definitions or {}
        self.steps: dict[ir.Var, Step] = {self.index: 1}
        #: loops in which lanes take part a different number of times
        self.divergent: set[ir.Op] = set()
        self._changed = True
        while self._changed:
            self._changed = False
            self._region(loop.regions[0])

    def step(self, atom: ir.Atom) -> Step:
        """How an atom grows from lane to lane."""
        return self.steps.get(atom, 0) if type(atom) is ir.Var else 0

    def uniform(self, *atoms: ir.Atom) -> bool:
        """Whether all of these are the same for all lanes."""
        return all(self.step(a) == 0 for a in atoms)

    def lies_apart(self, offset: ir.Atom, size: int) -> bool:
        """Whether no two lanes have the same element of that many bytes."""
        step = self.step(offset)
        if isinstance(step, Stride):
            # An extent is positive where there is an element.
            return abs(step.factor) >= size and all(self._is_extent(v) for v in step.by)
        return step is not None and abs(step) >= size

    def _is_extent(self, v: ir.Atom) -> bool:
        op = self._definitions.get(v)  # type: ignore[arg-type]
        if isinstance(op, ir.Prim) and op.prim is p.cast:
            return self._is_extent(op.args[0])
        return isinstance(op, ir.Extent)

    # analysis: steps only ever become less certain, until nothing changes

    def _set(self, v: ir.Var, step: Step) -> None:
        known = v in self.steps
        if not known or (self.steps[v] is not None and self.steps[v] != step):
            self.steps[v] = None if known else step
            # What is uniform from the start needs no second look.
            self._changed = self._changed or known or step != 0

    def _region(self, region: ir.Region) -> None:
        for op in region.body:
            if isinstance(op, ir.For):
                self._for(op)
            elif isinstance(op, ir.While):
                self._while(op)
            elif isinstance(op, ir.If):
                self._if(op)
            elif isinstance(op, ir.Prim):
                self._set(op.outs[0], self._prim(op))
            elif isinstance(op, ir.Local | ir.Atomic):
                # Each iteration has its own local memory, and finds what the one before left.
                for out in op.outs:
                    self._set(out, None)
            elif isinstance(op, ir.NewStack):
                self.steps.setdefault(op.out, 0)
            elif isinstance(op, ir.Push):
                self._set(op.args[0], 0 if self.uniform(op.args[1]) else None)  # type: ignore[arg-type]
            elif isinstance(op, ir.Pop):
                self._set(op.out, self.step(op.args[0]))
            else:
                for out in op.outs:
                    self._set(out, 0 if self.uniform(*op.args) else None)

    def _for(self, op: ir.For) -> None:
        lo, hi = self.step(op.lo), self.step(op.hi)
        self._set(op.index, lo)
        if lo is None or lo != hi:
            self.divergent.add(op)
        self._carried(op, op.initial, op.body.yields, op.carried)
        self._region(op.body)
        self._carried(op, op.initial, op.body.yields, op.carried)
        for v, out in zip(op.carried, op.outs, strict=True):
            self._set(out, self.steps[v])

    def _while(self, op: ir.While) -> None:
        for region in op.regions:
            self._carried(op, op.initial, op.body.yields, region.params)
        self._region(op.condition)
        if not self.uniform(*op.condition.yields):
            self.divergent.add(op)
        self._region(op.body)
        for region in op.regions:
            self._carried(op, op.initial, op.body.yields, region.params)
        for v, out in zip(op.body.params, op.outs, strict=True):
            self._set(out, self.steps[v])

    def _carried(
        self, op: ir.Op, initial: tuple[ir.Atom, ...], yields: tuple[ir.Atom, ...], carried: tuple[ir.Var, ...]
    ) -> None:
        for a, y, v in zip(initial, yields, carried, strict=True):
            self._set(v, 0 if op not in self.divergent and self.uniform(a, y) else None)

    def _if(self, op: ir.If) -> None:
        for region in op.regions:
            self._region(region)
        for a, b, out in zip(op.then.yields, op.orelse.yields, op.outs, strict=True):
            self._set(out, 0 if self.uniform(op.condition, a, b) else None)

    def _prim(self, op: ir.Prim) -> Step:
        steps = [self.step(a) for a in op.args]
        if not any(steps) and None not in steps:
            return 0
        t = op.outs[0].type
        if None in steps or not isinstance(t, Scalar) or t.kind not in "iu":
            return None
        prim, (first, *others) = op.prim, [step for step in steps if step is not None]
        if prim is p.add:
            return _sum(first, others[0])
        if prim is p.sub:
            return _sum(first, _times(others[0], -1))
        if prim is p.mul:
            for factor, step in zip(reversed(op.args), (first, *others), strict=True):
                if isinstance(factor, ir.Lit):
                    return _times(step, int(factor.value))
                if t is i64 and self.step(factor) == 0:
                    return Stride(step, (factor,)) if isinstance(step, int) else Stride(step.factor, (*step.by, factor))
        if prim is p.shl and isinstance(op.args[1], ir.Lit) and 0 <= op.args[1].value < t.bits:
            return _times(first, 1 << int(op.args[1].value))
        if prim is p.cast and t is i64 and (op.args[0].type is i32 or op.args[0] is self.index):
            return first
        return None


def _sum(a: int | Stride, b: int | Stride) -> Step:
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if a == 0 or b == 0:
        return a or b
    same = isinstance(a, Stride) and isinstance(b, Stride) and a.by == b.by
    return _times(Stride(a.factor + b.factor, a.by), 1) if same else None  # type: ignore[union-attr]


def _times(step: int | Stride, factor: int) -> int | Stride:
    if isinstance(step, int):
        return step * factor
    return Stride(step.factor * factor, step.by) if step.factor * factor else 0
