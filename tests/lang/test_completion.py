"""Completion shows the names that classes document, which exist, and no internals."""

from __future__ import annotations

from typing import Any

import pytest

import tinote as ti
from tinote.lang.completion import documented_names


def objects() -> dict[str, Any]:
    x = ti.field(ti.f32, shape=3, needs_grad=True, needs_dual=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True, needs_dual=True)

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i]

    with ti.ad.Tape(loss) as tape:
        total()
    return {
        "field": x,
        "vectors": ti.Vector.field(2, ti.f32, shape=3, needs_grad=True, needs_dual=True),
        "array": ti.ndarray(ti.f32, 3, needs_grad=True, needs_dual=True),
        "kernel": total,
        "tape": tape,
        "forward": ti.ad.FwdMode(loss=loss, param=x, seed=[1.0, 0.0, 0.0]),
    }


@pytest.mark.parametrize("name", ["field", "vectors", "array", "kernel", "tape", "forward"])
def test_what_is_shown_is_there(name: str) -> None:
    one = objects()[name]
    shown = [name for name in dir(one) if not name.startswith("_")]
    assert shown == sorted(documented_names(type(one))) and shown
    for each in shown:
        getattr(one, each)


def test_bases_count() -> None:
    shown = dir(objects()["vectors"])
    assert {"n", "m", "get_scalar_field", "to_numpy", "grad", "shape", "__getitem__"} <= set(shown)
    assert not {"buffer", "memory", "noted", "stands_in"} & set(shown)
    tape = [name for name in dir(objects()["tape"]) if not name.startswith("_")]
    assert tape == ["copied_bytes", "grad_report", "graph", "loss", "program", "records", "violations"]


def test_a_class_without_docstrings_shows_all() -> None:
    bare = type("Bare", (), {"held": 1, "_kept": 2})
    assert documented_names(bare) == ("held",)
