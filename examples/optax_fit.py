"""The stiffness of every spring of a hanging chain, found by Optax from where the masses were seen.

    pip install jax optax
    python examples/optax_fit.py

The simulation is tinote's, over fields; the loss, its regularisation and the optimiser are JAX's, compiled together.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any

import numpy as np
from tqdm import tqdm

import tinote as ti

__all__ = ["fit"]

MASSES, STEPS, DT = 12, 300, 0.02


class Chain:
    """Masses on springs, fixed at the top: `k`, the springs' stiffness; `y`, where the masses are at the end."""

    def __init__(self) -> None:
        ti.init(arch=ti.cpu, default_fp=ti.f64)
        self.k = ti.field(ti.f64, shape=MASSES, needs_grad=True)
        self.y = ti.field(ti.f64, shape=MASSES, needs_grad=True)
        self.v = ti.field(ti.f64, shape=MASSES, needs_grad=True)

    @ti.kernel
    def rest(self):
        for i in self.y:
            self.y[i] = -(i + 1.0)
            self.v[i] = 0.0

    @ti.kernel
    def pull(self):
        for i in self.y:
            above = 0.0
            if i > 0:
                above = self.y[i - 1]
            force = self.k[i] * (above - self.y[i] - 1.0) - 1.0 - 0.2 * self.v[i]
            if i < MASSES - 1:
                force -= self.k[i + 1] * (self.y[i] - self.y[i + 1] - 1.0)
            self.v[i] += DT * force

    @ti.kernel
    def move(self):
        for i in self.y:
            self.y[i] += DT * self.v[i]

    def run(self) -> None:
        """From rest, `STEPS` steps."""
        self.rest()
        for _ in range(STEPS):
            self.pull()
            self.move()


def fit(iterations: int = 400) -> tuple[Any, Any]:
    """The stiffness that was found, and that with which the masses were seen."""
    import jax  # noqa: PLC0415
    import optax  # noqa: PLC0415

    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy
    chain = Chain()
    hang = ti.ad.jax_function(chain.run, inputs=chain.k, outputs=chain.y)
    true = 20.0 + 8.0 * np.sin(np.arange(MASSES))
    seen = hang(true)

    def loss(logarithm: Any) -> Any:
        return 100.0 * jnp.mean((hang(jnp.exp(logarithm)) - seen) ** 2) + 1e-8 * jnp.sum(logarithm**2)

    optimiser = optax.adam(0.03)

    @jax.jit
    def improved(logarithm: Any, state: Any) -> tuple[Any, Any]:
        updates, state = optimiser.update(jax.grad(loss)(logarithm), state)
        return optax.apply_updates(logarithm, updates), state

    logarithm = jnp.full(MASSES, np.log(15.0))
    state = optimiser.init(logarithm)
    for _ in tqdm(range(iterations), "fitting", disable=None, leave=False):
        logarithm, state = improved(logarithm, state)
    return np.exp(logarithm), true


if __name__ == "__main__":
    if missing := [name for name in ("jax", "optax") if find_spec(name) is None]:
        sys.exit(f"this example needs libraries that are not installed: pip install {' '.join(missing)}")
    print("fitting the stiffness of springs (about 10 s) …", flush=True)
    for found, there in zip(*fit(), strict=True):
        print(f"{found:8.3f}  {there:8.3f}")
