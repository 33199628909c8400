"""Base of static views: their contents come with them, also as a page and picture, without requests to the kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import anywidget

from tinote.completion import Documented
from tinote.viz.notebook.front_end import Bundle, with_picture
from tinote.viz.notebook.page import page


class StaticView(Documented, anywidget.AnyWidget):
    """A widget whose state is all that its page shows. `TITLE`, `STYLES` and `SCRIPTS` are those of a page of its own,
    which calls `showPage`.
    """

    TITLE: ClassVar[str]
    STYLES: ClassVar[tuple[str, ...]]
    SCRIPTS: ClassVar[tuple[str, ...]]
    PICTURE_WIDTH: ClassVar[int] = 960

    def shown(self) -> dict[str, Any]:
        """What the page shows, by the names that its scripts know."""
        raise NotImplementedError

    def picture(self) -> bytes:
        """As a PNG file."""
        raise NotImplementedError

    def text(self) -> str:
        """As plain text."""
        raise NotImplementedError

    def save(self, path: str | Path) -> Path:
        """Write the view as one HTML page, for any browser, offline.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        Path
            Where the page is.

        Examples
        --------
        >>> x, y = (ti.field(ti.f64, shape=(), needs_grad=True) for _ in range(2))
        >>> @ti.kernel
        ... def square():
        ...     y[None] = x[None] ** 2
        >>> with ti.ad.Tape(y) as tape:
        ...     square()
        >>> ti.viz.gradients(tape).save("gradients.html").name
        'gradients.html'
        """
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.page_text(), encoding="utf-8")
        return path

    def page_text(self) -> str:
        """The text of that page."""
        return page(self.TITLE, self.STYLES, self.SCRIPTS, "showPage", self.shown())

    def _repr_mimebundle_(self, **_: Any) -> Bundle:  # type: ignore[override]
        # Drawn at twice its size, for sharp text.
        about = {"width": self.PICTURE_WIDTH, "alt": self.text()}
        return with_picture(super()._repr_mimebundle_, self.text(), self.picture, about, self.page_text)
