"""Coefficients and constants of mathematical functions that targets compute inline: minimax fits of our own (Remez)."""

from __future__ import annotations

#: Of (exp r - 1 - r) / r².
EXP = (0.4999999403953552, 0.1666652113199234, 0.04166838899254799, 0.0083687175065279, 0.0013814596459269524)
#: Of (log(1 + f) - f + f² / 2) / f³.
LOG = (
    0.3333331346511841, -0.25000008940696716, 0.2000211924314499, -0.1666799634695053, 0.14219550788402557,
    -0.12405591458082199, 0.11888174712657928, -0.11675640940666199, 0.06746601313352585,
)  # fmt: skip
#: Of (sin r - r) / r³, in the square of r.
SIN = (-0.1666666716337204, 0.008333329111337662, -0.0001983933470910415, 2.7183041311218403e-06)
#: Of (cos r - 1 + r² / 2) / r⁴, in the square of r.
COS = (0.0416666679084301, -0.0013888883404433727, 2.4799519451335073e-05, -2.7210168696001347e-07)
#: Of (tanh x - x) / x³, in the square of x.
TANH = (
    -0.3333333134651184, 0.13333210349082947, -0.05394720286130905,
    0.021702967584133148, -0.008182673715054989, 0.0021475369576364756,
)  # fmt: skip

#: As `EXP`.
EXP_F64 = (
    0.500000000000001, 0.16666666666666696, 0.041666666666534326, 0.008333333333309115, 0.0013888888942740429,
    0.00019841269913874781, 2.4801493874664938e-05, 2.7557219033058857e-06, 2.763000954732722e-07,
    2.5117092044077697e-08,
)  # fmt: skip
#: Of log((1 + s) / (1 - s)) - 2 s, divided by s cubed, in the square of s.
LOG_F64 = (
    0.6666666666666715, 0.3999999999951811, 0.2857142872265394, 0.2222220036823239, 0.18183479885213238,
    0.1531603439284649, 0.14777529595124564,
)  # fmt: skip

#: As `SIN`.
SIN_F64 = (
    -0.1666666666666663, 0.008333333333322108, -0.00019841269829580174, 2.7557313618018093e-06, -2.5050747218137655e-08,
    1.5896197625471767e-10,
)  # fmt: skip
#: As `COS`.
COS_F64 = (
    0.041666666666666595, -0.001388888888887304, 2.4801587288841377e-05, -2.75573141762335e-07, 2.0875700415245024e-09,
    -1.1358513910113248e-11,
)  # fmt: skip

#: ln 2 in two pieces; the first has few digits.
LN2_HIGH, LN2_LOW = 0.693359375, -2.12194440e-4
#: The same for f64.
LN2_HIGH_F64, LN2_LOW_F64 = 0.693147180369123816490, 1.90821492927058770002e-10
#: pi/2 in three pieces: the first has an exact product by way of `fma`.
HALF_PI_HIGH, HALF_PI_LOW, HALF_PI_LOWEST = 1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33

#: Of atan(x) = x + x z P(z) with z = x², up to tan(pi/8).
ATAN = (
    -0.3333333134651184, 0.19999904930591583, -0.14282041788101196, 0.11045093834400177,
    -0.08478406071662903, 0.047482751309871674,
)  # fmt: skip
#: Of asin(x) = x + x z P(z) with z = x², up to 1/2.
ASIN = (
    0.16666659712791443, 0.07500510662794113, 0.04451572149991989, 0.031817615032196045,
    0.014402597211301327, 0.037565216422080994,
)  # fmt: skip
#: Of log((1 + s) / (1 - s)) = 2 s + s³ P(s²), where the quotient lies between the root of 1/2 and that of 2.
LOG_RATIO = (0.6666666865348816, 0.4000012278556824, 0.2855076193809509, 0.23332005739212036)

#: 2/pi, from the place of 2**31 on, in words.
TWO_OVER_PI = (0x0, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB)


def two_over_pi_below(place: int) -> tuple[float, float, float]:
    """2/pi without its binary digits of `place` and above: two pieces of 29 digits, and the rest. Multiplied by a
    number of 24 digits, the first two give exact products.
    """
    bits = 0
    for word in TWO_OVER_PI:
        bits = bits << 32 | word
    lowest = 32 * (len(TWO_OVER_PI) - 1)
    bits &= (1 << lowest + place) - 1
    pieces: list[float] = []
    for _ in range(2):
        place -= 29
        piece = bits >> lowest + place
        bits -= piece << lowest + place
        pieces.append(piece * 2.0**place)
    return pieces[0], pieces[1], bits / (1 << lowest)


#: pi/2 in pieces of eleven digits, and the rest: the product of the first three with a number below 2**13 is exact.
HALF_PI_PIECES = (1.5703125, 0.0004837512969970703, 7.549533620476723e-08, 2.5633440682570896e-12)
#: ln 2 in two pieces; the first has twelve digits.
LN2_SHORT, LN2_REST = 0.693115234375, 3.1946184945309415e-05
