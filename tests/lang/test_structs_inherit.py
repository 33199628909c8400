"""Dataclasses that inherit from others: members and methods of both, as Python's own have them."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import pytest

import tinote as ti
from tinote.errors import FieldError


def hierarchy(decorate: Any, func: Any, number: Any) -> dict[str, Any]:
    """The same classes, made by Python's decorator and by ours."""

    def made(cls: type) -> Any:
        cls.__annotations__ = dict.fromkeys(cls.__annotations__, number)
        return decorate(cls)

    @made
    class Base:
        m: Any
        k: Any

        @func
        def twice(self):
            return self.m * 2

        @func
        def name(self):
            return 1 + self.k

        @property
        def half(self):
            return self.m / 2

    @made
    class Left(Base):
        q: Any

        @func
        def both(self):
            return self.twice() + self.name() + self.q

    @made
    class Right(Base):
        r: Any
        m: Any

        @func
        def name(self):
            return 20 + self.r

    @made
    class Diamond(Left, Right):
        z: Any

    class Mixin:
        ignored: Any

        @func
        def thrice(self):
            return self.m * 3

    @made
    class Mixed(Mixin, Left):
        k: Any

        @func
        def twice(self):
            return self.thrice() - self.m

    @made
    class Methods(Right):
        @func
        def twice(self):
            return self.m * 7

    return {cls.__name__: cls for cls in (Base, Left, Right, Diamond, Mixed, Methods)}


PYTHON = hierarchy(dataclasses.dataclass, lambda f: f, float)


def in_a_kernel(method: Any, value: Any) -> float:
    @ti.kernel
    def call() -> ti.f32:
        return method(value)

    return call()


@pytest.mark.parametrize("arch", [ti.cpu, ti.python], ids=str)
@pytest.mark.parametrize("name", PYTHON)
def test_members_and_methods_are_those_of_python(arch: Any, name: str) -> None:
    ti.init(arch=arch)
    theirs, ours = PYTHON[name], hierarchy(ti.dataclass, ti.func, ti.f32)[name]
    members = [field.name for field in dataclasses.fields(theirs)]
    assert list(ours.members) == members
    numbers = [2.0 + i for i in range(len(members))]
    one = theirs(*numbers)
    methods = [method for method in ("twice", "name", "both", "thrice") if hasattr(theirs, method)]
    assert sorted(ours.methods) == sorted([*methods, "half"])
    value = ours(*numbers)
    for method in methods:
        assert getattr(value, method)() == in_a_kernel(ours.methods[method], value) == getattr(one, method)()
    assert value.half == one.half


def test_inherited_methods_in_kernels() -> None:
    ti.init()
    diamond = hierarchy(ti.dataclass, ti.func, ti.f32)["Diamond"]
    points = diamond.field(shape=3)

    @ti.kernel
    def run() -> ti.f32:
        for i in points:
            points[i] = diamond(m=i, k=2, r=4, q=5, z=6)
        one = diamond(m=3, k=2, r=4, q=5, z=6)
        return one.both() + points[2].twice()

    assert run() == (6 + 24 + 5) + 4


def test_a_type_without_a_class_is_inherited_from_too() -> None:
    ti.init()
    pair = ti.types.struct(a=ti.f32, b=ti.i32)

    for base in (pair, pickle.loads(pickle.dumps(pair))):

        @ti.dataclass
        class Longer(base):
            c: ti.f32

        assert list(Longer.members) == ["a", "b", "c"] and Longer(1, 2, 3).c == 3


def test_an_inherited_member_has_no_default_value() -> None:
    base = hierarchy(ti.dataclass, ti.func, ti.f32)["Base"]
    with pytest.raises(FieldError, match="member 'm' of 'Fixed' has a default value"):

        @ti.dataclass
        class Fixed(base):
            m = 3.0


def test_a_member_takes_the_place_of_a_method() -> None:
    base = hierarchy(ti.dataclass, ti.func, ti.f32)["Base"]

    @ti.dataclass
    class Plain(base):
        twice: ti.f32

    assert list(Plain.members) == ["m", "k", "twice"] and Plain(twice=5).twice == 5 and "twice" not in Plain.methods


def test_members_of_pythons_own_dataclasses_are_not_dropped() -> None:
    @dataclasses.dataclass
    class Base:
        m: ti.f64

    with pytest.raises(FieldError, match=r"(?s)'Both' is made of 'Base'.*decorate 'Base' with @ti.dataclass") as caught:

        @ti.dataclass
        class Both(Base):
            n: ti.f64

    assert caught.value.span.file == __file__
