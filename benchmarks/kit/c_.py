"""The systems in C. Steps loop in C, so no call from Python is in the figure."""

from __future__ import annotations

import ctypes
import math
from pathlib import Path

import numpy as np

from benchmarks.c_compiler import load
from benchmarks.kit.system import (
    CUTOFF,
    PARTS,
    RADIUS,
    REST,
    SKIN,
    STIFFNESS,
    TIME_STEP,
    Particles,
    beginning,
    length_of,
)

__all__ = ["create"]

MOST = 128


class _Grid(ctypes.Structure):
    """`struct grid` of neighbours.c."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("n", "m")),
        *((name, ctypes.c_void_p) for name in ("first", "cell", "order")),
        *((name, ctypes.c_float) for name in ("low", "length")),
        ("sorted", ctypes.c_void_p),
    )


class ByHand(Particles):
    """A liquid with a list of neighbours, or a fluid with cells, in C."""

    def __init__(self, kind: str, n: int) -> None:
        super().__init__(kind, n)
        self._library = load(Path(__file__).with_name("neighbours.c"))
        self._is_liquid = kind == "liquid"
        length = length_of(n) if self._is_liquid else math.ceil(n ** (1 / 3)) + 8 * RADIUS
        m = int(length / (CUTOFF + SKIN if self._is_liquid else RADIUS))
        self._kept = [np.zeros(m**3 + 1, np.int32), *[np.zeros(n, np.int32) for _ in range(2)]]
        self._sorted, self._copy, self._before = (np.zeros((n, 3), np.float32) for _ in range(3))
        self._grid = _Grid(
            n, m, *[one.ctypes.data for one in self._kept], 0.0 if self._is_liquid else -4 * RADIUS, length,
            self._sorted.ctypes.data,
        )  # fmt: skip
        self._density, self._count = np.zeros(n, np.float32), np.zeros(n, np.int32)
        self._list = np.zeros((n, MOST) if self._is_liquid else (1, 1), np.int32)
        self._built = ctypes.c_int(0)
        self.begin(*beginning(kind, n))

    def begin(self, x: np.ndarray, v: np.ndarray) -> None:
        self._x, self._v = x.copy(), v.copy()
        self._built.value = 0
        x_, v_, copy = (ctypes.c_void_p(one.ctypes.data) for one in (self._x, self._v, self._copy))
        self._library.kit_begin(ctypes.byref(self._grid), x_, v_, copy, int(self._is_liquid))

    def _steps(self, count: int) -> None:
        grid, number = ctypes.byref(self._grid), ctypes.c_float
        x, v, before, density, counts, listed = (
            ctypes.c_void_p(one.ctypes.data)
            for one in (self._x, self._v, self._before, self._density, self._count, self._list)
        )
        if self._is_liquid:
            built = ctypes.byref(self._built)
            numbers = [number(one) for one in (CUTOFF, SKIN, TIME_STEP)]
            self._library.kit_liquid(count, grid, x, v, before, built, MOST, counts, listed, *numbers)
        else:
            numbers = [number(one) for one in (RADIUS, STIFFNESS, REST, TIME_STEP)]
            self._library.kit_fluid(count, grid, x, v, density, *numbers)

    def step(self) -> None:
        self._steps(1)

    def run(self, count: int) -> None:
        self._steps(count * PARTS)

    def state(self) -> tuple[np.ndarray, np.ndarray]:
        return self._x, self._v


def create(package: None, kind: str, n: int) -> ByHand:
    """Return the system."""
    return ByHand(kind, n)
