"""A live view whose step differentiates, next to cells that do.

Neither sees the other's launches, nor clears its gradients.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import tinote as ti
from tinote.lang.session.owners import is_only_owner
from tinote.viz import Particles


@pytest.fixture(params=[0, 9], ids=["as a function", "captured"])
def made(request):
    ti.init()
    x = ti.Vector.field(2, ti.f32, shape=4, needs_grad=True)
    U = ti.field(ti.f32, shape=(), needs_grad=True)
    w = ti.field(ti.f32, shape=3, needs_grad=True)
    L = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def spring():
        for i in x:
            U[None] += x[i].norm_sqr()

    @ti.kernel
    def square():
        for i in w:
            L[None] += w[i] ** 2

    def step():
        with ti.ad.Tape(loss=U):
            spring()

    x.fill(0.25)
    w.fill(3.0)
    view = Particles(x, step)
    view.advance(request.param)
    assert (view.captured.state == "replayed") == bool(request.param)
    yield SimpleNamespace(x=x, U=U, w=w, L=L, spring=spring, square=square, view=view)
    ti.reset()


def test_what_a_cell_has_computed_stays_while_the_view_goes_on(made):
    with ti.ad.Tape(loss=made.L):
        made.square()
    made.view.advance(3)
    assert made.w.grad.to_numpy().tolist() == [6.0, 6.0, 6.0]
    assert (made.x.grad.to_numpy() == 0.5).all()


def test_what_the_view_has_computed_stays_while_a_cell_differentiates(made):
    made.view.advance()
    with ti.ad.Tape(loss=made.L):
        made.square()
    assert (made.x.grad.to_numpy() == 0.5).all()
    assert made.w.grad.to_numpy().tolist() == [6.0, 6.0, 6.0]


def test_a_step_between_the_launches_of_an_open_tape(made):
    with ti.ad.Tape(loss=made.L) as tape:
        made.square()
        made.view.advance()
        made.square()
    assert len(tape.records) == 2
    assert made.w.grad.to_numpy().tolist() == [12.0, 12.0, 12.0]
    assert made.L[None] == 54.0


def test_a_gradient_that_both_compute_starts_from_zero_for_each(made):
    for _ in range(2):
        made.view.advance()
        assert (made.x.grad.to_numpy() == 0.5).all()
        with ti.ad.Tape(loss=made.U):
            made.spring()
            made.spring()
        assert (made.x.grad.to_numpy() == 1.0).all()
    with ti.ad.Tape(loss=made.U, clear_gradients=False):
        made.spring()
    assert (made.x.grad.to_numpy() == 1.5).all()


def test_a_cell_may_clear_what_the_view_has_computed(made):
    made.view.advance()
    ti.ad.clear_all_gradients()
    assert not np.any(made.x.grad.to_numpy())
    made.view.advance()
    assert (made.x.grad.to_numpy() == 0.5).all()


def test_a_reset_ends_what_views_own(made):
    made.view.advance()
    assert not is_only_owner()
    ti.reset()
    assert is_only_owner()
