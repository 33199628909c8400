"""Every primitive's derivative, in each shape of code that reverse mode treats differently, against central differences
in f64.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from tests.autodiff.support import Program, assert_gradient
from tinote.ir import primitives as p
from tinote.ir.build import Builder
from tinote.ir.nodes import Atom, For, Function, Lit, Var, While
from tinote.ir.primitives import PRIMITIVES, NoDerivative, Primitive
from tinote.ir.types import Scalar, f64, i32, u1


def real(value: float) -> Lit:
    return Lit(value, f64)


def positive(b: Builder, a: Atom) -> Atom:
    """a² + 0.3, smooth and away from singular points."""
    return b.prim(p.add, b.prim(p.mul, a, a), real(0.3))


def bounded(b: Builder, a: Atom) -> Atom:
    """0.8 tanh a, inside of (-1, 1)."""
    return b.prim(p.mul, b.prim(p.tanh, a), real(0.8))


def apply(b: Builder, prim: Primitive, u: Atom, v: Atom) -> Atom:
    """A smooth use of `prim` on two floats."""
    if prim.domain == (0, math.inf):
        return b.prim(prim, positive(b, u))
    if prim.domain == (-1, 1):
        return b.prim(prim, bounded(b, u))
    if prim is p.power:
        return b.prim(prim, positive(b, u), v)
    if prim in (p.div, p.raw_div):
        return b.prim(prim, u, positive(b, v))
    if prim in (p.mod, p.raw_mod):
        return b.prim(prim, u, b.prim(p.add, positive(b, v), real(7.0)))
    if prim is p.atan2:
        return b.prim(prim, u, positive(b, v))
    if prim is p.select:
        return b.prim(prim, b.prim(p.lt, u, v), b.prim(p.mul, u, v), b.prim(p.sin, v))
    if prim is p.cast:
        return b.prim(prim, b.prim(p.mul, u, v), type=f64)
    return b.prim(prim, *(u, v)[: prim.arity])


#: `pack` moves components, and `surrogate` has another derivative than its value's: each has a test of its own.
SMOOTH = [
    prim
    for prim in PRIMITIVES.values()
    if not isinstance(prim.derivative, NoDerivative) and prim not in (p.pack, p.surrogate)
]

Shape = Callable[[Builder, Program, Callable[[Builder, Atom, Atom], Atom]], None]


def parallel(b: Builder, program: Program, body: Callable[[Var, Atom, Atom], Atom]) -> None:
    """y[i] = body(i, x[i], x[0]) for every i at once."""
    i = Var(i32, "i")
    with b.region(i) as inside:
        b.store(program.y, (i,), body(i, b.load(program.x, (i,)), b.load(program.x, (Lit(0, i32),))))
    b.emit(For(Lit(0, i32), Lit(4, i32), (), inside.close(), parallel=True))


def straight(b: Builder, program: Program, f: Callable[[Builder, Atom, Atom], Atom]) -> None:
    parallel(b, program, lambda i, a, c: f(b, a, c))


def inner_loop(b: Builder, program: Program, f: Callable[[Builder, Atom, Atom], Atom]) -> None:
    """A sum over x of f(x[j], x[i]) in an inner loop."""

    def body(i: Var, a: Atom, c: Atom) -> Atom:
        j, s, out = Var(i32, "j"), Var(f64, "s"), Var(f64)
        with b.region(j, s) as iteration:
            following = b.prim(p.add, s, f(b, b.load(program.x, (j,)), a))
        b.emit(For(Lit(0, i32), Lit(4, i32), (real(0.5),), iteration.close(following), (out,)))
        return out

    parallel(b, program, body)


def carried(b: Builder, program: Program, f: Callable[[Builder, Atom, Atom], Atom]) -> None:
    """s = f(s, x[j]) in each iteration: each derivative needs the value that was carried in."""

    def body(i: Var, a: Atom, c: Atom) -> Atom:
        j, s, out = Var(i32, "j"), Var(f64, "s"), Var(f64)
        with b.region(j, s) as iteration:
            following = b.prim(p.tanh, f(b, s, b.load(program.x, (j,))))
        b.emit(For(Lit(0, i32), b.prim(p.add, i, Lit(1, i32)), (a,), iteration.close(following), (out,)))
        return out

    parallel(b, program, body)


def nested(b: Builder, program: Program, f: Callable[[Builder, Atom, Atom], Atom]) -> None:
    """A carried value through two loops, the inner one as long as the outer index says."""

    def body(i: Var, a: Atom, c: Atom) -> Atom:
        j, s, out = Var(i32, "j"), Var(f64, "s"), Var(f64)
        with b.region(j, s) as outer:
            k, t, t_out = Var(i32, "k"), Var(f64, "t"), Var(f64)
            with b.region(k, t) as inner:
                following = b.prim(p.sin, f(b, t, b.load(program.x, (k,))))
            b.emit(For(Lit(0, i32), j, (s,), inner.close(following), (t_out,)))
            mixed = b.prim(p.add, b.prim(p.mul, t_out, real(0.7)), b.prim(p.mul, s, a))
        b.emit(For(Lit(0, i32), Lit(4, i32), (c,), outer.close(mixed), (out,)))
        return out

    parallel(b, program, body)


def branch(b: Builder, program: Program, f: Callable[[Builder, Atom, Atom], Atom]) -> None:
    def body(i: Var, a: Atom, c: Atom) -> Atom:
        condition = b.prim(p.gt, a, real(0.5))
        with b.region() as then:
            first = f(b, a, c)
        with b.region() as orelse:
            second = b.prim(p.mul, f(b, c, a), a)
        (out,) = b.if_(condition, then.close(first), orelse.close(second))
        return out

    parallel(b, program, body)


def while_loop(b: Builder, program: Program, f: Callable[[Builder, Atom, Atom], Atom]) -> None:
    """A loop whose number of iterations depends on what it computes."""

    def body(i: Var, a: Atom, c: Atom) -> Atom:
        asked, asked_n = Var(f64, "s"), Var(i32, "n")
        with b.region(asked, asked_n) as condition:
            small = b.prim(p.lt, asked, real(50.0))
            more = b.prim(p.and_, small, b.prim(p.lt, asked_n, b.prim(p.add, i, Lit(2, i32))))
        s, n, out, count = Var(f64, "s"), Var(i32, "n"), Var(f64), Var(i32)
        with b.region(s, n) as iteration:
            following = b.prim(p.tanh, f(b, s, a))
            following_n = b.prim(p.add, n, Lit(1, i32))
        b.emit(While((c, Lit(0, i32)), condition.close(more), iteration.close(following, following_n), (out, count)))
        return out

    parallel(b, program, body)


SHAPES = (straight, inner_loop, carried, nested, branch, while_loop)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("prim", SMOOTH, ids=repr)
def test_gradient_of_primitive(prim: Primitive, shape: Shape) -> None:
    program, b = Program(), Builder()
    with b.region() as top:
        shape(b, program, lambda builder, u, v: apply(builder, prim, u, v))
    program.fn = Function("f", top.close())
    assert_gradient(program)


def test_every_primitive_has_a_rule_or_a_reason() -> None:
    rules = [prim.derivative for prim in PRIMITIVES.values()]
    assert all(rule.reason if isinstance(rule, NoDerivative) else callable(rule) for rule in rules)


@pytest.mark.parametrize(
    "prim",
    [
        q
        for q in PRIMITIVES.values()
        if isinstance(q.derivative, NoDerivative)
        and q.derivative.zero
        and q.arity in (1, 2)
        and q.rule is not None
        and q is not p.stop_gradient_once
    ],
    ids=repr,
)
def test_primitives_with_zero_derivative_give_no_floats_that_vary(prim: Primitive) -> None:
    """What is declared piecewise constant really is: a small change of its operands changes nothing. (What is `held` is
    so by decree.)
    """
    dtype = i32 if prim in (p.and_, p.or_, p.xor, p.invert, p.shl, p.shr) else u1 if prim is p.logical_not else f64
    values = [2.3, 0.7][: prim.arity or 0]
    if dtype is not f64:
        return assert_result_is_not_float(prim, dtype)
    result = f64 if prim in (p.floordiv, p.floor, p.ceil, p.round_) else u1
    assert prim.evaluate(result, *values) == prim.evaluate(result, *[v + 1e-6 for v in values])


def assert_result_is_not_float(prim: Primitive, dtype: Scalar) -> None:
    assert prim.rule is not None
    result = prim.rule((dtype,) * (prim.arity or 1), p.Defaults())
    assert isinstance(result, Scalar) and result.kind != "f"


def test_shared_local_read_by_a_parallel_loop() -> None:
    """An active value from outside of a parallel loop collects the adjoints of all iterations."""
    program, b = Program(), Builder()
    with b.region() as top:
        shared = b.prim(p.sin, b.load(program.x, (Lit(2, i32),)))
        parallel(b, program, lambda i, a, c: b.prim(p.mul, a, shared))
    program.fn = Function("f", top.close())
    assert_gradient(program)


def test_norm_at_zero_has_gradient_zero() -> None:
    program, b = Program(), Builder()
    with b.region() as top:
        parallel(b, program, lambda i, a, c: b.prim(p.sqrt, b.prim(p.add, b.prim(p.mul, a, a), b.prim(p.mul, c, c))))
    program.fn = Function("f", top.close())
    assert program.gradient((0.0, 0.0, 0.0, 0.0)) == [0.0] * 4


def test_arm_not_taken_contributes_zero() -> None:
    """select(x > 0, sqrt(x), 0) at x = 0: the root's infinite slope must not become NaN."""
    program, b = Program(), Builder()
    with b.region() as top:
        parallel(b, program, lambda i, a, c: b.prim(p.select, b.prim(p.gt, a, real(0.0)), b.prim(p.sqrt, a), real(0.0)))
    program.fn = Function("f", top.close())
    assert program.gradient((0.0, 4.0, -1.0, 1.0)) == [0.0, -0.5, 0.0, 1.5]
