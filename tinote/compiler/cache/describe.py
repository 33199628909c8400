"""Python objects as plain data, by value: what a kernel captured, in a form that another process can compare.

    describe(3)             ("int", 3)
    describe([0.5, x])      ("list", ("float", "000000000000e03f"), ("field", …, ("memory", 0, …)))

Equal descriptions mean the same to the compiler, and so the same machine code. Memory is described by its type, shape
and layout, and by a number in the order of first use, so that two names for one field differ from two fields. An object
that is nothing but a place for attributes is described by its class and such a number: the attributes that the kernel
reads are captured themselves. For anything else `Undescribable` is raised, and every process compiles for itself.
"""

from __future__ import annotations

import abc
import enum
import functools
import struct
import types
from collections.abc import Callable
from typing import Any

from tinote.compiler import protocol
from tinote.compiler.captures import content_of
from tinote.compiler.function_source import FunctionSource, function_of, source_of
from tinote.compiler.pysource.origins import is_known_by_name
from tinote.ir.nodes import Buffer
from tinote.ir.sparsity import Sparsity
from tinote.ir.types import Scalar, Tensor

#: Nested tuples of text, integers and None.
Description = Any

#: Objects inside one another that are described; deeper ones are not kept on disk. Chosen, not measured.
_MAX_DEPTH = 50
_EXACT = (bool, int, str, bytes, range, type(None), type(Ellipsis))
_RECORDS = (types.SimpleNamespace,)
_CACHED = type(functools.cache(len))
_METACLASSES = (type, enum.EnumMeta, abc.ABCMeta)
#: Special methods that say nothing about what an object means to a kernel that reads its attributes.
_HARMLESS = frozenset(
    f"__{name}__"
    for name in (
        *("module", "doc", "dict", "weakref", "annotations", "init", "new", "repr", "str", "slots", "qualname"),
        *("init_subclass", "class_getitem", "getattr", "getattribute", "setattr", "delattr", "del", "orig_bases"),
        *("parameters", "abstractmethods", "static_attributes", "firstlineno", "match_args", "post_init", "dir"),
        *("call", "getitem"),  # methods that kernels inline, and capture
        *("enter", "exit", "getstate", "setstate", "reduce", "reduce_ex", "copy", "deepcopy", "sizeof"),
        *("getnewargs", "replace", "annotate_func", "annotations_cache"),
    )
)


class Undescribable(Exception):
    """Something that has no description by value."""


class Describer:
    """Describes the captures of one kernel, in order. `sources`: the kernel and the device functions that it may call,
    in an order of their own.
    """

    def __init__(self, sources: list[FunctionSource]) -> None:
        self.sources = sources
        #: the memory that was met, by number
        self.buffers: list[Buffer] = []
        self._objects: list[Any] = []
        self._described: set[int] = set()
        self._depth = 0

    def describe(self, value: Any) -> Description:
        """Raises `Undescribable`."""
        if self._depth > _MAX_DEPTH:
            raise Undescribable("nested too deeply")
        self._depth += 1
        try:
            return self._describe(value)
        finally:
            self._depth -= 1

    def type(self, t: Scalar | Tensor) -> Description:
        return ("type", repr(t))

    def buffer(self, buffer: Buffer) -> Description:
        """Memory: its number, and all that the compiler knows of it when it is met first."""
        for number, known in enumerate(self.buffers):
            if known is buffer:
                return ("memory", number)
        self.buffers.append(buffer)
        facts: list[Description] = []
        for name in Buffer.__slots__:
            if name == "__weakref__":
                continue
            fact = getattr(buffer, name)
            facts.append((name, self.buffer(fact) if isinstance(fact, Buffer) else self.describe(fact)))
        return ("memory", len(self.buffers) - 1, *facts)

    def struct(self, info: protocol.StructInfo) -> Description:
        """A type of structs: its members' names and types, and its device functions."""
        members = [
            (n, self.struct(t) if isinstance(t, protocol.StructInfo) else self.type(t)) for n, t in info.members.items()
        ]
        return ("members", info.name, *members, self.describe(dict(info.methods)))

    def source(self, source: FunctionSource) -> Description:
        """A function's source: its number, and its text with what Python evaluated for it when it is met first."""
        number = next((n for n, known in enumerate(self.sources) if known is source), None)
        if number is None:
            raise Undescribable(f"{source!r} was not met on the way")
        if number in self._described:
            return ("source", number)
        self._described.add(number)
        annotations = source.annotations if source.is_func else {"return": source.annotations.get("return")}
        if source.is_plain:
            annotations = {name: t for name, t in annotations.items() if isinstance(t, str) or protocol.is_template(t)}
        return (
            "source",
            number,
            source.name,
            source.text,
            source.is_func,
            source.may_recurse,
            source.tree.col_offset,  # of several lambdas in a line
            tuple(sorted(source.closure)),
            # A kernel's own default arguments are values of a launch.
            tuple([(name, self.describe(value)) for name, value in source.defaults.items()] if source.is_func else []),
            tuple([(name, self.describe(value)) for name, value in annotations.items()]),
        )

    # ---- values

    def _describe(self, value: Any) -> Description:
        kind = type(value)
        if kind in _EXACT:
            return (kind.__name__, value if kind is not range else repr(value))
        if kind is float:
            return ("float", struct.pack("<d", value).hex())
        if kind is tuple or kind is list:
            return (kind.__name__, *[self.describe(item) for item in value])
        if kind is Buffer:
            return self.buffer(value)
        unit = protocol.unit_of(value)
        if unit is not None:
            return ("measured", repr(protocol.type_of(value)), repr(unit))
        if kind is Sparsity:
            return ("sparse", *self.describe(value.described()))
        if kind is dict:
            return ("dict", *[(self.describe(k), self.describe(v)) for k, v in value.items()])
        if kind is set or kind is frozenset:
            return (kind.__name__, *[self.describe(item) for item in value])
        if isinstance(value, Scalar | Tensor):
            return self.type(value)
        if isinstance(value, types.ModuleType):
            return ("module", value.__name__)
        if isinstance(value, types.GenericAlias):
            return ("alias", self.describe(value.__origin__), self.describe(value.__args__))
        if isinstance(value, enum.Enum):
            return ("member", *_name_of(kind), value.name, self.describe(value.value))
        if kind.__module__ == "typing":
            return ("typing", repr(value))
        if protocol.is_numpy_number(value):
            return ("numpy", str(value.dtype), self.describe(value.item()))
        if protocol.is_constant_array(value):
            return ("numpy", *content_of(value))
        return self._ours(value, kind)

    def _ours(self, value: Any, kind: type) -> Description:
        """Objects that know what they are to a kernel."""
        if isinstance(value, type):
            return ("class", *_name_of(value)) if is_known_by_name(value) else self._object(value, kind)
        if isinstance(value, types.BuiltinFunctionType | types.FunctionType):
            if is_known_by_name(value):
                return ("function", value.__module__, value.__qualname__)
            source = source_of(value)
            if source is None:
                raise Undescribable(f"{value!r} may do anything")
            return ("plain function", self.source(source))
        if isinstance(value, types.MethodType | staticmethod):
            owner = getattr(value, "__self__", None)
            return ("method", self.describe(value.__func__), None if owner is None else self.describe(owner))
        if isinstance(value, functools.partial):
            return ("partial", *map(self.describe, (value.func, value.args, value.keywords)))
        if isinstance(value, _CACHED):  # asking for an attribute would make a field say what was probably meant
            return ("cached", self.describe(value.__wrapped__))
        if isinstance(value, types.CodeType):
            return ("code", value.co_name)  # that of a plain function, which its text describes
        source = function_of(value)
        if source is not None:
            # The gradient of its own, if it has one, is a capture: it may be registered anew.
            tag = "func" if getattr(value, "__tinote_replacement__", None) is None else "func with a gradient"
            owner = getattr(value, "__tinote_self__", None)
            return (tag, self.source(source), None if owner is None else self.describe(owner))
        component, info, members = protocol.component_of(value), protocol.struct_of(value), protocol.members_of(value)
        space = None if component is None else protocol.space_of(value)
        if space is not None:
            return ("component", *_name_of(kind), component, self.buffer(space))
        if info is not None or members is not None:
            described = None if info is None else self.struct(info)
            return ("struct", *_name_of(kind), described, self.describe(members))
        for ask, tell in _ASKED:
            found = _asked(ask, value)
            if found is not None:
                return (
                    tell,
                    *_name_of(kind),
                    self.buffer(found) if isinstance(found, Buffer) else self.describe(found),
                )
        if getattr(kind, "__tinote_template__", False):
            return ("template",)
        if protocol.is_array(value):
            return ("array", *_name_of(kind), repr(value))
        name = getattr(value, "__tinote_name__", None)
        if isinstance(name, str):
            return ("language", name)
        return self._object(value, kind)

    def _object(self, value: Any, kind: type) -> Description:
        """An object known by its identity and its attributes, each captured where it is read; a named tuple by its
        items.
        """
        if is_named_tuple(kind):
            return ("named tuple", self.describe(kind), *map(self.describe, value))
        for number, known in enumerate(self._objects):
            if known is value:
                return ("object", number)
        record = hasattr(value, "__dict__") and (kind in _RECORDS or hasattr(kind, "__dataclass_fields__"))
        if not _is_plain(value, kind):
            raise Undescribable(f"{value!r}")
        self._objects.append(value)
        # Records compare by content, so their content counts; calls of a named tuple's class match its fields.
        content = self.describe(vars(value)) if record else ()
        if isinstance(value, type) and issubclass(value, tuple):
            content = self.describe((getattr(value, "_fields", None), getattr(value, "_field_defaults", None)))
        return ("object", len(self._objects) - 1, *_name_of(value if isinstance(value, type) else kind), content)


def is_named_tuple(kind: type) -> bool:
    """Whether objects of a class are named tuples, and behave as such."""
    return issubclass(kind, tuple) and hasattr(kind, "_fields") and _has_no_operators(kind)


def _is_plain(value: Any, kind: type) -> bool:
    """Whether an object is nothing but a place for attributes: no operators, no length, no truth of its own."""
    if isinstance(value, type):
        return kind in _METACLASSES
    return kind in _RECORDS or (not issubclass(kind, tuple) and _has_no_operators(kind))


def _has_no_operators(kind: type) -> bool:
    """Whether a class, apart from `object` and `tuple`, defines no operators, length or truth of its objects."""
    for base in kind.__mro__:
        if base in (tuple, object):
            continue
        for name, member in vars(base).items():
            special = name.startswith("__") and name.endswith("__") and name not in _HARMLESS
            if special and not name.startswith("__dataclass_") and not _is_written_by_dataclass(member):
                return False
    return True


def _is_written_by_dataclass(member: Any) -> bool:
    """Whether `@dataclass` made a special method: it compares by content."""
    return member is None or getattr(getattr(member, "__code__", None), "co_filename", "") == "<string>"


def _name_of(kind: type) -> tuple[str, str]:
    return kind.__module__, kind.__qualname__


def _asked(ask: Callable[[Any], Any], value: Any) -> Any:
    try:
        return ask(value)
    except Exception as error:  # whatever an object answers, there is a way without its description
        raise Undescribable(f"{value!r}: {error}") from error


def _level(value: Any) -> tuple[Any, ...] | None:
    """What a level of a tree with sparse levels is to a kernel: its shape, how its cells lie, what is below it."""
    below = protocol.below_of(value)
    return None if below is None else (protocol.axes_of(value), protocol.sparsity_of(value), *below)


_ASKED: tuple[tuple[Callable[[Any], Any], str], ...] = (
    (protocol.buffer_of, "field"),
    (protocol.constant_of, "constant"),
    (protocol.type_of, "annotation"),
    (_level, "level"),
    (protocol.axes_of, "ndrange"),
    (protocol.grouped_of, "grouped"),
)
