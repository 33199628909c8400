"""How a tape is made to check the access rules, and which memory the checks follow."""

import pickle
import re
import warnings
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import overwrites
from tests.autodiff.validated import collected, debugging, field  # noqa: F401
from tinote.errors import AccessRuleError, DifferentiationError, KernelIndexError

pytestmark = overwrites


class Factor:
    """A sum of `x * b`, and a launch that then changes `b`."""

    def __init__(self) -> None:
        self.x, self.b, self.loss = field("x", 3), field("b"), field("loss")
        x, b, loss = self.x, self.b, self.loss

        @ti.kernel
        def total():
            for i in x:
                loss[None] += x[i] * b[None]

        @ti.kernel
        def change():
            b[None] += 100

        self.total, self.change = total, change

    def __call__(self) -> None:
        self.b.fill(10)
        self.total()
        self.change()

    def slopes(self, **options: Any) -> list[float]:
        self.b[None] = 10
        with ti.ad.Tape(self.loss, **options):
            self.total()
            self.change()
        return self.x.grad.to_numpy().tolist()


# ---- options


def test_what_becomes_of_an_overwritten_factor() -> None:
    program = Factor()
    assert program.slopes() == [10] * 3
    assert program.slopes(on_overwrite="auto") == [10] * 3
    assert program.slopes(on_overwrite="unchecked") == [110] * 3
    assert program.slopes(validation="collect") == [10] * 3
    with pytest.raises(AccessRuleError):
        program.slopes(validation=True)
    with pytest.raises(AccessRuleError):
        program.slopes(on_overwrite="error")
    assert program.slopes() == [10] * 3


def test_unchecked_keeps_nothing() -> None:
    program = Factor()
    for mode, copied in (("auto", 8), ("unchecked", 0)):
        program.b[None] = 10
        with ti.ad.Tape(program.loss, on_overwrite=mode) as tape:
            program.total()
            program.change()
            assert tape.copied_bytes == copied

    @ti.kernel
    def within():
        program.loss[None] = program.x[1] * program.b[None]
        program.b[None] += 100

    program.b[None] = 10
    with ti.ad.Tape(program.loss, on_overwrite="unchecked"):
        within()
    assert program.x.grad.to_numpy().tolist() == [0, 10, 0], "what one kernel overwrites itself is kept"
    assert program.b[None] == 110


@pytest.mark.parametrize("options", [{"validation": True}, {"on_overwrite": "error"}])
def test_validation_needs_no_debug_mode(options: dict[str, Any]) -> None:
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    program = Factor()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(AccessRuleError):
            program.slopes(**options)
        with ti.ad.Tape(program.loss, validation="collect") as tape:
            program()
    assert [violation.field for violation in tape.violations] == ["b"]


def test_options_that_do_not_exist() -> None:
    loss = field("loss")
    for options in ({"validation": "yes"}, {"validation": None}, {"on_overwrite": "ignore"}, {"on_overwrite": None}):
        with pytest.raises(DifferentiationError, match=next(iter(options))):
            ti.ad.Tape(loss, **options)
    with ti.ad.Tape(loss, True, False) as tape:
        pass
    assert tape.violations == []


def test_the_error_survives_pickling() -> None:
    program = Factor()
    with pytest.raises(AccessRuleError) as raised:
        program.slopes(validation=True)
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


# ---- what is collected


def test_all_violations_in_their_order() -> None:
    x, y, loss = field("x", 4), field("y", 4), field("loss")

    @ti.kernel
    def sum_up():
        for i in x:
            loss[None] += x[i] * y[i]

    @ti.kernel
    def move():
        for i in x:
            x[i] += 0.5 * y[i]
        for i in range(2):
            y[2 * i] = 0.0

    def run() -> None:
        for _ in range(2):
            sum_up()
            move()

    found = collected(loss, run)
    first, second, third, fourth, *_ = found
    assert [v.field for v in found] == ["x", "y", "x", "y"]
    assert first.elements.tolist() == [[0], [1], [2], [3]]
    assert (first.earlier.launch, first.later.launch, first.between) == (1, 2, ())
    assert second.elements.tolist() == [[0], [2]]
    assert (third.earlier.launch, third.later.launch) == (3, 4), "the old read is over with the first change"
    assert "'x[0]' and 3 more elements" in first.reason
    assert (fourth.earlier.launch, fourth.later.launch) == (3, 4)
    for one in found:
        assert one.rule == 1
        for access in (one.earlier, one.later):
            assert access.span.file == __file__ and access.span.end_column > access.span.column
            assert access.kernel in ("sum_up", "move")


def test_launches_between() -> None:
    program = Factor()

    def run() -> None:
        program.total()
        for _ in range(9):
            program.x.grad.to_numpy()
            program.total()
        program.x.fill(3)

    (found,) = collected(program.loss, run)
    assert found.between == ("total",) * 9
    assert "'total', and 3 more" in str(found.error())


def test_how_elements_are_called() -> None:
    loss = field("loss")
    v = ti.Vector.field(2, ti.f64, shape=(3, 2), needs_grad=True, name="v")
    m = ti.Matrix.field(2, 2, ti.f64, shape=(), needs_grad=True, name="m")
    w = ti.field(ti.f64, shape=4, needs_grad=True, offset=-2, name="w")

    @ti.kernel
    def read():
        loss[None] += v[2, 1].sum() + m[None][1, 0] + w[-1]

    @ti.kernel
    def write():
        v[2, 1][1] = 3.0
        m[None] = ti.Matrix([[1.0, 0.0], [0.0, 1.0]])
        w[-1] = 2.0

    found = collected(loss, lambda: (read(), write()))
    assert [one.element for one in found] == ["v[2, 1][1]", "m[None][1, 0]", "w[-1]"]
    assert [one.elements.tolist() for one in found] == [[[2, 1, 1]], [[1, 0]], [[-1]]]
    assert [one.shape for one in found] == [(3, 2), (), (4,)]

    def python() -> None:
        v[2, 1][0] = 1.0
        v.get_scalar_field(1).fill(0.0)
        m[None][0, 0] = 1.0

    found = collected(loss, lambda: (read(), python()))
    assert [one.element for one in found] == ["v[2, 1][0]", "v[2, 1][1]"]


# ---- memory


def test_arrays_as_arguments() -> None:
    loss, y = field("loss"), field("y", 4)

    @ti.kernel
    def read(a: ti.types.ndarray(dtype=ti.f64, ndim=1)):
        for i in a:
            y[i] += a[i] ** 2

    @ti.kernel
    def write(a: ti.types.ndarray(dtype=ti.f64, ndim=1), k: ti.i32):
        a[k] = 1.0

    ours, numpy = ti.ndarray(ti.f64, shape=4, needs_grad=True, name="ours"), np.ones(4)
    other = np.ones(4)
    for memory in (ours, numpy):
        assert collected(loss, lambda memory=memory: (read(other), write(memory, 2), read(memory))) == []
        (found,) = collected(loss, lambda memory=memory: (read(memory), write(memory, 2)))
        assert (found.rule, found.elements.tolist()) == (1, [[2]])
    assert collected(loss, lambda: (write(numpy, 1), write(numpy, 1))) == []
    assert [v.rule for v in collected(loss, lambda: (write(ours, 1), write(ours, 1)))] == [2]
    # A part of an array is the same memory, whichever is seen first.
    for first, second, k, broken in (
        (numpy, numpy[1:], 1, True),
        (numpy[2:], numpy, 3, True),
        (numpy[2:], numpy, 1, False),
        (numpy[:2], numpy[1:], 0, True),
        (numpy[:2], numpy[2:], 0, False),
    ):
        found = collected(loss, lambda first=first, second=second, k=k: (read(first), write(second, k), read(second)))
        assert [v.elements.tolist() for v in found] == ([[[k]]] if broken else [])


def test_writes_from_outside() -> None:
    x, loss = field("x", 4), field("loss")
    weights = np.ones(4)

    @ti.kernel
    def read(a: ti.types.ndarray(dtype=ti.f64, ndim=1)):
        for i in x:
            loss[None] += x[i] * a[i]

    view = x.numpy_view()

    def through_the_view() -> None:
        read(weights)
        view[2] += 1.0
        read(weights)

    def to_the_array() -> None:
        read(weights)
        weights[3] += 7.0

    for run, element in ((through_the_view, "x[2]"), (to_the_array, "a[3]")):
        (found,) = collected(loss, run)
        assert (found.rule, found.element, found.later.outside) == (1, element, True)
        assert "through an array that shares the memory" in found.reason
        with pytest.raises(AccessRuleError), ti.ad.Tape(loss, validation=True):
            run()

    def only_looked_at() -> None:
        x[0] = 2.0
        read(weights)
        assert view[0] == 2.0
        assert np.asarray(x).sum() >= 2.0

    assert collected(loss, only_looked_at) == []


# ---- what is exempt, and what goes on after a fault


def test_functions_with_a_replaced_gradient_are_exempt() -> None:
    x, loss = field("x", 3), field("loss")

    @ti.kernel
    def double():
        for i in x:
            x[i] = 2 * x[i]

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i]

    @ti.ad.grad_replaced
    def twice():
        double()
        x[0] = 4.0
        double()

    @ti.ad.grad_for(twice)
    def back():
        pass

    @ti.ad.no_grad
    def constant():
        x.fill(1.0)

    assert collected(loss, lambda: (total(), twice(), total())) == []
    assert collected(loss, lambda: (total(), constant(), total())) == []
    view = x.numpy_view()
    assert collected(loss, lambda: (total(), twice(), total())) == []
    assert len(view) == 3


def test_a_launch_that_fails_leaves_the_account_usable() -> None:
    x, loss = field("x", 3), field("loss")

    @ti.kernel
    def square(i: ti.i32):
        loss[None] += x[i] ** 2

    @ti.kernel
    def store(i: ti.i32):
        x[i] = 1.0

    def run() -> None:
        with pytest.raises(KernelIndexError, match=re.escape("'x'")):
            square(3)
        with pytest.raises(TypeError):
            square("a")  # type: ignore[arg-type]
        square(1)
        store(2)
        store(1)

    (found,) = collected(loss, run)
    assert found.element == "x[1]"


def test_random_draws_and_results_are_the_kernels_own() -> None:
    x, loss = field("x", 64), field("loss")

    @ti.kernel
    def noise(scale: ti.f64) -> ti.f64:
        for i in x:
            x[i] = scale * ti.random(ti.f64)
        for i in x:
            loss[None] += x[i] ** 2
        return scale + 1

    def drawn(**options: Any) -> tuple[float, list[float]]:
        ti.init(arch=ti.cpu, default_fp=ti.f64, debug=True, random_seed=3)
        nonlocal x, loss
        x, loss = field("x", 64), field("loss")
        with ti.ad.Tape(loss, **options):
            result = noise(2.0)
        return result, x.to_numpy().tolist()

    assert drawn(validation=True) == drawn()


def test_checkpointed_steps_are_exempt() -> None:
    x, loss = field("x", 3), field("loss")

    @ti.kernel
    def double():
        for i in x:
            x[i] = 2 * x[i]

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i] ** 2

    def run() -> None:
        ti.ad.checkpoint(lambda t: double(), steps=6, progress=False)
        total()

    x.fill(1.0)
    with ti.ad.Tape(loss, on_overwrite="error"):
        run()
    assert x.grad.to_numpy().tolist() == [2 * 64.0 * 64.0] * 3
