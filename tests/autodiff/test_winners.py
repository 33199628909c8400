"""Running extrema: the gradient goes to the winner, found by its index, and is what the loop backwards would give."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import array, array_with_dual, check_gradient, scalar
from tinote.autodiff import gradient
from tinote.errors import DifferentiationError

N, M = 9, 10

Kernels = tuple[Callable[[], None], Any, list[Any]]


@pytest.fixture(autouse=True)
def session() -> None:
    ti.init(arch=ti.cpu, default_fp=ti.f64, offline_cache=False)


def fields() -> tuple[Any, Any, Any]:
    return array(N, M), array(N), scalar()


def nearest() -> Kernels:
    a, b, loss = fields()

    @ti.kernel
    def run():
        for i in range(N):
            best = 1e300
            for j in range(M):
                square = 0.0
                for k in range(N):
                    square += (a[k, j] - b[k] * (i + 1)) ** 2
                best = ti.min(best, square)
            loss[None] += best * b[i]

    return run, loss, [a, b]


def swapped() -> Kernels:
    a, b, loss = fields()

    @ti.kernel
    def run():
        for i in range(N):
            best = b[i]
            for j in range(M):
                best = ti.max(a[i, M - 1 - j], best)
            loss[None] += best * (i + 1)

    return run, loss, [a, b]


def several_and_what_else_is_carried() -> Kernels:
    a, b, loss = fields()

    @ti.kernel
    def run():
        for i in range(N):
            least, most, total, steps = a[i, 0], -b[i], 0.0, 0.0
            for j in range(1, M):
                least = ti.min(least, a[i, j] * b[i])
                most = ti.max(most, a[i, j] + b[j - 1])
                total += most * a[i, j]
                steps = ti.max(steps, total)
            loss[None] += least * most + total + steps

    return run, loss, [a, b]


def of_no_iterations() -> Kernels:
    a, b, loss = fields()

    @ti.kernel
    def run():
        for i in range(N):
            best = b[i]
            for j in range(i, 3 + i % 2):
                best = ti.max(best, a[i, j])
            loss[None] += best

    return run, loss, [a, b]


def of_all() -> Kernels:
    a, b, loss = fields()

    @ti.kernel
    def run():
        shift = a[0, 0]
        for i, j in ti.ndrange(N, M):
            shift = ti.max(shift, a[i, j])
        least = 1e300
        for i in range(N):
            least = ti.min(least, b[i] ** 2)
        total = 0.0
        for i, j in ti.ndrange(N, M):
            total += (a[i, j] - shift) ** 2
        loss[None] = total * shift + least

    return run, loss, [a, b]


def in_memory() -> Kernels:
    a, b, loss = fields()
    best = scalar()

    @ti.kernel
    def run():
        best[None] = -1e300
        for i in range(N):
            ti.atomic_max(best[None], b[i])
        loss[None] += best[None] ** 2 + a[0, 0]

    return run, loss, [a, b]


def which_is_a_branch() -> Kernels:
    a, b, loss = fields()

    @ti.kernel
    def run():
        for i in range(N):
            best = -1e300
            for j in range(M):
                term = a[i, j]
                if term > 0:
                    term = ti.sin(term) + b[i]
                best = ti.max(best, term)
            loss[None] += best

    return run, loss, [a, b]


def with_what_comes_along() -> Kernels:
    a, b, loss = fields()

    @ti.kernel
    def run():
        for i in range(N):
            best, other, which = 1e300, b[i], -1
            for j in range(M):
                square = a[i, j] ** 2
                if square < best:
                    best = square
                    other = ti.exp(a[j % N, i] * 0.1) * b[j % N]
                    which = j
                scale = a[i, M - 1 - j]
                other = other if scale > 0 or scale * 2 < best - 3 else b[N - 1 - j % N] * scale
            loss[None] += best * other + a[i, ti.max(which, 0)]

    return run, loss, [a, b]


def payload() -> Kernels:
    a, b, loss = fields()

    @ti.kernel
    def run():
        for i in range(N):
            best, other = 1e300, 0.0
            for j in range(M):
                if a[i, j] < best:
                    best = a[i, j]
                    other = ti.exp(a[j % N, i]) * b[j % N]
            loss[None] += other

    return run, loss, [a, b]


def of_a_branch_that_reads() -> Kernels:
    a, b, loss = fields()

    @ti.kernel
    def run():
        for i in range(N):
            last = b[i] * 2
            for j in range(-2, M + 3):
                if j >= 0 and j < M:
                    if a[i, j] > 0:
                        last = a[i, j] * b[i]
                else:
                    last = last
            first = b[i]
            for j in range(-2, M + 3):
                if j >= 0 and j < M and first < 1.0:
                    total = 0.0
                    for k in range(j):
                        total += a[i, k] * b[i]
                    first = total
            loss[None] += last * first

    return run, loss, [a, b]


PROGRAMS = [nearest, swapped, several_and_what_else_is_carried, of_no_iterations, of_all, in_memory, which_is_a_branch]
PROGRAMS += [payload, with_what_comes_along, of_a_branch_that_reads]


def filled(program: Kernels, seed: int, choices: Any = None) -> None:
    random = np.random.default_rng(seed)
    for field in program[2]:
        values = random.normal(size=field.shape) if choices is None else random.choice(choices, field.shape)
        field.from_numpy(values)


def gradients(program: Kernels) -> list[np.ndarray]:
    run, loss, inputs = program
    with ti.ad.Tape(loss):
        run()
    return [x.grad.to_numpy() for x in inputs]


@pytest.mark.parametrize("make", PROGRAMS)
def test_gradients_are_those_of_differences(make: Callable[[], Kernels]) -> None:
    program = make()
    filled(program, 1)
    run, loss, inputs = program
    check_gradient(run, loss, inputs)


@pytest.mark.parametrize("make", PROGRAMS)
def test_ties_and_what_is_no_number_go_where_the_loop_backwards_sends_them(
    make: Callable[[], Kernels], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = make()
    with monkeypatch.context() as without:
        without.setattr(gradient, "select_winners", lambda fn, **_: fn)
        backwards = make()
        filled(backwards, 0)
        gradients(backwards)
    for seed, choices in enumerate(([-1.0, 0.0, -0.0, 2.0], [1.0, np.nan, 2.0], [np.inf, -np.inf, 0.5], [1.0])):
        for one in (program, backwards):
            filled(one, seed, choices)
        for found, wanted in zip(gradients(program), gradients(backwards), strict=True):
            # Equal up to the order of sums.
            np.testing.assert_allclose(found, wanted, rtol=1e-14)


@pytest.mark.parametrize("make", [nearest, swapped, of_no_iterations, in_memory, which_is_a_branch, payload])
def test_nothing_is_saved_for_each_iteration(make: Callable[[], Kernels]) -> None:
    run, *_ = program = make()
    gradients(program)
    text = run.ir("merge_checks", gradient=True)
    assert "%winner" in text
    assert " push " not in text
    assert " = stack" not in text


def test_terms_of_what_is_carried_keep_the_loop() -> None:
    a, b, loss = fields()

    @ti.kernel
    def run():
        for i in range(N):
            best, scale = 0.0, 1.0
            for j in range(M):
                scale *= b[i]
                best = ti.max(best, a[i, j] * scale)
            loss[None] += best

    program = run, loss, [a, b]
    filled(program, 3)
    check_gradient(*program)
    assert "%winner" not in run.ir("reverse", gradient=True)


def test_short_loops_stay() -> None:
    a, b, loss = fields()

    @ti.kernel
    def run():
        for i in range(N):
            best = b[i]
            for j in range(4):
                best = ti.max(best, a[i, j])
            loss[None] += best

    gradients((run, loss, [a, b]))
    assert "%winner" not in run.ir("reverse", gradient=True)


def test_second_derivatives() -> None:
    centres, loss = array_with_dual(10, 2), scalar(needs_dual=True)
    points = ti.field(ti.f64, (9, 2), needs_grad=False)
    random = np.random.default_rng(5)
    centres.from_numpy(random.normal(size=(10, 2)))
    points.from_numpy(random.normal(size=(9, 2)))

    @ti.kernel
    def run():
        for i in range(9):
            best = 1e300
            for j in range(10):
                square = 0.0
                for k in range(2):
                    square += (points[i, k] - centres[j, k]) ** 2
                best = ti.min(best, square)
            loss[None] += best**2

    def start() -> None:
        loss[None] = 0
        run()

    vector = random.normal(size=(10, 2))
    found = ti.ad.hvp(start, wrt=centres, loss=loss)(vector)
    p, c = points.to_numpy(), centres.to_numpy()
    squares = ((p[:, None] - c) ** 2).sum(-1)
    wanted = np.zeros_like(c)
    for x, winner, square in zip(p, squares.argmin(1), squares.min(1), strict=True):
        away = c[winner] - x
        wanted[winner] += 4 * (square * vector[winner] + 2 * away * (away @ vector[winner]))
    np.testing.assert_allclose(found, wanted)


def test_old_values_of_an_extremum_are_still_refused() -> None:
    a, _, loss = fields()
    best = scalar()

    @ti.kernel
    def run():
        for i, j in a:
            loss[None] += ti.atomic_max(best[None], a[i, j])

    with pytest.raises(DifferentiationError, match="depends on the order"), ti.ad.Tape(loss):
        run()


@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize("term_first", [False, True])
@pytest.mark.parametrize("operation", ["min", "max"])
def test_extrema_of_many_elements_are_found_at_once(operation, term_first, in_order):
    """By parallel loops, with the winner that the loop in order has: of equal ones the last, or, where the program says
    so, the first.
    """
    n = 3000
    x, start, loss = array(n), scalar(), scalar()
    extremum, beats = (ti.min, np.less) if operation == "min" else (ti.max, np.greater)

    @ti.kernel
    def run():
        best = start[None]
        ti.loop_config(serialize=in_order)
        for i in range(x.shape[0]):
            if ti.static(term_first):
                best = extremum(x[i], best)
            else:
                best = extremum(best, x[i])
        loss[None] += best * best

    random = np.random.default_rng(1)
    worst = 9.0 if operation == "min" else -9.0
    for case in range(12):
        values = random.integers(-3, 4, n).astype(float) if case % 2 else random.normal(size=n)
        begin = [worst, -3.0, 3.0, 0.0, np.nan, -worst][case // 2]
        values[random.integers(0, n, 3)] = [np.nan, -0.0, 0.0]
        if case == 11:
            values[:] = np.nan
        x.from_numpy(values)
        start[None] = begin
        winner, best = None, begin
        for i, value in enumerate(values.tolist()):
            wins = term_first and in_order
            first, second = (value, best) if wins else (best, value)
            if (beats(first, second) or np.isnan(second)) == wins:
                winner, best = i, value
        expected, of_start = np.zeros(n), 0.0
        if winner is None:
            of_start = 2 * best
        else:
            expected[winner] = 2 * best
        with ti.ad.Tape(loss):
            run()
        np.testing.assert_array_equal(x.grad.to_numpy(), expected, str(case))
        np.testing.assert_array_equal(start.grad[None], of_start, str(case))
    tasks = str(run.ir(gradient=True)).split("task ")
    assert not any(task.startswith("serial") and " for " in task for task in tasks[1:])
    assert sum(task.startswith("parallel") for task in tasks) == 2
