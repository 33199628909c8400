"""A value that the gradient needs and the kernel overwrites is refused; what is provably another element is not."""

from __future__ import annotations

import pytest

from tests.autodiff.support import Program, assert_gradient, loop, made
from tinote.autodiff.gradient import reverse
from tinote.errors import DifferentiationError
from tinote.ir import primitives as p
from tinote.ir.build import Builder
from tinote.ir.nodes import Lit, Var
from tinote.ir.types import f64, i32


def overwrites(program: Program) -> list:
    assert program.fn is not None
    return list(reverse(program.fn).overwrites)


def step(b: Builder, program: Program, read: int, write: int):
    """y[t + write] = y[t + read]² + x[t]"""

    def body(t: Var) -> None:
        old = b.load(program.y, (b.prim(p.add, t, Lit(read, i32)),))
        new = b.prim(p.add, b.prim(p.mul, old, old), b.load(program.x, (t,)))
        b.store(program.y, (b.prim(p.add, t, Lit(write, i32)),), new)

    return body


def test_time_stepping_forward_is_right() -> None:
    program = made(lambda b, q: loop(b, 0, 3, step(b, q, 0, 1)))
    assert overwrites(program) == []
    assert_gradient(program)


def test_time_stepping_onto_what_is_read_later_keeps_the_values() -> None:
    """y[t] = y[t+1]² + x[t]: each iteration writes what the one before it read."""
    program = made(lambda b, q: loop(b, 0, 3, step(b, q, 1, 0)))
    assert len(overwrites(program)) == 1
    assert_gradient(program)


def test_in_place_update_keeps_the_values() -> None:
    program = made(lambda b, q: loop(b, 0, 3, step(b, q, 0, 0)))
    assert [h.load.buffer for h in overwrites(program)] == [program.y]
    assert_gradient(program)


def test_write_before_the_read_is_no_hazard() -> None:
    def build(b: Builder, q: Program) -> None:
        b.store(q.y, (Lit(0, i32),), b.prim(p.sin, b.load(q.x, (Lit(1, i32),))))
        old = b.load(q.y, (Lit(0, i32),))
        b.atomic(p.add, q.total, (), b.prim(p.mul, old, old))

    program = made(build)
    assert overwrites(program) == []
    assert_gradient(program)


def test_two_elements_do_not_meet() -> None:
    def build(b: Builder, q: Program) -> None:
        old = b.load(q.x, (Lit(1, i32),))
        b.atomic(p.add, q.total, (), b.prim(p.mul, old, old))
        b.store(q.x, (Lit(2, i32),), Lit(5.0, f64))

    assert overwrites(made(build)) == []


def test_same_element_afterwards_is_kept() -> None:
    def build(b: Builder, q: Program) -> None:
        old = b.load(q.x, (Lit(1, i32),))
        b.atomic(p.add, q.total, (), b.prim(p.mul, old, old))
        b.store(q.x, (Lit(1, i32),), Lit(5.0, f64))

    program = made(build)
    assert len(overwrites(program)) == 1
    assert_gradient(program)


def test_value_that_is_only_added_is_not_needed() -> None:
    """x[1] enters linearly: its overwriting harms nobody."""

    def build(b: Builder, q: Program) -> None:
        b.atomic(p.add, q.total, (), b.load(q.x, (Lit(1, i32),)))
        b.store(q.x, (Lit(1, i32),), Lit(5.0, f64))

    program = made(build)
    assert overwrites(program) == []


def test_reading_a_gradient_in_a_differentiated_kernel_is_refused() -> None:
    def build(b: Builder, q: Program) -> None:
        assert q.x.adjoint is not None
        b.atomic(p.add, q.total, (), b.prim(p.mul, b.load(q.x, (Lit(0, i32),)), b.load(q.x.adjoint, (Lit(0, i32),))))

    program = made(build)
    assert program.fn is not None
    with pytest.raises(DifferentiationError, match=r"reads the gradient 'x\.grad'"):
        reverse(program.fn)
