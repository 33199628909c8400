"""What the functions of the language do, as `ti.sin?` shows it: a signature and a sentence each.

Where nothing else is said, a function takes numbers, vectors and matrices and works on each component, integers that
need to become floats become the session's default type, and angles are in radians. Derivatives are exact but where
noted; at kinks and jumps one of the one-sided derivatives, or zero, is taken.
"""

from __future__ import annotations

import inspect

__all__ = ["HELP", "signature_of"]

_TEXT = """
abs(x): the absolute value; its derivative at 0 is 0
acos(x): the inverse cosine, in [0, π]; NaN outside of [-1, 1]
add(a, b): a + b, component by component
all(items): whether no component is zero, as a truth value
any(items): whether a component is not zero, as a truth value
asin(x): the inverse sine, in [-π/2, π/2]; NaN outside of [-1, 1]
assume_in_range(val, base, low, high): `val` itself: advice for other machines, without effect here
atan(x): the inverse tangent, in (-π/2, π/2)
atan2(y, x): the angle of the point (x, y), in [-π, π]
atomic_add(x, y): x += y at once, for an element that other turns may change; gives the value before it
atomic_and(x, y): x &= y at once, for an element that other turns may change; gives the value before it
atomic_max(x, y): x = max(x, y) at once, for an element that other turns may change; gives the value before it
atomic_min(x, y): x = min(x, y) at once, for an element that other turns may change; gives the value before it
atomic_mul(x, y): x *= y at once, for an element that other turns may change; gives the value before it
atomic_or(x, y): x |= y at once, for an element that other turns may change; gives the value before it
atomic_sub(x, y): x -= y at once, for an element that other turns may change; gives the value before it
atomic_xor(x, y): x ^= y at once, for an element that other turns may change; gives the value before it
bit_and(a, b): a & b, the bits set in both integers
bit_cast(x, dtype): the same bits as a number of another type of the same size
bit_not(a): ~a, the bits not set in an integer
bit_or(a, b): a | b, the bits set in either integer
bit_sar(a, b): a >> b: bits move to the right, and the sign fills the places that become free
bit_shl(a, b): a << b: bits move to the left, zeros follow; past the width the result is 0
bit_shr(a, b): bits move to the right, and zeros fill the places that become free
bit_xor(a, b): a ^ b, the bits set in one of two integers only
block_local(*fields): advice for other machines, without effect here
cache_read_only(*fields): advice for other machines, without effect here
cast(x, dtype): the value as another type of numbers; floats lose their fraction, and stop at the ends of the range
ceil(x, dtype=): the least whole number that is not below x, as a float or a `dtype`; its derivative is 0
clamp(x, xmin, xmax): x, or the end of the range [xmin, xmax] that it is beyond
clz(x): the number of zero bits before the first bit that is set in an integer
cos(x): the cosine of an angle in radians
cosh(x): the hyperbolic cosine, (exp x + exp -x) / 2
cross(a, b): the vector product of two vectors of 3; of vectors of 2, its third component
degrees(x): an angle in radians as degrees
determinant(m): the determinant of a square matrix of at most 4 by 4
distance(a, b): the length of a - b, for points a and b
div(a, b): a / b as floats; by zero an infinity or NaN
dot(a, b): the scalar product of two vectors
exp(x): e to the power x
exp2(x): 2 to the power x
floor(x, dtype=): the greatest whole number that is not above x, as a float or a `dtype`; its derivative is 0
floordiv(a, b): a // b, rounded down; an integer divided by zero is an error with its line
fract(x): x - floor(x), in [0, 1)
frexp(x): (m, n) with x = m · 2ⁿ and m in [0.5, 1)
grouped(x): in the head of a loop: the indices of a field or `ndrange` as one vector of integers
inverse(m): the inverse of a square matrix of at most 4 by 4; infinities or NaN if it is singular
isinf(x): whether a number is an infinity, with fast maths, too
isnan(x): whether a number is NaN, with fast maths, too
length(v): the Euclidean length of a vector; its derivative at 0 is not finite
log(x): the natural logarithm; NaN below 0, -infinity at 0
log10(x): the logarithm to base 10
log2(x): the logarithm to base 2, exact for powers of two
logical_and(a, b): whether neither of two values is zero; both are computed
logical_not(a): whether a value is zero
logical_or(a, b): whether one of two values is not zero; both are computed
loop_config(serialize=, parallelize=, block_dim=): in front of a loop: run its turns in order, or say on how many
    threads; `block_dim` and the others are accepted for other machines
loop_unique(val, covers=): `val` itself: advice for other machines, without effect here
max(*items): the largest of several values, component by component; of one vector, its largest component
min(*items): the smallest of several values, component by component; of one vector, its smallest component
mix(x, y, a): x · (1 - a) + y · a, on the line from x to y
mod(a, b): a % b with the sign of b, as Python has it; an integer by zero is an error with its line
mul(a, b): a · b, component by component
ndrange(*axes): in the head of a loop: all combinations of indices; each axis is an extent or a pair (begin, end)
neg(a): -a, component by component
no_activate(*fields): advice for sparse fields, which do not exist here, without effect
normalize(v, eps=0): v / (|v| + eps), a vector of length 1
one(x): ones of the type and shape of x
outer_product(a, b): the matrix of all products of a component of vector a and one of b
popcnt(x): the number of bits that are set in an integer
pow(x, a): x to the power a; an integer to a negative power is 0, 1 or -1
radians(x): an angle in degrees as radians
randn(dt=): a normally distributed random float, of mean 0 and variance 1 (Box and Muller, 1958); see `random`
random(dtype=): a random float in [0, 1), or any integer of an integer type; counter-based: the same for a seed on any
    number of threads
raw_div(a, b): a / b as C has it: of integers rounded towards zero
raw_mod(a, b): the remainder as C has it: with the sign of a
reflect(x, n): the direction x mirrored at a surface with unit normal n
refract(x, n, eta): the unit direction x behind a surface with unit normal n, for the ratio eta of refractive indices;
    zero at total reflection
rotation2d(ang): the 2 by 2 matrix that turns the plane by an angle in radians
round(x, dtype=): the nearest whole number, halves to the even one, as a float or a `dtype`; its derivative is 0
rsqrt(x): the reciprocal of the square root, 1 / sqrt(x)
select(condition, x, y): x where the condition is not zero, otherwise y, component by component; both are computed
sign(x): -1, 0 or 1; its derivative is 0
sin(x): the sine of an angle in radians
sinh(x): the hyperbolic sine, (exp x - exp -x) / 2
smoothstep(edge0, edge1, x): 0 up to edge0, 1 from edge1 on, and 3t² - 2t³ between
sqrt(x): the square root; NaN below 0, and its derivative at 0 is an infinity
static(x): in a kernel: computed when it is compiled; a loop over it is unrolled, an `if` keeps one branch
static_assert(condition, message=): in a kernel: an error when it is compiled unless the condition, known by then,
    holds
static_print(*items): in a kernel: printed when it is compiled: types of values, and constants
step(edge, x): 0 where x is below the edge, otherwise 1; its derivative is 0
stop_grad(x): of a field: what is read of it until the end of the block counts as constant in gradients; of a value,
    that
stop_gradient(x): the value, which counts as constant in gradients
sub(a, b): a - b, component by component
sum(items, start=0): the sum of the components, or of a sequence known at compile time
surrogate(x, z): the value of x with the derivative of z, for functions whose own derivative is of no use
tan(x): the tangent of an angle in radians
tanh(x): the hyperbolic tangent, in [-1, 1]
trace(m): the sum of the diagonal of a matrix
transpose(m): the matrix with rows and columns exchanged
zero(x): zeros of the type and shape of x
"""


def _entries() -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in _TEXT.replace("\n    ", " ").strip().splitlines():
        found[entry.partition("(")[0]] = f"ti.{entry}."
    return found


#: The docstring of each, by its name.
HELP = _entries()


def signature_of(name: str) -> inspect.Signature:
    """The parameters of one, as its docstring names them; `a=` is one that may be left out."""
    listed = HELP[name].partition("(")[2].partition("):")[0]
    parameters: list[inspect.Parameter] = []
    for item in filter(None, listed.split(", ")):
        parameter, optional, default = item.partition("=")
        kind = inspect.Parameter.VAR_POSITIONAL if item[0] == "*" else inspect.Parameter.POSITIONAL_OR_KEYWORD
        value = (int(default) if default else None) if optional else inspect.Parameter.empty
        parameters.append(inspect.Parameter(parameter.lstrip("*"), kind, default=value))
    return inspect.Signature(parameters)
