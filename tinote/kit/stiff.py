"""Stiff differential equations with steps and orders that are chosen: `ti.integrate.BDF`.

A solution is one launch, of a kernel in which the rates are inlined: also its Jacobians, its linear systems and its
Newton iterations, in bands.
"""

import functools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

import tinote as ti
from tinote.errors import FieldError, SolverError
from tinote.kit.integrate import FLOATS, EquationState, StepReport, inlined, kernels_of, size_of, times_of, why_not
from tinote.source import caller

__all__ = ["BDF"]

#: The most iterations of Newton's method in a step, as in Shampine and Reichelt's program.
NEWTON = 4
#: The highest order.
HIGHEST = 5
#: Of the orders 0 to 5: the parameters that make errors smaller (Shampine and Reichelt, table 1).
KAPPA = np.array([0, -0.1850, -1 / 9, -0.0823, -0.0415, 0])
GAMMA = np.concatenate([[0], np.cumsum(1 / np.arange(1, 6))])
#: Rows: the sums of 1/k, what divides the step, and the constants of the error.
TABLE = np.array([GAMMA, (1 - KAPPA) * GAMMA, KAPPA * GAMMA + 1 / np.arange(1, 7)])


class _Formulas:
    """The program of a solution, which is code of the language: numbers of the state are in a row, in `y`."""

    def __init__(self, state: EquationState, below: int, above: int, moments: int, paths: tuple[Any, ...]) -> None:
        self.takes_time, self.rates, self.count = state.takes_time, inlined(state.rates), state.size
        self.dtype = state.pairs[0][0].dtype
        self.below, self.above, self.width = below, above, 2 * below + above + 1
        self.groups = min(below + above + 1, self.count)
        kernels, first, rows = kernels_of(self.dtype, ti.func), 0, list[Any]()
        for number, (x, rate) in enumerate(state.pairs):
            size = size_of(x) // max(1, math.prod(x.shape))
            rows.append((x, rate, first, size, paths[number] if paths else None))
            first += size_of(x)
        self.kernels, self.rows = kernels, tuple(rows)
        self.paths = tuple([row for row in rows if row[4] is not None])
        options = {"needs_grad": state.pairs[0][0].has_grad, "needs_dual": state.pairs[0][0].has_dual or None}
        made = functools.partial(ti.field, self.dtype, **options)
        #: the state that is tried, its rates, its difference from the prediction, what Newton's method solves for, and
        #: what the formula has of the past
        self.y, self.f, self.d, self.w, self.past = (made(shape=self.count) for _ in range(5))
        #: the backward differences of the state, of each order
        self.differences = made(shape=(HIGHEST + 3, self.count))
        constant = functools.partial(ti.field, needs_grad=False)
        #: the Jacobian in rows of a band, what is factorised, and which rows were swapped
        self.jacobian = constant(self.dtype, shape=(self.count, below + above + 1))
        self.factors = constant(self.dtype, shape=(self.count, self.width))
        self.pivots = ti.field(ti.i32, shape=self.count)
        #: the time and the error of the last step; how many were taken and rejected, evaluations of the rates, moments
        #: that were passed, and 1 where no step is small enough, 2 where there were too many
        self.control, self.counts = constant(ti.f64, shape=2), ti.field(ti.i32, shape=5)
        self.table = constant(ti.f64, shape=TABLE.shape)
        self.table.from_numpy(TABLE)
        self.moments, self.many = constant(ti.f64, shape=moments) if moments else (), moments
        self.eps = float(np.finfo(FLOATS[self.dtype]).eps)

    @ti.func
    def evaluate(self, t):
        """Let `f` be the rates of `y`."""
        for x, _, first, size, _ in ti.static(self.rows):
            self.kernels.scatter(x, self.y, first, size)
        if ti.static(self.takes_time):
            self.rates(t)
        else:
            self.rates()
        for _, rate, first, size, _ in ti.static(self.rows):
            self.kernels.gather(self.f, rate, first, size)

    @ti.func
    def norm(self, of, number, factor, rtol, atol):
        """The root mean square of a difference, in units of the error that is allowed."""
        total = 0 * factor
        for i in range(self.count):
            value = self.d[i]
            if ti.static(of is self.differences):
                value = of[number, i]
            ratio = value / (atol + rtol * abs(self.y[i]))
            total += ti.stop_gradient(ratio * ratio)
        return abs(factor) * ti.sqrt(total / self.count)

    @ti.func
    def rescale(self, order, factor):
        """Let the differences be those for a step that is `factor` times as long."""
        for i in range(self.count):
            at = ti.Vector([ti.cast(0, self.dtype)] * (HIGHEST + 1))
            for j in ti.static(range(HIGHEST + 1)):
                weight = 1 + 0 * factor
                for k in ti.static(range(HIGHEST + 1)):
                    if k <= order:
                        at[j] += ti.cast(weight, self.dtype) * self.differences[k, i]
                    weight *= (k - factor * j) / (k + 1)
            for k in ti.static(range(1, HIGHEST + 1)):
                for j in ti.static(range(HIGHEST, k - 1, -1)):
                    at[j] = at[j - 1] - at[j]
            for k in ti.static(range(HIGHEST + 1)):
                if k <= order:
                    self.differences[k, i] = at[k]

    @ti.func
    def differentiate(self, t, atol):
        """Let the Jacobian be that at `y`, by differences; columns of a group have no row in common."""
        self.evaluate(t)
        for i in range(self.count):
            self.w[i], self.d[i] = self.f[i], self.y[i]
        for group in range(self.groups):
            for i in range(self.count):
                if i % self.groups == group:
                    self.y[i] = self.d[i] + self.shift(i, atol)
            self.evaluate(t)
            for i in range(self.count):
                for c in range(self.below + self.above + 1):
                    j = i + c - self.below
                    if j >= 0 and j < self.count and j % self.groups == group:
                        slope = (self.f[i] - self.w[i]) / (self.y[j] - self.d[j])
                        self.jacobian[i, c] = ti.stop_gradient(slope)
            for i in range(self.count):
                self.y[i] = self.d[i]

    @ti.func
    def shift(self, i, atol):
        size = ti.sqrt(self.eps) * max(ti.cast(atol, self.dtype), abs(self.d[i]))
        return ti.stop_gradient(-size if self.w[i] < 0 else size)

    @ti.func
    def factorise(self, c):
        """Factorise 1 - c J by Gauss's elimination with row pivots, in bands as LAPACK's `gbtrf`."""
        for i in range(self.count):
            for k in range(self.width):
                self.factors[i, k] = 0.0
            for k in range(self.below + self.above + 1):
                j = i + k - self.below
                if j >= 0 and j < self.count:
                    unit = 1.0 if i == j else 0.0
                    self.factors[i, k] = unit - ti.stop_gradient(c) * self.jacobian[i, k]
        for k in range(self.count):
            last, best, most = min(k + self.below + 1, self.count), k, abs(self.factors[k, self.below])
            for i in range(k + 1, last):
                size = abs(self.factors[i, k - i + self.below])
                if size > most:
                    best, most = i, size
            self.pivots[k] = best
            reach = min(self.below + self.above + 1, self.count - k)
            if best != k:
                for j in range(reach):
                    kept = self.factors[k, j + self.below]
                    self.factors[k, j + self.below] = self.factors[best, k + j - best + self.below]
                    self.factors[best, k + j - best + self.below] = kept
            for i in range(k + 1, last):
                ratio = self.factors[i, k - i + self.below] / self.factors[k, self.below]
                self.factors[i, k - i + self.below] = ratio
                for j in range(1, reach):
                    self.factors[i, k + j - i + self.below] -= ratio * self.factors[k, j + self.below]

    @ti.func
    def solve(self):
        """Let `w` be the solution of the factorised system, whose right-hand side it is."""
        for k in range(self.count):
            best = self.pivots[k]
            kept = self.w[best]
            if best != k:
                self.w[best] = self.w[k]
                self.w[k] = kept
            for i in range(k + 1, min(k + self.below + 1, self.count)):
                self.w[i] -= self.factors[i, k - i + self.below] * kept
        for k in range(self.count):
            i = self.count - 1 - k
            total = self.w[i]
            for j in range(1, min(self.below + self.above + 1, self.count - i)):
                total -= self.factors[i, j + self.below] * self.w[i + j]
            self.w[i] = total / self.factors[i, self.below]

    @ti.func
    def first_step(self, t, sign, end, rtol, atol):
        """As that of explicit methods (Hairer et al., section II.4), for a method of order 1."""
        size, rate, change = 0 * t, 0 * t, 0 * t
        for i in range(self.count):
            scale = atol + rtol * abs(self.y[i])
            size += ti.stop_gradient((self.y[i] / scale) ** 2)
            rate += ti.stop_gradient((self.f[i] / scale) ** 2)
            self.d[i], self.w[i] = self.y[i], self.f[i]
        size, rate = ti.sqrt(size / self.count), ti.sqrt(rate / self.count)
        small = 1e-6 + 0 * t
        if size >= 1e-5 and rate >= 1e-5:
            small = 0.01 * size / rate
        small = min(small, abs(end - t))
        for i in range(self.count):
            self.y[i] += ti.cast(sign * small, self.dtype) * self.w[i]
        self.evaluate(t + sign * small)
        for i in range(self.count):
            scale = atol + rtol * abs(self.d[i])
            change += ti.stop_gradient(((self.f[i] - self.w[i]) / scale) ** 2)
            self.y[i], self.f[i] = self.d[i], self.w[i]
        largest = max(rate, ti.sqrt(change / self.count) / small)
        other = ti.sqrt(0.01 / max(largest, 1e-15)) if largest > 1e-15 else max(1e-6, 1e-3 * small)
        return min(100 * small, other, abs(end - t))

    @ti.func
    def record(self, t, dt, order, sign):
        """Record the state at the moments that the step before has passed."""
        if ti.static(self.paths):
            number = self.counts[3]
            while number < self.many and sign * (self.moments[min(number, self.many - 1)] - t) <= 0:
                ago = (self.moments[number] - t) / dt if dt != 0 else 0 * dt
                for i in range(self.count):
                    weight, total = 1 + 0 * dt, 0 * self.y[i]
                    for k in ti.static(range(HIGHEST + 1)):
                        if k <= order:
                            total += ti.cast(weight, self.dtype) * self.differences[k, i]
                        weight *= (ago + k) / (k + 1)
                    self.w[i] = total
                for x, _, first, size, path in ti.static(self.paths):
                    self.kernels.scatter_at(path, number, x, self.w, first, size)
                number += 1
            self.counts[3] = number

    @ti.func
    def predict(self, order):
        """Let `y` be the prediction, and `past` what the formula has of the past."""
        for i in range(self.count):
            total, past = 0 * self.y[i], 0 * self.y[i]
            for k in ti.static(range(HIGHEST + 1)):
                if k <= order:
                    total += self.differences[k, i]
                    past += ti.cast(self.table[0, k] / self.table[1, order], self.dtype) * self.differences[k, i]
            self.y[i], self.past[i] = total, past

    @ti.func
    def newton(self, t, c, rtol, atol):
        """Solve for `y` and its difference `d` from the prediction: whether it converged, the number of iterations, and
        the last change in units of the error that is allowed.
        """
        tolerance = max(10 * self.eps / rtol, min(0.03, ti.sqrt(rtol)))
        has_converged, is_diverging, iterations, change = False, False, 0, 0 * t
        for i in range(self.count):
            self.d[i] = 0.0
        while not has_converged and not is_diverging and iterations < NEWTON:
            self.evaluate(t)
            for i in range(self.count):
                self.w[i] = ti.cast(c, self.dtype) * self.f[i] - self.past[i] - self.d[i]
            self.solve()
            before, total = change, 0 * t
            for i in range(self.count):
                ratio = self.w[i] / (atol + rtol * abs(self.y[i] - self.d[i]))
                total += ti.stop_gradient(ratio * ratio)
            change = ti.sqrt(total / self.count)
            rate = change / before if iterations > 0 else 0 * change
            left = NEWTON - iterations
            gets_there = iterations == 0 or (rate < 1 and rate**left / (1 - rate) * change <= tolerance)
            if not (gets_there and change < 1e300):
                is_diverging = True
            else:
                for i in range(self.count):
                    self.y[i] += self.w[i]
                    self.d[i] += self.w[i]
                has_converged = change == 0 or (iterations > 0 and rate / (1 - rate) * change < tolerance)
            iterations += 1
        return has_converged, iterations, change

    @ti.func
    def accept(self, order):
        """Let the differences be those at the end of a step, whose correction of the prediction is `d`."""
        for i in range(self.count):
            self.differences[order + 2, i] = self.d[i] - self.differences[order + 1, i]
            self.differences[order + 1, i] = self.d[i]
            for k in ti.static(range(HIGHEST, -1, -1)):
                if k <= order:
                    self.differences[k, i] += self.differences[k + 1, i]

    @ti.func
    def gain(self, other, rtol, atol):
        """How much longer a step of another order could be."""
        error = self.norm(self.differences, other + 1, self.table[2, min(other, HIGHEST)], rtol, atol)
        return max(error, 1e-10) ** (-1 / (other + 1)) if other > 0 and other <= HIGHEST else 0 * error

    @ti.func
    def go(self, begin, end, dt, rtol, atol, tries):
        """Go from one time to another. A step of 0 is one to choose."""
        t, sign, error, factor = 1 * begin, 1.0 if end >= begin else -1.0, 0 * begin, 1 + 0 * begin
        taken, rejected, evaluations, order, equal, is_stuck = 0, 0, 0, 1, 0, False
        has_jacobian, is_current, has_factors = False, False, False
        for x, _, first, size, _ in ti.static(self.rows):
            self.kernels.gather(self.y, x, first, size)
        if begin != end:
            self.evaluate(t)
            evaluations += 1
            if dt == 0.0:
                dt = sign * self.first_step(t, sign, end, rtol, atol)
                evaluations += 1
        for i in range(self.count):
            self.differences[0, i], self.differences[1, i] = self.y[i], ti.cast(dt, self.dtype) * self.f[i]
            for k in range(2, HIGHEST + 3):
                self.differences[k, i] = 0.0
        self.counts[3], self.counts[4] = 0, 0
        self.record(t, dt, order, sign)
        while sign * (end - t) > 0 and taken + rejected < tries and not is_stuck:
            is_last = sign * (t + 1.000001 * factor * dt - end) >= 0
            if is_last:
                factor = (end - t) / dt
            if factor != 1:
                self.rescale(order, factor)
                dt, factor, equal, has_factors = dt * factor, 1 + 0 * t, 0, False
            after, c = end if is_last else t + dt, dt / self.table[1, order]
            self.predict(order)
            if not has_jacobian:
                self.differentiate(after, atol)
                evaluations += 1 + self.groups
                has_jacobian, is_current, has_factors = True, True, False
            if not has_factors:
                self.factorise(c)
                has_factors = True
            has_converged, iterations, change = self.newton(after, c, rtol, atol)
            evaluations += iterations
            safety = 0.9 * (2 * NEWTON + 1) / (2 * NEWTON + iterations)
            if has_converged:
                error = self.norm(self.d, 0, self.table[2, order], rtol, atol)
                if error <= 1:
                    taken, equal, t, is_current = taken + 1, equal + 1, after, False
                    self.accept(order)
                    self.record(t, dt, order, sign)
                    if equal > order:  # enough steps of one length for the differences of one order more
                        same = max(error, 1e-10) ** (-1 / (order + 1))
                        lower = self.gain(order - 1, rtol, atol)
                        higher = self.gain(order + 1, rtol, atol)
                        factor = min(10.0, safety * max(lower, same, higher))
                        equal = 0
                        if lower > same and lower >= higher:
                            order -= 1
                        elif higher > same:
                            order += 1
                        has_factors = False
                else:
                    factor = max(0.2, safety * error ** (-1 / (order + 1)))
                    rejected += 1
            else:
                error = change
                if is_current:
                    factor = 0.5
                    rejected += 1
                has_jacobian = is_current
            is_stuck = factor < 1 and abs(factor * dt) <= 10 * self.eps * abs(t)
        for i in range(self.count):
            self.y[i] = self.differences[0, i]
        for x, _, first, size, _ in ti.static(self.rows):
            self.kernels.scatter(x, self.y, first, size)
        self.control[0], self.control[1] = ti.stop_gradient(t), ti.stop_gradient(error)
        is_late = sign * (end - t) > 0
        self.counts[0], self.counts[1], self.counts[2] = taken, rejected, evaluations
        self.counts[4] = 0 if not is_late else 1 if is_stuck else 2
        assert not is_late, f"no step from t = {t} leads to {end}"


def _launch(formulas: _Formulas) -> Any:
    @ti.kernel
    def go(begin: ti.f64, end: ti.f64, dt: ti.f64, rtol: ti.f64, atol: ti.f64, tries: ti.i32):
        formulas.go(begin, end, dt, rtol, atol, tries)

    return go


class BDF:
    """Backward differentiation formulas of orders 1 to 5 for stiff equations, with steps and orders that are chosen.

    They are Shampine and Reichelt's, on backward differences that are made for another length when the step changes.
    The rates are inlined in one kernel, so that a solution is one launch on one thread, and captured steps and pages
    choose their steps, too. Jacobians are made by differences, once in many steps, and factorised in their band.

    Parameters
    ----------
    rates : kernel
        Computes the rates of the state; it takes the time, or nothing.
    state : mapping of Field to Field
        Each field of the state and the field that gets its rate, all of one type.
    band : (int, int), optional
        How many numbers below and above itself a rate depends on, where those of the state are counted field by field
        and row by row. By default any may depend on any.

    Raises
    ------
    FieldError
        For fields that do not fit, and where the rates are not a kernel.

    References
    ----------
    L. F. Shampine and M. W. Reichelt, "The MATLAB ODE Suite", SIAM J. Sci. Comput. 18 (1997) 1; G. D. Byrne and
    A. C. Hindmarsh, "A Polyalgorithm for the Numerical Solution of Ordinary Differential Equations", ACM Trans. Math.
    Softw. 1 (1975) 71.

    Examples
    --------
    >>> x = ti.Vector.field(3, ti.f64, shape=())
    >>> rate = ti.Vector.field(3, ti.f64, shape=())
    >>> @ti.kernel
    ... def robertson():
    ...     a, b, c = x[None]
    ...     made, used = 0.04 * a - 1e4 * b * c, 3e7 * b * b
    ...     rate[None] = ti.Vector([-made, made - used, used])
    >>> x[None] = [1.0, 0.0, 0.0]
    >>> report = ti.integrate.BDF(robertson, {x: rate}).solve(0.0, 40.0, rtol=1e-6, atol=1e-10)
    >>> [round(number, 5) for number in x[None]]
    [0.71583, 1e-05, 0.28416]
    """

    def __init__(
        self, rates: Callable[..., Any], state: Mapping[Any, Any], *, band: tuple[int, int] | None = None
    ) -> None:
        if not hasattr(rates, "__tinote_kernel__"):
            raise FieldError("the rates for `BDF` are a kernel", caller())
        self._state = EquationState(rates, state)
        if len({x.dtype for x, _ in self._state.pairs}) > 1:
            raise FieldError("the state and its rates are fields of one type", caller())
        widest = self._state.size - 1
        below, above = (widest, widest) if band is None else band
        if min(below, above) < 0:
            raise FieldError(f"a band has numbers of diagonals below and above, not {band}", caller())
        self._band = min(below, widest), min(above, widest)
        self._programs = dict[Any, Any]()

    def solve(
        self,
        begin: float,
        end: float,
        *,
        rtol: float = 1e-6,
        atol: float = 1e-9,
        at: Iterable[float] | None = None,
        into: Mapping[Any, Any] | None = None,
        first_step: float | None = None,
        max_steps: int = 100_000,
    ) -> StepReport:
        """Integrate from one time to another, with steps whose estimated error is within the tolerances.

        In a tape steps, orders and Jacobians are constants: gradients are those of the iterations of Newton's method
        that were done, and as exact as these.

        Parameters
        ----------
        begin, end : float
            The times; `end` may be before `begin`.
        rtol, atol : float
            The error of a step in each number y is to be below atol + rtol |y| (root mean square over all).
        at : iterable of float, optional
            Times at which the state is recorded, interpolated by the formula of the step.
        into : mapping of Field to Field, optional
            For fields of the state the field that gets their values at these times: of the same kind, with the number
            of the time as its first index.
        first_step : float, optional
            The step to begin with, by default one that the rates suggest.
        max_steps : int
            The most steps, rejected ones included.

        Returns
        -------
        StepReport
            `times` of the states that were recorded, or the end; `steps` that were taken, `rejected` ones, and
            `evaluations` of the rates.

        Raises
        ------
        SolverError
            Where the tolerances cannot be reached, with the time.
        FieldError
            For times that are not in order.

        Examples
        --------
        >>> x, rate = ti.field(ti.f64, shape=()), ti.field(ti.f64, shape=())
        >>> @ti.kernel
        ... def stiff(t: ti.f64):
        ...     rate[None] = -1e6 * (x[None] - ti.cos(t))
        >>> x[None] = 0.0
        >>> report = ti.integrate.BDF(stiff, {x: rate}).solve(0.0, 1.0)
        >>> round(x[None], 5), report.steps < 200
        (0.5403, True)
        """
        times = times_of(begin, end, at)
        paths = self._state.paths_of(into, times)
        key = len(times or ()) if paths else 0, paths
        if key not in self._programs:
            formulas = _Formulas(self._state, *self._band, *key)
            self._programs[key] = formulas, _launch(formulas)
        formulas, go = self._programs[key]
        if paths:
            formulas.moments.from_numpy(np.array(times))
        counts, step = formulas.counts, math.copysign(first_step or 0.0, end - begin)
        try:
            go(begin, end, step, rtol, atol, max_steps)
        except AssertionError:
            if not counts[4]:  # it is one of the rates'
                raise
            t, error = formulas.control.to_numpy()
            raise SolverError(why_not(t, error, counts[4], end, rtol, atol, max_steps), caller()) from None
        return StepReport(np.array(times or [end]), counts[0], counts[1], counts[2])
