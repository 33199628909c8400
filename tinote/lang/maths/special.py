"""The error function and its complement, as `ti.math` has them.

Values are those of W. J. Cody's rational approximations, "Rational Chebyshev approximations for the error function",
Math. Comp. 23 (1969) 631. Derivatives of every order are those of 2/√π exp(-x²), not of the approximations.
"""

from __future__ import annotations

import math
from typing import Any

from tinote.lang.data.types import template
from tinote.lang.kernels.func import func
from tinote.lang.maths.arithmetic import abs, round, select
from tinote.lang.maths.builtin import composed
from tinote.lang.maths.elementary import exp
from tinote.lang.maths.language import static, stop_gradient_once, surrogate

__all__ = ["erf", "erfc"]

_PER_ROOT_OF_PI = 1 / math.sqrt(math.pi)

#: Up to here the first approximation holds.
_SMALL = 0.46875
#: Numerators and denominators, highest powers first: of erf x / x in x² up to |x| = 0.46875, of exp(x²) erfc x in x up
#: to 4, and beyond, in 1 / x², of x² (1/√π - x exp(x²) erfc x).
_NEAR = (
    (1.85777706184603153e-1, 3.16112374387056560, 1.13864154151050156e2, 3.77485237685302021e2, 3.20937758913846947e3),
    (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3),
)
_MIDDLE = (
    (
        2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594, 6.61191906371416295e1,
        2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3,
        1.23033935479799725e3,
    ),
    (
        1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
        3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3,
    ),
)  # fmt: skip
_FAR = (
    (
        1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1,
        1.60837851487422766e-2, 6.58749161529837803e-4,
    ),
    (
        1.0, 2.56852019228982242, 1.87295284992346725, 5.27905102951428412e-1, 6.05183413124413191e-2,
        2.33520497626869185e-3,
    ),
)  # fmt: skip


@func
def _quotient(polynomials: template, x: Any) -> Any:  # type: ignore[valid-type]
    above, below = polynomials[0][0] + 0.0 * x, polynomials[1][0] + 0.0 * x
    for coefficient in static(polynomials[0][1:]):
        above = above * x + coefficient
    for coefficient in static(polynomials[1][1:]):
        below = below * x + coefficient
    return above / below


@func
def _near_0(x: Any) -> Any:
    """The error function where |x| is small."""
    return x * _quotient(_NEAR, x * x)


@func
def _tail(x: Any) -> Any:
    """The complement of |x|, which is not small. NaN remains NaN."""
    x = select(abs(x) > 28.0, 28.0, abs(x))  # 0 from there on
    a = select(x > 4.0, x, 4.0)
    per_square = 1.0 / (a * a)
    far = (_PER_ROOT_OF_PI - per_square * _quotient(_FAR, per_square)) / a
    # The square of a number with few digits is exact.
    short = round(16.0 * x) * 0.0625
    bell = exp(-short * short) * exp((short - x) * (short + x))
    return bell * select(x > 4.0, far, _quotient(_MIDDLE, x))


@composed(math.erf)
def erf(x: Any) -> Any:
    """The error function of x, 2/√π times the integral of exp(-t²) from 0 to x.

    Parameters
    ----------
    x : number, vector or matrix
        Integers become floats of the session's default type.

    Returns
    -------
    number, vector or matrix
        Of the shape of `x`, component by component; in [-1, 1].

    Notes
    -----
    By rational approximations: W. J. Cody, "Rational Chebyshev approximations for the error function", Math. Comp. 23
    (1969) 631.

    Examples
    --------
    >>> ti.math.erf(0.5)
    0.52049987...
    """
    far = 1.0 - _tail(x)
    value = select(abs(x) <= _SMALL, _near_0(x), select(x < 0.0, -far, far))
    return surrogate(value, stop_gradient_once(2.0 * _PER_ROOT_OF_PI * exp(-x * x)) * x)


@composed(math.erfc)
def erfc(x: Any) -> Any:
    """The complement of the error function, 1 - erf(x), with all digits where it is small.

    Parameters
    ----------
    x : number, vector or matrix
        Integers become floats of the session's default type.

    Returns
    -------
    number, vector or matrix
        Of the shape of `x`, component by component; in [0, 2].

    Notes
    -----
    By rational approximations: W. J. Cody, "Rational Chebyshev approximations for the error function", Math. Comp. 23
    (1969) 631.

    Examples
    --------
    >>> ti.math.erfc(3.0)
    2.2090496...e-05
    """
    far = _tail(x)
    value = select(abs(x) <= _SMALL, 1.0 - _near_0(x), select(x < 0.0, 2.0 - far, far))
    return surrogate(value, stop_gradient_once(-2.0 * _PER_ROOT_OF_PI * exp(-x * x)) * x)
