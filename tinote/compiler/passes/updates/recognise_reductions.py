"""Recognises reductions: turns updates of outer variables by parallel iterations into atomic updates, or else
serialises the loop.

    store @a[], -1.0f32                             store @a[], -1.0f32
    for parallel %i: i32 in 0i32 .. %n:             for parallel %i: i32 in 0i32 .. %n:
      %x: f32 = load @x[%i]                           %x: f32 = load @x[%i]
      %b: f32 = load @a[]                    ->       atomic max @a[], %x
      %c: f32 = max %b, %x
      store @a[], %c

Such a variable is a temporary, memory that all threads share. Its use in the iterations may be

- a reduction: each changes it by the same operation (`+ * min max & | ^`) and nothing else reads it. It becomes
  atomic updates, which later steps turn into private copies. `if x > a: a = x` is a maximum, `a and x` an `and`;
- scratch: each iteration writes it before reading it, and it is dead afterwards. Each iteration gets its own;
- a store of the same value by each iteration, in any order;
- anything else: then the loop runs serially, carries the variable, and a remark says why.

Atomic updates that are written as such, and whose old values may be used, stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinote.compiler.passes.analyses.match_updates import Holders, Update, UpdateMatcher
from tinote.compiler.passes.lowering.promote_locals import promote_locals
from tinote.compiler.passes.simplification.forward_stores import forward_stores
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.access import Accesses, accesses_of
from tinote.ir.primitives import Primitive
from tinote.ir.prune import prune
from tinote.ir.query import bound_in, walk
from tinote.ir.rewrite import DROP, KEEP, Decision, Replacing, Rewriter, with_body
from tinote.ir.types import Ref, u1
from tinote.remarks import Remark, Report, unread

#: A temporary and its component; None for all components, where one is chosen at run time.
Component = tuple[ir.Buffer, tuple[ir.Atom, ...] | None]


def recognise_reductions(fn: ir.Function) -> ir.Function:
    """`fn`, in the SCALAR form, with reductions as atomic updates and nothing else changed. In debug mode it runs
    before the overflow checks, which treat the updates like `a += x[i]`.
    """
    return _Loops(fn, unread, in_order=False).run()


def order_iterations(fn: ir.Function, report: Report = unread) -> ir.Function:
    """`fn`, in the SCALAR form, where parallel iterations share variables only by atomic updates."""
    shared = {op.buffer for op in walk(fn.region) if isinstance(op, ir.MemoryOp) and _is_variable(op.buffer)}
    if not shared:
        return fn
    settled = _Loops(fn, report).run()
    if settled is fn:
        return fn
    settled = forward_stores(promote_locals(settled))
    return settled.with_region(prune(settled.region, keep_while=True))


def _is_variable(buffer: ir.Buffer) -> bool:
    return buffer.kind is ir.BufferKind.TEMPORARY and not buffer.shape


class _Loops:
    """The loops of a function, in which nothing is renamed. Unless `in_order`, only reductions are looked for."""

    def __init__(self, fn: ir.Function, report: Report, *, in_order: bool = True) -> None:
        self.fn = fn
        self.report = report
        self.only_reductions = not in_order
        self.accesses: Accesses | None = None

    def run(self) -> ir.Function:
        body: list[ir.Op] = []
        for k, op in enumerate(self.fn.region.body):
            if isinstance(op, ir.For) and op.parallel:
                body += self.loop(op, k)
            else:
                body.append(op)
        return with_body(self.fn, body)

    def loop(self, loop: ir.For, position: int) -> list[ir.Op]:
        touched = _components(loop)
        if not touched:
            return [loop]
        before: list[ir.Op] = []
        rewrites: dict[ir.Op, list[ir.Op]] = {}
        own: list[Component] = []
        ordered: list[Component] = []
        for component, ops in touched.items():
            if not any(isinstance(op, ir.Store) for op in ops) and not _is_mixed(ops):
                continue
            reduction = _Reduction(self, loop, component, ops, self.may_begin_with_nan(component, position))
            if reduction.found():
                before += reduction.before
                rewrites.update(reduction.rewrites)
            elif self.only_reductions or self.same_value(loop, ops):
                continue
            elif component[1] is not None and self.is_scratch(loop, component, position):
                own.append(component)
            else:
                ordered.append(component)
        if ordered:
            changed = [
                component for component, ops in touched.items() if not all(isinstance(op, ir.Load) for op in ops)
            ]
            return self.in_order(loop, changed, ordered)
        if not rewrites and not own:
            return [loop]
        return [*before, _with_cells_inside(_one(Replacing(rewrites), loop), own)]

    def may_begin_with_nan(self, component: Component, position: int) -> bool:
        """Whether a variable may hold a NaN when the loop at `position` begins."""
        if component[0].dtype.kind != "f":
            return False
        for op in reversed(self.fn.region.body[:position]):
            if any(_at(inner, component) and not isinstance(inner, ir.Load) for inner in walk(ir.Region((), (op,)))):
                value = op.args[-1] if isinstance(op, ir.Store) else None
                return not isinstance(value, ir.Lit) or value.value != value.value
        return True

    def same_value(self, loop: ir.For, ops: Sequence[ir.Op]) -> bool:
        """Whether the only effect is to store one and the same value."""
        values = {op.value if isinstance(op, ir.Store) else None for op in ops}
        (value, *others) = values
        return not others and value is not None and _bound_outside(value, loop)

    def is_scratch(self, loop: ir.For, component: Component, position: int) -> bool:
        """Whether each iteration writes the variable before reading it, and it is dead after the loop."""
        region = _iteration(loop, component)
        if region is None or _reads_first(region, component, False) is None:
            return False
        written = False
        for op in self.fn.region.body[position + 1 :]:
            state = _reads_first(ir.Region((), (op,)), component, written)
            if state is None:
                return False
            written = state
        return True

    def in_order(self, loop: ir.For, components: list[Component], ordered: list[Component]) -> list[ir.Op]:
        """The loop as a serial one.

        It carries changed variables, except those accessed by run-time component indices.
        """
        names = ", ".join(dict.fromkeys(f"`{buffer.name}`" for buffer, _ in ordered))
        verb = "is" if len({buffer for buffer, _ in ordered}) == 1 else "are"
        why = f"{names} {verb} carried from one iteration to the next, and not by one of +, *, min, max, &, | and ^"
        self.report(Remark("order_iterations", loop.loc, why))
        new = _in_order(loop)
        cells = {component: _cell(component) for component in components if component[1] is not None}
        before: list[ir.Op] = []
        after: list[ir.Op] = []
        for (buffer, index), cell in cells.items():
            start, end = ir.Var(buffer.dtype, buffer.name), ir.Var(buffer.dtype, buffer.name)
            assert index is not None
            before += [ir.Load(buffer, index, (start,), loop.loc), ir.Local((start,), (cell,), (), loop.loc)]
            after += [ir.Get((cell,), (end,), (), loop.loc), ir.Store(buffer, index, end, loop.loc)]
        return [*before, _one(_ToCells(cells), new), *after]

    def harmless(self, region: ir.Region) -> bool:
        """Whether a region may run speculatively: it has no effects and cannot fault."""
        for op in region.body:
            if isinstance(op, ir.Load):
                if self.accesses is None:
                    self.accesses = accesses_of(self.fn)
                if not self.accesses.surely_in_range(self.accesses.of(op)):
                    return False
            elif not isinstance(op, ir.Prim) or op.prim in (*p.DIVISIONS, p.extract, p.insert):
                return False
        return True


# ---- accesses of a loop


def _components(loop: ir.For) -> dict[Component, list[ir.Op]]:
    """The variables that a loop changes and the accesses to each, by component where all component indices are
    known.
    """
    found: dict[ir.Buffer, list[ir.MemoryOp]] = {}
    for op in walk(loop.body):
        if isinstance(op, ir.Load | ir.Store | ir.Atomic) and _is_variable(op.buffer):
            found.setdefault(op.buffer, []).append(op)
    components: dict[Component, list[ir.Op]] = {}
    for buffer, ops in found.items():
        known = all(isinstance(a, ir.Lit) for op in ops for a in op.index)
        whole = any(len(op.index) != len(buffer.element) for op in ops)
        for op in ops:
            components.setdefault((buffer, op.index if known and not whole else None), []).append(op)
    return components


def _at(op: ir.Op, component: Component) -> bool:
    """Whether an operation may access a variable."""
    buffer, index = component
    return (
        isinstance(op, ir.Load | ir.Store | ir.Atomic) and op.buffer is buffer and (index is None or op.index == index)
    )


def _is_mixed(ops: Sequence[ir.Op]) -> bool:
    """Whether a variable has atomic updates by several operations, or updates and reads: then the order matters."""
    prims = {op.prim for op in ops if isinstance(op, ir.Atomic)}
    return len(prims) > 1 or (bool(prims) and any(isinstance(op, ir.Load) for op in ops))


def _bound_outside(atom: ir.Atom, loop: ir.For) -> bool:
    return isinstance(atom, ir.Lit) or atom not in bound_in(loop.body)


def _iteration(loop: ir.For, component: Component) -> ir.Region | None:
    """The body of the innermost loop of a parallel nest; None where the variable is accessed further out."""
    region = loop.body
    while True:
        inner = [op for op in region.body if isinstance(op, ir.For) and op.parallel]
        if not inner:
            return region
        if len(inner) > 1 or any(_at(op, component) for op in region.body):
            return None
        region = inner[0].body


def _reads_first(region: ir.Region, component: Component, written: bool) -> bool | None:
    """Whether `region` certainly writes the variable; None if it may read the variable before writing it."""
    for op in region.body:
        if _at(op, component):
            if not isinstance(op, ir.Store) and not written:
                return None
            written = True
        elif isinstance(op, ir.If):
            sides = [_reads_first(inner, component, written) for inner in op.regions]
            if None in sides:
                return None
            written = written or all(sides)
        else:
            for inner in op.regions:
                if _reads_first(inner, component, written) is None:
                    return None
    return written


# ---- reductions


class _Reduction(UpdateMatcher):
    """Matches a reduction: a loop that only updates a variable by one operation."""

    def __init__(
        self, loops: _Loops, loop: ir.For, component: Component, ops: Sequence[ir.Op], begins_with_nan: bool
    ) -> None:
        super().__init__(loop.body)
        self.loops = loops
        self.loop = loop
        self.buffer, self.index = component
        self.component = component
        self.ops = ops
        self.begins_with_nan = begins_with_nan
        #: whether the variable is NaN, computed before the loop
        self.before: list[ir.Op] = []
        self.spoiled: ir.Var | None = None
        self.prims = {op.prim for op in ops if isinstance(op, ir.Atomic)}
        self.matched: set[ir.Op] = set()
        #: variables defined only where an earlier part of a condition holds
        self.inside: set[ir.Var] = set()

    def found(self) -> bool:
        """Whether the loop is a reduction; then `rewrites` maps operations to replacements, and `before` must run
        before the loop.
        """
        if self.index is None or any(isinstance(op, ir.Atomic) and op.outs for op in self.ops):
            return False
        self.region(self.loop.body, frozenset())
        if len(self.prims) != 1 or not all(op in self.matched for op in self.ops if isinstance(op, ir.Store)):
            return False
        return self.nothing_else_asks()

    def region(self, region: ir.Region, current: Holders) -> Holders:
        """Match the stores of a region.

        `current`: the variables that hold its value at the start; returns those at the end.
        """
        for op in region.body:
            inside = [inner for r in op.regions for inner in walk(r) if _at(inner, self.component)]
            if isinstance(op, ir.Load) and _at(op, self.component):
                current = self.read(op, current)
            elif isinstance(op, ir.Store) and _at(op, self.component):
                current = self.store(op, current)
            elif isinstance(op, ir.Atomic) and _at(op, self.component):
                current = frozenset()
            elif inside:
                changes = any(not isinstance(inner, ir.Load) for inner in inside)
                if not (isinstance(op, ir.If) and self.conditional_store(op, current)):
                    for inner in op.regions:
                        self.region(inner, current if isinstance(op, ir.If) or not changes else frozenset())
                if changes:
                    current = frozenset()
                for inner in inside if not changes else ():
                    current = self.read(inner, current)
        return current

    def read(self, op: ir.Op, current: Holders) -> Holders:
        self.hold(op.out)
        return current | {op.out}

    def store(self, op: ir.Store, current: Holders) -> Holders:
        """Match `a = a + x` and similar stores; returns the variables that hold the new value."""
        value = op.value
        if not isinstance(value, ir.Var):
            return frozenset()
        updates = self.updates(value, current)
        if updates:
            self.hold(value, 1)
            self.replace(op, op, updates)
        return frozenset([value])

    def replace(self, op: ir.Op, store: ir.Store, updates: Sequence[Update]) -> None:
        """Replace an operation that contains a store by these updates."""
        self.rewrites[op] = [new for update in updates for new in self.atomics(update, store)]
        self.matched.add(store)

    def value_of(self, update: Update, near: ir.Store, made: list[ir.Op]) -> ir.Atom:
        value = super().value_of(update, near, made)
        self.prims.add(update.prim)
        if not update.compared or not self.begins_with_nan:
            return value
        t, out = near.buffer.dtype, ir.Var(near.buffer.dtype)
        neutral = ir.Lit(p.neutral(update.prim, t), t)
        made.append(ir.Prim(p.select, (self.is_spoiled(near), neutral, value), (out,), near.loc, near.origin))
        return out

    def is_spoiled(self, near: ir.Op) -> ir.Var:
        """Whether the variable is NaN when the loop begins: then no comparison ever lets it change."""
        if self.spoiled is None:
            assert self.index is not None
            start, self.spoiled = ir.Var(self.buffer.dtype), ir.Var(u1)
            self.before = [
                ir.Load(self.buffer, self.index, (start,), near.loc),
                ir.Prim(p.isnan, (start,), (self.spoiled,), near.loc),
            ]
        return self.spoiled

    # ---- patterns of updates

    def last_change(self, value: ir.Var, current: Holders) -> list[Update] | None:
        op = self.definitions.get(value)
        if isinstance(op, ir.If):
            return self.short_circuit(op, current)
        if isinstance(op, ir.Prim) and op.prim is p.select:
            return self.chosen(op, current)
        return super().last_change(value, current)

    def chosen(self, op: ir.Prim, current: Holders) -> list[Update] | None:
        """`x if x > a else a`."""
        condition, yes, no = op.args
        if not isinstance(no, ir.Var) or no not in current or not isinstance(condition, ir.Var):
            return None
        prim = self.comparison(condition, yes, current)
        if prim is None:
            return None
        self.hold(no, 1)
        return [Update(prim, yes, compared=True)]

    def comparison(self, condition: ir.Var, value: ir.Atom, current: Holders) -> Primitive | None:
        """Maximum if the condition says that `value` is greater than the variable, minimum if it is less. The condition
        is replaced then.
        """
        op = self.definitions.get(condition)
        greater = {p.gt: True, p.ge: True, p.lt: False, p.le: False}.get(op.prim) if isinstance(op, ir.Prim) else None
        if greater is None:
            return None
        assert op is not None
        for k in (0, 1):
            held = op.args[k]
            if isinstance(held, ir.Var) and held in current and self.alike(op.args[1 - k], value):
                self.hold(condition, 1)
                self.hold(held, 1)
                return p.maximum if greater is (k == 1) else p.minimum
        return None

    def short_circuit(self, op: ir.If, current: Holders) -> list[Update] | None:
        """`a and x`, where `x` may be evaluated even if `a` is false."""
        held = op.condition
        if not isinstance(held, ir.Var) or held not in current or len(op.outs) != 1:
            return None
        prim, taken, other = p.and_, op.then, op.orelse
        if taken.yields[0] == ir.true:
            prim, taken, other = p.or_, op.orelse, op.then
        settled = ir.false if prim is p.and_ else ir.true
        if other.body or other.yields[0] != settled or not self.loops.harmless(taken):
            return None
        self.hold(held, 1)
        self.rewrites[op] = [*taken.body]
        return [Update(prim, taken.yields[0])]

    def conditional_store(self, op: ir.If, current: Holders) -> bool:
        """`if x > a: a = x`, possibly with further conditions, which stay."""
        if op.outs or op.orelse.body or not op.then.body:
            return False
        *made, store = op.then.body
        if not isinstance(store, ir.Store) or not _at(store, self.component):
            return False
        if not all(isinstance(inner, ir.Prim | ir.Load) and not _at(inner, self.component) for inner in made):
            return False
        prim: Primitive | None = None
        others: list[ir.Atom] = []
        pending: list[ir.Atom] = [op.condition]
        while pending:
            condition = pending.pop()
            if prim is None and isinstance(condition, ir.Var):
                prim = self.comparison(condition, store.value, current)
                if prim is not None:
                    continue
            parts = self.parts(condition)
            if parts:
                assert isinstance(condition, ir.Var)
                self.hold(condition, 1)
                pending += parts
            else:
                others.append(condition)
        if prim is None or not set(others).isdisjoint(self.inside):
            return False
        # The comparison computed the value already, so it cannot fault now.
        self.replace(op, store, [Update(prim, store.value, compared=True)])
        self.rewrites[op] = [*made, *self.rewrites[op]]
        for condition in others:
            inner = ir.Region((), tuple(self.rewrites[op]))
            self.rewrites[op] = [ir.If(condition, inner, ir.Region((), ()), (), op.loc, op.origin)]
        return True

    def parts(self, condition: ir.Atom) -> list[ir.Atom]:
        """The conjuncts of a condition; the second may be computed only where the first holds."""
        op = self.definitions.get(condition) if isinstance(condition, ir.Var) else None
        if isinstance(op, ir.Prim) and op.prim is p.and_:
            return list(op.args)
        if isinstance(op, ir.If) and len(op.outs) == 1 and not op.orelse.body and op.orelse.yields[0] == ir.false:
            self.inside |= bound_in(op.then)
            return [op.then.yields[0], op.condition]
        return []


# ---- rewriting


class _ToCells(Rewriter):
    """Turns accesses to variables into accesses to local cells."""

    def __init__(self, cells: dict[Component, ir.Var]) -> None:
        super().__init__()
        self.cells = cells

    def on(self, op: ir.Op) -> Decision:
        cell = self.cells.get((op.buffer, op.index)) if isinstance(op, ir.Load | ir.Store | ir.Atomic) else None
        if cell is None:
            return KEEP
        if isinstance(op, ir.Load):
            self.emit(ir.Get((cell,), op.outs, (), op.loc, op.origin))
        elif isinstance(op, ir.Store):
            self.emit(ir.Set((cell, op.value), (), (), op.loc, op.origin))
        else:
            assert isinstance(op, ir.Atomic)
            old = op.out if op.outs else ir.Var(op.buffer.dtype)
            self.emit(ir.Get((cell,), (old,), (), op.loc, op.origin))
            new = self.apply(op.prim, op.buffer.dtype, op, old, op.value)
            self.emit(ir.Set((cell, new), (), (), op.loc, op.origin))
        return DROP


def _one(rewriter: Rewriter, loop: ir.For) -> ir.For:
    """The rewritten loop."""
    (new,) = rewriter.region(ir.Region((), (loop,))).body
    assert isinstance(new, ir.For)
    return new


def _cell(component: Component) -> ir.Var:
    return ir.Var(Ref(component[0].dtype), component[0].name)


def _with_cells_inside(loop: ir.For, components: list[Component]) -> ir.For:
    """`loop` with these variables private to each iteration."""
    if not components:
        return loop
    cells = {component: _cell(component) for component in components}
    return _declaring(_one(_ToCells(cells), loop), tuple(cells.values()))


def _declaring(loop: ir.For, cells: tuple[ir.Var, ...]) -> ir.For:
    """`loop` with cells declared at the start of an iteration of its innermost loop."""
    inner = [op for op in loop.body.body if isinstance(op, ir.For) and op.parallel]
    if inner:
        body = tuple([_declaring(inner[0], cells) if op is inner[0] else op for op in loop.body.body])
    else:
        body = (*[ir.Local((), (cell,), (), loop.loc) for cell in cells], *loop.body.body)
    new = loop.rebuilt(loop.args, (ir.Region(loop.body.params, body, loop.body.yields),))
    assert isinstance(new, ir.For)
    return new


def _in_order(loop: ir.For) -> ir.For:
    """A nest of parallel loops as one of serial loops."""
    body = tuple([_in_order(op) if isinstance(op, ir.For) and op.parallel else op for op in loop.body.body])
    new = loop.rebuilt(loop.args, (ir.Region(loop.body.params, body, loop.body.yields),))
    assert isinstance(new, ir.For)
    new.parallel = False
    return new
