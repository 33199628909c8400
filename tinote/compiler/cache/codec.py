"""Named tuples as plain data that JSON can write, and back: their annotations say how.

    class Clock(NamedTuple):             Clock(4, "fill", "task 1", <line 17, columns 4 to 20>)
        slot: int                          <->
        kernel: str                      [4, "fill", "task 1", [0, 2, 4, 2, 20, null]]
        task: str
        place: Span

What outlives a process cannot say where it was. A buffer is a number among those that a kernel depends on, or a
description if the compiler made it; a place in the source is a function and a line counted from its beginning. So the
data serves a kernel of the same text on other fields and on other lines.
"""

import functools
import types
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, ForwardRef, NamedTuple, Union, get_args, get_origin, get_type_hints

from tinote.compiler.function_source import FunctionSource
from tinote.ir.buffers import Buffer, BufferKind
from tinote.ir.primitives import PRIMITIVES, Primitive
from tinote.ir.types import Scalar, Tensor, scalar_named
from tinote.source import NOWHERE, Span


class Unencodable(Exception):
    """Something that cannot outlive the process."""


class Codec:
    """Encodes and decodes one value with all that it is made of. `buffers`, `sources`: those that both processes know
    by number.
    """

    def __init__(self, buffers: Sequence[Buffer], sources: Sequence[FunctionSource]) -> None:
        self._buffers = list(buffers)
        self._shared = len(buffers)
        self._numbers = {buffer: number for number, buffer in enumerate(buffers)}
        self._sources = sources

    def encode(self, value: Any, annotation: Any) -> Any:
        """Raises `Unencodable`."""
        data = _form_of(annotation).encode(self, value)
        made: list[Any] = []
        while len(made) < len(self._buffers) - self._shared:  # describing one may lead to another
            made.append(_form_of(_Made).encode(self, _made_of(self._buffers[self._shared + len(made)])))
        return [made, data]

    def decode(self, data: Any, annotation: Any) -> Any:
        """Raises some `ValueError`, `TypeError`, `LookupError` or `AttributeError` for other data."""
        made, value = data
        new = [Buffer("", scalar_named(dtype)) for _, dtype, *_ in made]
        self._buffers += new
        for buffer, described in zip(new, made, strict=True):
            for name, fact in _form_of(_Made).decode(self, described)._asdict().items():
                setattr(buffer, name, fact)
        return _form_of(annotation).decode(self, value)

    # ---- what refers to something outside

    def number_of(self, buffer: Buffer) -> int:
        """Raises `Unencodable`."""
        number = self._numbers.get(buffer)
        if number is None:
            if buffer.kind is BufferKind.FIELD:
                raise Unencodable(f"{buffer!r}")
            number = self._numbers[buffer] = len(self._buffers)
            self._buffers.append(buffer)
        return number

    def buffer_at(self, number: int) -> Buffer:
        return self._buffers[number]

    def encode_span(self, span: Span) -> list[Any] | None:
        """Raises `Unencodable`."""
        if span == NOWHERE:
            return None
        for number, source in enumerate(self._sources):
            first = _first_line(source)
            if span.file == source.file and first <= span.line < first + source.text.count("\n") + 1:
                end = span.end_line - first if span.end_line else None
                outer = None if span.inlined_at is None else self.encode_span(span.inlined_at)
                return [number, span.line - first, span.column, end, span.end_column, outer]
        raise Unencodable(f"{span!r}")

    def decode_span(self, data: list[Any] | None) -> Span:
        if data is None:
            return NOWHERE
        number, line, column, end, end_column, outer = data
        source = self._sources[number]
        first = _first_line(source)
        inlined_at = None if outer is None else self.decode_span(outer)
        return Span(source.file, first + line, column, 0 if end is None else first + end, end_column, inlined_at)


def _first_line(source: FunctionSource) -> int:
    tree = source.tree
    return min([tree.lineno, *(decorator.lineno for decorator in tree.decorator_list)])


# ---- forms


class _Form(NamedTuple):
    """How values of one annotation are written and read. `kinds`: the classes that such values have."""

    encode: Callable[[Codec, Any], Any]
    decode: Callable[[Codec, Any], Any]
    kinds: tuple[type, ...]


def _same(_codec: Codec, value: Any) -> Any:
    return value


_LEAVES: dict[Any, _Form] = {
    **{kind: _Form(_same, _same, (kind,)) for kind in (bool, int, float, str, type(None))},
    Buffer: _Form(Codec.number_of, Codec.buffer_at, (Buffer,)),
    Span: _Form(Codec.encode_span, Codec.decode_span, (Span,)),
    Scalar: _Form(lambda _, t: t.name, lambda _, name: scalar_named(name), (Scalar,)),
    Tensor: _Form(
        lambda _, t: [t.dtype.name, *t.shape],
        lambda _, data: Tensor(scalar_named(data[0]), tuple(data[1:])),
        (Tensor,),
    ),
    Primitive: _Form(lambda _, prim: prim.name, lambda _, name: PRIMITIVES[name], (Primitive,)),
}


@functools.cache
def _form_of(annotation: Any) -> _Form:
    """Raises `TypeError` for an annotation that says too little. Parts get their forms when one is met: most kernels
    have few kinds.
    """
    found = _LEAVES.get(annotation)
    if found is not None:
        return found
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is tuple and len(args) == 2 and args[1] is Ellipsis:
        return _several(tuple, args[0])
    if origin is tuple:
        return _fixed(args, lambda *items: items, tuple)
    if origin is frozenset:
        return _several(frozenset, args[0])
    if origin in (Union, types.UnionType):
        return _one_of(args)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _Form(lambda _, member: member.value, lambda _, value: annotation(value), (annotation,))
    if isinstance(annotation, type) and issubclass(annotation, tuple) and hasattr(annotation, "_fields"):
        return _fixed(_fields_of(annotation), annotation, annotation)
    raise TypeError(f"{annotation!r} does not say how to write a value")


def _fields_of(kind: type) -> tuple[Any, ...]:
    """The annotations of a named tuple's fields; those that are text evaluated, which takes a while."""
    written = kind.__annotations__.values()
    return tuple(get_type_hints(kind).values() if any(type(t) is ForwardRef for t in written) else written)


def _several(kind: type[tuple[Any, ...]] | type[frozenset[Any]], of: Any) -> _Form:
    """Any number of values of one form."""

    def encode(codec: Codec, values: Any) -> list[Any]:
        written = [_form_of(of).encode(codec, value) for value in values]
        return written if kind is tuple else sorted(written)  # equal sets give equal data

    def decode(codec: Codec, data: Any) -> Any:
        if not data:
            return kind()
        read = _form_of(of).decode
        return kind(data) if read is _same else kind([read(codec, value) for value in data])

    return _Form(encode, decode, (kind,))


def _fixed(of: tuple[Any, ...], make: Callable[..., Any], kind: type) -> _Form:
    """A fixed number of values, each of its own form."""

    def encode(codec: Codec, values: Any) -> list[Any]:
        return [_form_of(one).encode(codec, value) for one, value in zip(of, values, strict=True)]

    def decode(codec: Codec, data: Any) -> Any:
        return make(*[_form_of(one).decode(codec, value) for one, value in zip(of, data, strict=True)])

    return _Form(encode, decode, (kind,))


def _one_of(of: tuple[Any, ...]) -> _Form:
    """None as itself, anything else after the number of its form."""

    def encode(codec: Codec, value: Any) -> Any:
        if value is None:
            return None
        kinds = [_form_of(one).kinds for one in of]
        found = [k for k, kind in enumerate(kinds) if type(value) in kind]
        return [found[0], _form_of(of[found[0]]).encode(codec, value)]

    def decode(codec: Codec, data: Any) -> Any:
        return None if data is None else _form_of(of[data[0]]).decode(codec, data[1])

    return _Form(encode, decode, tuple([kind for one in of for kind in _form_of(one).kinds]))


# ---- buffers that the compiler made


class _Made(NamedTuple):
    """All that there is to know of a buffer."""

    name: str
    dtype: Scalar
    shape: tuple[int | None, ...]
    element: tuple[int, ...]
    kind: BufferKind
    strides: tuple[int, ...] | None
    element_strides: tuple[int, ...]
    offset: tuple[int, ...]
    noalias: bool
    adjoint: Buffer | None
    tangent: Buffer | None
    primal: Buffer | None


def _made_of(buffer: Buffer) -> _Made:
    return _Made(*[getattr(buffer, name) for name in _Made._fields])
