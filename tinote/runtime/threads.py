"""Python's interface to the native runtime: the launch entry and the pool of worker threads.

The native runtime (`native/`) is linked once per process and never unloaded; its pool lives as long as the process.
Workers start at the first parallel loop that needs them.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import time
from collections.abc import Callable, Mapping
from weakref import WeakSet

from tinote.runtime import layout
from tinote.system import register_at_fork

#: what Python calls of the native runtime
CALLED = ("tn_arena_free", "tn_launch", "tn_pool_new", "tn_pool_quit", "tn_pool_reset", "tn_print_take", "tn_stop")

_METH_FASTCALL = 0x80
_SPIN_NANOSECONDS = 30_000
_EXIT_PATIENCE_SECONDS = 0.2


class _MethodDefinition(ctypes.Structure):
    """CPython's `PyMethodDef`, part of its stable interface."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def available_cores() -> int:
    """How many cores this process may use (its affinity, where the system tells it)."""
    affinity = getattr(os, "sched_getaffinity", None)
    return max(1, len(affinity(0)) if affinity is not None else os.cpu_count() or 1)


def _builtin(address: int, name: bytes) -> tuple[Callable[[int], int], _MethodDefinition]:
    """A Python builtin of one argument from native code that follows the fast-call convention (no conversion by ctypes:
    10 times cheaper).
    """
    definition = _MethodDefinition(name, address, _METH_FASTCALL, None)
    create = ctypes.pythonapi.PyCMethod_New
    create.restype = ctypes.py_object
    create.argtypes = [ctypes.c_void_p] * 4
    return create(ctypes.addressof(definition), None, None, None), definition


class NativeRuntime:
    """The linked native runtime: its functions as Python callables and the one pool of the process.

    `launch(address)` runs the kernel of the block at that address and returns its status; the interpreter lock is given
    up meanwhile, and an exception that a signal handler or a print raised comes out of it as itself. `stop(address)`
    stops a running launch and says whether one ran.
    """

    __slots__ = ("_definition", "_pool_quit", "_pool_reset", "arena_free", "launch", "pool", "print_take", "stop")

    def __init__(self, addresses: Mapping[str, int]) -> None:
        pointer, integer, wide = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
        self.launch, self._definition = _builtin(addresses["tn_launch"], b"launch")
        self.stop: Callable[[int], int] = ctypes.PYFUNCTYPE(integer, pointer)(addresses["tn_stop"])
        take = ctypes.PYFUNCTYPE(wide, pointer, pointer, pointer)
        self.print_take: Callable[[int, int, int], int] = take(addresses["tn_print_take"])
        self.arena_free: Callable[[int], None] = ctypes.PYFUNCTYPE(None, pointer)(addresses["tn_arena_free"])
        self._pool_reset = ctypes.PYFUNCTYPE(None, pointer, wide)(addresses["tn_pool_reset"])
        self._pool_quit = ctypes.CFUNCTYPE(integer, pointer)(addresses["tn_pool_quit"])
        pool_new = ctypes.PYFUNCTYPE(pointer, wide, integer, wide)(addresses["tn_pool_new"])
        self.pool: int = pool_new(_main_thread(), available_cores(), _SPIN_NANOSECONDS) or 0
        if not self.pool:
            raise MemoryError("no memory for the thread pool")
        register_at_fork(after_in_child=self._after_fork)
        atexit.register(self._at_exit)

    @property
    def workers(self) -> int:
        """Worker threads started so far (in this process, not in the one it was forked from)."""
        return ctypes.c_int32.from_address(self.pool + layout.POOL_WORKERS).value

    def _after_fork(self) -> None:
        global _stoppables_lock
        # A thread that the child does not have may have held it.
        _stoppables_lock = threading.RLock()
        self._pool_reset(self.pool, _main_thread())

    def _at_exit(self) -> None:
        """Let the workers return before the interpreter goes; native code stays mapped, so one that is late does no
        harm.
        """
        deadline = time.monotonic() + _EXIT_PATIENCE_SECONDS
        # First the word that says why, then the stops: launches on daemon threads then end without an error to show.
        self._pool_quit(self.pool)
        stop_all()
        while self._pool_quit(self.pool) and time.monotonic() < deadline:
            time.sleep(0.0005)


class Stoppable:
    """Something that launches and can be stopped; `stop_all` finds every one that exists."""

    __slots__ = ("__weakref__",)

    def __init__(self) -> None:
        with _stoppables_lock:
            _stoppables.add(self)

    def stop(self) -> int:
        """Stop what runs now; returns how many launches ran."""
        raise NotImplementedError


_stoppables: WeakSet[Stoppable] = WeakSet()
# Re-entrant, because a signal handler may stop everything while its own thread registers something.
_stoppables_lock = threading.RLock()


def stop_all() -> int:
    """Stop every kernel that runs now, on whichever thread; returns how many ran. They raise `LaunchStopped` where they
    were called.
    """
    with _stoppables_lock:
        stoppables = list(_stoppables)
    return sum(stoppable.stop() for stoppable in stoppables)


def _main_thread() -> int:
    return threading.main_thread().ident or 0
