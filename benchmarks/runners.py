"""The parent's side of a contender: start, take a slice, check, close. One class a mode; all have the same methods."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.contract import Case, Contender, Mode, UnavailableError
from benchmarks.peers import cold_environment, peer_of, warm_environment

__all__ = [
    "ROOT",
    "ContenderError",
    "FirstCall",
    "Import",
    "Interpreters",
    "Runner",
    "Steady",
    "WarmCall",
    "runner_for",
]

ROOT = Path(__file__).resolve().parent.parent

# A compiler that has said nothing for so long will say nothing more.
PATIENCE = 180.0


class ContenderError(Exception):
    """A contender ended, hung or raised; its row gives the reason."""


@dataclass(frozen=True, slots=True)
class Interpreters:
    """Which Python runs which package: `named[package]`, else `peers` for peers, else the one that runs the harness."""

    peers: str | None = None
    named: Mapping[str, str] = field(default_factory=dict)

    def of(self, package: str | None) -> str:
        """Return the interpreter for `package`; None (C) and tinote itself run under the harness's own."""
        if package is None:
            return sys.executable
        return self.named.get(package) or (self.peers if package != "tinote" else None) or sys.executable


class Runner(ABC):
    """Measures one contender of one case."""

    version = ""
    parts = 1.0
    """Of how many parts a run consists, one of which `slice` tells the time of."""
    _child: Child | None = None

    def __init__(self, contender: Contender, case: Case, interpreters: Interpreters, tree: Path = ROOT) -> None:
        """`tree`: the folder that holds the packages `tinote` and `benchmarks` which are run."""
        self.contender = contender
        self.tree = tree
        self.python = interpreters.of(contender.package)
        self.parameters = {**case.parameters, **contender.parameters}

    def start(self) -> float:
        """Make ready, and return the deviation from the reference: 0 where there is none.

        Raises `UnavailableError` and `ContenderError`, as do the other methods.
        """
        return 0.0

    @abstractmethod
    def slice(self, seconds: float) -> float:
        """Measure for about `seconds` (or once, if once takes longer) and return the minimum."""

    def finish(self) -> float:
        """Return the deviation again, after all slices."""
        return 0.0

    def close(self) -> None:
        """End whatever runs; never raises."""
        if self._child:
            self._child.close()
            self._child = None


class Child:
    """A worker process, its pipe, and its folder for caches and temporary files, empty at first and gone at the end."""

    def __init__(
        self,
        contender: Contender,
        parameters: Mapping[str, str | int],
        python: str,
        tree: Path = ROOT,
        kept: Path | None = None,
    ) -> None:
        """`tree`: the folder of the packages; `kept`: a folder for caches that other processes use too."""
        package = contender.package
        start = {
            "module": contender.module,
            "package": package,
            "distribution": peer_of(package).distribution if package else None,
            "parameters": dict(parameters),
        }
        self._folder = tempfile.TemporaryDirectory(prefix="benchmarks-", ignore_cleanup_errors=True)
        folder = Path(self._folder.name)
        self._errors = folder / "stderr"
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [python, "-m", "benchmarks.workers", json.dumps(start)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=tree,
                env=environment(warm_environment(kept) if kept else cold_environment(package, folder), tree),
                text=True,
                encoding="utf-8",
            )
        try:
            self.version = str(self._receive("the import")["version"])
        except BaseException:
            self.close()
            raise

    def ask(self, request: str) -> float:
        """Send one line and return the number in the answer."""
        assert self._process.stdin
        with suppress(OSError):  # if the process is gone, the missing answer says so, with its last words
            self._process.stdin.write(request + "\n")
            self._process.stdin.flush()
        (value,) = self._receive(request).values()
        return float(value)  # pyright: ignore[reportArgumentType]

    def leave(self) -> None:
        """Let the process end in good order; one that does not is killed by `close`."""
        assert self._process.stdin
        with suppress(OSError, subprocess.TimeoutExpired):
            self._process.stdin.write("leave\n")
            self._process.stdin.flush()
            self._process.wait(PATIENCE)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                with suppress(OSError):  # what was still buffered has nobody left to read it
                    pipe.close()
        self._folder.cleanup()

    def _receive(self, request: str) -> dict[str, object]:
        assert self._process.stdout
        watchdog = threading.Timer(PATIENCE, self._process.kill)
        watchdog.start()
        try:
            line = self._process.stdout.readline()
        finally:
            late = not watchdog.is_alive()
            watchdog.cancel()
        if not line.endswith("\n"):
            raise ContenderError(f"no answer to {request!r} in {PATIENCE:.0f} s" if late else self._last_words())
        message = json.loads(line)
        if "unavailable" in message:
            raise UnavailableError(message["unavailable"])
        if "error" in message:
            raise ContenderError(message["error"])
        return message

    def _last_words(self) -> str:
        status = self._process.wait()
        lines = self._errors.read_text("utf-8", "replace").strip().splitlines()
        return f"ended with status {status}" + (f": {lines[-1]}" if lines else "")


class Steady(Runner):
    """The cost of one run, in a process that stays."""

    def start(self) -> float:
        self._child = Child(self.contender, self.parameters, self.python, self.tree)
        self.version = self._child.version
        self._child.ask("build")
        self.parts = self._child.ask("parts")
        return self._child.ask("check")

    def slice(self, seconds: float) -> float:
        assert self._child
        return self._child.ask(f"slice {seconds * 1000}")

    def finish(self) -> float:
        assert self._child
        return self._child.ask("check")


class FirstCall(Runner):
    """From after the import to the end of the first run; every slice is a fresh process."""

    def start(self) -> float:
        self._deviation = 0.0
        self.slice(0)
        return self._deviation

    def slice(self, seconds: float) -> float:
        child = self._new_child()
        try:
            self.version = child.version
            first = child.ask("build")
            deviation = child.ask("check")
            self._end(child)
        finally:
            child.close()
        self._deviation = math.inf if math.isnan(deviation) else max(self._deviation, deviation)
        return first

    def finish(self) -> float:
        return self._deviation

    def _new_child(self) -> Child:
        return Child(self.contender, self.parameters, self.python, self.tree)

    def _end(self, child: Child) -> None:
        """Nobody asks for what it would leave."""


class WarmCall(FirstCall):
    """The same, in processes that share a folder for their caches; the first, which fills it, is not measured."""

    def start(self) -> float:
        self._kept = tempfile.TemporaryDirectory(prefix="benchmarks-", ignore_cleanup_errors=True)
        return super().start()

    def close(self) -> None:
        super().close()
        self._kept.cleanup()

    def _new_child(self) -> Child:
        return Child(self.contender, self.parameters, self.python, self.tree, Path(self._kept.name))

    def _end(self, child: Child) -> None:
        child.leave()


# Bare, so that nothing which the package needs has been imported before the clock starts.
IMPORT_PROGRAM = """
import sys, time
sys.stdout = sys.stderr
start = time.perf_counter()
try:
    import numpy, {package}
except ModuleNotFoundError as error:
    if error.name != "{package}": raise
    print("unavailable", file=sys.__stdout__, flush=True)
else:
    print(time.perf_counter() - start, file=sys.__stdout__, flush=True)
import os
os._exit(0)
"""


class Import(Runner):
    """`import X`, NumPy included, in a fresh interpreter; every slice is one."""

    def start(self) -> float:
        self.slice(0)  # writes what bytecode is missing
        return 0.0

    def slice(self, seconds: float) -> float:
        program = IMPORT_PROGRAM.format(package=self.contender.package)
        try:
            done = subprocess.run(
                [self.python, "-c", program],
                cwd=self.tree,
                env=environment({}, self.tree),
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=True,
            )
        except subprocess.TimeoutExpired:
            raise ContenderError(f"no end of the import in {PATIENCE:.0f} s") from None
        except subprocess.CalledProcessError as error:
            lines = error.stderr.strip().splitlines()
            raise ContenderError(lines[-1] if lines else f"ended with status {error.returncode}") from None
        # A native banner (printed below Python) may come before the number.
        words = done.stdout.split()
        if not words:
            raise ContenderError("the import ended the process")
        if words[-1] == "unavailable":
            raise UnavailableError("not installed")
        return float(words[-1])


def runner_for(contender: Contender, case: Case, interpreters: Interpreters, tree: Path = ROOT) -> Runner:
    """Return the runner for what `case` measures, with the packages of `tree`."""
    kinds: dict[Mode, type[Runner]] = {
        Mode.STEADY: Steady,
        Mode.FIRST_CALL: FirstCall,
        Mode.WARM_CALL: WarmCall,
        Mode.IMPORT: Import,
    }
    return kinds[case.mode](contender, case, interpreters, tree)


def environment(extra: Mapping[str, str], tree: Path = ROOT) -> dict[str, str]:
    """Return this process's environment with the packages of `tree` importable, no GPU in sight, and `extra`.

    Bytecode files may be written: an installer has made those of the peers, and a checkout makes its own when it is
    first imported.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    path = os.pathsep.join(filter(None, (str(tree), kept.get("PYTHONPATH"))))
    return {**kept, "PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu", **extra}
