"""The rollout in tinote, which is an example."""

from __future__ import annotations

import tinote as ti
from benchmarks.implicit.system import STIFFNESS, ImplicitSystem
from examples.implicit_cloth import Cloth

__all__ = ["create"]


class TinoteImplicit(ImplicitSystem):
    """A tape around all steps."""

    def __init__(self, part: str, size: int, steps: int) -> None:
        super().__init__(part, size, steps)
        ti.init(arch=ti.cpu, default_fp=ti.f64)
        self._cloth = Cloth(size)
        self._cloth.stiffness[None] = STIFFNESS

    def compute(self, steps: int) -> tuple[float, float]:
        return self._cloth.gradient(steps) if self.part == "gradient" else (self._cloth.value(steps), 0.0)


def create(package: str, part: str, size: int, steps: int) -> TinoteImplicit:
    """Return the rollout."""
    return TinoteImplicit(part, size, steps)
