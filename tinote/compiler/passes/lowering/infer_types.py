"""Type inference: fixes the type of every literal and makes every conversion explicit.

    %s: weak_int = select %c, 1, 2                  %s: i32 = select %c, 1i32, 2i32
    %y: f32 = mul %x, 2                       ->    %y: f32 = mul %x, 2.0f32
    %z: f64 = add %y, %d                            %1: f64 = cast %y
                                                    %z: f64 = add %1, %d
    store @a[%k], %s                                %2: i64 = cast %k          (%k: u32)
                                                    %3: f32 = cast %s
                                                    store @a[%2], %3

A weak literal takes the type that its use requires; a variable of a weak type (all of its operands were weak) takes the
default type of its kind. A literal that does not fit its integer type is an error that names the line.
"""

from __future__ import annotations

from tinote.errors import KernelTypeError, TinoteError, raise_together
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.primitives import Defaults
from tinote.ir.rewrite import Rewriter, remade, remade_region
from tinote.ir.types import (
    Ref,
    Scalar,
    Stack,
    Tensor,
    Type,
    element_type,
    i32,
    i64,
    shape_of,
    strengthen,
    u1,
    u64,
    with_element,
)

_COMPARISONS = (p.lt, p.le, p.gt, p.ge, p.eq, p.ne)
#: Primitives whose operands are not simply converted to the type of the result.
_OWN_RULES = (p.cast, p.bitcast, p.pack, p.extract, p.insert, p.random_bits)


def infer_types(fn: ir.Function, defaults: Defaults) -> ir.Function:
    """`fn` in the TYPED form. Raises all `KernelTypeError`s of the function at once."""
    inference = _Inference(defaults)
    region = inference.region(fn.region)
    raise_together(inference.errors)
    return fn.with_region(region)


class _Inference(Rewriter):
    def __init__(self, defaults: Defaults) -> None:
        super().__init__()
        self.defaults = defaults
        self.errors: list[TinoteError] = []
        #: The operation being typed: conversions emitted for it take its location and origin.
        self.op: ir.Op | None = None

    # types and conversions

    def strong(self, t: Type) -> Type:
        """`t` with weak element types replaced by the defaults."""
        dtype = element_type(t)
        if dtype.bits:
            return t
        dtype = strengthen(dtype, self.defaults.fp, self.defaults.ip)
        if isinstance(t, Ref | Stack):
            return type(t)(with_element(t.content, dtype))
        return with_element(t, dtype)

    def rename(self, var: ir.Var) -> ir.Var:
        """The variable that stands for `var`: itself when its type is strong."""
        t = self.strong(var.type)
        if t is var.type:
            return var
        new = ir.Var(t, var.name)
        self.env[var] = new
        return new

    def error(self, message: str, hint: str = "") -> None:
        assert self.op is not None
        self.errors.append(KernelTypeError(message, self.op.loc, hint))

    def literal(self, lit: ir.Lit, t: Scalar, explicit: bool = False) -> ir.Lit:
        """A weak literal in type `t`; it must fit unless the user wrote the conversion."""
        value = lit.value
        if lit.type.kind == "i" and t.kind in "iu" and not explicit:
            # A negative number in an unsigned type is its complement, as everywhere in the dialect.
            lowest = t.lowest if t.kind == "i" else -(1 << (t.bits - 1))
            if not lowest <= value <= t.highest:
                wider = next((w.name for w in (i64, u64) if w.lowest <= value <= w.highest), "f64")
                self.error(
                    f"{value} does not fit into {t.name}", f"write ti.{wider}({value}) to compute in a wider type"
                )
        return ir.Lit(p.cast_number(t, value), t)

    def convert(self, atom: ir.Atom, dtype: Scalar, explicit: bool = False) -> ir.Atom:
        """`atom`, already rewritten, with elements of type `dtype`; its shape stays."""
        if isinstance(atom, ir.Lit):
            if atom.type is dtype:
                return atom
            return (
                ir.Lit(p.cast_number(dtype, atom.value), dtype)
                if atom.type.bits
                else self.literal(atom, dtype, explicit)
            )
        if element_type(atom.type) is dtype:
            return atom
        assert self.op is not None
        return self.apply(p.cast, with_element(atom.type, dtype), self.op, atom, name=atom.name)

    def fit(self, atom: ir.Atom, t: Type) -> ir.Atom:
        """`atom` as exactly `t`; shapes must fit."""
        atom = self.convert(atom, element_type(t))
        if shape_of(atom.type) != shape_of(t):
            self.error(f"a value of shape {shape_of(atom.type)} does not fit where {shape_of(t)} is needed")
        return atom

    def strengthen(self, atom: ir.Atom) -> ir.Atom:
        """`atom` without a weak type."""
        return self.convert(atom, element_type(self.strong(atom.type)))

    def index(self, atom: ir.Atom) -> ir.Atom:
        """An index operand: i32 or i64."""
        t = element_type(atom.type)
        if t is i32 or t is i64:
            return atom
        if t.kind == "f" or isinstance(atom.type, Tensor):
            self.error(
                f"an index must be an integer, not {atom.type!r}", "convert it with ti.i32(...), or ti.floor first"
            )
            return ir.Lit(0, i32)
        if isinstance(atom, ir.Lit):
            narrow = i32.lowest <= atom.value <= i32.highest
            return ir.Lit(p.cast_number(i64, atom.value), i32 if narrow else i64)
        return self.convert(atom, i32 if t.bits < 32 else i64)

    def indices(self, atoms: tuple[ir.Atom, ...]) -> tuple[ir.Atom, ...]:
        return tuple([self.index(a) for a in atoms])

    # operations

    def visit(self, op: ir.Op) -> None:
        self.op = op
        args = self.renamed(op.args)
        if isinstance(op, ir.Prim):
            self.prim(op, args)
        elif isinstance(op, ir.For):
            self.for_(op, args)
        elif isinstance(op, ir.While):
            outs = tuple([self.rename(v) for v in op.outs])
            params = [self.strong(v.type) for v in op.body.params]
            args = tuple([self.fit(a, t) for a, t in zip(args, params, strict=True)])
            condition = self.typed_region(op.condition, (u1,))
            self.put(op, args, (condition, self.typed_region(op.body, params)), outs)
        elif isinstance(op, ir.If):
            outs = tuple([self.rename(v) for v in op.outs])
            args = (self.convert(args[0], u1),)
            types = [v.type for v in outs]
            self.put(op, args, tuple([self.typed_region(r, types) for r in op.regions]), outs)
        else:
            self.leaf(op, args)

    def put(
        self, op: ir.Op, args: tuple[ir.Atom, ...], regions: tuple[ir.Region, ...], outs: tuple[ir.Var, ...]
    ) -> None:
        """Add `op` with these parts; as the same object when they are its own."""
        self.out.append(remade(op, args, regions, outs))

    def typed_region(self, region: ir.Region, types: tuple[Type, ...] | list[Type]) -> ir.Region:
        """`region` rewritten, with yields of the given types."""
        saved, self.out, op = self.out, [], self.op
        params = tuple([self.rename(v) for v in region.params])
        for inner in region.body:
            self.visit(inner)
        self.op = region.body[-1] if region.body else op
        yields = tuple([self.fit(self.get(y), t) for y, t in zip(region.yields, types, strict=True)])
        body, self.out = tuple(self.out), saved
        self.op = op
        return remade_region(region, body, yields, params)

    def region(self, region: ir.Region) -> ir.Region:
        return self.typed_region(region, [self.strong(y.type) for y in region.yields])

    def for_(self, op: ir.For, args: tuple[ir.Atom, ...]) -> None:
        outs = tuple([self.rename(v) for v in op.outs])
        index = element_type(self.strong(op.index.type))
        for bound in args[:2]:
            if element_type(bound.type).kind == "f" or isinstance(bound.type, Tensor):
                self.error(
                    f"the bounds of a loop must be integers, not {bound.type!r}", "convert them with ti.i32(...)"
                )
        carried = [self.strong(v.type) for v in op.carried]
        lo, hi = [self.convert(a, index) for a in args[:2]]
        initial = [self.fit(a, t) for a, t in zip(args[2:], carried, strict=True)]
        self.put(op, (lo, hi, *initial), (self.typed_region(op.body, carried),), outs)

    def leaf(self, op: ir.Op, args: tuple[ir.Atom, ...]) -> None:
        """Operations other than primitives and control flow."""
        outs = tuple([self.rename(v) for v in op.outs])
        if isinstance(op, ir.Load):
            args = self.indices(args)
        elif isinstance(op, ir.Store | ir.Atomic):
            index = self.indices(args[:-1])
            args = (*index, self.fit(args[-1], op.buffer.loaded_type(len(index))))
        elif isinstance(op, ir.Local):
            assert isinstance(outs[0].type, Ref)
            content = outs[0].type.content
            args = tuple([self.fit(a, content) for a in args])
        elif isinstance(op, ir.Get):
            args = (args[0], *self.indices(args[1:]))
        elif isinstance(op, ir.Set):
            assert isinstance(args[0].type, Ref)
            content = args[0].type.content
            index = self.indices(args[1:-1])
            args = (args[0], *index, self.fit(args[-1], element_type(content) if index else content))
        elif isinstance(op, ir.Check):
            rest = [self.strengthen(a) for a in args[1:]]
            args = (self.convert(args[0], u1), *rest)
            if op.kind is ir.FaultKind.BOUNDS:
                args = (args[0], *self.indices(args[1:]))
        elif not isinstance(op, ir.Task):
            args = tuple([self.strengthen(a) for a in args])
        self.put(op, args, tuple([self.region(r) for r in op.regions]), outs)

    def prim(self, op: ir.Prim, args: tuple[ir.Atom, ...]) -> None:
        prim, out = op.prim, op.out
        result = out.type
        if prim not in _OWN_RULES:
            # Usually nothing has to be done: test that first.
            first = args[0].type
            wanted = first if prim in _COMPARISONS else result
            if type(wanted) is Scalar and wanted.bits and all(a.type is wanted for a in args) and prim is not p.isnan:
                if wanted is not u1 or prim in _COMPARISONS:
                    self.out.append(op if args is op.args else op.rebuilt(args))
                    return
            types = tuple([a.type for a in op.args])
            outs = (self.rename(out),)
            result = outs[0].type
            args = tuple(
                [self.convert(a, p.operand_type(prim, types, k, result, self.defaults)) for k, a in enumerate(args)]
            )
            self.put(op, args, (), outs)
            return
        if prim is p.cast and type(args[0]) is ir.Lit and isinstance(result, Scalar) and result.bits:
            self.env[out] = self.convert(args[0], result, explicit=True)
            return
        outs = (self.rename(out),)
        dtype = element_type(outs[0].type)
        if prim is p.pack:
            args = tuple([self.convert(a, dtype) for a in args])
        elif prim is p.extract:
            args = (self.strengthen(args[0]), *self.indices(args[1:]))
        elif prim is p.insert:
            args = (self.convert(args[0], dtype), *self.indices(args[1:-1]), self.convert(args[-1], dtype))
        elif prim is p.random_bits:
            args = tuple([self.convert(a, t) for a, t in zip(args, (u64, i64, i32), strict=True)])
        else:
            args = tuple([self.strengthen(a) for a in args])
        self.put(op, args, (), outs)
