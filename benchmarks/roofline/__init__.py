"""Loops that memory bounds: the time that they take, in units of STREAM's triad over as many bytes.

Counted is what a loop has to read and to write, each number once. Loops should move nine tenths of what the triad does,
a lattice Boltzmann step, which reads and writes 19 arrays, three quarters. All on one thread.
"""

from __future__ import annotations

from benchmarks.contract import Case, Contender

__all__ = ["CASES"]

PROGRAM, TRIAD = "benchmarks.roofline.dialect", "C, triad of as many bytes"


def case(loop: str, title: str, fraction: float) -> Case:
    """One loop and the part of the triad's rate that it should reach."""
    rows = (
        *[Contender(name, PROGRAM, name, over=TRIAD) for name in ("tinote", "taichi", "quadrants")],
        Contender("C by hand", "benchmarks.roofline.c_", parameters={"as_triad": 0}, over=TRIAD),
        Contender(TRIAD, "benchmarks.roofline.c_", parameters={"as_triad": 1}),
    )
    return Case(title, rows, {"loop": loop}, at_most_over=1 / fraction, tolerance=2e-4)


CASES = (
    case("axpy", "y += a x, 16 million numbers", 0.9),
    case("total", "a sum of 16 million numbers", 0.9),
    case("jacobi", "a step of Jacobi's method on 4096²", 0.9),
    case("stencil", "a stencil of seven points on 256³", 0.9),
    case("boltzmann", "a step of lattice Boltzmann, D3Q19, on 128³", 0.75),
)
