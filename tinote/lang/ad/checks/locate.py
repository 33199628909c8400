"""Which launch of a program has a wrong gradient: each is differentiated alone, along a random direction."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tinote.compiler.requests import GRADIENT
from tinote.errors import DifferentiationError
from tinote.ir.buffers import Buffer
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.kernels.arguments import ExternalArray, arguments_of, own
from tinote.lang.kernels.kernel import Instance
from tinote.lang.session.state import Recorder, memory_of, recording_as
from tinote.runtime.memory import MemoryCopies
from tinote.source import Span, location_name


class Suspect(NamedTuple):
    """A launch whose gradient, times random numbers, is not what differences of the launch alone give."""

    kernel: str
    span: Span
    launch: int
    reverse: float
    difference: float

    @property
    def error(self) -> float:
        """The deviation, relative to the derivative."""
        return abs(self.reverse - self.difference) / max(abs(self.reverse), abs(self.difference), 1e-300)

    def __repr__(self) -> str:
        return (
            f"kernel '{self.kernel}' ({location_name(self.span)}), launch {self.launch}: gradient along a random "
            f"direction {self.reverse:.9g}, differences {self.difference:.9g}"
        )


def suspects_of(run: Callable[[], Any], slope_of: Callable[..., Any], step: float, tolerance: float) -> list[Suspect]:
    """Run the program and check each launch on the way; those that fail, the worst first. All gradients are
    overwritten.
    """
    detective = _Detective(slope_of, step, tolerance)
    with recording_as(detective):
        run()
    return sorted(detective.found, key=lambda s: -s.error if math.isfinite(s.error) else -math.inf)


class _Detective(Recorder):
    """A recorder that tries each launch out before it happens."""

    def __init__(self, slope_of: Callable[..., Any], step: float, tolerance: float) -> None:
        self._slope_of = slope_of
        self._step = step
        self._tolerance = tolerance
        self._launches = 0
        self._rng = np.random.default_rng(2)
        self.found: list[Suspect] = []

    def launching(self, instance: Instance, values: tuple[Any, ...]) -> None:
        """A kernel is about to be launched: launch it with perturbed fields, then put all back."""
        self._launches += 1
        arguments = arguments_of(instance, values)
        touched = arguments.accesses
        if any(isinstance(b, ExternalArray) for b in touched.written):
            return  # an array that others manage: a second launch could not be undone
        buffers = sorted(own(touched.loaded | touched.written), key=lambda b: b.name)
        before = MemoryCopies(map(memory_of, buffers))
        try:
            self._try(instance, values, [b for b in buffers if b.adjoint is not None], touched.written, before)
        except DifferentiationError:
            pass  # inside of a replaced function: it has no gradient of its own
        finally:
            before.put_back()

    def _try(
        self,
        instance: Instance,
        values: tuple[Any, ...],
        varied: list[Buffer],
        written: frozenset[Buffer],
        before: MemoryCopies,
    ) -> None:
        gradient = instance.specialisation.code(GRADIENT)
        arguments = arguments_of(instance, values)
        arguments.refuse_broken_paths()  # alone it has no temporary adjoints
        facts = arguments.gradient_facts
        if facts.old_values or facts.copied:
            return  # it needs more than a launch on its own leaves
        origins = {b: numbers(b).copy() for b in varied}
        directions = {b: self._rng.standard_normal(origins[b].shape) for b in varied}
        weights = {b: self._rng.standard_normal(origins[b].shape) for b in varied if b in written}

        def value(offset: float) -> float:
            before.put_back()
            for b in varied:
                numbers(b)[...] = origins[b] + offset * directions[b]
            instance.primal.launch(values)
            return sum(float(np.vdot(weights[b], numbers(b))) for b in weights)

        slope = self._slope_of(value, self._step)
        value(0.0)  # the gradient runs on the fields as the launch leaves them
        for b in varied:
            assert b.adjoint is not None
            numbers(b.adjoint)[...] = weights.get(b, 0.0)
        before.put_back(map(memory_of, own(facts.live_in_before)))
        gradient.launch(values)
        adjoints = {b: numbers(b.adjoint) for b in varied if b.adjoint is not None}
        reverse = sum(float(np.vdot(adjoints[b], directions[b])) for b in varied)
        size = sum(float(np.vdot(np.abs(adjoints[b]), np.abs(directions[b]))) for b in varied)
        allowed = slope.uncertainty + self._tolerance * max(size, abs(slope.value))
        kinked = slope.sides is not None and slope.sides[0] - allowed <= reverse <= slope.sides[1] + allowed
        if not kinked and not abs(reverse - slope.value) <= allowed:
            source = instance.specialisation.source
            self.found.append(Suspect(source.name, source.span, self._launches, reverse, slope.value))
