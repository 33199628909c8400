"""Loops of a derivative that run only where the adjoints that enter them are not all zero."""

from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import array, array_with_dual, check_gradient, scalar, session  # noqa: F401
from tests.passes.support import stays
from tinote.autodiff.zero_adjoints import skip_zero_adjoints
from tinote.ir.nodes import Function
from tinote.ir.parse import parse
from tinote.ir.text import equal, show

N, M = 9, 12


def hinge() -> tuple[Any, Any, Any, Any]:
    w, x, loss = array(N, M), array(M), scalar()

    @ti.kernel
    def run():
        for i in range(N):
            s = 0.0
            for j in range(M):
                s += w[i, j] * x[j]
            loss[None] += ti.max(s, 0.0) ** 2

    random = np.random.default_rng(1)
    w.from_numpy(random.normal(size=(N, M)))
    x.from_numpy(random.normal(size=M))
    return run, w, x, loss


def test_the_side_that_lost_is_skipped() -> None:
    run, w, x, loss = hinge()
    check_gradient(run, loss, [w, x])
    lines = run.ir("skip_zero_adjoints", gradient=True).splitlines()
    backwards = next(k for k, line in enumerate(lines) if "for reverse" in line)
    assert lines[backwards - 1].strip().startswith("if ")
    assert " ne " in lines[backwards - 2]


def test_infinities_behind_what_does_not_count() -> None:
    run, w, x, loss = hinge()
    x.fill(1.0)
    values = np.full((N, M), -1.0)
    values[0] = 1.0
    values[1, 3] = -np.inf
    w.from_numpy(values)
    with ti.ad.Tape(loss):
        run()
    np.testing.assert_array_equal(x.grad.to_numpy(), 2.0 * M)
    np.testing.assert_array_equal(w.grad.to_numpy(), np.where(np.arange(N) == 0, 2.0 * M, 0.0)[:, None] * np.ones(M))


def test_tangents_of_adjoints_that_are_zero_count() -> None:
    """The derivative of max(s, 0)² at s = 0 has the adjoint 0, and an adjoint's tangent that is not."""
    x, loss = array_with_dual(M), scalar(needs_dual=True)
    x.from_numpy(np.linspace(-1, 1, M))

    @ti.kernel
    def run():
        for i in range(3):
            s = 0.0
            for j in range(M):
                s += x[j] * (i + 1)
            loss[None] += ti.select(s >= 0, s**2, 0.0)

    def start() -> None:
        loss[None] = 0
        run()

    vector = np.arange(M) + 1.0
    x.fill(0.0)
    found = ti.ad.hvp(start, wrt=x, loss=loss)(vector)
    np.testing.assert_allclose(found, 2 * (1 + 4 + 9) * vector.sum())


def test_carried_adjoints_stay_as_they_were() -> None:
    x, y, loss = array(N), array(M), scalar()

    @ti.kernel
    def run():
        for i in range(N):
            s, t = x[i], 1.0
            for j in range(M):
                s = s * 0.5 + y[j] * x[i]
                t += x[i] * y[j]
            loss[None] += ti.max(s, 0.0) * 2.0 + t

    random = np.random.default_rng(2)
    x.from_numpy(random.normal(size=N))
    y.from_numpy(random.normal(size=M))
    check_gradient(run, loss, [x, y])


# ---- the pass by itself

HEADER = """
buffer @x: f64 field (16) adjoint @x.grad
buffer @x.grad: f64 field (16)
buffer @L: f64 field () adjoint @L.grad
buffer @L.grad: f64 field ()
func f(%n: i32, %c: u1):
  for parallel %i: i32 in 0i32 .. 16i32:
    %g: f64 = load @L.grad[]
    %d: f64 = select %c, %g, 0.0f64
"""

LOOP = """\
for %j: i32 in 0i32 .. %n:
  %v: f64 = load @x[%j]
  %a: f64 = strong_mul %d, %v
  atomic add @x.grad[%j], %a
"""


def indented(text: str, depth: int) -> str:
    return "".join(" " * depth + line + "\n" for line in text.splitlines())


def skipped(fn: Function) -> Function:
    """The pass on what counts as a derivative: an operation has an origin."""
    fn.region.body[0].origin = fn.region.body[0]
    return skip_zero_adjoints(fn)


def test_a_loop_of_multiples_is_guarded() -> None:
    guarded = "%s: u1 = ne %d, 0.0f64\nif %s:\n" + indented(LOOP, 2)
    found, wanted = skipped(parse(HEADER + indented(LOOP, 4))), parse(HEADER + indented(guarded, 4))
    assert equal(found, wanted), show(found)


STAYING = {
    "an adjoint that no choice made": LOOP.replace("strong_mul %d", "strong_mul %g"),
    "something else is added": LOOP + "  atomic add @x.grad[%j], %v\n",
    "something is stored": LOOP + "  store @x.grad[%j], %a\n",
    "a sum with a primal value": LOOP.replace("atomic", "%b: f64 = add %a, %v\n  atomic").replace("], %a", "], %b"),
    "the adjoint is divided by": LOOP.replace("strong_mul %d, %v", "div %v, %d"),
    "few iterations": LOOP.replace("%n", "4i32"),
    "it is no derivative": LOOP,
}


@pytest.mark.parametrize("why", STAYING)
def test_other_loops_stay(why: str) -> None:
    run = skip_zero_adjoints if why == "it is no derivative" else skipped
    stays(run, HEADER + indented(STAYING[why], 4))
