"""Units of measurement, which types of fields, arguments, variables and results may have.

    %v: f32 = load @v[%i]            m/s
    %d: f32 = mul %v, %dt            m/s · s = m
    %x: f32 = load @x[%i]            m
    %y: f32 = add %x, %d             m and m: equal

Each value has a unit, perhaps one that is not known yet: of a zero, which fits everything, of a local cell, of memory
that lives for one launch. Since units are vectors of rational exponents, that two of them are equal is a linear
equation, which is solved for an unknown one at once. Nothing is rewritten: machine code knows of no units.

A user's numbers, and memory of his without a declared unit, have none. Those in functions of this package, such as the
length of a box, have whatever unit fits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from tinote.errors import KernelTypeError, TinoteError, raise_together
from tinote.ir import nodes as ir
from tinote.ir.buffers import Buffer, BufferKind
from tinote.ir.custom_vjp import CustomVJP
from tinote.ir.types import is_float
from tinote.ir.units import ONE, Unit, exponent
from tinote.source import Span


class _Unknown:
    """A unit that is not known yet."""

    __slots__ = ("name",)

    def __init__(self, name: str = "") -> None:
        self.name = name


#: The exponent of each base unit, prime and unknown unit.
_Powers = dict[str | int | _Unknown, Fraction]

#: Primitives whose operands have equal units, and what is said of them: those whose results have that unit, too, and
#: those whose results have none.
_ALIKE = {
    "add": "added",
    "sub": "subtracted",
    "min": "compared",
    "max": "compared",
    "mod": "divided with a remainder",
    "raw_mod": "divided with a remainder",
    "pack": "components of one vector",
    "surrogate": "exchanged",
}
_COMPARED = {
    **dict.fromkeys(("lt", "le", "gt", "ge", "eq", "ne"), "compared"),
    "floordiv": "divided without a remainder",
    "atan2": "coordinates of one point",
}
#: Primitives whose results have the unit of the first operand.
_OF_FIRST = ("neg", "abs", "stop_gradient_once", "in_reverse", "extract")
#: The powers of the operands of products.
_PRODUCTS = {
    "mul": (1, 1),
    "strong_mul": (1, 1),
    "div": (1, -1),
    "raw_div": (1, -1),
    "sqrt": (Fraction(1, 2),),
    "rsqrt": (Fraction(-1, 2),),
}


def check_units(fn: ir.Function, units: Mapping[ir.Var, Unit]) -> None:
    """Raise all `KernelTypeError`s of the units of a function. `units`: those of arguments and of annotated values."""
    check = _Check(units)
    own = fn.loc.is_in_package
    for param in fn.region.params:
        check.env[param] = check.new() if own and param not in units else _known(units.get(param, ONE))
    check.region(fn.region)
    for value in () if own else fn.region.yields:
        declared = units.get(value, ONE) if isinstance(value, ir.Var) else ONE
        if not check.equal(check.of(value), _known(declared)):
            returned = f"`{fn.name}` returns {check.shown(check.of(value))}"
            check.error(fn.loc, returned, "annotate the result with its unit")
    raise_together(check.errors)


def _known(unit: Unit) -> _Powers:
    return {**unit.powers}


def _name(unit: Unit) -> str:
    return "a number without unit" if unit == ONE else repr(unit)


class _Check:
    def __init__(self, units: Mapping[ir.Var, Unit]) -> None:
        self.units = units
        self.env: dict[ir.Var, _Powers] = {}
        self.solved: dict[_Unknown, _Powers] = {}
        self.memory: dict[tuple[Buffer, bool], _Powers] = {}
        #: whether the operation that is looked at is in a function of this package
        self.own = False
        #: of what a gradient is taken, and of what a dual is the change
        self.loss, self.change = _Unknown("loss"), _Unknown("change")
        self.errors: list[TinoteError] = []

    # units as equations

    def resolved(self, powers: _Powers) -> _Powers:
        while True:
            unknown = next((s for s in powers if isinstance(s, _Unknown) and s in self.solved), None)
            if unknown is None:
                return powers
            n = powers[unknown]
            powers = _sum({s: p for s, p in powers.items() if s is not unknown}, self.solved[unknown], n)

    def equal(self, a: _Powers, b: _Powers) -> bool:
        """Whether two units are equal, or can be: then they are from now on."""
        rest = self.resolved(_sum(a, b, Fraction(-1)))
        unknown = next((s for s in rest if isinstance(s, _Unknown)), None)
        if unknown is None:
            return not rest
        self.solved[unknown] = {s: -p / rest[unknown] for s, p in rest.items() if s is not unknown}
        return True

    def shown(self, powers: _Powers) -> str:
        found = self.resolved(powers)
        return _name(Unit({s: p for s, p in found.items() if not isinstance(s, _Unknown)}))

    def error(self, where: Span, message: str, hint: str = "") -> None:
        self.errors.append(KernelTypeError(message, where, hint))

    # values

    def new(self, name: str = "") -> _Powers:
        return {_Unknown(name): Fraction(1)}

    def of(self, atom: ir.Atom) -> _Powers:
        if isinstance(atom, ir.Lit):
            fits_all = self.own or not atom.value or math.isinf(atom.value) or atom.value != atom.value
            return self.new() if fits_all else {}
        return self.env.get(atom, {})

    def unit_of(self, buffer: Buffer) -> _Powers:
        found = self.memory.get((buffer, self.own))
        if found is None:
            found = self.memory[buffer, self.own] = self._unit_of(buffer)
        return found

    def _unit_of(self, buffer: Buffer) -> _Powers:
        primal = buffer.primal
        if primal is not None and primal.tangent is buffer:
            return _sum(self.unit_of(primal), {self.change: Fraction(1)}, Fraction(1))
        if primal is not None:
            return _sum({self.loss: Fraction(1)}, self.unit_of(primal), Fraction(-1))
        if buffer.unit is not None:
            return _known(buffer.unit)
        return self.new() if self.own or buffer.kind is BufferKind.TEMPORARY else {}

    # operations

    def region(self, region: ir.Region) -> None:
        for op in region.body:
            self.visit(op)

    def visit(self, op: ir.Op) -> None:
        self.own = op.loc.is_in_package
        if isinstance(op, ir.Prim):
            self.env[op.out] = self.prim(op)
        elif isinstance(op, ir.Load):
            self.env[op.out] = self.unit_of(op.buffer)
        elif isinstance(op, ir.Store):
            self.held(op, op.buffer.name, self.unit_of(op.buffer), op.value)
        elif isinstance(op, ir.Atomic):
            self.atomic(op)
        elif isinstance(op, ir.Local):
            self.env[op.out] = self.of(op.args[0]) if op.args else self.new(op.out.name)
        elif isinstance(op, ir.Get):
            self.env[op.out] = self.of(op.args[0])
        elif isinstance(op, ir.Set):
            cell = op.args[0]
            self.held(op, cell.name if isinstance(cell, ir.Var) else "", self.of(cell), op.args[-1])
        elif isinstance(op, ir.NewStack):
            self.env[op.out] = self.new()
        elif isinstance(op, ir.Push):
            self.held(op, "", self.of(op.args[0]), op.args[1])
        elif isinstance(op, ir.Pop):
            self.env[op.out] = self.of(op.args[0])
        elif isinstance(op, ir.For):
            self.carrying(op, op.initial, op.outs, [(op.carried, op.body)])
        elif isinstance(op, ir.While):
            self.carrying(op, op.initial, op.outs, [(part.params, part) for part in op.regions])
        elif isinstance(op, CustomVJP):
            for out, result in zip(op.outs, op.results, strict=True):
                self.env[out] = self.of(result)
        else:
            for region in op.regions:
                self.region(region)
            self.own = op.loc.is_in_package
            for k, out in enumerate(op.outs):
                values = tuple([region.yields[k] for region in op.regions])
                self.env[out] = self.alike(op, values, "alternatives") if values else {}

    def carrying(
        self,
        op: ir.Op,
        initial: tuple[ir.Atom, ...],
        outs: tuple[ir.Var, ...],
        parts: list[tuple[tuple[ir.Var, ...], ir.Region]],
    ) -> None:
        """A loop: what it carries has one unit."""
        carried = [self.of(value) for value in initial]
        for params, region in parts:
            self.env.update(zip(params, carried, strict=True))
            self.region(region)
        self.own = op.loc.is_in_package
        body = parts[-1][1]
        for out, unit, value in zip(outs, carried, body.yields, strict=True):
            self.env[out] = unit
            self.held(op, out.name, unit, value)

    def held(self, op: ir.Op, name: str, unit: _Powers, value: ir.Atom) -> None:
        """Something with a unit gets a value."""
        if not self.equal(unit, self.of(value)):
            what = f"'{name}' holds" if name else "one value is"
            self.error(op.loc, f"{what} {self.shown(unit)}, and gets {self.shown(self.of(value))}")

    def atomic(self, op: ir.Atomic) -> None:
        unit = self.unit_of(op.buffer)
        if op.prim.name == "mul":
            self.number(op, op.value, f"what multiplies '{op.buffer.name}' in place")
        else:
            self.held(op, op.buffer.name, unit, op.value)
        for out in op.outs:
            self.env[out] = unit

    def number(self, op: ir.Op, value: ir.Atom, what: str) -> bool:
        """Whether this is a number without unit, as it has to be."""
        fits = self.equal(self.of(value), {})
        if not fits:
            self.error(op.loc, f"{what} is {self.shown(self.of(value))}, and must be a number without unit")
        return fits

    def alike(self, op: ir.Op, args: tuple[ir.Atom, ...], said: str) -> _Powers:
        first = self.of(args[0])
        for other in args[1:]:
            if not self.equal(first, self.of(other)):
                self.error(op.loc, f"{self.shown(first)} and {self.shown(self.of(other))} cannot be {said}")
                return self.new()
        return first

    def prim(self, op: ir.Prim) -> _Powers:
        name, args = op.prim.name, op.args
        if op.out in self.units:
            return self.annotated(op, args[0], self.units[op.out])
        if name in _ALIKE:
            return self.alike(op, args, _ALIKE[name]) if args else {}
        if name in _COMPARED:
            self.alike(op, args, _COMPARED[name])
            return {}
        if name in _OF_FIRST:
            return self.of(args[0])
        if name in _PRODUCTS:
            found: _Powers = {}
            for arg, power in zip(args, _PRODUCTS[name], strict=True):
                found = _sum(found, self.of(arg), Fraction(power))
            return found
        if name == "select":
            return self.alike(op, args[1:], "alternatives")
        if name == "insert":
            return self.alike(op, (args[0], args[-1]), "components of one vector")
        if name == "pow" and isinstance(args[1], ir.Lit):
            power = exponent(args[1].value) if math.isfinite(args[1].value) else Fraction(0)
            return {s: p * power for s, p in self.of(args[0]).items() if power}
        if name == "cast" and is_float(op.out.type):
            return self.of(args[0])
        if name not in ("isnan", "not"):
            what = "what becomes an integer" if name == "cast" else f"an operand of `{name}`"
            fits = [self.number(op, arg, what) for arg in args]
            if not all(fits):
                return self.new()
        return {}

    def annotated(self, op: ir.Op, value: ir.Atom, unit: Unit) -> _Powers:
        """An annotation says the unit of a number without one, and must be that of any other value."""
        given = self.resolved(self.of(value))
        if given and not self.equal(given, _known(unit)):
            self.error(op.loc, f"this is annotated with {unit!r}, and is {self.shown(given)}")
        return _known(unit)


def _sum(a: _Powers, b: _Powers, times: Fraction) -> _Powers:
    """The exponents of a product with a power."""
    found = dict(a)
    for symbol, power in b.items():
        found[symbol] = found.get(symbol, Fraction(0)) + times * power
    return {symbol: power for symbol, power in found.items() if power}
