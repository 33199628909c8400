"""Who looks on at a reverse sweep."""

from __future__ import annotations

from typing import Any

from tinote.lang.ad.journal.temporary_adjoints import TemporaryAdjoints


class SweepObserver:
    """Told of each launch and each stretch with a custom VJP (`event`) as a reverse sweep comes to it. Of a stretch
    that sweeps through launches of its own (a loop of checkpoints) it is told of these, too, between `before` and
    `after`. `adjoints` tells the adjoints of buffers, temporary ones too. This one does nothing.
    """

    def before(self, adjoints: TemporaryAdjoints, event: Any) -> None:
        """Its gradient is about to run: adjoints are those of the values that it left."""

    def after(self, adjoints: TemporaryAdjoints, event: Any) -> None:
        """Its gradient has run: adjoints are those of the values that it found."""
