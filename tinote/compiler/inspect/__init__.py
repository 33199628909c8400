"""Views of a compilation: its stages, which loops are vectorised and why not the rest, tasks, observed values, costs
and versions.
"""
