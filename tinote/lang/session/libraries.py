"""Libraries of the extras, which are loaded when they are first needed."""

from __future__ import annotations

import importlib
from typing import Any

from tinote.errors import TinoteError
from tinote.source import caller


def library(name: str, why: str, error: type[TinoteError], hint: str = "") -> Any:
    """A library. Raises the `error`, which says `why` it is needed, where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        missing = name.partition(".")[0]
        raise error(
            f"{why} needs {missing}, which is not installed", caller(), hint=hint or f"pip install {missing}"
        ) from None
