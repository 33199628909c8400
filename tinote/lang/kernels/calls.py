"""`ti.real_func`, and `ti.pyfunc`, `ti.ref`, `ti.sync`: names of the dialect whose effect is the default here."""

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
    """Make a device function that may call itself, directly or through others.

    One that does needs a type for each parameter that is a number, a vector, a matrix or a struct, which are passed by
    value, and for what it returns; fields, `ti.template()`, `ti.ref` and `self` are passed as they are. Calls may be
    nested 10,000 deep. A call costs some nanoseconds, and gradients flow through it. One that does not call itself is
    inlined.

    Parameters
    ----------
    function : callable
        The function.

    Returns
    -------
    Func
        The device function.

    Raises
    ------
    KernelTypeError
        For what is not a function.
    KernelRecursionError
        At the call, where calls are nested too deeply; it is a `RecursionError`.

    Examples
    --------
    >>> @ti.real_func
    ... def factorial(n: ti.i32) -> ti.i32:
    ...     result = 1
    ...     if n > 1:
    ...         result = n * factorial(n - 1)
    ...     return result
    >>> @ti.kernel
    ... def compute(n: ti.i32) -> ti.i32:
    ...     return factorial(n)
    >>> compute(5)
    120
    """
    return Func(plain_function(function), may_recurse=True)


def pyfunc(function: Callable[P, R] = None) -> Func[P, R]:  # type: ignore[assignment]  # noqa: RUF013
    """Make a device function of a function, as `ti.func` does: each can be called in Python scope, too.

    Parameters
    ----------
    function : callable
        The function.

    Returns
    -------
    Func
        The device function.

    Raises
    ------
    KernelTypeError
        For what is not a function.

    Examples
    --------
    >>> @ti.pyfunc
    ... def half(a):
    ...     return a / 2
    >>> half(3)
    1.5
    """
    return func(function)


for _function in (real_func, pyfunc):
    _function.__tinote_name__ = _function.__name__  # type: ignore[attr-defined]

experimental = SimpleNamespace(real_func=real_func, __doc__="Names that were new once: `ti.experimental.real_func`.")


class Reference:
    """The annotation of a device function's parameter that stands for the caller's variable.

    What the function assigns to the parameter is assigned to that variable.

    Parameters
    ----------
    dtype : number, vector, matrix or struct type
        The type of the variable.

    Examples
    --------
    >>> @ti.real_func
    ... def double(a: ti.ref(ti.i32)):
    ...     a *= 2
    >>> @ti.kernel
    ... def compute() -> ti.i32:
    ...     a = 4
    ...     double(a)
    ...     return a
    >>> compute()
    8
    """

    __tinote_template__ = True

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"ti.ref({self.dtype})"


ref = Reference


def sync() -> None:
    """Wait until all launches have ended.

    On the CPU a launch returns when it has ended, so there is nothing to wait for. On a GPU, launches that return,
    print and check nothing run asynchronously; their errors are raised here.

    Examples
    --------
    >>> x = ti.field(ti.f32, shape=4)
    >>> @ti.kernel
    ... def fill():
    ...     for i in x:
    ...         x[i] = i
    >>> fill()
    >>> ti.sync()
    >>> x.to_numpy()  # Reading waits, too.
    array([0., 1., 2., 3.], dtype=float32)
    """
    if session.config.arch == "gpu":
        gpu.wait_for_all()
