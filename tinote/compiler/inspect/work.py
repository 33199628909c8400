"""The work of a launch, loop by loop: how many operations it computes and how many bytes it moves, at least.

    for i in range(1, n - 1):                     operations  3 · (n - 2): two additions, a multiplication
        y[i] = 0.5 * (x[i - 1] + x[i + 1])        x  read     4 · n        each number once, however often it is loaded
                                                  y  written  4 · (n - 2)

Elements are counted by the intervals of their indices, as an access analysis finds them, or by how often the access
runs, where that is less: what is found through other numbers (`x[cell[i]]`) may lie anywhere.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tinote.compiler.driver import Specialisation
from tinote.compiler.inspect.execution_counts import ExecutionCounts, Length, Loop
from tinote.compiler.pipeline import run_pipeline, steps_for
from tinote.compiler.requests import Request
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.access import Access, accesses_of
from tinote.ir.access_region import BoundedNodes
from tinote.ir.affine import Affine, Interval
from tinote.ir.buffers import Buffer, BufferKind
from tinote.ir.launch_values import Number, Read
from tinote.ir.query import span_of
from tinote.ir.types import element_type, is_float
from tinote.source import Span

#: The bytes that memory is moved in.
CACHE_LINE = 64

#: They compute nothing.
_MOVES = (p.select, p.cast, p.bitcast)


class Traffic(NamedTuple):
    """What a loop touches of one field or array, in bytes. `used`: the numbers, each once; `moved`: the cache lines
    that they lie in. `scattered`: which ones depends on numbers in memory.
    """

    buffer: Buffer
    used: int
    moved: int
    read: bool
    written: bool
    scattered: bool


class LoopWork(NamedTuple):
    """The work of one outermost loop, or of the statements between two. `operations`: of numbers with a point, in
    additions (a division counts as 4, an exponential as 15), both sides of a branch; None where only the launch
    determines how many times a loop runs. `size`: the bytes of the widest of these numbers; 0 without one.
    """

    span: Span
    parallel: bool
    operations: int | None
    size: int
    traffic: tuple[Traffic, ...]

    @property
    def moved(self) -> tuple[int, int, int]:
        """The bytes that have to be moved, what is read and what is written; those of the cache lines that they lie in;
        and those of lines that are fetched only to be written.
        """
        return (
            sum([one.used * (one.read + one.written) for one in self.traffic]),
            sum([one.moved * (one.read + one.written) for one in self.traffic]),
            sum([one.moved for one in self.traffic if one.written and not one.read]),
        )


def loops_of(
    specialisation: Specialisation, request: Request, arguments: Sequence[Number], read: Read, length: Length
) -> tuple[LoopWork, ...]:
    """The work of a kernel's launch, or of its gradient's. Raises `DifferentiationError`."""
    steps = steps_for(request, lower=False)
    fn, _ = run_pipeline(specialisation.function(request), steps, specialisation.config)
    return work_of(fn, arguments, read, length)


def work_of(fn: ir.Function, arguments: Sequence[Number], read: Read, length: Length) -> tuple[LoopWork, ...]:
    """The work of a function in SCALAR form, in a launch with these scalar arguments, on memory as `read` finds it."""
    accesses = accesses_of(fn)
    bounds = BoundedNodes(accesses, fn.region.params)
    counts = ExecutionCounts(fn, accesses.definitions, arguments, read, length)
    found = accesses.all()
    regions = {access.op: bounds.regions([access.op])[0] for access in found}
    lengths = [length(buffer, axis) or 0 for buffer, axis in bounds.lengths]
    intervals: list[Interval] = []
    for node in bounds.all:
        intervals.append(node.interval(arguments, lengths, intervals))

    from_memory: dict[ir.Var, bool] = {}

    def found_in_memory(v: ir.Var) -> bool:
        """Whether a variable is a number in memory, or computed from one."""
        if v not in from_memory:
            from_memory[v] = False
            op = accesses.definitions.get(v)
            sources = [a for a in op.args if isinstance(a, ir.Var)] if isinstance(op, ir.Prim) else ()
            from_memory[v] = isinstance(op, ir.Load | ir.Atomic) or any(map(found_in_memory, sources))
        return from_memory[v]

    result: list[LoopWork] = []
    for group in _groups(fn.region.body):
        paths = dict(_paths(group, ()))
        touched: dict[Buffer, _Touched] = {}
        for access in found:
            buffer, path = access.buffer, paths.get(access.op)
            if path is None or buffer.kind not in (BufferKind.FIELD, BufferKind.ARRAY):
                continue
            box = [
                (max(low, 0), min(high + 1, length(buffer, axis) or 0))
                for axis, (low, high) in enumerate([intervals[node] for node in regions[access.op].axes])
            ]
            scattered = any(found_in_memory(v) for form in access.forms[: buffer.rank] for v in form.terms)
            touched.setdefault(buffer, _Touched(buffer)).add(access, box, counts.count(path), scattered=scattered)
        operations, size = _operations(paths, counts)
        if not touched and not operations:
            continue
        head = group[0]
        parallel = isinstance(head, ir.For) and head.parallel
        traffic = tuple([one.traffic() for one in touched.values()])
        result.append(LoopWork(span_of(head), parallel, operations, size, traffic))
    return tuple(result)


class _Touched:
    """What the accesses of a loop touch of a buffer: the box around their elements, and the components of each."""

    def __init__(self, buffer: Buffer) -> None:
        self._buffer = buffer
        self._box: list[tuple[float, float]] = [(math.inf, -math.inf)] * buffer.rank
        self._components: set[tuple[int, ...]] = set()
        self._runs: dict[tuple[Affine, ...], float] = {}  # those of the same element count once
        self._read = self._written = self._scattered = False

    def add(self, access: Access, box: Sequence[tuple[float, float]], runs: int | None, *, scattered: bool) -> None:
        """An access that runs `runs` times (None: unknown) and stays in a box."""
        self._box = [(min(a, c), max(b, d)) for (a, b), (c, d) in zip(self._box, box, strict=True)]
        choices = [
            (form.const,) if not form.terms else range(n)
            for form, n in zip(access.forms[self._buffer.rank :], self._buffer.element, strict=False)
        ]
        self._components.update(itertools.product(*choices))
        known = math.inf if runs is None else runs
        self._runs[access.forms] = max(self._runs.get(access.forms, 0), known)
        self._read |= access.reads
        self._written |= access.writes
        self._scattered |= scattered

    def traffic(self) -> Traffic:
        buffer = self._buffer
        numbers = len(self._components)
        elements = math.prod([max(high - low, 0) for low, high in self._box])
        size = buffer.dtype.size
        runs = sum(self._runs.values())
        used = min(elements * numbers, runs) * size
        pitch = min(buffer.strides) if buffer.strides else size * math.prod(buffer.element)
        together = min(buffer.element_strides, default=0) < pitch  # the components of one element
        width = min(pitch, numbers * CACHE_LINE) if together else numbers * min(pitch, CACHE_LINE)
        moved = max(min(elements * width, runs * CACHE_LINE), used)
        return Traffic(buffer, int(used), int(moved), self._read, self._written, self._scattered)


def _groups(body: Iterable[ir.Op]) -> Iterator[list[ir.Op]]:
    """Each outermost parallel loop, and what stands between them."""
    between: list[ir.Op] = []
    for op in body:
        if isinstance(op, ir.For) and op.parallel:
            if between:
                yield between
            yield [op]
            between = []
        else:
            between.append(op)
    if between:
        yield between


def _paths(body: Iterable[ir.Op], path: tuple[Loop, ...]) -> Iterator[tuple[ir.Op, tuple[Loop, ...]]]:
    """Operations, each with the loops around it, outermost first."""
    for op in body:
        yield op, path
        for region in op.regions:
            yield from _paths(region.body, (*path, op) if isinstance(op, Loop) else path)


def _operations(paths: Mapping[ir.Op, tuple[Loop, ...]], counts: ExecutionCounts) -> tuple[int | None, int]:
    """How many operations there are, and the bytes of the widest number."""
    size = 0
    once: dict[tuple[Loop, ...], float] = {}
    for op, path in paths.items():
        if isinstance(op, ir.Prim | ir.Atomic) and op.prim not in _MOVES:
            result = op.buffer.dtype if isinstance(op, ir.Atomic) else op.outs[0].type
            if is_float(result):
                once[path] = once.get(path, 0) + op.prim.cost
                size = max(size, element_type(result).size)
    times = {path: counts.count(path) for path in once}
    known = [cost * n for path, cost in once.items() if (n := times[path]) is not None]
    return round(sum(known)) if len(known) == len(once) else None, size
