"""Innermost loops whose iterations are proved independent are marked."""

from __future__ import annotations

import functools

import pytest

from tests.passes.support import becomes, stays
from tinote.compiler.passes.loops.mark_vector_loops import mark_vector_loops
from tinote.ir.verify import Form

becomes_in_tasks = functools.partial(becomes, form=Form.TASKS)
stays_in_tasks = functools.partial(stays, form=Form.TASKS)

HEAD = """\
buffer @x: i32 field (64, 64)
buffer @y: i32 field (64, 64)
buffer @a: i32 array (?)
buffer @c: i32 temporary ()
func f(%n: i32):
"""


def program(lines: str) -> str:
    return HEAD + "".join(f"  {line}\n" for line in lines.strip("\n").splitlines())


def test_inner_loops_and_loops_of_tasks_without_any() -> None:
    before = program("""
task parallel %i: i32 in 0i32 .. %n:
  for %j: i32 in 0i32 .. 64i32:
    %a: i32 = load @x[%j, %i]
    store @y[%i, %j], %a
    %c: u1 = gt %a, 3i32
    if %c:
      %k: i32 = sub 63i32, %j
      store @y[%k, %i], 0i32
  for %l: i32 in 0i32 .. 64i32:
    %b: i32 = load @x[%i, %l]
    atomic plain add @y[%i, %l], %b
  %s: i32 = for reverse %m: i32 in 0i32 .. 64i32 carrying %t: i32 = 0i32:
    %d: i32 = load @x[%i, %m]
    %u: i32 = add %t, %d
    yield %u
  store @y[%i, 0i32], %s
task parallel %o: i32 in 0i32 .. 64i32:
  store @x[%o, 3i32], %o
""")
    # The first loop writes row and column of @y, which meet.
    after = before.replace("for %l", "for vectorize %l").replace("for reverse %m", "for reverse vectorize %m")
    becomes_in_tasks(mark_vector_loops, before, after.replace("parallel %o", "parallel vectorize %o"))


STAYING = {
    "each iteration writes the same": "store @y[%i, 0i32], %j",
    "each iteration updates the same": "atomic plain add @y[%i, 0i32], %j",
    "an indivisible update": "atomic add @y[%i, %j], 1i32",
    "an iteration reads what another writes": "%k: i32 = add %j, 1i32\n%v: i32 = load @y[%i, %k]\nstore @y[%i, %j], %v",
    "an iteration writes what another writes": "%k: i32 = add %j, 1i32\nstore @y[%i, %k], 1i32\nstore @y[%i, %j], 2i32",
    "an index from memory": "%k: i32 = load @x[%i, %j]\nstore @y[%i, %k], 1i32",
    "a remainder": "%k: i32 = and %j, 7i32\nstore @y[%i, %k], 1i32",
    "an array that may be the same memory": "%v: i32 = load @a[%j]\nstore @y[%i, %j], %v",
    "a check": '%t: u1 = lt %j, %n\ncheck assert "no" %t\nstore @y[%i, %j], 1i32',
    "a print": 'store @y[%i, %j], 1i32\nprint "here"',
    "a stack": "push %s, %j\nstore @y[%i, %j], 1i32",
    "a cell": "%r: ref i32[4] = local\nset %r[0i32], %j\n%v: i32 = get %r[1i32]\nstore @y[%i, %j], %v",
    "a loop inside": "%w: i32 = while carrying %g: i32 = %j:\n  %t: u1 = lt %g, 3i32\n  yield %t\ndo %h: i32:\n"
    "  %z: i32 = add %h, 1i32\n  yield %z\nstore @y[%i, %j], %w",
    "a temporary": "store @c[], %j",
}


@pytest.mark.parametrize("why", STAYING)
def test_what_is_not_proved_stays(why: str) -> None:
    inside = "".join(f"    {line}\n" for line in STAYING[why].splitlines())
    head = "task parallel %i: i32 in 0i32 .. 64i32:\n  %s: stack i32 = stack\n  for %j: i32 in 0i32 .. 64i32:\n"
    stays_in_tasks(mark_vector_loops, program(head + inside))


GATHER = """
%p: i32 = load @x[%i, %j]
%t: u1 = lt %p, 64i32
check bounds "a" %t, %p, 64i32
%w: i32 = load @a[%p]
"""
CHECKED = {
    "a gather": GATHER + "store @y[%i, %j], %p",
    "a check in a branch": "%u: u1 = lt %j, 3i32\nif %u:\n"
    + "".join(f"  {line}\n" for line in GATHER.strip().splitlines())
    + "store @y[%i, %j], %j",
    "a divisor": '%p: i32 = load @x[%i, %j]\n%t: u1 = ne %p, 0i32\ncheck division "//" %t, %j\n'
    "%q: i32 = floordiv %j, %p\nstore @y[%i, %j], %q",
    "a load in range for certain after a check": GATHER
    + '%v: i32 = load @x[%j, %i]\n%s: u1 = lt %v, 9i32\ncheck bounds "b" %s, %v, 9i32\nstore @y[%i, %j], %v',
}
NOT_FIRST = {
    "the check depends on a load after a check": "%p: i32 = load @x[%i, %j]\n%t: u1 = lt %p, 64i32\n"
    'check bounds "x" %t, %p, 64i32\n%w: i32 = load @x[%i, %p]\n%s: u1 = lt %w, 9i32\n'
    'check bounds "b" %s, %w, 9i32\nstore @y[%i, %j], %w',
    "the check depends on what the iteration wrote": "store @y[%i, %j], 3i32\n%p: i32 = load @y[%i, %j]\n"
    '%t: u1 = lt %p, 64i32\ncheck bounds "a" %t, %p, 64i32',
    "the check depends on an old value": "%p: i32 = atomic plain add @y[%i, %j], 3i32\n"
    '%t: u1 = lt %p, 64i32\ncheck bounds "a" %t, %p, 64i32',
    "the check depends on a division": "%p: i32 = load @x[%i, %j]\n%t: u1 = ne %p, 0i32\n"
    'check division "//" %t, %j\n%q: i32 = floordiv %j, %p\n%s: u1 = lt %q, 9i32\n'
    'check bounds "b" %s, %q, 9i32\nstore @y[%i, %j], %q',
    "an overflow": "%p: i32 = load @x[%i, %j]\n%t: u1 = lt %p, 64i32\n"
    'check overflow "too large" %t\nstore @y[%i, %j], %p',
}


def checked(inside: str) -> str:
    lines = "".join(f"    {line}\n" for line in inside.strip().splitlines())
    return program("task parallel %i: i32 in 0i32 .. 64i32:\n  for %j: i32 in 0i32 .. 64i32:\n" + lines)


@pytest.mark.parametrize("what", CHECKED)
def test_checks_that_can_go_first(what: str) -> None:
    before = checked(CHECKED[what]).replace("@a: i32 array (?)", "@a: i32 field (64)")
    becomes_in_tasks(mark_vector_loops, before, before.replace("for %j", "for vectorize %j"))


@pytest.mark.parametrize("why", NOT_FIRST)
def test_checks_that_cannot_go_first(why: str) -> None:
    stays_in_tasks(mark_vector_loops, checked(NOT_FIRST[why]))


def test_a_check_of_a_carried_value_cannot_go_first() -> None:
    stays_in_tasks(
        mark_vector_loops,
        program("""
task serial:
  %s: i32 = for %j: i32 in 0i32 .. 64i32 carrying %p: i32 = 0i32:
    %t: u1 = lt %p, 64i32
    check bounds "x" %t, %p, 64i32
    %u: i32 = load @x[%j, %p]
    yield %u
  store @y[0i32, 0i32], %s
"""),
    )


def test_a_loop_that_writes_nothing_but_a_result_bears_all_reads() -> None:
    before = program("""
task serial:
  %s: i32 = for %j: i32 in 0i32 .. 64i32 carrying %t: i32 = 0i32:
    %v: i32 = load @a[%j]
    %w: i32 = load @x[%v, %v]
    %u: i32 = max %t, %w
    yield %u
  store @y[0i32, 0i32], %s
""")
    becomes_in_tasks(mark_vector_loops, before, before.replace("for %j", "for vectorize %j"))
