"""Linear algebra of small matrices, written in the language itself: singular values, polar decomposition,
eigenvalues, triangular factors, linear systems. Works in kernels and device functions, and in Python scope on whatever
`ti.Matrix` accepts.

Decompositions are computed by iterations whose own derivative is worthless at repeated singular values. So each result
has the value of the iteration and the derivative of first-order perturbation theory (Kato, "Perturbation Theory for
Linear Operators", 1966; for singular values Papadopoulo and Lourakis, "Estimating the Jacobian of the singular value
decomposition", 2000). With A = U Σ Vᵀ and B = Uᵀ dA V:

    dσᵢ = Bᵢᵢ        dU = U (P + Q)    Pᵢⱼ = (Bᵢⱼ + Bⱼᵢ) / 2(σⱼ - σᵢ)
                     dV = V (P - Q)    Qᵢⱼ = (Bᵢⱼ - Bⱼᵢ) / 2(σⱼ + σᵢ)

P turns U and V together. Where σᵢ = σⱼ, U and V are determined only up to such a turn, and have no derivative. (The
same holds of Q, which turns them against each other, where σᵢ = -σⱼ.) What does not depend on the choice, such as
U g(Σ) Vᵀ, has one, but as 0/0: P counts as (g(σⱼ) - g(σᵢ)) P there. So for reverse mode values that are closer than
`_least` are moved apart by that much (`in_reverse`); then P counts as a difference quotient, right to about √ε. It is
that of something that depends on the choice if the adjoint of the turn is not small compared with the adjoints that it
is the difference of; then the derivative is NaN. The bound is the fourth root of ε, which leaves as much room on either
side. What it cannot know: something that depends on the choice, but not to first order at this one, counts as
independent; where g is almost 0 compared with σ g' and only mixed adjoints count (i ≠ j), the result is NaN too. A
single one of repeated values is taken as `max` takes equal ones: its derivative is that of one branch.

Forward mode cannot tell the two apart, since what cancels does so further on. There U and V vary by NaN where values
are closer than `_least`, but for directions that do not turn them. Functions of the values alone have their derivative.

In the formulas of forward mode U, Σ and V are held constant. Once they carry their own first derivatives, the
derivative of the formulas is the second one of the decomposition: so they are applied twice. The second derivative is
not a number where values are closer than ∛ε.
"""

from __future__ import annotations

import math
from typing import Any

from tinote.lang.data.matrix import Matrix
from tinote.lang.data.types import template
from tinote.lang.kernels.func import Func, func, with_replacement
from tinote.lang.maths.arithmetic import abs as abs_
from tinote.lang.maths.arithmetic import max as max_
from tinote.lang.maths.arithmetic import select, zero
from tinote.lang.maths.elementary import sqrt
from tinote.lang.maths.language import (
    in_reverse,
    machine_epsilon,
    static,
    static_assert,
    stop_gradient,
    stop_gradient_once,
    strong_zero,
    surrogate,
)

__all__ = ["cholesky", "eig", "polar_decompose", "qr", "solve", "svd", "sym_eig"]

#: Sweeps after which an iteration ends in any case. Convergence is quadratic: 4 or 5 are usual in double precision.
_SWEEPS = 16


def _with_adjoint(function: Any, adjoint: Any) -> Func:
    """A device function with a gradient of its own, `adjoint`."""
    found = with_replacement(func(function))
    assert found.__tinote_replacement__ is not None
    found.__tinote_replacement__.gradient = func(adjoint)
    return found


@func
def _scale(A: Any) -> Any:
    """The largest magnitude in `A`; 1 for a zero matrix. Divided by it, squares neither overflow nor vanish."""
    largest = abs_(A).max()
    if largest == 0.0:
        largest = 1.0
    return largest


@func
def _rotation(alpha: Any, beta: Any, gamma: Any) -> Any:
    """Cosine and sine of the smaller angle that makes the off-diagonal of ((α, γ), (γ, β)) vanish (Rutishauser,
    1966).
    """
    delta = beta - alpha
    length = abs_(delta) + sqrt(delta * delta + 4.0 * gamma * gamma)
    t = zero(length)
    if length > 0.0:
        t = 2.0 * gamma / length
        if delta < 0.0:
            t = -t
    c = 1.0 / sqrt(1.0 + t * t)
    return c, c * t


@func
def _least(x: Any, scale: Any) -> Any:
    """Values of this scale that are closer than this count as repeated: the rounding errors of a difference, divided by
    it, are as large as what the difference quotient is off.
    """
    return 2.0 * sqrt(machine_epsilon(x)) * scale


@func
def _cube_root(x: Any) -> Any:
    """That of the rounding error of a type."""
    return machine_epsilon(x) ** (1.0 / 3.0)


@func
def _change(a: Any) -> Any:
    """What varies by NaN when `a` does, to first and to second order (except along directions of measure zero)."""
    total = 0.0 * a[0, 0]
    for i in static(range(a.n)):
        for j in static(range(a.n)):
            total += (1.0 + 0.6180339887498949 * (i * a.n + j)) * a[i, j]
    return math.nan * (2.0 * total + sqrt(1.0 + total * total))


@func
def _over(B: Any, d: Any, least: Any, otherwise: Any) -> Any:
    """B / d, or `otherwise` where |d| is at most `least`."""
    counts = abs_(d) > least
    return select(counts, B / select(counts, d, 1.0), otherwise)


@func
def _apart(values: Any, least: Any) -> Any:
    """Descending values with differences of about `least` at least, and their mean."""
    found = 1.0 * values  # a copy, in Python too
    if static(values.n == 2):
        widened = max_(least - (values[0] - values[1]), 0.0)
        found[0] += 0.5 * widened
        found[1] -= 0.5 * widened
    else:
        upper = max_(least - (values[0] - values[1]), 0.0)
        lower = max_(least - (values[1] - values[2]), 0.0)
        both = 1.0 if upper > 0.0 and lower > 0.0 else 0.5
        found[0] += both * upper
        found[1] += (1.0 - both) * (lower - upper)
        found[2] -= both * lower
    return found


@func
def _quotient(numerator: Any, gap: Any, gap_before: Any, least: Any, size: Any) -> Any:
    """The adjoint of a turn as a difference quotient: over `gap`, to which values were moved apart that were
    `gap_before`. NaN if it is that of something which depends on the choice: `size` is that of the adjoints.
    """
    found = numerator / gap
    if abs_(gap_before) < least:
        if not abs_(numerator) <= sqrt(sqrt(machine_epsilon(gap))) * size:
            found = math.nan
    return found


@func
def _mean_of_repeated(adjoints: Any, values: Any, least: Any) -> Any:
    """The adjoints of values that nothing else depends on: those of repeated ones are equal."""
    found = 1.0 * adjoints
    n = static(adjoints.n)
    if static(n == 3):
        if values[0] - values[2] < least:
            mean = adjoints.sum() / 3.0
            found[0], found[1], found[2] = mean, mean, mean
        elif values[0] - values[1] < least:
            mean = 0.5 * (adjoints[0] + adjoints[1])
            found[0], found[1] = mean, mean
        elif values[1] - values[2] < least:
            mean = 0.5 * (adjoints[1] + adjoints[2])
            found[1], found[2] = mean, mean
    else:
        if values[0] - values[1] < least:
            mean = 0.5 * (adjoints[0] + adjoints[1])
            found[0], found[1] = mean, mean
    return found


@func
def _svd(A: Any) -> Any:
    """U, singular values and V without derivatives. Rotations of A's columns until they are orthogonal; then the
    columns of U follow from the largest on, which keeps U orthogonal when A is singular.
    """
    n = static(A.n)
    scale = _scale(A)
    a = A / scale
    v = zero(a)
    for k in static(range(n)):
        v[k, k] = 1.0
    eps = machine_epsilon(a)
    turned, sweep = True, 0
    while turned and sweep < _SWEEPS:
        turned = False
        sweep += 1
        for q in static(range(1, n)):
            for p in static(range(q)):
                x, y = a[:, p], a[:, q]
                alpha, beta, gamma = x.dot(x), y.dot(y), x.dot(y)
                if abs_(gamma) > eps * sqrt(alpha) * sqrt(beta):
                    turned = True
                    c, s = _rotation(alpha, beta, gamma)
                    a[:, p] = c * x - s * y
                    a[:, q] = s * x + c * y
                    x, y = v[:, p], v[:, q]
                    v[:, p] = c * x - s * y
                    v[:, q] = s * x + c * y
    for i in static(range(n - 1)):
        for p in static(range(n - 1 - i)):
            if a[:, p].norm_sqr() < a[:, p + 1].norm_sqr():
                x, y = a[:, p], a[:, p + 1]
                a[:, p] = y
                a[:, p + 1] = -x
                x, y = v[:, p], v[:, p + 1]
                v[:, p] = y
                v[:, p + 1] = -x
    u = zero(a)
    first = a[:, 0].norm()
    if first > 0.0:
        u[:, 0] = a[:, 0] / first
    else:
        u[0, 0] = 1.0
    if static(n == 2):
        u[0, 1] = -u[1, 0]
        u[1, 1] = u[0, 0]
    else:
        u[:, 1] = _second(u[:, 0], a[:, 1])
        u[:, 2] = u[:, 0].cross(u[:, 1])
    sigma = zero(a[0, :])
    for k in static(range(n)):
        sigma[k] = scale * u[:, k].dot(a[:, k])
    return u, sigma, v


@func
def _second(u: Any, y: Any) -> Any:
    """A unit vector across the unit vector `u`, towards `y` if that is not along `u`."""
    w = y - u.dot(y) * u
    if w.norm() <= 0.5 * y.norm():  # what is left is rounding: any direction will do
        k = 0
        for i in static(range(1, 3)):
            if abs_(u[i]) < abs_(u[k]):
                k = i
        w = zero(u)
        w[k] = 1.0
        w -= u[k] * u
        if w.dot(y) < 0.0:
            w = -w
    w /= w.norm()
    w -= u.dot(w) * u  # once more: what rounding left along u
    return w / w.norm()


@func
def _turns(B: Any, sigma: Any, least: Any, a: Any, once: template) -> Any:  # type: ignore[valid-type]
    """P and Q of the module's docstring for B = Uᵀ A V; for values closer than `least` what varies by NaN: where only
    `once` is differentiated if B turns them, otherwise with every change of A.
    """
    n = static(B.n)
    P, Q = zero(B), zero(B)
    for j in static(range(1, n)):
        for i in static(range(j)):
            p, q = 0.5 * (B[i, j] + B[j, i]), 0.5 * (B[i, j] - B[j, i])
            P[i, j] = _over(p, sigma[j] - sigma[i], least, strong_zero(p, math.nan) if static(once) else _change(a))
            Q[i, j] = _over(q, sigma[j] + sigma[i], least, strong_zero(q, math.nan) if static(once) else _change(a))
            P[j, i], Q[j, i] = -P[i, j], -Q[i, j]
    return P, Q


@func
def _with_derivative(a: Any, u: Any, sigma: Any, v: Any, least: Any, once: template) -> Any:  # type: ignore[valid-type]
    """U, singular values and V with the derivative of the module's docstring, for forward mode. See `_turns`."""
    u, sigma, v = stop_gradient_once(u), stop_gradient_once(sigma), stop_gradient_once(v)
    B = u.transpose() @ a @ v
    P, Q = _turns(B, sigma, least, a, once)
    diagonal = zero(sigma)
    for k in static(range(a.n)):
        diagonal[k] = B[k, k]
    return surrogate(u, u @ (P + Q)), surrogate(sigma, diagonal), surrogate(v, v @ (P - Q))


@func
def _magnitudes_apart(sigma: Any, least: Any) -> Any:
    """Singular values whose magnitudes differ by about `least` at least."""
    last = static(sigma.n - 1)
    sign = select(sigma[last] < 0.0, -1.0, 1.0)
    found = 1.0 * sigma
    found[last] *= sign
    found = _apart(found, least)
    found += max_(-found[last], 0.0)
    found[last] *= sign
    return found


def _svd_for_reverse(a: Any, u: Any, sigma: Any, v: Any) -> Any:
    """U, singular values that are apart, and V. The derivative by `a` is `_svd_reversed`."""
    return u, _magnitudes_apart(sigma, _least(a, _scale(a))), v


def _svd_reversed(a: Any, u: Any, sigma: Any, v: Any, gu: Any, gs: Any, gv: Any) -> Any:
    """The adjoint of A from those of U, the singular values and V: U G Vᵀ, where G is what B counts."""
    least = _least(a, _scale(a))
    moved = _magnitudes_apart(sigma, least)
    X, Y = u.transpose() @ gu, v.transpose() @ gv
    vectors = max_(abs_(X).max(), abs_(Y).max())
    size = max_(vectors, abs_(sigma).max() * abs_(gs).max())
    diagonal = gs
    if vectors == 0.0:
        diagonal = _mean_of_repeated(gs, sigma, least)
    G = zero(X)
    for j in static(range(a.n)):
        G[j, j] = diagonal[j]
        for i in static(range(j)):
            x, y = X[i, j] - X[j, i], Y[i, j] - Y[j, i]
            p = 0.5 * _quotient(x + y, moved[j] - moved[i], sigma[j] - sigma[i], least, size)
            q = 0.5 * _quotient(x - y, moved[j] + moved[i], sigma[j] + sigma[i], least, size)
            G[i, j], G[j, i] = p + q, p - q
    return u @ G @ v.transpose(), zero(u), zero(sigma), zero(v)


_svd_for_reverse = _with_adjoint(_svd_for_reverse, _svd_reversed)


@func
def _rotation_with_derivative(a: Any, R: Any) -> Any:
    """The rotation R of A = R S in three dimensions with its derivative dR = R Ω, where Ω is skew and Ω S + S Ω is
    Rᵀ dA - dAᵀ R: of the vectors that belong to these, ω and w, (tr S - S) ω = w.
    """
    S = stop_gradient_once(0.5 * (R.transpose() @ a + a.transpose() @ R))
    R = stop_gradient_once(R)
    M = R.transpose() @ a
    w = Matrix([M[2, 1] - M[1, 2], M[0, 2] - M[2, 0], M[1, 0] - M[0, 1]])
    K = -S
    for k in static(range(3)):
        K[k, k] += S.trace()
    x, y, z = K[:, 0], K[:, 1], K[:, 2]
    across = Matrix.rows([y.cross(z), z.cross(x), x.cross(y)])
    size = abs_(K).max()
    determinant = x.dot(y.cross(z))
    counts = abs_(determinant) > 16.0 * machine_epsilon(size) * size**3
    omega = across @ w * select(counts, 1.0 / select(counts, determinant, 1.0), math.nan)
    skew = Matrix([[0.0, -omega[2], omega[1]], [omega[2], 0.0, -omega[0]], [-omega[1], omega[0], 0.0]])
    return surrogate(R, R @ skew)


@func
def _floats(A: Any, dt: template) -> Any:  # type: ignore[valid-type]
    """A matrix of floats: `dt`, or the type that it has."""
    return Matrix(A) * 1.0 if static(dt is None) else Matrix(A).cast(dt)  # pyright: ignore[reportOperatorIssue]


@func
def svd(A: Any, dt: template = None) -> Any:  # type: ignore[valid-type]
    """The singular value decomposition A = U Σ Vᵀ of a 2 × 2 or 3 × 3 matrix.

    U and V are rotations (their determinant is +1); the singular values descend in magnitude, and the last one is
    negative when det A is. Accurate to rounding for every finite matrix, singular ones included.

    Derivatives where singular values are repeated (closer than 2√ε of the largest entry; ε is the rounding error of the
    type): in reverse mode, what does not depend on the choice of U and V, such as U g(Σ) Vᵀ or a symmetric function of
    Σ, has its derivative to about √ε, and what does has NaN, which `ti.ad.find_nan` finds. In forward mode functions of
    Σ alone have their derivative, and others NaN (`polar_decompose` gives U Vᵀ with its derivative in both modes).
    Second derivatives are NaN where values are closer than ∛ε.

    Parameters
    ----------
    A : matrix, shape (2, 2) or (3, 3)
        The matrix.
    dt : float type, optional
        The type to compute in; by default that of A.

    Returns
    -------
    (U, Σ, V)
        The rotations, and the diagonal matrix of singular values.

    References
    ----------
    M. R. Hestenes, "Inversion of matrices by biorthogonalization and related results", J. SIAM 6, 1958 (one-sided
    Jacobi rotations).

    Examples
    --------
    >>> U, S, V = ti.svd(ti.Matrix([[0.0, 2.0], [3.0, 0.0]]))
    >>> S[0, 0], S[1, 1]
    (3.0, -2.0)
    """
    a = _floats(A, dt)
    static_assert(a.n == a.m and a.n in (2, 3), "svd needs a matrix of 2 by 2 or 3 by 3")
    u, sigma, v = _svd(stop_gradient(a))
    u, sigma, v = stop_gradient(u), stop_gradient(sigma), stop_gradient(v)
    ru, rs, rv = _svd_for_reverse(a, u, sigma, v)
    scale = _scale(stop_gradient(a))
    fu, fs, fv = _with_derivative(a, u, sigma, v, _cube_root(scale) * scale, False)
    fu, fs, fv = _with_derivative(a, fu, fs, fv, _least(scale, scale), True)
    u, sigma, v = in_reverse(fu, ru), in_reverse(fs, rs), in_reverse(fv, rv)
    S = zero(v)
    for k in static(range(a.n)):
        S[k, k] = sigma[k]
    return u, S, v


@func
def polar_decompose(A: Any, dt: template = None) -> Any:  # type: ignore[valid-type]
    """The polar decomposition A = R S of a 2 × 2 or 3 × 3 matrix into a rotation and a symmetric matrix.

    R is the rotation nearest to A; when det A is negative, S has one negative eigenvalue. The derivative is exact
    wherever R is unique, also at A = 1, where that of U and V is not defined. Where it is not (A = 0, a reflection), it
    is NaN.

    Parameters
    ----------
    A : matrix, shape (2, 2) or (3, 3)
        The matrix.
    dt : float type, optional
        The type to compute in; by default that of A.

    Returns
    -------
    (R, S)
        The rotation and the symmetric matrix.

    References
    ----------
    K. Shoemake and T. Duff, "Matrix animation and polar decomposition", Graphics Interface, 1992 (two dimensions, in
    closed form; in three, the rotation is U Vᵀ of `svd`).

    Examples
    --------
    >>> R, S = ti.polar_decompose(ti.Matrix([[2.0, 0.0], [0.0, 3.0]]))
    >>> S
    Matrix([[2.0, 0.0], [0.0, 3.0]])
    """
    a = _floats(A, dt)
    static_assert(a.n == a.m and a.n in (2, 3), "polar_decompose needs a matrix of 2 by 2 or 3 by 3")
    R = zero(a)
    if static(a.n == 2):
        x, y = a[0, 0] + a[1, 1], a[1, 0] - a[0, 1]
        size = stop_gradient(max_(abs_(x), abs_(y)))
        if size > 0.0:
            x, y = x / size, y / size
            length = sqrt(x * x + y * y)
            x, y = x / length, y / length
        else:
            # The angle may be any.
            x, y = surrogate(1.0, _change(a)), surrogate(0.0, _change(a))
        R[0, 0], R[0, 1], R[1, 0], R[1, 1] = x, -y, y, x
    else:
        u, _, v = _svd(stop_gradient(a))
        R = _rotation_with_derivative(a, stop_gradient(u @ v.transpose()))
        R = _rotation_with_derivative(a, R)
    S = R.transpose() @ a
    return R, 0.5 * (S + S.transpose())


@func
def _symmetric(A: Any) -> Any:
    """Eigenvalues and eigenvectors of a symmetric matrix without derivatives, by cyclic Jacobi rotations."""
    n = static(A.n)
    scale = _scale(A)
    a = A / scale
    v = zero(a)
    for k in static(range(n)):
        v[k, k] = 1.0
    eps = machine_epsilon(a)
    turned, sweep = True, 0
    while turned and sweep < _SWEEPS:
        turned = False
        sweep += 1
        for q in static(range(1, n)):
            for p in static(range(q)):
                if abs_(a[p, q]) > 0.25 * eps * sqrt(abs_(a[p, p])) * sqrt(abs_(a[q, q])):
                    turned = True
                    c, s = _rotation(a[p, p], a[q, q], a[p, q])
                    x, y = a[:, p], a[:, q]
                    a[:, p] = c * x - s * y
                    a[:, q] = s * x + c * y
                    x, y = a[p, :], a[q, :]
                    a[p, :] = c * x - s * y
                    a[q, :] = s * x + c * y
                    a[p, q], a[q, p] = 0.0, 0.0
                    x, y = v[:, p], v[:, q]
                    v[:, p] = c * x - s * y
                    v[:, q] = s * x + c * y
    values = zero(a[0, :])
    for k in static(range(n)):
        values[k] = scale * a[k, k]
    for i in static(range(n - 1)):
        for p in static(range(n - 1 - i)):
            if values[p] < values[p + 1]:
                values[p], values[p + 1] = values[p + 1], values[p]
                x, y = v[:, p], v[:, p + 1]
                v[:, p] = y
                v[:, p + 1] = -x
    return values, v


@func
def sym_eig(A: Any, dt: template = None) -> Any:  # type: ignore[valid-type]
    """Eigenvalues and eigenvectors of a symmetric 2 × 2 or 3 × 3 matrix.

    The eigenvalues descend. Of a matrix that is not symmetric, its symmetric part is meant.

    Derivatives where eigenvalues are repeated (closer than 2√ε of the largest entry): in reverse mode, what does not
    depend on the choice of the vectors, such as Q g(Λ) Qᵀ or a function of the values, has its derivative to about √ε,
    and what does has NaN, which `ti.ad.find_nan` finds. In forward mode functions of the values alone have their
    derivative, and others NaN. Second derivatives are NaN where values are closer than ∛ε.

    Parameters
    ----------
    A : matrix, shape (2, 2) or (3, 3)
        The matrix.
    dt : float type, optional
        The type to compute in; by default that of A.

    Returns
    -------
    (values, vectors)
        A vector of the eigenvalues, and a rotation whose columns are the eigenvectors.

    References
    ----------
    C. G. J. Jacobi, "Über ein leichtes Verfahren", J. reine angew. Math. 30, 1846; G. H. Golub and C. F. Van Loan,
    "Matrix Computations", 4th ed., 2013, section 8.5 (cyclic Jacobi rotations).

    Examples
    --------
    >>> values, vectors = ti.sym_eig(ti.Matrix([[1.0, 0.0], [0.0, 4.0]]))
    >>> values
    Vector([4.0, 1.0])
    """
    a = _floats(A, dt)
    static_assert(a.n == a.m and a.n in (2, 3), "sym_eig needs a matrix of 2 by 2 or 3 by 3")
    a = 0.5 * (a + a.transpose())
    values, v = _symmetric(stop_gradient(a))
    values, v = stop_gradient(values), stop_gradient(v)
    reverse_values, reverse_v = _symmetric_for_reverse(a, values, v)
    scale = _scale(stop_gradient(a))
    forward_values, forward_v = _symmetric_with_derivative(a, values, v, _cube_root(scale) * scale, False)
    forward_values, forward_v = _symmetric_with_derivative(a, forward_values, forward_v, _least(scale, scale), True)
    return in_reverse(forward_values, reverse_values), in_reverse(forward_v, reverse_v)


@func
def _symmetric_with_derivative(a: Any, values: Any, v: Any, least: Any, once: template) -> Any:  # type: ignore[valid-type]
    """Eigenvalues and eigenvectors with their derivative, for forward mode. See `_turns`."""
    values, v = stop_gradient_once(values), stop_gradient_once(v)
    B = v.transpose() @ a @ v
    P = zero(B)
    diagonal = zero(values)
    for j in static(range(a.n)):
        diagonal[j] = B[j, j]
        for i in static(range(a.n)):
            if static(i != j):
                varies = strong_zero(B[i, j], math.nan) if static(once) else _change(a)
                P[i, j] = _over(B[i, j], values[j] - values[i], least, varies)
    return surrogate(values, diagonal), surrogate(v, v @ P)


def _symmetric_for_reverse(a: Any, values: Any, v: Any) -> Any:
    """Eigenvalues that are apart, and eigenvectors. The derivative by `a` is `_symmetric_reversed`."""
    return _apart(values, _least(a, _scale(a))), v


def _symmetric_reversed(a: Any, values: Any, v: Any, gs: Any, gv: Any) -> Any:
    """The adjoint of A from those of the eigenvalues and eigenvectors."""
    least = _least(a, _scale(a))
    moved = _apart(values, least)
    W = v.transpose() @ gv
    vectors = abs_(W).max()
    size = max_(vectors, abs_(values).max() * abs_(gs).max())
    diagonal = gs
    if vectors == 0.0:
        diagonal = _mean_of_repeated(gs, values, least)
    G = zero(W)
    for j in static(range(a.n)):
        G[j, j] = diagonal[j]
        for i in static(range(j)):
            g = 0.5 * _quotient(W[i, j] - W[j, i], moved[j] - moved[i], values[j] - values[i], least, size)
            G[i, j], G[j, i] = g, g
    return v @ G @ v.transpose(), zero(values), zero(v)


_symmetric_for_reverse = _with_adjoint(_symmetric_for_reverse, _symmetric_reversed)


def _roots_for_reverse(square: Any) -> Any:
    """Plus and minus the root of |square|, kept apart. The derivative is `_roots_reversed`."""
    root = max_(sqrt(abs_(square)), _least(square, 1.0))
    return root, -root


def _roots_reversed(square: Any, plus: Any, minus: Any) -> Any:
    """The adjoint of `square` from those of both roots."""
    least = _least(square, 1.0)
    root = sqrt(abs_(square))
    size = max_(abs_(plus), abs_(minus))
    slope = 0.5 * _quotient(plus - minus, max_(root, least), root, least, size)
    return select(square < 0.0, -slope, slope)


_roots_for_reverse = _with_adjoint(_roots_for_reverse, _roots_reversed)


@func
def _roots(square: Any, a: Any) -> Any:
    """Plus and minus the root of |square|; where it is 0 to rounding it varies by NaN."""
    value = sqrt(abs_(stop_gradient(square)))
    root = surrogate(value, _change(a))
    if value >= _least(value, 1.0):
        root = sqrt(abs_(square))
    plus, minus = _roots_for_reverse(square)
    return Matrix([in_reverse(root, plus), in_reverse(-root, minus)])


@func
def eig(A: Any, dt: template = None) -> Any:  # type: ignore[valid-type]
    """Eigenvalues and eigenvectors of a real 2 × 2 matrix, both in general complex.

    In closed form by the characteristic polynomial. The larger real eigenvalue comes first; of a complex pair, the one
    with positive imaginary part. A defective matrix gives its only eigenvector twice.

    Where the eigenvalues are equal (closer than 4√ε of the largest entry), a single one has no derivative: it is NaN.
    In reverse mode, what does not depend on which is which, such as their product, has its derivative to about √ε. In
    forward mode, and in second derivatives, it is NaN as well.

    Parameters
    ----------
    A : matrix, shape (2, 2)
        The matrix.
    dt : float type, optional
        The type to compute in; by default that of A.

    Returns
    -------
    (values, vectors)
        Row k of `values` (2 × 2) is the real and the imaginary part of eigenvalue k; column k of `vectors` (4 × 2) its
        unit eigenvector: real and imaginary part of the first component, then of the second.

    Examples
    --------
    >>> values, vectors = ti.eig(ti.Matrix([[0.0, -1.0], [1.0, 0.0]]))
    >>> values
    Matrix([[0.0, 1.0], [0.0, -1.0]])
    """
    a = _floats(A, dt)
    static_assert(a.n == 2 and a.m == 2, "eig needs a matrix of 2 by 2")
    scale = stop_gradient(_scale(a))
    a = a / scale
    mean = 0.5 * (a[0, 0] + a[1, 1])
    half = 0.5 * (a[0, 0] - a[1, 1])
    b, c = a[0, 1], a[1, 0]
    square = half * half + b * c
    roots = _roots(square, a)
    values, vectors = zero(a), zero(Matrix([[mean, mean], [mean, mean], [mean, mean], [mean, mean]]))
    for k in static(range(2)):
        x, x_imaginary, y = zero(mean), zero(mean), zero(mean)
        if square >= 0.0:
            # (A - λ)v = 0 has the solutions (b, λ - a₀₀) and (λ - a₁₁, c); the longer one keeps its digits.
            along = roots[k]
            values[k, 0] = scale * (mean + along)
            x, y = b, along - half
            if abs_(along + half) + abs_(c) > abs_(b) + abs_(along - half):
                x, y = along + half, c
            if abs_(x) + abs_(y) == 0.0:
                x, y = static(1.0 - k), static(1.0 * k)
        else:
            values[k, 0] = scale * mean
            values[k, 1] = scale * roots[k]
            x, x_imaginary, y = half, roots[k], c
        length = sqrt(x * x + x_imaginary * x_imaginary + y * y)
        vectors[0, k], vectors[1, k] = x / length, x_imaginary / length
        vectors[2, k] = y / length
    return values, vectors


@func
def solve(A: Any, b: Any, dt: template = None) -> Any:  # type: ignore[valid-type]
    """The solution x of A x = b for a square matrix of up to 12 × 12.

    Gaussian elimination with partial pivoting. A singular matrix gives infinities or NaN.

    Parameters
    ----------
    A : matrix, shape (n, n)
        The matrix.
    b : vector of n, or matrix of n rows
        The right side, or several in columns.
    dt : float type, optional
        The type to compute in; by default that of A and of b.

    Returns
    -------
    vector or matrix, as b
        The solution.

    Examples
    --------
    >>> ti.solve(ti.Matrix([[2.0, 0.0], [0.0, 4.0]]), ti.Vector([1.0, 1.0]))
    Vector([0.5, 0.25])
    """
    a = _floats(A, dt)
    x = _floats(b, dt)
    n = static(a.n)
    static_assert(a.n == a.m and a.n <= 12, "solve needs a square matrix of at most 12 by 12")
    static_assert(x.n == a.n, "the right side and the matrix need the same number of rows")
    if static(len(x.get_shape()) == 1):
        x = _eliminated(a, Matrix([[x[i]] for i in static(range(n))]))[:, 0]
    else:
        x = _eliminated(a, x)
    return x


@func
def _eliminated(A: Any, b: Any) -> Any:
    n = static(A.n)
    a, x = 1.0 * A, 1.0 * b
    for k in static(range(n)):
        for r in static(range(k + 1, n)):
            if abs_(a[r, k]) > abs_(a[k, k]):
                row, right = a[k, :], x[k, :]
                a[k, :] = a[r, :]
                a[r, :] = row
                x[k, :] = x[r, :]
                x[r, :] = right
        for r in static(range(k + 1, n)):
            factor = a[r, k] / a[k, k]
            for c in static(range(k + 1, n)):
                a[r, c] -= factor * a[k, c]
            x[r, :] -= factor * x[k, :]
    for i in static(range(n)):
        k = static(n - 1 - i)
        for c in static(range(k + 1, n)):
            x[k, :] -= a[k, c] * x[c, :]
        x[k, :] /= a[k, k]
    return x


@func
def cholesky(A: Any, dt: template = None) -> Any:  # type: ignore[valid-type]
    """The lower triangular matrix L with L Lᵀ = A for a symmetric positive definite matrix of up to 12 × 12.

    A matrix that is not positive definite gives NaN. What is above the diagonal of A is not read.

    Parameters
    ----------
    A : matrix, shape (n, n)
        The matrix.
    dt : float type, optional
        The type to compute in; by default that of A.

    Returns
    -------
    matrix, shape (n, n)
        L, whose diagonal is positive.

    References
    ----------
    G. H. Golub and C. F. Van Loan, "Matrix Computations", 4th ed., 2013, section 4.2.

    Examples
    --------
    >>> ti.cholesky(ti.Matrix([[4.0, 2.0], [2.0, 5.0]]))
    Matrix([[2.0, 0.0], [1.0, 2.0]])
    """
    a = _floats(A, dt)
    n = static(a.n)
    static_assert(a.n == a.m and a.n <= 12, "cholesky needs a square matrix of at most 12 by 12")
    L = 0.0 * a
    for k in static(range(n)):
        for r in static(range(k, n)):
            rest = a[r, k]
            for c in static(range(k)):
                rest -= L[r, c] * L[k, c]
            if static(r == k):
                L[k, k] = sqrt(rest)
            else:
                L[r, k] = rest / L[k, k]
    return L


@func
def qr(A: Any, dt: template = None) -> Any:  # type: ignore[valid-type]
    """The QR decomposition A = Q R of a matrix with no more columns than rows, of up to 12 × 12.

    By Gram and Schmidt's process, which is done twice for each column: Q is orthogonal to rounding. Columns that depend
    on those before them give NaN.

    Parameters
    ----------
    A : matrix, shape (m, n)
        The matrix.
    dt : float type, optional
        The type to compute in; by default that of A.

    Returns
    -------
    tuple of matrix
        Q, shape (m, n), whose columns are orthonormal, and R, shape (n, n), upper triangular with a positive diagonal.

    References
    ----------
    L. Giraud, J. Langou, M. Rozložník and J. van den Eshof, "Rounding error analysis of the classical Gram-Schmidt
    orthogonalization process", Numer. Math. 101 (2005) 87.

    Examples
    --------
    >>> Q, R = ti.qr(ti.Matrix([[3.0, 0.0], [4.0, 5.0]]))
    >>> R
    Matrix([[5.0, 4.0], [0.0, 3.0]])
    """
    a = _floats(A, dt)
    n = static(a.m)
    static_assert(a.m <= a.n <= 12, "qr needs a matrix of at most 12 rows, with no more columns than rows")
    Q, R = a, 0.0 * (a.transpose() @ a)
    for k in static(range(n)):
        for _ in static(range(2)):
            for c in static(range(k)):
                part = Q[:, c].dot(Q[:, k])
                R[c, k] += part
                Q[:, k] -= part * Q[:, c]
        R[k, k] = Q[:, k].norm()
        Q[:, k] /= R[k, k]
    return Q, R
