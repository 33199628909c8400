"""The programs of the README run, and end in something that moves."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from tests.pages import execute, programs

PROJECT = Path(__file__).resolve().parents[1]
BLOCKS = programs((PROJECT / "README.md").read_text("utf-8"))


def run(block: str, file: str, space: dict[str, Any]) -> Any:
    """Run a cell; gives the value of its last line, if that is an expression."""
    *lines, last = block.strip().splitlines()
    if "=" in last.partition("(")[0]:
        lines, last = [*lines, last], "None"
    execute("\n".join(lines), file, space)
    return eval(last, space)


def test_the_first_program_moves_and_the_gradients_are_right() -> None:
    first, gradients = BLOCKS
    assert len([line for line in first.splitlines() if line.strip()]) <= 25
    space: dict[str, Any] = {"__name__": "readme"}
    view = run(first, "<first program>", space)
    before = space["x"].to_numpy()
    view.advance(20)
    x = space["x"].to_numpy()
    moved = np.linalg.norm(x - before, axis=1)
    assert np.median(moved) > 0.01 and np.isfinite(x).all()
    run(gradients, "<gradients>", space)
    p = x.astype(np.float64)
    d = p[:, None] - p[None, :]
    by_hand = -(d / ((d**2).sum(-1, keepdims=True) + 1e-3) ** 1.5).sum(axis=1) / space["N"]
    np.testing.assert_allclose(space["forces"], by_hand, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(space["gradient"], -by_hand, rtol=1e-3, atol=1e-4)
    assert np.abs(space["product"]).max() < 0.01, "moving all bodies alike changes no force"


def test_the_site_begins_with_the_same_program() -> None:
    page = (PROJECT / "docs" / "index.md").read_text("utf-8")
    readme = (PROJECT / "README.md").read_text("utf-8")
    begin, end = re.findall(r":(?:start-after|end-before): \"(.*)\"", page)
    assert readme.split(begin)[1].split(end)[0].strip() == f"```python\n{BLOCKS[0]}```"
