"""Batching: `vmap` runs a function for a batch of independent copies.

    energies, gradients = ti.ad.vmap(ti.ad.value_and_grad(energy))(np.random.rand(1000, 16))

The function is captured (`lang/capture/`): one copy becomes a program, which each thread then runs natively for one
copy after another.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tinote.errors import CaptureError, DifferentiationError, TinoteError, at_users_frames, users_trace
from tinote.lang.ad.functional.inputs import numpy_view, shape_of
from tinote.lang.ad.functional.runs import refuse_open_recorder
from tinote.lang.ad.memory.states import ShadowsBefore, State
from tinote.lang.capture.batch import Batch, in_member
from tinote.lang.capture.explore import captured
from tinote.lang.data.captured_arrays import CapturedArray
from tinote.lang.data.fields import Field
from tinote.lang.data.matrix import Matrix
from tinote.lang.data.nests import map_leaves
from tinote.lang.session.owners import own_duals, own_gradients
from tinote.lang.session.state import session
from tinote.runtime.memory import Memory
from tinote.runtime.seam import active_listener
from tinote.source import Span, caller

Array = np.ndarray[Any, Any]

#: Greatest number of programs of one batched function: one for each combination of shapes and types.
_MOST_PROGRAMS = 16


def vmap(
    f: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    *,
    fields: Field | Sequence[Field] | None = None,
    results: Field | Sequence[Field] | None = None,
) -> Callable[..., Any]:
    """A function that runs `f` for a batch of instances at once: its arguments have an axis along which they differ.

    `f` gets the arguments of one instance, and what it returns comes with a leading axis. `vmap(grad(f))` gives the
    gradient of each instance. Each begins with what fields hold when the batch is called, and has copies of its own of
    all that it writes, fields, gradients and arguments: afterwards all of them hold what they held before. Random
    numbers differ. Where launches use one thread the results are those of a loop, bit for bit.

    `f` is captured, as by `ti.capture`, for each combination of shapes and types, and again where something has changed
    that it depends on; the program is compared with the function. It then runs natively, each instance on one thread,
    side by side on the session's threads. In plain Python (`arch=ti.python`), while kernels are profiled and while
    views own gradients, and in another batch or capture, `f` runs for one instance after the other.

    Parameters
    ----------
    f : callable
        A kernel, or a function that launches kernels, or what `ti.ad.grad` and its relatives return.
    in_axes : int, None or a structure of them, default 0
        For each argument the axis, or None for one that all instances share; one number for all of them. Arguments are
        NumPy arrays, PyTorch tensors and ndarrays of numbers, or tuples, lists and dictionaries of them, which
        `in_axes` may follow; what has only that axis is a number in each instance. Arguments by keyword have the axis
        0.
    out_axes : int or sequence of int, default 0
        Where the axis is in the result, one number or one for each element of the tuple that `f` returns. Numbers,
        vectors and arrays that `f` returns become NumPy arrays; None and text remain.
    fields : Field or sequence of Field, optional
        Fields that each instance begins with values of its own in: these come as the first argument, an array of the
        shape (instances, *field) or a tuple of them.
    results : Field or sequence of Field, optional
        Fields whose values at the end are returned, as arrays of that shape; where `f` returns something as well, as
        the pair of that and these.

    Returns
    -------
    callable
        Takes the arguments with their axis; returns the results with theirs.

    Raises
    ------
    DifferentiationError
        For arguments that do not go together.
    CaptureError
        At the line, for what cannot be captured, such as arithmetic on arrays in Python, which belongs in a kernel.

    Examples
    --------
    >>> import numpy as np
    >>> @ti.kernel
    ... def f(a: ti.f64) -> ti.f64:
    ...     return a * a
    >>> ti.ad.vmap(ti.ad.grad(f, argnums=0))(np.array([1.0, 2.0, 3.0]))
    array([2., 4., 6.])
    """
    return _Batched(f, in_axes, out_axes, fields, results).bound()


class _Leaf(NamedTuple):
    """A number, an array, or anything else among the arguments. `values`: of all copies, with a leading batch axis, or
    shared by all.
    """

    values: Any
    differs: bool

    @property
    def is_array(self) -> bool:
        """Whether it is an array in each copy."""
        return isinstance(self.values, np.ndarray) and self.values.ndim > self.differs

    @property
    def is_number(self) -> bool:
        """Whether it is a number in each copy."""
        return isinstance(self.values, bool | int | float) or (
            isinstance(self.values, np.ndarray) and not self.is_array
        )

    def of(self, member: int) -> Any:
        """The value of one copy."""
        if not self.differs:
            return self.values
        found = self.values[member]
        return found.item() if isinstance(found, np.generic) else found

    def kind(self) -> Any:
        """The properties that a program depends on."""
        if isinstance(self.values, np.ndarray):
            return self.differs, self.values.shape[self.differs :], self.values.dtype.str
        return type(self.values) if self.is_number else id(self.values)


class _Batched:
    """A batched function, with its programs."""

    def __init__(self, f: Callable[..., Any], in_axes: Any, out_axes: Any, fields: Any, results: Any) -> None:
        self._span = caller()
        if not callable(f):
            raise DifferentiationError(f"ti.ad.vmap batches a kernel or a function, not {f!r}", self._span)
        self._f = f
        self._in_axes = in_axes
        self._out_axes = out_axes
        self._fields = self._given_fields(fields, "fields")
        self._has_one_field = isinstance(fields, Field)
        self._results = self._given_fields(results, "results")
        self._has_one_result = isinstance(results, Field)
        self._programs: OrderedDict[Any, tuple[Batch, list[Any]]] = OrderedDict()

    def __getstate__(self) -> dict[str, Any]:
        """In another process it makes programs of its own."""
        return {**self.__dict__, "_programs": OrderedDict()}

    def _given_fields(self, given: Any, what: str) -> list[Field]:
        found = [] if given is None else [given] if isinstance(given, Field) else list(given)
        for one in found:
            if not isinstance(one, Field):
                raise DifferentiationError(
                    f"{what} of ti.ad.vmap must be a field or a list of fields, not {given!r}", self._span
                )
        return found

    def bound(self) -> Callable[..., Any]:
        """The function that the user calls."""

        def run(*args: Any, **kwargs: Any) -> Any:
            try:
                return self._call(args, kwargs)
            except TinoteError as error:
                raise error.with_traceback(users_trace(error)) from None
            except KeyboardInterrupt as interrupt:
                raise at_users_frames(interrupt) from None

        run.__tinote_calls__ = self._f  # type: ignore[attr-defined]
        return run

    # ---- calling

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        refuse_open_recorder("vmap")
        span = caller()
        leaves: list[_Leaf] = []
        shape = self._arguments(args, kwargs, leaves)
        count = _count(leaves, span)
        config = session.config
        if (
            active_listener() is not None
            or session.watchers
            or config.arch != "cpu"
            or config.kernel_profiler
            or any(leaf.is_array and leaf.values[:1].size == 0 for leaf in leaves)
            or any(field.buffer.sparsity is not None for field in self._fields)  # what becomes active depends on values
        ):
            return self._placed(self._loop(shape, leaves, count, span))
        key = (shape, *[leaf.kind() for leaf in leaves])
        known = self._programs.get(key)
        if known is None or not known[0].program.guards.hold():
            known = self._programs[key] = self._program(shape, leaves, span)
            if len(self._programs) > _MOST_PROGRAMS:
                self._programs.popitem(last=False)
        self._programs.move_to_end(key)
        numbers = [np.atleast_1d(_words(leaf.values)) for leaf in leaves if leaf.is_number]
        arrays = [np.ascontiguousarray(leaf.values) for leaf in leaves if leaf.is_array]
        return self._placed(known[0].run(count, numbers, arrays))

    def _program(self, shape: Any, leaves: Sequence[_Leaf], span: Span) -> tuple[Batch, list[Any]]:
        """The function as a program, captured for the first copy, with the objects that it keeps alive."""
        first = [leaf.of(0) for leaf in leaves]
        given = [_own(one) if isinstance(one, np.ndarray) else one for one in first]
        arrays = [one for one in given if isinstance(one, CapturedArray)]

        def member(*values: Any) -> Any:
            return self._member(shape, values)

        member.__tinote_calls__ = self._f  # type: ignore[attr-defined]
        try:
            program = captured(member, tuple(given), (), arrays)
        except CaptureError as error:
            if not error.span.line:
                error.span = span
            raise
        numbers = [leaf.differs for leaf in leaves if leaf.is_number]
        differ = [leaf.differs for leaf in leaves if leaf.is_array]
        return Batch(program, numbers, list(zip(arrays, differ, strict=True)), span), given

    def _member(self, shape: Any, values: Sequence[Any]) -> Any:
        """Run one copy."""
        own, args, kwargs = _filled(shape, iter(values))
        for field, value in zip(self._fields, own, strict=True):
            if isinstance(value, np.ndarray):
                field.from_numpy(value)
            else:
                field.fill(value)
        returned = self._f(*args, **kwargs)
        if not self._results:
            return returned
        found = tuple([field.array_copy() for field in self._results])
        left = found[0] if self._has_one_result else found
        return left if returned is None else (returned, left)

    def _loop(self, shape: Any, leaves: Sequence[_Leaf], count: int, span: Span) -> Any:
        """The same, one copy after another in Python."""
        found, is_captured = [], active_listener() is not None  # which refuses to write to external arrays
        with State(arrays=not is_captured) as before, ShadowsBefore() as shadows:
            shadows.keep({**own_gradients(), **own_duals()})
            try:
                for member in range(count):
                    # Each copy has its own arguments to write to.
                    values = [leaf.of(member) for leaf in leaves]
                    owned = [one.copy() if isinstance(one, np.ndarray) else one for one in values]
                    try:
                        returned = self._member(shape, owned)
                    except TinoteError as error:
                        error.notes = (*error.notes, in_member(member, count, span))
                        raise
                    except Exception as error:
                        error.add_note(f"in element {member} of a batch of {count}")
                        raise
                    found.append(returned if is_captured else _each_array(returned, np.ndarray.copy))
                    before.put_back_memory()
                    shadows.put_back()
            finally:
                before.put_back_memory()
        return _stacked(found)

    def _placed(self, found: Any) -> Any:
        """The result with the batch axis at the requested position."""
        axes = self._out_axes
        if axes == 0:
            return found
        if isinstance(axes, int):
            return _moved(found, axes, self._span)
        if not isinstance(axes, tuple | list) or not isinstance(found, tuple | list) or len(axes) != len(found):
            raise DifferentiationError(
                f"out_axes of ti.ad.vmap must be a number, or one for each value that is returned, not {axes!r}",
                self._span,
            )
        return type(found)([_moved(one, axis, self._span) for one, axis in zip(found, axes, strict=True)])

    # ---- arguments

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: list[_Leaf]) -> Any:
        """Arguments without their numbers and arrays, which become `leaves`."""
        own: tuple[Any, ...] = ()
        if self._fields:
            if not args:
                raise DifferentiationError("the first argument is what fields= begin with", caller())
            own = (args[0],) if self._has_one_field else tuple(args[0])
            args = args[1:]
            if len(own) != len(self._fields):
                raise DifferentiationError(f"{len(self._fields)} fields need one array each, not {len(own)}", caller())
            for field, one in zip(self._fields, own, strict=True):
                _check_shape(field, one)
        begins = [
            _shape(one, 0, f"what '{field.name}' begins with", leaves)
            for field, one in zip(self._fields, own, strict=True)
        ]
        axes = self._in_axes
        if isinstance(axes, list):
            axes = tuple(axes)
        if not isinstance(axes, tuple):
            axes = (axes,) * len(args)
        elif len(axes) != len(args):
            raise DifferentiationError(
                f"in_axes of ti.ad.vmap has {len(axes)} axes, and the function is called with {len(args)} arguments",
                caller(),
            )
        given = [
            _shape(one, axis, f"argument {k}", leaves) for k, (one, axis) in enumerate(zip(args, axes, strict=True))
        ]
        named = [(name, _shape(one, 0, f"argument '{name}'", leaves)) for name, one in sorted(kwargs.items())]
        return "tuple", (("tuple", tuple(begins)), ("tuple", tuple(given)), ("dict", tuple(named)))


_LEAF = "leaf", ()


def _shape(value: Any, axis: Any, what: str, leaves: list[_Leaf]) -> Any:
    """A value without its leaves, which are added to `leaves`. Raises `DifferentiationError`."""
    if isinstance(value, tuple | list | dict):
        parts = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
        axes = list(axis) if isinstance(axis, tuple | list) else [axis] * len(parts)
        if isinstance(axis, dict) and isinstance(value, dict) and axis.keys() == value.keys():
            axes = [axis[key] for key in value]
        if len(axes) != len(parts):
            raise DifferentiationError(f"in_axes has {len(axes)} axes for {what}, which has {len(parts)}", caller())
        found = [(key, _shape(one, a, what, leaves)) for (key, one), a in zip(parts, axes, strict=True)]
        if isinstance(value, dict):
            return "dict", tuple(found)
        return "tuple" if isinstance(value, tuple) else "list", tuple([one for _, one in found])
    if axis is not None and (not isinstance(axis, int) or isinstance(axis, bool)):
        raise DifferentiationError(f"an axis of in_axes is a number or None, not {axis!r}", caller())
    leaves.append(_leaf(value, axis, what))
    return _LEAF


def _leaf(value: Any, axis: int | None, what: str) -> _Leaf:
    if axis is None and isinstance(value, Field):
        return _Leaf(value, False)
    array = _as_array(value)
    if isinstance(value, np.generic) or (array is not None and not array.ndim):
        value = array = value.item()
    if axis is None:
        return _Leaf(value if array is None else array, False)
    if not isinstance(array, np.ndarray):
        shown = "a number" if isinstance(value, bool | int | float) else repr(value)
        raise DifferentiationError(
            f"{what} is {shown}, which has no batch axis",
            caller(),
            hint="use None in in_axes for what the whole batch shares",
        )
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise DifferentiationError(f"{what} is an array of {array.dtype}: a batch consists of numbers", caller())
    if not -array.ndim <= axis < array.ndim:
        raise DifferentiationError(f"{what} has shape {array.shape}: axis {axis} does not exist", caller())
    return _Leaf(np.moveaxis(array, axis, 0), True)


def _as_array(value: Any) -> Array | None:
    if isinstance(value, Field):
        return value.array_copy() if active_listener() is not None else value.held()
    return numpy_view(value)


def _check_shape(field: Field, value: Any) -> None:
    array = _as_array(value)
    shape = None if array is None else array.shape[1:]
    if shape != shape_of(field):
        given = repr(value) if array is None else f"an array of shape {array.shape}"
        raise DifferentiationError(
            f"'{field.name}' begins with an array of shape {('batch', *shape_of(field))}, not with {given}".replace(
                "'batch'", "batch"
            ),
            caller(),
        )


def _count(leaves: Sequence[_Leaf], span: Span) -> int:
    """The size of the batch. Raises `DifferentiationError`."""
    counts = sorted({len(leaf.values) for leaf in leaves if leaf.differs})
    if not counts:
        raise DifferentiationError("no argument of ti.ad.vmap has a batch axis", span)
    if len(counts) > 1:
        raise DifferentiationError(f"the batch axes have different lengths, such as {counts[0]} and {counts[-1]}", span)
    if counts[0] == 0:
        raise DifferentiationError("the batch is empty, so the type of the result is not known", span)
    return counts[0]


def _filled(shape: Any, values: Iterator[Any]) -> Any:
    """A value rebuilt with these leaves."""
    kind, parts = shape
    if kind == "leaf":
        return next(values)
    if kind == "dict":
        return {key: _filled(one, values) for key, one in parts}
    found = [_filled(one, values) for one in parts]
    return tuple(found) if kind == "tuple" else found


def _own(array: Array) -> CapturedArray:
    """A copy in memory that programs know."""
    found = np.ndarray(array.shape, array.dtype, Memory(max(array.nbytes, 8)).view()).view(CapturedArray)
    found[...] = array
    return found


def _words(values: Any) -> Array:
    """Numbers in the form for lanes, 8 bytes each."""
    array = np.asarray(values)
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        raise CaptureError("a batch has integers of 64 bits with a sign", caller())
    return np.ascontiguousarray(array, np.float64 if array.dtype.kind == "f" else np.int64)


# ---- results


def _each_array(found: Any, act: Callable[[Array], Array]) -> Any:
    """A function's result, with a function applied to each array."""
    return map_leaves(lambda one: act(one) if isinstance(one, np.ndarray) else one, found)


def _stacked(found: Sequence[Any]) -> Any:
    """The results of all copies, with a leading batch axis."""
    first = found[0]
    if isinstance(first, dict):
        return {key: _stacked([one[key] for one in found]) for key in first}
    if isinstance(first, tuple | list):
        parts = [_stacked(column) for column in zip(*found, strict=True)]
        return tuple(parts) if isinstance(first, tuple) else parts
    if first is None or isinstance(first, str | bytes):
        return first
    values = [one.values if isinstance(one, Matrix) else one for one in found]
    if active_listener() is None:
        return np.stack([np.asarray(one) for one in values])
    shape, dtype = np.shape(values[0]) if isinstance(values[0], np.ndarray) else (), np.dtype(np.float64)
    if isinstance(values[0], np.ndarray) and values[0].dtype != object:
        dtype = values[0].dtype
    size = dtype.itemsize * len(values) * int(np.prod(shape))
    made = np.ndarray((len(values), *shape), dtype, Memory(max(size, 8)).view()).view(CapturedArray)
    for member, one in enumerate(values):
        made[member] = one
    return made


def _moved(found: Any, axis: int, span: Span) -> Any:
    def move(array: Array) -> Array:
        if not -array.ndim <= axis < array.ndim:
            raise DifferentiationError(f"out_axes: there is no axis {axis} in what is of shape {array.shape}", span)
        return np.moveaxis(array, 0, axis)

    return _each_array(found, move)
