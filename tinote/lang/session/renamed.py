"""Renamed parameters and functions: aliases that stay, old names that warn for one version, and unknown names, with a
suggestion.

The refusals of `missing.py` say what to use in place of a name that is not there; here the name still works.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from tinote.errors import KernelArgumentError, closest
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


def keywords_known(function: Callable[P, R]) -> Callable[P, R]:
    """A function that answers a keyword that it does not have by the one that was probably meant. Raises
    `KernelArgumentError` at the caller's line.
    """
    known = function.__code__.co_varnames[: function.__code__.co_argcount + function.__code__.co_kwonlyargcount]

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name not in known:
                close = closest(name, known)
                hint = f"did you mean `{close}`?" if close else f"it has {', '.join(known)}"
                raise KernelArgumentError(f"{function.__name__}() has no argument `{name}`", caller(), hint)
        return function(*args, **kwargs)

    return checked


def warn_of_old_name(old: str, new: str, *, stacklevel: int) -> None:
    """Warn of a name of ours that goes with the next version."""
    warnings.warn(f"{old} is now {new}", DeprecationWarning, stacklevel=stacklevel + 1)
