"""`ti.tools`: images, videos and meshes to and from files."""

import sys
from functools import partial
from typing import TYPE_CHECKING

from tinote.lang.session.missing import refusing
from tinote.viz.draw import ply as np2ply
from tinote.viz.draw import tools as image
from tinote.viz.draw import video
from tinote.viz.draw.ply import PLYWriter
from tinote.viz.draw.tools import imread, imresize, imshow, imwrite
from tinote.viz.draw.video import VideoManager

__all__ = ["PLYWriter", "VideoManager", "imread", "imresize", "imshow", "imwrite"]

# `from tinote.tools.image import imread`: the dialect has a module for each kind of files.
for _name, _module in (("image", image), ("np2ply", np2ply), ("video", video)):
    sys.modules[f"{__name__}.{_name}"] = _module


if not TYPE_CHECKING:  # a type checker would take every name for one that is there
    __getattr__ = refusing(__name__)

__dir__ = partial(sorted, __all__)
