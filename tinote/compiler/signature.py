"""The signature of a kernel: the values of its parameters when it is lowered, and the result of `lower`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tinote.compiler.captures import Capture
from tinote.compiler.protocol import AddsAt, StructInfo
from tinote.ir.nodes import Buffer, Function, Var
from tinote.ir.types import Scalar, Tensor
from tinote.source import Span

if TYPE_CHECKING:
    from tinote.ir.units import Unit


class TemplateArgument(NamedTuple):
    """A parameter that stands for a Python object at compile time: a field, a number, `self`, anything."""

    value: Any


class ValueArgument(NamedTuple):
    """A parameter that is a number, a vector or a matrix at run time; it becomes one scalar parameter a component, in
    row-major order. `unit`: what it is measured in, if its annotation says so.
    """

    type: Scalar | Tensor
    unit: Unit | None = None


class StructArgument(NamedTuple):
    """A parameter that is a struct at run time; each member is one as it would be alone."""

    info: StructInfo


class ArrayArgument(NamedTuple):
    """A parameter that is memory known at launch only. `clamps`: an index outside stands for the nearest one inside."""

    buffer: Buffer
    clamps: bool = False


class PackArgument(NamedTuple):
    """A parameter that is several by name: each is one as it would be alone. `adds_at`: how entries are added to it."""

    members: Mapping[str, Any]
    adds_at: AddsAt | None = None


SingleArgument = TemplateArgument | ValueArgument | StructArgument | ArrayArgument
ArgumentSpec = SingleArgument | PackArgument


def single_arguments(arguments: Iterable[ArgumentSpec]) -> Iterator[SingleArgument]:
    """The arguments with the members of each pack in its place."""
    for argument in arguments:
        if isinstance(argument, PackArgument):
            yield from single_arguments(argument.members.values())
        else:
            yield argument


class Warned(NamedTuple):
    """Something that compiles and may surprise."""

    message: str
    span: Span
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.message}\nhelp: {self.hint}" if self.hint else self.message


class Lowered(NamedTuple):
    """What `lower` returns. `returns`: the types that the kernel gives back, one per returned item, or `None`; each
    component is one yield of the function, in order. `returns_tuple`: whether the user wrote a tuple type.
    `uses_random`: whether the last parameter is the launch seed. `reproducible`: whether the same text, arguments and
    captures always give the same function; not so when Python functions ran, or something was printed, on the way.
    `units`: those of parameters and of annotated values.
    """

    function: Function
    captures: tuple[Capture, ...]
    returns: tuple[Scalar | Tensor, ...] | None
    returns_tuple: bool
    uses_random: bool
    warnings: tuple[Warned, ...]
    reproducible: bool = True
    units: Mapping[Var, Unit] = {}
