"""What is compiled of a kernel, and the types that a session's options give to literals."""

from __future__ import annotations

from enum import Enum

from tinote.config import Config
from tinote.ir.primitives import Defaults
from tinote.ir.types import scalar_named

__all__ = ["Mode", "defaults_of"]


class Mode(Enum):
    """The kernel itself, its reverse-mode derivative, or its forward-mode one."""

    PRIMAL = "primal"
    GRADIENT = "gradient"
    TANGENT = "tangent"


def defaults_of(config: Config) -> Defaults:
    """The types of literals and of `float` and `int`."""
    return Defaults(scalar_named(config.default_fp), scalar_named(config.default_ip))
