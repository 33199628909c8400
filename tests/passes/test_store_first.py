"""What is added first to memory that holds zeros is stored."""

from __future__ import annotations

import pytest

from tests.passes.support import becomes, stays
from tinote.compiler.passes.updates.store_first import store_first
from tinote.ir.nodes import Buffer, Function
from tinote.ir.query import buffers_of


def storing(fn: Function) -> Function:
    """The pass, for the buffers called `g`, `h`, `v` and `d`."""
    zeroed: list[Buffer] = [buffer for buffer in buffers_of(fn) if buffer.name in ("g", "h", "v", "d")]
    return store_first(fn, zeroed)


HEAD = """
buffer @x: f64 array (?) noalias
buffer @k: i32 field (64)
buffer @g: f64 array (?) noalias
buffer @h: f64 field (64, 64)
buffer @a: f64 array (?)
buffer @v: f32[2] field (64)
buffer @d: f64d8 field (64)
func f(%n: i32, %w: f64):
"""


def body(text: str) -> str:
    return HEAD + "".join([f"  {line}\n" for line in text.strip("\n").splitlines()])


BECOMING = {
    "an element of its own in each iteration, and what comes behind": (
        """
for parallel %i: i32 in 0i32 .. %n:
  atomic add @g[%i], %w
  atomic add @g[%i], %w
atomic add @g[0i32], %w
""",
        """
for parallel %i: i32 in 0i32 .. %n:
  %b0: i64 = bitcast %w
  %b1: u1 = eq %b0, -9223372036854775808i64
  %b2: i64 = select %b1, 0i64, %b0
  %b: f64 = bitcast %b2
  store @g[%i], %b
  atomic add @g[%i], %w
atomic add @g[0i32], %w
""",
    ),
    "nests, mirrored and shifted, and components": (
        """
for parallel %i: i32 in 0i32 .. 62i32:
  %m: i32 = sub 63i32, %i
  for %j: i32 in 0i32 .. 64i32:
    atomic add @h[%j, %m], %w
  atomic add @v[%i][0i32], 1.0f32
  atomic add @v[%i][1i32], 1.0f32
""",
        """
for parallel %i: i32 in 0i32 .. 62i32:
  %m: i32 = sub 63i32, %i
  for %j: i32 in 0i32 .. 64i32:
    %b0: i64 = bitcast %w
    %b1: u1 = eq %b0, -9223372036854775808i64
    %b2: i64 = select %b1, 0i64, %b0
    %b: f64 = bitcast %b2
    store @h[%j, %m], %b
  store @v[%i][0i32], 1.0f32
  store @v[%i][1i32], 1.0f32
""",
    ),
    "what an earlier iteration of a serial loop has stored is added to": (
        """
for %i: i32 in 0i32 .. 63i32:
  %m: i32 = add %i, 1i32
  atomic add @h[%i, 0i32], %w
  atomic add @h[%m, 0i32], %w
""",
        """
for %i: i32 in 0i32 .. 63i32:
  %m: i32 = add %i, 1i32
  atomic add @h[%i, 0i32], %w
  %b0: i64 = bitcast %w
  %b1: u1 = eq %b0, -9223372036854775808i64
  %b2: i64 = select %b1, 0i64, %b0
  %b: f64 = bitcast %b2
  store @h[%m, 0i32], %b
""",
    ),
    "under a condition": (
        """
%c: u1 = gt %w, 0.0f64
for parallel %i: i32 in 0i32 .. %n:
  if %c:
    atomic add @g[%i], %w
""",
        """
%c: u1 = gt %w, 0.0f64
for parallel %i: i32 in 0i32 .. %n:
  if %c:
    %b0: i64 = bitcast %w
    %b1: u1 = eq %b0, -9223372036854775808i64
    %b2: i64 = select %b1, 0i64, %b0
    %b: f64 = bitcast %b2
    store @g[%i], %b
""",
    ),
}

STAYING = {
    "another buffer": "for parallel %i: i32 in 0i32 .. %n:\n  atomic add @x[%i], %w",
    "all iterations": "for parallel %i: i32 in 0i32 .. %n:\n  atomic add @g[0i32], %w",
    "an index from memory": "for parallel %i: i32 in 0i32 .. 64i32:\n  %l: i32 = load @k[%i]\n  atomic add @g[%l], %w",
    "an inner loop comes back": """
for parallel %i: i32 in 0i32 .. %n:
  for %j: i32 in 0i32 .. 4i32:
    atomic add @g[%i], %w""",
    "an outer loop comes back": """
for %t: i32 in 0i32 .. 4i32:
  for parallel %i: i32 in 0i32 .. %n:
    atomic add @g[%i], %w""",
    "an earlier loop may have added": """
for %j: i32 in 0i32 .. 4i32:
  atomic add @g[0i32], %w
for parallel %i: i32 in 0i32 .. %n:
  atomic add @g[%i], %w""",
    "an earlier statement has stored": """
store @g[3i32], %w
for parallel %i: i32 in 0i32 .. %n:
  atomic add @g[%i], %w""",
    "an earlier statement reads": """
for parallel %i: i32 in 0i32 .. %n:
  %o: f64 = load @g[%i]
  store @x[%i], %o
  atomic add @g[%i], %w""",
    "neighbours that add in any order": """
for parallel %i: i32 in 0i32 .. 63i32:
  %m: i32 = add %i, 1i32
  atomic add @h[%i, 0i32], %w
  atomic add @h[%m, 0i32], %w""",
    "memory that an array may share": """
for %j: i32 in 0i32 .. 4i32:
  store @a[%j], %w
for parallel %i: i32 in 0i32 .. 64i32:
  atomic add @h[%i, 0i32], %w""",
    "the other side of a branch": """
%c: u1 = gt %w, 0.0f64
for %i: i32 in 0i32 .. 4i32:
  %m: i32 = sub 3i32, %i
  if %c:
    atomic add @h[%m, 0i32], %w
  else:
    atomic add @h[%i, 0i32], %w""",
    "numbers along several directions": """
for parallel %i: i32 in 0i32 .. 64i32:
  %o: f64d8 = load @d[%i]
  atomic add @d[%i], %o""",
    "the old value": """
for parallel %i: i32 in 0i32 .. %n:
  %o: f64 = atomic add @g[%i], %w
  store @x[%i], %o""",
    "another operation": "for parallel %i: i32 in 0i32 .. %n:\n  atomic max @g[%i], %w",
    "a while that comes back": """
%s: i32 = while carrying %c: i32 = 0i32:
  %r: u1 = lt %c, 4i32
  yield %r
do %d: i32:
  %e: i32 = add %d, 1i32
  atomic add @g[%n], %w
  yield %e""",
}


@pytest.mark.parametrize("name", BECOMING)
def test_first_updates_become_stores(name: str) -> None:
    before, after = BECOMING[name]
    becomes(storing, body(before), body(after))


@pytest.mark.parametrize("name", STAYING)
def test_what_may_not_be_the_first_stays(name: str) -> None:
    stays(storing, body(STAYING[name].strip("\n")))
