"""Frames as a video: GIF by Pillow; MP4 (H.264) and WebM (VP9) by the program ffmpeg."""

from __future__ import annotations

import importlib
import io
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from PIL import Image

from tinote.viz.draw.arrays import ViewError

# H.264 and VP9 in the form that browsers play need even sizes.
_EVEN = ["-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-pix_fmt", "yuv420p"]
_ENCODERS = {
    ".mp4": ["-c:v", "libx264", "-crf", "18", "-movflags", "+faststart"],
    ".webm": ["-c:v", "libvpx-vp9", "-crf", "24", "-b:v", "0", "-row-mt", "1"],
}
#: The extensions of files that videos are written to.
FORMATS = (".gif", *_ENCODERS)


def as_gif(frames: Sequence[np.ndarray], frames_per_second: float) -> bytes:
    """Frames, uint8 of shape (height, width, 3), as a GIF. Its clock counts hundredths of a second, and browsers slow
    down what is faster than 50 frames a second: a delay is rounded, and at least two hundredths. All frames share the
    256 colours of a sample of them, so that still parts do not flicker. Raises `ViewError` for no frames.
    """
    if not frames:
        raise ViewError("there are no frames yet", hint="record while the view plays")
    _check_rate(frames_per_second)
    sample = np.concatenate(frames[:: max(1, len(frames) // 4)][:4])
    palette = Image.fromarray(sample).quantize(256)
    pictures = [Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    buffer = io.BytesIO()
    delay = max(2, round(100 / frames_per_second)) * 10
    pictures[0].save(buffer, "GIF", save_all=True, append_images=pictures[1:], duration=delay, loop=0)
    return buffer.getvalue()


def check_film(path: Path, frames_per_second: float) -> None:
    """Raise `ViewError` for a video that cannot be written: before its frames are computed."""
    _check_rate(frames_per_second)
    ending = path.suffix.lower()
    if ending not in FORMATS:
        raise ViewError(
            f"{path.name}: a video's name does not end in {path.suffix or 'nothing'}",
            hint=f"use one that ends in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}",
        )
    if ending in _ENCODERS:
        _ffmpeg(ending)


def write_film(path: Path, frames: Iterable[np.ndarray], frames_per_second: float) -> int:
    """Write frames, uint8 of shape (height, width, 3), to a video in the format that the extension names; missing
    folders are created, and an existing file is replaced only once the video is complete. Returns the file's size in
    bytes. MP4 and WebM hold one frame at a time. Raises `ViewError` for an unknown format, where ffmpeg is missing or
    fails, and for no frames.
    """
    check_film(path, frames_per_second)
    path.parent.mkdir(parents=True, exist_ok=True)
    ending = path.suffix.lower()
    if ending == ".gif":
        return path.write_bytes(as_gif(list(frames), frames_per_second))
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".film-") as folder:
        made = Path(folder) / f"film{ending}"
        _encode(made, ending, frames, frames_per_second)
        os.replace(made, path)
    return path.stat().st_size


def _check_rate(frames_per_second: float) -> None:
    if not frames_per_second > 0:
        raise ViewError(f"frames_per_second must be positive, not {frames_per_second}")


def _ffmpeg(ending: str) -> str:
    """The program: on the PATH, else that of the library imageio-ffmpeg. Raises `ViewError`."""
    found = shutil.which("ffmpeg")
    if found is not None:
        return found
    try:
        return importlib.import_module("imageio_ffmpeg").get_ffmpeg_exe()
    except (ImportError, RuntimeError):
        name = ending[1:].upper().replace("WEBM", "WebM")
        raise ViewError(
            f"{'an' if name == 'MP4' else 'a'} {name} needs the program ffmpeg, which is not installed",
            hint="install it, or `pip install imageio-ffmpeg`; a GIF needs nothing",
        ) from None


def _encode(path: Path, ending: str, frames: Iterable[np.ndarray], frames_per_second: float) -> None:
    rest = iter(frames)
    first = next(rest, None)
    if first is None:
        raise ViewError("there are no frames yet", hint="record while the view plays")
    height, width = first.shape[:2]
    source = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", str(frames_per_second), "-i", "-"]
    command = [_ffmpeg(ending), "-y", "-loglevel", "error", *source, *_ENCODERS[ending], *_EVEN, str(path)]
    with (
        tempfile.TemporaryFile() as complaints,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=complaints) as encoder,
    ):
        assert encoder.stdin is not None
        try:
            for frame in chain([first], rest):
                encoder.stdin.write(np.ascontiguousarray(frame, np.uint8).data)
            encoder.stdin.close()
        except BrokenPipeError:
            pass  # It has ended early; its own message is reported below.
        except BaseException:
            encoder.kill()
            raise
        if encoder.wait():
            complaints.seek(0)
            raise ViewError(f"ffmpeg failed: {complaints.read().decode(errors='replace').strip()}")
