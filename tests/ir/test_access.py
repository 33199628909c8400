"""The access analysis: forms, proofs, and which elements may meet."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from tests.properties.generate import generate
from tinote.compiler import pipeline
from tinote.compiler.requests import GRADIENT, PRIMAL
from tinote.config import Config
from tinote.ir.access import Access, Accesses, accesses_of, sharing_accesses
from tinote.ir.nodes import For, Op, Var
from tinote.ir.parse import parse
from tinote.ir.query import walk
from tinote.ir.ranges import Loop
from tinote.ir.text import show


def analysed(text: str) -> tuple[Accesses, list[Access]]:
    fn = parse(text)
    accesses = Accesses(fn)
    return accesses, accesses.all()


def loops(accesses: Accesses) -> list[Loop]:
    """The loops by name of their index, outer before inner."""
    return list(accesses.loops.values())


def named(text: str) -> tuple[Accesses, dict[str, Var]]:
    fn = parse(text)
    found: dict[str, Var] = {q.name: q for q in fn.region.params}
    for op in walk(fn.region):
        found.update({v.name: v for v in op.outs})
        found.update({v.name: v for r in op.regions for v in r.params})
    return Accesses(fn), found


FORMS = """
buffer @x: i32 array (?)
func f(%n: i32, %u: u8, %w: i64):
  for %i: i32 in 0i32 .. %n:
    %a: i32 = add %i, 1i32
    %b: i32 = mul %a, 2i32
    %c: i64 = cast %i
    %d: i64 = mul %c, 12i64
    %e: i64 = sub %d, 4i64
    %g: i32 = cast %u
    %h: i32 = shl %g, 3i32
    %k: i32 = cast %w
    %l: i32 = add %n, 1i32
    %m: i32 = sub 5i32, %g
    %o: i32 = mul %i, %g
    %p: i32 = extent @x, 0
    %q: i32 = extent @x, 0
"""


def test_forms_are_exact_sums() -> None:
    accesses, v = named(FORMS)
    shown = {name: repr(accesses.affine(v[name])) for name in "abcdeghklmoq"}
    assert shown == {
        "a": "%i + 1",
        "b": "%b",  # 2i + 2 may wrap: %i goes up to nearly 2**31
        "c": "%i",
        "d": "12*%i",
        "e": "12*%i + -4",
        "g": "%u",
        "h": "8*%u",
        "k": "%k",  # may wrap
        "l": "%l",  # may wrap
        "m": "-1*%u + 5",
        "o": "%o",
        "q": "%p",  # the same extent
    }


def test_intervals() -> None:
    accesses, v = named(
        """
        func f(%n: i32, %u: u8):
          for %i: i32 in 2i32 .. 10i32:
            %a: i32 = mod %n, 8i32
            %b: i32 = and %n, 12i32
            %c: i32 = min %n, 5i32
            %d: i32 = max %c, 0i32
            %e: i32 = floordiv %i, 4i32
            %g: i32 = sub 3i32, %i
            %h: i32 = abs %g
            %k: i32 = raw_mod %n, 8i32
            %t: u1 = lt %n, 0i32
            %l: i32 = select %t, 4i32, %i
            %m: i32 = shr %i, 1i32
            %o: i32 = mul %i, %g
            %p: i32 = mul %n, 2i32
        """
    )
    assert {name: accesses.interval(v[name]) for name in "iabcdeghklmo"} == {
        "i": (2, 9),
        "a": (0, 7),
        "b": (0, 12),
        "c": (-(2**31), 5),
        "d": (0, 5),
        "e": (0, 2),
        "g": (-6, 1),
        "h": (0, 6),
        "k": (-7, 7),
        "l": (2, 9),
        "m": (1, 4),
        "o": (-54, 9),
    }
    assert accesses.interval(v["p"]) == (-(2**31), 2**31 - 1)


IN_RANGE = {
    "the index of a loop over the extent": """
        for %i: i32 in 0i32 .. 64i32:
          %a: f32 = load @x[%i]
    """,
    "a loop over the extent of an array": """
        %m: i32 = extent @p, 0
        for %i: i32 in 0i32 .. %m:
          %a: f32 = load @p[%i]
    """,
    "a stencil on the inner points": """
        for %i: i32 in 1i32 .. 63i32:
          %j: i32 = add %i, 1i32
          %a: f32 = load @x[%j]
    """,
    "a stencil in an array": """
        %m: i32 = extent @p, 0
        %h: i32 = sub %m, 1i32
        for %i: i32 in 1i32 .. %h:
          %j: i32 = add %i, 1i32
          %k: i32 = sub %i, 1i32
          %a: f32 = load @p[%j]
          %b: f32 = load @p[%k]
    """,
    "a triangle": """
        for %i: i32 in 0i32 .. 64i32:
          for %j: i32 in 0i32 .. %i:
            %k: i32 = sub %i, %j
            %a: f32 = load @x[%k]
            %l: i32 = sub %k, 1i32
            %b: f32 = load @x[%l]
    """,
    "a guard": """
        for %i: i32 in 0i32 .. 64i32:
          %t: u1 = gt %i, 0i32
          if %t:
            %j: i32 = sub %i, 1i32
            %a: f32 = load @x[%j]
    """,
    "a guard of two sides": """
        %t: u1 = ge %n, 0i32
        %u: u1 = lt %n, 64i32
        %v: u1 = and %t, %u
        if %v:
          %a: f32 = load @x[%n]
    """,
    "the other side of a guard": """
        %t: u1 = lt %n, 0i32
        %u: u1 = ge %n, 64i32
        %v: u1 = or %t, %u
        if %v:
          pass
        else:
          %a: f32 = load @x[%n]
    """,
    "a check before": """
        %t: u1 = ge %n, 0i32
        check assert "n" %t
        %u: u1 = lt %n, 64i32
        check assert "n" %u
        %a: f32 = load @x[%n]
    """,
    "a clamp": """
        %b: i32 = min %n, 63i32
        %c: i32 = max %b, 0i32
        %a: f32 = load @x[%c]
    """,
    "a clamp to an array": """
        %m: i32 = extent @p, 0
        %t: u1 = gt %m, 0i32
        if %t:
          %h: i32 = sub %m, 1i32
          %b: i32 = min %n, %h
          %c: i32 = max %b, 0i32
          %a: f32 = load @p[%c]
    """,
    "a remainder": """
        %b: i32 = mod %n, 64i32
        %a: f32 = load @x[%b]
    """,
    "a remainder in an array": """
        %m: i32 = extent @p, 0
        for %i: i32 in 0i32 .. %m:
          %j: i32 = add %i, 1i32
          %b: i32 = mod %j, %m
          %a: f32 = load @p[%b]
    """,
    "an index taken apart": """
        for %i: i32 in 0i32 .. 128i32:
          %b: i32 = floordiv %i, 2i32
          %c: i32 = mod %i, 2i32
          %a: f32 = load @y[%b, %c]
    """,
    "an index put together": """
        for %i: i32 in 0i32 .. 8i32:
          for %j: i32 in 0i32 .. 8i32:
            %b: i32 = mul %i, 8i32
            %c: i32 = add %b, %j
            %a: f32 = load @x[%c]
    """,
    "a choice": """
        for %i: i32 in 0i32 .. 64i32:
          %t: u1 = gt %i, 0i32
          %j: i32 = sub %i, 1i32
          %b: i32 = select %t, %j, 63i32
          %a: f32 = load @x[%b]
    """,
    "a counter of a while": """
        %s: i32 = while carrying %i: i32 = 0i32:
          %t: u1 = lt %i, 64i32
          yield %t
        do %j: i32:
          %a: f32 = load @x[%j]
          %k: i32 = add %j, 1i32
          yield %k
    """,
    "a counter of a while that stops early": """
        %s: i32, %go: u1 = while carrying %i: i32 = 0i32, %on: u1 = true:
          %t: u1 = lt %i, 64i32
          %u: u1 = and %t, %on
          yield %u
        do %j: i32, %still: u1:
          %a: f32 = load @x[%j]
          %v: u1 = lt %a, 0.5f32
          %k: i32 = if %v:
            yield %j
          else:
            %l: i32 = add %j, 1i32
            yield %l
          yield %k, %v
    """,
    "a bound by a parameter": """
        %h: i32 = min %n, 64i32
        for reverse %i: i32 in 0i32 .. %h:
          %a: f32 = load @x[%i]
    """,
}

HEAD = """\
buffer @x: f32 field (64)
buffer @y: f32 field (64, 2)
buffer @p: f32 array (?)
func f(%n: i32, %k0: i64):
"""


def body(code: str) -> str:
    lines = [line[6:] for line in code.splitlines() if line.strip()]
    return HEAD + "\n".join(lines) + "\n"


@pytest.mark.parametrize("code", IN_RANGE.values(), ids=IN_RANGE.keys())
def test_in_range(code: str) -> None:
    accesses, found = analysed(body(code))
    assert found and all(accesses.surely_in_range(a) for a in found)


OUT_OF_RANGE = {
    "past the end": ("for %i: i32 in 0i32 .. 64i32:\n  %j: i32 = add %i, 1i32\n  %a: f32 = load @x[%j]", (True, False)),
    "before the start": ("for %i: i32 in 0i32 .. 64i32:\n  %j: i32 = sub %i, 1i32\n  %a: f32 = load @x[%j]", (False, True)),  # noqa: E501
    "a parameter": ("%a: f32 = load @x[%n]", (False, False)),
    "a bound by a parameter": ("for %i: i32 in 0i32 .. %n:\n  %a: f32 = load @x[%i]", (True, False)),
    "a loop that starts anywhere": ("for %i: i32 in %n .. 64i32:\n  %a: f32 = load @x[%i]", (False, True)),
    "the wrong guard": (
        "%t: u1 = le %n, 64i32\nif %t:\n  %a: f32 = load @x[%n]",
        (False, False),
    ),
    "a guard on the other side": ("%t: u1 = lt %n, 64i32\nif %t:\n  pass\nelse:\n  %a: f32 = load @x[%n]", (True, False)),  # noqa: E501
    "after a guard": ("%t: u1 = lt %n, 64i32\nif %t:\n  pass\n%a: f32 = load @x[%n]", (False, False)),
    "a remainder that truncates": ("%j: i32 = raw_mod %n, 64i32\n%a: f32 = load @x[%j]", (False, True)),
    "what wraps": (
        "%b: i32 = mul %n, 2i32\n%c: i32 = and %b, 63i32\n%d: i32 = add %n, %n\n%a: f32 = load @x[%d]",
        (False, False),
    ),
    "a remainder by what may be negative": ("%j: i32 = mod 5i32, %n\n%a: f32 = load @x[%j]", (False, False)),
    "an array that nobody measured": ("%a: f32 = load @p[0i32]", (True, False)),
    "a counter that runs down": (
        "%s: i32 = while carrying %i: i32 = 63i32:\n  %t: u1 = ne %i, -5i32\n  yield %t\ndo %j: i32:\n"
        "  %a: f32 = load @x[%j]\n  %k: i32 = sub %j, 1i32\n  yield %k",
        (False, False),  # the subtraction may wrap as far as anybody can tell
    ),
}  # fmt: skip


@pytest.mark.parametrize(("code", "wanted"), OUT_OF_RANGE.values(), ids=OUT_OF_RANGE.keys())
def test_not_proved_in_range(code: str, wanted: tuple[bool, bool]) -> None:
    lines = "\n".join(f"  {line}" for line in code.splitlines())
    accesses, (access,) = analysed(f"{HEAD}{lines}\n")
    assert accesses.in_range(access, 0) == wanted


def test_invariant_and_unique() -> None:
    accesses, found = analysed(
        HEAD
        + """
  for parallel %i: i32 in 0i32 .. 64i32:
    for %j: i32 in 0i32 .. 2i32:
      %a: f32 = load @x[%i]
      %b: f32 = load @x[%j]
      %c: f32 = load @y[%i, %j]
      %d: i32 = mul %i, 2i32
      %e: i32 = add %d, %j
      %g: f32 = load @x[%e]
      %h: i32 = add %i, %j
      %k: f32 = load @x[%h]
      %l: f32 = load @x[%n]
      %m: i32 = mod %i, 8i32
      %o: f32 = load @x[%m]
      %q: i32 = sub 63i32, %i
      %r: f32 = load @x[%q]
"""
    )
    outer, inner = loops(accesses)
    shown = [repr(a).split("[")[1][:-2] for a in found]
    facts = [
        (
            accesses.invariant_in(a, outer),
            accesses.invariant_in(a, inner),
            not accesses.may_meet_across(a, a, outer),
            not accesses.may_meet_across(a, a, inner),
        )
        for a in found
    ]
    assert dict(zip(shown, facts, strict=True)) == {
        "%i": (False, True, True, False),
        "%j": (False, False, False, True),
        "%i, %j": (False, False, True, True),
        "2*%i + %j": (False, False, True, True),
        "%i + %j": (False, False, False, True),
        "%n": (True, True, False, False),
        "%m": (False, True, False, False),
        "-1*%i + 63": (False, True, True, False),
    }


STENCIL = (
    HEAD
    + """
  for %i: i32 in 1i32 .. 63i32:
    %p: i32 = sub %i, 1i32
    %q: i32 = add %i, 1i32
    %a: f32 = load @x[%p]
    %b: f32 = load @x[%q]
    store @x[%i], %a
    %c: f32 = load @y[%i, 0i32]
    store @y[%i, 1i32], %c
"""
)


@pytest.mark.parametrize("order", ["for %i", "for reverse %i"])
def test_which_turn_may_see_what_was_stored(order: str) -> None:
    accesses, (before, after, here, left, right) = analysed(STENCIL.replace("for %i", order))
    (loop,) = loops(accesses)
    later = (accesses.may_meet_later(here, before, loop), accesses.may_meet_later(here, after, loop))
    assert later == ((True, False) if order == "for %i" else (False, True))
    assert accesses.may_meet_across(here, before, loop) and accesses.may_meet_across(here, after, loop)
    assert not accesses.may_meet_within(here, before, loop)
    assert not accesses.may_meet_within(before, after, loop)
    assert accesses.may_meet_within(here, here, loop)
    assert accesses.may_meet(here, before) and not accesses.may_meet(left, right)
    assert not accesses.may_meet(here, left)


def test_red_and_black_points_never_meet() -> None:
    accesses, (red, black, other) = analysed(
        HEAD
        + """
  for parallel %i: i32 in 0i32 .. 31i32:
    %r: i32 = mul %i, 2i32
    %b: i32 = add %r, 1i32
    %q: i32 = add %r, 4i32
    store @x[%r], 0.0f32
    store @x[%b], 0.0f32
    store @x[%q], 0.0f32
"""
    )
    assert not accesses.may_meet(red, black) and accesses.may_meet(red, other)
    (loop,) = loops(accesses)
    assert not accesses.may_meet_within(red, other, loop)


def test_conditions_keep_indices_apart() -> None:
    accesses, (first, second, third, fourth) = analysed(
        HEAD
        + """
  for parallel %i: i32 in 0i32 .. 64i32:
    for %j: i32 in 0i32 .. %i:
      %a: f32 = load @x[%i]
      store @x[%j], %a
    for %k: i32 in 0i32 .. 64i32:
      %t: u1 = ne %i, %k
      if %t:
        %b: f32 = load @x[%i]
        store @x[%k], %b
"""
    )
    _, triangle, square = loops(accesses)
    assert not accesses.may_meet_within(first, second, triangle)
    assert not accesses.may_meet_within(third, fourth, square)
    assert accesses.may_meet_within(first, fourth, loops(accesses)[0])


def test_arrays_may_share_memory_and_fields_do_not() -> None:
    accesses, (x, y, p, q) = analysed(
        """
        buffer @x: f32 field (8)
        buffer @y: f32 field (8)
        buffer @p: f32 array (8)
        buffer @q: f32 array (8)
        func f():
          store @x[0i32], 1.0f32
          store @y[0i32], 1.0f32
          store @p[1i32], 1.0f32
          store @q[2i32], 1.0f32
        """
    )
    assert not accesses.may_meet(x, y)
    assert accesses.may_meet(x, p) and accesses.may_meet(p, q)


def test_arrays_that_a_launch_keeps_apart_do_not_meet() -> None:
    accesses, (x, p, q, again) = analysed(
        """
        buffer @x: f32 field (8)
        buffer @p: f32 array (8)
        buffer @q: f32 array (8) noalias
        func f():
          store @x[0i32], 1.0f32
          store @p[1i32], 1.0f32
          store @q[2i32], 1.0f32
          store @q[2i32], 2.0f32
        """
    )
    assert accesses.may_meet(x, p) and accesses.may_meet(q, again)
    assert not accesses.may_meet(x, q) and not accesses.may_meet(p, q)


def test_flat_views_need_a_whole_element_between_them() -> None:
    accesses, found = analysed(
        """
        buffer @x: f32 field (8)
        buffer @v: f32 field (?) flat @x
        func f(%n: i64):
          for parallel %i: i64 in 0i64 .. 8i64:
            %a: i64 = mul %i, 4i64
            store @v[%a], 1.0f32
            %b: i64 = mul %i, 2i64
            store @v[%b], 1.0f32
        """
    )
    (loop,) = loops(accesses)
    assert [not accesses.may_meet_across(a, a, loop) for a in found] == [True, False]


def test_every_answer_comes_from_the_same_walk() -> None:
    accesses, found = analysed(STENCIL)
    (loop,) = loops(accesses)
    assert accesses.within(loop) == found and found[0].loops == (loop,)
    assert isinstance(loop.op, For) and loop.index is loop.op.index
    assert [a.reads for a in found] == [True, True, False, True, False]
    assert [a.writes for a in found] == [False, False, True, False, True]
    ops: list[Op] = [a.op for a in found]
    assert [accesses.of(op) for op in ops] == found


def test_one_analysis_serves_those_who_ask_about_the_same_function() -> None:
    fn, other = parse(FORMS), parse(FORMS)
    with sharing_accesses():
        first = accesses_of(fn)
        assert accesses_of(fn) is first
        assert accesses_of(other) is not first
        assert accesses_of(fn) is not first  # the latest alone is kept
    assert accesses_of(fn) is not accesses_of(fn)


def test_what_has_been_asked_before_changes_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled() -> list[str]:
        requests = [(seed, steps) for seed in range(30) for steps in map(pipeline.steps_for, (PRIMAL, GRADIENT))]
        return [show(pipeline.run_pipeline(generate(seed).function, steps, Config())[0]) for seed, steps in requests]

    together = compiled()
    monkeypatch.setattr(pipeline, "sharing_accesses", nullcontext)
    assert compiled() == together
