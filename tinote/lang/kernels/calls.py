"""`ti.real_func`, and `ti.pyfunc`, `ti.ref`, `ti.sync`: names of the dialect that ask for what holds here anyway."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from tinote.lang.kernels.func import Func, func, plain_function
from tinote.lang.session.state import session
from tinote.lazy import lazy

if TYPE_CHECKING:
    from tinote.runtime import gpu
else:
    gpu = lazy("tinote.runtime.gpu")

P = ParamSpec("P")
R = TypeVar("R")


def real_func(function: Callable[P, R] = None) -> Func[P, R]:  # type: ignore[assignment]  # noqa: RUF013
    """Make a device function of a function, as `func` does, that may call itself, also through others.

    One that does needs a type for each parameter that is a number, a vector, a matrix or a struct, which are passed by
    value, and for what it returns; fields, `ti.template()`, `ti.ref` and `self` are passed on as they are. Calls may be
    nested 10,000 deep; deeper ones raise `KernelRecursionError`, which is a `RecursionError`, at the call. A call costs
    some nanoseconds, and gradients flow through it. One that does not call itself is inlined. Raises `KernelTypeError`
    for what is not a function.
    """
    return Func(plain_function(function), may_recurse=True)


def pyfunc(function: Callable[P, R] = None) -> Func[P, R]:  # type: ignore[assignment]  # noqa: RUF013
    """Make a device function of a function: as every one, it can be called in Python scope, too."""
    return func(function)


for _function in (real_func, pyfunc):
    _function.__tinote_name__ = _function.__name__  # type: ignore[attr-defined]

experimental = SimpleNamespace(real_func=real_func, __doc__="Names that were new once: `ti.experimental.real_func`.")


class Reference:
    """The annotation of a device function's parameter that stands for the caller's variable: what is assigned to it is
    assigned there.
    """

    __tinote_template__ = True

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"ti.ref({self.dtype})"


ref = Reference


def sync() -> None:
    """Wait until all kernels have ended. On the CPU a launch returns when they have, so there is nothing to wait for;
    on a GPU, those that give, print and check nothing go on. Raises what they have to report.
    """
    if session.config.arch == "gpu":
        gpu.wait_for_all()
