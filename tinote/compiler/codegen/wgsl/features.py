"""Features of an adapter, and located errors for unsupported operations."""

from __future__ import annotations

from typing import NamedTuple

from tinote.errors import KernelTargetError
from tinote.source import NOWHERE, Span


class Features(NamedTuple):
    """Features of an adapter beyond the guaranteed minimum of WebGPU. `indexed`: greatest number of values of an array
    among an invocation's own variables; larger ones are in scratch memory. (Mesa's driver for CPUs scalarises such
    arrays and takes minutes to compile one with some hundred values.) `float_atomics`: it adds to floats in memory.
    `nested`: greatest nesting depth of branches and loops. (Beyond it, the same driver executes both sides.)
    """

    f64: bool = False
    indexed: int = 256
    float_atomics: bool = False
    nested: int = 1000


class Unsupported(Exception):
    """Raised for an operation that WGSL cannot express. The message names it."""


def refusal(what: str, loc: Span = NOWHERE, hint: str = "") -> KernelTargetError:
    """The located error for an operation that this target cannot run."""
    return KernelTargetError(
        f"{what} cannot run on the GPU", loc, hint=hint or "run this kernel with ti.init(arch=ti.cpu)"
    )
