"""`ti.ensemble`: the mean of losses and gradients over many scenes."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from tinote.completion import Documented
from tinote.errors import SweepError
from tinote.lang.ad.functional.functional import value_and_grad
from tinote.lang.data.fields import Field
from tinote.lang.session.renamed import also_called
from tinote.lang.shipping.package import pack
from tinote.lang.sweeps.cluster import Cluster
from tinote.lang.sweeps.extras import library, versions
from tinote.lang.sweeps.points import points_of
from tinote.lang.sweeps.processes import Processes, cores
from tinote.lang.sweeps.runs import EnsemblePart, Payload
from tinote.lang.sweeps.trees import Combine, added, part_length
from tinote.source import caller


class Ensemble(Documented):
    """The mean of a loss and of its gradient over many scenes, which `ti.ensemble` returns.

    It is called with the arguments of the loss.

    Methods
    -------
    close

    Attributes
    ----------
    losses : list of float
        The losses of the last call, in the order of the scenes.

    Examples
    --------
    >>> def loss(x, target=0.0):
    ...     return (x - target) * (x - target)
    >>> with ti.ensemble(loss, {"target": [1.0, 3.0]}, argnums=0, workers=1) as mean_loss:
    ...     _ = mean_loss(0.0)
    ...     float(max(mean_loss.losses))
    9.0
    """

    def __init__(
        self, function: Callable[..., Any], over: Any, zipped: bool, reduction: Any, seed: int, options: dict[str, Any]
    ) -> None:
        self._points = points_of(function, over, zipped, seed, complete=False)
        if not self._points.rows:
            raise SweepError("an ensemble needs scenes: over has none", caller())
        self._mean = reduction == "mean"
        self._combine: Combine = reduction if callable(reduction) else added
        wrt = options["wrt"]
        self._fields: list[Field] = [] if wrt is None else [wrt] if isinstance(wrt, Field) else list(wrt)
        derivative = value_and_grad(function, options["argnums"], wrt=wrt, output=options["output"])
        packed = pack((derivative, self._combine), self._fields, self._points.rows)
        self._payload = Payload(packed.token, versions(), packed.data, packed.modules)
        self._where, self._workers, self._threads = options["where"], options["workers"], options["threads"]
        self._runner: Processes | Cluster | None = None
        self.losses = np.full(len(self._points.rows), np.nan)

    def __call__(self, *args: Any) -> tuple[Any, Any]:
        """The reduced loss and gradient for these arguments. Raises `SweepError` with the first scene that fails."""
        points = self._points
        contents = tuple([field.array_copy() for field in self._fields])
        scenes = list(zip(points.rows, points.seeds, strict=True))
        try:
            runner = self._running()
            length = part_length(len(scenes), runner.count)
            begins = range(0, len(scenes), length)
            parts = [EnsemblePart(args, tuple(scenes[begin : begin + length]), contents) for begin in begins]
            found = runner.reduced(parts, self._combine)
            if found.failed is not None:
                raised = SweepError(f"the scene {found.failed} has failed:\n{found.error}", caller())
                raised.add_note(found.details)
                raise raised
        except BaseException:
            self.close()
            raise
        self.losses[:] = found.losses
        value, gradient = found.value
        if not self._mean:
            return value, gradient
        return value / len(points.rows), _each(gradient, lambda one: one / len(points.rows))

    def _running(self) -> Processes | Cluster:
        if self._runner is None:
            if self._where is None:
                count = min(self._workers or cores(), len(self._points.rows))
                self._runner = Processes(self._payload, count, self._threads or 1)
            else:
                self._runner = Cluster(self._payload, self._where, self._threads)
            weakref.finalize(self, self._runner.close)
        return self._runner

    def close(self) -> None:
        """End the processes. Another call begins new ones."""
        runner, self._runner = self._runner, None
        if runner is not None:
            runner.close()

    def __enter__(self) -> Ensemble:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@also_called(loss="output")
def ensemble(
    function: Callable[..., Any],
    over: Any,
    *,
    argnums: Any = None,
    wrt: Any = None,
    output: Any = None,
    zip: bool = False,
    reduction: Any = "mean",
    where: Any = None,
    workers: int | None = None,
    threads: int | None = None,
    seed: int = 0,
) -> Ensemble:
    """A function that returns the mean of a loss and of its gradient over many scenes, computed in several processes.

    The function is called with the arguments of the call and, by keyword, with those of a scene. With its kernels and
    fields it is sent once, as it is now; each call sends its arguments and what the fields `wrt` then hold. Each scene
    starts from what the other fields held when the ensemble was made, with a seed of its own.

    Results are added along a binary tree of the scenes, on the workers, in whatever order they arrive: each worker runs
    some neighbouring scenes and returns one gradient for them; on a cluster they combine these, too, and one gradient
    comes back. The tree is the same for 1, 2 or 8 workers, and so is the result, bit for bit, where they have as many
    threads each. A sum of n terms is rounded by at most ceil(log2(n)) times 2**-53 (2**-24 for gradients in f32) of the
    sum of their magnitudes.

    Parameters
    ----------
    function : callable
        The loss of a scene.
    over : dict of lists, list of dicts, or pandas.DataFrame
        The arguments of the scenes, as for `ti.sweep`.
    zip : bool, default False
        As for `ti.sweep`.
    argnums : int or sequence of int, optional
        As for `ti.ad.value_and_grad`.
    wrt : Field or sequence of Field, optional
        As for `ti.ad.value_and_grad`.
    output : Field or Ndarray, optional
        As for `ti.ad.value_and_grad`.
    reduction : {"mean", "sum"} or callable
        Or an associative function of two pairs `(loss, gradient)` that returns a pair.
    where : str, dask.distributed.Client or cluster, optional
        As for `ti.sweep`.
    workers, threads : int, optional
        As for `ti.sweep`.
    seed : int, default 0
        As for `ti.sweep`.

    Returns
    -------
    Ensemble
        Called with arguments it returns `(loss, gradient)`, the gradient as `value_and_grad` gives it; `losses` are
        those of the scenes. Its processes live until `close()`, or the end of a `with` block.

    Raises
    ------
    SweepError
        For scenes that fail, and for workers with other versions.

    Examples
    --------
    >>> def loss(x, target=0.0):
    ...     return (x - target) * (x - target)
    >>> with ti.ensemble(loss, {"target": [1.0, 3.0]}, argnums=0, workers=1) as mean_loss:
    ...     mean_loss(0.0)
    (5.0, -4.0)
    """
    library("cloudpickle", "an ensemble")
    if not callable(reduction) and reduction not in ("mean", "sum"):
        raise SweepError(f'reduction is "mean", "sum" or a function, not {reduction!r}', caller())
    options = {"argnums": argnums, "wrt": wrt, "output": output, "where": where, "workers": workers, "threads": threads}
    return Ensemble(function, over, zip, reduction, seed, options)


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    return tuple([_each(one, change) for one in value]) if isinstance(value, tuple) else change(value)
