"""What an adapter can do, and the refusal of what this target cannot run."""

from __future__ import annotations

from typing import NamedTuple

from tinote.errors import KernelTargetError
from tinote.source import NOWHERE, Span


class Features(NamedTuple):
    """What an adapter has beyond the least that WebGPU promises. `indexed`: how many values an array among an
    invocation's own variables has at most; larger ones are in scratch memory. (Mesa's driver for CPUs, which takes such
    arrays apart, compiles one of some hundred values for minutes.) `float_atomics`: it adds to floats in memory.
    `nested`: how many branches and loops may stand in each other. (The same driver takes both sides of those beyond.)
    """

    f64: bool = False
    indexed: int = 256
    float_atomics: bool = False
    nested: int = 1000


class Unsupported(Exception):
    """Something that WGSL cannot say. The message names it."""


def refusal(what: str, loc: Span = NOWHERE, hint: str = "") -> KernelTargetError:
    """The located error for an operation that this target cannot run."""
    return KernelTargetError(
        f"{what} cannot run on the GPU", loc, hint=hint or "run this kernel with ti.init(arch=ti.cpu)"
    )
