"""Tests of derivatives, as they are on the CPU, on a software GPU."""

from __future__ import annotations

import pytest

from tests.sample_on_gpu import passes_on_gpu

FILES = {
    "kernels": "atomics custom gradients gradient_cost",
    "programs": "grad_check launched_gradients recursion_gradients stacks_between_tasks",
}


@pytest.mark.parametrize("group", FILES)
def test_derivatives(group: str) -> None:
    passes_on_gpu([f"tests/autodiff/test_{name}.py" for name in FILES[group].split()], 50)
