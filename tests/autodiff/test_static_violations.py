"""Broken access rules that are certain before any launch: found where they are, and warned of in debug mode."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import tinote as ti
from tinote.autodiff.static_violations import find_static_violations
from tinote.ir.parse import parse

BUFFERS = """
buffer @x: f64 field (4) adjoint @x.grad
buffer @x.grad: f64 field (4)
buffer @v: f64[2] field (4) adjoint @v.grad
buffer @v.grad: f64[2] field (4)
buffer @n: i32 field (4)
"""


def rules(text: str) -> list[tuple[int, str]]:
    """Which rules a function breaks for certain, with the fields."""
    fn = parse(f"{BUFFERS}func f(%k: i32):\n {text}\n")
    return [(proof.rule, proof.buffer.name) for proof in find_static_violations(fn)]


LOAD, STORE, ADD = "%a: f64 = load @x[%k]\n ", "store @x[%k], 1.0f64\n ", "atomic add @x[%k], 1.0f64\n "


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (LOAD + STORE, [(1, "x")]),
        (LOAD + ADD, [(1, "x")]),
        (STORE + LOAD, []),
        (ADD + ADD + LOAD, []),
        (STORE + ADD, []),
        (ADD + STORE, [(2, "x")]),
        (STORE + "atomic mul @x[%k], 2.0f64", [(2, "x")]),
        ("atomic mul @x[%k], 2.0f64", [(1, "x")]),
        ("%o: f64 = atomic add @x[0i32], 1.0f64\n store @x[1i32], %o", [(1, "x")]),
        # Another element, or perhaps another one.
        (LOAD + "store @x[0i32], 1.0f64", []),
        ("%i: i32 = add %k, 1i32\n %a: f64 = load @x[%i]\n store @x[%k], %a", []),
        ("%i: i32 = add %k, 1i32\n %j: i32 = add 1i32, %k\n %a: f64 = load @x[%i]\n store @x[%j], %a", [(1, "x")]),
        ("%i: i32 = sub %k, 1i32\n %j: i32 = sub 1i32, %k\n %a: f64 = load @x[%i]\n store @x[%j], %a", []),
        ("%i: i32 = load @n[0i32]\n %j: i32 = load @n[0i32]\n %a: f64 = load @x[%i]\n store @x[%j], %a", []),
        # Components.
        ("%a: f64[2] = load @v[%k]\n store @v[%k][1i32], 1.0f64", [(1, "v")]),
        ("%a: f64 = load @v[%k][0i32]\n store @v[%k][1i32], 1.0f64", []),
        ("%a: f64 = load @v[%k][0i32]\n store @v[%k][%k], 1.0f64", []),
        # On a condition, or in another iteration.
        (LOAD + "%c: u1 = gt %k, 0i32\n if %c:\n  " + STORE, []),
        (f"for %i: i32 in 0i32 .. %k:\n  {LOAD}", []),
        (f"%c: u1 = gt %k, 0i32\n if %c:\n  {LOAD} {STORE}", [(1, "x")]),
        # Without a gradient, only what matters to one.
        ("%i: i32 = load @n[0i32]\n store @n[0i32], 1i32", []),
        ("%i: i32 = load @n[0i32]\n store @x[%i], 1.0f64\n store @n[0i32], 1i32", [(1, "n")]),
        ("store @n[0i32], 1i32\n store @n[0i32], 1i32", []),
        # It works on gradients itself, so that no tape takes it.
        ("%g: f64 = load @x.grad[%k]\n atomic add @x[%k], %g\n " + LOAD + STORE, []),
    ],
)
def test_what_is_certain(text: str, found: list[tuple[int, str]]) -> None:
    assert rules(text) == found


def warned(run: Any) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        run()
    return found


@pytest.mark.parametrize("debug", [True, False])
def test_debug_mode_warns_where_a_kernel_is_compiled(debug: bool) -> None:
    ti.init(arch=ti.cpu, debug=debug)
    x = ti.field(ti.f32, shape=4, needs_grad=True, name="x")

    @ti.kernel
    def halve():
        for i in x:
            x[i] = 0.5 * x[i]

    found = warned(halve)
    if debug:
        (only,) = found
        assert (only.filename, only.category) == (__file__, UserWarning)
        assert only.lineno == halve.source.span.line + 2
        assert "'x' is changed here after being read in line" in str(only.message)
    else:
        assert found == []
    assert warned(halve) == []
