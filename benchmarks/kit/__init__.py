"""What the kit does, beside programs by hand and libraries: neighbours in a liquid and in a fluid of particles, and
transforms of a plane.

A step should be at least as fast as Taichi's program and take at most 1.3 times that of C, all on one thread. Each
contender's steps are those of `system.py`; the lists and grids of C are those that one writes first. Transforms
should take at most the time of SciPy's.
"""

from __future__ import annotations

from benchmarks.contract import Case, Contender

__all__ = ["CASES"]

C = "C by hand"
DIALECT = "benchmarks.kit.dialect"


def rows(kind: str) -> tuple[Contender, ...]:
    """The contenders for a kind of particles."""
    return (
        Contender("tinote", "benchmarks.kit.tinote_", "tinote", {"kind": kind, "lanes": "auto"}, C),
        Contender("tinote, lanes always", "benchmarks.kit.tinote_", "tinote", {"kind": kind, "lanes": "always"}, C),
        Contender("tinote, grid by hand", DIALECT, "tinote", {"kind": kind}, C),
        Contender("taichi, grid by hand", DIALECT, "taichi", {"kind": kind}, C),
        Contender("quadrants, grid by hand", DIALECT, "quadrants", {"kind": kind}, C),
        Contender(C, "benchmarks.kit.c_", parameters={"kind": kind}),
    )


def transforms(kind: str) -> Case:
    """A plane of real or complex numbers, there and back."""
    scipy, module, given = "SciPy (pocketfft)", "benchmarks.kit.transforms", {"kind": kind}
    contenders = (Contender("tinote", module, "tinote", given, scipy), Contender(scipy, module, parameters=given))
    return Case(f"{kind} transform of 512² in f32, and its inverse", contenders, {"n": 512}, at_most_over=1.0)


CASES = (
    Case("Lennard-Jones liquid, 100,000 particles, a step", rows("liquid"), {"n": 100_000}, at_most_over=1.3),
    Case("SPH, 100,000 particles, a step", rows("fluid"), {"n": 100_000}, at_most_over=1.3),
    transforms("real"),
    transforms("complex"),
)
