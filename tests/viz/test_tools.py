"""Images to and from files, indexed from the bottom left."""

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tinote as ti
from tinote.viz.draw.arrays import ViewError


def test_a_field_becomes_a_picture(tmp_path: Path) -> None:
    ti.init()
    image = ti.Vector.field(3, ti.f32, shape=(4, 3))
    image[0, 0] = [1, 0, 0]  # bottom left
    image[3, 2] = [0, 1, 0]  # top right
    ti.tools.imwrite(image, tmp_path / "new" / "a.png")
    with Image.open(tmp_path / "new" / "a.png") as picture:
        assert picture.size == (4, 3)
        assert picture.getpixel((0, 2)) == (255, 0, 0)
        assert picture.getpixel((3, 0)) == (0, 255, 0)


@pytest.mark.parametrize("shape", [(5, 3), (5, 3, 1), (5, 3, 3), (5, 3, 4)])
def test_what_is_written_is_read_back(shape: tuple[int, ...], tmp_path: Path) -> None:
    image = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    ti.tools.imwrite(image, str(tmp_path / "a.png"))
    found = ti.tools.imread(str(tmp_path / "a.png"))
    grey = image if image.ndim == 3 else image[:, :, None]
    expected = np.repeat(grey, 3, axis=2) if grey.shape[2] == 1 else grey
    np.testing.assert_array_equal(found, expected)
    assert ti.tools.imread(str(tmp_path / "a.png"), channels=1).shape == (5, 3, 1)


def test_a_photograph_has_no_transparency(tmp_path: Path) -> None:
    ti.tools.imwrite(np.ones((8, 8, 4)), tmp_path / "a.jpg")
    assert ti.tools.imread(tmp_path / "a.jpg").min() > 250


def test_resizing_takes_the_nearest_pixels() -> None:
    image = np.arange(6).reshape(3, 2)
    np.testing.assert_array_equal(ti.tools.imresize(image, 6, 4), image.repeat(2, 0).repeat(2, 1))
    np.testing.assert_array_equal(ti.tools.imresize(image, 3, 1), image[:, :1])
    assert ti.tools.imresize(np.zeros((4, 4, 3)), 2).shape == (2, 2, 3)


def test_what_is_no_image(tmp_path: Path) -> None:
    (tmp_path / "text.png").write_text("no picture")
    for wrong in (
        lambda: ti.tools.imwrite(np.zeros(3), tmp_path / "a.png"),
        lambda: ti.tools.imwrite(np.zeros((2, 2)), tmp_path / "a.unknown"),
        lambda: ti.tools.imread(tmp_path / "text.png"),
        lambda: ti.tools.imresize(np.zeros((2, 2)), 0),
    ):
        with pytest.raises(ViewError):
            wrong()


def test_a_video_of_frames(tmp_path: Path) -> None:
    class Inverted:
        def process(self, image: np.ndarray) -> np.ndarray:
            return 1.0 - image

    video = ti.tools.VideoManager(output_dir=tmp_path, framerate=20, post_processor=Inverted(), automatic_build=False)
    with pytest.raises(ViewError, match="no frames"):
        video.make_video()
    for shade in (0.0, 1.0, 0.5):
        video.write_frame(np.full((8, 6), shade))
    assert (ti.tools.imread(Path(video.get_frame_directory()) / "000001.png") == 0).all()
    video.make_video(gif=True, mp4=False)
    with Image.open(video.get_output_filename(".gif")) as picture:
        assert (picture.size, picture.n_frames, picture.info["duration"]) == ((8, 6), 3, 50)
    video.clean_frames()
    assert list(Path(video.get_frame_directory()).iterdir()) == []


def test_a_video_without_its_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    video = ti.tools.VideoManager(tmp_path)
    video.write_frames([np.zeros((4, 4))])
    with pytest.raises(ViewError, match="ffmpeg"):
        video.make_video(gif=False)


def test_a_mesh_as_text_and_binary(tmp_path: Path) -> None:
    ti.init()
    x = ti.Vector.field(3, ti.f32, shape=3)
    x.from_numpy(np.array([[0, 0, 0], [0.1, 0, 0], [0, 0.2, 0.5]], np.float32))
    pos = x.to_numpy()
    mesh = ti.tools.PLYWriter(num_vertices=3, num_faces=1, comment="a triangle")
    mesh.add_vertex_pos(pos[:, 0], pos[:, 1], pos[:, 2])
    mesh.add_vertex_id()
    mesh.add_faces(np.array([0, 1, 2]))
    mesh.add_face_channel("mass", "double", [2.5])
    mesh.export_frame_ascii(12, tmp_path / "new" / "mesh.ply")
    assert (tmp_path / "new" / "mesh_000012.ply").read_text().splitlines() == [
        "ply",
        "format ascii 1.0",
        "comment a triangle",
        "element vertex 3",
        "property float x",
        "property float y",
        "property float z",
        "property int id",
        "element face 1",
        "property list uchar int vertex_indices",
        "property double mass",
        "end_header",
        "0.0 0.0 0.0 0",
        "0.1 0.0 0.0 1",
        "0.0 0.2 0.5 2",
        "3 0 1 2 2.5",
    ]
    mesh.export(tmp_path / "mesh.ply")
    head, body = (tmp_path / "mesh.ply").read_bytes().split(b"end_header\n")
    assert b"format binary_little_endian 1.0" in head
    assert len(body) == 3 * 16 + 1 + 12 + 8
    assert np.frombuffer(body, "<f4", 3, 16).tolist() == pos[1].tolist()
    assert np.frombuffer(body, "<i4", 3, 49).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda mesh: mesh.add_vertex_pos([0.0], [0.0], [0.0]), "numbers instead of 2"),
        (lambda mesh: mesh.add_faces([0, 1, 2]), "2 vertices"),
        (lambda mesh: mesh.add_faces([0, 1]), "3 corners"),
        (lambda mesh: mesh.add_vertex_channel("a", "half", [0, 1]), "no type"),
        (lambda mesh: mesh.export("never.ply"), "add_vertex_pos"),
        (lambda mesh: (mesh.add_vertex_id(), mesh.export("never.ply")), "add_faces"),
        (lambda mesh: ti.tools.PLYWriter(0), "0 vertices"),
        (lambda mesh: ti.tools.PLYWriter(3, 1, "pentagon"), "pentagon"),
    ],
)
def test_a_mesh_that_does_not_fit(wrong, message) -> None:
    with pytest.raises(ViewError, match=message):
        wrong(ti.tools.PLYWriter(2, 1))


def test_colours_as_one_number_and_back() -> None:
    assert ti.rgb_to_hex((1.0, 0.5, 0.0)) == 0xFF7F00
    assert ti.rgb_to_hex(np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, 1.0]])).tolist() == [0xFF0000, 0x00FFFF]
    assert ti.hex_to_rgb(0xFF0033) == (1.0, 0.0, 0.2)
