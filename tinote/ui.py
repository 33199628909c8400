"""`ti.ui`: windows with a canvas, scenes in space and controls, which a notebook shows."""

# A module of its own, so that `from tinote.ui import Window` works.

import sys
from functools import partial
from typing import TYPE_CHECKING

from tinote.lang.session.missing import refusing
from tinote.viz.window import gui, ui
from tinote.viz.window.ui import *  # noqa: F403
from tinote.viz.window.ui import __all__ as __all__

# `from tinote.ui.canvas import Canvas`: the dialect has a module for each class.
sys.modules[f"{__name__}.gui"] = gui
for _name in ("camera", "canvas", "imgui", "scene", "window"):
    sys.modules[f"{__name__}.{_name}"] = globals()[_name] = ui

if not TYPE_CHECKING:  # a type checker would take every name for one that is there
    __getattr__ = refusing(__name__)
__dir__ = partial(sorted, __all__)
