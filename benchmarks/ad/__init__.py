"""Derivatives by the workloads with which systems of automatic differentiation are compared, beside JAX and C.

`problems/` says what is computed, and checks every contender's derivatives; `tinote_/`, `jax_.py` and `ad.c` compute
it. Each system has a row for its derivative, which computes the value as well, and one for the program alone. tinote
has three styles: over fields, over its arrays with a tape, and as functions of NumPy arrays. All rows are for one
thread but those that say otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.contract import Case, Contender

__all__ = ["CASES", "STYLES", "WORKLOADS", "Workload"]

TOLERANCE = 1e-8


class Workload(NamedTuple):
    """What one is called, and its sizes with what the gradient may take in units of the best peer (None: no target).
    `missed`: why a target that is missed is, for the report.
    """

    title: str
    sizes: dict[str, float | None]
    missed: str = ""


WORKLOADS = {
    "least_squares": Workload(
        "least squares, {} points, 128 coefficients",
        {"64": 0.9, "1024": 0.9, "4096": 0.9},
        "of 8.4 µs for 64 points 1.4 are compiled code, as long as the C takes; the others are the call from Python, "
        "which compares what the function depends on, finds the arrays and makes the result. With 4,096 the two "
        "launches take as long as a program of two launches can: the value alone costs 40 µs (C: 37), and the reverse "
        "sweep reads the points anew, where the C has a strip of 32 in registers for both. Tried: saving the "
        "residuals (done), one launch for both sweeps (the residual of a point depends on all coefficients, so that "
        "only a strip of points may be fused, which no pass does).",
    ),
    "log_sum_exp": Workload(
        "log-sum-exp of {} numbers",
        {"2500": 3.0, "40000": 1.0, "320000": 1.0},
        "of 54 µs for 40,000 numbers about 9 are the call from Python; the compiled code takes 45, less than the C's "
        "47.",
    ),
    "ode": Workload(
        "Runge-Kutta, {} equations, 100 steps",
        {"1000": 1.15, "10000": 1.15},
        "1,200 launches of 8 to 80 kB each, between which the state goes from memory to memory: 100 copies save it "
        "and 100 bring it back. The C has one loop nest for all stages of a step. Tapes launch one by one (5.3 ms for "
        "1,000 equations); plans, which functional derivatives have, do not.",
    ),
    "kmeans": Workload("k-means, {} points and centroids, 8 dimensions", {"1000,10": 3.0, "1000,100": 1.0}),
    "gaussian_mixture": Workload(
        "Gaussian mixture, {} points, dimensions, components",
        {"1000,2,5": None, "1000,2,25": None, "1000,10,5": 0.6, "1000,10,25": 0.6, "1000,20,5": 0.6, "1000,20,25": 0.6},
        "faster than both peers in all cases with ten dimensions or more, by 2 to 23 %, where 40 % were aimed at. The "
        "program alone takes 0.6 of the C's (0.64 ms for 1.07 with 20 dimensions, 25 components), its gradient 4.5 "
        "times that: adjoints of the triangular factors go to private copies of each component, and rows of them are "
        "read in strides that the C, which knows the triangle's layout, walks in order.",
    ),
    "determinant": Workload(
        "determinant by expansion, n = {}",
        {"5": 2.0, "7": 2.0, "8": 2.0},
        "of 7.3 µs for n = 5 1.2 are compiled code, less than the C's 1.4; the others are the call from Python.",
    ),
    "lstm": Workload(
        "LSTM, {} layers, characters",
        {"2,256": 0.5, "2,1024": 0.5, "4,256": 0.5, "4,1024": 0.5},
        "a third to 40 % faster than C and 10 to 16 times faster than JAX, where half the time of the better one was "
        "aimed at. The program alone takes 0.34 of the C's; the reverse sweep reads five saved values of each gate, "
        "computes nothing twice, and is bound by the chain of one step to the next.",
    ),
    "bundle": Workload(
        "bundle adjustment, {} cameras, points, observations",
        {"49,7776,31843": 1.2, "161,48126,182072": 1.2},
    ),
    "hand": Workload(
        "hand tracking, {} vertices, points",
        {"544,100": 1.0, "544,192": 1.0, "5000,2000": 1.0},
        "two runs of three launches carry 16 tangents of everything; the C knows which four angles move a bone, and "
        "differentiates the measured vertices alone, so that it does a sixth of the work. Tried: 32 tangents in one "
        "run (no gain: the registers are full at 16), blocks for the launches that need fewer (copies eat the gain).",
    ),
}

JAX_COMPILES = {"determinant": ("5",)}
"""Sizes that JAX compiles within a minute, where that is not all: it unrolls the expansion."""


def cases() -> Iterator[Case]:
    """A table for each workload and size."""
    for workload, (title, sizes, _) in WORKLOADS.items():
        for size, at_most in sizes.items():
            parameters = {"workload": workload, "sizes": size, "threads": 1}
            contenders = [
                *(row(f"tinote {style}", "benchmarks.ad.tinote_.subject", "tinote", style) for style in STYLES),
                *(
                    row(f"tinote {style}, all threads", "benchmarks.ad.tinote_.subject", "tinote", style, threads=0)
                    for style in STYLES
                ),
                row("tinote primal", "benchmarks.ad.tinote_.subject", "tinote", "fields", part="primal"),
                row("c", "benchmarks.ad.c_", None),
                row("c primal", "benchmarks.ad.c_", None, part="primal"),
            ]
            if size in JAX_COMPILES.get(workload, (size,)):
                contenders += [
                    row("jax", "benchmarks.ad.jax_", "jax"),
                    row("jax, all threads", "benchmarks.ad.jax_", "jax", threads=0),
                    row("jax primal", "benchmarks.ad.jax_", "jax", part="primal"),
                ]
            yield Case(
                title.format(size.replace(",", ", ")),
                tuple(contenders),
                parameters,
                at_most_best=at_most,
                tolerance=TOLERANCE,
            )


STYLES = ("fields", "ndarrays", "functional")


def row(
    name: str, module: str, package: str | None, style: str = "", part: str = "derivative", **parameters: str | int
) -> Contender:
    """One row; that of a derivative shows how many times the program alone it takes."""
    own = {"part": part, **({"style": style} if style else {}), **parameters}
    return Contender(name, module, package, own, "" if part == "primal" else f"{name.split()[0].rstrip(',')} primal")


CASES = tuple(cases())
