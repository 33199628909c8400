"""Which operations of a gradient carry adjoints.

A gradient recomputes primal values and propagates adjoints through them; operations of both kinds name a primal one as
their `origin`. What tells them apart survives any pass: an adjoint is a value that depends on a gradient's memory.
"""

from __future__ import annotations

from collections.abc import Iterable

from tinote.ir import nodes as ir
from tinote.ir.buffers import root_of
from tinote.ir.query import walk


def adjoint_operations(fn: ir.Function) -> set[ir.Op]:
    """The operations that load, compute, save or store adjoints; none if the function is not a derivative."""
    reached = _reached(fn)
    return set() if reached is None else {op for op in walk(fn.region) if reached.carries(op)}


def adjoint_values(fn: ir.Function) -> set[ir.Var]:
    """The variables that hold adjoints, or are computed from them; none if the function is not a derivative."""
    reached = _reached(fn)
    return set() if reached is None else reached.values


def _reached(fn: ir.Function) -> _Reached | None:
    """Where adjoints go; None if the function is not a derivative."""
    operations = list(walk(fn.region))
    if not any(op.origin is not None for op in operations):
        return None
    reached = _Reached()
    # Values flow around loops: repeat until nothing more is reached.
    while sum(map(reached.follow, operations)):
        pass
    return reached


class _Reached:
    """The variables, stacks and memory that adjoints have reached."""

    def __init__(self) -> None:
        self.values: set[ir.Var] = set()
        self._memory: set[ir.Buffer] = set()

    def _is_gradient(self, buffer: ir.Buffer) -> bool:
        buffer = root_of(buffer)
        return buffer.primal is not None or buffer in self._memory

    def _has(self, atom: ir.Atom) -> bool:
        return type(atom) is ir.Var and atom in self.values

    def _add(self, variables: Iterable[ir.Var]) -> bool:
        before = len(self.values)
        self.values.update(variables)
        return len(self.values) > before

    def carries(self, op: ir.Op) -> bool:
        """Whether an operation works on adjoints."""
        if isinstance(op, ir.Store | ir.Atomic):
            return self._is_gradient(op.buffer) or self._has(op.value)
        if isinstance(op, ir.Load):
            return self._is_gradient(op.buffer)
        if isinstance(op, ir.Push):
            return self._has(op.args[0])
        if isinstance(op, ir.For):
            return op.reverse
        return any(v in self.values for v in op.outs)

    def follow(self, op: ir.Op) -> bool:
        """Propagate what has reached an operation; whether that was anything new."""
        if isinstance(op, ir.Load | ir.Atomic):
            loaded = self._is_gradient(op.buffer) and self._add(op.outs)
            return loaded or (isinstance(op, ir.Atomic) and self._stored(op))
        if isinstance(op, ir.Store):
            return self._stored(op)
        if isinstance(op, ir.Task):
            copies = {private.copy for private in op.privates if self._is_gradient(private.target)}
            before = len(self._memory)
            self._memory |= copies
            return len(self._memory) > before
        if isinstance(op, ir.For):
            return self._around(op.initial, op.body.yields, [op.carried, op.outs])
        if isinstance(op, ir.While):
            return self._around(op.initial, op.body.yields, [op.condition.params, op.body.params, op.outs])
        if isinstance(op, ir.If):
            return self._around(op.then.yields, op.orelse.yields, [op.outs])
        if isinstance(op, ir.Push):
            return self._has(op.args[1]) and isinstance(op.args[0], ir.Var) and self._add([op.args[0]])
        if isinstance(op, ir.Prim | ir.Pop) or not op.regions:
            return any(map(self._has, op.args)) and self._add(op.outs)
        return False

    def _stored(self, op: ir.Store | ir.Atomic) -> bool:
        root = root_of(op.buffer)
        if not self._has(op.value) or root in self._memory:
            return False
        self._memory.add(root)
        return True

    def _around(
        self, first: tuple[ir.Atom, ...], second: tuple[ir.Atom, ...], targets: list[tuple[ir.Var, ...]]
    ) -> bool:
        """Propagate from two sources of values, position by position, to variables in several places."""
        sources = zip(first, second, strict=False)
        hit = [self._has(a) or self._has(b) for a, b in sources]
        return self._add(v for variables in targets for v, reached in zip(variables, hit, strict=False) if reached)
