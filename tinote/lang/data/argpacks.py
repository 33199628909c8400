"""Argument packs: several arguments of a kernel under one name, made once and passed repeatedly.

Scene = ti.types.argpack(dt=ti.f32, gravity=ti.math.vec2, x=ti.types.ndarray(dtype=ti.math.vec2, ndim=1))

@ti.kernel
def step(scene: Scene):
    for i in scene.x:
        scene.x[i] += scene.dt * scene.gravity

scene = Scene(dt=0.1, gravity=[0, -9.8], x=x)
scene.dt = 0.05
step(scene)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tinote.compiler.protocol import is_array, is_template, pack_of
from tinote.errors import FieldError, KernelArgumentError, no_attribute
from tinote.lang.data import types
from tinote.lang.data.members import Named, behind_members
from tinote.lang.data.structs import StructType
from tinote.source import caller


class ArgPackType:
    """A type of argument packs: `members` by name, each a type of numbers, vectors, matrices, structs or arrays, or
    another type of packs. Calling it makes a pack: members by position or name.
    """

    def __init__(self, members: Mapping[str, Any]) -> None:
        if not members:
            raise FieldError("an argument pack needs members", caller())
        self.members = dict(members)
        for name, hint in self.members.items():
            if is_template(hint):
                hint = "a template selects an instance of the kernel: pass it as a parameter of its own"
                raise FieldError(f"member '{name}' of an argument pack cannot be a template", caller(), hint)
        #: what converts the numbers, vectors, matrices and structs
        values = {name: t for name, t in self.members.items() if not is_array(t) and pack_of(t) is None}
        self._values = StructType("argument pack", values, made_at=caller()) if values else None

    @property
    def __tinote_pack__(self) -> dict[str, Any]:
        return self.members

    def __call__(self, *args: Any, **kwargs: Any) -> ArgPack:
        names = list(self.members)
        given = dict(zip(names, args, strict=False))
        wrong = [name for name in kwargs if name not in self.members or name in given]
        if len(args) > len(names) or wrong:
            problem = f"has no member '{wrong[0]}', or gets it twice" if wrong else f"has {len(names)} members"
            raise KernelArgumentError(f"this argument pack {problem}", caller(), f"its members are {', '.join(names)}")
        given |= kwargs
        missing = [name for name in names if name not in given]
        if missing:
            raise KernelArgumentError(f"member '{missing[0]}' of the argument pack is missing", caller())
        return ArgPack(self, {name: self._converted(name, given[name]) for name in names})

    def _converted(self, name: str, value: Any) -> Any:
        """`value` as the member `name` holds it. Raises `KernelArgumentError`."""
        hint = self.members[name]
        if pack_of(hint) is not None:
            if not isinstance(value, ArgPack) or value._kind is not hint:
                raise KernelArgumentError(
                    f"member '{name}' is an argument pack of its own type, not {value!r}", caller()
                )
            return value
        if is_array(hint):
            return value  # it is looked at where it is passed
        assert self._values is not None
        try:
            return self._values._value(name, value)
        except FieldError as error:
            raise KernelArgumentError(error.message, caller(), error.hint) from None

    def __tinote_leaves__(self, value: Any) -> list[Any] | None:
        """What a pack of this type holds; None of anything else."""
        return list(value._leaves()) if isinstance(value, ArgPack) and value._kind is self else None

    def __tinote_expected__(self) -> str:
        """What an argument is, for messages."""
        return "an argument pack of the annotated type"

    def __repr__(self) -> str:
        return f"<argument pack: {', '.join(f'{name}: {t!r}' for name, t in self.members.items())}>"


class ArgPack(Named):
    """An argument pack. Its members are read and assigned by name; an array is the one that was put in, a vector a copy
    of its components.
    """

    __slots__ = ("_kind",)
    _kind: ArgPackType

    def __init__(self, kind: ArgPackType, entries: dict[str, Any]) -> None:
        self._kind = kind
        vars(self).update(entries)

    def __getattr__(self, name: str) -> Any:
        raise no_attribute("an argument pack", name, vars(self))

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ArgPack.__slots__:
            object.__setattr__(self, name, value)
            return
        if name not in vars(self):
            raise no_attribute("an argument pack", name, vars(self))
        vars(self)[name] = self._kind._converted(name, value)

    @behind_members  # type: ignore[prop-decorator]
    @property
    def keys(self) -> list[str]:
        """The names of the members."""
        return list(vars(self))

    def items(self) -> Any:
        """The members as pairs of name and value."""
        return vars(self).items()

    def _leaves(self) -> Iterator[Any]:
        """All members in order, those of packs among them in their place."""
        for value in vars(self).values():
            if isinstance(value, ArgPack):
                yield from value._leaves()
            else:
                yield value

    def __repr__(self) -> str:
        shown = [f"{k}: {v.tolist() if isinstance(v, np.ndarray) else v!r}" for k, v in vars(self).items()]
        return f"{{{', '.join(shown)}}}"


def argpack(**members: Any) -> ArgPackType:
    """A type of argument packs: several arguments of a kernel under one name.

    Parameters
    ----------
    **members : types
        The type of each member, as an annotation of a parameter.

    Returns
    -------
    ArgPackType
        The type; called with values by name, it makes a pack.

    Raises
    ------
    FieldError
        For members that have no such type.

    Examples
    --------
    >>> Settings = ti.types.argpack(dt=ti.f32, n=ti.i32)
    >>> @ti.kernel
    ... def product(settings: Settings) -> ti.f32:
    ...     return settings.dt * settings.n
    >>> product(Settings(dt=0.5, n=4))
    2.0
    """
    return ArgPackType(members)


types.argpack = argpack  # type: ignore[attr-defined]
types.__all__.append("argpack")
