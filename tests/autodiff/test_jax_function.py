"""Programs as functions of JAX's arrays, under its transformations, against the same functions written in JAX."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tinote as ti
from examples.optax_fit import fit
from tests.autodiff.framework_programs import EACH_MISFIT, PROGRAMS, Call


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    before = jax.config.read("jax_enable_x64")
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def alike(a: Any, b: Any, what: str = "") -> None:
    left, right = jax.tree.leaves(a), jax.tree.leaves(b)
    assert len(left) == len(right)
    for one, other in zip(left, right, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11, err_msg=what)


@pytest.fixture(params=PROGRAMS)
def pair(request: pytest.FixtureRequest) -> tuple[Callable[..., Any], Callable[..., Any], list[Any]]:
    """A number made of a program's results, the same in JAX, and arguments.

    What is of JAX alone is compiled as a whole: operation by operation, XLA compiles hundreds of tiny programs.
    """
    ti.init(default_fp=ti.f64)
    made = PROGRAMS[request.param]()
    function = ti.ad.jax_function(made.f, inputs=made.inputs, outputs=made.outputs)
    weights = np.random.default_rng(1)

    @jax.jit
    def before(*arguments: Any) -> list[Any]:
        return [jnp.tanh(one) + 1.0 for one in arguments]

    @jax.jit
    def after(results: list[Any]) -> Any:
        return sum(jnp.sum(jnp.cos(one) * (1.5 + k)) for k, one in enumerate(results))

    def number(f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments: after(jax.tree.leaves(f(*before(*arguments))))

    inputs = [jnp.asarray(weights.normal(size=shape)) for shape in made.shapes]
    return number(function), jax.jit(number(lambda *a: made.reference(*a, xp=jnp))), inputs


#: Each with the derivative that it gives: 0, 1 or 2.
TRANSFORMED: dict[str, tuple[int, Callable[[Any, tuple[int, ...]], Any]]] = {
    "value": (0, lambda f, n: f),
    "jit": (0, lambda f, n: jax.jit(f)),
    "grad": (1, lambda f, n: jax.grad(f, n)),
    "jit of grad": (1, lambda f, n: jax.jit(jax.grad(f, n))),
    "forward mode": (1, lambda f, n: jax.jacfwd(f, n)),
    "hessian": (2, lambda f, n: jax.hessian(f, n)),
    "reverse over reverse": (2, lambda f, n: jax.jit(jax.jacrev(jax.jacrev(f, n), n))),
}


def test_transformations(pair: Any) -> None:
    ours, theirs, inputs = pair
    positions = tuple(range(len(inputs)))
    orders = (theirs, jax.grad(theirs, positions), jax.hessian(theirs, positions))
    wanted = jax.jit(lambda *a: [f(*a) for f in orders])(*inputs)
    for name, (order, transform) in TRANSFORMED.items():
        alike(transform(ours, positions)(*inputs), wanted[order], name)


def test_vmap(pair: Any) -> None:
    ours, theirs, inputs = pair
    positions = tuple(range(len(inputs)))
    batches = [jnp.stack([one, 0.5 * one, -one]) for one in inputs]
    for transform in (lambda f: f, lambda f: jax.grad(f, positions)):
        alike(jax.jit(jax.vmap(transform(ours)))(*batches), jax.jit(jax.vmap(transform(theirs)))(*batches))
    # Only the first one is mapped, along its last axis.
    mapped, *others = inputs
    along = jnp.stack([mapped, 0.5 * mapped], axis=-1)
    axes = (mapped.ndim, *[None] * len(others))
    alike(jax.vmap(ours, axes)(along, *others), jax.jit(jax.vmap(theirs, axes))(along, *others))
    # The derivative of what is mapped.
    alike(
        jax.grad(lambda *a: jax.vmap(ours)(*a).sum(), positions)(*batches),
        jax.jit(jax.grad(lambda *a: jax.vmap(theirs)(*a).sum(), positions))(*batches),
    )


def test_threads_take_turns() -> None:
    ti.init(default_fp=ti.f64)
    made = PROGRAMS["fields_that_are_overwritten"]()
    f = jax.jit(jax.grad(lambda x: ti.ad.jax_function(made.f, inputs=made.inputs, outputs=made.outputs)(x)[1]))
    starts = [jnp.full(4, 0.25 * k) for k in range(4)]
    wanted = [f(one) for one in starts]
    found: dict[int, Any] = {}

    def work(k: int) -> None:
        for _ in range(5):
            found[k] = f(starts[k])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    alike([found[k] for k in range(4)], wanted)


def test_single_precision_is_the_default() -> None:
    jax.config.update("jax_enable_x64", False)
    ti.init()
    x = ti.field(ti.f32, 3, needs_grad=True)
    y = ti.field(ti.f32, 3, needs_grad=True)

    @ti.kernel
    def square():
        for i in x:
            y[i] = x[i] ** 2

    f = ti.ad.jax_function(square, inputs=x, outputs=y)
    assert f.__name__ == "square"
    gradient = jax.jit(jax.grad(lambda x: f(x).sum()))(jnp.arange(3.0))
    assert gradient.dtype == jnp.float32 and gradient.tolist() == [0.0, 2.0, 4.0]
    with pytest.raises(TypeError, match=r"shape \(4,\), but the field 'x' has shape \(3,\)"):
        f(jnp.ones(4))
    with pytest.raises(TypeError, match="takes 1 arrays, not 2"):
        f(jnp.ones(3), jnp.ones(3))
    with pytest.raises(TypeError, match="holds int32"):
        f(jnp.arange(3))
    z = ti.field(ti.f64, 3, needs_grad=True)
    with pytest.raises(TypeError, match="jax_enable_x64"):
        ti.ad.jax_function(lambda: None, inputs=z, outputs=z)(jnp.ones(3))


def under_transformations(f: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """What traces `f` with arguments of the shapes and types that it is called with."""

    def batch(arguments: Any) -> list[Any]:
        return [jnp.stack([one, one]) for one in arguments]

    def total(*arguments: Any) -> Any:
        return sum(jnp.sum(one) for one in jax.tree.leaves(f(*arguments)))

    def of_zero(*arguments: Any) -> Any:
        """Differentiated with respect to what all arguments that are floats are made from."""
        return lambda z: total(*[one + z.astype(one.dtype) for one in arguments])

    return {
        "call": f,
        "jit": jax.jit(f),
        "grad": lambda *a: jax.grad(of_zero(*a))(jnp.zeros(())),
        "jit of grad": lambda *a: jax.jit(jax.grad(of_zero(*a)))(jnp.zeros(())),
        "jvp": lambda *a: jax.jvp(of_zero(*a), (jnp.zeros(()),), (jnp.ones(()),)),
        "vmap": lambda *a: jax.vmap(f)(*batch(a)),
        "eval_shape": lambda *a: jax.eval_shape(f, *a),
    }


@pytest.mark.parametrize(("name", "call"), EACH_MISFIT)
def test_wrong_arguments_are_jaxs_errors(name: str, call: Call) -> None:
    ti.init(default_fp=ti.f64)
    made = PROGRAMS[name]()
    f = ti.ad.jax_function(made.f, inputs=made.inputs, outputs=made.outputs)
    arguments = [jnp.ones(shape, dtype) for shape, dtype in call.arguments]
    for transform, transformed in under_transformations(f).items():
        if transform == "vmap" and not arguments:
            continue  # it has nothing to map over
        with pytest.raises(TypeError, match=call.message) as caught:
            transformed(*arguments)
        assert type(caught.value) is TypeError, transform


@pytest.mark.parametrize("name", ["fields_that_are_overwritten", "a_kernel_of_arrays"])
@pytest.mark.parametrize("given", [[1.0, 2.0], (1.0, 2.0), None, "x"], ids=repr)
def test_arguments_are_arrays(name: str, given: Any) -> None:
    ti.init(default_fp=ti.f64)
    made = PROGRAMS[name]()
    f = ti.ad.jax_function(made.f, inputs=made.inputs, outputs=made.outputs)
    arguments = [given, *[np.ones(shape) for shape in made.shapes[1:]]]
    with pytest.raises(TypeError, match=f"argument 0 of .* must be an array, not {type(given).__name__}"):
        f(*arguments)
    alike(f(*[np.ones(shape) for shape in made.shapes]), made.reference(*[np.ones(shape) for shape in made.shapes]))


def test_gradients_of_integers_are_refused() -> None:
    ti.init(default_fp=ti.f64)
    made = PROGRAMS["fields_that_are_overwritten"]()
    f = ti.ad.jax_function(made.f, inputs=made.inputs, outputs=made.outputs)
    for transformed in (jax.grad(lambda x: f(x)[1]), jax.grad(lambda x: f(x)[1], allow_int=True)):
        with pytest.raises(TypeError, match=r"int64"):
            transformed(jnp.arange(4))


def test_without_double_precision_a_kernel_of_doubles_says_so() -> None:
    jax.config.update("jax_enable_x64", False)
    ti.init(default_fp=ti.f64)
    made = PROGRAMS["a_kernel_of_arrays"]()
    f = ti.ad.jax_function(made.f, outputs=made.outputs)
    with pytest.raises(TypeError, match=r"is an array of f64, and is called with one of f32; .*jax_enable_x64"):
        f(jnp.ones((3, 4)), jnp.ones(4))


def test_what_has_no_derivative_is_reported() -> None:
    ti.init(default_fp=ti.f64)
    made = PROGRAMS["fields_that_are_overwritten"]()
    f = ti.ad.jax_function(made.f, inputs=made.inputs, outputs=made.outputs)
    at = jnp.ones(4)

    def number(x: Any) -> Any:
        return f(x)[1] ** 2

    with pytest.raises(NotImplementedError, match=r"run has no derivatives of forward mode.*jax.hessian"):
        jax.jacfwd(jax.jacfwd(number))(at)
    with pytest.raises(NotImplementedError, match=r"run has no (third derivatives|derivatives of forward mode)"):
        jax.jacfwd(jax.jacrev(jax.jacrev(number)))(at)


def test_an_error_of_the_program_arrives() -> None:
    ti.init(default_fp=ti.f64)
    x = ti.field(ti.f64, 3, needs_grad=True)

    @ti.kernel
    def beyond(k: ti.i32):
        x[k] = 1.0

    with pytest.raises(Exception, match="out of bounds"):
        ti.ad.jax_function(lambda: beyond(7), inputs=x, outputs=x)(jnp.ones(3))
    with pytest.raises(Exception, match="out of bounds"):
        jax.block_until_ready(jax.jit(ti.ad.jax_function(lambda: beyond(7), inputs=x, outputs=x))(jnp.ones(3)))


def test_the_example_finds_the_springs() -> None:
    found, true = fit(iterations=150)
    start = np.abs(15.0 - true).mean()
    assert np.abs(found - true).mean() < 0.5 * start
