"""Inputs and outputs of a differentiated function: fields and arguments; a field or the returned value.

Array arguments are replaced by proxy arrays with a gradient, number arguments by traced numbers.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tinote.errors import DifferentiationError
from tinote.lang.ad.functional.seeds import seed_array, store_seed
from tinote.lang.ad.journal.sweep import Sweep
from tinote.lang.data.captured_arrays import taken_copy
from tinote.lang.data.fields import Field
from tinote.lang.data.matrix import numpy_type
from tinote.lang.data.ndarrays import StandIn, stand_in
from tinote.lang.data.traced import Trace, Traced
from tinote.lang.kernels.stand_ins import StandIns, stand_ins
from tinote.runtime.seam import active_listener
from tinote.source import Span, caller

Array = np.ndarray[Any, Any]
#: Greatest number of proxy arrays that one derivative keeps between its calls.
_MOST_IDLE = 16


class DifferentiatedFunction:
    """A differentiated function: `f`, the fields `wrt` and the positions `argnums` of the arguments that it is
    differentiated with respect to, and the field `output` with its result; None where it returns that.
    """

    def __init__(
        self, what: str, f: Callable[..., Any], wrt: Any, output: Any, argnums: int | Sequence[int] | None = None
    ) -> None:
        self.span = caller()
        self.what = what
        if not callable(f):
            raise DifferentiationError(f"ti.ad.{what} differentiates a kernel or a function, not {f!r}", self.span)
        self.f = f
        if wrt is None and argnums is None:
            argnums = 0
        self.several = wrt is not None and not isinstance(wrt, Field)
        self.wrt = [] if wrt is None else _fields(wrt, "wrt", what, self.span)
        self.several_arguments = argnums is not None and not isinstance(argnums, int)
        self.argnums = self._positions(argnums)
        if output is not None and not isinstance(output, Field):
            raise DifferentiationError(f"the output of ti.ad.{what} must be a field, not {output!r}", self.span)
        self.loss: Field | None = output
        self._idle: dict[tuple[Any, ...], StandIn] = {}

    def __getstate__(self) -> dict[str, Any]:
        """In another process it makes proxy arrays of its own."""
        return {**self.__dict__, "_idle": {}}

    def stand_in(self, position: int, array: Array, *, needs_dual: bool) -> StandIn:
        """The proxy for `array`, the argument at `position`: reused from an earlier call, if it fits."""
        found = self._idle.pop(_idle_key(position, array), None) if active_listener() is None else None
        if found is None or found.has_dual is not needs_dual or not found.is_alive:
            return stand_in(array, needs_dual=needs_dual)
        found.hold(array)
        return found

    def give_back(self, position: int, used: StandIn) -> None:
        """Return a proxy for the argument at `position` after a call, if there are no other references to it."""
        if active_listener() is None and used.let_go():
            if len(self._idle) >= _MOST_IDLE:
                self._idle.clear()
            self._idle[_idle_key(position, used)] = used

    def _positions(self, argnums: Any) -> list[int]:
        if argnums is None:
            return []
        found = [argnums] if isinstance(argnums, int) else list(argnums)
        if any(not isinstance(k, int) or isinstance(k, bool) or k < 0 for k in found) or len(set(found)) < len(found):
            raise DifferentiationError(
                f"argnums of ti.ad.{self.what} are different positions of arguments, not {argnums!r}", self.span
            )
        return found

    @property
    def loss_field(self) -> Field:
        """The field with the result. Raises where the function returns it."""
        if self.loss is None:
            raise DifferentiationError(
                f"ti.ad.{self.what} needs output=, the field that the result is left in", self.span
            )
        return self.loss

    def require_scalar(self) -> None:
        """Raise unless the output is a single number."""
        if self.loss is not None and size_of(self.loss) != 1:
            raise DifferentiationError(
                f"the output of ti.ad.{self.what} must be a single number, but '{self.loss.name}' has shape "
                f"{shape_of(self.loss)}",
                self.span,
                hint="use ti.ad.vjp or ti.ad.jacobian",
            )

    def _fields(self) -> list[Field]:
        return [*self.wrt, *([] if self.loss is None else [self.loss])]

    def require(self, mode: str) -> None:
        """Raise unless all fields have a `grad` or `dual`."""
        for field in self._fields():
            if not (field.has_grad if mode == "grad" else field.has_dual):
                missing = "gradient" if mode == "grad" else "dual"
                raise DifferentiationError(
                    f"the field '{field.name}' has no {missing}", self.span, hint=f"make it with needs_{mode}=True"
                )

    def has(self, mode: str) -> bool:
        """Whether all fields have a `grad` or `dual`."""
        return all(f.has_grad if mode == "grad" else f.has_dual for f in self._fields())

    def bound(self, args: Sequence[Any], trace: Trace, *, duals: bool = False, repeats: bool = False) -> Bound:
        """The inputs of one run with these arguments. `duals`: arrays get one besides their gradient. `repeats`: there
        will be another run, which starts with the same arrays.
        """
        return Bound(self, args, trace, duals, repeats)

    def shaped(self, found: Sequence[Any]) -> Any:
        """Results in the order of the inputs, as the caller asked for them: one, or a tuple for several; for arguments
        and fields a pair of these.
        """
        count = len(self.argnums)
        arguments = tuple(found[:count]) if self.several_arguments else found[0] if count else None
        fields = tuple(found[count:]) if self.several else found[count] if self.wrt else None
        return arguments if not self.wrt else fields if not count else (arguments, fields)

    def parts(self, given: Any, what: str) -> list[Any]:
        """The inverse of `shaped`: one result for each input.

        Raises `DifferentiationError` where there are more or fewer.
        """
        count = len(self.argnums)
        both = bool(count and self.wrt)
        arguments, fields = given if both else (given, given)
        parts: list[Any] = []
        if count:
            parts += list(arguments) if self.several_arguments else [arguments]
        if self.wrt:
            parts += list(fields) if self.several else [fields]
        wanted = count + len(self.wrt)
        if len(parts) != wanted:
            raise DifferentiationError(f"{wanted} inputs need as many {what}, not {len(parts)}", caller())
        return parts


class Input:
    """One field, array or number that is differentiated with respect to."""

    def __init__(self, field: Field | None = None, number: Traced | None = None, given: Any = None) -> None:
        self.field = field
        self.number = number
        self.given = given  # the array or tensor for which the field is the proxy
        self.stand_in = field if given is not None and isinstance(field, StandIn) else None

    @property
    def shape(self) -> tuple[int, ...]:
        return () if self.field is None else shape_of(self.field)

    def gradient(self, sweep: Sweep) -> Any:
        """The adjoint after a reverse sweep."""
        if self.number is not None:
            return sweep.adjoint(self.number).value
        assert self.field is not None
        return self._like_given(self.held(self.field.grad))

    def second(self, sweep: Sweep) -> Any:
        """The tangent of the adjoint."""
        if self.number is not None:
            return sweep.adjoint(self.number).tangent
        assert self.field is not None
        return self._like_given(self.held(self.field.grad.dual))

    def held(self, found: Field) -> Any:
        """A gradient or dual of its, as a number or an array of Python's own."""
        if self.stand_in is not None and self.stand_in.shape and active_listener() is None:
            return self.stand_in.taken(found)
        return number_or_array(found)

    def _like_given(self, found: Any) -> Any:
        if self.given is None or isinstance(self.given, np.ndarray):
            return np.asanyarray(found) if self.given is not None else found
        return sys.modules["torch"].from_numpy(np.asarray(found))


class Bound:
    """One run's inputs, in the order of results: arguments, then fields. `args`: what `f` is called with."""

    def __init__(
        self, task: DifferentiatedFunction, args: Sequence[Any], trace: Trace, duals: bool, repeats: bool
    ) -> None:
        found = list(args)
        self.inputs: list[Input] = []
        self._repeats = repeats
        self._stand_ins = StandIns(task.span, keeps=repeats)
        for position in task.argnums:
            if position >= len(found):
                raise DifferentiationError(
                    f"ti.ad.{task.what} differentiates argument {position}, but only {len(found)} were given",
                    task.span,
                    hint="pass it by position",
                )
            made = _argument(task, position, found[position], trace, duals)
            if made.stand_in is not None:
                self._stand_ins.add(made.stand_in, numpy_view(made.given), position)
            self.inputs.append(made)
            found[position] = made.number if made.number is not None else made.field
        self.inputs += [Input(field) for field in task.wrt]
        self._refuse_repeated(task)
        self.args = tuple(found)

    def _refuse_repeated(self, task: DifferentiatedFunction) -> None:
        known: dict[Field, str] = {}
        for number, one in enumerate(self.inputs):
            if one.field is None:
                continue
            is_argument = number < len(task.argnums)
            name = f"argument {task.argnums[number]}" if is_argument else f"'{one.field.name}' in wrt"
            if one.field in known:
                raise DifferentiationError(
                    f"{known[one.field]} and {name} of ti.ad.{task.what} are one array: it has a single derivative",
                    task.span,
                    hint="name it once, or pass a copy",
                )
            known[one.field] = name

    @contextmanager
    def running(self) -> Iterator[None]:
        """A block in which proxies replace the caller's arrays. Afterwards the arrays hold the kernels' results, or
        their old contents if there will be another run.
        """
        token = stand_ins.set(self._stand_ins)
        try:
            yield
        finally:
            stand_ins.reset(token)
            if self._repeats:
                self._stand_ins.take_back()
        if not self._repeats:
            self._stand_ins.put_back()

    def give_back(self, task: DifferentiatedFunction) -> None:
        """Return the proxies after the run's results were read."""
        self.args = ()
        self._stand_ins = StandIns(task.span)
        for position, one in zip(task.argnums, self.inputs, strict=False):
            used, one.field, one.stand_in = one.stand_in, None, None
            if used is not None and used.references() == used.unshared:
                task.give_back(position, used)

    def point(self, directions: Sequence[Array]) -> None:
        """Set the tangents of the inputs."""
        for field, direction in self.point_numbers(directions):
            store_seed(field.dual, direction)

    def point_numbers(self, directions: Sequence[Array]) -> list[tuple[Field, Array]]:
        """Set the tangents of the inputs that are numbers; gives the others with their directions."""
        fields: list[tuple[Field, Array]] = []
        for one, direction in zip(self.inputs, directions, strict=True):
            if one.number is not None:
                one.number.tangent = direction.item()
            elif one.field is not None:
                fields.append((one.field, direction))
        return fields

    def directions(self, seed: Any, task: DifferentiatedFunction) -> list[Array]:
        """A seed, of the structure of a result, as an array for each input. Raises `DifferentiationError`."""
        parts = task.parts(seed, "seeds")
        return [self._direction(one, part) for one, part in zip(self.inputs, parts, strict=True)]

    @staticmethod
    def _direction(one: Input, seed: Any) -> Array:
        if seed is None and one.shape == ():
            seed = 1.0
        return seed_array(seed, one.shape, "", "the input")


def _argument(task: DifferentiatedFunction, position: int, value: Any, trace: Trace, duals: bool) -> Input:
    if isinstance(value, Field):
        if not value.has_grad:
            raise DifferentiationError(
                f"the array '{value.name}' has no gradient", task.span, hint="make it with needs_grad=True"
            )
        if duals:
            value.ensure_dual()
        return Input(value)
    if isinstance(value, bool | int | float) or (isinstance(value, np.generic) and value.dtype.kind in "iuf"):
        if isinstance(value, bool | int | np.integer):
            raise DifferentiationError(
                f"argument {position} is the integer {value!r}, which has no derivative",
                task.span,
                hint=f"pass {int(value)}.0, or choose other arguments with argnums=",
            )
        return Input(number=trace.new(value if type(value) is Traced else float(value)))
    array = numpy_view(value)
    if array is None or array.dtype.kind != "f":
        what = f"an array of {array.dtype}" if array is not None else repr(value)
        raise DifferentiationError(
            f"argument {position} of ti.ad.{task.what} is {what}: floats and arrays of floats are differentiated",
            task.span,
            hint="choose others with argnums=, or name fields in wrt=",
        )
    return Input(task.stand_in(position, array, needs_dual=duals), given=value)


def _idle_key(position: int, array: Array | StandIn) -> tuple[Any, ...]:
    return position, array.shape, numpy_type(array.dtype) if isinstance(array, StandIn) else array.dtype


def numpy_view(value: Any) -> Any:
    """The NumPy view of an array or tensor; None for any other object."""
    if isinstance(value, np.ndarray):
        return value
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return value.detach().numpy()
    return None


def arrays_among(values: Iterable[Any]) -> list[Array]:
    """The arrays and tensors among arguments that can be written, as NumPy's."""
    found = [numpy_view(value) for value in values]
    return [array for array in found if array is not None and array.flags.writeable]


# ---- shapes


def shape_of(field: Field) -> tuple[int, ...]:
    """The shape of a field followed by that of its elements."""
    return field.shape + field.element


def size_of(field: Field) -> int:
    """The number of numbers in a field."""
    return math.prod(shape_of(field))


def number_or_array(field: Field) -> Any:
    """A number for a 0-D field of numbers, an array otherwise."""
    found = field.held()
    return taken_copy(found) if found.shape else _item(found)


def number_in(field: Field) -> Any:
    """The number of a field of a single one, which may have shape (1,)."""
    return _item(field.held().reshape(()))


def _item(array: Array) -> Any:
    value = array.item()
    listener = active_listener()
    return value if listener is None else listener.reading(array, (), value)


def _fields(given: Any, what: str, function: str, span: Span) -> list[Field]:
    found = [given] if isinstance(given, Field) else list(given) if isinstance(given, list | tuple) else []
    if not found or not all(isinstance(f, Field) for f in found):
        raise DifferentiationError(
            f"{what} of ti.ad.{function} must be a field or a list of fields, not {given!r}", span
        )
    return found
