"""How much LLVM optimises the kernels of these tests."""

from zlib import crc32

import pytest

import tinote as ti


@pytest.fixture(autouse=True)
def most_machine_code_is_made_quickly(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Derivatives are right or wrong before LLVM sees them, and it takes ten times as long to optimise what runs once:
    it does so for one test in four, those of a parametrised test in turn, and wherever a test says how much.
    """
    assert ti.init.__kwdefaults__ is not None
    level = 3 if crc32(request.node.nodeid.encode()) % 4 == 0 else 0
    monkeypatch.setitem(ti.init.__kwdefaults__, "opt_level", level)
