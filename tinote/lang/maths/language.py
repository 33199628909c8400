"""What controls how a kernel is compiled, run and differentiated: loops, compile time, atomic operations, random
numbers, where derivatives come from.
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
    """In the head of a loop: all combinations of indices; each axis is an extent or a pair (begin, end)."""
    return IndexSpace(tuple([range(axis) if np.ndim(axis) == 0 else range(*axis) for axis in axes]))


@expanded()
def grouped(x: Any) -> Iterable[Vector]:
    """In the head of a loop: the indices of x, a field or an `ndrange`, as one vector of integers."""
    return GroupedIndices(x)


@in_kernels
def loop_config(*, serialize: Any = None, parallelize: Any = None, block_dim: Any = None, **others: Any) -> None:
    """Before a loop: run its iterations in order (`serialize`), or on this number of threads (`parallelize`);
    `block_dim` and others are accepted for other machines.
    """


@in_kernels
def loop_unique(val: Any, covers: Any = None) -> Any:
    """`val` itself: advice for other machines, without effect here; so is `covers`."""


@in_kernels
def assume_in_range(val: Any, base: Any, low: Any, high: Any) -> Any:
    """`val` itself, which is said to lie between base + low and base + high: advice for other machines, without effect
    here.
    """


@in_kernels
def block_local(*fields: Any) -> None:
    """Advice for other machines about fields, without effect here."""


@in_kernels
def cache_read_only(*fields: Any) -> None:
    """Advice for other machines about fields, without effect here."""


@in_kernels
def no_activate(*fields: Any) -> None:
    """Advice about sparse fields, which do not exist here, without effect."""


# compile time


@expanded()
def static(x: Any, *more: Any) -> Any:
    """In a kernel: x is computed when it is compiled; a loop over it is unrolled, an `if` keeps one branch."""
    return (x, *more) if more else x


@expanded()
def static_assert(condition: Any, message: Any = None) -> None:
    """In a kernel: an error with this `message` when it is compiled, unless the `condition`, known by then, holds."""
    if not condition:
        raise AssertionError("" if message is None else str(message))


@expanded()
def static_print(*items: Any) -> None:
    """In a kernel: print when it is compiled: types of values, and constants."""
    print(*items)


# atomic operations


@in_kernels
def atomic_add(x: Any, y: Any) -> Any:
    """x += y at once, for an element that other iterations may change; gives the value of x before."""


@in_kernels
def atomic_sub(x: Any, y: Any) -> Any:
    """x -= y at once, for an element that other iterations may change; gives the value of x before."""


@in_kernels
def atomic_mul(x: Any, y: Any) -> Any:
    """x *= y at once, for an element that other iterations may change; gives the value of x before."""


@in_kernels
def atomic_min(x: Any, y: Any) -> Any:
    """x = min(x, y) at once, for an element that other iterations may change; gives the value of x before."""


@in_kernels
def atomic_max(x: Any, y: Any) -> Any:
    """x = max(x, y) at once, for an element that other iterations may change; gives the value of x before."""


@in_kernels
def atomic_and(x: Any, y: Any) -> Any:
    """x &= y at once, for an element that other iterations may change; gives the value of x before."""


@in_kernels
def atomic_or(x: Any, y: Any) -> Any:
    """x |= y at once, for an element that other iterations may change; gives the value of x before."""


@in_kernels
def atomic_xor(x: Any, y: Any) -> Any:
    """x ^= y at once, for an element that other iterations may change; gives the value of x before."""


# random numbers


@in_kernels
def random(dtype: Any = None) -> Any:
    """A random float in [0, 1), or any integer of an integer type `dtype`; counter-based: the same for a seed on any
    number of threads.
    """


@in_kernels
def randn(dt: Any = None) -> Any:
    """A normally distributed random float of type `dt`, of mean 0 and variance 1 (Box and Muller, 1958); see
    `random`.
    """


# derivatives


def _copy(x: Any) -> Any:
    return np.array(plain(x))[()]


@expanded()
def stop_gradient(x: Any) -> Any:
    """The value x, which counts as constant in derivatives."""
    return _copy(x)


@in_kernels
def stop_grad(x: Any) -> None:
    """Of a field x: what is read from it up to the end of the block or function counts as constant in derivatives; of a
    value, that value.
    """


@primitive(p.surrogate)
def surrogate(x: Any, z: Any) -> Any:
    """The value of x with the derivative of z, for functions whose own derivative is of no use."""
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
