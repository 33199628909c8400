"""Launch-time values as expressions that outlive the IR: loop bounds and indices in terms of a launch's arguments,
array lengths and the memory before it.

    %s: i32 = sub %t, 1i32                nodes: 0 argument 0 (%t), 1 constant 1, 2 sub of 0 and 1
    for parallel %i: i32 in 1i32 .. %n:          3 argument 1 (%n), 4 iterations from 1 up to 3
      %a: f32 = load @x[%s, %i]           access region (`access_region.py`): @x[node 2, node 4]

A node is computed from earlier ones, in one of two domains. **Intervals** bound it from both sides, whatever it is: an
index that is built from arguments alone is exact, that of a loop spans its iterations, and what nothing is known of
spans its type and costs the other dimensions nothing. **Exact** values are numbers, or None where a launch does not
determine them; only these may be floats or come from memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tinote.ir.affine import Interval, apply_to_intervals, contains, span_of_type
from tinote.ir.buffers import Buffer
from tinote.ir.memory import Storage
from tinote.ir.nodes import Atom, Extent, Lit, Load, Op, Prim, Var
from tinote.ir.primitives import Primitive, cast_number, evaluate
from tinote.ir.types import Scalar

Number = int | float
#: The empty interval.
_NOTHING: Interval = (1, 0)

#: The intervals of nodes, by their numbers.
Found = Sequence[Interval] | Mapping[int, Interval]
#: The exact values of nodes, by their numbers.
Known = Mapping[int, Number | None]
#: The number at an index of a buffer before the launch; None where that is not known.
Read = Callable[[Buffer, tuple[int, ...]], Number | None]


class LaunchInputs(NamedTuple):
    """What exact values ask of a launch: its scalar arguments, the lengths that nodes want, and memory before it."""

    arguments: Sequence[Number]
    lengths: Sequence[int | None]
    read: Read


def _is_exact(interval: Interval) -> bool:
    return interval[0] == interval[1]


def _is_nothing(interval: Interval) -> bool:
    return interval[0] > interval[1]


class Argument(NamedTuple):
    """The scalar argument at `position`."""

    position: int
    type: Scalar

    @property
    def sources(self) -> tuple[int, ...]:
        return ()

    def interval(self, arguments: Sequence[int], lengths: Sequence[int], found: Found) -> Interval:
        value = int(arguments[self.position])  # NumPy's integers wrap
        return value, value

    def exact(self, launch: LaunchInputs, known: Known) -> Number | None:
        if self.position >= len(launch.arguments):
            return None
        return cast_number(self.type, launch.arguments[self.position])


class Length(NamedTuple):
    """The length of an array along an axis: the one at `position` among the lengths that are asked for."""

    position: int

    @property
    def sources(self) -> tuple[int, ...]:
        return ()

    def interval(self, arguments: Sequence[int], lengths: Sequence[int], found: Found) -> Interval:
        value = lengths[self.position]
        return value, value

    def exact(self, launch: LaunchInputs, known: Known) -> Number | None:
        return launch.lengths[self.position]


class BoundedInteger(NamedTuple):
    """An integer whose bounds are known before the launch."""

    low: int
    high: int

    @property
    def sources(self) -> tuple[int, ...]:
        return ()

    def interval(self, arguments: Sequence[int], lengths: Sequence[int], found: Found) -> Interval:
        return self

    def exact(self, launch: LaunchInputs, known: Known) -> Number | None:
        return self.low if self.low == self.high else None


class Real(NamedTuple):
    """A literal float. It has no interval."""

    value: float

    @property
    def sources(self) -> tuple[int, ...]:
        return ()

    def exact(self, launch: LaunchInputs, known: Known) -> Number | None:
        return self.value


class LoopIndex(NamedTuple):
    """The index of a loop from `first` up to `last`, both nodes; nothing when it makes no iteration."""

    first: int
    last: int

    @property
    def sources(self) -> tuple[int, ...]:
        return self.first, self.last

    def interval(self, arguments: Sequence[int], lengths: Sequence[int], found: Found) -> Interval:
        low, high = found[self.first][0], found[self.last][1] - 1
        return (low, high) if low <= high else _NOTHING

    def exact(self, launch: LaunchInputs, known: Known) -> Number | None:
        return None


class Either(NamedTuple):
    """The value of one of two nodes."""

    one: int
    other: int

    @property
    def sources(self) -> tuple[int, ...]:
        return self.one, self.other

    def interval(self, arguments: Sequence[int], lengths: Sequence[int], found: Found) -> Interval:
        a, b = found[self.one], found[self.other]
        if a[0] > a[1]:
            return b
        return a if b[0] > b[1] else (min(a[0], b[0]), max(a[1], b[1]))

    def exact(self, launch: LaunchInputs, known: Known) -> Number | None:
        one, other = known[self.one], known[self.other]
        return one if one == other else None


class Sum(NamedTuple):
    """`constant` and multiples of nodes: pairs of factor and node."""

    constant: int
    terms: tuple[tuple[int, int], ...]

    @property
    def sources(self) -> tuple[int, ...]:
        return tuple([node for _, node in self.terms])

    def interval(self, arguments: Sequence[int], lengths: Sequence[int], found: Found) -> Interval:
        low = high = self.constant
        for factor, node in self.terms:
            least, greatest = found[node]
            if least > greatest:
                return _NOTHING
            low += factor * (least if factor > 0 else greatest)
            high += factor * (greatest if factor > 0 else least)
        return low, high

    def exact(self, launch: LaunchInputs, known: Known) -> Number | None:
        total: Number = self.constant
        for factor, node in self.terms:
            value = known[node]
            if value is None:
                return None
            total += factor * value
        return total


class Applied(NamedTuple):
    """The result of a primitive. As an interval anything of its type, if it is not known exactly and may wrap."""

    primitive: Primitive
    type: Scalar
    args: tuple[int, ...]

    @property
    def sources(self) -> tuple[int, ...]:
        return self.args

    def interval(self, arguments: Sequence[int], lengths: Sequence[int], found: Found) -> Interval:
        given = [found[node] for node in self.args]
        if all(map(_is_exact, given)):
            value = evaluate(self.primitive, self.type, *[low for low, _ in given])
            return value, value
        if any(map(_is_nothing, given)):
            return _NOTHING
        whole = span_of_type(self.type)
        result = apply_to_intervals(self.primitive, given)
        return whole if result is None or not contains(whole, result) else result

    def exact(self, launch: LaunchInputs, known: Known) -> Number | None:
        given = [known[node] for node in self.args]
        if any(value is None for value in given):
            return None
        return evaluate(self.primitive, self.type, *given)


class Index(NamedTuple):
    """The index of a loop, unknown until it is bound to one of its values. It has no interval."""

    number: int

    @property
    def sources(self) -> tuple[int, ...]:
        return ()

    def exact(self, launch: LaunchInputs, known: Known) -> Number | None:
        return None


class InitialElement(NamedTuple):
    """What an element of memory holds before the launch. It has no interval."""

    buffer: Buffer
    position: tuple[int, ...]

    @property
    def sources(self) -> tuple[int, ...]:
        return self.position

    def exact(self, launch: LaunchInputs, known: Known) -> Number | None:
        index = tuple([int(value) for node in self.position if (value := known[node]) is not None])
        if len(index) < len(self.position):
            return None
        lengths = (*self.buffer.shape, *self.buffer.element)
        inside = all(i >= 0 and (n is None or i < n) for i, n in zip(index, lengths, strict=False))
        return launch.read(self.buffer, index) if inside else None  # out of range: the launch says so


BoundedNode = Argument | Length | BoundedInteger | LoopIndex | Either | Sum | Applied
Node = BoundedNode | Real | Index | InitialElement


#: What a variable's node is made from, and what makes it when they have theirs.
Plan = tuple[Sequence[Atom], Callable[[], "int | None"]]


class Nodes:
    """Numbers nodes, each after those that it is computed from. `lengths`: the lengths of arrays that they want, with
    their positions.
    """

    def __init__(self) -> None:
        self.all: list[Any] = []
        self.lengths: dict[tuple[Buffer, int], int] = {}
        self._known: dict[tuple[type, Node], int] = {}
        self._constants: dict[int, Interval] = {}

    def add(self, node: Node) -> int:
        """The number of a node, one for equal ones. What depends on nothing that a launch brings is made a constant."""
        sources = node.sources
        if sources and isinstance(node, BoundedNode) and all(k in self._constants for k in sources):
            node = BoundedInteger(*node.interval((), (), self._constants))
        number = self._known.get((type(node), node))
        if number is None:
            number = self._known[type(node), node] = len(self.all)
            self.all.append(node)
            if isinstance(node, BoundedInteger):
                self._constants[number] = node
        return number

    def resolve(self, v: Var, known: dict[Var, Any], plan: Callable[[Var], Plan]) -> None:
        """Make the node of a variable `known`, and before it those of what it is computed from, however long the chain
        of operations is that leads there. `plan` says what a variable's node is made from.
        """
        waiting = [v]
        while waiting:
            sources, make = plan(waiting[-1])
            missing = [a for a in sources if isinstance(a, Var) and a not in known]
            if missing:
                waiting += missing
            else:
                v = waiting.pop()
                if v not in known:
                    known[v] = make()

    def length(self, buffer: Buffer, axis: int) -> int:
        """The number of the node for the length of a buffer along an axis."""
        return self.add(Length(self.lengths.setdefault((buffer, axis), len(self.lengths))))


class ExactNodes(Nodes):
    """Makes nodes of the values that a launch determines exactly. `definitions`: what computes each variable; an
    operation that `admits` turns down counts as unknown.
    """

    def __init__(
        self, definitions: Mapping[Var, Op], parameters: Sequence[Var], admits: Callable[[Op], bool] = lambda _: True
    ) -> None:
        super().__init__()
        self._definitions = definitions
        self._parameters = {v: position for position, v in enumerate(parameters)}
        self._admits = admits
        self._numbers: dict[Var, int | None] = {}

    def index(self, v: Var) -> int:
        """The node of a loop's index, which is unknown until it is bound."""
        found = self._numbers[v] = self.add(Index(len(self.all)))
        return found

    def node(self, atom: Atom) -> int | None:
        """The number of the node for the value of `atom`; None if a launch does not determine it."""
        if isinstance(atom, Lit):
            value = atom.value
            return self.add(Real(value) if isinstance(value, float) else BoundedInteger(int(value), int(value)))
        if atom not in self._numbers:
            self.resolve(atom, self._numbers, self._plan)
        return self._numbers[atom]

    def _plan(self, v: Var) -> Plan:
        t, op = v.type, self._definitions.get(v)
        if not isinstance(t, Scalar):
            return (), lambda: None
        if v in self._parameters:
            return (), lambda: self.add(Argument(self._parameters[v], t))
        if not isinstance(op, Prim | Load | Extent) or not self._admits(op):
            return (), lambda: None
        if isinstance(op, Extent):
            return (), lambda: self.length(op.buffer, op.axis)
        return op.args, lambda: self._applied(op, t)

    def _applied(self, op: Prim | Load, t: Scalar) -> int | None:
        args = [self.node(a) for a in op.args]
        known = tuple([a for a in args if a is not None])
        if len(known) < len(args):
            return None
        return self.add(InitialElement(op.buffer, known) if isinstance(op, Load) else Applied(op.prim, t, known))


def exact_values(
    nodes: Sequence[Node], wanted: Iterable[int], launch: LaunchInputs, bound: Mapping[int, Number] | None = None
) -> list[Number | None]:
    """The exact values of the `wanted` nodes in a launch. `bound`: those that are known, such as the index of a loop in
    one of its iterations.
    """
    wanted = tuple(wanted)
    known: dict[int, Number | None] = dict(bound or {})
    needed: set[int] = set()
    pending = [number for number in wanted if number not in known]
    while pending:
        number = pending.pop()
        if number not in needed:
            needed.add(number)
            pending += [source for source in nodes[number].sources if source not in known]
    for number in sorted(needed):
        known[number] = nodes[number].exact(launch, known)
    return [known[number] for number in wanted]


# ---- regions of memory


class SymbolicRegion(NamedTuple):
    """Elements of a buffer: for each index dimension, the node whose interval the index stays in."""

    buffer: Buffer
    axes: tuple[int, ...]


class SymbolicRegions(NamedTuple):
    """What a function and its gradient do to memory, element by element, as far as that is known.

    `lengths`: which lengths of arrays the `nodes` ask for. `live_in`: what the gradient reads of the values that the
    function left; `live_in_before`: what it reads of those from before; `written`: what the function may write to.
    """

    nodes: tuple[BoundedNode, ...]
    lengths: tuple[tuple[Buffer, int], ...]
    live_in: tuple[SymbolicRegion, ...]
    live_in_before: tuple[SymbolicRegion, ...]
    written: tuple[SymbolicRegion, ...]

    def arguments(self) -> dict[int, int]:
        """The positions of the arguments that the nodes ask for, by the numbers of the nodes that do."""
        return {number: node.position for number, node in enumerate(self.nodes) if isinstance(node, Argument)}


# ---- shapes of arrays


class SymbolicShapes(NamedTuple):
    """Arrays that a launch must be given, and their shapes: for each dimension the nodes of a loop's first index and of
    its end. `filled`: for each array, whether the launch is sure to write all of it.
    """

    buffers: tuple[Buffer, ...]
    dimensions: tuple[tuple[tuple[int, int], ...], ...]
    nodes: tuple[Node, ...]
    lengths: tuple[tuple[Buffer, int], ...]
    filled: tuple[bool, ...]

    def shapes(self, arguments: Sequence[Number], memory: Storage) -> list[tuple[int, ...]]:
        """The shapes for a launch with these scalar arguments, on memory as it is before."""
        lengths = [memory.shape(buffer)[axis] for buffer, axis in self.lengths]
        wanted = [node for dimensions in self.dimensions for pair in dimensions for node in pair]
        found = iter(exact_values(self.nodes, wanted, LaunchInputs(arguments, lengths, memory.load)))
        shapes: list[tuple[int, ...]] = []
        for dimensions in self.dimensions:
            pairs = [(next(found), next(found)) for _ in dimensions]
            shapes.append(tuple([max(int(end or 0) - int(first or 0), 0) for first, end in pairs]))
        return shapes


NO_SHAPES = SymbolicShapes((), (), (), (), ())
