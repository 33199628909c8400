"""Private copies of the buffers that all threads accumulate into."""

from __future__ import annotations

import functools

import pytest

from tests.passes.running import agrees, results
from tests.passes.support import becomes, stays
from tinote.compiler.passes.updates.privatise import privatise
from tinote.ir import primitives
from tinote.ir.nodes import Atomic, Buffer, Function, Lit, Region, Task
from tinote.ir.parse import parse
from tinote.ir.text import show
from tinote.ir.types import i32
from tinote.ir.verify import Form
from tinote.remarks import Remark

becomes_in_tasks = functools.partial(becomes, form=Form.TASKS)
stays_in_tasks = functools.partial(stays, form=Form.TASKS)
agrees_in_tasks = functools.partial(agrees, form=Form.TASKS)


def privates(fn: Function) -> dict[str, str]:
    """Which buffers have private copies, and of which operation."""
    return {p.target.name: p.prim.name for op in fn.region.body if isinstance(op, Task) for p in op.privates}


def test_a_sum_gets_a_copy_in_each_thread() -> None:
    becomes_in_tasks(
        privatise,
        """
        buffer @x: f32 field (64)
        buffer @U: f32 field ()
        func f(%n: i32):
          task parallel %i: i32 in 0i32 .. %n:
            %a: f32 = load @x[%i]
            atomic add @U[], %a
        """,
        """
        buffer @x: f32 field (64)
        buffer @U: f32 field ()
        buffer @U.private: f32 private ()
        func f(%n: i32):
          task parallel %i: i32 in 0i32 .. %n:
            private add @U.private of @U
            %a: f32 = load @x[%i]
            atomic add @U.private[], %a
        """,
    )


def test_updates_at_the_own_index_and_at_all_indices_go_to_the_same_copy() -> None:
    becomes_in_tasks(
        privatise,
        """
        buffer @x: f32[2] field (16)
        buffer @x.grad: f32[2] field (16)
        func f():
          task parallel %i: i32 in 0i32 .. 16i32:
            %t: f32 = for %j: i32 in 0i32 .. 16i32 carrying %s: f32 = 0.0f32:
              %a: f32 = load @x[%j][1i32]
              atomic add @x.grad[%j][0i32], %a
              %u: f32 = add %s, %a
              yield %u
            atomic add @x.grad[%i][1i32], %t
        """,
        """
        buffer @x: f32[2] field (16)
        buffer @x.grad: f32[2] field (16)
        buffer @x.grad.private: f32[2] private (16) strides (4) element_strides (64)
        func f():
          task parallel %i: i32 in 0i32 .. 16i32:
            private add @x.grad.private of @x.grad
            %t: f32 = for %j: i32 in 0i32 .. 16i32 carrying %s: f32 = 0.0f32:
              %a: f32 = load @x[%j][1i32]
              atomic add @x.grad.private[%j][0i32], %a
              %u: f32 = add %s, %a
              yield %u
            atomic add @x.grad.private[%i][1i32], %t
        """,
    )


STAYING = {
    "each iteration has its own elements": """
        buffer @y: i32[2] field (64)
        func f():
          task parallel %i: i32 in 0i32 .. 64i32:
            for %k: i32 in 0i32 .. 100i32:
              atomic add @y[%i][0i32], %k
              atomic add @y[%i][1i32], %k
        """,
    "the task reads the buffer": """
        buffer @U: i32 field ()
        buffer @y: i32 field (64)
        func f():
          task parallel %i: i32 in 0i32 .. 64i32:
            %a: i32 = load @U[]
            atomic add @U[], %i
            store @y[%i], %a
        """,
    "the task wants old values": """
        buffer @U: i32 field ()
        buffer @y: i32 field (64)
        func f():
          task parallel %i: i32 in 0i32 .. 64i32:
            %a: i32 = atomic add @U[], %i
            store @y[%i], %a
        """,
    "two operations": """
        buffer @U: i32 field (2)
        func f():
          task parallel %i: i32 in 0i32 .. 64i32:
            atomic add @U[0i32], %i
            atomic max @U[1i32], %i
        """,
    "an array may be the same memory": """
        buffer @U: i32 field ()
        buffer @a: i32 array (?)
        func f():
          task parallel %i: i32 in 0i32 .. 64i32:
            %v: i32 = load @a[%i]
            atomic add @U[], %v
        """,
    "each iteration has its own elements of an array": """
        buffer @a: i32 array (?)
        func f():
          task parallel %i: i32 in 0i32 .. 64i32:
            atomic add @a[%i], 1i32
        """,
    "the task is serial": """
        buffer @U: i32 field ()
        func f():
          task serial:
            for %i: i32 in 0i32 .. 64i32:
              atomic add @U[], %i
        """,
    "one update an element is not worth a copy": """
        buffer @p: i32 field (64)
        buffer @y: i32 field (64)
        func f():
          task parallel %i: i32 in 0i32 .. 64i32:
            %k: i32 = load @p[%i]
            atomic add @y[%k], 1i32
        """,
    "the buffer is too large": """
        buffer @p: i32 field (64)
        buffer @y: i32 field (16385)
        func f(%n: i32):
          task parallel %i: i32 in 0i32 .. %n:
            %k: i32 = load @p[%i]
            atomic add @y[%k], 1i32
        """,
}


@pytest.mark.parametrize("why", STAYING)
def test_what_needs_no_copy_or_bears_none_stays(why: str) -> None:
    stays_in_tasks(privatise, STAYING[why])


@pytest.mark.parametrize("prim", ["add", "mul", "min", "max", "and", "or", "xor"])
def test_every_operation_merges(prim: str) -> None:
    text = f"""
    buffer @p: i32 field (64)
    buffer @y: i32 field (3)
    func f(%n: i32):
      task parallel %i: i32 in 0i32 .. %n:
        %v: i32 = load @p[%i]
        %k: i32 = mod %v, 3i32
        atomic {prim} @y[%k], %v
    """
    contents = {"p": [k * k % 17 + 1 for k in range(64)], "y": [7, -3, 12]}
    for n in (0, 1, 64):
        assert privates(agrees_in_tasks(privatise, text, (n,), contents)) == {"y": prim}


@pytest.mark.parametrize("prim", ["min", "max"])
@pytest.mark.parametrize("start", [float("nan"), -5.0, 100.0])
def test_a_minimum_of_floats_leaves_a_nan_out(prim: str, start: float) -> None:
    """NaN is the neutral element: an infinity would take the place of one that is there."""
    text = f"""
    buffer @x: f32 field (64)
    buffer @U: f32 field ()
    buffer @V: f32 field (3)
    buffer @W: f32 field ()
    func f():
      task parallel %i: i32 in 0i32 .. 64i32:
        %a: f32 = load @x[%i]
        atomic {prim} @U[], %a
        %k: i32 = mod %i, 2i32
        atomic {prim} @V[%k], %a
        %c: u1 = gt %a, 1000.0f32
        if %c:
          atomic {prim} @W[], %a
    """
    numbers = [float("nan") if k % 5 == 0 else float(k * 7 % 64) + 1 for k in range(64)]
    contents = {"x": numbers, "U": start, "V": [start] * 3, "W": start}
    assert len(privates(agrees_in_tasks(privatise, text, (), contents))) == 3


def test_small_buffers_come_first_while_there_is_room() -> None:
    text = """
    buffer @p: i32 field (64)
    buffer @large: i32 field (9000)
    buffer @middle: i32 field (8000)
    buffer @small: i32 temporary ()
    func f(%n: i32):
      task parallel %i: i32 in 0i32 .. %n:
        %k: i32 = load @p[%i]
        atomic add @large[%k], 1i32
        atomic add @middle[%k], 1i32
        atomic add @small[], 1i32
    """
    assert privates(agrees_in_tasks(privatise, text, (64,))) == {"small": "add", "middle": "add"}


@pytest.mark.parametrize(("updates", "worth"), [(79_999, False), (80_000, True)])
def test_a_larger_buffer_has_a_copy_where_its_updates_are_counted(updates: int, worth: bool) -> None:
    text = f"""
    buffer @p: i32 field (100000)
    buffer @y: i32 field (40000)
    func f():
      task parallel %i: i32 in 0i32 .. {updates}i32:
        %k: i32 = load @p[%i]
        atomic add @y[%k], 1i32
    """
    said: list[Remark] = []
    fn = privatise(parse(text), said.append)
    assert privates(fn) == ({"y": "add"} if worth else {})
    reason = "a copy of `y` for each thread" if worth else "no copy of `y` for each thread: it has too few updates"
    assert [(remark.text, remark.done) for remark in said] == [(reason, worth)]


SCATTER = """
    buffer @p: i32 field (64)
    buffer @y: i32[2] field (16)
    func f():
      task parallel %i: i32 in 0i32 .. 64i32:
        %k: i32 = load @p[%i]
        for %j: i32 in 0i32 .. 16i32:
          atomic add @y[{index}][0i32], %i
          atomic add @y[{index}][1i32], %k
"""


@pytest.mark.parametrize(("index", "strides"), [("%j", ((4,), (64,))), ("%k", ((8,), (4,)))])
def test_components_are_apart_only_where_a_loop_walks_over_the_elements(
    index: str, strides: tuple[tuple[int], tuple[int]]
) -> None:
    contents = {"p": [k * 5 % 13 for k in range(64)]}
    fn = agrees_in_tasks(privatise, SCATTER.format(index=index), (), contents)
    (copy,) = [private.copy for op in fn.region.body if isinstance(op, Task) for private in op.privates]
    assert (copy.strides, copy.element_strides) == strides


def test_each_task_decides_for_itself() -> None:
    text = """
    buffer @U: i32 field ()
    buffer @V: i32 field ()
    func f():
      task parallel %i: i32 in 0i32 .. 64i32:
        atomic add @U[], %i
        atomic max @V[], %i
      task parallel %j: i32 in 0i32 .. 64i32:
        atomic xor @U[], %j
      task parallel %k: i32 in 0i32 .. 64i32:
        store @V[], 3i32
    """
    fn = agrees_in_tasks(privatise, text)
    tasks = [op for op in fn.region.body if isinstance(op, Task)]
    assert [[p.prim.name for p in task.privates] for task in tasks] == [["add", "max"], ["xor"], []]


COUNTING = """
buffer @label: i32 field (64)
buffer @count: i32 array (?) noalias
buffer @U: i32 field ()
func f(%n: i32):
  task parallel %i: i32 in 0i32 .. %n:
    %k: i32 = load @label[%i]
    atomic add @count[%k], 1i32
    atomic add @U[], %k
"""


def test_an_array_has_a_task_with_copies_and_one_without() -> None:
    """Which of them does anything is decided by the length of the array, and by how many updates there are."""
    for elements in (1, 5, 31, 32, 33, 64, 9000):
        contents = {"label": [k * k % min(elements, 30) for k in range(64)], "count": [7] * elements}
        fn = agrees_in_tasks(privatise, COUNTING, (64,), contents)
        tasks = [op for op in fn.region.body if isinstance(op, Task)]
        assert [[p.target.name for p in task.privates] for task in tasks] == [[], ["U", "count"], ["U"]]
        runs = [name for name, length in lengths(fn, (64,), contents).items() if length]
        assert runs == (["private"] if elements <= 32 else ["f"]), elements


def lengths(fn: Function, args: tuple[float, ...], contents: dict[str, object]) -> dict[str, int]:
    """How many iterations each parallel task has."""
    counted = parse(show(fn))
    body = []
    for task in counted.region.body:
        if isinstance(task, Task) and task.parallel:
            counter = Buffer(task.name.rpartition(".")[2] or "f", i32)
            update = Atomic(primitives.add, counter, (), Lit(1, i32))
            task = task.rebuilt(task.args, (Region(task.body.params, (*task.body.body, update)),))
        body.append(task)
    counted = counted.with_region(Region(counted.region.params, tuple(body)))
    found = results(counted, args, contents)
    return {name: found[name] for name in ("private", "f")}  # type: ignore[misc]


def test_an_array_of_vectors_in_two_dimensions() -> None:
    text = """
        buffer @label: i32 field (64)
        buffer @count: i32[2] array (?, ?) noalias
        func f():
          task parallel %i: i32 in 0i32 .. 64i32:
            %k: i32 = load @label[%i]
            for %j: i32 in 0i32 .. 3i32:
              atomic max @count[%k, %j][1i32], %i
        """
    for rows in (2, 9):
        contents = {"label": [k * k % rows for k in range(64)], "count": [[[-5, 2]] * 3] * rows}
        agrees_in_tasks(privatise, text, (), contents)


def test_one_thread_has_each_task_once() -> None:
    stays_in_tasks(functools.partial(privatise, one_thread=True), COUNTING.replace("    atomic add @U[], %k\n", ""))
