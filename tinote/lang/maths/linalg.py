"""Linear algebra of small matrices, written in the language itself: singular values, polar decomposition,
eigenvalues, linear systems. Works in kernels and device functions, and in Python scope on whatever `ti.Matrix` accepts.

Decompositions are computed by iterations whose own derivative is worthless at repeated singular values. So each result
is a `surrogate`: its value comes from the iteration, its derivative from first-order perturbation theory (Kato,
"Perturbation Theory for Linear Operators", 1966; for singular values Papadopoulo and Lourakis, "Estimating the Jacobian
of the singular value decomposition", 2000). With A = U Σ Vᵀ and B = Uᵀ dA V:

    dσᵢ = Bᵢᵢ        dU = U (P + Q)    Pᵢⱼ = (Bᵢⱼ + Bⱼᵢ) / 2(σⱼ - σᵢ)
                     dV = V (P - Q)    Qᵢⱼ = (Bᵢⱼ - Bⱼᵢ) / 2(σⱼ + σᵢ)

P turns U and V together. Where σᵢ = σⱼ to rounding, U and V are determined only up to such a turn, and have no
derivative; P is taken as 0 there. The derivative of whatever does not depend on the turn is then exact: of isotropic
functions of Σ, and of U Vᵀ.

In these formulas U, Σ and V are `held` constant. Once they carry their own first derivatives, the derivative of the
formulas is the second one of the decomposition: so they are applied twice. The second derivative is not a number where
P is taken as 0, since the turn does not cancel in it.
"""

from __future__ import annotations

import math
from typing import Any

from tinote.lang.data.matrix import Matrix
from tinote.lang.data.types import template
from tinote.lang.kernels.func import func
from tinote.lang.maths.arithmetic import abs as abs_
from tinote.lang.maths.arithmetic import max as max_
from tinote.lang.maths.arithmetic import select, zero
from tinote.lang.maths.elementary import sqrt
from tinote.lang.maths.language import held, machine_epsilon, static, static_assert, stop_gradient, surrogate

__all__ = ["eig", "polar_decompose", "solve", "svd", "sym_eig"]

#: Sweeps after which an iteration ends in any case. Convergence is quadratic: 4 or 5 are usual in double precision.
_SWEEPS = 16
#: Singular values or eigenvalues that differ by less than so many rounding errors of the largest one count as equal.
_EQUAL = 16


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
def _reciprocal(d: Any, scale: Any, otherwise: template = 0.0) -> Any:  # type: ignore[valid-type]
    """1/d, or `otherwise` where d is nothing but rounding on this scale."""
    counts = abs_(d) > _EQUAL * machine_epsilon(d) * scale
    return select(counts, 1.0 / select(counts, d, 1.0), otherwise)


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
def _turns(B: Any, sigma: Any, turn: template) -> Any:  # type: ignore[valid-type]
    """P and Q of the module's docstring for B = Uᵀ A V. `turn`: what stands for 1/(σⱼ - σᵢ) where these are equal."""
    n = static(B.n)
    scale = abs_(sigma).max()
    P, Q = zero(B), zero(B)
    for j in static(range(1, n)):
        for i in static(range(j)):
            P[i, j] = 0.5 * (B[i, j] + B[j, i]) * _reciprocal(sigma[j] - sigma[i], scale, turn)
            Q[i, j] = 0.5 * (B[i, j] - B[j, i]) * _reciprocal(sigma[j] + sigma[i], scale)
            P[j, i], Q[j, i] = -P[i, j], -Q[i, j]
    return P, Q


@func
def _with_derivative(a: Any, u: Any, sigma: Any, v: Any, turn: template) -> Any:  # type: ignore[valid-type]
    """U, singular values and V with the derivative of the module's docstring; see `_turns`."""
    u, sigma, v = held(u), held(sigma), held(v)
    B = u.transpose() @ a @ v
    P, Q = _turns(B, sigma, turn)
    diagonal = zero(sigma)
    for k in static(range(a.n)):
        diagonal[k] = B[k, k]
    return surrogate(u, u @ (P + Q)), surrogate(sigma, diagonal), surrogate(v, v @ (P - Q))


@func
def _rotation_with_derivative(a: Any, R: Any) -> Any:
    """The rotation R of A = R S in three dimensions with its derivative dR = R Ω, where Ω is skew and Ω S + S Ω is
    Rᵀ dA - dAᵀ R: of the vectors that belong to these, ω and w, (tr S - S) ω = w.
    """
    S = held(0.5 * (R.transpose() @ a + a.transpose() @ R))
    R = held(R)
    M = R.transpose() @ a
    w = Matrix([M[2, 1] - M[1, 2], M[0, 2] - M[2, 0], M[1, 0] - M[0, 1]])
    K = -S
    for k in static(range(3)):
        K[k, k] += S.trace()
    x, y, z = K[:, 0], K[:, 1], K[:, 2]
    across = Matrix.rows([y.cross(z), z.cross(x), x.cross(y)])
    omega = across @ w * _reciprocal(x.dot(y.cross(z)), abs_(K).max() ** 3)
    skew = Matrix([[0.0, -omega[2], omega[1]], [omega[2], 0.0, -omega[0]], [-omega[1], omega[0], 0.0]])
    return surrogate(R, R @ skew)


@func
def _floats(A: Any, dt: template) -> Any:  # type: ignore[valid-type]
    """A matrix of floats: `dt`, or the type that it has."""
    return Matrix(A) * 1.0 if static(dt is None) else Matrix(A).cast(dt)  # pyright: ignore[reportOperatorIssue]


@func
def svd(A: Any, dt: template = None) -> Any:  # type: ignore[valid-type]
    """The singular value decomposition A = U Σ Vᵀ of a 2x2 or 3x3 matrix, as (U, Σ, V) with Σ a diagonal matrix.

    U and V are rotations (their determinant is +1); the singular values descend in magnitude, and the last one is
    negative when det A is. One-sided Jacobi rotations (Hestenes, "Inversion of matrices by biorthogonalization and
    related results", 1958): accurate to rounding for every finite matrix, singular ones included.
    `dt`: the float type to compute in; that of A when left out. Derivatives: see the module.
    """
    a = _floats(A, dt)
    static_assert(a.n == a.m and a.n in (2, 3), "svd needs a matrix of 2 by 2 or 3 by 3")
    u, sigma, v = _svd(stop_gradient(a))
    u, sigma, v = _with_derivative(a, stop_gradient(u), stop_gradient(sigma), stop_gradient(v), math.nan)
    u, sigma, v = _with_derivative(a, u, sigma, v, 0.0)
    S = zero(v)
    for k in static(range(a.n)):
        S[k, k] = sigma[k]
    return u, S, v


@func
def polar_decompose(A: Any, dt: template = None) -> Any:  # type: ignore[valid-type]
    """The polar decomposition A = R S of a 2x2 or 3x3 matrix into a rotation and a symmetric matrix, as (R, S).

    R is the rotation nearest to A; when det A is negative, S has one negative eigenvalue. In two dimensions in closed
    form (Shoemake and Duff, "Matrix animation and polar decomposition", 1992), in three by `svd`. `dt`: the float type
    to compute in; that of A when left out. The derivative is exact wherever R is unique: also at A = 1, where that of U
    and V is not defined.
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
            x, y = 1.0, 0.0
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
    """Eigenvalues and eigenvectors of a symmetric 2x2 or 3x3 matrix A, as (values, vectors); `dt` as for `svd`.

    The eigenvalues descend; the eigenvectors are the columns of a rotation. Of a matrix that is not symmetric, its
    symmetric part is meant. Cyclic Jacobi rotations (Jacobi, 1846; Golub and Van Loan, "Matrix Computations", 8.5).
    The derivative of an eigenvector has no part towards an eigenvector whose eigenvalue is the same to rounding.
    """
    a = _floats(A, dt)
    static_assert(a.n == a.m and a.n in (2, 3), "sym_eig needs a matrix of 2 by 2 or 3 by 3")
    a = 0.5 * (a + a.transpose())
    values, v = _symmetric(stop_gradient(a))
    values, v = _symmetric_with_derivative(a, stop_gradient(values), stop_gradient(v), math.nan)
    return _symmetric_with_derivative(a, values, v, 0.0)


@func
def _symmetric_with_derivative(a: Any, values: Any, v: Any, turn: template) -> Any:  # type: ignore[valid-type]
    """Eigenvalues and eigenvectors with their derivative. `turn`: what stands for 1/(λⱼ - λᵢ) where these are equal."""
    values, v = held(values), held(v)
    B = v.transpose() @ a @ v
    scale = abs_(values).max()
    P = zero(B)
    diagonal = zero(values)
    for j in static(range(a.n)):
        diagonal[j] = B[j, j]
        for i in static(range(a.n)):
            if static(i != j):
                P[i, j] = B[i, j] * _reciprocal(values[j] - values[i], scale, turn)
    return surrogate(values, diagonal), surrogate(v, v @ P)


@func
def eig(A: Any, dt: template = None) -> Any:  # type: ignore[valid-type]
    """Eigenvalues and eigenvectors of a real 2x2 matrix A, both in general complex, as (values, vectors).

    Row k of `values` (2x2) is the real and the imaginary part of eigenvalue k; column k of `vectors` (4x2) its unit
    eigenvector: real and imaginary part of the first component, then of the second. The larger real eigenvalue comes
    first; of a complex pair, the one with positive imaginary part. In closed form by the characteristic polynomial.
    `dt`: the float type to compute in; that of A when left out. A defective matrix gives its only eigenvector twice;
    there the eigenvalues have no derivative (it is taken as that of their mean).
    """
    a = _floats(A, dt)
    static_assert(a.n == 2 and a.m == 2, "eig needs a matrix of 2 by 2")
    scale = stop_gradient(_scale(a))
    a = a / scale
    mean = 0.5 * (a[0, 0] + a[1, 1])
    half = 0.5 * (a[0, 0] - a[1, 1])
    b, c = a[0, 1], a[1, 0]
    square = half * half + b * c
    root = zero(square)
    if square != 0.0:
        root = sqrt(abs_(square))
    values, vectors = zero(a), zero(Matrix([[mean, mean], [mean, mean], [mean, mean], [mean, mean]]))
    for k in static(range(2)):
        sign = static(1.0 - 2.0 * k)
        x, x_imaginary, y = zero(mean), zero(mean), zero(mean)
        if square >= 0.0:
            # (A - λ)v = 0 has the solutions (b, λ - a₀₀) and (λ - a₁₁, c); the longer one keeps its digits.
            along = sign * root
            values[k, 0] = scale * (mean + along)
            x, y = b, along - half
            if abs_(along + half) + abs_(c) > abs_(b) + abs_(along - half):
                x, y = along + half, c
            if abs_(x) + abs_(y) == 0.0:
                x, y = static(1.0 - k), static(1.0 * k)
        else:
            values[k, 0] = scale * mean
            values[k, 1] = scale * (sign * root)
            x, x_imaginary, y = half, sign * root, c
        length = sqrt(x * x + x_imaginary * x_imaginary + y * y)
        vectors[0, k], vectors[1, k] = x / length, x_imaginary / length
        vectors[2, k] = y / length
    return values, vectors


@func
def solve(A: Any, b: Any, dt: template = None) -> Any:  # type: ignore[valid-type]
    """The solution x of A x = b for a square matrix of up to 4x4, by Gaussian elimination with partial pivoting.

    `b` is a vector, or a matrix of several right sides in columns. A singular matrix gives infinities or NaN.
    `dt`: the float type to compute in; that of A and of b when left out.
    """
    a = _floats(A, dt)
    x = _floats(b, dt)
    n = static(a.n)
    static_assert(a.n == a.m and a.n <= 4, "solve needs a square matrix of at most 4 by 4")
    static_assert(x.n == a.n, "the right side needs as many rows as the matrix")
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
