"""Which loops keep the order of their iterations: those in which these may conflict."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.runtime.processors import machine_with
from tinote.runtime import jit


@pytest.fixture(autouse=True)
def session() -> None:
    ti.init(arch=ti.cpu, default_fp=ti.f64, opt_level=1, lanes="always")


def walk(x: Any, y: Any, k: Any) -> Callable[..., Any]:
    @ti.kernel
    def run():
        for i in x:
            j = k[i]
            for _ in range(3 + k[i] % 2):
                x[i] += 0.3 * ti.sin(x[j])
                j = k[j]

    return run


def apart(x: Any, y: Any, k: Any) -> Callable[..., Any]:
    @ti.kernel
    def run():
        for i in x:
            j = k[i]
            for _ in range(3 + k[i] % 2):
                y[i] += 0.3 * ti.sin(x[j])
                j = k[j]

    return run


def places(n: int, needs_grad: bool) -> tuple[Any, Any, Any]:
    x, y = [ti.field(ti.f64, n, needs_grad=needs_grad, needs_dual=needs_grad) for _ in range(2)]
    k = ti.field(ti.i32, n)
    rng = np.random.default_rng(3)
    x.from_numpy(rng.normal(size=n))
    k.from_numpy(rng.permutation(n).astype(np.int32))
    return x, y, k


@pytest.mark.parametrize(
    ("program", "needs_grad", "ordered"),
    [(walk, True, True), (walk, False, True), (apart, True, False)],
    ids=["it conflicts", "it conflicts over what has no derivative", "it does not conflict"],
)
def test_who_keeps_the_order(program: Callable[..., Any], needs_grad: bool, ordered: bool) -> None:
    run = program(*places(50, needs_grad))
    run()
    assert ("task parallel ordered" in repr(run.ir()).replace(' "run.0"', "")) == ordered
    assert any(loop.lanes for loop in run.loops()) == (not ordered)
    assert ("iterations may meet" in repr(run.loops())) == ordered


@pytest.mark.parametrize("bits", [128, 256, 512])
@pytest.mark.parametrize("n", [5, 16, 37])
def test_values_are_those_of_the_order(n: int, bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many elements as make several vectors, and a rest."""
    monkeypatch.setattr(jit, "_host", machine_with(bits))
    x, y, k = places(n, True)
    expected, k_ = x.to_numpy(), k.to_numpy()
    for i in range(n):
        j = k_[i]
        for _ in range(3 + k_[i] % 2):
            expected[i] += 0.3 * np.sin(expected[j])
            j = k_[j]
    walk(x, y, k)()
    np.testing.assert_allclose(x.to_numpy(), expected, rtol=1e-12)


# ---- values are those of the order that gradients have, also by way of memory that has no gradient

N = 40


def sweeps(x: Any, y: Any, loss: Any) -> Callable[[], None]:
    """Each iteration of the outer loop reads what the one before has written."""

    @ti.kernel
    def run():
        for i in range(N):
            y[i] = x[i] ** 2
        for _ in range(17):
            for i in range(N):
                y[i] = ti.sin(y[i]) + 0.1 * x[i]
        for i in range(N):
            loss[None] += (i + 1) * y[i] * x[i]

    return run


def last_one_wins(x: Any, y: Any, loss: Any) -> Callable[[], None]:
    @ti.kernel
    def run():
        for i in range(3 * N):
            y[i * i % N] = x[i % N] * (i + 1)
        for i in range(N):
            loss[None] += y[i] * x[i]

    return run


def last_one_of_a_nest_wins(x: Any, y: Any, loss: Any) -> Callable[[], None]:
    """The outer loop is short: others would be exchanged with the inner one."""

    @ti.kernel
    def run():
        for k, i in ti.ndrange(3, N):
            y[(i + 7 * k) % N] = x[i] * (k + 1)
        for i in range(N):
            loss[None] += y[i] * x[i]

    return run


def neighbours_in_place(x: Any, y: Any, loss: Any) -> Callable[[], None]:
    @ti.kernel
    def run(by: ti.i32):
        for i in range(N):
            y[i] = x[i]
        for i in range(N):
            y[i] += 0.5 * y[(i + by) % N] * x[i]
        for i in range(N):
            loss[None] += (i + 1) * y[i]

    return lambda: run(3)


@pytest.mark.parametrize("program", [sweeps, last_one_wins, last_one_of_a_nest_wins, neighbours_in_place])
@pytest.mark.parametrize("target", ["lanes", "gpu"])
def test_values_and_gradients_are_those_of_one_order(program: Any, target: str) -> None:
    def found(**options: Any) -> tuple[float, Any]:
        ti.init(default_fp=ti.f64, **options)
        x, loss = [ti.field(ti.f64, shape, needs_grad=True) for shape in (N, ())]
        y = ti.field(ti.f64, N)
        x.from_numpy(np.random.default_rng(1).uniform(0.2, 1.1, N))
        run = program(x, y, loss)
        with ti.ad.Tape(loss):
            run()
        return loss[None], x.grad.to_numpy()

    value, slope = found(arch=ti.python)
    chosen: dict[str, Any] = {"lanes": {"lanes": "always"}, "gpu": {"arch": ti.gpu, "software_gpu": True}}
    other, again = found(**chosen[target])
    assert other == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(again, slope, rtol=1e-9, atol=1e-9)
