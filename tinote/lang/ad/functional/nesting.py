"""Dispatch of nested derivatives: a record of their own, or with the tangents of the outer recording."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from tinote.lang.ad.functional import higher_order
from tinote.lang.ad.functional.forward_mode import ForwardMode
from tinote.lang.ad.functional.nested import Inner, Recorded, alone, pushed_within, refuse_nesting
from tinote.lang.ad.functional.pushed_mode import Unrecorded, base_of
from tinote.lang.ad.journal.from_python import Taken, sketch
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.data.nests import leaves
from tinote.lang.data.traced import holds_traced
from tinote.lang.session.state import Recorder
from tinote.runtime.seam import active_listener


def inside(outer: Recorder, inner: Inner) -> tuple[Any, list[Any]]:
    """The value of an inner derivative, and its result for each input (one for the output in forward mode), as
    differentiable parts of the recording `outer`. Raises `DifferentiationError`.
    """
    with _entered(outer, inner):
        if isinstance(outer, ForwardMode):
            if not inner.is_forward:
                return pushed_within(outer, inner)
        elif isinstance(outer, Journal) and not outer.derivative.has_tangents:
            outer.took(inner.name, list(leaves([*inner.args, inner.seed, inner.directions])))
            if not inner.is_forward:
                return Recorded(outer, inner, inside).run()
        else:
            refuse_capture("a third derivative")
        run = higher_order.pushed if inner.is_forward else higher_order.record
        return run(outer, inner, inside)


def refuse_capture(what: str) -> None:
    """Derivatives of a third order are not part of a step that is being captured."""
    if (listener := active_listener()) is not None:
        listener.taking(what)


@contextmanager
def _entered(outer: Recorder, inner: Inner) -> Iterator[None]:
    """A block in which an inner derivative runs."""
    base = base_of(outer)
    base.begin_all_duals()
    around: AbstractContextManager[None]
    if isinstance(base, ForwardMode):
        base.nesting()
        around = nullcontext() if inner.is_forward else base.nested()
    elif isinstance(base, Journal | Unrecorded):
        around = nullcontext()
    else:
        refuse_nesting(inner.task.what, outer, "it does not record derivatives")
    with around, _taking(outer, inner):
        yield


@contextmanager
def _taking(outer: Recorder, inner: Inner) -> Iterator[None]:
    """A block in which an inner derivative runs. The outer recording notes only the seeds and directions among its
    inputs from Python.
    """
    if not isinstance(outer, Journal) or outer.from_python is None:
        yield
        return
    noted, outer.from_python = outer.from_python, None
    given = inner.directions if inner.is_forward else inner.seed
    for one in leaves(given):
        if isinstance(one, int | float | np.ndarray) and not holds_traced(one):
            noted.append(Taken(inner.name, (), sketch(np.asarray(one))))
    try:
        yield
    finally:
        outer.from_python = noted


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
        value, gradients, products = higher_order.hessian_products(outer, inner)
    return value, task.shaped(gradients), task.shaped(products)


def unrecorded(outer: Recorder, what: str, run: Callable[[], Any]) -> Any:
    """`run()` outside any recording. Raises `DifferentiationError` elsewhere."""
    if not outer.lets_record:
        refuse_nesting(what, outer, "its own derivative is not computed; ti.ad.grad, vjp and jvp have one")
    with alone(outer):
        return run()
