"""The explorer's panel of observed values: what one iteration computes, line by line of the stage that is shown."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tinote.compiler.driver import Specialisation
from tinote.compiler.inspect.observe import CopiedMemory, Seen, observe
from tinote.compiler.inspect.observe_adjoints import Adjoints, observed_adjoints, primals_of
from tinote.compiler.inspect.stages import Stage
from tinote.compiler.launch.native import Native
from tinote.compiler.requests import PRIMAL, defaults_of
from tinote.errors import TinoteError
from tinote.ir.interpret import StepLimitError
from tinote.ir.lanes import LoadTile, StoreTile
from tinote.ir.memory import Buffer, Number
from tinote.ir.nodes import Atomic, Function, Local, NewStack, Op, Push, Set, Store, Var
from tinote.ir.query import walk
from tinote.ir.types import Scalar, element_type, is_float
from tinote.lang.data.matrix import numpy_type

#: The integers below it are exact in JavaScript.
_MOST_EXACT = 2**53


def parameters_of(specialisation: Specialisation, last: Sequence[Number] = ()) -> list[dict[str, Any]]:
    """The scalar arguments that a user gives to observe or measure the kernel, with the ones in `last`; without these,
    those of the last launch.
    """
    code = next((code for request, code in specialisation.results() if request is PRIMAL), None)
    params = specialisation.lowered.function.region.params
    last = last or (code.last_numbers() if isinstance(code, Native) else [0] * len(params))
    return [
        {"name": v.name or f"argument {n}", "last": _as_input(value, element_type(v.type))}
        for n, (v, value) in enumerate(zip(params, last, strict=True))
    ]


def _as_input(value: Number, t: Scalar) -> str:
    """A number as a user would write it; 0 for one that a page does not have exactly."""
    if is_float(t):
        return str(numpy_type(t).type(value))
    return str(int(value)) if abs(value) < _MOST_EXACT else "0"


def numbers_for(fn: Function, given: Sequence[float]) -> list[float]:
    """The numbers that a user has given, in the types of the parameters; those beyond these are dropped."""
    params = fn.region.params
    return [float(a) if is_float(element_type(v.type)) else int(a) for v, a in zip(params, given, strict=False)]


def observed_values(
    specialisation: Specialisation,
    stage: Stage,
    iteration: Sequence[int],
    arguments: Sequence[float],
    differentiated: Function | None = None,
    seed: float | None = None,
) -> dict[str, Any]:
    """What each line of an IR stage evaluated to in an iteration, on a copy of the fields as they are now.
    `differentiated`: what the stage's gradient was made from; then the adjoints of the variables come along. `seed`:
    the adjoint of every scalar result, in place of what stands there now. Raises `TinoteError` for what cannot be
    observed.
    """
    fn = stage.function
    if fn is None:
        raise TinoteError("values are observed in stages of the IR", hint="choose one of them on the right")
    if specialisation.arrays:
        raise TinoteError("this kernel takes arrays, which have their memory only during a launch")
    # A gradient may have parameters of its own after the kernel's: seeds of what it returns.
    values = numbers_for(fn, [*arguments, *([seed or 0] * len(fn.region.params))])
    defaults = defaults_of(specialisation.config)
    seeds = {} if differentiated is None or seed is None else _seeds(specialisation, differentiated, seed)
    found = observe(fn, values, CopiedMemory(specialisation.memory, seeds), iteration, defaults)
    adjoints, missing, primals = None, "", primals_of(fn)
    if differentiated is not None and not stage.derived and fn is not differentiated:
        # Two variables that simplification makes one have an adjoint together.
        missing = "adjoints are known from the last stage before differentiation on"
    elif differentiated is not None:
        memory = CopiedMemory(specialisation.memory, seeds)
        try:
            adjoints = observed_adjoints(differentiated, values, memory, iteration, defaults)
        except StepLimitError:
            missing = "the gradient is too long for adjoints"
        except TinoteError as error:
            missing = f"no adjoints: {error.message}"
    rows: list[dict[str, Any]] = []
    first, done = -1, set[Op]()
    for number, line in enumerate(stage.lines):
        op = line.op
        seen = found.seen.get(op) if op is not None else None
        if (
            op is None
            or op in done
            or seen is None
            or not seen.values
            or isinstance(op, NewStack | Local | LoadTile | StoreTile)
        ):
            continue
        done.add(op)
        shown = _shown(seen)
        if op is found.first_nan:
            first = len(rows)
            if seen.times > 1:
                shown = f"NaN in iteration {found.nan_run}; last {shown}"
        derived = ("adjoint" + (f", from {line.primal}" if line.primal else "")) if line.adjoint else ""
        cells = [_name(op, line.text, len(seen.values)), shown, str(seen.times), derived]
        own = [] if adjoints is None or line.adjoint else _adjoints(op, seen, primals, adjoints)
        bad = _bad(seen.values) or _bad(own)
        adjoint = ", ".join("—" if value is None else _number(value) for value in own)
        rows.append({"line": number, "cells": cells, "adjoint": adjoint, "tone": "bad" if bad else ""})
    limits = [[iterations.start, iterations.stop] for iterations in found.ranges]
    about = {"adjoints": adjoints is not None, "missing": missing}
    return {"rows": rows, "nan": first, "limits": limits, "stopped": found.stopped, **about}


def has_scalar_results(fn: Function) -> bool:
    """Whether a function writes to a field of one number that has an adjoint: a loss."""
    return any(True for _ in _scalar_results(fn))


def _scalar_results(fn: Function) -> Iterator[Buffer]:
    """The adjoints of the fields of one number that a function writes to."""
    for op in walk(fn.region):
        if isinstance(op, Store | Atomic) and op.buffer.adjoint is not None and not op.index:
            yield op.buffer.adjoint


def _seeds(specialisation: Specialisation, fn: Function, seed: float) -> dict[int, Number]:
    """The seed at the addresses of the adjoints of scalar results."""
    return {specialisation.memory(adjoint).address: seed for adjoint in _scalar_results(fn)}


def _adjoints(op: Op, seen: Seen, primals: Mapping[Var, Var], adjoints: Adjoints) -> list[Number | None]:
    """The total adjoints of what an operation binds, in the iteration that was observed; empty where there are none."""
    found = [adjoints.of(primals[v], seen.indices) if v in primals else None for v in op.outs]
    return [] if all(value is None for value in found) else found


def _name(op: Op, text: str, count: int) -> str:
    """What identifies a line: the variables that it binds, or what it writes."""
    if isinstance(op, Store):
        return f"store @{op.buffer.name}"
    if isinstance(op, Atomic):
        return f"{op.prim.name} to @{op.buffer.name}"
    if isinstance(op, Push | Set):
        return " ".join(text.split()[:2]).rstrip(",")
    return ", ".join(re.findall(r"(%[\w.]+): ", text)[:count])


def _shown(seen: Seen) -> str:
    return ", ".join(map(_number, seen.values))


def _number(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_number, value))}]"
    return f"{value:.7g}" if isinstance(value, float) else str(value)


def _bad(values: Sequence[Any]) -> bool:
    return any(
        _bad(value) if isinstance(value, tuple) else isinstance(value, float) and not math.isfinite(value)
        for value in values
    )
