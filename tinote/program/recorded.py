"""The common interface to the effects of recorded operations, on numbers in Python and on memory.

Recordings keep what they need of each operation besides, so that it can be done again or differentiated; whoever only
follows values through them, forwards or backwards, asks for this.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from tinote.ir.buffers import Buffer


class RecordedOperation:
    """`sources`, `results`: the traced numbers that it reads, and those that it sets; 0 stands for a constant.
    `loaded`, `written`: the memory that it reads, and that it writes to. `always`: whether its gradient runs wherever
    it stands, not only where an adjoint reaches it. `tells_gradients`: whether the sweep learns of it first which
    gradients it uses.
    """

    __slots__ = ()

    tells_gradients: bool = False

    if TYPE_CHECKING:  # some have them as attributes, others as properties

        @property
        def sources(self) -> Collection[int]: ...
        @property
        def results(self) -> Collection[int]: ...
        @property
        def loaded(self) -> Collection[Buffer]: ...
        @property
        def written(self) -> Collection[Buffer]: ...
        @property
        def always(self) -> bool: ...
    else:
        sources = results = loaded = written = ()
        always = False

    def need(self, saved: Any) -> Any:
        """Its gradient needs the present values of memory, which `saved` keeps."""

    def emit(self, recorder: Any, known: dict[int, Any]) -> None:
        """Do it once more under `recorder`, the present one. `known`: the traced numbers that have other values there,
        which gets its results.
        """
        raise NotImplementedError(f"{type(self).__name__} is done once")

    @property
    def touched(self) -> set[Buffer]:
        """All that it reads or writes."""
        return {*self.loaded, *self.written}

    @property
    def gradients(self) -> Collection[Buffer] | None:
        """The gradients that its own gradient reads or writes; None: perhaps all."""
        return [buffer.adjoint for buffer in self.touched if buffer.adjoint is not None]

    def passes_on(self, used: set[int], has_adjoint: Callable[[Buffer], bool]) -> bool:
        """Whether an adjoint that may not be zero goes through it to what it reads. `used`: the numbers that have such
        an adjoint; `has_adjoint`: whether memory has one.
        """
        return self.always or not used.isdisjoint(self.results) or any(map(has_adjoint, self.written))

    def through(self, active: Collection[Buffer], reached: set[Buffer]) -> Collection[Buffer]:
        """The memory without a gradient of its own that adjoints go on to. `active`: such memory that holds
        differentiated values; `reached`: that whose adjoint may not be zero.
        """
        return [buffer for buffer in self.loaded if buffer in active]
