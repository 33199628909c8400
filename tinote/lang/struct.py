"""`ti.lang.struct`: structs, fields of them and their types."""

from tinote.lang.data.structs import Struct, StructField, StructType, dataclass
from tinote.lang.session.missing import refusing

__all__ = ["Struct", "StructField", "StructType", "dataclass"]

__getattr__ = refusing(__name__)
