"""The `tinote` command, each time in a process of its own, as a user calls it."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from importlib import metadata
from pathlib import Path

import nbformat
import pytest

from tinote import cli
from tinote.cli.lab import copy_missing, lab
from tinote.distribution import NAME
from tinote.manual import tutorials
from tinote.runtime.store import open_store

PROJECT = Path(__file__).resolve().parents[1]
PICTURE = "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1, 4, 9]);"


def tinote(*arguments: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tinote.cli", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900)


def write_notebook(file: Path, *sources: str) -> Path:
    cells = [nbformat.v4.new_markdown_cell("# A *title*"), *(nbformat.v4.new_code_cell(text) for text in sources)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), file)
    return file


def test_version() -> None:
    version = tinote("--version")
    assert version.returncode == 0
    assert version.stdout == f"tinote {metadata.version(NAME)}\n"


@pytest.mark.parametrize("command", ["lab", "run", "page", "explore", "doctor", "cache"])
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"^0$"):
        cli.main([command, "--help"])
    assert capsys.readouterr().out.startswith(f"usage: tinote {command}")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "required: COMMAND"),
        (["fly"], "invalid choice: 'fly'"),
        (["run"], "required: NOTEBOOK"),
        (["page"], "required: NOTEBOOK"),
        (["explore"], "required: FILE:KERNEL"),
        (["cache"], "required: action"),
        (["lab", "--port", "http"], "invalid port value: 'http'"),
        (["lab", "--port", "99999"], "99999 is not a port: they go from 1 to 65535"),
        (["run", "a.ipynb", "--timeout", "soon"], "invalid seconds value: 'soon'"),
        (["run", "a.ipynb", "--timeout", "0"], "0 is not a time limit"),
    ],
)
def test_a_wrong_call_is_a_usage_error(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match=r"^2$"):
        cli.main(arguments)
    assert complaint in capsys.readouterr().err


def test_page_leaves_a_page_whose_views_run(tmp_path: Path) -> None:
    world = """
import ipywidgets, IPython, numpy as np, tinote as ti
ti.init(arch=ti.cpu)
x = ti.Vector.field(2, ti.f32, shape=5)
pull = ti.field(ti.f32, shape=())

@ti.kernel
def move():
    for i in x:
        x[i] += 0.01 * pull[None]

def step():
    move()

view = ti.viz.Particles(x, step, label="moving")
ipywidgets.VBox([view, ti.viz.slider(view, pull, 0, 1, value=0.5, label="pull")])
"""
    other = "ti.viz.Particles(x, lambda: x.from_numpy(x.to_numpy() + 0.01), label='by Python')"
    html = "IPython.display.HTML('<b>bold</b><script>window.hacked = 1</script>')"
    notebook = write_notebook(tmp_path / "one.ipynb", world, other, html, PICTURE)
    done = tinote("page", notebook, "-o", tmp_path / "out.html")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == str(tmp_path / "out.html")
    sizes = r"with [\d.,]+ kB of WebAssembly and [\d.,]+ kB of memory, for step"
    runs = rf"  <Particles: 5 in \[0, 1\] × \[0, 1\]>: runs, {sizes}"
    assert re.fullmatch(runs, lines[1])
    assert lines[2] == "  by Python: a picture" and lines[3].startswith("    without a run: ")
    assert "this cannot be captured" in done.stdout
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert "<title>A *title*</title>" in page and page.count("data-tinote-view=") == 1
    assert page.count("data:image/png;base64,") == 2 and "this cannot be captured" in page
    assert "<b>bold</b>" in page and "<script>window" not in page
    assert "connect-src &#x27;none&#x27;" in page and page.count("<script") == 3


def test_run_leaves_a_page_with_its_pictures(tmp_path: Path) -> None:
    notebook = write_notebook(tmp_path / "one.ipynb", "x = 6 * 7", PICTURE, "print('the answer is', x)")
    before = notebook.read_bytes()
    done = tinote("run", notebook)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(tmp_path / "one.html")
    page = (tmp_path / "one.html").read_text(encoding="utf-8")
    assert "the answer is 42" in page
    assert len(re.findall(r'<img [^>]*src="data:image/png;base64,', page)) == 1
    assert "<em>title</em>" in page
    assert notebook.read_bytes() == before, "running a notebook does not rewrite it"


def test_run_reports_each_cell_in_plain_lines_when_it_is_no_terminal(tmp_path: Path) -> None:
    done = tinote("run", write_notebook(tmp_path / "two.ipynb", "1", "2"), "--html", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"two.ipynb: cell 1 of 2, \d+\.\d s\ntwo.ipynb: cell 2 of 2, \d+\.\d s\n", done.stderr), (
        done.stderr
    )
    assert (tmp_path / "page.html").exists()
    assert not (tmp_path / "two.html").exists()


def test_run_shows_the_error_of_the_cell_that_failed_and_keeps_what_was_reached(tmp_path: Path) -> None:
    notebook = write_notebook(tmp_path / "bad.ipynb", "print('reached')", "ratio = 1 / 0", "print('never')")
    done = tinote("run", notebook)
    assert done.returncode == 1
    assert "bad.ipynb: cell 3 raised" in done.stderr
    assert "ratio = 1 / 0" in done.stderr
    assert "ZeroDivisionError: division by zero" in done.stderr
    assert "\x1b[" not in done.stderr
    page = (tmp_path / "bad.html").read_text(encoding="utf-8")
    assert "ZeroDivisionError" in page
    assert "<pre>reached" in page
    assert "<pre>never" not in page


def test_run_gives_up_on_a_slow_cell_and_on_a_dead_kernel(tmp_path: Path) -> None:
    slow = tinote("run", write_notebook(tmp_path / "slow.ipynb", "import time; time.sleep(60)"), "--timeout", "1")
    assert slow.returncode == 1
    assert "cell 2 took longer than 1 s" in slow.stderr
    dead = tinote("run", write_notebook(tmp_path / "dead.ipynb", "import os; os._exit(3)"))
    assert dead.returncode == 1
    assert "cell 2 ended the kernel's process" in dead.stderr
    at_its_end = "import os, sys; os.write(sys.__stderr__.fileno(), b'out of luck'); os._exit(3)"
    reported = tinote("run", write_notebook(tmp_path / "ended.ipynb", at_its_end))
    assert reported.returncode == 1
    assert "cell 2 ended the kernel's process" in reported.stderr and "out of luck" in reported.stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["run", "gravty.ipynb"], "tinote run: there is no file 'gravty.ipynb'; did you mean 'gravity.ipynb'?"),
        (["run", "other/gravity.ipynb"], "tinote run: there is no file 'other/gravity.ipynb'"),
        (["run", "text.ipynb"], "tinote run: cannot read text.ipynb: it is not a notebook"),
        (["run", "folder"], "tinote run: cannot read folder: is a directory"),
        (["explore", "text.ipynb:f"], "tinote explore: cannot read text.ipynb: it is not a notebook"),
        (["explore", ":f"], "tinote explore: ':f' names no file: write FILE:KERNEL, such as sim.py:step"),
        (["explore", "simm.py:f"], "tinote explore: there is no file 'simm.py'; did you mean 'sim.py'?"),
        (["lab", "text.ipynb"], "tinote lab: text.ipynb: file exists"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_in_one_line(
    arguments: list[str],
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_notebook(Path("gravity.ipynb"))
    Path("text.ipynb").write_text("not a notebook", encoding="utf-8")
    Path("sim.py").write_text("a = 1", encoding="utf-8")
    Path("folder").mkdir()
    assert cli.main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.err == complaint + "\n" and shown.out == ""
    assert not list(tmp_path.glob("*.html"))


def test_run_uses_this_python(tmp_path: Path) -> None:
    notebook = write_notebook(tmp_path / "where.ipynb", "import sys; print('prefix', sys.prefix)")
    assert tinote("run", notebook).returncode == 0
    assert f"prefix {sys.prefix}" in (tmp_path / "where.html").read_text(encoding="utf-8")


def test_doctor_names_the_cpu_the_compiler_and_the_front_ends() -> None:
    found = tinote("doctor")
    assert found.returncode == 0, found.stdout
    lines = dict(re.findall(r"^(\S.*?) {2,}(.+)$", found.stdout, flags=re.MULTILINE))
    assert lines["tinote"].startswith(metadata.version(NAME))
    assert lines["LLVM"].endswith(f"(llvmlite {metadata.version('llvmlite')})")
    assert re.fullmatch(r"(128|256|512) bits", lines["vectors"])
    assert int(lines["threads"]) >= 1
    assert lines["CPU"]
    for name in ("jupyterlab", "ipykernel", "anywidget"):
        assert f"{name} {metadata.version(name)}" in lines["front ends"]
    assert re.search(r"\(Vulkan, software driver on the CPU; f32 f64; \d+ MiB at once\)", lines["GPU"])


def test_cache_says_what_it_holds_and_clears_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TINOTE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TINOTE_CACHE_LIMIT", "2M")
    open_store().put("abc", bytes(5000))
    assert cli.main(["cache", "info"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"folder   {tmp_path / 'cache'}",
        "holds    1 entry, 4.9 KiB, of at most 2.0 MiB",
    ]
    assert cli.main(["cache", "clear"]) == 0
    assert capsys.readouterr().out == f"removed 1 entry, 4.9 KiB from {tmp_path / 'cache'}\n"
    assert open_store().usage().entries == 0
    monkeypatch.setenv("TINOTE_CACHE_LIMIT", "0")
    assert cli.main(["cache", "info"]) == 0
    assert "switched off" in capsys.readouterr().out


# ---- explore

PROGRAM = """
import tinote as ti

ti.init(arch=ti.cpu)
x = ti.field(ti.f32, shape=8, needs_grad=True)
U = ti.field(ti.f32, shape=(), needs_grad=True)
mass = 2.0


@ti.kernel
def fill(a: ti.f32):
    for i in x:
        x[i] = a * i


@ti.kernel
def broken():
    for i in x:
        x[i] = nothing


@ti.kernel
def generic(v: ti.template()):
    for i in v:
        v[i] = 1.0


@ti.kernel
def running():
    for i in x:
        U[None] += x[i]
        x[i] = U[None]


@ti.data_oriented
class Solver:
    @ti.kernel
    def substep(self):
        for i in x:
            x[i] += 1.0


solver = Solver()
print("the program's own words")
if __name__ == "__main__":
    solver.substep()
    print("as a program")
"""


def test_explore_leaves_a_page_and_says_only_where(tmp_path: Path) -> None:
    (tmp_path / "sim.py").write_text(PROGRAM, encoding="utf-8")
    done = tinote("explore", "sim.py:fill", "--html", "out/page.html", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{Path('out/page.html')}\n"
    assert "the program's own words" in done.stderr and "as a program" not in done.stderr
    page = (tmp_path / "out" / "page.html").read_text(encoding="utf-8")
    assert "x[i] = a * i" in page and '"mark_vector_loops"' in page


def test_explore_runs_the_program_and_finds_the_kernels_of_its_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sim.py").write_text(PROGRAM, encoding="utf-8")
    assert cli.main(["explore", "sim.py:solver.substep", "--main"]) == 0
    shown = capsys.readouterr()
    assert shown.out == "solver.substep.html\n" and "as a program" in shown.err
    assert "x[i] += 1.0" in Path("solver.substep.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("target", "status", "complaint"),
    [
        ("none.py:fill", 2, "there is no file 'none.py'"),
        ("notes.txt:fill", 2, "neither a Python file (.py) nor a notebook (.ipynb)"),
        ("sim.py:fil", 2, "'fil' does not exist in sim.py; did you mean 'fill'?"),
        ("sim.py:substep", 2, "did you mean 'solver.substep'?"),
        (
            "sim.py:mass",
            2,
            "'mass' is not a kernel in sim.py; there are fill, broken, generic, running, solver.substep",
        ),
        ("sim.py", 2, "name one of the kernels of sim.py: fill, broken, generic, running, solver.substep"),
        ("empty.py", 2, "empty.py defines no kernel"),
        ("sim.py:broken", 1, "        x[i] = nothing\n      |                ^^^^^^^"),
        ("sim.py:generic", 1, "help: call it once"),
        ("fails.py:f", 1, "ZeroDivisionError: division by zero"),
        ("typo.py:f", 1, "SyntaxError"),
        ("ends.py:f", 1, "ended the program with the status 3"),
    ],
)
def test_explore_says_what_is_wrong(
    target: str,
    status: int,
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    files = {
        "sim.py": PROGRAM,
        "empty.py": "a = 1",
        "fails.py": "1 / 0",
        "typo.py": "def f(:",
        "ends.py": "raise SystemExit(3)",
        "notes.txt": "",
    }
    for name, text in files.items():
        Path(name).write_text(text, encoding="utf-8")
    assert cli.main(["explore", target]) == status
    shown = capsys.readouterr()
    assert complaint in shown.err and shown.out == ""
    assert "tinote/" not in shown.err and not list(tmp_path.glob("*.html"))


def test_explore_refuses_a_gradient_that_would_be_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sim.py").write_text(PROGRAM, encoding="utf-8")
    assert cli.main(["explore", "sim.py:running", "--grad"]) == 1
    shown = capsys.readouterr()
    assert "without an order there is no gradient" in shown.err and shown.out == ""
    assert cli.main(["explore", "sim.py:running", "--html", "."]) == 2
    assert "cannot write .: is a directory" in capsys.readouterr().err


def test_explore_takes_a_notebook(tmp_path: Path) -> None:
    write_notebook(
        tmp_path / "one.ipynb",
        "%load_ext tinote\nimport tinote as ti\nti.init()\nx = ti.field(ti.f32, shape=4, needs_grad=True)\n"
        "U = ti.field(ti.f32, shape=(), needs_grad=True)",
        "%%kernel\ndef energy():\n    for i in x:\n        U[None] += x[i] ** 2",
    )
    done = tinote("explore", tmp_path / "one.ipynb:energy", "--grad", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "energy.html\n" and "reverse" in (tmp_path / "energy.html").read_text(encoding="utf-8")
    write_notebook(tmp_path / "bad.ipynb", "import tinote as ti", "1 / 0")
    done = tinote("explore", tmp_path / "bad.ipynb:energy", folder=tmp_path)
    assert done.returncode == 1 and "cell 3 raised" in done.stderr and done.stderr.count("ZeroDivisionError") == 1


def test_bench_hands_its_arguments_on(tmp_path: Path) -> None:
    done = tinote("bench", "--", "--help", folder=tmp_path)
    assert done.returncode == 0 and "--peer-python" in done.stdout
    done = tinote("bench", "fly", folder=tmp_path)
    assert done.returncode == 2 and "no workload 'fly'; there are gravity" in done.stderr


def test_bench_measures_and_writes_where_it_was_called(tmp_path: Path) -> None:
    done = tinote("bench", "import", "--rounds", "1", "--only", "tinote", "--json", "out.json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^tinote +[\d.]+ m?s ", done.stdout, re.MULTILINE), done.stdout
    (case,) = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["cases"]
    assert [row["name"] for row in case["rows"]] == ["tinote"] and case["rows"][0]["seconds"] > 0
    done = tinote("bench", "import", "--json", tmp_path, folder=tmp_path)
    assert done.returncode == 2 and done.stderr.endswith(f"cannot write {tmp_path}: Is a directory\n")
    assert done.stdout == ""


def test_bench_help_is_that_of_the_benchmarks() -> None:
    shown = tinote("bench", "--help")
    assert shown.returncode == 0 and "gravity" in shown.stdout and "--rounds" in shown.stdout
    assert shown.stdout.startswith("usage: tinote bench ")


def test_what_is_missing_is_reported_before_notebook_libraries_are_loaded() -> None:
    program = "import sys; from tinote import cli; print(cli.main(sys.argv[1:]), 'nbformat' in sys.modules)"
    for arguments in (["run", "none.ipynb"], ["explore", "none.py:f"]):
        command = [sys.executable, "-c", program, *arguments]
        done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=600, check=True)
        assert done.stdout == "2 False\n" and "there is no file" in done.stderr


def test_parsers_of_addresses_are_not_made_for_notebooks() -> None:
    """Which would take longer than all the rest; a library that is there can be imported afterwards."""
    program = "import sys; from tinote import cli; cli._loaded('page'); print('nbformat' in sys.modules, {})"
    program = program.format("[name for name in ('rfc3987_syntax', 'lark') if name in sys.modules]")
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=600, check=True)
    assert done.stdout == "True []\n"


def test_lab_opens_copies_of_the_tutorials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, copies = tmp_path / "notebooks", tmp_path / "tinote-notebooks"
    source.mkdir()
    (source / "a.ipynb").write_text("theirs", encoding="utf-8")
    monkeypatch.setattr("tinote.cli.lab.tutorials", lambda: source)
    monkeypatch.setattr("tinote.cli.lab.os.execve", lambda *command: started.append(command))
    started: list[tuple[str, list[str], dict[str, str]]] = []
    monkeypatch.chdir(tmp_path)
    lab(browser=False)
    assert f"--ServerApp.root_dir={copies}" in started[0][1]
    # The extension of the code that runs, wherever that is installed.
    [folder] = {Path(word.partition("=")[2]) for word in started[0][1] if "extra_labextensions_path" in word}
    assert (folder / "tinote" / "package.json").is_file()
    assert capsys.readouterr().err == f"tinote-notebooks: 1 files copied from the tutorials\nopening {copies}\n"
    (copies / "a.ipynb").write_text("mine", encoding="utf-8")
    lab(browser=False)
    assert "0 files copied from the tutorials; 1 that differ from them were kept" in capsys.readouterr().err
    assert (copies / "a.ipynb").read_text(encoding="utf-8") == "mine"
    # Somebody who writes tutorials says so.
    lab(source, browser=False)
    assert f"--ServerApp.root_dir={source}" in started[2][1]
    assert capsys.readouterr().err == f"opening {source}\n"


def test_bench_needs_a_checkout(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("tinote.cli.bench.checkout", lambda: None)
    assert cli.main(["bench", "mpm"]) == 2
    assert "part of a source checkout" in capsys.readouterr().err


def test_help_does_not_load_what_commands_need() -> None:
    code = (
        "import sys, contextlib, tinote.cli\n"
        "with contextlib.suppress(SystemExit): tinote.cli.main(['run', '--help'])\n"
        "print(sorted({'nbclient', 'nbconvert', 'IPython', 'llvmlite'} & set(sys.modules)), file=sys.stderr)"
    )
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=900)
    assert done.stderr == "[]\n"


def test_tutorials_of_a_checkout_are_its_own() -> None:
    assert tutorials() == PROJECT / "notebooks"


def test_copies_keep_what_is_there_already(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "data").mkdir(parents=True)
    (source / ".ipynb_checkpoints").mkdir()
    for name in ("a.ipynb", "b.ipynb", "data/c.csv", ".ipynb_checkpoints/a.ipynb"):
        (source / name).write_text("new", encoding="utf-8")
    target = tmp_path / "target"
    target.mkdir()
    (target / "a.ipynb").write_text("mine", encoding="utf-8")
    assert copy_missing(source, target) == 2
    assert (target / "a.ipynb").read_text(encoding="utf-8") == "mine"
    assert (target / "data" / "c.csv").read_text(encoding="utf-8") == "new"
    assert not (target / ".ipynb_checkpoints").exists()


@pytest.mark.slow
def test_lab_serves_copies_of_the_tutorials(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = tmp_path / "mine"
    private = {name: str(tmp_path / name) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")}
    environment = {**os.environ, **private, "PYTHONPATH": str(PROJECT), "JUPYTER_TOKEN": "tested"}
    command = [sys.executable, "-m", "tinote.cli", "lab", str(folder), "--no-browser", f"--port={port}"]
    log = tmp_path / "log.txt"
    with (
        log.open("w", encoding="utf-8") as output,
        subprocess.Popen(command, env=environment, stdout=output, stderr=output) as server,
    ):
        try:
            names = _contents(f"http://127.0.0.1:{port}/api/contents?token=tested", log)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/lab?token=tested", timeout=60) as answer:
                page = answer.read().decode()
        finally:
            _stop(server)
    assert {file.name for file in (PROJECT / "notebooks").glob("*.ipynb")} <= names
    assert names == {file.name for file in folder.iterdir()}
    assert re.search(r'"disabledExtensions": \[[^]]*"@jupyterlab/apputils-extension:announcements"', page)
    with pytest.raises(urllib.error.URLError, match="refused"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5)


def _contents(address: str, log: Path) -> set[str]:
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:
                return set(re.findall(r'"path": ?"([^"]+)"', answer.read().decode()))
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.3)
    raise AssertionError(log.read_text(encoding="utf-8"))


def _stop(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(timeout=120)
    finally:
        server.kill()
