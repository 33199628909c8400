"""Vectors and matrices in a kernel: attributes, components by name, and methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinote.compiler.frontend.conversions import static_int
from tinote.compiler.frontend.descriptions import describe
from tinote.compiler.frontend.emitter import Emitter
from tinote.compiler.frontend.expansion import BuiltinParameters, parameters
from tinote.compiler.frontend.expressions.arithmetic import apply, connected, power, reduce, tensor, total
from tinote.compiler.frontend.values import BoundMethod, PartPlace, Place, Value
from tinote.compiler.protocol import AXES, swizzle, type_of
from tinote.errors import closest
from tinote.ir import primitives as p
from tinote.ir.nodes import literal_indices
from tinote.ir.types import Scalar


def attribute(e: Emitter, owner: Any, name: str) -> Any:
    """`owner.name`, where `owner` is a vector, a matrix, a number at run time, or a place that holds one."""
    shape = e.shape(owner)
    if len(shape) == 1:
        positions = swizzle(name, shape[0])
        if positions is not None:
            return _swizzled(e, owner, positions)
        if any(name and all(c in letters for c in name) for letters in AXES) and name not in METHODS:
            e.error(
                f"{describe(owner)} has no component `{name}`",
                f"its components are {', '.join(AXES[0][: shape[0]])}" if shape[0] <= 4 else "index it with numbers",
            )
    if shape and name in ("n", "m"):
        return shape[0] if name == "n" else (shape[1] if len(shape) > 1 else 1)
    if name in METHODS and (shape or name in _SCALAR_METHODS):
        return BoundMethod(owner, name)
    close = closest(name, METHODS) if shape else ""
    e.error(f"{describe(owner)} has no attribute `{name}`", f"did you mean `{close}`?" if close else "")


def _swizzled(e: Emitter, owner: Any, positions: tuple[int, ...]) -> Any:
    if isinstance(owner, Place):
        if len(positions) == 1:
            return owner.component(literal_indices(positions))
        return PartPlace(owner, [literal_indices((q,)) for q in positions], (len(positions),))
    components = e.components(owner)
    return (
        components[positions[0]]
        if len(positions) == 1
        else tensor(e, [components[q] for q in positions], (len(positions),))
    )


def call_method(e: Emitter, method: BoundMethod, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Call a method that `attribute` found."""
    implementation, taken = METHODS[method.name]
    given = taken.matched(e, f".{method.name}", args, kwargs)
    owner = method.owner if method.name == "fill" else e.force(method.owner)
    return implementation(e, owner, *given.values())


def _vector(e: Emitter, front: Any, what: str) -> list[Any]:
    if len(e.shape(front)) != 1:
        e.error(f"{what} needs a vector, not {describe(front)}")
    return e.components(front)


def _matrix(e: Emitter, front: Any, what: str) -> list[list[Any]]:
    shape = e.shape(front)
    if len(shape) != 2:
        e.error(f"{what} needs a matrix, not {describe(front)}")
    flat = e.components(front)
    return [flat[r * shape[1] : (r + 1) * shape[1]] for r in range(shape[0])]


def _square(e: Emitter, front: Any, what: str) -> list[list[Any]]:
    rows = _matrix(e, front, what)
    if len(rows) != len(rows[0]):
        e.error(f"{what} needs a square matrix, not {describe(front)}")
    return rows


def length_squared(e: Emitter, v: Any) -> Any:
    """The sum of the squares of all components."""
    squares = apply(e, p.mul, v, v)
    return total(e, e.components(squares))


def length(e: Emitter, v: Any, eps: Any = 0) -> Any:
    """The square root of the sum of squares and `eps`."""
    squared = length_squared(e, v)
    return apply(e, p.sqrt, squared if eps == 0 and not isinstance(eps, Value) else apply(e, p.add, squared, eps))


def _inverse_length(e: Emitter, v: Any, eps: Any = 0) -> Any:
    return apply(e, p.div, 1.0, length(e, v, eps))


def normalised(e: Emitter, v: Any, eps: Any = 0) -> Any:
    """`v` divided by the sum of its length and `eps`."""
    size = length(e, v)
    return apply(
        e,
        p.mul,
        apply(e, p.div, 1.0, size if eps == 0 and not isinstance(eps, Value) else apply(e, p.add, size, eps)),
        v,
    )


def dot(e: Emitter, a: Any, b: Any) -> Any:
    """The inner product of two vectors."""
    _vector(e, a, "an inner product")
    _vector_like(e, a, b, "an inner product")
    return total(e, e.components(apply(e, p.mul, a, b)))


def _vector_like(e: Emitter, a: Any, b: Any, what: str) -> None:
    if e.shape(a) != e.shape(b):
        e.error(f"{what} needs two vectors of the same length, not {describe(a)} and {describe(b)}")


def cross(e: Emitter, a: Any, b: Any) -> Any:
    """The cross product of two vectors of three, or its only component for two vectors of two."""
    _vector_like(e, a, b, "a cross product")
    x, y = _vector(e, a, "a cross product"), _vector(e, b, "a cross product")

    def minor(i: int, j: int) -> Any:
        return apply(e, p.sub, apply(e, p.mul, x[i], y[j]), apply(e, p.mul, x[j], y[i]))

    if len(x) == 2:
        return minor(0, 1)
    if len(x) != 3:
        e.error(f"a cross product needs vectors of 2 or 3, not of {len(x)}")
    return tensor(e, [minor(1, 2), minor(2, 0), minor(0, 1)], (3,))


def outer_product(e: Emitter, a: Any, b: Any) -> Any:
    """The matrix of all products of a component of `a` with one of `b`."""
    x, y = _vector(e, a, "an outer product"), _vector(e, b, "an outer product")
    return tensor(e, [apply(e, p.mul, i, j) for i in x for j in y], (len(x), len(y)))


def transpose(e: Emitter, m: Any) -> Any:
    """Rows and columns exchanged; a vector becomes a single row."""
    shape = e.shape(m)
    if len(shape) == 1:
        return tensor(e, e.components(m), (1, shape[0]))
    rows = _matrix(e, m, "a transpose")
    return tensor(e, [row[j] for j in range(shape[1]) for row in rows], (shape[1], shape[0]))


def trace(e: Emitter, m: Any) -> Any:
    """The sum of the diagonal."""
    rows = _square(e, m, "a trace")
    return total(e, [rows[k][k] for k in range(len(rows))])


def determinant(e: Emitter, m: Any) -> Any:
    """The determinant of a matrix of up to 4 by 4."""
    rows = _square(e, m, "a determinant")
    if len(rows) > 4:
        e.error(f"determinants are implemented up to 4 by 4, not for {describe(m)}")
    return _minor(e, rows, tuple(range(len(rows))), tuple(range(len(rows))))


def _minor(e: Emitter, m: list[list[Any]], rows: tuple[int, ...], columns: tuple[int, ...]) -> Any:
    """The determinant of the given rows and columns, expanded along the first row."""
    if len(rows) == 1:
        return m[rows[0]][columns[0]]
    result: Any = None
    for k, column in enumerate(columns):
        term = apply(e, p.mul, m[rows[0]][column], _minor(e, m, rows[1:], columns[:k] + columns[k + 1 :]))
        result = term if result is None else apply(e, p.sub if k % 2 else p.add, result, term)
    return result


def inverse(e: Emitter, m: Any) -> Any:
    """The inverse of a matrix of up to 4 by 4, by cofactors."""
    rows = _square(e, m, "an inverse")
    n = len(rows)
    if n > 4:
        e.error(f"inverses are implemented up to 4 by 4, not for {describe(m)}")
    every = tuple(range(n))
    scale = apply(e, p.div, 1.0, _minor(e, rows, every, every))
    if n == 1:
        return tensor(e, [scale], (1, 1))
    found: list[Any] = []
    for i in every:
        for j in every:
            cofactor = _minor(e, rows, every[:j] + every[j + 1 :], every[:i] + every[i + 1 :])
            found.append(apply(e, p.mul, scale, apply(e, p.neg, cofactor) if (i + j) % 2 else cofactor))
    return tensor(e, found, (n, n))


def _cast(e: Emitter, v: Any, dtype: Any) -> Any:
    t = type_of(dtype, e.fp, e.ip)
    if not isinstance(t, Scalar):
        e.error(f"`.cast` needs a number type, not {describe(dtype)}")
    return e.cast(v, t)


def _row_of(e: Emitter, m: Any, index: Any) -> Any:
    return tensor(e, _matrix(e, m, "a row")[static_int(e, index, "the number of a row")], (e.shape(m)[1],))


#: The implementation of each, a function of the emitter, the owner and the parameters. `elements` adds methods that
#: fields and arrays have, too.
METHODS: dict[str, tuple[Callable[..., Any], BuiltinParameters]] = {
    "norm": (length, parameters("eps=0")),
    "norm_sqr": (length_squared, parameters("")),
    "norm_inv": (_inverse_length, parameters("eps=0")),
    "normalized": (normalised, parameters("eps=0")),
    "dot": (dot, parameters("other")),
    "cross": (cross, parameters("other")),
    "outer_product": (outer_product, parameters("other")),
    "transpose": (transpose, parameters("")),
    "trace": (trace, parameters("")),
    "determinant": (determinant, parameters("")),
    "inverse": (inverse, parameters("")),
    "sum": (lambda e, v: total(e, e.components(v)), parameters("")),
    "max": (lambda e, v: reduce(e, p.maximum, e.components(v)), parameters("")),
    "min": (lambda e, v: reduce(e, p.minimum, e.components(v)), parameters("")),
    "any": (lambda e, v: connected(e, p.or_, e.components(v)), parameters("")),
    "all": (lambda e, v: connected(e, p.and_, e.components(v)), parameters("")),
    "cast": (_cast, parameters("dtype")),
    "pow": (lambda e, v, exponent: power(e, v, exponent), parameters("exponent")),
    "get_shape": (lambda e, v: e.shape(v), parameters("")),
    "row": (_row_of, parameters("index")),
}
_SCALAR_METHODS = ("cast",)
