"""Updates of elements that a loop does not change become accumulators."""

from __future__ import annotations

import functools

import pytest

from tests.passes.running import agrees
from tests.passes.support import becomes, stays
from tinote.compiler.passes.simplification.eliminate_dead import eliminate_dead
from tinote.compiler.passes.updates.accumulate import accumulate
from tinote.ir.nodes import Atomic, For, Function, While
from tinote.ir.parse import parse
from tinote.ir.query import walk
from tinote.ir.verify import Form, verify

fast = functools.partial(accumulate, fast_math=True)


def updates_inside_loops(fn: Function) -> int:
    """How many updates stand in a loop other than the outermost one."""
    outer = [op for op in fn.region.body if isinstance(op, For)]
    inner = [loop for top in outer for loop in walk(top.body) if isinstance(loop, For | While)]
    return sum(isinstance(op, Atomic) for loop in inner for r in loop.regions for op in walk(r))


GRAVITY = """
buffer @x: f64 field (8)
buffer @x.grad: f64 field (8)
func gradient():
  for parallel %i: i32 in 0i32 .. 8i32:
    %a: f64 = load @x[%i]
    for parallel %j: i32 in 0i32 .. 8i32:
      %b: f64 = load @x[%j]
      %c: f64 = sub %a, %b
      %n: f64 = neg %c
      atomic add @x.grad[%j], %n
      atomic add @x.grad[%i], %c
"""


def test_the_inner_loop_sums_up_what_goes_to_the_outer_index() -> None:
    becomes(
        accumulate,
        GRAVITY,
        """
        buffer @x: f64 field (8)
        buffer @x.grad: f64 field (8)
        func gradient():
          for parallel %i: i32 in 0i32 .. 8i32:
            %a: f64 = load @x[%i]
            %t: f64 = for %j: i32 in 0i32 .. 8i32 carrying %s: f64 = 0.0f64:
              %b: f64 = load @x[%j]
              %c: f64 = sub %a, %b
              %n: f64 = neg %c
              atomic add @x.grad[%j], %n
              %u: f64 = add %s, %c
              yield %u
            atomic add @x.grad[%i], %t
        """,
    )


def test_a_sum_climbs_out_of_a_whole_nest_but_not_out_of_the_outermost_loop() -> None:
    becomes(
        accumulate,
        """
        buffer @x: f64 field (8)
        buffer @U: f64 field ()
        func f():
          for parallel %i: i32 in 0i32 .. 8i32:
            for parallel %j: i32 in 0i32 .. 8i32:
              for parallel %k: i32 in 0i32 .. 8i32:
                %b: f64 = load @x[%k]
                atomic add @U[], %b
        """,
        """
        buffer @x: f64 field (8)
        buffer @U: f64 field ()
        func f():
          for parallel %i: i32 in 0i32 .. 8i32:
            %p: f64 = for %j: i32 in 0i32 .. 8i32 carrying %q: f64 = 0.0f64:
              %t: f64 = for %k: i32 in 0i32 .. 8i32 carrying %s: f64 = 0.0f64:
                %b: f64 = load @x[%k]
                %u: f64 = add %s, %b
                yield %u
              %v: f64 = add %q, %t
              yield %v
            atomic add @U[], %p
        """,
    )


def test_an_update_in_an_if_contributes_nothing_when_it_is_not_taken() -> None:
    becomes(
        accumulate,
        """
        buffer @x: i32 field (8)
        buffer @n: i32 field ()
        func f(%m: i32):
          for %j: i32 in 0i32 .. 8i32:
            %b: i32 = load @x[%j]
            %c: u1 = lt %b, %m
            if %c:
              %d: i32 = mul %b, %b
              atomic add @n[], %d
            else:
              store @x[%j], 0i32
        """,
        """
        buffer @x: i32 field (8)
        buffer @n: i32 field ()
        func f(%m: i32):
          %t: i32 = for %j: i32 in 0i32 .. 8i32 carrying %s: i32 = 0i32:
            %b: i32 = load @x[%j]
            %c: u1 = lt %b, %m
            %v: i32 = if %c:
              %d: i32 = mul %b, %b
              yield %d
            else:
              store @x[%j], 0i32
              yield 0i32
            %u: i32 = add %s, %v
            yield %u
          atomic add @n[], %t
        """,
    )


SERIAL = """
buffer @x: f32 field (8)
buffer @U: f32 field ()
func f(%n: i32):
  for %j: i32 in 0i32 .. %n:
    %b: f32 = load @x[%j]
    atomic add @U[], %b
"""


def test_a_serial_sum_of_floats_is_only_reordered_with_fast_math() -> None:
    stays(accumulate, SERIAL)
    becomes(
        fast,
        SERIAL,
        """
        buffer @x: f32 field (8)
        buffer @U: f32 field ()
        func f(%n: i32):
          %t: f32 = for %j: i32 in 0i32 .. %n carrying %s: f32 = 0.0f32:
            %b: f32 = load @x[%j]
            %u: f32 = add %s, %b
            yield %u
          atomic add @U[], %t
        """,
    )


def test_an_element_that_may_not_exist_is_only_touched_if_the_loop_would() -> None:
    """When no iteration happens, `%k` may be out of range: nobody has checked it."""
    becomes(
        accumulate,
        """
        buffer @x: i32 field (8)
        func f(%n: i32, %k: i32):
          for %j: i32 in 0i32 .. %n:
            atomic add @x[%k], %j
        """,
        """
        buffer @x: i32 field (8)
        func f(%n: i32, %k: i32):
          %t: i32 = for %j: i32 in 0i32 .. %n carrying %s: i32 = 0i32:
            %u: i32 = add %s, %j
            yield %u
          %c: u1 = lt 0i32, %n
          if %c:
            atomic add @x[%k], %t
        """,
    )


def test_a_conditional_update_of_an_element_that_may_not_exist() -> None:
    text = """
    buffer @x: i32 field (8)
    func f(%n: i32, %k: i32):
      for %j: i32 in 0i32 .. %n:
        %c: u1 = gt %j, 3i32
        if %c:
          %d: u1 = gt %j, 5i32
          if %d:
            atomic add @x[%k], %j
          else:
            atomic add @x[%k], 100i32
    """
    new = agrees(accumulate, text, (8, 3), {})
    assert updates_inside_loops(new) == 0
    agrees(accumulate, text, (3, 1000), {})


STAYING = {
    "the outermost parallel loop": """
        buffer @U: i32 field ()
        func f():
          for parallel %i: i32 in 0i32 .. 8i32:
            atomic add @U[], %i
        """,
    "an outermost parallel loop in an if": """
        buffer @U: i32 field ()
        func f(%c: u1):
          if %c:
            for parallel %i: i32 in 0i32 .. 8i32:
              atomic add @U[], %i
        """,
    "the element is read": """
        buffer @U: i32 field ()
        buffer @x: i32 field (8)
        func f():
          for %i: i32 in 0i32 .. 8i32:
            atomic add @U[], %i
            %a: i32 = load @U[]
            store @x[%i], %a
        """,
    "the element may be written": """
        buffer @x: i32 field (8)
        func f(%k: i32):
          for %i: i32 in 0i32 .. 8i32:
            atomic add @x[%k], %i
            store @x[%i], 0i32
        """,
    "another kind of update": """
        buffer @U: i32 field ()
        func f():
          for %i: i32 in 0i32 .. 8i32:
            atomic add @U[], %i
            atomic max @U[], 3i32
        """,
    "the old value is wanted": """
        buffer @U: i32 field ()
        buffer @x: i32 field (8)
        func f():
          for %i: i32 in 0i32 .. 8i32:
            %a: i32 = atomic add @U[], %i
            store @x[%i], %a
        """,
    "an old value of the same element": """
        buffer @U: i32 field ()
        buffer @x: i32 field (8)
        func f():
          for %i: i32 in 0i32 .. 8i32:
            %a: i32 = atomic add @U[], %i
            store @x[%i], %a
            atomic add @U[], %i
        """,
    "the index is computed inside": """
        buffer @p: i32 field (8)
        buffer @x: i32 field (8)
        func f():
          for %i: i32 in 0i32 .. 8i32:
            %k: i32 = load @p[%i]
            atomic add @x[%k], %i
        """,
    "an array that may be the same memory": """
        buffer @a: i32 array (?)
        buffer @x: i32 field (8)
        func f():
          for %i: i32 in 0i32 .. 8i32:
            atomic add @x[0i32], %i
            store @a[%i], 0i32
        """,
    "the access is in an inner loop": """
        buffer @x: i32 field (8)
        buffer @U: i32 field ()
        func f():
          for %i: i32 in 0i32 .. 8i32:
            atomic add @U[], %i
            for %k: i32 in 0i32 .. 2i32:
              %a: i32 = load @U[]
              store @x[%k], %a
        """,
    "truth values are not numbers": """
        buffer @U: u1 field ()
        func f(%c: u1):
          for %i: i32 in 0i32 .. 8i32:
            atomic max @U[], %c
        """,
}


@pytest.mark.parametrize("why", STAYING)
def test_what_would_be_noticed_stays(why: str) -> None:
    stays(fast, STAYING[why])


def test_other_elements_of_the_same_buffer_may_be_read() -> None:
    agrees(
        accumulate,
        """
        buffer @x: i32[2] field (8)
        func f(%k: i32):
          %l: i32 = add %k, 1i32
          for %i: i32 in 0i32 .. 8i32:
            %a: i32 = load @x[%l][0i32]
            %b: i32 = load @x[%k][1i32]
            store @x[%l][1i32], %i
            atomic add @x[%k][0i32], %a
            atomic add @x[%k][0i32], %b
        """,
        (3,),
        {"x": [[k, k * k] for k in range(8)]},
    )


KINDS = {"add": "i32", "mul": "i64", "min": "i32", "max": "u8", "and": "u32", "or": "u1", "xor": "i64"}


@pytest.mark.parametrize("prim", KINDS)
def test_every_kind_of_update_of_integers(prim: str) -> None:
    t = KINDS[prim]
    text = f"""
    buffer @x: {t} field (8)
    buffer @U: {t} field ()
    buffer @V: {t} field (2)
    func f(%n: i32):
      for parallel %i: i32 in 0i32 .. 2i32:
        for parallel %j: i32 in 0i32 .. %n:
          %a: {t} = load @x[%j]
          atomic {prim} @U[], %a
          %c: u1 = lt %j, 4i32
          if %c:
            atomic {prim} @V[%i], %a
    """
    numbers = [1, 0, 1, 1, 0, 1, 1, 1] if t == "u1" else [5, 3, 7, 1, 250, 2, 9, 6]
    start: dict[str, object] = {"x": numbers, "U": 1, "V": [1, 0]}
    for n in (0, 3, 8):
        assert updates_inside_loops(agrees(accumulate, text, (n,), start)) == 0


@pytest.mark.parametrize("prim", ["min", "max"])
@pytest.mark.parametrize("start", [float("nan"), 2.0, 100.0])
@pytest.mark.parametrize("n", [0, 1, 3, 8])
def test_minimum_and_maximum_of_floats_leave_a_nan_out(prim: str, start: float, n: int) -> None:
    """Without an update a NaN must stay, and with one it must go."""
    text = f"""
    buffer @x: f32 field (8)
    buffer @U: f32 field ()
    buffer @V: f32 field ()
    func f(%n: i32):
      for %j: i32 in 0i32 .. %n:
        %a: f32 = load @x[%j]
        atomic {prim} @U[], %a
        %c: u1 = gt %j, 1i32
        if %c:
          atomic {prim} @V[], %a
    """
    numbers = [5.0, 3.0, float("nan") if start != start else 1.0, 4.0, 5.5, 6.5, 4.5, 3.5]
    agrees(fast, text, (n,), {"x": numbers, "U": start, "V": start})


def test_while_loops_carry_sums_too() -> None:
    text = """
    buffer @x: i32 field (8)
    buffer @y: i32 field (8)
    buffer @z: i32 field (8)
    buffer @U: i32 field ()
    func f(%k: i32):
      %m: i32 = while carrying %a: i32 = 0i32:
        %c: u1 = lt %a, 6i32
        yield %c
      do %b: i32:
        %v: i32 = load @x[%b]
        atomic add @U[], %v
        %large: u1 = gt %v, 3i32
        if %large:
          atomic max @y[7i32], %v
          atomic add @z[%k], 1i32
        %n: i32 = add %b, 1i32
        yield %n
    """
    # Without an update, no element 1000 need exist.
    for k, numbers in ((2, [1, 2, 9, 4, 1, 1, 0, 0]), (1000, [1] * 8)):
        new = agrees(accumulate, text, (k,), {"x": numbers})
        (loop,) = [op for op in walk(new.region) if isinstance(op, While)]
        assert not any(isinstance(op, Atomic) for r in loop.regions for op in walk(r))


def test_what_becomes_serial_keeps_its_other_values_and_effects() -> None:
    """The result still simplifies and stays valid."""
    new = eliminate_dead(accumulate(parse(GRAVITY)))
    verify(new, Form.SCALAR)
    loops = [op for op in walk(new.region) if isinstance(op, For)]
    assert [loop.parallel for loop in loops] == [True, False]
    agrees(accumulate, GRAVITY, (), {"x": [float(k * k) for k in range(8)]})
