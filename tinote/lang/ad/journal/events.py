"""What a journal is made of, in order: launches, stretches with a custom VJP, and what Python writes to fields.

Whoever wants to know what a program did walks over these: the reverse sweep (`sweep.py`), the search for broken
gradient paths (`broken_path.py`), the picture of a tape (`graph.py`), the checks.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tinote.compiler.launch.access_summary import TaskSummary
from tinote.compiler.launch.native import BoundArray
from tinote.errors import DifferentiationError
from tinote.ir.nodes import Buffer
from tinote.lang.ad.journal.custom_sweep import CustomSweep
from tinote.lang.ad.journal.old_values import SavingLaunch
from tinote.lang.kernels.access_region import AccessRegions
from tinote.lang.kernels.arguments import Arguments, Foreign
from tinote.lang.kernels.kernel import Instance
from tinote.runtime.memory import Memory
from tinote.source import NOWHERE, Span

__all__ = ["Custom", "Event", "Launch", "Write"]


class Launch(NamedTuple):
    """One launch: what was launched with which values, and which elements its gradient will read. `before` and `after`:
    how long the log of overwritten values was. Of external arrays, `copies` is what the gradient will read, and
    `input_copies` what the launch itself read, if it is to be run again. `old_values`: those that the launch returns
    and saves.
    """

    instance: Instance
    values: tuple[Any, ...]
    arguments: Arguments
    regions: AccessRegions
    before: int
    after: int
    copies: dict[Buffer, Memory]
    input_copies: dict[Buffer, Memory]
    old_values: SavingLaunch | None = None

    @property
    def name(self) -> str:
        """The kernel's."""
        return self.instance.kernel_name

    @property
    def place(self) -> Span:
        """Where the kernel is defined."""
        return self.instance.specialisation.source.span

    @property
    def gradient_tasks(self) -> tuple[TaskSummary, ...]:
        """What each task of its gradient reads and writes."""
        return self.arguments.gradient_tasks

    @property
    def touched(self) -> frozenset[Buffer]:
        """All that the launch read or wrote."""
        found = self.arguments.accesses
        return found.loaded | found.written

    @property
    def written(self) -> frozenset[Buffer]:
        """All that the launch wrote."""
        return self.arguments.accesses.written

    def values_back(self) -> tuple[Any, ...]:
        """The values for the gradient: it reads the copies of arrays that others manage, and may write to them. Behind
        the arrays stand the old values that it reads and memory for copies that it makes.
        """
        facts = self.arguments.gradient_facts
        if not (self.copies or self.old_values or facts.copied):
            return self.values
        further = [] if self.old_values is None else [*self.old_values.saved]
        places = dict(self.arguments.arrays)
        further += [_memory_like(places[buffer]) for buffer in facts.copied]
        return self._values(self.copies, facts.live_in_before, further)

    def values_again(self) -> tuple[Any, ...]:
        """The values for the launch itself, run again on copies of such arrays."""
        return self._values(self.input_copies, self.written, [])

    def _values(
        self, copies: dict[Buffer, Memory], changed: frozenset[Buffer], further: list[BoundArray]
    ) -> tuple[Any, ...]:
        arrays = self.arguments.arrays
        found: list[BoundArray] = []
        for buffer, bound in arrays:
            kept = copies.get(buffer)
            if kept is not None:
                fresh = kept.copy() if buffer in changed else kept
                bound = bound._replace(address=fresh.address, owner=fresh)
            found.append(bound)
        return (*found, *further, *self.values[len(arrays) :])


def _memory_like(bound: BoundArray) -> BoundArray:
    """Memory for the numbers of an array, and for their tangents if it has any."""
    values, tangents = (Memory(max(bound.nbytes, 1)) for _ in range(2))
    return BoundArray(values.address, 0, tangents.address, 0, bound.shape, bound.nbytes, True, None, (values, tangents))


@dataclass(eq=False)
class Custom:
    """A stretch of the program with a custom VJP: `gradient` runs in its place in the reverse sweep.

    `loaded`: what its launches read of values from before; `renewed`: fields that it gave new values throughout;
    `lost`: fields without a gradient in which it left varying values, with the place (None: perhaps in all that it
    wrote). `scratch`: fields that `gradient` promises to compute itself before it reads them; it finds the others as
    they were at the end of the stretch. `after`: how long the log of overwritten values was then. `gradient_tasks`:
    what the gradient is known to launch; `release` lets go of the memory that it holds. `copies`: what external arrays
    held then. `notices_stale`: what is launched and read in it is checked for elements whose values are gone, so that
    not all has to be kept.
    """

    name: str
    place: Span
    gradient: Callable[[CustomSweep], None]
    loaded: set[Buffer] = field(default_factory=set)
    written: set[Buffer] = field(default_factory=set)
    renewed: set[Buffer] = field(default_factory=set)
    lost: dict[Buffer, Span] | None = None
    scratch: frozenset[Buffer] = frozenset()
    after: int = 0
    gradient_tasks: tuple[TaskSummary, ...] = ()
    release: Callable[[], None] | None = None
    notices_stale: bool = False
    copies: dict[Buffer, Memory] = field(default_factory=dict)

    @property
    def touched(self) -> set[Buffer]:
        """All that was read or written."""
        return self.loaded | self.written

    @property
    def arrays(self) -> list[Foreign]:
        """The external arrays that its launches read, each once."""
        return list({(b.first, b.last): b for b in self.loaded if isinstance(b, Foreign)}.values())

    @contextmanager
    def arrays_again(self) -> Iterator[None]:
        """While this lasts, these arrays hold what they held then. Raises `DifferentiationError` for one that has
        changed and cannot be written to.
        """
        now: list[tuple[Foreign, bytes]] = []
        try:
            for array, kept in self.copies.items():
                assert isinstance(array, Foreign)
                bound = array.bound
                present = ctypes.string_at(bound.address, bound.nbytes)
                if present == bytes(kept.view()):
                    continue
                if not bound.writable:
                    raise DifferentiationError(
                        f"the array '{array.name}', which is read-only, has changed since '{self.name}' ran",
                        self.place,
                        hint="pass a copy of it",
                    )
                now.append((array, present))
                ctypes.memmove(bound.address, kept.address, bound.nbytes)
            yield
        finally:
            for array, present in now:
                ctypes.memmove(array.bound.address, present, len(present))


class Write(NamedTuple):
    """Python gave elements of `target` new values: those at `position` in its array (of the field's shape with that of
    its elements behind; `...`: all of them). The values are those of the field `source`, or constants. `renews`:
    the gradient of the new values is not that of the old ones; false for elements that Python shifts by a constant, and
    for fields that no launch has used yet, which simply begin with these values.
    """

    target: Buffer
    position: Any
    source: Buffer | None = None
    place: Span = NOWHERE
    renews: bool = True

    @property
    def is_whole(self) -> bool:
        """Whether all elements got new values."""
        return self.position is ...


Event = Launch | Custom | Write
