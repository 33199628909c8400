"""Privatisation: gives each thread its own copy of a small buffer that all threads accumulate into.

    task parallel %i: i32 in 0i32 .. %n:            task parallel %i: i32 in 0i32 .. %n:
      %a: f32 = load @x[%i]                           private add @U.private of @U
      atomic add @U[], %a                     ->      %a: f32 = load @x[%i]
                                                      atomic add @U.private[], %a

A copy starts at the neutral element and is merged into its buffer when the task ends. That requires that the task
accesses the buffer in no other way, and it pays only if there are many more updates than elements. If each iteration
updates its own elements, no copy is needed.

The length of an array is known only at launch. The task then has two versions, with copies and without, and a serial
task before them decides which version runs.

    task parallel %i: i32 in 0i32 .. %n:            task serial:
      %k: i32 = load @label[%i]                       … are there few elements, and many more updates? …
      atomic add @count[%k], 1i32             ->    %few: i32 = load @few           %n or 0
                                                    task parallel %i: i32 in 0i32 .. %few:
                                                      private add @count.private of @count
                                                      …
                                                    %many: i32 = load @many         0 or %n
                                                    task parallel %i: i32 in 0i32 .. %many:
                                                      %k: i32 = load @label[%i]
                                                      atomic add @count[%k], 1i32
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.access import Access, Accesses, Touched, accesses_of
from tinote.ir.buffers import bytes_of
from tinote.ir.build import Builder
from tinote.ir.primitives import Primitive
from tinote.ir.query import span_of, trip_count, walk
from tinote.ir.ranges import Loop
from tinote.ir.rewrite import DROP, KEEP, Decision, Rewriter, clone_region, with_body
from tinote.ir.types import Scalar, i32, i64, u1
from tinote.remarks import Remark, Report, unread

#: Bytes that the copies of one task may take per thread: about the size of a core's own cache. Chosen, not
#: measured.
_MAX_COPY_BYTES = 1024 * 1024
#: The same where it is not known how many updates there are, so that copies cost little if there are few. Chosen, not
#: measured.
_MAX_COPY_BYTES_WITHOUT_COUNT = 64 * 1024
#: Merging must be cheap compared with the updates: least number of updates per element, counted over all threads. An
#: element is set, read and added by each thread, at once with the others: about 1 ns, however many threads there are.
#: An atomic update takes 5 to 15 ns, divided by the number of threads. On two threads a quarter is enough; 2 is
#: for many.
_MIN_UPDATES_PER_ELEMENT = 2
#: Capacity, in numbers, of the copy of a target whose length is known only at launch. Chosen, not measured.
_MAX_NUMBERS = 1 << 13
#: Operations of a task that has two versions because of such targets, at most. Chosen, not measured.
_MAX_OPERATIONS_TWICE = 250
#: Amounts are counted in i64: products of two amounts up to this do not wrap.
_MAX_AMOUNT = 1 << 31


def privatise(fn: ir.Function, report: Report = unread, *, one_thread: bool = False) -> ir.Function:
    """`fn` with private copies of contended buffers.

    `one_thread`: launches run on one thread, so that no task gets two versions.
    """
    accesses = accesses_of(fn)
    body: list[ir.Op] = []
    loads: dict[ir.Atom, ir.Load] = {}
    for op in fn.region.body:
        if isinstance(op, ir.Load):
            loads[op.out] = op
        if isinstance(op, ir.Task) and op.parallel:
            body += _Choice(op, accesses, loads, report).tasks(one_thread)
        else:
            body.append(op)
    return with_body(fn, body)


class _Choice:
    """Chooses the copies of a task. `loads`: the values that are loaded between tasks before it."""

    def __init__(self, task: ir.Task, accesses: Accesses, loads: dict[ir.Atom, ir.Load], report: Report) -> None:
        self.task = task
        self.accesses = accesses
        self.loads = loads
        self.report = report
        self.candidates = sorted(_candidates(task, accesses), key=lambda c: c.size)
        self.used = sum([bytes_of(private.copy) or 0 for private in task.privates])

    def tasks(self, one_thread: bool) -> list[ir.Op]:
        """The task with the private copies that pay, or its two versions."""
        chosen = self.known()
        at_launch = [] if one_thread else self.known_at_launch()
        if not at_launch:
            return [self.with_copies(self.task.args, self.task.body, chosen, self.task.name)] if chosen else [self.task]
        return self.either(chosen, at_launch)

    def known(self) -> list[ir.Private]:
        """Copies of known length, smallest first as long as there is room."""
        trips = _trips(self.task)
        chosen: list[ir.Private] = []
        for c in [c for c in self.candidates if None not in c.target.shape]:
            updates = sum([trips[access.op] for access in c.updates])
            limit = _MAX_COPY_BYTES if updates < math.inf else _MAX_COPY_BYTES_WITHOUT_COUNT
            large = self.used + c.size > limit
            if large or updates < _MIN_UPDATES_PER_ELEMENT * c.elements:
                self.remark(c, f"it would take more than {limit >> 10:,} KiB" if large else "it has too few updates")
                continue
            self.remark(c)
            self.used += c.size
            chosen.append(ir.Private(c.target, _copy_of(c, self.accesses.loops[self.task]), c.prim))
        return chosen

    def known_at_launch(self) -> list[_Candidate]:
        """The candidates of other lengths."""
        found = [c for c in self.candidates if None in c.target.shape and _is_packed(c.target)]
        size = sum([bytes_of(_list_of(c.target)) or 0 for c in found])
        long = sum(1 for _ in walk(self.task.body)) > _MAX_OPERATIONS_TWICE
        large = self.used + size > _MAX_COPY_BYTES
        why = (
            "two versions of the task would be too long"
            if long
            else "room for any length is too large"
            if large
            else ""
        )
        for c in found:
            self.remark(c, why)
        return [] if why else found

    def remark(self, candidate: _Candidate, why: str = "") -> None:
        """Report whether each thread has a copy, or why not."""
        name = candidate.target.name
        text = f"no copy of `{name}` for each thread: {why}" if why else f"a copy of `{name}` for each thread"
        self.report(Remark("privatise", span_of(candidate.updates[0].op), text, done=not why))

    def with_copies(
        self, args: tuple[ir.Atom, ...], body: ir.Region, chosen: Sequence[ir.Private], name: str
    ) -> ir.Task:
        """A task with these bounds and copies."""
        new = self.task.rebuilt(args, (_Redirection(chosen).region(body),))
        assert isinstance(new, ir.Task)
        new.name, new.privates = name, (*self.task.privates, *chosen)
        return new

    def either(self, chosen: list[ir.Private], at_launch: list[_Candidate]) -> list[ir.Op]:
        """The task with copies at launch if there are few elements, and many more updates; else without them."""
        task, t = self.task, self.task.args[0].type
        assert isinstance(t, Scalar)
        copies = [ir.Private(c.target, _list_of(c.target), c.prim) for c in at_launch]
        ends = [ir.Buffer(f"{task.name}.{word}", t, (), kind=ir.BufferKind.TEMPORARY) for word in ("few", "many")]
        builder = Builder(loc=task.loc)
        with builder.region() as deciding:
            amounts = _Amounts(builder, self.accesses, self.loads)
            few: ir.Atom = ir.true
            for c in at_launch:
                elements = amounts.elements(c.target)
                room = builder.prim(p.le, elements, ir.Lit(_MAX_NUMBERS // math.prod(c.target.element), i64))
                least = builder.prim(p.mul, elements, ir.Lit(_MIN_UPDATES_PER_ELEMENT, i64))
                enough = builder.prim(p.ge, amounts.updates(c), least)
                for condition in (room, enough):
                    few = condition if few == ir.true else builder.prim(p.and_, few, condition)
            lo, hi = (amounts.known(a) or a for a in task.args)
            for buffer, sides in zip(ends, ((hi, lo), (lo, hi)), strict=True):
                builder.store(buffer, (), builder.prim(p.select, few, *sides))
        decide = ir.Task(f"{task.name}.choose", (), deciding.close(), parallel=False, loc=task.loc)
        with builder.region() as between:
            bounds = [(task.args[0], builder.load(buffer, ())) for buffer in ends]
        again, _ = clone_region(task.body)
        return [
            decide,
            *between.body,
            self.with_copies(bounds[0], task.body, [*chosen, *copies], f"{task.name}.private"),
            self.with_copies(bounds[1], again, chosen, task.name),
        ]


class _Candidate:
    """A buffer that a task only accumulates into, by `prim`; `size` in bytes."""

    def __init__(self, target: ir.Buffer, prim: Primitive, updates: list[Access]) -> None:
        self.target = target
        self.prim = prim
        self.updates = updates
        self.elements = math.prod([n or 0 for n in target.shape]) * math.prod(target.element)
        self.size = bytes_of(target) or 0

    def walked(self, loop: Loop) -> bool:
        """Whether a loop inside of `loop` updates one element after the other."""
        last = len(self.target.shape) - 1
        return last >= 0 and any(
            inner is not loop and inner.index is not None and abs(access.forms[last].coefficient(inner.index)) == 1
            for access in self.updates
            for inner in access.loops
        )


def _copy_of(c: _Candidate, loop: Loop) -> ir.Buffer:
    """The private copy of a buffer. Components are stored separately if a loop walks over the elements, so that it
    updates consecutive numbers; else the components of an element are adjacent.
    """
    target = c.target
    shape, size = tuple([n or 0 for n in target.shape]), target.dtype.size
    if c.walked(loop):
        strides, apart = ir.row_major(shape, size), ir.row_major(target.element, size * math.prod(shape))
    else:
        strides, apart = ir.row_major(shape, size * math.prod(target.element)), ir.row_major(target.element, size)
    return ir.Buffer(
        f"{target.name}.private", target.dtype, target.shape, target.element, ir.BufferKind.PRIVATE, strides, apart
    )


def _candidates(task: ir.Task, accesses: Accesses) -> Iterator[_Candidate]:
    loop = accesses.loops[task]
    inside = accesses.within(loop)
    touched = Touched(inside)
    found: dict[ir.Buffer, list[Access]] = {}
    for access in inside:
        found.setdefault(access.buffer, []).append(access)
    for buffer, updates in found.items():
        prim = _only_updates(updates)
        if prim is None or buffer.kind is ir.BufferKind.PRIVATE:
            continue
        if touched.sharing(buffer):
            continue
        if buffer.dtype is u1 and prim not in (p.and_, p.or_, p.xor):
            continue
        # Updates with the same index are equivalent.
        distinct = {access.op.args[:-1]: access for access in updates}.values()
        alike = Touched(distinct)
        if any(accesses.may_meet_across(a, b, loop) for a in distinct for b in alike.near(a)):
            yield _Candidate(buffer, prim, updates)


def _list_of(target: ir.Buffer) -> ir.Buffer:
    """The copy of a target whose length is known only at launch."""
    count = _MAX_NUMBERS // math.prod(target.element)
    return ir.Buffer(f"{target.name}.private", target.dtype, (count,), target.element, ir.BufferKind.PRIVATE)


def _is_packed(target: ir.Buffer) -> bool:
    """Whether the numbers of an array are contiguous, element by element."""
    return target.strides is None and target.element_strides == ir.row_major(target.element, target.dtype.size)


def _only_updates(accesses: list[Access]) -> Primitive | None:
    """The common operation of the accesses, if all are updates by it with unused old values."""
    prims = [access.op.prim if isinstance(access.op, ir.Atomic) and not access.op.outs else None for access in accesses]
    return prims[0] if all(prim is prims[0] for prim in prims) else None


def _trips(task: ir.Task) -> dict[ir.Op, float]:
    """Execution counts of a task's operations, over all threads; unknown counts are infinite."""
    found: dict[ir.Op, float] = {}

    def visit(region: ir.Region, trips: float) -> None:
        for op in region.body:
            found[op] = trips
            inner = trips
            if isinstance(op, ir.For):
                inner *= _length(op.lo, op.hi)
            elif isinstance(op, ir.While):
                inner = math.inf
            for r in op.regions:
                visit(r, inner)

    visit(task.body, _length(*task.args))
    return found


def _length(lo: ir.Atom, hi: ir.Atom) -> float:
    count = trip_count(lo, hi)
    # Not zero: 0 times infinity (an empty loop in an endless one) would be NaN.
    return math.inf if count is None else max(count, 1)


class _Redirection(Rewriter):
    """Redirects updates to the copies."""

    def __init__(self, privates: Sequence[ir.Private]) -> None:
        super().__init__()
        self.privates = {private.target: private for private in privates}

    def on(self, op: ir.Op) -> Decision | Sequence[ir.Atom]:
        private = self.privates.get(op.buffer) if isinstance(op, ir.Atomic) else None
        if private is None:
            return KEEP
        assert isinstance(op, ir.Atomic)
        self.emit(op.elsewhere(private.copy, self.place(op) if private.is_flat else op.args))
        return DROP

    def place(self, op: ir.Atomic) -> tuple[ir.Atom, ...]:
        """The operands of an update of a list in which the target's elements follow each other row by row. In i64, in
        which nothing wraps, so that consecutive elements are seen to be that.
        """
        buffer = op.buffer
        total: ir.Atom = ir.Lit(0, i64)
        for axis, index in enumerate(op.index[: buffer.rank]):
            wide = self.apply(p.cast, i64, op, index) if index.type is not i64 else index
            if axis:
                total = self.apply(p.add, i64, op, self.apply(p.mul, i64, op, total, self.extent(op, axis)), wide)
            else:
                total = wide
        return (total, *op.args[buffer.rank :])

    def extent(self, op: ir.Atomic, axis: int) -> ir.Atom:
        known = op.buffer.shape[axis]
        if known is not None:
            return ir.Lit(known, i64)
        length = ir.Var(i32)
        self.emit(ir.Extent(op.buffer, axis, (length,), op.loc))
        return self.apply(p.cast, i64, op, length)


class _Amounts:
    """Computes amounts in a serial task, in i64."""

    def __init__(self, builder: Builder, accesses: Accesses, loads: dict[ir.Atom, ir.Load]) -> None:
        self.builder = builder
        self.accesses = accesses
        self.loads = loads
        self.found: dict[ir.Atom, ir.Atom | None] = {}

    def times(self, a: ir.Atom, b: ir.Atom) -> ir.Atom:
        return self.builder.prim(p.minimum, self.builder.prim(p.mul, a, b), ir.Lit(_MAX_AMOUNT, i64))

    def elements(self, buffer: ir.Buffer) -> ir.Atom:
        total: ir.Atom = ir.Lit(1, i64)
        for axis in range(buffer.rank):
            total = self.times(total, self.builder.cast(self.builder.extent(buffer, axis), i64))
        return total

    def updates(self, c: _Candidate) -> ir.Atom:
        """A lower bound of the number of updates, from the loop lengths known before the task."""
        total: ir.Atom = ir.Lit(0, i64)
        for access in c.updates:
            count: ir.Atom = ir.Lit(1, i64)
            for loop in access.loops:
                if loop.index is None:
                    continue
                lo, hi = (self.known(a) for a in loop.op.args[:2])
                if lo is not None and hi is not None:
                    length = self.builder.prim(p.sub, self.builder.cast(hi, i64), self.builder.cast(lo, i64))
                    count = self.times(count, self.builder.prim(p.maximum, length, ir.Lit(0, i64)))
            total = self.builder.prim(p.add, total, count)
        return total

    def known(self, atom: ir.Atom) -> ir.Atom | None:
        """The value of a task's atom or bound before the task; None if unknown."""
        if isinstance(atom, ir.Lit):
            return atom
        if atom not in self.found:
            load, op = self.loads.get(atom), self.accesses.definitions.get(atom)
            self.found[atom] = None
            if load is not None:
                self.found[atom] = self.builder.load(load.buffer, ())
            elif op is None and atom not in self.accesses.indices and self.accesses.home.get(atom) is None:
                self.found[atom] = atom
            elif isinstance(op, ir.Extent):
                self.found[atom] = self.builder.extent(op.buffer, op.axis)
            elif isinstance(op, ir.Prim) and op.prim in (p.add, p.sub, p.minimum, p.maximum, p.cast):
                args = [self.known(a) for a in op.args]
                if None not in args:
                    self.found[atom] = self.builder.prim(op.prim, *args, type=op.out.type)  # type: ignore[arg-type]
        return self.found[atom]
