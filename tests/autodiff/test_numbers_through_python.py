"""Numbers that pass through Python while something records: what a program means without derivatives is what is
differentiated, under every interface; and such a number is to the rest of the world what a float is.
"""

from __future__ import annotations

import copy
import gc
import json
import math
import numbers
import operator
import pickle
import statistics
import warnings
import weakref
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.number_kernels import NumberKernels
from tests.autodiff.user import array, scalar, session  # noqa: F401
from tinote.errors import DifferentiationError

Array = np.ndarray[Any, Any]


class Fields(NumberKernels):
    """x = (1, 2, 3), y = (0.5, 1.5, 2.5), and the kernels of the programs below."""

    def __init__(self) -> None:
        both: dict[str, Any] = {"needs_grad": True, "needs_dual": True}
        x, y, loss = [ti.field(ti.f64, shape, name=name, **both) for name, shape in (("x", 3), ("y", 3), ("loss", ()))]
        self.x, self.y, self.loss = x, y, loss

        super().__init__(x, loss)

        @ti.kernel
        def squares_y():
            for i in y:
                loss[None] += y[i] ** 2

        @ti.kernel
        def thrice():
            for i in x:
                y[i] = 3 * x[i]

        v, c = ti.Vector.field(2, ti.f64, (), name="v", **both), ti.field(ti.f64, 3, name="c")

        @ti.kernel
        def weigh(q: ti.types.ndarray(dtype=ti.f64, ndim=1)) -> ti.f64:
            found = 0.0
            for i in q:
                found += q[i] * x[i]
            return found

        @ti.kernel
        def product():
            loss[None] += v[None].x * v[None].y

        @ti.kernel
        def use_c():
            for i in c:
                loss[None] += c[i] * x[i]

        self.squares_y, self.thrice = squares_y, thrice
        self.weigh, self.product, self.use_c, self.v, self.c = weigh, product, use_c, v, c
        with ti.ad.Tape(loss):
            self.ended = x[0] + 1.0  # a number of a tape that has ended
        self.start()

    def start(self) -> None:
        self.x.from_numpy(np.array([1.0, 2.0, 3.0]))
        self.y.from_numpy(np.array([0.5, 1.5, 2.5]))
        self.loss[None] = 0


@pytest.fixture
def f() -> Fields:
    return Fields()


def _tape(f: Fields, program: Callable[[], Any]) -> Any:
    with ti.ad.Tape(f.loss):
        program()
    return f.x.grad.to_numpy(), f.y.grad.to_numpy()


def _checkpoint(f: Fields, program: Callable[[], Any]) -> Any:
    return _tape(f, lambda: ti.ad.checkpoint(lambda t: program(), 1, progress=False))


def _functional(made: Any) -> Any:
    return lambda f, program: made(f, lambda: (program(), None)[1])


def _along_units(f: Fields, push: Callable[[Array, Array], float]) -> Any:
    found = np.zeros(6)
    for k, unit in enumerate(np.eye(6)):
        f.start()
        found[k] = push(unit[:3], unit[3:])
    return found[:3], found[3:]


def _forward(f: Fields, program: Callable[[], Any]) -> Any:
    def push(dx: Array, dy: Array) -> float:
        with ti.ad.FwdMode(loss=f.loss, param=[f.x, f.y], seed=[dx, dy]):
            program()
        return f.loss.dual.to_numpy().item()

    return _along_units(f, push)


def _jvp(f: Fields, program: Callable[[], Any]) -> Any:
    return _along_units(f, lambda dx, dy: ti.ad.jvp(program, wrt=[f.x, f.y], loss=f.loss)([dx, dy])[1])


INTERFACES: dict[str, Any] = {
    "tape": _tape,
    "checkpoint": _checkpoint,
    "forward mode": _forward,
    "jvp": _jvp,
    "grad": lambda f, program: ti.ad.grad(program, wrt=[f.x, f.y], loss=f.loss)(),
    "value_and_grad": lambda f, program: ti.ad.value_and_grad(program, wrt=[f.x, f.y], loss=f.loss)()[1],
    "vjp": lambda f, program: ti.ad.vjp(program, wrt=[f.x, f.y], loss=f.loss)(1.0)[1],
    "jacobian forward": lambda f, p: ti.ad.jacobian(p, wrt=[f.x, f.y], loss=f.loss, mode="forward")(),
    "jacobian reverse": lambda f, p: ti.ad.jacobian(p, wrt=[f.x, f.y], loss=f.loss, mode="reverse")(),
}


def set_x(f: Fields, i: int, value: Any) -> None:
    f.x[i] = value


def assign(field: Any, place: Any, value: Any) -> None:
    field[place] = value


#: program, derivative by x, derivative by y
PROGRAMS: dict[str, tuple[Callable[[Fields], Any], list[float], list[float]]] = {
    "scaled(norm2())": (lambda f: f.scaled(f.norm2()), [26, 38, 50], [0, 0, 0]),
    "loss = norm2()": (lambda f: assign(f.loss, None, f.norm2()), [2, 4, 6], [0, 0, 0]),
    "squares(); print(x[1]); x[1] = 5; squares()": (
        lambda f: (f.squares(), f"{f.x[1]} {f.x[1]:.2f} {f.x[1] > 1}", assign(f.x, 1, 5.0), f.squares()),
        [4, 4, 12],
        [0, 0, 0],
    ),
    "squares(); x[1] = 5; squares()": (
        lambda f: (f.squares(), assign(f.x, 1, 5.0), f.squares()),
        [4, 4, 12],
        [0, 0, 0],
    ),
    "squares(); x[1] = x[1]*3; squares()": (
        lambda f: (f.squares(), assign(f.x, 1, f.x[1] * 3), f.squares()),
        [4, 40, 12],
        [0, 0, 0],
    ),
    "scaled(y[1])": (lambda f: f.scaled(f.y[1]), [1.5, 1.5, 1.5], [0, 6, 0]),
    "loss = y[0] + y[1]": (lambda f: assign(f.loss, None, f.y[0] + f.y[1]), [0, 0, 0], [1, 1, 0]),
    "loss = y[0] * y[1]": (lambda f: assign(f.loss, None, f.y[0] * f.y[1]), [0, 0, 0], [1.5, 0.5, 0]),
    "y[0] = y[1]*3; squares_y()": (
        lambda f: (f.squares_y(), assign(f.y, 0, f.y[1] * 3), f.squares_y()),
        [0, 0, 0],
        [1, 33, 10],
    ),
    "through a launch": (
        lambda f: (f.thrice(), f.scaled(f.y[2]), assign(f.y, 2, 1.0), f.scaled(f.y[2])),
        [9 + 1, 9 + 1, 9 + 18 + 1],
        [0, 0, 0],
    ),
    "copy and fill": (
        lambda f: (f.squares_y(), f.y.copy_from(f.x), f.squares_y(), f.y.fill(f.x[0]), f.squares_y()),
        [8, 4, 6],
        [1, 3, 5],
    ),
    "x[1] += 1": (
        lambda f: (f.squares(), assign(f.x, 1, operator.iadd(f.x[1], 1)), f.squares()),
        [4, 10, 12],
        [0, 0, 0],
    ),
    "functions": (
        lambda f: assign(f.loss, None, ti.sin(f.x[0]) + np.exp(f.y[0]) + max(f.x[1], f.y[1]) + abs(-f.x[2])),
        [math.cos(1), 1, 1],
        [math.exp(0.5), 0, 0],
    ),
}


@pytest.mark.parametrize("interface", list(INTERFACES))
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_programs(name: str, interface: str, f: Fields) -> None:
    program, by_x, by_y = PROGRAMS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = INTERFACES[interface](f, lambda: program(f))
    np.testing.assert_allclose(found[0], by_x, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found[1], by_y, rtol=1e-12, atol=1e-12)


def test_second_derivatives(f: Fields) -> None:
    d = np.array([0.3, -0.7, 1.1])

    def hvp(program: Callable[[], Any]) -> Array:
        f.start()
        return ti.ad.hvp(program, wrt=f.x, loss=f.loss)(d)

    x = np.array([1.0, 2.0, 3.0])
    # Σx² · Σx: the Hessian is 2 Σx + 2x 1ᵀ + 1 2xᵀ.
    np.testing.assert_allclose(hvp(lambda: f.scaled(f.norm2())), 2 * 6 * d + 2 * x * d.sum() + 2 * (x @ d))
    np.testing.assert_allclose(
        hvp(lambda: assign(f.loss, None, f.x[0] * f.x[1] ** 2)), [4 * d[1], 4 * d[0] + 2 * d[1], 0]
    )
    np.testing.assert_allclose(
        hvp(lambda: (f.squares(), set_x(f, 1, f.x[1] * 3), f.squares())), [4 * d[0], 20 * d[1], 4 * d[2]]
    )


# ---- plain numbers that come back


def warned(f: Fields, interface: str, program: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        INTERFACES[interface](f, program)
    return [str(one.message) for one in caught]


TAKEN_OUT: dict[str, Callable[[Fields], Any]] = {
    "float": lambda f: f.scaled(float(f.y[1])),
    "item": lambda f: f.scaled(np.asarray(f.y[1]).item()),
    "math": lambda f: f.scaled(math.sin(f.y[1])),
    "math of a result": lambda f: f.scaled(math.sqrt(f.norm2())),
    "to_numpy": lambda f: (f.squares_y(), f.y.from_numpy(f.y.to_numpy() * 3), f.squares_y()),
    "an array of them": lambda f: (f.squares_y(), f.y.from_numpy(np.array([f.y[0], 1.0, 2.0])), f.squares_y()),
    "an element of an array": lambda f: f.scaled(f.y.to_numpy()[1]),
    "an array that is passed": lambda f: f.scaled(f.weigh(np.array([1.0, f.y[1], 2.0]))),
    "among others": lambda f: (assign(f.v, None, [f.x[0], math.sin(f.y[1])]), f.product()),
    "with a number of another tape": lambda f: assign(f.v, None, f.v[None] * f.ended ** math.sin(f.y[1])),
    "an element written": lambda f: (f.squares(), set_x(f, 1, float(f.x[1]) * 3), f.squares()),
}


@pytest.mark.parametrize("interface", ["tape", "checkpoint", "forward mode", "jvp", "grad", "vjp", "jacobian reverse"])
@pytest.mark.parametrize("name", list(TAKEN_OUT))
def test_a_plain_number_that_comes_back_is_reported(name: str, interface: str, f: Fields) -> None:
    reported = warned(f, interface, lambda: TAKEN_OUT[name](f))
    runs = 6 if interface in ("forward mode", "jvp") else 1  # one for each unit vector
    assert 1 <= len(reported) <= runs, reported
    assert __file__ in reported[0]


@pytest.mark.parametrize("interface", ["tape", "checkpoint", "grad", "forward mode", "jvp", "jacobian reverse"])
def test_a_field_without_a_derivative_between(interface: str, f: Fields) -> None:
    """It gets a temporary one."""

    def by_copy() -> None:
        f.c.copy_from(f.x)
        f.use_c()

    def by_element() -> None:
        f.c.fill(5)
        f.c[1] = f.x[1]
        f.use_c()

    for program, expected in ((by_copy, [2, 4, 6]), (by_element, [5, 4, 5])):
        f.start()
        assert INTERFACES[interface](f, program)[0].tolist() == expected


def test_it_is_reported_once_with_both_lines(f: Fields) -> None:
    def program() -> None:
        for i in range(3):
            taken = float(f.y[i])
            f.scaled(taken)

    (reported,) = warned(f, "tape", program)
    assert "taken = float(f.y[i])" in reported
    assert "f.scaled(taken)" in reported


def test_it_is_an_error_where_a_tape_validates() -> None:
    ti.init(arch=ti.cpu, default_fp=ti.f64, debug=True)
    f = Fields()

    def program() -> None:
        f.scaled(float(f.y[1]))

    with pytest.raises(DifferentiationError) as caught, ti.ad.Tape(f.loss, validation=True):
        program()
    assert caught.value.span.file == __file__


LOOKS: dict[str, Callable[[Any], Any]] = {
    "print": lambda a: print(a, end=""),
    "format": lambda a: f"{a} {a:.3f} {a!r:>10}",
    "percent": lambda a: "%.2f" % a,  # noqa: UP031
    "compare": lambda a: (a > 1, a == 2.0, 1 < a <= 3, a in (1.0, 2.0)),
    "bool": lambda a: 1 if a else 0,
    "append": lambda a: [].append(a),
    "isnan": lambda a: math.isnan(a),
    "json": lambda a: json.dumps({"a": a}, default=float),
    "float": lambda a: float(a),
    "array": lambda a: np.array([a, 1.0]).mean(),
    "pickle": lambda a: pickle.dumps(a),
    "copy": lambda a: (copy.copy(a), copy.deepcopy(a)),
    "hash": lambda a: {a: 1},
    "mean": lambda a: statistics.fmean([a, 2.0]),
}


@pytest.mark.parametrize("name", list(LOOKS))
def test_looking_alone_is_not_reported_and_changes_nothing(name: str, f: Fields) -> None:
    """Nothing plain is written or passed afterwards."""

    def program() -> None:
        f.squares()
        LOOKS[name](f.x[1])
        LOOKS[name](f.norm2())
        f.squares()

    for interface in ("tape", "grad", "forward mode"):
        f.start()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = INTERFACES[interface](f, program)
        np.testing.assert_allclose(found[0], [4, 8, 12], rtol=1e-14)


# ---- what such a number is


@pytest.fixture
def number(f: Fields) -> Any:
    """2.0, read under a tape that is open while the test runs."""
    with ti.ad.Tape(f.loss):
        f.squares()
        yield f.x[1]


def test_it_is_a_real_number(number: Any) -> None:
    assert isinstance(number, numbers.Real)
    assert isinstance(number, numbers.Number)
    assert number == 2.0
    assert operator.eq(2.0, number)
    assert not operator.ne(number, 2)
    assert hash(number) == hash(2.0)
    assert {2.0: "two"}[number] == "two"
    assert str(number) == "2.0"
    assert repr(number) == "2.0"
    assert f"{number:8.3f}|{number:g}|{number:e}" == f"{2.0:8.3f}|{2.0:g}|{2.0:e}"
    assert "%.1f %d" % (number, number) == "2.0 2"  # noqa: UP031
    assert (int(number), round(number), math.floor(number), math.ceil(number), math.trunc(number)) == (2, 2, 2, 2, 2)
    assert bool(number)
    assert number.real == 2.0
    assert number.imag == 0.0
    assert number.conjugate() == 2.0
    assert complex(number) == 2 + 0j
    assert sorted([3.0, number, 1.0]) == [1.0, 2.0, 3.0]
    assert min(number, 3) == 2
    assert number.is_integer()
    assert number.as_integer_ratio() == (2, 1)


def test_conversions(number: Any) -> None:
    assert type(float(number)) is float
    assert math.sin(number) == math.sin(2.0)
    assert Decimal(float(number)) == 2
    assert Fraction(float(number)) == 2
    assert np.float64(number) == 2.0
    made = np.array([number, 1.0])
    assert made.dtype == np.float64
    assert made.tolist() == [2.0, 1.0]
    assert np.asarray(number).dtype == np.float64
    assert np.full(3, number).dtype == np.float64
    assert np.linspace(0, number, 3).tolist() == [0.0, 1.0, 2.0]
    assert np.isclose(number, 2.0)
    array = np.zeros(2)
    array[0] = number
    assert array.tolist() == [2.0, 0.0]
    assert (np.ones(2) * float(number)).tolist() == [2.0, 2.0]


def test_arithmetic_gives_such_numbers(number: Any) -> None:
    kind = type(number)
    for made in (number + 1, 1 - number, number * number, 2 / number, number**2, 2**number, -number, abs(number)):
        assert type(made) is kind
    for made in (np.sin(number), np.add(number, 1.0), np.float64(3) * number, number / np.float64(3), ti.sin(number)):
        assert type(made) is kind
    assert divmod(number, 1.5) == divmod(2.0, 1.5)
    assert number % 0.3 == 2.0 % 0.3
    assert number // 0.3 == 2.0 // 0.3
    with pytest.raises(ZeroDivisionError):
        number / 0
    with pytest.raises(TypeError):
        number + "a"


def test_serialisation(number: Any) -> None:
    again = pickle.loads(pickle.dumps(number))
    assert again == 2.0
    assert isinstance(again, numbers.Real)
    for made in (copy.copy(number), copy.deepcopy(number), copy.deepcopy([number])[0]):
        assert made == 2.0
    assert json.loads(json.dumps([float(number)])) == [2.0]


def test_a_whole_tape_of_losses_keeps_nothing_alive(f: Fields) -> None:
    losses: list[Any] = []
    tapes: list[weakref.ref[Any]] = []
    for _ in range(3):
        with ti.ad.Tape(f.loss) as tape:
            f.squares()
            losses.append(f.loss[None])
            losses.append(f.norm2() * 2)
        tapes.append(weakref.ref(tape))
        del tape
    gc.collect()
    assert [t() for t in tapes] == [None] * 3
    assert losses == [14.0, 28.0] * 3
    assert sum(losses) == 126.0
    assert np.mean(losses) == 21.0
    assert losses[0] * 2 == 28.0


def test_many_numbers_stay_small(f: Fields) -> None:
    """10⁵ of them hold their values and hardly more, and nothing that was recorded."""
    losses: list[Any] = []
    for _ in range(100):
        with ti.ad.Tape(f.loss) as tape:
            f.squares()
            for _ in range(1000):
                losses.append(f.loss[None])
        ended = weakref.ref(tape)
        del tape
        assert ended() is None or gc.collect() >= 0
    gc.collect()
    assert ended() is None
    assert len(losses) == 100_000
    known: set[int] = set()
    waiting: list[Any] = list({id(one): one for one in losses[:5]}.values())
    while waiting and len(known) < 2000:
        one = waiting.pop()
        if id(one) in known or isinstance(one, type):
            continue
        known.add(id(one))
        assert not isinstance(one, ti.ad.Tape)
        waiting += [r for r in gc.get_referents(one) if not isinstance(r, type) and type(r).__name__ != "module"]
    assert len(known) < 2000


def test_a_number_of_an_ended_tape_is_a_constant(f: Fields) -> None:
    with ti.ad.Tape(f.loss):
        f.squares()
        a = f.x[1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for interface in INTERFACES:
            f.start()
            found = INTERFACES[interface](f, lambda: f.scaled(a * 2))
            np.testing.assert_allclose(found[0], [4, 4, 4])
    f.x[0] = a
    assert f.x[0] == 2.0
    assert float(a) == 2.0


# ---- derivatives of derivatives that are launched


def test_a_gradient_that_is_launched_in_forward_mode() -> None:
    both: dict[str, Any] = {"needs_grad": True, "needs_dual": True}
    x, w, p, out = [ti.field(ti.f64, (), name=name, **both) for name in ("x", "w", "p", "out")]

    @ti.kernel
    def energy():
        p[None] += w[None] * x[None] ** 2

    @ti.kernel
    def use():
        out[None] += x.grad[None]

    def program() -> None:
        energy.grad()
        use()

    def start() -> None:
        x[None], w[None], p.grad[None] = 3.0, 2.0, 1.0
        x.grad[None] = w.grad[None] = out[None] = 0.0

    def right_or_refused(run: Callable[[], Any]) -> None:
        start()
        try:
            found = run()
        except DifferentiationError as error:
            assert error.span.file == __file__
        else:
            assert found == pytest.approx(6.0)

    def forward() -> Any:
        with ti.ad.FwdMode(loss=out, param=w):
            program()
        return out.dual.to_numpy().item()

    right_or_refused(forward)
    right_or_refused(lambda: ti.ad.jvp(program, wrt=w, loss=out)(1.0)[1])
    right_or_refused(lambda: np.asarray(ti.ad.jacobian(program, wrt=w, loss=out, mode="forward")()).item())


def test_a_checkpointed_step_whose_number_is_another_one_later_is_refused() -> None:
    x, loss = array(3), scalar()
    x.from_numpy(np.array([1.0, 2.0, 3.0]))

    @ti.kernel
    def scaled(a: ti.f64):
        for i in x:
            loss[None] += a * x[i]

    def late_binding() -> None:
        for k in range(3):
            n = x[k] * 2.0
            ti.ad.checkpoint(lambda t: scaled(n), 3)  # noqa: B023

    with pytest.raises(DifferentiationError, match="did something else"), ti.ad.Tape(loss):
        late_binding()

    with ti.ad.Tape(loss):
        for k in range(3):
            n = x[k] * 2.0
            ti.ad.checkpoint(lambda t, n=n: scaled(n), 3)
    # loss = 3 · 2 · (x₀ + x₁ + x₂)²
    assert x.grad.to_numpy() == pytest.approx(np.full(3, 12.0 * 6.0))
