"""The handlers that emit each kind of operation."""

from __future__ import annotations

from collections.abc import Callable

from tinote.compiler.codegen.llvm import cells as llvm_cells
from tinote.compiler.codegen.llvm import checks as llvm_checks
from tinote.compiler.codegen.llvm import control as llvm_control
from tinote.compiler.codegen.llvm import lanes as llvm_lanes
from tinote.compiler.codegen.llvm import memory as llvm_memory
from tinote.compiler.codegen.llvm.function import TaskText
from tinote.compiler.codegen.llvm.tiles import load_tile, store_tile
from tinote.ir import nodes as ir
from tinote.ir.lanes import Broadcast, LoadTile, MaskedLoad, MaskedStore, Ramp, Reduce, StoreTile

HANDLERS: dict[type[ir.Op], Callable[..., None]] = {
    ir.Prim: TaskText.prim,
    ir.Load: llvm_memory.load,
    ir.Store: llvm_memory.store,
    ir.Atomic: llvm_memory.atomic,
    ir.Extent: llvm_memory.extent,
    ir.For: llvm_control.for_,
    ir.While: llvm_control.while_,
    ir.If: llvm_control.if_,
    ir.Local: lambda e, op: llvm_cells.local(e, e.stacks, op),
    ir.Get: llvm_cells.get,
    ir.Set: llvm_cells.set_,
    ir.NewStack: lambda e, op: e.stacks.new(op),
    ir.Push: lambda e, op: e.stacks.push(op),
    ir.Pop: lambda e, op: e.stacks.pop(op),
    ir.Check: llvm_checks.check,
    ir.Print: llvm_checks.print_,
    LoadTile: lambda e, op: load_tile(e, e.stacks, op),
    StoreTile: store_tile,
    MaskedLoad: llvm_lanes.masked_load,
    MaskedStore: llvm_lanes.masked_store,
    Broadcast: llvm_lanes.broadcast,
    Ramp: llvm_lanes.ramp,
    Reduce: llvm_lanes.reduce,
}
