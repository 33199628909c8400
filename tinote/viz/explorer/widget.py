"""The IR explorer: every stage of a kernel, any two side by side, tied line by line to the user's source. The program
between launches, of a captured step or a tape, has stages as well.

`explore(kernel)` returns an `Explorer`, a widget for a notebook; `Explorer.save` writes the same view as one HTML page
that needs no kernel. What is shown first goes out with the widget, so that it is painted without a further message from
the kernel, which may be busy with later cells; the lines of other stages are computed and sent when the page first
shows them. Where no widget can be shown, a picture of the stages remains.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import anywidget
import traitlets

from tinote.compiler.driver import Specialisation
from tinote.compiler.inspect.explanations import explanation
from tinote.compiler.inspect.glossary import GLOSSARY
from tinote.compiler.inspect.instructions import INSTRUCTIONS, OPERANDS
from tinote.compiler.inspect.stages import KernelSource, Stage, Stages, has_gradient, stages_of
from tinote.completion import Documented
from tinote.errors import TinoteError
from tinote.lang.ad.tape import Tape
from tinote.lang.capture.captured import Captured
from tinote.lang.capture.captured_function import CapturedFunction
from tinote.lang.session.renamed import also_called
from tinote.source import Span, location_name
from tinote.viz.draw.arguments import checked, shown
from tinote.viz.draw.arrays import ViewError
from tinote.viz.explorer.options import as_code, as_text, version_under
from tinote.viz.explorer.panels import PANELS
from tinote.viz.explorer.picture import draw_explorer, tally
from tinote.viz.explorer.previous import Change, Previous
from tinote.viz.explorer.programs import ExploredProgram, captured_program, tape_program
from tinote.viz.explorer.roofline import measure_in_copies, roofline_panel
from tinote.viz.explorer.rows import Rows, lines_in_columns
from tinote.viz.explorer.values import has_scalar_results, observed_values, parameters_of
from tinote.viz.notebook.front_end import Bundle, cell_id, users_names, with_picture
from tinote.viz.notebook.page import page
from tinote.viz.notebook.view import describe_error, static_source

SCRIPTS = (
    "kernel.js",
    "view.js",
    "explorer/align.js",
    "syntax.js",
    "explorer/lines.js",
    "explorer/source.js",
    "explorer/stage.js",
    "explorer/instructions.js",
    "explorer/list.js",
    "explorer/find.js",
    "explorer/flow.js",
    "explorer/panels.js",
    "explorer/values.js",
    "draw/axes.js",
    "explorer/roofline.js",
    "explorer/state.js",
    "explorer/glossary.js",
    "explorer/explorer.js",
)
PAGE_SCRIPTS = (*SCRIPTS, "explorer/page.js")
STYLES = ("theme.css", "frame.css", "explorer/explorer.css", "explorer/panels.css", "kernel.css")


class ExplorerView(NamedTuple):
    """One way through the compiler that the explorer can show: the kernel's own, or its gradient's. `make` may raise a
    located error, which is then shown in place of the stages. `specialisation`: what values can be observed in, if
    anything. `previous`: the same of the kernel as it was before it changed last, if that is known, or of the one that
    `compare_with` names. `opens`: by the names of kernels in a program, the views of these.
    """

    title: str
    make: Callable[[], Stages]
    specialisation: Specialisation | None = None
    previous: Callable[[], Stages] | None = None
    compared: str = ""
    opens: Mapping[str, int] = {}


class Explorer(Documented, anywidget.AnyWidget):
    """The explorer of a kernel, which `ti.viz.explore` returns.

    Methods
    -------
    picture
    save

    Attributes
    ----------
    name : str

    Examples
    --------
    >>> @ti.kernel
    ... def square(a: ti.f64) -> ti.f64:
    ...     return a * a
    >>> square(3.0)
    9.0
    >>> isinstance(ti.viz.explore(square), ti.viz.Explorer)
    True
    """

    _esm = static_source(*SCRIPTS)
    _css = static_source(*STYLES)

    label = traitlets.Unicode().tag(sync=True)
    """What the explorer shows, for its title and for screen readers."""

    identity = traitlets.Unicode().tag(sync=True)
    """By which the kernel knows the widget."""

    opening = traitlets.Dict().tag(sync=True)
    """What the page shows before it has asked for anything."""

    state = traitlets.Dict().tag(sync=True)
    """What the page shows now, by name: the view, its stages, the selected line, the open tab. Empty: as it opens."""

    def __init__(
        self,
        name: str,
        views: Sequence[ExplorerView],
        start: int = 0,
        state: Mapping[str, str] | None = None,
        given: str = "",
    ) -> None:
        state = dict(state or {})
        self._explored = Explored(name, views, start, state, given)
        super().__init__(label=name, opening=self._explored.opening(), state=state)
        self.name = name
        self.identity = self.model_id or ""
        # A page may ask for a stage while another thread draws the picture; each stage is computed once.
        self._lock = threading.Lock()
        self.on_msg(self._receive)

    def _observe(self, message: dict[str, Any]) -> dict[str, Any]:
        view, stage, iteration = int(message["view"]), int(message["stage"]), message["iteration"]
        return self._explored.observed(view, stage, iteration, message["arguments"], message.get("seed"))

    def _receive(self, _widget: object, message: dict[str, Any], _buffers: object) -> None:
        with self._lock:
            match message.get("kind"):
                case "view":
                    self.send({"kind": "view", **self._explored.view(int(message["view"]))})
                case "passes":
                    self.send({"kind": "passes", **self._explored.passes(int(message["view"]))})
                case "stage":
                    self.send({"kind": "stage", **self._explored.stage(int(message["view"]), int(message["stage"]))})
                case "find":
                    self.send({"kind": "found", **self._explored.find(int(message["view"]), str(message["text"]))})
                case "previous":
                    view, stage = int(message["view"]), int(message["stage"])
                    self.send({"kind": "previous", **self._explored.previous(view, stage)})
                case "observe":
                    self.send({"kind": "observed", **self._observe(message)})
                case "measure":
                    self.send({"kind": "panel", **self._explored.measured(int(message["view"]), message["arguments"])})
                case "panel":
                    self.send({"kind": "panel", **self._explored.panel(int(message["view"]), str(message["panel"]))})

    def save(self, path: str | Path) -> Path:
        """Write the explorer as one HTML page with every stage in it, for any browser, offline.

        The page opens as the explorer is shown now, or as the fragment of its address says ("Copy link" gives one).

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
        >>> @ti.kernel
        ... def square(a: ti.f32) -> ti.f32:
        ...     return a * a
        >>> square(3.0)
        9.0
        >>> ti.viz.explore(square).save("square.html").name
        'square.html'
        """
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.page_text(), encoding="utf-8")
        return path

    def page_text(self) -> str:
        """The text of that page."""
        with self._lock:
            shown = {**self._explored.everything(), "state": self.state}
            return page(f"{self.label}: IR explorer", STYLES, PAGE_SCRIPTS, "showPage", shown)

    def picture(self) -> bytes:
        """The stages and the last IR as a PNG file.

        Returns
        -------
        bytes
            The contents of the file.
        """
        with self._lock:
            return self._explored.picture()

    def __repr__(self) -> str:
        return f"<IR explorer of {self.label}>"

    def _repr_mimebundle_(self, **_: Any) -> Bundle:  # type: ignore[override]
        with self._lock:
            text = self._explored.text()
        # Drawn at twice its size, for sharp text.
        about = {"width": PICTURE_WIDTH, "alt": text}
        return with_picture(super()._repr_mimebundle_, text, self.picture, about, self.page_text)


PICTURE_WIDTH = 960


class Explored:
    """What an explorer tells its page, as plain data for JSON. Not safe for several threads."""

    def __init__(
        self,
        name: str,
        views: Sequence[ExplorerView],
        start: int,
        state: Mapping[str, str] | None = None,
        given: str = "",
    ) -> None:
        self._name = name
        self._given = given or name
        self._views = list(views)
        self._state = state or {}
        titles = [view.title for view in self._views]
        self._start = titles.index(shown) if (shown := self._state.get("view", "")) in titles else start
        self._made: dict[int, Stages | str] = {}
        self._previous: dict[int, Previous | str] = {}
        self._inserted: dict[int, list[int]] = {}

    def _stages(self, view: int) -> Stages | str:
        """The stages of a view, or why there are none."""
        if view not in self._made:
            try:
                self._made[view] = self._views[view].make()
            except Exception as error:  # The page must say so, whatever it is.
                self._made[view] = describe_error(error)
        return self._made[view]

    def opening(self) -> dict[str, Any]:
        """What a page shows first: which views there are, and of the one it starts with the two stages side by side."""
        if "passes" in self._state and not isinstance(self._stages(self._start), str):
            self.passes(self._start)
        stages = self._stages(self._start)
        shown = [] if isinstance(stages, str) else _first_shown(stages, self._state)
        lines = [self.stage(self._start, number) for number in shown]
        # After the lines: they bring times and counts with them.
        return {**self._overview(), "given": self._given, "view": self.view(self._start), "stages": lines}

    def _overview(self) -> dict[str, Any]:
        words = {"glossary": GLOSSARY, "instructions": {**INSTRUCTIONS, "operands": OPERANDS}}
        return {"titles": [v.title for v in self._views], "start": self._start, **words}

    def view(self, view: int) -> dict[str, Any]:
        """The sources and the list of stages of a view, without their lines."""
        stages = self._stages(view)
        if isinstance(stages, str):
            return {"view": view, "problem": stages}
        shown: list[dict[str, Any]] = []
        origin = 0
        for n, (stage, key) in enumerate(zip(stages.stages, _keys(stages), strict=True)):
            # A stage that changed nothing has the lines of the one before it.
            origin = n if stage.changed else origin
            shown.append(
                {
                    **_facts(stage),
                    "key": key,
                    "name": stage.name,
                    "group": stage.group,
                    "kind": stage.kind.name,
                    "changed": stage.changed,
                    "lines": origin,
                }
            )
        return {
            "view": view,
            "sources": [_source(s) for s in stages.sources],
            "panels": self._panels(view, stages),
            "stages": shown,
            "start": stages.first_shown,
            "alone": not stages.stages[stages.first_shown].derived,
            "about": {stage.name: about for stage in stages.stages if (about := explanation(stage))},
            "passes": stages.passes_at if stages.passes is not None else None,
            "inserted": self._inserted.get(view),
            "seeded": stages.differentiated is not None and has_scalar_results(stages.differentiated),
            "previous": self._views[view].previous is not None,
            "compared": self._views[view].compared,
            "opens": self._views[view].opens,
            "parameters": parameters_of(specialisation)
            if (specialisation := self._views[view].specialisation)
            else None,
        }

    def passes(self, view: int) -> dict[str, Any]:
        """The same view with LLVM's own passes among its stages; `inserted`: the number of the first, and how many."""
        stages = self._stages(view)
        assert isinstance(stages, Stages)
        if stages.passes is not None:
            try:
                self._made[view] = more = stages.with_passes()
            except Exception as error:
                return {"view": view, "problem": describe_error(error)}
            self._inserted[view] = [more.passes_at, len(more.stages) - len(stages.stages)]
            self._previous.pop(view, None)
        return {"view": view, "shown": self.view(view), "inserted": self._inserted[view]}

    def _target(self, view: int) -> dict[str, Any]:
        """What LLVM compiles a view for."""
        stages = self._stages(view)
        assert isinstance(stages, Stages) and stages.target is not None
        found = stages.target()
        return {"text": f"{found.cpu} · O{found.level}", "command": found.command}

    def stage(self, view: int, stage: int) -> dict[str, Any]:
        """The lines of a stage."""
        stages = self._stages(view)
        assert isinstance(stages, Stages)
        found = stages.stages[stage]
        try:
            lines = lines_in_columns(found.lines, Rows(stages.sources))
        except Exception as error:
            return {"view": view, "stage": stage, "problem": describe_error(error)}
        native = found.kind.native and stages.target is not None
        target = {"target": self._target(view)} if native else {}
        return {"view": view, "stage": stage, **_facts(found), **target, **lines}

    def find(self, view: int, text: str) -> dict[str, Any]:
        """The lines of each stage that contain a text in lower case. LLVM does not run for it: its stages are searched
        once they have been shown.
        """
        stages = self._stages(view)
        assert isinstance(stages, Stages)
        found: dict[int, list[int]] = {}
        for number, stage in enumerate(stages.stages):
            if stage.changed and (not stage.kind.native or stage.operations is not None):
                lines = [n for n, line in enumerate(stage.lines) if text in line.text.lower()]
                found |= {number: lines} if lines else {}
        return {"view": view, "text": text, "stages": found}

    def previous(self, view: int, stage: int) -> dict[str, Any]:
        """The lines next to a stage in the previous version of the kernel, and which rows of the source are new."""
        asked = {"view": view, "stage": stage}
        stages, earlier = self._stages(view), self._earlier(view)
        assert isinstance(stages, Stages)
        if isinstance(earlier, str):
            return {**asked, "problem": earlier}
        try:
            found, lines = earlier.counterpart(stage)
            shown = lines_in_columns(lines, Rows(stages.sources))
            return {**asked, **_facts(found), **shown, "fresh": earlier.fresh}
        except Exception as error:
            return {**asked, "problem": describe_error(error)}

    def _earlier(self, view: int) -> Previous | str:
        """The earlier version for comparison, or why there is none."""
        if view not in self._previous:
            stages, make = self._stages(view), self._views[view].previous
            assert isinstance(stages, Stages) and make is not None
            try:
                earlier = make()
                self._previous[view] = Previous(earlier.with_passes() if view in self._inserted else earlier, stages)
            except Exception as error:
                self._previous[view] = describe_error(error)
        return self._previous[view]

    def _panels(self, view: int, stages: Stages) -> list[tuple[str, str]]:
        """The panels of a view that have tables, with their titles."""
        found = [(name, panel.title) for name, panel in PANELS.items() if panel.applies(stages)]
        specialisation = self._views[view].specialisation
        runs_here = specialisation is not None and specialisation.config.arch == "cpu"
        return [*found, ("roofline", "Roofline")] if runs_here else found

    def panel(self, view: int, name: str) -> dict[str, Any]:
        """What stands in a panel: tables, and notes for the rows of the source."""
        stages, specialisation = self._stages(view), self._views[view].specialisation
        assert isinstance(stages, Stages)
        rows = Rows(stages.sources)
        try:
            if name == "roofline":
                assert specialisation is not None
                return {"view": view, "panel": name, **roofline_panel(specialisation, stages.gradient, rows)}
            return {"view": view, "panel": name, **PANELS[name].make(stages, rows)}
        except Exception as error:
            return {"view": view, "panel": name, "problem": describe_error(error)}

    def measured(self, view: int, arguments: Sequence[float]) -> dict[str, Any]:
        """The panel of the roofline, measured once more, with these scalar arguments."""
        stages, specialisation = self._stages(view), self._views[view].specialisation
        assert isinstance(stages, Stages) and specialisation is not None
        try:
            measure_in_copies(specialisation, stages.gradient, arguments)
        except Exception as error:
            return {**self.panel(view, "roofline"), "refused": describe_error(error)}
        return self.panel(view, "roofline")

    def observed(
        self,
        view: int,
        stage: int,
        iteration: Sequence[int],
        arguments: Sequence[float],
        seed: float | None = None,
    ) -> dict[str, Any]:
        """What the lines of a stage evaluate to in an iteration; of a gradient, with `seed` as the loss's adjoint."""
        stages, specialisation = self._stages(view), self._views[view].specialisation
        assert isinstance(stages, Stages) and specialisation is not None
        try:
            shown = stages.stages[stage]
            found = observed_values(specialisation, shown, iteration, arguments, stages.differentiated, seed)
        except Exception as error:
            found = {"problem": describe_error(error)}
        return {"view": view, "stage": stage, **found}

    def everything(self) -> dict[str, Any]:
        """All that a page could ask for."""
        views: list[dict[str, Any]] = []
        lines: dict[str, Any] = {}
        previous: dict[str, Any] = {}
        panels: dict[str, Any] = {}
        for number in range(len(self._views)):
            stages = self._stages(number)
            if isinstance(stages, Stages):
                for n, stage in enumerate(stages.stages):
                    if stage.changed:
                        lines[f"{number}/{n}"] = self.stage(number, n)
                        if self._views[number].previous is not None:
                            previous[f"{number}/{n}"] = self.previous(number, n)
                for name, _ in self._panels(number, stages):
                    panels[f"{number}/{name}"] = self.panel(number, name)
            # After the lines: they bring times and counts with them. A page has LLVM's passes if they have been shown.
            views.append({**self.view(number), "passes": False})
        about = {"name": self._name, **self._overview()}
        return {**about, "views": views, "stages": lines, "previous": previous, "panels": panels}

    def picture(self) -> bytes:
        """The view shown first, as a PNG file."""
        stages, (changes, fresh) = self._stages(self._start), self._since_previous
        return draw_explorer(self._name, self._views[self._start].title, stages, PICTURE_WIDTH, changes, fresh)

    def text(self) -> str:
        """What the view shown first is, and what has changed in it since the previous run, if there was one."""
        changes, _ = self._since_previous
        if compared := self._views[self._start].compared:
            return f"<IR explorer of {self._name} next to {compared}>"
        return f"<IR explorer of {self._name}{'' if changes is None else f', {tally(changes)}'}>"

    @cached_property
    def _since_previous(self) -> tuple[list[Change] | None, list[int]]:
        """What has changed in the stage shown first, and which rows of the source are new; None where that cannot be
        determined.
        """
        stages = self._stages(self._start)
        view = self._views[self._start]
        if isinstance(stages, str) or view.previous is None or view.compared:
            return None, []
        earlier = self._earlier(self._start)
        try:
            return (None, []) if isinstance(earlier, str) else (earlier.changes(stages.first_shown), earlier.fresh)
        except TinoteError:
            return None, []


def _first_shown(stages: Stages, state: Mapping[str, str]) -> list[int]:
    """The stage on the right, and the one that it is compared with, if any: those that `state` names, if there are
    such, else the first to be shown and the one before it.
    """
    numbers = {key: n for n, key in enumerate(_keys(stages))}
    right = numbers.get(state.get("stage", ""), stages.first_shown)
    left = [numbers[key]] if (key := state.get("left", "")) in numbers else []
    before = [n for n, stage in enumerate(stages.stages[:right]) if stage.changed]
    return [right, *(left or before[-1:])]


def _keys(stages: Stages) -> Iterator[str]:
    """A name for each stage that no other one of the view has, and that the same stage has when the kernel is compiled
    once more.
    """
    counts = Counter[str]()
    for stage in stages.stages:
        name = f"{stage.group}: {stage.name}" if stage.group else stage.name
        counts[name] += 1
        yield name if counts[name] == 1 else f"{name} ({counts[name]})"


def _facts(stage: Stage) -> dict[str, Any]:
    return {"seconds": stage.seconds, "operations": stage.operations}


def _source(text: KernelSource) -> dict[str, Any]:
    place = location_name(Span(text.file, text.first_line)).rpartition(", line ")[0]
    return {"name": text.name, "place": place, "first": text.first_line, "lines": list(text.lines)}


_LEFT: dict[tuple[str, str, str, bool], dict[str, str]] = {}
"""How the explorers of this session were left, by cell, kernel, what was compared with it, and whether they opened on
the gradient.
"""


@also_called(deprecated=True, beside="compare_with")
@checked
def explore(kernel: Any, gradient: bool = False, *, compare_with: Any = None, state: str | None = None) -> Explorer:
    """Show each stage of a kernel's compilation, or the program of a captured step or a tape.

    Parameters
    ----------
    kernel : Kernel, captured step or Tape
        The kernel, called at least once if it has parameters; of several specialisations the one compiled last is
        shown. One that touches fields with gradients can be switched between itself and its gradient; one that was
        different before, because its cell or something that it uses was, can be compared with that. Of a step under
        `ti.capture`, the program captured last (`step.captured(…)` gives the one for some arguments) is shown: what
        happens between its launches. Of a tape with `keep=True`, that is what it has recorded, and its reverse sweep. A
        click on the name of a kernel in a program opens the stages of that kernel.
    gradient : bool, default False
        Open with the gradient of the kernel.
    compare_with : Kernel or dict, optional
        Another kernel, or another specialisation of the same one (`kernel.specialisations()` lists them): each stage is
        shown next to the corresponding one. Lines are matched by what they compute and by equal lines of source. A
        dictionary shows the same kernel under other options of `ti.init`, such as `{"fast_math": False}` or
        `{"default_fp": ti.f64}`, or for another processor: `{"cpu": "x86-64-v3"}`. Fields keep their types.
    state : str, optional
        What the explorer opens with: the text that its button "Copy link" gives, or the whole link to a page. Without
        it, an explorer of the same kernel in the same cell opens as the one before it was left; `state=""` opens a
        fresh one.

    Returns
    -------
    Explorer
        A widget, with `save` for a page and `picture` for a file.

    Raises
    ------
    ViewError
        For what is none of these, and for `gradient=` or `compare_with=` with a program.

    Examples
    --------
    >>> @ti.kernel
    ... def square(a: ti.f64) -> ti.f64:
    ...     return a * a
    >>> square(3.0)
    9.0
    >>> explorer = ti.viz.explore(square)
    >>> explorer.save("square.html").name
    'square.html'

    What happens between launches:

    >>> x = ti.field(ti.f64, shape=4, needs_grad=True)
    >>> loss = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> @ti.kernel
    ... def energy():
    ...     for i in x:
    ...         loss[None] += x[i] ** 2
    >>> with ti.ad.Tape(loss, keep=True) as tape:
    ...     energy()
    >>> ti.viz.explore(tape)
    <IR explorer of tape>
    """
    program = _program(kernel)
    if program is not None:
        if gradient or compare_with is not None:
            option = "gradient" if gradient else "compare_with"
            raise ViewError(f"{option}= is for kernels", hint="a tape shows its reverse sweep as well")
        name, views, other, given = program.name, _views_of(program), "", _given(kernel, program.name)
    else:
        name, views, other, given = _of_kernel(kernel, gradient, compare_with)
    key = (cell_id(), name, other, gradient)
    usual = {"left": "previous"} if other else {}
    shown = _LEFT.get(key, usual) if state is None else dict(parse_qsl(state.rpartition("#")[2]))
    explorer = Explorer(name, views, 1 if gradient else 0, shown, given)
    explorer.observe(lambda change: _LEFT.update({key: change["new"]}), "state")
    return explorer


def _program(explored: Any) -> ExploredProgram | None:
    """The program of a tape or a captured step; None for anything else."""
    if isinstance(explored, Tape):
        return tape_program(explored)
    if isinstance(explored, CapturedFunction):
        explored = explored.latest()
    return captured_program(explored) if isinstance(explored, Captured) else None


def _views_of(program: ExploredProgram) -> list[ExplorerView]:
    """The program, and each kernel that it launches."""
    kernels = list(dict.fromkeys(program.opens.values()))
    opens = {name: 1 + kernels.index(kernel) for name, kernel in program.opens.items()}
    views = [ExplorerView("program", lambda: program.stages, opens=opens)]
    for specialisation, gradient in kernels:
        title = f"{specialisation.source.name}{', gradient' if gradient else ''}"
        views.append(ExplorerView(title, partial(stages_of, specialisation, gradient), specialisation))
    return views


def _given(explored: Any, name: str) -> str:
    """What a cell writes for a tape or a captured step."""
    return next((known for known, value in users_names().items() if value is explored), name)


def _of_kernel(kernel: Any, gradient: bool, compare_with: Any) -> tuple[str, list[ExplorerView], str, str]:
    """The kernel's name, its views, what it is compared with in words, and what a cell writes for all that."""
    specialisation = _specialisation(kernel)
    name = specialisation.source.name
    if isinstance(compare_with, Mapping):
        earlier, other = version_under(specialisation, compare_with), as_text(compare_with) or "the same options"
    elif compare_with is not None:
        earlier = _specialisation(compare_with)
        other = earlier.source.name if earlier.source.name != name else "the other specialisation"
    else:
        earlier, other = None if isinstance(kernel, Specialisation) else kernel.earlier(), ""

    def view(title: str, gradient: bool) -> ExplorerView:
        previous = None if earlier is None else partial(stages_of, earlier, gradient)
        return ExplorerView(title, partial(stages_of, specialisation, gradient), specialisation, previous, other)

    views = [view("kernel", False)]
    if gradient or has_gradient(specialisation):
        views.append(view("gradient", True))
    given = _as_code(kernel, specialisation)
    if isinstance(compare_with, Mapping):
        given += f", compare_with={as_code(compare_with)}"
    elif isinstance(earlier, Specialisation):
        given += f", compare_with={_as_code(compare_with, earlier)}"
    return name, views, other, given


def _as_code(kernel: Any, specialisation: Specialisation) -> str:
    """What a cell writes for a kernel, or for one of its specialisations."""
    name = specialisation.source.name
    if not isinstance(kernel, Specialisation):
        return name
    known: Any = users_names().get(name)
    numbers = known.specialisations() if getattr(known, "__tinote_kernel__", False) else []
    return f"{name}.specialisations()[{numbers.index(kernel)}]" if kernel in numbers else name


def _specialisation(kernel: Any) -> Specialisation:
    """What `explore` was given, as the compiler knows it."""
    if isinstance(kernel, Specialisation):
        return kernel
    kernel = getattr(kernel, "kernel", kernel)  # A method, bound to its object.
    if not getattr(kernel, "__tinote_kernel__", False):
        what = "only a kernel, a captured step or a tape can be explored"
        raise ViewError(f"{what}, not {shown(kernel)}", hint="mark the function with @ti.kernel")
    compiled = kernel.specialisations()
    if compiled:
        return compiled[-1]
    if kernel.source.parameters:
        raise TinoteError(
            f"kernel '{kernel.source.name}' has not been called yet, so the types of its arguments are not known",
            kernel.source.span,
            hint=f"call it once, or explore {kernel.source.name}.specialise(…) with its arguments",
        )
    return kernel.specialise()
