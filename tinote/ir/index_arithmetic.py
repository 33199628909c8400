"""Indices of elements as users count them, from where elements lie.

x: a field that begins at -4          place 1           ->  index -3
x: a sparse field, 8 by 8 cells       place [2, 9]      ->  index [17, 1]
"""

from __future__ import annotations

from collections.abc import Sequence

from tinote.ir import primitives as p
from tinote.ir.buffers import Buffer, family_of
from tinote.ir.build import Builder
from tinote.ir.nodes import Atom, Lit
from tinote.ir.sparsity import Sparsity
from tinote.ir.types import Scalar, i32


class IndexArithmetic:
    """Divisions of indices, which are not negative."""

    def __init__(self, b: Builder) -> None:
        self.b = b

    def divide(self, a: Atom, n: int) -> Atom:
        if isinstance(a, Lit):
            return Lit(int(a.value) // n, i32)
        if n & (n - 1) == 0:
            return self.b.prim(p.shr, a, Lit(n.bit_length() - 1, i32))
        return self.b.prim(p.floordiv, a, Lit(n, i32))

    def remainder(self, a: Atom, n: int) -> Atom:
        if isinstance(a, Lit):
            return Lit(int(a.value) % n, i32)
        return self.b.prim(p.and_, a, Lit(n - 1, i32)) if n & (n - 1) == 0 else self.b.prim(p.mod, a, Lit(n, i32))

    def join(self, a: Atom, n: int, b: Atom) -> Atom:
        if isinstance(a, Lit) and isinstance(b, Lit):
            return Lit(int(a.value) * n + int(b.value), i32)
        return self.b.prim(p.add, self.b.prim(p.mul, a, Lit(n, i32)), b)


def index_of_user(b: Builder, buffer: Buffer, places: Sequence[Atom]) -> tuple[Atom, ...]:
    """The index of the element of a field at these places."""
    sparsity = family_of(buffer).sparsity
    return _counted(b, places, buffer.offset) if sparsity is None else sparse_index(b, sparsity, places)


def sparse_index(b: Builder, sparsity: Sparsity, places: Sequence[Atom]) -> tuple[Atom, ...]:
    """The same of a sparse field or level."""
    arithmetic = IndexArithmetic(b)
    return index_of_digits(b, sparsity, sparsity.digits_at(places, arithmetic.divide, arithmetic.remainder))


def index_of_digits(b: Builder, sparsity: Sparsity, digits: Sequence[Sequence[Atom | None]]) -> tuple[Atom, ...]:
    """The same by the digits of each dimension."""
    return _counted(b, sparsity.counted(digits, IndexArithmetic(b).join, Lit(0, i32)), sparsity.offset)


def _counted(b: Builder, index: Sequence[Atom], offset: Sequence[int]) -> tuple[Atom, ...]:
    starts = offset or (0,) * len(index)
    return tuple([_moved(b, i, start) if start else i for i, start in zip(index, starts, strict=True)])


def _moved(b: Builder, i: Atom, start: int) -> Atom:
    assert isinstance(i.type, Scalar)
    return b.prim(p.add, i, Lit(start, i.type))
