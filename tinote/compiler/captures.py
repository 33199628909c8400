"""The objects outside of a kernel that its code depends on, and whether they are still the same."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from tinote.compiler.function_source import function_of
from tinote.compiler.protocol import constant_of, is_constant_array
from tinote.compiler.pysource.names import CaptureKind, find_again

#: Iterations that all unrolled loops of a kernel have together, and items of what is known at compile time. Chosen, not
#: measured.
MAX_UNROLLED = 100_000


class Evaluation(NamedTuple):
    """A call of Python while a kernel is compiled, whose result may change: a function of the user's, or what an object
    of the user's answers. Of an iterator, the items are the result.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = {}

    def __call__(self) -> Any:
        found = self.function(*self.args, **self.kwargs)
        return tuple(islice(found, MAX_UNROLLED + 1)) if isinstance(found, Iterator) else found

    @property
    def key(self) -> tuple[int, ...]:
        """Equal for the same function of the same objects, as long as both are alive."""
        method = isinstance(self.function, types.MethodType | types.BuiltinMethodType)
        parts = (self.function.__self__, self.function.__name__) if method else (self.function,)
        return tuple(map(id, (*parts, *self.args, *self.kwargs, *self.kwargs.values())))


class Capture(NamedTuple):
    """Something outside of the kernel that its code depends on: where it was read, and what was found."""

    kind: CaptureKind
    owner: Any
    key: Any
    value: Any

    def current(self) -> Any:
        """The present object there. Raises what the reading raises when it is gone."""
        if self.kind is CaptureKind.CONTENT:
            return content_of(self.owner)
        if self.kind is CaptureKind.EVALUATION:
            return self.owner()
        return find_again(self.kind, self.owner, self.key)

    def is_same(self) -> bool:
        """Whether reading it again gives the very object."""
        try:
            return self.current() is self.value
        except (LookupError, AttributeError, ValueError):
            return False

    def unchanged(self) -> bool:
        """Whether the same object, or an equal number, text or tuple of them, is still there; whether an evaluation
        gives the same again.
        """
        if self.kind is CaptureKind.EVALUATION:
            try:
                return same_answer(self.current(), self.value)
            except Exception:  # the user's own code: compiling again says what is wrong
                return False
        try:
            now = self.current()
        except (LookupError, AttributeError, ValueError):
            return False
        return now is self.value or same_constant(now, self.value)

    def __repr__(self) -> str:
        return f"<captured {self.kind.value} {self.key or ''}>"


_CONSTANTS = (bool, int, float, str, bytes)


def same_constant(a: Any, b: Any) -> bool:
    """Whether two compile-time constants are interchangeable: same type and value, tuples item by item, methods by
    function and owner; other objects by identity.
    """
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(same_constant(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, _CONSTANTS):
        return a == b and str(a) == str(b)  # the text tells 0.0 from -0.0
    # A method is a new object each time it is looked up.
    if isinstance(a, types.MethodType):
        return a.__self__ is b.__self__ and a.__func__ is b.__func__
    source = function_of(a)
    return (
        source is not None
        and source is function_of(b)
        and getattr(a, "__tinote_self__", None) is getattr(b, "__tinote_self__", None)
        and getattr(a, "__tinote_replacement__", None) is getattr(b, "__tinote_replacement__", None)
    )


#: How deep the answers of Python functions are compared; deeper ones count as different. Chosen, not measured.
_MAX_ANSWER_DEPTH = 20


def same_answer(a: Any, b: Any, depth: int = 0) -> bool:
    """Whether two results of one evaluation mean the same to a kernel: constants by value, containers, NumPy arrays and
    objects made anew by what they hold.
    """
    if same_constant(a, b):
        return True
    if type(a) is not type(b) or depth > _MAX_ANSWER_DEPTH:
        return False
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(same_answer(x, y, depth + 1) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return same_answer(list(a.items()), list(b.items()), depth + 1)
    if isinstance(a, set | frozenset | range):
        return a == b
    if type(a).__module__ == "numpy" and hasattr(a, "tobytes"):
        return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    if constant_of(a) is not None:
        return same_answer(constant_of(a), constant_of(b), depth + 1)
    held = getattr(a, "__dict__", None)
    is_function = isinstance(a, types.FunctionType | types.ModuleType | type)
    return isinstance(held, dict) and not is_function and same_answer(held, b.__dict__, depth + 1)


def content_of(owner: Any) -> Any:
    """A copy of what a captured container or constant holds, as nested tuples and, of NumPy arrays, bytes."""
    if is_constant_array(owner):
        return owner.dtype.str, owner.shape, owner.tobytes()
    constant = constant_of(owner)
    if constant is not None:
        return constant
    items = tuple(owner.items()) if isinstance(owner, dict) else tuple(owner)
    return tuple([content_of(item) if _has_content(item) else item for item in items])


def _has_content(item: Any) -> bool:
    return isinstance(item, tuple | list | dict) or is_constant_array(item)
