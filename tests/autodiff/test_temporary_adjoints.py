"""Fields and arrays without a gradient that differentiated values pass through get temporary adjoints and duals.

The derivatives of one program, whose intermediate results lie in memory of each kind, in every interface; what is
constant because the user says so; what has no temporary adjoint; how long they last.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import DifferentiationError, FieldError
from tinote.lang.ad.journal import temporary_adjoints
from tinote.lang.session.state import session

N = 4
STEPS = 3
BOTH: dict[str, Any] = {"needs_grad": True, "needs_dual": True}
X = np.linspace(0.4, 1.3, N)
DIRECTION = np.array([0.6, -0.3, 1.7, 0.9])
Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def start() -> None:
    ti.init(default_fp=ti.f64)


# ---- a program, with its intermediate results in memory of each kind


class Program:
    """`run()` leaves Σ_i w_i · s(x_i²) · x_i in `loss`, where s repeats sin(y) + 0.1 x, through `y`."""

    def __init__(self, kind: str, dtype: Any) -> None:
        self.x = ti.field(dtype, N, **BOTH)
        self.loss = ti.field(dtype, (), **BOTH)
        self.x.from_numpy(X.astype(np.float32 if dtype is ti.f32 else np.float64))
        self.square, self.step, self.total = KINDS[kind](self.x, self.loss, dtype)

    def run(self, loop: bool = False) -> None:
        self.loss[None] = 0
        self.square()
        if loop:
            ti.ad.checkpoint(lambda t: self.step(), STEPS, snapshots=1, progress=False)
        else:
            for _ in range(STEPS):
                self.step()
        self.total()


def value(x: Array) -> Any:
    y = x**2
    for _ in range(STEPS):
        y = np.sin(y) + 0.1 * x
    return ((np.arange(N) + 1) * y * x).sum()


def slopes(x: Array = X, h: float = 1e-5) -> Array:
    return np.array([(value(x + h * e) - value(x - h * e)) / (2 * h) for e in np.eye(N)])


def curvature(along: Array, h: float = 1e-4) -> Array:
    return (slopes(X + h * along) - slopes(X - h * along)) / (2 * h)


Steps = tuple[Callable[[], None], Callable[[], None], Callable[[], None]]


def field(x: Any, loss: Any, dtype: Any) -> Steps:
    return _over_field(x, loss, ti.field(dtype, N))


def soa_field(x: Any, loss: Any, dtype: Any) -> Steps:
    y = ti.field(dtype)
    z = ti.field(dtype)
    ti.root.dense(ti.i, N).place(y, z)
    return _over_field(x, loss, z)


def offset_field(x: Any, loss: Any, dtype: Any) -> Steps:
    y = ti.field(dtype, N, offset=-2)

    @ti.kernel
    def square():
        for i in x:
            y[i - 2] = x[i] ** 2

    @ti.kernel
    def step():
        for i in y:
            y[i] = ti.sin(y[i]) + 0.1 * x[i + 2]

    @ti.kernel
    def total():
        for i in y:
            loss[None] += (i + 3) * y[i] * x[i + 2]

    return square, step, total


def _over_field(x: Any, loss: Any, y: Any) -> Steps:
    @ti.kernel
    def square():
        for i in x:
            y[i] = x[i] ** 2

    @ti.kernel
    def step():
        for i in x:
            y[i] = ti.sin(y[i]) + 0.1 * x[i]

    @ti.kernel
    def total():
        for i in x:
            loss[None] += (i + 1) * y[i] * x[i]

    return square, step, total


def member(x: Any, loss: Any, dtype: Any) -> Steps:
    s = ti.Struct.field({"before": ti.i32, "y": dtype, "v": ti.types.vector(2, dtype)}, shape=N)
    return _over_field(x, loss, s.y)


def vectors(x: Any, loss: Any, dtype: Any) -> Steps:
    y = ti.Vector.field(2, dtype, N // 2)

    @ti.kernel
    def square():
        for i in y:
            for k in ti.static(range(2)):
                y[i][k] = x[2 * i + k] ** 2

    @ti.kernel
    def step():
        for i in y:
            y[i] = ti.sin(y[i]) + 0.1 * ti.Vector([x[2 * i], x[2 * i + 1]])

    @ti.kernel
    def total():
        for i in x:
            loss[None] += (i + 1) * y[i // 2][i % 2] * x[i]

    return square, step, total


def matrices(x: Any, loss: Any, dtype: Any) -> Steps:
    y = ti.Matrix.field(2, 2, dtype, ())

    @ti.kernel
    def square():
        for i in x:
            y[None][i // 2, i % 2] = x[i] ** 2

    @ti.kernel
    def step():
        for i in x:
            y[None][i // 2, i % 2] = ti.sin(y[None][i // 2, i % 2]) + 0.1 * x[i]

    @ti.kernel
    def total():
        for i in x:
            loss[None] += (i + 1) * y[None][i // 2, i % 2] * x[i]

    return square, step, total


def array(x: Any, loss: Any, dtype: Any) -> Steps:
    return _over_array(x, loss, ti.ndarray(dtype, N))


def field_as_array(x: Any, loss: Any, dtype: Any) -> Steps:
    return _over_array(x, loss, ti.field(dtype, N))


def _over_array(x: Any, loss: Any, y: Any) -> Steps:
    @ti.kernel
    def square(y: ti.types.ndarray(ndim=1)):
        for i in x:
            y[i] = x[i] ** 2

    @ti.kernel
    def step(y: ti.types.ndarray(ndim=1)):
        for i in y:
            y[i] = ti.sin(y[i]) + 0.1 * x[i]

    @ti.kernel
    def total(y: ti.types.ndarray(ndim=1)):
        for i in y:
            loss[None] += (i + 1) * y[i] * x[i]

    return lambda: square(y), lambda: step(y), lambda: total(y)


def vector_array(x: Any, loss: Any, dtype: Any) -> Steps:
    y = ti.Vector.ndarray(2, dtype, N // 2)

    @ti.kernel
    def square(y: ti.types.ndarray(ndim=1)):
        for i in y:
            y[i] = ti.Vector([x[2 * i] ** 2, x[2 * i + 1] ** 2])

    @ti.kernel
    def step(y: ti.types.ndarray(ndim=1)):
        for i in y:
            y[i] = ti.sin(y[i]) + 0.1 * ti.Vector([x[2 * i], x[2 * i + 1]])

    @ti.kernel
    def total(y: ti.types.ndarray(ndim=1)):
        for i in y:
            for k in ti.static(range(2)):
                loss[None] += (2 * i + k + 1) * y[i][k] * x[2 * i + k]

    return lambda: square(y), lambda: step(y), lambda: total(y)


def copied(x: Any, loss: Any, dtype: Any) -> Steps:
    """Through several fields, with whole-field copies between them."""
    y, z = ti.field(dtype, N), ti.field(dtype, N)
    square, _, _ = _over_field(x, loss, y)
    _, step, _ = _over_field(x, loss, z)
    _, _, total = _over_field(x, loss, y)

    def stepped() -> None:
        z.copy_from(y)
        step()
        y.copy_from(z)

    return square, stepped, total


def through_python(x: Any, loss: Any, dtype: Any) -> Steps:
    """Traced numbers are written to elements, and read again."""
    y = ti.field(dtype, N)
    _, step, _ = _over_field(x, loss, y)

    def square() -> None:
        for i in range(N):
            y[i] = x[i] ** 2

    def total() -> None:
        for i in range(N):
            loss[None] += (i + 1) * y[i] * x[i]

    return square, step, total


def one_kernel(x: Any, loss: Any, dtype: Any) -> Steps:
    """Written and read within one kernel."""
    y = ti.field(dtype, N)

    @ti.kernel
    def everything():
        for i in x:
            y[i] = x[i] ** 2
        for _ in range(STEPS):
            for i in range(N):
                y[i] = ti.sin(y[i]) + 0.1 * x[i]
        for i in x:
            loss[None] += (i + 1) * y[i] * x[i]

    return lambda: None, lambda: None, everything


KINDS: dict[str, Callable[[Any, Any, Any], Steps]] = {
    made.__name__: made
    for made in (
        field, soa_field, offset_field, member, vectors, matrices, array, field_as_array, vector_array, copied,
        through_python, one_kernel,
    )
}  # fmt: skip


# ---- every interface


def by_tape(p: Program) -> Array:
    with ti.ad.Tape(p.loss):
        p.run()
    return p.x.grad.to_numpy()


def by_checkpoints(p: Program) -> Array:
    with ti.ad.Tape(p.loss):
        p.run(loop=True)
    return p.x.grad.to_numpy()


def by_grad(p: Program) -> Array:
    return ti.ad.grad(p.run, wrt=p.x, loss=p.loss)()


def by_value_and_grad(p: Program) -> Array:
    found, slope = ti.ad.value_and_grad(p.run, wrt=p.x, loss=p.loss)()
    assert found == pytest.approx(value(X), rel=1e-5)
    return slope


def by_vjp(p: Program) -> Array:
    return ti.ad.vjp(p.run, wrt=p.x, loss=p.loss)(2.0)[1] / 2


def by_reverse_jacobian(p: Program) -> Array:
    return ti.ad.jacobian(p.run, wrt=p.x, loss=p.loss, mode="reverse")()


def by_forward_jacobian(p: Program) -> Array:
    return ti.ad.jacobian(p.run, wrt=p.x, loss=p.loss, mode="forward")()


def by_jvp(p: Program) -> Array:
    return np.array([ti.ad.jvp(p.run, wrt=p.x, loss=p.loss)(e)[1] for e in np.eye(N)])


def by_forward_mode(p: Program) -> Array:
    found = []
    for e in np.eye(N):
        with ti.ad.FwdMode(loss=p.loss, param=p.x, seed=e):
            p.run()
        found.append(p.loss.dual[None])
    return np.array(found)


def by_hvp(p: Program) -> Array:
    found = ti.ad.hvp(p.run, wrt=p.x, loss=p.loss)(DIRECTION)
    rough = p.x.dtype is ti.f32
    np.testing.assert_allclose(found, curvature(DIRECTION), rtol=1e-3 if rough else 1e-5)
    return by_grad(p)


INTERFACES = (
    by_tape, by_checkpoints, by_grad, by_value_and_grad, by_vjp, by_reverse_jacobian, by_forward_jacobian, by_jvp,
    by_forward_mode, by_hvp,
)  # fmt: skip


@pytest.mark.parametrize("dtype", [ti.f32, ti.f64], ids=["f32", "f64"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_derivative_is_that_of_differences(kind: str, dtype: Any) -> None:
    ti.init(default_fp=dtype)
    p = Program(kind, dtype)
    for derivative in INTERFACES:
        for _ in range(2):  # the second run finds everything compiled
            found = derivative(p)
            assert found == pytest.approx(slopes(), rel=2e-4 if dtype is ti.f32 else 1e-8), derivative.__name__


@pytest.mark.parametrize("derivative", [by_tape, by_checkpoints, by_forward_mode], ids=lambda one: one.__name__)
def test_kernels_as_plain_python(derivative: Callable[[Program], Array]) -> None:
    for kind in KINDS:
        ti.init(arch=ti.python, default_fp=ti.f64)
        assert derivative(Program(kind, ti.f64)) == pytest.approx(slopes(), rel=1e-8), kind


# ---- constants


CONSTANTS: dict[str, Callable[[], Any]] = {
    "field": lambda: ti.field(ti.f64, N, needs_grad=False),
    "field of a type": lambda: ti.field(ti.f64, N, needs_grad=False, needs_dual=False),
    "member": lambda: ti.Struct.field({"y": ti.f64}, shape=N, needs_grad=False).y,
    "member of a type": lambda: ti.types.struct(y=ti.f64).field(shape=N, needs_grad=False).y,
    "placed": lambda: _placed(needs_grad=False),
    "array": lambda: ti.ndarray(ti.f64, N, needs_grad=False),
}
OPEN: dict[str, Callable[[], Any]] = {
    "field": lambda: ti.field(ti.f64, N),
    "member": lambda: ti.Struct.field({"y": ti.f64}, shape=N).y,
    "placed": lambda: _placed(),
    "dual alone": lambda: ti.field(ti.f64, N, needs_dual=True),
    "array": lambda: ti.ndarray(ti.f64, N),
}


def _placed(**options: Any) -> Any:
    y = ti.field(ti.f64, **options)
    ti.root.dense(ti.i, N).place(y)
    return y


def _slope(y: Any, derivative: Callable[..., Any]) -> Any:
    x, loss = ti.field(ti.f64, N, **BOTH), ti.field(ti.f64, (), **BOTH)
    x.from_numpy(X)

    @ti.kernel
    def square(y: ti.template()):
        for i in x:
            y[i] = x[i] ** 2

    @ti.kernel
    def total(y: ti.template()):
        for i in x:
            loss[None] += y[i] * x[i]

    def run() -> None:
        loss[None] = 0
        square(y)
        total(y)

    return derivative(run, wrt=x, loss=loss)


def _gradient(*args: Any, **named: Any) -> Array:
    return ti.ad.grad(*args, **named)()


def _forward(*args: Any, **named: Any) -> Array:
    return ti.ad.jacobian(*args, mode="forward", **named)()


def _curvature(*args: Any, **named: Any) -> Array:
    return ti.ad.hvp(*args, **named)(np.ones(N))


def _tape(run: Callable[[], Any], wrt: Any, loss: Any) -> Array:
    with ti.ad.Tape(loss):
        run()
    return wrt.grad.to_numpy()


def _checkpointed(run: Callable[[], Any], wrt: Any, loss: Any) -> Array:
    with ti.ad.Tape(loss):
        ti.ad.checkpoint(lambda t: run(), 1)
    return wrt.grad.to_numpy()


def _block(run: Callable[[], Any], wrt: Any, loss: Any) -> Array:
    with ti.ad.FwdMode(loss=loss, param=wrt, seed=np.ones(N)):
        run()
    return loss.dual[None]


DERIVATIVES = (_gradient, _forward, _curvature, _tape, _checkpointed, _block)


@pytest.mark.parametrize("name", CONSTANTS)
def test_no_derivative_goes_through_what_is_declared_to_have_no_gradient(name: str) -> None:
    """That is an error with both lines, not a derivative without this part; what is constant may be there."""
    y = CONSTANTS[name]()
    for derivative in DERIVATIVES:
        with pytest.raises(DifferentiationError, match="but values that are differentiated go through it") as caught:
            _slope(y, derivative)
        assert "was declared to have no" in caught.value.message and "ti.stop_gradient" in str(caught.value)
        assert caught.value.span.file == caught.value.notes[0].span.file == __file__
    y.fill(2.0)
    x, loss = ti.field(ti.f64, N, **BOTH), ti.field(ti.f64, (), **BOTH)
    seen = ti.field(ti.f64, N, needs_grad=False)
    x.from_numpy(X)

    @ti.kernel
    def scale(y: ti.template()):
        for i in x:
            loss[None] += y[i] * x[i]
            y[i] = ti.stop_gradient(x[i])
            seen[i] = x[i] ** 2  # nothing that is differentiated needs it

    @ti.kernel
    def look():
        for i in seen:
            seen[i] = 2 * seen[i]

    def run() -> None:
        loss[None] = 0
        scale(y)
        look()
        scale(y)

    for derivative in DERIVATIVES[:-1]:
        y.fill(2.0)
        slope = derivative(run, wrt=x, loss=loss)
        np.testing.assert_allclose(slope, 0 * X if derivative is _curvature else 2 + X, atol=1e-14)


@pytest.mark.parametrize("name", OPEN)
def test_what_is_not_declared_is_followed(name: str) -> None:
    y = OPEN[name]()
    for derivative in (_gradient, _forward):
        np.testing.assert_allclose(_slope(y, derivative), 3 * X**2, rtol=1e-14)
    np.testing.assert_allclose(_slope(y, _curvature), 6 * X, rtol=1e-14)


def test_a_declared_lack_of_a_dual_counts_in_forward_mode_alone() -> None:
    y = ti.field(ti.f64, N, needs_dual=False)
    np.testing.assert_allclose(_slope(y, _gradient), 3 * X**2, rtol=1e-14)
    with pytest.raises(DifferentiationError, match="'y' was declared to have no dual"):
        _slope(y, _forward)


def test_python_puts_what_is_differentiated_into_a_declared_constant() -> None:
    x, y, loss = ti.field(ti.f64, (), **BOTH), ti.field(ti.f64, (), needs_grad=False), ti.field(ti.f64, (), **BOTH)

    @ti.kernel
    def square():
        loss[None] += y[None] ** 2

    @ti.kernel
    def scaled(a: ti.f64):
        loss[None] += a * x[None]

    def by_a_number() -> None:
        y[None] = 3 * x[None]
        square()

    def by_a_copy() -> None:
        y.copy_from(x)
        square()

    def and_back() -> None:
        y[None] = 3 * x[None]
        scaled(y[None] + 1.0)

    x[None] = 0.5
    for run in (by_a_number, by_a_copy, and_back):
        for derivative in (_gradient, _tape):
            with pytest.raises(DifferentiationError, match="'y' was declared to have no gradient") as caught:
                derivative(run, wrt=x, loss=loss)
            assert caught.value.span.file == __file__


def test_a_lazy_gradient_takes_the_place_of_a_declaration() -> None:
    y = ti.field(ti.f64, needs_grad=False)
    level = ti.root.dense(ti.i, N)
    level.place(y)
    level.lazy_grad()
    np.testing.assert_allclose(_slope(y, _gradient), 3 * X**2, rtol=1e-14)
    assert y.grad.shape == (N,)


def test_a_stopped_field_is_constant() -> None:
    x, y, loss = ti.field(ti.f64, N, **BOTH), ti.field(ti.f64, N), ti.field(ti.f64, (), **BOTH)
    x.from_numpy(X)

    @ti.kernel
    def square():
        for i in x:
            y[i] = x[i] ** 2

    @ti.kernel
    def total():
        ti.stop_grad(y)
        for i in x:
            loss[None] += y[i] * x[i]

    with ti.ad.Tape(loss):
        square()
        total()
    np.testing.assert_allclose(x.grad.to_numpy(), X**2, rtol=1e-14)


def test_integers_have_none() -> None:
    x, k, loss = ti.field(ti.f64, N, **BOTH), ti.field(ti.i32, N), ti.field(ti.f64, (), **BOTH)
    x.from_numpy(X + 1)

    @ti.kernel
    def cut():
        for i in x:
            k[i] = ti.cast(x[i] * 10, ti.i32)

    @ti.kernel
    def total():
        for i in x:
            loss[None] += k[i] * x[i]

    with ti.ad.Tape(loss) as tape:
        cut()
        total()
    np.testing.assert_allclose(x.grad.to_numpy(), k.to_numpy(), rtol=1e-14)
    assert not tape.activity.spans


# ---- whose they are


def test_a_field_with_a_temporary_adjoint_has_no_gradient_of_its_own() -> None:
    p = Program("field", ti.f64)
    y = ti.field(ti.f64, N)
    seen = []

    @ti.kernel
    def scale():
        for i in y:
            y[i] = 2 * p.x[i]

    @ti.kernel
    def total():
        for i in y:
            p.loss[None] += y[i] ** 2

    with ti.ad.Tape(p.loss):
        scale()
        with pytest.raises(FieldError, match="'y' has no gradient"):
            seen.append(y.grad)
        total()
    with pytest.raises(FieldError, match="'y' has no gradient"):
        seen.append(y.grad)
    assert not y.has_grad and y.buffer.adjoint is None and not seen


def test_loops_of_tapes_leave_nothing() -> None:
    p = Program("member", ti.f64)
    for derivative in INTERFACES:
        derivative(p)
    gc.collect()
    before = len(session.memories)
    for _ in range(5):
        for derivative in INTERFACES:
            derivative(p)
    gc.collect()
    assert len(session.memories) == before


def test_only_what_is_needed_gets_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not what is only read, not what is written with constants, not what nobody reads toward the loss."""
    made: list[str] = []
    real = temporary_adjoints.temporary_shadow

    def noting(buffer: Any, *how: Any) -> Any:
        made.append(buffer.name)
        return real(buffer, *how)

    monkeypatch.setattr(temporary_adjoints, "temporary_shadow", noting)
    x, loss = ti.field(ti.f64, N, **BOTH), ti.field(ti.f64, (), **BOTH)
    read, constant, needed, picture, shown, late = [
        ti.field(ti.f64, N, name=name) for name in ("read", "constant", "needed", "picture", "shown", "late")
    ]
    x.from_numpy(X)

    @ti.kernel
    def work():
        for i in x:
            constant[i] = 2.0 * read[i] + i
            needed[i] = x[i] ** 2
            picture[i] = ti.sqrt(x[i])

    @ti.kernel
    def paint():
        for i in x:
            shown[i] = picture[i] * needed[i]

    @ti.kernel
    def total():
        for i in x:
            loss[None] += needed[i] * constant[i]

    @ti.kernel
    def report():
        for i in x:
            late[i] = needed[i] + x[i]

    read.fill(1)
    with ti.ad.Tape(loss):
        work()
        paint()
        total()
        report()
        assert shown[1] == pytest.approx(X[1] ** 2.5)  # looking is no use
    np.testing.assert_allclose(x.grad.to_numpy(), 2 * X * (2 + np.arange(N)), rtol=1e-14)
    assert "needed" in made and set(made) <= {"needed", "picture"}  # the latter is written where the former is
    made.clear()
    with ti.ad.Tape(loss):
        paint()
        report()
        total()
    assert not made


def test_what_is_overwritten_between_comes_back() -> None:
    """What only the gradient through a field without a gradient reads is kept like anything else."""
    x, y, k = ti.field(ti.f64, N, **BOTH), ti.field(ti.f64, N), ti.field(ti.f64, N, needs_grad=False)
    loss = ti.field(ti.f64, (), **BOTH)

    @ti.kernel
    def square():
        for i in x:
            y[i] = k[i] * x[i] ** 2

    @ti.kernel
    def total():
        for i in y:
            loss[None] += y[i]

    x.from_numpy(X)
    k.fill(3)
    with ti.ad.Tape(loss):
        for _ in range(2):
            square()
            k.fill(100)
            total()
            k.fill(5)
    np.testing.assert_allclose(x.grad.to_numpy(), (3 + 5) * 2 * X, rtol=1e-14)


def test_the_order_of_reading_and_writing_counts() -> None:
    x, y, loss = ti.field(ti.f64, N, **BOTH), ti.field(ti.f64, N), ti.field(ti.f64, (), **BOTH)
    x.from_numpy(X)

    @ti.kernel
    def square():
        for i in x:
            y[i] = x[i] ** 2

    @ti.kernel
    def total():
        for i in y:
            loss[None] += y[i] * x[i]

    @ti.kernel
    def clear():
        for i in y:
            y[i] = 1.0

    y.fill(7)
    with ti.ad.Tape(loss):
        total()  # of constants
        square()
        total()
        clear()
        total()
        square()
        y.fill(2)
        total()
        square()
        y[0] = 4.0
        total()
    expected = 7 + 3 * X**2 + 1 + 2 + 3 * X**2
    expected[0] += 4 - 3 * X[0] ** 2
    np.testing.assert_allclose(x.grad.to_numpy(), expected, rtol=1e-14)


@pytest.mark.parametrize("read", ["an element", "a copy", "a kernel", "what a kernel returns", "an argument"])
@pytest.mark.parametrize("written", ["an element", "a copy", "a fill", "a kernel"])
@pytest.mark.parametrize("inside", [False, True])
def test_values_pass_into_the_steps_of_a_loop(written: str, read: str, inside: bool) -> None:
    """By a field without a gradient that is written before a checkpointed loop, or in it, and read in it."""
    x, y, loss = ti.field(ti.f64, N, **BOTH), ti.field(ti.f64, N, **BOTH), ti.field(ti.f64, (), **BOTH)
    c = ti.field(ti.f64, N)

    @ti.kernel
    def fill_c():
        for i in c:
            c[i] = 1.5 * x[0]

    @ti.kernel
    def read_c():
        for i in c:
            y[i] = c[i]

    @ti.kernel
    def first() -> ti.f64:
        return c[0]

    @ti.kernel
    def put(a: ti.f64):
        y[0] = a

    @ti.kernel
    def total():
        for i in x:
            loss[None] += (i + 1) * y[i] + 0.1 * x[i]

    write: dict[str, Callable[[], object]] = {
        "an element": lambda: c.__setitem__(0, 1.5 * x[0]),
        "a copy": lambda: c.copy_from(x),
        "a fill": lambda: c.fill(1.5 * x[0]),
        "a kernel": fill_c,
    }
    take: dict[str, Callable[[], object]] = {
        "an element": lambda: y.__setitem__(0, c[0]),
        "a copy": lambda: y.copy_from(c),
        "a kernel": read_c,
        "what a kernel returns": lambda: y.__setitem__(0, first()),
        "an argument": lambda: put(c[0]),
    }

    def step(t: int) -> None:
        if inside:
            write[written]()
        take[read]()

    x.from_numpy(X)
    with ti.ad.Tape(loss):
        if not inside:
            write[written]()
        ti.ad.checkpoint(step, STEPS, progress=False)
        total()
    reached = N if read in ("a copy", "a kernel") else 1
    weights = np.arange(1.0, reached + 1)
    expected = np.full(N, 0.1)
    if written == "a copy":
        expected[:reached] += weights
    else:
        expected[0] += 1.5 * (1 if written == "an element" else weights.sum())
    np.testing.assert_allclose(x.grad.to_numpy(), expected, rtol=1e-14)


def test_a_launch_whose_gradient_has_no_derivative_is_refused_only_if_it_is_needed() -> None:
    x, z, loss = ti.field(ti.f64, N, **BOTH), ti.field(ti.f64, ()), ti.field(ti.f64, (), **BOTH)
    x.from_numpy(X)

    @ti.kernel
    def largest():
        for i in x:
            ti.atomic_max(z[None], x[i])
            z[None] += x[i]

    @ti.kernel
    def use():
        for i in x:
            loss[None] += z[None] * x[i]

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i] ** 2

    with ti.ad.Tape(loss):
        largest()
        total()
    np.testing.assert_allclose(x.grad.to_numpy(), 2 * X, rtol=1e-14)
    with pytest.raises(DifferentiationError, match="z"), ti.ad.Tape(loss):
        largest()
        use()


# ---- where there can be none


def test_numpy_arrays_have_none() -> None:
    """Anybody may write to them at any time."""
    x, loss = ti.field(ti.f64, N, **BOTH), ti.field(ti.f64, (), **BOTH)
    through = np.zeros(N)

    @ti.kernel
    def square(y: ti.types.ndarray()):
        for i in x:
            y[i] = x[i] ** 2

    @ti.kernel
    def total(y: ti.types.ndarray()):
        for i in y:
            loss[None] += y[i]

    warned = pytest.warns(UserWarning, match="a plain number goes to kernel 'total'")
    with warned, pytest.raises(DifferentiationError, match="'y' has no gradient"), ti.ad.Tape(loss):
        square(through)
        total(through)
    with pytest.raises(DifferentiationError, match="'y' has no dual"), ti.ad.FwdMode(loss, x, np.ones(N)):
        square(through)
        total(through)


def test_a_custom_vjp_sees_what_is_declared() -> None:
    x, y, loss = ti.field(ti.f64, (), **BOTH), ti.field(ti.f64, ()), ti.field(ti.f64, (), **BOTH)
    x[None] = 3

    @ti.kernel
    def square():
        y[None] = x[None] ** 2

    @ti.kernel
    def clear():
        y[None] = 1.0

    @ti.kernel
    def total():
        loss[None] += y[None] * x[None]

    @ti.ad.grad_replaced
    def cleared() -> None:
        clear()

    @ti.ad.grad_replaced
    def filled() -> None:
        y.fill(5)

    for function in (cleared, filled):

        @ti.ad.grad_for(function)
        def gradient() -> None:
            assert not y.has_grad

    # What it leaves there would have an adjoint that it does not see: an error, unless all is new.
    with pytest.raises(DifferentiationError, match="'y' has no gradient"), ti.ad.Tape(loss):
        square()
        cleared()
        total()
    with ti.ad.Tape(loss):
        square()
        total()
        filled()
        total()
    assert x.grad[None] == 3 * 9 + 5
    with ti.ad.Tape(loss):
        square()
        filled()
        total()
    assert x.grad[None] == 5


def test_without_gradients_nothing_may_be_stored_to_what_the_tape_has_computed() -> None:
    p = Program("field", ti.f64)
    y = ti.field(ti.f64, N)

    @ti.kernel
    def scale():
        for i in y:
            y[i] = 2 * p.x[i]

    @ti.kernel
    def clear():
        for i in y:
            y[i] = 0.0

    with pytest.raises(DifferentiationError, match="stores constants to 'y'"), ti.ad.Tape(p.loss):
        scale()
        ti.ad.no_grad(lambda: clear())()


# ---- losses of one number


LOSSES: dict[str, Callable[[], Any]] = {
    "field": lambda: ti.field(ti.f64, (), **BOTH),
    "field of one": lambda: ti.field(ti.f64, (1,), **BOTH),
    "array": lambda: ti.ndarray(ti.f64, (), **BOTH),
    "array of one": lambda: ti.ndarray(ti.f64, (1,), **BOTH),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_of_one_number(name: str) -> None:
    x, y, loss = ti.field(ti.f64, N, **BOTH), ti.field(ti.f64, N), LOSSES[name]()
    x.from_numpy(X)

    @ti.kernel
    def square(a: ti.types.ndarray()):
        for i in x:
            y[i] = x[i] ** 2
        for i in x:
            if ti.static(len(a.shape) == 0):
                a[None] += y[i] * x[i]
            else:
                a[0] += y[i] * x[i]

    def run() -> None:
        loss.fill(0)
        square(loss)

    with ti.ad.Tape(loss, grad_check=[x]):
        square(loss)
    np.testing.assert_allclose(x.grad.to_numpy(), 3 * X**2, rtol=1e-14)
    found, slope = ti.ad.value_and_grad(run, wrt=x, loss=loss)()
    assert type(found) is float and found == pytest.approx((X**3).sum())
    np.testing.assert_allclose(slope, 3 * X**2, rtol=1e-14)
    np.testing.assert_allclose(ti.ad.grad(run, wrt=x, loss=loss)(), 3 * X**2, rtol=1e-14)
    np.testing.assert_allclose(ti.ad.hvp(run, wrt=x, loss=loss)(np.ones(N)), 6 * X, rtol=1e-14)
    for mode in ("forward", "reverse"):
        rows = ti.ad.jacobian(run, wrt=x, loss=loss, mode=mode)()
        assert rows.shape == (*loss.shape, N)
        np.testing.assert_allclose(rows.reshape(N), 3 * X**2, rtol=1e-14)
    seed = np.full(loss.shape, 2.0)
    np.testing.assert_allclose(ti.ad.vjp(run, wrt=x, loss=loss)(seed)[1], 6 * X**2, rtol=1e-14)
    assert ti.ad.gradcheck(run, x, loss).ok


def test_the_graph_and_the_cost_show_temporary_adjoints() -> None:
    x, loss = ti.field(ti.f64, N, **BOTH), ti.field(ti.f64, (), **BOTH)
    y, shown = ti.field(ti.f64, N, name="y"), ti.field(ti.f64, N, name="shown")

    @ti.kernel
    def square():
        for i in x:
            y[i] = x[i] ** 2

    @ti.kernel
    def paint():
        for i in x:
            shown[i] = x[i] ** 2

    @ti.kernel
    def total():
        for i in x:
            loss[None] += y[i]

    with ti.ad.Tape(loss) as tape:
        square()
        paint()
        total()
    graph = tape.graph()
    assert graph.temporaries == {y.buffer}
    assert "temporary adjoints: y" in repr(graph) and "shown" not in graph.summary
    picture = graph._repr_svg_()
    assert 'font-style="italic">y<' in picture and 'font-style="italic">shown<' not in picture
    assert [one.name for one in square.grad_cost().temporaries] == ["y"]
    assert square.grad_cost().accumulated  # into x.grad: the cost is that of the gradient that runs under a tape
    assert not total.grad_cost().temporaries
