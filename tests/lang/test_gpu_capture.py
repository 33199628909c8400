"""A page can be made where kernels run on a GPU: it is that which the CPU makes, and the session goes on as before."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.lang.test_portable import numbers, played
from tinote.lang.capture.portable import portable, read_portable
from tinote.lang.session.state import session
from tinote.viz.pages.bundle import unpacked
from tinote.viz.pages.stored import kept

COUNT = 50


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    yield
    ti.init()


def gravity(**target: Any) -> tuple[Callable[[float], None], Any, Any]:
    """A step with a tape, which ends with a launch of its kernel `advance`; the positions, and the energy."""
    ti.init(**target)
    x = ti.Vector.field(2, ti.f32, shape=COUNT, needs_grad=True)
    v = ti.Vector.field(2, ti.f32, shape=COUNT)
    energy = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def potential():
        for i, j in ti.ndrange(COUNT, COUNT):
            energy[None] += -0.5 / COUNT / (x[i] - x[j]).norm(1e-1)

    @ti.kernel
    def advance(dt: ti.f32):
        for i in x:
            v[i] -= dt * x.grad[i]
            x[i] += dt * v[i]

    def step(dt: float) -> None:
        with ti.ad.Tape(energy):
            potential()
        advance(dt)

    step.advance = advance  # type: ignore[attr-defined]
    x.from_numpy(np.random.default_rng(1).normal(size=(COUNT, 2)).astype(np.float32))
    return step, x, energy


def test_a_captured_step_of_a_gpu_session() -> None:
    step, x, energy = gravity(arch=ti.gpu, software_gpu=True)
    for _ in range(3):
        step(0.01)
    before, compiled = x.to_numpy(), list(step.advance.instances)  # type: ignore[attr-defined]
    made = portable([("step", step, (0.01,))], {"x": x, "energy": energy})
    assert made.refused == {}
    np.testing.assert_array_equal(x.to_numpy(), before)
    assert session.config.arch == "gpu"
    answers = played(made.encode(), *[["call", "step", 0.01]] * 4, ["read", "x"])
    for _ in range(4):
        step(0.01)
    np.testing.assert_allclose(numbers(answers[-1], before), x.to_numpy(), 1e-4, 1e-5)
    assert list(step.advance.instances) == compiled  # type: ignore[attr-defined]
    portable([("step", step, (0.01,))], {"x": x, "energy": energy})
    step(0.01)
    assert list(step.advance.instances) == compiled  # type: ignore[attr-defined]


def test_the_page_of_a_view_in_a_gpu_session(tmp_path: Path) -> None:
    pages = []
    for target in ({"arch": ti.cpu}, {"arch": ti.gpu, "software_gpu": True}):
        step, x, _ = gravity(**target)
        step(0.01)
        view = ti.viz.Particles(x, lambda step=step: step(0.01), label="fall")
        pages.append(ti.viz.page(view, tmp_path / "fall.html"))
        assert pages[-1].views[0].runs, pages[-1].views[0]
    assert pages[0].views[0].needs == pages[1].views[0].needs
    saved = unpacked(kept(view, 1 << 20).program)  # what a saved notebook has of it
    assert read_portable(saved["described"]["program"]).description["functions"][0]["name"] == "step"
