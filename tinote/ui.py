"""`ti.ui`, so that `from tinote.ui import Window` works. What it holds is in `tinote.viz.ui`."""

from typing import Any

from tinote.lang.missing import refuse
from tinote.viz.ui import *  # noqa: F403
from tinote.viz.ui import __all__ as __all__


def __getattr__(name: str) -> Any:
    refuse(name, "ti.ui")
    raise AttributeError(f"module 'tinote.ui' has no attribute '{name}'")
