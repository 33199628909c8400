"""The workloads by which systems of automatic differentiation are compared, each as data and a NumPy program.

A module a workload, with a subclass of `Problem`; the contenders in `tinote_/`, `jax_/` and `c_/` have modules of the
same names. Everything is double precision and made by seeded generators.
"""
