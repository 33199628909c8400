"""Progress bars: text on the standard error if that is a terminal, unless a front end has set another way to draw."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tqdm.std import tqdm

SECONDS_BEFORE_A_BAR = 2.0
"""What is over sooner needs none."""

_kind: Callable[[], type[tqdm[Any]]] | None = None


def draw_bars_with(kind: Callable[[], type[tqdm[Any]]] | None) -> None:
    """From now on bars are of the class that `kind()` gives when one begins; None: of text."""
    global _kind
    _kind = kind


def bar(items: Iterable[Any] | None, what: str, *, total: int | None = None, shown: bool = True) -> tqdm[Any]:
    """A bar of tqdm over the items, or over `total` updates, with `what` before it; it is gone at the end."""
    # Loaded for the first bar: loading takes a fifth of the time of a first gradient.
    text = importlib.import_module("tqdm.std").tqdm
    drawn = text if _kind is None else _kind()
    # None: on terminals only, so that no log or pipe holds a bar.
    off = not shown or (None if drawn is text else False)
    return drawn(items, total=total, desc=what, delay=SECONDS_BEFORE_A_BAR, leave=False, disable=off)
