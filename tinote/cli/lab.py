"""`tinote lab`: the tutorials in JupyterLab."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tinote.cli.status import UNUSABLE, reason
from tinote.manual import checkout, tutorials

EXTENSIONS = Path(__file__).resolve().parents[1] / "viz" / "labextensions"
"""Where the extension for JupyterLab is in the package. A wheel also puts it where each JupyterLab of its environment
looks; this folder is that of the code that runs, in a checkout too.
"""


def main(options: argparse.Namespace) -> int:
    """Runs the command; gives the exit status."""
    return lab(options.folder, browser=not options.no_browser, port=options.port)


def lab(folder: Path | None = None, *, browser: bool = True, port: int | None = None) -> int:
    """Opens JupyterLab on the tutorials: the server takes this process's place, or else its exit status is returned.

    With `folder`, or when the tutorials belong to an installed package, they are copied first; a file that is there
    already stays as it is.
    """
    try:
        source = tutorials()
        if folder is None and checkout() is None:
            folder = Path("tinote-notebooks")
        if folder is not None:
            copied = copy_missing(source, folder)
            print(f"{folder}: {copied} files copied from the tutorials", file=sys.stderr)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"tinote lab: {where}{reason(error)}", file=sys.stderr)
        return UNUSABLE
    root = (folder or source).resolve()
    print(f"opening {root}", file=sys.stderr)
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={root}"]
    command += [f"--{app}.extra_labextensions_path={EXTENSIONS}" for app in ("LabApp", "JupyterNotebookApp")]
    first = next(iter(sorted(root.glob("*.ipynb"))), None)
    if first is not None:
        command.append(f"--LabApp.default_url=/lab/tree/{first.name}")
    if not browser:
        command.append("--no-browser")
    if port is not None:
        command += [f"--port={port}", "--ServerApp.port_retries=0"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        # In a container everything runs as root; the server would refuse to start.
        command.append("--allow-root")
    if os.name != "posix":
        return subprocess.run(command, check=False).returncode
    # This process becomes the server: its signals and its exit status need nobody in between.
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(command[0], command)


def copy_missing(source: Path, folder: Path) -> int:
    """Copies the files of `source` that `folder` does not have, and returns how many these were."""
    copied = 0
    for file in sorted(source.rglob("*")):
        target = folder / file.relative_to(source)
        hidden = any(part.startswith(".") or part == "__pycache__" for part in file.relative_to(source).parts)
        if file.is_file() and not hidden and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
            copied += 1
    folder.mkdir(parents=True, exist_ok=True)
    return copied
