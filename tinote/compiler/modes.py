"""What is compiled of a kernel, and the types that a session's options give to literals."""

from __future__ import annotations

from enum import Enum

from tinote.config import Config
from tinote.ir.primitives import Defaults
from tinote.ir.types import scalar_named

__all__ = ["Mode", "defaults_of"]


class Mode(Enum):
    """The kernel itself, its reverse-mode derivative, or its forward-mode one.

    `PULLBACK` and `PUSHFORWARD` are the same two with the kernel's float arguments and results among what is
    differentiated: a pullback is launched with the adjoints of the results behind the arguments and returns the
    adjoints of the arguments; a pushforward, with the tangents of the arguments behind them, returns the results and
    then their tangents. `SECOND` is the pushforward of the pullback. `CHECKED` is the kernel itself with checks of the
    access rules, `RECORDING` the kernel itself, which also saves the old values that its gradient needs;
    `RECORDING_PUSHFORWARD` is the pushforward that does. `FINITE` and `FINITE_GRADIENT` are the kernel and its
    reverse-mode derivative with checks that stop where a NaN or an infinity arises.
    """

    # Each launch of a gradient looks up its code by the mode; the hash that `Enum` gives is one of the name.
    __hash__ = object.__hash__

    PRIMAL = "primal"
    GRADIENT = "gradient"
    TANGENT = "tangent"
    PULLBACK = "pullback"
    PUSHFORWARD = "pushforward"
    SECOND = "second"
    CHECKED = "checked"
    RECORDING = "recording"
    RECORDING_PUSHFORWARD = "recording pushforward"
    FINITE = "finite"
    FINITE_GRADIENT = "finite gradient"

    @property
    def reverses(self) -> bool:
        """Whether it runs a kernel backwards."""
        return self in (Mode.GRADIENT, Mode.PULLBACK, Mode.SECOND)

    @property
    def remembered(self) -> bool:
        """Whether later processes find its code on disk: not where what checks and old values mean is needed too."""
        return self not in (Mode.CHECKED, *_RECORDING, Mode.FINITE, Mode.FINITE_GRADIENT)

    @property
    def records(self) -> bool:
        """Whether old values are saved."""
        return self in _RECORDING

    @property
    def has_tangents(self) -> bool:
        """Whether tangents are computed."""
        return self in _WITH_TANGENTS


_WITH_TANGENTS = frozenset({Mode.TANGENT, Mode.PUSHFORWARD, Mode.SECOND, Mode.RECORDING_PUSHFORWARD})
_RECORDING = frozenset({Mode.RECORDING, Mode.RECORDING_PUSHFORWARD})


def defaults_of(config: Config) -> Defaults:
    """The types of literals and of `float` and `int`."""
    return Defaults(scalar_named(config.default_fp), scalar_named(config.default_ip))
