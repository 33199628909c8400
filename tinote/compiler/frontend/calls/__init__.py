"""Calls, their arguments, and calls that Python evaluates at compile time."""
