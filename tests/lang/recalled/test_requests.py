"""Whatever is asked of a kernel comes from an earlier process: gradients of every kind, also those that overwrite,
launches that save old values, checks of the access rules, searches for NaN.
"""

from __future__ import annotations

import contextlib
from itertools import product
from typing import Any

import pytest

import tinote as ti
from tests.autodiff.user import overwrites
from tests.lang.recalled.support import is_recalled
from tinote.compiler import pipeline
from tinote.compiler.driver import Origin
from tinote.compiler.requests import Checks, Derivative, Request
from tinote.lang.kernels.arguments import arguments_of

# Some of these programs break the rules of access on purpose.
pytestmark = overwrites

FIELDS = """
from tinote.errors import AccessRuleError

N = 5
x = ti.field(ti.f64, shape=N, needs_grad=True)
y = ti.field(ti.f64, shape=N, needs_grad=True)
loss = ti.field(ti.f64, shape=(), needs_grad=True)
count = ti.field(ti.i32, shape=())

def begin():
    x.from_numpy(np.arange(1.0, N + 1))
    y.fill(0)
    loss[None] = 0
    count[None] = 0

def taped(**options):
    begin()
    with ti.ad.Tape(loss, **options):
        run()
    return x.grad.to_numpy().tolist()
"""

SQUARES = """
@ti.kernel
def run():
    for i in x:
        x[i] = x[i] * x[i]
    for i in x:
        loss[None] += x[i] ** 2
"""

OVERWRITES = SQUARES + "main = taped"

TWICE = """
@ti.kernel
def run():
    for i in x:
        y[i] = x[i] ** 2
    for i in x:
        x[i] = ti.sin(y[i]) * x[i]
    for i in x:
        y[i] = y[i] * x[i] ** 2
    for i in x:
        loss[None] += y[i] * x[i]

main = taped
"""

SERIAL = """
@ti.kernel
def run():
    for _ in range(1):
        for k in range(3):
            for i in range(N):
                x[i] = x[i] * x[i] + k
    for i in x:
        loss[None] += x[i]

main = taped
"""

ARRAYS = """
@ti.kernel
def run(a: ti.types.ndarray(dtype=ti.f64, ndim=1), b: ti.types.ndarray(dtype=ti.f64, ndim=1)):
    for i in a:
        b[i] = a[i] ** 2
    for i in a:
        a[i] = b[i] * a[i]
    for i in a:
        b[i] = b[i] * a[i]
    for i in a:
        loss[None] += b[i] ** 2

def main():
    begin()
    a, b = (ti.ndarray(ti.f64, shape=4, needs_grad=True) for _ in range(2))
    a.from_numpy(np.arange(1.0, 5.0))
    with ti.ad.Tape(loss):
        run(a, b)
    return a.grad.to_numpy().tolist()
"""

OLD_VALUES = """
n = ti.field(ti.i32, shape=())

@ti.kernel
def run():
    for i in range(n[None] + 2):
        k = ti.atomic_add(count[None], 1)
        y[k] = x[i] ** 2
    for i in y:
        loss[None] += y[i] * 3

def main():
    n[None] = N - 2
    return taped()
"""

CHECKED = """
@ti.kernel
def run():
    for i in x:
        y[i] = x[i] ** 2
    for i in y:
        loss[None] += y[i]

def main():
    return taped(validation=True)
"""

BROKEN_RULE = """
@ti.kernel
def run():
    for i in x:
        y[i] = x[i] ** 2
    for i in y:
        loss[None] += y[i]
    for i in x:
        x[i] = 1.0

def main():
    try:
        taped(validation=True)
    except AccessRuleError as error:
        return [error.span.line, str(error).replace(__file__, "")]
"""

NAN = """
@ti.kernel
def run():
    for i in x:
        loss[None] += ti.sqrt(x[i] - 1.0)

def main():
    begin()
    with ti.ad.Tape(loss, keep=True) as tape:
        run()
    found = ti.ad.find_nan(tape)
    return [found.backward.message, found.backward.span.line, found.backward.iteration]
"""

FUNCTIONAL = """
@ti.kernel
def run(a: ti.f64) -> ti.f64:
    s = 0.0
    for i in x:
        s += ti.sin(a * x[i])
    return s

def f(a):
    return run(a)

def main():
    begin()
    return [ti.ad.grad(f)(0.5), ti.ad.jvp(f)(2.0, 0.5)[1], ti.ad.hvp(f)(3.0, 0.5)]
"""

TRACED = """
@ti.kernel
def run(a: ti.f64) -> ti.f64:
    s = 0.0
    for i in x:
        s += ti.sin(a * x[i])
    return s

def main():
    begin()
    with ti.ad.Tape(loss):
        loss[None] = run(0.5 * x[1])
    return x.grad.to_numpy().tolist()
"""

SHARED = """
@ti.kernel
def run():
    for i in x:
        loss[None] += ti.exp(x[i])

def main():
    begin()
    return ti.ad.grad(run, wrt=x, loss=loss)().tolist()
"""

CURVATURE = """
@ti.kernel
def run():
    for i in x:
        k = ti.atomic_add(count[None], 1)
        y[k] = x[i] ** 2
    for i in y:
        loss[None] += y[i] ** 2

def f():
    y.fill(0)
    count[None] = 0
    run()

def main():
    begin()
    return ti.ad.hvp(f, wrt=x, loss=loss)(np.ones(N)).tolist()
"""

FORWARD = (
    SQUARES
    + """
def main():
    begin()
    loss.ensure_dual()
    x.ensure_dual()
    with ti.ad.FwdMode(loss=loss, param=x, seed=[1.0, 2.0, 3.0, 4.0, 5.0]):
        run()
    return loss.dual[None]
"""
)

LAUNCHED_GRADIENT = """
w, out = [ti.field(ti.f64, shape=(), needs_dual=True) for _ in range(2)]

@ti.kernel
def run(a: ti.f64):
    for i in x:
        loss[None] += a * x[i] ** 2

@ti.kernel
def use():
    for i in x:
        out[None] += x.grad[i] ** 2

def main():
    begin()
    w[None], out[None] = 0.5, 0.0
    with ti.ad.FwdMode(loss=out, param=w, seed=1.0):
        x.grad.fill(0)
        loss.grad[None] = 1.0
        run.grad(w[None] * 2)
        use()
    return out.dual[None]
"""

PROGRAMS = {
    name: text
    for name, text in list(globals().items())
    if name.isupper() and isinstance(text, str) and name not in ("FIELDS", "SQUARES")
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_request_is_found(load: Any, name: str) -> None:
    ti.init(debug=True)
    text = FIELDS + PROGRAMS[name]
    first = load(text)
    wanted = first.main()
    (compiled,) = first.run.specialisations()
    assert not is_recalled(first.run)
    second = load(text)
    assert second.main() == wanted
    (found,) = second.run.specialisations()
    assert is_recalled(second.run)
    assert [request for request, _ in found.results()] == [request for request, _ in compiled.results()]
    assert {code.origin for _, code in found.results()} == {Origin.MEMORY}


def test_no_two_requests_have_one_name() -> None:
    """Code is kept under it."""
    met: dict[str, Request] = {}
    yes_or_no = (False, True)
    for derivative, arguments, records, shares, checks, directions in product(
        Derivative, yes_or_no, yes_or_no, yes_or_no, Checks, (1, 3, 4)
    ):
        with contextlib.suppress(ValueError):  # of a combination without meaning
            found = Request(
                derivative, arguments=arguments, records=records, shares=shares, checks=checks, directions=directions
            )
            assert met.setdefault(found.name, found) is found, found.name
    assert len(met) > 30


def test_they_are_all_there(load: Any) -> None:
    """The programs of this file need every request that the language makes."""
    ti.init(debug=True)
    met: set[Request] = set()
    for name in PROGRAMS:
        module = load(FIELDS + PROGRAMS[name])
        module.main()
        met |= {request for s in module.run.specialisations() for request, _ in s.results()}
    assert met == {
        Request(),
        Request(Derivative.REVERSE),
        Request(Derivative.FORWARD),
        Request(Derivative.REVERSE, arguments=True),
        Request(Derivative.FORWARD, arguments=True),
        Request(Derivative.FORWARD_OVER_REVERSE),
        Request(Derivative.FORWARD_OVER_REVERSE, arguments=True),
        Request(records=True),
        Request(records=True, shares=True),
        Request(Derivative.REVERSE, shares=True),
        Request(Derivative.REVERSE, arguments=True, shares=True),
        Request(Derivative.FORWARD, arguments=True, records=True),
        Request(checks=Checks.ACCESS_RULES),
        Request(checks=Checks.FINITE),
        Request(Derivative.REVERSE, checks=Checks.FINITE),
    }


def test_effects_run_no_passes(load: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
x = ti.field(ti.f32, 8)
y = ti.field(ti.f32, 8)

@ti.kernel
def run(first: ti.i32):
    for i in range(first, 4):
        y[i] = x[i + 1]
"""
    effects = []
    for from_disk in (False, True):
        module = load(text)
        module.run(1)
        (instance,) = module.run.instances
        if from_disk:
            monkeypatch.setattr(pipeline, "run_pipeline", None)
        found = arguments_of(instance, (1,)).effects((1,))
        definite = arguments_of(instance, (1,)).definite_stores((1,))
        effects.append([[(b.name, region) for b, region in part] for part in (found.live_in, found.written, definite)])
    assert is_recalled(module.run)
    assert effects[0] == effects[1] == [[("x", ((2, 5),))], [("y", ((1, 4),))], [("y", ((1, 4),))]]
