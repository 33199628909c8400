"""The scripts and the data of a page with running views."""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from tinote.lang.data.nests import map_leaves
from tinote.viz.notebook.page import compact
from tinote.viz.notebook.view import VIEW_SCRIPTS, static_source

ENGINE = (
    "engine/program.js",
    "draw/scale.js",
    "draw/chart.js",
    "draw/strokes.js",
    "engine/sources.js",
    "engine/engine.js",
)
ON_GPU = ("engine/program_gpu.js",)
"""What a Worker runs besides where a program has shaders."""

ENGINES = {
    "particles": ("engine/marks.js", "engine/particles.js"),
    "image": ("engine/marks.js", "engine/image.js"),
    "plot": (),
    "scene": ("draw/camera.js", "engine/scene.js", "engine/picking.js"),
}
"""What a Worker runs: for all views, and by the kind of view."""

OWN = {
    "particles": ("views/particles.js",),
    "image": ("views/image.js",),
    "plot": ("views/running_plot.js",),
    "scene": ("draw/space.js", "views/scene.js"),
}
"""The scripts of the widgets, by the kind of view."""

#: What a Worker runs, and what paints, besides where particles are in space.
IN_SPACE = "engine/space.js"
BOX = ("draw/camera.js", "draw/box.js")


def engine_files(kinds: Iterable[str], *, gpu: bool = False, space: bool = False) -> tuple[str, ...]:
    """The files of what a Worker runs for views of these kinds; `gpu`: some of them have shaders; `space`: particles
    of some are in space.
    """
    further = (*(ON_GPU if gpu else ()), *((IN_SPACE,) if space else ()))
    return (*ENGINE, *further, *dict.fromkeys(file for kind in sorted(kinds) for file in ENGINES[kind]))


def engine_script(kinds: Iterable[str], *, gpu: bool = False, space: bool = False) -> list[str]:
    """What a Worker runs, in parts: one script, no module."""
    return [*(compact(static_source(file)) for file in engine_files(kinds, gpu=gpu, space=space)), "serve();"]


def page_script(kinds: Collection[str], *, controls: bool = True, space: bool = False) -> list[str]:
    """What paints views of these kinds and lets them run, in parts: the scripts of the widgets, and their model;
    `controls`: some of them have controls; `space`: particles of some are in space.
    """
    shared = (*VIEW_SCRIPTS, "draw/strokes.js", *(BOX if space or "scene" in kinds else ()))
    parts = [compact(static_source(file)) for file in shared]
    parts.append("const VIEWS = {};")
    for kind in sorted(kinds):
        # A block keeps apart what scripts of two kinds call by one name.
        own = re.sub(r"^export default", f"VIEWS.{kind} =", static_source(*OWN[kind]), flags=re.MULTILINE)
        parts.append(f"{{\n{compact(own)}\n}}")
    parts += [
        compact(static_source("draw/gif.js", "pages/model.js")),
        *([compact(static_source("pages/controls.js"))] if controls else []),
        compact(static_source("pages/page.js")),
        'NOTICES.waiting = "starting";',
    ]
    return apart([*parts, "startPage(globalThis.tinote);"])


def apart(parts: Sequence[str]) -> list[str]:
    """A script whose names are its own."""
    return ["(() => {", '"use strict";', *parts, "})();"]


def joined(parts: Sequence[str]) -> str:
    """A script of its parts, as the page joins them."""
    return "\n".join(parts)


def page_data(script: Sequence[str], engine: Sequence[str], views: Sequence[Any], styles: str) -> str:
    """What a page holds: its script and the engine as the numbers of their parts, some of which they share, views and
    their styles.
    """
    texts = list(dict.fromkeys((*script, *engine)))
    numbers = {name: [texts.index(part) for part in one] for name, one in (("script", script), ("engine", engine))}
    return payload({"texts": texts, **numbers, "views": views, "styles": styles})


def payload(data: Any) -> str:
    """`data`, in which bytes may stand, as `payload` of `static/pages/page.js` reads it: compressed, in base 64."""
    parts: list[bytes] = []

    def named(value: Any) -> Any:
        if isinstance(value, bytes | bytearray | memoryview):
            parts.append(bytes(value))
            return {"$bytes": [sum(map(len, parts[:-1])), len(parts[-1])]}
        return value

    text = json.dumps(map_leaves(named, data), separators=(",", ":"), allow_nan=False).encode()
    packed = zlib.compress(b"".join([struct.pack("<I", len(text)), text, *parts]), 9)
    return base64.b64encode(packed).decode()


def unpacked(text: str, most: int = 1 << 31) -> Any:
    """What `payload` was given, tuples as lists. Raises `ValueError` for what it has not made, or is larger than `most`
    bytes.
    """
    try:
        return _unpacked(text, most)
    except (zlib.error, struct.error, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"this is damaged: {error}") from error


def _unpacked(text: str, most: int) -> Any:
    reader = zlib.decompressobj()
    packed = reader.decompress(base64.b64decode(text, validate=True), most)
    if not reader.eof:
        raise ValueError("this is damaged, or too large")
    (length,) = struct.unpack_from("<I", packed)
    parts = packed[4 + length :]

    def bytes_of(value: dict[str, Any]) -> Any:
        begin, count = value.get("$bytes", (0, -1))
        return value if count < 0 else parts[begin : begin + count]

    return json.loads(packed[4 : 4 + length], object_hook=bytes_of)
