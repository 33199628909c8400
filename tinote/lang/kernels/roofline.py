"""`kernel.roofline`: what a launch computes and moves, beside what the machine could.

After S. Williams, A. Waterman and D. Patterson, "Roofline", Communications of the ACM 52 (2009) 65.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from tinote.compiler.driver import Specialisation
from tinote.compiler.launch.native import Profiled
from tinote.compiler.requests import PRIMAL, Request
from tinote.errors import KernelTargetError, TinoteError
from tinote.ir.buffers import Buffer
from tinote.lang.kernels import machine_ceilings
from tinote.lang.kernels.arguments import Arguments, ExternalArray, memory_at_launch
from tinote.lang.kernels.instances import Instance
from tinote.lang.session.state import memory_of
from tinote.lang.tables import ShownAsTable
from tinote.lazy import lazy
from tinote.runtime.memory import ExternalMemory, Memory, readable_size
from tinote.runtime.profile import Clock, Measured, ProfiledLaunch
from tinote.source import Span, location_name

if TYPE_CHECKING:
    from tinote.compiler.inspect import schedule, stages, work
    from tinote.compiler.inspect.vectorisation_remarks import LoopVerdict
    from tinote.compiler.inspect.work import LoopWork
    from tinote.config import Config
else:
    schedule = lazy("tinote.compiler.inspect.schedule")
    stages = lazy("tinote.compiler.inspect.stages")
    work = lazy("tinote.compiler.inspect.work")

#: Launches that are timed; the fastest of each loop counts.
_TIMES = 10
#: Where a loop begins: file, line and column.
_Place = tuple[str, int, int]
#: A loss below this factor is not named.
_LEAST_LOSS = 1.1


class LoopRoofline(NamedTuple):
    """One outermost loop of a launch, or the statements between two.

    `seconds`: the least time that it took. `nbytes`: what it has to move, and `operations` what it has to compute
    (`LoopWork`); None where only the launch determines them. `bandwidth` and `peak`: what the machine moves at that
    size and computes, a second. `losses`: factors that are lost, by their names: cache lines that are used in part,
    lines that are fetched to be written, checks of bounds, and what is left, by its likely cause.
    """

    span: Span
    parallel: bool
    seconds: float
    nbytes: int
    operations: int | None
    bandwidth: float
    peak: float
    losses: Mapping[str, float]

    @property
    def bound(self) -> str:
        """What limits it on this machine: "memory" or "arithmetic"."""
        return "arithmetic" if (self.operations or 0) / self.peak > self.nbytes / self.bandwidth else "memory"

    @property
    def fraction(self) -> float:
        """The time that it would take at the ceiling, as a part of its time."""
        return max(self.nbytes / self.bandwidth, (self.operations or 0) / self.peak) / self.seconds

    @property
    def cells(self) -> tuple[str, ...]:
        """What tables show of it, in the columns `ROOFLINE_COLUMNS`."""
        return (
            self.bound,
            ", ".join(f"{name} ×{factor:.1f}" for name, factor in self.losses.items()) or "—",
            f"{1e3 * self.seconds:.3f}",
            readable_size(self.nbytes),
            f"{1e-9 * self.nbytes / self.seconds:.1f} of {1e-9 * self.bandwidth:.0f}",
            "at launch"
            if self.operations is None
            else f"{1e-9 * self.operations / self.seconds:.1f} of {1e-9 * self.peak:.0f}",
            f"{100 * self.fraction:.0f} %",
        )


ROOFLINE_COLUMNS = ("bound by", "lost to", "ms", "moved", "GB/s", "Gop/s", "of the ceiling")


class Roofline(ShownAsTable, list[LoopRoofline]):
    """One row per outermost loop, in the order in which they run; shows itself as a table. `numbers`: the scalar
    arguments of the launch.
    """

    numbers: tuple[Any, ...] = ()
    _heads = ("line", *ROOFLINE_COLUMNS)
    _left = 3
    _nothing = "a launch does nothing"

    def _rows(self) -> list[tuple[str, ...]]:
        together = len({one.span.file for one in self}) == 1
        return [(str(one.span.line) if together else location_name(one.span), *one.cells) for one in self]


def roofline_of(instance: Instance, values: tuple[Any, ...], request: Request = PRIMAL) -> Roofline:
    """The roofline of a launch with these values, or of its gradient. What it writes is restored."""
    return measure(instance.specialisation, (*values, instance.last_seed) if instance.needs_seed else values, request)


def measure(
    specialisation: Specialisation,
    values: tuple[Any, ...],
    request: Request,
    memory_of: Callable[[Buffer], Memory] = memory_of,
) -> Roofline:
    """The same of a kernel, in launches that find fields in the memory that `memory_of` gives."""
    config = specialisation.config
    if config.arch != "cpu":
        raise KernelTargetError(
            f"rooflines are measured on the CPU, not with arch={config.arch!r}",
            specialisation.source.span,
            hint="ti.init(arch=ti.cpu)",
        )
    if request.reverses:
        specialisation.gradient_facts(request).refuse_lost()
    arguments = Arguments(specialisation, values)
    count = len(specialisation.arrays)
    read, length = memory_at_launch(arguments, values[:count])
    loops = work.loops_of(specialisation, request, values[count:], read, length)
    written = {arguments.actual(one.buffer) for loop in loops for one in loop.traffic if one.written}
    memories = [one.bound.memory if isinstance(one, ExternalArray) else memory_of(one) for one in written]
    times = _times(_with_clocks(specialisation, request, memory_of), values, memories)
    seen = stages.stages_of(specialisation, request is not PRIMAL)
    checked = {task.span[:3] for task in schedule.tasks_of(seen) if task.checks}
    unchecked = _with_clocks(specialisation, request, memory_of, bounds_check=False) if checked else None
    without = _times(unchecked, values, memories) if unchecked else {}
    rows = Roofline()
    rows.numbers = values[count:]
    for place, several in _by_place(loops):
        if place in times:
            checks = times[place] / without[place] if place in checked and place in without else 1.0
            rows.append(_row(several, times[place], checks, _is_vectorised(place, seen.verdicts), config))
    _measured.setdefault(specialisation, {})[request] = rows
    return rows


_measured: WeakKeyDictionary[Specialisation, dict[Request, Roofline]] = WeakKeyDictionary()


def last_measured(specialisation: Specialisation, request: Request) -> Roofline | None:
    """What was measured last of a kernel, or of its gradient."""
    return _measured.get(specialisation, {}).get(request)


def in_copies() -> Callable[[Buffer], Memory]:
    """Where launches find fields that leave the program's own alone: in copies, made when they are first asked for."""
    copies: dict[Memory, Memory] = {}

    def copied(buffer: Buffer) -> Memory:
        memory = memory_of(buffer)
        block = memory.whole
        if block not in copies:
            copies[block] = block.copy()
        return ExternalMemory(copies[block].address + memory.address - block.address, memory.nbytes, copies[block])

    return copied


def fractions(measured: Sequence[Measured]) -> list[float | None]:
    """For each task, the part of the ceiling that it has reached with the arguments of its last launch. None where that
    is not known: on a GPU, and where numbers in memory determine how often a loop runs.
    """
    taken = Counter[tuple[ProfiledLaunch | None, _Place]]()
    for one in measured:
        taken[one.last, one.span[:3]] += one.least_of_last
    found = {
        (launch, place): _at_ceilings(loops, 1e-9 * nanoseconds, config).fraction
        for launch in {one.last for one in measured}
        for place, (loops, config) in _work_of(launch).items()
        if (nanoseconds := taken[launch, place])
    }
    return [found.get((one.last, one.span[:3])) for one in measured]


def _work_of(launch: ProfiledLaunch | None) -> dict[_Place, tuple[list[LoopWork], Config]]:
    """What a profiled launch had to do, by where loops begin, and its options; nothing where that is not known."""
    code = launch and launch.code()
    specialisation: Specialisation | None = code and code.owner and code.owner()
    if launch is None or code is None or specialisation is None:
        return {}
    request = specialisation.request_of(code)
    if request is None or len(launch.shapes) != len(specialisation.arrays):
        return {}
    shapes = dict(zip(specialisation.arrays, launch.shapes, strict=True))
    asked: list[Buffer] = []  # what is in memory now may not be what the launch has found there

    def length(buffer: Buffer, axis: int) -> int | None:
        return shapes.get(specialisation.original(buffer), buffer.shape)[axis]

    try:
        loops = work.loops_of(specialisation, request, launch.numbers, lambda buffer, _: asked.append(buffer), length)
    except TinoteError:
        return {}  # what the kernel uses has changed since
    return {} if asked else {place: (several, specialisation.config) for place, several in _by_place(loops)}


def _with_clocks(
    specialisation: Specialisation, request: Request, memory_of: Callable[[Buffer], Memory], **options: Any
) -> Profiled:
    """The code of a kernel under other options, which measures its tasks."""
    config = specialisation.config._replace(kernel_profiler=True, **options)
    code = Specialisation(specialisation.source, specialisation.arguments, config, memory_of).code(request)
    assert isinstance(code, Profiled)
    return code


def _is_vectorised(place: _Place, verdicts: Iterable[LoopVerdict]) -> bool:
    """Whether a loop is, or one of those in it, as far as lines tell; also if nothing is said of it."""
    after = [one for one in verdicts if one.file == place[0] and one.line >= place[1]]
    first = min([one.line for one in after], default=0)
    return not after or any(one.width > 1 for one in after if one.line == first)


def _by_place(loops: Iterable[LoopWork]) -> Iterable[tuple[_Place, list[LoopWork]]]:
    """Loops that are written once may be several, as those of a function that is called twice."""
    found: dict[_Place, list[LoopWork]] = {}
    for one in loops:
        found.setdefault(one.span[:3], []).append(one)
    return found.items()


def _times(native: Profiled, values: tuple[Any, ...], written: Iterable[Memory]) -> dict[_Place, float]:
    """The seconds that loops take, by where they begin. What is written is restored."""
    found: dict[_Place, float] = {}

    def report(times: list[tuple[Clock, int]]) -> None:
        taken: dict[_Place, float] = {}
        for clock, nanoseconds in times:
            place = clock.span[:3]
            taken[place] = taken.get(place, 0.0) + 1e-9 * nanoseconds
        for place, seconds in taken.items():
            found[place] = min(found.get(place, math.inf), seconds)

    copies = [(memory, memory.copy()) for memory in written]
    for _ in range(_TIMES):
        try:
            native.timed(values, report)
        finally:
            for memory, copy in copies:
                memory.restore(copy)
    return found


def _moved(loops: Iterable[LoopWork]) -> list[int]:
    """`LoopWork.moved` of several loops together."""
    return [sum(column) for column in zip(*[one.moved for one in loops], strict=True)]


def _at_ceilings(loops: Sequence[LoopWork], seconds: float, config: Config) -> LoopRoofline:
    """What loops that begin at one place have reached together, without the reasons."""
    first = loops[0]
    nbytes, in_lines, _ = _moved(loops)
    operations = [one.operations for one in loops]
    known = [n for n in operations if n is not None]
    exact = sum(known) if len(known) == len(operations) else None
    bandwidth = machine_ceilings.bandwidth(in_lines, config, nbytes / seconds)
    peak = machine_ceilings.peak(max([one.size for one in loops]) or 4, config, (exact or 0) / seconds)
    return LoopRoofline(first.span, first.parallel, seconds, nbytes, exact, bandwidth, peak, {})


def _row(loops: Sequence[LoopWork], seconds: float, checks: float, vectorised: bool, config: Config) -> LoopRoofline:
    row, losses = _at_ceilings(loops, seconds, config), dict[str, float]()
    if row.bound == "memory" and row.nbytes:
        nbytes, in_lines, fetched = _moved(loops)
        losses["cache lines used in part"] = in_lines / nbytes
        losses["lines fetched to be written"] = (in_lines + fetched) / in_lines
    losses["checks"] = checks
    explained = math.prod([factor for factor in losses.values() if factor > _LEAST_LOSS])
    losses[_cause(loops, vectorised, config)] = 1 / (explained * row.fraction) if row.fraction else 1.0
    for name in [name for name, factor in losses.items() if factor <= _LEAST_LOSS]:
        del losses[name]
    return row._replace(losses=losses)


def _cause(loops: Sequence[LoopWork], vectorised: bool, config: Config) -> str:
    """The likely cause of what is lost besides that."""
    scattered = sorted({one.buffer.name for loop in loops for one in loop.traffic if one.scattered})
    if scattered:
        return f"scattered {', '.join(scattered)}"
    if not loops[0].parallel and config.num_threads > 1:
        return "one thread"
    return "latency" if vectorised else "not vectorised"
