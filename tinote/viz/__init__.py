"""`ti.viz`: live views of particles, fields and scenes, pages and videos of them, the compiler's explorer, and the
views of gradients, access rules and sweeps.
"""

from functools import partial
from typing import TYPE_CHECKING, Any

from tinote.errors import no_attribute
from tinote.lazy import lazy
from tinote.viz.access_rules.widget import RuleView, violations
from tinote.viz.explorer.widget import Explorer, explore
from tinote.viz.gradient_view.widget import GradientView, gradients
from tinote.viz.live.controls import button, checkbox, color, dropdown, folder, number, slider, text
from tinote.viz.live.image import Image
from tinote.viz.live.particles import Particles
from tinote.viz.live.pointer import Pointer
from tinote.viz.live.running_plot import Plot
from tinote.viz.live.scene import Scene
from tinote.viz.notebook.front_end import set_stored_size
from tinote.viz.notebook.progress import progress
from tinote.viz.window.gui import GUI

if TYPE_CHECKING:
    from tinote.viz.draw import matplot
    from tinote.viz.draw.matplot import plot
    from tinote.viz.pages import export
    from tinote.viz.pages.export import page
else:
    matplot = lazy("tinote.viz.draw.matplot")
    export = lazy("tinote.viz.pages.export")

__all__ = [
    "GUI", "Explorer", "GradientView", "Image", "Particles", "Plot", "Pointer", "RuleView", "Scene", "button",
    "checkbox", "color", "dropdown", "explore", "folder", "gradients", "number", "page", "plot", "progress",
    "set_stored_size", "slider", "text", "violations",
]  # fmt: skip

_LATER = {"page": export, "plot": matplot}


if not TYPE_CHECKING:  # a type checker would take every name for one that is there

    def __getattr__(name: str) -> Any:
        """`plot` brings matplotlib, and `page` nbconvert's Markdown, which nothing else here needs."""
        if name not in _LATER:
            raise no_attribute("module 'tinote.viz'", name, __all__)
        return getattr(_LATER[name], name)


__dir__ = partial(sorted, __all__)
