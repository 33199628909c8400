"""Which iterations of a parallel loop may conflict: every loop of which independence is not proved has a conflict, and
loops that programs have every day are proved.
"""

from __future__ import annotations

import pytest

from tinote.ir.access import Accesses
from tinote.ir.conflicts import find_conflict
from tinote.ir.nodes import For
from tinote.ir.parse import parse
from tinote.ir.query import walk

HEAD = """\
buffer @x: i32 field (64)
buffer @y: i32 field (64)
buffer @g: i32 field (8, 8)
buffer @n: i32 field ()
buffer @f: f32 field (64)
func k(%n: i32, %t: i32):
  for parallel %i: i32 in 0i32 .. {}:
"""

#: Lines of an iteration of a loop over 0 .. 63; and whether iterations may conflict.
BODIES: dict[str, tuple[bool, str]] = {
    "elements of its own": (False, "%a: i32 = load @x[%i]\nstore @x[%i], %a"),
    "its neighbour's": (True, "%j: i32 = add %i, 1i32\n%a: i32 = load @x[%j]\nstore @x[%i], %a"),
    "an index from memory": (True, "%j: i32 = load @y[%i]\nstore @x[%j], %i"),
    "a clamped index": (True, "%j: i32 = min %i, 15i32\n%a: i32 = load @x[%j]\nstore @x[%j], %a"),
    "one value for all": (False, "store @n[], 1i32"),
    "one argument for all": (False, "%j: i32 = load @y[%i]\nstore @x[%j], %t"),
    "one value, which others read": (True, "%a: i32 = load @n[]\nstore @y[%i], %a\nstore @n[], 1i32"),
    "two values": (True, "%c: u1 = lt %i, %t\nif %c:\n  store @n[], 1i32\nelse:\n  store @n[], 2i32"),
    "additions": (False, "%j: i32 = load @y[%i]\natomic add @x[%j], %i\natomic add @x[0i32], %i"),
    "additions that others read": (True, "%j: i32 = load @x[%i]\natomic add @x[%j], %i"),
    "additions and products": (True, "%j: i32 = load @y[%i]\natomic add @x[%j], %i\natomic mul @x[%j], %i"),
    "places in a list": (False, "%j: i32 = atomic add @n[], 1i32\nstore @x[%j], %i"),
    "places in a list that is emptied": (
        True,
        "%j: i32 = atomic add @n[], 1i32\nstore @x[%j], %i\n%c: u1 = lt %j, 3i32\nif %c:\n  store @n[], 0i32",
    ),
    "two places in a list": (
        True,
        "%j: i32 = atomic add @n[], 1i32\n%k: i32 = atomic add @n[], 1i32\nstore @x[%j], %i\nstore @x[%k], %i",
    ),
    "one step further around": (False, "%j: i32 = add %i, 1i32\n%k: i32 = mod %j, 64i32\nstore @x[%k], %i"),
    "two elements of a ring": (
        True,
        "%j: i32 = add %i, 1i32\n%k: i32 = mod %j, 64i32\nstore @x[%k], %i\n%a: i32 = load @x[%i]\nstore @y[%i], %a",
    ),
    "a ring that is too short": (True, "%k: i32 = mod %i, 63i32\nstore @x[%k], %i"),
    "a mask of low bits": (False, "%j: i32 = add %i, %t\n%k: i32 = and %j, 63i32\nstore @x[%k], %i"),
    "a mask that is too short": (True, "%j: i32 = add %i, %t\n%k: i32 = and %j, 31i32\nstore @x[%k], %i"),
    "row and column": (False, "%r: i32 = floordiv %i, 8i32\n%c: i32 = mod %i, 8i32\nstore @g[%r, %c], %i"),
    "row and another column": (True, "%r: i32 = floordiv %i, 8i32\n%c: i32 = mod %i, 7i32\nstore @g[%r, %c], %i"),
    "columns alone": (True, "%r: i32 = floordiv %t, 8i32\n%c: i32 = mod %i, 8i32\nstore @g[%r, %c], %i"),
    "a sum that may wrap": (False, "%j: i32 = add %i, %t\nstore @x[%j], %i"),
    "twice what may wrap": (False, "%j: i32 = add %i, %t\n%k: i32 = mul %j, 2i32\nstore @x[%k], %i"),
    "sums that may meet": (True, "%j: i32 = add %i, %t\nstore @x[%j], %i\n%a: i32 = load @x[%i]\nstore @y[%i], %a"),
    "one colour": (
        False,
        "%q: i32 = mod %i, 2i32\n%c: u1 = eq %q, %t\nif %c:\n  %j: i32 = add %i, 1i32\n  %k: i32 = sub %i, 1i32\n"
        "  %a: i32 = load @x[%j]\n  %b: i32 = load @x[%k]\n  %s: i32 = add %a, %b\n  store @x[%i], %s",
    ),
    "neighbours of one colour": (
        True,
        "%q: i32 = mod %i, 2i32\n%c: u1 = eq %q, %t\nif %c:\n  %j: i32 = add %i, 2i32\n"
        "  %a: i32 = load @x[%j]\n  store @x[%i], %a",
    ),
    "three colours": (
        True,
        "%q: i32 = mod %i, 3i32\n%c: u1 = eq %q, %t\nif %c:\n  %j: i32 = add %i, 3i32\n"
        "  %a: i32 = load @x[%j]\n  store @x[%i], %a",
    ),
}


def conflict_in(text: str, extent: str = "64i32", **options: bool) -> bool:
    fn = parse(HEAD.format(extent) + "".join(f"    {line}\n" for line in text.splitlines()))
    (loop,) = [op for op in walk(fn.region) if isinstance(op, For)]
    accesses = Accesses(fn)
    return find_conflict(accesses, accesses.loops[loop], unordered=True, **options) is not None


@pytest.mark.parametrize("name", BODIES)
def test_conflicts_of_parallel_iterations(name: str) -> None:
    expected, text = BODIES[name]
    assert conflict_in(text) == expected


def test_a_sum_that_may_wrap_over_any_number_of_iterations() -> None:
    assert not conflict_in("%j: i32 = add %i, %t\nstore @x[%j], %i", "%n")
    assert conflict_in("%j: i32 = and %i, 63i32\nstore @x[%j], %i", "%n")


def test_sums_of_floats_keep_their_order_where_that_counts() -> None:
    text = "atomic add @f[%i], 1.0f32\n%j: i32 = load @y[%i]\natomic add @f[%j], 2.0f32"
    assert not conflict_in(text)
    assert conflict_in(text, exact=True)
