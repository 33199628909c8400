"""Vector reverse mode, along several directions at once: a sweep carries several adjoints of each number.

    ran = recorded(task, args, kwargs)
    rows = SeveralRows.of(ran, 16)          # None where adjoints have to go one by one
    products = rows.pull_back(seeds)        # of the shape (up to 16, *loss): for each input, (as many, *shape)

The run itself is recorded as for any reverse sweep. All adjoints are temporary, with a row of numbers for each number
(`temporary_adjoints.py`), whether a field has a gradient of its own or not. Where numbers pass through Python, or a
block has a custom derivative, adjoints are propagated one by one.

Method: vector reverse mode; Griewank and Walther, "Evaluating Derivatives", 2nd ed., 2008, section 3.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinote.compiler.requests import Derivative, Request
from tinote.lang.ad.functional.inputs import shape_of
from tinote.lang.ad.functional.runs import Run
from tinote.lang.ad.journal.activity import needed_adjoints
from tinote.lang.ad.journal.events import Computed, Event, Read, Write
from tinote.lang.ad.journal.saved_values import RecordedLaunch
from tinote.lang.ad.journal.sweep import Sweep
from tinote.lang.ad.journal.temporary_adjoints import SweepAdjoints
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.data.captured_arrays import taken_copy, zeros
from tinote.lang.data.fields import Field
from tinote.lang.kernels.arguments import Arguments, ExternalArray
from tinote.runtime.seam import active_listener

Array = np.ndarray[Any, Any]


class SeveralRows:
    """Sweeps through `run`, each along several directions. `events`: those of the sweep; `launches`: the gradient of
    each launch.
    """

    def __init__(self, run: Run, events: Sequence[Event], launches: dict[int, Arguments], directions: int) -> None:
        self._run = run
        self._events = events
        self._launches = launches
        self._directions = directions
        self._adjoints = SweepAdjoints((), directions=directions)
        #: all memory that may get adjoints
        self._carrying = {buffer for one in launches.values() for buffer in one.temporaries}
        for event in events:
            if isinstance(event, Write) and event.source is not None and event.target.dtype.kind == "f":
                self._carrying |= {one for one in (event.source, event.target) if run.journal.activity.follows(one)}

    @classmethod
    def of(cls, run: Run, directions: int) -> SeveralRows | None:
        """Sweeps through `run`; None where a sweep can carry only one adjoint."""
        (result,) = run.results
        if not isinstance(result, Field) or any(one.field is None for one in run.bound.inputs):
            return None
        journal = run.journal
        events = needed_adjoints(journal.events, journal.activity.spans, ()).events
        launches: dict[int, Arguments] = {}
        for event in events:
            if isinstance(event, RecordedLaunch):
                found = _along(event, directions)
                if found is None:
                    return None
                launches[id(event)] = found
            elif not (isinstance(event, Read | Computed) or (isinstance(event, Write) and event.numbers is None)):
                return None
        return cls(run, events, launches, directions)

    def pull_back(self, seeds: Array) -> list[Array]:
        """The products of seeds, with a leading axis of seeds before the shape of the result, and the Jacobian: for
        each input with the same leading axis. There are at most `directions` seeds.
        """
        self._adjoints = SweepAdjoints(self._carrying, directions=self._directions)
        (result,) = self._run.results
        assert isinstance(result, Field)
        start, count = np.moveaxis(numbers(self._adjoints.made(result.buffer)), -1, 0), len(seeds)
        seeds = np.moveaxis(result.by_place(np.moveaxis(seeds.reshape(count, *shape_of(result)), 0, -1)), -1, 0)
        if (listener := active_listener()) is not None:
            listener.assigning(start[:count], ..., seeds, seeds)
        start[:count] = seeds
        self._run.journal.sweep_along(_Sweep, self._events, self._launches, self._adjoints).run()
        return [self._product(one.field, count) for one in self._run.bound.inputs if one.field is not None]

    def _product(self, field: Field, count: int) -> Array:
        found = self._adjoints.of(field.buffer)
        if found is None:
            return zeros((count, *field.shape, *field.element))
        rows = np.moveaxis(field.by_index(numbers(found)), -1, 0)[:count]
        # Planes are returned to the caller: the next sweep gets memory of its own.
        return rows if rows.flags.c_contiguous and active_listener() is None else taken_copy(rows)


class _Sweep(Sweep):
    """A sweep that carries several adjoints."""

    __slots__ = ("_launches",)

    def __init__(
        self, launches: dict[int, Arguments], adjoints: SweepAdjoints, events: Sequence[Event], *args: Any
    ) -> None:
        super().__init__(events, *args, adjoints=adjoints)
        self._launches = launches

    def run(self) -> None:
        self._run(self._events, restore=True)

    def launch(self, launch: RecordedLaunch) -> None:
        arguments = self._launches[id(launch)]
        request = arguments.request
        if request.temporaries:
            values = self.adjoints.values(arguments, launch.gradient_arguments(), request)
            launch.instance.specialisation.code(request).launch(values)


def _along(launch: RecordedLaunch, directions: int) -> Arguments | None:
    """A launch whose gradient carries several adjoints of each number that has one in the recorded gradient. None if
    impossible.
    """
    arguments = launch.arguments
    specialisation = arguments.specialisation
    touched = specialisation.accesses().loaded | specialisation.accesses().written
    if launch.flow is not None or any(buffer.primal is not None for buffer in touched):
        return None
    temporaries = {b for b in touched if b.adjoint is not None} | arguments.request.temporaries
    if any(isinstance(arguments.actual(buffer), ExternalArray) for buffer in temporaries):
        return None
    request = Request(Derivative.REVERSE, directions=directions).with_temporaries(frozenset(temporaries))
    return Arguments(specialisation, arguments.values, request)
