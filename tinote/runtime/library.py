"""Library functions for machine code, compiled once for all kernels: `jit.py` compiles what a kernel asks for by
name, keeps it in the process and on disk.

A kernel's text declares such a function; what defines it stands here under its name, from when the first text that
calls it is written. A kernel that is found on disk names its functions, too, and they are there next to it.
"""

from __future__ import annotations

import re

#: What their names begin with, so that an object file tells which ones it calls.
PREFIX = "tn_library."
_texts: dict[str, str] = {}


def define(name: str, text: str) -> None:
    """Say which LLVM text defines a function: a module of its own, in which that is the only symbol others see."""
    assert name.startswith(PREFIX)
    _texts[name] = text


def text_of(name: str) -> str | None:
    """The text that defines a function, if any that calls it was written in this process."""
    return _texts.get(name)


def called_in(image: bytes) -> list[str]:
    """The functions that an object file calls."""
    prefix = PREFIX.encode()
    if prefix not in image:  # as a rule; expressions take long to compile
        return []
    return sorted({found.decode() for found in re.findall(re.escape(prefix) + rb"[\w.]+", image)})
