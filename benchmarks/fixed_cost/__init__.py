"""What a derivative costs that computes next to nothing: of 16 numbers in f64, in a process that has called it before.

`tape` is the gradient of the sum of squares of a field under a tape. The others are derivatives as functions, of the
sum of cubes: of an ndarray of ours (`ndarray`), of a NumPy array (`numpy`), and the product of the Hessian and a vector
(`hvp`), both NumPy arrays. JAX's are jitted, of its own arrays.
"""

from __future__ import annotations

from benchmarks.contract import Case, Contender

__all__ = ["CASES"]

TINOTE = Contender("tinote", "benchmarks.fixed_cost.tinote_", "tinote")
JAX = Contender("jax", "benchmarks.fixed_cost.jax_", "jax")

CASES = (
    Case("gradient of 16 numbers, a field under a tape", (TINOTE, JAX), {"derivative": "tape"}, at_most=8e-6),
    Case("gradient of 16 numbers, a function of an ndarray", (TINOTE, JAX), {"derivative": "ndarray"}, at_most=12e-6),
    Case("gradient of 16 numbers, a function of a NumPy array", (TINOTE, JAX), {"derivative": "numpy"}, at_most=20e-6),
    Case("Hessian product of 16 numbers, NumPy arrays", (TINOTE, JAX), {"derivative": "hvp"}, at_most=40e-6),
)
