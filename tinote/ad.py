"""`ti.ad`: derivatives by tapes, in forward mode and as functions; checkpoints, custom gradients, gradient checks."""

# A module of its own, so that `from tinote.ad import Tape` works.

from functools import partial
from typing import TYPE_CHECKING

from tinote.lang.ad import *  # noqa: F403
from tinote.lang.ad import __all__ as __all__
from tinote.lang.session.missing import refusing

if not TYPE_CHECKING:  # a type checker would take every name for one that is there
    __getattr__ = refusing(__name__, value_grad_hvp="value_and_grad_and_hvp")
__dir__ = partial(sorted, __all__)
