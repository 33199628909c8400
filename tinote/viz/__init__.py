"""Pictures: the IR explorer, live views, the drop-in GUI. Nothing below calls up into this floor."""

from tinote.viz.explorer import Explorer, explore
from tinote.viz.gui import GUI
from tinote.viz.image import Image
from tinote.viz.particles import Particles
from tinote.viz.pointer import Pointer
from tinote.viz.running_plot import Plot
from tinote.viz.slider import slider

__all__ = ["GUI", "Explorer", "Image", "Particles", "Plot", "Pointer", "explore", "slider"]
