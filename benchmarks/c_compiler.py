"""Compiles a C file at run time with the system's compiler and loads it."""

from __future__ import annotations

import ctypes
import functools
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from benchmarks.contract import UnavailableError

__all__ = ["FLAGS", "compiler_version", "load"]

FLAGS = ("-O3", "-march=native", "-ffast-math", "-fopenmp", "-std=c11", "-fPIC")
# Fast maths is no flag of the linker: GCC would add code that switches denormal numbers off in the whole process.
LINK_FLAGS = ("-shared", "-fopenmp")


def find_compiler() -> list[str] | None:
    """Return the command of `$CC`, or of the first of cc, gcc, clang that is there."""
    if chosen := os.environ.get("CC"):
        return shlex.split(chosen)
    return next(([path] for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), None)


def compiler_version() -> str:
    """Return the first line that the compiler says about itself; empty without one."""
    command = find_compiler()
    if not command:
        return ""
    try:
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return (done.stdout.splitlines() or [""])[0]


@functools.cache
def load(source: Path) -> ctypes.CDLL:
    """Compile `source`, once in a process, and return it loaded.

    Raises `UnavailableError` where there is no compiler or it refuses.
    """
    command = find_compiler()
    if not command:
        raise UnavailableError("no C compiler")
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as folder:
        module, library = Path(folder) / f"{source.stem}.o", Path(folder) / f"{source.stem}.so"
        lines = [*FLAGS, "-c", str(source), "-o", str(module)], [*LINK_FLAGS, str(module), "-o", str(library), "-lm"]
        try:
            for line in lines:
                subprocess.run([*command, *line], capture_output=True, text=True, check=True)
        except OSError as error:
            raise UnavailableError(f"no C compiler: {error}") from None
        except subprocess.CalledProcessError as error:
            first = next((line for line in error.stderr.splitlines() if "error" in line), f"status {error.returncode}")
            raise UnavailableError(f"C does not compile: {first.strip()}") from None
        # The library stays mapped after its file is gone.
        return ctypes.CDLL(str(library))
