"""The examples of libraries that people have find what there is to find."""

import pytest

from examples.optimisers import Throw, optax_loop, optuna_black_box, optuna_mixed, salib_indices, scipy_throw


@pytest.mark.parametrize("method", ["L-BFGS-B", "trust-ncg"])
def test_scipy_hits(method: str) -> None:
    found = scipy_throw(method)
    assert found.fun < 1e-8
    throw = Throw()
    throw.aim[None] = found.x
    throw.miss()
    assert throw.loss[None] == pytest.approx(found.fun, abs=1e-12)


@pytest.mark.slow
def test_optuna_comes_near() -> None:
    study = optuna_black_box()
    assert len(study.trials) == 96 and study.best_value < 2


@pytest.mark.slow
def test_optuna_chooses_and_gradients_aim() -> None:
    study = optuna_mixed()
    assert study.best_params["ball"] == "golf" and study.best_params["calm"] <= 1
    assert study.best_value < 120 and len(study.best_trial.user_attrs["aim"]) == 2


@pytest.mark.slow
def test_optax_improves_the_mean() -> None:
    aim, history = optax_loop(iterations=40, winds=8)
    assert history[-1] < 0.2 * history[0] and aim.shape == (2,)


@pytest.mark.slow
def test_salib_ranks_what_matters() -> None:
    found = salib_indices()
    assert found["angle"][1] > found["speed"][1] > found["drag"][1]
    # The interactions are small here, so that the first orders make up most of the variance.
    assert 0.85 < sum(first for first, _ in found.values()) < 1.15
