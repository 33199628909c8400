"""Functions of vectors and matrices: products, lengths, determinants. Each is a method of matrices, as a function."""

from __future__ import annotations

from typing import Any

from tinote.lang.data.matrix import Matrix
from tinote.lang.maths.builtin import composed, expanded
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
    """The scalar product of two vectors a and b.

    Parameters
    ----------
    a, b : vector
        Two vectors of the same length.

    Returns
    -------
    number
        The product.

    Examples
    --------
    >>> ti.dot(ti.Vector([1, 2]), ti.Vector([3, 4]))
    11
    """
    return a.dot(b)


@composed()
def cross(a: Any, b: Any) -> Any:
    """The vector product of two vectors a and b of 3; of vectors of 2, its third component.

    Parameters
    ----------
    a, b : vector of 3 or 2
        The factors.

    Returns
    -------
    vector of 3, or number
        The product; a number for vectors of 2.

    Examples
    --------
    >>> ti.cross(ti.Vector([1, 0, 0]), ti.Vector([0, 1, 0]))
    Vector([0, 0, 1])
    """
    return a.cross(b)


@composed()
def outer_product(a: Any, b: Any) -> Any:
    """The matrix of all products of a component of vector a and one of b.

    Parameters
    ----------
    a : vector of n
        The left factor.
    b : vector of m
        The right factor.

    Returns
    -------
    matrix, shape (n, m)
        a[i] · b[j] in row i and column j.

    Examples
    --------
    >>> ti.outer_product(ti.Vector([1, 2]), ti.Vector([3, 4]))
    Matrix([[3, 4], [6, 8]])
    """
    return a.outer_product(b)


@expanded()
def length(v: Any, indices: Any = None) -> Any:
    """The Euclidean length of a vector v; its derivative at 0 is not finite. Of a list, the number of its elements.

    Parameters
    ----------
    v : vector, field or ti.SNode
        The vector; in a kernel, also a field under a `dynamic` level, or that level.
    indices : vector or int, optional
        Of a field or level, the index of the list.

    Returns
    -------
    number
        √(v · v), or the number of elements.

    Examples
    --------
    >>> ti.length(ti.Vector([3.0, 4.0]))
    5.0
    """
    return Matrix(v).norm()


@composed()
def distance(a: Any, b: Any) -> Any:
    """The length of a - b, for points a and b.

    Parameters
    ----------
    a, b : vector
        Two points.

    Returns
    -------
    number
        The distance, in the units of the coordinates.

    Examples
    --------
    >>> ti.distance(ti.Vector([0.0, 0.0]), ti.Vector([3.0, 4.0]))
    5.0
    """
    return (a - b).norm()


@composed()
def normalize(v: Any, eps: Any = 0) -> Any:
    """v / (|v| + eps), a vector of length 1.

    Parameters
    ----------
    v : vector
        The vector.
    eps : number, default 0
        What is added to the length, so that the zero vector gives zero rather than NaN.

    Returns
    -------
    vector
        Of length 1, for `eps` = 0.

    Examples
    --------
    >>> ti.normalize(ti.Vector([3.0, 4.0]))
    Vector([0.6, 0.8])
    """
    return v.normalized(eps)


@composed()
def determinant(m: Any) -> Any:
    """The determinant of a square matrix m of at most 4 by 4.

    Parameters
    ----------
    m : square matrix, up to 4 × 4
        The matrix.

    Returns
    -------
    number
        The determinant.

    Examples
    --------
    >>> ti.determinant(ti.Matrix([[2.0, 0.0], [1.0, 3.0]]))
    6.0
    """
    return m.determinant()


@composed()
def inverse(m: Any) -> Any:
    """The inverse of a square matrix m of at most 4 by 4; infinities or NaN if it is singular.

    Parameters
    ----------
    m : square matrix, up to 4 × 4
        The matrix.

    Returns
    -------
    matrix
        The inverse, of the same shape.

    Examples
    --------
    >>> ti.inverse(ti.Matrix([[2.0, 0.0], [0.0, 4.0]]))
    Matrix([[0.5, 0.0], [0.0, 0.25]])
    """
    return m.inverse()


@composed()
def transpose(m: Any) -> Any:
    """The matrix m with rows and columns exchanged.

    Parameters
    ----------
    m : matrix, shape (n, m)
        The matrix.

    Returns
    -------
    matrix, shape (m, n)
        The transpose.

    Examples
    --------
    >>> ti.transpose(ti.Matrix([[1, 2], [3, 4]]))
    Matrix([[1, 3], [2, 4]])
    """
    return m.transpose()


@composed()
def trace(m: Any) -> Any:
    """The sum of the diagonal of a matrix m.

    Parameters
    ----------
    m : square matrix
        The matrix.

    Returns
    -------
    number
        The trace.

    Examples
    --------
    >>> ti.trace(ti.Matrix([[2.0, 1.0], [1.0, 3.0]]))
    5.0
    """
    return m.trace()


@composed()
def rotation2d(ang: Any) -> Any:
    """The 2 by 2 matrix that rotates the plane by an angle `ang` in radians.

    Parameters
    ----------
    ang : number
        The angle in radians, counter-clockwise.

    Returns
    -------
    matrix, shape (2, 2)
        The rotation, for column vectors.

    Examples
    --------
    >>> ti.rotation2d(0.0)
    Matrix([[1.0, -0.0], [0.0, 1.0]])
    """
    c, s = cos(ang), sin(ang)
    return Matrix([[c, -s], [s, c]])
