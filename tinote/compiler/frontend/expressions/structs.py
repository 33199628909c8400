"""Structs in a kernel: a value or place for each member; the IR has no structs.

p = Particle(pos=v, mass=2)      the members' values
s[i]                             the members' places in the fields of `s`
p.pos, s[i].pos.x += 1           a member
p.advance(dt)                    a device function whose first parameter is `p` itself
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tinote.compiler.frontend.conversions import strong_value
from tinote.compiler.frontend.descriptions import describe
from tinote.compiler.frontend.emitter import Emitter
from tinote.compiler.frontend.expansion import Expansion
from tinote.compiler.frontend.expressions.constructors import construct
from tinote.compiler.frontend.python.names import captured
from tinote.compiler.frontend.values import BoundMethod, StructValue, Value
from tinote.compiler.protocol import StructInfo, members_of, space_of, struct_of
from tinote.compiler.pysource.names import CaptureKind
from tinote.errors import KernelNameError, KernelSyntaxError, closest
from tinote.ir.types import Scalar, Tensor, shape_of

TABLE: dict[str, Expansion] = {}


def as_struct(e: Emitter, front: Any) -> StructValue | None:
    """A struct as its members: itself, or one that was captured as a constant. `None` for anything else."""
    if isinstance(front, StructValue):
        return front
    members = members_of(front)
    if members is None or space_of(front) is not None:
        return None
    found: dict[str, Any] = {}
    for name, value in members.items():
        value = captured(e, CaptureKind.ATTRIBUTE, front, name, value)
        found[name] = as_struct(e, value) or value
    return StructValue(found, struct_of(front))


def member(e: Emitter, struct: StructValue, name: str) -> Any:
    """`struct.name`: a member, or a device function that is bound to the struct."""
    if name in struct.members:
        return struct.members[name]
    method = struct.info.methods.get(name) if struct.info is not None else None
    if method is not None:
        return method.__get__(struct)
    if struct.info is not None and hasattr(struct.info.owner, name):
        return captured(e, CaptureKind.ATTRIBUTE, struct.info.owner, name, getattr(struct.info.owner, name))
    if name == "fill":
        return BoundMethod(struct, name)
    if name == "keys":
        e.error("the members of a struct are named in the program", f"they are {', '.join(struct.members)}")
    if struct.info is not None and name in struct.info.python_methods:
        problem = f"`{name}` is a property, which kernels do not read of structs"
        e.error(problem, "make it a method, and call it", kind=KernelSyntaxError)
    known = [*struct.members, *(struct.info.methods if struct.info is not None else ())]
    close = closest(name, known)
    hint = f"did you mean `{close}`?" if close else f"it has {', '.join(known)}"
    e.error(f"{describe(struct)} has no member `{name}`", hint, kind=KernelNameError)


def construct_struct(e: Emitter, info: StructInfo, args: list[Any], kwargs: dict[str, Any]) -> StructValue:
    """A call of a struct type: members by position and by name; omitted ones are zero."""
    names = list(info.members)
    if len(args) > len(names):
        e.error(f"`{info.name}` has {len(names)} members, and is given {len(args)}", f"they are {', '.join(names)}")
    given = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        if name not in info.members:
            close = closest(name, names)
            hint = f"did you mean `{close}`?" if close else f"it has {', '.join(names)}"
            e.error(f"`{info.name}` has no member `{name}`", hint)
        if name in given:
            e.error(f"`{info.name}` gets `{name}` twice")
        given[name] = value
    found: dict[str, Any] = {}
    for name, t in info.members.items():
        value = e.force(given[name]) if name in given else 0
        if isinstance(t, StructInfo):
            is_first = name in given and e.is_value(value) and not e.shape(value)  # the number of its first member
            found[name] = (
                construct_struct(e, t, [value] if is_first else [], {})
                if is_first or name not in given
                else fitted(e, value, t)
            )
        else:
            found[name] = _converted(e, value, t, f"member `{name}` of `{info.name}`")
    return StructValue(found, info)


def _converted(e: Emitter, value: Any, t: Scalar | Tensor, what: str) -> Value:
    if not e.is_value(value):
        e.error(f"{describe(value)} does not fit {what}")
    shape = e.shape(value)
    if shape and shape != shape_of(t):
        e.error(f"{describe(value)} does not fit {what}, which is {describe_type(t)}")
    return construct(e, t, [value])


def describe_type(t: Scalar | Tensor) -> str:
    return f"a number of type {t}" if isinstance(t, Scalar) else f"of shape {t.shape}"


def fitted(e: Emitter, front: Any, info: StructInfo) -> StructValue:
    """A struct, or a dictionary, as one of another type that has the same members."""
    struct = as_struct(e, front)
    members = struct.members if struct is not None else front if isinstance(front, dict) else None
    if members is None:
        e.error(f"{describe(front)} stands where a struct `{info.name}` is expected")
    if set(members) != set(info.members):
        e.error(
            f"a struct with members {', '.join(members)} stands where `{info.name}` is expected",
            f"it has {', '.join(info.members)}",
        )
    return construct_struct(e, info, [], members)


def leaves_of(struct: StructValue) -> list[Any]:
    """All numbers, vectors and matrices of a struct, in order."""
    return [x for m in struct.members.values() for x in (leaves_of(m) if isinstance(m, StructValue) else [m])]


def paired(e: Emitter, struct: StructValue, front: Any, what: str) -> list[tuple[Any, Any, str]]:
    """Each member of `struct` with the member of `front` that is assigned to it, and its name."""
    other = as_struct(e, front)
    if other is None and isinstance(front, dict):
        other = StructValue(front)
    if other is None:
        e.error(f"{describe(front)} cannot be assigned to {what}, {describe(struct)}")
    if set(other.members) != set(struct.members):
        e.error(f"{describe(other)} cannot be assigned to {what}, {describe(struct)}", "both need the same members")
    return [(place, other.members[name], f"member `{name}` of {what}") for name, place in struct.members.items()]


def matched(e: Emitter, a: StructValue, b: StructValue) -> list[tuple[Any, Any]]:
    """The numbers, vectors and matrices of two structs with the same members, in pairs, in the first's order."""
    if set(a.members) != set(b.members):
        e.error(
            f"{describe(a)} with members {', '.join(a.members)} and {describe(b)} with members {', '.join(b.members)} "
            "cannot stand for each other"
        )
    found: list[tuple[Any, Any]] = []
    for name, x in a.members.items():
        y = b.members[name]
        if isinstance(x, StructValue) and isinstance(y, StructValue):
            found += matched(e, x, y)
        elif isinstance(x, StructValue) or isinstance(y, StructValue):
            e.error(f"member `{name}` is {describe(x)} on one side and {describe(y)} on the other")
        else:
            found.append((x, y))
    return found


def rebuilt(struct: StructValue, leaves: Iterator[Any]) -> StructValue:
    """A struct of the same members with these numbers, vectors and matrices in order."""
    return struct.map(lambda m: rebuilt(m, leaves) if isinstance(m, StructValue) else next(leaves))


def _struct(e: Emitter, args: list[Any], kwargs: dict[str, Any]) -> StructValue:
    """`ti.Struct(a=1, b=v)`, `ti.Struct({"a": 1})`."""
    if len(args) > 1 or (args and not isinstance(args[0], dict)):
        known = as_struct(e, args[0]) if len(args) == 1 else None
        if known is not None and not kwargs:
            return known
        e.error("`ti.Struct` is made from a dictionary, or from members by name")
    members: dict[str, Any] = {**(args[0] if args else {}), **kwargs}
    if not members or not all(isinstance(name, str) for name in members):
        e.error("a struct needs members with names")
    found: dict[str, Any] = {}
    for name, value in members.items():
        struct = as_struct(e, value)
        if struct is None and isinstance(value, dict):
            struct = _struct(e, [value], {})
        if struct is None and not e.is_value(value):
            e.error(f"{describe(value)} cannot be a member of a struct")
        found[name] = struct or strong_value(e, value)
    return StructValue(found)


TABLE["Struct"] = _struct
