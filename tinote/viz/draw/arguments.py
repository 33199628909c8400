"""Argument checks of public views, controls and pages, by the annotations of their signatures.

    @checked
    def slider(view: LiveSimulation, target: Any, low: float, high: float, *, label: str = "") -> FloatSlider:

A call with an argument of another kind, with an unknown keyword or with a missing argument is a `ViewError` at the
caller's line. Numbers of NumPy become numbers of Python, which is what traits take. An annotation that says nothing,
such as `Any`, and one that only type checkers can read are not checked here: what a field or a colour may be is said by
what reads it.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
import re
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePath
from types import NoneType, UnionType
from typing import Any, NamedTuple, ParamSpec, TypeVar, Union

import numpy as np

from tinote import errors
from tinote.errors import closest
from tinote.viz.draw.arrays import ViewError

Given = ParamSpec("Given")
Result = TypeVar("Result")
Class = TypeVar("Class")

LONGEST_SHOWN = 40
"""Characters of a value that a message shows as it is written."""

MOST_LOOKED_AT = 16
"""Elements of a sequence that are checked one by one; data is longer."""


class _Kind(NamedTuple):
    """What an argument may be, in words, and `take`, which gives a value of this kind, or raises `TypeError`."""

    words: str
    take: Callable[[Any], Any]

    def taken(self, name: str, value: Any) -> Any:
        """The value of an argument. Raises `ViewError`."""
        try:
            return self.take(value)
        except TypeError:
            raise ViewError(f"{name} must be {self.words}, not {shown(value)}") from None


def checked(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Have each call of `function` compared with its signature."""

    @functools.wraps(function)
    def call(*args: Given.args, **options: Given.kwargs) -> Result:
        signature = _signature(function)
        try:
            bound = signature.bind(*args, **options)
        except TypeError as error:
            raise _misfit(function, signature, options, error) from None
        kinds = _kinds(function)
        for name, value in bound.arguments.items():
            if name in kinds:
                bound.arguments[name] = kinds[name].taken(name, value)
        return function(*bound.args, **bound.kwargs)

    return call


def checked_methods(kind: type[Class]) -> type[Class]:
    """A class whose public methods are `checked`, and its constructor."""
    for name, method in list(vars(kind).items()):
        if inspect.isfunction(method) and (name == "__init__" or not name.startswith("_")):
            setattr(kind, name, checked(method))
    return kind


def shown(value: Any) -> str:
    """A value in a message: as it is written if that is short, else what it is."""
    plain = isinstance(value, str | bytes | int | float | complex | NoneType | list | tuple | dict | set)
    text = errors.shown(value) if plain else ""
    if text and len(text) <= LONGEST_SHOWN:
        return text
    if inspect.isroutine(value):
        return "a function"
    return errors.with_article(value)


@functools.cache
def _signature(function: Callable[..., object]) -> inspect.Signature:
    return inspect.signature(function)


@functools.cache
def _kinds(function: Callable[..., object]) -> dict[str, _Kind]:
    """What the parameters may be that say so."""
    found: dict[str, _Kind] = {}
    for name, parameter in _signature(function).parameters.items():
        hint = parameter.annotation
        if hint is parameter.empty or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        kind = kind_of(hint, inspect.unwrap(function).__globals__)
        if kind is not None:
            found[name] = kind
    return found


def kind_of(hint: Any, names: dict[str, Any]) -> _Kind | None:
    """What an annotation asks for, with the `names` of its module; None if it cannot be read here or asks nothing."""
    if isinstance(hint, str):
        try:
            hint = eval(hint, names)  # As `typing.get_type_hints` does.
        except NameError:
            return None  # Imported for type checkers alone.
    return _kind(hint)


def unknown_argument(function: str, name: str, known: Sequence[str]) -> ViewError:
    """The error for a keyword that a function does not have."""
    close = closest(name, known)
    hint = f"did you mean `{close}`?" if close else f"it has {', '.join(known)}"
    return ViewError(f"{function} has no argument `{name}`", hint=hint)


def _misfit(
    function: Callable[..., object], signature: inspect.Signature, options: Mapping[str, Any], error: TypeError
) -> ViewError:
    """The error for arguments that the signature does not have."""
    name = f"{function.__qualname__.removesuffix('.__init__').rpartition('.')[2]}()"
    known = [p.name for p in signature.parameters.values() if p.name != "self" and p.kind is not p.VAR_KEYWORD]
    for option in options:
        if option not in known:
            return unknown_argument(name, option, known)
    return ViewError(f"{name}: {error}")


def _kind(hint: Any) -> _Kind | None:
    """What an annotation asks for; None if anything may be given."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, UnionType):
        return _one_of([_kind(part) for part in parts])
    if origin is not None and issubclass(origin, Callable):  # type: ignore[arg-type]
        return _function(parts[0])
    if origin is tuple or (origin is not None and issubclass(origin, Iterable)):
        return _several(origin, parts)
    hint = hint if origin is None else origin
    if getattr(hint, "_is_protocol", False):
        return None
    return _SIMPLE.get(hint) or (_instance(hint) if isinstance(hint, type) and hint not in (Any, object) else None)


def _one_of(kinds: Sequence[_Kind | None]) -> _Kind | None:
    known = [kind for kind in kinds if kind is not None]
    if len(known) < len(kinds):
        return None

    def take(value: Any) -> Any:
        for kind in known:
            try:
                return kind.take(value)
            except TypeError:
                continue
        raise TypeError

    named = [kind.words for kind in known if kind is not _SIMPLE[None]]  # None is what is left out.
    return _Kind(" or ".join(dict.fromkeys(named)), take)


def _function(parameters: Any) -> _Kind:
    """A function that can be called with this many arguments."""
    count = None if parameters is Ellipsis else len(parameters)
    words = {0: "a function without arguments", 1: "a function of one argument"}.get(-1 if count is None else count)

    def take(value: Any) -> Any:
        if not callable(value):
            raise TypeError
        if count is not None and not takes(value, count):
            raise TypeError
        return value

    return _Kind(words or "a function", take)


def takes(function: Callable[..., object], count: int) -> bool:
    """Whether a function can be called with this many arguments, as far as it says."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True  # Written in C, and without one.
    try:
        signature.bind(*(None,) * count)
    except TypeError:
        return False
    return True


def _several(origin: Any, parts: tuple[Any, ...]) -> _Kind:
    """Several values of one kind: a tuple of a certain length, a sequence, or a mapping to them."""
    if issubclass(origin, Mapping):
        each = _kind(parts[1])
        words = f"a dictionary of {_many(each)}"
    else:
        each = _kind(parts[0]) if parts else None
        words = _many(each)
    fixed = len(parts) if origin is tuple and Ellipsis not in parts else None
    if fixed is not None:
        words = f"{ {2: 'two', 3: 'three'}.get(fixed, fixed) } {words}"
    elif not issubclass(origin, Mapping):
        words = f"several {words}"

    def take(value: Any) -> Any:
        if isinstance(value, Mapping) != issubclass(origin, Mapping) or isinstance(value, str | bytes):
            raise TypeError
        elements = list(value.values()) if isinstance(value, Mapping) else value
        sized = hasattr(elements, "__len__")
        indexed = hasattr(elements, "__iter__") and (
            hasattr(elements, "__getitem__") or not issubclass(origin, Sequence)
        )
        if not indexed or (fixed is not None and (not sized or len(elements) != fixed)):
            raise TypeError
        if each is not None and sized and len(elements) <= MOST_LOOKED_AT:
            for element in elements:
                each.take(element)
        return value

    return _Kind(words, take)


def _many(kind: _Kind | None) -> str:
    if kind is None:
        return "values"
    words = kind.words.removeprefix("a ").replace("two ", "pairs of ", 1).replace("three ", "triples of ", 1)
    return re.sub(r"\b(function|number)\b", r"\1s", words)


def _instance(kind: type) -> _Kind:
    def take(value: Any) -> Any:
        if not isinstance(value, kind):
            raise TypeError
        return value

    return _Kind("a path" if issubclass(kind, PurePath) else f"a {kind.__name__}", take)


def _whole(value: Any) -> int:
    if isinstance(value, bool | np.bool_):
        raise TypeError
    return operator.index(value)


def _number(value: Any) -> float:
    if isinstance(value, bool | np.bool_ | str | bytes) or not hasattr(value, "__float__") or np.ndim(value):
        raise TypeError
    number = value if type(value) is int and abs(value) < _LONGEST_INT else float(value)
    if not math.isfinite(number):
        raise TypeError
    return number


_LONGEST_INT = 1 << 53
"""Longer ones NumPy does not take for numbers."""


def _truth(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError
    return bool(value)


def _nothing(value: Any) -> None:
    if value is not None:
        raise TypeError


_SIMPLE: dict[Any, _Kind] = {
    int: _Kind("a whole number", _whole),
    float: _Kind("a number", _number),
    bool: _Kind("True or False", _truth),
    str: _Kind("text", _instance(str).take),
    None: _Kind("None", _nothing),
}
_SIMPLE[NoneType] = _SIMPLE[None]
