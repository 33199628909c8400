"""`ti.types`: the types of arguments, results and values that are more than one number."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinote.errors import FieldError
from tinote.ir.types import Tensor
from tinote.lang.kernel import template
from tinote.lang.matrix import Matrix, Vector, numpy_type
from tinote.lang.world import scalar_type

__all__ = ["MatrixType", "matrix", "template", "vector"]


class MatrixType:
    """A vector or matrix type: annotates kernel arguments and results; calling it makes a value, in kernels and in Python."""

    def __init__(self, dtype: Any, shape: tuple[int, ...]) -> None:
        for extent in shape:
            if not isinstance(extent, int) or isinstance(extent, bool) or extent < 1:
                raise FieldError(f"a vector or matrix type needs positive dimensions, not {shape}")
        self._type = Tensor(scalar_type(dtype), shape)

    def __tinote_type__(self) -> Tensor:
        return self._type

    def __call__(self, *components: Any) -> Matrix:
        """A value from its components (numbers, vectors, rows), or from one number for all of them."""
        flat = np.concatenate([np.ravel(np.asarray(c.values if isinstance(c, Matrix) else c)) for c in components]) if components else np.zeros(1)
        shape = self._type.shape
        if flat.size not in (1, self._type.count):
            raise FieldError(f"{self!r} needs {self._type.count} components, not {flat.size}")
        values = np.broadcast_to(flat, shape) if flat.size == 1 else flat.reshape(shape)
        return (Vector if len(shape) == 1 else Matrix)(values.astype(numpy_type(self._type.dtype)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MatrixType) and other._type == self._type

    def __hash__(self) -> int:
        return hash((self._type.dtype.name, self._type.shape))

    def __repr__(self) -> str:
        shape, dtype = self._type.shape, self._type.dtype
        return f"ti.types.{'vector' if len(shape) == 1 else 'matrix'}({', '.join(map(str, shape))}, ti.{dtype})"


def vector(n: int, dtype: Any) -> MatrixType:
    """The type of vectors of `n` components."""
    return MatrixType(dtype, (n,))


def matrix(n: int, m: int, dtype: Any) -> MatrixType:
    """The type of `n` by `m` matrices."""
    return MatrixType(dtype, (n, m))
