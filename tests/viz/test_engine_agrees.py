"""The frames that a page makes itself are those that the kernel makes: of the same arrays, the same bytes."""

from __future__ import annotations

import base64
import json
import math
import subprocess
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.viz.test_page_agrees import NODE, run
from tinote.viz import Image, Particles, Plot, Scene
from tinote.viz.draw.arrays import ViewError
from tinote.viz.draw.scale import number_text
from tinote.viz.notebook.view import Frame, static_source
from tinote.viz.pages.bundle import engine_files, payload
from tinote.viz.pages.export import running
from tinote.viz.pages.sources import Sources
from tinote.viz.space.parts import SceneSender

HERE = """
const revive = (value) => {
  if (value === null || typeof value !== "object") return value;
  if ("$base64" in value) return Uint8Array.from(Buffer.from(value.$base64, "base64"));
  if (Array.isArray(value)) return value.map(revive);
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, revive(one)]));
};
const held = revive(JSON.parse(require("fs").readFileSync(0, "utf-8")));
const sources = new Sources({ fields: [] });
const frames = new FRAMES_OF[held.kind](sources, held.look, held.traits);
if (held.kind === "scene") frames.draws = true;
const text = (part) => Buffer.from(part.buffer, part.byteOffset, part.byteLength).toString("base64");
const places = (held.places ?? []).map((place) => [frames.wordsAt(...place), frames.pick?.(...place, true).element]);
const found = held.states.map((state, step) => {
  for (const [name, data] of Object.entries(state)) Object.assign(held.look[name], { data, numbers: undefined });
  const { message, buffers } = frames.capture(step);
  const kept = frames.kept(step === 0);
  return {
    message: { ...message, ...kept.message },
    buffers: [...buffers, ...kept.buffers].map(text),
  };
});
console.log(JSON.stringify(held.places ? places : found));
"""


def packed(value: Any) -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        return {"$base64": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, dict):
        return {name: packed(one) for name, one in value.items()}
    return [packed(one) for one in value] if isinstance(value, list | tuple) else value


def in_page(view: Any, **asked: Any) -> Any:
    """What the page that would run a view makes of it."""
    state = view.get_state()
    traits = {name: state[name] for name in state if name[0] != "_" and name != "layout"}
    held = {"kind": view.PAGE_KIND, "look": view.page_look(Sources()), "traits": traits, "states": [], **asked}
    source = static_source(*engine_files([view.PAGE_KIND], space=True)) + HERE
    done = subprocess.run(
        [str(NODE), "-e", source], input=json.dumps(packed(held)), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def by_page(view: Any, states: list[dict[str, bytes]]) -> list[Frame]:
    """The frames of a view whose arrays, by the names in its look, hold the bytes of each state in turn."""
    made = in_page(view, states=states)
    return [Frame(one["message"], [base64.b64decode(part) for part in one["buffers"]]) for one in made]


def by_kernel(view: Any, arrays: dict[str, np.ndarray], states: list[dict[str, np.ndarray]]) -> list[Frame]:
    found = []
    for step, state in enumerate(states):
        for name, array in state.items():
            arrays[name][...] = array
        view.frames.steps = step
        frame = view.capture()
        kept = view.kept(whole=step == 0)
        found.append(Frame({**frame.message, **kept.message}, [*map(bytes, frame.buffers), *map(bytes, kept.buffers)]))
    return found


def named(frame: Frame) -> dict[str, bytes]:
    """The binary parts of a frame by what they are."""
    names = frame.message.get("parts", [])
    first = len(frame.buffers) - len(names) - ("trail" in frame.message)
    return dict(zip([*map(str, range(first)), *names, "trail"], frame.buffers, strict=False))


#: parts that are places, which are rounded differently
PLACES = {"edges", "arrows", "contours", "trail"}


def assert_same(made: list[Frame], wanted: list[Frame]) -> None:
    for one, other in zip(made, wanted, strict=True):
        left, right = ({k: v for k, v in frame.message.items() if k != "parts"} for frame in (one, other))
        assert left.keys() == right.keys()
        for name, value in left.items():
            assert value == pytest.approx(right[name], rel=1e-6) if isinstance(value, float) else value == right[name]
        left_parts, right_parts = named(one), named(other)
        assert left_parts.keys() == right_parts.keys()
        for name, part in left_parts.items():
            if name in PLACES:
                places = [np.frombuffer(data, np.float32) for data in (part, right_parts[name])]
                assert len(places[0]) == len(places[1])
                assert places[0] == pytest.approx(places[1], abs=2e-6, rel=2e-6, nan_ok=True), name
            elif name.endswith("_inks"):
                assert close_bytes(part, right_parts[name]), name
            else:
                assert part == right_parts[name], name


def close_bytes(one: bytes, other: bytes) -> bool:
    left, right = np.frombuffer(one, np.uint8).astype(int), np.frombuffer(other, np.uint8).astype(int)
    return len(left) == len(right) and bool((np.abs(left - right) <= 1).all())


N = 60
RNG = np.random.default_rng(3)
PAIRS = np.array([[n, (7 * n + 3) % N] for n in range(N)] + [[-1, -1]])

#: options of particles in the plane, and the arrays among them
FLAT: dict[str, dict[str, Any]] = {
    "plain": {},
    "wide": {"bounds": ((-0.3, 0.9), (0.1, 2.5)), "size": (300, 200)},
    "colours each": {"color": RNG.integers(0, 0xFFFFFF, N)},
    "numbers": {"color": RNG.random(N).astype(np.float32), "cmap": "magma"},
    "numbers around zero": {"color": RNG.normal(size=N), "cmap": "coolwarm", "limits": None},
    "a logarithm": {"color": RNG.normal(size=N) ** 3, "norm": "log", "edges": PAIRS, "edge_color": RNG.random(N + 1)},
    "a symmetric logarithm": {"color": RNG.normal(size=N) ** 5, "norm": "symlog", "cmap": "coolwarm"},
    "strange numbers": {"color": np.where(np.arange(N) % 7 == 0, np.nan, RNG.random(N)), "limits": (0.2, 0.7)},
    "radii": {"radius": RNG.random(N).astype(np.float32) * 6 - 0.5},
    "edges": {"edges": PAIRS, "edge_color": RNG.random(len(PAIRS)), "edge_width": 3},
    "arrows": {"arrows": RNG.normal(size=(N, 2)), "arrow_color": 0x112233},
    "scaled arrows": {"arrows": RNG.normal(size=(N, 2)), "arrow_scale": 0.7, "arrow_color": RNG.random((N, 3))},
    "trail": {"trail": 3},
    "glow": {"glow": True, "trail": 2, "color": RNG.random(N).astype(np.float32)},
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FLAT)
def test_particles_in_the_plane(name: str, dtype: Any) -> None:
    ti.init()
    states = [RNG.uniform(-0.2, 1.2, (N, 2)).astype(dtype) for _ in range(6)]
    states[2][5] = np.nan
    x = states[0].copy()
    view = Particles(x, lambda: None, **FLAT[name])
    made = by_page(view, [{"x": state.tobytes()} for state in states])
    assert_same(made, by_kernel(view, {"x": x}, [{"x": state} for state in states]))


def flat(eye: dict[str, Any]) -> list[float]:
    return [float(part) for name in sorted(eye) for part in np.ravel(eye[name]) if eye[name] is not None]


SPACE: dict[str, dict[str, Any]] = {
    "plain": {},
    "turned": {"azimuth": 130.0, "elevation": -40.0, "size": (320, 200)},
    "axes": {"grid": True, "z_label": "height [m]", "size": (320, 200)},
    "colours each": {"color": RNG.integers(0, 0xFFFFFF, N), "radius": RNG.random(N) * 4},
    "numbers": {"color": RNG.random(N), "trail": 2},
    "marks": {"edges": PAIRS, "arrows": RNG.normal(size=(N, 3)), "trail": 3},
}


@pytest.mark.parametrize("name", SPACE)
def test_particles_in_space(name: str) -> None:
    ti.init()
    states = [RNG.uniform(-0.1, 1.1, (N, 3)) for _ in range(4)]
    x = states[0].copy()
    view = Particles(x, lambda: None, **SPACE[name])
    made = by_page(view, [{"x": state.tobytes()} for state in states])
    wanted = by_kernel(view, {"x": x}, [{"x": state} for state in states])
    for frames in (made, wanted):
        for at, frame in enumerate(frames):
            eye = frame.message.pop("eye")
            assert flat(eye) == pytest.approx(flat(wanted[at].message.get("eye", eye)))
            # What is seen is computed with numbers that are rounded differently.
            position = np.frombuffer(frame.buffers[0], np.uint16).astype(int)
            frame.buffers[0] = b""
            frame.message["positions"] = position.tolist()
    for one, other in zip(made, wanted, strict=True):
        left, right = (np.array(frame.message.pop("positions")) for frame in (one, other))
        assert len(left) == len(right) and np.abs(left - right).max(initial=0) <= 1
        assert close_bytes(one.buffers[1], other.buffers[1])
        one.buffers[1] = other.buffers[1]
        for frame in (one, other):
            if "trail_inks" in frame.message.get("parts", []):
                assert frame.buffers[2 + frame.message["parts"].index("trail_inks")]
    assert_same(made, wanted)


GRIDS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "plain": ((30, 20), {}),
    "limits": ((20, 30), {"limits": (0.0, 0.5), "cmap": "plasma"}),
    "around zero": ((20, 20), {"cmap": "coolwarm"}),
    "a logarithm": ((24, 17), {"norm": "log", "contours": 5}),
    "a symmetric logarithm": ((24, 17), {"norm": ("symlog", 0.01), "contours": 5, "limits": (-0.5, 1.0)}),
    "contours": ((24, 17), {"contours": 7}),
    "given contours": ((24, 17), {"contours": [0.1, 0.4, 0.7], "contour_color": 0xFF0000}),
    "vectors": ((40, 30), {"vectors": RNG.normal(size=(40, 30, 2)), "size": 300}),
    "scaled vectors": ((40, 30), {"vectors": RNG.normal(size=(40, 30, 2)), "arrow_scale": 2.0}),
    "colours": ((20, 10, 3), {}),
    "spaced": ((300, 210), {"size": 64}),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", GRIDS)
def test_images(name: str, dtype: Any) -> None:
    ti.init()
    shape, options = GRIDS[name]
    states = [RNG.normal(0.4, 0.4, shape).astype(dtype) for _ in range(3)]
    states[1][3, 4] = np.inf
    field = states[0].copy()
    view = Image(field, lambda: None, **options)
    made = by_page(view, [{"field": state.tobytes()} for state in states])
    assert_same(made, by_kernel(view, {"field": field}, [{"field": state} for state in states]))


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, bool])
def test_images_of_integers(dtype: Any) -> None:
    ti.init()
    shape = (12, 9, 3) if dtype == np.uint8 else (12, 9)
    field = RNG.integers(0, 2 if dtype is bool else 256, shape).astype(dtype)
    view = Image(field, lambda: None)
    assert_same(by_page(view, [{}]), by_kernel(view, {}, [{}]))


CORNERS = RNG.normal(size=(30, 3)).astype(np.float32)
TRIANGLES = RNG.integers(0, 30, (40, 3))


def balls(scene: Scene) -> None:
    scene.particles(CORNERS, radius=RNG.random(30), per_vertex_color=RNG.random((30, 3)))
    scene.particles([[0.0, 0.0, 1.0]], radius=0.3, color="#4a78b8")


def rods(scene: Scene) -> None:
    scene.lines(CORNERS, 3, TRIANGLES[:, :2], per_vertex_color=RNG.random((30, 4)))
    scene.lines(CORNERS)


def meshes(scene: Scene) -> None:
    scene.mesh(CORNERS, TRIANGLES, two_sided=True)
    scene.mesh(CORNERS, TRIANGLES, normals=RNG.normal(size=(30, 3)), color="red")
    scene.mesh_instance(CORNERS, TRIANGLES, transforms=RNG.normal(size=(3, 4, 4)))
    scene.mesh(CORNERS, TRIANGLES, show_wireframe=True)


def strange(scene: Scene) -> None:
    points = CORNERS.copy()
    points[4] = np.nan
    scene.mesh(points, TRIANGLES)
    scene.particles(points * np.nan, radius=1.0)


@pytest.mark.parametrize("axes", [False, True])
@pytest.mark.parametrize("add", [balls, rods, meshes, strange])
def test_scenes(add: Callable[[Scene], None], axes: bool) -> None:
    ti.init()
    view = Scene(lambda: None, axes=axes, grid=axes)
    add(view)
    (made,) = by_page(view, [{}])
    view.capture()
    content, eye = view._content(), view._eye
    assert eye is not None
    wanted = SceneSender().frame(content, eye)
    assert made.message["primitives"] == content.primitives()
    scenes = made.message["scene"], json.loads(json.dumps(wanted.message["scene"]))
    assert scenes[0]["eye"] == scenes[1]["eye"] and scenes[0]["lighting"] == scenes[1]["lighting"]
    for one, other in zip(scenes[0]["items"], scenes[1]["items"], strict=True):
        assert one.keys() == other.keys()
        for name, value in one.items():
            if name in ("positions", "colors", "radii", "pairs", "triangles", "normals", "transforms"):
                parts = [
                    buffers[scene["parts"].index(item[name])]
                    for scene, item, buffers in ((scenes[0], one, made.buffers), (scenes[1], other, wanted.buffers))
                ]
                kinds = {"positions": np.uint16, "normals": np.int8, "transforms": np.float32, "radii": np.float32}
                left, right = (np.frombuffer(part, kinds.get(name, np.uint8)).astype(float) for part in parts)
                assert len(left) == len(right), name
                assert np.abs(left - right).max(initial=0) <= (1 if name in ("positions", "normals") else 0), name
            else:
                assert value == pytest.approx(other[name]), name


def test_a_plot_has_no_frames_of_its_own() -> None:
    view = Plot(lambda: 1.0, lambda: None)
    assert_same(by_page(view, [{}]), by_kernel(view, {}, [{}]))


def test_edges_of_copies_are_refused() -> None:
    ti.init()
    view = Scene(lambda: None).mesh_instance(
        CORNERS, TRIANGLES, transforms=RNG.normal(size=(3, 4, 4)), show_wireframe=True
    )
    with pytest.raises(ViewError, match="a page draws the edges of one mesh, and not of its copies"):
        view.page_look(Sources())


#: options of particles of which something is seen: in space, and in the plane
READ: dict[str, dict[str, Any]] = {
    "plain": {},
    "numbers": {"color": RNG.random(N).astype(np.float32), "color_label": "speed [m/s]", "x_label": "x [m]"},
    "large": {"radius": 9, "color": 1e7 * RNG.normal(size=N), "bounds": ((-1, 2),) * 3, "z_label": "z [m]"},
}


@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize("name", READ)
def test_particles_are_told_alike_under_the_pointer(name: str, dimensions: int) -> None:
    ti.init()
    x = RNG.uniform(-0.5, 1.2, (N, dimensions)).astype(np.float32)
    x[7] = np.nan
    options = READ[name]
    if "bounds" in options:
        options = options | {"bounds": options["bounds"][:dimensions]}
    view = Particles(x, lambda: None, size=(300, 240), **options)
    view.capture()
    places: list[list[float]] = RNG.random((300, 2)).tolist()
    told = in_page(view, places=places)
    assert told == [[view.words_at(across, up), view.pick(across, up, True)[1]] for across, up in places]
    assert 20 < sum(element is not None for _, element in told) < 300
    words, element = next((words, element) for words, element in told if element is not None)
    assert words.startswith(f"particle {element} · {options.get('x_label', 'x')} ")
    assert ("speed [m/s] " in words) == (name == "numbers")


def test_an_image_and_a_scene_are_picked_alike() -> None:
    ti.init()
    view = Image(np.zeros((12, 9), np.float32), lambda: None)
    view.capture()
    places = [[0.0, 0.0], [1.0, 1.0], [0.3, 0.7], [0.99, 0.01]]
    assert [element for _, element in in_page(view, places=places)] == [
        list(view.pick(across, up, True)[1]) for across, up in places
    ]


def told_apart(words: str) -> tuple[str, list[float]]:
    """What is seen, and where."""
    what, _, place = words.partition(" at (")
    return what, [float(part.replace("−", "-")) for part in place.rstrip(")").split(", ") if part]


@pytest.mark.parametrize("axes", [False, True])
@pytest.mark.parametrize("add", [balls, rods, meshes, strange])
def test_scenes_are_told_alike_under_the_pointer(add: Callable[[Scene], None], axes: bool) -> None:
    ti.init()
    view = Scene(lambda: None, axes=axes, size=(400, 300))
    add(view)
    view.particles([[0.1, 0.2, 0.3]], 0.2, name="the sun")
    view.capture()
    assert view._eye is not None
    reach = math.dist(view._eye.position, view._eye.target)
    # In the middle of pixels, as pictures see it. At edges, and where two things are at one depth, either may be seen.
    pixels = np.random.default_rng(8).integers([100, 75], [300, 225], (150, 2))
    places = [[(column + 0.5) / 400, (row + 0.5) / 300] for column, row in pixels]
    told = [words for words, _ in in_page(view, places=places)]
    pairs = [(told_apart(one), told_apart(view.words_at(*place))) for one, place in zip(told, places, strict=True)]
    same = [one == other for (one, _), (other, _) in pairs]
    assert np.mean(same) > 0.93 and sum(bool(what) for (what, _), _ in pairs) > 20
    away = [
        math.dist(one, other)
        for ((what, one), (_, other)), is_same in zip(pairs, same, strict=True)
        if what and is_same
    ]
    assert np.quantile(away, 0.95) < 0.02 * reach


def test_numbers_are_written_alike() -> None:
    values = [float(value) for value in RNG.normal(size=300) * 10.0 ** RNG.integers(-9, 12, 300)] + [
        0.0,
        1e6,
        123456.0,
        -5e-5,
    ]
    found = run(("draw/scale.js",), values, "data.map((value) => [numberText(value), numberText(value, 3)])")
    assert found == [[number_text(value), number_text(value, 3)] for value in values]


def test_colours_are_in_a_page_once() -> None:
    ti.init()
    x, colors = RNG.random((20_000, 2)).astype(np.float32), RNG.integers(0, 0xFFFFFF, 20_000)
    chosen: list[Any] = [0x3B7DD8, colors]
    sizes = [len(payload(running(Particles(x, lambda: None, color=color))._asdict())) for color in chosen]
    assert 0.99 < (sizes[1] - sizes[0]) / (3 * len(x) * 4 / 3) < 1.02  # Three bytes each, in base 64.
