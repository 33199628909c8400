"""`ti.linalg`, so that `from tinote.linalg import svd` works. What it holds is in `tinote.lang.linalg`."""

from typing import Any

from tinote.lang.linalg import *  # noqa: F403
from tinote.lang.linalg import __all__ as __all__
from tinote.lang.missing import refuse


def __getattr__(name: str) -> Any:
    refuse(name, "ti.linalg")
    raise AttributeError(f"module 'tinote.linalg' has no attribute '{name}'")
