"""Which arguments of a launch share memory, with each other or with fields that the kernel uses by name.

    k(x, y)          arrays apart:        compiled for arrays that nothing else overlaps (`Buffer.noalias`)
    k(x, x.grad)     memory in common:    another instance, in which those may be views of one another

Where arrays are apart, so are their gradients: adjoints that are added to need no thought of the values that are read
next to them. Fields and ndarrays have memory of their own, shared only by views of it (`numpy_view`, DLPack).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from itertools import count
from typing import Any

from tinote.compiler.launch.native import BoundArray
from tinote.ir.buffers import Buffer, family_of
from tinote.lang.data.ndarrays import ArrayKind
from tinote.lang.kernels.stand_ins import viewed_field
from tinote.lang.session.state import session


def aliased(key: tuple[Any, ...], sharing: Container[int]) -> tuple[Any, ...]:
    """The key of the instance for arrays that share memory at these positions."""
    arrays = count()
    return tuple([part.aliased if type(part) is ArrayKind and next(arrays) in sharing else part for part in key])


def families_of(buffers: Iterable[Buffer]) -> frozenset[Buffer]:
    """The fields and ndarrays that buffers belong to, as values, gradients or duals."""
    return frozenset(map(family_of, buffers))


def sharing_memory(arrays: Sequence[BoundArray]) -> list[int]:
    """The positions of array arguments that have memory in common with another one, shadows included. It is asked at
    every launch: 0.1 µs an array.
    """
    found: list[int] = []
    families: dict[Buffer, int] = {}
    spans: list[tuple[int, int, int]] = []
    for k, array in enumerate(arrays):
        buffer = array.buffer
        if buffer is None:
            begin = array.address
            end = begin + array.nbytes
            for first, last, other in spans:
                if begin < last and first < end:
                    found += [other, k]
            if begin < end:
                spans.append((begin, end, k))
            continue
        while buffer.primal is not None:  # `family_of`
            buffer = buffer.primal
        other = families.setdefault(buffer, k)
        if other != k:
            found += [other, k]
    if spans and families and meet_views(arrays):
        return [*range(len(arrays))]
    return found


def meet_views(arrays: Sequence[BoundArray]) -> bool:
    """Whether memory of others is perhaps a view of a field or an ndarray."""
    if not session.has_views:
        return False
    return any(a.buffer is None and viewed_field(a.address, a.address + a.nbytes) is not None for a in arrays)
