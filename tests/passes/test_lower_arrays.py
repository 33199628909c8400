"""Array lowering: cells in place of tensor values, and a copy only where the old value is still needed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.passes.support import stays
from tinote.compiler.passes.lowering.lower_arrays import lower_arrays
from tinote.compiler.passes.lowering.offload import offload
from tinote.ir.interpret import interpret
from tinote.ir.memory import DictMemory
from tinote.ir.nodes import Function, Get, Local
from tinote.ir.parse import parse
from tinote.ir.query import walk
from tinote.ir.types import Stack, Tensor
from tinote.ir.verify import Form, verify

HEAD = "buffer @x: f32 field (8)\nfunc f(%n: i32, %k: i32):\n"


def run(fn: Function, args: tuple[int, ...]) -> tuple[Any, list[str]]:
    printed: list[str] = []
    memory = DictMemory()
    returned = interpret(fn, args, memory, on_print=printed.append)
    return (returned, {b.name: memory.nested(b) for b in memory.cells if b.name == "x"}), printed


def lower(body: str, *rows: tuple[int, ...]) -> Function:
    """Lower a SCALAR body; it must mean the same, and nothing may be left of tensors. Gives the lowered function."""
    source = parse(HEAD + body)
    verify(source, Form.SCALAR)
    new = lower_arrays(offload(source))
    for op in walk(new.region):
        for v in (*op.outs, *(q for r in op.regions for q in r.params)):
            assert not isinstance(v.type, Tensor), v
            assert not (isinstance(v.type, Stack) and isinstance(v.type.content, Tensor)), v
    for args in rows or ((5, 1), (0, 2), (3, 0)):
        assert run(new, args) == run(source, args)
    assert lower_arrays(new) is new
    return new


def cells(fn: Function) -> int:
    return sum(isinstance(op, Local) for op in walk(fn.region))


def copies(fn: Function) -> int:
    """Reads of whole arrays show as reads of literal components, or in loops, compared with those of the program."""
    return sum(isinstance(op, Get) for op in walk(fn.region))


def test_insert_goes_in_place_when_the_old_value_is_dead() -> None:
    fn = lower(
        """\
  %a: f32[3] = pack 1.0f32, 2.0f32, 3.0f32
  %b: f32[3] = insert %a, %k, 9.0f32
  %v: f32 = extract %b, %k
  store @x[0i32], %v
"""
    )
    assert (cells(fn), copies(fn)) == (1, 1)


def test_insert_copies_when_the_old_value_is_needed() -> None:
    fn = lower(
        """\
  %a: f32[3] = pack 1.0f32, 2.0f32, 3.0f32
  %b: f32[3] = insert %a, %k, 9.0f32
  %v: f32 = extract %b, %k
  %w: f32 = extract %a, %k
  store @x[0i32], %v
  store @x[1i32], %w
"""
    )
    assert cells(fn) == 2


LOOP = """\
  %a: f32[3] = pack 1.0f32, 2.0f32, 3.0f32
  %r: f32[3], %s: f32 = for %i: i32 in 0i32 .. %n carrying %c: f32[3] = %a, %t: f32 = 0.0f32:
    %j: i32 = mod %i, 3i32
    %o: f32 = extract %c, %j
    %p: f32 = add %o, {term}
    %d: f32[3] = insert %c, %j, %p
    yield %d, %p
  %v: f32 = extract %r, %k
  store @x[0i32], %v
  store @x[1i32], %s
{after}"""


def test_a_carried_array_has_one_cell() -> None:
    fn = lower(LOOP.format(term="1.5f32", after=""))
    assert (cells(fn), copies(fn)) == (1, 2)


def test_a_carried_array_does_not_overwrite_what_is_needed_later() -> None:
    fn = lower(LOOP.format(term="1.5f32", after="  %w: f32 = extract %a, %k\n  store @x[2i32], %w\n"))
    assert cells(fn) == 2


def test_a_carried_array_does_not_overwrite_what_its_turns_read() -> None:
    body = LOOP.replace(
        "    %p: f32 = add %o, {term}", "    %q: f32 = extract %a, %j\n    %p: f32 = add %o, %q"
    ).format(after="")
    assert cells(lower(body)) == 2


def test_carried_arrays_change_places() -> None:
    lower(
        """\
  %a: f32[2] = pack 1.0f32, 2.0f32
  %b: f32[2] = pack 3.0f32, 4.0f32
  %r: f32[2], %s: f32[2] = for %i: i32 in 0i32 .. %n carrying %c: f32[2] = %a, %d: f32[2] = %b:
    %h: i32 = mod %i, 2i32
    %e: f32[2] = insert %d, %h, 7.5f32
    yield %e, %c
  %v: f32 = extract %r, %k
  %w: f32 = extract %s, %k
  store @x[0i32], %v
  store @x[1i32], %w
""",
        *((n, k) for n in range(4) for k in range(2)),
    )


def test_the_same_array_carried_twice() -> None:
    lower(
        """\
  %a: f32[2] = pack 1.0f32, 2.0f32
  %r: f32[2], %s: f32[2] = for %i: i32 in 0i32 .. %n carrying %c: f32[2] = %a, %d: f32[2] = %a:
    %e: f32[2] = insert %c, %k, 7.5f32
    yield %e, %d
  %v: f32 = extract %r, %k
  %w: f32 = extract %s, %k
  store @x[0i32], %v
  store @x[1i32], %w
""",
        *((n, k) for n in range(3) for k in range(2)),
    )


def test_a_condition_leaves_what_is_carried_alone() -> None:
    lower(
        """\
  %a: i32[2] = pack 0i32, %n
  %r: i32[2] = while carrying %c: i32[2] = %a:
    %z: i32[2] = insert %c, 0i32, 100i32
    %u: i32 = extract %z, %k
    %w: i32 = extract %c, 0i32
    %m: u1 = lt %w, %n
    %q: u1 = gt %u, -1i32
    %l: u1 = and %m, %q
    yield %l
  do %d: i32[2]:
    %e: i32 = extract %d, 0i32
    %g: i32 = add %e, 1i32
    %y: i32[2] = insert %d, 0i32, %g
    yield %y
  %v: i32 = extract %r, %k
  %o: f32 = cast %v
  store @x[0i32], %o
""",
        *((n, k) for n in (0, 1, 5) for k in range(2)),
    )


@pytest.mark.parametrize("later", ["", "  %w: f32 = extract %a, 1i32\n  store @x[1i32], %w\n"], ids=["dead", "needed"])
def test_branches_meet_in_one_cell(later: str) -> None:
    fn = lower(
        f"""\
  %a: f32[2] = pack 1.0f32, 2.0f32
  %c: u1 = gt %n, 1i32
  %r: f32[2], %p: f32 = if %c:
    %b: f32[2] = insert %a, %k, 5.0f32
    yield %b, 3.0f32
  else:
    yield %a, 4.0f32
  %v: f32 = extract %r, %k
  store @x[0i32], %v
  store @x[2i32], %p
{later}""",
        *((n, k) for n in (0, 5) for k in range(2)),
    )
    assert cells(fn) == (3 if later else 1)


def test_select_and_large_arrays() -> None:
    """Above sixteen components, copies are loops."""
    many = ", ".join(["%v"] * 40)
    lower(
        f"""\
  %v: f32 = cast %n
  %a: f32[40] = pack {many}
  %b: f32[40] = insert %a, %k, 5.0f32
  %c: u1 = gt %n, 1i32
  %s: f32[40] = select %c, %a, %b
  %w: f32 = extract %s, %k
  store @x[0i32], %w
"""
    )


@pytest.mark.parametrize("shape", ["2, 2", "20"])
def test_stacks_of_arrays(shape: str) -> None:
    index = "%k, 1i32" if "," in shape else "%k"
    zeros = ", ".join(["%v"] * (4 if "," in shape else 20))
    lower(
        f"""\
  %c: i64 = cast %n
  %s: stack f32[{shape}] = stack %c
  %g: stack f32[{shape}] = stack
  for %i: i32 in 0i32 .. %n:
    %v: f32 = cast %i
    %a: f32[{shape}] = pack {zeros}
    %b: f32[{shape}] = insert %a, {index}, 0.25f32
    push %s, %b
    push %g, %b
  for reverse %j: i32 in 0i32 .. %n:
    %p: f32[{shape}] = pop %s
    %q: f32[{shape}] = pop %g
    %w: f32 = extract %p, {index}
    %z: f32 = extract %q, {index.replace("%k", "0i32")}
    store @x[%j], %w
    atomic add @x[7i32], %z
""",
        (5, 1),
        (0, 0),
    )


def test_scalars_stay() -> None:
    stays(lower_arrays, "buffer @x: f32 field (8)\nfunc f():\n  task serial:\n    store @x[0i32], 1.0f32\n", Form.TASKS)
