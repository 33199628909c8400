"""What the live views may import: nothing of the language or the compiler, and no plotting library."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

VIZ = Path(__file__).parents[2] / "tinote" / "viz"
LIVE = (
    "arrays",
    "events",
    "front_end",
    "gui",
    "image",
    "particles",
    "pictures",
    "pointer",
    "progress",
    "projection",
    "recording",
    "running_plot",
    "controls",
    "colormap",
    "widgets",
    "chart",
    "simulation",
    "slider",
    "view",
    "window",
)
UNWANTED = ("tinote.lang", "tinote.compiler", "tinote.autodiff", "tinote.ir", "llvmlite", "matplotlib")


@pytest.mark.parametrize("name", LIVE)
def test_live_views_take_arrays_and_know_no_language(name):
    tree = ast.parse((VIZ / f"{name}.py").read_text())
    imported = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    imported += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    assert imported
    assert [module for module in imported if module.startswith(UNWANTED)] == []
