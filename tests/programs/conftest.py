"""Every program begins in a fresh session with the default options, but for how much LLVM optimises."""

import pytest

import tinote as ti


@pytest.fixture(autouse=True)
def session(most_machine_code_is_made_quickly: None) -> None:
    ti.init(arch=ti.cpu)
