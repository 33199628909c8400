"""Fast Fourier transforms of images, radix 2: bit reversal, butterflies in place, complex numbers as vectors; a
convolution as a product of spectra.
"""

import numpy as np
import pytest

import tinote as ti
from tinote import math as tm

vec2 = ti.types.vector(2, ti.f64)
complexes = ti.types.ndarray(dtype=vec2, ndim=2)


@ti.func
def reversed_bits(i, bits: ti.template()):
    """The lowest `bits` bits of `i` in the other order."""
    result = 0
    for k in ti.static(range(bits)):
        result |= ((i >> k) & 1) << (bits - 1 - k)
    return result


@ti.func
def swap(a: ti.template(), b: ti.template()):
    a, b = b, a


@ti.kernel
def reorder(x: complexes, bits: ti.template()):
    for i, j in x:
        k = reversed_bits(j, bits)
        if j < k:
            swap(x[i, j], x[i, k])


@ti.kernel
def butterflies(x: complexes, stage: ti.i32, sign: ti.f64):
    """Stage `stage` joins pairs that are 2**stage apart."""
    half = 1 << stage
    for i, t in ti.ndrange(x.shape[0], x.shape[1] // 2):
        k = t & (half - 1)
        low = ((t ^ k) << 1) | k
        twiddle = tm.cexp(vec2(0, sign * tm.pi * k / half))
        a, b = x[i, low], tm.cmul(twiddle, x[i, low + half])
        x[i, low], x[i, low + half] = a + b, a - b


@ti.kernel
def transpose(x: complexes, y: complexes):
    for i, j in x:
        y[j, i] = x[i, j]


@ti.kernel
def multiply(x: complexes, y: complexes, scale: ti.f64):
    for at in ti.grouped(x):
        x[at] = scale * tm.cmul(x[at], y[at])


def fft(x: ti.VectorNdarray, inverse: bool = False) -> None:
    """Transform every row, in place and without normalisation."""
    bits = x.shape[1].bit_length() - 1
    reorder(x, bits)
    for stage in range(bits):
        butterflies(x, stage, 1.0 if inverse else -1.0)


def fft2(x: ti.VectorNdarray, inverse: bool = False) -> ti.VectorNdarray:
    """The transform of both dimensions, in an array of its own."""
    turned = ti.Vector.ndarray(2, ti.f64, shape=x.shape[::-1])
    back = ti.Vector.ndarray(2, ti.f64, shape=x.shape)
    fft(x, inverse)
    transpose(x, turned)
    fft(turned, inverse)
    transpose(turned, back)
    return back


def array_of(z: np.ndarray) -> ti.VectorNdarray:
    """Complex numbers as an array of vectors of two."""
    found = ti.Vector.ndarray(2, ti.f64, shape=z.shape)
    found.from_numpy(np.stack([z.real, z.imag], -1))
    return found


def complex_of(x: ti.VectorNdarray) -> np.ndarray:
    return x.to_numpy() @ np.array([1, 1j])


@pytest.mark.parametrize("shape", [(1, 8), (16, 64), (32, 4)])
def test_fourier_transform(shape: tuple[int, int]) -> None:
    ti.init(default_fp=ti.f64)
    rng = np.random.default_rng(8)
    z = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    rows = array_of(z)
    fft(rows)
    np.testing.assert_allclose(complex_of(rows), np.fft.fft(z), atol=1e-12)
    spectrum = fft2(array_of(z))
    np.testing.assert_allclose(complex_of(spectrum), np.fft.fft2(z), atol=1e-11)
    np.testing.assert_allclose(complex_of(fft2(spectrum, inverse=True)) / z.size, z, atol=1e-13)
    # One instance of the butterflies serves every stage and direction; bit reversal has one for each length.
    assert len(butterflies.instances) == 1


def test_convolution_by_spectra() -> None:
    ti.init(default_fp=ti.f64)
    n = 16
    rng = np.random.default_rng(9)
    image, blur = rng.random((n, n)), np.zeros((n, n))
    blur[:3, :2] = rng.random((3, 2))
    a, b = fft2(array_of(image.astype(complex))), fft2(array_of(blur.astype(complex)))
    multiply(a, b, 1 / n**2)
    found = complex_of(fft2(a, inverse=True))
    wanted = sum(blur[i, j] * np.roll(image, (i, j), (0, 1)) for i in range(3) for j in range(2))
    np.testing.assert_allclose(found.real, wanted, atol=1e-13)
    np.testing.assert_allclose(found.imag, 0, atol=1e-13)
