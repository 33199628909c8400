"""The adjoints of the variables of a kernel: how much what the gradient begins with changes when a variable does.

The gradient adds up the adjoint of each variable from its uses, and spends it where the variable was computed. There
its total stands. It is noted by a store into memory that nobody else knows, and the gradient is run by the interpreter.

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
        """None where it is not known, or the gradient does not depend on it."""
        return None if indices is None else self.totals.get((variable, indices))


def primals_of(fn: Function) -> dict[Var, Var]:
    """For each variable of a gradient that is a primal variable computed again, or of what is yet to be differentiated,
    the primal variable. What only a derivative needs may name a primal operation as its origin, too: a copy is
    identified by its operands, which are copies of the primal operands.
    """
    found: dict[Var, Var] = {v: v for v in fn.region.params}

    def is_copy(op: Op, primal: Op) -> bool:
        if isinstance(op, Load) and isinstance(primal, Load):
            return root_of(op.buffer) is root_of(primal.buffer)  # its index may be an offset by now
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
    """Run the gradient of `fn`, as it is when it is differentiated, and note the adjoints of an iteration: an index for
    each parallel loop, outermost first. Where the kernel has several loops, what an iteration of one passes on comes
    from all iterations of those after it, and the whole gradient runs. Raises what differentiating raises, faults of
    the program, and `StepLimitError`.
    """
    notes: dict[Buffer, Var] = {}

    class Noting(Reverser):
        """Stores the adjoint of what an operation binds before that is passed on to its operands."""

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
