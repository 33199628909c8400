"""Base of launch code other than machine code (`python_launch.py`, `gpu_launch.py`)."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from tinote.compiler.launch.access_summary import TaskSummary
from tinote.compiler.launch.native import Origin
from tinote.ir.nodes import Atom, Function
from tinote.ir.types import Scalar
from tinote.runtime.layout import WORDS
from tinote.runtime.threads import Stoppable


class TextCode(Stoppable):
    """Code that is made from text for one kernel, and neither kept nor found again. `_given` packs scalar arguments, in
    eight bytes each, and raises `struct.error` for one that does not fit its type.
    """

    __slots__ = ("_given", "cached", "origin", "parameters", "results", "seconds", "tasks")

    def __init__(self, fn: Function, origin: Origin, tasks: Sequence[TaskSummary]) -> None:
        self.origin = origin
        self.cached = False
        self.seconds = 0.0
        self.tasks = tuple(tasks)
        self.parameters = _scalars(fn.region.params)
        self.results = _scalars(fn.region.yields)
        self._given = struct.Struct("<" + "".join([WORDS[t.name] for t in self.parameters]))
        super().__init__()


def _scalars(atoms: Sequence[Atom]) -> tuple[Scalar, ...]:
    return tuple([a.type for a in atoms if isinstance(a.type, Scalar)])
