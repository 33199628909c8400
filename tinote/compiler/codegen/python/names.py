"""Allocation of Python variable names: the user's own wherever live ranges do not overlap.

A variable holds a name from its definition to its last use; then another variable may have it. So a name that the user
assigns in each iteration of an unrolled loop, or that two functions use, is the same Python variable; variables that
are live at the same time get numbers: `x`, `x_1`.
"""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Callable
from math import inf

from tinote.ir import primitives as p
from tinote.ir.nodes import Extent, For, Function, Get, Lit, Load, Op, Prim, Region, Var, While


def identifier(name: str) -> str:
    """`name` as Python can write it; empty if it is a number, which the text form gives to variables without name."""
    plain = re.sub(r"\W", "_", name)
    return "" if plain[:1].isdigit() else f"{plain}_" if keyword.iskeyword(plain) else plain


def own_name(op: Op) -> str:
    """The user's name for the result of an operation, if it is a variable of the user: reading or converting a variable
    passes its name on.
    """
    if len(op.outs) != 1:
        return ""
    name = identifier(op.out.name)
    hands_on = isinstance(op, Get) or (isinstance(op, Prim) and op.prim is p.cast)
    return "" if hands_on and isinstance(op.args[0], Var) and identifier(op.args[0].name) == name else name


class Uses:
    """Live ranges of variables, in positions along the code: `start` and `end` of each operation, and `last` of each
    variable. A variable that is defined outside a loop and used in it is live until the loop ends.

    `dropped`: dead operations, or those only for a derivative, unless they may fail. `count`: the number of uses of
    each variable; `nested`: the variables used in another region than their own.
    """

    def __init__(self, fn: Function, may_fail: Callable[[Op], bool]) -> None:
        self._may_fail = may_fail
        self.start: dict[Op, int] = {}
        self.end: dict[Op, int] = {}
        self.last: dict[Var, int] = {}
        self.count: Counter[Var] = Counter()
        self.nested: set[Var] = set()
        self._bound: dict[Var, int] = {}
        self._home: dict[Var, Region] = {}
        self._maker: dict[Var, Op] = {}
        self._position = 0
        self._loops: list[tuple[int, set[Var]]] = []
        self._region(fn.region)
        self.dropped = self._unneeded()

    def _region(self, region: Region) -> None:
        self._bind(region.params, region)
        for op in region.body:
            self._op(op, region)
        self._use(region.yields, region)

    def _bind(self, variables: tuple[Var, ...], region: Region) -> None:
        for v in variables:
            self._bound[v] = self.last[v] = self._position
            self._home[v] = region

    def _op(self, op: Op, region: Region) -> None:
        self._position += 1
        self.start[op] = self._position
        self._use(_read(op), region)
        if op.regions:
            if isinstance(op, For | While):
                self._loops.append((self._position, set()))
            for inner in op.regions:
                self._region(inner)
            self._position += 1
            if isinstance(op, For | While):
                for v in self._loops.pop()[1]:
                    self.last[v] = self._position
        self.end[op] = self._position
        self._bind(op.outs, region)
        self._maker.update(dict.fromkeys(op.outs, op))

    def _use(self, atoms: tuple[object, ...], region: Region) -> None:
        for v in atoms:
            if not isinstance(v, Var):
                continue
            self.count[v] += 1
            self.last[v] = self._position
            if self._home[v] is not region:
                self.nested.add(v)
            for begin, outer in self._loops:
                if self._bound[v] < begin:
                    outer.add(v)
                    break

    def _unneeded(self) -> set[Op]:
        """Dead operations: they can neither fail nor have an effect, and their results are unused and not named by the
        user.
        """
        found: set[Op] = set()
        waiting = [op for v, op in self._maker.items() if not self.count[v]]
        while waiting:
            op = waiting.pop()
            if not isinstance(op, Prim | Load | Get | Extent) or own_name(op) or op in found or self._may_fail(op):
                continue
            found.add(op)
            for a in _read(op):
                if isinstance(a, Var):
                    self.count[a] -= 1
                    if not self.count[a] and a in self._maker:
                        waiting.append(self._maker[a])
        return found


def _read(op: Op) -> tuple[Var | Lit, ...]:
    """The operands whose values an operation needs: not those that are for derivatives."""
    return op.args[:1] if isinstance(op, Prim) and op.prim in (p.surrogate, p.in_reverse) else op.args


class Names:
    """The names of one Python function, allocated along the code."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}
        self._temporaries = 0

    def whole(self, wanted: str) -> str:
        """Reserve a name for the whole function."""
        return self.take(wanted, 0, inf)

    def take(self, wanted: str, start: float, last: float) -> str:
        """Allocate a name from one position in the code to another: `wanted` if possible, a generated one if that is
        empty.
        """
        base = identifier(wanted)
        if not base:
            return self.temporary()
        name, number = base, 0
        while self._until.get(name, -1) > start:
            number += 1
            name = f"{base}_{number}"
        self._until[name] = last
        return name

    def temporary(self) -> str:
        """A name that no variable of the user has."""
        while True:
            self._temporaries += 1
            name = f"_{self._temporaries}"
            if name not in self._until:
                self._until[name] = inf
                return name
