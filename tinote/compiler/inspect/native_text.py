"""LLVM IR and assembly for human readers: source locations of lines, without parts that only tools need.

    %3 = fmul float %a, %b, !dbg !12       ->    %3 = fmul float %a, %b           line 7, column 9
            .loc    1 7 8 is_stmt 0
            vmulss  %xmm1, %xmm0, %xmm0    ->    vmulss  %xmm1, %xmm0, %xmm0      line 7, column 8

Nothing here runs LLVM or depends on the origin of the text. Spans have no end: LLVM keeps only the start of an
expression.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import numpy as np

from tinote.source import NOWHERE, Span

Located = tuple[str, Span]
"""A line of text and the source it comes from."""

# LLVM IR

_NODE = re.compile(r"^!(\d+) = (?:distinct )?!(\w+)\((.*)\)\s*$")
_FIELD = re.compile(r'(\w+): (?:"((?:[^"\\]|\\.)*)"|!(\d+)|([^,]+))')
_DEBUG = re.compile(r",? !dbg !(\d+)")
_ATTACHED = re.compile(r",? ![\w.]+ !\d+")
_PADDING = re.compile(r" {3,};")
_FOLDED = ("!", "attributes #", "source_filename", "target ", "; ModuleID", "; Function Attrs")


def llvm_lines(text: str) -> list[Located]:
    """The functions of a module, each line with its `!dbg` location; metadata, attributes and the module's header are
    left out.
    """
    nodes = _Nodes(text)
    found: list[Located] = []
    for line in text.splitlines():
        if line.startswith(_FOLDED) or not (line.strip() or (found and found[-1][0])):
            continue
        place = _DEBUG.search(line)
        plain = _PADDING.sub("  ;", _ATTACHED.sub("", line)).rstrip()
        found.append((plain, nodes.span(int(place[1])) if place else NOWHERE))
    while found and not found[-1][0]:
        found.pop()
    return found


class _Nodes:
    """The debug metadata of a module."""

    def __init__(self, text: str) -> None:
        self._nodes: dict[int, tuple[str, dict[str, str]]] = {}
        for line in text.splitlines():
            node = _NODE.match(line) if line.startswith("!") else None
            if node:
                fields = {m[1]: m[2] if m[2] is not None else m[3] or m[4] for m in _FIELD.finditer(node[3])}
                self._nodes[int(node[1])] = (node[2], fields)
        self._spans: dict[int, Span] = {}

    def span(self, number: int) -> Span:
        """The source span of a location or a function; `NOWHERE` for code that LLVM merged or generated."""
        found = self._spans.get(number)
        if found is None:
            found = self._spans[number] = self._span(number)
        return found

    def _span(self, number: int) -> Span:
        _, fields = self._nodes.get(number, ("", {}))
        outer = self.span(int(fields["inlinedAt"])) if "inlinedAt" in fields else None
        line = int(fields.get("line", 0))
        if line <= 0:
            return outer or NOWHERE
        column = max(int(fields.get("column", 0)) - 1, 0)
        return Span(self._file(number), line, column, inlined_at=outer)

    def _file(self, number: int) -> str:
        """The file of a node: its own, or that of the scope around it."""
        for _ in range(64):
            kind, fields = self._nodes.get(number, ("", {}))
            if kind == "DIFile":
                return _joined(_unescape(fields.get("directory", "")), _unescape(fields.get("filename", "")))
            reference = fields.get("file") or fields.get("scope")
            if reference is None:
                break
            number = int(reference)
        return ""


def _unescape(text: str) -> str:
    """LLVM writes other bytes than printable ASCII as two hexadecimal digits."""
    raw = re.sub(rb"\\([0-9A-Fa-f]{2})", lambda m: bytes([int(m[1], 16)]), text.encode())
    return raw.decode(errors="replace")


def _joined(directory: str, name: str) -> str:
    return os.path.join(directory, name) if directory else name


# assembly

_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"((?:[^"\\]|\\.)*)"(?:\s+"((?:[^"\\]|\\.)*)")?')
_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)(?:\s+(\d+))?")
_LABEL = re.compile(r"^([\w.$@]+):")
_SECTION = re.compile(r"^\s*\.(?:section\s+(\S+)|(text|data|bss))")
_DATA = re.compile(r"^\s*\.(?:byte|short|value|long|quad|zero|ascii|asciz|2byte|4byte|8byte|xword|word|hword)\b")
_FLOAT = re.compile(r"^\s*\.(?:(long|quad))\s+0x([0-9a-f]+)\b")
_NAME = re.compile(r"[\w.$@]+")


def assembly_lines(text: str) -> list[Located]:
    """The instructions of an assembly text, each with the location of the `.loc` before it, the labels that it
    refers to, and the constants under them.
    """
    lines = list(_code(text))
    used: set[str] = set()
    for line in lines:
        if not _LABEL.match(line) and not line.lstrip().startswith("."):
            used.update(_NAME.findall(line.partition("#")[0]))
    exported = set(re.findall(r"^\s*\.type\s+([\w.$@]+)", text, re.MULTILINE))
    files: dict[int, str] = {}
    span = NOWHERE
    kept_label = False
    found: list[Located] = []
    for line in lines:
        label = _LABEL.match(line)
        file = _FILE.match(line)
        place = _LOC.match(line)
        if label:
            kept_label = label[1] in used or label[1] in exported
            if label[1] in exported:
                span = NOWHERE
                if found:
                    found.append(("", NOWHERE))
            if kept_label:
                found.append((line.partition("#")[0].rstrip(), NOWHERE))
        elif file:
            files[int(file[1])] = _joined(_octal(file[2]), _octal(file[3])) if file[3] is not None else _octal(file[2])
        elif place:
            row, column = int(place[2]), int(place[3] or 0)
            span = Span(files.get(int(place[1]), ""), row, max(column - 1, 0)) if row else NOWHERE
        elif line.lstrip().startswith("."):
            if kept_label and _DATA.match(line):
                found.append((_tidy(line) + _decoded(line), NOWHERE))
        elif line.strip():
            kept_label = False
            found.append((_tidy(line), span))
    return found


def _code(text: str) -> Iterator[str]:
    """The lines outside of the debug sections and without comment lines."""
    debug = False
    for line in text.splitlines():
        section = _SECTION.match(line)
        if section:
            debug = (section[1] or "").startswith((".debug", ".note", ".eh_frame"))
        stripped = line.strip()
        if not debug and stripped and not stripped.startswith("#"):
            yield line


def _tidy(line: str) -> str:
    """An instruction with its operands in a column, without LLVM's remarks."""
    head, _, rest = line.partition("#")[0].strip().partition("\t")
    return f"    {head:<11} {rest.strip()}".rstrip() if rest else f"    {head}"


def _decoded(line: str) -> str:
    """The number with a point that a constant is, as a comment: LLVM writes only these in hexadecimal digits."""
    found = _FLOAT.match(line)
    if not found:
        return ""
    value = np.uint32(int(found[2], 16)).view("f4") if found[1] == "long" else np.uint64(int(found[2], 16)).view("f8")
    return f"    # {value!s}"


def _octal(text: str) -> str:
    """The assembler's string escapes: octal bytes, and a backslash before a quote or a backslash."""
    raw = re.sub(rb"\\([0-7]{3}|.)", lambda m: bytes([int(m[1], 8)]) if len(m[1]) == 3 else m[1], text.encode())
    return raw.decode(errors="replace")
