"""Random numbers by key and index, distributions, and sequences that fill space evenly: `ti.sampling`.

    for i in x:
        numbers = ti.sampling.stream(key, i, step)
        v[i] += ti.sqrt(2 * D * dt) * numbers.normal()

A stream is a function of its key and its indices: particle `i` meets the same numbers in the same step on any number of
threads, on a GPU, in a page, in a replay, in the run with another parameter. `ti.random` gives numbers by the order of
launches instead.
"""

# Annotations of kernels are values: types of numbers that are known when a kernel is made.
# pyright: reportInvalidTypeForm=false

import math

import tinote as ti

__all__ = ["Stream", "even", "halton", "stream"]

#: Multipliers, and what is added to the key from round to round: J. K. Salmon and others, "Parallel random numbers: as
#: easy as 1, 2, 3", SC'11.
PHILOX = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10

#: From this mean on Poisson's numbers are drawn by transformed rejection, which needs about 10.
MANY = 10.0

#: Means above it count as this one: numbers of events are of type i32.
MOST = 2.0**30


@ti.func
def _word(number: ti.Template):
    return ti.cast(number, ti.u32)


@ti.func
def _fraction(word: ti.Template):
    """Its bits after the point: in f32 the upper 24, so that it is less than 1."""
    found = ti.cast(word >> 8, float) / 16777216.0
    if ti.static(ti.cfg.default_fp == ti.f64):
        found = ti.cast(word, float) / 4294967296.0
    return found


@ti.func
def _high(a: ti.Template, b: ti.Template):
    """The upper word of a product of two words, by halves: GPUs have no longer integers."""
    a0, a1, b0, b1 = a & 0xFFFF, a >> 16, b & 0xFFFF, b >> 16
    middle = a1 * b0 + ((a0 * b0) >> 16)
    return a1 * b1 + (middle >> 16) + ((a0 * b1 + (middle & 0xFFFF)) >> 16)


@ti.func
def philox(counter: ti.Template, key: ti.Template):
    """Four mixed words of four words and a key of two: Philox4x32-10."""
    c, k = counter, key
    for _ in ti.static(range(ROUNDS)):
        m0, m1 = _word(PHILOX[0]), _word(PHILOX[1])
        c = ti.Vector([_high(m1, c[2]) ^ c[1] ^ k[0], m1 * c[2], _high(m0, c[0]) ^ c[3] ^ k[1], m0 * c[0]])
        k = ti.Vector([k[0] + _word(WEYL[0]), k[1] + _word(WEYL[1])])
    return c


@ti.dataclass
class Stream:
    """A stream of random numbers in a kernel, made by `ti.sampling.stream`.

    Each method draws from it, so that it goes on; numbers are of the default floating-point type. All are constants for
    derivatives.

    Examples
    --------
    >>> @ti.kernel
    ... def throw(i: int) -> int:
    ...     return ti.sampling.stream(7, i).poisson(3.0)
    >>> [throw(i) for i in range(8)] == [throw(i) for i in range(8)]
    True
    """

    key: ti.types.vector(2, ti.u32)
    place: ti.types.vector(3, ti.u32)
    drawn: ti.u32

    @ti.func
    def words(self):
        """Draw four words of 32 random bits each."""
        found = philox(ti.Vector([self.drawn, self.place[0], self.place[1], self.place[2]]), self.key)
        self.drawn += _word(1)
        return found

    @ti.func
    def uniforms(self):
        """Draw two numbers from 0 (included) to 1 (excluded)."""
        w = self.words()
        found = ti.Vector([_fraction(w[0]), _fraction(w[1])])
        if ti.static(ti.cfg.default_fp == ti.f64):  # with 20 bits more
            found += ti.Vector([_fraction(w[2] & 0xFFFFF000), _fraction(w[3] & 0xFFFFF000)]) / 4294967296.0
        return found

    @ti.func
    def uniform(self):
        """Draw a number from 0 (included) to 1 (excluded)."""
        return self.uniforms()[0]

    @ti.func
    def normal(self):
        """Draw a normal number, of mean 0 and variance 1 (Box and Muller)."""
        u = self.uniforms()
        return ti.sqrt(-2 * ti.log(1 - u[0])) * ti.cos(2 * math.pi * u[1])

    @ti.func
    def exponential(self):
        """Draw an exponential number, of mean 1."""
        return -ti.log(1 - self.uniform())

    @ti.func
    def on_circle(self):
        """Draw a point of the unit circle."""
        angle = 2 * math.pi * self.uniform()
        return ti.Vector([ti.cos(angle), ti.sin(angle)])

    @ti.func
    def on_sphere(self):
        """Draw a point of the unit sphere."""
        u = self.uniforms()
        z, angle = 1 - 2 * u[0], 2 * math.pi * u[1]
        r = ti.sqrt(ti.max(0.0, 1 - z * z))
        return ti.Vector([r * ti.cos(angle), r * ti.sin(angle), z])

    @ti.func
    def in_disc(self):
        """Draw a point of the unit disc."""
        return ti.sqrt(self.uniform()) * self.on_circle()

    @ti.func
    def in_ball(self):
        """Draw a point of the unit ball."""
        return self.uniform() ** (1 / 3) * self.on_sphere()

    @ti.func
    def poisson(self, mean: ti.Template):
        """Draw a number of Poisson's distribution with a mean, at most 2³⁰; 0 where the mean is not positive, or NaN.

        Up to a mean of 10 by inversion, above by transformed rejection (W. Hörmann, Insurance: Mathematics and
        Economics 12 (1993) 39).
        """
        found = 0
        if mean >= MANY:
            expected = ti.min(mean, MOST)
            b = 0.931 + 2.53 * ti.sqrt(expected)
            a = -0.059 + 0.02483 * b
            least = 0.9277 - 3.6224 / (b - 2)
            drawing = True
            while drawing:
                u = self.uniforms()
                side = u[0] - 0.5
                tail = 0.5 - ti.abs(side)
                if tail > 0:
                    k = ti.floor((2 * a / tail + b) * side + expected + 0.43)
                    height = ti.log(u[1] * (1.1239 + 1.1328 / (b - 3.4)) / (a / (tail * tail) + b))
                    inside = tail >= 0.07 and u[1] <= least
                    outside = k < 0 or (tail < 0.013 and u[1] > tail)
                    if inside or (not outside and height <= _log_probability(k, expected)):
                        found = ti.cast(k, int)
                        drawing = False
        elif mean > 0:
            # the sum of probabilities up to `found` passes a uniform number
            rest, term = self.uniform(), ti.exp(-mean)
            while rest >= term and found < 100:
                rest -= term
                found += 1
                term *= mean / found
        return found


@ti.func
def _log_probability(k: ti.Template, mean: ti.Template):
    """The logarithm of Poisson's probability, by Stirling's series: differences of large terms are taken first."""
    found = -mean + 0.0 * k
    if k >= 1:
        d = k - mean
        x = d / mean
        log1p = ti.log(1 + x)
        if ti.abs(x) < 0.1:  # its series
            log1p = x * (1 - x * (1 / 2 - x * (1 / 3 - x * (1 / 4 - x * (1 / 5 - x * (1 / 6 - x * (1 / 7 - x / 8)))))))
        found = d - k * log1p - 0.5 * ti.log(2 * math.pi * k) - (1 / 12 - 1 / (360 * k * k)) / k
    return found


@ti.func
def stream(key: int, a: int, b: int = 0, c: int = 0):
    """The stream of a key at up to three indices.

    Parameters
    ----------
    key : int
        What tells runs apart, such as a seed.
    a, b, c : int
        What tells streams apart: the particle, the step, the purpose.

    Returns
    -------
    Stream
        The stream, at its beginning.

    References
    ----------
    J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11: the
    generator is Philox4x32-10.

    Examples
    --------
    >>> @ti.kernel
    ... def kick(key: int, particle: int, step: int) -> ti.f32:
    ...     return ti.sampling.stream(key, particle, step).normal()
    >>> kick(1, 5, 100) == kick(1, 5, 100), kick(1, 5, 100) == kick(1, 6, 100)
    (True, False)
    """
    place = ti.Vector([_word(a), _word(b), _word(c)])
    return Stream(key=ti.Vector([_word(key), _word(0)]), place=place, drawn=_word(0))


@ti.func
def halton(i: int, base: ti.Template):
    """Number `i` of van der Corput's sequence: the digits of `i` mirrored at the point.

    Points whose coordinates have bases 2, 3, 5, ... fill a box evenly.

    Parameters
    ----------
    i : int
        The index, from 0 on.
    base : int
        A prime, known at compile time.

    Returns
    -------
    float
        A number from 0 to 1.

    References
    ----------
    J. H. Halton, Numer. Math. 2 (1960) 84.

    Examples
    --------
    >>> @ti.kernel
    ... def point(i: int) -> ti.f64:
    ...     return ti.sampling.halton(i, 2)
    >>> [point(i) for i in range(6)]
    [0.0, 0.5, 0.25, 0.75, 0.125, 0.625]
    """
    found, digit, rest = ti.cast(0, float), ti.cast(1 / base, float), i
    while rest > 0:
        found += digit * (rest % base)
        rest //= base
        digit /= base
    return found


def _golden(dimensions: int) -> float:
    """The root above 1 of x ** (dimensions + 1) = x + 1."""
    x = 2.0
    for _ in range(64):
        x = (1 + x) ** (1 / (dimensions + 1))
    return x


@ti.func
def even(i: int, dimensions: ti.Template):
    """Point `i` of a sequence that fills a box of any dimension evenly: multiples of powers of one number, modulo 1.

    Parameters
    ----------
    i : int
        The index, from 0 on.
    dimensions : int
        The dimension of the box, known at compile time.

    Returns
    -------
    Vector
        A point of the unit box.

    References
    ----------
    R. F. Korobov's sequences {i α}, with α as in H. Niederreiter, "Random Number Generation and Quasi-Monte Carlo
    Methods", 1992, chapter 3: powers of the inverse of the root of x ** (d + 1) = x + 1.

    Examples
    --------
    >>> @ti.kernel
    ... def point(i: int) -> ti.types.vector(2, ti.f64):
    ...     return ti.sampling.even(i, 2)
    >>> point(0)
    Vector([0.5, 0.5])
    """
    found = ti.Vector([ti.cast(0.5, float) for _ in ti.static(range(dimensions))])
    for d in ti.static(range(dimensions)):
        # in 32 bits of a fixed point, so that no index loses digits
        part = _word(ti.static(round(2**32 * _golden(dimensions) ** -(d + 1)) % 2**32))
        found[d] = _fraction(_word(i) * part + _word(2**31))
    return found
