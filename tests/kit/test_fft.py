"""`ti.fft`: NumPy's transforms, their adjoints, and Poisson's equation."""

import math
from typing import Any

import numpy as np
import pytest
import scipy.fft
from hypothesis import given, settings
from hypothesis import strategies as st

import tinote as ti
from tests.lang.test_portable import numbers, played
from tinote.errors import FieldError
from tinote.lang.capture.portable import portable

#: Beside each other: the passes' radices, matrices of lines, convolutions (17, 34), lengths of 1, odd and even.
SHAPES = [
    (1,), (2,), (13,), (17,), (256,), (8, 6), (5, 7), (34, 4), (2, 3, 4, 5),
]  # fmt: skip
#: Of the greatest number: an FFT of n numbers rounds log n times.
TOLERANCE = {ti.f32: 1e-6, ti.f64: 2e-15}
COMPLEX = {ti.f32: np.complex64, ti.f64: np.complex128}


def complex_field(shape: Any, dtype: Any, values: Any = None, **shadows: Any) -> Any:
    field = ti.Vector.field(2, dtype, shape=shape, **shadows)
    if values is not None:
        field.from_numpy(np.stack([values.real, values.imag], -1))
    return field


def numbers_of(field: Any) -> Any:
    parts = field.to_numpy()
    return parts[..., 0] + 1j * parts[..., 1]


def random_numbers(shape: Any, dtype: Any, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(COMPLEX[dtype])


def half_of(shape: Any, axis: int) -> tuple[int, ...]:
    half = list(shape)
    half[axis] = shape[axis] // 2 + 1
    return tuple(half)


def error_of(found: Any, expected: Any) -> float:
    return float(np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-30))


def require_numpys_transforms(shape: tuple[int, ...], axes: tuple[int, ...], dtype: Any) -> None:
    given = random_numbers(shape, dtype)
    x, y = complex_field(shape, dtype, given), complex_field(shape, dtype)
    transform = ti.fft.Transform(x, y, axes)
    transform.forward()
    assert error_of(numbers_of(y), scipy.fft.fftn(given.astype(complex), axes=axes)) < TOLERANCE[dtype]
    assert np.array_equal(numbers_of(x), given)
    x.fill(0)
    transform.inverse()
    assert error_of(numbers_of(x), given) < TOLERANCE[dtype]

    half = half_of(shape, axes[-1])
    reals, waves = ti.field(dtype, shape=shape), complex_field(half, dtype)
    reals.from_numpy(given.real.copy())
    transform = ti.fft.Transform(reals, waves, axes)
    transform.forward()
    assert error_of(numbers_of(waves), scipy.fft.rfftn(given.real.astype(float), axes=axes)) < TOLERANCE[dtype]
    any_waves = random_numbers(half, dtype, 1)  # the inverse takes parts that no real numbers have as 0
    waves.from_numpy(np.stack([any_waves.real, any_waves.imag], -1))
    transform.inverse()
    lengths = [shape[axis] for axis in axes]
    expected = scipy.fft.irfftn(any_waves.astype(complex), s=lengths, axes=axes)
    assert error_of(reals.to_numpy(), expected) < TOLERANCE[dtype]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_numpys_transforms(shape: tuple[int, ...]) -> None:
    ti.init(arch=ti.cpu)
    require_numpys_transforms(shape, tuple(range(len(shape))), ti.f64)
    if shape in [(256,), (34, 4)]:
        require_numpys_transforms(shape, (len(shape) - 1, 0)[: len(shape)], ti.f32)


@settings(max_examples=5, deadline=None)
@given(st.data())
def test_any_shape_and_axes(data: Any) -> None:
    ti.init(arch=ti.cpu)
    shape = data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=2).map(tuple))
    axes = data.draw(st.permutations(range(len(shape))).flatmap(lambda p: st.integers(1, len(p)).map(lambda n: p[:n])))
    require_numpys_transforms(shape, tuple(axes), ti.f64)


def test_python_gives_the_same() -> None:
    found = []
    for arch in (ti.cpu, ti.python):
        ti.init(arch=arch)
        x, y = ti.field(ti.f64, shape=(6, 8)), complex_field((6, 5), ti.f64)
        x.from_numpy(random_numbers((6, 8), ti.f64).real)
        ti.fft.Transform(x, y).forward()
        found.append(numbers_of(y))
    assert error_of(*found) < TOLERANCE[ti.f64]


def test_a_field_of_any_layout_and_threads() -> None:
    found = []
    for threads in (1, 2):
        ti.init(arch=ti.cpu, num_threads=threads)
        x = ti.Vector.field(2, ti.f32)
        ti.root.dense(ti.ij, (8, 8)).dense(ti.ij, (4, 8)).place(x)
        y = ti.Vector.field(2, ti.f32, shape=(32, 64), layout=ti.Layout.SOA)
        given = random_numbers((32, 64), ti.f32)
        x.from_numpy(np.stack([given.real, given.imag], -1))
        ti.fft.Transform(x, y).forward()
        found.append(numbers_of(y))
        assert error_of(found[-1], scipy.fft.fft2(given.astype(complex))) < TOLERANCE[ti.f32]
    assert np.array_equal(*found)


class Filtered:
    """A loss of x through a transform, a filter that is not linear, and an inverse."""

    def __init__(self, shape: tuple[int, ...], *, real: bool) -> None:
        ti.init(arch=ti.cpu, default_fp=ti.f64)
        shadows: Any = {"needs_grad": True, "needs_dual": True}
        half = half_of(shape, -1) if real else shape
        x, z = (
            ti.field(ti.f64, shape=shape, **shadows) if real else complex_field(shape, ti.f64, **shadows)
            for _ in range(2)
        )
        y = complex_field(half, ti.f64, **shadows)
        loss = ti.field(ti.f64, shape=(), **shadows)
        self.x, self.loss = x, loss
        self.there, self.back = ti.fft.Transform(x, y), ti.fft.Transform(z, y)

        @ti.kernel
        def bend():
            for k in ti.grouped(y):
                y[k] *= 1 + 0.1 * y[k].norm_sqr()

        @ti.kernel
        def measure():
            for i in ti.grouped(z):
                loss[None] += ti.sin(z[i]) if ti.static(real) else ti.sin(z[i][0]) + z[i][0] * z[i][1]

        self.bend, self.measure = bend, measure
        self.begin = np.random.default_rng(1).normal(size=x.to_numpy().shape)
        self.direction = np.random.default_rng(2).normal(size=self.begin.shape)
        x.from_numpy(self.begin)

    def run(self) -> None:
        for _ in range(2):
            self.there.forward()
            self.bend()
            self.back.inverse()
            self.measure()

    def gradient(self, at: Any) -> Any:
        self.x.from_numpy(at)
        with ti.ad.Tape(self.loss):
            self.run()
        return self.x.grad.to_numpy()

    def along(self, step: float = 1e-5) -> Any:
        """The difference of gradients along the direction."""
        ends = [self.gradient(self.begin + sign * step * self.direction) for sign in (1, -1)]
        self.x.from_numpy(self.begin)
        return (ends[0] - ends[1]) / (2 * step)


CASES = [((5,), True), ((4, 6), True), ((17,), False), ((4, 3), False)]


@pytest.mark.parametrize(("shape", "real"), CASES, ids=str)
def test_derivatives(shape: tuple[int, ...], real: bool) -> None:
    program = Filtered(shape, real=real)
    assert ti.ad.gradcheck(program.run, wrt=program.x, output=program.loss).ok
    gradient = program.gradient(program.begin)
    with ti.ad.FwdMode(program.loss, program.x, seed=program.direction):
        program.run()
    slope = (gradient * program.direction).sum()
    assert program.loss.dual[None] == pytest.approx(slope, rel=1e-10)
    product = ti.ad.hvp(program.run, wrt=program.x, output=program.loss)(program.direction)
    expected = program.along()
    assert error_of(product, expected) < 1e-6


def test_a_gradient_of_a_gradient_in_reverse() -> None:
    program = Filtered((4, 6), real=True)
    total = ti.field(ti.f64, shape=(), needs_grad=True)
    x, direction = program.x, ti.field(ti.f64, shape=(4, 6))
    direction.from_numpy(program.direction)

    @ti.kernel
    def project():
        for i in ti.grouped(x):
            total[None] += x.grad[i] * direction[i]

    with ti.ad.Tape(total):
        with ti.ad.Tape(program.loss):
            program.run()
        project()
    found = x.grad.to_numpy()
    assert error_of(found, program.along()) < 1e-6


def test_an_adjoint_keeps_no_numbers_of_its_transform() -> None:
    ti.init(arch=ti.cpu)
    x = ti.field(ti.f32, shape=1 << 18, needs_grad=True)
    y = complex_field((1 << 17) + 1, ti.f32, needs_grad=True)
    transform = ti.fft.Transform(x, y)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def measure():
        for k in y:
            loss[None] += y[k].norm_sqr() / y.shape[0]

    x.fill(1.0)
    with ti.ad.Tape(loss) as tape:
        for _ in range(3):
            transform.forward()
        measure()
    assert tape.copied_bytes < x.shape[0] * 4


def test_captured_transforms() -> None:
    ti.init(arch=ti.cpu)
    given = random_numbers((16, 12), ti.f32).real.copy()
    x, y = ti.field(ti.f32, shape=(16, 12)), complex_field((16, 7), ti.f32)
    x.from_numpy(given)
    transform = ti.fft.Transform(x, y)
    step = ti.capture(transform.forward)
    for factor in (1.0, 2.0, 3.0):
        x.from_numpy(given * factor)
        step()
        assert error_of(numbers_of(y), scipy.fft.rfft2(given * factor)) < TOLERANCE[ti.f32]


def test_transforms_in_a_page() -> None:
    ti.init(arch=ti.cpu)
    given = random_numbers((12, 5), ti.f32).real.copy()
    x, y = ti.field(ti.f32, shape=(12, 5)), complex_field((12, 3), ti.f32)
    x.from_numpy(given)
    transform = ti.fft.Transform(x, y)
    made = portable([("forward", transform.forward, ()), ("inverse", transform.inverse, ())], {"x": x, "y": y})
    assert made.refused == {}
    commands = [["call", "forward"], ["read", "y"], ["call", "inverse"], ["read", "x"]]
    _, waves, _, again = played(made.encode(), *commands)
    waves = numbers(waves, y.to_numpy())
    assert error_of(waves[..., 0] + 1j * waves[..., 1], scipy.fft.rfft2(given)) < TOLERANCE[ti.f32]
    assert error_of(numbers(again, given), given) < TOLERANCE[ti.f32]


@pytest.mark.parametrize("scheme", ["spectral", "differences"])
@pytest.mark.parametrize(("shape", "size"), [((15, 8), (2.0, 5.0)), ((4, 3, 6), 1.0)], ids=str)
def test_poissons_equation(scheme: str, shape: tuple[int, ...], size: Any) -> None:
    ti.init(arch=ti.cpu)
    f, u = (ti.field(ti.f64, shape=shape, needs_grad=True) for _ in range(2))
    expected = np.random.default_rng(0).normal(size=shape)
    sizes = np.broadcast_to(size, len(shape))
    if scheme == "differences":
        laplacian = sum(
            (np.roll(expected, 1, d) - 2 * expected + np.roll(expected, -1, d)) * (shape[d] / sizes[d]) ** 2
            for d in range(len(shape))
        )
    else:
        waves = np.meshgrid(
            *(2 * np.pi * np.fft.fftfreq(n, length / n) for n, length in zip(shape, sizes, strict=True)), indexing="ij"
        )
        laplacian = np.fft.ifftn(-sum(k**2 for k in waves) * np.fft.fftn(expected)).real
    equation = ti.fft.Poisson(f, u, size, scheme)
    f.from_numpy(laplacian + 7.0)  # its mean counts as 0
    equation.solve()
    assert error_of(u.to_numpy(), expected - expected.mean()) < 1e-12
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def measure():
        for i in ti.grouped(u):
            loss[None] += u[i] ** 3

    def run() -> None:
        equation.solve()
        measure()

    assert ti.ad.gradcheck(run, wrt=f, output=loss).ok


def test_waves_of_rows() -> None:
    ti.init(arch=ti.cpu)

    @ti.kernel
    def waves(i: int) -> int:
        return ti.fft.frequency(i, 7)

    assert [waves(i) for i in range(7)] == [int(k) for k in np.fft.fftfreq(7, 1 / 7)]


def real(*shape: int, dtype: Any = ti.f32) -> Any:
    return ti.field(dtype, shape=shape)


def pairs(*shape: int, dtype: Any = ti.f32) -> Any:
    return ti.Vector.field(2, dtype, shape=shape)


REFUSED = [
    (lambda: ti.fft.Transform(real(4), np.zeros(3)), "between two fields"),
    (lambda: ti.fft.Transform(real(4, dtype=ti.i32), pairs(3)), "of f32 or of f64, not of i32 and f32"),
    (lambda: ti.fft.Transform(real(4), pairs(3, dtype=ti.f64)), "of f32 or of f64, not of f32 and f64"),
    (lambda: ti.fft.Transform(real(4), real(4)), "complex numbers are vectors of two"),
    (lambda: ti.fft.Transform(ti.Vector.field(3, ti.f32, shape=4), pairs(4)), "complex numbers are vectors of two"),
    (lambda: ti.fft.Transform(real(4), pairs(4)), r"of shape \(4,\) has the shape \(3,\), not \(4,\)"),
    (lambda: ti.fft.Transform(pairs(4), pairs(3)), r"of shape \(4,\) has the shape \(4,\), not \(3,\)"),
    (lambda: ti.fft.Transform(pairs(4, 4), pairs(4, 4), 2), "are not axes of a field with 2 dimensions"),
    (lambda: ti.fft.Transform(pairs(4, 4), pairs(4, 4), (0, -2)), "each once"),
    (lambda: ti.fft.Transform(pairs(4, 4), pairs(4, 4), ()), "each once"),
    (lambda: ti.fft.Transform(pairs(), pairs()), "each once"),
    (lambda: ti.fft.Poisson(real(4), real(5)), "two scalar fields with one shape"),
    (lambda: ti.fft.Poisson(pairs(4), pairs(4)), "two scalar fields with one shape"),
    (lambda: ti.fft.Poisson(real(4), real(4), -1.0), "positive lengths"),
    (lambda: ti.fft.Poisson(real(4), real(4), math.nan), "positive lengths"),
    (lambda: ti.fft.Poisson(real(4), real(4), (1.0, 2.0)), "positive lengths"),
    (lambda: ti.fft.Poisson(real(4), real(4), scheme="difference"), "did you mean 'differences'"),
]


@pytest.mark.parametrize(("attempt", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_does_not_fit_is_refused(attempt: Any, message: str) -> None:
    ti.init(arch=ti.cpu)
    with pytest.raises(FieldError, match=message) as caught:
        attempt()
    assert caught.value.span.file == __file__
