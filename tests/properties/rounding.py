"""How far rounding may carry a program's results: what it gives when every inexact operation is a little off.

`spread` interprets a program a few times, each time with other small errors at the operations that machine code may
compute less than exactly (Monte Carlo arithmetic: Parker, "Monte Carlo Arithmetic", 1997). What the results have in
common is decided by the program; how far its numbers scatter says how far those of machine code may lie.

That holds where results follow their operands. A quotient does not if its divisor may be zero, nor does a comparison of
what may be equal: a few runs hardly meet the one value at which these jump, and machine code may. As in discrete
stochastic arithmetic (Jézéquel and Chesneaux, "CADNA: a library for estimating round-off error propagation", 2008) an
operation is watched for whether its edge lies within the scatter of its operands. Further runs give such operations
other results, so that all that depends on them shows it, and the rest stays decided.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Sequence, Set
from typing import Any, TypeVar

from tests.properties.compare import Outcome, run
from tests.properties.generate import Program
from tinote.ir import primitives as p
from tinote.ir.nodes import Atom, Function, Lit, Load, Prim, Var
from tinote.ir.primitives import NoDerivative, Primitive
from tinote.ir.rewrite import KEEP, Decision, Rewriter
from tinote.ir.types import Scalar, Type, element_type, f64, machine_epsilon, u1

__all__ = ["disagreement", "fits", "scattered", "spread"]

Found = TypeVar("Found")

#: errors in units of the last place: more than any function may have, so that a decision that hangs by so little shows
_ERROR = 16
#: how much further than the scatter of a few runs a result may lie
_SAFETY = 8
_RUNS = 4
#: what is reassociated, contracted and multiplied by reciprocals where fast maths is on
_REASSOCIATED = (p.add, p.sub, p.mul, p.div, p.raw_div, p.sqrt, p.mod, p.raw_mod, p.floordiv)
#: where an error in an operand makes the result jump
_JUMPING = (p.mod, p.raw_mod, p.floordiv)
#: what has an edge, where its result jumps or has a pole, and what of its operands is zero there
_EDGES: dict[Primitive, Callable[..., Any]] = {
    **dict.fromkeys((p.lt, p.le, p.gt, p.ge, p.eq, p.ne), lambda a, b: a - b),
    **dict.fromkeys((p.div, p.raw_div, p.floordiv, p.mod, p.raw_mod), lambda a, b: b),
    **dict.fromkeys((p.sqrt, p.rsqrt, p.log, p.logical_not), lambda a: a),
    **dict.fromkeys((p.asin, p.acos), lambda a: 1 - abs(a)),
    p.power: lambda a, b: a,
}

#: what is put into a program for the interpreter alone
_UNDERIVED = NoDerivative("only interpreted", zero=False)


class _Perturb(Rewriter):
    """Puts an error after each operation that may have one, and watches those that have an edge.

    `undecided`: which of the latter, counted in the order of the text, give something else than they should; the first
    perturbation (`seed` 0) has them do so always, the others every other time.
    """

    def __init__(self, seed: int, fast_math: bool, undecided: Set[int] = frozenset()) -> None:
        super().__init__()
        draw = random.Random(seed)

        def perturbed(t: Scalar, x: Any) -> Any:
            if x == 0:
                return math.copysign(0.0, draw.random() - 0.5) if fast_math else x
            return t.round(x * (1 + draw.uniform(-_ERROR, _ERROR) * machine_epsilon(t))) if math.isfinite(x) else x

        def other(t: Scalar, x: Any) -> Any:
            if seed and draw.random() < 0.5:
                return x
            return math.nan if t.kind == "f" else t.wrap(x ^ 1)

        self.error = Primitive("error", 1, None, perturbed, _UNDERIVED, cost=0)
        self.other = Primitive("other", 1, None, other, _UNDERIVED, cost=0)
        self.fast_math = fast_math
        self.undecided = undecided
        self.watched = 0
        #: how far from its edge each watched operation was, whenever it was executed
        self.margins: defaultdict[int, list[Any]] = defaultdict(list)

    def off(self, atom: Atom) -> Atom:
        """`atom`, if it is a float, and a little more or less."""
        t: Type = f64 if isinstance(atom, Lit) and not element_type(atom.type).bits else atom.type
        return self.through(self.error, atom, t) if element_type(t).kind == "f" else atom

    def watch(self, op: Prim, atom: Atom) -> Atom:
        """The result of an operation that has an edge; something else if it may have met the edge."""
        number, edge = self.watched, _EDGES[op.prim]
        self.watched += 1

        def noted(t: Scalar, *values: Any) -> int:
            self.margins[number].append(edge(*values))
            return 0

        note = Primitive("note", None, None, noted, _UNDERIVED, cost=0)
        self.emit(Prim(note, op.args, (Var(u1),)))
        return self.through(self.other, atom, atom.type) if number in self.undecided else atom

    def through(self, prim: Primitive, atom: Atom, t: Type) -> Atom:
        found = Var(t)
        self.emit(Prim(prim, (atom,), (found,)))
        return found

    def on(self, op: Any) -> Decision | Sequence[Atom]:
        inexact = isinstance(op, Prim) and (op.prim.ulps > 0 or (self.fast_math and op.prim in _REASSOCIATED))
        edged = isinstance(op, Prim) and op.prim in _EDGES
        if not (inexact or edged or (self.fast_math and isinstance(op, Load))):
            return KEEP
        args = op.args
        if self.fast_math and edged and op.prim in _JUMPING:
            args = tuple([self.off(a) for a in args])
        result: Atom = Var(op.out.type)
        self.emit(op.rebuilt(args, (), (result,)))
        if inexact or not edged:
            result = self.off(result)
        return (self.watch(op, result) if edged else result,)


def spread(program: Program, fast_math: bool) -> list[Outcome]:
    """What the program may leave: exactly computed, then with errors."""
    return scattered(program.function, lambda fn: run(program, fn), fast_math)


def scattered(fn: Function, outcome: Callable[[Function], Found], fast_math: bool) -> list[Found]:
    """What a function may give, of which `outcome` says what it gives: exactly computed, then with errors."""
    found = [outcome(fn)]

    def runs(undecided: Set[int]) -> list[dict[int, list[Any]]]:
        margins: list[dict[int, list[Any]]] = []
        for seed in range(_RUNS):
            perturb = _Perturb(seed, fast_math, undecided)
            found.append(outcome(Function(fn.name, perturb.region(fn.region))))
            margins.append(perturb.margins)
        return margins

    margins = runs(frozenset())
    # Where the runs part, what parts them is among these: the shortest of them is enough.
    times = {n: zip(*[m.get(n, ()) for m in margins], strict=False) for n in margins[0]}
    met = {n for n, several in times.items() if any(map(_reaches_zero, several))}
    if met:
        runs(met)
    return found


def _reaches_zero(possible: Sequence[Any]) -> bool:
    """Whether numbers that do not all agree may as well be zero."""
    scatter = _scatter(possible)
    return scatter > 0 and abs(possible[0]) <= _SAFETY * scatter


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
            verdict = fits(several, last, summed)
            undecided = undecided or verdict is None
            if verdict is False:
                return f"left {last} in {name} instead of {several[0]} (or {several[1:]})"
    if undecided:
        return None
    return "" if found.printed == wanted.printed else f"printed {found.printed} instead of {wanted.printed}"


def fits(possible: Sequence[Any], found: Any, summed: bool) -> bool | None:
    """Whether one number lies among the possible ones; None: they leave it open."""
    wanted = possible[0]
    if not isinstance(wanted, float):
        return None if len(set(possible)) > 1 else bool(wanted == found)
    if not all(map(math.isfinite, possible)):
        if any(str(x) != str(wanted) for x in possible):
            return None
        return str(found) == str(wanted)
    slack = 0.05 + 1e-4 * abs(wanted) if summed else 0.0
    return bool(math.isfinite(found) and abs(found - wanted) <= _SAFETY * _scatter(possible) + slack)


def _scatter(possible: Sequence[Any]) -> float:
    return max(abs(x - possible[0]) for x in possible)


def _flat(value: Any) -> list[Any]:
    return [x for part in value for x in _flat(part)] if isinstance(value, list | tuple) else [value]
