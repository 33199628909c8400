"""Binding of names: new variables, reassigned names, the targets of loops."""

from __future__ import annotations

import ast
from typing import Any

from tinote.compiler.frontend.conversions import strong_value
from tinote.compiler.frontend.descriptions import describe
from tinote.compiler.frontend.emitter import Emitter
from tinote.compiler.frontend.expressions import structs
from tinote.compiler.frontend.expressions.domains import rows
from tinote.compiler.frontend.expressions.places import store
from tinote.compiler.frontend.scopes import ConstantBinding, Variable
from tinote.compiler.frontend.values import CellPlace, MemoryPlace, Place, StructValue, Text, Value, with_items
from tinote.errors import Note
from tinote.ir.nodes import Buffer, BufferKind, Var
from tinote.ir.types import shape_of


def bind_target(e: Emitter, target: ast.expr, front: Any, what: str) -> None:
    """Bind the names of a loop's target to an item and its parts."""
    with e.at(target):
        if isinstance(target, ast.Name):
            e.bind(target.id, front, what)
        elif isinstance(target, ast.Tuple | ast.List):
            parts = unpacked(e, front, len(target.elts))
            for inner, part in zip(target.elts, parts, strict=True):
                bind_target(e, inner, part, what)
        else:
            e.unsupported("a loop target other than names", "loop over a name and assign inside")


def parts_of(e: Emitter, front: Any) -> list[Any] | None:
    """The parts into which a value can be unpacked: items, components, the rows of a matrix; `None` for a number."""
    if isinstance(front, tuple | list):
        return [e.force(item) for item in front]
    return rows(e, front) if e.is_value(front) and e.shape(front) else None


def unpacked(e: Emitter, front: Any, count: int) -> list[Any]:
    """The parts of a value that is assigned to `count` targets."""
    parts = parts_of(e, front)
    if parts is None:
        e.error(f"{describe(front)} cannot be unpacked into {count}")
    if len(parts) != count:
        e.error(f"{len(parts)} values cannot be unpacked into {count} names")
    return parts


def rebind(e: Emitter, binding: ConstantBinding, front: Any) -> bool:
    """Assign a name that stands for a tuple of cells, or for a compile-time object."""
    if _same_structure(e, binding.value, front):
        store_all(e, binding.value, front, f"`{binding.name}`")
        return True
    if binding.depth != e.depth:
        e.error(
            f"`{binding.name}` stands for {describe(binding.value)} at compile time, "
            "and cannot change where a condition or loop decides at run time",
            "use a number, a vector or a field",
            notes=[Note(f"`{binding.name}` is assigned here", binding.span)],
        )
    binding.value = front if not e.is_value(front) or isinstance(front, tuple | list) else strong_value(e, front)
    return True


def _same_structure(e: Emitter, cells: Any, front: Any) -> bool:
    if isinstance(cells, Place):
        return e.is_value(front) and e.shape(front) in ((), shape_of(cells.type))
    if isinstance(cells, StructValue):
        return isinstance(front, dict) or structs.as_struct(e, front) is not None
    return (
        isinstance(cells, tuple | list)
        and isinstance(front, tuple | list)
        and bool(cells)
        and len(cells) == len(front)
        and all(_same_structure(e, a, b) for a, b in zip(cells, front, strict=True))
    )


def store_all(e: Emitter, cells: Any, front: Any, what: str) -> None:
    if isinstance(cells, Place):
        store(e, cells, front, what)
    elif isinstance(cells, StructValue):
        for place, part, named in structs.paired(e, cells, front, what):
            store_all(e, place, part, named)
    else:
        for cell, part in zip(cells, front, strict=True):
            store_all(e, cell, part, what)


def declare(e: Emitter, name: str, front: Any) -> None:
    """Make a new variable that starts at `front`. A name that is assigned once needs no cell; one that the
    iterations of a parallel loop assign is memory.
    """
    frame = e.frame
    if isinstance(front, Text):
        e.error("an f-string can only be printed, or be the message of an `assert`")
    struct = structs.as_struct(e, front)
    if struct is not None:
        e.bind(name, cells_for(e, name, struct))  # a method may assign what the function itself does not
        return
    if isinstance(front, tuple | list) and front and not e.is_static(front) and frame.assigned.get(name, 0) > 1:
        e.bind(name, cells_for(e, name, front))
        return
    if isinstance(front, tuple | list) or not e.is_value(front):
        e.bind(name, front)
        return
    value = strong_value(e, front)
    if frame.assigned.get(name, 0) <= 1:
        if isinstance(value.atom, Var) and not value.atom.name:
            value.atom.name = name
        e.bind(name, value)
        return
    e.scope.names[name] = _variable(e, name, value)


def _variable(e: Emitter, name: str, value: Value) -> Variable:
    variable = Variable(name, None, e.b.loc, e.nest)
    if e.depth == 0 and name in e.frame.shared:
        buffer = Buffer(name, value.dtype, (), value.shape, BufferKind.TEMPORARY)
        variable.place = MemoryPlace(buffer, ())
        e.b.store(buffer, (), value.atom)
    else:
        variable.place = CellPlace(e.cell(value.type, value.atom, name), owner=variable)
    return variable


def cells_for(e: Emitter, name: str, front: Any) -> Any:
    """A struct, tuple or list with a cell in place of each number."""
    if isinstance(front, StructValue):
        return front.map(lambda part: cells_for(e, name, part))
    if isinstance(front, tuple | list):
        return with_items(front, [cells_for(e, name, part) for part in front])
    if not e.is_value(front):
        return front
    return _variable(e, name, strong_value(e, front)).place
