"""Layout trees as programs see them: `x.snode`, `x.parent()`, `x.parent().shape`.

A node is a level of a tree, or the place of one field at its end. What grows a tree is in `tree`.
"""

from __future__ import annotations

from typing import Any

from tinote.completion import Documented
from tinote.ir.nodes import Buffer
from tinote.lang.data.layout import LETTERS


class Node(Documented):
    """One node. `axes` and `extents`: the dimensions it divides; `above`: the node it hangs from, `None` for a root.

    Methods
    -------
    parent

    Attributes
    ----------
    shape : tuple of int
    """

    def __init__(self, above: Node | None, axes: tuple[int, ...], extents: tuple[int, ...]) -> None:
        self.above = above
        self.axes = axes
        self.extents = extents

    def parent(self, n: int = 1) -> Node | None:
        """The level of the layout tree above this one.

        Parameters
        ----------
        n : int, default 1
            How many levels up.

        Returns
        -------
        ti.SNode or None
            The level, or None above the root.

        Examples
        --------
        >>> x = ti.field(ti.f32)
        >>> ti.root.dense(ti.i, 4).dense(ti.j, 3).place(x)
        <level of (4, 3)>
        >>> x.snode.parent().parent().shape
        (4,)
        """
        node: Node | None = self
        for _ in range(n):
            node = None if node is None else node.above
        return node

    parent.__tinote_static__ = True  # type: ignore[attr-defined]

    @property
    def path(self) -> tuple[Node, ...]:
        """The nodes from below the root down to this one."""
        return () if self.above is None else (*self.above.path, self)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of what lies under this node."""
        return tuple(self.__tinote_axes__().values())

    def __tinote_axes__(self) -> dict[int, int]:
        """The extent along each axis."""
        extents: dict[int, int] = {}
        for node in self.path:
            for axis, extent in zip(node.axes, node.extents, strict=True):
                extents[axis] = extents.get(axis, 1) * extent
        return dict(sorted(extents.items()))

    def __repr__(self) -> str:
        return f"<level of {self.shape}>" if self.above is not None else "<root>"


def letters_of_levels(node: Node | None) -> str:
    """The letters of the axes in the order in which the levels down to a node divide them; "" where it is their own."""
    axes = dict.fromkeys(axis for level in (() if node is None else node.path) for axis in level.axes)
    found = "".join([LETTERS[axis] for axis in axes])
    return found if list(found) != sorted(found) else ""


class LeafNode(Node):
    """Where one field lies: it divides nothing further."""

    def __init__(self, above: Node, leaf: Any) -> None:
        super().__init__(above, (), ())
        self._leaf = leaf

    def __tinote_space__(self) -> Buffer:
        return self._leaf.__tinote_buffer__()

    def __repr__(self) -> str:
        return f"<place of {self._leaf.name}>"


class OwnLevel(Node):
    """The level of a field that has memory of its own: nothing else lies there."""

    def __init__(self, leaf: Any) -> None:
        super().__init__(Node(None, (), ()), tuple(range(len(leaf.shape))), leaf.shape)
        self._leaf = leaf

    def __tinote_space__(self) -> Buffer:
        return self._leaf.__tinote_buffer__()


class Located:
    """What a field tells about its place in a layout tree."""

    #: the level that it was placed under, if it was
    _level: Any

    @property
    def snode(self) -> Node:
        """The node of a layout tree at which it lies. Kernels loop over it, or over one above, as over the field."""
        level = self._level
        return LeafNode(OwnLevel(self) if level is None else level, self)

    def __tinote_axes__(self) -> dict[int, int]:
        return self.snode.__tinote_axes__()

    def parent(self, n: int = 1) -> Node | None:
        """The level of the layout tree above the field.

        Parameters
        ----------
        n : int, default 1
            How many levels up; 1 is the level under which the field was placed.

        Returns
        -------
        ti.SNode or None
            The level, or None above the root.

        Examples
        --------
        >>> x = ti.field(ti.f32)
        >>> rows = ti.root.dense(ti.i, 4)
        >>> rows.dense(ti.j, 3).place(x)
        <level of (4, 3)>
        >>> x.parent().shape, x.parent(2).shape
        ((4, 3), (4,))
        """
        return self.snode.parent(n)

    parent.__tinote_static__ = True  # type: ignore[attr-defined]
