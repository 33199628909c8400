"""Broken gradient paths: differentiated values that pass through memory without a gradient or dual, not even a
temporary one, would silently count as constants. They are followed from the write to where they would be needed.

Such memory is an external array, memory that the user has declared to have none, and memory that a block with a custom
VJP uses, which sees only the gradients that the user has declared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from tinote.errors import Note, broken_gradient_path
from tinote.ir.nodes import Buffer
from tinote.lang.ad.journal.captured_steps import CapturedStep
from tinote.lang.ad.journal.events import Computed, Custom, Event, Read, Write
from tinote.lang.ad.journal.saved_values import RecordedLaunch
from tinote.lang.kernels.arguments import Arguments, ExternalArray, declared_constant, span_in
from tinote.source import Span


class LostValues:
    """Fields without a shadow (a gradient; in forward mode, `tangents`, a dual) that hold active values, and
    the place where each was written. Events are passed in order; raises `DifferentiationError` where a value would be
    needed.
    """

    __slots__ = ("_tangents", "numbers", "spans")

    def __init__(self, at_first: Mapping[Buffer, Span] | None = None, *, tangents: bool = False) -> None:
        self.spans: dict[Buffer, Span] = {} if at_first is None else dict(at_first)
        self.numbers: dict[int, Buffer] = {}  # numbers read from such fields, or computed from these
        self._tangents = tangents

    def _shadow(self, buffer: Buffer) -> Buffer | None:
        return buffer.tangent if self._tangents else buffer.adjoint

    def lose(self, buffer: Buffer, span: Span) -> None:
        """Record that an active value is written to memory, at `span`."""
        if self._shadow(buffer) is not None or buffer.primal is not None or buffer.dtype.kind != "f":
            return
        if isinstance(buffer, ExternalArray) or self._is_declared(buffer):
            self.spans.setdefault(buffer, span)

    def _is_declared(self, buffer: Buffer) -> bool:
        return declared_constant(buffer, tangents=self._tangents)

    def _refuse(self, buffer: Buffer, span: Span, note: Note) -> None:
        external = isinstance(buffer, ExternalArray)
        declared = self._is_declared(buffer)
        raise broken_gradient_path(
            buffer.name, span, [note], tangents=self._tangents, external=external, declared=declared
        )

    def follow(self, events: Iterable[Event]) -> None:
        """Follow these values through a journal."""
        for event in events:
            if isinstance(event, RecordedLaunch | CapturedStep):
                for arguments in self._launches_of(event):
                    self.launch(arguments)
                if event.sources:
                    self._numbers_to_launch(event)
            elif isinstance(event, Custom):
                self.custom(event)
            elif isinstance(event, Write):
                self.write(event.target, event.source, event.span, whole=event.is_whole)
                if event.numbers is not None:
                    self._numbers_to_field(event)
            elif self.spans:
                self._numbers_of(event)

    # ---- through Python

    def _numbers_of(self, event: Read | Computed) -> None:
        """Follow numbers read from such fields, and numbers computed from these."""
        if isinstance(event, Read):
            if event.buffer in self.spans:
                self.numbers[event.number] = event.buffer
        else:
            for source in event.sources:
                if source in self.numbers:
                    self.numbers[event.number] = self.numbers[source]

    def _numbers_to_launch(self, event: RecordedLaunch | CapturedStep) -> None:
        who = "this kernel" if isinstance(event, RecordedLaunch) else f"'{event.name}'"
        for number in event.sources:
            self.refuse_number(number, Note(f"from there {who} gets them as an argument", event.span))

    def _numbers_to_field(self, write: Write) -> None:
        written = set(write.sources)
        if self._shadow(write.target) is None:
            if self._is_declared(write.target) or not written.isdisjoint(self.numbers):
                self.spans.setdefault(write.target, write.span)
            return
        for number in written:
            self.refuse_number(number, Note(f"from there they are written to '{write.target.name}'", write.span))

    def refuse_number(self, number: int, note: Note) -> None:
        """Raise `DifferentiationError` if a number comes from such a field; it would be needed."""
        if number in self.numbers:
            buffer = self.numbers[number]
            self._refuse(buffer, self.spans.get(buffer, note.span), note)

    # ---- through events

    def _launches_of(self, event: RecordedLaunch | CapturedStep) -> Iterable[Arguments]:
        """A launch, or those of a captured step, which loses no values itself."""
        if isinstance(event, RecordedLaunch):
            return (event.arguments,)
        return event.way.facts.launches if self.spans else ()

    def launch(self, arguments: Arguments) -> None:
        """Through a launch that is differentiated in reverse mode."""
        if self.spans:
            carried = arguments.follow_broken_paths(self.spans)
            self._refill(arguments)
            for further, write in carried:
                self.spans.setdefault(further, write)
        for path in arguments.broken_paths:
            self.lose(path.buffer, path.span)

    def _refill(self, arguments: Arguments) -> None:
        """Memory that a launch overwrites as a whole, for certain, holds nothing of what was lost."""
        for buffer in arguments.filled:
            self.spans.pop(buffer, None)

    def launch_forward(self, arguments: Arguments, temporaries: Collection[Buffer], *, active: bool) -> None:
        """Through a launch that is differentiated in forward mode. `temporaries`: memory with a temporary dual;
        `active`: some arguments are active values.
        """
        touched = arguments.accesses
        kernel_span = arguments.specialisation.source.span
        reaches = any(buffer.tangent is not None for buffer in touched.written)
        for buffer in touched.loaded if self.spans else ():
            span = span_in(self.spans, buffer)
            if span is not None and (reaches or not self._is_declared(buffer)):
                self._refuse(buffer, span, Note("written by this kernel, and then read by", kernel_span))
        if self.spans:
            self._refill(arguments)
        if active or any(buffer.tangent is not None or buffer in temporaries for buffer in touched.loaded):
            for buffer in touched.written:
                if not self._is_declared(buffer):
                    self.lose(buffer, kernel_span)

    def stores_to_declared(self, arguments: Arguments) -> None:
        """The stores of a launch in forward mode, with all its temporary duals, into memory declared to have no
        dual.
        """
        for path in arguments.broken_paths:
            if self._is_declared(path.buffer):
                self.lose(path.buffer, path.span)

    def launch_gradient_forward(self, arguments: Arguments, temporaries: Collection[Buffer]) -> None:
        """Through the gradient of a kernel, launched alone in forward mode: it has no temporary duals."""
        kernel_span = arguments.specialisation.source.span
        if not self.spans and not temporaries:
            return
        for buffer in {b for task in arguments.gradient_tasks for b in task.accesses.loaded}:
            span = span_in(self.spans, buffer)
            if span is None and buffer in temporaries:
                span = kernel_span
            if span is not None:
                self._refuse(buffer, span, Note("from there the gradient of this kernel reads it", kernel_span))

    def custom(self, custom: Custom) -> None:
        """Through a block with a custom VJP."""
        for number in custom.sources:
            self.refuse_number(number, Note(f"from there they go into '{custom.name}'", custom.span))
        for buffer in custom.effects.filled:
            self.spans.pop(buffer, None)
        before = {**custom.active, **self.spans}
        broken = [(b, span) for b in custom.loaded if (span := span_in(before, b)) is not None]
        if broken and any(b.adjoint is not None for b in custom.written):
            self._refuse(*broken[0], Note(f"from there '{custom.name}' reads them", custom.span))
        left = custom.lost
        if left is None:
            is_active = bool(broken) or any(b.adjoint is not None for b in custom.loaded)
            followed = custom.active.keys() - custom.effects.filled  # the adjoint of its result there would bypass it
            left = {b: custom.span for b in custom.written if (is_active or b in followed) and _may_break(b)}
        for buffer, span in left.items():
            self.spans.setdefault(buffer, span)

    def write(self, target: Buffer, source: Buffer | None, span: Span, *, whole: bool) -> None:
        """Through a write by Python: of constants, or of all elements of the field `source`."""
        if source is None:
            if whole:
                self.spans.pop(target, None)
        elif source in self.spans:
            if self._shadow(target) is not None:
                self._refuse(source, self.spans[source], Note(f"from there they are copied to '{target.name}'", span))
            self.spans.setdefault(target, self.spans[source])
        elif self._shadow(source) is not None and self._is_declared(target):
            self.spans.setdefault(target, span)


def _may_break(buffer: Buffer) -> bool:
    return buffer.dtype.kind == "f" and buffer.adjoint is None and not buffer.no_adjoint
