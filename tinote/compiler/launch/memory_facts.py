"""Facts about memory for launches of requests that add effects to those of the kernel itself.

It outlives the process, as `metadata.py` does, and stands apart: a process that finds a kernel on disk and takes no
derivative of it does without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tinote.compiler.launch.metadata import ExecutableMetadata
from tinote.errors import DifferentiationError, Note
from tinote.ir.buffers import Buffer
from tinote.ir.checked_accesses import CheckedAccesses
from tinote.ir.launch_values import SymbolicRegions, SymbolicShapes
from tinote.source import Span


class LocatedBuffer(NamedTuple):
    """Memory, and where in the source something becomes of it."""

    buffer: Buffer
    span: Span


class BrokenPath(NamedTuple):
    """A value that is differentiated is stored at `span` into memory without a gradient. Where the same kernel needs
    it, `needed` says for what (None: for what it returns), at the place `at`.
    """

    buffer: Buffer
    span: Span
    at: Span | None = None
    needed: Buffer | None = None


class OverwrittenInput(NamedTuple):
    """The gradient needs what was `read` here, and the kernel has overwritten it afterwards."""

    buffer: Buffer
    read: Span
    written: Span


class GradientFacts(NamedTuple):
    """What the launch of a gradient asks of memory.

    `live_in`: what it reads of the primal's memory. `live_in_before`: what must be as it was before the primal launch
    when the gradient begins; `overwritten` says why, where what is there now would not do. `old_values`: the buffers
    whose old values the primal launch must have saved (`Facts.saved`), and where it returned them. `copied`: the arrays
    of which a launch needs memory for a copy, after its arrays and old values. `regions`: the same by elements, and
    what the primal writes. `in_order`: the gradient is that of one order of the primal's iterations, in which a launch
    under a tape runs them.
    """

    live_in: frozenset[Buffer]
    live_in_before: frozenset[Buffer]
    overwritten: tuple[OverwrittenInput, ...]
    old_values: tuple[LocatedBuffer, ...]
    copied: tuple[Buffer, ...]
    regions: SymbolicRegions
    in_order: bool = False

    def refuse_lost(self) -> None:
        """Raise `DifferentiationError` where the gradient, outside of a tape, needs values that the launch has lost."""
        for buffer, span in self.old_values:
            raise DifferentiationError(
                f"the gradient needs the old values of '{buffer.name}' that the launch returned here",
                span,
                hint="launch the kernel in a tape: it keeps them",
            )
        for buffer, read, written in self.overwritten:
            raise DifferentiationError(
                f"the gradient needs the value of '{buffer.name}' that is read here, "
                "but the kernel has overwritten it since",
                read,
                hint="launch the kernel in a tape: it keeps what is overwritten",
                notes=[Note("overwritten here", written)],
            )

    def with_memory(self, actual: Callable[[Buffer], Buffer]) -> GradientFacts:
        """The same of the memory that a launch binds to the code's buffers; `regions` stay as they are."""
        return GradientFacts(
            frozenset(map(actual, self.live_in)),
            frozenset(map(actual, self.live_in_before)),
            tuple([one._replace(buffer=actual(one.buffer)) for one in self.overwritten]),
            tuple([one._replace(buffer=actual(one.buffer)) for one in self.old_values]),
            tuple(map(actual, self.copied)),
            self.regions,
            self.in_order,
        )


class Facts(NamedTuple):
    """What is known of the result of a request, besides its code.

    `arrays`: the buffers that a launch's values begin with: the kernel's own array arguments, and after them whatever
    the request adds. `gradient`: of a request that reverses. `saved`: the old values that a recording launch leaves
    in arrays of these shapes. `checks`: what a launch that checks the access rules leaves in its shadows.
    `broken_paths`: where a value that is differentiated is stored into memory without a gradient (without a dual, in
    forward mode). `filled`: which elements of the gradients that the request says are `zeroed` are stored to in every
    run, before anything is read of them: all of that, and nothing else, as `written`.
    """

    arrays: tuple[Buffer, ...]
    gradient: GradientFacts | None = None
    saved: SymbolicShapes | None = None
    checks: CheckedAccesses | None = None
    broken_paths: tuple[BrokenPath, ...] = ()
    filled: SymbolicRegions | None = None


class RequestEntry(NamedTuple):
    """What is kept on disk of a request that is not the primal."""

    metadata: ExecutableMetadata
    facts: Facts
