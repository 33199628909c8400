"""Which loops keep the order of their iterations: those in which these may conflict over what is differentiated."""

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
    [(walk, True, True), (walk, False, False), (apart, True, False)],
    ids=["it conflicts", "it conflicts over what has no derivative", "it does not conflict"],
)
def test_who_keeps_the_order(program: Callable[..., Any], needs_grad: bool, ordered: bool) -> None:
    run = program(*places(50, needs_grad))
    run()
    assert ("task parallel ordered" in repr(run.ir()).replace(' "run.0"', "")) == ordered
    assert any(loop.lanes for loop in run.loops()) == (not ordered)
    assert ("keep their order" in repr(run.loops())) == ordered


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
