"""Calls, their arguments, and calls that Python carries out."""
