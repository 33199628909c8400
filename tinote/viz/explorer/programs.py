"""Programs between launches in the explorer: of a captured step, or of what a tape has recorded and its reverse sweep.

They are stages like those of a kernel. The source next to them is what their operations stand in: functions of the
user's, and the kernels that they launch, whose own stages are further views.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from tinote.compiler.driver import Specialisation
from tinote.compiler.inspect.kinds import PROGRAM
from tinote.compiler.inspect.stages import KernelSource, Stage, StageLine, Stages, kernel_text
from tinote.compiler.requests import Request
from tinote.lang.ad.journal.saved_values import RecordedLaunch
from tinote.lang.ad.journal.sweep_program import forward_program
from tinote.lang.ad.tape import Tape
from tinote.lang.capture.captured import Captured
from tinote.lang.capture.recording import Tables
from tinote.program import operations as ops
from tinote.program.program import Program
from tinote.program.text import names_of, show_lines
from tinote.source import NOWHERE, Span

_CAPTURED = "What a call of the step does between Python and the kernels, with both sides of each condition."
_RECORDED = "What the tape has recorded: launches, and what Python has read, computed and written between them."
_SWEEP = "What the gradients of the tape do, the last operation first, on values that it has kept."

#: Where machine code comes from.
Origin = tuple[Specialisation, Request]

#: A kernel, and whether its gradient runs.
LaunchedKernel = tuple[Specialisation, bool]


class ExploredProgram(NamedTuple):
    """`opens`: by the names in the stages, the kernels that they launch."""

    name: str
    stages: Stages
    opens: Mapping[str, LaunchedKernel]


def captured_program(captured: Captured) -> ExploredProgram:
    """The program of a captured step."""
    name = getattr(captured.function, "__name__", "step")
    tables = captured.tables
    known = _Known()
    found = known.stage("program", _CAPTURED, captured.plan, lambda n: tables.origin(tables.natives[n]))
    return known.program(name, [found])


def tape_program(tape: Tape) -> ExploredProgram:
    """The programs of a tape. Raises `DifferentiationError` for one without a reverse sweep as a program."""
    sweep, known = tape.sweep_tables(), _Known()
    instances = {event.instance: None for event in tape.events if isinstance(event, RecordedLaunch)}
    shown: list[Stage] = []
    for name, about, tables in (("recorded", _RECORDED, forward_program(tape)), ("reverse sweep", _SWEEP, sweep)):

        def origin(number: int, tables: Tables = tables) -> Origin | None:
            found = (one.origin_of(tables.natives[number]) for one in instances)
            return next((one for one in found if one is not None), None)

        shown.append(known.stage(name, about, tables.plan, origin))
    return known.program("tape", shown, tape.opened)


class _Known:
    """What the stages of one program have in common."""

    def __init__(self) -> None:
        self._kernels: dict[str, LaunchedKernel] = {}
        self._spans: dict[Span, None] = {}

    def stage(self, name: str, about: str, program: Program, origin: Callable[[int], Origin | None]) -> Stage:
        """A program as a stage. `origin`: of a code, the kernel and the request."""
        names, definitions = names_of(code.name for code in program.codes), list[Span]()
        for number, shown in enumerate(names):
            found = origin(number)
            if found is None:
                definitions.append(NOWHERE)
                continue
            specialisation, request = found
            self._kernels[shown] = specialisation, request.reverses
            definitions.append(specialisation.source.span)
        lines: list[StageLine] = []
        codes = iter(definitions)
        for text, step in show_lines(program):
            span = next(codes) if isinstance(step, ops.Code) else getattr(step, "span", NOWHERE)
            lines.append(StageLine(text, span, text.endswith(":")))
            self._spans[span] = None
        return Stage(name, PROGRAM, lambda: lines, about=about, seconds=0.0, operations=len(program.operations))

    def program(self, name: str, stages: list[Stage], place: Span = NOWHERE) -> ExploredProgram:
        """All of it. `place`: a line that belongs to it, whatever its operations are."""
        kernels = {one.source.span: kernel_text(one.source) for one, _ in self._kernels.values()}
        sources = _sources((place, *self._spans), list(kernels.values()))
        return ExploredProgram(name, Stages(name, False, tuple(sources), tuple(stages)), self._kernels)


def _sources(spans: Iterable[Span], kernels: list[KernelSource]) -> list[KernelSource]:
    """The texts that `spans` stand in: functions, or statements outside of any; then kernels that are not in these."""
    lines_of = {place for text in kernels for place in _places(text)}
    found: list[KernelSource] = []
    for span in spans:
        if span is NOWHERE or (span.file, span.line) in lines_of:
            continue
        around = _around(span)
        if around is not None:
            found.append(around)
            lines_of.update(_places(around))
    inside = {place for text in found for place in _places(text)}
    return [*found, *[text for text in kernels if (text.file, text.first_line) not in inside]]


def _places(text: KernelSource) -> Iterator[tuple[str, int]]:
    return ((text.file, text.first_line + k) for k in range(len(text.lines)))


def _around(span: Span) -> KernelSource | None:
    """The innermost function that a place is in, or else its statement; None where the text is not available."""
    lines = linecache.getlines(span.file)
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError:
        return None
    best: ast.stmt | None = None
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt) or not node.lineno <= span.line <= (node.end_lineno or node.lineno):
            continue
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if best is None or (is_function and node.lineno >= best.lineno):
            best = node
    if best is None:
        return None
    decorators = getattr(best, "decorator_list", [])
    first = min([best.lineno, *[one.lineno for one in decorators]])
    name = getattr(best, "name", "")
    return KernelSource(name, span.file, first, tuple(line.rstrip("\n") for line in lines[first - 1 : best.end_lineno]))
