"""Reverse mode: a function that accumulates adjoints, from a function in scalar form.

    for parallel %i in 0..8:                 for parallel %i in 0..8:
      %x = load @x[%i]                         %x = load @x[%i]            the forward part, without its side effects
      %y = sin %x                      ->      %g = load @U.grad[]         then the reverse part
      atomic add @U[], %y                      %c = cos %x
                                               %d = mul %g, %c
                                               atomic add @x.grad[%i], %d

Each region is emitted twice over: its forward part again, without side effects, and behind it the adjoint of each
operation in reverse order. The reverse part refers to forward variables as it likes; whatever of the forward part it
does not refer to is pruned away. A parallel loop carries nothing, so that its reverse is one fused parallel loop. A
serial loop's reverse runs the iterations backwards, and each starts from the values that the loop carried into it:
*which* of them it needs is read off as the free variables of the finished reverse region, and exactly those are pushed
by the forward loop and popped by the reverse one. Everything else in an iteration is recomputed from them. The cost: a
value in d nested loops is recomputed at most d times; the memory: the needed carried values times the trip count.

The loads that are executed again must find what the primal found. `needed_loads` lists them (`hazards` checks them).

Method: adjoint of structured programs by reversal with recomputation; cf. Griewank and Walther, "Evaluating
Derivatives", 2nd ed., 2008, chapters 3 and 12.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from tinote.autodiff.activity import discardable_variables, varied_variables
from tinote.autodiff.custom_vjp import backward_told
from tinote.autodiff.iterations import (
    Carried,
    add_to_shared,
    content_of,
    counting,
    look,
    pruned,
    shared_adjoint,
    shared_sum,
    with_pushes,
)
from tinote.autodiff.keeping import NOTHING, Copy, Keeper, Keeping, copy_buffer, finished
from tinote.autodiff.rules import RULES, Emit, NoDerivative
from tinote.errors import DifferentiationError
from tinote.ir import primitives as p
from tinote.ir.build import Builder, OpenRegion
from tinote.ir.custom_vjp import Replaced
from tinote.ir.nodes import (
    Atom,
    Atomic,
    Buffer,
    BufferKind,
    Check,
    For,
    Function,
    If,
    Lit,
    Load,
    Op,
    Pop,
    Prim,
    Print,
    Region,
    Store,
    Var,
    While,
)
from tinote.ir.primitives import Defaults
from tinote.ir.prune import prune
from tinote.ir.query import free_variables, walk
from tinote.ir.types import Scalar, Stack, Tensor, i64, is_float

__all__ = ["Reverser"]


class Reverser:
    """One function being differentiated. `severed` and `unavailable` collect what the result must be judged by.

    `arguments`: the result has a further parameter for the adjoint of each float that `fn` returns, and returns the
    adjoints of its float parameters.
    """

    def __init__(
        self, fn: Function, defaults: Defaults, keeping: Keeping = NOTHING, *, arguments: bool = False
    ) -> None:
        self.fn = fn
        self.keeping = keeping
        self.arguments = arguments
        self.varied, self.temporaries = varied_variables(fn, arguments=arguments)
        self.builder = Builder(defaults)
        self.discardable = discardable_variables(fn)
        self.emit = Emit(self.builder, {}, set())
        self.temporary_adjoints: dict[Buffer, Buffer] = {}
        self.severed: list[Store | Atomic] = []
        self.unavailable: dict[Var, Op] = {}

    # ---- the whole function

    def function_region(self) -> Region:
        region = self.fn.region
        env: dict[Var, Atom] = {v: v for v in region.params}
        adjoints: dict[Var, Atom] = {}
        returned = [y for y in region.yields if self.arguments and is_float(y.type)]
        seeds = [Var(y.type, "d_result") for y in returned]
        with self.builder.region(*region.params, *seeds) as opened:
            for y, seed in zip(returned, seeds, strict=True):
                self.accumulate(adjoints, y, seed)
            opened.body.extend(self.block(region, env, adjoints, top=True))
            wanted = [q for q in region.params if self.arguments and is_float(q.type)]
            yields = [adjoints[q] if q in adjoints else self.zero_of(q) for q in wanted]
        return pruned(opened.close(*yields))

    # ---- adjoint bookkeeping

    def is_varied(self, atom: Atom) -> bool:
        return type(atom) is Var and atom in self.varied

    def accumulate(self, adjoints: dict[Var, Atom], target: Atom, g: Atom | None) -> None:
        """Add `g` to the adjoint of a primal variable."""
        if g is None or not self.is_varied(target) or (isinstance(g, Lit) and g.value == 0):
            return
        assert isinstance(target, Var)
        known = adjoints.get(target)
        adjoints[target] = g if known is None else self.emit.add(known, g)

    def zero_of(self, v: Var) -> Atom:
        return self.emit.zero(v)

    def adjoint_of(self, buffer: Buffer) -> Buffer | None:
        if buffer.kind is not BufferKind.TEMPORARY:
            return buffer.adjoint
        if buffer not in self.temporaries:
            return None
        return self.temporary_adjoint(buffer, buffer.name, buffer.dtype)

    def temporary_adjoint(self, key: Buffer, name: str, dtype: Scalar) -> Buffer:
        found = self.temporary_adjoints.get(key)
        if found is None:
            found = self.temporary_adjoints[key] = Buffer(
                f"{name}.grad", dtype, key.shape, key.element, BufferKind.TEMPORARY
            )
        return found

    # ---- one region: forward part, then reverse part

    def block(self, region: Region, env: dict[Var, Atom], adjoints: dict[Var, Atom], top: bool = False) -> list[Op]:
        """The operations of `region` forward and then backward. `env`: primal variable -> what stands for it here;
        `adjoints` is updated in place.
        """
        items: list[list[Op]] = []
        kept: dict[Op, Copy] = {}
        keeper = Keeper(self, self.keeping.buffers)
        with self.builder.region() as forward:
            for op in region.body:
                start = len(forward.body)
                if top and op in self.keeping.fused:
                    keeper.run_ahead(op, env, self.keeping.saved.get(op, ()))
                elif top and op in self.keeping.ops:
                    kept[op] = keeper.forward(op, env)
                else:
                    self.forward(op, env, keep_temporaries=top)
                items.append(forward.body[start:])
        with self.builder.region() as backward:
            for op, item in zip(reversed(region.body), reversed(items), strict=True):
                self.builder.loc, self.builder.origin = op.loc, op
                if op in kept:
                    keeper.backward(op, kept[op], env, adjoints)
                    item[:] = finished(kept[op])
                else:
                    for saved, buffer in self.keeping.saved.get(op, ()) if top else ():
                        copy_buffer(self.builder, saved, buffer)
                    if top and op in self.keeping.fused and not (isinstance(op, For) and op.parallel):
                        Keeper(self, self.keeping.buffers).fused_serial(op, env, adjoints)
                    else:
                        self.backward(op, item, env, adjoints, top)
        return [*keeper.stacks, *chain.from_iterable(items), *backward.body]

    def forward(self, op: Op, env: dict[Var, Atom], *, keep_temporaries: bool) -> None:
        """Clone `op` without side effects. `origin` of the copy is the primal operation."""
        if isinstance(op, Store | Atomic):
            if isinstance(op, Atomic) and op.outs:
                # Its value depended on the moment of execution: it cannot be had again.
                env[op.out] = lost = Var(op.out.type, op.out.name)
                self.unavailable[lost] = op
            if not (keep_temporaries and op.buffer.kind is BufferKind.TEMPORARY):
                return
        elif isinstance(op, Check | Print):
            return
        args = tuple([look(env, a) for a in op.args])
        regions = tuple([self.forward_region(r, env, keep_temporaries) for r in op.regions])
        outs: tuple[Var, ...] = ()
        if not isinstance(op, Atomic):
            outs = tuple([Var(v.type, v.name) for v in op.outs])
            env.update(zip(op.outs, outs, strict=True))
        self.builder.emit(self.register(op, op.rebuilt(args, regions, outs)))

    def register(self, op: Op, copy: Op) -> Op:
        """Remember what a forward copy is the copy of; rules ask how its outs were computed."""
        copy.origin = op
        for v, out in zip(op.outs, copy.outs, strict=False):
            self.emit.define(out, copy, discardable=v in self.discardable)
        return copy

    def forward_region(self, region: Region, env: dict[Var, Atom], keep_temporaries: bool) -> Region:
        params = tuple([Var(q.type, q.name) for q in region.params])
        env.update(zip(region.params, params, strict=True))
        with self.builder.region(*params) as inner:
            for op in region.body:
                self.forward(op, env, keep_temporaries=keep_temporaries)
        return inner.close(*[look(env, y) for y in region.yields])

    # ---- the adjoint of one operation

    def backward(self, op: Op, item: list[Op], env: dict[Var, Atom], adjoints: dict[Var, Atom], top: bool) -> None:
        if isinstance(op, Prim):
            g = adjoints.pop(op.out, None)
            if g is not None:
                self.backward_prim(op, g, env, adjoints)
        elif isinstance(op, Load):
            g = adjoints.pop(op.out, None)
            target = self.adjoint_of(op.buffer)
            if g is not None and target is not None:
                self.builder.atomic(p.add, target, [look(env, a) for a in op.index], g)
        elif isinstance(op, Store | Atomic):
            self.backward_write(op, env, adjoints)
        elif isinstance(op, If):
            self.backward_if(op, env, adjoints)
        elif isinstance(op, For):
            self.backward_for(op, item, env, adjoints, top)
        elif isinstance(op, While):
            self.backward_while(op, item, env, adjoints)
        elif isinstance(op, Replaced):
            backward_told(self, op, env, adjoints)

    def backward_prim(self, op: Prim, g: Atom, env: dict[Var, Atom], adjoints: dict[Var, Atom]) -> None:
        if op.prim is p.extract:
            tensor = op.args[0]
            if not self.is_varied(tensor):
                return
            assert isinstance(tensor, Var)
            index = [look(env, a) for a in op.args[1:]]
            known = adjoints.get(tensor)
            whole = self.zero_of(tensor) if known is None else known
            component = g if known is None else self.emit.add(self.builder.extract(whole, *index), g)
            adjoints[tensor] = self.builder.insert(whole, index, component)
            return
        if op.prim is p.insert:
            tensor, value = op.args[0], op.args[-1]
            index = [look(env, a) for a in op.args[1:-1]]
            self.accumulate(adjoints, value, self.builder.extract(g, *index))
            if self.is_varied(tensor):
                assert isinstance(tensor.type, Tensor)
                self.accumulate(adjoints, tensor, self.builder.insert(g, index, Lit(0.0, tensor.type.dtype)))
            return
        rule = RULES[op.prim]
        if isinstance(rule, NoDerivative):
            if not rule.zero:
                raise DifferentiationError(f"`{op.prim}` cannot be differentiated: {rule.reason}", op.loc)
            return
        y = env[op.out]
        assert isinstance(y, Var)
        args = tuple([self.emit.released(look(env, a)) for a in op.args])
        for primal, contribution in zip(op.args, rule(self.emit, g, y, args), strict=True):
            self.accumulate(adjoints, primal, contribution)

    def backward_write(self, op: Store | Atomic, env: dict[Var, Atom], adjoints: dict[Var, Atom]) -> None:
        target = self.adjoint_of(op.buffer)
        if target is None:
            if op.buffer.kind is not BufferKind.TEMPORARY and self.is_varied(op.value):
                self.severed.append(op)
            return
        index = [look(env, a) for a in op.index]
        returned = [g for v in op.outs if (g := adjoints.pop(v, None)) is not None]
        if isinstance(op, Atomic) and (op.prim is not p.add or returned):
            what = "the old value that this returns" if op.prim is p.add else f"the gradient of this atomic `{op.prim}`"
            raise DifferentiationError(
                f"{what} depends on the order in which the turns of a parallel loop touch '{op.buffer.name}'",
                op.loc,
                hint="write ti.loop_config(serialize=True) in front of the loop",
            )
        g = self.builder.load(target, index)
        if isinstance(op, Store):
            # What stood here before does not reach the loss any more.
            self.builder.store(target, index, Lit(0.0, target.dtype))
        self.accumulate(adjoints, op.value, g)

    def outer_varied(self, *regions: Region) -> list[Var]:
        found: dict[Var, None] = {}
        for region in regions:
            found.update(dict.fromkeys(v for v in free_variables(region) if v in self.varied))
        return list(found)

    def backward_if(
        self,
        op: If,
        env: dict[Var, Atom],
        adjoints: dict[Var, Atom],
        emit: Callable[[int, OpenRegion, dict[Var, Atom]], None] | None = None,
        finish: Callable[[int, Region], Region] = lambda k, region: region,
    ) -> None:
        """The reverse of a branch is a branch. `emit` adds the code for arm `k`, and `finish` completes its region."""
        seeds = [adjoints.pop(v, None) for v in op.outs]
        if not self.has_adjoint_work(op, seeds):
            return
        outer = self.outer_varied(op.then, op.orelse)
        before: list[Atom] = [adjoints[v] if v in adjoints else self.zero_of(v) for v in outer]
        branches: list[tuple[list[Op], list[Atom]]] = []
        for k, region in enumerate(op.regions):
            inner = dict(zip(outer, before, strict=True))
            with self.builder.region() as opened:
                self.seed(inner, region.yields, seeds)
                if emit is None:
                    self.emit_block(opened, region, env, inner)
                else:
                    emit(k, opened, inner)
            branches.append((opened.body, [inner[v] for v in outer]))
        touched = [k for k in range(len(outer)) if any(after[k] is not before[k] for _, after in branches)]
        regions = [
            finish(arm, prune(Region((), tuple(body), tuple([after[k] for k in touched]))))
            for arm, (body, after) in enumerate(branches)
        ]
        outs = tuple([Var(outer[k].type) for k in touched])
        self.builder.emit(If(look(env, op.condition), regions[0], regions[1], outs, op.loc, op))
        adjoints.update({outer[k]: out for k, out in zip(touched, outs, strict=True)})

    def seed(self, adjoints: dict[Var, Atom], yields: tuple[Atom, ...], seeds: list[Atom | None]) -> None:
        for y, g in zip(yields, seeds, strict=True):
            self.accumulate(adjoints, y, g)

    def emit_block(self, opened: OpenRegion, region: Region, env: dict[Var, Atom], adjoints: dict[Var, Atom]) -> None:
        """Forward and reverse part of `region`, at the end of the open one. What the region binds is its own here: each
        use of it gets fresh variables.
        """
        loc, origin = self.builder.loc, self.builder.origin
        opened.body.extend(self.block(region, dict(env), adjoints))
        self.builder.loc, self.builder.origin = loc, origin

    def has_adjoint_work(self, op: Op, seeds: list[Atom | None]) -> bool:
        if any(g is not None for g in seeds):
            return True
        return any(
            isinstance(inner, Store | Atomic) and self.touches_adjoint(inner) for inner in walk(Region((), (op,)))
        )

    def touches_adjoint(self, op: Store | Atomic) -> bool:
        return self.adjoint_of(op.buffer) is not None or self.is_varied(op.value)

    # ---- loops

    def backward_for(self, op: For, item: list[Op], env: dict[Var, Atom], adjoints: dict[Var, Atom], top: bool) -> None:
        seeds = [adjoints.pop(v, None) for v in op.outs]
        if not self.has_adjoint_work(op, seeds):
            return
        outer = self.outer_varied(op.body)
        if op.parallel and top and (outer or op in self.keeping.ops):
            self.backward_shared(op, outer, env, adjoints)
            return
        index = Var(op.index.type, op.index.name)
        bounds = look(env, op.lo), look(env, op.hi)
        pops, result, carried = self.reverse_loop(
            op.body, op.carried, op.initial, seeds, outer, {op.index: index}, env, adjoints
        )
        outs = tuple([Var(v.type) for v in carried.targets])
        body = Region((index, *carried.params), result.body, result.yields)
        if pops:
            forward = item[-1]
            assert isinstance(forward, For)
            item[:] = with_pushes(self.builder, forward, forward.carried, pops, bounds)
        parallel = op.parallel and not carried.targets
        backwards = not op.reverse and not op.parallel
        self.builder.emit(
            For(*bounds, carried.initial, body, outs, op.loc, parallel=parallel, reverse=backwards, origin=op)
        )
        self.settle(carried, outs, op.initial, adjoints)

    def backward_shared(self, op: For, outer: list[Var], env: dict[Var, Atom], adjoints: dict[Var, Atom]) -> None:
        """A parallel loop that reads varying values from outside of it: their adjoints meet in temporaries."""
        index = Var(op.index.type, op.index.name)
        shared = {v: shared_adjoint(v) for v in outer}
        with self.builder.region(index) as opened:
            inner: dict[Var, Atom] = {}
            inside = {**env, op.index: index}
            if op in self.keeping.ops:
                Keeper(self, self.keeping.buffers).fused(opened, op.body, inside, inner)
            else:
                self.emit_block(opened, op.body, inside, inner)
            for v, buffer in shared.items():
                if v in inner:
                    add_to_shared(self.builder, buffer, inner[v])
        body = prune(opened.close())
        self.builder.emit(For(look(env, op.lo), look(env, op.hi), (), body, (), op.loc, parallel=True, origin=op))
        for v, buffer in shared.items():
            if v in inner:
                self.accumulate(adjoints, v, shared_sum(self.builder, buffer, v))

    def backward_while(self, op: While, item: list[Op], env: dict[Var, Atom], adjoints: dict[Var, Atom]) -> None:
        seeds = [adjoints.pop(v, None) for v in op.outs]
        if not self.has_adjoint_work(op, seeds):
            return
        outer = self.outer_varied(op.body)
        turn = Var(i64, "turn")
        pops, result, carried = self.reverse_loop(op.body, op.body.params, op.initial, seeds, outer, {}, env, adjoints)
        outs = tuple([Var(v.type) for v in carried.targets])
        body = Region((turn, *carried.params), result.body, result.yields)
        forward = item[-1]
        assert isinstance(forward, While)
        counted, count = counting(forward)
        item[:] = with_pushes(self.builder, counted, counted.body.params[:-1], pops, None)
        self.builder.emit(For(Lit(0, i64), count, carried.initial, body, outs, op.loc, reverse=True, origin=op))
        self.settle(carried, outs, op.initial, adjoints)

    def reverse_loop(
        self,
        region: Region,
        params: tuple[Var, ...],
        initial: tuple[Atom, ...],
        seeds: list[Atom | None],
        outer: list[Var],
        known: dict[Var, Atom],
        env: dict[Var, Atom],
        adjoints: dict[Var, Atom],
    ) -> tuple[list[tuple[int, Var]], Region, Carried]:
        """The body of a loop that runs `region` backwards.

        Carried through it: the adjoint of each varying value that the primal loop carries, and of each varying variable
        from outside. Gives the positions of the primal carried values that the body needs, each with the stack it pops;
        the body; and what the new loop carries.
        """
        entering = [Var(q.type, q.name) for q in params]
        inside = {**env, **known, **dict(zip(params, entering, strict=True))}
        body, carried = self.adjoint_body(
            region,
            params,
            initial,
            seeds,
            outer,
            adjoints,
            lambda opened, inner: self.emit_block(opened, region, inside, inner),
        )
        free = set(free_variables(body))
        pops = [(k, Var(Stack(content_of(v)), v.name)) for k, v in enumerate(entering) if v in free]
        popping: list[Op] = [Pop((stack,), (entering[k],)) for k, stack in pops]
        return pops, Region((), (*popping, *body.body), body.yields), carried

    def adjoint_body(
        self,
        region: Region,
        params: tuple[Var, ...],
        initial: tuple[Atom, ...],
        seeds: list[Atom | None],
        outer: list[Var],
        adjoints: dict[Var, Atom],
        emit: Callable[[OpenRegion, dict[Var, Atom]], None],
    ) -> tuple[Region, Carried]:
        """One turn of a loop backwards: `emit` adds the code for `region` to the open region and updates the adjoints
        it is given. What the loop carries is free in the result.
        """
        active = [k for k, q in enumerate(params) if q in self.varied]
        flowing = [Var(params[k].type, f"d_{params[k].name}") for k in active]
        sums = [Var(v.type, f"d_{v.name}") for v in outer]
        inner: dict[Var, Atom] = dict(zip(outer, sums, strict=True))
        with self.builder.region() as opened:
            for k, g in zip(active, flowing, strict=True):
                self.accumulate(inner, region.yields[k], g)
            emit(opened, inner)
            # A carried value that the body yields unchanged is both a yield and a parameter: its adjoint was
            # accumulated under its own name.
            yields = [inner.get(params[k]) for k in active]
            finished = [g if g is not None else self.zero_of(params[k]) for k, g in zip(active, yields, strict=True)]
        touched = [k for k, v in enumerate(outer) if inner[v] is not sums[k]]
        body = prune(opened.close(*finished, *[inner[outer[k]] for k in touched]))
        seeded = [seeds[k] for k in active]
        start: list[Atom] = [
            g if g is not None else self.zero_of(params[k]) for k, g in zip(active, seeded, strict=True)
        ]
        start += [adjoints[outer[k]] if outer[k] in adjoints else self.zero_of(outer[k]) for k in touched]
        carried = Carried(
            (*flowing, *[sums[k] for k in touched]),
            tuple(start),
            (*[params[k] for k in active], *[outer[k] for k in touched]),
            tuple(active),
        )
        return body, carried

    def settle(
        self, carried: Carried, outs: tuple[Var, ...], initial: tuple[Atom, ...], adjoints: dict[Var, Atom]
    ) -> None:
        """After the reverse loop: adjoints of outside variables are replaced by the loop's sums, and what reached the
        first iteration goes to the initial values.
        """
        for target, out in list(zip(carried.targets, outs, strict=True))[len(carried.active) :]:
            adjoints[target] = out
        for k, out in zip(carried.active, outs, strict=False):
            self.accumulate(adjoints, initial[k], out)
