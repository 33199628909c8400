"""Reverse mode along several directions at once: a Jacobian's rows in blocks, equal to those one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.test_directions import PROGRAMS, both, filled, narrow, straight
from tests.autodiff.user import session  # noqa: F401
from tinote.errors import DifferentiationError
from tinote.lang.ad.functional import directions
from tinote.lang.ad.functional.rows import SeveralRows

Array = np.ndarray[Any, Any]


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many directions each sweep had."""
    found: list[int] = []
    real = SeveralRows.pull_back

    def noting(self: SeveralRows, seeds: Array) -> list[Array]:
        found.append(self._directions)
        return real(self, seeds)

    monkeypatch.setattr(SeveralRows, "pull_back", noting)
    return found


def rows(make: Any, monkeypatch: pytest.MonkeyPatch, most: int) -> list[Array]:
    """The Jacobian with at most `most` directions a sweep."""
    run, options, args = make()
    monkeypatch.setattr(directions, "MOST_DIRECTIONS", most)
    found = ti.ad.jacobian(run, **options, mode="reverse")(*args)
    return [np.asarray(part) for part in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.filterwarnings("ignore:.*access rule 1")
@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
def test_rows_in_blocks_are_those_one_by_one(make: Any, monkeypatch: pytest.MonkeyPatch, blocks: list[int]) -> None:
    """Bit for bit without fast maths: nothing is reordered."""
    ti.init(default_fp=ti.f64, fast_math=False, debug=True, num_threads=1, offline_cache=False)
    single = rows(make, monkeypatch, 1)
    assert not blocks
    for most in (16, 4):
        block = rows(make, monkeypatch, most)
        assert blocks and set(blocks) <= {most, 8}
        blocks.clear()
        for one, other in zip(single, block, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
def test_fast_maths_differ_by_rounding_only(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ti.init(default_fp=ti.f64)
    single = rows(make, monkeypatch, 1)
    block = rows(make, monkeypatch, 16)
    tolerance = 1e-5 if make is narrow else 1e-12
    for one, other in zip(single, block, strict=True):
        np.testing.assert_allclose(other, one, rtol=tolerance, atol=tolerance * np.abs(one).max())


def test_gradients_of_fields_are_left_alone(blocks: list[int]) -> None:
    x, y = filled(16), both(16)

    @ti.kernel
    def double():
        for i in x:
            y[i] = 2 * x[i]

    x.grad.fill(3.0)
    y.grad.fill(4.0)
    np.testing.assert_array_equal(ti.ad.jacobian(double, wrt=x, loss=y, mode="reverse")(), 2 * np.eye(16))
    assert blocks == [16] and (x.grad.to_numpy() == 3.0).all() and (y.grad.to_numpy() == 4.0).all()


def test_numbers_that_go_through_python_go_one_by_one(blocks: list[int]) -> None:
    x, y = filled(6), both(6)

    @ti.kernel
    def scale(by: ti.f64):
        for i in x:
            y[i] = x[i] * by

    def reads() -> None:
        scale(2.0)
        y[0] = y[1] * 3.0

    expected = 2.0 * np.eye(6)
    expected[0] = [0.0, 6.0, 0.0, 0.0, 0.0, 0.0]
    np.testing.assert_allclose(ti.ad.jacobian(reads, wrt=x, loss=y, mode="reverse")(), expected, rtol=1e-12)
    assert not blocks


def test_memory_without_a_gradient_between_launches(blocks: list[int]) -> None:
    """Values that pass through it, are overwritten in between, and what Python copies."""
    x, y, z = filled(12), both(12), both(12)
    plain = ti.field(ti.f64, 12)

    @ti.kernel
    def first():
        for i in x:
            plain[i] = x[i] ** 2

    @ti.kernel
    def second():
        for i in x:
            z[i] = plain[i] * x[11 - i]
            plain[i] = 0.0

    @ti.kernel
    def third():
        for i in x:
            y[i] = y[i] * z[i] + plain[i]

    def run() -> None:
        first()
        second()
        y.copy_from(z)
        first()
        third()

    at = x.to_numpy()
    wanted = np.zeros((12, 12))
    for i in range(12):
        # y = (x[i]² x[11 - i])² + x[i]²
        wanted[i, i] += 4 * at[i] ** 3 * at[11 - i] ** 2 + 2 * at[i]
        wanted[i, 11 - i] += 2 * at[i] ** 4 * at[11 - i]
    np.testing.assert_allclose(ti.ad.jacobian(run, wrt=x, loss=y, mode="reverse")(), wanted, rtol=1e-12)
    assert blocks == [16]


def test_products_of_several_seeds(blocks: list[int]) -> None:
    """Of arrays, and of fields, again and again: by plans as well."""
    y = ti.ndarray(ti.f64, (9,), needs_grad=True)

    @ti.kernel
    def pulled(x: ti.types.ndarray(), w: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in range(x.shape[0]):
            y[i] = ti.sin(x[i]) * w[(2 * i) % 9]

    def run(x: Any, w: Any) -> None:
        pulled(x, w, y)

    product = ti.ad.vjp(run, argnums=(0, 1), loss=y)
    for trial, count in enumerate((2, 2, 2, 2, 2, 2, 3, 20)):
        numbers = np.random.default_rng(trial)
        x, w, seeds = numbers.normal(size=9), numbers.normal(size=9), numbers.normal(size=(count, 9))
        value, (by_x, by_w) = product(seeds, x, w)
        reads = (2 * np.arange(9)) % 9
        np.testing.assert_allclose(value, np.sin(x) * w[reads], rtol=1e-12)
        np.testing.assert_allclose(by_x, seeds * np.cos(x) * w[reads], rtol=1e-12)
        wanted = np.zeros((count, 9))
        for i, k in enumerate(reads):
            wanted[:, k] += seeds[:, i] * np.sin(x[i])
        np.testing.assert_allclose(by_w, wanted, rtol=1e-12, atol=1e-14)
        again = product(seeds, x, w)[1][0]
        assert again is not by_x and np.array_equal(again, by_x)
    assert blocks[0] == 2 and 16 in blocks and 4 in blocks


def test_what_python_copies_before_any_launch(blocks: list[int]) -> None:
    x, y, z = filled(8), both(8), both(8)

    @ti.kernel
    def square():
        for i in z:
            z[i] = y[i] ** 2

    def run() -> None:
        y.copy_from(x)
        square()

    found = ti.ad.jacobian(run, wrt=x, loss=z, mode="reverse")()
    np.testing.assert_allclose(found, np.diag(2 * x.to_numpy()), rtol=1e-12)
    copied = ti.ad.jacobian(lambda: y.copy_from(x), wrt=x, loss=y, mode="reverse")()
    np.testing.assert_array_equal(copied, np.eye(8))
    assert blocks == [8, 8]


def test_a_single_number_has_several_seeds_too() -> None:
    x, loss = filled(5), both()

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i] ** 2

    loss[None] = 0.0
    value, product = ti.ad.vjp(total, wrt=x, loss=loss)(np.array([1.0, -2.0]))
    np.testing.assert_allclose(value, (x.to_numpy() ** 2).sum())
    np.testing.assert_allclose(product, np.outer([1.0, -2.0], 2 * x.to_numpy()))


def test_a_seed_of_another_shape_is_refused() -> None:
    run, options, _ = straight()
    with pytest.raises(DifferentiationError, match="shape"):
        ti.ad.vjp(run, **options)(np.ones((2, 18)))


def test_what_is_kept_for_later_calls_is_not_handed_out() -> None:
    x, y = filled(8), both(8)

    @ti.kernel
    def double():
        for i in x:
            y[i] = 2 * x[i]

    product = ti.ad.vjp(double, wrt=x, loss=y)
    first = product(np.ones((2, 8)))[1]
    second = product(3 * np.ones((2, 8)))[1]
    np.testing.assert_array_equal(first, np.full((2, 8), 2.0))
    np.testing.assert_array_equal(second, np.full((2, 8), 6.0))
