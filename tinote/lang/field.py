"""`ti.lang.field`: the classes of fields."""

from tinote.lang.data.fields import Field, MatrixField, ScalarField
from tinote.lang.session.missing import refusing

__all__ = ["Field", "MatrixField", "ScalarField"]

__getattr__ = refusing(__name__)
