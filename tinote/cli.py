"""The `tinote` command: the tutorials in JupyterLab, a notebook without a browser, what the machine has, and what is
kept on its disk.

It opens and runs notebooks; what a notebook does with kernels is no business of this file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

import nbclient
import nbformat
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbconvert.exporters import HTMLExporter
from tqdm import tqdm

from tinote.manual import tutorials
from tinote.runtime.cache import open_store
from tinote.runtime.memory import readable_size

__all__ = ["compiled_code", "doctor", "lab", "main", "run"]

FAILED = 1
UNUSABLE = 2

FRONT_ENDS = ("jupyterlab", "notebook", "marimo", "ipykernel", "ipython", "ipywidgets", "anywidget", "nbclient")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
C_COMPILERS = ("cc", "gcc", "clang")

# Runs in a child process: a compiler that cannot be loaded, or crashes, is a finding and not the end of the doctor.
PROBE = """
import json, time
start = time.perf_counter()
import tinote
imported = time.perf_counter() - start
import llvmlite, llvmlite.binding
from tinote.runtime import jit
host = jit.host()
found = {name: getattr(host, name) for name in ("triple", "cpu", "features", "vector_bits", "threads")}
found["llvm"] = ".".join(map(str, llvmlite.binding.llvm_version_info))
found["import_seconds"] = imported
print(json.dumps(found, default=list))
"""

# Of the many features of a CPU, those that decide how wide and how well loops vectorise.
TELLING_FEATURES = (
    *("sse4.2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512fp16"),
    *("neon", "fullfp16", "dotprod", "sve", "sve2"),
)


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns the exit status: 0 done, 1 failed, 2 not usable as it was called."""
    options = _parser().parse_args(arguments)
    try:
        if options.command == "lab":
            return lab(options.folder, browser=not options.no_browser, port=options.port)
        if options.command == "cache":
            return compiled_code(clear=options.action == "clear")
        if options.command == "run":
            return run(options.notebook, html=options.html, timeout=options.timeout)
        return doctor()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tinote", description="Kernels in a notebook.")
    parser.add_argument("--version", action="version", version=f"tinote {metadata.version('tinote')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    opened = commands.add_parser(
        "lab",
        help="open the tutorials in JupyterLab",
        description="Open the tutorials in JupyterLab: those of a source checkout in place, those of an installed "
        "package as copies in ./tinote-notebooks.",
    )
    opened.add_argument(
        "folder", nargs="?", type=Path, metavar="DIR", help="work on copies in DIR; what is there already is kept"
    )
    opened.add_argument("--no-browser", action="store_true", help="start the server and print its address")
    opened.add_argument("--port", type=int, help="the port of the server (default: the first free one from 8888)")

    executed = commands.add_parser(
        "run",
        help="execute a notebook without a browser and leave an HTML page with its pictures",
        description="Execute a notebook without a browser and leave an HTML page with its pictures. The exit status "
        "is 1 when a cell fails and 2 when the notebook cannot be read or the page not be written.",
    )
    executed.add_argument("notebook", type=Path, metavar="NOTEBOOK")
    executed.add_argument("--html", type=Path, metavar="OUT", help="the page (default: NOTEBOOK with the suffix .html)")
    executed.add_argument(
        "--timeout", type=float, metavar="SECONDS", help="the longest a cell may take (default: no limit)"
    )

    kept = commands.add_parser(
        "cache",
        help="show or remove the machine code that is kept for later sessions",
        description="Show or remove the machine code that is kept for later sessions. TINOTE_CACHE_DIR names its "
        "folder, TINOTE_CACHE_LIMIT bounds its size (256M if not set; 0 switches it off).",
    )
    kept.add_argument("action", choices=("info", "clear"), help="what to do")

    commands.add_parser("doctor", help="show the CPU, the compiler and the front ends that were found")
    return parser


# --- lab ------------------------------------------------------------------------------------------


def lab(folder: Path | None = None, *, browser: bool = True, port: int | None = None) -> int:
    """Opens JupyterLab on the tutorials: the server takes this process's place, or else its exit status is returned.

    With `folder`, or when the tutorials belong to an installed package, they are copied first; a file that is there
    already stays as it is.
    """
    try:
        source = tutorials()
        if folder is None and source.parent.name == "tinote":
            folder = Path("tinote-notebooks")
        if folder is not None:
            copied = copy_missing(source, folder)
            print(f"{folder}: {copied} files copied from the tutorials", file=sys.stderr)
    except OSError as error:
        print(f"tinote lab: {error}", file=sys.stderr)
        return UNUSABLE
    root = (folder or source).resolve()
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={root}"]
    first = next(iter(sorted(root.glob("*.ipynb"))), None)
    if first is not None:
        command.append(f"--LabApp.default_url=/lab/tree/{first.name}")
    if not browser:
        command.append("--no-browser")
    if port is not None:
        command += [f"--port={port}", "--ServerApp.port_retries=0"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        # In a container everything runs as root; the server would refuse to start.
        command.append("--allow-root")
    if os.name != "posix":
        return subprocess.run(command, check=False).returncode
    # This process becomes the server: its signals and its exit status need nobody in between.
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(command[0], command)


def copy_missing(source: Path, folder: Path) -> int:
    """Copies the files of `source` that `folder` does not have, and returns how many these were."""
    copied = 0
    for file in sorted(source.rglob("*")):
        target = folder / file.relative_to(source)
        hidden = any(part.startswith(".") or part == "__pycache__" for part in file.relative_to(source).parts)
        if file.is_file() and not hidden and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
            copied += 1
    folder.mkdir(parents=True, exist_ok=True)
    return copied


# --- run ------------------------------------------------------------------------------------------


class Progress:
    """The cells that have run: a bar on a terminal, else one plain line a cell.

    `current` is the index, in the notebook, of the cell that runs or ran last.
    """

    def __init__(self, name: str, total: int) -> None:
        self.name = name
        self.total = total
        self.done = 0
        self.current = 0
        self.started = time.perf_counter()
        self.bar = tqdm(total=total, desc=name, unit="cell", disable=not sys.stderr.isatty())

    def cell_starts(self, cell: nbformat.NotebookNode, cell_index: int) -> None:
        """Called by the notebook client before a code cell."""
        self.current = cell_index
        self.started = time.perf_counter()

    def cell_executed(self, cell: nbformat.NotebookNode, cell_index: int, execute_reply: object) -> None:
        """Called by the notebook client after a code cell, whether it failed or not."""
        seconds = time.perf_counter() - self.started
        self.done += 1
        self.bar.update()
        if self.bar.disable:
            print(f"{self.name}: cell {self.done} of {self.total}, {seconds:.1f} s", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leaves the bar as it stands."""
        self.bar.close()


def run(notebook: Path, *, html: Path | None = None, timeout: float | None = None) -> int:
    """Executes a notebook in a fresh kernel of this Python and writes an HTML page with its pictures.

    `timeout` is in seconds a cell. A cell that fails ends the run: its error goes to standard error, the page shows
    what was reached, and the status is 1. A notebook that cannot be read, or a page that cannot be written, gives 2.
    """
    page = html or notebook.with_suffix(".html")
    try:
        document = nbformat.read(notebook, as_version=4)
    except (OSError, ValueError, nbformat.ValidationError) as error:
        print(f"tinote run: cannot read {notebook}: {error}", file=sys.stderr)
        return UNUSABLE
    code_cells = [cell for cell in document.cells if cell.cell_type == "code" and cell.source.strip()]
    for cell in code_cells:
        cell.outputs = []
        cell.execution_count = None
    progress = Progress(notebook.name, len(code_cells))
    client = nbclient.NotebookClient(
        document,
        timeout=timeout,
        kernel_name="python3",
        resources={"metadata": {"path": str(notebook.resolve().parent)}},
        # Without the state of its widgets a page shows their pictures, and needs no network to do so.
        store_widget_state=False,
        # The kernel's own warnings are about servers; what a cell prints and raises comes with its outputs.
        extra_arguments=["--log-level=ERROR"],
        on_cell_execute=progress.cell_starts,
        on_cell_executed=progress.cell_executed,
    )
    failure = ""
    try:
        client.execute()
    except CellExecutionError:
        failure = f"raised\n{_error_text(document.cells[progress.current])}"
    except CellTimeoutError:
        failure = f"took longer than {timeout:g} s\n{document.cells[progress.current].source}"
    except DeadKernelError:
        failure = f"ended the kernel's process\n{document.cells[progress.current].source}"
    except RuntimeError as error:
        print(f"tinote run: the kernel did not start: {error}", file=sys.stderr)
        return UNUSABLE
    finally:
        progress.close()

    try:
        page.write_text(_page(document, notebook.stem), encoding="utf-8")
    except OSError as error:
        print(f"tinote run: cannot write {page}: {error}", file=sys.stderr)
        return UNUSABLE
    print(page)
    if failure:
        text = f"{notebook}: cell {progress.current + 1} {failure}"
        print(text if sys.stderr.isatty() else _plain(text), file=sys.stderr)
        return FAILED
    return 0


def _page(document: nbformat.NotebookNode, title: str) -> str:
    exporter = HTMLExporter(template_name="lab", embed_images=True)
    text, _ = exporter.from_notebook_node(document, resources={"metadata": {"name": title}})
    return text


def _error_text(cell: nbformat.NotebookNode) -> str:
    """What IPython showed: for an error in a kernel that is the user's line with its caret."""
    errors = [output for output in cell.outputs if output.output_type == "error"]
    return "\n".join("\n".join(output.traceback) or f"{output.ename}: {output.evalue}" for output in errors)


def _plain(text: str) -> str:
    """The text without the escape sequences that colour it."""
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)


# --- cache ----------------------------------------------------------------------------------------


def compiled_code(*, clear: bool) -> int:
    """Prints what the cache on disk holds, or removes it; 1 when the folder cannot be used."""
    store = open_store()
    usage = store.clear() if clear else store.usage()
    amount = f"{usage.entries} entr{'y' if usage.entries == 1 else 'ies'}, {readable_size(usage.nbytes)}"
    if store.problem:
        print(f"the cache is not used: {store.problem}")
        return 0 if not store.limit else FAILED
    if clear:
        print(f"removed {amount} from {store.folder}")
    else:
        print(f"folder   {store.folder}")
        print(f"holds    {amount}, of at most {readable_size(store.limit)}")
    return 0


# --- doctor ---------------------------------------------------------------------------------------


def doctor() -> int:
    """Prints what kernels will run on and what will show them; 1 when the compiler does not work here."""
    print(f"tinote         {metadata.version('tinote')}  ({Path(__file__).resolve().parent})")
    print(f"Python         {platform.python_version()}  ({sys.executable})")
    print(f"system         {platform.platform()}")
    probe = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=False)
    healthy = probe.returncode == 0
    if healthy:
        for name, value in _compiler_lines(json.loads(probe.stdout.splitlines()[-1])):
            print(f"{name:<14} {value}")
    else:
        print(f"compiler       does not work: {_reason(probe)}")
    print(f"NumPy          {_version('numpy')}")
    print("front ends     " + ", ".join(f"{name} {_version(name)}" for name in FRONT_ENDS if _version(name)))
    print(f"tutorials      {_tutorials_line()}")
    print(f"browser        {_first_program(BROWSERS)}  (used by the browser tests)")
    print(f"C compiler     {_first_program(C_COMPILERS)}  (used by the benchmarks)")
    return 0 if healthy else FAILED


def _compiler_lines(host: dict[str, object]) -> list[tuple[str, str]]:
    features = host["features"]
    text = ",".join(map(str, features)) if isinstance(features, list) else str(features)
    present = {name.removeprefix("+") for name in re.split(r"[,\s]+", text) if name and not name.startswith("-")}
    telling = [name for name in TELLING_FEATURES if name in present]
    return [
        ("LLVM", f"{host['llvm']}  (llvmlite {_version('llvmlite')})"),
        ("CPU", f"{host['cpu']}  ({host['triple']})"),
        ("features", f"{' '.join(telling) or 'none of those that matter'}  (of {len(present)})"),
        ("vectors", f"{host['vector_bits']} bits"),
        ("threads", str(host["threads"])),
        ("import tinote", f"{host['import_seconds']:.2f} s"),
    ]


def _reason(probe: subprocess.CompletedProcess[str]) -> str:
    if probe.returncode < 0:
        return f"a child process ended by signal {-probe.returncode}"
    return (probe.stderr.strip().splitlines() or ["no reason given"])[-1]


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _tutorials_line() -> str:
    try:
        folder = tutorials()
    except FileNotFoundError as error:
        return str(error)
    return f"{folder}  ({len(list(folder.glob('*.ipynb')))} notebooks)"


def _first_program(names: tuple[str, ...]) -> str:
    return next((path for path in map(shutil.which, names) if path), "none found")


if __name__ == "__main__":
    sys.exit(main())
