"""Derivatives as functions: `grad`, `value_and_grad`, `vjp`, `jvp` and `jacobian`, beside the tape.

    slope = ti.ad.grad(simulate, wrt=x, loss=energy)
    direction = slope(dt)       # runs simulate(dt); an array of the shape of x

`f` is a kernel or a Python function that launches kernels. It reads the fields `wrt` and leaves its result in the field
`loss`. It runs for real: what it writes stays written. The gradients and duals of all fields are left as they were.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from tinote.errors import DifferentiationError
from tinote.lang.ad.forward_mode import FwdMode
from tinote.lang.ad.recording import Recording
from tinote.lang.fields import Field
from tinote.lang.world import gradient_memories, recorder, world
from tinote.runtime.memory import Memory
from tinote.source import Span, caller

__all__ = [
    "Derivative",
    "Remembered",
    "bring_back",
    "duals_kept",
    "grad",
    "gradients_kept",
    "jacobian",
    "jvp",
    "pull_back",
    "recorded",
    "refuse_open_recorder",
    "remembered",
    "shape_of",
    "size_of",
    "value_and_grad",
    "vjp",
]

Fields = Field | Sequence[Field]
Array = np.ndarray[Any, Any]


class Derivative:
    """What is common to all of them: the function, the fields it is differentiated with respect to, and its result."""

    def __init__(self, what: str, f: Callable[..., Any], wrt: Any, loss: Any, argnums: Any = None) -> None:
        self.place = caller()
        self.what = what
        if not callable(f):
            raise DifferentiationError(f"ti.ad.{what} differentiates a kernel or a function, not {f!r}", self.place)
        if argnums is not None:
            raise DifferentiationError(
                f"ti.ad.{what} does not differentiate with respect to arguments yet",
                self.place,
                hint="keep the value in a field and name it in wrt=",
            )
        self.f = f
        self.several = not isinstance(wrt, Field)
        self.wrt = _fields(wrt, "wrt", what, self.place)
        if loss is None:
            raise DifferentiationError(
                f"ti.ad.{what} needs loss=, the field that the result is left in: what a function returns is not "
                "differentiated yet",
                self.place,
            )
        if not isinstance(loss, Field):
            raise DifferentiationError(f"the loss of ti.ad.{what} must be a field, not {loss!r}", self.place)
        self.loss = loss

    def require_scalar(self) -> None:
        """Raise unless the loss is a single number."""
        if self.loss.shape != () or self.loss.element != ():
            raise DifferentiationError(
                f"the loss of ti.ad.{self.what} must be a single number, but '{self.loss.name}' has shape "
                f"{shape_of(self.loss)}",
                self.place,
                hint="use ti.ad.vjp or ti.ad.jacobian",
            )

    def require(self, mode: str) -> None:
        """Raise unless all fields have a `grad` or `dual`."""
        for field in (*self.wrt, self.loss):
            if not (field.has_grad if mode == "grad" else field.has_dual):
                missing = "gradient" if mode == "grad" else "dual"
                raise DifferentiationError(
                    f"the field '{field.name}' has no {missing}", self.place, hint=f"make it with needs_{mode}=True"
                )

    def has(self, mode: str) -> bool:
        """Whether all fields have a `grad` or `dual`."""
        return all(f.has_grad if mode == "grad" else f.has_dual for f in (*self.wrt, self.loss))

    def shaped(self, found: Sequence[Any]) -> Any:
        """One result for one field, a tuple for several."""
        return tuple(found) if self.several else found[0]


def grad(f: Callable[..., Any], *, wrt: Fields, loss: Any = None, argnums: Any = None) -> Callable[..., Any]:
    """A function that runs `f` with its arguments and gives the derivative of `loss`, a 0-D field, with respect to
    `wrt`: an array of the field's shape, a number for a 0-D field of numbers, a tuple for several fields. `loss` is set
    to 0 before. Raises `DifferentiationError`.
    """
    both = _value_and_grad("grad", f, wrt, loss, argnums)
    return lambda *args, **kwargs: both(*args, **kwargs)[1]


def value_and_grad(f: Callable[..., Any], *, wrt: Fields, loss: Any = None, argnums: Any = None) -> Callable[..., Any]:
    """As `grad`, but gives the value of `loss` as well: `(value, gradient)`."""
    return _value_and_grad("value_and_grad", f, wrt, loss, argnums)


def _value_and_grad(what: str, f: Callable[..., Any], wrt: Any, loss: Any, argnums: Any) -> Callable[..., Any]:
    task = Derivative(what, f, wrt, loss, argnums)
    task.require_scalar()
    task.require("grad")

    def run(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        refuse_open_recorder(what)
        with gradients_kept():
            task.loss.fill(0)
            recording = recorded(task, args, kwargs)
            value = _value_of(task.loss)
            found = pull_back(recording, task, np.ones(()))
        return value, task.shaped(found)

    return run


def vjp(f: Callable[..., Any], *, wrt: Fields, loss: Any = None, argnums: Any = None) -> Callable[..., Any]:
    """A function of a seed and the arguments of `f` that runs `f` and gives `(value, product)`: the value of `loss`, a
    field of any shape, and the seed, of that shape, times the Jacobian of `loss` with respect to `wrt`, by reverse
    mode. Raises `DifferentiationError`.
    """
    task = Derivative("vjp", f, wrt, loss, argnums)
    task.require("grad")

    def run(seed: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        refuse_open_recorder("vjp")
        with gradients_kept():
            direction = _seed_for(task.loss, seed)
            recording = recorded(task, args, kwargs)
            value = _value_of(task.loss)
            found = pull_back(recording, task, direction)
        return value, task.shaped(found)

    return run


def jvp(f: Callable[..., Any], *, wrt: Fields, loss: Any = None, argnums: Any = None) -> Callable[..., Any]:
    """A function of a seed and the arguments of `f` that runs `f` and gives `(value, product)`: the value of `loss`, a
    field of any shape, and the Jacobian of `loss` with respect to `wrt` times the seed, of the shape of `wrt` (a
    sequence for several fields), by forward mode. Raises `DifferentiationError`.
    """
    task = Derivative("jvp", f, wrt, loss, argnums)
    task.require("dual")

    def run(seed: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        refuse_open_recorder("jvp")
        with duals_kept():
            product = _pushed(task, seed, args, kwargs)
        return _value_of(task.loss), product

    return run


def jacobian(
    f: Callable[..., Any], *, wrt: Fields, loss: Any = None, mode: str | None = None, argnums: Any = None
) -> Callable[..., Any]:
    """A function that runs `f` with its arguments and gives the Jacobian of `loss` with respect to `wrt`: an array of
    the shape of `loss` followed by that of `wrt`, a tuple for several fields.

    `mode`: `"forward"` (a run of `f` for each number of `wrt`; needs duals) or `"reverse"` (a reverse run for each
    number of `loss`; needs gradients). By default the one with fewer runs, as far as the fields have what it needs.
    `f` starts from the same fields each time. Raises `DifferentiationError`.
    """
    task = Derivative("jacobian", f, wrt, loss, argnums)
    if mode not in (None, "forward", "reverse"):
        raise DifferentiationError(f"the mode of a Jacobian is 'forward' or 'reverse', not {mode!r}", task.place)
    if mode is None:
        forward_is_shorter = sum(size_of(f) for f in task.wrt) < size_of(task.loss)
        mode = "forward" if task.has("dual") and (forward_is_shorter or not task.has("grad")) else "reverse"
    task.require("dual" if mode == "forward" else "grad")
    columns = mode == "forward"

    def run(*args: Any, **kwargs: Any) -> Any:
        refuse_open_recorder("jacobian")
        with gradients_kept(), duals_kept():
            found = _columns(task, args, kwargs) if columns else _rows(task, args, kwargs)
        return task.shaped(found)

    return run


def _rows(task: Derivative, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Array]:
    recording = recorded(task, args, kwargs, keep=True)
    shape, count = shape_of(task.loss), size_of(task.loss)
    found = [np.zeros((count, *shape_of(field))) for field in task.wrt]
    try:
        for row in range(count):
            seed = np.zeros(count)
            seed[row] = 1
            for whole, part in zip(found, pull_back(recording, task, seed.reshape(shape), keep=True), strict=True):
                whole[row] = part
    finally:
        recording.forget()
    return [whole.reshape(shape + shape_of(field)) for whole, field in zip(found, task.wrt, strict=True)]


def _columns(task: Derivative, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Array]:
    shape = shape_of(task.loss)
    found: list[Array] = []
    start = remembered()
    for field in task.wrt:
        count = size_of(field)
        whole = np.zeros((*shape, count))
        for column in range(count):
            bring_back(start)
            seeds = [np.zeros(shape_of(other)) for other in task.wrt]
            seeds[task.wrt.index(field)].reshape(-1)[column] = 1
            whole[..., column] = _pushed(task, seeds if task.several else seeds[0], args, kwargs)
        found.append(whole.reshape(shape + shape_of(field)))
    return found


# ---- runs


def refuse_open_recorder(what: str) -> None:
    """Raise inside of a tape or a forward-mode block."""
    if recorder.get() is not None:
        raise DifferentiationError(f"ti.ad.{what} cannot run inside of a tape or another block", caller())


def recorded(task: Derivative, args: tuple[Any, ...], kwargs: dict[str, Any], keep: bool = False) -> Recording:
    """Run `f` under a recording."""
    recording = Recording()
    token = recorder.set(recording)
    try:
        task.f(*args, **kwargs)
    except BaseException:
        recording.forget()
        raise
    finally:
        recorder.reset(token)
    try:
        recording.refuse_severed()
        recording.claim(clear=True)
    except BaseException:
        recording.forget()
        raise
    return recording


def pull_back(recording: Recording, task: Derivative, seed: Array, *, keep: bool = False) -> list[Any]:
    """The seed times the Jacobian, for each field of `task.wrt`. The gradients of all fields are overwritten."""
    try:
        for memory in gradient_memories():
            memory.clear()
        task.loss.grad.from_numpy(seed.astype(task.loss.grad.to_numpy().dtype))
        recording.reverse()
        return [_value_of(field.grad) for field in task.wrt]
    finally:
        if not keep:
            recording.forget()


def _pushed(task: Derivative, seed: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The Jacobian times the seed."""
    mode = FwdMode(loss=task.loss, param=list(task.wrt) if task.several else task.wrt[0], seed=seed)
    with mode:
        task.f(*args, **kwargs)
        return _value_of(task.loss.dual)  # at the end of the block the duals of `wrt` are cleared, and it may be one


@contextmanager
def gradients_kept() -> Iterator[None]:
    """A block that leaves the gradients of all fields as they were."""
    kept = [(memory, memory.copy()) for memory in gradient_memories()]
    try:
        yield
    finally:
        _put_back(kept)


@contextmanager
def duals_kept() -> Iterator[None]:
    """A block that leaves the duals of all fields as they were."""
    kept = [(f.dual.memory, f.dual.memory.copy()) for f in list(world.fields) if f.has_dual]
    try:
        yield
    finally:
        _put_back(kept)


class Remembered(NamedTuple):
    """The values of all fields at one time, and how many random launches there were."""

    memories: list[tuple[Memory, Memory]]
    launches: int


def remembered() -> Remembered:
    """Copies of all fields, gradients and duals left out, for `bring_back`."""
    fields = [f for f in list(world.fields) if f.buffer.primal is None]
    return Remembered([(f.memory, f.memory.copy()) for f in fields], world.launches)


def bring_back(start: Remembered) -> None:
    """Give all fields the values again that they had; kernels that draw random numbers draw the same again."""
    _put_back(start.memories)
    world.launches = start.launches


def _put_back(kept: list[tuple[Memory, Memory]]) -> None:
    for memory, copy in kept:
        memory.restore(copy)


# ---- shapes


def shape_of(field: Field) -> tuple[int, ...]:
    """The shape of a field with that of its elements behind."""
    return field.shape + field.element


def size_of(field: Field) -> int:
    """How many numbers a field holds."""
    return math.prod(shape_of(field))


def _value_of(field: Field) -> Any:
    """A number for a 0-D field of numbers, an array otherwise."""
    return field.to_numpy().item() if shape_of(field) == () else field.to_numpy()


def _seed_for(field: Field, seed: Any) -> Array:
    try:
        direction = np.asarray(seed, dtype=np.float64)
    except (TypeError, ValueError):
        raise DifferentiationError(f"a seed is made of numbers, not {seed!r}", caller()) from None
    if direction.shape != shape_of(field):
        raise DifferentiationError(
            f"the seed of '{field.name}' has shape {direction.shape}, but the field has shape {shape_of(field)}",
            caller(),
        )
    return direction


def _fields(given: Any, what: str, function: str, place: Span) -> list[Field]:
    found = [given] if isinstance(given, Field) else list(given) if isinstance(given, list | tuple) else []
    if not found or not all(isinstance(f, Field) for f in found):
        raise DifferentiationError(
            f"{what} of ti.ad.{function} must be a field or a list of fields, not {given!r}", place
        )
    return found
