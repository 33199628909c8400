"""How the texts that the explorer shows are coloured: one table for the page and for the still picture.

A pattern has a group for each of `CLASSES`, in that order, and is written so that Python's `re` and JavaScript's
`RegExp` read it alike.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache

from tinote.ir.tokens import KEYWORDS, NUMBER
from tinote.ir.types import SCALARS

CLASSES = ("variable", "memory", "text", "key", "type", "number")

_STRING = r'"(?:[^"\\]|\\.)*"'
_STRINGS = rf"{_STRING}|'(?:[^'\\]|\\.)*'"
_TRUTH = r"\btrue\b|\bfalse\b"


def _words(words: str) -> str:
    return rf"\b(?:{'|'.join(words.split())})\b"


_SCALARS = [scalar.name for scalar in SCALARS]

_PATTERNS: dict[str, tuple[str, str, str, str, str, str]] = {
    "ir": (
        r"%[\w.]+",
        r"@[\w.]+",
        _STRING,
        _words(" ".join(sorted(KEYWORDS))),
        _words(" ".join(("ref", *[rf"{name}(?:x\d+)?" for name in _SCALARS]))),
        rf"(?:\B-|\b)(?:{NUMBER.removeprefix('-?')})_?(?:{'|'.join(_SCALARS)})?\b|{_TRUTH}",
    ),
    "llvm": (
        r"%[\w.$-]+",
        r"@[\w.$-]+",
        rf"{_STRING}|;.*$",
        _words(
            "define declare ret br switch phi call tail load store alloca getelementptr inbounds select [a-z]*cmp "
            "f?add f?sub f?mul [sfu]div [sfu]rem fneg shl [al]shr and or xor [sz]ext trunc fp\\w+ [su]itofp bitcast "
            "atomicrmw insertelement extractelement shufflevector to label"
        ),
        _words(r"i\d+ float double half ptr void"),
        rf"-?\b(?:0x[0-9A-F]+|\d[\d.]*(?:e[+-]?\d+)?)\b|{_TRUTH}",
    ),
    "assembly": (
        r"%\w+",
        r"[\w.]+(?=@PLT)|\.L\w+",
        r"#.*$",
        r"^\s+[a-z]\w*",
        r"\b[xyz]mmword\b",
        r"\$?-?\b(?:0x[0-9a-f]+|\d+)\b",
    ),
    "source": (
        _words("self ti"),
        r"@[\w.]+",
        rf'"""[\s\S]*?"""|{_STRINGS}|#.*$',
        _words(
            "def for while if elif else in return break continue pass and or not is with assert lambda True False None"
        ),
        _words("range print min max abs int float bool") + r"(?=\()",
        r"\b\d[\d_.]*(?:e[+-]?\d+)?\b",
    ),
    "wgsl": (
        r"\b(?:[acknrsv]|at|sum)\d+(?:_at|_top)?\b",
        r"\b(?:arena|shared_arena|block|params|scratch)\b",
        r"//.*$",
        _words("alias break const continue else fn for if let loop return struct var while") + r"|@\w+",
        _words(
            r"array atomic bool [iu]32 f(?:32|64) vec\d Wide function private read read_write storage uniform workgroup"
        ),
        rf"\b(?:0x[0-9a-f]+|\d[\d.]*(?:e[+-]?\d+)?)(?:lf|[fiu])?\b|{_TRUTH}",
    ),
    "python": (
        r"\b\w+: ",
        r"@[\w.]+",
        _STRINGS,
        r"\b[A-Z][A-Za-z]+(?=  |$)",
        r"\b[A-Z][a-z]\w+\b(?= )",
        r"\b\d[\d.]*\b",
    ),
}

PATTERNS = {kind: "|".join(f"({part})" for part in parts) for kind, parts in _PATTERNS.items()}


@cache
def _compiled(kind: str) -> re.Pattern[str]:
    return re.compile(PATTERNS[kind])


def coloured(text: str, kind: str) -> Iterator[tuple[str, str]]:
    """The parts of a line of `kind`, in order, each with its class, "" for what has none."""
    at = 0
    for match in _compiled(kind).finditer(text):
        if match.start() > at:
            yield text[at : match.start()], ""
        yield match[0], CLASSES[(match.lastindex or 1) - 1]
        at = match.end()
    if at < len(text):
        yield text[at:], ""


def syntax_script() -> str:
    """The table as a line of JavaScript."""
    return f"const SYNTAX = {json.dumps({'classes': CLASSES, 'patterns': PATTERNS})};"
