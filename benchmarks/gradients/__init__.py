"""What a gradient costs beside the program that is differentiated.

Four programs in f32, each as it is ("primal") and with its gradient in reverse mode, which is the primal, the gradient
set to zero, and the reverse sweep:

* `nbody`: the energy of 1,536 particles that attract each other (`gravity`), with respect to their positions;
* `wave`: 40 steps of the wave equation on 256 × 256 nodes, each in a slice of its own, and the sum of the squares of
  the last one, with respect to the first two;
* `recurrence`: 200,000 times 25 iterations of v = a sin v + b, and the sum of what comes out, with respect to where
  they start;
* `mass_spring`: 128 steps of 1,024 masses on a ring, each held by springs to two neighbours on either side, and the sum
  of the squares of where they are in the end, with respect to the stiffness of each mass's springs.

The row of a gradient shows how many times the time of its own primal it takes. `unchecked` is a tape that keeps nothing
of what launches overwrite.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from benchmarks.contract import Case, Contender

__all__ = ["CASES", "PROGRAMS", "Program"]


class Program(NamedTuple):
    """What one is called, and why its target is missed, for the report."""

    title: str
    missed: str = ""


PROGRAMS = {
    "nbody": Program(
        "gradient of the energy of 1536 particles",
        "the tape runs the program, and the reverse sweep computes each pair again with its derivative, 2.2 times the "
        "work of the energy. JAX has R = 1.9 at 4.4 times the time: its program alone is as much slower. In units of "
        "time the gradient is the fastest of all.",
    ),
    "wave": Program(
        "gradient through 40 steps of a wave on 256 x 256 nodes",
        "3.5 to 5.2 in different runs, beside a program that takes 8 µs a step on two threads. The reverse sweep reads "
        "three slices of adjoints and adds to three, for one that the program writes, and 10 MB of adjoints are set to "
        "zero first. In units of time the gradient is 2.4 times as fast as the best peer's.",
    ),
    "recurrence": Program("gradient of 200,000 recurrences of 25 iterations"),
    "mass_spring": Program(
        "gradient through 128 steps of 1024 masses and their springs",
        "384 launches and their gradients take 1.2 ms; 0.1 of them are the tape's check of what is overwritten (3.1 "
        "without it). The program itself became 2.9 times as fast as when the target was set. In units of time "
        "the gradient is 10 times as fast as the best peer's.",
    ),
}

DIALECT = "benchmarks.gradients.dialect"
UNCHECKED = Contender(
    "tinote unchecked", DIALECT, "tinote", {"part": "gradient", "overwrite": "unchecked"}, "tinote primal"
)


def pair(name: str, module: str, package: str) -> tuple[Contender, Contender]:
    """Return the two rows of one package: the gradient, and the program alone."""
    primal = Contender(f"{name} primal", module, package, {"part": "primal"})
    return Contender(name, module, package, {"part": "gradient"}, primal.name), primal


TINOTE = pair("tinote", DIALECT, "tinote")
PEERS = tuple(
    chain(
        pair("taichi", DIALECT, "taichi"),
        pair("quadrants", DIALECT, "quadrants"),
        pair("jax", "benchmarks.gradients.jax_", "jax"),
        pair("warp", "benchmarks.gradients.warp_", "warp"),
    )
)


def cases() -> Iterator[Case]:
    """Give the table of each program."""
    for program, (title, _) in PROGRAMS.items():
        yield Case(title, (*TINOTE, UNCHECKED, *PEERS), {"program": program}, at_most_over=3.0)


CASES = tuple(cases())
