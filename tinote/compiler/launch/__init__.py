"""Compiled code bound to memory, and its metadata for launches."""
