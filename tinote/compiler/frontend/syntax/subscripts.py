"""Subscripts: elements of fields, components of vectors and matrices, items of lists, slices."""

from __future__ import annotations

import ast
from itertools import product
from math import prod
from typing import Any

from tinote.compiler.frontend.calls.dispatch import call_object
from tinote.compiler.frontend.conversions import index_atom, static_int
from tinote.compiler.frontend.descriptions import describe
from tinote.compiler.frontend.emitter import Emitter, Expressions
from tinote.compiler.frontend.expressions import elements
from tinote.compiler.frontend.expressions.arithmetic import apply, tensor
from tinote.compiler.frontend.expressions.sparse_functions import SparseList, is_list
from tinote.compiler.frontend.expressions.sparse_places import located
from tinote.compiler.frontend.functions.callees import annotation_value
from tinote.compiler.frontend.python.names import captured, outside
from tinote.compiler.frontend.values import (
    ArrayValue,
    PackValue,
    PartPlace,
    Place,
    StaticTensor,
    Value,
    has_getitem,
    is_number,
)
from tinote.compiler.protocol import AddsAt, adds_at, buffer_of, constant_rows, space_of
from tinote.compiler.pysource.names import CaptureKind
from tinote.errors import KernelSubscriptError, Note
from tinote.ir import primitives as p
from tinote.ir.nodes import Atom, Buffer, Check, FaultKind, Lit
from tinote.ir.types import Scalar, i32


def subscript(e: Emitter, node: ast.Subscript) -> Any:
    base = e.reference(node.value)
    if isinstance(base, Place | Value | StaticTensor):
        _refuse_hidden_field(e, base, node.value)
        return _component(e, base, node.slice)
    buffer = buffer_of(base)
    if buffer is not None:
        return _element(e, buffer, node.slice, base, clamps=isinstance(base, ArrayValue) and base.clamps)
    space = space_of(base)
    if space is not None:
        found = _element(e, space, node.slice, base)
        return found if isinstance(found, SparseList) else elements.element_of(e, base, found)
    constant = e.static_tensor(base)
    if constant is not None:
        rows = constant_rows(base)
        if rows is None or isinstance(node.slice, ast.Tuple | ast.Slice):
            return _component(e, constant, node.slice)
        row = _item(e, rows, node.slice)
        return StaticTensor.nested(row)
    if gathers(base):
        e.error(
            f"`{ast.unparse(node.value)}` is filled with `+=` and `-=` only",
            "entries that are added at one place sum up; `clear()` of the builder forgets what was added",
        )
    if isinstance(base, Scalar):
        return annotation_value(e, e.frame.source, node)
    if base is None:
        e.error("this is None and cannot be indexed")
    if isinstance(base, tuple | list):
        return _item(e, base, node.slice)
    if isinstance(base, str | dict | range):
        key = _static_slice(e, node.slice) if isinstance(node.slice, ast.Slice) else e.evaluate(node.slice)
        if isinstance(base, dict) and not (e.is_static(base) and e.is_static(key)):
            return _looked_up(e, base, key)
        try:
            return outside(e, base[key])
        except (LookupError, TypeError) as error:
            what = "the dictionary" if isinstance(base, dict) else describe(base)
            why = "" if isinstance(error, KeyError) else f": {error}"
            e.error(
                f"{what} has no item {key!r}{why}",
                "kernels can only modify fields and local variables" if not why else "",
            )
    if type(base).__module__.partition(".")[0] in ("numpy", "torch"):
        e.error(
            f"{describe(base)} cannot be read in a kernel",
            "pass it as an argument, or copy it to a field; small arrays of one or two dimensions are constants",
        )
    if has_getitem(base):
        if isinstance(node.slice, ast.Slice):
            e.unsupported("a slice of an object of a class of your own", node=node.slice)
        getitem = captured(e, CaptureKind.ATTRIBUTE, base, "__getitem__", base.__getitem__)
        return call_object(e, node, getitem, e.evaluate(node.slice))
    e.error(f"{describe(base)} cannot be indexed")


def gathers(base: Any) -> AddsAt | None:
    """The functions that add entries to the indexed object, if it collects entries."""
    return base.adds_at if isinstance(base, PackValue) else adds_at(base)


def indices(e: Emitter, node: ast.expr) -> list[tuple[Any, ast.expr]]:
    """The parts of a subscript with their nodes; vectors are unpacked."""
    found: list[tuple[Any, ast.expr]] = []
    for part in node.elts if isinstance(node, ast.Tuple) else [node]:
        if isinstance(part, ast.Slice):
            e.unsupported("a slice of a field", "index one element", part)
        if isinstance(part, ast.Starred):
            part = part.value
        front = e.evaluate(part)
        if isinstance(front, tuple | list) or (e.is_value(front) and e.shape(front)):
            with e.at(part):
                found += [(component, part) for component in e.components(front)]
        else:
            found.append((front, part))
    return found


def _element(e: Emitter, buffer: Buffer, node: ast.expr, base: Any, *, clamps: bool = False) -> Any:
    """One element of a field or array; `clamps`: the nearest one for an index out of range. Of a field of lists, the
    list for an index without its last dimension.
    """
    parts = indices(e, node)
    sparsity = buffer.sparsity
    rank = buffer.rank if sparsity is None else len(sparsity.shape)
    if is_list(sparsity) and len(parts) == rank - 1:
        above = None if sparsity is None else sparsity.above_list()
        assert above is not None
        return SparseList(base, located(e, above, [_index(e, front, part) for front, part in parts], buffer.name))
    if rank == 0:
        if not parts or (len(parts) == 1 and parts[0][0] is None):
            return elements.memory_place(e, buffer, ())
        e.error(
            f"field `{buffer.name}` has no dimensions, and is indexed with {len(parts)}",
            f"its only element is `{buffer.name}[None]`",
            node,
            KernelSubscriptError,
        )
    if len(parts) == 1 and parts[0][0] is None:
        e.error(
            f"field `{buffer.name}` has {_dimensions(rank)}, and is indexed with None",
            f"write `{buffer.name}[{_letters(rank)}]`",
            node,
            KernelSubscriptError,
        )
    if len(parts) != rank:
        hint = f"write `{buffer.name}[{_letters(rank)}]`"
        if buffer.element and len(parts) > rank:
            element = f"{buffer.name}[{_letters(rank)}][{_letters(len(buffer.element), rank)}]"
            hint = f"components come in brackets of their own: `{element}`"
        problem = f"field `{buffer.name}` has {_dimensions(rank)}, and is indexed with {len(parts)}"
        e.error(problem, hint, node, KernelSubscriptError)
    index = [_index(e, front, part) for front, part in parts]
    if sparsity is not None:
        return elements.memory_place(e, buffer, located(e, sparsity, index, buffer.name))
    if clamps:
        index = [_clamped(e, i, e.b.extent(buffer, axis)) for axis, i in enumerate(index)]
    return elements.memory_place(e, buffer, _from_zero(e, buffer, index))


def _clamped(e: Emitter, index: Atom, extent: Atom) -> Atom:
    """The number nearest to `index` of those from zero up to `extent`."""
    last = e.prim(p.sub, Value(extent), 1)
    return e.prim(p.maximum, e.prim(p.minimum, Value(index), last), 0).atom


def _from_zero(e: Emitter, buffer: Buffer, index: list[Atom]) -> tuple[Atom, ...]:
    """A zero-based index, for a field whose first index is not zero."""
    for axis, first in enumerate(buffer.offset):
        found = index[axis]
        if isinstance(found, Lit):
            index[axis] = index_atom(e, int(found.value) - first)
        elif first:
            assert isinstance(found.type, Scalar)
            index[axis] = e.prim(p.sub, Value(found), Value(Lit(first, found.type))).atom
    return tuple(index)


def _index(e: Emitter, front: Any, node: ast.expr) -> Atom:
    with e.at(node):
        return index_atom(e, front)


def _refuse_hidden_field(e: Emitter, base: Any, node: ast.expr) -> None:
    """Refuse to index a number whose variable hides the field of the same name."""
    if not isinstance(node, ast.Name) or e.shape(base):
        return
    binding, name = e.scope.find(node.id), node.id
    if binding is not None and space_of(e.frame.source.globals.get(name)) is not None:
        e.error(
            f"`{name}` is {describe(base)} here, a variable of the kernel, which hides the field of this name",
            "give the variable another name",
            notes=[Note(f"`{name}` is assigned here", binding.span)],
        )


def _component(e: Emitter, base: Any, node: ast.expr) -> Any:
    """One component of a vector or matrix, or several by slices."""
    shape = e.shape(base)
    if not shape:
        e.error(f"{describe(base)} has no components to index")
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    if any(isinstance(part, ast.Slice) for part in parts):
        return _slices(e, base, shape, parts, node)
    found = indices(e, node)
    if len(found) != len(shape):
        hint = "rows and columns stand in one pair of brackets: `m[i, j]`" if len(shape) == 2 else ""
        e.error(f"{describe(base)} is indexed with {len(found)}", hint, node, KernelSubscriptError)
    fixed = [_within(e, front, extent, part) for (front, part), extent in zip(found, shape, strict=True)]
    if all(k is not None for k in fixed):
        atoms: tuple[Atom, ...] = tuple([Lit(k or 0, i32) for k in fixed])
        if isinstance(base, StaticTensor):
            position = 0
            for k, extent in zip(fixed, shape, strict=True):
                position = position * extent + (k or 0)
            return base.components[position]
    else:
        atoms = tuple([_index(e, front, part) for front, part in found])
    if isinstance(base, PartPlace) and not all(k is not None for k in fixed):
        base = base.load(e.b)
    if isinstance(base, Place):
        return base.component(atoms)
    if all(k is not None for k in fixed):
        return e.component(e.as_value(base), tuple([k or 0 for k in fixed]))
    return Value(e.b.extract(e.as_value(base).atom, *atoms))


def _within(e: Emitter, front: Any, extent: int, node: ast.expr) -> int | None:
    """A constant component index, counted from the end when negative; `None` when it is known at run time only."""
    if isinstance(front, Value) and isinstance(front.atom, Lit) and front.dtype.kind in "iu":
        front = int(front.atom.value)
    if not isinstance(front, int) or isinstance(front, bool):
        return None
    if not -extent <= front < extent:
        e.error(
            f"component {front} is outside of a dimension of {extent}",
            f"components count from 0 to {extent - 1}",
            node,
            KernelSubscriptError,
        )
    return front % extent


def _static_slice(e: Emitter, node: ast.Slice) -> slice:
    bounds = [
        None if part is None else static_int(e, e.evaluate(part), "a bound of a slice")
        for part in (node.lower, node.upper, node.step)
    ]
    if bounds[2] == 0:
        e.error("the step of a slice must not be zero", node=node)
    return slice(*bounds)


def _slices(e: Emitter, base: Any, shape: tuple[int, ...], parts: list[ast.expr], node: ast.expr) -> Any:
    if len(parts) != len(shape):
        e.error(f"{describe(base)} is sliced with {len(parts)}", node=node)
    chosen: list[list[Atom]] = []
    kept: list[int] = []
    for part, extent in zip(parts, shape, strict=True):
        if isinstance(part, ast.Slice):
            chosen.append([Lit(k, i32) for k in range(extent)[_static_slice(e, part)]])
            kept.append(len(chosen[-1]))
        else:
            front = e.evaluate(part)
            position = _within(e, front, extent, part)
            chosen.append([_index(e, front, part) if position is None else Lit(position, i32)])
    if 0 in kept:
        e.error("this slice is empty", node=node)
    positions = list(product(*chosen))
    literal = [[int(k.value) for k in position if isinstance(k, Lit)] for position in positions]
    fixed = len(literal[0]) == len(shape)
    if isinstance(base, PartPlace) and not fixed:
        base = base.load(e.b)
    if isinstance(base, Place):
        return PartPlace(base, positions, tuple(kept))
    if not fixed:
        whole = e.as_value(base)
        found = [Value(e.b.extract(whole.atom, *position)) for position in positions]
        return e.pack(found, tuple(kept))
    components = e.components(base)
    flat = [components[sum(k * prod(shape[axis + 1 :]) for axis, k in enumerate(p))] for p in literal]
    return tensor(e, flat, tuple(kept))


def _item(e: Emitter, base: Any, node: ast.expr) -> Any:
    """An item of a tuple or list; with a run-time index, of one that holds numbers."""
    if isinstance(node, ast.Slice):
        return base[_static_slice(e, node)]
    key = e.evaluate(node)
    if isinstance(key, tuple) and isinstance(base[0] if base else None, tuple | list):
        for part in key:
            base = base[static_int(e, part, "an index of a list")]
        return base
    position = _within(e, key, len(base), node) if base else e.error("an empty list has no items")
    if position is not None:
        found = base[position]
        return outside(e, found) if e.is_static(found) else found
    if not all(e.is_value(i) and not e.shape(i) for i in base):
        e.error("an index into a list of other things than numbers must be known at compile time", node=node)
    if not isinstance(key, Value):
        e.error(f"an index must be an integer, not {describe(key)}", node=node)
    return Value(e.b.extract(e.tensor_of(base).atom, _index(e, key, node)))


def _looked_up(e: Emitter, table: dict[Any, Any], key: Any) -> Value:
    """An item of a dictionary where the key, or a key in it, is known only at run time: the last one of equal keys, as
    in Python. A missing key stops the launch.
    """
    entries = [(k, e.force(v)) for k, v in table.items() if isinstance(k, Value) or is_number(k)]
    if not entries or not e.is_value(key) or not all(e.is_value(v) for _, v in entries):
        e.error(
            "a dictionary that is indexed at run time needs numbers as keys, and numbers or vectors as values",
            "a field can also hold the table",
        )
    known: Any = False
    found: Any = None
    for k, v in entries:
        same = apply(e, p.eq, k, key)
        found = v if found is None else apply(e, p.select, same, v, found)
        known = apply(e, p.or_, known, same)
    text = "the dictionary has no item with this key"
    e.b.emit(Check(FaultKind.ASSERT, (e.as_value(known).atom,), text, 0, e.b.loc))
    return e.as_value(found)


def _dimensions(rank: int) -> str:
    return f"{rank} dimension{'' if rank == 1 else 's'}"


def _letters(count: int, start: int = 0) -> str:
    return ", ".join("ijklmnpqrstuvw"[start : start + count])


EXPRESSIONS: Expressions = {ast.Subscript: subscript}
