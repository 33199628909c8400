"""Transforms of a plane, by `ti.fft` and by SciPy, which calls pocketfft."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from benchmarks.contract import Subject, relative_deviation

__all__ = ["create"]

WAYS: dict[str, tuple[Any, Any]] = {
    "real": (scipy.fft.rfft2, scipy.fft.irfft2),
    "complex": (scipy.fft.fft2, scipy.fft.ifft2),
}
"""There and back."""


def plane(n: int, kind: str) -> NDArray[Any]:
    rng = np.random.default_rng(0)
    given = rng.normal(size=(n, n)).astype(np.float32)
    return given if kind == "real" else (given + 1j * rng.normal(size=(n, n))).astype(np.complex64)


class Transforms(Subject):
    """A transform and its inverse are a run."""

    def __init__(self, n: int, kind: str) -> None:
        self.given, self.kind = plane(n, kind), kind

    def spectrum(self) -> NDArray[Any]:
        """Transform once."""
        raise NotImplementedError

    def deviation(self) -> float:
        expected = np.asarray(WAYS[self.kind][0](self.given.astype(complex if self.kind == "complex" else float)))
        found = self.spectrum()
        return max(relative_deviation(part(found), part(expected)) for part in (np.real, np.imag))


class Kit(Transforms):
    """`ti.fft.Transform`, as captured steps."""

    def __init__(self, n: int, kind: str) -> None:
        import tinote as ti

        super().__init__(n, kind)
        ti.init(arch=ti.cpu, cpu_max_num_threads=1)
        is_real = kind == "real"
        self._x: Any = ti.field(ti.f32, shape=(n, n)) if is_real else ti.Vector.field(2, ti.f32, shape=(n, n))
        self._y = ti.Vector.field(2, ti.f32, shape=(n, n // 2 + 1 if is_real else n))
        transform = ti.fft.Transform(self._x, self._y)
        self._forward, self._inverse = ti.capture(transform.forward), ti.capture(transform.inverse)
        self.begin()

    def begin(self) -> None:
        given = self.given
        self._x.from_numpy(given if self.kind == "real" else np.stack([np.real(given), np.imag(given)], -1))

    def run(self, count: int) -> None:
        for _ in range(count):
            self._forward()
            self._inverse()

    def spectrum(self) -> NDArray[Any]:
        self.begin()
        self._forward()
        parts: NDArray[Any] = self._y.to_numpy()
        return parts[..., 0] + 1j * parts[..., 1]


class Library(Transforms):
    """`scipy.fft`, with one worker."""

    def run(self, count: int) -> None:
        there, back = (scipy.fft.rfft2, scipy.fft.irfft2) if self.kind == "real" else (scipy.fft.fft2, scipy.fft.ifft2)
        for _ in range(count):
            back(there(self.given))

    def spectrum(self) -> NDArray[Any]:
        return np.asarray(scipy.fft.rfft2(self.given) if self.kind == "real" else scipy.fft.fft2(self.given))


def create(package: str | None, n: int, kind: str) -> Transforms:
    """Return the transforms."""
    return Library(n, kind) if package is None else Kit(n, kind)
