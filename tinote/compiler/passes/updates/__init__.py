"""Passes for atomic updates: reductions, private copies, and updates that need not be atomic."""
