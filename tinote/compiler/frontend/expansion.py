"""Expansion of calls of built-ins: by functions of the emitter and the arguments, matched with the built-in's
parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import FunctionType
from typing import Any, NamedTuple

from tinote.compiler.frontend.emitter import Emitter

Expansion = Callable[[Emitter, list[Any], dict[str, Any]], Any]


class BuiltinParameters(NamedTuple):
    """The parameters of a built-in: names in order, defaults, and the name of the variadic parameter."""

    names: tuple[str, ...]
    defaults: Mapping[str, Any]
    variadic: str = ""

    @property
    def shown(self) -> str:
        names = [f"{n}=" if n in self.defaults else n for n in self.names]
        return ", ".join([*names, f"*{self.variadic}"] if self.variadic else names)

    def matched(self, e: Emitter, name: str, args: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The argument of each parameter in a call of the built-in `name`; variadic arguments are left out."""
        if not kwargs and len(args) == len(self.names):
            return dict(zip(self.names, args, strict=True))
        unknown = [k for k in kwargs if k not in self.names]
        if unknown:
            e.error(f"`{name}` has no parameter `{unknown[0]}`", f"it takes {self.shown or 'nothing'}")
        if len(args) > len(self.names) and not self.variadic:
            count = len(self.names)
            e.error(
                f"`{name}` takes {count} argument{'' if count == 1 else 's'}, not {len(args)}",
                f"it takes {self.shown or 'nothing'}",
            )
        given = dict(zip(self.names, args, strict=False))
        doubled = [k for k in kwargs if k in given]
        if doubled:
            e.error(f"`{name}` gets `{doubled[0]}` twice")
        given |= kwargs
        missing = [k for k in self.names if k not in given and k not in self.defaults]
        if missing:
            e.error(f"`{name}` needs `{missing[0]}`", f"it takes {', '.join(self.names)}")
        return {n: given[n] if n in given else self.defaults[n] for n in self.names}


@cache
def parameters_of(definition: FunctionType) -> BuiltinParameters:
    """The parameters of a Python function that defines a built-in."""
    code, values = definition.__code__, definition.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    return BuiltinParameters(names, dict(zip(names[len(names) - len(values) :], values, strict=True)))


def takes_place(expansion: Expansion) -> Expansion:
    """Mark an expansion whose first argument is written to."""
    expansion.takes_place = True  # type: ignore[attr-defined]
    return expansion


def parameters(written: str) -> BuiltinParameters:
    """Parameters from their names: `b=` marks one that may be left out (None), `b=0` one that is 0 then, `*items` takes
    any number.
    """
    names = [name.partition("=") for name in written.split()]
    fixed = [one for one in names if not one[0].startswith("*")]
    defaults = {name: int(value) if value else None for name, optional, value in fixed if optional}
    variadic = names[-1][0].lstrip("*") if len(fixed) < len(names) else ""
    return BuiltinParameters(tuple([name for name, _, _ in fixed]), defaults, variadic)


def simple(name: str, written: str, function: Callable[..., Any]) -> Expansion:
    """An expansion from a function of the emitter and named `parameters`."""
    taken = parameters(written)

    def expand(e: Emitter, args: list[Any], kwargs: dict[str, Any]) -> Any:
        return function(e, *taken.matched(e, name, args, kwargs).values(), *args[len(taken.names) :])

    expand.__name__ = name
    return expand


def define(table: dict[str, Expansion]) -> Callable[[str, str, Callable[..., Any]], None]:
    """A function that adds expansions to a table: `(name, parameters, function)`."""

    def add(name: str, written: str, function: Callable[..., Any]) -> None:
        table[name] = simple(name, written, function)

    return add
