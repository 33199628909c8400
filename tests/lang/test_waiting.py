"""What is shown while a kernel is compiled: nothing at first, then its steps, and nothing afterwards."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import tinote as ti
from tinote.compiler import waiting
from tinote.compiler.waiting import compilation, show_with

PROJECT = Path(__file__).resolve().parents[2]


class Shown:
    """A display that remembers, and says when something was shown."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.closed = 0
        self.reported = threading.Event()

    def show(self, text: str) -> None:
        self.texts.append(text)
        self.reported.set()

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch):
    display = Shown()
    monkeypatch.setattr(waiting, "DELAY_SECONDS", 0.0)
    monkeypatch.setattr(waiting, "INTERVAL_SECONDS", 0.001)
    show_with(lambda: display)
    yield display
    show_with(None)


def steps_of(kernel: object, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps that compiling enters."""
    entered: list[str] = []
    monkeypatch.setattr(waiting._Wait, "enter", lambda self, step: entered.append(step))
    kernel()  # type: ignore[operator]
    return entered


def test_each_step_is_reported_up_to_llvm(shown, monkeypatch):
    ti.init(offline_cache=False)
    x = ti.field(ti.f32, shape=3)

    @ti.kernel
    def fresh():
        for i in x:
            x[i] = 3.25 * i + 0.125

    entered = steps_of(fresh, monkeypatch)
    assert entered[0] == "front end" and entered[-3:] == ["LLVM IR", "LLVM optimises", "LLVM makes machine code"]
    assert {"infer_types", "offload", "mark_vector_loops"} <= set(entered)
    assert steps_of(fresh, monkeypatch) == [], "what is compiled is not reported again"


def test_what_takes_long_is_shown_and_goes_away(shown):
    with compilation("slow") as enter:
        enter("scalarise")
        shown.reported.wait()
        shown.reported.clear()
        enter("offload")
        while not shown.texts[-1].startswith("compiling slow: offload, "):
            shown.reported.wait()
            shown.reported.clear()
        assert not shown.closed
    assert shown.closed == 1
    count = len(shown.texts)
    assert not any(thread.name == "tinote compiles" for thread in threading.enumerate())
    assert len(shown.texts) == count


def test_compilations_of_one_call_are_one_wait(shown, monkeypatch):
    """The second part begins right after the first: it is shown at once, and the seconds go on."""
    monkeypatch.setattr(waiting, "PAUSE_SECONDS", 3600.0)
    with compilation("long") as enter:
        enter("front end")
        shown.reported.wait()
    monkeypatch.setattr(waiting, "_latest", waiting._latest._replace(started=waiting._latest.started - 100))
    shown.reported.clear()
    monkeypatch.setattr(waiting, "DELAY_SECONDS", 90.0)
    with compilation("long") as enter:
        enter("offload")
        assert shown.reported.wait(80)
    assert shown.texts[-1].startswith("compiling long: ") and int(shown.texts[-1].split()[-2]) >= 100
    # One that begins later is a wait of its own.
    monkeypatch.setattr(waiting, "PAUSE_SECONDS", -1.0)
    with compilation("later"):
        pass
    assert "later" not in "".join(shown.texts)


def test_an_error_or_an_interrupt_ends_the_display(shown):
    for error in (ZeroDivisionError, KeyboardInterrupt):
        shown.reported.clear()
        with pytest.raises(error), compilation("bad") as enter:
            enter("offload")
            shown.reported.wait()
            raise error
    assert shown.closed == 2


def test_what_is_quick_is_not_shown(shown, monkeypatch):
    monkeypatch.setattr(waiting, "DELAY_SECONDS", 3600.0)
    with compilation("quick") as enter:
        enter("offload")
    assert shown.texts == [] and shown.closed == 0


def test_other_threads_show_nothing(shown):
    def compile_something() -> None:
        with compilation("other") as enter:
            enter("offload")
            seen.append(enter)

    seen: list[object] = []
    thread = threading.Thread(target=compile_something)
    thread.start()
    thread.join()
    assert seen == [waiting._ignore] and shown.texts == []


def closed() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("stream", [io.StringIO(), None, closed(), object()], ids=["text", "none", "closed", "simple"])
def test_without_a_terminal_nothing_is_made(monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", stream)
    with compilation("quiet") as enter:
        assert enter is waiting._ignore


def test_a_terminal_that_does_not_tell_its_width_is_no_error():
    stream = io.StringIO()
    shown = waiting.Terminal(stream)
    shown.show("x" * 200)
    shown.close()
    assert stream.getvalue() == f"\r\x1b[K{'x' * 79}\r\x1b[K"


PROGRAM = """
from tinote.compiler import waiting
import threading
waiting.DELAY_SECONDS = 0.0
shown = threading.Event()
show = waiting.Terminal.show
waiting.Terminal.show = lambda self, text: (show(self, text), shown.set())
with waiting.compilation("step") as enter:
    enter("offload")
    shown.wait()
"""


def test_a_terminal_gets_a_line_that_is_erased():
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], stderr=theirs, env=environment)
    os.close(theirs)
    written = b""
    try:
        while part := os.read(ours, 4096):
            written += part
    except OSError:
        pass  # Linux's way to say that the other side has closed.
    os.close(ours)
    assert process.wait() == 0
    assert written.startswith(b"\r\x1b[Kcompiling step: ") and written.endswith(b"\r\x1b[K")
