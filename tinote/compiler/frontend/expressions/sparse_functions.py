"""What kernels ask and change of the levels of sparse fields.

ti.activate(block, [i, j])      ti.is_active(block, [i, j])      ti.deactivate(block, [i, j])
ti.append(x.parent(), i, v)     ti.length(x.parent(), i)         ti.rescale_index(x, block, I)
x[i].append(v)                  x[i].length()                    x[i].deactivate()
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tinote.compiler.frontend.descriptions import describe
from tinote.compiler.frontend.emitter import Emitter
from tinote.compiler.frontend.expansion import BuiltinParameters, parameters
from tinote.compiler.frontend.expressions import elements, structs
from tinote.compiler.frontend.expressions.places import converted
from tinote.compiler.frontend.expressions.sparse_places import node_index
from tinote.compiler.frontend.expressions.sparse_walks import walk
from tinote.compiler.frontend.expressions.tensors import METHODS
from tinote.compiler.frontend.sparse_elements import Places, activate
from tinote.compiler.frontend.values import Place, StructValue, Value
from tinote.compiler.protocol import below_of, buffer_of, members_of, space_of, sparsity_of
from tinote.ir import primitives as p
from tinote.ir.nodes import Atom, Buffer, Check, FaultKind, If, Lit, Region
from tinote.ir.sparsity import CellActivity, Sparsity
from tinote.ir.types import Tensor, i8, i32, u1


class SparseList:
    """One list of a field under a `dynamic` level: `x[i]`."""

    __slots__ = ("container", "places")

    def __init__(self, container: Any, places: Places) -> None:
        self.container = container
        self.places = places


def is_list(sparsity: Sparsity | None) -> bool:
    """Whether the cells of a field are in lists."""
    return sparsity is not None and (last := sparsity.groups[-1].activity) is not None and last.is_list


def _name_of(front: Any) -> str:
    space = space_of(front)
    return "level" if space is None or below_of(front) is not None else space.name


def _node(e: Emitter, front: Any, what: str) -> Sparsity:
    found = sparsity_of(front)
    if found is None:
        dense = axes_shape(front) is not None
        e.error(
            f"`{what}` needs a sparse field or a level above one, not {describe(front)}",
            "all cells of a dense field are active" if dense else "",
        )
    return found


def _last(e: Emitter, sparsity: Sparsity, what: str) -> CellActivity:
    """The activity of the cells of a level itself."""
    activity = sparsity.groups[-1].activity
    if activity is None:
        e.error(
            f"`{what}`: the cells of this level are not active or inactive one by one",
            "name the level above that is `pointer` or `bitmasked`: `x.parent(2)`, or the variable that holds it",
        )
    return activity


def _activate(e: Emitter, node: Any, indices: Any) -> None:
    sparsity = _node(e, node, "activate")
    activate(e.b, e.sparse, sparsity, node_index(e, sparsity, indices, _name_of(node)))


def _is_active(e: Emitter, node: Any, indices: Any) -> Any:
    sparsity = sparsity_of(node)
    if sparsity is None and axes_shape(node) is not None:
        return True
    sparsity = _node(e, node, "is_active")
    places = node_index(e, sparsity, indices, _name_of(node))
    return Value(active_at(e, sparsity, places))


def active_at(e: Emitter, sparsity: Sparsity, places: Places) -> Atom:
    """Whether the cell at a place is active. What a level above deactivates is so in all levels below."""
    depth, activity = sparsity.activities[-1]
    if activity.is_list:
        length = e.b.load(activity.buffer, places[: depth - 1])
        return e.b.prim(p.lt, places[depth - 1], length, type=u1)
    return e.prim(p.ne, Value(e.b.load(activity.buffer, places[:depth])), 0).atom


def _deactivate(e: Emitter, node: Any, indices: Any) -> None:
    sparsity = _node(e, node, "deactivate")
    activity = _last(e, sparsity, "deactivate")
    if activity.is_list:
        sparsity_above = len(sparsity.groups) - 1
        places = _list_index(e, sparsity, indices, _name_of(node))
        assert len(places) == sparsity_above
    else:
        places = node_index(e, sparsity, indices, _name_of(node))
    clear(e, below_of(node) or (), places, activity)


def clear(e: Emitter, below: tuple[Buffer, ...], places: Places, activity: CellActivity) -> None:
    """Deactivate the cell at a place: what is below it becomes zero. `below`: all fields there."""
    if activity.buffer in e.sparse.relied_on:
        e.error(
            "this deactivates cells that the loop around it is in the middle of",
            "deactivate in a loop of its own, after this one",
        )
    e.sparse.cleared.add(activity.buffer)
    with e.region() as inside:
        activities: dict[Buffer, tuple[Sparsity, int]] = {}
        for buffer in below:
            sparsity = buffer.sparsity
            assert sparsity is not None
            walk(e, sparsity, lambda cell, buffer=buffer: _zero(e, buffer, cell), places)
            for depth, inner in sparsity.activities:
                if depth > len(places) and inner.buffer is not activity.buffer:
                    activities[inner.buffer] = sparsity, depth - inner.is_list
        for inner, (sparsity, depth) in sorted(activities.items(), key=lambda found: -found[1][1]):
            walk(e, sparsity, lambda cell, inner=inner: _zero(e, inner, cell), places, depth)
            e.sparse.change(inner)
            e.sparse.cleared.add(inner)
        _zero(e, activity.buffer, places)
        e.sparse.change(activity.buffer)
    flag = e.b.load(activity.buffer, places)
    e.b.if_(e.prim(p.ne, Value(flag), 0).atom, inside.close())


def _zero(e: Emitter, buffer: Buffer, places: Places) -> None:
    zero = Lit(0.0 if buffer.dtype.kind == "f" else 0, buffer.dtype)
    t = buffer.element_type
    e.b.store(buffer, places, e.b.pack([zero] * t.count, t) if isinstance(t, Tensor) else zero)


def _list_index(e: Emitter, sparsity: Sparsity, indices: Any, name: str) -> Places:
    """The place of a list: an index of the levels above."""
    above = sparsity.above_list()
    if above is None:
        if indices not in ([], (), None):
            e.error(f"{name} is one list, and has no index", "leave the index out: `x.append(…)`, or give `[]`")
        return ()
    return node_index(e, above, indices, name)


def _require_list(e: Emitter, node: Any, what: str) -> Sparsity:
    sparsity = _node(e, node, what)
    if not is_list(sparsity):
        e.error(f"`{what}` needs a field under a `dynamic` level, or that level itself, not {describe(node)}")
    return sparsity


def _append(e: Emitter, node: Any, indices: Any, value: Any) -> Any:
    sparsity = _require_list(e, node, "append")
    return append(e, node, _list_index(e, sparsity, indices, _name_of(node)), value)


def append(e: Emitter, container: Any, places: Places, value: Any) -> Value:
    """Add an element to the list at a place; gives its index."""
    sparsity = _require_list(e, container, "append")
    activity = _last(e, sparsity, "append")
    capacity = sparsity.groups[-1].cells
    for depth, above in sparsity.activities[:-1]:
        if (above.buffer, places[:depth]) not in e.sparse.active:
            e.sparse.change(above.buffer)
            e.b.atomic(p.maximum, above.buffer, places[:depth], Lit(1, i8))
    e.sparse.change(activity.buffer)
    last = e.b.atomic(p.add, activity.buffer, places, Lit(1, i32), old=True)
    assert last is not None
    fits = e.b.prim(p.lt, last, Lit(capacity, i32))
    with e.region() as full:
        e.b.atomic(p.minimum, activity.buffer, places, Lit(capacity, i32))
    e.b.emit(If(fits, Region((), ()), full.close(), (), e.b.loc))
    name = (space_of(container) or activity.buffer).name
    e.b.emit(
        Check(FaultKind.ASSERT, (fits,), f"a list of '{name}' is full: it holds {capacity:,} elements", 0, e.b.loc)
    )
    target = _target(e, container, (*places, last))
    _assign(e, target, value)
    return Value(last)


def _target(e: Emitter, container: Any, places: Places) -> Any:
    """The element of a field, or of the only field of a level."""
    below, space = below_of(container), space_of(container)
    if below is not None:
        if len(below) != 1:
            e.error(
                "a level with several fields has no single element", "append to a field of structs: `s[i].append(…)`"
            )
        return elements.memory_place(e, below[0], places)
    assert space is not None
    return elements.element_of(e, container, elements.memory_place(e, space, places))


def _assign(e: Emitter, target: Any, value: Any) -> None:
    if isinstance(target, StructValue):
        for place, part, _ in structs.paired(e, target, value, "an element of the list"):
            _assign(e, place, part)
    else:
        assert isinstance(target, Place)
        target.store(e.b, converted(e, value, target.type, "an element of the list"))


def _length(e: Emitter, v: Any, indices: Any) -> Any:
    """Of a vector, or of a list."""
    if indices is None and sparsity_of(v) is None:
        return METHODS["norm"][0](e, v, 0)
    node = v
    sparsity = _require_list(e, node, "length")
    places = _list_index(e, sparsity, indices, _name_of(node))
    return Value(e.b.load(_last(e, sparsity, "length").buffer, places))


def _rescale_index(e: Emitter, a: Any, b: Any, indices: Any) -> Any:
    """An index of one level in the numbers of another."""
    shapes: list[dict[int, int]] = []
    for node in (a, b):
        axes = axes_shape(node)
        if axes is None:
            e.error(f"`rescale_index` needs fields or levels, not {describe(node)}")
        shapes.append(axes)
    parts = e.components(indices) if isinstance(indices, tuple | list) or e.shape(indices) else [indices]
    if len(parts) != len(shapes[0]):
        e.error(f"an index of {len(shapes[0])} components is needed, not {len(parts)}")
    of = dict(zip(sorted(shapes[0]), parts, strict=True))
    found: list[Any] = []
    for axis in sorted(shapes[1]):
        if axis not in of:
            continue
        before, after, i = shapes[0][axis], shapes[1][axis], of[axis]
        if before > after:
            i = e.prim(p.floordiv, i, before // after) if isinstance(i, Value) else i // (before // after)
        elif after > before:
            i = e.prim(p.mul, i, after // before) if isinstance(i, Value) else i * (after // before)
        found.append(i)
    return e.pack(found, (len(found),))


def axes_shape(node: Any) -> dict[int, int] | None:
    """The extent along each axis of a layout tree of a field or level."""
    ask = getattr(node, "__tinote_axes__", None)
    return None if ask is None else ask()


TABLE: dict[str, tuple[str, Callable[..., Any]]] = {
    "activate": ("node indices", _activate),
    "append": ("node indices value", _append),
    "deactivate": ("node indices", _deactivate),
    "is_active": ("node indices", _is_active),
    "length": ("v indices=", _length),
    "rescale_index": ("a b I", _rescale_index),
}


# methods of lists


def _list_of(e: Emitter, owner: Any, what: str) -> SparseList:
    if isinstance(owner, SparseList):
        return owner
    sparsity = _require_list(e, owner, what)
    if len(sparsity.shape) != 1:
        e.error(f"`{what}` is a method of one list of the field", f"index it: `x[i].{what}(…)`")
    return SparseList(owner, ())


def _method_append(e: Emitter, owner: Any, value: Any) -> Value:
    found = _list_of(e, owner, "append")
    return append(e, found.container, found.places, value)


def _method_length(e: Emitter, owner: Any) -> Value:
    found = _list_of(e, owner, "length")
    return Value(e.b.load(_last(e, _require_list(e, found.container, "length"), "length").buffer, found.places))


def _method_deactivate(e: Emitter, owner: Any) -> None:
    found = _list_of(e, owner, "deactivate")
    sparsity = _require_list(e, found.container, "deactivate")
    members = members_of(found.container)
    fields = [found.container] if members is None else list(members.values())
    below = tuple([b for b in map(buffer_of, fields) if b is not None])
    clear(e, below, found.places, _last(e, sparsity, "deactivate"))


_METHODS: dict[str, tuple[Callable[..., Any], BuiltinParameters]] = {
    "append": (_method_append, parameters("value")),
    "length": (_method_length, parameters("")),
    "deactivate": (_method_deactivate, parameters("")),
}
LIST_METHODS = tuple(_METHODS)


class ListMethod(NamedTuple):
    """A method of a list, or of a field that is one list, looked up and not yet called."""

    owner: Any
    name: str

    def __call__(self, e: Emitter, args: list[Any], kwargs: dict[str, Any]) -> Any:
        implementation, taken = _METHODS[self.name]
        return implementation(e, self.owner, *taken.matched(e, f".{self.name}", args, kwargs).values())
