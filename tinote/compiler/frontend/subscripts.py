"""Parts of things: elements of fields, components of vectors, items of lists, slices, attributes."""

from __future__ import annotations

import ast
import difflib
import types
from itertools import product
from math import prod
from typing import Any

from tinote.compiler.frontend import structs, tensors, wholes
from tinote.compiler.frontend.arithmetic import tensor
from tinote.compiler.frontend.descriptions import describe
from tinote.compiler.frontend.emitter import Emitter
from tinote.compiler.frontend.values import (
    ArrayValue,
    BoundMethod,
    MemoryPlace,
    PartPlace,
    Place,
    StaticTensor,
    StructValue,
    Value,
)
from tinote.compiler.protocol import (
    CaptureKind,
    buffer_of,
    constant_rows,
    function_of,
    space_of,
)
from tinote.errors import KernelNameError, TinoteError
from tinote.ir import primitives as p
from tinote.ir.nodes import Atom, Buffer, Lit
from tinote.ir.types import Scalar, i32

__all__ = ["Subscripts"]

#: Modules whose functions and submodules stay what they are.
_FIXED_MODULES = ("tinote", "math", "numpy")
#: What a NumPy array tells of its shape, as in Python.
_ARRAY_SHAPE = ("shape", "ndim", "size")


class Subscripts(Emitter):
    """The emitter that knows subscripts and attributes."""

    def subscript(self, node: ast.Subscript) -> Any:
        base = self.reference(node.value)
        if isinstance(base, Place | Value | StaticTensor):
            return self._component(base, node.slice)
        buffer = buffer_of(base)
        if buffer is not None:
            return self._element(buffer, node.slice)
        space = space_of(base)
        if space is not None:
            return wholes.element_of(self, base, self._element(space, node.slice))
        constant = self.static_tensor(base)
        if constant is not None:
            rows = constant_rows(base)
            if rows is None or isinstance(node.slice, ast.Tuple | ast.Slice):
                return self._component(constant, node.slice)
            row = self._item(rows, node.slice)
            return StaticTensor.nested(row)
        if base is None:
            self.error("this is None and cannot be indexed")
        if isinstance(base, tuple | list):
            return self._item(base, node.slice)
        if isinstance(base, str | dict | range):
            key = self._static_slice(node.slice) if isinstance(node.slice, ast.Slice) else self.evaluate(node.slice)
            try:
                return self.outside(base[key])
            except (LookupError, TypeError) as error:
                what = "the dictionary" if isinstance(base, dict) else describe(base)
                why = "" if isinstance(error, KeyError) else f": {error}"
                self.error(
                    f"{what} has no item {key!r}{why}", "what a kernel changes lives in fields" if not why else ""
                )
        if type(base).__module__.partition(".")[0] in ("numpy", "torch"):
            self.error(
                f"{describe(base)} cannot be read in a kernel",
                "pass it as an argument, or copy it to a field; small arrays of one or two dimensions are constants",
            )
        self.error(f"{describe(base)} cannot be indexed")

    def indices(self, node: ast.expr) -> list[tuple[Any, ast.expr]]:
        """The parts of a subscript with their nodes; vectors are spread out."""
        found: list[tuple[Any, ast.expr]] = []
        for part in node.elts if isinstance(node, ast.Tuple) else [node]:
            if isinstance(part, ast.Slice):
                self.unsupported("a slice of a field", "index one element", part)
            if isinstance(part, ast.Starred):
                part = part.value
            front = self.evaluate(part)
            if isinstance(front, tuple | list) or (self.is_value(front) and self.shape(front)):
                with self.at(part):
                    found += [(component, part) for component in self.components(front)]
            else:
                found.append((front, part))
        return found

    def _element(self, buffer: Buffer, node: ast.expr) -> MemoryPlace:
        """One element of a field."""
        parts = self.indices(node)
        if buffer.rank == 0:
            if not parts or (len(parts) == 1 and parts[0][0] is None):
                return wholes.memory_place(self, buffer, ())
            self.error(
                f"field `{buffer.name}` has no dimensions, and is indexed with {len(parts)}",
                f"its only element is `{buffer.name}[None]`",
                node,
            )
        if len(parts) == 1 and parts[0][0] is None:
            self.error(
                f"field `{buffer.name}` has {_dimensions(buffer.rank)}, and is indexed with None",
                f"write `{buffer.name}[{_letters(buffer.rank)}]`",
                node,
            )
        if len(parts) != buffer.rank:
            hint = f"write `{buffer.name}[{_letters(buffer.rank)}]`"
            if buffer.element and len(parts) > buffer.rank:
                element = f"{buffer.name}[{_letters(buffer.rank)}][{_letters(len(buffer.element), buffer.rank)}]"
                hint = f"components come in brackets of their own: `{element}`"
            self.error(
                f"field `{buffer.name}` has {_dimensions(buffer.rank)}, and is indexed with {len(parts)}", hint, node
            )
        index = [self._index(front, part) for front, part in parts]
        return wholes.memory_place(self, buffer, self._from_zero(buffer, index))

    def _from_zero(self, buffer: Buffer, index: list[Atom]) -> tuple[Atom, ...]:
        """An index as memory counts it, for a field whose first index is another."""
        for axis, first in enumerate(buffer.offset):
            found = index[axis]
            if isinstance(found, Lit):
                index[axis] = self.index_atom(int(found.value) - first)
            elif first:
                assert isinstance(found.type, Scalar)
                index[axis] = self.prim(p.sub, Value(found), Value(Lit(first, found.type))).atom
        return tuple(index)

    def _index(self, front: Any, node: ast.expr) -> Atom:
        with self.at(node):
            return self.index_atom(front)

    def _component(self, base: Any, node: ast.expr) -> Any:
        """One component of a vector or matrix, or several by slices."""
        shape = self.shape(base)
        if not shape:
            self.error(f"{describe(base)} has no components to index")
        parts = node.elts if isinstance(node, ast.Tuple) else [node]
        if any(isinstance(part, ast.Slice) for part in parts):
            return self._slices(base, shape, parts, node)
        found = self.indices(node)
        if len(found) != len(shape):
            hint = "rows and columns stand in one pair of brackets: `m[i, j]`" if len(shape) == 2 else ""
            self.error(f"{describe(base)} is indexed with {len(found)}", hint, node)
        fixed = [self._within(front, extent, part) for (front, part), extent in zip(found, shape, strict=True)]
        if all(k is not None for k in fixed):
            atoms: tuple[Atom, ...] = tuple([Lit(k or 0, i32) for k in fixed])
            if isinstance(base, StaticTensor):
                position = 0
                for k, extent in zip(fixed, shape, strict=True):
                    position = position * extent + (k or 0)
                return base.components[position]
        else:
            atoms = tuple([self._index(front, part) for front, part in found])
        if isinstance(base, PartPlace) and not all(k is not None for k in fixed):
            base = base.load(self.b)
        if isinstance(base, Place):
            return base.component(atoms)
        if all(k is not None for k in fixed):
            return self.component(self.as_value(base), tuple([k or 0 for k in fixed]))
        return Value(self.b.extract(self.as_value(base).atom, *atoms))

    def _within(self, front: Any, extent: int, node: ast.expr) -> int | None:
        """A constant component index, counted from the end when negative; `None` when it is known at run time only."""
        if isinstance(front, Value) and isinstance(front.atom, Lit) and front.dtype.kind in "iu":
            front = int(front.atom.value)
        if not isinstance(front, int) or isinstance(front, bool):
            return None
        if not -extent <= front < extent:
            self.error(
                f"component {front} is outside of a dimension of {extent}",
                f"components count from 0 to {extent - 1}",
                node,
            )
        return front % extent

    def _static_slice(self, node: ast.Slice) -> slice:
        bounds = [
            None if part is None else self.static_int(self.evaluate(part), "a bound of a slice")
            for part in (node.lower, node.upper, node.step)
        ]
        if bounds[2] == 0:
            self.error("the step of a slice must not be zero", node=node)
        return slice(*bounds)

    def _slices(self, base: Any, shape: tuple[int, ...], parts: list[ast.expr], node: ast.expr) -> Any:
        if len(parts) != len(shape):
            self.error(f"{describe(base)} is sliced with {len(parts)}", node=node)
        chosen: list[list[Atom]] = []
        kept: list[int] = []
        for part, extent in zip(parts, shape, strict=True):
            if isinstance(part, ast.Slice):
                chosen.append([Lit(k, i32) for k in range(extent)[self._static_slice(part)]])
                kept.append(len(chosen[-1]))
            else:
                front = self.evaluate(part)
                position = self._within(front, extent, part)
                chosen.append([self._index(front, part) if position is None else Lit(position, i32)])
        if 0 in kept:
            self.error("this slice is empty", node=node)
        positions = list(product(*chosen))
        literal = [[int(k.value) for k in position if isinstance(k, Lit)] for position in positions]
        fixed = len(literal[0]) == len(shape)
        if isinstance(base, PartPlace) and not fixed:
            base = base.load(self.b)
        if isinstance(base, Place):
            return PartPlace(base, positions, tuple(kept))
        if not fixed:
            whole = self.as_value(base)
            found = [Value(self.b.extract(whole.atom, *position)) for position in positions]
            return self.pack(found, tuple(kept))
        components = self.components(base)
        flat = [components[sum(k * prod(shape[axis + 1 :]) for axis, k in enumerate(p))] for p in literal]
        return tensor(self, flat, tuple(kept))

    def _item(self, base: Any, node: ast.expr) -> Any:
        """An item of a tuple or list; with a run-time index, of one that holds numbers."""
        if isinstance(node, ast.Slice):
            return base[self._static_slice(node)]
        key = self.evaluate(node)
        if isinstance(key, tuple) and isinstance(base[0] if base else None, tuple | list):
            for part in key:
                base = base[self.static_int(part, "an index of a list")]
            return base
        position = self._within(key, len(base), node) if base else self.error("an empty list has no items")
        if position is not None:
            found = base[position]
            return self.outside(found) if self.is_static(found) else found
        if not all(self.is_value(i) and not self.shape(i) for i in base):
            self.error("an index into a list of other things than numbers must be known at compile time", node=node)
        if not isinstance(key, Value):
            self.error(f"an index must be an integer, not {describe(key)}", node=node)
        return Value(self.b.extract(self.tensor_of(base).atom, self._index(key, node)))

    def attribute(self, node: ast.Attribute) -> Any:
        base = self.reference(node.value)
        name = node.attr
        if isinstance(base, StructValue):
            return structs.member(self, base, name)
        constant = self.static_tensor(base)
        if constant is not None and name in _ARRAY_SHAPE and hasattr(base, name):
            return getattr(base, name)
        if isinstance(base, Place | Value) or constant is not None:
            return tensors.attribute(self, base if constant is None else constant, name)
        if isinstance(base, ArrayValue):
            return self._array_attribute(base, name)
        if name == "fill" and space_of(base) is not None:
            return BoundMethod(base, name)
        if isinstance(base, tuple | list) and self.is_value(base) and name not in getattr(base, "_fields", ()):
            self.error(f"{describe(base)} has no attribute `{name}`", "make a vector of it with `ti.Vector([…])`")
        try:
            found = getattr(base, name)
        except TinoteError:
            raise
        except AttributeError:
            close = difflib.get_close_matches(name, [k for k in dir(base) if not k.startswith("_")], 1)
            owner = f"module `{base.__name__}`" if isinstance(base, types.ModuleType) else describe(base)
            hint = f"did you mean `{close[0]}`?" if close else ""
            if not close and space_of(base) is not None:
                hint = "its elements are read one by one: loop over them, as in `for i in x`"
            elif not close and isinstance(node.ctx, ast.Store):
                hint = "what a kernel changes lives in fields and local variables"
            self.error(f"{owner} has no attribute `{name}`", hint, kind=KernelNameError)
        except Exception as error:
            self.error(f"reading `{ast.unparse(node)}` at compile time failed: {type(error).__name__}: {error}")
        buffer = buffer_of(base)
        if buffer is not None:
            if found is None and name in ("grad", "dual"):
                self.error(
                    f"field `{buffer.name}` has no {'gradient' if name == 'grad' else 'dual'}",
                    f"declare it with `needs_{name}=True`",
                )
            return found
        if isinstance(base, types.ModuleType):
            # What the user's own modules hold may change: a module that is loaded again has new functions.
            fixed = base.__name__.partition(".")[0] in _FIXED_MODULES
            plain = buffer_of(found) is None and function_of(found) is None
            if fixed and plain and (callable(found) or isinstance(found, types.ModuleType)):
                return found
        elif callable(found) and not hasattr(found, "__tinote_function__") and buffer_of(found) is None:
            return found
        return self.captured(CaptureKind.ATTRIBUTE, base, name, found)

    def _array_attribute(self, array: ArrayValue, name: str) -> Any:
        buffer = array.buffer
        if name == "shape":
            extents = [self.b.extent(buffer, axis) for axis in range(buffer.rank)]
            return tuple([int(x.value) if isinstance(x, Lit) else Value(x) for x in extents])
        if name in ("grad", "dual"):
            other = buffer.adjoint if name == "grad" else buffer.tangent
            if other is None:
                self.error(
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
        self.error(
            f"array `{buffer.name}` has no attribute `{name}` in a kernel",
            "it has `shape`, `dtype`, `grad` and `fill`",
            kind=KernelNameError,
        )


def _dimensions(rank: int) -> str:
    return f"{rank} dimension{'' if rank == 1 else 's'}"


def _letters(count: int, start: int = 0) -> str:
    return ", ".join("ijklmnpqrs"[start : start + count])
