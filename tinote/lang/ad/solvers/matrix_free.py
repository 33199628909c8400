"""Linear solvers that know the matrix by a kernel that multiplies by it.

    @ti.kernel
    def laplacian(x: ti.template(), Ax: ti.template()):
        for i in x: ...

    ti.linalg.MatrixFreeCG(ti.linalg.LinearOperator(laplacian), b, x)

In a tape, in functional derivatives of first order and in forward mode the solution has derivatives with respect to `b`
and to all that the kernel reads besides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinote.errors import FieldError
from tinote.ir.types import Tensor
from tinote.lang.ad.solvers.implicit_solve import ImplicitSolve, Product
from tinote.lang.ad.solvers.krylov import bicgstab, conjugate_gradients, refuse_limits
from tinote.lang.data.declarations import field
from tinote.lang.data.fields import Field
from tinote.lang.data.matrix import Matrix, Vector
from tinote.lang.data.ndarrays import Ndarray, ndarray
from tinote.lang.session.state import recording_as, session
from tinote.source import caller

Array = np.ndarray[Any, Any]


class LinearOperator:
    """A matrix that is given by its product with a vector.

    Parameters
    ----------
    matvec_kernel : callable
        A kernel, or a function that launches kernels: `matvec_kernel(x, Ax)` reads the field or ndarray `x` and gives
        `Ax`, of the same shape, new values.

    Examples
    --------
    >>> @ti.kernel
    ... def laplacian(x: ti.template(), Ax: ti.template()):
    ...     for i in x:
    ...         Ax[i] = 2.0 * x[i]
    ...         if i > 0:
    ...             Ax[i] -= x[i - 1]
    ...         if i < x.shape[0] - 1:
    ...             Ax[i] -= x[i + 1]
    >>> A = ti.linalg.LinearOperator(laplacian)
    >>> x, Ax = ti.field(ti.f64, shape=3), ti.field(ti.f64, shape=3)
    >>> x.fill(1.0)
    >>> A.matvec(x, Ax)
    >>> Ax.to_numpy()
    array([1., 0., 1.])
    """

    def __init__(self, matvec_kernel: Callable[[Any, Any], Any]) -> None:
        if not callable(matvec_kernel):
            raise FieldError(f"a linear operator is made of a kernel, not of {matvec_kernel!r}", caller())
        self._product = matvec_kernel
        self._scratch: dict[tuple[Any, ...], tuple[Field, Field, Field]] = {}

    def matvec(self, x: Field, Ax: Field) -> None:
        """Multiply a vector by the matrix.

        Parameters
        ----------
        x : Field or Ndarray
            The vector.
        Ax : Field or Ndarray
            Where the product is left, of the same shape.

        Raises
        ------
        FieldError
            Where the shapes differ.

        Examples
        --------
        >>> @ti.kernel
        ... def double(x: ti.template(), Ax: ti.template()):
        ...     for i in x:
        ...         Ax[i] = 2 * x[i]
        >>> x, Ax = ti.field(ti.f64, shape=2), ti.field(ti.f64, shape=2)
        >>> x.fill(1.5)
        >>> ti.linalg.LinearOperator(double).matvec(x, Ax)
        >>> Ax.to_numpy()
        array([3., 3.])
        """
        if x.shape + x.element != Ax.shape + Ax.element:
            raise FieldError(
                f"'{x.name}' and '{Ax.name}' have shapes {x.shape + x.element} and {Ax.shape + Ax.element}: an "
                "operator gives what has the shape of its argument",
                caller(),
            )
        self._product(x, Ax)

    def _fields(self, like: Field) -> tuple[Field, Field, Field]:
        """Three fields like another one: two to multiply by the matrix in, one for a copy."""
        key = session.resets, isinstance(like, Ndarray), like.dtype, like.shape, like.element
        if key not in self._scratch:
            self._scratch[key] = (field_like(like), field_like(like), field_like(like))
        return self._scratch[key]


def MatrixFreeCG(  # noqa: N802 (the dialect's name)
    A: LinearOperator, b: Field, x: Field, tol: float = 1e-6, maxiter: int = 5000, quiet: bool = True
) -> bool:
    """Solve A x = b by conjugate gradients, for a symmetric positive definite operator.

    Derivatives, in a tape, in functional derivatives and in forward mode, take one more solve each, with the same
    operator; second ones take four.

    Parameters
    ----------
    A : LinearOperator
        The matrix.
    b : Field or Ndarray
        The right side.
    x : Field or Ndarray
        Where to begin, of the shape and type of `b`, which has no derivatives; it gets the solution.
    tol : float, default 1e-6
        The norm of the residual that ends the iterations.
    maxiter : int, default 5000
        The most iterations.
    quiet : bool, default True
        False prints each iteration.

    Returns
    -------
    bool
        True.

    Raises
    ------
    SolverError
        With the residual, where the iterations do not converge, or A is not positive definite.
    FieldError
        For shapes that do not fit.

    References
    ----------
    M. R. Hestenes and E. Stiefel, "Methods of conjugate gradients for solving linear systems", J. Res. Nat. Bur.
    Standards 49, 1952.

    Examples
    --------
    >>> @ti.kernel
    ... def double(x: ti.template(), Ax: ti.template()):
    ...     for i in x:
    ...         Ax[i] = 2.0 * x[i]
    >>> b, x = ti.field(ti.f64, shape=3), ti.field(ti.f64, shape=3)
    >>> b.fill(3.0)
    >>> ti.linalg.MatrixFreeCG(ti.linalg.LinearOperator(double), b, x)
    True
    >>> x.to_numpy()
    array([1.5, 1.5, 1.5])
    """
    return _solved(A, b, x, tol, maxiter, quiet, conjugate_gradients, "MatrixFreeCG", symmetric=True)


def MatrixFreeBICGSTAB(  # noqa: N802 (the dialect's name)
    A: LinearOperator, b: Field, x: Field, tol: float = 1e-6, maxiter: int = 5000, quiet: bool = True
) -> bool:
    """Solve A x = b by stabilised biconjugate gradients, for any operator that is not singular.

    In reverse mode it multiplies by the transpose, which is the gradient of the operator's kernel.

    Parameters
    ----------
    A : LinearOperator
        As for `ti.linalg.MatrixFreeCG`.
    b, x : Field or Ndarray
        As for `ti.linalg.MatrixFreeCG`.
    tol : float, default 1e-6
        As for `ti.linalg.MatrixFreeCG`.
    maxiter : int, default 5000
        As for `ti.linalg.MatrixFreeCG`.
    quiet : bool, default True
        As for `ti.linalg.MatrixFreeCG`.

    Returns
    -------
    bool
        True.

    Raises
    ------
    SolverError
        With the residual, where the iterations do not converge.
    FieldError
        For shapes that do not fit.

    References
    ----------
    H. A. van der Vorst, "Bi-CGSTAB: a fast and smoothly converging variant of Bi-CG", SIAM J. Sci. Stat. Comput. 13,
    1992.

    Examples
    --------
    >>> @ti.kernel
    ... def rotate(x: ti.template(), Ax: ti.template()):
    ...     Ax[0] = x[0] - x[1]
    ...     Ax[1] = x[0] + x[1]
    >>> b, x = ti.field(ti.f64, shape=2), ti.field(ti.f64, shape=2)
    >>> b.from_numpy([0.0, 2.0])
    >>> ti.linalg.MatrixFreeBICGSTAB(ti.linalg.LinearOperator(rotate), b, x)
    True
    >>> x.to_numpy().round(6)
    array([1., 1.])
    """
    return _solved(A, b, x, tol, maxiter, quiet, bicgstab, "MatrixFreeBICGSTAB", symmetric=False)


def _solved(
    A: Any, b: Any, x: Any, tol: float, maxiter: int, quiet: bool, method: Any, name: str, *, symmetric: bool
) -> bool:
    span = caller()
    if not isinstance(A, LinearOperator):
        raise FieldError(
            f"{name} takes a LinearOperator, not {type(A).__name__}", span, hint="ti.linalg.LinearOperator(kernel)"
        )
    refuse_limits(tol, "tol", maxiter, "maxiter", span)
    for given, word in ((b, "b"), (x, "x")):
        if not isinstance(given, Field) or given.dtype.kind != "f":
            raise FieldError(f"{word} of {name} is a field or an ndarray of floats, not {given!r}", span)
    if b.shape + b.element != x.shape + x.element or b.dtype is not x.dtype:
        raise FieldError(
            f"b and x of {name} differ: they have shapes {b.shape + b.element} and {x.shape + x.element}, and types "
            f"{b.dtype} and {x.dtype}",
            span,
        )
    point, image, copy = A._fields(b)
    if b.buffer is x.buffer:  # which is overwritten
        copy.copy_from(b)
        b = copy
    right = b.held().astype(np.float64).ravel()
    norm = float(np.linalg.norm(right)) or 1.0

    def product(vector: Array) -> Array:
        held = point.held()
        held[...] = vector.reshape(held.shape)
        A.matvec(point, image)
        return image.held().astype(np.float64).ravel()

    def solve() -> None:
        start = x.held().astype(np.float64).ravel()
        found = method(product, right, start, tol, maxiter, span, not quiet)
        x.from_numpy(found.reshape(x.held().shape).astype(x.held().dtype))

    def linear(transposed: Product, is_transposed: bool) -> Product:
        by = transposed if is_transposed and not symmetric else product

        def solved(vector: Array) -> Array:
            # As sharp, compared with its own right-hand side, and no sharper than the operator's numbers are.
            least = max(min(tol / norm, 1e-10), 0.25 * float(np.finfo(x.held().dtype).eps))
            with recording_as(None):
                return method(by, vector, np.zeros_like(vector), least * float(np.linalg.norm(vector)), maxiter, span)

        return solved

    ImplicitSolve(lambda: A.matvec(point, image), x, point, image, b, solve, linear, name, span).perform()
    return True


def field_like(other: Field) -> Any:
    """A field like another one, with all the shadows that derivatives of second order ask for."""
    made: Any
    options: dict[str, Any] = {"needs_grad": True, "needs_dual": True}
    kind, element = other.dtype, other.element
    if isinstance(other, Ndarray):
        made = ndarray(Tensor(kind, element) if element else kind, other.shape, **options)
    elif len(element) == 1:
        made = Vector.field(element[0], kind, other.shape, **options)
    elif element:
        made = Matrix.field(*element, kind, other.shape, **options)
    else:
        made = field(kind, other.shape, **options)
    made.grad.ensure_dual()
    return made
