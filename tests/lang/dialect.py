"""Stand-ins for the language's objects, so that the front end is tested without the floor above it.

`ti` has the functions of the language and types; `Field`, `Constant` and `func` implement the protocols; `run` lowers
a function, checks the form of its IR and interprets it.
"""

from __future__ import annotations

import struct
import types
from collections.abc import Callable, Sequence
from typing import Any

from tinote.compiler.frontend.builtins.table import BUILTINS
from tinote.compiler.frontend.lower import lower
from tinote.compiler.function_source import function_source
from tinote.compiler.protocol import FUNCTIONS, is_template, type_of
from tinote.compiler.signature import ArgumentSpec, ArrayArgument, Lowered, TemplateArgument, ValueArgument
from tinote.config import Config
from tinote.errors import CompilationError
from tinote.ir import types as t
from tinote.ir.forms import Form
from tinote.ir.interpret import interpret
from tinote.ir.memory import DictMemory
from tinote.ir.nodes import Buffer, BufferKind, Op
from tinote.ir.primitives import Defaults
from tinote.ir.query import walk
from tinote.ir.verify import verify

__all__ = ["Constant", "Field", "Run", "array", "check", "errors_of", "func", "lowered", "ops", "r32", "run", "ti"]


DEFAULT = Config()


class Field:
    """A field: memory that kernels see through the protocol, with its content as nested lists."""

    def __init__(
        self,
        name: str,
        dtype: t.Scalar,
        shape: tuple[int, ...] = (),
        element: tuple[int, ...] = (),
        content: Any = None,
        needs_grad: bool = False,
    ) -> None:
        self.buffer = Buffer(name, dtype, shape, element)
        self.shape = shape
        self.content = content
        self.grad = Field(f"{name}.grad", dtype, shape, element) if needs_grad else None
        if self.grad is not None:
            self.buffer.adjoint = self.grad.buffer

    def __tinote_buffer__(self) -> Buffer:
        return self.buffer


class Constant:
    """A captured vector or matrix."""

    def __init__(self, rows: Sequence[Any]) -> None:
        self.rows = rows

    def __tinote_value__(self) -> Any:
        return tuple(tuple(r) if isinstance(r, list) else r for r in self.rows)


class _Builtin:
    def __init__(self, name: str) -> None:
        self.__tinote_name__ = name
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("built-ins are expanded, not called")


class _Template:
    __tinote_template__ = True

    def __call__(self) -> _Template:
        return self


class _VectorType:
    def __init__(self, n: int, dtype: t.Scalar) -> None:
        self.type = t.Tensor(dtype, (n,))

    def __tinote_type__(self) -> t.Tensor:
        return self.type

    def __call__(self, *args: Any) -> Any:
        raise AssertionError("types are constructed in kernels only")


def _namespace() -> Any:
    names: dict[str, Any] = {**FUNCTIONS, **{s.name: s for s in t.SCALARS}}
    for name in BUILTINS:
        if name in names:
            continue
        owner, _, method = name.partition(".")
        if method:
            setattr(names[owner], method, _Builtin(name))
        else:
            names[name] = _Builtin(name)
    names["template"] = _Template()
    names["vector"] = _VectorType
    return types.SimpleNamespace(**names)


ti: Any = _namespace()


class func:  # noqa: N801
    """`@ti.func`."""

    def __init__(self, function: Any) -> None:
        self.__tinote_function__ = function_source(function, is_func=True)
        self.__tinote_self__: Any = None

    def __get__(self, owner: Any, cls: type | None = None) -> func:
        bound = object.__new__(func)
        bound.__tinote_function__ = self.__tinote_function__
        bound.__tinote_self__ = owner
        return bound


def array(name: str, dtype: t.Scalar, rank: int, element: tuple[int, ...] = ()) -> Buffer:
    """Memory that is known at launch only."""
    return Buffer(name, dtype, (None,) * rank, element, BufferKind.ARRAY)


class Run:
    """What came out: `result` (one value or a tuple), `printed` text, and fields by `[field]`."""

    def __init__(self, lowered: Lowered, results: tuple[Any, ...], memory: DictMemory, printed: str) -> None:
        self.lowered = lowered
        self.results = results
        self.memory = memory
        self.printed = printed

    @property
    def result(self) -> Any:
        return self.results[0] if len(self.results) == 1 else self.results

    def __getitem__(self, field: Field | Buffer) -> Any:
        return self.memory.nested(field if isinstance(field, Buffer) else field.buffer)


def lowered(function: Callable[..., Any], *arguments: Any, config: Config = DEFAULT) -> tuple[Lowered, list[Any]]:
    """The IR of a function for these arguments, verified, and the numbers to launch it with."""
    specs: list[ArgumentSpec] = []
    numbers: list[Any] = []
    source = function_source(function)  # type: ignore[arg-type]
    annotations = function.__annotations__
    for parameter, argument in zip(source.parameters, arguments, strict=True):
        annotation = annotations[parameter.arg]
        if isinstance(annotation, str):
            annotation = eval(annotation, function.__globals__)
        wanted = type_of(annotation, t.scalar_named(config.default_fp), t.scalar_named(config.default_ip))
        if isinstance(argument, Buffer):
            specs.append(ArrayArgument(argument))
        elif is_template(annotation):
            specs.append(TemplateArgument(argument))
        else:
            assert wanted is not None
            specs.append(ValueArgument(wanted))
            numbers += argument if isinstance(argument, list) else [argument]
    found = lower(source, specs, config)
    verify(found.function, Form.FIRST)
    return found, numbers


def run(
    function: Callable[..., Any],
    *arguments: Any,
    fields: Sequence[Field] = (),
    arrays: dict[Buffer, Any] | None = None,
    config: Config = DEFAULT,
    seed: int = 1,
    backwards: bool = False,
) -> Run:
    """Lower and interpret a function. `backwards` runs parallel loops from their ends."""
    found, numbers = lowered(function, *arguments, config=config)
    memory = DictMemory({**{f.buffer: f.content for f in fields if f.content is not None}, **(arrays or {})})
    printed: list[str] = []
    defaults = Defaults(t.scalar_named(config.default_fp), t.scalar_named(config.default_ip))
    if found.uses_random:
        numbers.append(seed)
    order = (lambda r: reversed(r)) if backwards else None
    results = interpret(found.function, numbers, memory, defaults=defaults, on_print=printed.append, order=order)
    return Run(found, results, memory, "".join(printed))


def check(function: Callable[..., Any], expected: Any, *arguments: Any, **options: Any) -> None:
    """The function must return `expected`."""
    found = run(function, *arguments, **options).result
    assert found == expected, (found, expected)


def errors_of(function: Callable[..., Any], *arguments: Any, config: Config = DEFAULT) -> CompilationError:
    """The error that lowering raises."""
    try:
        lowered(function, *arguments, config=config)
    except CompilationError as error:
        return error
    raise AssertionError("no error was raised")


def ops(kernel: Any, kind: type[Op], *arguments: Any) -> list[Any]:
    """The operations of a kind in a function's IR."""
    return [op for op in walk(lowered(kernel, *arguments)[0].function.region) if isinstance(op, kind)]


def r32(value: float) -> float:
    """Rounded to single precision."""
    return struct.unpack("<f", struct.pack("<f", value))[0]
