"""Differentiation as transformations of the IR: one table of derivative rules, reverse and forward mode, and what must
be saved.
"""
