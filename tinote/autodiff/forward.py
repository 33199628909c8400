"""Forward mode: a function that computes tangents along with its values.

    for parallel %i in 0..8:                 for parallel %i in 0..8:
      %x = load @x[%i]                         %x = load @x[%i]
      %y = sin %x                      ->      %dx = load @x.dual[%i]
      store @y[%i], %y                         %y = sin %x
                                               %c = cos %x
                                               %dy = mul %dx, %c
                                               store @y[%i], %y
                                               store @y.dual[%i], %dy

The tangent of y = f(a, b) is ∂f/∂a · da + ∂f/∂b · db, and a derivative rule gives g · ∂f/∂a for whatever stands for g:
each term is the rule's own product with the operand's tangent in place of the adjoint. So both modes read one table and
cannot drift apart.

Along several directions, the tangents of a number are one value (`Tangents`): the values, and the slopes that they are
multiplied by, are computed once, and machine code has vectors of tangents whatever the loops around look like.

    %dx: f64d8 = load @x.dual[%i]
    %c: f64 = cos %x
    %r: f64d8 = cast %c
    %dy: f64d8 = mul %dx, %r

Second order is forward mode of the stored gradient: where that recomputes, pops or reads a value again, its tangent is
recomputed, popped or read along with it. So `storage` has nothing to decide a second time.

Method: tangent propagation; Griewank and Walther, "Evaluating Derivatives", 2nd ed., 2008, section 3.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from tinote.autodiff.activity import Broken, broken_at, discardable_variables, may_be_active
from tinote.autodiff.custom_vjp import transposed_vjp
from tinote.autodiff.emit import Emit, joined_tangents, tangent_numbers
from tinote.autodiff.unfold import unfold_atomics
from tinote.errors import DifferentiationError
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.build import Builder
from tinote.ir.custom_vjp import CustomVJP
from tinote.ir.primitives import Defaults, NoDerivative
from tinote.ir.prune import prune
from tinote.ir.query import walk
from tinote.ir.types import Stack, Type, element_type, is_float, tangent_type, with_element

DEFAULTS = Defaults()

#: Memory that the code itself makes: its tangents are made along with it.
_OF_THE_CODE = (ir.BufferKind.TEMPORARY, ir.BufferKind.SAVED)


class Pushforward(NamedTuple):
    """A function with tangents, and where a value with one is stored into a buffer without a dual."""

    function: ir.Function
    broken: tuple[Broken, ...]


def forward(
    fn: ir.Function,
    defaults: Defaults = DEFAULTS,
    *,
    arguments: bool = False,
    directions: int = 1,
    memory_tangents: Mapping[ir.Buffer, ir.Buffer] | None = None,
) -> Pushforward:
    """Add tangents along a number of `directions` to `fn` (scalar form, simplified); duals of fields hold as many for
    each number. `arguments`: the result has further parameters for the tangents of each float parameter, and also
    returns the tangents of the floats that it returns. `memory_tangents`: what holds the tangents of memory, in place
    of duals. Raises `DifferentiationError`, located, for what has no derivative yet.
    """
    # Values and tangents are computed together: any order will do for what the iterations of a parallel loop share.
    unfolded = unfold_atomics(fn, lambda op, _: _may_be_active(op.buffer, memory_tangents))
    transform = _Forward(unfolded, defaults, arguments, directions, memory_tangents)
    tangent = transform.function()
    return Pushforward(
        tangent, tuple([broken_at(lost, fn, arguments=arguments, tangents=True) for lost in transform.lost])
    )


def _may_be_active(buffer: ir.Buffer, memory_tangents: Mapping[ir.Buffer, ir.Buffer] | None) -> bool:
    if memory_tangents is None or buffer.kind is ir.BufferKind.TEMPORARY:
        return may_be_active(buffer, tangents=True)
    return buffer in memory_tangents


class _Forward:
    """`tangents` maps a variable to its tangent; one that is absent has tangent zero."""

    def __init__(
        self,
        fn: ir.Function,
        defaults: Defaults,
        arguments: bool,
        directions: int,
        memory_tangents: Mapping[ir.Buffer, ir.Buffer] | None,
    ) -> None:
        self.fn = fn
        self.memory_tangents = memory_tangents
        self.directions = directions
        self.arguments = arguments
        self.builder = Builder(defaults)
        definitions = {v: op for op in walk(fn.region) for v in op.outs}
        self.emit = Emit(self.builder, definitions, discardable_variables(fn))
        self.tangents: dict[ir.Var, ir.Atom] = {}
        self.stacks: dict[ir.Var, ir.Var] = {}  # of values, and of their tangents
        self.temporaries: dict[ir.Buffer, ir.Buffer] = {}
        self.lost: list[ir.Store | ir.Atomic] = []  # writes of an active value to a field without a dual: broken paths
        self.active_temporaries = _temporaries_with_tangents(fn)

    def function(self) -> ir.Function:
        region = self.fn.region
        active = [q for q in region.params if self.arguments and is_float(q.type)]
        returned = [y for y in region.yields if self.arguments and is_float(y.type)]
        params = [[ir.Var(q.type, f"d_{q.name}") for _ in range(self.directions)] for q in active]
        with self.builder.region(*region.params, *chain(*params)) as opened:
            for q, numbers in zip(active, params, strict=True):
                self.tangents[q] = self.joined(numbers)
            self.body(region)
            tangents = [self.numbers(self.tangent_or_zero(y)) for y in returned]
        result = opened.close(*region.yields, *chain(*tangents))
        return ir.Function(f"{self.fn.name}.dual", prune(result), self.fn.loc)

    def body(self, region: ir.Region) -> None:
        for op in region.body:
            self.builder.loc, self.builder.origin = op.loc, op
            self.op(op)

    # ---- tangents

    def tangent(self, atom: ir.Atom) -> ir.Atom | None:
        """The tangent of an atom; `None` when it is zero."""
        return self.tangents.get(atom) if isinstance(atom, ir.Var) else None

    def tangent_or_zero(self, atom: ir.Atom) -> ir.Atom:
        found = self.tangent(atom)
        return self.emit.zero_of(self.type_of_tangent(atom.type)) if found is None else found

    def type_of_tangent(self, t: Type) -> Type:
        """The type of the tangents of what has type `t`, along all directions."""
        if isinstance(t, Stack):
            return Stack(with_element(t.content, tangent_type(element_type(t), self.directions)))
        return with_element(t, tangent_type(element_type(t), self.directions))

    def variable(self, of: ir.Var) -> ir.Var:
        """A variable for the tangent of another."""
        return ir.Var(self.type_of_tangent(of.type), f"d_{of.name}")

    def joined(self, numbers: Sequence[ir.Atom]) -> ir.Atom:
        """A tangent from its numbers, one for each direction."""
        return joined_tangents(self.builder, numbers)

    def numbers(self, tangent: ir.Atom) -> list[ir.Atom]:
        """The numbers of a tangent, one for each direction."""
        return tangent_numbers(self.builder, tangent, self.directions)

    def tangent_of(self, buffer: ir.Buffer) -> ir.Buffer | None:
        if buffer.kind not in _OF_THE_CODE:
            return buffer.tangent if self.memory_tangents is None else self.memory_tangents.get(buffer)
        if buffer not in self.active_temporaries:
            return None
        found = self.temporaries.get(buffer)
        if found is None:
            dtype = tangent_type(buffer.dtype, self.directions)
            found = ir.Buffer(f"{buffer.name}.dual", dtype, buffer.shape, buffer.element, buffer.kind)
            self.temporaries[buffer] = found
        return found

    # ---- operations

    def op(self, op: ir.Op) -> None:
        if isinstance(op, ir.Prim):
            self.builder.emit(op)
            tangent = self.prim(op)
            if tangent is not None:
                self.tangents[op.out] = tangent
        elif isinstance(op, ir.Load):
            self.builder.emit(op)
            dual = self.tangent_of(op.buffer)
            if dual is not None:
                self.tangents[op.out] = self.builder.load(dual, op.index)
        elif isinstance(op, ir.Store):
            self.builder.emit(op)
            dual = self.tangent_of(op.buffer)
            if dual is not None:
                self.builder.store(dual, op.index, self.tangent_or_zero(op.value))
            elif self.tangent(op.value) is not None:
                self.lost.append(op)
        elif isinstance(op, ir.Atomic):
            self.atomic(op)
        elif isinstance(op, ir.NewStack | ir.Push | ir.Pop):
            self.stack(op)
        elif isinstance(op, CustomVJP):
            self.custom_vjp(op)
        elif isinstance(op, ir.If):
            self.branch(op)
        elif isinstance(op, ir.For):
            self.loop(op, 1)
        elif isinstance(op, ir.While):
            self.loop(op, 0)
        else:
            self.builder.emit(op)

    def prim(self, op: ir.Prim) -> ir.Atom | None:
        tangents = [self.tangent(a) for a in op.args]
        if all(t is None for t in tangents) or not is_float(op.out.type):
            return None
        if op.prim is p.pack:
            components = [self.tangent_or_zero(a) for a in op.args]
            return self.builder.prim(p.pack, *components, type=self.type_of_tangent(op.out.type))
        if op.prim is p.extract:
            assert tangents[0] is not None
            return self.builder.extract(tangents[0], *op.args[1:])
        if op.prim is p.insert:
            whole, value = self.tangent_or_zero(op.args[0]), self.tangent_or_zero(op.args[-1])
            return self.builder.insert(whole, op.args[1:-1], value)
        if op.prim is p.select:
            return self.emit.where(op.args[0], self.tangent_or_zero(op.args[1]), self.tangent_or_zero(op.args[2]))
        rule = op.prim.derivative
        if isinstance(rule, NoDerivative):
            if not rule.zero:
                raise DifferentiationError(f"`{op.prim}` cannot be differentiated: {rule.reason}", op.loc)
            return None
        if op.prim is p.cast:
            assert tangents[0] is not None
            return self.builder.prim(p.cast, tangents[0], type=self.type_of_tangent(op.out.type))
        total: ir.Atom | None = None
        for position, tangent in enumerate(tangents):
            if tangent is not None:
                term = rule(self.emit, tangent, op.out, op.args)[position]
                if term is not None:
                    total = term if total is None else self.emit.add(total, term)
        return total

    def atomic(self, op: ir.Atomic) -> None:
        dual = self.tangent_of(op.buffer)
        tangent = self.tangent(op.value)
        self.builder.emit(op)
        if dual is None and tangent is not None:
            self.lost.append(op)
        elif dual is not None and tangent is not None:
            self.builder.atomic(p.add, dual, op.index, tangent)

    def custom_vjp(self, op: CustomVJP) -> None:
        self.builder.emit(op)
        if any(self.tangent(a) is not None for a in op.inputs):
            inputs = [self.numbers(self.tangent_or_zero(a)) for a in op.inputs if is_float(a.type)]
            products = [transposed_vjp(self.builder, op, along) for along in zip(*inputs, strict=True)]
            for out, numbers in zip(op.outs, zip(*products, strict=True), strict=True):
                self.tangents[out] = self.joined(numbers)

    def stack(self, op: ir.NewStack | ir.Push | ir.Pop) -> None:
        """A stack of floats gets a second one for their tangents."""
        self.builder.emit(op)
        stack = op.out if isinstance(op, ir.NewStack) else op.args[0]
        assert isinstance(stack, ir.Var) and isinstance(stack.type, Stack)
        if not is_float(stack.type.content):
            return
        if isinstance(op, ir.NewStack):
            self.stacks[stack] = self.variable(stack)
            self.builder.emit(op.rebuilt(op.args, (), (self.stacks[stack],)))
        elif isinstance(op, ir.Push):
            self.builder.emit(op.rebuilt((self.stacks[stack], self.tangent_or_zero(op.args[1])), ()))
        else:
            popped = self.tangents[op.out] = self.variable(op.out)
            self.builder.emit(op.rebuilt((self.stacks[stack],), (), (popped,)))

    # ---- control flow: tangents are carried and yielded along with the values

    def region(self, region: ir.Region, extra: list[tuple[ir.Var, ir.Var]], wanted: list[int]) -> ir.Region:
        """`region` with tangent parameters; its yields are followed by the tangents of those at `wanted`."""
        for value, tangent in extra:
            self.tangents[value] = tangent
        with self.builder.region(*region.params, *[t for _, t in extra]) as opened:
            self.body(region)
            tangents = [self.tangent_or_zero(region.yields[k]) for k in wanted]
        return opened.close(*region.yields, *tangents)

    def branch(self, op: ir.If) -> None:
        wanted = [k for k, v in enumerate(op.outs) if is_float(v.type)]
        regions = tuple([self.region(r, [], wanted) for r in op.regions])
        outs = [self.variable(op.outs[k]) for k in wanted]
        self.builder.emit(op.rebuilt(op.args, regions, (*op.outs, *outs)))
        self.tangents.update(zip([op.outs[k] for k in wanted], outs, strict=True))

    def loop(self, op: ir.For | ir.While, first: int) -> None:
        wanted = [k for k, v in enumerate(op.outs) if is_float(v.type)]
        starts = [self.tangent_or_zero(op.initial[k]) for k in wanted]
        regions: list[ir.Region] = []
        for region in op.regions:
            params = region.params[first:]
            extra = [(params[k], self.variable(params[k])) for k in wanted]
            is_condition = isinstance(op, ir.While) and region is op.condition
            regions.append(self.region(region, extra, [] if is_condition else wanted))
        outs = [self.variable(op.outs[k]) for k in wanted]
        self.builder.emit(op.rebuilt((*op.args, *starts), tuple(regions), (*op.outs, *outs)))
        self.tangents.update(zip([op.outs[k] for k in wanted], outs, strict=True))


def _temporaries_with_tangents(fn: ir.Function) -> set[ir.Buffer]:
    """Every temporary of floats: one that is never active gets a tangent that is pruned again."""
    return {
        op.buffer
        for op in walk(fn.region)
        if isinstance(op, ir.Store | ir.Atomic) and op.buffer.kind in _OF_THE_CODE and op.buffer.dtype.kind == "f"
    }
