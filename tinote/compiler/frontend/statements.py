"""Statements, and the bodies of functions."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from tinote.compiler.frontend import analysis, structs
from tinote.compiler.frontend.arithmetic import AUGMENTED, binary
from tinote.compiler.frontend.bindings import Bindings
from tinote.compiler.frontend.context import Silenced
from tinote.compiler.frontend.descriptions import describe
from tinote.compiler.frontend.scopes import Constant, Frame, Results, Variable, Way
from tinote.compiler.frontend.texts import assertion_text
from tinote.compiler.frontend.values import POISON, CellPlace, Place, StructValue, Text, Value
from tinote.compiler.protocol import buffer_of, is_small_array, struct_of, type_of
from tinote.errors import KernelNameError, KernelSyntaxError, Note, TinoteError
from tinote.ir import primitives as p
from tinote.ir.nodes import Check, FaultKind, Local, Var, true
from tinote.ir.types import Ref, Scalar, promote, shape_of, strengthen, with_element

__all__ = ["Statements"]

_REFUSED: dict[type[ast.stmt], tuple[str, str]] = {
    ast.With: ("`with`", "use it around the call of the kernel"),
    ast.AsyncWith: ("`async with`", ""),
    ast.AsyncFor: ("`async for`", ""),
    ast.Try: ("`try`", "kernels have no exceptions; faults stop the launch and are raised where it was called"),
    ast.Raise: ("`raise`", "`assert condition, message` stops a launch"),
    ast.FunctionDef: ("a function inside a kernel", "define it outside with `@ti.func`"),
    ast.AsyncFunctionDef: ("an async function", ""),
    ast.ClassDef: ("a class inside a kernel", "define it outside"),
    ast.Import: ("`import`", "import outside of the kernel"),
    ast.ImportFrom: ("`import`", "import outside of the kernel"),
    ast.Global: ("`global`", "what a kernel changes lives in fields"),
    ast.Nonlocal: ("`nonlocal`", "what a kernel changes lives in fields"),
    ast.Delete: ("`del`", "variables end with their block"),
    ast.Match: ("`match`", "use `if` and `elif`"),
}


class Statements(Bindings):
    """The emitter that knows everything."""

    def statements(self, body: list[ast.stmt], tail: bool) -> Way:
        for position, statement in enumerate(body):
            rest = body[position + 1 :]
            if isinstance(statement, ast.If):
                found = self._guarded(statement, lambda s=statement, r=rest: self._if(s, r, tail))
                if found is not None:
                    return found
            else:
                way = self._guarded(statement, lambda s=statement, r=rest: self._statement(s, tail and not r))
                if way:
                    return way
            if rest:
                flags = self.flags_after(analysis.Jumps([statement]))
                if flags:
                    self.unless(flags, lambda r=rest: self.statements(r, tail))
                    return Way.FALLS
        return Way.FALLS

    def _guarded(self, statement: ast.stmt, action: Callable[[], Any]) -> Any:
        """Do something with a statement; an error is kept, and the names that the statement should have assigned say
        nothing more.
        """
        saved, self.b.loc = self.b.loc, self.span(statement)
        outer, self.statement = self.statement, (self.here(), self.depth)
        try:
            return action()
        except TinoteError as error:
            self.report(self.placed_here(error))
        except Silenced:
            pass
        finally:
            self.b.loc, self.statement = saved, outer
        for name in analysis.assigned_names([statement], lambda call: ()):
            if self.scope.find(name) is None:
                self.bind(name, POISON)
        return Way.FALLS if not isinstance(statement, ast.If) else None

    def _statement(self, node: ast.stmt, tail: bool) -> Way:
        match node:
            case ast.Assign():
                self._assign(node)
            case ast.AugAssign():
                self._augmented(node)
            case ast.AnnAssign():
                self._annotated(node)
            case ast.Expr():
                self._expression(node.value)
            case ast.For():
                self.for_(node)
            case ast.While():
                self.while_(node)
            case ast.Return():
                self._return(node, tail)
                return Way.LEAVES
            case ast.Break():
                self._break(node)
                return Way.LEAVES
            case ast.Continue():
                self._continue(node, tail)
                return Way.SKIPS
            case ast.Assert():
                self._assert(node)
            case ast.Pass():
                pass
            case _:
                what, hint = _REFUSED.get(type(node), (f"this statement ({type(node).__name__})", ""))
                self.unsupported(what, hint)
        return Way.FALLS

    def _expression(self, node: ast.expr) -> None:
        if isinstance(node, ast.Constant):
            return  # a docstring or an ellipsis
        self.wanted = not isinstance(node, ast.Call)
        try:
            self.reference(node) if isinstance(node, ast.Call) else self.evaluate(node)
        finally:
            self.wanted = True

    # if

    def _if(self, node: ast.If, rest: list[ast.stmt], tail: bool) -> Way | None:
        """Lower an `if` and, where a branch ends in a jump, what follows in the other branch. `None`: the caller goes
        on with `rest`.
        """
        with self.at(node.test):
            condition = self.decision(node.test)
        if isinstance(condition, bool):
            chosen = node.body if condition else node.orelse
            if self.is_static_call(node.test):
                return self.statements([*chosen, *rest], tail)
            with self.block("`if`", node):
                way = self.statements(chosen, tail and not rest)
            return way or None
        then_ends, else_ends = analysis.ends_in_jump(node.body), analysis.ends_in_jump(node.orelse)
        into_else = bool(rest) and then_ends and not analysis.Jumps(node.orelse)
        into_then = bool(rest) and else_ends and not then_ends and not analysis.Jumps(node.body)
        inner_tail = tail and (not rest or into_else or into_then or (then_ends and else_ends))

        def branch(body: list[ast.stmt], continues: bool, what: str) -> tuple[Any, Way]:
            with self.region() as opened:
                with self.block(what, node):
                    way = self.statements(body, inner_tail and not continues)
                if continues:
                    way = self.statements(rest, tail)
            return opened.close(), way

        then, first = branch(node.body, into_then, "`if`")
        orelse, second = branch(node.orelse, into_else, "`else`")
        self.b.if_(condition.atom, then, orelse)
        if then_ends and else_ends:
            return max(min(first, second), Way.SKIPS)  # what follows is never reached, and the branches relied on that
        if into_then or into_else:
            return min(first, second)
        return min(first, second) or None

    # assignment

    def _assign(self, node: ast.Assign) -> None:
        static = self.is_static_call(node.value)
        front = self.evaluate(node.value)
        for target in node.targets:
            self.assign(target, front, static, node.value)

    def assign(self, target: ast.expr, front: Any, static: bool = False, value: ast.expr | None = None) -> None:
        """Bind or store what the right side of an assignment, `value`, evaluated to. `static`: a name stands for the
        compile-time value itself.
        """
        with self.at(target):
            if isinstance(target, ast.Name):
                self._assign_name(target.id, front, static, value)
            elif isinstance(target, ast.Tuple | ast.List):
                self._unpack(target, front, static, value)
            else:
                self._assign_place(target, front, value)

    def _assign_place(self, target: ast.expr, front: Any, value: ast.expr | None) -> None:
        found = self.reference(target)
        if isinstance(found, StructValue) and found.is_place():
            self.store_all(found, front, f"`{ast.unparse(target)}`")
        else:
            self.store(self._place(target, found), front, f"`{ast.unparse(target)}`", value)

    def _unpack(self, target: ast.Tuple | ast.List, front: Any, static: bool, value: ast.expr | None) -> None:
        """Assign the parts of `front` to several targets; a starred one takes what the others leave, as a list."""
        targets = target.elts
        starred = next((k for k, t in enumerate(targets) if isinstance(t, ast.Starred)), None)
        if starred is None:
            parts = self.unpacked(front, len(targets))
        else:
            given = self.components(front)
            rest = len(given) - len(targets) + 1
            if rest < 0:
                self.error(f"{len(given)} values cannot be unpacked into {len(targets) - 1} names and more")
            parts = [*given[:starred], list(given[starred : starred + rest]), *given[starred + rest :]]
        nodes: list[ast.expr | None] = [value] * len(targets)
        if starred is None and isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(targets):
            nodes = list(value.elts)
        for inner, part, node in zip(targets, parts, nodes, strict=True):
            self.assign(inner.value if isinstance(inner, ast.Starred) else inner, part, static, node)

    def _place(self, target: ast.expr, found: Any = None) -> Place:
        """The place that an assignment's left side denotes; `found`: what it refers to, if that is known."""
        found = self.reference(target) if found is None else found
        if isinstance(found, Place):
            return found
        if isinstance(found, StructValue):
            self.error(f"{describe(found)} is assigned or combined as a whole", "name one of its members")
        if isinstance(target, ast.Subscript) and is_small_array(self.reference(target.value)):
            self.error(
                f"`{ast.unparse(target.value)}` is a NumPy array that the kernel reads as a constant",
                "pass it to a parameter with the annotation `ti.types.ndarray()`",
            )
        name = analysis.base_name(target)
        binding = self.scope.find(name) if name else None
        if isinstance(binding, Constant) and binding.what:
            self._refuse(binding)
        if isinstance(target, ast.Attribute):
            self.error(
                f"`{ast.unparse(target)}` cannot be assigned in a kernel",
                "what a kernel changes lives in fields and local variables",
            )
        self.error(
            f"`{ast.unparse(target)}` cannot be assigned: it is part of a constant",
            "copy the whole to a variable, or use a field",
        )

    def _refuse(self, binding: Constant) -> None:
        hint = f"assign a copy: `value = {binding.name}`"
        article = "an" if binding.what[0] in "aeiou" else "a" if not binding.what.startswith("variable of") else "the"
        self.error(
            f"`{binding.name}` is {article} {binding.what} and cannot be assigned",
            hint,
            kind=KernelSyntaxError,
            notes=[Note(f"`{binding.name}` comes from here", binding.span)],
        )

    def _assign_name(self, name: str, front: Any, static: bool, value: ast.expr | None) -> None:
        binding = self.scope.find(name)
        if isinstance(binding, Variable):
            assert binding.place is not None
            if isinstance(front, Text | str) or not self.is_value(front):
                self.error(f"`{name}` is {describe(binding.place)}, to which {describe(front)} cannot be assigned")
            self.store(binding.place, front, f"`{name}`", value)
            return
        if isinstance(binding, Constant) and binding.value is not POISON:
            if binding.what:
                self._refuse(binding)
            if self.rebind(binding, front):
                return
        if static:
            self.bind(name, front)
        else:
            if value is not None and not isinstance(front, tuple | list) and self.is_value(front):
                with self.at(value):
                    front = self.strong(front)
            self.declare(name, front)

    def _annotated(self, node: ast.AnnAssign) -> None:
        if node.value is None:
            self.unsupported("a declaration without a value", "assign the variable", node)
        front = self.evaluate(node.value)
        annotation = self.annotation(self.frame.source, node.annotation)
        info = struct_of(annotation)
        if info is not None:
            self.assign(node.target, structs.fitted(self, front, info))
            return
        t = type_of(annotation, self.fp, self.ip)
        if t is None:
            self.error(
                f"{describe(annotation)} is not a type of the kernel language",
                "for example `ti.f32` or `ti.types.vector(3, ti.f32)`",
                node.annotation,
            )
        with self.at(node.value):
            if isinstance(t, Scalar):
                if self.shape(front):
                    self.error(f"{describe(front)} does not fit {t}")
                value = self.cast(front, t)
            else:
                value = self.cast(Value(self.converted(front, t, "the variable")), t.dtype)
        self.assign(node.target, value)

    def _augmented(self, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, ast.Name):
            place = self._augmented_name(target)
        else:
            with self.at(target):
                place = self._place(target)
        if place is None:
            return self.assign(target, binary(self, node.op, self.evaluate(target), self.evaluate(node.value)))
        front = self.evaluate(node.value)
        what = f"`{ast.unparse(target)}`"
        prim = p.add if isinstance(node.op, ast.Sub) else AUGMENTED.get(type(node.op))
        if place.shared and prim is not None:
            operand = self.converted(front, place.type, what)
            if isinstance(node.op, ast.Sub):
                operand = self.negative(operand, place.type)
            self.combine(place, prim, Value(operand), old=False)
            return None
        self.store(place, binary(self, node.op, place.load(self.b), front), what)
        return None

    def _augmented_name(self, target: ast.Name) -> Place | None:
        """The place of a variable; `None` for a name that is bound again instead."""
        binding = self.scope.find(target.id)
        with self.at(target):
            if isinstance(binding, Variable):
                if isinstance(binding.place, Place):
                    return binding.place
                raise Silenced
            if binding is None:
                outside = self.lookup(target.id)
                if buffer_of(outside) is not None:
                    self.as_value(outside)
                self.error(
                    f"`{target.id}` is defined outside of the kernel and cannot be assigned in it",
                    "what a kernel changes lives in fields",
                    kind=KernelNameError,
                )
            if binding.value is POISON:
                raise Silenced
            if binding.what:
                self._refuse(binding)
            if binding.depth != self.depth:
                self.rebind(binding, object())
            return None

    # leaving

    def _break(self, node: ast.stmt) -> None:
        loop = self.frame.loops[-1] if self.frame.loops else None
        if loop is None:
            self.unsupported("`break` outside of a loop")
        assert loop.broken is not None
        loop.breaks += 1
        self.b.set(loop.broken, true)

    def _continue(self, node: ast.stmt, tail: bool) -> None:
        loop = self.frame.loops[-1] if self.frame.loops else None
        if loop is None:
            self.unsupported("`continue` outside of a loop")
        if tail:
            return
        if loop.continued is None:
            assert loop.start is not None
            loop.continued = self.flag(loop.start, "continued")
        self.b.set(loop.continued, true)

    def _return(self, node: ast.Return, tail: bool) -> None:
        results = self.frame.results
        front = None if node.value is None else self.evaluate(node.value)
        if isinstance(front, Text):
            self.error("text cannot be returned")
        self.show("result", front)
        if results.seen and (front is None) != (results.cells is None and results.direct is None):
            self.error(
                "some `return`s of this function give a value and others do not",
                notes=[Note("another one is here", results.span or self.b.loc)],
            )
        first, results.seen, results.span = not results.seen, True, self.b.loc
        if first and tail and not self.frame.loops and self.depth == self.frame.depth:
            results.direct = front  # the only `return` that is reached, and nothing follows it
            return
        if front is not None:
            if first:
                results.cells = self._result_cells(results, front)
            self._give(results, results.cells, front)
        if not tail or self.frame.loops:
            self.b.set(self.returned(), true)
            results.sets += 1

    def _result_cells(self, results: Results, front: Any) -> Any:
        """Cells for what an early `return` gives back, declared at the top of the function."""
        if isinstance(front, tuple | list):
            return type(front)(self._result_cells(results, part) for part in front)
        struct = structs.as_struct(self, front)
        if struct is not None:
            return struct.map(lambda part: self._result_cells(results, part))
        if not self.is_value(front):
            self.error(
                f"{describe(front)} cannot be returned from one of several `return`s",
                "only numbers, vectors and matrices are known at run time",
            )
        t = self.strong(front).type
        cell = Var(Ref(t), "result")
        results.anchor.insert(Local((), (cell,), (), self.b.loc))
        return CellPlace(cell)

    def _give(self, results: Results, cells: Any, front: Any) -> None:
        if isinstance(cells, tuple | list):
            if not isinstance(front, tuple | list) or len(front) != len(cells):
                self.error("the `return`s of this function give different numbers of values")
            for cell, part in zip(cells, front, strict=True):
                self._give(results, cell, part)
            return
        if isinstance(cells, StructValue):
            for cell, part, _ in structs.paired(self, cells, front, "the result"):
                self._give(results, cell, part)
            return
        assert isinstance(cells, CellPlace) and isinstance(cells.ref.type, Ref)
        held = cells.type
        value = self.strong(front)
        if value.shape != shape_of(held):
            self.error(f"the `return`s of this function give {describe(cells)} and {describe(value)}")
        # A cell holds what all returned values promote to, so that no `return` rounds another one's value.
        dtype = strengthen(
            promote(value.dtype, held if isinstance(held, Scalar) else held.dtype, self.fp, self.ip), self.fp, self.ip
        )
        cells.ref.type = Ref(with_element(held, dtype))
        cells.store(self.b, value.atom)

    def _assert(self, node: ast.Assert) -> None:
        with self.at(node.test):
            condition = self.as_value(self.decision(node.test))
        if condition.atom == true:
            return
        message = f"assertion failed: {ast.unparse(node.test)}" if node.msg is None else self.evaluate(node.msg)
        text, shown = assertion_text(self, message)
        self.b.emit(Check(FaultKind.ASSERT, (condition.atom, *shown), text, 0, self.span(node.test)))

    # functions

    def body(self, frame: Frame) -> Any:
        results = frame.results
        before = self.failures
        way = self.statements(frame.source.tree.body, True)
        if self.failures > before and frame.parent is not None:
            return POISON
        if results.cells is None:
            return results.direct
        if way is Way.FALLS and not self._returns_everywhere(frame.source.tree.body):
            self.error(
                f"`{frame.source.name}` does not return a value on every path",
                "add a `return` at its end",
                frame.source.tree if frame.parent is None else None,
                notes=[Note("it returns a value here", results.span or self.b.loc)],
            )
        return self.force(results.cells)

    @staticmethod
    def _returns_everywhere(body: list[ast.stmt]) -> bool:
        return analysis.ends_in_jump(body)
