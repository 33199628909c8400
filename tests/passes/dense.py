"""Random programs dense in what control flow and memory can do to each other: few cells, few elements, much nesting.

All numbers are i32 and every operation counts: locals are set in loops and branches and read after them, elements are
stored and loaded again through indices that may or may not agree. The programs are in the TYPED form.
"""

from __future__ import annotations

import random
from typing import Any

from tinote.ir import primitives as p
from tinote.ir.build import Builder
from tinote.ir.nodes import Atom, Buffer, BufferKind, For, Function, Lit, Print, Region, Var, While
from tinote.ir.types import Tensor, i32

__all__ = ["dense"]

_OPERATIONS = (p.add, p.sub, p.mul, p.xor, p.minimum, p.maximum)
_COMPARISONS = (p.lt, p.le, p.gt, p.ge, p.eq, p.ne)
PAIR = Tensor(i32, (2,))


class _Writer:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.b = Builder()
        self.buffers = [
            Buffer("x", i32, (2,)),
            Buffer("y", i32, (4, 2)),
            Buffer("u", i32),
            Buffer("t", i32, kind=BufferKind.TEMPORARY),
        ]
        self.visible: list[Atom] = []
        self.cells: list[Var] = []
        self.pairs: list[Var] = []
        self.indices: list[tuple[Var, int]] = []
        self.depth = 0
        #: every third program does little but store and load
        self.memory = seed % 3 == 0

    def value(self) -> Atom:
        kind = self.random.random()
        if kind < 0.2:
            return Lit(self.random.randint(-2, 5), i32)
        if kind < 0.5 and self.cells:
            return self.b.get(self.random.choice(self.cells))
        if kind < 0.55 and self.pairs:
            return self.b.get(self.random.choice(self.pairs), self.component())
        return self.random.choice(self.visible)

    def component(self) -> Atom:
        return Lit(self.random.randrange(2), i32) if self.random.random() < 0.5 else self.masked(1)

    def masked(self, mask: int) -> Atom:
        """An index that is in range for sure."""
        if self.random.random() < 0.3:
            return Lit(self.random.randint(0, mask), i32)
        # Mostly one that was used before, so that elements are met again.
        used = [index for index, limit in self.indices if limit == mask]
        if used and self.random.random() < 0.7:
            return self.random.choice(used)
        base = self.value()
        if self.random.random() < 0.5:
            base = self.b.prim(p.add, base, Lit(1, i32))
        index = self.b.prim(p.and_, base, Lit(mask, i32))
        self.indices.append((index, mask))
        return index

    def index(self, buffer: Buffer) -> list[Atom]:
        return [self.masked((extent or 1) - 1) for extent in buffer.shape]

    def condition(self) -> Atom:
        return self.b.prim(self.random.choice(_COMPARISONS), self.value(), self.value())

    def region(self, *params: Var) -> Region:
        scoped: tuple[list[Any], ...] = (self.visible, self.cells, self.pairs, self.indices)
        seen = [len(group) for group in scoped]
        self.depth += 1
        self.visible += params
        with self.b.region(*params) as opened:
            self.block()
        self.depth -= 1
        for group, size in zip(scoped, seen, strict=True):
            del group[size:]
        return opened.close()

    def block(self) -> None:
        for _ in range(self.random.randint(1, 7 if self.depth < 2 else 3)):
            self.statement()

    def statement(self) -> None:
        kind = self.random.randrange(18 if self.depth < 2 else 15 if self.depth < 3 else 14)
        buffer = self.random.choice((self.buffers[0], *self.buffers))
        if self.memory and self.random.random() < 0.7:
            buffer, kind = self.buffers[0], self.random.choice((7, 7, 10, 10, 13))
        if kind < 2:
            self.visible.append(self.b.prim(self.random.choice(_OPERATIONS), self.value(), self.value()))
        elif kind < 5 and self.cells:
            self.b.set(self.random.choice(self.cells), self.value())
        elif kind == 5:
            self.cells.append(self.b.local(i32, self.value() if self.random.random() < 0.8 else None))
        elif kind == 6:
            if self.pairs and self.random.random() < 0.7:
                self.b.set(self.random.choice(self.pairs), self.value(), self.component())
            else:
                self.pairs.append(self.b.local(PAIR))
        elif kind < 10:
            self.b.store(buffer, self.index(buffer), self.value())
        elif kind < 13:
            self.visible.append(self.b.load(buffer, self.index(buffer)))
        elif kind == 13:
            old = self.b.atomic(p.add, buffer, self.index(buffer), self.value(), old=self.random.random() < 0.4)
            self.visible += [old] if old is not None else []
        elif kind < 16:
            condition = self.condition()
            then = self.region()
            self.b.if_(condition, then, self.region() if self.random.random() < 0.6 else None)
        elif kind == 16:
            lo, hi = (
                Lit(self.random.randint(0, 1), i32),
                self.random.choice((Lit(3, i32), Lit(1, i32), self.visible[0])),
            )
            body = self.region(Var(i32))
            self.b.emit(For(lo, hi, (), body, reverse=self.random.random() < 0.2))
        else:
            self.countdown()

    def countdown(self) -> None:
        counter = self.b.local(i32, Lit(self.random.randint(0, 3), i32))
        used = len(self.indices)
        with self.b.region() as test:
            positive = self.b.prim(p.gt, self.b.get(counter), Lit(0, i32))
            if self.random.random() < 0.3 and self.cells:
                self.b.set(self.random.choice(self.cells), self.value())
        del self.indices[used:]
        body = self.region()
        with self.b.region() as step:
            self.b.set(counter, self.b.prim(p.sub, self.b.get(counter), Lit(1, i32)))
        whole = Region((), (*body.body, *step.body), ())
        self.b.emit(While((), test.close(positive), whole))

    def function(self) -> Function:
        n = Var(i32, "n")
        self.visible.append(n)
        with self.b.region(n) as top:
            self.cells += [self.b.local(i32, Lit(k, i32)) for k in (1, 2)]
            for _ in range(16):
                self.statement()
            for cell in self.cells:
                self.b.emit(Print((None, "\n"), (self.b.get(cell),)))
            for pair in self.pairs:
                self.b.emit(Print((None, "\n"), (self.b.get(pair),)))
        return Function("dense", top.close(*self.visible[-3:]))


def dense(seed: int) -> Function:
    """A random program of one i32 argument, the same for the same seed."""
    return _Writer(seed).function()
