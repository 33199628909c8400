"""Memory accesses of nested derivatives: the numbers and arrays that they read and write. A listener is notified, so
that a step with such derivatives can be captured: numbers may be those of the step, in arrays of objects.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinote.ir.buffers import Buffer
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.data.captured_arrays import CapturedArray, taken_copy
from tinote.lang.data.traced import Traced, objects, stored
from tinote.runtime.seam import active_listener

Array = np.ndarray[Any, Any]

#: Arrays of more numbers are not added up number by number.
_FEW = 64


def as_array(value: Any) -> Array:
    """A number as an array of shape (), and an array as it is."""
    if isinstance(value, CapturedArray):
        return value if value.dtype == np.float64 else value.astype(np.float64)
    if type(value) is Traced:
        return objects([value], ())
    return value if isinstance(value, np.ndarray) and value.dtype == object else np.asarray(value, np.float64)


def items_of(array: Array) -> list[Any]:
    """The numbers of an array."""
    if isinstance(array, CapturedArray):
        return [array[index] for index in np.ndindex(array.shape)]
    return array.ravel().tolist()


def plain_array(value: Any) -> Array:
    """What it holds now, to be looked at: a number or an array."""
    return value.view(np.ndarray) if isinstance(value, CapturedArray) else np.asarray(stored(value))


def held_now(buffer: Buffer) -> Array:
    """What a field holds, as an array of f64 of its own."""
    found = taken_copy(numbers(buffer))
    return found if found.dtype == np.float64 else found.astype(np.float64)


def hold(buffer: Buffer, values: Any) -> None:
    """Let a field hold other numbers: a number or an array of as many."""
    held = numbers(buffer)
    assign(held, ..., values if np.ndim(values) == 0 else values.reshape(held.shape))


def store(buffer: Buffer, position: Any, values: Any) -> None:
    """Let elements of a field hold other numbers."""
    assign(numbers(buffer), position, values)


def element_at(buffer: Buffer, position: tuple[int, ...]) -> Any:
    """The number of an element, or of a component of one."""
    held = numbers(buffer)
    value = held[position].item()
    listener = active_listener()
    return value if listener is None else listener.reading(held, position, value)


def accumulate(buffer: Buffer, values: Array) -> None:
    """Add to what a field holds."""
    held = numbers(buffer)
    listener = active_listener()
    if listener is None:
        held[...] += values.reshape(held.shape)
        return
    if held.size > _FEW:
        listener.taking("the sum of two derivatives that are arrays")
    given = values.reshape(held.shape)
    for index in np.ndindex(held.shape):
        add_at(held, index, given[index])


def add_at(array: Array, position: tuple[int, ...], amount: Any) -> None:
    """Add to an element, in double precision, as Python does."""
    listener = active_listener()
    if listener is None:
        array[position] = array[position].item() + amount
    else:
        assign(array, position, listener.reading(array, position, array[position].item()) + amount)


def assign(held: Array, position: Any, values: Any) -> None:
    """Let elements of an array in memory hold other numbers."""
    listener = active_listener()
    plain = stored(values)
    if listener is not None:
        listener.assigning(held, position, plain, values)
    held[position] = plain
