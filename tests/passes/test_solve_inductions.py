"""Integers that loops change evenly are what their closed forms say, bit for bit, and nothing is carried for them."""

from __future__ import annotations

import random

import numpy as np
import pytest

import tinote as ti
from tests.passes.running import agrees, results
from tests.passes.support import becomes, stays
from tinote.compiler.passes.simplification.solve_inductions import solve_inductions
from tinote.errors import KernelIndexError
from tinote.ir.nodes import For, Function, Push
from tinote.ir.parse import parse
from tinote.ir.query import walk
from tinote.ir.text import show
from tinote.ir.verify import Form, verify


def carried(fn: Function) -> int:
    return sum([len(op.carried) for op in walk(fn.region) if isinstance(op, For)])


def test_an_index_that_grows_by_the_same_step() -> None:
    becomes(
        solve_inductions,
        """
        buffer @x: f32 field (64)
        buffer @y: f32 field (64)
        func f(%n: i32, %a: i32):
          %q: i32 = for %j: i32 in 0i32 .. %n carrying %p: i32 = %a:
            %v: f32 = load @x[%p]
            store @y[%j], %v
            %r: i32 = add %p, 3i32
            yield %r
          return %q
        """,
        """
        buffer @x: f32 field (64)
        buffer @y: f32 field (64)
        func f(%n: i32, %a: i32):
          %m: i32 = max %n, 0i32
          %u: i32 = mul %m, 3i32
          %q: i32 = add %a, %u
          for %j: i32 in 0i32 .. %n:
            %t: i32 = mul %j, 3i32
            %p: i32 = add %a, %t
            %v: f32 = load @x[%p]
            store @y[%j], %v
            %r: i32 = add %p, 3i32
          return %q
        """,
    )


STEPS = {
    "the same": ("%r: {t} = sub %p, %s", 1),
    "several at once": ("%b: {t} = add %s, %p\n%c: {t} = sub %b, 5{t}\n%r: {t} = add 7{t}, %c", 1),
    "the index": ("%r: {t} = add %p, %j", 1),
    "less the index": ("%b: {t} = sub %s, %j\n%r: {t} = add %b, %p", 1),
    "not even": ("%b: {t} = mul %p, 3{t}\n%r: {t} = add %b, %s", 0),
    "doubled": ("%r: {t} = add %p, %p", 0),
    "exchanged": ("%r: {t} = sub %s, %p", 0),
}


@pytest.mark.parametrize("kind", ["", "reverse "])
@pytest.mark.parametrize("t", ["i32", "u32"])
@pytest.mark.parametrize("name", STEPS)
def test_each_step(name: str, t: str, kind: str) -> None:
    """For loops of no and of many iterations, from any number, with sums that wrap."""
    step, solved = STEPS[name]
    body = "".join(f"    {line}\n" for line in step.format(t=t).splitlines())
    text = (
        f"buffer @x: {t} field (32)\nbuffer @y: {t} field ()\nfunc f(%lo: {t}, %hi: {t}, %a: {t}, %s: {t}):\n"
        f"  %q: {t} = for {kind}%j: {t} in %lo .. %hi carrying %p: {t} = %a:\n    %k: {t} = sub %j, %lo\n"
        f"    %i: i64 = cast %k\n    store @x[%i], %p\n{body}    yield %r\n  store @y[], %q\n"
    )
    if not solved:
        stays(solve_inductions, text)
        return
    top = (1 << 31) - 1 if t == "i32" else (1 << 32) - 1
    for lo, hi in ((0, 0), (3, 0), (0, 1), (0, 2), (5, 30), (top - 20, top)):
        for start, s in ((0, 1), (top - 3, 9), (7, top), (top // 2, top // 3)):
            fn = agrees(solve_inductions, text, (lo, hi, start, s))
            assert carried(fn) == 0, show(fn)


def test_a_step_that_is_solved_itself() -> None:
    """As an index into a triangular matrix that is packed column after column."""
    text = """
        buffer @x: i32 field (64)
        buffer @y: i32 field (2)
        func f(%d: i32):
          %q: i32, %w: i32 = for %c: i32 in 0i32 .. 40i32 carrying %p: i32 = 3i32, %g: i32 = %d:
            store @x[%c], %p
            %r: i32 = add %p, %g
            %h: i32 = sub %g, 1i32
            yield %r, %h
          store @y[0i32], %q
          store @y[1i32], %w
        """
    for d in (0, 40, 1 << 30, -(1 << 31)):
        assert carried(agrees(solve_inductions, text, (d,))) == 0


def test_random_loops() -> None:
    """Several carried integers that step by one another, by the index, by numbers and by what is bound before."""
    solved = 0
    for seed in range(60):
        choose = random.Random(seed)
        values = ["%p", "%g", "%h", "%j", "%n", "3i32", "-7i32"]
        lines = []
        for k, name in enumerate(("p", "g", "h")):
            total = f"%{name}"
            for m in range(choose.randint(1, 3)):
                other = choose.choice(values[3:] if choose.random() < 0.5 else values)
                lines.append(f"    %{name}{m}: i32 = {choose.choice(('add', 'sub'))} {total}, {other}")
                total = f"%{name}{m}"
            lines.append(f"    store @x[%j, {k}i32], %{name}")
            values.append(total)
        results_of = [f"%{name}{sum(line.startswith(f'    %{name}') for line in lines) - 1}" for name in "pgh"]
        kind = choose.choice(("", "reverse "))
        text = "\n".join(
            [
                "buffer @x: i32 field (12, 3)",
                "buffer @y: i32 field (3)",
                "func f(%n: i32):",
                f"  %a: i32, %b: i32, %c: i32 = for {kind}%j: i32 in 0i32 .. 12i32 "
                "carrying %p: i32 = %n, %g: i32 = 5i32, %h: i32 = 2147483000i32:",
                *lines,
                f"    yield {', '.join(results_of)}",
                *[f"  store @y[{k}i32], %{name}" for k, name in enumerate("abc")],
            ]
        )
        fn = parse(text + "\n")
        verify(fn, Form.SCALAR)
        new = solve_inductions(fn)
        verify(new, Form.SCALAR)
        solved += carried(fn) - carried(new)
        for n in (0, -3, 2147483640):
            assert repr(results(new, (n,))) == repr(results(fn, (n,))), show(new)
    assert solved > 60, solved


@pytest.fixture
def strided() -> ti.Kernel:
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x, y = (ti.field(ti.f64, n, needs_grad=True) for n in (64, 16))

    @ti.kernel
    def gather(n: ti.i32):
        for i in range(16):
            place = 2 * i
            total = 0.0
            for _ in range(n):
                total += x[place] * x[place]
                place += 3
            y[i] = total

    gather.fields = x, y
    return gather


def test_a_reverse_sweep_stores_no_indices(strided: ti.Kernel) -> None:
    last = strided.specialise(1).snapshots(gradient=True)[-1].after
    assert not any(isinstance(op, Push) for op in walk(last.region)), show(last)
    x, y = strided.fields
    x.from_numpy(np.arange(64.0))
    y.grad.fill(1)
    strided(9)
    strided.grad(9)
    expected = np.zeros(64)
    for i in range(16):
        np.add.at(expected, 2 * i + 3 * np.arange(9), 2.0 * (2 * i + 3 * np.arange(9)))
    np.testing.assert_array_equal(x.grad.to_numpy(), expected)


def test_a_fault_names_the_line_and_the_index(strided: ti.Kernel) -> None:
    strided(10)
    with pytest.raises(KernelIndexError, match=r"index 6[46] is out of bounds for axis 0") as caught:
        strided(12)  # 30 + 3 * 11 = 63 is the last one
        strided(13)
    assert "total += x[place] * x[place]" in str(caught.value)
