"""Kernels that several threads call for the first time: one thread compiles, the others wait."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

import pytest

import tinote as ti
from tests.survival.child import run_child
from tinote.compiler.driver import Specialisation
from tinote.compiler.requests import GRADIENT
from tinote.compiler.single_flight import SingleFlight
from tinote.errors import KernelSyntaxError

THREADS = 100


def at_once(call: Callable[[int], object]) -> list[object]:
    """What the calls gave, or raised, from threads that begin together."""
    barrier, found = threading.Barrier(THREADS), [None] * THREADS

    def work(number: int) -> None:
        barrier.wait(60)
        try:
            found[number] = call(number)
        except Exception as error:
            found[number] = error

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert not any(thread.is_alive() for thread in threads)
    return found


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the front end ran, and each request was compiled."""
    counts: Counter[str] = Counter()
    lower, compile_ = Specialisation._lower, Specialisation._compile

    def counted_lower(self: Specialisation) -> None:
        counts["front end"] += 1
        lower(self)

    def counted_compile(self: Specialisation, request):
        counts[request.name] += 1
        return compile_(self, request)

    monkeypatch.setattr(Specialisation, "_lower", counted_lower)
    monkeypatch.setattr(Specialisation, "_compile", counted_compile)
    return counts


def test_an_instance_is_compiled_once(made: Counter[str]) -> None:
    ti.init(offline_cache=False)

    @ti.kernel
    def power(x: ti.i32, n: ti.template()) -> ti.i32:
        result = 1
        for _ in ti.static(range(n)):
            result *= x
        return result

    assert at_once(lambda number: power(2, 3 + number % 2)) == [8, 16] * (THREADS // 2)
    assert made == {"front end": 2, "primal": 2}
    assert len(power.instances) == 2 and sum(instance.calls for instance in power.instances) <= THREADS


def test_a_gradient_is_compiled_once(made: Counter[str]) -> None:
    ti.init(offline_cache=False)
    x = ti.field(ti.f64, shape=(), needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def square():
        loss[None] += x[None] ** 2

    square()
    before = made.copy()
    specialisation = square.instances[0].specialisation
    codes = at_once(lambda _: specialisation.code(GRADIENT))
    assert len(set(map(id, codes))) == 1
    assert sum((made - before).values()) == 1


def test_an_error_comes_to_every_thread() -> None:
    ti.init(offline_cache=False)

    @ti.kernel
    def wrong() -> ti.i32:
        yield 1

    errors = at_once(lambda _: wrong())
    assert {type(error) for error in errors} == {KernelSyntaxError}


def test_a_key_is_kept_no_longer_than_somebody_is_inside() -> None:
    flight = SingleFlight()
    with flight("a"), flight("a"), flight("b"):
        assert flight._locks
    with pytest.raises(ZeroDivisionError), flight("a"):
        1 / 0  # noqa: B018
    assert flight._locks == {}


# A kernel whose compilation lasts until `go` is set, in a thread of its own.
SLOW = """
import os, signal, threading, time
import tinote as ti
ti.init(offline_cache=False)
begun, go = threading.Event(), threading.Event()

def slow():
    begun.set()
    assert go.wait(300)
    return 3

@ti.kernel
def k() -> ti.i32:
    return ti.static(slow())

found = []
worker = threading.Thread(target=lambda: found.append(k()))
worker.start()
begun.wait()
"""


def run_file(script: str, tmp_path) -> str:
    # From a file: a kernel's source must be readable.
    file = tmp_path / "program.py"
    file.write_text(script)
    return run_child(f"import runpy; runpy.run_path({str(file)!r})")


def test_waiting_for_another_thread_is_interrupted(tmp_path) -> None:
    script = """
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    k()
except KeyboardInterrupt:
    print("interrupted", found)
go.set()
worker.join()
print(found, k(), len(k.instances))
"""
    assert run_file(SLOW + script, tmp_path) == "interrupted []\n[3] 3 1\n"


def test_an_interrupted_compilation_is_taken_over(tmp_path) -> None:
    script = """
from tinote.compiler.driver import Specialisation
runs, lower = [], Specialisation._lower
def counted(self):
    runs.append(self)
    lower(self)
Specialisation._lower = counted
def slow():
    if len(runs) == 1:
        for other in others:
            other.start()
        time.sleep(0.2)  # the others wait by now
        signal.raise_signal(signal.SIGINT)
    return 4
@ti.kernel
def k2() -> ti.i32:
    return ti.static(slow())
go.set()
worker.join()
others = [threading.Thread(target=lambda: found.append(k2())) for _ in range(3)]
try:
    k2()
except KeyboardInterrupt:
    pass
for other in others:
    other.join()
print(found, len(runs), k2())
"""
    assert run_file(SLOW + script, tmp_path) == "[3, 4, 4, 4] 2 4\n"


def test_a_forked_child_waits_for_nobody(tmp_path) -> None:
    """The thread that compiles does not exist there."""
    script = """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)
child = os.fork()
if child == 0:
    go.set()
    os._exit(k())
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
go.set()
worker.join()
print(found, k())
"""
    assert run_file(SLOW + script, tmp_path) == "[3] 3\n"
