"""Modules of a user's that are not installed, as functions of sweeps use them."""

from tests.sweeps.modules import nested

BASE = 1.0

__all__ = ["BASE", "nested"]
