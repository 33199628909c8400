"""Simplification passes: constant folding, common subexpressions, dead code, invariant code motion."""
