"""The manual's page on GPUs: its cells run, and each message of its table is what a program gets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import tinote as ti
from tests.lang.test_gpu_adversarial import from_text
from tinote.errors import TinoteError
from tinote.runtime import gpu

PAGE = (Path(__file__).parents[2] / "docs" / "gpu.md").read_text(encoding="utf-8")
CELLS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
#: each message, in which "…" stands for what differs, and its hint
MESSAGES = re.findall(r"^\| .* \| `(.*)` \| (.*) \|$", PAGE, re.MULTILINE)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    yield
    ti.init()


def test_its_cells_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(gpu.SOFTWARE_VARIABLE, "1")
    # Kernels are read from a file, as a notebook's are from its cells.
    program = tmp_path / "cells.py"
    program.write_text("\n\n".join(CELLS), encoding="utf-8")
    names: dict[str, Any] = {"__name__": "cells"}
    exec(compile(program.read_text(encoding="utf-8"), str(program), "exec"), names)
    assert len(CELLS) == 3 and names["y"].shape == (1000,)


def filled(dtype: Any, shape: int) -> Any:
    x = ti.field(dtype, shape=shape)

    @ti.kernel
    def fill():
        for i in x:
            x[i] = 1.0

    return fill


def without_f64(monkeypatch: pytest.MonkeyPatch, device: gpu.Device) -> None:
    monkeypatch.setattr(device, "info", device.info._replace(f64=False))
    filled(ti.f64, 4)()


def machine_code(_monkeypatch: pytest.MonkeyPatch, _device: gpu.Device) -> None:
    fill = filled(ti.f32, 4)
    fill()
    fill.llvm()


def more_than_it_binds(monkeypatch: pytest.MonkeyPatch, device: gpu.Device) -> None:
    monkeypatch.setattr(device, "largest", device.arena.size)
    filled(ti.f32, device.arena.size // 4 + 1)()


def full(monkeypatch: pytest.MonkeyPatch, device: gpu.Device) -> None:
    def none(**_: Any) -> Any:
        raise RuntimeError("Not enough memory left")

    monkeypatch.setattr(device.device, "create_buffer", none)
    filled(ti.f32, 4)()


def long_loop(_monkeypatch: pytest.MonkeyPatch, _device: gpu.Device) -> None:
    x = ti.field(ti.i32, shape=())

    @ti.kernel
    def long(n: ti.i32) -> ti.i32:
        k = 0
        while k < n:
            k += 1
        x[None] = k
        return k

    long(100_000)


def deep_branches(_monkeypatch: pytest.MonkeyPatch, _device: gpu.Device) -> None:
    branches = [f"{' ' * (k + 2)}if x[i] > {k}:\n{' ' * (k + 3)}x[i] += 1" for k in range(70)]
    text = "\n".join(["@ti.kernel", "def nest():", " for i in x:", *branches])
    with TemporaryDirectory() as folder:
        from_text(Path(folder), text, x=ti.field(ti.i32, shape=4))["nest"]()


def large_arrays(_monkeypatch: pytest.MonkeyPatch, _device: gpu.Device) -> None:
    x = ti.field(ti.f32, shape=4)

    @ti.kernel
    def hold():
        for i in x:
            for k in ti.static(range(9)):
                m = ti.Matrix.zero(ti.f32, 128, 128)
                m[i, k] = i
                x[i] += m[k, i]

    hold()


def too_many(_monkeypatch: pytest.MonkeyPatch, _device: gpu.Device) -> None:
    x = ti.field(ti.i32, shape=())

    @ti.kernel
    def count(n: ti.i64):
        for _ in range(n):
            x[None] += 1

    count(1 << 32)
    ti.sync()


def lost(_monkeypatch: pytest.MonkeyPatch, device: gpu.Device) -> None:
    fill = filled(ti.f32, 4)
    fill()
    device.device.destroy()
    fill()
    ti.sync()


SITUATIONS = (
    without_f64,
    machine_code,
    more_than_it_binds,
    full,
    long_loop,
    deep_branches,
    large_arrays,
    too_many,
    lost,
)


def test_the_table_has_a_row_for_each_situation() -> None:
    assert len(MESSAGES) == len(SITUATIONS)


@pytest.mark.parametrize(("row", "situation"), [*zip(MESSAGES, SITUATIONS, strict=True)])
def test_it_says_what_the_table_says(
    row: tuple[str, str], situation: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    ti.init(arch=ti.gpu, software_gpu=True)
    with pytest.raises(TinoteError) as raised:
        situation(monkeypatch, gpu.open_device(True))
    message, hint = row
    assert re.fullmatch(re.escape(message).replace("…", ".+"), raised.value.message), raised.value.message
    assert raised.value.hint == hint.replace("`", "")
