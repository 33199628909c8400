"""Launches are closed under differentiation: the tangent and the adjoint of any launch of a kernel are launches of the
same kernel in forms that exist, with other memory bound to their slots.

With F the launch, Ḟ that with tangents, R its gradient and Ṙ the gradient with tangents, for the values v, their
tangents v̇, adjoints v̄ of the values and w of the tangents:

    adjoint of Ḟ (v, v̇)   =  Ṙ (v, v̇; adjoints: w, tangents of adjoints: v̄)       gives both with their places
    swapped adjoint of R (v, b)   =  Ḟ (v, u) for b,  and  Ṙ (v, u; adjoints: b, tangents of adjoints: 0) for v

where u is the adjoint of what R gives. Each side of these is compared with differences of the launch itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.compiler.requests import GRADIENT, TANGENT, Derivative, Request
from tinote.lang.kernels.arguments import recorded_arguments

N = 5
SECOND = Request(Derivative.FORWARD_OVER_REVERSE)
Arrays = dict[str, np.ndarray[Any, Any]]
FIELDS: dict[str, Any] = {}


@pytest.fixture(autouse=True)
def fields() -> Iterator[None]:
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    for name in ("x", "y"):
        field = FIELDS[name] = ti.field(ti.f64, N, needs_grad=True, needs_dual=True)
        field.grad.ensure_dual()
    yield
    FIELDS.clear()


def kernels() -> dict[str, Any]:
    x, y = FIELDS["x"], FIELDS["y"]

    @ti.kernel
    def elsewhere():
        for i in x:
            y[i] = ti.sin(x[i]) * x[(i + 1) % N]

    @ti.kernel
    def sums():
        for i in x:
            y[(i * 2) % N] += ti.exp(0.3 * x[i]) * x[i]

    @ti.kernel
    def in_place_twice():
        for i in x:
            y[i] = y[i] * x[i] + ti.sin(x[i])
        for i in x:
            x[i] = x[i] + 0.3 * y[i] * y[i]

    @ti.kernel
    def one_after_the_other():
        ti.loop_config(serialize=True)
        for i in range(1, N):
            x[i] = 0.9 * x[i] + 0.3 * ti.sin(x[i - 1]) * y[i]

    @ti.kernel
    def with_loops_and_branches():
        for i in x:
            s = 0.0
            for k in range(i + 1):
                if x[k] > 0.5:
                    s += x[k] ** 2
                else:
                    s = s * x[k] + y[i]
            y[i] = s

    @ti.kernel
    def linear():
        for i in x:
            y[i] = 2 * x[i] - 0.5 * x[N - 1 - i]

    found = (elsewhere, sums, in_place_twice, one_after_the_other, with_loops_and_branches, linear)
    return {kernel.source.name: kernel for kernel in found}


NAMES = ("elsewhere", "sums", "in_place_twice", "one_after_the_other", "with_loops_and_branches", "linear")


def put(given: Mapping[str, Arrays]) -> None:
    """Memory holds these: `values`, their `tangents`, `adjoints`, and `tangents of adjoints`; zeros where none are."""
    for name, field in FIELDS.items():
        parts = {
            "values": field, "tangents": field.dual, "adjoints": field.grad, "tangents of adjoints": field.grad.dual
        }  # fmt: skip
        for part, target in parts.items():
            target.from_numpy(given[part][name] if part in given else np.zeros(N))


def read(of: Callable[[Any], Any]) -> Arrays:
    return {name: of(field).to_numpy() for name, field in FIELDS.items()}


def launched(kernel: Any, request: Request, **given: Arrays) -> dict[str, Arrays]:
    """What all memory holds after a launch in a form, from what it held before."""
    named = {name.replace("_", " "): arrays for name, arrays in given.items()}
    instance, arguments = kernel.prepare((), {})
    put(named)
    if request.reverses:
        # It finds what the launch has left, but for what it computes anew from what was there before.
        before = recorded_arguments(instance, arguments, request).gradient_facts.live_in_before
        instance.specialisation.code(TANGENT if request.has_tangents else Request()).launch(arguments)
        for name, field in FIELDS.items():
            if field.buffer in before:
                field.from_numpy(named["values"][name])
            if request.has_tangents and {field.buffer, field.buffer.tangent} & before:
                field.dual.from_numpy(named["tangents"][name])
    instance.specialisation.code(request).launch(arguments)
    return {
        "values": read(lambda field: field),
        "tangents": read(lambda field: field.dual),
        "adjoints": read(lambda field: field.grad),
        "tangents of adjoints": read(lambda field: field.grad.dual),
    }


def product(a: Arrays, b: Arrays) -> float:
    return sum(float(a[name] @ b[name]) for name in FIELDS)


def slopes(f: Callable[[Arrays], float], at: Arrays, step: float = 1e-6) -> Arrays:
    """The gradient of a number by differences."""
    found = {name: np.zeros(N) for name in FIELDS}
    for name in FIELDS:
        for i in range(N):
            ends = []
            for sign in (1, -1):
                moved = {other: array.copy() for other, array in at.items()}
                moved[name][i] += sign * step
                ends.append(f(moved))
            found[name][i] = (ends[0] - ends[1]) / (2 * step)
    return found


def assert_close(found: Arrays, expected: Arrays) -> None:
    for name in FIELDS:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-6, atol=1e-8, err_msg=name)


@pytest.mark.parametrize("name", NAMES)
def test_the_adjoint_of_a_launch_with_tangents(name: str) -> None:
    kernel, random = kernels()[name], np.random.default_rng(0)
    values, tangents, bars, dual_bars = ({one: random.uniform(0.2, 0.9, N) for one in FIELDS} for _ in range(4))

    def observed(values: Arrays, tangents: Arrays) -> float:
        left = launched(kernel, TANGENT, values=values, tangents=tangents)
        return product(bars, left["values"]) + product(dual_bars, left["tangents"])

    left = launched(
        kernel, SECOND, values=values, tangents=tangents, adjoints=dual_bars, tangents_of_adjoints=bars
    )  # fmt: skip
    assert_close(left["adjoints"], slopes(lambda moved: observed(values, moved), tangents))
    assert_close(left["tangents of adjoints"], slopes(lambda moved: observed(moved, tangents), values))


@pytest.mark.parametrize("name", NAMES)
def test_the_adjoint_of_a_gradient(name: str) -> None:
    kernel, random = kernels()[name], np.random.default_rng(1)
    values, adjoints, bars = ({one: random.uniform(0.2, 0.9, N) for one in FIELDS} for _ in range(3))

    def observed(values: Arrays, adjoints: Arrays) -> float:
        return product(bars, launched(kernel, GRADIENT, values=values, adjoints=adjoints)["adjoints"])

    left = launched(kernel, TANGENT, values=values, tangents=bars)
    assert_close(left["tangents"], slopes(lambda moved: observed(values, moved), adjoints))
    left = launched(kernel, SECOND, values=values, tangents=bars, adjoints=adjoints)
    assert_close(left["tangents of adjoints"], slopes(lambda moved: observed(moved, adjoints), values))
