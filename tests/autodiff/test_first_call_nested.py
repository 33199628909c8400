"""The first nested derivative of a session gives what later ones give: what it comes to need by way of duals is there
before anything is recorded, also of ndarrays, which launches have bound by then.
"""

from typing import Any

import numpy as np
import pytest

import tinote as ti

COUNT = 4
Numbers = np.ndarray[Any, Any]


class Program:
    """Σ a²(d + e), by a kernel with an ndarray that is launched twice; `inner` takes a derivative by a."""

    def __init__(self, threads: int = 1) -> None:
        ti.init(default_fp=ti.f64, num_threads=threads)
        both: dict[str, Any] = {"needs_grad": True, "needs_dual": True}
        self.a, self.b = [ti.field(ti.f64, shape=COUNT, **both) for _ in range(2)]
        self.loss, self.total = [ti.field(ti.f64, shape=(), **both) for _ in range(2)]
        self.d, self.e = [ti.ndarray(ti.f64, shape=COUNT, needs_grad=True) for _ in range(2)]
        a, b, loss, total = self.a, self.b, self.loss, self.total
        column = ti.types.ndarray(dtype=ti.f64, ndim=1)

        @ti.kernel
        def add(d: column):
            for i in a:
                loss[None] += a[i] ** 2 * d[i]

        @ti.kernel
        def use(slopes: column):
            for i in a:
                total[None] += ti.sin(slopes[i]) * (1 + b[i])

        @ti.kernel
        def use_gradients():
            for i in a:
                total[None] += ti.sin(a.grad[i]) * (1 + b[i])

        @ti.kernel
        def use_number(x: ti.f64):
            total[None] += ti.sin(x) * (1 + b[0])

        self.add, self.use, self.use_gradients, self.use_number = add, use, use_gradients, use_number
        self.along = np.cos(np.arange(COUNT))

    def begin(self) -> None:
        numbers = np.random.default_rng(2)
        for one in (self.a, self.b, self.d, self.e):
            one.from_numpy(numbers.uniform(0.2, 1, COUNT))
            one.grad.fill(0)
        self.loss[None] = self.total[None] = 0

    def once(self) -> None:
        self.add(self.d)
        self.add(self.e)

    def inside(self, mode: str) -> None:
        if mode == "tape":
            with ti.ad.Tape(self.loss):
                self.once()
            self.use_gradients()
        elif mode == "block":
            with ti.ad.FwdMode(loss=self.loss, param=self.a, seed=self.along):
                self.once()
            self.use_number(self.loss.dual[None])
        elif mode == "grad":
            self.use(ti.ad.grad(self.once, wrt=self.a, loss=self.loss)())
        elif mode == "jvp":
            self.use_number(ti.ad.jvp(self.once, wrt=self.a, loss=self.loss)(self.along)[1])
        elif mode == "hvp":
            self.use(ti.ad.hvp(self.once, wrt=self.a, loss=self.loss)(self.along))

    def number(self, mode: str) -> float:
        """What the program gives, as a number."""
        self.inside(mode)
        return self.total[None] * 1.0

    def gradient(self, inner: str, step: float) -> list[Numbers]:
        """The gradient of the program by a and b, which are moved by `step` along."""
        self.begin()
        for one in (self.a, self.b):
            one.from_numpy(one.to_numpy() + step * self.along)
        return list(ti.ad.grad(lambda: self.inside(inner), wrt=[self.a, self.b], loss=self.total)())

    def slope(self, inner: str) -> float:
        """The derivative of the total along, from differences."""
        found = []
        for step in (1e-6, -1e-6):
            self.begin()
            for one in (self.a, self.b):
                one.from_numpy(one.to_numpy() + step * self.along)
            self.inside(inner)
            found.append(self.total[None])
        return (found[0] - found[1]) / 2e-6

    def around(self, mode: str, inner: str) -> list[Numbers]:
        """The derivative of the total by a, b, d and e, as far as the mode gives it."""
        self.begin()
        if mode == "tape":
            with ti.ad.Tape(self.total):
                self.inside(inner)
            return [one.grad.to_numpy() for one in (self.a, self.b, self.d, self.e)]
        if mode == "block":
            with ti.ad.FwdMode(loss=self.total, param=[self.a, self.b], seed=[self.along, self.along]):
                self.inside(inner)
            return [np.array(self.total.dual[None])]
        inputs = [self.a, self.b]
        if mode == "number":
            return [np.array(ti.ad.jvp(lambda: self.number(inner), wrt=inputs)([self.along] * 2)[1])]
        if mode == "hvp":
            return list(ti.ad.hvp(lambda: self.inside(inner), wrt=inputs, loss=self.total)([self.along] * 2))
        if mode == "grad":
            return list(ti.ad.grad(lambda: self.inside(inner), wrt=inputs, loss=self.total)())
        return [np.array(ti.ad.jvp(lambda: self.inside(inner), wrt=inputs, loss=self.total)([self.along] * 2)[1])]


@pytest.mark.parametrize("inner", ["tape", "block", "grad", "jvp", "hvp"])
@pytest.mark.parametrize("outer", ["tape", "block", "grad", "jvp", "number"])
def test_the_first_call_gives_what_the_second_gives(outer: str, inner: str) -> None:
    program = Program()
    first, second = [program.around(outer, inner) for _ in range(2)]
    for a, b in zip(first, second, strict=True):
        np.testing.assert_allclose(a, b, 1e-12, 1e-12)
    found = (first[0] + first[1]) @ program.along if len(first) > 1 else first[0]
    assert found == pytest.approx(program.slope(inner), rel=1e-6)


@pytest.mark.parametrize("inner", ["grad", "jvp", "hvp"])
def test_the_first_second_derivative_gives_what_the_second_gives(inner: str) -> None:
    program = Program()
    first, second = [program.around("hvp", inner) for _ in range(2)]
    above, below = [program.gradient(inner, step) for step in (1e-5, -1e-5)]
    for one, other, high, low in zip(first, second, above, below, strict=True):
        np.testing.assert_allclose(one, other, 1e-12, 1e-12)
        np.testing.assert_allclose(one, (high - low) / 2e-5, 1e-6, 1e-6)


@pytest.mark.parametrize("inner", ["tape", "grad", "block"])
def test_an_ndarray_that_is_made_inside(inner: str) -> None:
    """What is launched with it is launched again along a direction, when the function has let go of it."""
    program = Program()
    program.begin()
    a, along = program.a.to_numpy(), program.along

    def once() -> None:
        late = ti.ndarray(ti.f64, shape=COUNT, needs_grad=True)
        late.fill(0.5)
        program.add(late)

    with ti.ad.Tape(program.total):
        if inner == "tape":
            with ti.ad.Tape(program.loss):
                once()
            program.use_gradients()
        elif inner == "grad":
            program.use(ti.ad.grad(once, wrt=program.a, loss=program.loss)())
        else:
            with ti.ad.FwdMode(loss=program.loss, param=program.a, seed=along):
                once()
            program.use_number(program.loss.dual[None])
    if inner == "block":
        product = a @ along  # 2 * 0.5 * a along
        expected = np.cos(product) * along * (1 + program.b[0])
    else:
        expected = np.cos(a) * (1 + program.b.to_numpy())
    np.testing.assert_allclose(program.a.grad.to_numpy(), expected, 1e-12)


@pytest.mark.parametrize("inner", ["grad", "jvp"])
def test_an_ndarray_that_is_made_in_the_innermost_of_three(inner: str) -> None:
    program = Program()

    def once() -> None:
        late = ti.ndarray(ti.f64, shape=COUNT, needs_grad=True)
        for i in range(COUNT):
            late[i] = program.a[i] * 0.5
        program.add(late)

    program.once = once  # type: ignore[method-assign]

    def slopes(step: float) -> Numbers:
        program.begin()
        program.a.from_numpy(program.a.to_numpy() + step * program.along)
        return ti.ad.grad(lambda: program.inside(inner), wrt=program.a, loss=program.total)()

    program.begin()
    found = ti.ad.hvp(lambda: program.inside(inner), wrt=program.a, loss=program.total)(program.along)
    np.testing.assert_allclose(found, (slopes(1e-5) - slopes(-1e-5)) / 2e-5, 1e-6, 1e-6)
