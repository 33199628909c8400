"""Captured steps in a browser's Worker: WebAssembly there leaves what Python leaves."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

import tinote as ti
from tests.browser.harness import new_page
from tests.lang.test_portable import SCRIPT
from tinote.lang.capture.portable import portable

#: In a page: a Worker that plays a file, and what it answers.
PLAY = """
async ([script, data, steps]) => {
  const body = `${script}
    onmessage = async ({ data: [text, steps] }) => {
      const program = await Program.open(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)));
      for (let k = 0; k < steps; k += 1) program.step();
      postMessage([[...program.read("x")], program.call("energy")]);
    };`;
  const worker = new Worker(URL.createObjectURL(new Blob([body], { type: "text/javascript" })));
  const answer = new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = (event) => reject(new Error(event.message));
  });
  worker.postMessage([data, steps]);
  return answer;
}
"""


def test_a_captured_step_runs_in_a_worker(chromium: Any) -> None:
    ti.init(num_threads=1)
    count = 32
    x = ti.Vector.field(2, ti.f32, shape=count, needs_grad=True)
    v = ti.Vector.field(2, ti.f32, shape=count)
    potential_energy = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def potential():
        for i, j in ti.ndrange(count, count):
            potential_energy[None] += -0.5 / count / (x[i] - x[j]).norm(1e-1)

    @ti.kernel
    def advance(dt: ti.f32):
        for i in x:
            v[i] -= dt * x.grad[i]
            x[i] += dt * v[i]

    def step():
        with ti.ad.Tape(potential_energy):
            potential()
        advance(1e-3)

    def energy():
        return potential_energy[None]

    x.from_numpy(np.random.default_rng(0).normal(size=(count, 2)).astype(np.float32))
    made = portable([("step", step, ()), ("energy", energy, ())], {"x": x})
    assert made.refused == {}
    page = new_page(chromium)
    data = base64.b64encode(made.encode()).decode()
    found, found_energy = page.evaluate(PLAY, [SCRIPT.read_text(encoding="utf-8"), data, 100])
    page.context.close()
    for _ in range(100):
        step()
    np.testing.assert_allclose(np.reshape(found, (count, 2)), x.to_numpy(), 1e-4, 1e-5)
    assert abs(found_energy - energy()) < 1e-4 * abs(energy())
