"""Functions of vectors and matrices: products, lengths, determinants. Each is a method of matrices, as a function."""

from __future__ import annotations

from typing import Any

from tinote.lang.data.matrix import Matrix
from tinote.lang.maths.builtin import composed
from tinote.lang.maths.elementary import cos, sin

__all__ = [
    "cross",
    "determinant",
    "distance",
    "dot",
    "inverse",
    "length",
    "normalize",
    "outer_product",
    "rotation2d",
    "trace",
    "transpose",
]


@composed()
def dot(a: Any, b: Any) -> Any:
    """The scalar product of two vectors a and b."""
    return a.dot(b)


@composed()
def cross(a: Any, b: Any) -> Any:
    """The vector product of two vectors a and b of 3; of vectors of 2, its third component."""
    return a.cross(b)


@composed()
def outer_product(a: Any, b: Any) -> Any:
    """The matrix of all products of a component of vector a and one of b."""
    return a.outer_product(b)


@composed()
def length(v: Any) -> Any:
    """The Euclidean length of a vector v; its derivative at 0 is not finite."""
    return v.norm()


@composed()
def distance(a: Any, b: Any) -> Any:
    """The length of a - b, for points a and b."""
    return (a - b).norm()


@composed()
def normalize(v: Any, eps: Any = 0) -> Any:
    """v / (|v| + eps), a vector of length 1."""
    return v.normalized(eps)


@composed()
def determinant(m: Any) -> Any:
    """The determinant of a square matrix m of at most 4 by 4."""
    return m.determinant()


@composed()
def inverse(m: Any) -> Any:
    """The inverse of a square matrix m of at most 4 by 4; infinities or NaN if it is singular."""
    return m.inverse()


@composed()
def transpose(m: Any) -> Any:
    """The matrix m with rows and columns exchanged."""
    return m.transpose()


@composed()
def trace(m: Any) -> Any:
    """The sum of the diagonal of a matrix m."""
    return m.trace()


@composed()
def rotation2d(ang: Any) -> Any:
    """The 2 by 2 matrix that rotates the plane by an angle `ang` in radians."""
    c, s = cos(ang), sin(ang)
    return Matrix([[c, -s], [s, c]])
