"""Alias information, as LLVM's scoped alias metadata."""

from __future__ import annotations

from collections.abc import Sequence

from tinote.compiler.codegen.llvm.text import Metadata
from tinote.ir.lanes import LoadTile
from tinote.ir.nodes import Buffer, BufferKind, NewStack, Op

#: Scopes of one domain. An access lists all but one of them, so a module with a single domain would grow with the
#: square of the number of its fields. Chosen, not measured.
_SCOPES_PER_DOMAIN = 32


class Aliasing:
    """The alias metadata of a module.

    No field, temporary, private copy, stack, tile or `noalias` array overlaps another one. They are numbered; every
    place of a number, to the base `_SCOPES_PER_DOMAIN`, is a domain, and each digit there a scope, which excludes the
    others. Two numbers differ in one place at least. Other arrays may overlap only each other and fields.
    """

    __slots__ = ("_digits", "_metadata", "_numbers", "_of_arrays", "_texts", "_unreachable")

    def __init__(self, metadata: Metadata, buffers: Sequence[Buffer], stacks: Sequence[NewStack | LoadTile]) -> None:
        self._metadata = metadata
        things = [*[b for b in buffers if not _is_aliased(b)], *stacks]
        self._numbers: dict[Buffer | Op, int] = {thing: number for number, thing in enumerate(things)}
        #: The scopes of each place of a number.
        self._digits: list[list[int]] = []
        greatest = len(things) - 1
        while greatest > 0 or (things and not self._digits):
            self._digits.append(self._scopes(min(greatest + 1, _SCOPES_PER_DOMAIN)))
            greatest //= _SCOPES_PER_DOMAIN
        #: The scope of memory that no array overlaps, if some arrays may overlap others.
        arrays = any(map(_is_aliased, buffers))
        unreachable = any(_is_unreachable(thing) for thing in things)
        self._unreachable = self._scopes(1) if arrays and unreachable else []
        self._of_arrays = f", !noalias !{self._list(self._unreachable)}" if self._unreachable else ""
        self._texts: dict[Buffer | Op, str] = {}

    def _scopes(self, count: int) -> list[int]:
        domain = self._metadata.distinct("!{{self}}")
        return [self._metadata.distinct(f"!{{{{self}}, !{domain}}}") for _ in range(count)]

    def _list(self, scopes: Sequence[int]) -> int:
        return self._metadata.add("!{" + ", ".join([f"!{scope}" for scope in scopes]) + "}")

    def of(self, thing: Buffer | Op) -> str:
        """The metadata of an access to a buffer, or to a stack or tile, which is named by the operation that creates
        it.
        """
        if isinstance(thing, Buffer) and _is_aliased(thing):
            return self._of_arrays
        found = self._texts.get(thing)
        if found is None:
            found = self._texts[thing] = self._text(thing)
        return found

    def _text(self, thing: Buffer | Op) -> str:
        mine = list(self._unreachable) if _is_unreachable(thing) else []
        others: list[int] = []
        left = self._numbers[thing]
        for scopes in self._digits:
            left, digit = divmod(left, _SCOPES_PER_DOMAIN)
            mine.append(scopes[digit])
            others += [scope for scope in scopes if scope != scopes[digit]]
        found = f", !alias.scope !{self._list(mine)}"
        return found + f", !noalias !{self._list(others)}" if others else found


def _is_aliased(buffer: Buffer) -> bool:
    """Whether a buffer may overlap other arrays and fields."""
    return buffer.kind is BufferKind.ARRAY and not buffer.noalias


def _is_unreachable(thing: Buffer | Op) -> bool:
    """Whether no array overlaps a buffer."""
    return not isinstance(thing, Buffer) or thing.kind is not BufferKind.FIELD
