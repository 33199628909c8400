"""`tinote lab`: the tutorials in JupyterLab."""

from __future__ import annotations

import argparse
import filecmp
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tinote.cli.status import UNUSABLE, reason
from tinote.manual import tutorials

COPIES = Path("tinote-notebooks")
"""Where copies of the tutorials are when nobody says where, from the present folder."""

CONFIGURATION = Path(__file__).resolve().parent / "jupyter"
"""Jupyter's, for this command alone: no question about news of JupyterLab over the first notebook's views."""

EXTENSIONS = Path(__file__).resolve().parents[1] / "viz" / "labextensions"
"""Where the extension for JupyterLab is in the package. A wheel also puts it where each JupyterLab of its environment
looks; this folder is that of the code that runs, in a checkout too.
"""


def main(options: argparse.Namespace) -> int:
    """Runs the command; gives the exit status."""
    return lab(options.folder, browser=not options.no_browser, port=options.port)


def lab(folder: Path | None = None, *, browser: bool = True, port: int | None = None) -> int:
    """Opens JupyterLab on the tutorials: the server takes this process's place, or else its exit status is returned.

    It opens copies of them, in `folder` or in `tinote-notebooks` here; a file that is there already stays as it is.
    """
    try:
        source = tutorials()
        folder = folder or COPIES
        if not (folder.exists() and folder.samefile(source)):
            print(_account(folder, copy_missing(source, folder), differing(source, folder)), file=sys.stderr)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"tinote lab: {where}{reason(error)}", file=sys.stderr)
        return UNUSABLE
    root = folder.resolve()
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
    variable = "JUPYTER_CONFIG_PATH"
    variables = {**os.environ, variable: os.pathsep.join(filter(None, [str(CONFIGURATION), os.environ.get(variable)]))}
    if os.name != "posix":
        return subprocess.run(command, check=False, env=variables).returncode
    # This process becomes the server: its signals and its exit status need nobody in between.
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(command[0], command, variables)


def copy_missing(source: Path, folder: Path) -> int:
    """Copies the files of `source` that `folder` does not have, and returns how many these were."""
    copied = 0
    for name in _files(source):
        target = folder / name
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, target)
            copied += 1
    folder.mkdir(parents=True, exist_ok=True)
    return copied


def differing(source: Path, folder: Path) -> int:
    """How many files of `folder` are not as in `source`: edited, or of another version of the tutorials."""
    return sum(not filecmp.cmp(source / name, folder / name, shallow=False) for name in _files(source))


def _files(source: Path) -> list[Path]:
    names = [file.relative_to(source) for file in sorted(source.rglob("*")) if file.is_file()]
    return [name for name in names if not any(part.startswith(".") or part == "__pycache__" for part in name.parts)]


def _account(folder: Path, copied: int, kept: int) -> str:
    """What was done, in words."""
    said = f"{folder}: {copied} files copied from the tutorials"
    if kept:
        said += f"; {kept} that differ from them were kept (edited, or from another version: delete or rename them)"
    return said
