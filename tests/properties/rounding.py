"""How far rounding may carry a program's results: what it gives when every inexact operation is a little off.

`spread` interprets a program a few times, each time with other small errors at the operations that machine code may
compute less than exactly (Monte Carlo arithmetic: Parker, "Monte Carlo Arithmetic", 1997). What the results have in
common is decided by the program; how far its numbers scatter says how far those of machine code may lie.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

from tests.codegen.accuracy import ULPS
from tests.properties.compare import Outcome, run
from tests.properties.generate import Program
from tinote.ir import primitives as p
from tinote.ir.nodes import Atom, Function, Lit, Load, Prim, Var
from tinote.ir.primitives import Primitive
from tinote.ir.rewrite import KEEP, Decision, Rewriter
from tinote.ir.types import Scalar, Type, element_type, f64, machine_epsilon

__all__ = ["disagreement", "spread"]

#: errors in units of the last place: more than any function may have, so that a decision that hangs by so little shows
_ERROR = 16
#: how much further than the scatter of a few runs a result may lie
_SAFETY = 8
_RUNS = 4
#: what is reassociated, contracted and multiplied by reciprocals where fast maths is on
_REASSOCIATED = (p.add, p.sub, p.mul, p.div, p.raw_div, p.sqrt, p.mod, p.raw_mod, p.floordiv)
#: where an error in an operand makes the result jump
_JUMPING = (p.mod, p.raw_mod, p.floordiv)


class _Perturb(Rewriter):
    """Puts an error behind each operation that may have one."""

    def __init__(self, seed: int, fast_math: bool) -> None:
        super().__init__()
        draw = random.Random(seed)

        def perturbed(t: Scalar, x: Any) -> Any:
            if x == 0:
                return math.copysign(0.0, draw.random() - 0.5) if fast_math else x
            return t.round(x * (1 + draw.uniform(-_ERROR, _ERROR) * machine_epsilon(t))) if math.isfinite(x) else x

        self.error = Primitive("error", 1, None, perturbed, commutative=False, elementwise=True, cost=0)
        self.fast_math = fast_math

    def off(self, atom: Atom, out: Var | None = None) -> Atom:
        """`atom`, if it is a float, and a little more or less."""
        t: Type = f64 if isinstance(atom, Lit) and not element_type(atom.type).bits else atom.type
        if element_type(t).kind != "f":
            return atom
        found = Var(t) if out is None else out
        self.emit(Prim(self.error, (atom,), (found,)))
        return found

    def on(self, op: Any) -> Decision | Sequence[Atom]:
        inexact = isinstance(op, Prim) and (op.prim in ULPS or (self.fast_math and op.prim in _REASSOCIATED))
        if not (inexact or (self.fast_math and isinstance(op, Load))) or element_type(op.out.type).kind != "f":
            return KEEP
        args = op.args
        if self.fast_math and isinstance(op, Prim) and op.prim in _JUMPING:
            args = tuple([self.off(a) for a in args])
        exact = Var(op.out.type)
        self.emit(op.rebuilt(args, (), (exact,)))
        self.off(exact, op.out)
        return op.outs


def spread(program: Program, fast_math: bool) -> list[Outcome]:
    """What the program may leave: exactly computed, then with errors."""
    found = [run(program, program.function)]
    for seed in range(_RUNS):
        perturb = _Perturb(seed, fast_math)
        fn = program.function
        found.append(run(program, Function(fn.name, perturb.region(fn.region))))
    return found


def disagreement(program: Program, possible: Sequence[Outcome], found: Outcome) -> str | None:
    """Where `found` is not among the possible outcomes, in words; empty if nowhere.

    None: the program leaves too much open, because a branch, an index or a conversion hangs by a rounding error.
    """
    wanted = possible[0]
    if any(other.printed != wanted.printed for other in possible):
        found = found._replace(printed=wanted.printed)
    pairs = [("the results", [o.returned for o in (*possible, found)], False)]
    for buffer in program.contents:
        contents = [o.contents[buffer] for o in (*possible, found)]
        pairs.append((buffer.name, contents, buffer in program.approximate))
    undecided = False
    for name, values, summed in pairs:
        for *several, last in zip(*[_flat(v) for v in values], strict=True):
            verdict = _fits(several, last, summed)
            undecided = undecided or verdict is None
            if verdict is False:
                return f"left {last} in {name} instead of {several[0]} (or {several[1:]})"
    if undecided:
        return None
    return "" if found.printed == wanted.printed else f"printed {found.printed} instead of {wanted.printed}"


def _fits(possible: Sequence[Any], found: Any, summed: bool) -> bool | None:
    """Whether one number lies among the possible ones; None: they leave it open."""
    wanted = possible[0]
    if not isinstance(wanted, float):
        return None if len(set(possible)) > 1 else bool(wanted == found)
    if not all(map(math.isfinite, possible)):
        if any(str(x) != str(wanted) for x in possible):
            return None
        return str(found) == str(wanted)
    scatter = max(abs(x - wanted) for x in possible)
    slack = 0.05 + 1e-4 * abs(wanted) if summed else 0.0
    return bool(math.isfinite(found) and abs(found - wanted) <= _SAFETY * scatter + slack)


def _flat(value: Any) -> list[Any]:
    return [x for part in value for x in _flat(part)] if isinstance(value, list | tuple) else [value]
