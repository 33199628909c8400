"""The traps on machines of all widths: with every loop in lanes that can be, a gradient is that of what runs."""

from itertools import cycle

import pytest

import tinote as ti
from tests.autodiff import test_traps_control as control
from tests.autodiff import test_traps_iterations as iterations
from tests.autodiff import test_traps_values as values
from tests.autodiff.traps import Traps
from tests.runtime.processors import machine_with
from tinote.runtime import jit

#: Each program at one width in turn: as many f64 as registers of that many bits hold.
WIDTHS = cycle((128, 256, 512))
CASES = [(traps, name, next(WIDTHS)) for traps in (iterations.trap, control.trap) for name in traps]
# Two lanes of whole exponents ended the process.
CASES += [(values.trap, "power", bits) for bits in (128, 256, 512)]


@pytest.mark.parametrize(("traps", "name", "bits"), CASES, ids=[f"{name}-{bits}" for _, name, bits in CASES])
def test_trap_in_lanes(traps: Traps, name: str, bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "_host", machine_with(bits))
    # Not in debug mode, which watches loops whose iterations may conflict, and runs them without lanes.
    ti.init(arch=ti.cpu, default_fp=ti.f64, opt_level=1, lanes="always")
    traps.check(name)
