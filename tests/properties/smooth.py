"""Random differentiable kernels, to compare gradients with differences.

Each is a chain of parallel loops from inputs over intermediate fields to a sum: straight lines, branches, inner loops
with constant and run-time bounds that carry locals, `while` loops, vectors, loads at computed indices, stores and
atomic operations. Iterations overwrite elements of their own, in straight lines and in loops, and later parallel loops
overwrite what earlier ones have read. Values stay within a few units, and functions within the interior of their
domains, so that differences are good to many digits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.properties.writer import Program, Writer
from tinote.ir import primitives as p
from tinote.ir.nodes import Atom, Buffer, For, Function, If, Lit, Region, Var, While
from tinote.ir.types import Ref, Scalar, Tensor, Type, f64, i32, i64, shape_of, weak_float, weak_int

__all__ = ["generate_smooth", "generate_uneven"]

#: functions of any number that stay small, as their derivatives do
SMOOTH = tuple(
    [
        prim
        for prim in p.PRIMITIVES.values()
        if prim.arity == 1 and prim.ulps and prim.domain == p.sin.domain and prim not in (p.exp, p.tan)
    ]
)


def generate_smooth(seed: int, size: int = 8, real: Scalar = f64) -> Program:
    """A random differentiable kernel of about `size` statements, whose numbers are of the type `real`."""
    return _SmoothWriter(seed, size, real).program()


def generate_uneven(seed: int, size: int = 8) -> Program:
    """One with inner loops that run another number of times in each iteration of the parallel loop around them."""
    return _SmoothWriter(seed, size, f64, uneven=True).program()


class _SmoothWriter(Writer):
    def __init__(self, seed: int, size: int, real: Scalar, *, uneven: bool = False) -> None:
        super().__init__(seed)
        self.size = size
        self.real = real
        self.budget = size
        self.depth = 0
        self.locals: list[Var] = []
        self.uneven = uneven
        self.extent = 4 if uneven else self.random.randint(1, 4)
        self.readable: list[Buffer] = []
        self.own: list[Buffer] = []  # what each iteration of the present parallel loop reads and writes at its index
        self.index_of_iteration: Var | None = None

    def field(self, name: str, shape: tuple[int, ...], element: tuple[int, ...] = ()) -> Buffer:
        buffer = Buffer(name, self.real, shape, element)
        buffer.adjoint = Buffer(f"{name}.grad", self.real, shape, element)
        buffer.adjoint.primal = buffer
        buffer.tangent = Buffer(f"{name}.dual", self.real, shape, element)
        buffer.tangent.primal = buffer
        return buffer

    def program(self) -> Program:
        n = Var(i32, "n")
        self.below[n] = 4
        vectors = self.chance(0.4)
        inputs = [self.field("x", (self.extent,), (2,) if vectors else ())]
        if self.chance(0.5):
            inputs.append(self.field("w", ()))
        if self.chance(0.3):
            inputs.append(self.field("m", (self.extent, 2)))
        if self.chance(0.5):
            inputs.append(self.field("q", (self.extent,)))
        self.readable = list(inputs)
        middle = [self.field("yzv"[k], (self.extent,)) for k in range(self.random.randint(0, 2))]
        loss = self.field("L", ())

        def body() -> tuple[Atom, ...]:
            for buffer in middle:
                self.parallel(buffer, summed=self.chance(0.3))
                self.readable.append(buffer)
            self.parallel(loss, summed=True)
            return ()

        region = self.region((n,), body)
        fields = [*inputs, *middle, loss]
        others = [other for b in fields for other in (b.adjoint, b.tangent) if other is not None]
        contents = {b: self.filled(b, b in inputs) for b in fields} | {b: self.filled(b, False) for b in others}
        return Program(
            self.seed,
            self.size,
            Function(f"smooth_{self.seed}", region),
            (self.random.randint(1, 3),),
            contents,
            frozenset(),
            False,
            tuple(inputs),
            loss,
        )

    def filled(self, buffer: Buffer, given: bool) -> Any:
        def part(shape: tuple[int, ...]) -> Any:
            if shape:
                return [part(shape[1:]) for _ in range(shape[0])]
            return self.random.uniform(-1.5, 1.5) if given else 0.0

        return part(tuple([n or 0 for n in buffer.shape]) + buffer.element)

    def parallel(self, target: Buffer, summed: bool) -> None:
        """A parallel loop in which each iteration stores its element of `target`, or all sum into it."""
        index = Var(i32, self.name("i"))
        self.below[index] = self.extent
        self.index_of_iteration = index
        outer = len(self.locals)
        budget, self.budget = self.budget, max(self.budget // 2, 2)
        readable = self.readable
        self.own = [b for b in readable if b.rank == 1 and self.chance(0.35)]
        self.readable = [b for b in readable if b not in self.own]

        def body() -> tuple[Atom, ...]:
            while self.budget > 0:
                self.statement()
            value = self.scalar(2)
            if not summed:
                self.builder.store(target, (index,), value)
                return ()
            self.builder.atomic(p.add, target, [self.index(n or 1) for n in target.shape], value)
            if self.chance(0.3):
                self.sum_in_loop(target)
            return ()

        region = self.region((index,), body)
        self.builder.emit(For(Lit(0, i32), Lit(self.extent, i32), (), region, parallel=True))
        del self.locals[outer:]
        self.budget = budget
        self.readable, self.own = readable, []

    def sum_in_loop(self, target: Buffer) -> None:
        """A sum into memory from an inner loop."""
        index = Var(i32, self.name("k"))
        count = self.random.randint(1, 3)
        self.below[index] = count

        def body() -> tuple[Atom, ...]:
            place = [self.index(n or 1) for n in target.shape]
            self.builder.atomic(p.add, target, place, self.scalar(2))
            return ()

        self.builder.emit(For(Lit(0, i32), Lit(count, i32), (), self.region((index,), body)))

    # statements

    def block(self) -> None:
        self.depth += 1
        outer = len(self.locals)
        for _ in range(self.random.randint(1, 2)):
            self.statement()
        del self.locals[outer:]
        self.depth -= 1

    def statement(self) -> None:
        self.budget -= 1
        choices: list[Callable[[], object]] = [self.bind, self.set_local, self.set_local, self.accumulate]
        if self.own:
            choices += [self.overwrite, self.overwrite, self.update]
        if self.depth < 2:
            choices += [self.branch, self.loop, self.loop, self.while_loop]
        self.choice(choices)()

    def bind(self) -> None:
        self.show(self.vector(1) if self.chance(0.3) else self.scalar(2))

    def set_local(self) -> None:
        if not self.locals or self.chance(0.4):
            t: Tensor | Any = Tensor(self.real, (2,)) if self.chance(0.3) else self.real
            self.locals.append(self.builder.local(t, self.of_type(t, 1), self.name("c")))
            return
        cell = self.choice(self.locals)
        assert isinstance(cell.type, Ref)
        if isinstance(cell.type.content, Tensor) and self.chance(0.5):
            self.builder.set(cell, self.limited(self.scalar(2), 1.0), self.index(2))
        else:
            self.builder.set(cell, self.limited(self.of_type(cell.type.content, 2), 1.0))

    def own_place(self) -> tuple[Buffer, list[Atom]]:
        """An element of this iteration, or a component of one."""
        buffer = self.choice(self.own)
        assert self.index_of_iteration is not None
        return buffer, [self.index_of_iteration, *[self.index(n) for n in buffer.element]]

    def overwrite(self) -> None:
        """A new value in place of one that may have been read: often a function of it."""
        buffer, place = self.own_place()
        value = self.scalar(2)
        if self.chance(0.5):
            value = self.builder.prim(self.choice((p.add, p.mul)), self.builder.load(buffer, place), value)
        self.builder.store(buffer, place, self.limited(value, 1.0))

    def update(self) -> None:
        """An atomic operation on an element of this iteration, sometimes with use of the old value."""
        buffer, place = self.own_place()
        prim = self.choice((p.add, p.add, p.mul, p.minimum, p.maximum))
        old = self.builder.atomic(prim, buffer, place, self.limited(self.scalar(1), 1.0), old=self.chance(0.4))
        if old is not None:
            self.show(old)

    def accumulate(self) -> None:
        """`s = s * factor + something` for a local: a value that a loop carries from iteration to iteration."""
        cells = [c for c in self.locals if isinstance(c.type, Ref) and c.type.content is self.real]
        if not cells:
            self.set_local()
            return
        cell = self.choice(cells)
        old = self.builder.get(cell)
        factor = self.choice((Lit(1, weak_int), Lit(0.5, weak_float), self.limited(self.scalar(1), 1.0)))
        new = self.builder.prim(p.add, self.builder.prim(p.mul, old, factor), self.limited(self.scalar(2), 1.0))
        self.builder.set(cell, new)

    def unit(self) -> tuple[Atom, ...]:
        self.block()
        return ()

    def branch(self) -> None:
        condition = self.truth()
        if self.chance(0.3):
            out = Var(self.real, self.name("y"))

            def value() -> tuple[Atom, ...]:
                self.block()
                return (self.scalar(1),)

            self.builder.emit(If(condition, self.region((), value), self.region((), value), (out,)))
            self.show(out)
            return
        orelse = self.region((), self.unit) if self.chance(0.5) else Region((), ())
        self.builder.emit(If(condition, self.region((), self.unit), orelse))

    def loop(self) -> None:
        index = Var(i32, self.name("k"))
        known = self.seen(lambda v: v in self.below)
        hi: Atom = Lit(self.random.randint(0, 3), i32)
        below = 3
        if self.uneven:
            known = self.index_of_iteration
        if known is not None and self.chance(0.5):
            hi, below = known, max(self.below[known] - 1, 1)
        self.below[index] = below
        carried: tuple[Var, ...] = ()
        initial: tuple[Atom, ...] = ()
        if self.chance(0.3):
            carried, initial = (Var(self.real, self.name("s")),), (self.scalar(1),)

        def body() -> tuple[Atom, ...]:
            self.block()
            return tuple([self.limited(self.builder.prim(p.add, v, self.scalar(1)), 1.0) for v in carried])

        region = self.region((index, *carried), body)
        outs = tuple([Var(self.real, self.name("r")) for _ in carried])
        self.builder.emit(For(Lit(0, i32), hi, initial, region, outs, reverse=self.chance(0.1)))
        self.visible += outs

    def while_loop(self) -> None:
        counter = self.builder.local(i32, Lit(0, i32), self.name("t"))
        limit: Atom = Lit(self.random.randint(0, 3), i32)
        known = self.seen(lambda v: v in self.below)
        if known is not None and self.chance(0.4):
            limit = known

        def condition() -> tuple[Atom, ...]:
            return (self.builder.prim(p.lt, self.builder.get(counter), limit),)

        def body() -> tuple[Atom, ...]:
            self.block()
            self.builder.set(counter, self.builder.prim(p.add, self.builder.get(counter), Lit(1, weak_int)))
            return ()

        first = self.region((), condition)
        self.builder.emit(While((), first, self.region((), body)))

    # values

    def of_type(self, t: Type, depth: int) -> Atom:
        return self.vector(depth) if shape_of(t) else self.limited(self.scalar(depth))

    def limited(self, value: Atom, often: float = 0.5) -> Atom:
        """`value` brought into -1..1 with this probability, so that loops do not make it grow."""
        return self.builder.prim(self.choice((p.sin, p.tanh)), value) if self.chance(often) else value

    def bounded(self, value: Atom, middle: float, width: float) -> Atom:
        """A number strictly between middle - width and middle + width that depends on `value`."""
        wave = self.builder.prim(p.mul, self.builder.prim(p.sin, value), Lit(width, weak_float))
        return self.builder.prim(p.add, wave, Lit(middle, weak_float))

    def index(self, extent: int) -> Atom:
        known = self.seen(lambda v: self.below.get(v, extent + 1) <= extent)
        if known is not None and self.chance(0.5):
            return known
        some = self.seen(lambda v: v in self.below)
        if some is None or self.chance(0.4):
            return Lit(self.random.randrange(extent), i32)
        moved = self.builder.prim(p.add, some, Lit(self.random.randint(0, 3), i32))
        return self.builder.prim(p.mod, moved, Lit(extent, i32))

    def load(self) -> Atom:
        buffer = self.choice([*self.readable, *self.own])
        if buffer in self.own:
            assert self.index_of_iteration is not None
            return self.builder.load(buffer, [self.index_of_iteration, *[self.index(n) for n in buffer.element]])
        index = [self.index(n or 1) for n in buffer.shape]
        return self.builder.load(buffer, [*index, *[self.index(n) for n in buffer.element]])

    def leaf(self) -> Atom:
        kind = self.random.random()
        if kind < 0.35:
            seen = self.seen(lambda v: v.type is self.real)
            if seen is not None:
                return seen
        if kind < 0.6 and self.locals:
            cell = self.choice(self.locals)
            assert isinstance(cell.type, Ref)
            return self.builder.get(cell, *([self.index(2)] if isinstance(cell.type.content, Tensor) else []))
        if kind < 0.9:
            return self.load()
        if kind < 0.95:
            known = self.seen(lambda v: v in self.below)
            if known is not None:
                return self.builder.prim(p.mul, self.builder.cast(known, self.real), Lit(0.25, weak_float))
        return Lit(round(self.random.uniform(-2, 2), 3), self.real)

    def scalar(self, depth: int) -> Atom:
        make = self.builder.prim
        if depth == 0 or self.chance(0.2):
            return self.leaf()
        a = self.scalar(depth - 1)
        kind = self.random.randrange(24)
        if kind < 8:
            return make((p.add, p.sub, p.mul, p.add)[kind % 4], a, self.scalar(depth - 1))
        if kind == 8:
            return make(p.div, a, self.bounded(self.scalar(depth - 1), 1.7, 0.9))
        if kind == 9:
            return make(p.exp, self.bounded(a, 0.1, 0.8))
        if kind == 10:
            return make(self.choice((p.sqrt, p.log, p.rsqrt)), self.bounded(a, 1.4, 0.9))
        if kind == 11:
            return make(self.choice(SMOOTH), a)
        if kind == 12:
            return make(self.choice((p.asin, p.acos, p.tan)), self.bounded(a, 0.05, 0.7))
        if kind == 13:
            return make(p.atan2, self.bounded(a, 0.3, 1.0), self.bounded(self.scalar(depth - 1), 1.6, 0.8))
        if kind == 14:
            exponent = Lit(2, weak_int) if self.chance(0.5) else self.bounded(self.scalar(depth - 1), 0.5, 1.5)
            return make(p.power, self.bounded(a, 1.5, 0.6), exponent)
        if kind == 15:
            return make(p.absolute, make(p.add, a, Lit(0.377, weak_float)))
        if kind == 16:
            other = make(p.add, self.scalar(depth - 1), Lit(0.219, weak_float))
            return make(self.choice((p.minimum, p.maximum)), a, other)
        if kind == 17:
            return make(p.select, self.truth(), a, self.scalar(depth - 1))
        if kind == 18:
            return make(p.neg, a)
        if kind == 19:
            return self.builder.extract(self.vector(depth - 1), self.index(2))
        if kind == 20:
            # There and back through an integer type: the derivative of what is added is zero.
            return make(p.add, a, self.builder.cast(self.builder.cast(self.scalar(depth - 1), i64), self.real))
        if kind == 21:
            # A quotient between 2.1 and 3.4: it seldom lies near a jump, and the derivative by the divisor is not zero.
            divisor = self.bounded(self.scalar(depth - 1), 2.0, 0.3)
            return make(self.choice((p.mod, p.raw_mod)), self.bounded(a, 5.3, 0.4), divisor)
        if kind == 22:
            return make(p.raw_div, a, self.bounded(self.scalar(depth - 1), -1.7, 0.9))
        return make(p.mul, a, a)

    def vector(self, depth: int) -> Atom:
        kind = self.random.random()
        if depth > 0 and kind < 0.3:
            other = self.vector(depth - 1) if self.chance(0.6) else self.limited(self.scalar(depth - 1))
            return self.builder.prim(self.choice((p.add, p.sub, p.mul)), self.vector(depth - 1), other)
        if depth > 0 and kind < 0.5:
            return self.builder.insert(self.vector(depth - 1), [self.index(2)], self.scalar(depth - 1))
        if kind < 0.6:
            seen = self.seen(lambda v: v.type == Tensor(self.real, (2,)))
            if seen is not None:
                return seen
        vectors = [b for b in self.readable if b.element == (2,)]
        if kind < 0.8 and vectors:
            buffer = self.choice(vectors)
            return self.builder.load(buffer, [self.index(n or 1) for n in buffer.shape])
        return self.builder.pack([self.scalar(max(depth - 1, 0)) for _ in range(2)], Tensor(self.real, (2,)))

    def truth(self) -> Atom:
        """A condition on integers, or on a value that is unlikely to lie near the threshold."""
        known = self.seen(lambda v: v in self.below)
        if known is not None and self.chance(0.6):
            odd = self.builder.prim(p.mod, known, Lit(2, i32))
            return self.builder.prim(p.eq, odd, Lit(self.random.randint(0, 1), i32))
        return self.builder.prim(self.choice((p.lt, p.gt)), self.scalar(1), Lit(0.1371, weak_float))
