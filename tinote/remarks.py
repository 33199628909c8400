"""Optimisation remarks: what a step of the compiler did at a place in the source, or why it did nothing, recorded where
it is decided.

Passes report them to the function that the pipeline hands them (`Context.remarks`), and LLVM's vectorisers speak in the
same form (`jit.remarks`). Compiled code keeps none: `kernel.loops()`, `kernel.tasks()`, `kernel.grad_cost()` and the
explorer run the passes once more, and read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tinote.source import Span

#: The `step` of what LLVM says.
LLVM = "LLVM"


class Remark(NamedTuple):
    """What `step`, named as in the pipeline, says of the loop or the value at `loc`: why it leaves that as it is, or,
    where it is `done`, what it made of it.
    """

    step: str
    loc: Span
    text: str
    done: bool = False


Report = Callable[[Remark], object]


def unread(_: Remark) -> None:
    """The report of a pass that runs without observers."""
