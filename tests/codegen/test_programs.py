"""Whole functions as machine code against the interpreter: control flow, memory, stacks, faults, prints, tasks."""

from __future__ import annotations

import math
import re

import pytest

from tests.codegen.native import agree, execute, located, lower, lowered, memory_of
from tinote.compiler.codegen.llvm.module import generate
from tinote.errors import (
    CompilerBug,
    KernelAssertionError,
    KernelIndexError,
    KernelMemoryError,
    KernelZeroDivisionError,
)
from tinote.ir.memory import DictMemory
from tinote.ir.parse import parse


@pytest.mark.parametrize(("lo", "hi"), [(0, 0), (0, 1), (3, 10), (5, 2), (-4, 4), (0, 100_000)])
@pytest.mark.parametrize("order", ["", "reverse "])
@pytest.mark.parametrize("t", ["i32", "i64"])
def test_serial_loop(lo: int, hi: int, order: str, t: str) -> None:
    """Carried values, strips of any length, empty ranges, both directions, bounds from arguments and literals."""
    if abs(hi - lo) > 1000:
        # The interpreter is slow; the value is known.
        text = f"""\
func f(%a: {t}, %b: {t}):
  %s: i64 = for {order}%i: {t} in %a .. %b carrying %t: i64 = 0i64:
    %w: i64 = cast %i
    %u: i64 = add %t, %w
    yield %u
  return %s
"""
        text = text.replace("    %w: i64 = cast %i\n", "").replace("%t, %w", "%t, %i") if t == "i64" else text
        assert execute(lowered(text), (lo, hi), DictMemory()) == (sum(range(lo, hi)),)
        return
    for a, b in (("%a", "%b"), (f"{lo}{t}", f"{hi}{t}")):
        agree(
            f"""\
func f(%a: {t}, %b: {t}):
  %s: {t}, %last: {t} = for {order}%i: {t} in {a} .. {b} carrying %t: {t} = 7{t}, %l: {t} = -1{t}:
    %x: {t} = mul %t, 3{t}
    %u: {t} = sub %x, %i
    yield %u, %i
  return %s, %last
""",
            (lo, hi),
        )


@pytest.mark.parametrize("t", ["u8", "i16", "u32", "u64"])
def test_loop_over_other_integers(t: str) -> None:
    high = {"u8": 255, "i16": 300, "u32": 300, "u64": 300}[t]
    agree(
        f"""\
func f(%n: {t}):
  %s: i64 = for %i: {t} in 2{t} .. %n carrying %t: i64 = 0i64:
    %w: i64 = cast %i
    %u: i64 = add %t, %w
    yield %u
  return %s
""",
        (high,),
    )


def test_unsigned_loop_at_the_far_end() -> None:
    top = 2**64 - 1
    text = """\
func f(%a: u64, %b: u64):
  %s: i32 = for %i: u64 in %a .. %b carrying %t: i32 = 0i32:
    %u: i32 = add %t, 1i32
    yield %u
  return %s
"""
    assert execute(lowered(text), (top - 5, top), DictMemory()) == (5,)
    assert execute(lowered(text), (top, 3), DictMemory()) == (0,)


def test_while_with_several_values() -> None:
    """Steps of the Collatz sequence; the outs are what was carried when the condition failed."""
    agree(
        """\
func steps(%n: i64):
  %k: i32, %last: i64 = while carrying %c: i32 = 0i32, %x: i64 = %n:
    %more: u1 = ne %x, 1i64
    yield %more
  do %d: i32, %y: i64:
    %r: i64 = mod %y, 2i64
    %odd: u1 = eq %r, 1i64
    %z: i64 = if %odd:
      %three: i64 = mul %y, 3i64
      %up: i64 = add %three, 1i64
      yield %up
    else:
      %half: i64 = floordiv %y, 2i64
      yield %half
    %e: i32 = add %d, 1i32
    yield %e, %z
  return %k, %last
""",
        (27,),
    )


def test_nested_loops_and_branches() -> None:
    agree(
        """\
buffer @x: i32 field (6, 5)
func nest(%n: i32):
  for parallel %i: i32 in 0i32 .. 6i32:
    for parallel %j: i32 in 0i32 .. 5i32:
      %v: i32 = for %k: i32 in %j .. %n carrying %s: i32 = %i:
        %far: u1 = gt %k, %i
        %w: i32 = if %far:
          %a: i32 = mul %s, %k
          yield %a
        else:
          %b: i32 = for %l: i32 in 0i32 .. %k carrying %c: i32 = %s:
            %d: i32 = add %c, %l
            yield %d
          yield %b
        yield %w
      %some: u1 = ge %v, 3i32
      if %some:
        store @x[%i, %j], %v
""",
        (7,),
        {"x": [[9] * 5] * 6},
    )


def test_values_go_from_task_to_task() -> None:
    agree(
        """\
buffer @x: f32 field (100)
buffer @n: i32 field ()
func chain(%a: f32):
  %n: i32 = load @n[]
  %m: i32 = mul %n, 2i32
  %r: f32 = load @x[3i32]
  %big: u1 = gt %r, 0.5f32
  for parallel %i: i32 in 0i32 .. %m:
    %v: f32 = load @x[%i]
    %w: f32 = add %v, %r
    %z: f32 = select %big, %w, %v
    store @x[%i], %z
  %s: f32 = load @x[4i32]
  for parallel %j: i32 in %n .. 100i32:
    store @x[%j], %s
  return %m, %s, %big, %a
""",
        (2.5,),
        {"x": [0.25 * k for k in range(100)], "n": 20},
    )


def test_arrays_known_at_launch_and_strides() -> None:
    agree(
        """\
buffer @a: f64[2] array (?, ?)
buffer @s: f32[3] field (7) strides (4) element_strides (28)
func shapes(%k: i32):
  %m: i32 = extent @a, 0
  %n: i32 = extent @a, 1
  for parallel %i: i32 in 0i32 .. %m:
    for parallel %j: i32 in 0i32 .. %n:
      %v: f64 = load @a[%i, %j][1i32]
      %w: f64 = add %v, 1.0f64
      store @a[%i, %j][0i32], %w
  for parallel %q: i32 in 0i32 .. 7i32:
    %c: f32 = load @s[%q][%k]
    store @s[%q][2i32], %c
""",
        (1,),
        {"a": [[[i, 10 * j] for j in range(5)] for i in range(3)], "s": [[k, 2 * k, 3 * k] for k in range(7)]},
    )


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("n", [0, 1, 5, 50_000])
def test_atomic_sum_of_integers(threads: int, n: int) -> None:
    text = """\
buffer @s: i64 field (3)
func f(%n: i32):
  for parallel %i: i32 in 0i32 .. %n:
    %w: i64 = cast %i
    atomic add @s[1i32], %w
    atomic max @s[2i32], %w
"""
    fn = lowered(text)
    memory = memory_of(fn, {"s": [1, 2, 3]})
    execute(fn, (n,), memory, threads=threads)
    (buffer,) = memory.cells
    assert memory.nested(buffer) == [1, 2 + n * (n - 1) // 2, max(3, n - 1)]


ATOMICS = [
    (prim, t)
    for t in ("f16", "f32", "f64", "i8", "i32", "i64", "u8", "u16", "u64")
    for prim in ("add", "mul", "min", "max", "and", "or", "xor")
    if not (t[0] == "f" and prim in ("and", "or", "xor"))
]


@pytest.mark.parametrize(("prim", "t"), ATOMICS)
def test_each_atomic_gives_the_old_value(prim: str, t: str) -> None:
    number = (lambda x: f"{x}.0{t}") if t[0] == "f" else (lambda x: f"{x}{t}")
    agree(
        f"""\
buffer @x: {t} field (2)
buffer @old: {t} field (2)
func f():
  for parallel %i: i32 in 0i32 .. 2i32:
    %o: {t} = atomic {prim} @x[%i], {number(3)}
    store @old[%i], %o
""",
        (),
        {"x": [5, 2]},
    )


def test_atomics_on_truth_values_and_nan() -> None:
    agree(
        """\
buffer @b: u1 field (4)
buffer @x: f32 field (2)
func f():
  atomic xor @b[0i32], true
  atomic and @b[1i32], true
  atomic or @b[2i32], true
  %o: u1 = atomic xor @b[3i32], true
  atomic min @x[0i32], 1.0f32
  atomic max @x[1i32], nan_f32
  %y: f32 = load @x[0i32]
  %z: f32 = load @x[1i32]
  %p: u1 = isnan %y
  %q: u1 = isnan %z
  store @x[0i32], 0.0f32
  store @x[1i32], 0.0f32
  return %o, %p, %q
""",
        (),
        {"b": [1, 1, 0, 1], "x": [math.nan, 2.0]},
    )


STACK = """\
buffer @x: f64 field (5000)
buffer @y: f64 field (5000)
func reversed(%n: i32):
  for parallel %i: i32 in 0i32 .. 3i32:
    {capacity}
    for %j: i32 in %i .. %n:
      %v: f64 = load @x[%j]
      push %s, %v
    for reverse %k: i32 in %i .. %n:
      %w: f64 = pop %s
      %l: i32 = sub %n, %k
      %m: i32 = sub %l, 1i32
      {where}
      store @y[%m], %w
"""


@pytest.mark.parametrize(
    "capacity",
    ["%s: stack f64 = stack", "%c: i64 = cast %n\n    %s: stack f64 = stack %c", "%s: stack f64 = stack 5000i64"],
)
@pytest.mark.parametrize("n", [0, 1, 1024, 5000])
def test_stack_returns_what_was_pushed(capacity: str, n: int) -> None:
    """Chained, sized at run time, and literal; past the size of a chunk. All iterations write the same."""
    agree(STACK.format(capacity=capacity, where="pass"), (n,), {"x": [0.5 * k for k in range(5000)]}, level=1)


def test_chained_stack_that_rises_and_falls_at_a_chunk_boundary() -> None:
    """Push 1,024, then take one and push two, again and again; a smaller stack comes and goes inside meanwhile."""
    agree(
        """\
buffer @sum: f64 field ()
func wave(%n: i32):
  %s: stack f64 = stack
  for %i: i32 in 0i32 .. 1024i32:
    %v: f64 = cast %i
    push %s, %v
  for %j: i32 in 0i32 .. %n:
    %c: i64 = cast %n
    %inner: stack f32 = stack %c
    for %m: i32 in 0i32 .. %n:
      push %inner, 1.5f32
    %p: f64 = pop %s
    %q: f64 = mul %p, 0.5f64
    push %s, %q
    push %s, 2.0f64
    %e: f32 = pop %inner
    %wide: f64 = cast %e
    atomic add @sum[], %wide
  %depth: i32 = add %n, 1024i32
  for reverse %k: i32 in 0i32 .. %depth:
    %r: f64 = pop %s
    atomic add @sum[], %r
""",
        (40,),
        {"sum": 0.25},
    )


def test_memory_limit_is_a_located_fault() -> None:
    source = parse(STACK.format(capacity="%s: stack f64 = stack 40000000i64", where="pass"))
    fn = lower(located(source))
    with pytest.raises(KernelMemoryError) as caught:
        execute(fn, (10,), memory_of(fn, {}), memory_limit=1 << 20, level=1)
    assert caught.value.span.line == 12


FAULTS = [
    (
        '%ok: u1 = lt %n, 8i32\n  check bounds "x" %ok, %n, 8i32\n  %v: f32 = load @x[%n]\n  store @x[0i32], %v',
        (9,),
        KernelIndexError,
        "index 9 is out of bounds for axis 0 of 'x'",
    ),
    (
        '%ok: u1 = ne %n, 0i32\n  check division "//" %ok\n  %q: i32 = floordiv 5i32, %n\n  store @x[0i32], 1.0f32',
        (0,),
        KernelZeroDivisionError,
        "division by zero",
    ),
    (
        """\
%ok: u1 = lt %n, 0i32
  %h: f32 = cast %n
  %g: f32 = div %h, 4.0f32
  check assert "n is {}, a quarter {}" %ok, %n, %g""",
        (7,),
        KernelAssertionError,
        "n is 7, a quarter 1.75",
    ),
]


@pytest.mark.parametrize(("body", "args", "error", "message"), FAULTS)
@pytest.mark.parametrize("parallel", [False, True])
def test_faults_are_located(body: str, args: tuple[int], error: type[Exception], message: str, parallel: bool) -> None:
    if parallel:
        body = "for parallel %i: i32 in 0i32 .. 10i32:\n    " + body.replace("\n", "\n  ")
    fn = lower(located(parse(f"buffer @x: f32 field (8)\nfunc f(%n: i32):\n  {body}\n")))
    memory = memory_of(fn, {"x": [3.0] * 8})
    with pytest.raises(error, match=re.escape(message)) as caught:
        execute(fn, args, memory)
    assert caught.value.span.line == 12  # type: ignore[attr-defined]
    # Nothing that stands after the check happened.
    assert all(memory.nested(b) == [3.0] * 8 for b in memory.cells)


def test_a_fault_in_an_array_of_which_some_extents_are_known() -> None:
    fn = lower(
        located(
            parse(
                """\
buffer @g: i32 array (2, ?)
func f(%n: i32):
  %m: i32 = extent @g, 1
  %ok: u1 = lt %n, %m
  check bounds "g" axis 1 %ok, %n, %m
  store @g[1i32, %n], 7i32
"""
            )
        )
    )
    memory = memory_of(fn, {"g": [[1, 2, 3], [4, 5, 6]]})
    execute(fn, (2,), memory)
    assert [memory.nested(b) for b in memory.cells] == [[[1, 2, 3], [4, 5, 7]]]
    with pytest.raises(KernelIndexError, match=r"\(2, 3\)"):
        execute(fn, (3,), memory)


def test_checks_that_hold_cost_nothing_but_time() -> None:
    agree(
        """\
buffer @x: f32 field (8)
func f(%n: i32):
  %ok: u1 = lt %n, 8i32
  check bounds "x" %ok, %n, 8i32
  store @x[%n], 1.0f32
""",
        (7,),
        {"x": [0] * 8},
    )


def test_print() -> None:
    text = """\
func f(%n: i32, %x: f32):
  %d: f64 = cast %x
  %u: u1 = lt %n, 0i32
  %b: u8 = cast %n
  for %i: i32 in 0i32 .. 2i32:
    print "i = ", %i, ", n = ", %n, " ", %x, " ", %d, " ", %u, " ", %b, "\\n"
"""
    printed: list[str] = []
    execute(lowered(text), (-3, 0.1), DictMemory(), on_print=printed.append)
    assert "".join(printed) == "".join(f"i = {i}, n = -3 0.1 0.10000000149011612 True 253\n" for i in range(2))


def test_tensors_that_are_left_over_are_a_bug_with_a_name() -> None:
    fn = parse(
        """\
func f(%n: i32):
  task serial:
    %t: f32[2] = pack 1.0f32, 2.0f32
    %v: f32 = extract %t, %n
    print %v, "\\n"
"""
    )
    with pytest.raises(CompilerBug, match=r"pack|tensor"):
        generate(fn)


def test_results_fill_their_slots() -> None:
    """Whole numbers can be read as an i64, whatever was in the slot."""
    text = "func f(%n: i32):\n  %a: i32 = neg %n\n  %b: u8 = cast %a\n  %c: u1 = gt %n, 0i32\n  return %a, %b, %c\n"
    assert execute(lowered(text), (5,), DictMemory()) == (-5, 251, 1)


def test_one_turn_runs_on_the_caller() -> None:
    text = "buffer @x: i64 field (4)\nfunc f():\n  for parallel %i: i64 in 2i64 .. 3i64:\n    store @x[%i], %i\n"
    assert "call i32 @tn_parallel_for" not in generate(lowered(text)).text
