"""A step of training: the mean square error of a network with tanh, its gradient, and Adam. By `ti.nn`, as a captured
step; by JAX and Optax, compiled together; and by PyTorch. All on one core.
"""

# Without `from __future__ import annotations`: kernels look their annotations up in the module.

import importlib
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.confine import confine
from benchmarks.contract import Subject, relative_deviation

__all__ = ["create"]

RATE, BETAS, EPS = 1e-3, (0.9, 0.999), 1e-8
STEPS = 20
"""Those after which losses are compared."""


class Training(Subject):
    """The beginning: weights, inputs, and what the outputs should be."""

    def __init__(self, sizes: str, batch: int) -> None:
        rng = np.random.default_rng(0)
        self.sizes = [int(size) for size in sizes.split("-")]
        pairs = zip(self.sizes[:-1], self.sizes[1:], strict=True)
        self.weights: list[tuple[NDArray[Any], NDArray[Any]]] = [
            ((rng.normal(size=(m, n)) / np.sqrt(n)).astype(np.float32), rng.normal(size=m).astype(np.float32))
            for n, m in pairs
        ]
        self.x: NDArray[Any] = rng.normal(size=(batch, self.sizes[0])).astype(np.float32)
        self.wanted: NDArray[Any] = np.sin(3 * self.x[:, 0])

    @abstractmethod
    def begin(self) -> None:
        """Take the weights of the beginning, and forget all steps."""

    @abstractmethod
    def step(self) -> Any:
        """Take a step. Gives the loss before it, which may be still on its way."""

    def run(self, count: int) -> None:
        loss = None
        for _ in range(count):
            loss = self.step()
        float(loss or 0)

    def deviation(self) -> float:
        self.begin()
        return relative_deviation(np.array([float(self.step()) for _ in range(STEPS)]), self.reference())

    def reference(self) -> NDArray[Any]:
        """The losses in NumPy, in double precision."""
        parameters = [one.astype(float) for pair in self.weights for one in pair]
        means, squares = ([np.zeros_like(one) for one in parameters] for _ in range(2))
        losses = []
        for step in range(1, STEPS + 1):
            values = [self.x.astype(float)]
            for k in range(0, len(parameters), 2):
                z = values[-1] @ parameters[k].T + parameters[k + 1]
                values.append(np.tanh(z) if k + 2 < len(parameters) else z)
            error = values[-1][:, 0] - self.wanted
            losses.append((error**2).mean())
            back = (2 * error / len(error))[:, None]
            for k in range(len(parameters) - 2, -1, -2):
                gradients = back.T @ values[k // 2], back.sum(0)
                back = (back @ parameters[k]) * (1 - values[k // 2] ** 2)
                for j, gradient in zip((k, k + 1), gradients, strict=True):
                    means[j] += (1 - BETAS[0]) * (gradient - means[j])
                    squares[j] += (1 - BETAS[1]) * (gradient**2 - squares[j])
                    mean, square = means[j] / (1 - BETAS[0] ** step), squares[j] / (1 - BETAS[1] ** step)
                    parameters[j] -= RATE * mean / (np.sqrt(square) + EPS)
        return np.array(losses)


class Kit(Training):
    """`ti.nn`: over the batch, or in one kernel."""

    def __init__(self, sizes: str, batch: int, way: str) -> None:
        import tinote as ti

        super().__init__(sizes, batch)
        ti.init(arch=ti.cpu, cpu_max_num_threads=1)
        self._net = net = ti.nn.MLP(self.sizes, "tanh")
        x, y = ti.Vector.field(self.sizes[0], ti.f32, shape=batch), ti.field(ti.f32, shape=batch, needs_grad=True)
        wanted, loss = ti.field(ti.f32, shape=batch), ti.field(ti.f32, shape=(), needs_grad=True)
        x.from_numpy(self.x)
        wanted.from_numpy(self.wanted)
        whole = ti.nn.Batched(net, x, y)
        self._adam = adam = ti.nn.Adam(net, RATE, BETAS, EPS)

        @ti.kernel
        def measure():
            for i in y:
                loss[None] += (y[i] - wanted[i]) ** 2 / batch

        @ti.kernel
        def in_one_kernel():
            for i in x:
                loss[None] += (net(x[i])[0] - wanted[i]) ** 2 / batch

        @ti.capture
        def train():
            with ti.ad.Tape(loss):
                if way == "batched":
                    whole.forward()
                    measure()
                else:
                    in_one_kernel()
            adam.step()
            return loss[None]

        self.step = train  # type: ignore[method-assign]
        self.begin()

    def begin(self) -> None:
        for layer, (weight, bias) in zip(self._net.layers, self.weights, strict=True):
            layer.weight.from_numpy(weight)
            layer.bias.from_numpy(bias)
        self._adam.begin()

    def step(self) -> Any:
        raise NotImplementedError


class Jax(Training):
    """JAX and Optax, as one compiled function."""

    def __init__(self, sizes: str, batch: int) -> None:
        super().__init__(sizes, batch)
        import jax
        import optax

        jnp = jax.numpy
        x, wanted = jnp.asarray(self.x), jnp.asarray(self.wanted)
        optimiser = optax.adam(RATE, *BETAS, EPS)

        def loss(parameters: Any) -> Any:
            h = x
            for number, (weight, bias) in enumerate(parameters):
                h = h @ weight + bias
                h = jnp.tanh(h) if number + 1 < len(parameters) else h
            return jnp.mean((h[:, 0] - wanted) ** 2)

        @jax.jit
        def train(parameters: Any, state: Any) -> Any:
            value, gradients = jax.value_and_grad(loss)(parameters)
            updates, state = optimiser.update(gradients, state)
            return optax.apply_updates(parameters, updates), state, value

        self._begin = [(jnp.asarray(weight.T), jnp.asarray(bias)) for weight, bias in self.weights]
        self._optimiser, self._train = optimiser, train
        self.begin()

    def begin(self) -> None:
        self._parameters: Any = self._begin
        self._state = self._optimiser.init(self._begin)

    def step(self) -> Any:
        self._parameters, self._state, value = self._train(self._parameters, self._state)
        return value


class Torch(Training):
    """PyTorch, step by step."""

    def __init__(self, sizes: str, batch: int) -> None:
        super().__init__(sizes, batch)
        self._torch: Any = importlib.import_module("torch")
        self._torch.set_num_threads(1)
        self._x, self._wanted = (self._torch.as_tensor(one) for one in (self.x, self.wanted))
        self.begin()

    def begin(self) -> None:
        torch = self._torch
        modules: list[Any] = []
        for weight, bias in self.weights:
            modules += [torch.nn.Linear(weight.shape[1], weight.shape[0]), torch.nn.Tanh()]
            modules[-2].load_state_dict({"weight": torch.as_tensor(weight), "bias": torch.as_tensor(bias)})
        self._net = torch.nn.Sequential(*modules[:-1])
        self._optimiser = torch.optim.Adam(self._net.parameters(), lr=RATE, betas=BETAS, eps=EPS)

    def step(self) -> Any:
        self._optimiser.zero_grad()
        loss = ((self._net(self._x)[:, 0] - self._wanted) ** 2).mean()
        loss.backward()
        self._optimiser.step()
        return loss.detach()


def create(package: str, sizes: str, batch: int, way: str = "") -> Training:
    """Return the training by a package."""
    confine(1)
    if package == "tinote":
        return Kit(sizes, batch, way)
    return Jax(sizes, batch) if package == "optax" else Torch(sizes, batch)
