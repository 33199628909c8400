"""Gradient checks: comparison with finite differences."""
