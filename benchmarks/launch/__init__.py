"""What it costs to call a kernel that does next to nothing.

Two kernels: `scalar`, which stores its one argument in a 0-D f32 field (or array of one), and `loop`, a parallel loop
y[i] = 2 * x[i] + 1 over 1024 elements. JAX has no kernels with effects; its functions return what the others store.
"""

from __future__ import annotations

from benchmarks.contract import Case, Contender

__all__ = ["CASES"]

CONTENDERS = (
    Contender("tinote", "benchmarks.launch.dialect", "tinote"),
    Contender("taichi", "benchmarks.launch.dialect", "taichi"),
    Contender("quadrants", "benchmarks.launch.dialect", "quadrants"),
    Contender("jax", "benchmarks.launch.jax_", "jax"),
    Contender("warp", "benchmarks.launch.warp_", "warp"),
    Contender("numba", "benchmarks.launch.numba_", "numba"),
)

CASES = (
    Case(
        "launch of a kernel with one scalar argument",
        (*CONTENDERS, Contender("C by ctypes", "benchmarks.launch.c_")),
        {"kernel": "scalar"},
    ),
    Case(
        "launch of a parallel loop over 1024",
        (*CONTENDERS, Contender("C (OpenMP)", "benchmarks.launch.c_")),
        {"kernel": "loop"},
    ),
)
