"""Films and pictures of views: the formats that names ask for, and what is said where one cannot be written."""

from __future__ import annotations

import importlib
import itertools
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image

from tinote.viz import Image as ViewOfField
from tinote.viz import Particles, Scene
from tinote.viz.draw.arrays import ViewError
from tinote.viz.draw.chart import CHART_HEIGHT
from tinote.viz.draw.film import write_film

SIGNATURES = {".gif": (0, b"GIF89a"), ".mp4": (4, b"ftyp"), ".webm": (0, b"\x1a\x45\xdf\xa3")}


def shades(count: int, width: int = 30, height: int = 20) -> list[np.ndarray]:
    return [np.full((height, width, 3), 255 * n // max(1, count - 1), np.uint8) for n in range(count)]


def decoded(path: Path) -> list[np.ndarray]:
    reader = imageio_ffmpeg.read_frames(str(path))
    width, height = next(reader)["size"]
    return [np.frombuffer(frame, np.uint8).reshape(height, width, 3) for frame in reader]


@pytest.mark.parametrize("ending", SIGNATURES)
def test_a_film_is_in_the_format_that_its_name_says(tmp_path: Path, ending: str) -> None:
    path = tmp_path / "made" / f"run{ending}"
    size = write_film(path, iter(shades(6)), 12.5)
    at, signature = SIGNATURES[ending]
    data = path.read_bytes()
    assert data[at : at + len(signature)] == signature and size == len(data)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    if ending != ".gif":
        frames = decoded(path)
        assert [round(float(frame.mean()) / 51) for frame in frames] == [0, 1, 2, 3, 4, 5]
        assert frames[0].shape == (20, 30, 3)
        assert imageio_ffmpeg.count_frames_and_secs(str(path))[1] == pytest.approx(6 / 12.5, abs=0.1)


def test_odd_sizes_are_padded(tmp_path: Path) -> None:
    write_film(tmp_path / "odd.mp4", shades(3, 31, 21), 25)
    assert decoded(tmp_path / "odd.mp4")[0].shape == (22, 32, 3)


@pytest.mark.parametrize("name", ["run.avi", "run", "run.png"])
def test_other_names_are_refused_before_a_frame_is_made(tmp_path: Path, name: str) -> None:
    def never():
        raise AssertionError("a frame was asked for")
        yield

    with pytest.raises(ViewError, match="a video's name does not end in") as refused:
        write_film(tmp_path / name, never(), 25)
    assert ".gif, .mp4 or .webm" in str(refused.value.hint)
    assert list(tmp_path.iterdir()) == []


def test_without_an_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(ViewError, match="a WebM needs the program ffmpeg") as refused:
        write_film(tmp_path / "run.webm", shades(2), 25)
    assert "pip install imageio-ffmpeg" in str(refused.value.hint)


def test_what_was_there_stays_when_a_film_fails(tmp_path: Path) -> None:
    path = tmp_path / "run.mp4"
    path.write_bytes(b"earlier")

    def broken():
        yield from shades(2)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_film(path, broken(), 25)
    with pytest.raises(ViewError, match="no frames"):
        write_film(path, [], 25)
    assert path.read_bytes() == b"earlier" and list(tmp_path.iterdir()) == [path]


def test_ffmpeg_says_why_it_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(importlib.import_module("tinote.viz.draw.film")._ENCODERS, ".mp4", ["-c:v", "no-such-codec"])
    with pytest.raises(ViewError, match=r"ffmpeg failed: .*no-such-codec"):
        write_film(tmp_path / "run.mp4", shades(40, 640, 480), 25)
    assert list(tmp_path.iterdir()) == []


def test_a_view_makes_a_film_of_a_given_width(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.array([[0.1, 0.5]])
    count = itertools.count()

    def step() -> None:
        next(count)
        x[:, 0] += 0.2

    view = Particles(x, step, radius=8, color=0xFF0000, size=60, bounds=((0, 1), (0, 1)))
    view.record(tmp_path / "run.mp4", frames=4, frames_per_second=10, width=120)
    frames = decoded(tmp_path / "run.mp4")
    assert len(frames) == 5 and frames[0].shape == (120, 120, 3)
    columns = [float(np.mean(np.nonzero(frame[60, 2:-2, 1] < 128)[0])) for frame in frames]
    assert columns == sorted(columns) and columns[-1] - columns[0] == pytest.approx(96, abs=6)
    assert capsys.readouterr().out.startswith(f"{tmp_path / 'run.mp4'}: 5 frames, ")
    before = next(count)
    for name, more, complaint in [("run.avi", {}, "does not end"), ("run.mp4", {"width": 4}, "pixels, not 4")]:
        with pytest.raises(ViewError, match=complaint):
            view.record(tmp_path / name, frames=3, **more)
    assert next(count) == before + 1, "no step was taken for what cannot be written"


@pytest.mark.parametrize("name", ["now.pdf", "now", "now.gif", "now.mp4"])
def test_a_snapshot_is_a_picture(tmp_path: Path, name: str) -> None:
    view = Particles(np.zeros((1, 2)), size=40)
    with pytest.raises(ViewError, match="a picture's name does not end in") as refused:
        view.snapshot(tmp_path / name)
    assert ".png, .jpg" in str(refused.value.hint) and ".svg" in str(refused.value.hint)
    view.snapshot(tmp_path / "now.webp")
    assert Image.open(tmp_path / "now.webp").size == (40, 40)


def finer_views() -> dict[str, Any]:
    """Views of each kind: discs, strokes, light, texts, cells, covers and scenes."""
    rng = np.random.default_rng(0)
    plane, space = rng.random((40, 2)), rng.random((100, 3)).astype(np.float32)
    axes = {"size": 160, "axes": True, "x_label": "x (m)"}
    scene = Scene(**axes)
    scene.particles(space, radius=0.05)
    scene.lines(space[:2], width=3)
    return {
        "marks": Particles(plane, arrows=plane / 10, edges=[[0, 1]], energy=lambda: 2.0, **axes),
        "light": Particles(plane, glow=True, size=160),
        "cells": ViewOfField(rng.random((12, 9)), contours=4, size=160, color_label="u"),
        "space": Particles(space, color=rng.random(100), cmap="plasma", **axes),
        "cover": Particles(rng.random((200_000, 3)), size=160),
        "scene": scene,
    }


@pytest.mark.parametrize("name", finer_views())
def test_a_snapshot_with_more_pixels_shows_the_same_more_finely(tmp_path: Path, name: str) -> None:
    view = finer_views()[name]
    for scale in (1, 3):
        view.snapshot(tmp_path / f"{scale}.png", scale=scale)
    usual, finer = (np.asarray(Image.open(tmp_path / f"{scale}.png"), float) for scale in (1, 3))
    rows, columns = usual.shape[:2]
    assert finer.shape == (3 * rows, 3 * columns, 3)
    blocks = finer.reshape(rows, 3, columns, 3, 3)
    assert np.abs(blocks.mean(axis=(1, 3)) - usual).mean() < 3.0
    # Not each pixel repeated, but for what is a picture in the page, too.
    assert (blocks.std(axis=(1, 3)).max(axis=-1) > 10.0).mean() > (0.0 if name == "cover" else 0.01)
    with pytest.raises(ViewError, match="scale must be from 1 to 8, not 9"):
        view.snapshot(tmp_path / "9.png", scale=9)


def elements(view: Any, path: Path) -> dict[str, list[ElementTree.Element]]:
    """The elements of a view's SVG file, by their names."""
    view.snapshot(path)
    found: dict[str, list[ElementTree.Element]] = {}
    for element in ElementTree.parse(path).iter():
        found.setdefault(element.tag.rpartition("}")[2], []).append(element)
    return found


def test_a_vector_graphic_keeps_marks_and_the_plot_and_embeds_what_has_pixels(tmp_path: Path) -> None:
    points = np.array([[0.25, 0.75], [0.5, 0.5], [np.nan, 0.0]])
    view = Particles(
        points, lambda: None, size=200, radius=5, color=np.array([[255, 0, 0], [0, 0, 255], [0, 0, 0]], np.uint8),
        edges=[[0, 1]], arrows=np.full((3, 2), 0.1), trail=3, energy=lambda: 2.0,
    )  # fmt: skip
    view.advance(2)
    found = elements(view, tmp_path / "new" / "particles.svg")
    root = found["svg"][0]
    assert (root.get("width"), root.get("height")) == ("200", str(200 + CHART_HEIGHT))
    discs = [(circle.get("cx"), circle.get("cy"), circle.get("fill")) for circle in found["circle"]]
    assert discs == [("50", "50", "#ff0000"), ("100", "100", "#0000ff")]
    (edge,) = [path for path in found["path"] if path.get("stroke-width") == "1.5"]
    assert edge.get("d") == "M50 50L100 100"
    assert len(found["polygon"]) >= 4, "two arrows of two parts each"
    assert {"energy", "step"} <= {text.text for text in found["text"]} and found["polyline"]
    assert "image" not in found
    # A density has pixels, as have the cells of a field, whose contours are lines.
    many = Particles(np.random.default_rng(0).random((150_001, 2)), size=60)
    assert len(elements(many, tmp_path / "many.svg")["image"]) == 1
    x, y = np.meshgrid(np.linspace(-1, 1, 30), np.linspace(-1, 1, 30), indexing="ij")
    field = elements(ViewOfField(x * x + y * y, contours=4, size=90, color_label="a < b"), tmp_path / "field.svg")
    assert len(field["image"]) == 2 and len(field["path"]) > 20, "the cells and the colour bar"
    assert "a < b" in {text.text for text in field["text"]}
