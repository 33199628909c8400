"""A controller that PyTorch trains through a simulation of tinote: it holds pendulums upright.

    pip install torch
    python examples/torch_controller.py

A small network reads angle and speed of each pendulum and gives a torque. Each step is a kernel, and a node of
PyTorch's graph: the loss of 200 steps is differentiated through all of them.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any

from tqdm import tqdm

import tinote as ti

__all__ = ["train"]

STEPS, DT = 200, 0.03
STRONGEST = 2.0  # of the torque that holds a pendulum level


@ti.kernel
def swing(
    state: ti.types.ndarray(dtype=ti.f64, ndim=2),
    torque: ti.types.ndarray(dtype=ti.f64, ndim=1),
    after: ti.types.ndarray(dtype=ti.f64, ndim=2),
):
    for i in range(state.shape[0]):
        speed = state[i, 1] + DT * (ti.sin(state[i, 0]) + torque[i] - 0.05 * state[i, 1])
        after[i, 0] = state[i, 0] + DT * speed
        after[i, 1] = speed


def train(iterations: int = 30, pendulums: int = 16, seed: int = 0) -> list[float]:
    """The loss after each iteration: how far from upright (angle 0) the pendulums are in the second half, on average,
    as 1 − cos of the angle.
    """
    import torch  # noqa: PLC0415

    ti.init(arch=ti.cpu)
    torch.manual_seed(seed)
    step: Any = ti.ad.torch_function(swing, outputs=lambda state, torque: state)
    policy = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1), torch.nn.Tanh())
    policy = policy.double()
    optimiser = torch.optim.Adam(policy.parameters(), lr=3e-2)
    losses: list[float] = []
    for _ in tqdm(range(iterations), "training", disable=None, leave=False):
        state = 0.2 * torch.randn(pendulums, 2, dtype=torch.float64)
        loss = torch.zeros((), dtype=torch.float64)
        for k in range(STEPS):
            angle, speed = state.T
            torque = STRONGEST * policy(torch.stack([angle.cos(), angle.sin(), speed], 1))[:, 0]
            state = step(state, torque)
            if k >= STEPS // 2:
                loss = loss + (1 - state[:, 0].cos()).mean() / (STEPS // 2)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimiser.step()
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    if missing := [name for name in ("torch",) if find_spec(name) is None]:
        sys.exit(f"this example needs libraries that are not installed: pip install {' '.join(missing)}")
    print("training a network that holds pendulums upright …", flush=True)
    for number, one in enumerate(train()):
        print(f"{number:3d}  {one:.4f}")
