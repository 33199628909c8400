"""Sparse Jacobians: the elements of the dense ones, with few directions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import tinote as ti
from tests.autodiff.user import session  # noqa: F401
from tinote.errors import DifferentiationError
from tinote.lang.ad.functional import functional, sparse

Array = np.ndarray[Any, Any]


def both(*shape: int, dtype: Any = ti.f64) -> Any:
    return ti.field(dtype, shape, needs_grad=True, needs_dual=True)


def filled(n: int, dtype: Any = ti.f64) -> Any:
    made = both(n, dtype=dtype)
    made.from_numpy(np.linspace(-1.3, 1.7, n))
    return made


class Gathered:
    """y[r] = Σₖ w[r, k] sin(x[which[r, k]]), with random columns for each row."""

    def __init__(self, rows: int, columns: int, terms: int, seed: int, dtype: Any = ti.f64) -> None:
        random = np.random.default_rng(seed)
        self.x, self.y = filled(columns, dtype), both(rows, dtype=dtype)
        which = ti.field(ti.i32, (rows, terms))
        which.from_numpy(random.integers(0, columns, (rows, terms)).astype(np.int32))
        weights = ti.field(dtype, (rows, terms))
        weights.from_numpy(random.choice([-1.0, 0.0, 2.0], (rows, terms)))
        x, y = self.x, self.y

        @ti.kernel
        def gather():
            for r in y:
                total = 0.0 * y[r]
                for k in range(terms):
                    total += weights[r, k] * ti.sin(x[which[r, k]])
                y[r] = total

        def run() -> None:
            self.runs += 1
            y.fill(0.0)
            gather()

        self.run, self.runs = run, 0


def agree(found: Any, dense: Array, tolerance: float = 1e-13) -> None:
    assert isinstance(found, scipy.sparse.csr_array)
    flat = dense.reshape(found.shape)
    np.testing.assert_allclose(found.toarray(), flat, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [ti.f64, ti.f32], ids=["f64", "f32"])
@pytest.mark.parametrize("seed", range(6))
def test_random_patterns(seed: int, dtype: Any) -> None:
    ti.init(default_fp=dtype)
    random = np.random.default_rng(seed)
    rows, columns, terms = (int(n) for n in random.integers(1, [60, 60, 5]))
    p = Gathered(rows, columns, terms, seed, dtype)
    dense = ti.ad.jacobian(p.run, wrt=p.x, loss=p.y, mode="forward")()
    agree(ti.ad.jacobian(p.run, wrt=p.x, loss=p.y, sparse=True)(), dense, 1e-13 if dtype is ti.f64 else 1e-6)


def test_elements_that_cancel_within_a_block_are_found() -> None:
    n = 50
    x, y = filled(n), both(n)

    @ti.kernel
    def difference():
        for i in range(n - 1):
            y[i] = x[i + 1] - x[i]

    found = ti.ad.jacobian(difference, wrt=x, loss=y, sparse=True)()
    assert found.nnz == 2 * (n - 1)
    np.testing.assert_array_equal(found.toarray(), np.eye(n, k=1) - np.diag([1.0] * (n - 1) + [0.0]))


def test_few_directions_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tridiagonal Jacobian of a thousand columns: three colours, and some per level of the search."""
    n = 1000
    x, y = filled(n), both(n)
    asked: list[int] = []

    @ti.kernel
    def stencil():
        for i in range(1, n - 1):
            y[i] = x[i - 1] * x[i] + x[i + 1] ** 2

    real = functional._Columns.product

    def noting(self: Any, count: int, directions: Any, **options: Any) -> Array:
        asked.append(count)
        return real(self, count, directions, **options)

    monkeypatch.setattr(functional._Columns, "product", noting)
    found = ti.ad.jacobian(stencil, wrt=x, loss=y, sparse=True)()
    assert asked[-1] <= 5 and len(asked) == 6 and sum(asked) <= 100
    at, row = x.to_numpy(), np.arange(1, n - 1)
    elements = np.concatenate([at[row], at[row - 1], 2 * at[row + 1]])
    places = np.tile(row, 3), np.concatenate([row - 1, row, row + 1])
    expected = scipy.sparse.coo_array((elements, places), shape=(n, n))
    assert abs(found - expected.tocsr()).max() < 1e-14

    asked.clear()
    again = ti.ad.jacobian(stencil, wrt=x, loss=y, sparsity=found)()
    assert len(asked) == 2 and sum(asked) <= 6
    assert (again != found).nnz == 0


def test_several_inputs_and_arguments() -> None:
    n = 12
    w = filled(n)
    y = ti.ndarray(ti.f64, (n, 2), needs_grad=True, needs_dual=True)

    @ti.kernel
    def scale(x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in range(x.shape[0]):
            y[i, 0] = x[i, 1] * w[(i + 1) % n]
            y[i, 1] = w[i] ** 2

    def run(x: Any) -> None:
        scale(x, y)

    x = np.linspace(0.0, 1.0, 3 * n).reshape(n, 3)
    dense = ti.ad.jacobian(run, 0, wrt=[w], loss=y, mode="forward")(x)
    found = ti.ad.jacobian(run, 0, wrt=[w], loss=y, sparse=True)(x)
    assert found[0].shape == (2 * n, 3 * n) and found[1][0].shape == (2 * n, n)
    agree(found[0], dense[0])
    agree(found[1][0], dense[1][0])
    again = ti.ad.jacobian(run, 0, wrt=[w], loss=y, sparsity=found)(x)
    agree(again[0], dense[0])


def test_numbers_through_python_go_one_direction_at_a_time() -> None:
    n = 9
    x, y = filled(n), both(n)

    @ti.kernel
    def square():
        for i in x:
            y[i] = x[i] ** 2

    def run() -> None:
        square()
        y[2] = y[1] * 3.0

    dense = ti.ad.jacobian(run, wrt=x, loss=y, mode="forward")()
    agree(ti.ad.jacobian(run, wrt=x, loss=y, sparse=True)(), dense)


def test_a_pattern_that_lacks_elements_is_refused() -> None:
    p = Gathered(40, 30, 3, 7)
    found = ti.ad.jacobian(p.run, wrt=p.x, loss=p.y, sparse=True)().tolil()
    row, column = (int(one[5]) for one in found.tocsr().nonzero())
    found[row, column] = 0
    with pytest.raises(DifferentiationError, match=f"elements in row {row} that are missing from sparsity="):
        ti.ad.jacobian(p.run, wrt=p.x, loss=p.y, sparsity=found.tocsr())()
    with pytest.raises(DifferentiationError, match=r"sparsity= has shape \(40, 29\), .* \(40, 30\)"):
        ti.ad.jacobian(p.run, wrt=p.x, loss=p.y, sparsity=np.ones((40, 29)))()
    full = ti.ad.jacobian(p.run, wrt=p.x, loss=p.y, sparsity=np.ones((40, 30)))()
    np.testing.assert_allclose(full.toarray(), ti.ad.jacobian(p.run, wrt=p.x, loss=p.y)(), rtol=1e-13)


def test_what_has_no_sparse_jacobian_is_refused() -> None:
    p = Gathered(4, 3, 2, 0)
    with pytest.raises(DifferentiationError, match="computed in forward mode"):
        ti.ad.jacobian(p.run, wrt=p.x, loss=p.y, mode="reverse", sparse=True)
    with pytest.raises(DifferentiationError, match="is a gradient, which is not sparse"):
        ti.ad.jacobian(p.run, wrt=p.x, sparse=True)


@pytest.mark.parametrize("seed", range(5))
def test_colours_keep_rows_apart(seed: int) -> None:
    random = np.random.default_rng(seed)
    matrix = scipy.sparse.random_array((80, 120), density=0.04, rng=random).tolil()
    matrix[3] = 1 if seed == 4 else matrix[3]
    matrix = matrix.tocsr()
    matrix.sort_indices()
    rows, columns = matrix.nonzero()
    pattern = sparse.Pattern(rows.astype(np.intp), columns.astype(np.intp), (80, 120))
    colour = sparse.colours(pattern)
    assert ((colour >= 0) == (np.bincount(columns, minlength=120) > 0)).all()
    assert len({(r, colour[c]) for r, c in zip(rows, columns, strict=True)}) == len(rows)
    most = int(np.bincount(rows).max())
    assert most <= colour.max() + 1 <= 3 * most


def test_the_colours_of_a_pattern_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Newton iteration asks for the same pattern in each step; each gets its own colours, and few are kept."""
    computed: list[sparse.Pattern] = []
    compute = sparse.colours
    monkeypatch.setattr(sparse, "colours", lambda pattern: computed.append(pattern) or compute(pattern))
    monkeypatch.setattr(sparse, "_colours", {})

    def elements(matrix: Array) -> None:
        rows, columns = np.nonzero(matrix)
        pattern = sparse.Pattern(rows, columns, matrix.shape)

        def product(direction: Array, amounts: Array) -> Array:
            along = np.zeros((matrix.shape[1], direction.max() + 1))
            there = np.flatnonzero(direction >= 0)
            along[there, direction[there]] = amounts[there]
            return matrix @ along

        assert (sparse.values(product, pattern) == matrix[rows, columns]).all()

    diagonal, full = np.diag(np.arange(1.0, 5.0)), np.arange(1.0, 17.0).reshape(4, 4)
    for matrix in (diagonal, full, 2 * diagonal, full[::-1], diagonal[:, [1, 0, 2, 3]]):
        elements(matrix)
    assert len(computed) == 3  # the last one has the rows of a diagonal in other columns
    for size in range(1, 40):
        elements(np.eye(size))
    assert len(computed) == 3 + 38 and len(sparse._colours) == sparse._MOST_PATTERNS  # a diagonal of four was known
    elements(np.eye(39))
    assert len(computed) == 3 + 38


def test_bundle_adjustment_has_blocks() -> None:
    """An observation depends on its camera and its point alone: 2 × (4 + 3) elements each."""
    cameras, points, observations = 5, 20, 60
    random = np.random.default_rng(0)
    camera, point, error = both(cameras, 4), both(points, 3), both(observations, 2)
    camera.from_numpy(random.uniform(-0.5, 0.5, (cameras, 4)))
    point.from_numpy(random.uniform([-1, -1, 4], [1, 1, 6], (points, 3)))
    seen_by, seen = ti.field(ti.i32, observations), ti.field(ti.i32, observations)
    of_camera, of_point = random.integers(0, cameras, observations), random.integers(0, points, observations)
    seen_by.from_numpy(of_camera.astype(np.int32))
    seen.from_numpy(of_point.astype(np.int32))

    @ti.kernel
    def project():
        for o in seen:
            c, q = seen_by[o], seen[o]
            depth = point[q, 2] - camera[c, 2] + ti.sin(camera[c, 3])
            for r in ti.static(range(2)):
                error[o, r] = (point[q, r] - camera[c, r]) / depth

    by_camera, by_point = ti.ad.jacobian(project, wrt=[camera, point], loss=error, sparse=True)()
    dense = ti.ad.jacobian(project, wrt=[camera, point], loss=error, mode="reverse")()
    agree(by_camera, dense[0])
    agree(by_point, dense[1])
    for found, owner, size in ((by_camera, of_camera, 4), (by_point, of_point, 3)):
        rows, columns = found.nonzero()
        assert (columns // size == owner[rows // 2]).all()
