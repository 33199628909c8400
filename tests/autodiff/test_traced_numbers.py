"""Numbers that pass through Python: what is read, returned, computed and written, under every interface."""

import copy
import gc
import json
import math
import pickle
import warnings
import weakref
from collections.abc import Callable
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.number_kernels import NumberKernels
from tinote.errors import DifferentiationError
from tinote.lang.data.traced import Traced
from tinote.lang.data.traced_derivatives import RULES, Dual


@pytest.fixture(autouse=True)
def session() -> None:
    ti.init(arch=ti.cpu, default_fp=ti.f64)


pair = ti.types.vector(2, ti.f64)
Body = ti.types.struct(mass=ti.f64, pos=pair, n=ti.i32)


class World(NumberKernels):
    """Fields and kernels that the programs below are made of."""

    def __init__(self) -> None:
        both: dict[str, Any] = {"needs_grad": True, "needs_dual": True}
        x, y, loss = ti.field(ti.f64, 3, **both), ti.field(ti.f64, 3, **both), ti.field(ti.f64, (), **both)
        v, m = ti.Vector.field(2, ti.f64, 2, **both), ti.Matrix.field(2, 2, ti.f64, (), **both)
        s = Body.field(shape=2, **both)
        self.x, self.y, self.v, self.m, self.s, self.loss = x, y, v, m, s, loss

        super().__init__(x, loss)

        @ti.kernel
        def all_of_it():
            for i in y:
                loss[None] += y[i] ** 2 * (i + 1)
            for i in v:
                loss[None] += v[i].x * v[i].y ** 2 + s[i].mass * s[i].pos.norm_sqr() * (i + 1)
            loss[None] += m[None][0, 1] ** 2 + 3 * m[None][0, 0] * m[None][1, 1] - m[None][1, 0]

        @ti.kernel
        def centre(k: ti.f64) -> pair:
            return k * (v[0] + v[1]) * x[0]

        @ti.kernel
        def rotated(u: pair, k: ti.f64) -> ti.types.matrix(2, 2, ti.f64):
            return ti.Matrix([[u[0] * k, -u[1]], [u[1] * x[1], u[0]]])

        @ti.kernel
        def body(k: ti.f64) -> Body:
            return Body(k * x[0], ti.Vector([x[1], x[2] * k]), 3)

        @ti.kernel
        def take(b: Body, u: pair):
            loss[None] += b.mass * b.pos[0] * b.n + b.pos[1] ** 2 * u[0] + u[1]

        self.all_of_it = all_of_it
        self.centre, self.rotated, self.body, self.take = centre, rotated, body, take

    @property
    def fields(self) -> list[Any]:
        return [self.x, self.y, self.v, self.m, self.s.mass, self.s.pos]

    def start(self, at: float = 0.0, along: list[Any] | None = None) -> None:
        rng = np.random.default_rng(3)
        for k, field in enumerate(self.fields):
            shape = field.shape + field.element
            values = rng.uniform(0.4, 1.4, shape)
            field.from_numpy(values if along is None else values + at * along[k])
        self.loss.fill(0)

    def run(self, program: str) -> None:
        # As a user's code: it stands in no module of the package's.
        exec(compile(program, "<program>", "exec"), {"np": np, "ti": ti, "math": math, **self.__dict__})


PROGRAMS = [
    "scaled(norm2())",
    "loss[None] = norm2()",
    "loss[None] += norm2() * y[1]",
    "squares(); x[1] = 5.0; squares()",
    "squares(); x[1] = x[1] * 3; squares()",
    "x[1] = x[1] * 3; squares()",
    "squares(); x[1] += 2.0; x[2] -= y[0]; squares(); all_of_it()",
    "scaled(y[1]); y[1] = 2.0; scaled(y[1])",
    "loss[None] = y[0] + y[1]",
    "y[0] = y[1] * 3; all_of_it()",
    "y.fill(x[1] * y[2]); all_of_it()",
    "all_of_it(); y.fill(x[1]); y[2] += y[0]; all_of_it()",
    "y[0] = ti.sin(x[0]) + np.cos(x[1]) * math.pi; y[1] = ti.max(x[0], 0.1) / x[2]; all_of_it()",
    "y[0] = ti.select(x[0] > 0.1, x[0], x[1]) + ti.pow(x[1], y[0]) + ti.atan2(x[0], x[1]); all_of_it()",
    "y[0] = ti.clamp(x[0] * 9, 0.2, 3.0) + ti.mix(x[0], x[1], y[0]) + ti.smoothstep(0.0, 2.0, x[1]); all_of_it()",
    "y[1] = max(x[0], x[1]) + min(x[1], 9.0) + sum([x[0], x[2]]) + abs(-x[1]) + x[0] % 0.3; all_of_it()",
    "y[1] = round(x[0]) + int(x[1]) + x[0] // 0.5 + np.floor(x[2]) + x[1]; all_of_it()",
    "v[0] = v[1] * x[0]; all_of_it()",
    "v[0] += v[1]; v[1] *= x[2]; all_of_it()",
    "v[0] = ti.Vector([x[0], 2.0]); v[1] = [x[1], x[2] * y[0]]; all_of_it()",
    "v[0].x = x[1] ** 2; v[1][1] *= v[0].y; all_of_it()",
    "v[0].xy = [x[1], 0.5]; v[1].yx = v[0]; all_of_it()",
    "v.get_scalar_field(1).fill(x[0]); v.get_scalar_field(0)[1] = x[1]; all_of_it()",
    "v.fill(v[0] + 1.0); all_of_it()",
    "u = v[0].normalized() * v[1].norm() + v[0].dot(v[1]) + v[0].cross(v[1]); v[1] = u; all_of_it()",
    "u = v[0]; v[0] = [x[0], x[1]]; v[1] = u; all_of_it()",
    "m[None] = m[None] @ m[None].transpose() * x[0]; all_of_it()",
    "m[None] = m[None].inverse() * m[None].determinant() + m[None].trace(); all_of_it()",
    "m[None][0, 1] = m[None].sum() * x[1]; all_of_it()",
    "m[None] = ti.Matrix([[x[0], 1.0], [2.0, x[1]]]) + v[0].outer_product(v[1]); all_of_it()",
    "m[None] = rotated(v[0] * x[2], x[0]); all_of_it()",
    "v[0] = centre(x[1]) + ti.sin(v[1]) + ti.normalize(v[0]); all_of_it()",
    "v[0] = ti.max(v[0], v[1]) + ti.reflect(v[0], ti.Vector([0.6, 0.8])); y[0] = ti.length(v[1]); all_of_it()",
    "s[0].mass = x[0] * s[1].mass; s[1].pos = s[0].pos * x[1]; s[0].pos.x *= 2; all_of_it()",
    "b = body(x[1]); y[0] = b.mass; v[0] = b.pos * b.n; all_of_it()",
    "take(body(y[0]), v[0] * x[1])",
    "take(s[0], centre(s[1].mass)); take(dict(mass=x[0], pos=[x[1], 1.0], n=2), [x[2], 0.3])",
    "a = x[0]\nfor i in range(3):\n    a = a * y[i] + norm2()\n    y[i] = a\nall_of_it()",
    "ti.ad.checkpoint(lambda t: (scaled(norm2() * y[t]), x.fill(y[2] * 0.5)), 3, progress=False); squares()",
    "a = y[1] * 2\nti.ad.checkpoint(lambda t: scaled(a * x[t]), 3, progress=False)",
]


def differences(world: World, program: str, along: list[Any]) -> tuple[float, float]:
    def at(h: float) -> float:
        world.start(h, along)
        world.run(program)
        return world.loss.to_numpy().item()

    h = 1e-4
    wide, narrow = [(at(step) - at(-step)) / (2 * step) for step in (h, h / 2)]
    return (4 * narrow - wide) / 3, abs(wide - narrow) + 1e-8


def directions(world: World) -> list[Any]:
    rng = np.random.default_rng(5)
    return [rng.standard_normal(field.shape + field.element) for field in world.fields]


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_interface_agrees_with_differences(program: str) -> None:
    world = World()
    along = directions(world)
    expected, allowed = differences(world, program, along)
    found: dict[str, float] = {}

    def dot(gradients: Any) -> float:
        return sum(float(np.vdot(g, d)) for g, d in zip(gradients, along, strict=True))

    # What no launch has used simply begins with what Python writes; here the derivative is by what it held before.
    first = "pass" if program.startswith("x[1] = x[1]") else "all_of_it(); squares()"
    whole = f"{first}\n{program}"
    if first != "pass":
        expected, allowed = differences(world, whole, along)
    world.start()
    with ti.ad.Tape(world.loss):
        world.run(whole)
    found["tape"] = dot([f.grad.to_numpy() for f in world.fields])
    world.start()
    found["grad"] = dot(ti.ad.grad(lambda: world.run(whole), wrt=world.fields, loss=world.loss)())
    world.start()
    with ti.ad.FwdMode(loss=world.loss, param=world.fields, seed=along):
        world.run(whole)
    found["forward mode"] = float(world.loss.dual.to_numpy())
    world.start()
    product = ti.ad.jvp(lambda: world.run(whole), wrt=world.fields, loss=world.loss)(along)[1]
    found["jvp"] = float(product)
    for name, value in found.items():
        assert value == pytest.approx(expected, abs=10 * allowed + 1e-7 * abs(expected)), name


@pytest.mark.parametrize("program", [p for p in PROGRAMS if "checkpoint" not in p])
def test_second_order(program: str) -> None:
    world = World()
    along = directions(world)
    whole = f"all_of_it(); squares()\n{program}"

    def gradient(h: float) -> Any:
        world.start(h, along)
        return np.concatenate(
            [np.ravel(g) for g in ti.ad.grad(lambda: world.run(whole), wrt=world.fields, loss=world.loss)()]
        )

    h = 1e-5
    wanted = (gradient(h) - gradient(-h)) / (2 * h)
    world.start()
    found = ti.ad.hvp(lambda: world.run(whole), wrt=world.fields, loss=world.loss)(along)
    np.testing.assert_allclose(np.concatenate([np.ravel(f) for f in found]), wanted, rtol=1e-5, atol=1e-5)


def test_what_a_whole_field_begins_with_and_what_is_looked_at() -> None:
    world = World()
    for look in ("pass", "repr(x[1]); f'{x[1]:.2f}'; '%.2f' % x[1]; x[1] > 2; hash(x[1]); math.isnan(x[1]); str(x)"):
        world.start()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with ti.ad.Tape(world.loss):
                world.run(f"{look}; x.fill(0.5); scaled(0.1 + 0.2); squares(); {look}; x[1] = 0.7; squares()")
        assert world.x.grad.to_numpy().tolist() == pytest.approx([2.3, 1.3, 2.3]), look


# ---- plain numbers that come back


TAKEN_OUT = [
    "scaled(math.sin(x[1]))",
    "y[0] = float(x[1]) * 2; all_of_it()",
    "y.from_numpy(y.to_numpy() * 3); all_of_it()",
    "y.from_numpy(np.array([x[0], x[1], 1.0])); all_of_it()",
    "y[1] = np.asarray(x[1]).item(); all_of_it()",
    "y[1] = x.numpy_view()[1]; all_of_it()",
    "y[1] = float(np.ones(2).dot(np.full(2, x[0]))); all_of_it()",
    "v[0] = ti.Vector(np.asarray(v[1])); all_of_it()",
    "v[0] = ti.Vector([float(x[0]), 1.0]); all_of_it()",
    "v[0] = ti.Vector([float(x[0]), x[1]]); all_of_it()",
    "y[1] = math.exp(norm2()); all_of_it()",
    "y[1] = math.hypot(x[0], 2.0) * x[2]; all_of_it()",
    "y.fill(complex(x[1]).real); all_of_it()",
    "y[0] = float('%r' % float(x[1])); all_of_it()",
]


@pytest.mark.parametrize("program", TAKEN_OUT)
def test_a_plain_number_that_comes_back_is_reported_once_with_both_lines(program: str) -> None:
    world = World()
    text = f"squares()\n{program}\n{program}\n"
    for interface in ("tape", "forward mode", "grad", "jvp"):
        world.start()
        along = [np.ones(field.shape + field.element) for field in world.fields]
        with warnings.catch_warnings(record=True) as reported:
            warnings.simplefilter("always")
            if interface == "tape":
                with ti.ad.Tape(world.loss):
                    world.run(text)
            elif interface == "forward mode":
                with ti.ad.FwdMode(loss=world.loss, param=world.fields, seed=along):
                    world.run(text)
            elif interface == "grad":
                ti.ad.grad(lambda: world.run(text), wrt=world.fields, loss=world.loss)()
            else:
                ti.ad.jvp(lambda: world.run(text), wrt=world.fields, loss=world.loss)(along)
        assert len(reported) == 1, interface
        message = str(reported[0].message)
        assert "its derivative is lost" in message
        assert message.count("<program>, line 2") == 2
    ti.init(arch=ti.cpu, default_fp=ti.f64, debug=True)
    world = World()
    world.start()
    with pytest.raises(DifferentiationError, match="its derivative is lost"), ti.ad.Tape(world.loss, validation=True):
        world.run(program)


HARMLESS = [
    "log = [float(x[1])]; x[1] = 5.0; y[0] = 3",
    "log = [float(x[1])]; scaled(0.1)",
    "dt = 0.5 * 0.1; log = [float(x[1])]; scaled(dt)",
    "log = x.to_numpy().sum(); scaled(0.25); x[0] *= 2.0; y.fill(0)",
    "n = int(x[1]); scaled(x[n]); scaled(round(x[0], 1) + 0.0)",
    "ti.ad.no_grad(lambda a: None)(x[1]); scaled(x[1] * 1e-3)",
]


@pytest.mark.parametrize("program", HARMLESS)
def test_literals_and_older_numbers_do_not_come_from_there(program: str) -> None:
    world = World()
    world.start()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with ti.ad.Tape(world.loss):
            world.run(f"squares(); {program}; squares()")


def test_a_number_that_goes_into_a_custom_function_is_reported() -> None:
    world = World()
    world.start()

    @ti.ad.grad_replaced
    def inside(a: Any) -> Any:
        world.scaled(a)
        return world.x[0]

    @ti.ad.grad_for(inside)
    def inside_gradient(a: Any) -> None:
        world.scaled.grad(a)

    with pytest.warns(UserWarning, match="goes into 'inside', whose custom VJP"), ti.ad.Tape(world.loss):
        inside(world.x[1])
    with pytest.warns(UserWarning, match="its derivative is lost"), ti.ad.Tape(world.loss):
        world.scaled(inside(0.5))
    held: list[Any] = []

    @ti.ad.grad_replaced
    def from_outside(write: bool) -> None:
        if write:
            world.y[0] = held[0]
        else:
            world.scaled(held[0])

    @ti.ad.grad_for(from_outside)
    def from_outside_gradient(write: bool) -> None:
        pass

    for write in (True, False):
        with pytest.warns(UserWarning, match="goes into 'from_outside', whose custom VJP"), ti.ad.Tape(world.loss):
            held[:] = [world.x[1] * 2]
            from_outside(write)


def test_numbers_of_other_steps_are_refused() -> None:
    world, held = World(), [0.5]
    world.start()

    def step(t: int) -> None:
        world.scaled(held[0])
        held[0] = world.x[t] * 0.5

    with pytest.raises(DifferentiationError, match="another recording"), ti.ad.Tape(world.loss):
        ti.ad.checkpoint(step, 3, progress=False)


def test_numbers_of_an_earlier_tape_are_constants() -> None:
    world = World()
    world.start()
    with ti.ad.Tape(world.loss):
        world.squares()
        held = world.norm2()
    with ti.ad.Tape(world.loss):
        world.scaled(held * 2)
    assert world.x.grad.to_numpy().tolist() == pytest.approx([2 * float(held)] * 3)


# ---- a number like any other


def numbers() -> tuple[World, Any]:
    world = World()
    world.start()
    return world, world.x[1]


def test_it_is_a_float_to_everything_that_looks() -> None:
    world, plain = numbers()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with ti.ad.Tape(world.loss):
            x = world.x[1]
            world.squares()
            assert type(x) is Traced
            assert isinstance(x, float) and isinstance(x, (int, float)) and isinstance(x, Real)
            assert repr(x) == repr(plain) and str(x) == str(plain) and f"{x:8.3e}" == f"{plain:8.3e}"
            assert "%.3f|%s" % (x, x) == "%.3f|%s" % (plain, plain)  # noqa: UP031
            assert x == plain and plain == x and hash(x) == hash(plain) and {plain: 1}[x] == 1
            assert x != 0 and x < 5 and 5 > x >= 0.0 and bool(x) and x != "a" and x != None  # noqa: E711
            assert int(x) == int(plain) and round(x, 2) == round(plain, 2) and math.floor(x) == math.floor(plain)
            assert divmod(x, 0.3) == divmod(plain, 0.3) and x // 0.1 == plain // 0.1
            assert x == pytest.approx(plain) and np.isfinite(x) and not math.isnan(x)
            assert sorted([x, 0.0, 9.0]) == [0.0, plain, 9.0]
            assert "yes" if x else "no"
            for value in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy([x])[0]):
                assert value == plain
            assert type(pickle.loads(pickle.dumps(x))) is float
            with pytest.raises(AttributeError, match="'float' object has no attribute 'shapes'"):
                _ = x.shapes
    assert json.loads(json.dumps(float(x))) == json.loads(json.dumps(x, default=float)) == plain
    with pytest.raises(TypeError, match=r"write float\(.* is not JSON serializable"):
        json.dumps(x)  # whose C code asks for a subclass of float
    assert np.array([x, 1.0]).dtype == np.float64
    assert Decimal(float(x)) == Decimal(plain)
    assert x.is_integer() is False and x.as_integer_ratio() == plain.as_integer_ratio() and x.hex() == plain.hex()


def test_errors_are_those_of_floats() -> None:
    world, _ = numbers()
    with ti.ad.Tape(world.loss):
        x = world.x[1]
        with pytest.raises(ZeroDivisionError):
            x / (x - x)
        with pytest.raises(TypeError):
            x + "a"
        with pytest.raises(TypeError):
            [1, 2][x]
        with pytest.raises(TypeError):
            _ = [1] * x
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert isinstance((-x) ** 0.5, complex)
            assert math.isnan(np.sqrt(-x))


def test_afterwards_it_is_a_float_and_holds_nothing() -> None:
    world, _ = numbers()
    held: list[Any] = []
    gc.collect()
    gc.disable()
    try:
        tape = ti.ad.Tape(world.loss)
        with tape:
            for _ in range(1000):
                held.append(world.x[1] * 2 + world.norm2())
                held.append(world.v[0])
        gone = weakref.ref(tape)
        del tape
        assert gone() is None
        memory = weakref.ref(world.x.memory)
        number = held[-2]
        world.__dict__.clear()
        ti.reset()
        gc.collect()
        assert memory() is None
    finally:
        gc.enable()
    assert type(number + 1) is float and type(ti.sin(number)) is float and type(number * number) is float
    assert held[-1].norm() == pytest.approx(float(np.linalg.norm(held[-1].to_numpy())))
    assert held[-1].values.dtype == object or (held[-1] * 2).values.dtype == np.float64


def test_a_template_argument_is_no_place_for_it() -> None:
    world, _ = numbers()

    @ti.kernel
    def static(k: ti.template()):
        for i in world.x:
            world.loss[None] += k * world.x[i]

    with pytest.raises(DifferentiationError, match="template argument"), ti.ad.Tape(world.loss):
        static(world.x[1])
    with ti.ad.Tape(world.loss):
        held = world.x[1]
        static(2.0)
    static(held)  # a float like any other


def test_a_captured_number_is_refused() -> None:
    world, _ = numbers()

    def program() -> None:
        k = world.x[1]

        @ti.kernel
        def captures():
            for i in world.x:
                world.loss[None] += k * world.x[i]

        captures()

    with pytest.raises(DifferentiationError, match="captures it"), ti.ad.Tape(world.loss):
        program()
    program()


# ---- the table of rules


def _points(name: str) -> list[tuple[float, ...]]:
    if name in ("arccosh",):
        return [(1.7,), (2.3,)]
    if name in ("arcsin", "arccos", "arctanh"):
        return [(0.3,), (-0.6,)]
    return [(0.7,), (1.3,)]


@pytest.mark.parametrize("name", sorted(RULES))
def test_rules_against_differences(name: str) -> None:
    rule = RULES[name]
    ufunc: Callable[..., Any] = getattr(np, name)
    points = _points(name) if ufunc.nin == 1 else [(0.7, 1.3), (1.9, 0.6), (1.2, 2.5)]
    for point in points:
        value = rule.value(*point)
        assert value == pytest.approx(float(ufunc(*point)), rel=1e-14)
        if rule.rule is None:
            continue
        slopes = rule.adjoints(Dual(1.0), Dual(value), *map(Dual, point))
        for k, slope in enumerate(slopes):

            def at(h: float, k: int = k, point: tuple[float, ...] = point) -> Dual:
                moved = [p + h * (j == k) for j, p in enumerate(point)]
                return rule.of(*[Dual(p, 1.0 if j == k else 0.0) for j, p in enumerate(moved)])

            h = 1e-5
            assert slope.value == pytest.approx((at(h).value - at(-h).value) / (2 * h), rel=1e-7, abs=1e-7)
            assert at(0.0).tangent == pytest.approx(slope.value)
            moving = [Dual(p, 1.0 if j == k else 0.0) for j, p in enumerate(point)]
            second = rule.adjoints(Dual(1.0), Dual(value, slope.value), *moving)[k]
            assert second.tangent == pytest.approx((at(h).tangent - at(-h).tangent) / (2 * h), rel=1e-6, abs=1e-6)
