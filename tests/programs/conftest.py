"""Every program begins in a fresh session with the default options."""

import pytest

import tinote as ti


@pytest.fixture(autouse=True)
def session() -> None:
    ti.init(arch=ti.cpu)
