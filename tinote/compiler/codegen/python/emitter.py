"""A Python function under construction: the walk over its operations, and facts about them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from tinote.compiler.codegen.python.names import identifier
from tinote.compiler.codegen.python.order import Order
from tinote.compiler.codegen.python.primitives import attribute, read
from tinote.compiler.codegen.python.support import NUMBERS, PythonLaunch
from tinote.compiler.codegen.sites import fault_site
from tinote.errors import CompilerBug
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.access import accesses_of
from tinote.ir.affine import constant as always
from tinote.ir.overflow import may_overflow, overflow_text
from tinote.ir.query import buffers_of
from tinote.ir.types import Ref, Tensor, element_type, is_integer, shape_of
from tinote.runtime.sites import Site


class PythonEmitter(Order):
    """Writes one function, operation by operation."""

    def __init__(
        self,
        fn: ir.Function,
        handlers: Mapping[type[ir.Op], Callable[..., None]],
        reports_overflow: bool,
        checks_division: bool,
    ) -> None:
        self.handlers = handlers
        self.reports_overflow = reports_overflow
        self.checks_division = checks_division
        self.accesses = accesses_of(fn)
        super().__init__(fn, self.may_fail)
        self.buffers = buffers_of(fn)
        self.sites: list[Site] = []
        self.references: dict[ir.Buffer, ast.expr] = {}
        self.arrays: dict[str, ir.Buffer] = {}
        self.memories: dict[str, ir.Buffer] = {}
        self.temporaries: dict[str, ir.Buffer] = {}

    def memory(self, buffer: ir.Buffer) -> None:
        """Decide how a buffer is accessed: fields through the launch, arrays and temporaries as variables."""
        if buffer.kind is ir.BufferKind.PRIVATE or buffer.flat is not None:
            raise CompilerBug("Python code", f"{buffer!r} belongs to a later form")
        if buffer.kind in (ir.BufferKind.ARRAY, ir.BufferKind.TEMPORARY):
            name = self.names.whole(buffer.name or "shared")
            known = self.arrays if buffer.kind is ir.BufferKind.ARRAY else self.temporaries
            self.references[buffer] = read(name)
        else:
            base = name = identifier(buffer.name) or "field"
            known = self.memories
            number = 0
            while name in known or name in NUMBERS or hasattr(PythonLaunch, name) or name in ("nan", "inf", "stopped"):
                number += 1
                name = f"{base}_{number}"
            self.references[buffer] = attribute(name)
        known[name] = buffer

    def site(self, site: Site) -> int:
        """The number of a site."""
        self.sites.append(site)
        return len(self.sites) - 1

    # operations

    def ops(self, region: ir.Region) -> None:
        for op in region.body:
            if op in self.uses.dropped:
                continue
            if op.loc.line > 0:
                self.loc = op.loc
            handler = self.handlers.get(type(op))
            if handler is None:
                raise CompilerBug("Python code", f"{op!r} belongs to a later form")
            handler(self, op)

    def may_fail(self, op: ir.Op) -> bool:
        """Whether an operation may stop the launch."""
        if isinstance(op, ir.Load):
            return not self.accesses.surely_in_range(self.accesses.of(op))
        if isinstance(op, ir.Get):
            return not self.within(op, op.args[0], op.args[1:])
        if not isinstance(op, ir.Prim):
            return False
        if op.prim is p.extract or op.prim is p.insert:
            return not self.within(op, op.args[0], op.args[1:] if op.prim is p.extract else op.args[1:-1])
        if op.prim in p.DIVISIONS and is_integer(op.out.type) and not self.surely_divides(op):
            return True
        return self.may_overflow(op)

    def may_overflow(self, op: ir.Prim | ir.Atomic) -> bool:
        """Whether overflow of this operation is reported."""
        return self.reports_overflow and may_overflow(op) and not all(isinstance(a, ir.Lit) for a in op.args)

    def overflow(self, op: ir.Prim | ir.Atomic) -> int:
        t = op.buffer.dtype if isinstance(op, ir.Atomic) else element_type(op.out.type)
        shown = tuple([ir.Var(t) for _ in range(op.prim.arity or 0)])
        text = overflow_text(op.prim, t)
        return self.site(fault_site(ir.Check(ir.FaultKind.OVERFLOW, (ir.false, *shown), text, 0, op.loc)))

    def surely_divides(self, op: ir.Prim) -> bool:
        """Whether the divisor is certainly not zero, or is not checked."""
        divisor = op.args[1]
        if not self.checks_division:
            return True
        if isinstance(divisor, ir.Lit):
            return divisor.value != 0
        if isinstance(divisor.type, Tensor):
            return False
        return self.accesses.surely_not_zero(divisor, self.accesses.known_before(op))

    # indices

    def within(self, op: ir.Op, tensor: ir.Atom, index: Sequence[ir.Atom]) -> bool:
        """Whether the indices of a component are certainly in range."""
        shape = shape_of(tensor.type.content if isinstance(tensor.type, Ref) else tensor.type)
        return all(self.sides(op, atom, n) == (True, True) for atom, n in zip(index, shape, strict=False))

    def sides(self, op: ir.Op, index: ir.Atom, extent: int) -> tuple[bool, bool]:
        """Whether an index is certainly not negative, and certainly below the extent."""
        if isinstance(index, ir.Lit) and 0 <= index.value < extent:
            return True, True
        return self.accesses.between(self.accesses.affine(index), always(extent), self.accesses.known_before(op))
