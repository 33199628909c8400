"""Who looks on while a function is run to be captured: what it calls is noticed, or refused before it is done."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from tinote.errors import CaptureError
from tinote.lang.capture.captured import NUMBERS
from tinote.lang.capture.dependencies import Dependencies, is_users_module, why_not
from tinote.lang.data.traced import Traced
from tinote.runtime.launch import LaunchStopped
from tinote.runtime.threads import stop_all
from tinote.source import Span


@contextlib.contextmanager
def noticing(dependencies: Dependencies) -> Iterator[None]:
    """Meanwhile, notice every function of the user's that is called, and read those that were not found."""
    called: dict[tuple[Any, int], tuple[Any, dict[str, Any], dict[str, Any]]] = {}

    def notice(frame: Any, event: str, argument: Any) -> None:
        code = frame.f_code
        if event != "call" or not is_users(frame):
            return
        given = first_argument(frame)
        if dependencies.knows(code, next(iter(given.values()), None)):
            return
        called[code, id(next(iter(given.values()), None))] = code, frame.f_globals, given

    before = sys.getprofile()
    sys.setprofile(notice)
    try:
        yield
    finally:
        sys.setprofile(before)
    for code, namespace, given in called.values():
        if not dependencies.knows(code, next(iter(given.values()), None)):
            dependencies.scan_called(code, namespace, given)


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
        raise CaptureError(f"this is not captured unasked: it takes more than {seconds:.0f} s") from None
    finally:
        is_over.set()


@contextlib.contextmanager
def forbidding(dependencies: Dependencies) -> Iterator[None]:
    """Meanwhile, functions of the user's are read before they run, and whatever changes more than memory and numbers
    raises `CaptureError` before it is done.
    """

    def notice(frame: Any, event: str, argument: Any) -> None:
        called, user = argument, frame
        if frame.f_code.co_name == "__del__" or frame.f_globals.get("__name__") in ("weakref", "_weakrefset"):
            return  # what was collected just then; it must be let go
        if event == "call":
            if is_users(frame):
                given = first_argument(frame)
                if not dependencies.knows(frame.f_code, next(iter(given.values()), None)):
                    dependencies.scan_called(frame.f_code, frame.f_globals, given)
                    dependencies.settle()
                    for place, (holder, key) in dependencies.assigned.items():
                        if dependencies.before.get(place) is None:
                            dependencies.before[place] = holder[key]
                return
            user = frame.f_back
            module = frame.f_globals.get("__name__") or ""
            called = SimpleNamespace(__name__=frame.f_code.co_name, __module__=module)
        elif event != "c_call":
            return
        if user is not None and is_users(user):
            why = why_not(called, strict=True) or dependencies.why_changes(called)
            if why is not None:
                name = getattr(called, "__name__", "something")
                span = Span(user.f_code.co_filename, user.f_lineno)
                raise CaptureError(f"this cannot be captured: {why.replace('…', name)}", span)

    before = sys.getprofile()
    sys.setprofile(notice)
    try:
        yield
    finally:
        sys.setprofile(before)


def first_argument(frame: Any) -> dict[str, Any]:
    """The first argument of a call, of which the attributes may be looked up, by its name."""
    code = frame.f_code
    first = code.co_varnames[0] if code.co_argcount else ""
    owner = frame.f_locals.get(first)
    is_plain = owner is None or isinstance(owner, (*NUMBERS, np.ndarray)) or type(owner) is Traced
    return {} if is_plain else {first: owner}


def is_users(frame: Any) -> bool:
    """Whether a frame is of a function of the user's own."""
    file, name = frame.f_code.co_filename, frame.f_code.co_name
    # Text that libraries execute: annotations, methods that dataclasses make. (A step that does so is refused.)
    is_made = name == "<module>" or (file == "<string>" and name.startswith("__"))
    return is_users_module(frame.f_globals.get("__name__") or "", file) and not is_made
