"""The access analysis: which elements loads and stores touch, and which of them may conflict.

    for parallel %i: i32 in 0i32 .. 64i32:
      %j: i32 = add %i, 1i32 %a: f32 = load @x[%i]         %i: in range of a field of 64; a different element in each
      iteration store @x[%j], %a              %i + 1: perhaps out of range; another element in each iteration; the next
      one reads it

A single analysis serves bounds checks, differentiation, privatisation and vectorisation: `accesses_of(fn)` walks the
function once and works out answers on request. Every answer is conservative: `in_range` is true only if
proved, `may_meet` and its like are false only if proved.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from math import gcd

from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.affine import Affine, Interval, variable
from tinote.ir.buffers import root_of
from tinote.ir.ranges import Known, Loop, Ranges, Remainder

#: Sums in i32 of two integers below this do not wrap.
MAX_SUMMAND = 1 << 30
_ACCESSES = (ir.Load, ir.Store, ir.Atomic)
_QUOTIENTS = {p.mod: p.floordiv, p.raw_mod: p.raw_div}
#: Stands for the facts that hold at the access itself (None stands for no facts at all).
_AT_ACCESS = Known(None)


class Access:
    """A load, store or atomic. `index`: its operands (component indices included); `forms`: the same as sums.

    `loop`: the innermost loop around it; `known`: the facts that hold when it runs.
    """

    __slots__ = ("buffer", "forms", "known", "loop", "op")

    def __init__(self, op: ir.MemoryOp, forms: tuple[Affine, ...], loop: Loop | None, known: Known | None) -> None:
        self.op = op
        self.buffer = root_of(op.buffer)
        self.forms = forms
        self.loop = loop
        self.known = known

    @property
    def reads(self) -> bool:
        return isinstance(self.op, ir.Load | ir.Atomic)

    @property
    def writes(self) -> bool:
        return isinstance(self.op, ir.Store | ir.Atomic)

    @property
    def loops(self) -> tuple[Loop, ...]:
        """The loops around it, outermost first."""
        return self.loop.chain() if self.loop is not None else ()

    def inside(self, loop: Loop) -> bool:
        return self.loop is not None and self.loop.inside(loop)

    def __repr__(self) -> str:
        return f"<{type(self.op).__name__} @{self.buffer.name}[{', '.join(map(repr, self.forms))}]>"


class _Pair:
    """Two accesses that may meet. `shared` variables have one value for both; the `index` of a loop, if there is one,
    is greater by at least one (or less, by `direction`) for `b`; all others are independent.
    """

    __slots__ = ("a", "b", "direction", "forms", "index", "shared")

    def __init__(
        self, a: Access, b: Access, shared: Callable[[ir.Var], bool], index: ir.Var | None, direction: int
    ) -> None:
        self.a = a
        self.b = b
        self.shared = shared
        self.index = index
        self.direction = direction
        self.forms = list(zip(a.forms, b.forms, strict=False))  # a whole element meets each of its components


class Touched:
    """Accesses by what they touch, so that those which may meet one are found without a look at all of them."""

    __slots__ = ("_cells", "_shared")

    def __init__(self, accesses: Iterable[Access]) -> None:
        #: by buffer, by which indices are literals, and by their values
        self._cells: dict[ir.Buffer, dict[tuple[bool, ...], dict[tuple[int, ...], list[Access]]]] = {}
        for access in accesses:
            axes, values = _literals(access)
            cells = self._cells.setdefault(access.buffer, {}).setdefault(axes, {})
            cells.setdefault(values, []).append(access)
        self._shared = shared_memory(self._cells)

    def near(self, access: Access) -> Iterator[Access]:
        """The accesses that may meet one, as far as buffers and literal indices tell."""
        axes, values = _literals(access)
        for other_axes, cells in self._cells.get(access.buffer, {}).items():
            if other_axes == axes:
                yield from cells.get(values, ())
            else:
                for several in cells.values():
                    yield from several
        for buffer in self.sharing(access.buffer):
            for cells in self._cells[buffer].values():
                for several in cells.values():
                    yield from several

    def sharing(self, buffer: ir.Buffer) -> list[ir.Buffer]:
        """The other buffers that may share memory with one."""
        found = self._cells if buffer.kind is ir.BufferKind.ARRAY else self._shared
        return [other for other in found if other is not buffer and buffers_may_meet(other, buffer)]


def _literals(access: Access) -> tuple[tuple[bool, ...], tuple[int, ...]]:
    """Which indices are literals, and their values. Accesses that differ in the values alone never meet."""
    if access.op.buffer.flat is not None:
        return (), ()
    index = access.op.index
    axes = tuple([type(a) is ir.Lit for a in index])
    return axes, tuple([int(a.value) for a in index if type(a) is ir.Lit])


class Accesses(Ranges):
    """Every access of a function (or region), in order, and what may be asked about them."""

    def __init__(self, fn: ir.Function | ir.Region) -> None:
        self._found: list[ir.MemoryOp] = []
        self._contexts: dict[ir.Op, tuple[Loop | None, Known | None]] = {}
        self._made: dict[ir.Op, Access] = {}
        self._inside: dict[Loop, tuple[int, int]] = {}  # where in `_found` the accesses of a loop begin and end
        self._touched: dict[Loop, Touched] = {}
        super().__init__(fn.region if isinstance(fn, ir.Function) else fn)

    def visit(self, op: ir.Op, loop: Loop | None, known: Known | None) -> None:
        self._contexts[op] = loop, known
        if isinstance(op, _ACCESSES):
            self._found.append(op)

    def _enter(self, op: ir.Op, parent: Loop | None, known: Known | None) -> None:
        first = len(self._found)
        super()._enter(op, parent, known)
        loop = self.loops.get(op)
        if loop is not None:
            self._inside[loop] = first, len(self._found)

    def loop_over(self, index: ir.Var) -> Loop:
        """The loop that an index variable is of."""
        return self.indices[index]

    def loop_of(self, op: ir.Op) -> Loop | None:
        """The innermost loop around an operation."""
        return self._contexts[op][0]

    def known_before(self, op: ir.Op) -> Known | None:
        """What holds when an operation runs."""
        return self._contexts[op][1]

    def of(self, op: ir.Op) -> Access:
        """The access that a load, store or atomic is."""
        found = self._made.get(op)
        if found is None:
            assert isinstance(op, ir.MemoryOp)
            loop, known = self._contexts[op]
            forms = tuple([self.affine(a) for a in op.index])
            found = self._made[op] = Access(op, forms, loop, known)
        return found

    def all(self) -> list[Access]:
        """All accesses in order."""
        return [self.of(op) for op in self._found]

    def within(self, loop: Loop) -> list[Access]:
        """The accesses inside a loop, in order."""
        first, end = self._inside[loop]
        return [self.of(op) for op in self._found[first:end]]

    def near(self, access: Access, loop: Loop) -> Iterator[Access]:
        """The accesses inside a loop that may meet one, as far as buffers and literal indices tell."""
        found = self._touched.get(loop)
        if found is None:
            found = self._touched[loop] = Touched(self.within(loop))
        return found.near(access)

    def first_within(self, loop: Loop) -> Access:
        """The first access inside a loop that has one."""
        return self.of(self._found[self._inside[loop][0]])

    # one access

    def in_range(self, access: Access, axis: int, known: Known | None = _AT_ACCESS) -> tuple[bool, bool]:
        """Whether the index along `axis` (component dimensions count on) is certainly not negative, and certainly below
        the extent. `known`: the facts to go by, if not those that hold at the access.
        """
        facts = access.known if known is _AT_ACCESS else known
        extent = None if access.op.buffer.flat is not None else self.extent(access.buffer, axis)
        return self.between(access.forms[axis], extent, facts)

    def between(self, form: Affine, extent: Affine | None, known: Known | None) -> tuple[bool, bool]:
        """Whether `form` is certainly not negative, and certainly below the extent."""
        return self.prove(form, known), extent is not None and self.prove((extent - form).shifted(-1), known)

    def surely_not_zero(self, atom: ir.Atom, known: Known | None) -> bool:
        """Whether an integer is certainly not zero where `known` holds."""
        form = self.affine(atom)
        if self.prove(form.shifted(-1), known) or self.prove(form.times(-1).shifted(-1), known):
            return True
        return any(fact in (form, form.times(-1)) for fact in self.nonzero(known))

    def surely_in_range(self, access: Access, before: Loop | None = None) -> bool:
        """Whether every index is in range for certain; with `before`, even before that loop around the access."""
        facts = access.known if before is None else before.known
        return all(self.in_range(access, axis, facts) == (True, True) for axis in range(len(access.forms)))

    def invariant_in(self, access: Access, loop: Loop) -> bool:
        """Whether every iteration of the loop touches the same element."""
        return all(self.invariant(v, loop) for form in access.forms for v in form.terms)

    def invariant(self, v: ir.Var, loop: Loop) -> bool:
        """Whether a variable has the same value in all iterations of the loop."""
        return self._constant(v, lambda home: home is None or not home.inside(loop))

    def _constant(self, v: ir.Atom, outside: Callable[[Loop | None], bool]) -> bool:
        """Whether `v` is bound where `outside` says, or computed from nothing but such."""
        seen: set[ir.Atom] = set()
        stack = [v]
        while stack:
            v = stack.pop()
            if v in seen or not isinstance(v, ir.Var) or outside(self.home.get(v)):
                continue
            seen.add(v)
            op = self.definitions.get(v)
            if not isinstance(op, ir.Prim | ir.Extent):
                return False
            stack += op.args
        return True

    # two accesses

    def may_meet(self, a: Access, b: Access) -> bool:
        """Whether the two may ever touch the same element, in any iterations of the loops around them."""
        return self._meet(a, b, lambda v: self._constant(v, lambda home: home is None))

    def may_meet_within(self, a: Access, b: Access, loop: Loop) -> bool:
        """Whether the two may touch the same element in one iteration of a loop around both."""
        return self._meet(
            a, b, lambda v: self._constant(v, lambda home: home is None or home is loop or not home.inside(loop))
        )

    def may_meet_later(self, a: Access, b: Access, loop: Loop) -> bool:
        """Whether `b`, in a later iteration of a loop around both, may touch the element that `a` touched; the loops
        further out are in the same iteration.
        """
        op = loop.op
        if loop.index is None or not isinstance(op, ir.For | ir.Task):
            return self._meet(a, b, lambda v: self.invariant(v, loop))
        backwards = isinstance(op, ir.For) and op.reverse
        return self._meet(a, b, lambda v: self.invariant(v, loop), loop, -1 if backwards else 1)

    def may_meet_across(self, a: Access, b: Access, loop: Loop) -> bool:
        """Whether `b` may touch in one iteration of the loop what `a` touches in another, before or after."""
        alike = a.op.buffer is b.op.buffer and a.op.index == b.op.index and a.known is b.known
        return self.may_meet_later(a, b, loop) or (not alike and self.may_meet_later(b, a, loop))

    def _meet(
        self, a: Access, b: Access, shared: Callable[[ir.Var], bool], loop: Loop | None = None, direction: int = 0
    ) -> bool:
        """Whether the indices may agree. `shared` variables have one value for both; with `loop`, its index is greater
        by at least one (or less, by `direction`) for `b`; all others are independent.
        """
        if not buffers_may_meet(a.buffer, b.buffer):
            return False
        if a.buffer is not b.buffer or (a.op.buffer.flat is None) is not (b.op.buffer.flat is None):
            return True
        apart = a.buffer.dtype.size if a.op.buffer.flat is not None else 1
        pair = _Pair(a, b, shared, None if loop is None else loop.index, direction)
        if any(self._differ(f, g, pair, apart) for f, g in pair.forms):
            return False
        if any(self._known_distance(x, y, shared, apart) for x, y in zip(a.op.index, b.op.index, strict=False)):
            return False
        if loop is not None and any(f == g and self._counts(f, loop) for f, g in pair.forms):
            return False
        return apart > 1 or not (self._differ_by_remainders(pair) or self._kept_apart(pair))

    def _known_distance(self, x: ir.Atom, y: ir.Atom, shared: Callable[[ir.Var], bool], apart: int) -> bool:
        """Whether two indices are a shared variable plus different numbers: t and t + 1 differ even if t + 1 wraps."""
        base, _ = base_and_offset(x, self.definitions)
        return (base is None or shared(base)) and indices_differ((x,), (y,), self.definitions, apart)

    def _differ(self, f: Affine, g: Affine, pair: _Pair, apart: int) -> bool:
        """Whether two index forms differ for certain (by `apart` at least)."""
        low, high, step = self._difference(f, g, pair)
        if low >= apart or high <= -apart:
            return True
        # With all multiples of `step`, the difference is the constant plus such a multiple.
        if step and apart == 1 and (f.const - g.const) % step:
            return True
        if step == 0 or pair.index is not None or any(not pair.shared(v) for form in (f, g) for v in form.terms):
            return False
        difference = f - g
        for known in (pair.a.known, pair.b.known):
            if any(n in (difference, difference.times(-1)) for n in self.nonzero(known)):
                return True
            if self.prove(difference.shifted(-apart), known) or self.prove(difference.times(-1).shifted(-apart), known):
                return True
        return False

    def _difference(self, f: Affine, g: Affine, pair: _Pair) -> tuple[int, int, int]:
        """The least and the greatest value of `f - g`, and what that is a multiple of except for the constants."""
        index = pair.index
        common: dict[ir.Var, int] = {}  # variables with one value for both
        low = high = f.const - g.const
        step = 0
        for form, sign, access in ((f, 1, pair.a), (g, -1, pair.b)):
            for v, c in form.terms.items():
                if v is index or pair.shared(v):
                    common[v] = common.get(v, 0) + sign * c
                else:
                    least, greatest = self.interval_at(v, access.known)
                    low += min(sign * c * least, sign * c * greatest)
                    high += max(sign * c * least, sign * c * greatest)
                    step = gcd(step, c)
        if index is not None:
            # The index of b is that of a plus a distance of at least one.
            first, last = self.interval(index)
            farthest = max(last - first, 1)
            factor = -g.coefficient(index) * pair.direction
            low += min(factor, factor * farthest)
            high += max(factor, factor * farthest)
            step = gcd(step, factor)
        rest = Affine(0, {v: c for v, c in common.items() if c})
        for v, c in rest.terms.items():
            least, greatest = self.interval(v)
            low += min(c * least, c * greatest)
            high += max(c * least, c * greatest)
            step = gcd(step, c)
        return low, high, step

    def _differ_by_remainders(self, pair: _Pair) -> bool:
        """Whether indices that are remainders, or sums that may wrap, differ because what is divided never differs by
        a multiple of the divisor. A quotient and a remainder by one divisor are as good as what is divided.
        """
        for f, g in pair.forms:
            x, y = self.remainder(f), self.remainder(g)
            divisor = x.divisor if x is not None else y.divisor if y is not None else 0
            if not divisor or any(one is not None and one.divisor != divisor for one in (x, y)):
                continue
            dividends = x.dividend if x is not None else f, y.dividend if y is not None else g
            low, high, step = self._difference(*dividends, pair)
            if -(-low // divisor) * divisor > high:  # no multiple lies between them
                return True
            if (dividends[0].const - dividends[1].const) % gcd(step, divisor):
                return True
            if self._differ_with_quotients(f, g, x, y, pair):
                return True
        return False

    def _differ_with_quotients(
        self, f: Affine, g: Affine, x: Remainder | None, y: Remainder | None, pair: _Pair
    ) -> bool:
        """Whether what `f` and `g` are the remainders of differs, where other indices are the quotients."""
        divided: list[tuple[p.Primitive, Affine, ir.Atom]] = []
        for form, one in ((f, x), (g, y)):
            if one is None or one.op.prim not in _QUOTIENTS or form != variable(one.op.out):
                return False
            divided.append((_QUOTIENTS[one.op.prim], self.affine(one.op.args[0]), one.op.args[1]))
        return any(
            [self._divided(h), self._divided(k)] == divided and self._differ(divided[0][1], divided[1][1], pair, 1)
            for h, k in pair.forms
        )

    def _divided(self, form: Affine) -> tuple[p.Primitive, Affine, ir.Atom] | None:
        """How a form is a quotient: the primitive, what is divided, and the divisor."""
        op = self.definitions.get(next(iter(form.terms))) if len(form.terms) == 1 else None
        if not isinstance(op, ir.Prim) or op.prim not in _QUOTIENTS.values() or form != variable(op.out):
            return None
        return op.prim, self.affine(op.args[0]), op.args[1]

    def _counts(self, form: Affine, loop: Loop) -> bool:
        """Whether a form has another value each time: the old value of a counter that iterations of a loop share."""
        op = self.definitions.get(next(iter(form.terms))) if len(form.terms) == 1 else None
        if not isinstance(op, ir.Atomic) or op.prim is not p.add or op.value != ir.Lit(1, op.buffer.dtype):
            return False
        counter = self.of(op)
        touched = [a for a in self.within(loop) if a.writes and buffers_may_meet(a.buffer, counter.buffer)]
        return self.invariant_in(counter, loop) and touched == [counter]

    def _kept_apart(self, pair: _Pair) -> bool:
        """Whether both accesses run where a remainder has a certain value, and where their indices agree the two
        remainders differ: those of one colour of a checkerboard do not meet its neighbours.
        """
        first, second = list(self.remainders(pair.a.known)), list(self.remainders(pair.b.known))
        if not first or not second:
            return False
        shifts: dict[ir.Var, int] = {}  # how much greater a variable is for b than for a
        for f, g in pair.forms:
            moving = [v for v in {**f.terms, **g.terms} if v is pair.index or not pair.shared(v)]
            if len(moving) == 1 and not (f - g).terms:
                shift, rest = divmod(f.const - g.const, f.coefficient(moving[0]))
                if rest or shifts.setdefault(moving[0], shift) != shift:
                    return True
        for one, value in first:
            for other, second_value in second:
                if one.divisor != other.divisor or (one.dividend - other.dividend).terms:
                    continue
                terms = one.dividend.terms.items()
                moved = [(v, c) for v, c in terms if v is pair.index or not pair.shared(v)]
                same = not (value - second_value).terms and all(map(pair.shared, value.terms))
                if same and all(v in shifts for v, _ in moved):
                    apart = other.dividend.const - one.dividend.const + sum([c * shifts[v] for v, c in moved])
                    if (apart - second_value.const + value.const) % one.divisor:
                        return True
        return False

    def interval_at(self, v: ir.Var, known: Known | None) -> Interval:
        """The values of a variable where `known` holds, as far as facts about it alone say."""
        low, high = self.interval(v)
        for fact in self.facts(known):
            if len(fact.terms) == 1 and v in fact.terms:
                c = fact.terms[v]
                if c > 0:
                    low = max(low, -(fact.const // c))
                else:
                    high = min(high, fact.const // -c)
        return low, high


#: in a block of `sharing_accesses`: the analysis that was made last, by its function's region
_latest: ContextVar[dict[ir.Region, Accesses] | None] = ContextVar("latest", default=None)


@contextmanager
def sharing_accesses() -> Generator[None]:
    """In this block, a question about the function that was asked about last gets the same analysis."""
    token = _latest.set({})
    try:
        yield
    finally:
        _latest.reset(token)


def accesses_of(fn: ir.Function) -> Accesses:
    """The accesses of a function."""
    latest = _latest.get()
    found = None if latest is None else latest.get(fn.region)
    if found is None:
        found = Accesses(fn)
        if latest is not None:
            latest.clear()
            latest[fn.region] = found
    return found


def buffers_may_meet(a: ir.Buffer, b: ir.Buffer) -> bool:
    """Whether two buffers may share memory: arrays may be views of one another or of a field, unless the launch
    guarantees that they are not (`noalias`); nothing else does.
    """
    a, b = root_of(a), root_of(b)
    if a is b:
        return True
    if a.noalias or b.noalias:
        return False
    kinds = (ir.BufferKind.ARRAY, ir.BufferKind.FIELD)
    return ir.BufferKind.ARRAY in (a.kind, b.kind) and a.kind in kinds and b.kind in kinds


def shared_memory(buffers: Iterable[ir.Buffer]) -> list[ir.Buffer]:
    """Those roots among `buffers` that may share memory with others."""
    return [buffer for buffer in buffers if buffer.kind is ir.BufferKind.ARRAY and not buffer.noalias]


def base_and_offset(atom: ir.Atom, definitions: Mapping[ir.Var, ir.Op]) -> tuple[ir.Var | None, int]:
    """An integer as a variable (None for zero) plus a number, modulo the width of its type."""
    offset = 0
    while type(atom) is ir.Var:
        op = definitions.get(atom)
        if not isinstance(op, ir.Prim) or op.prim not in (p.add, p.sub) or type(op.args[1]) is not ir.Lit:
            return atom, offset
        step = int(op.args[1].value)
        offset += step if op.prim is p.add else -step
        atom = op.args[0]
    assert isinstance(atom, ir.Lit)
    return None, offset + int(atom.value)


def indices_differ(
    a: tuple[ir.Atom, ...], b: tuple[ir.Atom, ...], definitions: Mapping[ir.Var, ir.Op], apart: int = 1
) -> bool:
    """Whether two index tuples never name the same element: in some dimension they differ by a known number other than
    zero (of at least `apart`, for byte offsets). `definitions` says how variables are computed.
    """
    for x, y in zip(a, b, strict=False):
        if x is y:
            continue
        (base, offset), (other, shift) = base_and_offset(x, definitions), base_and_offset(y, definitions)
        if base is other:
            distance = (offset - shift) & ((1 << _bits(x)) - 1)
            if apart <= distance <= (1 << _bits(x)) - apart:
                return True
    return False


def _bits(atom: ir.Atom) -> int:
    t = atom.type
    return getattr(t, "bits", 64) or 64
