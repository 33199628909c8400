"""Takes numbers out of a plan without conditions that nobody needs, with the launches that do nothing but give them.

A derivative inside of another one computes values and derivatives of which the one around it uses a few. What is left
out cannot fail, and what takes its place has the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tinote.compiler.launch.native import Native
from tinote.lang.capture.plan import (
    ComputeStep,
    EndStep,
    FillStep,
    LaunchStep,
    LoadStep,
    Operand,
    PlanConstant,
    PlanStep,
    Register,
    read_by,
    with_leaves,
)

#: Of floats, these cannot fail.
_ALWAYS = {"add", "subtract", "multiply", "negative", "absolute", "scale", "lt", "le", "gt", "ge", "eq", "ne"}
_ONE = 0x3FF0000000000000
_ZERO = PlanConstant("f", 0)


def needed_numbers(steps: Sequence[PlanStep], natives: Sequence[Native]) -> list[PlanStep]:
    """The steps, without numbers that are known, or that nothing depends on. `natives`: the plan's codes."""
    return _without_dead(_without_known(steps), natives)


def _without_known(steps: Sequence[PlanStep]) -> list[PlanStep]:
    """Without arithmetic that gives what there is already."""
    found: list[PlanStep] = []
    instead: dict[Operand, Operand] = {}
    known: dict[tuple[str, tuple[Operand, ...]], Register] = {}
    for step in steps:
        step = _with_operands(step, lambda one: instead.get(one, one))
        if isinstance(step, ComputeStep) and _cannot_fail(step):
            same = _operand(step) or known.get((step.operation, step.operands))
            if same is not None and same.kind == step.register.kind:
                instead[step.register] = same
                continue
            known[step.operation, step.operands] = step.register
        found.append(step)
    return found


def _operand(step: ComputeStep) -> Operand | None:
    """What a step gives, if it is one of its operands whatever the others are."""
    if step.operation == "scale" and step.operands[1] == _ZERO:
        return _ZERO
    if step.operation in ("scale", "multiply"):
        for one, other in (step.operands, step.operands[::-1]):
            if isinstance(one, PlanConstant) and one.kind == "f" and one.bits == _ONE:
                return other if step.operation == "multiply" or one is step.operands[0] else None
    return None


def _cannot_fail(step: PlanStep) -> bool:
    match step:
        case ComputeStep(operation, _, operands):
            return operation in _ALWAYS and all(one.kind == "f" for one in operands)
        case LoadStep(_, source):
            return source.type != "u64"
    return False


def _without_dead(steps: Sequence[PlanStep], natives: Sequence[Native]) -> list[PlanStep]:
    """Without what gives numbers that nothing reads."""
    found: list[PlanStep] = []
    live: set[Operand] = set()
    for step in reversed(steps):
        match step:
            case ComputeStep(_, register) | LoadStep(register):
                if register not in live and _cannot_fail(step):
                    continue
            case LaunchStep(_, _, _, _, results):
                kept = tuple([one for one in results if one[2] in live or one[1] == "u64"])
                if not kept and _only_returns(step, natives[step.code]):
                    continue
                step = step._replace(results=kept)
        live.update(read_by(step))
        found.append(step)
    return found[::-1]


def _only_returns(step: LaunchStep, native: Native) -> bool:
    """Whether a launch does nothing but give numbers, and cannot fail."""
    draws = any(one.kind == "s" for one in step.arguments)
    return not (native.written_addresses() or native.checks or native.prints or draws)


def _with_operands(step: PlanStep, of: Callable[[Operand], Operand]) -> PlanStep:
    """A step that reads other numbers."""
    match step:
        case ComputeStep(_, _, operands):
            return step._replace(operands=tuple(map(of, operands)))
        case FillStep(_, value):
            return step._replace(value=of(value))
        case LaunchStep(_, _, _, arguments):
            return step._replace(arguments=tuple(map(of, arguments)))
        case EndStep(result, updates, seeds):
            return step._replace(
                result=with_leaves(result, lambda kind, parts: _parts_with(kind, parts, of)),
                updates=tuple([(place, of(one)) for place, one in updates]),
                seeds=tuple([(which, of(one)) for which, one in seeds]),
            )
    return step


def _parts_with(kind: str, parts: Any, of: Callable[[Operand], Operand]) -> Any:
    if kind in ("number", "bool"):
        return tuple(map(of, parts))
    return (*parts[:2], tuple(map(of, parts[2]))) if kind in ("vector", "matrix") else parts
