"""`ti.ad.grad`, `value_and_grad`, `vjp`, `jvp` and `jacobian` over fields."""

from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import scalar, session  # noqa: F401
from tinote.errors import DifferentiationError


def _both(*shape: int) -> Any:
    return ti.field(ti.f64, shape, needs_grad=True, needs_dual=True)


class Program:
    """y[i] = a · sin(x[i]) · w + x[i]², total = Σ y[i], through a field in between."""

    def __init__(self, n: int = 4) -> None:
        x, y, z = _both(n), _both(n), _both(n)
        w, total = _both(), _both()

        @ti.kernel
        def first(a: ti.f64):
            for i in x:
                z[i] = a * ti.sin(x[i])

        @ti.kernel
        def second():
            for i in x:
                y[i] = z[i] * w[None] + x[i] ** 2

        @ti.kernel
        def add():
            for i in y:
                total[None] += y[i]

        self.x, self.y, self.z, self.w, self.total = x, y, z, w, total
        self.start = np.linspace(0.2, 1.1, n)
        x.from_numpy(self.start)
        w[None] = 1.5
        self.first, self.second, self.add = first, second, add

    def run(self, a: float, *, twice: bool = False) -> None:
        self.first(2 * a if twice else a)
        self.second()
        self.add()

    def slopes(self, a: float) -> np.ndarray[Any, Any]:
        return a * np.cos(self.start) * 1.5 + 2 * self.start


def test_gradients_of_one_and_several_fields() -> None:
    p = Program()
    found = ti.ad.grad(p.run, wrt=p.x, loss=p.total)(3.0)
    np.testing.assert_allclose(found, p.slopes(3.0), rtol=1e-12)
    value, (along_x, along_w) = ti.ad.value_and_grad(p.run, wrt=[p.x, p.w], loss=p.total)(3.0, twice=True)
    assert value == pytest.approx((6 * np.sin(p.start) * 1.5 + p.start**2).sum())
    np.testing.assert_allclose(along_x, p.slopes(6.0), rtol=1e-12)
    assert isinstance(along_w, float)
    assert along_w == pytest.approx(6 * np.sin(p.start).sum())


def test_a_kernel_and_a_field_that_is_overwritten() -> None:
    x, loss = _both(3), _both()

    @ti.kernel
    def square():
        for i in x:
            loss[None] += x[i] ** 2

    @ti.kernel
    def double():
        for i in x:
            x[i] = 2 * x[i]

    x.from_numpy(np.array([1.0, 2.0, 3.0]))
    loss[None] = 77.0  # cleared before
    assert ti.ad.value_and_grad(square, wrt=x, loss=loss)()[0] == 14.0

    def run() -> None:
        double()
        square()

    assert ti.ad.grad(run, wrt=x, loss=loss)().tolist() == [8.0, 16.0, 24.0]
    assert x.to_numpy().tolist() == [2.0, 4.0, 6.0]  # it ran for real


def test_gradients_and_duals_are_left_as_they_were() -> None:
    p = Program()
    for f in (p.x, p.y, p.z, p.w, p.total):
        f.grad.fill(5)
        f.dual.fill(6)
    ti.ad.grad(p.run, wrt=p.x, loss=p.total)(1.0)
    ti.ad.jvp(p.run, wrt=p.x, loss=p.y)(np.ones(4), 1.0)
    ti.ad.jacobian(p.run, wrt=p.x, loss=p.y)(1.0)
    for f in (p.x, p.y, p.z, p.w, p.total):
        assert (f.grad.to_numpy() == 5).all()
        assert (f.dual.to_numpy() == 6).all()


def test_products_in_both_modes() -> None:
    p = Program()
    seed = np.array([1.0, -2.0, 0.5, 3.0])
    value, product = ti.ad.vjp(p.run, wrt=(p.x, p.w), loss=p.y)(seed, 3.0)
    np.testing.assert_allclose(value, 3 * np.sin(p.start) * 1.5 + p.start**2, rtol=1e-12)
    np.testing.assert_allclose(product[0], seed * p.slopes(3.0), rtol=1e-12)
    assert product[1] == pytest.approx(seed @ (3 * np.sin(p.start)))
    value, product = ti.ad.jvp(p.run, wrt=p.x, loss=p.y)(seed, 3.0)
    np.testing.assert_allclose(value, 3 * np.sin(p.start) * 1.5 + p.start**2, rtol=1e-12)
    np.testing.assert_allclose(product, seed * p.slopes(3.0), rtol=1e-12)
    _, product = ti.ad.jvp(p.run, wrt=[p.x, p.w], loss=p.y)([seed, 10.0], 3.0)
    np.testing.assert_allclose(product, seed * p.slopes(3.0) + 10 * 3 * np.sin(p.start), rtol=1e-12)


def test_products_of_a_field_that_is_its_own_result() -> None:
    x = _both(3)

    @ti.kernel
    def scale():
        for i in x:
            x[i] = 4 * x[i]

    seed = np.array([1.0, 2.0, 3.0])
    assert ti.ad.vjp(scale, wrt=x, loss=x)(seed)[1].tolist() == [4.0, 8.0, 12.0]
    assert ti.ad.jvp(scale, wrt=x, loss=x)(seed)[1].tolist() == [4.0, 8.0, 12.0]
    assert np.array_equal(ti.ad.jacobian(scale, wrt=x, loss=x)(), 4 * np.eye(3))


@pytest.mark.parametrize("mode", ["forward", "reverse", None])
def test_jacobian(mode: str | None) -> None:
    p = Program()
    found = ti.ad.jacobian(p.run, wrt=p.x, loss=p.y, mode=mode)(3.0)
    np.testing.assert_allclose(found, np.diag(p.slopes(3.0)), rtol=1e-12)
    by_x, by_w = ti.ad.jacobian(p.run, wrt=[p.x, p.w], loss=p.y, mode=mode)(3.0)
    np.testing.assert_allclose(by_x, np.diag(p.slopes(3.0)), rtol=1e-12)
    np.testing.assert_allclose(by_w, 3 * np.sin(p.start), rtol=1e-12)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_jacobian_of_vectors(mode: str) -> None:
    x = ti.Vector.field(2, ti.f64, 3, needs_grad=True, needs_dual=True)
    y = ti.Vector.field(2, ti.f64, (), needs_grad=True, needs_dual=True)

    @ti.kernel
    def run():
        for i in x:
            y[None] += ti.Vector([x[i].x * x[i].y, x[i].x * (i + 1)])

    start = np.arange(1.0, 7.0).reshape(3, 2)
    x.from_numpy(start)
    found = ti.ad.jacobian(run, wrt=x, loss=y, mode=mode)()
    wanted = np.zeros((2, 3, 2))
    wanted[0, :, 0], wanted[0, :, 1], wanted[1, :, 0] = start[:, 1], start[:, 0], [1, 2, 3]
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize(("inputs", "outputs", "runs"), [(1, 7, 1), (7, 1, 1), (3, 3, 1), (2, 5, 1), (17, 20, 2)])
def test_the_mode_with_fewer_runs(inputs: int, outputs: int, runs: int) -> None:
    x, y = _both(inputs), _both(outputs)
    ran = 0

    @ti.kernel
    def kernel():
        for i in y:
            y[i] = (i + 1) * x[i % inputs]

    def run() -> None:
        nonlocal ran
        ran += 1
        kernel()

    found = ti.ad.jacobian(run, wrt=x, loss=y)()
    wanted = np.zeros((outputs, inputs))
    wanted[np.arange(outputs), np.arange(outputs) % inputs] = np.arange(outputs) + 1
    assert np.array_equal(found, wanted)
    assert ran == runs  # a forward run for 16 inputs, or one run and a reverse sweep for each output


def test_a_jacobian_runs_where_only_one_mode_is_possible() -> None:
    x, y = ti.field(ti.f64, 1, needs_grad=True), ti.field(ti.f64, 5, needs_grad=True)

    @ti.kernel
    def run():
        for i in y:
            y[i] = i * x[0]

    assert ti.ad.jacobian(run, wrt=x, loss=y)().tolist() == [[0.0], [1.0], [2.0], [3.0], [4.0]]
    with pytest.raises(DifferentiationError, match="has no dual"):
        ti.ad.jacobian(run, wrt=x, loss=y, mode="forward")


def test_what_is_refused() -> None:
    p = Program()
    plain = ti.field(ti.f64, 4)
    for make, message in (
        (lambda: ti.ad.grad(3, wrt=p.x, loss=p.total), "kernel or a function"),
        (lambda: ti.ad.grad(p.run, wrt=p.x)(1.0), "that is nothing"),
        (lambda: ti.ad.grad(p.run, wrt=p.x, loss=3.0), "must be a field"),
        (lambda: ti.ad.grad(p.run, wrt=p.x, loss=p.y), "must be a single number"),
        (lambda: ti.ad.grad(p.run, wrt=[], loss=p.total), "a field or a list of fields"),
        (lambda: ti.ad.grad(p.run, wrt="x", loss=p.total), "a field or a list of fields"),
        (lambda: ti.ad.value_and_grad(p.run, wrt=plain, loss=p.total), "'plain' has no gradient"),
        (lambda: ti.ad.jvp(p.run, wrt=plain, loss=p.total), "'plain' has no dual"),
        (lambda: ti.ad.jacobian(p.run, wrt=p.x, loss=p.y, mode="sideways"), "'forward' or 'reverse'"),
        (lambda: ti.ad.vjp(p.run, wrt=p.x, loss=p.y)(np.ones(3), 1.0), r"shape \(3,\)"),
        (lambda: ti.ad.vjp(p.run, wrt=p.x, loss=p.y)("a", 1.0), "made of numbers"),
        (lambda: ti.ad.jvp(p.run, wrt=p.x, loss=p.y)(np.ones(3), 1.0), r"shape \(3,\)"),
    ):
        with pytest.raises(DifferentiationError, match=message) as caught:
            make()
        assert caught.value.span.file == __file__


def test_a_chain_through_numpy_is_refused_in_both_modes() -> None:
    x, y, total = _both(3), np.zeros(3), _both()

    @ti.kernel
    def first(y: ti.types.ndarray()):
        for i in x:
            y[i] = x[i] ** 2

    @ti.kernel
    def second(y: ti.types.ndarray()):
        for i in y:
            total[None] += y[i]

    def run() -> None:
        first(y)
        second(y)

    warned = pytest.warns(UserWarning, match="a plain number goes to kernel 'second'")
    with warned, pytest.raises(DifferentiationError, match="'y' has no gradient"):
        ti.ad.grad(run, wrt=x, loss=total)()
    with pytest.raises(DifferentiationError, match="'y' has no dual") as caught:
        ti.ad.jvp(run, wrt=x, loss=total)(np.ones(3))
    assert "def first" in str(caught.value)

    @ti.kernel
    def together(y: ti.types.ndarray()):
        for i in x:
            y[i] = x[i] ** 2
        for i in y:
            total[None] += y[i]

    with pytest.raises(DifferentiationError, match="'y' has no dual") as caught:
        ti.ad.jvp(lambda: together(y), wrt=x, loss=total)(np.ones(3))
    assert "y[i] = x[i] ** 2" in str(caught.value)
    assert "total[None] += y[i]" in str(caught.value)
    # Constants may go through it.
    total[None] = 0
    assert ti.ad.jvp(lambda: second(np.full(3, 2.0)), wrt=x, loss=total)(np.ones(3)) == (6.0, 0.0)


def test_an_exception_leaves_everything_usable() -> None:
    p = Program()
    p.x.grad.fill(5)

    def bad(a: float) -> None:
        p.run(a)
        raise ZeroDivisionError

    for derivative in (ti.ad.grad(bad, wrt=p.x, loss=p.total), ti.ad.jacobian(bad, wrt=p.x, loss=p.y)):
        with pytest.raises(ZeroDivisionError):
            derivative(1.0)
    assert (p.x.grad.to_numpy() == 5).all()
    np.testing.assert_allclose(ti.ad.grad(p.run, wrt=p.x, loss=p.total)(3.0), p.slopes(3.0), rtol=1e-12)


def test_copies_by_python_in_forward_mode() -> None:
    x, y, lost = _both(3), _both(3), ti.field(ti.f64, 3)
    constant = ti.field(ti.f64, 3, needs_grad=False)

    @ti.kernel
    def double():
        for i in x:
            lost[i] = 2 * x[i]

    def through_kernel_and_copy() -> None:
        double()
        y.copy_from(lost)

    def through_two_copies() -> None:
        lost.copy_from(x)
        y.copy_from(lost)

    def overwritten() -> None:
        double()
        lost.fill(1)
        y.copy_from(lost)

    def through_a_constant() -> None:
        constant.copy_from(x)
        y.copy_from(constant)

    with pytest.raises(DifferentiationError, match="was declared to have no dual"):
        ti.ad.jvp(through_a_constant, wrt=x, loss=y)(np.ones(3))
    for run, slope in ((through_kernel_and_copy, 2), (through_two_copies, 1)):
        assert ti.ad.jvp(run, wrt=x, loss=y)(np.ones(3))[1].tolist() == [slope] * 3
    value, product = ti.ad.jvp(overwritten, wrt=x, loss=y)(np.ones(3))
    assert value.tolist() == [1.0] * 3
    assert product.tolist() == [0.0] * 3


@ti.kernel
def squares_of(q: ti.types.ndarray(), factor: ti.f64) -> ti.f64:
    total = 0.0
    for i in range(3):
        total += factor * q[i] ** 2
    return total


def first_element(q: Any) -> Any:
    q[1] = 5.0
    return squares_of(q, 1.0)


def all_elements(q: Any) -> Any:
    q.fill(2.0)
    return squares_of(q, 1.0)


def shifted(q: Any) -> Any:
    q[1] += 5.0
    return squares_of(q, 1.0)


def exchanged(q: Any) -> Any:
    q[0], q[1] = q[1], 3.0 * q[0]
    return squares_of(q, 1.0)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (first_element, [2.0, 0.0, 6.0]),
        (all_elements, [0.0, 0.0, 0.0]),
        (shifted, [2.0, 14.0, 6.0]),
        (exchanged, [18.0, 4.0, 6.0]),
    ],
)
def test_what_a_function_writes_to_its_argument_first_takes_its_place(function: Any, expected: list[float]) -> None:
    def given() -> tuple[Any, Any]:
        own = ti.ndarray(ti.f64, shape=3, needs_grad=True, needs_dual=True)
        own.from_numpy(np.array([1.0, 2.0, 3.0]))
        return np.array([1.0, 2.0, 3.0]), own

    for derivative in (
        ti.ad.grad(function),
        ti.ad.jacobian(function),
        ti.ad.jacobian(function, mode="forward"),
    ):
        for array in given():
            assert derivative(array) == pytest.approx(expected)


def test_what_a_program_writes_to_a_field_first_takes_its_place() -> None:
    x = ti.field(ti.f64, shape=3, needs_grad=True, needs_dual=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True, needs_dual=True)

    @ti.kernel
    def measure():
        for i in x:
            loss[None] += x[i] ** 2

    def program() -> None:
        x[1] = 5.0
        x[2] *= 2.0
        measure()

    for mode in ("reverse", "forward"):
        x.from_numpy(np.array([1.0, 2.0, 3.0]))
        found = ti.ad.jacobian(program, wrt=x, loss=loss, mode=mode)()
        assert found == pytest.approx([2.0, 0.0, 24.0]), mode
