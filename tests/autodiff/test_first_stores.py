"""Plans whose launches store what they add first to gradients that hold zeros (`lang/capture/first_stores.py`): which
they are, and that their results are those of calls without a plan.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.support import unfilled
from tests.autodiff.test_plans import soil
from tinote.lang.capture import first_stores, planned
from tinote.program import operations as ops

LIBRARY = """\
import numpy as np
import tinote as ti

LINE = ti.types.ndarray(dtype=ti.f64, ndim=1)
PLANE = ti.types.ndarray(dtype=ti.f64, ndim=2)
VECTORS = ti.types.ndarray(dtype=ti.types.vector(3, ti.f64), ndim=1)

x = ti.field(ti.f64, 300, needs_grad=True)
loss = ti.field(ti.f64, (), needs_grad=True)
errors = ti.ndarray(ti.f64, (100, 2), needs_grad=True)

@ti.kernel
def log_sum_exp(v: LINE) -> ti.f64:
    shift = v[0]
    for i in range(v.shape[0]):
        shift = ti.max(shift, v[i])
    total = 0.0
    for i in range(v.shape[0]):
        total += ti.exp(v[i] - shift)
    return shift + ti.log(total)

@ti.kernel
def project(cameras: PLANE, points: PLANE, weights: LINE, errors: PLANE):
    for o in range(weights.shape[0]):
        at = ti.Vector([points[o, 0], points[o, 1]]) * cameras[o, 0]
        for r in ti.static(range(2)):
            errors[o, r] = weights[o] * ti.sin(at[r] + cameras[o, 1 + r])

def blocks(cameras, points, weights):
    project(cameras, points, weights, errors)

@ti.kernel
def first(v: LINE, n: ti.i32) -> ti.f64:
    s = 0.0
    for i in range(n):
        s += v[i] ** 3
    return s

@ti.kernel
def squares():
    for i in x:
        loss[None] += x[i] ** 2

@ti.kernel
def lengths(v: VECTORS) -> ti.f64:
    s = 0.0
    for i in range(v.shape[0]):
        s += v[i].norm_sqr() * v[i][1]
    return s

@ti.kernel
def positive(v: LINE) -> ti.f64:
    s = 0.0
    for i in range(v.shape[0]):
        if v[i] > 0:
            s += ti.sin(v[i])
    return s

@ti.kernel
def backwards(v: LINE) -> ti.f64:
    s = 0.0
    for i in range(v.shape[0]):
        s += v[i // 2] ** 2
    return s

@ti.kernel
def product(v: LINE, w: LINE) -> ti.f64:
    s = 0.0
    for i in range(v.shape[0]):
        s += v[i] * ti.exp(w[i])
    return s

@ti.kernel
def neighbours(v: LINE) -> ti.f64:
    s = 0.0
    for i in range(v.shape[0] - 1):
        s += (v[i + 1] - v[i]) ** 2
    return s

@ti.kernel
def cubes(v: LINE):
    for i in range(v.shape[0]):
        loss[None] += v[i] ** 3

@ti.kernel
def sines(v: LINE):
    for i in range(v.shape[0]):
        loss[None] += ti.sin(v[i])

def twice(v):
    cubes(v)
    sines(v)

def thrice(v):
    for _ in range(3):
        sines(v)

def both_the_same(v):
    return product(v, v)
"""


class Case(NamedTuple):
    """`run` calls the derivative `of` a function; its plan `fills` that many gradients without clearing them."""

    of: str
    run: str
    fills: int


CASES = {
    "log-sum-exp": Case("grad(log_sum_exp)", "g(v)", 1),
    "bundle adjustment": Case("vjp(blocks, argnums=(0, 1, 2), loss=errors)", "g(seeds, cameras, points, weights)", 3),
    "one seed": Case("vjp(blocks, argnums=(0, 1, 2), loss=errors)", "g(seeds[0], cameras, points, weights)", 3),
    "a field": Case("grad(squares, wrt=x, loss=loss)", "g()", 1),
    "vectors": Case("grad(lengths)", "g(vectors)", 1),
    "two arrays": Case("grad(product, argnums=(0, 1))", "g(v, w)", 2),
    "as many as there are": Case("grad(first)", "g(v, 300)", 1),
    "not all": Case("grad(first)", "g(v, 299)", 0),
    "none": Case("grad(first)", "g(v, 0)", 0),
    "a choice": Case("grad(positive)", "g(v)", 1),
    "several to one": Case("grad(backwards)", "g(v)", 0),
    "neighbours, in the middle and at the ends": Case("grad(neighbours)", "g(v)", 0),
    "two launches": Case("grad(twice, argnums=0, loss=loss)", "g(v)", 1),
    "the same launch again": Case("grad(thrice, argnums=0, loss=loss)", "g(v)", 0),
    "one array twice": Case("grad(both_the_same)", "g(v)", 0),
}
CHANGES = ("", "v *= -1.5; cameras += 1", "v[3] = np.nan; points[:, 1] = np.inf", "v[:] = 0; w[:] = 0; x.fill(-0.0)")


@pytest.fixture(autouse=True)
def small_ones(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Small gradients count, small results are given away, and no number is in what a launch fills."""
    monkeypatch.setattr(first_stores, "LEAST_BYTES", 1)
    monkeypatch.setattr(planned, "WARM_FROM", 1)
    monkeypatch.setattr(planned, "Memory", unfilled)
    yield
    ti.reset()


def space(**options: Any) -> dict[str, Any]:
    ti.init(arch=ti.cpu, default_fp=ti.f64, **options)
    found: dict[str, Any] = {"__name__": "stored"}
    file = f"stored_{len(linecache.cache)}.py"
    linecache.cache[file] = (len(LIBRARY), None, LIBRARY.splitlines(keepends=True), file)
    exec(compile(LIBRARY, file, "exec"), found)
    return found


def called(case: Case, made: list[Any], **options: Any) -> list[Any]:
    """What six calls give in a new session, and six after each change."""
    found = space(**options)
    numbers = np.random.default_rng(3)
    found |= {"v": numbers.normal(size=300), "w": numbers.normal(size=300), "vectors": numbers.normal(size=(100, 3))}
    found |= {"cameras": numbers.normal(size=(100, 3)), "points": numbers.normal(size=(100, 2))}
    found |= {"weights": numbers.normal(size=100), "seeds": numbers.normal(size=(2, 100, 2))}
    found["x"].from_numpy(numbers.normal(size=300))
    found["g"] = eval(f"ti.ad.{case.of}", found)
    made.clear()
    seen: list[Any] = []
    for change in CHANGES:
        exec(change, found)
        for _ in range(6):
            given = eval(case.run, found)
            seen.append(given if isinstance(given, tuple) else (given,))
    return [np.concatenate([np.ravel(part) for part in flat(one)]) for one in seen]


def flat(value: Any) -> list[Any]:
    return [leaf for part in value for leaf in flat(part)] if isinstance(value, tuple | list) else [value]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The plans that have run."""
    found: list[Any] = []
    run = planned.MemoryPlan.run

    def noting(plan: Any, args: Any) -> Any:
        found.append(plan)
        soil(plan)
        return run(plan, args)

    monkeypatch.setattr(planned.MemoryPlan, "run", noting)
    return found


@pytest.mark.parametrize("options", [{"num_threads": 1}, {"num_threads": 2}, {"num_threads": 1, "fast_math": False}])
@pytest.mark.parametrize("name", CASES)
def test_gradients_that_are_stored(
    name: str, options: dict[str, Any], made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[name]
    found = called(case, made, **options)
    steps = made[-1].plan.root.steps
    launches = [step for step in steps if isinstance(step, ops.Launch)]
    filled = [block for launch in launches for block in launch.fills]
    assert len(filled) == case.fills
    assert not {step.block for step in steps if isinstance(step, ops.Clear)} & set(filled)
    monkeypatch.setattr(planned, "PLAIN_CALLS", sys.maxsize)
    wanted = called(case, made, **options)
    assert not made
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
        assert (np.signbit(one) == np.signbit(other))[one == 0].all()


def test_small_gradients_are_not_worth_code_of_their_own(made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_stores, "LEAST_BYTES", 8 * 300 + 1)
    called(CASES["log-sum-exp"], made, num_threads=1)
    assert not made[-1].instead


def test_a_plan_that_finds_something_else_is_made_without(made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that stores where it must add is noticed in strict maths, by its results, before the plan is trusted."""
    case, options = CASES["log-sum-exp"], {"num_threads": 1, "fast_math": False, "offline_cache": False}
    monkeypatch.setattr("tinote.compiler.passes.updates.store_first._is_first", lambda *_: True)
    found = called(case, made, **options)
    assert made and not made[-1].instead
    monkeypatch.setattr(planned, "PLAIN_CALLS", sys.maxsize)
    wanted = called(case, made, **options)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)
