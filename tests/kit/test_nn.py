"""`ti.nn`: networks beside JAX, optimisers beside Optax and SciPy, weights beside PyTorch's and Flax's."""

# ruff: noqa: PLC0415

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

import tinote as ti
from tests.lang.test_portable import numbers, played
from tinote.errors import FieldError, KernelAssertionError
from tinote.lang.capture.portable import portable

ACTIVATIONS: dict[str, Callable[..., Any]] = {
    "relu": jax.nn.relu,
    "tanh": jnp.tanh,
    "sigmoid": jax.nn.sigmoid,
    "silu": jax.nn.silu,
    "softplus": jax.nn.softplus,
    "gelu": partial(jax.nn.gelu, approximate=False),
    "gelu_tanh": partial(jax.nn.gelu, approximate=True),
    "sin": jnp.sin,
}


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    before = jax.config.read("jax_enable_x64")
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@ti.func
def bent(z):
    """An activation of the user's."""
    return z + 0.5 * ti.sin(z)


class Fit:
    """A loss of a network, in one kernel and over a batch."""

    def __init__(self, sizes: Sequence[int], activation: Any, shape: tuple[int, ...], seed: int = 0) -> None:
        ti.init(arch=ti.cpu, default_fp=ti.f64)
        shadows: Any = {"needs_grad": True, "needs_dual": True}
        self.net = net = ti.nn.MLP(sizes, activation, key=seed, needs_dual=True)
        x, y = (ti.Vector.field(n, ti.f64, shape=shape, **shadows) for n in (sizes[0], sizes[-1]))
        loss = ti.field(ti.f64, shape=(), **shadows)
        self.x, self.loss = x, loss
        self.rng = np.random.default_rng(seed)
        for field in (x, *net.parameters.values()):
            field.from_numpy(self.rng.normal(size=field.to_numpy().shape))
        whole = ti.nn.Batched(net, x, y)

        @ti.kernel
        def direct():
            for i in ti.grouped(x):
                z = net(x[i])
                loss[None] += ti.sin(z[0]) + z[0] * z.norm_sqr()

        @ti.kernel
        def measure():
            for i in ti.grouped(y):
                z = y[i]
                loss[None] += ti.sin(z[0]) + z[0] * z.norm_sqr()

        def batched() -> None:
            whole.forward()
            measure()

        self.ways: dict[str, Callable[[], None]] = {"direct": direct, "batched": batched}
        self.fields = [x, *net.parameters.values()]

    def gradient(self, run: Callable[[], None]) -> list[Any]:
        with ti.ad.Tape(self.loss):
            run()
        return [self.loss[None], *(field.grad.to_numpy() for field in self.fields)]

    def arrays(self) -> list[Any]:
        return [field.to_numpy() for field in self.fields]


def reference(activation: Callable[..., Any]) -> Callable[..., Any]:
    """The loss in JAX, of an input and of weights and biases."""

    def loss(x: Any, *parameters: Any) -> Any:
        h = x
        for number, (weight, bias) in enumerate(zip(parameters[::2], parameters[1::2], strict=True)):
            h = h @ weight.T + bias
            h = activation(h) if 2 * number + 2 < len(parameters) else h
        return jnp.sum(jnp.sin(h[..., 0]) + h[..., 0] * jnp.sum(h * h, -1))

    return loss


def alike(found: Sequence[Any], expected: Sequence[Any], rtol: float = 1e-11) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid", "silu"])
def test_derivatives_beside_jax(activation: str) -> None:
    """A batch goes back by the values of the first three, and by the sums of the last."""
    fit = Fit((2, 9, 2), activation, (3, 2))
    arrays = fit.arrays()
    loss = reference(ACTIVATIONS[activation])
    every = tuple(range(len(arrays)))
    value, gradients = jax.jit(jax.value_and_grad(loss, argnums=every))(*arrays)
    direction = [fit.rng.normal(size=one.shape) for one in arrays]
    _, products = jax.jit(lambda a, d: jax.jvp(jax.grad(loss, argnums=every), a, d))(tuple(arrays), tuple(direction))
    for name, run in fit.ways.items():
        alike(fit.gradient(run), [value, *gradients])
        if activation in ("tanh", "silu"):
            hvp = ti.ad.hvp(run, wrt=fit.fields, output=fit.loss)
            alike(hvp(direction), products, 1e-10)
            with ti.ad.FwdMode(fit.loss, fit.x, seed=direction[0]):
                run()
            slope = float((gradients[0] * direction[0]).sum())
            assert fit.loss.dual[None] == pytest.approx(slope, rel=1e-10), name


@settings(max_examples=2, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 19), min_size=2, max_size=3),
    shape=st.lists(st.integers(1, 9), max_size=2).map(tuple),
    activation=st.sampled_from(["tanh", "gelu", bent]),
)
def test_a_batch_of_any_size(sizes: list[int], shape: tuple[int, ...], activation: Any) -> None:
    fit = Fit(sizes, activation, shape)
    direct, batched = (fit.gradient(run) for run in fit.ways.values())
    alike(batched, direct)


def test_in_single_precision_numbers_with_a_last_axis_and_threads() -> None:
    found = []
    for threads in (1, 2):
        ti.init(arch=ti.cpu, num_threads=threads)
        net = ti.nn.MLP([3, 17, 2], "tanh", key=4)
        x, y = ti.field(ti.f32, shape=(50, 3)), ti.field(ti.f32, shape=(50, 2))
        x.from_numpy(np.random.default_rng(0).normal(size=x.shape).astype(np.float32))
        ti.nn.Batched(net, x, y).forward()
        found.append(y.to_numpy())
        h = x.to_numpy().astype(float)
        weights = [one.to_numpy().astype(float) for one in net.parameters.values()]
        expected = np.tanh(h @ weights[0].T + weights[1]) @ weights[2].T + weights[3]
        np.testing.assert_allclose(found[-1], expected, atol=2e-6)
    assert np.array_equal(*found)


def test_python_gives_the_same() -> None:
    found = []
    for arch in (ti.cpu, ti.python):
        ti.init(arch=arch, default_fp=ti.f64)
        net = ti.nn.MLP([2, 3, 1], "gelu", key=1)
        x, y = ti.Vector.field(2, ti.f64, shape=2), ti.field(ti.f64, shape=2)
        x.from_numpy(np.array([[0.3, -0.2], [1.0, 2.0]]))
        ti.nn.Batched(net, x, y).forward()
        found += [y.to_numpy(), [net(x[i])[0] for i in range(2)]]
    for one in found[1:]:
        np.testing.assert_allclose(found[0], one, rtol=1e-13)


def test_how_weights_begin() -> None:
    ti.init(arch=ti.cpu)
    for init, variance in (("glorot", 2 / 300), ("he", 2 / 100), ("lecun", 1 / 100)):
        layer = ti.nn.Dense(100, 200, init=init, key=3)
        weights = layer.weight.to_numpy()
        assert weights.var() == pytest.approx(variance, rel=0.03)
        assert abs(weights.mean()) < 4 * np.sqrt(variance / weights.size)
        assert not layer.bias.to_numpy().any()
    nets = [ti.nn.MLP([4, 4, 4], key=key) for key in (1, 1, 2)]
    first, same, other = ([one.to_numpy() for one in net.parameters.values()] for net in nets)
    assert all(map(np.array_equal, first, same))
    assert not np.array_equal(first[0], other[0])
    assert not np.array_equal(first[0], first[2])  # layers of one network


# derivatives by the input


def test_activations_and_their_derivatives() -> None:
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    layers = tuple([ti.nn.Dense(1, 1, name) for name in ACTIVATIONS])
    for layer in layers:
        layer.weight.fill(1.0)
    x = ti.field(ti.f64, shape=9)
    x.from_numpy(np.array([-40.0, -3.0, -0.7, -0.1, 0.2, 0.9, 2.0, 5.0, 40.0]))
    found = ti.Vector.field(3, ti.f64, shape=(len(layers), 9))

    @ti.kernel
    def run():
        for i in x:
            for n in ti.static(range(len(layers))):
                value, slope, bend = layers[n].along(ti.Vector([x[i]]), ti.Vector([1.0]), ti.Vector([0.0]))
                found[n, i] = [value[0], slope[0], bend[0]]

    run()

    @jax.jit
    def reference(x: Any) -> Any:
        both = [(f, jax.grad(f), jax.grad(jax.grad(f))) for f in ACTIVATIONS.values()]
        return jnp.stack([jnp.stack([jax.vmap(g)(x) for g in three], -1) for three in both])

    alike([found.to_numpy()], [reference(x.to_numpy())])


def test_derivatives_along_a_direction() -> None:
    fit = Fit((2, 5, 3, 2), "silu", (3,))
    net, x = fit.net, fit.x
    jets = [ti.Vector.field(2, ti.f64, shape=3) for _ in range(3)]

    @ti.kernel
    def along(a: ti.f64, b: ti.f64):
        for i in x:
            jets[0][i], jets[1][i], jets[2][i] = net.along(x[i], ti.Vector([a, b]))

    along(0.5, -2.0)
    at, *parameters = fit.arrays()
    direction = np.broadcast_to([0.5, -2.0], at.shape)

    def output(x: Any) -> Any:
        for number in range(3):
            x = x @ parameters[2 * number].T + parameters[2 * number + 1]
            x = jax.nn.silu(x) if number < 2 else x
        return x

    def slope(x: Any) -> Any:
        return jax.jvp(output, (x,), (direction,))[1]

    expected = jax.jit(lambda x: (output(x), slope(x), jax.jvp(slope, (x,), (direction,))[1]))(at)
    alike([jet.to_numpy() for jet in jets], expected)


class Pendulum:
    """A network that is to be a solution: the residual of u'' + sin u = 0, by derivatives made in one go, and by those
    of tapes inside.
    """

    def __init__(self) -> None:
        ti.init(arch=ti.cpu, default_fp=ti.f64)
        shadows: Any = {"needs_grad": True}
        self.net = net = ti.nn.MLP([1, 3, 1], "tanh", key=2)
        t = self.t = ti.Vector.field(1, ti.f64, shape=5, **shadows)
        t.from_numpy(np.linspace(0, 2, 5)[:, None])
        u = ti.field(ti.f64, shape=5, **shadows)
        total, rise = (ti.field(ti.f64, shape=(), **shadows) for _ in range(2))
        loss = self.loss = ti.field(ti.f64, shape=(), **shadows)
        whole = ti.nn.Batched(net, t, u)

        @ti.kernel
        def in_one_go():
            for i in t:
                value, _, bend = net.along(t[i], ti.Vector([1.0]))
                loss[None] += (bend[0] + ti.sin(value[0])) ** 2

        @ti.kernel
        def values():
            for i in t:
                total[None] += net(t[i])[0]

        @ti.kernel
        def add_up():
            for i in u:
                total[None] += u[i]

        @ti.kernel
        def slopes():
            for i in t:
                rise[None] += t.grad[i][0]

        @ti.kernel
        def residual():
            for i in t:
                loss[None] += (t.grad[i][0] + ti.sin(net(t[i])[0])) ** 2

        def nested(output: Callable[[], None]) -> None:
            with ti.ad.Tape(rise):
                with ti.ad.Tape(total):
                    output()
                slopes()
            residual()

        def batched() -> None:
            whole.forward()
            add_up()

        self.ways = [in_one_go, lambda: nested(values), lambda: nested(batched)]


def test_a_loss_of_second_derivatives() -> None:
    pendulum = Pendulum()
    weights = pendulum.net.layers[0].weight
    assert ti.ad.gradcheck(pendulum.ways[0], wrt=weights, output=pendulum.loss).ok
    found = []
    for run in pendulum.ways:
        with ti.ad.Tape(pendulum.loss):
            run()
        found.append([pendulum.loss[None], *(one.grad.to_numpy() for one in pendulum.net.parameters.values())])
    alike(found[1], found[0])
    alike(found[2], found[0])


def test_under_checkpoints_and_many_at_once() -> None:
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    net = ti.nn.MLP([2, 6, 2], "tanh", key=1)
    x = ti.Vector.field(2, ti.f64, shape=3, needs_grad=True)
    y = ti.Vector.field(2, ti.f64, shape=3, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    whole = ti.nn.Batched(net, x, y)
    begin = np.random.default_rng(0).normal(size=(3, 2))

    @ti.kernel
    def advance():
        for i in x:
            x[i] += 0.1 * net(x[i])

    @ti.kernel
    def follow():
        for i in x:
            x[i] += 0.1 * y[i]

    def advance_batched() -> None:
        whole.forward()
        follow()

    @ti.kernel
    def measure():
        for i in x:
            loss[None] += x[i].norm_sqr()

    found = []
    for step in (advance, advance_batched):
        for kept in (False, True):
            x.from_numpy(begin)
            with ti.ad.Tape(loss):
                if kept:
                    ti.ad.checkpoint(lambda _, step=step: step(), 20, memory=1 << 10)
                else:
                    for _ in range(20):
                        step()
                measure()
            found.append([one.grad.to_numpy() for one in (x, *net.parameters.values())])
    for one in found[1:]:
        alike(one, found[0])

    def run() -> None:
        advance_batched()
        measure()

    x.from_numpy(begin)
    weights = net.layers[0].weight
    gradient = ti.ad.grad(run, wrt=weights, output=loss)
    many = np.random.default_rng(1).normal(size=(4, *weights.shape))
    together = ti.ad.vmap(gradient, fields=weights)(many)
    for one, weight in zip(together, many, strict=True):
        x.from_numpy(begin)
        weights.from_numpy(weight)
        alike([one], [gradient()])


# weights of other libraries


def test_weights_from_and_to_dictionaries() -> None:
    ti.init(arch=ti.cpu)
    net, copy = ti.nn.MLP([3, 3, 3], key=1), ti.nn.MLP([3, 3, 3])

    def require_copied() -> None:
        for name, one in net.parameters.items():
            assert np.array_equal(copy.parameters[name].to_numpy(), one.to_numpy())
            copy.parameters[name].fill(0)

    for bias in (net.layers[0].bias, net.layers[1].bias):
        bias.from_numpy(np.arange(3, dtype=np.float32))
    state = net.to_torch()
    assert list(state) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    copy.from_torch(state)
    require_copied()
    first, second = ({k: jnp.asarray(v) for k, v in one.items()} for one in net.to_flax()["params"].values())
    assert np.array_equal(first["kernel"], net.layers[0].weight.to_numpy().T)
    copy.from_flax({"Dense_10": second, "Dense_9": first})  # as JAX sorts them
    require_copied()
    tree = {"head": {"kernel": np.zeros((2, 2))}, "body": {"b": first, "a": second}}
    names = ["body/b", "body/a"]
    copy.from_flax(tree, names)
    require_copied()
    assert next(iter(net.to_torch(names))) == "body/b.weight"


@pytest.mark.torch
def test_a_network_of_pytorch() -> None:
    import torch

    ti.init(arch=ti.cpu, default_fp=ti.f64)
    modules = [torch.nn.Linear(2, 7), torch.nn.Tanh(), torch.nn.Linear(7, 1)]
    theirs = torch.nn.Sequential(*modules).double()
    net = ti.nn.MLP([2, 7, 1], "tanh")
    net.from_torch(theirs.state_dict())
    x = ti.Vector.field(2, ti.f64, shape=9)
    y = ti.field(ti.f64, shape=9, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    whole = ti.nn.Batched(net, x, y)
    inputs = np.random.default_rng(0).normal(size=(9, 2))
    x.from_numpy(inputs)

    @ti.kernel
    def measure():
        for i in y:
            loss[None] += (y[i] - ti.sin(x[i][0])) ** 2 / 9

    adam = ti.nn.Adam(net, 0.01, decay=0.1)
    optimiser = torch.optim.AdamW(theirs.parameters(), lr=0.01, weight_decay=0.1)
    tensor = torch.tensor(inputs)
    for _ in range(5):
        with ti.ad.Tape(loss):
            whole.forward()
            measure()
        adam.step()
        optimiser.zero_grad()
        expected = ((theirs(tensor)[:, 0] - torch.sin(tensor[:, 0])) ** 2).mean()
        expected.backward()
        optimiser.step()
        assert loss[None] == pytest.approx(float(expected), rel=1e-10)
    theirs.load_state_dict({name: torch.as_tensor(value) for name, value in net.to_torch().items()})
    np.testing.assert_allclose(net.to_torch()["2.weight"], theirs[2].weight.detach().numpy())


# optimisers


def schedule(step: Any) -> Any:
    """A rate that falls, for kernels and for JAX."""
    return 0.1 / (1.0 + 0.3 * step)


#: Each beside Optax's.
DESCENTS: dict[str, tuple[Callable[[Any], Any], Callable[[], Any]]] = {
    "sgd": (lambda p: ti.nn.SGD(p, 0.1), lambda: optax.sgd(0.1)),
    "momentum": (lambda p: ti.nn.SGD(p, 0.1, 0.9), lambda: optax.sgd(0.1, 0.9)),
    "nesterov": (lambda p: ti.nn.SGD(p, 0.1, 0.8, nesterov=True), lambda: optax.sgd(0.1, 0.8, nesterov=True)),
    "adam": (lambda p: ti.nn.Adam(p, 0.1), lambda: optax.adam(0.1)),
    "adam with all": (
        lambda p: ti.nn.Adam(p, 0.1, (0.8, 0.95), 1e-3, 0.05, clip=2.0),
        lambda: optax.chain(
            optax.clip_by_global_norm(2.0), optax.adamw(0.1, b1=0.8, b2=0.95, eps=1e-3, weight_decay=0.05)
        ),
    ),
    "schedule": (lambda p: ti.nn.Adam(p, schedule), lambda: optax.adam(schedule)),
}


@pytest.mark.parametrize("name", DESCENTS)
def test_steps_beside_optax(name: str) -> None:
    ti.init(arch=ti.cpu)  # literals of kernels are f32, fields f64
    ours, theirs = DESCENTS[name]
    fields = [
        ti.field(ti.f64, shape=(3, 2), needs_grad=True),
        ti.Vector.field(2, ti.f64, shape=4, needs_grad=True),
        ti.Matrix.field(2, 3, ti.f64, shape=(), needs_grad=True),
    ]
    rng = np.random.default_rng(0)
    for field in fields:
        field.from_numpy(rng.normal(size=field.to_numpy().shape))
    parameters = tuple(jnp.asarray(field.to_numpy()) for field in fields)
    optimiser, descent = theirs(), ours({"a": fields[0], "b": fields[1], "c": fields[2]})
    state = optimiser.init(parameters)
    step = ti.capture(descent.step)
    update = jax.jit(optimiser.update)
    for size in (0.1, 1.0, 10.0, 0.0, 1.0, 3.0):
        gradients = tuple(size * rng.normal(size=one.shape) for one in parameters)
        for field, gradient in zip(fields, gradients, strict=True):
            field.grad.from_numpy(gradient)
        step()
        updates, state = update(gradients, state, parameters)
        parameters = tuple(one + change for one, change in zip(parameters, updates, strict=True))
        alike([field.to_numpy() for field in fields], parameters, 1e-12)


def test_a_rate_that_is_set_and_a_state_that_is_saved(tmp_path: Any) -> None:
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x = ti.field(ti.f64, shape=3, needs_grad=True)
    adam = ti.nn.Adam(x, 0.1)
    step = ti.capture(adam.step)
    x.grad.fill(1.0)
    step()
    adam.rate[None] = 0.0
    step()
    assert x[0] == pytest.approx(-0.1)
    adam.rate[None] = 0.1
    ti.save(tmp_path / "state.npz", x=x, **adam.state)
    step()
    after = x[0]
    adam.begin()
    x.fill(5.0)
    ti.load(tmp_path / "state.npz", x=x, **adam.state)
    assert adam.count[None] == 2
    step()
    assert x[0] == after


@pytest.mark.parametrize("make", [lambda x: ti.nn.SGD(x, 0.1, 0.5), lambda x: ti.nn.Adam(x, 0.1)], ids=["SGD", "Adam"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_gradient_that_is_not_finite_moves_nothing(make: Any, bad: float) -> None:
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x = ti.field(ti.f64, shape=3, needs_grad=True)
    descent = make(x)
    step = ti.capture(descent.step)
    x.grad.from_numpy(np.array([1.0, 2.0, 3.0]))
    step()
    before = x.to_numpy()
    x.grad[1] = bad
    with pytest.raises(KernelAssertionError, match="the gradient of step 1 is not finite"):
        step()
    assert np.array_equal(x.to_numpy(), before)
    x.grad[1] = 2.0
    step()
    assert x[1] < before[1]


class Valley:
    """Rosenbrock's function of numbers in fields of each kind."""

    def __init__(self, n: int) -> None:
        ti.init(arch=ti.cpu, default_fp=ti.f64)
        self.a = a = ti.field(ti.f64, shape=n, needs_grad=True)
        self.b = b = ti.Matrix.field(2, 3, ti.f64, shape=(), needs_grad=True)
        self.c = c = ti.Vector.field(2, ti.f64, shape=2, needs_grad=True)
        self.loss = loss = ti.field(ti.f64, shape=(), needs_grad=True)

        @ti.kernel
        def measure():
            for i in range(n - 1):
                loss[None] += (1 - a[i]) ** 2 + 100 * (a[i + 1] - a[i] ** 2) ** 2
            for i, j in ti.static(ti.ndrange(2, 3)):
                loss[None] += (i + 1) * (b[None][i, j] - j) ** 2
            for i in c:
                loss[None] += ti.cosh(c[i][0] - 1) + (c[i][1] + c[i][0]) ** 4

        self.measure = measure
        a.from_numpy(np.where(np.arange(n) % 2 == 0, -1.2, 1.0))


@pytest.mark.parametrize("n", [2, 10])
def test_lbfgs_beside_scipy(n: int) -> None:
    valley = Valley(n)
    fields = [valley.a, valley.b, valley.c]
    problem = ti.ad.scipy_problem(valley.measure, wrt=fields, output=valley.loss)
    options = {"ftol": 0, "gtol": 1e-8, "maxfun": 10_000}
    expected = scipy.optimize.minimize(problem.value_and_grad, problem.x0, jac=True, method="L-BFGS-B", options=options)
    search = ti.nn.LBFGS(fields, valley.loss)

    @ti.capture
    def train() -> None:
        with ti.ad.Tape(valley.loss):
            valley.measure()
        search.step()

    while True:
        train()
        if np.abs(search.g.to_numpy()).max() < 1e-8:
            break
        assert search.count[None] < 1.3 * expected.nfev
    search.finish()
    found = np.concatenate([field.to_numpy().ravel() for field in fields])
    np.testing.assert_allclose(found[:-4], expected.x[:-4], atol=1e-6)
    np.testing.assert_allclose(found[-4:], expected.x[-4:], atol=1e-2)  # flat there: a fourth power
    assert search.value[None] == pytest.approx(expected.fun, abs=1e-10)


class Plain:
    """A loss with small slopes: first steps are too short."""

    def __init__(self) -> None:
        ti.init(arch=ti.cpu, default_fp=ti.f64)
        self.a = a = ti.field(ti.f64, shape=2, needs_grad=True)
        self.loss = loss = ti.field(ti.f64, shape=(), needs_grad=True)

        @ti.kernel
        def measure():
            for i in a:
                loss[None] += 1e-3 * (a[i] - 100) ** 2 + 1e-2 * ti.cos(0.1 * (i + 1) * a[i])

        self.measure = measure


@pytest.mark.parametrize("make", [lambda: Valley(6), Plain], ids=["valley", "plain"])
def test_lbfgs_accepts_by_wolfes_conditions(make: Callable[[], Any]) -> None:
    program = make()
    search = ti.nn.LBFGS(program.a, program.loss, memory=4)
    too_high = too_steep = accepted = 0
    before: tuple[Any, ...] = ()
    for _ in range(25):
        with ti.ad.Tape(program.loss):
            program.measure()
        value, pairs, length = program.loss[None], search.pairs[None], search.length[None]
        search.step()
        if before:
            was, slope, d = before
            is_lower = value <= was + 1e-4 * length * slope
            is_flat = float(search.g_trial.to_numpy() @ d) >= 0.9 * slope
            assert (search.pairs[None] > pairs) == (is_lower and is_flat)
            accepted += is_lower and is_flat
            too_high, too_steep = too_high + (not is_lower), too_steep + (not is_flat)
        before = (search.value[None], search.slope[None], search.d.to_numpy())
    assert accepted > 5
    assert (too_high if isinstance(program, Valley) else too_steep) > 0


@pytest.mark.parametrize("name", ["uphill", "too far"])
def test_lbfgs_forgets_what_leads_nowhere(name: str) -> None:
    """What it remembers is spoiled before a direction is made of it."""
    valley = Valley(3)
    search = ti.nn.LBFGS(valley.a, valley.loss, memory=2)
    values = []
    for step in range(150):
        with ti.ad.Tape(valley.loss):
            valley.measure()
        search._compare()
        if step == 5:
            assert search.active[None] > 0
            if name == "uphill":
                search.scale[None] = -1e3
            else:
                search.s.from_numpy(search.s.to_numpy() * 1e25)
        for newest in (0, 1):
            search._go_back(newest)
        for newest in (1, 0):
            search._come_again(newest)
        search._try()
        values.append(search.value[None])
    assert values == sorted(values, reverse=True)
    search.finish()
    np.testing.assert_allclose(valley.a.to_numpy(), 1.0, atol=1e-6)


def test_lbfgs_goes_nowhere_without_a_gradient() -> None:
    """The loss is least beyond an edge, where its gradient is not a number."""
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x = ti.field(ti.f64, shape=(), needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def measure():
        loss[None] += (x[None] - 0.2) ** 2

    x[None] = 2.0
    search = ti.nn.LBFGS(x, loss)
    for _ in range(60):
        with ti.ad.Tape(loss):
            measure()
        if x[None] < 0.5:
            x.grad[None] = np.nan
        search.step()
    search.finish()
    assert 0.5 <= x[None] < 0.6


def test_lbfgs_at_a_wall_and_at_the_end() -> None:
    """Beyond a wall the loss is not a number; at the minimum, nothing gets better."""
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x = ti.field(ti.f64, shape=2, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def measure():
        for i in x:
            loss[None] += 1e-3 / ti.sqrt(x[i]) - ti.log(x[i]) + 50 * x[i] ** 2 / (i + 1)

    search = ti.nn.LBFGS(x, loss, memory=3)

    @ti.capture
    def train() -> None:
        with ti.ad.Tape(loss):
            measure()
        search.step()

    x.from_numpy(np.array([3.0, 1e-3]))
    for _ in range(200):
        train()
    search.finish()
    with ti.ad.Tape(loss):
        measure()
    assert np.abs(x.grad.to_numpy()).max() < 1e-6
    search.begin()
    x[0] = -1.0
    with pytest.raises(KernelAssertionError, match="the first loss is nan"):
        train()


def test_training_in_a_page() -> None:
    ti.init(arch=ti.cpu)
    net = ti.nn.MLP([1, 6, 1], "tanh", key=1)
    x, y = ti.field(ti.f32, shape=16), ti.field(ti.f32, shape=16, needs_grad=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)
    x.from_numpy(np.linspace(-1, 2, 16, dtype=np.float32))
    whole = ti.nn.Batched(net, x, y)

    @ti.kernel
    def measure():
        for i in y:
            loss[None] += (y[i] - ti.sin(x[i])) ** 2 / 16

    adam, search = ti.nn.Adam(net, 0.02), ti.nn.LBFGS(net, loss, memory=4)

    def train(optimiser: Any) -> None:
        with ti.ad.Tape(loss):
            whole.forward()
            measure()
        optimiser.step()

    steps = {"adam": lambda: train(adam), "search": lambda: train(search), "begin": lambda: net.begin(1)}
    made = portable([(name, step, ()) for name, step in steps.items()], {"loss": loss})
    assert made.refused == {}
    runs = [("begin", 1), ("adam", 40), ("search", 30)]
    commands: list[list[Any]] = []
    for name, count in runs:
        commands += [["call", name]] * count + [["read", "loss"]]
    answers = [
        one for one, command in zip(played(made.encode(), *commands), commands, strict=True) if command[0] == "read"
    ]
    found = [float(numbers(one, loss.to_numpy())) for one in answers]
    expected = []
    for name, count in runs:
        for _ in range(count):
            steps[name]()
        expected.append(loss[None])
    assert found[1] == pytest.approx(expected[1], rel=1e-3)
    assert found[1] < 0.2
    assert max(found[2], expected[2]) < 0.02


# errors


def scalar(*shape: int, dtype: Any = ti.f32, needs_grad: bool = True) -> Any:
    return ti.field(dtype, shape=shape, needs_grad=needs_grad)


def weights(**changes: Any) -> dict[str, Any]:
    state: dict[str, Any] = {"0.weight": np.zeros((3, 2), np.float32), "0.bias": np.zeros(3, np.float32)}
    state |= {"2.weight": np.zeros((1, 3), np.float32)}
    state |= {name.replace("_", "."): value for name, value in changes.items()}
    return {name: value for name, value in state.items() if value is not None}


def dense(*shapes: tuple[int, int]) -> dict[str, Any]:
    return {"params": {f"Dense_{n}": {"kernel": np.zeros(shape, np.float32)} for n, shape in enumerate(shapes)}}


def net() -> Any:
    return ti.nn.MLP([2, 3, 1])


def pairs(*shape: int, dtype: Any = ti.f32) -> Any:
    return ti.Vector.field(2, dtype, shape=shape)


REFUSED = [
    (lambda: ti.nn.MLP([2]), "a number of inputs and of outputs"),
    (lambda: ti.nn.MLP([2, 0, 1]), "a positive number of inputs and of outputs, not 0"),
    (lambda: ti.nn.MLP([2, 2.0, 1]), "not 2.0"),
    (lambda: ti.nn.MLP([2, 3, 1], "tahn"), "did you mean 'tanh'"),
    (lambda: ti.nn.Dense(2, 3, init="glorott"), "did you mean 'glorot'"),
    (lambda: ti.nn.Dense(2, 3, dtype=ti.i32), "of f32 or of f64, not of i32"),
    (lambda: ti.nn.Batched(ti.nn.Dense(2, 3), pairs(4), scalar(4)), "a batch is of a network"),
    (lambda: ti.nn.Batched(net(), np.zeros((4, 2)), scalar(4)), "are fields"),
    (lambda: ti.nn.Batched(net(), pairs(4, dtype=ti.f64), scalar(4)), "is of f64, and the network of f32"),
    (lambda: ti.nn.Batched(net(), ti.Vector.field(3, ti.f32, shape=4), scalar(4)), "vectors of 3, and"),
    (lambda: ti.nn.Batched(net(), scalar(2, 4), scalar(4)), r"the shape \(2, 4\), whose last axis is not of 2"),
    (lambda: ti.nn.Batched(net(), pairs(4), scalar(5)), r"inputs of shape \(4,\) and outputs of shape \(5,\)"),
    (lambda: ti.nn.Adam(scalar(3, needs_grad=False)), "has no gradient"),
    (lambda: ti.nn.Adam(scalar(3, dtype=ti.i32, needs_grad=False)), "fields of f32 or of f64"),
    (lambda: ti.nn.Adam([]), "needs fields"),
    (lambda: ti.nn.Adam([scalar(3), scalar(3, dtype=ti.f64)]), "fields of one type, each once"),
    (lambda: ti.nn.Adam(scalar(3), scalar(3)), r"a rate is one number, and '.*' has the shape \(3,\)"),
    (lambda: ti.nn.SGD(scalar(3), 0.1, clip=0.0), "cannot be cut to the length 0.0"),
    (lambda: ti.nn.LBFGS(scalar(3), scalar(2)), "a loss is a field of one number"),
    (lambda: ti.nn.LBFGS(scalar(3), scalar(dtype=ti.f64)), "the loss is of f64, and what is moved of f32"),
    (lambda: ti.nn.LBFGS(scalar(3), scalar(), memory=0), "a positive number of steps, not 0"),
    (lambda: net().from_torch({}), "a network of 2 layers has as many names, not 0"),
    (lambda: net().from_torch(weights(), ["0", "4"]), "there is no layer '4'"),
    (lambda: net().from_torch(weights(a_weight=np.zeros((3, 2), np.float32))), "has as many names, not 3"),
    (lambda: net().from_torch(weights(a_bias=np.zeros(1)), ["0", "a"]), "the layer 'a' has no weight"),
    (lambda: net().from_torch(weights(**{"0_gain": np.zeros(3)})), r"'0' has \['gain'\], and a dense one"),
    (lambda: net().from_torch(weights(**{"0_bias": np.zeros(4, np.float32)})), r"shape \(4,\), and that .* \(3,\)"),
    (lambda: net().from_torch(weights(**{"0_bias": np.zeros(3)})), "'0', bias is of float64, which does not fit"),
    (lambda: net().from_torch(weights(**{"0_bias": np.zeros(3, int)})), "'0', bias is of int64, which does not fit"),
    (lambda: net().from_flax(dense((3, 2), (3, 1))), r"'Dense_0', kernel has the shape \(3, 2\), and .* \(2, 3\)"),
    (lambda: net().to_flax(["a"]), "has as many names, not 1"),
]  # fmt: skip


@pytest.mark.parametrize(("attempt", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_does_not_fit_is_refused(attempt: Any, message: str) -> None:
    ti.init(arch=ti.cpu)
    with pytest.raises(FieldError, match=message) as caught:
        attempt()
    assert caught.value.span.file == __file__


def test_weights_that_do_not_fit_change_nothing() -> None:
    ti.init(arch=ti.cpu)
    one = net()
    before = one.to_torch()
    with pytest.raises(FieldError):
        one.from_torch(weights(**{"2_weight": np.zeros((2, 3), np.float32)}))
    assert all(np.array_equal(before[name], value) for name, value in one.to_torch().items())


def test_vectors_that_do_not_fit_in_kernels() -> None:
    ti.init(arch=ti.cpu)
    one, own = net(), ti.nn.MLP([2, 3, 1], bent)

    @ti.kernel
    def too_long():
        one(ti.Vector([1.0, 2.0, 3.0]))

    @ti.kernel
    def without_slope():
        own.along(ti.Vector([1.0, 2.0]), ti.Vector([1.0, 0.0]))

    @ti.kernel
    def no_vector():
        one(1.0)

    wrong = [
        (too_long, "a layer of 2 inputs gets 3 by 1"),
        (no_vector, "takes a vector"),
        (without_slope, "by its name"),
    ]
    for kernel, message in wrong:
        with pytest.raises(ti.TaichiCompilationError, match=message) as caught:
            kernel()
        assert caught.value.span.file == __file__
