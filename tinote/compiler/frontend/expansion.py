"""How built-ins are declared: an expansion from a plain function of the emitter and named parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinote.compiler.frontend.emitter import Emitter

__all__ = ["Expansion", "define", "simple", "takes_place"]

Expansion = Callable[[Emitter, list[Any], dict[str, Any]], Any]


def takes_place(expansion: Expansion) -> Expansion:
    """Mark an expansion whose first argument is written to."""
    expansion.takes_place = True  # type: ignore[attr-defined]
    return expansion


def simple(name: str, parameters: str, function: Callable[..., Any]) -> Expansion:
    """An expansion from a function of the emitter and named parameters; `b=` marks one that may be left out (None),
    `*items` takes any number.
    """
    names = parameters.split()
    variadic = bool(names) and names[-1].startswith("*")
    fixed = [n.rstrip("=") for n in names if not n.startswith("*")]
    optional = {n.rstrip("=") for n in names if n.endswith("=")}

    def expand(e: Emitter, args: list[Any], kwargs: dict[str, Any]) -> Any:
        unknown = [k for k in kwargs if k not in fixed]
        if unknown:
            e.error(f"`{name}` has no parameter `{unknown[0]}`", f"it takes {', '.join(names) or 'nothing'}")
        if len(args) > len(fixed) and not variadic:
            e.error(f"`{name}` takes {len(fixed)} argument{'' if len(fixed) == 1 else 's'}, not {len(args)}")
        given = dict(zip(fixed, args, strict=False))
        doubled = [k for k in kwargs if k in given]
        if doubled:
            e.error(f"`{name}` gets `{doubled[0]}` twice")
        given |= kwargs
        missing = [k for k in fixed if k not in given and k not in optional]
        if missing:
            e.error(f"`{name}` needs `{missing[0]}`", f"it takes {', '.join(fixed)}")
        return function(e, *[given.get(k) for k in fixed], *args[len(fixed) :])

    expand.__name__ = name
    return expand


def define(table: dict[str, Expansion]) -> Callable[[str, str, Callable[..., Any]], None]:
    """A function that adds expansions to a table: `(name, parameters, function)`."""

    def add(name: str, parameters: str, function: Callable[..., Any]) -> None:
        table[name] = simple(name, parameters, function)

    return add
