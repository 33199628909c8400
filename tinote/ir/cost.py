"""The cost model: approximate costs of operations on the targets, and assumptions that several passes share.

The unit is the time of an addition: about 0.4 ns. What a primitive costs is in its row of `primitives.py`. How much
code there is, which is what a compiler's own time depends on, is another matter: `length_of`.
"""

from __future__ import annotations

from typing import NamedTuple

from tinote.ir import nodes as ir


class Costs(NamedTuple):
    """What operations other than primitives cost on a target, in additions. `access`: a load or a store of memory or of
    a local array, a value pushed or popped, an extent; `update`: of memory that no other thread writes;
    `atomic_update`: of memory that others may; `print`: of one line.
    """

    access: float
    update: float
    atomic_update: float
    print: float


#: Measured on an x86-64 (Xeon), in a cache: a load or a store 0.4 ns, an atomic addition to an f32 7.4 ns, which is a
#: loop around `cmpxchg`. A plain update is a load and a store. What a print takes is chosen, not measured.
CPU = Costs(access=1.0, update=2.0, atomic_update=20.0, print=200.0)

#: Cost from which on a value is saved and read rather than computed again, in additions: `exp`, `tanh`, powers. Chosen,
#: not measured.
MIN_EXPENSIVE_COST = 15.0
#: Cost of both sides of a branch together up to which both run without asking which is taken, in additions. Chosen, not
#: measured.
MAX_FLAT_BRANCH_COST = 40
#: Iterations that a loop is taken to have if its trip count is not known. Chosen, not measured.
UNKNOWN_TRIP_COUNT = 16


def own_cost(op: ir.Op, costs: Costs = CPU) -> float:
    """The cost of an operation without what is in its regions."""
    if isinstance(op, ir.Prim):
        return op.prim.cost
    if isinstance(op, ir.Atomic):
        return costs.update if op.plain else costs.atomic_update
    if isinstance(op, ir.Print):
        return costs.print
    return costs.access if isinstance(op, ir.MemoryOp | ir.Push | ir.Pop | ir.Get | ir.Set) else 0.0


def length_of(op: ir.Op) -> float:
    """The length of an operation's code without what is in its regions, in additions: what is not arithmetic is one."""
    return op.prim.cost if isinstance(op, ir.Prim) else 1.0
