"""TEMPORARY, until the access analysis answers this: may two accesses meet in different turns of a loop?"""

from __future__ import annotations

from collections.abc import Mapping

from tinote.ir import primitives as p
from tinote.ir.nodes import Atom, For, Lit, Memory, Op, Prim, Task, Var
from tinote.ir.query import bound_in


class Turns:
    """The turns of one loop; what is bound outside of it is the same in all of them."""

    def __init__(self, index: Var, inside: set[Var], definitions: Mapping[Var, Op]) -> None:
        self.index = index
        self.inside = inside
        self.definitions = definitions

    @staticmethod
    def of_task(task: Task, definitions: Mapping[Var, Op]) -> Turns:
        return Turns(task.body.params[0], bound_in(task.body), definitions)

    @staticmethod
    def of_loop(loop: For, definitions: Mapping[Var, Op]) -> Turns:
        return Turns(loop.index, bound_in(loop.body), definitions)

    def affine(self, atom: Atom) -> tuple[int, dict[Var, int]]:
        if isinstance(atom, Lit):
            return int(atom.value), {}
        op = self.definitions.get(atom)
        if isinstance(op, Prim) and op.prim in (p.add, p.sub):
            (c, a), (d, b) = self.affine(op.args[0]), self.affine(op.args[1])
            sign = 1 if op.prim is p.add else -1
            terms = dict(a)
            for v, k in b.items():
                terms[v] = terms.get(v, 0) + sign * k
            return c + sign * d, {v: k for v, k in terms.items() if k}
        return 0, {atom: 1}

    def apart(self, a: Memory, b: Memory) -> bool:
        """Whether `a` in one turn and `b` in another never touch the same element."""
        if a.buffer is not b.buffer:
            return False
        for i, j in zip(a.index, b.index, strict=False):
            (c, x), (d, y) = self.affine(i), self.affine(j)
            if x != y:
                continue
            if c == d and abs(x.get(self.index, 0)) == 1 and all(v is self.index or v not in self.inside for v in x):
                return True
            if c != d and abs(c - d) < 1 << 31 and not any(v in self.inside for v in x):
                return True
        return False
