"""Every language test begins in a fresh session with the default options."""

from __future__ import annotations

import pytest

import tinote as ti


@pytest.fixture(autouse=True)
def session() -> None:
    ti.init(arch=ti.cpu)
