"""Notebooks as pages: formulas, kernels and views without any other host."""

from __future__ import annotations

import base64
import io
import json
import re
import tomllib
from pathlib import Path

import nbformat
import pytest
from nbconvert.exporters import get_exporter
from PIL import Image

from tinote.cli.html_export import OfflineHTMLExporter
from tinote.manual import tutorials
from tinote.viz.notebook.front_end import VIEW_TYPE

PROJECT = Path(__file__).resolve().parents[1]
WIDGET = "application/vnd.jupyter.widget-view+json"
MANUAL = sorted(tutorials().glob("*.ipynb"))
FROM_ELSEWHERE = re.compile(
    r"""<(?!a\s)[^>]*\b(?:src|href)=["']?(?:https?:)?//|@import|url\(["']?(?:https?:)?//|<script"""
)
"""What a browser would ask another host for, and what is executed."""


def exported(*cells: nbformat.NotebookNode, widgets: bool = False) -> str:
    document = nbformat.v4.new_notebook(cells=list(cells))
    document.metadata.language_info = {"name": "python", "pygments_lexer": "ipython3"}
    if widgets:
        document.metadata.widgets = {"application/vnd.jupyter.widget-state+json": {"state": {"one": {}}}}
    return OfflineHTMLExporter().from_notebook_node(document)[0]


def markdown(text: str) -> nbformat.NotebookNode:
    return nbformat.v4.new_markdown_cell(text)


def shown(**data: object) -> nbformat.NotebookNode:
    output = nbformat.v4.new_output("display_data", {name.replace("__", "/"): value for name, value in data.items()})
    return nbformat.v4.new_code_cell("shown", outputs=[output])


def text_of(page: str) -> str:
    return re.sub(r"<[^>]+>", "", page)


def test_a_kernel_is_coloured_as_the_python_that_it_is() -> None:
    page = exported(nbformat.v4.new_code_cell("%%kernel --grad <a>\n\ndef half(x: ti.f32):\n    return x / 2  # <b>"))
    code = re.search(r'<div class="highlight hl-ipython3">(.*?)</div>', page, re.DOTALL)
    assert code is not None
    assert '<span class="k">def</span>' in code[1] and '<span class="k">return</span>' in code[1]
    assert text_of(code[1]) == "%%kernel --grad &lt;a&gt;\n\ndef half(x: ti.f32):\n    return x / 2  # &lt;b&gt;\n"
    # Other cells are left to nbconvert.
    other = exported(nbformat.v4.new_code_cell("%%time\nx = 1"))
    assert '<span class="o">%%time</span>' in other


@pytest.mark.parametrize(
    ("text", "display", "parts"),
    [
        ("a $x_i^2$ b", "inline", ["<msubsup>"]),
        ("$$\\frac{1}{2}$$", "block", ["<mfrac>"]),
        ("a\n\n$$\n\\sum_{i=1}^n i\n$$\n", "block", ["<munderover>"]),
        ("\\begin{align}\na &= b \\\\\nc &= d\n\\end{align}", "block", ["<mtable", "<mtr>"]),
    ],
)
def test_a_formula_is_mathml(text: str, display: str, parts: list[str]) -> None:
    page = exported(markdown(text))
    found = re.search(r"<math\b.*?</math>", page, re.DOTALL)
    assert found is not None and ('display="block"' in found[0]) == (display == "block")
    assert all(part in found[0] for part in parts) and "$" not in text_of(page.partition("<main>")[2])


@pytest.mark.parametrize(
    ("tex", "parts"),
    [
        (r"\mathbf u", ["𝐮"]),
        (r"\mathbf{F}_i = m \mathbf{a}_i", ["𝐅", "𝐚"]),
        (r"\boldsymbol{\sigma} \cdot \bm x", ["𝝈", "𝒙"]),
        (r"\mathrm{d} x", ['<mi mathvariant="normal">d</mi>']),
        (r"\mathbf F = -\partial U", ['<mo lspace="0" rspace="0">−</mo>']),
        (r"\begin{aligned} a &= -b \\ c &= d \end{aligned}", ["<mtable", "<mtr>"]),
        (r"\text{if } x", ["<mtext>if"]),
        (r"\sqrt{\frac{a}{b}}", ["<msqrt><mfrac>"]),
        (r"\begin{pmatrix} 1 & 0 \\ 0 & 1 \end{pmatrix}", ["<mtable"]),
    ],
)
def test_formulas_have_what_browsers_draw(tex: str, parts: list[str]) -> None:
    page = exported(markdown(f"${tex}$"))
    found = re.search(r"<math\b.*?</math>", page, re.DOTALL)
    assert found is not None and all(part in found[0] for part in parts)
    # The only variant that MathML Core has: others are letters of their own.
    assert set(re.findall(r'mathvariant="(\w+)"', found[0])) <= {"normal"} and "&amp;" not in found[0]


def test_what_is_no_formula_stays_as_it_is() -> None:
    page = exported(markdown("it costs \\$5, `$x$` and $\\left( x < y$"))
    assert "<math" not in page and "<code>$x$</code>" in page and r"<code>$\left( x &lt; y$</code>" in page


def test_an_output_of_latex_is_mathml_too() -> None:
    assert "<mfrac>" in exported(shown(text__latex="$\\displaystyle \\frac{a}{b}$"))


def test_views_are_their_pictures_and_nothing_is_executed() -> None:
    png = base64.b64encode(b"picture").decode()
    view = nbformat.v4.new_output(
        "display_data", {VIEW_TYPE: {}, WIDGET: {"model_id": "one"}, "image/png": png, "text/plain": "<view>"}
    )
    script = shown(application__javascript="alert(1)", text__plain="said")
    page = exported(nbformat.v4.new_code_cell("view", outputs=[view]), script, widgets=True)
    assert f"data:image/png;base64,{png}" in page and "model_id" not in page
    assert "alert(1)" not in page and "said" in page
    assert FROM_ELSEWHERE.search(page) is None


@pytest.mark.parametrize("notebook", MANUAL, ids=[notebook.stem for notebook in MANUAL])
def test_the_manual_needs_no_network(notebook: Path) -> None:
    page = OfflineHTMLExporter().from_filename(str(notebook))[0]
    assert FROM_ELSEWHERE.search(page) is None
    kernels = sum(cell.source.startswith("%%kernel") for cell in nbformat.read(notebook, as_version=4).cells)
    assert page.count('<span class="o">%%</span><span class="k">kernel</span>') == kernels
    # Code may have formulas in its strings.
    prose = re.sub(r"<pre>.*?</pre>", "", page.partition("<main>")[2], flags=re.DOTALL)
    assert not re.search(r"\$[^$\n<]*\\[a-z]+", text_of(prose)), "a formula that was not converted"


@pytest.mark.parametrize("notebook", MANUAL, ids=[notebook.stem for notebook in MANUAL])
def test_the_figures_of_the_manual_stand_on_a_ground_of_their_own(notebook: Path) -> None:
    """In a dark theme they can be read."""
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", ()):
            if "image/png" in output.get("data", {}):
                png = base64.b64decode("".join(output["data"]["image/png"]))
                alpha = Image.open(io.BytesIO(png)).convert("RGBA").getchannel("A")
                assert alpha.getextrema() == (255, 255)


def test_nbconvert_takes_the_exporter_that_the_package_registers() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    place = project["project"]["entry-points"]["nbconvert.exporters"]["tinote_html"]
    assert get_exporter(place.replace(":", ".")) is OfflineHTMLExporter
    assert OfflineHTMLExporter().export_from_notebook, "offered in the menu of JupyterLab"
    for name in project["project"]["entry-points"]["nbconvert.exporters"]:
        assert re.fullmatch(r"\w+", name), "Jupyter's server has no address for an exporter of another name"
