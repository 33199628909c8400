"""A stand-in for the browser, for tests of the live views."""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
from PIL import Image

__all__ = ["Page", "picture_of", "scenario"]


class Page:
    """Keeps what was sent, and acknowledges when asked."""

    def __init__(self, view: Any):
        self.view = view
        self.messages: list[tuple[dict, list]] = []
        self.keeps_up = False
        view.send = self.receive

    def receive(self, content, buffers=None):
        self.messages.append((content, buffers))
        if self.keeps_up and content["kind"] == "frame":
            self.say(kind="ack", frame=content["frame"])

    @property
    def frames(self):
        return [message for message, _ in self.messages if message["kind"] == "frame"]

    def say(self, **message):
        self.view._receive(None, message, [])

    async def until(self, condition, seconds=300.0):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "timed out"
            await asyncio.sleep(0.002)


def scenario(make: Callable[[], Any], body: Callable[[Any, Page], Awaitable[Any]]) -> Any:
    """Run `await body(view, page)` with the view that `make()` gives inside of a loop."""

    async def run():
        view = make()
        page = Page(view)
        try:
            return await body(view, page)
        finally:
            view.close()

    return asyncio.run(run())


def picture_of(view: Any) -> np.ndarray:
    """The view's static picture: (height, width, 3), int."""
    return np.asarray(Image.open(io.BytesIO(view.picture())).convert("RGB")).astype(int)
