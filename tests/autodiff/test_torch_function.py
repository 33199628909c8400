"""Programs as functions of PyTorch's tensors, under its own checks."""

# ruff: noqa: PLC0415

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.framework_programs import EACH_MISFIT, PROGRAMS, Call, Made

pytestmark = pytest.mark.torch


@pytest.fixture(params=PROGRAMS)
def made(request: pytest.FixtureRequest) -> Made:
    ti.init(default_fp=ti.f64)
    return PROGRAMS[request.param]()


def tensors(made: Made, *, seed: int = 0) -> list[Any]:
    import torch

    random = np.random.default_rng(seed)
    return [torch.tensor(random.uniform(0.5, 1.5, shape), requires_grad=True) for shape in made.shapes]


def test_pytorchs_own_checks_pass(made: Made) -> None:
    import torch

    f = ti.ad.torch_function(made.f, inputs=made.inputs, outputs=made.outputs)
    inputs = tensors(made)
    assert torch.autograd.gradcheck(f, inputs)
    assert torch.autograd.gradcheck(f, inputs, check_forward_ad=True, check_backward_ad=False)
    assert torch.autograd.gradgradcheck(f, inputs)


def test_calls_may_come_in_any_order(made: Made) -> None:
    """Two modules share a program; backward passes come late, twice, and from other threads."""
    import torch

    f = ti.ad.torch_function(made.f, inputs=made.inputs, outputs=made.outputs)
    g = ti.ad.torch_function(made.f, inputs=made.inputs, outputs=made.outputs)

    def number(run: Any, inputs: list[Any]) -> Any:
        found = run(*inputs)
        return sum(one.cos().sum() for one in (found if isinstance(found, tuple) else (found,)))

    first, second = tensors(made), tensors(made, seed=1)
    wanted = [torch.autograd.grad(number(f, some), some) for some in (first, second)]
    one, two = number(f, first), number(g, second)
    (one * two).backward()
    for some, slopes, other in ((first, wanted[0], two), (second, wanted[1], one)):
        for x, slope in zip(some, slopes, strict=True):
            torch.testing.assert_close(x.grad, slope * other.detach())
    held = number(f, first)
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(torch.autograd.grad(held, first, retain_graph=True)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for slopes in found:
        torch.testing.assert_close(slopes, wanted[0])
    assert len(found) == 3
    with torch.no_grad():
        assert not number(f, first).requires_grad


def test_tensors_are_read_where_they_are_and_results_are_new() -> None:
    import torch

    ti.init(default_fp=ti.f64)

    @ti.kernel
    def shifted(a: ti.types.ndarray(dtype=ti.f32, ndim=1), out: ti.types.ndarray(dtype=ti.f32, ndim=1)):
        for i in a:
            out[i] = a[i] + 1.0

    f = ti.ad.torch_function(shifted, outputs=lambda shape: shape)
    whole = torch.arange(8, dtype=torch.float32)
    with pytest.warns(UserWarning, match="launches copy it"):
        assert f(whole[::2]).tolist() == [1.0, 3.0, 5.0, 7.0]
    result = f(whole)
    again = f(whole)
    assert result.data_ptr() != again.data_ptr() and whole.tolist() == list(range(8))


def test_wrong_arguments_are_pytorchs_errors() -> None:
    import torch

    ti.init(default_fp=ti.f64)
    made = PROGRAMS["fields_that_are_overwritten"]()
    f = ti.ad.torch_function(made.f, inputs=made.inputs, outputs=made.outputs)
    good = torch.ones(4, dtype=torch.float64)
    with pytest.raises(TypeError, match="must be a tensor, not ndarray"):
        f(np.ones(4))
    with pytest.raises(RuntimeError, match="on meta"):
        f(good.to("meta"))
    with pytest.raises(RuntimeError, match=r"argument 0 of run is torch.sparse_coo: pass `tensor.to_dense\(\)`"):
        f(good.to_sparse())


@pytest.mark.parametrize(("name", "call"), EACH_MISFIT)
def test_arguments_that_do_not_fit_are_pytorchs_errors(name: str, call: Call) -> None:
    import torch

    ti.init(default_fp=ti.f64)
    made = PROGRAMS[name]()
    f = ti.ad.torch_function(made.f, inputs=made.inputs, outputs=made.outputs)
    arguments = [torch.ones(shape, dtype=getattr(torch, dtype)) for shape, dtype in call.arguments]
    for one in arguments:
        one.requires_grad_(one.dtype.is_floating_point)
    error = {"count": TypeError, "shape": ValueError, "dtype": RuntimeError}[call.kind]
    with pytest.raises(error, match=call.message) as caught:
        f(*arguments)
    assert type(caught.value) is error


@pytest.mark.parametrize("context", ["no_grad", "inference_mode"])
def test_nothing_is_recorded_where_pytorch_records_nothing(made: Made, context: str) -> None:
    import torch

    f = ti.ad.torch_function(made.f, inputs=made.inputs, outputs=made.outputs)
    inputs = tensors(made)
    recorded = f(*inputs)
    with getattr(torch, context)():
        plain = f(*inputs)
    recorded, plain = ([one] if isinstance(one, torch.Tensor) else one for one in (recorded, plain))
    for one, other in zip(recorded, plain, strict=True):
        assert one.requires_grad and one.grad_fn is not None
        assert not other.requires_grad and other.grad_fn is None
        assert torch.equal(one, other)
    # Tensors that need no gradient record nothing either.
    detached = f(*[one.detach() for one in inputs])
    assert not any(one.requires_grad for one in ([detached] if isinstance(detached, torch.Tensor) else detached))


def test_a_kernels_arrays_are_the_tensors_memory() -> None:
    """What is read is the tensor that was passed, what is written the tensor that comes out; nothing is copied."""
    import torch

    ti.init(default_fp=ti.f64)
    seen: list[tuple[int, int]] = []

    @ti.kernel
    def squared(a: ti.types.ndarray(dtype=ti.f64, ndim=2), out: ti.types.ndarray(dtype=ti.f64, ndim=2)):
        for i, j in a:
            out[i, j] = a[i, j] ** 2

    def run(a: Any, out: Any) -> None:
        if isinstance(a, np.ndarray):
            seen.append((a.ctypes.data, out.ctypes.data))
        squared(a, out)

    f = ti.ad.torch_function(run, outputs=lambda shape: shape)
    whole = torch.arange(12, dtype=torch.float64).reshape(4, 3)
    for given in (whole, whole[1:], torch.nn.Parameter(whole)):
        result = f(given)
        assert seen.pop() == (given.data_ptr(), result.data_ptr()) and not seen
        assert torch.equal(result.detach(), given.detach() ** 2)


def test_a_fields_results_are_not_the_fields_memory() -> None:
    import torch

    ti.init(default_fp=ti.f64)
    made = PROGRAMS["fields_that_are_overwritten"]()
    f = ti.ad.torch_function(made.f, inputs=made.inputs, outputs=made.outputs)
    given = torch.full((4,), 0.5, dtype=torch.float64)
    first, _ = f(given)
    kept = first.clone()
    made.outputs[0].fill(7.0)
    f(given + 1.0)
    assert torch.equal(first, kept) and given.tolist() == [0.5] * 4


@pytest.mark.filterwarnings("ignore:.*launches copy it:UserWarning")
@pytest.mark.parametrize(
    "view",
    {
        "transposed": lambda one: one.T if one.ndim > 1 else one.flip(0),
        "every second": lambda one: one.repeat_interleave(2, 0)[::2] if one.ndim else one,
        "expanded": lambda one: one[:1].expand(one.shape) if one.ndim else one,
        "negative": lambda one: (1j * one).conj().imag,
    }.items(),
    ids=lambda item: item[0],
)
def test_tensors_need_not_be_contiguous(made: Made, view: Any) -> None:
    import torch

    f = ti.ad.torch_function(made.f, inputs=made.inputs, outputs=made.outputs)
    name, turn = view

    def start(one: Any) -> Any:
        return one.detach().T.contiguous().requires_grad_() if name == "transposed" and one.ndim > 1 else one

    def results(inputs: list[Any]) -> list[Any]:
        found = f(*inputs)
        return [found] if isinstance(found, torch.Tensor) else list(found)

    inputs = [start(one) for one in tensors(made)]
    views = [turn(one) for one in inputs]
    for one, other in zip(results(views), results([one.contiguous().resolve_neg() for one in views]), strict=True):
        assert torch.equal(one, other)
    # So need the gradients that come in: those of a transposed result, and of a sum, which are one number.
    weights = [torch.randn(one.T.shape if one.ndim > 1 else one.shape).double() for one in results(views)]

    def number(values: list[Any]) -> Any:
        turned = [one.T if one.ndim > 1 else one for one in values]
        return sum((one * weight).sum() for one, weight in zip(turned, weights, strict=True)) + values[0].sum()

    slopes = torch.autograd.grad(number(results([turn(one) for one in inputs])), inputs)
    wanted = torch.autograd.grad(number(results([turn(one).contiguous().resolve_neg() for one in inputs])), inputs)
    for one, other in zip(slopes, wanted, strict=True):
        torch.testing.assert_close(one, other)


def test_two_modules_share_a_function() -> None:
    """Each with weights of its own, in one network, which learns as it does in PyTorch alone."""
    import torch

    ti.init(default_fp=ti.f64)
    made = PROGRAMS["a_kernel_of_arrays"]()
    f = ti.ad.torch_function(made.f, inputs=made.inputs, outputs=made.outputs)

    def in_pytorch(a: Any, b: Any) -> Any:
        return a @ b, torch.exp(a * b)

    class Layer(torch.nn.Module):
        def __init__(self, run: Any, seed: int) -> None:
            super().__init__()
            self.run = run
            self.weight = torch.nn.Parameter(tensors(made, seed=seed)[0].detach() * 0.1)

        def forward(self, x: Any) -> Any:
            product, exponentials = self.run(self.weight, x)
            return torch.cat([product, exponentials.mean().reshape(1)])

    def learn(run: Any) -> list[Any]:
        network = torch.nn.Sequential(Layer(run, 1), Layer(run, 2))
        optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
        x = torch.linspace(0.5, 1.5, 4, dtype=torch.float64)
        for _ in range(5):
            optimizer.zero_grad()
            (network(x) - 1.0).square().sum().backward()
            optimizer.step()
        return [one.detach() for one in network.parameters()]

    for one, other in zip(learn(f), learn(in_pytorch), strict=True):
        torch.testing.assert_close(one, other)


def work_of(number: int) -> float:
    import torch

    ti.init(default_fp=ti.f64)
    made = PROGRAMS["fields_that_are_overwritten"]()
    f = ti.ad.torch_function(made.f, inputs=made.inputs, outputs=made.outputs)
    x = torch.full((4,), float(number), dtype=torch.float64, requires_grad=True)
    f(x)[1].backward()
    return float(x.grad.sum())


class Simulated:
    """A data set whose elements are simulated."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, number: int) -> float:
        return work_of(number)


def test_workers_of_a_data_loader_simulate() -> None:
    import torch

    wanted = [work_of(number) for number in range(4)]
    loader = torch.utils.data.DataLoader(Simulated(), batch_size=2, num_workers=2)
    assert torch.cat(list(loader)).tolist() == pytest.approx(wanted)


def test_nothing_keeps_the_graph_alive() -> None:
    import torch

    ti.init(default_fp=ti.f64)
    made = PROGRAMS["a_kernel_of_arrays"]()
    f = ti.ad.torch_function(made.f, inputs=made.inputs, outputs=made.outputs)
    inputs = tensors(made)
    f(*inputs)[0].sum().backward()
    gc.collect()
    before = sum(type(one) is torch.Tensor for one in gc.get_objects())
    for _ in range(5):
        f(*inputs)[0].sum().backward()
    gc.collect()
    assert sum(type(one) is torch.Tensor for one in gc.get_objects()) <= before


def test_the_example_learns_to_hold_the_pendulums() -> None:
    from examples.torch_controller import train

    losses = train(iterations=30)
    assert np.mean(losses[-5:]) < 0.4 * np.mean(losses[:5])
