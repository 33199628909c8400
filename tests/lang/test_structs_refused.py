"""What is wrong with structs is said where it is."""

from __future__ import annotations

import pytest

import tinote as ti
from tests.lang.test_structs import Particle
from tinote.errors import FieldError, KernelNameError, TinoteError

# ---- what is wrong


def test_wrong_members_are_located() -> None:
    s = Particle.field(shape=2)

    @ti.kernel
    def unknown() -> None:
        for i in s:
            s[i].mas = 1

    @ti.kernel
    def whole() -> None:
        for i in s:
            s[i] += 1

    @ti.kernel
    def number() -> None:
        for i in s:
            s[i].mass = s[i]

    @ti.kernel
    def other() -> None:
        for i in s:
            s[i] = ti.Struct(a=1)

    @ti.kernel
    def shape() -> None:
        for i in s:
            s[i] = Particle(pos=ti.Vector([1, 2]))

    @ti.kernel
    def outer() -> None:
        p = Particle()
        for _ in s:
            p.move(1)

    @ti.kernel
    def argument() -> None:
        for i in s:
            s[i] = Particle(weight=2)

    for kernel, message, line in (
        (unknown, "`Particle` has no member `mas`", "s[i].mas = 1"),
        (whole, "as a whole", "s[i] += 1"),
        (number, "a struct `Particle` cannot be used as a value", "s[i].mass = s[i]"),
        (other, "cannot be assigned to `s[i]`", "s[i] = ti.Struct(a=1)"),
        (shape, "does not fit member `pos` of `Particle`", "Particle(pos="),
        (outer, "one variable for all iterations", "self.pos += by"),
        (argument, "`Particle` has no member `weight`", "Particle(weight=2)"),
    ):
        with pytest.raises(TinoteError) as caught:
            kernel()
        assert message in str(caught.value)
        assert line in str(caught.value)
    with pytest.raises(KernelNameError, match="no member") as caught:
        unknown()
    assert caught.value.hint == "did you mean `mass`?"


def test_wrong_types_are_refused() -> None:
    with pytest.raises(FieldError, match="member 'a' of 'struct' has no type of numbers: 'f33'"):
        ti.types.struct(a="f33")
    with pytest.raises(FieldError, match="needs members"):
        ti.types.struct()
    with pytest.raises(FieldError, match="has a default value"):

        @ti.dataclass
        class Wrong:
            a: ti.f32 = 1.0


def test_a_redefined_type_compiles_afresh() -> None:
    x = ti.field(ti.f64, shape=())
    kind = ti.types.struct(a=ti.i32)

    @ti.kernel
    def work() -> None:
        x[None] = kind(a=2.5).a

    work()
    assert x[None] == 2
    kind = ti.types.struct(a=ti.f64)
    work()
    assert x[None] == 2.5


def test_super_in_a_method_of_a_struct_says_what_to_write() -> None:
    @ti.dataclass
    class Ball:
        radius: ti.f32

        @ti.func
        def twice(self):  # type: ignore[no-untyped-def]
            return super().twice() * 2

    @ti.kernel
    def run() -> ti.f32:
        return Ball(1.0).twice()

    with pytest.raises(TinoteError, match=r"`super\(\)` cannot be used in a method of a struct(.|\n)*as a `ti.func`"):
        run()
