"""Forward mode: launches inside the block compute tangents beside their values.

with ti.ad.FwdMode(loss=y, param=x, seed=[1.0, 0.0]):
    compute_y()
# y.dual now holds the Jacobian of y times the seed
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import Token
from types import TracebackType
from typing import Any

import numpy as np

from tinote.compiler.driver import Code
from tinote.compiler.requests import TANGENT
from tinote.errors import DifferentiationError
from tinote.ir.buffers import Buffer
from tinote.lang.ad.functional.seeds import seed_array
from tinote.lang.ad.journal.broken_path import LostValues
from tinote.lang.ad.journal.reads import PythonReads
from tinote.lang.data.fields import Field
from tinote.lang.kernels.arguments import arguments_of
from tinote.lang.kernels.kernel import Instance
from tinote.lang.session.state import Recorder, recorder, world
from tinote.source import NOWHERE, caller

__all__ = ["FwdMode"]


class FwdMode(Recorder):
    """Compute a Jacobian-vector product along with the launches in a `with` block.

    `loss`: the field, or fields, whose derivative is wanted, of any shape. `param`: the field, or fields, that the
    derivative is taken along, of any shape. `seed`: the direction, of the shape of `param` (a sequence of them for
    several); it may be left out for a single 0-D number, where it is 1. All of them need `needs_dual=True`. At entry
    the duals of all fields are set to zero and those of `param` to the seed; at exit `loss.dual` holds the product and
    the duals of `param` are set back to zero. Raises `DifferentiationError`.
    """

    #: A write from Python inside of the block stores a constant, whose dual is zero, or shifts what is there.
    clears_duals = True

    def __init__(self, loss: Field | Sequence[Field], param: Field | Sequence[Field], seed: Any = None) -> None:
        losses, params = _fields(loss, "loss"), _fields(param, "param")
        several = not isinstance(param, Field)
        seeds = [seed] if not several else [None] * len(params) if seed is None else list(seed)
        self._along(losses, params, seeds)

    def _along(self, losses: list[Field], params: list[Field], seeds: list[Any]) -> None:
        if len(seeds) != len(params):
            raise DifferentiationError(f"{len(params)} parameters need as many seeds, not {len(seeds)}", caller())
        self.losses = losses
        self.params = params
        self._seeds = [_direction(field, one) for field, one in zip(params, seeds, strict=True)]
        self._token: Token[Recorder | None] | None = None
        self._reads = PythonReads()
        self._lost = LostValues(tangents=True)

    def __enter__(self) -> FwdMode:
        if recorder.get() is not None:
            raise DifferentiationError("forward mode cannot be opened inside of another block or tape", caller())
        for field in list(world.fields):
            if field.has_dual:
                field.dual.fill(0)
        for field, direction in zip(self.params, self._seeds, strict=True):
            field.dual.from_numpy(direction)
        self._token = recorder.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._token is not None
        recorder.reset(self._token)
        self._token = None
        for field in self.params:
            field.dual.fill(0)

    def launching(self, instance: Instance, values: tuple[Any, ...]) -> Code:
        """The kernel is launched in its version with tangents."""
        self.follow(instance, values, varying=False)
        return instance.specialisation.code(TANGENT)

    def follow(self, instance: Instance, values: tuple[Any, ...], *, varying: bool) -> None:
        """Follow values that vary through memory without a dual. `varying`: the launch gets some as arguments."""
        arguments = arguments_of(instance, values)
        arguments.refuse_shared()
        self._lost.launch_forward(arguments, varying=varying)

    def writing(self, buffer: Buffer, position: Any, source: Buffer | None = None) -> bool:
        """A field copies or clears its duals itself, unless Python shifts what is there."""
        if position is ...:
            self._lost.write(buffer, source, caller() if source is not None else NOWHERE, whole=True)
        return source is None and self._reads.shifts(buffer, position)

    def reading(self, buffer: Buffer, position: tuple[Any, ...]) -> None:
        """What Python writes to an element next is perhaps computed from it."""
        self._reads.note(buffer, position)


def _fields(given: Any, what: str) -> list[Field]:
    found = [given] if isinstance(given, Field) else list(given) if isinstance(given, list | tuple) else []
    if not found or not all(isinstance(f, Field) for f in found):
        raise DifferentiationError(
            f"the {what} of forward mode must be a field or a list of fields, not {given!r}", caller()
        )
    for field in found:
        if not field.has_dual:
            raise DifferentiationError(
                f"the {what} '{field.name}' has no dual", caller(), hint="make it with needs_dual=True"
            )
    return found


def _direction(field: Field, seed: Any) -> np.ndarray[Any, Any]:
    """A seed as the field's dual holds it."""
    shape = field.shape + field.element
    if seed is None:
        if shape != ():
            raise DifferentiationError(
                f"the parameter '{field.name}' has shape {shape}: forward mode needs a seed of that shape", caller()
            )
        seed = 1.0
    direction = seed_array(seed, shape, f" of '{field.name}'", "the parameter")
    return direction.astype(np.float64 if field.dtype.bits == 64 else np.float32)
