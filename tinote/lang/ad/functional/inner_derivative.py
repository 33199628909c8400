"""Nested derivatives: a derivative inside another one is part of the enclosing recording, at any depth.

Forward mode is one more block of pushforwards (`forward.py`), which the outer recording differentiates like other
code. Reverse mode is one record (`inner_gradient.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from tinote.lang.ad.functional.forward import Forward
from tinote.lang.ad.functional.forward_mode import ForwardMode
from tinote.lang.ad.functional.inner import (
    Inner,
    alone,
    give_second_duals,
    noted,
    refuse_nesting,
    refuse_written,
)
from tinote.lang.ad.functional.inner_gradient import gradient_within
from tinote.lang.ad.functional.inputs import Bound, shape_of
from tinote.lang.ad.functional.layer import Execute
from tinote.lang.ad.functional.runs import result_of
from tinote.lang.ad.functional.seeds import seed_array
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.ad.memory.values import held_now, hold
from tinote.lang.data.fields import Field
from tinote.lang.data.ndarrays import stand_in
from tinote.lang.data.nests import leaves
from tinote.lang.data.traced import Traced, holds_traced, stored
from tinote.lang.session.state import Recorder, note_making, note_python_write
from tinote.runtime.seam import active_listener


def inside(outer: Recorder, inner: Inner) -> tuple[Any, list[Any]]:
    """The value of an inner derivative, and its result for each input (one for the output in forward mode), as
    differentiable parts of the recording `outer`. Raises `DifferentiationError`.
    """
    with _entered(outer, inner):
        if isinstance(outer, Journal) and not outer.derivative.has_tangents:
            outer.took(inner.name, leaves([*inner.args, inner.seed, inner.directions]))
        elif not isinstance(outer, ForwardMode):
            refuse_capture("a third derivative")
        return _pushed(outer, inner) if inner.is_forward else gradient_within(outer, inner)


def refuse_capture(what: str) -> None:
    """Derivatives of a third order are not part of a step that is being captured."""
    if (listener := active_listener()) is not None:
        listener.taking(what)


@contextmanager
def _entered(outer: Recorder, inner: Inner) -> Iterator[None]:
    """A block in which an inner derivative runs."""
    base = outer.root
    base.begin_all_duals()
    around: AbstractContextManager[None]
    if isinstance(base, ForwardMode):
        base.nesting()
        around = nullcontext() if inner.is_forward else base.nested()
    elif isinstance(base, Journal | Execute):
        around = nullcontext()
    elif base.lets_record:
        around = noted(base)
    else:
        refuse_nesting(inner.task.what, outer, "it does not record derivatives", inner.span)
    with around:
        yield


def within(outer: Recorder, inner: Inner, run: Callable[..., Any], *leading: Any) -> tuple[Any, Any]:
    """The value and the derivatives that `run`, with these `leading` arguments and those of `inner`, computes outside
    any recording, here in a recording `outer`.
    """
    task = inner.task
    if outer.lets_record:
        with alone(outer):
            return run(*leading, *inner.args, **inner.kwargs)
    if task.loss is not None and not leading:
        task.loss.fill(0)
    value, found = inside(outer, inner)
    return value, found[0] if inner.is_forward else task.shaped(found)


def hessian_within(outer: Recorder, inner: Inner, run: Callable[..., tuple[Any, Any, Any]]) -> tuple[Any, Any, Any]:
    """The same for the value, the gradient and the product of the Hessian and the directions."""
    task = inner.task
    if outer.lets_record:
        with alone(outer):
            return run(inner.directions, *inner.args, **inner.kwargs)
    if task.loss is not None:
        task.loss.fill(0)
    with _entered(outer, inner):
        refuse_capture("a third derivative")
        value, gradients, products = _hessian_products(outer, inner)
    return value, task.shaped(gradients), task.shaped(products)


def unrecorded(outer: Recorder, what: str, run: Callable[[], Any]) -> Any:
    """`run()` outside any recording. Raises `DifferentiationError` elsewhere."""
    if not outer.lets_record:
        refuse_nesting(what, outer, "its own derivative is not computed; ti.ad.grad, vjp and jvp have one")
    with alone(outer):
        return run()


# ---- forward mode


def _pushed(outer: Recorder, inner: Inner) -> tuple[Any, list[Any]]:
    """The value and the product of an inner derivative in forward mode, as parts of the recording around it."""
    task = inner.task
    block = Forward.within(outer, outer.next_depth, inner.span)
    try:
        bound = _pointed(block, inner)
        with block.following(), bound.running():
            returned = task.f(*bound.args, **inner.kwargs)
        refuse_written(bound, inner)
        value, product = _parts_taken(block, result_of(task, returned, block.trace))
        return value, [product]
    finally:
        block.close()


def _hessian_products(outer: Recorder, inner: Inner) -> tuple[Any, list[Any], list[Any]]:
    """The value, the gradients and the products of the Hessian and the directions, as parts of the recording around:
    the gradient, in a block of pushforwards.
    """
    block = Forward.within(outer, outer.next_depth, inner.span)
    try:
        bound = _pointed(block, inner)
        with block.following(), bound.running():
            value, gradients = gradient_within(block, Inner(inner.task, bound.args, inner.kwargs))
        pairs = [_parts_taken(block, one) for one in gradients]
        return _parts_taken(block, value)[0], [first for first, _ in pairs], [second for _, second in pairs]
    finally:
        block.close()


def _pointed(block: Forward, inner: Inner) -> Bound:
    """The inputs, which have the directions as tangents in `block`."""
    task = inner.task
    bound = task.bound(inner.args, block.trace, duals=True)
    for one in bound.inputs:
        if one.stand_in is not None:
            note_making(one.stand_in.buffer)
    give_second_duals(bound)
    for k, (one, direction) in enumerate(zip(bound.inputs, task.parts(inner.directions, "seeds"), strict=True)):
        if direction is None and one.shape == ():
            direction = 1.0
        if one.number is not None:
            block.give(one.number, inner.args[task.argnums[k]], _number_given(direction))
        else:
            assert one.field is not None
            block.point(one.field, _array_given(direction, one.shape))
    return bound


def _parts_taken(block: Forward, result: Any) -> tuple[Any, Any]:
    """The result of a block of pushforwards and its tangent, as parts of the outer recording."""
    if isinstance(result, Field):
        return contents_of(result), contents_of(block.tangent_field(result))
    return block.parts(result)


def _number_given(direction: Any) -> Any:
    if type(direction) is Traced:
        return direction
    if holds_traced(direction):
        return np.asarray(direction, object).reshape(()).item()
    return seed_array(stored(direction), (), "", "the input").item()


def _array_given(direction: Any, shape: tuple[int, ...]) -> Any:
    if isinstance(direction, Field) and shape_of(direction) == shape:
        return direction
    if holds_traced(direction):
        return np.asarray(direction, object).reshape(shape)
    return seed_array(stored(direction), shape, "", "the input")


def contents_of(field: Field | None) -> Any:
    """The contents of a field, as a number or an array of the recording."""
    if field is None:
        return 0.0
    if shape_of(field) == ():
        return field[None]  # type: ignore[index]
    made = stand_in(np.zeros(shape_of(field), numbers(field.buffer).dtype), needs_dual=True)
    made.grad.ensure_dual()
    note_making(made.buffer)
    note_python_write(made.buffer, ..., None, field.buffer)
    hold(made.buffer, held_now(field.buffer))
    return made
