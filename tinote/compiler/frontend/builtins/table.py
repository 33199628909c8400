"""The built-in functions of the language, as the front end expands their calls. `BUILTINS` maps each name to
`expand(emitter, args, kwargs)`.

Arguments are what expressions evaluate to (`values`). An expansion that writes to its first argument is marked by
`takes_place` and gets a `Place` there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

from tinote.compiler.frontend.builtins import derivatives, floats, numbers
from tinote.compiler.frontend.conversions import static_int, truth_of
from tinote.compiler.frontend.descriptions import describe
from tinote.compiler.frontend.emitter import Emitter
from tinote.compiler.frontend.expansion import Expansion, define, parameters_of, simple, takes_place
from tinote.compiler.frontend.expressions import constructors, structs
from tinote.compiler.frontend.expressions import sparse_functions as functions
from tinote.compiler.frontend.expressions.arithmetic import apply, connected, total
from tinote.compiler.frontend.expressions.constructors import truths
from tinote.compiler.frontend.expressions.domains import grouped, is_domain, static_items
from tinote.compiler.frontend.expressions.formatting import static_text, text_parts
from tinote.compiler.frontend.expressions.places import combine, converted, negative
from tinote.compiler.frontend.python.plain_functions import device_function
from tinote.compiler.frontend.scopes import ConstantBinding
from tinote.compiler.frontend.values import (
    IndexRange,
    NdRange,
    Place,
    StaticSequence,
    StaticTensor,
    StructValue,
    Text,
    Value,
    is_number,
)
from tinote.compiler.protocol import space_of
from tinote.errors import KernelSyntaxError
from tinote.ir import primitives as p
from tinote.ir.nodes import Lit, Print
from tinote.ir.primitives import Primitive

BUILTINS: dict[str, Expansion] = {
    **numbers.TABLE,
    **floats.TABLE,
    **derivatives.TABLE,
    **constructors.TABLE,
    **structs.TABLE,
}
_define = define(BUILTINS)

for _name, (_parameters, _function) in functions.TABLE.items():
    _define(_name, _parameters, _function)

# atomics


def _atomic(name: str, prim: Primitive, negate: bool = False) -> None:
    def expand(e: Emitter, place: Any, value: Any) -> Any:
        if not isinstance(place, Place):
            hint = "write one of its elements: `x[i]`" if space_of(place) is not None else ""
            e.error(f"`{name}` needs a variable or an element of a field, not {describe(place)}", hint)
        wanted = e.wanted
        operand = Value(converted(e, value, place.type, "the target", place))
        if negate:
            operand = Value(negative(e, operand.atom, place.type))
        return combine(e, place, prim, operand, wanted)

    BUILTINS[name] = takes_place(simple(name, "x y", expand))


for _name, _prim in (
    ("atomic_add", p.add),
    ("atomic_mul", p.mul),
    ("atomic_min", p.minimum),
    ("atomic_max", p.maximum),
    ("atomic_and", p.and_),
    ("atomic_or", p.or_),
    ("atomic_xor", p.xor),
):
    _atomic(_name, _prim)
_atomic("atomic_sub", p.add, negate=True)

# loops and compile time


def _range(e: Emitter, *bounds: Any) -> Any:
    if not 1 <= len(bounds) <= 3:
        e.error(f"`range` takes 1 to 3 arguments, not {len(bounds)}")
    bounds = tuple([_whole_number(e, bound, "a bound of `range`") for bound in bounds])
    lo, hi, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    if step == 0 and not isinstance(step, Value):
        e.error("the step of a range must not be zero")
    return IndexRange(lo, hi, step)


def _whole_number(e: Emitter, bound: Any, what: str) -> Any:
    """A bound as an integer; the fraction of a float is cut off, with a warning unless it is known to have none."""
    if isinstance(bound, Value) and not bound.shape:
        if bound.dtype.kind in "iu":
            return bound
        e.warn(f"{what} is an integer: the fraction of {describe(bound)} is cut off")
        return e.cast(bound, e.ip)
    if isinstance(bound, float) and math.isfinite(bound):
        if bound != int(bound):
            e.warn(f"{what} is an integer: the fraction of {bound} is cut off")
        return int(bound)
    if not isinstance(bound, int):
        e.error(
            f"{what} must be an integer, not {describe(bound)}",
            "name one of its numbers, such as `shape[0]`" if isinstance(bound, tuple | list) else "",
        )
    return bound


def _ndrange(e: Emitter, *axes: Any) -> Any:
    found: list[tuple[Any, Any]] = []
    for axis in axes:
        if isinstance(axis, IndexRange):
            axis = (axis.lo, axis.hi) if axis.step == 1 else e.error("`ndrange` has no steps")
        if isinstance(axis, tuple | list):
            if len(axis) != 2:
                e.error(f"a range of `ndrange` is one number or a pair, not {describe(axis)}")
            lo, hi = axis
            found.append(tuple([_whole_number(e, one, "a bound of `ndrange`") for one in (lo, hi)]))
            continue
        for extent in e.components(axis) if e.is_value(axis) and e.shape(axis) else [axis]:
            found.append((0, _whole_number(e, extent, "an extent of `ndrange`")))
    return NdRange(tuple(found))


def _static(e: Emitter, front: Any, *more: Any) -> Any:
    if more:
        return (front, *more)
    if isinstance(front, range) or (is_domain(front) and not isinstance(front, StaticSequence)):
        return StaticSequence(static_items(e, front))
    if isinstance(front, Value) and not (isinstance(front.atom, Lit) or front.shape):
        e.error(
            "`static` needs what is known at compile time; this value exists at run time only",
            "leave out `ti.static`, or pass the value as a `ti.template()` argument",
        )
    if (
        isinstance(front, tuple | list | dict | set | StaticTensor)
        or space_of(front) is not None
        or is_number(front)
        or not hasattr(front, "__next__")
    ):
        return front
    return StaticSequence(static_items(e, front))


_define("ndrange", "*axes", _ndrange)
_define("grouped", "x", grouped)
_define("static", "x *more", _static)
for _name in ("func", "real_func", "pyfunc"):
    _define(_name, "function", device_function)


def _loop_config(e: Emitter, args: list[Any], kwargs: dict[str, Any]) -> None:
    known = ("block_dim", "serialize", "parallelize", "block_dim_adaptive", "bit_vectorize")
    for name, value in kwargs.items():
        if name not in known:
            e.error(f"`loop_config` has no option `{name}`", f"it has {', '.join(known)}")
        if not e.is_static(value):
            e.error(f"option `{name}` must be known at compile time")
        count = name in ("block_dim", "parallelize")
        if count and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            e.error(f"option `{name}` must be a positive integer, not {describe(value)}")
    if args:
        e.error("the options of `loop_config` are given by name")
    e.loop_options = dict(kwargs)


BUILTINS["loop_config"] = _loop_config

# Hints for other targets: accepted, without effect.
_define("loop_unique", "val covers=", lambda e, val, covers: val)
_define("assume_in_range", "val base low high", lambda e, val, base, low, high: val)
_define("block_local", "*fields", lambda e, *fields: None)
_define("cache_read_only", "*fields", lambda e, *fields: None)
_define("no_activate", "*fields", lambda e, *fields: None)


def _static_assert(e: Emitter, condition: Any, message: Any) -> None:
    if not e.is_static(condition):
        e.error("`static_assert` needs what is known at compile time", "`assert` checks while the kernel runs")
    if not truth_of(e, condition):
        e.error(f"static assertion failed{f': {message}' if message is not None else ''}", kind=KernelSyntaxError)


def _static_print(e: Emitter, *items: Any) -> None:
    e.reproducible = False  # printed at each compilation
    print(*[describe(i) if isinstance(i, Value) else static_text(e, i) for i in items])


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
    texts: list[str | None] = []
    shown: list[tuple[Any, str]] = []
    for part in text_parts(e, parts):
        if not isinstance(part, str):
            texts.append(None)
            shown.append(part)
        elif texts and texts[-1] is not None:
            texts[-1] += part
        else:
            texts.append(part)
    atoms, specs = tuple([a for a, _ in shown]), tuple([s for _, s in shown])
    e.b.emit(Print(tuple(texts), atoms, e.b.loc, specs))


def _len(e: Emitter, front: Any) -> Any:
    if isinstance(front, tuple | list | str | dict | set):
        return len(front)
    if isinstance(front, StaticSequence):
        return len(front.items)
    buffer = space_of(front)
    if buffer is not None and buffer.rank:
        extent = e.b.extent(buffer, 0)
        return int(extent.value) if isinstance(extent, Lit) else Value(extent)
    shape = e.shape(front)
    if not shape:
        e.error(f"{describe(front)} has no length")
    return shape[0]


def _sum(e: Emitter, items: Any, start: Any) -> Any:
    parts = list(static_items(e, items)) if is_domain(items) else e.components(items)
    return total(e, parts if start is None else [start, *parts])


def _zip(e: Emitter, args: list[Any], kwargs: dict[str, Any]) -> Any:
    columns = [static_items(e, column) for column in args]
    if set(kwargs) - {"strict"}:
        e.error("`zip` has no other option than `strict`")
    if kwargs.get("strict") and len({len(column) for column in columns}) > 1:
        e.error(f"`zip` is strict, and gets {' and '.join(str(len(column)) for column in columns)} items")
    return StaticSequence(tuple(zip(*columns, strict=False)))


def _enumerate(e: Emitter, items: Any, start: Any) -> Any:
    return StaticSequence(
        tuple(enumerate(static_items(e, items), 0 if start is None else static_int(e, start, "the start")))
    )


_define("sum", "items start=", _sum)
_define("any", "items", lambda e, items: connected(e, p.or_, e.components(items)))
_define("all", "items", lambda e, items: connected(e, p.and_, e.components(items)))


def _python_number(kind: type) -> Callable[..., Any]:
    def expand(e: Emitter, x: Any) -> Any:
        if x is None:
            return kind()
        if is_number(x) or isinstance(x, str):
            try:
                return kind(x)
            except (ValueError, OverflowError) as error:
                e.error(str(error))
        if kind is bool:
            return truths(e, x)
        return e.cast(x, e.ip if kind is int else e.fp)

    return expand


# classes and Python's own


def _super(e: Emitter, cls: Any, owner: Any) -> Any:
    """`super()` in a method: its class and object are those of the current function."""
    source = e.frame.source
    if cls is None:
        cell, parameters = source.closure.get("__class__"), source.parameters
        first = e.frame.scope.find(parameters[0].arg) if parameters else None
        if cell is None or not isinstance(first, ConstantBinding):
            e.error("`super()` needs a method of a class around it")
        cls, owner = cell.cell_contents, first.value
    if isinstance(owner, StructValue):
        e.error(
            "`super()` cannot be used in a method of a struct, which is its members and no object of a class",
            "write what both methods do as a `ti.func` that takes the struct",
        )
    try:
        return super(cls, owner)
    except TypeError as error:
        e.error(f"calling `super` at compile time failed: {error}")


@cache
def primitive_expansion(name: str, prim: Primitive, definition: FunctionType) -> Expansion:
    """The expansion of a call of the built-in `name`, a primitive with the parameters of `definition`."""
    parameters = parameters_of(definition)
    return lambda e, args, kwargs: apply(e, prim, *parameters.matched(e, name, args, kwargs).values())


#: Python's own functions without a counterpart in the language.
PYTHON: dict[Any, Expansion] = {
    super: simple("super", "type= object=", _super),
    range: simple("range", "*bounds", _range),
    int: simple("int", "x=", _python_number(int)),
    float: simple("float", "x=", _python_number(float)),
    bool: simple("bool", "x=", _python_number(bool)),
    len: simple("len", "x", _len),
    print: _print,
    zip: _zip,
    enumerate: simple("enumerate", "items start=", _enumerate),
    tuple: simple("tuple", "items", static_items),
    list: simple("list", "items", lambda e, items: list(static_items(e, items))),
    reversed: simple("reversed", "items", lambda e, items: StaticSequence(tuple(reversed(static_items(e, items))))),
}
