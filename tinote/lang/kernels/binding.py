"""Argument binding: from the arguments of a call to the key of an instance and the values of a launch.

For each kernel a function of its own is made, with the kernel's parameters, so that Python itself matches arguments,
keywords and defaults. For `def k(f: ti.template(), a: ti.types.ndarray(), v: vec3, n: ti.i32 = 1)` it reads:

    def bind(f, a, v, n):
        kind_a, a = array_1(a)
        return (identity_of(f), kind_a), (a, *numbers_2(v), n)

The first tuple is the key of the instance: the identity of each template argument and the kind of each array. (A
number, vector or struct has the type of its annotation.) The second is what a launch gets.
"""

from __future__ import annotations

import ast
import functools
import math
import types
from collections.abc import Callable, Iterator
from enum import Enum
from numbers import Integral, Real
from typing import Any, NamedTuple

from tinote.compiler.protocol import StructInfo, adds_at, is_array, is_template, pack_of, struct_of, type_of, unit_of
from tinote.compiler.requests import Defaults, defaults_of
from tinote.compiler.signature import (
    ArgumentSpec,
    ArrayArgument,
    PackArgument,
    StructArgument,
    TemplateArgument,
    ValueArgument,
)
from tinote.config import Config
from tinote.errors import KernelArgumentError, KernelTypeError, shown, wrong_call
from tinote.ir.types import Scalar, Tensor, f64, i64
from tinote.lang.data.matrix import Matrix, is_number
from tinote.lang.data.ndarrays import ArrayBuffers, argument_error
from tinote.lang.data.no_arithmetic import in_place_of
from tinote.lang.data.structured import numbers_in
from tinote.lang.data.traced import Traced
from tinote.lang.kernels.identity import identity_of
from tinote.lang.kernels.instance_table import InstanceTable
from tinote.lang.kernels.parameters import Parameters
from tinote.lang.session.missing import LeftOut

#: The key of an instance, and the values of a launch: arrays, then numbers.
Bound = tuple[tuple[Any, ...], tuple[Any, ...]]


class Passed(Enum):
    """Parameters that an instance is chosen by, and not a type."""

    TEMPLATE = "template"
    ARRAY = "array"


class Single(NamedTuple):
    """One of the arguments that a call consists of: a parameter, or a member of an argument pack. `variable` holds it
    in the function that binds.
    """

    node: ast.arg
    name: str
    hint: Any
    type: Scalar | Tensor | StructInfo | Passed
    variable: str


class Binding:
    """How one kernel binds arguments under one session's options. Raises `KernelTypeError` for a parameter whose
    annotation is not a type.

    `types`: what each single argument is; with a key, all that an instance is made for. `instances`: those that were
    made so far, by their keys. `bind(*args, **kwargs)` gives `Bound`; it raises `TypeError` for a call that does not
    fit the parameters, and `KernelArgumentError` for an argument that does not fit its annotation. Numbers are left to
    the launch (`explain`).
    """

    def __init__(self, parameters: Parameters, buffers: ArrayBuffers, config: Config, generation: int) -> None:
        self.generation = generation
        self.instances = InstanceTable()
        self._parameters = parameters
        self._buffers = buffers
        defaults = defaults_of(config)
        prefix = "_"
        while any(name.startswith(prefix) for name in parameters.names):
            prefix += "_"
        self._prefix = prefix
        pairs = zip(parameters.nodes, parameters.annotations, strict=True)
        self._singles = [s for node, hint in pairs for s in self._split(node, node.arg, hint, node.arg, defaults)]
        self.types = tuple([single.type for single in self._singles])
        self.arrays = self.types.count(Passed.ARRAY)
        self.has_templates = Passed.TEMPLATE in self.types
        self.bind: Callable[..., Bound] = self._make()

    def _split(self, node: ast.arg, name: str, hint: Any, variable: str, defaults: Defaults) -> Iterator[Single]:
        """The single arguments that a parameter stands for."""
        members = pack_of(hint)
        if members is None:
            yield Single(node, name, hint, self._type(node, name, hint, defaults), variable)
            return
        for member, inner in members.items():
            yield from self._split(node, f"{name}.{member}", inner, f"{self._prefix}{variable}_{member}", defaults)

    def _type(
        self, node: ast.arg, variable: str, hint: Any, defaults: Defaults
    ) -> Scalar | Tensor | StructInfo | Passed:
        if is_template(hint):
            return Passed.TEMPLATE
        if is_array(hint):
            return Passed.ARRAY
        found = struct_of(hint) or type_of(hint, defaults.fp, defaults.ip)
        if isinstance(hint, LeftOut):
            raise hint.__tinote_error__(self._parameters.span_of(node))
        if found is None:
            name = self._parameters.source.name
            written = node.annotation if variable == node.arg else None
            shown = repr(hint) if written is None else f"`{ast.unparse(written)}`"
            raise KernelTypeError(
                f"parameter '{variable}' of kernel '{name}' is annotated with {shown}, which is not a type",
                self._parameters.span_of(node),
                "numbers are `ti.i32`, `ti.f32`, …, arrays `ti.types.ndarray()`, fields `ti.template()`",
            )
        return found

    # ---- making `bind`

    def _make(self) -> Callable[..., Bound]:
        source, prefix = self._parameters.source, self._prefix
        # It counts as one of this package's, not of the user's, where errors and warnings look for a place.
        scope: dict[str, Any] = {"__name__": __name__, f"{prefix}identity_of": identity_of}
        lines: list[str] = []
        key: list[str] = []
        arrays: list[str] = []
        numbers: list[str] = []
        for node, hint in zip(self._parameters.nodes, self._parameters.annotations, strict=True):
            if pack_of(hint) is not None:
                members = [single.variable for single in self._singles if single.node is node]
                scope[f"{prefix}leaves_{node.arg}"] = functools.partial(self._leaves, node, hint)
                lines.append(f"{_tuple(members)} = {prefix}leaves_{node.arg}({node.arg})")
        for number, (node, _, hint, t, name) in enumerate(self._singles):
            helper = f"{prefix}{number}"
            match t:
                case Passed.TEMPLATE:
                    key.append(f"{prefix}identity_of({name})")
                case Passed.ARRAY:
                    scope[helper] = hint.binder(argument_error(source, node))
                    lines.append(f"{prefix}kind{number}, {name} = {helper}({name})")
                    key.append(f"{prefix}kind{number}")
                    arrays.append(name)
                case Scalar() if t.kind == "b":
                    scope[helper] = functools.partial(self._truth, node)
                    numbers.append(f"{helper}({name})")
                case Scalar():
                    numbers.append(name)
                case Tensor():
                    scope[helper] = functools.partial(self._components, node, t)
                    numbers.append(f"*{helper}({name})")
                case StructInfo():
                    scope[helper] = functools.partial(self._members, node, hint, t)
                    numbers.append(f"*{helper}({name})")
        lines.append(f"return {_tuple(key)}, {_tuple([*arrays, *numbers])}")
        text = f"def bind({_declared(source.tree.args)}):\n" + "".join(f"    {line}\n" for line in lines)
        exec(compile(text, f"<arguments of {source.name}>", "exec"), scope)
        bind: types.FunctionType = scope["bind"]
        arguments, given = source.tree.args, source.defaults
        bind.__defaults__ = tuple([given[a.arg] for a in (*arguments.posonlyargs, *arguments.args) if a.arg in given])
        bind.__kwdefaults__ = {a.arg: given[a.arg] for a in arguments.kwonlyargs if a.arg in given}
        return bind

    def _truth(self, node: ast.arg, value: Any) -> Any:
        """A number for a truth value; Python would ask any object."""
        if type(value) is not bool and not is_number(value):
            raise self._bad_argument(node, value, "a number of type u1")
        return value

    def _components(self, node: ast.arg, t: Tensor, value: Any) -> list[Any]:
        """The numbers of a vector or matrix."""
        source = value if isinstance(value, Matrix) else _matrix_or_none(value)
        if source is None or source.shape != t.shape:
            kind = "vector" if len(t.shape) == 1 else "matrix"
            raise self._bad_argument(node, value, f"a {kind} of shape {t.shape}")
        return source.values.ravel().tolist()

    def _members(self, node: ast.arg, hint: Any, info: StructInfo, value: Any) -> list[Any]:
        """The numbers of a struct."""
        return numbers_in(hint, info, value, functools.partial(self._bad_argument, node, value))

    def _leaves(self, node: ast.arg, hint: Any, value: Any) -> list[Any]:
        """What an argument pack, or a builder, holds."""
        found = hint.__tinote_leaves__(value)
        if found is None:
            raise self._bad_argument(node, value, hint.__tinote_expected__())
        return found

    # ---- off the fast path

    def specs(self, key: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[ArgumentSpec]:
        """What these arguments, which were bound under `key`, are to the compiler."""
        parts = iter(key)
        singles = iter(self._singles)

        def spec(hint: Any, value: Any) -> ArgumentSpec:
            members = pack_of(hint)
            if members is not None:
                return PackArgument({name: spec(inner, None) for name, inner in members.items()}, adds_at(value))
            single = next(singles)
            match single.type:
                case Passed.TEMPLATE:
                    next(parts)
                    return TemplateArgument(value.value if type(value) is Traced else value)
                case Passed.ARRAY:
                    return ArrayArgument(self._buffers.of(single.name, next(parts)), hint.clamps)
                case StructInfo() as info:
                    return StructArgument(info)
                case t:
                    return ValueArgument(t, unit_of(hint))

        ordered = self._parameters.in_order(args, kwargs)
        return [spec(hint, value) for hint, value in zip(self._parameters.annotations, ordered, strict=True)]

    def explain(self, values: tuple[Any, ...]) -> None:
        """Raise `KernelArgumentError` when a number of a launch did not fit its type; return when something else was
        wrong.
        """
        at = self.arrays
        for node, _, _, t, _ in self._singles:
            if isinstance(t, Passed):
                continue
            for scalar in _scalars(t):
                if not _fits(scalar, values[at]):
                    what = "a number" if isinstance(t, Scalar) else "made of numbers"
                    problem = self._bad_argument(node, values[at], f"{what} of type {scalar}")
                    problem.hint = _wider(scalar, values[at])
                    raise problem from None
                at += 1

    def _bad_argument(self, node: ast.arg, value: Any, expected: str) -> KernelArgumentError:
        source = self._parameters.source
        message = f"argument '{node.arg}' of kernel '{source.name}' must be {expected}, not {shown(value)}"
        return wrong_call(message, self._parameters.span_of(node))


def _scalars(t: Scalar | Tensor | StructInfo) -> list[Scalar]:
    """The type of each number that an argument consists of, in order."""
    if isinstance(t, StructInfo):
        return [scalar for leaf in t.leaves() for scalar in _scalars(leaf)]
    return [t.dtype] * t.count if isinstance(t, Tensor) else [t]


def _declared(arguments: ast.arguments) -> str:
    """The parameters as a `def` line lists them, without types and defaults."""
    by_position, either, by_name = (
        [a.arg for a in group] for group in (arguments.posonlyargs, arguments.args, arguments.kwonlyargs)
    )
    return ", ".join([*by_position, *(["/"] if by_position else []), *either, *(["*"] if by_name else []), *by_name])


def _tuple(items: list[str]) -> str:
    return f"({''.join(f'{item}, ' for item in items)})"


def _matrix_or_none(value: Any) -> Matrix | None:
    if isinstance(value, int):  # which `Matrix` takes for a size
        return None
    try:
        return Matrix(value)
    except Exception:
        return None


def _wider(t: Scalar, value: Any) -> str:
    """What to do about a number that does not fit `t`, or a field in its place; nothing where it is something else."""
    if not isinstance(value, Real) or not is_number(value):
        return in_place_of(value)
    if t.kind == "f":
        return "" if t is f64 else f"it is too large for {t}: annotate a wider type, such as `ti.f64`"
    if not isinstance(value, Integral):
        return "round it with `int(…)`, or annotate a float type"
    return "annotate a wider type, such as `ti.i64`" if i64.lowest <= int(value) <= i64.highest else ""


def _fits(t: Scalar, value: Any) -> bool:
    """Whether a Python value may be passed for a number of type `t`."""
    try:
        if t.kind == "f":
            number = float(value)
            return is_number(value) and (not math.isfinite(number) or math.isfinite(t.round(number)))
        number = value.__index__()
    except (TypeError, ValueError, AttributeError, OverflowError):
        return False
    return t.lowest <= number <= t.highest
