"""The workloads in tinote, each a module with one function `build(ti, problem, style) -> Program`.

Kernels are written once: a style says what their array parameters are, and what is passed for them.
"""
