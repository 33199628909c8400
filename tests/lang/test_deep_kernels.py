"""Long chains and deep nests: they compile, or are refused as nested too deeply; never a fault of the compiler's."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import KernelSyntaxError

LOOP = "    for i in x:\n"
LONG = {
    "and": LOOP + f"        if {' and '.join([f'x[i] != {k}' for k in range(1000)])}:\n            y[i] = 1.0\n",
    "or": LOOP + f"        if {' or '.join([f'x[i] == {-k}' for k in range(1, 1000)])}:\n            y[i] = 1.0\n",
    "and of what may fail": LOOP
    + f"        if {' and '.join([f'x[(x[i] + 12) % 8] != {k}' for k in range(300)])}:\n            y[i] = 1.0\n",
    "conditions in a variable": LOOP
    + "        t = x[i] < 0\n"
    + "".join([f"        t = t and x[i] != {k}\n" for k in range(600)])
    + "        if t:\n            y[i] = 1.0\n",
    "sums": LOOP
    + "        s = -1.0\n"
    + "        s = s + 0.5\n" * 1000
    + "        y[i] = (s + x[i]) * 0.0 + (x[i] < 0)\n",
}
"""Each sets `y` to 1 where `x` is negative."""

DEEP = {
    "sum in one expression": LOOP + f"        y[i] = {' + '.join(['y[i]'] * 2000)}\n",
    "chain of comparisons": LOOP + f"        if {' <= '.join(['x[i]'] * 1000)}:\n            y[i] = 1.0\n",
    "elif": LOOP
    + "        if x[i] == 0:\n            y[i] = 1.0\n"
    + "".join([f"        elif x[i] == {k}:\n            y[i] = {k}.0\n" for k in range(1, 1000)]),
    "not": LOOP + f"        if {'not ' * 800}x[i] > 0:\n            y[i] = 1.0\n",
    "indices": LOOP + f"        y[i] = 1.0 * {'x[' * 150}i{'] ' * 150}\n",
    "integers in a variable": LOOP
    + "        s = i\n"
    + "".join([f"        s = s + x[{k % 8}]\n" for k in range(1500)])
    + "        y[s % 8] = 1.0\n",
    "branches": LOOP
    + "".join([f"        {' ' * k}if x[i] != {k + 1}:\n" for k in range(95)])
    + " " * 103
    + "    y[i] = 1.0\n",
}


def kernel_of(text: str, name: str) -> tuple[Any, dict[str, Any]]:
    """The kernel with this body, and its fields: eight numbers on either side of zero, and zeros."""
    fields = {"x": ti.field(ti.i32, shape=8), "y": ti.field(ti.f32, shape=8, needs_grad=True)}
    fields["x"].from_numpy(np.arange(-4, 4, dtype=np.int32))
    file = f"<{name}>"
    text = f"@ti.kernel\ndef k():\n{text}"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space = {"ti": ti, **fields}
    exec(compile(text, file, "exec"), space)
    return space["k"], fields


@pytest.mark.parametrize("arch", [ti.cpu, ti.python], ids=["cpu", "python"])
@pytest.mark.parametrize("name", LONG)
def test_long_chains_compile(name: str, arch: Any) -> None:
    ti.init(arch=arch)
    kernel, fields = kernel_of(LONG[name], name)
    try:
        kernel()
    except KernelSyntaxError as error:
        assert arch is ti.python, error
        assert "nested too deeply" in str(error)
    else:
        assert fields["y"].to_numpy().tolist() == [1.0] * 4 + [0.0] * 4


@pytest.mark.parametrize("gradient", [False, True], ids=["primal", "gradient"])
@pytest.mark.parametrize("name", DEEP)
def test_deep_nests_compile_or_are_refused(name: str, gradient: bool) -> None:
    ti.init()
    kernel, _ = kernel_of(DEEP[name], name)
    try:
        (kernel.grad if gradient else kernel)()
    except KernelSyntaxError as error:
        assert "nested too deeply" in error.message
        assert "split long expressions and deep nests" in str(error)
    except ti.TaichiRuntimeError:
        pass  # an index out of range: it was compiled
