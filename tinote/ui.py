"""`ti.ui`, so that `from tinote.ui import Window` works. What it holds is in `tinote.viz.ui`."""

from typing import Any

from tinote.viz import ui


def __getattr__(name: str) -> Any:
    return getattr(ui, name)
