"""`ti.math`: vector types, functions of shading languages, transformations and complex numbers.

    from tinote.math import vec3, mix, normalize

Angles are in radians. Complex numbers are vectors of two, (real, imaginary). The transformations of space are 4x4
matrices for homogeneous coordinates.
"""

from __future__ import annotations

import math as _math
from typing import TYPE_CHECKING, Any, TypeAlias

from tinote.lang.data.matrix import Matrix
from tinote.lang.data.types import UNSIGNED, matrix, template, vector
from tinote.lang.kernels.func import func
from tinote.lang.maths.arithmetic import ceil, floor, max, min, mod, round, sign
from tinote.lang.maths.bits import clz, popcnt
from tinote.lang.maths.elementary import (
    acos,
    asin,
    atan,
    atan2,
    cos,
    cosh,
    exp,
    exp2,
    isinf,
    isnan,
    log,
    log2,
    log10,
    pow,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
)
from tinote.lang.maths.shading import clamp, degrees, fract, mix, radians, reflect, refract, smoothstep, step
from tinote.lang.maths.special import erf, erfc
from tinote.lang.maths.vectors import cross, determinant, distance, dot, inverse, length, normalize, rotation2d

__all__ = [
    "acos",
    "asin",
    "atan",
    "atan2",
    "cconj",
    "cdiv",
    "ceil",
    "cexp",
    "cinv",
    "clamp",
    "clog",
    "clz",
    "cmul",
    "cos",
    "cosh",
    "cpow",
    "cross",
    "csqrt",
    "degrees",
    "determinant",
    "distance",
    "dot",
    "e",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "eye",
    "floor",
    "fract",
    "inf",
    "inverse",
    "isinf",
    "isnan",
    "ivec2",
    "ivec3",
    "ivec4",
    "length",
    "log",
    "log2",
    "log10",
    "mat2",
    "mat3",
    "mat4",
    "max",
    "min",
    "mix",
    "mod",
    "nan",
    "normalize",
    "pi",
    "popcnt",
    "pow",
    "radians",
    "reflect",
    "refract",
    "rot_by_axis",
    "rot_yaw_pitch_roll",
    "rotation2d",
    "rotation3d",
    "round",
    "scale",
    "sign",
    "sin",
    "sinh",
    "smoothstep",
    "sqrt",
    "step",
    "tan",
    "tanh",
    "translate",
    "uvec2",
    "uvec3",
    "uvec4",
    "vdir",
    "vec2",
    "vec3",
    "vec4",
]  # fmt: skip

pi, e, inf, nan = _math.pi, _math.e, _math.inf, _math.nan

if TYPE_CHECKING:
    # What a type checker knows of `def step(g: ti.math.vec3)`.
    vec2: TypeAlias = Matrix
    vec3: TypeAlias = Matrix
    vec4: TypeAlias = Matrix
    ivec2: TypeAlias = Matrix
    ivec3: TypeAlias = Matrix
    ivec4: TypeAlias = Matrix
    uvec2: TypeAlias = Matrix
    uvec3: TypeAlias = Matrix
    uvec4: TypeAlias = Matrix
    mat2: TypeAlias = Matrix
    mat3: TypeAlias = Matrix
    mat4: TypeAlias = Matrix
else:
    vec2, vec3, vec4 = vector(2, float), vector(3, float), vector(4, float)
    ivec2, ivec3, ivec4 = vector(2, int), vector(3, int), vector(4, int)
    uvec2, uvec3, uvec4 = vector(2, UNSIGNED), vector(3, UNSIGNED), vector(4, UNSIGNED)
    mat2, mat3, mat4 = matrix(2, 2, float), matrix(3, 3, float), matrix(4, 4, float)

# transformations


@func
def vdir(ang: Any) -> Any:
    """The unit vector of the plane with this angle.

    Parameters
    ----------
    ang : number
        The angle from the x axis in radians.

    Returns
    -------
    vector of 2
        (cos ang, sin ang).

    Examples
    --------
    >>> ti.math.vdir(0.0)
    Vector([1.0, 0.0])
    """
    return Matrix([cos(ang), sin(ang)])


@func
def eye(n: template) -> Any:  # type: ignore[valid-type]
    """The n by n identity matrix.

    Parameters
    ----------
    n : int
        The number of rows and of columns, known at compile time.

    Returns
    -------
    matrix, shape (n, n)
        The identity matrix.

    Examples
    --------
    >>> ti.math.eye(2)
    Matrix([[1.0, 0.0], [0.0, 1.0]])
    """
    return Matrix.identity(float, n)


@func
def translate(dx: Any, dy: Any, dz: Any) -> Any:
    """The translation by (dx, dy, dz).

    Parameters
    ----------
    dx, dy, dz : number
        The displacement.

    Returns
    -------
    matrix, shape (4, 4)
        The translation in homogeneous coordinates, for column vectors.

    Examples
    --------
    >>> ti.math.translate(1.0, 2.0, 3.0) @ ti.Vector([0.0, 0.0, 0.0, 1.0])
    Vector([1.0, 2.0, 3.0, 1.0])
    """
    return mat4(1.0, 0.0, 0.0, dx, 0.0, 1.0, 0.0, dy, 0.0, 0.0, 1.0, dz, 0.0, 0.0, 0.0, 1.0)


@func
def scale(sx: Any, sy: Any, sz: Any) -> Any:
    """The scaling of the three axes by sx, sy and sz.

    Parameters
    ----------
    sx, sy, sz : number
        The factors.

    Returns
    -------
    matrix, shape (4, 4)
        The scaling in homogeneous coordinates, for column vectors.

    Examples
    --------
    >>> ti.math.scale(2.0, 3.0, 4.0) @ ti.Vector([1.0, 1.0, 1.0, 1.0])
    Vector([2.0, 3.0, 4.0, 1.0])
    """
    return mat4(sx, 0.0, 0.0, 0.0, 0.0, sy, 0.0, 0.0, 0.0, 0.0, sz, 0.0, 0.0, 0.0, 0.0, 1.0)


@func
def _homogeneous(m: Any) -> Any:
    """A linear map of space in homogeneous coordinates."""
    found = mat4(0.0)
    found[0:3, 0:3] = m
    found[3, 3] = 1.0
    return found


@func
def rot_by_axis(axis: Any, ang: Any) -> Any:
    """The rotation about `axis`, which need not have unit length, by `ang` (Rodrigues' formula).

    As existing programs expect, the matrix is the transpose of the usual one: it turns row vectors `v @ M`
    counter-clockwise, and column vectors `M @ v` clockwise.

    Parameters
    ----------
    axis : vector of 3
        The axis, of any length but 0.
    ang : number
        The angle in radians.

    Returns
    -------
    matrix, shape (4, 4)
        The rotation in homogeneous coordinates.

    Examples
    --------
    >>> (ti.math.rot_by_axis(ti.Vector([0.0, 0.0, 1.0]), 0.0))[2, 2]
    1.0
    """
    a = normalize(axis)
    c, s = cos(ang), sin(ang)
    across = Matrix([[0.0, a[2], -a[1]], [-a[2], 0.0, a[0]], [a[1], -a[0], 0.0]])
    return _homogeneous(c * Matrix.identity(float, 3) + s * across + (1.0 - c) * a.outer_product(a))


@func
def rot_yaw_pitch_roll(yaw: Any, pitch: Any, roll: Any) -> Any:
    """The rotation about Y by `yaw`, then about X by `pitch`, then about Z by `roll`.

    Clockwise for column vectors `M @ v`, as `rot_by_axis` is.

    Parameters
    ----------
    yaw, pitch, roll : number
        Angles in radians.

    Returns
    -------
    matrix, shape (4, 4)
        The rotation in homogeneous coordinates.

    Examples
    --------
    >>> ti.math.rot_yaw_pitch_roll(0.0, 0.0, 0.0)[0, 0]
    1.0
    """
    y = rot_by_axis(Matrix([0.0, 1.0, 0.0]), yaw)
    x = rot_by_axis(Matrix([1.0, 0.0, 0.0]), pitch)
    z = rot_by_axis(Matrix([0.0, 0.0, 1.0]), roll)
    return z @ x @ y


@func
def rotation3d(ang_x: Any, ang_y: Any, ang_z: Any) -> Any:
    """`rot_yaw_pitch_roll(ang_z, ang_x, ang_y)`: the order in which existing programs give the three angles.

    Parameters
    ----------
    ang_x, ang_y, ang_z : number
        Angles in radians.

    Returns
    -------
    matrix, shape (4, 4)
        The rotation in homogeneous coordinates.

    Examples
    --------
    >>> ti.math.rotation3d(0.0, 0.0, 0.0)[0, 0]
    1.0
    """
    return rot_yaw_pitch_roll(ang_z, ang_x, ang_y)


# complex numbers


@func
def cmul(z1: Any, z2: Any) -> Any:
    """The product of two complex numbers `z1` and `z2`, as vectors (re, im).

    Parameters
    ----------
    z1, z2 : vector (re, im)
        Complex numbers.

    Returns
    -------
    vector (re, im)
        The result.

    Examples
    --------
    >>> ti.math.cmul(ti.Vector([0.0, 1.0]), ti.Vector([0.0, 1.0]))
    Vector([-1.0, 0.0])
    """
    return Matrix([z1[0] * z2[0] - z1[1] * z2[1], z1[0] * z2[1] + z1[1] * z2[0]])


@func
def cconj(z: Any) -> Any:
    """The complex conjugate of a vector (re, im).

    Parameters
    ----------
    z : vector (re, im)
        A complex number.

    Returns
    -------
    vector (re, im)
        The result.

    Examples
    --------
    >>> ti.math.cconj(ti.Vector([1.0, 2.0]))
    Vector([1.0, -2.0])
    """
    return Matrix([z[0], -z[1]])


@func
def cinv(z: Any) -> Any:
    """1 / z for a complex number z = (re, im).

    Parameters
    ----------
    z : vector (re, im)
        A complex number.

    Returns
    -------
    vector (re, im)
        The result.

    Examples
    --------
    >>> ti.math.cinv(ti.Vector([0.0, 2.0]))
    Vector([0.0, -0.5])
    """
    return cconj(z) / (z[0] * z[0] + z[1] * z[1])


@func
def cdiv(z1: Any, z2: Any) -> Any:
    """The quotient `z1` / `z2` of two complex numbers, as vectors (re, im).

    Parameters
    ----------
    z1, z2 : vector (re, im)
        Complex numbers.

    Returns
    -------
    vector (re, im)
        The result.

    Examples
    --------
    >>> ti.math.cdiv(ti.Vector([1.0, 0.0]), ti.Vector([0.0, 1.0]))
    Vector([0.0, -1.0])
    """
    return cmul(z1, cconj(z2)) / (z2[0] * z2[0] + z2[1] * z2[1])


@func
def csqrt(z: Any) -> Any:
    """The square root with non-negative real part.

    On the negative real axis, that with positive imaginary part.

    Parameters
    ----------
    z : vector (re, im)
        A complex number.

    Returns
    -------
    vector (re, im)
        The result.

    Examples
    --------
    >>> ti.math.csqrt(ti.Vector([-4.0, 0.0]))
    Vector([0.0, 2.0])
    """
    size = z.norm()
    root = sqrt(0.5 * (size + abs(z[0])))  # no cancellation
    large, small = root, 0.0 * root
    if root > 0.0:
        small = 0.5 * abs(z[1]) / root
    real, imaginary = large, small
    if z[0] < 0.0:
        real, imaginary = small, large
    if z[1] < 0.0:
        imaginary = -imaginary
    return Matrix([real, imaginary])


@func
def cexp(z: Any) -> Any:
    """The exponential of a complex number z = (re, im).

    Parameters
    ----------
    z : vector (re, im)
        A complex number.

    Returns
    -------
    vector (re, im)
        The result.

    Examples
    --------
    >>> ti.math.cexp(ti.Vector([0.0, 0.0]))
    Vector([1.0, 0.0])
    """
    return exp(z[0]) * vdir(z[1])


@func
def clog(z: Any) -> Any:
    """The logarithm with imaginary part in (-π, π].

    Parameters
    ----------
    z : vector (re, im)
        A complex number.

    Returns
    -------
    vector (re, im)
        The result.

    Examples
    --------
    >>> ti.math.clog(ti.Vector([1.0, 0.0]))
    Vector([0.0, 0.0])
    """
    return Matrix([log(z.norm()), atan2(z[1], z[0])])


@func
def cpow(z: Any, n: Any) -> Any:
    """z to a real power n, by the principal logarithm; 0 for z = 0 and positive n.

    Parameters
    ----------
    z : vector (re, im)
        A complex number.
    n : number
        The exponent.

    Returns
    -------
    vector (re, im)
        The result.

    Examples
    --------
    >>> ti.math.cpow(ti.Vector([2.0, 0.0]), 3)
    Vector([8.0, 0.0])
    """
    return pow(z.norm(), n) * vdir(n * atan2(z[1], z[0]))
