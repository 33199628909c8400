"""Static violations: broken access rules that need no launch to be seen, because two accesses in one straight piece of
code touch the same element.

    %a = load @x[%i]
    %b = mul %a, 2.0
    store @x[%i], %b          breaks rule 1, whatever @x holds and whatever %i is

Two indices are the same when they are computed in the same way from the same variables. What depends on a condition, or
passes from one iteration of a loop to another, is left to the checks at launch (`instrument.py`). A function that
itself works on gradients is not recorded by a tape, and is left alone.
"""

from __future__ import annotations

from typing import NamedTuple

from tinote.autodiff.access_rules import RuleAccesses, numbers_at
from tinote.ir.checked_accesses import RULES, Kind
from tinote.ir.nodes import Atom, Atomic, Buffer, Function, Lit, Load, MemoryOp, Op, Prim, Region, Store, Var
from tinote.ir.query import definitions, walk
from tinote.source import Span


class StaticViolation(NamedTuple):
    """Running this code breaks a rule: the element of `buffer` that was accessed at `earlier` is changed at `later`
    (the same operation, where one does both).
    """

    rule: int
    buffer: Buffer
    earlier: Span
    later: Span

    @property
    def message(self) -> str:
        """What is wrong at `later`, in a sentence."""
        name, line = self.buffer.name, self.earlier.line
        if self.earlier == self.later:
            what = f"'{name}' is read and changed here by one operation"
        elif self.rule == 1:
            what = f"'{name}' is changed here after being read in line {line}"
        else:
            what = f"'{name}' is written here again after line {line}, and not by adding"
        return f"{what}; a tape that validates refuses it ({RULES[self.rule]})"


def find_static_violations(fn: Function) -> list[StaticViolation]:
    """What is certain about `fn` (FIRST or TYPED form), in the order of the program; each pair of operations once."""
    if any(isinstance(op, MemoryOp) and op.buffer.primal is not None for op in walk(fn.region)):
        return []
    search = _Search(fn)
    search.region(fn.region)
    return list(search.found)


class _Search:
    def __init__(self, fn: Function) -> None:
        self.found: dict[StaticViolation, None] = {}
        self._accesses = RuleAccesses(fn)
        self._definitions = definitions(fn.region)
        self._meanings: dict[Var, Var] = {}  # the first variable that holds the same number
        self._known: dict[object, Var] = {}

    def region(self, region: Region) -> None:
        read: dict[object, Op] = {}  # what stands in this region, by element
        written: dict[object, Op] = {}
        for op in region.body:
            for inner in op.regions:
                self.region(inner)
            kind = self._accesses.kind(op)
            if kind is None:
                continue
            assert isinstance(op, Load | Store | Atomic)
            for index in numbers_at(op.buffer, op.index):
                element = (op.buffer, *map(self._meaning, index))
                if kind.changes:
                    self._change(op, kind, read.get(element), written.get(element))
                    read.pop(element, None)
                    written[element] = op
                else:
                    read.setdefault(element, op)

    def _change(self, op: Load | Store | Atomic, kind: Kind, read: Op | None, written: Op | None) -> None:
        """The element that `op` changes was perhaps read or written before."""
        if read is not None:
            self._note(1, op, read)
        elif written is not None and kind.rewrites(op.buffer):
            self._note(2, op, written)
        elif kind.does_both:
            self._note(1, op, op)

    def _note(self, rule: int, op: Load | Store | Atomic, earlier: Op) -> None:
        self.found[StaticViolation(rule, op.buffer, earlier.loc, op.loc)] = None

    def _meaning(self, atom: Atom) -> object:
        """Equal for two atoms only if they hold the same number."""
        if isinstance(atom, Lit):
            return atom.value, atom.type.kind
        waiting = [atom]
        while waiting:  # not by recursion: a program may be long
            made = self._definitions.get(waiting[-1])
            args = made.args if isinstance(made, Prim) else ()
            missing = [a for a in args if isinstance(a, Var) and a not in self._meanings]
            if missing:
                waiting += missing
                continue
            v = waiting.pop()
            if isinstance(made, Prim):
                operands = tuple(map(self._meaning_of_operand, made.args))
                key = made.prim, repr(v.type), frozenset(operands) if made.prim.commutative else operands
                self._meanings[v] = self._known.setdefault(key, v)
            else:
                self._meanings[v] = v
        return self._meanings[atom]

    def _meaning_of_operand(self, atom: Atom) -> object:
        return (atom.value, atom.type.kind) if isinstance(atom, Lit) else self._meanings[atom]
