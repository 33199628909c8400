"""A rollout of implicit time steps, and its gradient by the stiffness.

A hundred implicit Euler steps of the cloth of `examples/implicit_cloth.py`, with 58 × 58 masses, which are 10,092
unknowns: each step fills a sparse matrix and solves with it. The sum of the squares of where the masses are at the end
is differentiated by the stiffness of all springs. tinote factorises the matrices, and goes back by the same factors;
JAX, which has no sparse factorisation on CPUs, solves by conjugate gradients without making them. The row of a gradient
shows how many times the time of its own simulation it takes.
"""

from __future__ import annotations

from benchmarks.contract import Case, Contender

__all__ = ["CASES"]


def pair(name: str, module: str) -> tuple[Contender, Contender]:
    """Return the two rows of one package: the gradient, and the simulation alone."""
    primal = Contender(f"{name} primal", module, name, {"part": "primal"})
    return Contender(name, module, name, {"part": "gradient"}, primal.name), primal


CASES = (
    Case(
        "gradient through 100 implicit steps of 10,092 unknowns",
        (*pair("tinote", "benchmarks.implicit.tinote_"), *pair("jax", "benchmarks.implicit.jax_")),
        {"size": 58, "steps": 100},
        at_most_over=2.5,
        most_rounds=5,
        tolerance=1e-6,
    ),
)
