"""What a kernel made inside a function captures, whatever holds it: code from an earlier process is taken when nothing
has changed, and never when one of the things that it captures has.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest

import tinote as ti
from tests.lang.recalled.support import is_recalled

DEFINITIONS = """
import collections
import functools
import types
from typing import NamedTuple

class Pair(NamedTuple):
    a: float
    b: float = 4.0

    @property
    def total(self):
        return self.a + 2 * self.b

    @ti.func
    def at(self, v):
        return self.a * v + self.b

class Riap(NamedTuple):
    b: float
    a: float = 4.0

class Pairs(Pair):
    @property
    def total(self):
        return self.a + 3 * self.b

Couple = collections.namedtuple("Couple", "a b")

def named(fields, *defaults):
    return collections.namedtuple("Named", fields, defaults=defaults)

class Holder(NamedTuple):
    held: object

class Box:
    def __init__(self, held):
        self.held = held

@dataclasses.dataclass(frozen=True)
class Record:
    held: object

class Scaler:
    def __init__(self, k):
        self.k = k

    def __call__(self, v):
        return v * self.k

    @ti.func
    def scaled(self, v):
        return v * self.k

    def plain(self, v):
        return v * self.k

class Shifter(Scaler):
    @ti.func
    def scaled(self, v):
        return v + self.k

class Two:
    k = 2.0

class Three:
    k = 3.0

class Mode(enum.Enum):
    FAST = 1
    SLOW = 2

def times(v, k):
    return v * k

def plus(v, k):
    return v + k

def scaler(k):
    @ti.func
    def f(v):
        return v * k
    return f

def shifter(k):
    @ti.func
    def f(v):
        return v + k
    return f

def with_default(k):
    @ti.func
    def f(v, by=k):
        return v * by
    return f

def plain(k):
    def f(v):
        return v * k
    return f

def twice(f):
    @ti.func
    def g(v):
        return f(f(v))
    return g

def struct(dtype, k):
    @ti.func
    def scaled(self, v):
        return self.a * v * k
    return ti.types.struct(a=dtype, __struct_methods={"scaled": scaled})

x = ti.field(ti.f64, shape=4)
y = ti.field(ti.f64, shape=4)
"""


class Thing(NamedTuple):
    """What a kernel captures: how it is made, in several ways that all give other results, and how the kernel makes a
    number of it. `{h}` stands for where it is held.
    """

    used: str
    made: tuple[str, ...]


NUMBER = Thing("{h} * v", ("2.0", "3.0", "np.float64(5)"))
CALLED = Thing(
    "{h}(v)",
    (
        *("scaler(2.0)", "scaler(3.0)", "shifter(2.0)", "with_default(5.0)", "with_default(7.0)", "plain(11.0)"),
        *("plain(13.0)", "twice(scaler(6.0))", "twice(shifter(6.0))", "functools.partial(times, k=17.0)"),
        *("functools.partial(plus, k=17.0)", "Scaler(19.0)", "Scaler(23.0).scaled", "Shifter(23.0).scaled"),
        *("Scaler(29.0).plain", "Pair(2.0, 8.0).at", "Pair(8.0, 2.0).at", "Pair(2.0).at", "lambda v: v * 31"),
        *("lambda v: v * 37", "functools.cache(plain(41.0))", "ti.sin", "math.cos", "abs"),
    ),
)
THINGS = (
    NUMBER,
    CALLED,
    Thing("(1 if ti.static(isinstance({h}, int)) else 2)", ("3", "3.0")),
    Thing("len({h})", ("'a'", "'bc'", "(1, 2, 3)")),
    Thing("{h}[0] + 10 * {h}[1]", ("(1, 2)", "(2, 1)", "Couple(5, 6)", "[3, 4]", "(8, 9.5)", "Pair(4.5)")),
    Thing("{h}.a + 10 * {h}.b", ("Pair(1.0, 2.0)", "Pair(2.0, 1.0)", "Riap(1.5, 2.5)", "Pair(3.0)", "Couple(3, 5)")),
    Thing("{h}.total", ("Pair(1.0, 2.0)", "Pairs(1.0, 2.0)", "Pair(5.0)")),
    Thing("{h}(v, 3 * v).a", ("named('a b')", "named('b a')")),
    Thing("{h}(v).b", ("Pair", "named('a b', 7.0)", "named('a b', 8.0)")),
    Thing("{h}.a + 10 * {h}.b", ("named('a b')(1, 2)", "named('b a')(1, 2)")),
    Thing("{h}['k'] * v", ("{'k': 2.0}", "{'k': 3.0}", "{'l': 2.0, 'k': 4.0}")),
    Thing("{h}.k * v", ("Two", "Three", "Scaler(5.0)", "Shifter(7.0)", "types.SimpleNamespace(k=11.0)")),
    Thing("(1 if ti.static({h} is Mode.FAST) else 2)", ("Mode.FAST", "Mode.SLOW")),
    Thing("(1 if ti.static({h} is Two) else 2)", ("Two", "Three")),
    Thing("{h}[1] * v", ("ti.Vector([1.0, 2.0])", "ti.Vector([1.0, 3.0])", "np.array([1.0, 5.0])")),
    Thing("{h}.shape[0]", ("ti.field(ti.f64, shape=3)", "ti.field(ti.f64, shape=5)")),
    Thing("{h}.n", ("ti.Vector.field(2, ti.f64, shape=3)", "ti.Vector.field(3, ti.f64, shape=3)")),
    Thing(
        "(1 if ti.static(isinstance({h}, ti.MatrixField)) else 2 if ti.static(isinstance({h}, ti.Field)) else 3)",
        ("x", "ti.Vector.field(2, ti.f64, shape=3)", "7"),
    ),
    Thing("(1 if ti.static({h}.a is {h}.b) else 2)", ("Pair(x, x)", "Pair(x, y)")),
    Thing("(1 if ti.static({h}[0] is {h}[1]) else 2)", ("(x, x)", "(x, y)")),
    Thing("ti.cast(v / 3, {h})", ("ti.f64", "ti.f32", "ti.i32")),
    Thing("{h}(v / 3, 1)[0]", ("ti.types.vector(2, ti.f64)", "ti.types.vector(2, ti.f32)")),
    Thing("{h}(a=v / 3).scaled(v)", ("struct(ti.f64, 1)", "struct(ti.f64, 2)", "struct(ti.f32, 1)")),
    Thing(
        "{h}(ti.Vector([v, 0.3]))[0]",
        (
            "ti.nn.Dense(2, 1, key=1, dtype=ti.f64)",
            "ti.nn.Dense(2, 1, 'tanh', key=1, dtype=ti.f64)",
            "ti.nn.Dense(2, 1, scaler(2.0), key=1, dtype=ti.f64)",
            "ti.nn.Dense(2, 1, scaler(3.0), key=1, dtype=ti.f64)",
        ),
    ),
)
HELD: tuple[Callable[[str, str], tuple[str, str]], ...] = (
    lambda made, at: (made, at),
    lambda made, at: (f"(0, {made})", f"{at}[1]"),
    lambda made, at: (f"[{made}, x]", f"{at}[0]"),
    lambda made, at: (f"dict(k={made})", f"{at}['k']"),
    lambda made, at: (f"Holder({made})", f"{at}.held"),
    lambda made, at: (f"Holder({made})", f"{at}[0]"),
    lambda made, at: (f"Box({made})", f"{at}.held"),
    lambda made, at: (f"Record({made})", f"{at}.held"),
    lambda made, at: (f"types.SimpleNamespace(held={made})", f"{at}.held"),
)
FORMS = {
    "closure": """
def make(h):
    @ti.kernel
    def run(v: ti.f64) -> ti.f64:
        return {used}
    return run
run = kernel = make({made})
""",
    "global": """
h = {made}
@ti.kernel
def run(v: ti.f64) -> ti.f64:
    return {used}
kernel = run
""",
    "function": """
def make(h):
    @ti.func
    def f(v):
        return {used}
    @ti.kernel
    def run(v: ti.f64) -> ti.f64:
        return f(v)
    return run
run = kernel = make({made})
""",
    "default": """
@ti.func
def f(v, h: ti.template() = {made}):
    return {used}
@ti.kernel
def run(v: ti.f64) -> ti.f64:
    return f(v)
kernel = run
""",
    "method": """
class Sim:
    def __init__(self, h):
        self.h = h
    @ti.kernel
    def run(self, v: ti.f64) -> ti.f64:
        return {used}
sim = Sim({made})
run, kernel = sim.run, Sim.run
""",
    "template": """
@ti.kernel
def kernel(h: ti.template(), v: ti.f64) -> ti.f64:
    return {used}
h = {made}
run = lambda v: kernel(h, v)
""",
}


def program(form: str, thing: Thing, made: str, holders: Sequence[Callable[[str, str], tuple[str, str]]]) -> str:
    """A module with a kernel `run` that captures the thing in these holders, the last one outermost."""
    at = "self.h" if form == "method" else "h"
    for holder in reversed(holders):
        at = holder("", at)[1]
    for holder in holders:
        made = holder(made, "")[0]
    return DEFINITIONS + FORMS[form].replace("{used}", thing.used.replace("{h}", at)).replace("{made}", made)


#: Each way to make a thing with the next one, which is the most like it.
CHANGES = [(thing, k) for thing in THINGS for k in range(max(3, len(thing.made) - 1))]


@pytest.mark.parametrize(("thing", "number"), CHANGES, ids=[f"{thing.used} {k}" for thing, k in CHANGES])
def test_closures_count_by_what_they_capture(load: Any, thing: Thing, number: int) -> None:
    draw = random.Random(f"{thing.used} {number}")
    form, holders = draw.choice(list(FORMS)), draw.choices(HELD, k=draw.randrange(3))
    at = number % (len(thing.made) - 1)
    made, other = draw.sample(thing.made[at : at + 2], 2)
    ti.init(opt_level=0)
    first, again, changed = (load(program(form, thing, one, holders)) for one in (made, made, other))
    found = first.run(0.7)
    assert not is_recalled(first.kernel)
    assert again.run(0.7) == found
    assert is_recalled(again.kernel)
    different = changed.run(0.7)
    assert not is_recalled(changed.kernel)
    ti.init(opt_level=0, offline_cache=False)
    assert load(program(form, thing, other, holders)).run(0.7) == different != found
