"""`ti.lang.matrix_ops`: functions of vectors and matrices."""

from tinote.lang.maths.arithmetic import all, any, cast, max, min, sum
from tinote.lang.maths.vectors import cross, determinant, dot, inverse, outer_product, trace, transpose
from tinote.lang.session.missing import refusing

__all__ = [
    "all",
    "any",
    "cast",
    "cross",
    "determinant",
    "dot",
    "inverse",
    "max",
    "min",
    "outer_product",
    "sum",
    "trace",
    "transpose",
]

__getattr__ = refusing(__name__)
