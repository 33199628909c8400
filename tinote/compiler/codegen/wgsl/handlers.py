"""The handlers that emit each kind of operation."""

from __future__ import annotations

from collections.abc import Callable

from tinote.compiler.codegen.wgsl.cells import get, local, set_
from tinote.compiler.codegen.wgsl.checks import check, print_
from tinote.compiler.codegen.wgsl.control import for_, if_, while_
from tinote.compiler.codegen.wgsl.emitter import TaskEmitter
from tinote.compiler.codegen.wgsl.memory import atomic, extent, load, store
from tinote.compiler.codegen.wgsl.stacks import new_stack, pop, push
from tinote.ir.nodes import (
    Atomic,
    Check,
    Extent,
    For,
    Get,
    If,
    Load,
    Local,
    NewStack,
    Op,
    Pop,
    Prim,
    Print,
    Push,
    Set,
    Store,
    While,
)

HANDLERS: dict[type[Op], Callable[..., None]] = {
    Prim: TaskEmitter.prim,
    Load: load,
    Store: store,
    Atomic: atomic,
    Extent: extent,
    For: for_,
    While: while_,
    If: if_,
    Local: local,
    Get: get,
    Set: set_,
    NewStack: new_stack,
    Push: push,
    Pop: pop,
    Check: check,
    Print: print_,
}
