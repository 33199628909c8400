"""Kernels and device functions as methods: inheritance, static and class methods, attributes that change."""

import dataclasses
import functools
import types
from collections import namedtuple
from collections.abc import Callable

import pytest

import tinote as ti
from tinote.errors import CaptureError, KernelTypeError


@ti.data_oriented
class Body:
    """Something with a force on each of two elements."""

    def __init__(self, weight: float = 1.0) -> None:
        self.x = ti.field(ti.f32, shape=2, needs_grad=True)
        self.weight = weight

    @ti.func
    def force(self, i):
        return self.weight + i

    @ti.kernel
    def step(self):
        for i in self.x:
            self.x[i] += self.force(i)


def test_an_inherited_kernel_calls_the_functions_of_the_subclass() -> None:
    class Heavy(Body):
        @ti.func
        def force(self, i):
            return 10 * super().force(i)

    class Twice(Heavy):
        @ti.func
        def force(self, i):
            return 2 * super().force(i) + super(Heavy, self).force(i)

        @ti.kernel
        def step(self):
            for i in self.x:
                self.x[i] += 1000 + self.force(i)

        def both(self) -> None:
            Body.step(self)
            self.step()

    bodies = [Body(), Body(2.0), Heavy(), Twice()]
    for body in bodies[:3]:
        body.step()
    bodies[3].both()
    assert [body.x.to_numpy().tolist() for body in bodies] == [[1, 2], [2, 3], [10, 20], [1042, 1084]]


def test_static_and_class_methods() -> None:
    class Helper:
        factor = 3

        @staticmethod
        @ti.func
        def scaled(x):
            return x * 2

        @staticmethod
        @ti.kernel
        def alone(x: ti.i32) -> ti.i32:
            return Helper.scaled(x) + 1

        @classmethod
        def make(cls) -> "Helper":
            return cls()

        @ti.kernel
        def with_any_name(this, x: ti.i32) -> ti.i32:  # noqa: N805
            return this.scaled(this.scaled(x)) + this.factor

    helper = Helper.make()
    assert (Helper.alone(3), helper.alone(4), helper.with_any_name(5)) == (7, 9, 23)

    @ti.kernel
    def no_method(this, x: ti.i32) -> ti.i32:
        return x

    with pytest.raises(KernelTypeError, match="parameter 'this' of kernel 'no_method' needs a type annotation"):
        no_method(helper, 1)


def test_super_needs_a_class() -> None:
    class Alone:
        @ti.kernel
        def run(self) -> ti.i32:
            return super().missing(1)

    @ti.kernel
    def outside(x: ti.i32) -> ti.i32:
        return super().missing(x)

    with pytest.raises(KernelTypeError, match="needs a method of a class"):
        outside(1)
    with pytest.raises(ti.TaichiNameError, match="has no attribute `missing`"):
        Alone().run()


def test_what_an_object_holds_may_change() -> None:
    """An attribute is read when a kernel is compiled; another value compiles it again."""

    @ti.func
    def square(x):
        return x * x

    @ti.func
    def cube(x):
        return x * x * x

    class Part:
        def __init__(self, n: int) -> None:
            self.n = n

        @ti.func
        def value(self):
            return self.n

    class Whole:
        shift = 0

        def __init__(self) -> None:
            self.parts = [Part(1), Part(2)]
            self.options = {"power": square}

        @property
        def first(self) -> int:
            return self.parts[0].n

        @ti.kernel
        def run(self, x: ti.i32) -> ti.i32:
            total = self.first * 100 + self.shift
            for part in ti.static(self.parts):
                total += part.value()
            return total + 10_000 * self.options["power"](x)

    whole = Whole()
    assert whole.run(2) == 40_103
    whole.parts[0].n = 3
    assert whole.run(2) == 40_305
    whole.parts.append(Part(10))
    assert whole.run(2) == 40_315
    whole.options["power"] = cube
    assert whole.run(2) == 80_315
    Whole.shift = 7
    assert whole.run(2) == 80_322
    assert Whole().run(2) == 40_110


def test_constants_in_python_containers() -> None:
    @dataclasses.dataclass
    class Options:
        dt: float = 0.5
        n: int = 3

    options, space = Options(), types.SimpleNamespace(depth=4)
    Size = namedtuple("Size", "width height")
    size = Size(2, 5)

    @ti.kernel
    def run(chosen: ti.template()) -> ti.f32:
        return options.dt * options.n + size.width * 10 + size[1] * 100 + space.depth * 1000 + chosen.dt

    assert run(options) == 4522.0
    assert run(Options(dt=0.25)) == 4521.75
    options.dt = 1.0
    assert run(options) == 4524.0


def test_the_gradient_of_a_method() -> None:
    class Energy(Body):
        def __init__(self) -> None:
            super().__init__(weight=3.0)
            self.loss = ti.field(ti.f32, shape=(), needs_grad=True)

        @ti.kernel
        def measure(self, scale: ti.f32):
            for i in self.x:
                self.loss[None] += scale * self.force(i) * self.x[i] ** 2

    energy = Energy()
    energy.x.fill(2)
    with ti.ad.Tape(loss=energy.loss):
        energy.measure(0.5)
    assert energy.x.grad.to_numpy().tolist() == [6, 8]
    energy.x.grad.fill(0)
    energy.loss.grad[None] = 1
    energy.measure.grad(1.0)
    assert energy.x.grad.to_numpy().tolist() == [12, 16]


@ti.data_oriented
class Private:
    """Inside a class, names with two leading underscores are the class's own."""

    __factor = 5

    def __init__(self) -> None:
        self.__count = 3
        self.__x = ti.field(ti.f32, shape=4)

    @ti.func
    def __scaled(self, __a):
        return __a * self.__factor

    @ti.kernel
    def run(self, __a: ti.f32, __unused: ti.template()) -> ti.f32:
        __sum = 0.0
        for __i in range(self.__count):
            self.__x[__i] = self.__scaled(__a=__a)
            __sum += self.__x[__i]
        return __sum

    def inner(self) -> int:
        __here = 4

        @ti.kernel
        def run() -> ti.i32:
            return __here + self.__count

        return run()


@pytest.mark.parametrize("arch", ["cpu", "python"])
def test_private_names(arch: str) -> None:
    ti.init(arch=getattr(ti, arch))
    private = Private()
    assert private.run(2.0, 0) == 30
    assert private.run(_Private__a=1.0, _Private__unused=0) == 15
    assert private.inner() == 7


def test_a_struct_keeps_the_methods_that_are_pythons_alone() -> None:
    @ti.dataclass
    class Body:
        mass: ti.f32

        @ti.func
        def doubled(self):
            return 2 * self.mass

        def label(self, unit):
            return f"{self.mass:g} {unit}"

        @property
        def weight(self):
            return 10 * self.mass

        @staticmethod
        def unit():
            return "kg"

    body = Body(mass=3)
    assert (body.doubled(), body.label("kg"), body.weight, body.unit()) == (6, "3 kg", 30, "kg")
    bodies = Body.field(shape=2)
    bodies[1].mass = 4
    assert bodies[1].label("g") == "4 g"
    with pytest.raises(AttributeError, match="did you mean 'weight'"):
        _ = body.wieght


def test_an_object_is_called_by_its_device_function() -> None:
    class Line:
        def __init__(self, slope: float) -> None:
            self.slope = ti.field(ti.f32, shape=(), needs_grad=True)
            self.slope[None] = slope

        @ti.func
        def __call__(self, x, shift: ti.template() = 0):
            return self.slope[None] * x + shift

    class Chain:
        def __init__(self, *parts: Line) -> None:
            self.parts = parts

        @ti.func
        def __call__(self, x):
            y = x
            for part in ti.static(self.parts):
                y = part(y, shift=1)
            return y

    line = Line(2.0)
    chain, partial = Chain(line, Line(3.0)), functools.partial(line, shift=5)
    total = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def run(x: ti.f32):
        total[None] += chain(x) + partial(x) + line(x)

    with ti.ad.Tape(total):
        run(1.0)
    assert total[None] == (3 * (2 + 1) + 1) + (2 + 5) + 2
    assert line.slope.grad[None] == 3 + 1 + 1
    assert line(4.0) == 8.0  # in Python, too

    class Plain:
        pass

    plain = Plain()

    @ti.kernel
    def wrong():
        plain(1.0)

    with pytest.raises(KernelTypeError, match="cannot be called"):
        wrong()


@pytest.mark.parametrize("captured", [False, True], ids=["launched", "captured"])
def test_a_method_that_changes_is_noticed(captured: bool) -> None:
    class First(Body):
        @ti.func
        def force(self, i):
            return 10.0

        def plain(self):
            return 100.0

        @ti.kernel
        def both(self):
            for i in self.x:
                self.x[i] += self.force(i) + self.plain()

    class Second(First):
        @ti.func
        def force(self, i):
            return 20.0

    body, other = First(), First()
    body.weight = 7.0

    def run(expected: float) -> None:
        step = ti.capture(body.both) if captured else body.both
        for _ in range(3):
            before = body.x[0]
            step()
            assert body.x[0] == before + expected

    def changes(expected: float, change: Callable[[], object]) -> None:
        """The step of before does not run on: it is refused, or runs as it is now."""
        step = ti.capture(body.both) if captured else body.both
        step()
        step()
        change()
        if captured:
            with pytest.raises(CaptureError, match="changed since"):
                step()
        run(expected)

    run(110)
    assert all(not instance.others for instance in body.both.instances)  # asked for by lookups alone
    changes(120, lambda: setattr(body, "__class__", Second))
    changes(107, lambda: setattr(Second, "force", Body.__dict__["force"]))
    changes(1007, lambda: setattr(First, "plain", lambda self: 1000.0))
    changes(1010, lambda: setattr(body, "force", other.force))
    changes(910, lambda: setattr(body, "plain", lambda: 900.0))
