"""Markdown as HTML that works offline: formulas are MathML Core, which browsers render without a library."""

from __future__ import annotations

import html
from typing import Any

from math_core import LatexError, LatexToMathML
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

_converter = LatexToMathML()


class FormulaRenderer(IPythonRenderer):
    """nbconvert's renderer, with formulas as MathML. What cannot be converted stays as it was written."""

    def block_math(self, body: str) -> str:
        return formula(body, "block", f"$${body}$$")

    def inline_math(self, body: str) -> str:
        return formula(body, "inline", f"${body}$")

    def latex_environment(self, name: str, body: str) -> str:
        whole = f"\\begin{{{name}}}{body}\\end{{{name}}}"
        return formula(whole, "block", whole)


def rendered(source: str, **options: Any) -> str:
    """Markdown as HTML. `options`: of the renderer; with `escape=True`, HTML in the source is shown as text."""
    return str(MarkdownWithMath(renderer=FormulaRenderer(**options)).render(source))


def formula(tex: str, display: str, written: str) -> str:
    """A formula in LaTeX as MathML, `display` "inline" or "block"; as it was `written` where that cannot be had."""
    try:
        return _converter.convert_with_local_state(tex, displaystyle=display == "block")
    except LatexError:
        return f"<code>{html.escape(written)}</code>"
