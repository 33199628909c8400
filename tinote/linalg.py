"""`ti.linalg`, so that `from tinote.linalg import svd` works. What it holds is in `tinote.lang.maths.linalg`."""

from tinote.lang.maths.linalg import *  # noqa: F403
from tinote.lang.maths.linalg import __all__ as __all__
from tinote.lang.session.missing import refusing

__getattr__ = refusing(__name__)
