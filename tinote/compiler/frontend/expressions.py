"""Expressions: every node of Python's syntax that has a value."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from tinote.compiler.frontend.arithmetic import COMPARISONS, UNARY, apply, binary
from tinote.compiler.frontend.descriptions import describe
from tinote.compiler.frontend.domains import check_unrolled, static_items
from tinote.compiler.frontend.scopes import Constant, Variable
from tinote.compiler.frontend.structs import as_struct, leaves_of, matched, rebuilt
from tinote.compiler.frontend.subscripts import Subscripts
from tinote.compiler.frontend.texts import formatted
from tinote.compiler.frontend.values import (
    POISON,
    CellPlace,
    StaticTensor,
    StructValue,
    Text,
    Value,
    is_number,
)
from tinote.errors import KernelSyntaxError, TinoteError
from tinote.ir import primitives as p
from tinote.ir.build import OpenRegion
from tinote.ir.nodes import Atom, If, Lit, Local, Var, false, true
from tinote.ir.types import Ref, u1, with_element

__all__ = ["Expressions"]

_REFUSED: dict[type[ast.expr], tuple[str, str]] = {
    ast.Lambda: ("a lambda", "define a function with `@ti.func`"),
    ast.Await: ("`await`", ""),
    ast.Yield: ("`yield`", "kernels return values with `return`"),
    ast.YieldFrom: ("`yield from`", "kernels return values with `return`"),
}


class Expressions(Subscripts):
    """The emitter that knows expressions. Calls are left to the next layer."""

    def call(self, node: ast.Call) -> Any:
        """The value of a call."""
        raise NotImplementedError

    def evaluate(self, node: ast.expr) -> Any:
        saved, self.b.loc = self.b.loc, self.span(node)
        try:
            return self.force(self._visit(node))
        except TinoteError as error:
            raise self.placed_here(error) from None
        finally:
            self.b.loc = saved

    def reference(self, node: ast.expr) -> Any:
        saved, self.b.loc = self.b.loc, self.span(node)
        try:
            found = self._visit(node)
            return self.force(found) if found is POISON else found
        except TinoteError as error:
            raise self.placed_here(error) from None
        finally:
            self.b.loc = saved

    def _visit(self, node: ast.expr) -> Any:
        match node:
            case ast.Name():
                return self._name(node)
            case ast.Constant():
                return self._constant(node)
            case ast.BinOp():
                left = self.evaluate(node.left)
                return binary(self, node.op, left, self.evaluate(node.right))
            case ast.Subscript():
                return self.subscript(node)
            case ast.Attribute():
                return self.attribute(node)
            case ast.Call():
                return self.call(node)
            case ast.UnaryOp():
                return self._unary(node)
            case ast.Compare():
                return self._compare(self.evaluate(node.left), node, 0)
            case ast.BoolOp():
                return self._bool(node)
            case ast.IfExp():
                return self._conditional(node)
            case ast.Tuple():
                return tuple(self.items(node.elts))
            case ast.List():
                return self.items(node.elts)
            case ast.JoinedStr():
                return self._joined(node)
            case ast.ListComp() | ast.GeneratorExp():
                return self._comprehension(node, lambda: self.evaluate(node.elt))
            case ast.SetComp():
                return set(self._comprehension(node, lambda: self._key(node.elt)))
            case ast.DictComp():
                return dict(self._comprehension(node, lambda: (self._key(node.key), self.evaluate(node.value))))
            case ast.NamedExpr():
                return self._named(node)
            case ast.Dict():
                return self._dictionary(node)
            case ast.Set():
                return {self._key(item) for item in node.elts}
            case ast.Starred():
                self.unsupported("a starred expression here", "stars stand in calls and lists")
            case ast.Slice():
                self.unsupported("a slice here")
        what, hint = _REFUSED.get(type(node), (f"this expression ({type(node).__name__})", ""))
        self.unsupported(what, hint)

    def bind_target(self, target: ast.expr, front: Any, what: str) -> None:
        """Let the names of a loop's target stand for an item and its parts."""
        with self.at(target):
            if isinstance(target, ast.Name):
                self.bind(target.id, front, what)
            elif isinstance(target, ast.Tuple | ast.List):
                parts = self.unpacked(front, len(target.elts))
                for inner, part in zip(target.elts, parts, strict=True):
                    self.bind_target(inner, part, what)
            else:
                self.unsupported("a loop target other than names", "loop over a name and assign inside")

    def unpacked(self, front: Any, count: int) -> list[Any]:
        """The parts of something that is assigned to `count` targets."""
        if not isinstance(front, tuple | list | StaticTensor) and not (self.is_value(front) and self.shape(front)):
            self.error(f"{describe(front)} cannot be unpacked into {count}")
        parts = self.components(front)
        if len(parts) != count:
            self.error(f"{len(parts)} values cannot be unpacked into {count} names")
        return parts

    def items(self, nodes: list[ast.expr]) -> list[Any]:
        """The values of several expressions; starred ones are spread out."""
        found: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                with self.at(node):
                    found += static_items(self, self.evaluate(node.value))
            else:
                found.append(self.evaluate(node))
        return found

    def _name(self, node: ast.Name) -> Any:
        binding = self.scope.find(node.id)
        if isinstance(binding, Variable):
            return POISON if binding.place is None else binding.place
        return binding.value if isinstance(binding, Constant) else self.lookup(node.id)

    def _constant(self, node: ast.Constant) -> Any:
        value = node.value
        if isinstance(value, complex):
            self.unsupported("a complex number", "use vectors of two")
        if isinstance(value, bytes):
            self.unsupported("a byte string")
        return value

    def _unary(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            truth = self.decision(node.operand)
            return not truth if isinstance(truth, bool) else self.prim(p.logical_not, truth)
        operand = self.evaluate(node.operand)
        if isinstance(node.op, ast.UAdd):
            return operand if is_number(operand) else self.as_value(operand)
        prim = UNARY[type(node.op)]
        if prim is p.invert and isinstance(operand, bool):
            return not operand
        return apply(self, prim, operand)

    # decisions

    def _under(self, node: ast.expr, value: Callable[[], Any]) -> tuple[OpenRegion, Any]:
        """Evaluate something in a region of its own."""
        with self.region() as opened:
            found = value()
        return opened, found

    def decision(self, node: ast.expr) -> bool | Value:
        """Whether an expression counts as true; of the operands of its `and` and `or` that is all that is asked."""
        if not isinstance(node, ast.BoolOp):
            return self.truth(self.evaluate(node))
        conjunction = isinstance(node.op, ast.And)
        with self.at(node):
            found = self.decision(node.values[0])
            for operand in node.values[1:]:
                if isinstance(found, Value):
                    found = self._short_circuit(found, lambda o=operand: self.decision(o), conjunction)
                elif found is conjunction:
                    found = self.decision(operand)
            return found

    def _short_circuit(self, left: Value, right: Callable[[], bool | Value], conjunction: bool) -> Value:
        """`left and right` or `left or right` as truth values, where `right` is only evaluated when it decides."""
        with self.region() as opened:
            decided = self.as_value(right())
        return self._joined_truths(left, opened, decided, conjunction)

    def _joined_truths(self, left: Value, opened: OpenRegion, right: Value, conjunction: bool) -> Value:
        if self.harmless(opened.body):
            self.splice(opened)
            return self.prim(p.and_ if conjunction else p.or_, left, right)
        region = opened.close(right.atom)
        settled = OpenRegion(()).close(false if conjunction else true)
        then, orelse = (region, settled) if conjunction else (settled, region)
        (out,) = self.b.if_(left.atom, then, orelse)
        return Value(out)

    def _bool(self, node: ast.BoolOp) -> Any:
        """`and` and `or` as in Python: the operand that decides. Later ones are not evaluated."""
        conjunction = isinstance(node.op, ast.And)
        left = self.evaluate(node.values[0])
        for operand in node.values[1:]:
            truth = self.truth(left)
            if isinstance(truth, bool):
                left = self.evaluate(operand) if truth is conjunction else left
                continue
            with self.region() as opened:
                right = self.as_value(self.evaluate(operand))
                if right.shape:
                    self.truth(right)  # has none
            left = self.as_value(left)
            if left.dtype is u1 and right.dtype is u1:
                left = self._joined_truths(left, opened, right, conjunction)
            elif conjunction:
                left = self._chosen(truth, opened, OpenRegion(()), [(right, left)])[0]
            else:
                left = self._chosen(truth, OpenRegion(()), opened, [(left, right)])[0]
        return left

    def _compare(self, left: Any, node: ast.Compare, position: int) -> Any:
        right = self.evaluate(node.comparators[position])
        found = self._compared(left, node.ops[position], right)
        if position + 1 == len(node.ops):
            return found
        if self.shape(found) if self.is_value(found) else ():
            self.error("a chain of comparisons needs numbers", "compare the vectors one pair at a time")
        truth = self.truth(found)
        if isinstance(truth, bool):
            return self._compare(right, node, position + 1) if truth else False
        return self._short_circuit(truth, lambda: self.truth(self._compare(right, node, position + 1)), True)

    def _compared(self, left: Any, op: ast.cmpop, right: Any) -> Any:
        if isinstance(op, ast.Is | ast.IsNot):
            # What exists at run time is not `None`.
            if left is not None and right is not None and not (self.is_static(left) and self.is_static(right)):
                self.unsupported("`is` between values that exist at run time", "compare with `==`")
            return (left is right) if isinstance(op, ast.Is) else (left is not right)
        if isinstance(op, ast.In | ast.NotIn):
            return self._member(left, op, right)
        prim = COMPARISONS[type(op)]
        sequences = isinstance(left, tuple | list) and isinstance(right, tuple | list)
        if self.is_value(left) and self.is_value(right) and not sequences:
            return apply(self, prim, left, right)
        if self.is_static(left) and self.is_static(right):
            if prim is p.eq or prim is p.ne:
                return (left == right) is (prim is p.eq)
            try:
                return _ORDER[prim](left, right)
            except TypeError:
                self.error(f"{describe(left)} and {describe(right)} cannot be compared")
        for side in (left, right):
            self.as_value(side)
        self.error(
            f"{describe(left)} and {describe(right)} cannot be compared", "make vectors of them with `ti.Vector([…])`"
        )

    def _member(self, left: Any, op: ast.cmpop, right: Any) -> Any:
        negated = isinstance(op, ast.NotIn)
        if self.is_static(left) and self.is_static(right):
            try:
                return (left in right) is not negated
            except TypeError:
                self.error(f"`in` has no meaning with {describe(right)}")
        found: Any = False
        for item in static_items(self, right):
            same = apply(self, p.eq, left, item)
            found = same if found is False else apply(self, p.or_, found, same)
        return apply(self, p.logical_not, found) if negated else found

    def _conditional(self, node: ast.IfExp) -> Any:
        with self.at(node.test):
            condition = self.decision(node.test)
        if isinstance(condition, bool):
            return self.evaluate(node.body if condition else node.orelse)
        with self.region() as then:
            yes = self._side(node.body)
        with self.region() as orelse:
            no = self._side(node.orelse)
        if isinstance(yes, StructValue) or isinstance(no, StructValue):
            if not (isinstance(yes, StructValue) and isinstance(no, StructValue)):
                self.error(f"the two sides of this conditional differ: {describe(yes)} and {describe(no)}")
            return rebuilt(yes, iter(self._chosen(condition, then, orelse, matched(self, yes, no))))
        return self._chosen(condition, then, orelse, [(yes, no)])[0]

    def _side(self, node: ast.expr) -> Value | StructValue:
        """One side of a conditional, with whatever it has to read."""
        front = self.evaluate(node)
        struct = as_struct(self, front)
        return self.as_value(front) if struct is None else rebuilt(struct, map(self.as_value, leaves_of(struct)))

    def _chosen(
        self, condition: Value, then: OpenRegion, orelse: OpenRegion, pairs: list[tuple[Value, Value]]
    ) -> list[Value]:
        """The first or second of each pair, which the two regions compute."""
        both_run = self.harmless(then.body) and self.harmless(orelse.body)
        for yes, no in pairs:
            if yes.shape != no.shape and (not both_run or (yes.shape and no.shape)):
                self.error(
                    f"the two sides of this conditional differ: {describe(yes)} and {describe(no)}",
                    "make both of the same shape",
                )
        if both_run:
            self.splice(then)
            self.splice(orelse)
            return [self.prim(p.select, condition, yes, no) for yes, no in pairs]
        outs: list[Var] = []
        yields: tuple[list[Atom], list[Atom]] = ([], [])
        for pair in pairs:
            dtype = self.promoted([value.dtype for value in pair])
            outs.append(Var(with_element(pair[0].type, dtype)))
            for side, value in zip(yields, pair, strict=True):
                side.append(self.fitting(value.atom, dtype) if isinstance(value.atom, Lit) else value.atom)
        self.b.emit(If(condition.atom, then.close(*yields[0]), orelse.close(*yields[1]), tuple(outs), self.b.loc))
        return [Value(out) for out in outs]

    # assignments inside expressions

    def assign(self, target: ast.expr, front: Any, static: bool = False, value: ast.expr | None = None) -> None:
        """Bind or store what the right side of an assignment evaluated to."""
        raise NotImplementedError

    def _named(self, node: ast.NamedExpr) -> Any:
        """`(name := value)`. Where a condition decides whether it is evaluated, a new name gets its cell in front of
        the statement.
        """
        front = self.evaluate(node.value)
        anchor, depth = self.statement
        if self.depth > depth and self.scope.find(node.target.id) is None:
            value = self.strong(front)
            cell = Var(Ref(value.type), node.target.id)
            anchor.insert(Local((), (cell,), (), self.b.loc))
            variable = Variable(node.target.id, None, self.b.loc, self.nest)
            variable.place = CellPlace(cell, owner=variable)
            self.scope.names[node.target.id] = variable
        self.assign(node.target, front, value=node.value)
        return self.force(self._name(node.target))

    # text, dictionaries and comprehensions

    def _key(self, node: ast.expr) -> Any:
        key = self.evaluate(node)
        if not self.is_static(key):
            self.error("a key must be known at compile time", node=node)
        try:
            hash(key)
        except TypeError:
            self.error(f"{describe(key)} cannot be a key", node=node)
        return key

    def _dictionary(self, node: ast.Dict) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            front = self.evaluate(value)
            if key is not None:
                found[self._key(key)] = front
            elif isinstance(front, dict):
                found |= front
            else:
                self.error(f"{describe(front)} after `**` is no dictionary", node=value)
        return found

    def _joined(self, node: ast.JoinedStr) -> Any:
        parts: list[Any] = []
        for item in node.values:
            if isinstance(item, ast.Constant):
                parts.append(item.value)
                continue
            assert isinstance(item, ast.FormattedValue)
            front = self.evaluate(item.value)
            spec = self._joined(item.format_spec) if isinstance(item.format_spec, ast.JoinedStr) else ""
            if self.is_static(front) and isinstance(spec, str):
                shown = {ord("r"): repr, ord("s"): str, ord("a"): ascii}.get(item.conversion, lambda v: v)(front)
                try:
                    parts.append(format(shown, spec))
                except (TypeError, ValueError) as error:
                    self.error(str(error), node=item.value)
            elif not isinstance(spec, str):
                self.error("a format must be known at compile time", node=item.format_spec)
            else:
                if spec and item.conversion != -1:
                    self.error(
                        "a conversion such as `!r` and a format together need a value known at compile time",
                        "leave out the conversion",
                        item.value,
                        KernelSyntaxError,
                    )
                with self.at(item.value):
                    parts.append(formatted(self, front, spec))
        if all(isinstance(part, str) for part in parts):
            return "".join(parts)
        return Text(tuple(parts))

    def _comprehension(
        self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp, item: Callable[[], Any]
    ) -> list[Any]:
        """What `item` gives in each turn."""
        found: list[Any] = []

        def walk(depth: int) -> None:
            if depth == len(node.generators):
                found.append(item())
                return
            generator = node.generators[depth]
            with self.at(generator.iter):
                items = static_items(self, self.evaluate(generator.iter))
                self.turns += len(items)
                check_unrolled(self, self.turns)
            for turn in items:
                with self.block("comprehension", node):
                    self.bind_target(generator.target, turn, "loop variable")
                    conditions = [self.decision(test) for test in generator.ifs]
                    if any(isinstance(c, Value) for c in conditions):
                        self.error(
                            "the condition of a comprehension must be known at compile time", node=generator.ifs[0]
                        )
                    if all(conditions):
                        walk(depth + 1)

        walk(0)
        return found


_ORDER: dict[Any, Callable[[Any, Any], Any]] = {
    p.lt: lambda a, b: a < b,
    p.le: lambda a, b: a <= b,
    p.gt: lambda a, b: a > b,
    p.ge: lambda a, b: a >= b,
}
