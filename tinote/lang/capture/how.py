"""How a step runs: as a captured program or as a function, and why."""

from __future__ import annotations

from typing import NamedTuple

from tinote.source import Span, line_text


class StepCapture(NamedTuple):
    """How a step runs: `state` is "replayed" for one that is captured, "function" for one that cannot be, or "learning"
    until that is decided. `reason`: why it runs as a function, with the line in `span`. `replays`: how many calls were
    replayed; `captures`: how often it was captured.
    """

    state: str
    reason: str = ""
    span: Span | None = None
    replays: int = 0
    captures: int = 0

    @property
    def sentence(self) -> str:
        """The state as a sentence."""
        if self.state == "replayed":
            return "Steps are replayed as a captured program"
        if self.state == "learning":
            return "Steps run as a function so far"
        where = ""
        if self.span is not None and self.span.line > 0:
            where = f" (line {self.span.line}: {line_text(self.span).strip()})"
        return f"Steps run as a function: {self.reason}{where}"

    def __repr__(self) -> str:
        counts = f"; {self.replays:,} replayed, captured {self.captures} times" if self.captures else ""
        return f"<{self.sentence}{counts}>"
