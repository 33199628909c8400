"""Writes what the site is made of besides the pages of `docs/`, before Sphinx reads them."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

from pygments.lexer import bygroups
from pygments.lexers import PythonLexer
from pygments.token import Keyword, Operator, Text
from sphinx.application import Sphinx
from sphinx.config import Config

from manual.gallery import write_gallery
from manual.museum import write_museum
from manual.places import VIEWS, write
from manual.reference import write_reference
from manual.tutorials import names, write_tutorials


def slug(title: str) -> str:
    """How a heading is named in a link, as in JupyterLab."""
    return title.replace(" ", "-")


class CellLexer(PythonLexer):
    """Cells of a notebook: Python, also below a magic of ours."""

    name = "IPython cells"
    aliases = ["ipython", "ipython2", "ipython3"]
    filenames: list[str] = []

    tokens = {
        **PythonLexer.tokens,
        "root": [
            (r"\A(%%?)(\w+)([^\n]*)", bygroups(Operator, Keyword, Text)),
            (r"^(%)(\w+)([^\n]*)", bygroups(Operator, Keyword, Text)),
            *PythonLexer.tokens["root"],
        ],
    }


def write_sources(app: Sphinx, config: Config) -> None:
    """Write tutorials, gallery and reference."""
    here, views = Path(app.srcdir), Path(app.outdir) / VIEWS
    views.mkdir(parents=True, exist_ok=True)
    run = {"all": set(names()), "none": set()}.get(config.tutorials_run, set(re.split("[ ,]+", config.tutorials_run)))
    if unknown := run - set(names()):
        raise ValueError(f"tutorials_run names {', '.join(sorted(unknown))}, of which there is no notebook")
    cache = Path(config.tutorials_cache or here / "_build" / "executed")
    write_tutorials(here / "tutorials", views, cache, run)
    write_gallery(here / "gallery", views, cache)
    write_reference(here / "reference")
    write_museum(here / "museum.md")


def lead_home(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """A server shows the page 404 at any address, so its links start from the site's own (`html_baseurl`), if known."""
    if page == "404" and app.config.html_baseurl:
        context["metatags"] = f'<base href="{html.escape(app.config.html_baseurl)}">' + context.get("metatags", "")


def write_versions(app: Sphinx, error: Exception | None) -> None:
    """Write `versions.json`, from which pages make their chooser: this version, which is here, and older ones, each of
    which stands in a folder of its name.
    """
    if error is not None:
        return
    here = Path(app.outdir)
    older = [file.parent.name for file in here.glob("*/versions.json")]
    names = sorted(older, key=lambda name: [int(part) for part in re.findall(r"\d+", name)], reverse=True)
    found = [{"version": app.config.release, "url": "./"}, *({"version": name, "url": f"{name}/"} for name in names)]
    write(here / "versions.json", json.dumps(found, indent=2) + "\n")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_config_value("tutorials_run", "all", "env", str)
    app.add_config_value("tutorials_cache", "", "", str)
    app.add_lexer("ipython", CellLexer)
    app.add_lexer("ipython3", CellLexer)
    app.connect("config-inited", write_sources, priority=100)
    app.connect("html-page-context", lead_home)
    app.connect("build-finished", write_versions)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
