"""The origin of a module: this package, a library, or user code, whose source is read."""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

#: Modules of Python's own whose names kernels know.
_FIXED = ("builtins", "math", "typing", "operator", "_operator")
_STANDARD = {"tinote", "numpy"} | sys.stdlib_module_names


def is_ours(module: str | None) -> bool:
    """Whether a module belongs to this package."""
    return isinstance(module, str) and module.partition(".")[0] == "tinote"


def is_known_by_name(thing: Any) -> bool:
    """Whether a function or class is what its name says, for one version of Python and of this package."""
    return "<" not in thing.__qualname__ and (thing.__module__ in _FIXED or is_ours(thing.__module__))


def is_standard(module: str | None) -> bool:
    """Whether a module belongs to this package, to NumPy or to Python itself."""
    return (module or "").partition(".")[0] in _STANDARD


def is_library(module: str | None, file: str = "") -> bool:
    """Whether a module is one that is installed, or no source text, in place of the user's own. `file`: of the code
    in question, if it is known.
    """
    if is_standard(module):
        return True
    if not file and module not in (None, "", "__main__", "__mp_main__"):
        file = getattr(sys.modules.get(module), "__file__", None) or ""
    return file.startswith("<frozen") or is_installed(file)


@functools.lru_cache(maxsize=1024)
def is_installed(file: str) -> bool:
    """Whether a file is part of an installed library, or holds no source text."""
    if file.endswith(tuple(EXTENSION_SUFFIXES)) or {"site-packages", "dist-packages"} & set(Path(file).parts):
        return True
    return any(file.startswith(folder + os.sep) for folder in {*map(sysconfig.get_path, ("purelib", "platlib"))})
