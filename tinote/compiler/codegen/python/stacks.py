"""Stacks of saved values."""

from __future__ import annotations

import ast

from tinote.compiler.codegen.python.emitter import PythonEmitter
from tinote.compiler.codegen.python.order import Ordering
from tinote.compiler.codegen.python.primitives import attribute, call, method, write
from tinote.ir import nodes as ir
from tinote.ir.types import Stack, element_type
from tinote.runtime.sites import Site, SiteKind


def new_stack(e: PythonEmitter, op: ir.NewStack) -> None:
    t = op.out.type
    assert isinstance(t, Stack)
    e.take(op.args)
    name = e.env[op.out] = e.name(op.out.name, e.uses.start[op], op.out)
    e.emit(ast.Assign([write(name)], call(attribute("stack"), ast.Constant(element_type(t).name))))


def push(e: PythonEmitter, op: ir.Push) -> None:
    stack, value = e.take(op.args)
    e.do(method(stack.code, "push", value.kept, at=e.site(Site(SiteKind.MEMORY, op.loc))))


def pop(e: PythonEmitter, op: ir.Pop) -> None:
    (stack,) = e.take(op.args)
    code = method(stack.code, "pop")
    if e.uses.count[op.out]:
        e.give(op, code, [stack], Ordering.FAILS)
    else:
        e.do(code)
