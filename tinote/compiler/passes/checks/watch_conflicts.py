"""Dynamic race detection, in debug mode: watches whether iterations that may conflict access the same element, and
warns of the first that do.

    for parallel ordered %i in 0 .. %n:          for %i in 0 .. %n:
      %k = load @k[%i]                             %me = … %i + 1
      %a = load @x[%k]                    ->       %k = load @k[%i]
      store @x[%i], %a                             %a = load @x[%k]
                                                   if another iteration has written @x[%k]:   warn
                                                   store @x.seen[%k][READER], %me
                                                   if %a is not what stands in @x[%i]:
                                                     if another has read or written it:       warn
                                                     store @x.seen[%i][WRITER], %me
                                                   store @x[%i], %a

The loops run in order meanwhile, so the shadow memory needs no atomic operations. It consists of temporaries, which are
zero when a launch begins. Larger fields, and arrays, are not watched; a remark says so. A store of the value that is
already in memory is not a conflict, and neither are updates by one operation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum

from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.access import accesses_of, buffers_may_meet
from tinote.ir.buffers import root_of
from tinote.ir.build import Builder
from tinote.ir.conflicts import find_conflict
from tinote.ir.index_arithmetic import index_of_user
from tinote.ir.query import walk
from tinote.ir.rewrite import DROP, KEEP, Decision, Rewriter, with_body
from tinote.ir.types import i32, i64, u1
from tinote.remarks import Remark, Report, unread

#: Greatest size of a watched field, in numbers. Chosen, not measured.
_MAX_WATCHED = 1 << 18


class _Word(IntEnum):
    """The shadow words of a number: the iterations, counted from 1, that last wrote it, last updated it, read it first
    and read it last.
    """

    WRITER = 0
    UPDATER = 1
    READER = 2
    LATER_READER = 3


def watch_conflicts(fn: ir.Function, report: Report = unread) -> ir.Function:
    """`fn`, in scalar form, with race detection in the loops that `keep_order` has found."""
    body: list[ir.Op] = []
    for op in fn.region.body:
        if isinstance(op, ir.For) and op.parallel:
            watched, others = _watched(op, fn)
            if watched:
                report(Remark("watch_conflicts", op.loc, "debug mode watches whether its iterations meet", done=True))
            if others:
                names = ", ".join(sorted(f"`{b.name}`" for b in others))
                report(Remark("watch_conflicts", op.loc, f"debug mode does not watch {names}: an array, or too large"))
            body.append(_Watcher(op, watched).loop() if watched else op)
        else:
            body.append(op)
    return with_body(fn, body)


def _watched(loop: ir.For, fn: ir.Function) -> tuple[set[ir.Buffer], set[ir.Buffer]]:
    """The watched fields where iterations of a loop may conflict, and the other memory where they may."""
    inside = [*walk(ir.Region((), (loop,)))]
    ordered = [op for op in inside if isinstance(op, ir.For) and op.ordered]
    if not ordered:
        return set(), set()
    shared = ir.BufferKind.FIELD, ir.BufferKind.ARRAY
    accesses = [op for op in inside if isinstance(op, ir.MemoryOp) and op.buffer.kind in shared]
    stored = {op.buffer for op in accesses if isinstance(op, ir.Store)}
    loaded = {op.buffer for op in accesses if isinstance(op, ir.Load)}
    updated = {op.buffer for op in accesses if isinstance(op, ir.Atomic)}
    found = stored | (updated & loaded)
    watched = {b for b in found if b.kind is ir.BufferKind.FIELD and _size(b) <= _MAX_WATCHED}
    return watched, _in_conflict(found - watched, ordered, fn) if found != watched else set()


def _in_conflict(buffers: set[ir.Buffer], loops: Sequence[ir.For], fn: ir.Function) -> set[ir.Buffer]:
    """The members of `buffers` where iterations of these loops may conflict."""
    accesses = accesses_of(fn)

    def conflict(buffer: ir.Buffer, loop: ir.For) -> bool:
        inside = [one for one in accesses.within(accesses.loops[loop]) if buffers_may_meet(one.buffer, buffer)]
        return find_conflict(accesses, accesses.loops[loop], inside, unordered=True) is not None

    return {buffer for buffer in buffers if any(conflict(buffer, loop) for loop in loops)}


def _size(buffer: ir.Buffer) -> float:
    return math.prod([math.inf if extent is None else extent for extent in (*buffer.shape, *buffer.element)])


class _Watcher(Rewriter):
    """Nothing is renamed."""

    def __init__(self, loop: ir.For, watched: set[ir.Buffer]) -> None:
        super().__init__()
        self.levels = _nest(loop)
        self.seen = {
            b: ir.Buffer(b.name, i64, b.shape, (*b.element, len(_Word)), ir.BufferKind.TEMPORARY, offset=b.offset)
            for b in watched
        }
        self.count = ir.Buffer("iteration", i64, (), (), ir.BufferKind.TEMPORARY)
        self.warned = ir.Buffer("warned", u1, (), (), ir.BufferKind.TEMPORARY)
        self.builder = Builder()
        self.me = ir.Var(i64, "me")

    def loop(self) -> ir.Op:
        """The nest in order, its iterations numbered."""
        (new,) = self.region(ir.Region((), (self.levels[0],))).body
        return new

    def visit(self, op: ir.Op) -> None:
        if not isinstance(op, ir.For) or op not in self.levels:
            super().visit(op)
            return
        outer, self.out = self.out, []
        if op is self.levels[-1]:
            with self.builder.region() as opened:
                before = self.builder.load(self.count, ())
                self.builder.emit(ir.Prim(p.add, (before, ir.Lit(1, i64)), (self.me,), op.loc))
                self.builder.store(self.count, (), self.me)
            self.out += opened.body
        for inner in op.body.body:
            self.visit(inner)
        body, self.out = ir.Region(op.body.params, tuple(self.out), op.body.yields), outer
        self.out.append(ir.For(op.lo, op.hi, (), body, (), op.loc, origin=op.origin))

    def on(self, op: ir.Op) -> Decision | Sequence[ir.Atom]:
        if not isinstance(op, ir.Load | ir.Store | ir.Atomic) or op.buffer not in self.seen:
            return KEEP
        self.builder.loc = op.loc
        if isinstance(op, ir.Load):
            self.emit(op)  # first, so that an index out of range is reported about the user's own memory
            with self.builder.region() as opened:
                self.check(op, _Word.WRITER, _Word.UPDATER)
                self.note_reader(op)
            self.out += opened.body
            return DROP
        with self.builder.region() as opened:
            if isinstance(op, ir.Atomic):
                self.check(op, _Word.WRITER, _Word.READER, _Word.LATER_READER)
                self.builder.store(self.seen[op.buffer], self.at(op, _Word.UPDATER), self.me)
            else:
                self.store(op)
        self.out += opened.body
        self.emit(op)
        return DROP

    def store(self, op: ir.Store) -> None:
        b = self.builder
        changes = b.prim(p.ne, b.load(op.buffer, op.index), op.value)
        with b.region() as inside:
            self.check(op, *_Word)
            b.store(self.seen[op.buffer], self.at(op, _Word.WRITER), self.me)
        b.if_(changes, inside.close())

    def at(self, op: ir.MemoryOp, word: _Word) -> tuple[ir.Atom, ...]:
        return (*op.index, ir.Lit(int(word), i32))

    def note_reader(self, op: ir.Load) -> None:
        b, seen = self.builder, self.seen[op.buffer]
        first = b.load(seen, self.at(op, _Word.READER))
        with b.region() as unread:
            b.store(seen, self.at(op, _Word.READER), self.me)
        with b.region() as read:
            b.store(seen, self.at(op, _Word.LATER_READER), self.me)
        b.if_(b.prim(p.eq, first, ir.Lit(0, i64)), unread.close(), read.close())

    def check(self, op: ir.MemoryOp, *words: _Word) -> None:
        """Emit a warning, once per launch, if another iteration has accessed the element in one of these ways."""
        b = self.builder
        for word in words:
            other = b.load(self.seen[op.buffer], self.at(op, word))
            is_other = b.prim(p.and_, b.prim(p.ne, other, ir.Lit(0, i64)), b.prim(p.ne, other, self.me))
            silent = b.prim(p.logical_not, b.load(self.warned, ()))
            with b.region() as inside:
                b.store(self.warned, (), ir.true)
                self.warn(op, word, other)
            b.if_(b.prim(p.and_, is_other, silent), inside.close())

    def warn(self, op: ir.MemoryOp, word: _Word, other: ir.Var) -> None:
        b, loop = self.builder, self.levels[0]
        numbers = [b.prim(p.sub, n, ir.Lit(1, i64)) for n in (other, self.me)]
        if len(self.levels) == 1:
            numbers = [b.prim(p.add, n, b.cast(loop.lo, i64)) for n in numbers]
        rank = root_of(op.buffer).rank
        index = index_of_user(b, root_of(op.buffer), op.index[:rank])
        parts: list[str | None] = [
            "iterations ",
            None,
            " and ",
            None,
            f" of the parallel loop meet in '{op.buffer.name}[",
        ]
        for axis in range(len(index)):
            parts += [", ", None] if axis else [None]
        parts.append("]" if index else "None]")
        for _ in op.index[rank:]:
            parts += ["[", None, "]"]
        did = {_Word.WRITER: "writes", _Word.UPDATER: "updates"}.get(word, "reads")
        does = "read" if isinstance(op, ir.Load) else "change"
        parts.append(f"': the first {did} what the second {does}s, and iterations have no order")
        printed = ir.Print(tuple(parts), (*numbers, *index, *op.index[rank:]), op.loc)
        printed.about = f"{loop.loc.file}:{loop.loc.line}:{loop.loc.column}"
        b.emit(printed)


def _nest(loop: ir.For) -> list[ir.For]:
    """The loops of a perfect nest, outermost first."""
    found = [loop]
    while len(found[-1].body.body) == 1:
        inner = found[-1].body.body[0]
        if not isinstance(inner, ir.For) or not inner.parallel:
            break
        found.append(inner)
    return found
