"""Dead code elimination of scalar registers in straight-line programs, with the launches that only compute them.

A derivative inside of another one computes values and derivatives of which the one around it uses a few. What is left
out cannot fail, and what takes its place has the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tinote.program import operations as ops

#: Of floats, these cannot fail.
_ALWAYS = {
    "add",
    "subtract",
    "multiply",
    "negative",
    "absolute",
    "scale",
    "sqrt",
    "divide",
    "lt",
    "le",
    "gt",
    "ge",
    "eq",
    "ne",
}
_ONE = 0x3FF0000000000000
_ZERO = ops.Constant("f", 0)


def needed_numbers(steps: Sequence[ops.Operation], codes: Sequence[ops.Code]) -> list[ops.Operation]:
    """The steps, without numbers that are known, or that nothing depends on. `codes`: the program's."""
    return _without_dead(_without_known(steps), codes)


def _without_known(steps: Sequence[ops.Operation]) -> list[ops.Operation]:
    """Without arithmetic that gives what there is already."""
    found: list[ops.Operation] = []
    instead: dict[ops.Operand, ops.Operand] = {}
    known: dict[tuple[str, tuple[ops.Operand, ...]], ops.Register] = {}
    for step in steps:
        step = _with_operands(step, lambda one: instead.get(one, one))
        if isinstance(step, ops.Compute) and _cannot_fail(step):
            same = _operand(step) or known.get((step.operation, step.operands))
            if same is not None and same.kind == step.register.kind:
                instead[step.register] = same
                continue
            known[step.operation, step.operands] = step.register
        found.append(step)
    return found


def _operand(step: ops.Compute) -> ops.Operand | None:
    """What a step gives, if it is one of its operands whatever the others are."""
    if step.operation == "scale" and step.operands[1] == _ZERO:
        return _ZERO
    if step.operation in ("scale", "multiply"):
        for one, other in (step.operands, step.operands[::-1]):
            if isinstance(one, ops.Constant) and one.kind == "f" and one.bits == _ONE:
                return other if step.operation == "multiply" or one is step.operands[0] else None
    return None


def _cannot_fail(step: ops.Operation) -> bool:
    match step:
        case ops.Compute(operation, _, operands):
            if operation == "select":
                return True
            return (operation in _ALWAYS or operation.startswith("quiet.")) and all(one.kind == "f" for one in operands)
        case ops.LoadElement(_, source):
            return source.type != "u64"
        case _:
            return False


def _without_dead(steps: Sequence[ops.Operation], codes: Sequence[ops.Code]) -> list[ops.Operation]:
    """Without what gives numbers that nothing reads."""
    found: list[ops.Operation] = []
    live: set[ops.Operand] = set()
    for step in reversed(steps):
        match step:
            case ops.Compute(_, register) | ops.LoadElement(register):
                if register not in live and _cannot_fail(step):
                    continue
            case ops.Launch(_, _, _, _, results):
                kept = tuple([one for one in results if one[2] in live or one[1] == "u64"])
                if not kept and _only_returns(step, codes[step.code]):
                    continue
                step = step._replace(results=kept)
            case _:
                pass
        live.update(ops.read_by(step))
        found.append(step)
    return found[::-1]


def _only_returns(step: ops.Launch, code: ops.Code) -> bool:
    """Whether a launch does nothing but give numbers, and cannot fail."""
    draws = any(one.kind == "s" for one in step.arguments)
    return not (code.written or code.may_fail or draws)


def _with_operands(step: ops.Operation, of: Callable[[ops.Operand], ops.Operand]) -> ops.Operation:
    """A step that reads other numbers."""
    match step:
        case ops.Compute(_, _, operands):
            return step._replace(operands=tuple(map(of, operands)))
        case ops.Fill(_, value):
            return step._replace(value=of(value))
        case ops.Launch(_, _, _, arguments):
            return step._replace(arguments=tuple(map(of, arguments)))
        case ops.End(result, updates, seeds):
            return step._replace(
                result=ops.with_leaves(result, lambda kind, parts: _parts_with(kind, parts, of)),
                updates=tuple([(place, of(one)) for place, one in updates]),
                seeds=tuple([(which, of(one)) for which, one in seeds]),
            )
        case _:
            return step


def _parts_with(kind: str, parts: Any, of: Callable[[ops.Operand], ops.Operand]) -> Any:
    if kind in ("number", "bool"):
        return tuple(map(of, parts))
    return (*parts[:2], tuple(map(of, parts[2]))) if kind in ("vector", "matrix") else parts
