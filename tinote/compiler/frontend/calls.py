"""Calls: built-ins, device functions (inlined), conversions by a type's name, and Python's own functions at compile
time.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import types
from functools import cached_property
from typing import Any

from tinote.compiler.frontend import analysis, structs, tensors
from tinote.compiler.frontend.builtins import BUILTINS, PYTHON
from tinote.compiler.frontend.constructors import construct
from tinote.compiler.frontend.custom_vjp import inline_replaced
from tinote.compiler.frontend.descriptions import describe, in_place_of_call
from tinote.compiler.frontend.domains import static_items
from tinote.compiler.frontend.expressions import Expressions
from tinote.compiler.frontend.scopes import Constant, Frame, Results, Variable
from tinote.compiler.frontend.texts import format_text
from tinote.compiler.frontend.values import BoundMethod, CellPlace, Place, StructValue, is_number
from tinote.compiler.protocol import (
    CaptureKind,
    FunctionSource,
    expansion_of,
    function_of,
    is_template,
    struct_of,
    type_of,
)
from tinote.errors import KernelSyntaxError, TinoteError
from tinote.ir.types import Scalar, shape_of

__all__ = ["Calls"]

#: Python's functions that are called at compile time when all arguments are constants; anything else must stand in
#: `static(...)`.
_PURE = {isinstance, issubclass, getattr, hasattr, type, str, repr, sorted, divmod, set, dict, round, id}


def _is_fixed(callee: Any) -> bool:
    """Whether one of Python's own functions is called, which gives the same for the same numbers and texts."""
    return callee is not id and getattr(callee, "__module__", None) in ("builtins", "math")


def _is_plain(front: Any) -> bool:
    """Whether a compile-time value is numbers, texts, types of these, and containers of such."""
    if isinstance(front, dict):
        return _is_plain(list(front)) and _is_plain(list(front.values()))
    if isinstance(front, tuple | list | set):
        return all(_is_plain(item) for item in front)
    return front is None or type(front) in (bool, int, float, str) or _is_fixed(front)


#: How often a function may be inlined in itself.
_DEEPEST = 64


class Calls(Expressions):
    """The emitter that knows calls. Lowering a function's body is left to the next layers."""

    def body(self, frame: Frame) -> Any:
        """Lower the body of the function of `frame`, which is current and has its parameters bound; its result."""
        raise NotImplementedError

    def call(self, node: ast.Call) -> Any:
        wanted, self.wanted = self.wanted, True
        try:
            callee = self.reference(node.func)
            return self._dispatch(node, callee, wanted)
        finally:
            self.wanted = True

    def _dispatch(self, node: ast.Call, callee: Any, wanted: bool) -> Any:
        if isinstance(callee, BoundMethod):
            args, kwargs = self._arguments(node)
            with self.at(node):
                return tensors.call_method(self, callee, args, kwargs)
        if isinstance(callee, types.BuiltinFunctionType) and isinstance(callee.__self__, str):
            if callee.__name__ == "format":
                args, kwargs = self._arguments(node)
                return format_text(self, callee.__self__, args, kwargs)
        if isinstance(callee, types.BuiltinFunctionType) and isinstance(callee.__self__, dict) and not node.args:
            if callee.__name__ in ("items", "keys", "values"):
                return tuple(callee())
        source = function_of(callee)
        if source is not None:
            return self._inline(node, callee, source)
        expansion = self._expansion(callee)
        if expansion is not None:
            static = expansion is BUILTINS["static"]
            self.in_static += static
            try:
                args, kwargs = self._arguments(node, places=1 if hasattr(expansion, "takes_place") else 0)
            finally:
                self.in_static -= static
            self.wanted = wanted
            if self._by_python(callee, args, kwargs):
                return self._python(callee, args, kwargs)
            return expansion(self, args, kwargs)
        t = (
            type_of(callee, self.fp, self.ip)
            if isinstance(callee, Scalar) or hasattr(callee, "__tinote_type__")
            else None
        )
        if t is not None:
            args, kwargs = self._arguments(node)
            if kwargs:
                self.error(f"`{t}` takes no named arguments")
            return construct(self, t, args)
        info = struct_of(callee)
        if info is not None:
            args, kwargs = self._arguments(node)
            return structs.construct_struct(self, info, args, kwargs)
        if hasattr(callee, "__tinote_kernel__"):
            self.error(
                "a kernel cannot call another kernel",
                "make the called one a device function with `@ti.func`",
                node.func,
                KernelSyntaxError,
            )
        if not callable(callee):
            self.error(f"{describe(callee)} cannot be called", node=node.func)
        return self._outside(node, callee)

    def _expansion(self, callee: Any) -> Any:
        try:
            found = PYTHON.get(callee)
        except TypeError:  # not hashable
            found = None
        if found is None:
            found = expansion_of(callee) or BUILTINS.get(getattr(callee, "__tinote_name__", ""))
        return found

    def _arguments(self, node: ast.Call, places: int = 0) -> tuple[list[Any], dict[str, Any]]:
        """The values of a call's arguments; the first `places` of them as places."""
        args = [self.reference(a) for a in node.args[:places]]
        args += self.items(node.args[places:])
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            front = (
                self.reference(keyword.value) if places and not args and not kwargs else self.evaluate(keyword.value)
            )
            if keyword.arg is not None:
                kwargs[keyword.arg] = front
            elif isinstance(front, dict):
                kwargs |= front
            else:
                self.error(f"{describe(front)} after `**` is no dictionary", node=keyword.value)
        return args, kwargs

    # Python functions

    def _by_python(self, callee: Any, args: list[Any], kwargs: dict[str, Any]) -> bool:
        """Whether one of Python's own functions is called on constants only, so that Python's result is exact."""
        if not isinstance(callee, types.BuiltinFunctionType) or callee.__module__ != "math":
            return False
        return all(self.is_static(a) for a in [*args, *kwargs.values()])

    def _outside(self, node: ast.Call, callee: Any) -> Any:
        """A call of a Python function that is no part of the language."""
        name = getattr(callee, "__qualname__", type(callee).__name__)
        try:
            pure = callee in _PURE or getattr(callee, "__tinote_static__", False)
        except TypeError:
            pure = False
        module = getattr(callee, "__module__", None)
        args, kwargs = self._arguments(node)
        static = all(self.is_static(a) for a in [*args, *kwargs.values()])
        if static and (pure or self.in_static or module == "math"):
            return self._python(callee, args, kwargs)
        if pure:
            self.error(f"`{name}` works on what is known at compile time only")
        if module == "math" or (module or "").partition(".")[0] == "numpy":
            known = "for numbers in a kernel" if not static else "in a kernel"
            hint = f"use `ti.{name}`" if name in BUILTINS else "call it outside of the kernel"
            self.error(f"`{module}.{name}` cannot be used {known}", hint, node.func, KernelSyntaxError)
        kind = "class" if isinstance(callee, type) else "function"
        self.error(
            f"`{name}` is a Python {kind}, not part of the kernel language",
            in_place_of_call(callee),
            node.func,
            KernelSyntaxError,
        )

    def _python(self, callee: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if not (_is_fixed(callee) and _is_plain([*args, *kwargs.values()])) and callee is not getattr:
            # What a user's function does, or an object answers, may change without a capture that tells.
            self.reproducible = False
        try:
            found = callee(*args, **kwargs)
            if callee is getattr and hasattr(args[0], args[1]):
                return self.captured(CaptureKind.ATTRIBUTE, args[0], args[1], found)
            return self.outside(found)
        except Exception as error:
            name = getattr(callee, "__name__", callee)
            self.error(f"calling `{name}` at compile time failed: {type(error).__name__}: {error}")

    # device functions

    @cached_property
    def _annotations(self) -> dict[int, Any]:
        """What the annotations that were met stand for, by the identity of their nodes (which the functions' trees
        keep alive).
        """
        return {}

    def written(self, node: ast.Call) -> list[ast.expr]:
        """The arguments of a call that the callee may assign: the target of an atomic, and what stands for a
        `template()` parameter. A callee that only lowering the body makes known may assign every name.
        """
        callee = self.static_lookup(node.func)
        if callee is None:
            names = [*node.args, *[k.value for k in node.keywords]] if self._is_local(node.func) else []
            return [a for a in names if isinstance(a, ast.Name)]
        expansion = self._expansion(callee)
        if expansion is not None:
            return node.args[:1] if hasattr(expansion, "takes_place") else []
        source = function_of(callee)
        if source is None:
            return []
        offset = 1 if getattr(callee, "__tinote_self__", None) is not None else 0
        parameters = source.parameters
        found = [a for a, q in zip(node.args, parameters[offset:], strict=False) if self._is_template(source, q)]
        by_name = {q.arg: q for q in parameters}
        return found + [
            k.value for k in node.keywords if k.arg in by_name and self._is_template(source, by_name[k.arg])
        ]

    def _is_local(self, callee: ast.expr) -> bool:
        """Whether a callee that is no captured object is a local variable, or a method of one that is not built in."""
        if isinstance(callee, ast.Attribute):
            return callee.attr not in tensors.METHODS and analysis.base_name(callee) is not None
        return isinstance(callee, ast.Name) and not hasattr(builtins, callee.id)

    def static_lookup(self, node: ast.expr) -> Any:
        """What a dotted name outside of the kernel stands for, or `None`; nothing is recorded."""
        match node:
            case ast.Attribute():
                owner = self.static_lookup(node.value)
                if isinstance(owner, StructValue):
                    method = owner.info.methods.get(node.attr) if owner.info is not None else None
                    return owner.members.get(node.attr) if method is None else method.__get__(owner)
                return None if owner is None else getattr(owner, node.attr, None)
            case ast.Name():
                binding = self.scope.find(node.id)
                if isinstance(binding, Constant):
                    return binding.value
                if binding is not None:
                    return None
                source = self.frame.source
                if node.id in source.closure:
                    try:
                        return source.closure[node.id].cell_contents
                    except ValueError:
                        return None
                return source.globals.get(node.id)
        return None

    def is_static_call(self, node: ast.expr) -> bool:
        """Whether an expression is a call of `static`."""
        return isinstance(node, ast.Call) and self._expansion(self.static_lookup(node.func)) is BUILTINS["static"]

    def annotation(self, source: FunctionSource, node: ast.expr | None, name: str = "") -> Any:
        """What the annotation of a parameter, of the result (`name` is "return") or of a variable evaluates to; `None`
        when there is none.
        """
        if node is None:
            return None
        known = source.annotations.get(name)
        if known is not None and not isinstance(known, str):
            return known
        if id(node) in self._annotations:
            return self._annotations[id(node)]
        found = self._annotations[id(node)] = self._evaluated(source, node)
        return found

    def _evaluated(self, source: FunctionSource, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node = ast.parse(node.value, mode="eval").body
        names = source.enclosed()
        code = compile(ast.Expression(node), source.file, "eval")
        try:
            return eval(code, source.globals, names)
        except TinoteError as error:
            self.error(error.message, error.hint, node)
        except Exception as error:
            self.error(f"this annotation cannot be evaluated: {type(error).__name__}: {error}", node=node)

    def _is_template(self, source: FunctionSource, parameter: ast.arg) -> bool:
        return parameter.annotation is not None and is_template(
            self.annotation(source, parameter.annotation, parameter.arg)
        )

    def _inline(self, node: ast.Call, callee: Any, source: FunctionSource) -> Any:
        arguments = self._match(node, callee, source)
        again = [frame for frame in self.frame.chain() if frame.source.tree is source.tree]
        if again and not self._descends(source, arguments, again):
            calls = [f.source.name for f in reversed(self.frame.chain())]
            circle = [*calls[calls.index(source.name) :], source.name][:8]
            self.error(
                f"`{source.name}` calls itself ({' → '.join(circle)})",
                "device functions are inlined, so they cannot recurse; use a loop",
                kind=KernelSyntaxError,
            )
        if getattr(callee, "__tinote_replacement__", None) is not None:
            own = source.parameters[: int(callee.__tinote_self__ is not None)]
            given = [q.arg for q in source.parameters if q not in own and not self._is_template(source, q)]
            return inline_replaced(self, source, callee, arguments, given)
        return self.inline(source, arguments)

    def _descends(self, source: FunctionSource, arguments: dict[str, Any], again: list[Frame]) -> bool:
        """Whether a function that calls itself may end: a number that is a template argument differs from that of every
        call around it (`static` then decides where it ends).
        """
        if len(again) >= _DEEPEST:
            self.error(
                f"`{source.name}` calls itself more than {_DEEPEST} times deep",
                "end the recursion with `if ti.static(…)`, or use a loop",
                kind=KernelSyntaxError,
            )
        names = [q.arg for q in source.parameters if self._is_template(source, q) and is_number(arguments[q.arg])]
        key = [arguments[name] for name in names]
        around = [[self._template_of(frame, name) for name in names] for frame in again]
        return bool(names) and key not in around

    @staticmethod
    def _template_of(frame: Frame, name: str) -> Any:
        binding = frame.scope.names.get(name)
        return binding.value if isinstance(binding, Constant) else None

    def _match(self, node: ast.Call, callee: Any, source: FunctionSource) -> dict[str, Any]:
        """Which front-end value each parameter stands for."""
        tree = source.tree.args
        parameters = source.parameters
        positional = [q for q in parameters if q not in tree.kwonlyargs]
        names = [q.arg for q in parameters]
        arguments: dict[str, Any] = {}
        further: list[Any] = []
        named: dict[str, Any] = {}
        owner = getattr(callee, "__tinote_self__", None)
        if owner is not None and positional:
            arguments[positional[0].arg] = owner
            positional = positional[1:]
        given = 0
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                with self.at(argument):
                    values = list(static_items(self, self.evaluate(argument.value)))
            else:
                template = given < len(positional) and self._is_template(source, positional[given])
                values = [self.reference(argument) if template else self.evaluate(argument)]
            for value in values:
                if given >= len(positional) and tree.vararg is not None:
                    further.append(value)
                    continue
                if given >= len(positional):
                    self._wrong_count(
                        source, len(node.args) + len(node.keywords), len(parameters) - (owner is not None)
                    )
                arguments[positional[given].arg] = value
                given += 1
        for keyword in node.keywords:
            if keyword.arg is not None:
                position = names.index(keyword.arg) if keyword.arg in names else None
                template = position is not None and self._is_template(source, parameters[position])
                spread = {keyword.arg: self.reference(keyword.value) if template else self.evaluate(keyword.value)}
            else:
                spread = self.evaluate(keyword.value)
                if not isinstance(spread, dict):
                    self.error(f"{describe(spread)} after `**` is no dictionary", node=keyword.value)
            for name, value in spread.items():
                if name in arguments or name in named:
                    self.error(f"`{source.name}` gets `{name}` twice", node=keyword.value)
                if name in names:
                    arguments[name] = value
                elif tree.kwarg is not None:
                    named[name] = value
                else:
                    close = difflib.get_close_matches(str(name), names, 1)
                    self.error(
                        f"`{source.name}` has no parameter `{name}`",
                        f"did you mean `{close[0]}`?" if close else f"it has {', '.join(names)}",
                        keyword.value,
                    )
        for name in names:
            if name not in arguments:
                if name not in source.defaults:
                    self._wrong_count(
                        source, len(node.args) + len(node.keywords), len(parameters) - (owner is not None), name
                    )
                arguments[name] = self.outside(source.defaults[name])
        if tree.vararg is not None:
            arguments[tree.vararg.arg] = tuple(further)
        if tree.kwarg is not None:
            arguments[tree.kwarg.arg] = named
        return arguments

    def _wrong_count(self, source: FunctionSource, given: int, expected: int, missing: str = "") -> None:
        missing = f"`{missing}` is missing" if missing else ""
        self.error(
            f"`{source.name}` takes {expected} argument{'' if expected == 1 else 's'}, and is called with {given}",
            missing,
        )

    def inline(self, source: FunctionSource, arguments: dict[str, Any]) -> Any:
        """The result of a device function whose parameters stand for `arguments`; what it emits and what is wrong in
        it points to the function and to the call.
        """
        frame = Frame(source, self.frame, self.b.loc, Results(self.here()), self.depth)
        saved = self.frame, self.scope, self.b.loc, self.loop_options
        self.loop_options = {}
        self.frame, self.scope = frame, frame.scope
        try:
            for name, front in arguments.items():
                self.bind(name, front)  # so that calls of what is given as an argument are known to the survey
            self.survey()
            for parameter in source.parameters:
                with self.at(parameter):
                    self._bind_parameter(source, parameter, arguments[parameter.arg])
            for extra in (source.tree.args.vararg, source.tree.args.kwarg):
                if extra is not None:
                    with self.at(extra):
                        self.bind(extra.arg, arguments[extra.arg], "parameter of the function")
            return self.body(frame)
        finally:
            self.frame, self.scope, self.b.loc, self.loop_options = saved

    def survey(self) -> None:
        """Look through the current function's syntax for the names that need cells or shared memory."""
        frame = self.frame
        body = frame.source.tree.body
        frame.assigned = analysis.assigned_names(body, self.written)
        for loop in analysis.loop_bodies(body, lambda statement: self.is_static_call(statement.iter)):
            frame.shared |= analysis.assigned_names(loop, self.written).keys()
        # The loops of a function that is called on the outermost level are parallel, too.
        frame.shared |= analysis.names_passed(body, self.written)

    def _bind_parameter(self, source: FunctionSource, parameter: ast.arg, front: Any) -> None:
        """Arguments are passed by value, templates as they are."""
        name = parameter.arg
        annotation = self.annotation(source, parameter.annotation, name)
        if annotation is not None and not is_template(annotation):
            front = self._as_annotated(name, annotation, front)
        struct = structs.as_struct(self, front)
        if struct is not None:
            if struct.is_place():  # a template, or what a method is called on
                self.bind(name, struct)
            else:
                self.declare(name, struct)
            return
        if isinstance(front, Place):
            owner = front.owner if isinstance(front, CellPlace) else None
            self.scope.names[name] = Variable(
                name, front, self.b.loc, owner.nest if isinstance(owner, Variable) else self.nest
            )
            return
        template = is_template(annotation)
        if (
            name in self.frame.assigned
            and not template
            and self.is_value(front)
            and not isinstance(front, tuple | list)
        ):
            self.frame.assigned[name] += 1  # the argument is the first assignment
            self.declare(name, front)
            return
        self.bind(name, front, "template argument" if template else "")

    def declare(self, name: str, front: Any) -> None:
        """Make a new variable that starts at `front`."""
        raise NotImplementedError

    def _as_annotated(self, name: str, annotation: Any, front: Any) -> Any:
        info = struct_of(annotation)
        if info is not None:
            return structs.fitted(self, front, info)
        t = type_of(annotation, self.fp, self.ip)
        if t is None or not self.is_value(front):
            if t is not None:
                self.error(f"parameter `{name}` is a {t}, and is called with {describe(front)}")
            return front
        if isinstance(t, Scalar):
            if self.shape(front):
                self.error(f"parameter `{name}` is a number of type {t}, and is called with {describe(front)}")
            value = self.as_value(front, t)
            if t.kind in "iu" and value.dtype.kind == "f":
                self.warn(f"parameter `{name}` is an integer: the fraction of its argument is cut off")
            return self.cast(front, t)
        if self.shape(front) != shape_of(t):
            self.error(f"parameter `{name}` has shape {shape_of(t)}, and is called with {describe(front)}")
        return self.cast(front, t.dtype)
