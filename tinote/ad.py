"""`ti.ad`: derivatives by tapes, in forward mode and as functions; checkpoints, custom gradients, gradient checks."""

# A module of its own, so that `from tinote.ad import Tape` works.

from tinote.lang.ad import *  # noqa: F403
from tinote.lang.ad import __all__ as __all__
