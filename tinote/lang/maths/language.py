"""Functions that control how a kernel is compiled, run and differentiated: loops, compile time, atomic operations,
random numbers, derivatives.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from tinote.ir import primitives as p
from tinote.ir.types import f64, scalar_named
from tinote.ir.types import machine_epsilon as epsilon_of
from tinote.lang.data.matrix import Vector
from tinote.lang.data.traced import holds_traced, plain, traced_array, with_values
from tinote.lang.maths.builtin import expanded, in_kernels, primitive

__all__ = [
    "assume_in_range",
    "atomic_add",
    "atomic_and",
    "atomic_max",
    "atomic_min",
    "atomic_mul",
    "atomic_or",
    "atomic_sub",
    "atomic_xor",
    "block_local",
    "cache_read_only",
    "grouped",
    "in_reverse",
    "loop_config",
    "loop_unique",
    "machine_epsilon",
    "ndrange",
    "no_activate",
    "randn",
    "random",
    "static",
    "static_assert",
    "static_print",
    "stop_grad",
    "stop_gradient",
    "stop_gradient_once",
    "strong_zero",
    "surrogate",
]

# loops


class IndexSpace:
    """What `ti.ndrange` gives in Python: loops of Python and of kernels walk over it, as often as they like."""

    def __init__(self, axes: tuple[range, ...]) -> None:
        self.axes = axes

    def __iter__(self) -> Iterator[Any]:
        return iter(self.axes[0]) if len(self.axes) == 1 else itertools.product(*self.axes)

    def __len__(self) -> int:
        return math.prod(map(len, self.axes))

    def __tinote_domain__(self) -> tuple[tuple[int, int], ...]:
        return tuple([(axis.start, axis.stop) for axis in self.axes])

    def __repr__(self) -> str:
        return f"ti.ndrange({', '.join(f'({axis.start}, {axis.stop})' for axis in self.axes)})"


class GroupedIndices:
    """What `ti.grouped` gives in Python: the indices of `__tinote_grouped__`, each as one vector."""

    def __init__(self, of: Any) -> None:
        self.__tinote_grouped__ = of

    def __iter__(self) -> Iterator[Vector]:
        return (Vector(list(index) if isinstance(index, tuple) else [index]) for index in self.__tinote_grouped__)

    def __repr__(self) -> str:
        return f"ti.grouped({self.__tinote_grouped__!r})"


@expanded()
def ndrange(*axes: Any) -> Iterable[Any]:
    """In the head of a loop: all combinations of indices.

    Parameters
    ----------
    *axes : int or (int, int)
        For each axis its extent, or the pair (begin, end); the last axis is the fastest.

    Returns
    -------
    iterable of tuples
        The indices.

    Examples
    --------
    >>> @ti.kernel
    ... def count() -> ti.i32:
    ...     n = 0
    ...     for i, j in ti.ndrange(3, (2, 6)):
    ...         n += 1
    ...     return n
    >>> count()
    12
    >>> list(ti.ndrange(1, (2, 4)))
    [(0, 2), (0, 3)]
    """
    return IndexSpace(tuple([range(axis) if np.ndim(axis) == 0 else range(*axis) for axis in axes]))


@expanded()
def grouped(x: Any) -> Iterable[Vector]:
    """In the head of a loop: all indices as one vector of integers.

    Parameters
    ----------
    x : Field, ndarray or ti.ndrange
        What the loop runs over.

    Returns
    -------
    iterable of vectors
        The indices.

    Examples
    --------
    >>> x = ti.field(ti.i32, shape=(2, 2))
    >>> @ti.kernel
    ... def fill():
    ...     for I in ti.grouped(x):
    ...         x[I] = I[0] + I[1]
    >>> fill()
    >>> x.to_numpy()
    array([[0, 1],
           [1, 2]], dtype=int32)
    """
    return GroupedIndices(x)


@in_kernels
def loop_config(*, serialize: Any = None, parallelize: Any = None, block_dim: Any = None, **others: Any) -> None:
    """Before a loop: say how it runs.

    Parameters
    ----------
    serialize : bool, optional
        Run the iterations in order, on one thread.
    parallelize : int, optional
        Run them on this number of threads.
    block_dim : int, optional
        Accepted for other machines, and without effect.
    **others
        Accepted for other machines, and without effect.

    Examples
    --------
    >>> x = ti.field(ti.i32, shape=5)
    >>> @ti.kernel
    ... def fibonacci():
    ...     x[0] = 1
    ...     x[1] = 1
    ...     ti.loop_config(serialize=True)
    ...     for i in range(2, 5):
    ...         x[i] = x[i - 1] + x[i - 2]
    >>> fibonacci()
    >>> x.to_numpy()
    array([1, 1, 2, 3, 5], dtype=int32)
    """


@in_kernels
def loop_unique(val: Any, covers: Any = None) -> Any:
    """A value, with the promise that no other iteration has it: accepted, and without effect.

    Parameters
    ----------
    val : number
        The value.
    covers : optional
        Fields that it is an index of.

    Returns
    -------
    number
        `val`.

    Examples
    --------
    >>> @ti.kernel
    ... def f(i: ti.i32) -> ti.i32:
    ...     return ti.loop_unique(i)
    >>> f(3)
    3
    """


@in_kernels
def assume_in_range(val: Any, base: Any, low: Any, high: Any) -> Any:
    """A value, with the promise that it lies in a range: accepted, and without effect.

    Parameters
    ----------
    val : number
        The value.
    base, low, high : number
        It lies between base + low and base + high.

    Returns
    -------
    number
        `val`.

    Examples
    --------
    >>> @ti.kernel
    ... def f(i: ti.i32) -> ti.i32:
    ...     return ti.assume_in_range(i, 0, 0, 8)
    >>> f(3)
    3
    """


@in_kernels
def block_local(*fields: Any) -> None:
    """Advice for other machines about fields: accepted, and without effect.

    Parameters
    ----------
    *fields : Field
        The fields.

    Examples
    --------
    >>> x = ti.field(ti.f32, shape=4)
    >>> @ti.kernel
    ... def fill():
    ...     ti.block_local(x)
    ...     for i in x:
    ...         x[i] = 1.0
    >>> fill()
    >>> x.to_numpy()
    array([1., 1., 1., 1.], dtype=float32)
    """


@in_kernels
def cache_read_only(*fields: Any) -> None:
    """Advice for other machines about fields: accepted, and without effect.

    Parameters
    ----------
    *fields : Field
        The fields.

    Examples
    --------
    >>> x = ti.field(ti.f32, shape=4)
    >>> @ti.kernel
    ... def total() -> ti.f32:
    ...     ti.cache_read_only(x)
    ...     s = 0.0
    ...     for i in x:
    ...         s += x[i]
    ...     return s
    >>> total()
    0.0
    """


@in_kernels
def no_activate(*fields: Any) -> None:
    """Advice about sparse fields, which do not exist here: accepted, and without effect.

    Parameters
    ----------
    *fields : Field
        The fields.

    Examples
    --------
    >>> x = ti.field(ti.f32, shape=4)
    >>> @ti.kernel
    ... def fill():
    ...     ti.no_activate(x)
    ...     for i in x:
    ...         x[i] = 1.0
    >>> fill()
    >>> x.to_numpy()
    array([1., 1., 1., 1.], dtype=float32)
    """


# compile time


@expanded()
def static(x: Any, *more: Any) -> Any:
    """In a kernel: compute a value when the kernel is compiled.

    A loop over it is unrolled, and an `if` with it keeps one branch.

    Parameters
    ----------
    x : expression or iterable
        What is known at compile time.
    *more
        Further values: all together are a tuple.

    Returns
    -------
    object
        The value.

    Examples
    --------
    >>> @ti.kernel
    ... def total() -> ti.i32:
    ...     s = 0
    ...     for i in ti.static(range(4)):
    ...         s += i
    ...     return s
    >>> total()
    6
    """
    return (x, *more) if more else x


@expanded()
def static_assert(condition: Any, message: Any = None) -> None:
    """In a kernel: an error when the kernel is compiled, unless a condition holds.

    Parameters
    ----------
    condition : bool
        What is known at compile time.
    message : str, optional
        The text of the error.

    Raises
    ------
    AssertionError
        In Python scope, where the condition does not hold; in a kernel a located error when it is compiled.

    Examples
    --------
    >>> @ti.kernel
    ... def f(x: ti.template()) -> ti.i32:
    ...     ti.static_assert(len(x.shape) == 1, "a field of one dimension")
    ...     return x.shape[0]
    >>> f(ti.field(ti.f32, shape=7))
    7
    """
    if not condition:
        raise AssertionError("" if message is None else str(message))


@expanded()
def static_print(*items: Any) -> None:
    """In a kernel: print when the kernel is compiled.

    Parameters
    ----------
    *items
        Constants; of other values the type is printed.

    Examples
    --------
    >>> @ti.kernel
    ... def f(x: ti.template()) -> ti.i32:
    ...     ti.static_print(x.shape)
    ...     return x.shape[0]
    >>> f(ti.field(ti.f32, shape=7))
    (7,)
    7
    """
    print(*items)


# atomic operations


@in_kernels
def atomic_add(x: Any, y: Any) -> Any:
    """Do x += y in one step, for an element that other iterations may change.

    Parameters
    ----------
    x : number, vector or matrix in memory
        The element that is changed.
    y : number, vector or matrix
        The other operand.

    Returns
    -------
    number, vector or matrix
        The value of `x` before.

    Examples
    --------
    >>> n = ti.field(ti.i32, shape=())
    >>> @ti.kernel
    ... def run() -> ti.i32:
    ...     n[None] = 0
    ...     for i in range(4):
    ...         ti.atomic_add(n[None], i)
    ...     return n[None]
    >>> run()
    6
    """


@in_kernels
def atomic_sub(x: Any, y: Any) -> Any:
    """Do x -= y in one step, for an element that other iterations may change.

    Parameters
    ----------
    x : number, vector or matrix in memory
        The element that is changed.
    y : number, vector or matrix
        The other operand.

    Returns
    -------
    number, vector or matrix
        The value of `x` before.

    Examples
    --------
    >>> n = ti.field(ti.i32, shape=())
    >>> @ti.kernel
    ... def run() -> ti.i32:
    ...     n[None] = 10
    ...     for i in range(4):
    ...         ti.atomic_sub(n[None], i)
    ...     return n[None]
    >>> run()
    4
    """


@in_kernels
def atomic_mul(x: Any, y: Any) -> Any:
    """Do x *= y in one step, for an element that other iterations may change.

    Parameters
    ----------
    x : number, vector or matrix in memory
        The element that is changed.
    y : number, vector or matrix
        The other operand.

    Returns
    -------
    number, vector or matrix
        The value of `x` before.

    Examples
    --------
    >>> n = ti.field(ti.i32, shape=())
    >>> @ti.kernel
    ... def run() -> ti.i32:
    ...     n[None] = 1
    ...     for i in range(4):
    ...         ti.atomic_mul(n[None], i + 1)
    ...     return n[None]
    >>> run()
    24
    """


@in_kernels
def atomic_min(x: Any, y: Any) -> Any:
    """Do x = min(x, y) in one step, for an element that other iterations may change.

    Parameters
    ----------
    x : number, vector or matrix in memory
        The element that is changed.
    y : number, vector or matrix
        The other operand.

    Returns
    -------
    number, vector or matrix
        The value of `x` before.

    Examples
    --------
    >>> n = ti.field(ti.i32, shape=())
    >>> @ti.kernel
    ... def run() -> ti.i32:
    ...     n[None] = 10
    ...     for i in range(4):
    ...         ti.atomic_min(n[None], i)
    ...     return n[None]
    >>> run()
    0
    """


@in_kernels
def atomic_max(x: Any, y: Any) -> Any:
    """Do x = max(x, y) in one step, for an element that other iterations may change.

    Parameters
    ----------
    x : number, vector or matrix in memory
        The element that is changed.
    y : number, vector or matrix
        The other operand.

    Returns
    -------
    number, vector or matrix
        The value of `x` before.

    Examples
    --------
    >>> n = ti.field(ti.i32, shape=())
    >>> @ti.kernel
    ... def run() -> ti.i32:
    ...     n[None] = 0
    ...     for i in range(4):
    ...         ti.atomic_max(n[None], i)
    ...     return n[None]
    >>> run()
    3
    """


@in_kernels
def atomic_and(x: Any, y: Any) -> Any:
    """Do x &= y in one step, for an element that other iterations may change.

    Parameters
    ----------
    x : number, vector or matrix in memory
        The element that is changed.
    y : number, vector or matrix
        The other operand.

    Returns
    -------
    number, vector or matrix
        The value of `x` before.

    Examples
    --------
    >>> n = ti.field(ti.i32, shape=())
    >>> @ti.kernel
    ... def run() -> ti.i32:
    ...     n[None] = 7
    ...     for i in range(4):
    ...         ti.atomic_and(n[None], 6)
    ...     return n[None]
    >>> run()
    6
    """


@in_kernels
def atomic_or(x: Any, y: Any) -> Any:
    """Do x |= y in one step, for an element that other iterations may change.

    Parameters
    ----------
    x : number, vector or matrix in memory
        The element that is changed.
    y : number, vector or matrix
        The other operand.

    Returns
    -------
    number, vector or matrix
        The value of `x` before.

    Examples
    --------
    >>> n = ti.field(ti.i32, shape=())
    >>> @ti.kernel
    ... def run() -> ti.i32:
    ...     n[None] = 0
    ...     for i in range(4):
    ...         ti.atomic_or(n[None], i)
    ...     return n[None]
    >>> run()
    3
    """


@in_kernels
def atomic_xor(x: Any, y: Any) -> Any:
    """Do x ^= y in one step, for an element that other iterations may change.

    Parameters
    ----------
    x : number, vector or matrix in memory
        The element that is changed.
    y : number, vector or matrix
        The other operand.

    Returns
    -------
    number, vector or matrix
        The value of `x` before.

    Examples
    --------
    >>> n = ti.field(ti.i32, shape=())
    >>> @ti.kernel
    ... def run() -> ti.i32:
    ...     n[None] = 0
    ...     for i in range(4):
    ...         ti.atomic_xor(n[None], i)
    ...     return n[None]
    >>> run()
    0
    """


# random numbers


@in_kernels
def random(dtype: Any = None) -> Any:
    """A random float in [0, 1), or any integer of an integer type.

    The generator is counter-based: for a seed the numbers are the same on any number of threads.

    Parameters
    ----------
    dtype : number type, optional
        The type of the number; by default the session's float type.

    Returns
    -------
    number
        The random number.

    Examples
    --------
    >>> x = ti.field(ti.f32, shape=100)
    >>> @ti.kernel
    ... def draw():
    ...     for i in x:
    ...         x[i] = ti.random()
    >>> draw()
    >>> bool((x.to_numpy() >= 0).all() and (x.to_numpy() < 1).all())
    True
    """


@in_kernels
def randn(dt: Any = None) -> Any:
    """A normally distributed random number, of mean 0 and variance 1.

    Parameters
    ----------
    dt : float type, optional
        Its type; by default the session's.

    Returns
    -------
    float
        The number; see `ti.random` for the seed.

    References
    ----------
    G. E. P. Box and M. E. Muller, "A note on the generation of random normal deviates", Ann. Math. Statist. 29, 1958.

    Examples
    --------
    >>> x = ti.field(ti.f64, shape=10000)
    >>> @ti.kernel
    ... def draw():
    ...     for i in x:
    ...         x[i] = ti.randn(ti.f64)
    >>> draw()
    >>> bool(abs(x.to_numpy().mean()) < 0.1)
    True
    """


# derivatives


def _copy(x: Any) -> Any:
    return np.array(plain(x))[()]


@expanded()
def stop_gradient(x: Any) -> Any:
    """A value that is constant in derivatives.

    Parameters
    ----------
    x : number, vector or matrix
        The value.

    Returns
    -------
    number, vector or matrix
        `x`, with the derivative 0.

    Examples
    --------
    >>> x = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> y = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> @ti.kernel
    ... def f():
    ...     y[None] += x[None] * ti.stop_gradient(x[None])
    >>> x[None] = 3.0
    >>> with ti.ad.Tape(y):
    ...     f()
    >>> x.grad[None]
    3.0
    """
    return _copy(x)


@in_kernels
def stop_grad(x: Any) -> None:
    """Make a field constant in derivatives, up to the end of the block or function.

    Parameters
    ----------
    x : Field or number
        The field; of a number, see `ti.stop_gradient`.

    Examples
    --------
    >>> x = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> y = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> @ti.kernel
    ... def f():
    ...     ti.stop_grad(x)
    ...     y[None] += x[None] ** 2
    >>> x[None] = 3.0
    >>> with ti.ad.Tape(y):
    ...     f()
    >>> x.grad[None]
    0.0
    """


@primitive(p.surrogate)
def surrogate(x: Any, z: Any) -> Any:
    """The value of one expression with the derivative of another.

    For functions whose own derivative is of no use, such as a step.

    Parameters
    ----------
    x : number, vector or matrix
        The value.
    z : number, vector or matrix
        What is differentiated in place of `x`, of the same shape.

    Returns
    -------
    number, vector or matrix
        `x`.

    Examples
    --------
    >>> x = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> y = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> @ti.kernel
    ... def f():
    ...     y[None] += ti.surrogate(ti.step(0.5, x[None]), x[None] ** 2)
    >>> x[None] = 3.0
    >>> with ti.ad.Tape(y):
    ...     f()
    >>> y[None], x.grad[None]
    (1.0, 6.0)
    """
    values = np.broadcast_to(np.asarray(plain(x), float), np.broadcast_shapes(np.shape(x), np.shape(z)))
    if holds_traced(z):
        left = iter(values.ravel().tolist())
        return with_values(np.broadcast_to(traced_array(z), values.shape), lambda _: next(left))
    return values.copy()[()]


@primitive(p.in_reverse)
def in_reverse(x: Any, y: Any) -> Any:
    """The value x; for reverse mode y, which is as good a value and has a better derivative."""
    return _copy(x)


@primitive(p.strong_mul)
def strong_zero(a: Any, b: Any) -> Any:
    """a · b, and a where that is 0, whatever b is."""
    return np.where(np.equal(a, 0), a, np.multiply(a, b))[()]


@primitive(p.stop_gradient_once)
def stop_gradient_once(x: Any) -> Any:
    """The value x, which is a constant for the derivative that is taken, and not for the derivative of that one."""
    return _copy(x)


@expanded()
def machine_epsilon(x: Any) -> float:
    """The distance from 1 to the next float of the type of x."""
    kind = np.asarray(plain(x)).dtype
    return epsilon_of(scalar_named(f"f{kind.itemsize * 8}") if kind.kind == "f" else f64)
