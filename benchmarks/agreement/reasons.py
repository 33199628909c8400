"""What a program says of itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["differs", "reason_of"]

Program = Callable[[Any], Any]


def differs(reason: str) -> Callable[[Program], Program]:
    """State why tinote and Taichi give different things for a program."""

    def state(program: Program) -> Program:
        program.__dict__["reason"] = reason
        return program

    return state


def reason_of(program: Program) -> str:
    """The reason that a program states, or nothing."""
    return program.__dict__.get("reason", "")
