"""`ti.ui`, so that `from tinote.ui import Window` works. What it holds is in `tinote.viz.window.ui`."""

from typing import Any

from tinote.lang.session.missing import refuse
from tinote.viz.window.ui import *  # noqa: F403
from tinote.viz.window.ui import __all__ as __all__


def __getattr__(name: str) -> Any:
    refuse(name, "ti.ui")
    raise AttributeError(f"module 'tinote.ui' has no attribute '{name}'")
