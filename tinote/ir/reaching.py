"""Access regions (`access_region.py`) of loads and stores, from what the access analysis says of their indices.

    for parallel %i: i32 in 1i32 .. 63i32:       steps: 0 argument 0 (%t), 1 constant 1, 2 sub of 0 and 1,
      %s: i32 = sub %t, 1i32                            3 constant 1 … 62
      %a: f32 = load @x[%s, %i]                  @x[step 2, step 3]

The sums of the analysis go first, so that what cancels out is gone; a sum that might wrap is no sum to it, and is
looked at again at launch, when its numbers are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tinote.ir import primitives as p
from tinote.ir.access import Accesses
from tinote.ir.access_region import Applied, Argument, Constant, Either, Length, Reach, Reaches, Step, Sum, Turns
from tinote.ir.affine import Interval, variable
from tinote.ir.buffers import root_of
from tinote.ir.nodes import Atom, Buffer, Extent, Function, If, Lit, Memory, Prim, Var
from tinote.ir.types import Scalar

__all__ = ["reaches_of"]


def reaches_of(fn: Function, needed: Iterable[Memory], restored: frozenset[Buffer]) -> Reaches:
    """What `fn` (scalar form) writes, and what the accesses `needed` and all reading ones of `restored` reach."""
    accesses = Accesses(fn)
    steps = _Steps(accesses, fn.region.params)
    everything = accesses.all()
    return Reaches(
        needed=steps.reaches(needed),
        restored=steps.reaches(a.op for a in everything if a.reads and a.buffer in restored),
        written=steps.reaches(a.op for a in everything if a.writes),
        steps=tuple(steps.all),
        lengths=tuple(steps.lengths),
    )


class _Steps:
    """Makes steps of integers. What depends on nothing that a launch brings becomes a constant at once."""

    def __init__(self, accesses: Accesses, parameters: Sequence[Var]) -> None:
        self.all: list[Step] = []
        self.lengths: dict[tuple[Buffer, int], int] = {}
        self._known: dict[tuple[type, Step], int] = {}
        self._constants: dict[int, Interval] = {}
        self._accesses = accesses
        self._parameters = {v: position for position, v in enumerate(parameters)}
        self._numbers: dict[Var, int] = {}

    def reaches(self, operations: Iterable[Memory]) -> tuple[Reach, ...]:
        found: dict[Reach, None] = {}
        for op in operations:
            access = self._accesses.of(op)
            rank = access.buffer.rank
            found[Reach(root_of(access.buffer), tuple([self._step_of(a) for a in op.index[:rank]]))] = None
        return tuple(found)

    def _add(self, step: Step) -> int:
        sources = step.sources
        if sources and all(k in self._constants for k in sources):
            step = Constant(*step.interval((), (), self._constants))
        number = self._known.get((type(step), step))
        if number is None:
            number = self._known[type(step), step] = len(self.all)
            self.all.append(step)
            if isinstance(step, Constant):
                self._constants[number] = step
        return number

    def _step_of(self, atom: Atom) -> int:
        if isinstance(atom, Lit):
            return self._add(Constant(int(atom.value), int(atom.value)))
        found = self._numbers.get(atom)
        if found is None:
            found = self._numbers[atom] = self._made(atom)
        return found

    def _made(self, v: Var) -> int:
        accesses = self._accesses
        if v in self._parameters:
            return self._add(Argument(self._parameters[v]))
        form = accesses.affine(v)
        if form != variable(v):
            terms = tuple([(factor, self._step_of(w)) for w, factor in form.terms.items()])
            return self._add(Sum(form.const, terms))
        loop = accesses.indices.get(v)
        if loop is not None:
            first, last = [self._step_of(bound) for bound in loop.op.args[:2]]
            return self._add(Turns(first, last))
        op = accesses.definitions.get(v)
        if isinstance(op, Extent):
            asked = self.lengths.setdefault((op.buffer, op.axis), len(self.lengths))
            return self._add(Length(asked))
        if isinstance(op, If):
            one, other = [self._step_of(region.yields[op.outs.index(v)]) for region in op.regions]
            return self._add(Either(one, other))
        if isinstance(op, Prim) and op.prim is p.select:
            one, other = [self._step_of(a) for a in op.args[1:]]
            return self._add(Either(one, other))
        if isinstance(op, Prim) and isinstance(v.type, Scalar) and all(_is_whole(a) for a in op.args):
            args = tuple([self._step_of(a) for a in op.args])
            return self._add(Applied(op.prim, v.type, args))
        return self._add(Constant(*accesses.interval(v)))


def _is_whole(atom: Atom) -> bool:
    return isinstance(atom.type, Scalar) and atom.type.kind != "f"
