"""An error in a notebook: the user's line with the caret, the message, the hint, a link to the manual, and, folded, the
call stack.

IPython's own text of an error stays in the notebook for programs (nbval, nbclient, `tinote run`) and for front ends
that show no HTML. The view follows it directly, and its style sheet hides the text in JupyterLab, Notebook 7 and the
pages of nbconvert; elsewhere it adds to the text what that lacks: the link and the call stack. Where styles are
stripped (an untrusted notebook, a code-hosting site) `hidden` hides the view, and the text is what is seen. It has a
value because some sanitisers drop attributes that have none.
"""

from __future__ import annotations

import html
import linecache
import re
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from IPython.display import publish_display_data

from tinote.errors import AccessRuleError, CompilerBug, TinoteError, excerpts, interruption_of, is_users, users_place
from tinote.manual import section_of
from tinote.source import Span, location_name
from tinote.viz.notebook.front_end import Audience, audience
from tinote.viz.notebook.view import static_source

STYLES = ("theme.css", "views/errors.css")

FRAMES = 40
"""The folded traceback shows no more of them: half from its beginning, half from its end."""

PACKAGE = Path(__file__).resolve().parents[3]

SCROLLED = '<pre tabindex="0">'
"""Long lines are scrolled, by keys too."""

_ROW = re.compile(r"( *\d* +\| )(.*)", re.DOTALL)
"""A row of source text with its number, or of carets under one."""


def error_as_html(error: BaseException) -> str:
    """`error` as one element with a style sheet of its own, without scripts. What comes from the user is escaped.
    Broken rules of access have a view of their own, which follows: they are not described here as well.
    """
    if isinstance(error, AccessRuleError) and error.violations:
        located = ""
    else:
        located = _located(error) if isinstance(error, TinoteError) else _raised(error)
    more = "".join(filter(None, (_manual_link(error), _way_here(error))))
    name = html.escape(type(error).__name__)
    return (
        f"<style>{static_source(*STYLES)}</style>"
        f'<div class="tinote-error-view" role="group" aria-label="{name}" hidden="hidden">'
        f'<div class="said">{located}</div><div class="more"><span class="kind">{name}</span>{more}</div></div>'
    )


def _located(error: TinoteError) -> str:
    parts = [_excerpt(error.place), _line("message", error.message)]
    for note in error.notes:
        parts += [_line("note", f"note: {note.text}"), _excerpt(note.span)]
    if error.hint:
        parts.append(_line("help", f"help: {error.hint}"))
    for other in error.others:
        parts += ["<hr>", _located(other)]
    return "".join(parts)


def _raised(error: BaseException) -> str:
    """An exception without a location of its own: the innermost frame of the user's code, if any, and the message; of
    an interrupt the kernel that it has ended.
    """
    place = _excerpt(users_place(error))
    interrupted = interruption_of(error)
    if interrupted is None:
        return place + _line("message", str(error) or type(error).__name__)
    message, kernel = _line("message", interrupted.text), _excerpt(interrupted.span)
    if not kernel:
        return place + message
    return kernel + message + (_line("note", "note: called here") + place if place else "")


def _line(kind: str, text: str) -> str:
    words = re.sub("`([^`\n]+)`", r"<code>\1</code>", html.escape(text))
    return f'<p class="{kind}">{words}</p>'


def _excerpt(span: Span) -> str:
    """The rows of text that show a place, each coloured as what it is."""
    shown: list[str] = []
    for row in excerpts(span):
        cut = _ROW.fullmatch(row)
        if cut is None:
            shown.append(f'<span class="place">{html.escape(row)}</span>')
        else:
            kind = "source" if cut[1].strip(" |") else "caret"
            shown.append(f'<span class="number">{cut[1]}</span><span class="{kind}">{html.escape(cut[2])}</span>')
    return f"{SCROLLED}{chr(10).join(shown)}</pre>" if shown else ""


def _manual_link(error: BaseException) -> str:
    try:
        section = section_of(type(error), Path.cwd())
    except OSError:
        return ""  # Installed without the manual, or in a folder that is gone.
    if not section.title:
        return ""
    title = f"{section.title} in {section.file}"
    return f'<a href="{html.escape(section.address)}" title="{html.escape(title)}">What this means</a>'


def _way_here(error: BaseException) -> str:
    """The frames from the user's own on, folded: those of this package too, and those of what caused the error."""
    rows = _frames(error)
    chain = [error]
    while (cause := chain[-1].__cause__) is not None and cause not in chain:
        chain.append(cause)
        rows += ["", f"because of {type(cause).__name__}: {cause}", *_frames(cause)]
    if not rows:
        return ""
    text = html.escape("\n".join(rows))
    return f"<details><summary>How the program came here</summary>{SCROLLED}{text}</pre></details>"


def _frames(error: BaseException) -> list[str]:
    frames = list(traceback.walk_tb(error.__traceback__))
    users = next((n for n, (frame, _) in enumerate(frames) if is_users(frame)), 0)
    rows = [_frame(frame.f_code.co_filename, line, frame.f_code.co_name) for frame, line in frames[users:]]
    if len(rows) > FRAMES:
        rows[FRAMES // 2 : -FRAMES // 2] = [f"… {len(rows) - FRAMES} more calls"]
    return rows


def _frame(file: str, line: int, function: str) -> str:
    path = Path(file)
    shown = path.relative_to(PACKAGE).as_posix() if path.is_relative_to(PACKAGE / "tinote") else file
    text = linecache.getline(file, line).strip()
    where = location_name(Span(shown, line)) + ("" if function == "<module>" else f", in {function}")
    return f"{where}\n    {text}" if text else where


def show_errors(shell: Any, *, on: bool) -> None:
    """Make an IPython shell show the view under each error of this package that ends a cell; or stop doing so."""
    registered: Sequence[Any] = shell.events.callbacks["post_run_cell"]
    if on and _show_result not in registered:
        shell.events.register("post_run_cell", _show_result)
    elif not on and _show_result in registered:
        shell.events.unregister("post_run_cell", _show_result)


def _show_result(result: Any) -> None:
    """A cell has ended. In a terminal, and where the view cannot be made, the text says it."""
    error = result.error_in_exec
    if not isinstance(error, TinoteError | CompilerBug) and (error is None or interruption_of(error) is None):
        return
    if audience() is Audience.NOBODY:
        return
    try:
        shown = error_as_html(error)
    except Exception:
        return
    publish_display_data({"text/html": shown})
