"""State that the steps of the pipeline share while they process a function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinote.compiler.passes.analyses.choose_lanes import Machine
from tinote.compiler.requests import defaults_of
from tinote.config import Config
from tinote.remarks import Remark, Report

if TYPE_CHECKING:
    from tinote.autodiff.activity import Broken
    from tinote.autodiff.atomic_old_values import OldValues
    from tinote.autodiff.gradient import Gradient
    from tinote.autodiff.shared_values import SharedValues
    from tinote.ir.checked_accesses import CheckedAccesses
    from tinote.ir.launch_values import SymbolicRegions


class Context:
    """What steps may ask and leave: the options, the machine (None: this one), what differentiation found, what the
    checks of access rules mean, what is stored to memory that began as zeros, what they say of what they decided.
    """

    def __init__(self, config: Config, machine: Machine | None = None) -> None:
        self.config = config
        self.machine = machine
        self.defaults = defaults_of(config)
        self.gradient: Gradient | None = None
        self.broken_paths: tuple[Broken, ...] = ()
        self.old_values: OldValues | SharedValues | None = None
        self.checks: CheckedAccesses | None = None
        self.filled: SymbolicRegions | None = None
        self.remarks: list[Remark] = []
        self.report: Report = self.remarks.append
