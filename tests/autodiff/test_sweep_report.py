"""`ti.ad.sweep_report` and `ti.ad.gradient_horizons`: norms that can be worked out by hand, and a chaotic map."""

from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import array, scalar, session  # noqa: F401
from tinote.errors import DifferentiationError
from tinote.lang.ad.journal.temporary_adjoints import SweepObserver


def _chain(factor: float, steps: int = 10, elements: int = 4) -> tuple[Any, Any, Any]:
    """A program that multiplies by `factor`, its state and its loss, the sum."""
    x, loss = ti.field(ti.f64, shape=elements, needs_grad=True, name="x"), scalar(name="loss")

    @ti.kernel
    def step():
        for i in x:
            x[i] = factor * x[i]

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i]

    def run():
        for _ in range(steps):
            step()
        total()

    x.fill(1)
    return run, x, loss


@pytest.mark.parametrize(("factor", "verdict"), [(0.5, ""), (2.0, ""), (1e-3, "vanishes"), (1e3, "explodes")])
@pytest.mark.parametrize("keep", [True, False])
def test_the_norms_of_a_linear_chain(factor: float, verdict: str, keep: bool) -> None:
    run, x, loss = _chain(factor)
    with ti.ad.Tape(loss, keep=keep) as tape:
        run()
    gradient, state = x.grad.to_numpy(), x.to_numpy()
    report = ti.ad.sweep_report(tape)
    assert [(one.number, one.kernel) for one in report.launches] == [
        *[(k, "step") for k in range(1, 11)],
        (11, "total"),
    ]
    norms = report.norms["x"]
    assert norms.launches == list(range(11))
    assert norms.values == pytest.approx([2 * factor ** (10 - k) for k in range(11)], rel=1e-12)
    assert norms.factor == pytest.approx(factor) and norms.verdict == verdict
    assert "loss" not in report.norms
    assert (x.grad.to_numpy() == gradient).all() and (x.to_numpy() == state).all()
    assert all(one.backward > 0 and (one.forward is not None) == keep for one in report.launches)
    assert report.nonfinite is None and report.finding is None
    assert ("explodes" in repr(report)) == (verdict == "explodes")
    shares = report.kernels
    assert {(one.kernel, one.launches) for one in shares} == {("step", 10), ("total", 1)}
    assert sum(one.backward for one in shares) == pytest.approx(sum(one.backward for one in report.launches))


def test_a_field_with_a_slice_for_each_step_shows_each_slice() -> None:
    x, loss = array(6, 3), scalar()

    @ti.kernel
    def step(t: ti.i32):
        for i in range(3):
            x[t + 1, i] = 0.5 * x[t, i]

    @ti.kernel
    def total():
        for i in range(3):
            loss[None] += x[5, i]

    with ti.ad.Tape(loss) as tape:
        for t in range(5):
            step(t)
        total()
    norms = next(iter(ti.ad.sweep_report(tape).norms.values()))
    assert norms.values == pytest.approx([3**0.5 * 0.5 ** (5 - k) for k in range(6)], rel=1e-12)
    assert norms.factor == pytest.approx(0.5)


def test_memory_without_a_gradient_and_vectors_and_ndarrays() -> None:
    x = ti.Vector.ndarray(2, ti.f64, 4, needs_grad=True)
    between, loss = ti.field(ti.f64, shape=4, name="between"), scalar()

    @ti.kernel
    def first(a: ti.types.ndarray()):
        for i in between:
            between[i] = 3.0 * a[i].x

    @ti.kernel
    def second():
        for i in between:
            loss[None] += between[i]

    with ti.ad.Tape(loss, keep=True) as tape:
        first(x)
        second()
    norms = ti.ad.sweep_report(tape).norms
    assert norms["between"].values == [0.0, pytest.approx(2.0)] and norms["between"].verdict == ""
    (array_norms,) = [one for name, one in norms.items() if name != "between"]
    assert array_norms.launches == [0] and array_norms.values == pytest.approx([6.0])


def test_the_launch_whose_gradient_is_the_first_without_a_number() -> None:
    x, loss = ti.field(ti.f64, shape=4, needs_grad=True, name="x"), scalar()

    @ti.kernel
    def step():
        for i in x:
            x[i] = 2 * x[i]

    @ti.kernel
    def root():
        for i in x:
            x[i] = ti.sqrt(x[i] - 8.0)

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i]

    x.from_numpy(np.arange(1.0, 5.0))
    with ti.ad.Tape(loss, keep=True) as tape:
        for kernel in (step, step, step, root, step, step, total):
            kernel()
    report = ti.ad.sweep_report(tape)
    assert report.nonfinite is not None and (report.nonfinite.number, report.nonfinite.kernel) == (4, "root")
    assert report.norms["x"].verdict == "not finite"
    assert np.isfinite(report.norms["x"].values).tolist() == [False] * 4 + [True] * 3
    assert report.finding is not None and report.finding.kernel == "root" and "sqrt" in report.finding.message
    assert "launch 4 of 7, 'root'" in repr(report)


def test_the_steps_of_a_checkpointed_loop_are_launches_like_others() -> None:
    run, x, loss = _chain(0.5, steps=0)

    @ti.kernel
    def halve():
        for i in x:
            x[i] = 0.5 * x[i]

    with ti.ad.Tape(loss, keep=True) as tape:
        halve()
        ti.ad.checkpoint(lambda t: halve(), 9, memory=400)
        run()
    gradient = x.grad.to_numpy()
    report = ti.ad.sweep_report(tape)
    assert (x.grad.to_numpy() == gradient).all()
    assert report.norms["x"].values == pytest.approx([2 * 0.5 ** (10 - k) for k in range(11)], rel=1e-12)
    names = [one.kernel for one in report.launches]
    assert names == ["halve", "checkpoint of '<lambda>'", *["halve"] * 9, "total"]
    loop = report.launches[1]
    assert loop.within == 9 and 32 <= loop.kept_bytes <= 400 and loop.backward > 0


def test_a_custom_gradient_is_one_launch() -> None:
    run, x, loss = _chain(0.5, steps=2)

    @ti.ad.grad_replaced
    def nothing():
        pass

    @ti.ad.grad_for(nothing)
    def tenfold():
        x.grad.from_numpy(10 * x.grad.to_numpy())

    with ti.ad.Tape(loss, keep=True) as tape:
        nothing()
        run()
    report = ti.ad.sweep_report(tape)
    assert report.launches[0].kernel == "nothing" and report.norms["x"].values[0] == pytest.approx(5.0)


def test_what_the_tape_keeps_is_reported_by_launch() -> None:
    x, loss = array(1000), scalar()

    @ti.kernel
    def square():
        for i in x:
            x[i] = x[i] * x[i]

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i]

    with ti.ad.Tape(loss, keep=True) as tape:
        square()
        square()
        total()
    report = ti.ad.sweep_report(tape)
    assert [one.kept_bytes for one in report.launches] == [8000, 8000, 8]
    assert report.kept_bytes == 16008 and report.kernels[0].kernel in ("square", "total")


def test_a_sweep_that_nobody_watches_calls_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    for name in ("before", "after"):
        monkeypatch.setattr(SweepObserver, name, lambda *arguments: called.append(arguments))
    run, _, loss = _chain(0.5)
    with ti.ad.Tape(loss):
        run()
    assert called == []


def test_tapes_that_cannot_be_swept_again() -> None:
    x, loss = array(4), scalar()

    @ti.kernel
    def square():
        for i in x:
            x[i] = x[i] * x[i] + 1
            loss[None] += x[i]

    with ti.ad.Tape(loss) as tape:
        square()
        with pytest.raises(DifferentiationError, match="cannot run inside of a tape"):
            ti.ad.sweep_report(tape)
        square()
    with pytest.raises(DifferentiationError, match="let go of overwritten values") as error:
        ti.ad.sweep_report(tape)
    assert "keep=True" in str(error.value)
    with pytest.raises(DifferentiationError, match="looks into a tape, not 3"):
        ti.ad.sweep_report(3)  # type: ignore[arg-type]
    with pytest.raises(DifferentiationError, match="has recorded nothing yet"):
        ti.ad.sweep_report(ti.ad.Tape(loss))
    with pytest.raises(DifferentiationError, match="one run or more"):
        ti.ad.sweep_report(tape, runs=0)
    with ti.ad.Tape(loss) as tape:
        pass
    assert "0 launches" in repr(ti.ad.sweep_report(tape))


# ---- horizons


@pytest.fixture
def logistic() -> tuple[Any, Any, Any]:
    """x → 4 x (1 − x), whose derivative doubles with each step on average."""
    x, loss = ti.field(ti.f64, shape=(), needs_grad=True, name="x"), scalar()

    @ti.kernel
    def step():
        x[None] = 4 * x[None] * (1 - x[None])

    @ti.kernel
    def end():
        loss[None] += x[None]

    def program(steps: int) -> None:
        for _ in range(steps):
            step()
        end()

    x[None] = 0.3
    return program, x, loss


@pytest.mark.parametrize("change", [1e-3, 1e-6, 1e-9])
def test_a_chaotic_map_means_something_until_the_change_has_grown(logistic: Any, change: float) -> None:
    program, x, loss = logistic
    report = ti.ad.gradient_horizons(program, x, loss, range(1, 50), change=change)
    assert abs(report.meaningful + np.log2(change)) <= 4, "2 ** steps times the change is about 1"
    assert len(report) == 49 and report[-1].deviation > 0.9
    assert abs(report[-1].reverse) > 1e12 and abs(report[-1].difference) <= 1 / change
    assert f"up to {report.meaningful} steps, and no longer at" in repr(report)
    assert x[None] == 0.3 and loss[None] == 0 and x.grad[None] == 0
    for one in report[: report.meaningful // 2]:
        assert one.deviation < 1e-2 * max(1.0, (change * 2**one.steps) ** 2 * 1e4)


def test_a_contracting_map_means_something_at_every_horizon() -> None:
    run, x, loss = _chain(0.5)

    @ti.kernel
    def halve():
        for i in x:
            x[i] = 0.5 * ti.sin(x[i])

    def program(steps: int) -> None:
        for _ in range(steps):
            halve()
        run()

    report = ti.ad.gradient_horizons(program, [x], loss, (4, 1, 2, 2))
    assert [one.steps for one in report] == [1, 2, 4] and report.meaningful == 4
    assert "at every horizon" in repr(report) and "21 steps" in repr(report)
    assert all(one.deviation < 1e-8 for one in report)


def test_horizons_in_single_precision(logistic: Any) -> None:
    ti.init(default_fp=ti.f32)
    x, loss = ti.field(ti.f32, shape=3, needs_grad=True), ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def turn():
        for i in x:
            loss[None] += ti.sin(x[i])

    x.from_numpy(np.array([0.1, 0.2, 0.3], np.float32))
    report = ti.ad.gradient_horizons(lambda steps: turn(), x, loss, [1])
    assert report.change == pytest.approx(np.finfo(np.float32).eps ** (1 / 3)) and report[0].deviation < 1e-3


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"horizons": []}, "horizons are numbers of steps"),
        ({"horizons": [0, 1]}, "horizons are numbers of steps"),
        ({"horizons": [1.5]}, "horizons are numbers of steps"),
        ({"change": 0.0}, "a change is a length"),
        ({"change": float("nan")}, "a change is a length"),
        ({"tolerance": 0}, "a tolerance is more than 0"),
    ],
)
def test_bad_horizons(logistic: Any, more: dict[str, Any], message: str) -> None:
    program, x, loss = logistic
    with pytest.raises(DifferentiationError, match=message):
        ti.ad.gradient_horizons(program, x, loss, **more)
