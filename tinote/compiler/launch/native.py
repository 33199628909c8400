"""Launches of machine code: binaries by their source text, and a binary bound to memory."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from weakref import WeakValueDictionary, ref

from tinote.compiler.launch.access_summary import TaskSummary
from tinote.config import Config
from tinote.errors import CompilerBug
from tinote.ir.buffers import root_of
from tinote.ir.nodes import Buffer
from tinote.ir.types import Scalar
from tinote.lazy import lazy
from tinote.runtime.launch import LaunchBlock, Launcher
from tinote.runtime.layout import SLOTS, WORDS
from tinote.runtime.memory import ExternalMemory, Memory
from tinote.runtime.profile import Clock, ProfiledLaunch, profile
from tinote.runtime.resident import lease_at
from tinote.runtime.seam import active_listener, listeners, silently

if TYPE_CHECKING:
    from tinote.compiler.launch.metadata import ExecutableMetadata
    from tinote.runtime import jit
    from tinote.runtime.jit import Binary
    from tinote.runtime.store import DiskStore
else:
    jit = lazy("tinote.runtime.jit")  # llvmlite takes long to load: not before something is to be run


ENTRY_POINTS = ("entry",)


class Origin(Enum):
    """Where machine code came from."""

    COMPILED = "compiled"
    MEMORY = "memory"  # another instance in this process has the same code
    DISK = "disk"
    PYTHON = "plain Python"  # no machine code at all
    GPU = "WGSL"


#: Binaries that stay in memory after their last kernel is gone, so that a cell that is run again finds them there.
#: Chosen, not measured.
_MAX_KEPT = 64


class Binaries:
    """Machine code by what it was made from: in memory, then on disk, then made anew. In memory is what a kernel uses,
    and what was used last.

    `compiled`, `hits` and `loaded` count what was made, found in memory, and found on disk.
    """

    def __init__(self) -> None:
        self._known: WeakValueDictionary[tuple[str, int], Binary] = WeakValueDictionary()
        self._recent: deque[Binary] = deque(maxlen=_MAX_KEPT)
        self.compiled = 0
        self.hits = 0
        self.loaded = 0

    def find(self, code: str, level: int, store: DiskStore | None) -> tuple[Binary, Origin] | None:
        """The machine code that `code` identifies, compiled at an optimisation level, if it is known."""
        found = self._known.get((code, level))
        if found is not None:
            self.hits += 1
            self._recent.append(found)
            return found, Origin.MEMORY
        if store is None:
            return None
        image = store.get(jit.object_key(code, level))
        if image is None:
            return None
        try:
            found = jit.link_object(image, ENTRY_POINTS)
        except CompilerBug:
            # Whole, but of another make: it is compiled anew.
            return None
        self._keep(code, level, found)
        self.loaded += 1
        return found, Origin.DISK

    def get(
        self, code: str, text: str, level: int, store: DiskStore | None, enter: Callable[[str], None] | None = None
    ) -> tuple[Binary, Origin]:
        """The same, made from LLVM text if need be; `enter` is called with what LLVM begins to do."""
        found = self.find(code, level, store)
        if found is not None:
            return found
        image, binary = jit.compile_image(text, level=level, entry_points=ENTRY_POINTS, enter=enter)
        self._keep(code, level, binary)
        self.compiled += 1
        if store is not None:
            store.put(jit.object_key(code, level), image)
        return binary, Origin.COMPILED

    def _keep(self, code: str, level: int, binary: Binary) -> None:
        self._known[code, level] = binary
        self._recent.append(binary)


binary_cache = Binaries()


class BoundArray(NamedTuple):
    """An array as one launch gets it. `shape`: its index dimensions. `buffer`: what recorders know the memory by, if it
    is a field's or an ndarray's own; None for memory that others manage. `owner` keeps the memory alive.
    """

    address: int
    adjoint: int  # the address of the gradient; 0 without one
    tangent: int
    second: int  # the address of the gradient's dual
    shape: tuple[int, ...]
    nbytes: int
    writable: bool
    buffer: Buffer | None
    owner: Any
    planes: tuple[int, ...] = ()  # the addresses of the gradient along each of a few directions

    def __repr__(self) -> str:
        return f"<array of shape {self.shape} at {self.address:#x}>"

    def address_of(self, part: int) -> int:
        """Where one of its buffers begins (`address_sources`)."""
        return self.planes[part - _FIRST_PLANE] if part >= _FIRST_PLANE else self[part]  # type: ignore[no-any-return]

    @property
    def memory(self) -> ExternalMemory:
        """Its bytes, to be copied and restored."""
        return ExternalMemory(self.address, self.nbytes, (self.owner, lease_at(self.address)))


#: Which address in a `BoundArray` belongs to an array argument's own buffer, to its gradient, to its dual.
_ADDRESS, _ADJOINT, _TANGENT, _SECOND, _SHAPE = range(5)
#: From this number on the parts of an array count its gradient's planes.
_FIRST_PLANE = 16


class BoundCode(Protocol):
    """What launches call: a kernel, its gradient or its tangent, bound to memory.

    `seconds` is what it took to make or to find; `cached`, whether it was there already; `tasks`, what it does to
    memory; `parameters` and `results`, the types of the scalar arguments and of what `launch` gives.
    """

    seconds: float

    @property
    def origin(self) -> Origin: ...

    @property
    def cached(self) -> bool: ...

    @property
    def tasks(self) -> tuple[TaskSummary, ...]: ...

    @property
    def parameters(self) -> tuple[Scalar, ...]: ...

    @property
    def results(self) -> tuple[Scalar, ...]: ...

    def launch(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Run with these arrays and then these scalar arguments (the launch seed, if any, last). Raises `struct.error`
        for a value that does not fit its type.
        """
        ...


class Native:
    """Machine code bound to memory: `launch(values)` runs it. `arrays`: the buffers that each launch binds anew, in the
    order in which `values` begins with a `BoundArray` for each.

    `seconds` is what it took to make or to find, `origin` where the machine code came from.
    """

    def __init__(
        self,
        metadata: ExecutableMetadata,
        binary: Binary,
        origin: Origin,
        config: Config,
        memory_of: Callable[[Buffer], Memory],
        arrays: Sequence[Buffer] = (),
    ) -> None:
        self.metadata = metadata
        self.origin = origin
        self.seconds = 0.0
        self.tasks = metadata.tasks
        image = bytearray(8 * metadata.slots)
        memories: list[Memory] = []
        self._memories = memories
        sources = address_sources(arrays)
        self._arrays = len(arrays)
        self._array_buffers = tuple(arrays)
        pointers = [
            (*sources[buffer], (offset - SLOTS) // 8) for buffer, offset in metadata.pointers if buffer in sources
        ]
        self._pointers = [pointer for pointer in pointers if pointer[1] < _FIRST_PLANE]
        self._planes = [(at, part - _FIRST_PLANE, slot) for at, part, slot in pointers if part >= _FIRST_PLANE]
        self._extents = [(sources[buffer][0], axis, (offset - SLOTS) // 8) for buffer, axis, offset in metadata.extents]
        for buffer, offset in metadata.pointers:
            if buffer in sources:
                continue
            memory = memory_of(buffer)
            memories.append(memory)
            struct.pack_into("<Q", image, offset - SLOTS, memory.address)
        launcher = self.launcher = Launcher(
            binary,
            "entry",
            metadata.slots,
            metadata.scratch_bytes,
            metadata.sites,
            config.num_threads,
            memory_limit=config.memory_limit,
            initial=bytes(image),
            keep=memories,
        )
        self._pack = (
            struct.Struct("<" + "".join(WORDS[t.name] for t in metadata.parameters)).pack_into
            if metadata.parameters
            else None
        )
        self._results = [(offset - SLOTS, struct.Struct("<" + WORDS[t.name][0])) for offset, t in metadata.results]
        self._acquire = launcher.acquire
        self._reuse = launcher.reuse
        self._launch = None if launcher.formats else launcher.runtime.launch
        self._release = launcher.release

    @property
    def parameters(self) -> tuple[Scalar, ...]:
        return self.metadata.parameters

    @property
    def results(self) -> tuple[Scalar, ...]:
        return tuple([t for _, t in self.metadata.results])

    @property
    def cached(self) -> bool:
        """Whether the machine code was there already."""
        return self.origin is not Origin.COMPILED

    def launch(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Run with these arrays and then these scalar arguments (the launch seed, if any, last). Raises `struct.error`
        for a value that does not fit its type.
        """
        if listeners and (listener := active_listener()) is not None:
            return listener.launch(self, values)
        # A method that is held in a slot is read first, and then called: `self._release(block)` is slower.
        reuse, launch, release = self._reuse, self._launch, self._release
        try:
            block = reuse()
        except IndexError:
            block = self._acquire()
        try:
            # `values` keeps the arrays alive until the launch is over: it may be the last reference to them.
            numbers = self._bind(block, values) if self._arrays else values
            if self._pack is not None:
                self._pack(block.slots, 0, *numbers)
            if launch is None:
                self.launcher.run(block)
            else:  # the same where nothing is printed, without a call
                try:
                    status = launch(block.address)
                except BaseException as error:
                    self.launcher.note_interruption(error, block)
                    raise
                if status:
                    self.launcher.raise_fault(block, status)
            if not self._results:
                return ()
            return tuple([form.unpack_from(block.slots, offset)[0] for offset, form in self._results])
        finally:
            release(block)

    # ---- what a captured step asks (`lang/capture/`)

    @property
    def name(self) -> str:
        """Of what it was made, where its errors say that."""
        return self.metadata.sites[0].text if self.metadata.sites else ""

    @property
    def digest(self) -> str:
        """Of the text that it was compiled from."""
        return self.metadata.code

    @property
    def prints(self) -> bool:
        """Whether launches print."""
        return bool(self.launcher.formats)

    @property
    def checks(self) -> bool:
        """Whether a launch may end with an error."""
        return bool(self.metadata.sites)

    @property
    def adds_in_any_order(self) -> bool:
        """Whether it adds up floats in whichever order threads come: not where it launches in order."""
        return False

    @property
    def parameter_places(self) -> tuple[tuple[str, int], ...]:
        """The type and the place of each scalar argument, as bytes from the begin of the slots."""
        return tuple([(t.name, 8 * k) for k, t in enumerate(self.parameters)])

    def last_numbers(self) -> tuple[Any, ...]:
        """The scalar arguments of the last launch, as the block has them that it used; zeros before the first."""
        block = self._acquire()
        try:
            form = struct.Struct("<" + "".join([WORDS[t.name] for t in self.parameters]))
            return form.unpack_from(block.slots)
        finally:
            self._release(block)

    def launch_in_order(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Launch on one thread, without notifying the listener: sums of floats have one order."""
        launcher = self.launcher
        block = launcher.acquire()
        block.limit_threads(1)
        launcher.release(block)  # it is the one that is used next
        try:
            return silently(self.launch, values)  # type: ignore[no-any-return]
        finally:
            block.limit_threads(launcher.num_threads)

    @property
    def arrays(self) -> int:
        """How many arrays the values of a launch begin with."""
        return self._arrays

    def addresses(self) -> list[tuple[int, Buffer]]:
        """What a launch has the address of, each with the byte where it is, from the begin of the slots."""
        return [(offset - SLOTS, buffer) for buffer, offset in self.metadata.pointers]

    def fixed_addresses(self) -> list[tuple[int, str, Memory]]:
        """The memory that is the same in each launch, each with its byte from the begin of the slots, and its name:
        that of fields, and what a kernel keeps for itself between its tasks.
        """
        bound = {8 * slot for _, _, slot in (*self._pointers, *self._planes)}
        fixed = [(offset - SLOTS, buffer.name) for buffer, offset in self.metadata.pointers]
        places = [place for place in fixed if place[0] not in bound]
        return [(*place, memory) for place, memory in zip(places, self._memories, strict=True)]

    def bound_addresses(self, arrays: Sequence[Any]) -> list[tuple[int, int, int]]:
        """The addresses that a launch with these arrays gets, each with its byte and the position of its array."""
        found = [(8 * slot, arrays[position][part], position) for position, part, slot in self._pointers]
        return found + [(8 * slot, arrays[at].planes[plane], at) for at, plane, slot in self._planes]

    def bound_extents(self, arrays: Sequence[Any]) -> list[tuple[int, int]]:
        """The extents of these arrays, each with its byte."""
        return [(8 * slot, arrays[position][_SHAPE][axis]) for position, axis, slot in self._extents]

    def array_slots(self) -> dict[tuple[int, int], int]:
        """Where the address of an array is that each launch binds, by the array's position and which of its own, its
        gradient's, … that is (`address_sources`).
        """
        found = {(position, part): 8 * slot for position, part, slot in self._pointers}
        return found | {(position, _FIRST_PLANE + plane): 8 * slot for position, plane, slot in self._planes}

    def extent_slots(self) -> dict[tuple[int, int], int]:
        """The same of extents, by the array's position and the axis."""
        return {(position, axis): 8 * slot for position, axis, slot in self._extents}

    @property
    def array_buffers(self) -> tuple[Buffer, ...]:
        """The arrays that each launch binds."""
        return self._array_buffers

    def writes_array(self, position: int) -> bool:
        """Whether a launch writes to the array at this position."""
        return any(self._array_buffers[position] in task.accesses.written for task in self.tasks)

    def written_addresses(self) -> set[int]:
        """The bytes at which the addresses stand that a launch writes to."""
        written = {root_of(buffer) for task in self.tasks for buffer in task.accesses.written}
        return {offset - SLOTS for buffer, offset in self.metadata.pointers if root_of(buffer) in written}

    def metadata_results(self) -> list[tuple[int, Scalar]]:
        """Where each result is, from the begin of the slots."""
        return [(offset - SLOTS, t) for offset, t in self.metadata.results]

    def _bind(self, block: LaunchBlock, values: Sequence[Any]) -> Sequence[Any]:
        """Tell a launch where its arrays are and how large; gives the scalar arguments."""
        words = block.integers
        for position, part, slot in self._pointers:
            words[slot] = values[position][part]
        for position, plane, slot in self._planes:
            words[slot] = values[position].planes[plane]
        for position, axis, slot in self._extents:
            words[slot] = values[position][_SHAPE][axis]
        return values[self._arrays :]


def address_sources(arrays: Sequence[Buffer]) -> dict[Buffer, tuple[int, int]]:
    """Which array, and which of its addresses, a buffer stands for."""
    found: dict[Buffer, tuple[int, int]] = {}
    for position, array in enumerate(arrays):
        second = array.adjoint and array.adjoint.tangent
        parts = ((_ADDRESS, array), (_ADJOINT, array.adjoint), (_TANGENT, array.tangent), (_SECOND, second))
        for part, buffer in parts:
            if buffer is not None:
                found[buffer] = (position, part)
        for plane, buffer in enumerate(array.adjoint.planes if array.adjoint is not None else ()):
            found[buffer] = (position, _FIRST_PLANE + plane)
    return found


class Profiled(Native):
    """The same with clocks in it: every launch reports to the process's profile what its tasks took. `owner`: the
    specialisation that it is the code of.
    """

    owner: ref[Any] | None = None

    def launch(self, values: Sequence[Any]) -> tuple[Any, ...]:
        specialisation = self.owner and self.owner()
        numbers = values[self._arrays : len(values) - bool(specialisation and specialisation.uses_random)]
        launch = ProfiledLaunch(ref(self), tuple(numbers), tuple([array.shape for array in values[: self._arrays]]))
        return self.timed(values, lambda times: profile.record(times, launch))

    def timed(self, values: Sequence[Any], report: Callable[[list[tuple[Clock, int]]], None]) -> tuple[Any, ...]:
        """A launch whose tasks' times, in nanoseconds, go to `report`."""
        block = self._acquire()
        try:
            numbers = self._bind(block, values) if self._arrays else values
            if self._pack is not None:
                self._pack(block.slots, 0, *numbers)
            try:
                self.launcher.run(block)
            finally:
                report([(clock, block.integers[clock.slot]) for clock in self.metadata.clocks])
            return tuple([form.unpack_from(block.slots, offset)[0] for offset, form in self._results])
        finally:
            self._release(block)
