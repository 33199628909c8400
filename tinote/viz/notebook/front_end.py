"""Detection of the front end: an interactive notebook, a program that executes one, or none.

A view cannot ask the page before its cell has ended, so this is decided from what the kernel knows: a program that
executes notebooks (nbclient, nbval, papermill) says in its request that nobody is there to answer a prompt.
`TINOTE_HEADLESS=1` forces the answer "nobody", `TINOTE_HEADLESS=0` "a person".
"""

from __future__ import annotations

import base64
import contextlib
import contextvars
import enum
import os
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from IPython.core.getipython import get_ipython

from tinote.viz.draw.arguments import checked
from tinote.viz.draw.arrays import ViewError
from tinote.viz.draw.pictures import CARD_MARGIN, captioned

#: What IPython displays: data by MIME type, and metadata.
Bundle = tuple[dict[str, Any], dict[str, Any]]

VIEW_TYPE = "application/vnd.tinote.view+json"
"""The MIME type that marks an output as one of our views: the extension in `viz/labextensions/` shows it live where its
kernel is, and else its picture. Other front ends do not know the type, and choose among the others.
"""

_largest_stored = 300_000


@checked
def set_stored_size(nbytes: int) -> None:
    """Set the size limit of the program that a live view stores in the output of its cell.

    With it the view runs where the notebook is opened without a kernel; without, its picture is shown.

    Parameters
    ----------
    nbytes : int
        The size in bytes: 300,000 by default; 0 stores none.

    Raises
    ------
    ViewError
        For a negative number.

    Examples
    --------
    >>> ti.viz.set_stored_size(0)  # Store pictures alone.
    >>> ti.viz.set_stored_size(-1)
    ViewError:
    ...
    nbytes must be 0 or more, not -1
    >>> ti.viz.set_stored_size(300_000)
    """
    global _largest_stored
    if nbytes < 0:
        raise ViewError(f"nbytes must be 0 or more, not {nbytes}")
    _largest_stored = nbytes


def stored_size() -> int:
    """The largest program that is stored, in bytes."""
    return _largest_stored


PAGE_TYPE = "application/vnd.tinote.page+json"
"""The MIME type of views as a page runs them: in outputs of a notebook that is executed for one."""

HINT = "run the cell to make it live"
"""What stands below the pictures that stay in a notebook."""


class Audience(enum.Enum):
    """Who sees what is displayed."""

    PERSON = "a notebook's front end that paints widgets and sends events"
    PROGRAM = "a program that executes the notebook: displays are kept, nothing answers"
    NOBODY = "no notebook: a script or a terminal"


def audience() -> Audience:
    """Who is watching the code that runs now."""
    kernel: Any = getattr(get_ipython(), "kernel", None)
    if kernel is None:
        return Audience.NOBODY
    forced = os.environ.get("TINOTE_HEADLESS", "")
    if forced:
        return Audience.PERSON if forced == "0" else Audience.PROGRAM
    request = kernel.get_parent() or {}
    if request.get("msg_type", request.get("header", {}).get("msg_type")) != "execute_request":
        return Audience.PERSON  # Called from a widget's message: somebody sent it.
    return Audience.PERSON if request["content"].get("allow_stdin") else Audience.PROGRAM


def for_page() -> bool:
    """Whether the notebook is executed to become a page (`tinote page`)."""
    return audience() is Audience.PROGRAM and bool(os.environ.get("TINOTE_PAGE"))


def cell_id() -> str:
    """By which the front end knows the cell that runs now; "" where it does not say, and outside of a notebook."""
    kernel: Any = getattr(get_ipython(), "kernel", None)
    request = kernel.get_parent() if kernel is not None else None
    return str(((request or {}).get("metadata") or {}).get("cellId", ""))


def in_marimo() -> bool:
    """Whether a marimo notebook runs: it shows our views live by themselves, without IPython."""
    marimo = sys.modules.get("marimo")
    return marimo is not None and marimo.running_in_notebook()


def with_picture(
    live: Callable[[], Bundle | None],
    text: str,
    picture: Callable[[], bytes],
    about: dict[str, Any],
    page: Callable[[], str] | None = None,
    programs: Sequence[str] = (),
    said: str = "",
) -> Bundle:
    """What a widget displays: itself (`live` gives its bundle) where a person looks, and in any case its text and a
    picture, with `about` for metadata. The picture says how to get more than itself. `page` gives the text of a page of
    its own, if it has one, which the page of a notebook holds. `programs`: how its views run without a kernel;
    where a person looks, the page adds them later. `said`: further words below the picture.
    """
    found = live() if audience() is Audience.PERSON else None
    data, metadata = found if found is not None else ({}, {})
    if data:
        data = {VIEW_TYPE: {"version": 1}, **data}
    elif programs and all(programs):
        data = {VIEW_TYPE: {"version": 1, "views": list(programs)}}
    if for_page():
        linked = {"page": page()} if page is not None else {}
        data = {PAGE_TYPE: {"version": 1, "name": text, "reason": "it is not a live view of a simulation", **linked}}
    width = about.get("width")
    png = captioned(picture(), " · ".join(filter(None, [said, HINT])), width)
    about = about if width is None else {**about, "width": width + 2 * CARD_MARGIN}
    return {**data, "text/plain": text, "image/png": base64.b64encode(png).decode()}, {**metadata, "image/png": about}


_after_cell: list[Callable[[], object]] = []


def after_cell(job: Callable[[], object]) -> None:
    """Have `job()` called, once, when the cell that runs now has ended, and what it shows is on its way to the page.
    Nothing happens where no cell runs.
    """
    hooks = cell_hooks()
    if hooks is None or not cell_runs() or job in _after_cell:
        return

    def once(*_: object) -> None:
        hooks.unregister("post_run_cell", once)
        _after_cell.remove(job)
        with contextlib.suppress(KeyboardInterrupt):  # Then it is left out.
            job()

    _after_cell.append(job)
    hooks.register("post_run_cell", once)


def cell_runs() -> bool:
    """Whether the code that runs now is a cell's, and not called from a widget's message."""
    kernel: Any = getattr(get_ipython(), "kernel", None)
    request = (kernel.get_parent() or {}) if kernel is not None else {}
    return request.get("msg_type", request.get("header", {}).get("msg_type")) == "execute_request"


#: By cell, as the front end or else its text identifies it: its last run, and the widgets that this has shown.
_shown: dict[str, tuple[str, weakref.WeakSet[Any]]] = {}


def shown(widget: Any, views: Sequence[Any]) -> None:
    """The cell that runs now shows these views, in this widget. When it has ended, those that its run before has shown,
    and no other cell, are superseded.
    """
    kernel: Any = getattr(get_ipython(), "kernel", None)
    if kernel is None or not cell_runs() or cell_hooks() is None:
        return
    request = kernel.get_parent()
    cell, run = cell_id() or str(request["content"].get("code")), str(request["header"].get("msg_id"))
    known, earlier = _shown.get(cell, ("", weakref.WeakSet[Any]()))
    if known != run:
        for other in [other for other, (_, those) in _shown.items() if not those]:
            del _shown[other]
        _shown[cell] = run, weakref.WeakSet[Any]()

        def supersede() -> None:
            now = {id(view) for _, those in _shown.values() for one in those for view in one.shown_views}
            for one in list(earlier):
                for view in one.shown_views:
                    if id(view) not in now:
                        view.supersede(one)

        after_cell(supersede)
    widget.shown_views = [view for view in views if hasattr(view, "supersede")]
    widget.shown_in_runs = {*getattr(widget, "shown_in_runs", ()), get_ipython().execution_count}  # type: ignore[union-attr]
    _shown[cell][1].add(widget)


def forget_output(widget: Any) -> None:
    """IPython need not keep the widget any more that a cell has ended with, nor the pictures of it."""
    shell: Any = get_ipython()
    outputs = users_names().get("_oh", {})
    for number in [number for number, output in outputs.items() if output is widget]:
        del outputs[number]
        shell.del_var(f"_{number}", by_name=True)
    kept = getattr(shell.history_manager, "outputs", {})  # of later versions, with all that was displayed
    for number in widget.shown_in_runs:
        kept.pop(number, None)


def programs_of(views: Sequence[Any]) -> list[str]:
    """How these views run without a kernel, for the output that shows them; nothing where that is not kept, or a person
    looks: then it is made once the output is there, and the page is notified.
    """
    match audience():
        case Audience.PERSON:
            for view in views:
                if hasattr(view, "keep_program"):
                    after_cell(view.keep_program)
        case Audience.PROGRAM:
            for view in views:
                getattr(view, "keep_program", lambda: None)()
            return [getattr(view, "program", "") for view in views]
        case Audience.NOBODY:
            pass
    return []


def cell_hooks() -> Any:
    """IPython's event registry (`register`, `unregister`), or None outside of IPython."""
    return getattr(get_ipython(), "events", None)


def users_names() -> dict[str, Any]:
    """What cells have defined; nothing outside of IPython."""
    return getattr(get_ipython(), "user_ns", {})


def remember_output() -> Callable[[], None]:
    """Called in a cell: what sends prints to that cell's output, when it is called in another context, on any thread.

    A notebook's streams keep in a context variable whose output they are; without it, prints go to the cell that ran
    last. Elsewhere nothing is changed.
    """
    kept: list[tuple[contextvars.ContextVar[Any], Any]] = []
    for stream in (sys.stdout, sys.stderr):
        variable = getattr(stream, "_parent_header", None)
        if isinstance(variable, contextvars.ContextVar):
            kept.append((variable, getattr(stream, "parent_header", {})))

    def send_there() -> None:
        for variable, header in kept:
            variable.set(header)

    return send_there
