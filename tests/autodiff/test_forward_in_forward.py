"""Forward-mode blocks inside of forward-mode blocks: each has tangents of its own."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.test_nested import difference
from tests.autodiff.user import session  # noqa: F401
from tinote.errors import DifferentiationError

Array1: Any = ti.types.ndarray(dtype=ti.f64, ndim=1)
ALONG = np.array([1.0, 0.5, -2.0])


class Program:
    """y depends on x by way of `hidden`, which has no dual of its own, and on w; z on y' along x, on y and on w."""

    def __init__(self) -> None:
        both: dict[str, Any] = {"needs_grad": True, "needs_dual": True}
        self.x = x = ti.field(ti.f64, 3, name="x", **both)
        self.w, self.y, self.z, self.u = w, y, z, u = [ti.field(ti.f64, (), name=n, **both) for n in "wyzu"]
        hidden = ti.field(ti.f64, 3, name="hidden")

        @ti.kernel
        def prepare():
            for i in x:
                hidden[i] = w[None] * x[i]

        @ti.kernel
        def measure(k: ti.f64):
            for i in x:
                y[None] += k * ti.sin(hidden[i]) * x[i] ** 2 * w[None]

        @ti.kernel
        def prepare_and_measure(k: ti.f64):
            for i in x:
                y[None] += k * ti.sin(w[None] * x[i]) * x[i] ** 2 * w[None]

        @ti.kernel
        def use():
            z[None] += ti.sin(y.dual[None]) * w[None] + y.dual[None] * y[None]

        @ti.kernel
        def use_second():
            u[None] += z.dual[None] ** 2 * w[None] + z[None] * z.dual[None]

        self.prepare, self.measure, self.use, self.use_second = prepare, measure, use, use_second
        self.prepare_and_measure = prepare_and_measure

    def begin(self, shift: float = 0.0) -> None:
        self.x.from_numpy(np.array([0.3, 0.7, -0.4]))
        self.w[None] = 1.3 + shift
        self.y[None] = self.z[None] = self.u[None] = 0.0

    def inner(self) -> AbstractContextManager[Any]:
        return ti.ad.FwdMode(loss=self.y, param=self.x, seed=ALONG)

    def run(self) -> None:
        self.prepare()
        before = self.w[None] * 2.0
        with self.inner():
            self.prepare()
            self.measure(self.w[None] ** 2)
        self.use()
        self.z[None] += self.y.dual[None] * before * self.w[None]

    def run_twice(self) -> None:
        """With a derivative of the whole inside."""
        with ti.ad.FwdMode(loss=self.z, param=self.w):
            self.run()
        self.use_second()

    def slope(self, run: Callable[[], None], result: Any) -> float:
        def value(shift: float) -> float:
            self.begin(shift)
            run()
            return result[None]

        return difference(value, 0.0)


@pytest.fixture
def program() -> Iterator[Program]:
    yield Program()


def test_the_outer_block_differentiates_what_the_inner_one_leaves(program: Program) -> None:
    expected = program.slope(program.run, program.z)
    program.begin()
    with ti.ad.FwdMode(loss=program.z, param=program.w):
        program.run()
    assert program.z.dual[None] == pytest.approx(expected, rel=1e-8)
    # Its duals are all its own then, and the next block starts as ever.
    assert program.w.dual[None] == 0 and not program.x.dual.to_numpy().any()
    by_y = program.y.dual[None]
    program.begin()
    with ti.ad.FwdMode(loss=program.y, param=program.w):
        program.prepare()
        program.measure(program.w[None] ** 2)
    assert program.y.dual[None] == pytest.approx(by_y, rel=1e-12)


def test_perturbations_are_not_confused(program: Program) -> None:
    """d/dw of w · (d/dw of w) is 1 where the inner derivative is by the same field."""
    w, y, z = program.w, program.y, program.z

    @ti.kernel
    def copy():
        y[None] = w[None]

    @ti.kernel
    def times():
        z[None] = w[None] * y.dual[None]

    program.begin()
    with ti.ad.FwdMode(loss=z, param=w):
        with ti.ad.FwdMode(loss=y, param=w):
            copy()
        times()
    assert (z[None], z.dual[None]) == (1.3, 1.0)


def test_three_blocks(program: Program) -> None:
    expected = program.slope(program.run_twice, program.u)
    for _ in range(2):
        program.begin()
        with ti.ad.FwdMode(loss=program.u, param=program.w):
            program.run_twice()
        assert program.u.dual[None] == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("mode", ["grad", "jvp", "hvp"])
def test_derivatives_after_an_inner_block(program: Program, mode: str) -> None:
    def run() -> None:
        program.run()
        program.y[None] = 0.0

        def measure() -> None:
            program.prepare()
            program.measure(program.w[None])

        if mode == "grad":
            slope = ti.ad.grad(measure, wrt=program.x, loss=program.y)()
        elif mode == "hvp":
            slope = ti.ad.hvp(measure, wrt=program.x, loss=program.y)(ALONG)
        else:
            program.u[None] += ti.ad.jvp(measure, wrt=program.x, loss=program.y)(ALONG)[1] * program.z[None]
            return
        add(slope)

    u, z = program.u, program.z

    @ti.kernel
    def add(slope: Array1):
        for i in range(3):
            u[None] += slope[i] ** 2 * (i + 1) * z[None]

    expected = program.slope(run, u)
    program.begin()
    with ti.ad.FwdMode(loss=u, param=program.w):
        run()
    assert u.dual[None] == pytest.approx(expected, rel=1e-7)


def test_a_block_that_fails_leaves_the_outer_one_right(program: Program) -> None:
    expected = program.slope(program.run, program.z)
    program.begin()
    with ti.ad.FwdMode(loss=program.z, param=program.w):
        with pytest.raises(RuntimeError), program.inner():
            program.prepare()
            raise RuntimeError
        program.run()
    assert program.z.dual[None] == pytest.approx(expected, rel=1e-8)
    with pytest.raises(RuntimeError), ti.ad.FwdMode(loss=program.z, param=program.w):
        program.run()
        raise RuntimeError
    program.begin()
    with ti.ad.FwdMode(loss=program.z, param=program.w):
        program.run()
    assert program.z.dual[None] == pytest.approx(expected, rel=1e-8)


def test_what_a_block_inside_cannot_do_is_refused_with_both_lines(program: Program) -> None:
    several = ti.ad.FwdMode(loss=program.z, param=program.x, seed=np.eye(3))
    for outer, inner in [
        (ti.ad.FwdMode(loss=program.z, param=program.w), several),
        (several, ti.ad.FwdMode(loss=program.z, param=program.w)),
    ]:
        program.begin()
        with outer, pytest.raises(DifferentiationError) as refused:
            inner.__enter__()
        assert "inside of this" in str(refused.value)


@pytest.mark.parametrize("between", ["nothing", "a block", "jvp", "a block in jvp"])
def test_what_is_lost_before_a_block_inside_is_refused_after_it(between: str) -> None:
    x, y, z, w = (ti.field(ti.f64, (), needs_grad=True, needs_dual=True) for _ in range(4))
    constant = ti.field(ti.f64, (), needs_grad=False)

    @ti.kernel
    def store() -> None:
        constant[None] = x[None] ** 2

    @ti.kernel
    def use() -> None:
        y[None] += constant[None] * x[None]

    @ti.kernel
    def square() -> None:
        w[None] += z[None] ** 2

    def block(a: Any) -> Any:
        with ti.ad.FwdMode(loss=w, param=z):
            square()
        return a * a

    x[None], z[None] = 3.0, 2.0
    with pytest.raises(DifferentiationError) as refused, ti.ad.FwdMode(loss=y, param=x):
        store()
        if between == "a block":
            block(1.0)
        elif between != "nothing":
            assert ti.ad.jvp(block if "block" in between else lambda a: a * a)(1.0, 2.0) == (4.0, 4.0)
        use()
    assert "'constant' was declared to have no" in str(refused.value) and "constant[None] = x[None]" in str(
        refused.value
    )


def test_tapes_before_and_after_a_block_inside(program: Program) -> None:
    x, y, z, w = program.x, program.y, program.z, program.w

    @ti.kernel
    def descend():
        for i in x:
            x[i] -= 0.1 * x.grad[i] * y[None]

    def tape() -> None:
        with ti.ad.Tape(y):
            program.prepare_and_measure(w[None] + 1.0)
        descend()

    def run() -> None:
        tape()
        program.run()
        tape()
        z[None] += x[0] * x[1] * y[None] + x.grad[2] * w.grad[None]

    slope = program.slope(run, z)
    program.begin()
    with ti.ad.FwdMode(loss=z, param=w):
        run()
    assert z.dual[None] == pytest.approx(slope, rel=1e-7)


def test_the_product_of_one_seed_with_a_leading_axis_is_the_outer_blocks(program: Program) -> None:
    expected = program.slope(program.run, program.z)
    program.begin()
    with ti.ad.FwdMode(loss=program.z, param=program.w, seed=[1.0]) as mode:
        program.run()
        with ti.ad.FwdMode(loss=program.z, param=program.x, seed=ALONG):
            program.z[None] = program.z[None] + 0.0
    assert mode.duals == pytest.approx(np.array([expected]), rel=1e-8)
