"""Adds checks of the access rules (`access_rules.py`) to a function. Its memory gets a shadow that remembers who read
and wrote each element.

    store @x[%i], %a        ->        store @x[%i], %a
                                      %r = load @x.shadow[%i][READ]
                                      %w = load @x.shadow[%i][WRITE]
                                      if the element was read, or written before:   note the violation
                                      store @x.shadow[%i][READ], 0
                                      store @x.shadow[%i][WRITE], %code
                                      store @x.shadow[%i][ITERATION], %iteration

It works on the first typed form, which still has every access that the user wrote. A *code* tells which access of which
launch it was: the number of its site, counted from a number that the launch is given (`Ledger.FIRST_CODE`). The first
violation of each element in a launch is noted in the shadow itself, and counted in the ledger.

Parallel loops run serially here, so that the shadow needs no atomic operations and the same violation comes first each
time. What one iteration of such a loop writes and another reads breaks rule 1 in either order; shadows therefore also
hold the iteration of the last write, and iterations are numbered through a launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tinote.autodiff.access_rules import RuleAccesses, is_activation, numbers_at
from tinote.ir import primitives as p
from tinote.ir.buffers import Buffer, BufferKind
from tinote.ir.build import Builder
from tinote.ir.checked_accesses import AccessSite, CheckedAccesses, Kind, Ledger, Word
from tinote.ir.nodes import Atom, Atomic, For, Function, Lit, Load, Op, Region, Store, Var
from tinote.ir.rewrite import DROP, KEEP, Decision, Rewriter
from tinote.ir.types import i32, u32


def instrument(fn: Function) -> tuple[Function, CheckedAccesses]:
    """Add the checks to `fn` (TYPED form); also what its launches must be given."""
    instrumenter = _Instrumenter(fn)
    region = instrumenter.function_region(fn.region)
    checked = Function(f"{fn.name}.checked", region, fn.loc)
    shadows, sites = tuple(instrumenter.shadows.items()), tuple(instrumenter.sites)
    return checked, CheckedAccesses(shadows, instrumenter.ledger, sites)


class _Nest(NamedTuple):
    """A parallel loop with all that is nested in it. Its iterations have numbers above `first`, which itself marks an
    element that several of them wrote.
    """

    first: Var
    iteration: Var


class _Instrumenter(Rewriter):
    def __init__(self, fn: Function) -> None:
        super().__init__()
        self.ledger = Buffer("ledger", u32, (len(Ledger),), kind=BufferKind.ARRAY)
        self.shadows: dict[Buffer, Buffer] = {}
        self.sites: list[AccessSite] = []
        self._accesses = RuleAccesses(fn)
        self._b = Builder()
        self._first_code = Var(u32, "first_code")
        self._nest: _Nest | None = None

    def function_region(self, region: Region) -> Region:
        start = Load(self.ledger, (_word(Ledger.FIRST_CODE),), (self._first_code,))
        body = self.region(region)
        return Region(body.params, (start, *body.body), body.yields)

    # ---- loops

    def nest(self, op: Op) -> None:
        if isinstance(op, For) and op.parallel:
            self._serial(op)
        else:
            super().nest(op)

    def _serial(self, op: For) -> None:
        """Emit a parallel loop as a serial one that numbers its iterations."""
        outer = self._nest
        first = self._next_iteration(op) if outer is None else outer.first
        saved, self.out = self.out, []
        self._nest = _Nest(first, self._next_iteration(op))
        for inner in op.body.body:
            self.visit(inner)
        body, self.out = self.out, saved
        self._nest = outer
        lo, hi = self.get(op.lo), self.get(op.hi)
        self.emit(For(lo, hi, (), Region(op.body.params, tuple(body)), (), op.loc, reverse=op.reverse))
        if outer is None:
            self._next_iteration(op)

    def _next_iteration(self, op: Op) -> Var:
        """Count one more iteration; its number."""
        b = self._b
        b.loc = op.loc
        with b.region() as opened:
            counted = b.load(self.ledger, (_word(Ledger.ITERATIONS),))
            iteration = b.prim(p.add, counted, b.lit(1, u32), name="iteration")
            b.store(self.ledger, (_word(Ledger.ITERATIONS),), iteration)
        self.out += opened.body
        return iteration

    # ---- accesses

    def on(self, op: Op) -> Decision | Sequence[Atom]:
        kind = self._accesses.kind(op)
        if kind is None:
            return KEEP
        assert isinstance(op, Load | Store | Atomic)
        b = self._b
        b.loc = op.loc
        changes: Atom | None = None
        with b.region() as before:
            if isinstance(op, Atomic) and op.prim is p.maximum and is_activation(op.buffer):
                changes = b.prim(p.lt, b.load(op.buffer, op.index), op.value)  # not what is active already
        self.out += before.body
        self.emit(op)  # first, so that an index out of range is reported about the user's own memory
        code = self._site(kind, op)
        shadow = self._shadow_of(op.buffer)
        check = self._read if kind is Kind.READ else self._write
        with b.region() as checks:
            for index in numbers_at(op.buffer, op.index):
                check(shadow, index, code, op.buffer, kind)
        if changes is not None:
            with b.region() as guarded:
                b.if_(changes, checks.close())
            checks = guarded
        self.out += checks.body
        return DROP

    def _site(self, kind: Kind, op: Load | Store | Atomic) -> Var:
        """The code of this access in this launch."""
        number = len(self.sites)
        self.sites.append(AccessSite(kind, op.buffer, op.loc))
        self._b.loc = op.loc
        with self._b.region() as opened:
            code = self._b.prim(p.add, self._first_code, self._b.lit(number, u32), name="code")
        self.out += opened.body
        return code

    def _shadow_of(self, buffer: Buffer) -> Buffer:
        found = self.shadows.get(buffer)
        if found is None:
            # An index out of range of a load that is simplified away is only noticed here: the name is the user's.
            element = (*buffer.element, len(Word))
            found = Buffer(buffer.name, u32, buffer.shape, element, BufferKind.ARRAY, offset=buffer.offset)
            self.shadows[buffer] = found
        return found

    def _read(self, shadow: Buffer, index: tuple[Atom, ...], code: Var, buffer: Buffer, kind: Kind) -> None:
        """An element is read; if another iteration of the loop wrote it, that breaks rule 1."""
        b = self._b
        if self._nest is not None:
            written = b.load(shadow, (*index, _word(Word.WRITE)))
            self._note(shadow, index, self._by_another_iteration(shadow, index, written), code, written)
        before = b.load(shadow, (*index, _word(Word.READ)))
        with b.region() as first:
            b.store(shadow, (*index, _word(Word.READ)), code)
        b.if_(_is_none(b, before), first.close())

    def _write(self, shadow: Buffer, index: tuple[Atom, ...], code: Var, buffer: Buffer, kind: Kind) -> None:
        """An element is changed."""
        b = self._b
        read = b.load(shadow, (*index, _word(Word.READ)))
        written = b.load(shadow, (*index, _word(Word.WRITE)))
        earlier: Atom = read
        if kind.rewrites(buffer):
            earlier = b.prim(p.select, _is_none(b, earlier), written, earlier)
        if kind.does_both:
            earlier = b.prim(p.select, _is_none(b, earlier), code, earlier)  # it reads the element itself
        self._note(shadow, index, b.prim(p.ne, earlier, b.lit(0, u32)), code, earlier)
        if self._nest is None:
            iteration: Atom = b.load(self.ledger, (_word(Ledger.ITERATIONS),))
        else:
            several = self._by_another_iteration(shadow, index, written)
            iteration = b.prim(p.select, several, self._nest.first, self._nest.iteration)
        b.store(shadow, (*index, _word(Word.READ)), b.lit(0, u32))
        b.store(shadow, (*index, _word(Word.WRITE)), code)
        b.store(shadow, (*index, _word(Word.ITERATION)), iteration)

    def _by_another_iteration(self, shadow: Buffer, index: tuple[Atom, ...], written: Var) -> Var:
        """Whether the element's last write belongs to another iteration of this parallel loop."""
        b, nest = self._b, self._nest
        assert nest is not None
        iteration = b.load(shadow, (*index, _word(Word.ITERATION)))
        in_launch = b.prim(p.ge, written, self._first_code)
        in_loop = b.prim(p.ge, iteration, nest.first)
        in_another = b.prim(p.ne, iteration, nest.iteration)
        return b.prim(p.and_, b.prim(p.and_, in_launch, in_loop), in_another)

    def _note(self, shadow: Buffer, index: tuple[Atom, ...], broken: Var, code: Var, earlier: Atom) -> None:
        """Note a violation, unless the element has one from this launch already."""
        b = self._b
        with b.region() as inside:
            known = b.load(shadow, (*index, _word(Word.LATER)))
            with b.region() as first:
                b.store(shadow, (*index, _word(Word.LATER)), code)
                b.store(shadow, (*index, _word(Word.EARLIER)), earlier)
                counted = b.load(self.ledger, (_word(Ledger.VIOLATIONS),))
                total = b.prim(p.add, counted, b.lit(1, u32))
                b.store(self.ledger, (_word(Ledger.VIOLATIONS),), total)
            b.if_(_is_none(b, known), first.close())
        b.if_(broken, inside.close())


def _word(word: Word | Ledger) -> Lit:
    return Lit(int(word), i32)


def _is_none(b: Builder, code: Atom) -> Var:
    return b.prim(p.eq, code, b.lit(0, u32))
