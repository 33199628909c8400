"""What a forward layer (`forward.py`) is to the place of its tangents: what lies below it, and its numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from tinote.ir.buffers import Buffer
from tinote.lang.data.fields import Field
from tinote.lang.data.traced import Trace, Traced, computed_as, kind_of_dual, objects, stored, traced_array
from tinote.lang.data.traced_derivatives import ConstantDual, Dual, ScalarRule
from tinote.lang.session.state import Recorder, recording_as
from tinote.source import Span

_HERE: AbstractContextManager[None] = nullcontext()


class Execute(Recorder):
    """The layer at the bottom, where operations run and nothing is recorded."""

    def __init__(self) -> None:
        self.trace = Trace()


class Layer(Recorder):
    """A layer on `base`. `place`: of its tangents."""

    #: a layer that this one continues
    again: Layer | None = None

    def __init__(self, base: Recorder, place: Any, trace: Trace, span: Span | None) -> None:
        self.base = base
        self.place = place
        self.trace = trace
        self.opened = span
        #: gradients and duals that hold the results of finished blocks
        self.values: set[Buffer] = set()
        self._parts: dict[int, tuple[Any, Any]] = {}

    @property
    def duals_are_values(self) -> bool:
        """Whether duals hold ordinary values, the results of blocks inside: nothing has its tangents there."""
        return isinstance(self.root, Execute)

    @property
    def fields(self) -> Any:
        """The fields with its tangents, where it has some of its own."""
        assert not self.place.is_own
        return self.place

    def tangents_of(self, buffer: Buffer) -> Field | None:
        """The tangents of the field with this buffer; None for constants."""
        return self.fields.of(self, buffer)

    def keep_gradients(self, gradients: Iterable[Buffer]) -> None:
        """These may change."""

    def below(self) -> AbstractContextManager[None]:
        """A block for the layer below alone."""
        return _HERE if self.place.is_own else recording_as(self.base)

    # ---- numbers and their parts

    def parts(self, value: Any) -> tuple[Any, Any]:
        """The value and the tangent of a number."""
        if type(value) is not Traced or not value.number:
            return value if type(value) is Traced and value.is_captured else stored(value), 0.0
        layer: Layer | None = self
        while layer is not None:
            if value.trace is layer.trace:
                found = layer._parts.get(value.number)
                return (value.value, value.tangent) if found is None else found
            layer = layer.again
        return value, 0.0

    def number(self, value: Any, tangent: Any) -> Traced:
        """A number of these parts."""
        if not self.place.is_own:
            if isinstance(self.base, Execute):  # whose numbers are constants
                value, tangent = stored(value), stored(tangent)
            if type(value) is Traced or type(tangent) is Traced:
                found = self.trace.new(value)
                self.give(found, value, tangent)
                return found
        return self.trace.new(value, tangent)

    def give(self, number: Traced, value: Any, tangent: Any) -> None:
        """A number gets its parts."""
        self._parts[number.number] = value, tangent

    def computed(self, rule: ScalarRule, value: float, operands: Sequence[Traced | float]) -> Traced:
        parts = [self.parts(one) for one in operands]
        with self.below():
            found = computed_as(rule, value, [primal for primal, _ in parts])
            varying = [type(along) is Traced or along != 0 for _, along in parts]
            kinds = [
                kind_of_dual(one) if varies else ConstantDual for one, varies in zip(operands, varying, strict=True)
            ]
            given = [kind(one) for kind, (one, _) in zip(kinds, parts, strict=True)]
            tangent: Any = 0.0
            for k, (_, along) in enumerate(parts):
                if varying[k]:
                    tangent = tangent + rule.adjoints(Dual(along), Dual(found), *given)[k].value
        made = self.number(found, tangent)
        made.is_sum_of_squares = rule.squares is not None and rule.squares(*operands)
        return made

    def _split(self, value: Any) -> tuple[Any, Any]:
        """The values and the tangents of a number or of an array of numbers."""
        if not self.trace.holds(value):
            return value, 0.0
        if type(value) is Traced:
            return self.parts(value)
        array = traced_array(value)
        pairs = [self.parts(one) for one in array.ravel().tolist()]
        first, second = [objects([pair[k] for pair in pairs], array.shape) for k in (0, 1)]
        return first[()], second[()]
