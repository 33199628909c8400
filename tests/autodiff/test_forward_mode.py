"""`ti.ad.FwdMode` through the public interface."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import DifferentiationError


@pytest.fixture(autouse=True)
def fresh() -> None:
    ti.init(default_fp=ti.f64)


def test_sine_at_zero() -> None:
    x = ti.field(ti.f64, (), needs_dual=True)
    y = ti.field(ti.f64, (), needs_dual=True)

    @ti.kernel
    def compute_y():
        y[None] = ti.sin(x[None])

    with ti.ad.FwdMode(loss=y, param=x):
        compute_y()
    assert y.dual[None] == 1.0 and y[None] == 0.0


@pytest.mark.parametrize("seed", [[1.0, 0.0], [0.0, 1.0]])
def test_columns_of_a_jacobian(seed: list[float]) -> None:
    x = ti.field(ti.f32, 2, needs_dual=True)
    y = ti.field(ti.f32, 5, needs_dual=True)

    @ti.kernel
    def compute_y():
        for i in range(5):
            for j in range(2):
                y[i] += i * ti.sin(x[j])

    for _ in range(2):  # duals of the loss are cleared at entry
        y.fill(0)
        with ti.ad.FwdMode(loss=y, param=x, seed=seed):
            compute_y()
        assert y.dual.to_numpy().tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert x.dual.to_numpy().tolist() == [0.0, 0.0]


def test_chain_of_kernels_loops_and_branches_equals_differences() -> None:
    n = 6
    x = ti.Vector.field(2, ti.f64, n, needs_dual=True)
    z = ti.field(ti.f64, n, needs_dual=True)
    y = ti.field(ti.f64, (), needs_dual=True)

    @ti.kernel
    def first():
        for i in x:
            s = 0.3
            for k in range(i + 1):
                s = ti.sin(s * x[k].x) + x[i].norm(0.1)
            if s > 1.0:
                s = s * s
            while s > 0.9:
                s *= 0.7
            z[i] = s

    @ti.kernel
    def second():
        for i in z:
            y[None] += z[i] * ti.exp(-z[n - 1 - i])

    rng = np.random.default_rng(3)
    at, along = rng.random((n, 2)), rng.random((n, 2))

    def value(offset: float) -> float:
        x.from_numpy(at + offset * along)
        y[None] = 0
        first()
        second()
        return y[None]

    step = 1e-6
    wanted = (value(step) - value(-step)) / (2 * step)
    x.from_numpy(at)
    y[None] = 0
    with ti.ad.FwdMode(loss=y, param=x, seed=along):
        first()
        second()
    assert y.dual[None] == pytest.approx(wanted, rel=1e-7)


def test_what_python_writes_inside_is_constant() -> None:
    x = ti.field(ti.f64, (), needs_dual=True)
    y = ti.field(ti.f64, 2, needs_dual=True)

    @ti.kernel
    def compute_y():
        for i in y:
            y[i] = 3 * x[None]

    x[None] = 2.0
    with ti.ad.FwdMode(loss=y, param=x):
        compute_y()
        y[1] = 7.0
    assert y.dual.to_numpy().tolist() == [3.0, 0.0]


def test_a_copy_of_a_field_onto_itself_keeps_its_dual() -> None:
    x = ti.field(ti.f64, 2, needs_dual=True)

    @ti.kernel
    def square():
        for i in x:
            x[i] = x[i] * x[i]

    x.from_numpy(np.array([2.0, 3.0]))
    with ti.ad.FwdMode(loss=x, param=x, seed=[1.0, 10.0]):
        square()
        x.copy_from(x)
        tangents = x.dual.to_numpy().tolist()
    assert tangents == [4.0, 60.0]


def test_several_parameters_and_losses() -> None:
    a, b = (ti.field(ti.f64, (), needs_dual=True) for _ in range(2))
    p, q = (ti.field(ti.f64, (), needs_dual=True) for _ in range(2))

    @ti.kernel
    def compute():
        p[None] = a[None] * b[None]
        q[None] = a[None] + 2 * b[None]

    a[None], b[None] = 3.0, 5.0
    with ti.ad.FwdMode(loss=[p, q], param=[a, b], seed=[1.0, 10.0]):
        compute()
    assert (p.dual[None], q.dual[None]) == (5.0 + 30.0, 1.0 + 20.0)


def test_errors_name_what_is_wrong() -> None:
    x = ti.field(ti.f64, 2, needs_dual=True)
    y = ti.field(ti.f64, (), needs_dual=True)
    plain = ti.field(ti.f64, ())
    with pytest.raises(DifferentiationError, match="needs a seed of that shape"):
        ti.ad.FwdMode(loss=y, param=x)
    with pytest.raises(DifferentiationError, match=r"shape \(3,\)"):
        ti.ad.FwdMode(loss=y, param=x, seed=[1, 2, 3])
    with pytest.raises(DifferentiationError, match="'plain' has no dual"):
        ti.ad.FwdMode(loss=plain, param=x, seed=[1, 2])


# ---- shapes of seeds

#: Of a parameter of this shape and a seed, the directions that it means: one, or several with a leading axis.
SEEDS: list[tuple[tuple[int, ...], Any, Any]] = [
    ((), None, 1.0),
    ((), 2, 2.0),
    ((), 2.0, 2.0),
    ((), np.float32(2), 2.0),
    ((), np.array(2.0), 2.0),
    ((), [2.0], 2.0),
    ((), (2.0,), 2.0),
    ((), np.array([2.0]), 2.0),
    ((), [2.0, 3.0], "several"),
    ((), np.array([2.0, 3.0, 4.0]), "several"),
    ((1,), None, [1.0]),
    ((1,), 2.0, [2.0]),
    ((1,), [2.0], [2.0]),
    ((1,), (2.0,), [2.0]),
    ((1,), np.array([2.0]), [2.0]),
    ((1,), ti.Vector([2.0]), [2.0]),
    ((1,), [[2.0]], "several"),
    ((1,), [[2.0], [3.0]], "several"),
    ((1, 1), None, [[1.0]]),
    ((1, 1), [2.0], [[2.0]]),
    ((1, 1), [[2.0]], [[2.0]]),
    ((1, 1), [[[2.0]], [[3.0]]], "several"),
    ((3,), [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]),
    ((3,), (1, 2, 3), [1.0, 2.0, 3.0]),
    ((3,), ti.Vector([1.0, 2.0, 3.0]), [1.0, 2.0, 3.0]),
    ((3,), [[1.0, 2.0, 3.0]], "several"),
    ((3,), np.eye(3), "several"),
    ((3,), ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)), "several"),
    ((2, 2), np.eye(2), np.eye(2)),
    ((2, 2), [[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]]),
    ((2, 2), [[[1.0, 2.0], [3.0, 4.0]]], "several"),
    ((3,), None, "needs a seed of that shape"),
    ((3,), 2.0, r"has shape \(\)"),
    ((3,), [2.0], r"has shape \(1,\)"),
    ((3,), [1.0, 2.0], r"has shape \(2,\)"),
    ((2, 2), [1.0, 2.0, 3.0, 4.0], r"has shape \(4,\)"),
    ((1,), [2.0, 3.0], r"has shape \(2,\)"),
    ((), [[2.0]], r"has shape \(1, 1\)"),
    ((3,), [[1.0], [2.0, 3.0]], "is made of numbers"),
    ((), "two", "is made of numbers"),
]


@pytest.mark.parametrize("result", [(), (1,), (3,)], ids=str)
@pytest.mark.parametrize(("shape", "seed", "meaning"), SEEDS, ids=str)
def test_shapes_of_seeds(shape: tuple[int, ...], seed: Any, meaning: Any, result: tuple[int, ...]) -> None:
    ti.init(default_fp=ti.f64)
    x, y = ti.field(ti.f64, shape, needs_dual=True), ti.field(ti.f64, result, needs_dual=True)
    x.from_numpy(np.arange(1.0, 1 + x.to_numpy().size).reshape(shape))

    @ti.kernel
    def add_squares():
        for i in ti.grouped(x):
            for j in ti.grouped(y):
                y[j] += x[i] ** 2

    if isinstance(meaning, str) and meaning != "several":
        with pytest.raises(DifferentiationError, match=meaning) as caught:
            ti.ad.FwdMode(loss=y, param=x, seed=seed)
        assert caught.value.span.file == __file__
        return
    directions = np.asarray(seed, float) if isinstance(meaning, str) else np.asarray(meaning)[None]
    wanted = [np.full(result, (2 * x.to_numpy() * one).sum()) for one in directions]
    with ti.ad.FwdMode(loss=y, param=x, seed=seed) as mode:
        add_squares()
    if isinstance(meaning, str):
        np.testing.assert_allclose(mode.duals, wanted)
    else:
        np.testing.assert_allclose(y.dual.to_numpy(), wanted[0])
        if mode.duals is not None:  # a sequence of one number is one with a leading axis, too
            np.testing.assert_allclose(mode.duals, wanted)
    assert (mode.duals is None) == (seed is None or np.asarray(seed, float).ndim <= len(shape))


def test_shapes_of_several_seeds() -> None:
    ti.init(default_fp=ti.f64)
    x, w = ti.field(ti.f64, (), needs_dual=True), ti.field(ti.f64, 1, needs_dual=True)
    v, y = ti.field(ti.f64, 2, needs_dual=True), ti.field(ti.f64, (), needs_dual=True)

    @ti.kernel
    def add():
        y[None] = 3 * x[None] + 5 * w[0] + 7 * v[0] + 11 * v[1]

    for params, seeds, wanted in (
        ([x, w], None, 8.0),
        ([x, w], [1.0, 2.0], 13.0),
        ([x, w], [[1.0], [2.0]], 13.0),
        ([x], [2.0], 6.0),
        ([x, v], [[1.0], [1.0, 2.0]], 32.0),
        ([x, v], [1.0, [1.0, 2.0]], 32.0),
        ([x, v], [[1.0], [[1.0, 2.0]]], [32.0]),
        ([x, v], [[1.0, 0.0], [[1.0, 2.0], [0.0, 1.0]]], [32.0, 11.0]),
    ):
        with ti.ad.FwdMode(loss=y, param=params, seed=seeds) as mode:
            add()
        np.testing.assert_allclose(mode.duals if isinstance(wanted, list) else y.dual[None], wanted)
    for params, seeds, message in (
        ([x, w], 1.0, "a list of seeds, one for each, not 1.0"),
        ([x, w], [1.0], "2 parameters need one seed each, not 1"),
        ([x, v], [[1.0, 0.0], [[1.0, 2.0]]], r"has shape \(1, 2\)"),
    ):
        with pytest.raises(DifferentiationError, match=message):
            ti.ad.FwdMode(loss=y, param=params, seed=seeds)


def test_one_seed_with_a_leading_axis_inside_of_a_tape() -> None:
    ti.init(default_fp=ti.f64)
    both = {"needs_grad": True, "needs_dual": True}
    x, y, loss = [ti.field(ti.f64, (), **both) for _ in range(3)]

    @ti.kernel
    def cube():
        y[None] = x[None] ** 3

    @ti.kernel
    def use():
        loss[None] += y.dual[None]

    x[None] = 2.0
    with ti.ad.Tape(loss):
        with ti.ad.FwdMode(loss=y, param=x, seed=[1.0]):
            cube()
        use()
    assert loss[None] == 12.0 and x.grad[None] == 12.0


def test_duals_that_are_kept() -> None:
    ti.init(default_fp=ti.f64)
    x, w, y = [ti.field(ti.f64, 2, needs_dual=True) for _ in range(3)]

    @ti.kernel
    def add():
        for i in x:
            y[i] += 3 * x[i] + 5 * w[i]

    for clears, wanted in ((True, 3.0), (False, 3.0 + 10.0 + 7.0)):
        w.dual.fill(2.0)
        y.dual.fill(7.0)
        with ti.ad.FwdMode(loss=y, param=x, seed=[1.0, 1.0], clear_gradients=clears):
            add()
        assert y.dual.to_numpy().tolist() == [wanted] * 2
    with pytest.raises(DifferentiationError, match="fields have duals of their own"):
        ti.ad.FwdMode(loss=y, param=x, seed=np.eye(2), clear_gradients=False)
    outer, inner = [ti.ad.FwdMode(loss=y, param=x, seed=[1.0, 1.0], clear_gradients=clears) for clears in (True, False)]
    with pytest.raises(DifferentiationError, match="sets duals to zero at its start"), outer, inner:
        add()


# ---- several seeds


@pytest.mark.parametrize("count", [1, 2, 3, 16, 33])
def test_several_seeds_give_as_many_duals(count: int) -> None:
    ti.init(default_fp=ti.f64)
    x = ti.field(ti.f64, shape=4, needs_dual=True)
    v = ti.Vector.field(2, ti.f32, shape=3)  # it needs no dual
    y = ti.field(ti.f64, shape=(2, 2), needs_dual=True)
    total = ti.field(ti.f64, shape=(), needs_dual=True)

    @ti.kernel
    def middle():
        for i in v:
            v[i] = ti.Vector([x[i] * x[i + 1], ti.sin(x[i])], dt=ti.f32)

    @ti.kernel
    def compute():
        for i, j in y:
            y[i, j] = v[i + j][0] * x[i] + v[i][1] ** 2
            total[None] += y[i, j]

    def run() -> None:
        total[None] = 0
        middle()
        compute()

    numbers = np.random.default_rng(0)
    x.from_numpy(numbers.uniform(0.5, 1, 4))
    seeds = numbers.uniform(-1, 1, (count, 4))
    x.dual.fill(3.0)
    with ti.ad.FwdMode(loss=[y, total], param=x, seed=seeds) as mode:
        assert mode.duals is None
        run()
    assert [one.shape for one in mode.duals] == [(count, 2, 2), (count,)]
    assert x.dual.to_numpy().tolist() == [3.0] * 4, "fields' own duals take no part"
    for k, seed in enumerate(seeds):
        with ti.ad.FwdMode(loss=[y, total], param=x, seed=seed):
            run()
        np.testing.assert_allclose(mode.duals[0][k], y.dual.to_numpy(), rtol=1e-6)
        np.testing.assert_allclose(mode.duals[1][k], total.dual[None], rtol=1e-6)
    with ti.ad.FwdMode(loss=total, param=[x, y], seed=[seeds, np.zeros((count, 2, 2))]) as mode:
        run()
    assert mode.duals.shape == (count,)


def test_several_seeds_that_cannot_be() -> None:
    ti.init(default_fp=ti.f64)
    x, y = (ti.field(ti.f64, shape=2, needs_dual=True) for _ in range(2))
    n = ti.field(ti.i32, shape=2)

    @ti.kernel
    def double():
        for i in x:
            y[i] = 2 * x[i]

    for given, seed, message in (
        (x, np.zeros((0, 2)), "up to 64 seeds at once, not 0"),
        (x, np.zeros((65, 2)), "up to 64 seeds at once, not 65"),
        (x, np.zeros((3, 4)), r"has shape \(3, 4\), but the parameter, with an axis of directions, has shape \(3, 2\)"),
        ([x, y], [np.zeros((2, 2)), np.zeros((3, 2))], r"has shape \(3, 2\)"),
        (n, np.zeros((3, 2)), "a field of i32, which has no dual"),
        (x, np.zeros((3, 2, 1)), r"has shape \(3, 2, 1\)"),
    ):
        with pytest.raises(DifferentiationError, match=message):
            ti.ad.FwdMode(loss=y, param=given, seed=seed)
    mode = ti.ad.FwdMode(loss=y, param=x, seed=np.eye(2))
    with pytest.raises(DifferentiationError, match="along several seeds at once") as caught, mode:
        double()
        x[0] = y[1] + 1
    assert "y[1] + 1" in str(caught.value)
    assert mode.duals is None
    ti.init(arch=ti.python)
    x = ti.field(ti.f64, shape=2, needs_dual=True)
    with pytest.raises(DifferentiationError, match="is compiled"):
        ti.ad.FwdMode(loss=x, param=x, seed=np.eye(2))
