"""`tinote bench`: the benchmarks of a source checkout."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from tinote.cli.status import UNUSABLE
from tinote.manual import checkout


def main(options: argparse.Namespace) -> int:
    """Runs the command; gives the exit status."""
    folder = checkout()
    if folder is None or not (folder / "benchmarks").is_dir():
        print(
            "tinote bench: the benchmarks are part of a source checkout; this is an installed package", file=sys.stderr
        )
        return UNUSABLE
    command = [sys.executable, "-m", "benchmarks", *options.arguments]
    # In the folder of the caller, where the files that the arguments name are.
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path, "TINOTE_PROGRAM": "tinote bench"}, check=False
    ).returncode
