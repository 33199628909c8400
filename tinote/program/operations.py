"""The operations of a program on blocks of memory and on scalar registers, between Python and kernels.

    Launch         a kernel's machine code, with the blocks that its addresses point into and its arguments
    Clear, Copy, Fill    elements of a block become zero, those of another view, or a number
    LoadElement    a register gets an element
    Compute        a register gets what arithmetic makes of others
    Seed           a register gets the seed of a launch that draws random numbers
    Branch         what follows depends on a register
    End            what the program returns, and what it assigns in Python

No operation holds an address or belongs to a process: blocks, codes and registers are numbers of their program
(`program.py`). `text.py` has the grammar, `verify.py` the rules, `interpret.py` the meaning.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from tinote.ir.types import scalar_named
from tinote.source import NOWHERE, Span

#: The kinds of results that consist of numbers; those of a vector are its third part.
_VECTORS = ("vector", "matrix")
_OF_NUMBERS = ("number", "bool", *_VECTORS)


def signed(bits: int) -> int:
    """The lowest 64 bits as an integer with a sign."""
    bits &= 0xFFFFFFFFFFFFFFFF
    return bits - (1 << 64) if bits >> 63 else bits


class Constant(NamedTuple):
    """A number that is the same each time. Floats are their bits, which compare as what they are."""

    kind: str  # "f" or "i"
    bits: int
    #: Tuples compare by their parts: without one more, the constant 0 would be register 0.
    is_constant: bool = True

    @classmethod
    def of_float(cls, value: float) -> Constant:
        """The constant that is this float."""
        return cls("f", struct.unpack("<q", struct.pack("<d", value))[0])

    @property
    def value(self) -> int | float:
        """The number that it is."""
        if self.kind == "i":
            return self.bits
        return float(struct.unpack("<d", struct.pack("<q", self.bits))[0])


class Register(NamedTuple):
    """A number that the step computes. `kind`: "f" for floats, "i" for integers, "b" for truth values."""

    kind: str
    number: int


Operand = Constant | Register


class View(NamedTuple):
    """Numbers of a type in a block, from a byte on. `strides`: bytes from one index to the next."""

    block: int
    offset: int
    type: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def row(self) -> tuple[int, int] | None:
        """The bytes of the block that it is, first and end; None where it does not lie row by row."""
        step = scalar_named(self.type).size
        for extent, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if extent != 1 and stride != step:
                return None
            step *= extent
        return self.offset, self.offset + math.prod(self.shape) * scalar_named(self.type).size

    def is_all_of(self, block: Block) -> bool:
        """Whether it is all of its block, as it lies there."""
        return self.row == (0, block.nbytes)


class Block(NamedTuple):
    """Memory. `kind`: "field" for the session's, of this `name`; "scratch" for the program's own; "data" for constants,
    which are `data`; "input" for arrays that the program is called with; "unused" for none.
    """

    kind: str
    name: str
    nbytes: int
    data: bytes = b""


class Code(NamedTuple):
    """A kernel, or a derivative of one. `digest`: of the text that it was compiled from. Slots are bytes in a launch's
    block of slots: `pointers` are the slots of addresses that are the same in each launch, with the block and the byte
    in it (a block of -1: the null address); `parameters`, the type and the slot of each scalar argument; `written`, the
    slots of the addresses that it writes to. `may_fail`: a check may end it, or it prints.
    """

    name: str
    digest: str
    pointers: tuple[tuple[int, int, int], ...]
    parameters: tuple[tuple[str, int], ...]
    written: frozenset[int] = frozenset()
    may_fail: bool = True


class Launch(NamedTuple):
    """`code`: its number; `pointers`, `extents`: of the arrays that this launch gets, by their slots; `results`: the
    slot of each result, its type, and the register that gets it; `fills`: blocks that it stores all of, before it reads
    anything there.
    """

    code: int
    pointers: tuple[tuple[int, int, int], ...]
    extents: tuple[tuple[int, int], ...]
    arguments: tuple[Operand, ...]
    results: tuple[tuple[int, str, Register], ...]
    span: Span
    fills: tuple[int, ...] = ()


class Clear(NamedTuple):
    """Bytes become zero."""

    block: int
    offset: int
    nbytes: int
    span: Span = NOWHERE


class Copy(NamedTuple):
    """Both views have one shape. Where floats have another type in the target they are rounded to that. `always`: also
    where the program fails before, once the source was filled.
    """

    target: View
    source: View
    span: Span = NOWHERE
    always: bool = False


class Fill(NamedTuple):
    """All elements of a view become a number."""

    target: View
    value: Operand
    span: Span


class LoadElement(NamedTuple):
    """A register gets the one element of a view."""

    register: Register
    source: View
    span: Span


class Compute(NamedTuple):
    """A register gets the result of an operation (`interpret.OPERATIONS`), or of a function (`calls_function`)."""

    operation: str
    register: Register
    operands: tuple[Operand, ...]
    span: Span


class Seed(NamedTuple):
    """A register gets the next seed of the session's sequence."""

    register: Register
    span: Span = NOWHERE


class Branch(NamedTuple):
    """A decision, and which side one run took."""

    register: Register
    taken: bool
    span: Span


class Result(NamedTuple):
    """What a program returns: `kind` "number", "bool", "constant", "tuple", "list", "dict", "vector", "matrix" or
    "array", of `parts`; those of an array are a view, whose numbers lie row by row, and the array's type.
    """

    kind: str
    parts: tuple[Any, ...]


class End(NamedTuple):
    """`updates`: globals and attributes by their place, and the operand that each is then; `seeds`: the last seed of
    each instance that drew random numbers.
    """

    result: Result
    updates: tuple[tuple[int, Operand], ...]
    seeds: tuple[tuple[int, Operand], ...]
    span: Span = NOWHERE


Operation = Launch | Clear | Copy | Fill | LoadElement | Compute | Seed | Branch | End


def read_by(operation: Operation) -> tuple[Operand, ...]:
    """The numbers that an operation reads."""
    match operation:
        case Launch():
            return operation.arguments
        case Fill():
            return (operation.value,)
        case Compute():
            return operation.operands
        case End():
            return (*_numbers_in(operation.result), *[one for _, one in (*operation.updates, *operation.seeds)])
        case _:
            return ()


def set_by(operation: Operation) -> tuple[Register, ...]:
    """The registers that an operation sets."""
    match operation:
        case LoadElement() | Compute() | Seed():
            return (operation.register,)
        case Launch():
            return tuple([register for _, _, register in operation.results])
        case _:
            return ()


def leaves_of(result: Result) -> Iterator[tuple[str, Any]]:
    """The kinds and the parts of all that a result consists of."""
    kind, parts = result
    if kind in ("tuple", "list", "dict"):
        for one in parts:
            yield from leaves_of(one[1] if kind == "dict" else one)
    else:
        yield kind, parts


def arrays_of(result: Result) -> list[View]:
    """The arrays that a result consists of."""
    return [parts[0] for kind, parts in leaves_of(result) if kind == "array"]


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


def written_by(codes: Sequence[Code], operation: Operation) -> set[int]:
    """The blocks that an operation may write to. `codes`: the program's."""
    match operation:
        case Copy(target) | Fill(target):
            return {target.block}
        case Clear(block):
            return {block}
        case Launch(code, pointers):
            own = codes[code]
            return {block for slot, block, _ in (*own.pointers, *pointers) if slot in own.written}
        case _:
            return set()


def filled_by(blocks: Sequence[Block], operation: Operation) -> set[int]:
    """The blocks that an operation gives other contents as a whole, whatever they were. `blocks`: the program's."""
    match operation:
        case Clear(block, 0, nbytes) if nbytes >= blocks[block].nbytes:
            return {block}
        case Copy(target, source) if target.block != source.block and target.is_all_of(blocks[target.block]):
            return {target.block}
        case Fill(target) if target.is_all_of(blocks[target.block]):
            return {target.block}
        case Launch():
            return set(operation.fills)
        case _:
            return set()


def used_by(codes: Sequence[Code], operation: Operation) -> set[int]:
    """The blocks that an operation uses."""
    match operation:
        case Copy(target, source):
            return {target.block, source.block}
        case Clear(block):
            return {block}
        case Fill(target):
            return {target.block}
        case LoadElement(_, source):
            return {source.block}
        case Launch(code, pointers):
            return {block for _, block, _ in (*codes[code].pointers, *pointers) if block >= 0}
        case End(result):
            return {view.block for view in arrays_of(result)}
        case _:
            return set()
