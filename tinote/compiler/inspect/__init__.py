"""Views of a compilation: its stages, what LLVM vectorised and why not the rest, tasks, observed values, costs and
versions.
"""
