"""What is saved of a value, and how fields, arrays and controls get it back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeGuard

import numpy as np

from tinote.errors import StateError
from tinote.lang.data.components import ComponentField
from tinote.lang.data.fields import Field
from tinote.lang.data.layout import array_over
from tinote.lang.data.matrix import Matrix
from tinote.lang.data.sparse.fields import SparseField
from tinote.lang.data.structs import Struct, StructField
from tinote.source import caller

#: What a file holds of a value: an array, what JSON has, or that of each member by its name.
Saved = Any


def saved(name: str, value: Any) -> Saved:
    """What a file holds of the value called `name`. Raises `StateError` for what cannot be saved."""
    if isinstance(value, StructField):
        return StructField.to_numpy(value)
    if isinstance(value, Struct):
        return {member: saved(f"{name}.{member}", held) for member, held in vars(value).items()}
    if isinstance(value, SparseField):
        indices, values = value.to_sparse()
        return {"shape": np.array(value.shape), "indices": indices, "values": values}
    if isinstance(value, Field):
        return value.array_copy()
    if isinstance(value, ComponentField | Matrix):
        return value.to_numpy()
    if is_control(value):
        return saved(name, value.value)
    if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        return np.asarray(value)
    if _is_json(value):
        return value
    raise StateError(
        f"{name!r} cannot be saved: it is of type {type(value).__name__}",
        caller(),
        hint="save fields, structs, arrays, vectors, numbers, text, and lists and dictionaries of numbers and text",
    )


def is_control(value: Any) -> TypeGuard[Any]:
    """Whether a value is a slider or another control, whose `value` may be set."""
    return hasattr(type(value), "value") and hasattr(value, "observe")


def _is_json(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_json, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) for key in value) and all(map(_is_json, value.values()))
    return value is None or isinstance(value, bool | int | float | str)


def arrays_in(name: str, found: Saved) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """The arrays of what is saved, by full names: the members of structs are called `particles.mass`."""
    if isinstance(found, np.ndarray):
        yield name, found
    elif isinstance(found, dict):
        for member, value in found.items():
            yield from arrays_in(f"{name}.{member}", value)


def setter(name: str, target: Any, found: Saved) -> Callable[[], None]:
    """What writes a saved value to a target of the same type and shape. Raises `StateError` for another."""
    if is_control(target):
        value = found.item() if isinstance(found, np.ndarray) and found.ndim == 0 else found
        return lambda: setattr(target, "value", value)
    if isinstance(target, StructField):
        _compare(name, StructField.to_numpy(target), found)
        return lambda: StructField.from_numpy(target, found)
    if isinstance(target, SparseField):
        _compare_sparse(name, target, found)
        return lambda: target.from_sparse(found["indices"], found["values"])
    if isinstance(target, Field):
        _compare(name, target.held(), found)
        return lambda: target.from_numpy(found)
    if isinstance(target, ComponentField):
        _compare(name, target.to_numpy(), found)
        return lambda: target.from_numpy(found)
    if isinstance(target, np.ndarray) and target.flags.writeable:
        _compare(name, target, found)
        return lambda: target.__setitem__(..., found)
    raise StateError(
        f"{name!r} cannot be loaded into {_called(target)}",
        caller(),
        hint=f'take the value from what ti.load gives: ti.load(path)["{name}"]',
    )


def _called(target: Any) -> str:
    return "a read-only array" if isinstance(target, np.ndarray) else f"a value of type {type(target).__name__}"


def _compare(name: str, own: Saved, found: Saved) -> None:
    """Raise `StateError` where what is saved is not of the type and shape of what is there."""
    if isinstance(own, dict) and isinstance(found, dict) and own.keys() == found.keys():
        for member, value in own.items():
            _compare(f"{name}.{member}", value, found[member])
    elif _kind(own) != _kind(found):
        raise StateError(f"{name!r} holds {_kind(own)}, and the file {_kind(found)}", caller())


def _compare_sparse(name: str, field: SparseField, found: Saved) -> None:
    """The same for a sparse field, with all that may be active in it."""
    if not _is_sparse(found):
        raise StateError(f"{name!r} is a sparse field, and the file holds {_kind(found)}", caller())
    held = f"{found['values'].dtype} of shape {(*found['shape'].tolist(), *found['values'].shape[1:])}"
    own = f"{array_over(field.buffer, field.memory).dtype} of shape {(*field.shape, *field.element)}"
    if held != own:
        raise StateError(f"{name!r} holds {own}, and the file {held}", caller())


def _is_sparse(found: Saved) -> bool:
    return isinstance(found, dict) and found.keys() == {"shape", "indices", "values"}


def _kind(found: Saved) -> str:
    if isinstance(found, np.ndarray):
        return f"{found.dtype} of shape {found.shape}" if found.ndim else f"one {found.dtype}"
    if _is_sparse(found):
        return f"a sparse field of {found['values'].dtype} and shape {tuple(found['shape'].tolist())}"
    if isinstance(found, Mapping):
        return f"a struct of {', '.join(found) or 'nothing'}"
    return f"{found!r}"
