"""Derivatives inside of derivatives in a captured step: its replay does what the function does, bit by bit."""

import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from benchmarks.nested.system import START, expected
from benchmarks.nested.tinote_ import create
from tests.autodiff.test_random_nested import Nested
from tests.autodiff.test_random_python_programs import compiled
from tinote.errors import CaptureError, KernelIndexError
from tinote.lang.capture import planned

State = dict[str, bytes]
MODES = ("reverse", "forward")
BLOCKS = ("tape", "block")


def held(fields: dict[str, Any]) -> State:
    """What fields, their gradients and their duals hold."""
    found = {}
    for name, field in fields.items():
        found[name] = field.to_numpy().tobytes()
        found[f"{name}.grad"] = field.grad.to_numpy().tobytes()
        found[f"{name}.dual"] = field.dual.to_numpy().tobytes() if field.has_dual else b""
    return found


# ---- fields


def are_both_forward(outer: str, inner: str) -> bool:
    """Whether a forward-mode block is inside of forward mode, which no capture has."""
    return inner == "block" and outer in ("forward", "block")


PAIRS = [(outer, inner) for outer in (*MODES, *BLOCKS) for inner in (*MODES, *BLOCKS)]
PAIRS = [pair for pair in PAIRS if not are_both_forward(*pair)]


class Step:
    """A random program with a derivative inside that is differentiated itself, as a step without arguments."""

    def __init__(self, seed: int, outer: str, inner: str) -> None:
        self.trial = trial = Nested(seed, temporary=False)
        calls = f"def once():\n{textwrap.indent(trial.calls, '    ')}\n"
        trial.once = compiled(calls, f"captured_nested_{seed}.py", trial.space)["once"]  # type: ignore[method-assign]
        fields = {name: f for name, f in trial.fields.items() if name not in ("d", "e")}
        direction = trial.direction()
        wrt, seeds = list(fields.values()), [direction[name] for name in fields]
        total = trial.total

        def run() -> None:
            trial.program(inner)

        def taped() -> None:
            with ti.ad.Tape(loss=total):
                run()

        def block() -> None:
            with ti.ad.FwdMode(loss=total, param=wrt, seed=seeds):
                run()

        gradient = ti.ad.grad(run, wrt=wrt, loss=total)
        product = ti.ad.jvp(run, wrt=wrt, loss=total)

        def reverse() -> Any:
            return gradient()[0]

        def forward() -> float:
            return product(seeds)[1]

        self.function = {"tape": taped, "block": block, "reverse": reverse, "forward": forward}[outer]
        self.fields = {**trial.fields, "total": total, "loss": trial.loss}
        self.direction = direction

    def left(self, step: Callable[[], Any], shift: float) -> tuple[Any, State]:
        """What a call gives and leaves from a state."""
        self.trial.begin(shift, self.direction)
        found = step()
        return np.asarray(found).tobytes() if found is not None else None, held(self.fields)


@pytest.mark.parametrize(("outer", "inner"), PAIRS)
def test_random_programs(outer: str, inner: str, random_programs: range) -> None:
    captured = 0
    seeds = random_programs[::480]
    for seed in seeds:
        # With these a program runs on one thread, so that sums have one order.
        step = Step(seed // 16 * 16 + PAIRS.index((outer, inner)) % 8, outer, inner)
        replayed = ti.capture(step.function)
        wanted = step.left(step.function, 0.0)
        try:
            step.trial.begin()
            replayed.captured()
        except CaptureError as error:
            assert error.span.line, seed
            continue
        captured += 1
        assert step.left(replayed, 0.0) == wanted, seed
        assert step.left(replayed, 0.01) == step.left(step.function, 0.01), seed
    assert captured >= 0.5 * len(seeds)


# ---- numbers


@pytest.mark.parametrize(
    ("problem", "outer", "inner"),
    [("particle", "forward", "reverse"), *[("saddle", outer, inner) for outer in MODES for inner in MODES]],
)
def test_descents_within_descents(problem: str, outer: str, inner: str) -> None:
    both = create("tinote", problem, outer, inner)
    both.run(1)
    np.testing.assert_allclose(both.result(), expected(problem), rtol=1e-9)
    elsewhere = 0.9 * START[problem]
    assert both.descend(*elsewhere) == both.function(*elsewhere)


@pytest.mark.parametrize("mode", MODES)
def test_what_is_zero_contributes_nothing_whatever_the_slope(mode: str) -> None:
    ti.init(default_fp=ti.f64)

    @ti.kernel
    def same(a: ti.f64) -> ti.f64:
        return a

    def program(v: Any, w: Any, y: Any) -> Any:
        return v * (w * same(y)) + w

    gradient, product = ti.ad.grad(program, (0, 1, 2)), ti.ad.jvp(program, (0, 1, 2))

    def step(v: float, w: float, y: float) -> Any:
        return gradient(v, w, y)[1] if mode == "reverse" else product((0.0, v, 0.0), v, w, y)[1]

    replayed = ti.capture(step)
    for v, w, y, wanted in ((0.5, 2.0, 3.0, 2.5), (0.0, 2.0, np.inf, 1.0), (0.0, 0.0, 0.0, 1.0)):
        assert replayed(v, w, y) == step(v, w, y) == (wanted if mode == "reverse" else v * wanted)
    assert replayed.programs[0].root.branch is None  # one path for all


def test_a_launch_that_may_fail_remains_though_nobody_needs_its_number() -> None:
    ti.init(default_fp=ti.f64)
    x = ti.field(ti.f64, shape=4)

    @ti.kernel
    def read(i: ti.i32, a: ti.f64) -> ti.f64:
        return x[i] * a

    @ti.kernel
    def square(a: ti.f64) -> ti.f64:
        return a * a

    @ti.capture
    def step(i: int, a: float) -> float:
        read(i, a)
        square(a)
        return square(a) + 1.0

    assert step(2, 3.0) == 10.0
    launches = [one for one in step.programs[0].root.steps if type(one).__name__ == "Launch"]
    assert len(launches) == 2
    with pytest.raises(KernelIndexError):
        step(7, 3.0)


@pytest.mark.parametrize("fails", [False, True])
def test_duals_are_as_before_where_it_fails_as_well(fails: bool) -> None:
    """Between two derivatives in forward mode that a reverse one goes through, duals are put back once."""
    ti.init(default_fp=ti.f64)
    both: dict[str, Any] = {"needs_grad": True, "needs_dual": True}
    x, y, loss, total = [ti.field(ti.f64, shape=n, **both) for n in (3, 3, (), ())]
    which = ti.field(ti.i32, shape=())

    @ti.kernel
    def add():
        for i in x:
            loss[None] += x[i] ** 3 * y[i]

    @ti.kernel
    def use(product: ti.f64):
        total[None] += ti.sin(product) + x[which[None]]

    inner = ti.ad.jvp(add, wrt=x, loss=loss)

    def program() -> None:
        for k in range(3):
            use(inner(np.full(3, 0.5 + k))[1])

    outer = ti.ad.grad(program, wrt=[x, y], loss=total)

    def step() -> Any:
        return outer()[0]

    replayed = ti.capture(step)
    fields = {"x": x, "y": y, "loss": loss, "total": total}

    def left(function: Callable[[], Any]) -> tuple[Any, State]:
        for k, field in enumerate(fields.values()):
            for one, scale in ((field, 1.0), (field.grad, 0.1), (field.dual, 0.01)):
                one.from_numpy(np.full(field.shape, scale * (k + 1)))
        which[None] = 1
        replayed.captured()
        which[None] = 9 if fails else 2
        found = None
        try:
            found = function()
        except KernelIndexError:
            assert fails
        return np.asarray(found).tobytes() if found is not None else None, held(fields)

    assert left(replayed) == left(step)


@pytest.mark.parametrize(
    ("outer", "inner", "message"),
    [("forward", "block", "inside of another one"), ("reverse", "hessian", "third"), ("tape", "hessian", "third")],
)
def test_what_is_not_captured_is_refused_by_its_line(outer: str, inner: str, message: str) -> None:
    step = Step(1, outer, inner)
    wanted = step.left(step.function, 0.0)
    with pytest.raises(CaptureError, match=message) as caught:
        ti.capture(step.function)()
    assert caught.value.span.file.endswith(".py")
    assert step.left(step.function, 0.0) == wanted


@pytest.mark.parametrize("inner", MODES)
@pytest.mark.parametrize("outer", MODES)
def test_derivatives_of_derivatives_become_plans_unasked(
    outer: str, inner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ti.init(default_fp=ti.f64)
    column = ti.types.ndarray(dtype=ti.f64, ndim=1)
    slopes = ti.ndarray(ti.f64, 3, needs_grad=True, needs_dual=True)

    @ti.kernel
    def energy(x: column, k: ti.f64) -> ti.f64:
        total = 0.0
        for i in range(3):
            total += k * ti.sin(x[i]) * (i + 1)
        return total

    @ti.kernel
    def step(x: column, by: column, rate: ti.f64, after: column):
        for i in range(3):
            after[i] = x[i] - rate * by[i]

    gradient, product = ti.ad.grad(energy), ti.ad.jvp(energy, 1)
    along = np.array([1.0, -2.0, 0.5])

    def descended(x: Any, k: Any) -> Any:
        step(x, gradient(x, k), 0.1, slopes)
        return energy(slopes, k) - 0.5 * k

    def pushed(x: Any, k: Any) -> Any:
        value, found = product(2.0, x, k)
        return value * found + k

    function = descended if inner == "reverse" else pushed

    def derivative() -> Callable[..., Any]:
        if outer == "reverse":
            return ti.ad.grad(function, (0, 1))
        forward = ti.ad.jvp(function, (0, 1))
        return lambda x, k: forward((along, 1.0), x, k)

    calls = [(np.linspace(0, 1, 3) * k, 0.3 + k) for k in range(6)]
    firsts = [derivative()(*call) for call in calls]
    again = derivative()
    for call, first in zip(calls, firsts, strict=True):
        for found, wanted in zip(again(*call), first, strict=True):
            np.testing.assert_array_equal(found, wanted)
    # The last call, at least, ran by the plan.
    run, runs = planned.MemoryPlan.run, list[object]()
    monkeypatch.setattr(planned.MemoryPlan, "run", lambda *given: (runs.append(0), run(*given))[1])
    again(*calls[0])
    assert runs


@pytest.mark.parametrize("inner", MODES)
@pytest.mark.parametrize("outer", MODES)
def test_a_captured_step_within_both_derivatives(outer: str, inner: str) -> None:
    ti.init(default_fp=ti.f64)
    x, y = [ti.field(ti.f64, (), needs_grad=True, needs_dual=True) for _ in range(2)]

    @ti.kernel
    def cube() -> None:
        y[None] = x[None] ** 3

    @ti.capture
    def step() -> None:
        cube()

    def program(a: Any) -> Any:
        x[None] = a
        step()
        return y[None]

    def slope(a: Any) -> Any:
        return ti.ad.grad(program)(a) if inner == "reverse" else ti.ad.jvp(program)(1.0, a)[1]

    for _ in range(4):
        step()
    assert step.is_captured
    assert (ti.ad.grad(slope)(2.0) if outer == "reverse" else ti.ad.jvp(slope)(1.0, 2.0)[1]) == 12.0
