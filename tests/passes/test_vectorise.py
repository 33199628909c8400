"""Loops in lanes: what becomes of control flow and of accesses, which loops run so, and that they mean the same."""

from __future__ import annotations

import pytest

from tests.passes.support import stays
from tinote.compiler.passes.analyses.choose_lanes import Machine
from tinote.compiler.passes.analyses.choose_tiles import choose_tiles
from tinote.compiler.passes.loops.vectorise import vectorise
from tinote.errors import KernelIndexError
from tinote.ir import primitives as p
from tinote.ir.buffers import root_of
from tinote.ir.divergence import Divergence
from tinote.ir.interpret import interpret
from tinote.ir.lanes import LoadTile, Reduce, lanes_of
from tinote.ir.memory import DictMemory
from tinote.ir.nodes import Atomic, For, Function, Prim, Task, Var
from tinote.ir.parse import parse
from tinote.ir.query import buffers_of, definitions, walk
from tinote.ir.text import equal, show
from tinote.ir.verify import Form, verify
from tinote.remarks import Remark

FOUR = Machine(128, registers=0)
WIDE = Machine(512)
FIELDS = "".join(
    f"buffer @{name}: {t} field (64)\nbuffer @{name}.flat: {t} field (?) flat @{name}\n"
    for name, t in (("x", "f32"), ("y", "f32"), ("k", "i32"))
)


def in_lanes(body: str, machine: Machine = FOUR) -> Function:
    """A task over 0 .. %n with this body, which may use %at, the offset of element %i, in lanes; verified."""
    fn = parse(scalar(body))
    verify(fn, Form.LOWERED)
    new = vectorise(fn, machine, always=True)
    verify(new, Form.LOWERED)
    assert vectorise(new, machine, always=True) is new
    return new


def scalar(body: str) -> str:
    lines = ["task parallel %i: i32 in 0i32 .. %n:", "  %w: i64 = cast %i", "  %at: i64 = mul %w, 4i64"]
    lines += [f"  {line}" for line in body.strip("\n").split("\n")]
    return f"{FIELDS}func f(%n: i32):\n" + "".join(f"  {line}\n" for line in lines)


def becomes(body: str, after: str) -> None:
    """That the body, but for the offset, becomes `after`; the offset comes first, which stays as it is."""
    new = in_lanes(body)
    head = ["task parallel %i: i32, %m: u1x4 in 0i32 .. %n:", "  %w: i64 = cast %i", "  %at: i64 = mul %w, 4i64"]
    lines = [*head, *[f"  {line}" for line in after.strip("\n").split("\n")]]
    wanted = parse(f"{FIELDS}func f(%n: i32):\n" + "".join(f"  {line}\n" for line in lines))
    assert equal(new, wanted), f"\n{show(new)}\ninstead of\n{show(wanted)}"


def test_consecutive_elements_are_moved_as_vectors() -> None:
    becomes(
        """\
%a: f32 = load @x.flat[%at]
%b: f32 = mul %a, 2.0f32
store @y.flat[%at], %b
""",
        """\
%a: f32x4 = load @x.flat[%at] where %m
%b: f32x4 = mul %a, 2.0f32
store @y.flat[%at] where %m, %b
""",
    )


def test_what_is_the_same_for_all_lanes_stays() -> None:
    becomes(
        """\
%a: f32 = load @x.flat[8i64]
%b: f32 = sin %a
%c: f32 = load @x.flat[%at]
%d: f32 = mul %b, %c
store @y.flat[%at], %d
store @k.flat[0i64], %n
""",
        """\
%a: f32 = load @x.flat[8i64]
%b: f32 = sin %a
%c: f32x4 = load @x.flat[%at] where %m
%d: f32x4 = mul %b, %c
store @y.flat[%at] where %m, %d
store @k.flat[0i64], %n
""",
    )


def test_other_elements_are_gathered_and_scattered() -> None:
    becomes(
        """\
%e: i64 = mul %w, 8i64
%a: f32 = load @x.flat[%e]
%k: i32 = load @k.flat[%at]
%f: i64 = cast %k
%g: i64 = mul %f, 4i64
store @y.flat[%g], %a
store @y.flat[0i64], %a
""",
        """\
%e: i64 = mul %w, 8i64
%r: i64x4 = ramp %e, 8i64
%a: f32x4 = load @x.flat[%r] where %m
%k: i32x4 = load @k.flat[%at] where %m
%f: i64x4 = cast %k
%g: i64x4 = mul %f, 4i64
store @y.flat[%g] where %m, %a
%z: i64x4 = broadcast 0i64
store @y.flat[%z] where %m, %a
""",
    )


def test_an_index_that_is_a_number_is_computed_lane_by_lane() -> None:
    """An i32 that wraps between two lanes is not what its first lane and the step say once it is widened."""
    becomes(
        """\
%a: i32 = mul %i, 1000000000i32
%b: f32 = cast %a
store @y.flat[%at], %b
""",
        """\
%a: i32 = mul %i, 1000000000i32
%r: i32x4 = ramp %i, 1i32
%l: i32x4 = mul %r, 1000000000i32
%b: f32x4 = cast %l
store @y.flat[%at] where %m, %b
""",
    )


def test_short_branches_become_selections() -> None:
    becomes(
        """\
%a: f32 = load @x.flat[%at]
%c: u1 = lt %a, 0.0f32
%r: f32 = if %c:
  %b: f32 = neg %a
  yield %b
else:
  yield %a
store @y.flat[%at], %r
""",
        """\
%a: f32x4 = load @x.flat[%at] where %m
%c: u1x4 = lt %a, 0.0f32
%b: f32x4 = neg %a
%r: f32x4 = select %c, %b, %a
store @y.flat[%at] where %m, %r
""",
    )


def test_a_branch_with_an_access_runs_for_the_lanes_that_take_it_if_there_are_any() -> None:
    becomes(
        """\
%a: f32 = load @x.flat[%at]
%c: u1 = lt %a, 0.0f32
if %c:
  store @y.flat[%at], 1.0f32
else:
  store @y.flat[%at], %a
""",
        """\
%a: f32x4 = load @x.flat[%at] where %m
%c: u1x4 = lt %a, 0.0f32
%t: u1x4 = and %m, %c
%0: u1 = reduce or %t
if %0:
  %1: f32x4 = broadcast 1.0f32
  store @y.flat[%at] where %t, %1
%2: u1x4 = not %c
%e: u1x4 = and %m, %2
%3: u1 = reduce or %e
if %3:
  store @y.flat[%at] where %e, %a
""",
    )


def test_a_loop_runs_while_a_lane_is_active() -> None:
    becomes(
        """\
%a: f32 = load @x.flat[%at]
%r: f32 = while carrying %v: f32 = %a:
  %c: u1 = lt %v, 9.0f32
  yield %c
do %v2: f32:
  %u: f32 = mul %v2, %v2
  yield %u
store @y.flat[%at], %r
""",
        """\
%a: f32x4 = load @x.flat[%at] where %m
%g: u1, %l: u1x4, %r: f32x4 = while carrying %go: u1 = true, %k: u1x4 = %m, %v: f32x4 = %a:
  yield %go
do %go2: u1, %k2: u1x4, %v2: f32x4:
  %c: u1x4 = lt %v2, 9.0f32
  %on: u1x4 = and %k2, %c
  %some: u1 = reduce or %on
  %o1: u1, %o2: u1x4, %o3: f32x4 = if %some:
    %u: f32x4 = mul %v2, %v2
    %s: f32x4 = select %on, %u, %v2
    yield true, %on, %s
  else:
    yield false, %k2, %v2
  yield %o1, %o2, %o3
store @y.flat[%at] where %m, %r
""",
    )


def test_lanes_that_have_left_a_loop_keep_only_what_is_asked_for() -> None:
    """Of what each loop carries the second value is wanted after it, and nobody reads the first."""
    new = in_lanes("""\
%a: f32 = load @x.flat[%at]
%q: f32, %r: f32 = while carrying %v: f32 = %a, %c: f32 = 0.0f32:
  %s: u1 = lt %v, 9.0f32
  yield %s
do %v2: f32, %c2: f32:
  %u: f32 = mul %v2, %v2
  %d: f32 = add %c2, 1.0f32
  yield %u, %d
%h: i32 = load @k.flat[%at]
%e: f32, %f: f32 = for %j: i32 in 0i32 .. %h carrying %v3: f32 = %a, %c3: f32 = %r:
  %u3: f32 = mul %v3, %v3
  %d3: f32 = add %c3, %u3
  yield %u3, %d3
store @y.flat[%at], %f
""")
    selected = [op for op in walk(new.region) if isinstance(op, Prim) and op.prim is p.select]
    assert [op.args[1].name for op in selected if isinstance(op.args[1], Var)] == ["d", "h", "d3"]


def test_lanes_that_come_into_a_loop_later_begin_with_what_it_began_with() -> None:
    """Backwards, lanes of few iterations join those of many: nobody reads the first value after the loop, but they do
    in it.
    """
    new = in_lanes("""\
%a: f32 = load @x.flat[%at]
%h: i32 = load @k.flat[%at]
%e: f32, %f: f32 = for reverse %j: i32 in 0i32 .. %h carrying %v: f32 = %a, %c: f32 = 0.0f32:
  %u: f32 = mul %v, %v
  %d: f32 = add %c, %u
  yield %u, %d
store @y.flat[%at], %f
""")
    selected = [op for op in walk(new.region) if isinstance(op, Prim) and op.prim is p.select]
    assert [op.args[1].name for op in selected if isinstance(op.args[1], Var)] == ["h", "u", "d"]


def test_lanes_with_the_same_first_index_count_together() -> None:
    becomes(
        """\
%h: i32 = load @k.flat[%at]
%r: f32 = for %j: i32 in 0i32 .. %h carrying %s: f32 = 0.0f32:
  %o: i64 = cast %j
  %p: i64 = mul %o, 4i64
  %a: f32 = load @x.flat[%p]
  %t: f32 = add %s, %a
  yield %t
store @y.flat[%at], %r
""",
        """\
%h: i32x4 = load @k.flat[%at] where %m
%z: f32x4 = broadcast 0.0f32
%1: i32x4 = select %m, %h, -2147483648i32
%2: i32 = reduce max %1
%r: f32x4 = for %j: i32 in 0i32 .. %2 carrying %s: f32x4 = %z:
  %3: u1x4 = lt %j, %h
  %on: u1x4 = and %m, %3
  %o: i64 = cast %j
  %p: i64 = mul %o, 4i64
  %a: f32 = load @x.flat[%p]
  %t: f32x4 = add %s, %a
  %u: f32x4 = select %on, %t, %s
  yield %u
store @y.flat[%at] where %m, %r
""",
    )


def test_lanes_that_begin_elsewhere_count_from_there() -> None:
    new = in_lanes("""\
%r: f32 = for %j: i32 in %i .. %n carrying %s: f32 = 0.0f32:
  %o: i64 = cast %j
  %p: i64 = mul %o, 4i64
  %a: f32 = load @x.flat[%p]
  %t: f32 = add %s, %a
  yield %t
store @y.flat[%at], %r
""")
    # Element j of each lane: consecutive ones.
    assert "load @x.flat[%p] where" in show(new) and "ramp" in show(new)


def test_what_all_add_to_one_element_is_summed_up_first() -> None:
    becomes(
        """\
%a: f32 = load @x.flat[%at]
atomic add @y.flat[0i64], %a
""",
        """\
%a: f32x4 = load @x.flat[%at] where %m
%1: f32x4 = select %m, %a, -0.0f32
%2: f32 = reduce add %1
atomic add @y.flat[0i64], %2
""",
    )


def test_updates_that_meet_nobody_are_made_side_by_side() -> None:
    becomes(
        """\
atomic plain mul @y.flat[%at], 2.0f32
""",
        """\
%v: f32x4 = broadcast 2.0f32
%o: f32x4 = load @y.flat[%at] where %m
%p: f32x4 = mul %o, %v
store @y.flat[%at] where %m, %p
""",
    )


def test_updates_that_may_meet_are_made_one_after_the_other() -> None:
    becomes(
        """\
%k: i32 = load @k.flat[%at]
%f: i64 = cast %k
atomic plain add @k.flat[%f], 7i32
""",
        """\
%k: i32x4 = load @k.flat[%at] where %m
%f: i64x4 = cast %k
for %l: i32 in 0i32 .. 4i32:
  %on: u1 = extract %m, %l
  if %on:
    %o: i64 = extract %f, %l
    atomic plain add @k.flat[%o], 7i32
""",
    )


def test_a_stack_has_a_row_of_lanes_for_each_push() -> None:
    becomes(
        """\
%h: i32 = load @k.flat[%at]
%n8: i64 = cast %h
%s: stack f32 = stack %n8
%a: f32 = load @x.flat[%at]
%r: f32 = for %j: i32 in 0i32 .. %h carrying %v: f32 = %a:
  push %s, %v
  %u: f32 = sin %v
  yield %u
%d: f32 = for reverse %l: i32 in 0i32 .. %h carrying %e: f32 = %r:
  %p: f32 = pop %s
  %q: f32 = mul %e, %p
  yield %q
store @y.flat[%at], %d
""",
        """\
%h: i32x4 = load @k.flat[%at] where %m
%n8: i64x4 = cast %h
%b: i64x4 = select %m, %n8, 0i64
%c: i64 = reduce max %b
%s: stack f32x4 = stack %c
%a: f32x4 = load @x.flat[%at] where %m
%1: i32x4 = select %m, %h, -2147483648i32
%2: i32 = reduce max %1
%r: f32x4 = for %j: i32 in 0i32 .. %2 carrying %v: f32x4 = %a:
  %3: u1x4 = lt %j, %h
  %4: u1x4 = and %m, %3
  push %s, %v
  %u: f32x4 = sin %v
  %5: f32x4 = select %4, %u, %v
  yield %5
%6: i32x4 = select %m, %h, -2147483648i32
%7: i32 = reduce max %6
%d: f32x4 = for reverse %l: i32 in 0i32 .. %7 carrying %e: f32x4 = %r:
  %8: u1x4 = lt %l, %h
  %9: u1x4 = and %m, %8
  %p: f32x4 = pop %s
  %q: f32x4 = mul %e, %p
  %t: f32x4 = select %9, %q, %e
  yield %t
store @y.flat[%at] where %m, %d
""",
    )


def test_checks_hold_for_lanes_that_are_not_there() -> None:
    becomes(
        """\
%k: i32 = load @k.flat[%at]
%c: u1 = lt %k, 64i32
check bounds "x" %c, %k, 64i32
""",
        """\
%k: i32x4 = load @k.flat[%at] where %m
%c: u1x4 = lt %k, 64i32
%1: u1x4 = not %m
%2: u1x4 = or %1, %c
check bounds "x" %2, %k, 64i32
""",
    )


def test_a_check_names_the_first_lane_that_fails() -> None:
    body = """\
%k: i32 = load @k.flat[%at]
%c: u1 = lt %k, 64i32
check bounds "x" %c, %k, 64i32
"""
    fn = in_lanes(body)
    memory = DictMemory({b: [0, 5, 70, 80, 90] + [0] * 59 for b in buffers_of(fn)})
    interpret(fn, (2,), memory)  # what is out of range is not looked at
    with pytest.raises(KernelIndexError, match="index 70 is"):
        interpret(fn, (5,), memory)


REFUSED = {
    "print %i": "it prints",
    """\
%s: stack i32 = stack
push %s, %i
%r: i32 = while carrying %v: i32 = %i:
  %c: u1 = gt %v, 0i32
  yield %c
do %v2: i32:
  %p: i32 = pop %s
  %q: i32 = sub %p, 1i32
  push %s, %q
  yield %q
""": "in another order than that of a reverse sweep",
    "%h: i32 = load @k.flat[%at]\n%v: u64 = cast %h\nfor %j: u64 in 0u64 .. %v:\n  store @k.flat[0i64], 1i32": "in u64",
}


@pytest.mark.parametrize("body", REFUSED)
def test_refusals(body: str) -> None:
    said: list[Remark] = []
    stays(lambda fn: vectorise(fn, FOUR, said.append, always=True), scalar(body), Form.LOWERED)
    (remark,) = said
    assert REFUSED[body] in remark.text and not remark.done


def test_each_lane_has_its_own_local_array() -> None:
    becomes(
        """\
%c: ref f32[2, 3] = local
%a: f32 = load @x.flat[%at]
%k: i32 = load @k.flat[%at]
set %c[1i32, 2i32], %a
%t: u1 = lt %k, 2i32
if %t:
  set %c[%k, 1i32], %a
  store @y.flat[0i64], %a
%b: f32 = get %c[%n, %k]
store @y.flat[%at], %b
""",
        """\
%c: tile f32x4 = local 24i64
%a: f32x4 = load @x.flat[%at] where %m
%k: i32x4 = load @k.flat[%at] where %m
set %c[20i64], %a
%t: u1x4 = lt %k, 2i32
%on: u1x4 = and %m, %t
%some: u1 = reduce or %on
if %some:
  %k1: i64x4 = cast %k
  %k2: i64x4 = max %k1, 0i64
  %k3: i64x4 = min %k2, 1i64
  %k4: i64x4 = mul %k3, 3i64
  %k5: i64x4 = add %k4, 1i64
  %k6: i64x4 = mul %k5, 4i64
  %h: f32x4 = get %c[%k6]
  %s: f32x4 = select %on, %a, %h
  set %c[%k6], %s
  %z: i64x4 = broadcast 0i64
  store @y.flat[%z] where %on, %a
%n1: i64 = cast %n
%n2: i64 = max %n1, 0i64
%n3: i64 = min %n2, 1i64
%p1: i64x4 = cast %k
%p2: i64x4 = max %p1, 0i64
%p3: i64x4 = min %p2, 2i64
%n4: i64 = mul %n3, 3i64
%p4: i64x4 = add %n4, %p3
%p5: i64x4 = mul %p4, 4i64
%b: f32x4 = get %c[%p5]
store @y.flat[%at] where %m, %b
""",
    )


def test_an_array_that_is_local_outside_of_a_loop_is_read_at_the_same_place() -> None:
    text = """\
func f(%n: i32):
  task serial:
    %c: ref f32[4] = local
    for parallel %i: i32 in 0i32 .. %n:
      %w: i64 = cast %i
      %at: i64 = mul %w, 4i64
      %a: f32 = get %c[{}]
      store @y.flat[%at], %a
"""
    stays(lambda fn: vectorise(fn, FOUR, always=True), FIELDS + text.format("%i"), Form.LOWERED)
    new = vectorise(parse(FIELDS + text.format("%n")), FOUR, always=True)
    verify(new, Form.LOWERED)
    assert "get %c[%n]" in show(new) and "where %mask" in show(new)


def test_old_values_come_lane_by_lane() -> None:
    becomes(
        """\
%o: i32 = atomic add @k.flat[0i64], 2i32
%p: i32 = atomic plain add @k.flat[%at], %o
store @k.flat[%at], %p
""",
        """\
%zero: i32x4 = broadcast 0i32
%o: i32x4 = for %lane: i32 in 0i32 .. 4i32 carrying %c: i32x4 = %zero:
  %on: u1 = extract %m, %lane
  %f: i32 = if %on:
    %old: i32 = atomic add @k.flat[0i64], 2i32
    yield %old
  else:
    yield 0i32
  %numbers: i32x4 = ramp 0i32, 1i32
  %this: u1x4 = eq %numbers, %lane
  %b: i32x4 = broadcast %f
  %r: i32x4 = select %this, %b, %c
  yield %r
%p: i32x4 = load @k.flat[%at] where %m
%q: i32x4 = add %p, %o
store @k.flat[%at] where %m, %q
store @k.flat[%at] where %m, %p
""",
    )


# Rows, and private copies


ROWS = """\
buffer @a: f64 {a}
buffer @a.flat: f64 {kind} (?) flat @a
buffer @g: f64 {kind} ({many}, 3)
buffer @g.flat: f64 {kind} (?) flat @g
"""


def nest(head: str, body: str, **shapes: str) -> str:
    """A task over 0 .. %n and in it a loop over 0 .. 3, with the offset %p of element [%i, %j] of @g."""
    lines = f"""\
func f(%n: i32):
  task parallel %i: i32 in 0i32 .. %n:
    %w: i64 = cast %i
    %at: i64 = mul %w, 24i64
{head}    for %j: i32 in 0i32 .. 3i32:
      %o: i64 = cast %j
      %s: i64 = mul %o, 8i64
      %p: i64 = add %at, %s
{body}"""
    return ROWS.format(**{"a": "field (64, 3)", "kind": "field", "many": "64", **shapes}) + lines


def test_rows_are_transposed_once() -> None:
    """Those that change are written back; an element under a condition keeps what lanes that are out of it have."""
    before = nest(
        "    %c: u1 = lt %w, 9i64\n",
        """\
      %b: f64 = load @a.flat[%p]
      atomic plain add @g.flat[%p], %b
      if %c:
        store @g.flat[%p], 1.0f64
""",
    )
    after = """\
  task parallel %i: i32, %m: u1x4 in 0i32 .. %n:
    %0: i64 = cast %i
    %1: i64 = mul %0, 24i64
    %a: tile f64x4 = load tile @a.flat[%1] by 24i64, 24i64 where %m
    %2: i64 = cast %i
    %3: i64 = mul %2, 24i64
    %g: tile f64x4 = load tile @g.flat[%3] by 24i64, 24i64 where %m
    %w: i64 = cast %i
    %at: i64 = mul %w, 24i64
    %r: i32x4 = ramp %i, 1i32
    %l: i64x4 = cast %r
    %c: u1x4 = lt %l, 9i64
    for %j: i32 in 0i32 .. 3i32:
      %o: i64 = cast %j
      %s: i64 = mul %o, 8i64
      %p: i64 = add %at, %s
      %4: i64 = sub %p, %1
      %b: f64x4 = get %a[%4]
      %5: i64 = sub %p, %3
      %6: f64x4 = get %g[%5]
      %7: f64x4 = add %6, %b
      set %g[%5], %7
      %8: u1x4 = and %m, %c
      %9: u1 = reduce or %8
      if %9:
        %11: i64 = sub %p, %3
        %12: f64x4 = get %g[%11]
        %10: f64x4 = broadcast 1.0f64
        %13: f64x4 = select %8, %10, %12
        set %g[%11], %13
    store tile @g.flat[%3] by 24i64, 24i64 where %m, %g
"""
    fn = parse(before)
    verify(fn, Form.LOWERED)
    new = vectorise(fn, Machine(256, registers=0), always=True)
    verify(new, Form.LOWERED)
    head = before.partition("  task")[0]
    wanted = parse(head + after)
    assert equal(new, wanted), f"\n{show(new)}\ninstead of\n{show(wanted)}"


#: What one iteration does to rows of @a and @g, and what stands in their way: then elements are gathered.
NO_TILE = {
    "the loop does not walk the row": "%b: f64 = load @a.flat[%at]\nstore @g.flat[%p], %b",
    "another row is written too": "%q: i64 = add %p, 24i64\n%b: f64 = load @a.flat[%p]\n"
    "atomic plain add @a.flat[%q], %b",
    "another element is written": "%b: f64 = load @a.flat[%p]\nstore @a.flat[0i64], %b",
    "the row before": "%q: i64 = sub %p, 24i64\n%b: f64 = load @a.flat[%q]\nstore @g.flat[0i64], %b",
    "the old value is wanted": "%b: f64 = atomic add @a.flat[%p], 1.0f64\nstore @g.flat[0i64], %b",
    "threads may meet": "atomic add @a.flat[%p], 1.0f64",
    "not for certain": "%t: u1 = lt %j, 1i32\nif %t:\n  %b: f64 = load @a.flat[%p]\n  store @g.flat[0i64], %b",
}


@pytest.mark.parametrize("why", NO_TILE)
def test_what_is_no_row_has_no_tile(why: str) -> None:
    fn = parse(nest("", "".join([f"      {line}\n" for line in NO_TILE[why].split("\n")])))
    (task,) = fn.region.body
    assert isinstance(task, Task)
    tiles = choose_tiles(task, Divergence(task), definitions(fn.region))
    assert "a" not in {root_of(tile.buffer).name for tile in tiles.values()}


@pytest.mark.parametrize(
    ("index", "tiled"), [("add %i, 0i32", False), ("add %i, 1i32", False), ("sub %i, 1i32", False)]
)
@pytest.mark.parametrize("rank", [2, 3])
def test_rows_whose_length_is_known_at_launch(rank: int, index: str, tiled: bool) -> None:
    """Those of the loop's own index, and no others."""
    for first, found in (("%i", True), ("%f", tiled)):
        text = f"""\
buffer @x: f64 array (?, ?{", 2" * (rank - 2)}) noalias
buffer @x.flat: f64 array (?) flat @x
buffer @y: f64 field (64)
buffer @y.flat: f64 field (?) flat @y
func f(%n: i32):
  task parallel %i: i32 in 0i32 .. %n:
    %f: i32 = {index}
    %e: i32 = extent @x, 1
    %d: i64 = cast %e
    %w: i64 = cast {first}
    %r: i64 = mul %w, %d
    for %j: i32 in 0i32 .. %e:
      for %c: i32 in 0i32 .. 2i32:
        %o: i64 = cast %j
        %p: i64 = add %r, %o
        %q: i64 = cast %c
        %u: i64 = mul %p, {2 if rank == 3 else 1}i64
        %v: i64 = add %u, {"%q" if rank == 3 else "0i64"}
        %at: i64 = mul %v, 8i64
        %a: f64 = load @x.flat[%at]
        atomic add @y.flat[0i64], %a
"""
        fn = parse(text)
        verify(fn, Form.LOWERED)
        (task,) = fn.region.body
        assert isinstance(task, Task)
        made = definitions(fn.region)
        tiles = choose_tiles(task, Divergence(task, made), made)
        assert bool(tiles) == (found and rank == 2)


@pytest.mark.parametrize(("inner", "tiled"), [("%zero", False), ("1i64", False), (None, True)])
def test_places_behind_an_index_in_the_middle_are_in_no_tile(inner: str | None, tiled: bool) -> None:
    """Where extents are known at launch only, nothing says how far `x[i, 1, 0]` lies from `x[i, 0, 0]`."""
    middle = "%row" if inner is None else "%first"
    added = "" if inner is None else f"    %first: i64 = add %row, {inner}\n"
    text = f"""\
buffer @x: i64[2] array (?, ?, ?) noalias
buffer @x.flat: i64 array (?) flat @x
buffer @y: i64 field (64)
buffer @y.flat: i64 field (?) flat @y
func f(%n: i32, %zero: i64):
  task parallel %i: i32 in 0i32 .. %n:
    %d: i32 = extent @x, 1
    %e: i32 = extent @x, 2
    %dw: i64 = cast %d
    %ew: i64 = cast %e
    %w: i64 = cast %i
    %row: i64 = mul %w, %dw
{added}    %p: i64 = mul {middle}, %ew
    %q: i64 = mul %p, 16i64
    %a: i64 = load @x.flat[%q]
    %r: i64 = mul %row, %ew
    %s: i64 = mul %r, 16i64
    %t: i64 = add %s, 8i64
    %b: i64 = load @x.flat[%t]
    %c: i64 = mul %a, %b
    atomic add @y.flat[0i64], %c
"""
    fn = parse(text)
    verify(fn, Form.LOWERED)
    (task,) = fn.region.body
    assert isinstance(task, Task)
    made = definitions(fn.region)
    assert bool(choose_tiles(task, Divergence(task, made), made)) == tiled


def test_arrays_that_may_meet_have_tiles_only_if_none_is_written() -> None:
    body = "      %b: f64 = load @a.flat[%p]\n      %d: f64 = load @g.flat[%p]\n      %e: f64 = add %b, %d\n"
    for shape, store, named in (
        ("array (64, 3)", "", ["a", "g"]),
        ("array (64, 3)", "      store @g.flat[%p], %e\n", []),
        ("array (64, 3) noalias", "      store @g.flat[%p], %e\n", ["a", "g"]),
    ):
        fn = parse(nest("", body + store, a=shape, kind="array"))
        (task,) = fn.region.body
        assert isinstance(task, Task)
        tiles = choose_tiles(task, Divergence(task), definitions(fn.region))
        assert sorted({root_of(tile.buffer).name for tile in tiles.values()}) == named


def test_the_outer_of_two_loops_runs_in_lanes_where_accesses_suit_that() -> None:
    """Its rows become tiles; what is the same for all lanes is loaded once; adjoints of it are added in columns."""
    text = """\
buffer @x: f64 field (512, 16)
buffer @x.flat: f64 field (?) flat @x
buffer @q: f64 field (20, 16)
buffer @q.flat: f64 field (?) flat @q
buffer @g: f64 field (20, 16)
buffer @c: f64 private (20, 16)
buffer @c.flat: f64 private (?) flat @c
func f():
  task parallel %i: i32 in 0i32 .. 512i32:
    private add @c of @g
    %w: i64 = cast %i
    %at: i64 = mul %w, 128i64
    for parallel %k: i32 in 0i32 .. 20i32:
      %u: i64 = cast %k
      %v: i64 = mul %u, 128i64
      for %j: i32 in 0i32 .. 16i32:
        %o: i64 = cast %j
        %s: i64 = mul %o, 8i64
        %p: i64 = add %at, %s
        %a: f64 = load @x.flat[%p]
        %r: i64 = add %v, %s
        %b: f64 = load @q.flat[%r]
        %d: f64 = mul %a, %b
        atomic plain add @c.flat[%r], %d
"""
    fn = parse(text)
    verify(fn, Form.LOWERED)
    new = vectorise(fn, WIDE)
    verify(new, Form.LOWERED)
    (task,) = new.region.body
    assert isinstance(task, Task) and lanes_of(task) == 8
    (private,) = task.privates
    assert (private.copy.shape, private.lanes) == ((20, 16, 8), 8)
    inside = [*walk(task.body)]
    assert sum(isinstance(op, LoadTile) for op in inside) == 1
    assert not any(isinstance(op, Atomic | Reduce) for op in inside)
    assert not any(isinstance(op, For) and op.parallel for op in inside)


#: Bytes from one iteration of the outer loop, of the inner one, and of the four in it to the next; how many iterations
#: the outer one has; and whether it runs in lanes. Otherwise LLVM has the inner one in vectors.
NESTS = {
    "rows": (4096, 4, 4, 1024, False),
    "sums over rows": (4096, 4, 4096, 1024, False),
    "rows of pairs, a power of two apart": (8192, 8, 8192, 1024, False),
    "columns": (4, 4096, 4, 1024, True),
    "sums over columns": (4, 4096, 4096, 1024, True),
    "columns of pairs": (8, 8192, 8, 1024, True),
    "few columns": (4, 4096, 4, 32, True),
    "fewer columns than lanes": (4, 4096, 4, 12, False),
}


@pytest.mark.parametrize("nest", NESTS)
def test_the_loop_with_the_nearest_accesses_runs_in_lanes(nest: str) -> None:
    outer, inner, innermost, count, in_lanes = NESTS[nest]
    fn = parse(f"""\
buffer @x: f32 field (1024, 2048)
buffer @x.flat: f32 field (?) flat @x
buffer @y: f32 field (1024, 2048)
buffer @y.flat: f32 field (?) flat @y
func f():
  task parallel %i: i32 in 0i32 .. {count}i32:
    %a: i64 = cast %i
    %b: i64 = mul %a, {outer}i64
    for parallel %k: i32 in 0i32 .. 1000i32:
      %c: i64 = cast %k
      %d: i64 = mul %c, {inner}i64
      %e: i64 = add %b, %d
      %r: f32 = for %q: i32 in 0i32 .. 4i32 carrying %s: f32 = 0.0f32:
        %f: i64 = cast %q
        %g: i64 = mul %f, {innermost}i64
        %h: i64 = add %e, %g
        %l: f32 = load @x.flat[%h]
        %t: f32 = add %s, %l
        yield %t
      store @y.flat[%e], %r
""")
    verify(fn, Form.LOWERED)
    new = vectorise(fn, WIDE)
    (task,) = new.region.body
    assert isinstance(task, Task) and (lanes_of(task) > 1) == in_lanes
    assert in_lanes or new is fn or not any(lanes_of(op) > 1 for op in walk(task.body) if isinstance(op, For))


def test_copies_that_are_too_large_have_no_columns() -> None:
    """Nor have those of which each lane has elements of its own."""
    text = """\
buffer @x: f64 field (64)
buffer @x.flat: f64 field (?) flat @x
buffer @g: f64 field ({n})
buffer @c: f64 private ({n})
buffer @c.flat: f64 private (?) flat @c
func f():
  task parallel %i: i32 in 0i32 .. 64i32:
    private add @c of @g
    %w: i64 = cast %i
    %at: i64 = mul %w, 8i64
    %a: f64 = load @x.flat[%at]
    atomic plain add @c.flat[{place}], %a
"""
    for n, place, lanes in ((60, "0i64", 4), (1 << 17, "0i64", 1), (64, "%at", 1)):
        fn = parse(text.format(n=n, place=place))
        verify(fn, Form.LOWERED)
        new = vectorise(fn, Machine(256, registers=0), always=True)
        verify(new, Form.LOWERED)
        (task,) = new.region.body
        assert isinstance(task, Task) and [private.lanes for private in task.privates] == [lanes]


def test_lanes_with_large_columns_fill_one_register() -> None:
    """A sum over all others that also adds to each of them, as the gradient of a sum over all pairs does."""
    text = """\
buffer @x: f32 field ({n})
buffer @x.flat: f32 field (?) flat @x
buffer @g: f32 field ({n})
buffer @c: f32 private ({n})
buffer @c.flat: f32 private (?) flat @c
func f():
  task parallel %i: i32 in 0i32 .. {n}i32:
    private add @c of @g
    %w: i64 = cast %i
    %at: i64 = mul %w, 4i64
    %a: f32 = load @x.flat[%at]
    %s: f32 = for %j: i32 in 0i32 .. {n}i32 carrying %t: f32 = 0.0f32:
      %u: i64 = cast %j
      %r: i64 = mul %u, 4i64
      %b: f32 = load @x.flat[%r]
      %d: f32 = sub %a, %b
      %e: f32 = mul %d, %d
      atomic plain add @c.flat[%r], %e
      %v: f32 = add %t, %e
      yield %v
    store @x.flat[%at], %s
"""
    for n, lanes in ((256, 64), (512, 64), (1024, 32), (2048, 16), (8192, 16)):
        fn = parse(text.format(n=n))
        verify(fn, Form.LOWERED)
        (task,) = vectorise(fn, WIDE).region.body
        assert isinstance(task, Task) and lanes_of(task) == lanes
        assert [private.lanes for private in task.privates] == [lanes]


#: Bodies, and why they stay as they are on a machine with vectors of 512 bits; empty: they run in lanes.
ESTIMATED = {
    # An escape time, as of a Julia set.
    """\
%a: f32 = load @x.flat[%at]
%q: f32, %r: f32 = while carrying %v: f32 = %a, %c: f32 = 0.0f32:
  %s: f32 = mul %v, %v
  %t: u1 = lt %s, 9.0f32
  yield %t
do %v2: f32, %c2: f32:
  %u: f32 = mul %v2, %v2
  %w2: f32 = sub %u, 0.8f32
  %d: f32 = add %c2, 1.0f32
  yield %w2, %d
store @y.flat[%at], %r
""": "",
    # A recurrence with a function: LLVM runs it one number at a time.
    """\
%a: f32 = load @x.flat[%at]
%r: f32 = for %j: i32 in 0i32 .. 24i32 carrying %v: f32 = %a:
  %s: f32 = sin %v
  yield %s
store @y.flat[%at], %r
""": "",
    # A column of numbers: those of neighbouring lanes are neighbours, those of an iteration are not.
    """\
%r: f32 = for %j: i32 in 0i32 .. 60i32 carrying %v: f32 = 0.0f32:
  %o: i64 = cast %j
  %p: i64 = mul %o, 64i64
  %q: i64 = add %p, %at
  %b: f32 = load @x.flat[%q]
  %s: f32 = add %v, %b
  yield %s
store @y.flat[%at], %r
""": "",
    # The nearest of some rows: what a lane gathers is gathered once, for the inner loop is written out.
    """\
%h: i64 = mul %w, 32i64
%r: f32 = for %j: i32 in 0i32 .. 100i32 carrying %b: f32 = 9.0f32:
  %o: i64 = cast %j
  %p: i64 = mul %o, 32i64
  %s: f32 = for %l: i32 in 0i32 .. 8i32 carrying %t: f32 = 0.0f32:
    %u: i64 = cast %l
    %v: i64 = mul %u, 4i64
    %d: i64 = add %h, %v
    %e: f32 = load @x.flat[%d]
    %g: i64 = add %p, %v
    %q: f32 = load @x.flat[%g]
    %y: f32 = sub %e, %q
    %z: f32 = mul %y, %y
    %aa: f32 = add %t, %z
    yield %aa
  %ab: f32 = min %b, %s
  yield %ab
store @y.flat[%at], %r
""": "",
    "%a: f32 = load @x.flat[%at]\n%b: f32 = sin %a\nstore @y.flat[%at], %b": "left to LLVM",
    # Three iterations are written out.
    """\
%r: f32 = for %j: i32 in 0i32 .. 3i32 carrying %v: f32 = 1.0f32:
  %s: f32 = sin %v
  yield %s
store @y.flat[%at], %r
""": "left to LLVM",
    # A row of numbers is summed up by LLVM, several at once.
    """\
%p: i64 = mul %w, 64i64
%r: f32 = for %j: i32 in 0i32 .. 60i32 carrying %v: f32 = 0.0f32:
  %o: i64 = cast %j
  %q: i64 = mul %o, 4i64
  %e: i64 = add %p, %q
  %b: f32 = load @x.flat[%e]
  %s: f32 = add %v, %b
  yield %s
store @y.flat[%at], %r
""": "estimated to be as fast",
    # Scattered accesses and a function without a vector form outweigh the rest.
    """\
%r: f32 = for %j: i32 in 0i32 .. 60i32 carrying %v: f32 = 0.0f32:
  %k: i32 = load @k.flat[%at]
  %o: i64 = cast %k
  %b: f32 = load @x.flat[%o]
  %t: f32 = pow %v, %b
  yield %t
store @y.flat[%at], %r
""": "estimated to be as fast",
}


@pytest.mark.parametrize("body", ESTIMATED, ids=[str(k) for k in range(len(ESTIMATED))])
def test_what_pays(body: str) -> None:
    fn = parse(scalar(body))
    said: list[Remark] = []
    (task,) = vectorise(fn, WIDE, said.append).region.body
    (remark,) = said
    assert isinstance(task, Task)
    assert (lanes_of(task) > 1) == remark.done == (not ESTIMATED[body])
    assert (ESTIMATED[body] or f"vectorised ×{lanes_of(task)}") in remark.text
    assert vectorise(fn, Machine(128)) is fn


#: Ten sines, one of the other.
LONG = "sin %c2\n" + "".join([f"      %z{k}: f32 = sin %z{k - 1 if k else ''}\n" for k in range(9)]) + "      "


def test_sums_keep_their_order_without_fast_maths() -> None:
    text = scalar("%a: f32 = load @x.flat[%at]\natomic add @y.flat[0i64], %a")
    strict = Machine(512, fast_math=False)
    stays(lambda fn: vectorise(fn, strict, always=True), text, Form.LOWERED)
    scattered = scalar("%a: f32 = load @x.flat[%at]\n%z: i64 = min %at, 8i64\natomic add @y.flat[%z], %a")
    stays(lambda fn: vectorise(fn, strict, always=True), scattered, Form.LOWERED)
    largest = parse(text.replace("atomic add", "atomic max"))
    assert vectorise(largest, strict, always=True) is not largest


def test_deep_stacks_stay_scalar() -> None:
    chain = """\
%s: stack f32 = stack 20000i64
%r: f32 = for %j: i32 in 0i32 .. 20000i32 carrying %v: f32 = 1.0f32:
  push %s, %v
  %u: f32 = sin %v
  yield %u
store @y.flat[%at], %r
"""
    stays(lambda fn: vectorise(fn, WIDE), scalar(chain), Form.LOWERED)
    fn = parse(scalar(chain.replace("20000", "200")))
    assert vectorise(fn, WIDE) is not fn


def test_very_long_iterations_stay_scalar() -> None:
    chain = scalar(next(iter(ESTIMATED)))
    stays(lambda fn: vectorise(fn, WIDE), longer(chain, 500), Form.LOWERED)
    assert vectorise(fn := parse(longer(chain, 50)), WIDE) is not fn


def test_few_iterations_stay_scalar() -> None:
    text = scalar(next(iter(ESTIMATED))).replace("0i32 .. %n", "0i32 .. 9i32")
    stays(lambda fn: vectorise(fn, WIDE), text, Form.LOWERED)
    fn = parse(text.replace("9i32", "48i32"))
    assert vectorise(fn, WIDE) is not fn


def test_how_many_lanes_there_are() -> None:
    """A register of the widest numbers, and several of them for short chains of operations, or for a few iterations."""
    chain, straight = scalar(next(iter(ESTIMATED))), scalar("store @y.flat[%at], 1.0f32")
    for text, lanes in (
        (straight, 16),
        (doubles(straight), 8),
        (chain, 64),
        (doubles(chain), 32),
        (chain.replace("0i32 .. %n", "0i32 .. 50i32"), 64),
        (chain.replace("0i32 .. %n", "0i32 .. 48i32"), 32),
        (longer(chain, 9).replace("0i32 .. %n", "0i32 .. 28i32"), 32),
        (longer(chain, 9).replace("0i32 .. %n", "0i32 .. 56i32"), 64),
        (longer(chain, 9).replace("0i32 .. %n", "0i32 .. 65i32"), 16),
        (longer(chain, 4), 32),
        (longer(chain, 9), 16),
    ):
        (task,) = vectorise(parse(text), WIDE, always=True).region.body
        assert isinstance(task, Task) and lanes_of(task) == lanes, text


def doubles(text: str) -> str:
    return text.replace("f32", "f64").replace("%w, 4i64", "%w, 8i64")


def longer(text: str, sines: int) -> str:
    """The chain with sines, one of the other."""
    lines = [f"%z{k}: f32 = sin %{f'z{k - 1}' if k else 'c2'}\n      " for k in range(sines)]
    return text.replace("%d: f32 = add %c2,", f"{''.join(lines)}%d: f32 = add %z{sines - 1},")
