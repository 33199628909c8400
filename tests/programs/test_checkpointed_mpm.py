"""The example of a long differentiable simulation, with fewer steps: bounded memory and the right gradient."""

import numpy as np
import pytest

import tinote as ti
from examples.checkpointed_mpm import Throw


def test_the_gradient_is_that_of_a_plain_tape_and_of_differences():
    ti.init(arch=ti.cpu)
    throw = Throw(particles=144, grid=24, dt=1e-3)
    throw.velocity[None] = (2.0, -4.0)
    steps = 120
    report = throw.differentiate(steps, memory=80_000, progress=False)
    velocity, stiffness = np.array(throw.velocity.grad[None]), throw.stiffness.grad[None]
    loss = throw.loss[None]

    # A few states of the 120, and each step run again a few times.
    assert report.steps == steps and 3 <= report.snapshots <= 6
    assert report.peak_bytes <= 80_000
    assert steps < report.recomputed < 5 * steps

    with ti.ad.Tape(throw.loss):
        throw.start()
        for t in range(steps):
            throw.step(t)
        throw.measure()
    np.testing.assert_allclose(velocity, np.array(throw.velocity.grad[None]), rtol=1e-3)
    assert stiffness == pytest.approx(throw.stiffness.grad[None], rel=1e-3)
    assert loss == pytest.approx(throw.loss[None], rel=1e-5)
    assert abs(stiffness) > 1e-9  # the block has met the ground

    sides: list[float] = []
    for h in (1e-2, -1e-2):
        throw.velocity[None] = (2.0 + h, -4.0)
        sides.append(throw.value(steps))
    assert velocity[0] == pytest.approx((sides[0] - sides[1]) / 2e-2, rel=2e-2)
