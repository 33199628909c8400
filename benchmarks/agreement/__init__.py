"""Programs of the dialect, run side by side in tinote and in Taichi.

`python -m benchmarks agreement` runs every program of `programs/` in both and prints whether what they give and print
agrees, by subject. A program is a function of the package; where the two differ, `@differs` states the reason.
"""
