"""Differences between operating systems: functions with other names, or missing ones."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from typing import Any

IS_WINDOWS = sys.platform == "win32"

#: How to open a file of bytes that is no link and no device, and that no other program inherits, as far as the system
#: can.
PLAIN_FILE = sum(getattr(os, f"O_{name}", 0) for name in ("BINARY", "CLOEXEC", "NOINHERIT", "NOFOLLOW", "NONBLOCK"))


def register_at_fork(**calls: Callable[[], object]) -> None:
    """`os.register_at_fork`, which does nothing where processes cannot fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(**calls)


def is_own(status: os.stat_result) -> bool:
    """Whether a file is this user's; always where files have no numbers of users."""
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


def loaded_libraries() -> list[Any]:
    """The libraries of this process in which machine code finds functions of the system."""
    if not IS_WINDOWS:
        return [ctypes.CDLL(None)]
    return [ctypes.CDLL("ucrtbase"), ctypes.CDLL("kernel32"), ctypes.CDLL("ntdll"), ctypes.pythonapi]
