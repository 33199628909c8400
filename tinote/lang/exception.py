"""The names under which existing programs catch errors: `ti.TaichiTypeError` and related classes."""

from tinote.errors import CompilationError as TaichiCompilationError
from tinote.errors import KernelArgumentError as TaichiRuntimeTypeError
from tinote.errors import KernelAssertionError as TaichiAssertionError
from tinote.errors import KernelIndexError as TaichiIndexError
from tinote.errors import KernelNameError as TaichiNameError
from tinote.errors import KernelRuntimeError as TaichiRuntimeError
from tinote.errors import KernelSyntaxError as TaichiSyntaxError
from tinote.errors import KernelTypeError as TaichiTypeError

__all__ = [
    "TaichiAssertionError",
    "TaichiCompilationError",
    "TaichiIndexError",
    "TaichiNameError",
    "TaichiRuntimeError",
    "TaichiRuntimeTypeError",
    "TaichiSyntaxError",
    "TaichiTypeError",
]
