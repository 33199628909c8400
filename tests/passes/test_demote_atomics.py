"""Updates that only one thread can reach become plain."""

from __future__ import annotations

import functools

import pytest

from tests.passes.support import becomes, stays
from tinote.compiler.passes.updates.demote_atomics import demote_atomics
from tinote.ir.verify import Form

becomes_in_tasks = functools.partial(becomes, form=Form.TASKS)
stays_in_tasks = functools.partial(stays, form=Form.TASKS)


def test_serial_tasks_and_private_copies_and_own_elements() -> None:
    before = """
    buffer @U: i32 field ()
    buffer @U.private: i32 private ()
    buffer @V: i32 field ()
    buffer @y: i32[2] field (64)
    func f():
      task serial:
        atomic add @U[], 1i32
        for parallel %k: i32 in 0i32 .. 8i32:
          %old: i32 = atomic max @U[], %k
          atomic max @U[], %old
      task parallel %i: i32 in 0i32 .. 64i32:
        private add @U.private of @U
        atomic add @U.private[], %i
        for %j: i32 in 0i32 .. 8i32:
          atomic add @y[%i][0i32], %j
          atomic add @y[%i][1i32], %j
        atomic add @V[], %i
    """
    after = before.replace("atomic ", "atomic plain ").replace("atomic plain add @V", "atomic add @V")
    becomes_in_tasks(demote_atomics, before, after)


def test_one_thread_has_no_others() -> None:
    before = """
    buffer @V: i32 field ()
    func f():
      task parallel %i: i32 in 0i32 .. 64i32:
        atomic add @V[], %i
    """
    stays_in_tasks(demote_atomics, before)
    alone = functools.partial(demote_atomics, one_thread=True)
    becomes_in_tasks(alone, before, before.replace("atomic ", "atomic plain "))


def test_own_elements_may_be_shifted_and_in_either_dimension() -> None:
    before = """
    buffer @y: i32 field (64, 64)
    func f(%n: i32):
      task parallel %i: i32 in 0i32 .. 32i32:
        for %j: i32 in 0i32 .. %n:
          %l: i32 = sub 60i32, %i
          atomic add @y[%j, %l], 1i32
          atomic mul @y[3i32, %l], 2i32
          %a: i32 = load @y[%j, %l]
          store @y[%j, %l], %a
    """
    becomes_in_tasks(demote_atomics, before, before.replace("atomic ", "atomic plain "))


STAYING = {
    "all iterations": "atomic add @y[0i32, 0i32], %i",
    "an index from memory": "%k: i32 = load @p[%i]\natomic add @y[%k, %k], 1i32",
    "another iteration adds": "%k: i32 = add %i, 1i32\natomic add @y[%i, 0i32], 1i32\natomic add @y[%k, 0i32], 1i32",
    "another iteration reads": "%k: i32 = add %i, 1i32\natomic add @y[%i, 0i32], 1i32\n%a: i32 = load @y[%k, 0i32]",
    "another iteration writes": "atomic add @y[%i, 0i32], 1i32\nstore @y[0i32, 0i32], 1i32",
    "a remainder": "%k: i32 = mod %i, 8i32\natomic add @y[%k, 0i32], 1i32",
    "an array that may be the same memory": "atomic add @y[%i, 0i32], 1i32\nstore @a[%i], 1i32",
    "an inner loop goes everywhere": "for %j: i32 in 0i32 .. 8i32:\n  atomic add @y[%j, 0i32], 1i32",
    "sums that meet": "for %j: i32 in 0i32 .. 8i32:\n  %k: i32 = add %i, %j\n  atomic add @y[%k, 0i32], 1i32",
}


@pytest.mark.parametrize("why", STAYING)
def test_what_another_thread_may_meet_stays(why: str) -> None:
    head = """\
buffer @p: i32 field (64)
buffer @a: i32 array (?)
buffer @y: i32 field (64, 64)
func f():
  task parallel %i: i32 in 0i32 .. 32i32:
"""
    stays_in_tasks(demote_atomics, head + "".join(f"    {line}\n" for line in STAYING[why].splitlines()))
