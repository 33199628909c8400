"""Random kernels in first form, the same for the same seed and size.

`generate` writes programs whose result does not depend on the order in which the iterations of a parallel loop run: in
each parallel loop a buffer is either only read, or touched by each iteration in its own elements alone, or only
accumulated into by one commutative operation. Sums of floats are the exception, because rounding depends on the order:
the buffers that hold them are named in `approximate`, and nothing else reads them. Every index is in range and every
integer divisor is non-zero, by construction.

`tests.properties.smooth` writes differentiable programs with the same tools.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from tinote.ir import primitives as p
from tinote.ir.build import Builder
from tinote.ir.memory import DictMemory
from tinote.ir.nodes import (
    Atom,
    Buffer,
    BufferKind,
    Check,
    FaultKind,
    For,
    Function,
    If,
    Lit,
    Print,
    Region,
    Var,
    While,
)
from tinote.ir.text import show
from tinote.ir.types import (
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
    u64,
    weak_float,
    weak_int,
)

__all__ = ["Program", "Writer", "generate", "smallest"]

T = TypeVar("T")

NUMBERS = (f32, f64, i32, i64, u8, u32)
STORED = (f32, f64, i32, i64, u8)
ARITHMETIC = (p.add, p.sub, p.mul, p.add, p.sub, p.mul, p.minimum, p.maximum)
BITS = (p.and_, p.or_, p.xor, p.shl, p.shr)
DIVISIONS = (p.floordiv, p.mod, p.raw_div, p.raw_mod)
COMPARISONS = (p.lt, p.le, p.gt, p.ge, p.eq, p.ne)
ROUNDINGS = (p.floor, p.ceil, p.round_)
MATHS = (p.sin, p.cos, p.exp, p.log, p.tanh, p.tan, p.asin, p.acos, p.rsqrt)
SHAPES = ((2,), (3,), (2, 2))


class Program(NamedTuple):
    """A generated kernel with its arguments and what its buffers hold before it runs."""

    seed: int
    size: int
    function: Function
    arguments: tuple[float, ...]
    contents: dict[Buffer, Any]
    #: buffers whose floats depend on the order of a parallel loop's iterations by rounding
    approximate: frozenset[Buffer]
    #: only + - * / sqrt and integer operations: machine code must agree to the last bit
    exact: bool
    #: differentiable programs: what to differentiate by, and the buffer of rank 0 that is differentiated
    inputs: tuple[Buffer, ...] = ()
    loss: Buffer | None = None

    def memory(self) -> DictMemory:
        """The buffers as they are before the kernel runs."""
        return DictMemory(self.contents)

    def __str__(self) -> str:
        return f"# seed {self.seed}, size {self.size}, arguments {self.arguments}\n{show(self.function)}"


def generate(seed: int, size: int = 12, *, carries: bool = True, maths: bool = True) -> Program:
    """A random kernel of about `size` statements. `carries`: with loops that carry values beside those that set locals.
    `maths`: a third of the programs call mathematical functions."""
    return _KernelWriter(seed, size, carries, maths).program()


def smallest(fails: Callable[[int], bool], size: int) -> int:
    """The smallest size at which `fails(size)` still holds, to show a failure by a short program."""
    return next((smaller for smaller in range(1, size) if fails(smaller)), size)


class Writer:
    """What all writers share: chance, visible variables and nested regions."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.seed = seed
        self.builder = Builder()
        self.visible: list[Var] = []
        self.below: dict[Var, int] = {}  # loop indices, and what they stay below
        self.names = 0

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def choice(self, things: tuple[T, ...] | list[T]) -> T:
        return things[self.random.randrange(len(things))]

    def name(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def show(self, atom: Atom) -> Atom:
        """Make a new variable visible to what follows in this region."""
        if isinstance(atom, Var):
            self.visible.append(atom)
        return atom

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Forget what became visible inside."""
        seen = len(self.visible)
        try:
            yield
        finally:
            del self.visible[seen:]

    def region(self, params: tuple[Var, ...], write: Callable[[], tuple[Atom, ...]]) -> Region:
        """A region whose body is what `write` emits and whose yields are what it returns."""
        with self.nested(), self.builder.region(*params) as opened:
            for param in params:
                self.show(param)
            return opened.close(*write())

    def seen(self, wanted: Callable[[Var], bool]) -> Var | None:
        """One of the visible variables, later ones rather than earlier ones."""
        found = [v for v in self.visible if wanted(v)]
        if not found:
            return None
        return self.choice(found[-4:] if self.chance(0.5) else found)


class _KernelWriter(Writer):
    def __init__(self, seed: int, size: int, carries: bool, maths: bool) -> None:
        super().__init__(seed)
        self.size = size
        self.carries = carries
        self.maths = maths and self.chance(0.33)
        self.exact = True
        self.locals: list[Var] = []
        self.settable = 0  # locals before this one belong to the outside of a parallel loop
        self.budget = size
        self.depth = 0
        self.buffers = self.make_buffers()
        self.approximate: set[Buffer] = set()
        #: inside a parallel loop: how a buffer may be touched (see `touch`); None outside
        self.touch: dict[Buffer, str | p.Primitive] | None = None
        self.own_index: tuple[Var, ...] = ()
        self.iteration: Var | None = None
        self.seed_parameter: Var | None = None
        #: a parameter that is always zero, which the compiler cannot know: with it, checks cannot be proved away
        self.zero = Var(i32, "zero")

    # the whole

    def make_buffers(self) -> list[Buffer]:
        buffers: list[Buffer] = []
        for k in range(self.random.randint(2, 5)):
            rank = self.choice((0, 1, 1, 1, 2))
            shape = tuple([self.random.randint(1, 5) for _ in range(rank)])
            element = self.choice(SHAPES) if self.chance(0.35) else ()
            buffers.append(Buffer("fghpq"[k], self.choice(STORED), shape, element))
        if self.chance(0.3):
            buffers.append(Buffer("t", self.choice(STORED), (), (), BufferKind.TEMPORARY))
        return buffers

    def program(self) -> Program:
        n, a = Var(i32, "n"), Var(self.choice((f32, f64, i64)), "a")
        params = [n, a, self.zero]
        arguments: list[float] = [self.random.randint(1, 5), self.value(a.type), 0]
        if self.chance(0.2):
            self.seed_parameter = Var(u64, "launch_seed")
            params.append(self.seed_parameter)
            arguments.append(self.random.getrandbits(64))
        self.below[n] = 6

        def body() -> tuple[Atom, ...]:
            while self.budget > 0:
                self.top_statement()
            # What was computed must reach memory or the caller, or dead code elimination leaves nothing to test.
            for buffer in self.buffers:
                if self.chance(0.5) and buffer not in self.approximate:
                    self.store(buffer)
            return tuple([self.scalar(1) for _ in range(self.random.randint(0, 2))])

        region = self.region(tuple(params), body)
        contents = {b: self.filled(b) for b in self.buffers if b.kind is BufferKind.FIELD}
        return Program(
            self.seed,
            self.size,
            Function(f"random_{self.seed}", region),
            tuple(arguments),
            contents,
            frozenset(self.approximate),
            self.exact,
        )

    def value(self, t: Scalar) -> float:
        """A number to start from."""
        if t.kind == "f":
            return t.round(self.choice((0.0, 1.0, -2.5, self.random.uniform(-4, 4), self.random.uniform(-4, 4))))
        if self.chance(0.1):
            return self.choice((t.lowest, t.highest))
        return self.random.randint(max(t.lowest, -9), 9)

    def filled(self, buffer: Buffer) -> Any:
        def part(shape: tuple[int, ...]) -> Any:
            return [part(shape[1:]) for _ in range(shape[0])] if shape else self.value(buffer.dtype)

        return part(tuple([n for n in buffer.shape if n is not None]) + buffer.element)

    # statements

    def top_statement(self) -> None:
        self.choice((self.parallel_loop, self.parallel_loop, self.statement))()

    def block(self) -> None:
        """Some statements one level further in."""
        self.depth += 1
        locals_before = len(self.locals)
        for _ in range(self.random.randint(1, 3)):
            self.statement()
        del self.locals[locals_before:]
        self.depth -= 1

    def statement(self) -> None:
        self.budget -= 1
        simple: list[Callable[[], object]] = [self.bind, self.bind, self.bind_vector, self.set_local, self.set_local]
        simple += [self.store_somewhere, self.store_somewhere, self.atomic]
        if self.depth < 3:
            simple += [self.branch, self.branch, self.loop, self.loop, self.while_loop]
        if self.chance(0.03):
            simple = [self.message]
        self.choice(simple)()

    def bind(self) -> None:
        self.show(self.scalar(3))

    def bind_vector(self) -> None:
        self.show(self.vector(self.choice(SHAPES), 2))

    def set_local(self) -> None:
        """Declare a local, or set one, or a component of one."""
        mine = self.locals[self.settable :]
        if not mine or self.chance(0.3):
            t = self.choice(NUMBERS)
            content = Tensor(t, self.choice(SHAPES)) if self.chance(0.3) else t
            initial = self.of_shape(shape_of(content), 2) if self.chance(0.8) else None
            self.locals.append(self.builder.local(content, initial, self.name("c")))
            return
        cell = self.choice(mine)
        assert isinstance(cell.type, Ref)
        shape = shape_of(cell.type.content)
        if shape and self.chance(0.6):
            value = self.scalar(2)
            self.builder.set(cell, value, *[self.index(n) for n in shape])
        else:
            self.builder.set(cell, self.of_shape(shape, 2))

    def message(self) -> None:
        value = self.scalar(1)
        if self.chance(0.5) and self.touch is None:
            self.builder.emit(Print(("value ", None, "\n"), (value,)))
        else:
            fine = self.builder.prim(p.eq, Lit(1, i32), Lit(1, i32))
            self.builder.emit(Check(FaultKind.ASSERT, (fine, value), "never: {}"))

    def branch(self) -> None:
        condition = self.truth(2)
        if self.chance(0.35):
            shape = self.choice(SHAPES) if self.chance(0.3) else ()
            out = Var(Tensor(f32, shape) if shape else self.choice(NUMBERS), self.name("y"))

            def value() -> tuple[Atom, ...]:
                self.block()
                return (self.of_shape(shape, 2),)

            then, orelse = self.region((), value), self.region((), value)
            self.builder.emit(If(condition, then, orelse, (out,)))
            self.show(out)
        else:
            then = self.region((), self.unit)
            orelse = self.region((), self.unit) if self.chance(0.5) else Region((), ())
            self.builder.emit(If(condition, then, orelse))

    def unit(self) -> tuple[Atom, ...]:
        self.block()
        return ()

    def loop(self) -> None:
        """A serial loop: over a literal range, up to a variable, or from one; sometimes carrying values."""
        hi, below = self.bound()
        lo: Atom = Lit(0, weak_int)
        if self.chance(0.25):
            lo = Lit(self.random.randint(0, 3), i32)
        index = Var(i32, self.name("k"))
        self.below[index] = below
        carried, initial = self.carried()

        def body() -> tuple[Atom, ...]:
            self.block()
            return tuple([self.of_shape(shape_of(v.type), 2) for v in carried])

        region = self.region((index, *carried), body)
        outs = tuple([Var(v.type, self.name("r")) for v in carried])
        self.builder.emit(For(lo, hi, initial, region, outs, reverse=self.chance(0.1)))
        self.visible += outs

    def bound(self) -> tuple[Atom, int]:
        """An upper bound of a loop, and a number that the index stays below."""
        known = self.seen(lambda v: v in self.below and v.type is i32)
        if known is not None and self.chance(0.5):
            return known, max(self.below[known] - 1, 1)
        n = self.random.randint(0, 4)
        return Lit(n, self.choice((weak_int, i32))), max(n, 1)

    def carried(self) -> tuple[tuple[Var, ...], tuple[Atom, ...]]:
        if not self.carries or self.chance(0.6):
            return (), ()
        count = self.random.randint(1, 2)
        types = [Tensor(f32, (2,)) if self.chance(0.25) else self.choice(NUMBERS) for _ in range(count)]
        initial = tuple([self.of_shape(shape_of(t), 1) for t in types])
        return tuple([Var(t, self.name("s")) for t in types]), initial

    def while_loop(self) -> None:
        """A `while` whose turns are counted by a local, so that it ends."""
        counter = self.builder.local(i32, Lit(0, i32), self.name("w"))
        limit = self.random.randint(0, 4)

        def condition() -> tuple[Atom, ...]:
            fine: Atom = self.builder.prim(p.lt, self.builder.get(counter), Lit(limit, weak_int))
            if self.chance(0.4):
                fine = self.builder.prim(p.and_, fine, self.truth(1))
            return (fine,)

        def body() -> tuple[Atom, ...]:
            if self.chance(0.5):
                self.block()
            self.builder.set(counter, self.builder.prim(p.add, self.builder.get(counter), Lit(1, weak_int)))
            if self.chance(0.5):
                self.block()
            return ()

        first = self.region((), condition)
        self.builder.emit(While((), first, self.region((), body)))

    # parallel loops

    def parallel_loop(self) -> None:
        """A parallel loop or a perfect nest of two, with a way of touching for each buffer."""
        self.budget -= 1
        ranks = 2 if self.chance(0.3) else 1
        model = [b for b in self.buffers if b.rank >= ranks]
        bounds = [n or 1 for n in self.choice(model).shape[:ranks]] if model else [3] * ranks
        indices = tuple([Var(i32, self.name("ij"[axis])) for axis in range(ranks)])
        self.below.update(zip(indices, bounds, strict=True))
        self.touch = {b: self.way(b, bounds) for b in self.buffers}
        self.own_index = indices
        settable, self.settable = self.settable, len(self.locals)

        def body() -> tuple[Atom, ...]:
            self.iteration = indices[0]
            if ranks == 2:
                row = self.builder.prim(p.mul, indices[0], Lit(bounds[1], i32))
                self.iteration = self.builder.prim(p.add, row, indices[1])
            for _ in range(self.random.randint(1, 4)):
                self.statement()
            del self.locals[self.settable :]
            return ()

        def nest(axis: int) -> Callable[[], tuple[Atom, ...]]:
            def write() -> tuple[Atom, ...]:
                if axis == ranks:
                    return body()
                region = self.region((indices[axis],), nest(axis + 1))
                hi = Lit(bounds[axis], i32)
                self.builder.emit(For(Lit(0, i32), hi, (), region, parallel=True))
                return ()

            return write

        nest(0)()
        self.settable = settable
        self.touch, self.own_index, self.iteration = None, (), None

    def way(self, buffer: Buffer, bounds: list[int]) -> str | p.Primitive:
        """How the iterations of a parallel loop touch a buffer.

        They "read" it, or each touches its "own" elements, or "none" touches it, or all accumulate by this primitive.
        """
        fits = len(bounds) <= buffer.rank and all(n <= (buffer.shape[k] or 0) for k, n in enumerate(bounds))
        if buffer in self.approximate:
            return p.add if self.chance(0.5) else "none"
        if self.chance(0.45) and fits:
            return "own"
        if self.chance(0.4):
            if buffer.dtype.kind == "f":
                if self.chance(0.5):
                    self.approximate.add(buffer)
                    return p.add
                return "read"
            return self.choice(p.ATOMICS)
        return "read"

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
        index: list[Atom] = [*own, *[self.index(n or 1) for n in buffer.shape[len(own) :]]]
        if buffer.element and components:
            index += [self.index(n) for n in buffer.element]
        return index

    def store_somewhere(self) -> None:
        found = [b for b in self.buffers if self.may(b, "own")]
        if found:
            self.store(self.choice(found))
        else:
            self.atomic()

    def store(self, buffer: Buffer) -> None:
        components = bool(buffer.element) and self.chance(0.5)
        value = self.of_shape(() if components else buffer.element, 3)
        self.builder.store(buffer, self.place(buffer, components=components), value)

    def atomic(self) -> None:
        shared = self.touch is not None
        found = [b for b in self.buffers if not shared or self.touch is None or self.touch[b] not in ("read", "none")]
        if not found:
            return
        buffer = self.choice(found)
        way = None if self.touch is None else self.touch[buffer]
        if isinstance(way, p.Primitive):
            prim, old = way, False
        else:
            floats = (p.add, p.mul, p.minimum, p.maximum)
            prim = self.choice(floats if buffer.dtype.kind == "f" else p.ATOMICS)
            old = self.chance(0.3) and buffer not in self.approximate
            if buffer in self.approximate:
                prim = p.add
        components = bool(buffer.element) and self.chance(0.5)
        value = self.of_shape(() if components else buffer.element, 2)
        if buffer in self.approximate:
            # Terms of ordinary size, none of them NaN: then the order matters by little more than the last bits.
            value = self.builder.prim(p.minimum, self.builder.prim(p.maximum, value, Lit(-8, i64)), Lit(8, i64))
        was = self.builder.atomic(prim, buffer, self.place(buffer, components=components), value, old=old)
        if was is not None:
            self.show(was)

    # values

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
            seen = self.seen(lambda v: isinstance(v.type, Scalar) and v.type is not u1)
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
        wanted = (shape,) if shape else ((), *SHAPES)
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
        return self.builder.cast(value, self.choice((i32, i64, u8, u32)))

    def floating(self, depth: int) -> Atom:
        value = self.scalar(depth)
        return value if is_float(value.type) else self.builder.cast(value, self.choice((f32, f64)))

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
