"""Debug metadata: where in the user's file or cell an instruction comes from.

The locations always serve LLVM's remarks and the explorer; they become line tables in the object only when asked for.
"""

from __future__ import annotations

import re

from tinote.compiler.codegen.llvm_text import Metadata
from tinote.source import NOWHERE, Span

__all__ = ["DebugInfo"]


def _quoted(text: str) -> str:
    """A metadata string: quotes, backslashes and what is not printable ASCII are escaped byte by byte."""
    return '"' + re.sub(rb'[^ -~]|["\\]', lambda m: b"\\%02X" % m[0], text.encode("utf-8", "surrogatepass")).decode() + '"'


class DebugInfo:
    """Makes and numbers the locations of a module. One scope a function and file; inlined code has a scope of its own, inlined at its call."""

    __slots__ = ("_files", "_known", "_metadata", "_scope", "_scopes", "_unit")

    def __init__(self, metadata: Metadata, main_file: str, line_tables: bool) -> None:
        self._metadata = metadata
        self._files: dict[str, int] = {}
        # By function, file: the scope of its instructions.
        self._scopes: dict[tuple[str, str, bool], int] = {}
        self._known: dict[tuple[Span, int], int] = {}
        kind = "LineTablesOnly" if line_tables else "NoDebug"
        # Number 0 stands for "no location" in the lines of a function.
        metadata.add("!{}")
        self._unit = metadata.distinct(
            f'!DICompileUnit(language: DW_LANG_C, file: !{self._file(main_file)}, producer: "tinote", isOptimized: true, runtimeVersion: 0, emissionKind: {kind})'
        )
        self._scope = ("", 0)

    def _file(self, name: str) -> int:
        found = self._files.get(name)
        if found is None:
            found = self._files[name] = self._metadata.add(f'!DIFile(filename: {_quoted(name)}, directory: "")')
        return found

    def _subprogram(self, name: str, file: str, line: int, inlined: bool) -> int:
        key = (name, file, inlined)
        found = self._scopes.get(key)
        if found is None:
            kind = self._metadata.add("!DISubroutineType(types: !{})")
            at = self._file(file)
            found = self._scopes[key] = self._metadata.distinct(
                f"!DISubprogram(name: {_quoted(name)}, scope: !{at}, file: !{at}, line: {line}, type: !{kind}, scopeLine: {line}, "
                f"spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !{self._unit})"
            )
        return found

    def enter(self, name: str, span: Span) -> int:
        """Start a function; returns the number of its subprogram."""
        scope = self._subprogram(name, span.file, max(span.line, 0), False)
        self._scope = (span.file, scope)
        return scope

    def location(self, span: Span) -> int:
        """The number of the location of `span` in the function under way; a line 0 location for what has no place."""
        file, scope = self._scope
        key = (span, scope)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._make(span, file, scope)
        return found

    def _make(self, span: Span, file: str, scope: int) -> int:
        if span.line <= 0 or span is NOWHERE:
            return self._metadata.add(f"!DILocation(line: 0, scope: !{scope})")
        column = min(max(span.column, 0) + 1, 65535)
        if span.inlined_at is not None:
            outer = self.location(span.inlined_at)
            inner = self._subprogram("inlined", span.file, 0, True)
            return self._metadata.add(f"!DILocation(line: {span.line}, column: {column}, scope: !{inner}, inlinedAt: !{outer})")
        if span.file != file:
            scope = self._metadata.add(f"!DILexicalBlockFile(scope: !{scope}, file: !{self._file(span.file)}, discriminator: 0)")
        return self._metadata.add(f"!DILocation(line: {span.line}, column: {column}, scope: !{scope})")
