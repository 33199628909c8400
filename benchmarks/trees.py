"""Two copies to compare: the package of a commit and that of the present tree, each with the present benchmarks.

Both are copies, byte-compiled, in folders whose names are of one length: what differs between them is the package
alone, and an edit while they are measured changes nothing.
"""

from __future__ import annotations

import compileall
import io
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.runners import ROOT

__all__ = ["PACKAGE", "Trees", "TreesError", "two_trees"]

PACKAGE = "tinote"
CACHES = shutil.ignore_patterns("__pycache__", "*.pyc")


class TreesError(Exception):
    """There is nothing to compare with; the message says why."""


class Trees:
    """The folders of the two copies, and the commit in full."""

    def __init__(self, folder: Path, commit: str) -> None:
        self.old, self.new = folder / "old", folder / "new"
        self.commit = commit


@contextmanager
def two_trees(commit: str, repository: Path = ROOT) -> Iterator[Trees]:
    """Copy the package of `commit` and that of the working tree of `repository`; the copies go at the end.

    Raises `TreesError` where `commit` names no commit, or one without the package.
    """
    full = git(repository, "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}").decode().strip()
    with TemporaryDirectory(prefix="benchmarks-", ignore_cleanup_errors=True) as folder:
        trees = Trees(Path(folder), full)
        with tarfile.open(fileobj=io.BytesIO(git(repository, "archive", full, PACKAGE))) as archive:
            archive.extractall(trees.old, filter="data")
        shutil.copytree(repository / PACKAGE, trees.new / PACKAGE, ignore=CACHES)
        for tree in (trees.old, trees.new):
            shutil.copytree(Path(__file__).parent, tree / "benchmarks", ignore=CACHES)
            compileall.compile_dir(tree, quiet=2)
        yield trees


def git(repository: Path, *arguments: str) -> bytes:
    """Return what git prints."""
    try:
        done = subprocess.run(["git", *arguments], cwd=repository, capture_output=True, check=False)
    except FileNotFoundError:
        raise TreesError("git is not installed") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise TreesError(said[-1] if said else f"no such commit: {arguments[-1].removesuffix('^{commit}')}")
    return done.stdout
