"""The examples whose steps are solves: a cloth's and a beam's stiffness and a plate's source are found again.

The gradients are those of a hundred steps; to find the stiffness again, which takes many of them, fewer steps do.
"""

from __future__ import annotations

import numpy as np

import tinote as ti
from examples import implicit_fem
from examples.heat_source import recover
from examples.implicit_cloth import Cloth, fit
from tests.autodiff.differences import by_field


def test_the_stiffness_of_a_cloth_is_found_through_implicit_steps() -> None:
    stiffness, distance, _ = fit(size=4, steps=30)
    assert np.isclose(stiffness, 40.0, rtol=1e-4)
    assert distance < 1e-8


def test_its_gradient_is_that_of_differences() -> None:
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    cloth = Cloth(4)
    cloth.stiffness[None] = 25.0
    _, slope = cloth.gradient(100)
    expected = by_field(lambda: cloth.value(100), cloth.stiffness, cloth.distance, 0.001)
    assert np.isclose(slope, expected, rtol=1e-4)


def test_the_stiffness_of_two_materials_is_found_through_nonlinear_steps() -> None:
    moduli, distance, _ = implicit_fem.fit(columns=4, rows=1, steps=30)
    assert np.allclose(moduli, [3e5, 1e5], rtol=1e-4)
    assert distance < 1e-8


def test_the_gradient_of_finite_elements_is_that_of_differences() -> None:
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    beam = implicit_fem.Beam(columns=4, rows=1)
    beam.stiffness.from_numpy(np.log([3e5, 1e5]))
    _, slope = beam.gradient(100)

    def value() -> None:
        beam.distance[None] = 0.0
        beam.simulate(100)

    expected = by_field(value, beam.stiffness, beam.distance, 1e-4)
    assert np.allclose(slope, expected, rtol=1e-5)


def test_the_source_of_a_steady_temperature_is_recovered() -> None:
    truth, found = recover(size=12, noise=0.0)
    assert np.linalg.norm(found - truth) < 0.1 * np.linalg.norm(truth)
    assert np.abs(np.subtract(*(np.unravel_index(one.argmax(), one.shape) for one in (found, truth)))).max() <= 1
