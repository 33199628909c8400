"""The built-in functions of the language, as the front end expands their calls. `BUILTINS` maps each name to `expand(emitter, args, kwargs)`.

Arguments are front-end values. An expansion that writes to its first argument is marked by `takes_place` and gets a `Place` there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tinote.compiler.frontend import tensors
from tinote.compiler.frontend.arithmetic import apply, conjunction, disjunction, power, reduce, tensor, total
from tinote.compiler.frontend.domains import domain_of, is_domain, static_items
from tinote.compiler.frontend.emitter import Emitter, describe
from tinote.compiler.frontend.protocol import buffer_of, type_of
from tinote.compiler.frontend.values import (
    FieldDomain,
    Grouped,
    IndexRange,
    NdRange,
    Place,
    StaticSequence,
    StaticTensor,
    Text,
    Value,
    is_number,
)
from tinote.errors import KernelSyntaxError
from tinote.ir import primitives as p
from tinote.ir.nodes import Lit, Print
from tinote.ir.primitives import Primitive
from tinote.ir.types import (
    Scalar,
    Tensor,
    f16,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    is_float,
    u1,
    u8,
    u16,
    u32,
    u64,
    with_element,
)

__all__ = ["BUILTINS", "PYTHON", "Expansion", "takes_place"]

Expansion = Callable[[Emitter, list[Any], dict[str, Any]], Any]


def takes_place(expansion: Expansion) -> Expansion:
    """Mark an expansion whose first argument is written to."""
    expansion.takes_place = True  # type: ignore[attr-defined]
    return expansion


def simple(name: str, parameters: str, function: Callable[..., Any]) -> Expansion:
    """An expansion from a function of the emitter and named parameters; `b=` marks one that may be left out (None), `*items` takes any number."""
    names = parameters.split()
    variadic = bool(names) and names[-1].startswith("*")
    fixed = [n.rstrip("=") for n in names if not n.startswith("*")]
    optional = {n.rstrip("=") for n in names if n.endswith("=")}

    def expand(e: Emitter, args: list[Any], kwargs: dict[str, Any]) -> Any:
        unknown = [k for k in kwargs if k not in fixed]
        if unknown:
            e.error(f"`{name}` has no parameter `{unknown[0]}`", f"it takes {', '.join(names) or 'nothing'}")
        if len(args) > len(fixed) and not variadic:
            e.error(f"`{name}` takes {len(fixed)} argument{'' if len(fixed) == 1 else 's'}, not {len(args)}")
        given = dict(zip(fixed, args, strict=False))
        doubled = [k for k in kwargs if k in given]
        if doubled:
            e.error(f"`{name}` gets `{doubled[0]}` twice")
        given |= kwargs
        missing = [k for k in fixed if k not in given and k not in optional]
        if missing:
            e.error(f"`{name}` needs `{missing[0]}`", f"it takes {', '.join(fixed)}")
        return function(e, *[given.get(k) for k in fixed], *args[len(fixed) :])

    expand.__name__ = name
    return expand


BUILTINS: dict[str, Expansion] = {}


def _define(name: str, parameters: str, function: Callable[..., Any]) -> Expansion:
    expansion = BUILTINS[name] = simple(name, parameters, function)
    return expansion


# maths


def _unary(prim: Primitive) -> Callable[..., Any]:
    return lambda e, x: apply(e, prim, x)


for _name, _prim in (
    ("sin", p.sin), ("cos", p.cos), ("tan", p.tan), ("asin", p.asin), ("acos", p.acos), ("tanh", p.tanh), ("exp", p.exp), ("log", p.log), ("sqrt", p.sqrt),
    ("rsqrt", p.rsqrt), ("abs", p.absolute), ("isnan", p.isnan), ("logical_not", p.logical_not), ("bit_not", p.invert), ("neg", p.neg),
):  # fmt: skip
    _define(_name, "x", _unary(_prim))
for _name, _prim in (
    ("add", p.add), ("sub", p.sub), ("mul", p.mul), ("mod", p.mod), ("floordiv", p.floordiv), ("div", p.div), ("raw_div", p.raw_div), ("raw_mod", p.raw_mod),
    ("bit_and", p.and_), ("bit_or", p.or_), ("bit_xor", p.xor), ("bit_shl", p.shl), ("bit_sar", p.shr),
):  # fmt: skip
    _define(_name, "a b", lambda e, a, b, prim=_prim: apply(e, prim, a, b))
_define("atan2", "y x", lambda e, y, x: apply(e, p.atan2, y, x))
_define("atan", "x", lambda e, x: apply(e, p.atan2, x, 1.0))
_define("log2", "x", lambda e, x: apply(e, p.mul, apply(e, p.log, x), 1.0 / math.log(2.0)))
_define("log10", "x", lambda e, x: apply(e, p.mul, apply(e, p.log, x), 1.0 / math.log(10.0)))
_define("exp2", "x", lambda e, x: apply(e, p.exp, apply(e, p.mul, x, math.log(2.0))))
_define("pow", "x a", power)


def _rounding(prim: Primitive) -> Callable[..., Any]:
    def expand(e: Emitter, x: Any, dtype: Any) -> Any:
        found = apply(e, prim, x)
        return found if dtype is None else e.cast(found, scalar_type(e, dtype))

    return expand


for _name, _prim in (("floor", p.floor), ("ceil", p.ceil), ("round", p.round_)):
    _define(_name, "x dtype=", _rounding(_prim))


def _extreme(prim: Primitive, name: str) -> Callable[..., Any]:
    def expand(e: Emitter, *items: Any) -> Any:
        if not items:
            e.error(f"`{name}` needs at least one argument")
        if len(items) == 1:
            if is_number(items[0]) or (isinstance(items[0], Value) and not items[0].shape):
                e.error(f"`{name}` of a single number", f"give it two, or a vector: `v.{name}()`")
            items = tuple(e.components(items[0]))
        return reduce(e, prim, list(items))

    return expand


_define("min", "*items", _extreme(p.minimum, "min"))
_define("max", "*items", _extreme(p.maximum, "max"))


def _sign(e: Emitter, x: Any) -> Any:
    if is_number(x):
        return (x > 0) - (x < 0) if isinstance(x, int) else float((x > 0) - (x < 0))
    value = e.as_value(x)
    dtype = e.ip if value.dtype is u1 else value.dtype
    one, minus, zero = (e.cast(n, dtype) for n in (1, -1 if dtype.kind != "u" else 0, 0))
    return e.prim(p.select, e.prim(p.gt, value, 0), one, e.prim(p.select, e.prim(p.lt, value, 0), minus, zero))


_define("sign", "x", _sign)


def _truths(e: Emitter, x: Any) -> Any:
    """Truth values of every component."""
    if is_number(x):
        return bool(x)
    value = e.as_value(x)
    return value if value.dtype is u1 else e.prim(p.ne, value, 0)


_define("select", "condition x y", lambda e, c, x, y: apply(e, p.select, _truths(e, c), x, y))
_define("logical_and", "a b", lambda e, a, b: apply(e, p.and_, _truths(e, a), _truths(e, b)))
_define("logical_or", "a b", lambda e, a, b: apply(e, p.or_, _truths(e, a), _truths(e, b)))


def _isinf(e: Emitter, x: Any) -> Any:
    value = e.as_value(x)
    return e.prim(p.eq, e.prim(p.absolute, value), math.inf) if is_float(value.type) else e.prim(p.ne, value, value)


_define("isinf", "x", _isinf)


def _popcount(e: Emitter, x: Any) -> Any:
    """How many bits are set: neighbouring counts are added in ever wider groups."""
    value = e.as_value(x)
    if value.dtype.kind not in "iu":
        e.error(f"bits are counted in integers, not in {describe(x)}")
    wide = u64 if value.dtype.bits == 64 else u32
    narrow = {8: 0xFF, 16: 0xFFFF}.get(value.dtype.bits)
    v = e.cast(value, wide)
    if narrow:
        v = e.prim(p.and_, v, narrow)
    for shift, mask in ((1, 0x55), (2, 0x33), (4, 0x0F)):
        full = Value(Lit(int.from_bytes(bytes([mask]) * wide.size), wide))
        v = e.prim(p.add, e.prim(p.and_, v, full), e.prim(p.and_, e.prim(p.shr, v, shift), full))
    product = e.prim(p.mul, v, Value(Lit(int.from_bytes(b"\x01" * wide.size), wide)))
    return e.cast(e.prim(p.shr, product, wide.bits - 8), i32)


_define("popcnt", "x", _popcount)


def _logical_shift(e: Emitter, a: Any, b: Any) -> Any:
    """A shift to the right that fills with zeros."""
    value = e.strong(a)
    unsigned = {i8: u8, i16: u16, i32: u32, i64: u64}.get(value.dtype)
    if unsigned is None:
        return e.prim(p.shr, value, b)
    return e.cast(e.prim(p.shr, e.cast(value, unsigned), b), value.dtype)


_define("bit_shr", "a b", _logical_shift)

# types


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
    value = e.strong(x)
    if value.dtype.bits != t.bits or u1 in (value.dtype, t):
        e.error(f"`bit_cast` needs types of the same width, not {value.dtype} and {t}", "`ti.cast` converts the number")
    return e.prim(p.bitcast, value, type=with_element(value.type, t))


def construct(e: Emitter, t: Scalar | Tensor, args: list[Any]) -> Value:
    """A call of a type: a conversion, or a vector or matrix from its components (numbers, vectors, rows)."""
    if isinstance(t, Scalar):
        if len(args) > 1:
            e.error(f"`{t}` takes one number, not {len(args)}")
        return e.cast(args[0] if args else 0, t)
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


def _python_number(kind: type) -> Callable[..., Any]:
    def expand(e: Emitter, x: Any) -> Any:
        if isinstance(x, str) and e.in_static:
            return kind(x)
        if x is None:
            return kind()
        if is_number(x):
            try:
                return kind(x)
            except (ValueError, OverflowError) as error:
                e.error(str(error))
        if kind is bool:
            return _truths(e, x)
        return e.cast(x, e.ip if kind is int else e.fp)

    return expand


_define("cast", "x dtype", _convert)
_define("bit_cast", "x dtype", _bit_cast)


def _like(number: int) -> Callable[..., Any]:
    def expand(e: Emitter, x: Any) -> Any:
        value = e.strong(x)
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
        rows = [r for r in items if isinstance(r, tuple | list) and len(r) == len(items[0]) and all(is_number(x) for x in r)] if items and isinstance(items[0], tuple | list) else []
        if rows and len(rows) == len(items) and rows[0]:
            return StaticTensor([x for r in rows for x in r], (len(rows), len(rows[0])))
        return e.tensor_of(items)
    t = scalar_type(e, dt)
    found = tensor_value if tensor_value is not None else e.tensor_of(items, t) if isinstance(items, tuple | list) else e.as_value(items)
    return e.cast(found, t)


def _vector(e: Emitter, items: Any, dt: Any) -> Any:
    return _tensor_from(e, "Vector", items, dt)


_define("Vector", "items dt=", _vector)
_define("Matrix", "items dt=", lambda e, items, dt: _tensor_from(e, "Matrix", items, dt))


def _filled(diagonal: int | None, everywhere: int) -> Callable[..., Any]:
    def expand(e: Emitter, dt: Any, n: Any, m: Any) -> Any:
        t = scalar_type(e, dt)
        rows = e.static_int(n, "the number of rows")
        shape: tuple[int, ...] = (rows,)
        if diagonal is not None:
            shape = (rows, rows)
        elif m is not None:
            shape = (rows, e.static_int(m, "the number of columns"))
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
    size, position = e.static_int(n, "the length"), e.static_int(i, "the position")
    if not 0 <= position < size:
        e.error(f"position {position} is outside of a vector of {size}")
    return e.pack([int(k == position) for k in range(size)], (size,), e.ip if dt is None else scalar_type(e, dt))


_define("Vector.unit", "n i dt=", _unit)
_define("Matrix.unit", "n i dt=", _unit)


def _diagonal(e: Emitter, dim: Any, val: Any) -> Any:
    n = e.static_int(dim, "the size")
    return tensor(e, [val if i == j else 0 for i in range(n) for j in range(n)], (n, n))


_define("Matrix.diag", "dim val", _diagonal)
_define("Matrix.rows", "rows", lambda e, rows: e.tensor_of(rows))
_define("Matrix.cols", "cols", lambda e, cols: tensors.transpose(e, e.tensor_of(cols)))
_define("dot", "a b", tensors.dot)
_define("cross", "a b", tensors.cross)
_define("outer_product", "a b", tensors.outer_product)
_define("normalize", "v eps=", lambda e, v, eps: tensors.normalised(e, v, 0 if eps is None else eps))
_define("length", "v", tensors.length)
_define("distance", "a b", lambda e, a, b: tensors.length(e, apply(e, p.sub, a, b)))
_define("determinant", "m", tensors.determinant)
_define("inverse", "m", tensors.inverse)
_define("transpose", "m", tensors.transpose)
_define("trace", "m", tensors.trace)


def _rotation2d(e: Emitter, angle: Any) -> Any:
    c, s = apply(e, p.cos, angle), apply(e, p.sin, angle)
    return tensor(e, [c, apply(e, p.neg, s), s, c], (2, 2))


_define("rotation2d", "ang", _rotation2d)
_define("Matrix.rotation2d", "alpha", _rotation2d)

# shading-language helpers


def _clamp(e: Emitter, x: Any, low: Any, high: Any) -> Any:
    return apply(e, p.minimum, apply(e, p.maximum, x, low), high)


def _mix(e: Emitter, x: Any, y: Any, a: Any) -> Any:
    return apply(e, p.add, apply(e, p.mul, x, apply(e, p.sub, 1.0, a)), apply(e, p.mul, y, a))


def _smoothstep(e: Emitter, low: Any, high: Any, x: Any) -> Any:
    t = _clamp(e, apply(e, p.div, apply(e, p.sub, x, low), apply(e, p.sub, high, low)), 0.0, 1.0)
    return apply(e, p.mul, apply(e, p.mul, t, t), apply(e, p.sub, 3.0, apply(e, p.mul, 2.0, t)))


def _reflect(e: Emitter, x: Any, n: Any) -> Any:
    return apply(e, p.sub, x, apply(e, p.mul, apply(e, p.mul, 2.0, tensors.dot(e, n, x)), n))


_define("clamp", "x xmin xmax", _clamp)
_define("mix", "x y a", _mix)
_define("smoothstep", "edge0 edge1 x", _smoothstep)
_define("step", "edge x", lambda e, edge, x: apply(e, p.select, apply(e, p.lt, x, edge), 0.0, 1.0))
_define("fract", "x", lambda e, x: apply(e, p.sub, x, apply(e, p.floor, x)))
_define("radians", "x", lambda e, x: apply(e, p.mul, x, math.pi / 180))
_define("degrees", "x", lambda e, x: apply(e, p.mul, x, 180 / math.pi))
_define("reflect", "x n", _reflect)

# random numbers


def _uniform(e: Emitter, dtype: Any) -> Any:
    """A float in [0, 1), or an integer with every bit random."""
    t = e.fp if dtype is None else scalar_type(e, dtype)
    bits = e.random_bits()
    if t is u1:
        return e.cast(e.prim(p.and_, bits, 1), u1)
    if t is f32 or t is f16:
        kept = 24 if t is f32 else 11
        whole = e.cast(e.prim(p.shr, bits, 32 - kept), i32)
        return e.prim(p.mul, e.cast(whole, t), 2.0**-kept)
    if t is f64:
        high = e.cast(e.cast(e.prim(p.shr, bits, 5), i64), f64)
        low = e.cast(e.cast(e.prim(p.shr, e.random_bits(), 6), i64), f64)
        return e.prim(p.mul, e.prim(p.add, e.prim(p.mul, high, 2.0**26), low), 2.0**-53)
    if t.bits == 64:
        wide = e.prim(p.or_, e.prim(p.shl, e.cast(bits, u64), 32), e.cast(e.random_bits(), u64))
        return e.cast(wide, t)
    return e.cast(bits, t)


def _normal(e: Emitter, dtype: Any) -> Any:
    """A standard normal number (Box and Muller, 1958)."""
    t = e.fp if dtype is None else scalar_type(e, dtype)
    if t.kind != "f":
        e.error(f"`randn` gives floats, not {t}")
    radius = e.prim(p.sqrt, e.prim(p.mul, -2.0, e.prim(p.log, e.prim(p.sub, 1.0, _uniform(e, t)))))
    return e.prim(p.mul, radius, e.prim(p.cos, e.prim(p.mul, 2 * math.pi, _uniform(e, t))))


_define("random", "dtype=", _uniform)
_define("randn", "dt=", _normal)

# atomics


def _atomic(name: str, prim: Primitive, negate: bool = False) -> None:
    def expand(e: Emitter, place: Any, value: Any) -> Any:
        if not isinstance(place, Place):
            e.error(f"`{name}` needs a variable or an element of a field, not {describe(place)}")
        wanted = e.wanted
        operand = Value(e.converted(value, place.type, "the target"))
        if negate:
            operand = Value(e.negative(operand.atom, place.type))
        return e.combine(place, prim, operand, wanted)

    BUILTINS[name] = takes_place(simple(name, "x y", expand))


for _name, _prim in (
    ("atomic_add", p.add), ("atomic_mul", p.mul), ("atomic_min", p.minimum), ("atomic_max", p.maximum), ("atomic_and", p.and_), ("atomic_or", p.or_), ("atomic_xor", p.xor),
):  # fmt: skip
    _atomic(_name, _prim)
_atomic("atomic_sub", p.add, negate=True)

# loops and compile time


def _range(e: Emitter, *bounds: Any) -> Any:
    if not 1 <= len(bounds) <= 3:
        e.error(f"`range` takes 1 to 3 arguments, not {len(bounds)}")
    for bound in bounds:
        _whole_number(e, bound, "a bound of `range`")
    lo, hi, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    if step == 0 and not isinstance(step, Value):
        e.error("the step of a range must not be zero")
    return IndexRange(lo, hi, step)


def _whole_number(e: Emitter, bound: Any, what: str) -> None:
    if isinstance(bound, Value) and not bound.shape and bound.dtype.kind in "iu":
        return
    if not isinstance(bound, int):
        e.error(f"{what} must be an integer, not {describe(bound)}", "convert it with `int(…)`" if isinstance(bound, float | Value) else "")


def _ndrange(e: Emitter, *axes: Any) -> Any:
    if not axes:
        e.error("`ndrange` needs at least one extent")
    found: list[tuple[Any, Any]] = []
    for axis in axes:
        if isinstance(axis, IndexRange):
            axis = (axis.lo, axis.hi) if axis.step == 1 else e.error("`ndrange` has no steps")
        if isinstance(axis, tuple | list):
            if len(axis) != 2:
                e.error(f"a range of `ndrange` is one number or a pair, not {describe(axis)}")
            lo, hi = axis
            _whole_number(e, lo, "a bound of `ndrange`")
            _whole_number(e, hi, "a bound of `ndrange`")
            found.append((lo, hi))
            continue
        for extent in e.components(axis) if e.is_value(axis) and e.shape(axis) else [axis]:
            _whole_number(e, extent, "an extent of `ndrange`")
            found.append((0, extent))
    return NdRange(tuple(found))


def _grouped(e: Emitter, front: Any) -> Any:
    if buffer_of(front) is not None:
        return Grouped(FieldDomain(buffer_of(front)))  # type: ignore[arg-type]
    domain = domain_of(e, front)
    if isinstance(domain, NdRange | FieldDomain | StaticSequence):
        return Grouped(domain)
    if isinstance(domain, IndexRange) and domain.step == 1:
        return Grouped(NdRange(((domain.lo, domain.hi),)))
    e.error("`grouped` takes a field or an `ndrange`")


def _static(e: Emitter, *items: Any) -> Any:
    if not items:
        e.error("`static` needs an argument")
    if len(items) > 1:
        return items
    front = items[0]
    if isinstance(front, range) or (is_domain(front) and not isinstance(front, StaticSequence)):
        return StaticSequence(static_items(e, front))
    if isinstance(front, Value) and not (isinstance(front.atom, Lit) or front.shape):
        e.error("`static` needs what is known at compile time; this value exists at run time only")
    if isinstance(front, tuple | list | dict | set | StaticTensor) or buffer_of(front) is not None or is_number(front) or not hasattr(front, "__next__"):
        return front
    return StaticSequence(tuple(front))


_define("range", "*bounds", _range)
_define("ndrange", "*axes", _ndrange)
_define("grouped", "x", _grouped)
_define("static", "*items", _static)


def _loop_config(e: Emitter, args: list[Any], kwargs: dict[str, Any]) -> None:
    known = ("block_dim", "serialize", "parallelize", "block_dim_adaptive", "bit_vectorize")
    for name, value in kwargs.items():
        if name not in known:
            e.error(f"`loop_config` has no option `{name}`", f"it has {', '.join(known)}")
        if not e.is_static(value):
            e.error(f"option `{name}` must be known at compile time")
    if args:
        e.error("the options of `loop_config` are given by name")
    e.loop_options = dict(kwargs)


BUILTINS["loop_config"] = _loop_config


def _static_assert(e: Emitter, condition: Any, message: Any) -> None:
    if not e.is_static(condition):
        e.error("`static_assert` needs what is known at compile time", "`assert` checks while the kernel runs")
    if not e.truth(condition):
        e.error(f"static assertion failed{f': {message}' if message is not None else ''}", kind=KernelSyntaxError)


def _static_print(e: Emitter, *items: Any) -> None:
    print(*[describe(i) if isinstance(i, Value) else i for i in items])


_define("static_assert", "condition message=", _static_assert)
_define("static_print", "*items", _static_print)


def _print(e: Emitter, args: list[Any], kwargs: dict[str, Any]) -> None:
    unknown = [k for k in kwargs if k not in ("sep", "end")]
    if unknown:
        e.error(f"`print` in a kernel has no parameter `{unknown[0]}`", "it has `sep` and `end`")
    between, end = kwargs.get("sep", " "), kwargs.get("end", "\n")
    if not isinstance(between, str) or not isinstance(end, str):
        e.error("`sep` and `end` must be text known at compile time")
    parts: list[Any] = []
    for number, item in enumerate(args):
        if number:
            parts.append(between)
        parts += item.parts if isinstance(item, Text) else [item]
    parts.append(end)
    texts, values = e.text_parts(parts)
    e.b.emit(Print(texts, values, e.b.loc))


BUILTINS["print"] = _print


def _len(e: Emitter, front: Any) -> Any:
    if isinstance(front, tuple | list | str | dict | set):
        return len(front)
    if isinstance(front, StaticSequence):
        return len(front.items)
    buffer = buffer_of(front)
    if buffer is not None and buffer.rank:
        extent = e.b.extent(buffer, 0)
        return int(extent.value) if isinstance(extent, Lit) else Value(extent)
    shape = e.shape(front)
    if not shape:
        e.error(f"{describe(front)} has no length")
    return shape[0]


_define("len", "x", _len)


def _sum(e: Emitter, items: Any, start: Any) -> Any:
    parts = list(static_items(e, items)) if is_domain(items) else e.components(items)
    return total(e, parts if start is None else [start, *parts])


def _zip(e: Emitter, *columns: Any) -> Any:
    return StaticSequence(tuple(zip(*[static_items(e, c) for c in columns], strict=False)))


def _enumerate(e: Emitter, items: Any, start: Any) -> Any:
    return StaticSequence(tuple(enumerate(static_items(e, items), 0 if start is None else e.static_int(start, "the start"))))


_define("sum", "items start=", _sum)
_define("zip", "*columns", _zip)
_define("enumerate", "items start=", _enumerate)
_define("reversed", "items", lambda e, items: StaticSequence(tuple(reversed(static_items(e, items)))))
_define("tuple", "items", lambda e, items: tuple(static_items(e, items)))
_define("list", "items", lambda e, items: list(static_items(e, items)))
_define("any", "items", lambda e, items: disjunction(e, e.components(items)))
_define("all", "items", lambda e, items: conjunction(e, e.components(items)))
_define("int", "x=", _python_number(int))
_define("float", "x=", _python_number(float))
_define("bool", "x=", _python_number(bool))

#: Python's own functions, recognised by identity.
PYTHON: dict[Any, Expansion] = {
    range: BUILTINS["range"], abs: BUILTINS["abs"], min: BUILTINS["min"], max: BUILTINS["max"], int: BUILTINS["int"], float: BUILTINS["float"],
    bool: BUILTINS["bool"], len: BUILTINS["len"], print: BUILTINS["print"], round: BUILTINS["round"], pow: BUILTINS["pow"], sum: BUILTINS["sum"],
    zip: BUILTINS["zip"], enumerate: BUILTINS["enumerate"], tuple: BUILTINS["tuple"], list: BUILTINS["list"], reversed: BUILTINS["reversed"],
    any: BUILTINS["any"], all: BUILTINS["all"],
    math.sin: BUILTINS["sin"], math.cos: BUILTINS["cos"], math.tan: BUILTINS["tan"], math.asin: BUILTINS["asin"], math.acos: BUILTINS["acos"],
    math.atan: BUILTINS["atan"], math.atan2: BUILTINS["atan2"], math.tanh: BUILTINS["tanh"], math.exp: BUILTINS["exp"], math.sqrt: BUILTINS["sqrt"],
    math.log2: BUILTINS["log2"], math.log10: BUILTINS["log10"], math.radians: BUILTINS["radians"], math.degrees: BUILTINS["degrees"], math.isnan: BUILTINS["isnan"],
    math.isinf: BUILTINS["isinf"],
}  # fmt: skip
