"""Parts of this package that are loaded when they are first used, so that importing tinote stays fast.

    if TYPE_CHECKING:
        from tinote.compiler import pipeline
    else:
        pipeline = lazy("tinote.compiler.pipeline")

Type checkers and import-linter read the first import; the program has the second, whose attributes are the module's.

A signal handler may launch kernels, and it may interrupt a program anywhere: also where such a part is half loaded.
Python then gives the handler the half of it that is there, since one thread does not wait for itself. So the main
thread, which runs the handlers, leaves loading to a thread of its own and waits for it; a handler waits for the same.
"""

from __future__ import annotations

import importlib
import sys
import threading
from types import FrameType, ModuleType
from typing import Any

from tinote.errors import TinoteError
from tinote.source import caller


class _Lazy(ModuleType):
    """Stands for the module of its name, which is loaded when an attribute of it is first read. What is set here is
    set there.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(load(self.__name__), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(load(self.__name__), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(load(self.__name__), name)


def lazy(name: str) -> Any:
    """The module of this name, to be loaded when an attribute of it is first read. The same module is imported under
    `TYPE_CHECKING`. Reading an attribute raises `TinoteError` as `load` does.
    """
    return _Lazy(name)


def load(name: str) -> Any:
    """The module of this name. Raises `TinoteError` in a signal handler that interrupted an import of it."""
    found = sys.modules.get(name)
    if found is not None and not _is_incomplete(found):
        return found
    if threading.current_thread() is not threading.main_thread():
        return importlib.import_module(name)
    if not _is_importing():
        return _load_in_a_thread(name)
    # What the thread needed might be what the main thread is importing: it would wait for ever.
    try:
        if found is None:
            return importlib.import_module(name)
    except (ImportError, AttributeError) as error:
        if not any(_is_incomplete(module) for key, module in list(sys.modules.items()) if key.startswith("tinote.")):
            raise
        raise _interrupted(name) from error
    raise _interrupted(name)


def _interrupted(name: str) -> TinoteError:
    return TinoteError(
        f"this interrupts an import that loads a part of tinote ('{name}'), which cannot be used before it is there",
        caller(),
        hint="install a signal handler that launches kernels after the imports, or let it set a flag that the program "
        "looks at",
    )


def _is_incomplete(module: Any) -> bool:
    return getattr(getattr(module, "__spec__", None), "_initializing", False)


def _is_importing() -> bool:
    """Whether this is called by a module that is being imported, or interrupts an import."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _load_in_a_thread(name: str) -> Any:
    found: list[Any] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(importlib.import_module(name))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, name="tinote import", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # there are too many threads, or Python is about to end
        return importlib.import_module(name)
    thread.join()
    if failed:
        raise failed[0]
    return found[0]
