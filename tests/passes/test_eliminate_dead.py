"""What nobody needs goes; what has an effect stays."""

from __future__ import annotations

import pytest

from tests.passes.support import becomes, stays
from tests.properties.generate import generate
from tinote.compiler.passes.simplification.eliminate_dead import eliminate_dead
from tinote.compiler.pipeline import run_pipeline, steps_for
from tinote.compiler.requests import GRADIENT, PRIMAL
from tinote.config import Config
from tinote.ir import prune as pruning
from tinote.ir.nodes import Function, While
from tinote.ir.parse import parse
from tinote.ir.prune import prune


def test_unused_operations_go_and_effects_stay() -> None:
    becomes(
        eliminate_dead,
        """
        buffer @x: f32 field (8)
        func f(%a: f32, %i: i32):
          %b: f32 = exp %a
          %c: f32 = mul %b, %b
          %d: f32 = load @x[%i]
          %e: f32 = atomic add @x[%i], %a
          %g: f32 = sin %a
          store @x[0i32], %g
          print "hello"
          return %a
        """,
        """
        buffer @x: f32 field (8)
        func f(%a: f32, %i: i32):
          atomic add @x[%i], %a
          %g: f32 = sin %a
          store @x[0i32], %g
          print "hello"
          return %a
        """,
    )


def test_carried_values_that_only_feed_themselves_go() -> None:
    becomes(
        eliminate_dead,
        """
        buffer @z: f32 field ()
        func f(%n: i32, %x: f32, %y: f32):
          %a: f32 = exp %x
          %r: f32, %s: f32, %u: f32 = for %i: i32 in 0i32 .. %n carrying %q: f32 = %a, %t: f32 = 0.0f32, %v: f32 = %y:
            %b: f32 = add %q, %x
            %c: f32 = add %t, %v
            %d: f32 = mul %v, %y
            yield %b, %c, %d
          store @z[], %s
        """,
        """
        buffer @z: f32 field ()
        func f(%n: i32, %x: f32, %y: f32):
          %s: f32, %u: f32 = for %i: i32 in 0i32 .. %n carrying %t: f32 = 0.0f32, %v: f32 = %y:
            %c: f32 = add %t, %v
            %d: f32 = mul %v, %y
            yield %c, %d
          store @z[], %s
        """,
    )


def test_outs_of_branches_and_nested_loops() -> None:
    becomes(
        eliminate_dead,
        """
        buffer @z: f32 field ()
        func f(%n: i32, %c: u1, %y: f32):
          %a: f32, %b: f32 = if %c:
            %d: f32 = exp %y
            %e: f32 = sin %y
            yield %d, %e
          else:
            %g: f32, %h: f32 = for %i: i32 in 0i32 .. %n carrying %k: f32 = %y, %l: f32 = %y:
              %m: f32 = mul %k, %k
              %o: f32 = mul %l, %l
              yield %m, %o
            yield %g, %h
          if %c:
            %p: f32 = cos %y
          return %b
        """,
        """
        buffer @z: f32 field ()
        func f(%n: i32, %c: u1, %y: f32):
          %b: f32 = if %c:
            %e: f32 = sin %y
            yield %e
          else:
            %h: f32 = for %i: i32 in 0i32 .. %n carrying %l: f32 = %y:
              %o: f32 = mul %l, %l
              yield %o
            yield %h
          return %b
        """,
    )


ENDLESS = """
buffer @x: f32 field (8)
func f(%n: i32):
  %a: i32, %b: i32 = while carrying %i: i32 = 0i32, %j: i32 = 0i32:
    %v: f32 = load @x[0i32]
    %t: u1 = lt %v, 1.0f32
    yield %t
  do %k: i32, %l: i32:
    %m: i32 = add %k, 1i32
    %o: i32 = add %l, 1i32
    yield %m, %o
  return %a
"""


def test_a_while_stays_but_carries_less() -> None:
    becomes(
        eliminate_dead,
        ENDLESS.replace("return %a", "return %n"),
        """
        buffer @x: f32 field (8)
        func f(%n: i32):
          while:
            %v: f32 = load @x[0i32]
            %t: u1 = lt %v, 1.0f32
            yield %t
          do:
            pass
          return %n
        """,
    )
    becomes(
        eliminate_dead,
        ENDLESS,
        """
        buffer @x: f32 field (8)
        func f(%n: i32):
          %a: i32 = while carrying %i: i32 = 0i32:
            %v: f32 = load @x[0i32]
            %t: u1 = lt %v, 1.0f32
            yield %t
          do %k: i32:
            %m: i32 = add %k, 1i32
            yield %m
          return %a
        """,
    )


def test_pruning_drops_a_while_whose_values_nobody_needs() -> None:
    region = parse(ENDLESS.replace("return %a", "return %n")).region
    assert not any(isinstance(op, While) for op in prune(region).body)
    needed = next(op for op in region.body if isinstance(op, While)).outs[1]
    assert [len(op.outs) for op in prune(region, (needed,)).body] == [1]


def test_temporaries_that_nobody_reads() -> None:
    becomes(
        eliminate_dead,
        """
        buffer @t: f32 temporary ()
        buffer @u: f32 temporary ()
        buffer @x: f32 field ()
        func f(%a: f32):
          %b: f32 = exp %a
          store @t[], %b
          atomic add @t[], %b
          store @u[], %a
          %c: f32 = load @u[]
          store @x[], %c
        """,
        """
        buffer @u: f32 temporary ()
        buffer @x: f32 field ()
        func f(%a: f32):
          store @u[], %a
          %c: f32 = load @u[]
          store @x[], %c
        """,
    )


def test_what_is_needed_stays() -> None:
    stays(
        eliminate_dead,
        """
        buffer @x: f32 field (8)
        func f(%n: i32):
          %s: f32 = for %i: i32 in 0i32 .. %n carrying %t: f32 = 0.0f32:
            %a: f32 = load @x[%i]
            %b: f32 = add %t, %a
            yield %b
          %o: f32 = atomic add @x[0i32], %s
          return %o
        """,
    )


def test_what_is_used_throughout_is_found_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is plainly without dead code is what marking and sweeping leave as it is, at every stage."""
    stages: list[Function] = []
    for seed in range(25):
        for request in (PRIMAL, GRADIENT):
            steps = steps_for(request, lower=request is PRIMAL)
            run_pipeline(generate(seed).function, steps, Config(), lambda snapshot: stages.append(snapshot.after))
    whole = [fn for fn in dict.fromkeys(stages) if pruning._is_all_used(fn.region, ())]
    assert 0.2 * len(set(stages)) < len(whole) < len(set(stages))
    monkeypatch.setattr(pruning, "_is_all_used", lambda region, live: False)
    for fn in whole:
        assert prune(fn.region, keep_while=True) is fn.region
        assert prune(fn.region) is fn.region
