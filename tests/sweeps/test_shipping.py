"""Kernels, functions, structs and fields that go to another process."""

import enum
import functools
import json
import linecache
import subprocess
import sys
import threading
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import cloudpickle
import dask.base
import numpy as np
import pytest

import tinote as ti
from tinote.errors import FieldError, SerializationError, SweepError
from tinote.lang.shipping.package import pack, unpack
from tinote.lang.shipping.tokens import token

OBJECTS = Path(__file__).parent / "objects.py"

RECEIVE = """
import cloudpickle, json, sys
received, objects = cloudpickle.loads(open(sys.argv[1], "rb").read())
print(json.dumps(received(objects)))
"""


def _run(*arguments: str, folder: Path | None = None) -> str:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=folder, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_everything_arrives(tmp_path: Path) -> None:
    sent = tmp_path / "sent"
    # From where it is sent the text is gone when it arrives.
    script = tmp_path / "script.py"
    script.write_text(OBJECTS.read_text())
    first, second, tokens, _ = json.loads(_run(str(script), str(sent)))
    again = json.loads(_run(str(script), str(tmp_path / "again")))
    script.unlink()
    received = json.loads(_run("-c", RECEIVE, str(sent), folder=tmp_path))
    assert received == [first, second]
    assert again[2] == tokens and len(set(tokens)) == len(tokens)


@ti.kernel
def of_module(n: ti.i32) -> ti.i32:
    return n + 1


def test_what_a_module_has_is_a_reference() -> None:
    assert cloudpickle.loads(cloudpickle.dumps(of_module)) is of_module
    assert len(cloudpickle.dumps(of_module)) < 200


def test_derivatives_and_what_wraps_a_function_arrive() -> None:
    x, loss = ti.field(ti.f32, 3, needs_grad=True), ti.field(ti.f32, (), needs_grad=True)
    x.from_numpy(np.array([1, 2, 3], np.float32))

    @ti.kernel
    def measure():
        for i in x:
            loss[None] += x[i] ** 2

    @ti.ad.no_grad
    def constant():
        measure()

    @ti.ad.grad_replaced
    def replaced():
        measure()

    @ti.ad.grad_for(replaced)
    def gradient():
        measure.grad()

    options = {"wrt": x, "loss": loss}
    wrapped = {
        "constant": constant,
        "replaced": replaced,
        "capture": ti.capture(measure),
        "grad": ti.ad.grad(measure, **options),
        "value_and_grad": ti.ad.value_and_grad(measure, **options),
        "vjp": ti.ad.vjp(measure, **options),
        "jacobian": ti.ad.jacobian(measure, **options),
        "hvp": ti.ad.hvp(measure, **options),
    }
    for name, function in wrapped.items():
        assert callable(cloudpickle.loads(cloudpickle.dumps(function))), name
    there = cloudpickle.loads(cloudpickle.dumps(wrapped["grad"]))
    assert np.asarray(there()).tolist() == [2, 4, 6]


def test_copies_are_apart_and_share_what_was_shared() -> None:
    a, b = ti.field(ti.f32), ti.field(ti.f32)
    ti.root.dense(ti.i, 4).place(a, b)
    a.fill(1)

    @ti.kernel
    def add() -> ti.f32:
        for i in a:
            b[i] += a[i]
        return b[0]

    there, at = cloudpickle.loads(cloudpickle.dumps((add, a)))
    assert add() == 1
    at.fill(5)
    assert there() == 5 and there() == 10 and add() == 2 and a[0] == 1
    assert at.memory.whole is at.parent().children[1].memory.whole


def test_a_text_that_is_gone_is_still_shown(tmp_path: Path) -> None:
    script = tmp_path / "wrong.py"
    script.write_text(
        "import sys, cloudpickle, tinote as ti\nx = ti.field(ti.f32, 4)\n"
        "@ti.kernel\ndef beyond(n: ti.i32):\n    x[n] = 1.0\n\n"
        "open(sys.argv[1], 'wb').write(cloudpickle.dumps(beyond))\n"
    )
    _run(str(script), str(tmp_path / "sent"))
    script.unlink()
    there = cloudpickle.loads((tmp_path / "sent").read_bytes())
    with pytest.raises(ti.TaichiIndexError, match="out of bounds") as caught:
        there(7)
    assert "    x[n] = 1.0" in str(caught.value)


CELL = """
import functools
import threading
import tinote as ti

def plain(v):
    def nested(w):
        return [u + 1 for u in (w,)]
    return nested(v)[0]

def by_default(v):
    return v

class Base:
    def inherited(self, by=by_default):
        return by(1)

class Several(Base):
    def method(self):
        return (lambda: 2)()

    @staticmethod
    def static():
        return 3

    @classmethod
    def of_class(cls):
        return 4

    @property
    def size(self):
        return 5

class Selective(Base):
    def __getstate__(self):
        return {}

    def own(self):
        return 6

several, selective = Several(), Selective()
selective.kept_here = (lambda lock: lambda: lock)(threading.Lock())
table = {"a": [lambda v: v]}
part = functools.partial(lambda v, w: v * w, 2)
stepped = ti.capture(lambda: by_default(7))

@ti.func
def device(v):
    return v + ti.static(plain(0))

@ti.kernel
def whole(n: ti.i32) -> ti.i32:
    found = device(n) + ti.static(several.method() + several.static() + several.of_class() + several.size)
    found += ti.static(several.inherited() + selective.own() + selective.inherited())
    return found + ti.static(table["a"][0](1) + part(3) + stepped())
"""


def _by_cloudpickle(kernel: Any) -> Any:
    return cloudpickle.loads(cloudpickle.dumps(kernel))


def _by_pack(kernel: Any) -> Any:
    return unpack(pack(kernel).data).function


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


@pytest.mark.parametrize("send", [_by_cloudpickle, _by_pack])
def test_code_names_its_file_where_it_arrives(send: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nested code, plain functions, and all kinds of methods that a kernel uses, as well as its own."""
    file = "<a cell>"
    monkeypatch.setitem(linecache.cache, file, (len(CELL), None, CELL.splitlines(keepends=True), file))
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(CELL, file, "exec"), names)
    there = send(names["whole"])
    assert there(1) == names["whole"](1) == 38
    names = there.source.globals
    several, selective = type(names["several"]), type(names["selective"])
    functions = [there, names["device"], names["plain"], names["part"].func, names["table"]["a"][0]]
    functions += [names["stepped"].__tinote_step__, selective.own, selective.inherited.__defaults__[0]]
    methods = [several.method, several.static, several.of_class, several.size.fget, several.inherited]
    for function in [*functions, *methods]:
        code = getattr(function, "__wrapped__", function).__code__
        assert {one.co_filename for one in _codes(code)} == {file}, function
    assert len(list(_codes(several.method.__code__))) == 2


def test_an_error_of_a_point_names_file_and_line() -> None:
    class Checked:
        def check(self, k: int) -> int:
            if k:
                raise ValueError("wrong")  # here
            return k

    checked = Checked()
    with pytest.raises(SweepError, match="wrong") as caught:
        ti.sweep(lambda k: checked.check(k), {"k": [0, 1]}, workers=1, errors="raise", progress=False)
    line = 1 + next(n for n, text in enumerate(linecache.getlines(__file__)) if text.endswith("# here\n"))
    details = "\n".join(caught.value.__notes__)
    assert f'File "{__file__}", line {line}, in check\n    raise ValueError("wrong")  # here' in details


def test_what_cannot_go_is_named() -> None:
    x = ti.field(ti.f32, 4, name="x")
    y = ti.field(ti.f32, name="y")
    shared = x.numpy_view()
    part = shared[1:]

    def by_view() -> float:
        return float(part[0])

    def unplaced() -> float:
        return y[0]

    lock = threading.Lock()

    def by_lock() -> bool:
        return lock.locked()

    with pytest.raises(SerializationError, match="shares the memory of the field 'x'"):
        pack(by_view)
    with pytest.raises(SerializationError, match="'y' has no place in memory yet"):
        pack(unplaced)
    with pytest.raises(SerializationError, match=r"cannot be sent(.|\n)*`lock` in `by_lock`"):
        pack(by_lock)
    total = ti.field(ti.f32, (), needs_grad=True)
    with ti.ad.Tape(total) as tape:
        pass

    def by_tape() -> bool:
        return tape is None

    with pytest.raises(SerializationError, match="open recording"):
        pack(by_tape)
    ti.reset()
    with pytest.raises(FieldError, match="is gone"):
        cloudpickle.dumps(x)


def test_an_open_file_is_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log").write_text("first\nsecond\n")
    with open(tmp_path / "log") as log:

        def by_file() -> str:
            return log.readline()

        with pytest.raises(SerializationError, match=r"an open file would be another(.|\n)*`log` in `by_file`"):
            pack(by_file)
        with pytest.raises(SerializationError, match="cannot be sent to another process"):
            ti.sweep(len, {"log": [log]}, workers=1)
    stream = sys.__stdout__
    monkeypatch.setattr(sys, "stdout", stream)  # what each process has
    pack(lambda: print("said", file=stream))


def test_a_view_is_not_sent() -> None:
    x = ti.Vector.field(2, ti.f32, shape=4)
    view = ti.viz.Particles(x, lambda: None)
    with pytest.raises(SerializationError, match="open view"):
        pack(lambda: view)
    view.close()


def test_programs_start_anew() -> None:
    x = ti.field(ti.f32, 4, needs_grad=True)
    x.fill(3)

    @ti.kernel
    def double():
        for i in x:
            x[i] *= 2

    def run() -> np.ndarray:
        double()
        return x.to_numpy()

    packed = pack(run)
    program = unpack(packed.data)
    assert (program.function() == 6).all() and (program.function() == 12).all()
    program.restore()
    assert (program.function() == 6).all() and (x.to_numpy() == 3).all()
    assert pack(run).token == packed.token
    x[0] = 4
    changed = pack(run)
    assert changed.token != packed.token
    assert changed.parts["field x"] != packed.parts["field x"]


def test_programs_start_from_what_python_held() -> None:
    """Variables, defaults, and attributes of functions, classes and objects, also where others have come since."""

    class Base:
        total = 0

        def count(self) -> int:
            Base.total += 1
            return Base.total

    class Counter(Base):
        seen: list[int] = []

    counter, calls = Counter(), 0

    def helper(met: list[int] = [], *, also: dict[str, int] = {}) -> list[int]:  # noqa: B006
        helper.calls = getattr(helper, "calls", 0) + 1  # type: ignore[attr-defined]
        met.append(1)
        also[str(len(also))] = 1
        return [len(met), len(also), helper.calls]  # type: ignore[attr-defined]

    def run() -> list[int]:
        nonlocal calls
        calls += 1
        Counter.seen.append(1)
        Counter.latest = getattr(Counter, "latest", 0) + 1  # type: ignore[attr-defined]
        counter.own = getattr(counter, "own", 0) + 1  # type: ignore[attr-defined]
        found = [counter.count(), len(counter.seen), Counter.latest, counter.own, calls]  # type: ignore[attr-defined]
        return [*found, *helper()]

    program = unpack(pack(run).data)
    for _ in range(2):
        assert [program.function(), program.function()] == [[1] * 8, [2] * 8]
        program.restore()


RUN_THRICE = """
import json, sys
from tinote.lang.shipping.package import unpack
program = unpack(open(sys.argv[1], "rb").read())
found = []
for _ in range(3):
    function = program.function
    found.append(function())
    program.restore()
    found[-1].append(program.function is function)
print(json.dumps(found))
"""


def test_what_no_run_changes_does_not_arrive_anew(tmp_path: Path) -> None:
    """Classes of all kinds and their instances, and what these hold by Python's own names, are as they were."""

    @dataclass
    class Plain:
        n: int = 1

        @property
        def next(self) -> int:
            return self.n + 1

        @classmethod
        def made(cls) -> int:
            return cls.start()

        @staticmethod
        def start() -> int:
            return 3

        @functools.cached_property
        def square(self) -> int:
            return self.n**2

    class Slotted:
        __slots__ = ("__weakref__", "n")

    class Pair(NamedTuple):
        a: int
        b: int

    class Color(enum.Enum):
        RED = 1

    held = Slotted()
    held.n = 2

    def run(plain: Plain = Plain()) -> list[object]:  # noqa: B008
        plain.n += 1
        held.n += 1
        return [plain.n, plain.next, plain.made(), plain.square, held.n, *Pair(1, 2), Color.RED.name]

    (tmp_path / "sent").write_bytes(pack(run).data)
    assert json.loads(_run("-c", RUN_THRICE, str(tmp_path / "sent"))) == [[2, 3, 3, 4, 3, 1, 2, "RED", True]] * 3


def test_programs_start_without_what_was_not_assigned() -> None:
    """Variables of outer functions that hold None, or nothing yet, and global ones that a run makes."""
    best = None
    later: int

    def run() -> list[bool]:
        global made_by_a_run
        nonlocal best, later
        try:
            is_later_unassigned = later is None
        except NameError:
            is_later_unassigned = True
        found = [best is None, is_later_unassigned, "made_by_a_run" not in globals()]
        best = later = made_by_a_run = 1
        return found

    program = unpack(pack(run).data)
    for _ in range(2):
        assert [program.function(), program.function()] == [[True] * 3, [False] * 3]
        program.restore()


def test_hashes_tell_apart() -> None:
    def made(factor: float, x: ti.Field) -> ti.kernel:
        @ti.kernel
        def k():
            for i in x:
                x[i] *= factor

        return k

    x, y = ti.field(ti.f32, 4), ti.field(ti.f32, 4)
    y.fill(1)
    found = [made(1.0, x), made(2.0, x), made(1.0, y), made(1.0, x)]
    tokens = [dask.base.tokenize(one) for one in found]
    assert tokens[0] == tokens[3] and len(set(tokens)) == 3
    assert token(found[0]) == token(cloudpickle.loads(cloudpickle.dumps(found[0])))
