"""Conversions of expression values: to a truth value, an index, a constant, the value of a variable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinote.compiler.captures import Capture, Evaluation
from tinote.compiler.frontend.descriptions import describe
from tinote.compiler.frontend.emitter import Emitter
from tinote.compiler.frontend.values import Value, is_number, is_settled
from tinote.compiler.protocol import buffer_of
from tinote.compiler.pysource.names import CaptureKind
from tinote.ir import primitives as p
from tinote.ir.nodes import Atom, Lit
from tinote.ir.types import i32, i64, strengthen, u1


def strong_value(e: Emitter, front: Any) -> Value:
    """A value with the type a variable takes from it: constants take the default types."""
    value = e.as_value(front)
    if isinstance(value.atom, Lit) and not value.dtype.bits:
        return Value(e.literals.fitting(value.atom, strengthen(value.dtype, e.fp, e.ip)))
    return value


def static_int(e: Emitter, front: Any, what: str) -> int:
    """An integer known at compile time; `what` names it in the error."""
    if isinstance(front, Value) and isinstance(front.atom, Lit) and front.dtype.kind != "f":
        return int(front.atom.value)
    if isinstance(front, bool) or not isinstance(front, int):
        e.error(f"{what} must be an integer known at compile time, not {describe(front)}")
    return front


def index_atom(e: Emitter, front: Any) -> Atom:
    """An integer as an index operand, i32 or i64."""
    value = e.as_value(front)
    if value.shape or value.dtype.kind not in "iu":
        e.error(
            f"an index must be an integer, not {describe(front)}",
            "convert it with `int(…)`" if value.dtype.kind == "f" and not value.shape else "",
        )
    if isinstance(value.atom, Lit):
        number = int(value.atom.value)
        return Lit(number, i32 if i32.lowest <= number <= i32.highest else i64)
    if value.dtype in (i32, i64):
        return value.atom
    return e.b.cast(value.atom, i64 if value.dtype.bits >= 32 else i32)


def ask_python(e: Emitter, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Python's result for constants. If it comes from a function or an object of the user, it may change without any
    capture changing, so it is evaluated again at each launch.
    """
    asked = Evaluation(function, args, kwargs)
    found = asked()
    if not is_settled(function, (*args, *kwargs.values())):
        e.reproducible = False
        capture = Capture(CaptureKind.EVALUATION, asked, None, found)
        e.captures.setdefault((capture.kind, id(function), asked.key), capture)
    return found


def truth_of(e: Emitter, front: Any) -> bool | Value:
    """Whether a value counts as true: known at compile time, or a truth value at run time."""
    front = e.force(front)
    if isinstance(front, Value):
        if front.shape:
            e.error(f"the truth of {describe(front)} is not defined", "ask `.all()` or `.any()` of its components")
        return front if front.type is u1 else e.prim(p.ne, front, 0)
    tensor = e.static_tensor(front)
    if tensor is not None:
        e.error(f"the truth of {describe(tensor)} is not defined", "ask `.all()` or `.any()` of its components")
    if e.is_value(front) and not is_number(front):
        return bool(front)
    if buffer_of(front) is not None:
        e.error(f"the truth of field `{buffer_of(front).name}` is not defined", "read one of its elements")  # type: ignore[union-attr]
    return ask_python(e, bool, front)
