"""What the trap tests share: a table of small programs, and the check that each of them is differentiated right.

    trap = Traps()

    @trap
    def carried_index(x, k, loss):
        @ti.kernel
        def run(): ...
        return run

The parameters name the fields that a program is given. What it returns, a kernel, a function that launches kernels or
several of these, is differentiated with respect to `x`, `y`, `v`, `M` and `s`.
"""

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti

INPUTS = ("x", "y", "v", "M", "s")
Launches = Callable[[], Any]
Program = Callable[..., Launches | tuple[Launches, ...]]


@pytest.fixture(autouse=True)
def session() -> None:
    """In debug mode the compiler verifies what each of its steps makes. LLVM's own optimisation is not the subject."""
    ti.init(arch=ti.cpu, default_fp=ti.f64, debug=True)


class Traps(dict[str, Program]):
    """Programs by name. Called on a function, it takes the function in; so it is a decorator."""

    def __call__(self, program: Program) -> Program:
        assert program.__name__ not in self, program.__name__
        self[program.__name__] = program
        return program

    def check(self, name: str) -> None:
        """Reverse mode, central differences and forward mode agree on one program, in f64. That some of them break an
        access rule is meant.
        """
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*a tape that validates refuses it", UserWarning)
            self._check(name)

    def _check(self, name: str) -> None:
        wanted = list(inspect.signature(self[name]).parameters)
        fields = {key: value for key, value in _fields().items() if key in wanted}
        given = self[name](*[fields[key] for key in wanted])
        launches = given if isinstance(given, tuple) else (given,)

        def run() -> None:
            for launch in launches:
                launch()

        report = ti.ad.gradcheck(run, [fields[key] for key in INPUTS if key in wanted], fields["loss"])
        assert report.forward is not None, report.forward_note
        assert not report.unsettled, report
        assert any(element.reverse for element in report.elements), "no gradient arrives"


def _fields() -> dict[str, Any]:
    """Five numbers `x` and `y`, vectors `v`, three matrices `M`, one number `s`; a permutation `k`; zeros in `z` and in
    `g`, four rows of five; and the loss.
    """

    def numbers(*shape: int) -> Any:
        return ti.field(ti.f64, shape, needs_grad=True, needs_dual=True)

    random = np.random.default_rng(7)
    x, y, z, g, s, loss = numbers(5), numbers(5), numbers(5), numbers(4, 5), numbers(), numbers()
    v = ti.Vector.field(2, ti.f64, 5, needs_grad=True, needs_dual=True)
    M = ti.Matrix.field(2, 2, ti.f64, 3, needs_grad=True, needs_dual=True)
    k = ti.field(ti.i32, 5)
    x.from_numpy(np.array([0.3, -0.7, 1.1, 0.55, -0.2]))
    y.from_numpy(np.array([1.2, 0.4, -0.6, 0.9, -1.3]))
    v.from_numpy(random.normal(size=(5, 2)))
    M.from_numpy(np.eye(2) + 0.3 * random.normal(size=(3, 2, 2)))
    k.from_numpy(np.array([2, 0, 3, 1, 4], np.int32))
    s[None] = 0.8
    return {"x": x, "y": y, "z": z, "g": g, "v": v, "M": M, "s": s, "k": k, "loss": loss}
