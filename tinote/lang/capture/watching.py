"""Monitors the calls of a function during capture: callees are checked and read."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from tinote.compiler.pysource.codes import place_of
from tinote.errors import CaptureError
from tinote.lang.capture.captured import NUMBERS
from tinote.lang.capture.dependencies import Dependencies, end_of, hint_for
from tinote.lang.data.traced import Traced
from tinote.runtime.launch import LaunchStopped
from tinote.runtime.threads import stop_all
from tinote.source import Span, span_at


class Watch:
    """Monitors the calls of user functions, as a context manager. A call that cannot be replayed is `refuse`d: by
    default `CaptureError` is raised before it is done. Unknown user functions are read, by `read_called`, or, with
    `at_once`, before they run. `refused`: the first call that cannot be replayed.
    """

    def __init__(
        self,
        dependencies: Dependencies,
        refuse: Callable[[CaptureError], object] | None = None,
        *,
        at_once: bool = False,
    ) -> None:
        self.refused: CaptureError | None = None
        self._dependencies = dependencies
        self._refuse = refuse
        self._at_once = at_once
        self._called: dict[tuple[Any, int], tuple[Any, dict[str, Any], dict[str, Any]]] = {}
        self._before: Any = None
        #: whether this thread is collecting garbage: finalizers then are not part of the step
        self._is_collecting = False
        self._thread = threading.get_ident()

    def __enter__(self) -> Watch:
        self._before = sys.getprofile()
        self._forward = self._before if callable(self._before) else None
        gc.callbacks.insert(0, self._collection_starts)  # before those of libraries, and after them
        gc.callbacks.append(self._collection_stops)
        sys.setprofile(self._notice)
        return self

    def __exit__(self, *error: object) -> None:
        gc.callbacks.remove(self._collection_starts)
        gc.callbacks.remove(self._collection_stops)
        self._is_collecting = False
        if self._before is None or self._forward is not None:
            sys.setprofile(self._before)
        else:  # the returns from here are those of the calls that began it
            self._before.enable()

    def _collection_starts(self, phase: str, _: object) -> None:
        if phase == "start" and threading.get_ident() == self._thread:
            self._is_collecting = True

    def _collection_stops(self, phase: str, _: object) -> None:
        if phase == "stop" and threading.get_ident() == self._thread:
            self._is_collecting = False

    def _notice(self, frame: Any, event: str, argument: Any) -> None:
        if self._is_collecting or frame.f_code in _COLLECTION:
            return  # one may begin before the call around it is noticed, which a profiler takes for a mistake
        if self._forward is not None:
            self._forward(frame, event, argument)
        if event == "call":
            if self._is_users(frame):
                self._notice_function(frame)
            elif frame.f_back is not None and self._is_users(frame.f_back) and not _lets_go(frame):
                module = frame.f_globals.get("__name__") or ""
                self._judge(frame.f_back, SimpleNamespace(__name__=frame.f_code.co_name, __module__=module))
        elif event == "c_call" and self._is_users(frame):
            self._judge(frame, argument)

    _notice.__tinote_watch__ = True  # type: ignore[attr-defined]

    def _is_users(self, frame: Any) -> bool:
        """Whether a frame belongs to user code."""
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        # Text that libraries execute: annotations, methods that dataclasses make. (A step that does so is refused.)
        is_made = name == "<module>" or (file == "<string>" and name in _MADE)
        return not is_made and self._dependencies.is_users(frame.f_globals.get("__name__") or "", file)

    def _notice_function(self, frame: Any) -> None:
        if _lets_go(frame):
            return
        code, dependencies = frame.f_code, self._dependencies
        # Objects created by this very call are its own.
        given = {name: one for name, one in first_argument(frame).items() if dependencies.holds(one)}
        owner = next(iter(given.values()), None)
        if dependencies.knows(code, owner):
            return
        self._called[code, id(owner)] = code, frame.f_globals, given
        if self._at_once:
            dependencies.refuse_changes(place_of(code))  # before they become the reference for comparisons
            dependencies.scan_called(code, frame.f_globals, given)
            dependencies.settle()
            for place, (holder, key) in dependencies.assigned.items():
                if dependencies.before.get(place) is None:
                    dependencies.before[place] = holder[key]

    def _judge(self, frame: Any, called: Any) -> None:
        if self.refused is not None:
            return
        why = self._dependencies.why_not(called) or self._dependencies.why_changes(called)
        if why is None or end_of(span_at(frame.f_code, frame.f_lasti)) in self._dependencies.seeded:
            return
        span = Span(frame.f_code.co_filename, frame.f_lineno)
        name = getattr(called, "__name__", "something")
        self.refused = CaptureError(f"this cannot be captured: {why.replace('…', name)}", span, hint_for(called))
        if self._refuse is None:
            raise self.refused
        self._refuse(self.refused)

    def read_called(self) -> bool:
        """Read the functions that were called and not known; whether there were any. Raises `CaptureError`."""
        for code, namespace, given in self._called.values():
            if not self._dependencies.knows(code, next(iter(given.values()), None)):
                self._dependencies.scan_called(code, namespace, given)
        return bool(self._called)


#: The functions that `dataclasses` and `collections.namedtuple` make of text.
_MADE = frozenset(
    ["__create_fn__", "__new__"]
    + [f"__{name}__" for name in ("init", "repr", "eq", "lt", "le", "gt", "ge", "hash", "setattr", "delattr")]
)
_COLLECTION = (Watch._collection_starts.__code__, Watch._collection_stops.__code__)


def _lets_go(frame: Any) -> bool:
    """Whether an object is being finalized."""
    return frame.f_code.co_name == "__del__" or frame.f_globals.get("__name__") in ("weakref", "_weakrefset")


def may_watch() -> bool:
    """Whether calls can be watched: a profiler that is written in Python gets them, too, and `cProfile` goes on
    afterwards; of others it is not known how.
    """
    profiler = sys.getprofile()
    return profiler is None or callable(profiler) or hasattr(profiler, "enable")


@contextlib.contextmanager
def ended_after(seconds: float) -> Iterator[None]:
    """Kernels that still run after so long are stopped."""
    is_over = threading.Event()

    def end() -> None:
        is_late = not is_over.wait(seconds)
        while is_late and not is_over.wait(0.05):
            stop_all()

    threading.Thread(target=end, name="tinote patience", daemon=True).start()
    try:
        yield
    except LaunchStopped:
        raise CaptureError(f"this is not captured automatically: it takes more than {seconds:.0f} s") from None
    finally:
        is_over.set()


def first_argument(frame: Any) -> dict[str, Any]:
    """The first argument of a call, by name, since its attributes may be looked up."""
    code = frame.f_code
    first = code.co_varnames[0] if code.co_argcount else ""
    owner = frame.f_locals.get(first)
    is_plain = owner is None or isinstance(owner, (*NUMBERS, np.ndarray)) or type(owner) is Traced
    return {} if is_plain else {first: owner}
