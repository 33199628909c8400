"""Structs at the border of a launch: their numbers in order, and back."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any

from tinote.compiler.frontend.protocol import FunctionSource, StructInfo, members_of, struct_of
from tinote.errors import FieldError
from tinote.lang.matrix import Matrix

__all__ = ["as_annotated", "numbers_in"]


def numbers_in(hint: Any, info: StructInfo, value: Any, wrong: Callable[[str], Exception]) -> list[Any]:
    """The numbers of a struct, or of a dictionary, that is passed where the type `hint` is annotated. Raises what
    `wrong` makes of the words for what was expected.
    """
    members = members_of(value)
    if members is None:
        members = value if isinstance(value, dict) else None
    if members is None or members.keys() != info.members.keys():
        raise wrong(f"a struct with members {', '.join(info.members)}")
    try:
        return _flat(hint(**members))
    except FieldError as error:
        raise wrong(f"a struct `{info.name}` ({error.message})") from None


def _flat(struct: Any) -> list[Any]:
    found: list[Any] = []
    for member in struct.__tinote_members__().values():
        if isinstance(member, Matrix):
            found += member.values.ravel().tolist()
        elif members_of(member) is not None:
            found += _flat(member)
        else:
            found.append(member)
    return found


def _struct_from(kind: Any, leaves: Iterator[Any]) -> Any:
    """A struct of this type from its numbers, vectors and matrices in order."""
    members: dict[str, Any] = {}
    for name in kind.members:
        below = kind.type_of(name)
        members[name] = _struct_from(below, leaves) if struct_of(below) is not None else next(leaves)
    return kind(**members)


def as_annotated(source: FunctionSource, leaves: tuple[Any, ...]) -> Any:
    """The numbers, vectors and matrices that a kernel returned, as the structs or tuple that are annotated."""
    hint = source.annotations.get("return")
    if isinstance(hint, str):  # as the front end evaluates it
        names = {**source.globals, **{name: c.cell_contents for name, c in source.closure.items() if _is_filled(c)}}
        hint = eval(hint, names)
    if struct_of(hint) is not None:
        return _struct_from(hint, iter(leaves))
    parts = hint if isinstance(hint, tuple) else getattr(hint, "__args__", ())
    if all(struct_of(part) is None for part in parts):
        return leaves
    rest = iter(leaves)
    return tuple([next(rest) if struct_of(part) is None else _struct_from(part, rest) for part in parts])


def _is_filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True
