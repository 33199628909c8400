"""Links from the reference to the source: `sphinx.ext.viewcode` finds here which module defines a public name."""

from __future__ import annotations

import inspect
from typing import Any

from sphinx.application import Sphinx

from manual.reference import MODULES


def defined_in(app: Sphinx, owner: str | None, name: str) -> str | None:
    """The module that defines a name of a public module, or a method of a class there."""
    value = getattr(MODULES.get(owner or ""), name.partition(".")[0], None)
    return getattr(inspect.unwrap(value), "__module__", None) if callable(value) else None


def setup(app: Sphinx) -> dict[str, Any]:
    app.setup_extension("sphinx.ext.viewcode")
    app.connect("viewcode-follow-imported", defined_in)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
