"""Arrays in Python code while a step is being captured (`lang/capture/`).

They share memory that the step knows, and its replays write other numbers there. Kernels take them, fields and other
such arrays get what they hold, their elements are read as traced numbers, views of them are such arrays again. What
would make other numbers of all elements in Python is refused at the user's line: a replay has no Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tinote.lang.data.layout import warm_copy
from tinote.lang.data.nests import map_leaves
from tinote.lang.data.traced import stored
from tinote.runtime.memory import Memory
from tinote.runtime.seam import active_listener

Array = np.ndarray[Any, Any]

#: NumPy's functions that look at shapes and memory, or give views.
_LOOKS = {
    "shares_memory", "may_share_memory", "shape", "ndim", "size", "array_split", "split", "moveaxis", "transpose",
    "swapaxes", "expand_dims", "squeeze", "broadcast_to", "iscomplexobj",
}  # fmt: skip
#: What an array's own methods would compute, or take out, unrecorded.
_TAKES = (
    "argmax", "argmin", "argpartition", "argsort", "byteswap", "choose", "compress", "cumprod", "cumsum", "dot", "dump",
    "dumps", "nonzero", "partition", "put", "repeat", "resize", "round", "searchsorted", "sort", "take", "tobytes",
    "tofile", "tolist", "trace", "__bool__", "__complex__", "__float__", "__index__", "__int__", "__repr__", "__str__",
    "__format__", "__reduce__", "__reduce_ex__", "__contains__",
)  # fmt: skip


class CapturedArray(np.ndarray):
    """An array of a step that is being captured. When nobody listens any more it is as any array is."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        _take(f"'{ufunc.__name__}' of an array in Python")
        given = {key: _plain_all(value) for key, value in options.items()}
        return getattr(ufunc, method)(*_plain_all(inputs), **given)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        if function.__name__ in _LOOKS:
            return super().__array_function__(function, types, arguments, options)
        _take(f"'{function.__name__}' of an array in Python")
        return function(*_plain_all(arguments), **{key: _plain_all(value) for key, value in options.items()})

    def __getitem__(self, key: Any) -> Any:
        listener = active_listener()
        found = super().__getitem__(key)
        if listener is None:
            return found
        if not isinstance(found, np.ndarray):
            if self.dtype != np.float64:  # which Python's floats are; NumPy computes with others in their own type
                listener.taking(f"an element of an array of {self.dtype.name}")
            place = key if isinstance(key, tuple) else (key,)
            return listener.reading(self.view(np.ndarray), tuple([k for k in place if k is not ...]), found.item())
        if found.size and not np.may_share_memory(found.view(np.ndarray), self.view(np.ndarray)):
            listener.taking("elements of an array that are chosen by a list")
        return found

    def __setitem__(self, key: Any, value: Any) -> None:
        listener = active_listener()
        if listener is not None:
            place = key if isinstance(key, tuple) else (key,)
            number = stored(value)
            listener.assigning(self.view(np.ndarray), place if key is not ... else ..., number, value)
            value = number
        super().__setitem__(key, value)

    def fill(self, value: Any) -> None:
        self[...] = value

    def item(self, *index: Any) -> Any:
        if active_listener() is None:
            return super().item(*index)
        if not index and self.size == 1:
            return self[(0,) * self.ndim]
        place = index[0] if len(index) == 1 and isinstance(index[0], tuple) else index
        if len(place) != self.ndim:
            _take("an element of an array by its number")
        return self[tuple(place)]

    def copy(self, order: Any = "C") -> Any:
        if active_listener() is None:
            return super().copy(order)
        return taken_copy(self.view(np.ndarray), "a copy of an array")

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    def flatten(self, order: Any = "C") -> Any:
        return self.copy().reshape(-1)

    def ravel(self, order: Any = "C") -> Any:
        return self.reshape(-1)

    def reshape(self, *shape: Any, **options: Any) -> Any:
        found = super().reshape(*shape, **options)
        if (
            active_listener() is not None
            and self.size
            and not np.may_share_memory(found.view(np.ndarray), self.view(np.ndarray))
        ):
            _take("another shape of an array whose elements do not lie one after the other")
        return found

    def astype(self, dtype: Any, *args: Any, **options: Any) -> Any:
        listener = active_listener()
        if listener is None:
            return super().astype(dtype, *args, **options)
        if np.dtype(dtype) == self.dtype:
            return self.copy()
        found = np.ndarray(self.shape, dtype, Memory(self.size * np.dtype(dtype).itemsize, clear=False).view())
        with np.errstate(all="ignore"):
            found[...] = self.view(np.ndarray)
        listener.copying(found, self.view(np.ndarray))
        return found.view(CapturedArray)


def taken_copy(array: Array, what: str = "a derivative as an array") -> Array:
    """A copy of numbers in memory that Python gets. `what`: in words."""
    found, listener = warm_copy(array), active_listener()
    return found if listener is None else listener.copied(found, what)


def zeros(shape: tuple[int, ...]) -> Array:
    """An array of f64 for Python to fill."""
    listener = active_listener()
    if listener is None:
        return np.zeros(shape)
    found = np.ndarray(shape, np.float64, Memory(8 * math.prod(shape)).view())
    return listener.copied(found, "a derivative as an array")  # type: ignore[no-any-return]


def single_number(value: Any) -> Any:
    """The number of an array of one, or a number."""
    return value.item() if isinstance(value, np.ndarray) else value


def _refusing(name: str) -> Callable[..., Any]:
    def method(self: CapturedArray, *args: Any, **options: Any) -> Any:
        _take(f"`{name}` of an array")
        return getattr(self.view(np.ndarray), name)(*args, **options)

    method.__name__ = name
    return method


for _name in _TAKES:
    setattr(CapturedArray, _name, _refusing(_name))


def _take(what: str) -> None:
    listener = active_listener()
    if listener is not None:
        listener.taking(what)


def _plain_all(value: Any) -> Any:
    return map_leaves(lambda one: one.view(np.ndarray) if isinstance(one, CapturedArray) else one, value)
