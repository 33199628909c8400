"""A field's numbers in other libraries: NumPy, PyTorch, and any library that supports DLPack."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from tinote.errors import FieldError
from tinote.ir.types import Scalar
from tinote.lang.session.state import clears_duals


class Exchanged:
    """What other libraries ask a field for."""

    dtype: Scalar
    name: Any
    array_copy: Callable[..., np.ndarray[Any, Any]]
    to_numpy: Callable[..., np.ndarray[Any, Any]]
    from_numpy: Callable[[Any], None]
    numpy_view: Callable[[], np.ndarray[Any, Any]]
    _array: np.ndarray[Any, Any]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """What NumPy makes of it: `np.asarray(x)` shares the memory, `np.array(x)` copies. Inside of forward mode both
        copy: a shared array counts as a write, which would clear the dual.
        """
        if copy is True or (copy is None and clears_duals()):
            return self.array_copy(dtype)
        view = self.numpy_view()
        if dtype is None or np.dtype(dtype) == view.dtype:
            return view
        if copy is False:
            raise ValueError(f"'{self.name}' holds {self.dtype}: as {np.dtype(dtype)} it must be copied")
        return self.array_copy(dtype)

    def __dlpack__(self, **options: Any) -> Any:
        """The memory itself, for any library that takes part in DLPack: `torch.from_dlpack(x)`."""
        return self.numpy_view().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def to_torch(self, device: Any = None, *, keep_dims: bool = False) -> Any:
        """Copy the elements into a new PyTorch tensor.

        Parameters
        ----------
        device : torch.device or str, optional
            Where the tensor is, by default on the CPU.
        keep_dims : bool, default False
            Give vectors as matrices of one column.

        Returns
        -------
        torch.Tensor, of the field's shape followed by the element's
            The copy.

        Examples
        --------
        >>> import torch
        >>> x = ti.field(ti.f32, shape=2)
        >>> x.fill(4.0)
        >>> x.to_torch()
        tensor([4., 4.])
        """
        tensor = importlib.import_module("torch").from_numpy(self.to_numpy(keep_dims=keep_dims))
        return tensor if device is None else tensor.to(device)

    def from_torch(self, tensor: Any) -> None:
        """Copy the elements of a PyTorch tensor in, from any device.

        Parameters
        ----------
        tensor : torch.Tensor
            The values, in a shape that `from_numpy` takes.

        Raises
        ------
        FieldError
            For what is not a tensor, or has another shape.

        Examples
        --------
        >>> import torch
        >>> x = ti.field(ti.f32, shape=2)
        >>> x.from_torch(torch.tensor([1.0, 2.0]))
        >>> x[1]
        2.0
        """
        if not isinstance(tensor, importlib.import_module("torch").Tensor):
            raise FieldError(f"from_torch takes a PyTorch tensor, not {type(tensor).__name__}")
        self.from_numpy(tensor.detach().cpu().numpy())
