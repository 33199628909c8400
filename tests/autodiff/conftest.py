"""How much LLVM optimises the kernels of these tests."""

from zlib import crc32

import pytest

import tinote as ti


@pytest.fixture(autouse=True)
def most_machine_code_is_made_quickly(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Derivatives are right or wrong before LLVM sees them, and optimising what runs once takes ten times as long as
    making it: one test in four is optimised as users' programs are, unless `--opt-level` says otherwise.
    """
    level = request.config.getoption("--opt-level")
    if level is None:
        level = 3 if crc32(request.node.nodeid.encode()) % 4 == 0 else 0
    assert ti.init.__kwdefaults__ is not None
    monkeypatch.setitem(ti.init.__kwdefaults__, "opt_level", level)
