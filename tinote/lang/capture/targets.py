"""Targets of plans: the CPU (`prepare.py`) or a GPU (`on_device.py`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from tinote.compiler.launch.native import Native
from tinote.lang.capture.prepare import Prepared
from tinote.lang.session.state import session
from tinote.lazy import lazy
from tinote.program.program import Path, Program
from tinote.runtime.memory import Memory

if TYPE_CHECKING:
    from tinote.lang.capture import on_device
else:
    on_device = lazy("tinote.lang.capture.on_device")


def prepared(
    plan: Program,
    natives: Sequence[Native],
    memories: Sequence[Memory | None],
    threads: int | None = None,
    length: int | None = None,
    *,
    ready: Callable[[Path], bool] | None = None,
    given: Collection[int] = (),
) -> Prepared:
    """A plan prepared for the session's target. Raises `CaptureError` for operations that a GPU cannot do."""
    make = on_device.PreparedOnDevice if session.config.arch == "gpu" else Prepared
    return make(plan, natives, memories, threads, length, ready=ready, given=given)
