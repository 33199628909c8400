"""A notebook as one HTML file that works offline: nbconvert's exporter `tinote_html`.

    jupyter nbconvert --to tinote_html notebook.ipynb

nbconvert's own pages load MathJax, RequireJS and the widgets' libraries from the network. Here formulas are MathML,
which browsers draw by themselves, views are the pictures that the notebook holds, images that lie next to it are in the
file, and cells with `%%kernel` are coloured as the Python that they are. What is no formula that can be converted stays
as it was written.
"""

from __future__ import annotations

import contextlib
import copy
import html
import re
from pathlib import Path
from typing import Any

import nbformat
from jinja2 import pass_context
from jinja2.runtime import Context
from nbconvert.exporters import HTMLExporter
from nbconvert.filters.highlight import Highlight2HTML
from nbformat import NotebookNode
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from traitlets import Bool, List, Unicode
from traitlets.config import Config

from tinote.viz.notebook.front_end import PAGE_TYPE, VIEW_TYPE
from tinote.viz.pages.export import Missing, Pages, Shown
from tinote.viz.pages.markdown import rendered
from tinote.viz.pages.stored import place_kept, place_stored

__all__ = ["OfflineHTMLExporter", "PageExporter"]

TEMPLATES = Path(__file__).parent / "templates"
MAGIC = "%%kernel"

CODE_FACE = ".tinote-article.tinote-article.tinote-article .highlight { background: var(--face); color: var(--ink); }"
"""Behind code is the page's own colour, whatever the style of the code says."""

WITHOUT = {"application/vnd.jupyter.widget-view+json", "application/javascript", "text/vnd.mermaid"}
"""Outputs that scripts from the network would show. Of what else a cell displayed, the next kind is taken."""


class OfflineHTMLExporter(HTMLExporter):
    """The exporter `tinote_html`."""

    export_from_notebook = "HTML without network"

    embed_images = Bool(True, help="Whether images next to the notebook are put into the page.").tag(config=True)
    template_name = Unicode("tinote", help="The template.").tag(config=True)
    extra_template_basedirs = List([str(TEMPLATES)]).tag(config=True)

    @property
    def default_config(self) -> Config:  # type: ignore[override]
        found: Any = super().default_config
        kinds = found["NbConvertBase"]["display_data_priority"]
        found["NbConvertBase"]["display_data_priority"] = [kind for kind in kinds if kind not in WITHOUT]
        return found

    @pass_context
    def markdown2html(self, context: Context, source: str) -> str:
        """Markdown as HTML, with formulas as MathML."""
        return rendered(
            source,
            escape=False,
            attachments=context.get("cell", {}).get("attachments", {}),
            embed_images=self.embed_images,
            path=context.get("resources", {}).get("metadata", {}).get("path", ""),
            anchor_link_text=self.anchor_link_text,
            exclude_anchor_links=self.exclude_anchor_links,
            **self.lexer_options,
        )

    def from_notebook_node(self, nb: NotebookNode, resources: Any = None, **options: Any) -> tuple[str, Any]:  # type: ignore[override]
        # The state of widgets is for scripts that are not there.
        metadata = {name: found for name, found in nb.metadata.items() if name != "widgets"}
        nb = NotebookNode({**nb, "metadata": NotebookNode(metadata)})
        about = nb.metadata.get("language_info", {})
        lexer = about.get("pygments_lexer", about.get("name"))
        known: Any = self.filters
        self.filters = {**known, "highlight_code": _Highlight(pygments_lexer=lexer, parent=self)}
        return super().from_notebook_node(nb, resources, **options)


class PageExporter(OfflineHTMLExporter):
    """The exporter `tinote_page`: the notebook as a page in which each live view runs of which an output holds how
    (`viz/pages/stored.py`). `shown`: what became of the views of the last notebook.
    """

    export_from_notebook = "HTML with running views"
    template_name = Unicode("tinote-page", help="The template.").tag(config=True)
    exclude_input_prompt = Bool(True).tag(config=True)
    exclude_output_prompt = Bool(True).tag(config=True)

    shown: tuple[Shown, ...] = ()

    def from_notebook_node(self, nb: NotebookNode, resources: Any = None, **options: Any) -> tuple[str, Any]:  # type: ignore[override]
        pages = Pages()
        nb = copy.deepcopy(nb)
        for cell in nb.cells:
            cell.outputs = [_placed(output, pages) for output in cell.get("outputs", [])] if "outputs" in cell else None
            if cell.outputs is None:
                del cell["outputs"]
        body, resources = super().from_notebook_node(nb, resources, **options)
        self.shown = tuple(pages.views)
        title = resources["metadata"].get("title") or resources["metadata"].get("name", "Notebook")
        return pages.html(title, body, code_styles()), resources


def _placed(output: NotebookNode, pages: Pages) -> NotebookNode:
    """An output of a cell with its views where they run, and without scripts, which the page would not let run."""
    data = output.get("data", {})
    if "views" in data.get(PAGE_TYPE, {}):
        return nbformat.v4.new_output("display_data", {"text/html": place_stored(pages, data[PAGE_TYPE])})
    if isinstance(data.get(VIEW_TYPE), dict) and "views" in data[VIEW_TYPE]:
        # What cannot be read shows its picture; what others have put there is run as pages run it, without a network.
        with contextlib.suppress(ValueError):
            return nbformat.v4.new_output("display_data", {"text/html": place_kept(pages, data[VIEW_TYPE]["views"])})
    if "page" in data.get(PAGE_TYPE, {}):
        framed = pages.framed(data[PAGE_TYPE]["page"], data[PAGE_TYPE]["name"])
        return nbformat.v4.new_output("display_data", {"text/html": framed})
    if PAGE_TYPE in data:
        pages.views.append(Shown(data[PAGE_TYPE]["name"], False, (Missing("a run", data[PAGE_TYPE]["reason"]),)))
    html_text = data.get("text/html")
    if isinstance(html_text, str) and "<script" in html_text.lower():
        others = {kind: found for kind, found in data.items() if kind != "text/html"}
        without = re.sub(r"<script\b.*?(</script\s*>|$)", "", html_text, flags=re.DOTALL | re.IGNORECASE)
        return NotebookNode({**output, "data": others if len(others) > 1 else {**data, "text/html": without}})
    return output


def code_styles() -> str:
    """The colours of code, in both themes."""
    light = HtmlFormatter(style="default").get_style_defs(".tinote-article .highlight")
    dark = HtmlFormatter(style="github-dark")
    system = dark.get_style_defs(":root:not(.light) .tinote-article .highlight")
    chosen = dark.get_style_defs(":root.dark .tinote-article .highlight")
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{system}\n}}\n{chosen}\n{CODE_FACE}"


class _Highlight(Highlight2HTML):
    """Colours code, and that of kernels too."""

    def __call__(self, source: str, language: str | None = None, metadata: Any = None) -> str:
        if not source.startswith(MAGIC):
            return super().__call__(source, language, metadata)
        magic, _, code = source.partition("\n")
        shown = HtmlFormatter(nowrap=True)
        words = f'<span class="o">%%</span><span class="k">{MAGIC[2:]}</span>{html.escape(magic[len(MAGIC) :])}'
        python = highlight(code, PythonLexer(stripnl=False), shown)
        return f'<div class="highlight hl-ipython3"><pre><span></span>{words}\n{python}</pre></div>\n'
