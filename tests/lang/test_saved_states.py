"""`ti.save` and `ti.load`: bit for bit, whole or not at all, and clear where a state does not fit."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import ipywidgets
import numpy as np
import pytest
import xarray
import zarr

import tinote as ti
from tinote.errors import StateError

ENDINGS = ("npz", "zarr")
DTYPES = [ti.f16, ti.f32, ti.f64, ti.i8, ti.i16, ti.i32, ti.i64, ti.u8, ti.u16, ti.u32, ti.u64, ti.u1]
FLOATS = [0.0, -0.0, 1.5, -np.inf, np.inf, np.nan, 2.0**-24, 5e-324]


@pytest.fixture(params=ENDINGS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / f"state.{request.param}"


def bits(array: Any) -> bytes:
    return np.ascontiguousarray(array).tobytes()


@pytest.mark.parametrize(
    "dtype", [ti.f16, ti.f32, ti.f64, ti.i8, ti.i16, ti.i32, ti.i64, ti.u8, ti.u16, ti.u32, ti.u64, ti.u1]
)
@pytest.mark.parametrize("make", [ti.field, ti.ndarray])
def test_each_type_is_exact(path: Path, make: Any, dtype: Any) -> None:
    ti.init()
    x = make(dtype, shape=8)
    empty = x.to_numpy()
    held = np.array(FLOATS, np.float64) if dtype in (ti.f16, ti.f32, ti.f64) else np.arange(250, 258)
    with np.errstate(all="ignore"):
        x.from_numpy(held.astype(empty.dtype))
    before = bits(x.to_numpy())
    ti.save(path, x=x)
    x.from_numpy(empty)
    ti.load(path, x=x)
    assert bits(x.to_numpy()) == before
    assert bits(ti.load(path)["x"]) == before


def everything() -> dict[str, Any]:
    inner = ti.types.struct(a=ti.i32, b=ti.math.vec2)
    made = {
        "scalar": ti.field(ti.f32, shape=(3, 2)),
        "zero": ti.field(ti.f64, shape=()),
        "vector": ti.Vector.field(3, ti.f32, shape=4, layout=ti.Layout.SOA),
        "column": ti.Matrix.field(3, 1, ti.f32, shape=2),
        "matrix": ti.Matrix.field(2, 2, ti.f64, shape=(2, 2)),
        "struct": ti.Struct.field({"m": ti.f32, "keys": ti.i64, "inner": inner}, shape=3),
        "component": ti.Vector.field(2, ti.f32, shape=3).get_scalar_field(1),
        "array": ti.Vector.ndarray(2, ti.f32, shape=5),
        "numpy": np.zeros((2, 3), np.complex128)[:, ::2],
        "empty": np.zeros((0, 3)),
    }
    made["gradient"] = ti.field(ti.f32, shape=4, needs_grad=True).grad
    return made


def filled(value: Any, seed: int) -> None:
    """Another number in each place."""
    draw = np.random.default_rng(seed)

    def like(found: Any) -> Any:
        if isinstance(found, dict):
            return {name: like(one) for name, one in found.items()}
        return (draw.random(found.shape) * 100).astype(found.dtype)

    if isinstance(value, np.ndarray):
        value[...] = like(value)
    elif isinstance(value, ti.StructField):
        ti.StructField.from_numpy(value, like(ti.StructField.to_numpy(value)))
    else:
        value.from_numpy(like(value.to_numpy()))


def numbers(value: Any) -> Any:
    found = ti.StructField.to_numpy(value) if isinstance(value, ti.StructField) else value
    if isinstance(found, dict):
        return {name: numbers(one) for name, one in found.items()}
    return bits(found if isinstance(found, np.ndarray) else found.to_numpy())


def test_each_kind_of_field_comes_back(path: Path) -> None:
    ti.init()
    state = everything()
    for seed, value in enumerate(state.values()):
        filled(value, seed)
    before = {name: numbers(value) for name, value in state.items()}
    ti.save(path, **state)
    for seed, value in enumerate(state.values()):
        filled(value, seed + 100)
    assert all(numbers(value) != before[name] for name, value in state.items() if name != "empty")
    ti.load(path, **state)
    assert {name: numbers(value) for name, value in state.items()} == before


def sparse_fields() -> tuple[Any, Any, Any]:
    x, v, numbers = ti.field(ti.f32), ti.Vector.field(2, ti.f64), ti.field(ti.i32)
    ti.root.pointer(ti.ij, (4, 4)).bitmasked(ti.ij, (8, 8)).place(x, v, offset=(-16, -16))
    ti.root.pointer(ti.i, 8).dynamic(ti.j, 32).place(numbers)
    return x, v, numbers


def test_sparse_fields_come_back_with_what_is_active(tmp_path: Path) -> None:
    ti.init()
    state = sparse_fields()
    x, v, numbers = state

    @ti.kernel
    def fill(lists: ti.template()):
        for i in range(5):
            for j in range(i):
                ti.append(lists.parent(), i, j * 10)

    x[-3, 5] = 2.0
    x[10, 10] = 0.0  # active all the same
    v[0, 0] = [1.0, -0.0]
    fill(numbers)
    before = [(i.tolist(), bits(held)) for i, held in (one.to_sparse() for one in state)]
    assert [len(indices) for indices, _ in before] == [3, 3, 10]
    ti.save(tmp_path / "a.npz", x=x, v=v, numbers=numbers)
    ti.init()
    x, v, numbers = state = sparse_fields()
    ti.load(tmp_path / "a.npz", x=x, v=v, numbers=numbers)
    assert [(i.tolist(), bits(held)) for i, held in (one.to_sparse() for one in state)] == before
    for target, message in [
        (v, "'x' holds float64 of shape (32, 32, 2), and the file float32 of shape (32, 32)"),
        (ti.field(ti.f32, shape=3), "of shape (3,), and the file a sparse field of float32 and shape (32, 32)"),
    ]:
        with pytest.raises(StateError) as caught:
            ti.load(tmp_path / "a.npz", x=target)
        assert message in str(caught.value)


def test_values_beside_arrays_come_back(path: Path) -> None:
    ti.init()
    values = {"step": 7, "time": 0.1, "on": True, "name": "orbit", "list": [1, 2.5, None], "table": {"k": [0.5]}}
    ti.save(path, **values, vector=ti.Vector([1.0, 2.0]), number=np.float32(0.1), body=ti.Struct(m=2.0, v=[1.0, 0.0]))
    found = ti.load(path)
    assert {name: found[name] for name in values} == values
    assert all(type(found[name]) is type(value) for name, value in values.items())
    assert found["vector"].tolist() == [1.0, 2.0]
    assert found["number"] == np.float32(0.1)
    assert found["body"]["m"] == 2.0
    assert found["body"]["v"].tolist() == [1.0, 0.0]
    assert list(found) == [*values, "vector", "number", "body"]
    with pytest.raises(KeyError, match="holds no 'stop'; did you mean 'step'"):
        found["stop"]


def test_controls_get_their_values_back(path: Path) -> None:
    speed = ipywidgets.FloatSlider(value=2.5, min=0, max=10)
    count, kind = ipywidgets.IntSlider(value=3), ipywidgets.Dropdown(options=["a", "b"], value="b")
    ti.save(path, speed=speed, count=count, kind=kind)
    speed.value, count.value, kind.value = 1.0, 9, "a"
    ti.load(path, speed=speed, count=count, kind=kind)
    assert (speed.value, count.value, kind.value) == (2.5, 3, "b")


@pytest.mark.parametrize("seed_of_second", [5, 11])
def test_random_numbers_go_on(path: Path, seed_of_second: int) -> None:
    @ti.kernel
    def draw():
        for i in x:
            x[i] = ti.random()

    ti.init(random_seed=5)
    x = ti.field(ti.f32, shape=16)
    draw()
    draw()
    ti.save(path, x=x)
    draw()
    wanted = x.to_numpy()
    ti.init(random_seed=seed_of_second)
    x = ti.field(ti.f32, shape=16)
    ti.load(path, x=x)
    draw()
    assert (x.to_numpy() == wanted).all()
    ti.load(path, random=False)
    draw()
    assert (x.to_numpy() != wanted).any()


def test_a_run_that_is_resumed_is_as_one_that_was_not_interrupted(path: Path) -> None:
    ti.init(random_seed=1)
    x = ti.Vector.field(2, ti.f32, shape=32)
    v = ti.Vector.field(2, ti.f32, shape=32)

    @ti.kernel
    def step(dt: ti.f32):
        for i in x:
            v[i] += dt * (ti.Vector([ti.random(), ti.random()]) - x[i])
            x[i] += dt * v[i]

    captured = ti.capture(lambda: step(0.1))
    for _ in range(4):
        captured()
    ti.save(path, x=x, v=v)
    for _ in range(4):
        captured()
    wanted = bits(x.to_numpy())
    ti.load(path, x=x, v=v)
    for _ in range(4):
        captured()
    assert bits(x.to_numpy()) == wanted
    ti.load(path, x=x, v=v)
    for _ in range(4):
        step(0.1)
    assert bits(x.to_numpy()) == wanted


def test_states_are_appended(tmp_path: Path) -> None:
    ti.init()
    x = ti.field(ti.f32, shape=(3, 2))
    store = tmp_path / "run.zarr"
    for step in range(5):
        x.fill(step)
        ti.save(store, append=True, x=x, time=0.1 * step)
    for at in range(-5, 5):
        found = ti.load(store, at=at, x=x)
        assert found.states == 5
        assert found["time"] == 0.1 * (at % 5)
        assert (x.to_numpy() == at % 5).all()
    for at in (5, -6):
        with pytest.raises(StateError, match=f"holds 5 states; there is no number {at}"):
            ti.load(store, at=at)
    ti.save(store, x=x)  # in place of them
    assert ti.load(store).states == 1


def test_other_readers_take_the_files(tmp_path: Path) -> None:
    ti.init()
    x = ti.field(ti.f32, shape=3)
    for step in range(2):
        x.fill(step)
        ti.save(tmp_path / "run.zarr", append=True, x=x, time=0.5 * step)
    ti.save(tmp_path / "one.npz", x=x)
    table = xarray.open_zarr(tmp_path / "run.zarr", consolidated=False)
    assert table.x.dims == ("state", "x_0")
    assert table.x.values.tolist() == [[0.0] * 3, [1.0] * 3]
    assert table.time.values.tolist() == [0.0, 0.5]
    assert np.load(tmp_path / "one.npz")["x"].tolist() == [1.0] * 3


def test_large_arrays_are_in_chunks(tmp_path: Path) -> None:
    ti.save(tmp_path / "large.zarr", x=np.zeros((1 << 15, 1 << 10), np.float32))
    assert cast("Any", zarr.open_group(tmp_path / "large.zarr", mode="r"))["x"].chunks == (1, 1 << 14, 1 << 10)


KEEP_SAVING = """
import sys, itertools, numpy as np, tinote as ti
path = sys.argv[1]
for step in itertools.count():
    ti.save(path, append=path.endswith("zarr"), x=np.full(1 << 18, step), y=np.full(1 << 16, step), step=step)
    print(step, flush=True)
"""


def test_a_process_that_is_killed_leaves_a_whole_state(path: Path) -> None:
    draw = random.Random(1)
    last = -1
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", KEEP_SAVING, str(path)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for _ in range(3):
            process.stdout.readline()
        time.sleep(draw.random() * 0.05)
        process.send_signal(signal.SIGKILL)
        said = process.stdout.read().split()
        process.wait()
        process.stdout.close()
        found = ti.load(path)
        assert (found["x"] == found["step"]).all()
        assert (found["y"] == found["step"]).all()
        assert found["step"] >= int(said[-1] if said else 0)
        if path.suffix == ".zarr":
            assert found.states > last + 3
            last = found.states - 1


def test_what_fails_leaves_the_former_state(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ti.save(path, x=np.zeros(3))
    with pytest.raises(StateError, match="'y' cannot be saved: it is of type object"):
        ti.save(path, x=np.ones(3), y=object())
    assert (ti.load(path)["x"] == 0).all()
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_nothing_is_written_where_one_target_does_not_fit(path: Path) -> None:
    ti.init()
    x, y = ti.field(ti.f32, shape=3), ti.field(ti.f32, shape=4)
    ti.save(path, x=x, y=y)
    x.fill(5.0)
    with pytest.raises(StateError):
        ti.load(path, x=x, y=ti.field(ti.f32, shape=5))
    assert (x.to_numpy() == 5.0).all()


def struct_of(**members: Any) -> Any:
    return ti.Struct.field(members, shape=2)


MISFITS: list[tuple[Callable[[], Any], Callable[[], Any], str]] = [
    (lambda: ti.field(ti.f32, shape=3), lambda: ti.field(ti.f64, shape=3), "(3,), and the file float32"),
    (lambda: ti.field(ti.f32, shape=3), lambda: ti.field(ti.f32, shape=4), "(4,), and the file float32 of shape (3,)"),
    (lambda: ti.field(ti.f32, shape=()), lambda: ti.field(ti.f32, shape=1), "of shape (1,), and the file one float32"),
    (lambda: np.zeros(3), lambda: np.zeros((3, 1)), "shape (3, 1), and the file float64 of shape (3,)"),
    (lambda: struct_of(a=ti.f32), lambda: struct_of(b=ti.f32), "a struct of b, and the file a struct of a"),
    (lambda: struct_of(a=ti.f32), lambda: struct_of(a=ti.i32), "'x.a' holds int32 of shape (2,)"),
    (lambda: "text", lambda: ti.field(ti.f32, shape=3), "and the file 'text'"),
    (lambda: np.zeros(3), lambda: np.broadcast_to(np.zeros(1), 3), "cannot be loaded into a read-only array"),
    (lambda: 3, lambda: 3, "cannot be loaded into a value of type int\nhelp: take the value from what ti.load gives"),
]  # fmt: skip


@pytest.mark.parametrize(("was", "now", "message"), MISFITS)
def test_a_target_that_does_not_fit_says_so(path: Path, was: Any, now: Any, message: str) -> None:
    ti.init()
    ti.save(path, x=was())
    with pytest.raises(StateError) as caught:
        ti.load(path, x=now())
    assert message in str(caught.value)
    assert "test_saved_states.py" in str(caught.value)


UNLIKE: list[tuple[dict[str, Any], str]] = [
    ({"x": np.zeros(4), "t": 0.5}, "float64 of shape (3,) for 'x', not float64 of shape (4,)"),
    ({"x": np.zeros(3), "t": 1}, "float64 of shape () for 't', not int64 of shape ()"),
    ({"x": np.zeros(3)}, "for 't', not nothing"),
    ({"x": np.zeros(3), "t": 0.5, "y": np.zeros(1)}, "holds nothing for 'y'"),
    ({"x": np.zeros(3), "t": 0.5, "name": "b"}, "values (without arrays and numbers)"),
    ({"x": np.zeros(3), "t": 1 << 80}, "'t' is too large for an integer of 64 bits"),
]


@pytest.mark.parametrize(("state", "message"), UNLIKE)
def test_states_of_a_store_are_alike(tmp_path: Path, state: dict[str, Any], message: str) -> None:
    store = tmp_path / "run.zarr"
    ti.save(store, x=np.zeros(3), t=0.0)
    with pytest.raises(StateError) as caught:
        ti.save(store, append=True, **state)
    assert message in str(caught.value)
    assert ti.load(store).states == 1


def test_wrong_uses_are_located_errors(tmp_path: Path) -> None:
    x = np.zeros(3)
    ti.save(tmp_path / "a.npz", x=x)
    (tmp_path / "text.npz").write_text("no archive")
    np.savez(tmp_path / "others.npz", x=x)
    (tmp_path / "folder.zarr").mkdir()
    for act, message in [
        (lambda: ti.save(tmp_path / "a.txt", x=x), "a.txt is neither a file nor a store of states"),
        (lambda: ti.save(tmp_path / "none" / "a.npz", x=x), "there is no folder"),
        (lambda: ti.save(tmp_path / "a.npz"), "nothing to save"),
        (lambda: ti.save(tmp_path / "a.npz", **cast("Any", {"a.b": x})), "'a.b' cannot be the name"),
        (lambda: ti.save(tmp_path / "a.npz", append=True, x=x), "holds one state"),
        (lambda: ti.save(tmp_path / "folder.zarr", append=True, x=x), "is damaged, or no store of ti.save"),
        (lambda: ti.save(tmp_path / "folder.zarr", x=x), "is damaged, or no store of ti.save"),
        (lambda: ti.load(tmp_path / "b.npz"), "there is no"),
        (lambda: ti.load(tmp_path / "b.zarr"), "there is no"),
        (lambda: ti.load(tmp_path / "a.npz", at=1), "holds one state; there is no number 1"),
        (lambda: ti.load(tmp_path / "a.npz", y=x), "holds no 'y'"),
        (lambda: ti.load(tmp_path / "text.npz"), "is damaged, or no file of ti.save"),
        (lambda: ti.load(tmp_path / "others.npz"), "was not written by ti.save"),
    ]:
        with pytest.raises(StateError) as caught:
            act()
        assert message in str(caught.value)
        assert "test_saved_states.py" in str(caught.value)
    assert (tmp_path / "folder.zarr").is_dir()


def test_a_damaged_file_is_noticed(tmp_path: Path) -> None:
    x = np.arange(1000.0)
    path = tmp_path / "a.npz"
    ti.save(path, x=x)
    data = bytearray(path.read_bytes())
    place = data.find(x[500:503].tobytes())
    data[place] ^= 1
    path.write_bytes(data)
    with pytest.raises(StateError, match="damaged"):
        ti.load(path)


def test_a_later_format_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("state.json", json.dumps({"tinote_state": 2}))
    zarr.open_group(tmp_path / "a.zarr", mode="w", attributes={"tinote_state": 2})
    for ending in ENDINGS:
        with pytest.raises(StateError, match="of format 2, which a later version wrote"):
            ti.load(tmp_path / f"a.{ending}")


def test_another_program_is_warned_of(path: Path) -> None:
    ti.init()
    x = ti.field(ti.f32, shape=3)
    scale = 2.0

    @ti.kernel
    def step():
        for i in x:
            x[i] = x[i] * scale

    ti.save(path, x=x, made_by=step)
    x.fill(1.0)  # what fields hold is the state, not what made it
    ti.load(path, x=x, made_by=step)

    scale = 3.0
    with pytest.warns(UserWarning, match="was made by other functions, or by other numbers"):
        ti.load(path, x=x, made_by=step)
    scale = 2.0

    @ti.kernel
    def another():
        for i in x:
            x[i] = x[i] + scale

    with pytest.warns(UserWarning, match="made by other functions"):
        ti.load(path, x=x, made_by=another)


def test_a_tape_takes_loading_as_any_write(path: Path) -> None:
    ti.init()
    x, y = ti.field(ti.f32, shape=3, needs_grad=True), ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def total():
        for i in x:
            y[None] += x[i] ** 2

    x.fill(3.0)
    ti.save(path, x=x)
    found = []
    for read in (lambda: ti.load(path, x=x), lambda: x.from_numpy(np.full(3, 3.0))):
        x.fill(1.0)
        with ti.ad.Tape(y):
            read()
            total()
        found.append((y[None], x.grad.to_numpy().tolist()))
    assert found[0] == found[1] == (27.0, [6.0] * 3)
