"""Elements of fields and arrays in a kernel: the element at an index, and operations on all elements.

x.fill(1.0)            every number of a field, of an array, or of one component
particles.fill(p)      every struct of a field of structs
particles[i].fill(0)   every number of one
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinote.compiler.frontend.descriptions import describe
from tinote.compiler.frontend.emitter import Emitter
from tinote.compiler.frontend.expansion import parameters
from tinote.compiler.frontend.expressions import structs
from tinote.compiler.frontend.expressions.places import converted
from tinote.compiler.frontend.expressions.sparse_walks import walk
from tinote.compiler.frontend.expressions.tensors import METHODS
from tinote.compiler.frontend.sparse_elements import Places, SparsePlace
from tinote.compiler.frontend.values import MemoryPlace, Place, StructValue
from tinote.compiler.protocol import buffer_of, component_of, members_of, space_of, struct_of
from tinote.ir.nodes import Atom, Buffer, For, Lit, Var, literal_indices
from tinote.ir.types import i32


def all_indices(e: Emitter, buffer: Buffer, axis: int) -> tuple[Atom, Atom]:
    """All indices along an axis of a field or array, as its users count them: the first, and the one after the last."""
    first = buffer.offset[axis] if buffer.offset else 0
    extent = e.b.extent(buffer, axis)
    if first:
        assert isinstance(extent, Lit), "only fields, whose shapes are known, count from elsewhere"
        extent = Lit(int(extent.value) + first, i32)
    return Lit(first, i32), extent


def memory_place(e: Emitter, buffer: Buffer, index: tuple[Atom, ...]) -> MemoryPlace:
    """The element of a field or array at a zero-based index."""
    if buffer.sparsity is not None:
        return SparsePlace(buffer, index, e.sparse, constant=buffer in e.stopped)
    return MemoryPlace(buffer, index, constant=buffer in e.stopped)


def element_of(e: Emitter, container: Any, place: MemoryPlace) -> Any:
    """The element that has the index of `place`: of a field or array, of one component, or the members of a struct."""
    buffer = buffer_of(container)
    if buffer is not None:
        return memory_place(e, buffer, place.index)
    component = component_of(container)
    if component is not None:
        return place.component(literal_indices(component))
    members = members_of(container)
    assert members is not None
    return StructValue({name: element_of(e, field, place) for name, field in members.items()}, struct_of(container))


def fill(e: Emitter, target: Any, value: Any) -> None:
    """Set everything in `target` to a value: all elements of a field or array, all members of a struct, or all
    components.
    """
    space = space_of(target)
    if space is not None and space.sparsity is not None:
        sparsity = space.sparsity

        def fill_active(places: Places) -> None:
            e.sparse.note_active(sparsity, places)
            fill(e, element_of(e, target, memory_place(e, space, places)), value)

        walk(e, sparsity, fill_active)
    elif space is not None:
        _each(e, space, lambda place: fill(e, element_of(e, target, place), value))
    elif isinstance(target, StructValue):
        struct = structs.as_struct(e, value) is not None or isinstance(value, dict)
        pairs = [(m, value) for m in target.members.values()]
        for member, part in [(m, x) for m, x, _ in structs.paired(e, target, value, "it")] if struct else pairs:
            fill(e, member, part)
    elif isinstance(target, Place):
        target.store(e.b, converted(e, value, target.type, "it"))
    else:
        e.error(f"{describe(target)} cannot be filled", "fill a variable, a field, or an element of one")


def _each(e: Emitter, buffer: Buffer, body: Callable[[MemoryPlace], None]) -> None:
    """A loop over all elements, in parallel on the outermost level."""
    parallel = e.depth == 0

    def nest(index: tuple[Atom, ...]) -> None:
        axis = len(index)
        if axis == buffer.rank:
            body(memory_place(e, buffer, index))
            return
        i = Var(i32)
        with e.region(i) as opened:
            nest((*index, i))
        e.b.emit(For(Lit(0, i32), e.b.extent(buffer, axis), (), opened.close(), (), e.b.loc, parallel=parallel))

    nest(())


METHODS["fill"] = (fill, parameters("value"))
