"""Compiled code bound to memory, and what a launch needs to know of it."""
