"""What the live views may import: nothing of the language or the compiler, and no plotting library."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import tinote as ti

VIZ = Path(__file__).parents[2] / "tinote" / "viz"
#: these know fields, kernels, the IR or matplotlib; what they import is no part of a live view
EXEMPT = ("__init__.py", "contours.py", "cover.py", "fields.py", "matplot.py", "strokes.py", "syntax.py", "ui.py")
LIVE = [
    path.relative_to(VIZ).as_posix()
    for folder in ("draw", "live", "notebook", "window")
    for path in sorted((VIZ / folder).glob("*.py"))
    if path.name not in EXEMPT
]
STEPS = "tinote.lang.capture.automatic"
"""What runs the step of a view, which knows no more of it than that it is called."""

UNWANTED = ("tinote.lang", "tinote.compiler", "tinote.autodiff", "tinote.ir", "llvmlite", "matplotlib")


@pytest.mark.parametrize("name", LIVE)
def test_live_views_take_arrays_and_know_no_language(name):
    tree = ast.parse((VIZ / name).read_text())
    imported = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    imported += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    assert imported
    assert [module for module in imported if module.startswith(UNWANTED) and module != STEPS] == []


def test_a_name_that_does_not_exist_has_a_suggestion():
    with pytest.raises(AttributeError, match=r"has no attribute 'Particle'; did you mean 'Particles'\?"):
        ti.viz.Particle  # noqa: B018
