"""Legality and profitability of vectorisation: which parallel loops `vectorise.py` runs in lanes, and why others do
not.

The estimate compares the work of one iteration, in additions, with that of all lanes together. A vector operation on
all lanes costs the same as one scalar operation, and so does a uniform value. Gathers and scatters cost one access per
lane, as do functions without a vector form. The alternative is the scalar code as LLVM compiles it. LLVM vectorises an
inner loop whose iterations are independent or a reduction and whose accesses are consecutive. It also does well with
innermost loops, and with inner loops so short that they are unrolled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from tinote.compiler.passes.analyses.choose_tiles import RowTile, choose_tiles
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.buffers import bytes_of, root_of
from tinote.ir.cost import MAX_FLAT_BRANCH_COST, UNKNOWN_TRIP_COUNT, own_cost
from tinote.ir.divergence import Divergence, Stride
from tinote.ir.lanes import lanes_of
from tinote.ir.query import trip_count, uses, walk
from tinote.ir.types import Scalar, Tangents, element_type, is_float, shape_of, u1, u64


class Machine(NamedTuple):
    """Target of the cost estimate: width and number of vector registers, and whether functions are inlined
    polynomials.
    """

    vector_bits: int
    registers: int = 32
    fast_math: bool = True


class Columns(NamedTuple):
    """A private copy in which each lane has a column of its own, and its linear view."""

    copy: ir.Buffer
    view: ir.Buffer
    lanes: int


class LanesPlan(NamedTuple):
    """How a loop is to run in lanes: which of its loads read from tiles, and which private copies have columns."""

    divergence: Divergence
    lanes: int
    tiles: Mapping[ir.Op, RowTile]
    columns: Mapping[ir.Buffer, Columns]
    #: what all iterations of the loop cost, in additions
    cost: float


#: The reason for a loop of mostly straight-line code: LLVM's own remark about it is shown instead.
LEFT_TO_LLVM = "without longer loops inside it is left to LLVM"
#: Numbers of vector registers to try for the lanes of short dependence chains; the first that fits is taken. Chosen,
#: not measured.
_SEVERAL_REGISTERS = (4, 2)
#: Cost of what lanes in several registers compute, in additions. Chosen, not measured.
_MAX_CHAINS_COST = 240.0
#: Cost of an iteration in additions: past this LLVM's work grows with more than the length (measured with sines: 9,000
#: took 2.6 s, 27,000 minutes).
_MAX_COST = 6_000.0
#: Factor by which lanes must be cheaper, to allow for what the estimate leaves out. Chosen, not measured.
_MIN_GAIN = 1.5
#: Bits: narrower vectors have neither masks nor gathers.
_MIN_VECTOR_BITS = 256
#: Inner loops of at most this number of iterations are unrolled by LLVM.
_MAX_UNROLLED = 8
#: More iterations than any fully unrolled loop has.
_ENDLESS = 1 << 30
#: Saved values of one kind for which lanes may have space next to each other. Chosen, not measured.
_MAX_SAVED = 1 << 14
#: Numbers of a local array, or values of a stack, likewise. Chosen, not measured.
_MAX_LOCAL = 1 << 8
#: Extra cost of an update of one element by all lanes over a scalar update, in additions: the lanes are reduced first.
#: Chosen, not measured.
_HORIZONTAL_COST = 4.0
#: Cost of transposing one number of each lane's row, in additions. Chosen, not measured.
_TRANSPOSED_COST = 6.0
#: Greatest distance, in elements, of strided accesses that LLVM combines into shuffles.
_MAX_INTERLEAVED = 8
#: Bytes that lane-private copies may take in all: half of a level-2 cache. Chosen,
#: not measured.
_MAX_COLUMN_BYTES = 1 << 19
#: The same where lanes fill several registers: each thread clears and adds up all of them. Chosen, not measured.
_MAX_COLUMN_BYTES_OF_SEVERAL = 1 << 17
#: Vectors of iterations that an outer loop should have, for threads to share: lanes of fewer ones must gain as much
#: more. Chosen, not measured.
_MIN_STRIPS = 8
#: Cost of one element of a gather or scatter, in additions. A gather from memory at random takes 0.3 ns an element in a
#: level-1 cache, 0.6 ns in a level-2 cache and more beyond it, as scalar loads do (EPYC, 512 bits).
_GATHER_COST = 2.0
#: Cost of a cache line that an access touches first, in additions. Chosen, not measured: lanes of an outer loop whose
#: rows are a power of two apart lose each line before they are at its next element, which takes 1 to 2.5 ns.
_LINE_COST = 6.0
#: Bytes of a cache line, of x86-64 and of most others.
_LINE_BYTES = 64
#: Cost of taking a lane's operands out of vectors and of putting its result back, in additions: where an operation has
#: no vector form. Chosen, not measured; a loop of integer remainders that ends early takes 7.7 times as long in lanes.
_APART_COST = 3.0
#: Cost of a jump that is often mispredicted, in additions. Chosen, not measured.
_MISPREDICTION_COST = 5.0
#: Loop overhead besides the body, in additions per iteration. Chosen, not measured.
_ITERATION_COST = 2.0
#: Iterations of the vector loop for each iteration of one lane, where lanes leave a loop at different times. Chosen,
#: not measured.
_WAITING_FACTOR = 1.4
#: The same of loops around them, whose lanes wait in these already. A loop over neighbours, four loops deep, takes
#: 0.8 of its time in lanes; counts of a geometric distribution, three deep, take 1.9 times as long (EPYC, 512 bits).
_OUTER_WAITING_FACTOR = 1.1
_LOOPS = (ir.For, ir.While)
#: Reductions that LLVM reorders in a loop; more for integers than for floats.
_REORDERED = (p.add, p.sub, p.minimum, p.maximum)
_REORDERED_INTEGERS = (*_REORDERED, p.mul, p.and_, p.or_, p.xor)


def is_candidate(op: ir.Op) -> bool:
    """Whether an operation is an innermost parallel loop, whose iterations may become lanes."""
    return (
        isinstance(op, ir.For | ir.Task)
        and op.parallel
        and lanes_of(op) == 1
        and not any(isinstance(inner, ir.For) and inner.parallel for inner in walk(op.regions[0]))
    )


def is_left_to_llvm(loop: ir.For | ir.Task) -> bool:
    """Whether all loops inside will be unrolled, so that LLVM vectorises this one."""
    inner = [op for op in walk(loop.regions[0]) if isinstance(op, ir.For | ir.While)]
    return all(isinstance(op, ir.For) and (trip_count(op.lo, op.hi) or _ENDLESS) <= _MAX_UNROLLED for op in inner)


def _may_have_rows(loop: ir.For | ir.Task) -> bool:
    """Whether there is memory whose first index divides it into rows."""
    roots = [root_of(op.buffer) for op in walk(loop.regions[0]) if isinstance(op, ir.MemoryOp)]
    return any(len(root.shape) > 1 or root.element for root in roots)


def _lanes_for(loop: ir.For | ir.Task, machine: Machine, column: int) -> int:
    """The number of lanes: they fill one vector register, or several. `column`: the size of a lane's private copies, in
    bytes.
    """
    lanes = _lanes_of_register(loop, machine)
    count = trip_count(loop.args[0], loop.args[1])
    strips = None if count is None else -(-count // lanes)
    most = _registers_for(loop.regions[0], machine, strips)
    for several in _SEVERAL_REGISTERS:
        fits = several * lanes * column <= _MAX_COLUMN_BYTES_OF_SEVERAL
        if several <= most and fits and (strips is None or strips >= several):
            return several * lanes
    return lanes


def _lanes_of_register(loop: ir.For | ir.Task, machine: Machine) -> int:
    """How many numbers of the loop's widest type one vector register holds."""
    widest = 32
    for op in walk(loop.regions[0]):
        if isinstance(op, ir.MemoryOp):
            widest = max(widest, op.buffer.dtype.bits)
        elif isinstance(op, ir.Prim) and isinstance(op.out.type, Scalar) and op.out.type.kind == "f":
            widest = max(widest, op.out.type.bits)
    return max(2, machine.vector_bits // widest)


def _registers_for(body: ir.Region, machine: Machine, strips: int | None) -> int:
    """How many registers the lanes may take. Several, if iterations are short chains of dependent operations, whose
    latency hides the work of further registers, or if these are all the iterations that there are. `strips`: how many
    registers all iterations fill, if that is known.
    """
    inside = [*walk(body)]
    if any(isinstance(op, ir.NewStack) and not _is_shallow(op) for op in inside):
        return 1  # saved values should stay in the level-1 cache
    carried = max([len(op.outs) for op in inside if isinstance(op, ir.For | ir.While)], default=0)
    cost = sum([own_cost(op) for op in inside])
    if not carried:
        return 1
    room = machine.registers // 2 // carried
    return min(room, strips or 0) if strips in _SEVERAL_REGISTERS else int(min(room, _MAX_CHAINS_COST / max(cost, 1.0)))


class Chooser:
    """Chooses the loops of a function that run in lanes. `definitions`: those of its variables; `privates`: the private
    copies of the enclosing task.
    """

    def __init__(self, definitions: Mapping[ir.Var, ir.Op], machine: Machine, *, always: bool) -> None:
        self.definitions = definitions
        self.machine = machine
        self.always = always

    def plans(self, loop: ir.For | ir.Task, privates: Sequence[ir.Private]) -> dict[ir.Op, LanesPlan | str]:
        """The plans for a parallel loop, or for those inside it, or the reason why there is none, as a message for the
        user. In a nest the inner loops are vectorised, unless the accesses suit an outer one so much better that it
        pays.
        """
        inner = outermost_parallel(loop.regions[0])
        if not inner:
            return {loop: self.innermost(loop, privates)}
        found: dict[ir.Op, LanesPlan | str] = {}
        for op in inner:
            found |= self.plans(op, privates)
        in_lanes = {op: plan for op, plan in found.items() if isinstance(plan, LanesPlan)}
        plan = self.outer(loop, in_lanes, privates)
        return found if plan is None else {loop: plan}

    def innermost(self, loop: ir.For | ir.Task, privates: Sequence[ir.Private]) -> LanesPlan | str:
        why = _obstacle(loop) or ("" if self.always else self.why_unfit(loop))
        if why:
            return why
        divergence = Divergence(loop, self.definitions)
        why = _diverging_obstacle(loop, divergence, self.machine)
        if why:
            return why
        lanes = _lanes_for(loop, self.machine, sum([bytes_of(b) or 0 for b in _in_common(loop, divergence, privates)]))
        estimate = self.estimate(loop, divergence, lanes, privates)
        why = "" if self.always else _why_not_worth_it(loop, divergence, self.machine, estimate)
        return why or self.plan(loop, lanes, estimate)

    def why_unfit(self, loop: ir.For | ir.Task) -> str:
        """A cheap early answer: why lanes certainly do not pay."""
        large = _why_too_large(loop, self.machine)
        if large:
            return large
        lanes, count = _lanes_of_register(loop, self.machine), trip_count(loop.args[0], loop.args[1])
        if count is not None and count < lanes:
            return f"it has fewer than {lanes} iterations"
        return LEFT_TO_LLVM if is_left_to_llvm(loop) and not _may_have_rows(loop) else ""

    def outer(
        self, loop: ir.For | ir.Task, inside: Mapping[ir.Op, LanesPlan], privates: Sequence[ir.Private]
    ) -> LanesPlan | None:
        lanes = _lanes_of_register(loop, self.machine)
        count = trip_count(loop.args[0], loop.args[1])
        shared = 1.0 if count is None else min(1.0, count / (_MIN_STRIPS * lanes))
        if _obstacle(loop) or (not self.always and (shared * _MIN_STRIPS < 1 or _why_too_large(loop, self.machine))):
            return None
        divergence = Divergence(loop, self.definitions)
        if _diverging_obstacle(loop, divergence, self.machine):
            return None
        plan = self.plan(loop, lanes, self.estimate(loop, divergence, lanes, privates, has_inner=True))
        costs = {op: one.cost for op, one in inside.items()}
        alone = _Estimate(loop.regions[0], divergence, lanes, self.machine, in_lanes=costs).of_one
        times = UNKNOWN_TRIP_COUNT if count is None else count
        return plan if times * alone * shared > (1.0 if self.always else _MIN_GAIN) * plan.cost else None

    def estimate(
        self,
        loop: ir.For | ir.Task,
        divergence: Divergence,
        lanes: int,
        privates: Sequence[ir.Private],
        *,
        has_inner: bool = False,
    ) -> _Estimate:
        tiles = choose_tiles(loop, divergence, self.definitions)
        columns = _columns(loop, divergence, lanes, privates)
        register = _lanes_of_register(loop, self.machine)
        body = loop.regions[0]
        return _Estimate(body, divergence, register, self.machine, tiles, columns, has_inner=has_inner)

    def plan(self, loop: ir.For | ir.Task, lanes: int, estimate: _Estimate) -> LanesPlan:
        count = trip_count(loop.args[0], loop.args[1])
        times = UNKNOWN_TRIP_COUNT if count is None else count
        cost = -(-times // estimate.count) * estimate.of_all
        return LanesPlan(estimate.divergence, lanes, estimate.tiles, estimate.columns, cost)


def outermost_parallel(region: ir.Region) -> list[ir.For]:
    """The parallel loops in a region that are not nested in another parallel loop."""
    found: list[ir.For] = []
    for op in region.body:
        if isinstance(op, ir.For) and op.parallel:
            found.append(op)
        else:
            for inner in op.regions:
                found += outermost_parallel(inner)
    return found


def _columns(
    loop: ir.For | ir.Task, divergence: Divergence, lanes: int, privates: Sequence[ir.Private]
) -> dict[ir.Buffer, Columns]:
    """Copies with a column for each lane, smallest first as long as there is room."""
    chosen: dict[ir.Buffer, Columns] = {}
    room = _MAX_COLUMN_BYTES
    for copy in sorted(_in_common(loop, divergence, privates), key=lambda copy: bytes_of(copy) or 0):
        room -= (bytes_of(copy) or 0) * lanes
        if room < 0:
            break
        chosen[copy] = _with_columns(copy, lanes)
    return chosen


def _in_common(loop: ir.For | ir.Task, divergence: Divergence, privates: Sequence[ir.Private]) -> list[ir.Buffer]:
    """The private copies where several lanes may update the same element."""
    shared = {
        root_of(op.buffer)
        for op in walk(loop.regions[0])
        if isinstance(op, ir.Atomic) and not are_apart(op, divergence)
    }
    copies = [private.copy for private in privates]
    return [b for b in copies if b in shared and b.dtype is not u1 and not isinstance(b.dtype, Tangents)]


def _with_columns(copy: ir.Buffer, lanes: int) -> Columns:
    assert copy.strides is not None
    strides = (*[stride * lanes for stride in copy.strides], copy.dtype.size)
    apart = tuple([stride * lanes for stride in copy.element_strides])
    wide = ir.Buffer(copy.name, copy.dtype, (*copy.shape, lanes), copy.element, copy.kind, strides, apart)
    return Columns(wide, ir.Buffer(copy.name, copy.dtype, (None,), kind=copy.kind, flat=wide), lanes)


def _obstacle(loop: ir.For | ir.Task) -> str:
    """Legality: the obstacle to vectorisation; empty if there is none."""
    if loop.ordered:
        return "its iterations keep their order, since they may meet"
    if loop.regions[0].params[0].type is u64:
        return "its index is a u64"
    if not _stacks_are_mirrored(loop.regions[0]):
        return "it takes back what it saves in another order than that of a reverse sweep"
    for op in walk(loop.regions[0]):
        if isinstance(op, ir.Print):
            return "it prints"
        moved = [op.buffer.dtype] if isinstance(op, ir.MemoryOp) else []
        if any(isinstance(element_type(t), Tangents) for t in (*moved, *[v.type for v in op.outs])):
            return "its tangents along several directions are vectors already"
    return ""


def _diverging_obstacle(loop: ir.For | ir.Task, divergence: Divergence, machine: Machine) -> str:
    """Legality of operations that depend on divergent values."""
    own = {op.out for op in walk(loop.regions[0]) if isinstance(op, ir.Local)}
    for op in walk(loop.regions[0]):
        if isinstance(op, ir.Get) and op.args[0] not in own and not divergence.uniform(*op.args[1:]):
            return "it reads different places of an array that is local outside of it"
        if isinstance(op, ir.For) and op.index.type is u64 and op in divergence.divergent:
            return "a loop inside counts in u64"
        if isinstance(op, ir.Atomic):
            ordered = op.prim in (p.add, p.mul) and is_float(op.buffer.dtype) and not machine.fast_math
            if ordered and not are_apart(op, divergence):
                return "a sum or product keeps its order without fast maths"
    return ""


#: The loops and branches from where a stack is created to where it is used, and the region itself.
_Path = tuple[tuple[ir.Op, ...], ir.Region]


def _stacks_are_mirrored(body: ir.Region) -> bool:
    """Whether each stack has one push and one later pop in loops and branches of the same kind, as in a reverse sweep.
    Then lanes that push together pop together. The activation stacks of recursive functions are not of this form.
    """
    pushes: dict[ir.Atom, list[_Path]] = {}
    pops: dict[ir.Atom, list[_Path]] = {}
    made: dict[ir.Atom, int] = {}

    def look(region: ir.Region, path: tuple[ir.Op, ...]) -> None:
        for op in region.body:
            if isinstance(op, ir.NewStack):
                made[op.out] = len(path)
            elif isinstance(op, ir.Push | ir.Pop):
                found = pushes if isinstance(op, ir.Push) else pops
                stack = op.args[0]
                found.setdefault(stack, []).append(((*path[made[stack] :], op), region))
            for inner in op.regions:
                look(inner, (*path, op))

    look(body, ())
    return all(_mirrors(there, pops.get(stack, [])) for stack, there in pushes.items())


def _mirrors(pushes: list[_Path], pops: list[_Path]) -> bool:
    if not pops:
        return True
    regions = {region for _, region in pushes}, {region for _, region in pops}
    if len(pushes) != len(pops) or any(len(found) != 1 for found in regions):
        return False
    (there, _), (back, _) = pushes[0], pops[0]
    sorts = [[isinstance(op, ir.If) for op in path[:-1]] for path in (there, back)]
    # Within one loop there would be pushes after pops.
    return there[0] is not back[0] and sorts[0] == sorts[1]


def are_apart(op: ir.Atomic, divergence: Divergence) -> bool:
    """Whether lanes certainly update different elements that no other thread touches. A plain update guarantees this
    only for threads, not for lanes.
    """
    dtype = op.buffer.dtype
    return op.plain and dtype is not u1 and divergence.lies_apart(op.index[0], dtype.size)


def _why_too_large(loop: ir.For | ir.Task, machine: Machine) -> str:
    body = loop.regions[0]
    if machine.vector_bits < _MIN_VECTOR_BITS:
        return "this machine has vectors of 128 bits only"
    if sum([own_cost(op) for op in walk(body)]) > _MAX_COST:
        return "an iteration is so long that LLVM would take long over vectors of it"
    if any(isinstance(op, ir.NewStack) and _is_deep(op) for op in walk(body)):
        return f"an iteration saves more than {_MAX_SAVED:,} values of a kind"
    if any(isinstance(op, ir.Local) and math.prod(shape_of(op.out.type.content)) > _MAX_LOCAL for op in walk(body)):  # type: ignore[union-attr]
        return f"an iteration has an array of more than {_MAX_LOCAL:,} numbers of its own"
    return ""


def _why_not_worth_it(loop: ir.For | ir.Task, divergence: Divergence, machine: Machine, estimate: _Estimate) -> str:
    body, lanes = loop.regions[0], estimate.count
    count = trip_count(loop.args[0], loop.args[1])
    if is_left_to_llvm(loop):
        wide = any(tile.columns is None or tile.columns > _MAX_INTERLEAVED for tile in estimate.tiles.values())
        if not wide or _Estimate(body, divergence, lanes, machine).lanes(body) < _MIN_GAIN * estimate.of_all:
            return LEFT_TO_LLVM
    used = 1.0 if count is None else count / (-(-count // lanes) * lanes)
    if lanes * estimate.of_one * used < _MIN_GAIN * estimate.of_all:
        return "one iteration at a time is estimated to be as fast"
    return ""


def _is_deep(op: ir.NewStack) -> bool:
    return any(isinstance(a, ir.Lit) and a.value > _MAX_SAVED for a in op.args)


def _is_shallow(op: ir.NewStack) -> bool:
    return len(op.args) == 1 and isinstance(op.args[0], ir.Lit) and op.args[0].value <= _MAX_LOCAL


class _Estimate:
    """Cost of a loop body, in additions: of one scalar iteration, or of all lanes together. `has_inner`: parallel loops
    are in it, which might run in lanes or vectors themselves.
    """

    def __init__(
        self,
        body: ir.Region,
        divergence: Divergence,
        count: int,
        machine: Machine,
        tiles: Mapping[ir.Op, RowTile] | None = None,
        columns: Mapping[ir.Buffer, Columns] | None = None,
        in_lanes: Mapping[ir.Op, float] | None = None,
        *,
        has_inner: bool = False,
    ) -> None:
        self.body = body
        self.divergence = divergence
        self.count = count
        self.machine = machine
        self.tiles = tiles or {}
        self.columns = columns or {}
        #: total cost of the inner loops that run in lanes themselves
        self.in_lanes = in_lanes or {}
        self.has_inner = has_inner
        self.means = _mean_values(body)

    def scalar(self, region: ir.Region) -> float:
        """Cost of one scalar iteration as compiled by LLVM."""
        total = 0.0
        for op in region.body:
            if op in self.in_lanes:
                total += self.in_lanes[op]
            elif isinstance(op, ir.For):
                alone = self.scalar(op.body) + _ITERATION_COST
                times = _iterations(op, self.means)
                together = min(self.count, max(1, times // 4)) if _llvm_vectorises(op, self.along[op]) else 1
                total += times * (alone / together + self.lines(op.body, self.along[op]))
            elif isinstance(op, ir.While):
                inside = sum([self.scalar(r) for r in op.regions])
                total += UNKNOWN_TRIP_COUNT * (inside + _ITERATION_COST)
            elif isinstance(op, ir.If):
                total += _branch(op, self.scalar)
                total += 0.0 if self.divergence.uniform(op.condition) or is_cheap(op) else _MISPREDICTION_COST
            else:
                total += own_cost(op) * self.moved.get(op, 1.0)
        return total

    @cached_property
    def moved(self) -> dict[ir.Op, float]:
        """The fraction of a load's cost that remains where LLVM hoists it out of loops."""
        return _moved_loads(self.body)

    @cached_property
    def of_one(self) -> float:
        """Cost of one scalar iteration."""
        return self.scalar(self.body) + self.lines(self.body, self.divergence)

    @cached_property
    def of_all(self) -> float:
        """Cost of all lanes, including the loads of tiles at the start."""
        total = self.lanes(self.body)
        for tile in dict.fromkeys(self.tiles.values()):
            columns = UNKNOWN_TRIP_COUNT if tile.columns is None else tile.columns
            total += _TRANSPOSED_COST * columns * (2 if tile.written else 1)
        return total

    def lanes(self, region: ir.Region) -> float:
        """Cost of all lanes without tile loads."""
        uniform, total = self.divergence.uniform, 0.0
        for op in region.body:
            if isinstance(op, ir.For | ir.While):
                inside = sum([self.lanes(r) for r in op.regions]) + _ITERATION_COST
                divergent = op in self.divergence.divergent
                # Carried values of inactive lanes are preserved: one select each.
                inside += len(op.outs) if divergent else 0
                times = _iterations(op, self.means) if isinstance(op, ir.For) else UNKNOWN_TRIP_COUNT
                lines = self.lines(op.body, self.along[op]) if isinstance(op, ir.For) else 0.0
                waiting = _WAITING_FACTOR if op in self.innermost else _OUTER_WAITING_FACTOR
                total += times * (inside * (waiting if divergent else 1.0) + lines)
            elif isinstance(op, ir.If):
                if uniform(op.condition):
                    total += _branch(op, self.lanes)
                else:
                    total += sum([self.lanes(r) for r in op.regions]) + len(op.outs) + 2
            elif isinstance(op, ir.Prim):
                together = self.divergence.step(op.out) is not None or self.has_vector_form(op)
                total += own_cost(op) if together else (own_cost(op) + _APART_COST) * self.count
            elif isinstance(op, ir.Get | ir.Set):
                indices = op.args[1:] if isinstance(op, ir.Get) else op.args[1:-1]
                total += own_cost(op) * (1.0 if uniform(*indices) else self.count * _GATHER_COST)
            elif isinstance(op, ir.Load | ir.Store | ir.Atomic):
                total += own_cost(op) * self.access(op) * self.moved.get(op, 1.0)
            else:
                total += own_cost(op)
        return total

    def access(self, op: ir.MemoryOp) -> float:
        """Extra cost of a vector access over a scalar one."""
        step = self.divergence.step(op.index[0])
        if op in self.tiles:
            return 1.0
        if isinstance(op, ir.Atomic):
            if step == 0 and not op.outs:
                return 1.0 if root_of(op.buffer) in self.columns else _HORIZONTAL_COST
            return 1.0 if step == op.buffer.dtype.size else self.count * 1.5
        if step in (0, op.buffer.dtype.size):
            return 1.0
        # Elements anywhere lie in lines of their own. Each lane goes on in its own ones as one iteration would.
        lines = float(self.has_inner) or self.near.get(op, 0.0) if step is None else _lines(step)
        return self.count * (_GATHER_COST + _LINE_COST * lines)

    def lines(self, body: ir.Region, divergence: Divergence) -> float:
        """Cost of the cache lines that each further iteration of a loop touches."""
        steps = [divergence.step(op.index[0]) for op in _accesses_of(body)]
        return _LINE_COST * sum([_lines(step) for step in steps if step is not None])

    @cached_property
    def along(self) -> dict[ir.For, Divergence]:
        """How values grow along each of the loops inside."""
        return {op: Divergence(op) for op in walk(self.body) if isinstance(op, ir.For)}

    @cached_property
    def near(self) -> dict[ir.MemoryOp, float]:
        """The accesses that go from element to element in the loop that they are in, with the lines that each of its
        iterations touches first.
        """
        found = [(op, along.step(op.index[0])) for loop, along in self.along.items() for op in _accesses_of(loop.body)]
        return {op: _lines(step) for op, step in found if step is not None and _lines(step) < 1.0}

    @cached_property
    def innermost(self) -> set[ir.Op]:
        """The loops without loops inside: lanes that leave these at different times meet again in the loops around."""
        loops = [op for op in walk(self.body) if isinstance(op, _LOOPS)]
        return {op for op in loops if not any(isinstance(one, _LOOPS) for region in op.regions for one in walk(region))}

    def has_vector_form(self, op: ir.Prim) -> bool:
        t = op.out.type
        assert isinstance(t, Scalar)
        if t.kind != "f":
            divides = op.prim in p.DIVISIONS or op.prim is p.power
            return not divides or isinstance(op.args[1], ir.Lit)
        if op.prim is p.power and isinstance(op.args[1], ir.Lit):
            return True
        return op.prim.lanes == "always" or (op.prim.lanes == "fast" and self.machine.fast_math)


def _lines(step: int | Stride) -> float:
    """Cache lines for each element of an access that grows by this step."""
    return min(1.0, abs(step) / _LINE_BYTES) if isinstance(step, int) else 1.0


def _accesses_of(region: ir.Region) -> Iterator[ir.MemoryOp]:
    """The accesses to memory in a region, without those of loops in it."""
    for op in region.body:
        if isinstance(op, ir.Load | ir.Store | ir.Atomic):
            yield op
        elif not isinstance(op, ir.For | ir.While):
            for inner in op.regions:
                yield from _accesses_of(inner)


def _moved_loads(body: ir.Region) -> dict[ir.Op, float]:
    """Loads that LLVM hoists out of a loop whose inner loops are unrolled, with the fraction of their cost that
    remains.
    """
    written = {root_of(op.buffer) for op in walk(body) if isinstance(op, ir.Store | ir.Atomic)}
    means = _mean_values(body)
    #: the loops that a value depends on
    depends: dict[ir.Atom, frozenset[ir.Op]] = {}
    found: dict[ir.Op, float] = {}

    def look(region: ir.Region, around: tuple[ir.Op, ...]) -> None:
        for op in region.body:
            needs = frozenset[ir.Op]().union(*[depends.get(a, ()) for a in op.args])
            if isinstance(op, ir.Load):
                if root_of(op.buffer) in written:
                    needs = frozenset(around)
                else:
                    found[op] = left(needs, around)
            elif not isinstance(op, ir.Prim):
                needs = frozenset(around)
            for inner in op.regions:
                loops = (*around, op) if isinstance(op, ir.For | ir.While) else around
                depends.update(dict.fromkeys(inner.params, frozenset(loops)))
                if isinstance(op, ir.For):
                    bounds = [depends.get(a, frozenset[ir.Op]()) for a in op.args[:2]]
                    depends[op.index] = frozenset((op,)).union(*bounds)
                look(inner, loops)
            depends.update(dict.fromkeys(op.outs, needs))

    def left(needs: frozenset[ir.Op], around: tuple[ir.Op, ...]) -> float:
        part = 1.0
        for loop in reversed(around):
            if loop not in needs:
                part /= max(1.0, _iterations(loop, means)) if isinstance(loop, ir.For) else UNKNOWN_TRIP_COUNT
            elif not (isinstance(loop, ir.For) and 0 < (trip_count(loop.lo, loop.hi) or _ENDLESS) <= _MAX_UNROLLED):
                break
        return part

    look(body, ())
    return found


def _branch(op: ir.If, cost: Callable[[ir.Region], float]) -> float:
    """The mean of both sides."""
    return sum([cost(r) for r in op.regions]) / 2 + 1


def _mean_values(body: ir.Region) -> dict[ir.Var, float]:
    """Mean values of integers over the loops of a body: of loop indices with known bounds, and of sums of these."""
    found: dict[ir.Var, float] = {}
    for op in walk(body):
        if isinstance(op, ir.For):
            lo, hi = [_mean(a, found) for a in (op.lo, op.hi)]
            if lo is not None and hi is not None:
                found[op.index] = max(lo, (lo + hi - 1) / 2)
        elif isinstance(op, ir.Prim) and op.prim in (p.add, p.sub) and not is_float(op.out.type):
            a, b = [_mean(x, found) for x in op.args]
            if a is not None and b is not None:
                found[op.out] = a + b if op.prim is p.add else a - b
    return found


def _mean(atom: ir.Atom, means: Mapping[ir.Var, float]) -> float | None:
    return float(atom.value) if isinstance(atom, ir.Lit) else means.get(atom)


def _iterations(op: ir.For, means: Mapping[ir.Var, float]) -> float:
    """Mean trip count of an inner loop; for a triangular nest, half of the outer length."""
    lo, hi = _mean(op.lo, means), _mean(op.hi, means)
    return UNKNOWN_TRIP_COUNT if lo is None or hi is None else max(0.0, hi - lo)


def _llvm_vectorises(loop: ir.For, along: Divergence) -> bool:
    """Whether LLVM vectorises an inner loop well. One that is not parallel must be innermost, carry only reductions,
    and have consecutive accesses. A parallel one may have loops inside that are unrolled, updates, and accesses that
    are a few elements apart.
    """
    inside = [*walk(loop.body)]
    if any(isinstance(op, ir.While | ir.Check | ir.NewStack | ir.Push | ir.Pop) for op in inside):
        return False
    accesses = [op for op in inside if isinstance(op, ir.Load | ir.Store | ir.Atomic)]
    steps = [(along.step(op.index[0]), op.buffer.dtype.size) for op in accesses]
    if loop.parallel:
        near = all(isinstance(step, int) and 0 <= step <= _MAX_INTERLEAVED * size for step, size in steps)
        return near and is_left_to_llvm(loop) and all(not isinstance(op, ir.Atomic) or op.plain for op in accesses)
    if any(isinstance(op, ir.For | ir.Atomic) for op in inside):
        return False
    used = uses(loop.body)
    made = {op.outs[0]: op for op in loop.body.body if isinstance(op, ir.Prim)}
    for carried, result in zip(loop.carried, loop.body.yields, strict=True):
        op = made.get(result) if isinstance(result, ir.Var) else None
        reordered = _REORDERED if is_float(carried.type) else _REORDERED_INTEGERS
        if op is None or op.prim not in reordered or carried not in op.args or used.get(carried) != 1:
            return False
    return all(step in (0, size) for step, size in steps)


def is_cheap(op: ir.If) -> bool:
    """Whether both sides of an `if` may run unconditionally for all lanes."""
    inner = [o for r in op.regions for o in r.body]
    return all(isinstance(o, ir.Prim) for o in inner) and sum([own_cost(o) for o in inner]) <= MAX_FLAT_BRANCH_COST
