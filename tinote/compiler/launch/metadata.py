"""Metadata of machine code for launches and for callers of a kernel.

All of it is plain enough to outlive the process: `cache/codec.py` writes what the annotations say. They are types here,
not text, because a process that finds machine code on disk needs them at once.
"""

from typing import NamedTuple

from tinote.compiler.launch.access_summary import AccessSummary, TaskSummary
from tinote.compiler.signature import Warned
from tinote.ir.buffers import Buffer
from tinote.ir.types import Scalar, Tensor
from tinote.runtime.profile import Clock
from tinote.runtime.sites import Site


class ExecutableMetadata(NamedTuple):
    """Where arguments, addresses and results go in machine code, what its sites mean, what its tasks do to memory.

    `code` identifies the machine code. Offsets are bytes in the launch block; `parameters` are the scalar arguments in
    the order of their slots.
    """

    code: str
    slots: int
    scratch_bytes: int
    parameters: tuple[Scalar, ...]
    pointers: tuple[tuple[Buffer, int], ...]
    extents: tuple[tuple[Buffer, int, int], ...]
    results: tuple[tuple[int, Scalar], ...]
    sites: tuple[Site, ...]
    tasks: tuple[TaskSummary, ...]
    clocks: tuple[Clock, ...] = ()


class Signature(NamedTuple):
    """What a caller needs to know of a kernel: what it gives back, whether the last argument is the launch seed, what
    it does to memory, and what compiling it warned of.
    """

    returns: tuple[Scalar | Tensor, ...] | None
    returns_tuple: bool
    uses_random: bool
    accesses: AccessSummary
    warnings: tuple[Warned, ...]


class PrimalEntry(NamedTuple):
    """What is kept on disk of the primal. The machine code lies apart, since kernels share it."""

    metadata: ExecutableMetadata
    signature: Signature
