"""Sweeps in processes of this machine: tables, seeds, errors, stores, processes that die."""

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tinote as ti
from tinote.errors import SweepError

x: Any = None
calls: list[float] = []


@ti.kernel
def shake(k: ti.f32):
    for i in x:
        x[i] += k * ti.Vector([ti.random(), ti.random()])


@ti.kernel
def measure() -> ti.f32:
    found = 0.0
    for i in x:
        found += x[i].norm()
    return found


def simulate(k: float, n: int = 3) -> dict[str, Any]:
    for _ in range(n):
        shake(k)
    calls.append(k)
    return {"length": measure(), "first": x[0], "python": np.random.rand(), "count": len(calls)}


@pytest.fixture(autouse=True)
def _fields() -> Any:
    global x
    x = ti.Vector.field(2, ti.f32, shape=64)
    x.fill(1)
    calls.clear()


def table(**options: Any) -> Any:
    return ti.sweep(simulate, {"k": [0.5, 1.0, 1.5], "n": [1, 2]}, progress=False, **options)


def test_a_table() -> None:
    found = table()
    assert dict(found.sizes) == {"k": 3, "n": 2, "first_0": 2}
    assert (found["error"] == "").all() and (found["seconds"] > 0).all() and (found["count"] == 1).all()
    assert found["length"].sel(k=1.5, n=2) > found["length"].sel(k=0.5, n=1)
    assert len(np.unique(found["python"])) == 6 and (x.to_numpy() == 1).all()
    frame = found.drop_dims("first_0").to_dataframe()
    assert list(frame.index.names) == ["k", "n"] and len(frame) == 6


def test_the_same_whatever_the_schedule() -> None:
    wanted = table(workers=1).drop_vars("seconds")
    for workers in (2, 8):
        assert table(workers=workers).drop_vars("seconds").identical(wanted)
    rows = [{"k": k, "n": n} for k in (0.5, 1.0, 1.5) for n in (1, 2)]
    shuffled = [rows[i] for i in (4, 1, 5, 0, 3, 2)]
    found = ti.sweep(simulate, shuffled, workers=3).set_index(point=["k", "n"]).unstack("point")
    found = found.transpose("k", "n", "first_0")
    for name in ("length", "first", "python", "seed"):
        assert (found[name].values == wanted[name].values).all()
    assert not (table(seed=1)["length"] == wanted["length"]).any()


def test_points_by_frames_lists_and_zip() -> None:
    def product(a: float, b: float) -> tuple[float, float]:
        return a * b, a + b

    expected = [3.0, 8.0]
    for over, zipped in (
        ({"a": [1, 2], "b": [3, 4]}, True),
        ([{"a": 1, "b": 3}, {"a": 2, "b": 4}], False),
        (pd.DataFrame({"a": [1, 2], "b": [3, 4]}), False),
    ):
        found = ti.sweep(product, over, zip=zipped, workers=1)
        assert found["result_0"].values.tolist() == expected and found["a"].values.tolist() == [1, 2]
    arrays = ti.sweep(lambda start: start * 2, {"start": [np.ones(3), np.zeros(3)]}, workers=1)
    assert arrays["result"].values.tolist() == [[2, 2, 2], [0, 0, 0]] and arrays["start"].values.tolist() == [0, 1]
    named = ti.sweep(lambda seed: seed % 7, [{}, {}])["seed"].values
    assert named[0] != named[1]


def test_what_cannot_be_swept() -> None:
    def f(a: float) -> float:
        return a

    for over, said in (
        ({}, "needs parameters"),
        ({"a": 3}, "are not a list"),
        ({"b": [1]}, "cannot be called with the parameters b"),
        (3, "a dictionary of lists"),
        ([{"a": 1}, {}], "has no value of 'a'"),
    ):
        with pytest.raises(SweepError, match=said):
            ti.sweep(f, over)
    with pytest.raises(SweepError, match="need as many values"):
        ti.sweep(f, {"a": [1, 2], "b": [1]}, zip=True)
    with pytest.raises(SweepError, match="positive integer"):
        ti.sweep(f, {"a": [1]}, workers=0)
    with pytest.raises(SweepError, match="where is None"):
        ti.sweep(f, {"a": [1]}, where=3)
    with pytest.raises(SweepError, match="errors is"):
        ti.sweep(f, {"a": [1]}, errors="ignore")


def test_errors_are_kept() -> None:
    @ti.kernel
    def at(i: ti.i32) -> ti.f32:
        return x[i][0]

    with pytest.warns(UserWarning, match=r"1 of 3 points have failed.*'i': 99"):
        found = ti.sweep(lambda i: at(i), {"i": [0, 99, 2]})
    assert found["result"].isnull().values.tolist() == [False, True, False]
    message = str(found["error"].values[1])
    assert "index 99 is out of bounds" in message and "return x[i][0]" in message
    with pytest.raises(SweepError, match="'i': 99"):
        ti.sweep(lambda i: at(i), {"i": [0, 99, 2]}, errors="raise")

    def different(n: int) -> Any:
        return np.zeros(n) if n < 4 else "text"

    with pytest.warns(UserWarning, match="2 of 4 points"):
        found = ti.sweep(different, {"n": [2, 3, 2, 4]}, workers=1)
    assert "has shape" in str(found["error"].values[1]) and "which is no number" in str(found["error"].values[3])


def test_processes_that_die(tmp_path: Path) -> None:
    def dies(k: int) -> int:
        marks = len(list(tmp_path.glob(f"{k}-*")))
        (tmp_path / f"{k}-{marks}").touch()
        if k == 3 or (k == 1 and marks < 2):
            os.kill(os.getpid(), signal.SIGKILL)
        return k * k

    with pytest.warns(UserWarning, match=r"1 of 6 .*its process ended by SIGKILL, 3 times"):
        found = ti.sweep(dies, {"k": range(6)}, workers=2)
    assert found["result"].fillna(-1).values.tolist() == [0, 1, 4, -1, 16, 25]
    assert len(list(tmp_path.glob("3-*"))) == 3 and len(list(tmp_path.glob("1-*"))) == 3


def test_a_store_is_filled_and_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "run.zarr"
    (tmp_path / "fails").touch()

    def slow(k: float) -> dict[str, Any]:
        (tmp_path / f"ran {k} {time.time_ns()}").touch()
        if k == 2 and (tmp_path / "fails").exists():
            raise ValueError("not yet")
        return {"square": k * k, "row": np.full(3, k), "whole": int(k)}

    with pytest.warns(UserWarning, match="not yet"):
        first = ti.sweep(slow, {"k": [1.0, 2.0, 3.0]}, store=folder)
    assert np.isnan(first["square"].values[1]) and first["whole"].dtype.kind == "f"
    (tmp_path / "fails").unlink()
    second = ti.sweep(slow, {"k": [1.0, 2.0, 3.0]}, store=folder)
    assert second["square"].values.tolist() == [1, 4, 9] and second["whole"].values.tolist() == [1, 2, 3]
    assert [len(list(tmp_path.glob(f"ran {k}*"))) for k in (1.0, 2.0, 3.0)] == [1, 2, 1]
    third = ti.sweep(slow, {"k": [1.0, 2.0, 3.0]}, store=folder)
    assert third.identical(second)
    for path in folder.rglob("*"):
        assert path.is_dir() or path.name == "zarr.json" or path.parent.name == "c" or "c" in path.parts
    assert json.loads((folder / "zarr.json").read_text())["attributes"]["versions"]["numpy"] == np.__version__
    with pytest.raises(SweepError, match="is another one: its points are others"):
        ti.sweep(slow, {"k": [1.0, 2.0]}, store=folder)

    def other(k: float) -> float:
        return k

    with pytest.raises(SweepError, match="is another one"):
        ti.sweep(other, {"k": [1.0, 2.0, 3.0]}, store=folder)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "text").write_text("mine")
    with pytest.raises(SweepError, match="is no store"):
        ti.sweep(slow, {"k": [1.0]}, store=tmp_path / "taken")


SCRIPT = """
import sys, time, tinote as ti
x = ti.field(ti.f32, 8)

@ti.kernel
def step(k: ti.f32) -> ti.f32:
    for i in x:
        x[i] += k
    return x[0]

def run(k):
    if k >= 4:
        time.sleep(600)
    return step(k)

print("begin", flush=True)
try:
    ti.sweep(run, {"k": range(8)}, store=sys.argv[1], workers=2, progress=False)
except KeyboardInterrupt as error:
    print("ended", time.time(), flush=True)
    print(sorted(error.results["result"].dropna("k").values.tolist()), error, flush=True)
"""


def test_a_script_is_interrupted_and_keeps_what_it_has(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    store = tmp_path / "store"
    child = subprocess.Popen([sys.executable, str(script), str(store)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    deadline = time.monotonic() + 240
    while not (store / "result").exists() and time.monotonic() < deadline and child.poll() is None:
        time.sleep(0.1)
    sent = time.time()
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=120)
    lines = out.splitlines()
    assert lines[0] == "begin" and lines[1].startswith("ended") and len(lines) == 3
    assert float(lines[1].split()[1]) - sent < 5  # a second, on a machine that has nothing else to do
    assert "the sweep was interrupted" in lines[2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import zarr  # noqa: PLC0415

        held = zarr.open_group(store, mode="r")["state"][:4]
    assert (held == 1).sum() == len(json.loads(lines[2].partition("]")[0] + "]"))


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(SweepError, match="a sweep needs xarray, which is not installed"):
        ti.sweep(lambda k: k, {"k": [1]})
