"""Divisions, powers and sums become cheaper where no number on the way can leave its range, and only there."""

from __future__ import annotations

import random

import numpy as np
import pytest

import tinote as ti
from tests.passes.support import Pass, becomes, stays
from tinote.compiler.passes.simplification.eliminate_dead import eliminate_dead
from tinote.compiler.passes.simplification.fold import fold
from tinote.compiler.passes.simplification.reassociate import reassociate
from tinote.ir.interpret import interpret
from tinote.ir.memory import DictMemory
from tinote.ir.nodes import Function
from tinote.ir.parse import parse


def tidy(fn: Function) -> Function:
    return eliminate_dead(reassociate(fn))


def check(arguments: str, before: str, after: str, run: Pass = tidy) -> None:
    """Bodies of a function of f32."""

    def text(body: str) -> str:
        lines = "\n".join(f"  {line.strip()}" for line in body.strip().split(";"))
        names = ", ".join(f"%{name}: f32" for name in arguments.split())
        return f"func f({names}):\n{lines}\n"

    (becomes if before != after else lambda run, before, after: stays(run, before))(run, text(before), text(after))


@pytest.mark.parametrize(
    ("arguments", "before", "after"),
    [
        # a literal whose reciprocal is normal
        ("x", "%q: f32 = div %x, 4.0f32; return %q", "%q: f32 = mul %x, 0.25f32; return %q"),
        ("x", "%q: f32 = div %x, 1e-40f32; return %q", "%q: f32 = div %x, 1e-40f32; return %q"),
        # roots have reciprocals whatever they are of
        (
            "x d",
            "%r: f32 = sqrt %d; %q: f32 = div %x, %r; return %q",
            "%r: f32 = sqrt %d; %i: f32 = div 1.0f32, %r; %q: f32 = mul %i, %x; return %q",
        ),
        # several quotients by what may be denormal: as they were for two, scaled for three
        (
            "x y d",
            "%p: f32 = div %x, %d; %q: f32 = div %y, %d; return %p, %q",
            "%p: f32 = div %x, %d; %q: f32 = div %y, %d; return %p, %q",
        ),
        # by what is at least a literal
        (
            "x y d",
            "%s: f32 = mul %d, %d; %t: f32 = add %s, 0.5f32; %p: f32 = div %x, %t; %q: f32 = div %y, %t; return %p, %q",
            "%s: f32 = mul %d, %d; %t: f32 = add %s, 0.5f32; %i: f32 = div 1.0f32, %t; %p: f32 = mul %i, %x;"
            "%j: f32 = div 1.0f32, %t; %q: f32 = mul %j, %y; return %p, %q",
        ),
        (
            "x y d",
            "%t: f32 = max %d, 1e-3f32; %p: f32 = div %x, %t; %q: f32 = div %y, %t; return %p, %q",
            "%t: f32 = max %d, 1e-3f32; %i: f32 = div 1.0f32, %t; %p: f32 = mul %i, %x;"
            "%j: f32 = div 1.0f32, %t; %q: f32 = mul %j, %y; return %p, %q",
        ),
        # once only: the reciprocal is worth nothing
        (
            "x d",
            "%s: f32 = mul %d, %d; %t: f32 = add %s, 0.5f32; %q: f32 = div %x, %t; return %q",
            "%s: f32 = mul %d, %d; %t: f32 = add %s, 0.5f32; %q: f32 = div %x, %t; return %q",
        ),
        # the reciprocal of a product of roots, where that is in range …
        (
            "x d",
            "%s: f32 = mul %d, %d; %t: f32 = add %s, 0.5f32; %r: f32 = sqrt %t; %p: f32 = mul %t, %r;"
            "%q: f32 = div %x, %p; return %q",
            "%s: f32 = mul %d, %d; %t: f32 = add %s, 0.5f32; %r: f32 = sqrt %t; %i: f32 = div 1.0f32, %r;"
            "%j: f32 = mul %i, %i; %k: f32 = div 1.0f32, %r; %l: f32 = mul %j, %k; %q: f32 = mul %l, %x; return %q",
        ),
        # … and where it need not be, one factor after the other
        (
            "x d",
            "%r: f32 = sqrt %d; %p: f32 = mul %r, %r; %q: f32 = div %x, %p; return %q",
            "%r: f32 = sqrt %d; %i: f32 = div 1.0f32, %r; %p: f32 = mul %x, %i; %q: f32 = mul %p, %i; return %q",
        ),
        # powers
        (
            "x d",
            "%s: f32 = mul %d, %d; %t: f32 = add %s, 0.5f32; %r: f32 = rsqrt %t; %p: f32 = mul %x, %r;"
            "%q: f32 = mul %p, %r; return %q",
            "%s: f32 = mul %d, %d; %t: f32 = add %s, 0.5f32; %r: f32 = rsqrt %t; %p: f32 = mul %r, %r;"
            "%q: f32 = mul %x, %p; return %q",
        ),
        (
            "x r",
            "%p: f32 = mul %x, %r; %q: f32 = mul %p, %r; return %q",
            "%p: f32 = mul %x, %r; %q: f32 = mul %p, %r; return %q",
        ),
        # literals that meet: what remains is the result, or lies between what there was
        (
            "x y",
            "%p: f32 = mul %y, 0.5f32; %q: f32 = mul %x, %p; %r: f32 = mul %q, 2.0f32; return %r",
            "%r: f32 = mul %x, %y; return %r",
        ),
        (
            "x y",
            "%p: f32 = mul %y, 4.0f32; %q: f32 = mul %x, %p; %r: f32 = mul %q, 0.5f32; return %r",
            "%q: f32 = mul %x, %y; %r: f32 = mul %q, 2.0f32; return %r",
        ),
        (
            "x y",
            "%p: f32 = mul %y, 0.001f32; %q: f32 = mul %x, %p; %r: f32 = mul %q, 0.5f32; return %r",
            "%p: f32 = mul %y, 0.001f32; %q: f32 = mul %x, %p; %r: f32 = mul %q, 0.5f32; return %r",
        ),
        (
            "x y",
            "%p: f32 = mul %y, 8.0f32; %q: f32 = mul %x, %p; %r: f32 = mul %q, 0.5f32; return %r",
            "%p: f32 = mul %y, 8.0f32; %q: f32 = mul %x, %p; %r: f32 = mul %q, 0.5f32; return %r",
        ),
        # a common literal, unless it makes the terms smaller
        (
            "x y",
            "%p: f32 = mul %x, 3.0f32; %q: f32 = mul %y, 3.0f32; %r: f32 = sub %p, %q; return %r",
            "%p: f32 = sub %x, %y; %r: f32 = mul %p, 3.0f32; return %r",
        ),
        (
            "x y",
            "%p: f32 = mul %x, 0.5f32; %q: f32 = mul %y, 0.5f32; %r: f32 = add %p, %q; return %r",
            "%p: f32 = mul %x, 0.5f32; %q: f32 = mul %y, 0.5f32; %r: f32 = add %p, %q; return %r",
        ),
        # products are added last
        (
            "x y z",
            "%p: f32 = mul %x, %x; %q: f32 = mul %y, %y; %r: f32 = add %p, %q; %s: f32 = add %r, %z; return %s",
            "%p: f32 = mul %x, %x; %q: f32 = mul %y, %y; %r: f32 = add %z, %p; %s: f32 = add %r, %q; return %s",
        ),
        # what a sum that is needed has is not taken apart
        (
            "x y z",
            "%p: f32 = mul %x, %x; %q: f32 = mul %y, %y; %r: f32 = add %p, %q; %s: f32 = add %r, %z; return %s, %r",
            "%p: f32 = mul %x, %x; %q: f32 = mul %y, %y; %r: f32 = add %p, %q; %s: f32 = add %r, %z; return %s, %r",
        ),
        # the order of compensated summation
        (
            "s y",
            "%t: f32 = add %s, %y; %d: f32 = sub %t, %s; %c: f32 = sub %d, %y; return %t, %c",
            "%t: f32 = add %s, %y; %d: f32 = sub %t, %s; %c: f32 = sub %d, %y; return %t, %c",
        ),
        # a root that is only compared
        (
            "x",
            "%s: f32 = mul %x, %x; %r: f32 = sqrt %s; %c: u1 = lt %r, 20.0f32; return %c",
            "%s: f32 = mul %x, %x; %c: u1 = lt %s, 400.0f32; return %c",
        ),
        ("x", "%r: f32 = sqrt %x; %c: u1 = ge %r, 0.5f32; return %c", "%c: u1 = ge %x, 0.25f32; return %c"),
        # … of what may be negative, by a number that may be, by one without a square, and one that is needed anyway
        *[
            ("x y", line, line)
            for line in (
                "%r: f32 = sqrt %x; %c: u1 = le %r, 0.5f32; return %c",
                "%r: f32 = sqrt %x; %c: u1 = gt %r, -0.5f32; return %c",
                "%r: f32 = sqrt %x; %c: u1 = gt %r, %y; return %c",
                "%r: f32 = sqrt %x; %c: u1 = ge %r, 1e-20f32; return %c",
                "%r: f32 = sqrt %x; %c: u1 = ge %r, 1e20f32; return %c",
                "%r: f32 = sqrt %x; %c: u1 = gt %r, 0.5f32; return %c, %r",
            )
        ],
    ],
)  # fmt: skip
def test_expressions(arguments: str, before: str, after: str) -> None:
    check(arguments, before, after)


def test_three_quotients_share_a_scaled_reciprocal() -> None:
    scaled = """
          %a{n}: f32 = abs %d
          %b{n}: u1 = lt %a{n}, 1.1754943508222875e-38f32
          %c{n}: f32 = select %b{n}, 16777216.0f32, 1.0f32
          %m{n}: f32 = mul %d, %c{n}
          %i{n}: f32 = div 1.0f32, %m{n}
          %p{n}: f32 = mul %x{n}, %i{n}
          %q{n}: f32 = mul %p{n}, %c{n}"""
    divided = "\n          %q{n}: f32 = div %x{n}, %d"
    text = """
        func f(%x0: f32, %x1: f32, %x2: f32, %d: f32):{body}
          return %q0, %q1, %q2
        """
    before, after = ("".join(part.format(n=n) for n in range(3)) for part in (divided, scaled))
    becomes(tidy, text.format(body=before), text.format(body=after))


def test_a_loop_divides_by_what_it_does_not_change_once() -> None:
    becomes(
        tidy,
        """
        buffer @x: f32 field (64)
        func f(%d: f32, %n: i32):
          %w: f32 = cast %n
          for parallel %i: i32 in 0i32 .. 64i32:
            %v: f32 = load @x[%i]
            %u: f32 = div %v, %w
            %q: f32 = div %u, %d
            store @x[%i], %q
        """,
        """
        buffer @x: f32 field (64)
        func f(%d: f32, %n: i32):
          %w: f32 = cast %n
          for parallel %i: i32 in 0i32 .. 64i32:
            %v: f32 = load @x[%i]
            %j: f32 = div 1.0f32, %w
            %u: f32 = mul %j, %v
            %a: f32 = abs %d
            %b: u1 = lt %a, 1.1754943508222875e-38f32
            %c: f32 = select %b, 16777216.0f32, 1.0f32
            %m: f32 = mul %d, %c
            %k: f32 = div 1.0f32, %m
            %p: f32 = mul %u, %k
            %q: f32 = mul %p, %c
            store @x[%i], %q
        """,
    )


def test_what_the_loop_writes_or_counts_is_divided_by_each_time() -> None:
    stays(
        tidy,
        """
        buffer @x: f32 field (64)
        buffer @y: f32 field ()
        func f():
          for %i: i32 in 0i32 .. 64i32:
            %v: f32 = load @x[%i]
            %d: f32 = load @y[]
            %q: f32 = div %v, %d
            %w: f32 = cast %i
            %r: f32 = div %q, %w
            store @y[], %r
        """,
    )


def test_a_branch_does_not_export_its_reciprocal() -> None:
    stays(
        tidy,
        """
        func f(%x: f32, %d: f32, %c: u1):
          %s: f32 = mul %d, %d
          %t: f32 = add %s, 0.5f32
          %r: f32 = if %c:
            %p: f32 = div %x, %t
            yield %p
          else:
            %q: f32 = div 2.0f32, %t
            yield %q
          return %r
        """,
    )


def test_sums_with_two_terms_in_common_add_these_first() -> None:
    becomes(
        lambda fn: eliminate_dead(reassociate(fn)),
        """
        func f(%a: f32, %b: f32, %c: f32, %d: f32):
          %p: f32 = add %b, %c
          %q: f32 = add %a, %p
          %r: f32 = add %b, %d
          %s: f32 = add %a, %r
          return %q, %s
        """,
        """
        func f(%a: f32, %b: f32, %c: f32, %d: f32):
          %p: f32 = add %a, %b
          %q: f32 = add %p, %c
          %r: f32 = add %a, %b
          %s: f32 = add %r, %d
          return %q, %s
        """,
    )


def test_what_a_loop_carries_waits_for_one_addition() -> None:
    stays(
        tidy,
        """
        buffer @x: f32 field (64)
        func f():
          %s: f32 = for %i: i32 in 0i32 .. 64i32 carrying %t: f32 = 0.0f32:
            %v: f32 = load @x[%i]
            %p: f32 = mul %v, %v
            %q: f32 = mul %v, 3.0f32
            %r: f32 = add %p, %q
            %u: f32 = add %t, %r
            yield %u
          return %s
        """,
    )


def test_literals_that_met_are_one_number_for_folding() -> None:
    check(
        "x y",
        "%p: f32 = mul %y, 4.0f32; %q: f32 = mul %x, %p; %r: f32 = div %q, 0.5f32; return %r",
        "%q: f32 = mul %x, %y; %r: f32 = mul %q, 8.0f32; return %r",
        lambda fn: fold(tidy(fn), fast_math=True),
    )


def sums_of_few_terms(seed: int) -> str:
    """A function of sums that have terms in common, with one another and with themselves: variables, products, and
    sums before them. Where arguments are small integers, each order of additions gives the same.
    """
    chance = random.Random(seed)
    lines, known, results = [], ["%a", "%b", "%c"], []

    def make(operation: str, one: str, other: str) -> str:
        lines.append(f"%v{len(lines)}: f64 = {operation} {one}, {other}")
        return f"%v{len(lines) - 1}"

    for _ in range(chance.randint(0, 2)):
        known.append(make("mul", chance.choice(known), chance.choice([*known, "2.0f64", "3.0f64"])))
    for _ in range(chance.randint(2, 5)):
        parts = [chance.choice(known) for _ in range(chance.randint(2, 6))]
        while len(parts) > 1:  # in any order
            one, other = [parts.pop(chance.randrange(len(parts))) for _ in range(2)]
            parts.append(make(chance.choice(["add", "add", "sub"]), one, other))
        results.append(parts[0])
        if chance.random() < 0.3:
            known.append(parts[0])
    body = "\n".join(f"  {line}" for line in lines)
    return f"func f(%a: f64, %b: f64, %c: f64):\n{body}\n  return {', '.join(results)}\n"


def test_random_sums_keep_each_term_as_often_as_they_have_it() -> None:
    changed = 0
    for seed in range(1000):
        text = sums_of_few_terms(seed)
        fn = parse(text)
        new = reassociate(fn)
        changed += new is not fn
        for arguments in ((1.0, 10.0, 100.0), (-3.0, 7.0, 5.0)):
            found, wanted = [interpret(one, arguments, DictMemory()) for one in (new, fn)]
            assert found == wanted, f"seed {seed}:\n{text}"
    assert changed > 300


def test_a_term_that_a_sum_has_twice_is_added_twice() -> None:
    """Also where other sums have it, too, with another one."""
    ti.init(default_fp=ti.f64)
    x = ti.field(ti.f64, shape=3, needs_grad=True)
    found = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def sums():
        u, v, w = x[0], x[1], x[2]
        found[None] += (u + v + w) * (u + u + v) + ti.sqrt(u * u + v * v + 0.1) * ti.sqrt(u * u + u * u + 0.1)

    def value(u: float, v: float, w: float) -> float:
        return (u + v + w) * (2 * u + v) + (u * u + v * v + 0.1) ** 0.5 * (2 * u * u + 0.1) ** 0.5

    at = [0.7, -0.4, 1.3]
    x.from_numpy(np.array(at))
    with ti.ad.Tape(found):
        sums()
    assert found[None] == pytest.approx(value(*at), rel=1e-14)
    for k in range(3):
        above, below = [*at], [*at]
        above[k] += 1e-6
        below[k] -= 1e-6
        assert x.grad[k] == pytest.approx((value(*above) - value(*below)) / 2e-6, rel=1e-7)
