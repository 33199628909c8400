"""Ordinary differential equations over fields: `ti.integrate`.

    ode = ti.integrate.RungeKutta(rates, {x: v, v: a}, method="rk4")
    ode.step(t, dt)

Steps are launches, so that tapes, forward mode, checkpoints and captures take them as they take the user's own kernels:
derivatives are exact for the discrete steps, not for the equation. Explicit methods are written once, in Python that
launches kernels and is also code of the language: where the rates are a kernel, it is inlined, and a step, or a whole
solution with its step control, is one launch.
"""

# Annotations of kernels are values: types of numbers that are known when a kernel is made.
# pyright: reportInvalidTypeForm=false

import functools
import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

import tinote as ti
from tinote.errors import FieldError, SolverError, suggestion
from tinote.kit.fields import like, place
from tinote.source import caller

__all__ = ["Implicit", "RungeKutta", "Symplectic"]


#: The types of a state, as NumPy calls them.
FLOATS = {ti.f16: np.float16, ti.f32: np.float32, ti.f64: np.float64}


class Tableau(NamedTuple):
    """The coefficients of an explicit Runge-Kutta method, as J. C. Butcher writes them: rows of `stages` are those of
    each stage after the first, `times` its times, `weights` those of the result.

    `errors`: what, with the rates, is the difference from the embedded method of order `order - 1`; `dense`: for each
    rate the polynomial (from the first power on) that is its weight at a part of the step.
    """

    order: int
    times: tuple[float, ...]
    stages: tuple[tuple[float, ...], ...]
    weights: tuple[float, ...]
    errors: tuple[float, ...] = ()
    dense: tuple[tuple[float, ...], ...] = ()


#: By the names of `method`. Dormand and Prince, J. Comp. Appl. Math. 6 (1980) 19, with the interpolation of L. F.
#: Shampine, Math. Comp. 46 (1986) 135.
METHODS = {
    "euler": Tableau(1, (0,), (), (1,)),
    "midpoint": Tableau(2, (0, 1 / 2), ((1 / 2,),), (0, 1)),
    "heun": Tableau(2, (0, 1), ((1,),), (1 / 2, 1 / 2)),
    "rk4": Tableau(4, (0, 1 / 2, 1 / 2, 1), ((1 / 2,), (0, 1 / 2), (0, 0, 1)), (1 / 6, 1 / 3, 1 / 3, 1 / 6)),
    "dopri5": Tableau(
        5,
        (0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1),
        (
            (1 / 5,),
            (3 / 40, 9 / 40),
            (44 / 45, -56 / 15, 32 / 9),
            (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
            (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
            (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
        ),
        (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0),
        (71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40),
        (
            (1, -8048581381 / 2820520608, 8663915743 / 2820520608, -12715105075 / 11282082432),
            (0, 0, 0, 0),
            (0, 131558114200 / 32700410799, -68118460800 / 10900136933, 87487479700 / 32700410799),
            (0, -1754552775 / 470086768, 14199869525 / 1410260304, -10690763975 / 1880347072),
            (0, 127303824393 / 49829197408, -318862633887 / 49829197408, 701980252875 / 199316789632),
            (0, -282668133 / 205662961, 2019193451 / 616988883, -1453857185 / 822651844),
            (0, 40617522 / 29380423, -110615467 / 29380423, 69997945 / 29380423),
        ),
    ),
}

_W1 = 1 / (2 - 2 ** (1 / 3))
_W0 = 1 - 2 * _W1
#: Pairs of (drift, kick), as parts of the step. H. Yoshida, Phys. Lett. A 150 (1990) 262.
SPLITTINGS = {
    "euler": ((0.0, 1.0), (1.0, 0.0)),
    "leapfrog": ((0.5, 1.0), (0.5, 0.0)),
    "yoshida4": ((_W1 / 2, _W1), ((_W0 + _W1) / 2, _W0), ((_W0 + _W1) / 2, _W1), (_W1 / 2, 0.0)),
}

#: z is the state at the end, x that at the beginning, w the one before: of the residual
#: z - c₁ x - c₀ w - β Δt f(t + θ Δt, θ z + (1 - θ) x), these are θ, c₁, c₀ and β.
IMPLICIT = {
    "midpoint": (1 / 2, 1.0, 0.0, 1.0),
    "euler": (1.0, 1.0, 0.0, 1.0),
    "bdf2": (1.0, 4 / 3, -1 / 3, 2 / 3),
}


class Weights:
    """Constants of kernels. A launch knows them by identity, which takes less time than number by number."""

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.values = values


#: Those of the interpolation.
DENSE = Weights(METHODS["dopri5"].dense)


#: Equal ones are the same, so that kernels are compiled for them once.
_weights_of = functools.cache(Weights)


class _Kernels:
    """The kernels for fields of one type, whose numbers the arguments have; or device functions, by what `make` is."""

    def __init__(self, dtype: Any, make: Callable[..., Any]) -> None:
        @make
        def put(into: ti.Template, number: ti.Template, value: ti.Template):
            for p in ti.grouped(value):
                into[number, p] = value[p]

        @make
        def move(rates: ti.Template, number: ti.Template, to: ti.Template, like: ti.Template):
            for p in ti.grouped(like):
                rates[to, p] = rates[number, p]

        @make
        def copy(into: ti.Template, value: ti.Template):
            for p in ti.grouped(value):
                into[p] = value[p]

        @make
        def add(x: ti.Template, rate: ti.Template, dt: dtype):
            for p in ti.grouped(x):
                x[p] += dt * rate[p]

        @ti.func
        def weighted(rates: ti.Template, p: ti.Template, weights: ti.Template):
            total = 0 * rates[0, p]
            for number in ti.static(range(len(weights.values))):
                if ti.static(weights.values[number] != 0):
                    total += ti.cast(weights.values[number], dtype) * rates[number, p]
            return total

        @make
        def advance(x: ti.Template, start: ti.Template, rates: ti.Template, weights: ti.Template, dt: dtype):
            for p in ti.grouped(x):
                x[p] = start[p] + dt * weighted(rates, p, weights)

        @ti.func
        def between(x: ti.Template, start: ti.Template, rates: ti.Template, p: ti.Template, dt: ti.f64, ago: ti.f64):
            found = x[p]
            if ago != 0:
                part = ti.cast(1 - ago / dt, dtype)
                change = 0 * found
                for number in ti.static(range(len(DENSE.values))):
                    weight = ti.cast(0, dtype)
                    for coefficient in ti.static(DENSE.values[number][::-1]):
                        weight = part * (weight + ti.cast(coefficient, dtype))
                    change += weight * rates[number, p]
                found = start[p] + ti.cast(dt, dtype) * change
            return found

        @make
        def record(
            path: ti.Template, number: ti.i32, x: ti.Template, start: ti.Template, rates: ti.Template, dt: ti.f64,
            ago: ti.f64,
        ):  # fmt: skip
            for p in ti.grouped(x):
                path[number, p] = between(x, start, rates, p, dt, ago)

        @make
        def show(x: ti.Template, start: ti.Template, rates: ti.Template, dt: ti.f64, ago: ti.f64):
            for p in ti.grouped(x):
                x[p] = between(x, start, rates, p, dt, ago)

        @make
        def hide(x: ti.Template, start: ti.Template, rates: ti.Template, weights: ti.Template, dt: dtype, ago: ti.f64):
            for p in ti.grouped(x):
                if ago != 0:
                    x[p] = start[p] + dt * weighted(rates, p, weights)

        @make
        def sum_errors(
            total: ti.Template,
            x: ti.Template,
            start: ti.Template,
            rates: ti.Template,
            weights: ti.Template,
            dt: dtype,
            rtol: dtype,
            atol: dtype,
        ):
            for p in ti.grouped(x):
                change = dt * ti.stop_gradient(weighted(rates, p, weights))
                size = ti.stop_gradient(ti.max(ti.abs(start[p]), ti.abs(x[p])))
                ratio = change / (atol + rtol * size)
                if ti.static(isinstance(x, ti.MatrixField)):
                    total[None] += ratio.norm_sqr()
                else:
                    total[None] += ratio * ratio

        @ti.func
        def element(z: ti.Template, first: ti.i32, like: ti.Template):
            if ti.static(not isinstance(like, ti.MatrixField)):
                return z[first]
            elif ti.static(like.m == 1):
                return ti.Vector([z[first + i] for i in ti.static(range(like.n))])
            else:
                rows = ti.static(range(like.n))
                return ti.Matrix([[z[first + i * like.m + j] for j in ti.static(range(like.m))] for i in rows])

        @ti.func
        def put_element(z: ti.Template, first: ti.i32, like: ti.Template, value: ti.Template):
            if ti.static(not isinstance(like, ti.MatrixField)):
                z[first] = value
            elif ti.static(like.m == 1):
                for i in ti.static(range(like.n)):
                    z[first + i] = value[i]
            else:
                for i, j in ti.static(ti.ndrange(like.n, like.m)):
                    z[first + i * like.m + j] = value[i, j]

        @make
        def gather(z: ti.Template, x: ti.Template, first: ti.i32, size: ti.Template):
            for p in ti.grouped(x):
                put_element(z, first + size * place(p, x.shape), x, x[p])

        @make
        def scatter(x: ti.Template, z: ti.Template, first: ti.i32, size: ti.Template):
            for p in ti.grouped(x):
                x[p] = element(z, first + size * place(p, x.shape), x)

        @make
        def scatter_at(
            path: ti.Template, number: ti.i32, x: ti.Template, z: ti.Template, first: ti.i32, size: ti.Template
        ):
            for p in ti.grouped(x):
                path[number, p] = element(z, first + size * place(p, x.shape), x)

        @make
        def blend(x: ti.Template, z: ti.Template, start: ti.Template, first: ti.i32, size: ti.Template, theta: dtype):
            for p in ti.grouped(x):
                x[p] = theta * element(z, first + size * place(p, x.shape), x) + (1 - theta) * start[p]

        @make
        def residual(
            F: ti.Template,
            z: ti.Template,
            start: ti.Template,
            before: ti.Template,
            rate: ti.Template,
            first: ti.i32,
            size: ti.Template,
            c1: dtype,
            c0: dtype,
            dt: dtype,
        ):
            for p in ti.grouped(start):
                number = first + size * place(p, start.shape)
                change = element(z, number, start) - c1 * start[p] - c0 * before[p] - dt * rate[p]
                put_element(F, number, start, change)

        self.gather, self.blend, self.residual = gather, blend, residual
        self.scatter, self.scatter_at = scatter, scatter_at
        self.put, self.move, self.copy, self.add = put, move, copy, add
        self.advance, self.sum_errors = advance, sum_errors
        self.record, self.show, self.hide = record, show, hide


#: The kernels of each type are made, and compiled for fields of a shape, once.
kernels_of = functools.cache(_Kernels)


class EquationState:
    """Fields that change with time, and those that get their rates: pairs of the same type and shape."""

    def __init__(self, rates: Callable[..., Any], state: Mapping[Any, Any]) -> None:
        if not state:
            raise FieldError("an equation needs fields", caller(), hint="name each with its rate: {x: v, v: a}")
        self.pairs = list(state.items())
        for x, rate in self.pairs:
            for field in (x, rate):
                if not isinstance(field, ti.Field) or field.dtype not in FLOATS:
                    raise FieldError(f"the state of an equation is fields of floats, not {field!r}", caller())
            if (x.dtype, _shape(x)) != (rate.dtype, _shape(rate)):
                raise FieldError(
                    f"'{x.name}' is of {x.dtype} and shape {_shape(x)}, its rate '{rate.name}' of {rate.dtype} and"
                    f" shape {_shape(rate)}",
                    caller(),
                )
        self.rates = rates
        self.takes_time = bool(inspect.signature(rates).parameters)
        self.kernels = [kernels_of(x.dtype, ti.kernel) for x, _ in self.pairs]
        self.size = max(1, sum(size_of(x) for x, _ in self.pairs))

    def paths_of(self, into: Mapping[Any, Any] | None, times: list[float] | None) -> tuple[Any, ...]:
        """For each field of the state the field that gets it at the times, or None."""
        if into and times is None:
            raise FieldError("`into` needs the times of `at`", caller())
        for x, path in (into or {}).items():
            of = next((one for one, _ in self.pairs if one is x), None)
            if of is None:
                raise FieldError(f"'{x.name}' is not in the state", caller())
            shape = (len(times or ()), *of.shape)
            if not isinstance(path, ti.Field) or (path.dtype, path.shape) != (of.dtype, shape):
                raise FieldError(f"the values of '{of.name}' need a field of its kind and shape {shape}", caller())
        return tuple([into.get(x) for x, _ in self.pairs]) if into and times else ()

    def evaluate(self, t: float) -> None:
        """Let the rates be those of the state and time `t`."""
        if self.takes_time:
            self.rates(t)
        else:
            self.rates()


def why_not(t: float, error: float, reason: int, end: float, rtol: float, atol: float, max_steps: int) -> str:
    """Why steps do not reach the end."""
    if math.isnan(error):
        return f"the rates after t = {t} are not numbers"
    if reason == 1:
        return f"no step from t = {t} is small enough for rtol = {rtol}, atol = {atol}"
    return f"{max_steps} steps did not reach {end}: they are at {t}"


def size_of(field: Any) -> int:
    """How many numbers a field has."""
    return math.prod(_shape(field))


def times_of(begin: float, end: float, at: Iterable[float] | None) -> list[float] | None:
    """The times at which a solution is wanted, which are in order."""
    times = None if at is None else [float(t) for t in at]
    sign = 1.0 if end >= begin else -1.0
    if times is not None and (
        any(sign * (b - a) < 0 for a, b in pairwise(times))
        or any(not 0 <= sign * (t - begin) <= sign * (end - begin) for t in times)
    ):
        raise FieldError(f"the times of `at` go from {begin} to {end} in order, not {times}", caller())
    return times


def _shape(field: Any) -> tuple[int, ...]:
    """Of the array that a field is."""
    return (*field.shape, field.n, field.m) if isinstance(field, ti.MatrixField) else field.shape


#: Numbers of a state up to which all steps are one launch, on one thread. Chosen: with rates as cheap as Lorenz's, more
#: would do as well; with those of all pairs of bodies, fewer.
ONE_LAUNCH = 4096


def inlined(rates: Any) -> Any:
    """The device function of a kernel."""
    if isinstance(rates, functools.partial):  # a method
        bound: Any = rates
        return functools.partial(inlined(bound.func), *bound.args)
    return ti.func(rates.__wrapped__)


class _Explicit:
    """The steps of an explicit method, in Python that is also code of the language: with `make=ti.kernel` it launches
    kernels, with `make=ti.func` a kernel consists of it.

    `evaluate`, `step` and `go` are what both run.
    """

    def __init__(
        self, state: EquationState, tableau: Tableau, make: Callable[..., Any], other: Any = None, *, moments: int = 0,
        paths: tuple[Any, ...] = (),
    ) -> None:  # fmt: skip
        self.takes_time, self.size, self.dtype = state.takes_time, state.size, state.pairs[0][0].dtype
        self.rates = state.rates if make is ti.kernel else inlined(state.rates)
        starts = other.starts if other else [like(x, "the start") for x, _ in state.pairs]
        stages = other.stages if other else [like(x, "the rates", len(tableau.times)) for x, _ in state.pairs]
        self.starts, self.stages = starts, stages
        self.total = other.total if other else ti.field(self.dtype, shape=(), needs_grad=False)
        kernels = [kernels_of(x.dtype, make) for x, _ in state.pairs]
        self.rows = tuple(zip(kernels, *zip(*state.pairs, strict=True), starts, stages, strict=True))
        self.count, self.order, self.times = len(tableau.times), tableau.order, tableau.times
        self.weights = tuple(map(_weights_of, tableau.stages))
        is_last = tableau.stages and tableau.weights[: len(tableau.stages)] == tableau.stages[-1]
        self.last = () if is_last else (_weights_of(tableau.weights),)
        self.errors = _weights_of(tableau.errors)
        #: the time, the step that is next, that before, and the error of the last that was tried
        self.control = _memory(ti.f64, 4, make, "the control of the steps")
        #: how many were taken, how many rejected, 1 where no step is small enough and 2 where there were too many, and
        #: how many moments were passed
        self.counts = _memory(ti.i32, 4, make, "the counts of the steps")
        #: times, for each field of the state what gets its values then, and those that have one
        self.moments, self.many = _memory(ti.f64, moments, make, "the times to record") if moments else (), moments
        self.paths = tuple([(*row, path) for row, path in zip(self.rows, paths, strict=False) if path is not None])
        self.ones = tuple(map(_weights_of, ((1.0,), (0.0, 1.0), (-1.0, 1.0))))
        self.smallest = 10 * float(np.finfo(FLOATS[self.dtype]).eps)

    @ti.func
    def evaluate(self, number, t):
        """Let the rates at a stage be those of the state and time `t`."""
        if ti.static(self.takes_time):
            self.rates(t)
        else:
            self.rates()
        for kernels, _, rate, _, stages in ti.static(self.rows):
            kernels.put(stages, number, rate)

    @ti.func
    def step(self, t, dt):
        """Take a step, for which the rates at `t` are there."""
        for kernels, x, _, start, _ in ti.static(self.rows):
            kernels.copy(start, x)
        for number in ti.static(range(1, self.count)):
            for kernels, x, _, start, stages in ti.static(self.rows):
                kernels.advance(x, start, stages, self.weights[number - 1], dt)
            self.evaluate(number, t + ti.cast(self.times[number], ti.f64) * dt)
        for weights in ti.static(self.last):  # without it, the last stage is the result
            for kernels, x, _, start, stages in ti.static(self.rows):
                kernels.advance(x, start, stages, weights, dt)

    @ti.func
    def leap(self, t, dt):
        """Take a step."""
        self.evaluate(0, t)
        self.step(t, dt)

    @ti.func
    def back(self):
        """Let the state be that at the start of the step."""
        for kernels, x, _, start, _ in ti.static(self.rows):
            kernels.copy(x, start)

    @ti.func
    def norm(self, weights, dt, rtol, atol):
        """The weighted sum of rates over a step, in units of the error that is allowed. It is a constant in a tape."""
        self.total[None] = 0.0
        for kernels, x, _, start, stages in ti.static(self.rows):
            kernels.sum_errors(self.total, x, start, stages, weights, dt, rtol, atol)
        return ti.sqrt(ti.stop_gradient(self.total[None]) / self.size)

    @ti.func
    def first_step(self, t, sign, rtol, atol):
        """A first step, by the rates at the beginning and after a small Euler step (Hairer et al., section II.4)."""
        for kernels, x, _, start, stages in ti.static(self.rows):
            kernels.copy(start, x)
            kernels.put(stages, 1, x)
        rate, size = self.norm(self.ones[0], 1.0, rtol, atol), self.norm(self.ones[1], 1.0, rtol, atol)
        small = 1e-6 if size < 1e-5 or rate < 1e-5 else 0.01 * size / rate
        for kernels, x, _, start, stages in ti.static(self.rows):
            kernels.advance(x, start, stages, self.ones[0], sign * small)
        self.evaluate(1, t + sign * small)
        self.back()
        change = self.norm(self.ones[2], 1.0, rtol, atol) / small
        largest = max(rate, change)
        other = max(1e-6, 1e-3 * small) if largest <= 1e-15 else (0.01 / max(largest, 1e-15)) ** (1 / self.order)
        return min(100 * small, other)

    @ti.func
    def begin(self, t, dt):
        """Go on from here. A step of 0 is one to choose."""
        self.control[0], self.control[1] = ti.stop_gradient(t), ti.stop_gradient(dt)
        self.control[2], self.control[3] = 0.0, 0.0
        self.counts[0], self.counts[1], self.counts[2], self.counts[3] = 0, 0, 0, 0

    @ti.func
    def record(self, dt, t, sign):
        """Record the state at the moments that the step before has passed."""
        if ti.static(self.paths):
            number = self.counts[3]
            while number < self.many and sign * (self.moments[min(number, self.many - 1)] - t) <= 0:
                for kernels, x, _, start, stages, path in ti.static(self.paths):
                    kernels.record(path, number, x, start, stages, dt, t - self.moments[number])
                number += 1
            self.counts[3] = number

    @ti.func
    def go(self, stop, begin, end, rtol, atol, most, tries):
        """Take steps until `stop` is reached or passed, at most so many, and so many tries since the beginning."""
        t, dt, before, error = self.control[0], self.control[1], self.control[2], self.control[3]
        taken, rejected, is_stuck, done = self.counts[0], self.counts[1], False, 0
        is_first = taken + rejected == 0
        sign = 1.0 if end >= begin else -1.0
        is_ready = is_first
        if is_first:
            self.record(dt, t, sign)
        if is_first and begin != end:
            self.evaluate(0, t)
            if dt == 0.0:
                dt = sign * self.first_step(t, sign, rtol, atol)
        while sign * (stop - t) > 0 and done < most and taken + rejected < tries and not is_stuck:
            if not is_ready:  # the rates at the start are those of the last stage
                for kernels, _, _, start, stages in ti.static(self.rows):
                    kernels.move(stages, self.count - 1, 0, start)
            is_last = sign * (t + 1.000001 * dt - end) >= 0
            if is_last:
                dt = end - t
            self.step(t, dt)
            error = self.norm(self.errors, dt, rtol, atol)
            factor = 0.2
            if not ti.math.isnan(error):
                factor = min(10.0, max(0.2, 0.9 * max(error, 1e-10) ** (-1 / self.order)))
            is_ready = not error <= 1
            if is_ready:
                self.back()
                rejected += 1
                dt *= min(factor, 0.9)
                is_stuck = abs(dt) <= self.smallest * max(abs(t), abs(end - begin))
            else:
                taken, done, before = taken + 1, done + 1, dt
                t = end if is_last else t + dt
                dt *= factor
                self.record(before, t, sign)
        self.control[0], self.control[1] = ti.stop_gradient(t), ti.stop_gradient(dt)
        self.control[2], self.control[3] = ti.stop_gradient(before), ti.stop_gradient(error)
        is_late = sign * (stop - t) > 0 and done < most
        self.counts[0], self.counts[1] = taken, rejected
        self.counts[2] = 0 if not is_late else 1 if is_stuck else 2
        assert not is_late, f"no step from t = {t} leads to {stop}"


def _memory(dtype: Any, count: int, make: Callable[..., Any], name: str) -> Any:
    """Numbers that steps keep: a list in Python, a field in a kernel."""
    return [0] * count if make is ti.kernel else ti.field(dtype, shape=count, name=name, needs_grad=False)


def _as_launches(steps: _Explicit) -> Any:
    """The same, in which `leap`, `begin` and `go` are one launch each."""

    @ti.kernel
    def leap(t: ti.f64, dt: ti.f64):
        steps.leap(t, dt)

    @ti.kernel
    def begin(t: ti.f64, dt: ti.f64):
        steps.begin(t, dt)

    @ti.kernel
    def go(stop: ti.f64, begin: ti.f64, end: ti.f64, rtol: ti.f64, atol: ti.f64, most: ti.i32, tries: ti.i32):
        steps.go(stop, begin, end, rtol, atol, most, tries)

    memory = {name: getattr(steps, name) for name in ("control", "counts", "moments")}
    return SimpleNamespace(leap=leap, begin=begin, go=go, **memory)


class StepReport(NamedTuple):
    """What `RungeKutta.solve` gives.

    `times`: those at which the state was recorded or shown, or the end; `steps` and `rejected`: how many were taken,
    and tried in vain; `evaluations`: how often the rates were computed.
    """

    times: np.ndarray[Any, Any]
    steps: int
    rejected: int
    evaluations: int


class RungeKutta:
    """Explicit Runge-Kutta methods, with a step that is given or controlled.

    Parameters
    ----------
    rates : callable
        A kernel, or a function that launches kernels, which computes the rates of the state; it takes the time, or
        nothing.
    state : mapping of Field to Field
        Each field of the state and the field that gets its rate. A rate may be a part of the state: {x: v, v: a}.
    method : {"rk4", "dopri5", "midpoint", "heun", "euler"}
        "rk4" is of order 4, "dopri5" (Dormand and Prince) of order 5 and has step control.

    Raises
    ------
    FieldError
        For fields that do not fit.

    References
    ----------
    E. Hairer, S. P. Norsett and G. Wanner, "Solving Ordinary Differential Equations I", 2nd ed., 1993, chapter II.

    Examples
    --------
    >>> x, v = ti.field(ti.f64, shape=()), ti.field(ti.f64, shape=())
    >>> a = ti.field(ti.f64, shape=())
    >>> @ti.kernel
    ... def spring():
    ...     a[None] = -x[None]
    >>> ode = ti.integrate.RungeKutta(spring, {x: v, v: a})
    >>> x[None], v[None] = 1.0, 0.0
    >>> for i in range(100):
    ...     _ = ode.step(i * 0.01, 0.01)
    >>> round(x[None], 6), round(ti.cos(1.0), 6)
    (0.540302, 0.540302)
    """

    def __init__(self, rates: Callable[..., Any], state: Mapping[Any, Any], method: str = "rk4") -> None:
        if method not in METHODS:
            raise FieldError(f"there is no method {method!r}{suggestion(method, METHODS)}", caller())
        self._state = EquationState(rates, state)
        self._tableau = METHODS[method]
        self._method = method
        self._steps = _Explicit(self._state, self._tableau, ti.kernel)
        self._programs = dict[Any, Any]()

    def _program(self, moments: int = 0, paths: tuple[Any, ...] = ()) -> Any:
        """The steps, which record the state at some moments: in few launches for what is small."""
        is_small = self._state.size <= ONE_LAUNCH or ti.cfg.num_threads == 1
        is_one = is_small and ti.cfg.arch == ti.cpu and hasattr(self._state.rates, "__tinote_kernel__")
        key = is_one, moments, paths
        if key not in self._programs:
            make = ti.func if is_one else ti.kernel
            steps = _Explicit(self._state, self._tableau, make, self._steps, moments=moments, paths=paths)
            self._programs[key] = _as_launches(steps) if is_one else steps
        return self._programs[key]

    def step(self, t: float, dt: float) -> float:
        """Take one step.

        Parameters
        ----------
        t, dt : float
            The time, and the step.

        Returns
        -------
        float
            The time after it.

        Examples
        --------
        >>> x, rate = ti.field(ti.f64, shape=()), ti.field(ti.f64, shape=())
        >>> @ti.kernel
        ... def grow():
        ...     rate[None] = x[None]
        >>> x[None] = 1.0
        >>> ti.integrate.RungeKutta(grow, {x: rate}, method="euler").step(0.0, 0.5), x[None]
        (0.5, 1.5)
        """
        self._program().leap(t, dt)
        return t + dt

    def solve(
        self,
        begin: float,
        end: float,
        *,
        rtol: float = 1e-6,
        atol: float = 1e-9,
        at: Iterable[float] | None = None,
        into: Mapping[Any, Any] | None = None,
        each: Callable[[float], object] | None = None,
        first_step: float | None = None,
        max_steps: int = 100_000,
    ) -> StepReport:
        """Integrate from one time to another, with steps whose estimated error is within the tolerances.

        In a tape the steps are constants: gradients are those of the steps that were taken. Where the rates are a
        kernel and the state is small, all steps are one launch on one thread. Then captured steps and pages choose
        their steps, too, if they use `into` rather than `each`; what cannot be reached is a failed assertion there.

        Parameters
        ----------
        begin, end : float
            The times; `end` may be before `begin`.
        rtol, atol : float
            The error of a step in each number y is to be below atol + rtol |y| (root mean square over all).
        at : iterable of float, optional
            Times at which the state is recorded or shown, interpolated to order 4. Without it, `each` sees it after
            each step.
        into : mapping of Field to Field, optional
            For fields of the state the field that gets their values at these times: of the same kind, with the number
            of the time as its first index.
        each : callable, optional
            Gets a time; the fields hold the state then. It must not change them.
        first_step : float, optional
            The step to begin with, by default one that the rates suggest.
        max_steps : int
            The most steps, rejected ones included.

        Returns
        -------
        StepReport
            `times` of the states that were recorded or shown, or the end; `steps` that were taken, `rejected` ones,
            and `evaluations` of the rates.

        Raises
        ------
        SolverError
            Where the tolerances cannot be reached, with the time.
        FieldError
            For a method without an estimate of its error, and for times that are not in order.

        References
        ----------
        E. Hairer, S. P. Norsett and G. Wanner, "Solving Ordinary Differential Equations I", 2nd ed., 1993, section
        II.4.

        Examples
        --------
        >>> x, v = ti.field(ti.f64, shape=()), ti.field(ti.f64, shape=())
        >>> @ti.kernel
        ... def decay(t: ti.f64):
        ...     v[None] = -2.0 * t * x[None]
        >>> ode = ti.integrate.RungeKutta(decay, {x: v}, method="dopri5")
        >>> x[None] = 1.0
        >>> found = []
        >>> _ = ode.solve(0.0, 2.0, rtol=1e-8, at=[1.0, 2.0], each=lambda t: found.append(x[None]))
        >>> [round(y, 6) for y in found]  # exp(-t²)
        [0.367879, 0.018316]
        """
        tableau = self._tableau
        if not tableau.errors:
            message = f"{self._method!r} has no estimate of its error"
            raise FieldError(message, caller(), hint='take steps of your own, or method="dopri5"')
        times = times_of(begin, end, at)
        sign = 1.0 if end >= begin else -1.0
        shown = list[float]()
        paths = self._state.paths_of(into, times)
        program = self._program(len(times or ()) if paths else 0, paths)
        control, counts = program.control, program.counts
        if isinstance(program.moments, ti.Field):
            program.moments.from_numpy(np.array(times))
        elif program.moments:
            program.moments[:] = times
        program.begin(begin, sign * abs(first_step or 0.0))

        def go(stop: float, most: int = max_steps + 1) -> None:
            try:
                program.go(stop, begin, end, rtol, atol, most, max_steps)
            except AssertionError:
                if not counts[2]:  # it is one of the rates'
                    raise
                message = why_not(control[0], control[3], counts[2], end, rtol, atol, max_steps)
                raise SolverError(message, caller()) from None

        if times is None and each is not None:
            while sign * (end - control[0]) > 0:
                go(end, 1)
                shown.append(control[0])
                each(shown[-1])
        for moment in times or ():
            shown.append(moment)
            if each is not None:
                go(moment)
                dt, ago = control[2], control[0] - moment
                for kernels, x, _, start, stages in self._steps.rows:
                    kernels.show(x, start, stages, dt, ago)
                each(moment)
                for kernels, x, _, start, stages in self._steps.rows:
                    kernels.hide(x, start, stages, self._steps.weights[-1], dt, ago)
        go(end)
        begun = 0 if begin == end else 1 if first_step else 2
        taken, rejected = counts[0], counts[1]
        evaluations = begun + (taken + rejected) * (len(tableau.times) - 1)
        return StepReport(np.array(shown or [end]), taken, rejected, evaluations)


class Symplectic:
    """Methods for accelerations that depend on positions, which keep the phase-space volume: energies do not drift.

    Parameters
    ----------
    accelerate : callable
        A kernel, or a function that launches kernels or differentiates a potential, which computes the accelerations.
    position, velocity, acceleration : Field
        Of the same type and shape.
    method : {"leapfrog", "yoshida4", "euler"}
        Of order 2, 4 and 1; they compute the accelerations 1, 3 and 1 times a step.

    Raises
    ------
    FieldError
        For fields that do not fit.

    References
    ----------
    E. Hairer, C. Lubich and G. Wanner, "Geometric Numerical Integration", 2nd ed., 2006, chapters I and II.

    Examples
    --------
    >>> x, v = ti.field(ti.f64, shape=()), ti.field(ti.f64, shape=())
    >>> a = ti.field(ti.f64, shape=())
    >>> @ti.kernel
    ... def spring():
    ...     a[None] = -x[None]
    >>> orbit = ti.integrate.Symplectic(spring, x, v, a)
    >>> x[None], v[None] = 1.0, 0.0
    >>> for _ in range(10_000):
    ...     orbit.step(0.1)
    >>> abs(x[None] ** 2 + v[None] ** 2 - 1.0) < 3e-3
    True
    """

    def __init__(
        self, accelerate: Callable[[], Any], position: Any, velocity: Any, acceleration: Any, method: str = "leapfrog"
    ) -> None:
        if method not in SPLITTINGS:
            raise FieldError(f"there is no method {method!r}{suggestion(method, SPLITTINGS)}", caller())
        self._state = EquationState(accelerate, {position: velocity, velocity: acceleration})
        self._parts = SPLITTINGS[method]

    def step(self, dt: float) -> None:
        """Take one step.

        Parameters
        ----------
        dt : float
            The step.

        Examples
        --------
        >>> x, v = ti.field(ti.f64, shape=()), ti.field(ti.f64, shape=())
        >>> a = ti.field(ti.f64, shape=())
        >>> @ti.kernel
        ... def fall():
        ...     a[None] = -10.0
        >>> ti.integrate.Symplectic(fall, x, v, a).step(0.5)
        >>> x[None], v[None]
        (-1.25, -5.0)
        """
        (x, v), (_, a) = self._state.pairs
        add = self._state.kernels[0].add
        for drift, kick in self._parts:
            if drift:
                add(x, v, drift * dt)
            if kick:
                self._state.evaluate(0.0)
                add(v, a, kick * dt)


class Implicit:
    """Implicit methods for stiff equations.

    Each step solves for the state at its end with Newton's method (`ti.ad.implicit`), and is differentiated by the
    implicit function theorem.

    Parameters
    ----------
    rates : callable
        A kernel, or a function that launches kernels, which computes the rates of the state; it takes the time, or
        nothing.
    state : mapping of Field to Field
        Each field of the state and the field that gets its rate, all with `needs_grad=True`.
    method : {"midpoint", "euler", "bdf2"}
        The implicit midpoint rule is of order 2 and symplectic; the others damp what is stiff: backward Euler is of
        order 1, the backward differentiation formula of order 2, whose step must stay the same.
    jacobian : {"sparse", "dense", "matrix-free"}
        How Newton's method gets the Jacobian, as for `ti.ad.implicit`.
    tol : float, optional
        The norm of the residual that ends Newton's method, as for `ti.ad.implicit`.
    maxiter : int, default 50
        The most iterations of Newton's method in a step.

    Raises
    ------
    FieldError
        For fields that do not fit.

    References
    ----------
    E. Hairer and G. Wanner, "Solving Ordinary Differential Equations II", 2nd ed., 1996, chapters IV and V.

    Examples
    --------
    >>> x = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> rate = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> @ti.kernel
    ... def stiff(t: ti.f64):
    ...     rate[None] = -1000.0 * (x[None] - ti.cos(t))
    >>> ode = ti.integrate.Implicit(stiff, {x: rate}, method="bdf2")
    >>> x[None] = 1.0
    >>> for i in range(100):
    ...     _ = ode.step(i * 0.01, 0.01)
    >>> round(x[None], 3), round(ti.cos(1.0), 3)
    (0.541, 0.54)
    """

    def __init__(
        self,
        rates: Callable[..., Any],
        state: Mapping[Any, Any],
        method: str = "midpoint",
        *,
        jacobian: str = "sparse",
        tol: float | None = None,
        maxiter: int = 50,
    ) -> None:
        if method not in IMPLICIT:
            raise FieldError(f"there is no method {method!r}{suggestion(method, IMPLICIT)}", caller())
        self._state = EquationState(rates, state)
        pairs = self._state.pairs
        if len({x.dtype for x, _ in pairs}) > 1 or not all(field.has_grad for pair in pairs for field in pair):
            raise FieldError("the state and its rates are fields of one type with needs_grad=True", caller())
        self._method = method
        self._starts, self._befores = (
            [like(x, "the start") for x, _ in pairs],
            [like(x, "the state before") for x, _ in pairs],
        )
        #: of each field: itself, its start, what was before that, its rate, and the numbers of its first element and of
        #: numbers an element
        self._rows, count = list[tuple[Any, ...]](), 0
        for (x, rate), start, before in zip(pairs, self._starts, self._befores, strict=True):
            size = size_of(x) // math.prod(x.shape)
            self._rows.append((x, start, before, rate, count, size))
            count += size_of(x)
        dtype = pairs[0][0].dtype
        has_dual = any(x.has_dual for x, _ in pairs) or None
        self._unknown, self._residuals = (
            ti.field(dtype, shape=count, needs_grad=True, needs_dual=has_dual) for _ in range(2)
        )
        self._solvers = {
            name: ti.ad.implicit(
                self._residual(*IMPLICIT[name]),
                self._unknown,
                self._residuals,
                jacobian=jacobian,
                tol=tol,
                maxiter=maxiter,
            )
            for name in dict.fromkeys((method, "midpoint"))
        }
        self._step_before: float | None = None

    def _residual(self, theta: float, c1: float, c0: float, beta: float) -> Callable[[float, float], None]:
        kernels = self._state.kernels[0]

        def residual(t: float, dt: float) -> None:
            for x, start, _, _, first, size in self._rows:
                kernels.blend(x, self._unknown, start, first, size, theta)
            self._state.evaluate(t + theta * dt)
            for _, start, before, rate, first, size in self._rows:
                kernels.residual(self._residuals, self._unknown, start, before, rate, first, size, c1, c0, beta * dt)

        return residual

    def step(self, t: float, dt: float) -> float:
        """Take one step.

        Parameters
        ----------
        t, dt : float
            The time, and the step. With "bdf2", the first step is one of the midpoint rule, and so is the one after
            `restart`.

        Returns
        -------
        float
            The time after it.

        Raises
        ------
        SolverError
            Where Newton's method does not converge.
        FieldError
            Where the step of "bdf2" is another one than before.

        Examples
        --------
        >>> x = ti.field(ti.f64, shape=(), needs_grad=True)
        >>> rate = ti.field(ti.f64, shape=(), needs_grad=True)
        >>> @ti.kernel
        ... def decay():
        ...     rate[None] = -x[None]
        >>> x[None] = 3.0
        >>> ti.integrate.Implicit(decay, {x: rate}, method="euler").step(0.0, 0.5), round(x[None], 9)
        (0.5, 2.0)
        """
        kernels = self._state.kernels[0]
        is_first = self._method == "bdf2" and self._step_before is None
        if self._method == "bdf2" and not is_first and not math.isclose(dt, self._step_before or 0.0):
            raise FieldError(
                f'"bdf2" takes equal steps: {self._step_before}, then {dt}', caller(), hint="call restart() before"
            )
        for (x, _), start, before in zip(self._state.pairs, self._starts, self._befores, strict=True):
            kernels.copy(before, start)
            kernels.copy(start, x)
        for x, _, _, _, first, size in self._rows:
            kernels.gather(self._unknown, x, first, size)
        self._solvers["midpoint" if is_first else self._method](t, dt)
        for x, start, _, _, first, size in self._rows:
            kernels.blend(x, self._unknown, start, first, size, 1.0)
        self._step_before = dt
        return t + dt

    def restart(self) -> None:
        """Forget the steps before: the state has been set, or the step will be another one."""
        self._step_before = None
