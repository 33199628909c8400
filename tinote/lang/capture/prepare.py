"""A plan in this process's memory: instructions for the native replay (`runtime/native/replay.c`)."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tinote.compiler.launch.native import Native
from tinote.errors import KernelOverflowError, KernelZeroDivisionError
from tinote.ir.types import scalar_named
from tinote.lang.capture.instructions import NOWHERE_READY, Instructions, launch_key
from tinote.lang.data.layout import warm_copy
from tinote.lang.data.matrix import numpy_type
from tinote.lang.data.traced_derivatives import function_named
from tinote.lang.session.state import session
from tinote.lazy import lazy
from tinote.program import operations as ops
from tinote.program.interpret import OPERATIONS
from tinote.program.program import Path, Program
from tinote.runtime import layout
from tinote.runtime.launch import LaunchBlock, Launcher, LaunchStopped
from tinote.runtime.memory import Memory
from tinote.source import NOWHERE, Span

if TYPE_CHECKING:
    from tinote.runtime import jit
else:
    jit = lazy("tinote.runtime.jit")  # llvmlite takes long to load: not before something is to be run


#: A function of the process that a program calls; it gives a status.
_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int32)


class _Within(int):
    """The address of a byte in an input or in a given block: known only when the plan runs."""

    block: int
    offset: int

    @staticmethod
    def at(block: int, offset: int = 0) -> _Within:
        found = _Within()
        found.block, found.offset = block, offset
        return found

    def __add__(self, offset: int) -> _Within:
        return _Within.at(self.block, self.offset + offset)


class Prepared(Instructions):
    """A plan that runs. `natives` are its codes, `memories` its blocks as far as they are the session's, or copies of
    these. `threads`: the most threads of a launch; by default those of the session. `given`: blocks whose memory is
    given for each run (`point`), like that of inputs.

    `raises_as_python`: errors of arithmetic are Python's own.

    `run(inputs)` returns the number of the end that was reached, or `NOWHERE_READY`; `number` reads a register.
    """

    raises_as_python = False

    def __init__(
        self,
        plan: Program,
        natives: Sequence[Native],
        memories: Sequence[Memory | None],
        threads: int | None = None,
        length: int | None = None,
        *,
        ready: Callable[[Path], bool] | None = None,
        given: Collection[int] = (),
    ) -> None:
        super().__init__(plan, length, ready)
        self.given = given
        self._natives = natives
        self._threads = threads
        self._memories = [self._memory_of_block(number, memory) for number, memory in enumerate(memories)]
        self._blocks: dict[Any, LaunchBlock] = {}
        #: by block of an input or given block: the words with addresses in it, as memory, index of the word and byte
        self._places: dict[int, list[tuple[memoryview, int, int]]] = {}
        self._within: list[tuple[int, _Within]] = []
        self._held: list[tuple[Launcher, LaunchBlock]] = []
        self._registers = Memory(8 * self.most_cells)
        self.floats = self._registers.view().cast("d")
        self._functions: list[Any] = []  # what runs functions of the process
        self._raised: list[BaseException] = []
        self.assemble()
        view = self._registers.view().cast("q")
        view[: len(self.cells)] = memoryview(struct.pack(f"<{len(self.cells)}q", *self.cells)).cast("q")
        self.integers = view
        self._code = Memory(8 * len(self.words))
        self._code.view()[:] = struct.pack(f"<{len(self.words)}q", *self.words)
        words = self._code.view().cast("q")
        for number, place in self._within:
            self._note_place(place, words, number)
        self._start()

    def _memory_of_block(self, number: int, memory: Memory | None) -> Memory | None:
        """The address of a block; None for one that is given for each run."""
        block = self.plan.blocks[number]
        if number in self.given or memory is not None or block.kind == "input":
            return None if number in self.given else memory
        made = Memory(max(block.nbytes, 8))
        if block.data:
            made.view()[: len(block.data)] = block.data
        return made

    def _start(self) -> None:
        """Make ready to run it."""
        self._launcher = Launcher(jit.runtime_binary(), "tn_replay", slots=3)
        block = self._block = self._launcher.acquire()
        block.integers[0], block.integers[1] = self._code.address, self._registers.address
        self._address = block.address
        self._launch = self._launcher.runtime.launch

    def __del__(self) -> None:
        for launcher, block in self.__dict__.get("_held", ()):
            block.limit_threads(launcher.num_threads)
            block.slots[: len(launcher.initial)] = launcher.initial
            launcher.release(block)

    def run(self) -> int:
        """Run; the registers of the inputs have their values. Raises the errors of the step itself."""
        session.replayed = session.order = session.order + 1
        try:
            status = self._launch(self._address)
        except BaseException as error:
            for _, block in self._held:
                block.leave()
            self.note(error, self._block.site)
            self._unwind(self._block.site)
            raise
        if status:
            site = self._block.site
            if 0 <= site < self.main:
                return NOWHERE_READY
            try:
                self.fail(status, site)
            finally:
                self._unwind(site)
        return self._block.integers[2]

    def number(self, operand: ops.Operand) -> Any:
        """The value of a register or a constant."""
        if isinstance(operand, ops.Constant):
            return operand.value
        if operand.kind == "f":
            return self.floats[operand.number]
        found = self.integers[operand.number]
        return bool(found) if operand.kind == "b" else found & 0xFFFFFFFFFFFFFFFF if operand.kind == "s" else found

    def memory_of(self, view: ops.View) -> np.ndarray[Any, Any]:
        """The numbers of a view, without a copy."""
        memory = self._memories[view.block]
        assert memory is not None
        dtype = numpy_type(scalar_named(view.type))
        return np.ndarray(view.shape, dtype, memory.view(), view.offset, view.strides)

    def copier(self, view: ops.View, dtype: str) -> Callable[[], np.ndarray[Any, Any]]:
        """A function that copies the numbers of a view, as an array of this type."""
        if 0 in view.shape:
            return lambda: np.zeros(view.shape, dtype)
        values = self.memory_of(view).view(dtype)
        return lambda: warm_copy(values)

    def point(self, block: int, address: int) -> None:
        """Set the address of this block, an input or a given one."""
        for words, number, offset in self._places.get(block, ()):
            words[number] = address + offset

    def _emit(self, span: Span | None, *words: int) -> None:
        self._within += [(k, word) for k, word in enumerate(words, len(self.words)) if isinstance(word, _Within)]
        super()._emit(span, *words)

    def _note_place(self, place: int, words: memoryview, number: int) -> None:
        """A word holds an address, perhaps in an input."""
        if isinstance(place, _Within):
            self._places.setdefault(place.block, []).append((words, number, place.offset))

    def set_counter(self) -> None:
        """Launches that draw random numbers continue the session's sequence."""
        self.integers[self.counter_register] = session.launches

    @property
    def counter(self) -> int:
        """How many launches have drawn random numbers so far, in the session and in replays."""
        return self.integers[self.counter_register]

    # ---- memory

    def block_address(self, number: int) -> int:
        memory = self._memories[number]
        return _Within.at(number) if memory is None else memory.address

    def register_address(self, number: int) -> int:
        return self._registers.address + 8 * number

    def launch_block(self, step: ops.Launch) -> tuple[int, memoryview]:
        key = launch_key(step)
        block = self._blocks.get(key)
        if block is None:
            launcher = self._natives[step.code].launcher
            block = self._blocks[key] = launcher.acquire()
            self._held.append((launcher, block))
            for slot, extent in step.extents:
                block.integers[slot // 8] = extent
            # The code refers to the session's memory, but here it may be a copy, or a block of the plan itself.
            for slot, number, offset in (*step.pointers, *self.plan.codes[step.code].pointers):
                place = self.block_address(number) + offset if number >= 0 else 0
                block.integers[slot // 8] = place
                self._note_place(place, block.integers, slot // 8)
            if self._threads is not None:
                block.limit_threads(self._threads)
        return block.address, block.slots

    def function_address(self, name: str, register: int, operands: Sequence[int]) -> int:
        function, numbers, raised = function_named(name), self.floats, self._raised

        def call() -> int:
            try:
                numbers[register] = function(*[numbers[one] for one in operands])
            except BaseException as error:
                raised.append(error)
                return layout.STATUS_OVERFLOW
            return layout.STATUS_OK

        made = _FUNCTION(call)
        self._functions.append(made)
        return ctypes.cast(made, ctypes.c_void_p).value or 0

    # ---- errors

    @property
    def failed(self) -> ops.Operation | None:
        """The step that the last run ended at with an exception."""
        known = [at for at in self.begins if at <= self._block.site]
        return self.begins[max(known)] if known else None

    def _unwind(self, site: int) -> None:
        """Do the cleanup after the step has failed at the word `site`."""
        due = [(begin, end) for filled, begin, end in self.always if filled < site < begin]
        if not due:
            return
        code = self._code.view().cast("q")
        words = [word for begin, end in due for word in code[begin:end]]
        memory = Memory(8 * (len(words) + 2))
        memory.view()[:] = struct.pack(f"<{len(words) + 2}q", *words, layout.REPLAY_END, 0)
        integers = self._block.integers
        integers[0] = memory.address
        try:
            self._launch(self._address)
        finally:
            integers[0] = self._code.address

    def _launching(self, site: int) -> tuple[Launcher, LaunchBlock] | None:
        """The launch at this word."""
        step = self.launches.get(site)
        return None if step is None else (self._natives[step.code].launcher, self._blocks[launch_key(step)])

    def note(self, error: BaseException, site: int) -> None:
        """Note on an error what it interrupted: the instruction at this word."""
        found = self._launching(site)
        if found is not None:
            launcher, block = found
            launcher.note_interruption(error, block)

    def fail(self, status: int, site: int) -> NoReturn:
        """Raise the error of the instruction at this word."""
        if self._raised:
            raise self._raised.pop()
        found = self._launching(site)
        if found is not None:
            launcher, block = found
            launcher.raise_fault(block, status)
        if status == layout.STATUS_INTERRUPT:
            raise LaunchStopped("the captured step was stopped")
        span = self.spans.get(site, NOWHERE)
        if self.raises_as_python and site in self.computed:
            operation, numbers = self.computed[site]
            OPERATIONS[operation].value(*[self.floats[one] for one in numbers])  # raises what it raises in Python
        if status == layout.STATUS_DIVISION:
            raise KernelZeroDivisionError("division by zero in a captured step", span)
        raise KernelOverflowError("a number in a captured step does not fit its type", span)
