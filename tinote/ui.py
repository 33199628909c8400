"""`ti.ui`: windows with a canvas, scenes in space and controls, which a notebook shows."""

# A module of its own, so that `from tinote.ui import Window` works.

from tinote.lang.session.missing import refusing
from tinote.viz.window.ui import *  # noqa: F403
from tinote.viz.window.ui import __all__ as __all__

__getattr__ = refusing(__name__)
