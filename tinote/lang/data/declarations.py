"""Declarations of fields: `field(ti.f32, shape=(n, m), needs_grad=True)`, `Vector.field(2, ti.f32, shape=n)`,
`Matrix.field(2, 2, ti.f32, shape=n)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

import numpy as np

from tinote.compiler.protocol import unit_of
from tinote.errors import FieldError
from tinote.lang.data.fields import Field, MatrixField, ScalarField
from tinote.lang.data.layout import Layout, offset_given, order_named, shape_given
from tinote.lang.data.matrix import Matrix, Vector
from tinote.lang.session.renamed import keywords_known
from tinote.lang.session.state import scalar_type
from tinote.source import caller

if TYPE_CHECKING:
    from tinote.lang.data.structs import StructField, StructType
    from tinote.lang.data.types import MatrixType


def _make(
    kind: type[Field],
    dtype: Any,
    shape: Any,
    element: Sequence[Any],
    name: str,
    needs_grad: bool | None,
    needs_dual: bool | None,
    offset: Any,
    order: Any,
    layout: Layout,
) -> Any:
    made_at = caller()
    for extent in element:
        if not isinstance(extent, int | np.integer) or isinstance(extent, bool) or extent < 1:
            raise FieldError(
                f"an element needs positive dimensions, not {', '.join(map(str, element))}",
                made_at,
                hint="they come first: ti.Vector.field(3, ti.f32, shape=…), ti.Matrix.field(3, 2, ti.f32, shape=…)",
            )
    unit = unit_of(dtype)
    number = scalar_type(dtype if unit is None else dtype.scalar, made_at)
    made = kind(number, tuple(map(int, element)), made_at, name, needs_grad, needs_dual)
    made.unit = unit
    if not isinstance(layout, Layout):
        raise FieldError(f"{layout!r} is not a layout", made_at, hint="use ti.Layout.AOS or ti.Layout.SOA")
    if shape is None:
        for given, what in ((offset, "an offset"), (order, "an order")):
            if given is not None:
                raise FieldError(
                    f"{what} needs a shape",
                    made_at,
                    hint="give the field a shape, or place it with ti.root.dense(...).place(x, offset=...)",
                )
        return made
    extents = shape_given(shape, made_at)
    made._make_dense(extents, order_named(order, len(extents), made_at), layout, offset_given(offset, extents, made_at))
    return made


class FieldOptions(TypedDict, total=False):
    """What may be said of a field besides its type and shape."""

    name: str
    offset: Any
    order: str | None
    needs_grad: bool | None
    needs_dual: bool | None


@overload
def field(dtype: type[Matrix] | MatrixType, shape: Any = None, **options: Unpack[FieldOptions]) -> MatrixField: ...
@overload
def field(dtype: StructType, shape: Any = None, **options: Unpack[FieldOptions]) -> StructField: ...
@overload
def field(dtype: Any = None, shape: Any = None, *, dt: Any = None, **options: Unpack[FieldOptions]) -> ScalarField: ...
@keywords_known
def field(
    dtype: Any = None,
    shape: Any = None,
    *,
    name: str = "",
    offset: Any = None,
    order: str | None = None,
    needs_grad: bool | None = None,
    needs_dual: bool | None = None,
    dt: Any = None,
) -> Any:
    """Make a field: an array in the session's memory whose elements kernels read and write by their indices.

    Parameters
    ----------
    dtype : type
        The type of the elements: a number type, or a vector, matrix or struct type.
    shape : int or tuple of int, optional
        The extent of each index dimension; `()` for a single value, `x[None]`. Left out, the field is placed later, in
        a layout tree (`ti.root`).
    name : str, optional
        The name that errors use; by default that of the variable which the field is assigned to.
    offset : int or tuple of int, optional
        The first index of each dimension, by default 0.
    order : str, optional
        The dimensions in the order in which they lie in memory, the slowest first: `"ji"`.
    needs_grad : bool, optional
        True makes `x.grad`, of the same shape, zero at first. Left out, the field has no gradient to read; where
        differentiated values go through it, it has a temporary adjoint as long as the tape lasts, so that the
        derivative with respect to other fields is right. `needs_grad=False` makes the field a constant of every
        derivative, in forward mode, too, unless `needs_dual` is given: differentiated values that go through it are an
        error, unless they are stored as `ti.stop_gradient(…)`.
    needs_dual : bool, optional
        The same for forward mode: True makes `x.dual`; left out, the field has a temporary dual; False makes the field
        a constant of forward mode alone.
    dt : type, optional
        The old spelling of `dtype`.

    Returns
    -------
    Field
        A `ScalarField`, `MatrixField` or `StructField`, whose elements are zero.

    Raises
    ------
    FieldError
        For types, shapes and orders that do not exist or do not go together.

    Examples
    --------
    >>> x = ti.field(ti.f32, shape=(2, 3))
    >>> x[0, 1] = 2.5
    >>> x.to_numpy()
    array([[0. , 2.5, 0. ],
           [0. , 0. , 0. ]], dtype=float32)
    >>> p = ti.field(ti.math.vec2, shape=8, needs_grad=True)
    >>> p.grad.shape
    (8,)
    """
    dtype = dtype if dt is None else dt
    compound = getattr(dtype, "field", None)
    if compound is not None:
        return compound(shape, name=name, offset=offset, order=order, needs_grad=needs_grad, needs_dual=needs_dual)
    return _make(ScalarField, dtype, shape, (), name, needs_grad, needs_dual, offset, order, Layout.AOS)


@keywords_known
def vector_field(
    n: int,
    dtype: Any = None,
    shape: Any = None,
    *,
    name: str = "",
    offset: Any = None,
    order: str | None = None,
    layout: Layout = Layout.AOS,
    needs_grad: bool | None = None,
    needs_dual: bool | None = None,
    dt: Any = None,
) -> MatrixField:
    """Make a field of vectors.

    Parameters
    ----------
    n : int
        The number of components.
    dtype : number type
        The type of the components.
    shape : int or tuple of int, optional
        The extent of each index dimension, as for `ti.field`.
    name : str, optional
        As for `ti.field`.
    offset : int or tuple of int, optional
        As for `ti.field`.
    order : str, optional
        As for `ti.field`.
    layout : ti.Layout, default ti.Layout.AOS
        Whether the components of an element lie together (AOS), or each component has an array of its own (SOA).
    needs_grad : bool, optional
        True makes `x.grad`. Left out, derivatives go through the field all the same, by a temporary adjoint; with
        `needs_grad=False` it is a constant.
    needs_dual : bool, optional
        True makes `x.dual`, for forward mode.
    dt : number type, optional
        The old spelling of `dtype`.

    Returns
    -------
    MatrixField
        A field whose elements are vectors of `n` zeros.

    Examples
    --------
    >>> v = ti.Vector.field(3, ti.f32, shape=10)
    >>> v[4] = [1.0, 2.0, 3.0]
    >>> v[4].norm_sqr()
    14.0
    >>> v.to_numpy().shape
    (10, 3)
    """
    return _make(
        MatrixField, dtype if dt is None else dt, shape, (n,), name, needs_grad, needs_dual, offset, order, layout
    )


@keywords_known
def matrix_field(
    n: int,
    m: int,
    dtype: Any = None,
    shape: Any = None,
    *,
    name: str = "",
    offset: Any = None,
    order: str | None = None,
    layout: Layout = Layout.AOS,
    needs_grad: bool | None = None,
    needs_dual: bool | None = None,
    dt: Any = None,
) -> MatrixField:
    """Make a field of matrices.

    Parameters
    ----------
    n, m : int
        The numbers of rows and of columns.
    dtype : number type
        The type of the components.
    shape : int or tuple of int, optional
        The extent of each index dimension, as for `ti.field`.
    name : str, optional
        As for `ti.field`.
    offset : int or tuple of int, optional
        As for `ti.field`.
    order : str, optional
        As for `ti.field`.
    layout : ti.Layout, default ti.Layout.AOS
        Whether the components of an element lie together (AOS), or each component has an array of its own (SOA).
    needs_grad : bool, optional
        True makes `x.grad`. Left out, derivatives go through the field all the same, by a temporary adjoint; with
        `needs_grad=False` it is a constant.
    needs_dual : bool, optional
        True makes `x.dual`, for forward mode.
    dt : number type, optional
        The old spelling of `dtype`.

    Returns
    -------
    MatrixField
        A field whose elements are matrices of zeros.

    Examples
    --------
    >>> F = ti.Matrix.field(2, 2, ti.f32, shape=10)
    >>> F.fill([[1.0, 0.0], [0.0, 1.0]])
    >>> F[0].trace()
    2.0
    """
    return _make(
        MatrixField, dtype if dt is None else dt, shape, (n, m), name, needs_grad, needs_dual, offset, order, layout
    )


Matrix.field = staticmethod(matrix_field)  # type: ignore[attr-defined]
Vector.field = staticmethod(vector_field)  # type: ignore[attr-defined]
