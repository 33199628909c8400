"""`kernel.grad()` computes with memory as it is then: where what it needs has changed since the launch, a warning names
both lines, once; where nothing has, there is none.
"""

import random
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import session  # noqa: F401
from tinote.errors import DifferentiationError

N = 4
factor = 2.0
column = ti.types.ndarray(dtype=ti.f64, ndim=1)


class World:
    def __init__(self) -> None:
        self.x = x = ti.field(ti.f64, N, needs_grad=True)
        self.y = y = ti.field(ti.f64, N, needs_grad=True)
        self.z = z = ti.field(ti.f64, N, needs_grad=True)
        self.v = v = ti.Vector.field(2, ti.f64, N, needs_grad=True)
        self.times = times = ti.field(int, ())
        self.other = other = ti.field(ti.f64, N)
        self.first = True

        @ti.kernel
        def square():
            for i in x:
                y[i] = x[i] ** 2 * v[i][0]
                for _ in range(times[None]):
                    y[i] += x[i] * x[i]

        @ti.kernel
        def move_x():
            for i in x:
                x[i] = x[i] + 1.0

        @ti.kernel
        def more():
            times[None] += 1

        @ti.kernel
        def use_y():
            for i in y:
                z[i] = y[i] ** 2

        @ti.kernel
        def unrelated():
            for i in other:
                other[i] += 1.0

        self.square, self.move_x, self.more, self.use_y, self.unrelated = square, move_x, more, use_y, unrelated

    def begin(self) -> None:
        self.x.fill(0.5)
        self.v.fill(1.0)
        self.times[None] = 1
        self.square()
        self.y.grad.fill(1.0)

    def warned(self) -> list[str]:
        """What the gradient of `square` warns of."""
        with warnings.catch_warnings(record=True) as reported:
            warnings.simplefilter("always")
            self.square.grad()
        return [str(one.message) for one in reported]


#: What happens between the launch and its gradient, and what has changed by that.
CHANGES: dict[str, tuple[Callable[[World], Any], str]] = {
    "an element": (lambda w: w.x.__setitem__(0, 3.0), "x"),
    "a fill": (lambda w: w.x.fill(3.0), "x"),
    "an array": (lambda w: w.x.from_numpy(np.ones(N)), "x"),
    "a copy": (lambda w: w.x.copy_from(w.other), "x"),
    "a vector": (lambda w: w.v.__setitem__(1, [3.0, 0.0]), "v"),
    "a component": (lambda w: w.v[1].__setitem__(0, 3.0), "v"),
    "a component field": (lambda w: w.v.get_scalar_field(0).fill(2.0), "v"),
    "a trip count": (lambda w: w.times.__setitem__(None, 5), "times"),
    "a kernel that changes a trip count": (lambda w: w.more(), "times"),
    "a kernel": (lambda w: w.move_x(), "x"),
    "a kernel, and others": (lambda w: (w.unrelated(), w.move_x(), w.use_y()), "x"),
}
NOTHING: dict[str, Callable[[World], Any]] = {
    "nothing": lambda w: None,
    "a field that it does not read": lambda w: w.other.fill(1.0),
    "a kernel that only reads": lambda w: w.use_y(),
    "what it has written": lambda w: w.y.fill(1.0),
    "an unrelated kernel": lambda w: w.unrelated(),
    "gradients": lambda w: (w.y.grad.fill(1.0), w.x.grad.fill(0.0)),
    "a change, and a launch after it": lambda w: (w.x.fill(3.0), w.move_x(), w.square()),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_warned_of_once(change: str) -> None:
    world = World()
    do, name = CHANGES[change]
    for repetition in range(3):
        world.begin()
        do(world)
        reported = world.warned()
        assert len(reported) == (repetition == 0)
        for text in reported:
            assert f"'{name}' has changed since 'square' was launched" in text
            assert "self.square.grad()" in text  # the line of the gradient, and that of the change:
            assert re.search(r"def (move_x|more)" if "kernel" in change else "lambda w", text)


@pytest.mark.parametrize("nothing", NOTHING)
def test_nothing_that_matters_is_not_warned_of(nothing: str) -> None:
    world = World()
    for _ in range(3):
        world.begin()
        NOTHING[nothing](world)
        assert world.warned() == []


def reported_by(gradient: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as reported:
        warnings.simplefilter("always")
        gradient()
    return [str(one.message) for one in reported]


@pytest.mark.parametrize("order", ["the writer first", "the reader first"])
def test_a_kernel_that_changes_a_field_without_a_gradient(order: str) -> None:
    """However the two were compiled."""
    x, scale = ti.field(ti.f64, N, needs_grad=True), ti.field(ti.f64, N, name="scale")
    loss = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def enlarge():
        for i in scale:
            scale[i] += 1.0

    @ti.kernel
    def measure():
        for i in x:
            loss[None] += x[i] ** 2 * scale[i]

    if order == "the writer first":
        enlarge()
    measure()
    assert reported_by(measure.grad) == []
    enlarge()
    (text,) = reported_by(measure.grad)
    assert "'scale' has changed since 'measure' was launched" in text
    assert "def enlarge" in text


@pytest.mark.parametrize("changed", [[0], [0, 1], [1, 0], list(range(12)), [*range(2, 12), 1], [*range(2, 12)]])
def test_each_element_that_python_writes_counts(changed: list[int]) -> None:
    """Not just the first one: the kernel reads the second. Of many, all may."""
    x, loss = ti.field(ti.f64, 12, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def measure():
        loss[None] += x[1] ** 2

    measure()
    for k in changed:
        x[k] = 3.0
    assert len(reported_by(measure.grad)) == (1 in changed or len(changed) > 8)


def test_a_write_before_another_launch_counts() -> None:
    x, y, loss = [ti.field(ti.f64, shape, needs_grad=True) for shape in (2, 2, ())]

    @ti.kernel
    def measure():
        loss[None] += x[0] ** 2

    @ti.kernel
    def other():
        y[1] = x[1] ** 2

    measure()
    x[0] = 3.0
    other()
    x[1] = 3.0
    assert len(reported_by(measure.grad)) == 1


@pytest.mark.parametrize("change", ["element", "fill", "from_numpy"])
def test_an_array_that_is_an_argument(change: str) -> None:
    a, loss = ti.ndarray(ti.f64, N, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def measure(a: column):
        for i in a:
            loss[None] += a[i] ** 2

    def do() -> None:
        match change:
            case "element":
                a[1] = 3.0
            case "fill":
                a.fill(3.0)
            case _:
                a.from_numpy(np.ones(N))

    do()
    measure(a)
    assert reported_by(lambda: measure.grad(a)) == []
    do()
    assert len(reported_by(lambda: measure.grad(a))) == 1
    assert reported_by(lambda: measure.grad(a)) == []


def test_a_constant_of_the_kernel() -> None:
    global factor
    x, y = ti.field(ti.f64, (), needs_grad=True), ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def scale():
        y[None] = factor * x[None]

    scale()
    factor = 3.0
    y.grad[None] = 1.0
    with pytest.warns(UserWarning, match=r"factor = 3.0, which was factor = 2.0, has changed since 'scale' was"):
        scale.grad()
    assert x.grad[None] == 3.0
    factor = 2.0


def test_a_result_without_a_gradient() -> None:
    """Alone, a kernel has no temporary adjoints: a gradient of nothing would be zero without a word."""
    x, plain = ti.field(ti.f64, (), needs_grad=True), ti.field(ti.f64, ())
    constant = ti.field(ti.f64, (), needs_grad=False)

    @ti.kernel
    def store(target: ti.template()):
        target[None] = 3 * x[None]

    for target, how in ((plain, "has no gradient"), (constant, "was declared to have no gradient")):
        store(target)
        with pytest.raises(DifferentiationError, match=how) as caught:
            store.grad(target)
        assert "target[None] = 3 * x[None]" in str(caught.value)


def test_time_steps_in_slices_are_right_and_not_warned_of() -> None:
    """Each step reads what no later step writes."""
    steps = 5
    x = ti.field(ti.f64, (steps + 1, N), needs_grad=True)
    force = ti.field(ti.f64, (steps, N), needs_grad=True)
    loss = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def forces(t: int):
        for i in range(N):
            force[t, i] = -ti.sin(x[t, i])

    @ti.kernel
    def integrate(t: int):
        for i in range(N):
            x[t + 1, i] = x[t, i] + 0.1 * force[t, i]

    @ti.kernel
    def measure():
        for i in range(N):
            loss[None] += x[steps, i] ** 2

    def run() -> None:
        loss[None] = 0.0
        for i in range(N):
            x[0, i] = 0.1 * (i + 1)
        for t in range(steps):
            forces(t)
            integrate(t)
        measure()

    run()
    loss.grad[None] = 1.0
    measure.grad()
    for t in reversed(range(steps)):
        integrate.grad(t)
        forces.grad(t)
    by_hand = x.grad.to_numpy()[0]
    with ti.ad.Tape(loss):
        run()
    np.testing.assert_allclose(by_hand, x.grad.to_numpy()[0], rtol=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_random_orders_of_launches_changes_and_gradients(seed: int) -> None:
    """A gradient is that of the launch, or it is warned of."""
    choose = random.Random(seed)
    x = [ti.field(ti.f64, (), needs_grad=True, name=f"x{k}") for k in range(3)]

    def squares(source: Any, target: Any) -> Any:
        @ti.kernel
        def square():
            target[None] = source[None] ** 2

        return square

    kernels = {(a, b): squares(x[a], x[b]) for a in range(3) for b in range(3) if a != b}
    launched_at: dict[tuple[int, int], float] = {}
    warned: set[tuple[int, int]] = set()
    for _ in range(120):
        what = choose.randrange(4)
        pair = choose.choice(list(kernels))
        if what == 0:
            x[pair[0]][None] = choose.uniform(0.5, 1.0)
        elif what < 3:
            launched_at[pair] = x[pair[0]][None]
            kernels[pair]()
        elif pair in launched_at:
            for one in x:
                one.grad[None] = 0.0
            x[pair[1]].grad[None] = 1.0
            with warnings.catch_warnings(record=True) as reported:
                warnings.simplefilter("always")
                kernels[pair].grad()
            is_right = x[pair[0]].grad[None] == pytest.approx(2 * launched_at[pair])
            if not reported and not is_right:
                # Only what was warned of before, at the same lines, may go without a word.
                assert pair in warned, pair
            if reported:
                warned.add(pair)
                assert "has changed since 'square' was launched" in str(reported[0].message)
