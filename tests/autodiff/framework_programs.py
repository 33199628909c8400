"""Programs that are functions of arrays, with what they are in NumPy or JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import tinote as ti


class Made(NamedTuple):
    """A program: `f`, `inputs` and `outputs` as users pass them; `shapes` of the inputs; `reference(*arrays, xp=np)`,
    the results by another library; `fields` that it uses.
    """

    f: Callable[..., Any]
    inputs: Any
    outputs: Any
    shapes: list[tuple[int, ...]]
    reference: Callable[..., Any]
    fields: list[Any]


def fields_that_are_overwritten() -> Made:
    """Three steps in place, and two results."""
    x, y = (ti.field(ti.f64, 4, needs_grad=True) for _ in range(2))
    total = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def step():
        for i in x:
            x[i] += 0.1 * ti.sin(x[i]) * x[i]

    @ti.kernel
    def measure():
        for i in x:
            y[i] = x[i] ** 2
            total[None] += x[i] ** 3

    def run() -> None:
        total[None] = 0.0
        for _ in range(3):
            step()
        measure()

    def reference(x: Any, xp: Any = np) -> Any:
        for _ in range(3):
            x = x + 0.1 * xp.sin(x) * x
        return [x**2, (x**3).sum()]

    return Made(run, x, [y, total], [(4,)], reference, [x, y, total])


def state_in_and_out() -> Made:
    """Fields of vectors that are inputs and results, and a parameter."""
    x, v = (ti.Vector.field(2, ti.f64, 3, needs_grad=True) for _ in range(2))
    k = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def advance():
        for i in x:
            v[i] -= 0.1 * k[None] * x[i] * x[i].norm_sqr()
            x[i] += 0.1 * v[i]

    def run() -> None:
        for _ in range(4):
            advance()

    def reference(x: Any, v: Any, k: Any, xp: Any = np) -> Any:
        for _ in range(4):
            v = v - 0.1 * k * x * (x**2).sum(1)[:, None]
            x = x + 0.1 * v
        return [x, v]

    return Made(run, [x, v, k], [x, v], [(3, 2), (3, 2), ()], reference, [x, v, k])


def a_kernel_of_arrays() -> Made:
    """Two arrays of different shapes, and two results."""

    @ti.kernel
    def product(
        a: ti.types.ndarray(dtype=ti.f64, ndim=2),
        b: ti.types.ndarray(dtype=ti.f64, ndim=1),
        c: ti.types.ndarray(dtype=ti.f64, ndim=1),
        d: ti.types.ndarray(dtype=ti.f64, ndim=2),
    ):
        for i, j in a:
            c[i] += a[i, j] * b[j]
            d[i, j] = ti.exp(a[i, j] * b[j])

    def reference(a: Any, b: Any, xp: Any = np) -> Any:
        return [a @ b, xp.exp(a * b)]

    return Made(product, None, lambda a, b: [(a[0],), a], [(3, 4), (4,)], reference, [])


def a_method_that_takes_a_number() -> Made:
    """A kernel of a class, with a number among its arrays."""

    class Scene:
        @ti.kernel
        def scaled(
            self,
            a: ti.types.ndarray(dtype=ti.f64, ndim=1),
            k: ti.f64,
            out: ti.types.ndarray(dtype=ti.f64, ndim=1),
        ):
            for i in a:
                out[i] = ti.sin(k * a[i]) * k

    return Made(Scene().scaled, None, lambda a, k: a, [(4,), ()], lambda a, k, xp=np: [xp.sin(k * a) * k], [])


def a_number_that_is_returned() -> Made:
    """A function of arrays that computes with what kernels return."""

    @ti.kernel
    def cubes(a: ti.types.ndarray(dtype=ti.f64, ndim=1)) -> ti.f64:
        total = 0.0
        for i in a:
            total += a[i] ** 3
        return total

    def run(a: Any) -> Any:
        return 0.5 * cubes(a) ** 2

    return Made(run, None, None, [(5,)], lambda a, xp=np: [0.5 * (a**3).sum() ** 2], [])


def a_solve_with_an_implicit_step() -> Made:
    """A sparse solve, whose matrix and right-hand side are inputs, and then a step that is solved for."""
    n = 4
    k, b, x, y, r = (ti.field(ti.f64, n, needs_grad=True) for _ in range(5))
    builder = ti.linalg.SparseMatrixBuilder(n, n, max_num_triplets=3 * n, dtype=ti.f64)
    solver = ti.linalg.SparseSolver(ti.f64, "LLT")

    @ti.kernel
    def fill(A: ti.types.sparse_matrix_builder()):  # type: ignore[valid-type]
        for i in range(n):
            A[i, i] += 3.0 + k[i] ** 2
            if i > 0:
                A[i, i - 1] -= k[i]
                A[i - 1, i] -= k[i]

    @ti.kernel
    def residual():
        for i in y:
            r[i] = y[i] + 0.3 * (1 + k[i] ** 2) * y[i] ** 3 - x[i]

    step = ti.ad.implicit(residual, y, r, tol=1e-13)

    def run() -> None:
        fill(builder)
        solver.compute(builder.build())
        solver.solve(b, out=x)
        y.fill(0.0)
        step()

    def reference(k: Any, b: Any, xp: Any = np) -> Any:
        off_diagonal = xp.diag(k[1:], 1)
        x = xp.linalg.solve(xp.diag(3.0 + k**2) - off_diagonal - off_diagonal.T, b)
        root = xp.sqrt(0.9 * (1 + k**2))
        y = 2 / root * xp.sinh(xp.arcsinh(1.5 * x * root) / 3)  # the only real root of the cubic
        return [x, y]

    return Made(run, [k, b], [x, y], [(n,), (n,)], reference, [k, b, x, y, r])


class Call(NamedTuple):
    """A call that does not fit: the arguments as pairs of a shape and the name of a type; the `kind` of mismatch, and
    what is said of it.
    """

    arguments: list[tuple[tuple[int, ...], str]]
    kind: str
    message: str


#: Calls of a program of `PROGRAMS` that do not fit it.
MISFITS: dict[str, list[Call]] = {
    "fields_that_are_overwritten": [
        Call([], "count", "run takes 1 arrays, not 0"),
        Call([((4,), "float64"), ((4,), "float64")], "count", "run takes 1 arrays, not 2"),
        Call([((3,), "float64")], "shape", r"argument 0 of run has shape \(3,\), but the field '.*' has shape \(4,\)"),
        Call([((4, 1), "float64")], "shape", r"argument 0 of run has shape \(4, 1\)"),
        Call([((), "float64")], "shape", r"argument 0 of run has shape \(\)"),
        Call([((4,), "float32")], "dtype", "argument 0 of run holds float32, but the field '.*' holds float64"),
        Call([((4,), "int64")], "dtype", "argument 0 of run holds .*int64"),
    ],
    "state_in_and_out": [
        Call(
            [((3, 2), "float64"), ((3,), "float64"), ((), "float64")],
            "shape",
            r"argument 1 of run .* but the field .* has shape \(3, 2\)",
        ),
        Call(
            [((3, 2), "float64"), ((3, 2), "float64"), ((1,), "float64")],
            "shape",
            r"argument 2 .* but the field .* has shape \(\)",
        ),
    ],
    "a_kernel_of_arrays": [
        Call([], "count", "product takes at least one array"),
        Call([((3, 4), "float64")], "count", "product takes 2 arrays, .* not 1"),
        Call([((3, 4), "float64"), ((4,), "float64"), ((4,), "float64")], "count", "product takes 2 arrays, .* not 3"),
        Call([((4,), "float64"), ((4,), "float64")], "shape", r"argument 0 .*'a', has 2 dim.* shape \(4,\)"),
        Call([((), "float64"), ((4,), "float64")], "shape", r"argument 0 .*'a', has 2 dim.* shape \(\)"),
        Call([((3, 4), "float64"), ((3, 4), "float64")], "shape", r"argument 1 .*'b', has 1 dim.* shape \(3, 4\)"),
        Call([((3, 4), "float32"), ((4,), "float64")], "dtype", "argument 0 .*'a', is an array of f64.* one of f32"),
        Call([((3, 4), "float64"), ((4,), "float16")], "dtype", "argument 1 .*'b', is an array of f64.* one of f16"),
        Call([((3, 4), "float64"), ((4,), "int32")], "dtype", "argument 1 of product holds .*int32"),
        Call([((3, 4), "float64"), ((4,), "bool")], "dtype", "argument 1 of product holds .*bool"),
        Call([((3, 4), "complex128"), ((4,), "float64")], "dtype", "argument 0 of product holds .*complex128"),
        Call([((3, 4), "bfloat16"), ((4,), "float64")], "dtype", "argument 0 of product holds .*bfloat16"),
    ],
    "a_method_that_takes_a_number": [
        Call([((4,), "float64")], "count", "scaled takes 2 arrays, .* not 1"),
        Call([((4,), "float64"), ((4,), "float64")], "shape", r"argument 1 .*'k', is a number, .* shape \(4,\)"),
        Call([((4, 1), "float64"), ((), "float64")], "shape", r"argument 0 .*'a', has 1 dim.* shape \(4, 1\)"),
        Call([((4,), "float64"), ((), "int32")], "dtype", "argument 1 of scaled holds .*int32"),
    ],
    "a_number_that_is_returned": [
        Call([((5,), "float64"), ((5,), "float64")], "count", "run takes 1 arrays, not 2"),
        Call([((5,), "int64")], "dtype", "argument 0 of run holds .*int64"),
    ],
}

EACH_MISFIT = [(name, call) for name, calls in MISFITS.items() for call in calls]

PROGRAMS: dict[str, Callable[[], Made]] = {
    one.__name__: one
    for one in (
        fields_that_are_overwritten,
        state_in_and_out,
        a_kernel_of_arrays,
        a_method_that_takes_a_number,
        a_number_that_is_returned,
        a_solve_with_an_implicit_step,
    )
}
