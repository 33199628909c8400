"""Offloading: what becomes a task, and how values get from one task to another."""

from __future__ import annotations

import pytest

from tests.passes.support import becomes, stays
from tinote.compiler.passes.lowering.offload import offload
from tinote.ir.interpret import interpret
from tinote.ir.memory import DictMemory
from tinote.ir.nodes import Task
from tinote.ir.parse import parse
from tinote.ir.verify import Form


def offloads(before: str, after: str) -> None:
    becomes(offload, before, after, Form.SCALAR, Form.TASKS)


def test_loops_and_what_stands_between_them() -> None:
    offloads(
        """\
buffer @x: f32 field (8)
func f(%n: i32):
  store @x[0i32], 1.0f32
  store @x[1i32], 2.0f32
  for parallel %i: i32 in 0i32 .. %n:
    store @x[%i], 3.0f32
  for %k: i32 in 0i32 .. %n:
    store @x[%k], 4.0f32
  for parallel %j: i64 in 2i64 .. 4i64:
    store @x[%j], 5.0f32
""",
        """\
buffer @x: f32 field (8)
func f(%n: i32):
  task serial:
    store @x[0i32], 1.0f32
    store @x[1i32], 2.0f32
  task parallel %i: i32 in 0i32 .. %n:
    store @x[%i], 3.0f32
  task serial:
    for %k: i32 in 0i32 .. %n:
      store @x[%k], 4.0f32
  task parallel %j: i64 in 2i64 .. 4i64:
    store @x[%j], 5.0f32
""",
    )


def test_values_cross_through_temporaries() -> None:
    """A loaded value: into a loop, its bounds, a later serial piece, and the result."""
    offloads(
        """\
buffer @x: f32 field (8)
buffer @n: i32 field ()
func f():
  %n: i32 = load @n[]
  %s: f32 = load @x[%n]
  for parallel %i: i32 in %n .. 8i32:
    store @x[%i], %s
  store @n[], %n
  return %s
""",
        """\
buffer @n: i32 field ()
buffer @x: f32 field (8)
buffer @s: f32 temporary ()
buffer @n.1: i32 temporary ()
func f():
  task serial:
    %n: i32 = load @n[]
    %s: f32 = load @x[%n]
    store @n.1[], %n
    store @s[], %s
  %lo: i32 = load @n.1[]
  task parallel %i: i32 in %lo .. 8i32:
    %t: f32 = load @s[]
    store @x[%i], %t
  task serial:
    %m: i32 = load @n.1[]
    store @n[], %m
  %r: f32 = load @s[]
  return %r
""",
    )


def test_cheap_arithmetic_on_parameters_is_repeated() -> None:
    """Nothing is stored for it, and no task is left that only computed it."""
    offloads(
        """\
buffer @x: f32 field (8)
func f(%a: f32):
  %b: f32 = mul %a, 2.0f32
  %c: f32 = add %b, 1.0f32
  for parallel %i: i32 in 0i32 .. 8i32:
    store @x[%i], %c
""",
        """\
buffer @x: f32 field (8)
func f(%a: f32):
  task parallel %i: i32 in 0i32 .. 8i32:
    %b: f32 = mul %a, 2.0f32
    %c: f32 = add %b, 1.0f32
    store @x[%i], %c
""",
    )


def test_expensive_arithmetic_is_done_once() -> None:
    offloads(
        """\
buffer @x: f32 field (8)
func f(%a: f32):
  %b: f32 = exp %a
  %c: f32 = sin %b
  for parallel %i: i32 in 0i32 .. 8i32:
    store @x[%i], %c
""",
        """\
buffer @c: f32 temporary ()
buffer @x: f32 field (8)
func f(%a: f32):
  task serial:
    %b: f32 = exp %a
    %c: f32 = sin %b
    store @c[], %c
  task parallel %i: i32 in 0i32 .. 8i32:
    %d: f32 = load @c[]
    store @x[%i], %d
""",
    )


def test_bounds_are_computed_before_the_loop() -> None:
    offloads(
        """\
buffer @x: f32 field (8)
func f(%n: i32):
  %m: i32 = mul %n, 2i32
  for parallel %i: i32 in 0i32 .. %m:
    store @x[%i], 1.0f32
  return 7i32
""",
        """\
buffer @m: i32 temporary ()
buffer @x: f32 field (8)
func f(%n: i32):
  task serial:
    %m: i32 = mul %n, 2i32
    store @m[], %m
  %hi: i32 = load @m[]
  task parallel %i: i32 in 0i32 .. %hi:
    store @x[%i], 1.0f32
  return 7i32
""",
    )


def test_tensors_cross_by_components() -> None:
    source = parse(
        """\
buffer @x: f32 field (3)
buffer @k: i32 field ()
func f():
  %k: i32 = load @k[]
  %a: f32 = load @x[0i32]
  %t: f32[3] = pack 1.0f32, %a, 3.0f32
  for parallel %i: i32 in 0i32 .. 3i32:
    %j: i32 = sub %k, %i
    %v: f32 = extract %t, %j
    store @x[%i], %v
"""
    )
    x, k = (op.buffer for op in reversed(source.region.body[:2]))  # type: ignore[attr-defined]
    memory = DictMemory({x: [5.0, 0.0, 0.0], k: 2})
    interpret(offload(source), (), memory)
    assert memory.nested(x) == [3.0, 5.0, 1.0]


def test_a_short_outer_loop_goes_inside() -> None:
    offloads(
        """\
buffer @x: f32 field (3, 4096)
func f():
  for parallel %i: i32 in 0i32 .. 3i32:
    for parallel %j: i32 in 0i32 .. 4096i32:
      store @x[%i, %j], 1.0f32
""",
        """\
buffer @x: f32 field (3, 4096)
func f():
  task parallel %j: i32 in 0i32 .. 4096i32:
    for parallel %i: i32 in 0i32 .. 3i32:
      store @x[%i, %j], 1.0f32
""",
    )


@pytest.mark.parametrize(
    "nest",
    [
        "for parallel %i: i32 in 0i32 .. 64i32:\n    for parallel %j: i32 in 0i32 .. 4096i32:\n"
        "      store @x[%i, %j], 1.0f32",
        "for parallel %i: i32 in 0i32 .. 3i32:\n    for parallel %j: i32 in 0i32 .. %i:\n"
        "      store @x[%i, %j], 1.0f32",
        "for parallel %i: i32 in 0i32 .. 8i32:\n    for parallel %j: i32 in 0i32 .. 2i32:\n"
        "      store @x[%i, %j], 1.0f32",
        "for parallel %i: i32 in 0i32 .. 3i32:\n    for %j: i32 in 0i32 .. 4096i32:\n      store @x[%i, %j], 1.0f32",
    ],
    ids=["long outer", "inner depends on outer", "inner shorter", "inner serial"],
)
def test_other_nests_stay_as_they_are(nest: str) -> None:
    head = "buffer @x: f32 field (64, 4096)\nfunc f():\n  "
    offloads(f"{head}{nest}\n", f"{head}{nest.replace('for parallel', 'task parallel', 1)}\n")


def test_what_is_offloaded_stays() -> None:
    stays(offload, "buffer @x: i32 field ()\nfunc f():\n  task serial:\n    store @x[], 1i32\n", Form.TASKS)
    stays(offload, "func f(%n: i32):\n  return %n\n", Form.TASKS)


@pytest.mark.parametrize(
    ("pushed", "parallel"),
    [
        ("1.0f32", [True, False]),  # The loop may run before.
        ("%a", [False]),  # It changes what is pushed, and becomes a part of the one task.
    ],
)
def test_a_stack_stays_in_one_task(pushed: str, parallel: list[bool]) -> None:
    text = f"""\
buffer @x: f32 field (8)
func f():
  %s: stack f32 = stack 8i64
  %a: f32 = load @x[0i32]
  push %s, {pushed}
  for parallel %i: i32 in 0i32 .. 8i32:
    store @x[%i], 1.0f32
  %v: f32 = pop %s
  return %v
"""
    if pushed != "%a":
        text = text.replace("  %a: f32 = load @x[0i32]\n", "")
    tasks = [op for op in offload(parse(text)).region.body if isinstance(op, Task)]
    assert [task.parallel for task in tasks] == parallel
