"""Other names of parameters and functions: a second spelling that stays, and an old one that warns for a version.

The refusals of `missing.py` say what to use in place of a name that is not there; here the name still works.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from tinote.errors import KernelArgumentError
from tinote.source import caller

P = ParamSpec("P")
R = TypeVar("R")


def also_called(*, deprecated: bool = False, **names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function takes the parameter `output` by the name `loss`, too: `@also_called(loss="output")`. With
    `deprecated`, the other name warns. Raises `KernelArgumentError` where both are given.
    """

    def renaming(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def renamed(*args: P.args, **kwargs: P.kwargs) -> R:
            for other in names.keys() & kwargs.keys():
                name = names[other]
                if name in kwargs:
                    problem = f"{function.__name__} got both {name}= and {other}=, which are one parameter"
                    raise KernelArgumentError(problem, caller(), hint=f"leave {other}= out")
                if deprecated:
                    warn_of_old_name(f"{other}= of {function.__name__}", f"{name}=", stacklevel=2)
                kwargs[name] = kwargs.pop(other)
            return function(*args, **kwargs)

        return renamed

    return renaming


def warn_of_old_name(old: str, new: str, *, stacklevel: int) -> None:
    """Warn of a name of ours that goes with the next version."""
    warnings.warn(f"{old} is now {new}", DeprecationWarning, stacklevel=stacklevel + 1)
