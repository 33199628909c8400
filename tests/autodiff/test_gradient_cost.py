"""`kernel.grad_cost`: what a gradient saves, computes again and accumulates, as its IR has it."""

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import array, scalar, session  # noqa: F401
from tests.viz.explored import line_of
from tinote.compiler.inspect.gradient_cost import saved_values
from tinote.errors import DifferentiationError
from tinote.ir.parse import parse


def test_a_straight_line_saves_nothing():
    x, loss = array(10), scalar()

    @ti.kernel
    def squares():
        for i in x:
            loss[None] += x[i] ** 2

    cost = squares.grad_cost()
    assert cost.saved == () and cost.bytes_saved == 0 and cost.atomics == ()
    assert repr(cost).splitlines()[0] == "the gradient of 'squares' saves nothing"
    assert [one.span.line for one in cost.recomputed] and cost.values_recomputed == 1  # x[i] is read again


def test_loops_with_a_carried_value():
    x, loss = array(10), scalar()
    iterations = ti.field(ti.i32, shape=())

    @ti.kernel
    def powers(m: int):
        for i in x:
            s = x[i]
            for _ in range(m):
                for _ in range(iterations[None]):
                    s = ti.sin(s) * x[i]
            loss[None] += s

    iterations[None] = 7
    cost = powers.grad_cost(3)
    # In the reverse sweep the inner loop runs again for each iteration of the outer one, and saves the values of one
    # iteration at a time, and the sines that it computes on the way.
    found = {(one.name, one.expression, one.count) for one in cost.saved}
    assert found == {("s", "m", 3), ("s", "iterations[None]", 7), ("a value", "iterations[None]", 7)}
    assert all((one.type, one.size, one.per_iteration) == ("f64", 8, True) for one in cost.saved)
    assert cost.bytes_saved == 8 * 17 * cost.threads
    iterations[None] = 1
    assert sorted(one.count for one in powers.grad_cost(5).saved) == [1, 1, 5]


def test_bounds_that_depend_on_other_loops():
    x, loss = array(6), scalar()

    @ti.kernel
    def triangular():
        for i in x:
            s = 1.0
            for j in range(4):
                for _ in range(j):
                    s = ti.sin(s) + x[i]
            loss[None] += s

    @ti.kernel
    def rows():
        for i in x:
            s = 1.0
            for _ in range(i):
                s = ti.sin(s) + x[i]
            loss[None] += s

    assert sorted(one.count for one in triangular.grad_cost().saved) == [3, 4]  # the inner loop's last run is longest
    assert [one.count for one in rows.grad_cost().saved] == [5]  # of the longest row


_TRIANGLE = """
buffer @x: f32 field (4)
func f(%m: i32):
  for parallel %i: i32 in 0i32 .. 4i32:
    %s: stack f32 = stack
    %v: f32 = load @x[%i]
    for %j: i32 in 0i32 .. %m:
      for %k: i32 in 0i32 .. %j:
        push %s, %v
"""


def test_pushes_are_summed_over_the_turns_since_the_stack_was_made():
    (saved,) = saved_values(parse(_TRIANGLE), [4], lambda *_: None, lambda *_: None)
    assert (saved.expression, saved.count, saved.nbytes, saved.per_iteration) == ("m · j", 6, 24, True)


def test_what_only_the_launch_tells():
    x, loss = array(6), scalar()

    @ti.kernel
    def halving():
        for i in x:
            s = x[i]
            while s > 1.0:
                s = s * s * 0.1
            loss[None] += s

    cost = halving.grad_cost()
    assert cost.bytes_saved is None and any(one.count is None for one in cost.saved)
    assert "iterations of the while loop" in repr(cost) and "an amount known only at launch" in repr(cost)


def test_arguments_whose_shape_is_known_at_launch():
    y, loss = scalar(), scalar()

    @ti.kernel
    def chain(x: ti.types.ndarray(dtype=ti.f64, ndim=1)):
        for _ in range(1):
            s = 0.0
            for j in range(x.shape[0]):
                s = ti.sin(s * y[None] + x[j])
            loss[None] += s

    cost = chain.grad_cost(np.zeros(12))
    assert [one.count for one in cost.saved] == [12]


def test_copies_of_what_a_kernel_overwrites():
    x, loss = array(10, 3), scalar()

    @ti.kernel
    def overwriting():
        for i, j in x:
            loss[None] += x[i, j] ** 2
        for i, j in x:
            x[i, j] = ti.sin(x[i, j])

    (copy,) = [one for one in overwriting.grad_cost().saved if one.copy]
    assert copy.count == 30 and copy.nbytes == 240 and copy.expression == "10 · 3"
    assert "copy of" in repr(overwriting.grad_cost())


def test_atomics_that_are_left_and_those_that_are_not():
    x, y, loss = array(5000), array(5000), scalar()
    to = ti.field(ti.i32, shape=5000)

    @ti.kernel
    def gather():
        for i in y:
            loss[None] += x[to[i]] * y[i]

    cost = gather.grad_cost()
    assert len(cost.atomics) == 1  # of x; y is read where it is written
    assert "atomic operations left: 1" in repr(cost)
    final = gather.ir(gradient=True)
    tasks = [line for line in str(final).splitlines() if line.strip().startswith("atomic add")]
    assert len(tasks) == len(cost.atomics)


def test_it_shows_itself_in_a_notebook_and_refuses_what_has_no_gradient():
    x, loss = array(3), scalar()

    @ti.kernel
    def squares(k: int):
        for i in x:
            s = x[i]
            for _ in range(k):
                s *= s
            loss[None] += s

    page = squares.grad_cost(4)._repr_html_()
    assert page.startswith("<p>") and "<table>" in page and "&#x27;squares&#x27;" in page

    @ti.data_oriented
    class Owner:
        @ti.kernel
        def method(self):
            for i in x:
                loss[None] += x[i]

    assert Owner().method.grad_cost().kernel == "method"

    plain = ti.field(ti.f64, shape=3)

    @ti.kernel
    def broken():
        for i in x:
            plain[i] = x[i] ** 2
        for i in x:
            loss[None] += plain[i]

    cost = broken.grad_cost()
    assert [tuple(one) for one in cost.temporaries] == [("plain", "f64", 24)]
    assert "temporary adjoints, if they are needed: plain (f64, 24 bytes)" in repr(cost)

    @ti.kernel
    def lost(y: ti.types.ndarray()):
        for i in x:
            y[i] = x[i] ** 2
        for i in x:
            loss[None] += y[i]

    with pytest.raises(DifferentiationError):
        lost.grad_cost(np.zeros(3))


def test_the_table_is_as_wide_as_a_narrow_page():
    positions, loss = array(100), scalar()
    counts = ti.field(ti.i32, shape=())

    @ti.kernel
    def relaxed(number_of_steps: int, number_of_substeps: int):
        for i in positions:
            velocity = positions[i]
            for _ in range(number_of_steps):
                for _ in range(number_of_substeps + 2 * counts[None] + number_of_steps * number_of_substeps):
                    velocity = ti.sin(velocity) * positions[i]
                positions[i] = velocity
            loss[None] += velocity

    cost = relaxed.grad_cost(2000, 300)
    lines = repr(cost).splitlines()
    assert max(map(len, lines)) <= 90
    assert lines[3].startswith("not shared: how many values there are to save")
    head, first, *below, last = lines[4:]
    assert head.split() == ["saved", "line", "type", "how", "many", "count", "bytes"]
    velocity, old = cost.saved
    assert first.split()[:3] == ["velocity", str(velocity.span.line), "f64"] and first.endswith(f"{velocity.nbytes:,}")
    assert last.split() == [
        old.name,
        str(old.span.line),
        "f64",
        *old.expression.split(),
        "an",
        "iteration",
        "2,000",
        "16,000",
    ]
    # The long expression goes on below, in its column.
    column = head.index("how many")
    assert below and not any(line[:column].strip() for line in below)
    reported = [first[column:].partition("  ")[0], *(line.strip() for line in below)]
    assert " ".join(reported) == f"{velocity.expression} an iteration"


def test_what_a_launch_saves_where_it_shares_its_work_with_the_gradient():
    x, loss = array(500), scalar()

    @ti.kernel
    def objective(n: int):
        total = 0.0
        for i in range(n):
            total += ti.exp(x[i])
        loss[None] = ti.log(total)

    cost = objective.grad_cost(300)
    assert [(one.type, one.size, one.count) for one in cost.shared] == [("f64", 8, 300), ("f64", 8, 1)]
    assert "where it shares its work, the launch saves 2.4 KiB for it (lines" in repr(cost)

    @ti.kernel
    def squares():
        for i in x:
            loss[None] += x[i] ** 2

    assert squares.grad_cost().shared == squares.grad_cost().unshared == ()


def test_why_a_launch_shares_nothing_with_its_gradient():
    x, y, loss, count, free = array(500), array(500), scalar(), ti.field(ti.i32, 500), ti.field(ti.i32, ())

    @ti.kernel
    def old():
        for i in x:
            y[ti.atomic_add(free[None], 1)] = x[i]  # old
            loss[None] += y[i]

    @ti.kernel
    def until_small():
        for i in x:
            v = x[i]
            while v > 1.0:
                v = ti.exp(-v)  # repeated
            loss[None] += v

    @ti.kernel
    def meeting():  # kernel
        for i in x:
            x[count[i]] = ti.exp(x[i])

    for kernel, line, words in (
        (old, "# old", "old values of atomic operations"),
        (until_small, "# repeated", "how many values"),
        (meeting, "# kernel", "run in order"),
    ):
        cost = kernel.grad_cost()
        (remark,) = cost.unshared
        assert cost.shared == () and words in remark.text and remark.loc.line == line_of(__file__, line)
        assert f"not shared: {remark.text} (line {remark.loc.line})" in repr(cost)
