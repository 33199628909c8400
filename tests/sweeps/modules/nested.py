"""A module in a package: it has what functions can refer to, one of each kind."""

import abc
import collections
import dataclasses
import functools
import threading
from collections.abc import Callable
from typing import Any

import tinote as ti

RATE = 2.0
SCALE = 3.0
TABLE = {"k": 1.0}
NUMBERS = [1.0]
QUEUE = collections.deque([1.0])
WORDS = frozenset({"one", "two", "three", "four"})
COUNT = 0
lock = threading.Lock()  # cannot be sent, and no function needs it
x = ti.field(ti.f64, 4)


def inner(a: float) -> float:
    return a


def by_globals(a: float) -> float:
    return inner(a) * RATE + TABLE["k"]


def by_default(a: float, by: list[float] = [2.0], *, also: float = 1.0) -> float:  # noqa: B006
    return a * by[0] + also


def by_attribute(a: float) -> float:
    return a * by_attribute.factor  # type: ignore[attr-defined]


by_attribute.factor = 2.0  # type: ignore[attr-defined]


def made() -> Callable[[float], float]:
    held = [1.0]

    def closure(a: float) -> float:
        return a + held[0]

    return closure


closure = made()


def package_seen_from_inside(a: float) -> float:
    from . import BASE  # noqa: PLC0415

    return a * RATE + BASE


class Base(abc.ABC):
    """Attributes, and methods of all kinds."""

    attribute = 1.0

    @abc.abstractmethod
    def run(self, a: float) -> float:
        """A number."""

    @classmethod
    def of_class(cls, a: float) -> float:
        return cls.attribute * a

    @staticmethod
    def static(a: float) -> float:
        return a * RATE

    @property
    def size(self) -> float:
        return self.attribute


class Model(Base):
    def __init__(self) -> None:
        self.own = 2.0

    def run(self, a: float) -> float:
        return a * self.attribute + self.own


class Slotted:
    """A model whose calls count."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 2.0

    def run(self, a: float) -> float:
        self.count += 1
        return a * self.count


@dataclasses.dataclass
class Options:
    k: float = 2.0

    def times(self, a: float) -> float:
        return a * self.k * RATE


model, slotted, options = Model(), Slotted(), Options()


@functools.lru_cache
def cached(a: float) -> float:
    return a * RATE


@functools.wraps(by_globals)
def wrapped(a: float) -> float:
    return by_globals(a)


@ti.func
def device(v: Any) -> Any:
    return v * SCALE


@ti.kernel
def kernel(a: ti.f64) -> ti.f64:
    return device(a) + RATE


@ti.kernel
def total() -> ti.f64:
    found = 0.0
    for i in x:
        found += x[i]
    return found


@ti.dataclass
class Body:
    mass: ti.f64

    @ti.func
    def momentum(self, v):
        return self.mass * v * SCALE


@ti.kernel
def of_struct(a: ti.f64) -> ti.f64:
    body = Body(mass=2.0)
    return body.momentum(a)


@ti.data_oriented
class Simulation:
    def __init__(self) -> None:
        self.y = ti.field(ti.f64, 2)
        self.factor = 2.0

    @ti.kernel
    def run(self, a: ti.f64) -> ti.f64:
        found = 0.0
        for i in self.y:
            found += (self.y[i] + 1) * a * self.factor * RATE
        return found


simulation = Simulation()


def bump() -> int:
    global COUNT
    COUNT += 1
    return COUNT


def read() -> int:
    return COUNT
