"""Observers of a reverse sweep."""

from __future__ import annotations

from typing import Any

from tinote.lang.ad.journal.temporary_adjoints import TemporaryAdjoints


class SweepObserver:
    """Base class of observers of a reverse sweep, notified of each launch and each block with a custom VJP (`event`).
    For a block that sweeps through launches of its own (a checkpointed loop) it is notified of these, too, between
    `before` and `after`. `adjoints` gives the adjoints of buffers, including temporary ones. Every method is a no-op.
    """

    def before(self, adjoints: TemporaryAdjoints, event: Any) -> None:
        """Its gradient is about to run: adjoints are those of the values that it left."""

    def after(self, adjoints: TemporaryAdjoints, event: Any) -> None:
        """Its gradient has run: adjoints are those of the values that it found."""
