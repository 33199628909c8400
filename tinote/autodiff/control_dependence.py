"""Which reads of memory without a gradient matter: those on which some write to memory with a gradient depends.

    for parallel %i in 0..8:
      %n = load @count[]            matters: it decides what is added to @y
      %k = load @frame[]            does not: nobody but @picture depends on it
      if %n > 0: atomic add @y[%i], %a
      store @picture[%i], %k

A read matters as a value, an index, a bound or a condition, and by way of other memory without a gradient from which
the same function reads what matters. Order within the function is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable

from tinote.ir.nodes import Atom, Atomic, Buffer, Function, Load, Memory, Op, Region, Set, Store, Var

__all__ = ["controlling_reads"]


def controlling_reads(fn: Function, also: Iterable[Atom] = ()) -> set[Op]:
    """The loads, and atomic operations whose old value is used, of memory without a gradient that matter, for these
    writes or for `also`.
    """
    slice_ = _Slice(also)
    while slice_.grow(fn.region, ()):
        pass
    return slice_.reads


class _Slice:
    """What the writes to memory with a gradient depend on, as far as it is known: variables (local cells among them),
    memory without a gradient, and the operations that read it. Backwards, to a fixed point.
    """

    def __init__(self, also: Iterable[Atom]) -> None:
        self.variables: set[Var] = set()
        self._add(also)
        self.buffers: set[Buffer] = set()
        self.reads: set[Op] = set()

    def grow(self, region: Region, around: tuple[Op, ...]) -> bool:
        """One pass over `region`, which stands in the operations `around`; whether anything was new."""
        grown = False
        for op in reversed(region.body):
            inside = (*around, op)
            for inner in op.regions:
                grown |= self.grow(inner, inside)
            if self._matters(op):
                grown |= self._add_operands(op, around)
        return grown

    def _matters(self, op: Op) -> bool:
        if isinstance(op, Store | Atomic) and (op.buffer.adjoint is not None or op.buffer in self.buffers):
            return True
        if isinstance(op, Set) and op.args[0] in self.variables:
            return True
        carried = [q for region in op.regions for q in region.params]
        return any(v in self.variables for v in (*op.outs, *carried))

    def _add_operands(self, op: Op, around: tuple[Op, ...]) -> bool:
        """Everything that `op` depends on, whether it runs included."""
        before = len(self.variables) + len(self.buffers) + len(self.reads)
        for outer in (*around, op):
            self._add(outer.args)
            for region in outer.regions:
                self._add(region.yields)
        if isinstance(op, Load | Atomic) and self._is_read(op) and op.buffer.adjoint is None:
            self.reads.add(op)
            self.buffers.add(op.buffer)
        return len(self.variables) + len(self.buffers) + len(self.reads) > before

    def _is_read(self, op: Memory) -> bool:
        return any(v in self.variables for v in op.outs)

    def _add(self, atoms: Iterable[Atom]) -> None:
        self.variables.update(a for a in atoms if isinstance(a, Var))
