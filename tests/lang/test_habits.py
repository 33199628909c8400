"""Attributes that other libraries have taught: what to do here stands in the message."""

from __future__ import annotations

from typing import Any

import pytest

import tinote as ti


@pytest.mark.parametrize(
    ("owner", "name", "help"),
    [
        ("ti", "grad", "it is `ti.ad.grad`"),
        ("ti", "value_and_grad", "it is `ti.ad.value_and_grad`"),
        ("ti", "vec3", "it is `ti.math.vec3`"),
        ("ti", "jit", "`@ti.kernel`"),
        ("ti", "njit", "`@ti.kernel`"),
        ("ti", "vmap", "it is `ti.ad.vmap`"),
        ("ti", "jacrev", "`ti.ad.jacobian`"),
        ("ti", "zeros", "`ti.field("),
        ("ti", "tensor", "`ti.field("),
        ("ti", "no_such_thing", ""),
        ("field", "backward", "ti.ad.Tape(loss)"),
        ("field", "requires_grad_", "needs_grad=True"),
        ("field", "zero_", "`x.grad.fill(0)`"),
        ("field", "detach", "`ti.stop_gradient"),
        ("field", "sum", "`x.to_numpy()`"),
        ("field", "numpy", "did you mean 'to_numpy'?"),
        ("field", "gard", "did you mean 'grad'?"),
        ("kernel", "backward", "ti.ad.Tape(loss)"),
        ("kernel", "gard", "did you mean 'grad'?"),
        ("method", "backward", "ti.ad.Tape(loss)"),
    ],
)
def test_what_to_do_here(owner: str, name: str, help: str) -> None:
    ti.init()

    class Solver:
        @ti.kernel
        def step(self):
            pass

    @ti.kernel
    def step():
        pass

    owners: dict[str, Any] = {"ti": ti, "field": ti.field(ti.f32, shape=3), "kernel": step, "method": Solver().step}
    with pytest.raises(AttributeError, match=rf"has no attribute '{name}'") as error:
        getattr(owners[owner], name)
    after = str(error.value).partition(f"'{name}'")[2]
    assert help in after and bool(help) == bool(after)
