"""What tests of the access rules have in common."""

from typing import Any

import pytest

import tinote as ti
from tinote.lang.ad.access_rules.violations import Violation


@pytest.fixture(autouse=True)
def debugging() -> None:
    ti.init(arch=ti.cpu, default_fp=ti.f64, debug=True)


def field(name: str, *shape: int, **options: Any) -> Any:
    return ti.field(ti.f64, shape=shape, needs_grad=True, name=name, **options)


def collected(loss: Any, run: Any) -> list[Violation]:
    """What a tape around `run` finds."""
    with ti.ad.Tape(loss, validation="collect") as tape:
        run()
    return tape.violations
