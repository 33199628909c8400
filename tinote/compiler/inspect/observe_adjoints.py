"""Observed adjoints of a kernel's variables: the derivatives of the seeded output by each variable.

The gradient accumulates the adjoint of each variable from its uses, and propagates it where the variable was computed.
At that point the total is known. A store into private memory records it, and the interpreter runs the gradient.

A variable has an adjoint for each iteration of the loops around it; iterations are identified by the loops' indices,
outermost first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tinote.autodiff.gradient import reverse
from tinote.autodiff.reverse import Reverser
from tinote.compiler.inspect.observe import CopiedMemory, Iterations, IterationTracker, LoopIndices
from tinote.ir.buffers import root_of
from tinote.ir.interpret import interpret
from tinote.ir.memory import Number
from tinote.ir.nodes import Atom, Buffer, For, Function, Lit, Load, Op, Region, Store, Task, Var, While
from tinote.ir.primitives import Defaults
from tinote.ir.types import Scalar


class Adjoints:
    """The total adjoint of each variable in each iteration: `totals`."""

    def __init__(self, totals: Mapping[tuple[Var, LoopIndices], Number]) -> None:
        self.totals = totals

    def of(self, variable: Var, indices: LoopIndices | None) -> Number | None:
        """The adjoint of a variable; None if it is unknown, or the gradient does not depend on it."""
        return None if indices is None else self.totals.get((variable, indices))


def primals_of(fn: Function) -> dict[Var, Var]:
    """The primal variable of each recomputed variable of a gradient or of code that is yet to be differentiated.
    Operations that only a derivative needs may also have a primal operation as their origin, so a copy is identified by
    its operands, which are copies of the primal operands.
    """
    found: dict[Var, Var] = {v: v for v in fn.region.params}

    def is_copy(op: Op, primal: Op) -> bool:
        if isinstance(op, Load) and isinstance(primal, Load):
            return root_of(op.buffer) is root_of(primal.buffer)  # its index may have become an offset
        if type(op) is not type(primal) or len(op.outs) != len(primal.outs) or len(op.args) != len(primal.args):
            return False
        if any(getattr(op, name) is not getattr(primal, name) for name in op.statics):
            return False
        return all(
            found.get(a) is b if isinstance(a, Var) else isinstance(b, Lit) and a == b
            for a, b in zip(op.args, primal.args, strict=True)
        )

    def look(region: Region) -> None:
        for op in region.body:
            primal = op if op.origin is None else op.origin
            copied = is_copy(op, primal)
            if copied or (isinstance(op, For | Task) and isinstance(primal, For)):
                for inner, other in zip(op.regions, primal.regions, strict=True):
                    # A loop that runs backwards carries adjoints, but has the index of the primal one.
                    count = None if copied and len(inner.params) == len(other.params) else 1
                    found.update(zip(inner.params[:count], other.params[:count], strict=False))
            for inner in op.regions:
                look(inner)
            if copied:
                found.update(zip(op.outs, primal.outs, strict=True))

    look(fn.region)
    return found


def observed_adjoints(
    fn: Function,
    arguments: Sequence[Number],
    memory: CopiedMemory,
    iteration: Sequence[int],
    defaults: Defaults,
    step_limit: int = 100_000,
) -> Adjoints:
    """Run the gradient of `fn`, in the form that is differentiated, and record the adjoints of an iteration: an index
    for each parallel loop, outermost first. Where the kernel has several loops, the adjoints of an iteration of one
    come from all iterations of those after it, and the whole gradient runs. Raises the errors of differentiation,
    faults of the program, and `StepLimitError`.
    """
    notes: dict[Buffer, Var] = {}

    class Noting(Reverser):
        """Stores the adjoint of an operation's result before it is propagated to the operands."""

        def backward(self, op: Op, adjoints: dict[Var, Atom]) -> None:
            for v in op.outs:
                g = adjoints.get(v)
                if g is not None and isinstance(v.type, Scalar):
                    note = Buffer(f"adjoint of {v.name}", v.type)
                    notes[note] = v
                    self.builder.emit(Store(note, (), g))
            super().backward(op, adjoints)

    gradient = reverse(fn, defaults, reverser=Noting).function
    tracker, iterations = IterationTracker(gradient), Iterations(iteration)
    found: dict[tuple[Var, LoopIndices], Number] = {}

    def observe(op: Op, values: Mapping[Var, Any]) -> None:
        iterations.ran(op)
        if isinstance(op, Store) and op.buffer in notes:
            indices = tracker.of(op, values)
            if indices is not None:
                value = op.value.value if isinstance(op.value, Lit) else values[op.value]
                found[notes[op.buffer], indices] = value

    several = sum(isinstance(op, For | While) for op in gradient.region.body) > 1
    order = None if several else iterations.choose
    interpret(gradient, arguments, memory, defaults=defaults, step_limit=step_limit, order=order, observe=observe)
    return Adjoints(found)
