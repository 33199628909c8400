"""`VideoManager`: frames of a simulation as numbered pictures, and as a GIF or MP4."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tinote.viz.draw.arrays import ViewError
from tinote.viz.draw.film import write_film
from tinote.viz.draw.tools import imwrite


class VideoManager:
    """Writes frames into a folder, and makes videos of them.

    Parameters
    ----------
    output_dir : path
        The folder; frames are in its folder `frames`.
    video_filename : str, optional
        The name of the videos, without ending.
    width, height : int, optional
        Accepted, and without effect.
    post_processor : object, optional
        Its `process` changes each frame first.
    framerate : float, default 24
        Frames per second.
    automatic_build : bool, default True
        Accepted, and without effect.

    Examples
    --------
    >>> import numpy as np
    >>> video = ti.tools.VideoManager("video", framerate=10)
    >>> for i in range(3):
    ...     video.write_frame(np.full((16, 16), i / 3))
    >>> video.make_video(mp4=False)
    >>> video.frame_counter
    3
    """

    def __init__(
        self,
        output_dir: str | Path,
        video_filename: str | None = None,
        width: int | None = None,
        height: int | None = None,
        post_processor: Any = None,
        framerate: float = 24,
        automatic_build: bool = True,
    ) -> None:
        del width, height, automatic_build
        if framerate <= 0:
            raise ViewError(f"framerate must be a number of frames a second, not {framerate}")
        self.directory = Path(output_dir)
        self.frame_counter = 0
        self.framerate = framerate
        self._name = video_filename or "video"
        self._process: Callable[[Any], Any] = (
            (lambda image: image) if post_processor is None else post_processor.process
        )

    def get_frame_directory(self) -> str:
        """The folder of the frames.

        Returns
        -------
        str
            Its path.
        """
        return str(self.directory / "frames")

    def get_output_filename(self, suffix: str) -> str:
        """The file of the video with an ending.

        Parameters
        ----------
        suffix : str
            The ending, such as ".gif".

        Returns
        -------
        str
            The file.

        Examples
        --------
        >>> from pathlib import Path
        >>> video = ti.tools.VideoManager("video")
        >>> Path(video.get_output_filename(".gif")).name
        'video.gif'
        """
        return str(self.directory / f"{self._name}{suffix}")

    def _frame(self, number: int) -> Path:
        return Path(self.get_frame_directory()) / f"{number:06d}.png"

    def write_frame(self, img: Any) -> None:
        """Write the next frame.

        Parameters
        ----------
        img : Field or array_like, shape (width, height[, channels])
            The image, as `ti.tools.imwrite` takes it.

        Examples
        --------
        >>> from pathlib import Path
        >>> import numpy as np
        >>> video = ti.tools.VideoManager("video")
        >>> video.write_frame(np.zeros((32, 32)))
        >>> len(list(Path(video.get_frame_directory()).iterdir()))
        1
        """
        imwrite(self._process(img), self._frame(self.frame_counter))
        self.frame_counter += 1

    def write_frames(self, images: Iterable[Any]) -> None:
        """Write several frames.

        Parameters
        ----------
        images : iterable of images
            As for `write_frame`.

        Examples
        --------
        >>> from pathlib import Path
        >>> import numpy as np
        >>> video = ti.tools.VideoManager("video", framerate=10)
        >>> video.write_frames(np.full((32, 32), 0.1 * n) for n in range(3))
        >>> len(list(Path(video.get_frame_directory()).iterdir()))
        3
        """
        for image in images:
            self.write_frame(image)

    def clean_frames(self) -> None:
        """Delete the frames' files, and begin with the first again."""
        for number in range(self.frame_counter):
            self._frame(number).unlink(missing_ok=True)
        self.frame_counter = 0

    def make_video(self, gif: bool = True, mp4: bool = True) -> None:
        """Make videos of the frames so far.

        Parameters
        ----------
        gif : bool, default True
            Make a GIF.
        mp4 : bool, default True
            Make an MP4, which needs the program ffmpeg.

        Raises
        ------
        ViewError
            Without ffmpeg, after the GIF has been written, and where there are no frames.

        Examples
        --------
        >>> from pathlib import Path
        >>> import numpy as np
        >>> video = ti.tools.VideoManager("video")
        >>> video.write_frame(np.zeros((32, 32)))
        >>> video.make_video(gif=True, mp4=False)
        >>> Path(video.get_output_filename(".gif")).is_file()
        True
        """
        if not self.frame_counter:
            raise ViewError("there are no frames yet", hint="write some: write_frame(image)")
        for ending, wanted in ((".gif", gif), (".mp4", mp4)):
            if wanted:
                frames = (np.asarray(Image.open(self._frame(n)).convert("RGB")) for n in range(self.frame_counter))
                write_film(Path(self.get_output_filename(ending)), frames, self.framerate)
