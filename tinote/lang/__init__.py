"""The user interface of the language: fields, vectors, kernels, functions, maths, and differentiation (`ad/`).

Next to the folders are the dialect's own public paths, such as `ti.lang.matrix`: they only name again what the folders
define.
"""

from tinote.lang import enums, exception, field, impl, kernel_impl, matrix, matrix_ops, misc, ops, snode, struct, util
from tinote.lang.session.missing import refusing

__all__ = [
    "enums",
    "exception",
    "field",
    "impl",
    "kernel_impl",
    "matrix",
    "matrix_ops",
    "misc",
    "ops",
    "snode",
    "struct",
    "util",
]
__getattr__ = refusing(__name__)
