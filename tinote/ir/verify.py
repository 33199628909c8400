"""The rules that IR must keep, form by form; a pass is valid in, valid out.

`verify` raises `InvalidIR`, which names the operation, on the first rule that is broken.
"""

from __future__ import annotations

from tinote.ir import nodes as ir
from tinote.ir.buffers import root_of
from tinote.ir.custom_vjp import CustomVJP
from tinote.ir.forms import Form
from tinote.ir.lanes import StoreTile
from tinote.ir.operation_rules import CELLS, OperationRules
from tinote.ir.types import Scalar


def verify(fn: ir.Function, form: Form = Form.FIRST, *, stored: bool = True) -> None:
    """Raise `InvalidIR` unless `fn` is a well-formed function of this form.

    `stored=False` is for differentiated functions whose reverse part still refers to variables of the forward part that
    are out of its scope (until storage saves or recomputes them): any variable that is bound earlier may be used.
    """
    _Verifier(form, stored).function(fn)


class _Verifier:
    """Follows what is bound and in scope through the regions of a function."""

    def __init__(self, form: Form, stored: bool) -> None:
        self.form = form
        self.rules = OperationRules(form)
        self.stored = stored
        self.bound: set[ir.Var] = set()  # ever, for single assignment
        self.scope: set[ir.Var] = set()  # visible here
        self.depth: dict[ir.Var, int] = {}  # how many parallel loops a cell or stack was made in
        self.parallel_depth = 0
        self.parameters: tuple[ir.Var, ...] = ()
        self.in_task = False

    # structure

    def function(self, fn: ir.Function) -> None:
        region = fn.region
        self.parameters = region.params
        for param in region.params:
            self.rules.require(isinstance(param.type, Scalar), "parameter {!r} of a function must be a scalar", param)
        if self.form >= Form.TASKS:
            self.top_level(region)
        self.region(region)
        for y in region.yields:
            self.rules.value(y, "a returned value")

    def top_level(self, region: ir.Region) -> None:
        for op in region.body:
            self.rules.op = op
            if isinstance(op, ir.Load):
                buffer = root_of(op.buffer)
                fine = buffer.kind is ir.BufferKind.TEMPORARY and buffer.rank == 0
                self.rules.require(fine, "between tasks only temporaries of rank 0 are loaded")
                fine = not op.index or all(isinstance(a, ir.Lit) for a in op.index)
                self.rules.require(fine, "the index must be literal")
            else:
                self.rules.require(isinstance(op, ir.Task), "the body of a function must consist of tasks")
        self.rules.op = None

    def region(self, region: ir.Region) -> None:
        """Check what a region binds and does. Its yields are checked for being in scope; their types, by its owner."""
        owner = self.rules.op
        entered: list[ir.Var] = list(region.params)
        for param in region.params:
            self.bind(param)
            self.rules.value(param, "a region's parameter")
        for op in region.body:
            self.rules.op = op
            self.operation(op)
            self.rules.op = op
            for out in op.outs:
                self.bind(out)
            entered += op.outs
        self.rules.op = owner
        for y in region.yields:
            self.operand(y)
            self.rules.value(y, "a yielded value")
        if self.stored:
            self.scope.difference_update(entered)

    def bind(self, var: ir.Var) -> None:
        if var in self.bound:
            raise self.rules.fail(f"{var!r} is bound twice")
        self.rules.type(var.type)
        self.bound.add(var)
        self.scope.add(var)
        self.depth[var] = self.parallel_depth

    def operand(self, atom: ir.Atom) -> None:
        if type(atom) is ir.Lit:
            self.rules.literal(atom)
        elif atom not in self.scope:
            where = "used out of its scope" if atom in self.bound else "used before it is bound"
            raise self.rules.fail(f"{atom!r} is {where}")

    # operations

    def operation(self, op: ir.Op) -> None:
        for a in op.args:
            self.operand(a)
            if type(a) is ir.Var and type(a.type) in CELLS:
                fine = isinstance(op, ir.Get | ir.Set | ir.Push | ir.Pop) and a is op.args[0]
                fine = fine or (isinstance(op, StoreTile) and a is op.value)
                self.rules.require(fine, "a cell or stack cannot be an operand here: {!r}", a)
                inside = isinstance(op, ir.Get) or self.depth[a] == self.parallel_depth
                self.rules.require(inside, "{!r} is made outside of a parallel loop and changed inside", a)
        if not op.regions:
            self.rules.operation(op)
        elif isinstance(op, ir.For):
            self.for_(op)
        elif isinstance(op, ir.While):
            self.while_(op)
        elif isinstance(op, ir.If):
            self.if_(op)
        elif isinstance(op, CustomVJP):
            self.custom_vjp(op)
        elif isinstance(op, ir.Task):
            self.task(op)
        else:
            raise self.rules.fail(f"unknown operation {type(op).__name__}")

    def for_(self, op: ir.For) -> None:
        self.rules.require(len(op.args) >= 2, "a loop needs two bounds")
        self.rules.require(len(op.body.params) >= 1, "a loop needs an index parameter")
        self.rules.bounds(op.lo, op.hi, op.index)
        if op.parallel:
            self.rules.mask(op.body)
        self.rules.matched(op.initial, op.carried, "an initial value")
        self.rules.count(op.outs, len(op.carried), "outs of a loop")
        self.parallel_depth += op.parallel
        self.region(op.body)
        self.parallel_depth -= op.parallel
        self.rules.matched(op.body.yields, op.carried, "a yield")
        self.rules.matched(op.carried, op.outs, "an out")

    def while_(self, op: ir.While) -> None:
        condition, body = op.condition, op.body
        self.rules.matched(op.initial, condition.params, "an initial value")
        self.rules.count(op.outs, len(op.initial), "outs of a loop")
        self.region(condition)
        self.rules.count(condition.yields, 1, "yields of a condition")
        self.rules.truth(condition.yields[0], "a condition")
        self.region(body)
        self.rules.matched(condition.params, body.params, "a parameter")
        self.rules.matched(body.yields, body.params, "a yield")
        self.rules.matched(body.params, op.outs, "an out")

    def if_(self, op: ir.If) -> None:
        self.rules.count(op.args, 1, "conditions")
        self.rules.truth(op.condition, "a condition")
        for region in op.regions:
            self.rules.count(region.params, 0, "parameters of a branch")
            self.region(region)
            self.rules.matched(region.yields, op.outs, "a yield")

    def custom_vjp(self, op: CustomVJP) -> None:
        self.rules.require(self.form < Form.TASKS, "a custom VJP after differentiation")
        self.rules.matched(op.results, op.outs, "an out")
        self.region(op.adjoint)
        self.rules.matched(op.adjoint.params, op.outs, "a parameter")
        self.rules.count(op.adjoint.yields, len(op.inputs), "adjoints")
        for adjoint, given in zip(op.adjoint.yields, op.inputs, strict=True):
            self.rules.same(adjoint, given.type, "an adjoint")

    def task(self, op: ir.Task) -> None:
        self.rules.require(self.form >= Form.TASKS, "a task before offloading")
        self.rules.require(not self.in_task, "a task inside of another")
        self.rules.count(op.outs, 0, "outs of a task")
        if op.parallel:
            self.rules.count(op.args, 2, "bounds of a parallel task")
            self.rules.mask(op.body)
            self.rules.bounds(op.args[0], op.args[1], op.body.params[0])
        else:
            self.rules.count(op.args, 0, "bounds of a serial task")
            self.rules.count(op.body.params, 0, "parameters of a serial task")
        self.rules.count(op.body.yields, 0, "yields of a task")
        for private in op.privates:
            self.rules.private_copy(private)
        # A task sees the function's parameters and what it makes itself.
        outer, self.scope = self.scope, set(self.parameters)
        self.in_task = True
        self.rules.private = {private.copy for private in op.privates}
        self.region(op.body)
        self.rules.private = set()
        self.in_task = False
        self.scope = outer
