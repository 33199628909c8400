"""A program as a problem of `scipy.optimize`: one vector of unknowns, value, gradient and products of the Hessian.

problem = ti.ad.scipy_problem(program, wrt=[stiffness, rest], output=loss)
found = scipy.optimize.minimize(problem.value_and_grad, problem.x0, jac=True, method="L-BFGS-B")
problem.write(found.x)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinote.errors import DifferentiationError
from tinote.lang.ad.functional.functional import hvp, value_and_grad
from tinote.lang.data.fields import Field
from tinote.lang.session.renamed import also_called
from tinote.source import caller

Vector = np.ndarray[Any, Any]


class ScipyProblem:
    """What `ti.ad.scipy_problem` returns: a function of one vector of unknowns, for `scipy.optimize.minimize`.

    Methods
    -------
    grad
    hessp
    value
    value_and_grad
    write

    Attributes
    ----------
    x0 : numpy.ndarray
    size : int
        The number of unknowns.
    evaluations : int
        How often value and gradient were computed.

    Examples
    --------
    >>> import numpy as np
    >>> @ti.kernel
    ... def energy(x: ti.types.ndarray()) -> ti.f64:
    ...     s = 0.0
    ...     for i in x:
    ...         s += x[i] * x[i]
    ...     return s
    >>> problem = ti.ad.scipy_problem(energy, np.array([3.0, 1.0]))
    >>> problem.value(np.array([2.0, 1.0]))
    5.0
    """

    def __init__(self, f: Callable[..., Any], arrays: Sequence[Any], wrt: list[Field], output: Field | None) -> None:
        self._fields = wrt
        self._arrays = [np.asarray(array) for array in arrays]
        shapes = [field.held().shape for field in wrt] or [array.shape for array in self._arrays]
        ends = np.cumsum([0, *[math.prod(shape) for shape in shapes]])
        self._parts = [(slice(int(a), int(b)), shape) for a, b, shape in zip(ends[:-1], ends[1:], shapes, strict=True)]
        self.size = int(ends[-1])
        self.evaluations = 0
        options: dict[str, Any] = {"wrt": wrt} if wrt else {"argnums": list(range(len(self._arrays)))}
        self._value_and_grad = value_and_grad(f, output=output, **options)
        self._hvp = hvp(f, output=output, **options)
        self._at: Vector | None = None
        self._value = math.nan
        self._gradient: Vector | None = None

    @property
    def x0(self) -> Vector:
        """The unknowns as they are now: of fields what they hold, else the arguments that were given."""
        return self._joined([field.held() for field in self._fields] or self._arrays)

    def value_and_grad(self, x: Any) -> tuple[float, Vector]:
        """The value and the gradient: for `minimize(…, jac=True)`.

        The array is the caller's: asked for once more, it is computed once more.

        Parameters
        ----------
        x : array of `size` floats
            The unknowns.

        Returns
        -------
        (float, numpy.ndarray)
            The value, and the gradient of `size` floats.

        Examples
        --------
        >>> x = ti.field(ti.f64, shape=1, needs_grad=True)
        >>> loss = ti.field(ti.f64, shape=(), needs_grad=True)
        >>> @ti.kernel
        ... def square():
        ...     loss[None] = x[0] ** 2
        >>> problem = ti.ad.scipy_problem(square, wrt=x, output=loss)
        >>> problem.value_and_grad([3.0])
        (9.0, array([6.]))
        """
        value = self._evaluated(x, with_gradient=True)
        gradient, self._gradient = self._gradient, None
        assert gradient is not None
        return value, gradient

    def value(self, x: Any) -> float:
        """The value; the gradient is computed with it, and kept until it is asked for.

        Parameters
        ----------
        x : array of `size` floats
            The unknowns.

        Returns
        -------
        float
            The value.

        Examples
        --------
        >>> x = ti.field(ti.f64, shape=1, needs_grad=True)
        >>> loss = ti.field(ti.f64, shape=(), needs_grad=True)
        >>> @ti.kernel
        ... def square():
        ...     loss[None] = x[0] ** 2
        >>> problem = ti.ad.scipy_problem(square, wrt=x, output=loss)
        >>> problem.value([3.0])
        9.0
        """
        return self._evaluated(x, with_gradient=False)

    def grad(self, x: Any) -> Vector:
        """The gradient; it comes with the value, if that was asked for at the same point before.

        Parameters
        ----------
        x : array of `size` floats
            The unknowns.

        Returns
        -------
        numpy.ndarray of `size` floats
            The gradient.

        Examples
        --------
        >>> x = ti.field(ti.f64, shape=1, needs_grad=True)
        >>> loss = ti.field(ti.f64, shape=(), needs_grad=True)
        >>> @ti.kernel
        ... def square():
        ...     loss[None] = x[0] ** 2
        >>> problem = ti.ad.scipy_problem(square, wrt=x, output=loss)
        >>> problem.grad([3.0])
        array([6.])
        """
        return self.value_and_grad(x)[1]

    def _evaluated(self, x: Any, *, with_gradient: bool) -> float:
        x = np.asarray(x, np.float64)
        is_known = self._at is not None and np.array_equal(self._at, x)
        if not is_known or (with_gradient and self._gradient is None):
            self._gradient = None  # its memory may serve the next one
            value, gradient = self._value_and_grad(*self._split(x))
            self._value, self._gradient = float(value), self._vector(gradient)
            self.evaluations += 1
            if self._at is None:
                self._at = x.copy()
            else:
                self._at[...] = x
        return self._value

    def hessp(self, x: Any, p: Any) -> Vector:
        """The product of the Hessian and a vector: for `minimize(…, hessp=…)`.

        Parameters
        ----------
        x : array of `size` floats
            The unknowns.
        p : array of `size` floats
            The vector.

        Returns
        -------
        numpy.ndarray of `size` floats
            The product.

        Examples
        --------
        >>> x = ti.field(ti.f64, shape=1, needs_grad=True)
        >>> loss = ti.field(ti.f64, shape=(), needs_grad=True)
        >>> @ti.kernel
        ... def square():
        ...     loss[None] = x[0] ** 2
        >>> problem = ti.ad.scipy_problem(square, wrt=x, output=loss)
        >>> problem.hessp([3.0], [1.0])
        array([2.])
        """
        direction = [np.asarray(p, np.float64)[part].reshape(shape) for part, shape in self._parts]
        arguments = self._split(np.asarray(x, np.float64))
        return self._vector(self._hvp(tuple(direction), *arguments))

    def write(self, x: Any) -> list[Vector]:
        """Put unknowns into the fields.

        Parameters
        ----------
        x : array of `size` floats
            The unknowns.

        Returns
        -------
        list of numpy.ndarray
            The arrays that it consists of.

        Examples
        --------
        >>> x = ti.field(ti.f64, shape=2, needs_grad=True)
        >>> loss = ti.field(ti.f64, shape=(), needs_grad=True)
        >>> @ti.kernel
        ... def square():
        ...     loss[None] = x[0] ** 2 + x[1]
        >>> problem = ti.ad.scipy_problem(square, wrt=x, output=loss)
        >>> problem.write([3.0, 4.0])
        [array([3., 4.])]
        >>> x.to_numpy()
        array([3., 4.])
        """
        found = [np.asarray(x, np.float64)[part].reshape(shape) for part, shape in self._parts]
        for field, array in zip(self._fields, found, strict=False):
            field.from_numpy(array)
        return found

    def _split(self, x: Vector) -> list[Vector]:
        """The arguments of a call at `x`; fields hold it from then on."""
        if x.shape != (self.size,):
            raise DifferentiationError(f"this problem has {self.size} unknowns, not {x.shape}", caller())
        found = self.write(x)
        return [] if self._fields else [a.astype(b.dtype) for a, b in zip(found, self._arrays, strict=True)]

    def _vector(self, arrays: Sequence[Any]) -> Vector:
        """What a derivative has given, as one vector: of one array in f64 that array itself."""
        first = np.asarray(arrays[0])
        return first.reshape(-1) if len(arrays) == 1 and first.dtype == np.float64 else self._joined(arrays)

    def _joined(self, arrays: Sequence[Any]) -> Vector:
        found = np.empty(self.size)
        for (part, _), array in zip(self._parts, arrays, strict=True):
            found[part] = np.asarray(array).ravel()
        return found


@also_called(loss="output")
def scipy_problem(
    f: Callable[..., Any], *arguments: Any, wrt: Field | Sequence[Field] | None = None, output: Field | None = None
) -> ScipyProblem:
    """The minimisation of a result as `scipy.optimize.minimize` takes it.

    Value and gradient at one place are computed once. Numbers are copied once into the fields, and a gradient or a
    product once into its vector. Where fields are f32, so is the arithmetic: tolerances below 1e-6 are then out of
    reach.

    Parameters
    ----------
    f : callable
        What is minimised: it returns a number, or leaves it in the field `output`, as for `ti.ad.value_and_grad`. It
        must begin by resetting the state that it changes.
    *arguments : arrays of floats
        The first values of the unknowns, which are the arguments of `f`.
    wrt : Field or sequence of Field, optional
        The unknowns, in place of arguments, with `needs_grad=True`; `f` is called without arguments.
    output : Field, optional
        The field with the result.

    Returns
    -------
    ScipyProblem
        With `x0`, `value(x)`, `grad(x)`, `value_and_grad(x)`, `hessp(x, p)` (by `ti.ad.hvp`) and `write(x)`, which puts
        a solution into the fields.

    Raises
    ------
    DifferentiationError
        For unknowns and results of other kinds.

    Examples
    --------
    >>> from scipy.optimize import minimize
    >>> x = ti.field(ti.f64, shape=2, needs_grad=True)
    >>> loss = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> @ti.kernel
    ... def energy():
    ...     for i in x:
    ...         loss[None] += (x[i] - i - 1.0) ** 2
    >>> problem = ti.ad.scipy_problem(energy, wrt=x, output=loss)
    >>> found = minimize(problem.value_and_grad, problem.x0, jac=True)
    >>> found.x.round(6)
    array([1., 2.])
    """
    fields = [] if wrt is None else [wrt] if isinstance(wrt, Field) else list(wrt)
    if bool(fields) == bool(arguments):
        raise DifferentiationError(
            "the unknowns of a problem are either fields or arguments",
            caller(),
            hint="name the fields in wrt=, or give the first values of the arguments after the function",
        )
    return ScipyProblem(f, arguments, fields, output)
