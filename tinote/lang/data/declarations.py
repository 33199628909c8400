"""What makes fields: `field(ti.f32, shape=(n, m), needs_grad=True)`, `Vector.field(2, ti.f32, shape=n)`,
`Matrix.field(2, 2, ti.f32, shape=n)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

from tinote.errors import FieldError
from tinote.lang.data.fields import Field, MatrixField, ScalarField
from tinote.lang.data.layout import Layout, offset_given, order_named, shape_given
from tinote.lang.data.matrix import Matrix, Vector
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
        if not isinstance(extent, int) or isinstance(extent, bool) or extent < 1:
            raise FieldError(
                f"an element needs positive dimensions, not {', '.join(map(str, element))}",
                made_at,
                hint="they come first: ti.Vector.field(3, ti.f32, shape=…), ti.Matrix.field(3, 2, ti.f32, shape=…)",
            )
    made = kind(scalar_type(dtype, made_at), tuple(element), made_at, name, needs_grad, needs_dual)
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
    """A field of numbers; of vectors, matrices or structs where `dtype` is a type of these.

    `shape`: an extent or a tuple of them; `()` for a single value; none for a field that is placed later (`ti.root`).
    `offset`: the first index of each dimension. `order`: the dimensions as they lie in memory, the slowest first
    ("ji"). `name`: how errors call it. `dt` is the old spelling of `dtype`. Raises `FieldError`.

    `needs_grad=True` makes `x.grad`, of the same shape, zero at first; `needs_dual=True` makes `x.dual`, for forward
    mode. Left out, the field has none to read; where differentiated values go through it, it is lent a temporary
    adjoint for the time of the tape (a temporary dual for that of the sweep), so that the derivative by what has one is
    right. `needs_grad=False` makes it a constant of every derivative, in forward mode too unless `needs_dual` is given,
    and `needs_dual=False` one in forward mode alone: differentiated values that go through it are an error, unless they
    are stored as `ti.stop_gradient(…)`.
    """
    dtype = dtype if dt is None else dt
    compound = getattr(dtype, "field", None)
    if compound is not None:
        return compound(shape, name=name, offset=offset, order=order, needs_grad=needs_grad, needs_dual=needs_dual)
    return _make(ScalarField, dtype, shape, (), name, needs_grad, needs_dual, offset, order, Layout.AOS)


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
    """A field of vectors of `n` components. `layout`: whether the components of an element lie together (AOS) or each
    has an array of its own (SOA). The other options are those of `ti.field`; without `needs_grad`, derivatives go
    through it all the same, by a temporary adjoint, and with `needs_grad=False` it is a constant.
    """
    return _make(
        MatrixField, dtype if dt is None else dt, shape, (n,), name, needs_grad, needs_dual, offset, order, layout
    )


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
    """A field of `n` by `m` matrices; the options are those of `Vector.field`. Without `needs_grad`, derivatives go
    through it all the same, by a temporary adjoint, and with `needs_grad=False` it is a constant.
    """
    return _make(
        MatrixField, dtype if dt is None else dt, shape, (n, m), name, needs_grad, needs_dual, offset, order, layout
    )


Matrix.field = staticmethod(matrix_field)  # type: ignore[attr-defined]
Vector.field = staticmethod(vector_field)  # type: ignore[attr-defined]
