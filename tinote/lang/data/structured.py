"""Flattening of structs for launches: their numbers in order, and the struct that a kernel returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any

import numpy as np

from tinote.compiler.function_source import FunctionSource
from tinote.compiler.protocol import StructInfo, meant, members_of, struct_of
from tinote.errors import FieldError
from tinote.ir.types import Scalar, Tensor
from tinote.lang.data.matrix import Matrix, Vector, numpy_type
from tinote.lang.data.traced import holds_traced, stored, traced_array


def numbers_in(hint: Any, info: StructInfo, value: Any, wrong: Callable[[str], Exception]) -> list[Any]:
    """The numbers of a struct, or of a dictionary, that is passed where the type `hint` is annotated. Raises what
    `wrong` makes of the words for what was expected.
    """
    members = members_of(value)
    if members is None:
        members = value if isinstance(value, dict) else None
    if members is None or members.keys() != info.members.keys():
        raise wrong(f"a struct with members {', '.join(info.members)}")
    _refuse_floats(info, members, wrong)
    try:
        return _flat(hint(**members))
    except FieldError as error:
        raise wrong(f"a struct `{info.name}` ({error.message})") from None


def _refuse_floats(info: StructInfo, members: Mapping[str, Any], wrong: Callable[[str], Exception]) -> None:
    """As for numbers and vectors, an integer that is passed as a float is refused."""
    for name, t in info.members.items():
        value = members[name]
        if isinstance(t, StructInfo):
            inner = members_of(value) or value
            if isinstance(inner, dict) and inner.keys() == t.members.keys():
                _refuse_floats(t, inner, wrong)
        elif (t if isinstance(t, Scalar) else t.dtype).kind in "iu":
            if np.asarray(stored(value.values if isinstance(value, Matrix) else value)).dtype.kind == "f":
                raise wrong(f"a struct `{info.name}`, whose member '{name}' holds integers")


def _flat(struct: Any) -> list[Any]:
    found: list[Any] = []
    for member in struct.__tinote_members__().values():
        if isinstance(member, Matrix):
            found += member.values.ravel().tolist()
        elif members_of(member) is not None:
            found += _flat(member)
        else:
            found.append(member)
    return found


def results_of(
    source: FunctionSource, types_: Sequence[Scalar | Tensor] | None, as_tuple: bool
) -> Callable[[Sequence[Any]], Any]:
    """What makes of a launch's numbers the value that the kernel returns: a number, vector, matrix, struct or tuple."""
    if types_ is None or (len(types_) == 1 and isinstance(types_[0], Scalar) and not as_tuple):
        return itemgetter(0)
    hint = _returned(source) if as_tuple else None

    def result(numbers: Sequence[Any]) -> Any:
        left = iter(numbers)
        found = [_value_of(t, left) for t in types_]
        return _as_annotated(hint, tuple(found)) if as_tuple else found[0]

    return result


def _value_of(t: Scalar | Tensor, numbers: Iterator[Any]) -> Any:
    if isinstance(t, Scalar):
        return next(numbers)
    found = list(islice(numbers, t.count))
    if holds_traced(found):
        values = traced_array(found).reshape(t.shape)
    else:
        values = np.array(found, numpy_type(t.dtype)).reshape(t.shape)
    return Vector(values) if len(t.shape) == 1 else Matrix(values)


def _struct_from(kind: Any, leaves: Iterator[Any]) -> Any:
    """A struct of this type from its numbers, vectors and matrices in order."""
    members: dict[str, Any] = {}
    for name in kind.members:
        below = kind.type_of(name)
        members[name] = _struct_from(below, leaves) if struct_of(below) is not None else next(leaves)
    return kind(**members)


def _returned(source: FunctionSource) -> Any:
    """What a kernel is annotated to return."""
    hint = source.annotations.get("return")
    if isinstance(hint, str):  # as the front end evaluates it
        hint = meant(eval(hint, {**source.globals, **source.enclosed()}))
    return hint


def _as_annotated(hint: Any, leaves: tuple[Any, ...]) -> Any:
    """The numbers, vectors and matrices that a kernel returned, as the structs or tuple that are annotated."""
    if struct_of(hint) is not None:
        return _struct_from(hint, iter(leaves))
    parts = hint if isinstance(hint, tuple) else getattr(hint, "__args__", ())
    if all(struct_of(part) is None for part in parts):
        return leaves
    rest = iter(leaves)
    return tuple([next(rest) if struct_of(part) is None else _struct_from(part, rest) for part in parts])
