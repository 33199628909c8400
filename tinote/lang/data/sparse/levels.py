"""The levels of a layout tree that can be inactive, and where it is written which cells of them are active.

    block = ti.root.pointer(ti.ij, 16)      16 by 16 blocks, none of them active
    block.dense(ti.ij, 8).place(x)          with 8 by 8 cells each
    x[3, 4] = 1.0                           activates the block of the cell

Every field has memory of its own, which is reserved and taken where it is written; the fields of a tree share what is
active. `ir/sparsity.py` says how the cells lie.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from tinote.errors import FieldError, shown
from tinote.ir.buffers import Buffer
from tinote.ir.sparsity import CellActivity, CellGroup, Sparsity
from tinote.ir.types import i8, i32
from tinote.lang.data.fields import Field, ScalarField
from tinote.lang.data.layout import Layout, offset_given, shape_given
from tinote.lang.data.sparse.fields import SparseField
from tinote.lang.session.state import session
from tinote.runtime.memory import Memory
from tinote.runtime.reserved import reserve
from tinote.source import caller

#: A `tree.Level`, whose base is here, and a `nodes.Node`.
Level = Any
Node = Any
#: Cells of one group: as many as numbers of 32 bits count.
_MOST_CELLS = 2**31 - 1
#: Blocks that a loop asks one after the other. Of more, it first asks which parts of the box have active ones.
#: Measured: a question takes a nanosecond.
MOST_ASKED = 1 << 12
#: Blocks of such a part, about.
_PART = 512


class ActivityField(ScalarField):
    """Flags or lengths of a sparse level, which no program sees."""

    def _new_memory(self, nbytes: int) -> Memory:
        return reserve(nbytes)


class SparseGrowth:
    """What grows sparse levels, and ends what is active in them."""

    #: "dense", or in which way its cells can be inactive
    kind = "dense"
    #: where it is written which of its cells are active, once the tree is settled; and in which parts of the box some
    #: have been, where there are many
    activity: CellActivity | None = None
    parts_activity: CellActivity | None = None
    is_in_parts = False
    #: how its cells lie, by the first index of each dimension
    sparsities: dict[tuple[int, ...], Sparsity] | None = None
    #: the fields that hold it
    activity_fields: tuple[ActivityField, ...] = ()

    def pointer(self, axes: Any, dimensions: Any) -> Level:
        """Make a level whose cells are blocks that can be inactive: they take no memory until one is written to.

        Parameters
        ----------
        axes : axes
            `ti.i`, `ti.ij`, …
        dimensions : int or tuple of int
            The number of blocks along each axis.

        Returns
        -------
        ti.SNode
            The new level.

        Examples
        --------
        >>> x = ti.field(ti.f32)
        >>> block = ti.root.pointer(ti.ij, 4)
        >>> block.dense(ti.ij, 8).place(x)
        <level of (32, 32)>
        >>> x[9, 0] = 1.0
        >>> len(x.to_sparse()[1])
        64
        """
        return self._grow("pointer", axes, dimensions)

    def hash(self, axes: Any, dimensions: Any) -> Level:
        """Make a level as `pointer` does: addresses are reserved for all of its blocks.

        Parameters
        ----------
        axes : axes
            `ti.i`, `ti.ij`, …
        dimensions : int or tuple of int
            The number of blocks along each axis.

        Returns
        -------
        ti.SNode
            The new level.

        Examples
        --------
        >>> x = ti.field(ti.f32)
        >>> ti.root.hash(ti.i, 4).dense(ti.i, 8).place(x)
        <level of (32,)>
        >>> x[9] = 1.0
        >>> len(x.to_sparse()[1])
        8
        """
        return self._grow("hash", axes, dimensions)

    def bitmasked(self, axes: Any, dimensions: Any) -> Level:
        """Make a level whose cells can be inactive one by one, and lie together in memory.

        Parameters
        ----------
        axes : axes
            `ti.i`, `ti.ij`, …
        dimensions : int or tuple of int
            The number of cells along each axis.

        Returns
        -------
        ti.SNode
            The new level.

        Examples
        --------
        >>> x = ti.field(ti.i32)
        >>> ti.root.bitmasked(ti.i, 8).place(x)
        <level of (8,)>
        >>> x[3] = x[5] = 0
        >>> @ti.kernel
        ... def count() -> ti.i32:
        ...     n = 0
        ...     for i in x:
        ...         n += 1
        ...     return n
        >>> count()
        2
        """
        return self._grow("bitmasked", axes, dimensions)

    def dynamic(self, axes: Any, dimension: int, chunk_size: int | None = None) -> Level:
        """Make a level that holds a list of at most `dimension` elements in each cell above.

        Parameters
        ----------
        axes : axes
            One axis, which no level above divides.
        dimension : int
            How many elements a list has at most.
        chunk_size : int, optional
            Accepted, and without effect: memory is taken in pages.

        Returns
        -------
        ti.SNode
            The new level. Nothing but fields can be placed under it.

        Examples
        --------
        >>> x = ti.field(ti.i32)
        >>> ti.root.dense(ti.i, 2).dynamic(ti.j, 100).place(x)
        <level of (2, 100)>
        >>> @ti.kernel
        ... def run():
        ...     for k in range(3):
        ...         x[1].append(k * k)
        >>> run()
        >>> sorted(x.to_sparse()[1].tolist())
        [0, 1, 4]
        """
        return self._grow("dynamic", axes, dimension)

    def _grow(self: Any, kind: str, axes: Any, dimensions: Any) -> Level:
        where = caller()
        if kind == "dynamic" and len(shape_given(dimensions, where)) != 1:
            raise FieldError(f"a list has one length, not {shown(dimensions)}", where)
        made: Level = self.dense(axes, dimensions)
        if kind == "dynamic" and (len(made.axes) != 1 or made.axes[0] in {a for n in self.path for a in n.axes}):
            self.children.remove(made)
            problem = f"a list has one axis of its own, and {axes!r} is not"
            raise FieldError(problem, where, hint="write ti.root.dense(ti.i, n).dynamic(ti.j, m).place(x)")
        made.kind = kind
        return made

    @property
    def is_sparse(self) -> bool:
        """Whether its own cells can be inactive."""
        return self.kind != "dense"

    def __tinote_sparsity__(self: Any) -> Sparsity | None:
        """How its cells lie, if some can be inactive; settles the tree."""
        if not is_in_sparse(self):
            return None
        self.settle()
        return sparsity_of(self)

    def __tinote_below__(self: Any) -> tuple[Buffer, ...] | None:
        """The memory of the fields in its cells; None in a tree without sparse levels."""
        if not is_in_sparse(self) and not is_sparse_tree(self):
            return None
        return tuple([leaf.__tinote_buffer__() for leaf, _ in self._placed() if leaf._primal is None])

    def deactivate_all(self: Any) -> None:
        """Deactivate all cells of this level and of those below: they are zero, and their memory goes back.

        Examples
        --------
        >>> x = ti.field(ti.f32)
        >>> block = ti.root.pointer(ti.i, 4)
        >>> block.dense(ti.i, 8).place(x)
        <level of (32,)>
        >>> x[9] = 1.0
        >>> block.deactivate_all()
        >>> x[9]
        0.0
        """
        trees = self.children if self.above is None else [self]
        for top in [one for one in trees if isinstance(one, SparseGrowth)]:
            level: Any = top
            level.settle()
            inside = [one for one in _below(level) if one.is_sparse]
            fields = {leaf: None for one in inside for leaf, _ in one._placed() if leaf._primal is None}
            for leaf in fields:
                leaf._wrote(..., 0)
                leaf._assign(..., 0, 0)
            for one in inside:
                for field in one.activity_fields:
                    field.fill(0)


def levels_of(node: Node) -> list[Level]:
    """The levels from below the root down to a node."""
    return [level for level in node.path if isinstance(level, SparseGrowth)]  # type: ignore[misc]


def _below(level: Level) -> Iterator[Level]:
    yield level
    for child in level.children:
        if isinstance(child, SparseGrowth):
            yield from _below(child)


def is_in_sparse(level: Level) -> bool:
    """Whether the cells of a level can be inactive, by its own account or by that of a level above."""
    return any(one.is_sparse for one in levels_of(level))


def is_sparse_tree(top: Level) -> bool:
    """Whether a level of the tree is sparse."""
    return any(level.is_sparse for level in _below(top))


def sparsity_of(node: Any, offset: tuple[int, ...] = ()) -> Sparsity:
    """How the cells of a level lie, the same object each time. Needs the activity of the levels above."""
    known = node.sparsities
    if known is None:
        known = node.sparsities = {}
    if offset not in known:
        known[offset] = _sparsity_of(node, offset)
    return known[offset]


def _sparsity_of(node: Node, offset: tuple[int, ...]) -> Sparsity:
    levels = levels_of(node)
    axes = tuple(sorted({axis for level in levels for axis in level.axes}))
    groups: list[CellGroup] = []
    parts = dict.fromkeys(axes, 1)
    is_open = False
    for level in levels:
        if level.kind == "dynamic" and is_open:
            groups.append(CellGroup(tuple(parts.values()), None))
            parts = dict.fromkeys(axes, 1)
        is_open = not level.is_sparse
        for axis, extent in zip(level.axes, level.extents, strict=True):
            parts[axis] *= extent
        if level.is_sparse:
            whole = tuple(parts.values())
            within = whole if level.kind == "dynamic" else _part_of(whole)
            level.is_in_parts = within != whole
            if level.is_in_parts:
                outer = [n // k for n, k in zip(whole, within, strict=True)]
                groups.append(CellGroup(tuple(outer), level.parts_activity))
            groups.append(CellGroup(within, level.activity))
            parts = dict.fromkeys(axes, 1)
    if is_open:
        groups.append(CellGroup(tuple(parts.values()), None))
    return Sparsity(axes, tuple(groups), offset)


def _part_of(extents: tuple[int, ...]) -> tuple[int, ...]:
    """How many blocks a part of the box has along each dimension; all of them where they are few."""
    if math.prod(extents) <= MOST_ASKED:
        return extents
    most = round(_PART ** (1 / max(1, sum(n > 1 for n in extents))))
    found = tuple([max(k for k in range(1, min(n, most) + 1) if n % k == 0) for n in extents])
    return found if math.prod(found) > 1 else extents


def settle_sparse(top: Level) -> None:
    """Let the fields of a tree with sparse levels come into being."""
    if session.config.arch == "gpu":
        raise FieldError(
            "sparse fields are left out on a GPU",
            top.made_at,
            hint="use dense fields there, ti.field(dtype, shape=…), or ti.init(arch=ti.cpu)",
        )
    for level in _below(top):
        if level.is_sparse and level.activity is None:
            _give_activity(level)
    for leaf, level in top._placed():
        offset = offset_given(leaf._offset, level.shape, leaf._made_at)
        if is_in_sparse(level):
            assert isinstance(leaf, SparseField)
            leaf.place_sparsely(sparsity_of(level, offset), level)
        else:
            leaf._make_dense(level.shape, tuple(range(len(level.shape))), Layout.AOS, offset)


def _give_activity(level: Level) -> None:
    inner = [child for child in level.children if not isinstance(child, Field)]
    if level.kind == "dynamic" and inner:
        raise FieldError("a list cannot be divided further: only fields are placed under it", inner[0].made_at)
    groups = _sparsity_of(level, ())
    for count in groups.counts:
        if count > _MOST_CELLS:
            raise FieldError(
                f"this level has {math.prod(groups.counts):,} blocks, which are too many to count",
                level.made_at,
                hint="divide it by two levels, ti.root.pointer(…).pointer(…), or make the blocks larger",
            )
    if level.kind == "dynamic":
        made = (_hidden(level, i32, "lengths", groups.counts[:-1]),)
        level.activity = CellActivity(made[0].buffer, None)
    else:
        blocks = any(isinstance(child, SparseGrowth) for child in level.children)
        made = _flags(level, groups.counts, "active blocks" if blocks else "active cells")
        level.activity = CellActivity(made[0].buffer, made[1].buffer)
        if level.is_in_parts:
            parts = _flags(level, groups.counts[:-1], "active parts")
            level.parts_activity = CellActivity(parts[0].buffer, parts[1].buffer)
            level.activity_fields = parts
    level.activity_fields = (*made, *level.activity_fields)
    whole = sparsity_of(level)
    for field in level.activity_fields:
        field.buffer.sparsity = whole if field in made else Sparsity(whole.axes, whole.groups[:-1])


def _flags(level: Level, shape: tuple[int, ...], what: str) -> tuple[ActivityField, ActivityField]:
    return _hidden(level, i8, what, shape), _hidden(level, i8, what, shape)


def _hidden(level: Level, dtype: Any, what: str, shape: tuple[int, ...]) -> ActivityField:
    placed = next((leaf for leaf, _ in level._placed()), None)
    name = f"{what} of {placed.name}" if placed is not None else what
    made = ActivityField(dtype, (), level.made_at, name)
    made._make_dense(shape, tuple(range(len(shape))), Layout.AOS, ())
    return made
