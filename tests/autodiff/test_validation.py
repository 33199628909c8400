"""The access rules, element by element: what breaks them is found with both its lines, and nothing else is."""

import re
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import overwrites
from tests.autodiff.validated import collected, debugging, field  # noqa: F401
from tinote.errors import AccessRuleError, DifferentiationError
from tinote.ir.checked_accesses import Kind
from tinote.lang.ad.access_rules.violations import Fix, Violation
from tinote.source import line_text

pytestmark = overwrites


def only(loss: Any, run: Any) -> Violation:
    """The one violation of `run`, which is also the one that is raised."""
    (found,) = collected(loss, run)
    with pytest.raises(AccessRuleError) as raised, ti.ad.Tape(loss, validation=True) as tape:
        run()
    assert raised.value.span == found.later.span
    assert [repr(v) for v in tape.violations] == [repr(found)]
    return found


def lines(found: Violation) -> tuple[str, str]:
    """The source under the carets of the earlier and of the later access."""
    spans = (found.earlier.span, found.later.span)
    return tuple(line_text(p)[p.column : p.end_column] for p in spans)  # type: ignore[return-value]


# ---- the examples of the dialect


def test_a_factor_that_changes_after_the_sum() -> None:
    x, b, loss = field("x", 4), field("b"), field("loss")

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i] * b[None]

    @ti.kernel
    def other():
        pass

    @ti.kernel
    def change():
        b[None] += 100

    x.fill(2)
    b[None] = 10
    with pytest.raises(AccessRuleError) as raised, ti.ad.Tape(loss, validation=True):
        total()
        other()
        change()
    message = str(raised.value)
    for line in ("loss[None] += x[i] * b[None]", "b[None] += 100"):
        assert re.search(rf"\| +{re.escape(line)}\n +\| +\^+\n", message), message
    assert "'b[None]' is changed by launch 3, 'change', after being read" in message
    assert "read here, by launch 1, 'total'" in message
    assert "launched in between: 'other'" in message
    assert isinstance(raised.value, DifferentiationError | ti.TaichiAssertionError)
    # Everything is usable afterwards.
    b[None] = 10
    with ti.ad.Tape(loss):
        total()
        change()
    assert x.grad.to_numpy().tolist() == [10] * 4


def test_a_factor_that_changes_in_the_same_kernel() -> None:
    x, b, loss = field("x", 2), field("b"), field("loss")

    @ti.kernel
    def both():
        loss[None] = x[1] * b[None]
        b[None] += 100

    b[None] = 10
    found = only(loss, both)
    assert (found.rule, found.field, found.elements.tolist()) == (1, "b", [[]])
    assert lines(found) == ("b[None]", "b[None] += 100")
    b[None] = 10
    with ti.ad.Tape(loss):
        both()
    assert x.grad.to_numpy().tolist() == [0, 10]


def test_a_loss_that_is_multiplied() -> None:
    x, loss = field("x", 2), field("loss")

    @ti.kernel
    def product():
        loss[None] += x[0] ** 2
        loss[None] *= x[1]

    x.from_numpy(np.array([1.0, 2.0]))
    found = only(loss, product)
    assert (found.rule, found.element) == (2, "loss[None]")
    assert lines(found) == ("loss[None] += x[0] ** 2", "loss[None] *= x[1]")


# ---- programs that keep the rules


def test_time_steps_scatters_and_components() -> None:
    steps, n = 5, 6
    x, y, loss = field("x", steps + 1, n), field("y", n), field("loss")
    v = ti.Vector.field(2, ti.f64, shape=n, needs_grad=True)
    cells, count = ti.field(ti.i32, shape=n), ti.field(ti.i32, shape=n)

    @ti.kernel
    def step(t: ti.i32):
        for i in range(n):
            x[t + 1, i] = ti.sin(x[t, i]) + 0.1 * x[t, (i + 1) % n]

    @ti.kernel
    def scatter():
        for i in range(n):
            count[cells[i]] += 1
            y[cells[i]] += x[steps, i]
            y[i] += x[steps, i]

    @ti.kernel
    def components():
        for i in range(n):
            v[i][0] = y[i]
            v[i][1] = v[i][0] * 2
            loss[None] += v[i].norm_sqr()

    def run() -> None:
        y.fill(0.0)
        for t in range(steps):
            step(t)
        scatter()
        assert y[0] == np.asarray(y)[0]  # what Python reads is a constant
        scatter()
        components()
        assert loss[None] == 0.0
        x.grad.fill(0.0)

    cells.from_numpy(np.array([0, 0, 1, 3, 3, 3], np.int32))
    assert collected(loss, run) == []


def test_serial_loops_and_locals() -> None:
    x, y, loss = field("x", 4), field("y", 4), field("loss")

    @ti.kernel
    def recurrence():
        ti.loop_config(serialize=True)
        for i in range(3):
            x[i + 1] = 2 * x[i]

    @ti.kernel
    def locals_are_no_elements():
        for i in x:
            a = ti.Vector([x[i], 0.0])
            for _ in range(5):
                a[1] = a[0] * 2
                a[0] = a[1] * x[i]
            if a[0] > 0:
                y[i] += a.sum()
        for i in y:
            loss[None] += y[i]

    x.fill(1.0)
    assert collected(loss, lambda: (recurrence(), locals_are_no_elements())) == []


def test_reads_of_constants_that_nothing_depends_on() -> None:
    """Memory without a gradient may change, unless a derivative depends on it."""
    x, loss = field("x", 4), field("loss")
    frame, picture, best = ti.field(ti.i32, shape=()), ti.field(ti.f64, shape=4), ti.field(ti.f64, shape=())

    @ti.kernel
    def render():
        for i in x:
            picture[i] = x[i] * frame[None]
            picture[i] = picture[i] + 1
            ti.atomic_max(best[None], x[i])
        frame[None] += 1
        for i in x:
            loss[None] += x[i]
        if frame[None] % 2 == 0:
            picture[0] = 0.0

    assert collected(loss, lambda: (render(), render(), frame.fill(3), render())) == []


# ---- what breaks them


def test_every_way_to_change_what_was_read() -> None:
    n = 3
    x, y, loss = field("x", n), field("y", n), field("loss")

    @ti.kernel
    def read():
        for i in x:
            loss[None] += x[i] ** 2

    @ti.kernel
    def store():
        x[1] = 4.0

    @ti.kernel
    def add():
        for i in range(1, 3):
            x[i] += 4.0

    @ti.kernel
    def of_argument(a: ti.template(), k: ti.i32):
        a[k] -= 1.0

    def python() -> None:
        x[1] = 3.0

    for change, elements, fix in (
        (store, [[1]], Fix.SPLIT),
        (add, [[1], [2]], Fix.SPLIT),
        (lambda: of_argument(x, 2), [[2]], Fix.SPLIT),
        (python, [[1]], Fix.TAPE),
        (lambda: x.fill(0), [[0], [1], [2]], Fix.TAPE),
        (lambda: x.copy_from(y), [[0], [1], [2]], Fix.TAPE),
        (lambda: x.from_numpy(np.zeros(n)), [[0], [1], [2]], Fix.TAPE),
    ):

        def run(change: Any = change) -> None:
            read()
            change()

        found = only(loss, run)
        assert (found.rule, found.field, found.elements.tolist(), found.fixes[0]) == (1, "x", elements, fix)
        assert lines(found)[0] == "x[i]"
        assert found.earlier.kind is Kind.READ and found.earlier.kernel == "read" and found.earlier.launch == 1

    # A copy by Python reads what it copies.
    found = only(loss, lambda: (y.copy_from(x), store()))
    assert (found.rule, lines(found)) == (1, ("y.copy_from(x)", "x[1]"))


def test_the_second_write_adds() -> None:
    y, loss = field("y", 3), field("loss")

    @ti.kernel
    def first():
        for i in y:
            y[i] = 1.0

    @ti.kernel
    def second(k: ti.i32):
        y[k] = 2.0

    @ti.kernel
    def scaled(k: ti.i32):
        ti.atomic_mul(y[k], 2.0)

    def python() -> None:
        y[2] = 5.0

    assert only(loss, lambda: (first(), second(1))).fixes == (Fix.ACCUMULATE, Fix.TAPE)
    for change in (second, scaled):
        found = only(loss, lambda change=change: (first(), change(2)))
        assert (found.rule, found.elements.tolist(), lines(found)[0]) == (2, [[2]], "y[i]")
    found = only(loss, lambda: (first(), python()))
    assert (found.rule, lines(found)) == (2, ("y[i]", "y[2]"))
    found = only(loss, lambda: (python(), second(2)))
    assert (found.rule, lines(found)) == (2, ("y[2]", "y[k]"))


def test_operations_that_read_and_change_at_once() -> None:
    x, y, loss = field("x", 3), field("y", 8), field("loss")
    count = ti.field(ti.i32, shape=(), name="count")

    @ti.kernel
    def scaled():
        for i in range(2):
            x[i] *= 2.0

    @ti.kernel
    def old_value():
        y[0] = ti.atomic_add(x[1], 1.0)

    @ti.kernel
    def slots():
        for i in x:
            k = ti.atomic_add(count[None], 1)
            y[k] = x[i]

    for run, line, elements in (
        (scaled, "x[i] *= 2.0", [[0], [1]]),
        (old_value, "ti.atomic_add(x[1], 1.0)", [[1]]),
    ):
        found = only(loss, run)
        assert (found.rule, lines(found), found.elements.tolist()) == (1, (line, line), elements)
        assert "read and changed by one operation" in found.reason
    with pytest.raises(DifferentiationError, match=r"ti.atomic_add\(count"), ti.ad.Tape(loss, validation=True):
        slots()


def test_what_steers_counts() -> None:
    x, loss = field("x", 4), field("loss")
    n, flag, where = (ti.field(ti.i32, shape=(), name=name) for name in ("n", "flag", "where"))
    through = ti.field(ti.f64, shape=(), name="through")
    weight = ti.field(ti.f64, shape=(), name="weight")

    @ti.kernel
    def bound():
        for i in range(n[None]):
            loss[None] += x[i]

    @ti.kernel
    def condition():
        for i in x:
            keep = flag[None]
            if keep > 0:
                loss[None] += x[i]

    @ti.kernel
    def until():
        k = 0
        while k < n[None]:
            loss[None] += x[k]
            k += 1

    @ti.kernel
    def index():
        loss[None] += x[where[None]]

    @ti.kernel
    def factor():
        through[None] = weight[None] * 2
        loss[None] += x[0] * through[None]

    for field_, value, run, line in (
        (n, 2, bound, "n[None]"),
        (flag, 1, condition, "flag[None]"),
        (n, 2, until, "n[None]"),
        (where, 1, index, "where[None]"),
        (weight, 3, factor, "weight[None]"),
    ):
        field_[None] = value
        found = only(loss, lambda run=run, field_=field_: (run(), field_.fill(0)))
        assert (found.rule, found.field, lines(found)[0]) == (1, field_.name, line)


def test_iterations_of_a_parallel_loop_have_no_order() -> None:
    x, y, loss = field("x", 4), field("y", 4), field("loss")

    @ti.kernel
    def forwards():
        for i in range(3):
            x[i + 1] = x[i]

    @ti.kernel
    def backwards():
        for i in range(3):
            x[i] = x[i + 1]

    @ti.kernel
    def running_sum():
        for i in range(2):
            loss[None] += y[i]
            if i == 1:
                y[3] = loss[None]

    @ti.kernel
    def one_loop_after_another():
        for i in range(4):
            loss[None] += y[i]
        for i in range(4):
            x[i] = loss[None]

    def refused(run: Any) -> Violation:
        """The one violation of `run`, which has no gradient either."""
        tape = ti.ad.Tape(loss, validation="collect")
        with pytest.raises(DifferentiationError, match="without an order there is no gradient"), tape:
            run()
        with pytest.raises(AccessRuleError), ti.ad.Tape(loss, validation=True):
            run()
        (found,) = tape.violations
        return found

    first, second = refused(forwards), refused(backwards)
    assert (first.rule, first.elements.tolist()) == (1, [[1], [2]])
    assert (second.rule, second.elements.tolist()) == (1, [[1], [2]])
    assert lines(first) == ("x[i + 1]", "x[i]")
    assert lines(second) == ("x[i + 1]", "x[i]")
    assert "iterations have no order" in first.reason
    assert first.fixes == (Fix.DOUBLE_BUFFER,), "the tape cannot mend what has no order"
    with pytest.raises(DifferentiationError, match="without an order there is no gradient"):
        collected(loss, running_sum)
    assert collected(loss, one_loop_after_another) == []
