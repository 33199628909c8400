"""Straight-line functions: they only launch kernels.

    def simulate(x):                        # names that lead to kernels, fields, arrays and numbers; loops over ranges
        n = x.shape[0]                      # what is fixed: constants, shapes, and what is computed of them
        y = ti.ndarray(ti.f64, n)
        for t in range(STEPS if n > 1 else 1):
            advance(x, y, t, 0.5 * dt)
        loss[None] = 0
        return np.log(energy(y)) ** 2 - 0.5 * ti.ad.grad(energy)(x)   # arithmetic on numbers

Another call of such a function with arguments of the same kind certainly makes the same launches, as long as its names
refer to the same objects: its plan may replace it. Everything else is refused: other conditions, containers, computed
attributes, unknown calls. Values that it passes on are not inspected.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import types
from typing import Any

import numpy as np

from tinote.compiler.pysource.codes import cells_of
from tinote.compiler.pysource.origins import is_ours
from tinote.errors import CaptureError
from tinote.ir.types import Scalar
from tinote.lang.capture.dependencies import Dependencies, Reader
from tinote.lang.data.fields import Field
from tinote.lang.data.ndarrays import matrix_ndarray, ndarray, vector_ndarray
from tinote.lang.data.traced_derivatives import RULES
from tinote.lang.kernels.kernel import BoundKernel, Kernel
from tinote.source import Span

_STRAIGHT = (
    ast.Expr, ast.Assign, ast.Return, ast.For, ast.Pass, ast.Name, ast.Constant, ast.Attribute, ast.Call, ast.Starred,
    ast.Tuple, ast.keyword, ast.BinOp, ast.UnaryOp, ast.Subscript, ast.expr_context, ast.operator, ast.USub, ast.UAdd,
    ast.If, ast.IfExp, ast.AugAssign,
)  # fmt: skip
_NUMBERS = (int, float)
_NUMBERS_AND_NAMES = (int, float, bool, str)
#: Allowed types of parameter defaults.
_CONSTANTS = (int, float, str, type(None), Field, Kernel)
_FIELD_METHODS = {"fill", "copy_from"}
#: They make arrays of zeros.
_MAKERS = (ndarray, vector_ndarray, matrix_ndarray)


def _numbers_of(called: Any) -> int:
    """How many numbers a function takes that computes with numbers alone; 0 for others."""
    if isinstance(called, np.ufunc):
        return called.nin if called.__name__ in RULES else 0
    prim = getattr(called, "__tinote_primitive__", None)
    return 1 if called is abs else 0 if prim is None else prim.arity


class StraightDependencies(Dependencies):
    """`arrays`: the NumPy arrays that were looked up. They are passed to kernels, so their contents do not matter. The
    values that are given to `scan` are the same each time.
    """

    def __init__(self) -> None:
        super().__init__()
        self.arrays: list[np.ndarray[Any, Any]] = []

    def reader(self, *given: Any) -> Reader:
        return _StraightReader(*given)

    def scan(self, function: Any, given: dict[str, Any] | None = None) -> None:
        if isinstance(function, Kernel | BoundKernel):
            return
        inner = getattr(function, "__tinote_calls__", None)
        if inner is not None:  # a derivative, which launches its kernel and gradients
            self.scan(inner)
            return
        if type(function) is not types.FunctionType:
            raise CaptureError(f"{type(function).__name__} is called, about which nothing is known")
        code, defaults = function.__code__, function.__defaults__ or ()
        takes_any = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS) or function.__kwdefaults__
        takes_any = takes_any or is_ours(function.__globals__.get("__name__"))
        if takes_any or not all(isinstance(one, _CONSTANTS) for one in defaults):
            raise CaptureError(f"'{function.__name__}' takes more than arguments by position")
        self.follow(function)
        self.scan_code(code, function.__globals__, cells_of(function), given or {})

    def hold(self, value: Any, key: str, span: Span) -> None:
        if not isinstance(value, np.ndarray):
            super().hold(value, key, span)
        elif not any(one is value for one in self.arrays):
            self.arrays.append(value)


class _StraightReader(Reader, ast.NodeVisitor):
    """Reads one function. Raises `CaptureError` where it is not straight-line code."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        #: the variables of the enclosing loops
        self._counters: list[str] = []

    def visit(self, node: ast.AST) -> None:
        is_stored = isinstance(getattr(node, "ctx", None), ast.Store)
        if isinstance(node, ast.expr) and not is_stored and self._is_fixed(node):
            return
        if not isinstance(node, _STRAIGHT):
            raise self._unknown(node)
        ast.NodeVisitor.visit(self, node)

    def _unknown(self, node: ast.AST) -> CaptureError:
        return CaptureError(f"{type(node).__name__} in '{self._code.co_name}' is not known to do the same each time")

    def _of(self, node: ast.expr) -> tuple[bool, Any]:
        """Whether the value of an expression is known, and the value."""
        return (True, self._value(node)) if self._use(node) else (False, None)

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            if node.id not in self._locals or node.id in self._counters:
                raise self._unknown(node)
            return
        known, value = self._of(node)
        if isinstance(value, np.ndarray) or not (known or node.id in self._locals):
            raise self._unknown(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        known, value = self._of(node)
        if not known or isinstance(value, np.ndarray) or not isinstance(node.ctx, ast.Load):
            raise self._unknown(node)
        self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            # A number is assigned to a fixed element of a field.
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            if not all(isinstance(one, ast.Name) for one in names) and not (
                isinstance(target, ast.Subscript) and self._is_number(node.value)
            ):
                raise self._unknown(node)
        self.generic_visit(node)

    def _is_number(self, node: ast.expr) -> bool:
        """Whether an expression is a number, or may be one that is computed."""
        if isinstance(node, ast.Constant):
            return type(node.value) in _NUMBERS
        known, value = self._of(node)
        return type(value) in _NUMBERS if known else not isinstance(node, ast.Tuple)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.ctx, ast.Load):
            # One of the results of a call, such as a derivative with its value.
            if not (isinstance(node.value, ast.Call) and self._is_fixed(node.slice)):
                raise self._unknown(node)
            if _numbers_of(self._of(node.value.func)[1]):  # an element of an array that it computes
                raise self._unknown(node)
            self.visit(node.value)
            return
        if not self._is_field(node.value):
            raise self._unknown(node)
        self.visit(node.value)
        for index in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
            if not self._is_fixed(index):
                raise self._unknown(node)

    def visit_BinOp(self, node: ast.BinOp | ast.UnaryOp) -> None:
        for operand in (node.left, node.right) if isinstance(node, ast.BinOp) else (node.operand,):
            known, value = self._of(operand)
            if known and type(value) not in _NUMBERS:
                raise self._unknown(node)
        self.generic_visit(node)

    visit_UnaryOp = visit_BinOp  # noqa: N815

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if not isinstance(node.target, ast.Name) or not self._is_number(node.value):
            raise self._unknown(node)
        self.generic_visit(node)

    def visit_If(self, node: ast.If | ast.IfExp) -> None:
        if not self._is_fixed(node.test):
            raise self._unknown(node)
        for part in [node.body, node.orelse] if isinstance(node, ast.IfExp) else [*node.body, *node.orelse]:
            self.visit(part)

    visit_IfExp = visit_If  # noqa: N815

    def visit_For(self, node: ast.For) -> None:
        count = node.iter
        is_range = isinstance(count, ast.Call) and self._of(count.func) == (True, builtins.range) and not count.keywords
        if not is_range or not isinstance(node.target, ast.Name) or node.orelse:
            raise self._unknown(node)
        assert isinstance(count, ast.Call)
        if not all(map(self._is_fixed, count.args)):
            raise self._unknown(node)
        self.visit(node.target)
        self._counters.append(node.target.id)
        for part in node.body:
            self.visit(part)
        self._counters.pop()

    def _is_fixed(self, node: ast.expr) -> bool:
        """Whether an expression has the same value each time: constants, shapes, and what is computed of them."""
        match node:
            case ast.Constant():
                return True
            case ast.Tuple():
                return all(map(self._is_fixed, node.elts))
            case ast.BinOp():
                return self._is_fixed(node.left) and self._is_fixed(node.right)
            case ast.UnaryOp():
                return self._is_fixed(node.operand)
            case ast.BoolOp():
                return all(map(self._is_fixed, node.values))
            case ast.Compare():
                return all(map(self._is_fixed, (node.left, *node.comparators)))
            case ast.IfExp():
                return all(map(self._is_fixed, (node.test, node.body, node.orelse)))
            case ast.Subscript():
                return self._is_fixed(node.value) and self._is_fixed(node.slice)
            case ast.Call(func=ast.Name(id="len"), args=[value], keywords=[]):
                return self._of(node.func) == (True, len) and self._is_passed_on(value)
            case ast.Attribute(attr="shape") if self._is_passed_on(node.value):
                return True
            case ast.Name() if node.id in self._counters:
                return True
            case ast.Name() if node.id in self._made:
                made = self._made.pop(node.id)  # what it is made of itself is not fixed
                is_fixed = self._is_fixed(made)
                self._made[node.id] = made
                return is_fixed
        known, value = self._of(node)
        return known and (value is None or type(value) in _NUMBERS_AND_NAMES)

    def _is_passed_on(self, node: ast.expr) -> bool:
        """Whether an expression names an argument or a variable, or a field or array that the plan knows."""
        if isinstance(node, ast.Name) and node.id in self._locals:
            return True
        return isinstance(self._of(node)[1], Field | np.ndarray)

    def visit_Call(self, node: ast.Call) -> None:
        known, called = self._of(node.func)
        if isinstance(node.func, ast.Attribute) and self._is_field(node.func.value):
            if node.func.attr not in _FIELD_METHODS:
                raise self._unknown(node)
        elif not known:
            raise self._unknown(node)
        elif any(called is one for one in _MAKERS):
            if not all(map(self._is_fixed_or_type, (*node.args, *[one.value for one in node.keywords]))):
                raise self._unknown(node)
            return
        elif _numbers_of(called):
            if node.keywords or len(node.args) != _numbers_of(called):
                raise self._unknown(node)
        else:
            self._found.scan(called)
        for given in (*node.args, *[one.value for one in node.keywords]):
            given = given.value if isinstance(given, ast.Starred) else given
            # An array is passed on unchanged.
            if not (isinstance(given, ast.Name | ast.Attribute) and isinstance(self._of(given)[1], np.ndarray)):
                self.visit(given)

    def _is_fixed_or_type(self, node: ast.expr) -> bool:
        return isinstance(self._of(node)[1], Scalar | type) or self._is_fixed(node)

    def _is_field(self, node: ast.expr) -> bool:
        return isinstance(self._of(node)[1], Field)
