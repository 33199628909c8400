"""Means of losses and gradients over many scenes, and programs as problems of SciPy's."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import tinote as ti
from tinote.errors import DifferentiationError, SweepError
from tinote.lang.sweeps.trees import Tree, part_length


def _program() -> Any:
    x = ti.field(ti.f32, 16, needs_grad=True)
    start = ti.field(ti.f32, 16)
    loss = ti.field(ti.f32, (), needs_grad=True)
    start.fill(0.5)

    @ti.kernel
    def scatter(spread: ti.f32):
        for i in start:
            start[i] += spread * ti.random()

    @ti.kernel
    def measure():
        for i in x:
            loss[None] += (ti.sin(x[i]) - start[i]) ** 2

    def run(spread: float) -> None:
        scatter(spread)
        measure()

    return x, start, loss, run


def test_the_same_for_any_number_of_workers() -> None:
    x, start, loss, run = _program()
    scenes = {"spread": np.linspace(0, 1, 7)}
    found = []
    for workers in (1, 2, 8):
        x.fill(0.25)
        with ti.ensemble(run, scenes, wrt=x, loss=loss, workers=workers) as mean:
            first = mean()
            x.fill(0.75)  # as an optimiser does; the other fields are as they were
            found.append((first, mean(), mean.losses.copy()))
    for (value, gradient), (later, other), losses in found[1:]:
        assert value == found[0][0][0] and (gradient == found[0][0][1]).all()
        assert later == found[0][1][0] and (other == found[0][1][1]).all() and (losses == found[0][2]).all()
    (value, gradient), (later, _), losses = found[0]
    assert later == pytest.approx(losses.mean(), rel=1e-6) and value != later
    # The expectation of start is 0.5 + spread / 2; its first scene spreads nothing.
    assert losses[0] == pytest.approx(16 * (np.sin(0.75) - 0.5) ** 2, rel=1e-5)
    assert gradient.shape == (16,) and (start.to_numpy() == 0.5).all()


def test_arguments_and_sums() -> None:
    @ti.kernel
    def square(a: ti.types.ndarray(dtype=ti.f64, ndim=1), k: ti.f64) -> ti.f64:
        found = ti.f64(0.0)
        for i in a:
            found += k * a[i] ** 2
        return found

    a = np.array([1.0, 2.0])
    with ti.ensemble(square, {"k": [1.0, 2.0, 3.0]}, reduction="sum") as total:
        value, gradient = total(a)
    assert value == 30 and gradient.tolist() == [12.0, 24.0]

    def larger(one: Any, other: Any) -> Any:
        return max(one, other, key=lambda pair: pair[0])

    with ti.ensemble(square, {"k": [1.0, 2.0, 3.0]}, reduction=larger, workers=1) as worst:
        assert worst(a)[0] == 15
        with pytest.raises(SweepError, match="the scene"):
            worst("text")
    with pytest.raises(SweepError, match="reduction is"):
        ti.ensemble(square, {"k": [1.0]}, reduction="median")


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 13])
def test_trees_do_not_depend_on_the_order(count: int) -> None:
    rng = np.random.default_rng(count)
    values = (rng.standard_normal(count) * 10.0 ** rng.integers(-8, 8, count)).tolist()
    found = set()
    for _ in range(20):
        tree = Tree(count, lambda a, b: a + b)
        for number in rng.permutation(count):
            tree.add(int(number), values[number])
        found.add(tree.result)
    assert len(found) == 1 and found.pop() == pytest.approx(sum(values))


def test_parts_are_trees_of_their_own() -> None:
    rng = np.random.default_rng(0)
    for count in range(1, 40):
        values = (rng.standard_normal(count) * 10.0 ** rng.integers(-8, 8, count)).tolist()
        whole = Tree(count, lambda a, b: a + b)
        for number, value in enumerate(values):
            whole.add(number, value)
        for length in (1, 2, 4, 8):
            parts = [values[begin : begin + length] for begin in range(0, count, length)]
            top = Tree(len(parts), lambda a, b: a + b)
            for number, part in enumerate(parts):
                tree = Tree(len(part), lambda a, b: a + b)
                for place, value in enumerate(part):
                    tree.add(place, value)
                top.add(number, tree.result)
            assert top.result == whole.result
    assert [part_length(count, 2) for count in (1, 15, 16, 64, 1000)] == [1, 1, 2, 8, 64]
    assert part_length(7, 0) == 1


def test_parts_of_many_scenes() -> None:
    x, _, loss, run = _program()
    x.fill(0.25)
    scenes = {"spread": np.linspace(0, 1, 50)}
    found = []
    for workers in (1, 3):
        with ti.ensemble(run, scenes, wrt=x, loss=loss, workers=workers) as mean:
            found.append((*mean(), mean.losses.copy()))
    for a, b in zip(*found, strict=True):
        assert np.array_equal(a, b)

    def fails(spread: float) -> None:
        run(spread)
        if spread > 0.97:
            raise ValueError("too far")

    said = r"the scene \{'spread': 0\.97\d*\} has failed(.|\n)*too far"
    with ti.ensemble(fails, scenes, wrt=x, loss=loss) as mean, pytest.raises(SweepError, match=said):
        mean()


def _rosenbrock() -> Any:
    x = ti.field(ti.f64, 4, needs_grad=True)
    y = ti.Vector.field(2, ti.f64, shape=(), needs_grad=True)
    loss = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def measure():
        for i in range(3):
            loss[None] += 100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2
        for _ in range(1):
            loss[None] += (y[None][0] - x[0]) ** 2 + y[None][1] ** 4

    return x, y, loss, measure


@pytest.mark.parametrize("method", ["L-BFGS-B", "trust-ncg", "Newton-CG"])
def test_scipy_finds_the_minimum(method: str) -> None:
    x, y, loss, measure = _rosenbrock()
    y[None] = [3.0, 1.0]
    problem = ti.ad.scipy_problem(measure, wrt=[x, y], loss=loss)
    assert problem.size == 6 and problem.x0.tolist() == [0, 0, 0, 0, 3, 1]
    second = {} if method == "L-BFGS-B" else {"hessp": problem.hessp}
    found = scipy.optimize.minimize(problem.value_and_grad, problem.x0, jac=True, method=method, tol=1e-10, **second)
    assert found.x[:5] == pytest.approx(np.ones(5), abs=1e-3) and abs(found.x[5]) < 0.05
    problem.write(found.x)
    assert x.to_numpy() == pytest.approx(np.ones(4), abs=1e-3)
    error = scipy.optimize.check_grad(problem.value, problem.grad, np.linspace(0.1, 0.9, 6))
    assert error < 1e-4


def test_problems_over_arguments() -> None:
    @ti.kernel
    def bowl(a: ti.types.ndarray(dtype=ti.f64, ndim=1), b: ti.types.ndarray(dtype=ti.f64, ndim=2)) -> ti.f64:
        found = ti.f64(0.0)
        for i in a:
            found += (a[i] - i) ** 2
        for i, j in b:
            found += (b[i, j] - 2.0) ** 2
        return found

    problem = ti.ad.scipy_problem(bowl, np.zeros(3), np.zeros((2, 2)))
    found = scipy.optimize.minimize(
        problem.value, problem.x0, jac=problem.grad, hessp=problem.hessp, method="trust-ncg"
    )
    assert found.x == pytest.approx([0, 1, 2, 2, 2, 2, 2]) and problem.write(found.x)[1].shape == (2, 2)
    problem.grad(found.x)
    before = problem.evaluations
    problem.value(found.x)
    assert problem.evaluations == before
    with pytest.raises(DifferentiationError, match="has 7 unknowns"):
        problem.value(np.zeros(3))
    with pytest.raises(DifferentiationError, match="either fields or arguments"):
        ti.ad.scipy_problem(bowl)


@pytest.mark.parametrize(("dtype", "copies"), [(ti.f64, 0), (ti.f32, 1)])
def test_a_problem_copies_its_vectors_once(dtype: Any, copies: int) -> None:
    """What Python allocates for a large field. A derivative's own array is none of that: in f64 it is the vector."""
    size = 1 << 17
    x, loss = ti.field(dtype, size, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def measure():
        for i in x:
            loss[None] += (x[i] - 2.0) ** 4

    problem = ti.ad.scipy_problem(measure, wrt=x, loss=loss)
    at, direction = np.zeros(size), np.ones(size)
    for name in ("value", "value_and_grad", "grad", "hessp"):
        arguments = [at, direction] if name == "hessp" else [at]
        call = getattr(problem, name)
        for _ in range(8):  # the first calls find out how to run
            at += 2**-6
            call(*arguments)
        at += 2**-6
        tracemalloc.start()
        try:
            found = call(*arguments)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < (copies + 0.5) * at.nbytes, name
        gradient = 4 * (at - 2) ** 3
        wanted = {"value": ((at - 2) ** 4).sum(), "grad": gradient, "hessp": 12 * (at - 2) ** 2}
        found = found[1] if name == "value_and_grad" else found
        assert np.allclose(found, wanted.get(name, gradient), rtol=1e-4), name


def test_a_gradient_is_the_callers_own() -> None:
    x, y, loss, measure = _rosenbrock()
    problem = ti.ad.scipy_problem(measure, wrt=[x, y], loss=loss)
    at = np.linspace(0.1, 0.9, 6)
    value, first = problem.value_and_grad(at)
    wanted, evaluations = first.copy(), problem.evaluations
    first[:] = 7
    assert (problem.grad(at) == wanted).all() and problem.value(at) == value
    at[0] += 1  # methods change their vectors in place
    problem.value(at)
    assert problem.evaluations == evaluations + 2 and not (problem.grad(at) == wanted).all()
    assert problem.evaluations == evaluations + 2
