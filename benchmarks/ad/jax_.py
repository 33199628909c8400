"""The workloads in JAX: array programs, each jitted whole with its derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.ad.problems.gaussian_mixture import GAMMA, PRIOR
from benchmarks.ad.problems.hand import ANGLES, PARENTS
from benchmarks.ad.problems.lstm import BITS
from benchmarks.ad.problems.ode import STEPS, TIME
from benchmarks.ad.problems.problem import Problem
from benchmarks.ad.subject import DerivativeSubject, problem_of
from benchmarks.confine import confine

__all__ = ["create"]

jax.config.update("jax_enable_x64", True)

Function = Callable[..., Any]


class JaxSubject(DerivativeSubject):
    """One workload. Derivatives come with the value, as one compiled function of the inputs."""

    def __init__(self, problem: Problem, workload: str, part: str) -> None:
        super().__init__(problem, part)
        names = [*problem.wrt, *(name for name in problem.inputs if name not in problem.wrt)]
        self._inputs = [jnp.asarray(problem.inputs[name]) for name in names]
        function, derivative, self._combined = WORKLOADS[workload]
        count = len(problem.wrt)
        self._function = jax.jit(function if part == "primal" else derivative(function, tuple(range(count))))
        self._with_derivative = part != "primal"

    def run(self, count: int) -> None:
        for _ in range(count):
            self._result = self._function(*self._inputs)
        jax.block_until_ready(self._result)

    def value(self) -> np.ndarray:
        return np.asarray(self._result[0] if self._with_derivative else self._result)

    def derivative(self) -> np.ndarray:
        return self._combined([np.asarray(one) for one in jax.tree.leaves(self._result[1])])


def gradient(function: Function, argnums: tuple[int, ...]) -> Function:
    """Reverse mode."""
    return jax.value_and_grad(function, argnums)


def gradient_and_product(function: Function, argnums: tuple[int, ...]) -> Function:
    """A gradient, and forward over reverse mode along ones, in one run."""

    def both(x: Any, *rest: Any) -> Any:
        slope = jax.value_and_grad(lambda at: function(at, *rest))
        (value, found), (_, product) = jax.jvp(slope, (x,), (jnp.ones_like(x),))
        return value, (found, product)

    return both


def blocks(function: Function, argnums: tuple[int, ...]) -> Function:
    """Forward mode for one observation at a time, along the 15 numbers that it depends on."""

    def each(cameras: Any, points: Any, weights: Any, camera: Any, point: Any, features: Any) -> Any:
        def one(*args: Any) -> Any:
            found = error(*args)
            return found, found

        def block(*args: Any) -> Any:
            return jax.jacrev(one, (0, 1, 2), has_aux=True)(*args)

        found, value = jax.vmap(block)(cameras[camera], points[point], weights, features)
        return value, found

    return each


def tangents(function: Function, argnums: tuple[int, ...]) -> Function:
    """Forward mode, all columns at once."""

    def both(x: Any, *rest: Any) -> Any:
        def twice(at: Any) -> Any:
            value = function(at, *rest)
            return value, value

        found, value = jax.jacfwd(twice, has_aux=True)(x)
        return value, found

    return both


def flat(found: list[np.ndarray]) -> np.ndarray:
    """One gradient after the other."""
    return np.concatenate([one.ravel() for one in found])


def rows(found: list[np.ndarray]) -> np.ndarray:
    """A row for each."""
    return np.stack([one.ravel() for one in found])


def side_by_side(found: list[np.ndarray]) -> np.ndarray:
    """Along the last axis."""
    return np.concatenate([one.reshape(*found[0].shape[:2], -1) for one in found], axis=2)


def least_squares(x: Any, t: Any, target: Any) -> Any:
    powers = jnp.cumprod(jnp.concatenate([jnp.ones((len(t), 1)), jnp.repeat(t[:, None], len(x) - 1, 1)], 1), 1)
    return 0.5 * ((powers @ x - target) ** 2).sum()


def log_sum_exp(x: Any) -> Any:
    return jax.nn.logsumexp(x)


def ode(x: Any) -> Any:
    h = TIME / STEPS

    def slope(y: Any) -> Any:
        return x * jnp.concatenate([jnp.ones(1), y[:-1]])

    def step(y: Any, _: Any) -> Any:
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + h / 2 * k2)
        k4 = slope(y + h * k3)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

    return jax.lax.scan(step, jnp.zeros_like(x), length=STEPS)[0].sum()


def kmeans(centroids: Any, points: Any) -> Any:
    # |p|² − 2 p·c + |c|² is the faster way to all distances, by a matrix product.
    squares = (points**2).sum(1)[:, None] - 2 * points @ centroids.T + (centroids**2).sum(1)
    return squares.min(1).sum()


def gaussian_mixture(alphas: Any, means: Any, icf: Any, x: Any) -> Any:
    n, d = x.shape
    logs, lower = icf[:, :d], icf[:, d:]
    columns, rows_ = np.triu_indices(d, 1)
    diagonal = jnp.exp(logs)
    q = jnp.zeros((len(alphas), d, d)).at[:, rows_, columns].set(lower) + diagonal[:, :, None] * jnp.eye(d)
    whitened = jnp.einsum("kij,nkj->nki", q, x[:, None] - means[None])
    terms = alphas + logs.sum(1) - 0.5 * (whitened**2).sum(2)
    prior = 0.5 * GAMMA**2 * ((diagonal**2).sum() + (lower**2).sum()) - PRIOR * logs.sum()
    return jax.nn.logsumexp(terms, axis=1).sum() - n * jax.nn.logsumexp(alphas) + prior


def determinant(a: Any) -> Any:
    def minor(row: int, columns: tuple[int, ...]) -> Any:
        if len(columns) == 1:
            return a[row, columns[0]]
        others = (columns[:at] + columns[at + 1 :] for at in range(len(columns)))
        return sum((-1) ** at * a[row, columns[at]] * minor(row + 1, rest) for at, rest in enumerate(others))

    return minor(0, tuple(range(len(a))))


def lstm(weights: Any, extra: Any, state: Any, text: Any) -> Any:
    def predict(state: Any, now: Any) -> Any:
        x, following = now * extra[0], []
        for (w, b), (h, c) in zip(weights, state, strict=True):
            forget, emit = jax.nn.sigmoid(w[0] * x + b[0]), jax.nn.sigmoid(w[2] * x + b[2])
            c = c * forget + jax.nn.sigmoid(w[1] * h + b[1]) * jnp.tanh(w[3] * h + b[3])
            x = emit * jnp.tanh(c)
            following.append((x, c))
        return following, extra[1] * x + extra[2]

    p = jax.lax.scan(predict, [(h, c) for h, c in state], text[:-1])[1]
    missed = text[1:] * (p - jnp.log(2 + jnp.exp(p).sum(1, keepdims=True)))
    return -missed.sum() / ((len(text) - 1) * BITS)


def error(camera: Any, point: Any, weight: Any, feature: Any) -> Any:
    at = point - camera[3:6]
    angle = jnp.sqrt((camera[:3] ** 2).sum())
    axis = camera[:3] / angle
    turned = at * jnp.cos(angle) + jnp.cross(axis, at) * jnp.sin(angle) + axis * (axis @ at) * (1 - jnp.cos(angle))
    flat_ = turned[:2] / turned[2]
    square = (flat_**2).sum()
    seen = flat_ * (1 + camera[9] * square + camera[10] * square**2) * camera[6] + camera[7:9]
    return weight * (seen - feature)


def bundle(cameras: Any, points: Any, weights: Any, camera: Any, point: Any, features: Any) -> Any:
    return jax.vmap(error)(cameras[camera], points[point], weights, features)


def hand(pose: Any, relative: Any, inverse: Any, rest: Any, weights: Any, which: Any, points: Any) -> Any:
    angles = jnp.where(ANGLES < 0, 0, pose[ANGLES])
    posed = relative @ jax.vmap(euler)(angles)
    absolute: list[Any] = []
    for bone, parent in enumerate(PARENTS):
        absolute.append(posed[bone] if parent < 0 else absolute[parent] @ posed[bone])
    transforms = (jnp.stack(absolute) @ inverse)[:, :3]
    skinned = jnp.einsum("vb,bij,vj->vi", weights, transforms, rest)
    return points - (skinned @ rotation(pose[:3]).T + pose[3:6])[which]


def euler(angles: Any) -> Any:
    (cx, cy, cz), (sx, sy, sz) = jnp.cos(angles), jnp.sin(angles)
    return jnp.stack(
        [
            jnp.stack([cy * cz, sx * sy * cz - cx * sz, cx * sy * cz + sx * sz, 0.0 * cx]),
            jnp.stack([cy * sz, sx * sy * sz + cx * cz, cx * sy * sz - sx * cz, 0.0 * cx]),
            jnp.stack([-sy, sx * cy, cx * cy, 0.0 * cx]),
            jnp.array([0.0, 0.0, 0.0, 1.0]),
        ]
    )


def rotation(vector: Any) -> Any:
    angle = jnp.sqrt((vector**2).sum())
    x, y, z = vector / angle
    zero = 0.0 * x
    cross = jnp.stack([jnp.stack([zero, -z, y]), jnp.stack([z, zero, -x]), jnp.stack([-y, x, zero])])
    return jnp.eye(3) + jnp.sin(angle) * cross + (1 - jnp.cos(angle)) * (cross @ cross)


WORKLOADS: dict[str, tuple[Function, Callable[[Function, tuple[int, ...]], Function], Callable[..., np.ndarray]]] = {
    "least_squares": (least_squares, gradient, flat),
    "log_sum_exp": (log_sum_exp, gradient, flat),
    "ode": (ode, gradient, flat),
    "kmeans": (kmeans, gradient_and_product, rows),
    "gaussian_mixture": (gaussian_mixture, gradient, flat),
    "determinant": (determinant, gradient, flat),
    "lstm": (lstm, gradient, flat),
    "bundle": (bundle, blocks, side_by_side),
    "hand": (hand, tangents, lambda found: found[0]),
}


def create(package: str, workload: str, sizes: str, part: str, threads: int = 0) -> JaxSubject:
    """Return the workload; `threads`: the most that it may use (0: all cores)."""
    confine(threads)
    return JaxSubject(problem_of(workload, sizes), workload, part)
