"""Attributes: members of structs, components and methods of vectors, attributes of fields, arrays and Python
objects.
"""

from __future__ import annotations

import ast
import types
from typing import Any

from tinote.compiler.frontend.descriptions import describe
from tinote.compiler.frontend.emitter import Emitter, Expressions
from tinote.compiler.frontend.expressions import structs, tensors
from tinote.compiler.frontend.expressions.sparse_functions import LIST_METHODS, ListMethod, SparseList, is_list
from tinote.compiler.frontend.python.names import captured, outside
from tinote.compiler.frontend.values import ArrayValue, BoundMethod, Place, StructValue, UnboundMethod, Value
from tinote.compiler.function_source import function_of
from tinote.compiler.protocol import buffer_of, builtin_of, members_of, space_of
from tinote.compiler.pysource.names import CaptureKind
from tinote.errors import KernelNameError, TinoteError, closest
from tinote.ir.nodes import Lit

#: Modules whose functions and submodules never change.
_FIXED_MODULES = ("tinote", "math", "numpy")
_MADE_ANEW = types.BuiltinMethodType | types.MethodWrapperType
#: Attributes of a NumPy array's shape, as in Python.
_ARRAY_SHAPE = ("shape", "ndim", "size")


def attribute(e: Emitter, node: ast.Attribute) -> Any:
    base = e.reference(node.value)
    name = node.attr
    if isinstance(base, StructValue):
        return structs.member(e, base, name)
    constant = e.static_tensor(base)
    if constant is not None and name in _ARRAY_SHAPE and hasattr(base, name):
        return getattr(base, name)
    if isinstance(base, Place | Value) or constant is not None:
        return tensors.attribute(e, base if constant is None else constant, name)
    if isinstance(base, ArrayValue):
        return _array_attribute(e, base, name)
    if name == "fill" and space_of(base) is not None and name not in (members_of(base) or ()):
        return BoundMethod(base, name)
    if isinstance(base, SparseList) or (name in LIST_METHODS and _has_lists(base)):
        if name not in LIST_METHODS:
            e.error(f"a list has no attribute `{name}`", f"it has {', '.join(LIST_METHODS)}", kind=KernelNameError)
        return ListMethod(base, name)
    kind = getattr(base, "__tinote_name__", None)
    if kind in ("Vector", "Matrix") and name in tensors.METHODS:
        return UnboundMethod(kind, name)
    if isinstance(base, tuple | list) and e.is_value(base) and (type(base) in (tuple, list) or not hasattr(base, name)):
        e.error(f"{describe(base)} has no attribute `{name}`", "make a vector of it with `ti.Vector([…])`")
    try:
        found = getattr(base, name)
    except TinoteError:
        raise
    except AttributeError:
        close = closest(name, [k for k in dir(base) if not k.startswith("_")])
        owner = f"module `{base.__name__}`" if isinstance(base, types.ModuleType) else describe(base)
        hint = f"did you mean `{close}`?" if close else ""
        if not close and space_of(base) is not None:
            hint = "its elements are read one by one: loop over them, as in `for i in x`"
        elif not close and isinstance(node.ctx, ast.Store):
            hint = "kernels can only modify fields and local variables"
        e.error(f"{owner} has no attribute `{name}`", hint, kind=KernelNameError)
    except Exception as error:
        e.error(f"reading `{ast.unparse(node)}` at compile time failed: {type(error).__name__}: {error}")
    if _is_item(base, name, found):
        return outside(e, found) if e.is_static(found) else e.force(found)
    buffer = buffer_of(base)
    if buffer is not None:
        if found is None and name in ("grad", "dual"):
            e.error(
                f"field `{buffer.name}` has no {'gradient' if name == 'grad' else 'dual'}",
                f"declare it with `needs_{name}=True`",
            )
        return found
    if isinstance(base, types.ModuleType):
        # Attributes of the user's own modules may change: a reloaded module has new functions.
        fixed = base.__name__.partition(".")[0] in _FIXED_MODULES
        plain = buffer_of(found) is None and function_of(found) is None
        if fixed and plain and (callable(found) or isinstance(found, types.ModuleType)):
            return found
    elif callable(found) and not hasattr(found, "__tinote_function__") and buffer_of(found) is None:
        # An object that Python creates at each lookup is identified by its owner.
        of_users = not isinstance(found, _MADE_ANEW) and builtin_of(found) is None
        return captured(e, CaptureKind.ATTRIBUTE, base, name, found) if of_users else found
    return captured(e, CaptureKind.ATTRIBUTE, base, name, found)


def _is_item(base: Any, name: str, found: Any) -> bool:
    """Whether an attribute is an item of a named tuple, which stays what it is."""
    names = getattr(base, "_fields", ()) if isinstance(base, tuple) else ()
    return name in names and tuple.__getitem__(base, names.index(name)) is found


def _has_lists(base: Any) -> bool:
    space = space_of(base)
    return space is not None and is_list(space.sparsity)


def _array_attribute(e: Emitter, array: ArrayValue, name: str) -> Any:
    buffer = array.buffer
    if name == "shape":
        extents = [e.b.extent(buffer, axis) for axis in range(buffer.rank)]
        return tuple([int(x.value) if isinstance(x, Lit) else Value(x) for x in extents])
    if name in ("grad", "dual"):
        other = buffer.adjoint if name == "grad" else buffer.tangent
        if other is None:
            e.error(
                f"array `{buffer.name}` has no {'gradient' if name == 'grad' else 'dual'}",
                f"make it with `needs_{name}=True`",
            )
        return ArrayValue(other)
    if name == "dtype":
        return buffer.dtype
    if name == "fill":
        return BoundMethod(array, name)
    if name in ("n", "m") and buffer.element:
        return buffer.element[0] if name == "n" else (buffer.element[1] if len(buffer.element) > 1 else 1)
    e.error(
        f"array `{buffer.name}` has no attribute `{name}` in a kernel",
        "it has `shape`, `dtype`, `grad` and `fill`",
        kind=KernelNameError,
    )


EXPRESSIONS: Expressions = {ast.Attribute: attribute}
