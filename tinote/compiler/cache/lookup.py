"""Machine code from an earlier process, found without the front end and the passes.

What a kernel's code depends on cannot be known before it is compiled: the front end finds out, and says so as captures.
So the disk holds, under the kernel's own text and the types of its arguments, the *paths* to what was captured when it
was compiled (`N` in its module, `dt` of argument 0, item 2 of that list, …). Another process follows the same paths,
describes what it finds there by value (`describe`), and asks the disk for code compiled from just that.

    kernel text, types, options  →  paths to captures  →  what stands there now  →  metadata  →  machine code

Where a path or a value has no form as plain data, nothing is stored, and every process compiles for itself.
"""

import ast
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from types import MethodType, ModuleType
from typing import Any, NamedTuple

from tinote.compiler.cache.describe import Describer, Description, Undescribable, is_named_tuple
from tinote.compiler.captures import Capture
from tinote.compiler.function_source import FunctionSource, source_of
from tinote.compiler.protocol import struct_of
from tinote.compiler.pysource.definitions import syntax_tree
from tinote.compiler.pysource.names import MISSING, CaptureKind, find_name
from tinote.compiler.signature import (
    ArgumentSpec,
    ArrayArgument,
    PackArgument,
    StructArgument,
    TemplateArgument,
    single_arguments,
)
from tinote.config import Config
from tinote.ir.nodes import Buffer
from tinote.lazy import load
from tinote.runtime.digest import digest
from tinote.runtime.store import DiskStore, package_stamp

#: Options of a session that say nothing about code.
_OUTSIDE = ("random_seed", "memory_limit", "offline_cache", "print_ir")
#: Sets of captures that are followed for one kernel text, the latest first. Chosen, not measured.
_MAX_PATHS = 8
_ANNOTATION = "annotation"


class KernelDependencies(NamedTuple):
    """What a kernel's code depends on, by value: `key` stands for all of it. `captures` as the front end would list
    them, `buffers` and `sources` by the numbers under which stored metadata refers to them.
    """

    key: str
    captures: tuple[Capture, ...]
    buffers: tuple[Buffer, ...]
    sources: tuple[FunctionSource, ...]


class Lookup(NamedTuple):
    """A kernel about to be compiled: all that is known before anything is captured. `key` stands for it."""

    key: str
    source: FunctionSource
    arguments: tuple[ArgumentSpec, ...]


#: The path to an object, as JSON writes it: ["globals", 0], ["item", ["value", 3], 2].
_Path = list[Any]
#: How a capture is found: its kind, the path to its owner, its key there.
_CapturePath = list[Any]


def lookup_of(source: FunctionSource, arguments: Sequence[ArgumentSpec], config: Config, machine: str) -> Lookup:
    """`machine`: the CPU and LLVM that code is for."""
    options = [f"{name}={value!r}" for name, value in config._asdict().items() if name not in _OUTSIDE]
    shape = [_shape(argument) for argument in arguments]
    names = ",".join(sorted(source.closure))
    key = digest("kernel", package_stamp(), machine, *options, source.name, source.text, names, *shape)
    return Lookup(key, source, tuple(arguments))


def _shape(argument: ArgumentSpec) -> str:
    """What is known of an argument before its description."""
    if isinstance(argument, PackArgument):
        return repr({name: _shape(member) for name, member in argument.members.items()})
    return type(argument).__name__ if isinstance(argument, TemplateArgument | ArrayArgument) else repr(argument)


# ---- in both processes


class _Reachable:
    """The objects that paths lead to, and the functions among them. The same in the process that compiles and in the
    one that looks up, because both add the same things in the same order.
    """

    def __init__(self, lookup: Lookup) -> None:
        self.lookup = lookup
        self.sources: list[FunctionSource] = []
        self.paths: dict[int, _Path] = {}
        self._kept: list[Any] = []
        self._add_source(lookup.source)
        for number, argument in enumerate(lookup.arguments):
            if isinstance(argument, TemplateArgument):
                self.add(argument.value, ["argument", number])
            if isinstance(argument, StructArgument):
                for method in argument.info.methods.values():
                    self.add(method, ["method", ["argument", number], method.__name__])

    def add(self, value: Any, path: _Path) -> None:
        """`value` was met at the end of `path`."""
        if id(value) in self.paths:
            return
        self.paths[id(value)] = path
        self._kept.append(value)
        if type(value) in (tuple, list) or is_named_tuple(type(value)):
            for position, item in enumerate(value):
                self.add(item, ["item", path, position])
        elif type(value) is dict:
            for position, item in enumerate(value.values()):
                self.add(item, ["item", path, position])
        elif not isinstance(value, type | ModuleType | int | float | str):
            info = struct_of(value)
            for method in () if info is None else info.methods.values():
                self.add(method, ["method", path, method.__name__])
            source = source_of(value)
            if source is not None:
                self._add_source(source)
                if isinstance(value, MethodType | staticmethod):
                    self.add(value.__func__, ["function", path])
                owner = _owner_of(value)
                if owner is not None:
                    self.add(owner, ["self", path])
                replacement = getattr(value, "__tinote_replacement__", None)
                if replacement is not None:
                    self.paths.setdefault(id(replacement), ["replacement", path])

    def _add_source(self, source: FunctionSource) -> None:
        if any(source is known for known in self.sources):
            return
        number = len(self.sources)
        self.sources.append(source)
        self.paths.setdefault(id(source.globals), ["globals", number])
        for name, cell in source.closure.items():
            self.paths.setdefault(id(cell), ["cell", number, name])
        for name, value in source.defaults.items() if source.is_func else ():
            self.add(value, ["default", number, name])

    def path_to(self, owner: Any) -> _Path:
        if isinstance(owner, ModuleType) and sys.modules.get(owner.__name__) is owner:
            return ["module", owner.__name__]
        path = self.paths.get(id(owner))
        if path is None and isinstance(owner, dict):
            # Where the language's own device functions find what they use.
            name = owner.get("__name__")
            module = sys.modules.get(name) if isinstance(name, str) else None
            if module is not None and module.__dict__ is owner:
                return ["namespace", name]
        if path is None:
            raise Undescribable(f"no path leads to {owner!r}")
        return path

    def described(self, captures: Iterable[Capture]) -> tuple[Description, tuple[Buffer, ...]]:
        """What the arguments and captures are, by value, and the memory among them."""
        describer = Describer(self.sources)
        described: list[Description] = [describer.source(self.lookup.source)]
        for argument in single_arguments(self.lookup.arguments):
            match argument:
                case TemplateArgument(value):
                    described.append(describer.describe(value))
                case StructArgument(info):
                    described.append(describer.struct(info))
                case ArrayArgument(buffer, clamps):
                    described += [describer.buffer(buffer), ("clamps", int(clamps))]
                case _:
                    described.append(describer.type(argument.type))
        described += [describer.describe(c.value) for c in captures]
        return tuple(described), tuple(describer.buffers)


def _owner_of(function: Any) -> Any:
    """The object that a device function or a method is bound to, if any."""
    return getattr(function, "__tinote_self__", getattr(function, "__self__", None))


def _key(lookup: Lookup, paths: list[_CapturePath], described: Description) -> str:
    return digest("dependencies", lookup.key, json.dumps(paths), repr(described))


# ---- the process that compiles


def store_dependencies(lookup: Lookup, captures: Sequence[Capture], store: DiskStore) -> KernelDependencies | None:
    """Store the paths to what the front end captured. Gives `None` when some have none; nothing is stored then."""
    try:
        reachable = _Reachable(lookup)
        paths: list[_CapturePath] = []
        for number, capture in enumerate(captures):
            name = capture.key if isinstance(capture.key, str) else None
            paths.append([capture.kind.value, reachable.path_to(capture.owner), name])
            reachable.add(capture.value, ["value", number])
        annotations = list(_annotations(reachable.sources))
        all_captures = [*captures, *(_annotated(reachable.sources, *found) for found in annotations)]
        paths += [[_ANNOTATION, *found] for found in annotations]
        described, buffers = reachable.described(all_captures)
        key = _key(lookup, paths, described)
    except (Undescribable, RecursionError):
        return None
    # What was described must be what was compiled, also if another thread has changed it meanwhile.
    if not all(c.unchanged() for c in captures):
        return None
    known = [others for others in _stored_paths(lookup, store) if others != paths]
    store.put(lookup.key, json.dumps([paths, *known][:_MAX_PATHS]).encode())
    return KernelDependencies(key, tuple(captures), buffers, tuple(reachable.sources))


def _annotations(sources: Sequence[FunctionSource]) -> Iterator[tuple[int, str]]:
    """The dotted names in annotations that the front end evaluates itself: of variables, and those left as text."""
    for number, source in enumerate(sources):
        for node in ast.walk(source.tree):
            written: ast.expr | None = None
            as_text = isinstance(node, ast.arg) and isinstance(source.annotations.get(node.arg), str)
            if isinstance(node, ast.AnnAssign) or (isinstance(node, ast.arg) and as_text):
                written = node.annotation
            elif isinstance(node, ast.FunctionDef) and isinstance(source.annotations.get("return"), str):
                written = node.returns
            if isinstance(written, ast.Constant) and isinstance(written.value, str):
                try:
                    written = syntax_tree(written.value, mode="eval").body
                except (SyntaxError, ValueError):
                    raise Undescribable(f"the annotation {written.value!r}") from None
            if written is not None:
                for name in sorted(set(_dotted_names(written))):
                    yield number, name


def _dotted_names(node: ast.expr) -> Iterator[str]:
    found = node
    names: list[str] = []
    while isinstance(found, ast.Attribute):
        names.append(found.attr)
        found = found.value
    if isinstance(found, ast.Name):
        yield ".".join([found.id, *reversed(names)])
    else:
        for child in ast.iter_child_nodes(found):
            if isinstance(child, ast.expr):
                yield from _dotted_names(child)
            elif isinstance(child, ast.keyword):
                yield from _dotted_names(child.value)


def _annotated(sources: Sequence[FunctionSource], number: int, dotted: str) -> Capture:
    """What a dotted name in an annotation stands for, as a capture that is not checked at launches."""
    source = sources[number]
    name, *rest = dotted.split(".")
    try:
        found = find_name(name, source.closure, source.globals)
        value = MISSING if found is None else found.value
        for attribute in rest:
            value = getattr(value, attribute)
        if value is MISSING:
            raise AttributeError(name)
    except AttributeError:
        raise Undescribable(f"`{dotted}` in an annotation") from None
    return Capture(CaptureKind.NAME, source.globals, dotted, value)


# ---- the process that looks up


def find_dependencies(lookup: Lookup, store: DiskStore) -> Iterator[KernelDependencies]:
    """What the code of this kernel would depend on, for each set of paths that was stored for it."""
    for paths in _stored_paths(lookup, store):
        try:
            reachable = _Reachable(lookup)
            captures: list[Capture] = []
            watched = 0
            for number, (kind, *path) in enumerate(paths):
                if kind == _ANNOTATION:
                    captures.append(_annotated(reachable.sources, *path))
                    continue
                captures.append(_read(reachable, captures, CaptureKind(kind), *path))
                reachable.add(captures[-1].value, ["value", number])
                watched += 1
            described, buffers = reachable.described(captures)
            key = _key(lookup, paths, described)
        except (Undescribable, LookupError, AttributeError, ValueError, TypeError, RecursionError):
            continue
        yield KernelDependencies(key, tuple(captures[:watched]), buffers, tuple(reachable.sources))


def _stored_paths(lookup: Lookup, store: DiskStore) -> list[Any]:
    data = store.get(lookup.key)
    if data is None:
        return []
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return []
    return found if isinstance(found, list) else []


def _read(
    reachable: _Reachable, captures: Sequence[Capture], kind: CaptureKind, path: _Path, key: str | None
) -> Capture:
    place = Capture(kind, _follow(reachable, captures, path), key, None)
    return place._replace(value=place.current())


def _module(name: str) -> ModuleType:
    """A module that is loaded already, or one of our own, which are loaded when they are first used."""
    return load(name) if name.startswith("tinote.") else sys.modules[name]


def _follow(reachable: _Reachable, captures: Sequence[Capture], path: _Path) -> Any:
    match path:
        case ["globals", number]:
            return reachable.sources[number].globals
        case ["cell", number, name]:
            return reachable.sources[number].closure[name]
        case ["default", number, name]:
            return reachable.sources[number].defaults[name]
        case ["argument", number]:
            argument = reachable.lookup.arguments[number]
            if isinstance(argument, TemplateArgument):
                return argument.value
            if isinstance(argument, StructArgument):
                return argument
        case ["value", number]:
            return captures[number].value
        case ["item", of, position]:
            items = _follow(reachable, captures, of)
            return list(items.values())[position] if type(items) is dict else items[position]
        case ["method", of, name]:
            owner = _follow(reachable, captures, of)
            info = owner.info if isinstance(owner, StructArgument) else struct_of(owner)
            return None if info is None else info.methods[name]
        case ["self", of]:
            return _owner_of(_follow(reachable, captures, of))
        case ["function", of]:
            return _follow(reachable, captures, of).__func__
        case ["replacement", of]:
            return _follow(reachable, captures, of).__tinote_replacement__
        case ["module", name]:
            return _module(name)
        case ["namespace", name]:
            return _module(name).__dict__
    raise LookupError(f"no path: {path!r}")
