"""`ti.ad.implicit`: solutions of nonlinear equations, with the derivatives of the implicit function theorem."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tinote.errors import DifferentiationError, SolverError
from tinote.lang.ad.functional.functional import MissingElementsError, jvp
from tinote.lang.ad.functional.functional import jacobian as jacobian_of
from tinote.lang.ad.solvers.factorisation import Factorisation
from tinote.lang.ad.solvers.implicit_solve import ImplicitSolve, Product
from tinote.lang.ad.solvers.krylov import bicgstab
from tinote.lang.ad.solvers.matrix_free import field_like
from tinote.lang.data.fields import Field
from tinote.lang.data.traced import Traced
from tinote.lang.session.renamed import also_called
from tinote.lang.session.state import recording_as
from tinote.source import Span, caller

Array = np.ndarray[Any, Any]

_JACOBIANS = ("dense", "sparse", "matrix-free")
_MOST_HALVINGS = 12
_CALL = "ti.ad.implicit(residual, unknown=x, into=F)"
#: What no residual is: it stays where none is written.
_UNWRITTEN = -1.2676506e30


@also_called(tolerance="tol", most_iterations="maxiter", deprecated=True)
def implicit(
    residual: Callable[..., Any],
    unknown: Field | None = None,
    into: Field | None = None,
    *,
    jacobian: str = "sparse",
    sparsity: Any = None,
    solve: Callable[..., Any] | None = None,
    linear_solve: Callable[..., Any] | None = None,
    tol: float | None = None,
    maxiter: int = 50,
) -> Callable[..., int]:
    """A function that solves F(x, θ) = 0 for x, and whose derivatives are those of the solution with respect to θ.

    They depend on the solution alone, not on the iterations. The solver takes Newton steps from what x holds, halved
    where F would grow. In a tape and in functional derivatives, reverse mode solves once with the transpose of the
    Jacobian at the solution, and sweeps once through F; forward mode solves once, and second derivatives take two
    solves in place of each. Other fields that F computes on its way vary with the solution: where there are any, F runs
    once more.

    Parameters
    ----------
    residual : callable
        A kernel, or a function that launches kernels, which computes F: it reads `unknown` and all else that F depends
        on, θ, and gives `into` new values, one for each number of x.
    unknown : Field
        x, with `needs_grad=True`; it holds where to begin, and gets the solution.
    into : Field
        F, with `needs_grad=True`.
    jacobian : {"sparse", "dense", "matrix-free"}
        How the Jacobian of F is made: by colouring (SciPy's), whole, or never (BiCGSTAB multiplies by it in forward
        mode, by its transpose in reverse mode).
    sparsity : sparse matrix or array, optional
        Where the Jacobian has elements, as for `ti.ad.jacobian`; that saves finding it once.
    solve : callable, optional
        Takes the place of Newton's method: a function of the same arguments that leaves a solution in `unknown` by any
        means, such as a fixed-point iteration, whose last residual is checked against `tol`.
    linear_solve : callable, optional
        Takes the place of `jacobian`: a function of b, x, `transposed` and the arguments of the residual that leaves
        the solution of J x = b, or of Jᵀ x = b if `transposed` is true, in the field x, which is 0, by any means. J is
        the Jacobian at the solution; b and x are fields like `unknown`.
    tol : float, optional
        The norm of F that ends the iterations: by default 1e-10 in f64 and 1e-5 in f32, times that of F at first where
        this is larger than one.
    maxiter : int, default 50
        The most iterations.

    Returns
    -------
    callable
        Takes the arguments of `residual`, leaves the solution in `unknown`, and returns the number of iterations (0
        with `solve`).

    Raises
    ------
    DifferentiationError
        For fields that do not fit.
    SolverError
        With the residual, where the iterations do not converge or the Jacobian is singular.

    References
    ----------
    A. Griewank and A. Walther, "Evaluating Derivatives", 2nd ed., 2008, chapter 15 (the implicit function theorem).

    Examples
    --------
    >>> x = ti.field(ti.f64, shape=1, needs_grad=True)
    >>> F = ti.field(ti.f64, shape=1, needs_grad=True)
    >>> a = ti.field(ti.f64, shape=1, needs_grad=True)
    >>> y = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> @ti.kernel
    ... def residual():
    ...     F[0] = x[0] ** 2 - a[0]
    >>> @ti.kernel
    ... def measure():
    ...     y[None] += x[0]
    >>> root = ti.ad.implicit(residual, x, F)
    >>> x[0], a[0] = 1.0, 4.0
    >>> with ti.ad.Tape(y):
    ...     _ = root()
    ...     measure()
    >>> round(x[0], 6), round(a.grad[0], 6)
    (2.0, 0.25)
    """
    span = caller()
    unknown = _field(unknown, "unknown", "the field that gets the solution", span)
    into = _field(into, "into", "the field to which the residual writes F", span)
    for field in (unknown, into):
        if field.buffer.sparsity is not None:
            raise DifferentiationError(
                f"'{field.name}' is a sparse field, which ti.ad.implicit does not take",
                span,
                hint="copy what is active to a dense field in a kernel, and solve for that",
            )
    if unknown is into:
        raise DifferentiationError(
            f"'{unknown.name}' is both unknown and into of ti.ad.implicit", span, hint=f"into is another field: {_CALL}"
        )
    if unknown.held().size != into.held().size:
        raise DifferentiationError(
            f"ti.ad.implicit needs one equation for each unknown: '{unknown.name}' has "
            f"{unknown.held().size} numbers, and '{into.name}' {into.held().size}",
            span,
        )
    if not callable(residual) or not all(one is None or callable(one) for one in (solve, linear_solve)):
        raise DifferentiationError("residual, solve and linear_solve of ti.ad.implicit are kernels or functions", span)
    if jacobian not in _JACOBIANS:
        raise DifferentiationError(f"jacobian is one of {', '.join(_JACOBIANS)}, not {jacobian!r}", span)
    if tol is not None and (not isinstance(tol, int | float | np.number) or not tol > 0):
        raise DifferentiationError(f"tol is the norm of a residual, larger than 0, not {tol!r}", span)
    if not isinstance(maxiter, int | np.integer) or isinstance(maxiter, bool) or maxiter < 1:
        raise DifferentiationError(f"maxiter is a number of at least 1, not {maxiter!r}", span)
    return _Implicit(residual, unknown, into, jacobian, sparsity, solve, linear_solve, tol, maxiter)


def _field(given: Any, name: str, role: str, span: Span) -> Field:
    """An argument of `implicit` that is a field of floats with a gradient. Raises `DifferentiationError`."""
    if not isinstance(given, Field) or given.dtype.kind != "f":
        hint = f"{role} is an argument: {_CALL}"
        if given is None:
            raise DifferentiationError(f"ti.ad.implicit needs {name}, {role}", span, hint=hint)
        raise DifferentiationError(f"{name} of ti.ad.implicit is a field of floats, not {given!r}", span, hint=hint)
    if not given.has_grad:
        raise DifferentiationError(
            f"'{given.name}', {name} of ti.ad.implicit, has no gradient", span, hint="make it with needs_grad=True"
        )
    return given


class _Implicit:
    """What `implicit` gives."""

    def __init__(
        self,
        residual: Callable[..., Any],
        unknown: Field,
        into: Field,
        jacobian: str,
        sparsity: Any,
        solve: Callable[..., Any] | None,
        linear_solve: Callable[..., Any] | None,
        tolerance: float | None,
        most: int,
    ) -> None:
        functools.update_wrapper(self, residual, updated=())
        self._residual = residual
        self._unknown = unknown
        self._into = into
        self._kind = jacobian
        self._sparsity = sparsity
        #: the pattern that was found, where none is given
        self._found: Any = None
        self._own, self._own_linear = solve, linear_solve
        self._tolerance = tolerance
        self._most = most
        self._is_written = False  # whether the residual was seen to write `into`
        unknown.ensure_dual()
        into.ensure_dual()

    def __call__(self, *args: Any, **kwargs: Any) -> int:
        span = caller()
        if any(type(one) is Traced and one.number for one in (*args, *kwargs.values())):
            raise DifferentiationError(
                "a number that depends on what is differentiated is an argument of an implicit function, which has no "
                "derivative by it",
                span,
                hint="write it to a field that the residual reads",
            )
        run = functools.partial(self._residual, *args, **kwargs)
        taken = 0

        def solve() -> None:
            nonlocal taken
            if self._own is None:
                taken = self._newton(run, span)
            else:
                self._own(*args, **kwargs)
                norm = self._first_norm(run, span)
                if not norm <= self._least(norm):
                    raise _not_converged("the residual after `solve`", norm, self._least(norm), span)

        if self._own_linear is None:
            linear = functools.partial(self._linear, run, span)
        else:
            linear = functools.partial(self._linear_by_own, args, kwargs)
        name = f"implicit function of '{getattr(self._residual, '__name__', 'residual')}'"
        ImplicitSolve(run, self._unknown, self._unknown, self._into, None, solve, linear, name, span).perform()
        return taken

    # ---- Newton's method

    def _newton(self, run: Callable[[], Any], span: Span) -> int:
        x = self._unknown.held()
        norm = self._first_norm(run, span)
        least = self._least(norm if self._tolerance is None else 0.0)
        for taken in range(self._most):
            if norm <= least:
                return taken
            if not np.isfinite(norm):
                break
            value = self._into.held().astype(np.float64).ravel()
            step = self._linear(run, span, None, False)(-value).reshape(x.shape)
            before, norm_before, length = x.copy(), norm, 1.0
            for _ in range(_MOST_HALVINGS):
                self._unknown.from_numpy((before + length * step).astype(x.dtype))
                norm = self._norm(run)
                if norm < norm_before:
                    break
                length /= 2
            else:
                self._unknown.from_numpy(before)
                norm = self._norm(run)
                break
        if norm <= least:
            return self._most
        raise _not_converged(f"Newton's method, of {self._most} steps at most,", norm, least, span)

    def _first_norm(self, run: Callable[[], Any], span: Span) -> float:
        """The norm of F. Raises `DifferentiationError` where the residual does not write `into`: what it holds would be
        taken for F.
        """
        if self._is_written:
            return self._norm(run)
        before = self._into.held().copy()
        marked = np.full_like(before, _UNWRITTEN)
        self._into.from_numpy(marked)
        run()
        after = self._into.held().copy()
        self._into.from_numpy(np.where(after == marked, before, after))
        if after.size and (after == marked).all():
            name = getattr(self._residual, "__name__", "residual")
            raise DifferentiationError(
                f"'{name}' gives '{self._into.name}', into of ti.ad.implicit, no new values",
                span,
                hint=f"into is the field to which the residual writes F: {_CALL}",
            )
        self._is_written = True
        return float(np.linalg.norm(self._into.held().astype(np.float64)))

    def _norm(self, run: Callable[[], Any]) -> float:
        run()
        return float(np.linalg.norm(self._into.held().astype(np.float64)))

    def _least(self, norm: float) -> float:
        if self._tolerance is not None:
            return self._tolerance
        return (1e-10 if self._unknown.dtype.size == 8 else 1e-5) * max(1.0, norm if self._own is None else 0.0)

    # ---- linear systems with the Jacobian

    def _linear(self, run: Callable[[], Any], span: Span, transposed: Product | None, is_transposed: bool) -> Product:
        if self._kind == "matrix-free":
            return self._krylov(run, span, transposed, is_transposed)
        size = self._unknown.held().size
        with recording_as(None):
            if self._kind == "dense":
                full = jacobian_of(run, wrt=self._unknown, output=self._into, mode="forward")()
                matrix = np.asarray(full, np.float64).reshape(size, size)
                return functools.partial(_dense, matrix.T if is_transposed else matrix, span)
            found = self._sparse(run)
        factors = Factorisation(found.astype(np.float64).tocsc(), "LU", "COLAMD", span)
        return lambda vector: factors.solve(vector, is_transposed)

    def _linear_by_own(self, args: tuple[Any, ...], kwargs: dict[str, Any], _: Product, is_transposed: bool) -> Product:
        assert self._own_linear is not None
        own, held = self._own_linear, self._unknown.held()

        def solved(vector: Array) -> Array:
            b, x = self._vectors
            with recording_as(None):
                b.from_numpy(vector.reshape(held.shape).astype(held.dtype))
                x.fill(0)
                own(b, x, is_transposed, *args, **kwargs)
            return x.held().astype(np.float64).ravel()

        return solved

    @functools.cached_property
    def _vectors(self) -> tuple[Field, Field]:
        """A right side and a solution."""
        return field_like(self._unknown), field_like(self._unknown)

    def _sparse(self, run: Callable[[], Any]) -> Any:
        """The Jacobian with the elements that it had before, as long as these do."""
        of = functools.partial(jacobian_of, run, wrt=self._unknown, output=self._into, sparse=True)
        if self._sparsity is not None:
            return of(sparsity=self._sparsity)()
        if self._found is not None:
            try:
                return of(sparsity=self._found)()
            except MissingElementsError:
                pass  # the residual takes another path now
        self._found = of()()
        return self._found

    def _krylov(self, run: Callable[[], Any], span: Span, transposed: Product | None, is_transposed: bool) -> Product:
        along, held = jvp(run, wrt=self._unknown, output=self._into), self._unknown.held()

        def product(vector: Array) -> Array:
            found = along(vector.reshape(held.shape).astype(held.dtype))[1]
            return np.asarray(found, np.float64).ravel()

        by: Product = transposed if is_transposed and transposed is not None else product
        relative = 1e-12 if held.dtype == np.float64 else 1e-6

        def solved(vector: Array) -> Array:
            with recording_as(None):
                least = relative * float(np.linalg.norm(vector))
                return bicgstab(by, vector, np.zeros(vector.size), least, 20 * vector.size + 100, span)

        return solved


def _dense(matrix: Array, span: Span, vector: Array) -> Array:
    try:
        return np.linalg.solve(matrix, vector)
    except np.linalg.LinAlgError:
        raise SolverError("the Jacobian is singular", span) from None


def _not_converged(what: str, norm: float, least: float, span: Span) -> SolverError:
    error = SolverError(
        f"{what} did not converge: the norm of the residual is {norm:.3g}, and {least:.3g} is required",
        span,
        hint="begin nearer to the solution, or allow a larger tol",
    )
    error.residual = norm
    return error
