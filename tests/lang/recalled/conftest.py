"""A cache of the test's own, and modules that are loaded as if by one process after the other."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tinote as ti
from tests.lang.recalled.support import HEAD


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("TINOTE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TINOTE_CACHE_LIMIT", "64M")
    ti.init()
    yield tmp_path / "cache"
    ti.reset()


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    numbers = itertools.count()

    def load(text: str, **others: str) -> ModuleType:
        """A module of this text; `others` are modules that it may import, by name."""
        for name, other in others.items():
            monkeypatch.setitem(sys.modules, name, load(other))
        file = tmp_path / f"module_{next(numbers)}.py"
        file.write_text(HEAD + text)
        spec = importlib.util.spec_from_file_location("played", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "played", module)
        spec.loader.exec_module(module)
        return module

    return load
