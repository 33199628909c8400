"""Built-ins that stop derivatives: `stop_gradient` and `stop_grad`."""

from __future__ import annotations

from typing import Any

from tinote.compiler.frontend.emitter import Emitter
from tinote.compiler.frontend.expansion import Expansion, define
from tinote.compiler.frontend.values import is_number
from tinote.compiler.protocol import members_of, space_of
from tinote.ir import primitives as p

TABLE: dict[str, Expansion] = {}
_define = define(TABLE)


def _stop_gradient(e: Emitter, x: Any) -> Any:
    """`x` as a constant: no derivative flows through it. Integers have none anyway."""
    if is_number(x) or e.static_tensor(x) is not None or e.as_value(x).dtype.kind != "f":
        return x
    return e.prim(p.surrogate, x, 0.0)


def _stop_grad(e: Emitter, x: Any) -> Any:
    """`stop_grad`. For a field: no derivative flows through values read from it until the end of the block or function,
    including device functions called there. For any other value: the value as a constant.
    """
    space = space_of(x)
    if space is None:
        return _stop_gradient(e, e.force(x))
    members = members_of(x)
    for part in [x] if members is None else members.values():
        if members is not None and members_of(part) is not None:
            _stop_grad(e, part)
        elif (buffer := space_of(part)) is not None and buffer.dtype.kind == "f":
            e.stopped |= {buffer}
    return None


_define("stop_gradient", "x", _stop_gradient)
_define("stop_grad", "x", _stop_grad)
