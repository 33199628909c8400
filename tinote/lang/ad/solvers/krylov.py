"""Krylov methods over vectors of double precision: conjugate gradients, and BiCGSTAB for matrices of any kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinote.errors import FieldError, SolverError
from tinote.source import Span

Array = np.ndarray[Any, Any]
Product = Callable[[Array], Array]

_NOT_FINITE = "the matrix or the right-hand side has elements that are NaN or infinite, or grows without bound"


def refuse_limits(residual: Any, residual_name: str, most: Any, most_name: str, span: Span) -> None:
    """Raise `FieldError` unless these are a norm of a residual and a number of iterations."""
    if isinstance(residual, bool) or not isinstance(residual, int | float | np.number) or not residual >= 0:
        raise FieldError(f"{residual_name} is the norm of a residual, a number of at least 0, not {residual!r}", span)
    if isinstance(most, bool) or not isinstance(most, int | np.integer) or most < 0:
        raise FieldError(f"{most_name} is a number of iterations, not {most!r}", span)


def conjugate_gradients(
    product: Product, b: Array, start: Array, atol: float, most: int, span: Span, report: bool = False
) -> Array:
    """The solution of A x = b, where `product` multiplies by A, which is symmetric positive definite. `atol`: the norm
    of the residual that ends the iterations, of which there are at most `most`; one that rounding alone makes ends
    them, too. `report`: whether each is printed. Raises `SolverError`.
    """
    x, residual = start.copy(), b - product(start)
    direction, square = residual.copy(), float(residual @ residual)
    least = _least(b, atol)
    for k in range(most):
        if np.sqrt(square) <= least:
            return x
        image = product(direction)
        curvature = float(direction @ image)
        if not curvature > 0:
            _refuse_curvature(curvature, np.sqrt(square), span)
        step = square / curvature
        x += step * direction
        residual -= step * image
        before, square = square, float(residual @ residual)
        direction = residual + (square / before) * direction
        if report:
            print(f"iteration {k + 1}: residual {np.sqrt(square):g}")
    return _ended(x, float(np.sqrt(square)), least, most, "conjugate gradients", span)


def bicgstab(
    product: Product, b: Array, start: Array, atol: float, most: int, span: Span, report: bool = False
) -> Array:
    """The same for any matrix that is not singular, by stabilised biconjugate gradients.

    Method: van der Vorst, "Bi-CGSTAB: a fast and smoothly converging variant of Bi-CG", SIAM J. Sci. Stat. Comput. 13,
    1992; begun anew from where it is, with another shadow residual, when that has become orthogonal.
    """
    x, least = start.copy(), _least(b, atol)
    residual = b - product(x)
    norm, k, begun = float(np.linalg.norm(residual)), 0, -1
    while k < most and norm > least and k != begun:
        begun = k
        shadow, direction, rho = residual.copy(), residual.copy(), norm * norm
        while k < most:
            image = product(direction)
            along = float(shadow @ image)
            if abs(along) <= 1e-14 * np.linalg.norm(shadow) * np.linalg.norm(image) or not np.isfinite(along):
                break
            k += 1
            alpha = rho / along
            half = residual - alpha * image
            other = product(half)
            square = float(other @ other)
            omega = float(other @ half) / square if square > 0 else 0.0
            x += alpha * direction + omega * half
            residual = half - omega * other
            norm = float(np.linalg.norm(residual))
            if report:
                print(f"iteration {k}: residual {norm:g}")
            if norm <= least or not np.isfinite(norm):
                break
            before, rho = rho, float(shadow @ residual)
            if omega == 0.0 or abs(rho) <= 1e-14 * np.linalg.norm(shadow) * norm:
                break
            direction = residual + (rho / before) * (alpha / omega) * (direction - omega * image)
        residual = b - product(x)
        norm = float(np.linalg.norm(residual))
        if not np.isfinite(norm):
            break
    return _ended(x, norm, least, k, "BiCGSTAB", span)


def _least(b: Array, atol: float) -> float:
    """Less than this the residual does not become by calculating in double precision."""
    return max(atol, 4 * np.finfo(np.float64).eps * float(np.linalg.norm(b)))


def _ended(x: Array, norm: float, least: float, taken: int, name: str, span: Span) -> Array:
    if norm <= least:
        return x
    finite = np.isfinite(norm)
    error = SolverError(
        f"{name} did not converge: after {taken} iterations the residual is {norm:.3g}, and {least:.3g} is required"
        if finite
        else _NOT_FINITE,
        span,
        hint="allow more iterations or a larger residual, or begin nearer to the solution" if finite else "",
    )
    error.residual = norm
    raise error


def _refuse_curvature(curvature: float, norm: float, span: Span) -> None:
    finite = np.isfinite(curvature)
    error = SolverError(
        f"the matrix is not positive definite: pᵀ A p is {curvature:.3g} for a direction p, at a residual of {norm:.3g}"
        if finite
        else _NOT_FINITE,
        span,
        hint="BiCGSTAB and factorisations by LU solve with any matrix that is not singular" if finite else "",
    )
    error.residual = norm
    raise error
