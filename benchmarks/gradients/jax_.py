"""The four programs in JAX, each one jitted function."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.gradients.system import (
    COURANT_SQUARED,
    DAMPING,
    FACTOR,
    GRAVITY,
    NEIGHBOURS,
    REST_LENGTH,
    SOFTENING,
    SPRING_SOFTENING,
    SPRING_STEPS,
    STEPS,
    SUMMAND,
    TIME_STEP,
    TURNS,
    GradientSystem,
    initial_values,
    places_on_a_ring,
)

__all__ = ["create"]


class JaxGradient(GradientSystem):
    """One of the programs; `jax.value_and_grad` does the primal too."""

    def __init__(self, program: str, part: str) -> None:
        super().__init__(program, part)
        function = {"nbody": nbody, "wave": wave, "recurrence": recurrence, "mass_spring": mass_spring}[program]
        self._function = jax.jit(function if part == "primal" else jax.value_and_grad(function))
        self._start = jnp.asarray(initial_values(program))

    def run(self, count: int) -> None:
        function, start = self._function, self._start
        for _ in range(count):
            self._result = function(start)
        jax.block_until_ready(self._result)

    def value(self) -> float:
        return float(self._result if self.part == "primal" else self._result[0])

    def gradient(self) -> np.ndarray:
        return np.asarray(self._result[1])


def nbody(x):
    """The energy over two coordinate arrays, which XLA fuses best."""
    dx = x[:, None, 0] - x[None, :, 0]
    dy = x[:, None, 1] - x[None, :, 1]
    return -jax.lax.rsqrt(dx * dx + dy * dy + SOFTENING).sum()


def wave(slices):
    """A scan over the steps."""

    def advance(state, _):
        before, now = state
        laplacian = now[:-2, 1:-1] + now[2:, 1:-1] + now[1:-1, :-2] + now[1:-1, 2:] - 4 * now[1:-1, 1:-1]
        following = 2 * now[1:-1, 1:-1] - before[1:-1, 1:-1] + COURANT_SQUARED * laplacian
        return (now, jnp.pad(following, 1)), None

    (_, last), _ = jax.lax.scan(advance, (slices[0], slices[1]), length=STEPS)
    return (last**2).sum()


def recurrence(x):
    """A scan over the iterations, which reverse mode can run through (it cannot through `fori_loop`)."""
    last, _ = jax.lax.scan(lambda v, _: (FACTOR * jnp.sin(v) + SUMMAND, None), x, length=TURNS)
    return last.sum()


def mass_spring(stiffness):
    """A scan over the steps."""

    def advance(state, _):
        x, v = state
        force = jnp.array([0.0, GRAVITY])
        for shift in NEIGHBOURS:
            to = jnp.roll(x, -shift, axis=0) - x
            length = jnp.sqrt((to**2).sum(axis=1, keepdims=True) + SPRING_SOFTENING)
            force = force + stiffness[:, None] * (length - REST_LENGTH) / length * to
        v = DAMPING * v + TIME_STEP * force
        return (x + TIME_STEP * v, v), None

    start = jnp.asarray(places_on_a_ring())
    (last, _), _ = jax.lax.scan(advance, (start, jnp.zeros_like(start)), length=SPRING_STEPS)
    return (last**2).sum()


def create(package: str, program: str, part: str) -> JaxGradient:
    """Return the program."""
    return JaxGradient(program, part)
