"""Parallel nests of a task become one loop, where every iteration of the inner one may run by itself."""

from __future__ import annotations

import pytest

from tests.passes.running import agrees
from tests.passes.support import becomes, stays
from tinote.compiler.passes.loops.collapse import collapse
from tinote.compiler.passes.updates.accumulate import accumulate
from tinote.ir.verify import Form

HEAD = """
buffer @x: i32 field (8, 32)
buffer @y: i32 field (40)
buffer @z: i32 field (8, 32, 5)
func f(%n: i32):
"""
NEST = (
    HEAD
    + """
  task parallel "t" %i: i32 in 2i32 .. 7i32:
    %a: i32 = load @y[%i]
    for parallel %j: i32 in 0i32 .. 32i32:
      %b: i32 = add %a, %j
      atomic plain add @x[%i, %j], %b
"""
)


def test_a_nest() -> None:
    after = (
        HEAD
        + """
  task parallel "t" %k: i32 in 0i32 .. 160i32:
    %q: i32 = raw_div %k, 32i32
    %m: i32 = mul %q, 32i32
    %j: i32 = sub %k, %m
    %i: i32 = add %q, 2i32
    %a: i32 = load @y[%i]
    %b: i32 = add %a, %j
    atomic plain add @x[%i, %j], %b
"""
    )
    becomes(collapse, NEST, after, Form.TASKS)


def test_it_does_the_same() -> None:
    agrees(collapse, NEST, (0,), {"y": list(range(40))}, Form.TASKS)


def test_three_loops() -> None:
    text = (
        HEAD
        + """
  task parallel "t" %i: i32 in 0i32 .. 8i32:
    for parallel %j: i32 in 3i32 .. 32i32:
      %a: i32 = load @x[%i, %j]
      for parallel %l: i32 in -1i32 .. 4i32:
        %k: i32 = add %l, 1i32
        %b: i32 = mul %a, %k
        store @z[%i, %j, %k], %b
"""
    )
    contents = {"x": [[i * 100 + j for j in range(32)] for i in range(8)]}
    new = agrees(collapse, text, (0,), contents, Form.TASKS)
    (task,) = new.region.body
    assert not any(op.regions for r in task.regions for op in r.body)


STAYING = {
    "the inner length is known at launch only": ("0i32 .. 32i32", "0i32 .. %n"),
    "the outer length is known at launch only": ("2i32 .. 7i32", "2i32 .. %n"),
    "the inner loop has no iteration": ("0i32 .. 32i32", "0i32 .. 0i32"),
    "there are more pairs than numbers": ("2i32 .. 7i32", "2i32 .. 100000000i32"),
    "the inner loop is serial": ("for parallel", "for"),
    "something is stored before": ("%a: i32 = load @y[%i]", "%a: i32 = load @y[%i]\n    store @y[%i], 0i32"),
    "the inner loop writes what is loaded before": ("load @y[%i]", "load @x[%i, 0i32]"),
    "all of the inner iterations update one element": ("@x[%i, %j]", "@y[%i]"),
}


@pytest.mark.parametrize("why", STAYING)
def test_what_stays(why: str) -> None:
    old, new = STAYING[why]
    assert old in NEST
    stays(collapse, NEST.replace(old, new), Form.TASKS)


def test_what_all_share_is_left_to_workgroups() -> None:
    text = (
        HEAD
        + """
  for parallel %i: i32 in 0i32 .. 8i32:
    for parallel %j: i32 in 0i32 .. 32i32:
      %a: i32 = load @x[%i, %j]
      atomic add @y[3i32], %a
"""
    )
    stays(lambda fn: accumulate(fn, reduces=True), text)
    rows = text.replace("atomic add @y[3i32], %a", "atomic add @y[3i32], %a\n      atomic add @y[%i], %a")
    new = agrees(lambda fn: accumulate(fn, reduces=True), rows, (0,))  # what is a row's makes the inner loop serial
    assert new is not None
