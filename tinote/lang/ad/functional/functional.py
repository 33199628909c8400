"""Derivatives as functions: `grad`, `value_and_grad`, `vjp`, `jvp`, `jacobian`, `hvp` and `value_and_grad_and_hvp`.

    slope = ti.ad.grad(simulate, wrt=x, output=energy)  # simulate(dt) reads the field x, leaves its result in energy
    slope(dt)                                           # an array of the shape of x

    @ti.kernel
    def potential(k: ti.f64, x: ti.types.ndarray(dtype=ti.f64, ndim=1)) -> ti.f64: ...

    ti.ad.grad(potential, argnums=(0, 1))(2.0, np.ones(8))      # a number, and an array of shape (8,)

`f` is a kernel or a Python function that launches kernels. Its inputs are arguments, chosen by position (`argnums`:
floats, NumPy arrays, PyTorch tensors and ndarrays with a gradient; the first one unless `wrt` is given) and fields
(`wrt`); its result is what it returns, a number that a kernel returned or that was computed from such by arithmetic, or
a field (`output`). With both `argnums` and `wrt`, derivatives come as a pair: of the arguments, of the fields.

Inside of `f` a float that is differentiated is a traced number (`lang/data/traced.py`), as are what kernels return and
what Python reads of fields; an array is an ndarray that kernels take in its place.
A function that calls `grad`, `value_and_grad`, `vjp` or `jvp` can be differentiated itself, by these, a tape or forward
mode (`inner_derivative.py`): there, gradients that are arrays come as ndarrays, to be passed to kernels, and numbers
as traced numbers. Where a gradient is differentiated in reverse, `f` runs again, and must do the same.
`f` runs for real: what it writes stays written. An array that it writes must have one name only: one that is passed
twice, or shares memory with another, is refused. The gradients and duals of all fields are left as they were.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tinote.errors import DifferentiationError
from tinote.ir.types import f64, machine_epsilon
from tinote.lang.ad.functional.directions import MOST_DIRECTIONS, OneDirectionOnly, SeveralDirections, directions_for
from tinote.lang.ad.functional.forward_mode import ForwardMode
from tinote.lang.ad.functional.inner import Inner
from tinote.lang.ad.functional.inner_derivative import hessian_within, unrecorded, within
from tinote.lang.ad.functional.inputs import (
    Array,
    Bound,
    DifferentiatedFunction,
    arrays_among,
    number_or_array,
    shape_of,
)
from tinote.lang.ad.functional.rows import SeveralRows
from tinote.lang.ad.functional.runs import (
    Run,
    begin_along,
    pull_back,
    recorded,
    recorded_from,
    result_of,
)
from tinote.lang.ad.functional.seeds import seed_array
from tinote.lang.ad.functional.sparse import Pattern, misses, probe, values
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.ad.journal.touched_gradients import give_gradients_duals
from tinote.lang.ad.memory.states import ShadowsBefore, State
from tinote.lang.ad.memory.values import plain_array
from tinote.lang.capture.planned import Planned
from tinote.lang.data.captured_arrays import zeros
from tinote.lang.data.fields import Field
from tinote.lang.data.traced import Trace, constants
from tinote.lang.session.owners import interrupting
from tinote.lang.session.renamed import also_called
from tinote.lang.session.state import Recorder, recorder
from tinote.lazy import lazy
from tinote.runtime.seam import active_listener

if TYPE_CHECKING:
    scipy_sparse: Any
else:
    scipy_sparse = lazy("scipy.sparse")


class MissingElementsError(DifferentiationError):
    """A Jacobian has elements that the pattern given for it has not."""


Fields = Field | Sequence[Field] | None
Positions = int | Sequence[int] | None


@also_called(loss="output")
def grad(
    f: Callable[..., Any], argnums: Positions = None, *, wrt: Fields = None, output: Field | None = None
) -> Callable[..., Any]:
    """A function that runs `f` and returns the derivative of its result, a single number, by reverse mode.

    The inputs are the arguments `argnums` and the fields `wrt`; without either, the first argument.

    Parameters
    ----------
    f : callable
        A kernel, or a function that launches kernels.
    argnums : int or sequence of int, optional
        The positions of the arguments to differentiate with respect to: numbers, vectors or arrays.
    wrt : Field or sequence of Field, optional
        The fields to differentiate with respect to, with `needs_grad=True`.
    output : Field or Ndarray, optional
        Where `f` leaves the result: a single number, which is set to 0 before. Left out, the result is what `f`
        returns. `loss` is another name of this parameter.

    Returns
    -------
    callable
        Takes the arguments of `f`; returns an array of the input's shape, a number for a number, a tuple for several.

    Raises
    ------
    DifferentiationError
        For what cannot be differentiated.

    Examples
    --------
    >>> @ti.kernel
    ... def f(a: ti.f64, b: ti.f64) -> ti.f64:
    ...     return a * a * b
    >>> ti.ad.grad(f, argnums=(0, 1))(3.0, 2.0)
    (12.0, 9.0)
    """
    both = _value_and_grad("grad", f, argnums, wrt, output)
    return _calling(f, lambda *args, **kwargs: both(*args, **kwargs)[1])


@also_called(loss="output")
def value_and_grad(
    f: Callable[..., Any], argnums: Positions = None, *, wrt: Fields = None, output: Field | None = None
) -> Callable[..., Any]:
    """A function that runs `f` and returns both its result, a single number, and the derivative, by reverse mode.

    Parameters
    ----------
    f : callable
        As for `ti.ad.grad`.
    argnums : int or sequence of int, optional
        As for `ti.ad.grad`.
    wrt : Field or sequence of Field, optional
        As for `ti.ad.grad`.
    output : Field or Ndarray, optional
        As for `ti.ad.grad`.

    Returns
    -------
    callable
        Takes the arguments of `f`; returns `(value, gradient)`.

    Raises
    ------
    DifferentiationError
        For what cannot be differentiated.

    Examples
    --------
    >>> @ti.kernel
    ... def f(a: ti.f64) -> ti.f64:
    ...     return a * a
    >>> ti.ad.value_and_grad(f, argnums=0)(3.0)
    (9.0, 6.0)
    """
    return _value_and_grad("value_and_grad", f, argnums, wrt, output)


def _value_and_grad(
    what: str, f: Callable[..., Any], argnums: Positions, wrt: Fields, output: Field | None
) -> Callable[..., Any]:
    task = DifferentiatedFunction(what, f, wrt, output, argnums)
    task.require_scalar()
    task.require("grad")

    def run(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        with ShadowsBefore() as before:
            ran = recorded(task, args, kwargs, before, shares=True, zero=True)
            value = ran.number
            found = ran.gradients(pull_back(ran, np.ones(())))
        ran.bound.give_back(task)
        return value, task.shaped(found)

    def inner(outer: Recorder, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        return within(outer, Inner(task, args, kwargs), run)

    return _planned(task, _nesting(run, inner), makes_arrays=True)


@also_called(loss="output")
def vjp(
    f: Callable[..., Any], argnums: Positions = None, *, wrt: Fields = None, output: Field | None = None
) -> Callable[..., Any]:
    """A function that runs `f` and multiplies a seed by the Jacobian of its result, by reverse mode.

    A seed for `output` with a further, leading axis holds several: their products come with such an axis. One run of
    `f` serves all, and a sweep backwards carries up to 16 of them at once, as for the rows of a Jacobian.

    Parameters
    ----------
    f : callable
        As for `ti.ad.grad`.
    argnums : int or sequence of int, optional
        As for `ti.ad.grad`.
    wrt : Field or sequence of Field, optional
        As for `ti.ad.grad`.
    output : Field or Ndarray, optional
        Where `f` leaves the result, of any shape; it is left as it is. Left out, the result is what `f` returns, a
        number.

    Returns
    -------
    callable
        Takes the seed, of the shape of the result, and the arguments of `f`; returns `(value, product)`, where the
        product has the structure of a gradient.

    Raises
    ------
    DifferentiationError
        For what cannot be differentiated.

    Examples
    --------
    >>> x = ti.field(ti.f64, shape=2, needs_grad=True)
    >>> y = ti.field(ti.f64, shape=2, needs_grad=True)
    >>> @ti.kernel
    ... def square():
    ...     for i in x:
    ...         y[i] = x[i] * x[i]
    >>> x.from_numpy([1.0, 3.0])
    >>> value, product = ti.ad.vjp(square, wrt=x, output=y)([1.0, 1.0])
    >>> product
    array([2., 6.])
    """
    task = DifferentiatedFunction("vjp", f, wrt, output, argnums)
    task.require("grad")

    def run(seed: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        if _has_several(task, seed):
            return along_all(seed, args, kwargs)
        direction = _seed_for(task, seed)
        with ShadowsBefore() as before:
            ran = recorded(task, args, kwargs, before, shares=True)
            value = ran.value
            found = ran.gradients(pull_back(ran, direction))
        ran.bound.give_back(task)
        return value, task.shaped(found)

    def along_all(seed: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        count, shape = len(seed), shape_of(task.loss_field)
        directions = seed_array(seed, (count, *shape), "", f"seeds of {task.loss_field.name!r}")
        with ShadowsBefore() as before:
            ran = recorded(task, args, kwargs, before)
            value = ran.value
            found = _products(ran, count, lambda first, end: directions[first:end])
        ran.bound.give_back(task)
        return value, task.shaped(found)

    def inner(outer: Recorder, seed: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        if _has_several(task, seed):
            return unrecorded(outer, "vjp along several seeds", lambda: run(seed, *args, **kwargs))
        return within(outer, Inner(task, args, kwargs, seed=seed), run, seed)

    return _planned(task, _nesting(run, inner), seeds=1)


@also_called(loss="output")
def jvp(
    f: Callable[..., Any], argnums: Positions = None, *, wrt: Fields = None, output: Field | None = None
) -> Callable[..., Any]:
    """A function that runs `f` and multiplies the Jacobian of its result by a seed, by forward mode.

    Parameters
    ----------
    f : callable
        As for `ti.ad.grad`.
    argnums : int or sequence of int, optional
        As for `ti.ad.grad`.
    wrt : Field or sequence of Field, optional
        The fields to differentiate with respect to, with `needs_dual=True`.
    output : Field or Ndarray, optional
        Where `f` leaves the result, of any shape, as for `ti.ad.vjp`.

    Returns
    -------
    callable
        Takes the seed, which has the structure of a gradient, and the arguments of `f`; returns `(value, product)`,
        where the product has the shape of the result.

    Raises
    ------
    DifferentiationError
        For what cannot be differentiated.

    Examples
    --------
    >>> @ti.kernel
    ... def f(a: ti.f64) -> ti.f64:
    ...     return a * a
    >>> ti.ad.jvp(f, argnums=0)(0.5, 3.0)
    (9.0, 3.0)
    """
    task = DifferentiatedFunction("jvp", f, wrt, output, argnums)
    task.require("dual")

    def run(seed: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        with ShadowsBefore() as before:
            return _pushed(task, lambda bound: bound.directions(seed, task), args, kwargs, before)

    def inner(outer: Recorder, seed: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        return within(outer, Inner(task, args, kwargs, directions=seed), run, seed)

    return _planned(task, _nesting(run, inner), seeds=1)


@also_called(loss="output")
def jacobian(
    f: Callable[..., Any],
    argnums: Positions = None,
    *,
    wrt: Fields = None,
    output: Field | None = None,
    mode: str | None = None,
    sparse: bool = False,
    sparsity: Any = None,
) -> Callable[..., Any]:
    """A function that runs `f` and returns the Jacobian of its result.

    In forward mode a run of `f` gives up to 16 columns at once: it computes its values once, and that many tangents of
    each. Where numbers that depend on the inputs go through Python (results of kernels, elements that are read, number
    arguments), a run gives one column. `f` starts from the same fields and arrays each time.

    Columns of a sparse Jacobian that have no row in common are computed together, so the number of directions is about
    that of the elements in a row. The sparsity pattern is found again at each call, with about 2 log₂(columns) times
    that number of directions; it holds for the path that the program takes for these inputs. The result is checked
    along a random direction.

    Parameters
    ----------
    f : callable
        As for `ti.ad.grad`.
    argnums : int or sequence of int, optional
        As for `ti.ad.grad`.
    wrt : Field or sequence of Field, optional
        As for `ti.ad.grad`; in forward mode fields need duals.
    output : Field or Ndarray, optional
        Where `f` leaves the result, as for `ti.ad.vjp`.
    mode : {"forward", "reverse"}, optional
        Reverse mode takes one run of `f`, and a reverse run for each number of the result, up to 16 of them together.
        By default forward mode where the inputs have fewer numbers than the result, as far as the fields have what it
        needs.
    sparse : bool, default False
        In forward mode, return sparse matrices.
    sparsity : sparse matrix or array, or a sequence of them, optional
        For each input what `sparse=True` would find, with elements where there is or may be one: that saves finding it.
        It may come from an earlier call, as long as the program takes the same path.

    Returns
    -------
    callable
        Takes the arguments of `f`; returns an array of the shape of the result followed by that of the input, a tuple
        for several. If sparse, a `scipy.sparse.csr_array` for each input, of the shape (numbers of the result, numbers
        of the input), both counted row by row.

    Raises
    ------
    DifferentiationError
        For what cannot be differentiated, and where an element is missing from `sparsity`, with its row, unless it is
        smaller than half of the digits of its row.

    References
    ----------
    A. Griewank and A. Walther, "Evaluating Derivatives", 2nd ed., 2008, chapter 8 (compression by colouring).

    Examples
    --------
    >>> x = ti.field(ti.f64, shape=2, needs_grad=True)
    >>> y = ti.field(ti.f64, shape=2, needs_grad=True)
    >>> @ti.kernel
    ... def f():
    ...     y[0] = x[0] * x[1]
    ...     y[1] = x[0]
    >>> x.from_numpy([2.0, 5.0])
    >>> ti.ad.jacobian(f, wrt=x, output=y)()
    array([[5., 2.],
           [1., 0.]])
    """
    task = DifferentiatedFunction("jacobian", f, wrt, output, argnums)
    if mode not in (None, "forward", "reverse"):
        raise DifferentiationError(f"the mode of a Jacobian is 'forward' or 'reverse', not {mode!r}", task.span)
    sparse = sparse or sparsity is not None
    if sparse:
        _require_sparse(task, mode)
    if mode is not None or sparse:
        task.require("dual" if mode != "reverse" else "grad")
    elif not task.has("dual"):
        task.require("grad")

    def run(*args: Any, **kwargs: Any) -> Any:
        if sparse and (listener := active_listener()) is not None:
            listener.taking("a sparse Jacobian, whose pattern is found out")
        if not sparse and (mode == "reverse" or (mode is None and not _forward_is_shorter(task, args))):
            return task.shaped(_rows(task, args, kwargs))
        with ShadowsBefore() as before, State() as start:
            # A sparse one has one width for all: what runs is compiled once.
            columns = _Columns(task, args, kwargs, before, start, MOST_DIRECTIONS if sparse else None)
            found = _elements(columns, sparsity) if sparse else _columns(columns)
        return task.shaped(found)

    def inner(outer: Recorder, *args: Any, **kwargs: Any) -> Any:
        return unrecorded(outer, "jacobian", lambda: run(*args, **kwargs))

    nesting = _nesting(run, inner)
    return _calling(f, nesting) if sparse else _planned(task, nesting, makes_arrays=True)


@also_called(loss="output")
def hvp(
    f: Callable[..., Any], argnums: Positions = None, *, wrt: Fields = None, output: Field | None = None
) -> Callable[..., Any]:
    """A function `(v, *args) -> H v` that multiplies the Hessian of the result of `f`, a single number, by a vector.

    Forward mode over reverse mode: the cost is a small multiple of that of a gradient, which comes with it in
    `ti.ad.value_and_grad_and_hvp`. Fields with a gradient get a dual, and so do the gradients, if they have none.

    Parameters
    ----------
    f : callable
        As for `ti.ad.grad`.
    argnums : int or sequence of int, optional
        As for `ti.ad.grad`.
    wrt : Field or sequence of Field, optional
        As for `ti.ad.grad`.
    output : Field or Ndarray, optional
        As for `ti.ad.grad`.

    Returns
    -------
    callable
        Takes the vector, which has the structure of a gradient, and the arguments of `f`; returns the product, which
        has it, too.

    Raises
    ------
    DifferentiationError
        For what cannot be differentiated twice.

    References
    ----------
    B. A. Pearlmutter, "Fast exact multiplication by the Hessian", Neural Computation 6, 1994.

    Examples
    --------
    >>> @ti.kernel
    ... def f(a: ti.f64) -> ti.f64:
    ...     return a * a * a
    >>> ti.ad.hvp(f, argnums=0)(1.0, 2.0)
    12.0
    """
    everything = _value_and_grad_and_hvp("hvp", f, argnums, wrt, output)
    return _calling(f, lambda vector, *args, **kwargs: everything(vector, *args, **kwargs)[2])


@also_called(loss="output")
def value_and_grad_and_hvp(
    f: Callable[..., Any], argnums: Positions = None, *, wrt: Fields = None, output: Field | None = None
) -> Callable[..., tuple[Any, Any, Any]]:
    """A function that returns all that one run and one reverse sweep find: value, gradient and Hessian-vector product.

    For methods that take a step by all three, such as Newton's with conjugate gradients.

    Parameters
    ----------
    f : callable
        As for `ti.ad.grad`.
    argnums : int or sequence of int, optional
        As for `ti.ad.grad`.
    wrt : Field or sequence of Field, optional
        As for `ti.ad.grad`.
    output : Field or Ndarray, optional
        As for `ti.ad.grad`.

    Returns
    -------
    callable
        Takes the vector and the arguments of `f`; returns `(value, gradient, product)`.

    Raises
    ------
    DifferentiationError
        For what cannot be differentiated twice.

    Examples
    --------
    >>> @ti.kernel
    ... def f(a: ti.f64) -> ti.f64:
    ...     return a * a * a
    >>> ti.ad.value_and_grad_and_hvp(f, argnums=0)(1.0, 2.0)
    (8.0, 12.0, 12.0)
    """
    return _value_and_grad_and_hvp("value_and_grad_and_hvp", f, argnums, wrt, output)


def _value_and_grad_and_hvp(
    what: str, f: Callable[..., Any], argnums: Positions, wrt: Fields, output: Field | None
) -> Callable[..., tuple[Any, Any, Any]]:
    task = DifferentiatedFunction(what, f, wrt, output, argnums)
    task.require_scalar()
    task.require("grad")

    def run(vector: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
        journal = Journal(tangents=True)
        bound = task.bound(args, journal.trace, duals=True)
        give_gradients_duals()
        directions = bound.directions(vector, task)
        with ShadowsBefore() as before:
            journal.leave_shadows(before)
            begin_along(journal, bound, directions)
            journal.opened = task.span
            if task.loss is not None:
                journal.begin_loss(task.loss)
            ran = recorded_from(task, bound, journal, kwargs)
            value = ran.number
            sweep = pull_back(ran, np.ones(()))
            gradient = ran.gradients(sweep)
            product = [one.second(sweep) for one in bound.inputs]
        bound.give_back(task)
        return value, task.shaped(gradient), task.shaped(product)

    def inner(outer: Recorder, vector: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
        return hessian_within(outer, Inner(task, args, kwargs, directions=vector), run)

    return _planned(task, _nesting(run, inner), attaches=give_gradients_duals, seeds=1)


def _nesting(run: Callable[..., Any], inner: Callable[..., Any]) -> Callable[..., Any]:
    """`run`; inside another recording, which is the first argument then, `inner`. (A function that refers to itself
    would be a reference cycle.)
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        outer = _outer()
        if outer is None:
            return run(*args, **kwargs)
        if outer.under_way is not None:  # a signal handler interrupts the launch that is being recorded
            with interrupting([outer]):
                return run(*args, **kwargs)
        return inner(outer, *args, **kwargs)

    return call


def _outer() -> Recorder | None:
    """The present recorder. Derivatives are pickled by value, and this function by name: they could not be pickled if
    they referred to a context variable themselves.
    """
    return recorder.get()


def _planned(task: DifferentiatedFunction, run: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """The same, with plans for repeated calls with small arrays. `options`: of `Planned`."""
    planned = Planned(run, task.f, [*task.wrt, *([] if task.loss is None else [task.loss])], **options)
    return _calling(task.f, lambda *args, **kwargs: planned(*args, **kwargs))


def _calling(f: Callable[..., Any], derivative: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a derivative so that captures know the function that it calls."""
    derivative.__tinote_calls__ = f  # type: ignore[attr-defined]
    return derivative


# ---- modes of a Jacobian


def _forward_is_shorter(task: DifferentiatedFunction, args: tuple[Any, ...]) -> bool:
    if not task.has("dual"):
        return False
    if not task.has("grad"):
        return True
    bound = task.bound(args, Trace())
    outputs = 1 if task.loss is None else int(np.prod(shape_of(task.loss)))
    return sum(int(np.prod(one.shape)) for one in bound.inputs) < outputs


def _rows(task: DifferentiatedFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Array]:
    shape = () if task.loss is None else shape_of(task.loss)
    count = math.prod(shape)

    def unit_rows(first: int, end: int) -> Array:
        return np.eye(end - first, count, first).reshape(end - first, *shape)

    with ShadowsBefore() as before:
        ran = recorded(task, args, kwargs, before)
        found = _products(ran, count, unit_rows)
    return [whole.reshape(shape + one.shape) for whole, one in zip(found, ran.bound.inputs, strict=True)]


def _products(ran: Run, count: int, seeds: Callable[[int, int], Array]) -> list[Array]:
    """Products of seeds and the Jacobian, several at once where possible: for each input an array of them.
    `seeds(first, end)` gives some of the seeds, of the shape of the result after their number.
    """
    width = directions_for(count)
    try:
        several = SeveralRows.of(ran, width) if width > 1 else None
        if several is not None and count <= width:
            return several.pull_back(seeds(0, count))
        found = [zeros((count, *one.shape)) for one in ran.bound.inputs]
        if several is not None:
            for first in range(0, count, width):
                end = min(first + width, count)
                for whole, part in zip(found, several.pull_back(seeds(first, end)), strict=True):
                    whole[first:end] = part
            return found
        for row in range(count):
            for one in ran.bound.inputs:
                if row and one.stand_in is not None:
                    one.stand_in.grad.fill(0)
            sweep = pull_back(ran, seeds(row, row + 1)[0], keep=True)
            for whole, part in zip(found, ran.gradients(sweep), strict=True):
                whole[row] = part
    finally:
        ran.journal.forget()
    return found


class _Columns:
    """Products of the Jacobian of a run of `f` with directions, in forward mode. `count`: the number requested at once,
    if it is always the same. `shapes`: of the inputs, whose numbers count one input after the other, `ends` where each
    ends.
    """

    def __init__(
        self,
        task: DifferentiatedFunction,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        before: ShadowsBefore,
        start: State,
        count: int | None = None,
    ) -> None:
        self.task = task
        self._before = before
        self._start = start
        self._count = count
        self._args = args
        self._kwargs = kwargs
        inputs = task.bound(args, Trace()).inputs
        self.shapes = [one.shape for one in inputs]
        self.ends: list[int] = np.cumsum([math.prod(shape) for shape in self.shapes]).tolist()
        self.result = () if task.loss is None else shape_of(task.loss)
        self._arrays = [(array, array.copy()) for array in arrays_among([*args, *kwargs.values()])]
        fields = [one.field for one in inputs if one.field is not None] + ([] if task.loss is None else [task.loss])
        #: the least precise type of the inputs and outputs
        self.epsilon = max([machine_epsilon(field.dtype) for field in fields], default=machine_epsilon(f64))
        #: whether a run may follow several directions
        self._several = task.loss is not None and all(one.number is None for one in inputs)
        self._has_run = False
        self._value: Array | None = None  # what the first run has given

    @property
    def shape(self) -> tuple[int, int]:
        """How many numbers the result has, and the inputs."""
        return math.prod(self.result), self.ends[-1]

    def product(self, count: int, directions: Callable[[int, int], Array], *, last: bool = True) -> Array:
        """The Jacobian times `count` directions: of the shape of the result followed by their number.
        `directions(first, width)` gives those from `first` on, of the shape (numbers of the inputs, `width`); zeros
        where there are no more. `last`: there will be no further run of `f`, which starts each time from the same.
        """
        if self._several:
            try:
                return self._blocks(count, directions_for(self._count or count), directions, last)
            except OneDirectionOnly:
                self._several = False
        return self._blocks(count, 1, directions, last)

    def _blocks(self, count: int, width: int, directions: Callable[[int, int], Array], last: bool) -> Array:
        found = zeros((*self.result, count))
        for first in range(0, count, width):
            if self._has_run:
                self._start.put_back()
                self._before.put_back()
                for array, held in self._arrays:
                    array[...] = held
            self._has_run = True
            end = min(first + width, count)
            product = self._run(directions(first, width), end < count or not last)
            found[..., first:end] = product[..., : end - first] if isinstance(product, np.ndarray) else product
        return found

    def _run(self, directions: Array, repeats: bool) -> Any:
        width = directions.shape[-1]
        parts = np.split(directions, self.ends[:-1])
        if width > 1:
            seeds = [part.reshape(*shape, width) for part, shape in zip(parts, self.shapes, strict=True)]
            value, product = _pushed_along(self.task, seeds, self._args, self._kwargs, repeats=repeats)
            self._compare(value)
            return product
        seeds = [part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True)]
        value, product = _pushed(self.task, lambda _: seeds, self._args, self._kwargs, self._before, repeats=repeats)
        self._compare(value)
        return product[..., None] if isinstance(product, np.ndarray) else product

    def _compare(self, value: Any) -> None:
        """Raise for a run with another result than the first one. (A capture compares more than that.)"""
        if active_listener() is not None:
            return
        found = np.array(plain_array(value))
        if self._value is None:
            self._value = found
        elif not _agree(found, self._value):
            name = getattr(self.task.f, "__name__", "a function")
            raise DifferentiationError(
                f"'{name}' did something else when it was run again: the derivative of that would not be right",
                self.task.span,
                hint="let it depend on its arguments and on fields alone",
            )


def _agree(again: Array, before: Array) -> bool:
    """Whether the results of two runs agree, up to rounding."""
    epsilon = max(np.finfo(one.dtype).eps if one.dtype.kind == "f" else 0.0 for one in (again, before))
    tolerance = 10 * float(np.sqrt(epsilon))
    scale = float(np.abs(before[np.isfinite(before)]).max(initial=0.0))
    return bool(np.allclose(again, before, rtol=tolerance, atol=tolerance * scale, equal_nan=True))


def _columns(jacobian: _Columns) -> list[Array]:
    """The whole Jacobian: along the unit vectors."""
    count = jacobian.ends[-1]
    found = jacobian.product(count, lambda first, width: np.eye(count, width, -first))
    parts = np.split(found, jacobian.ends[:-1], axis=-1)
    return [part.reshape(jacobian.result + shape) for part, shape in zip(parts, jacobian.shapes, strict=True)]


def _elements(jacobian: _Columns, sparsity: Any) -> list[Any]:
    """The nonzero elements, as a sparse matrix for each input."""
    height, width = jacobian.shape

    def product(direction: Array, amounts: Array, *, last: bool = False) -> Array:
        def some(first: int, count: int) -> Array:
            found = np.zeros((width, count))
            there = np.flatnonzero((direction >= first) & (direction < first + count))
            found[there, direction[there] - first] = amounts[there]
            return found

        count = int(direction.max(initial=-1)) + 1
        return jacobian.product(count, some, last=last).reshape(height, count)

    last_product = functools.partial(product, last=True)
    if sparsity is None:
        pattern = probe(product, jacobian.shape)
        numbers, row = values(last_product, pattern), None
    else:
        pattern = _given_pattern(jacobian, sparsity)
        numbers = values(product, pattern)
        row = misses(last_product, pattern, numbers, jacobian.epsilon)
    if row is not None:
        raise MissingElementsError(
            f"the Jacobian has elements in row {row} that are missing from sparsity=",
            jacobian.task.span,
            hint="sparse=True finds out which elements there are",
        )
    found: list[Any] = []
    for first, end in zip([0, *jacobian.ends], jacobian.ends, strict=False):
        own = (pattern.columns >= first) & (pattern.columns < end)
        indices = pattern.rows[own], pattern.columns[own] - first
        found.append(scipy_sparse.csr_array((numbers[own], indices), shape=(height, end - first)))
    return found


def _given_pattern(jacobian: _Columns, sparsity: Any) -> Pattern:
    """The user's pattern. Raises `DifferentiationError` for other shapes than those of the Jacobian."""
    task = jacobian.task
    count = len(jacobian.shapes)
    given = task.parts(sparsity, "sparsity") if count > 1 else [sparsity]
    height = jacobian.shape[0]
    rows: list[Array] = []
    columns: list[Array] = []
    for one, first, end in zip(given, [0, *jacobian.ends], jacobian.ends, strict=False):
        found = scipy_sparse.coo_array(one)
        if found.shape != (height, end - first):
            raise DifferentiationError(
                f"sparsity= has shape {found.shape}, but the Jacobian has shape {(height, end - first)}", task.span
            )
        rows.append(found.coords[0].astype(np.intp))
        columns.append(found.coords[1].astype(np.intp) + first)
    keys = np.unique(np.concatenate(rows) * jacobian.shape[1] + np.concatenate(columns))
    return Pattern(keys // jacobian.shape[1], keys % jacobian.shape[1], jacobian.shape)


def _require_sparse(task: DifferentiatedFunction, mode: str | None) -> None:
    """Raise where there can be no sparse Jacobian."""
    if mode == "reverse":
        raise DifferentiationError("a sparse Jacobian is computed in forward mode", task.span, hint="leave mode= out")
    if task.loss is None:
        raise DifferentiationError(
            "the Jacobian of a single number is a gradient, which is not sparse",
            task.span,
            hint="name the field with the result in output=, or use ti.ad.grad",
        )


# ---- forward mode


def _pushed(
    task: DifferentiatedFunction,
    seeds: Callable[[Bound], list[Array]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    before: ShadowsBefore,
    *,
    repeats: bool = False,
) -> tuple[Any, Any]:
    """The result, and the Jacobian times a direction for each input. `before`: gets the duals that are used. `repeats`:
    there will be another run.
    """
    trace = Trace()
    bound = task.bound(args, trace, duals=True, repeats=repeats)
    along = bound.point_numbers(seeds(bound))
    with ForwardMode([], [field for field, _ in along], [d for _, d in along], trace, before) as mode:
        with bound.running():
            returned = task.f(*bound.args, **kwargs)
        mode.take_duals_back()
        result = result_of(task, returned, trace)
        # At the end of the block the duals of the inputs are cleared, and the result may be one.
        if isinstance(result, Field):
            return number_or_array(result), number_or_array(result.dual)
        return constants((result,))[0], result.tangent


def _pushed_along(
    task: DifferentiatedFunction, seeds: list[Array], args: tuple[Any, ...], kwargs: dict[str, Any], *, repeats: bool
) -> tuple[Any, Array]:
    """The field with the result, and its Jacobian times several directions: of its shape followed by their number.
    `seeds`: for each input of its shape followed by the same. Raises `OneDirectionOnly`.
    """
    assert task.loss is not None
    trace = Trace()
    bound = task.bound(args, trace, repeats=repeats)
    fields = [one.field for one in bound.inputs if one.field is not None]
    with SeveralDirections(fields, seeds, trace) as mode:
        with bound.running():
            task.f(*bound.args, **kwargs)
        return None if active_listener() is not None else number_or_array(task.loss), mode.tangents(task.loss)


def _has_several(task: DifferentiatedFunction, seed: Any) -> bool:
    """Whether a seed has one axis more than the result."""
    if task.loss is None:
        return False
    axes = 0
    while isinstance(seed, list | tuple) and seed:
        seed, axes = seed[0], axes + 1
    return axes + (seed.ndim if isinstance(seed, np.ndarray) else 0) == len(shape_of(task.loss)) + 1


def _seed_for(task: DifferentiatedFunction, seed: Any) -> Array:
    shape = () if task.loss is None else shape_of(task.loss)
    return seed_array(seed, shape, f" of {'the result' if task.loss is None else repr(task.loss.name)}", "it")
