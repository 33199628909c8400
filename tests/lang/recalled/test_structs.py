"""Machine code of kernels on structs and layouts: taken from an earlier process when types, methods, layouts and
constants are the same, and only then.
"""

from __future__ import annotations

from typing import Any

import pytest

import tinote as ti
from tests.lang.recalled.support import is_recalled

PROGRAM = """
@ti.dataclass
class Particle:
    pos: ti.types.vector(2, ti.f32)
    mass: ti.f32

    @ti.func
    def energy(self, g):
        return self.mass * g * self.pos.y

start = Particle(pos=[1.0, 2.0], mass=3.0)
s = Particle.field(shape=3, layout=ti.Layout.AOS)
v = ti.Vector.field(2, ti.f32, shape=3)
part = v.get_scalar_field(1)
x = ti.field(ti.f32)
y = ti.field(ti.f32)
ti.root.dense(ti.i, 3).place(x, y)

@ti.kernel
def run(p: Particle, component: ti.template()) -> ti.f32:
    total = 0.0
    for i in range(3):
        s[i] = start
        x[i] = s[i].energy(2.0) + p.mass
        y[i] = 1.0
        component[i] = x[i]
    for i in range(3):
        total += x[i] + y[i] + v[i][1] + s[i].mass
    return total

result = run(Particle(mass=1.0), part)
"""

CHANGES = [
    ("", "", True),
    ("mass * g", "mass + g", False),
    ("mass=3.0", "mass=4.0", False),
    ("pos=[1.0, 2.0]", "pos=[1.0, 5.0]", False),
    ("    mass: ti.f32", "    mass: ti.f64", False),
    ("Layout.AOS", "Layout.SOA", False),
    ("get_scalar_field(1)", "get_scalar_field(0)", False),
    ("place(x, y)", "place(y, x)", True),  # the strides are the same, and addresses are no part of the code
    ("place(x, y)", "place(x, y, ti.field(ti.i32))", False),
    ("Particle(mass=1.0)", "Particle(mass=2.0)", True),
]


@pytest.mark.parametrize(("old", "new", "same"), CHANGES)
def test_what_counts(load: Any, old: str, new: str, same: bool) -> None:
    changed = PROGRAM.replace(old, new) if old else PROGRAM
    wanted = load(changed).result
    ti.init()
    load(PROGRAM)
    ti.init(offline_cache=False)
    fresh = load(changed).result
    ti.init()
    recalled = load(changed)
    assert recalled.result == fresh == wanted
    assert is_recalled(recalled.run)


@pytest.mark.parametrize(("old", "new", "same"), CHANGES)
def test_only_the_same_is_taken(load: Any, old: str, new: str, same: bool) -> None:
    load(PROGRAM)
    ti.init()
    second = load(PROGRAM.replace(old, new) if old else PROGRAM)
    assert is_recalled(second.run) is same
