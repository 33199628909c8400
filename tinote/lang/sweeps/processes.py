"""Runs in processes of this machine, which begin with a sweep and end with it.

A process gets a call and, while that runs, the next one. The processes import nothing of the program that starts them,
so that scripts need no `if __name__ == "__main__"`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing.connection import Pipe, wait
from pathlib import Path
from typing import Any

from tinote.errors import SweepError
from tinote.lang.sweeps.children import PipeEnd, begin_child, end_with_children
from tinote.lang.sweeps.runs import Call, EnsemblePart, Outcome, Payload, Reduced, dumped
from tinote.lang.sweeps.trees import Combine, Tree
from tinote.lang.sweeps.worker import NUMBER

#: Processes that a call may end before it counts as failed.
MOST_KILLS = 3
_BEGIN = """
import json, sys
sys.path[:] = json.loads(sys.argv[2])
from tinote.lang.sweeps.worker import main
main(int(sys.argv[1]))
"""


class _Process:
    def __init__(self, payload: Payload, threads: int) -> None:
        self.connection, other = Pipe()
        self._payload = payload
        self.calls: deque[int] = deque()
        # What is installed next to this package is found by the same path; modules of the user's, too.
        path = [str(Path(entry or os.getcwd()).absolute()) for entry in sys.path]
        with other:
            command = [sys.executable, "-c", _BEGIN, str(other.fileno()), json.dumps(path)]
            self.process = begin_child(command, other)
        self.connection.send((payload, threads))

    def send(self, number: int, call: Call | EnsemblePart) -> None:
        self.connection.send_bytes(NUMBER.pack(number) + dumped(self._payload, call))

    def end(self) -> None:
        """End it, and the processes that its function has begun."""
        self.connection.close()
        with contextlib.suppress(ProcessLookupError):
            end_with_children(self.process.pid)

    def reap(self) -> str:
        """In words, how it ended."""
        self.end()
        code = self.process.wait()
        return f"by {signal.Signals(-code).name}" if code < 0 else f"with exit status {code}"


class Processes:
    """`count` processes that run a program."""

    def __init__(self, payload: Payload, count: int, threads: int = 1) -> None:
        self._payload = payload
        self._count = count
        self._threads = threads
        self._processes: list[_Process] = []

    def run(self, calls: Iterable[tuple[int, Call]]) -> Iterator[tuple[int, Outcome]]:
        """The outcomes of numbered calls, as they come. Raises `SweepError` when the program runs nowhere."""
        return self._run(calls)

    @property
    def count(self) -> int:
        """How many runs there are at a time."""
        return self._count

    def reduced(self, parts: Sequence[EnsemblePart], combine: Combine) -> Reduced:
        """All parts as one: the processes reduce each of them, this one what they give. Raises `SweepError`."""
        tree = Tree(len(parts), combine)
        losses: list[tuple[Any, ...]] = [()] * len(parts)
        for number, found in self._run(enumerate(parts)):
            if isinstance(found, Outcome):
                return Reduced((), None, parts[number].scenes[0][0], found.error)
            if found.failed is not None:
                return found
            losses[number] = found.losses
            tree.add(number, found.value)
        return Reduced(tuple([loss for some in losses for loss in some]), tree.result)

    def _run(self, calls: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
        given = iter(calls)
        waiting: deque[int] = deque()  # of calls whose process has died
        known: dict[int, Any] = {}
        kills: dict[int, int] = {}

        def following() -> int | None:
            if waiting:
                return waiting.popleft()
            found = next(given, None)
            if found is None:
                return None
            known[found[0]] = found[1]
            return found[0]

        def feed(process: _Process, most: int) -> None:
            while len(process.calls) < most:
                number = following()
                if number is None:
                    return
                process.calls.append(number)
                try:
                    process.send(number, known[number])
                except OSError:  # it is gone, which the next look at it tells
                    return

        for process in self._processes:
            feed(process, 1)
        while True:
            while len(self._processes) < self._count and (waiting or known or not self._processes):
                number = following()
                if number is None:
                    break
                process = _Process(self._payload, self._threads)
                self._processes.append(process)
                process.calls.append(number)
                process.send(number, known[number])
            if not known:
                number = following()
                if number is None:
                    return
                waiting.appendleft(number)
                continue
            busy = {process.connection: process for process in self._processes if process.calls}
            for connection in wait(list(busy)):
                assert isinstance(connection, PipeEnd)
                process = busy[connection]
                try:
                    number, outcome = connection.recv()
                except (EOFError, OSError):
                    self._processes.remove(process)
                    how = process.reap()
                    running, *others = process.calls
                    waiting.extend(others)
                    kills[running] = kills.get(running, 0) + 1
                    if kills[running] < MOST_KILLS:
                        waiting.append(running)
                        continue
                    del known[running]
                    yield running, Outcome(None, float("nan"), f"its process ended {how}, {MOST_KILLS} times")
                    continue
                if number < 0:
                    raise SweepError(str(outcome))
                process.calls.popleft()
                del known[number]
                feed(process, 2)
                yield number, outcome

    def close(self) -> None:
        """End all processes at once."""
        for process in self._processes:
            process.end()
        for process in self._processes:
            process.process.wait()
        self._processes.clear()


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
