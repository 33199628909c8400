"""`ti.linalg`, so that `from tinote.linalg import svd` works. What it holds is in `tinote.lang.maths.linalg`."""

from typing import Any

from tinote.lang.maths.linalg import *  # noqa: F403
from tinote.lang.maths.linalg import __all__ as __all__
from tinote.lang.session.missing import refuse


def __getattr__(name: str) -> Any:
    refuse(name, "ti.linalg")
    raise AttributeError(f"module 'tinote.linalg' has no attribute '{name}'")
