"""Gradient descent inside of gradient descent: the outer one differentiates through all steps of the inner one.

`saddle` looks for the minimum over two numbers of the maximum over two others; `particle` for the target to which a
particle is steered cheapest, by a controller that is optimised for each target. Both derivatives, the outer one and the
inner one, are taken in reverse or in forward mode: four combinations, which have one result.
"""

from __future__ import annotations

from benchmarks.contract import Case, Contender

__all__ = ["CASES"]

TINOTE = Contender("tinote", "benchmarks.nested.tinote_", "tinote", over="jax")
JAX = Contender("jax", "benchmarks.nested.jax_", "jax")

TITLES = {"saddle": "minimum of a maximum", "particle": "particle with an optimal controller"}

CASES = tuple(
    Case(
        f"{title}, {outer} mode over {inner} mode",
        (TINOTE, JAX),
        {"problem": problem, "outer": outer, "inner": inner},
        at_most_over=3,
        tolerance=1e-9,
    )
    for problem, title in TITLES.items()
    for outer in ("reverse", "forward")
    for inner in ("reverse", "forward")
)
