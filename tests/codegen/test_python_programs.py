"""Whole programs: the first launch of each of their kernels, gradients and tangents, as plain Python compared with
machine code and on the same memory.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.compiler import driver
from tinote.compiler.driver import Compiled, Specialisation
from tinote.compiler.launch.native import BoundArray, BoundCode
from tinote.compiler.launch.python_launch import PythonCode
from tinote.compiler.pipeline import python_steps_for, run_pipeline
from tinote.compiler.requests import Request
from tinote.ir.nodes import Buffer, BufferKind
from tinote.lang.data.layout import array_over
from tinote.lang.session.state import memory_of

#: Those whose launches are small enough.
PROGRAMS = (
    *("controller", "euler", "fem", "heat", "life", "mass_spring", "mpm88", "mpm_elastic"),
    *("mpm_lagrangian", "nbody", "wave"),
)
ENOUGH = 30  # launches without a new kernel, after which a program need not go on


class Enough(Exception):
    """The program has shown its kernels."""


class Progress:
    """What was compared, and how many launches ago something was launched first."""

    def __init__(self) -> None:
        self.compared: list[str] = []
        self.launches = 0


class Both:
    """Machine code whose first launch is compared with plain Python."""

    def __init__(self, native: BoundCode, specialisation: Specialisation, request: Request, progress: Progress) -> None:
        self.native = native
        self.specialisation = specialisation
        self.request = request
        self.progress = progress
        self.launched = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.native, name)

    def launch(self, values: Sequence[Any]) -> tuple[Any, ...]:
        if self.launched or any(isinstance(v, BoundArray) for v in values):
            self.progress.launches += 1
            if self.progress.launches > ENOUGH:
                raise Enough
            return self.native.launch(values)
        self.launched = True
        self.progress.launches = 0
        s = self.specialisation
        config = s.config._replace(arch="python")
        fn, _ = run_pipeline(s.lowered.function, python_steps_for(self.request), config)
        code = PythonCode(fn, config, s.source.globals, s._memory_for)
        written = [b for b in {b for task in code.tasks for b in task.accesses.written} if b.kind is BufferKind.FIELD]
        before = {b: memory_of(b).copy() for b in written}
        returned = code.launch(values)
        left = {b: _numbers(b) for b in written}
        for buffer, memory in before.items():
            memory_of(buffer).restore(memory)
        found = self.native.launch(values)
        self.progress.compared.append(fn.name)
        np.testing.assert_allclose(returned, found, rtol=1e-3, atol=1e-5, err_msg=fn.name)
        for buffer in written:
            wanted = _numbers(buffer)
            scale = np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0)
            message = f"{buffer.name} after {fn.name}"
            np.testing.assert_allclose(left[buffer], wanted, rtol=1e-3, atol=1e-5 * (1 + scale), err_msg=message)
        return found


def _numbers(buffer: Buffer) -> Any:
    return array_over(buffer, memory_of(buffer)).astype(np.float64)


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    progress = Progress()
    compile_ = Specialisation._compile

    def both(self: Specialisation, request: Request) -> Any:
        code, facts = compile_(self, request)
        return Compiled(Both(code, self, request, progress), facts)

    monkeypatch.setattr(driver.Specialisation, "_compile", both)
    module = importlib.import_module(f"tests.programs.test_{program}")
    for name, test in vars(module).items():
        if name.startswith("test_") and not test.__code__.co_argcount:
            ti.init()
            with suppress(Enough):
                test()
    assert progress.compared
