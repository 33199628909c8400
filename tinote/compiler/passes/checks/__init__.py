"""Checks while a kernel runs: where they are put, moved and merged."""
