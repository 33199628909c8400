"""`ti.lang.util`: what programs ask about number types and other libraries."""

from __future__ import annotations

from importlib import util
from typing import Any

import numpy as np

from tinote.lang.data.matrix import numpy_type
from tinote.lang.session.state import scalar_type

__all__ = ["cook_dtype", "has_pytorch", "to_numpy_type"]

cook_dtype = scalar_type


def has_pytorch() -> bool:
    """Whether PyTorch is installed."""
    return util.find_spec("torch") is not None


def to_numpy_type(dtype: Any) -> type[np.generic]:
    """The NumPy type of these numbers: `np.float32` of `ti.f32`."""
    return numpy_type(scalar_type(dtype)).type
