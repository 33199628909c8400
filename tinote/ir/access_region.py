"""Which elements of memory accesses reach, as intervals that are worked out at launch.

    for parallel %i: i32 in 1i32 .. %n:
      %s: i32 = sub %t, 1i32
      %a: f32 = load @x[%s, %i]       reaches @x[t - 1, 1 … n - 1]: numbers, once a launch brings %t and %n

An index is told by steps: the arguments and lengths that a launch brings, and what is computed from them, each step as
the interval of values that it may take. So an index that is built from arguments alone is exact, that of a loop is as
long as the loop, and one that nothing is known of takes nothing from the other dimensions. `reaching.py` finds them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tinote.ir.affine import Interval, apply_to_intervals, contains, span_of_type
from tinote.ir.buffers import Buffer
from tinote.ir.primitives import PRIMITIVES, Primitive
from tinote.ir.types import Scalar, scalar_named

__all__ = [
    "NO_REACHES",
    "Applied",
    "Argument",
    "Constant",
    "Either",
    "Length",
    "Reach",
    "Reaches",
    "Step",
    "Sum",
    "Turns",
    "step_of_data",
    "step_to_data",
]

_NOTHING: Interval = (1, 0)

#: The intervals of steps, by their numbers.
Found = Sequence[Interval] | Mapping[int, Interval]


def _is_exact(interval: Interval) -> bool:
    return interval[0] == interval[1]


def _is_nothing(interval: Interval) -> bool:
    return interval[0] > interval[1]


class Argument(NamedTuple):
    """The scalar argument at `position`."""

    position: int

    @property
    def sources(self) -> tuple[int, ...]:
        return ()

    def interval(self, arguments: Sequence[int], lengths: Sequence[int], found: Found) -> Interval:
        value = int(arguments[self.position])  # NumPy's integers wrap
        return value, value


class Length(NamedTuple):
    """The length of an array along an axis: the one at `position` of `Reaches.lengths`."""

    position: int

    @property
    def sources(self) -> tuple[int, ...]:
        return ()

    def interval(self, arguments: Sequence[int], lengths: Sequence[int], found: Found) -> Interval:
        value = lengths[self.position]
        return value, value


class Constant(NamedTuple):
    """Known before the launch."""

    low: int
    high: int

    @property
    def sources(self) -> tuple[int, ...]:
        return ()

    def interval(self, arguments: Sequence[int], lengths: Sequence[int], found: Found) -> Interval:
        return self


class Turns(NamedTuple):
    """The index of a loop from `first` up to `last`, steps both; nothing when it makes no turn."""

    first: int
    last: int

    @property
    def sources(self) -> tuple[int, ...]:
        return self.first, self.last

    def interval(self, arguments: Sequence[int], lengths: Sequence[int], found: Found) -> Interval:
        low, high = found[self.first][0], found[self.last][1] - 1
        return (low, high) if low <= high else _NOTHING


class Either(NamedTuple):
    """The value of one of two steps."""

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


class Sum(NamedTuple):
    """`constant` and multiples of steps: pairs of factor and step."""

    constant: int
    terms: tuple[tuple[int, int], ...]

    @property
    def sources(self) -> tuple[int, ...]:
        return tuple([step for _, step in self.terms])

    def interval(self, arguments: Sequence[int], lengths: Sequence[int], found: Found) -> Interval:
        low = high = self.constant
        for factor, step in self.terms:
            least, greatest = found[step]
            if least > greatest:
                return _NOTHING
            low += factor * (least if factor > 0 else greatest)
            high += factor * (greatest if factor > 0 else least)
        return low, high


class Applied(NamedTuple):
    """The result of a primitive. Anything of its type, if it is not known exactly and may wrap."""

    primitive: Primitive
    type: Scalar
    args: tuple[int, ...]

    @property
    def sources(self) -> tuple[int, ...]:
        return self.args

    def interval(self, arguments: Sequence[int], lengths: Sequence[int], found: Found) -> Interval:
        given = [found[step] for step in self.args]
        if all(map(_is_exact, given)):
            try:
                value = self.primitive.evaluate(self.type, *[low for low, _ in given])
            except ArithmeticError:  # a division by zero, which is no index
                return _NOTHING
            return value, value
        if any(map(_is_nothing, given)):
            return _NOTHING
        whole = span_of_type(self.type)
        result = apply_to_intervals(self.primitive, given, whole)
        return whole if result is None or not contains(whole, result) else result


Step = Argument | Length | Constant | Turns | Either | Sum | Applied
_KINDS: dict[str, Callable[..., Step]] = {kind.__name__: kind for kind in (Argument, Length, Constant, Turns, Either)}


def step_to_data(step: Step) -> list[Any]:
    """A step as plain data."""
    if isinstance(step, Applied):
        return [Applied.__name__, step.primitive.name, step.type.name, step.args]
    return [type(step).__name__, *step]


def step_of_data(data: Sequence[Any]) -> Step:
    """The step that this data stands for; it may have been through JSON."""
    kind, *parts = data
    if kind == Applied.__name__:
        primitive, t, args = parts
        return Applied(PRIMITIVES[primitive], scalar_named(t), tuple(args))
    if kind == Sum.__name__:
        constant, terms = parts
        return Sum(constant, tuple([(factor, step) for factor, step in terms]))
    return _KINDS[kind](*parts)


class Reach(NamedTuple):
    """Elements of a buffer: for each index dimension, the step whose values the index takes."""

    buffer: Buffer
    axes: tuple[int, ...]


class Reaches(NamedTuple):
    """What a function does to memory, element by element, as far as that can be told.

    `steps`: each computed from earlier ones, its `sources`. `lengths`: which lengths of arrays they ask for. `needed`:
    what a gradient reads of the values that the function left; `restored`: what it reads of those from before;
    `written`: what the function may write to.
    """

    steps: tuple[Step, ...]
    lengths: tuple[tuple[Buffer, int], ...]
    needed: tuple[Reach, ...]
    restored: tuple[Reach, ...]
    written: tuple[Reach, ...]


NO_REACHES = Reaches((), (), (), (), ())
