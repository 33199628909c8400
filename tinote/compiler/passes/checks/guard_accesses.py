"""Guards every access that is not proved in range: outside, reads give 0 and writes are dropped, and both are counted.

    for parallel %i: i32 in 0i32 .. 64i32:          for parallel %i: i32 in 0i32 .. 64i32:
      %j: i32 = add %i, 1i32                          %j: i32 = add %i, 1i32
      %a: f32 = load @x[%j]                   ->      %1: u1 = lt %j, 64i32
                                                      %a: f32 = if %1:
                                                        %2: f32 = load @x[%j]
                                                        yield %2
                                                      else:
                                                        yield 0.0f32
                                                      if %1:
                                                      else:
                                                        atomic add @outside[], 1i32

It is what the program means with `ti.init(bounds_check="ignore")`, so it runs before anything is differentiated: the
derivative of what is read outside is 0. At the end of a launch a record says how often that happened at each line.
Boundary iterations of parallel loops are separated later (`split_loops`); the others have no guards.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinote.compiler.passes.checks.check_bounds import AccessRewriter
from tinote.config import OUT_OF_BOUNDS
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.affine import constant
from tinote.ir.build import Builder
from tinote.ir.rewrite import DROP, KEEP, Decision, with_body
from tinote.ir.types import Ref, Scalar, Tensor, Type, i32, u1
from tinote.source import Span

_ZERO, _ONE = ir.Lit(0, i32), ir.Lit(1, i32)


def guard_accesses(fn: ir.Function) -> ir.Function:
    """`fn`, before it is lowered, with guards."""
    guard = _Guard(fn)
    found = guard.run(fn)
    return found if found is fn else guard.with_records(found)


class _Guard(AccessRewriter):
    def __init__(self, fn: ir.Function) -> None:
        super().__init__(fn)
        #: how often each place of the program was out of bounds: its file, its line, and what is accessed there
        self.counters: dict[tuple[str, int, str], tuple[ir.Buffer, Span]] = {}
        #: the conditions in the open regions, by their counters, each with where it is asked
        self.open: list[dict[ir.Buffer, dict[tuple[Span, ir.Atom], ir.Op]]] = []
        #: the conditions that are made in the open regions, by the indices, and what they are compared with
        self.made: dict[object, ir.Atom] = {}
        self._made_around: list[dict[object, ir.Atom]] = []

    def enter(self, region: ir.Region) -> None:
        super().enter(region)
        self.open.append({})
        self._made_around.append(dict(self.made))

    def leave(self, region: ir.Region) -> None:
        """Count what was outside, in one place for all of a region: most often nothing was."""
        super().leave(region)
        self.made = self._made_around.pop()
        for counter, guards in self.open.pop().items():
            near = next(iter(guards.values()))
            inside: ir.Atom = ir.true
            b = Builder(loc=near.loc)
            with b.region() as opened:
                total: ir.Atom = _ZERO
                for _, condition in guards:
                    inside = condition if inside == ir.true else self.apply(p.and_, u1, near, inside, condition)
                    one = b.prim(p.select, condition, _ZERO, _ONE)
                    total = one if total == _ZERO else b.prim(p.add, total, one)
                b.atomic(p.add, counter, (), total)
            self.emit(ir.If(inside, ir.Region((), ()), opened.close(), (), near.loc, near.origin))

    def on(self, op: ir.Op) -> Decision | Sequence[ir.Atom]:
        if isinstance(op, ir.Load | ir.Store | ir.Atomic):
            return self.access(op)
        if isinstance(op, ir.Prim) and op.prim in (p.extract, p.insert):
            tensor = op.args[0].type
            assert isinstance(tensor, Tensor)
            name = op.args[0].name if isinstance(op.args[0], ir.Var) else ""
            index = op.args[1 : 1 + len(tensor.shape)]
            return self.guarded(op, self.inside(op, index, tensor.shape), name or "local array")
        if isinstance(op, ir.Get | ir.Set):
            assert isinstance(op.args[0], ir.Var) and isinstance(op.args[0].type, Ref)
            held = op.args[0].type.content
            if not isinstance(held, Tensor):
                return KEEP
            index = op.args[1 : 1 + len(held.shape)] if isinstance(op, ir.Get) else op.args[1:-1]
            return self.guarded(op, self.inside(op, index, held.shape), op.args[0].name or "local array")
        return KEEP

    def access(self, op: ir.Load | ir.Store | ir.Atomic) -> Decision:
        access = self.accesses.of(op)
        conditions: list[ir.Atom] = []
        for axis, index in enumerate(op.index):
            sides = self.accesses.in_range(access, axis)
            if sides != (True, True):
                conditions.append(self.condition(op, index, sides, self.extent(op, op.buffer, axis, index)))
        sparsity = op.buffer.sparsity
        hidden = sparsity is not None and sparsity.is_activity(op.buffer)
        return self.guarded(op, conditions, "" if hidden else op.buffer.name)

    def inside(self, op: ir.Op, index: Sequence[ir.Atom], shape: Sequence[int]) -> list[ir.Atom]:
        """The conditions under which a component of a local value is there."""
        found: list[ir.Atom] = []
        for one, extent in zip(index, shape, strict=False):
            if isinstance(one, ir.Lit) and 0 <= one.value < extent:
                continue
            assert isinstance(one.type, Scalar)
            known = self.accesses.known_before(op)
            sides = self.accesses.between(self.accesses.affine(one), constant(extent), known)
            if sides != (True, True):
                found.append(self.condition(op, one, sides, ir.Lit(extent, one.type)))
        return found

    def condition(self, op: ir.Op, index: ir.Atom, sides: tuple[bool, bool], extent: ir.Atom) -> ir.Atom:
        """The condition that an index is in range, made once in a region."""
        key = index, sides, extent
        if key not in self.made:
            self.made[key] = self.in_range(op, *key)
        return self.made[key]

    def guarded(self, op: ir.Op, conditions: Sequence[ir.Atom], name: str) -> Decision:
        if not conditions:
            return KEEP
        condition = conditions[0]
        for other in conditions[1:]:
            both = condition, other
            if both not in self.made:
                self.made[both] = self.apply(p.and_, u1, op, *both)
            condition = self.made[both]
        inner = tuple([ir.Var(out.type, out.name) for out in op.outs])
        then = ir.Region((), (op.rebuilt(op.args, op.regions, inner) if inner else op,), inner)
        b = Builder(loc=op.loc)
        with b.region() as outside:
            if isinstance(op, ir.Prim) and op.prim is p.insert:
                instead = [op.args[0]]
            else:
                instead = [_zero(b, out.type) for out in op.outs]
        self.emit(ir.If(condition, then, outside.close(*instead), op.outs, op.loc, op.origin))
        if name:  # what is active is written along with a field, and not counted
            self.open[-1].setdefault(self.counter(op.loc, name), {}).setdefault((op.loc, condition), op)
        return DROP

    def counter(self, loc: Span, name: str) -> ir.Buffer:
        key = loc.file, loc.line, name
        if key not in self.counters:
            self.counters[key] = ir.Buffer("outside", i32, (), (), ir.BufferKind.TEMPORARY), loc
        return self.counters[key][0]

    def with_records(self, fn: ir.Function) -> ir.Function:
        """`fn` with what says at its end how often each place was out of bounds."""
        b = Builder()
        with b.region() as opened:
            for (_, _, name), (counter, loc) in self.counters.items():
                b.loc = loc
                count = b.load(counter, ())
                with b.region() as inside:
                    printed = ir.Print((f"'{name}': ", None), (count,), loc)
                    printed.about = OUT_OF_BOUNDS
                    b.emit(printed)
                b.if_(b.prim(p.ne, count, _ZERO), inside.close())
        return with_body(fn, (*fn.region.body, *opened.body))


def _zero(b: Builder, t: Type) -> ir.Atom:
    if isinstance(t, Tensor):
        return b.pack([_zero(b, t.dtype)] * t.count, t)
    assert isinstance(t, Scalar)
    return ir.Lit(0.0 if t.kind == "f" else 0, t)
