"""Views in the output of a cell, for the page that `tinote page` makes of the executed notebook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tinote.viz.pages.bundle import payload, unpacked
from tinote.viz.pages.export import Missing, Pages, Running, reason_of, running


def stored(views: Sequence[Any]) -> dict[str, Any]:
    """The views of an output as data: how each runs in a page, or why it does not."""
    found = [_stored(view) for view in views]
    return {"version": 1, "views": payload(found)}


def _stored(view: Any) -> dict[str, Any]:
    try:
        made = running(view)
    except Exception as error:  # Also one of the user's step.
        label, reason = view.label or repr(view), reason_of(error)
        return {"name": repr(view), "label": label, "reason": reason, "png": view.picture()}
    return {"name": repr(view), "running": {**made._asdict(), "missing": [list(one) for one in made.missing]}}


def place_stored(pages: Pages, data: dict[str, Any]) -> str:
    """The views of an output in a page, as HTML. Raises `ValueError` for data of another kind."""
    parts: list[str] = []
    for found in unpacked(data["views"]):
        if "running" in found:
            made = found["running"]
            missing = tuple(Missing(*one) for one in made["missing"])
            parts.append(pages.place(Running(made["kind"], made["described"], missing), found["name"]))
        else:
            parts.append(pages.picture(found["png"], found["label"], found["reason"]))
    return "\n".join(parts)
