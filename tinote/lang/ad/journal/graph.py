"""The graph of a tape: launches in order, the fields that they read and write, overwritten values, and the tape's
copies of these. Repeated sequences are folded, also nested ones.

    tape.graph()        in a notebook: the picture (`graph_picture.py`); else:

    101 launches; the tape has copied 4.0 KiB
                     x    v    loss
      1  × 50
           force     r    +
           move      ±*   r
    101  energy      r    r    +
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Flag, auto
from typing import NamedTuple

from tinote.ir.nodes import Buffer
from tinote.lang.ad.journal.events import Event, Record, Write
from tinote.lang.ad.journal.graph_picture import GraphMark, GraphRow, Group, Lane, draw
from tinote.lang.ad.journal.saved_values import RecordedLaunch
from tinote.runtime.memory import readable_size
from tinote.source import Span

_LONGEST_BLOCK = 24


class Use(Flag):
    """The effect of a step on a field. `OVERWRITES`: it stores to what was used before, or adds to what was read
    before; `COPIED`: the tape has saved the overwritten values.
    """

    READS = auto()
    STORES = auto()
    ADDS = auto()
    OVERWRITES = auto()
    COPIED = auto()


@dataclass
class GraphStep:
    """A launch, a block with a custom gradient, or a write of a whole field by Python (`python`). `number`: its record,
    counted from 1, or the next one. `copied`: bytes that the tape has saved because of it.
    """

    number: int
    name: str
    span: Span
    uses: dict[Buffer, Use]
    python: bool = False
    copied: int = 0

    @property
    def signature(self) -> object:
        """The key that equal steps share; overwritten and copied values may differ."""
        kinds = {b: use & (Use.READS | Use.STORES | Use.ADDS) for b, use in self.uses.items()}
        return self.name, self.span, self.python, frozenset(kinds.items())

    def merge(self, other: GraphStep | RepeatedSteps) -> None:
        """Merge with an equal step."""
        assert isinstance(other, GraphStep)
        for buffer, use in other.uses.items():
            self.uses[buffer] |= use
        self.copied += other.copied

    def leaves(self) -> Iterator[GraphStep]:
        """The step itself; for a block, its steps."""
        yield self


@dataclass
class RepeatedSteps:
    """A sequence of steps and repeated blocks that was recorded `times` in a row."""

    steps: list[GraphStep | RepeatedSteps]
    times: int = 1

    @property
    def number(self) -> int:
        """The number of its first step."""
        return self.steps[0].number

    @property
    def copied(self) -> int:
        """Bytes that the tape has saved because of its steps."""
        return sum(step.copied for step in self.steps)

    @property
    def signature(self) -> object:
        """The key that equal blocks share."""
        return self.times, tuple([step.signature for step in self.steps])

    def merge(self, other: GraphStep | RepeatedSteps) -> None:
        """Merge with an equal block."""
        assert isinstance(other, RepeatedSteps)
        for mine, its in zip(self.steps, other.steps, strict=True):
            mine.merge(its)

    def leaves(self) -> Iterator[GraphStep]:
        """All its steps, including those of nested blocks."""
        for step in self.steps:
            yield from step.leaves()


@dataclass(repr=False)
class TapeGraph:
    """The record of a tape, folded into `blocks`. `fields`: those read or written, in order of first use;
    `temporaries`: those without a gradient that have a temporary adjoint. Shows itself as a picture in a notebook and
    as a table elsewhere.
    """

    blocks: list[RepeatedSteps]
    launches: int
    loss: Buffer
    fields: list[Buffer] = field(default_factory=list)
    temporaries: frozenset[Buffer] = frozenset()

    @property
    def copied_bytes(self) -> int:
        """The total bytes of overwritten values that the tape has saved."""
        return sum(block.copied for block in self.blocks)

    @property
    def summary(self) -> str:
        """The size of the record, in words."""
        launches = f"{self.launches:,} launch{'' if self.launches == 1 else 'es'}"
        copied = f"the tape has copied {readable_size(self.copied_bytes)}" if self.copied_bytes else "nothing is copied"
        temporary = ", ".join([b.name for b in self.fields if b in self.temporaries])
        return f"{launches}; {copied}{f'; temporary adjoints: {temporary}' if temporary else ''}"

    def __repr__(self) -> str:
        rows = [row for block in self.blocks for row in _rows_of(block)]
        names = [b.name for b in self.fields]
        width = max([len(self.summary) // 3, *(len(row.name) for row in rows)])
        digits = len(str(self.launches))
        lanes = [max(len(name), 2) for name in names]

        def line(number: str, name: str, cells: Sequence[str]) -> str:
            shown = "  ".join([cell.ljust(n) for cell, n in zip(cells, lanes, strict=False)])
            return f"{number.rjust(digits)}  {name.ljust(width)}  {shown}".rstrip()

        lines = [self.summary, line("", "", names)]
        for number, name, step in rows:
            lines.append(line(number, name, [_letter(step.uses.get(b)) for b in self.fields] if step else []))
        legend = "r reads, w writes, + adds; W and ± change what was used before, * and the tape has copied it"
        return "\n".join([*lines, legend])

    def _repr_svg_(self) -> str:
        rows: list[GraphRow] = []
        for block in self.blocks:
            for step, groups in _grouped(block, ()):
                marks = {self.fields.index(b): _mark(use) for b, use in step.uses.items()}
                note = readable_size(step.copied) if step.copied else ""
                rows.append(GraphRow(str(step.number), step.name, marks, note, step.python, groups))
        lanes = [
            Lane(b.name, b.adjoint is not None, b is self.loss, temporary=b in self.temporaries) for b in self.fields
        ]
        return draw(self.summary, lanes, rows)


class _TextRow(NamedTuple):
    """A step, or the head of a repeated block."""

    number: str
    name: str
    step: GraphStep | None


def _rows_of(item: GraphStep | RepeatedSteps, depth: int = 0) -> Iterator[_TextRow]:
    number = "" if depth else str(item.number)
    if isinstance(item, GraphStep):
        yield _TextRow(number, "  " * depth + item.name, item)
        return
    repeats = item.times > 1
    if repeats:
        yield _TextRow(number, f"{'  ' * depth}× {item.times:,}", None)
    for step in item.steps:
        yield from _rows_of(step, depth + repeats)


def _grouped(
    item: GraphStep | RepeatedSteps, around: tuple[Group, ...]
) -> Iterator[tuple[GraphStep, tuple[Group, ...]]]:
    """Every step with its position in the repeated blocks around it, the outermost first."""
    if isinstance(item, GraphStep):
        yield item, around
        return
    length = len(list(item.leaves()))
    position = 0
    for inner in item.steps:
        for step, groups in _grouped(inner, ()):
            here = (Group(position, length, item.times),) if item.times > 1 else ()
            yield step, (*around, *here, *groups)
            position += 1


def graph_of(
    events: Sequence[Event],
    copied: Iterable[tuple[int, Buffer, int]],
    loss: Buffer,
    temporaries: frozenset[Buffer] = frozenset(),
) -> TapeGraph:
    """The graph of a journal.

    `copied`: a number of launches, the field that was partly saved after these, and the number of bytes.
    """
    steps = list(_steps(events, copied))
    launches = sum(isinstance(event, Record) for event in events)
    used: dict[Buffer, None] = {}
    for step in steps:
        used.update(dict.fromkeys(step.uses))
    used.pop(loss, None)
    items: list[GraphStep | RepeatedSteps] = [*steps]
    blocks = [item if isinstance(item, RepeatedSteps) else RepeatedSteps([item]) for item in _folded(items)]
    return TapeGraph(blocks, launches, loss, [*used, loss], temporaries & used.keys())


def _steps(events: Sequence[Event], copied: Iterable[tuple[int, Buffer, int]]) -> Iterator[GraphStep]:
    seen: dict[Buffer, Use] = {}
    copies: dict[int, dict[Buffer, int]] = {}
    for position, buffer, nbytes in copied:
        kept = copies.setdefault(position, {})
        kept[buffer] = kept.get(buffer, 0) + nbytes
    before = 0  # the number of launches so far
    for event in events:
        kept = copies.get(before, {})
        if isinstance(event, Write):
            if event.initialises or _is_of_elements(event):
                continue
            uses = {event.target: Use.STORES}
            if event.source is not None:
                uses = {event.source: Use.READS, **uses}
            name = "copy by Python" if event.source is not None else "fill by Python"
            yield _seen(GraphStep(before + 1, name, event.span, uses, python=True), seen, kept)
        if not isinstance(event, Record):
            continue
        before += 1
        uses = _uses(event)
        in_order = sorted(uses.items(), key=lambda pair: (pair[1].value, pair[0].name))
        shown = {b: u for b, u in in_order if b.primal is None}
        yield _seen(GraphStep(before, event.name, event.span, shown), seen, kept)


def _is_of_elements(write: Write) -> bool:
    """Whether Python wrote to single elements, and not to all of them or to a component of each."""
    return isinstance(write.position, tuple) and write.position[:1] != (...,)


def _uses(event: Record) -> dict[Buffer, Use]:
    if not isinstance(event, RecordedLaunch):
        uses = dict.fromkeys(event.loaded, Use.READS)
        for buffer in event.written:
            uses[buffer] = uses.get(buffer, Use(0)) | Use.STORES
        return uses
    touched, uses = event.arguments.accesses, {}
    kinds = ((touched.loaded, Use.READS), (touched.stored, Use.STORES), (touched.accumulated, Use.ADDS))
    for buffers, use in kinds:
        for buffer in buffers:
            uses[buffer] = uses.get(buffer, Use(0)) | use
    return uses


def _seen(step: GraphStep, seen: dict[Buffer, Use], kept: dict[Buffer, int]) -> GraphStep:
    """Mark the fields that the step overwrites, and the copies made for that."""
    for buffer, use in step.uses.items():
        before = seen.get(buffer, Use(0))
        if (before and Use.STORES in use) or (Use.READS in before and Use.ADDS in use):
            use |= Use.OVERWRITES
        if use & (Use.STORES | Use.ADDS) and buffer in kept:
            use |= Use.COPIED
            step.copied += kept.pop(buffer)
        step.uses[buffer] = use
    for buffer, use in step.uses.items():
        new = step.python and Use.STORES in use  # the whole field: its values have not been read yet
        seen[buffer] = use if new else seen.get(buffer, Use(0)) | use
    return step


def _folded(items: list[GraphStep | RepeatedSteps]) -> list[GraphStep | RepeatedSteps]:
    """The items with repetitions folded into blocks, repeatedly, including inside blocks."""
    while len(shorter := list(_folded_once(items))) < len(items):
        items = shorter
    return items


def _folded_once(items: list[GraphStep | RepeatedSteps]) -> Iterator[GraphStep | RepeatedSteps]:
    """One round of folding: repetitions of a sequence become a block, the sequence that covers most first."""
    names: dict[object, int] = {}
    kinds = [names.setdefault(item.signature, len(names)) for item in items]
    at = 0
    while at < len(items):
        best, times = 1, 1
        for period in range(1, min(_LONGEST_BLOCK, (len(items) - at) // 2) + 1):
            count = 1
            while kinds[at + count * period : at + (count + 1) * period] == kinds[at : at + period]:
                count += 1
            if count > 1 and count * period > best * times:
                best, times = period, count
        first = items[at : at + best]
        for k in range(best, best * times):
            first[k % best].merge(items[at + k])
        yield first[0] if times == 1 else RepeatedSteps(_folded(first), times)
        at += best * times


def _letter(use: Use | None) -> str:
    if use is None:
        return "."
    text = "r" if Use.READS in use else ""
    if Use.ADDS in use:
        text += "±" if Use.OVERWRITES in use else "+"
    if Use.STORES in use:
        text += "W" if Use.OVERWRITES in use else "w"
    return text + ("*" if Use.COPIED in use else "")


def _mark(use: Use) -> GraphMark:
    return GraphMark(Use.READS in use, Use.STORES in use, Use.ADDS in use, Use.OVERWRITES in use, Use.COPIED in use)
