"""Small inner loops of known lengths: four iterations after each other, and what is left over."""

from __future__ import annotations

import pytest

from tests.passes.running import agrees
from tests.passes.support import becomes, stays
from tinote.compiler.passes.loops.unroll_partially import unroll_partially
from tinote.ir.query import walk
from tinote.ir.verify import Form
from tinote.remarks import Remark

HEAD = """
buffer @x: i32 field (200)
buffer @y: i32 field (200)
func f(%n: i32):
  task parallel "t" %o: i32 in 0i32 .. 1i32:
"""
SUM = (
    HEAD
    + """
    %t: i32 = for %i: i32 in 2i32 .. 18i32 carrying %s: i32 = 5i32:
      %a: i32 = load @x[%i]
      %b: i32 = add %s, %a
      yield %b
    store @y[0i32], %t
"""
)


def test_a_sum() -> None:
    after = (
        HEAD
        + """
    %t: i32 = for %k: i32 in 0i32 .. 4i32 carrying %s: i32 = 5i32:
      %m: i32 = mul %k, 4i32
      %i: i32 = add %m, 2i32
      %a: i32 = load @x[%i]
      %b: i32 = add %s, %a
      %j: i32 = add %m, 3i32
      %c: i32 = load @x[%j]
      %d: i32 = add %b, %c
      %l: i32 = add %m, 4i32
      %e: i32 = load @x[%l]
      %f: i32 = add %d, %e
      %q: i32 = add %m, 5i32
      %g: i32 = load @x[%q]
      %h: i32 = add %f, %g
      yield %h
    store @y[0i32], %t
"""
    )
    becomes(unroll_partially, SUM, after, Form.TASKS)


# Each iteration depends on the one before in a way that no other order has.
BODIES = {
    "a carried value": """
      %a: i32 = load @x[%i]
      %b: i32 = mul %s, 3i32
      %c: i32 = add %b, %a
      %d: i32 = sub %c, %i
      yield %d""",
    "memory": """
      %a: i32 = load @y[3i32]
      %b: i32 = mul %a, 3i32
      %c: i32 = add %b, %i
      store @y[3i32], %c
      store @x[%i], %c
      yield %a""",
    "a condition": """
      %p: u1 = lt %i, 20i32
      %a: i32 = if %p:
        store @y[%i], %s
        %b: i32 = mul %s, 3i32
        yield %b
      else:
        %c: i32 = load @y[7i32]
        %d: i32 = add %s, %c
        yield %d
      yield %a""",
}


@pytest.mark.parametrize("reverse", ["", "reverse "])
@pytest.mark.parametrize("trips", [16, 17, 18, 19, 61])
@pytest.mark.parametrize("body", BODIES)
def test_the_order_stays(body: str, trips: int, reverse: str) -> None:
    text = (
        HEAD
        + f"    %t: i32 = for {reverse}%i: i32 in -3i32 .. {trips - 3}i32 carrying %s: i32 = 1i32:"
        + BODIES[body].replace("[%i]", "[%w]").replace("\n", "\n      %w: i32 = add %i, 3i32\n", 1)
        + "\n    store @y[199i32], %t\n"
    )
    contents = {"x": [(7 * k) % 11 for k in range(200)], "y": [(5 * k) % 13 for k in range(200)]}
    new = agrees(unroll_partially, text, (0,), contents, Form.TASKS)
    loops = [op for op in walk(new.region) if type(op).__name__ == "For"]
    assert [int(op.hi.value) - int(op.lo.value) for op in loops] == [trips // 4]


@pytest.mark.parametrize(
    ("why", "old", "new"),
    [
        ("it has fewer than 16 iterations", "2i32 .. 18i32", "2i32 .. 17i32"),
        ("how often it runs is known at run time only", "2i32 .. 18i32", "2i32 .. %n"),
        (
            "it has fewer than 16 iterations",  # the loop in it
            "%a: i32 = load @x[%i]",
            "%a: i32 = load @x[%i]\n      for %j: i32 in 0i32 .. 3i32:\n        store @x[%j], %a",
        ),
        (
            "an iteration is too long",
            "%a: i32 = load @x[%i]",
            "\n      ".join(["%a: i32 = load @x[%i]"] + ["store @x[0i32], %a"] * 40),
        ),
        (
            "an iteration is too long",
            "%a: i32 = load @x[%i]",
            "%a: i32 = load @x[%i]\n      "
            + "\n      ".join(f"%q{k}: f64 = sin {k}f64\n      %r{k}: f64 = pow %q{k}, 3.5f64" for k in range(4)),
        ),
    ],
)
def test_what_stays(why: str, old: str, new: str) -> None:
    assert old in SUM
    said: list[Remark] = []
    stays(lambda fn: unroll_partially(fn, said.append), SUM.replace(old, new), Form.TASKS)
    assert [(remark.text, remark.done) for remark in said] == [(why, False)]
