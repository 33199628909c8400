"""`ti.lang.matrix`: vectors and matrices, and fields, arrays and types of them."""

from tinote.lang.data.fields import MatrixField
from tinote.lang.data.matrix import Matrix, Vector
from tinote.lang.data.ndarrays import MatrixNdarray, VectorNdarray
from tinote.lang.data.types import MatrixType
from tinote.lang.session.missing import refusing

__all__ = ["Matrix", "MatrixField", "MatrixNdarray", "MatrixType", "Vector", "VectorNdarray"]

__getattr__ = refusing(__name__)
