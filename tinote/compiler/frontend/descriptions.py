"""Descriptions of values and types in messages."""

from __future__ import annotations

from typing import Any

from tinote.compiler.frontend.values import GeneratorCall, Place, StaticTensor, StructValue, Value
from tinote.compiler.protocol import members_of, space_of
from tinote.errors import shown
from tinote.ir.nodes import Lit
from tinote.ir.types import Tensor, Type


def describe(front: Any) -> str:
    """What a value is, as a message describes it."""
    if isinstance(front, Value) and isinstance(front.atom, Lit):
        return f"the constant {front.atom.value!r}"
    if isinstance(front, Place | Value):
        return describe_type(front.type)
    if isinstance(front, StaticTensor):
        return (
            "a constant "
            + ("vector" if len(front.shape) == 1 else "matrix")
            + f" of {' by '.join(map(str, front.shape))}"
        )
    if isinstance(front, StructValue):
        members = ", ".join(front.members)
        return f"a struct with members {members}" if front.info is None else f"a struct `{front.info.name}`"
    if isinstance(front, GeneratorCall):
        return f"the generator `{front.source.name}`"
    if front is None:
        return "None"
    if isinstance(front, int) and front.bit_length() > 256:
        return shown(front)
    if isinstance(front, str) and len(front) > 60:
        return f"the text {front[:50]!r}…"
    if isinstance(front, bool | int | float | str):
        return f"the constant {front!r}"
    if space_of(front) is not None:
        return "a field" if members_of(front) is None else "a field of structs"
    if isinstance(front, tuple | list):
        return f"a {type(front).__name__} of {len(front)}"
    if hasattr(front, "__tinote_type__") or hasattr(front, "__tinote_struct__"):
        return f"the type `{front!r}`"
    if isinstance(front, type):
        return f"the class `{front.__name__}`"
    if callable(front) or hasattr(front, "__tinote_function__"):
        return f"the function `{getattr(front, '__name__', type(front).__name__)}`"
    return f"a Python object of type {type(front).__name__}"


def in_place_of_call(callee: Any) -> str:
    """The hint for a kernel that calls a Python function."""
    owner = getattr(callee, "__self__", None)
    if isinstance(owner, list | dict | set):
        return "kernels can only modify fields and local variables; lists have a fixed length"
    if space_of(owner) is not None:
        return "call it outside of the kernel; in it, loop over the elements"
    if (getattr(callee, "__module__", None) or "").partition(".")[0] == "tinote":
        return "call it outside of the kernel"
    if isinstance(callee, type):
        return "a type of structs is made of a class with `@ti.dataclass`"
    return "call it outside of the kernel, or in `ti.static(…)` for a value fixed at compile time"


def describe_type(t: Type) -> str:
    if isinstance(t, Tensor):
        kind = "vector" if len(t.shape) == 1 else "matrix"
        return f"a {kind} of {' by '.join(map(str, t.shape))} {str(t.dtype).removeprefix('weak_')}"
    return f"a number of type {str(t).removeprefix('weak_')}"
