"""The handlers that emit each kind of operation."""

from __future__ import annotations

from collections.abc import Callable

from tinote.compiler.codegen.wgsl.cells import get, local, set_
from tinote.compiler.codegen.wgsl.checks import check, print_
from tinote.compiler.codegen.wgsl.control import for_, if_, while_
from tinote.compiler.codegen.wgsl.emitter import TaskEmitter
from tinote.compiler.codegen.wgsl.memory import atomic, extent, load, store
from tinote.compiler.codegen.wgsl.stacks import new_stack, pop, push
from tinote.ir import nodes as ir

HANDLERS: dict[type[ir.Op], Callable[..., None]] = {
    ir.Prim: TaskEmitter.prim,
    ir.Load: load,
    ir.Store: store,
    ir.Atomic: atomic,
    ir.Extent: extent,
    ir.For: for_,
    ir.While: while_,
    ir.If: if_,
    ir.Local: local,
    ir.Get: get,
    ir.Set: set_,
    ir.NewStack: new_stack,
    ir.Push: push,
    ir.Pop: pop,
    ir.Check: check,
    ir.Print: print_,
}
