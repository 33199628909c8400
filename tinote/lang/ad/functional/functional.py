"""Derivatives as functions: `grad`, `value_and_grad`, `vjp`, `jvp`, `jacobian` and `hvp`, beside the tape.

    slope = ti.ad.grad(simulate, wrt=x, loss=energy)    # simulate(dt) reads the field x and leaves its result in energy
    slope(dt)                                           # an array of the shape of x

    @ti.kernel
    def potential(k: ti.f64, x: ti.types.ndarray(dtype=ti.f64, ndim=1)) -> ti.f64: ...

    ti.ad.grad(potential, argnums=(0, 1))(2.0, np.ones(8))      # a number, and an array of shape (8,)

`f` is a kernel or a Python function that launches kernels. Its inputs are arguments, chosen by position (`argnums`:
floats, NumPy arrays, PyTorch tensors and ndarrays with a gradient; the first one unless `wrt` is given) and fields
(`wrt`); its result is what it returns, a number that a kernel returned or that was computed from such by arithmetic, or
a field (`loss`). With both `argnums` and `wrt`, derivatives come as a pair: of the arguments, of the fields.

Inside of `f` a float that is differentiated is a traced number (`lang/data/traced.py`), as are what kernels return and
what Python reads of fields; an array is an ndarray that kernels take in its place.
`f` runs for real: what it writes stays written. An array that it writes must have one name only: one that is passed
twice, or shares memory with another, is refused. The gradients and duals of all fields are left as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tinote.errors import DifferentiationError, Note
from tinote.lang.ad.functional.forward_mode import forward_along
from tinote.lang.ad.functional.inputs import Array, Bound, Derivative, arrays_among, number_or_array, shape_of
from tinote.lang.ad.functional.second_order import SecondOrder, give_gradients_duals
from tinote.lang.ad.functional.seeds import seed_array
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.ad.journal.sweep import Sweep
from tinote.lang.ad.memory.states import State, preserving_duals, preserving_gradients
from tinote.lang.data.fields import Field
from tinote.lang.data.matrix import numpy_type
from tinote.lang.data.traced import Trace, Traced
from tinote.lang.session.state import gradient_memories, recorder, session
from tinote.source import caller

__all__ = [
    "Run",
    "grad",
    "hvp",
    "jacobian",
    "jvp",
    "pull_back",
    "recorded",
    "refuse_open_recorder",
    "value_and_grad",
    "vjp",
]

Fields = Field | Sequence[Field] | None
Positions = int | Sequence[int] | None


def grad(
    f: Callable[..., Any], argnums: Positions = None, *, wrt: Fields = None, loss: Field | None = None
) -> Callable[..., Any]:
    """A function that runs `f` with its arguments and gives the derivative of its result, a single number, with respect
    to the inputs: an array of the input's shape, a number for a number, a tuple for several.

    The inputs are the arguments at the positions `argnums` (a number or several) and the fields `wrt` (one or several,
    with `needs_grad=True`). The result is what `f` returns, or the field or ndarray `loss` of a single number, which is
    set to 0 before. Raises `DifferentiationError`.
    """
    both = _value_and_grad("grad", f, argnums, wrt, loss)
    return lambda *args, **kwargs: both(*args, **kwargs)[1]


def value_and_grad(
    f: Callable[..., Any], argnums: Positions = None, *, wrt: Fields = None, loss: Field | None = None
) -> Callable[..., Any]:
    """As `grad` with the same `f`, `argnums`, `wrt` and `loss`, but gives the result as well: `(value, gradient)`."""
    return _value_and_grad("value_and_grad", f, argnums, wrt, loss)


def _value_and_grad(
    what: str, f: Callable[..., Any], argnums: Positions, wrt: Fields, loss: Field | None
) -> Callable[..., Any]:
    task = Derivative(what, f, wrt, loss, argnums)
    task.require_scalar()
    task.require("grad")

    def run(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        refuse_open_recorder(what)
        with preserving_gradients():
            if task.loss is not None:
                task.loss.fill(0)
            ran = recorded(task, args, kwargs)
            value = np.asarray(ran.value).item()
            found = ran.gradients(pull_back(ran, np.ones(())))
        return value, task.shaped(found)

    return run


def vjp(
    f: Callable[..., Any], argnums: Positions = None, *, wrt: Fields = None, loss: Field | None = None
) -> Callable[..., Any]:
    """A function of a seed and the arguments of `f` that runs `f` and gives `(value, product)`: its result, a number or
    a field of any shape, and the seed, of that shape, times the Jacobian of the result with respect to the inputs, by
    reverse mode. `argnums`, `wrt` and `loss` say what the inputs and the result are, as for `grad`; here `loss` may
    have any shape, and is left as it is. Raises `DifferentiationError`.
    """
    task = Derivative("vjp", f, wrt, loss, argnums)
    task.require("grad")

    def run(seed: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        refuse_open_recorder("vjp")
        direction = _seed_for(task, seed)
        with preserving_gradients():
            ran = recorded(task, args, kwargs)
            value = ran.value
            found = ran.gradients(pull_back(ran, direction))
        return value, task.shaped(found)

    return run


def jvp(
    f: Callable[..., Any], argnums: Positions = None, *, wrt: Fields = None, loss: Field | None = None
) -> Callable[..., Any]:
    """A function of a seed and the arguments of `f` that runs `f` and gives `(value, product)`: its result, a number or
    a field of any shape, and the Jacobian of the result with respect to the inputs times the seed, which has the
    structure of a gradient, by forward mode. `argnums`, `wrt` (fields with `needs_dual=True`) and `loss` say what the
    inputs and the result are, as for `vjp`. Raises `DifferentiationError`.
    """
    task = Derivative("jvp", f, wrt, loss, argnums)
    task.require("dual")

    def run(seed: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        refuse_open_recorder("jvp")
        with preserving_duals():
            return _pushed(task, lambda bound: bound.directions(seed, task), args, kwargs)

    return run


def jacobian(
    f: Callable[..., Any],
    argnums: Positions = None,
    *,
    wrt: Fields = None,
    loss: Field | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """A function that runs `f` with its arguments and gives the Jacobian of its result with respect to the inputs: an
    array of the shape of the result followed by that of the input, a tuple for several. `argnums`, `wrt` and `loss` say
    what the inputs and the result are, as for `vjp`.

    `mode`: `"forward"` (a run of `f` for each number of the inputs; fields need duals) or `"reverse"` (a reverse run
    for each number of the result; fields need gradients). By default the one with fewer runs, as far as the fields have
    what it needs. `f` starts from the same fields and arrays each time. Raises `DifferentiationError`.
    """
    task = Derivative("jacobian", f, wrt, loss, argnums)
    if mode not in (None, "forward", "reverse"):
        raise DifferentiationError(f"the mode of a Jacobian is 'forward' or 'reverse', not {mode!r}", task.span)
    if mode is not None:
        task.require("dual" if mode == "forward" else "grad")
    elif not task.has("dual"):
        task.require("grad")

    def run(*args: Any, **kwargs: Any) -> Any:
        refuse_open_recorder("jacobian")
        forward = mode == "forward" or (mode is None and _forward_is_shorter(task, args))
        with preserving_gradients(), preserving_duals():
            found = _columns(task, args, kwargs) if forward else _rows(task, args, kwargs)
        return task.shaped(found)

    return run


def hvp(
    f: Callable[..., Any], argnums: Positions = None, *, wrt: Fields = None, loss: Field | None = None
) -> Callable[..., Any]:
    """A function of a vector and the arguments of `f` that runs `f` and gives the product of the Hessian of its result,
    a single number, and the vector, which has the structure of a gradient and so has the product. `argnums`, `wrt` and
    `loss` say what the inputs and the result are, as for `grad`.

    Forward mode over reverse mode: the cost is a small multiple of that of a gradient. Fields with a gradient get a
    dual, and so do the gradients, if they have none. Raises `DifferentiationError`.
    """
    task = Derivative("hvp", f, wrt, loss, argnums)
    task.require_scalar()
    task.require("grad")

    def run(vector: Any, *args: Any, **kwargs: Any) -> Any:
        refuse_open_recorder("hvp")
        journal = SecondOrder()
        bound = task.bound(args, journal.trace, duals=True)
        give_gradients_duals()
        directions = bound.directions(vector, task)
        with preserving_gradients(), preserving_duals():
            for field in list(session.fields):
                if field.has_dual:
                    field.dual.fill(0)
            bound.point(directions)
            if task.loss is not None:
                task.loss.fill(0)
            ran = _recorded(task, bound, journal, kwargs)
            sweep = pull_back(ran, np.ones(()))
            return task.shaped([one.second(sweep) for one in bound.inputs])

    return run


# ---- modes of a Jacobian


def _forward_is_shorter(task: Derivative, args: tuple[Any, ...]) -> bool:
    if not task.has("dual"):
        return False
    if not task.has("grad"):
        return True
    bound = task.bound(args, Trace())
    outputs = 1 if task.loss is None else int(np.prod(shape_of(task.loss)))
    return sum(int(np.prod(one.shape)) for one in bound.inputs) < outputs


def _rows(task: Derivative, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Array]:
    ran = recorded(task, args, kwargs)
    shape = () if task.loss is None else shape_of(task.loss)
    count = int(np.prod(shape))
    found = [np.zeros((count, *one.shape)) for one in ran.bound.inputs]
    try:
        for row in range(count):
            seed = np.zeros(count)
            seed[row] = 1
            sweep = pull_back(ran, seed.reshape(shape), keep=True)
            for whole, part in zip(found, ran.gradients(sweep), strict=True):
                whole[row] = part
    finally:
        ran.journal.forget()
    return [whole.reshape(shape + one.shape) for whole, one in zip(found, ran.bound.inputs, strict=True)]


def _columns(task: Derivative, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Array]:
    result = () if task.loss is None else shape_of(task.loss)
    shapes = [one.shape for one in task.bound(args, Trace()).inputs]
    start = State(gradients=True)
    arrays = [(array, array.copy()) for array in arrays_among([*args, *kwargs.values()])]
    found = [np.zeros((*result, int(np.prod(shape)))) for shape in shapes]
    columns = [(which, column) for which, whole in enumerate(found) for column in range(whole.shape[-1])]
    for number, (which, column) in enumerate(columns, 1):
        start.put_back()
        for array, held in arrays:
            array[...] = held
        seeds = [np.zeros(shape) for shape in shapes]
        seeds[which].reshape(-1)[column] = 1
        pushed = _pushed(task, lambda _, seeds=seeds: seeds, args, kwargs, repeats=number < len(columns))
        found[which][..., column] = pushed[1]
    return [whole.reshape(result + shape) for whole, shape in zip(found, shapes, strict=True)]


# ---- runs


class Run(NamedTuple):
    """A recorded run of a differentiated function, and its result: a traced number, or a field."""

    journal: Journal
    bound: Bound
    result: Traced | Field

    @property
    def value(self) -> Any:
        """What came out."""
        return number_or_array(self.result) if isinstance(self.result, Field) else self.result.value

    def gradients(self, sweep: Sweep) -> list[Any]:
        """What a sweep has left, for each input."""
        return [one.gradient(sweep) for one in self.bound.inputs]


def refuse_open_recorder(what: str) -> None:
    """Raise inside of a tape or a forward-mode block."""
    if recorder.get() is not None:
        raise DifferentiationError(f"ti.ad.{what} cannot run inside of a tape or another block", caller())


def recorded(task: Derivative, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Run:
    """Run `f` under a recording."""
    journal = Journal()
    return _recorded(task, task.bound(args, journal.trace), journal, kwargs)


def _recorded(task: Derivative, bound: Bound, journal: Journal, kwargs: dict[str, Any]) -> Run:
    journal.starts_from([one.field.buffer for one in bound.inputs if one.field is not None])
    journal.start()
    try:
        try:
            with bound.running():
                returned = task.f(*bound.args, **kwargs)
        finally:
            journal.stop()
        result = _result(task, returned, journal.trace)
        lost = journal.lost_values()
        if isinstance(result, Traced):
            lost.refuse_number(result.number, Note("from there the function returns them", task.span))
        journal.claim(clear=True)
    except BaseException:
        journal.forget()
        raise
    return Run(journal, bound, result)


def _result(task: Derivative, returned: Any, trace: Trace) -> Traced | Field:
    if task.loss is not None:
        return task.loss
    if type(returned) is Traced and returned.trace is trace:
        return returned
    what = "nothing" if returned is None else f"{returned!r}"
    raise DifferentiationError(
        f"ti.ad.{task.what} differentiates what the function returns, but that is {what}, which no kernel returned and "
        "nothing that is differentiated leads to",
        task.span,
        hint="return a number that a kernel returns, or name the 0-D field with the result in loss=",
    )


def pull_back(run: Run, seed: Array, *, keep: bool = False) -> Sweep:
    """Sweep with a seed: the seed times the Jacobian is left in the gradients of fields and in the adjoints of the
    sweep. The gradients of all fields are overwritten.
    """
    sweep = run.journal.sweep()
    try:
        for memory in gradient_memories():
            memory.clear()
        for one in run.bound.inputs:  # a stand-in's gradient is new
            if one.field is not None:
                one.field.grad.fill(0)
        if isinstance(run.result, Field):
            # A loss of a single number may have shape (1,).
            run.result.grad.from_numpy(seed.astype(numpy_type(run.result.dtype)).reshape(shape_of(run.result)))
        else:
            sweep.seed(run.result, float(seed))
        sweep.run()
        return sweep
    finally:
        if not keep:
            run.journal.forget()


def _pushed(
    task: Derivative,
    seeds: Callable[[Bound], list[Array]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    repeats: bool = False,
) -> tuple[Any, Any]:
    """The result, and the Jacobian times a direction for each input. `repeats`: there will be another run."""
    trace = Trace()
    bound = task.bound(args, trace, duals=True, repeats=repeats)
    along = bound.point_numbers(seeds(bound))
    with forward_along([], [field for field, _ in along], [d for _, d in along], trace):
        with bound.running():
            returned = task.f(*bound.args, **kwargs)
        result = _result(task, returned, trace)
        # At the end of the block the duals of the inputs are cleared, and the result may be one.
        if isinstance(result, Field):
            return number_or_array(result), number_or_array(result.dual)
        return result.value, result.tangent


def _seed_for(task: Derivative, seed: Any) -> Array:
    shape = () if task.loss is None else shape_of(task.loss)
    return seed_array(seed, shape, f" of {'the result' if task.loss is None else repr(task.loss.name)}", "it")
