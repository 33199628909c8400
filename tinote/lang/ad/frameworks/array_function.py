"""A program as a function of arrays without side effects: its values, and its derivatives of first and second order.

That is what other frameworks differentiate. Their backward passes come when they like, perhaps for a call before the
last: each of these methods runs the program again, from its inputs and from what all fields hold, and leaves all fields
as they were.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tinote.errors import DifferentiationError
from tinote.lang.ad.frameworks.declared import ArrayFacts, Declared, Mismatch, miscount, name_of
from tinote.lang.ad.functional.forward_mode import ForwardMode
from tinote.lang.ad.functional.inputs import Bound, DifferentiatedFunction, shape_of
from tinote.lang.ad.functional.runs import (
    Run,
    begin_along,
    pull_back,
    recorded_from,
    refuse_open_recorder,
    result_of,
)
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.ad.journal.touched_gradients import give_gradients_duals
from tinote.lang.ad.memory.states import ShadowsBefore, State
from tinote.lang.data.fields import Field
from tinote.lang.data.matrix import numpy_type
from tinote.lang.data.traced import Trace, Traced

Array = np.ndarray[Any, Any]

#: The fields of a program are everybody's: one call at a time.
_one_at_a_time = threading.RLock()


class ArrayFunction:
    """The function of arrays that `f` is.

    With `inputs`, fields with a gradient: `f()` reads them, and leaves its results in the fields `outputs`. Without:
    `f` takes the arrays, and then one for each result, of the shapes `outputs`, which are given or computed from the
    shapes of the arrays; these hold zeros. They are of the type of the first array. Without `outputs`, `f` returns its
    result, a number that a kernel has returned. `what` is the name that errors call it by. Raises
    `DifferentiationError`.
    """

    def __init__(self, what: str, f: Callable[..., Any], inputs: Any, outputs: Any) -> None:
        self.what = what
        self.f = f
        self.fields = [] if inputs is None else _fields(what, inputs, "inputs")
        self.takes_fields = inputs is not None
        self._results = _fields(what, outputs, "outputs") if self.takes_fields and outputs is not None else []
        self._outputs = outputs
        # A field may be both, and is one input of the derivative.
        known = list(dict.fromkeys([*self.fields, *self._results]))
        self._task = DifferentiatedFunction(what, f, known or None, None, None if known else [])
        for field in known:
            if field.dtype.kind != "f":
                raise DifferentiationError(
                    f"the field '{field.name}' holds {field.dtype}: ti.ad.{what} takes fields of floats",
                    self._task.span,
                )
        self._task.require("grad")
        self._declared = Declared(what, f)

    @property
    def name(self) -> str:
        """What the program is called."""
        return name_of(self.f)

    def mismatch(self, given: Sequence[ArrayFacts]) -> Mismatch | None:
        """What is wrong with arguments, if anything is."""
        if not self.takes_fields:
            return self._mismatch_of_arrays(given)
        if len(given) != len(self.fields):
            return Mismatch("count", f"{self.name} takes {len(self.fields)} arrays, not {len(given)}")
        for number, (one, field) in enumerate(zip(given, self.fields, strict=True)):
            wanted = facts_of(field)
            if one.shape != wanted.shape:
                return Mismatch(
                    "shape",
                    f"argument {number} of {self.name} has shape {one.shape}, but the field '{field.name}' has shape "
                    f"{wanted.shape}",
                )
            if one.dtype != wanted.dtype:
                return Mismatch(
                    "dtype",
                    f"argument {number} of {self.name} holds {one.dtype}, but the field '{field.name}' holds "
                    f"{wanted.dtype}",
                )
        return None

    def _mismatch_of_arrays(self, given: Sequence[ArrayFacts]) -> Mismatch | None:
        if not given:
            return Mismatch("count", f"{self.name} takes at least one array")
        wanted = miscount(self._outputs, len(given)) if callable(self._outputs) else None
        if wanted is not None:
            return Mismatch("count", f"{self.name} takes {wanted} arrays, as its outputs= does, not {len(given)}")
        for number, one in enumerate(given):
            if one.dtype.kind != "f":
                return Mismatch(
                    "dtype", f"argument {number} of {self.name} holds {one.dtype}: arrays of floats are taken"
                )
            found = self._declared.misfit(number, one, f"argument {number}")
            if found is not None:
                return found
        made = [] if self._outputs is None else self.results(given)
        wanted = miscount(self.f, len(given) + len(made))
        if wanted is not None:
            written = f" and {len(made)} for its results" if made else ""
            return Mismatch("count", f"{self.name} takes {wanted} arrays, not {len(given)}{written}")
        for number, one in enumerate(made):
            found = self._declared.misfit(len(given) + number, one, f"result {number}")
            if found is not None:
                return found
        return None

    def results(self, given: Sequence[ArrayFacts]) -> list[ArrayFacts]:
        """What arguments of these shapes and types give. Raises `DifferentiationError`."""
        if self._results:
            return [facts_of(field) for field in self._results]
        dtype = given[0].dtype if given else np.dtype(np.float64)
        if self._outputs is None:
            return [ArrayFacts((), dtype)]
        shapes = self._shapes(given)
        several = [shapes] if _is_shape(shapes) else list(shapes) if isinstance(shapes, list | tuple) else []
        if not several or not all(map(_is_shape, several)):
            raise DifferentiationError(
                f"the outputs of ti.ad.{self.what} are a shape or a list of shapes, not {shapes!r}",
                self._task.span,
                hint="a shape is a tuple of extents: (8, 3)",
            )
        return [ArrayFacts(tuple(shape), dtype) for shape in several]

    def is_single(self, given: Sequence[ArrayFacts]) -> bool:
        """Whether such arguments give one result that is not in a list."""
        outputs = self._outputs
        return (
            outputs is None or isinstance(outputs, Field) or (not self.takes_fields and _is_shape(self._shapes(given)))
        )

    def _shapes(self, given: Sequence[ArrayFacts]) -> Any:
        return self._outputs(*[one.shape for one in given]) if callable(self._outputs) else self._outputs

    def value(self, inputs: Sequence[Array]) -> list[Array]:
        """The results. Arrays are read where they are."""
        made = self._facts(inputs)
        with self._without_effects():
            outputs = self._place(inputs, made)
            returned = self.f(*self._arguments(inputs, outputs))
            if self._results:
                return [np.array(field.held()) for field in self._results]
            if outputs:
                return outputs
            if not isinstance(returned, bool | int | float | np.number):
                result_of(self._task, returned, Trace())  # it says what is missing
            return [np.asarray(returned, made[0].dtype)]

    def push(self, inputs: Sequence[Array], tangents: Sequence[Array]) -> list[Array]:
        """The Jacobian times `tangents`, of the shapes of the inputs: of those of the results."""
        made = self._facts(inputs)
        with self._without_effects(), ShadowsBefore() as before:
            outputs = self._place(inputs, made)
            give_gradients_duals()
            trace = Trace()
            bound = self._bound(inputs, outputs, trace, duals=True)
            along = bound.point_numbers(_directions(tangents, bound))
            with ForwardMode([], [field for field, _ in along], [d for _, d in along], trace, before) as mode:
                with bound.running():
                    returned = self.f(*bound.args)
                mode.take_duals_back()
                found = self._found(bound, len(inputs))
                if found:
                    return [np.array(field.dual.held()) for field in found]
                result = result_of(self._task, returned, trace)
                assert isinstance(result, Traced)
                return [np.asarray(result.tangent, made[0].dtype)]

    def pull(self, inputs: Sequence[Array], seeds: Sequence[Array]) -> list[Array]:
        """`seeds`, of the shapes of the results, times the Jacobian: of those of the inputs."""
        journal = Journal()
        with self._without_effects(), ShadowsBefore() as before:
            journal.leave_shadows(before)
            outputs = self._place(inputs, self._facts(inputs))
            ran = self._recorded(inputs, outputs, journal, duals=False)
            sweep = pull_back(ran, *[one.astype(np.float64) for one in seeds])
            return [np.array(one.gradient(sweep)) for one in ran.bound.inputs[: len(inputs)]]

    def second(
        self, inputs: Sequence[Array], seeds: Sequence[Array], tangents: Sequence[Array]
    ) -> tuple[list[Array], list[Array]]:
        """What `push` gives along `tangents`, and what `pull` with `seeds` changes by along them."""
        journal = Journal(tangents=True)
        with self._without_effects():
            outputs = self._place(inputs, self._facts(inputs))
            with ShadowsBefore() as before:
                journal.leave_shadows(before)
                ran = self._recorded(inputs, outputs, journal, duals=True, tangents=tangents)
                pushed = [
                    np.array(one.dual.held()) if isinstance(one, Field) else np.asarray(one.tangent)
                    for one in ran.results
                ]
                sweep = pull_back(ran, *[one.astype(np.float64) for one in seeds])
                return pushed, [np.array(one.second(sweep)) for one in ran.bound.inputs[: len(inputs)]]

    # ---- parts of these

    def _recorded(
        self,
        inputs: Sequence[Array],
        outputs: list[Array],
        journal: Journal,
        *,
        duals: bool,
        tangents: Sequence[Array] | None = None,
    ) -> Run:
        bound = self._bound(inputs, outputs, journal.trace, duals=duals)
        if tangents is not None:
            give_gradients_duals()
            begin_along(journal, bound, _directions(tangents, bound))
        return recorded_from(self._task, bound, journal, {}, self._found(bound, len(inputs)))

    @contextmanager
    def _without_effects(self) -> Iterator[None]:
        """The program runs: afterwards all fields are as they were."""
        refuse_open_recorder(self.what)  # what is open here may be what another one waits for
        with _one_at_a_time, State() as before:
            try:
                yield
            finally:
                before.put_back()

    def _facts(self, inputs: Sequence[Array]) -> list[ArrayFacts]:
        return self.results([ArrayFacts(one.shape, one.dtype) for one in inputs])

    def _place(self, inputs: Sequence[Array], made: list[ArrayFacts]) -> list[Array]:
        """Give the fields their values; gives the arrays that the program writes to."""
        for field, one in zip(self.fields, inputs, strict=False):
            field.from_numpy(one.reshape(field.shape + field.element))
        return [] if self.takes_fields or self._outputs is None else [np.zeros(*one) for one in made]

    def _arguments(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> list[Any]:
        if self.takes_fields:
            return []
        found: list[Any] = []
        for position, one in enumerate(inputs):
            if self._declared.is_number(position):
                found.append(one.item())
                continue
            view = one.view()
            view.flags.writeable = False
            found.append(view)
        return [*found, *outputs]

    def _bound(self, inputs: Sequence[Array], outputs: Sequence[Array], trace: Trace, *, duals: bool) -> Bound:
        arguments = self._arguments(inputs, outputs)
        if not self.takes_fields:
            self._task.argnums = list(range(len(arguments)))
        return self._task.bound(arguments, trace, duals=duals)

    def _found(self, bound: Bound, count: int) -> list[Field]:
        """The fields with the results of a run on `count` inputs; none where it returns its result."""
        return self._results or [one.field for one in bound.inputs[count:] if one.field is not None]


def facts_of(field: Field) -> ArrayFacts:
    """Shape and type of the array that a field is."""
    return ArrayFacts(shape_of(field), np.dtype(numpy_type(field.dtype)))


def _directions(tangents: Sequence[Array], bound: Bound) -> list[Array]:
    """One for all that is differentiated with respect to: what is only written has none."""
    return [
        *[one.astype(np.float64) for one in tangents],
        *[np.zeros(one.shape) for one in bound.inputs[len(tangents) :]],
    ]


def _is_shape(given: Any) -> bool:
    return isinstance(given, tuple) and all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in given)


def _fields(what: str, given: Any, which: str) -> list[Field]:
    found = [given] if isinstance(given, Field) else list(given) if isinstance(given, list | tuple) else []
    if not found or not all(isinstance(f, Field) for f in found) or len(set(found)) < len(found):
        raise DifferentiationError(
            f"the {which} of ti.ad.{what} are a field or different fields in a list, not {given!r}",
            hint="without inputs= the function takes arrays, and outputs= are their shapes",
        )
    return found
