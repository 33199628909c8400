"""Lowers tensors that are indexed at run time, the only ones left, to local memory.

    %a: f32[4] = pack %x, %y, 0.0f32, 0.0f32          %a: ref f32[4] = local
    %b: f32[4] = insert %a, %i, %v                    set %a[0i32], %x
    %c: f32 = extract %b, %j                    ->    set %a[1i32], %y
                                                      …
                                                      set %a[%i], %v
                                                      %c: f32 = get %a[%j]

Every variable that holds a tensor gets a cell. `insert` writes into the cell of its operand when the old value is dead
afterwards, else into a copy. A carried tensor has one cell for the whole loop, a branch's result one for both sides;
results in other cells are copied there. A stack of tensors becomes a stack of their components.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tinote.errors import CompilerBug
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.build import Builder
from tinote.ir.query import free_variables, walk
from tinote.ir.rewrite import keeping, remade
from tinote.ir.types import Ref, Stack, Tensor, Type, i32, i64

#: Arrays up to this number of components are copied component by component, larger ones in a loop. Chosen, not
#: measured.
_MAX_UNROLLED = 16


def lower_arrays(fn: ir.Function) -> ir.Function:
    """`fn` without tensor values."""
    if not any(
        _is_array(v.type) for op in walk(fn.region) for v in (*op.outs, *(q for r in op.regions for q in r.params))
    ):
        return fn
    return fn.with_region(_Lowering(_Liveness(fn.region)).whole(fn.region))


def _is_array(t: Type) -> bool:
    return isinstance(t, Tensor) or (isinstance(t, Stack) and isinstance(t.content, Tensor))


Index = tuple[ir.Atom, ...]
Component = Callable[[Index], object]


class _Liveness:
    """Liveness analysis: for each operation, the tensor variables that are dead after it.

    For each loop, also the outer variables that its iterations read.
    """

    def __init__(self, region: ir.Region) -> None:
        self.dead_after: dict[ir.Op, set[ir.Var]] = {}
        self.read_inside: dict[ir.Op, set[ir.Var]] = {}
        self._region(region, set())

    def _region(self, region: ir.Region, needed: set[ir.Var]) -> set[ir.Var]:
        """Walk a region backwards; `needed`: the variables live after it. Returns those live before it."""
        live = needed | _tensors(region.yields)
        for op in reversed(region.body):
            used = _tensors(op.args)
            inside: set[ir.Var] = set()
            if isinstance(op, ir.For | ir.While):
                # An iteration is followed by another one: outer variables that any iteration reads stay live
                # throughout.
                inside = self.read_inside[op] = {
                    v for r in op.regions for v in free_variables(r) if isinstance(v.type, Tensor)
                }
                for r in op.regions:
                    # The condition of a `while` must leave the carried values as they are.
                    kept = _tensors(r.params) if isinstance(op, ir.While) and r is op.condition else set[ir.Var]()
                    inside = inside | self._region(r, live | inside | kept)
            else:
                for r in op.regions:
                    inside |= self._region(r, set(live))
            touched = used | inside
            self.dead_after[op] = touched - live
            live = (live | touched) - set(op.outs)
        return live - set(region.params)


def _tensors(atoms: Sequence[ir.Atom]) -> set[ir.Var]:
    return {a for a in atoms if type(a) is ir.Var and isinstance(a.type, Tensor)}


class _Lowering:
    def __init__(self, liveness: _Liveness) -> None:
        self._dead_after = liveness.dead_after
        self._read_inside = liveness.read_inside
        self._b = Builder()
        #: the cell that holds a tensor variable; the stack that stands for a stack of tensors
        self._cells: dict[ir.Var, ir.Var] = {}

    def whole(self, region: ir.Region) -> ir.Region:
        with self._b.region() as opened:
            for op in region.body:
                self._visit(op)
        return ir.Region(region.params, tuple(opened.body), region.yields)

    def _inner(self, region: ir.Region) -> ir.Region:
        """A region whose parameters and yields are not tensors."""
        if not any(_is_array(v.type) for op in walk(region) for v in op.outs) and not any(
            _is_array(a.type) for op in walk(region) for a in op.args
        ):
            return region
        return self.whole(region)

    # cells

    def _cell(self, atom: ir.Atom) -> ir.Var:
        found = self._cells.get(atom)  # type: ignore[arg-type]
        if found is None:
            raise CompilerBug("lower_arrays", f"{atom!r} has no cell")
        return found

    def _new_cell(self, t: Tensor, name: str) -> ir.Var:
        return self._b.local(t, name=name)

    def _each(self, t: Tensor, call: Component) -> None:
        """Call with the indices of each component: literals for few components, loops for many."""
        if t.count <= _MAX_UNROLLED:
            for index in ir.component_indices(t.shape):
                call(index)
            return
        self._nest(t.shape, (), call)

    def _nest(self, shape: tuple[int, ...], index: Index, call: Component) -> None:
        if not shape:
            call(index)
            return
        position = ir.Var(i32)
        with self._b.region(position) as opened:
            self._nest(shape[1:], (*index, position), call)
        self._b.emit(ir.For(ir.Lit(0, i32), ir.Lit(shape[0], i32), (), opened.close(), (), self._b.loc))

    def _copy(self, source: ir.Var, target: ir.Var) -> None:
        if source is target:
            return
        content = source.type.content  # type: ignore[union-attr]
        assert isinstance(content, Tensor)
        b = self._b
        self._each(content, lambda index: b.set(target, b.get(source, *index), *index))

    # operations

    def _visit(self, op: ir.Op) -> None:
        b = self._b
        b.loc, b.origin = op.loc, op.origin
        if isinstance(op, ir.For | ir.While):
            self._loop(op)
        elif isinstance(op, ir.If):
            self._branch(op)
        elif isinstance(op, ir.Prim) and (op.prim in (p.pack, p.insert, p.extract) or isinstance(op.out.type, Tensor)):
            self._prim(op)
        elif isinstance(op, ir.NewStack | ir.Push | ir.Pop) and _is_array(
            (op.out if isinstance(op, ir.NewStack) else op.args[0]).type
        ):
            self._stack(op)
        elif any(_is_array(a.type) for a in op.args) or any(_is_array(v.type) for v in op.outs):
            self._cell_access(op)
        elif op.regions:
            regions = tuple([self._inner(r) for r in op.regions])
            b.emit(remade(op, op.args, regions))
        else:
            b.emit(op)

    def _prim(self, op: ir.Prim) -> None:
        b = self._b
        t = op.out.type
        if op.prim is p.extract:
            b.emit(ir.Get((self._cell(op.args[0]), *op.args[1:]), op.outs, (), op.loc, op.origin))
            return
        assert isinstance(t, Tensor)
        if op.prim is p.insert:
            source = self._cell(op.args[0])
            cell = source
            if op.args[0] not in self._dead_after[op]:
                cell = self._new_cell(t, op.out.name)
                self._copy(source, cell)
            b.set(cell, op.args[-1], *op.args[1:-1])
        elif op.prim is p.pack:
            cell = self._new_cell(t, op.out.name)
            zero = ir.Lit(0, t.dtype)
            if all(a == zero for a in op.args):
                pass  # a cell starts at zero
            elif t.count > _MAX_UNROLLED and len(set(op.args)) == 1:
                self._each(t, lambda index: b.set(cell, op.args[0], *index))
            else:
                for index, a in zip(ir.component_indices(t.shape), op.args, strict=True):
                    if a != zero:
                        b.set(cell, a, *index)
        else:
            cell = self._elementwise(op, t)
        self._cells[op.out] = cell

    def _elementwise(self, op: ir.Prim, t: Tensor) -> ir.Var:
        """A select between tensors, or any other primitive on them."""
        b = self._b
        cell = self._new_cell(t, op.out.name)

        def component(index: Index) -> None:
            operands = [b.get(self._cell(a), *index) if isinstance(a.type, Tensor) else a for a in op.args]
            b.set(cell, b.prim(op.prim, *operands, type=t.dtype), *index)

        self._each(t, component)
        return cell

    def _cell_access(self, op: ir.Op) -> None:
        """`local`, `get` and `set` of a whole tensor."""
        b = self._b
        if op.outs and isinstance(op.out.type, Ref):
            cell = b.emit(op.rebuilt(())).out
            self._copy(self._cell(op.args[0]), cell)
        elif op.outs:
            t = op.out.type
            assert isinstance(t, Tensor) and isinstance(op.args[0].type, Ref)
            cell = self._new_cell(t, op.out.name)
            self._copy(op.args[0], cell)  # type: ignore[arg-type]
            self._cells[op.out] = cell
        elif len(op.args) == 2 and isinstance(op.args[0].type, Ref):
            self._copy(self._cell(op.args[1]), op.args[0])  # type: ignore[arg-type]
        else:
            raise CompilerBug("lower_arrays", f"a tensor in {op!r}")

    # stacks of tensors

    def _stack(self, op: ir.Op) -> None:
        b = self._b
        if isinstance(op, ir.NewStack):
            assert isinstance(op.out.type, Stack) and isinstance(op.out.type.content, Tensor)
            t = op.out.type.content
            capacity = tuple(
                ir.Lit(int(a.value) * t.count, i64) if isinstance(a, ir.Lit) else b.prim(p.mul, a, ir.Lit(t.count, i64))
                for a in op.args
            )
            fresh = ir.Var(Stack(t.dtype), op.out.name)
            b.emit(op.rebuilt(capacity, (), (fresh,)))
            self._cells[op.out] = fresh
            return
        stack = self._cell(op.args[0])
        if isinstance(op, ir.Push):
            source = self._cell(op.args[1])
            assert isinstance(op.args[1].type, Tensor)
            self._each(
                op.args[1].type,
                lambda index: b.emit(ir.Push((stack, b.get(source, *index)), (), (), op.loc, op.origin)),
            )
            return
        t = op.out.type
        assert isinstance(t, Tensor)
        cell = self._new_cell(t, op.out.name)
        last = tuple(n - 1 for n in t.shape)

        def take(index: Index) -> None:
            value = ir.Var(t.dtype)
            b.emit(ir.Pop((stack,), (value,), (), op.loc, op.origin))
            # Last in, first out: from the last component to the first.
            mirrored = [
                ir.Lit(n - int(k.value), i32) if isinstance(k, ir.Lit) else b.prim(p.sub, ir.Lit(n, i32), k)
                for n, k in zip(last, index, strict=True)
            ]
            b.set(cell, value, *mirrored)

        self._each(t, take)
        self._cells[op.out] = cell

    # control flow

    def _loop(self, op: ir.For | ir.While) -> None:
        """Carried tensors have one cell each for the whole loop."""
        homes: dict[int, ir.Var] = {}
        for k, source in enumerate(op.initial):
            if not isinstance(source.type, Tensor):
                continue
            cell = self._cell(source)
            in_place = source in self._dead_after[op] and source not in self._read_inside[op]
            if not in_place or cell in homes.values():
                cell = self._new_cell(source.type, op.outs[k].name)
                self._copy(self._cell(source), cell)
            homes[k] = self._cells[op.outs[k]] = cell
        regions: list[ir.Region] = []
        for r in op.regions:
            head = 1 if isinstance(op, ir.For) else 0
            self._cells.update({r.params[head + k]: cell for k, cell in homes.items()})
            is_condition = isinstance(op, ir.While) and r is op.condition
            regions.append(self._settled(op, r, {} if is_condition else homes))
        self._finish(op, regions, homes)

    def _settled(self, op: ir.Op, region: ir.Region, homes: dict[int, ir.Var]) -> ir.Region:
        """A region of `op` that leaves tensors in their cells, which are known by the positions of its yields."""
        with self._b.region() as opened:
            for inner in region.body:
                self._visit(inner)
            self._b.loc = op.loc
            self._settle([(region.yields[k], cell) for k, cell in homes.items()])
        return ir.Region(region.params, tuple(opened.body), region.yields)

    def _finish(self, op: ir.Op, regions: Sequence[ir.Region], homes: dict[int, ir.Var]) -> None:
        """Emit a loop or branch with those of its results that are not tensors."""
        self._b.loc = op.loc
        self._b.emit(keeping(op.rebuilt(op.args, tuple(regions)), [k for k in range(len(op.outs)) if k not in homes]))

    def _settle(self, moves: list[tuple[ir.Atom, ir.Var]]) -> None:
        """Parallel copy of yielded tensors into their cells."""
        pending = [(self._cell(value), cell) for value, cell in moves]
        targets = {cell for source, cell in pending if source is not cell}
        held: list[tuple[ir.Var, ir.Var]] = []
        for source, cell in pending:
            if source is cell:
                continue
            if source in targets:
                # Another copy overwrites this source: save it first.
                aside = self._new_cell(source.type.content, source.name)  # type: ignore[union-attr, arg-type]
                self._copy(source, aside)
                source = aside
            held.append((source, cell))
        for source, cell in held:
            self._copy(source, cell)

    def _branch(self, op: ir.If) -> None:
        """A tensor result has one cell for both sides: that of a dead tensor yielded by a side, if there is one."""
        homes: dict[int, ir.Var] = {}
        for k, out in enumerate(op.outs):
            if isinstance(out.type, Tensor):
                ends = [_origin(r, r.yields[k]) for r in op.regions]
                dead = [self._cells[y] for y in ends if y in self._dead_after[op] and y in self._cells]
                free = [cell for cell in dead if cell not in homes.values()]
                homes[k] = free[0] if free else self._new_cell(out.type, out.name)
        regions = [self._settled(op, r, homes) for r in op.regions]
        self._cells.update({op.outs[k]: cell for k, cell in homes.items()})
        self._finish(op, regions, homes)


def _origin(region: ir.Region, atom: ir.Atom) -> ir.Var:
    """The tensor whose cell will hold `atom`, yielded by a branch, if all updates are in place."""
    assert isinstance(atom, ir.Var)
    made = {v: op for op in region.body for v in op.outs}
    while (op := made.get(atom)) is not None:
        if isinstance(op, ir.Prim) and op.prim is p.insert:
            following = op.args[0]
        elif isinstance(op, ir.For | ir.While):
            following = op.initial[op.outs.index(atom)]
        else:
            break
        assert isinstance(following, ir.Var)
        atom = following
    return atom
