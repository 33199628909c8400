"""Fast Fourier transforms of fields: `ti.fft`.

    spectrum = ti.fft.Transform(x, y)
    spectrum.forward()  # y is the transform of x
    spectrum.inverse()  # x is the field whose transform is y

An axis is transformed for all lines along it at once: numbers lie as [outer, n, inner], and each pass of radix r takes
[outer, r, m, inner] to [outer, m, r, inner] (the algorithm of Stockham, which needs no reversal of bits), with inner
indices in lanes. All of it is kernels, so captures and pages take it; gradients are transforms again.
"""

# Annotations of kernels are values: types of numbers that are known when a kernel is made.
# pyright: reportInvalidTypeForm=false

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import tinote as ti
from tinote.errors import FieldError, suggestion
from tinote.kit.fields import FLOATS, place
from tinote.source import caller

__all__ = ["Poisson", "Transform", "frequency"]

#: Radices of the passes, in the order in which they are tried. Other prime factors go through a convolution.
RADICES = (8, 4, 2, 3, 5, 7, 11, 13)

#: Inner indices of one parallel iteration: enough for lanes, and few enough that the last passes keep all threads busy.
BLOCK = 1024

#: -Δ of the wave with m periods of n points in a length: for exact derivatives, and for differences of neighbours.
SCHEMES = {
    "spectral": lambda m, n, length: (2 * np.pi * m / length) ** 2,
    "differences": lambda m, n, length: (2 * np.sin(np.pi * m / n) * n / length) ** 2,
}

#: Edge of the squares of a transposition, in numbers: a cache line of f32, so that each line is read and written once.
TILE = 16


class Complex(NamedTuple):
    """Complex numbers in two fields of one dimension."""

    re: Any
    im: Any

    @property
    def swapped(self) -> "Complex":
        """With the parts exchanged: a transform of these is the inverse one, with its parts exchanged."""
        return Complex(self.im, self.re)


@ti.func
def frequency(i: int, n: ti.Template):
    """The signed wave number of a row of a transform: 0, 1, ... and, from the middle on, ..., -2, -1.

    Parameters
    ----------
    i : int
        The index along a transformed axis.
    n : int
        The length of that axis in real space, known at compile time.

    Returns
    -------
    int
        Waves in the length of the axis; that of an even n's middle is -n / 2.

    Examples
    --------
    >>> @ti.kernel
    ... def waves(i: int) -> int:
    ...     return ti.fft.frequency(i, 8)
    >>> [waves(i) for i in range(8)]
    [0, 1, 2, 3, -4, -3, -2, -1]
    """
    return i if 2 * i < n else i - n


@functools.cache
def _kernels(dtype: Any) -> "_Kernels":
    return _Kernels(dtype)


class _Kernels:
    """The kernels for numbers of one type."""

    def __init__(self, dtype: Any) -> None:
        @ti.func
        def number(value: ti.Template):
            return ti.cast(value, dtype)

        @ti.func
        def blocks(n: int):
            return (n + BLOCK - 1) // BLOCK

        @ti.func
        def block_of(block: int, n: int):
            return range(ti.cast(block * BLOCK, ti.i64), ti.cast(ti.min(block * BLOCK + BLOCK, n), ti.i64))

        @ti.func
        def start(row: int, inner: int):
            """In i64, so that a row's last number is past its first, and is checked before the loop over them."""
            return ti.cast(row * inner, ti.i64)

        @ti.func
        def times(re: ti.Template, im: ti.Template, by: ti.Template, at: ti.Template):
            return re * by.re[at] - im * by.im[at], re * by.im[at] + im * by.re[at]

        @ti.func
        def of_odd(re: ti.Template, im: ti.Template, r: ti.Template):
            """The transform of r numbers: of a(k) + a(r - k) and a(k) - a(r - k), which are half of them each."""
            to_re, to_im = re, im
            for k in ti.static(range(1, r)):
                to_re[0] += re[k]
                to_im[0] += im[k]
            for j in ti.static(range(1, r // 2 + 1)):
                even_re, even_im = re[0], im[0]
                odd_re, odd_im = number(0.0), number(0.0)
                for k in ti.static(range(1, r // 2 + 1)):
                    c = number(ti.static(math.cos(2 * math.pi * (j * k % r) / r)))
                    s = number(ti.static(math.sin(2 * math.pi * (j * k % r) / r)))
                    even_re += c * (re[k] + re[r - k])
                    even_im += c * (im[k] + im[r - k])
                    odd_re += s * (im[k] - im[r - k])
                    odd_im -= s * (re[k] - re[r - k])
                to_re[j], to_im[j] = even_re + odd_re, even_im + odd_im
                to_re[r - j], to_im[r - j] = even_re - odd_re, even_im - odd_im
            return to_re, to_im

        @ti.func
        def of_even(re: ti.Template, im: ti.Template, r: ti.Template):
            """The transform of r numbers, r a power of two, from those of its even and of its odd ones."""
            to_re, to_im = re, im
            if ti.static(r > 1):
                h = ti.static(r // 2)
                odd_re, odd_im = of_even(
                    ti.Vector([re[2 * k + 1] for k in ti.static(range(h))]),
                    ti.Vector([im[2 * k + 1] for k in ti.static(range(h))]),
                    h,
                )
                even_re, even_im = of_even(
                    ti.Vector([re[2 * k] for k in ti.static(range(h))]),
                    ti.Vector([im[2 * k] for k in ti.static(range(h))]),
                    h,
                )
                for k in ti.static(range(h)):
                    a, b = odd_re[k], odd_im[k]
                    if ti.static(4 * k == r):  # times -i
                        a, b = odd_im[k], -odd_re[k]
                    elif ti.static(k > 0):
                        c = number(ti.static(math.cos(2 * math.pi * k / r)))
                        s = number(ti.static(math.sin(2 * math.pi * k / r)))
                        a, b = c * odd_re[k] + s * odd_im[k], c * odd_im[k] - s * odd_re[k]
                    to_re[k], to_im[k] = even_re[k] + a, even_im[k] + b
                    to_re[k + h], to_im[k + h] = even_re[k] - a, even_im[k] - b
            return to_re, to_im

        @ti.kernel
        def advance(
            a: ti.Template,
            to: ti.Template,
            roots: ti.Template,
            r: ti.Template,
            outer: int,
            m: int,
            inner: int,
            step: int,
        ):
            """A pass: [outer, r, m, inner] to [outer, m, r, inner]. `step`: by how much roots are apart."""
            for o, p, block in ti.ndrange(outer, m, blocks(inner)):
                for q in block_of(block, inner):
                    re = ti.Vector([a.re[start((o * r + k) * m + p, inner) + q] for k in ti.static(range(r))])
                    im = ti.Vector([a.im[start((o * r + k) * m + p, inner) + q] for k in ti.static(range(r))])
                    if ti.static(r % 2 == 1):
                        re, im = of_odd(re, im, r)
                    else:
                        re, im = of_even(re, im, r)
                    for j in ti.static(range(r)):
                        at = start((o * m + p) * r + j, inner) + q
                        to.re[at], to.im[at] = re[j], im[j]
                        if ti.static(j > 0):
                            to.re[at], to.im[at] = times(re[j], im[j], roots, j * p * step)

        @ti.kernel
        def turn(a: ti.Template, to: ti.Template, by: ti.Template, outer: int, rows: ti.Template, columns: ti.Template):
            """Transpose [outer, rows, columns], times a factor for each place of the result."""
            for o, tile_j, tile_i in ti.ndrange(outer, (columns + TILE - 1) // TILE, (rows + TILE - 1) // TILE):
                for j in range(tile_j * TILE, ti.min(tile_j * TILE + TILE, columns)):
                    for i in range(tile_i * TILE, ti.min(tile_i * TILE + TILE, rows)):
                        at, place = (o * rows + i) * columns + j, j * rows + i
                        re, im = times(a.re[at], a.im[at], by, place)
                        to.re[o * rows * columns + place], to.im[o * rows * columns + place] = re, im

        @ti.kernel
        def resize(a: ti.Template, to: ti.Template, by: ti.Template, outer: int, n: int, to_n: int, inner: int):
            """[outer, n, inner] to [outer, to_n, inner], cut or filled with 0, times a factor for each row."""
            for o, k in ti.ndrange(outer, to_n):
                for q in range(ti.cast(inner, ti.i64)):
                    re, im = number(0.0), number(0.0)
                    if k < n:
                        re, im = a.re[start(o * n + k, inner) + q], a.im[start(o * n + k, inner) + q]
                    at = start(o * to_n + k, inner) + q
                    to.re[at], to.im[at] = times(re, im, by, k)

        @ti.func
        def untangled(
            a: ti.Template,
            to: ti.Template,
            roots: ti.Template,
            k: ti.Template,
            at: ti.i64,
            mirror: ti.i64,
            into: ti.i64,
        ):
            re, im = times((a.im[at] + a.im[mirror]) / 2, (a.re[mirror] - a.re[at]) / 2, roots, k)
            to.re[into] = (a.re[at] + a.re[mirror]) / 2 + re
            to.im[into] = (a.im[at] - a.im[mirror]) / 2 + im

        @ti.func
        def tangled(
            a: ti.Template,
            to: ti.Template,
            roots: ti.Template,
            k: ti.Template,
            at: ti.i64,
            mirror: ti.i64,
            into: ti.i64,
        ):
            re, im = a.re[at] - a.re[mirror], a.im[at] + a.im[mirror]
            c, s = roots.re[k], roots.im[k]
            to.re[into] = a.re[at] + a.re[mirror] - (c * im - s * re)
            to.im[into] = a.im[at] - a.im[mirror] + c * re + s * im

        @ti.kernel
        def untangle(
            a: ti.Template, to: ti.Template, roots: ti.Template, close: ti.Template, outer: int, half: int, inner: int
        ):
            """From transforms of x(2 k) + i x(2 k + 1), k < half, to those of x: half + 1 rows. `close`: inner is 1."""
            for o, q in ti.ndrange(outer, inner):
                at, into = o * half * inner + q, o * (half + 1) * inner + q
                to.re[into], to.im[into] = a.re[at] + a.im[at], number(0.0)
                to.re[into + half * inner], to.im[into + half * inner] = a.re[at] - a.im[at], number(0.0)
            if ti.static(close):
                for o, block in ti.ndrange(outer, blocks(half)):
                    for k in block_of(block, half):
                        if k > 0:
                            at = start(o, half)
                            untangled(a, to, roots, k, at + k, at + half - k, start(o, half + 1) + k)
            else:
                for o, row in ti.ndrange(outer, half - 1):
                    k = row + 1
                    for q in range(ti.cast(inner, ti.i64)):
                        at, mirror = start(o * half + k, inner) + q, start((o + 1) * half - k, inner) + q
                        untangled(a, to, roots, k, at, mirror, start(o * (half + 1) + k, inner) + q)

        @ti.kernel
        def tangle(
            a: ti.Template, to: ti.Template, roots: ti.Template, close: ti.Template, outer: int, half: int, inner: int
        ):
            """Twice the inverse of `untangle`; imaginary parts of the first and of the last row count as 0."""
            for o, q in ti.ndrange(outer, inner):
                at, into = o * (half + 1) * inner + q, o * half * inner + q
                first, last = a.re[at], a.re[at + half * inner]
                to.re[into], to.im[into] = first + last, first - last
            if ti.static(close):
                for o, block in ti.ndrange(outer, blocks(half)):
                    for k in block_of(block, half):
                        if k > 0:
                            at = start(o, half + 1)
                            tangled(a, to, roots, k, at + k, at + half - k, start(o, half) + k)
            else:
                for o, row in ti.ndrange(outer, half - 1):
                    k = row + 1
                    for q in range(ti.cast(inner, ti.i64)):
                        at = start(o * (half + 1) + k, inner) + q
                        mirror = start(o * (half + 1) + half - k, inner) + q
                        tangled(a, to, roots, k, at, mirror, start(o * half + k, inner) + q)

        @ti.kernel
        def mirror(a: ti.Template, to: ti.Template, outer: int, n: int, inner: int):
            """[outer, n // 2 + 1, inner], n odd, to all n rows of a transform of real numbers."""
            for o, k in ti.ndrange(outer, n):
                half = n // 2 + 1
                row, sign = k, number(1.0)
                if k >= half:
                    row, sign = n - k, number(-1.0)
                if k == 0:
                    sign = number(0.0)
                for q in range(ti.cast(inner, ti.i64)):
                    at, into = start(o * half + row, inner) + q, start(o * n + k, inner) + q
                    to.re[into], to.im[into] = a.re[at], sign * a.im[at]

        @ti.func
        def doubled(index: ti.Template, axis: ti.Template, more: ti.Template):
            to = index
            to[axis] = 2 * index[axis] + more
            return to

        @ti.kernel
        def read(
            x: ti.Template,
            a: ti.Template,
            shape: ti.Template,
            axis: ti.Template,
            real: ti.Template,
            last: ti.Template,
            factor: dtype,
        ):
            """Numbers of a field, in pairs along `axis` if they are real. `factor`: of its rows from 1 to `last`."""
            for index in ti.grouped(ti.ndrange(*shape)):
                at = place(index, shape)
                if ti.static(real == "pairs"):
                    a.re[at], a.im[at] = x[doubled(index, axis, 0)], x[doubled(index, axis, 1)]
                elif ti.static(real == "real"):
                    a.re[at], a.im[at] = x[index], number(0.0)
                else:
                    by = factor if 0 < index[axis] <= last else number(1.0)
                    a.re[at], a.im[at] = by * x[index][0], by * x[index][1]

        @ti.kernel
        def write(
            x: ti.Template,
            a: ti.Template,
            shape: ti.Template,
            axis: ti.Template,
            real: ti.Template,
            last: ti.Template,
            adds: ti.Template,
            scale: dtype,
            factor: dtype,
        ):
            """The inverse of `read`, times `scale`; what is there is replaced, or added to."""
            for index in ti.grouped(ti.ndrange(*shape)):
                at = place(index, shape)
                if ti.static(real == "pairs"):
                    first, second = doubled(index, axis, 0), doubled(index, axis, 1)
                    if ti.static(adds):
                        x[first] += scale * a.re[at]
                        x[second] += scale * a.im[at]
                    else:
                        x[first], x[second] = scale * a.re[at], scale * a.im[at]
                elif ti.static(real == "real"):
                    if ti.static(adds):
                        x[index] += scale * a.re[at]
                    else:
                        x[index] = scale * a.re[at]
                else:
                    by = scale * (factor if 0 < index[axis] <= last else number(1.0))
                    value = ti.Vector([by * a.re[at], by * a.im[at]])
                    if ti.static(adds):
                        x[index] += value
                    else:
                        x[index] = value

        @ti.kernel
        def clear(x: ti.Template):
            for index in ti.grouped(x):
                x[index] = 0

        self.advance, self.turn, self.resize = advance, turn, resize
        self.untangle, self.tangle, self.mirror = untangle, tangle, mirror
        self.read, self.write, self.clear = read, write, clear


def _table(dtype: Any, values: Any, name: str) -> Complex:
    parts = [ti.field(dtype, shape=len(values), name=name, needs_grad=False, needs_dual=False) for _ in range(2)]
    for part, numbers in zip(parts, (values.real, values.imag), strict=True):
        part.from_numpy(numbers.astype(FLOATS[dtype]))
    return Complex(*parts)


def _roots(dtype: Any, powers: Any, n: int) -> Complex:
    return _table(dtype, np.exp(-2j * np.pi * powers / n), f"roots of order {n}")


class _Lines:
    """Transforms along one axis of numbers that lie as [outer, n, inner]."""

    def __init__(self, kernels: _Kernels, dtype: Any, outer: int, n: int, inner: int) -> None:
        self._kernels, self._n, self.shape = kernels, n, (outer, inner)
        self._radices = _radices(n)
        self.size = outer * n * inner
        if n > 1 and not self._radices:  # a prime factor that is no radix
            self._m = 1 << (2 * n - 2).bit_length()
            k = np.arange(n, dtype=np.int64)
            chirp = np.exp(-1j * np.pi * (k * k % (2 * n)) / n)
            around = np.zeros(self._m, complex)
            around[:n], around[self._m - n + 1 :] = chirp.conj(), chirp.conj()[:0:-1]
            self._chirp = _table(dtype, np.r_[chirp, np.zeros(self._m - n)], "a chirp")
            self._filter = _table(dtype, np.fft.fft(around) / self._m, "a transformed chirp")
            self._longer = _Lines(kernels, dtype, outer, self._m, inner)
            self.size = self._longer.size
            return
        self._roots = _roots(dtype, np.arange(n), n)
        rows = max((d for d in range(1, math.isqrt(n) + 1) if n % d == 0), default=1)
        #: Where the lines lie close, each is a matrix: transforms of its columns, then of its rows.
        self._parts = None
        if inner == 1 and rows > 1:
            columns = n // rows
            self._parts = (
                _Lines(kernels, dtype, outer, rows, columns),
                _Lines(kernels, dtype, outer, columns, rows),
                _table(
                    dtype, np.exp(-2j * np.pi * np.outer(np.arange(columns), np.arange(rows)).ravel() / n), "roots of 1"
                ),
                rows,
                columns,
            )

    def transform(self, a: Complex, b: Complex) -> tuple[Complex, Complex]:
        """Transform `a`; the result is in the first of the two that are returned, and the other is free."""
        kernels, (outer, inner) = self._kernels, self.shape
        if self._n == 1:
            return a, b
        if not self._radices:
            kernels.resize(a, b, self._chirp, outer, self._n, self._m, inner)
            a, b = self._longer.transform(b, a)
            kernels.resize(a, b, self._filter, outer, self._m, self._m, inner)
            a, b = (pair.swapped for pair in self._longer.transform(b.swapped, a.swapped))
            kernels.resize(a, b, self._chirp, outer, self._m, self._n, inner)
            return b, a
        if self._parts is not None:
            columns_first, rows_then, roots, rows, columns = self._parts
            a, b = columns_first.transform(a, b)
            kernels.turn(a, b, roots, outer, rows, columns)
            return rows_then.transform(b, a)
        done = 1
        for radix in self._radices:
            m = self._n // done // radix
            kernels.advance(a, b, self._roots, radix, outer, m, done * inner, done)
            a, b, done = b, a, done * radix
        return a, b


def _radices(n: int) -> list[int]:
    """Those of the passes for n numbers; none where another prime is a factor of it."""
    twos = (n & -n).bit_length() - 1
    found = [4] * min(twos // 2, -twos % 3)
    n //= 4 ** len(found)
    for radix in RADICES:
        while n % radix == 0:
            found.append(radix)
            n //= radix
    return found if n == 1 else []


def _is_complex(x: Any) -> bool:
    return isinstance(x, ti.MatrixField) and (x.n, x.m) == (2, 1)


class Transform:
    """The discrete Fourier transform of a field, and its inverse.

    y(k) is the sum over j of x(j) exp(-2 π i j k / n), along one axis or several, as NumPy has it; the inverse divides
    by the number of elements. Where x is real, the last of the axes has the n // 2 + 1 wave numbers from 0 on (those
    that are left out are the conjugates); the inverse takes imaginary parts of the first and, of an even n, of the last
    of them as 0.

    Any length is fast: O(n log n), with products of 2, 3, 5, 7, 11 and 13 ahead. Under tapes and in forward mode a
    transform is a linear function with its own adjoint.

    Parameters
    ----------
    x : Field
        Numbers of type f32 or f64, or complex ones: vectors of real and imaginary part.
    y : Field
        Complex numbers of the same type. Its shape is that of x; n // 2 + 1 along the last of the axes for real x.
    axes : int or sequence of int, optional
        Those along which to transform; by default all.

    Raises
    ------
    FieldError
        For fields or axes that do not fit.

    References
    ----------
    J. W. Cooley and J. W. Tukey, Math. Comp. 19 (1965) 297; T. G. Stockham, AFIPS Proc. 28 (1966) 229; for lengths with
    large prime factors L. I. Bluestein, IEEE Trans. Audio Electroacoust. 18 (1970) 451.

    Examples
    --------
    >>> import numpy as np
    >>> x = ti.field(ti.f64, shape=8)
    >>> y = ti.Vector.field(2, ti.f64, shape=5)
    >>> wave = ti.fft.Transform(x, y)
    >>> x.from_numpy(np.cos(2 * np.pi * 3 * np.arange(8) / 8))
    >>> wave.forward()
    >>> [round(float(a), 12) + 0.0 for a in np.hypot(*y.to_numpy().T)]
    [0.0, 0.0, 0.0, 4.0, 0.0]
    >>> wave.inverse()
    >>> round(x[1], 6)
    -0.707107
    """

    def __init__(self, x: Any, y: Any, axes: int | Sequence[int] | None = None) -> None:
        span = caller()
        if not isinstance(x, ti.Field) or not isinstance(y, ti.Field):
            raise FieldError("a transform is between two fields", span)
        if x.dtype not in FLOATS or y.dtype != x.dtype:
            raise FieldError(f"a transform is between fields of f32 or of f64, not of {x.dtype} and {y.dtype}", span)
        self._real = not isinstance(x, ti.MatrixField)
        if not _is_complex(y) or not (self._real or _is_complex(x)):
            raise FieldError(
                "complex numbers are vectors of two, their real and their imaginary part",
                span,
                hint="ti.Vector.field(2, dtype, shape=...); a transform of x with real numbers takes a scalar field",
            )
        rank = len(x.shape)
        axes = range(rank) if axes is None else (axes,) if isinstance(axes, int) else axes
        if not all(-rank <= axis < rank for axis in axes):
            raise FieldError(f"{tuple(axes)} are not axes of a field with {rank} dimensions", span)
        self._axes = [axis % rank for axis in axes]
        if not self._axes or len(set(self._axes)) < len(self._axes):
            raise FieldError("the axes of a transform are one or several, each once", span)
        self.x, self.y = x, y
        last = self._axes[-1]
        self._n = x.shape[last]
        half = [*x.shape]
        half[last] = self._n // 2 + 1
        expected = tuple(half) if self._real else x.shape
        if tuple(y.shape) != tuple(expected):
            raise FieldError(
                f"the transform of a field of shape {x.shape} has the shape {tuple(expected)}, not {y.shape}", span
            )
        self._plan(last)

    def _plan(self, last: int) -> None:
        self._kernels = _kernels(self.x.dtype)
        #: the shape in which numbers of x are read: pairs of real ones are complex
        self._kind = "complex" if not self._real else "real" if self._n % 2 else "pairs"
        self._shape = tuple(
            n // 2 if self._kind == "pairs" and axis == last else n for axis, n in enumerate(self.x.shape)
        )
        #: up to which row along the last axis one stands for two
        self._twice = (self._n - 1) // 2 if self._real else 0
        self._first = self._lines(self._shape, last)
        self._rest = [self._lines(self.y.shape, axis) for axis in self._axes[:-1]]
        self._last = last
        sizes = [line.size for line in (self._first, *self._rest)]
        size = max(*sizes, math.prod(self.y.shape))
        needs_dual = self.x.has_dual or self.y.has_dual or None
        fields = [
            ti.field(self.x.dtype, shape=size, name="numbers of a transform", needs_grad=False, needs_dual=needs_dual)
            for _ in range(4)
        ]
        self._a, self._b = Complex(*fields[:2]), Complex(*fields[2:])
        self._count = math.prod(self.x.shape[axis] for axis in self._axes)
        if self._kind == "pairs":
            self._roots = _roots(self.x.dtype, np.arange(self._n), self._n)
        elif self._kind == "real":
            self._ones = _table(self.x.dtype, np.ones(self._n, complex), "ones")

    def _lines(self, shape: Sequence[int], axis: int) -> _Lines:
        return _Lines(self._kernels, self.x.dtype, math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))

    def _overwritten_forward(self) -> list[Any]:
        return [*self._a, *self._b, self.y]

    def _overwritten_inverse(self) -> list[Any]:
        return [*self._a, *self._b, self.x]

    @ti.ad.grad_replaced(scratch=_overwritten_forward)
    def forward(self) -> None:
        """Put the transform of x into y.

        Examples
        --------
        >>> x, y = ti.Vector.field(2, ti.f32, shape=4), ti.Vector.field(2, ti.f32, shape=4)
        >>> x[1] = [1, 0]
        >>> ti.fft.Transform(x, y).forward()
        >>> y.to_numpy().tolist()
        [[1.0, 0.0], [0.0, -1.0], [-1.0, 0.0], [0.0, 1.0]]
        """
        self._to_waves(self.x, self.y)

    @ti.ad.grad_for(forward)
    def _forward_adjoint(self) -> None:
        self._from_waves(self.y.grad, self.x.grad, factor=1 / 2, adds=True)
        self._kernels.clear(self.y.grad)

    @ti.ad.grad_replaced(scratch=_overwritten_inverse)
    def inverse(self) -> None:
        """Put the field whose transform is y into x.

        Examples
        --------
        >>> x, y = ti.field(ti.f32, shape=4), ti.Vector.field(2, ti.f32, shape=3)
        >>> y[1] = [2, 0]
        >>> ti.fft.Transform(x, y).inverse()
        >>> x.to_numpy().tolist()
        [1.0, 0.0, -1.0, 0.0]
        """
        self._from_waves(self.y, self.x, scale=1 / self._count)

    @ti.ad.grad_for(inverse)
    def _inverse_adjoint(self) -> None:
        self._to_waves(self.x.grad, self.y.grad, scale=1 / self._count, factor=2.0, adds=True)
        self._kernels.clear(self.x.grad)

    def _to_waves(self, x: Any, y: Any, scale: float = 1.0, factor: float = 1.0, *, adds: bool = False) -> None:
        """`factor`: of what stands for two waves, its own and the conjugate that is left out."""
        kernels, (outer, inner), a, b = self._kernels, self._first.shape, self._a, self._b
        kernels.read(x, a, self._shape, self._last, self._kind, 0, 1.0)
        a, b = self._first.transform(a, b)
        if self._kind == "pairs":
            kernels.untangle(a, b, self._roots, inner == 1, outer, self._n // 2, inner)
            a, b = b, a
        elif self._kind == "real":
            kernels.resize(a, b, self._ones, outer, self._n, self._n // 2 + 1, inner)
            a, b = b, a
        for lines in self._rest:
            a, b = lines.transform(a, b)
        kernels.write(y, a, self.y.shape, self._last, "complex", self._twice, adds, scale, factor)

    def _from_waves(self, y: Any, x: Any, scale: float = 1.0, factor: float = 1.0, *, adds: bool = False) -> None:
        kernels, (outer, inner), a, b = self._kernels, self._first.shape, self._a, self._b
        kernels.read(y, a, self.y.shape, self._last, "complex", self._twice, factor)
        a, b = a.swapped, b.swapped
        for lines in self._rest:
            a, b = lines.transform(a, b)
        a, b = a.swapped, b.swapped
        if self._kind == "pairs":
            kernels.tangle(a, b, self._roots, inner == 1, outer, self._n // 2, inner)
            a, b = b, a
        elif self._kind == "real":
            kernels.mirror(a, b, outer, self._n, inner)
            a, b = b, a
        a, _ = self._first.transform(a.swapped, b.swapped)
        kernels.write(x, a.swapped, self._shape, self._last, self._kind, 0, adds, scale, 1.0)


class Poisson:
    """The equation Δu = f in a periodic box, by transforms.

    The mean of u is 0; that of f, for which there is no solution, counts as 0. The cost is that of a transform and its
    inverse, whatever f is. Under tapes and in forward mode it is a linear function of f.

    Parameters
    ----------
    source, solution : Field
        f and u, scalar fields of f32 or of f64 with one shape; they may be the same field.
    size : float or sequence of float, default=1.0
        The lengths of the box along each axis, or of all; the unit of u is that of f times its square.
    scheme : {"spectral", "differences"}, default="spectral"
        "spectral" takes exact derivatives of the waves, "differences" the second differences of neighbours
        (u(i + 1) - 2 u(i) + u(i - 1)) / h²: then projections of a staggered grid leave no divergence.

    Raises
    ------
    FieldError
        For fields or sizes that do not fit.

    References
    ----------
    R. W. Hockney, "A fast direct solution of Poisson's equation using Fourier analysis", J. ACM 12 (1965) 95.

    Examples
    --------
    >>> import numpy as np
    >>> f, u = ti.field(ti.f64, shape=16), ti.field(ti.f64, shape=16)
    >>> f.from_numpy(np.sin(2 * np.pi * np.arange(16) / 16))
    >>> ti.fft.Poisson(f, u).solve()
    >>> round(u[4] * (2 * np.pi) ** 2, 12)
    -1.0
    """

    def __init__(
        self, source: Any, solution: Any, size: float | Sequence[float] = 1.0, scheme: str = "spectral"
    ) -> None:
        span = caller()
        if scheme not in SCHEMES:
            raise FieldError(f"there is no scheme {scheme!r}{suggestion(scheme, SCHEMES)}", span)
        if isinstance(source, ti.MatrixField) or isinstance(solution, ti.MatrixField) or source.shape != solution.shape:
            raise FieldError("Poisson's equation is between two scalar fields with one shape", span)
        n = source.shape
        sizes = np.broadcast_to(size, len(n)) if np.ndim(size) == 0 else np.asarray(size, float)
        if sizes.shape != (len(n),) or not np.all(np.isfinite(sizes) & (sizes > 0)):
            raise FieldError(f"a box with {len(n)} dimensions has as many positive lengths, not {size!r}", span)
        half = (*n[:-1], n[-1] // 2 + 1)
        options = {
            "needs_grad": source.has_grad or solution.has_grad,
            "needs_dual": source.has_dual or solution.has_dual,
        }
        self._waves = ti.Vector.field(2, source.dtype, shape=half, name=f"waves of {source.name}", **options)
        self._forward = Transform(source, self._waves)
        self._inverse = Transform(solution, self._waves)
        self._divide = _divisions(source.dtype)
        self._symbols = [_symbol(source.dtype, count, length, scheme) for count, length in zip(n, sizes, strict=True)]

    def solve(self) -> None:
        """Put the solution of the equation into u.

        Examples
        --------
        >>> f = ti.field(ti.f64, shape=(4, 4))
        >>> f[0, 0] = 16.0
        >>> ti.fft.Poisson(f, f, size=4.0, scheme="differences").solve()
        >>> round(f[1, 0] + f[3, 0] + f[0, 1] + f[0, 3] - 4 * f[0, 0], 12)  # the source without its mean
        15.0
        """
        self._forward.forward()
        self._divide(self._waves, self._symbols)
        self._inverse.inverse()


def _symbol(dtype: Any, n: int, length: float, scheme: str) -> Any:
    """-Δ for each row of an axis."""
    found = ti.field(dtype, shape=n, name="symbols of a Laplacian", needs_grad=False, needs_dual=False)
    m = np.minimum(np.arange(n), n - np.arange(n))
    found.from_numpy(SCHEMES[scheme](m, n, length).astype(FLOATS[dtype]))
    return found


@functools.cache
def _divisions(dtype: Any) -> Any:
    @ti.kernel
    def divide(waves: ti.Template, symbols: ti.Template):
        for k in ti.grouped(waves):
            total = ti.cast(0.0, dtype)
            for d in ti.static(range(len(symbols))):
                total += symbols[d][k[d]]
            waves[k] *= -1 / total if total > 0 else ti.cast(0.0, dtype)

    return divide
