"""`ti.lang.impl`: declarations of fields, and compile-time functions."""

from tinote.lang.data.declarations import field
from tinote.lang.data.ndarrays import ndarray
from tinote.lang.data.tree import FieldsBuilder, axes, root
from tinote.lang.maths.arithmetic import one, zero
from tinote.lang.maths.language import grouped, static, static_assert, static_print, stop_grad
from tinote.lang.misc import current_cfg
from tinote.lang.session.missing import refusing

__all__ = [
    "FieldsBuilder",
    "axes",
    "current_cfg",
    "field",
    "grouped",
    "ndarray",
    "one",
    "root",
    "static",
    "static_assert",
    "static_print",
    "stop_grad",
    "zero",
]

__getattr__ = refusing(__name__)
