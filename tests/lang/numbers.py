"""Fields filled with the corner cases of each number type."""

from typing import Any

import numpy as np

import tinote as ti

__all__ = ["FLOATS", "INTEGERS", "filled", "numpy_of", "samples", "wrapped"]

INTEGERS = [ti.i8, ti.i16, ti.i32, ti.i64, ti.u8, ti.u16, ti.u32, ti.u64]
FLOATS = [ti.f32, ti.f64]


def numpy_of(dtype: Any) -> np.dtype[Any]:
    return np.dtype({"i": "i", "u": "u", "f": "f"}[dtype.kind] + str(dtype.bits // 8))


def filled(dtype: Any, values: Any) -> Any:
    values = np.asarray(values, dtype=numpy_of(dtype))
    x = ti.field(dtype, shape=values.shape)
    x.from_numpy(values)
    return x


def samples(dtype: Any) -> np.ndarray[Any, Any]:
    """Corner cases of an integer type."""
    low, high = int(np.iinfo(numpy_of(dtype)).min), int(np.iinfo(numpy_of(dtype)).max)
    wanted = {low, low + 1, low // 2, -7, -3, -2, -1, 0, 1, 2, 3, 5, 7, 100, high // 2, high - 1, high}
    return np.array(sorted(v for v in wanted if low <= v <= high), dtype=numpy_of(dtype))


def wrapped(dtype: Any, value: int) -> int:
    """What is left of an integer in a type: its lowest bits."""
    low = int(np.iinfo(numpy_of(dtype)).min)
    return (value - low) % (1 << dtype.bits) + low
