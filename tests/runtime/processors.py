"""Processors that tests compile for in place of this one."""

from __future__ import annotations

from tinote.errors import MachineError
from tinote.runtime import jit

LEVELS = {128: "x86-64-v2", 256: "x86-64-v3", 512: "x86-64-v4"}


def reached() -> list[str]:
    """The levels of processors that this one reaches, the lowest first."""
    found: list[str] = []
    for name in ("x86-64", *LEVELS.values()):
        try:
            jit.host_like(name)
        except MachineError:
            break
        found.append(name)
    return found


def machine_with(bits: int) -> jit.Host:
    """A machine with vectors of `bits` bits: this one as such a processor, or else this one, whose code splits or
    joins vectors.
    """
    name = LEVELS[bits]
    return jit.host_like(name) if name in reached() else jit.host()._replace(vector_bits=bits)
