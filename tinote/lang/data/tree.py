"""Layout trees: which fields lie together in memory, and how.

    x, y = ti.field(ti.f32), ti.field(ti.f32)
    ti.root.dense(ti.i, 8).place(x, y)          x[0] y[0] x[1] y[1] …   in one block of memory
    ti.root.dense(ti.i, 8).place(z)             z has a block of its own

Every level directly under a root is one block. The cells of a level lie one after the other, and a cell holds what was
placed under its level, in that order, each aligned to its size: so a field's strides are fixed by its path. A dimension
that several levels of a path divide (`dense(ti.ij, (4, 4)).dense(ti.ij, (2, 2))`, a blocked layout) has no single
stride: what lies below the second such level is stored as a row-major block of its own. Indices mean the same either
way.

A tree is settled when one of its fields is first used; from then on nothing can be added to it.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from tinote.errors import FieldError, Note
from tinote.ir.buffers import Buffer, row_major
from tinote.lang.data.components import ComponentField
from tinote.lang.data.fields import Field
from tinote.lang.data.layout import LETTERS, MOST_DIMENSIONS, Placement, offset_given, part_of, shape_given
from tinote.lang.data.matrix import Matrix
from tinote.lang.data.nodes import Node, letters_of_levels
from tinote.lang.data.sparse.fields import as_sparse
from tinote.lang.data.sparse.levels import SparseGrowth, is_in_sparse, is_sparse_tree, settle_sparse
from tinote.lang.session.missing import left_out
from tinote.lang.session.state import session
from tinote.runtime.memory import Memory
from tinote.source import NOWHERE, Span, caller

#: How many of the dimensions have a name in the package.
_NAMED = 8


class Axes(tuple[int, ...]):
    """Dimensions that a level divides: `ti.i`, `ti.ij`, …"""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"ti.{''.join(LETTERS[axis] for axis in self)}"


def axes(*numbers: int) -> Axes:
    """The axes of a layout tree by their numbers: `ti.axes(0, 2)` is `ti.ik`.

    Parameters
    ----------
    *numbers : int
        The axes, from 0.

    Returns
    -------
    axes
        What `dense` takes.

    Raises
    ------
    FieldError
        For numbers that are not axes, and for one that is given twice.

    Examples
    --------
    >>> ti.axes(0, 2) == ti.ik
    True
    """
    for number in numbers:
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < MOST_DIMENSIONS:
            raise FieldError(f"dimensions are numbered from 0 to {MOST_DIMENSIONS - 1}, not {number!r}", caller())
    if len(set(numbers)) < len(numbers):
        raise FieldError(f"a dimension is named twice: {numbers}", caller())
    return Axes(numbers)


def axes_named() -> dict[str, Axes]:
    """`i`, `j`, …, every run of letters in their order (`ij`, `ijk`, `jk`, …), and those with gaps up to `l`."""
    found = {letter: Axes((number,)) for number, letter in enumerate(LETTERS[:_NAMED])}
    for first in range(_NAMED):
        for last in range(first + 2, _NAMED + 1):
            found[LETTERS[first:last]] = Axes(range(first, last))
    found |= {name: Axes(map(LETTERS.index, name)) for name in ("ik", "il", "jl", "ijl", "ikl", "ji")}
    return found


class Level(SparseGrowth, Node):
    """A level of a layout tree, or its root: what `dense` returns.

    Methods
    -------
    bitmasked
    deactivate_all
    dense
    dynamic
    hash
    lazy_dual
    lazy_grad
    parent
    place
    pointer

    Attributes
    ----------
    shape : tuple of int

    Examples
    --------
    >>> x = ti.field(ti.f32)
    >>> level = ti.root.dense(ti.i, 8)
    >>> isinstance(level, ti.SNode)
    True
    >>> level.place(x) is level
    True
    """

    def __init__(self, above: Level | None, axes: tuple[int, ...], extents: tuple[int, ...], made_at: Span) -> None:
        super().__init__(above, axes, extents)
        self.made_at = made_at
        self.children: list[Level | Field] = []
        self._released: list[weakref.ref[Field]] = []  # fields that it does not keep alive
        self.settled_at: Span | None = None
        self._generation = session.resets

    def __reduce_ex__(self, protocol: Any) -> Any:
        """In another process, a level with the fields below it."""
        released = [leaf for leaf in (reference() for reference in self._released) if leaf is not None]
        state = self.above, self.axes, self.extents, self.made_at, self.children, released, self.settled_at
        return new_level, (type(self),), state, None, None, _arrive

    # ---- growing

    def dense(self, axes: Any, dimensions: Any) -> Level:
        """Make a level below this one: each cell is divided along each of the axes.

        Where an axis is divided by several levels, the field is stored row by row all the same, not in blocks.

        Parameters
        ----------
        axes : axes
            `ti.i`, `ti.ij`, `ti.axes(0, 2)`, …
        dimensions : int or tuple of int
            The number of cells along each axis, one number for all or one for each.

        Returns
        -------
        ti.SNode
            The new level.

        Raises
        ------
        FieldError
            For axes and numbers that do not go together.

        Examples
        --------
        >>> x = ti.field(ti.f32)
        >>> ti.root.dense(ti.i, 4).dense(ti.j, 3).place(x)
        <level of (4, 3)>
        >>> x.shape
        (4, 3)
        """
        where = caller()
        self._require_open(where)
        if isinstance(axes, int) and not isinstance(axes, bool):
            axes = (axes,)
        if not isinstance(axes, Axes):
            raise FieldError(f"{axes!r} does not name dimensions", where, hint="write ti.i, ti.ij, ti.axes(0, 1), …")
        extents = shape_given(dimensions, where)
        if len(extents) == 1:
            extents *= len(axes)
        if len(extents) != len(axes):
            raise FieldError(f"{axes!r} needs {len(axes)} extents, not {len(extents)}", where)
        if not all(extents):
            raise FieldError(f"a level needs positive extents, not {extents}", where)
        child = Level(self, tuple(axes), extents, where)
        self.children.append(child)
        return child

    def place(self, *fields: Any, offset: Any = None) -> Level:
        """Put fields made without a shape under this level: one element of each in every cell.

        Parameters
        ----------
        *fields : Field
            The fields. Components of a field may be placed one by one, under levels of one shape: they lie together
            where the first of them is.
        offset : int or tuple of int, optional
            The first index of each dimension, by default 0.

        Returns
        -------
        ti.SNode
            The level itself.

        Raises
        ------
        FieldError
            For what is not a field, and for a field that has a place already.

        Examples
        --------
        >>> x, y = ti.field(ti.f32), ti.field(ti.f32)
        >>> ti.root.dense(ti.i, 4).place(x, y, offset=-2)
        <level of (4,)>
        >>> x[-2], y.shape
        (0.0, (4,))
        """
        where = caller()
        self._require_open(where)
        for given in _spread(fields):
            if isinstance(given, ComponentField):
                leaves = partial(given.placed_under, self, offset, where)
            else:
                leaves = getattr(given, "_leaves", None)
            if leaves is None:
                hint = "a field of vectors is made by ti.Vector.field(n, dtype)" if isinstance(given, Matrix) else ""
                raise FieldError(f"only fields are placed, not {given!r}", where, hint=hint)
            if offset is not None:
                offset_given(offset, self.shape, where)
            for leaf in leaves():
                self._adopt(leaf, offset, where)
        return self

    def _adopt(self, leaf: Field, offset: Any, where: Span) -> None:
        leaf._require_alive()
        if leaf.is_placed or leaf._level is not None:
            hint = "" if leaf._level is not None else "fields that are made with a shape have a place already"
            raise FieldError(
                f"the field '{leaf.name}' is placed already",
                where,
                hint=hint,
                notes=[Note("it is made here", leaf._made_at)],
            )
        leaf._level = self
        leaf._offset = offset
        if is_in_sparse(self):
            as_sparse(leaf)
        self.children.append(leaf)

    def lazy_grad(self) -> None:
        """Give every field of floats below this level a gradient, of the same shape, that has no place yet."""
        self._need("grad")

    def lazy_dual(self) -> None:
        """Give every field of floats below this level a dual, of the same shape, that has no place yet."""
        self._need("dual")

    def _need(self, kind: str) -> None:
        self._require_open(caller())
        for leaf, _ in list(self._placed()):
            if leaf.dtype.kind == "f" and leaf._primal is None and not leaf.is_placed:
                leaf._needed.add(kind)

    def __getattr__(self, name: str) -> Any:
        found = left_out(name, "ti.root")
        if found is not None:
            return found
        raise AttributeError(f"a level of a layout tree has no attribute {name!r}")

    def _require_open(self, where: Span) -> None:
        if self._generation != session.resets:
            raise FieldError(
                "this level was made before ti.init() or ti.reset() and is gone", where, hint="begin again with ti.root"
            )
        if self.settled_at is not None:
            notes = [Note("used here", self.settled_at)] if self.settled_at.line > 0 else []
            raise FieldError(
                "nothing can be added to this level: its fields have been used already",
                where,
                hint="begin a new one: ti.root.dense(…)",
                notes=notes,
            )

    # ---- structure

    def __tinote_space__(self) -> Buffer | None:
        """A kernel loops over a level as over the fields placed in its cells."""
        leaf = next((leaf for leaf, level in self._placed() if level.shape == self.shape), None)
        return None if leaf is None else leaf.__tinote_buffer__()

    def __tinote_domain__(self) -> tuple[tuple[int, int], ...]:
        """If its cells are divided further, a kernel loops over the cells."""
        if next(self._placed(), None) is None:
            raise FieldError("no field is placed under this level", self.made_at, hint="place one: level.place(x)")
        return tuple([(0, extent) for extent in self.shape])

    def _placed(self) -> Iterator[tuple[Field, Level]]:
        """The fields below, each with the level that it is placed in."""
        for child in self.children:
            if isinstance(child, Level):
                yield from child._placed()
            else:
                yield child, self
        for reference in self._released:
            leaf = reference()
            if leaf is not None:
                yield leaf, self

    def let_go(self) -> None:
        """From now on its fields keep it alive, and it none of them."""
        self._released += [weakref.ref(child) for child in self.children if isinstance(child, Field)]
        self.children = [child for child in self.children if isinstance(child, Level)]

    # ---- settling

    def settle(self) -> None:
        """Fix the layout of the block that this level belongs to, and let its fields come into being."""
        top = next((level for level in self.path if isinstance(level, Level)), None)
        if top is not None:
            _settle(top)


class Root(Level):
    """What layout trees grow from. Every level or field directly below is a block of memory of its own."""

    def __init__(self) -> None:
        super().__init__(None, (), (), NOWHERE)

    def _require_open(self, where: Span) -> None:
        if self._generation != session.resets:  # begin again after a reset
            self.children.clear()
            self._generation = session.resets

    def settle(self) -> None:
        """Let the fields placed at the root itself come into being."""
        leaves = [child for child in self.children if isinstance(child, Field) and not child.is_placed]
        for leaf in leaves:
            leaf._place(_at(leaf, self, (), 0, None))
        _attach(leaves)


class SharedRoot(Root):
    """The root of the session's layout tree, `ti.root`. Fields made with a shape belong to it for `lazy_grad` and
    `lazy_dual`.
    """

    def __reduce_ex__(self, protocol: Any) -> Any:
        return "root"

    def _need(self, kind: str) -> None:
        super()._need(kind)
        for field in list(session.fields):
            if field.dtype.kind == "f" and field._level is None and field._primal is None:
                field._give(kind)


class FieldsBuilder(Root):
    """A layout tree of its own, whose fields can be destroyed together.

    Methods
    -------
    bitmasked
    deactivate_all
    dense
    destroy
    dynamic
    finalize
    hash
    lazy_dual
    lazy_grad
    parent
    place
    pointer

    Attributes
    ----------
    shape : tuple of int

    Examples
    --------
    >>> builder = ti.FieldsBuilder()
    >>> x = ti.field(ti.f32)
    >>> builder.dense(ti.ij, (4, 2)).place(x)
    <level of (4, 2)>
    >>> tree = builder.finalize()
    >>> x.shape
    (4, 2)
    >>> tree.destroy()
    """

    def __init__(self) -> None:
        super().__init__()
        self.finalized = False

    def _require_open(self, where: Span) -> None:
        if self._generation != session.resets:
            raise FieldError("this FieldsBuilder was made before ti.init() or ti.reset() and is gone", where)
        if self.finalized:
            raise FieldError(
                "this FieldsBuilder is finalized: nothing can be added to it", where, hint="make another one"
            )

    def finalize(self, raise_warning: bool = True) -> FieldsBuilder:
        """Allocate the memory of all fields.

        Parameters
        ----------
        raise_warning : bool, default True
            Accepted, and without effect.

        Returns
        -------
        FieldsBuilder
            The builder itself, whose `destroy` frees the fields.

        Examples
        --------
        >>> builder = ti.FieldsBuilder()
        >>> x = ti.field(ti.f32)
        >>> builder.dense(ti.i, 4).place(x)
        <level of (4,)>
        >>> tree = builder.finalize()
        >>> x.shape
        (4,)
        """
        self._require_open(caller())
        self.settle()
        for child in self.children:
            if isinstance(child, Level):
                child.settle()
        self.finalized = True
        return self

    def destroy(self) -> None:
        """Free the fields, with their gradients and duals: using one from now on is an error.

        NumPy views of them stay valid.

        Raises
        ------
        FieldError
            Before `finalize`.
        """
        if not self.finalized:
            raise FieldError("only a finalized FieldsBuilder can be destroyed", caller(), hint="call finalize() first")
        for leaf, _ in self._placed():
            leaf._destroy()
        session.forget_instances()


root = SharedRoot()


def deactivate_all_snodes() -> None:
    """Deactivate all cells of all sparse levels under `ti.root`.

    Examples
    --------
    >>> x = ti.field(ti.f32)
    >>> ti.root.bitmasked(ti.i, 8).place(x)
    <level of (8,)>
    >>> x[3] = 1.0
    >>> ti.deactivate_all_snodes()
    >>> x[3]
    0.0
    """
    root.deactivate_all()


def new_level(kind: type[Level]) -> Level:
    """A level that arrives from another process: what it is follows."""
    return object.__new__(kind)


def _arrive(made: Level, state: tuple[Any, ...]) -> None:
    made.above, made.axes, made.extents, made.made_at, made.children, released, made.settled_at = state
    made._released = [weakref.ref(leaf) for leaf in released]
    made._generation = session.resets
    if isinstance(made, FieldsBuilder):
        made.finalized = True


def _spread(fields: Sequence[Any]) -> Iterator[Any]:
    for given in fields:
        if isinstance(given, tuple | list):
            yield from _spread(given)
        else:
            yield given


def _settle(top: Level) -> None:
    if top.settled_at is not None:
        return
    apart: list[Level] = []
    cell = _Cell(top, apart)
    for level in _levels(top):
        level.settled_at = caller()
    leaves = [leaf for leaf, _ in top._placed()]
    try:
        if is_sparse_tree(top):
            settle_sparse(top)
            _attach(leaves)
            return
        block = _memory(cell.size, top)
        for leaf, level, start, strides in cell.places():
            leaf._place(_at(leaf, level, strides, start, block))
        for level in apart:
            inner = _Cell(level, None)
            block = _memory(inner.size, level)
            for leaf, below, start, strides in inner.places():
                leaf._place(_at(leaf, below, strides, start, block))
    except FieldError:
        for level in _levels(top):
            level.settled_at = None
        raise
    _attach(leaves)


def _levels(top: Level) -> Iterator[Level]:
    yield top
    for child in top.children:
        if isinstance(child, Level):
            yield from _levels(child)


class _Cell:
    """The bytes of one level: `count` cells of `step` bytes, each with what the level holds at fixed distances.

    `apart` collects the levels below that divide a dimension once more; with none, the level itself is such a one, and
    divides all of its path's dimensions at once.
    """

    def __init__(self, level: Level, apart: list[Level] | None) -> None:
        self.level = level
        merged = apart is None
        sizes: dict[int, int] = {}
        for above in level.path if merged else (level,):
            for axis, extent in zip(above.axes, above.extents, strict=True):
                sizes[axis] = sizes.get(axis, 1) * extent
        self.sizes = sizes
        self.members: list[tuple[int, Field | _Cell]] = []
        at, largest = 0, 1
        for child in level.children:
            if isinstance(child, Level):
                used = {axis for above in level.path for axis in above.axes}
                if merged:
                    continue  # it is in `apart` itself
                if used & set(child.axes):
                    apart.extend(_levels(child))  # type: ignore[union-attr]
                    continue
                inner = _Cell(child, apart)
                at = _aligned(at, inner.alignment)
                self.members.append((at, inner))
                at, largest = at + inner.size, max(largest, inner.alignment)
            else:
                size = child.dtype.size
                at = _aligned(at, size)
                self.members.append((at, child))
                at, largest = at + size * math.prod(child.element), max(largest, size)
        self.alignment = largest
        self.step = _aligned(at, largest)
        self.size = self.step * math.prod(sizes.values())

    def places(
        self, start: int = 0, above: dict[int, int] | None = None
    ) -> Iterator[tuple[Field, Level, int, tuple[int, ...]]]:
        """Each field below: its level, where its first number lies, and the strides of its dimensions."""
        strides = dict(above or {})
        strides.update(zip(self.sizes, row_major(self.sizes.values(), self.step), strict=True))
        for at, member in self.members:
            if isinstance(member, _Cell):
                yield from member.places(start + at, strides)
            else:
                yield member, self.level, start + at, tuple([strides[axis] for axis in sorted(strides)])


def _aligned(at: int, size: int) -> int:
    return (at + size - 1) // size * size


def _memory(size: int, level: Level) -> Memory:
    try:
        return session.new_memory(max(size, 1))
    except MemoryError as error:
        raise FieldError(f"the fields of this level need {size:,} bytes: {error}", level.made_at) from None


def _at(leaf: Field, level: Level, strides: tuple[int, ...], start: int, block: Memory | None) -> Placement:
    size = leaf.dtype.size
    element_strides = row_major(leaf.element, size)
    if block is None:
        block = session.new_memory(size * math.prod(leaf.element))
    extents = (*level.shape, *leaf.element)
    whole = block.nbytes == math.prod(extents) * size
    memory = block if whole else part_of(block, start, leaf.dtype, extents, (*strides, *element_strides))
    offset = offset_given(leaf._offset, level.shape, leaf._made_at)
    return Placement(level.shape, strides, element_strides, offset, memory, letters_of_levels(level))


def _attach(leaves: Sequence[Field]) -> None:
    """Gradients and duals: those that have a place are joined to their fields, those that need one get it."""
    for leaf in leaves:
        if leaf._primal is not None:
            leaf._primal._settle() if not leaf._primal.is_placed else None
            _join(leaf._primal, leaf._kind)
            continue
        for kind in ("grad", "dual"):
            other = leaf._shadows.get(kind)
            if other is not None and other._level is not None:
                if not other.is_placed:
                    other._level.settle()
                _join(leaf, kind)
            elif kind in leaf._needed:
                other = leaf._shadow(kind)
                other._make_dense_like(leaf)
                _join(leaf, kind)


def _join(field: Field, kind: str) -> None:
    if field.is_placed and field._shadows[kind].is_placed and not getattr(field, f"has_{kind}"):
        field._attach(kind)
