"""The worked examples of the manual run, and give what they say."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.pages import execute, programs

MANUAL = Path(__file__).resolve().parents[2] / "docs" / "derivatives.md"


def test_the_worked_examples(capsys: pytest.CaptureFixture[str]):
    scope: dict[str, Any] = {"__name__": "worked_examples"}
    shown: list[str] = []
    for number, block in enumerate(programs(MANUAL.read_text("utf-8"))):
        execute(block, f"<example {number}>", scope)
        shown.append(capsys.readouterr().out)
        if number == 0:
            assert scope["tape"].graph().summary.startswith("51 launches; the tape has copied")
            assert scope["tape"].grad_report.ok
    _, checkpointed, _, _, found = shown
    report = scope["report"]
    assert (report.steps, report.state_bytes) == (1000, 32) and report.peak_bytes <= 1 << 10
    assert checkpointed.startswith("1,000 steps, ") and f"at most {report.snapshots} states of 32 bytes" in checkpointed
    assert "in the derivative of sqrt: 0.5 / 0.0 is inf, in iteration i = 2" in found
    assert "the gradient of 'roots'" in found

    ti, x, loss, energy = (scope[name] for name in ("ti", "x", "loss", "energy"))
    x.fill(0.5)
    product = np.asarray(ti.ad.hvp(energy, wrt=x, loss=loss)([1.0, 0.0, 0.0, 0.0]))
    start = scope["starts"][17]
    x.from_numpy(start)
    assert np.array_equal(scope["gradients"][17], ti.ad.grad(energy, wrt=x, loss=loss)())
    gradients: list[float] = []
    for h in (1e-5, -1e-5):
        x.fill(0.5)
        x[0] = 0.5 + h
        with ti.ad.Tape(loss):
            energy()
        gradients.append(x.grad[0])
    np.testing.assert_allclose(product, [(gradients[0] - gradients[1]) / 2e-5, 0, 0, 0], rtol=1e-6)
