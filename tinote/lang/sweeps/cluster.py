"""Runs on a Dask cluster: one task per call; each worker fetches the program once."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tinote.errors import SweepError
from tinote.lang.sweeps.extras import differing, library, versions
from tinote.lang.sweeps.runs import (
    Call,
    EnsemblePart,
    Outcome,
    Payload,
    Reduced,
    dumped,
    loaded,
    merge,
    perform,
    reduce,
)
from tinote.lang.sweeps.trees import Combine
from tinote.source import caller

#: Calls that wait at the scheduler, for each thread of the cluster, and at least.
_AHEAD, _LEAST_AHEAD = 8, 128


class Cluster:
    """A cluster that runs a program. `where`: the address of a scheduler, a `dask.distributed.Client`, or a cluster
    object. Raises `SweepError` for a worker that has other versions than this process.
    """

    def __init__(self, payload: Payload, where: Any, threads: int | None = None) -> None:
        self._distributed = library("distributed", "a sweep on a cluster")
        self._payload = payload
        self._threads = threads
        self._is_own = not hasattr(where, "submit")
        if self._is_own and not isinstance(where, str) and not hasattr(where, "scheduler_address"):
            raise SweepError(
                f"where is None, the address of a scheduler, a Client or a cluster, not {type(where).__name__}",
                caller(),
            )
        try:
            self._client: Any = self._distributed.Client(where, set_as_default=False) if self._is_own else where
        except OSError as error:
            raise SweepError(f"there is no scheduler at {where}: {error}", caller()) from None
        try:
            self._check()
        except BaseException:
            self.close()
            raise
        # A task of its own, not scattered data: it is made again where the worker that has it dies.
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)  # once, to be made again from there
            self._program = self._client.submit(_same, _Sent(payload), key=f"tinote-{payload.token}")

    def _check(self) -> None:
        """Of the workers there are; those that come later check for themselves when they fetch the program."""
        mine = versions()
        for address, found in self._client.run(_versions, on_error="return").items():
            if isinstance(found, OSError):
                continue  # it has left
            if isinstance(found, BaseException):
                raise SweepError(f"the worker at {address} cannot run kernels: {found}", caller())
            differ = differing(mine, found)
            if differ:
                raise SweepError(f"the worker at {address} has {differ}", caller(), hint="install the same there")

    def run(self, calls: Iterable[tuple[int, Call]]) -> Iterator[tuple[int, Outcome]]:
        """The outcomes of numbered calls, as they come."""
        killed = self._distributed.scheduler.KilledWorker if hasattr(self._distributed, "scheduler") else ()
        suspects: deque[tuple[int, Call]] = deque()
        for number, call, found in self._completed(iter(calls), None):
            if isinstance(found, killed):
                suspects.append((number, call))  # or something else did that ran at the same time
            else:
                yield number, _outcome(found)
        for number, _, found in self._completed(iter(suspects), 1):
            if isinstance(found, killed):
                yield number, Outcome(None, float("nan"), f"its worker died each time that it ran: {found}")
            else:
                yield number, _outcome(found)

    @property
    def count(self) -> int:
        """How many runs there are at a time: one on each worker."""
        return len(self._client.nthreads())

    def reduced(self, parts: Sequence[EnsemblePart], combine: Combine) -> Reduced:
        """All parts as one, reduced on the workers by the program's own `combine`: one result comes here. What workers
        that die have had is computed again. Raises `SweepError`.
        """
        del combine
        common = self._client.submit(
            _same, _Sent(dumped(self._payload, (parts[0].args, parts[0].contents))), pure=False
        )
        options = {"program": self._program, "pure": False}
        scenes = [dumped(self._payload, part.scenes) for part in parts]
        level = self._client.map(_reduce, scenes, common=common, threads=self._threads, **options)
        futures = [common, *level]
        try:
            while len(level) > 1:
                pairs = [
                    self._client.submit(_merge, a, b, **options) for a, b in zip(level[::2], level[1::2], strict=False)
                ]
                futures += pairs
                level = [*pairs, *level[2 * len(pairs) :]]
            found = level[0].result()
        except self._distributed.scheduler.KilledWorker as error:
            raise SweepError(
                f"workers died each time that they ran a part of the ensemble: {error}", caller()
            ) from None
        except BaseException:
            self._client.cancel(futures, force=True)
            raise
        return found.payload

    def _completed(self, calls: Iterator[tuple[int, Call]], most: int | None) -> Iterator[tuple[int, Call, Any]]:
        known: dict[Any, tuple[int, Call]] = {}
        done = self._distributed.as_completed(loop=self._client.loop)

        def submit() -> None:
            ahead = most or max(_LEAST_AHEAD, _AHEAD * sum(self._client.nthreads().values()))
            if known and 4 * len(known) > 3 * ahead:
                return  # a lot at a time: each costs the scheduler as much as several tasks
            given = []
            while len(known) + len(given) < ahead and (one := next(calls, None)) is not None:
                given.append(one)
            if not given:
                return
            futures = self._client.map(
                _run,
                [dumped(self._payload, call) for _, call in given],
                program=self._program,
                threads=self._threads,
                pure=False,
            )
            for future, one in zip(futures, given, strict=True):
                known[future.key] = one
            done.update(futures)

        try:
            submit()
            for batch in done.batches():
                # Together: to fetch results one by one costs as much as to compute short ones.
                finished = {future.key: future for future in batch if future.status == "finished"}
                results = self._client.gather(finished, errors="skip") if finished else {}
                for future in batch:
                    number, call = known.pop(future.key)
                    found = results.get(future.key)
                    yield number, call, self._alone(future) if found is None else found
                submit()
        finally:
            if known:
                self._client.cancel(list(done.futures), force=True)

    def _alone(self, future: Any) -> Any:
        """What has become of one task, which runs again where the worker that had its result has died."""
        try:
            return future.result()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return error

    def close(self) -> None:
        """Forget what was sent; the cluster stays."""
        self._program = None
        if self._is_own:
            self._client.close()


class _Sent:
    """A program, arguments or results that the scheduler need not look into."""

    def __init__(self, payload: Any) -> None:
        self.payload = payload


def _same(sent: _Sent) -> _Sent:
    return sent


def _versions() -> dict[str, str]:
    return versions()


def _run(call: bytes, *, program: _Sent, threads: int | None) -> _Sent:
    return _Sent(perform(program.payload, call, threads or _own_threads()))


def _reduce(scenes: bytes, *, common: _Sent, program: _Sent, threads: int | None) -> _Sent:
    payload = program.payload
    args, contents = loaded(payload, common.payload)
    part = EnsemblePart(args, loaded(payload, scenes), contents)
    return _Sent(reduce(payload, part, threads or _own_threads()))


def _merge(first: _Sent, second: _Sent, *, program: _Sent) -> _Sent:
    return _Sent(merge(program.payload, first.payload, second.payload))


def _own_threads() -> int:
    own: Any = library("distributed", "a worker").get_worker()
    return int(own.state.nthreads)


def _outcome(found: Any) -> Outcome:
    if isinstance(found, SweepError):
        raise found
    if isinstance(found, BaseException):
        return Outcome(None, float("nan"), f"{type(found).__name__}: {found}")
    return found.payload
