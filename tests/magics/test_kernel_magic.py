"""`%%kernel` in a real IPython shell: what it defines, what it prints, what it says when something is wrong."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell

import tinote as ti
from tinote.compiler.driver import binary_cache
from tinote.errors import KernelNameError, KernelSyntaxError, MagicUsageError
from tinote.lang.kernels.func import Func
from tinote.lang.kernels.kernel import Kernel


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    made = InteractiveShell.instance()
    made.reset(new_session=True)
    made.run_line_magic("load_ext", "tinote")
    made.run_cell("import tinote as ti\nti.init()\nx = ti.field(ti.f32, shape=4)\ny = ti.field(ti.f32, shape=4)")
    yield made
    made.run_line_magic("unload_ext", "tinote")
    made.reset(new_session=True)


def run(shell: InteractiveShell, cell: str) -> Any:
    return shell.run_cell(cell, store_history=True)


def error_of(shell: InteractiveShell, cell: str) -> BaseException:
    result = run(shell, cell)
    found = result.error_in_exec or result.error_before_exec
    assert found is not None, "the cell raised nothing"
    return found


FILL = "%%kernel --quiet\ndef fill(a: ti.f32):\n    for i in x:\n        x[i] = a * i\n"


def test_functions_become_kernels_and_the_rest_runs(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    result = run(
        shell,
        "%%kernel\n@ti.func\ndef double(a):\n    return 2 * a\n\n"
        "def fill(a: ti.f32):\n    for i in x:\n        x[i] = double(a) * i\n\n"
        "fill(1.5)\ntotal = float(x.to_numpy().sum())\ntotal",
    )
    assert result.success and isinstance(shell.user_ns["fill"], Kernel) and isinstance(shell.user_ns["double"], Func)
    assert shell.user_ns["total"] == 18.0
    printed = capsys.readouterr().out
    assert "18.0" in printed and "func double, kernel fill" in printed


def test_quiet_prints_nothing(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shell, FILL).success
    assert capsys.readouterr().out == ""


def test_running_a_cell_again_replaces_the_kernel_for_whoever_holds_it(shell: InteractiveShell) -> None:
    run(shell, FILL)
    held = shell.user_ns["fill"]
    run(shell, FILL.replace("a * i", "a + i"))
    held(1.0)
    assert shell.user_ns["x"].to_numpy().tolist() == [1.0, 2.0, 3.0, 4.0]
    assert shell.user_ns["fill"] is held


def test_running_an_unchanged_cell_compiles_nothing(shell: InteractiveShell) -> None:
    run(shell, FILL + "\nfill(2.0)")
    compiled = binary_cache.compiled
    run(shell, FILL + "\nfill(3.0)")
    assert binary_cache.compiled == compiled
    assert shell.user_ns["x"][3] == 9.0


def test_a_changed_constant_is_seen(shell: InteractiveShell) -> None:
    run(shell, "c = 2.0")
    run(shell, "%%kernel -q\ndef fill():\n    for i in x:\n        x[i] = c\n")
    run(shell, "fill()")
    run(shell, "c = 5.0\nfill()")
    assert shell.user_ns["x"][0] == 5.0


def test_an_error_names_the_cell_and_its_line(shell: InteractiveShell) -> None:
    with pytest.warns(UserWarning, match="`missing` is not defined yet"):
        run(shell, "%%kernel -q\ndef broken():\n    for i in x:\n        x[i] = missing\n")
    error = error_of(shell, "broken()")
    assert isinstance(error, KernelNameError)
    assert error.span.line == 4 and "        x[i] = missing" in str(error) and "^^^^^^^" in str(error)
    rendered = "\n".join(error._render_traceback_())
    assert "Cell In[" in rendered and "line 4" in rendered and "tinote/" not in rendered


def test_cells_have_their_names_without_the_extension(shell: InteractiveShell) -> None:
    shell.run_line_magic("unload_ext", "tinote")
    error = error_of(shell, "@ti.kernel\ndef broken():\n    for i in x:\n        x[i] = missing\nbroken()")
    assert re.search(r"^Cell In\[\d+\], line 4$", str(error), re.MULTILINE)


def test_a_syntax_error_is_located(shell: InteractiveShell) -> None:
    error = error_of(shell, "%%kernel\ndef f(:\n    pass\n")
    assert isinstance(error, KernelSyntaxError) and error.span.line == 2


@pytest.mark.parametrize("options", ["--no-such-option", "-O7", "-O", "--time=3"])
def test_a_bad_option_is_an_error(shell: InteractiveShell, options: str) -> None:
    error = error_of(shell, f"%%kernel {options}\ndef f():\n    pass\n")
    assert isinstance(error, MagicUsageError) and "lists the options" in str(error)


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_levels_of_optimisation(shell: InteractiveShell, level: int) -> None:
    assert run(shell, FILL.replace("--quiet", f"--quiet -O{level}") + "\nfill(3.0)").success
    assert shell.user_ns["fill"].config.opt_level == level
    assert shell.user_ns["x"][2] == 6.0


def test_time_lists_the_steps(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    run(shell, FILL.replace("--quiet", "--time"))
    printed = capsys.readouterr().out
    assert "front end" in printed and "infer_types" in printed and "LLVM" in printed and " ms" in printed


def test_grad_reports_what_cannot_be_differentiated(shell: InteractiveShell) -> None:
    run(shell, "z = ti.field(ti.f32, shape=4, needs_grad=True)")
    error = error_of(shell, "%%kernel --grad -q\ndef f():\n    for i in z:\n        ti.atomic_max(z[0], z[i])\n")
    assert isinstance(error, ti.errors.DifferentiationError) and error.span.line == 4


def test_magic_documents_itself(shell: InteractiveShell) -> None:
    shown = shell.magics_manager.magics["cell"]["kernel"].__doc__
    assert shown is not None and "--explore" in shown and "ordinary Python" in shown


def test_options_are_completed(shell: InteractiveShell) -> None:
    line = "%%kernel --ex"
    with provisionalcompleter():
        found = [c.text for c in shell.Completer.completions(line, len(line))]
    assert any("--explore" in f for f in found)


def test_explore_refuses_what_is_no_kernel(shell: InteractiveShell) -> None:
    assert isinstance(error_of(shell, "%explore x"), MagicUsageError)
    assert isinstance(error_of(shell, "%explore"), MagicUsageError)


def rendered(error: BaseException) -> str:
    """What IPython shows for the error, without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error._render_traceback_()))  # type: ignore[attr-defined]


def test_lines_are_true_below_blank_lines_and_other_magics_work(shell: InteractiveShell) -> None:
    error = error_of(shell, "%%kernel -q\n\n\ndef broken():\n    x[0] = missing\n\n%timeit -n1 -r1 -q 0\nbroken()")
    assert isinstance(error, KernelNameError) and error.span.line == 5


def test_an_error_of_the_other_lines_is_shown_from_the_cell_on(shell: InteractiveShell) -> None:
    shown = rendered(error_of(shell, "%%kernel -q\ndef f():\n    x[0] = 1.0\n\nvalues = [1]\nvalues[3]"))
    assert "IndexError: list index out of range" in shown and "----> 6 values[3]" in shown
    assert "kernel_magic" not in shown and "run_cell_magic" not in shown


@pytest.mark.parametrize("cell", ["return 3", "def g():\n    x[0] = 1.0\nawait g()"])
def test_what_only_python_refuses_is_located_too(shell: InteractiveShell, cell: str) -> None:
    error = error_of(shell, f"%%kernel\n{cell}")
    assert isinstance(error, KernelSyntaxError) and "outside function" in str(error)
    assert error.span.line == 1 + len(cell.splitlines())


def test_an_interrupt_is_shown_at_the_lines_of_the_cells(shell: InteractiveShell) -> None:
    run(shell, "%%kernel -q\ndef endless():\n    k = 0\n    while k < 1:\n        x[0] += 1.0\n")
    run(
        shell,
        "import os, signal, threading\ndef begin():\n    "
        "threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()\n    endless()",
    )
    error = error_of(shell, "\nbegin()")
    assert type(error) is KeyboardInterrupt
    shown = rendered(error)
    assert "tinote" not in shown
    assert "\nKeyboardInterrupt\ninterrupted in the kernel 'endless':\n" in shown
    assert shown.endswith("    4 |     while k < 1:\n      |     ^^^^^^^^^^^^")
    assert "begin()\n      | ^^^^^^^" in shown and "    endless()\n      |     ^^^^^^^^^" in shown


GRADIENTS = """%%kernel --grad
def total():
    for i in z:
        L[None] += z[i] * z[i]

def lost():
    for i in z:
        x[i] = z[i]

def constant():
    for i in x:
        L[None] += x[i]

def returned() -> ti.f32:
    return z[0] * z[1]

def counted() -> ti.i32:
    return 3
"""


def test_grad_says_what_leads_where(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    run(shell, "z = ti.field(ti.f32, shape=4, needs_grad=True)\nL = ti.field(ti.f32, shape=(), needs_grad=True)")
    assert run(shell, GRADIENTS).success
    printed = capsys.readouterr().out
    assert "total.grad: from the gradient of L to that of z\n" in printed
    assert "lost.grad does nothing: lost writes x, without a gradient\nhelp: make x with needs_grad=True\n" in printed
    assert "constant.grad changes no gradient: L depends on no field with a gradient\nhelp: make x with" in printed
    assert (
        "returned.grad does nothing: returned writes no field with a gradient\nhelp: what returned returns" in printed
    )
    assert "counted.grad does nothing: counted writes no field\n" in printed
    assert run(shell, GRADIENTS.replace("--grad", "--grad --quiet")).success
    assert capsys.readouterr().out == ""


def test_explore_takes_a_kernel_with_parameters_before_and_after_a_call(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    run(shell, FILL)
    assert run(shell, "%explore fill").success
    assert run(shell, "%explore -g fill").success
    template = "%%kernel --explore -q\ndef by(f: ti.template()):\n    for i in f:\n        f[i] = 1.0\n"
    capsys.readouterr()
    assert run(shell, template).success
    assert "compiled when it is called" in capsys.readouterr().out
    assert run(shell, template + "\nby(x)").success
    assert capsys.readouterr().out.count("IR explorer of by") == 1


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%%kernel --", {"--explore", "--time", "--grad", "--debug", "--quiet"}),
        ("%%kernel --grad --", {"--explore", "--time", "--debug", "--quiet"}),
        ("%%kernel -O", {"-O0", "-O1", "-O2", "-O3"}),
        ("%explore fi", {"fill"}),
        ("%explore --", {"--grad"}),
    ],
)
def test_completion_offers_what_fits_and_nothing_else(shell: InteractiveShell, line: str, expected: set[str]) -> None:
    run(shell, FILL + "\nfigure = 1")
    with provisionalcompleter():
        found = {c.text for c in shell.Completer.completions(line + "\ndef f():\n    pass", len(line))}
    assert found == expected


def test_the_help_text_calls_the_magic_by_its_name(shell: InteractiveShell) -> None:
    assert "%%kernel [-e] [-t] [-g] [-d]" in shell.magics_manager.magics["cell"]["kernel"].__doc__


def test_a_module_that_is_loaded_again_reaches_the_names_of_the_notebook(
    shell: InteractiveShell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    module = tmp_path / "tinote_reloaded.py"

    def write(number: int) -> None:
        module.write_text(
            "import tinote as ti\n"
            f"@ti.kernel\ndef answer() -> ti.i32:\n    return {number}\n"
            f"@ti.func\ndef add(a):\n    return a + {number}\n"
            "@ti.dataclass\nclass Body:\n    mass: ti.f32\n"
            f"    @ti.func\n    def heavy(self):\n        return {number} * self.mass\n"
        )
        os.utime(module, (number, number))  # later for a larger number, however fast this runs

    write(1)
    run(shell, "%load_ext autoreload\n%autoreload 2\nfrom tinote_reloaded import Body, add, answer")
    cell = "%%kernel -q\ndef use() -> ti.f32:\n    return add(10) + Body(100.0).heavy()\nanswer(), use()"
    assert run(shell, cell).result == (1, 111)
    write(2)
    assert run(shell, "answer(), use()").result == (2, 212)
    run(shell, "%autoreload 0")
    assert "Error" not in capsys.readouterr().out


def test_explore_knows_near_names(shell: InteractiveShell) -> None:
    run(shell, FILL)
    assert "did you mean 'fill'" in str(error_of(shell, "%explore fil"))


def test_loading_the_extension_again_is_silent(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    run(shell, "%load_ext tinote")
    assert capsys.readouterr().out == ""
    run(shell, "%unload_ext tinote\n%load_ext tinote\n%reload_ext tinote\n%load_ext tinote")
    assert capsys.readouterr().out == "" and run(shell, FILL).success
    run(shell, "%load_ext autoreload\n%load_ext autoreload")
    assert "The autoreload extension is already loaded" in capsys.readouterr().out


def warned(shell: InteractiveShell, cell: str) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert run(shell, cell).success
    return [str(one.message) for one in caught]


def test_an_undefined_name_is_reported_when_the_cell_runs(shell: InteractiveShell) -> None:
    cell = "%%kernel -q\ndef f(a: ti.f32):\n    for i in x:\n        x[i] = speeed * sin(a) + speeed\n"
    speed, sine = warned(shell, cell)
    assert "Cell In[" in speed and "line 4" in speed and "x[i] = speeed" in speed
    assert "`speeed` is not defined yet" in speed and "did you mean `ti.sin`?" in sine
    run(shell, "speeds = 3.0\nsin = ti.sin")
    (found,) = warned(shell, cell)
    assert "did you mean `speeds`?" in found
    run(shell, "speeed = 3.0")
    assert warned(shell, cell) == []


@pytest.mark.parametrize(
    ("body", "missing"),
    [
        ("a: flaot = 2.0\n    x[0] = a", "flaot"),
        ("x[0] = [lost for q in range(3)][0]", "lost"),
        ("x[0] = np.pi", "np"),
        ("def inner(q):\n        return q + lost\n    x[0] = inner(1.0)", "lost"),
        ("lost[0] = 1.0", "lost"),
        ("x[0] = (lambda q: q * lost)(2.0)", "lost"),
        ("x[0] = helpr(x[1])", "helpr"),
    ],
)
def test_each_way_to_use_an_undefined_name(shell: InteractiveShell, body: str, missing: str) -> None:
    (found,) = warned(shell, f"%%kernel -q\ndef f():\n    {body}\n")
    assert f"`{missing}` is not defined yet" in found


def test_names_that_are_defined_in_some_way_give_no_warning(shell: InteractiveShell) -> None:
    cell = """%%kernel -q
import math
T = ti.types.vector(2, ti.f32)

def f(n: ti.i32, s: ti.template()):
    v: T = ti.Vector([1.0, 2.0])
    total = sum([q * q for q in range(3)]) + later + abs(n) + math.pi
    for i in x:
        for j in ti.static(range(2)):
            x[i] += v[j] + total
        while (w := n) > 5:
            n -= 1
        def inner(q, r=3.0):
            return q + r + i + helper(w)
        x[i] = inner(2.0) + (lambda z: z + s)(1.0) + g(x[i])

def g(a: ti.f32) -> ti.f32:
    if ti.static(True):
        b = 1.0
    else:
        b = 2.0
    return a + b

@ti.func
def helper(a):
    return a * later

@ti.data_oriented
class Solver:
    gain = 2.0

    @ti.kernel
    def step(self):
        for i in x:
            x[i] *= self.gain

    def prepare(self):
        global made_here
        made_here = [self for one in range(3)]

def last():
    x[0] = made_here[0]

later = 1.0
"""
    assert warned(shell, cell) == []
