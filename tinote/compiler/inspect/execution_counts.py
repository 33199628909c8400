"""How many times an operation of a launch runs: the trip counts of the loops around it, for given arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tinote.ir import nodes as ir
from tinote.ir.launch_values import ExactNodes, LaunchInputs, Number, Read, exact_values
from tinote.ir.query import walk

#: Iterations that are enumerated, at most, where the trip count of one loop depends on another. Chosen, not measured.
_MAX_COUNTED = 100_000

#: The length of a buffer along an axis; None where not known.
Length = Callable[[ir.Buffer, int], int | None]

#: What runs an operation several times.
Loop = ir.For | ir.While


class ExecutionCounts:
    """Those of a function in SCALAR form, in a launch with these scalar arguments, on memory as `read` finds it."""

    def __init__(
        self,
        fn: ir.Function,
        definitions: Mapping[ir.Var, ir.Op],
        arguments: Sequence[Number],
        read: Read,
        length: Length,
    ) -> None:
        self._nodes = nodes = ExactNodes(definitions, fn.region.params)
        self._bounds_of: dict[ir.For, tuple[int | None, int | None]] = {}
        self._indices: dict[ir.For, int] = {}
        for op in walk(fn.region):
            if isinstance(op, ir.For):
                self._indices[op] = nodes.index(op.index)
                self._bounds_of[op] = nodes.node(op.lo), nodes.node(op.hi)
        self._launch = LaunchInputs(arguments, [length(buffer, axis) for buffer, axis in nodes.lengths], read)

    def count(self, loops: Sequence[Loop]) -> int | None:
        """The iterations of the innermost of `loops`, which lie in each other, outermost first; None if the launch does
        not determine them.
        """
        return self._count(loops, {})

    def most(self, outer: Sequence[ir.For], loops: Sequence[Loop]) -> int | None:
        """The same for one iteration of the loops `outer` around them: that with the most."""
        return self._most(outer, loops, {})

    def _most(self, outer: Sequence[ir.For], loops: Sequence[Loop], env: dict[int, Number]) -> int | None:
        """`env`: indices of the loops around, by their nodes."""
        count = self._count(loops, env)
        if count is not None or not outer:
            return count
        bounds = self._bounds(outer[0], env)
        if bounds is None or len(bounds) > _MAX_COUNTED:
            return None
        index = self._indices[outer[0]]
        counts = [self._most(outer[1:], loops, env | {index: value}) for value in bounds]
        return None if any(c is None for c in counts) else max([c for c in counts if c is not None], default=0)

    def _count(self, loops: Sequence[Loop], env: dict[int, Number]) -> int | None:
        if not loops:
            return 1
        loop, *further = loops
        bounds = self._bounds(loop, env) if isinstance(loop, ir.For) else None
        if bounds is None:
            return None
        count = self._count(further, env)
        if count is not None:
            return len(bounds) * count
        if len(bounds) > _MAX_COUNTED:
            return None
        assert isinstance(loop, ir.For)
        total = 0
        for value in bounds:
            count = self._count(further, env | {self._indices[loop]: value})
            if count is None:
                return None
            total += count
        return total

    def _bounds(self, loop: ir.For, env: dict[int, Number]) -> range | None:
        first, end = self._bounds_of[loop]
        if first is None or end is None:
            return None
        low, high = exact_values(self._nodes.all, (first, end), self._launch, env)
        return None if low is None or high is None else range(int(low), int(high))
