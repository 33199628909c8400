"""`ti.lang.ops`: the functions of the language under the path by which some programs import them."""

from tinote.lang.maths.functions import make_builtins

globals().update(make_builtins())
__all__ = list(make_builtins())  # pyright: ignore[reportUnsupportedDunderAll]
