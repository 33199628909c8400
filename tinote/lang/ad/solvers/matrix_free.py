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
    """A matrix that a kernel, or a function that launches kernels, multiplies by: `matvec_kernel(x, Ax)` reads the
    field or ndarray `x` and gives `Ax`, of the same shape, new values.
    """

    def __init__(self, matvec_kernel: Callable[[Any, Any], Any]) -> None:
        if not callable(matvec_kernel):
            raise FieldError(f"a linear operator is made of a kernel, not of {matvec_kernel!r}", caller())
        self._product = matvec_kernel
        self._scratch: dict[tuple[Any, ...], tuple[Field, Field, Field]] = {}

    def matvec(self, x: Field, Ax: Field) -> None:
        """Multiply `x` by the matrix, and leave that in `Ax`. Raises `FieldError` where their shapes differ."""
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
            self._scratch[key] = (_like(like), _like(like), _like(like))
        return self._scratch[key]


def MatrixFreeCG(  # noqa: N802 (the dialect's name)
    A: LinearOperator, b: Field, x: Field, tol: float = 1e-6, maxiter: int = 5000, quiet: bool = True
) -> bool:
    """Solve A x = b by conjugate gradients, for a symmetric positive definite operator `A`. `b` and `x` are fields or
    ndarrays of one shape and type; `x` holds where to begin, which has no derivatives, and gets the solution. `tol`:
    the norm of the residual that ends the iterations, of which there are at most `maxiter`. `quiet=False` prints each.
    Gives True; raises `SolverError` with the residual where they do not converge, or `A` is not positive definite, and
    `FieldError` for shapes that do not fit.

    Derivatives, in a tape, in functional derivatives and in forward mode, take one more solve each, with the same
    operator; second ones take four. Method: Hestenes and Stiefel, "Methods of conjugate gradients for solving linear
    systems", J. Res. Nat. Bur. Standards 49, 1952.
    """
    return _solved(A, b, x, tol, maxiter, quiet, conjugate_gradients, "MatrixFreeCG", symmetric=True)


def MatrixFreeBICGSTAB(  # noqa: N802 (the dialect's name)
    A: LinearOperator, b: Field, x: Field, tol: float = 1e-6, maxiter: int = 5000, quiet: bool = True
) -> bool:
    """Solve A x = b by stabilised biconjugate gradients, for any operator `A` that is not singular; `b`, `x`, `tol`,
    `maxiter`, `quiet`, the result and the errors raised are those of `MatrixFreeCG`.

    In reverse mode it multiplies by the transpose, which is the gradient of the operator's kernel. Method: van der
    Vorst, "Bi-CGSTAB: a fast and smoothly converging variant of Bi-CG", SIAM J. Sci. Stat. Comput. 13, 1992.
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
            # As sharp, beside its own right-hand side, and no sharper than the operator's numbers are.
            least = max(min(tol / norm, 1e-10), 0.25 * float(np.finfo(x.held().dtype).eps))
            with recording_as(None):
                return method(by, vector, np.zeros_like(vector), least * float(np.linalg.norm(vector)), maxiter, span)

        return solved

    ImplicitSolve(lambda: A.matvec(point, image), x, point, image, b, solve, linear, name, span).perform()
    return True


def _like(other: Field) -> Any:
    """A field like another one, with all the companions that derivatives of second order ask for."""
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
