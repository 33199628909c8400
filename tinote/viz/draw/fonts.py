"""The font of pictures: DejaVu, which has Greek letters, signs and superscripts; the copy that comes with matplotlib
(which need not be imported for that).
"""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path

from PIL import ImageFont


@functools.cache
def font(size: float, *, bold: bool = False, code: bool = False) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """The font in `size` pixels; `code`: with letters of one width."""
    found = importlib.util.find_spec("matplotlib")
    folder = Path(found.origin).parent / "mpl-data/fonts/ttf" if found and found.origin else Path()
    file = folder / f"DejaVuSans{'Mono' if code else ''}{'-Bold' if bold else ''}.ttf"
    return ImageFont.truetype(str(file), size) if file.exists() else ImageFont.load_default(size)
