"""Device functions called in Python scope: annotations convert what they take and return, as they do in kernels."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from tinote.compiler.function_source import FunctionSource
from tinote.compiler.protocol import is_template, meant, members_of, struct_of, type_of
from tinote.errors import FieldError, KernelTypeError
from tinote.ir.types import Scalar, Tensor, scalar_named, shape_of
from tinote.lang.data.matrix import Matrix, Vector, cast_numbers
from tinote.lang.data.traced import holds_traced, plain
from tinote.lang.session.state import session
from tinote.source import caller

_COLLECTING = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class AnnotatedCall:
    """Calls a function and converts by its annotations: `parameters` by name, and that of the result, if any."""

    def __init__(self, source: FunctionSource, parameters: dict[str, Any], result: Any) -> None:
        self._name = source.name
        self._parameters = parameters
        self._result = result

    def __call__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._parameters:
            given = inspect.signature(function).bind(*args, **kwargs)
            given.apply_defaults()
            for name, hint in self._parameters.items():
                if name in given.arguments:
                    given.arguments[name] = self._argument(name, hint, given.arguments[name])
            args, kwargs = given.args, given.kwargs
        found = function(*args, **kwargs)
        return found if self._result is None else self._returned(found)

    def _argument(self, name: str, hint: Any, value: Any) -> Any:
        def wrong(kind: str) -> KernelTypeError:
            return KernelTypeError(f"{subject} is {kind}, and is called with {value!r}", caller())

        subject = f"parameter `{name}` of `{self._name}`"
        other = _other_shape(hint, value)
        if other:
            _warn(f"{subject} is {other}, and is called with {value!r}, which it takes as it is")
            return value
        found = _converted(hint, value, wrong)
        if _cuts(hint, value):
            _warn(f"{subject} holds integers: the fraction of its argument is cut off")
        return found

    def _returned(self, value: Any) -> Any:
        def wrong(kind: str) -> KernelTypeError:
            return KernelTypeError(f"`{self._name}` is annotated to return {kind}, and returns {value!r}", caller())

        def converted(hint: Any, one: Any) -> Any:
            other = _other_shape(hint, one)
            if other:
                _warn(f"`{self._name}` is annotated to return {other}, and returns {one!r}; the annotation is ignored")
                return one
            return _converted(hint, one, wrong)

        parts = _parts(self._result)
        if parts is None:
            return converted(self._result, value)
        if not isinstance(value, tuple | list) or len(value) != len(parts):
            raise wrong(f"{len(parts)} values")
        return tuple([converted(hint, one) for hint, one in zip(parts, value, strict=True)])


def annotated_call(source: FunctionSource, function: Callable[..., Any]) -> AnnotatedCall | None:
    """What converts by the annotations of a device function; `None` where no type is annotated."""
    scope = {**source.globals, **source.enclosed()}
    found: dict[str, Any] = {}
    for name, hint in source.annotations.items():
        hint = _evaluated(hint, scope)
        if not is_template(hint) and any(_type(part) is not None for part in _parts(hint) or (hint,)):
            found[name] = hint
    result = found.pop("return", None)
    collecting = [q.name for q in inspect.signature(function).parameters.values() if q.kind in _COLLECTING]
    parameters = {name: hint for name, hint in found.items() if name not in collecting}
    return AnnotatedCall(source, parameters, result) if parameters or result is not None else None


def _evaluated(hint: Any, scope: dict[str, Any]) -> Any:
    """What an annotation that is text stands for, as the front end evaluates it; text that says nothing stays."""
    for _ in range(2):  # text may be annotated where all annotations are kept as text
        if isinstance(hint, str):
            try:
                hint = meant(eval(hint, scope))
            except Exception:
                break
    return hint


def _parts(hint: Any) -> tuple[Any, ...] | None:
    """The annotations of several values, in order; `None` for that of one."""
    if getattr(hint, "__origin__", None) is tuple:
        return tuple(hint.__args__)
    return hint if isinstance(hint, tuple) and not isinstance(hint, Tensor) else None


def _type(hint: Any) -> Any:
    """The type that an annotation stands for, or `None`."""
    config = session.config
    return struct_of(hint) or type_of(hint, scalar_named(config.default_fp), scalar_named(config.default_ip))


def _warn(message: str) -> None:
    span = caller()
    warnings.warn_explicit(message, UserWarning, span.file, span.line)


def _other_shape(hint: Any, value: Any) -> str:
    """What an annotated number, vector or matrix is, where a value is one of another shape, as it may be in kernels."""
    t = _type(hint)
    if not isinstance(t, Scalar | Tensor) or not (isinstance(value, Matrix) or _is_number(value)):
        return ""
    shape = value.shape if isinstance(value, Matrix) else np.shape(plain(value))
    return "" if shape == shape_of(t) else _in_words(t)


def _in_words(t: Scalar | Tensor) -> str:
    return f"a number of type {t}" if isinstance(t, Scalar) else f"a vector or matrix of shape {t.shape} of {t.dtype}"


def _converted(hint: Any, value: Any, wrong: Callable[[str], Exception]) -> Any:
    """A value as one of the annotated type. Raises what `wrong` makes of the words for that type."""
    t = _type(hint)
    if t is None:
        return value
    if isinstance(t, Scalar):
        if np.ndim(plain(value)) or not _is_number(value):
            raise wrong(_in_words(t))
        return cast_numbers(value, t)
    if isinstance(t, Tensor):
        make = Vector if len(t.shape) == 1 else Matrix
        try:
            held = value if isinstance(value, Matrix) else make(value)
        except (TypeError, ValueError, FieldError):
            raise wrong(_in_words(t)) from None
        if held.shape != t.shape:
            raise wrong(_in_words(t))
        return make(cast_numbers(held.values, t.dtype))
    members = members_of(value) or value
    if not isinstance(members, dict) or members.keys() != t.members.keys():
        raise wrong(f"a struct with members {', '.join(t.members)}")
    try:
        return hint(**members)
    except FieldError as error:
        raise wrong(f"a struct `{t.name}` ({error.message})") from None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.generic) or holds_traced(value) or np.asarray(value).dtype.kind in "biuf"


def _cuts(hint: Any, value: Any) -> bool:
    """Whether integers are annotated for numbers that have fractions."""
    t = _type(hint)
    if isinstance(t, Scalar | Tensor):
        dtype = t if isinstance(t, Scalar) else t.dtype
        numbers = np.asarray(plain(value.values if isinstance(value, Matrix) else value))
        return dtype.kind in "iu" and numbers.dtype.kind == "f" and bool((numbers != np.floor(numbers)).any())
    if t is None:
        return False
    members = members_of(value) or value
    return any(_cuts(hint.type_of(name), member) for name, member in members.items())
