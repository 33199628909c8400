"""Vector forward mode, along several directions at once: values are computed once, each with a tangent for each
direction.

All duals are temporary, with a row of tangents for each number (`temporary_adjoints.py`), whether a field has a dual of
its own or not. A launch without tangents as inputs runs unchanged. Python's arithmetic between launches is followed
along one direction only; where it matters, `OneDirectionOnly` is raised, and the caller starts again.

Method: vector forward mode; Griewank and Walther, "Evaluating Derivatives", 2nd ed., 2008, section 3.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from tinote.compiler.requests import Derivative, Request
from tinote.ir.buffers import Buffer
from tinote.lang.ad.functional.forward_mode import ForwardMode
from tinote.lang.ad.journal.temporary_adjoints import LaunchWithTemporaries, copy_tangents, temporary_shadow
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.data.captured_arrays import taken_copy, zeros
from tinote.lang.data.fields import Field
from tinote.lang.data.traced import Trace, Traced, holds_traced
from tinote.lang.kernels.arguments import Arguments, arguments_of, may_have_temporary, request_with_temporaries
from tinote.lang.kernels.kernel import Instance
from tinote.lang.session.state import session
from tinote.runtime.seam import active_listener
from tinote.source import caller

Array = np.ndarray[Any, Any]

#: The most directions of one run: two vectors of f64 where the machine's registers have eight.
MOST_DIRECTIONS = 16


#: The most bytes that the duals of all fields may take together.
MOST_BYTES = 4 << 30


def directions_for(count: int, most: int | None = None) -> int:
    """The number of directions of a run where `count` are wanted in all: a power of two, as vectors in machine code, at
    most `most` (`MOST_DIRECTIONS`), and fewer where fields are so large that their duals would fill the memory. One in
    plain Python, and on a GPU with numbers that share a word.
    """
    arch = session.config.arch
    fields = [f for f in list(session.fields) if f.buffer.primal is None and f.buffer.dtype.kind == "f"]
    if arch == "python" or (arch == "gpu" and any(f.buffer.dtype.size < 4 for f in fields)):
        return 1
    floats = sum([f.memory.nbytes for f in fields])
    room = 1 << max(MOST_BYTES // max(floats, 1), 1).bit_length() - 1
    return min(most or MOST_DIRECTIONS, room, 1 << max(count - 1, 0).bit_length())


class OneDirectionOnly(Exception):
    """Raised for operations that can be followed along one direction only."""


class SeveralDirections(ForwardMode):
    """The launches of a `with` block compute tangents along several directions. `seeds`: for each of `params`, fields,
    an array of its shape followed by the number of directions.
    """

    clears_duals = False

    def __init__(self, params: Sequence[Field], seeds: Sequence[Array], trace: Trace) -> None:
        self._follow([], list(params), trace)
        self._directions = seeds[0].shape[-1]
        self._rows = seeds
        self._request = Request(Derivative.FORWARD, directions=self._directions)

    def refuse(self) -> NoReturn:
        """Raise for what can be followed along one direction only."""
        raise OneDirectionOnly

    def _point(self) -> None:
        for field, rows in zip(self.params, self._rows, strict=True):
            dual = self._tangents[field.buffer] = temporary_shadow(field.buffer, "dual", self._directions)
            if (listener := active_listener()) is not None:
                listener.assigning(numbers(dual), ..., rows, rows)
            numbers(dual)[...] = rows

    def nesting(self) -> dict[Buffer, Buffer]:
        self.refuse()

    def _clear_seeds(self) -> None:
        """No field's own dual was set."""

    def tangents(self, field: Field) -> Array:
        """The tangents of a field, of its shape followed by that of its elements and the number of directions."""
        found = self._tangents.get(field.buffer)
        shape = (*field.shape, *field.element, self._directions)
        return zeros(shape) if found is None else taken_copy(numbers(found))

    def _add_temporary(self, buffer: Buffer) -> None:
        if buffer not in self._tangents and may_have_temporary(buffer, tangents=True, directions=self._directions):
            self._tangents[buffer] = temporary_shadow(buffer, "dual", self._directions)

    def launching(self, instance: Instance, values: tuple[Any, ...]) -> Any:
        if bool(values) and any(type(value) is Traced and self.trace.is_active(value) for value in values):
            self.refuse()
        arguments = arguments_of(instance, values, self._request)
        arguments.refuse_shared()
        touched = arguments.accesses
        self._launched[id(touched)] = touched
        if any(b.primal is not None for b in touched.loaded | touched.written):
            self.refuse()
        self._lost.launch_forward(arguments, self._tangents, active=False)
        if not any(b in self._tangents for b in touched.loaded | touched.written):
            return None
        if instance.returns_floats:
            self.refuse()
        request = request_with_temporaries(arguments, self._tangents)
        arguments = Arguments(arguments.specialisation, arguments.values, request)
        for buffer in arguments.temporaries:
            self._add_temporary(buffer)
        arguments.refuse_broken_paths()
        self._lost.stores_to_declared(arguments)
        return LaunchWithTemporaries(self._temporaries, arguments, request)

    def tangent(self, buffer: Buffer) -> Buffer | None:
        return self._tangents.get(buffer)

    def preparing_gradient(self) -> bool:
        self.refuse()

    def writing(self, buffer: Buffer, position: Any, value: Any = None, source: Buffer | None = None) -> None:
        if source is None and holds_traced(value):
            self.refuse()
        self._by_python[buffer] = True
        if source in self._tangents:
            self._add_temporary(buffer)
        if position is ...:
            self._lost.write(buffer, source, caller(), whole=True)
        tangent = self._tangents.get(buffer)
        if tangent is not None:
            copy_tangents(tangent, position, None if source is None else self._tangents.get(source))

    def reading(self, buffer: Buffer, position: tuple[int, ...], value: Any) -> Any:
        self._refuse_active(buffer)
        return value

    def taking(self, buffer: Buffer) -> None:
        self._refuse_active(buffer)

    def _refuse_active(self, buffer: Buffer) -> None:
        """Refuse reads of memory with tangents: the values would be constants, which one direction can follow."""
        self._by_python.setdefault(buffer, False)
        tangent = self._tangents.get(buffer)
        # A captured program must be valid for other numbers, too.
        if buffer in self._lost.spans or (
            tangent is not None and (active_listener() is not None or numbers(tangent).any())
        ):
            self.refuse()

    def sharing(self, buffer: Buffer) -> None:
        self._refuse_active(buffer)
