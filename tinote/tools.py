"""`ti.tools`: pictures, videos and meshes to and from files. What it holds is in `tinote.viz`."""

from tinote.viz.draw.ply import PLYWriter
from tinote.viz.draw.tools import imread, imresize, imshow, imwrite
from tinote.viz.draw.video import VideoManager

__all__ = ["PLYWriter", "VideoManager", "imread", "imresize", "imshow", "imwrite"]
