"""Optimisers over fields, as steps that can be captured: part of `ti.nn`.

    adam = ti.nn.Adam([stiffness, weight], 0.01)

    @ti.capture
    def train():
        with ti.ad.Tape(loss):
            measure()
        adam.step()

A step takes the gradients that are there. Its decisions, also those of a line search, are made by kernels: so a step is
a list of launches, and training runs in pages.
"""

# Annotations of kernels are values.
# pyright: reportInvalidTypeForm=false

import math
from collections.abc import Mapping
from typing import Any

import tinote as ti
from tinote.completion import Documented
from tinote.errors import FieldError
from tinote.kit.fields import FLOATS, like, place
from tinote.source import Span, caller

__all__ = ["LBFGS", "SGD", "Adam"]


#: Wolfe's conditions: by how much of its first slope a loss has to fall, and a slope has to be flatter. Usual values.
DECREASE, FLATTER = 1e-4, 0.9
#: Trials of a search; after them it begins anew along the gradient, without the steps before. Chosen, not measured.
MOST_TRIALS = 30
#: What gradients have at least together where the first step is as long as 1 / that.
TINY = 1e-30
#: The fields of L-BFGS that are its state.
STATE = (
    *("x", "g", "d", "s", "y", "rho", "pairs", "scale", "count", "trials", "value", "slope", "length", "low", "high"),
)


@ti.func
def _is_finite(value):
    return not (ti.math.isnan(value) or ti.math.isinf(value))


@ti.func
def _read(field: ti.template(), p: ti.template(), k: ti.template()):
    """Number k of an element."""
    if ti.static(not isinstance(field, ti.MatrixField)):
        return field[p]
    elif ti.static(field.m == 1):
        return field[p][k]
    else:
        return field[p][k // field.m, k % field.m]


@ti.func
def _write(field: ti.template(), p: ti.template(), k: ti.template(), value):
    if ti.static(not isinstance(field, ti.MatrixField)):
        field[p] = value
    elif ti.static(field.m == 1):
        field[p][k] = value
    else:
        field[p][k // field.m, k % field.m] = value


@ti.func
def _square(value: ti.template()):
    """The sum of squares of an element."""
    if ti.static(isinstance(value, ti.Matrix)):
        return value.norm_sqr()
    else:
        return value * value


def _fields_of(parameters: Any, span: Span) -> tuple[Any, ...]:
    """The fields of a network, of a mapping, of a sequence, or a field."""
    given = getattr(parameters, "parameters", parameters)
    given = given.values() if isinstance(given, Mapping) else [given] if isinstance(given, ti.Field) else given
    fields = tuple(given)
    for field in fields:
        if not isinstance(field, ti.Field) or field.dtype not in FLOATS:
            raise FieldError(f"an optimiser moves fields of f32 or of f64, not {field!r}", span)
        if not field.has_grad:
            raise FieldError(f"'{field.name}' has no gradient", span, hint="make it with needs_grad=True")
    if not fields:
        raise FieldError("an optimiser needs fields", span)
    if len({id(field) for field in fields}) < len(fields) or len({field.dtype for field in fields}) > 1:
        raise FieldError("an optimiser moves fields of one type, each once", span)
    return fields


class _Descent(Documented):
    """What first-order methods share: fields, a rate, gradients that are cut, and the number of steps."""

    def __init__(self, parameters: Any, rate: Any, clip: float | None, names: tuple[str, ...]) -> None:
        span = caller()
        self.fields = _fields_of(parameters, span)
        dtype = self.fields[0].dtype
        if isinstance(rate, ti.Field) and rate.shape != ():
            raise FieldError(f"a rate is one number, and '{rate.name}' has the shape {rate.shape}", span)
        if not (isinstance(rate, ti.Field) or callable(rate)):
            number, rate = float(rate), ti.field(dtype, shape=(), name="rate", needs_grad=False)
            rate[None] = number
        if clip is not None and not clip > 0:
            raise FieldError(f"gradients cannot be cut to the length {clip}", span)
        #: a field of one number, which may be set at any time, or the function of the step
        self.rate: Any = rate
        self.clip: Any = clip
        #: how many steps were taken
        self.count: Any = ti.field(ti.i32, shape=(), name="steps")
        #: what it remembers of each field, by name
        self.memories = tuple(
            [tuple([like(field, name, differentiates=False) for field in self.fields]) for name in names]
        )
        kind = type(self).__name__.lower()
        #: all fields in which it remembers former steps, by name, for `ti.save`
        self.state: dict[str, Any] = {f"{kind}_count": self.count}
        for name, fields in zip(names, self.memories, strict=True):
            self.state |= {f"{kind}_{name}_{number}": field for number, field in enumerate(fields)}

    @ti.func
    def _rate(self, step):
        if ti.static(isinstance(self.rate, ti.Field)):
            return self.rate[None]
        else:
            return self.rate(ti.cast(step, self.fields[0].dtype))

    @ti.func
    def _scale(self):
        """The factor of gradients, which are checked."""
        total = ti.cast(0, self.fields[0].dtype)
        for n in ti.static(range(len(self.fields))):
            for p in ti.grouped(self.fields[n]):
                total += _square(ti.stop_gradient(self.fields[n].grad[p]))
        assert _is_finite(total), f"the gradient of step {self.count[None]} is not finite: its square is {total}"
        scale = ti.cast(1, self.fields[0].dtype)
        if ti.static(self.clip is not None):
            if total > self.clip**2:
                scale = self.clip / ti.sqrt(total)
        return scale

    def begin(self) -> None:
        """Forget all steps.

        Examples
        --------
        >>> x = ti.field(ti.f64, shape=(), needs_grad=True)
        >>> sgd = ti.nn.SGD(x, 0.1)
        >>> sgd.step()
        >>> sgd.begin()
        >>> sgd.count[None]
        0
        """
        for field in self.state.values():
            field.fill(0)


class SGD(_Descent):
    """Gradient descent, with momentum.

    Parameters
    ----------
    parameters : network, Field, or sequence or mapping of Field
        What to move: any fields with `needs_grad=True`, of one type.
    rate : float, Field or function
        The step is this multiple of the gradient: a number, which is then in the field `rate` and may be set at any
        time, a field of one number, or a function of the number of steps before, for kernels.
    momentum : float, default 0.0
        What is left of the last step's direction.
    nesterov : bool, default False
        Whether the direction is that after another step.
    clip : float, optional
        Gradients that are longer, all together, are cut to this length.

    Methods
    -------
    begin
    step

    Attributes
    ----------
    rate : Field or function
        The rate: `rate[None]` may be set at any time.
    count : Field
        How many steps were taken, a field of one number.
    state : dict of str to Field
        All that it remembers, by name, for `ti.save`.

    Raises
    ------
    FieldError
        For fields without gradients, of different types, or of integers.

    References
    ----------
    B. T. Polyak, USSR Comp. Math. Math. Phys. 4 (1964) 1; Y. Nesterov, Soviet Math. Dokl. 27 (1983) 372.

    Examples
    --------
    >>> x = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> x.grad[None] = 2.0
    >>> ti.nn.SGD(x, 0.1).step()
    >>> x[None]
    -0.2
    """

    def __init__(
        self, parameters: Any, rate: Any, momentum: float = 0.0, *, nesterov: bool = False, clip: float | None = None
    ) -> None:
        super().__init__(parameters, rate, clip, ("momentum",) if momentum else ())
        self.momentum, self.nesterov = momentum, nesterov

    def step(self) -> None:
        """Move the fields by their gradients.

        Raises
        ------
        KernelAssertionError
            Where a gradient is not a finite number; then nothing has moved.

        Examples
        --------
        >>> x = ti.field(ti.f64, shape=(), needs_grad=True)
        >>> sgd = ti.nn.SGD(x, lambda step: 1.0 / (step + 1))
        >>> for _ in range(2):
        ...     x.grad[None] = 1.0
        ...     sgd.step()
        >>> x[None]
        -1.5
        """
        self._step()

    @ti.kernel
    def _step(self):
        scale, rate = self._scale(), self._rate(self.count[None])
        self.count[None] += 1
        for n in ti.static(range(len(self.fields))):
            x = ti.static(self.fields[n])
            for p in ti.grouped(x):
                direction = scale * x.grad[p]
                if ti.static(self.momentum != 0):
                    memory = ti.static(self.memories[0][n])
                    memory[p] = direction + self.momentum * memory[p]
                    if ti.static(self.nesterov):
                        direction += self.momentum * memory[p]
                    else:
                        direction = memory[p]
                x[p] -= rate * direction


class Adam(_Descent):
    """Adam: steps by the mean of gradients over the root of the mean of their squares.

    Parameters
    ----------
    parameters : network, Field, or sequence or mapping of Field
        What to move: any fields with `needs_grad=True`, of one type.
    rate : float, Field or function, default 1e-3
        About how far each number moves in a step; as that of `SGD`.
    betas : tuple of float, default (0.9, 0.999)
        How much of both means is kept from step to step.
    eps : float, default 1e-8
        What is added to the root.
    decay : float, default 0.0
        The part of each number that is subtracted for each unit of the rate, apart from the gradient (AdamW).
    clip : float, optional
        Gradients that are longer, all together, are cut to this length.

    Methods
    -------
    begin
    step

    Attributes
    ----------
    rate : Field or function
        The rate: `rate[None]` may be set at any time.
    count : Field
        How many steps were taken, a field of one number.
    state : dict of str to Field
        All that it remembers, by name, for `ti.save`.

    Raises
    ------
    FieldError
        For fields without gradients, of different types, or of integers.

    References
    ----------
    D. P. Kingma and J. Ba, "Adam: a method for stochastic optimization", ICLR 2015; I. Loshchilov and F. Hutter,
    "Decoupled weight decay regularization", ICLR 2019.

    Examples
    --------
    >>> x = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> loss = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> @ti.kernel
    ... def measure():
    ...     loss[None] += (x[None] - 3.0) ** 2
    >>> adam = ti.nn.Adam(x, 0.1)
    >>> for _ in range(200):
    ...     with ti.ad.Tape(loss):
    ...         measure()
    ...     adam.step()
    >>> abs(x[None] - 3.0) < 0.01
    True
    """

    def __init__(
        self,
        parameters: Any,
        rate: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        decay: float = 0.0,
        *,
        clip: float | None = None,
    ) -> None:
        super().__init__(parameters, rate, clip, ("mean", "square"))
        self.betas, self.eps, self.decay = betas, eps, decay
        #: both means of a constant 1: they begin with 0, and are divided by this to be as if they had not
        self.ones: Any = ti.field(self.fields[0].dtype, shape=2, name="means of 1", needs_grad=False)
        self.state["adam_ones"] = self.ones

    def step(self) -> None:
        """Move the fields by their gradients.

        Raises
        ------
        KernelAssertionError
            Where a gradient is not a finite number; then nothing has moved.

        Examples
        --------
        >>> x = ti.field(ti.f64, shape=(), needs_grad=True)
        >>> x.grad[None] = 100.0
        >>> ti.nn.Adam(x, 0.1).step()
        >>> round(x[None], 6)
        -0.1
        """
        self._step()

    @ti.kernel
    def _step(self):
        scale, rate = self._scale(), self._rate(self.count[None])
        self.count[None] += 1
        first, second = ti.static(self.betas)
        for k in ti.static(range(2)):
            self.ones[k] = self.betas[k] * self.ones[k] + (1 - self.betas[k])
        by_mean, by_square = 1 / self.ones[0], 1 / self.ones[1]
        for n in ti.static(range(len(self.fields))):
            x, mean, square = ti.static(self.fields[n], self.memories[0][n], self.memories[1][n])
            for p in ti.grouped(x):
                gradient = scale * x.grad[p]
                mean[p] = first * mean[p] + (1 - first) * gradient
                square[p] = second * square[p] + (1 - second) * gradient * gradient
                direction = mean[p] * by_mean / (ti.sqrt(square[p] * by_square) + self.eps)
                x[p] -= rate * (direction + self.decay * x[p])


class LBFGS(Documented):
    """L-BFGS, the quasi-Newton method with limited memory, with a line search.

    Each step takes one loss and its gradient, at the place where the last step put the fields: it goes on from there
    if the loss has become smaller by enough and its slope flatter (Wolfe's conditions), or tries another length of the
    step. So the fields hold a trial; `finish` puts them where the loss was the least that was accepted.

    Parameters
    ----------
    parameters : network, Field, or sequence or mapping of Field
        What to move: any fields with `needs_grad=True`, of one type; f64 where the loss is to be exact.
    loss : Field
        The loss, a field of one number of that type, which is a smooth function of the parameters: always of the same
        data.
    memory : int, default 10
        How many former steps describe the curvature.

    Methods
    -------
    begin
    finish
    step

    Attributes
    ----------
    value : Field
        The loss where the search begins, a field of one number: the least that was accepted.
    count : Field
        How many losses there were, a field of one number.
    state : dict of str to Field
        All that it remembers, by name, for `ti.save`.

    Raises
    ------
    FieldError
        For fields without gradients, of different types, or of integers, and for another loss.

    References
    ----------
    J. Nocedal and S. J. Wright, "Numerical Optimization", 2nd ed., 2006, algorithm 7.4; the line search is that of
    A. S. Lewis and M. L. Overton, Math. Program. 141 (2013) 135.

    Examples
    --------
    >>> x = ti.field(ti.f64, shape=2, needs_grad=True)
    >>> loss = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> @ti.kernel
    ... def rosenbrock():
    ...     for _ in range(1):
    ...         loss[None] += (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    >>> search = ti.nn.LBFGS(x, loss)
    >>> @ti.capture
    ... def train():
    ...     with ti.ad.Tape(loss):
    ...         rosenbrock()
    ...     search.step()
    >>> for _ in range(60):
    ...     train()
    >>> search.finish()
    >>> abs(x[0] - 1) < 1e-6, abs(x[1] - 1) < 1e-6
    (True, True)
    """

    def __init__(self, parameters: Any, loss: Any, memory: int = 10) -> None:
        span = caller()
        self.fields = _fields_of(parameters, span)
        self.dtype = self.fields[0].dtype
        if not isinstance(loss, ti.Field) or isinstance(loss, ti.MatrixField) or loss.shape != ():
            raise FieldError(f"a loss is a field of one number, not {loss!r}", span)
        if loss.dtype != self.dtype:
            raise FieldError(f"the loss is of {loss.dtype}, and what is moved of {self.dtype}", span)
        if not isinstance(memory, int) or memory < 1:
            raise FieldError(f"the memory is a positive number of steps, not {memory!r}", span)
        self.loss: Any = loss
        self.memory = memory
        #: how many numbers an element of each field has, and the number of its first one among all
        self.numbers = tuple([field.n * field.m if isinstance(field, ti.MatrixField) else 1 for field in self.fields])
        sizes = [math.prod(field.shape) * count for field, count in zip(self.fields, self.numbers, strict=True)]
        self.starts = tuple([sum(sizes[:n]) for n in range(len(sizes))])
        self.size = sum(sizes)

        def numbers(name: str, *shape: int, dtype: Any = self.dtype) -> Any:
            return ti.field(dtype, shape=shape, name=name, needs_grad=False, needs_dual=False)

        #: where the search begins, its gradient and its direction, and the gradient of the trial
        self.x, self.g, self.d, self.g_trial = (numbers(name, self.size) for name in ("x", "g", "d", "g of the trial"))
        #: of former steps: how far they went, how much the gradient changed, and 1 / the product of both
        self.s, self.y = numbers("steps", memory, self.size), numbers("changes", memory, self.size)
        self.rho, self.alpha = numbers("rho", memory), numbers("alpha", memory)
        #: how many of them there were, and the square of the length that gradients have to that of steps
        self.pairs, self.scale = numbers("pairs", dtype=ti.i32), numbers("scale")
        #: how many losses there were, and how many in this search
        self.count, self.trials = numbers("count", dtype=ti.i32), numbers("trials", dtype=ti.i32)
        #: the loss where the search begins, its slope, the length of the trial, and between which it is to be: -1
        #: stands for no upper one
        self.value, self.slope, self.length = numbers("value"), numbers("slope"), numbers("length")
        self.low, self.high = numbers("low"), numbers("high")
        #: how many numbers the loops for a new direction have: none while the search goes on
        self.active = numbers("active", dtype=ti.i32)
        #: all fields in which it remembers former steps, by name, for `ti.save`
        self.state = {f"lbfgs_{name}": getattr(self, name) for name in STATE}

    def begin(self) -> None:
        """Forget all steps: the fields have been set, or the loss is another one.

        Examples
        --------
        >>> x = ti.field(ti.f64, shape=(), needs_grad=True)
        >>> loss = ti.field(ti.f64, shape=(), needs_grad=True)
        >>> search = ti.nn.LBFGS(x, loss)
        >>> search.step()
        >>> search.begin()
        >>> search.count[None]
        0
        """
        self.count[None] = 0

    def finish(self) -> None:
        """Put the fields where the loss was the least that was accepted.

        Examples
        --------
        >>> x = ti.field(ti.f64, shape=(), needs_grad=True)
        >>> loss = ti.field(ti.f64, shape=(), needs_grad=True)
        >>> search = ti.nn.LBFGS(x, loss)
        >>> x.grad[None] = 1.0
        >>> search.step()  # to a trial
        >>> search.finish()
        >>> x[None]
        0.0
        """
        self._put_at(0.0)

    def step(self) -> None:
        """Take the loss and the gradients of the trial, and put the fields at the next one.

        Raises
        ------
        KernelAssertionError
            Where the first loss or its gradient is not a finite number. Later, such a trial went too far.

        Examples
        --------
        >>> x = ti.field(ti.f64, shape=(), needs_grad=True)
        >>> loss = ti.field(ti.f64, shape=(), needs_grad=True)
        >>> @ti.kernel
        ... def measure():
        ...     loss[None] += 2 * (x[None] - 3) ** 2
        >>> search = ti.nn.LBFGS(x, loss)
        >>> for _ in range(4):
        ...     with ti.ad.Tape(loss):
        ...         measure()
        ...     search.step()
        >>> x[None]
        3.0
        """
        self._compare()
        for newest in range(self.memory):
            self._go_back(newest)
        for newest in reversed(range(self.memory)):
            self._come_again(newest)
        self._try()

    @ti.kernel
    def _compare(self):
        """Accept the trial, or say between which lengths the next one is to be."""
        is_first = self.count[None] == 0
        for n in ti.static(range(len(self.fields))):
            field = ti.static(self.fields[n])
            for p in ti.grouped(field):
                for k in ti.static(range(self.numbers[n])):
                    at = self.starts[n] + self.numbers[n] * place(p, field.shape) + k
                    self.g_trial[at] = _read(self.fields[n].grad, p, k)
                    if is_first:
                        self.x[at], self.d[at] = _read(field, p, k), 0
        value, length = self.loss[None], self.length[None]
        rise, square = ti.cast(0, self.dtype), ti.cast(0, self.dtype)
        for k in self.g_trial:
            rise += self.g_trial[k] * self.d[k]
            square += self.g_trial[k] * self.g_trial[k]
        is_finite = _is_finite(value) and _is_finite(square)
        assert is_finite or not is_first, f"the first loss is {value}, the sum of the squares of its gradient {square}"
        is_accepted, is_new = is_first, is_first
        if is_first:
            self.pairs[None], self.scale[None] = 0, 1
        else:
            self.trials[None] += 1
            if not (is_finite and value <= self.value[None] + DECREASE * length * self.slope[None]):
                self.high[None] = length
            elif rise < FLATTER * self.slope[None]:
                self.low[None] = length
            else:
                is_accepted, is_new = True, True
            if not is_accepted and self.trials[None] == MOST_TRIALS:
                self.pairs[None], self.scale[None], is_new = 0, 1, True
            self.length[None] = (self.low[None] + self.high[None]) / 2 if self.high[None] >= 0 else 2 * length
        self.count[None] += 1
        row = self.pairs[None] % self.memory
        product, change = ti.cast(0, self.dtype), ti.cast(0, self.dtype)
        for k in range(self.size if is_accepted else 0):
            s, y = length * self.d[k], self.g_trial[k] - self.g[k]
            self.s[row, k], self.y[row, k] = s, y
            product += s * y
            change += y * y
            self.x[k] += s
            self.g[k] = self.g_trial[k]
        if is_accepted:
            self.value[None] = value
            if product > 0 and not is_first:
                self.rho[row], self.scale[None] = 1 / product, product / change
                self.pairs[None] += 1
        for k in range(self.size if is_new else 0):
            self.d[k] = self.g[k]
        self.active[None] = self.size if is_new else 0

    @ti.func
    def _row(self, newest):
        """The row of a former step, counted from the newest, and what its numbers count."""
        is_there = newest < self.pairs[None]
        row = ti.max(self.pairs[None] - 1 - newest, 0) % self.memory
        return row, self.rho[row] if is_there else ti.cast(0, self.dtype)

    @ti.kernel
    def _go_back(self, newest: ti.i32):
        row, rho = self._row(newest)
        total = ti.cast(0, self.dtype)
        for k in range(self.active[None]):
            total += self.s[row, k] * self.d[k]
        self.alpha[newest] = rho * total
        for k in range(self.active[None]):
            self.d[k] -= self.alpha[newest] * self.y[row, k]

    @ti.kernel
    def _come_again(self, newest: ti.i32):
        """`newest`: the oldest first; the first one scales."""
        row, rho = self._row(newest)
        scale = self.scale[None] if newest == self.memory - 1 else ti.cast(1, self.dtype)
        total = ti.cast(0, self.dtype)
        for k in range(self.active[None]):
            self.d[k] *= scale
            total += self.y[row, k] * self.d[k]
        for k in range(self.active[None]):
            self.d[k] += (self.alpha[newest] - rho * total) * self.s[row, k]

    @ti.kernel
    def _try(self):
        """Put the fields at the next trial: with a new direction, a whole step, but the first one is short."""
        slope, size = ti.cast(0, self.dtype), ti.cast(0, self.dtype)
        for k in range(self.active[None]):
            self.d[k] *= -1
            slope += self.d[k] * self.g[k]
            size += ti.abs(self.d[k])
        if self.active[None] > 0:
            self.slope[None] = slope
            self.length[None] = 1 if self.pairs[None] > 0 else ti.min(1, 1 / ti.max(size, TINY))
            self.low[None], self.high[None], self.trials[None] = 0, -1, 0
        self._put(self.length[None])

    @ti.kernel
    def _put_at(self, length: float):
        self._put(ti.cast(length, self.dtype))

    @ti.func
    def _put(self, length):
        """Put the fields at a length along the direction."""
        for n in ti.static(range(len(self.fields))):
            field = ti.static(self.fields[n])
            for p in ti.grouped(field):
                for k in ti.static(range(self.numbers[n])):
                    at = self.starts[n] + self.numbers[n] * place(p, field.shape) + k
                    _write(field, p, k, self.x[at] + length * self.d[at])
