"""Transformations of loops, from fission to vectorisation."""
