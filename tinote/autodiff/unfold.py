"""Atomic operations become a load, arithmetic and a store, whose derivatives are known.

    %old = atomic mul @x[%i], %a      ->      %old = load @x[%i]
                                              %new = mul %old, %a
                                              store @x[%i], %new

Where no other iteration of a parallel loop can touch the element, that is all. Where several may, the loop also becomes
a serial one, which is one of the orders in which it may run. For a product, a minimum and a maximum all orders leave
the same result, so their gradients may choose one. Of a minimum or maximum only the winner gets the gradient; of
several equal ones, the last.

An accumulation whose old value is not used stays as it is: it is linear, and its derivative needs no values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tinote.autodiff.activity import may_be_active
from tinote.autodiff.sequential_reverse import SerialiseLoops, loops_of
from tinote.ir import primitives as p
from tinote.ir.access import Access, Accesses
from tinote.ir.buffers import root_of
from tinote.ir.nodes import Atom, Atomic, For, Function, Load, Op, Prim, Store, Var
from tinote.ir.query import walk
from tinote.ir.ranges import Loop
from tinote.ir.rewrite import KEEP, Decision


def unfold_atomics(fn: Function, may_serialise: Callable[[Atomic, Accesses], bool]) -> Function:
    """`fn` with those atomic operations unfolded that have their element to themselves, or whose loop may be
    serialised.

    `may_serialise` decides about an operation that has conflicts.
    """
    wanted = [op for op in walk(fn.region) if isinstance(op, Atomic) and (op.prim is not p.add or op.outs)]
    if not wanted:
        return fn
    accesses = Accesses(fn)
    chosen: set[Op] = set()
    serial: set[Op] = set()
    for op in wanted:
        if not any(conflict.writes for conflict in conflicts_of(accesses.of(op), accesses)):
            chosen.add(op)
        elif may_serialise(op, accesses):
            chosen.add(op)
            serial.update(loops_of(_parallel_loops(accesses.of(op))[0].op))
    return _Unfold(chosen, serial).run(fn) if chosen else fn


def may_serialise(op: Atomic, accesses: Accesses) -> bool:
    """Whether a gradient may choose one of the orders in which `op` and what conflicts with it run."""
    return may_be_active(op.buffer) and is_commutative(op, accesses)


def is_commutative(op: Atomic, accesses: Accesses) -> bool:
    """Whether the result that `op` and its conflicts leave in memory is the same in all orders."""

    def differs(other: Access) -> bool:
        return not isinstance(other.op, Atomic) or other.op.prim is not op.prim or bool(other.op.outs)

    conflicts = conflicts_of(accesses.of(op), accesses, differs)
    return op.prim in (p.mul, p.minimum, p.maximum) and not any(True for _ in conflicts)


def conflicts_of(
    access: Access, accesses: Accesses, asked: Callable[[Access], bool] = lambda other: True
) -> Iterator[Access]:
    """The accesses that may touch the elements of `access` in other iterations of the parallel loops around it, itself
    included, among those that `asked` is true of.
    """
    loops = _parallel_loops(access)
    for other in accesses.near(access, loops[0]) if loops else ():
        if (
            root_of(other.buffer) is root_of(access.buffer)
            and asked(other)
            and any(other.inside(loop) and accesses.may_meet_across(access, other, loop) for loop in loops)
        ):
            yield other


def _parallel_loops(access: Access) -> list[Loop]:
    return [loop for loop in access.loops if isinstance(loop.op, For) and loop.op.parallel]


class _Unfold(SerialiseLoops):
    """Remembers the operation as it was before its operands were rewritten, which is the one that was chosen."""

    def __init__(self, chosen: set[Op], serial: set[Op]) -> None:
        super().__init__(serial)
        self.chosen = chosen
        self.current: Op | None = None

    def visit(self, op: Op) -> None:
        self.current = op
        super().visit(op)

    def on(self, op: Op) -> Decision | Sequence[Atom]:
        if not isinstance(op, Atomic) or self.current not in self.chosen:
            return KEEP
        old, new = Var(op.value.type, "old"), Var(op.value.type, "new")
        self.emit(Load(op.buffer, op.index, (old,), op.loc, op.origin))
        self.emit(Prim(op.prim, (old, op.value), (new,), op.loc, op.origin))
        self.emit(Store(op.buffer, op.index, new, op.loc, op.origin))
        return (old,) if op.outs else ()
