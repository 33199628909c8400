"""Tests of derivatives, as they are on the CPU, on a software GPU."""

from __future__ import annotations

from tests.sample_on_gpu import passes_on_gpu

FILES = "atomics custom gradients gradient_cost grad_check launched_gradients recursion_gradients stacks_between_tasks"


def test_derivatives() -> None:
    passes_on_gpu([f"tests/autodiff/test_{name}.py" for name in FILES.split()], 100)
