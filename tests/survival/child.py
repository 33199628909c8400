"""Child processes that are treated badly and must answer afterwards."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

__all__ = ["run_child"]

_ROOT = Path(__file__).resolve().parents[2]


def run_child(script: str, *, seconds: float = 600) -> str:
    """Run Python text in a fresh process from the project's root; what it printed.

    Fails if the child ends with another code than 0, says anything on standard error, or hangs: does not end within a
    time that is enough on any machine.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-X", "faulthandler", "-c", script],
            cwd=_ROOT,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as expired:
        raise AssertionError(f"the child hangs; it printed {expired.stdout!r} and {expired.stderr!r}") from None
    assert done.returncode == 0, f"the child ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    assert done.stderr == "", done.stderr
    return done.stdout
