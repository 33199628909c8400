"""The memory of temporary adjoints and duals: of fields and ndarrays that have none of their own.

They are there as long as whoever lends them holds them: adjoints as long as a reverse sweep lasts, duals as long as the
recording does. Which are lent is found out in `needed_adjoints.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from tinote.compiler.launch.native import BoundArray
from tinote.compiler.requests import Request
from tinote.ir.buffers import Buffer
from tinote.lang.kernels.arguments import Arguments
from tinote.lang.session.state import memory_of, session
from tinote.runtime.memory import Memory

__all__ = ["NO_ADJOINTS", "TemporaryAdjoints", "temporary_companion"]


def temporary_companion(buffer: Buffer, kind: str) -> Buffer:
    """A gradient ("grad") or dual ("dual") that is zero, lies row by row, and is there as long as anybody holds it."""
    made = Buffer(f"{buffer.name}.{kind}", buffer.dtype, buffer.shape, buffer.element)
    made.primal = buffer
    extents = [n or 0 for n in (*buffer.shape, *buffer.element)]
    session.memories[made] = Memory(max(math.prod(extents), 1) * buffer.dtype.size)
    return made


class TemporaryAdjoints:
    """The adjoints of `buffers`, zero at first. `tangents`: their temporary duals; with them, adjoints have duals."""

    def __init__(self, buffers: Iterable[Buffer], tangents: Mapping[Buffer, Buffer] | None = None) -> None:
        self._adjoints = {buffer: temporary_companion(buffer, "grad") for buffer in buffers}
        self._tangents = tangents or {}
        if tangents is not None:
            for adjoint in self._adjoints.values():
                adjoint.tangent = temporary_companion(adjoint, "dual")
        self._bound: dict[Buffer, BoundArray] = {}

    def __len__(self) -> int:
        return len(self._adjoints)

    def of(self, buffer: Buffer) -> Buffer | None:
        """The adjoint of a buffer, its own or a temporary one."""
        return buffer.adjoint or self._adjoints.get(buffer)

    def clear(self, buffer: Buffer) -> None:
        """Set the adjoint of a buffer to zero, if it is a temporary one."""
        adjoint = self._adjoints.get(buffer)
        for one in () if adjoint is None else (adjoint, adjoint.tangent):
            if one is not None:
                memory_of(one).clear()

    def bound(self, buffer: Buffer) -> BoundArray:
        """A field or an ndarray with its temporary companions, as a launch gets it."""
        found = self._bound.get(buffer)
        if found is None:
            memory = memory_of(buffer)
            adjoint, tangent = self.of(buffer), buffer.tangent or self._tangents.get(buffer)
            second = None if adjoint is None else adjoint.tangent
            companions = [None if one is None else memory_of(one) for one in (adjoint, tangent, second)]
            addresses = [0 if one is None else one.address for one in companions]
            shape = tuple([n or 0 for n in buffer.shape])
            owners = [memory, *companions]
            found = BoundArray(memory.address, *addresses, shape, memory.nbytes, True, buffer, owners)
            self._bound[buffer] = found
        return found

    def values(self, arguments: Arguments, values: Sequence[object], request: Request) -> list[object]:
        """The values of a gradient launch of `request`, with temporary companions: `values` are those without. Behind
        what the kernel itself gets stands what its gradient gets beside.
        """
        specialisation = arguments.specialisation
        found = list(values)
        for k, formal in enumerate(specialisation.arrays):
            if formal in request.temporaries:
                lent = self.bound(arguments.actual(formal))
                bound = found[k]
                assert isinstance(bound, BoundArray)
                found[k] = bound._replace(adjoint=lent.adjoint, tangent=lent.tangent, second=lent.second)
        count = next((k for k, value in enumerate(found) if not isinstance(value, BoundArray)), len(found))
        found[count:count] = [self.bound(formal) for formal in specialisation.lent(request)]
        return found


NO_ADJOINTS = TemporaryAdjoints(())
