"""`ti.ad.FwdMode`: forward mode as a block, along one direction or several.

with ti.ad.FwdMode(loss=y, param=x, seed=[1.0, 0.0]):
    compute_y()
# y.dual now holds the Jacobian of y times the seed

with ti.ad.FwdMode(loss=y, param=x, seed=np.eye(2)) as mode:
    compute_y()
# mode.duals has the products with both seeds, one after the other: of the shape (2, *y.shape)
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, NoReturn, Self

import numpy as np

from tinote.completion import Documented
from tinote.errors import DifferentiationError
from tinote.lang.ad.functional.directions import SeveralDirections, directions_for
from tinote.lang.ad.functional.forward_block import ForwardBlock, takes_forward_blocks
from tinote.lang.ad.functional.forward_mode import ForwardMode
from tinote.lang.ad.functional.seeds import seed_array
from tinote.lang.data.fields import Field
from tinote.lang.data.matrix import Matrix
from tinote.lang.data.traced import Trace
from tinote.lang.session.owners import interrupted
from tinote.lang.session.state import block_out_of_order, independent_recordings, recorder
from tinote.source import Span, caller

Array = np.ndarray[Any, Any]

#: The most seeds of one block.
_MOST_SEEDS = 64


class FwdMode(Documented):
    """Forward mode: compute Jacobian-vector products along with the launches in a `with` block.

    A seed with a further, leading axis holds several directions, up to 64: the block computes its values once, and that
    many tangents of each. The products are then in `duals`, when the block has ended; the fields' own duals take no
    part, and need not be there. Numbers that depend on the parameters cannot go through Python then.

    Inside of a tape, of a function that is differentiated in reverse and of another block of this kind, to any depth,
    the duals of the loss that the block leaves are values, which have derivatives there. When an enclosing block of
    this kind ends, the duals are those of the enclosing block. While the duals of fields hold the tangents of an
    enclosing recording, they cannot be read as arrays.

    Parameters
    ----------
    loss : Field or sequence of Field
        What is differentiated, of any shape, with `needs_dual=True`.
    param : Field or sequence of Field
        What the derivative is taken with respect to, of any shape, with `needs_dual=True`.
    seed : array_like, optional
        The direction, of the shape of `param` (a sequence of them for several). It may be left out for a parameter of a
        single number, where it is 1; there `seed=[a]` is one direction, too, with its product in `duals`.
    clear_gradients : bool, default True
        Set the duals of all fields to zero at entry.

    Attributes
    ----------
    duals : numpy.ndarray or list of them
        For several directions: the products, of the shape of the loss after a leading axis of directions.

    Raises
    ------
    DifferentiationError
        For what cannot be differentiated.

    References
    ----------
    A. Griewank and A. Walther, "Evaluating Derivatives", 2nd ed., 2008, section 3.1 (vector forward mode).

    Examples
    --------
    >>> x = ti.field(ti.f64, shape=2, needs_dual=True)
    >>> y = ti.field(ti.f64, shape=2, needs_dual=True)
    >>> @ti.kernel
    ... def square():
    ...     for i in x:
    ...         y[i] = x[i] * x[i]
    >>> x.from_numpy([1.0, 3.0])
    >>> with ti.ad.FwdMode(loss=y, param=x, seed=[1.0, 0.5]):
    ...     square()
    >>> y.dual.to_numpy()
    array([2., 3.])
    """

    def __init__(
        self,
        loss: Field | Sequence[Field],
        param: Field | Sequence[Field],
        seed: Any = None,
        clear_gradients: bool = True,
    ) -> None:
        losses, params = _fields(loss, "loss"), _fields(param, "param")
        self._has_one = isinstance(loss, Field)
        #: the products along several seeds, when the block has ended
        self.duals: Any = None
        seeds = _seeds(param, seed)
        if len(seeds) != len(params):
            raise DifferentiationError(f"{len(params)} parameters need one seed each, not {len(seeds)}", caller())
        self._several: _SeveralSeeds | None = None
        self._apart = ExitStack()
        self._inner: ForwardBlock | None = None
        #: whether the products have a leading axis of directions, too
        self._leads = all(map(_has_leading_axis, params, seeds))
        if all(field.has_dual for field in (*losses, *params)):
            seeds = _along_one(params, seeds)
        self._given = losses, params, seeds
        if all(map(_has_leading_axis, params, seeds)):
            if not clear_gradients:
                raise DifferentiationError(
                    "along several seeds, fields have duals of their own, which start at zero",
                    caller(),
                    hint="leave clear_gradients=False out",
                )
            self._several = _SeveralSeeds(losses, params, seeds)
            self._mode: ForwardMode = self._several
        else:
            _require_duals(losses, "loss")
            _require_duals(params, "param")
            self._mode = ForwardMode(losses, params, seeds, Trace())
            self._mode.clears = clear_gradients

    def __enter__(self) -> Self:
        frame = sys._getframe(1)
        self._mode.interrupts = interrupted()
        if self._mode.interrupts:
            self._apart.enter_context(independent_recordings())
        outer = recorder.get()
        self.opened = Span(frame.f_code.co_filename, frame.f_lineno)
        try:
            if takes_forward_blocks(outer):
                self._enter_inside(outer)
            else:
                self._mode.__enter__()
        except BaseException:
            if self._inner is not None:
                self._inner.end()
            self._apart.close()
            raise
        return self

    def _enter_inside(self, outer: Any) -> None:
        """Enter the block as a part of the outer recording."""
        if self._several is not None:
            raise DifferentiationError(
                "forward mode inside of another recording follows one seed at a time",
                caller(),
                notes=outer.opened_notes(),
            )
        if not self._mode.clears:
            raise DifferentiationError(
                "forward mode inside of another recording sets duals to zero at its start",
                caller(),
                hint="leave clear_gradients=False out",
                notes=outer.opened_notes(),
            )
        outer.root.begin_all_duals()
        self._inner = ForwardBlock(outer, *self._given)
        self._inner.enter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._inner is not None:
            inner, self._inner = self._inner, None
            try:
                if error is None and not inner.is_innermost:
                    raise block_out_of_order(self.opened)
                inner.leave(completed=error is None)
            finally:
                inner.end()
            return
        try:
            if error is None and recorder.get() is not self._mode:
                raise block_out_of_order(self.opened)
            if self._leads and error is None:
                self._mode.take_duals_back()
                losses, _, _ = self._given
                own = self._several
                found = [one.dual.to_numpy()[None] for one in losses] if own is None else own.products()
                self.duals = found[0] if self._has_one else found
        finally:
            recorder.set(None)
            with self._apart:
                self._mode.__exit__(kind, error, trace)


class _SeveralSeeds(SeveralDirections):
    """Forward mode along the seeds of a user."""

    def __init__(self, losses: list[Field], params: list[Field], seeds: Sequence[Any]) -> None:
        count = len(seeds[0])
        if not 1 <= count <= _MOST_SEEDS:
            raise DifferentiationError(f"forward mode has up to {_MOST_SEEDS} seeds at once, not {count}", caller())
        width = directions_for(max(count, 2), _MOST_SEEDS)
        if width < max(count, 2):
            what = f"{count} seeds at once" if count > 1 else "one seed with a leading axis"
            raise DifferentiationError(
                f"forward mode along {what} is compiled (on a GPU without f16), and has duals that fit in memory",
                caller(),
                hint="take one seed at a time, without a leading axis",
            )
        rows: list[Array] = []
        for field in (*losses, *params):
            if field.dtype.kind != "f":
                raise DifferentiationError(f"'{field.name}' is a field of {field.dtype}, which has no dual", caller())
        for field, one in zip(params, seeds, strict=True):
            shape = count, *field.shape, *field.element
            found = np.zeros((width, *shape[1:]))
            found[:count] = seed_array(one, shape, f" of '{field.name}'", "the parameter, with an axis of directions,")
            rows.append(np.moveaxis(found, 0, -1))
        super().__init__(params, rows, Trace())
        self.losses = losses
        self._count = count

    def products(self) -> list[Array]:
        """The tangents of the losses, with a leading axis of seeds."""
        return [np.ascontiguousarray(np.moveaxis(self.tangents(one), -1, 0)[: self._count]) for one in self.losses]

    def refuse(self) -> NoReturn:
        raise DifferentiationError(
            "this cannot be followed along several seeds at once: numbers that depend on the parameters go through "
            "Python, or a gradient is computed",
            caller(),
            hint="take one seed at a time, or ti.ad.jacobian, which does so where it has to",
        )


def _seeds(param: Field | Sequence[Field], seed: Any) -> list[Any]:
    """The seed of each parameter."""
    if isinstance(param, Field):
        return [seed]
    if seed is None:
        return [None] * len(param)
    if _rank(seed) == 0 and not isinstance(seed, list | tuple):
        raise DifferentiationError(
            f"the seed of several parameters is a list of seeds, one for each, not {seed!r}", caller()
        )
    return list(seed)


def _along_one(params: Sequence[Field], seeds: Sequence[Any]) -> list[Any]:
    """Seeds of a single number for parameters of a single number, in the shape of those: one direction, unless another
    parameter has several.
    """
    found = list(seeds)
    for k, (field, seed) in enumerate(zip(params, seeds, strict=True)):
        shape = field.shape + field.element
        is_one = _rank(seed) == 0 or (_rank(seed) == 1 and len(seed) == 1)
        if seed is not None and math.prod(shape) == 1 and is_one:
            number = seed if _rank(seed) == 0 else seed[0]
            found[k] = np.full(shape, number) if shape else number
        elif _has_leading_axis(field, seed):
            return list(seeds)
    return found


def _has_leading_axis(field: Field, seed: Any) -> bool:
    """Whether a seed has an axis more than the parameter."""
    return _rank(seed) == len(field.shape) + len(field.element) + 1


def _rank(seed: Any) -> int:
    """How many axes a seed has."""
    if seed is None:
        return 0
    if isinstance(seed, Matrix):
        return seed.values.ndim
    try:
        return np.ndim(seed)
    except ValueError:  # rows of different lengths: the error is that of a seed
        return 0


def _fields(given: Any, what: str) -> list[Field]:
    found = [given] if isinstance(given, Field) else list(given) if isinstance(given, list | tuple) else []
    if not found or not all(isinstance(f, Field) for f in found):
        raise DifferentiationError(
            f"the {what} of forward mode must be a field or a list of fields, not {given!r}", caller()
        )
    return found


def _require_duals(fields: Sequence[Field], what: str) -> None:
    for field in fields:
        if not field.has_dual:
            raise DifferentiationError(
                f"the {what} '{field.name}' has no dual", caller(), hint="make it with needs_dual=True"
            )
