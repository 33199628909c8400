"""What all writers of random programs share."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from tinote.ir.build import Builder
from tinote.ir.memory import DictMemory
from tinote.ir.nodes import (
    Atom,
    Buffer,
    Function,
    Region,
    Var,
)
from tinote.ir.text import show

__all__ = ["Program", "Writer", "smallest"]

T = TypeVar("T")


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
    #: whether the iterations of parallel loops may read what others change: compared on one thread
    in_order: bool = False

    def memory(self) -> DictMemory:
        """The buffers as they are before the kernel runs."""
        return DictMemory(self.contents)

    def __str__(self) -> str:
        return f"# seed {self.seed}, size {self.size}, arguments {self.arguments}\n{show(self.function)}"


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
