"""Pictures: the IR explorer, the rule view, live views, the drop-in GUI. Nothing below calls up into this floor."""

import importlib
from typing import Any

from tinote.viz.explorer import Explorer, explore
from tinote.viz.gui import GUI
from tinote.viz.image import Image
from tinote.viz.particles import Particles
from tinote.viz.pointer import Pointer
from tinote.viz.progress import progress
from tinote.viz.rules import RuleView, violations
from tinote.viz.running_plot import Plot
from tinote.viz.slider import slider

__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    "GUI", "Explorer", "Image", "Particles", "Plot", "Pointer", "RuleView", "explore", "plot", "progress", "slider",
    "violations",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """`plot` brings matplotlib, which nothing else here needs."""
    if name != "plot":
        raise AttributeError(f"module 'tinote.viz' has no attribute {name!r}")
    return importlib.import_module("tinote.viz.matplot").plot
