"""Memory effects of a `with` block: live-in, written and fully overwritten memory; and the contents at its start, where
the block is to run again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn

from tinote.errors import DifferentiationError, Note
from tinote.ir.nodes import Buffer
from tinote.lang.ad.journal.events import Write
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.ad.memory.effects import BlockEffects
from tinote.lang.ad.memory.values import held_now, hold
from tinote.lang.data.fields import Field
from tinote.lang.data.traced import constants
from tinote.lang.index_regions import IndexRegion, whole_region
from tinote.lang.kernels.arguments import ExternalArray, observed_arguments
from tinote.lang.session.state import Recorder, memory_of, note_python_write, watching
from tinote.runtime.memory import Memory, MemoryCopies
from tinote.source import Span, caller

#: Those that are open in this context, the outermost first.
_open: ContextVar[tuple[Effects, ...]] = ContextVar("tinote_effects", default=())


class Effects(BlockEffects):
    """Memory effects of a `with` block in this context. `start`: the contents of written memory before the block,
    with `keeps_duals` also of its duals. `tell` is called before a write. Gradients and duals do not count otherwise.
    """

    def __init__(
        self, tell: Callable[[Buffer], None] | None = None, *, keeps: bool = False, keeps_duals: bool = False
    ) -> None:
        super().__init__()
        self._keeps_duals = keeps_duals
        #: gradients and duals computed by an inner block, which recomputes them when this block runs again
        self.computed: set[Buffer] = set()
        self.start = MemoryCopies()
        self._tell = tell
        self._keeps = keeps
        self._listening: AbstractContextManager[None] | None = None

    def begin(self) -> None:
        """Begin the block, where a `with` statement is impossible (`listening`)."""
        listening = self.listening()
        listening.__enter__()
        self._listening = listening

    def end(self) -> None:
        """End the block, if it has begun."""
        listening, self._listening = self._listening, None
        if listening is not None:
            listening.__exit__(None, None, None)

    @contextmanager
    def listening(self) -> Iterator[None]:
        before = _open.get()
        try:
            _open.set((*before, self))
            with watching(self):
                yield
        except GeneratorExit:  # an interrupt has kept the block from ending, and it is collected, perhaps later
            if _open.get()[-1:] == (self,):
                _open.set(before)
            raise
        except BaseException:
            _open.set(before)
            raise
        _open.set(before)

    def launching_outside(self, instance: Any, values: tuple[Any, ...]) -> None:
        """A kernel is about to be launched."""
        if self not in _open.get():
            return
        values = constants(values)
        arguments = observed_arguments(instance, values)
        touched = arguments.accesses
        for buffer in touched.loaded if self._keeps else ():
            if buffer.primal is not None and buffer not in self.computed:
                self._refuse_gradient(buffer, instance.specialisation.source.span)
        external = [b for b in touched.loaded if isinstance(b, ExternalArray)]
        self.loaded.update(external)
        self.load([b for b, _ in arguments.effects(values).live_in if b.primal is None])
        for buffer in touched.written:
            if isinstance(buffer, ExternalArray):
                if not self._keeps:
                    self.written.add(buffer)
                    continue
                raise DifferentiationError(
                    f"a derivative inside of another one writes to '{buffer.name}', an array that is not tinote's own: "
                    "it cannot be brought back to run this again",
                    caller(),
                    hint="use a field or a ti.ndarray",
                    notes=[Note("the kernel", instance.specialisation.source.span)],
                )
            self._overwrites(buffer)
        for buffer, region in arguments.definite_stores(values):
            if region == whole_region(buffer):
                self._fills(buffer)

    def overwriting_outside(self, buffer: Buffer, region: IndexRegion | None = None) -> None:
        """Elements of a field are about to be written by Python."""
        if self in _open.get():
            self._overwrites(buffer)
            if region is not None and region == whole_region(buffer):
                self._fills(buffer)

    def replaying_outside(self, memories: Iterable[Memory]) -> bool:
        """A captured step is about to be replayed: within this, its launches are recorded one by one."""
        return self not in _open.get()

    def _fills(self, buffer: Buffer) -> None:
        if buffer not in self.loaded:
            self.filled.add(buffer)

    def _overwrites(self, buffer: Buffer) -> None:
        if buffer.primal is None and buffer not in self.written:
            self.written.add(buffer)
            if self._keeps:
                self.start.add(memory_of(buffer))
            if self._keeps_duals and buffer.tangent is not None:
                self.start.add(memory_of(buffer.tangent))
            if self._tell is not None:
                self._tell(buffer)

    def read_by_python(self, journal: Journal) -> None:
        """Python has read fields, too."""
        for buffer in journal.memory.looked_at:
            if buffer.primal is None:
                self.loaded.add(buffer)
            elif buffer not in self.computed:
                self._refuse_gradient(buffer, caller())
        for event in journal.events:
            if isinstance(event, Write) and event.source is not None:
                self.loaded.add(event.source)

    @contextmanager
    def in_gradient(self, read: Collection[Buffer]) -> Iterator[None]:
        """A block in which a custom gradient runs: its writes are undone, except to gradients. `read` gets the fields
        that Python reads.
        """
        before = self.written, self.filled, self._keeps
        self.written, self.filled, self._keeps = set(self.written), set(self.filled), False
        try:
            yield
        finally:
            self.load([b for b in read if b.primal is None])
            self.written, self.filled, self._keeps = before

    @staticmethod
    def _refuse_gradient(buffer: Buffer, span: Span) -> NoReturn:
        raise DifferentiationError(
            f"a derivative inside of another one reads the gradient or dual '{buffer.name}', which holds something "
            "else when this runs again",
            span,
            hint="copy it into a field of its own before",
        )


def note_values(outer: Recorder, shadows: Collection[Buffer], span: Span) -> None:
    """A block inside of `outer`, opened at `span`, has computed these gradients or duals."""
    outer.has_values(shadows, span)
    for one in _open.get():
        one.computed.update(shadows)


def leave_value(outer: Recorder, shadow: Buffer, value: Any) -> None:
    """Set a gradient or dual to the result of a block inside of `outer`: a number, or an array's contents."""
    with outer.leaving_value(shadow) as held:
        if isinstance(value, Field):
            note_python_write(shadow, ..., None, value.buffer)
            hold(held, held_now(value.buffer))
        else:
            note_python_write(shadow, ..., value)
            hold(held, value)


@contextmanager
def in_gradient(read: Collection[Buffer]) -> Iterator[None]:
    """Report to listeners a block in which a custom gradient runs (`Effects.in_gradient`)."""
    with ExitStack() as blocks:
        for one in _open.get():
            blocks.enter_context(one.in_gradient(read))
        yield
