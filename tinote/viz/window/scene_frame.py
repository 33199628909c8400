"""A frame of a window that a page may draw itself: what is below the scene, the scene, and the controls above it."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
from PIL import Image

from tinote.viz.draw.pictures import Picture
from tinote.viz.notebook.view import Frame
from tinote.viz.space.camera import Eye
from tinote.viz.space.content import Content
from tinote.viz.space.parts import SceneSender, obstacle
from tinote.viz.space.rasterise import Rasteriser, fineness
from tinote.viz.window.controls import Panel


def draw_scene(picture: Picture, content: Content, eye: Eye, rasteriser: Rasteriser) -> None:
    """Draw a scene over what a picture shows."""
    size = (picture.width, picture.height)
    picture.pixels[:] = rasteriser.draw(content, eye, size, picture.pixels, fineness(content, size))


class SceneFrame:
    """`below`: what was drawn before the scene; it becomes the picture of the frame when that is asked for."""

    def __init__(
        self, below: Picture, content: Content, eye: Eye, panels: Sequence[Panel], rasteriser: Rasteriser
    ) -> None:
        self._below = below
        self._content = content
        self._eye = eye
        self._panels = panels
        self._rasteriser = rasteriser
        self._is_drawn = False

    def picture(self) -> Picture:
        """The frame as a picture, drawn here."""
        if not self._is_drawn:
            self._is_drawn = True
            draw_scene(self._below, self._content, self._eye, self._rasteriser)
            for panel in self._panels:
                panel.paint(self._below)
        return self._below

    def for_page(self, sender: SceneSender) -> Frame | None:
        """What a page needs to draw the frame: the scene, and last the controls as a transparent picture, if there are
        any. None where it cannot: the scene is too large, or lies over more than one colour.
        """
        paper = self._below.pixels
        if self._is_drawn or obstacle(self._content) or (paper != paper[0, 0]).any():
            return None
        frame = sender.frame(self._content, self._eye)
        message = {**frame.message, "paper": "#" + bytes(paper[0, 0]).hex()}
        above = self._above()
        return Frame({**message, "above": above is not None}, [*frame.buffers, *([] if above is None else [above])])

    def _above(self) -> bytes | None:
        """The controls as a PNG file with the transparency that they have."""
        size = (self._below.width, self._below.height)
        on_black, on_white = Picture(*size), Picture(*size, (255, 255, 255))
        for panel in self._panels:
            panel.paint(on_black)
            panel.paint(on_white)
        # What is opaque is the same on both, what is not there differs by all of 255.
        lets_through = (on_white.pixels.astype(np.int16) - on_black.pixels).max(axis=2)
        if (lets_through == 255).all():
            return None
        opacity = 255 - lets_through
        colors = on_black.pixels.astype(np.float32) * (255.0 / np.maximum(opacity, 1))[:, :, None]
        layer = np.dstack([colors.clip(0, 255), opacity]).astype(np.uint8)
        buffer = io.BytesIO()
        Image.fromarray(layer).save(buffer, "PNG", compress_level=1)
        return buffer.getvalue()
