"""Reassociates float arithmetic for speed under fast maths, without intermediate overflow or underflow.

    %r: f32 = sqrt %d                    (%d at least 0.001)     %r: f32 = sqrt %d
    %c: f32 = mul %r, %r                                         %i: f32 = div 1.0f32, %r
    %q: f32 = mul %r, %c                                         %j: f32 = mul %i, %i
    %a: f32 = div %x, %q                                  ->     %k: f32 = mul %i, %j
    %b: f32 = div %y, %q                                         %a: f32 = mul %x, %k
                                                                 %b: f32 = mul %y, %k

LLVM, if allowed to reassociate products and to use reciprocals, does so anywhere: partial products and reciprocals may
overflow or underflow where the program's own values do not. Here every remaining value is the same real number, rounded
at another place, and new intermediate values are in range, often proved by `ir/magnitudes`:

* a division by a literal, by a root, or by a value that is certainly normal becomes a product with the reciprocal,
where
  several divisions share it or a loop need not repeat it; the reciprocal of a product of roots is a product of theirs,
  since machines estimate these;
* a division by a loop invariant, or by a divisor that at least three divisions share, becomes two products: with a
  reciprocal of the divisor, scaled if it is denormal, and with the scale;
* a division by a power of a root becomes products with the reciprocal root one after the other, each of which lies
  between the dividend and the quotient;
* (x·a)·a becomes x·(a·a) if a·a is in range; literals are combined, (a·(b·c))·d as (a·b)·(c·d), if a·b lies between the
two original products, up to a factor of four;
* x·c + y·c becomes (x + y)·c for a literal c not less than 1;
* a root that is only compared with a literal is not taken: its operand is compared with the literal's square;
* in a sum, two terms that other sums share are added first, and products last, each as one fused multiply-add. Only
this may have new intermediate values out of range: it assumes that the sum of the absolute values is finite.

A number within a factor of four of the largest one has a denormal reciprocal, which loses up to two binary digits. The
same may happen to factors of a product within a factor of four of the least normal number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import combinations

from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.access import buffers_may_meet
from tinote.ir.buffers import root_of
from tinote.ir.magnitudes import Magnitudes, least_exponent
from tinote.ir.primitives import Primitive
from tinote.ir.query import uses, walk
from tinote.ir.rewrite import KEEP, Decision, Rewriter
from tinote.ir.types import Scalar, Type, f16, f32, is_float, is_whole, u1

#: A term of a sum, and whether it is subtracted.
Term = tuple[bool, ir.Atom]
Terms = list[Term]

_DIVISIONS = (p.div, p.raw_div)
_SUMS = (p.add, p.sub)
_BELOW = (p.lt, p.le)
_ORDERINGS = (*_BELOW, p.gt, p.ge)
#: Terms of a sum, and factors of a divisor, that are considered together. Chosen, not measured.
_MAX_TERMS = 8
#: Depth of nested additions that are considered together. Chosen, not measured.
_MAX_DEPTH = 4
#: Least number of divisions by the same divisor for which a scaled reciprocal pays. Chosen, not measured.
_MIN_SHARERS = 3
#: Exponents below that of the least normal number which cost two digits at most.
_MAX_EXPONENT_LOSS = 2


def reassociate(fn: ir.Function) -> ir.Function:
    """`fn` with cheaper divisions, powers and sums, as fast maths permits."""
    products = _Products(fn, uses(fn.region))
    fn = products.run(fn)
    return _Sums(fn, products.uses).run(fn)


class _Divisions:
    """Finds divisions where a reciprocal pays."""

    def __init__(self, fn: ir.Function) -> None:
        #: for each division by a variable, the number of divisions by the same divisor where the first one is in scope
        self._sharing: dict[ir.Var, list[ir.Var]] = {}
        #: results of divisions by loop invariants
        self.invariant: set[ir.Var] = set()
        self._level: dict[ir.Var, int] = {}
        #: the buffers that each open loop writes
        self._written: list[set[ir.Buffer]] = []
        #: the results of the divisions by each variable; the first is in an open region
        self._open: dict[ir.Var, list[ir.Var]] = {}
        self._region(fn.region)

    def sharers(self, op: ir.Prim) -> int:
        """How many divisions have the divisor of `op`, itself included, and the first of them in scope."""
        return len(self._sharing.get(op.outs[0], ()))

    def level(self, atom: ir.Atom) -> int:
        """The number of loops around the place where a value could be computed."""
        return self._level.get(atom, 0) if type(atom) is ir.Var else 0

    def _region(self, region: ir.Region) -> None:
        added: list[ir.Var] = []
        depth = len(self._written)
        for param in region.params:
            self._level[param] = depth
        for op in region.body:
            if isinstance(op, ir.Prim):
                level = 0
                for a in op.args:
                    if type(a) is ir.Var and (found := self._level.get(a, 0)) > level:
                        level = found
                if op.prim in _DIVISIONS and type(op.args[1]) is ir.Var:
                    self._division(op, op.args[1], added)
            elif isinstance(op, ir.Load):
                level = self._level_of_load(op)
            elif isinstance(op, ir.Extent):
                level = 0
            else:
                level = depth
            for out in op.outs:
                self._level[out] = level
            if not op.regions:
                continue
            is_loop = isinstance(op, ir.For | ir.While) or (isinstance(op, ir.Task) and op.parallel)
            if is_loop:
                inside = [inner for r in op.regions for inner in walk(r)]
                self._written.append(
                    {root_of(inner.buffer) for inner in inside if isinstance(inner, ir.Store | ir.Atomic)}
                )
            for inner in op.regions:
                self._region(inner)
            if is_loop:
                self._written.pop()
        for divisor in added:
            del self._open[divisor]

    def _level_of_load(self, op: ir.Load) -> int:
        level = max(map(self.level, op.args), default=0)
        for depth in range(len(self._written), level, -1):
            if any(buffers_may_meet(op.buffer, b) for b in self._written[depth - 1]):
                return depth
        return level

    def _division(self, op: ir.Prim, divisor: ir.Var, added: list[ir.Var]) -> None:
        level = self.level(divisor)
        if level < len(self._written) and level < self.level(op.args[0]):
            self.invariant.add(op.outs[0])
        if divisor not in self._open:
            self._open[divisor] = []
            added.append(divisor)
        self._open[divisor].append(op.outs[0])
        self._sharing[op.outs[0]] = self._open[divisor]


class _Rearranger(Rewriter):
    """Base of the rewriters. Replaced operations stay as dead code, which `uses` does not count."""

    def __init__(self, uses: dict[ir.Var, int]) -> None:
        super().__init__()
        self.uses = uses
        self.definitions: dict[ir.Var, ir.Prim] = {}
        #: the variables defined in each open region
        self.bound: list[set[ir.Var]] = []

    def enter(self, region: ir.Region) -> None:
        self.bound.append(set())

    def leave(self, region: ir.Region) -> None:
        self.bound.pop()

    def cheaper(self, op: ir.Prim, t: Scalar) -> ir.Atom | None:
        """The cheaper replacement of an operation. `t`: the type of its result, or of the compared values."""
        raise NotImplementedError

    def on(self, op: ir.Op) -> Decision | Sequence[ir.Atom]:
        if not isinstance(op, ir.Prim):
            return KEEP
        t = op.args[0].type if op.prim in _ORDERINGS else op.outs[0].type
        found = self.cheaper(op, t) if isinstance(t, Scalar) and t.kind == "f" else None
        if found is None:
            self.note(op)
            return KEEP
        self.retire(op)
        if type(found) is ir.Var:
            self.uses[found] = self.uses.get(found, 0) + self.uses.get(op.outs[0], 0)
        return (found,)

    def note(self, op: ir.Prim) -> None:
        """Record an operation of the new function."""
        self.definitions[op.outs[0]] = op
        self.bound[-1].add(op.outs[0])

    def new(self, near: ir.Prim, prim: Primitive, *args: ir.Atom, t: Type | None = None) -> ir.Var:
        """Emit an operation before `near`."""
        out = ir.Var(near.outs[0].type if t is None else t)
        op = ir.Prim(prim, args, (out,), near.loc, near.origin)
        for a in args:
            if type(a) is ir.Var:
                self.uses[a] = self.uses.get(a, 0) + 1
        self.emit(op)
        self.note(op)
        return out

    def retire(self, op: ir.Prim) -> None:
        """Remove the uses by an operation that is replaced, and by its operands that become dead."""
        waiting = [op]
        while waiting:
            for a in waiting.pop().args:
                if type(a) is ir.Var:
                    self.uses[a] -= 1
                    if not self.uses[a] and (made := self.definitions.get(a)) is not None:
                        waiting.append(made)

    def inner(self, atom: ir.Atom) -> ir.Prim | None:
        """The operation that defines `atom`, if it is in the open region and has a single use."""
        if type(atom) is not ir.Var or self.uses.get(atom) != 1 or atom not in self.bound[-1]:
            return None
        return self.definitions[atom]

    def product_inside(self, atom: ir.Atom) -> ir.Prim | None:
        """The same, if it is a multiplication."""
        made = self.inner(atom)
        return made if made is not None and made.prim is p.mul else None

    def sum_inside(self, atom: ir.Atom) -> ir.Prim | None:
        """The same, if it is an addition or a subtraction."""
        made = self.inner(atom)
        return made if made is not None and made.prim in _SUMS else None


class _Products(_Rearranger):
    """Divisions and products."""

    def __init__(self, fn: ir.Function, uses: dict[ir.Var, int]) -> None:
        super().__init__(uses)
        self._fn = fn
        self.magnitudes = Magnitudes(self.definitions)
        #: the operation that computes the root or reciprocal root of each variable in scope, if there is one
        self.roots: dict[ir.Var, ir.Prim] = {}
        self.roots_added: list[list[ir.Var]] = []

    def enter(self, region: ir.Region) -> None:
        super().enter(region)
        self.roots_added.append([])

    def leave(self, region: ir.Region) -> None:
        super().leave(region)
        for variable in self.roots_added.pop():
            del self.roots[variable]

    def note(self, op: ir.Prim) -> None:
        super().note(op)
        of = op.args[0]
        if op.prim in (p.sqrt, p.rsqrt) and type(of) is ir.Var and of not in self.roots:
            self.roots[of] = op
            self.roots_added[-1].append(of)

    def cheaper(self, op: ir.Prim, t: Scalar) -> ir.Atom | None:
        if op.prim in _DIVISIONS:
            return self.quotient(op, t)
        if op.prim in _ORDERINGS:
            return self.comparison(op, t)
        return self.product(op, op.args[0], op.args[1], t) if op.prim is p.mul else None

    def comparison(self, op: ir.Prim, t: Scalar) -> ir.Atom | None:
        """Of a root with a literal."""
        root, bound = op.args
        made = self.inner(root)
        if type(bound) is not ir.Lit or made is None or made.prim is not p.sqrt or not bound.value > 0:
            return None
        of, square = made.args[0], t.round(bound.value * bound.value)
        if not 2.0 ** least_exponent(t) <= square < math.inf:
            return None
        if op.prim in _BELOW and not self.magnitudes.is_not_negative(of):
            return None  # the root of a negative number is not below anything
        return self.new(op, op.prim, of, ir.Lit(square, t), t=u1)

    # divisions

    @cached_property
    def divisions(self) -> _Divisions:
        return _Divisions(self._fn)

    def quotient(self, op: ir.Prim, t: Scalar) -> ir.Atom | None:
        x, y = op.args
        if type(y) is ir.Lit:
            inverse = _literal_reciprocal(y, t)
            return None if inverse is None or type(x) is ir.Lit else self.multiply(op, x, inverse, t)
        assert type(y) is ir.Var
        if t is f16:
            return None
        made = self.definitions.get(y)
        is_root = made is not None and made.prim is p.sqrt
        is_one = type(x) is ir.Lit and x.value == 1.0
        sharers = self.divisions.sharers(op)
        rooted = (t is f32 or sharers > 1) and not is_root and self.is_rooted(y, t, _MAX_TERMS) > 0
        if not rooted and is_one:
            return None
        invariant = op.outs[0] in self.divisions.invariant
        worth = sharers > 1 or invariant
        if rooted or (is_root and (t is f32 or worth)) or (worth and self.has_reciprocal(y, t)):
            inverse = self.reciprocal(op, y, t, rooted=rooted)
            return inverse if is_one else self.multiply(op, inverse, x, t)
        if t is f32 and (root := self.root_of_power(y, _MAX_TERMS)) is not None:
            return self.over_power(op, x, root[0], root[1])
        if invariant or sharers >= _MIN_SHARERS:
            return self.scaled(op, x, y, t)
        return None

    def has_reciprocal(self, y: ir.Var, t: Scalar) -> bool:
        """Whether a number is zero, or its reciprocal 1/y does not overflow."""
        made = self.definitions.get(y)
        if made is not None and (made.prim is p.sqrt or (made.prim is p.cast and is_whole(made.args[0].type))):
            return True
        return self.magnitudes.of(y)[0] >= least_exponent(t)

    def is_rooted(self, y: ir.Atom, t: Scalar, left: int) -> int:
        """The number of factors of `y` if 1/y is best computed from reciprocals of roots, else 0."""
        if left <= 0 or self.magnitudes.of(y)[0] < least_exponent(t):
            return 0
        if type(y) is ir.Lit:
            return int(_literal_reciprocal(y, t) is not None)
        if y in self.roots:
            return 1
        made = self.definitions.get(y)  # type: ignore[arg-type]
        if made is None:
            return 0
        if made.prim is p.sqrt:
            return 1
        if made.prim is not p.mul:
            return 0
        first = self.is_rooted(made.args[0], t, left - 1)
        second = self.is_rooted(made.args[1], t, left - first) if first else 0
        return first + second if second and first + second <= left else 0

    def root_of_power(self, y: ir.Var, left: int) -> tuple[ir.Var, int] | None:
        """The root that `y` is a power of, and the exponent."""
        made = self.definitions.get(y)
        if made is None or left <= 0:
            return None
        if made.prim is p.sqrt:
            return y, 1
        if made.prim is not p.mul or type(made.args[0]) is not ir.Var or type(made.args[1]) is not ir.Var:
            return None
        first = self.root_of_power(made.args[0], left - 1)
        second = self.root_of_power(made.args[1], left - first[1]) if first is not None else None
        if first is None or second is None or first[0] != second[0] or first[1] + second[1] > left:
            return None
        return first[0], first[1] + second[1]

    def over_power(self, op: ir.Prim, x: ir.Atom, root: ir.Var, exponent: int) -> ir.Atom:
        """x divided by a root, several times: each quotient lies between `x` and the last one."""
        inverse = self.new(op, p.div, ir.Lit(1.0, root.type), root)  # type: ignore[arg-type]
        for _ in range(exponent):
            x = self.new(op, p.mul, x, inverse)
        return x

    def reciprocal(self, op: ir.Prim, y: ir.Atom, t: Scalar, *, rooted: bool) -> ir.Atom:
        """1/y."""
        if rooted:
            if type(y) is ir.Lit:
                inverse = _literal_reciprocal(y, t)
                assert inverse is not None
                return inverse
            made = self.definitions.get(y)  # type: ignore[arg-type]
            root = self.roots.get(y)  # type: ignore[arg-type]
            if root is not None:
                out = root.outs[0]
                inverse = out if root.prim is p.rsqrt else self.new(op, p.div, ir.Lit(1.0, t), out)
                return self.new(op, p.mul, inverse, inverse)
            assert made is not None
            if made.prim is p.mul:
                first = self.reciprocal(op, made.args[0], t, rooted=True)
                same = made.args[0] == made.args[1]
                second = first if same else self.reciprocal(op, made.args[1], t, rooted=True)
                return self.new(op, p.mul, first, second)
        return self.new(op, p.div, ir.Lit(1.0, t), y)

    def scaled(self, op: ir.Prim, x: ir.Atom, y: ir.Var, t: Scalar) -> ir.Atom:
        """x/y as (x · 1/(y·s)) · s, where s is 1 unless `y` is denormal: only what surrounds the loop looks at `y`."""
        size = self.new(op, p.absolute, y)
        tiny = self.new(op, p.lt, size, ir.Lit(t.smallest_normal, t), t=u1)
        scale = self.new(op, p.select, tiny, ir.Lit(2.0**t.mantissa, t), ir.Lit(1.0, t))
        inverse = self.new(op, p.div, ir.Lit(1.0, t), self.new(op, p.mul, y, scale))
        return self.new(op, p.mul, self.new(op, p.mul, x, inverse), scale)

    # products

    def multiply(self, near: ir.Prim, x: ir.Atom, y: ir.Atom, t: Scalar) -> ir.Atom:
        """x·y, emitted before `near`."""
        return self.product(near, x, y, t) or self.new(near, p.mul, x, y)

    def product(self, near: ir.Prim, x: ir.Atom, y: ir.Atom, t: Scalar) -> ir.Atom | None:
        """x·y computed in another way, if there is a cheaper one."""
        if type(x) is ir.Lit:
            x, y = y, x
        if type(y) is ir.Lit:
            return self.meeting(near, x, y, t)
        return self.square(near, x, y, t)

    def meeting(self, near: ir.Prim, x: ir.Atom, literal: ir.Lit, t: Scalar) -> ir.Atom | None:
        """(a·(b·c))·literal as (a·b)·(c·literal)."""
        made = self.product_inside(x)
        if made is None:
            return None
        for a, other in (made.args, made.args[::-1]):
            inner = self.definitions.get(other) if type(other) is ir.Var else None
            if inner is None or inner.prim is not p.mul or type(inner.args[1]) is not ir.Lit or type(a) is ir.Lit:
                continue
            b, c = inner.args[0], abs(inner.args[1].value)
            factor = t.round(inner.args[1].value * literal.value)
            if factor == 1.0:
                return self.multiply(near, a, b, t)
            between = c <= 1 <= abs(factor) or 1 <= c <= 2**_MAX_EXPONENT_LOSS
            if between and t.smallest_normal <= abs(factor) < math.inf:
                return self.new(near, p.mul, self.multiply(near, a, b, t), ir.Lit(factor, t))
        return None

    def square(self, near: ir.Prim, x: ir.Atom, y: ir.Atom, t: Scalar) -> ir.Atom | None:
        """(x·a)·a as x·(a·a)."""
        for inner, a in ((x, y), (y, x)):
            made = self.product_inside(inner)
            if made is None or a not in made.args or made.args[0] == made.args[1]:
                continue
            least, greatest = self.magnitudes.of(a)
            if 2 * least >= least_exponent(t) - _MAX_EXPONENT_LOSS and 2 * greatest < -least_exponent(t):
                other = made.args[0] if made.args[1] == a else made.args[1]
                return self.new(near, p.mul, other, self.new(near, p.mul, a, a))
        return None


class _Sums(_Rearranger):
    """Additions and subtractions."""

    def __init__(self, fn: ir.Function, uses: dict[ir.Var, int]) -> None:
        super().__init__(uses)
        #: what loops carry, as their bodies see it
        self.carried: set[ir.Var] = set()
        #: how many sums have both of two terms, where it is more than one
        self.pairs: dict[frozenset[ir.Atom], int] = {}
        self.look_around(fn)

    def cheaper(self, op: ir.Prim, t: Scalar) -> ir.Atom | None:
        return self.sum(op) if op.prim in _SUMS else None

    def sum(self, op: ir.Prim) -> ir.Atom | None:
        """A cheaper sum: its terms in an order such that more of them are added together with their multiplication, or
        that others share.
        """
        left, right = op.args
        if left in self.carried or right in self.carried:
            return None  # A carried value waits for one addition only.
        if (common := self.common_factor(op)) is not None:
            x, y, factor = common
            return self.new(op, p.mul, self.new(op, op.prim, x, y), factor)
        terms: Terms = []
        fused = self.collect(op, False, terms, _MAX_DEPTH)
        if len(terms) < 3 or len(terms) > _MAX_TERMS:
            return None
        products = [term for term in terms if self.product_inside(term[1]) is not None]
        others = [term for term in terms if term not in products]
        shared = self.shared_pair(op, others)
        if not shared and (not products or len(products) - (not others) <= fused):
            return None
        for term in shared:
            others.remove(term)  # A sum counts a pair once.
        order = [*shared, *others, *products]
        first = next((term for term in order if not term[0]), None)
        if first is None:
            return None
        order.remove(first)
        result = first[1]
        for negative, atom in order:
            result = self.new(op, p.sub if negative else p.add, result, atom)
        return result

    def shared_pair(self, op: ir.Prim, terms: Terms) -> Terms:
        """The two terms that most other sums have, too, unless they are added as it is."""
        if not self.pairs:
            return []
        best = max(combinations(terms, 2), key=self.sharers, default=())
        together = {a for _, a in best}
        if not best or not self.sharers(best) or any(set(o.args) == together for o in self.additions(op, _MAX_DEPTH)):
            return []
        return list(best)

    def sharers(self, pair: tuple[Term, ...]) -> int:
        """How many sums have both of two terms."""
        return 0 if any(negative for negative, _ in pair) else self.pairs.get(frozenset(a for _, a in pair), 0)

    def additions(self, op: ir.Prim, left: int) -> list[ir.Prim]:
        """The operations of a sum."""
        parts = [self.sum_inside(a) for a in op.args] if left else []
        return [op, *[one for part in parts if part is not None for one in self.additions(part, left - 1)]]

    def common_factor(self, op: ir.Prim) -> tuple[ir.Atom, ir.Atom, ir.Lit] | None:
        """x, y and c for a sum or difference of x·c and y·c, unless x + y may overflow where the sum does not."""
        first = self.product_inside(op.args[0])
        second = self.product_inside(op.args[1]) if first is not None else None
        if first is None or second is None:
            return None
        (x, c), (y, d) = first.args, second.args
        return (x, y, c) if type(c) is ir.Lit and c == d and abs(c.value) >= 1 else None

    def look_around(self, fn: ir.Function) -> None:
        """Fill `carried` and `pairs`; each sum of more than two terms counts once."""

        def region(r: ir.Region) -> None:
            self.enter(r)
            sums: list[ir.Prim] = []
            inside: set[ir.Prim] = set()
            for op in r.body:
                if isinstance(op, ir.Prim):
                    if not is_float(op.outs[0].type):
                        continue
                    if op.prim in _SUMS:
                        sums.append(op)
                        inside.update(part for part in map(self.sum_inside, op.args) if part is not None)
                    self.note(op)
                elif op.regions:
                    if isinstance(op, ir.For | ir.While):
                        self.carried.update(param for inner in op.regions for param in inner.params)
                    for inner in op.regions:
                        region(inner)
            for op in sums:
                if op in inside:
                    continue
                terms: Terms = []
                self.collect(op, False, terms, _MAX_DEPTH)
                if 3 <= len(terms) <= _MAX_TERMS:
                    for pair in combinations({a for less, a in terms if not less}, 2):
                        key = frozenset(pair)
                        self.pairs[key] = self.pairs.get(key, 0) + 1
            self.leave(r)

        region(fn.region)
        self.pairs = {pair: count for pair, count in self.pairs.items() if count > 1}
        self.definitions.clear()

    def collect(self, op: ir.Prim, negative: bool, terms: Terms, left: int) -> int:
        """Add the terms of a sum to `terms`, each with whether it is subtracted. Returns how many of its additions can
        be fused with a product. `left`: the remaining depth.
        """
        fused, deeper = False, 0
        for position, a in enumerate(op.args):
            less = negative ^ (op.prim is p.sub and position == 1)
            made = self.inner(a)
            if made is not None and left and len(terms) <= _MAX_TERMS and made.prim in _SUMS:
                deeper += self.collect(made, less, terms, left - 1)
            else:
                terms.append((less, a))
                fused = fused or (made is not None and made.prim is p.mul)
        return fused + deeper


def _literal_reciprocal(literal: ir.Lit, t: Scalar) -> ir.Lit | None:
    """1/literal, if both are normal."""
    if not t.smallest_normal <= abs(literal.value) <= 1 / t.smallest_normal:
        return None
    return ir.Lit(t.round(1 / literal.value), t)
