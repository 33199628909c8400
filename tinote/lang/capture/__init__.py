"""Captured steps: what a function does to memory as data, which runs again without Python."""
