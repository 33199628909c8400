"""`ti.loop_config` and the other advice about loops."""

from typing import Any

import pytest

import tinote as ti
from tinote.errors import CompilationError


def test_serialised_loops_run_in_order() -> None:
    order = ti.field(ti.i32, shape=100)

    @ti.kernel
    def run() -> ti.i32:
        s = 0
        ti.loop_config(serialize=True)
        for i in range(10):
            if i == 5:
                break
            s = s * 2 + i
        ti.loop_config(parallelize=1)
        for i in range(10):
            s = (s * 7 + i) % 10_007
        n = 0
        ti.loop_config(serialize=True)
        for i in order:
            order[i] = n
            n += 1  # noqa: SIM113
        return s

    expected = 26
    for i in range(10):
        expected = (expected * 7 + i) % 10_007
    assert run() == expected
    assert order.to_numpy().tolist() == list(range(100))


def test_other_options_change_nothing() -> None:
    x = ti.field(ti.i32, shape=50)

    @ti.kernel
    def run():
        ti.loop_config(block_dim=64, parallelize=8)
        for i in range(50):
            x[i] = i
        ti.block_local(x)
        ti.loop_config(block_dim_adaptive=False)
        for i in x:
            ti.no_activate(x)
            x[ti.loop_unique(i, covers=[x])] += 1

    run()
    assert x.to_numpy().tolist() == list(range(1, 51))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"block_dim": -3}, "`block_dim` must be a positive integer"),
        ({"parallelize": 2.5}, "`parallelize` must be a positive integer"),
        ({"vectorise": True}, "has no option `vectorise`"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    @ti.kernel
    def run():
        ti.loop_config(**options)
        for _ in range(3):
            pass

    with pytest.raises(CompilationError, match=message):
        run()
