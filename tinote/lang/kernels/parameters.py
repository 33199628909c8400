"""A kernel's parameters: their annotations, and the argument that each receives."""

from __future__ import annotations

import ast
from typing import Any

from tinote.compiler.function_source import FunctionSource
from tinote.compiler.protocol import meant, space_of
from tinote.errors import KernelSyntaxError, KernelTypeError, TinoteError, closest, wrong_call
from tinote.lang.data.types import template
from tinote.source import Span


class Parameters:
    """The parameters of one kernel, in the order of its `def` line."""

    def __init__(self, source: FunctionSource) -> None:
        self.source = source
        self.nodes = source.parameters
        self.names = [node.arg for node in self.nodes]
        #: whether a class has the kernel as a method, so that its first parameter is the object
        self.is_method = False
        self._annotations: list[Any] | None = None

    @property
    def annotations(self) -> list[Any]:
        """What each parameter is annotated with, evaluated where the kernel was defined. Raises `KernelTypeError`, and
        `KernelSyntaxError` for a parameter that collects arguments.
        """
        if self._annotations is None:
            self._refuse_collecting()
            source = self.source
            scope = {**source.globals, **source.enclosed()}
            self._annotations = [self._annotation(node, scope) for node in self.nodes]
        return self._annotations

    def _refuse_collecting(self) -> None:
        """A kernel has no `*numbers` and no `**options`."""
        arguments = self.source.tree.args
        for stars, node in (("*", arguments.vararg), ("**", arguments.kwarg)):
            if node is not None:
                what = f"the parameter `{stars}{node.arg}`, which takes any number of arguments,"
                raise KernelSyntaxError(
                    f"{what} cannot be used in a kernel",
                    self.span_of(node),
                    hint="name every parameter; many numbers are passed in a field or an array",
                )

    def _annotation(self, node: ast.arg, scope: dict[str, Any]) -> Any:
        hint = self.source.annotations.get(node.arg)
        if isinstance(hint, str):
            hint = self._evaluated(node, hint, scope)
        if hint is None and node is self.nodes[0] and (self.is_method or node.arg in ("self", "cls")):
            return template
        if hint is None:
            raise KernelTypeError(
                f"parameter '{node.arg}' of kernel '{self.source.name}' needs a type annotation",
                self.span_of(node),
                hint="write for example `n: ti.i32`, `x: ti.f32` or `field: ti.template()`",
            )
        return hint

    def _evaluated(self, node: ast.arg, hint: str, scope: dict[str, Any]) -> Any:
        """An annotation that is text (`from __future__ import annotations`)."""
        try:
            return meant(eval(hint, scope))
        except TinoteError as error:
            raise type(error)(error.message, self.span_of(node), error.hint) from None
        except Exception as error:
            raise KernelTypeError(
                f"the annotation of parameter '{node.arg}' cannot be evaluated: {type(error).__name__}: {error}",
                self.span_of(node),
                hint="an annotation kept as text finds the names of its module and those that the kernel itself uses",
            ) from None

    def span_of(self, node: ast.arg) -> Span:
        """Where a parameter stands."""
        end = node.end_lineno or 0, node.end_col_offset or 0
        return Span(self.source.file, node.lineno, node.col_offset, *end)

    def in_order(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The argument of each parameter, defaults filled in. Raises `KernelArgumentError` for a call that does not
        fit.
        """
        source, names = self.source, self.names
        positional = len(names) - len(source.tree.args.kwonlyargs)
        if not kwargs and len(args) == len(names) == positional:
            return args
        given = dict(zip(names, args, strict=False))
        if len(args) > len(names):
            raise wrong_call(
                f"kernel '{source.name}' {self._takes()}, but got {len(args)}", source.span, self._about_too_many(args)
            )
        by_position = {node.arg for node in source.tree.args.posonlyargs}
        if len(args) > positional:
            raise wrong_call(
                f"kernel '{source.name}' takes '{names[positional]}' by name only",
                self.span_of(source.tree.args.kwonlyargs[0]),
                hint=f"call it with `{names[positional]}=…`",
            )
        for name, value in kwargs.items():
            if name not in names:
                close = closest(name, [known for known in names if known not in kwargs])
                hint = f"did you mean '{close}'?" if close else ""
                raise wrong_call(f"kernel '{source.name}' has no parameter '{name}'", source.span, hint=hint)
            if name in given:
                raise wrong_call(f"kernel '{source.name}' got two values for '{name}'", source.span)
            if name in by_position:
                raise wrong_call(f"kernel '{source.name}' takes '{name}' by its position only", source.span)
            given[name] = value
        missing = [n for n in names if n not in given and n not in source.defaults]
        if missing:
            raise wrong_call(f"kernel '{source.name}' {self._takes()}; missing: {', '.join(missing)}", source.span)
        return tuple([given.get(n, source.defaults.get(n)) for n in names])

    def _takes(self) -> str:
        count = len(self.names)
        if not count:
            return "takes no arguments"
        return f"takes {count} argument{'s' if count != 1 else ''} ({', '.join(self.names)})"

    def _about_too_many(self, args: tuple[Any, ...]) -> str:
        if hasattr(type(args[0]), self.source.name):
            return "a method takes `self` first"
        if any(space_of(one) is not None for one in args[len(self.names) :]):
            return "a kernel finds fields by their names; one that is passed has a parameter `x: ti.template()`"
        return ""
