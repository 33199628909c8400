"""Random walks over the rows and columns of arrays: launches that read and overwrite whole rows, whole columns, or
single elements, chosen by arguments, in any order. Gradients by tapes, by plans, and Jacobians, dense and sparse, agree
with complex steps.

Method: complex-step differentiation; Squire and Trapp, "Using complex variables to estimate derivatives of real
functions", SIAM Review 40, 1998.
"""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import session  # noqa: F401
from tinote.program import rerun

Array = np.ndarray[Any, Any]

ROWS, COLUMNS = 4, 5
#: What a step does, in a kernel and in NumPy: `a` becomes something of `b`, both rows, columns, or an element of each.
STEPS = {
    "row": "m[a, :] = np.sin(m[b, :]) + 0.5 * m[a, :] * m[b, :]",
    "filled_row": "m[a, :] = m[b, :] * m[b, :] - 0.3",
    "column": "m[:, a] = np.cos(m[:, b]) * m[:, a]",
    "filled_column": "m[:, a] = 0.7 * m[:, b] + m[:, b] * m[:, b] * 0.2",
    "sums_of_rows": "m[:, a] = 0.3 * np.sin(m).sum(axis=1)",
    "shifted_row": "m[a, :] = np.concatenate([0.2 * m[a, :1], m[a, :-1] * m[b, 1:]])",
    "element": "m[a, b] = m[a, b] * m[b, a] + 0.1",
    "all": "m[:, :] = 0.9 * np.sin(m) + 0.1",
}
MATRIX = ti.types.ndarray(dtype=ti.f64, ndim=2)


@ti.kernel
def row(m: MATRIX, a: ti.i32, b: ti.i32):
    for j in range(m.shape[1]):
        m[a, j] = ti.sin(m[b, j]) + 0.5 * m[a, j] * m[b, j]


@ti.kernel
def filled_row(m: MATRIX, a: ti.i32, b: ti.i32):
    for j in range(m.shape[1]):
        m[a, j] = m[b, j] * m[b, j] - 0.3


@ti.kernel
def column(m: MATRIX, a: ti.i32, b: ti.i32):
    for i in range(m.shape[0]):
        m[i, a] = ti.cos(m[i, b]) * m[i, a]


@ti.kernel
def filled_column(m: MATRIX, a: ti.i32, b: ti.i32):
    for i in range(m.shape[0]):
        m[i, a] = 0.7 * m[i, b] + m[i, b] * m[i, b] * 0.2


@ti.kernel
def sums_of_rows(m: MATRIX, a: ti.i32, b: ti.i32):
    for i in range(m.shape[0]):
        s = 0.0
        for j in range(m.shape[1]):
            s += ti.sin(m[i, j])
        m[i, a] = 0.3 * s


@ti.kernel
def shifted_row(m: MATRIX, a: ti.i32, b: ti.i32):
    ti.loop_config(serialize=True)
    for k in range(m.shape[1]):
        j = m.shape[1] - 1 - k
        if j > 0:
            m[a, j] = m[a, j - 1] * m[b, j]
        else:
            m[a, j] = 0.2 * m[a, j]


@ti.kernel
def element(m: MATRIX, a: ti.i32, b: ti.i32):
    m[a, b] = m[a, b] * m[b, a] + 0.1


@ti.kernel
def all(m: MATRIX, a: ti.i32, b: ti.i32):
    for i, j in ti.ndrange(m.shape[0], m.shape[1]):
        m[i, j] = 0.9 * ti.sin(m[i, j]) + 0.1


@ti.kernel
def begin(m: MATRIX, start: MATRIX):
    for i, j in ti.ndrange(m.shape[0], m.shape[1]):
        m[i, j] = start[i, j]


@ti.kernel
def total(m: MATRIX, weights: MATRIX) -> ti.f64:
    s = 0.0
    for i, j in ti.ndrange(m.shape[0], m.shape[1]):
        s += weights[i, j] * m[i, j]
    return s


@ti.kernel
def add_up(m: MATRIX, weights: MATRIX, loss: ti.template()):
    for i, j in ti.ndrange(m.shape[0], m.shape[1]):
        loss[None] += weights[i, j] * m[i, j]


class Walk:
    """Steps at random. `f(start)` gives a number, `leave(start)` leaves all of the matrix in `m`."""

    def __init__(self, seed: int) -> None:
        numbers = random.Random(seed)
        self.steps: list[tuple[str, int, int]] = []
        for _ in range(numbers.randrange(2, 9)):
            name = numbers.choice(list(STEPS))
            count = COLUMNS if "column" in name else ROWS
            a, b = numbers.sample(range(count), 2)
            self.steps.append((name, a, b))
        self.start = np.array([[numbers.uniform(-1, 1) for _ in range(COLUMNS)] for _ in range(ROWS)])
        self.weights = np.array([[numbers.uniform(-1, 1) for _ in range(COLUMNS)] for _ in range(ROWS)])
        self.m = ti.ndarray(ti.f64, (ROWS, COLUMNS), needs_grad=True, needs_dual=True)
        launches = "".join([f"    {name}(m, {a}, {b})\n" for name, a, b in self.steps])
        text = (
            f"def f(start):\n    begin(m, start)\n{launches}    return total(m, weights)\n\n"
            f"def leave(start):\n    begin(m, start)\n{launches}"
        )
        file = f"walk_{len(linecache.cache)}.py"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        space = {**globals(), "m": self.m, "weights": self.weights}
        exec(compile(text, file, "exec"), space)
        self.f: Callable[[Any], Any] = space["f"]
        self.leave: Callable[[Any], None] = space["leave"]

    def __repr__(self) -> str:
        return str(self.steps)

    def in_numpy(self, start: Array) -> Array:
        m = start.copy()
        for name, a, b in self.steps:
            exec(STEPS[name], {"np": np}, {"m": m, "a": a, "b": b})
        return m

    def jacobian(self, start: Array) -> Array:
        """Of the shape of the matrix, twice."""
        columns: list[Array] = []
        for k in range(start.size):
            moved = start.astype(complex)
            moved.flat[k] += 1e-30j
            columns.append(self.in_numpy(moved).imag / 1e-30)
        return np.stack(columns, axis=-1).reshape(start.shape + start.shape)

    def gradient(self, start: Array) -> Array:
        return np.einsum("ij,ijkl->kl", self.weights, self.jacobian(start))


def seeds_of(random_programs: range) -> range:
    return random_programs[::8]


def test_gradients(random_programs: range, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a tape, then by calls of which the last ones are plans."""
    monkeypatch.setattr(rerun, "LEAST_BYTES", 0)
    loss = ti.field(ti.f64, (), needs_grad=True)
    for seed in seeds_of(random_programs):
        walk = Walk(seed)
        start = ti.ndarray(ti.f64, (ROWS, COLUMNS), needs_grad=True)
        start.from_numpy(walk.start)
        with ti.ad.Tape(loss):
            walk.leave(start)
            add_up(walk.m, walk.weights, loss)
        wanted = walk.gradient(walk.start)
        np.testing.assert_allclose(start.grad.to_numpy(), wanted, rtol=1e-11, atol=1e-13, err_msg=f"{seed}: {walk}")
        gradient = ti.ad.value_and_grad(walk.f)
        for call in range(6):
            given = walk.start * (1 - 0.1 * call)
            value, found = gradient(given)
            message = f"seed {seed}, call {call}: {walk}"
            np.testing.assert_allclose(value, (walk.weights * walk.in_numpy(given)).sum(), rtol=1e-12, atol=1e-13)
            np.testing.assert_allclose(found, walk.gradient(given), rtol=1e-11, atol=1e-13, err_msg=message)


def test_jacobians(random_programs: range) -> None:
    """Sparse and dense, forwards and backwards."""
    for seed in seeds_of(random_programs)[::4]:
        walk = Walk(seed)
        wanted = walk.jacobian(walk.start)
        count = walk.start.size
        for mode in ("forward", "reverse"):
            found = ti.ad.jacobian(walk.leave, loss=walk.m, mode=mode)(walk.start)
            np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-13, err_msg=f"{mode}, seed {seed}: {walk}")
        sparse = ti.ad.jacobian(walk.leave, loss=walk.m, sparse=True)(walk.start)
        flat = wanted.reshape(count, count)
        np.testing.assert_allclose(sparse.toarray(), flat, rtol=1e-11, atol=1e-13, err_msg=f"seed {seed}: {walk}")
