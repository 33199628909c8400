"""What may alias, as LLVM's scoped alias metadata."""

from __future__ import annotations

from tinote.compiler.codegen.llvm.text import Metadata
from tinote.ir.nodes import Buffer, BufferKind, Op

__all__ = ["Aliasing"]


class Aliasing:
    """The alias metadata of a module.

    Every field, temporary and private copy is a scope that no other one overlaps. All arrays share a scope: they may
    overlap each other and fields.
    """

    __slots__ = ("_domain", "_metadata", "_scopes", "_texts")

    def __init__(self, metadata: Metadata, buffers: tuple[Buffer, ...]) -> None:
        self._metadata = metadata
        self._domain = metadata.distinct("!{{self}}")
        self._scopes: dict[Buffer | Op | None, int] = {}
        for buffer in buffers:
            key = None if buffer.kind is BufferKind.ARRAY else buffer
            if key not in self._scopes:
                self._scopes[key] = self._scope()
        self._texts: dict[Buffer | Op, str] = {}

    def _scope(self) -> int:
        return self._metadata.distinct(f"!{{{{self}}, !{self._domain}}}")

    def of(self, thing: Buffer | Op) -> str:
        """The metadata of an access to a buffer, or to the memory of a stack (named by the operation that makes it)."""
        found = self._texts.get(thing)
        if found is None:
            if isinstance(thing, Op):
                self._scopes[thing] = self._scope()
                mine: Buffer | Op | None = thing
            else:
                mine = None if thing.kind is BufferKind.ARRAY else thing
            overlaps: set[Buffer | Op | None] = {mine}
            if mine is None:
                overlaps |= {key for key in self._scopes if isinstance(key, Buffer) and key.kind is BufferKind.FIELD}
            elif isinstance(mine, Buffer) and mine.kind is BufferKind.FIELD:
                overlaps.add(None)
            others = [f"!{number}" for key, number in self._scopes.items() if key not in overlaps]
            found = f", !alias.scope !{self._metadata.add('!{!' + str(self._scopes[mine]) + '}')}"
            if others:
                found += f", !noalias !{self._metadata.add('!{' + ', '.join(others) + '}')}"
            self._texts[thing] = found
        return found
