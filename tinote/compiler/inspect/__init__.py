"""Inspection of a compilation: stages, vectorisation remarks, tasks, observed values, costs and versions."""
