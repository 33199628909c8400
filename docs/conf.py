"""The manual as a static site: `pip install -e '.[docs]'`, then `sphinx-build -W docs docs/_build/html`.

What stands in `docs/_extension/` writes a part of the sources into folders that git ignores: the executed tutorials,
the gallery and the reference. No page asks another host for anything. The address at which the site will be comes
with `-D html_baseurl=https://…/`: links on its page 404 need it.
"""

import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_extension"))

project = "tinote"
release = tomllib.loads((HERE.parent / "pyproject.toml").read_text("utf-8"))["project"]["version"]
author = copyright = "The tinote developers"
html_title = "tinote"
html_short_title = "tinote"

extensions = ["myst_nb", "manual.formulas", "manual.source_links", "manual.sources"]
exclude_patterns = ["_build", "_extension", "names.md", "pictures"]
templates_path = ["_templates"]
default_role = "code"
pygments_style = "default"

# Pages are found by the names that headings have in JupyterLab: `errors.md#KernelSyntaxError`.
myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_heading_slug_func = "manual.sources.slug"
myst_update_mathjax = False

# The tutorials come with the outputs of a run that `manual.tutorials` has made, or that is stored in them.
nb_execution_mode = "off"
nb_ipywidgets_js = {}
nb_merge_streams = True
nb_render_error_lexer = "myst-ansi"

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_favicon = "_static/favicon.svg"
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_sidebars = {"gallery/**": [], "coming_from": [], "index": [], "museum": [], "404": []}
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "tinote"},
    "navbar_start": ["navbar-logo", "tinote-version"],
    "navbar_end": ["theme-switcher"],
    "show_prev_next": True,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "default",
    "pygments_dark_style": "github-dark",
}
