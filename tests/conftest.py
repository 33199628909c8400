"""What every test shares: options, golden files, and the rule that nothing is skipped in CI."""

from __future__ import annotations

import atexit
import difflib
import gc
import importlib
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast
from zlib import crc32

import pytest
from hypothesis import settings

# Every test compiles what it tests; those of the cache on disk ask for one of their own.
os.environ["TINOTE_CACHE_LIMIT"] = "0"

# NumPy's and SciPy's linear algebra starts threads when it is loaded, which spin for a while before they sleep: half of
# the processor time of a process that imports them, of which a run has hundreds.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Mesa's driver for CPUs, on which the tests of GPUs run, takes its time to optimise shaders that run once.
os.environ.setdefault("GALLIVM_PERF", "nopt")

# The same of XLA, which compiles what programs are compared with in JAX.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1")

# The validator of notebooks would make parsers of web addresses, which takes a second and which no notebook has.
sys.modules.setdefault("rfc3987_syntax", cast("Any", None))

# IPython's history is a database of the developer's, to which two processes cannot write at once. An open shell writes
# to it last of all, but before what was registered earlier.
os.environ["IPYTHONDIR"] = tempfile.mkdtemp(prefix="tinote-tests-ipython-")
atexit.register(shutil.rmtree, os.environ["IPYTHONDIR"], ignore_errors=True)

# A shell without job control starts what runs in the background deaf to interrupts, and its children with it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What is imported and collected stays to the end: the garbage collector need not look through it again and again.
gc.disable()

# Compiling makes the first example of a property slow: the time of a single one says nothing.
settings.register_profile("tinote", deadline=None)
settings.load_profile("tinote")

# These fork, limit memory, read /proc or open pseudo-terminals; `test_windows.py` takes away what Windows lacks.
collect_ignore = [] if sys.platform == "linux" else ["survival", "test_fresh.py", "test_windows.py"]

MOST_WORKERS = 4
"""Each has threads of its own; with more of them, a run takes as long as its longest file."""


USUAL = 130
"""Random programs of a property: as many as `tests/properties/test_mutations.py` needs to notice every mistake, and
some more.
"""
USUAL_ON_GPU = 50
"""The driver takes longer over each of them; the seventh has shown every mistake."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The project's own options."""
    group = parser.getgroup("tinote")
    group.addoption("--update-golden", action="store_true", help="rewrite the golden files with what the tests produce")
    group.addoption(
        "--pictures",
        metavar="FOLDER",
        help="where the browser tests put pictures of all that they show (default: only of what cannot be read, in"
        " pytest's own folder of this run)",
    )
    group.addoption(
        "--save-cycles",
        type=int,
        default=2,
        metavar="N",
        help="how many times a notebook is saved, its kernel ended, and it is opened again; and a hundredth of how many"
        " views are saved and closed (default: %(default)s)",
    )
    group.addoption(
        "--cpu",
        metavar="NAME",
        help="the processor that the tests compile for, as TINOTE_CPU names it: such as x86-64-v3, with vectors of 256"
        " bits, or x86-64-v2, of 128 (default: this one)",
    )
    group.addoption(
        "--opt-level",
        type=int,
        choices=range(4),
        metavar="LEVEL",
        help="how much LLVM optimises the kernels of those tests of the language and of derivatives that do not say it,"
        " from 0 to 3 (default: 3 in one test of four, 0 in the others)",
    )
    group.addoption(
        "--whole-site",
        action="store_true",
        help="execute all tutorials for the site of the manual, instead of those with live views",
    )
    group.addoption(
        "--both-front-ends",
        action="store_true",
        help="run the browser tests that are for JupyterLab and for Notebook 7 in both, instead of in one of them",
    )
    group.addoption("--arch", choices=("cpu", "gpu"), default="cpu", help="what kernels run on (default: %(default)s)")
    group.addoption(
        "--random-programs",
        type=int,
        metavar="N",
        help=f"how many random kernels each property test generates (default: {USUAL}, or {USUAL_ON_GPU} on a GPU)",
    )
    group.addoption(
        "--random-from",
        type=int,
        default=0,
        metavar="SEED",
        help="the seed of the first of them, so that a long run can be made in parts (default: %(default)s)",
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """`-n auto`: three workers for two cores, up to `MOST_WORKERS`. A third of the time they wait, for browsers and for
    other processes.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores + cores // 2, MOST_WORKERS)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """`--dist=loadfile`, where half of the workers begin with the browser tests, which wait the most, and the others
    with what keeps a core busy: all browsers at once would wait together, and each worker needs a JupyterLab for them.
    """
    if config.getvalue("dist") != "loadfile":
        return None
    by_file: Any = importlib.import_module("xdist.scheduler").LoadFileScheduling

    class BrowsersInHalfOfThem(by_file):
        def _assign_work_unit(self, node: Any) -> None:
            browses = self.nodes.index(node) < (len(self.nodes) + 1) // 2
            liked = (file for file in self.workqueue if file.startswith("tests/browser/") == browses)
            self.workqueue.move_to_end(next(liked, next(iter(self.workqueue))), last=False)
            super()._assign_work_unit(node)

    return BrowsersInHalfOfThem(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Workers begin with the files that are in no folder: the longest ones are among them, which would run alone at the
    end.
    """
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: item.path.parent != Path(__file__).parent)


Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


def run_on_gpu() -> None:
    """From now on, what asks for the CPU, or for nothing, runs on a GPU, or on a CPU that stands in for one."""
    state = importlib.import_module("tinote.lang.session.state")
    made = importlib.import_module("tinote.config").Config
    defaults = {**made._field_defaults, "arch": "gpu", "software_gpu": True}
    made.__new__.__defaults__ = tuple(defaults.values())
    state.session.config = made()
    target = state._target

    def on_gpu(choices: list[object], software: bool) -> tuple[str, object, str]:
        found, choice, reason = target(choices, software)
        return "gpu" if found == "cpu" else found, choice, reason

    state._target = on_gpu
    os.environ["TINOTE_SOFTWARE_GPU"] = "1"


class SkipsFail:
    """Turns skipped and expected failures, tests as well as whole modules, into failures."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """After the outcome of one test is known."""
        return self._fail_if_skipped((yield))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(self) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """After a module has been collected (`pytest.importorskip` at its top skips it here)."""
        return self._fail_if_skipped((yield))

    @staticmethod
    def _fail_if_skipped(report: Report) -> Report:
        if report.outcome == "skipped":
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            if hasattr(report, "wasxfail"):
                reason = f"expected failure: {report.wasxfail}\n{report.longrepr}"
                del report.wasxfail
            report.outcome = "failed"
            report.longrepr = f"nothing may be skipped in CI: {reason}"
        return report


def pytest_configure(config: pytest.Config) -> None:
    """Before anything is collected."""
    cpu = config.getoption("--cpu")
    if cpu:
        os.environ["TINOTE_CPU"] = cpu
    if config.getoption("--arch") == "gpu":
        run_on_gpu()
    if os.environ.get("CI", "").lower() not in ("", "0", "false"):
        config.pluginmanager.register(SkipsFail(), "tinote-skips-fail")


def pytest_collection_finish() -> None:
    """Garbage is collected from here on."""
    gc.freeze()
    gc.enable()


@pytest.fixture
def only_new_objects() -> None:
    """From here on, garbage is looked for among what this test and later ones make. What there is now stays out of it:
    to go through the objects of a whole run takes seconds, each time.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def only_new_objects_in_each_file() -> None:
    """The same for each file: what earlier ones have left is not looked through by its collections."""
    gc.collect()
    gc.freeze()


Golden = Callable[..., None]


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compares text with a file under `golden/` next to the test module: `golden(text)` or `golden(text, name)`.

    The file is named after the module and the test, or after `name` (which keeps its suffix, `.txt` if it has none).
    `--update-golden` writes what the test produced instead; a file that is missing fails otherwise.
    """
    update = request.config.getoption("--update-golden")
    folder = request.path.parent / "golden"

    def compare(text: str, name: str | None = None) -> None:
        __tracebackhide__ = True
        stem = name or f"{request.path.stem.removeprefix('test_')}.{request.node.name.removeprefix('test_')}.txt"
        file = folder / re.sub(r"[^\w.=+-]+", "_", stem)
        if not file.suffix:
            file = file.with_name(file.name + ".txt")
        found = text if text.endswith("\n") else text + "\n"
        if update:
            folder.mkdir(exist_ok=True)
            file.write_text(found, encoding="utf-8")
            return
        if not file.exists():
            pytest.fail(f"there is no golden file {_place(file)} yet: run again with --update-golden and read it")
        expected = file.read_text(encoding="utf-8")
        if found != expected:
            lines = difflib.unified_diff(expected.splitlines(), found.splitlines(), "golden", "found", lineterm="")
            pytest.fail(f"{_place(file)} differs (--update-golden accepts what was found):\n" + "\n".join(lines))

    return compare


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of this run share."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session")
def shared_code(shared_folder: Path) -> dict[str, str]:
    """The environment variables of processes whose machine code is not what is tested: they find what others of this
    run have compiled.
    """
    return {"TINOTE_CACHE_DIR": str(shared_folder / "code"), "TINOTE_CACHE_LIMIT": "1G"}


@pytest.fixture(scope="session")
def emitted_once() -> Callable[..., bytes]:
    """LLVM's object files by what they are made from, without the lines of Python that the text names: LLVM makes the
    same file of the same text, and tests have many kernels in common. Each is still linked anew.
    """
    jit = importlib.import_module("tinote.runtime.jit")
    emit = jit.emit_object
    line = re.compile(r" !dbg !\d+")
    images: dict[tuple[str, int, bytes], bytes] = {}

    def emit_object(text: str, level: int = 3, enter: Callable[[str], None] | None = None) -> bytes:
        code = line.sub("", text.partition("\n!llvm.module.flags")[0])  # what follows are the lines themselves
        key = jit.machine_name(), level, sha256(code.encode()).digest()
        if key not in images:
            images[key] = emit(text, level, enter)
        return images[key]

    return emit_object


@pytest.fixture
def most_machine_code_is_made_quickly(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, emitted_once: Callable[..., bytes]
) -> None:
    """Most programs are right or wrong before LLVM sees them, and optimising what runs once takes ten times as long as
    making it: one test in four is optimised as users' programs are, unless `--opt-level` says otherwise. A test whose
    subject is optimised code is marked so: `@pytest.mark.optimised`.
    """
    level = request.config.getoption("--opt-level")
    if level is None:
        everyday = crc32(request.node.nodeid.encode()) % 4 == 0 or request.node.get_closest_marker("optimised")
        level = 3 if everyday else 0
    monkeypatch.setitem(importlib.import_module("tinote").init.__kwdefaults__, "opt_level", level)
    monkeypatch.setattr(importlib.import_module("tinote.runtime.jit"), "emit_object", emitted_once)


@pytest.fixture
def random_programs(request: pytest.FixtureRequest) -> range:
    """The seeds of the random programs of a property test: the options `--random-programs` and `--random-from`."""
    return _seeds(request.config, USUAL)


@pytest.fixture
def random_programs_on_gpu(request: pytest.FixtureRequest) -> range:
    """The same for what runs on a GPU."""
    return _seeds(request.config, USUAL_ON_GPU)


def _seeds(config: pytest.Config, usual: int) -> range:
    first = config.getoption("--random-from")
    return range(first, first + (config.getoption("--random-programs") or usual))


def _place(file: Path) -> str:
    return os.path.relpath(file)


@pytest.fixture(autouse=True)
def the_main_module_stays() -> Iterator[None]:
    """An IPython shell in this process puts a module of its own in the place of `__main__`."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main
