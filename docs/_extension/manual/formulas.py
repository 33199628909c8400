"""Formulas as MathML, which browsers draw by themselves."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from tinote.viz.pages.markdown import formula


def _inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(formula(node.astext(), "inline", node.astext()))
    raise nodes.SkipNode


def _block(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="math">{formula(node.astext(), "block", node.astext())}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
