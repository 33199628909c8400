"""Storage: how reverse code gets the primal values that it uses, for each of its free variables.

    for %i in 0..9 carry %s = %a:                %st = stack
      %t = sin %s                                for %i in 0..9 carry %s = %a:
      yield %t                                     push %st, %s
    …                                     ->       %t = sin %s
    for reverse %j in 0..9 carry %g = %d:          yield %t
      %c = cos %s                                …
      %h = mul %g, %c                            for reverse %j in 0..9 carry %g = %d:
      yield %h                                     %s.1 = pop %st
                                                   %c = cos %s.1
                                                   %h = mul %g, %c
                                                   yield %h

`reverse.py` emits reverse code against the primal variables. Here each gets the source of its value (`ValueSource`):

- **recomputed**: the operation that binds it is executed again, on operands that get theirs in the same way;
- **read again**: the same for a load, whose memory still holds what the primal found (`overwritten_inputs.py` checks
  that for every load that is executed again);
- **pushed** by the forward part on a stack, and popped by the reverse part;
- **copied**: the memory that it is loaded from is copied before it is overwritten, and copied back.

Where nothing is overwritten, the reverse of a loop recomputes an iteration from the values carried into it: these are
pushed. So are values that are expensive to compute (`exp`), if the forward part comes by them on the way to these. The
cost: a value in d nested loops is recomputed at most d times; the memory: what is pushed, times the trip count. A
reverse loop that only adds (`order_free.py`) runs forwards instead, and computes what its primal loop carries as that
did.

An iteration of an operation that overwrites what its own gradient needs cannot be executed again: it would read what
later iterations have written. Such an operation is executed once in its original order, with its effects, and what the
reverse part uses of it is pushed, except for arithmetic, which is recomputed from what was pushed. Which ones these are
is said by a `StoragePlan` (`storage_plan.py` makes it). The launch has to begin with the overwritten buffers as they
were before the primal launch.

Method: reversal with recomputation, and with a tape of values; cf. Griewank and Walther, "Evaluating Derivatives", 2nd
ed., 2008, chapter 12, and Hascoët and Pascual, "The Tapenade Automatic Differentiation tool", 2013.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from enum import Enum, auto
from itertools import product
from typing import NamedTuple

from tinote.autodiff.fuse_sweeps import fuse_sweeps
from tinote.autodiff.order_free import is_order_free, reads_alone
from tinote.autodiff.reverse import Adjoint
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.buffers import Buffer, BufferKind
from tinote.ir.build import Builder
from tinote.ir.cost import MIN_EXPENSIVE_COST
from tinote.ir.primitives import Defaults
from tinote.ir.prune import prune, prune_unread
from tinote.ir.query import definitions, free_variables, trip_count, walk
from tinote.ir.types import Scalar, Stack, Tensor, i32, i64, is_float

DEFAULTS = Defaults()

#: Loops inside one another, from which number on those of few iterations push what is used of them. Chosen, not
#: measured.
MIN_DEEP_NEST = 3
#: Iterations of all loops of such a nest. Chosen, not measured.
MAX_SMALL_NEST = 1 << 18


class StoragePlan(NamedTuple):
    """What a gradient executes with its effects, because these overwrite values that it uses.

    `executed`: the top-level operations that keep their effects, and `buffers` what these effects are on. `fused`:
    those among them that are executed in the reverse part, before their own reverse. `copies`: for one of these
    that something further down depends on, pairs of a copy and a buffer: the forward part copies the buffer and
    executes the operation, and the reverse part copies it back before it executes the operation again.
    """

    executed: frozenset[ir.Op]
    buffers: frozenset[Buffer]
    fused: frozenset[ir.Op]
    copies: dict[ir.Op, tuple[tuple[Buffer, Buffer], ...]]

    @property
    def provided(self) -> tuple[tuple[Buffer, Buffer], ...]:
        """The pairs whose copy a launch has to provide, because only it knows the shape."""
        return tuple([pair for pairs in self.copies.values() for pair in pairs if None in pair[0].shape])


NO_PLAN = StoragePlan(frozenset(), frozenset(), frozenset(), {})


class ValueSource(Enum):
    """How reverse code gets a value (whole buffers that are copied are a plan's affair)."""

    RECOMPUTE = auto()
    READ_AGAIN = auto()
    PUSH = auto()


def store(
    fn: ir.Function,
    adjoint: Adjoint,
    plan: StoragePlan = NO_PLAN,
    defaults: Defaults = DEFAULTS,
    shared: Set[Buffer] = frozenset(),
) -> ir.Region:
    """The gradient of `fn`, a function's region: forward part and reverse part, with all that the latter uses. What
    has no source, the old values of atomic operations, stays free. `shared`: memory with values that the primal launch
    has saved (`shared_values.py`).
    """
    storage = _Storage(fn, adjoint, plan, defaults, shared)
    region = prune_unread(storage.region())
    return prune_unread(fuse_sweeps(region)) if storage.runs_forwards else region


class _Run:
    """One execution of primal operations. `effects`: whether they keep their effects. `stacks`: the stack for each
    variable of theirs that is pushed where it is bound. `growing`: what makes those of these stacks that last for the
    whole execution; each of the others lasts for one execution of the loop that carries the variable.
    """

    __slots__ = ("effects", "growing", "stacks")

    def __init__(self, *, effects: bool) -> None:
        self.effects = effects
        self.stacks: dict[ir.Var, ir.Var] = {}
        self.growing: dict[ir.Var, ir.Op] = {}


class _Frame:
    """A primal region, for the reverse code of its operations.

    `executed`: whether the region's operations are executed where the reverse code stands, before it; if not, they
    have been, as part of `run`. Otherwise `run` is of this frame alone. `asked`: the variables bound by the region that
    are used, each with what stands for it. `outer`: the frame of the region around. `expensive`: the variables that are
    pushed though the region is executed.
    """

    __slots__ = ("asked", "executed", "expensive", "outer", "owned", "region", "run")

    def __init__(self, region: ir.Region, outer: _Frame | None, run: _Run, *, executed: bool) -> None:
        self.region = region
        self.expensive: frozenset[ir.Var] = frozenset()
        self.outer = outer
        self.run = run
        self.executed = executed
        self.asked: dict[ir.Var, ir.Var] = {}
        self.owned: set[ir.Var] = {*region.params, *[v for op in region.body for v in op.outs]}

    def ask(self, v: ir.Var) -> ir.Var:
        found = self.asked.get(v)
        if found is None:
            found = self.asked[v] = ir.Var(v.type, v.name)
        return found


class _Storage:
    def __init__(
        self, fn: ir.Function, adjoint: Adjoint, plan: StoragePlan, defaults: Defaults, shared: Set[Buffer]
    ) -> None:
        self.plan = plan
        #: what is read in place of values that the primal launch has saved
        self.saved = _saved_values(fn, shared) if shared else {}
        self.adjoint = adjoint
        self.builder = Builder(defaults)
        self.primal: set[ir.Var] = set()
        #: how variables are computed, once that has been asked
        self.definitions: dict[ir.Var, ir.Op] = {}
        #: whether any reverse loop runs forwards
        self.runs_forwards = False
        #: the loops and branches of the primal function, as they may be executed
        self.structures: dict[ir.Op, ir.Op] = {}
        self.top = _Frame(self.executable(fn.region), None, _Run(effects=True), executed=True)
        self.top.asked.update((q, q) for q in fn.region.params)

    def region(self) -> ir.Region:
        reverse = self.reverse(self.adjoint.region, self.top)
        return ir.Region(reverse.params, (*self.value_operations(self.top), *reverse.body), reverse.yields)

    # ---- the primal function, as it may be executed

    def executable(self, region: ir.Region) -> ir.Region:
        """`region` without checks, prints, the effects that are not kept, and the old values of atomic operations; each
        operation with the primal one as its origin, and each `while` that is reversed with a count of its iterations.
        """
        self.primal.update(region.params)
        body: list[ir.Op] = []
        for op in region.body:
            if isinstance(op, ir.Check | ir.Print):
                continue
            args = tuple(map(self.read, op.args)) if self.saved else op.args
            if isinstance(op, ir.Store | ir.Atomic):
                if op.buffer.kind is not BufferKind.TEMPORARY and op.buffer not in self.plan.buffers:
                    continue
                new = op.rebuilt(args, (), ())
            elif isinstance(op, ir.For | ir.While | ir.If):
                new = op.rebuilt(args, tuple(map(self.executable, op.regions)))
                if isinstance(new, ir.While) and op in self.adjoint.trip_counts:
                    new = _counted(new, self.adjoint.trip_counts[op])
                self.structures[op] = new
            else:
                new = op.rebuilt(args, op.regions)
            new.origin = op
            self.primal.update(new.outs)
            body.append(new)
        return ir.Region(region.params, tuple(body), tuple(map(self.read, region.yields)))

    def read(self, atom: ir.Atom) -> ir.Atom:
        """The value that was saved, in place of one that would be computed again."""
        return self.saved.get(atom, atom) if type(atom) is ir.Var else atom

    # ---- reverse code

    def look(self, atom: ir.Atom, frame: _Frame) -> ir.Atom:
        """What stands for an atom in the reverse code of a frame."""
        atom = self.read(atom)
        if type(atom) is not ir.Var or atom not in self.primal:
            return atom
        at: _Frame | None = frame
        while at is not None:
            if atom in at.owned:
                return at.ask(atom)
            at = at.outer
        return atom

    def reverse(self, region: ir.Region, frame: _Frame) -> ir.Region:
        """`region`, part of the reverse code of a frame, with what stands for the primal variables that it uses."""
        body = [new for op in region.body for new in self.reverse_op(op, frame)]
        return ir.Region(region.params, tuple(body), tuple([self.look(y, frame) for y in region.yields]))

    def reverse_op(self, op: ir.Op, frame: _Frame) -> Iterable[ir.Op]:
        primal = self.structures.get(op.origin) if op.regions and op.origin is not None else None
        if primal is None:
            args = tuple([self.look(a, frame) for a in op.args])
            return (op.rebuilt(args, tuple([self.reverse(r, frame) for r in op.regions])),)
        assert op.origin is not None
        if frame is not self.top:
            pushed = not frame.executed or frame.run.effects or _moves_outside(primal)
            pushed = pushed or (_is_small_nest(primal) and not self.may_run_forwards(op, primal))
            return (self.reverse_structure(op, primal, frame, pushed=pushed),)
        if op.origin in self.plan.fused:
            return self.fused(op, primal)
        pushed = op.origin in self.plan.executed or _moves_outside(primal)
        return (self.reverse_structure(op, primal, frame, pushed=pushed),)

    def fused(self, op: ir.Op, primal: ir.Op) -> Iterable[ir.Op]:
        """The reverse of a top-level operation, preceded by the operation itself with its effects."""
        assert op.origin is not None
        with self.builder.region() as start:
            for copy, buffer in self.plan.copies.get(op.origin, ()):
                _copy_buffer(self.builder, copy, buffer)
        if isinstance(primal, ir.For) and primal.parallel:
            return (*start.body, self.reverse_structure(op, primal, self.top, pushed=False, effects=True))
        frame = _Frame(ir.Region((), (primal,)), self.top, _Run(effects=True), executed=True)
        reverse = self.reverse_structure(op, primal, frame, pushed=True)
        return (*start.body, *self.value_operations(frame), reverse)

    def reverse_structure(
        self, op: ir.Op, primal: ir.Op, frame: _Frame, *, pushed: bool, effects: bool = False
    ) -> ir.Op:
        """The reverse of a loop or branch. `pushed`: what it uses from inside was pushed when the primal one was
        executed; otherwise that is executed again in here, perhaps with its `effects`.
        """
        args = tuple([self.look(a, frame) for a in op.args])
        regions: list[ir.Region] = []
        for region, inner in zip(op.regions, primal.regions[-len(op.regions) :], strict=True):
            run = frame.run if pushed else _Run(effects=effects)
            inside = _Frame(inner, frame, run, executed=not pushed)
            if isinstance(op, ir.For) and isinstance(primal, ir.For):
                inside.asked[primal.index] = op.index
            new = self.reverse(region, inside)
            if not (pushed or effects) and isinstance(op, ir.For) and isinstance(primal, ir.For):
                needed = _carried_for_less(primal, inside.asked) if self.may_run_forwards(op, primal) else ()
                if needed:
                    return self.forwards(op.rebuilt(args, (new,)), primal, inside, needed)
            if not pushed:
                inside.expensive = _expensive_values(primal, inner, inside.asked)
            start = [*self.value_operations(inside)]
            pops = self.popped_parameters(inside, primal)  # those, too, that what is recomputed starts from
            regions.append(ir.Region(new.params, (*pops, *start, *new.body), new.yields))
        new = op.rebuilt(args, tuple(regions))
        if pushed and isinstance(new, ir.For):
            # The values come back in the opposite order of that in which they were pushed.
            new.parallel, new.reverse = False, not (isinstance(primal, ir.For) and primal.reverse)
        return new

    def may_run_forwards(self, op: ir.Op, primal: ir.Op) -> bool:
        """Whether the reverse of a serial loop may run in that one's own order, and the loop be executed along with it.
        Of small nests, which would be pushed, only if all but the innermost become one with their reverse.
        """
        if not (isinstance(op, ir.For) and isinstance(primal, ir.For) and op.reverse) or primal.parallel:
            return False
        if not (is_order_free(op) and reads_alone(primal.body)):
            return False
        if not _is_small_nest(primal):
            return True
        inside = [inner for inner in walk(op.body) if isinstance(inner, ir.For) and _depth(inner) > 1]
        return not self.needs_result(op) and all(is_order_free(one) and not self.needs_result(one) for one in inside)

    def needs_result(self, op: ir.For) -> bool:
        """Whether the reverse of a loop depends on what comes out of that."""
        results = set(op.origin.outs) - self.saved.keys() if op.origin is not None else set[ir.Var]()
        if not self.definitions:
            self.definitions = {**definitions(self.adjoint.region), **definitions(self.top.region)}
        pending = [*op.args, *free_variables(op.body)]
        seen: set[ir.Atom] = set(pending)
        while pending:
            v = self.read(pending.pop())
            made = self.definitions.get(v) if isinstance(v, ir.Var) else None
            if v in results:
                return True
            if made is not None:
                used = {*made.args, *[u for r in made.regions for u in free_variables(r)]}
                pending += used - seen
                seen |= used
        return False

    def forwards(self, op: ir.Op, primal: ir.For, inside: _Frame, needed: Sequence[int]) -> ir.Op:
        """The reverse of a loop in the order of the primal one, with the values that this carries (`needed`: which)."""
        assert inside.outer is not None
        params = tuple([inside.ask(primal.carried[k]) for k in needed])
        following = tuple([self.look(primal.body.yields[k], inside) for k in needed])
        (region,) = op.regions
        body = (*self.value_operations(inside), *region.body)
        initial = tuple([self.look(primal.initial[k], inside.outer) for k in needed])
        outs = tuple([ir.Var(q.type, q.name) for q in params])
        region = ir.Region((*region.params, *params), body, (*region.yields, *following))
        new = op.rebuilt((*op.args, *initial), (region,), (*op.outs, *outs))
        assert isinstance(new, ir.For)
        new.reverse = False
        self.runs_forwards = True
        return new

    # ---- value sources

    def value_source(self, op: ir.Op, frame: _Frame) -> ValueSource:
        """How the reverse code of its frame gets what an operation binds."""
        again = isinstance(op, ir.Prim) or (isinstance(op, ir.Load) and not frame.run.effects)
        if not frame.executed and not again:
            return ValueSource.PUSH
        if not frame.expensive.isdisjoint(op.outs):
            return ValueSource.PUSH
        return ValueSource.READ_AGAIN if isinstance(op, ir.Load) else ValueSource.RECOMPUTE

    def value_operations(self, frame: _Frame) -> Iterator[ir.Op]:
        """The operations before a frame's reverse code that provide the values it uses, operands of what is
        recomputed included.
        """
        found: list[Iterable[ir.Op]] = []
        for op in reversed(frame.region.body):
            asked = [v for v in op.outs if v in frame.asked]
            if frame is self.top and op.origin in self.plan.fused:
                found.append(self.executed_ahead(op, asked))
            elif asked and self.value_source(op, frame) is ValueSource.PUSH:
                found.append([self.popped(v, op, frame) for v in asked])
            elif frame.executed or asked:
                found.append(self.executed(op, asked, frame))
        if frame.executed:
            yield from frame.run.growing.values()
        for ops in reversed(found):
            yield from ops

    def popped_parameters(self, frame: _Frame, loop: ir.Op) -> Iterator[ir.Op]:
        for q in frame.region.params:
            if q in frame.asked and not (isinstance(loop, ir.For) and q is loop.index):
                yield self.popped(q, loop, frame)

    def popped(self, v: ir.Var, op: ir.Op, frame: _Frame) -> ir.Op:
        """Let the forward part push `v`, which `op` binds, and take it back."""
        run = frame.run
        if frame.executed:
            # Its operations are executed once more, in a run of their own: the loop itself pushes in that of outside.
            assert frame.outer is not None
            run = frame.outer.run
        stack = ir.Var(Stack(_content_of(v)), v.name)
        run.stacks[v] = stack
        if not frame.executed:
            run.growing[v] = ir.NewStack((), (stack,), (), op.loc, op.origin)
        return ir.Pop((stack,), (frame.asked[v],), (), op.loc, op.origin)

    # ---- forward code

    def executed(self, op: ir.Op, asked: list[ir.Var], frame: _Frame) -> list[ir.Op]:
        """An operation executed for a frame: for the variables asked for, for what it pushes, and for its effects."""
        run = frame.run
        if op.regions:
            pruned = prune(ir.Region((), (op,)), (*asked, *run.stacks), effect=lambda op: op.writes and run.effects)
            if not pruned.body:
                return []
            (op,) = pruned.body
        elif not (asked or (op.writes and run.effects) or (_moves(op) and op.args[0] in frame.asked)):
            return []
        env: dict[ir.Var, ir.Atom] = {v: frame.asked[v] for v in asked}
        stacks: list[ir.Op] = []
        if isinstance(op, ir.For | ir.While):
            body = op.regions[-1]
            bound = (*body.params, *[v for inner in body.body for v in inner.outs])
            sized = [run.stacks[v] for v in bound if v in run.stacks and v not in run.growing]
            self.builder.loc, self.builder.origin = op.loc, op.origin
            with self.builder.region() as opened:
                capacity: tuple[ir.Atom, ...] = ()
                if sized and isinstance(op, ir.For):
                    capacity = (_trip_count(self.builder, self.look(op.lo, frame), self.look(op.hi, frame)),)
                for stack in sized:
                    self.builder.emit(ir.NewStack(capacity, (stack,), (), op.loc, op.origin))
            stacks = opened.body
        return [*stacks, self.copied(op, env, frame)]

    def executed_ahead(self, op: ir.Op, asked: list[ir.Var]) -> list[ir.Op]:
        """A fused operation in the forward part, where something further down depends on it."""
        assert op.origin is not None
        copies = self.plan.copies.get(op.origin, ())
        if not copies:
            return []
        self.builder.loc, self.builder.origin = op.loc, op.origin
        with self.builder.region() as opened:
            for copy, buffer in copies:
                _copy_buffer(self.builder, buffer, copy)
        return [*opened.body, *self.executed(op, asked, self.top)]

    def copied(self, op: ir.Op, env: dict[ir.Var, ir.Atom], frame: _Frame) -> ir.Op:
        """An operation with fresh variables, which pushes what it binds inside. `env`: what stands for variables that
        are bound here; all others are looked up.
        """

        def get(a: ir.Atom) -> ir.Atom:
            return env[a] if type(a) is ir.Var and a in env else self.look(a, frame)

        args = tuple(map(get, op.args))
        regions: list[ir.Region] = []
        for region in op.regions:
            params = tuple([ir.Var(q.type, q.name) for q in region.params])
            env.update(zip(region.params, params, strict=True))
            body = list(self.pushes(region.params, op, env, frame))
            for inner in region.body:
                body.append(self.copied(inner, env, frame))
            for inner in region.body:
                body.extend(self.pushes(inner.outs, inner, env, frame))
            regions.append(ir.Region(params, tuple(body), tuple(map(get, region.yields))))
        outs = [ir.Var(v.type, v.name) if v not in env else env[v] for v in op.outs]
        env.update(zip(op.outs, outs, strict=True))
        new = op.rebuilt(args, tuple(regions), tuple([v for v in outs if isinstance(v, ir.Var)]))
        if isinstance(new, ir.For) and new.parallel and _moves_outside(new):
            new.parallel = False  # its iterations push on shared stacks
        return new

    def pushes(self, bound: Iterable[ir.Var], op: ir.Op, env: dict[ir.Var, ir.Atom], frame: _Frame) -> Iterator[ir.Op]:
        for v in bound:
            stack = frame.run.stacks.get(v)
            if stack is not None:
                yield ir.Push((stack, env[v]), (), (), op.loc, op.origin)


def _saved_values(fn: ir.Function, shared: Set[Buffer]) -> dict[ir.Var, ir.Atom]:
    """What was saved of a value, for the variable that would be computed again; and for each that has another
    derivative than its value (`surrogate`), that value.
    """
    read = {op.out for op in walk(fn.region) if isinstance(op, ir.Load) and op.buffer in shared}
    found: dict[ir.Var, ir.Atom] = {}
    for op in walk(fn.region):
        if isinstance(op, ir.Prim) and op.prim is p.surrogate:
            value, computed = op.args
            found[op.out] = found.get(value, value) if isinstance(value, ir.Var) else value
            if value in read and isinstance(computed, ir.Var):
                found[computed] = value
    return found


def _counted(loop: ir.While, count: ir.Var) -> ir.While:
    """`loop` with a further carried value that counts its iterations; `count` becomes its final value."""
    asked, number, following = ir.Var(i64, "count"), ir.Var(i64, "count"), ir.Var(i64, "count")
    step = ir.Prim(p.add, (number, ir.Lit(1, i64)), (following,), loop.loc, loop.origin)
    condition = ir.Region((*loop.condition.params, asked), loop.condition.body, loop.condition.yields)
    body = ir.Region((*loop.body.params, number), (*loop.body.body, step), (*loop.body.yields, following))
    return ir.While((*loop.initial, ir.Lit(0, i64)), condition, body, (*loop.outs, count), loop.loc)


def _is_small_nest(loop: ir.Op) -> bool:
    """Whether a serial loop is the outermost of several, which together save few values of a kind: then these are
    pushed, or each loop would be executed again in the reverse of every one around it.
    """
    return isinstance(loop, ir.For) and _depth(loop) >= MIN_DEEP_NEST and _iterations(loop) <= MAX_SMALL_NEST


def _depth(op: ir.Op) -> int:
    inside = max([_depth(inner) for r in op.regions for inner in r.body if inner.regions], default=0)
    return inside + isinstance(op, ir.For | ir.While)


def _iterations(op: ir.Op) -> float:
    """How often the innermost of nested serial loops run at most, in all; infinite if that is not known."""
    own = math.inf if isinstance(op, ir.For | ir.While) else 1.0
    if isinstance(op, ir.For) and not op.parallel and (count := trip_count(op.lo, op.hi)) is not None:
        own = max(count, 1)
    return own * max([_iterations(inner) for r in op.regions for inner in r.body if inner.regions], default=1.0)


def _expensive_values(loop: ir.Op, body: ir.Region, asked: Iterable[ir.Var]) -> frozenset[ir.Var]:
    """What a serial loop binds in its body that is expensive to compute, and that the forward part computes in any case
    on its way to the carried values from which `asked` would be recomputed.
    """
    if not isinstance(loop, ir.For | ir.While) or (isinstance(loop, ir.For) and loop.parallel):
        return frozenset()
    expensive = [op.outs[0] for op in body.body if _is_expensive(op) and is_float(op.outs[0].type)]
    if not expensive:
        return frozenset()
    carried = body.params[len(body.params) - len(body.yields) :]
    # A set of carried values is a number with a bit for each.
    needs: dict[ir.Atom, int] = {q: 1 << k for k, q in enumerate(carried)}
    operands = [(op, [*op.args, *[v for r in op.regions for v in free_variables(r)]]) for op in body.body]
    for op, used in operands:
        needs.update(dict.fromkeys(op.outs, _union(needs, used)))
    # What each carried value needs, through all iterations, itself included.
    closure = [1 << k | needs.get(y, 0) for k, y in enumerate(body.yields)]
    for k, j in product(range(len(carried)), repeat=2):
        if closure[j] >> k & 1:
            closure[j] |= closure[k]
    start = _union(needs, asked)
    computed = 0
    for k, found in enumerate(closure):
        computed |= found if start >> k & 1 else 0
    serves: dict[ir.Atom, int] = {}
    for k, y in enumerate(body.yields):
        serves[y] = serves.get(y, 0) | 1 << k
    for op, used in reversed(operands):
        for a in used:
            serves[a] = serves.get(a, 0) | _union(serves, op.outs)
    return frozenset(v for v in expensive if serves.get(v, 0) & computed)


def _is_expensive(op: ir.Op) -> bool:
    return isinstance(op, ir.Prim) and op.prim.cost >= MIN_EXPENSIVE_COST


def _carried_for_less(loop: ir.For, asked: Iterable[ir.Var]) -> list[int]:
    """Which of the values that a loop carries `asked` needs, if none is expensive to compute; else none."""
    body = loop.body
    needed: dict[int, None] = {}
    live = list(asked)
    while True:
        used = {*live, *free_variables(ir.Region((), prune(ir.Region(body.params, body.body), live).body))}
        further = [k for k, q in enumerate(loop.carried) if q in used and k not in needed]
        if not further:
            break
        needed.update(dict.fromkeys(further))
        live += [y for k in further if isinstance(y := body.yields[k], ir.Var)]
    again = prune(ir.Region(body.params, body.body), [y for k in needed if isinstance(y := body.yields[k], ir.Var)])
    return [] if any(_is_expensive(op) or isinstance(op, ir.For) for op in walk(again)) else sorted(needed)


def _union(sets: Mapping[ir.Atom, int], of: Iterable[ir.Atom]) -> int:
    found = 0
    for a in of:
        found |= sets.get(a, 0)
    return found


def _moves(op: ir.Op) -> bool:
    """Whether an operation pushes or pops."""
    return isinstance(op, ir.Push | ir.Pop)


def _moves_outside(op: ir.Op) -> bool:
    """Whether a loop or branch works on stacks that are made outside of it: it cannot be executed in parts then."""
    inside = [inner for r in op.regions for inner in walk(r)]
    made = {inner.out for inner in inside if isinstance(inner, ir.NewStack)}
    return any(_moves(inner) and inner.args[0] not in made for inner in inside)


def _content_of(v: ir.Var) -> Scalar | Tensor:
    assert isinstance(v.type, Scalar | Tensor)
    return v.type


def _trip_count(builder: Builder, lo: ir.Atom, hi: ir.Atom) -> ir.Atom:
    if (known := trip_count(lo, hi)) is not None:
        return ir.Lit(known, i64)
    count = builder.prim(p.sub, builder.cast(hi, i64), builder.cast(lo, i64))
    return builder.prim(p.maximum, count, ir.Lit(0, i64))


def _copy_buffer(builder: Builder, source: Buffer, target: Buffer) -> None:
    """Emit loops that copy all elements of a buffer."""

    def level(index: tuple[ir.Var, ...]) -> None:
        axis = len(index)
        if axis < target.rank:
            position = ir.Var(i32, "i")
            with builder.region(position) as inside:
                level((*index, position))
            extent = builder.extent(target, axis)
            builder.emit(ir.For(ir.Lit(0, i32), extent, (), inside.close(), (), builder.loc, parallel=True))
            return
        for component in ir.component_indices(target.element):
            element_index = (*index, *component)
            builder.store(target, element_index, builder.load(source, element_index))

    level(())
