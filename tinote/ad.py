"""`ti.ad`, so that `from tinote.ad import Tape` works. What it holds is in `tinote.lang.ad`."""

from tinote.lang.ad import *  # noqa: F403
from tinote.lang.ad import __all__ as __all__
