"""Pictures: the IR explorer, live views, the drop-in GUI. Nothing below calls up into this floor."""

import importlib
from typing import Any

from tinote.viz.explorer import Explorer, explore
from tinote.viz.gui import GUI
from tinote.viz.image import Image
from tinote.viz.particles import Particles
from tinote.viz.pointer import Pointer
from tinote.viz.progress import progress
from tinote.viz.running_plot import Plot
from tinote.viz.slider import slider

__all__ = ["GUI", "Explorer", "Image", "Particles", "Plot", "Pointer", "explore", "plot", "progress", "slider"]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    """`plot` brings matplotlib, which nothing else here needs."""
    if name != "plot":
        raise AttributeError(f"module 'tinote.viz' has no attribute {name!r}")
    return importlib.import_module("tinote.viz.matplot").plot
