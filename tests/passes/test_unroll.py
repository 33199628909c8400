"""Loops that only compute are written out where the loop around them can then run several iterations at once."""

from __future__ import annotations

import functools

import pytest

from tests.passes.running import agrees
from tests.passes.support import becomes
from tinote.compiler.passes.loops.mark_vector_loops import mark_vector_loops
from tinote.ir.nodes import For, NewStack, Pop, Push, Task
from tinote.ir.parse import parse
from tinote.ir.query import walk
from tinote.ir.verify import Form, verify
from tinote.remarks import Remark

agrees_in_tasks = functools.partial(agrees, form=Form.TASKS)

HEAD = """\
buffer @x: i32 field (8)
buffer @y: i32 field (8)
func f(%n: i32):
  task parallel %i: i32 in 0i32 .. 8i32:
    %a: i32 = load @x[%i]
"""


def program(lines: str) -> str:
    return HEAD + "".join(f"    {line}\n" for line in lines.strip("\n").splitlines())


def test_a_value_that_a_loop_carries() -> None:
    becomes(
        mark_vector_loops,
        program("""
%b: i32 = for %k: i32 in 1i32 .. 3i32 carrying %v: i32 = %a:
  %w: i32 = mul %v, %k
  %u: i32 = add %w, 1i32
  yield %u
store @y[%i], %b
"""),
        program("""
%w1: i32 = mul %a, 1i32
%u1: i32 = add %w1, 1i32
%w2: i32 = mul %u1, 2i32
%u2: i32 = add %w2, 1i32
store @y[%i], %u2
""").replace("task parallel", "task parallel vectorize"),
        Form.TASKS,
    )


def test_a_loop_and_its_reverse_with_a_stack_between() -> None:
    fn = agrees_in_tasks(
        mark_vector_loops,
        program("""
%s: stack i32 = stack 6i64
%b: i32 = for %k: i32 in 0i32 .. 6i32 carrying %v: i32 = %a:
  push %s, %v
  %e: i32 = and %v, 1i32
  %t: u1 = eq %e, 0i32
  %w: i32 = if %t:
    %half: i32 = floordiv %v, 2i32
    yield %half
  else:
    %more: i32 = mul %v, 3i32
    yield %more
  %u: i32 = add %w, %k
  yield %u
%d: i32 = for reverse %l: i32 in 0i32 .. 6i32 carrying %g: i32 = %b:
  %z: i32 = pop %s
  %h: i32 = mul %g, 3i32
  %r: i32 = sub %h, %z
  yield %r
store @y[%i], %d
"""),
        (0,),
        {"x": [3, 1, 4, 1, 5, 9, 2, 6]},
    )
    (task,) = fn.region.body
    assert isinstance(task, Task) and task.vectorize
    assert not any(isinstance(op, For | NewStack | Push | Pop) for op in walk(task.body))


def test_a_nest_and_a_loop_without_turns() -> None:
    fn = agrees_in_tasks(
        mark_vector_loops,
        program("""
%b: i32 = for reverse %k: i32 in 0i32 .. 3i32 carrying %v: i32 = %a:
  %c: i32 = for %l: i32 in 2i32 .. 4i32 carrying %w: i32 = %v:
    %p: i32 = mul %w, %l
    %q: i32 = sub %p, %k
    yield %q
  yield %c
%d: i32 = for %m: i32 in 5i32 .. 2i32 carrying %o: i32 = %b:
  yield 0i32
store @y[%i], %d
"""),
        (0,),
        {"x": list(range(8))},
    )
    assert not any(isinstance(op, For) for op in walk(fn.region))


BODY = "  %w: i32 = mul %v, 3i32\n  yield %w\n"
STAYING = {
    "an unknown number of iterations": "%b: i32 = for %k: i32 in 0i32 .. %n carrying %v: i32 = %a:\n"
    + BODY
    + "store @y[%i], %b",
    "an unknown number of iterations that do nothing": "%b: i32 = for %k: i32 in 0i32 .. %n carrying %v: i32 = %a:\n"
    + "  yield 0i32\nstore @y[%i], %b",
    "a loop that reads memory": "%b: i32 = for %k: i32 in 0i32 .. 4i32 carrying %v: i32 = %a:\n"
    + "  %e: i32 = load @x[%k]\n  %o: u1 = gt %e, %v\n  %w: i32 = select %o, %v, %e\n  yield %w\nstore @y[0i32], %b",
    "iterations of the outer loop that meet": "%b: i32 = for %k: i32 in 0i32 .. 4i32 carrying %v: i32 = %a:\n"
    + BODY
    + "%m: i32 = sub 7i32, %i\nstore @x[%m], %b",
    "too much code": "%b: i32 = for %k: i32 in 0i32 .. 9999i32 carrying %v: i32 = %a:\n" + BODY + "store @y[%i], %b",
    "a stack that a branch pushes to": "%s: stack i32 = stack 4i64\n"
    + "%b: i32 = for %k: i32 in 0i32 .. 4i32 carrying %v: i32 = %a:\n"
    + "  %t: u1 = gt %v, 3i32\n  if %t:\n    push %s, %v\n"
    + BODY
    + "store @y[%i], %b",
}


SAID = {
    "an unknown number of iterations": "known at run time only",
    "an unknown number of iterations that do nothing": "known at run time only",
    "a loop that reads memory": "several iterations may write one element of `y`",
    "iterations of the outer loop that meet": "another one may read in line",
    "too much code": "too long when written out",
    "a stack that a branch pushes to": "depends on branches",
}


@pytest.mark.parametrize("reason", STAYING)
def test_what_stays(reason: str) -> None:
    said: list[Remark] = []
    fn = mark_vector_loops(parse(program(STAYING[reason])), said.append)
    (task,) = fn.region.body
    assert any(SAID[reason] in remark.text and not remark.done for remark in said)
    assert isinstance(task, Task) and not task.vectorize
    assert any(isinstance(op, For) for op in walk(task.body))


def test_turns_that_sum_up_are_written_out_without_a_promise() -> None:
    head = "buffer @s: i32 field ()\nbuffer @s.private: i32 private ()\n"
    text = program(f"%b: i32 = for %k: i32 in 0i32 .. 3i32 carrying %v: i32 = %a:\n{BODY}")
    text = head + text.replace("8i32:\n", "8i32:\n    private add @s.private of @s\n", 1)
    fn = mark_vector_loops(parse(text + "    atomic plain add @s.private[], %b\n"))
    verify(fn, Form.TASKS)
    (task,) = fn.region.body
    assert isinstance(task, Task) and not task.vectorize
    assert not any(isinstance(op, For) for op in walk(task.body))
