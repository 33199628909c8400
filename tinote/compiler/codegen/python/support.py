"""Run-time support of generated Python (`module.py`): numbers of each type, memory, stacks of saved values, and the
launch, which generated code calls `rt`.

    rt.f32(x)                      x rounded to f32; rt.i32(x) wraps, or cuts off a fraction
    rt.f32.sin(x)                  a primitive that gives an f32, as the table of primitives defines it
    rt.each(rt.f32.add, a, b)      the same for every component of vectors and matrices
    rt.x[i, j]                     an element of the field x; rt.x.add((i, j), v) adds to it and gives the old value
    rt.inside(i, 8, at=3)          i, or the located error of site 3 unless 0 <= i < 8
    rt.iterations(0, n)                 range(0, n), which `stop()` from another thread ends

A vector, matrix or local array is a flat tuple in row-major order, or a list where the kernel assigns it; a truth value
is a `bool`.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import keyword
import math
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tinote.errors import KernelRuntimeError
from tinote.ir import primitives as p
from tinote.ir.buffers import Buffer, row_major
from tinote.ir.overflow import fits
from tinote.ir.primitives import Primitive
from tinote.ir.types import SCALARS, Scalar, scalar_named, u1
from tinote.runtime.launch import LaunchStopped, print_formatter
from tinote.runtime.layout import WORDS
from tinote.runtime.sites import Bounds, PrintedValue, Site, fault

Number = Any  # int, float or bool, as the type asks
Index = tuple[int, ...]

_WORD = struct.Struct("<q")
_TENSORS = (tuple, list)
_STOPPED = "the kernel was stopped"
#: Makes updates of memory atomic, since two threads may launch at once.
_combining = threading.Lock()


def python_name(prim: Primitive) -> str:
    """The name of a primitive in generated code."""
    return f"{prim.name}_" if keyword.iskeyword(prim.name) else prim.name


# ---- numbers


class Numbers:
    """The numbers of one type: a call converts to the type; each elementwise primitive with this result type is a
    method.
    """

    def __init__(self, t: Scalar) -> None:
        self.type = t
        for prim in p.PRIMITIVES.values():
            if prim.elementwise or prim is p.random_bits:
                setattr(self, python_name(prim), self.meaning(prim))

    def meaning(self, prim: Primitive) -> Callable[..., Number]:
        t, evaluate = self.type, prim.evaluate
        if t is u1:
            return lambda *values: bool(evaluate(t, *values))
        if prim in p.DIVISIONS and t.kind != "f":
            # Without checks, as in machine code.
            return lambda a, b: evaluate(t, a, b) if b else 0
        return functools.partial(evaluate, t)

    def __call__(self, value: Number) -> Number:
        t = self.type
        if t.kind == "f" and type(value) is float:
            return t.round(value)
        return bool(value) if t is u1 else p.cast_number(t, value)

    def __repr__(self) -> str:
        return f"<numbers of type {self.type}>"


NUMBERS: dict[str, Numbers] = {t.name: Numbers(t) for t in SCALARS}


# ---- memory


class Array:
    """The memory of one buffer: `x[i, j]` is an element (a tuple of its components), `x[i, j, k]` the k-th component of
    a vector, `x[None]` the only element of a buffer without dimensions. Indices are in range: `rt.inside` checks them.
    """

    def __init__(self, buffer: Buffer, bytes_: memoryview, shape: Index, owner: object = None) -> None:
        size = buffer.dtype.size * math.prod(buffer.element)
        strides = row_major(shape, size) if buffer.strides is None else buffer.strides
        self.buffer = buffer
        self.shape = shape
        self._bytes = bytes_
        self._owner = owner  # owner of the memory, kept alive
        self._strides = (*strides, *buffer.element_strides)
        self._step = self._strides[0] if len(self._strides) == 1 else 0  # of numbers in one row, most arrays by far
        self._components = [
            sum(i * s for i, s in zip(position, buffer.element_strides, strict=True))
            for position in itertools.product(*map(range, buffer.element))
        ]
        number = struct.Struct(f"<{WORDS[buffer.dtype.name][0]}")
        self._get, self._put = number.unpack_from, number.pack_into

    def _offset(self, index: Any) -> tuple[int, bool]:
        """The offset of an access, and whether it is to a whole element of several components."""
        if type(index) is not tuple:
            index = () if index is None else (index,)
        at = sum(map(int.__mul__, index, self._strides))
        return at, len(index) < len(self._strides)

    def __getitem__(self, index: Any) -> Any:
        if self._step and type(index) is int:
            return self._get(self._bytes, index * self._step)[0]
        at, whole = self._offset(index)
        if whole:
            return tuple([self._get(self._bytes, at + c)[0] for c in self._components])
        return self._get(self._bytes, at)[0]

    def __setitem__(self, index: Any, value: Any) -> None:
        if self._step and type(index) is int:
            self._put(self._bytes, index * self._step, value)
            return
        at, whole = self._offset(index)
        if whole:
            for c, v in zip(self._components, value, strict=True):
                self._put(self._bytes, at + c, v)
        else:
            self._put(self._bytes, at, value)

    def combine(self, prim: Primitive, index: Any, value: Any) -> Any:
        """`x[index] = prim(x[index], value)`, atomically; returns the old value."""
        evaluate, t = prim.evaluate, self.buffer.dtype
        with _combining:
            old = self[index]
            if type(old) is tuple:
                self[index] = [evaluate(t, a, b) for a, b in zip(old, value, strict=True)]
            else:
                self[index] = evaluate(t, old, value)
        return old

    def nested(self, index: Index = ()) -> Any:
        """All elements from `index` on, as nested lists."""
        if len(index) == len(self.shape):
            return self[index]
        return [self.nested((*index, i)) for i in range(self.shape[len(index)])]

    def __repr__(self) -> str:
        """In a debugger a variable of the kernel looks like its value, whatever memory it lives in."""
        whole = math.prod(self.shape) <= 64
        return repr(self.nested()) if whole else f"<{self.buffer.name}: {self.buffer.dtype} {self.shape}>"


def _combining_by(prim: Primitive) -> Callable[..., Any]:
    return lambda array, index, value: array.combine(prim, index, value)


for _prim in p.ATOMICS:
    setattr(Array, python_name(_prim), _combining_by(_prim))


def bytes_at(address: int, nbytes: int) -> memoryview:
    """The bytes from an address on. The caller keeps their owner alive."""
    return memoryview((ctypes.c_ubyte * nbytes).from_address(address) if nbytes else bytearray()).cast("B")


# ---- a launch


class PythonLaunch:
    """One launch. The numbers of each type and the memory of each field are attributes of it, by name."""

    def __init__(
        self,
        sites: Sequence[Site],
        memories: Mapping[str, Array],
        temporaries: Mapping[str, Buffer],
        arrays: Mapping[str, Array],
        memory_limit: int,
    ) -> None:
        self.nan = math.nan
        self.inf = math.inf
        self.stopped = False
        self._sites = sites
        self._temporaries = temporaries
        self._arrays = arrays
        self._memory_limit = memory_limit
        self._saved = 0
        self.__dict__.update(NUMBERS)
        self.__dict__.update(memories)

    # control

    def iterations(self, lo: int, hi: int) -> Iterator[int]:
        """The indices of a loop."""
        for index in range(lo, hi):
            if self.stopped:
                raise LaunchStopped(_STOPPED)
            yield index

    def iterations_back(self, lo: int, hi: int) -> Iterator[int]:
        """The same, the last first."""
        for index in range(hi - 1, lo - 1, -1):
            if self.stopped:
                raise LaunchStopped(_STOPPED)
            yield index

    def goes_on(self) -> bool:
        """True, unless the launch was stopped."""
        if self.stopped:
            raise LaunchStopped(_STOPPED)
        return True

    # vectors and matrices

    @staticmethod
    def each(function: Callable[..., Number], *operands: Any) -> tuple[Number, ...]:
        """`function` on every component; a number is broadcast."""
        return tuple(map(function, *[v if type(v) in _TENSORS else itertools.repeat(v) for v in operands]))

    @staticmethod
    def replaced(tensor: tuple[Number, ...], position: int, value: Number) -> tuple[Number, ...]:
        """`tensor` with another component at `position`."""
        return (*tensor[:position], value, *tensor[position + 1 :])

    # memory of the launch

    def temporary(self, name: str) -> Array:
        """Memory for a variable that several iterations share, zero at first."""
        buffer = self._temporaries[name]
        shape = tuple([n or 0 for n in buffer.shape])
        size = buffer.dtype.size * math.prod(shape) * math.prod(buffer.element)
        return Array(buffer, memoryview(bytearray(size)), shape)

    def stack(self, dtype: str) -> ValueStack:
        """A stack for saved values."""
        return ValueStack(self, scalar_named(dtype).size)

    def save(self, nbytes: int, at: int) -> None:
        """Count `nbytes` more that are held for the reverse sweep."""
        self._saved += nbytes
        if self._saved > self._memory_limit:
            self.fail(at)

    # faults and prints

    def inside(self, index: int, extent: int, at: int) -> int:
        """`index`, which must be one of `extent`."""
        if 0 <= index < extent:
            return index
        site = self._sites[at]
        shown: Index = (extent,)
        if isinstance(site.arguments, Bounds) and len(site.arguments.extents) > 1:  # the whole shape of an array
            shown = next(array.shape for array in self._arrays.values() if array.buffer.name == site.text)
        raise fault(site.kind, site, (index, *shown), self._memory_limit)

    def nonzero(self, divisor: Any, at: int) -> Any:
        """`divisor`, which must not be zero, nor one of its components."""
        if not (all(divisor) if type(divisor) in _TENSORS else divisor):
            self.fail(at)
        return divisor

    def exact(self, prim: str, t: Numbers, *values: Any, at: int) -> Any:
        """The result of a primitive on signed integers, which must fit into its type."""
        if any(type(v) in _TENSORS for v in values):
            return self.each(functools.partial(self.exact, prim, t, at=at), *values)
        result = getattr(t, python_name(p.PRIMITIVES[prim]))(*values)
        if not fits(p.PRIMITIVES[prim], t.type, values, result):
            self.fail(at, *values)
        return result

    def exactly(self, array: Array, prim: str, index: Any, value: Any, at: int) -> Any:
        """Combine an array's element with a value where the result must fit its type."""
        old = array.combine(p.PRIMITIVES[prim], index, value)
        self.exact(prim, NUMBERS[array.buffer.dtype.name], old, value, at=at)
        return old

    def check(self, condition: bool, at: int, *values: Any) -> None:
        """Raise the fault of a site unless `condition` holds."""
        if not condition:
            self.fail(at, *values)

    def fail(self, at: int, *values: Any) -> None:
        site = self._sites[at]
        raise self._fault(site, values)

    def _fault(self, site: Site, values: Sequence[Any]) -> KernelRuntimeError:
        return fault(site.kind, site, _words(site, values), self._memory_limit)

    def print(self, at: int, *values: Any) -> None:
        """Print a line for the kernel."""
        site = self._sites[at]
        sys.stdout.write(print_formatter(site, set())(_words(site, values)))  # type: ignore[arg-type]


class ValueStack:
    """Values saved on the way forward, and taken back in reverse order."""

    __slots__ = ("_launch", "_size", "_values")

    def __init__(self, launch: PythonLaunch, size: int) -> None:
        self._launch = launch
        self._size = size
        self._values: list[Any] = []

    def push(self, value: Any, at: int) -> None:
        self._values.append(value)
        self._launch.save(self._size * (len(value) if type(value) in _TENSORS else 1), at)

    def pop(self) -> Any:
        value = self._values.pop()
        self._launch.save(-self._size * (len(value) if type(value) in _TENSORS else 1), 0)
        return value

    def __repr__(self) -> str:
        return f"<{len(self._values)} saved values>"


def _words(site: Site, values: Sequence[Any]) -> list[int]:
    """Values as the 64-bit words that native code would report."""
    types = [part.type for part in site.arguments if isinstance(part, PrintedValue)]
    flat = [n for v in values for n in (v if type(v) in _TENSORS else (v,))]
    return [_WORD.unpack(struct.pack(f"<{WORDS[t]}", v))[0] for t, v in zip(types, flat, strict=False)]
