"""Where lowering stands: the builder, the names in scope, the functions around, and the errors found so far."""

from __future__ import annotations

import ast
import builtins
import difflib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NoReturn

from tinote.compiler.frontend.scopes import Anchor, Constant, Frame, ParallelNest, Scope
from tinote.compiler.frontend.values import (
    Declared,
    Value,
    is_number,
)
from tinote.compiler.protocol import (
    Capture,
    CaptureKind,
    Warned,
    buffer_of,
    constant_of,
    content_of,
)
from tinote.config import Config
from tinote.errors import (
    CompilationError,
    KernelNameError,
    KernelSyntaxError,
    KernelTypeError,
    NotAvailableError,
    Note,
    TinoteError,
)
from tinote.ir.build import Builder, OpenRegion
from tinote.ir.nodes import Atom, Buffer, Lit, Var
from tinote.ir.primitives import Defaults
from tinote.ir.types import (
    Scalar,
    Tensor,
    scalar_named,
)
from tinote.source import Span

__all__ = ["Context", "Silenced"]


class Silenced(Exception):
    """Abandons a statement whose cause has been reported already."""


class Context:
    """The state of lowering one kernel."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.fp: Scalar = scalar_named(config.default_fp)
        self.ip: Scalar = scalar_named(config.default_ip)
        self.defaults = Defaults(self.fp, self.ip)
        self.b = Builder(self.defaults)
        self.frame: Frame
        self.scope: Scope
        self.errors: list[TinoteError] = []
        #: the last error of a captured object that was given a place in the kernel
        self.placed: TinoteError | None = None
        #: how often something was wrong, counting an error again for each time its code was lowered
        self.failures = 0
        self.warnings: list[Warned] = []
        self.captures: dict[tuple[CaptureKind, int, Any], Capture] = {}
        #: run-time regions open around the code at hand; 0 is the kernel's outermost level
        self.depth = 0
        self.nest: ParallelNest | None = None
        self.nests = 0
        self.top: Anchor
        self.launch_seed: Var | None = None
        self.top_draws: tuple[Atom, Var] | None = None
        #: fields of floats through which no derivative flows until the block ends
        self.stopped: frozenset[Buffer] = frozenset()
        #: whether somebody uses the value of the call at hand
        self.wanted = True
        #: where the statement at hand begins, and how many run-time regions are open there
        self.statement: tuple[Anchor, int]
        #: how many turns of loops were unrolled so far
        self.turns = 0
        #: inside `static(...)`: calls of plain Python functions are made at compile time
        self.in_static = 0
        #: what the tensors made here consist of
        self.packed: dict[Var, tuple[Atom, ...]] = {}
        #: what `loop_config` asked of the next loop
        self.loop_options: dict[str, Any] = {}
        #: whether the same captures always give the same function: no Python function of the user's ran
        self.reproducible = True

    # errors

    def span(self, node: ast.AST) -> Span:
        """Where a node stands."""
        return Span(
            self.frame.source.file,
            node.lineno,  # type: ignore[attr-defined]
            node.col_offset,  # type: ignore[attr-defined]
            node.end_lineno,  # type: ignore[attr-defined]
            node.end_col_offset,  # type: ignore[attr-defined]
            self.frame.inlined_at,
        )

    def error(
        self,
        message: str,
        hint: str = "",
        node: ast.AST | None = None,
        kind: type[CompilationError] = KernelTypeError,
        notes: Sequence[Note] = (),
    ) -> NoReturn:
        """Raise a located error: about `node`, or about the expression at hand."""
        raise kind(message, self.b.loc if node is None else self.span(node), hint, notes)

    def unsupported(self, what: str, hint: str = "", node: ast.AST | None = None) -> NoReturn:
        """Raise: the kernel language does not have this."""
        self.error(f"{what} cannot be used in a kernel", hint, node, KernelSyntaxError)

    def warn(self, message: str, node: ast.AST | None = None) -> None:
        """Note something that compiles and may surprise; said once a place."""
        found = Warned(message, self.b.loc if node is None else self.span(node))
        if found not in self.warnings:
            self.warnings.append(found)

    def report(self, error: TinoteError) -> None:
        """Keep an error for the end, once."""
        self.failures += 1
        if not any(e.message == error.message and e.span == error.span for e in self.errors):
            self.errors.append(error)

    def placed_here(self, error: TinoteError) -> TinoteError:
        """What a captured object raised when it was asked, as an error about the expression at hand: where the object
        was made becomes a note, if no note says it yet. Errors about the kernel stay what they are.
        """
        if isinstance(error, CompilationError) or error is self.placed:
            return error
        known = error.span.line > 0 and not error.notes and not isinstance(error, NotAvailableError)
        made = [Note("it is made here", error.span)] if known else []
        self.placed = type(error)(error.message, self.b.loc, error.hint, [*made, *error.notes])
        return self.placed

    @contextmanager
    def at(self, node: ast.AST) -> Iterator[None]:
        """Operations emitted and errors raised within are about `node`."""
        saved, self.b.loc = self.b.loc, self.span(node)
        try:
            yield
        finally:
            self.b.loc = saved

    # regions and scopes

    @contextmanager
    def region(self, *params: Var) -> Iterator[OpenRegion]:
        """A region that runs under a run-time decision, with a scope of its own."""
        self.depth += 1
        try:
            with self.b.region(*params) as opened:
                yield opened
        finally:
            self.depth -= 1

    @contextmanager
    def block(self, what: str, node: ast.AST) -> Iterator[Scope]:
        """A scope; the names assigned in it end with it."""
        outer, stopped = self.scope, self.stopped
        self.scope = Scope(outer)
        try:
            yield self.scope
        finally:
            for name, binding in self.scope.names.items():
                self.frame.ended.setdefault(name, Declared(what, binding.span))
            self.scope, self.stopped = outer, stopped

    def here(self) -> Anchor:
        """The point reached in the innermost open region."""
        return Anchor(self.b.innermost)

    def splice(self, opened: OpenRegion) -> None:
        """Put the operations of a region that has just been closed into the current one."""
        for op in opened.body:
            self.b.emit(op)

    def cell(self, t: Scalar | Tensor, initial: Atom | None = None, name: str = "") -> Var:
        return self.b.local(t, initial, name)

    # names

    def lookup(self, name: str) -> Any:
        """What a name outside of the kernel stands for; read through the function's closure, its module, then
        Python's built-ins. Raises when nobody knows it.
        """
        source = self.frame.source
        if name in source.closure:
            cell = source.closure[name]
            try:
                held = cell.cell_contents
            except ValueError:
                self.error(
                    f"`{name}` has no value yet in the function around `{source.name}`",
                    f"assign `{name}` before the kernel is called",
                    kind=KernelNameError,
                )
            return self.captured(CaptureKind.CELL, cell, None, held)
        if name in source.globals:
            return self.captured(CaptureKind.NAME, source.globals, name, source.globals[name])
        if hasattr(builtins, name):
            return self.captured(CaptureKind.BUILTIN, source.globals, name, getattr(builtins, name))
        ended = self.frame.ended.get(name)
        if ended is not None:
            self.error(
                f"`{name}` belongs to the {ended.what} in which it is assigned and is not known after it",
                f"assign `{name}` before the {ended.what}",
                kind=KernelNameError,
                notes=[Note(f"`{name}` is assigned here", ended.span)],
            )
        if name in self.frame.assigned:
            self.error(
                f"`{name}` is used before it is assigned", f"assign `{name}` on the way here", kind=KernelNameError
            )
        known = {*self.scope.all_names(), *source.closure, *source.globals, *dir(builtins)}
        close = difflib.get_close_matches(name, sorted(k for k in known if not k.startswith("__")), 1, 0.7)
        hint = (
            f"did you mean `{close[0]}`?"
            if close
            else "names come from the kernel, the functions around it, and the module or notebook"
        )
        self.error(f"`{name}` is not defined", hint, kind=KernelNameError)

    def captured(self, kind: CaptureKind, owner: Any, key: Any, value: Any) -> Any:
        """Remember that the code depends on `value`; give it back as a front-end value."""
        self.captures.setdefault((kind, id(owner), key), Capture(kind, owner, key, value))
        return self.outside(value)

    def outside(self, value: Any) -> Any:
        """An object from outside as a front-end value: NumPy's numbers become Python's, and what can change in place
        is remembered.
        """
        if isinstance(value, ModuleType) or (is_number(value) and type(value) in (bool, int, float)):
            return value
        constant = constant_of(value)
        mutable = isinstance(value, list | dict | set) or (
            type(value) is tuple and any(isinstance(item, list | dict | set) for item in value)
        )
        if constant is not None or mutable:
            self.captures.setdefault(
                (CaptureKind.CONTENT, id(value), None), Capture(CaptureKind.CONTENT, value, None, content_of(value))
            )
        item = getattr(value, "item", None)
        if constant is None and getattr(value, "shape", None) == () and callable(item) and buffer_of(value) is None:
            return item()
        return value

    def bind(self, name: str, value: Any, what: str = "") -> None:
        """Let a name stand for a front-end value in the current scope."""
        self.scope.names[name] = Constant(name, value, self.b.loc, what, self.depth)
        self.show(name, value)

    def show(self, name: str, value: Any) -> None:
        """In plain Python, let a value be a local variable here, for debuggers to stop at and to show, even where the
        code needs none.
        """
        if self.config.arch == "python" and isinstance(value, Value):
            if isinstance(value.atom, Lit) or value.atom.name != name:
                self.b.local(value.type, value.atom, name)
