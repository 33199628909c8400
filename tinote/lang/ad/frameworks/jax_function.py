"""`ti.ad.jax_function`: a program as a function of JAX arrays, to which JAX's transformations apply.

Four primitives stand for the program, its pushforward (linear in tangents), its pullback (the transpose of that) and
the pushforward of its pullback. JAX composes them with its own, and calls the program back when it runs.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from tinote.errors import DifferentiationError
from tinote.lang.ad.frameworks.array_function import ArrayFunction
from tinote.lang.ad.frameworks.declared import ArrayFacts
from tinote.source import caller


def jax_function(f: Callable[..., Any], *, inputs: Any = None, outputs: Any = None) -> Callable[..., Any]:
    """A function of JAX arrays, for `jax.jit`, `grad`, `jvp`, `vjp`, `vmap` and `hessian`.

    It has no effect but its results: afterwards all fields are as they were. Derivatives run `f` again. `vmap` runs it
    for one element after the other. Second derivatives have to be reverse over reverse or forward over reverse mode.
    JAX works in single precision unless `jax.config.update("jax_enable_x64", True)` says otherwise, and fields of other
    types than the arrays are refused.

    Parameters
    ----------
    f : callable
        A kernel, or a function that launches kernels.
    inputs : Field or sequence of Field, optional
        Fields that `f()` reads, as for `ti.ad.torch_function`.
    outputs : Field, shape, sequence of them, or callable, optional
        Fields with the results of `f()`; or, for an `f` that takes arrays, the shapes of its results, which have the
        type of the first array.

    Returns
    -------
    callable
        The function of arrays.

    Raises
    ------
    DifferentiationError
        Without JAX.
    TypeError
        From the function, as from JAX's own, for other shapes and types than it takes.

    Examples
    --------
    >>> @ti.kernel
    ... def square(a: ti.types.ndarray(), out: ti.types.ndarray()):
    ...     for i in a:
    ...         out[i] = a[i] * a[i]
    >>> squared = ti.ad.jax_function(square, outputs=lambda shape: shape)
    >>> import jax
    >>> jax.grad(lambda a: squared(a).sum())(jax.numpy.array([1.0, 2.0]))
    Array([2., 4.], dtype=float32)
    """
    try:
        jax = importlib.import_module("jax")
    except ImportError:
        raise DifferentiationError(
            "ti.ad.jax_function needs JAX, which is not installed", caller(), hint="pip install jax"
        ) from None
    program = ArrayFunction("jax_function", f, inputs, outputs)
    run = _primitives(jax)
    known = (jax.Array, np.ndarray, np.generic, int, float, complex)

    @functools.wraps(f)
    def function(*arrays: Any) -> Any:
        for number, one in enumerate(arrays):
            if not isinstance(one, known) and not hasattr(one, "__jax_array__"):
                raise TypeError(f"argument {number} of {program.name} must be an array, not {type(one).__name__}")
        given = [jax.numpy.asarray(one) for one in arrays]
        facts = [_facts(one) for one in given]
        wrong = program.mismatch(facts)
        if wrong is not None:
            hint = "" if jax.config.jax_enable_x64 else "; jax.config.update('jax_enable_x64', True) allows float64"
            raise TypeError(wrong.message + (hint if wrong.kind == "dtype" else ""))
        found = run(*given, program=program, count=len(given))
        return found[0] if program.is_single(facts) else tuple(found)

    return function


def _facts(array: Any) -> ArrayFacts:
    return ArrayFacts(tuple(array.shape), np.dtype(array.dtype))


@functools.cache
def _primitives(jax: Any) -> Callable[..., Any]:
    """What JAX knows of a program. Each primitive takes the inputs, `count` arrays; then seeds for the results, then
    tangents of the inputs, as far as it takes them.
    """
    ad = importlib.import_module("jax.interpreters.ad")
    batching = importlib.import_module("jax.interpreters.batching")
    mlir = importlib.import_module("jax.interpreters.mlir")
    core = importlib.import_module("jax.extend.core")

    def primitive(name: str, run: Callable[..., Any], like: Callable[..., list[ArrayFacts]]) -> Any:
        """`run(program, inputs, further arrays)` computes it: arrays of `like(program, facts of the inputs)`."""
        made = core.Primitive(f"tinote_{name}")
        made.multiple_results = True

        def called_back(program: ArrayFunction, count: int, *arrays: Any) -> Any:
            held = [np.asarray(one) for one in arrays]
            kinds = like(program, [_facts(one) for one in held[:count]])
            found = run(program, held[:count], held[count:])
            return [np.asarray(one, kind.dtype) for one, kind in zip(found, kinds, strict=True)]

        def implementation(*arrays: Any, program: ArrayFunction, count: int) -> Any:
            return [jax.numpy.asarray(one) for one in called_back(program, count, *arrays)]

        def lowered(*arrays: Any, program: ArrayFunction, count: int) -> Any:
            kinds = like(program, [_facts(one) for one in arrays[:count]])
            call = functools.partial(called_back, program, count)
            return jax.pure_callback(call, [jax.ShapeDtypeStruct(*one) for one in kinds], *arrays)

        def abstract(*arrays: Any, program: ArrayFunction, count: int) -> Any:
            return [jax.core.ShapedArray(*one) for one in like(program, [_facts(one) for one in arrays[:count]])]

        def batched(arrays: Sequence[Any], axes: Sequence[Any], *, program: ArrayFunction, count: int) -> Any:
            mapped = [
                jax.numpy.moveaxis(one, axis, 0) for one, axis in zip(arrays, axes, strict=True) if axis is not None
            ]

            def one_after_the_other(elements: Sequence[Any]) -> Any:
                own = iter(elements)
                return made.bind(
                    *[one if axis is None else next(own) for one, axis in zip(arrays, axes, strict=True)],
                    program=program,
                    count=count,
                )

            found = jax.lax.map(one_after_the_other, mapped)
            return found, [0] * len(found)

        made.def_impl(implementation)
        made.def_abstract_eval(abstract)
        mlir.register_lowering(made, mlir.lower_fun(lowered, multiple_results=True))
        batching.primitive_batchers[made] = batched
        return made

    def own(program: ArrayFunction, inputs: list[ArrayFacts]) -> list[ArrayFacts]:
        return inputs

    def push_pullback(program: ArrayFunction, inputs: list[Any], further: list[Any]) -> list[Any]:
        return program.second(inputs, further[: -len(inputs)], further[-len(inputs) :])[1]

    value = primitive("value", lambda program, inputs, further: program.value(inputs), ArrayFunction.results)
    pushforward = primitive("pushforward", ArrayFunction.push, ArrayFunction.results)
    pullback = primitive("pullback", ArrayFunction.pull, own)
    second = primitive("pushforward_of_pullback", push_pullback, own)

    def there(tangent: Any, like: Any) -> Any:
        """A tangent, also where JAX knows that it is zero."""
        zero = isinstance(tangent, ad.Zero) or ad.is_undefined_primal(tangent)
        return jax.numpy.zeros(like.shape, like.dtype) if zero else tangent

    def wanted(found: Sequence[Any], places: Sequence[Any]) -> list[Any]:
        """Of a transpose: what is asked for."""
        return [one if ad.is_undefined_primal(place) else None for one, place in zip(found, places, strict=True)]

    def value_jvp(inputs: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        moved = [there(*pair) for pair in zip(tangents, inputs, strict=True)]
        return value.bind(*inputs, **params), pushforward.bind(*inputs, *moved, **params)

    def pushforward_jvp(given: Sequence[Any], moved: Sequence[Any], *, program: ArrayFunction, count: int) -> Any:
        if not all(isinstance(one, ad.Zero) for one in moved[:count]):
            raise NotImplementedError(
                f"{program.name} has no derivatives of forward mode: take them of reverse mode, as jax.hessian does"
            )
        bind = functools.partial(pushforward.bind, *given[:count], program=program, count=count)
        along = [there(*pair) for pair in zip(moved[count:], given[count:], strict=True)]
        return bind(*given[count:]), bind(*along)

    def pushforward_transpose(seeds: Sequence[Any], *given: Any, program: ArrayFunction, count: int) -> Any:
        inputs, tangents = given[:count], given[count:]
        kinds = program.results([_facts(one) for one in inputs])
        seeds = [there(one, kind) for one, kind in zip(seeds, kinds, strict=True)]
        found = pullback.bind(*inputs, *seeds, program=program, count=count)
        return [None] * count + wanted(found, tangents)

    def pullback_jvp(given: Sequence[Any], moved: Sequence[Any], *, program: ArrayFunction, count: int) -> Any:
        inputs, seeds = given[:count], given[count:]
        found = pullback.bind(*given, program=program, count=count)
        tangents: list[Any] = []
        if not all(isinstance(one, ad.Zero) for one in moved[:count]):
            along = [there(*pair) for pair in zip(moved[:count], inputs, strict=True)]
            tangents.append(second.bind(*given, *along, program=program, count=count))
        if not all(isinstance(one, ad.Zero) for one in moved[count:]):
            along = [there(*pair) for pair in zip(moved[count:], seeds, strict=True)]
            tangents.append(pullback.bind(*inputs, *along, program=program, count=count))
        return found, [functools.reduce(jax.numpy.add, some) for some in zip(*tangents, strict=True)]

    def pullback_transpose(cotangents: Sequence[Any], *given: Any, program: ArrayFunction, count: int) -> Any:
        inputs, seeds = given[:count], given[count:]
        along = [there(*pair) for pair in zip(cotangents, inputs, strict=True)]
        found = pushforward.bind(*inputs, *along, program=program, count=count)
        return [None] * count + wanted(found, seeds)

    def second_transpose(cotangents: Sequence[Any], *given: Any, program: ArrayFunction, count: int) -> Any:
        # A Hessian is symmetric: so is what is linear in the tangents here.
        inputs, seeds, tangents = given[:count], given[count:-count], given[-count:]
        if any(map(ad.is_undefined_primal, seeds)):
            refuse_third(program)
        along = [there(*pair) for pair in zip(cotangents, inputs, strict=True)]
        found = second.bind(*given[:-count], *along, program=program, count=count)
        return [None] * (len(given) - count) + wanted(found, tangents)

    def second_jvp(given: Sequence[Any], moved: Sequence[Any], *, program: ArrayFunction, count: int) -> Any:
        refuse_third(program)

    def refuse_third(program: ArrayFunction) -> NoReturn:
        raise NotImplementedError(f"{program.name} has no third derivatives")

    ad.primitive_jvps[value] = value_jvp
    ad.primitive_jvps[pushforward] = pushforward_jvp
    ad.primitive_transposes[pushforward] = pushforward_transpose
    ad.primitive_jvps[pullback] = pullback_jvp
    ad.primitive_transposes[pullback] = pullback_transpose
    ad.primitive_jvps[second] = second_jvp
    ad.primitive_transposes[second] = second_transpose
    return value.bind
