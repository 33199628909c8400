"""Programs as functions of PyTorch's tensors, under its own checks."""

# ruff: noqa: PLC0415

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.framework_programs import PROGRAMS, Made

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
    with pytest.raises(TypeError, match="takes 1 arrays, not 2"):
        f(good, good)
    with pytest.raises(ValueError, match=r"has shape \(3,\)"):
        f(good[:3])
    with pytest.raises(RuntimeError, match="holds float32"):
        f(good.float())
    with pytest.raises(RuntimeError, match="on meta"):
        f(good.to("meta"))


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
