"""What the command's exit status says."""

from __future__ import annotations

__all__ = ["FAILED", "INTERRUPTED", "UNUSABLE"]

FAILED = 1
UNUSABLE = 2  # as it was called
INTERRUPTED = 130
