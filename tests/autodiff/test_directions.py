"""Forward mode along several directions at once: a Jacobian's columns in blocks, equal to those one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.support import made
from tests.autodiff.user import session  # noqa: F401
from tinote.autodiff.forward import forward
from tinote.errors import DifferentiationError
from tinote.ir import nodes as ir
from tinote.ir import primitives
from tinote.ir.buffers import clone_of
from tinote.ir.query import walk
from tinote.ir.redirect import redirected
from tinote.ir.types import f64, i32, tangent_type
from tinote.lang.ad.functional import directions

Array = np.ndarray[Any, Any]
zero = ir.Lit(0, i32)


def both(*shape: int, dtype: Any = ti.f64) -> Any:
    return ti.field(dtype, shape, needs_grad=True, needs_dual=True)


def filled(n: int, dtype: Any = ti.f64) -> Any:
    made = both(n, dtype=dtype)
    made.from_numpy(np.linspace(-1.3, 1.7, n))
    return made


def counted(run: Callable[..., None]) -> tuple[Callable[..., None], list[int]]:
    """A function that does the same, and how often it was called."""
    calls = [0]

    def counting(*args: Any) -> None:
        calls[0] += 1
        run(*args)

    return counting, calls


# ---- programs: each makes a function, what jacobian gets of it, and arguments


def straight() -> Any:
    """Slopes of every kind, through a field without a dual."""
    x, w, y = filled(19), filled(19), both(19)
    between = ti.field(ti.f64, 19)

    @ti.kernel
    def first():
        for i in x:
            between[i] = ti.sin(x[i]) * w[i] + ti.sqrt(x[i] ** 2 + 1.0) / (2.0 + ti.cos(w[i]))

    @ti.kernel
    def second():
        for i in y:
            y[i] = ti.max(between[i], x[18 - i]) + ti.abs(w[i]) + between[i] ** w[i] if i % 3 else ti.atan2(x[i], w[i])

    def run() -> None:
        first()
        second()

    return run, {"wrt": [x, w], "loss": y}, ()


def branches_and_loops() -> Any:
    """Branches, carried values, a loop whose length depends on the values, `break`."""
    x, y = filled(21), both(21)

    @ti.kernel
    def iterate():
        for i in x:
            v = x[i]
            steps = 0
            while steps < 12:
                if v > 1.0:
                    v = v * 0.5 - x[(i + 1) % 21]
                else:
                    v = v * v + x[i] * 0.25
                steps += 1
                if v > 40.0:
                    break
            total = 0.0
            for k in range(i % 4):
                total += v * ti.sin(x[k])
            y[i] = total + v

    return iterate, {"wrt": x, "loss": y}, ()


def accumulated() -> Any:
    """Sums that iterations share, in a few elements and in many, in place."""
    x, y = filled(23), both(5)

    @ti.kernel
    def add():
        for i in x:
            y[i % 5] += x[i] * x[(i * 7) % 23]
            y[0] += ti.exp(x[i])

    @ti.kernel
    def again():
        for _ in range(1):
            for k in range(1, 5):
                y[k] = y[k] * y[k - 1] + 1.0

    def run() -> None:
        y.fill(0.0)
        add()
        again()

    return run, {"wrt": x, "loss": y}, ()


def matrices() -> Any:
    """Vectors and matrices as elements, and a local array with an index that is known when it runs."""
    x = ti.Vector.field(3, ti.f64, 6, needs_grad=True, needs_dual=True)
    x.from_numpy(np.linspace(-1.0, 2.0, 18).reshape(6, 3))
    y = ti.Matrix.field(3, 3, ti.f64, 6, needs_grad=True, needs_dual=True)

    @ti.kernel
    def products():
        for i in x:
            table = ti.Matrix([[0.0, 0.0, 0.0, 0.0]])
            for k in range(4):
                table[0, k] = x[(i + k) % 6].norm_sqr()
            m = x[i].outer_product(x[(i + 1) % 6])
            y[i] = m * table[0, (3 * i) % 4] + ti.Matrix.identity(ti.f64, 3) * m.trace()

    return products, {"wrt": x, "loss": y}, ()


def narrow() -> Any:
    """f32 in, f64 between, f32 out."""
    x, y = filled(17, ti.f32), both(17, dtype=ti.f32)
    z = both(17)

    @ti.kernel
    def widen():
        for i in x:
            z[i] = ti.cast(x[i], ti.f64) * 1.1 + 1 / (3.0 + x[i])

    @ti.kernel
    def shorten():
        for i in z:
            y[i] = ti.cast(z[i], ti.f32) * x[i]

    def run() -> None:
        widen()
        shorten()

    return run, {"wrt": x, "loss": y}, ()


def array_arguments() -> Any:
    """Arrays of NumPy's, of which one is overwritten in place, and an integer array."""
    n = 20
    y = ti.ndarray(ti.f64, (n,), needs_grad=True, needs_dual=True)
    which = (np.arange(n, dtype=np.int32) * 3) % n

    @ti.kernel
    def gathered(x: ti.types.ndarray(), w: ti.types.ndarray(), which: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in range(x.shape[0]):
            y[i] = ti.tanh(x[which[i]]) * w[i]

    @ti.kernel
    def twice(y: ti.types.ndarray()):
        for i in range(y.shape[0]):
            y[i] = y[i] * y[i]

    def run(x: Any, w: Any) -> None:
        gathered(x, w, which, y)
        twice(y)

    return run, {"argnums": (0, 1), "loss": y}, (np.linspace(-1.0, 1.0, n), np.linspace(0.5, 2.0, n))


def copied_by_python() -> Any:
    """What Python writes: constants, and the whole of another field."""
    x, y, z = filled(18), both(18), both(18)

    @ti.kernel
    def square():
        for i in x:
            z[i] = x[i] ** 2

    def run() -> None:
        z.fill(3.0)
        square()
        y.copy_from(z)
        y[4] = 2.0

    return run, {"wrt": x, "loss": y}, ()


def own_gradient() -> Any:
    """A function with a gradient of its own."""
    x, y = filled(18), both(18)

    @ti.ad.grad_replaced
    @ti.func
    def cube(a):
        return a * a * a

    @ti.ad.grad_for(cube)
    @ti.func
    def cube_gradient(a, g):
        return 2.5 * a * a * g

    @ti.kernel
    def run():
        for i in x:
            y[i] = cube(x[i]) * x[i]

    return run, {"wrt": x, "loss": y}, ()


PROGRAMS = (
    straight,
    branches_and_loops,
    accumulated,
    matrices,
    narrow,
    array_arguments,
    copied_by_python,
    own_gradient,
)


def columns(make: Any, monkeypatch: pytest.MonkeyPatch, most: int) -> tuple[list[Array], int]:
    """The Jacobian with at most `most` directions a run, and how many runs it took."""
    run, options, args = make()
    counting, calls = counted(run)
    monkeypatch.setattr(directions, "MOST_DIRECTIONS", most)
    found = ti.ad.jacobian(counting, **options, mode="forward")(*args)
    return [np.asarray(part) for part in (found if isinstance(found, tuple) else (found,))], calls[0]


@pytest.mark.filterwarnings("ignore:.*access rule 1")
@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
def test_columns_in_blocks_are_those_one_by_one(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit for bit without fast maths: nothing is reordered."""
    ti.init(default_fp=ti.f64, fast_math=False, debug=True, num_threads=1, offline_cache=False)
    single, runs = columns(make, monkeypatch, 1)
    for most in (16, 4):
        block, block_runs = columns(make, monkeypatch, most)
        assert block_runs == -(-runs // most)
        for one, other in zip(single, block, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
def test_fast_maths_differ_by_rounding_only(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ti.init(default_fp=ti.f64)
    single, _ = columns(make, monkeypatch, 1)
    block, _ = columns(make, monkeypatch, 16)
    tolerance = 1e-5 if make is narrow else 1e-12
    for one, other in zip(single, block, strict=True):
        np.testing.assert_allclose(other, one, rtol=tolerance, atol=tolerance * np.abs(one).max())


def test_duals_of_fields_are_left_alone() -> None:
    run, options, _ = straight()
    x, w = options["wrt"]
    w.dual.fill(3.0)
    ti.ad.jacobian(run, **options, mode="forward")()
    assert (w.dual.to_numpy() == 3.0).all() and not x.dual.to_numpy().any()


def test_a_launch_without_tangents_runs_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, other = filled(16), both(16), both(16)

    @ti.kernel
    def unrelated():
        for i in other:
            other[i] = 2.0

    @ti.kernel
    def double():
        for i in x:
            y[i] = 2 * x[i] * other[i]

    launched: list[str] = []
    real = directions.request_with_temporaries

    def noting(arguments: Any, active: Any) -> Any:
        launched.append(arguments.specialisation.source.name)
        return real(arguments, active)

    monkeypatch.setattr(directions, "request_with_temporaries", noting)

    def run() -> None:
        unrelated()
        double()

    found = ti.ad.jacobian(run, wrt=x, loss=y, mode="forward")()
    np.testing.assert_array_equal(found, 4 * np.eye(16))
    assert launched == ["double"]


def test_numbers_that_go_through_python_go_one_by_one() -> None:
    x, y = filled(6), both(6)

    @ti.kernel
    def total() -> ti.f64:
        found = 0.0
        for i in x:
            found += x[i] ** 2
        return found

    @ti.kernel
    def scale(by: ti.f64):
        for i in x:
            y[i] = x[i] * by

    run, calls = counted(lambda: scale(0.5 * total()))
    found = ti.ad.jacobian(run, wrt=x, loss=y, mode="forward")()
    at = x.to_numpy()
    np.testing.assert_allclose(found, np.outer(at, at) + 0.5 * (at**2).sum() * np.eye(6), rtol=1e-12)
    assert calls[0] == 7  # the first finds out

    def reads() -> None:
        scale(2.0)
        y[0] = y[1] * 3.0

    found = ti.ad.jacobian(reads, wrt=x, loss=y, mode="forward")()
    expected = 2.0 * np.eye(6)
    expected[0] = [0.0, 6.0, 0.0, 0.0, 0.0, 0.0]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_broken_path_is_refused() -> None:
    x, y = filled(5), both(5)
    held = np.zeros(5)

    @ti.kernel
    def into(a: ti.types.ndarray()):
        for i in x:
            a[i] = x[i]

    @ti.kernel
    def back(a: ti.types.ndarray()):
        for i in x:
            y[i] = a[i]

    def run() -> None:
        into(held)
        back(held)

    with pytest.raises(DifferentiationError, match="no dual"):
        ti.ad.jacobian(run, wrt=x, loss=y, mode="forward")()


def test_a_field_that_was_declared_constant_is() -> None:
    x, y = filled(5), both(5)
    constant = ti.field(ti.f64, 5, needs_dual=False)

    @ti.kernel
    def first():
        for i in x:
            constant[i] = x[i]

    @ti.kernel
    def second():
        for i in x:
            y[i] = constant[i] * x[i]

    def run() -> None:
        first()
        second()

    with pytest.raises(DifferentiationError, match="'constant' was declared to have no dual"):
        ti.ad.jacobian(run, wrt=x, loss=y, mode="forward")()

    @ti.kernel
    def stopping():
        for i in x:
            constant[i] = ti.stop_gradient(x[i])

    def constantly() -> None:
        stopping()
        second()

    single = ti.ad.jacobian(constantly, wrt=x, loss=y, mode="forward")()
    np.testing.assert_allclose(single, np.diag(x.to_numpy()), rtol=1e-12)


def test_slopes_are_computed_once_for_all_directions() -> None:
    program = made(lambda b, p: b.store(p.y, (zero,), b.prim(primitives.sin, b.load(p.x, (zero,)))))
    assert program.fn is not None
    clones = {one: clone_of(one, adjoint=False, tangent=True, directions=8) for one in (program.x, program.y)}
    found = list(walk(forward(redirected(program.fn, clones), directions=8).function.region))
    assert [op.prim for op in found if isinstance(op, ir.Prim)].count(primitives.cos) == 1
    stored = [op.value.type for op in found if isinstance(op, ir.Store)]
    assert stored == [f64, tangent_type(f64, 8)]


def test_loops_with_vectors_of_tangents_do_not_run_in_lanes() -> None:
    """What would run in lanes runs one iteration at a time, as its tangents are vectors already."""
    ti.init(default_fp=ti.f64, lanes="always")
    x, y = filled(64), both(64)

    @ti.kernel
    def iterate():
        for i in x:
            v = x[i]
            while v < 10.0:
                v = v * 1.5 + 1.0
            y[i] = v

    single = np.diag([np.float64(1.5) ** k for k in steps_until(10.0, x.to_numpy())])
    np.testing.assert_allclose(ti.ad.jacobian(iterate, wrt=x, loss=y, mode="forward")(), single, rtol=1e-13)


def steps_until(limit: float, start: Array) -> list[int]:
    """How often v = 1.5 v + 1 is repeated until it reaches a limit."""
    found: list[int] = []
    for v in start.tolist():
        count = 0
        while v < limit:
            v, count = v * 1.5 + 1.0, count + 1
        found.append(count)
    return found


def test_large_fields_have_fewer_directions(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = filled(16), both(16)

    @ti.kernel
    def double():
        for i in x:
            y[i] = 2 * x[i]

    counting, calls = counted(double)
    monkeypatch.setattr(directions, "MOST_BYTES", 5 * 2 * 16 * 8)
    np.testing.assert_array_equal(ti.ad.jacobian(counting, wrt=x, loss=y, mode="forward")(), 2 * np.eye(16))
    assert calls[0] == 4
    monkeypatch.setattr(directions, "MOST_BYTES", 1)
    ti.ad.jacobian(counting, wrt=x, loss=y, mode="forward")()
    assert calls[0] == 4 + 16


def test_a_field_is_read_as_a_constant_before_it_varies() -> None:
    """It has a dual of its own, along one direction, when a launch along several first takes it."""
    k, x, y = (ti.field(ti.f64, 64, needs_grad=True, needs_dual=True) for _ in range(3))
    loss = ti.field(ti.f64, (), needs_grad=True, needs_dual=True)

    @ti.kernel
    def multiply():
        for i in k:
            y[i] = k[i] * x[i]

    @ti.kernel
    def square():
        for i in k:
            x[i] = k[i] ** 2

    @ti.kernel
    def total():
        for i in k:
            loss[None] += x[i] + y[i]

    def run() -> None:
        loss[None] = 0.0
        x.fill(1.0)
        multiply()
        square()
        total()

    k.fill(2.0)
    x.dual.fill(7.0)
    assert np.array_equal(ti.ad.jacobian(run, wrt=k, loss=loss, mode="forward")(), np.full(64, 5.0))
    assert np.array_equal(x.dual.to_numpy(), np.full(64, 7.0))
