"""The libraries of the extra `sweep`, which are loaded when a sweep begins."""

from __future__ import annotations

import importlib
import platform
import sys
from typing import Any

from tinote.errors import SweepError
from tinote.lang.session import libraries


def library(name: str, why: str) -> Any:
    """A library. Raises `SweepError` where it is not installed."""
    hint = "install what sweeps need: pip install cloudpickle dask distributed pandas xarray zarr"
    return libraries.library(name, why, SweepError, hint)


def versions() -> dict[str, str]:
    """What has to be the same in all processes that share a sweep."""
    names = ("cloudpickle", "llvmlite", "numpy")
    found = {name: getattr(importlib.import_module(name), "__version__", "") for name in names}
    return {
        "Python": platform.python_version(),
        "implementation": sys.implementation.cache_tag or "",
        **found,
        "tinote": getattr(sys.modules["tinote"], "__version__", ""),
    }


def differing(mine: dict[str, str], others: dict[str, str]) -> str:
    """In words, what is of another version there; "" where nothing is."""
    differ = [name for name in mine if mine[name] != others.get(name)]
    return ", ".join(f"{name} {others.get(name, 'is missing')} in place of {mine[name]}" for name in differ)
