"""Iteration domains of `for` loops, and their unrolling at compile time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice, product
from math import prod
from typing import Any

from tinote.compiler.captures import MAX_UNROLLED
from tinote.compiler.frontend.conversions import ask_python, static_int
from tinote.compiler.frontend.descriptions import describe
from tinote.compiler.frontend.emitter import Emitter
from tinote.compiler.frontend.expressions.arithmetic import tensor
from tinote.compiler.frontend.values import (
    FieldDomain,
    GeneratorCall,
    Grouped,
    IndexRange,
    NdRange,
    SparseDomain,
    StaticSequence,
    StaticTensor,
    Value,
    is_number,
)
from tinote.compiler.protocol import axes_of, grouped_of, is_numpy_number, space_of, sparsity_of
from tinote.errors import KernelSyntaxError
from tinote.ir.nodes import Lit

Domain = IndexRange | NdRange | FieldDomain | SparseDomain | Grouped | StaticSequence


def is_domain(front: Any) -> bool:
    return isinstance(front, Domain)


def domain_of(e: Emitter, front: Any) -> Domain:
    """The domain of a loop over `front`. Raises if it cannot be iterated."""
    if isinstance(front, Domain):
        return front
    if isinstance(front, range):
        return IndexRange(front.start, front.stop, front.step)
    sparsity = sparsity_of(front)
    if sparsity is not None:
        return SparseDomain(sparsity)
    buffer = space_of(front)
    if buffer is not None:
        if not buffer.shape:
            e.error(
                f"field `{buffer.name}` has no dimensions to loop over", f"its only element is `{buffer.name}[None]`"
            )
        return FieldDomain(buffer)
    made = _made_in_python(e, front)
    if made is not None:
        return made
    if (
        isinstance(front, tuple | list | StaticTensor | str | dict)
        or e.static_tensor(front) is not None
        or (isinstance(front, Value) and front.shape)
    ):
        e.error(f"a run-time loop cannot iterate over {describe(front)}", "unroll it: `for … in ti.static(…)`")
    if is_number(front) or isinstance(front, Value):
        e.error(f"{describe(front)} cannot be looped over", "did you mean `range(…)`?")
    e.error(
        f"{describe(front)} cannot be looped over",
        "loops iterate over `range(…)`, `ti.ndrange(…)`, a field, or anything in `ti.static(…)`",
    )


def grouped(e: Emitter, front: Any) -> Grouped:
    """A domain whose index is one vector. Raises if it has no such indices."""
    sparsity = sparsity_of(front)
    if sparsity is not None:
        return Grouped(SparseDomain(sparsity))
    buffer = space_of(front)
    if buffer is not None:
        return Grouped(FieldDomain(buffer))
    domain = domain_of(e, front)
    if isinstance(domain, NdRange | FieldDomain | SparseDomain | StaticSequence):
        return Grouped(domain)
    if isinstance(domain, IndexRange) and domain.step == 1:
        return Grouped(NdRange(((domain.lo, domain.hi),)))
    e.error("`grouped` takes a field or an `ndrange`")


def _made_in_python(e: Emitter, front: Any) -> NdRange | Grouped | None:
    """An `ndrange` or `grouped` made in Python, as a domain."""
    axes = axes_of(front)
    if axes is not None:
        return NdRange(axes)
    of = grouped_of(front)
    return None if of is None else grouped(e, of)


def check_unrolled(e: Emitter, count: int) -> None:
    """Refuse to unroll an endless iterable."""
    if count > MAX_UNROLLED:
        e.error(
            f"unrolling {count:,} iterations would take forever; at most {MAX_UNROLLED:,} are",
            "leave out `ti.static` for a loop that runs",
            kind=KernelSyntaxError,
        )


def _static_bounds(e: Emitter, *bounds: Any) -> tuple[int, ...]:
    for bound in bounds:
        if isinstance(bound, Value) and not isinstance(bound.atom, Lit):
            e.error(
                "a bound of a loop that is unrolled must be known at compile time; this one exists at run time only",
                "leave out `ti.static` for a loop that runs",
            )
    return tuple([static_int(e, bound, "a bound of a loop that is unrolled") for bound in bounds])


def _axes(e: Emitter, domain: NdRange | FieldDomain) -> list[range]:
    if isinstance(domain, FieldDomain):
        if None in domain.buffer.shape:
            e.error(f"the shape of `{domain.buffer.name}` is known at launch only", "a loop over it cannot be unrolled")
        shape = domain.buffer.shape
        starts = domain.buffer.offset or (0,) * len(shape)
        return [range(first, first + (n or 0)) for first, n in zip(starts, shape, strict=True)]
    return [range(*_static_bounds(e, lo, hi)) for lo, hi in domain.axes]


def _count(numbers: range) -> int:
    """The number of items; `len` is limited to machine words."""
    return max(0, -((numbers.start - numbers.stop) // numbers.step))


def _walked(e: Emitter, numbers: range) -> tuple[int, ...]:
    check_unrolled(e, _count(numbers))
    return tuple(numbers)


def rows(e: Emitter, front: Any) -> list[Any]:
    """The items of an iterated or unpacked vector or matrix, as in Python: components, or rows as vectors."""
    shape, components = e.shape(front), e.components(front)
    if len(shape) < 2:
        return components
    height, width = shape
    return [tensor(e, components[r * width : (r + 1) * width], (width,)) for r in range(height)]


def static_items(e: Emitter, front: Any) -> tuple[Any, ...]:
    """All items of an unrolled loop over `front`."""
    of = front.domain if isinstance(front, Grouped) else front
    if isinstance(of, SparseDomain) or sparsity_of(of) is not None:
        e.error("what is active is known at run time only", "leave out `ti.static` for a loop that runs")
    if isinstance(front, StaticSequence):
        return front.items
    if isinstance(front, IndexRange):
        lo, hi, step = _static_bounds(e, *front)
        if step == 0:
            e.error("the step of a range must not be zero")
        return _walked(e, range(lo, hi, step))
    if isinstance(front, NdRange | FieldDomain):
        axes = _axes(e, front)
        check_unrolled(e, prod(map(_count, axes)))
        return tuple(axes[0]) if len(axes) == 1 else tuple(product(*axes))
    if isinstance(front, Grouped):
        if isinstance(front.domain, StaticSequence):
            return tuple(
                [
                    StaticTensor(i if isinstance(i, tuple) else (i,), (len(i) if isinstance(i, tuple) else 1,))
                    for i in front.domain.items
                ]
            )
        assert not isinstance(front.domain, SparseDomain)
        axes = _axes(e, front.domain)
        check_unrolled(e, prod(map(_count, axes)))
        return tuple([StaticTensor(index, (len(index),)) for index in product(*axes)])
    if isinstance(front, tuple | list):
        return tuple([item.item() if is_numpy_number(item) else item for item in front])
    buffer = space_of(front)
    if buffer is not None:
        return static_items(e, FieldDomain(buffer))
    if e.static_tensor(front) is not None or (isinstance(front, Value) and front.shape):
        return tuple(rows(e, front))
    if isinstance(front, range):
        return _walked(e, front)
    made = _made_in_python(e, front)
    if made is not None:
        return static_items(e, made)
    if isinstance(front, Iterable):
        items = tuple(islice(front, MAX_UNROLLED + 1)) if isinstance(front, Iterator) else ask_python(e, iter, front)
        check_unrolled(e, len(items))
        return items
    hint = (
        "a loop that runs goes over one generator: `for … in generator(…)`" if isinstance(front, GeneratorCall) else ""
    )
    e.error(f"{describe(front)} cannot be looped over", hint)
