"""Sweeps in processes of this machine: tables, seeds, errors, stores, processes that die."""

import json
import os
import random
import shutil
import signal
import sys
import threading
import time
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tinote as ti
from tests.sweeps.interrupts import STUCK, interrupted
from tinote.errors import SerializationError, SweepError
from tinote.lang.sweeps.runs import tabled
from tinote.source import Span

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
        ({"a": np.array(3)}, "are not a list"),
        ({"b": [1]}, "cannot be called with the parameters b"),
        (3, "a dictionary of lists"),
        ([{"a": 1}, {}], "has no value of 'a'"),
    ):
        with pytest.raises(SweepError, match=said):
            ti.sweep(f, over)
    with pytest.raises(SweepError, match="need the same number of values"):
        ti.sweep(f, {"a": [1, 2], "b": [1]}, zip=True)
    with pytest.raises(SweepError, match="positive integer"):
        ti.sweep(f, {"a": [1]}, workers=0)
    with pytest.raises(SweepError, match="where is None"):
        ti.sweep(f, {"a": [1]}, where=3)
    with pytest.raises(SweepError, match="errors is"):
        ti.sweep(f, {"a": [1]}, errors="ignore")
    with pytest.raises(SweepError, match='direction is "minimize" or "maximize"'):
        ti.sweep(f, {"a": [1]}, best="result", direction="up")
    with pytest.raises(SweepError, match="which `best` names"):
        ti.sweep(f, {"a": [1]}, direction="maximize")


def test_the_largest_is_best_where_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str | None] = []
    monkeypatch.setattr("tinote.lang.sweeps.sweep.watcher_of", lambda table, name, best: asked.append(best))
    for options in ({}, {"best": "result"}, {"best": "result", "direction": "maximize"}):
        ti.sweep(lambda a: a, {"a": [1]}, workers=1, **options)
    with pytest.deprecated_call(match='is now best="result", direction="maximize"'):
        ti.sweep(lambda a: a, {"a": [1]}, workers=1, best="-result")
    assert asked == [None, "result", "-result", "-result"]


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
    assert "has shape" in str(found["error"].values[1]) and "which is neither a number" in str(found["error"].values[3])


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
    with pytest.raises(SweepError, match="is another one: 1 of its 3 points are not among the 2"):
        ti.sweep(slow, {"k": [1.0, 2.0]}, store=folder)

    def other(k: float) -> float:
        return k

    with pytest.raises(SweepError, match="is another one: its function is 'slow', not 'other'"):
        ti.sweep(other, {"k": [1.0, 2.0, 3.0]}, store=folder)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "text").write_text("mine")
    with pytest.raises(SweepError, match="is not a store"):
        ti.sweep(slow, {"k": [1.0]}, store=tmp_path / "taken")


def test_a_store_grows(tmp_path: Path) -> None:
    """More values, another order, points as a list: what has run does not run again."""
    store, ran = tmp_path / "run.zarr", tmp_path / "ran"

    def run(k: int, name: str) -> dict[str, Any]:
        with open(ran, "a") as file:
            file.write(f"{k}{name} ")
        if k == 5 and len(ran.read_text()) < 24:
            raise ValueError("not yet")
        return {"row": np.full(2, 10 * k + len(name)), "whole": k}

    def swept(over: Any) -> Any:
        return ti.sweep(run, over, store=store, workers=1, progress=False)

    swept({"k": [2, 4], "name": ["a", "bb"]})
    with pytest.warns(UserWarning, match="2 of 9 points have failed"):
        grown = swept({"k": [5, 2, 4], "name": ["bb", "ccc", "a"]})
    assert sorted(ran.read_text().split()) == sorted(["2a", "2bb", "4a", "4bb", "2ccc", "4ccc", "5a", "5bb", "5ccc"])
    assert grown["row"].sel(k=2)[:, 0].values.tolist() == [22, 23, 21] and grown["whole"].sel(k=4, name="a") == 4
    points = [{"k": k, "name": name} for name in ("a", "bb", "ccc", "dddd") for k in (2, 4, 5)]
    listed = swept(points)
    assert listed["row"].values[:, 1].tolist() == [10 * point["k"] + len(point["name"]) for point in points]
    assert sorted(ran.read_text().split()[9:]) == ["2dddd", "4dddd", "5bb", "5ccc", "5dddd"]
    assert swept(points).identical(listed) and len(ran.read_text().split()) == 14
    # Everything ended between the two names that a store has while it is laid out anew.
    store.rename(tmp_path / "run.zarr.before")
    assert swept(points).identical(listed) and len(ran.read_text().split()) == 14
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ran", "run.zarr"]
    with pytest.raises(SweepError, match="12 of its 12 points are not among the 1"):
        swept([{"k": 2, "name": "other"}])


def test_a_script_is_interrupted_and_keeps_what_it_has(tmp_path: Path) -> None:
    seconds, done = interrupted(tmp_path, "workers=2")
    assert seconds < 1
    assert done and set(done) <= set(range(STUCK))


def test_an_interrupt_before_the_first_point_keeps_what_a_store_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(k: int) -> int:
        if k > 1 and not (tmp_path / "whole").exists():
            raise ValueError("not yet")
        return k * k

    with pytest.warns(UserWarning, match="2 of 4"):
        ti.sweep(half, {"k": range(4)}, store=tmp_path / "store", workers=1)

    def interrupt(*_: Any) -> Any:
        raise KeyboardInterrupt

    (tmp_path / "whole").touch()
    with monkeypatch.context() as patch:
        patch.setattr("tinote.lang.sweeps.sweep.Processes", interrupt)
        with pytest.raises(KeyboardInterrupt, match="2 of 4 points are done") as caught:
            ti.sweep(half, {"k": range(4)}, store=tmp_path / "store", workers=1)
    assert caught.value.results["result"].values[:2].tolist() == [0, 1]  # type: ignore[attr-defined]
    found = ti.sweep(half, {"k": range(4)}, store=tmp_path / "store", workers=1)
    assert found["result"].values.tolist() == [0, 1, 4, 9]


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(SweepError, match="a sweep needs xarray, which is not installed"):
        ti.sweep(lambda k: k, {"k": [1]})


class Colour(Enum):
    """A class that a process which runs points has to get by value where it is a script's."""

    RED = 1
    BLUE = 2


def test_arguments_of_all_kinds() -> None:
    def reported(value: Any) -> float:
        return float(len(str(value)))

    local = Enum("local", ["ONE"])
    values = [None, (1, 2), "a", np.zeros(2), {"a": 1}, Colour.RED, local.ONE, lambda: 1, ti.Vector([1.0]), Path("a")]
    found = ti.sweep(
        reported, {"value": [*values, 1j, 2**70, float("nan"), np.datetime64("2020-01-01", "ns")]}, workers=1
    )
    assert (found["error"] == "").all() and found["value"].values.tolist() == list(range(14))
    assert found["result"].values[-1] == len("2020-01-01T00:00:00.000000000")
    large = ti.sweep(reported, {"value": [2**70, 1]}, workers=1)
    assert large["result"].values.tolist() == [22, 1]
    with pytest.raises(SerializationError, match="cannot be sent to another process"):
        ti.sweep(reported, {"value": [threading.Lock()]}, workers=1)


def test_parameters_and_results_that_have_names_of_the_table() -> None:
    found = ti.sweep(lambda k, seed: k * seed, {"k": [1, 2], "seed": range(3)}, workers=1, seed=np.int64(1))
    assert found["result"].values.tolist() == [[0, 1, 2], [0, 2, 4]] and found["seed"].values.tolist() == [0, 1, 2]
    assert found["point_seed"].dims == ("k", "seed") and len(np.unique(found["point_seed"])) == 6
    for name in ("seconds", "error", "state", "point_seed"):
        with pytest.raises(SweepError, match=f"cannot be called '{name}'"):
            ti.sweep(lambda **given: 1, {name: [1]})
    for result, said in (({"a": [1, 2], "a_0": 1}, "has an axis 'a_0'"), ({"": 1}, "has the name"), ({"k": 1}, "has")):
        with pytest.warns(UserWarning, match="1 of 1"):
            failed = ti.sweep(lambda k, result=result: result, {"k": [1]}, workers=1)
        assert said in str(failed["error"].values[0])


def test_stores_that_cannot_be() -> None:
    for store in (3, "/proc/nowhere/run.zarr"):
        with pytest.raises(SweepError, match="cannot be the store"):
            ti.sweep(lambda k: k, {"k": [1]}, store=store)


def test_a_store_takes_all_names(tmp_path: Path) -> None:
    names = ["a/b", "..", "__c", "%", "d e"]

    def run(k: str, seed: int) -> dict[str, int]:
        return {name: n + len(k) for n, name in enumerate(names)}

    over = {"k": ["x", "yy"], "seed": [0]}
    first = ti.sweep(run, over, store=tmp_path / "store", workers=1)
    second = ti.sweep(run, over, store=tmp_path / "store", workers=1)
    assert second.identical(first) and first["a/b"].values.tolist() == [[1], [2]] and first["%"].values[1, 0] == 5


def _damages() -> list[tuple[str, Any]]:
    """What becomes of a file: of its bytes, or of the file."""
    whole = [
        ("half of it", lambda data, draw: data[: len(data) // 2]),
        ("all but its last byte", lambda data, draw: data[:-1]),
        ("nothing", lambda data, draw: b""),
        ("zeros", lambda data, draw: bytes(len(data))),
        ("inverted", lambda data, draw: bytes(255 - byte for byte in data)),
        ("gone", lambda data, draw: None),
    ]

    def with_a_bit_flipped(data: bytes, draw: random.Random) -> bytes:
        at = draw.randrange(len(data))
        return data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :]

    return [*whole, *[(f"a bit of it is another, {n}", with_a_bit_flipped) for n in range(3)]]


@pytest.mark.filterwarnings("ignore:Object at .* is not recognized as a component of a Zarr hierarchy")
def test_a_damaged_store_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    """Every file of it, whatever has happened to that; or the table is right all the same."""
    draw = random.Random(5)
    whole, store = tmp_path / "whole", tmp_path / "store"
    over = {"a": [float(n) for n in range(300)], "name": ["x"]}  # two chunks

    def run(a: float, name: str) -> dict[str, Any]:
        return {"t": a * 3, "row": np.arange(3.0) * a, "zero": np.zeros(2), "none": np.zeros(0), "n": int(a)}

    wanted = ti.sweep(run, over, store=whole, progress=False, workers=1)
    files = sorted(path.relative_to(whole) for path in whole.rglob("*") if path.is_file())
    assert len(files) > 20
    content = {file: (whole / file).read_bytes() for file in files}
    shutil.copytree(whole, store)
    refused = 0
    for file in files:
        for what, damage in _damages():
            data = damage(content[file], draw)
            if data is None:
                (store / file).unlink()
            else:
                (store / file).write_bytes(data)
            try:
                found = ti.sweep(run, over, store=store, progress=False, workers=1)
            except SweepError as error:
                assert str(store / file) in error.message, (file, what)
                assert error.span.file == __file__
                refused += 1
            else:
                assert found.identical(wanted), (file, what)
            (store / file).write_bytes(content[file])
        left = {path.relative_to(store): path.read_bytes() for path in store.rglob("*") if path.is_file()}
        assert left == content  # the refusals have changed nothing
    assert refused == len(files) * len(_damages())
    for folder in sorted(path.relative_to(whole) for path in whole.iterdir() if path.is_dir()):
        shutil.rmtree(store)
        shutil.copytree(whole, store)
        shutil.rmtree(store / folder)
        with pytest.raises(SweepError, match=f"{store / folder / 'zarr.json'} is missing"):
            ti.sweep(run, over, store=store, progress=False, workers=1)


def test_a_result_that_needs_a_wider_type_keeps_the_store(tmp_path: Path) -> None:
    def run(k: int) -> Any:
        time.sleep(0.6)  # that results are written apart
        return k if k < 3 else k + 0.5

    wanted = ti.sweep(run, {"k": range(5)}, store=tmp_path / "store", progress=False, workers=1)
    assert wanted["result"].values.tolist() == [0, 1, 2, 3.5, 4.5]
    assert ti.sweep(run, {"k": range(5)}, store=tmp_path / "store", progress=False, workers=1).identical(wanted)
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


@pytest.mark.parametrize(
    "value, wanted",
    [
        (np.ma.masked, np.nan),
        (np.ma.array([1.0, 5.0], mask=[False, True]), [1, np.nan]),
        (np.ma.array([1, 5], mask=[False, True]), [1, np.nan]),
        (np.ma.array([1j, 5], mask=[False, True]), [1j, complex(np.nan)]),
        (np.ma.array([1, 5]), [1, 5]),
        ([np.ma.array([1, 5], mask=[False, True])], "a list with masked elements"),
        ([[1.0, np.ma.masked]], "a list with masked elements"),
        (np.ma.array([2**60 + 1, 5], mask=[False, True]), "integers that no float is equal to"),
        ("text", "which is neither a number"),
        ([[1], [1, 2]], "is not an array of numbers"),
        (2**70, "which is neither a number"),
        (np.longdouble(1), "which is neither a number"),
        (np.array([1, None]), "which is neither a number"),
        (np.datetime64("2020-01-01"), "which is neither a number"),
        (np.zeros(2, [("a", "f4")]), "which is neither a number"),
        ({1: 2.0, "1": 3.0}, "several results of the name '1'"),
    ],
)
def test_what_a_table_cannot_hold(value: Any, wanted: Any) -> None:
    """Masked elements are missing, as NaN; others are refused with the line of the function."""

    def run(k: int) -> Any:
        return value

    where = Span(__file__, run.__code__.co_firstlineno)
    if isinstance(wanted, str):
        with pytest.raises(SweepError, match=wanted) as caught:
            tabled(run(1), where)
        assert caught.value.span == where
    else:
        assert np.array_equal(tabled(run(1), where)["result"], wanted, equal_nan=True)


def test_what_a_table_cannot_hold_names_its_line() -> None:
    def run(k: int) -> Any:
        return "text" if k else 1.0

    with pytest.warns(UserWarning, match="1 of 2 points"):
        found = ti.sweep(run, {"k": [0, 1]}, workers=1, progress=False)
    assert f"line {run.__code__.co_firstlineno}" in str(found["error"].values[1])
    with pytest.raises(SweepError, match=r"def run\(k: int\)"):
        ti.sweep(run, {"k": [0, 1]}, workers=1, progress=False, errors="raise")


def test_integers_that_would_be_rounded() -> None:
    large = 2**60 + 1

    def mixed(k: int) -> Any:
        return [large, 0.5, large][k]

    with pytest.warns(UserWarning) as caught:
        found = ti.sweep(mixed, {"k": range(3)}, workers=1, progress=False)
    assert any("1 of 3 points have failed" in str(one.message) for one in caught)
    assert "which do not mix" in str(found["error"].values[1]) and found["error"].values[2] == ""

    def fails(k: int) -> Any:
        return large if k else 1 / 0

    with pytest.warns(UserWarning) as caught:
        ti.sweep(fails, {"k": range(2)}, workers=1, progress=False)
    assert any("the integers of the result 'result' are rounded" in str(one.message) for one in caught)


def test_a_function_that_ends_its_process_politely() -> None:
    with pytest.warns(UserWarning, match="SystemExit: 3"):
        ti.sweep(lambda k: sys.exit(3) if k else 0, {"k": [0, 1]}, workers=1)
