"""What a user sees when it goes wrong: one golden file a topic; the same from a file, a cell and a `%%kernel` cell."""

from __future__ import annotations

import linecache
import math
import operator
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

import tinote as ti
from tests.lang.wrong_first_steps import FIRST_STEPS
from tests.lang.wrong_programs import HEADING, TOPICS
from tinote.errors import CompilerBug, KernelIndexError, TinoteError

# Some of the programs are warned before they fail.
pytestmark = pytest.mark.filterwarnings(r"ignore:[\s\S]*its derivative is lost:UserWarning")


def programs(topic: str) -> list[str]:
    return [HEADING + part.strip("\n") + "\n" for part in TOPICS[topic].split("---\n")]


def error_of(text: str, file: str) -> Exception:
    """What a program raises under this file name. The source stays known, so that the error can show it."""
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    try:
        exec(compile(text, file, "exec"), {"__name__": "__main__"})
    except Exception as error:
        return error
    raise AssertionError(f"this wrong program runs:\n{text}")


def shown(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("topic", TOPICS)
def test_wrong_programs(topic: str, golden: Callable[..., None]) -> None:
    parts: list[str] = []
    for text in programs(topic):
        error = error_of(text, "program.py")
        assert isinstance(error, TinoteError), f"{shown(error)}\nfrom:\n{text}"
        parts.append(text[len(HEADING) :] + "\n" + shown(error).replace("Error: \n", "Error:\n"))
    golden(("\n" + "=" * 80 + "\n\n").join(parts))


@pytest.mark.parametrize("topic", TOPICS)
def test_every_error_shows_a_line_of_the_program(topic: str) -> None:
    """Errors in Python scope have a traceback of Python's own that shows the line."""
    for text in programs(topic):
        error = error_of(text, "program.py")
        assert not isinstance(error, CompilerBug)
        trace = error.__traceback__
        frames = []
        while trace is not None:
            frames.append(trace.tb_frame.f_code.co_filename)
            trace = trace.tb_next
        assert "program.py, line" in str(error) or "program.py" in frames


def test_the_same_from_a_file(tmp_path: Path) -> None:
    text = programs("unknown names")[1]
    file = tmp_path / "real.py"
    file.write_text(text)
    with pytest.raises(TinoteError) as caught:
        exec(compile(text, str(file), "exec"), {})
    assert str(caught.value).replace(str(file), "program.py") == str(error_of(text, "program.py"))


@pytest.fixture
def shell() -> Any:
    found = InteractiveShell.instance()
    found.run_line_magic("load_ext", "tinote")
    return found


@pytest.mark.parametrize(
    "topic", ["unknown names", "types and shapes", "index ranks", "out of range", "tapes", *FIRST_STEPS]
)
def test_the_same_from_a_cell(topic: str, shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for text in programs(topic):
        found = shell.run_cell(text, store_history=True).error_in_exec
        capsys.readouterr()
        assert isinstance(found, TinoteError), found
        cell = re.sub(r"Cell In\[\d+\], line", "program.py, line", str(found))
        assert "program.py, line" in cell or not found.span.line
        assert cell == str(error_of(text, "program.py"))


def test_the_same_from_a_kernel_cell(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell(HEADING)
    found = shell.run_cell("%%kernel\ndef k():\n    x[0] = speeed\n\nk()\n", store_history=True).error_in_exec
    shown_in_cell = capsys.readouterr()
    assert isinstance(found, NameError)
    lines = str(found).strip().splitlines()
    assert re.fullmatch(r"Cell In\[\d+\], line 3", lines[0])
    assert lines[1:4] == ["    3 |     x[0] = speeed", "      |            ^^^^^^", "`speeed` is not defined"]
    text = re.sub(r"\x1b\[[0-9;]*m", "", shown_in_cell.out + shown_in_cell.err)
    assert "`speeed` is not defined" in text
    assert "tinote/" not in text, "the compiler's own frames are hidden"


def test_a_bad_option_of_the_magic(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    found = shell.run_cell("%%kernel --explode\ndef k():\n    pass\n").error_in_exec
    capsys.readouterr()
    assert isinstance(found, TinoteError)
    assert "--explode" in str(found)
    assert "%%kernel? lists the options" in str(found)


def test_python_catches_them_by_the_usual_names() -> None:
    x = ti.field(ti.f32, shape=3)

    @ti.kernel
    def index(i: ti.i32):
        x[i] = 1

    @ti.kernel
    def name():
        x[0] = no_such_name  # noqa: F821

    @ti.kernel
    def kind():
        x[0] = ti.Vector([1, 2])

    for kernel, argument, usual, dialect in (
        (index, (3,), IndexError, ti.TaichiIndexError),
        (index, (-1,), IndexError, ti.TaichiRuntimeError),
        (name, (), NameError, ti.TaichiNameError),
        (kind, (), TypeError, ti.TaichiCompilationError),
    ):
        with pytest.raises(usual):
            kernel(*argument)
        with pytest.raises(dialect):
            kernel(*argument)


def test_a_name_that_does_not_exist_is_put_right_in_python() -> None:
    x = ti.field(ti.f32, shape=3)
    for use, message in (
        (lambda: ti.sinn(1), "no attribute 'sinn'; did you mean 'sin'?"),
        (lambda: x.shapee, "no attribute 'shapee'; did you mean 'shape'?"),
        (lambda: ti.Vector([1, 2]).normalised(), "did you mean 'normalized'?"),
        (lambda: ti.types.vektor(3), "no attribute 'vektor'"),
    ):
        with pytest.raises(AttributeError) as caught:
            use()
        assert message in str(caught.value)


def test_an_error_leaves_the_kernel_usable() -> None:
    x = ti.field(ti.i32, shape=4)
    limit = 3

    @ti.kernel
    def run(n: ti.i32):
        for i in range(n):
            x[i] += limit

    run(4)
    with pytest.raises(IndexError, match=r"index 4 is out of bounds .*'x' of shape \(4,\)"):
        run(5)
    limit = "three"
    with pytest.raises(TypeError):
        run(4)
    limit = 1
    x.fill(0)
    run(4)
    assert x.to_numpy().tolist() == [1] * 4


@pytest.mark.parametrize(
    "expression", ["x + 1", "2 * x", "x / x", "-x", "abs(x)", "x < 1", "1 >= x", "x @ x", "x ** 2", "x & 1"]
)
def test_arithmetic_of_a_whole_field_says_what_to_write(expression: str) -> None:
    ti.init()
    x = ti.field(ti.f32, shape=3)
    with pytest.raises(TypeError, match=r"compute with `x\[i\]` in a kernel, or.*`x\.to_numpy\(\)`"):
        eval(expression, {"x": x})


def test_a_field_is_no_number_and_still_a_key_and_an_array() -> None:
    ti.init()
    x = ti.field(ti.f32, shape=3)
    assert x == x and {x: 1}[x] == 1 and f"{x}" == str(x)
    assert list(np.ones(3) + np.asarray(x)) == [1.0, 1.0, 1.0]


CONVERSIONS = (float, int, complex, operator.index, round, math.sqrt, "{:.2f}".format, "%f".__mod__, range)


@pytest.mark.parametrize("convert", CONVERSIONS)
@pytest.mark.parametrize("kind", [ti.i32, ti.f64])
def test_what_makes_a_number_of_a_field_says_what_to_write(convert: Callable[[Any], Any], kind: Any) -> None:
    ti.init()
    energy, x, v = ti.field(kind, shape=()), ti.field(kind, shape=3), ti.Vector.field(2, kind, shape=())
    for field, hint in ((energy, "energy[None]"), (x, "x.to_numpy()"), (v, "v[None]")):
        with pytest.raises(TypeError, match="is a field, which is memory and not a number") as caught:
            convert(field)
        assert f"`{hint}`" in str(caught.value) and "convert(field)" in str(caught.value)


def test_numpy_takes_a_field_as_an_array_and_never_as_a_number() -> None:
    ti.init()
    energy, x = ti.field(ti.f32, shape=()), ti.field(ti.f32, shape=3)
    energy[None] = 2.5
    x.fill(2.0)
    assert not np.isscalar(energy) and np.asarray(energy).dtype == np.float32
    assert np.float64(energy) == 2.5 and (np.add(x, 1.0) == 3.0).all() and (np.full(2, energy) == 2.5).all()
    assert (np.linspace(0.0, energy, 3) == [0.0, 1.25, 2.5]).all() and np.stack([x, x]).shape == (2, 3)


def test_an_index_outside_of_a_field() -> None:
    ti.init()
    x = ti.field(ti.f32, shape=3)
    with pytest.raises(KernelIndexError, match=r"not slice\n.*slice the array, `x\.to_numpy\(\)"):
        x[1:2]
    with pytest.raises(KernelIndexError, match=r"not slice\n.*`x\.fill\(…\)` and `x\.from_numpy\(…\)` set all"):
        x[:] = 1.0
