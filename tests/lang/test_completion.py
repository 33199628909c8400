"""Completion shows the names that classes document, which exist, and no internals."""

from __future__ import annotations

from typing import Any

import pytest
from manual.reference import MODULES, RETURNED, members, public

import tinote as ti
from tinote.completion import Documented, documented_names
from tinote.config import Config


def objects() -> dict[str, Any]:
    x = ti.field(ti.f32, shape=3, needs_grad=True, needs_dual=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True, needs_dual=True)

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i]

    with ti.ad.Tape(loss, validation="collect") as tape:
        total()
    return {
        "field": x,
        "vectors": ti.Vector.field(2, ti.f32, shape=3, needs_grad=True, needs_dual=True),
        "array": ti.ndarray(ti.f32, 3, needs_grad=True, needs_dual=True),
        "kernel": total,
        "tape": tape,
        "forward": ti.ad.FwdMode(loss=loss, param=x, seed=[1.0, 0.0, 0.0]),
        "place": x.snode,
        "level": ti.root.dense(ti.i, 4),
        "root": ti.root,
        "builder": ti.FieldsBuilder(),
        "struct type": ti.types.struct(mass=ti.f32),
        "vector": ti.Vector([1.0, 2.0]),
        "captured": ti.capture(total),
        "graph": ti.graph.GraphBuilder(),
        "sparse": ti.linalg.SparseMatrix(2, 2),
        "annotation": ti.types.ndarray(dtype=ti.f32, ndim=1),
        "particles": ti.viz.Particles(ti.Vector.field(2, ti.f32, shape=3), lambda: None),
        "image": ti.viz.Image(ti.field(ti.f32, shape=(4, 4)), lambda: None),
        "scene": ti.viz.Scene(lambda: None),
        "rules": ti.viz.violations(tape),
        "explorer": ti.viz.explore(total),
        "gui": ti.GUI(show_gui=False),
        "camera": ti.ui.Camera(),
    }


def test_what_is_shown_is_there() -> None:
    for what, one in objects().items():
        shown = [name for name in dir(one) if not name.startswith("_")]
        assert shown == sorted(documented_names(type(one))) and shown, what
        for each in shown:
            getattr(one, each)


FUNCTIONS = [
    pytest.param(one, id=f"{owner}.{name}")
    for owner, module in MODULES.items()
    for name in dir(module)
    for one in [getattr(module, name)]
    if type(one).__module__.startswith("tinote") and not isinstance(one, tuple)
]
"""Functions of the language, types, targets and other objects that are not classes: `ti.sin`, `ti.f32`, `ti.cpu`."""


@pytest.mark.parametrize("one", FUNCTIONS)
def test_functions_and_constants_show_no_internals(one: Any) -> None:
    shown = {name for name in dir(one) if not name.startswith("_")}
    options = Config._fields if one is ti.cfg else ()
    listed = documented_names(type(one)) if isinstance(one, Documented) else ()
    assert shown == {*options, *listed}
    for each in shown:
        getattr(one, each)


def test_functions_for_kernels_show_no_internals() -> None:
    @ti.func
    def double(a):
        return 2 * a

    assert [name for name in dir(double) if not name.startswith("_")] == []


CLASSES = [
    pytest.param(one, id=name)
    for name, one in [
        *((n, one) for module in MODULES.values() for n, one in public(module).items()),
        *RETURNED.items(),
    ]
    if isinstance(one, type)
]


@pytest.mark.parametrize("one", CLASSES)
def test_a_class_with_names_for_the_package_shows_documented_ones(one: type) -> None:
    documented = set(documented_names(one))
    assert set(members(one)) <= documented
    ours = {name for base in one.__mro__ if base.__module__.startswith("tinote") for name in vars(base)}
    internal = {name for name in ours - documented if not name.startswith("_")}
    assert not internal or issubclass(one, Documented), f"completion shows {sorted(internal)}"


def test_structs_show_their_members() -> None:
    @ti.dataclass
    class Ball:
        mass: ti.f32
        velocity: ti.math.vec2

        @ti.func
        def momentum(self):
            return self.mass * self.velocity

    shown = {name for name in dir(Ball(mass=2.0)) if not name.startswith("_")}
    assert shown == {"field", "items", "keys", "mass", "momentum", "to_dict", "velocity"}
    balls = {name for name in dir(Ball.field(shape=3)) if not name.startswith("_")}
    assert {"mass", "velocity", "to_numpy"} <= balls and "entries" not in balls


def test_argument_packs_show_their_members() -> None:
    """Names that the package uses itself are free for members."""
    kind = ti.types.argpack(kind=ti.i32, leaves=ti.f32, entries=ti.f32)
    pack = kind(kind=1, leaves=2.0, entries=3.0)
    assert [name for name in dir(kind) if not name.startswith("_")] == ["members"]
    assert [name for name in dir(pack) if not name.startswith("_")] == ["entries", "items", "keys", "kind", "leaves"]
    pack.kind = 4
    assert (pack.kind, pack.leaves, pack.entries) == (4, 2.0, 3.0)


def test_bases_count() -> None:
    shown = dir(objects()["vectors"])
    assert {"n", "m", "get_scalar_field", "to_numpy", "grad", "shape", "__getitem__"} <= set(shown)
    assert not {"buffer", "memory", "noted", "stands_in"} & set(shown)
    tape = [name for name in dir(objects()["tape"]) if not name.startswith("_")]
    assert tape == ["copied_bytes", "grad_report", "graph", "loss", "program", "records", "violations"]


def test_a_class_without_docstrings_shows_all() -> None:
    bare = type("Bare", (), {"held": 1, "_kept": 2})
    assert documented_names(bare) == ("held",)
