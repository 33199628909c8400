"""`ti.ui`, so that `from tinote.ui import Window` works. What it holds is in `tinote.viz.window.ui`."""

from tinote.lang.session.missing import refusing
from tinote.viz.window.ui import *  # noqa: F403
from tinote.viz.window.ui import __all__ as __all__

__getattr__ = refusing(__name__)
