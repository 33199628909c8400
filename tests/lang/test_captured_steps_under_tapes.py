"""Captured steps under tapes: one record, whose gradient is a program too, and the derivatives of the function."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import Any, NamedTuple

import numpy as np
import pytest

import tinote as ti
from tinote.errors import CaptureError, DifferentiationError, KernelIndexError, KernelMemoryError
from tinote.lang.ad.journal import saved_values, step_capture
from tinote.lang.ad.journal.captured_steps import CapturedStep
from tinote.lang.session.state import session
from tinote.program import operations as ops
from tinote.runtime.seam import Listener, listeners

N = 6


@pytest.fixture(autouse=True)
def share_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps save what their gradients could compute, however little that is."""
    monkeypatch.setattr(step_capture, "LEAST_SHARED", 1)


class Fields:
    """What the steps work on."""

    def __init__(self, single: Any = ti.f32, **options: Any) -> None:
        ti.init(default_fp=ti.f64, num_threads=1, random_seed=3, **options)
        self.x = ti.Vector.field(2, ti.f64, shape=N, needs_grad=True)
        self.v = ti.Vector.field(2, ti.f64, shape=N, needs_grad=True)
        self.y = ti.field(ti.f64, shape=N, needs_grad=True)
        self.z = ti.field(single, shape=N, needs_grad=True)
        self.plain = ti.field(ti.f64, shape=N)
        self.count = ti.field(ti.i32, shape=())
        self.slices = ti.field(ti.f64, shape=(12, N), needs_grad=True)
        self.loss = ti.field(ti.f64, shape=(), needs_grad=True)
        self.all = [self.x, self.v, self.y, self.z, self.plain, self.count, self.slices, self.loss]

    def begin(self) -> None:
        numbers = np.random.default_rng(7)
        for field in self.all:
            array = field.to_numpy()
            field.from_numpy(numbers.uniform(0.2, 1.0, array.shape).astype(array.dtype))
        ti.ad.clear_all_gradients()

    def gradients(self) -> list[np.ndarray]:
        return [field.grad.to_numpy() for field in self.all if field.has_grad]

    def values(self) -> list[np.ndarray]:
        return [field.to_numpy() for field in self.all]


def gravity(f: Fields) -> Callable[..., Any]:
    x, v = f.x, f.v

    @ti.kernel
    def kick(dt: ti.f64):
        for i in x:
            a = ti.Vector([0.0, 0.0])
            for j in range(N):
                d = x[j] - x[i]
                a += d / (d.norm_sqr() + 0.1) ** 1.5
            v[i] += dt * a

    @ti.kernel
    def drift(dt: ti.f64):
        for i in x:
            x[i] += dt * v[i]

    def step(dt=0.05):
        kick(dt)
        drift(dt)
        kick(0.5 * dt)

    return step


def springs(f: Fields) -> Callable[..., Any]:
    x, v, y = f.x, f.v, f.y

    @ti.kernel
    def pull(k: ti.f64, dt: ti.f64):
        for i in range(N - 1):
            d = x[i + 1] - x[i]
            force = k * y[i] * (d.norm() - 0.3) * d.normalized(1e-3)
            v[i] += dt * force
            v[i + 1] -= dt * force

    @ti.kernel
    def move(dt: ti.f64):
        for i in x:
            v[i] *= 0.98
            x[i] += dt * v[i]

    def step(k=2.0, dt=0.1):
        pull(k, dt)
        move(dt)

    return step


def overwriting(f: Fields) -> Callable[..., Any]:
    y = f.y

    @ti.kernel
    def curl():
        for i in y:
            y[i] = y[i] * (1 + 0.5 * ti.sin(y[i]))

    def step():
        curl()
        curl()
        curl()

    return step


def within_a_kernel(f: Fields) -> Callable[..., Any]:
    x, y = f.x, f.y

    @ti.kernel
    def twice():
        for i in x:
            x[i] -= 0.1 * x[i] / (0.5 + x[i].norm_sqr())
        for i in y:
            y[i] += 0.1 * x[i][0] * y[i]

    return lambda: twice()


def elements(f: Fields) -> Callable[..., Any]:
    y, z, curl = f.y, f.z, overwriting(f)

    def step():
        a = y[0]
        y[1] = a * y[2] + 0.5
        z[0] = z[1] + 0.25 * a
        y[3] = 0.5
        curl()

    return step


def branches(f: Fields) -> Callable[..., Any]:
    y, count, curl = f.y, f.count, overwriting(f)

    def step():
        count[None] += 1
        if y[0] > 1.0:
            y[0] = y[0] * y[0] - 0.75
        else:
            curl()
            if count[None] > 2:
                y[1] = 0.1

    return step


def returned(f: Fields) -> Callable[..., Any]:
    y, curl = f.y, overwriting(f)

    @ti.kernel
    def mean() -> ti.f64:
        s = 0.0
        for i in range(N):
            s += y[i]
        return s / N

    @ti.kernel
    def shift(by: ti.f64):
        for i in y:
            y[i] += by * y[i]

    def step(by=0.1):
        m = mean()
        shift(by * m)
        curl()
        return m, 2 * mean()

    return step


def drawn(f: Fields) -> Callable[..., Any]:
    y = f.y

    @ti.kernel
    def noise():
        for i in y:
            y[i] *= 1 + 0.1 * ti.random()

    def step():
        noise()
        noise()

    return step


def in_single_precision(f: Fields) -> Callable[..., Any]:
    z = f.z

    @ti.kernel
    def bend(k: ti.f32):
        for i in z:
            z[i] += k * z[i] * ti.cos(z[i])

    def step(k=0.25):
        bend(k)
        z[0] = z[1] * z[2]

    return step


clock = 0.0
ticks = 0


def counting(f: Fields) -> Callable[..., Any]:
    y = f.y

    @ti.kernel
    def sway(t: ti.f64):
        for i in y:
            y[i] *= 1 + 0.1 * ti.sin(t + i)

    def step(dt=0.3):
        global clock
        sway(clock)
        clock += dt

    return step


def an_argument_that_is_a_field(f: Fields) -> Callable[..., Any]:
    y = f.y

    @ti.kernel
    def mix(a: ti.template(), k: ti.i32):
        for i in a:
            a[i] *= 1.5 - k * a[i]

    def step(field=y, k=1):
        mix(field, k)
        mix(field, k - 2)

    return step


class Case(NamedTuple):
    """`native`: whether calls are one record; else a part of why not. `first`: how many of the first calls are not."""

    make: Callable[[Fields], Callable[..., Any]]
    native: bool = True
    why: str = ""
    first: int = 0


def slices_of_time(f: Fields) -> Callable[..., Any]:
    slices = f.slices

    @ti.kernel
    def advance(t: ti.i32):
        for i in range(N):
            slices[t + 1, i] = slices[t, i] * (1 + 0.5 * ti.sin(slices[t, i]))

    def step(t=0):
        advance(t)

    return step


def several_on_slices(f: Fields) -> Callable[..., Any]:
    slices, y, v = f.slices, f.y, f.v

    @ti.kernel
    def advance(t: ti.i32, dt: ti.f64):
        for i in range(N):
            slices[t, i] = slices[t - 1, i] * (1 + dt * ti.sin(slices[t - 2, i] + y[i]))

    @ti.kernel
    def gather(t: ti.i32):
        for i in v:
            v[i] = 0.5 * v[i] * v[i] + ti.Vector([slices[t, i], slices[t - 1, N - 1 - i]])

    def step(t=1, dt=0.3):
        advance(2 * t, dt)
        gather(2 * t)
        advance(2 * t + 1, dt)
        gather(t + 1 + t)

    return step


def slices_by_a_counter(f: Fields) -> Callable[..., Any]:
    slices = f.slices

    @ti.kernel
    def advance(t: ti.i32):
        for i in range(N):
            slices[t + 1, i] = slices[t, i] * (1 + 0.5 * ti.sin(slices[t, i]))

    def step():
        global ticks
        advance(ticks)
        ticks += 1

    return step


def slices_on_one_way(f: Fields) -> Callable[..., Any]:
    y, count, advance, curl = f.y, f.count, slices_of_time(f), overwriting(f)

    def step(t=4):
        count[None] += 1
        if y[0] * count[None] > 2.0:
            advance(t)
        else:
            curl()

    return step


def slices_in_place(f: Fields) -> Callable[..., Any]:
    slices = f.slices

    @ti.kernel
    def square(t: ti.i32):
        for i in range(N):
            slices[t, i] = slices[t, i] * slices[t, i]

    return lambda t=1: square(t)


def slices_overwritten(f: Fields) -> Callable[..., Any]:
    slices, advance = f.slices, slices_of_time(f)

    @ti.kernel
    def fill(t: ti.i32):
        for i in range(N):
            slices[t, i] = 0.5 * i

    def step(t=1):
        advance(t)
        fill(t)

    return step


def slices_by_an_element(f: Fields) -> Callable[..., Any]:
    count, advance = f.count, slices_of_time(f)

    def step():
        advance(count[None])
        count[None] += 1

    return step


def memory_that_goes_on(f: Fields) -> Callable[..., Any]:
    y, v, plain = f.y, f.v, f.plain

    @ti.kernel
    def there():
        for i in y:
            plain[i] = 0.5 * plain[i] * plain[i] + 2 * y[i] * y[i]

    @ti.kernel
    def back():
        for i in y:
            y[i] = 0.3 * plain[i] * v[i][0] + 0.1

    def step():
        back()
        there()

    return step


def elements_without_gradient(f: Fields) -> Callable[..., Any]:
    y, plain, there_and_back = f.y, f.plain, memory_that_goes_on(f)

    def step():
        there_and_back()
        plain[0] = 0.5 * y[1] * plain[2]
        y[3] = plain[0] + 0.25 * y[3]

    return step


def through_memory_without_gradient(f: Fields) -> Callable[..., Any]:
    y, plain = f.y, f.plain

    @ti.kernel
    def there():
        for i in y:
            plain[i] = 2 * y[i] * y[i]

    @ti.kernel
    def back():
        for i in y:
            y[i] = 0.3 * plain[i] + 0.1

    def step():
        there()
        back()

    return step


def a_custom_gradient(f: Fields) -> Callable[..., Any]:
    curl = overwriting(f)

    @ti.ad.grad_replaced
    def replaced():
        curl()

    @ti.ad.grad_for(replaced)
    def its_gradient():
        for i in range(N):
            f.y.grad[i] = 2.0 * f.y.grad[i]

    return lambda: replaced()


def a_plain_number(f: Fields) -> Callable[..., Any]:
    curl = overwriting(f)

    def step():
        f.y[0] = float(f.count[None])
        curl()

    return step


CASES = {
    "gravity": Case(gravity),
    "springs": Case(springs),
    "overwriting": Case(overwriting),
    "within a kernel": Case(within_a_kernel),
    "elements": Case(elements),
    "branches": Case(branches),
    "returned numbers": Case(returned),
    "random numbers": Case(drawn),
    "single precision": Case(in_single_precision),
    "a global that is assigned": Case(counting),
    "a field as an argument": Case(an_argument_that_is_a_field),
    "slices of time": Case(slices_of_time),
    "several launches on slices": Case(several_on_slices),
    "slices by a counter": Case(slices_by_a_counter),
    "slices on one of two ways": Case(slices_on_one_way),
    "a slice that changes in place": Case(slices_in_place, False, "it overwrites elements of 'slices'"),
    "a slice that is overwritten later": Case(slices_overwritten, False, "it overwrites elements of 'slices'"),
    "a slice by an element": Case(slices_by_an_element, False, "depends on a number that the step reads"),
    "through memory without a gradient": Case(through_memory_without_gradient),
    "memory without a gradient that goes on": Case(memory_that_goes_on),
    "elements without a gradient": Case(elements_without_gradient, first=1),
    "a custom gradient": Case(a_custom_gradient, False, "a gradient of its own"),
    "a plain number": Case(a_plain_number, False, "a plain number of it"),
}


def loss_of(f: Fields) -> Callable[[], None]:
    x, y, z, loss, slices = f.x, f.y, f.z, f.loss, f.slices

    @ti.kernel
    def measure():
        for i in x:
            loss[None] += (i + 1) * x[i].norm_sqr() + y[i] ** 2 + z[i] * y[i] + slices[1, i] ** 2

    return measure


def rollout(
    f: Fields,
    step: Callable[..., Any],
    measure: Callable[[], None],
    steps: int,
    *,
    shares: bool = False,
    **options: Any,
) -> Any:
    """What a tape over some steps leaves: the records, and all numbers. `shares`: launches save what their gradients
    would compute too, as those of captured steps always do.
    """
    global clock, ticks
    clock, ticks = 0.0, 0
    f.begin()
    session.launches = 0
    with ti.ad.Tape(f.loss, **options) as tape:
        if shares:
            tape.share_work()
        measure()  # all is used before
        for _ in range(steps):
            given = step()
            if given is not None:
                f.loss[None] = f.loss[None] + given[0] * given[1]
        measure()
        records = list(tape.records)
    return records, f.gradients(), f.values(), (clock, ticks)


def same(a: Any, b: Any) -> bool:
    return all(p.tobytes() == q.tobytes() for p, q in zip(a, b, strict=True))


@pytest.fixture
def fields() -> Fields:
    return Fields()


@pytest.mark.parametrize("steps", [1, 7])
@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_the_function(fields: Fields, name: str, steps: int) -> None:
    case = CASES[name]
    step, measure = case.make(fields), loss_of(fields)
    _, plain, _, _ = rollout(fields, step, measure, steps)
    _, gradients, values, time = rollout(fields, step, measure, steps, shares=True)
    for a, b in zip(plain, gradients, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5 if a.dtype == np.float32 else 1e-13, atol=1e-13)
    program = ti.capture(step)
    for _ in range(2):
        records, found, left, passed = rollout(fields, program, measure, steps, shares=True)
        assert same(found, gradients) and same(left, values) and passed == time
        natives = [one for one in records if isinstance(one, CapturedStep)]
        assert len(natives) == (steps - case.first if case.native else 0), program.how_under_tapes
    assert case.why in program.how_under_tapes.reason
    if steps > case.first:
        assert program.how_under_tapes.state == ("replayed" if case.native else "function")


@pytest.mark.filterwarnings("ignore:.*is changed here after being read")
@pytest.mark.parametrize("name", ["gravity", "elements", "branches", "within a kernel"])
def test_tapes_that_check_record_each_launch(name: str) -> None:
    fields = Fields(debug=True)
    step, measure = CASES[name].make(fields), loss_of(fields)
    program = ti.capture(step)
    _, gradients, _, _ = rollout(fields, step, measure, 3)
    for options in ({"validation": "collect"}, {"keep": True}):
        records, found, _, _ = rollout(fields, program, measure, 3, **options)
        assert same(found, gradients)
        assert not any(isinstance(one, CapturedStep) for one in records)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.native and name != "random numbers"])
def test_gradients_agree_with_differences(name: str) -> None:
    fields = Fields(ti.f64)
    program, measure = ti.capture(CASES[name].make(fields)), loss_of(fields)
    fields.begin()

    def run() -> None:
        global clock, ticks
        clock, ticks = 0.0, 0
        for _ in range(3):
            program()
        measure()

    report = ti.ad.gradcheck(run, wrt=[fields.x, fields.v, fields.y], loss=fields.loss)
    assert report.ok and program.how_under_tapes.state == "replayed", report


def test_numbers_that_are_differentiated_are_arguments(fields: Fields) -> None:
    step, measure = springs(fields), loss_of(fields)
    program = ti.capture(step)

    def by(run: Callable[..., Any]) -> Any:
        def f(k: float, dt: float) -> None:
            for _ in range(4):
                run(k, 0.5 * dt)
            run(k)
            measure()

        fields.begin()
        return ti.ad.value_and_grad(f, (0, 1), wrt=fields.y, loss=fields.loss)(1.5, 0.2)

    (wanted, (by_numbers, by_field)), (value, (numbers, field)) = by(step), by(program)
    assert value == wanted
    np.testing.assert_allclose(numbers, by_numbers, rtol=1e-13)
    np.testing.assert_array_equal(field, by_field)
    assert program.how_under_tapes.state == "replayed"


def test_other_derivatives(fields: Fields) -> None:
    step, measure = gravity(fields), loss_of(fields)
    for field in fields.all:
        field.ensure_dual()
    program = ti.capture(step)

    def all_of(run: Callable[..., Any]) -> list[Any]:
        def f() -> None:
            for _ in range(3):
                run()
            measure()

        def checkpointed() -> None:
            ti.ad.checkpoint(lambda t: run(), 5, snapshots=2)
            measure()

        found: list[Any] = []
        seed = np.linspace(-1, 1, 2 * N).reshape(N, 2)
        for g in (f, checkpointed):
            fields.begin()
            found.append(ti.ad.grad(g, wrt=fields.x, loss=fields.loss)())
        fields.begin()
        found += ti.ad.vjp(f, wrt=fields.x, loss=fields.loss)(2.0)
        fields.begin()
        with ti.ad.FwdMode(fields.loss, fields.x, seed=seed):
            f()
        found.append(fields.loss.dual.to_numpy())
        return found

    # Launches outside of a captured step save for their gradients what these would compute anew: other roundings.
    for a, b in zip(all_of(step), all_of(program), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


def test_a_gradient_is_one_native_call(fields: Fields) -> None:
    program, measure = ti.capture(gravity(fields)), loss_of(fields)
    rollout(fields, program, measure, 2)
    launched: list[Any] = []

    class Recorder(Listener):
        def launch(self, code: Any, values: Any) -> Any:
            launched.append(code)
            return super().launch(code, values)

    fields.begin()
    with ti.ad.Tape(fields.loss) as tape:
        for _ in range(5):
            program()
        assert len(tape.records) == 5
        measure()
        listeners[get_ident()] = Recorder()
    del listeners[get_ident()]
    assert len(launched) == 1  # the gradient of `measure`


def test_memory_is_bounded_by_the_budget() -> None:
    ti.init(default_fp=ti.f64, memory_limit=1 << 20)
    y, loss = ti.field(ti.f64, shape=4096, needs_grad=True), ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def curl():
        for i in y:
            y[i] = y[i] * (1 + 0.5 * ti.sin(y[i]))

    def step():
        curl()
        curl()

    program = ti.capture(step)
    kept = []
    for run in (step, program):
        with ti.ad.Tape(loss) as tape:
            for _ in range(3):
                run()
            kept.append(tape.copied_bytes - tape.saved.shared_bytes)
            assert tape.saved.shared_bytes <= (1 << 20) // 16
    assert program.how_under_tapes.state == "replayed"
    assert kept[0] <= kept[1] <= kept[0] + 4096 * 8
    with pytest.raises(KernelMemoryError, match="hold more than 1,048,576 bytes"), ti.ad.Tape(loss):
        for _ in range(100):
            program()


def test_a_step_that_fails_is_not_differentiated() -> None:
    ti.init(default_fp=ti.f64)
    y, loss = ti.field(ti.f64, shape=4, needs_grad=True), ti.field(ti.f64, shape=(), needs_grad=True)
    at = ti.field(ti.i32, shape=())

    @ti.kernel
    def square():
        for i in y:
            y[i] = y[i] * y[i] + 1

    @ti.kernel
    def add():
        loss[None] += y[at[None]]

    @ti.capture
    def step():
        square()
        add()

    with ti.ad.Tape(loss):
        step()
    assert step.how_under_tapes.state == "replayed"
    with pytest.raises(DifferentiationError, match="'step' has failed"), ti.ad.Tape(loss):
        step()
        at[None] = 7
        with pytest.raises(KernelIndexError):
            step()


def test_what_changes_makes_a_step_out_of_date(fields: Fields) -> None:
    global scale
    y, curl = fields.y, overwriting(fields)
    scale = 0.5

    @ti.capture
    def step():
        y[0] = scale
        curl()

    def run() -> None:
        with ti.ad.Tape(fields.loss):
            curl()
            step()

    run()
    assert step.how_under_tapes.state == "replayed"
    scale = 0.75
    with pytest.raises(CaptureError, match="'scale' has changed"):
        run()


scale = 0.5


def test_other_threads_do_not_record_a_gradient(fields: Fields) -> None:
    """Fields are as they were, also where a gradient brings back what the step has overwritten."""
    step, measure = overwriting(fields), loss_of(fields)
    program = ti.capture(step)
    for _ in range(2):
        rollout(fields, program, measure, 5)
        left = fields.values()
        fields.begin()
        for _ in range(5):
            step()
        assert fields.y.to_numpy().tobytes() == left[2].tobytes()


def test_the_picture_of_a_tape_has_captured_steps(fields: Fields) -> None:
    program, measure = ti.capture(gravity(fields)), loss_of(fields)
    fields.begin()
    with ti.ad.Tape(fields.loss) as tape:
        for _ in range(3):
            program()
        measure()
        assert "step" in repr(tape.graph()) and "measure" in repr(tape.graph())


def whole_rollout(f: Fields, step: Callable[..., Any], measure: Callable[[], None], calls: Any) -> Any:
    """What a tape over calls with these arguments leaves, and how many of them were one record each."""
    f.begin()
    with ti.ad.Tape(f.loss) as tape:
        tape.share_work()
        measure()
        for args in calls:
            step(*args)
        measure()
        records = [one for one in tape.records if isinstance(one, CapturedStep)]
    return f.gradients(), f.values(), len(records)


def test_each_call_touches_the_slices_of_its_arguments(fields: Fields) -> None:
    step, measure = slices_of_time(fields), loss_of(fields)
    program = ti.capture(step)
    for calls in ([(t,) for t in range(11)], [(t % 3,) for t in range(9)], [(7,), (np.int64(3),), (True,)]):
        gradients, values, _ = whole_rollout(fields, step, measure, calls)
        for _ in range(2):
            found, left, records = whole_rollout(fields, program, measure, calls)
            assert same(found, gradients) and same(left, values) and records == len(calls)
    with pytest.raises(KernelIndexError), ti.ad.Tape(fields.loss):
        program(11)
    fields.begin()
    assert whole_rollout(fields, program, measure, [(0,)])[2] == 1


def test_a_call_that_overwrites_what_its_gradient_needs_is_recorded_launch_by_launch(fields: Fields) -> None:
    slices, advance, measure = fields.slices, slices_of_time(fields), loss_of(fields)

    @ti.kernel
    def fill(t: ti.i32):
        for i in range(N):
            slices[t, i] = 0.5 * i

    def step(t, s):
        advance(t)
        fill(s)

    program = ti.capture(step)
    calls = [(0, 5), (1, 1), (2, 3), (3, 2), (4, 6), (5, 5)]
    gradients, values, _ = whole_rollout(fields, step, measure, calls)
    for _ in range(2):
        found, left, records = whole_rollout(fields, program, measure, calls)
        assert same(found, gradients) and same(left, values)
        assert records == 4, "not where s is t"


def test_slices_and_numbers_that_are_differentiated(fields: Fields) -> None:
    step, measure = several_on_slices(fields), loss_of(fields)
    program = ti.capture(step)

    def by(run: Callable[..., Any]) -> Any:
        def f(dt: float) -> None:
            for t in range(1, 5):
                run(t, 0.5 * dt)
            measure()

        fields.begin()
        return ti.ad.value_and_grad(f, (0,), wrt=[fields.y, fields.slices], loss=fields.loss)(0.3)

    wanted, found = by(step), by(program)
    assert found[0] == wanted[0] and program.how_under_tapes.state == "replayed"

    def flat(one: Any) -> list[Any]:
        return [inner for part in one for inner in flat(part)] if isinstance(one, tuple | list) else [one]

    for a, b in zip(flat(wanted[1]), flat(found[1]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_checkpoints_of_steps_on_slices(fields: Fields) -> None:
    step, measure = slices_of_time(fields), loss_of(fields)
    found = []
    for _ in range(3):
        fields.begin()
        with ti.ad.Tape(fields.loss):
            ti.ad.checkpoint(lambda t: step(t), 10, snapshots=3)
            measure()
        found.append(fields.gradients())
    fields.begin()
    with ti.ad.Tape(fields.loss):
        for t in range(10):
            step(t)
        measure()
    for one in found:
        for a, b in zip(one, fields.gradients(), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13)


def test_what_a_diagnostic_without_a_gradient_cannot_differentiate_does_no_harm(fields: Fields) -> None:
    y, plain, count, measure = fields.y, fields.plain, fields.count, loss_of(fields)

    @ti.kernel
    def note():
        for i in y:
            plain[i] = ti.sqrt(y[i] * count[None])  # at zero its slope is infinite; nobody needs it

    @ti.kernel
    def shrink():
        for i in y:
            y[i] *= 0.5

    def step():
        note()
        shrink()

    def rollout_at(run: Callable[..., Any], factor: int) -> Any:
        fields.begin()
        count[None] = factor
        with ti.ad.Tape(fields.loss) as tape:
            tape.share_work()
            for _ in range(3):
                run()
            measure()
        return fields.gradients()

    program = ti.capture(step)
    for factor in (1, 1, 0, 0):
        assert same(rollout_at(program, factor), rollout_at(step, factor))
    assert np.isfinite(rollout_at(program, 0)[2]).all()


def steps_of(tape: ti.ad.Tape) -> list[CapturedStep]:
    return [one for one in tape.records if isinstance(one, CapturedStep)]


def exponentials(f: Fields) -> Callable[..., Any]:
    """loss = log Σ exp(y), in one launch."""
    y, loss = f.y, f.loss

    @ti.kernel
    def objective():
        total = 0.0
        for i in y:
            total += ti.exp(y[i])
        loss[None] += ti.log(total)

    return lambda: objective()


def softmax(numbers: np.ndarray) -> np.ndarray:
    return np.exp(numbers) / np.exp(numbers).sum()


def test_a_gradient_reads_what_the_step_has_saved(fields: Fields) -> None:
    program = ti.capture(exponentials(fields))
    for n in range(3):
        fields.y.from_numpy(np.linspace(-1, 1, N) + n)
        with ti.ad.Tape(fields.loss) as tape:
            program()
            (step,) = steps_of(tape)
        assert fields.y.grad.to_numpy() == pytest.approx(softmax(fields.y.to_numpy()), rel=1e-13)
    assert step.step.shared_bytes == 8 * (N + 1), "each exponential, and their sum"
    (way,) = step.step.ways
    names = {way.plan.codes[one.code].name for one in way.plan.root.steps if isinstance(one, ops.Launch)}
    assert any("shar" in name for name in names), names


def test_a_step_with_few_numbers_saves_none_of_them(fields: Fields, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_capture, "LEAST_SHARED", 8 * (N + 1) + 1)
    program = ti.capture(exponentials(fields))
    for _ in range(3):
        with ti.ad.Tape(fields.loss) as tape:
            program()
            (step,) = steps_of(tape)
        assert (step.step.shared_bytes, step.step.kept_bytes) == (0, 0)
        assert fields.y.grad.to_numpy() == pytest.approx(softmax(fields.y.to_numpy()), rel=1e-13)


def test_steps_that_would_save_too_much_compute_it_again(fields: Fields, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_values, "MOST_SHARED", 3 * 8 * (N + 1))
    program = ti.capture(exponentials(fields))
    for _ in range(3):
        with ti.ad.Tape(fields.loss) as tape:
            for _ in range(5):
                program()
            saved = [one.step.shared_bytes for one in steps_of(tape)]
        assert saved == [8 * (N + 1)] * 3 + [0] * 2
        assert fields.y.grad.to_numpy() == pytest.approx(5 * softmax(fields.y.to_numpy()), rel=1e-13)
        assert program.how_under_tapes.state == "replayed"


@pytest.mark.parametrize("where", ["an argument", "a field"])
def test_steps_whose_sizes_vary_save_nothing(fields: Fields, where: str) -> None:
    y, loss, count = fields.y, fields.loss, fields.count

    @ti.kernel
    def first(n: ti.i32):
        for i in range(n):
            loss[None] += ti.exp(y[i]) ** 2

    @ti.kernel
    def counted():
        for i in range(count[None]):
            loss[None] += ti.exp(y[i]) ** 2

    def step(n):
        if where == "an argument":
            first(n)
        else:
            counted()

    program = ti.capture(step)
    for n in (2, N, 0, 4):
        fields.count[None] = n
        with ti.ad.Tape(fields.loss) as tape:
            program(n)
            (record,) = steps_of(tape)
        assert record.step.shared_bytes == 0
        wanted = np.where(np.arange(N) < n, 2 * np.exp(2 * y.to_numpy()), 0)
        assert y.grad.to_numpy() == pytest.approx(wanted, rel=1e-13)
