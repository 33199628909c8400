"""The child process: runs programs with one package and writes what became of each as a line of JSON.

Run as `python -m benchmarks.agreement.child PACKAGE FILE PROGRAM …`; a program is named `module.function`. The lines
are appended to FILE, so that nothing which a package prints gets among them, and so that the parent sees how far a
process came that crashed. What a program prints, on whichever level, is part of its result.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["main", "programs_of", "run"]

#: Subjects in the order of the table.
SUBJECTS = (
    "numbers",
    "vectors",
    "control",
    "functions",
    "structs",
    "fields",
    "arrays",
    "atomics",
    "texts",
    "types",
    "errors",
    "gradients",
    "simulations",
)

_BANNER = re.compile(r"^\[(Taichi|[A-Z] )")


def programs_of(subject: str) -> dict[str, Callable[[Any], Any]]:
    """The programs of a subject by name, in their order."""
    module = importlib.import_module(f"benchmarks.agreement.programs.{subject}")
    own = {name: value for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}
    return {name: value for name, value in own.items() if callable(value) and not name.startswith("_")}


def plain(value: Any) -> Any:
    """A result as JSON has it."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | range):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    for convert in ("to_dict", "to_numpy"):
        if hasattr(value, convert):
            return plain(getattr(value, convert)())
    return str(value)


@contextmanager
def _captured() -> Any:
    """What is printed meanwhile, by Python and below it: a list that gets the text at the end."""
    found: list[str] = []
    sys.stdout.flush()
    saved = os.dup(1)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 1)
        try:
            yield found
        finally:
            sys.stdout.flush()
            os.dup2(saved, 1)
            os.close(saved)
            file.seek(0)
            lines = file.read().decode("utf-8", "replace").splitlines()
            found += [line for line in lines if not _BANNER.match(line)]


def run(ti: Any, name: str) -> dict[str, Any]:
    """What one program gives: its value and what it printed, or the error that it raised."""
    subject, _, function = name.partition(".")
    program = programs_of(subject)[function]
    result: dict[str, Any] = {"program": name}
    with warnings.catch_warnings(), _captured() as printed:
        warnings.simplefilter("ignore")
        try:
            result["value"] = plain(program(ti))
        except Exception as error:
            result["error"] = f"{type(error).__name__}: {' '.join(str(error).split())}"[-400:]
            traceback.print_exc()
    result["printed"] = printed
    return result


def main(package: str, file: str, names: list[str]) -> None:
    """Run the programs and append their results to `file`."""
    ti = importlib.import_module(package)
    for name in names:
        with Path(file).open("a", encoding="utf-8") as results:
            results.write(json.dumps(run(ti, name)) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
