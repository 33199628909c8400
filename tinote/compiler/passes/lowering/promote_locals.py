"""Turns local variables into values: structured SSA construction.

    %s: ref f32 = local 0.0f32
    for %i: i32 in 0i32 .. %n:                      %s: f32 = for %i: i32 in 0i32 .. %n carrying %s.1: f32 = 0.0f32:
      %1: f32 = get %s                                %2: f32 = add %s.1, %x
      %2: f32 = add %1, %x                    ->      yield %2
      set %s, %2                                    store @y[], %s
    %3: f32 = get %s
    store @y[], %3

A loop carries the variables assigned inside it and declared outside; an `if` yields those that differ after its two
sides. A write to one component becomes `insert`, a read of one `extract`. A parallel loop carries nothing: the front
end puts variables that its iterations share into memory.
"""

from __future__ import annotations

from tinote.errors import CompilerBug
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.rewrite import Rewriting, clone_region, remade, remade_region
from tinote.ir.types import Ref, Scalar, Tensor, u1


def promote_locals(fn: ir.Function) -> ir.Function:
    """`fn` without `Local`, `Get` and `Set`; loops and branches carry and yield the values instead."""
    assigned: dict[ir.Region, frozenset[ir.Var]] = {}
    if not _collect(fn.region, assigned):
        return fn
    return fn.with_region(_Promoter(assigned).region(fn.region, {}))


def _collect(region: ir.Region, assigned: dict[ir.Region, frozenset[ir.Var]]) -> bool:
    """Fill `assigned` with the cells that each region below sets but does not declare.

    Returns whether there is any cell.
    """
    found: set[ir.Var] = set()
    declared: set[ir.Var] = set()
    any_cell = False
    for op in region.body:
        if isinstance(op, ir.Set):
            cell = op.args[0]
            assert isinstance(cell, ir.Var)
            found.add(cell)
        elif isinstance(op, ir.Local):
            declared.add(op.outs[0])
            any_cell = True
        for inner in op.regions:
            any_cell |= _collect(inner, assigned)
            found |= assigned[inner]
    assigned[region] = frozenset(found - declared)
    return any_cell


Values = dict[ir.Var, ir.Atom]  # the present value of each cell in scope


class _Promoter(Rewriting):
    """Walks in order with the present value of every cell in scope."""

    def __init__(self, assigned: dict[ir.Region, frozenset[ir.Var]]) -> None:
        super().__init__()
        self.assigned = assigned
        self.values: Values = {}

    def walk(self, region: ir.Region, values: Values) -> tuple[list[ir.Op], tuple[ir.Atom, ...]]:
        """The new body of `region` and its own yields; `values` afterwards holds what the cells hold at its end."""
        saved_out, self.out = self.out, []
        saved_values, self.values = self.values, values
        for op in region.body:
            self.op(op)
        body, self.out = self.out, saved_out
        self.values = saved_values
        return body, self.renamed(region.yields)

    def region(self, region: ir.Region, values: Values) -> ir.Region:
        """`region` with its own parameters and yields."""
        body, yields = self.walk(region, values)
        return remade_region(region, body, yields)

    def op(self, op: ir.Op) -> None:
        kind = type(op)
        if kind is ir.Local:
            self.values[op.outs[0]] = self.get(op.args[0]) if op.args else self.zero(op)
        elif kind is ir.Get:
            self.read(op)
        elif kind is ir.Set:
            self.write(op)
        elif op.regions:
            self.nest(op)
        else:
            self.out.append(remade(op, self.renamed(op.args)))

    def nest(self, op: ir.Op) -> None:
        cells = self.assigned_in(op)
        if cells:
            self.refuse(op)
        if cells and isinstance(op, ir.If):
            self.branch(op, cells)
        elif cells and isinstance(op, ir.For):
            self.carry(op, self.renamed(op.args), cells, ())
        elif cells and isinstance(op, ir.While):
            self.while_(op, cells)
        else:
            regions = tuple([self.region(r, dict(self.values)) for r in op.regions])
            self.out.append(remade(op, self.renamed(op.args), regions))

    def refuse(self, op: ir.Op) -> None:
        """Raise if code that runs in parallel assigns a cell declared outside."""
        for region in op.regions:
            shared = [cell.name for cell in self.assigned[region] if cell in self.values]
            if shared and (isinstance(op, ir.Task) or (isinstance(op, ir.For) and op.parallel)):
                raise CompilerBug(
                    "promote_locals", f"{', '.join(shared)} assigned by parallel iterations at {op.loc!r}"
                )

    def cell(self, op: ir.Op) -> ir.Var:
        cell = op.args[0]
        if not isinstance(cell, ir.Var) or cell not in self.values:
            raise CompilerBug("promote_locals", f"{op!r} reaches a cell that is not in scope")
        return cell

    def zero(self, op: ir.Op) -> ir.Atom:
        assert isinstance(op.outs[0].type, Ref)
        t = op.outs[0].type.content
        if isinstance(t, Scalar):
            return ir.Lit(0, t)
        return self.apply(p.pack, t, op, *[ir.Lit(0, t.dtype)] * t.count, name=op.outs[0].name)

    def read(self, op: ir.Op) -> None:
        value = self.values[self.cell(op)]
        if len(op.args) > 1:
            self.out.append(ir.Prim(p.extract, (value, *self.renamed(op.args[1:])), op.outs, op.loc, op.origin))
        else:
            self.env[op.outs[0]] = value

    def write(self, op: ir.Op) -> None:
        cell = self.cell(op)
        value = self.get(op.args[-1])
        if len(op.args) > 2:
            old = self.values[cell]
            assert isinstance(old.type, Tensor)
            value = self.apply(p.insert, old.type, op, old, *self.renamed(op.args[1:-1]), value, name=cell.name)
        self.values[cell] = value

    def assigned_in(self, op: ir.Op) -> list[ir.Var]:
        """The cells in scope that some region of `op` assigns, in order of declaration."""
        touched = frozenset[ir.Var]().union(*[self.assigned[r] for r in op.regions])
        return [cell for cell in self.values if cell in touched] if touched else []

    def fresh(self, cell: ir.Var) -> ir.Var:
        assert isinstance(cell.type, Ref)
        return ir.Var(cell.type.content, cell.name)

    def branch(self, op: ir.If, cells: list[ir.Var]) -> None:
        condition = self.get(op.condition)
        then_values, else_values = dict(self.values), dict(self.values)
        then_body, then_yields = self.walk(op.then, then_values)
        else_body, else_yields = self.walk(op.orelse, else_values)
        different = [c for c in cells if then_values[c] != else_values[c]]
        outs = tuple([self.fresh(c) for c in different])
        then = ir.Region((), tuple(then_body), (*then_yields, *[then_values[c] for c in different]))
        orelse = ir.Region((), tuple(else_body), (*else_yields, *[else_values[c] for c in different]))
        self.out.append(op.rebuilt((condition,), (then, orelse), (*op.outs, *outs)))
        # Both sides may end with the same new value, which is then defined outside them.
        self.values.update({c: then_values[c] for c in cells})
        self.values.update(zip(different, outs, strict=True))

    def carry(
        self, op: ir.For | ir.While, args: tuple[ir.Atom, ...], cells: list[ir.Var], before: tuple[ir.Region, ...]
    ) -> None:
        """Emit a loop that carries cells. `before`: its regions before the body, which carry them already."""
        params, outs = [self.fresh(c) for c in cells], [self.fresh(c) for c in cells]
        values = {**self.values, **dict(zip(cells, params, strict=True))}
        ops, yields = self.walk(op.body, values)
        body = ir.Region((*op.body.params, *params), tuple(ops), (*yields, *[values[c] for c in cells]))
        initial = [self.values[c] for c in cells]
        self.out.append(op.rebuilt((*args, *initial), (*before, body), (*op.outs, *outs)))
        self.values.update(zip(cells, outs, strict=True))

    def while_(self, op: ir.While, cells: list[ir.Var]) -> None:
        if any(c in self.assigned[op.condition] for c in cells):
            op = self.evaluated_before(op)
            cells = self.assigned_in(op)
        args = self.renamed(op.args)
        tests = [self.fresh(c) for c in cells]
        ops, yields = self.walk(op.condition, {**self.values, **dict(zip(cells, tests, strict=True))})
        condition = ir.Region((*op.condition.params, *tests), tuple(ops), yields)
        self.carry(op, args, cells, (condition,))

    def evaluated_before(self, op: ir.While) -> ir.While:
        """Turns a loop whose condition assigns cells into one that carries the condition's value, computed before each
        iteration.

        The cells that the condition assigns must reach the body, but a condition region yields only its truth value.
        """
        first = self.copy(op.condition, op.args)
        for inner in first.body:
            self.op(inner)
        again = self.copy(op.condition, op.body.yields)
        test, go = ir.Var(u1), ir.Var(u1)
        params = tuple([ir.Var(q.type, q.name) for q in op.condition.params])
        condition = ir.Region((*params, test), (), (test,))
        body = ir.Region((*op.body.params, go), (*op.body.body, *again.body), (*op.body.yields, again.yields[0]))
        new = ir.While((*op.args, first.yields[0]), condition, body, (*op.outs, ir.Var(u1)), op.loc, op.origin)
        for region in new.regions:
            _collect(region, self.assigned)
        return new

    def copy(self, condition: ir.Region, args: tuple[ir.Atom, ...]) -> ir.Region:
        """A copy of a condition region with `args` in place of its parameters."""
        copy, _ = clone_region(condition)
        self.env.update(zip(copy.params, args, strict=True))
        _collect(copy, self.assigned)
        return copy
