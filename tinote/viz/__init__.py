"""Pictures: the IR explorer, the rule view, live views, the drop-in GUI. Nothing below calls up into this floor."""

import importlib
from typing import Any

from tinote.errors import no_attribute
from tinote.viz.access_rules.widget import RuleView, violations
from tinote.viz.explorer.widget import Explorer, explore
from tinote.viz.live.image import Image
from tinote.viz.live.particles import Particles
from tinote.viz.live.pointer import Pointer
from tinote.viz.live.running_plot import Plot
from tinote.viz.live.slider import slider
from tinote.viz.notebook.progress import progress
from tinote.viz.window.gui import GUI

__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    "GUI", "Explorer", "Image", "Particles", "Plot", "Pointer", "RuleView", "explore", "plot", "progress", "slider",
    "violations",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """`plot` brings matplotlib, which nothing else here needs."""
    if name != "plot":
        raise no_attribute("module 'tinote.viz'", name, __all__)
    return importlib.import_module("tinote.viz.draw.matplot").plot
