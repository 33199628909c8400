"""Tests of the language, as they are on the CPU, on a software GPU."""

from __future__ import annotations

import pytest

from tests.sample_on_gpu import passes_on_gpu

FILES = {
    "numbers": "arithmetic annotated_results atomics casts vectors types_and_ranks",
    "data": "argpacks fields fill layouts methods ndarray structs",
    "control": "bounds calls control exceptions formats generators kernels loops recursion static",
}


@pytest.mark.parametrize("group", FILES)
def test_the_language(group: str) -> None:
    passes_on_gpu([f"tests/lang/test_{name}.py" for name in FILES[group].split()], 250)
