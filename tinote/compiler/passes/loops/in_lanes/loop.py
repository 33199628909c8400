"""State of a loop that is being vectorised: the lanes of its values, and its regions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tinote.compiler.passes.analyses.choose_lanes import Columns, LanesPlan
from tinote.compiler.passes.analyses.choose_tiles import RowTile
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.divergence import Stride
from tinote.ir.lanes import Broadcast, Ramp, Reduce
from tinote.ir.primitives import Primitive
from tinote.ir.query import uses
from tinote.ir.types import Lanes, Scalar, Type, i64, u1


class LoopInLanes:
    """A loop that is being vectorised. `wide`: the vector of each varying value; a linear value keeps its variable as
    the scalar of the first lane.
    """

    def __init__(
        self,
        loop: ir.For | ir.Task,
        plan: LanesPlan,
        columns: dict[ir.Buffer, Columns],
        visit: Callable[[LoopInLanes, ir.Op], None],
    ) -> None:
        self.loop = loop
        #: vectorises one operation
        self.visit = visit
        self.divergence = plan.divergence
        self.lanes = plan.lanes
        self.used = uses(loop.regions[0])
        self.tiles = plan.tiles
        self.columns = columns
        #: the variable of each tile, and the operands that locate its rows
        self.loaded: dict[RowTile, tuple[ir.Var, tuple[ir.Atom, ...]]] = {}
        self.out: list[ir.Op] = []
        self.wide: dict[ir.Var, ir.Var] = {}
        #: entries of `wide` made in each open region: they are removed with the region
        self.scopes: list[list[ir.Var]] = []
        self.stacks: dict[ir.Var, ir.Var] = {}
        self.cells: dict[ir.Var, ir.Var] = {}
        #: definitions of linear values
        self.linear: dict[ir.Var, ir.Prim] = {}
        self.loop_mask = ir.Var(self.type(u1), "mask")
        self.mask: ir.Atom = self.loop_mask
        self.op: ir.Op = loop

    def type(self, t: Type) -> Lanes:
        assert isinstance(t, Scalar)
        return Lanes(t, self.lanes)

    def emit(self, op: ir.Op) -> None:
        self.out.append(op)

    def prim(self, prim: Primitive, *args: ir.Atom, t: Type) -> ir.Var:
        out = ir.Var(t)
        self.emit(ir.Prim(prim, args, (out,), self.op.loc, self.op.origin))
        return out

    def all_of(self, mask: ir.Atom, condition: ir.Atom) -> ir.Atom:
        return self.prim(p.and_, mask, condition, t=self.type(u1))

    def without(self, mask: ir.Atom, condition: ir.Atom) -> ir.Atom:
        return self.all_of(mask, self.prim(p.logical_not, condition, t=self.type(u1)))

    def chosen(self, mask: ir.Atom, new: ir.Atom, old: ir.Atom) -> ir.Atom:
        t = new.type if isinstance(new.type, Lanes) else old.type
        return new if new is old else self.prim(p.select, mask, new, old, t=t)

    def reduce(self, prim: Primitive, lanes: ir.Atom) -> ir.Var:
        assert isinstance(lanes.type, Lanes)
        out = ir.Var(lanes.type.dtype)
        self.emit(Reduce(prim, lanes, (out,), self.op.loc, self.op.origin))
        return out

    def bind(self, v: ir.Var, lanes: ir.Var) -> None:
        """Bind `v` to its lanes until the open region ends."""
        self.wide[v] = lanes
        self.scopes[-1].append(v)

    def lanes_for(self, v: ir.Var) -> ir.Var:
        """A variable for the lanes of `v`, bound to it."""
        lanes = ir.Var(self.type(v.type), v.name)
        self.bind(v, lanes)
        return lanes

    def each(self, atom: ir.Atom) -> ir.Atom:
        """`atom` in lanes: a vector, or a scalar that is the same for all."""
        if type(atom) is not ir.Var or self.divergence.step(atom) == 0:
            return atom
        found = self.wide.get(atom)
        if found is not None:
            return found
        made = self.linear.get(atom)
        if made is None:  # an index
            lanes = self.lanes_for(atom)
            self.emit(Ramp((atom, self.step(atom)), (lanes,), (), self.op.loc))
        else:
            args = tuple([self.each(a) for a in made.args])
            lanes = self.lanes_for(atom)
            self.emit(ir.Prim(made.prim, args, (lanes,), made.loc, made.origin))
        return lanes

    def step(self, atom: ir.Atom) -> ir.Atom:
        """The step of a linear value from lane to lane."""
        step, t = self.divergence.step(atom), atom.type
        assert step is not None and isinstance(t, Scalar)
        if not isinstance(step, Stride):
            return ir.Lit(step, t)
        product: ir.Atom = ir.Lit(step.factor, t)
        for factor in step.by:
            product = self.prim(p.mul, factor, product, t=t)
        return product

    def spread(self, atom: ir.Atom) -> ir.Var:
        """`atom` as a vector."""
        each = self.each(atom)
        if isinstance(each, ir.Var) and isinstance(each.type, Lanes):
            return each
        out = ir.Var(self.type(each.type), each.name if isinstance(each, ir.Var) else "")
        self.emit(Broadcast((each,), (out,), (), self.op.loc))
        return out

    # regions

    def region(
        self,
        region: ir.Region | None,
        yields: Callable[[], Sequence[ir.Atom]],
        enter: Callable[[], tuple[ir.Var, ...]] = tuple,
    ) -> ir.Region:
        """The vectorised `region`: `enter` gives the parameters and emits a prologue, `yields` gives the results."""
        outer, self.out = self.out, []
        self.scopes.append([])
        params = enter()
        for op in region.body if region is not None else ():
            self.visit(self, op)
        results = tuple(yields())
        for v in self.scopes.pop():
            self.wide.pop(v, None)
        body, self.out = self.out, outer
        return ir.Region(params, tuple(body), results)

    def on_prim(self, op: ir.Prim) -> None:
        step = self.divergence.step(op.out)
        if step is not None:
            self.emit(op)
            self.linear[op.out] = op
        else:
            args = tuple([self.each(a) for a in op.args])
            self.emit(ir.Prim(op.prim, args, (self.lanes_for(op.out),), op.loc, op.origin))

    def on_check(self, op: ir.Check) -> None:
        condition, *shown = [self.each(a) for a in op.args]
        idle = self.prim(p.logical_not, self.mask, t=self.type(u1))
        holds = self.prim(p.or_, idle, condition, t=self.type(u1))
        self.emit(op.rebuilt((holds, *shown)))

    def differ(self, variables: Sequence[ir.Var]) -> list[bool]:
        """Which of these values become vectors."""
        return [self.divergence.step(v) != 0 for v in variables]

    def results(self, atoms: Sequence[ir.Atom], wide: Sequence[bool]) -> list[ir.Atom]:
        """The yields of a region or the initial values of a loop, as vectors where requested."""
        return [self.spread(a) if w else a for a, w in zip(atoms, wide, strict=True)]

    def bound(self, variables: Sequence[ir.Var], wide: Sequence[bool]) -> tuple[ir.Var, ...]:
        """Variables defined here, as vectors where requested."""
        return tuple([self.lanes_for(v) if w else v for v, w in zip(variables, wide, strict=True)])

    def widened(self, atom: ir.Atom) -> ir.Atom:
        """An integer, or lanes of integers, in 64 bits."""
        if isinstance(atom, ir.Lit):
            return ir.Lit(int(atom.value), i64)
        t = self.type(i64) if isinstance(atom.type, Lanes) else i64
        return atom if atom.type == t else self.prim(p.cast, atom, t=t)


def zero_of(t: Type) -> ir.Lit:
    assert isinstance(t, Scalar)
    return ir.Lit(0.0 if t.kind == "f" else 0, t)
