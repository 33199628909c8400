"""`ti.init(arch=ti.python)`: debuggers stop on the user's lines and see the user's variables, and everything else is as
machine code does it.
"""

from __future__ import annotations

import bdb
import json
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

import tinote as ti
from tinote.compiler.inspect.stages import stages_of
from tinote.errors import (
    KernelIndexError,
    TinoteError,
)
from tinote.runtime.launch import LaunchStopped
from tinote.runtime.threads import stop_all


@pytest.fixture(autouse=True)
def session() -> Iterator[None]:
    ti.init(arch=ti.python)
    yield
    ti.init()


class Stops(bdb.Bdb):
    """Runs to each breakpoint and notes where it is and what it sees there."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, int, dict[str, Any]]] = []

    def user_line(self, frame: FrameType) -> None:
        if self.break_here(frame):
            seen = {name: repr(value) for name, value in frame.f_locals.items() if name != "rt"}
            self.seen.append((frame.f_code.co_name, frame.f_lineno, seen))
        self.set_continue()


def stops(file: str, lines: list[int], call: Callable[[], Any]) -> list[tuple[str, int, dict[str, Any]]]:
    """Where a debugger stops that has breakpoints on these lines."""
    debugger = Stops()
    for line in lines:
        assert debugger.set_break(file, line) is None
    trace = sys.gettrace()
    try:
        debugger.runcall(call)
    finally:
        sys.settrace(trace)
        debugger.clear_all_breaks()
    return debugger.seen


PROGRAM = """\
import tinote as ti

x = ti.Vector.field(2, ti.f32, shape=3)
total = ti.field(ti.f32, shape=())


@ti.func
def halved(value):
    half = value / 2
    return half


@ti.kernel
def move(n: ti.i32, dt: ti.f32) -> ti.f32:
    energy = 0.0
    for i in range(n):
        scale = 2
        step = x[i] * dt
        if i > 0:
            step += halved(step)
        count = 0
        while count < 2:
            count += 1
        total[None] += step.x
        energy += step.y
    return energy
"""


def line_of(text: str, part: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


def module_of(tmp_path: Path, text: str, name: str = "program") -> dict[str, Any]:
    file = tmp_path / f"{name}.py"
    file.write_text(text)
    namespace: dict[str, Any] = {"__name__": name, "__file__": str(file)}
    exec(compile(text, str(file), "exec"), namespace)
    return namespace


def test_breakpoints_in_a_file(tmp_path: Path) -> None:
    program = module_of(tmp_path, PROGRAM)
    program["x"].from_numpy(np.array([[1, 2], [3, 4], [5, 6]], np.float32))
    lines = [line_of(PROGRAM, part) for part in ("scale = 2", "step += halved", "count += 1", "total[None]")]
    found = stops(str(tmp_path / "program.py"), lines, lambda: program["move"](2, 0.5))
    assert [(name, lines.index(line)) for name, line, _ in found] == [
        *[("move", k) for k in (0, 2, 2, 3)],
        # The call's line again when the function it calls, which is part of the same code, has ended.
        *[("move", k) for k in (0, 1, 1, 2, 2, 3)],
    ]
    first, branch, last = found[0][2], found[5][2], found[-1][2]
    assert (first["n"], first["dt"], first["energy"], first["i"]) == ("2", "0.5", "0.0", "0")
    assert (branch["i"], branch["scale"], branch["step"]) == ("1", "2", "[1.5, 2.0]")
    assert (last["step"], last["count"], last["energy"]) == ("[2.25, 3.0]", "2", "1.0")
    assert program["total"][None] == 0.5 + 2.25


def test_breakpoints_in_a_device_function(tmp_path: Path) -> None:
    """Of the same file: its own lines, in the frame of the kernel, with its own variables."""
    program = module_of(tmp_path, PROGRAM)
    program["x"].fill(4.0)
    lines = [line_of(PROGRAM, "half = value / 2"), line_of(PROGRAM, "return half")]
    found = stops(str(tmp_path / "program.py"), lines, lambda: program["move"](3, 1.0))
    assert [line for _, line, _ in found] == lines * 2
    assert found[0][2]["value"] == "[4.0, 4.0]"
    assert found[1][2]["half"] == "(2.0, 2.0)"


def test_a_device_function_of_another_file_has_the_line_of_its_call(tmp_path: Path) -> None:
    """A code object has one file."""
    library = "import tinote as ti\n\n@ti.func\ndef root(value):\n    inner = ti.sqrt(value)\n    return inner\n"
    other = module_of(tmp_path, library, "library")
    text = "import tinote as ti\n\n@ti.kernel\ndef use(a: ti.f32) -> ti.f32:\n    b = a + 1\n    return root(b)\n"
    program = {"root": other["root"], "__name__": "program"}
    file = tmp_path / "program.py"
    file.write_text(text)
    exec(compile(text, str(file), "exec"), program)
    found = stops(str(file), [6], lambda: program["use"](8.0))  # type: ignore[operator]
    assert [line for _, line, _ in found] == [6]
    assert stops(str(tmp_path / "library.py"), [5], lambda: program["use"](8.0)) == []  # type: ignore[operator]


def test_breakpoints_in_a_cell() -> None:
    shell = InteractiveShell.instance()
    shell.run_cell("import tinote as ti\nti.init(arch=ti.python)\ny = ti.field(ti.i32, 4)", store_history=True)
    cell = "@ti.kernel\ndef fill(n: ti.i32):\n    for i in y:\n        square = i * i\n        y[i] = square + n\n"
    result = shell.run_cell(cell, store_history=True)
    assert result.success
    fill, y = shell.user_ns["fill"], shell.user_ns["y"]
    found = stops(fill.source.file, [5], lambda: fill(10))
    assert [(name, line) for name, line, _ in found] == [("fill", 5)] * 4
    assert [seen["square"] for _, _, seen in found] == ["0", "1", "4", "9"]
    assert y.to_numpy().tolist() == [10, 11, 14, 19]


def test_the_users_globals_are_there_for_a_debugger(tmp_path: Path) -> None:
    program = module_of(tmp_path, PROGRAM)
    seen: list[Any] = []

    class Looks(bdb.Bdb):
        def user_line(self, frame: FrameType) -> None:
            if self.break_here(frame):
                seen.append(eval("x.shape[0] + i", frame.f_globals, frame.f_locals))
            self.set_continue()

    debugger = Looks()
    debugger.set_break(str(tmp_path / "program.py"), line_of(PROGRAM, "scale = 2"))
    trace = sys.gettrace()
    try:
        debugger.runcall(program["move"], 2, 1.0)
    finally:
        sys.settrace(trace)
        debugger.clear_all_breaks()
    assert seen == [3, 4]


def test_the_traceback_ends_where_the_kernel_stood(tmp_path: Path) -> None:
    """With its variables, for a debugger to look at afterwards; the frames between are hidden."""
    program = module_of(tmp_path, PROGRAM)
    with pytest.raises(KernelIndexError) as caught:
        program["move"](4, 1.0)
    *_, last = traceback.extract_tb(caught.value.__traceback__)
    assert (last.name, last.lineno) == ("move", line_of(PROGRAM, "step = x[i] * dt"))
    trace = caught.value.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    assert trace is not None
    assert trace.tb_frame.f_locals["i"] == 3


# ---- around launches


def stop_once_it_runs() -> threading.Thread:
    """A thread that stops the launch which is going to begin."""

    def stop() -> None:
        time.sleep(0.1)
        while not stop_all():
            time.sleep(0.001)

    thread = threading.Thread(target=stop)
    thread.start()
    return thread


def test_an_interrupt_and_a_stop_end_a_loop() -> None:
    x = ti.field(ti.i32, ())

    @ti.kernel
    def spin():
        while x[None] >= 0:
            x[None] = (x[None] + 1) % 1000

    stopper = stop_once_it_runs()
    with pytest.raises(LaunchStopped) as stopped:
        spin()
    stopper.join()
    assert isinstance(stopped.value, KeyboardInterrupt)

    interrupts: list[int] = []

    def interrupting(frame: FrameType, event: str, arg: Any) -> Any:
        if frame.f_code.co_name == "spin":
            interrupts.append(frame.f_lineno)
            if len(interrupts) > 50:
                sys.settrace(None)
                raise KeyboardInterrupt
        return interrupting

    trace = sys.gettrace()
    sys.settrace(interrupting)
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            spin()
    finally:
        sys.settrace(trace)
    assert "spin" in [entry.name for entry in traceback.extract_tb(caught.value.__traceback__)]

    @ti.kernel
    def count(n: ti.i64):
        ti.loop_config(serialize=True)
        for i in range(n):
            x[None] = i % 1000

    stopper = stop_once_it_runs()
    with pytest.raises(LaunchStopped):
        count(10**12)
    stopper.join()
    count(10)
    assert x[None] == 9


def test_two_threads_launch_at_once() -> None:
    total = ti.field(ti.i32, ())

    @ti.kernel
    def add(n: ti.i32) -> ti.i32:
        mine = 0
        for i in range(n):
            total[None] += 1
            mine += i
        return mine

    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(add(3000))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert total[None] == 12_000
    assert found == [3000 * 2999 // 2] * 4


def test_no_machine_code_is_made(tmp_path: Path) -> None:
    program = """
import json, sys
import tinote as ti
ti.init(arch=ti.python)
x = ti.field(ti.f32, 8, needs_grad=True)
s = ti.field(ti.f32, (), needs_grad=True)
@ti.kernel
def total():
    for i in x:
        s[None] += x[i] ** 2
x.fill(2.0)
with ti.ad.Tape(s):
    total()
print(json.dumps([s[None], x.grad[3], "llvmlite" in sys.modules]))
"""
    file = tmp_path / "program.py"
    file.write_text(program)
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [32.0, 4.0, False]


def test_looking_inside() -> None:
    x = ti.field(ti.f32, 4, needs_grad=True)
    y = ti.field(ti.f32, 4, needs_grad=True)

    @ti.kernel
    def scale(by: ti.f32):
        for i in x:
            y[i] = by * x[i]

    scale(2.0)
    code = (
        "def scale(rt, by):\n    for i in rt.iterations(0, 4):\n        rt.y[i] = rt.f32(by * rt.x[i])\n    return ()\n"
    )
    assert scale.python() == code
    assert "rt.x_grad.add(i, " in scale.python(gradient=True)
    assert "load @x" in scale.ir()
    for look in (scale.llvm, scale.asm):
        with pytest.raises(TinoteError, match="runs as plain Python") as caught:
            look()
        assert "scale.python()" in caught.value.hint
    assert "plain Python" in repr(scale.instances)
    ti.init()
    x, y = ti.field(ti.f32, 4, needs_grad=True), ti.field(ti.f32, 4, needs_grad=True)
    scale(2.0)
    assert scale.python() == code


def test_the_explorer_ends_with_the_code() -> None:
    x = ti.field(ti.f32, 4)

    @ti.kernel
    def fill(a: ti.f32):
        for i in x:
            x[i] = a

    fill(1.0)
    stages = stages_of(fill.instances[-1].specialisation).stages
    passes = ["infer_types", "select_reverse_form", "drop_adjoints", "guard_accesses"]
    steps = ["syntax tree", "front end", *passes, "plain Python"]
    assert [stage.name for stage in stages] == steps
    last = stages[-1].lines
    first = fill.source.tree.lineno
    assert [line.span.line - first for line in last] == [0, 1, 2, 1]


def test_the_profiler_measures_launches() -> None:
    ti.init(arch=ti.python, kernel_profiler=True)
    x = ti.field(ti.f32, 100)

    @ti.kernel
    def fill(a: ti.f32):
        for i in x:
            x[i] = a

    ti.profiler.clear_kernel_profiler_info()
    for _ in range(3):
        fill(1.0)
    found = ti.profiler.query_kernel_profiler_info("fill")
    assert found is not None
    assert found.count == 3
    assert 0 < found.least <= found.most
