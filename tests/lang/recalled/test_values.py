"""What a kernel captured counts by value: machine code from an earlier process is taken when all of it is the same, and
only then.

Every test plays two processes; `is_recalled` tells whether the second one did without the front end.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest

import tinote as ti
from tests.lang.recalled.support import HEAD, is_recalled

SIMPLE = """
N = 3
SCALE = (1.5, 2.0)
weights = ti.Vector([1.0, 2.0, 4.0])
table = [1, 2, [3, 4]]
x = ti.field(ti.f32, shape=(4,))
y = ti.field(ti.f32, shape=(4,))

@ti.func
def inner(v):
    return v * N

@ti.func
def f(v, more=10):
    return inner(v) + more

@ti.kernel
def run(a: ti.f32) -> ti.f32:
    s = 0.0
    for i in range(2):
        s += f(a) + SCALE[i] * weights[i] + table[2][0] + math.pi + min(a, 1.0)
    return s
"""

# What is changed, and whether the second process may take the code of the first.
CHANGES = [
    ("", "", True),
    ("import math", "import math  # moved\n\n\nimport math", True),
    ("N = 3", "N = 4", False),
    ("N = 3", "N = 3.0", False),
    ("N = 3", "N = True", False),
    ("SCALE = (1.5, 2.0)", "SCALE = (1.5, 2.5)", False),
    ("SCALE = (1.5, 2.0)", "SCALE = [1.5, 2.0]", False),
    ("ti.Vector([1.0, 2.0, 4.0])", "ti.Vector([1.0, 2.0, 5.0])", False),
    ("[3, 4]", "[5, 4]", False),
    ("return v * N", "return v * N + 1", False),
    ("return inner(v) + more", "return inner(v) - more", False),
    ("more=10", "more=11", False),
    ("@ti.kernel", "min = ti.max\n\n@ti.kernel", False),
    ("a: ti.f32", "a: ti.f64", False),
    ("-> ti.f32", "-> ti.f64", False),
]


@pytest.mark.parametrize(("old", "new", "same"), CHANGES, ids=[f"{o} to {n}"[:40] for o, n, _ in CHANGES])
def test_constants_and_functions_count_by_value(load: Any, old: str, new: str, same: bool) -> None:
    first = load(SIMPLE)
    assert first.run(2.0) == pytest.approx(2 * (2 * 3 + 10) + 1.5 + 4 + 6 + 2 * 3.14159265 + 2, rel=1e-6)
    assert not is_recalled(first.run)
    assert (old in HEAD + SIMPLE) or not old
    second = load((HEAD + SIMPLE).replace(old, new, 1) if old else SIMPLE)
    found = second.run(2.0)
    assert is_recalled(second.run) is same
    ti.init(offline_cache=False)
    fresh = load((HEAD + SIMPLE).replace(old, new, 1) if old else SIMPLE)
    assert fresh.run(2.0) == found
    assert not is_recalled(fresh.run)


ARRAY = """
weights = np.array([[1.0, 2.0], [3.0, 4.0]])

@ti.kernel
def run(i: ti.i32) -> ti.f32:
    return weights[0, 1] + weights[1, i]
"""


@pytest.mark.parametrize(
    ("new", "expected", "same"),
    [("4.0]]) * 1", 6, True), ("5.0]])", 7, False), ("4.0]], np.float32)", 6, False), ("4.0]], np.int64)", 6, False)],
)
def test_captured_arrays_count_by_what_they_hold(load: Any, new: str, expected: float, same: bool) -> None:
    first = load(ARRAY)
    assert first.run(1) == 6 and not is_recalled(first.run)
    second = load(ARRAY.replace("4.0]])", new))
    assert second.run(1) == expected
    assert is_recalled(second.run) is same


NUMBER = """
strength, parts = np.array(2.0), [np.array(3.0)]

@ti.kernel
def run() -> ti.f32:
    return strength + parts[0]
"""


@pytest.mark.parametrize(
    ("new", "expected", "same"), [("(3.0)", 5, True), ("(4.0)", 6, False), ("(3)", 5, False), ("([3.0])", 5, False)]
)
def test_arrays_without_dimensions_count_by_their_number(load: Any, new: str, expected: float, same: bool) -> None:
    first = load(NUMBER)
    assert first.run() == 5 and not is_recalled(first.run)
    second = load(NUMBER.replace("(3.0)", new).replace("parts[0]", "parts[0][0]" if "[" in new else "parts[0]"))
    assert second.run() == expected
    assert is_recalled(second.run) is same
    second.parts[0][...] = 7.0
    assert second.run() == 9


FIELDS = """
x = ti.field(ti.f32, shape=(4,), needs_grad=True)
y = ti.field(ti.f32, shape=(4,))

@ti.kernel
def run():
    for i in x:
        y[i] += x[i] + 1

def main():
    x.fill(2)
    y.fill(5)
    run()
    return y.to_numpy().tolist()
"""


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("shape=(4,)", "shape=(4,)  ", True),
        ("y = ti.field(ti.f32, shape=(4,))", "y = ti.field(ti.f32, shape=(6,))", False),
        ("y = ti.field(ti.f32", "y = ti.field(ti.f64", False),
        ("y = ti.field(ti.f32, shape=(4,))", "y = x", False),
        (", needs_grad=True", "", False),
        ("x = ti.field(ti.f32, shape=(4,), needs_grad=True)", "x = ti.field(ti.i32, shape=(4,))", False),
    ],
)
def test_fields_count_by_type_and_layout(load: Any, old: str, new: str, same: bool) -> None:
    first = load(FIELDS)
    assert first.main() == [8, 8, 8, 8]
    second = load(FIELDS.replace(old, new, 1))
    found = second.main()
    assert is_recalled(second.run) is same
    assert found[:4] == ([11, 11, 11, 11] if new == "y = x" else [8, 8, 8, 8])
    assert first.main() == [8, 8, 8, 8], "the code is bound to the memory of its own fields"


def test_two_names_for_one_field_are_not_two_fields(load: Any) -> None:
    """Fields are declared not to alias; one under two names must not run such code."""
    text = """
x = ti.field(ti.i32, shape=8)
y = {}

@ti.kernel
def run():
    for _ in range(1):
        for i in range(7):
            y[i + 1] = x[i] + 1
"""
    apart = load(text.format("ti.field(ti.i32, shape=8)"))
    apart.run()
    assert apart.y.to_numpy().tolist() == [0] + [1] * 7
    same = load(text.format("x"))
    same.run()
    assert not is_recalled(same.run)
    assert same.x.to_numpy().tolist() == list(range(8))


CLASS = """
class Mode(enum.Enum):
    FAST = 1
    SLOW = 2

@dataclasses.dataclass
class Settings:
    scale: float = 2.0

class Part:
    def __init__(self):
        self.offset = 5

class Sim:
    def __init__(self):
        self.n = 3
        self.mode = Mode.FAST
        self.settings = Settings()
        self.parts = [Part(), Part()]
        self.x = ti.field(ti.f32, shape=4)

    @ti.func
    def scaled(self, v):
        return v * self.settings.scale

    @ti.kernel
    def run(self) -> ti.f32:
        s = 0.0
        for i in range(self.n):
            s += self.scaled(1.0) + self.parts[1].offset
        if ti.static(self.mode == Mode.FAST):
            s += 100
        return s

sim = Sim()
"""


@pytest.mark.parametrize(
    ("change", "expected", "same"),
    [
        ("", 121, True),
        ("sim.n = 2", 114, False),
        ("sim.mode = Mode.SLOW", 21, False),
        ("sim.settings.scale = 3.0", 124, False),
        ("sim.settings = Settings(2.0)", 121, True),
        ("sim.parts[1].offset = 6", 124, False),
        ("sim.parts[0].offset = 6", 121, True),
        ("sim.parts[0] = sim.parts[1]", 121, False),
        ("sim.x = ti.field(ti.f32, shape=9)", 121, True),
        ("sim.other = 1", 121, True),
    ],
)
def test_attributes_count_as_far_as_they_are_read(load: Any, change: str, expected: float, same: bool) -> None:
    first = load(CLASS)
    assert first.sim.run() == 121
    second = load(CLASS + change)
    assert second.sim.run() == expected
    assert is_recalled(second.Sim.run) is same


def test_what_python_computes_while_compiling_is_never_taken_for_known(load: Any) -> None:
    text = """
import helper

class Sim:
    k = {k}
    def count(self):
        return self.k

sim = Sim()

@ti.kernel
def by_method() -> ti.i32:
    s = 0
    for _ in ti.static(range(sim.count())):
        s += 1
    return s

@ti.kernel
def by_function() -> ti.i32:
    return ti.static(helper.double({k} - {k} + 4))

@ti.kernel
def by_question() -> ti.i32:
    return 1 if ti.static(hasattr(sim, "extra")) else 0
"""
    first = load(text.format(k=2), helper="def double(v): return 2 * v")
    assert (first.by_method(), first.by_function(), first.by_question()) == (2, 8, 0)
    second = load(text.format(k=3) + "\nSim.extra = 1\n", helper="def double(v): return 20 * v")
    assert (second.by_method(), second.by_question()) == (3, 1)
    third = load(text.format(k=2), helper="def double(v): return 20 * v")
    assert third.by_function() == 80
    assert not any(map(is_recalled, (second.by_method, second.by_question, third.by_function)))


def test_functions_and_constants_of_other_modules(load: Any) -> None:
    text = """
import library

@ti.kernel
def run(a: ti.i32) -> ti.i32:
    return library.twice(a) + library.N
"""
    library = "N = 1\n@ti.func\ndef twice(a): return a * 2 * M\nM = 1\n"
    assert load(text, library=library).run(5) == 11
    same = load(text, library=library)
    assert same.run(5) == 11
    for old, new, expected in (("N = 1", "N = 2", 12), ("M = 1", "M = 3", 31), ("a * 2", "a * 4", 21)):
        changed = load(text, library=library.replace(old, new))
        assert changed.run(5) == expected, new
        assert not is_recalled(changed.run)


def test_the_languages_own_device_functions(load: Any) -> None:
    text = """
@ti.kernel
def run(a: ti.f32) -> ti.f32:
    m = ti.Matrix([[a, 1.0], [0.0, 2.0]])
    U, S, V = ti.svd(m)
    return S[0, 0] * S[1, 1]
"""
    first, second = load(text), load(text)
    assert first.run(3.0) == pytest.approx(6, rel=1e-5)
    assert second.run(3.0) == first.run(3.0)
    assert is_recalled(second.run)


CUSTOM = """
x = ti.field(ti.f32, shape=(), needs_grad=True)
y = ti.field(ti.f32, shape=(), needs_grad=True)

@ti.ad.grad_replaced
@ti.func
def cube(v):
    return v ** 3

@ti.ad.grad_for(cube)
@ti.func
def backward(v, d):
    return d * SCALE * v

@ti.kernel
def run():
    y[None] += cube(x[None])

def main():
    x[None] = 2.0
    with ti.ad.Tape(y):
        run()
    return x.grad[None]
"""


@pytest.mark.parametrize(
    ("old", "new", "gradient", "same"),
    [
        ("", "", 6.0, True),
        ("SCALE = 3.0", "SCALE = 4.0", 8.0, False),
        ("d * SCALE * v", "d * SCALE", 3.0, False),
        ("return v ** 3", "return v ** 2", 6.0, False),
    ],
)
def test_a_gradient_of_a_functions_own_counts(load: Any, old: str, new: str, gradient: float, same: bool) -> None:
    text = "SCALE = 3.0\n" + CUSTOM
    assert load(text).main() == 6.0
    second = load(text.replace(old, new) if old else text)
    assert second.main() == gradient
    assert is_recalled(second.run) is same


def test_the_modules_of_the_language(load: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
@ti.kernel
def run(a: ti.f32) -> ti.f32:
    return ti.math.mix(a, ti.math.pi, 0.5)
"""
    assert load(text).run(1.0) == pytest.approx((1 + 3.14159265) / 2)
    monkeypatch.delitem(sys.modules, "tinote.math")
    monkeypatch.delattr(ti, "math")
    second = load(text)
    assert second.run(1.0) == pytest.approx((1 + 3.14159265) / 2)
    assert is_recalled(second.run)


def test_annotations_of_variables_and_those_kept_as_text(load: Any) -> None:
    text = """
T = ti.f32

@ti.func
def half(v: "T") -> "T":
    return v / 2

@ti.kernel
def run(a: "T") -> "T":
    b: T = 16777217
    return b - 16777216 + half(a)
"""
    assert load(text).run(2.0) == 1.0
    wide = load(text.replace("T = ti.f32", "T = ti.f64"))
    assert wide.run(2.0) == 2.0
    assert not is_recalled(wide.run)
    again = load(text)
    assert again.run(2.0) == 1.0


def test_templates(load: Any) -> None:
    text = """
a = ti.field(ti.i32, shape=3)
b = ti.field(ti.i32, shape=5)

@ti.kernel
def add(x: ti.template(), k: ti.template(), n: ti.i32):
    for i in x:
        x[i] += k * n
"""
    first = load(text)
    first.add(first.a, 2, 3)
    second = load(text)
    second.add(second.a, 2, 4)
    assert is_recalled(second.add)
    assert second.a.to_numpy().tolist() == [8, 8, 8]
    second.add(second.b, 2, 4)
    second.add(second.a, 3, 1)
    assert second.b.to_numpy().tolist() == [8] * 5
    assert second.a.to_numpy().tolist() == [11] * 3
