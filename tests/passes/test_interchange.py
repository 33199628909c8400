"""What an inner loop adds to its own elements gets a nest in which the loops have changed places."""

from __future__ import annotations

import random

import pytest

from tests.passes.running import agrees
from tests.passes.support import becomes, stays
from tinote.compiler.passes.loops import interchange as module
from tinote.compiler.passes.loops.interchange import interchange
from tinote.compiler.passes.lowering.offload import offload
from tinote.compiler.passes.updates.accumulate import accumulate
from tinote.compiler.passes.updates.demote_atomics import demote_atomics
from tinote.ir.nodes import Atomic, Function
from tinote.ir.query import walk

HEAD = """
buffer @x: i32 field (300)
buffer @y: i32 field (300)
buffer @z: i32 field (300)
buffer @k: i32 field (300, 300)
func f(%n: i32):
"""
PAIRS = (
    HEAD
    + """
  for parallel %i: i32 in 0i32 .. 300i32:
    %a: i32 = load @x[%i]
    %t: i32 = for %j: i32 in 0i32 .. 300i32 carrying %s: i32 = 0i32:
      %b: i32 = load @x[%j]
      %c: i32 = mul %a, %b
      %d: i32 = add %s, %c
      atomic add @y[%j], %c
      yield %d
    atomic add @y[%i], %t
"""
)


def indivisible(fn: Function) -> int:
    """How many updates remain that invocations could meet in."""
    updates = [op for op in walk(demote_atomics(offload(accumulate(fn))).region) if isinstance(op, Atomic)]
    return sum(not op.plain for op in updates)


def test_the_sums_of_pairs() -> None:
    after = (
        HEAD
        + """
  for parallel %i: i32 in 0i32 .. 300i32:
    %a: i32 = load @x[%i]
    %t: i32 = for %j: i32 in 0i32 .. 300i32 carrying %s: i32 = 0i32:
      %b: i32 = load @x[%j]
      %c: i32 = mul %a, %b
      %d: i32 = add %s, %c
      yield %d
    atomic add @y[%i], %t
  for parallel %q: i32 in 0i32 .. 300i32:
    for parallel %p: i32 in 0i32 .. 300i32:
      %e: i32 = load @x[%p]
      %g: i32 = load @x[%q]
      %h: i32 = mul %e, %g
      atomic add @y[%q], %h
"""
    )
    new = becomes(interchange, PAIRS, after)
    assert indivisible(new) == 0


def test_nothing_is_left_where_all_is_added_elsewhere() -> None:
    text = (
        HEAD
        + """
  for parallel %i: i32 in 0i32 .. 300i32:
    for parallel %j: i32 in 0i32 .. 300i32:
      %a: i32 = load @k[%i, %j]
      atomic add @y[%j], %a
"""
    )
    swapped = text.replace("for parallel %i", "for parallel %o").replace("for parallel %j", "for parallel %i")
    becomes(interchange, text, swapped.replace("for parallel %o", "for parallel %j"))


def test_they_are_the_same_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MIN_PARALLEL", 1)
    text = PAIRS.replace("300", "30")
    values = {"x": [(7 * i * i + 3) % 101 for i in range(30)], "y": list(range(30)), "k": [[0] * 30] * 30}
    assert indivisible(agrees(interchange, text, (0,), values)) == 0


@pytest.mark.parametrize("seed", range(30))
def test_random_nests(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Conditions, several updates, other writes next to them, either direction: what is left in memory is the same."""
    monkeypatch.setattr(module, "_MIN_PARALLEL", 1)
    choose = random.Random(seed)
    n, m, first = choose.randint(1, 9), choose.randint(1, 9), choose.randint(0, 3)
    lines = ["  for parallel %i: i32 in 0i32 .. NNi32:", "    %a: i32 = load @x[%i]"]
    if choose.random() < 0.3:
        lines += ["    store @z[%i], %a"]
    loop = choose.choice(["for", "for reverse", "for parallel"])
    lines += [f"    {loop} %j: i32 in {first}i32 .. {first + m}i32:"]
    lines += ["      %b: i32 = load @x[%j]", "      %c: i32 = mul %a, %b", "      %e: u1 = lt %i, %j"]
    lines += ["      %g: i32 = add %j, 5i32"]
    kinds = [
        ["atomic add @y[%j], %c"],
        ["atomic add @y[%g], %b"],
        ["atomic add @y[%i], %c"],
        ["atomic add @k[%i, %j], %c"],
        ["store @k[%j, %i], %b"],
        ["if %e:", "  atomic add @y[%j], %c", "else:", "  atomic add @y[%g], %i"],
        ["%h: i32 = if %e:", "  atomic add @y[%i], %c", "  yield %a", "else:", "  atomic add @y[%j], %i", "  yield %b"],
        [
            "%r: i32 = for %q: i32 in 0i32 .. 3i32 carrying %v: i32 = %a:",
            *["  %w: i32 = mul %v, %j", "  %u: i32 = add %w, %q", "  yield %u"],
            "atomic add @y[%j], %r",
        ],
    ]
    for kind in [kinds[0], *choose.sample(kinds[1:], choose.randint(0, 4))]:
        lines += ["      " + line for line in kind]
    if choose.random() < 0.5:
        lines += ["    atomic add @y[%i], %a"]
    text = HEAD.replace("300", "20") + "\n".join(lines).replace("NN", str(n)) + "\n"
    agrees(interchange, text, (0,), {"x": [choose.randint(-9, 9) for _ in range(20)]})


STAYING = {
    "another loop's length is known at launch only": ("300i32 carrying", "%n carrying"),
    "the inner loop is short": ("300i32 carrying", "200i32 carrying"),
    "it reads what it adds to": ("%b: i32 = load @x[%j]", "%b: i32 = load @y[%j]"),
    "another iteration changes what is added": ("atomic add @y[%i], %t", "store @x[%i], %t"),
    "it is stored, too": ("atomic add @y[%i], %t", "store @y[%i], %t"),
    "another operation is done there": ("atomic add @y[%i], %t", "atomic max @y[%i], %t"),
    "what is added has been carried": ("atomic add @y[%j], %c", "atomic add @y[%j], %d"),
    "the element is another one for each iteration": ("atomic add @y[%j], %c", "atomic add @k[%i, %j], %c"),
    "the element is one of the outer loop's": ("atomic add @y[%j], %c", "atomic add @y[%i], %c"),
    "the element is nobody's": ("atomic add @y[%j], %c", "atomic add @y[3i32], %c"),
    "the old value is used": ("atomic add @y[%j], %c", "%o: i32 = atomic add @y[%j], %c"),
    "the bounds are those of an iteration": ("%j: i32 in 0i32", "%j: i32 in %i"),
}


@pytest.mark.parametrize("why", STAYING)
def test_what_stays(why: str) -> None:
    old, new = STAYING[why]
    assert old in PAIRS
    stays(interchange, PAIRS.replace(old, new))
