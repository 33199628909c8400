"""Wrong results that were reported in public, of systems of this kind: what tinote gives for each of them.

A report is one file of `reports/`, found by its name. It has a docstring (the situation in one line, then what went
wrong), `REPORT` (the address), `RIGHT` (the right value), `KNOWN` (how that is known), and its program: `dialect(ti)`
runs in tinote, Taichi and Quadrants; `tinote(ti)`, `jax(jax)`, `warp(wp)` and `numba(numba)` are for one package.
Where conventions differ, `CONVENTION` states ours, and `TINOTE` what follows from it if that is not `RIGHT`;
`HISTORY` says what tinote gave before, where it was wrong itself.
`TOLERANCE` (1e-5 by default) is absolute and relative.

`python -m tests.museum --peer-python PATH` runs all of them and records in `peers.json` what the packages give that
the interpreter at PATH has; the page of the manual is made of both.
"""
