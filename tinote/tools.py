"""`ti.tools`, so that `from tinote.tools import imwrite` works. What it holds is in `tinote.viz.tools`."""

from tinote.viz.tools import *  # noqa: F403
from tinote.viz.tools import __all__ as __all__
