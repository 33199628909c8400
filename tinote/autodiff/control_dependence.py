"""Control dependence: which reads of memory without a gradient differentiated values depend on, as values, indices,
bounds or conditions. Method: a backward slice from the writes to memory with a gradient.

    for parallel %i in 0..8:
      %n = load @count[]            in the slice: it decides what is added to @y
      %k = load @frame[]            not: only @picture depends on it
      if %n > 0: atomic add @y[%i], %a
      store @picture[%i], %k

The slice goes through other memory without a gradient that the same function reads. Order within the function is not
considered.
"""

from __future__ import annotations

from collections.abc import Iterable

from tinote.ir.nodes import Atom, Atomic, Buffer, Function, Load, MemoryOp, Op, Push, Region, Set, Store, Var


def controlling_reads(fn: Function, also: Iterable[Atom] = ()) -> set[Op]:
    """The loads of memory without a gradient, and its atomic operations whose old value is used, that are in the slice
    of the writes to memory with a gradient or of `also`.
    """
    slice_ = _Slice(also)
    while slice_.grow(fn.region, ()):
        pass
    return slice_.reads


class _Slice:
    """The slice found so far: variables (local cells and stacks among them), memory without a gradient, and the
    operations that read it. It grows backwards, to a fixed point.
    """

    def __init__(self, also: Iterable[Atom]) -> None:
        self.variables: set[Var] = set()
        self._add(also)
        self.buffers: set[Buffer] = set()
        self.reads: set[Op] = set()

    def grow(self, region: Region, around: tuple[Op, ...]) -> bool:
        """One pass over `region`, which is nested in the operations `around`; whether anything was new."""
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
        if isinstance(op, Set | Push) and op.args[0] in self.variables:
            return True
        carried = [q for region in op.regions for q in region.params]
        return any(v in self.variables for v in (*op.outs, *carried))

    def _add_operands(self, op: Op, around: tuple[Op, ...]) -> bool:
        """Add everything that `op` depends on, including what decides whether it runs."""
        before = len(self.variables) + len(self.buffers) + len(self.reads)
        for outer in (*around, op):
            self._add(outer.args)
            for region in outer.regions:
                self._add(region.yields)
        if isinstance(op, Load | Atomic) and self._is_read(op) and op.buffer.adjoint is None:
            self.reads.add(op)
            self.buffers.add(op.buffer)
        return len(self.variables) + len(self.buffers) + len(self.reads) > before

    def _is_read(self, op: MemoryOp) -> bool:
        return any(v in self.variables for v in op.outs)

    def _add(self, atoms: Iterable[Atom]) -> None:
        self.variables.update(a for a in atoms if isinstance(a, Var))
