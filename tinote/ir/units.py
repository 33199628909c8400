"""Units of measurement: products of powers of base units and of prime numbers, with rational exponents.

    unit   = (number | name | "(" unit ")") [power] { ("*" | "·" | "/" | " ") … }      from left to right
    power  = ("^" | "**") (integer | "(" integer "/" integer ")")

A prefix or a factor, such as that of hours, is a product of powers of primes. So units are vectors of rational numbers:
equal units have equal vectors, and inference solves linear equations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from tinote.completion import Documented

#: The SI's base units, by symbol.
BASE = ("kg", "m", "s", "A", "K", "mol", "cd")
#: The greatest prime that a factor of a unit may have. Chosen, not measured.
_MAX_PRIME = 1 << 16


class Unit(Documented):
    """A unit of measurement: units are multiplied, divided and raised to rational powers, and compared.

    Attributes
    ----------
    powers : dict
        The exponents of base units and primes, which are `fractions.Fraction`s.

    Examples
    --------
    >>> ti.units.kg * ti.units.m / ti.units.s**2
    N
    >>> ti.units.m / ti.units.s == ti.units.unit("km/ms")
    False
    """

    __slots__ = ("powers",)

    def __init__(self, powers: Mapping[str | int, Fraction]) -> None:
        #: the exponent of each base unit and prime that is not 0
        self.powers = {symbol: power for symbol, power in powers.items() if power}

    def __mul__(self, other: Unit | float | Fraction) -> Unit:
        return _combined(self, _unit_of(other), 1)

    __rmul__ = __mul__

    def __truediv__(self, other: Unit | float | Fraction) -> Unit:
        return _combined(self, _unit_of(other), -1)

    def __rtruediv__(self, other: float | Fraction) -> Unit:
        return _combined(_unit_of(other), self, -1)

    def __pow__(self, power: float | Fraction) -> Unit:
        exact = exponent(power)
        return Unit({symbol: n * exact for symbol, n in self.powers.items()})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unit) and self.powers == other.powers

    def __hash__(self) -> int:
        return hash(frozenset(self.powers.items()))

    def __reduce__(self) -> tuple[object, ...]:
        return (Unit, (self.powers,))

    def __repr__(self) -> str:
        return _names().get(self) or _written(self)

    @property
    def __tinote_name__(self) -> str:
        return f"unit {self!r}"


def exponent(power: float | Fraction) -> Fraction:
    """A power as a rational number: the one with a small denominator that a float stands for."""
    near = Fraction(power).limit_denominator(60)
    return near if abs(float(near) - float(power)) < 1e-12 else Fraction(power)


def _combined(a: Unit, b: Unit, sign: int) -> Unit:
    symbols = dict.fromkeys((*a.powers, *b.powers))
    return Unit({s: a.powers.get(s, Fraction(0)) + sign * b.powers.get(s, Fraction(0)) for s in symbols})


def _unit_of(value: Unit | float | Fraction) -> Unit:
    """A positive number is the unit that is so many ones."""
    if isinstance(value, Unit):
        return value
    number = value if isinstance(value, Fraction) else Fraction(str(value))
    if number <= 0:
        raise ValueError(f"a unit is a positive multiple of others, not {value!r} times")
    powers: dict[str | int, Fraction] = {}
    for part, sign in ((number.numerator, 1), (number.denominator, -1)):
        prime = 2
        while part > 1:
            if prime > _MAX_PRIME:
                raise ValueError(f"{value!r} has prime factors above {_MAX_PRIME}, which units do not have")
            if part % prime:
                prime += 1 if prime == 2 else 2
                continue
            part //= prime
            powers[prime] = powers.get(prime, Fraction(0)) + sign
    return Unit(powers)


ONE = Unit({})

_PREFIXES = dict(
    zip(
        ("Q", "R", "Y", "Z", "E", "P", "T", "G", "M", "k", "h", "da", "d", "c", "m", "u", "n", "p", "f", "a", "z", "y"),
        (30, 27, 24, 21, 18, 15, 12, 9, 6, 3, 2, 1, -1, -2, -3, -6, -9, -12, -15, -18, -21, -24),
        strict=True,
    )
)
#: Units that have no prefixes.
_WHOLE = ("kg", "rad", "sr", "min", "h", "day")


def _table() -> dict[str, Unit]:
    found = {name: Unit({name: Fraction(1)}) for name in BASE}
    kg, m, s, A, mol, cd = (found[name] for name in ("kg", "m", "s", "A", "mol", "cd"))
    N, Hz = kg * m / s**2, 1 / s
    J, C = N * m, A * s
    W = J / s
    V, Wb = W / A, J / A
    return found | {
        "g": kg / 1000,
        "Hz": Hz,
        "N": N,
        "Pa": N / m**2,
        "J": J,
        "W": W,
        "C": C,
        "V": V,
        "F": C / V,
        "ohm": V / A,
        "S": A / V,
        "Wb": Wb,
        "T": Wb / m**2,
        "H": Wb / A,
        "lm": cd,
        "lx": cd / m**2,
        "kat": mol / s,
        "rad": ONE,
        "sr": ONE,
        "L": m**3 / 1000,
        "bar": 100_000 * N / m**2,
        "min": 60 * s,
        "h": 3600 * s,
        "day": 86400 * s,
    }


#: The units that have a name, without prefixes.
TABLE = _table()


def named(name: str) -> Unit | None:
    """The unit with this name, which may begin with a prefix; None for others."""
    name = name.replace("µ", "u").replace("Ω", "ohm")
    if name in TABLE:
        return TABLE[name]
    for prefix, power in _PREFIXES.items():
        rest = name.removeprefix(prefix)
        if rest != name and rest in TABLE and rest not in _WHOLE:
            return 10**power * TABLE[rest] if power >= 0 else TABLE[rest] / 10**-power
    return None


def _names() -> dict[Unit, str]:
    """Names by units, the usual one where there are several."""
    global _known
    if not _known:
        plain = {unit: name for name, unit in reversed(TABLE.items()) if unit != ONE and name not in ("lm",)}
        prefixed = {
            named(prefix + name): prefix + name
            for name in reversed(TABLE)
            if name not in _WHOLE
            for prefix in ("d", "c", "G", "M", "k", "n", "u", "m")
        }
        _known = {unit: name for unit, name in (prefixed | plain).items() if unit is not None}
    return _known


_known: dict[Unit, str] = {}


def _written(unit: Unit) -> str:
    """A product of base units, as `parse` reads it."""

    def power(name: str, n: Fraction) -> str:
        return name if n == 1 else f"{name}^{n}" if n.denominator == 1 else f"{name}^({n})"

    def order(symbol: str | int) -> int:
        return BASE.index(symbol) if isinstance(symbol, str) else -1

    whole = Fraction(1)
    rest: dict[str | int, Fraction] = {}
    for symbol, n in unit.powers.items():
        if isinstance(symbol, int) and n.denominator == 1:
            whole *= Fraction(symbol) ** int(n)
        else:
            rest[symbol] = n
    above = [str(whole.numerator)] if whole.numerator != 1 else []
    below = [str(whole.denominator)] if whole.denominator != 1 else []
    for symbol in sorted(rest, key=order):
        (above if rest[symbol] > 0 else below).append(power(str(symbol), abs(rest[symbol])))
    return " ".join(above or ["1"]) + "".join([f"/{part}" for part in below])


_POWER = r"(?:\*\*|\^)\s*(\(\s*[+-]?\d+\s*/\s*\d+\s*\)|[+-]?\d+)"
_TOKEN = re.compile(rf"\s*(?:{_POWER}|([*·/()])|([A-Za-zµΩ]+)|(\d+(?:\.\d+)?))")


def parse(text: str) -> Unit:
    """A unit from text.

    Parameters
    ----------
    text : str
        Names, numbers, `*` or a space, `/`, `^` or `**`, and parentheses, read from left to right. A power is an
        integer, or a fraction in parentheses.

    Returns
    -------
    Unit

    Raises
    ------
    ValueError
        For what is not a unit.

    Examples
    --------
    >>> ti.units.unit("kg m^2/s^2"), ti.units.unit("N/m^(1/2)")
    (J, kg m^(1/2)/s^2)
    """
    tokens: list[tuple[str, str]] = []
    at = 0
    while text[at:].strip():
        found = _TOKEN.match(text, at)
        if found is None:
            raise ValueError(f"{text!r} is not a unit: {text[at:].strip()!r} cannot be read")
        power, sign, name, number = found.groups()
        kinds = (("power", power), ("sign", sign), ("name", name), ("number", number))
        tokens += [(kind, value) for kind, value in kinds if value is not None]
        at = found.end()
    found_unit, rest = _product(text, tokens)
    if rest:
        raise ValueError(f"{text!r} is not a unit: {rest[0][1]!r} is out of place")
    return found_unit


def _product(text: str, tokens: list[tuple[str, str]]) -> tuple[Unit, list[tuple[str, str]]]:
    unit, tokens = _factor(text, tokens)
    while tokens and tokens[0] != ("sign", ")"):
        kind, value = tokens[0]
        sign = -1 if (kind, value) == ("sign", "/") else 1
        if kind == "sign" and value in "*·/":
            tokens = tokens[1:]
        elif kind == "power":
            break
        factor, tokens = _factor(text, tokens)
        unit = _combined(unit, factor, sign)
    return unit, tokens


def _factor(text: str, tokens: list[tuple[str, str]]) -> tuple[Unit, list[tuple[str, str]]]:
    kind, value = tokens[0] if tokens else ("end", "")
    if kind == "name":
        known = named(value)
        if known is None:
            raise ValueError(f"{text!r} is not a unit: there is no {value!r}")
        unit, tokens = known, tokens[1:]
    elif kind == "number":
        unit, tokens = _unit_of(Fraction(value)), tokens[1:]
    elif (kind, value) == ("sign", "("):
        unit, tokens = _product(text, tokens[1:])
        if not tokens:
            raise ValueError(f"{text!r} is not a unit: a parenthesis is not closed")
        tokens = tokens[1:]
    else:
        raise ValueError(f"{text!r} is not a unit: {value!r} is out of place" if value else f"{text!r} is not a unit")
    if tokens and tokens[0][0] == "power":
        unit, tokens = unit ** Fraction(re.sub(r"[()\s]", "", tokens[0][1])), tokens[1:]
    return unit, tokens
