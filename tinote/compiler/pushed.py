"""Pushforwards: the forward derivative of a kernel as a separate kernel, which is differentiable in turn.

    y[i] = sin(x[i])      ->      y[i], y'[i] = sin(x[i]), cos(x[i]) * x'[i]

The tangents of fields and arrays are in memory like any other, `memory_tangents`: not in duals, which belong to
derivatives that are taken of this one. So derivatives of any order are composed of pushforwards, one on top of another,
and of the requests that there are for the last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tinote.compiler.driver import Specialisation
from tinote.compiler.signature import Lowered
from tinote.errors import broken_gradient_path
from tinote.ir.buffers import Buffer
from tinote.lazy import lazy
from tinote.source import Span

if TYPE_CHECKING:
    from tinote.autodiff import forward
    from tinote.compiler import pipeline
    from tinote.compiler.cache import kernel_cache
    from tinote.compiler.cache.kernel_cache import KernelCache
else:
    forward = lazy("tinote.autodiff.forward")
    kernel_cache = lazy("tinote.compiler.cache.kernel_cache")
    pipeline = lazy("tinote.compiler.pipeline")


class ToConstant(NamedTuple):
    """A store of values that vary into memory that was declared to have no tangents."""

    buffer: Buffer
    span: Span


class ToConstants(NamedTuple):
    """All of a kernel, as they are kept on disk."""

    stores: tuple[ToConstant, ...]


#: The name of the entry on disk.
_TO_CONSTANTS = "stores to constants"


class PushedSpecialisation(Specialisation):
    """The pushforward of a specialisation. `memory_tangents`: the memory of tangents, of which `arrays` are known at
    launch only. A launch gets the kernel's arrays, then these, the kernel's numbers, and the tangents of its floats; it
    gives the kernel's results, and then the tangents of the floats among them. Raises `DifferentiationError`.
    """

    def __init__(self, of: Specialisation, memory_tangents: Mapping[Buffer, Buffer], arrays: Sequence[Buffer]) -> None:
        self._of = of
        self._memory_tangents = memory_tangents
        self._further = tuple(arrays)
        #: where it puts values that vary into memory that was declared to have no tangents
        self.to_constants: Sequence[ToConstant] = ()
        super().__init__(of.source, of.arguments, of.config, of._memory_of)

    def _open_cache(self) -> KernelCache | None:
        known = self._of._cache
        return None if known is None else kernel_cache.PushedCache(known, self._of._lowered, self._memory_tangents)

    def _load_primal_from_cache(self) -> bool:
        found = None if self._cache is None else self._cache.get(_TO_CONSTANTS, ToConstants)
        if found is None:
            return False
        self.arrays, self.to_constants = (*self._of.arrays, *self._further), found.stores
        return super()._load_primal_from_cache()

    def _steps(self, steps: Any) -> Any:
        return pipeline.after_inference(steps)

    def _lower(self) -> None:
        self.arrays = (*self._of.arrays, *self._further)
        lowered = self._of.lowered
        with self._compilation(f"{self.source.name}, pushforward") as enter:
            steps = self._of._steps(pipeline.DIFFERENTIABLE)
            fn, context = pipeline.run_pipeline(lowered.function, steps, self.config, enter=enter)
            pushed = forward.forward(fn, context.defaults, arguments=True, memory_tangents=self._memory_tangents)
            for path in pushed.broken:
                if not path.buffer.no_tangent:
                    raise broken_gradient_path(path.buffer.name, path.span, [], tangents=True)
            self.to_constants = found = tuple([ToConstant(path.buffer, path.span) for path in pushed.broken])
            if self._cache is not None:
                self._cache.put(_TO_CONSTANTS, ToConstants(found), None)
            fn, _ = pipeline.run_pipeline(pushed.function, pipeline.TIDYING, self.config)
        returns: tuple[Any, ...] | None = tuple([atom.type for atom in fn.region.yields]) or None
        self._lowered = Lowered(fn, lowered.captures, returns, False, False, (), reproducible=False)
        self._captures = lowered.captures
