"""`ti.sweep`: runs a function for many combinations of its arguments."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from numbers import Integral
from typing import Any

import numpy as np

from tinote.errors import SweepError
from tinote.lang.ad.bars import bar
from tinote.lang.shipping.package import pack
from tinote.lang.sweeps.cluster import Cluster
from tinote.lang.sweeps.extras import library, versions
from tinote.lang.sweeps.points import Points, points_of
from tinote.lang.sweeps.processes import Processes, cores
from tinote.lang.sweeps.results import NOT_RUN, OWN, SweepStore, Table, load_tables
from tinote.lang.sweeps.runs import Call, Payload
from tinote.lang.sweeps.watching import Watcher, watcher_of
from tinote.source import Span, caller


class SweepInterrupt(KeyboardInterrupt):
    """A sweep was interrupted. `results`: what it had by then, as `ti.sweep` gives it."""

    def __init__(self, message: str, results: Any) -> None:
        super().__init__(message)
        self.results = results


def sweep(
    function: Callable[..., Any],
    over: Any,
    *,
    zip: bool = False,
    where: Any = None,
    workers: int | None = None,
    threads: int | None = None,
    store: Any = None,
    errors: str = "keep",
    seed: int = 0,
    progress: bool = True,
    best: str | None = None,
    direction: str = "minimize",
) -> Any:
    """Run a function for every combination of arguments, in several processes, and return a table of the results.

    Every point starts from the fields and the Python variables as they were when the sweep began, regardless of what
    ran before in the same process, and has its own seed, made of `seed` and its arguments: kernels, `random` and
    `numpy.random` draw with it, and a function with a parameter `seed` that `over` does not have gets it. So a table
    does not depend on the number of processes, nor on the order of the points: with the same number of threads per
    point it is the same bit for bit on machines of one kind.

    A point whose process dies runs again, up to three times here, on a cluster up to the limit of its scheduler
    (`distributed.scheduler.allowed-failures`); then it has failed. An interrupt ends the sweep within a second, as a
    `KeyboardInterrupt` whose `results` are the table so far.

    Parameters
    ----------
    function : callable
        It takes the arguments of a point by keyword, and returns a number, an array of numbers, or a tuple or
        dictionary of these, of the same shape at each point. With its kernels and fields, and all that it names, it is
        sent as it is now, defined in a cell or a script or imported.
    over : dict of lists, list of dicts, or pandas.DataFrame
        `{"k": [1.0, 2.0], "n": range(3)}` for all combinations of the values, or the arguments of each point.
    zip : bool, default False
        Combine the first values of a dictionary, then the second ones, and so on.
    where : str, dask.distributed.Client or cluster, optional
        The address of a Dask scheduler, a client or a cluster object: there each worker runs one point at a time. By
        default processes on this machine.
    workers : int, optional
        The number of processes on this machine; by default one for each core.
    threads : int, optional
        The number of threads of a point: by default 1 on this machine, on a cluster what a worker has.
    store : path, optional
        A folder to which results are written as they come, as a Zarr group (arrays and JSON, no code). The same sweep
        with the same store continues where it stopped, and one with further points runs only these.
    errors : {"keep", "raise"}
        Whether a point that raises has NaN for its results, and its message in `error`, or ends the sweep.
    seed : int, default 0
        What the seeds of the points are made of.
    progress : bool, default True
        Show a bar when it takes long; in a notebook with `%load_ext tinote` a view: which points are done, their
        results as a table and a plot, and the positions that the chosen one returns, if that is an array of shape (n,
        2) or (n, 3).
    best : str, optional
        The result by which the best point is marked in that view. Without it no point is called best.
    direction : {"minimize", "maximize"}
        Whether the best point has the smallest or the largest result.

    Returns
    -------
    xarray.Dataset
        A variable for each result, `result` if there is one without a name, and `seconds` (wall time), `seed`
        (`point_seed` if there is a parameter of that name) and `error` of each point. Dimensions are the parameters, or
        `point`.

    Raises
    ------
    SweepError
        For what cannot be swept, and for workers with other versions.
    SerializationError
        For what cannot be sent.

    Examples
    --------
    >>> def square(a):
    ...     return a * a
    >>> table = ti.sweep(square, {"a": [1.0, 2.0, 3.0]}, workers=1, progress=False)
    >>> table["result"].values
    array([1., 4., 9.])
    """
    span = caller()
    if not callable(function):
        raise SweepError(f"a sweep runs a function, not {function!r}", span)
    if errors not in ("keep", "raise"):
        raise SweepError(f'errors is "keep" or "raise", not {errors!r}', span)
    for name, value in (("workers", workers), ("threads", threads)):
        if value is not None and (not isinstance(value, Integral) or isinstance(value, bool) or value < 1):
            raise SweepError(f"{name} must be a positive integer, not {value!r}", span)
    if not isinstance(seed, Integral):
        raise SweepError(f"a seed is an integer, not {seed!r}", span)
    if direction not in ("minimize", "maximize"):
        raise SweepError(f'direction is "minimize" or "maximize", not {direction!r}', span)
    if best is None and direction == "maximize":
        raise SweepError("a direction is that of a result, which `best` names", span, hint='best="energy"')
    if best is not None and best.startswith("-"):
        text = f'best="{best}" is now best="{best[1:]}", direction="maximize"'
        warnings.warn(text, DeprecationWarning, stacklevel=2)
    elif direction == "maximize":
        best = f"-{best}"
    for name in ("cloudpickle", "xarray"):
        library(name, "a sweep")
    points = points_of(function, over, zip, int(seed))
    for name in OWN:
        if name in points.labels:
            raise SweepError(f"a parameter cannot be called {name!r}: the table has that for itself", span)
    packed = pack(function, arguments=points.rows)
    payload = Payload(packed.token, versions(), packed.data, packed.modules)
    attributes = {"function": getattr(function, "__name__", "function"), "sweep_seed": int(seed), "token": packed.token}
    table = Table(points)
    open_store = None if store is None else _store(store, table, _description(points, packed.parts, attributes), span)
    todo = [int(number) for number in np.flatnonzero(table.state == NOT_RUN)]
    if todo:
        with ExitStack() as ends:
            try:
                runner = _runner(payload, where, workers, threads, len(todo))
                ends.callback(runner.close)
                if open_store is not None:
                    open_store.begin()
                    ends.callback(open_store.close)
                load_tables()
                watcher = watcher_of(table, attributes["function"], best) if progress else None
                _run(runner, todo, points, table, open_store, errors, progress, span, watcher)
            except KeyboardInterrupt:
                left = int((table.state == NOT_RUN).sum())
                message = f"the sweep was interrupted; {len(points.rows) - left} of {len(points.rows)} points are done"
                raise SweepInterrupt(message, table.dataset(attributes)) from None
    if table.errors:
        number, (message, _) = next(iter(table.errors.items()))
        reason = message.strip().splitlines()[-1]
        first = f"the first one with {points.rows[number]}: {reason}"
        text = f"{len(table.errors)} of {len(points.rows)} points have failed, {first}"
        warnings.warn(text, UserWarning, stacklevel=2)
    return table.dataset(attributes)


def _store(path: Any, table: Table, description: dict[str, Any], span: Span) -> SweepStore:
    try:
        return SweepStore(path, table, description, span)
    except (OSError, TypeError, ValueError) as error:
        raise SweepError(f"{path} cannot be the store of a sweep: {error}", span) from None


def _runner(payload: Payload, where: Any, workers: int | None, threads: int | None, count: int) -> Processes | Cluster:
    if where is None:
        return Processes(payload, min(workers or cores(), count), threads or 1)
    if workers is not None:
        raise SweepError("workers is for this machine; a cluster has those that it has", caller())
    return Cluster(payload, where, threads)


def _run(
    runner: Processes | Cluster,
    todo: list[int],
    points: Points,
    table: Table,
    open_store: SweepStore | None,
    errors: str,
    progress: bool,
    span: Span,
    watcher: Watcher | None,
) -> None:
    calls = ((number, Call((), points.rows[number], points.seeds[number])) for number in todo)
    with bar(None, "points", total=len(todo), shown=progress and watcher is None) as shown:
        try:
            for number, outcome in runner.run(calls):
                with nullcontext() if watcher is None else watcher.lock:
                    (table if open_store is None else open_store).add(number, outcome)
                shown.update()
                if watcher is not None:
                    watcher.point()
                if errors == "raise" and number in table.errors:
                    message, details = table.errors[number]
                    raised = SweepError(f"the point {points.rows[number]} has failed:\n{message}", span)
                    raised.add_note(details)
                    raise raised
        finally:
            if watcher is not None:
                watcher.end()


def _description(points: Points, parts: dict[str, str], attributes: dict[str, Any]) -> dict[str, Any]:
    return {
        "function": attributes["function"],
        "sweep_seed": attributes["sweep_seed"],
        "sent": parts,
        "points": points.keys,
        "dims": list(points.dims),
        "shape": list(points.shape),
        "versions": versions(),
    }
