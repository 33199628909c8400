"""The owner of launches: a thread, an asyncio task, or a live view that runs between cells.

What one owner has computed, another must not wipe. What the main thread does outside of tasks is the session's, and so
is what nobody is known to have computed.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any


class Owner:
    """`who`: the thread or task, if it is one. `heir`: to whom belongs what it has computed, when it is over."""

    __slots__ = ("__weakref__", "_who", "heir")

    def __init__(self, who: Any = None, heir: Owner | None = None) -> None:
        self._who = None if who is None else weakref.ref(who)
        self.heir = heir

    @property
    def is_over(self) -> bool:
        """Whether the thread or task has ended."""
        if self._who is None:
            return False
        who = self._who()
        return who is None or (not who.is_alive() if isinstance(who, threading.Thread) else who.done())

    def includes(self, other: Owner) -> bool:
        """Whether no other code depends on what the other one has computed: its own, and, of a task, that of its
        thread, which waits for it.
        """
        return other is self or (other is self.heir and not isinstance(self._who and self._who(), threading.Thread))

    def runs_within(self, other: Owner) -> bool:
        """Whether one of them waits for the other one: a thread for its task, or they are the same."""
        return self.includes(other) or other.includes(self)

    @property
    def successor(self) -> Owner:
        """Whose what it has computed is now: its own, as long as it runs."""
        found = self
        while found.heir is not None and found.is_over:
            found = found.heir
        return found


SESSION = Owner()
"""The owner of cells and scripts."""

#: The live view that this context belongs to, if it is not the session's.
current_owner: ContextVar[Owner] = ContextVar("tinote_party", default=SESSION)

_of_thread = threading.local()
_running_loop: Callable[[], Any] | None = None
_of_tasks: weakref.WeakKeyDictionary[Any, Owner] = weakref.WeakKeyDictionary()


def new_owner() -> Owner:
    """An owner of its own, for a live view."""
    return Owner()


def present_owner() -> Owner:
    """The owner of what runs now."""
    view = current_owner.get()
    if view is not SESSION:
        return view
    running_loop = _running_loop or _find_running_loop()
    if running_loop is None or running_loop() is None or (task := sys.modules["asyncio"].current_task()) is None:
        try:
            found: Owner = _of_thread.owner
        except AttributeError:
            return _thread_owner()
        return found
    owner = _of_tasks.get(task)
    if owner is None:
        owner = _of_tasks[task] = Owner(task, _thread_owner())
    return owner


def _find_running_loop() -> Callable[[], Any] | None:
    """asyncio's function for the running loop of this thread; None while asyncio is not imported, so without tasks."""
    global _running_loop
    if "asyncio" in sys.modules:  # perhaps another thread is importing it just now
        _running_loop = getattr(sys.modules["asyncio"], "_get_running_loop", None)
    return _running_loop


def _thread_owner() -> Owner:
    owner = getattr(_of_thread, "owner", None)
    if owner is None:
        thread = threading.current_thread()
        owner = _of_thread.owner = SESSION if thread is threading.main_thread() else Owner(thread, SESSION)
    return owner
