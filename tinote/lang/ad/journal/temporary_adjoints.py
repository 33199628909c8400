"""The adjoints that exist during a reverse sweep, and shadow memory: temporary adjoints and duals of fields and
ndarrays that have none of their own.

It lives as long as its owner: adjoints during a sweep, duals during the recording. `activity.py` finds out which
are needed.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tinote.compiler.launch.native import BoundArray
from tinote.compiler.requests import Request
from tinote.ir.buffers import Buffer, bytes_of, give_planes
from tinote.ir.types import tangent_type
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.ad.memory.values import store
from tinote.lang.data.traced import holds_traced, tangents_in
from tinote.lang.data.traced_derivatives import Dual
from tinote.lang.kernels.arguments import Arguments
from tinote.lang.session.state import memory_of, session
from tinote.program.recorded import RecordedOperation
from tinote.runtime.memory import Memory
from tinote.runtime.reserved import reserve
from tinote.runtime.seam import active_listener


def temporary_shadow(buffer: Buffer, kind: str, directions: int = 1) -> Buffer:
    """A contiguous gradient ("grad") or dual ("dual") of zeros, alive while referenced. It has a number along each of
    its `directions`.
    """
    made = Buffer(f"{buffer.name}.{kind}", tangent_type(buffer.dtype, directions), buffer.shape, buffer.element)
    made.primal = buffer
    if kind == "grad":
        give_planes(made)
    nbytes = max(bytes_of(made) or 0, made.dtype.size)
    session.memories[made] = session.new_memory(nbytes) if buffer.sparsity is None else reserve(nbytes)
    return made


def tangent_of(buffer: Buffer, temporaries: Mapping[Buffer, Buffer]) -> Buffer | None:
    """The dual of a buffer: a temporary one, or its own."""
    return temporaries.get(buffer) or buffer.tangent


def write_tangents(
    buffer: Buffer, position: Any, value: Any, source: Buffer | None, temporaries: Mapping[Buffer, Buffer]
) -> None:
    """Write tangents into a field's dual when Python writes to the field in forward mode (`Recorder.writing`)."""
    tangent = tangent_of(buffer, temporaries)
    if tangent is None:
        return
    if source is not None:
        copy_tangents(tangent, position, tangent_of(source, temporaries))
    elif not holds_traced(value):
        copy_tangents(tangent, position, None)
    else:
        store(tangent, position, tangents_in(value))


def copy_tangents(tangent: Buffer, position: Any, source: Buffer | None) -> None:
    """Copy elements of a dual from another one, `source`, or set them to zero."""
    target, given = numbers(tangent), 0.0 if source is None else numbers(source)
    if (listener := active_listener()) is not None:
        if source is None:
            listener.assigning(target, position, 0.0, 0.0)
        else:
            listener.copying(target[position], given)
    target[position] = given


_NOTHING_APART: Mapping[Buffer, Buffer] = {}
_ZERO = Dual(0.0)

#: A launch: what it got, and the values.
Launched = tuple[Arguments, Sequence[Any]]
#: Is called with gradients that are about to be used, and with the launch whose gradient uses them, if it is one.
BeginGradients = Callable[[Iterable[Buffer], Launched | None], None]


class SweepObserver:
    """Base class of observers of a reverse sweep. For a block that sweeps through launches of its own (a checkpointed
    loop) it is notified of these, too, between `before` and `after`.
    """

    def before(self, adjoints: SweepAdjoints, operation: RecordedOperation) -> None:
        """The gradient of a launch, or of a block with a custom VJP, is about to run: adjoints are those of the values
        that it left.
        """

    def after(self, adjoints: SweepAdjoints, operation: RecordedOperation) -> None:
        """That gradient has run: adjoints are those of the values that it found."""


class SweepAdjoints:
    """The adjoints that exist during a reverse sweep: those of traced `numbers`, and of `buffers`, zero at first. Parts
    of a sweep, such as custom VJPs and the steps of a loop, share them.

    `tangents`: temporary duals; with them, adjoints have duals. `directions`: the number of adjoints of each number;
    along several, all are temporary. `apart`: the places of duals' values outside their own memory. `begin`: called
    with gradients that are about to be used, where this is not known before. `observer`: notified of each operation of
    the sweep, if there is one.
    """

    # Each tape makes one.
    __slots__ = (
        "_adjoints",
        "_apart",
        "_bound",
        "_directions",
        "_has_tangents",
        "begin",
        "numbers",
        "observer",
        "tangents",
    )

    def __init__(
        self,
        buffers: Iterable[Buffer] = (),
        tangents: Mapping[Buffer, Buffer] | None = None,
        directions: int = 1,
        apart: Mapping[Buffer, Buffer] = _NOTHING_APART,
        begin: BeginGradients | None = None,
    ) -> None:
        self._directions = directions
        self._apart = apart
        self.begin = begin
        self.observer: SweepObserver | None = None
        self._adjoints: dict[Buffer, Buffer] = {}
        self.numbers: dict[int, Dual] = {}
        self.tangents: Mapping[Buffer, Buffer] = {} if tangents is None else tangents
        self._has_tangents = tangents is not None
        for buffer in buffers:
            self._add(buffer)
        self._bound: dict[Buffer, tuple[Buffer | None, Buffer | None, BoundArray]] = {}

    def with_numbers_apart(self) -> SweepAdjoints:
        """The same adjoints of memory, with numbers of another recording, and without an observer."""
        made = copy.copy(self)
        made.numbers, made.observer = {}, None
        return made

    # ---- of numbers

    def add(self, number: int, adjoint: Dual) -> None:
        """Accumulate the adjoint of a traced number; 0 is a constant."""
        if number:
            known = self.numbers.get(number)
            self.numbers[number] = adjoint if known is None else known + adjoint

    def take(self, number: int) -> Dual:
        """The adjoint of a number, which becomes zero."""
        return self.numbers.pop(number, _ZERO)

    # ---- of memory

    def use(self, buffers: Iterable[Buffer], launch: Launched | None = None) -> None:
        """These are about to be used, gradients among them; `launch`: by the gradient of this one."""
        if self.begin is not None:
            found = [one for one in buffers if one.primal is not None and one.primal.adjoint is one]
            if found:
                self.begin(found, launch)

    def add_buffers(self, buffers: Iterable[Buffer]) -> None:
        """These have a temporary one, zero at first."""
        for buffer in buffers:
            self._add(buffer)

    def let_go(self) -> None:
        """The sweep is over: free the temporary ones."""
        self._adjoints.clear()
        self._bound.clear()

    def _add(self, buffer: Buffer) -> Buffer:
        adjoint = self._adjoints[buffer] = temporary_shadow(buffer, "grad", self._directions)
        if self._has_tangents:
            adjoint.tangent = temporary_shadow(adjoint, "dual")
        return adjoint

    def of(self, buffer: Buffer) -> Buffer | None:
        """The adjoint of a buffer, its own or a temporary one."""
        own = buffer.adjoint if self._directions == 1 else None
        return own or self._adjoints.get(buffer)

    def made(self, buffer: Buffer) -> Buffer:
        """The adjoint of a buffer: a temporary one is made where there is none."""
        return self.of(buffer) or self._add(buffer)

    def clear(self, buffer: Buffer) -> None:
        """Set the adjoint of a buffer to zero, if it is a temporary one."""
        adjoint = self._adjoints.get(buffer)
        for one in () if adjoint is None else (adjoint, adjoint.tangent):
            if one is not None:
                memory_of(one).clear()

    def bound(self, buffer: Buffer) -> BoundArray:
        """A field or an ndarray with its temporary shadows, as passed to a launch."""
        adjoint, tangent = self.of(buffer), tangent_of(buffer, self.tangents)
        known = self._bound.get(buffer)
        # A field that did not vary when it was first bound may have a temporary dual now.
        if known is not None and known[0] is adjoint and known[1] is tangent:
            return known[2]
        memory = memory_of(self._apart.get(buffer, buffer))
        shadows = adjoint, tangent, None if adjoint is None else adjoint.tangent
        owners = [memory, *[None if one is None else memory_of(one) for one in shadows]]
        first, second, third = [0 if one is None else one.address for one in owners[1:]]
        shape = tuple([n or 0 for n in buffer.shape])
        count = 0 if adjoint is None else len(adjoint.planes)
        stride = (bytes_of(adjoint) or 0) // count if adjoint is not None and count else 0
        planes = tuple([first + k * stride for k in range(count)])
        found = BoundArray(memory.address, first, second, third, shape, memory.nbytes, True, buffer, owners, planes)
        self._bound[buffer] = adjoint, tangent, found
        return found

    def values(
        self,
        arguments: Arguments,
        values: Sequence[object],
        request: Request,
        copies: Mapping[Buffer, Memory] | None = None,
    ) -> list[object]:
        """The values of a gradient launch of `request`, with temporary shadows: `values` are those without. The
        gradient's further arguments follow those of the kernel. `copies`: of the fields' contents then.
        """
        specialisation = arguments.specialisation
        if request.reverses:
            for buffer in arguments.temporaries:
                # An unneeded one may be requested along with a needed one.
                if self.of(buffer) is None:
                    self._add(buffer)
        found = list(values)
        for k, formal in enumerate(specialisation.arrays):
            if formal in request.temporaries:
                temporary = self._holding(self.bound(arguments.actual(formal)), copies, changes=False)
                bound = found[k]
                assert isinstance(bound, BoundArray)
                found[k] = bound._replace(
                    adjoint=temporary.adjoint,
                    tangent=temporary.tangent,
                    second=temporary.second,
                    planes=temporary.planes,
                )
        count = next((k for k, value in enumerate(found) if not isinstance(value, BoundArray)), len(found))
        further = [self.bound(formal) for formal in specialisation.fields_with_temporaries(request)]
        if copies:
            written = arguments.accesses.written
            further = [self._holding(b, copies, changes=b.buffer in written) for b in further]
        found[count:count] = further
        return found

    def _holding(self, bound: BoundArray, copies: Mapping[Buffer, Memory] | None, *, changes: bool) -> BoundArray:
        """The same with copies of its contents, and of its tangents, which may change."""
        buffer = bound.buffer
        if not copies or buffer is None:
            return bound
        tangent = tangent_of(buffer, self.tangents)
        found = (("address", copies.get(buffer)), ("tangent", None if tangent is None else copies.get(tangent)))
        for place, kept in found:
            if kept is not None:
                held = kept.copy() if changes else kept
                bound = bound._replace(owner=(held, bound.owner), **{place: held.address})
        return bound


NO_ADJOINTS = SweepAdjoints()


class LaunchWithTemporaries:
    """Runs a launch with temporary shadows, in place of its `BoundCode`."""

    def __init__(self, temporaries: SweepAdjoints, arguments: Arguments, request: Request) -> None:
        self._temporaries = temporaries
        self._arguments = arguments
        self._request = request

    def launch(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Run with the values of a launch without."""
        code = self._arguments.specialisation.code(self._request)
        return code.launch(self._temporaries.values(self._arguments, values, self._request))
