"""Structs: several named members as one value, one type, or one field.

    Particle = ti.types.struct(pos=ti.math.vec3, mass=ti.f32)

    @ti.dataclass
    class Particle:
        pos: ti.math.vec3
        mass: ti.f32

        @ti.func
        def momentum(self, v):
            return self.mass * v

    p = Particle(pos=[1, 2, 3], mass=2)        a value, in kernels and in Python
    s = Particle.field(shape=8)                a field: s[i].pos, s.pos[i], s.grad[i].pos

A field of structs is a field for each member; they are interleaved in memory (`ti.Layout.AOS`), or have an array each
(`ti.Layout.SOA`).
"""

from __future__ import annotations

import inspect
import sys
import weakref
from collections.abc import Iterator, Mapping
from types import FunctionType
from typing import Any

import numpy as np

from tinote.compiler.function_source import function_of
from tinote.compiler.protocol import StructInfo, is_template, meant, unit_of
from tinote.completion import Documented
from tinote.errors import FieldError, no_attribute
from tinote.ir.nodes import Buffer
from tinote.ir.types import Scalar, Tensor
from tinote.lang.data import types
from tinote.lang.data.fields import Field, MatrixField, ScalarField
from tinote.lang.data.layout import Layout, offset_given, order_named, shape_given
from tinote.lang.data.matrix import Matrix, Vector, as_stored, is_number, numpy_type
from tinote.lang.data.members import Members, Named, behind_members
from tinote.lang.data.nodes import Node
from tinote.lang.data.traced import holds_traced, plain, traced_array
from tinote.lang.data.tree import Level
from tinote.lang.data.types import MatrixType
from tinote.lang.session.state import scalar_type
from tinote.lang.shipping.tokens import Tokenised
from tinote.source import NOWHERE, Span, caller


class StructType(Documented, Tokenised):
    """A type of structs, which `ti.dataclass` and `ti.types.struct` return.

    Calling it makes a value: members by position or name, those left out are zero; a number for a member that is a
    struct is that of its first member.

    Methods
    -------
    field

    Attributes
    ----------
    members : dict
        The type of each member by its name: a number, vector, matrix or struct type.

    Examples
    --------
    >>> Ball = ti.types.struct(position=ti.math.vec2, mass=ti.f32)
    >>> Ball(mass=2.0).position
    Vector([0.0, 0.0])
    """

    def __init__(
        self, name: str, members: Mapping[str, Any], methods: Mapping[str, Any] | None = None, made_at: Span = NOWHERE
    ) -> None:
        if not members and not methods:
            raise FieldError(f"the struct type '{name}' needs members", made_at)
        self.__name__ = name
        self.members = dict(members)
        self.methods = dict(methods or {})
        for member, t in self.members.items():
            if not isinstance(t, StructType | MatrixType | Tensor):
                try:
                    scalar_type(t if unit_of(t) is None else t.scalar)
                except FieldError:
                    hint = "for example ti.f32, ti.types.vector(3, ti.f32), or another struct type"
                    raise FieldError(
                        f"member '{member}' of '{name}' has no type of numbers: {t!r}", made_at, hint=hint
                    ) from None

    def _token_parts(self) -> Any:
        return self.__name__, self.members, self.methods

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type]:
        """What `class Heavy(Particle)` inherits from, where this type is `Particle`."""
        return (_class_of(self),)

    def type_of(self, member: str) -> Scalar | Tensor | StructType:
        """A member's type, with what the session means by `float` and `int`."""
        t = self.members[member]
        if isinstance(t, MatrixType):
            return t.__tinote_type__()
        if unit_of(t) is not None:
            return t.scalar
        return t if isinstance(t, StructType | Tensor) else scalar_type(t)

    def __tinote_struct__(self) -> StructInfo:
        types = {name: self.type_of(name) for name in self.members}
        return StructInfo(
            self.__name__,
            {name: t.__tinote_struct__() if isinstance(t, StructType) else t for name, t in types.items()},
            {name: method for name, method in self.methods.items() if not isinstance(method, property)},
            tuple([name for name, method in self.methods.items() if isinstance(method, property)]),
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Struct:
        names = list(self.members)
        if len(args) > len(names):
            raise FieldError(f"'{self.__name__}' has {len(names)} members ({', '.join(names)}), but got {len(args)}")
        given = dict(zip(names, args, strict=False))
        for name, value in kwargs.items():
            if name not in self.members or name in given:
                problem = "gets two values for" if name in given else "has no member"
                raise FieldError(f"'{self.__name__}' {problem} '{name}'", hint=f"its members are {', '.join(names)}")
            given[name] = value
        return Struct({name: self._value(name, given.get(name)) for name in names}, _type=self)

    def _value(self, member: str, value: Any) -> Any:
        t = self.type_of(member)
        if isinstance(t, StructType):
            if value is None:
                return t()
            if isinstance(value, int | float | np.number):
                return t(value)
            members = dict(vars(value)) if isinstance(value, Struct) else value
            if not isinstance(members, dict):
                raise FieldError(f"member '{member}' of '{self.__name__}' is a struct '{t.__name__}', not {value!r}")
            return t(**members)
        if holds_traced(value):
            return self._traced_value(member, t, value)
        try:
            found = np.asarray(value.values if isinstance(value, Matrix) else 0 if value is None else value)
            if found.dtype.kind not in "biuf":
                raise ValueError("it is not a number")
            if isinstance(t, Scalar):
                if found.ndim:
                    raise ValueError("one number is needed")
                return as_stored(found, t).astype(numpy_type(t)).item()
            if found.ndim and found.shape != t.shape:
                raise ValueError(f"its shape should be {t.shape}")
            filled = np.broadcast_to(as_stored(found, t.dtype), t.shape).astype(numpy_type(t.dtype))
        except (TypeError, ValueError) as error:
            raise FieldError(f"member '{member}' of '{self.__name__}' cannot be {value!r}: {error}") from None
        return (Vector if len(t.shape) == 1 else Matrix)(filled)

    def _traced_value(self, member: str, t: Scalar | Tensor, value: Any) -> Any:
        """A member's value of numbers that remember where they came from; integers do not."""
        if isinstance(t, Scalar):
            return value if t.kind == "f" and not np.ndim(value) else self._value(member, plain(value))
        if t.dtype.kind != "f":
            return self._value(member, plain(value))
        numbers = traced_array(value)
        if numbers.ndim and numbers.shape != t.shape:
            raise FieldError(
                f"member '{member}' of '{self.__name__}' cannot be {value!r}: its shape should be {t.shape}"
            )
        return (Vector if len(t.shape) == 1 else Matrix)(np.broadcast_to(numbers, t.shape))

    def field(
        self,
        shape: Any = None,
        *,
        offset: Any = None,
        order: str | None = None,
        layout: Layout = Layout.AOS,
        needs_grad: bool | None = None,
        needs_dual: bool | None = None,
        name: str = "",
    ) -> StructField:
        """Make a field of such structs.

        Parameters
        ----------
        shape : int or tuple of int, optional
            The extent of each index dimension.
        offset : int or tuple of int, optional
            As for `ti.field`.
        order, name : str, optional
            As for `ti.field`.
        layout : ti.Layout, default ti.Layout.AOS
            Whether the members of an element lie together (AOS), or each has an array of its own (SOA).
        needs_grad : bool, optional
            True makes gradients of its members of floats; the others have none. Left out, members have temporary
            adjoints where derivatives go through them; `needs_grad=False` makes them constants (`ti.field`).
        needs_dual : bool, optional
            The same for forward mode.

        Returns
        -------
        StructField
            The field.

        Raises
        ------
        FieldError
            For types, shapes and orders that do not go together.

        Examples
        --------
        >>> Ball = ti.types.struct(position=ti.math.vec2, mass=ti.f32)
        >>> balls = Ball.field(shape=3, needs_grad=True)
        >>> balls.grad.mass.shape
        (3,)
        """
        made_at = caller()
        if not self.members:
            raise FieldError(f"'{self.__name__}' has no members, and a field of them would hold nothing", made_at)
        if not isinstance(layout, Layout):
            raise FieldError(f"{layout!r} is not a layout", made_at, hint="use ti.Layout.AOS or ti.Layout.SOA")
        found = StructField(self, made_at, name, needs_grad, needs_dual)
        if shape is None:
            if offset is not None or order is not None:
                raise FieldError("an offset or an order needs a shape", made_at, hint="or place it with an offset")
            return found
        extents = shape_given(shape, made_at)
        first = offset_given(offset, extents, made_at)
        places = order_named(order, len(extents), made_at)
        if layout is Layout.SOA or not all(extents):
            for leaf in found._leaves():
                leaf._make_dense(extents, places, layout, first)
            return found
        # A tree of its own interleaves the members; nothing else can be placed there.
        root = Level(None, (), (), made_at)
        level = Level(root, places, tuple([extents[axis] for axis in places]), made_at)
        for leaf in found._leaves():
            level._adopt(leaf, first or None, made_at)
        level.settle()
        level.let_go()
        return found

    def __repr__(self) -> str:
        return f"<struct {self.__name__}: {', '.join(f'{name}: {t!r}' for name, t in self.members.items())}>"


def struct(**members: Any) -> StructType:
    """A type of structs with these members.

    Parameters
    ----------
    **members : types
        The type of each member: a number, vector, matrix or struct type.

    Returns
    -------
    StructType
        The type; called with members, it makes a struct.

    Raises
    ------
    FieldError
        For members that have no such type.

    Examples
    --------
    >>> Ball = ti.types.struct(position=ti.math.vec2, mass=ti.f32)
    >>> balls = Ball.field(shape=3)
    >>> balls.mass.fill(2.0)
    >>> balls[0].mass
    2.0
    """
    methods = members.pop("__struct_methods", {})
    return StructType("struct", members, methods, caller())


def dataclass(cls: type) -> StructType:
    """Make a struct type from a class: its annotations are the members.

    Its `@ti.func` methods take the struct first; its other functions and properties exist in Python scope. It has the
    members of the types of structs that it inherits from, before its own, and their methods, in Python's order.

    Parameters
    ----------
    cls : type
        The class.

    Returns
    -------
    StructType
        Called with members, by position or by name, it makes a struct, in kernels and in Python; `field` makes a field.

    Raises
    ------
    FieldError
        For what is not a class, and for members without a type.

    Examples
    --------
    >>> @ti.dataclass
    ... class Ball:
    ...     position: ti.math.vec2
    ...     radius: ti.f32
    ...     @ti.func
    ...     def area(self):
    ...         return ti.math.pi * self.radius**2
    >>> balls = Ball.field(shape=4)
    >>> balls[1].radius = 2.0
    >>> @ti.kernel
    ... def total() -> ti.f32:
    ...     s = 0.0
    ...     for i in balls:
    ...         s += balls[i].area()
    ...     return s
    >>> round(total(), 3)
    12.566
    """
    where = caller()
    if not isinstance(cls, type):
        raise FieldError(f"ti.dataclass decorates a class, not {cls!r}", where)
    frame = sys._getframe(1)
    try:
        own = inspect.get_annotations(cls, eval_str=True, locals={**frame.f_globals, **frame.f_locals})
    except Exception as error:
        raise FieldError(f"an annotation of '{cls.__name__}' cannot be evaluated: {error}", where) from None
    members: dict[str, Any] = {}
    methods: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base is not cls and "__dataclass_fields__" in vars(base):
            raise FieldError(
                f"'{cls.__name__}' is made of '{base.__name__}', a class of Python's own `dataclasses`",
                where,
                hint=f"decorate '{base.__name__}' with @ti.dataclass",
            )
        members |= vars(base).get(_MEMBERS, {}) if base is not cls else own
        for name, value in vars(base).items():
            methods.pop(name, None)
            if _is_method(value):
                methods[name] = value
    members = {name: meant(t) for name, t in members.items() if not is_template(meant(t))}
    for name in members.keys() | own.keys():
        if name in vars(cls):
            raise FieldError(
                f"member '{name}' of '{cls.__name__}' has a default value, which structs do not have", where
            )
        methods.pop(name, None)
    made = StructType(cls.__name__, members, methods, where)
    made.__module__, made.__doc__ = cls.__module__, cls.__doc__
    setattr(cls, _MEMBERS, members)
    _classes[made] = cls
    return made


#: The classes that types of structs were made of, for classes that inherit from them.
_classes: weakref.WeakKeyDictionary[StructType, type] = weakref.WeakKeyDictionary()
_MEMBERS = "__tinote_struct_members__"


def _class_of(struct: StructType) -> type:
    """The class of a type of structs: one like it where it was made of none, or arrived from another process."""
    if struct not in _classes:
        _classes[struct] = type(struct.__name__, (), {**struct.methods, _MEMBERS: struct.members})
    return _classes[struct]


def _is_method(value: Any) -> bool:
    return function_of(value) is not None or isinstance(value, FunctionType | staticmethod | property)


class Struct(Named, Documented):
    """A struct in Python scope, whose members are read and assigned by name.

    Parameters
    ----------
    members : mapping, optional
        The members by name. Lists become vectors and matrices, dictionaries structs.
    **named
        The same by keyword.

    Raises
    ------
    FieldError
        For members that have no type.

    Examples
    --------
    >>> s = ti.Struct(mass=2.0, velocity=[1.0, 0.0])
    >>> s.velocity * s.mass
    Vector([2.0, 0.0])
    """

    __tinote_name__ = "Struct"
    __slots__ = ("_parent", "_type")
    _parent: Any
    _type: StructType | None

    def __init__(
        self, members: Any = None, *, _type: StructType | None = None, _parent: Any = None, **named: Any
    ) -> None:
        given = dict(vars(members) if isinstance(members, Struct) else members or {}) | named
        if not given and _type is None:
            raise FieldError("a struct needs members")
        entries = given if _type is not None else {name: _member(name, value) for name, value in given.items()}
        object.__setattr__(self, "__dict__", entries)
        object.__setattr__(self, "_type", _type)
        object.__setattr__(self, "_parent", _parent)

    def __tinote_members__(self) -> dict[str, Any]:
        return vars(self)

    @property
    def __tinote_methods__(self) -> Mapping[str, Any]:
        return {} if self._type is None else self._type.methods

    def __tinote_struct__(self) -> StructInfo | None:
        return None if self._type is None else self._type.__tinote_struct__()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in Struct.__slots__:
            raise AttributeError(name)  # copying and pickling ask before there are members
        methods = self.__tinote_methods__
        if name not in methods:
            known = vars(self)
            raise no_attribute(f"a struct with members {', '.join(known)}", name, [*known, *methods])
        return methods[name].__get__(self)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in Struct.__slots__:
            object.__setattr__(self, name, value)
            return
        if name not in vars(self):
            raise AttributeError(f"a struct with members {', '.join(vars(self))} has no member {name!r}")
        entry = self._type._value(name, value) if self._type is not None else _member(name, value)
        if self._parent is not None:
            self._parent.write(name, entry)
        vars(self)[name] = entry

    def __getitem__(self, name: str) -> Any:
        return vars(self)[name]

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self, name, value)

    @behind_members  # type: ignore[prop-decorator]
    @property
    def keys(self) -> list[str]:
        """The names of the members."""
        return list(vars(self))

    @behind_members
    def items(self) -> Any:
        """The members as pairs of name and value.

        Returns
        -------
        view of pairs (str, value)
            As `dict.items` gives them.
        """
        return dict(vars(self)).items()

    @behind_members
    def to_dict(self) -> dict[str, Any]:
        """Members as numbers, NumPy arrays and dictionaries.

        Returns
        -------
        dict
            The value of each member by its name.
        """
        return {
            name: Struct.to_dict(v) if isinstance(v, Struct) else v.to_numpy() if isinstance(v, Matrix) else v
            for name, v in vars(self).items()
        }

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Struct) or list(vars(self)) != list(vars(other)):
            return False
        return all(
            np.array_equal(_plain(a), _plain(b)) if not isinstance(a, Struct) else a == b
            for a, b in zip(vars(self).values(), vars(other).values(), strict=True)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = [f"{name}: {v.to_list() if isinstance(v, Matrix) else v!r}" for name, v in vars(self).items()]
        return f"{{{', '.join(shown)}}}"

    @behind_members
    @staticmethod
    def field(members: Mapping[str, Any], shape: Any = None, **options: Any) -> StructField:
        """Make a field of structs.

        Parameters
        ----------
        members : mapping
            The type of each member by its name: `{"position": ti.math.vec3, "mass": ti.f32}`.
        shape : int or tuple of int, optional
            The extent of each index dimension.
        **options
            As for `ti.Vector.field`.

        Returns
        -------
        StructField
            The field.

        Examples
        --------
        >>> balls = ti.Struct.field({"position": ti.math.vec2, "mass": ti.f32}, shape=3)
        >>> balls[1].mass = 2.0
        >>> balls.mass.to_numpy()
        array([0., 2., 0.], dtype=float32)
        """
        options.pop("methods", None)
        return StructType("struct", members, None, caller()).field(shape, **options)


def _plain(value: Any) -> Any:
    return value.values if isinstance(value, Matrix) else value


def _member(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return Struct(value)
    if isinstance(value, np.generic | np.ndarray) and not value.ndim and is_number(value):
        return value.item()
    if isinstance(value, list | tuple | np.ndarray):
        return Vector(value) if np.ndim(value) == 1 else Matrix(value)
    if isinstance(value, bool | int | float | Matrix | Struct | Field | StructField):
        return value
    raise FieldError(
        f"member '{name}' of a struct cannot be {value!r}",
        hint="members are numbers, vectors, matrices, structs and fields",
    )


class StructField(Named, Documented, Tokenised):
    """A field of structs: `s[i]` is a struct, whose members may be assigned, and `s.mass` the field of a member.

    Methods
    -------
    copy_from
    fill
    from_numpy
    get_field_members
    get_member_field
    parent
    to_numpy

    Attributes
    ----------
    grad : StructField
    dual : StructField
    keys : list of str
    members : dict
    name : str
    shape : tuple of int
    snode : ti.SNode

    Examples
    --------
    >>> s = ti.Struct.field({"mass": ti.f32, "x": ti.math.vec2}, shape=3)
    >>> s[0].mass = 2.0
    >>> s.mass.to_numpy()
    array([2., 0., 0.], dtype=float32)
    """

    __slots__ = ("_shadows", "_struct")
    _shadows: dict[str, StructField]
    _struct: StructType

    def __init__(
        self,
        struct: StructType,
        made_at: Span,
        name: str,
        needs_grad: bool | None,
        needs_dual: bool | None,
        suffix: str = "",
    ) -> None:
        self._hold(struct)
        for member in struct.members:
            t = struct.type_of(member)
            below = f"{suffix}.{member}"
            if isinstance(t, StructType):
                self._fields[member] = StructField(t, made_at, name, needs_grad, needs_dual, below)
                continue
            kind, dtype, element = (ScalarField, t, ()) if isinstance(t, Scalar) else (MatrixField, t.dtype, t.shape)
            needed = (needs_grad, needs_dual) if dtype.kind == "f" else (None, None)
            made = kind(dtype, element, made_at, f"{name}{below}" if name else "", *needed)
            made._suffix = below
            made.unit = unit_of(struct.members[member])
            self._fields[member] = made

    def _hold(self, struct: StructType) -> None:
        """Begin without members."""
        self._struct, self._shadows = struct, {}

    @property
    def _fields(self) -> dict[str, Any]:
        return vars(self)

    def _token_parts(self) -> Any:
        return self._struct, self._fields

    def __tinote_space__(self) -> Buffer:
        return self._leaves()[0].__tinote_buffer__()

    def __tinote_axes__(self) -> dict[int, int]:
        return self._leaves()[0].__tinote_axes__()

    def __tinote_members__(self) -> dict[str, Any]:
        return self._fields

    def __tinote_struct__(self) -> StructInfo:
        return self._struct.__tinote_struct__()

    def _leaves(self) -> list[Field]:
        return [leaf for field in self._fields.values() for leaf in field._leaves()]

    # ---- what it is

    @behind_members  # type: ignore[prop-decorator]
    @property
    def name(self) -> str:
        """Its name in error messages."""
        return self._called()

    def _called(self) -> str:
        first = self._leaves()[0]
        return first.name.removesuffix(first._suffix)

    @behind_members  # type: ignore[prop-decorator]
    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of each index dimension."""
        return self._leaves()[0].shape

    @behind_members  # type: ignore[prop-decorator]
    @property
    def keys(self) -> list[str]:
        """The names of the members."""
        return list(self._fields)

    @behind_members  # type: ignore[prop-decorator]
    @property
    def members(self) -> dict[str, Any]:
        """The type of each member."""
        return dict(self._struct.members)

    def get_member_field(self, key: str) -> Any:
        """The field of one member.

        Parameters
        ----------
        key : str
            The name of the member.

        Returns
        -------
        Field
            A field that shares the memory.

        Raises
        ------
        FieldError
            For a name that is not a member's.

        Examples
        --------
        >>> s = ti.Struct.field({"mass": ti.f32}, shape=2)
        >>> s.get_member_field("mass").fill(3.0)
        >>> s[0].mass
        3.0
        """
        if key not in self._fields:
            raise FieldError(
                f"'{self._called()}' has no member '{key}'", hint=f"its members are {', '.join(self._fields)}"
            )
        return self._fields[key]

    get_member_field.__tinote_static__ = True  # type: ignore[attr-defined]

    def get_field_members(self) -> list[Any]:
        """The fields of its members, in order.

        Returns
        -------
        list of Field
            One for each member.
        """
        return list(self._fields.values())

    @behind_members  # type: ignore[prop-decorator]
    @property
    def snode(self) -> Node:
        """The node of a layout tree at which its first member lies."""
        return self._leaves()[0].snode

    def parent(self, n: int = 1) -> Node | None:
        """The level of the layout tree above the field.

        Parameters
        ----------
        n : int, default 1
            How many levels up.

        Returns
        -------
        ti.SNode or None
            The level, or None above the root.

        Examples
        --------
        >>> s = ti.Struct.field({"mass": ti.f32})
        >>> ti.root.dense(ti.i, 4).place(s)
        <level of (4,)>
        >>> s.parent().shape
        (4,)
        """
        return self._leaves()[0].parent(n)

    parent.__tinote_static__ = True  # type: ignore[attr-defined]

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a field of structs with members {', '.join(vars(self))} has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in StructField.__slots__:
            fills = f"; `{name}.fill(…)` sets the numbers of a member" if name in self._fields else ""
            raise AttributeError(f"attributes of a field of structs are not assigned{fills}")
        object.__setattr__(self, name, value)

    @behind_members  # type: ignore[prop-decorator]
    @property
    def grad(self) -> StructField:
        """The gradients of the members that have one, as a field of structs.

        Raises
        ------
        FieldError
            Where no member has one.
        """
        return self._shadow("grad")

    @behind_members  # type: ignore[prop-decorator]
    @property
    def dual(self) -> StructField:
        """The duals of the members that have one, as a field of structs.

        Raises
        ------
        FieldError
            Where no member has one.
        """
        return self._shadow("dual")

    def _shadow(self, kind: str) -> StructField:
        if kind in self._shadows:
            return self._shadows[kind]
        found = object.__new__(StructField)
        found._hold(self._struct)
        for name, field in self._fields.items():
            try:
                shadow = field._shadow(kind) if isinstance(field, StructField) else getattr(field, kind)
                found._fields[name] = shadow
            except FieldError:
                continue
        if not found._fields:
            raise FieldError(f"no member of '{self._called()}' has a {kind}", hint=f"make it with needs_{kind}=True")
        if len(found._fields) < len(self._fields):
            kept = {name: self._struct.members[name] for name in found._fields}
            found._struct = StructType(self._struct.__name__, kept)
        self._shadows[kind] = found
        return found

    # ---- elements

    def __getitem__(self, key: Any) -> Struct:
        held = {name: field[key] for name, field in self._fields.items()}
        return Struct(held, _type=self._struct, _parent=Members(self._fields, key))

    def __setitem__(self, key: Any, value: Any) -> None:
        for name, member in self._parts(value).items():
            self._fields[name][key] = member

    def __len__(self) -> int:
        return len(self._leaves()[0])

    def __iter__(self) -> Iterator[Struct]:
        return (self[i] for i in range(len(self)))

    def _parts(self, value: Any) -> dict[str, Any]:
        members = dict(vars(value)) if isinstance(value, Struct) else value if isinstance(value, dict) else None
        if members is None or members.keys() != self._fields.keys():
            raise FieldError(
                f"'{self._called()}' holds structs with members {', '.join(self._fields)}: cannot take {value!r}"
            )
        return members

    # ---- whole field

    def fill(self, value: Any) -> None:
        """Set every element to a struct, or every number of it to one number.

        Parameters
        ----------
        value : struct, mapping or number
            The value.

        Examples
        --------
        >>> s = ti.Struct.field({"mass": ti.f32, "x": ti.math.vec2}, shape=2)
        >>> s.fill({"mass": 1.0, "x": [2.0, 3.0]})
        >>> s[0]
        {mass: 1.0, x: [2.0, 3.0]}
        """
        if isinstance(value, int | float | np.number):
            for field in self._fields.values():
                type(field).fill(field, value)
            return
        for name, member in self._parts(value).items():
            field = self._fields[name]
            type(field).fill(field, member)

    def to_numpy(self) -> dict[str, Any]:
        """Copies of the members by name.

        Returns
        -------
        dict of str to numpy.ndarray
            The array of each member, as the member's field gives it.
        """
        return {name: type(field).to_numpy(field) for name, field in self._fields.items()}

    def from_numpy(self, arrays: Mapping[str, Any]) -> None:
        """Copy arrays in, one for each member.

        Parameters
        ----------
        arrays : mapping of str to array_like
            The array of each member, as the member's field takes it.

        Examples
        --------
        >>> s = ti.Struct.field({"mass": ti.f32, "n": ti.i32}, shape=2)
        >>> s.from_numpy({"mass": [1.0, 2.0], "n": [3, 4]})
        >>> s[1]
        {mass: 2.0, n: 4}
        """
        for name, array in self._parts(dict(arrays)).items():
            field = self._fields[name]
            type(field).from_numpy(field, array)

    def copy_from(self, other: StructField) -> None:
        """Copy all elements of a field of the same structs and shape.

        Parameters
        ----------
        other : StructField
            The other field.

        Raises
        ------
        FieldError
            Where structs or shapes differ.

        Examples
        --------
        >>> a, b = (ti.Struct.field({"mass": ti.f32}, shape=2) for _ in range(2))
        >>> a.fill(3.0)
        >>> b.copy_from(a)
        >>> b[1]
        {mass: 3.0}
        """
        if not isinstance(other, StructField) or other._fields.keys() != self._fields.keys():
            raise FieldError(
                f"'{self._called()}' is copied from a field of structs with the same members, not from {other!r}"
            )
        for name, field in self._fields.items():
            type(field).copy_from(field, other._fields[name])

    def __repr__(self) -> str:
        leaf = self._leaves()[0]
        shape = f"shape {leaf.shape}" if leaf.is_placed else "not placed yet" if leaf._level is None else "not used yet"
        called = "field" if self._called() == "field" else f"field {self._called()}"
        return f"<{called} of structs with {', '.join(self._fields)}, {shape}>"


types.struct = struct  # type: ignore[attr-defined]
types.__all__.append("struct")
types.StructType = StructType  # type: ignore[attr-defined]
