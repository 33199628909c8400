"""Iterations of a parallel task that go through their inner loop together."""

from __future__ import annotations

import random

import pytest

from tests.passes.running import agrees, results
from tests.passes.support import becomes, stays
from tinote.compiler.passes.loops.unroll_and_jam import unroll_and_jam
from tinote.compiler.passes.loops.unroll_partially import unroll_partially
from tinote.ir.nodes import For, Function, Load
from tinote.ir.parse import parse
from tinote.ir.query import walk
from tinote.ir.verify import Form, verify
from tinote.remarks import Remark

HEAD = """
buffer @x: i32 field (64)
buffer @y: i32 field (64)
buffer @z: i32 field (64)
buffer @e: i32 field ()
func f(%n: i32):
"""
PAIRS = (
    HEAD
    + """
  task parallel "t" %i: i32 in 0i32 .. 64i32:
    %a: i32 = load @x[%i]
    %t: i32 = for %j: i32 in 0i32 .. 40i32 carrying %s: i32 = %i:
      %q: i32 = load @x[%j]
      %p: i32 = mul %q, 3i32
      %d: i32 = mul %a, %p
      %v: i32 = sub %d, %s
      yield %v
    store @y[%i], %t
    atomic add @e[], %t
"""
)


def jam(fn: Function) -> Function:
    return unroll_and_jam(fn, 32)


def test_pairs() -> None:
    after = (
        HEAD
        + """
  task parallel "t" %g: i32 in 0i32 .. 32i32:
    %h: i32 = add %g, 32i32
    %a: i32 = load @x[%g]
    %b: i32 = load @x[%h]
    %t: i32, %u: i32 = for %j: i32 in 0i32 .. 40i32 carrying %s: i32 = %g, %r: i32 = %h:
      %q: i32 = load @x[%j]
      %p: i32 = mul %q, 3i32
      %d: i32 = mul %a, %p
      %e: i32 = mul %b, %p
      %v: i32 = sub %d, %s
      %w: i32 = sub %e, %r
      yield %v, %w
    store @y[%g], %t
    atomic add @e[], %t
    store @y[%h], %u
    atomic add @e[], %u
"""
    )
    becomes(jam, PAIRS, after, Form.TASKS)


CHANGES = {
    "as it is": {},
    "from another index on": {"0i32 .. 64i32": "8i32 .. 56i32", "store @y[%i]": "store @z[%i]"},
    "backwards": {"= for %j": "= for reverse %j"},
    "a length of the launch's": {"0i32 .. 40i32": "0i32 .. %n"},
    "a number of the launch's": {"%p: i32 = mul %q, 3i32": "%p: i32 = mul %q, %n"},
    "what the task writes is loaded in the loop": {
        "%p: i32 = mul %q, 3i32": "%w: i32 = load @y[%i]\n      %p: i32 = mul %q, %w",
        "%a: i32 = load @x[%i]": "%a: i32 = load @x[%i]\n    store @y[%i], %a",
    },
    "a check": {
        "%p: i32 = mul %q, 3i32": '%w: u1 = lt %q, 1000i32\n      check assert "" %w\n      %p: i32 = mul %q, 3i32'
    },
}


@pytest.mark.parametrize("together", [2, 4, 8])
@pytest.mark.parametrize("change", CHANGES)
def test_it_does_the_same(change: str, together: int) -> None:
    text = PAIRS
    for old, new in CHANGES[change].items():
        assert old in text
        text = text.replace(old, new)
    contents = {"x": [(7 * k) % 19 - 9 for k in range(64)]}
    count = 48 if change == "from another index on" else 64
    new = agrees(lambda fn: unroll_and_jam(fn, count // together), text, (40,), contents, Form.TASKS)
    (loop,) = [op for op in walk(new.region) if isinstance(op, For)]
    assert len(loop.carried) == together
    assert sum(isinstance(op, Load) and op.buffer.name == "x" for op in loop.body.body) == 1


STAYING = {
    "62 iterations are less than two for each of the 32 that the device runs at once": (
        "0i32 .. 64i32",
        "0i32 .. 62i32",
    ),
    "its number of iterations is odd": ("0i32 .. 64i32", "0i32 .. 65i32"),
    "its number of iterations is known at run time only": ("0i32 .. 64i32", "0i32 .. %n"),
    "its iterations run in order": ('task parallel "t"', 'task parallel "t" ordered'),
    "its inner loop has fewer than 16 iterations": ("0i32 .. 40i32", "0i32 .. 15i32"),
    "the bounds of its inner loop differ between iterations": ("0i32 .. 40i32", "0i32 .. %i"),
    "its inner loop loads nothing that iterations have in common": (
        "%q: i32 = load @x[%j]",
        "%o: i32 = max %j, %i\n      %q: i32 = load @x[%o]",
    ),
    "its inner loop loads nothing that iterations have in common ": ("store @y[%i], %t", "store @x[%i], %t"),
    "its inner loop has a branch, a loop or a store": (
        "%d: i32 = mul %a, %p",
        "%d: i32 = mul %a, %p\n      store @z[%j], %d",
    ),
    "outside of its inner loop it has a branch or a call": (
        "atomic add @e[], %t",
        "%c: u1 = lt %t, 5i32\n    if %c:\n      atomic add @e[], %t",
    ),
    "it has more than one inner loop": (
        "atomic add @e[], %t",
        "for %k: i32 in 0i32 .. 40i32:\n      atomic add @e[], %k",
    ),
    "its inner loop carries too many values": (
        "carrying %s: i32 = %i:",
        f"carrying %s: i32 = %i, {', '.join(f'%s{k}: i32 = %i' for k in range(16))}:",
    ),
    "an iteration has more than 64 operations": (
        "%d: i32 = mul %a, %p",
        "%d: i32 = mul %a, %p\n" + "".join(f"      %d{k}: i32 = add %d, {k}i32\n" for k in range(64)),
    ),
}


@pytest.mark.parametrize("why", STAYING)
def test_what_stays_says_why(why: str) -> None:
    old, new = STAYING[why]
    assert old in PAIRS
    text = PAIRS.replace(old, new)
    if "carries" in why:
        outs = ", ".join(f"%t{k}: i32" for k in range(16))
        text = text.replace("%t: i32 =", f"%t: i32, {outs} =").replace("yield %v", "yield %v" + ", %v" * 16)
    stays(jam, text, Form.TASKS)
    said: list[Remark] = []
    unroll_and_jam(parse(text), 32, said.append)
    assert [(one.step, one.text, one.done) for one in said] == [("unroll_and_jam", why.strip(), False)]


def test_what_is_joined_says_so_at_the_tasks_line() -> None:
    said: list[Remark] = []
    fn = parse(PAIRS)
    unroll_and_jam(fn, 8, said.append)
    (task,) = fn.region.body
    assert said == [Remark("unroll_and_jam", task.loc, "8 iterations go through the inner loop together", done=True)]


def random_pairs(seed: int) -> str:
    """A task with an inner loop of random arithmetic on what the iteration, the inner loop and both have."""
    chance = random.Random(seed)
    lines: list[str] = []

    def compute(known: list[str], count: int, indent: str, prefix: str) -> list[str]:
        for k in range(count):
            name = f"%{prefix}{k}"
            if chance.random() < 0.3:
                at = chance.choice([one for one in known if one in ("%i", "%j")] or ["0i32"])
                lines.append(f"{indent}{name}: i32 = load @{chance.choice('xz')}[{at}]")
            else:
                one, other = [chance.choice([*known, "3i32", "%n"]) for _ in range(2)]
                lines.append(
                    f"{indent}{name}: i32 = {chance.choice(['add', 'sub', 'mul', 'min', 'xor'])} {one}, {other}"
                )
            known = [*known, name]
        return known

    before = compute(["%i"], chance.randint(0, 4), "    ", "a")
    if chance.random() < 0.3:
        lines.append(f"    store @y[%i], {chance.choice(before)}")
    count = chance.randint(1, 3)
    carried = [f"%s{k}" for k in range(count)]
    initial = ", ".join(f"{one}: i32 = {chance.choice([*before, '0i32'])}" for one in carried)
    outs = ", ".join(f"%t{k}: i32" for k in range(count))
    low = chance.choice(["0i32", "-2i32", "%n"])
    length = "" if low == "%n" else chance.choice(["reverse ", ""])
    lines.append(f"    {outs} = for {length}%k: i32 in {low} .. 19i32 carrying {initial}:")
    lines.append("      %j: i32 = max %k, 0i32")
    inside = compute([*before, "%j", *carried], chance.randint(2, 8), "      ", "b")
    if chance.random() < 0.3:
        lines.append(f"      %w: i32 = load @y[{chance.choice(['%i', '%j'])}]")
        inside.append("%w")
    lines.append(f"      yield {', '.join(chance.choice(inside[-5:]) for _ in carried)}")
    after = compute([*before, *[f"%t{k}" for k in range(count)]], chance.randint(0, 3), "    ", "c")
    lines.append(f"    store @y[%i], {chance.choice(after[-2:])}")
    lines.append(f"    atomic add @e[], {chance.choice(after[-3:])}")
    return HEAD + '  task parallel "t" %i: i32 in 0i32 .. 64i32:\n' + "\n".join(lines) + "\n"


def test_random_pairs_do_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinote.compiler.passes.loops.unroll_partially._MIN_ITERATIONS", 4)
    joined = 0
    contents = {"x": [(7 * k) % 19 - 9 for k in range(64)], "z": [(5 * k) % 23 - 4 for k in range(64)]}
    for seed in range(50):
        text = random_pairs(seed)
        fn = parse(text)
        verify(fn, Form.TASKS)
        new = unroll_and_jam(fn, (32, 16, 8)[seed % 3])
        joined += new is not fn
        # What others write is read at any time: only what has one order is compared.
        if "load @y[%j]" in text:
            continue
        for made in (new, unroll_partially(new)):
            verify(made, Form.TASKS)
            assert results(made, (3,), contents) == results(fn, (3,), contents), f"seed {seed}\n{text}"
    assert joined > 20
