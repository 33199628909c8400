"""Splits plans into stages for a device: in a page (`webgpu.py`), and in a session on a GPU (`on_device.py`).

Each stage begins with arithmetic of numbers, which the replay does where Python or WebAssembly runs, and goes on with
commands for the device (launches, clears, copies, fills); it ends where the next arithmetic needs a number from the
device's memory. Most steps are one stage without waits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tinote.lang.capture.instructions import axes_of, run_of
from tinote.program import operations as ops
from tinote.program.program import Path

#: Axes of a view that the device fills, or copies, at once.
MOST_AXES = 4


class DeviceStage(NamedTuple):
    """Arithmetic, and independent commands for the device, in program order."""

    steps: list[ops.Operation]

    @property
    def arithmetic(self) -> list[ops.Operation]:
        return [step for step in self.steps if is_arithmetic(step)]

    @property
    def commands(self) -> list[ops.Operation]:
        return [step for step in self.steps if not is_arithmetic(step)]


class DeviceStages(NamedTuple):
    """A path of a plan, in stages; after them one of `sides`, by a register."""

    stages: list[DeviceStage]
    branch: ops.Register | None
    sides: dict[bool, DeviceStages]

    def commands(self) -> Iterator[ops.Operation]:
        """All of them, those of all sides as well."""
        for stage in self.stages:
            yield from stage.commands
        for side in self.sides.values():
            yield from side.commands()


def stages_of(path: Path) -> DeviceStages:
    """A path in stages."""
    stages = [DeviceStage([])]
    pending: set[int] = set()  # registers written by the commands of this stage
    for step in path.steps:
        if _depend(ops.read_by(step), pending):
            stages.append(DeviceStage([]))
            pending.clear()
        stages[-1].steps.append(step)
        if not is_arithmetic(step):
            pending |= {register.number for register in ops.set_by(step)}
    register = None if path.branch is None else path.branch.register
    if register is not None and _depend([register], pending):
        stages.append(DeviceStage([]))
    return DeviceStages(stages, register, {taken: stages_of(side) for taken, side in path.sides.items()})


def is_arithmetic(step: ops.Operation) -> bool:
    """Whether a step only computes on registers."""
    return isinstance(step, ops.Compute | ops.Seed | ops.End)


def all_are_possible(path: Path) -> bool:
    """Whether a device can do all steps of this path and its continuations."""
    return all(is_possible(step) for one in path.all() for step in one.steps)


def _depend(operands: Sequence[ops.Operand], pending: set[int]) -> bool:
    return any(isinstance(one, ops.Register) and one.number in pending for one in operands)


def is_possible(step: ops.Operation) -> bool:
    """Whether a device can do a step: it has only words, and does not convert."""
    match step:
        case ops.Clear(_, offset, nbytes):
            return offset % 4 == 0 and nbytes % 4 == 0
        case ops.Copy(target, source):
            size, axes = run_of(target, source)
            whole = [size, target.offset, source.offset, *[stride for _, *strides in axes for stride in strides]]
            fits = target.type == source.type and all(n % 4 == 0 for n in whole) and len(axes) <= MOST_AXES
            return fits and not (axes and target.block == source.block)
        case ops.Fill(target):
            return len(axes_of(target)) <= MOST_AXES
        case ops.LoadElement() | ops.Launch() | ops.Compute() | ops.Seed() | ops.End():
            return True
    return False
