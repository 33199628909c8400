"""The forms of a function along the pipeline, and the error for IR that breaks their rules.

Along the pipeline (`compiler/pipeline.py`) a function goes through forms:

    FIRST      weak literals, mixed operand types, local cells, tensors as values
    TYPED      every operand and stored value has exactly its type; conditions are truth values
    PROMOTED   no local cells: loops and branches carry the values
    SCALAR     tensors only as webs around pack, extract and insert; memory is moved by components
    CHECKED    as SCALAR, with the checks of indices and divisors in place
    TASKS      the body is a sequence of tasks that share no variables but the function's parameters
    LOWERED    no tensor values; local arrays are cells again; memory is reached by byte offsets into flat views
"""

from __future__ import annotations

from enum import IntEnum

from tinote.ir.nodes import Op
from tinote.ir.text import show_op


class Form(IntEnum):
    """What a function looks like at a stage of the pipeline; later is greater."""

    FIRST = 0
    TYPED = 1
    PROMOTED = 2
    SCALAR = 3
    CHECKED = 4
    TASKS = 5
    LOWERED = 6


class InvalidIR(Exception):
    """A rule that the IR does not keep: a fault of the pass that made it, never of the user's program.

    `op` is the operation at fault, None when it is the function as a whole.
    """

    def __init__(self, message: str, op: Op | None = None) -> None:
        super().__init__(message if op is None else f"{message}\n  in: {_shown(op)}\n  from: {op.loc!r}")
        self.message = message
        self.op = op


def _shown(op: Op) -> str:
    try:
        return show_op(op)
    except (AttributeError, IndexError, StopIteration, TypeError, ValueError):
        return repr(op)  # too broken for the text form
