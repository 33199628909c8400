"""Debug metadata: the source location of each instruction in the user's file or cell.

The locations always serve LLVM's remarks and the explorer; they become line tables in the object only when asked for.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tinote.compiler.codegen.llvm.text import Metadata
from tinote.source import Span

#: The number of the first line of debug information: far above those of other metadata.
_FIRST_METADATA = 1_000_000


def _quoted(text: str) -> str:
    """A metadata string: quotes, backslashes and non-printable or non-ASCII characters are escaped byte by byte."""
    return (
        '"'
        + re.sub(rb'[^ -~]|["\\]', lambda m: b"\\%02X" % m[0][0], text.encode("utf-8", "surrogatepass")).decode()
        + '"'
    )


class DebugScope(NamedTuple):
    """A function under construction: the file of its `def` line and the number of its scope."""

    file: str
    number: int


class DebugInfo:
    """Makes and numbers the locations of a module. One scope per function; inlined code has one of its own."""

    __slots__ = ("_files", "_inlined", "_known", "_metadata", "unit")

    def __init__(self, main_file: str, line_tables: bool) -> None:
        # Far from the other nodes, whose numbers must be the same with and without locations.
        metadata = self._metadata = Metadata(_FIRST_METADATA)
        self._files: dict[str, int] = {}
        self._inlined: dict[str, int] = {}
        self._known: dict[tuple[Span, int], int] = {}
        kind = "LineTablesOnly" if line_tables else "NoDebug"
        self.unit = metadata.distinct(
            f'!DICompileUnit(language: DW_LANG_C, file: !{self._file(main_file)}, producer: "tinote", '
            f"isOptimized: true, runtimeVersion: 0, emissionKind: {kind})"
        )

    def lines(self) -> list[str]:
        """The nodes, and the module flags."""
        flag = self._metadata.add('!{i32 2, !"Debug Info Version", i32 3}')
        return [f"!llvm.module.flags = !{{!{flag}}}", f"!llvm.dbg.cu = !{{!{self.unit}}}", *self._metadata.lines()]

    def _file(self, name: str) -> int:
        found = self._files.get(name)
        if found is None:
            node = f'!DIFile(filename: {_quoted(name)}, directory: "")'
            found = self._files[name] = self._metadata.add(node)
        return found

    def _subprogram(self, name: str, file: str, line: int) -> int:
        kind = self._metadata.add("!DISubroutineType(types: !{})")
        at = self._file(file)
        return self._metadata.distinct(
            f"!DISubprogram(name: {_quoted(name)}, scope: !{at}, file: !{at}, line: {line}, type: !{kind}, "
            f"scopeLine: {line}, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !{self.unit})"
        )

    def function(self, name: str, span: Span) -> DebugScope:
        """A new function."""
        return DebugScope(span.file, self._subprogram(name, span.file, max(span.line, 0)))

    def location(self, span: Span, scope: DebugScope) -> int:
        """The number of the location of `span` in a function; a location at line 0 if there is no position in the
        source.
        """
        key = (span, scope.number)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._make(span, scope)
        return found

    def _make(self, span: Span, scope: DebugScope) -> int:
        metadata, number = self._metadata, scope.number
        if span.line <= 0:
            return metadata.add(f"!DILocation(line: 0, scope: !{number})")
        at = f"!DILocation(line: {span.line}, column: {min(max(span.column, 0) + 1, 65535)}, scope: "
        if span.inlined_at is not None:
            outer = self.location(span.inlined_at, scope)
            inner = self._inlined.get(span.file)
            if inner is None:
                inner = self._inlined[span.file] = self._subprogram("inlined", span.file, 0)
            return metadata.add(f"{at}!{inner}, inlinedAt: !{outer})")
        if span.file != scope.file:
            file = self._file(span.file)
            number = metadata.add(f"!DILexicalBlockFile(scope: !{number}, file: !{file}, discriminator: 0)")
        return metadata.add(f"{at}!{number})")
