"""Evaluation order: combines operations into Python expressions and statements, at the locations of the user's code.

An operation whose result is used once is pending until its use; any other result is assigned, to the user's name or to
a generated one (`_1`). A pending term must keep its meaning: reads of memory or variables are evaluated before the next
effect, and operations that may fail keep their order.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import NamedTuple

from tinote.compiler.codegen.python.names import Names, Uses, own_name
from tinote.compiler.codegen.python.primitives import RUNTIME, constant, read, write
from tinote.ir.nodes import Atom, Function, Lit, Op, Var
from tinote.source import Span

#: Nested operations in one expression: Python's compiler gives up at some hundreds.
_MAX_DEPTH = 30


class Ordering(IntEnum):
    """How long an expression may be pending."""

    NONE = 0  # it means the same at any time
    READS = 1  # until something is written
    FAILS = 2  # until something else may fail


class PendingTerm(NamedTuple):
    """An expression that is not evaluated yet. `names`: the variables it mentions; `shared`: it is a list that the
    kernel may still change, so that it is copied where it is kept.
    """

    code: ast.expr
    ordering: Ordering = Ordering.NONE
    names: frozenset[str] = frozenset()
    depth: int = 0
    shared: bool = False

    @property
    def kept(self) -> ast.expr:
        """The expression, to be kept in a variable."""
        return ast.Tuple([ast.Starred(self.code, ast.Load())], ast.Load()) if self.shared else self.code


class Order:
    """The statements of one function under construction. `may_fail` says which operations stay for their faults."""

    def __init__(self, fn: Function, may_fail: Callable[[Op], bool]) -> None:
        self.fn = fn
        self.uses = Uses(fn, may_fail)
        self.names = Names()
        self.loc = fn.loc  # of the operation at hand
        self.out: list[ast.stmt] = []
        #: the Python variable of each variable that has one
        self.env: dict[Var, str] = {}
        self._waiting: dict[Var, PendingTerm] = {}
        self.names.whole(RUNTIME)

    # places in the source

    def locate(self, node: ast.AST, span: Span) -> None:
        """Set the location of all nodes in `node` without one to `span`; for code from another file, to its call.

        Python's compiler puts parts of a span of several lines on the last one, so only the first line is given.
        """
        here = next((s for s in span.chain() if s.file == self.fn.loc.file and s.line > 0), self.loc)
        line, column = max(here.line, 1), here.column
        end = max(here.end_column, column) if here.end_line == line else column
        self._locate(node, (line, column, line, end))

    def _locate(self, node: ast.AST, position: tuple[int, int, int, int]) -> None:
        if isinstance(node, ast.stmt | ast.expr | ast.arg | ast.keyword):
            if hasattr(node, "lineno"):
                return
            node.lineno, node.col_offset, node.end_lineno, node.end_col_offset = position
        for child in ast.iter_child_nodes(node):
            self._locate(child, position)

    def emit(self, statement: ast.stmt) -> None:
        self.locate(statement, self.loc)
        self.out.append(statement)

    # what waits

    def take(self, atoms: Sequence[Atom]) -> list[PendingTerm]:
        """Operands, in the order in which Python will evaluate them."""
        failing = [v for v, term in self._waiting.items() if term.ordering is Ordering.FAILS]
        wanted = [a for a in atoms if isinstance(a, Var) and a in failing]
        if wanted and wanted != failing[-len(wanted) :]:
            self.settle()
        return [self._term(a) for a in atoms]

    def _term(self, atom: Atom) -> PendingTerm:
        if isinstance(atom, Lit):
            return PendingTerm(constant(atom))
        found = self._waiting.pop(atom, None)
        if found is not None:
            return found
        name = self.env[atom]
        return PendingTerm(read(name), Ordering.NONE, frozenset([name]))

    def settle(self, least: Ordering = Ordering.READS) -> None:
        """Evaluate now the pending terms with an ordering constraint of at least `least`."""
        for v, term in list(self._waiting.items()):
            if term.ordering >= least:
                del self._waiting[v]
                self.env[v] = self.names.temporary()
                self.assign([self.env[v]], [term])

    def give(
        self,
        op: Op,
        code: ast.expr,
        terms: Sequence[PendingTerm],
        ordering: Ordering = Ordering.NONE,
        shared: bool = False,
    ) -> None:
        """Define the value of an operation by `terms`."""
        self.locate(code, op.loc)
        term = PendingTerm(
            code,
            max([ordering, *[t.ordering for t in terms]]),
            frozenset().union(*[t.names for t in terms]),
            1 + max([t.depth for t in terms], default=0),
            shared,
        )
        v = op.out
        once = self.uses.count[v] == 1 and v not in self.uses.nested and term.depth < _MAX_DEPTH
        if once and not own_name(op):
            self._waiting[v] = term
            return
        if term.ordering is Ordering.FAILS:
            self.settle(Ordering.FAILS)
        self.bind(op, term)

    # statements

    def do(self, code: ast.expr) -> None:
        """An expression for its effect."""
        self.settle()
        self.emit(ast.Expr(code))

    def bind(self, op: Op, term: PendingTerm) -> None:
        """Give the result of an operation a name now."""
        name = self.env[op.out] = self.name(own_name(op), self.uses.start[op], op.out)
        self.emit(ast.Assign([write(name)], term.kept))

    def name(self, wish: str, start: float, *variables: Var, last: float = 0) -> str:
        """A name for variables that share one; pending terms that use the name for another variable are evaluated
        before.
        """
        name = self.names.take(wish, start, max([last, *[self.uses.last[v] for v in variables]]))
        if any(name in term.names for term in self._waiting.values()):
            self.settle(Ordering.NONE)
        return name

    def assign(self, names: Sequence[str], terms: Sequence[PendingTerm]) -> None:
        """`a, b = x, y`, at the location of its first value; nothing where a variable gets its own value."""
        pairs = [(n, t) for n, t in zip(names, terms, strict=True) if getattr(t.code, "id", None) != n]
        if not pairs:
            return
        targets, values = [write(n) for n, _ in pairs], [t.kept for _, t in pairs]
        single = len(pairs) == 1
        statement = ast.Assign(
            [targets[0] if single else ast.Tuple(targets, ast.Store())],
            values[0] if single else ast.Tuple(values, ast.Load()),
        )
        first = pairs[0][1].code
        if hasattr(first, "lineno"):
            ast.copy_location(statement, first)
        for node in (*statement.targets, statement.value):
            self.locate(node, self.loc)
        self.emit(statement)

    def keep(self, term: PendingTerm) -> PendingTerm:
        """Fix the present value of a term."""
        if term.ordering is Ordering.NONE and not term.names:
            return term
        name = self.names.temporary()
        self.assign([name], [term])
        return PendingTerm(read(name), Ordering.NONE, frozenset([name]))

    def enter(self) -> tuple[list[ast.stmt], dict[Var, PendingTerm], Span]:
        """Begin a nested list of statements; returns the state for `leave`."""
        saved = self.out, self._waiting, self.loc
        self.out, self._waiting = [], {}
        return saved

    def leave(self, saved: tuple[list[ast.stmt], dict[Var, PendingTerm], Span]) -> list[ast.stmt]:
        """End a nested list; returns its statements."""
        found = self.out
        self.out, self._waiting, self.loc = saved
        return found
