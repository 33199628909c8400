"""`ti.math`, so that `from tinote.math import vec3` works. What it holds is in `tinote.lang.maths.math`."""

from tinote.lang.maths.math import *  # noqa: F403
from tinote.lang.maths.math import __all__ as __all__
