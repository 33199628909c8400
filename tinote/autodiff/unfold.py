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
from tinote.ir.access import Access, Accesses, Touched, accesses_of
from tinote.ir.buffers import root_of
from tinote.ir.nodes import Atom, Atomic, For, Function, Load, Op, Store, Var
from tinote.ir.primitives import Primitive
from tinote.ir.query import walk
from tinote.ir.ranges import Loop
from tinote.ir.rewrite import KEEP, Decision


def unfold_atomics(fn: Function, may_serialise: Callable[[Atomic, Differing], bool]) -> Function:
    """`fn` with those atomic operations unfolded that have their element to themselves, or whose loop may be
    serialised.

    `may_serialise` decides about an operation that has conflicts.
    """
    wanted = [op for op in walk(fn.region) if isinstance(op, Atomic) and (op.prim is not p.add or op.outs)]
    if not wanted:
        return fn
    accesses = accesses_of(fn)
    chosen: set[Op] = set()
    serial: set[Op] = set()
    differing = Differing(accesses)
    for op in wanted:
        if not any(conflict.writes for conflict in conflicts_of(accesses.of(op), accesses)):
            chosen.add(op)
        elif may_serialise(op, differing):
            chosen.add(op)
            serial.update(loops_of(_parallel_loops(accesses.of(op))[0].op))
    return _Unfold(chosen, serial).run(fn) if chosen else fn


class Differing:
    """The accesses that are not updates of a certain sort."""

    def __init__(self, accesses: Accesses) -> None:
        self.accesses = accesses
        self._found: dict[tuple[Loop, Primitive], Touched] = {}

    def near(self, access: Access, loop: Loop, prim: Primitive) -> Iterator[Access]:
        """Those inside a loop that may meet `access`, except updates by `prim` whose old values are unused."""
        if (loop, prim) not in self._found:
            others = [a for a in self.accesses.within(loop) if not _updates(a.op, prim)]
            self._found[loop, prim] = Touched(others)
        return self._found[loop, prim].near(access)


def _updates(op: Op, prim: Primitive) -> bool:
    return isinstance(op, Atomic) and op.prim is prim and not op.outs


def may_serialise(op: Atomic, differing: Differing) -> bool:
    """Whether a gradient may choose one of the orders in which `op` and what conflicts with it run: they all leave the
    same in memory.
    """
    if not may_be_active(op.buffer) or op.prim not in (p.mul, p.minimum, p.maximum):
        return False
    access = differing.accesses.of(op)
    loops = _parallel_loops(access)
    others = differing.near(access, loops[0], op.prim)
    return not any(_conflict(access, other, loops, differing.accesses) for other in others)


def conflicts_of(access: Access, accesses: Accesses) -> Iterator[Access]:
    """The accesses that may touch the elements of `access` in other iterations of the parallel loops around it, itself
    included.
    """
    loops = _parallel_loops(access)
    for other in accesses.near(access, loops[0]) if loops else ():
        if _conflict(access, other, loops, accesses):
            yield other


def _conflict(access: Access, other: Access, loops: Sequence[Loop], accesses: Accesses) -> bool:
    return root_of(other.buffer) is root_of(access.buffer) and any(
        other.inside(loop) and accesses.may_meet_across(access, other, loop) for loop in loops
    )


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
        old = Var(op.value.type, "old")
        self.emit(Load(op.buffer, op.index, (old,), op.loc, op.origin))
        new = self.apply(op.prim, old.type, op, old, op.value, name="new")
        self.emit(Store(op.buffer, op.index, new, op.loc, op.origin))
        return (old,) if op.outs else ()
