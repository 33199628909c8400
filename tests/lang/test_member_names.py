"""Members of structs and argument packs that are called as a method of ours: the member goes first, in Python as in
kernels.
"""

from __future__ import annotations

import copy
import linecache
import pickle
from typing import Any

import pytest

import tinote as ti
from tinote.errors import CaptureError
from tinote.lang.data.argpacks import ArgPack

OURS = sorted({name for kind in (ti.Struct, ti.StructField, ArgPack) for name in dir(kind) if not name.startswith("_")})

PROGRAM = """
Inner = ti.types.struct(NAME=ti.f64)
Body = ti.types.struct(NAME=ti.f64, inner=Inner, other=ti.f64)
Pack = ti.types.argpack(NAME=ti.f64, other=ti.f64)

@ti.kernel
def of_a_pack(p: Pack) -> ti.f64:
    return p.NAME + 10 * p.other

@ti.kernel
def of_a_struct(p: Body) -> ti.f64:
    return p.NAME + 10 * p.inner.NAME + 100 * p.other

@ti.kernel
def of_a_field(s: ti.template()) -> ti.f64:
    total = 0.0
    for i in s:
        total += s[i].NAME + 10 * s.NAME[i] + 100 * s.inner.NAME[i]
    return total

@ti.kernel
def square(s: ti.template(), loss: ti.template()):
    for i in s:
        loss[None] += s[i].NAME ** 2 + s[i].inner.NAME
"""

METHODS = """
@ti.dataclass
class Thing:
    mass: ti.f64

    @ti.func
    def NAME(self, factor):
        return factor * self.mass

@ti.kernel
def times(p: Thing) -> ti.f64:
    return p.NAME(3.0)
"""


def run(text: str, name: str) -> dict[str, Any]:
    text, file = text.replace("NAME", name), f"a member called {name} of {len(text)}.py"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    namespace: dict[str, Any] = {"ti": ti, "__name__": "__main__"}
    exec(compile(text, file, "exec"), namespace)
    return namespace


@pytest.mark.parametrize("name", OURS)
def test_a_member_goes_before_our_method(name: str) -> None:
    made = run(PROGRAM, name)
    p = made["Body"](**{name: 2.0, "inner": {name: 4.0}, "other": 3.0})
    pack = made["Pack"](**{name: 2.0, "other": 3.0})
    assert getattr(p, name) == getattr(pack, name) == p[name] == 2 and getattr(p.inner, name) == 4
    assert made["of_a_struct"](p) == 2 + 40 + 300 and made["of_a_pack"](pack) == 2 + 30
    for one in (p, pack):
        setattr(one, name, 5.0)
        assert getattr(one, name) == 5 and name in dir(one)
    assert made["of_a_struct"](p) == 5 + 40 + 300 and made["of_a_pack"](pack) == 5 + 30
    assert p == copy.copy(p) == copy.deepcopy(p) == ti.Struct(p) and repr(p).startswith(f"{{{name}: 5.0, ")
    free = ti.Struct({name: 1.5})
    assert getattr(free, name) == 1.5 and free == pickle.loads(pickle.dumps(free))


@pytest.mark.parametrize("name", OURS)
def test_the_field_of_a_member_goes_before_our_method(name: str) -> None:
    made = run(PROGRAM, name)
    s, t = made["Body"].field(shape=2, needs_grad=True), made["Body"].field(shape=2)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    s[1] = made["Body"](**{name: 2.0, "inner": {name: 4.0}, "other": 3.0})
    assert getattr(s, name)[1] == 2 and getattr(s.inner, name)[1] == 4 and len(s) == 2
    assert made["of_a_field"](s) == 22 + 400
    ti.StructField.copy_from(t, s)
    assert ti.StructField.to_numpy(t)["inner"][name].tolist() == [0, 4]
    ti.StructField.from_numpy(t, ti.StructField.to_numpy(s))
    assert t[1] == s[1] and repr(t).startswith("<field t of structs with ")
    ti.StructField.fill(t, 1.0)
    assert getattr(t.inner, name)[0] == 1
    with ti.ad.Tape(loss):
        made["square"](s, loss)
    assert getattr(s, name).grad.to_numpy().tolist() == [0, 4]
    assert getattr(s.inner, name).grad.to_numpy().tolist() == [1, 1]


@pytest.mark.parametrize("name", [name for name in OURS if name in dir(ti.Struct)])
def test_a_method_of_the_users_goes_before_ours(name: str) -> None:
    made = run(METHODS, name)
    thing = made["Thing"](mass=2.0)
    assert getattr(thing, name)(3.0) == made["times"](thing) == 6


def test_a_captured_step_reads_members_that_are_called_as_our_methods() -> None:
    x, settings = ti.field(ti.f64, shape=()), ti.Struct(items=2.0, keys=3.0)

    @ti.kernel
    def add(a: ti.f64):
        x[None] += a

    @ti.capture
    def step():
        add(settings.items * settings.keys)

    for _ in range(4):
        step()
    assert x[None] == 4 * 6
    settings.items = 10.0
    with pytest.raises(CaptureError, match="'settings' has changed since"):
        step()


def test_what_is_no_member_of_a_field_of_structs_is_not_assigned() -> None:
    s = ti.Struct.field({"mass": ti.f64}, shape=2)
    with pytest.raises(AttributeError, match=r"are not assigned; `mass\.fill\(…\)` sets the numbers of a member"):
        s.mass = 3.0
    with pytest.raises(AttributeError, match=r"are not assigned$"):
        s.note = "x"
    assert s.mass.to_numpy().tolist() == [0, 0]
