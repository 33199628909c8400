"""`kernel.loops()` and `kernel.tasks()`: what they say of loops whose fate is known on every machine."""

from __future__ import annotations

import numpy as np
import pytest

import tinote as ti
from tinote.errors import KernelTypeError

pytestmark = pytest.mark.optimised


@pytest.fixture(autouse=True)
def fields():
    ti.init(offline_cache=False)


def test_a_loop_that_carries_a_value_is_reported_with_its_reason():
    x = ti.field(ti.f32, shape=4096, name="x")

    @ti.kernel
    def running():
        ti.loop_config(serialize=True)
        for i in range(1, 4096):
            x[i] = 0.5 * x[i - 1] + 1.0

    table = running.loops()
    assert [one.width for one in table] == [1]
    assert "needs what an earlier one has written" in repr(table) and "not vectorised" in repr(table)
    assert repr(table).splitlines()[0].split() == ["line", "loop", "in", "short", "reasons"]
    assert "<td" in table._repr_html_() and "not vectorised" in table._repr_html_()
    (task,) = running.tasks()
    assert not task.parallel and "serial" in repr(running.tasks())


def test_independent_turns_are_vectorised_and_parallel():
    x = ti.field(ti.f32, shape=1 << 16, name="x")

    @ti.kernel
    def double():
        for i in x:
            x[i] = 2.0 * x[i]

    assert max(one.width for one in double.loops()) > 1 and "vectorised ×" in repr(double.loops())
    (task,) = double.tasks()
    assert task.parallel and "65,536" in repr(double.tasks())


def test_copies_atomics_and_checks_are_counted():
    x = ti.field(ti.f32, shape=1 << 16, name="x")
    other = ti.field(ti.i32, shape=1 << 16, name="other")
    total = ti.field(ti.f32, shape=(), name="total")

    @ti.kernel
    def add_up():
        for i in x:
            total[None] += x[i]

    @ti.kernel
    def scatter():
        for i in x:
            x[other[i]] += 1.0

    assert "total, 4 bytes per thread" in repr(add_up.tasks())
    row = repr(scatter.tasks()).splitlines()[1]
    assert "add x" in row and row.endswith("1")
    assert "add x" in scatter.tasks()._repr_html_()


def test_the_gradient_has_its_own():
    x = ti.field(ti.f32, shape=64, needs_grad=True)
    total = ti.field(ti.f32, shape=(), needs_grad=True, name="total")

    @ti.kernel
    def energy():
        for i in x:
            total[None] += x[i] ** 2

    assert any(task.privates for task in energy.tasks())
    assert not any(task.privates for task in energy.tasks(gradient=True))


def test_nothing_to_judge_is_said():
    total = ti.field(ti.f32, shape=())

    @ti.kernel
    def once():
        total[None] = 1.0

    assert repr(once.loops()) == "no loop to vectorise" in once.loops()._repr_html_()


def test_plain_python_has_no_loops_of_llvm():
    ti.init(arch=ti.python)
    x = ti.field(ti.f32, shape=8)

    @ti.kernel
    def fill():
        for i in x:
            x[i] = 1.0

    assert fill.loops() == [] and isinstance(fill.tasks(), list)


def test_a_kernel_with_templates_must_have_been_called():
    @ti.kernel
    def fill(v: ti.template()):
        for i in v:
            v[i] = 1.0

    with pytest.raises(KernelTypeError, match="has not been called yet"):
        fill.loops()


def test_a_loop_of_thousands_of_operations_is_left_alone_and_says_so() -> None:
    """The time LLVM takes to vectorise grows with the square of a loop's length."""
    x = ti.field(ti.i32, shape=40)

    def repeated(a: int, count: int) -> int:
        for k in range(count):
            a = a * 3 ^ k
        return (a + 2**31) % 2**32 - 2**31

    @ti.kernel
    def chain(count: ti.template()):
        for i in x:
            a = x[i]
            for k in ti.static(range(count)):
                a = a * 3 ^ k
            x[i] = a

    for count, vectorised in ((20, True), (2_100, False)):
        x.from_numpy(np.arange(40, dtype=np.int32))
        chain(count)
        assert x.to_numpy().tolist() == [repeated(i, count) for i in range(40)]
        (verdict,) = chain.loops()
        assert (verdict.width > 1) == vectorised
        assert bool(verdict.reasons) != vectorised
        assert ("so long" in verdict.advice) != vectorised


def test_iterations_that_may_meet_are_named_with_both_accesses() -> None:
    ti.init(arch=ti.cpu, offline_cache=False, opt_level=1)
    x, seen, h = ti.field(ti.f32, 64), ti.field(ti.i32, 64), ti.field(ti.i32, 8)

    @ti.kernel
    def visit():
        for i in x:
            k = int(x[i])
            if seen[k] == 0:
                seen[k] = 1
        for i in x:
            h[seen[i]] = h[seen[i]] + 1
        for i in x:
            h[seen[i]] = i

    visit()
    first = visit.source.span.line
    reasons = {v.line - first: v.reasons[0] for v in visit.loops() if "may meet" in "".join(v.reasons)}
    assert reasons == {
        1: f"iterations may meet: what an iteration writes of `seen` in line {first + 4}, another one may read in line "
        f"{first + 3}",
        7: f"iterations may meet: several iterations may write one element of `h` in line {first + 8}",
    }
