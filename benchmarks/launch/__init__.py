"""What it costs to call a kernel that does next to nothing.

Three store their one number in memory of one f32: `scalar` in a 0-D field that the kernel knows, `template` in one that
it is passed, `array` in a NumPy array that it is passed. `loop` is a parallel loop y[i] = 2 * x[i] + 1 over 1024
elements. `captured` is a captured step that launches `scalar` a hundred times, and each of these launches is counted:
the store itself takes a nanosecond. JAX has no kernels with effects; its functions return what the others store. Warp
and Numba know no memory but what they are passed.
"""

from __future__ import annotations

from benchmarks.contract import Case, Contender

__all__ = ["CASES", "DIALECT"]

DIALECT = (
    Contender("tinote", "benchmarks.launch.dialect", "tinote"),
    Contender("taichi", "benchmarks.launch.dialect", "taichi"),
    Contender("quadrants", "benchmarks.launch.dialect", "quadrants"),
)

JAX = Contender("jax", "benchmarks.launch.jax_", "jax")

PASSED_ARRAYS = (
    Contender("warp", "benchmarks.launch.warp_", "warp"),
    Contender("numba", "benchmarks.launch.numba_", "numba"),
)

C_BY_CTYPES = Contender("C by ctypes", "benchmarks.launch.c_")

CASES = (
    Case(
        "launch of a kernel with one scalar argument",
        (*DIALECT, JAX, *PASSED_ARRAYS, C_BY_CTYPES),
        {"kernel": "scalar"},
        at_most=2e-6,
    ),
    Case(
        "launch of a kernel with a template argument and a scalar one",
        DIALECT,
        {"kernel": "template"},
        at_most=2.5e-6,
    ),
    Case(
        "launch of a kernel with a NumPy array and a scalar argument (Warp: an array of its own)",
        (*DIALECT, *PASSED_ARRAYS, C_BY_CTYPES),
        {"kernel": "array"},
    ),
    Case(
        "launch of a parallel loop over 1024",
        (*DIALECT, JAX, *PASSED_ARRAYS, Contender("C (OpenMP)", "benchmarks.launch.c_")),
        {"kernel": "loop"},
    ),
    Case(
        "launch of a kernel with one scalar argument, one of 100 in a captured step",
        (DIALECT[0], Contender("C loop", "benchmarks.launch.c_")),
        {"kernel": "captured"},
        at_most=0.3e-6,
    ),
)
