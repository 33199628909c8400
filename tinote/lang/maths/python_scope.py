"""What the functions of the language do in Python scope, by NumPy.

Numbers are Python's own, vectors and matrices arrays. `PYTHON` maps a function's name to its meaning; what is missing
there makes sense in kernels only.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import Any

import numpy as np

from tinote.errors import FieldError
from tinote.ir.primitives import cast_number
from tinote.ir.types import Scalar, f64, machine_epsilon, scalar_named
from tinote.lang.data.matrix import Matrix, Vector, numpy_type
from tinote.lang.session.state import scalar_type, world

__all__ = ["PYTHON"]

_Array = Any


def _components(f: Callable[..., Any], x: Any, dtype: np.dtype[Any] | None = None) -> Any:
    """`f` on a number, or on every component of an array."""
    if np.ndim(x) == 0:
        return f(x.item() if isinstance(x, np.generic) else x)
    values = np.asarray(x)
    return np.array([f(v) for v in values.ravel().tolist()], dtype=dtype).reshape(values.shape)


def _integer_type(x: Any) -> Scalar:
    """The type of an integer or of an array of them: Python's own take the default type."""
    values = np.asarray(x)
    if values.dtype.kind not in "iu":
        raise FieldError(f"bits are those of integers, not of {x!r}")
    if isinstance(x, np.ndarray | np.generic) and values.dtype != np.int64:
        return scalar_named(f"{values.dtype.kind}{values.dtype.itemsize * 8}")
    return scalar_named(world.config.default_ip)


def _bits(f: Callable[[int, int], int]) -> Callable[[Any], Any]:
    """A function of the bits of an integer, given as a number without sign, and of how many there are."""

    def apply(x: Any) -> Any:
        t = _integer_type(x)
        return _components(lambda v: f(int(v) & ((1 << t.bits) - 1), t.bits), x)

    return apply


def _logical_shift(a: Any, b: Any) -> Any:
    t = _integer_type(a)
    return _components(lambda v: t.wrap((int(v) & ((1 << t.bits) - 1)) >> b), a)


def _cast(x: Any, dtype: Any) -> Any:
    t = scalar_type(dtype)
    return _components(lambda v: cast_number(t, v if isinstance(v, float) else int(v)), x, numpy_type(t))


def _bit_cast(x: Any, dtype: Any) -> Any:
    t = scalar_type(dtype)
    values = np.asarray(x)
    if not isinstance(x, np.ndarray | np.generic):
        default = world.config.default_fp if values.dtype.kind == "f" else world.config.default_ip
        values = values.astype(numpy_type(scalar_named(default)))
    if values.itemsize != t.size:
        raise FieldError(f"bit_cast needs types of the same width, not {values.dtype} and {t}")
    return values.view(numpy_type(t))[()]


def _extreme(f: Any, of_all: Any) -> Callable[..., Any]:
    return lambda *items: of_all(items[0]) if len(items) == 1 else reduce(f, items)


def _raw_div(a: Any, b: Any) -> Any:
    if np.asarray(a).dtype.kind == "f" or np.asarray(b).dtype.kind == "f":
        return np.divide(a, b)
    quotient = np.abs(a) // np.abs(b)
    return np.where((np.asarray(a) < 0) == (np.asarray(b) < 0), quotient, -quotient)[()]


def _rounding(f: Callable[[Any], Any]) -> Callable[..., Any]:
    def apply(x: Any, dtype: Any = None) -> Any:
        found = x if np.asarray(x).dtype.kind in "iu" else f(x)
        return found if dtype is None else _cast(found, dtype)

    return apply


def _clamp(x: Any, xmin: Any, xmax: Any) -> Any:
    return np.minimum(np.maximum(x, xmin), xmax)


def _smoothstep(edge0: Any, edge1: Any, x: Any) -> Any:
    t = _clamp((x - edge0) / np.subtract(edge1, edge0), 0.0, 1.0)
    return t * t * (3.0 - 2.0 * t)


def _refract(x: Any, n: Any, eta: Any) -> Any:
    x, n = np.asarray(x), np.asarray(n)
    along = float(np.dot(n, x))
    k = 1.0 - eta * eta * (1.0 - along * along)
    return np.zeros_like(n * 1.0) if k < 0 else eta * x - (eta * along + math.sqrt(k)) * n


def _normalize(v: Any, eps: float = 0.0) -> Any:
    return np.asarray(v) / (np.linalg.norm(v) + eps)


def _frexp(x: Any) -> Any:
    m, n = np.frexp(x)
    return (m.item(), n.item()) if np.ndim(x) == 0 else (Matrix(m), Matrix(n))


def _surrogate(x: Any, z: Any) -> Any:
    return np.broadcast_to(np.asarray(x, float), np.broadcast_shapes(np.shape(x), np.shape(z))).copy()[()]


def _machine_epsilon(x: Any) -> float:
    kind = np.asarray(x).dtype
    return machine_epsilon(scalar_named(f"f{kind.itemsize * 8}") if kind.kind == "f" else f64)


def _ndrange(*axes: Any) -> Iterable[Any]:
    ranges = [range(axis) if np.ndim(axis) == 0 else range(*axis) for axis in axes]
    return ranges[0] if len(ranges) == 1 else itertools.product(*ranges)


def _grouped(indices: Iterable[Any]) -> Iterator[Vector]:
    return (Vector(list(index) if isinstance(index, tuple) else [index]) for index in indices)


def _static_assert(condition: Any, message: Any = None) -> None:
    if not condition:
        raise AssertionError("" if message is None else str(message))


def _matrix(name: str) -> Callable[..., Any]:
    """A method of matrices as a function."""
    return lambda m, *others: getattr(Matrix(m), name)(*others)


def _shaped(number: int) -> Callable[[Any], Any]:
    def like(x: Any) -> Any:
        return np.full_like(x, number) if np.ndim(x) else type(x)(number)

    return like


PYTHON: dict[str, Callable[..., Any]] = {
    # elementary functions
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "exp": np.exp,
    "exp2": lambda x: np.exp2(x * 1.0),
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "pow": np.power,
    "abs": np.abs,
    "sign": np.sign,
    "floor": _rounding(np.floor),
    "ceil": _rounding(np.ceil),
    "round": _rounding(np.round),
    "isnan": np.isnan,
    "isinf": np.isinf,
    "frexp": _frexp,
    # arithmetic
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "floordiv": np.floor_divide,
    "mod": np.mod,
    "neg": np.negative,
    "raw_div": _raw_div,
    "raw_mod": np.fmod,
    "min": _extreme(np.minimum, np.min),
    "max": _extreme(np.maximum, np.max),
    # bits and truth
    "bit_and": np.bitwise_and,
    "bit_or": np.bitwise_or,
    "bit_xor": np.bitwise_xor,
    "bit_not": np.invert,
    "bit_shl": np.left_shift,
    "bit_sar": np.right_shift,
    "bit_shr": _logical_shift,
    "popcnt": _bits(lambda v, width: v.bit_count()),
    "clz": _bits(lambda v, width: width - v.bit_length()),
    "logical_not": np.logical_not,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "select": np.where,
    "any": np.any,
    "all": np.all,
    # conversions
    "cast": _cast,
    "bit_cast": _bit_cast,
    "zero": _shaped(0),
    "one": _shaped(1),
    # shading-language helpers
    "clamp": _clamp,
    "mix": lambda x, y, a: np.multiply(x, np.subtract(1.0, a)) + np.multiply(y, a),
    "smoothstep": _smoothstep,
    "step": lambda edge, x: np.where(np.less(x, edge), 0.0, 1.0)[()],
    "fract": lambda x: x - np.floor(x),
    "radians": np.radians,
    "degrees": np.degrees,
    "reflect": lambda x, n: np.asarray(x) - 2.0 * np.dot(n, x) * np.asarray(n),
    "refract": _refract,
    # vectors and matrices
    "sum": lambda items, start=0: np.sum(items) + start,
    "dot": lambda a, b: np.vdot(a, b)[()],
    "cross": lambda a, b: Matrix(a).cross(b),
    "outer_product": lambda a, b: Matrix(a).outer_product(b),
    "normalize": _normalize,
    "length": lambda v: float(np.linalg.norm(v)),
    "distance": lambda a, b: float(np.linalg.norm(np.subtract(a, b))),
    "determinant": _matrix("determinant"),
    "inverse": _matrix("inverse"),
    "transpose": _matrix("transpose"),
    "trace": _matrix("trace"),
    "rotation2d": Matrix.rotation2d,
    # loops
    "ndrange": _ndrange,
    "grouped": _grouped,
    # compile time and derivatives
    "static": lambda *values: values[0] if len(values) == 1 else values,
    "static_assert": _static_assert,
    "static_print": print,
    "surrogate": _surrogate,
    "held": lambda x: np.array(x)[()],
    "stop_gradient": lambda x: np.array(x)[()],
    "machine_epsilon": _machine_epsilon,
}
