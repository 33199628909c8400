"""Conversions between types, and constructors of vectors and matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tinote.compiler.frontend.conversions import static_int, strong_value
from tinote.compiler.frontend.descriptions import describe
from tinote.compiler.frontend.emitter import Emitter, check_size
from tinote.compiler.frontend.expansion import Expansion, define
from tinote.compiler.frontend.expressions import tensors
from tinote.compiler.frontend.expressions.arithmetic import apply, tensor
from tinote.compiler.frontend.expressions.domains import is_domain, static_items
from tinote.compiler.frontend.values import StaticTensor, Value, is_number
from tinote.compiler.protocol import type_of
from tinote.ir import primitives as p
from tinote.ir.nodes import Lit
from tinote.ir.types import Scalar, Tensor, i32, u1, with_element

TABLE: dict[str, Expansion] = {}
_define = define(TABLE)

# types


def truths(e: Emitter, x: Any) -> Any:
    """Truth values of every component."""
    if is_number(x):
        return bool(x)
    tensor = e.static_tensor(x)
    if tensor is not None:
        return tensor.map(bool)
    value = e.as_value(x)
    return value if value.dtype is u1 else e.prim(p.ne, value, 0)


def scalar_type(e: Emitter, dtype: Any) -> Scalar:
    """A number type from an argument. Raises when it names none."""
    t = type_of(dtype, e.fp, e.ip)
    if not isinstance(t, Scalar):
        e.error(f"a number type is expected, not {describe(dtype)}", "for example `ti.f32` or `ti.i32`")
    return t


def _convert(e: Emitter, x: Any, dtype: Any) -> Any:
    t = type_of(dtype, e.fp, e.ip)
    if isinstance(t, Tensor):
        return construct(e, t, [x])
    return e.cast(x, scalar_type(e, dtype))


def _bit_cast(e: Emitter, x: Any, dtype: Any) -> Any:
    t = scalar_type(e, dtype)
    value = strong_value(e, x)
    if value.dtype.bits != t.bits or u1 in (value.dtype, t):
        e.error(f"`bit_cast` needs types of the same width, not {value.dtype} and {t}", "`ti.cast` converts the number")
    return e.prim(p.bitcast, value, type=with_element(value.type, t))


def construct(e: Emitter, t: Scalar | Tensor, args: list[Any]) -> Value:
    """A call of a type: a conversion, or a vector or matrix from its components (numbers, vectors, rows)."""
    if isinstance(t, Scalar):
        if len(args) > 1:
            e.error(f"`{t}` takes one number, not {len(args)}")
        return e.cast(args[0] if args else 0, t)
    check_size(e, t.shape, t.dtype)
    flat: list[Any] = []

    def flatten(item: Any) -> None:
        if isinstance(item, tuple | list):
            for inner in item:
                flatten(inner)
        elif e.shape(item):
            flat.extend(e.components(item))
        else:
            flat.append(item)

    for a in args:
        flatten(a)
    if len(flat) == 1:
        flat *= t.count
    if len(flat) != t.count:
        e.error(f"{_shape_text(t)} needs {t.count} components, not {len(flat)}")
    return e.pack([e.cast(c, t.dtype) for c in flat], t.shape, t.dtype)


def _shape_text(t: Tensor) -> str:
    return f"a {'vector' if len(t.shape) == 1 else 'matrix'} of {' by '.join(map(str, t.shape))}"


_define("cast", "x dtype", _convert)
_define("bit_cast", "x dtype", _bit_cast)


def _like(number: int) -> Callable[..., Any]:
    def expand(e: Emitter, x: Any) -> Any:
        value = strong_value(e, x)
        one = Value(e.b.cast(Lit(number, i32), value.dtype))
        return e.pack([one] * value.type.count, value.shape) if isinstance(value.type, Tensor) else one

    return expand


_define("zero", "x", _like(0))
_define("one", "x", _like(1))

# vectors and matrices


def _tensor_from(e: Emitter, what: str, items: Any, dt: Any) -> Any:
    if is_domain(items) or isinstance(items, range):
        items = list(static_items(e, items))
    tensor_value = e.static_tensor(items)
    if dt is None:
        if tensor_value is not None:
            return tensor_value
        if not isinstance(items, tuple | list):
            if isinstance(items, Value) and items.shape:
                return items
            e.error(f"`ti.{what}` is made from a list of numbers, not from {describe(items)}")
        if all(is_number(x) for x in items) and items:
            return StaticTensor(items, (len(items),))
        rows = (
            [
                r
                for r in items
                if isinstance(r, tuple | list) and len(r) == len(items[0]) and all(is_number(x) for x in r)
            ]
            if items and isinstance(items[0], tuple | list)
            else []
        )
        if rows and len(rows) == len(items) and rows[0]:
            return StaticTensor([x for r in rows for x in r], (len(rows), len(rows[0])))
        return e.tensor_of(items)
    t = scalar_type(e, dt)
    found = (
        tensor_value
        if tensor_value is not None
        else e.tensor_of(items, t)
        if isinstance(items, tuple | list)
        else e.as_value(items)
    )
    return e.cast(found, t)


def _vector(e: Emitter, items: Any, dt: Any) -> Any:
    return _tensor_from(e, "Vector", items, dt)


_define("Vector", "items dt=", _vector)
_define("Matrix", "items dt=", lambda e, items, dt: _tensor_from(e, "Matrix", items, dt))


def _filled(diagonal: int | None, everywhere: int) -> Callable[..., Any]:
    def expand(e: Emitter, dt: Any, n: Any, m: Any) -> Any:
        t = scalar_type(e, dt)
        rows = static_int(e, n, "the number of rows")
        shape: tuple[int, ...] = (rows,)
        if diagonal is not None:
            shape = (rows, rows)
        elif m is not None:
            shape = (rows, static_int(e, m, "the number of columns"))
        if any(n < 1 for n in shape):
            e.error(f"a vector or matrix needs positive dimensions, not {' by '.join(map(str, shape))}")
        check_size(e, shape, t)
        components = [everywhere] * math.prod(shape)
        if diagonal is not None:
            components[:: rows + 1] = [diagonal] * rows
        return e.pack(components, shape, t)

    return expand


for _kind in ("Matrix", "Vector"):
    _define(f"{_kind}.zero", "dt n m=", _filled(None, 0))
    _define(f"{_kind}.one", "dt n m=", _filled(None, 1))
_define("Matrix.identity", "dt n m=", _filled(1, 0))


def _unit(e: Emitter, n: Any, i: Any, dt: Any) -> Any:
    size, position = static_int(e, n, "the length"), static_int(e, i, "the position")
    if not 0 <= position < size:
        e.error(f"position {position} is outside of a vector of {size}")
    check_size(e, (size,))
    return e.pack([int(k == position) for k in range(size)], (size,), e.ip if dt is None else scalar_type(e, dt))


_define("Vector.unit", "n i dt=", _unit)
_define("Matrix.unit", "n i dt=", _unit)


def _diagonal(e: Emitter, dim: Any, val: Any) -> Any:
    n = static_int(e, dim, "the size")
    if n < 1:
        e.error(f"a matrix needs a positive size, not {n}")
    check_size(e, (n, n))
    return tensor(e, [val if i == j else 0 for i in range(n) for j in range(n)], (n, n))


_define("Matrix.diag", "dim val", _diagonal)
_define("Matrix.rows", "rows", lambda e, rows: e.tensor_of(rows))
_define("Matrix.cols", "cols", lambda e, cols: tensors.transpose(e, e.tensor_of(cols)))


def _rotation2d(e: Emitter, angle: Any) -> Any:
    c, s = apply(e, p.cos, angle), apply(e, p.sin, angle)
    return tensor(e, [c, apply(e, p.neg, s), s, c], (2, 2))


_define("Matrix.rotation2d", "alpha", _rotation2d)
