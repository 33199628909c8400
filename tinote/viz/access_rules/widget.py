"""The rule view: what broke the access rules under a tape, with both lines, the launches between, and how to mend it.

`violations(tape)` returns a `RuleView`, a widget for a notebook; `RuleView.save` writes the same view as one HTML page
that needs no kernel. Once `%load_ext tinote` has run, a notebook shows it by itself under the error of a tape that
validates. Where no widget can be shown, a picture and a text stay.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import anywidget
import traitlets
from IPython.display import display

from tinote.errors import AccessRuleError, TinoteError
from tinote.lang.ad.access_rules.violations import Violation
from tinote.lang.ad.tape import Tape
from tinote.source import caller
from tinote.viz.access_rules.facts import as_text, findings
from tinote.viz.access_rules.picture import draw_findings
from tinote.viz.notebook.front_end import Audience, Bundle, audience, with_picture
from tinote.viz.notebook.page import page
from tinote.viz.notebook.view import static_source

SCRIPTS = ("view.js", "syntax.js", "explorer_lines.js", "rules.js")
STYLES = ("theme.css", "rules.css")
PICTURE_WIDTH = 960


class RuleView(anywidget.AnyWidget):
    """The view of some violations. Their source is read when it is made: later cells change nothing."""

    _esm = static_source(*SCRIPTS)
    _css = static_source(*STYLES)

    findings = traitlets.List().tag(sync=True)
    """What the page shows, as `rule_facts` describes it."""

    def __init__(self, violations: Iterable[Violation]) -> None:
        super().__init__(findings=findings(violations))

    def save(self, path: str | Path) -> Path:
        """Write the view as one HTML page, for any browser, offline. Returns where it is."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            page("Access rules", STYLES, SCRIPTS, "showPage", {"findings": self.findings}), encoding="utf-8"
        )
        return path

    def picture(self) -> bytes:
        """The first finding as a PNG file, with the number of the others."""
        return draw_findings(self.findings, PICTURE_WIDTH)

    def text(self) -> str:
        """Everything as plain text."""
        return as_text(self.findings)

    def __repr__(self) -> str:
        return f"<rule view: {len(self.findings)} violation{'s' if len(self.findings) != 1 else ''}>"

    def _repr_mimebundle_(self, **_: Any) -> Bundle:  # type: ignore[override]
        # Drawn at twice its size, for sharp text.
        about = {"width": PICTURE_WIDTH, "alt": self.text()}
        return with_picture(super()._repr_mimebundle_, self.text(), self.picture, about)


def violations(tape: Tape) -> RuleView:
    """The view of what `tape` found: it was opened with `validation=True` or `"collect"`, or `on_overwrite="error"`.
    Raises `TinoteError` for a tape that did not check.
    """
    if not isinstance(tape, Tape):
        raise TinoteError(f"only a tape has violations to show, not {tape!r}", caller())
    if tape.rules is None:
        raise TinoteError(
            "this tape did not check the access rules",
            caller(),
            hint='call ti.init(debug=True) and open the tape with validation="collect"',
        )
    return RuleView(tape.violations)


def show_after_errors(shell: Any, *, on: bool) -> None:
    """Let an IPython shell show the view under each error about the access rules that ends a cell, and wherever such an
    error is displayed; or not any more.
    """
    rich = shell.display_formatter.mimebundle_formatter
    plain = shell.display_formatter.formatters["text/plain"]
    if _show_result in shell.events.callbacks["post_run_cell"]:
        shell.events.unregister("post_run_cell", _show_result)
        rich.pop(AccessRuleError, None)
        plain.pop(AccessRuleError, None)
    if on:
        rich.for_type(AccessRuleError, _bundle_of)
        # IPython has a printer for all exceptions, which would come before the text of the bundle.
        plain.for_type(AccessRuleError, _print)
        shell.events.register("post_run_cell", _show_result)


def _found(error: AccessRuleError) -> list[Violation]:
    """What the error is about; nothing for one that has been pickled."""
    return [one for one in error.violations if isinstance(one, Violation)]


def _bundle_of(error: AccessRuleError) -> Any:
    found = _found(error)
    return RuleView(found)._repr_mimebundle_() if found else None


def _print(error: AccessRuleError, printer: Any, _cycle: bool) -> None:
    found = _found(error)
    printer.text(as_text(findings(found)) if found else repr(error))


def _show_result(result: Any) -> None:
    """A cell has ended. In a terminal the message of the error says what there is to say."""
    error = result.error_in_exec
    if isinstance(error, AccessRuleError) and error.violations and audience() is not Audience.NOBODY:
        display(error)
