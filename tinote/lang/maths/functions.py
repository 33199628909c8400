"""The functions of the language by name: those that are public names of the package."""

from __future__ import annotations

from tinote.lang.maths import arithmetic, bits, elementary, language, shading, sparse, special, vectors
from tinote.lang.maths.builtin import BuiltinFunction

_MODULES = (arithmetic, elementary, special, bits, vectors, shading, language, sparse)
#: What only linear algebra asks for.
INNER = ("stop_gradient_once", "in_reverse", "machine_epsilon", "strong_zero")


def make_builtins() -> dict[str, BuiltinFunction]:
    """The functions that are public names of the package."""
    return {name: vars(module)[name] for module in _MODULES for name in module.__all__ if name not in INNER}
