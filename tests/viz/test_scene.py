"""The live view of a scene in space: what it sends to pages that draw and to those that do not, and what stays."""

from __future__ import annotations

import base64
import io
import re
from typing import Any

import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image, ImageSequence

import tinote as ti
from tests.viz.live import picture_of, scenario
from tinote.viz import Scene
from tinote.viz.draw.arrays import ViewError
from tinote.viz.live.scene import DARK_SKY, LIGHT_SKY
from tinote.viz.space.camera import framed
from tinote.viz.space.parts import MOST_LIGHTS, MOST_POINTS

BALLS = np.array([[-0.5, 0.0, 0.0], [0.5, 0.0, 0.0]], np.float32)


def balls(**options) -> Scene:
    return Scene(size=(120, 80), **options).particles(BALLS, 0.3, per_vertex_color=np.array([[1.0, 0, 0], [0, 0, 1.0]]))


def picture_in(frame: tuple[dict, list]) -> np.ndarray:
    message, buffers = frame
    assert message["picture"] == "image/jpeg"
    return np.asarray(Image.open(io.BytesIO(buffers[0])).convert("RGB")).astype(int)


def test_the_picture_shows_everything_in_front_of_a_light_sky():
    view = balls(up="y", azimuth=0, elevation=0)
    found = picture_of(view)
    assert found.shape == (80, 120, 3)
    red, blue = found[40, 35], found[40, 85]
    assert red[0] > red[2] + 80 and blue[2] > blue[0] + 80
    assert np.abs(found[1, 1] - LIGHT_SKY[0]).max() <= 2 and np.abs(found[78, 1] - LIGHT_SKY[1]).max() <= 2
    assert repr(view) == "<Scene: 1 thing in space>"
    assert (picture_of(balls(background="#102030"))[1, 1] == [0x10, 0x20, 0x30]).all()


def test_things_are_read_again_after_each_frame():
    x = ti.Vector.field(3, ti.f32, shape=1)

    @ti.kernel
    def rise():
        x[0].z += 1.0

    view = Scene(rise, size=(60, 60)).particles(x, 0.2).lines([[0, 0, 0], [0, 0, 3]], 1.0, [0, 1])
    before = picture_of(view)
    view.advance(3)
    assert x[0].z == 3.0 and (picture_of(view) != before).any()


def test_a_camera_a_light_and_what_they_show():
    view = balls()
    view.camera((0.0, -3.0, 0.0), (0.0, 0.0, 0.0), fov=40.0).ambient_light("#808080")
    even = picture_of(view)
    assert {tuple(color) for color in even[40, 20:100:10].tolist()} >= {(128, 0, 0), (0, 0, 128)}
    lit = picture_of(view.point_light((-9.0, 0.0, 0.0), 0xFFFFFF))
    red = np.flatnonzero((even[40] == [128, 0, 0]).all(axis=1))
    assert lit[40, red[2], 0] > 200 and lit[40, red[-3], 0] == 128, "the side that faces the light"


def test_a_page_without_a_graphics_card_gets_pictures_in_its_theme():
    async def body(view, page):
        page.say(kind="look", view="page", dark=True, scale=2.0, draws=False)
        page.say(kind="ready", view="page")
        await page.until(lambda: page.frames)
        found = picture_in(page.messages[-1])
        assert found.shape == (160, 240, 3) and np.abs(found[1, 1] - DARK_SKY[0]).max() <= 6
        page.say(kind="look", view="page", dark=False, scale=1.0, draws=False)
        await page.until(lambda: len(page.frames) == 2)
        light = picture_in(page.messages[-1])
        assert light.shape == (80, 120, 3) and np.abs(light[1, 1] - LIGHT_SKY[0]).max() <= 6
        page.say(kind="camera", position=[0.0, 0.0, 4.0], target=[0.0, 0.0, 0.0])
        await page.until(lambda: len(page.frames) == 3)
        assert (np.abs(picture_in(page.messages[-1]) - light).max(axis=2) > 40).mean() > 0.02
        assert [frame["step"] for frame in page.frames] == [0, 0, 0]
        assert len({frame["eyeVersion"] for frame in page.frames}) == 1, "the page has moved the camera itself"

    scenario(balls, body)


def test_a_page_that_draws_gets_the_scene_and_each_array_once():
    async def body(view, page):
        page.keeps_up = True
        page.say(kind="look", view="page", draws=False)
        page.say(kind="ready", view="page")
        await page.until(lambda: page.frames)
        page.say(kind="look", view="page", draws=True)
        await page.until(lambda: len(page.frames) == 2)
        scene = page.frames[-1]["scene"]
        assert [item["kind"] for item in scene["items"]] == ["spheres"] and len(scene["parts"]) == 3
        view.single_step()
        await page.until(lambda: len(page.frames) == 3)
        assert page.frames[-1]["scene"]["parts"] == [], "nothing has moved"
        page.say(kind="camera", position=[0.0, 0.0, 4.0], target=[0.0, 0.0, 0.0])
        view.pause()
        await page.until(lambda: len(page.frames) == 4)
        assert page.frames[-1]["scene"]["eye"]["position"] == (0.0, 0.0, 4.0), "the page needs no frame to turn"
        page.say(kind="ready", view="other")
        await page.until(lambda: len(page.frames) == 5)
        assert "picture" in page.frames[-1], "the other copy has not said that it can draw"
        page.say(kind="look", view="other", draws=True)
        await page.until(lambda: len(page.frames) == 6)
        assert len(page.frames[-1]["scene"]["parts"]) == 3, "it has nothing yet"

    scenario(lambda: balls(step=lambda: None), body)


def test_what_has_been_overtaken_is_not_believed():
    async def body(view, page):
        page.say(kind="ready", view="page")
        page.say(kind="look", view="page", draws=True, order=2)
        page.say(kind="look", view="page", draws=False, order=1)
        await page.until(lambda: page.frames and "scene" in page.frames[-1])
        assert view._page_draws()

    scenario(balls, body)


def many() -> Scene:
    return Scene(size=(120, 80)).particles(np.random.default_rng(0).random((MOST_POINTS + 1, 3), np.float32), 0.01)


def bright() -> Scene:
    view = balls()
    for n in range(MOST_LIGHTS + 1):
        view.point_light((n, -5.0, 5.0), (0.2, 0.2, 0.2))
    return view


@pytest.mark.parametrize(
    ("make", "reason"), [(many, "100,001 positions"), (bright, "9 lights, and a page has at most 8")]
)
def test_what_is_too_much_for_a_page_is_drawn_here_whatever_it_can(make, reason):
    async def body(view, page):
        page.say(kind="look", view="page", draws=True)
        page.say(kind="ready", view="page")
        await page.until(lambda: page.frames)
        assert picture_in(page.messages[-1]).shape == (80, 120, 3)
        assert page.frames[-1]["reason"].startswith(f"drawn by the kernel: {reason}")

    scenario(make, body)


def test_nothing_is_drawn_while_no_page_is_there():
    view = balls(step=lambda: None)
    view.advance(2)
    assert view.frames.last_frame is not None and view.frames.last_frame.buffers == []


def test_a_field_that_does_not_fit_any_more_stops_the_view():
    state = {"x": BALLS}

    class Growing:
        def to_numpy(self):
            return state["x"]

    view = Scene(size=(60, 60)).particles(Growing(), 0.1, per_vertex_color=np.zeros((2, 3)))
    state["x"] = np.zeros((3, 3), np.float32)
    with pytest.raises(ViewError, match="2 colours, and there are 3 particles"):
        view.advance()


def test_pictures_and_films_are_kept(tmp_path):
    x = BALLS.copy()

    def rise():
        x[:, 2] += 0.1

    view = Scene(rise, size=(120, 80), up="z", azimuth=0, elevation=0).particles(x, 0.3, color="#ff0000")
    view.snapshot(tmp_path / "scene.png")
    assert Image.open(tmp_path / "scene.png").size == (120, 80)
    view.snapshot(tmp_path / "scene.svg")
    (image,) = re.findall(r'href="data:image/png;base64,([^"]+)"', (tmp_path / "scene.svg").read_text())
    assert Image.open(io.BytesIO(base64.b64decode(image))).size == (120, 80)
    for ending in ("gif", "mp4", "webm"):
        path = tmp_path / f"scene.{ending}"
        view.record(path, frames=4, width=90)
        if ending == "gif":
            with Image.open(path) as film:
                frames = [np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(film)]
        else:
            reader = imageio_ffmpeg.read_frames(str(path))
            width, height = next(reader)["size"]
            frames = [np.frombuffer(frame, np.uint8).reshape(height, width, 3) for frame in reader]
        assert len(frames) == 5 and frames[0].shape == (60, 90, 3), ending
        red = [((frame[:, :, 0] > 100) & (frame[:, :, 2] < 80)).nonzero()[0] for frame in frames]
        heights = [float(rows.mean()) for rows in red if len(rows)]
        assert len(heights) > 2 and heights == sorted(heights, reverse=True) and heights[0] > heights[-1] + 2, ending
        view.change(lambda: x.__isub__([0.0, 0.0, 0.4]))
    data, _ = view._repr_mimebundle_()
    assert base64.b64decode(data["image/png"])[:4] == b"\x89PNG"


def test_axes_stand_around_what_there_was_at_first():
    x = np.array([[-1.0, 0.0, 0.0], [1.0, 4.0, 2.0]])
    view = Scene(grid=True, z_label="h [m]", size=(240, 200)).particles(x, 0.1)
    box = view.frames.present().message["box"]
    assert [axis["label"] for axis in box["axes"]] == ["x", "y", "h [m]"]
    low, high = np.array(box["bounds"]).T
    assert (low < x.min(axis=0) - 0.1).all() and (high > x.max(axis=0) + 0.1).all()
    x[1] = 40.0
    assert view.frames.present().message["box"] == box
    assert repr(view) == "<Scene: 1 thing in space>"
    plain = picture_of(Scene(size=(240, 200)).particles(x[:1], 0.1))
    assert (plain != picture_of(Scene(axes=True, size=(240, 200)).particles(x[:1], 0.1))).any()
    assert "box" not in Scene().particles(x, 0.1).frames.present().message
    view.z_label = ""
    assert [axis["label"] for axis in view.frames.present().message["box"]["axes"]] == ["x", "y", "z"]


def test_things_are_called_by_their_names_and_edges_of_the_box_are_none():
    view = Scene(axes=True, size=(200, 200)).particles([[0.0, 0.0, 0.0]], 1.0, name="the sun")
    view.lines([[-9, 0, 3], [9, 0, 3]], 3.0, name="the rods")
    view.frames.present()
    assert view.words_at(0.5, 0.45).startswith("the sun at (")
    seen = {view.words_at(across, up) for across in np.linspace(0, 1, 21) for up in np.linspace(0, 1, 21)}
    assert {words.split(" at ")[0] for words in seen} == {"", "the sun", "line 0 of the rods"}


def test_a_click_picks_what_is_seen_there():
    square = np.array([[-1, 0, -1], [1, 0, -1], [1, 0, 1], [-1, 0, 1]], np.float32)
    places = np.tile(np.eye(4), (2, 1, 1))
    places[1, 2, 3] = 5.0  # The second one stands above the first one.

    def made() -> Scene:
        view = Scene(size=(200, 200), up="z").camera((0.0, -12.0, 2.5), (0.0, 0.0, 2.5), fov=60.0)
        view.lines([[-3, -1, 0], [-2, -1, 5]], 2.0, [0, 1])
        view.mesh_instance(square, [0, 1, 2, 0, 2, 3], transforms=places)
        return view.particles([[9.0, 0, 0], [0.3, -2.0, 0.4], [0.3, 0, 0.4]], 0.3)

    def place(view: Scene, *point: float) -> list[float]:
        frame = framed(view._eye, 200, 200)
        x, y, depth = frame.view[:, :3] @ point + frame.view[:, 3]
        column, row = frame.center[0] - frame.across * x / depth, frame.center[1] + frame.upwards * y / depth
        return [column / 200, 1.0 - row / 200]

    async def body(view, page):
        changes: list[Any] = []
        view.observe(lambda change: changes.append(change["new"]), "picked")
        page.say(kind="ready", view="page")
        await page.until(lambda: page.frames)
        assert "picked" not in page.frames[-1]
        for point, expected, position in [
            ((0.3, -2.0, 0.4), ("particle", 1, 2, 0), (0.3, -2.3, 0.4)),
            ((0.5, 0.0, -0.9), ("triangle", 0, 1, 0), (0.5, 0.0, -0.9)),
            ((-0.5, 0.0, 5.9), ("triangle", 1, 1, 1), (-0.5, 0.0, 5.9)),
            ((-2.5, -1.0, 2.5), ("line", 0, 0, 0), (-2.5, -1.0, 2.5)),
        ]:
            count = len(page.frames)
            page.say(kind="pick", place=place(view, *point))
            await page.until(lambda count=count: len(page.frames) == count + 1)
            assert tuple(view.picked[:4]) == expected
            assert view.picked.position == pytest.approx(position, abs=0.12)
            # A mouse that rests there gets the same, without a frame.
            page.say(kind="hover", view="page", place=place(view, *point))
            await page.until(lambda: page.messages[-1][0]["kind"] == "hovered")
            hovered = {"kind": "hovered", "view": "page", "words": page.frames[-1]["picked"]}
            assert page.messages[-1][0] == hovered and len(page.frames) == count + 1
        assert page.frames[-2]["picked"].startswith("triangle 1 of copy 1 of thing 1 at (−0.5")
        assert page.frames[-1]["picked"].startswith("line 0 of thing 0 at (−2.49, ")
        page.say(kind="hover", view="page", place=[0.99, 0.99])
        await page.until(lambda: page.messages[-1][0].get("words") == "")
        assert view.picked.kind == "line"
        page.say(kind="pick", place=[0.99, 0.99])
        await page.until(lambda: "picked" not in page.frames[-1])
        assert view.picked is None and [change and change.kind for change in changes] == [
            "particle", "triangle", "triangle", "line", None,
        ]  # fmt: skip

    scenario(made, body)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Scene(up="x"), "up must be .* not 'x'"),
        (lambda: Scene(renderer="gpu"), "renderer must be .* not 'gpu'"),
        (lambda: Scene(controls="drive"), "controls must be .* not 'drive'"),
        (lambda: Scene().camera((0, 0, 0)), "the two points must differ"),
        (lambda: Scene().camera((0, 0)), "three finite numbers"),
        (lambda: Scene().camera((0, 0, 1), fov=0), "between 0 and 180"),
        (lambda: Scene().point_light((0, 0, np.nan), "white"), "three finite numbers"),
        (lambda: Scene().mesh(np.zeros((3, 3)), [0, 1, 3]), "there are 3 vertices"),
        (lambda: Scene().particles(np.zeros((3, 2)), 0.1), r"shape \(3, 2\)"),
    ],
)
def test_what_cannot_be_shown_is_refused_where_it_is_written(make, message):
    with pytest.raises(ViewError, match=message):
        make()
