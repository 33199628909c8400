"""Access lowering: byte offsets for every layout."""

from __future__ import annotations

from tests.passes.support import becomes
from tinote.compiler.passes.lowering.lower_access import lower_access
from tinote.ir.verify import Form


def lowers(before: str, after: str) -> None:
    becomes(lower_access, before, after, Form.TASKS, Form.LOWERED)


def test_known_strides() -> None:
    """Rows of vectors, then one array a component; literal indices are summed."""
    lowers(
        """\
buffer @x: f32[2] field (4, 8)
buffer @y: f64[2] field (8) strides (8) element_strides (64)
func f(%n: i32):
  task parallel %i: i32 in 0i32 .. %n:
    %a: f32 = load @x[%i, 3i32][1i32]
    %b: f64 = cast %a
    store @y[2i32][1i32], %b
    atomic add @y[%i][0i32], %b
""",
        """\
buffer @x: f32[2] field (4, 8)
buffer @x.flat: f32 field (?) flat @x
buffer @y: f64[2] field (8) strides (8) element_strides (64)
buffer @y.flat: f64 field (?) flat @y
func f(%n: i32):
  task parallel %i: i32 in 0i32 .. %n:
    %w: i64 = cast %i
    %p: i64 = mul %w, 64i64
    %o: i64 = add %p, 28i64
    %a: f32 = load @x.flat[%o]
    %b: f64 = cast %a
    store @y.flat[80i64], %b
    %v: i64 = cast %i
    %q: i64 = mul %v, 8i64
    atomic add @y.flat[%q], %b
""",
    )


def test_what_an_index_adds_is_part_of_the_offset() -> None:
    """Not where the extent is not known, so that the sum may wrap and be in range all the same."""
    lowers(
        """\
buffer @x: f32 field (4, 8)
buffer @a: f32 array (?)
func f(%i: i32):
  task serial:
    %j: i32 = add %i, 1i32
    %k: i32 = sub %j, 3i32
    store @x[%j, %k], 1.0f32
    store @a[%j], 3.0f32
""",
        """\
buffer @x: f32 field (4, 8)
buffer @x.flat: f32 field (?) flat @x
buffer @a: f32 array (?)
buffer @a.flat: f32 array (?) flat @a
func f(%i: i32):
  task serial:
    %j: i32 = add %i, 1i32
    %k: i32 = sub %j, 3i32
    %w: i64 = cast %i
    %p: i64 = mul %w, 32i64
    %x: i64 = cast %i
    %q: i64 = mul %x, 4i64
    %r: i64 = add %p, %q
    %s: i64 = add %r, 24i64
    store @x.flat[%s], 1.0f32
    %d: i64 = cast %j
    %e: i64 = mul %d, 4i64
    store @a.flat[%e], 3.0f32
""",
    )


def test_extents_known_at_launch() -> None:
    lowers(
        """\
buffer @a: f32[3] array (?, ?)
func f(%i: i32, %j: i64, %c: i32):
  task serial:
    %old: f32 = atomic plain max @a[%i, %j][%c], 2.0f32
    store @a[%i, %j][1i32], %old
""",
        """\
buffer @a: f32[3] array (?, ?)
buffer @a.flat: f32 array (?) flat @a
func f(%i: i32, %j: i64, %c: i32):
  task serial:
    %r: i64 = cast %i
    %n: i32 = extent @a, 1
    %m: i64 = cast %n
    %s: i64 = mul %r, %m
    %t: i64 = add %s, %j
    %u: i64 = mul %t, 12i64
    %k: i64 = cast %c
    %v: i64 = mul %k, 4i64
    %o: i64 = add %u, %v
    %old: f32 = atomic plain max @a.flat[%o], 2.0f32
    %r2: i64 = cast %i
    %n2: i32 = extent @a, 1
    %m2: i64 = cast %n2
    %s2: i64 = mul %r2, %m2
    %t2: i64 = add %s2, %j
    %u2: i64 = mul %t2, 12i64
    %o2: i64 = add %u2, 4i64
    store @a.flat[%o2], %old
""",
    )


def test_rank_zero_and_between_tasks() -> None:
    lowers(
        """\
buffer @n: i32 temporary ()
buffer @U: f32[2] field ()
func f():
  task serial:
    store @n[], 3i32
    store @U[][1i32], 1.0f32
  %h: i32 = load @n[]
  return %h
""",
        """\
buffer @n: i32 temporary ()
buffer @n.flat: i32 temporary (?) flat @n
buffer @U: f32[2] field ()
buffer @U.flat: f32 field (?) flat @U
func f():
  task serial:
    store @n.flat[0i64], 3i32
    store @U.flat[4i64], 1.0f32
  %h: i32 = load @n[]
  return %h
""",
    )
