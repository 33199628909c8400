"""The protocol by which Python objects represent themselves in kernels.

The front end never imports the language's classes. It asks an object for one of these attributes:

    __tinote_buffer__() -> Buffer             memory that a kernel may index: a field, an ndarray
    __tinote_value__() -> nested tuples       a captured constant vector or matrix, as Python numbers
    __tinote_captured__() -> float            a number that may refuse to become a constant of the code
    __tinote_function__: FunctionSource       a device function, inlined where it is called
    __tinote_self__                           the object that a device function is bound to, if any
    __tinote_replacement__                    the object that holds the gradient of a device function in `gradient`, if
    it has one __tinote_kernel__                         a kernel: calling one from a kernel is refused
    __tinote_type__() -> Scalar | Tensor      a type annotation; called in a kernel, a constructor
    __tinote_name__                           the name of a built-in; the front end expands it (`builtins.BUILTINS`),
                                              unless it says that it is one of these:
    __tinote_primitive__: Primitive           a built-in that emits a primitive
    __tinote_composed__() -> FunctionSource   a built-in that is written in the language itself, inlined
                                              at its calls
    __tinote_space__() -> Buffer              an object that is indexed like this memory, such as a field of structs
    __tinote_sparsity__() -> Sparsity | None  a level of a layout tree, if cells of it can be inactive: how they lie
    __tinote_below__() -> tuple of Buffers    a level of a tree with sparse levels: the memory of the fields in it
    __tinote_axes__() -> dict                 a field or level: its extent along each axis of the layout tree
    __tinote_component__() -> tuple of ints   with a space: one component of each of its elements
    __tinote_members__() -> dict              a struct by its members: of fields (with a space), or of constants
    __tinote_struct__() -> StructInfo         a type of structs; called in a kernel, a constructor
    __tinote_domain__() -> tuple              an `ndrange` that was made in Python: its axes (first, end)
    __tinote_grouped__                        the domain or field that a `grouped` made in Python is of
    __tinote_static__                         a Python function that kernels may call with constants, at compile time
    __tinote_error__(span) -> Exception       what is left out: the error of a call in a kernel
    __tinote_add_at__: (int, f, g)            on a class: its objects collect entries, `A[i, j] += v`; with how many
                                              indices, and the device functions that add and subtract, `f(A, i, j, v)`
    __tinote_pack__                           the annotation of a parameter that is several: the annotations by name
    __tinote_template__                       the annotation of a parameter that is passed unchanged
    __tinote_array__                          the annotation of a parameter that is memory known only at launch
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any, NamedTuple

from tinote.compiler.pysource import origins
from tinote.ir.nodes import Buffer
from tinote.ir.sparsity import Sparsity
from tinote.ir.types import BY_NUMPY_NAME, Scalar, Tensor, f32, i32, u1


class StructInfo(NamedTuple):
    """A type of structs: the type of each member, in order, its device functions, whose first parameter is the struct,
    and the names of the methods that only Python can call. `owner`: the class whose objects they are, and whose
    attributes they have, if it is not a type of structs.
    """

    name: str
    members: Mapping[str, Scalar | Tensor | StructInfo]
    methods: Mapping[str, Any]
    python_methods: tuple[str, ...] = ()
    owner: Any = None

    def leaves(self) -> tuple[Scalar | Tensor, ...]:
        """The types of all numbers, vectors and matrices in it, in order."""
        found: list[Scalar | Tensor] = []
        for t in self.members.values():
            found += t.leaves() if isinstance(t, StructInfo) else [t]
        return tuple(found)

    @property
    def count(self) -> int:  # pyright: ignore[reportIncompatibleMethodOverride] (nobody counts in the triple)
        """The number of numbers in it."""
        return sum(t.count if isinstance(t, Tensor) else 1 for t in self.leaves())


#: The type of `__tinote_add_at__`.
AddsAt = tuple[int, Any, Any]


def buffer_of(candidate: Any) -> Buffer | None:
    """The memory that an object represents, if any."""
    ask = getattr(candidate, "__tinote_buffer__", None)
    return None if ask is None or isinstance(candidate, type) else ask()


def space_of(candidate: Any) -> Buffer | None:
    """The memory whose indices an object has: its own, or that which it represents."""
    found = buffer_of(candidate)
    if found is not None:
        return found
    ask = getattr(candidate, "__tinote_space__", None)
    return None if ask is None or isinstance(candidate, type) else ask()


def sparsity_of(candidate: Any) -> Sparsity | None:
    """How the cells of a field or level lie, if some of them can be inactive."""
    ask = getattr(candidate, "__tinote_sparsity__", None)
    if ask is not None and not isinstance(candidate, type):
        return ask()
    space = space_of(candidate)
    return None if space is None else space.sparsity


def below_of(candidate: Any) -> tuple[Buffer, ...] | None:
    """The memory of the fields in the cells of a level of a tree with sparse levels; None for what is no such level."""
    ask = getattr(candidate, "__tinote_below__", None)
    return None if ask is None or isinstance(candidate, type) else ask()


def component_of(candidate: Any) -> tuple[int, ...] | None:
    """The component of the elements of its space that an object represents, if any."""
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


#: Greatest size of a NumPy array that a kernel reads as a constant, in numbers. Chosen, not measured.
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
    """Whether a value is a NumPy scalar, which never changes."""
    return any((base.__module__, base.__name__) == ("numpy", "generic") for base in type(candidate).__mro__)


def is_small_array(candidate: Any) -> bool:
    """Whether something is a NumPy array that a kernel reads as a constant vector or matrix."""
    return is_constant_array(candidate) and candidate.ndim > 0


def _in_tuples(value: Any) -> Any:
    return tuple([_in_tuples(item) for item in value]) if isinstance(value, list) else value


#: The functions of the language by name, and Python's own functions (`math.sin`, `abs`, …), each with its counterpart
#: in a kernel. Filled by their definitions.
FUNCTIONS: dict[str, Any] = {}
PYTHON_FUNCTIONS: dict[Any, Any] = {}


def builtin_of(candidate: Any) -> Any:
    """The built-in that an object is, or the counterpart of a Python function; `None` for any other object."""
    if isinstance(candidate, types.BuiltinFunctionType):
        return PYTHON_FUNCTIONS.get(candidate)
    return candidate if isinstance(getattr(candidate, "__tinote_name__", None), str) else None


def is_ours(candidate: Any) -> bool:
    """Whether a function, class or object belongs to this package."""
    return origins.is_ours(getattr(candidate, "__module__", None))


def axes_of(candidate: Any) -> tuple[tuple[int, int], ...] | None:
    """The axes of an `ndrange` that was made in Python, or `None`."""
    ask = getattr(candidate, "__tinote_domain__", None)
    return None if ask is None or isinstance(candidate, type) else ask()


def grouped_of(candidate: Any) -> Any:
    """The domain of a `grouped` that was made in Python, or `None`."""
    return getattr(candidate, "__tinote_grouped__", None)


AXES = ("xyzw", "rgba", "stpq")


def swizzle(name: str, count: int) -> tuple[int, ...] | None:
    """The positions that a name such as `x` or `zxy` selects of a vector of `count`, or `None` for any other name."""
    for letters in AXES:
        if name and len(name) <= 4 and all(c in letters for c in name):
            positions = tuple([letters.index(c) for c in name])
            return positions if max(positions) < count else None
    return None


def meant(annotation: Any) -> Any:
    """The meaning of an annotation for a kernel: for `Annotated[np.ndarray, ti.types.ndarray()]`, whose first part is
    for type checkers, the first other part that is one of ours; without any, the first part.
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
    """Whether an annotation requests the argument itself."""
    return getattr(annotation, "__tinote_template__", False) is not False


def adds_at(value: Any) -> AddsAt | None:
    """The functions by which an object collects entries, if it does."""
    return getattr(type(value), "__tinote_add_at__", None)


def is_array(annotation: Any) -> bool:
    """Whether an annotation requests memory that is known only at launch."""
    return getattr(annotation, "__tinote_array__", False) is not False


def pack_of(annotation: Any) -> Mapping[str, Any] | None:
    """The annotations of the members of a type of argument packs, or `None`."""
    return getattr(annotation, "__tinote_pack__", None)


def unit_of(annotation: Any) -> Any:
    """The unit that an annotated type of numbers or vectors has, or `None`."""
    return getattr(annotation, "__tinote_unit__", None)


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
    if isinstance(annotation, type) and annotation.__module__ == "numpy":
        return BY_NUMPY_NAME.get(annotation.__name__)
    ask = getattr(annotation, "__tinote_type__", None)
    found = ask() if callable(ask) else None
    return found if isinstance(found, Scalar | Tensor) else None
