"""A captured step as data: what it does, in order, to blocks of memory and to numbers.

    LaunchStep   machine code, with the blocks that its addresses point into and its arguments
    ClearStep, CopyStep, FillStep   views of blocks get zeros, what another view holds, or a number
    LoadStep     a register gets an element
    ComputeStep  a register gets what arithmetic makes of others
    SeedStep     a register gets the seed of a launch that draws random numbers
    BranchStep   what follows depends on a register
    EndStep      what the step returns, and what globals are after it

Nothing here is an address or belongs to this process: blocks are numbers, code is known by the digest of the text that
it was compiled from. What a step needs is in a `Plan`; `prepare.py` puts it into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from tinote.source import NOWHERE, Span

#: The kinds of results that consist of numbers; those of a vector are its third part.
_VECTORS = ("vector", "matrix")
_OF_NUMBERS = ("number", "bool", *_VECTORS)


class PlanConstant(NamedTuple):
    """A number that is the same each time. Floats are their bits, which compare as what they are."""

    kind: str  # "f" or "i"
    bits: int
    #: Tuples compare by their parts: without one more, the constant 0 would be register 0.
    is_constant: bool = True


class Register(NamedTuple):
    """A number that the step computes. `kind`: "f" for floats, "i" for integers, "b" for truth values."""

    kind: str
    number: int


Operand = PlanConstant | Register


class BlockView(NamedTuple):
    """Numbers of a type in a block, from a byte on. `strides`: bytes from one index to the next."""

    block: int
    offset: int
    type: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class PlanBlock(NamedTuple):
    """Memory. `kind`: "field" for that of the session's, of this `name`; "scratch" for what a step needs meanwhile;
    "data" for constants, which are `data`; "input" for arrays that a plan is called with.
    """

    kind: str
    name: str
    nbytes: int
    data: bytes = b""


class PlanCode(NamedTuple):
    """A kernel, or a gradient. `digest`: of the text that it was compiled from; `pointers`: where addresses are in a
    launch block, as bytes from its slots' begin, with the block and the byte in it; `parameters`: the type and the
    place of each scalar argument.
    """

    name: str
    digest: str
    pointers: tuple[tuple[int, int, int], ...]
    parameters: tuple[tuple[str, int], ...]


class LaunchStep(NamedTuple):
    """`code`: its number; `pointers`, `extents`: of the arrays that this launch gets; `results`: where each of the
    code's results is, its type, and the register that gets it; `fills`: blocks that it stores all of, before it reads
    anything there (`first_stores.py`).
    """

    code: int
    pointers: tuple[tuple[int, int, int], ...]
    extents: tuple[tuple[int, int], ...]
    arguments: tuple[Operand, ...]
    results: tuple[tuple[int, str, Register], ...]
    span: Span
    fills: tuple[int, ...] = ()


class ClearStep(NamedTuple):
    block: int
    offset: int
    nbytes: int
    span: Span = NOWHERE


class CopyStep(NamedTuple):
    """Both views have one shape. Where floats have another type in the target they are rounded to that. `always`: also
    where the step fails before, once the source is there.
    """

    target: BlockView
    source: BlockView
    span: Span = NOWHERE
    always: bool = False


class FillStep(NamedTuple):
    target: BlockView
    value: Operand
    span: Span


class LoadStep(NamedTuple):
    register: Register
    source: BlockView
    span: Span


class ComputeStep(NamedTuple):
    operation: str
    register: Register
    operands: tuple[Operand, ...]
    span: Span


class SeedStep(NamedTuple):
    register: Register
    span: Span = NOWHERE


class BranchStep(NamedTuple):
    """In one call: which side of a branch it took."""

    register: Register
    taken: bool
    span: Span


class Result(NamedTuple):
    """What a step returns: `kind` "number", "bool", "constant", "tuple", "list", "dict", "vector", "matrix" or "array",
    of `parts`; that of an array is a view, row by row.
    """

    kind: str
    parts: tuple[Any, ...]


class EndStep(NamedTuple):
    """`updates`: globals and attributes by their place, and the operand that each is then; `seeds`: the last seed of
    each instance that drew random numbers.
    """

    result: Result
    updates: tuple[tuple[int, Operand], ...]
    seeds: tuple[tuple[int, Operand], ...]
    span: Span = NOWHERE


PlanStep = LaunchStep | ClearStep | CopyStep | FillStep | LoadStep | ComputeStep | SeedStep | BranchStep | EndStep


@dataclass(eq=False)
class Path:
    """Steps without a choice. They end with an `EndStep`, or with a choice by `register`; `sides`: what follows."""

    steps: list[PlanStep] = field(default_factory=list)
    branch: BranchStep | None = None
    sides: dict[bool, Path] = field(default_factory=dict)

    def all(self) -> list[Path]:
        """This path, and all that follow it."""
        found: list[Path] = []
        left: list[Path] = [self]
        while left:
            path = left.pop()
            found.append(path)
            left += path.sides.values()
        return found

    def unseen(self) -> list[bool] | None:
        """The decisions that lead to a side that no call took; None where there is none."""
        if self.branch is None:
            return None
        for taken in (True, False):
            if taken not in self.sides:
                return [taken]
        for taken, side in self.sides.items():
            further = side.unseen()
            if further is not None:
                return [taken, *further]
        return None


@dataclass(eq=False)
class Plan:
    """`inputs`: the registers that hold the arguments, and then the globals that are traced."""

    blocks: list[PlanBlock] = field(default_factory=list)
    codes: list[PlanCode] = field(default_factory=list)
    inputs: list[Register] = field(default_factory=list)
    root: Path = field(default_factory=Path)

    def copy(self) -> Plan:
        """The same, which stays as it is when the first path of this one gets other steps."""
        return Plan(list(self.blocks), list(self.codes), self.inputs, replace(self.root))

    def restore(self, earlier: Plan) -> None:
        """Be as `earlier` again. What has been added since is at the end."""
        self.blocks[: len(earlier.blocks)] = earlier.blocks
        self.codes[: len(earlier.codes)] = earlier.codes
        self.root = earlier.root


def read_by(step: PlanStep) -> tuple[Operand, ...]:
    """The numbers that a step reads."""
    match step:
        case LaunchStep():
            return step.arguments
        case FillStep():
            return (step.value,)
        case ComputeStep():
            return step.operands
        case EndStep():
            return (*_numbers_in(step.result), *[one for _, one in (*step.updates, *step.seeds)])
    return ()


def set_by(step: PlanStep) -> tuple[Register, ...]:
    """The registers that a step sets."""
    match step:
        case LoadStep() | ComputeStep() | SeedStep():
            return (step.register,)
        case LaunchStep():
            return tuple([register for _, _, register in step.results])
    return ()


def leaves_of(result: Result) -> Iterator[tuple[str, Any]]:
    """The kinds and the parts of all that a result consists of."""
    kind, parts = result
    if kind in ("tuple", "list", "dict"):
        for one in parts:
            yield from leaves_of(one[1] if kind == "dict" else one)
    else:
        yield kind, parts


def with_leaves(result: Result, of: Callable[[str, Any], Any]) -> Result:
    """A result that consists of others: `of` gives the parts of each, by its kind and the parts that it has."""
    kind, parts = result
    if kind == "dict":
        return Result(kind, tuple([(key, with_leaves(one, of)) for key, one in parts]))
    if kind in ("tuple", "list"):
        return Result(kind, tuple([with_leaves(one, of) for one in parts]))
    return Result(kind, of(kind, parts))


def _numbers_in(result: Result) -> tuple[Operand, ...]:
    leaves = [parts[2] if kind in _VECTORS else parts for kind, parts in leaves_of(result) if kind in _OF_NUMBERS]
    return tuple([number for numbers in leaves for number in numbers])


def written_blocks(plan: Plan, natives: Sequence[Any]) -> set[int]:
    """The blocks that a plan writes to."""
    found: set[int] = set()
    for path in plan.root.all():
        for step in path.steps:
            if isinstance(step, ClearStep):
                found.add(step.block)
            elif isinstance(step, CopyStep | FillStep):
                found.add(step.target.block)
            elif isinstance(step, LaunchStep):
                offsets = natives[step.code].written_addresses()
                pointers = *plan.codes[step.code].pointers, *step.pointers
                found |= {block for slot, block, _ in pointers if slot in offsets}
    return found
