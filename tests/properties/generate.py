"""Random kernels in first form, the same for the same seed and size.

`generate` writes programs whose result does not depend on the order in which the iterations of a parallel loop run: in
each parallel loop a buffer is either only read, or touched by each iteration in its own elements alone, or only
accumulated into by one commutative operation. Sums of floats are the exception, because rounding depends on the order:
the buffers that hold them are named in `approximate`, and nothing else reads them. Every index is in range and every
integer divisor is non-zero, by construction.

`generate_meeting` writes programs whose parallel iterations also update elements by a load, an operation and a store,
and, in half of the programs, read and overwrite what others change: these are compared with the order of one thread.

`tests.properties.smooth` writes differentiable programs with the same tools.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.properties.values import ARRAYS, NUMBERS, SHAPES, ValueWriter
from tests.properties.writer import Program, smallest
from tinote.ir import primitives as p
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
    row_major,
)
from tinote.ir.types import (
    SCALARS,
    Ref,
    Scalar,
    Tensor,
    f16,
    f32,
    f64,
    i32,
    i64,
    shape_of,
    u1,
    u8,
    u16,
    u32,
    u64,
    weak_int,
)

__all__ = ["Program", "generate", "generate_meeting", "smallest"]

STORED = (*SCALARS, f32, f32, f64, i32, i32, i64, u8)


def generate(seed: int, size: int = 12, *, carries: bool = True, maths: bool = True) -> Program:
    """A random kernel of about `size` statements.

    `carries`: with loops that carry values besides those that set locals. `maths`: a third of the programs call
    mathematical functions.
    """
    return _KernelWriter(seed, size, carries, maths).program()


def generate_meeting(seed: int, size: int = 12) -> Program:
    """A random kernel in which iterations of parallel loops meet in elements."""
    return _MeetingWriter(seed, size, True, False).program()


class _KernelWriter(ValueWriter):
    def __init__(self, seed: int, size: int, carries: bool, maths: bool) -> None:
        super().__init__(seed, maths)
        self.size = size
        self.carries = carries
        self.settable = 0  # locals before this one belong to the outside of a parallel loop
        self.budget = size
        self.buffers = self.make_buffers()

    # the whole

    def make_buffers(self) -> list[Buffer]:
        buffers = [self.buffer("fghpq"[k]) for k in range(self.random.randint(2, 5))]
        if self.chance(0.3):
            buffers.append(Buffer("t", self.choice(STORED), (), (), BufferKind.TEMPORARY))
            self.extents[buffers[-1]] = ()
        return buffers

    def buffer(self, name: str) -> Buffer:
        """A field in one of several layouts, or an array whose shape is known at launch only."""
        rank = self.choice((0, 1, 1, 1, 2, 2, 3))
        extents = tuple([self.random.randint(1, 5) for _ in range(rank)])
        element = self.choice(SHAPES) if self.chance(0.35) else ()
        dtype = self.choice(STORED)
        kind = self.random.random()
        if rank and kind < 0.2:
            shape = tuple([None if self.chance(0.8) else n for n in extents])
            made = Buffer(name, dtype, shape, element, BufferKind.ARRAY)
        elif rank and kind < 0.4:
            # One plane a component, the first index fastest.
            planes = row_major((*element, *extents[::-1]), dtype.size)
            strides, parts = planes[len(element) :][::-1], planes[: len(element)]
            made = Buffer(name, dtype, extents, element, strides=strides, element_strides=parts)
        else:
            made = Buffer(name, dtype, extents, element)
        self.extents[made] = extents
        return made

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
        contents = {b: self.filled(b) for b in self.buffers if b.kind is not BufferKind.TEMPORARY}
        return Program(
            self.seed,
            self.size,
            Function(f"random_{self.seed}", region),
            tuple(arguments),
            contents,
            frozenset(self.approximate),
            self.exact,
        )

    def filled(self, buffer: Buffer) -> Any:
        def part(shape: tuple[int, ...]) -> Any:
            return [part(shape[1:]) for _ in range(shape[0])] if shape else self.value(buffer.dtype)

        return part(self.extents[buffer] + buffer.element)

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
            if self.chance(0.15):
                self.locals.append(self.builder.local(Tensor(t, self.choice(ARRAYS)), None, self.name("c")))
                return
            content = Tensor(t, self.choice(SHAPES)) if self.chance(0.3) else t
            initial = self.of_shape(shape_of(content), 2) if self.chance(0.8) else None
            self.locals.append(self.builder.local(content, initial, self.name("c")))
            return
        cell = self.choice(mine)
        assert isinstance(cell.type, Ref)
        shape = shape_of(cell.type.content)
        if shape and (shape in ARRAYS or self.chance(0.6)):
            value = self.scalar(2)
            self.builder.set(cell, value, *[self.index(n) for n in shape])
        else:
            self.builder.set(cell, self.of_shape(shape, 2))

    def message(self) -> None:
        # Machine code prints narrow floats and truth values in another form than the interpreter does.
        value = self.integer(1) if self.chance(0.5) else self.builder.cast(self.scalar(1), f64)
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
        t = hi.type
        assert isinstance(t, Scalar)
        lo = Lit(self.random.randint(0, 3), t) if self.chance(0.25) else Lit(0, weak_int)
        index = Var(t if t.bits else i32, self.name("k"))
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
        known = self.seen(lambda v: v in self.below)
        if known is not None and self.chance(0.5):
            return known, max(self.below[known] - 1, 1)
        n = self.random.randint(0, 4)
        return Lit(n, self.choice((weak_int, weak_int, i32, i32, i64, u8, u16, u32, u64))), max(n, 1)

    def carried(self) -> tuple[tuple[Var, ...], tuple[Atom, ...]]:
        if not self.carries or self.chance(0.6):
            return (), ()
        count = self.random.randint(1, 2)
        types = [Tensor(f32, (2,)) if self.chance(0.25) else self.choice(NUMBERS) for _ in range(count)]
        initial = tuple([self.of_shape(shape_of(t), 1) for t in types])
        return tuple([Var(t, self.name("s")) for t in types]), initial

    def while_loop(self) -> None:
        """A `while` whose iterations are counted by a local, so that it ends."""
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
        chosen = self.choice(model) if model else None
        bounds = [3] * ranks if chosen is None else list(self.extents[chosen][:ranks])
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
                hi = Lit(bounds[axis], i32) if chosen is None else self.builder.extent(chosen, axis)
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
        fits = len(bounds) <= buffer.rank and all(n <= self.extents[buffer][k] for k, n in enumerate(bounds))
        if buffer in self.approximate:
            return p.add if self.chance(0.5) else "none"
        if self.chance(0.45) and fits:
            return "own"
        if self.chance(0.4):
            if buffer.dtype.kind == "f":
                if self.chance(0.5) and buffer.dtype is not f16:
                    self.approximate.add(buffer)
                    return p.add
                return "read"
            return self.choice(p.ATOMICS)
        return "read"

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


class _MeetingWriter(_KernelWriter):
    def __init__(self, seed: int, size: int, carries: bool, maths: bool) -> None:
        super().__init__(seed, size, carries, maths)
        self.in_order = self.chance(0.5)

    def program(self) -> Program:
        return super().program()._replace(in_order=self.in_order)

    def way(self, buffer: Buffer, bounds: list[int]) -> str | p.Primitive:
        # What is computed in f64 and added to an f32 is rounded twice, or once where it is an update.
        if self.in_order and buffer.dtype not in (f16, f32) and buffer not in self.approximate and self.chance(0.6):
            return "any"
        found = super().way(buffer, bounds)
        return found if not self.chance(0.3) or buffer.dtype.kind == "f" else self.choice(p.ATOMICS)

    def may(self, buffer: Buffer, *ways: str) -> bool:
        if self.touch is not None and self.touch[buffer] == "any":
            return buffer not in self.approximate
        return super().may(buffer, *ways)

    def atomic(self) -> None:
        """Half of the time an update that is written out."""
        found = [b for b, way in (self.touch or {}).items() if isinstance(way, p.Primitive) and b.dtype is not u1]
        if not found or self.chance(0.5):
            super().atomic()
            return
        buffer = self.choice(found)
        way = None if self.touch is None else self.touch[buffer]
        assert isinstance(way, p.Primitive)
        place = self.place(buffer)
        if len(place) < buffer.rank + len(buffer.element):
            return
        value: Atom = self.scalar(2)
        if buffer in self.approximate:
            value = self.builder.prim(p.minimum, self.builder.prim(p.maximum, value, Lit(-8, i64)), Lit(8, i64))
        value = self.builder.cast(value, buffer.dtype)
        old = self.builder.load(buffer, place)
        prim = p.sub if way is p.add and self.chance(0.3) else way
        # In order there are also those that only look like one.
        if self.in_order and self.chance(0.2):
            self.show(old)
        if self.in_order and self.chance(0.1):
            value = self.builder.cast(self.builder.prim(p.xor if way is p.xor else p.add, value, old), buffer.dtype)
        swapped = self.chance(0.5) and (prim is not p.sub or self.in_order)
        new = self.builder.prim(prim, *((value, old) if swapped else (old, value)))
        if self.in_order and self.chance(0.5):
            self.show(new)
        if self.in_order and self.chance(0.4) and buffer not in self.approximate:
            self.builder.store(buffer, place, value)
        self.builder.store(buffer, place, new)
