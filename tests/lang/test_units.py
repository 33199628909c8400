"""Units: kernels that agree with their units compile to the same code, others are refused by line; pint has the same
algebra.
"""

import pickle
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinote as ti
from tinote.errors import FieldError, KernelTypeError
from tinote.ir.units import BASE, TABLE, Unit, parse

u = ti.units
N = 4

UNITS = st.dictionaries(st.sampled_from(BASE), st.fractions(-3, 3, max_denominator=4).filter(bool), max_size=4).map(
    Unit
)


@settings(max_examples=200, deadline=None)
@given(UNITS, UNITS, st.integers(-3, 3), st.sampled_from([1, 60, Fraction(1, 1000), Fraction(5, 18)]))
def test_units_are_a_vector_space_and_are_read_as_they_are_written(a: Unit, b: Unit, n: int, factor: Any) -> None:
    assert a * b == b * a and a * b / b == a and a / a == u.rad
    assert (a * b) ** n == a**n * b**n and (a ** Fraction(1, 2)) ** 2 == a and a**0 == u.rad
    for unit in (a, a * b, factor * a):
        assert parse(repr(unit)) == unit and hash(parse(repr(unit))) == hash(unit)
        assert pickle.loads(pickle.dumps(unit)) == unit


def test_units_have_the_dimensions_and_sizes_that_pint_has() -> None:
    pint = pytest.importorskip("pint")
    registry = pint.UnitRegistry()
    texts = [
        *(name for name in TABLE if name not in ("lm", "lx")),
        "km/h",
        "kg m^2/s^2",
        "mm",
        "GPa",
        "kN/mm^2",
        "mol/L",
        "daN",
    ]
    for text in texts:
        ours = parse(text)
        theirs = registry.Quantity(1, text.replace("L", "liter").replace(" ", "*").replace("day", "d")).to_base_units()
        size = float(np.prod([float(base) ** float(n) for base, n in ours.powers.items() if isinstance(base, int)]))
        # Pint's mass is counted in kilograms, too, after `to_base_units`.
        assert size == pytest.approx(theirs.magnitude), text
        named = {
            "kilogram": "kg",
            "meter": "m",
            "second": "s",
            "ampere": "A",
            "kelvin": "K",
            "mole": "mol",
            "candela": "cd",
        }
        wanted = {named[name]: n for name, n in theirs.unit_items() if name != "radian"}
        assert {base: float(n) for base, n in ours.powers.items() if isinstance(base, str)} == pytest.approx(wanted), (
            text
        )


@pytest.mark.parametrize(
    "text, shown",
    [
        ("kg m^2/s^2", "J"),
        ("m s**-2", "m/s^2"),
        ("J/(kg K)", "m^2/s^2/K"),
        ("J/kg K", "m^2 K/s^2"),
        ("(m/s)^2", "m^2/s^2"),
        ("m^(1/2)", "m^(1/2)"),
        ("µm", "um"),
        ("1000 m", "km"),
        ("kΩ", "kohm"),
        ("0.001", "1/1000"),
        ("60 s", "min"),
    ],
)
def test_units_are_read(text: str, shown: str) -> None:
    assert repr(u.unit(text)) == shown


@pytest.mark.parametrize("text", ["", "m^", "m//s", "(m", "m)", "^2", "parsec", "m^1.5", "m/", "kmin", "$"])
def test_what_is_no_unit(text: str) -> None:
    with pytest.raises(ValueError, match="is not a unit"):
        u.unit(text)


def test_attributes_of_units() -> None:
    assert u.km == 1000 * u.m and u.GPa == 10**9 * u.Pa and u.h == 60 * u.min
    with pytest.raises(AttributeError, match="metre"):
        _ = u.metre
    with pytest.raises(ValueError, match="prime factors"):
        _ = 1_000_003 * u.m
    with pytest.raises(ValueError, match="positive"):
        _ = -1 * u.m


# ---- in kernels


def fields() -> Any:
    x = ti.field(ti.f64[u.m], shape=N, name="x", needs_grad=True)
    v = ti.Vector.field(2, ti.f64[u.m / u.s], shape=N, name="v")
    n = ti.field(ti.f64, shape=N, name="n")
    energy = ti.field(ti.f64[u.J], shape=(), name="energy", needs_grad=True)
    return x, v, n, energy


def test_units_leave_machine_code_as_it_is() -> None:
    def made(length: Any, speed: Any, time: Any, acceleration: Any) -> Any:
        x = ti.field(length, shape=N, name="x")
        v = ti.Vector.field(2, speed, shape=N, name="v")

        @ti.kernel
        def step(dt: time) -> length:
            g: acceleration = -9.81
            total = 0.0
            for i in x:
                old = x[i]
                x[i] += dt * v[i].norm() + g * dt**2 / 2
                ti.atomic_max(x[i], old)
            ti.loop_config(serialize=True)
            for i in range(N):
                total += ti.sqrt(x[i] * x[i])
            return total

        step(0.5)
        return str(step.instances[0].llvm())

    plain = made(*[ti.f64] * 4)
    assert made(ti.f64[u.m], ti.f64[u.m / u.s], ti.f64[u.s], ti.f64[u.m / u.s**2]) == plain


RIGHT = [
    "x[i] = 2.0 * x[i] + n[i] * x[i] + 0.0",
    "x[i] += dt * v[i][0]",
    "x[i] = ti.sqrt(x[i] ** 2 + (dt * v[i].norm()) ** 2)",
    "n[i] = ti.sin(x[i] / x[0]) + ti.exp(n[i])",
    "n[i] = ti.atan2(v[i].x, v[i].y) + ti.floor(x[i] / x[0])",
    "if x[i] > x[0] and n[i] < 3.0 and x[i] != 0: n[i] = 1.0",
    "x[i] = ti.min(x[i], x[0], ti.math.inf) if n[i] > 0 else 0.0",
    "a: ti.f64[u.m] = 3.0; x[i] = a",
    "x[i] = ti.f64[u.m](3.0) + metre(2.0)",
    "x[i] = half(x[i])",
    "w = v[i] * 2.0; w += v[i]; x[i] = w.dot(v[0]) * dt * dt / x[0]",
    "w = ti.Vector([0.0, 0.0]); w += v[i]; x[i] = w.x * dt",
    "k = ti.cast(x[i] / x[0], ti.i32); n[k % 4] += k",
    "s = 0.0\nfor j in range(4): s += x[j] * x[i]\nx[i] = ti.sqrt(s)",
    "s = x[i]\nwhile s < x[0] * 4: s = s + x[0]\nx[i] = s",
    "x[i] = (x[i] ** 3) ** (1 / 3)",
    "energy[None] += mass * v[i].norm_sqr() / 2",
    "x[i] -= 0.1 * x.grad[i] / x.grad[0] * x[0]",
    "x[i] = ti.select(n[i] > 0, x[i], -x[i]) % x[0]",
    "M = ti.Matrix([[1.0, 0.0], [0.0, 2.0]]); v[i] = M @ v[i]",
    "x[i] = ti.f64[u.m](ti.random(ti.f64))",
]
WRONG = [
    ("x[i] = x[i] + v[i][0]", "m and m/s cannot be added"),
    ("x[i] = x[i] - 1.0", "m and a number without unit cannot be subtracted"),
    ("x[i] = n[i]", "'x' holds m, and gets a number without unit"),
    ("x[i] += v[i].x", "'x' holds m, and gets m/s"),
    ("n[i] = ti.sin(x[i])", "an operand of `sin` is m, and must be a number without unit"),
    ("n[i] = ti.exp(-x[i] ** 2)", "an operand of `exp` is m^2"),
    ("n[i] = ti.floor(x[i])", "an operand of `floor` is m"),
    ("n[ti.cast(x[i], ti.i32)] = 0", "what becomes an integer is m"),
    ("if x[i] > 1.0: n[i] = 0.0", "m and a number without unit cannot be compared"),
    ("x[i] = ti.max(x[i], dt)", "m and s cannot be compared"),
    ("x[i] = ti.sqrt(x[i])", "'x' holds m, and gets m^(1/2)"),
    ("x[i] = x[i] if n[i] > 0 else dt", "m and s cannot be alternatives"),
    ("w = ti.Vector([x[i], dt]); n[i] = w.x / x[i]", "m and s cannot be components of one vector"),
    ("a: ti.f64[u.s] = x[i]; n[i] = 0.0 * a / dt", "this is annotated with s, and is m"),
    ("s = x[i]\ns = s * s\nn[i] = 0.0", "'s' holds m, and gets m^2"),
    ("s = 0.0\nfor j in range(4): s += x[j]\nn[i] = s", "'n' holds a number without unit, and gets m"),
    ("x[i] = half(x[i] ** 2)", "this is annotated with m, and is m^2"),
    ("x[i] = x[i] ** n[i]", "an operand of `pow` is m"),
    ("energy[None] += mass * v[i].norm() / 2", "'energy' holds J, and gets kg m/s"),
    ("x[i] = ti.atan2(x[i], dt) * x[0]", "m and s cannot be coordinates of one point"),
    ("x[i] -= x.grad[i] * n[i] + v.x", None),
]


@ti.func
def half(a: ti.f64[u.m]) -> ti.f64[u.m]:
    return a / 2


metre = ti.f64[u.m]


def kernel_of(statements: str, tmp_path: Path) -> Any:
    """A kernel with these statements in a loop."""
    lines = [part for line in statements.splitlines() for part in line.split("; ")]
    body = "\n".join([f"            {line}" for line in lines])
    source = (
        "import tinote as ti\nfrom tests.lang.test_units import fields, half, metre, u\n"
        "def make():\n    x, v, n, energy = fields()\n    @ti.kernel\n"
        f"    def work(dt: ti.f64[u.s], mass: ti.f64[u.kg]):\n        for i in range(4):\n{body}\n"
        "    return x, v, n, energy, work\n"
    )
    path = tmp_path / "program.py"
    path.write_text(source)
    scope: dict[str, Any] = {"__name__": "program"}
    exec(compile(source, str(path), "exec"), scope)
    return scope["make"]()


@pytest.mark.parametrize("statements", RIGHT)
def test_kernels_with_the_right_units(statements: str, tmp_path: Path) -> None:
    x, v, _, _, work = kernel_of(statements, tmp_path)
    x.fill(2.0)
    v.fill(1.0)
    work(0.5, 1.0)


@pytest.mark.parametrize("statements, message", [row for row in WRONG if row[1]])
def test_kernels_with_the_wrong_units_are_refused_by_line(statements: str, message: str, tmp_path: Path) -> None:
    *_, work = kernel_of(statements, tmp_path)
    with pytest.raises(KernelTypeError) as caught:
        work(0.5, 1.0)
    assert message in str(caught.value)
    assert "program.py, line " in str(caught.value) or "test_units.py, line" in str(caught.value)


def test_results_have_the_unit_of_their_annotation() -> None:
    x, v, _, _ = fields()

    @ti.kernel
    def longest() -> ti.f64[u.m]:
        found = 0.0
        for i in range(N):
            ti.atomic_max(found, x[i])
        return found

    @ti.kernel
    def speed(at: ti.types.vector(2, ti.f64[u.m])) -> ti.types.vector(2, ti.f64[u.m / u.s]):
        return v[0] + at / ti.f64[u.s](2.0)

    x.fill(3.0)
    assert longest() == 3.0
    assert speed(ti.Vector([1.0, 2.0])) == ti.Vector([0.5, 1.0])

    @ti.kernel
    def without() -> ti.f64:
        return x[0]

    @ti.kernel
    def other() -> ti.f64[u.s]:
        return x[0]

    with pytest.raises(KernelTypeError, match=r"`without` returns m(.|\n)*annotate the result with its unit"):
        without()
    with pytest.raises(KernelTypeError, match=r"annotated with s, and is m"):
        other()


def test_gradients_have_derived_units() -> None:
    x, _, _, energy = fields()

    @ti.kernel
    def store(k: ti.f64[u.N / u.m]):
        for i in x:
            energy[None] += k * x[i] ** 2 / 2

    @ti.kernel
    def descend(rate: ti.f64[u.m / u.N]):
        for i in x:
            x[i] -= rate * x.grad[i]

    @ti.kernel
    def wrong(rate: ti.f64[u.m / u.N]):
        for i in x:
            x[i] -= rate * x.grad[i]
            energy[None] += x.grad[i] * rate * ti.f64[u.J / u.s](1.0)

    x.fill(2.0)
    with ti.ad.Tape(energy):
        store(3.0)
    assert x.grad.unit == u.N and energy.grad.unit == u.rad
    np.testing.assert_array_equal(x.grad.to_numpy(), 6.0)
    descend(0.5)
    assert x[0] == -1.0
    with pytest.raises(KernelTypeError, match=r"'energy' holds J, and gets"):
        wrong(1.0)


def test_functional_derivatives_keep_units() -> None:
    x = ti.field(ti.f64[u.m], shape=N, needs_grad=True)
    energy = ti.field(ti.f64[u.J], shape=(), needs_grad=True)

    @ti.kernel
    def store(k: ti.f64[u.N / u.m], at: ti.template()):
        for i in at:
            energy[None] += k * at[i] ** 2 / 2

    def total(k: float) -> None:
        store(k, x)

    x.fill(2.0)
    value, slope = ti.ad.value_and_grad(total, wrt=x, output=energy)(3.0)
    assert value == 24.0
    np.testing.assert_array_equal(slope, 6.0)


def test_fields_of_all_kinds_have_units() -> None:
    particle = ti.types.struct(mass=ti.f32[u.kg], x=ti.types.vector(2, ti.f32[u.m]))
    particles = particle.field(shape=3)
    assert particles.mass.unit == u.kg and particles.x.unit == u.m

    @ti.kernel
    def fall(g: ti.f32[u.m / u.s**2], t: ti.f32[u.s]) -> ti.f32[u.J]:
        total = 0.0
        for i in particles:
            particles[i].x.y -= g * t * t / 2
            total += particles[i].mass * g * particles[i].x.y
        return total

    particles.mass.fill(2.0)
    assert fall(10.0, 1.0) == -300.0
    sparse = ti.field(ti.f32[u.kg])
    ti.root.bitmasked(ti.i, 8).place(sparse)
    vectors = ti.types.vector(3, ti.f32[u.m]).field(shape=2)
    assert sparse.unit == u.kg and vectors.unit == u.m
    assert ti.field(ti.f32, shape=2).unit is None
    assert pickle.loads(pickle.dumps(vectors)).unit == u.m

    @ti.kernel
    def mix():
        for i in sparse:
            sparse[i] += vectors[0][0]

    with pytest.raises(KernelTypeError, match=r"'sparse' holds kg, and gets m"):
        mix()


@pytest.mark.parametrize(
    "make, kind, message",
    [
        (lambda: ti.f32[3], TypeError, "3 is not a unit"),
        (lambda: ti.i32[u.m], TypeError, "numbers of type i32 are counted, not measured"),
        (lambda: ti.ndarray(ti.f32[u.m], 3), FieldError, "which only fields, arguments, variables and results have"),
    ],
)
def test_what_has_no_unit(make: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message):
        make()


def test_the_kit_takes_fields_with_units() -> None:
    x = ti.Vector.field(2, ti.f64[u.m], shape=20, name="x")
    near = ti.field(ti.f64[u.m], shape=20)
    x.from_numpy(np.random.default_rng(0).uniform(0, 1, (20, 2)))
    grid = ti.spatial.CellGrid(x, 0.3, box=(1.0, None))
    grid.update()

    @ti.kernel
    def measure():
        for i in x:
            for j in grid.near(x[i]):
                near[i] += grid.displacement(x[i], x[j]).norm()

    measure()
    assert near.to_numpy().max() > 0
    y, v, a = (ti.field(ti.f64[unit], shape=3) for unit in (u.m, u.m / u.s, u.m / u.s**2))
    y.fill(1.0)

    @ti.kernel
    def accelerate(t: ti.f64[u.s]):
        for i in y:
            a[i] = -y[i] * ti.f64[1 / u.s**2](1.0)

    ode = ti.integrate.RungeKutta(accelerate, {y: v, v: a}, method="rk4")
    ode.step(0.0, 0.1)
    assert y[0] == pytest.approx(np.cos(0.1), abs=1e-6)


CACHED = """
import tinote as ti
ti.init(arch=ti.cpu)
u = ti.units
x = ti.field(ti.f64[u.UNIT], shape=4, name="x")
@ti.kernel
def step(dt: ti.f64[u.s]):
    for i in x:
        x[i] = x[i] * dt / ti.f64[u.s](1.0) + ti.f64[u.m](2.0)
step(1.0)
print(x[0])
"""


def test_code_of_an_earlier_process_was_made_for_the_same_units(tmp_path: Path) -> None:
    def run(unit: str) -> Any:
        program = tmp_path / "program.py"
        program.write_text(CACHED.replace("UNIT", unit))
        return subprocess.run(
            [sys.executable, str(program)],
            capture_output=True,
            text=True,
            env={"TINOTE_CACHE_DIR": str(tmp_path / "cache")},
        )

    assert run("m").stdout == run("m").stdout == "2.0\n"
    assert "cannot be added" in run("s").stderr


def test_a_program_without_units_loads_nothing_of_them() -> None:
    program = (
        "import sys, tinote as ti\nti.init(arch=ti.cpu)\nx = ti.field(ti.f32, shape=3)\n"
        "@ti.kernel\ndef f():\n    for i in x:\n        x[i] += 1\n"
    )
    check = "print('tinote.ir.units' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", program.partition("@ti")[0] + check], capture_output=True, text=True)
    assert found.stdout == "False\n", found.stderr
