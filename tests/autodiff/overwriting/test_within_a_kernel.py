"""Kernels that overwrite what their own gradient needs: loops, branches, `while`, against central differences."""

from __future__ import annotations

import pytest

from tests.autodiff.support import Program, assert_gradient, loop, made
from tinote.autodiff.gradient import reverse
from tinote.ir import primitives as p
from tinote.ir.build import Builder
from tinote.ir.nodes import Buffer, BufferKind, For, Lit, Var, While
from tinote.ir.types import f64, i32


def real(value: float) -> Lit:
    return Lit(value, f64)


def parallel(b: Builder, body) -> None:
    loop(b, 0, 4, body, parallel=True)


def overwriting(build) -> Program:
    """The program that `build` emits, which overwrites what its gradient needs."""
    program = made(build)
    assert program.fn is not None
    assert reverse(program.fn).live_in_before, "this program was meant to overwrite what it needs"
    return program


def squash(b: Builder, q: Program, i: Var) -> None:
    """y[i] = sin(y[i] · x[i]) + x[i]"""
    old, a = b.load(q.y, (i,)), b.load(q.x, (i,))
    b.store(q.y, (i,), b.prim(p.add, b.prim(p.sin, b.prim(p.mul, old, a)), a))


def test_straight_line_in_a_parallel_loop() -> None:
    def build(b: Builder, q: Program) -> None:
        def body(i: Var) -> None:
            for _ in range(3):
                squash(b, q, i)

        parallel(b, body)

    assert_gradient(overwriting(build))


def test_serial_loop_inside_of_a_parallel_one() -> None:
    def build(b: Builder, q: Program) -> None:
        parallel(b, lambda i: loop(b, 0, 5, lambda t: squash(b, q, i)))

    assert_gradient(overwriting(build))


def test_nested_loops_of_varying_length_with_two_buffers() -> None:
    """Position and velocity, updated in place: the pattern of every explicit time integration."""

    def build(b: Builder, q: Program) -> None:
        def body(i: Var) -> None:
            def outer(t: Var) -> None:
                def inner(k: Var) -> None:
                    squash(b, q, i)
                    pull = b.prim(p.mul, b.load(q.y, (i,)), real(-0.3))
                    b.store(q.x, (i,), b.prim(p.add, b.load(q.x, (i,)), b.prim(p.sin, pull)))

                loop(b, 0, b.prim(p.add, t, i), inner)

            loop(b, 0, 3, outer)

        parallel(b, body)

    program = overwriting(build)
    assert program.fn is not None
    assert {buffer.name for buffer in reverse(program.fn).live_in_before} == {"x", "y"}
    assert_gradient(program)


def test_branches_that_overwrite() -> None:
    def build(b: Builder, q: Program) -> None:
        def body(i: Var) -> None:
            def iteration(t: Var) -> None:
                old = b.load(q.y, (i,))
                with b.region() as then:
                    squash(b, q, i)
                with b.region() as orelse:
                    b.store(q.y, (i,), b.prim(p.exp, b.prim(p.mul, old, b.load(q.x, (i,)))))
                b.if_(b.prim(p.gt, old, real(0.4)), then.close(), orelse.close())

            loop(b, 0, 4, iteration)

        parallel(b, body)

    assert_gradient(overwriting(build))


def test_carried_values_next_to_overwritten_ones() -> None:
    def build(b: Builder, q: Program) -> None:
        def body(i: Var) -> None:
            t, s, out = Var(i32, "t"), Var(f64, "s"), Var(f64)
            with b.region(t, s) as iteration:
                squash(b, q, i)
                following = b.prim(p.sin, b.prim(p.mul, s, b.load(q.y, (i,))))
            b.emit(For(Lit(0, i32), Lit(4, i32), (b.load(q.x, (i,)),), iteration.close(following), (out,)))
            b.atomic(p.add, q.total, (), b.prim(p.mul, out, out))

        parallel(b, body)

    assert_gradient(overwriting(build))


def test_while_that_overwrites() -> None:
    def build(b: Builder, q: Program) -> None:
        def body(i: Var) -> None:
            asked, n = Var(i32, "n"), Var(i32, "n")
            with b.region(asked) as condition:
                more = b.prim(p.lt, asked, b.prim(p.add, i, Lit(2, i32)))
            with b.region(n) as iteration:
                squash(b, q, i)
                following = b.prim(p.add, n, Lit(1, i32))
            b.emit(While((Lit(0, i32),), condition.close(more), iteration.close(following), (Var(i32),)))

        parallel(b, body)

    assert_gradient(overwriting(build))


def test_serial_operations_at_the_top_of_a_kernel() -> None:
    """total += x1²; total *= x2: the product needs the sum that it overwrites."""

    def build(b: Builder, q: Program) -> None:
        x1, x2 = b.load(q.x, (Lit(1, i32),)), b.load(q.x, (Lit(2, i32),))
        b.atomic(p.add, q.total, (), b.prim(p.mul, x1, x1))
        b.atomic(p.mul, q.total, (), x2)

    program = overwriting(build)
    inputs = (0.0, 1.0, 2.0, 0.0)
    assert program.gradient(inputs) == [0.0, 4.0, 1.0, 0.0]
    assert_gradient(program)


def test_serial_loop_at_the_top_with_neighbours() -> None:
    """A sweep in place: each element from its neighbours, old and new."""

    def build(b: Builder, q: Program) -> None:
        def sweep(t: Var) -> None:
            def cell(k: Var) -> None:
                left = b.load(q.y, (k,))
                right = b.load(q.y, (b.prim(p.add, k, Lit(1, i32)),))
                new = b.prim(p.add, b.prim(p.sin, b.prim(p.mul, left, right)), b.load(q.x, (k,)))
                b.store(q.y, (b.prim(p.add, k, Lit(1, i32)),), new)

            loop(b, 0, 3, cell)

        loop(b, 0, 4, sweep)

    assert_gradient(overwriting(build))


@pytest.mark.parametrize("prim", [p.mul, p.minimum, p.maximum], ids=repr)
def test_atomics_of_an_own_element(prim: p.Primitive) -> None:
    def build(b: Builder, q: Program) -> None:
        def body(i: Var) -> None:
            b.store(q.y, (i,), real(0.5))
            loop(b, 0, 3, lambda t: b.atomic(prim, q.y, (i,), b.load(q.x, (i,))))
            squash(b, q, i)

        parallel(b, body)

    assert_gradient(overwriting(build))


def test_parallel_loops_that_overwrite_each_others_values() -> None:
    """Two fields updated in turn by separate loops of one kernel, twice over."""

    def build(b: Builder, q: Program) -> None:
        def kick(i: Var) -> None:
            pull = b.prim(p.mul, b.load(q.x, (i,)), b.prim(p.cos, b.load(q.y, (i,))))
            b.store(q.y, (i,), b.prim(p.add, b.load(q.y, (i,)), pull))

        def drift(i: Var) -> None:
            b.store(q.x, (i,), b.prim(p.sin, b.prim(p.mul, b.load(q.x, (i,)), b.load(q.y, (i,)))))

        for _ in range(2):
            parallel(b, kick)
            parallel(b, drift)

    assert_gradient(overwriting(build))


def test_a_sum_over_a_field_that_is_overwritten_afterwards() -> None:
    """The sum goes through a temporary that the loop fills; the loop after it overwrites what was summed."""

    def build(b: Builder, q: Program) -> None:
        total = Buffer("s", f64, (), (), BufferKind.TEMPORARY)

        def count(i: Var) -> None:
            a = b.load(q.x, (i,))
            b.atomic(p.add, total, (), b.prim(p.mul, a, a))
            b.store(q.x, (i,), b.prim(p.exp, a))

        parallel(b, count)

        def scale(i: Var) -> None:
            b.store(q.y, (i,), b.prim(p.mul, b.load(q.x, (i,)), b.load(total, ())))
            b.store(q.x, (i,), b.prim(p.tanh, b.load(q.x, (i,))))

        parallel(b, scale)

    assert_gradient(overwriting(build))


def test_serial_and_parallel_parts_together() -> None:
    def build(b: Builder, q: Program) -> None:
        first = b.load(q.y, (Lit(0, i32),))
        b.store(q.y, (Lit(0, i32),), b.prim(p.sin, b.prim(p.add, first, b.load(q.x, (Lit(0, i32),)))))
        parallel(b, lambda i: squash(b, q, i))
        last = b.load(q.y, (Lit(3, i32),))
        b.store(q.y, (Lit(3, i32),), b.prim(p.mul, last, b.prim(p.exp, last)))
        parallel(b, lambda i: squash(b, q, i))

    assert_gradient(overwriting(build))


def test_what_runs_again_needs_what_another_buffer_held() -> None:
    """The maximum needs the old y, which is computed again from x, which is overwritten in between."""

    def build(b: Builder, q: Program) -> None:
        one = (Lit(1, i32),)
        b.store(q.y, one, b.load(q.x, one))
        b.store(q.x, one, real(0.0))
        b.atomic(p.maximum, q.y, one, real(0.1))

    program = overwriting(build)
    assert program.fn is not None
    assert {buffer.name for buffer in reverse(program.fn).live_in_before} == {"x", "y"}
    assert_gradient(program)
