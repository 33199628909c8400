"""Functions of sparse fields, in kernels: what is active, and lists."""

from __future__ import annotations

from typing import Any

from tinote.lang.maths.builtin import in_kernels

__all__ = ["activate", "append", "deactivate", "is_active", "rescale_index"]


@in_kernels
def activate(node: Any, indices: Any) -> None:
    """Activate a cell of a sparse field or level: it is 0, and loops over the field reach it.

    Parameters
    ----------
    node : field or ti.SNode
        A sparse field, or a level above it.
    indices : vector or int
        The index of the cell, as a loop over `node` gives it.

    Examples
    --------
    >>> x = ti.field(ti.f32)
    >>> block = ti.root.pointer(ti.i, 4)
    >>> block.dense(ti.i, 2).place(x)
    <level of (8,)>
    >>> @ti.kernel
    ... def run() -> ti.i32:
    ...     ti.activate(block, 3)
    ...     n = 0
    ...     for i in x:
    ...         n += i
    ...     return n
    >>> run()
    13
    """


@in_kernels
def deactivate(node: Any, indices: Any) -> None:
    """Deactivate a cell of a sparse level: all that is in it is 0, and loops do not reach it.

    Parameters
    ----------
    node : ti.SNode
        A level whose cells can be inactive: `pointer`, `bitmasked` or `dynamic`.
    indices : vector or int
        The index of the cell, as a loop over the level gives it; of a list, the index of the list.

    Examples
    --------
    >>> x = ti.field(ti.f32)
    >>> block = ti.root.pointer(ti.i, 4)
    >>> block.dense(ti.i, 2).place(x)
    <level of (8,)>
    >>> x[5] = 1.0
    >>> @ti.kernel
    ... def clear():
    ...     for b in block:
    ...         ti.deactivate(block, b)
    >>> clear()
    >>> x[5]
    0.0
    """


@in_kernels
def is_active(node: Any, indices: Any) -> Any:
    """Whether a cell of a sparse field or level is active.

    Parameters
    ----------
    node : field or ti.SNode
        A sparse field, or a level above it.
    indices : vector or int
        The index of the cell, as a loop over `node` gives it.

    Returns
    -------
    bool
        Whether it is active.

    Examples
    --------
    >>> x = ti.field(ti.f32)
    >>> ti.root.bitmasked(ti.i, 8).place(x)
    <level of (8,)>
    >>> x[5] = 1.0
    >>> @ti.kernel
    ... def ask(i: ti.i32) -> bool:
    ...     return ti.is_active(x, i)
    >>> ask(5), ask(4)
    (True, False)
    """


@in_kernels
def append(node: Any, indices: Any, value: Any) -> Any:
    """Add an element to the end of a list, as `x[i].append(value)` does.

    Parallel iterations may append to one list: each element is there once, in any order.

    Parameters
    ----------
    node : field or ti.SNode
        A field under a `dynamic` level, or that level.
    indices : vector or int
        The index of the list; `[]` where there is only one.
    value : number, vector, matrix or struct
        The element.

    Returns
    -------
    int
        The place of the new element in the list.

    Examples
    --------
    >>> x = ti.field(ti.i32)
    >>> ti.root.dynamic(ti.i, 100).place(x)
    <level of (100,)>
    >>> @ti.kernel
    ... def run() -> ti.i32:
    ...     for i in range(10):
    ...         ti.append(x.parent(), [], i)
    ...     return ti.length(x.parent(), [])
    >>> run()
    10
    """


@in_kernels
def rescale_index(a: Any, b: Any, I: Any) -> Any:  # noqa: E741  # the name that programs use
    """The index of the cell of `b` that contains, or begins at, the cell with an index of `a`.

    Parameters
    ----------
    a, b : field or ti.SNode
        Two fields or levels of a layout tree.
    I : vector
        An index of `a`.

    Returns
    -------
    vector
        An index of `b`.

    Examples
    --------
    >>> x = ti.field(ti.f32)
    >>> block = ti.root.pointer(ti.ij, 4)
    >>> block.dense(ti.ij, 8).place(x)
    <level of (32, 32)>
    >>> @ti.kernel
    ... def run() -> ti.math.ivec2:
    ...     return ti.rescale_index(x, block, ti.Vector([17, 3]))
    >>> run()
    Vector([2, 0])
    """
