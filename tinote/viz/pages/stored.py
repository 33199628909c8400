"""Views in the output of a cell as data: for the page that `tinote page` makes of the executed notebook, and for the
notebook itself, which shows them running where there is no kernel.

What a notebook holds may come from anybody. It is read within bounds here, and run where it can do no harm: in a page
of its own, as WebAssembly that has nothing but memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tinote.lang.capture.automatic import StepAhead
from tinote.lang.capture.captured_function import CapturedFunction
from tinote.lang.capture.portable import read_portable
from tinote.lang.session.state import session
from tinote.runtime.seam import listeners
from tinote.viz.notebook.front_end import PAGE_TYPE, Bundle
from tinote.viz.notebook.view import reason_of
from tinote.viz.pages.bundle import ENGINES, payload, unpacked
from tinote.viz.pages.export import Missing, Pages, Running, full_reason_of, running
from tinote.viz.pages.functions import with_values

LARGEST_MEMORY = 256 << 20
"""The most bytes of memory that a program of a notebook's output gets, also in `static/pages/player.js`."""

_MOST_UNPACKED = 64 << 20
_MOST_VIEWS = 16


def stored(views: Sequence[Any]) -> dict[str, Any]:
    """The views of an output as data: how each runs in a page, or why it does not."""
    found = [_stored(view) for view in views]
    return {"version": 1, "views": payload(found)}


def page_bundle(views: Sequence[Any], text: str) -> Bundle:
    """What an output holds of `views` for a page."""
    return {PAGE_TYPE: stored(views), "text/plain": text}, {}


def _stored(view: Any) -> dict[str, Any]:
    try:
        made = running(view)
    except Exception as error:  # Also one of the user's step.
        label, reason = view.label or repr(view), full_reason_of(error)
        return {"name": repr(view), "label": label, "reason": reason, "png": view.picture()}
    return {"name": repr(view), "running": {**made._asdict(), "missing": [list(one) for one in made.missing]}}


class Kept(NamedTuple):
    """How a view runs without a kernel, or the reason why the notebook has only a picture of it; and the captured step,
    where that and what is sampled are known to change nothing but memory and numbers.
    """

    program: str
    reason: str = ""
    step: StepAhead | None = None


def kept(view: Any, largest: int) -> Kept:
    """How `view` runs without a kernel, from its present state, for the output that shows it, in at most `largest`
    characters; nothing where it cannot, or would have to be run for a trial that might leave something behind.
    """
    config = session.config
    if listeners or session.watchers:
        return Kept("", "launches are recorded")
    if config.arch == "python" or config.kernel_profiler:
        return Kept("", "kernels run as Python" if config.arch == "python" else "kernels are profiled")
    function = view.page_functions().step
    step = None if function is None else CapturedFunction(with_values(function, ()), (), unasked=True)
    try:
        made = running(view, unasked=True, step=step)
    except Exception as error:  # Also one of the user's step, which runs here unasked.
        return Kept("", reason_of(error))
    memory = read_portable(made.described["program"]).description["memory"]["end"]
    if memory > LARGEST_MEMORY:
        return Kept("", f"it takes {memory >> 20} MiB of memory, and {LARGEST_MEMORY >> 20} is the most")
    found = payload({**made._asdict(), "name": repr(view)})
    if len(found) > largest:
        return Kept("", f"it takes {len(found):,} bytes, and ti.viz.set_stored_size({largest}) is the most")
    samples_all = len(made.described["plots"]) == len(view.frames.quantities)
    return Kept(found, step=StepAhead(step) if step is not None and samples_all else None)


def place_kept(pages: Pages, views: Any) -> str:
    """The views of an output, each as `kept` has made it, in a page, as HTML. Raises `ValueError` for anything else."""
    if not isinstance(views, list) or not 0 < len(views) <= _MOST_VIEWS:
        raise ValueError("these are not views")
    found: list[tuple[Running, str]] = []
    for text in views:
        one = unpacked(text, _MOST_UNPACKED)
        if not isinstance(one, dict) or one.get("kind") not in ENGINES or not isinstance(one.get("described"), dict):
            raise ValueError("this is not a view")
        if one["described"].get("kind") != one["kind"]:
            raise ValueError("this view is of two kinds")
        try:
            missing = tuple(Missing(str(what), str(reason)) for what, reason in one["missing"])
            needs = str(one.get("needs", ""))
            found.append((Running(one["kind"], one["described"], missing, needs), str(one["name"])))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError("this is not a view") from error
    return "\n".join(pages.place(made, name) for made, name in found)


def place_stored(pages: Pages, data: dict[str, Any]) -> str:
    """The views of an output in a page, as HTML. Raises `ValueError` for data of another kind."""
    parts: list[str] = []
    for found in unpacked(data["views"]):
        if "running" in found:
            made = found["running"]
            missing = tuple(Missing(*one) for one in made["missing"])
            parts.append(pages.place(Running(made["kind"], made["described"], missing, made["needs"]), found["name"]))
        else:
            parts.append(pages.picture(found["png"], found["label"], found["reason"]))
    return "\n".join(parts)
