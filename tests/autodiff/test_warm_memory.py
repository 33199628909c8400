"""What derivatives cost in memory: nothing fresh after the first call, nothing saved or cleared that a launch does not
touch, nothing left to the garbage collector; and all of it gone unnoticed: results and other gradients are what they
would be without.
"""

from __future__ import annotations

import gc
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import DifferentiationError, KernelArgumentError
from tinote.lang.ad.functional import inputs
from tinote.lang.capture import planned
from tinote.lang.data.layout import Copies
from tinote.lang.kernels.access_region import RegionEvaluator
from tinote.lang.kernels.arguments import Arguments
from tinote.lang.session.state import memory_of
from tinote.runtime.memory import Memory
from tinote.runtime.pool import pool

N = 20_000
PACKAGE = Path(ti.__file__).parent
VECTOR = ti.types.ndarray(dtype=ti.f64, ndim=1)


@pytest.fixture(autouse=True)
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Calls run: what plans cost, which take their place, is in `test_plans.py`."""
    ti.init(arch=ti.cpu, default_fp=ti.f64, num_threads=1)
    monkeypatch.setattr(planned, "PLAIN_CALLS", sys.maxsize)
    yield
    ti.reset()


@pytest.fixture
def handled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of what is copied, restored and cleared as a whole."""
    sizes: list[int] = []
    for name in ("copy", "restore", "clear"):
        whole = getattr(Memory, name)

        def noting(memory: Memory, *rest: Any, run: Callable[..., Any] = whole) -> Any:
            sizes.append(memory.nbytes)
            return run(memory, *rest)

        monkeypatch.setattr(Memory, name, noting)
    return sizes


def summed() -> Any:
    @ti.kernel
    def cubes(x: VECTOR) -> ti.f64:
        total = 0.0
        for i in range(x.shape[0]):
            total += x[i] ** 3
        return total

    return cubes


def overwriting() -> tuple[Any, Any, Callable[[], None]]:
    """A program that squares a field four times in place."""
    x = ti.field(ti.f64, N, needs_grad=True)
    loss = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def square():
        for i in x:
            x[i] = x[i] * x[i]

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i]

    def run() -> None:
        for _ in range(4):
            square()
        total()

    return x, loss, run


def test_a_tape_takes_no_fresh_memory_the_second_time() -> None:
    x, loss, run = overwriting()
    fresh = []
    for _ in range(3):
        x.fill(1)
        before = pool.fresh
        with ti.ad.Tape(loss) as tape:
            run()
        assert tape.copied_bytes == 4 * 8 * N
        fresh.append(pool.fresh - before)
        del tape
        assert (x.grad.to_numpy() == 16).all()
    assert fresh[0] > 4 and fresh[1:] == [0, 0]


@pytest.mark.parametrize("takes", ["numpy", "ndarray"])
def test_a_gradient_takes_no_fresh_memory_the_second_time(takes: str) -> None:
    given: Any = np.full(N, 2.0)
    if takes == "ndarray":
        given = ti.ndarray(ti.f64, N, needs_grad=True)
        given.fill(2)
    gradient = ti.ad.grad(summed())
    assert (gradient(given) == 12).all()
    before = pool.fresh
    for _ in range(3):
        assert (gradient(given) == 12).all()
    assert pool.fresh == before


def test_a_result_is_the_memory_of_the_gradient_itself(handled: list[int]) -> None:
    gradient = ti.ad.grad(summed())
    given = np.full(N, 2.0)
    first = gradient(given)
    handled.clear()
    second = gradient(3 * given)
    assert not [n for n in handled if n >= 8 * N], "nothing is copied, and fresh memory is zero"
    assert (first == 12).all() and (second == 27 * 4).all()
    first[:] = 0
    assert (gradient(given) == 12).all() and (second == 27 * 4).all()


def test_results_go_back_to_the_pool_with_their_last_array() -> None:
    gradient = ti.ad.grad(summed())
    result = gradient(np.ones(N))
    part = result[5:7]
    idle = pool.nbytes
    del result
    assert pool.nbytes == idle and part.tolist() == [3, 3]
    del part
    assert pool.nbytes >= idle + 8 * N


@pytest.mark.parametrize("size", [8, N])
def test_one_stand_in_serves_all_calls(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    make = inputs.stand_in
    monkeypatch.setattr(
        inputs, "stand_in", lambda array, **options: (made.append(array.size), make(array, **options))[1]
    )
    gradient, product = ti.ad.grad(summed()), ti.ad.hvp(summed())
    for value in (1.0, 2.0, 3.0):
        np.testing.assert_array_equal(gradient(np.full(size, value)), 3 * value**2)
    assert made == [size]
    results = [product(np.full(size, value), np.full(size, 2.0)) for value in (1.0, 2.0, 3.0)]
    assert made == [size] * 2
    assert all((result == 12 * value).all() for result, value in zip(results, (1.0, 2.0, 3.0), strict=True))
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    assert (gradient(np.ones(size)) == 3).all()
    assert made == [size] * 3, "that of a session that is over is gone"


@pytest.mark.parametrize("size", [8, N])
def test_what_a_function_keeps_of_its_argument_stays_its_own(size: int) -> None:
    """An array that somebody may still have does not stand in for another one."""
    cubes, kept, views, slopes = summed(), [], [], []

    def keeping(x: Any) -> Any:
        kept.append(x)
        return cubes(x)

    def sharing(x: Any) -> Any:
        views.append(x.numpy_view())
        return cubes(x)

    def keeping_gradient(x: Any) -> Any:
        slopes.append(x.grad)
        return cubes(x)

    for f in (keeping, sharing, keeping_gradient, cubes):
        gradient = ti.ad.grad(f)
        for value in (1.0, 2.0, 3.0):
            np.testing.assert_array_equal(gradient(np.full(size, value)), 3 * value**2)
    assert [x[0] for x in kept] == [1, 2, 3]
    assert [view[0] for view in views] == [1, 2, 3]
    assert [slope[0] for slope in slopes] == [3, 12, 27]
    assert (ti.ad.grad(cubes)(kept[1]) == 12).all(), "it is an ndarray with a gradient like any other"
    assert (kept[1].grad.to_numpy() == 12).all()


@pytest.mark.parametrize("size", [8, N])
def test_stand_ins_serve_arrays_of_their_shape_and_type(size: int) -> None:
    gradient = ti.ad.grad(lambda x, y: cubes(x) + 2 * cubes(y), argnums=(0, 1))
    cubes = summed()
    results = []
    for n in (size, size + 1, size):
        x, y = np.linspace(0, 1, n), np.linspace(1, 2, n)[::-1]
        results.append((x, y, gradient(x, y)))
    for x, y, (by_x, by_y) in results:
        np.testing.assert_allclose(by_x, 3 * x**2, rtol=1e-14)
        np.testing.assert_allclose(by_y, 6 * y**2, rtol=1e-14)


def test_gradients_that_no_launch_touches_are_neither_saved_nor_cleared(handled: list[int]) -> None:
    other = ti.field(ti.f64, 100 * N, needs_grad=True)
    other.grad.fill(7)
    x, loss, run = overwriting()
    x.fill(1)
    x.grad.fill(5)
    _, slope = ti.ad.value_and_grad(run, wrt=x, loss=loss)()
    assert (slope == 16).all() and (x.grad.to_numpy() == 5).all() and (other.grad.to_numpy() == 7).all()
    assert max(handled) == 8 * N
    seed = np.array(2.0)
    assert (ti.ad.vjp(lambda: None, wrt=other, loss=loss)(seed)[1] == 0).all(), "nothing leads there"
    assert (other.grad.to_numpy() == 7).all()
    product = ti.ad.hvp(run, wrt=x, loss=loss)
    x.fill(1)
    assert (product(np.ones(N)) == 16 * 15).all()
    assert (x.grad.to_numpy() == 5).all() and (other.grad.to_numpy() == 7).all() and loss.grad[None] == 0


def test_gradients_are_left_as_they_were_whoever_changes_them() -> None:
    """By Python, by a kernel, through a view, in a custom section, in one without gradients, in a checkpointed loop."""
    n = 16
    x, y = (ti.field(ti.f64, n, needs_grad=True, needs_dual=True) for _ in range(2))
    loss = ti.field(ti.f64, (), needs_grad=True)
    views: list[Any] = []

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i] ** 2

    @ti.kernel
    def mark():
        for i in y:
            y.grad[i] = 9.0

    @ti.kernel
    def double():
        for i in x:
            x[i] = 2 * x[i]

    @ti.kernel
    def use():
        for i in y:
            loss[None] += y[i]

    @ti.ad.no_grad
    def unrecorded() -> None:
        mark()

    @ti.ad.no_grad
    def launches_gradient() -> None:
        use.grad()

    @ti.ad.grad_replaced
    def custom() -> None:
        mark()

    @ti.ad.grad_for(custom)
    def custom_back() -> None:
        use.grad()

    def step(t: int) -> None:
        double()
        mark()

    ways: list[Callable[[], Any]] = [
        lambda: y.grad.fill(3),
        lambda: y.grad.__setitem__(2, 1.0),
        mark,
        lambda: y.grad.numpy_view().fill(4),
        unrecorded,
        launches_gradient,
        custom,
        lambda: ti.ad.checkpoint(step, 3),
        lambda: views[0].fill(4),
    ]
    for number, way in enumerate(ways):

        def f(way: Callable[[], Any] = way) -> None:
            way()
            x.dual.fill(2)
            total()

        x.fill(1)
        x.grad.fill(5)
        y.grad.fill(6)
        loss.grad.fill(8)
        if number == 8:  # one from before
            views.append(y.grad.numpy_view())
        slope = ti.ad.grad(f, wrt=x, loss=loss)()
        assert (slope == (2 * 4**3 if number == 7 else 2)).all(), number
        assert (x.grad.to_numpy() == 5).all() and (y.grad.to_numpy() == 6).all() and loss.grad[None] == 8, number
        assert (x.dual.to_numpy() == 2).all(), "a dual is none"
        x.dual.fill(0)


def test_an_error_leaves_gradients_as_they_were() -> None:
    x, loss, run = overwriting()
    x.grad.fill(5)

    def failing() -> None:
        x.grad.fill(1)
        run()
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        ti.ad.grad(failing, wrt=x, loss=loss)()
    assert (x.grad.to_numpy() == 5).all()


@pytest.mark.parametrize("how", ["kernel", "template", "python", "view"])
def test_what_is_written_to_a_stand_in_comes_back_once(how: str) -> None:
    @ti.kernel
    def double(x: VECTOR):
        for i in x:
            x[i] *= 2

    @ti.kernel
    def double_template(x: ti.template()):
        for i in x:
            x[i] *= 2

    def by_python(x: Any) -> None:
        for i in range(4):
            x[i] = 2 * x[i]

    def by_view(x: Any) -> None:
        view = x.numpy_view()
        view *= 2

    ways = {"kernel": double, "template": double_template, "python": by_python, "view": by_view}
    cubes = summed()

    def f(x: Any) -> Any:
        ways[how](x)
        return cubes(x)

    gradient = ti.ad.grad(f)
    for value in (1.0, 3.0):
        given = np.full(4, value)
        slope = gradient(given)
        assert (given == 2 * value).all()
        assert how == "view" or (slope == 24 * value**2).all()


def test_nothing_is_left_to_the_garbage_collector() -> None:
    _, loss, run = overwriting()
    array, given = ti.ndarray(ti.f64, N, needs_grad=True), np.ones(N)
    gradient, product = ti.ad.grad(summed()), ti.ad.hvp(summed())

    def tape() -> None:
        with ti.ad.Tape(loss):
            run()

    for act in (tape, lambda: gradient(array), lambda: gradient(given), lambda: product(given, given)):
        for _ in range(3):  # what kernels of other tests have left goes with the last that knows of it
            act()
            gc.collect()
        gc.disable()
        try:
            act()
            assert gc.collect() == 0
        finally:
            gc.enable()


def test_small_copies_share_memory_and_nothing_else() -> None:
    """A log of many small pieces takes a few blocks, and each piece is its own."""
    copies = Copies()
    choose = np.random.default_rng(0)
    taken = pool.fresh + pool.reused
    arrays = [choose.random(size) for size in choose.integers(0, 4000, 300)]
    kept = [copies.copy(array[::step]) for array, step in zip(arrays, choose.integers(1, 3, 300).tolist(), strict=True)]
    expected = [one.copy() for one in kept]
    for array, one in zip(arrays, kept, strict=True):
        assert one.base is None or one.ctypes.data % 64 == 0
        assert array.size == 0 or one[0] == array[0]
    assert pool.fresh + pool.reused - taken < 20
    for k, one in enumerate(kept):
        one[...] = -k
    assert all(
        (one == -k).all() and one.shape == known.shape
        for k, (one, known) in enumerate(zip(kept, expected, strict=True))
    )


def over_arrays() -> tuple[Any, Any, Callable[..., None]]:
    """Adds the cubes of an array, through a second one, to a loss."""
    loss = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def square(x: VECTOR, y: VECTOR):
        for i in range(x.shape[0]):
            y[i] = x[i] * x[i]

    @ti.kernel
    def product(x: VECTOR, y: VECTOR):
        for i in range(x.shape[0]):
            loss[None] += x[i] * y[i]

    def run(x: Any, y: Any) -> None:
        square(x, y)
        product(x, y)

    return loss, square, run


@pytest.mark.parametrize("needs_grad", [True, None])
def test_what_a_launch_touches_of_ndarrays_is_found_out_once(
    needs_grad: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a gradient of their own, and with a temporary adjoint."""
    made: list[int] = []
    make = RegionEvaluator.__init__
    monkeypatch.setattr(RegionEvaluator, "__init__", lambda *given: (made.append(1), make(*given))[1])
    loss, _, run = over_arrays()
    x = ti.ndarray(ti.f64, 8, needs_grad=True)
    ys = [ti.ndarray(ti.f64, 8, needs_grad=needs_grad) for _ in range(2)]
    x.fill(2)
    for repetition in range(3):
        made.clear()
        for y in ys:
            with ti.ad.Tape(loss):
                run(x, y)
            assert (x.grad.to_numpy() == 12).all()
        assert bool(made) is not bool(repetition)


def test_regions_next_to_arrays_of_others_are_found_out_once_a_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    make = RegionEvaluator.__init__
    monkeypatch.setattr(RegionEvaluator, "__init__", lambda *given: (made.append(1), make(*given))[1])
    loss = ti.field(ti.f64, (), needs_grad=True)
    x = ti.ndarray(ti.f64, 8, needs_grad=True)
    seen: list[int] = []

    @ti.kernel
    def weighted(x: VECTOR, w: VECTOR):
        for i in range(w.shape[0]):
            x[i] = x[i] * x[i]
            loss[None] += x[i] * w[i]

    for size in (8, 4, 8, 4):
        made.clear()
        x.fill(2)
        with ti.ad.Tape(loss) as tape:
            weighted(x, np.full(size, 3.0))
        assert x.grad.to_numpy().tolist() == [12] * size + [0] * (8 - size)
        assert tape.copied_bytes == 8 * size * 2
        assert len(made) == (2 if size not in seen else 0)
        seen.append(size)


def weighted_sum() -> tuple[Any, Callable[[Any], float]]:
    """A parameter, and what gives the sum of `w²·x` over its elements; the gradient by `x` is `w²`."""
    loss = ti.field(ti.f64, (), needs_grad=True)
    x = ti.ndarray(ti.f64, 8, needs_grad=True)
    x.fill(2)

    @ti.kernel
    def weighted(x: VECTOR, w: VECTOR):
        for i in range(w.shape[0]):
            w[i] = w[i] * w[i]
            loss[None] += x[i] * w[i]

    def run(w: Any) -> float:
        with ti.ad.Tape(loss):
            weighted(x, w)
        return loss[None]

    return x, run


def test_a_launch_on_the_same_arrays_of_others_is_known_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    make = Arguments.__init__
    monkeypatch.setattr(Arguments, "__init__", lambda *given: (made.append(1), make(*given))[1])
    x, run = weighted_sum()
    w = np.empty(8)
    for k in range(3):
        w[:] = np.arange(8) + k
        made.clear()
        assert run(w) == 2 * ((np.arange(8.0) + k) ** 2).sum()
        assert x.grad.to_numpy().tolist() == [(i + k) ** 2 for i in range(8)]
        assert bool(made) == (k == 0)
    alive = weakref.ref(w)
    del w
    assert alive() is None


def test_what_is_known_of_arrays_of_others_holds_where_they_lie() -> None:
    """Parts of one array, more of them than are remembered, in any order: also such as are read-only or overlap."""
    x, run = weighted_sum()
    whole, draw = np.empty(48), np.random.default_rng(3)
    loss = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def shifted(x: VECTOR, w: VECTOR, v: VECTOR):
        for i in range(v.shape[0]):
            v[i] = w[i] + 1
            loss[None] += x[i] * v[i]

    for _ in range(120):
        whole[:] = draw.integers(1, 9, 48)
        first, size = int(draw.integers(0, 40)), int(draw.integers(7, 9))
        w = whole[first : first + size]
        w.flags.writeable = draw.integers(0, 5) > 0
        before = w.copy()
        if not w.flags.writeable:
            with pytest.raises(KernelArgumentError, match="read-only"):
                run(w)
            continue
        assert run(w) == 2 * (before**2).sum()
        assert x.grad.to_numpy()[:size].tolist() == (before**2).tolist()
        assert w.tolist() == (before**2).tolist()
        other = int(draw.integers(0, 41 - size + 7))
        v = whole[other : other + size]
        if len(v) == size and abs(first - other) < size:
            with pytest.raises(DifferentiationError, match="share memory"), ti.ad.Tape(loss):
                shifted(x, w, v)
        elif len(v) == size:
            before = w.copy()
            with ti.ad.Tape(loss):
                shifted(x, w, v)
            assert x.grad.to_numpy()[:size].tolist() == (before + 1).tolist()


def test_a_view_is_refused_where_an_array_of_others_was_known() -> None:
    """Memory that was another's may become a field's, and a view of it lie where the array lay."""
    _, run = weighted_sum()
    y = ti.ndarray(ti.f64, 8, needs_grad=True)
    y.fill(3)
    lies_there = np.frombuffer(memory_of(y.buffer).view())
    run(lies_there)
    run(lies_there)
    view = y.numpy_view()
    assert view.ctypes.data == lies_there.ctypes.data
    with pytest.raises(DifferentiationError, match="is a view of"):
        run(view)


@pytest.mark.parametrize("needs_grad", [True, None])
def test_what_is_known_of_ndarrays_goes_with_them(needs_grad: bool | None) -> None:
    """Also where others that they were launched with stay; what comes to lie in their place is looked at anew."""
    loss, square, run = over_arrays()
    x = ti.ndarray(ti.f64, N, needs_grad=True)
    x.fill(2)
    gc.disable()
    try:
        for _ in range(4):
            y = ti.ndarray(ti.f64, N, needs_grad=needs_grad)
            with ti.ad.Tape(loss) as tape:
                run(x, y)
            assert (x.grad.to_numpy() == 12).all()
            assert len(square.instances[-1].by_memory) == 1
            idle = pool.nbytes
            del y, tape
            assert not square.instances[-1].by_memory
            assert pool.nbytes >= idle + 8 * N
    finally:
        gc.enable()


def test_an_array_that_gets_a_dual_is_looked_at_anew() -> None:
    loss, _, run = over_arrays()
    x, y = (ti.ndarray(ti.f64, 8, needs_grad=True) for _ in range(2))
    x.fill(2)
    for _ in range(2):
        with ti.ad.Tape(loss):
            run(x, y)
        assert (x.grad.to_numpy() == 12).all()
        product = ti.ad.hvp(lambda: run(x, y), wrt=x, loss=loss)(np.ones(8))
        assert (product == 12).all()


def python_calls(act: Callable[[], Any]) -> list[CodeType]:
    """The functions of Python that are called."""
    calls: list[CodeType] = []

    def count(frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            calls.append(frame.f_code)

    before = sys.getprofile()
    gc.disable()  # what libraries do after a collection is none of it
    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(before)
        gc.enable()
    return calls


@pytest.mark.parametrize(("what", "most"), [("tape", 80), ("ndarray", 25), ("numpy", 25)])
def test_the_fixed_cost_of_a_derivative(what: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many functions of Python a small one calls, when all that does not change between calls is known: on a tape,
    and by a plan.
    """
    monkeypatch.setattr(planned, "PLAIN_CALLS", 2)
    loss = ti.field(ti.f64, (), needs_grad=True)
    x = ti.ndarray(ti.f64, 16, needs_grad=True)
    gradient, given = ti.ad.grad(summed()), np.ones(16)

    @ti.kernel
    def cubes():
        for i in x:
            loss[None] += x[i] ** 3

    def tape() -> None:
        with ti.ad.Tape(loss):
            cubes()

    act: Callable[[], Any] = {"tape": tape, "ndarray": lambda: gradient(x), "numpy": lambda: gradient(given)}[what]
    for _ in range(6):
        act()
    calls = python_calls(act)
    assert len(calls) <= most, calls


@pytest.mark.parametrize(
    ("what", "most", "files"),
    [("fields", 14, 6), ("number", 15, 6), ("ndarray", 22, 11), ("no gradient", 31, 13)],
)
def test_the_cost_of_one_more_launch_under_a_tape(what: str, most: int, files: int) -> None:
    """How many functions of Python a launch calls, with its gradient, when all that does not change is known, and in
    how many files these are.
    """
    loss = ti.field(ti.f64, (), needs_grad=True)
    x, between = ti.field(ti.f64, N, needs_grad=True), ti.field(ti.f64, N)
    array = ti.ndarray(ti.f64, N, needs_grad=True)

    @ti.kernel
    def cubes(a: ti.f64):
        for i in x:
            loss[None] += a * x[i] ** 3

    @ti.kernel
    def of_fields():
        for i in x:
            loss[None] += x[i] ** 3

    @ti.kernel
    def of_array(y: ti.types.ndarray(ti.f64, ndim=1), a: ti.f64):
        for i in y:
            loss[None] += a * y[i] ** 3

    @ti.kernel
    def through_others():
        for i in x:
            between[i] = x[i] ** 3

    launch: Callable[[], Any] = {
        "fields": of_fields,
        "number": lambda: cubes(2.0),
        "ndarray": lambda: of_array(array, 2.0),
        "no gradient": through_others,
    }[what]

    def tape(count: int) -> Callable[[], None]:
        def act() -> None:
            with ti.ad.Tape(loss):
                for _ in range(count):
                    launch()

        return act

    for count in (2, 12):
        for _ in range(4):
            tape(count)()
    few, many = (python_calls(tape(count)) for count in (2, 12))
    assert len(many) - len(few) <= 10 * most, many
    entered = Counter([code.co_filename for code in many]) - Counter([code.co_filename for code in few])
    ours = [name for name in entered if name.startswith(str(PACKAGE))]
    assert len(ours) <= files, ours


def test_arrays_over_fields_of_an_earlier_session_cost_launches_nothing() -> None:
    def calls() -> int:
        loss = ti.field(ti.f64, (), needs_grad=True)
        x = ti.field(ti.f64, N, needs_grad=True)

        @ti.kernel
        def cubes():
            for i in x:
                loss[None] += x[i] ** 3

        def act() -> None:
            with ti.ad.Tape(loss):
                cubes()

        for _ in range(4):
            act()
        return len(python_calls(act))

    x = ti.field(ti.f64, N)
    array = x.numpy_view()
    seen = calls()
    ti.reset()
    assert calls() < seen
    assert array.shape == (N,)
