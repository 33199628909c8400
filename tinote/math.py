"""`ti.math`: vectors, matrices, complex numbers and functions as GLSL names them, for kernels and for Python."""

# A module of its own, so that `from tinote.math import vec3` works.

from tinote.lang.maths.math import *  # noqa: F403
from tinote.lang.maths.math import __all__ as __all__
