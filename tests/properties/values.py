"""Random expressions: numbers, truth values and tensors out of what is visible, local or in memory."""

from __future__ import annotations

from tests.properties.writer import Writer
from tinote.ir import primitives as p
from tinote.ir.nodes import (
    Atom,
    Buffer,
    Lit,
    Var,
)
from tinote.ir.types import (
    FLOATS,
    INTEGERS,
    SCALARS,
    Ref,
    Scalar,
    Tensor,
    f32,
    f64,
    i32,
    i64,
    is_float,
    is_integer,
    shape_of,
    u1,
    u8,
    u32,
    weak_float,
    weak_int,
)

__all__ = ["ARRAYS", "NUMBERS", "SHAPES", "ValueWriter"]

#: every type; those that programs use most three times as often
NUMBERS = (*SCALARS, f32, f32, f64, f64, i32, i32, i64, i64, u8, u8, u32, u32)
ARITHMETIC = (p.add, p.sub, p.mul, p.add, p.sub, p.mul, p.minimum, p.maximum)
BITS = (p.and_, p.or_, p.xor, p.shl, p.shr)
DIVISIONS = (p.floordiv, p.mod, p.raw_div, p.raw_mod)
COMPARISONS = (p.lt, p.le, p.gt, p.ge, p.eq, p.ne)
ROUNDINGS = (p.floor, p.ceil, p.round_)
MATHS = tuple([prim for prim in p.PRIMITIVES.values() if prim.arity == 1 and prim.ulps])
SHAPES = ((2,), (3,), (2, 2))
#: of local arrays, which are read and written by component
ARRAYS = ((7,), (4, 3))


class ValueWriter(Writer):
    """Writes expressions. What they may read follows from `locals`, `buffers` and how a parallel loop touches them."""

    def __init__(self, seed: int, maths: bool) -> None:
        super().__init__(seed)
        self.maths = maths and self.chance(0.33)
        self.exact = True
        self.depth = 0
        self.locals: list[Var] = []
        self.buffers: list[Buffer] = []
        #: the lengths of each buffer's dimensions, also of those that the compiler does not know
        self.extents: dict[Buffer, tuple[int, ...]] = {}
        self.approximate: set[Buffer] = set()
        #: inside a parallel loop: how a buffer may be touched ("read", "own", "none", or the primitive that all
        #: accumulate by); None outside
        self.touch: dict[Buffer, str | p.Primitive] | None = None
        self.own_index: tuple[Var, ...] = ()
        self.iteration: Var | None = None
        self.seed_parameter: Var | None = None
        #: a parameter that is always zero, which the compiler cannot know: with it, checks cannot be proved away
        self.zero = Var(i32, "zero")

    # memory

    def may(self, buffer: Buffer, *ways: str) -> bool:
        """Whether a buffer may be touched in one of these ways here."""
        if buffer in self.approximate:
            return False
        return self.touch is None or self.touch[buffer] in ways

    def place(self, buffer: Buffer, *, components: bool = True) -> list[Atom]:
        """An index that this iteration may use; half of the time with component indices where there are any."""
        own: tuple[Atom, ...] = ()
        if self.touch is not None and self.touch[buffer] == "own":
            own = self.own_index
        index: list[Atom] = [*own, *[self.index(n) for n in self.extents[buffer][len(own) :]]]
        if buffer.element and components:
            index += [self.index(n) for n in buffer.element]
        return index

    # numbers

    def value(self, t: Scalar) -> float:
        """A number to start from."""
        if t.kind == "f":
            return t.round(self.choice((0.0, 1.0, -2.5, self.random.uniform(-4, 4), self.random.uniform(-4, 4))))
        if self.chance(0.1):
            return self.choice((t.lowest, t.highest))
        return self.random.randint(max(t.lowest, -9), min(t.highest, 9))

    def of_shape(self, shape: tuple[int, ...], depth: int) -> Atom:
        return self.vector(shape, depth) if shape else self.scalar(depth)

    def literal(self) -> Lit:
        kind = self.random.random()
        if kind < 0.3:
            return Lit(self.random.randint(0, 7), weak_int)
        if kind < 0.5:
            return Lit(self.choice((0.0, 0.5, 1.0, 2.0, 0.1, round(self.random.uniform(0, 3), 2))), weak_float)
        t = self.choice(NUMBERS)
        return Lit(self.value(t), t)

    def index(self, extent: int) -> Atom:
        """An integer in 0..extent-1, now and then one of which the compiler cannot see that it is."""
        index = self.provable_index(extent)
        return self.builder.prim(p.add, index, self.zero) if self.chance(0.08) else index

    def provable_index(self, extent: int) -> Atom:
        known = self.seen(lambda v: self.below.get(v, extent + 1) <= extent)
        if known is not None and self.chance(0.6):
            return known
        if self.chance(0.4):
            return Lit(self.random.randrange(extent), self.choice((weak_int, i32, i64)))
        number = self.integer(1)
        if self.chance(0.7):
            return self.builder.prim(p.mod, number, Lit(extent, i32))
        # As i64, in which the literals do not become unsigned and no number is out of range for an index.
        wide = self.builder.cast(number, i64)
        low = self.builder.prim(p.maximum, wide, Lit(0, weak_int))
        return self.builder.prim(p.minimum, low, Lit(extent - 1, weak_int))

    def leaf(self) -> Atom:
        kind = self.random.random()
        if kind < 0.45:
            seen = self.seen(lambda v: isinstance(v.type, Scalar))
            if seen is not None:
                return seen
        if kind < 0.6 and self.locals:
            return self.get_local(())
        if kind < 0.85:
            readable = [b for b in self.buffers if self.may(b, "own", "read")]
            if readable and self.depth < 6:
                return self.load(self.choice(readable))
        return self.literal()

    def load(self, buffer: Buffer) -> Var:
        # Indices may contain loads themselves: `depth` keeps that from going on.
        self.depth += 2
        loaded = self.builder.load(buffer, self.place(buffer))
        self.depth -= 2
        return loaded

    def get_local(self, shape: tuple[int, ...]) -> Atom:
        """A local of this shape, or a component of one for a scalar; a literal if there is none."""
        wanted = (shape,) if shape else ((), *SHAPES, *ARRAYS)
        fitting = [c for c in self.locals if isinstance(c.type, Ref) and shape_of(c.type.content) in wanted]
        if not fitting or self.depth >= 6:
            return self.literal()
        cell = self.choice(fitting)
        assert isinstance(cell.type, Ref)
        content = shape_of(cell.type.content)
        self.depth += 2
        value = self.builder.get(cell, *([] if shape else [self.index(n) for n in content]))
        self.depth -= 2
        return value

    def scalar(self, depth: int) -> Atom:
        """A number of any type."""
        if depth == 0 or self.chance(0.2):
            return self.leaf()
        make = self.builder.prim
        kind = self.random.random()
        if kind < 0.4:
            return make(self.choice(ARITHMETIC), self.scalar(depth - 1), self.scalar(depth - 1))
        if kind < 0.5:
            return make(self.choice(BITS), self.integer(depth - 1), self.integer(depth - 1))
        if kind < 0.58:
            divisor = make(p.or_, self.integer(depth - 1), Lit(1, weak_int))
            if self.chance(0.2):
                divisor = make(p.sub, self.zero, Lit(self.random.randint(1, 5), i32))
            return make(self.choice(DIVISIONS), self.integer(depth - 1), divisor)
        if kind < 0.64:
            return make(self.choice((p.div, p.div, *DIVISIONS)), self.floating(depth - 1), self.floating(depth - 1))
        if kind < 0.72:
            return make(self.choice((p.neg, p.absolute)), self.scalar(depth - 1))
        if kind < 0.75:
            return make(p.invert, self.integer(depth - 1))
        if kind < 0.8:
            return make(p.select, self.truth(depth - 1), self.scalar(depth - 1), self.scalar(depth - 1))
        if kind < 0.86:
            return self.builder.cast(self.scalar(depth - 1), self.choice(NUMBERS))
        if kind < 0.9:
            shape = self.choice(SHAPES)
            vector = self.vector(shape, depth - 1)
            return self.builder.extract(vector, *[self.index(n) for n in shape])
        if kind < 0.93:
            return make(self.choice((p.sqrt, *ROUNDINGS)), self.floating(depth - 1))
        if kind < 0.95:
            return make(p.power, self.integer(depth - 1), Lit(self.random.randint(0, 4), weak_int))
        if kind < 0.97 and self.seed_parameter is not None:
            iteration = self.iteration or Lit(0, i64)
            return make(p.random_bits, self.seed_parameter, iteration, Lit(self.random.randint(0, 3), i32))
        if self.maths:
            self.exact = False
            if self.chance(0.2):
                return make(self.choice((p.atan2, p.power)), self.floating(depth - 1), self.floating(depth - 1))
            return make(self.choice(MATHS), self.floating(depth - 1))
        return make(p.add, self.scalar(depth - 1), self.literal())

    def integer(self, depth: int) -> Atom:
        value = self.scalar(depth)
        if isinstance(value.type, Scalar) and is_integer(value.type):
            return value
        return self.builder.cast(value, self.choice((i32, i64, u8, u32, *INTEGERS)))

    def floating(self, depth: int) -> Atom:
        value = self.scalar(depth)
        return value if is_float(value.type) else self.builder.cast(value, self.choice((f32, f64, *FLOATS)))

    def truth(self, depth: int) -> Atom:
        kind = self.random.random()
        make = self.builder.prim
        if depth > 0 and kind < 0.2:
            return make(self.choice((p.and_, p.or_)), self.truth(depth - 1), self.truth(depth - 1))
        if depth > 0 and kind < 0.3:
            return make(p.logical_not, self.truth(depth - 1))
        if kind < 0.35:
            return make(p.isnan, self.floating(max(depth - 1, 0)))
        if kind < 0.45:
            seen = self.seen(lambda v: v.type is u1)
            if seen is not None:
                return seen
        condition = make(self.choice(COMPARISONS), self.scalar(max(depth - 1, 0)), self.scalar(max(depth - 1, 0)))
        return self.show(condition) if self.chance(0.2) else condition

    def vector(self, shape: tuple[int, ...], depth: int) -> Atom:
        """A tensor of `shape`, of any element type."""
        kind = self.random.random()
        make = self.builder.prim
        if depth > 0 and kind < 0.35:
            other = self.vector(shape, depth - 1) if self.chance(0.6) else self.scalar(depth - 1)
            operands = [self.vector(shape, depth - 1), other]
            self.random.shuffle(operands)
            return make(self.choice(ARITHMETIC), *operands)
        if depth > 0 and kind < 0.42:
            return make(p.neg, self.vector(shape, depth - 1))
        if depth > 0 and kind < 0.5:
            return make(p.select, self.truth(1), self.vector(shape, depth - 1), self.vector(shape, depth - 1))
        if depth > 0 and kind < 0.58:
            indices = [self.index(n) for n in shape]
            return self.builder.insert(self.vector(shape, depth - 1), indices, self.scalar(depth - 1))
        if depth > 0 and kind < 0.63:
            return make(p.cast, self.vector(shape, depth - 1), type=Tensor(self.choice(NUMBERS), shape))
        if kind < 0.75:
            seen = self.seen(lambda v: shape_of(v.type) == shape)
            if seen is not None:
                return seen
        if kind < 0.85:
            value = self.get_local(shape)
            if shape_of(value.type) == shape:
                return value
        if kind < 0.93:
            readable = [b for b in self.buffers if b.element == shape and self.may(b, "own", "read")]
            if readable:
                buffer = self.choice(readable)
                return self.builder.load(buffer, self.place(buffer, components=False))
        t = Tensor(self.choice(NUMBERS), shape)
        return self.builder.pack([self.scalar(max(depth - 1, 0)) for _ in range(t.count)], t)
