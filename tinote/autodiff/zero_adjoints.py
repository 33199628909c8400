"""Runs a loop of a derivative only where the adjoints that enter it are not all zero.

    %g: f64 = select %c, %d, 0.0f64              %g: f64 = select %c, %d, 0.0f64
    for %j in 0 .. %n:                           %s: u1 = ne %g, 0.0f64
      %w = load @w[%j]                           if %s:
      %a = strong_mul %g, %w             ->        for %j in 0 .. %n:
      atomic add @x.grad[%j], %a                     …

What did not count for the result has an adjoint of zero: the side of a `max` that lost, the clamped value, the unit
that is off. Where a loop does nothing but add multiples of such adjoints to others, it need not run; what it carries
stays as it was. Whether they are zero is asked only where that is likely, which the choice that made them says, and
only for loops of some length.

It runs last: of a second derivative the tangents of the adjoints count as well, and these need not vanish with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tinote.autodiff.adjoints import adjoint_values
from tinote.ir import primitives as p
from tinote.ir.nodes import Atom, Atomic, BufferKind, Extent, For, Function, If, Lit, Load, Op, Prim, Region, Var
from tinote.ir.query import bound_in, definitions, is_shorter, uses, walk
from tinote.ir.rewrite import Rewriter
from tinote.ir.types import Scalar, Tangents, i32, u1

#: Loops of fewer iterations run in any case: they are written out, and run as vectors. Chosen, not measured.
_MIN_ITERATIONS = 8
#: Adjoints that are compared with zero. Chosen, not measured.
_MAX_ASKED = 3


def skip_zero_adjoints(fn: Function) -> Function:
    """`fn`, a derivative in the SCALAR form, with its inner loops under conditions where that is likely to pay."""
    if not any(isinstance(op, For) for outer in fn.region.body for r in outer.regions for op in r.body):
        return fn
    adjoints = adjoint_values(fn)
    return _Skipper(fn, adjoints).run(fn) if adjoints else fn


class _Linear(NamedTuple):
    """A value that is `base` (zero, if None) where the adjoints in `sources` are all zero."""

    base: Var | None
    sources: frozenset[Var]


_ZERO = _Linear(None, frozenset())


class _Skipper(Rewriter):
    def __init__(self, fn: Function, adjoints: set[Var]) -> None:
        super().__init__()
        self.definitions = definitions(fn.region)
        self.adjoints = adjoints
        self.counts = uses(fn.region)
        self.depth = 0

    def nest(self, op: Op) -> None:
        # Loops at the top become tasks. Of a nest the outermost loop that can be asked about is.
        if self.depth and isinstance(op, For) and not is_shorter(op, _MIN_ITERATIONS):
            sources = _Loop(self, op).sources()
            if sources and len(sources) <= _MAX_ASKED:
                self.guard(op, sources)
                return
        self.depth += 1
        super().nest(op)
        self.depth -= 1

    def guard(self, loop: For, sources: Sequence[Var]) -> None:
        """Emit a loop that runs unless these adjoints are all zero."""
        some: Atom | None = None
        for g in sources:
            assert isinstance(g.type, Scalar)
            zero = Lit(0.0, g.type.scalar if isinstance(g.type, Tangents) else g.type)
            for number in self.numbers(g, loop):
                counts = self.apply(p.ne, u1, loop, number, zero)
                some = counts if some is None else self.apply(p.or_, u1, loop, some, counts)
        assert some is not None
        inside = tuple([Var(v.type, v.name) for v in loop.outs])
        then = Region((), (loop.rebuilt(loop.args, loop.regions, inside),), inside)
        self.emit(If(some, then, Region((), (), loop.initial), loop.outs, loop.loc, loop.origin))

    def numbers(self, g: Var, near: Op) -> list[Var]:
        """An adjoint's numbers, one for each direction."""
        if not isinstance(g.type, Tangents):
            return [g]
        t = g.type.scalar
        return [self.apply(p.tangent_at, t, near, g, Lit(k, i32)) for k in range(g.type.count)]

    def is_often_zero(self, v: Var, depth: int = 4) -> bool:
        """Whether a choice has made a value zero, or a factor of it."""
        op = self.definitions.get(v)
        if depth == 0 or op is None:
            return False
        if isinstance(op, If):
            k = op.outs.index(v)
            return any(_is_zero(r.yields[k]) for r in op.regions)
        if not isinstance(op, Prim):
            return False
        if op.prim is p.select:
            return any(map(_is_zero, op.args[1:]))
        factors = {p.mul: 2, p.strong_mul: 1, p.neg: 1, p.cast: 1}.get(op.prim, 0)
        return any(isinstance(a, Var) and self.is_often_zero(a, depth - 1) for a in op.args[:factors])


def _is_zero(atom: Atom) -> bool:
    return isinstance(atom, Lit) and atom.value == 0


class _Loop:
    """One loop, and what becomes of its values where the adjoints from outside of it are zero."""

    def __init__(self, skipper: _Skipper, loop: For) -> None:
        self.skipper = skipper
        self.loop = loop
        self.inside = bound_in(loop.body)
        self.known: dict[Var, _Linear | None] = {}

    def sources(self) -> list[Var] | None:
        """The adjoints from outside with which all that the loop does vanishes; None where there are none such."""
        for op in walk(self.loop.body):
            if isinstance(op, Atomic):
                if op.prim is not p.add or op.outs or op.buffer.dtype.kind != "f" or op.buffer.kind is _PRIVATE:
                    return None
            elif not isinstance(op, Prim | Load | Extent | For | If) or (
                isinstance(op, Prim) and op.prim is p.random_bits
            ):
                return None
        effects = self.carry(self.loop)
        if effects is None:
            return None
        found = set(effects)
        for initial, out in zip(self.loop.initial, self.loop.outs, strict=True):
            if out not in self.skipper.counts:
                continue
            value = self.known[out]
            if value is None:
                return None
            # What flows through vanishes with its start; what sums up has the start for its base.
            if value.base is None and not _is_zero(initial) and initial not in value.sources:
                return None
            found |= value.sources
        return sorted(found, key=lambda v: v.name)

    def of(self, atom: Atom) -> _Linear | None:
        if isinstance(atom, Lit):
            return _ZERO if atom.value == 0 and atom.type.kind == "f" else None
        if atom in self.inside:
            return self.known.get(atom)
        if atom in self.skipper.adjoints and isinstance(atom.type, Scalar) and self.skipper.is_often_zero(atom):
            return _Linear(None, frozenset([atom]))
        return None

    def carry(self, loop: For) -> frozenset[Var] | None:
        """Work out what a loop carries and gives; and the sources of what it adds to memory, None if there is more."""
        starts = [self.start(initial) for initial in loop.initial]
        #: as sums at first, which begin anywhere; what is no sum may flow through, or else is nothing of the sort
        guesses: list[_Linear | None] = [_Linear(q, frozenset()) for q in loop.carried]
        while True:
            for q, guess in zip(loop.carried, guesses, strict=True):
                self.known[q] = guess
            effects = self.region(loop.body)
            changed = False
            values = [self.of(y) for y in loop.body.yields]
            for k, (q, value) in enumerate(zip(loop.carried, values, strict=True)):
                guess = guesses[k]
                if guess is None or (value is not None and value.base is guess.base):
                    continue
                changed = True
                guesses[k] = starts[k] if guess.base is q else None
            if not changed:
                break
        for out, initial, guess, value, q in zip(loop.outs, loop.initial, guesses, values, loop.carried, strict=True):
            if guess is None or value is None:
                self.known[out] = None
            elif guess.base is None:
                self.known[out] = _Linear(None, guess.sources | value.sources)
                # In later iterations it vanishes only where these do.
                effects = None if effects is None else effects | guess.sources | value.sources
            else:
                assert guess.base is q
                start = self.of(initial) if loop is not self.loop else _Linear(q, frozenset())
                self.known[out] = None if start is None else _Linear(start.base, start.sources | value.sources)
        return effects

    def start(self, initial: Atom) -> _Linear | None:
        """A carried value that is zero where its start is."""
        value = self.of(initial)
        return value if value is not None and value.base is None else None

    def region(self, region: Region) -> frozenset[Var] | None:
        """Work out the values of a region; gives the sources of what it adds to memory, None where that stays."""
        found: frozenset[Var] | None = frozenset()
        for op in region.body:
            effects: frozenset[Var] | None = frozenset()
            if isinstance(op, Prim):
                self.known[op.out] = self.prim(op)
            elif isinstance(op, Atomic):
                value = self.of(op.value)
                effects = value.sources if value is not None and value.base is None else None
            elif isinstance(op, For):
                effects = self.carry(op)
            elif isinstance(op, If):
                effects = self.branch(op)
            found = None if found is None or effects is None else found | effects
        return found

    def branch(self, op: If) -> frozenset[Var] | None:
        effects = [self.region(r) for r in op.regions]
        for out, a, b in zip(op.outs, op.then.yields, op.orelse.yields, strict=True):
            self.known[out] = _either(self.of(a), self.of(b))
        first, second = effects
        return None if first is None or second is None else first | second

    def prim(self, op: Prim) -> _Linear | None:
        if op.prim in (p.add, p.sub):
            a, b = map(self.of, op.args)
            if a is None or b is None or (b.base is not None and (a.base is not None or op.prim is p.sub)):
                return None
            return _Linear(a.base or b.base, a.sources | b.sources)
        if op.prim is p.select:
            return _either(self.of(op.args[1]), self.of(op.args[2]))
        if op.prim is p.mul:
            a, b = map(self.of, op.args)
            return _multiple(a) or _multiple(b)
        if op.prim in (p.strong_mul, p.div, p.neg):
            return _multiple(self.of(op.args[0]))
        if op.prim is p.cast and isinstance(op.out.type, Scalar) and op.out.type.kind == "f":
            return _multiple(self.of(op.args[0]))
        return None


_PRIVATE = BufferKind.PRIVATE


def _multiple(value: _Linear | None) -> _Linear | None:
    """A multiple of what vanishes vanishes."""
    return value if value is not None and value.base is None else None


def _either(a: _Linear | None, b: _Linear | None) -> _Linear | None:
    if a is None or b is None or a.base is not b.base:
        return None
    return _Linear(a.base, a.sources | b.sources)
