"""Tests of the CPU that are run again on a software GPU, in a process of their own: a sample of what
`pytest --arch gpu` runs in minutes.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[1]

#: What a GPU does not do, or not like the CPU, with the reason.
DIFFERENT = {
    "tests/lang/test_recursion.py::test_a_frame_needs_no_room_on_the_stack_of_a_thread": (
        "Mesa's driver for CPUs ends loops of more than 65,535 iterations, which is an error with the line"
    ),
    "tests/lang/test_recursion.py::test_another_process_takes_the_code_from_disk": (
        "what is compiled for a GPU is not kept on disk"
    ),
}


def passes_on_gpu(files: Sequence[str], least: int) -> None:
    """Run the tests of these files on the GPU: all but those of `DIFFERENT` pass, and these are `least` at least."""
    left_out = [part for name in DIFFERENT for part in ("--deselect", name)]
    found = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "--arch",
            "gpu",
            "-q",
            "--tb=short",
            "-p",
            "no:cacheprovider",
            "--random-programs",
            "10",
            *left_out,
            *files,
        ],
        cwd=_ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        capture_output=True,
        text=True,
        check=False,
    )
    passed = re.search(r"(\d+) passed", found.stdout)
    if found.returncode or passed is None:
        pytest.fail(f"on the GPU:\n{found.stdout[-6000:]}\n{found.stderr[-2000:]}", pytrace=False)
    assert int(passed[1]) >= least, found.stdout
