"""Captured steps on the GPU of a browser: WebGPU leaves what WebAssembly leaves, and says what it says."""

from __future__ import annotations

import base64
import copy
import json
import random
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinote as ti
import tinote.viz.pages.export
from tests.browser.harness import new_page
from tests.lang.test_captured_steps import CAPTURED, Library
from tests.lang.test_portable import FAULTS, NODE, file_of, flat, kind_of
from tinote.compiler.codegen.wgsl import shader
from tinote.errors import TinoteError
from tinote.lang.capture.portable import Portable, portable
from tinote.runtime.layout import WORKGROUP
from tinote.viz.notebook.view import static_source

#: In a page: a Worker that runs calls on the GPU, and then again as WebAssembly, and what is left each time.
PLAY = """
async ([script, data, commands, fields]) => {
  const body = `${script}
    const plain = (value) => JSON.parse(JSON.stringify(value ?? null, (_, one) =>
      typeof one === "bigint" ? String(one) : typeof one === "number" && !Number.isFinite(one) ? String(one) : one));
    const reported = ({ kind, name, what, message, line, source }) =>
      ({ error: kind ?? name, what: what ?? message, line, source });
    onmessage = async ({ data: [text, commands, fields] }) => {
      const program = await Program.open(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)));
      const follow = async (run, read) => {
        const found = [];
        for (const [name, ...given] of commands) {
          const answer = {};
          try {
            answer.value = plain(await run(name, program.parametersOf(name, given)));
            await read();
            answer.fields = fields.map((name) => [...program.read(name)].map(String));
          } catch (error) {
            answer.reported = reported(error);
          }
          answer.values = plain(program.values);
          found.push(answer);
        }
        return found;
      };
      try {
        const gpu = await GpuProgram.open(program);
        const onGpu = await follow((name, given) => gpu.run(name, given), () => gpu.refresh([], fields));
        program.restore();
        const onCpu = await follow((name, given) => program.run(name, given), () => {});
        postMessage([onGpu, onCpu]);
      } catch (error) {
        postMessage(error.message + error.stack);
      }
    };`;
  const worker = new Worker(URL.createObjectURL(new Blob([body], { type: "text/javascript" })));
  const answer = new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = (event) => reject(new Error(event.message));
  });
  worker.postMessage([data, commands, fields]);
  const found = await answer;
  worker.terminate();
  return found;
}
"""
Play = Callable[[Portable, Sequence[Sequence[Any]]], tuple[list[dict[str, Any]], list[dict[str, Any]]]]


@pytest.fixture(scope="module")
def play(chromium_with_gpu: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Play]:
    """`play(made, calls)`: what each call leaves on the GPU, and as WebAssembly."""
    blank = tmp_path_factory.mktemp("webgpu") / "page.html"
    blank.write_text("<!doctype html>")
    page = new_page(chromium_with_gpu)
    page.goto(blank.as_uri())  # WebGPU is for pages that come from somewhere

    def run(made: Portable, calls: Sequence[Sequence[Any]]) -> Any:
        data = base64.b64encode(made.encode()).decode()
        fields = [field["name"] for field in made.description["fields"]]
        found = page.evaluate(PLAY, [static_source("engine/program.js", "engine/program_gpu.js"), data, calls, fields])
        assert isinstance(found, list), found
        return found

    yield run
    page.context.close()


@pytest.fixture(autouse=True)
def all_have_shaders(monkeypatch: pytest.MonkeyPatch) -> None:
    """However little they do."""
    monkeypatch.setattr("tinote.lang.capture.portable.LEAST_OPERATIONS", 0)


def assert_same(on_gpu: Sequence[dict[str, Any]], on_cpu: Sequence[dict[str, Any]], made: Portable) -> None:
    """Integers are the same; floats within some roundings of f32."""
    for found, wanted in zip(on_gpu, on_cpu, strict=True):
        assert "reported" not in found, found["reported"]
        assert flat(found["value"]) == pytest.approx(flat(wanted["value"]), rel=1e-5, abs=1e-6)
        assert found["values"] == pytest.approx(wanted["values"], rel=1e-5, abs=1e-6)
        for field, *texts in zip(made.description["fields"], found["fields"], wanted["fields"], strict=True):
            is_float = field["type"] in ("f32", "f64")
            near = 2e-5 if is_float else 1 if field["type"] == "f16" else 0  # of f16, the bits
            numbers = [np.array([float(one) if is_float else int(one) for one in text]) for text in texts]
            np.testing.assert_allclose(*numbers, rtol=near if is_float else 0, atol=near, err_msg=field["name"])


#: Captured steps, all but one whose elements of NumPy's arrays are Python's floats only where they have 64 bits.
STEPS = [name for name in CAPTURED if name != "arrays in Python"]


@pytest.mark.parametrize("name", STEPS)
def test_a_captured_step_does_the_same_on_the_gpu(play: Play, name: str) -> None:
    library = Library(single=True)
    made, calls = file_of(library, library.step(CAPTURED[name], "on_gpu"))
    assert all("gpu" in function for function in made.description["functions"])
    given = [[kind_of(call), *[one for one in call if isinstance(one, int | float)]] for call in calls]
    assert_same(*play(made, given), made)


def test_faults_on_the_gpu_are_reported_with_their_lines(play: Play) -> None:
    library = Library()
    library.define(FAULTS.replace("ti.f64", "ti.f32"), "webgpu_faults.py")
    good: dict[str, tuple[Any, ...]] = {"first": (0,), "second": (1,), "third": (1.0,), "fourth": (1.0,), "fifth": (3,)}
    bad = {"first": (2,), "second": (0,), "third": (2.25,), "fourth": (-1.0,), "fifth": (1 << 20,)}
    programs = {name: ti.capture(library.space[name]) for name in good}
    made = portable([(name, programs[name], given) for name, given in good.items()], {"n": library.space["n"]})
    assert all("gpu" in function for function in made.description["functions"])
    on_gpu, on_cpu = play(made, [[name, *given] for calls in (good, bad, good) for name, given in calls.items()])
    assert [answer.get("reported") for answer in on_gpu] == [answer.get("reported") for answer in on_cpu]
    reported = [answer["reported"] for answer in on_gpu if "reported" in answer]
    assert len(reported) == len(bad)
    for name, given in good.items():
        programs[name](*given)
    for answer, (name, given) in zip(reported, bad.items(), strict=True):
        with pytest.raises(TinoteError) as caught:
            programs[name](*given)
        assert (answer["what"], answer["line"]) == (caught.value.message, caught.value.span.line), name


@ti.data_oriented
class Fluid:
    """Grids, atomic additions to them, and matrices: a step of particles in a box."""

    def __init__(self, count: int, cells: int) -> None:
        self.count, self.cells = count, cells
        self.x = ti.Vector.field(2, ti.f32, shape=count)
        self.v = ti.Vector.field(2, ti.f32, shape=count)
        self.c = ti.Matrix.field(2, 2, ti.f32, shape=count)
        self.mass = ti.field(ti.f32, shape=(cells, cells))
        self.momentum = ti.Vector.field(2, ti.f32, shape=(cells, cells))
        self.x.from_numpy(np.random.default_rng(1).uniform(0.3, 0.6, (count, 2)).astype(np.float32))

    @ti.kernel
    def scatter(self):
        for p in self.x:
            base = (self.x[p] * self.cells - 0.5).cast(int)
            f = self.x[p] * self.cells - base.cast(float)
            w = [0.5 * (1.5 - f) ** 2, 0.75 - (f - 1) ** 2, 0.5 * (f - 0.5) ** 2]
            for i, j in ti.static(ti.ndrange(3, 3)):
                offset = ti.Vector([i, j])
                weight = w[i][0] * w[j][1]
                away = (offset.cast(float) - f) / self.cells
                self.momentum[base + offset] += weight * (self.v[p] + self.c[p] @ away)
                self.mass[base + offset] += weight

    @ti.kernel
    def gather(self, dt: ti.f32):
        for i, j in self.mass:
            if self.mass[i, j] > 0:
                self.momentum[i, j] /= self.mass[i, j]
                self.momentum[i, j][1] -= dt * 9.8
                if i < 3 or i > self.cells - 3 or j < 3 or j > self.cells - 3:
                    self.momentum[i, j] = [0.0, 0.0]
        for p in self.x:
            base = (self.x[p] * self.cells - 0.5).cast(int)
            f = self.x[p] * self.cells - base.cast(float)
            w = [0.5 * (1.5 - f) ** 2, 0.75 - (f - 1) ** 2, 0.5 * (f - 0.5) ** 2]
            v = ti.Vector([0.0, 0.0])
            c = ti.Matrix([[0.0, 0.0], [0.0, 0.0]])
            for i, j in ti.static(ti.ndrange(3, 3)):
                offset = ti.Vector([i, j])
                found = self.momentum[base + offset]
                weight = w[i][0] * w[j][1]
                v += weight * found
                c += 4 * weight * self.cells * found.outer_product(offset.cast(float) - f)
            self.v[p], self.c[p] = v, c
            self.x[p] += dt * v

    def step(self, dt: float = 1e-3) -> None:
        self.mass.fill(0)
        self.momentum.fill(0)
        self.scatter()
        self.gather(dt)


def test_particles_in_a_grid(play: Play) -> None:
    ti.init(num_threads=1)
    fluid = Fluid(300, 32)
    made = portable([("step", fluid.step, (1e-3,))], {"x": fluid.x, "mass": fluid.mass})
    on_gpu, on_cpu = play(made, [["step", 1e-3]] * 12)
    assert "gpu" in made.description["functions"][0]
    for found, wanted in zip(on_gpu, on_cpu, strict=True):
        for a, b in zip(found["fields"], wanted["fields"], strict=True):
            np.testing.assert_allclose(np.array(a, float), np.array(b, float), 1e-4, 1e-5)


#: In a Worker: what a page says to lose its GPU.
LOSE = """
let lose = () => {};
const openGpu = GpuProgram.open;
GpuProgram.open = async (program) => {
  const gpu = await openGpu.call(GpuProgram, program);
  lose = () => gpu?.device.destroy();
  return gpu;
};
addEventListener("message", ({ data }) => data.kind === "lose" && lose());
"""
READ = """() => {
  const [model] = globalThis.tinote.models;
  return model.read(model.view.look.x.field).then(({ step, data }) =>
    [step, [...new Float32Array(data.buffer, data.byteOffset, data.byteLength / 4)]]);
}"""


@pytest.fixture
def fluid_page(chromium_with_gpu: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Fluid]]:
    """A page of a fluid with its time step on a slider and its height plotted, which says that it has a GPU."""
    made = tinote.viz.pages.export.engine_script
    monkeypatch.setattr(
        "tinote.viz.pages.export.engine_script", lambda *kinds, **how: [*made(*kinds, **how)[:-1], LOSE, "serve();"]
    )
    ti.init(num_threads=1)
    fluid = Fluid(300, 32)
    dt = ti.field(ti.f32, shape=())
    dt[None] = 1e-3

    def step() -> None:
        fluid.step(dt[None])

    def height() -> float:
        return fluid.x[0][1]

    view = ti.viz.Particles(fluid.x, step, steps_per_frame=3, plots={"height": height})
    ti.viz.slider(view, dt, 0.0, 2e-3)
    shown = ti.viz.page(view, tmp_path / "fluid.html")
    assert "of WGSL" in shown.views[0].needs
    page = new_page(chromium_with_gpu)
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto((tmp_path / "fluid.html").as_uri())
    page.wait_for_selector(".tinote-device:not([hidden])")
    yield page, fluid
    page.context.close()
    assert problems == []


def move(page: Any, device: str) -> None:
    """Have the simulation run there."""
    page.evaluate("(device) => globalThis.tinote.models[0].send({ kind: 'device', device })", device)
    page.locator(".tinote-device", has_text=f"on the {device}").wait_for()


def steps(page: Any, count: int) -> np.ndarray[Any, Any]:
    """Where the particles are after `count` more steps."""
    begin, _ = page.evaluate(READ)
    page.evaluate("(steps) => globalThis.tinote.models[0].send({ kind: 'step', steps })", count)
    found, numbers = page.evaluate(READ)
    assert found == begin + count
    return np.array(numbers).reshape(-1, 2)


def test_a_page_moves_to_the_gpu_and_back(fluid_page: tuple[Any, Fluid]) -> None:
    page, fluid = fluid_page
    for count, device in ((3, "GPU"), (4, "CPU"), (2, "GPU")):
        move(page, device)
        found = steps(page, count)
        for _ in range(count):
            fluid.step(1e-3)
        np.testing.assert_allclose(found, fluid.x.to_numpy(), 1e-4, 1e-5)
    page.locator(".tinote-control input").fill("0.002")
    found = steps(page, 2)
    for _ in range(2):
        fluid.step(2e-3)
    np.testing.assert_allclose(found, fluid.x.to_numpy(), 1e-4, 1e-5)
    page.click(".tinote-reset")
    page.locator(".tinote-status", has_text="step 0").wait_for()
    for device in ("CPU", "GPU"):
        page.click(".tinote-device")
        page.locator(".tinote-device", has_text=f"on the {device}").wait_for()


def test_a_page_goes_on_without_a_gpu_that_is_lost(fluid_page: tuple[Any, Fluid]) -> None:
    page, fluid = fluid_page
    move(page, "GPU")
    steps(page, 2)
    page.evaluate("globalThis.tinote.models[0].worker.postMessage({ kind: 'lose' })")
    page.evaluate("globalThis.tinote.models[0].send({ kind: 'step', steps: 1 })")
    page.locator(".tinote-error", has_text="the GPU has stopped").wait_for()
    page.wait_for_selector(".tinote-device", state="hidden")
    found = steps(page, 3)  # as the page began
    for _ in range(3):
        fluid.step(1e-3)
    np.testing.assert_allclose(found, fluid.x.to_numpy(), 1e-4, 1e-5)


def test_steps_that_do_little_have_no_shaders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    ti.init(num_threads=1)
    fluid = Fluid(300, 32)
    made = portable([("step", fluid.step, (1e-3,))], {"x": fluid.x})
    assert made.description["shaders"] == []
    assert not any("gpu" in function for function in made.description["functions"])
    fluid = Fluid(100_000, 256)
    made = portable([("step", fluid.step, (1e-3,))], {"x": fluid.x})
    assert [shader["name"] for shader in made.description["shaders"]] == ["scatter", "gather"]


def test_what_prints_runs_as_webassembly(play: Play) -> None:
    ti.init(num_threads=1)
    x = ti.field(ti.f32, shape=3)

    @ti.kernel
    def tell():
        for i in x:
            x[i] += 1
        print("reported", x[0])

    @ti.kernel
    def double():
        for i in x:
            x[i] *= 2

    made = portable([("tell", tell, ()), ("double", double, ())], {"x": x})
    assert ["gpu" in function for function in made.description["functions"]] == [False, True]
    assert_same(*play(made, [["double"], ["tell"], ["double"], ["double"], ["tell"]]), made)


def test_words_are_where_shaders_have_them() -> None:
    script = static_source("engine/program_gpu.js")
    head = f"faults: {shader.FAULTS}, site: {shader.SITE}, payload: {shader.PAYLOAD}, bytes: {4 * shader.PRINTED}"
    assert f"GPU_HEAD = {{ {head}, temporaries: {shader.HEAD} }}" in script
    assert f"GPU_GROUP = {WORKGROUP};" in script


def test_damaged_shaders_are_refused() -> None:
    """Whatever stands in a file, it is refused, or what it says is inside its memory."""
    ti.init(num_threads=1)
    fluid = Fluid(20, 16)
    sums = ti.field(ti.f32, shape=4)

    def step(dt: float) -> float:
        fluid.step(dt)
        sums[1] = dt
        sums.fill(sums[1] * 2)
        return sums[2]

    description = portable([("step", step, (1e-3,))], {"x": fluid.x}).description
    chance = random.Random(4)
    damaged = []
    for _ in range(400):
        changed = copy.deepcopy(description)
        parts = [changed["shaders"], changed["functions"][0]["gpu"]]
        for _ in range(chance.randrange(1, 3)):
            _damage(chance.choice(parts), chance)
        damaged.append(changed)
    kinds = _checked([description, *damaged])
    assert kinds[0] == ""
    assert set(kinds[1:]) <= {"", "damaged"}
    assert kinds.count("damaged") > 250


def _damage(value: Any, chance: random.Random) -> None:
    """Change something that a description holds, somewhere in it."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = chance.choice(keys)
    if isinstance(value[key], dict | list) and len(value[key]) and chance.random() < 0.9:
        _damage(value[key], chance)
    else:
        value[key] = chance.choice([-1, None, 1 << 40, 0.5, "i33", [], {}, [-1], True])


def _checked(descriptions: Sequence[Any]) -> list[str]:
    """The kind of error that looking at each ends with; empty for none."""
    check = """
    const kinds = JSON.parse(require("fs").readFileSync(0, "utf-8")).map((description) => {
      try { checkShaders(description); return ""; } catch (error) { return error.kind ?? String(error); }
    });
    console.log(JSON.stringify(kinds));"""
    script = static_source("engine/program.js", "engine/program_gpu.js") + check
    given = json.dumps(descriptions)
    done = subprocess.run([str(NODE), "-e", script], input=given, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    return found
