"""Errors as a notebook shows them: what stands in the view, what it leaves alone, and the manual's page about them."""

from __future__ import annotations

import html
import importlib
import linecache
import pickle
import pkgutil
import re
import traceback
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from IPython.core.interactiveshell import InteractiveShell

import tinote
import tinote as ti
from tinote import errors
from tinote.errors import AccessRuleError, CompilerBug, Note, TinoteError
from tinote.manual import ERRORS, section_of, tutorials
from tinote.source import Span
from tinote.viz.notebook import error_view
from tinote.viz.notebook.error_view import error_as_html
from tinote.viz.notebook.front_end import Audience
from tinote.viz.notebook.view import describe_error

PAGE = (tutorials() / ERRORS).read_text(encoding="utf-8")


def text_of(view: str) -> str:
    """What a reader sees: no style sheet, no tags, characters for entities."""
    return html.unescape(re.sub(r"<[^>]+>", "", re.sub(r"<style>.*?</style>", "", view, flags=re.DOTALL)))


def raised_by(text: str, file: str) -> TinoteError:
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"__name__": "users", "ti": ti}
    with pytest.raises(TinoteError) as raised:
        exec(compile(text, file, "exec"), scope)
    return raised.value


BROKEN = """\
@ti.func
def half(a):
    return a < "</pre><script>alert(1)</script>" * missing

@ti.kernel
def broken():
    for i in range(4):
        half(i)

broken()
"""


# ---- the view


def test_a_broken_rule_of_access_is_described_once_by_its_own_view():
    """The card next to it hides the text and has the link, and the sentence stands in the rule view alone."""
    ti.init()
    b = ti.field(ti.f32, shape=(), needs_grad=True, name="b")
    loss = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def square():
        loss[None] += b[None] ** 2

    @ti.kernel
    def change():
        b[None] += 1.0

    with pytest.raises(AccessRuleError) as broken, ti.ad.Tape(loss, validation=True):
        square()
        change()
    shown = text_of(error_as_html(broken.value))
    assert broken.value.message not in shown and "AccessRuleError" in shown and "What this means" in shown
    alone = pickle.loads(pickle.dumps(broken.value))  # Without what its view would need.
    assert broken.value.message in text_of(error_as_html(alone))


def test_it_shows_what_the_text_shows_and_escapes_the_source():
    ti.init()
    error = raised_by(BROKEN, "broken & more.py")
    view = error_as_html(error)
    shown = text_of(view)
    for line in error.lines():
        assert line.replace("`", "") in shown  # What is code looks like it.
    assert "<script" not in view and "&lt;script&gt;" in view and "broken &amp; more.py" in view
    caret = re.search(r'<span class="caret">(.*?)</span>', view)
    assert caret is not None and "^" in caret[1]


NO_PLACE = """\
import numpy as np
x = ti.field(ti.f32, shape=5)


def show(points):
    return ti.viz.Particles(points)


{}
"""


@pytest.mark.parametrize("statement", ["x[5] = 1.0", "x[0, 0]", "x[0] = 'one'", "x.fill('one')"])
def test_an_error_without_a_place_of_its_own_shows_the_line_that_it_came_through(statement: str, shell: Any, capsys):
    ti.init()
    text = NO_PLACE.format(statement)
    error = raised_by(text, "program.py")
    line = ["program.py, line 9", f"    9 | {statement}", "      | " + "^" * len(statement.partition(" =")[0])]
    assert text_of(error_as_html(error)).startswith("\n".join(line) + error.message)
    assert error._render_traceback_()[:4] == [*line, error.message]
    assert describe_error(error).splitlines()[:4] == [*line, error.message]
    shell.run_cell(text)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert re.search(rf"Cell In\[\d+\], line 9\n    9 \| {re.escape(statement)}\n", shown), shown


def test_the_innermost_line_of_the_user_is_shown():
    ti.init()
    error = raised_by(NO_PLACE.format("show(x)"), "program.py")
    assert error.place[:2] == ("program.py", 6) and "ti.viz.Particles(points)" in text_of(error_as_html(error))


def test_the_way_here_is_folded_and_begins_with_the_user():
    ti.init()
    error = raised_by(BROKEN, "broken.py")
    folded = re.search(
        r"<details><summary>(.*?)</summary><pre.*?>(.*?)</pre></details>", error_as_html(error), re.DOTALL
    )
    assert folded is not None and "open" not in folded[0].partition(">")[0]
    rows = folded[2].splitlines()
    assert rows[0].startswith(str(Path(__file__))), "the program that called the package"
    at = rows.index("broken.py, line 10")
    assert rows[at + 1] == "    broken()" and rows[at + 2].startswith("tinote/lang/kernels/kernel.py, line ")
    assert str(Path(tinote.__file__).parent) not in folded[2]


def test_an_interrupt_shows_the_kernel_where_it_was_and_the_call():
    text = "def run():\n    while True:\n        pass\n\nrun()\n"
    linecache.cache["loop.py"] = (len(text), None, text.splitlines(keepends=True), "loop.py")

    def interrupt() -> None:
        raise KeyboardInterrupt

    try:
        exec(compile("\n\n\n\nrun()", "loop.py", "exec"), {"__name__": "users", "run": interrupt})
    except KeyboardInterrupt as error:
        errors.note_interruption(error, "interrupted in the kernel 'run'", Span("loop.py", 2, 4, 2, 15))
        errors.note_interruption(error, "outer", Span("loop.py", 1))
        shown, plain = text_of(error_as_html(error)), "".join(traceback.format_exception_only(error))
    place = "loop.py, line 2\n    2 |     while True:\n      |     ^^^^^^^^^^^"
    assert shown.startswith(f"{place}interrupted in the kernel 'run'note: called here")
    assert plain == f"KeyboardInterrupt\ninterrupted in the kernel 'run':\n{place}\n"
    error = ValueError("said once")
    assert text_of(error_as_html(error)) == "said onceValueError"


def test_every_part_of_an_error_is_there():
    error = TinoteError("first <b>", hint="do & that", notes=[Note("seen there", Span("nowhere.py", 3))])
    error.others = (TinoteError("second"),)
    shown = text_of(error_as_html(error))
    for part in ("first <b>", "help: do & that", "note: seen there", "second", "TinoteError"):
        assert part in shown
    assert "step 'offload'" in text_of(error_as_html(CompilerBug("offload", "KeyError: 'x'")))


def test_a_fault_of_the_compiler_shows_what_caused_it():
    def step() -> None:
        raise KeyError("buffer")

    with pytest.raises(CompilerBug) as raised:
        try:
            step()
        except KeyError as error:
            raise CompilerBug("offload", "KeyError: 'buffer'") from error
    folded = text_of(error_as_html(raised.value)).partition("How the program came here")[2]
    assert "because of KeyError: 'buffer'" in folded
    assert folded.index("because of") < folded.index("in step") < folded.index('raise KeyError("buffer")')


def test_a_deep_recursion_is_cut():
    def fall(n: int) -> None:
        if n:
            fall(n - 1)
        raise TinoteError("deep")

    with pytest.raises(TinoteError) as raised:
        fall(200)
    shown = text_of(error_as_html(raised.value))
    assert "more calls" in shown and shown.count(", in ") == error_view.FRAMES


def test_the_way_to_a_refused_gradient_has_the_users_lines_and_the_call():
    ti.init()
    program = """
total = ti.field(ti.f32, shape=(), needs_grad=True)
a = ti.field(ti.f32, shape=4, needs_grad=True)

@ti.kernel
def running_sum():
    for i in a:
        total[None] += a[i]
        a[i] = total[None]

with ti.ad.Tape(total):
    running_sum()
"""
    folded = text_of(error_as_html(raised_by(program, "sums.py"))).partition("How the program came here")[2]
    frames = [line for line in folded.splitlines() if ", line " in line]
    assert [frame.rpartition("/")[2].partition(",")[0] for frame in frames] == [
        Path(__file__).name,
        "sums.py",
        "kernel.py",
    ]


# ---- a shell


@pytest.fixture
def shell():
    made = InteractiveShell.instance()
    made.reset(new_session=True)
    made.run_line_magic("load_ext", "tinote")
    made.run_cell("import tinote as ti\nti.init()")
    yield made
    made.run_line_magic("unload_ext", "tinote")


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    shown: list[dict[str, str]] = []
    monkeypatch.setattr(error_view, "publish_display_data", shown.append)
    monkeypatch.setattr(error_view, "audience", lambda: Audience.PROGRAM)
    return shown


FAILS = "@ti.kernel\ndef f():\n    for i in range(3):\n        a = nothing\n\nf()"


def test_a_failed_cell_shows_it_next_to_the_text(shell, published, capsys):
    result = shell.run_cell(FAILS, store_history=True)
    assert [data.keys() for data in published] == [{"text/html"}]
    assert "a = nothing" in published[0]["text/html"]
    printed = capsys.readouterr()
    assert "        a = nothing" in printed.out + printed.err and result.error_in_exec is not None


def test_other_errors_a_terminal_and_a_removed_extension_show_nothing(shell, published, monkeypatch):
    shell.run_cell("1 / 0")
    monkeypatch.setattr(error_view, "audience", lambda: Audience.NOBODY)
    shell.run_cell(FAILS)
    monkeypatch.setattr(error_view, "audience", lambda: Audience.PERSON)
    shell.run_line_magic("unload_ext", "tinote")
    shell.run_cell(FAILS)
    shell.run_line_magic("load_ext", "tinote")
    assert published == []
    shell.run_line_magic("load_ext", "tinote")
    shell.run_line_magic("reload_ext", "tinote")
    shell.run_cell(FAILS)
    assert len(published) == 1


def test_a_fault_of_the_view_leaves_the_text(shell, published, monkeypatch, capsys):
    monkeypatch.setattr(error_view, "error_as_html", lambda error: 1 / 0)
    shell.run_cell(FAILS)
    printed = capsys.readouterr()
    assert published == [] and "a = nothing" in printed.out + printed.err and "ZeroDivision" not in printed.err


# ---- the manual's page


def error_classes() -> list[type]:
    for module in pkgutil.walk_packages(tinote.__path__, "tinote."):
        if module.name.startswith(("tinote.viz", "tinote.lang", "tinote.compiler", "tinote.runtime")):
            importlib.import_module(module.name)
    found: list[type] = [CompilerBug, TinoteError]
    for one in found:
        found += [sub for sub in one.__subclasses__() if sub.__module__.startswith("tinote.")]
    return sorted(set(found), key=lambda one: one.__name__)


def test_each_class_has_its_section_and_the_link_leads_there(tmp_path, monkeypatch):
    titles = set(re.findall(r"^## (\w+)$", PAGE, re.MULTILINE))
    classes = error_classes()
    assert titles == {one.__name__ for one in classes}
    for one in classes:
        section = section_of(one, tmp_path)
        file, _, fragment = section.address.partition("#")
        assert (tmp_path / unquote(file)).samefile(tutorials() / ERRORS) and fragment == one.__name__
    monkeypatch.chdir(tmp_path)
    assert '#KernelTypeError"' in error_as_html(errors.KernelTypeError("no"))

    class Mine(errors.FieldError):
        pass

    assert section_of(Mine, tutorials()).address == "errors.md#FieldError"


def test_copies_of_the_manual_next_to_a_notebook_come_first(tmp_path):
    (tmp_path / ERRORS).write_text("# Errors\n\n## FieldError\n", encoding="utf-8")
    assert section_of(errors.FieldError, tmp_path).address == "errors.md#FieldError"
    assert section_of(errors.KernelTypeError, tmp_path).address == "errors.md"


def test_without_the_manual_there_is_no_link(monkeypatch, tmp_path):
    def missing() -> Path:
        raise FileNotFoundError

    monkeypatch.setattr("tinote.manual.tutorials", missing)
    monkeypatch.chdir(tmp_path)
    view = error_as_html(TinoteError("no"))
    assert "<a " not in view and "no" in text_of(view)


@pytest.mark.parametrize(
    ("title", "program"), re.findall(r"^## (\w+)$(?:(?!^## ).)*?^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
)
def test_the_examples_raise_what_they_explain(title: str, program: str):
    ti.init(arch=ti.cpu)
    error = raised_by(program, f"<example of {title}>")
    assert type(error).__name__ == title
