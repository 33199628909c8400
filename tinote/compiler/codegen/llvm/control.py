"""Control flow: loops, branches, and polling of the stop word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tinote.compiler.codegen.llvm import lanes as llvm_lanes
from tinote.compiler.codegen.llvm.cost import COST_BETWEEN_POLLS, LoopPlan, Polling, is_latency_bound, is_too_long
from tinote.compiler.codegen.llvm.function import TaskText
from tinote.compiler.codegen.llvm.ranges import range_of
from tinote.compiler.codegen.llvm.types import TYPES
from tinote.ir import nodes as ir
from tinote.ir.checks import checks_alone, without_checks
from tinote.ir.lanes import lanes_of
from tinote.ir.query import walk
from tinote.ir.types import Lanes, Scalar, u64
from tinote.source import Span

#: A multiple of so many iterations fills vectors. Longer loops than the other are not written out anyway.
_ROW, _LONGEST_ROW = 8, 64


def for_(e: TaskText, op: ir.For) -> None:
    plan = e.loops.plans[op]
    index = op.index
    lows, highs = range_of(e.ranges, op.lo), range_of(e.ranges, op.hi)
    e.ranges[index] = (lows[0], max(highs[1] - 1, lows[0]))
    lo, hi = e.wide(op.lo), e.wide(op.hi)
    initial = [e.use(a) for a in op.initial]
    outs = loop(
        e,
        op.body,
        lo,
        hi,
        initial,
        plan,
        op.loc,
        vectorize=op.vectorize,
        reverse=op.reverse,
        runs=lows[1] < highs[0],
        lanes=lanes_of(op),
    )
    for out, text in zip(op.outs, outs, strict=True):
        e.env[out] = text


def loop(
    e: TaskText,
    body: ir.Region,
    lo: str,
    hi: str,
    initial: list[str],
    plan: LoopPlan,
    loc: Span,
    *,
    vectorize: bool,
    reverse: bool,
    runs: bool,
    lanes: int,
) -> list[str]:
    """A loop over [lo, hi) in i64; `runs`: it certainly has an iteration; `lanes`: the number of iterations per
    execution of the body. Returns the carried values at its end.
    """
    # Independence is declared only where it is proved: iterations of a parallel loop may still conflict.
    group = e.module.metadata.distinct("!{}") if vectorize else None
    if plan.polling is not Polling.STRIPS:
        return _plain_loop(e, body, lo, hi, initial, plan, loc, group, vectorize, reverse, runs, lanes)
    # Strip-mining: each strip is a loop that does not poll.
    step = plan.strip
    less = "ult" if body.params[0].type is u64 else "slt"
    carried = [TYPES[v.type] for v in _carried(body, lanes)]  # type: ignore[index]
    before, strip, done = e.block, e.label(), e.label()
    before = _guard(e, lo, hi, strip, done, runs, less)
    e.begin(strip)
    start = e.name()
    hole = e.hole()
    values = [e.name() for _ in carried]
    holes = [e.hole() for _ in carried]
    # The rest cannot wrap as an unsigned number, however far apart the bounds are.
    rest = e.value(f"sub i64 {start}, {lo}" if reverse else f"sub i64 {hi}, {start}")
    count = e.value(f"call i64 @llvm.umin.i64(i64 {rest}, i64 {step})")
    end = e.value(f"sub i64 {start}, {count}" if reverse else f"add i64 {start}, {count}")
    first, last = (end, start) if reverse else (start, end)
    results = _plain_loop(e, body, first, last, values, plan, loc, group, vectorize, reverse, True, lanes)
    burn_fuel(e, e.value(f"mul nuw nsw i64 {count}, {plan.cost}"), loc)
    more = e.value(f"icmp ne i64 {end}, {lo if reverse else hi}")
    latch = e.block
    e.do(f"br i1 {more}, label %{strip}, label %{done}")
    e.fill(hole, f"{start} = phi i64 [ {hi if reverse else lo}, %{before} ], [ {end}, %{latch} ]")
    joined = _joined(carried, (initial, before), (results, latch))
    for at, name, phi in zip(holes, values, joined, strict=True):
        e.fill(at, f"{name} = {phi}")
    e.begin(done)
    if runs:
        return results
    return [e.value(phi) for phi in joined]


def _joined(types: Sequence[str], one: tuple[Sequence[str], str], other: tuple[Sequence[str], str]) -> list[str]:
    """The values of two blocks at their join, each as a phi."""
    (first, a), (second, b) = one, other
    return [f"phi {ty} [ {x}, %{a} ], [ {y}, %{b} ]" for ty, x, y in zip(types, first, second, strict=True)]


def _guard(e: TaskText, lo: str, hi: str, enter: str, skip: str, runs: bool, less: str) -> str:
    """Enter a loop if it has an iteration; returns the block with this branch."""
    if runs:
        e.do(f"br label %{enter}")
    else:
        e.do(f"br i1 {e.value(f'icmp {less} i64 {lo}, {hi}')}, label %{enter}, label %{skip}")
    return e.block


def _plain_loop(
    e: TaskText,
    body: ir.Region,
    lo: str,
    hi: str,
    initial: list[str],
    plan: LoopPlan,
    loc: Span,
    group: int | None,
    vectorize: bool,
    reverse: bool,
    runs: bool,
    lanes: int,
) -> list[str]:
    """The loop itself: entered if it has an iteration, left at its bottom."""
    if vectorize and not is_too_long(body) and any(isinstance(op, ir.Check) for op in walk(body)):
        _checks_first(e, body, lo, hi)
        body = without_checks(body)
    index = body.params[0]
    t = index.type
    assert isinstance(t, Scalar)
    unsigned = t is u64
    params = _carried(body, lanes)
    carried = [TYPES[v.type] for v in params]  # type: ignore[index]
    loop, done, rest = e.label(), e.label(), ""
    start = e.value(f"add i64 {hi}, -1") if reverse else lo
    before = _guard(e, lo, hi, loop, done, runs, "ult" if unsigned else "slt")
    e.begin(loop)
    iteration = e.name()
    hole = e.hole()
    values = [e.name() for _ in carried]
    holes = [e.hole() for _ in carried]
    _bind_index(e, index, iteration)
    for v, name in zip(params, values, strict=True):
        e.env[v] = name
    if lanes > 1:
        mask = body.params[1]
        assert isinstance(mask.type, Lanes)
        # The rest cannot wrap as an unsigned number, but what follows the last lanes may.
        rest = e.value(f"sub i64 {hi}, {iteration}")
        e.env[mask] = llvm_lanes.mask_below(e, rest, mask.type)
    outer = (e.groups, e.group_text, e.proved_text)
    if group is not None:
        e.groups = (*e.groups, group)
        chosen = (
            group if len(e.groups) == 1 else e.module.metadata.add("!{" + ", ".join(f"!{g}" for g in e.groups) + "}")
        )
        e.group_text = f", !llvm.access.group !{chosen}"
    e.proved_text = f", !llvm.access.group !{group}" if vectorize else ""
    results = e.region(body)
    e.groups, e.group_text, e.proved_text = outer
    if plan.polling is Polling.ITERATIONS:
        burn_fuel(e, str(plan.cost * lanes), loc)
    wraps = "" if unsigned or lanes > 1 else " nsw"
    following = e.value(f"add{wraps} i64 {iteration}, {-1 if reverse else lanes}")
    if reverse:
        more = e.value(f"icmp {'ugt' if unsigned else 'sgt'} i64 {iteration}, {lo}")
    elif lanes > 1:
        more = e.value(f"icmp ugt i64 {rest}, {lanes}")
    else:
        more = e.value(f"icmp {'ult' if unsigned else 'slt'} i64 {following}, {hi}")
    latch = e.block
    whole = vectorize and _is_row(lo, hi)
    note = _loop_note(e, group, body, twice=vectorize and is_latency_bound(body) and not whole, whole=whole)
    e.do(f"br i1 {more}, label %{loop}, label %{done}{note}")
    e.fill(hole, f"{iteration} = phi i64 [ {start}, %{before} ], [ {following}, %{latch} ]")
    joined = _joined(carried, (initial, before), (results, latch))
    for at, name, phi in zip(holes, values, joined, strict=True):
        e.fill(at, f"{name} = {phi}")
    e.begin(done)
    if runs:
        return [e.value(f"phi {ty} [ {b}, %{latch} ]") for ty, b in zip(carried, results, strict=True)]
    return [e.value(phi) for phi in joined]


def _bind_index(e: TaskText, index: ir.Var, iteration: str) -> None:
    """Bind the index of a loop to `iteration`, an i64."""
    t = index.type
    assert isinstance(t, Scalar)
    narrow = f"trunc {'nsw' if t.kind == 'i' else 'nuw'} i64 {iteration} to {TYPES[t]}"
    e.env[index] = e.value(narrow) if t.bits < 64 else iteration
    e.widened[index] = iteration


def _checks_first(e: TaskText, body: ir.Region, lo: str, hi: str) -> None:
    """Make the checks of all iterations of an independent loop before it: first test whether all hold, several
    iterations at once; if not, check one iteration after the other up to the fault.
    """
    index, alone = body.params[0], checks_alone(body)
    less = "ult" if index.type is u64 else "slt"
    e.gathered = e.first("alloca i1")
    e.do(f"store i1 true, ptr {e.gathered}")
    with counted(e, lo, hi, less) as iteration:
        _bind_index(e, index, iteration)
        e.region(alone)
    good = e.value(f"load i1, ptr {e.gathered}")
    e.gathered = ""
    on, search = e.label(), e.label()
    e.do(f"br i1 {good}, label %{on}, label %{search}, !prof !{e.module.likely}")
    e.begin(search)
    with counted(e, lo, hi, less) as iteration:
        _bind_index(e, index, iteration)
        e.region(alone)
    e.do(f"br label %{on}")
    e.begin(on)


def _is_row(lo: str, hi: str) -> bool:
    """Whether the iterations of a loop fill a few vectors. LLVM would write them out one by one, and then look for
    vectors in the loop around.
    """
    count = int(hi) - int(lo) if lo.isdecimal() and hi.isdecimal() else 0
    return 0 < count <= _LONGEST_ROW and count % _ROW == 0


def _loop_note(e: TaskText, group: int | None, body: ir.Region, *, twice: bool, whole: bool) -> str:
    """Loop metadata. `twice`: run two iterations (or vectors of iterations) side by side. LLVM does so for short
    iterations only. `whole`: it is not to be written out before it is vectorised.

    `vectorize.enable` is never set: LLVM takes it as permission to reorder sums regardless of the flags, and warns
    where it cannot vectorise.
    """
    metadata = e.module.metadata
    notes = [] if group is None else [metadata.add(f'!{{!"llvm.loop.parallel_accesses", !{group}}}')]
    if twice:
        notes.append(metadata.add('!{!"llvm.loop.interleave.count", i32 2}'))
    if whole:
        notes.append(metadata.add('!{!"llvm.loop.unroll.disable"}'))
    if is_too_long(body):
        notes.append(metadata.add('!{!"llvm.loop.vectorize.enable", i1 false}'))
    if not notes:
        return ""
    joined = ", ".join([f"!{note}" for note in notes])
    return f", !llvm.loop !{metadata.distinct(f'!{{{{self}}, {joined}}}')}"


@contextmanager
def counted(e: TaskText, lo: str, hi: str, less: str = "slt") -> Iterator[str]:
    """A plain loop around what is emitted inside the `with`; yields the counter, an i64. `less` compares counters."""
    loop, done = e.label(), e.label()
    before = _guard(e, lo, hi, loop, done, False, less)
    e.begin(loop)
    iteration, hole = e.name(), e.hole()
    yield iteration
    following = e.value(f"add{' nsw' if less == 'slt' else ''} i64 {iteration}, 1")
    more = e.value(f"icmp {less} i64 {following}, {hi}")
    e.fill(hole, f"{iteration} = phi i64 [ {lo}, %{before} ], [ {following}, %{e.block} ]")
    e.do(f"br i1 {more}, label %{loop}, label %{done}")
    e.begin(done)


def while_(e: TaskText, op: ir.While) -> None:
    types = [TYPES[v.type] for v in op.body.params]  # type: ignore[index]
    initial = [e.use(a) for a in op.initial]
    before, head, inside, done = e.block, e.label(), e.label(), e.label()
    e.do(f"br label %{head}")
    e.begin(head)
    values = [e.name() for _ in types]
    holes = [e.hole() for _ in types]
    for region in op.regions:
        e.env.update(zip(region.params, values, strict=True))
    outer = (e.groups, e.group_text, e.proved_text)
    e.groups, e.group_text, e.proved_text = (), "", ""
    (condition,) = e.region(op.condition)
    e.do(f"br i1 {condition}, label %{inside}, label %{done}")
    e.begin(inside)
    results = e.region(op.body)
    burn_fuel(e, str(e.loops.plans[op].cost), op.loc)
    e.groups, e.group_text, e.proved_text = outer
    latch = e.block
    e.do(f"br label %{head}")
    joined = _joined(types, (initial, before), (results, latch))
    for at, name, phi in zip(holes, values, joined, strict=True):
        e.fill(at, f"{name} = {phi}")
    e.begin(done)
    e.env.update(zip(op.outs, values, strict=True))


def if_(e: TaskText, op: ir.If) -> None:
    condition = e.use(op.condition)
    then, orelse, join = e.label(), e.label(), e.label()
    otherwise = orelse if op.orelse.body or op.outs else join
    weights = f", !prof !{e.module.likely}" if op.likely else ""
    e.do(f"br i1 {condition}, label %{then}, label %{otherwise}{weights}")
    ends: list[tuple[list[str], str]] = []
    for label, region in ((then, op.then), (orelse, op.orelse)):
        if label is orelse and otherwise is join:
            break
        e.begin(label)
        yields = e.region(region)
        ends.append((yields, e.block))
        e.do(f"br label %{join}")
    e.begin(join)
    if op.outs:
        one, other = ends
        for out, phi in zip(op.outs, _joined([TYPES[v.type] for v in op.outs], one, other), strict=True):  # type: ignore[index]
            e.env[out] = e.value(phi)


def burn_fuel(e: TaskText, work: str, loc: Span) -> None:
    """Account for work of the loop at `loc`; poll the stop word once enough work is done."""
    fuel = e.fuel()
    total = e.value(f"add nuw nsw i64 {e.value(f'load i64, ptr {fuel}')}, {work}")
    e.do(f"store i64 {total}, ptr {fuel}")
    poll, on = e.label(), e.label()
    little = e.value(f"icmp ult i64 {total}, {COST_BETWEEN_POLLS}")
    e.do(f"br i1 {little}, label %{on}, label %{poll}, !prof !{e.module.likely}")
    status, stop, stopped = e.name(), e.name(), e.label()
    e.cold_block(
        poll,
        f"store i64 0, ptr {fuel}",
        f"{status} = call i32 @tn_poll(ptr %block, i32 {e.module.loop_site(loc)})",
        f"{stop} = icmp eq i32 {status}, 0",
        f"br i1 {stop}, label %{on}, label %{stopped}, !prof !{e.module.likely}",
    )
    e.cold_block(stopped, f"ret i32 {status}")
    e.begin(on)


def _carried(body: ir.Region, lanes: int) -> tuple[ir.Var, ...]:
    """The parameters of a loop after its index, and its mask if it runs in lanes."""
    return body.params[2:] if lanes > 1 else body.params[1:]
