"""The observer of a running sweep: a front end that has registered one, or none."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Protocol

from tinote.lang.sweeps.results import Table


class Watcher(Protocol):
    """An observer, called for each point, that reads the table while it holds the `lock`."""

    lock: Lock

    def point(self) -> None:
        """Another point has come into the table."""

    def end(self) -> None:
        """No more points come."""


#: Gives who watches a sweep of this table, of a function of this name; the text says which result is best how.
Watch = Callable[[Table, str, str | None], Watcher | None]

_watch: Watch | None = None


def watch_with(watch: Watch | None) -> None:
    """From now on `watch` says who watches a sweep; None: nobody does."""
    global _watch
    _watch = watch


def watcher_of(table: Table, name: str, best: str | None) -> Watcher | None:
    """Who watches this sweep."""
    return None if _watch is None else _watch(table, name, best)
