"""The three ways to write a differentiated program: over fields, over ndarrays, and as a function of NumPy arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

__all__ = ["STYLES", "Arrays", "Fields", "Functional", "Program", "Style"]


class Program(NamedTuple):
    """A built workload: `run` takes the inputs `wrt` and leaves its result in `result`, a field or ndarray."""

    run: Callable[..., None]
    wrt: Sequence[Any]
    result: Any


class Style(ABC):
    """Makes the arrays of a program and differentiates it. Derivatives stay where the style has them."""

    def __init__(self, ti: ModuleType) -> None:
        self.ti = ti

    def parameter(self, ndim: int, dtype: Any = None) -> Any:
        """The annotation of a kernel's parameter that takes an array (default: of f64)."""
        return self.ti.types.ndarray(dtype=dtype or self.ti.f64, ndim=ndim)

    @abstractmethod
    def data(self, values: np.ndarray) -> Any:
        """An array that is not differentiated."""

    @abstractmethod
    def variable(self, values: np.ndarray) -> Any:
        """An array that is differentiated with respect to."""

    @abstractmethod
    def scratch(self, *shape: int) -> Any:
        """An array that the program writes, with a gradient."""

    def gradient(self, program: Program) -> Callable[[], Any]:
        """A function that runs the program and gives the gradient of its result, a single number."""
        ti = self.ti

        def gradient() -> list[Any]:
            with ti.ad.Tape(program.result):
                program.run(*program.wrt)
            return [one.grad for one in program.wrt]

        return gradient

    def gradient_and_hvp(self, program: Program, vector: np.ndarray) -> Callable[[], Any]:
        """A function that gives the gradient and the product of the Hessian and a vector for the only input."""
        found = self.ti.ad.value_and_grad_and_hvp(
            lambda: program.run(*program.wrt), wrt=program.wrt[0], output=program.result
        )
        return lambda: found(vector)[1:]

    def vjp(self, program: Program, seed: np.ndarray) -> Callable[[], Any]:
        """A function that gives the product of a seed of the result's shape and the Jacobian, for each input."""
        product = self.ti.ad.vjp(lambda: program.run(*program.wrt), wrt=program.wrt, loss=program.result)
        return lambda: product(seed)[1]

    def jacobian(self, program: Program) -> Callable[[], Any]:
        """A function that gives the Jacobian with respect to the only input, by forward mode."""
        return self.ti.ad.jacobian(
            lambda: program.run(*program.wrt), wrt=program.wrt[0], output=program.result, mode="forward"
        )


class Fields(Style):
    """Fields, passed to kernels as template arguments."""

    def parameter(self, ndim: int, dtype: Any = None) -> Any:
        return self.ti.template()

    def data(self, values: np.ndarray) -> Any:
        return self._filled(values, needs_grad=False)

    def variable(self, values: np.ndarray) -> Any:
        return self._filled(values, needs_grad=True, needs_dual=True)

    def scratch(self, *shape: int) -> Any:
        return self.ti.field(self.ti.f64, shape, needs_grad=True, needs_dual=True)

    def _filled(self, values: np.ndarray, **options: bool) -> Any:
        made = self.ti.field(self.ti.i32 if values.dtype.kind == "i" else self.ti.f64, values.shape, **options)
        made.from_numpy(values)
        return made


class Arrays(Style):
    """Arrays of ours, passed to kernels that are compiled for any shape."""

    def data(self, values: np.ndarray) -> Any:
        return values

    def variable(self, values: np.ndarray) -> Any:
        made = self.ti.ndarray(self.ti.f64, values.shape, needs_grad=True, needs_dual=True)
        made.from_numpy(values)
        return made

    def scratch(self, *shape: int) -> Any:
        return self.ti.ndarray(self.ti.f64, shape, needs_grad=True, needs_dual=True)


class Functional(Arrays):
    """NumPy arrays in, NumPy arrays out."""

    def variable(self, values: np.ndarray) -> Any:
        return values

    def gradient(self, program: Program) -> Callable[[], Any]:
        function = self.ti.ad.value_and_grad(program.run, argnums=positions(program), loss=program.result)
        return lambda: function(*program.wrt)[1]

    def gradient_and_hvp(self, program: Program, vector: np.ndarray) -> Callable[[], Any]:
        found = self.ti.ad.value_and_grad_and_hvp(program.run, argnums=0, output=program.result)
        return lambda: found(vector, *program.wrt)[1:]

    def vjp(self, program: Program, seed: np.ndarray) -> Callable[[], Any]:
        product = self.ti.ad.vjp(program.run, argnums=positions(program), loss=program.result)
        return lambda: product(seed, *program.wrt)[1]

    def jacobian(self, program: Program) -> Callable[[], Any]:
        function = self.ti.ad.jacobian(program.run, argnums=0, output=program.result, mode="forward")
        return lambda: function(*program.wrt)


def positions(program: Program) -> tuple[int, ...]:
    """The positions of all arguments."""
    return tuple(range(len(program.wrt)))


STYLES: dict[str, type[Style]] = {"fields": Fields, "ndarrays": Arrays, "functional": Functional}
