"""Parameters and functions with a second name: what stays accepted says nothing, and what is old warns."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import KernelArgumentError

N = 3


class Cubes:
    """f(x) = Σ x³ in `total` and, component by component, in `each`; a residual x² - 2 in `off`."""

    def __init__(self) -> None:
        self.x, self.each, self.off = (
            ti.field(ti.f64, N, needs_grad=True, needs_dual=True),
            ti.field(ti.f64, N, needs_grad=True, needs_dual=True),
            ti.field(ti.f64, N, needs_grad=True, needs_dual=True),
        )
        self.total = ti.field(ti.f64, (), needs_grad=True, needs_dual=True)
        self.x.from_numpy(np.array([1.0, 2.0, 3.0]))
        x, each, off, total = self.x, self.each, self.off, self.total

        @ti.kernel
        def run():
            for i in x:
                total[None] += x[i] ** 3
                each[i] = x[i] ** 3

        @ti.kernel
        def residual():
            for i in x:
                off[i] = x[i] ** 2 - 2.0

        self.run, self.residual = run, residual


V = np.array([1.0, 0.0, -1.0])

# How a function of ours is called with an option: what it gives, as numbers.
CALLS: dict[str, Callable[[Cubes, dict[str, Any]], Any]] = {
    "grad": lambda p, o: ti.ad.grad(p.run, wrt=p.x, **o)(),
    "value_and_grad": lambda p, o: ti.ad.value_and_grad(p.run, wrt=p.x, **o)(),
    "vjp": lambda p, o: ti.ad.vjp(p.run, wrt=p.x, **o)(V),
    "jvp": lambda p, o: ti.ad.jvp(p.run, wrt=p.x, **o)(V),
    "jacobian": lambda p, o: ti.ad.jacobian(p.run, wrt=p.x, **o)(),
    "hvp": lambda p, o: ti.ad.hvp(p.run, wrt=p.x, **o)(V),
    "value_and_grad_and_hvp": lambda p, o: ti.ad.value_and_grad_and_hvp(p.run, wrt=p.x, **o)(V),
    "gradcheck": lambda p, o: ti.ad.gradcheck(p.run, wrt=p.x, **o).forward,
    "gradient_horizons": lambda p, o: ti.ad.gradient_horizons(lambda n: p.run(), p.x, horizons=[1], **o)[0].reverse,
    "scipy_problem": lambda p, o: ti.ad.scipy_problem(p.run, wrt=p.x, **o).grad(np.ones(N)),
    "implicit": lambda p, o: ti.ad.implicit(p.residual, p.x, p.off, jacobian="dense", **o)(),
}
SCALAR, EACH = (lambda p: p.total), (lambda p: p.each)

# The function, its parameter, the other name, whether that is deprecated, and a value for it.
ROWS = [
    (["grad", "value_and_grad", "hvp", "value_and_grad_and_hvp"], "output", "loss", False, SCALAR),
    (["gradcheck", "gradient_horizons", "scipy_problem"], "output", "loss", False, SCALAR),
    (["vjp", "jvp", "jacobian"], "output", "loss", False, EACH),
    (["implicit"], "tol", "tolerance", True, lambda p: 1e-3),
    (["implicit"], "maxiter", "most_iterations", True, lambda p: 7),
]
TABLE = [pytest.param(name, *row, id=f"{name}-{row[1]}") for names, *row in ROWS for name in names]


@pytest.mark.parametrize(("name", "new", "other", "deprecated", "value"), TABLE)
def test_the_other_name_does_the_same(
    name: str, new: str, other: str, deprecated: bool, value: Callable[[Cubes], Any]
) -> None:
    first, second = Cubes(), Cubes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = CALLS[name](first, {new: value(first)})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = CALLS[name](second, {other: value(second)})
    np.testing.assert_equal(_plain(found), _plain(expected))
    assert [(one.category, one.filename) for one in caught] == [(DeprecationWarning, __file__)] * deprecated
    assert new in inspect.signature(getattr(ti.ad, name)).parameters
    assert other not in inspect.signature(getattr(ti.ad, name)).parameters
    with pytest.raises(KernelArgumentError, match=rf"{name} got both {new}= and {other}="):
        CALLS[name](first, {new: value(first), other: value(first)})


def _plain(found: Any) -> Any:
    if isinstance(found, tuple):
        return tuple(_plain(one) for one in found)
    return found.to_numpy() if isinstance(found, ti.Field) else found


def test_no_function_of_derivatives_has_a_loss() -> None:
    """But for the blocks of the dialect."""
    functions = {**{name: getattr(ti.ad, name) for name in ti.ad.__all__}, "ensemble": ti.ensemble}
    named = {name for name, one in functions.items() if callable(one) and "loss" in inspect.signature(one).parameters}
    assert named == {"Tape", "FwdMode"}


def test_the_names_of_the_dialect_never_warn() -> None:
    program = Cubes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with ti.ad.Tape(loss=program.total):
            program.run()
        with ti.ad.FwdMode(loss=program.each, param=program.x, seed=[1.0, 0.0, 0.0]):
            program.run()
    np.testing.assert_allclose(program.x.grad.to_numpy(), [3.0, 12.0, 27.0])
    np.testing.assert_allclose(program.each.dual.to_numpy(), [3.0, 0.0, 0.0])


def test_an_old_function_warns_and_is_the_new_one() -> None:
    with pytest.deprecated_call(match=r"ti\.ad\.value_grad_hvp is now ti\.ad\.value_and_grad_and_hvp") as caught:
        found = ti.ad.value_grad_hvp
    assert found is ti.ad.value_and_grad_and_hvp and "value_grad_hvp" not in dir(ti.ad)
    assert caught[0].filename == __file__
