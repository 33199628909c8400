"""Plans in stages, as a device runs them: in a page (`webgpu.py`), and in a session on a GPU (`on_device.py`).

Each stage begins with arithmetic of numbers, which the replay does where Python or WebAssembly runs, and goes on with
commands for the device (launches, clears, copies, fills); it ends where the next arithmetic needs a number that they
leave in the device's memory. Most steps are one stage, and nobody waits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tinote.ir.types import scalar_named
from tinote.lang.capture.instructions import merged_axes
from tinote.lang.capture.plan import (
    BlockView,
    ClearStep,
    ComputeStep,
    CopyStep,
    EndStep,
    FillStep,
    LaunchStep,
    LoadStep,
    Operand,
    Path,
    PlanStep,
    Register,
    SeedStep,
    read_by,
    set_by,
)

#: Axes of a view that the device fills, or copies, at once.
MOST_AXES = 4


class Stage(NamedTuple):
    """Arithmetic of numbers, and commands for the device that need no number of each other, in the order of the
    program.
    """

    steps: list[PlanStep]

    @property
    def arithmetic(self) -> list[PlanStep]:
        return [step for step in self.steps if is_arithmetic(step)]

    @property
    def commands(self) -> list[PlanStep]:
        return [step for step in self.steps if not is_arithmetic(step)]


class Stages(NamedTuple):
    """A path of a plan, in stages; after them one of `sides`, by a register."""

    stages: list[Stage]
    branch: Register | None
    sides: dict[bool, Stages]

    def commands(self) -> Iterator[PlanStep]:
        """All of them, those of all sides as well."""
        for stage in self.stages:
            yield from stage.commands
        for side in self.sides.values():
            yield from side.commands()


def stages_of(path: Path) -> Stages:
    """A path in stages."""
    stages = [Stage([])]
    pending: set[int] = set()  # registers that the commands of this stage give
    for step in path.steps:
        if _depend(read_by(step), pending):
            stages.append(Stage([]))
            pending.clear()
        stages[-1].steps.append(step)
        if not is_arithmetic(step):
            pending |= {register.number for register in set_by(step)}
    register = None if path.branch is None else path.branch.register
    if register is not None and _depend([register], pending):
        stages.append(Stage([]))
    return Stages(stages, register, {taken: stages_of(side) for taken, side in path.sides.items()})


def is_arithmetic(step: PlanStep) -> bool:
    """Whether it only deals with numbers in registers."""
    return isinstance(step, ComputeStep | SeedStep | EndStep)


def all_are_possible(path: Path) -> bool:
    """Whether a device can do all that this path does, and what follows it."""
    return all(is_possible(step) for one in path.all() for step in one.steps)


def _depend(operands: Sequence[Operand], pending: set[int]) -> bool:
    return any(isinstance(one, Register) and one.number in pending for one in operands)


def is_possible(step: PlanStep) -> bool:
    """Whether a device can do a step: it has words, and does not convert."""
    match step:
        case ClearStep(_, offset, nbytes):
            return offset % 4 == 0 and nbytes % 4 == 0
        case CopyStep(target, source):
            size, axes = run_of(target, source)
            whole = [size, target.offset, source.offset, *[stride for _, *strides in axes for stride in strides]]
            fits = target.type == source.type and all(n % 4 == 0 for n in whole) and len(axes) <= MOST_AXES
            return fits and not (axes and target.block == source.block)
        case FillStep(target):
            return len(axes_of(target)) <= MOST_AXES
        case LoadStep() | LaunchStep() | ComputeStep() | SeedStep() | EndStep():
            return True
    return False


def run_of(target: BlockView, source: BlockView) -> tuple[int, list[tuple[int, ...]]]:
    """How many bytes of two views lie one after the other in both, and the axes that such runs are repeated along."""
    size = scalar_named(target.type).size
    axes = merged_axes(target.shape, (target.strides, source.strides))
    if axes and axes[-1][1] == axes[-1][2] == size:
        size *= axes.pop()[0]
    return size, axes


def axes_of(view: BlockView) -> list[tuple[int, ...]]:
    """The axes of a view."""
    return merged_axes(view.shape, (view.strides,))
