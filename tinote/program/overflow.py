"""Where integers of a program may need more than 64 bits, or be inexact as floats: Python's numbers have no such limit,
and a replay stops there.
"""

from __future__ import annotations

from tinote.ir import primitives as p
from tinote.ir.affine import Interval, apply_to_intervals, span_of_type
from tinote.ir.types import i64, scalar_named
from tinote.program import operations as ops
from tinote.program.program import Path, Program
from tinote.source import Span

#: Up to here, every integer is an f64.
EXACT = 1 << 53

_PRIMITIVES = {"add": p.add, "subtract": p.sub, "multiply": p.mul, "negative": p.neg, "absolute": p.absolute}
_TRUTH: Interval = (0, 1)


def may_overflow(program: Program) -> Span | None:
    """The first operation that may fail at an integer that Python can represent. Arithmetic on inputs alone is left
    out: it can be tried before the first effect.
    """

    def of_path(path: Path, known: dict[int, Interval | None]) -> Span | None:
        known = dict(known)
        for step in path.steps:
            if isinstance(step, ops.LoadElement):
                if step.source.type == "u64":
                    return step.span
                known[step.register.number] = _of_type(step.source.type)
            elif isinstance(step, ops.Launch):
                known.update({register.number: _of_type(name) for _, name, register in step.results})
            elif isinstance(step, ops.Compute) and any(
                isinstance(one, ops.Register) and known.get(one.number, _TRUTH) is not None for one in step.operands
            ):
                found = _computed(step, known)
                if found is None:
                    return step.span
                known[step.register.number] = found
            elif isinstance(step, ops.Compute):
                known[step.register.number] = None
        return next((span for side in path.sides.values() if (span := of_path(side, known)) is not None), None)

    return of_path(program.root, {register.number: None for register in program.inputs})


def _of_type(name: str) -> Interval:
    t = scalar_named(name)
    return span_of_type(t) if t.kind in "iu" else _TRUTH


def _computed(step: ops.Compute, known: dict[int, Interval | None]) -> Interval | None:
    """The interval of what an operation gives; None where it may fail. `known`: of registers, None for inputs."""
    given: list[Interval] = []
    for one in step.operands:
        interval = (one.bits, one.bits) if isinstance(one, ops.Constant) else known.get(one.number)
        given.append((i64.lowest, i64.highest) if interval is None else interval)
    largest = [max(-low, high) for low, high in given]
    whole = [one.kind in "ib" for one in step.operands]
    if not all(whole):
        is_comparison = step.operation in ("lt", "le", "gt", "ge", "eq", "ne")
        most = max([most for most, is_whole in zip(largest, whole, strict=True) if is_whole], default=0)
        return None if is_comparison and most > EXACT else _TRUTH
    match step.operation:
        case "true_divide":
            return _TRUTH if max(largest) <= EXACT else None
        case "floor_divide":
            found: Interval | None = (-largest[0], largest[0])
        case "remainder":
            found = -largest[-1], largest[-1]
        case name:
            found = apply_to_intervals(_PRIMITIVES[name], given) if name in _PRIMITIVES else _TRUTH
    return found if found is not None and i64.lowest <= found[0] and found[1] <= i64.highest else None
