"""Counts of accesses out of bounds, for sessions that ignore them (`ti.init(bounds_check="ignore")`)."""

from __future__ import annotations

import atexit
import warnings
from collections import Counter
from collections.abc import Sequence

from tinote.runtime.sites import Site

#: The times, by the file, the line and what was accessed.
_times: Counter[tuple[str, int, str]] = Counter()


def count(site: Site, words: Sequence[int]) -> str:
    """Add what a launch has counted at a place: the record's first part names what was accessed."""
    assert isinstance(site.arguments, tuple)
    _times[site.loc.file, site.loc.line, str(site.arguments[0])] += words[0] & 0xFFFFFFFF
    return ""


def report() -> None:
    """Warn of what was out of bounds since the last report."""
    if not _times:
        return
    places = [f"{file}, line {line}: {what}{times:,} times" for (file, line, what), times in sorted(_times.items())]
    _times.clear()
    shown = "\n".join(places)
    warnings.warn(f"reads out of bounds gave 0, and writes were dropped:\n{shown}", stacklevel=3)


atexit.register(report)
