"""What the interpreter makes of each operation and each form."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.ir.texts import CHECKED, FIRST, LOWERED, SCALAR, TASKS
from tinote.errors import (
    KernelAssertionError,
    KernelIndexError,
    KernelMemoryError,
    KernelOverflowError,
    KernelRuntimeError,
    KernelZeroDivisionError,
)
from tinote.ir.interpret import StepLimitError, interpret
from tinote.ir.memory import DictMemory
from tinote.ir.nodes import Buffer, Function
from tinote.ir.parse import parse
from tinote.ir.primitives import Defaults, mix
from tinote.ir.query import buffers_of
from tinote.ir.types import f64, i64


def buffer(fn: Function, name: str) -> Buffer:
    (found,) = [b for b in buffers_of(fn) if b.name == name]
    return found


def run(text: str, *args: float, **contents: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What a function returns, and what all of its fields and arrays hold afterwards."""
    fn = parse(text, "kernel.ir")
    memory = DictMemory({buffer(fn, name): values for name, values in contents.items()})
    returned = interpret(fn, args, memory, step_limit=100_000)
    return returned, {b.name: memory.nested(b) for b in buffers_of(fn) if b.kind.value in ("field", "array")}


def value(*lines: str, params: str = "", args: tuple[float, ...] = (), result: str = "%r") -> Any:
    """What one expression gives."""
    body = "".join(f"  {line}\n" for line in lines)
    (found,), _ = run(f"func f({params}):\n{body}  return {result}\n", *args)
    return found


# the first form: weak literals and mixed types


def test_weak_literals_take_the_type_of_the_other_operand() -> None:
    params = {"f32": "%x: f32", "f64": "%x: f64", "u8": "%x: u8"}
    assert value("%r: f32 = add %x, 0.1", params=params["f32"], args=(0,)) == 0.10000000149011612
    assert value("%r: f64 = add %x, 0.1", params=params["f64"], args=(0,)) == 0.1
    assert value("%r: f64 = mul %x, 2", params=params["f64"], args=(0.3,)) == 0.6
    assert value("%r: i32 = add %x, 100", params=params["u8"], args=(200,)) == 300


def test_weak_variables_are_computed_in_the_default_types() -> None:
    text = "func f():\n  %a: weak_float = add 0.1, 0.2\n  %b: f64 = add %a, 0.0f64\n  %c: weak_int = mul 65536, 65536\n"
    fn = parse(text + "  return %b, %c, 0.1\n")
    assert interpret(fn, (), DictMemory()) == (0.30000001192092896, 0, 0.10000000149011612)
    assert interpret(fn, (), DictMemory(), defaults=Defaults(f64, i64)) == (0.1 + 0.2, 2**32, 0.1)


def test_operands_of_different_types_are_converted() -> None:
    assert value("%r: f32 = add %x, 16777217i32", params="%x: f32", args=(1,)) == 16777216.0
    assert value("%r: u1 = lt %x, -1i32", params="%x: u32", args=(0,)) == 1
    assert value("%r: f64 = select 2i32, 1i32, 0.5f64") == 1.0
    assert value("%r: f32 = div 1, 2") == 0.5
    assert value("%r: i32 = add true, true") == 2
    assert value("%r: u1 = isnan 3i32") == 0
    assert isinstance(value("%r: f32 = select true, 1, 2.0"), float)


def test_stored_and_carried_values_are_converted() -> None:
    text = """\
buffer @k: u8 field (3)
func f(%n: i32):
  store @k[0], 300i32
  store @k[1], 2.9f32
  atomic add @k[2], 1.7
  %s: u8 = for %i: i32 in 0 .. %n carrying %c: u8 = 250i32:
    %d: i32 = add %c, 1i32
    yield %d
  %y: f32 = if %n:
    yield 1
  else:
    yield 0.1
  %r: ref i32 = local 1.9
  set %r, 7.9f64
  %t: i32 = get %r
  return %s, %y, %t
"""
    assert run(text, 7, k=[0, 0, 5]) == ((1, 1.0, 7), {"k": [44, 2, 6]})
    assert run(text, 0)[0] == (250, 0.10000000149011612, 7)


# tensors and local cells


def test_tensors() -> None:
    m = "%m: f32[2, 2] = pack 1, 2, 3, 4"
    assert value(m, result="%m") == ((1.0, 2.0), (3.0, 4.0))
    assert value(m, "%r: f32 = extract %m, 1, 0") == 3.0
    assert value(m, "%r: f32[2, 2] = insert %m, 0, 1, 9") == ((1.0, 9.0), (3.0, 4.0))
    assert value(m, "%r: f32[2, 2] = mul %m, %m") == ((1.0, 4.0), (9.0, 16.0))
    assert value(m, "%r: f32[2, 2] = sub 1.0f32, %m") == ((0.0, -1.0), (-2.0, -3.0))
    assert value(m, "%r: i32[2, 2] = cast %m") == ((1, 2), (3, 4))
    assert value(m, "%c: u1[2, 2] = gt %m, 2", "%r: f32[2, 2] = select %c, %m, 0") == ((0.0, 0.0), (3.0, 4.0))
    with pytest.raises(KernelIndexError, match="index 2 is out of range for axis 0 of 'm', which has length 2"):
        value(m, "%r: f32 = extract %m, 2, 0")
    # The old value is a value: it stays what it was.
    assert value(m, "%w: f32[2, 2] = insert %m, 0, 0, 9", result="%m") == ((1.0, 2.0), (3.0, 4.0))


def test_local_cells() -> None:
    cell = "%c: ref f32[3] = local"
    assert value(cell, "%r: f32[3] = get %c") == (0.0, 0.0, 0.0)
    assert value(cell, "set %c[1], 5", "%r: f32[3] = get %c") == (0.0, 5.0, 0.0)
    assert value(cell, "%old: f32[3] = get %c", "set %c[1], 5", result="%old") == (0.0, 0.0, 0.0)
    assert value(cell, "set %c[1], 5", "%r: f32 = get %c[1]") == 5.0
    assert value("%v: f32[3] = pack 1, 2, 3", "%c: ref f32[3] = local %v", "%r: f32[3] = get %c") == (1.0, 2.0, 3.0)
    assert value("%c: ref i32 = local", "%r: i32 = get %c") == 0
    with pytest.raises(KernelIndexError, match="axis 0 of 'c'"):
        value(cell, "set %c[3], 5", result="0")


def test_a_cell_is_new_each_time() -> None:
    text = "  %c: ref i32 = local\n  %a: i32 = get %c\n  %b: i32 = add %a, 1\n  set %c, %b\n"
    inner = text.replace("  %", "    %").replace("  set", "    set") + "    yield %b\n"
    assert value(*f"%r: i32 = for %i: i32 in 0 .. 5 carrying %s: i32 = 0:\n{inner}".splitlines()) == 1


# memory


ELEMENTS = """\
buffer @v: f32[2] field (3)
buffer @m: i32 field (2, 2)
buffer @u: f64 field ()
func f():
  %a: f32[2] = load @v[1]
  %b: f32 = load @v[1][0]
  %c: f32[2] = mul %a, 10
  store @v[0], %c
  store @v[2][1], %b
  %old: f32[2] = atomic add @v[1], %a
  %d: i32 = load @m[1, 0]
  store @m[0, 1], %d
  %was: f64 = atomic max @u[], 2.5
  return %old, %was
"""


def test_elements_and_components() -> None:
    returned, left = run(ELEMENTS, v=[[1, 2], [3, 4], [5, 6]], m=[[1, 2], [3, 4]], u=1)
    assert returned == ((3.0, 4.0), 1.0)
    assert left == {"v": [[30.0, 40.0], [6.0, 8.0], [5.0, 3.0]], "m": [[1, 3], [3, 4]], "u": 2.5}


def test_what_was_never_written_is_zero() -> None:
    assert run(ELEMENTS)[1] == {"v": [[0.0, 0.0]] * 3, "m": [[0, 0], [0, 0]], "u": 2.5}


@pytest.mark.parametrize(("index", "axis", "length"), [("4, 0", 0, 2), ("-1, 0", 0, 2), ("1, 3", 1, 3)])
def test_an_index_out_of_range_is_located(index: str, axis: int, length: int) -> None:
    text = f"buffer @m: i32 field (2, 3)\nfunc f():\n  store @m[{index}], 1\n"
    with pytest.raises(KernelIndexError) as caught:
        run(text)
    wrong = index.split(", ")[axis]
    assert caught.value.message == f"index {wrong} is out of range for axis {axis} of 'm', which has length {length}"
    assert (caught.value.span.file, caught.value.span.line) == ("kernel.ir", 3)


def test_shapes_that_are_known_at_launch() -> None:
    text = """\
buffer @a: i32 array (?, 3)
func f():
  %n: i32 = extent @a, 0
  %m: i32 = extent @a, 1
  store @a[1, 2], %n
  return %n, %m
"""
    assert run(text, a=[[1, 2, 3], [4, 5, 6]]) == ((2, 3), {"a": [[1, 2, 3], [4, 5, 2]]})
    with pytest.raises(KernelIndexError, match="axis 0 of 'a', which has length 1"):
        run(text, a=[[1, 2, 3]])
    fn = parse(text)
    memory = DictMemory(shapes={buffer(fn, "a"): (5, 3)})
    assert interpret(fn, (), memory) == (5, 3)


def test_temporaries_live_for_one_run() -> None:
    text = """\
buffer @t: f32 temporary ()
func f():
  %a: f32 = load @t[]
  atomic add @t[], 2
  atomic add @t[], 3
  %b: f32 = load @t[]
  return %a, %b
"""
    fn = parse(text)
    memory = DictMemory()
    assert interpret(fn, (), memory) == (0.0, 5.0)
    assert interpret(fn, (), memory) == (0.0, 5.0)
    assert memory.cells == {}


# control


def test_loops() -> None:
    body = ["  %m: i32 = mul %s, 10", "  %t: i32 = add %m, %i", "  yield %t"]

    def result(flag: str, lo: str, hi: str) -> int:
        return value(f"%r: i32 = for{flag} %i: i32 in {lo} .. {hi} carrying %s: i32 = 0:", *body)

    assert result("", "1", "4") == 123
    assert result(" reverse", "1", "4") == 321
    assert result("", "4", "4") == 0
    assert result("", "5", "-5") == 0
    assert result(" reverse", "5", "-5") == 0


def test_carried_values_change_at_once() -> None:
    lines = "%a: i32, %b: i32 = for %i: i32 in 0 .. 3 carrying %c: i32 = 1, %d: i32 = 2:\n  yield %d, %c"
    assert value(*lines.splitlines(), result="%a") == 2


def test_while() -> None:
    text = """\
func f(%n: i32):
  %a: i32, %steps: i32 = while carrying %x: i32 = %n, %k: i32 = 0:
    %more: u1 = gt %x, 1
    yield %more
  do %y: i32, %j: i32:
    %odd: i32 = mod %y, 2
    %next: i32 = if %odd:
      %t: i32 = mul %y, 3
      %u: i32 = add %t, 1
      yield %u
    else:
      %h: i32 = floordiv %y, 2
      yield %h
    %l: i32 = add %j, 1
    yield %next, %l
  return %a, %steps
"""
    assert run(text, 6)[0] == (1, 8)
    assert run(text, 1)[0] == (1, 0)


def test_if_runs_one_side() -> None:
    text = "buffer @x: i32 field (2)\nfunc f(%c: u1):\n  if %c:\n    store @x[0], 1\n  else:\n    store @x[1], 1\n"
    assert run(text, 1)[1] == {"x": [1, 0]}
    assert run(text, 0)[1] == {"x": [0, 1]}


def test_the_order_of_a_parallel_loop_can_be_chosen() -> None:
    text = "buffer @x: i32 field ()\nfunc f():\n  for parallel %i: i32 in 0 .. 4:\n    store @x[], %i\n"
    fn = parse(text)
    for order, last in ((lambda order: order, 3), (reversed, 0), (lambda order: [1, 0, 3, 2], 2)):
        memory = DictMemory()
        interpret(fn, (), memory, order=order)
        assert memory.nested(buffer(fn, "x")) == last


@pytest.mark.parametrize(
    "body", ["while:\n    yield true\n  do:\n    pass", "for %i: i64 in 0i64 .. 1000000000000i64:\n    pass"]
)
def test_endless_loops_stop(body: str) -> None:
    with pytest.raises(StepLimitError):
        run(f"func f():\n  {body}\n")


def test_the_wrong_number_of_arguments() -> None:
    with pytest.raises(TypeError, match="f takes 1 arguments, not 0"):
        run("func f(%n: i32):\n  pass\n")


# stacks, random numbers


def test_stacks_give_back_what_came_last() -> None:
    text = """\
func f():
  %s: stack i32 = stack
  push %s, 1i32
  push %s, 2i32
  %a: i32 = pop %s
  push %s, 3i32
  %b: i32 = pop %s
  %c: i32 = pop %s
  return %a, %b, %c
"""
    assert run(text)[0] == (2, 3, 1)
    with pytest.raises(RuntimeError, match="more pops than pushes"):
        run(text.replace("  push %s, 3i32\n", ""))


def test_random_numbers_come_from_their_counters() -> None:
    assert value("%r: u32 = random_bits 9u64, 3i32, 2i32") == mix(9, 3, 2)


# checks and prints


@pytest.mark.parametrize(
    ("check", "error", "message"),
    [
        ('bounds "x" axis 1 %c, 7i32, 4i32', KernelIndexError, "index 7 is out of range for axis 1 of 'x'"),
        ("division %c", KernelZeroDivisionError, "integer division by zero"),
        ('assert "got {} and {}" %c, 2i32, 0.5', KernelAssertionError, "got 2 and 0.5"),
        ("assert %c", KernelAssertionError, "assertion failed"),
        ('memory "too much" %c', KernelMemoryError, "too much"),
        ("overflow %c", KernelOverflowError, "integer overflow"),
    ],
)
def test_checks(check: str, error: type[KernelRuntimeError], message: str) -> None:
    text = f"func f(%c: u1):\n  check {check}\n  return 1i32\n"
    assert run(text, 1)[0] == (1,)
    with pytest.raises(error) as caught:
        run(text, 0)
    assert caught.value.message.startswith(message)
    assert caught.value.span.line == 2


def test_integer_division_by_zero_is_zero_where_nothing_checks() -> None:
    for prim in ("floordiv", "mod", "raw_div", "raw_mod"):
        assert value(f"%r: i32 = {prim} 7i32, 0i32") == 0
    assert math.isinf(value("%r: f32 = floordiv 7.0f32, 0.0f32"))


def test_prints() -> None:
    printed: list[str] = []
    fn = parse('func f():\n  %v: f32[2] = pack 1, 0.5\n  print "v = ", %v, "; ", 3i32, "\\n"\n  print\n')
    interpret(fn, (), DictMemory(), on_print=printed.append)
    assert printed == ["v = [1.0, 0.5]; 3\n", ""]
    interpret(fn, (), DictMemory())


# later forms


def test_tasks_and_private_copies() -> None:
    """Every iteration adds to the thread's copy, which is combined with what the field held before."""
    returned, left = run(TASKS, 2.0, x=[1.0] * 64, U=100.0)
    assert returned == (64,)
    assert left["U"] == 100.0 + 2.0 * 64


def test_a_private_copy_starts_at_the_neutral_element() -> None:
    text = TASKS.replace("add @U.0", "min @U.0")
    assert run(text, 1.0, x=[float(i) - 5 for i in range(64)], U=3.0)[1]["U"] == -5.0
    assert run(text, 1.0, x=[7.0] * 64, U=3.0)[1]["U"] == 3.0


def test_flat_views_of_rows_and_of_columns() -> None:
    """Byte offsets reach the element that the strides say: of an array of vectors, and of a column-major matrix."""
    _, left = run(LOWERED, 0, x=[[1, 2], [3, 4]], z=[[0] * 4 for _ in range(4)])
    assert left["x"] == [[4.0, 2.0], [3.0, 4.0]]
    # 80 bytes: one step of 16 along axis 0 and one of 64 along axis 1
    assert left["z"] == [[0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]


@pytest.mark.parametrize("offset", [-4, 16, 2, 1000])
def test_a_byte_offset_outside_is_an_error(offset: int) -> None:
    text = "buffer @x: f32 field (4)\nbuffer @y: f32 field (?) flat @x\nfunc f():\n  store @y[{}i64], 1.0f32\n"
    assert run(text.format(12))[1] == {"x": [0.0, 0.0, 0.0, 1.0]}
    with pytest.raises(KernelIndexError, match=f"byte offset {offset} is outside of 'x'"):
        run(text.format(offset))


def test_components_that_lie_apart() -> None:
    """Structure of arrays: all first components, then all second ones."""
    declaration = "buffer @x: f32[2] field (3) strides (4) element_strides (12)\nbuffer @y: f32 field (?) flat @x\n"
    assert run(f"{declaration}func f():\n  store @y[16i64], 1.0f32\n")[1] == {"x": [[0, 0], [0, 1], [0, 0]]}


def test_the_hand_written_texts_run() -> None:
    returned, left = run(FIRST, 2, 5, x=[[[1, 2]] * 4] * 8, U=0, a=[3])
    # from 10 down to the length of `a`; the squares of eight second components; -1.5 as an integer
    assert returned == (1, -0.0)
    assert left["U"] == 32.0
    assert left["a"] == [-1]
    assert run(SCALAR, 3, x=[[k, 0] for k in range(1, 9)])[0] == (0x40C00000, 6.0)
    assert run(CHECKED, 3, x=[7] * 8)[0] == (14,)
    with pytest.raises(KernelIndexError, match="index 8"):
        run(CHECKED, 8)
    with pytest.raises(KernelZeroDivisionError):
        run(CHECKED, 1)
