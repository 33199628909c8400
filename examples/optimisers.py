"""One throw, and the libraries that people have: SciPy, Optuna, Optax and SALib, with sweeps and ensembles.

    pip install optuna optax jax SALib
    python examples/optimisers.py

A ball is thrown through gusts of wind and slowed down by the air. It is to be near `TARGET` after 1.2 seconds.
"""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from typing import Any

import numpy as np
from tqdm import tqdm

import tinote as ti

__all__ = ["Throw", "optax_loop", "optuna_black_box", "optuna_mixed", "salib_indices", "scipy_throw"]

STEPS, DT = 120, 0.01
TARGET = (14.0, 3.0)
DRAGS = {"golf": 0.006, "tennis": 0.02, "foam": 0.08}  # 1/m


@ti.data_oriented
class Throw:
    """`aim`: the velocity at the start, m/s; `path`: where the ball is, m; `loss`: the squared miss, m²."""

    def __init__(self) -> None:
        ti.init(arch=ti.cpu, default_fp=ti.f64)
        self.aim = ti.Vector.field(2, ti.f64, shape=(), needs_grad=True)
        self.drag = ti.field(ti.f64, shape=(), needs_grad=True)
        self.loss = ti.field(ti.f64, shape=(), needs_grad=True)
        self.gusts = ti.field(ti.f64, shape=STEPS // 20)  # m/s, along x, for a fifth of a second each
        self.path = ti.Vector.field(2, ti.f64, shape=STEPS + 1, needs_grad=True)
        self.velocity = ti.Vector.field(2, ti.f64, shape=STEPS + 1, needs_grad=True)
        self.aim[None] = [9.0, 9.0]
        self.drag[None] = DRAGS["tennis"]

    @ti.kernel
    def blow(self, strength: ti.f64):
        for k in self.gusts:
            self.gusts[k] = strength * ti.randn()

    @ti.kernel
    def fly(self):
        self.velocity[0] = self.aim[None]
        self.path[0] = [0.0, 0.0]
        for _ in range(1):
            for t in range(STEPS):
                through = self.velocity[t] - ti.Vector([self.gusts[t // 20], 0.0])
                pull = -self.drag[None] * through.norm() * through - ti.Vector([0.0, 9.81])
                self.velocity[t + 1] = self.velocity[t] + DT * pull
                self.path[t + 1] = self.path[t] + DT * self.velocity[t + 1]

    @ti.kernel
    def measure(self):
        for _ in range(1):
            self.loss[None] += (self.path[STEPS] - ti.Vector(TARGET)).norm_sqr()

    def miss(self) -> None:
        """The squared miss of what `aim` holds, added to `loss`."""
        self.fly()
        self.measure()

    def thrown(self, speed: float, angle: float, drag: float) -> float:
        """The squared miss of a throw at an angle in degrees."""
        radians = np.deg2rad(angle)
        self.aim[None] = [speed * np.cos(radians), speed * np.sin(radians)]
        self.drag[None] = drag
        self.loss[None] = 0
        self.miss()
        return self.loss[None]


def scipy_throw(method: str = "L-BFGS-B") -> Any:
    """The aim by SciPy: with gradients, and for "trust-ncg" with products of the Hessian."""
    minimize = importlib.import_module("scipy.optimize").minimize
    throw = Throw()
    problem = ti.ad.scipy_problem(throw.miss, wrt=throw.aim, output=throw.loss)
    second = {"hessp": problem.hessp} if method.startswith(("trust", "Newton")) else {}
    return minimize(problem.value_and_grad, problem.x0, jac=True, method=method, **second)


def _optuna() -> Any:
    optuna = importlib.import_module("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def optuna_black_box(rounds: int = 6, together: int = 16) -> Any:
    """Speed and angle by Optuna, which sees values alone: each round of trials is a sweep."""
    optuna = _optuna()
    throw = Throw()
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
    for _ in range(rounds):
        trials = [study.ask() for _ in range(together)]
        points = [
            {
                "speed": trial.suggest_float("speed", 8, 24),
                "angle": trial.suggest_float("angle", 15, 75),
                "drag": DRAGS["tennis"],
            }
            for trial in trials
        ]
        table = ti.sweep(throw.thrown, points)
        for trial, value in zip(trials, table["result"].values, strict=True):
            study.tell(trial, float(value))
    return study


def optuna_mixed(rounds: int = 2, together: int = 6) -> Any:
    """The ball and the number of gusts by Optuna, the aim of each by gradients: what is discrete outside, what has a
    derivative inside. The objective is the energy of the throw for each kilogram, J, and a fine for the miss.
    """
    optuna = _optuna()
    throw = Throw()

    def aimed(ball: str, calm: int) -> dict[str, Any]:
        minimize = importlib.import_module("scipy.optimize").minimize
        throw.drag[None] = DRAGS[ball]
        throw.blow(4.0)
        gusts = throw.gusts.to_numpy()
        gusts[:calm] = 0  # who waits throws in a calm, at a price
        throw.gusts.from_numpy(gusts)
        problem = ti.ad.scipy_problem(throw.miss, wrt=throw.aim, output=throw.loss)
        found = minimize(problem.value_and_grad, problem.x0, jac=True, method="L-BFGS-B")
        return {"cost": 0.5 * found.x @ found.x + 100 * found.fun + 10 * calm, "aim": found.x}

    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0, n_startup_trials=together))
    for _ in range(rounds):
        trials = [study.ask() for _ in range(together)]
        points = [
            {"ball": trial.suggest_categorical("ball", list(DRAGS)), "calm": trial.suggest_int("calm", 0, 4)}
            for trial in trials
        ]
        table = ti.sweep(aimed, points)
        for number, trial in enumerate(trials):
            trial.set_user_attr("aim", table["aim"].values[number].tolist())
            study.tell(trial, float(table["cost"].values[number]))
    return study


def optax_loop(iterations: int = 60, winds: int = 16) -> tuple[Any, list[float]]:
    """The aim that is best on average over winds, by Optax's Adam and the gradients of an ensemble."""
    optax = importlib.import_module("optax")
    throw = Throw()

    def attempt(wind: int) -> None:
        throw.blow(4.0)
        throw.miss()

    optimiser = optax.adam(0.2)
    aim = throw.aim.to_numpy()
    state = optimiser.init(aim)
    history: list[float] = []
    with ti.ensemble(attempt, {"wind": range(winds)}, wrt=throw.aim, output=throw.loss) as mean:
        for _ in tqdm(range(iterations), "Optax", disable=None, leave=False):
            value, gradient = mean()
            history.append(float(value))
            updates, state = optimiser.update(np.asarray(gradient).reshape(2), state)
            aim = np.asarray(optax.apply_updates(aim, updates))
            throw.aim.from_numpy(aim)
    return aim, history


def salib_indices(samples: int = 128) -> dict[str, tuple[float, float]]:
    """Sobol' indices of the miss, first order and total, for each of what it depends on: SALib's of a sweep's table."""
    sample = importlib.import_module("SALib.sample.sobol").sample
    analyze = importlib.import_module("SALib.analyze.sobol").analyze
    throw = Throw()
    problem = {"num_vars": 3, "names": ["speed", "angle", "drag"], "bounds": [[14, 16], [35, 45], [0.015, 0.025]]}
    values = sample(problem, samples, calc_second_order=False, seed=0)
    points = [dict(zip(problem["names"], row, strict=True)) for row in values.tolist()]
    table = ti.sweep(throw.thrown, points)
    found = analyze(problem, table["result"].values, calc_second_order=False, seed=0)
    return {name: (float(found["S1"][k]), float(found["ST"][k])) for k, name in enumerate(problem["names"])}


if __name__ == "__main__":
    needed = ("optuna", "optax", "jax", "SALib", "cloudpickle", "pandas", "xarray")
    if missing := [name for name in needed if find_spec(name) is None]:
        sys.exit(f"this example needs libraries that are not installed: pip install {' '.join(missing)}")
    print("one throw by four libraries (about 30 s) …", flush=True)
    for method in ("L-BFGS-B", "trust-ncg"):
        found = scipy_throw(method)
        print(f"SciPy, {method}: aim {found.x.round(3)}, {found.nfev} evaluations")
    study = optuna_black_box()
    print(f"Optuna: {study.best_params}, squared miss {study.best_value:.3g} m²")
    study = optuna_mixed()
    print(f"Optuna with gradients inside: {study.best_params}, aim {study.best_trial.user_attrs['aim']}")
    aim, history = optax_loop()
    print(f"Optax over winds: aim {aim.round(3)}, mean squared miss {history[0]:.2f} → {history[-1]:.2f} m²")
    for name, (first, total) in salib_indices().items():
        print(f"SALib: {name:6} first order {first:5.2f}, total {total:5.2f}")
