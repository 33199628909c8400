"""Pictures: the IR explorer, live views, the drop-in GUI. Nothing below calls up into this floor."""

from tinote.viz.explorer import Explorer, explore
from tinote.viz.gui import GUI
from tinote.viz.particles import Particles

__all__ = ["GUI", "Explorer", "Particles", "explore"]
