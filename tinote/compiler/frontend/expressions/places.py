"""Assigning to places: local cells, elements of fields and arrays, components of either."""

from __future__ import annotations

import ast
from contextlib import nullcontext
from typing import Any

from tinote.compiler.frontend.descriptions import describe, describe_type
from tinote.compiler.frontend.emitter import Emitter
from tinote.compiler.frontend.scopes import Variable
from tinote.compiler.frontend.values import CellPlace, MemoryPlace, PartPlace, Place, Value
from tinote.errors import Note
from tinote.ir import primitives as p
from tinote.ir.nodes import Atom, Buffer, BufferKind, Lit
from tinote.ir.primitives import Primitive
from tinote.ir.types import Ref, Scalar, Tensor, element_type, with_element


def converted(e: Emitter, front: Any, t: Scalar | Tensor, what: str, place: Place | None = None) -> Atom:
    """A value converted for a place of type `t`: shapes must agree (a number fills a tensor),
    constants must fit; other conversions are left to the types pass.
    """
    dtype = element_type(t)
    value = e.as_value(front, dtype)
    atom = value.atom
    if isinstance(atom, Lit):
        if dtype.kind in "iu" and atom.type.kind == "f" and atom.value % 1:
            cut = f"the fraction of {atom.value!r}, which is stored here, is cut off"
            e.warn(f"{what} is an integer: {cut}", _about_fractions(place))
        atom = e.literals.fitting(atom, dtype)
    elif dtype.kind in "iu" and value.dtype.kind == "f":
        cut = f"the fraction of the {value.dtype} that is stored here is cut off"
        e.warn(f"{what} is an integer: {cut}", _about_fractions(place))
    if isinstance(t, Tensor):
        if not value.shape:
            return e.b.pack([atom] * t.count, Tensor(element_type(atom.type), t.shape))
        if value.shape != t.shape:
            e.error(f"{describe(value)} does not fit {what}, {describe_type(t)}")
    elif value.shape:
        e.error(
            f"{describe(value)} does not fit {what}, {describe_type(t)}",
            "store one component, or make the destination a vector",
        )
    return atom


def _about_fractions(place: Place | None) -> str:
    """What to write where a place of integers should hold fractions."""
    first = "a variable keeps the type of its first value: begin with "
    match place:
        case CellPlace(owner=Variable(name=name)):
            number = isinstance(place.ref.type, Ref) and isinstance(place.ref.type.content, Scalar)
        case MemoryPlace(buffer=Buffer(kind=BufferKind.TEMPORARY, name=name)):
            number = isinstance(place.buffer.element_type, Scalar)
        case _:
            return "declare it with a float type, or write `int(…)`"
    return first + (f"a float, `{name} = 0.0`" if number else "floats")


def check_writable(e: Emitter, place: Place) -> None:
    """Refuse to write a local variable in a parallel loop that it was declared outside of."""
    while isinstance(place, PartPlace):
        place = place.base
    owner = place.owner if isinstance(place, CellPlace) else None
    if isinstance(owner, Variable) and owner.nest is not e.nest:
        e.error(
            f"`{owner.name}` is one variable for all iterations of this parallel loop, which cannot assign it here",
            "accumulate into it with `+=` in the loop itself, or use a field",
            notes=[Note(f"`{owner.name}` is declared here", owner.span)],
        )


def store(e: Emitter, place: Place, front: Any, what: str, value: ast.expr | None = None) -> None:
    """Assign a place; `value` is the expression that gave `front`."""
    check_writable(e, place)
    with e.at(value) if value is not None else nullcontext():
        atom = converted(e, front, place.type, what, place)
    place.store(e.b, atom)


def combine(e: Emitter, place: Place, prim: Primitive, operand: Value, old: bool) -> Value | None:
    """Combine a place with an operand, atomically where others may reach it."""
    check_writable(e, place)
    return place.combine(e.b, prim, operand, old)


def negative(e: Emitter, atom: Atom, t: Scalar | Tensor) -> Atom:
    """`-atom` in the element type of `t`, for a subtraction by addition."""
    dtype = element_type(t)
    if isinstance(atom, Lit):
        return Lit(p.neg.evaluate(dtype, p.cast_number(dtype, atom.value)), dtype)
    return e.b.prim(p.neg, e.b.cast(atom, with_element(atom.type, dtype)), type=with_element(atom.type, dtype))
