"""`ti.lang.kernel_impl`: the decorators."""

from tinote.lang.kernels.calls import pyfunc, real_func
from tinote.lang.kernels.func import func
from tinote.lang.kernels.kernel import data_oriented, kernel
from tinote.lang.session.missing import refusing

__all__ = ["data_oriented", "func", "kernel", "pyfunc", "real_func"]

__getattr__ = refusing(__name__)
