"""Captured steps: a function's effects on memory as a program that is replayed without Python."""
