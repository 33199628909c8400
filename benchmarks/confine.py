"""Keeps a contender to some of the cores."""

from __future__ import annotations

import os

__all__ = ["confine"]


def confine(threads: int) -> None:
    """Keep this process to `threads` cores (0: all), where the system can: pools that are made later have that size."""
    if threads and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
