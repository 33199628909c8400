"""The explorer's panel of the roofline: what was measured last, or is measured in copies of the fields."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import tinote as ti
from tests.viz.explored import line_of
from tinote.lang.kernels import machine_ceilings
from tinote.viz.explorer.widget import explore

HERE = __file__
N = 1 << 12


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Fields and kernels on a machine that moves 10⁹ bytes a second, and computes as many operations."""
    for name in ("bandwidth", "peak"):
        monkeypatch.setattr(machine_ceilings, name, lambda size, config, seen: 1e9)
    ti.init()
    x = ti.field(ti.f32, N, needs_grad=True)
    y = ti.field(ti.f32, N, needs_grad=True)
    pairs = ti.Struct.field({"a": ti.f32, "b": ti.f32}, N)

    @ti.kernel
    def scale(by: ti.f32, times: ti.i32):
        for i in x:  # scaled
            for _ in range(times):
                y[i] += by * x[i]
        for i in pairs:  # copied
            pairs[i].a = pairs[i].b

    @ti.kernel
    def of_array(a: ti.types.ndarray()):
        for i in range(a.shape[0]):
            a[i] += 1.0

    x.fill(1)
    return SimpleNamespace(x=x, y=y, pairs=pairs, scale=scale, of_array=of_array)


def cells(panel: dict) -> list[tuple[str, ...]]:
    [table] = panel["tables"]
    return [row["cells"] for row in table["rows"]]


def test_it_is_measured_on_request_in_copies(known: SimpleNamespace) -> None:
    known.scale(0.5, 3)
    explored = explore(known.scale)._explored
    before = explored.panel(0, "roofline")
    assert before["tables"][0]["rows"] == [] and before["chart"] is None
    given = {p["name"]: p["last"] for p in before["measures"]["parameters"]}
    assert given == {"by": "0.5", "times": "3"}, "the arguments of the last launch"
    held = known.y.to_numpy(), known.pairs.to_numpy()
    panel = explored.measured(0, [0.25, 2])
    assert "refused" not in panel
    assert np.array_equal(known.y.to_numpy(), held[0]) and np.array_equal(known.pairs.to_numpy()["a"], held[1]["a"])
    assert [row[:2] for row in cells(panel)] == [
        (str(line_of(HERE, "# scaled")), "memory"),
        (str(line_of(HERE, "# copied")), "memory"),
    ]
    assert [row[4] for row in cells(panel)] == ["48.0 KiB", "32.0 KiB"]
    [loop] = panel["chart"]["loops"]  # a copy computes nothing
    assert loop["line"] == line_of(HERE, "# scaled") and 0 <= loop["at"] <= 1 and 0 <= loop["rate"] <= 1
    assert [note["text"] for note in panel["notes"]] == [row[-1] for row in cells(panel)]
    assert [p["last"] for p in panel["measures"]["parameters"]] == ["0.25", "2"]
    assert explored.everything()["panels"]["0/roofline"] == panel, "a page holds what was measured"


def test_it_shows_what_a_cell_has_measured(known: SimpleNamespace) -> None:
    array = np.ones(N, np.float32)
    known.of_array(array)
    explored = explore(known.of_array)._explored
    panel = explored.panel(0, "roofline")
    assert not cells(panel) and "of_array.roofline(…)" in panel["measures"]["refused"]
    found = known.of_array.roofline(array)
    assert [row[1:] for row in cells(explored.panel(0, "roofline"))] == [one.cells for one in found]
    assert (array == 2).all()


def test_a_gradient_has_its_own(known: SimpleNamespace) -> None:
    known.scale(0.5, 1)
    known.y.grad.fill(1)
    explored = explore(known.scale, gradient=True)._explored
    panel = explored.measured(1, [0.5, 1])
    assert "refused" not in panel and cells(panel)
    assert not known.x.grad.to_numpy().any() and not cells(explored.panel(0, "roofline"))


def test_what_cannot_be_measured_says_why(known: SimpleNamespace) -> None:
    x = known.x

    @ti.kernel
    def overwrites():
        for i in x:
            x[i] = x[i] * x[i]

    overwrites()
    explored = explore(overwrites, gradient=True)._explored
    assert "tape" in explored.measured(1, [])["refused"]
    ti.init(arch=ti.python)
    z = ti.field(ti.f32, 4)

    @ti.kernel
    def fill():
        for i in z:
            z[i] = 1.0

    fill()
    assert "roofline" not in dict(explore(fill)._explored.view(0)["panels"])
