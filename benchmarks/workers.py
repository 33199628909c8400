"""The child process of one contender.

Run as `python -m benchmarks.workers START`, where START is a JSON object with "module", "package", "distribution" and
"parameters". The child imports the package, tells its version in one line of JSON, and then answers each line it is
sent with another:

    build       builds the subject and runs it once   -> {"seconds": of both together}
    parts       counts the parts of a run             -> {"parts": 1, as a rule}
    check       runs it from its initial data         -> {"deviation": from the NumPy reference}
    slice 50    runs it again and again for 50 ms     -> {"seconds": minimum of one run, or of each of its parts}
    leave       ends the process in good order, so that packages write their caches
    quit        ends it at once (so does the end of its input)

An answer with "unavailable" or "error" says why there is no other. What the contender prints goes to standard error.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import math
import os
import sys
import traceback
from time import perf_counter
from typing import TextIO

from benchmarks.contract import Subject, UnavailableError

__all__ = ["Worker", "serve"]

# Reading the clock costs some 50 ns: invisible in a batch of this length, which still fits between two disturbances.
SHORTEST_BATCH = 200e-6


class Worker:
    """Holds one subject and answers requests about it."""

    def __init__(
        self, module: str, package: str | None, distribution: str | None, parameters: dict[str, str | int]
    ) -> None:
        """Import the package, then the module; raises `UnavailableError` when the package is not installed."""
        self.version = ""
        if package:
            try:
                imported = importlib.import_module(package)
            except ModuleNotFoundError as error:
                if error.name != package:
                    raise
                raise UnavailableError("not installed") from None
            self.version = version_of(distribution or package, imported)
        self._create = importlib.import_module(module).create
        self._package = package
        self._parameters = parameters
        self._subject: Subject | None = None
        self._batch = 0

    def build(self) -> float:
        """Build the subject and run it once; return the seconds of both together."""
        start = perf_counter()
        subject: Subject = self._create(package=self._package, **self._parameters)
        subject.run(1)
        self._subject = subject
        return perf_counter() - start

    def check(self) -> float:
        """Return the subject's deviation from its reference."""
        return self.subject.deviation()

    def slice(self, seconds: float) -> float:
        """Run batches for about `seconds` and return the minimum time of one run, divided by its parts."""
        run = self.subject.run
        if not self._batch:
            self._batch = self._calibrate()
        batch = self._batch
        shortest = math.inf
        now = perf_counter()
        deadline = now + seconds
        while now < deadline:
            start = perf_counter()
            run(batch)
            now = perf_counter()
            shortest = min(shortest, now - start)
        return shortest / batch / self.subject.parts

    @property
    def subject(self) -> Subject:
        """The subject, which `build` made."""
        if self._subject is None:
            raise RuntimeError("build comes first")
        return self._subject

    def _calibrate(self) -> int:
        """Return how many runs fill the shortest batch."""
        batch = 1
        while True:
            start = perf_counter()
            self.subject.run(batch)
            if perf_counter() - start >= SHORTEST_BATCH:
                return batch
            batch *= 2


def version_of(distribution: str, module: object) -> str:
    """Return the installed version, or what the module says of itself, or nothing."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return str(getattr(module, "__version__", ""))


def answer(worker: Worker, request: str) -> dict[str, float]:
    """Do what one line asks."""
    match request.split():
        case ["build"]:
            return {"seconds": worker.build()}
        case ["parts"]:
            return {"parts": worker.subject.parts}
        case ["check"]:
            return {"deviation": worker.check()}
        case ["slice", milliseconds]:
            return {"seconds": worker.slice(float(milliseconds) / 1000)}
    raise ValueError(f"no such request: {request!r}")


def serve(requests: TextIO, answers: TextIO, start: str) -> bool:
    """Answer requests until `leave`, `quit`, the end of input, or the first failure; return whether it was `leave`."""

    def send(message: dict[str, object]) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    try:
        worker = Worker(**json.loads(start))
        send({"version": worker.version})
        for line in requests:
            if line.strip() in ("leave", "quit"):
                return line.strip() == "leave"
            send(dict(answer(worker, line)))
    except UnavailableError as reason:
        send({"unavailable": str(reason)})
    except Exception as error:
        traceback.print_exc()
        send({"error": (f"{type(error).__name__}: {error}".splitlines() or [""])[0]})
    return False


if __name__ == "__main__":
    # The pipe is for answers alone: banners and warnings of a contender, native ones too, must not break the protocol.
    private = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    orderly = serve(sys.stdin, private, sys.argv[1])
    private.flush()
    if not orderly:
        # Some runtimes hang or crash while their threads are torn down; nothing is left to lose.
        os._exit(0)
