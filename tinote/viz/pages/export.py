"""Live views as one HTML file that runs from the disk: `view.save("view.html")`, `ti.viz.page(views, "page.html")`.

What the kernel does for a view in a notebook, a Worker of the page does: it runs the captured step as WebAssembly and
makes the same frames (`static/engine/`), which the view's own scripts paint. The page's data, its programs and the
engine are compressed together.
"""

from __future__ import annotations

import base64
import contextvars
import html
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ipywidgets import Box, GridBox, HBox, Widget

from tinote.errors import TinoteError
from tinote.lang.capture.captured_function import CapturedFunction
from tinote.lang.capture.portable import Portable, portable
from tinote.lang.session.owners import take_all_gradients
from tinote.lazy import lazy
from tinote.viz.draw.arguments import checked
from tinote.viz.draw.arrays import ViewError
from tinote.viz.notebook.page import as_text, compact, document, scripts_in
from tinote.viz.notebook.view import describe_error, static_source
from tinote.viz.pages.bundle import engine_script, joined, page_data, page_script
from tinote.viz.pages.functions import of_numbers, of_pointer, with_values
from tinote.viz.pages.sources import Sources, ViewFunctions

if TYPE_CHECKING:
    from tinote.viz.pages import markdown
else:
    markdown = lazy("tinote.viz.pages.markdown")  # it comes with nbconvert, which takes long to load

__all__ = ["Missing", "Page", "Running", "Shown", "page", "running", "save"]

STYLES = ("theme.css", "pages/page.css")
#: What views look like once scripts have made them: compressed with these.
STYLES_OF_VIEWS = ("views/simulation.css", "kernel.css", "views/errors.css")
NOT_SENT = {
    *("layout", "tabbable", "tooltip", "identity", "error_card", "state", "recording", "program", "program_note"),
    "picked",
}
WITHOUT_SCRIPTS = "The simulation runs here, by JavaScript."


class Missing(NamedTuple):
    """What of a view a page lacks, such as "the pointer", and why."""

    what: str
    reason: str


class Running(NamedTuple):
    """A view that runs in a page: its kind, what the page gets of it, what it lacks, and in words what it needs."""

    kind: str
    described: dict[str, Any]
    missing: tuple[Missing, ...]
    needs: str = ""


class Shown(NamedTuple):
    """What became of a view in a page: it runs there, and needs this, or is a picture."""

    view: str
    runs: bool
    missing: tuple[Missing, ...]
    needs: str = ""


class Page(NamedTuple):
    """A page that was written: where it is, its size in bytes, and what became of each view."""

    path: Path
    nbytes: int
    views: tuple[Shown, ...]

    def __repr__(self) -> str:
        return "\n".join([f"{self.path}: {self.nbytes / 1000:.0f} kB, to be opened in a browser", *report(self.views)])


def report(views: Iterable[Shown]) -> list[str]:
    """A line for each view, and for each thing that it lacks in the page."""
    lines: list[str] = []
    for shown in views:
        lines.append(f"  {shown.view}: {'runs' if shown.runs else 'a picture'}" + (shown.needs and f", {shown.needs}"))
        for what, reason in shown.missing:
            lines.append(f"    without {what}: " + reason.strip().replace("\n", "\n      "))
    return lines


# ---- a view that runs


def running(view: Any, *, unasked: bool = False, step: CapturedFunction | None = None) -> Running:
    """`view` as a page runs it, from its present state. Raises `ViewError` and `CaptureError` where its step, its reset
    or what it shows cannot be captured; a quantity or a handler that cannot is left out, and named. `unasked`: so are
    functions of which it is not known that to run them changes nothing but memory and numbers. `step`: what captures
    the view's step, for one that needs it besides.
    """
    if view.state == "playing":
        raise ViewError("the view is playing; pause it first")
    return contextvars.Context().run(_Described(view, unasked, step).running)


class _Described:
    """A view, as it is described to a page."""

    def __init__(self, view: Any, unasked: bool = False, step: CapturedFunction | None = None) -> None:
        self.view = view
        self.unasked = unasked
        self.step = step
        self.functions: ViewFunctions = view.page_functions()
        self.sources = Sources()
        self.missing: list[Missing] = []
        self.programs: dict[str, tuple[Callable[..., object], tuple[Any, ...]]] = {}
        #: those that the view can do without, with what they are for
        self.optional: dict[str, str] = {}

    def running(self) -> Running:
        take_all_gradients()  # A capture must find all memory as the session's.
        view, functions = self.view, self.functions
        look = view.page_look(self.sources)
        if functions.step is not None:
            self._add("step", self.step or with_values(functions.step, ()))
        if functions.reset is not None:
            self._add("reset", with_values(functions.reset, ()))
        for name, function in self.sources.functions.items():
            self._add(name, with_values(function, ()))
        plots = {f"plot{number}": label for number, label in enumerate(functions.quantities)}
        for name, label in plots.items():
            self._add(name, functions.quantities[label], what=f"the quantity '{label}'")
        pointer = self._pointer()
        self.missing += [Missing(f"what observes `{name}`", "only Python can call it") for name in view.observed()]
        if view.runs_unseen:
            self.missing.append(Missing("steps out of sight", "a page runs what is in sight"))
        controls = [self._control(number, one) for number, one in enumerate(view.bound_controls.values())]
        made = self._made()
        plots = {name: label for name, label in plots.items() if name in self.programs}
        pointer = {side: name for side, name in pointer.items() if name in self.programs}
        lacking = {one.what for one in self.missing}
        controls = [one for one in controls if what_is(one) not in lacking]
        traits = view.get_state([name for name in view.traits(sync=True) if name not in NOT_SENT and name[0] != "_"])
        traits |= {
            "can_step": functions.step is not None,
            "can_reset": functions.step is not None,
            "can_point": bool(pointer),
            "series": list(plots.values()),
            "renderer": "page",
            "step_note": "",
        }
        described = {
            "kind": view.PAGE_KIND,
            "traits": traits,
            "look": look,
            "plots": list(plots),
            "canStep": functions.step is not None,
            "pointer": pointer or None,
            "controls": controls,
            "program": made.encode(),
            "gpu": bool(made.description["shaders"]),
        }
        words = dict.fromkeys(self.sources.functions, "what is shown") | plots
        words |= {name: what_is(one) for one in controls for name in one.get("programs", ())}
        return Running(view.PAGE_KIND, described, tuple(self.missing), needed(made, words))

    def _add(self, name: str, function: Callable[..., object], *given: Any, what: str = "") -> None:
        """Have a program of this name; `given`: what its numbers are at first. `what` it is for, if the view can do
        without it.
        """
        self.programs[name] = function, given
        if what:
            self.optional[name] = what

    def _pointer(self) -> dict[str, str]:
        """The programs of the pointer on an element, and away from all."""
        functions = self.functions
        if functions.pointer is None:
            return {}
        dimensions, elements = functions.pointed
        found: dict[str, str] = {}
        for side, count in (("on", elements), ("beside", 0)) if elements == 1 else (("on", elements),):
            handler = of_pointer(functions.pointer, functions.make_pointer, dimensions, count)
            where = "" if elements != 1 else " on an element" if count else " away from all elements"
            given = (*(0.5,) * dimensions, *(0.0,) * dimensions, *(0,) * count, True)
            found[side] = f"pointer_{side}"
            self._add(found[side], handler, *given, what=f"the pointer{where}")
        return found

    def _control(self, number: int, control: Any) -> dict[str, Any]:
        """A control: the field that it sets, or what it calls, for each of its choices or for any numbers."""
        found, calls = control.described(), control.calls
        if hasattr(control.target, "__setitem__"):
            sent = {} if calls is None else {"sent": [[float(part) for part in call] for call in calls]}
            return found | {"field": self.sources.field(control.target)} | sent
        what = what_is(found)
        if control.kind == "text":
            self.missing.append(Missing(what, "a program takes numbers, and this is text"))
        elif calls is None:
            numbers = control.numbers
            self._add(f"control{number}", of_numbers(control.target, len(numbers)), *numbers, what=what)
            found["programs"] = [f"control{number}"]
        else:
            found["programs"] = [f"control{number}_{choice}" for choice in range(len(calls))]
            for name, call in zip(found["programs"], calls, strict=True):
                self._add(name, with_values(control.target, call), what=what)
        return found

    def _made(self) -> Portable:
        """All programs; those that cannot be had, and that the view can do without, are left out. Raises what
        keeps another one from being had.
        """
        functions = [(name, function, given) for name, (function, given) in self.programs.items()]
        made = portable(functions, self.sources.fields, unasked=self.unasked)
        for name, error in made.refused.items():
            if name not in self.optional:
                raise error
            if all(one.what != self.optional[name] for one in self.missing):  # A control may have several.
                self.missing.append(Missing(self.optional[name], describe_error(error)))
            del self.programs[name]
        return made


def what_is(control: Mapping[str, Any]) -> str:
    """What a page calls a control."""
    return f"the {control['kind']} '{control['label']}'"


def needed(made: Portable, words: Mapping[str, str]) -> str:
    """What programs need of a browser, in words: how much code and memory, and what they are for, by `words` of them
    where their names do not tell.
    """
    memory = made.description["memory"]["end"]
    names = [one["name"] for one in made.description["functions"]]
    functions = dict.fromkeys(words.get(name, name.replace("_", " ")) for name in names)
    shaders = sum(len(shader["text"]) for shader in made.description["shaders"])
    code = f"{_kilobytes(len(made.module))} of WebAssembly" + (f", {_kilobytes(shaders)} of WGSL" if shaders else "")
    sizes = f"with {code} and {_kilobytes(memory)} of memory"
    return sizes + (f", for {', '.join(functions)}" if functions else "")


def _kilobytes(nbytes: int) -> str:
    return f"{nbytes / 1000:,.1f} kB" if nbytes < 10_000 else f"{nbytes / 1000:,.0f} kB"


# ---- a page


def save(view: Any, path: str | Path) -> Path:
    """Write `view` as a page that runs from the disk. Returns where it is. Raises `ViewError` and `CaptureError`; warns
    of what it lacks.
    """
    found = running(view)
    for what, reason in found.missing:
        warnings.warn(f"{Path(path).name} is without {what}: {reason}", stacklevel=3)
    return _write(Path(path), _text_of(view, found))


def text_of(view: Any) -> str:
    """The text of that page. Raises `ViewError` and `CaptureError`."""
    return _text_of(view, running(view))


def _text_of(view: Any, found: Running) -> str:
    pages = Pages()
    return pages.html(view.name or view.label, pages.place(found))


@checked
def page(views: Any, path: str | Path, *, title: str = "", text: str = "") -> Page:
    """Write live views as one HTML file that runs in any browser, without Python, server or network.

    A view begins in its present state, with the controls that are bound to it. A view that cannot run there is a
    picture, with the reason below it.

    Parameters
    ----------
    views : view, box of ipywidgets, or sequence of them
        A live view, a box with views and their controls, or a sequence of these and of texts between them.
    path : path
        The file.
    title : str, optional
        The title of the page.
    text : str, optional
        Markdown with formulas, above the views, as are the texts between them; HTML in it is shown as text.

    Returns
    -------
    Page
        What became of each view.

    Raises
    ------
    ViewError
        For what is not a live view, and for controls without one.
    OSError
        Where the file cannot be written.

    Examples
    --------
    >>> x = ti.field(ti.f32, shape=(32, 32))
    >>> @ti.kernel
    ... def advance():
    ...     for i, j in x:
    ...         x[i, j] += 0.01 * i
    >>> view = ti.viz.Image(x, advance, size=320)
    >>> page = ti.viz.page(view, "growth.html", title="Growth", text="$u$ grows by $0.01 i$ in each step.")
    >>> page.path.name
    'growth.html'
    """
    pages = Pages()
    parts = [f"<h1>{as_text(title)}</h1>"] if title else []
    parts += [_shown(one, pages) for one in ([text] if text else []) + [views]]
    lacking = [one for one in pages.controls if one not in pages.bound]
    for control in lacking:
        name = f"{type(control).__name__} {getattr(control, 'description', '')!r}"
        if not pages.views:
            raise ViewError(f"a page shows live views and the controls that are bound to them: {name} is neither")
        warnings.warn(f"{Path(path).name} is without {name}: only Python knows what it does", stacklevel=2)
    written = pages.html(title or "Live views", "\n".join(parts))
    return Page(_write(Path(path), written), len(written.encode()), tuple(pages.views))


def _shown(views: Any, pages: Pages) -> str:
    """What was given as HTML, in order; a row of widgets is a row where there is room."""
    if isinstance(views, str):
        return markdown.rendered(_whole(views), escape=True)
    if _is_live(views):
        return pages.shown(views)
    if isinstance(views, Box):
        inner = "\n".join(filter(None, [_shown(child, pages) for child in views.children]))
        return f'<div class="tinote-row">\n{inner}\n</div>' if isinstance(views, HBox | GridBox) else inner
    if isinstance(views, Sequence):
        return "\n".join(_shown(one, pages) for one in views)
    if not isinstance(views, Widget):
        raise ViewError(f"a page shows live views and text, not {type(views).__name__}")
    pages.controls.append(views)
    return ""


def _is_live(value: Any) -> bool:
    return hasattr(value, "PAGE_KIND")


def _whole(text: str) -> str:
    """A text without halves of characters."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def full_reason_of(error: Exception) -> str:
    """Why a view cannot run, as its page says it."""
    if isinstance(error, ViewError):  # What it is about is the view, and not the line that asks for the page.
        return error.message + (f"\nhelp: {error.hint}" if error.hint else "")
    return describe_error(error) if isinstance(error, TinoteError) else f"{type(error).__name__}: {error}"


class Pages:
    """Collects the views of a page. `views`: what became of each; `controls`: those among them; `bound`: those
    that views have.
    """

    def __init__(self) -> None:
        self.views: list[Shown] = []
        self.controls: list[Widget] = []
        self.bound: list[Widget] = []
        self._running: list[Running] = []
        self._framed: list[str] = []

    def shown(self, view: Any) -> str:
        """A view as HTML: where it runs, or its picture with the reason."""
        self.bound += view.bound_controls.values()
        try:
            found = running(view)
        except Exception as error:  # Also one of the user's step.
            return self.picture(view.picture(), view.label or repr(view), full_reason_of(error))
        return self.place(found, repr(view))

    def place(self, found: Running, name: str = "") -> str:
        """Where a view runs, as HTML."""
        self.views.append(Shown(name or found.described["traits"]["label"], True, found.missing, found.needs))
        self._running.append(found)
        return f'<div class="tinote-live" data-tinote-view="{len(self._running) - 1}">{_without_scripts()}</div>'

    def framed(self, page: str, name: str) -> str:
        """A page of ours within this one, as HTML: in a frame without an origin."""
        self.views.append(Shown(name, True, ()))
        self._framed.append(page)
        about = f'sandbox="allow-scripts" title="{as_text(name)}" srcdoc="{html.escape(page)}"'
        return f'<iframe class="tinote-framed" {about}></iframe>'

    def picture(self, png: bytes, label: str, reason: str) -> str:
        """A view that cannot run, as HTML."""
        self.views.append(Shown(label, False, (Missing("a run", reason),)))
        source = base64.b64encode(png).decode()
        said = as_text(f"This view is a picture: {reason.strip()}")
        return (
            f'<figure><img src="data:image/png;base64,{source}" alt="{as_text(label)}"><figcaption>{said}</figcaption>'
            "</figure>"
        )

    def html(self, title: str, content: str, styles: str = "") -> str:
        """The text of the page. Its title is the heading of content without one, for screen readers."""
        heading = "" if "<h1" in content else f'<h1 class="unseen">{as_text(title)}</h1>\n'
        kinds = {found.kind for found in self._running}
        gpu = any(found.described.get("gpu") for found in self._running)
        space = any(found.kind == "particles" and found.described["look"]["box"] for found in self._running)
        has_controls = any(found.described["controls"] for found in self._running)
        script = page_script(kinds, controls=has_controls, space=space)
        engine = engine_script(kinds, gpu=gpu, space=space)
        views = [found.described for found in self._running]
        data = page_data(script, engine, views, static_source(*STYLES_OF_VIEWS))
        return document(
            title,
            styles=static_source(*STYLES) + styles,
            scripts=[compact(static_source("pages/boot.js", *(["pages/frames.js"] if self._framed else [])))],
            compressed=[joined(script), *(part for page in self._framed for part in scripts_in(page))],
            body=f"<main>\n{heading}{content}\n</main>",
            kind="tinote-article",
            data=f'<script type="text/plain" id="tinote-data">{data}</script>',
        )


def _without_scripts() -> str:
    return f"<noscript>{WITHOUT_SCRIPTS}</noscript>"
