"""Reverse loops that only add run forwards: nothing is saved for their iterations, and nests are executed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import array, check_gradient, scalar
from tinote.autodiff import storage
from tinote.autodiff.order_free import is_order_free
from tinote.ir.nodes import For
from tinote.ir.parse import parse
from tinote.ir.query import walk

N, M = 5, 12

Kernels = tuple[Callable[[], None], Any, list[Any]]


@pytest.fixture(autouse=True)
def session() -> None:
    ti.init(arch=ti.cpu, default_fp=ti.f64, offline_cache=False)


def filled(*fields: Any) -> list[Any]:
    for number, field in enumerate(fields):
        field.from_numpy(np.random.default_rng(number).uniform(0.5, 1.5, field.shape))
    return list(fields)


def powers() -> Kernels:
    a, t, loss = array(M), array(N), scalar()

    @ti.kernel
    def run():
        for i in range(N):
            power, value = 1.0, 0.0
            for j in range(M):
                value += a[j] * power
                power *= ti.stop_grad(t[i]) * 0.7
            loss[None] += 0.5 * (value - 1.0) ** 2

    return run, loss, filled(a)


def generated() -> Kernels:
    a, loss = array(M), scalar()

    @ti.kernel
    def run():
        for i in range(N):
            state, value = i + 1, 0.0
            for j in range(M):
                state = (state * 75 + 74) % 65537
                value += ti.sin(a[state % M]) * (state % 7) * (j + 1)
            loss[None] += value**2

    return run, loss, filled(a)


def branches() -> Kernels:
    a, b, loss = array(M), array(N), scalar()

    @ti.kernel
    def run():
        for i in range(N):
            sign, value = 1.0, 0.0
            for j in range(M):
                if (j * 3 + i) % 4 != 0:
                    value += sign * a[j] * b[i] ** 2
                    sign = -sign
                else:
                    value -= a[j] ** 2
            loss[None] += value**2

    return run, loss, filled(a, b)


def inner_sums() -> Kernels:
    a, b, loss = array(M), array(N), scalar()

    @ti.kernel
    def run():
        for i in range(N):
            scale, value = 1.0, 0.0
            for j in range(M):
                for k in range(N):
                    value += scale * a[j] * b[k] * (k + i)
                scale *= 0.8
            loss[None] += value**2

    return run, loss, filled(a, b)


def minors() -> Kernels:
    n = 5
    a, loss = array(n, n), scalar()

    @ti.func
    def minor(row: ti.template(), used):
        total = 0.0
        if ti.static(row == n - 1):
            for c in range(n):
                if (used >> c) & 1 == 0:
                    total = a[row, c]
        else:
            sign = 1.0
            for c in range(n):
                if (used >> c) & 1 == 0:
                    total += sign * a[row, c] * minor(ti.static(row + 1), used | (1 << c))
                    sign = -sign
        return total

    @ti.kernel
    def run():
        for c in range(n):
            loss[None] += (1 - 2 * (c & 1)) * a[0, c] * minor(1, 1 << c)

    return run, loss, filled(a)


@pytest.mark.parametrize("program", [powers, generated, branches, inner_sums, minors])
def test_nothing_is_saved(program: Callable[[], Kernels]) -> None:
    """The carried values, which no derivative goes through, are computed once more along with the adjoints."""
    run, loss, inputs = program()
    check_gradient(run, loss, inputs)
    text = str(run.ir("reverse", gradient=True))
    assert "stack" not in text
    assert "carrying" in text


def test_nested_loops_become_one_with_their_reverse() -> None:
    """A serial loop for each level but the last, where a branch leaves the sum out, and the last twice."""
    run, loss, inputs = minors()
    check_gradient(run, loss, inputs)
    text = str(run.ir("reverse", gradient=True))
    assert text.count("for %") + text.count("for reverse %") == 3 + 2


def squared() -> Kernels:
    """The adjoint of the sum depends on the sum."""
    a, loss = array(M), scalar()

    @ti.kernel
    def run():
        for i in range(N):
            power, value = 1.0, 0.1
            for j in range(M):
                value += 0.1 * a[j] * power * value * (i + 1)
                power *= 0.9
            loss[None] += value

    return run, loss, filled(a)


def replaced() -> Kernels:
    """What is replaced has no adjoint before."""
    a, loss = array(M), scalar()

    @ti.kernel
    def run():
        for i in range(N):
            power, value = 1.0, 0.1
            for j in range(M):
                if (j + i) % 3 == 0:
                    value = a[j] * power
                else:
                    value += a[j] ** 2 * power
                power *= 0.9
            loss[None] += value

    return run, loss, filled(a)


def active_power() -> Kernels:
    """A derivative goes through the product."""
    a, t, loss = array(M), array(N), scalar()

    @ti.kernel
    def run():
        for i in range(N):
            power, value = 1.0, 0.0
            for j in range(M):
                value += a[j] * power
                power *= t[i]
            loss[None] += value

    return run, loss, filled(a, t)


@pytest.mark.parametrize("program", [squared, replaced, active_power])
def test_where_the_order_counts_it_is_kept(program: Callable[[], Kernels]) -> None:
    run, loss, inputs = program()
    check_gradient(run, loss, inputs)
    assert "for reverse" in str(run.ir("reverse", gradient=True))


@pytest.mark.parametrize("program", [squared, replaced])
def test_these_programs_notice_an_order_that_is_not_kept(
    program: Callable[[], Kernels], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "is_order_free", lambda loop: True)
    with pytest.raises(AssertionError):
        check_gradient(*program())


LOOP = """\
buffer @x: f64 field (8)
buffer @g: f64 field (8)
buffer @h: f64 field ()
func f(%n: i32, %v: f64):
  %a: f64, %b: f64 = for reverse %i: i32 in 0i32 .. %n carrying %s: f64 = 0.0f64, %d: f64 = %v:
{}
  store @h[], %a
  store @h[], %b
"""


@pytest.mark.parametrize(
    ("body", "free"),
    [
        ("%t: f64 = add %s, %d\nyield %t, %d", True),
        ("atomic add @g[%i], %d\n%t: f64 = add %d, %s\nyield %t, %d", True),
        ("%t: f64 = add %s, %s\nyield %t, %d", False),
        ("%t: f64 = sub %d, %s\nyield %t, %d", False),
        ("%t: f64 = mul %s, 2.0f64\nyield %t, %d", False),
        ("%t: f64 = add %s, %d\nyield %t, %t", False),
        ("yield %d, %s", False),
        ("yield 0.0f64, %d", False),
        ("%t: f64 = add %s, %d\natomic add @g[%i], %t\nyield %t, %d", False),
        ("%t: f64 = load @g[%i]\natomic add @g[%i], %d\n%u: f64 = add %s, %t\nyield %u, %d", False),
        ("store @g[%i], %d\nyield %s, %d", False),
        ("%c: u1 = lt %i, 3i32\n%t: f64 = if %c:\n  yield %s\nelse:\n  yield 0.0f64\nyield %t, %d", False),
        (
            "%c: u1 = lt %i, 3i32\n%t: f64 = if %c:\n  yield %s\nelse:\n  %w: f64 = add %s, %d\n  yield %w\n"
            "yield %t, %d",
            True,
        ),
        (
            "%t: f64 = for %k: i32 in 0i32 .. %n carrying %w: f64 = %s:\n  %z: f64 = add %w, %d\n  yield %z\n"
            "yield %t, %d",
            True,
        ),
        (
            "%t: f64 = for %k: i32 in 0i32 .. %n carrying %w: f64 = %d:\n  %z: f64 = add %w, %s\n  yield %z\n"
            "yield %t, %d",
            False,
        ),
    ],
)
def test_what_only_adds(body: str, free: bool) -> None:
    fn = parse(LOOP.format("\n".join(f"    {line}" for line in body.split("\n"))))
    loop = next(op for op in walk(fn.region) if isinstance(op, For) and op.reverse)
    assert is_order_free(loop) == free
