"""What a user can do to a session: interrupts, floods, forks, nonsense. The process lives, and its data with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.survival.child import run_child

PRELUDE = """
import os, signal, sys, threading, time, warnings
import numpy as np
import tinote as ti
ti.init()

N = 1000
data = ti.field(ti.f64, shape=N, needs_grad=True)
loss = ti.field(ti.f64, shape=(), needs_grad=True)
data.from_numpy(np.arange(N, dtype=float))

@ti.kernel
def total() -> ti.f64:
    s = ti.cast(0.0, ti.f64)
    for i in data:
        s += data[i]
    return s

@ti.kernel
def energy():
    for i in data:
        loss[None] += data[i] ** 2

RIGHT = N * (N - 1) / 2

def good():
    assert total() == RIGHT, total()
    with ti.ad.Tape(loss=loss):
        energy()
    assert (data.grad.to_numpy() == 2 * np.arange(N)).all()
    @ti.kernel
    def fresh(a: ti.f64) -> ti.f64:
        return a * data[3] + RIGHT
    assert fresh(2.0) == 6 + RIGHT

def interrupted(act, after=0.3):
    sent = []
    def send():
        time.sleep(after)
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)
    thread = threading.Thread(target=send)
    thread.start()
    try:
        act()
    except KeyboardInterrupt as error:
        late = time.perf_counter() - sent[0]
        assert late < 0.5, late
    else:
        raise AssertionError("it ended by itself")
    finally:
        thread.join()

def refused(act, *kinds):
    try:
        act()
    except (kinds or (Exception,)) as error:
        text = str(error)
        assert "internal error" not in text, text
        return text
    raise AssertionError("it was not refused")

good()
"""


@pytest.fixture
def child(tmp_path: Path) -> Callable[..., str]:
    """Runs a script after the prelude, in a process of its own and from a file, since kernels need their source."""

    def run(script: str, seconds: float = 90) -> str:
        file = tmp_path / "session.py"
        file.write_text(PRELUDE + script + "\ngood()\nprint('alive')\n")
        return run_child(f"import runpy; runpy.run_path({str(file)!r}, run_name='__main__')", seconds=seconds)

    return run


# Interrupts. The last argument of `run` says what is called; each is warmed up with a harmless argument.
ENDLESS = {
    "while": """
@ti.kernel
def run(forever: ti.i32) -> ti.i32:
    k = 1
    while k != 0 and forever == 1:
        k = k * 3 + 2 * (k % 2)
    return k
run(0)
act = lambda: run(1)
""",
    "empty while": """
@ti.kernel
def run(forever: ti.i32):
    while forever == 1:
        pass
run(0)
act = lambda: run(1)
""",
    "while true": """
x = ti.field(ti.i32, shape=())
@ti.kernel
def run():
    while True:
        x[None] += 1
act = lambda: run()
""",
    "for of 10**12 turns": """
@ti.kernel
def run(n: ti.i64) -> ti.f64:
    s = ti.cast(0.0, ti.f64)
    for k in range(1):
        for i in range(n):
            s = ti.sin(s + i)
    return s
run(3)
act = lambda: run(10**12)
""",
    "serialised for of 10**12 turns": """
x = ti.field(ti.i64, shape=())
@ti.kernel
def run(n: ti.i64):
    ti.loop_config(serialize=True)
    for i in range(n):
        x[None] = x[None] * 3 + i
run(3)
act = lambda: run(10**12)
""",
    "parallel for of 10**12 turns": """
x = ti.field(ti.i64, shape=16)
@ti.kernel
def run(n: ti.i64):
    for i in range(n):
        x[ti.cast(i % 16, ti.i32)] += i * i
run(3)
act = lambda: run(10**12)
""",
    "reduction of 10**12 turns": """
@ti.kernel
def run(n: ti.i64) -> ti.i64:
    s = ti.cast(0, ti.i64)
    for i in range(n):
        s += i ^ (i >> 3)
    return s
run(3)
act = lambda: run(10**12)
""",
    "nested loops": """
@ti.kernel
def run(n: ti.i32) -> ti.f64:
    s = ti.cast(0.0, ti.f64)
    for i in range(1):
        for j in range(n):
            for k in range(n):
                for l in range(3):
                    s += ti.sin(s) * 1e-9
    return s
run(3)
act = lambda: run(10**9)
""",
    "one iteration of a parallel loop": """
x = ti.field(ti.i32, shape=100)
@ti.kernel
def run(bad: ti.i32):
    for i in x:
        x[i] += 1
        k = 1
        while i == bad and k != 0:
            k = k * 3 + 2 * (k % 2)
run(-1)
act = lambda: run(77)
""",
    "the first iteration of a parallel loop": """
x = ti.field(ti.i32, shape=100000)
@ti.kernel
def run(bad: ti.i32):
    for i in x:
        x[i] += 1
        while i == bad:
            x[i] += 1
run(-1)
act = lambda: run(0)
""",
    "a reverse pass": """
@ti.kernel
def run(n: ti.i64):
    for i in range(1):
        s = data[5]
        for k in range(n):
            s = s * 0.999 + 0.5
        loss[None] += s
run(3)
run.grad(3)
loss.grad[None] = 1
act = lambda: run.grad(10**12)
""",
    "a reverse pass with saved values": """
@ti.kernel
def run(forever: ti.i32):
    for i in range(2):
        s = data[5] * 0.001
        k = 0
        while k < 3 or forever == 1:
            s += 1e-9 * data[k % N]
            k += 1
            if k > 100:
                k = 50
        loss[None] += s
run(0)
run.grad(0)
loss.grad[None] = 1
act = lambda: run.grad(1)
""",
    "many launches": """
@ti.kernel
def run():
    for i in data:
        data.grad[i] += 1
def act():
    while True:
        run()
""",
}


@pytest.mark.parametrize("which", ENDLESS)
def test_an_interrupt_ends_it_and_the_session_goes_on(which: str, child: Callable[..., str]) -> None:
    script = f"""
{ENDLESS[which]}
interrupted(act)
good()
interrupted(act, 0.05)
"""
    assert child(script) == "alive\n"


def test_an_interrupt_of_an_endless_print(child: Callable[..., str]) -> None:
    script = """
class Null:
    count = 0
    def write(self, text):
        Null.count += len(text)
    def flush(self):
        pass
@ti.kernel
def run():
    for i in range(2):
        while True:
            print("again and again", i)
real, sys.stdout = sys.stdout, Null()
try:
    interrupted(run)
finally:
    sys.stdout = real
assert Null.count > 0
"""
    assert child(script) == "alive\n"


def test_an_interrupt_while_compiling_leaves_the_kernel_usable(child: Callable[..., str]) -> None:
    script = """
lines = "\\n".join(f"    s = s * 0.5 + ti.sin(s) * {k}" for k in range(3000))
path = "/tmp/tinote_long_%d.py" % os.getpid()
with open(path, "w") as f:
    f.write("import tinote as ti\\n@ti.kernel\\ndef run(a: ti.f32) -> ti.f32:\\n    s = a\\n" + lines + "\\n    return s\\n")
space = {}
exec(compile(open(path).read(), path, "exec"), space)
run = space["run"]
def send():
    time.sleep(0.4)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=send).start()
try:
    run(1.0)
    time.sleep(1)
except KeyboardInterrupt:
    pass
except Exception as error:
    raise AssertionError(error)
assert np.isfinite(run(1.0))
os.remove(path)
"""
    assert child(script, 120) == "alive\n"


def test_a_flood_of_prints(child: Callable[..., str]) -> None:
    script = """
@ti.kernel
def flood(n: ti.i32):
    for i in range(n):
        print("line number", i, "of the flood", i * 0.5)
import io
real, sys.stdout = sys.stdout, io.StringIO()
try:
    flood(300_000)
    text = sys.stdout.getvalue()
finally:
    sys.stdout = real
lines = text.splitlines()
arrived = sum(line.startswith("line number") for line in lines)
assert arrived > 1000, arrived
# Whatever did not arrive is counted.
if arrived < 300_000:
    import re
    dropped = sum(int(n.replace(",", "")) for line in lines if not line.startswith("line number") for n in re.findall(r"[\\d,]+", line)[:1])
    assert arrived + dropped == 300_000, (arrived, dropped, lines[-3:])
"""
    assert child(script) == "alive\n"


def test_fork(child: Callable[..., str]) -> None:
    script = """
warnings.simplefilter("ignore", DeprecationWarning)
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        good()
        data[0] = 5
        assert total() == RIGHT + 5
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    good()
"""
    assert child(script) == "alive\n"


def test_two_python_threads_launch_at_once(child: Callable[..., str]) -> None:
    script = """
fields = [ti.field(ti.i64, shape=5000) for _ in range(4)]
@ti.kernel
def add(x: ti.template(), k: ti.i64):
    for i in x:
        x[i] += k
failures = []
def work(n):
    try:
        for k in range(200):
            add(fields[n], n + 1)
            assert total() == RIGHT
    except BaseException as error:
        failures.append(error)
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
assert not failures, failures
for n, x in enumerate(fields):
    assert (x.to_numpy() == 200 * (n + 1)).all()
"""
    assert child(script) == "alive\n"


def test_two_threads_compile_at_once(child: Callable[..., str]) -> None:
    script = """
failures = []
def work(n):
    try:
        for k in range(15):
            c = n * 1000 + k
            @ti.kernel
            def fresh(a: ti.i32) -> ti.i32:
                return a * c + 1
            assert fresh(3) == 3 * c + 1
            assert total() == RIGHT
    except BaseException as error:
        failures.append(error)
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
assert not failures, failures
"""
    assert child(script) == "alive\n"


def test_shapes_that_cannot_be(child: Callable[..., str]) -> None:
    script = """
for shape in (-1, (3, -2), 2**31, 2**62, (2**20, 2**20, 2**20), (2**31 - 1,) * 8, 10**30, "a", 1.5, None, [[1, 2]]):
    refused(lambda: ti.field(ti.f64, shape=shape), ValueError, MemoryError)
refused(lambda: ti.Vector.field(10**9, ti.f64, shape=10**9), ValueError, MemoryError)
refused(lambda: ti.Matrix.field(0, 1, ti.f64, shape=3), ValueError)
"""
    assert child(script) == "alive\n"


def test_no_memory_left(child: Callable[..., str]) -> None:
    script = """
import resource
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (512 << 20), resource.RLIM_INFINITY))
kept = []
text = refused(lambda: [kept.append(ti.field(ti.f64, shape=8 << 20)) for _ in range(100)], ValueError, MemoryError)
assert "bytes" in text, text
good()
kept.clear()
big = ti.field(ti.f32, shape=1 << 20)
@ti.kernel
def fill():
    for i in big:
        big[i] = i
fill()
assert big[1000] == 1000
"""
    assert child(script) == "alive\n"


def test_division_by_zero_everywhere(child: Callable[..., str]) -> None:
    script = """
x = ti.field(ti.i32, shape=100)
@ti.kernel
def serial(a: ti.i32) -> ti.i32:
    return 5 // a + 5 % a
@ti.kernel
def parallel(a: ti.i32):
    for i in x:
        x[i] = i // (i - a)
@ti.kernel
def lowest(a: ti.i32, b: ti.i32) -> ti.i32:
    return a // b + a % b
for act in (lambda: serial(0), lambda: parallel(50)):
    refused(act, ZeroDivisionError)
    good()
assert lowest(-(2**31), -1) == -(2**31)
parallel(1000)
"""
    assert child(script) == "alive\n"


def test_code_without_source(child: Callable[..., str]) -> None:
    script = """
space = {"ti": ti, "data": data}
text = refused(lambda: exec("@ti.kernel\\ndef k():\\n    data[0] = 1\\nk()\\n", space))
assert "source" in text, text
text = refused(lambda: exec(compile("@ti.kernel\\ndef k():\\n    data[0] = 1\\n", "<nowhere>", "exec"), space))
assert "source" in text, text
refused(lambda: exec("@ti.func\\ndef f(a):\\n    return a\\n", space))
# A file that changed since it was imported must not give nonsense either.
import linecache
program = "import tinote as ti\\n@ti.kernel\\ndef k() -> ti.i32:\\n    return 5\\n"
linecache.cache["changed.py"] = (len(program), None, program.splitlines(True), "changed.py")
code = compile(program, "changed.py", "exec")
garbage = ")))\\n" * 10
linecache.cache["changed.py"] = (len(garbage), None, garbage.splitlines(True), "changed.py")
refused(lambda: exec(code, {}))
"""
    assert child(script) == "alive\n"


def test_deep_calls_and_recursion(child: Callable[..., str]) -> None:
    script = """
import linecache
def define(text, name):
    file = f"<{name}>.py"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space = {"ti": ti}
    exec(compile(text, file, "exec"), space)
    return space["k"]
def chain(n):
    return ("@ti.func\\ndef f0(a):\\n    return a + 1\\n" + "".join(f"@ti.func\\ndef f{i}(a):\\n    return f{i - 1}(a) + 1\\n" for i in range(1, n))
            + f"@ti.kernel\\ndef k(a: ti.i32) -> ti.i32:\\n    return f{n - 1}(a)\\n")
assert define(chain(20), "twenty")(1) == 21
for n in (200, 2000):
    try:
        assert define(chain(n), f"deep{n}")(1) == n + 1
    except ti.TaichiCompilationError:
        pass
    good()
loop = "@ti.func\\ndef f(a):\\n    return g(a)\\n@ti.func\\ndef g(a):\\n    return f(a)\\n@ti.kernel\\ndef k(a: ti.i32) -> ti.i32:\\n    return f(a)\\n"
text = refused(lambda: define(loop, "loop")(1), ti.TaichiCompilationError)
assert "recurse" in text, text
wide = "@ti.kernel\\ndef k(a: ti.i32) -> ti.i32:\\n    return " + "(" * 90 + "a" + " + 1)" * 90 + "\\n"
assert define(wide, "wide")(1) == 91
sum_ = "@ti.kernel\\ndef k(a: ti.i32) -> ti.i32:\\n    return " + " + ".join(["a"] * 800) + "\\n"
try:
    assert define(sum_, "sum")(2) == 1600
except ti.TaichiCompilationError:
    pass
longer = "@ti.kernel\\ndef k(a: ti.i32) -> ti.i32:\\n    return " + " + ".join(["a"] * 4000) + "\\n"
try:
    assert define(longer, "longer")(2) == 8000
except (ti.TaichiCompilationError, RecursionError, MemoryError):
    pass
nested = "@ti.kernel\\ndef k(a: ti.i32) -> ti.i32:\\n    s = 0\\n" + "".join("    " * (d + 1) + f"if a > {d}:\\n" for d in range(80)) + "    " * 81 + "s = 7\\n    return s\\n"
assert define(nested, "nested")(100) == 7
loops = "@ti.kernel\\ndef k(a: ti.i32) -> ti.i32:\\n    s = 0\\n" + "".join("    " * (d + 1) + f"for i{d} in range(a):\\n" for d in range(15)) + "    " * 16 + "s += 1\\n    return s\\n"
assert define(loops, "loops")(1) == 1
"""
    assert child(script) == "alive\n"


def test_a_kernel_of_thousands_of_statements(child: Callable[..., str]) -> None:
    script = """
import linecache
n = 3000
text = "@ti.kernel\\ndef k(a: ti.f64) -> ti.f64:\\n    s = a\\n    t = a\\n" + "".join(f"    s = s * 0.5 + t\\n    t = t + {i % 7}\\n" for i in range(n)) + "    return s\\n"
linecache.cache["long.py"] = (len(text), None, text.splitlines(True), "long.py")
space = {"ti": ti}
exec(compile(text, "long.py", "exec"), space)
begin = time.perf_counter()
found = space["k"](1.0)
seconds = time.perf_counter() - begin
s = t = 1.0
for i in range(n):
    s, t = s * 0.5 + t, t + i % 7
assert abs(found - s) < 1e-6 * abs(s), (found, s)
assert seconds < 40, seconds
"""
    assert child(script, 120) == "alive\n"


def test_syntax_garbage(child: Callable[..., str]) -> None:
    bodies = [
        "    x: int", "    assert False, data", "    a = b = c = data", "    [1, 2, 3][5]", "    ti", "    ti.field(ti.f32, 3)", "    data = 5", "    data[0][1] = 2", "    data[None] = 1",
        "    data[...] = 1", "    data[1:2] = 1", "    data['a'] = 1", "    data()", "    data.fill(0)", "    data.to_numpy()", "    ti.init()", "    exec('1')", "    eval('data')", "    k()", "    lambda: 0", "    a, b = 1",
        "    a, *b = 1, 2, 3", "    a = {}", "    a = {1, 2}", "    a = f'{data}'", "    a = 'x' + 1", "    a = None + 1", "    return data", "    return lambda: 0", "    for i in 5:\n        pass", "    for i in data, data:\n        pass",
        "    for i, j in data:\n        pass", "    for data[0] in range(3):\n        pass", "    while data:\n        break", "    if data:\n        pass", "    nonlocal data", "    class A:\n        pass", "    a = (yield)",
        "    a = ti.Vector([])", "    a = ti.Matrix([[1, 2], [3]])", "    a = ti.Vector([1, 2]) @ 3", "    a = ti.Vector([1, 2])[2]", "    a = ti.Vector([1, 2])[0.5]", "    a = ti.Vector(10**9)", "    a = ti.Matrix.zero(ti.f32, 10**5, 10**5)",
        "    a = 1 << 10**10", "    a = 10**10**3", "    a = 2**-1 // 0", "    a = 1 / 0", "    a = 1 % 0", "    a = 1.5 // 0", "    a = float('nan') // 0.0", "    a = 10**400 * 1.0", "    a = ~1.5", "    a = not data", "    a = -'x'", "    a = 1 if data else 2",
        "    a = ti.sin('x')", "    a = ti.sin()", "    a = ti.cast(1, 'f32')", "    a = ti.cast(1, data)", "    a = min()", "    a = range(3)", "    a = print", "    a = ti.static(data[0])", "    for i in ti.static(range(10**9)):\n        pass",
        "    for i in ti.static(5):\n        pass", "    a = ti.random(5)", "    for i in range(1, 2, 0):\n        pass", "    for i in range():\n        pass", "    for i in range(1, 2, 3, 4):\n        pass", "    for i in ti.ndrange():\n        pass",
        "    for i in ti.ndrange(*[2] * 40):\n        pass", "    for i in ti.grouped(5):\n        pass", "    data[0] += 'x'", "    data[0] @= 2", "    data[0] = data", "    del data[0]", "    data.grad = 3", "    data.shape = 5", "    a = data.nothing",
        "    a = data.__class__", "    a = ().__class__.__bases__", "    a = __import__('os')", "    a = 0xFFFFFFFFFFFFFFFFFFFFFFFF", "    a = 1e999", "    a = 1j", "    a = b'x'", "    a = ...", "    return 1, 2", "    a = [i for i in data]", "    a: ti.f32 = data", "    match 1:\n        case 1:\n            pass",
        "    a = ti.Vector([data, data])", "    ti.atomic_add(1, 2)", "    ti.atomic_add(data, 2)", "    a = ti.select(data, 1, 2)", "    a = ti.Vector([1, 2]).norm(1, 2, 3)", "    a = ti.Vector([1, 2]).cross(ti.Vector([1, 2, 3, 4]))", "    assert ti.Vector([1, 2])", "    ti.loop_config(serialise=True)",
        "    ti.static_assert(False, 'no')", "    ti.static_assert(data[0] > 1)", "    with ti.ad.Tape(loss=loss):\n        pass", "    a = data[data]", "    a = data[True]", "    a = data[10**20]", "    data[0] = 10**20", "    data[0] = 10**400", "    a = 10**20",
    ]  # fmt: skip
    script = f"""
import linecache, resource
# What asks for all memory shall not take the machine with it.
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
bodies = {bodies!r}
bugs, crashes = [], []
for number, body in enumerate(bodies):
    text = "@ti.kernel\\ndef k():\\n" + body + "\\n"
    file = f"garbage{{number}}.py"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space = {{"ti": ti, "data": data, "loss": loss}}
    warnings.simplefilter("ignore")
    begin = time.perf_counter()
    try:
        exec(compile(text, file, "exec"), space)
        space["k"]()
    except SyntaxError:
        pass
    except BaseException as error:
        if not isinstance(error, (ti.TaichiCompilationError, ti.TaichiRuntimeError, ValueError)) or type(error).__module__ != "tinote.errors":
            bugs.append((body.strip(), type(error).__name__, str(error)[:300]))
    if time.perf_counter() - begin > 5:
        bugs.append((body.strip(), "slow", time.perf_counter() - begin))
    data.from_numpy(np.arange(N, dtype=float))
for bug in bugs:
    print(*bug, sep=" | ")
"""
    assert child(script, 180) == "alive\n"


def test_a_local_array_that_is_too_large(child: Callable[..., str]) -> None:
    script = """
import linecache
def define(n):
    text = f"@ti.kernel\\ndef k(i: ti.i32) -> ti.f32:\\n    a = ti.Vector([0.0] * {n})\\n    a[i] = 5.0\\n    return a[i]\\n"
    file = f"local{n}.py"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space = {"ti": ti}
    exec(compile(text, file, "exec"), space)
    return space["k"]
import resource
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
assert define(64)(3) == 5
begin = time.perf_counter()
for n in (20_000, 1_000_000):
    text = refused(lambda: define(n)(3), ti.TaichiCompilationError)
    assert f"local{n}.py" in text, text
assert time.perf_counter() - begin < 20
"""
    assert child(script) == "alive\n"


def test_out_of_range_everywhere(child: Callable[..., str]) -> None:
    script = """
g = ti.field(ti.f32, shape=(7, 5))
v = ti.Vector.field(3, ti.f32, shape=6)
@ti.kernel
def store(i: ti.i32, j: ti.i32):
    g[i, j] = 1
@ti.kernel
def load(i: ti.i32, j: ti.i32) -> ti.f32:
    return g[i, j]
@ti.kernel
def atomic(i: ti.i32, j: ti.i32):
    for k in range(10):
        g[i + k, j] += 1
@ti.kernel
def component(i: ti.i32, k: ti.i32):
    v[i][k] = 1
@ti.kernel
def local(i: ti.i32) -> ti.i32:
    a = ti.Vector([1, 2, 3])
    a[i] = 5
    return a[i]
@ti.kernel
def wide(i: ti.i64) -> ti.f32:
    return v[i].x
low, high = -(2**31), 2**31 - 1
for i, j in ((7, 0), (0, 5), (-1, 0), (0, -1), (low, low), (high, high), (high, 0), (0, low)):
    for act in (lambda: store(i, j), lambda: load(i, j), lambda: atomic(i, j), lambda: component(i - 1 if i > 0 else i, j - 2 if j > 0 else j) if (i, j) != (0, 5) else component(0, 3)):
        text = refused(act, IndexError)
        assert "line" in text, text
for i in (3, -1, low, high):
    refused(lambda: local(i), IndexError)
for i in (6, -1, 2**32, 2**32 + 1, -(2**63), 2**63 - 1):
    refused(lambda: wide(i), IndexError)
assert load(6, 4) == 0
"""
    assert child(script) == "alive\n"


def test_a_thousand_redefinitions(child: Callable[..., str]) -> None:
    script = """
import gc
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE")
before = 0
for number in range(400):
    x = ti.field(ti.f32, shape=100)
    @ti.kernel
    def run(a: ti.f32):
        for i in x:
            x[i] = a * i
    run(number)
    assert x[3] == 3 * number
    if number == 100:
        gc.collect()
        before = resident()
gc.collect()
grown = (resident() - before) / 300 * 1000
assert grown < 20e6, grown
"""
    assert child(script) == "alive\n"


def test_using_what_a_reset_took(child: Callable[..., str]) -> None:
    script = """
view = data.numpy_view()
held = total
ti.reset()
refused(held, ValueError)
refused(lambda: data[0], ValueError)
assert view[5] == 5
data = ti.field(ti.f64, shape=N, needs_grad=True)
loss = ti.field(ti.f64, shape=(), needs_grad=True)
data.from_numpy(np.arange(N, dtype=float))
"""
    assert child(script) == "alive\n"
