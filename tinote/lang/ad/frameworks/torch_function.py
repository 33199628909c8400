"""`ti.ad.torch_function`: a program as a function of PyTorch tensors, which PyTorch's autograd differentiates."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinote.errors import DifferentiationError
from tinote.lang.ad.frameworks.array_function import ArrayFunction
from tinote.lang.ad.frameworks.declared import ArrayFacts
from tinote.source import caller


def torch_function(f: Callable[..., Any], *, inputs: Any = None, outputs: Any = None) -> Callable[..., Any]:
    """A function of PyTorch tensors that can be differentiated.

    Second derivatives (`create_graph=True`) and tangents (`torch.autograd.forward_ad`) go through it as well. Tensors
    are on the CPU; they are read where they are, and not written. The function has no effect but its results:
    afterwards all fields are as they were. The backward pass runs `f` again, from the tensors of that call and from
    what all other fields hold then: calls may come in any order, also from several threads, which take turns.

    Parameters
    ----------
    f : callable
        A kernel, or a function that launches kernels.
    inputs : Field or sequence of Field, optional
        Fields with a gradient that `f()` reads: the function takes a tensor for each, of its shape (followed by that of
        its elements) and type. Left out, `f` takes NumPy arrays where the function takes tensors (a kernel numbers,
        where its parameters are numbers: tensors of shape `()`), and then one for each result, which holds zeros.
    outputs : Field, shape, sequence of them, or callable, optional
        Fields with the results; or the shape of the result, a list of shapes, or a function that gives these for the
        shapes of the tensors. Results have the type of the first tensor. Left out, the result is the number that `f`
        returns. A list gives a tuple of tensors.

    Returns
    -------
    callable
        The function of tensors.

    Raises
    ------
    DifferentiationError
        Without PyTorch.
    TypeError, ValueError, RuntimeError
        From the function, as from PyTorch's own: for what is not a tensor, a shape, a type or a device.

    Examples
    --------
    >>> @ti.kernel
    ... def square(a: ti.types.ndarray(), out: ti.types.ndarray()):
    ...     for i in a:
    ...         out[i] = a[i] * a[i]
    >>> import torch
    >>> squared = ti.ad.torch_function(square, outputs=lambda shape: shape)
    >>> a = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> squared(a).sum().backward()
    >>> a.grad
    tensor([2., 4.])
    """
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        raise DifferentiationError(
            "ti.ad.torch_function needs PyTorch, which is not installed",
            caller(),
            hint="see https://pytorch.org for how to install it",
        ) from None
    program = ArrayFunction("torch_function", f, inputs, outputs)
    run = _functions(torch)
    known = (torch.float16, torch.float32, torch.float64)

    @functools.wraps(f)
    def function(*tensors: Any) -> Any:
        for number, one in enumerate(tensors):
            if not isinstance(one, torch.Tensor):
                raise TypeError(f"argument {number} of {program.name} must be a tensor, not {type(one).__name__}")
            if one.device.type != "cpu":
                raise RuntimeError(f"argument {number} of {program.name} is on {one.device}: move it to the CPU first")
            if one.layout is not torch.strided:
                raise RuntimeError(f"argument {number} of {program.name} is {one.layout}: pass `tensor.to_dense()`")
            if one.dtype not in known:
                raise RuntimeError(
                    f"argument {number} of {program.name} holds {one.dtype}: tensors of float16, float32 or float64 "
                    "are taken"
                )
        facts = [_facts(one) for one in tensors]
        wrong = program.mismatch(facts)
        if wrong is not None:
            kinds = {"count": TypeError, "shape": ValueError, "dtype": RuntimeError}
            raise kinds[wrong.kind](wrong.message)
        found = run(program, *tensors)
        return found[0] if program.is_single(facts) else found

    return function


def _facts(tensor: Any) -> ArrayFacts:
    # NumPy says itself what it calls the tensor's type.
    return ArrayFacts(tuple(tensor.shape), tensor.detach().new_empty(0).numpy().dtype)


@functools.cache
def _functions(torch: Any) -> Callable[..., Any]:
    """What autograd knows of a program: its value, whose derivative is another function, whose derivative is known."""
    function = torch.autograd.Function
    once = torch.autograd.function.once_differentiable

    def arrays(tensors: Sequence[Any], like: Sequence[Any] | None = None) -> list[np.ndarray[Any, Any]]:
        """Tensors as arrays; zeros like those of `like` where there is none."""
        like = tensors if like is None else like
        found = [
            torch.zeros_like(other) if one is None else one.detach().resolve_neg()
            for one, other in zip(tensors, like, strict=True)
        ]
        return [one.numpy() for one in found]

    def tensors(found: Sequence[np.ndarray[Any, Any]], like: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(
            torch.from_numpy(np.asarray(one, order="C")).to(other.dtype) for one, other in zip(found, like, strict=True)
        )

    class ArrayFunctionValue(function):
        @staticmethod
        def forward(ctx: Any, program: ArrayFunction, *inputs: Any) -> Any:
            found = tuple(map(torch.from_numpy, program.value(arrays(inputs))))
            ctx.program = program
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)
            ctx.results = [torch.empty_like(one, device="meta") for one in found]
            return found

        @staticmethod
        def backward(ctx: Any, *seeds: Any) -> Any:
            inputs = ctx.saved_tensors
            return (None, *Pullback.apply(ctx.program, len(inputs), *inputs, *seeds))

        @staticmethod
        def jvp(ctx: Any, _: None, *tangents: Any) -> Any:
            inputs = ctx.saved_tensors
            return tensors(ctx.program.push(arrays(inputs), arrays(tangents, inputs)), ctx.results)

    class Pullback(function):
        @staticmethod
        def forward(ctx: Any, program: ArrayFunction, count: int, *given: Any) -> Any:
            inputs, seeds = given[:count], given[count:]
            ctx.program, ctx.count = program, count
            ctx.save_for_backward(*given)
            return tensors(program.pull(arrays(inputs), arrays(seeds)), inputs)

        @staticmethod
        @once
        def backward(ctx: Any, *tangents: Any) -> Any:
            inputs, seeds = ctx.saved_tensors[: ctx.count], ctx.saved_tensors[ctx.count :]
            pushed, second = ctx.program.second(arrays(inputs), arrays(seeds), arrays(tangents, inputs))
            return (None, None, *tensors(second, inputs), *tensors(pushed, seeds))

    return ArrayFunctionValue.apply
