"""Colours of the texts that the explorer shows, for the still picture, and the records of these texts for the page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache

from tinote.compiler.inspect.kinds import KINDS, StageKind, Words

CLASSES = Words._fields


@cache
def _compiled(kind: StageKind) -> re.Pattern[str]:
    return re.compile(kind.words.pattern)


def coloured(text: str, kind: StageKind) -> Iterator[tuple[str, str]]:
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
    """The classes of words and the kinds of text as lines of JavaScript."""
    kinds = {kind.name: {**asdict(kind), "words": kind.words.pattern} for kind in KINDS}
    return f"const WORD_CLASSES = {json.dumps(CLASSES)};\nconst TEXT_KINDS = {json.dumps(kinds)};"
