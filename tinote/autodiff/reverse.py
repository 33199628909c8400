"""Reverse mode: the adjoint of a function, from a function in scalar form.

    for parallel %i in 0..8:                 for parallel %i.1 in 0..8:
      %x = load @x[%i]                         %g = load @U.grad[]
      %y = sin %x                      ->      %c = cos %x
      atomic add @U[], %y                      %d = mul %g, %c
                                               atomic add @x.grad[%i], %d

The adjoint of each operation is emitted in reverse order, against the *primal variables themselves* (`%i` and `%x`
above), wherever these are in scope: **its free variables are exactly the values that must be provided**. `storage.py`
then decides how, for each of them. A parallel loop carries nothing, so that its reverse is a parallel loop. The reverse
of a serial loop runs the iterations backwards and carries adjoints. The reverse of a branch is a branch on the same
condition.

Along several directions, each adjoint is one value with a number for each (`Tangents`), as tangents are in forward
mode: primal values, slopes and what is saved are there once for all of them.

Method: adjoint of structured programs; cf. Griewank and Walther, "Evaluating Derivatives", 2nd ed., 2008, chapters 3
and 12.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tinote.autodiff.activity import active_variables, discardable_variables
from tinote.autodiff.emit import Emit, joined_tangents, tangent_numbers
from tinote.errors import DifferentiationError
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.build import Builder
from tinote.ir.custom_vjp import CustomVJP
from tinote.ir.primitives import Defaults, NoDerivative
from tinote.ir.prune import prune_unread
from tinote.ir.query import definitions, walk
from tinote.ir.rewrite import clone_region
from tinote.ir.types import Scalar, Stack, Tensor, Type, element_type, i64, is_float, tangent_type, with_element


class Adjoint(NamedTuple):
    """The reverse part of a function, before storage.

    `region` uses primal variables whatever their scope, except that a loop's own index takes the place of the primal
    one. Its parameters are those of the function and the adjoints of the results asked for, its yields the adjoints of
    the parameters asked for. An operation that reverses a primal loop or branch has that one as its `origin`.
    `trip_counts`: the variable that stands for the number of iterations of each `while` that is reversed. `broken`:
    stores of an active value into a buffer without a gradient, where a gradient path breaks.
    """

    region: ir.Region
    trip_counts: dict[ir.Op, ir.Var]
    broken: tuple[ir.Store | ir.Atomic, ...]


class _Carried(NamedTuple):
    """What a reverse loop carries: its parameters, their initial values, the primal variables they are adjoints of;
    `active`: positions in the primal loop.
    """

    params: tuple[ir.Var, ...]
    initial: tuple[ir.Atom, ...]
    targets: tuple[ir.Var, ...]
    active: tuple[int, ...]


class Reverser:
    """Differentiates one function. `arguments`: the result has a further parameter for the adjoint of each float that
    `fn` returns, and yields the adjoints of its float parameters. `directions`: how many adjoints a value has;
    gradients of fields hold as many for each number.
    """

    def __init__(self, fn: ir.Function, defaults: Defaults, *, arguments: bool = False, directions: int = 1) -> None:
        self.fn = fn
        self.directions = directions
        self.arguments = arguments
        self.active, self.temporaries, self.stacks = active_variables(fn, arguments=arguments)
        self.builder = Builder(defaults)
        self.emit = Emit(self.builder, definitions(fn.region), discardable_variables(fn))
        self.temporary_adjoints: dict[ir.Buffer, ir.Buffer] = {}
        self.stack_adjoints: dict[ir.Var, ir.Var] = {}
        self.trip_counts: dict[ir.Op, ir.Var] = {}
        self.broken: list[ir.Store | ir.Atomic] = []
        self.outermost = frozenset(fn.region.body)
        self._free_active: dict[ir.Region, dict[ir.Var, None]] = {}
        self.changing: set[ir.Op] = set()
        self.find_changing(fn.region)

    def adjoint(self) -> Adjoint:
        region = self.fn.region
        adjoints: dict[ir.Var, ir.Atom] = {}
        returned = [y for y in region.yields if self.arguments and is_float(y.type)]
        seeds = [self.variable(y, "d_result") for y in returned]
        with self.builder.region(*region.params, *seeds) as opened:
            for y, seed in zip(returned, seeds, strict=True):
                self.accumulate(adjoints, y, seed)
            self.block(region, adjoints)
            wanted = [q for q in region.params if self.arguments and is_float(q.type)]
            yields = [adjoints[q] if q in adjoints else self.zero_of(q) for q in wanted]
        return Adjoint(prune_unread(opened.close(*yields)), self.trip_counts, tuple(self.broken))

    # ---- adjoint bookkeeping

    def is_active(self, atom: ir.Atom) -> bool:
        return type(atom) is ir.Var and atom in self.active

    def accumulate(self, adjoints: dict[ir.Var, ir.Atom], target: ir.Atom, g: ir.Atom | None) -> None:
        """Add `g` to the adjoint of a primal variable."""
        if g is None or not self.is_active(target) or _is_zero(g):
            return
        assert isinstance(target, ir.Var)
        known = adjoints.get(target)
        adjoints[target] = g if known is None or _is_zero(known) else self.emit.add(known, g)

    def type_of_adjoint(self, t: Type) -> Type:
        """The type of the adjoints of what has type `t`, along all directions."""
        if self.directions == 1:
            return t
        if isinstance(t, Stack):
            return Stack(with_element(t.content, tangent_type(element_type(t), self.directions)))
        return with_element(t, tangent_type(element_type(t), self.directions))

    def variable(self, of: ir.Atom, name: str = "") -> ir.Var:
        """A variable for an adjoint of what is `of`."""
        return ir.Var(self.type_of_adjoint(of.type), name)

    def zero_of(self, v: ir.Var) -> ir.Atom:
        return self.emit.zero_of(self.type_of_adjoint(v.type))

    def adjoint_of(self, buffer: ir.Buffer) -> ir.Buffer | None:
        if buffer.kind is not ir.BufferKind.TEMPORARY:
            return buffer.adjoint
        if buffer not in self.temporaries:
            return None
        found = self.temporary_adjoints.get(buffer)
        if found is None:
            dtype = tangent_type(buffer.dtype, self.directions)
            found = self.temporary_adjoints[buffer] = ir.Buffer(
                f"{buffer.name}.grad", dtype, buffer.shape, buffer.element, ir.BufferKind.TEMPORARY
            )
        return found

    def find_changing(self, region: ir.Region) -> bool:
        """Note which operations change memory or a stack in a way that has an adjoint; whether any in `region` does."""
        before = len(self.changing)
        for op in region.body:
            if isinstance(op, ir.Store | ir.Atomic):
                changes = self.adjoint_of(op.buffer) is not None or self.is_active(op.value)
            elif isinstance(op, ir.Push | ir.Pop):
                changes = op.args[0] in self.stacks
            else:
                changes = True in [self.find_changing(inner) for inner in op.regions]
            if changes:
                self.changing.add(op)
        return len(self.changing) > before

    def seeds_of(self, op: ir.Op, adjoints: dict[ir.Var, ir.Atom]) -> list[ir.Atom | None] | None:
        """Take the adjoints of an operation's outs; None where nothing inside of it has an adjoint."""
        seeds = [adjoints.pop(v, None) for v in op.outs]
        return seeds if op in self.changing or any(g is not None for g in seeds) else None

    def outer_active(self, *regions: ir.Region) -> list[ir.Var]:
        """The active variables from outside that these regions use, in order of first use."""
        found: dict[ir.Var, None] = {}
        for region in regions:
            found.update(self.free_active(region))
        return list(found)

    def free_active(self, region: ir.Region) -> dict[ir.Var, None]:
        """Those of one region. Each nest asks for those of all its levels, so what is found of an inner one is kept."""
        known = self._free_active.get(region)
        if known is not None:
            return known
        bound = set(region.params)
        found: dict[ir.Var, None] = {}

        def note(used: Iterable[ir.Atom]) -> None:
            found.update([(a, None) for a in used if isinstance(a, ir.Var) and a in self.active and a not in bound])

        for op in region.body:
            note(op.args)
            for inner in op.regions:
                note(self.free_active(inner))
            bound.update(op.outs)
        note(region.yields)
        self._free_active[region] = found
        return found

    # ---- the adjoint of one operation

    def block(self, region: ir.Region, adjoints: dict[ir.Var, ir.Atom]) -> None:
        """Emit the adjoints of the operations of `region`, last one first; `adjoints` is updated in place."""
        loc, origin = self.builder.loc, self.builder.origin
        for op in region.body:
            if isinstance(op, ir.NewStack) and op.out in self.stacks:
                adjoint = self.stack_adjoints[op.out] = self.variable(op.out, f"d_{op.out.name}")
                self.builder.emit(ir.NewStack(op.args, (adjoint,), (), op.loc, op))
        for op in reversed(region.body):
            self.builder.loc, self.builder.origin = op.loc, op
            self.backward(op, adjoints)
        self.builder.loc, self.builder.origin = loc, origin

    def backward(self, op: ir.Op, adjoints: dict[ir.Var, ir.Atom]) -> None:
        if isinstance(op, ir.Prim):
            g = adjoints.pop(op.out, None)
            if g is not None:
                self.backward_prim(op, g, adjoints)
        elif isinstance(op, ir.Load):
            g = adjoints.pop(op.out, None)
            target = self.adjoint_of(op.buffer)
            if g is not None and target is not None:
                self.builder.atomic(p.add, target, op.index, g)
        elif isinstance(op, ir.Store | ir.Atomic):
            self.backward_write(op, adjoints)
        elif isinstance(op, ir.Push | ir.Pop):
            self.backward_stack(op, adjoints)
        elif isinstance(op, ir.If):
            self.backward_if(op, adjoints)
        elif isinstance(op, ir.For) and op.parallel and op in self.outermost:
            self.backward_parallel(op, adjoints)
        elif isinstance(op, ir.For | ir.While):
            self.backward_loop(op, adjoints)
        elif isinstance(op, CustomVJP):
            self.backward_custom(op, adjoints)

    def backward_prim(self, op: ir.Prim, g: ir.Atom, adjoints: dict[ir.Var, ir.Atom]) -> None:
        if op.prim is p.extract:
            tensor = op.args[0]
            if not self.is_active(tensor):
                return
            assert isinstance(tensor, ir.Var)
            index = op.args[1:]
            known = adjoints.get(tensor)
            whole = self.zero_of(tensor) if known is None else known
            component = g if known is None else self.emit.add(self.builder.extract(whole, *index), g)
            adjoints[tensor] = self.builder.insert(whole, index, component)
            return
        if op.prim is p.insert:
            tensor, index, value = op.args[0], op.args[1:-1], op.args[-1]
            self.accumulate(adjoints, value, self.builder.extract(g, *index))
            if self.is_active(tensor):
                assert isinstance(tensor.type, Tensor)
                self.accumulate(adjoints, tensor, self.builder.insert(g, index, ir.Lit(0.0, element_type(g.type))))
            return
        rule = op.prim.derivative
        if isinstance(rule, NoDerivative):
            if not rule.zero:
                raise DifferentiationError(f"`{op.prim}` cannot be differentiated: {rule.reason}", op.loc)
            return
        args = tuple(map(self.emit.without_stop_gradient, op.args))
        for primal, contribution in zip(op.args, rule(self.emit, g, op.out, args), strict=True):
            self.accumulate(adjoints, primal, contribution)

    def backward_write(self, op: ir.Store | ir.Atomic, adjoints: dict[ir.Var, ir.Atom]) -> None:
        target = self.adjoint_of(op.buffer)
        if target is None:
            if op.buffer.kind is not ir.BufferKind.TEMPORARY and self.is_active(op.value):
                self.broken.append(op)
            return
        returned = [g for v in op.outs if (g := adjoints.pop(v, None)) is not None]
        if isinstance(op, ir.Atomic) and (op.prim is not p.add or returned):
            what = "the old value that this returns" if op.prim is p.add else f"the gradient of this atomic `{op.prim}`"
            raise DifferentiationError(
                f"{what} depends on the order in which the iterations of a parallel loop touch '{op.buffer.name}'",
                op.loc,
                hint="write ti.loop_config(serialize=True) before the loop",
            )
        g = self.builder.load(target, op.index)
        if isinstance(op, ir.Store):
            # What stood here before does not reach the loss any more.
            self.builder.store(target, op.index, ir.Lit(0.0, target.dtype))
        self.accumulate(adjoints, op.value, g)

    def backward_stack(self, op: ir.Push | ir.Pop, adjoints: dict[ir.Var, ir.Atom]) -> None:
        """What the primal pops, its adjoint pushes, and the other way round: the last adjoint in is that of the first
        value out. A function pops whatever it pushes.
        """
        stack = op.args[0]
        assert isinstance(stack, ir.Var)
        adjoint = self.stack_adjoints.get(stack)
        if adjoint is None:
            return
        if isinstance(op, ir.Pop):
            g = adjoints.pop(op.out, None)
            self.builder.emit(ir.Push((adjoint, self.zero_of(op.out) if g is None else g), (), (), op.loc, op))
        else:
            g = self.variable(op.args[1])
            self.builder.emit(ir.Pop((adjoint,), (g,), (), op.loc, op))
            self.accumulate(adjoints, op.args[1], g)

    def backward_custom(self, op: CustomVJP, adjoints: dict[ir.Var, ir.Atom]) -> None:
        """The adjoints of the inputs as the custom VJP computes them from those of the outs, where there are any."""
        seeds = {v: adjoints.pop(v) for v in op.outs if v in adjoints}
        if not seeds:
            return
        given = [seeds[v] if v in seeds else self.zero_of(v) for v in op.outs]
        numbers = [tangent_numbers(self.builder, g, self.directions) for g in given]
        found = [self.custom_adjoints(op, along) for along in zip(*numbers, strict=True)]
        for source, *along in zip(op.inputs, *found, strict=True):
            if self.is_active(source):
                self.accumulate(adjoints, source, joined_tangents(self.builder, along))

    def custom_adjoints(self, op: CustomVJP, given: Sequence[ir.Atom]) -> tuple[ir.Atom, ...]:
        """The adjoints of its inputs from those of its outs, along one direction."""
        inside = dict(zip(op.adjoint.params, given, strict=True))
        copy, _ = clone_region(ir.Region((), op.adjoint.body, op.adjoint.yields), inside)
        for original, inner in zip(walk(op.adjoint), walk(copy), strict=True):
            inner.origin = original
        for inner in copy.body:
            self.builder.emit(inner)
        return copy.yields

    def backward_if(self, op: ir.If, adjoints: dict[ir.Var, ir.Atom]) -> None:
        """The reverse of a branch is a branch. What both arms leave alone is not yielded."""
        seeds = self.seeds_of(op, adjoints)
        if seeds is None:
            return
        outer = self.outer_active(op.then, op.orelse)
        before: list[ir.Atom] = [adjoints[v] if v in adjoints else self.zero_of(v) for v in outer]
        branches: list[tuple[list[ir.Op], list[ir.Atom]]] = []
        for region in op.regions:
            inner = dict(zip(outer, before, strict=True))
            with self.builder.region() as opened:
                for y, g in zip(region.yields, seeds, strict=True):
                    self.accumulate(inner, y, g)
                self.block(region, inner)
            branches.append((opened.body, [inner[v] for v in outer]))
        same = {k for k in range(len(outer)) if branches[0][1][k] is branches[1][1][k]}
        touched = [k for k in range(len(outer)) if k not in same]
        then, orelse = [ir.Region((), tuple(body), tuple([after[k] for k in touched])) for body, after in branches]
        outs = tuple([self.variable(outer[k]) for k in touched])
        self.builder.emit(ir.If(op.condition, then, orelse, outs, op.loc, op))
        adjoints.update({outer[k]: out for k, out in zip(touched, outs, strict=True)})
        adjoints.update({outer[k]: g for k in same if (g := branches[0][1][k]) is not before[k]})

    # ---- loops

    def backward_parallel(self, op: ir.For, adjoints: dict[ir.Var, ir.Atom]) -> None:
        """An outermost parallel loop. The adjoints of active values from outside of it meet in temporaries."""
        if self.seeds_of(op, adjoints) is None:
            return
        shared = {v: self.shared_adjoint(v) for v in self.outer_active(op.body)}
        inner: dict[ir.Var, ir.Atom] = {}
        index = ir.Var(op.index.type, op.index.name)
        with self.builder.region(index) as opened:
            self.block(op.body, inner)
            for v, buffer in shared.items():
                if v in inner:
                    for component in ir.component_indices(buffer.element):
                        share = self.builder.extract(inner[v], *component) if component else inner[v]
                        self.builder.atomic(p.add, buffer, component, share)
        self.builder.emit(ir.For(op.lo, op.hi, (), opened.close(), (), op.loc, parallel=True, origin=op))
        for v, buffer in shared.items():
            if v in inner:
                sums = [self.builder.load(buffer, component) for component in ir.component_indices(buffer.element)]
                total = self.builder.pack(sums, t) if isinstance(t := self.type_of_adjoint(v.type), Tensor) else sums[0]
                self.accumulate(adjoints, v, total)

    def shared_adjoint(self, v: ir.Var) -> ir.Buffer:
        """A temporary in which the iterations of a parallel loop add up the adjoint of `v`."""
        t = self.type_of_adjoint(v.type)
        assert isinstance(t, Scalar | Tensor)
        dtype, element = (t.dtype, t.shape) if isinstance(t, Tensor) else (t, ())
        return ir.Buffer(f"{v.name or 'shared'}.grad", dtype, (), element, ir.BufferKind.TEMPORARY)

    def backward_loop(self, op: ir.For | ir.While, adjoints: dict[ir.Var, ir.Atom]) -> None:
        seeds = self.seeds_of(op, adjoints)
        if seeds is None:
            return
        if isinstance(op, ir.For):
            index, params, lo, hi = ir.Var(op.index.type, op.index.name), op.carried, op.lo, op.hi
        else:
            index, params, lo = ir.Var(i64, "iteration"), op.body.params, ir.Lit(0, i64)
            hi = self.trip_counts[op] = ir.Var(i64, "trip_count")
        body, carried = self.adjoint_body(op.regions[-1], params, seeds, adjoints)
        outs = tuple([self.variable(v) for v in carried.targets])
        body = ir.Region((index, *carried.params), body.body, body.yields)
        unordered = isinstance(op, ir.For) and op.parallel
        self.builder.emit(
            ir.For(
                lo,
                hi,
                carried.initial,
                body,
                outs,
                op.loc,
                parallel=unordered and not outs,
                reverse=not unordered and not (isinstance(op, ir.For) and op.reverse),
                origin=op,
            )
        )
        self.settle(carried, outs, op.initial, adjoints)

    def adjoint_body(
        self,
        region: ir.Region,
        params: tuple[ir.Var, ...],
        seeds: list[ir.Atom | None],
        adjoints: dict[ir.Var, ir.Atom],
    ) -> tuple[ir.Region, _Carried]:
        """One iteration of a loop backwards, and what the reverse loop carries, which is free in it: the adjoint of
        each active value that the primal loop carries, and of each active variable from outside.
        """
        outer = self.outer_active(region)
        active = [k for k, q in enumerate(params) if q in self.active]
        flowing = [self.variable(params[k], f"d_{params[k].name}") for k in active]
        sums = [self.variable(v, f"d_{v.name}") for v in outer]
        inner: dict[ir.Var, ir.Atom] = dict(zip(outer, sums, strict=True))
        with self.builder.region() as opened:
            for k, g in zip(active, flowing, strict=True):
                self.accumulate(inner, region.yields[k], g)
            self.block(region, inner)
            # A carried value that the body yields unchanged is both a yield and a parameter: its adjoint was
            # accumulated under its own name.
            finished = [inner[params[k]] if params[k] in inner else self.zero_of(params[k]) for k in active]
        touched = [k for k, v in enumerate(outer) if inner[v] is not sums[k]]
        body = opened.close(*finished, *[inner[outer[k]] for k in touched])
        start: list[ir.Atom] = [g if (g := seeds[k]) is not None else self.zero_of(params[k]) for k in active]
        start += [adjoints[outer[k]] if outer[k] in adjoints else self.zero_of(outer[k]) for k in touched]
        carried = _Carried(
            (*flowing, *[sums[k] for k in touched]),
            tuple(start),
            (*[params[k] for k in active], *[outer[k] for k in touched]),
            tuple(active),
        )
        return body, carried

    def settle(
        self, carried: _Carried, outs: tuple[ir.Var, ...], initial: tuple[ir.Atom, ...], adjoints: dict[ir.Var, ir.Atom]
    ) -> None:
        """After the reverse loop: adjoints of outside variables are replaced by the loop's sums, and what reached the
        first iteration goes to the initial values.
        """
        for target, out in list(zip(carried.targets, outs, strict=True))[len(carried.active) :]:
            adjoints[target] = out
        for k, out in zip(carried.active, outs, strict=False):
            self.accumulate(adjoints, initial[k], out)


def _is_zero(g: ir.Atom) -> bool:
    return isinstance(g, ir.Lit) and g.value == 0
