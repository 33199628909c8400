"""An earlier version of a kernel, or another kernel, next to the present one: which stage of it belongs to which, its
variables by the present one's names, and its lines tied to the present source where that is the same.

Variables of two compilations share nothing but their meaning. Two of them are matched when they are bound by the
same expression or operation at the same place of the source, else by the same expression, else under the same name in
the user's source, else by an operation of the same kind at the same place, of other types or memory, else by the same
operation on operands that are the same.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from typing import NamedTuple

from tinote.compiler.inspect.kinds import StageKind
from tinote.compiler.inspect.stages import KernelSource, Stage, StageLine, Stages
from tinote.errors import TinoteError
from tinote.source import NOWHERE, Span
from tinote.viz.explorer.align import Mark, align

_NAME = re.compile(r"%[\w.$-]*[\w$]")
_LABEL = re.compile(r"^[\w.$-]+:")
_LITERAL = re.compile(r"(?<![\w%@.])-?\d[\w.+-]*")


class Change(NamedTuple):
    """A line of a stage: `mark` "+" has come since the previous run, "-" is gone, " " is in both."""

    mark: str
    line: StageLine


class Previous:
    """The stages of an earlier version, next to those of the present one."""

    def __init__(self, stages: Stages, now: Stages) -> None:
        self._stages = stages
        self._now = now
        self._partners = list(_partners(stages.stages, now.stages))
        self._moved_lines = _lines_that_stay(stages.sources, now.sources)

    @property
    def fresh(self) -> list[int]:
        """The rows of the present source, counted through all its texts, that the earlier one does not have."""
        stay = {(line.file, line.line) for line in self._moved_lines.values()}
        texts = [(text, n) for text in self._now.sources for n in range(len(text.lines))]
        return [row for row, (text, n) in enumerate(texts) if (text.file, text.first_line + n) not in stay]

    def counterpart(self, number: int) -> tuple[Stage, list[StageLine]]:
        """The stage that is shown next to a present one, and its lines. Raises `TinoteError` where there is none."""
        now, stage = self._now.stages[number], self._stages.stages[self._partners[number]]
        if stage.kind is not now.kind:
            raise TinoteError("the other version has no stage of this kind: it is for another target")
        lines = [line._replace(span=self._placed(line.span)) for line in stage.lines]
        return stage, named_alike(lines, now.lines, stage.kind)

    def changes(self, number: int) -> list[Change]:
        """A present stage with what has gone from it, line by line. Raises as `counterpart` does."""
        _, earlier = self.counterpart(number)
        stage = self._now.stages[number]
        found: list[Change] = []
        for same, rows in groupby(align(earlier, stage.lines, stage.kind), lambda row: row.mark is Mark.SAME):
            pairs = list(rows)
            if not same:
                found += [Change("-", earlier[row.left]) for row in pairs if row.left >= 0]
            found += [Change(" " if same else "+", stage.lines[row.right]) for row in pairs if row.right >= 0]
        return found

    def _placed(self, span: Span) -> Span:
        """Where a span of the earlier source is now; the call that it is inlined at, where it is gone."""
        outer = NOWHERE if span.inlined_at is None else self._placed(span.inlined_at)
        line = self._moved_lines.get((span.file, span.line))
        if line is None:
            return outer
        end = self._moved_lines.get((span.file, span.end_line))
        moved = span._replace(
            file=line.file,
            line=line.line,
            column=span.column + line.indented,
            inlined_at=outer if outer.line else None,
        )
        if end is None:
            return moved._replace(end_line=0, end_column=0)
        return moved._replace(end_line=end.line, end_column=span.end_column + end.indented)


def _partners(earlier: Sequence[Stage], now: Sequence[Stage]) -> Iterator[int]:
    """For each present stage the earlier version's of the same name, or the last one before, where a fixed point took
    fewer rounds then.
    """
    names = [[(stage.group, stage.name, stage.kind) for stage in stages] for stages in (earlier, now)]
    found = 0
    matches = iter(SequenceMatcher(None, *names, autojunk=False).get_matching_blocks())
    block = next(matches)
    for number in range(len(now)):
        while number >= block.b + block.size and block.size:
            block = next(matches)
        if block.b <= number < block.b + block.size:
            found = block.a + number - block.b
        yield found


class _MovedLine(NamedTuple):
    """Where a line of an earlier source stands now, and how much farther to the right."""

    file: str
    line: int
    indented: int


def _lines_that_stay(earlier: Sequence[KernelSource], now: Sequence[KernelSource]) -> dict[tuple[str, int], _MovedLine]:
    """The lines of the earlier texts that there still are, if only under another `if`."""
    found: dict[tuple[str, int], _MovedLine] = {}
    present = {text.name: text for text in now}
    for text in earlier:
        other = present.get(text.name)
        if other is None:
            continue
        stripped = [[line.strip() for line in lines] for lines in (text.lines, other.lines)]
        for a, b, size in SequenceMatcher(None, *stripped, autojunk=False).get_matching_blocks():
            for k in range(size):
                indented = _indentation(other.lines[b + k]) - _indentation(text.lines[a + k])
                found[text.file, text.first_line + a + k] = _MovedLine(other.file, other.first_line + b + k, indented)
    return found


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


# Variables


class _Binding:
    """A variable as a stage binds it: its line, its position among those that the line binds, and its operands.

    `expression` is a number for what it is computed from, down to memory.
    """

    __slots__ = ("bare", "expression", "name", "position", "span", "used")

    def __init__(self, name: str, position: int, used: tuple[str, ...], bare: str, span: Span, expression: int) -> None:
        self.name = name
        self.position = position
        self.used = used
        self.bare = bare
        self.span = span
        self.expression = expression

    @property
    def location(self) -> Hashable:
        """Where it stands in the source, None for what the compiler made."""
        return self.span[:5] if self.span.line else None

    @property
    def called(self) -> str:
        """What the user calls it, "" for an intermediate value."""
        stem = self.name[1:].split(".")[0]
        return "" if stem.lstrip("vb").isdigit() else stem

    @property
    def word(self) -> str:
        """The operation: `mul`, `load`, `for`."""
        found = re.search(r" = ([a-z]\w*)", self.bare) or re.match(r"\s*(\w*)", self.bare)
        return found[1] if found else ""

    def meaning(self, names: Mapping[str, str]) -> Hashable:
        """The operation and its operands by other names, literals left out."""
        used = tuple([names.get(name, name) for name in self.used])
        return _LITERAL.sub("#", self.bare), used, self.position


#: Keys by which two variables may be matched, the most reliable first. A falsy key matches nothing.
_KEYS: tuple[Callable[[_Binding], Hashable], ...] = (
    lambda b: (b.expression, b.location),
    lambda b: b.location and (b.location, b.position, b.bare),
    lambda b: b.expression,
    lambda b: b.called and (b.called, b.position, b.word),
    lambda b: b.location and (b.location, b.position, b.word),
    lambda b: b.called,
)


def named_alike(earlier: Sequence[StageLine], now: Sequence[StageLine], kind: StageKind) -> list[StageLine]:
    """The lines of an earlier version's stage, its variables renamed to those of the present lines. One without a
    counterpart keeps its name, with `.old` appended where that now means something else.
    """
    if not kind.names:
        return list(earlier)
    present = dict(_scopes(now, kind))
    found: list[StageLine] = []
    for name, lines in _scopes(earlier, kind):
        names = _matched(list(_bindings(lines, kind)), list(_bindings(present.get(name, []), kind)))
        found += [_renamed(line, names) for line in lines]
    return found


def _scopes(lines: Sequence[StageLine], kind: StageKind) -> Iterator[tuple[str, list[StageLine]]]:
    """The lines within which names count: of LLVM, a function each; labels as the names that jumps use."""
    name, scope = "", list[StageLine]()
    for line in lines:
        if opened := re.match(kind.scope, line.text):
            yield name, scope
            name, scope = opened[1], []
        scope.append(line._replace(text=f"%{line.text}") if name and _LABEL.match(line.text) else line)
    yield name, scope


def _matched(bindings: Sequence[_Binding], present: Sequence[_Binding]) -> dict[str, str]:
    """New names for the variables of an earlier version."""
    names: dict[str, str] = {}
    taken: set[str] = set()

    def match(key: Callable[[_Binding], Hashable], earlier_key: Callable[[_Binding], Hashable]) -> None:
        waiting: defaultdict[Hashable, deque[_Binding]] = defaultdict(deque)
        for b in present:
            if b.name not in taken:
                waiting[key(b)].append(b)
        for b in bindings:
            wanted = None if b.name in names else earlier_key(b)
            if wanted and waiting[wanted]:
                names[b.name] = waiting[wanted].popleft().name
                taken.add(names[b.name])

    for key in _KEYS:
        match(key, key)
    # By now most operands have their names.
    match(lambda b: b.meaning({}), lambda b: b.meaning(names))
    known = {b.name for b in present}
    return names | {b.name: f"{b.name}.old" for b in bindings if b.name not in names and b.name in known}


def _bindings(lines: Sequence[StageLine], kind: StageKind) -> Iterator[_Binding]:
    """Every variable, in order."""
    expressions: dict[str, int] = {}
    for line in lines:
        text = line.text.split(" ; ")[0]
        bound = [name for name, binds in re.findall(kind.names, text) if binds and name[0] == "%"]
        if not bound:
            continue
        used = tuple([name for name in _NAME.findall(text) if name not in bound])
        bare = _NAME.sub("%", text).strip()
        whole = hash((bare, tuple([expressions.get(name, 0) for name in used])))
        for position, name in enumerate(bound):
            expressions[name] = hash((whole, position))
            yield _Binding(name, position, used, bare, line.span, expressions[name])


def _renamed(line: StageLine, names: Mapping[str, str]) -> StageLine:
    text = _NAME.sub(lambda found: names.get(found[0], found[0]), line.text)
    if text.startswith("%"):  # a label
        text = text[1:]
    return line._replace(text=text, primal=names.get(line.primal, line.primal))
