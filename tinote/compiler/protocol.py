"""What the front end and the floor above it agree on: how Python objects show what they are to a kernel, and what
goes into and comes out of `lower`.

The front end never imports the language's classes. It asks an object for one of these attributes:

    __tinote_buffer__() -> Buffer             memory that a kernel may index: a field, an ndarray
    __tinote_value__() -> nested tuples       a captured constant vector or matrix, as Python numbers
    __tinote_captured__() -> float            a number that may refuse to become a constant of the code
    __tinote_function__: FunctionSource       a device function, inlined where it is called
    __tinote_self__                           the object that a device function is bound to, if any
    __tinote_replacement__                    what holds the gradient of a device function in `gradient`, if it is told
    __tinote_kernel__                         a kernel: calling one from a kernel is refused
    __tinote_type__() -> Scalar | Tensor      a type annotation; called in a kernel, a constructor
    __tinote_name__                           the name of a built-in; the front end expands it (`builtins.BUILTINS`),
                                              unless it says that it is one of these:
    __tinote_primitive__: Primitive           a built-in that emits a primitive
    __tinote_composed__() -> FunctionSource   a built-in that is written in the language itself, inlined as if its body
                                              stood in the place of the call
    __tinote_space__() -> Buffer              what is indexed like this memory without being it: a field of structs
    __tinote_component__() -> tuple of ints   with a space: one component of each of its elements
    __tinote_members__() -> dict              a struct by its members: of fields (with a space), or of constants
    __tinote_struct__() -> StructInfo         a type of structs; called in a kernel, a constructor
    __tinote_domain__() -> tuple              an `ndrange` that was made in Python: its axes (first, end)
    __tinote_grouped__                        the domain or field that a `grouped` made in Python is of
    __tinote_static__                         a Python function that kernels may call with constants, at compile time
    __tinote_add_at__: (int, f, g)            on a class: its objects gather entries, `A[i, j] += v`; with how many
                                              indices, and the device functions that add and subtract, `f(A, i, j, v)`
    __tinote_pack__                           the annotation of a parameter that is several: the annotations by name
    __tinote_template__                       the annotation of a parameter that is passed as it is
    __tinote_array__                          the annotation of a parameter that is memory known at launch only
"""

from __future__ import annotations

import ast
import inspect
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from tinote.compiler.pysource import origins
from tinote.compiler.pysource.codes import cells_of, contents_of, place_of
from tinote.compiler.pysource.definitions import definition_of
from tinote.compiler.pysource.names import CaptureKind, find_again
from tinote.errors import KernelSyntaxError
from tinote.ir.nodes import Buffer, Function
from tinote.ir.types import Scalar, Tensor, f32, i32, u1
from tinote.source import Span


class FunctionSource:
    """The source of a kernel, a device function (both memorised at decoration) or a plain function that kernels call.

    `tree` has the line numbers and columns of the user's file or cell. `closure` maps free names to their cells, which
    may be filled or changed later; `defaults` and `annotations` map parameters (and "return") to what Python evaluated
    for them.
    """

    __slots__ = (
        "__weakref__",
        "annotations",
        "closure",
        "defaults",
        "file",
        "globals",
        "is_func",
        "is_plain",
        "may_recurse",
        "name",
        "text",
        "tree",
    )

    def __init__(
        self,
        name: str,
        tree: ast.FunctionDef,
        file: str,
        globals: dict[str, Any],
        closure: Mapping[str, types.CellType],
        text: str,
        is_func: bool,
        defaults: Mapping[str, Any] | None = None,
        annotations: Mapping[str, Any] | None = None,
        is_plain: bool = False,
    ) -> None:
        self.name = name
        self.tree = tree
        self.file = file
        self.globals = globals
        self.closure = dict(closure)
        self.text = text
        self.is_func = is_func
        #: whether nobody has decorated it: annotations say nothing, as in Python, `template()` apart
        self.is_plain = is_plain
        #: whether it is a `real_func`: one that calls itself is not inlined
        self.may_recurse = False
        self.defaults = dict(defaults or {})
        self.annotations = {name: meant(hint) for name, hint in (annotations or {}).items()}

    @property
    def parameters(self) -> list[ast.arg]:
        """Every parameter that takes one argument, in order."""
        arguments = self.tree.args
        return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]

    def enclosed(self) -> dict[str, Any]:
        """The names of the functions around it that have a value now."""
        return contents_of(self.closure)

    @property
    def span(self) -> Span:
        """The `def` line."""
        tree = self.tree
        return Span(self.file, tree.lineno, tree.col_offset, tree.lineno, 0)

    def __repr__(self) -> str:
        return f"<source of {self.name}, {self.file}:{self.tree.lineno}>"


def function_source(function: types.FunctionType, is_func: bool = False) -> FunctionSource:
    """The source of a Python function, from the file or cell it was compiled from. Raises `KernelSyntaxError` when
    there is no source or it is not a `def` (nor, of a device function, a `lambda`).
    """
    code, name = function.__code__, function.__name__
    text, statement = definition_of(code, function.__globals__, name, of_lambdas=is_func)
    if not isinstance(statement, ast.FunctionDef):
        raise KernelSyntaxError(
            "a kernel or device function is made from a `def`",
            place_of(code),
            "lambdas and async functions cannot be compiled",
        )
    return _source(function, statement, text, is_func)


def plain_source(function: types.FunctionType) -> FunctionSource:
    """The source of a function that nobody has decorated, or of a `lambda`; the same object as long as it is in use.
    Raises `KernelSyntaxError` when there is none, or the function is a generator or async.
    """
    made_of = (function.__code__, function.__defaults__, function.__kwdefaults__)
    known = _plain_sources.get(function)
    found = None if known is None else known[1]()
    if known is not None and found is not None and all(a is b for a, b in zip(known[0], made_of, strict=True)):
        return found
    code, name = function.__code__, function.__name__
    if code.co_flags & _COROUTINE:
        raise KernelSyntaxError(f"`{name}` is an async function", place_of(code), "kernels wait for nothing")
    if code.co_flags & inspect.CO_GENERATOR:
        raise KernelSyntaxError(
            f"`{name}` is a generator: it gives its items by `yield`", place_of(code), "return a list"
        )
    text, statement = definition_of(code, function.__globals__, name)
    if not isinstance(statement, ast.FunctionDef):
        raise KernelSyntaxError(f"the source of `{name}` is not found where Python read it", place_of(code))
    made = _source(function, statement, text, True, is_plain=True)
    _plain_sources[function] = made_of, weakref.ref(made)
    return made


#: Sources of plain functions that are in use, with what they were made of.
_plain_sources: weakref.WeakKeyDictionary[
    types.FunctionType, tuple[tuple[Any, ...], weakref.ReferenceType[FunctionSource]]
] = weakref.WeakKeyDictionary()
_COROUTINE = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def _source(
    function: types.FunctionType, statement: ast.FunctionDef, text: str, is_func: bool, is_plain: bool = False
) -> FunctionSource:
    names = [p.arg for p in (*statement.args.posonlyargs, *statement.args.args)]
    values = function.__defaults__ or ()
    defaults = dict(zip(names[len(names) - len(values) :], values, strict=True)) | (function.__kwdefaults__ or {})
    return FunctionSource(
        function.__name__,
        statement,
        function.__code__.co_filename,
        function.__globals__,
        cells_of(function),
        text,
        is_func,
        defaults,
        function.__annotations__,
        is_plain,
    )


class StructInfo(NamedTuple):
    """A type of structs: the type of each member, in order, its device functions, whose first parameter is the struct,
    and the names of the methods that are Python's alone.
    """

    name: str
    members: Mapping[str, Scalar | Tensor | StructInfo]
    methods: Mapping[str, Any]
    python_methods: tuple[str, ...] = ()

    def leaves(self) -> tuple[Scalar | Tensor, ...]:
        """The types of all numbers, vectors and matrices in it, in order."""
        found: list[Scalar | Tensor] = []
        for t in self.members.values():
            found += t.leaves() if isinstance(t, StructInfo) else [t]
        return tuple(found)

    @property
    def count(self) -> int:  # pyright: ignore[reportIncompatibleMethodOverride] (nobody counts in the triple)
        """How many numbers are in it."""
        return sum(t.count if isinstance(t, Tensor) else 1 for t in self.leaves())


class TemplateArgument(NamedTuple):
    """A parameter that stands for a Python object at compile time: a field, a number, `self`, anything."""

    value: Any


class ValueArgument(NamedTuple):
    """A parameter that is a number, a vector or a matrix at run time; it becomes one scalar parameter a component, in
    row-major order.
    """

    type: Scalar | Tensor


class StructArgument(NamedTuple):
    """A parameter that is a struct at run time; each member is one as it would be alone."""

    info: StructInfo


class ArrayArgument(NamedTuple):
    """A parameter that is memory known at launch only. `clamps`: an index outside stands for the nearest one inside."""

    buffer: Buffer
    clamps: bool = False


#: What `__tinote_add_at__` holds.
AddsAt = tuple[int, Any, Any]


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


#: Iterations that all unrolled loops of a kernel have together, and items of what is known at compile time. Chosen, not
#: measured.
MAX_UNROLLED = 100_000


class Evaluation(NamedTuple):
    """A call of Python while a kernel is compiled, whose result may change: a function of the user's, or what an object
    of the user's answers. Of an iterator, the items are the result.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = {}

    def __call__(self) -> Any:
        found = self.function(*self.args, **self.kwargs)
        return tuple(islice(found, MAX_UNROLLED + 1)) if isinstance(found, Iterator) else found

    @property
    def key(self) -> tuple[int, ...]:
        """Equal for the same function of the same objects, as long as both are alive."""
        method = isinstance(self.function, types.MethodType | types.BuiltinMethodType)
        parts = (self.function.__self__, self.function.__name__) if method else (self.function,)
        return tuple(map(id, (*parts, *self.args, *self.kwargs, *self.kwargs.values())))


class Capture(NamedTuple):
    """Something outside of the kernel that its code depends on: where it was read, and what was found."""

    kind: CaptureKind
    owner: Any
    key: Any
    value: Any

    def current(self) -> Any:
        """What stands there now. Raises what the reading raises when it is gone."""
        if self.kind is CaptureKind.CONTENT:
            return content_of(self.owner)
        if self.kind is CaptureKind.EVALUATION:
            return self.owner()
        return find_again(self.kind, self.owner, self.key)

    def is_same(self) -> bool:
        """Whether reading it again gives the very object."""
        try:
            return self.current() is self.value
        except (LookupError, AttributeError, ValueError):
            return False

    def unchanged(self) -> bool:
        """Whether the same object, or an equal number, text or tuple of them, still stands there; whether an evaluation
        gives the same again.
        """
        if self.kind is CaptureKind.EVALUATION:
            try:
                return same_answer(self.current(), self.value)
            except Exception:  # the user's own code: compiling again says what is wrong
                return False
        try:
            now = self.current()
        except (LookupError, AttributeError, ValueError):
            return False
        return now is self.value or same_constant(now, self.value)

    def __repr__(self) -> str:
        return f"<captured {self.kind.value} {self.key or ''}>"


_CONSTANTS = (bool, int, float, str, bytes)


def same_constant(a: Any, b: Any) -> bool:
    """Whether two compile-time constants are interchangeable: same type and value, tuples item by item, methods by
    function and owner; other objects by identity.
    """
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(same_constant(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, _CONSTANTS):
        return a == b and str(a) == str(b)  # the text tells 0.0 from -0.0
    # A method is a new object each time it is looked up.
    if isinstance(a, types.MethodType):
        return a.__self__ is b.__self__ and a.__func__ is b.__func__
    source = function_of(a)
    return (
        source is not None
        and source is function_of(b)
        and getattr(a, "__tinote_self__", None) is getattr(b, "__tinote_self__", None)
        and getattr(a, "__tinote_replacement__", None) is getattr(b, "__tinote_replacement__", None)
    )


#: How deep the answers of Python functions are compared; deeper ones count as different. Chosen, not measured.
_MAX_ANSWER_DEPTH = 20


def same_answer(a: Any, b: Any, depth: int = 0) -> bool:
    """Whether two results of one evaluation mean the same to a kernel: constants by value, containers, NumPy arrays and
    objects made anew by what they hold.
    """
    if same_constant(a, b):
        return True
    if type(a) is not type(b) or depth > _MAX_ANSWER_DEPTH:
        return False
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(same_answer(x, y, depth + 1) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return same_answer(list(a.items()), list(b.items()), depth + 1)
    if isinstance(a, set | frozenset | range):
        return a == b
    if type(a).__module__ == "numpy" and hasattr(a, "tobytes"):
        return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    if constant_of(a) is not None:
        return same_answer(constant_of(a), constant_of(b), depth + 1)
    held = getattr(a, "__dict__", None)
    is_function = isinstance(a, types.FunctionType | types.ModuleType | type)
    return isinstance(held, dict) and not is_function and same_answer(held, b.__dict__, depth + 1)


def content_of(owner: Any) -> Any:
    """A copy of what a captured container or constant holds, as nested tuples and, of NumPy arrays, bytes."""
    if is_constant_array(owner):
        return owner.dtype.str, owner.shape, owner.tobytes()
    constant = constant_of(owner)
    if constant is not None:
        return constant
    items = tuple(owner.items()) if isinstance(owner, dict) else tuple(owner)
    return tuple([content_of(item) if _has_content(item) else item for item in items])


def _has_content(item: Any) -> bool:
    return isinstance(item, tuple | list | dict) or is_constant_array(item)


class Warned(NamedTuple):
    """Something that compiles and may surprise."""

    message: str
    span: Span


class Lowered(NamedTuple):
    """What `lower` returns. `returns`: the types that the kernel gives back, one per returned item, or `None`; each
    component is one yield of the function, in order. `returns_tuple`: whether the user wrote a tuple type.
    `uses_random`: whether the last parameter is the launch seed. `reproducible`: whether the same text, arguments and
    captures always give the same function; not so when Python functions ran, or something was printed, on the way."""

    function: Function
    captures: tuple[Capture, ...]
    returns: tuple[Scalar | Tensor, ...] | None
    returns_tuple: bool
    uses_random: bool
    warnings: tuple[Warned, ...]
    reproducible: bool = True


def buffer_of(candidate: Any) -> Buffer | None:
    """The memory that an object stands for, if any."""
    ask = getattr(candidate, "__tinote_buffer__", None)
    return None if ask is None or isinstance(candidate, type) else ask()


def space_of(candidate: Any) -> Buffer | None:
    """The memory whose indices an object has: its own, or that of what it stands for."""
    found = buffer_of(candidate)
    if found is not None:
        return found
    ask = getattr(candidate, "__tinote_space__", None)
    return None if ask is None or isinstance(candidate, type) else ask()


def component_of(candidate: Any) -> tuple[int, ...] | None:
    """Which component of the elements of its space an object stands for, if any."""
    ask = getattr(candidate, "__tinote_component__", None)
    return None if ask is None or isinstance(candidate, type) else ask()


def members_of(candidate: Any) -> dict[str, Any] | None:
    """The members of a struct of fields or constants, or `None`."""
    ask = getattr(candidate, "__tinote_members__", None)
    return None if ask is None or isinstance(candidate, type) else ask()


def struct_of(candidate: Any) -> StructInfo | None:
    """The type of structs that an object is or belongs to, or `None`."""
    ask = getattr(candidate, "__tinote_struct__", None)
    return None if ask is None or isinstance(candidate, type) else ask()


def constant_of(candidate: Any) -> Any:
    """The nested tuples of a captured constant vector or matrix, or `None`. A small NumPy array of one or two
    dimensions is one.
    """
    if is_small_array(candidate):
        return _in_tuples(candidate.tolist())
    ask = getattr(candidate, "__tinote_value__", None)
    return None if ask is None or isinstance(candidate, type) else ask()


def constant_rows(candidate: Any) -> Any:
    """The rows of a small NumPy array of two dimensions, which an index of its own selects, as in Python; or `None`."""
    return _in_tuples(candidate.tolist()) if is_small_array(candidate) and candidate.ndim == 2 else None


#: Numbers of a NumPy array that a kernel reads as a constant. Chosen, not measured.
_MAX_CONSTANT_NUMBERS = 1024


def is_constant_array(candidate: Any) -> bool:
    """Whether something is a NumPy array that a kernel reads as a constant number, vector or matrix."""
    kind = type(candidate)
    return (
        (kind.__module__, kind.__name__) == ("numpy", "ndarray")
        and candidate.dtype.kind in "biuf"
        and candidate.ndim <= 2
        and 0 < candidate.size <= _MAX_CONSTANT_NUMBERS
    )


def is_numpy_number(candidate: Any) -> bool:
    """Whether something is one of NumPy's numbers, which never change."""
    return any((base.__module__, base.__name__) == ("numpy", "generic") for base in type(candidate).__mro__)


def is_small_array(candidate: Any) -> bool:
    """Whether something is a NumPy array that a kernel reads as a constant vector or matrix."""
    return is_constant_array(candidate) and candidate.ndim > 0


def _in_tuples(value: Any) -> Any:
    return tuple([_in_tuples(item) for item in value]) if isinstance(value, list) else value


#: The functions of the language by name, and Python's own functions (`math.sin`, `abs`, …), each with the one that it
#: stands for in a kernel. Filled by their definitions.
FUNCTIONS: dict[str, Any] = {}
PYTHON_FUNCTIONS: dict[Any, Any] = {}


def builtin_of(candidate: Any) -> Any:
    """The built-in that an object is, or that one of Python's functions stands for; `None` for anything else."""
    if isinstance(candidate, types.BuiltinFunctionType):
        return PYTHON_FUNCTIONS.get(candidate)
    return candidate if isinstance(getattr(candidate, "__tinote_name__", None), str) else None


def function_of(candidate: Any) -> FunctionSource | None:
    """The source of a device function, or `None`."""
    found = getattr(candidate, "__tinote_function__", None)
    return found if isinstance(found, FunctionSource) else None


def is_ours(candidate: Any) -> bool:
    """Whether a function, class or object belongs to this package."""
    return origins.is_ours(getattr(candidate, "__module__", None))


def source_of(candidate: Any) -> FunctionSource | None:
    """The source of what kernels inline: a device function, a plain function or a method. `None` for anything else, and
    for functions without a source.
    """
    if isinstance(candidate, types.MethodType | staticmethod):
        candidate = candidate.__func__
    if not isinstance(candidate, types.FunctionType) or is_ours(candidate):
        return function_of(candidate)
    try:
        return plain_source(candidate)
    except KernelSyntaxError:
        return None


def axes_of(candidate: Any) -> tuple[tuple[int, int], ...] | None:
    """The axes of an `ndrange` that was made in Python, or `None`."""
    ask = getattr(candidate, "__tinote_domain__", None)
    return None if ask is None or isinstance(candidate, type) else ask()


def grouped_of(candidate: Any) -> Any:
    """What a `grouped` that was made in Python is of, or `None`."""
    return getattr(candidate, "__tinote_grouped__", None)


AXES = ("xyzw", "rgba", "stpq")


def swizzle(name: str, count: int) -> tuple[int, ...] | None:
    """The positions that a name such as `x` or `zxy` selects of a vector of `count`, or `None` when it is no such
    name.
    """
    for letters in AXES:
        if name and len(name) <= 4 and all(c in letters for c in name):
            positions = tuple([letters.index(c) for c in name])
            return positions if max(positions) < count else None
    return None


def meant(annotation: Any) -> Any:
    """What an annotation says to a kernel: of `Annotated[np.ndarray, ti.types.ndarray()]`, whose first part is for type
    checkers, the first other part that is one of ours; without any, the first part.
    """
    while hasattr(annotation, "__metadata__"):
        ours = [one for one in annotation.__metadata__ if _is_hint(one)]
        annotation = ours[0] if ours else annotation.__origin__
    return annotation


def _is_hint(candidate: Any) -> bool:
    return (
        is_template(candidate)
        or is_array(candidate)
        or pack_of(candidate) is not None
        or struct_of(candidate) is not None
        or type_of(candidate) is not None
    )


def is_template(annotation: Any) -> bool:
    """Whether an annotation asks for the argument itself."""
    return getattr(annotation, "__tinote_template__", False) is not False


def adds_at(value: Any) -> AddsAt | None:
    """How an object gathers entries, if it does."""
    return getattr(type(value), "__tinote_add_at__", None)


def is_array(annotation: Any) -> bool:
    """Whether an annotation asks for memory that is known at launch only."""
    return getattr(annotation, "__tinote_array__", False) is not False


def pack_of(annotation: Any) -> Mapping[str, Any] | None:
    """The annotations of the members of a type of argument packs, or `None`."""
    return getattr(annotation, "__tinote_pack__", None)


def type_of(annotation: Any, default_fp: Scalar = f32, default_ip: Scalar = i32) -> Scalar | Tensor | None:
    """The IR type that an annotation names, or `None`."""
    if isinstance(annotation, Scalar | Tensor):
        return annotation
    if annotation is float:
        return default_fp
    if annotation is int:
        return default_ip
    if annotation is bool:
        return u1
    ask = getattr(annotation, "__tinote_type__", None)
    found = ask() if callable(ask) else None
    return found if isinstance(found, Scalar | Tensor) else None
