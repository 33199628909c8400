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
from tinote.errors import DifferentiationError
from tinote.ir.buffers import Buffer
from tinote.lang.ad.functional.forward_mode import ForwardMode
from tinote.lang.ad.functional.layer import Layer
from tinote.lang.ad.functional.own_duals import OwnDuals
from tinote.lang.ad.journal.temporary_adjoints import LaunchWithTemporaries, temporary_shadow
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.data.captured_arrays import taken_copy, zeros
from tinote.lang.data.fields import Field
from tinote.lang.data.traced import Trace, Traced
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

    def __init__(self, params: Sequence[Field], seeds: Sequence[Array], trace: Trace) -> None:
        self._rows = seeds
        self._follow([], list(params), trace, _Rows(seeds[0].shape[-1]))
        self.clears_duals = False

    def refuse(self) -> NoReturn:
        """Raise for what can be followed along one direction only."""
        raise OneDirectionOnly

    def _point(self) -> None:
        for field, rows in zip(self.params, self._rows, strict=True):
            self.duals.add(field.buffer)
            if field.buffer not in self.duals.temporary:
                raise DifferentiationError(
                    f"'{field.name}' is declared to be constant in forward mode",
                    caller(),
                    hint="make it without needs_dual=False",
                )
            rows = field.by_place(rows)  # of the memory from here on
            dual = numbers(self.duals.temporary[field.buffer])
            if (listener := active_listener()) is not None:
                listener.assigning(dual, ..., rows, rows)
            dual[...] = rows

    def nesting(self) -> dict[Buffer, Buffer]:
        self.refuse()

    def _clear_seeds(self) -> None:
        """No field's own dual was set."""

    def tangents(self, field: Field) -> Array:
        """The tangents of a field, of its shape followed by that of its elements and the number of directions."""
        found = self.duals.temporary.get(field.buffer)
        shape = (*field.shape, *field.element, self._rows[0].shape[-1])
        return zeros(shape) if found is None else field.by_index(taken_copy(numbers(found)))


class _Rows(OwnDuals):
    """Temporary duals with a row of tangents for each number."""

    def __init__(self, directions: int) -> None:
        super().__init__()
        self._directions = directions
        self._request = Request(Derivative.FORWARD, directions=directions)

    def of(self, layer: Layer, buffer: Buffer) -> Buffer | None:
        return self.temporary.get(buffer)

    def add(self, buffer: Buffer) -> None:
        if buffer not in self.temporary and may_have_temporary(buffer, tangents=True, directions=self._directions):
            self.temporary[buffer] = temporary_shadow(buffer, "dual", self._directions)

    def launching(self, layer: Layer, instance: Instance, values: tuple[Any, ...]) -> Any:
        if bool(values) and any(type(value) is Traced and layer.trace.is_active(value) for value in values):
            _refuse(layer)
        arguments = arguments_of(instance, values, self._request)
        arguments.refuse_shared()
        touched = arguments.accesses
        self._launched[id(touched)] = touched
        if any(b.primal is not None for b in touched.loaded | touched.written):
            _refuse(layer)
        self.lost.launch_forward(arguments, self.temporary, active=False)
        if not any(b in self.temporary for b in touched.loaded | touched.written):
            return None
        if instance.returns_floats:
            _refuse(layer)
        request = request_with_temporaries(arguments, self.temporary)
        arguments = Arguments(arguments.specialisation, arguments.values, request)
        for buffer in arguments.temporaries:
            self.add(buffer)
        arguments.refuse_broken_paths()
        self.lost.stores_to_declared(arguments)
        return LaunchWithTemporaries(self._temporaries, arguments, request)

    def preparing_gradient(self, layer: Layer) -> bool:
        _refuse(layer)

    def read(self, layer: Layer, buffer: Buffer) -> None:
        self.taken(layer, buffer)

    def written(
        self, layer: Layer, buffer: Buffer, value: Any, along: Any, source: Buffer | None, *, whole: bool
    ) -> tuple[Buffer | None, Buffer | None]:
        if source is None and layer.trace.holds(value, captured=False):
            _refuse(layer)
        self._by_python[buffer] = True
        if source in self.temporary:
            self.add(buffer)
        if whole:
            self.lost.write(buffer, source, caller(), whole=True)
        return self.temporary.get(buffer), None if source is None else self.temporary.get(source)

    def taken(self, layer: Layer, buffer: Buffer) -> None:
        """Refuse reads of memory with tangents: the values would be constants, which one direction can follow."""
        self._by_python.setdefault(buffer, False)
        tangent = self.temporary.get(buffer)
        # A captured program must be valid for other numbers, too.
        if buffer in self.lost.spans or (
            tangent is not None and (active_listener() is not None or numbers(tangent).any())
        ):
            _refuse(layer)

    def shared(self, buffer: Buffer) -> None:
        """No tangents are there."""


def _refuse(layer: Layer) -> NoReturn:
    assert isinstance(layer, SeveralDirections)
    layer.refuse()
