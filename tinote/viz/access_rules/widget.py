"""The rule view: the accesses that broke the rules under a tape, with both lines, the launches between, and a fix.

`violations(tape)` returns a `RuleView`, a widget for a notebook; `RuleView.save` writes the same view as one HTML page
that needs no kernel. Once `%load_ext tinote` has run, a notebook shows it by itself under the error of a tape that
validates. Where no widget can be shown, a picture and plain text remain.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import traitlets
from IPython.display import display

from tinote.errors import AccessRuleError, TinoteError
from tinote.lang.ad.access_rules.violations import Violation
from tinote.lang.ad.tape import Tape
from tinote.source import caller
from tinote.viz.access_rules.facts import as_text, findings
from tinote.viz.access_rules.picture import draw_findings
from tinote.viz.draw.arguments import checked
from tinote.viz.notebook.front_end import Audience, audience
from tinote.viz.notebook.static_view import StaticView
from tinote.viz.notebook.view import static_source


class RuleView(StaticView):
    """The view of broken rules of access, which `ti.viz.violations` returns.

    Their source is read when the view is made, so later cells do not change it.

    Methods
    -------
    picture
    save
    text

    Attributes
    ----------
    violations : list of Violation

    Examples
    --------
    >>> y = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> with ti.ad.Tape(y, validation=True) as tape:
    ...     pass
    >>> isinstance(ti.viz.violations(tape), ti.viz.RuleView)
    True
    """

    TITLE = "Access rules"
    SCRIPTS = ("view.js", "syntax.js", "explorer/lines.js", "views/rules.js")
    STYLES = ("theme.css", "frame.css", "views/rules.css")
    _esm = static_source(*SCRIPTS)
    _css = static_source(*STYLES)

    findings = traitlets.List().tag(sync=True)
    """What the page shows, as `rule_facts` describes it."""

    def __init__(self, violations: Iterable[Violation]) -> None:
        self.violations = list(violations)
        super().__init__(findings=findings(self.violations))

    def shown(self) -> dict[str, Any]:
        return {"findings": self.findings}

    def picture(self) -> bytes:
        """The first finding as a PNG file, with the number of the others.

        Returns
        -------
        bytes
            The contents of the file.
        """
        return draw_findings(self.findings, self.PICTURE_WIDTH)

    def text(self) -> str:
        """Everything as plain text.

        Returns
        -------
        str
            Several lines.
        """
        return as_text(self.findings)

    def __repr__(self) -> str:
        return f"<rule view: {len(self.findings)} violation{'s' if len(self.findings) != 1 else ''}>"


@checked
def violations(tape: Tape) -> RuleView:
    """Show the broken rules of access that a tape found.

    Parameters
    ----------
    tape : Tape
        A tape that was opened with `validation=True` or `"collect"`, or `on_overwrite="error"`.

    Returns
    -------
    RuleView
        A widget, with `save` for a page and `picture` for a file.

    Raises
    ------
    TinoteError
        For a tape that did not check.

    Examples
    --------
    >>> y = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> with ti.ad.Tape(y, validation="collect") as tape:
    ...     pass
    >>> ti.viz.violations(tape)
    <rule view: 0 violations>
    """
    if tape.rules is None:
        raise TinoteError(
            "this tape did not check the access rules",
            caller(),
            hint='open it with validation="collect"',
        )
    return RuleView(tape.violations)


def show_after_errors(shell: Any, *, on: bool) -> None:
    """Make an IPython shell show the view under each error about the access rules that ends a cell, and wherever such
    an error is displayed; or stop doing so.
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
    """A cell has ended. In a terminal the error message is enough."""
    error = result.error_in_exec
    if isinstance(error, AccessRuleError) and error.violations and audience() is not Audience.NOBODY:
        display(error)
