"""Python functions from IR: `ti.init(arch=ti.python)` runs them, and `kernel.python()` shows them.

    def step(rt, dt):                                   @ti.kernel
        for i in rt.iterations(0, 8):                        def step(dt: ti.f32):
            y = rt.f32(rt.v[i] * 2.0)                       for i in v:
            rt.x[i] = rt.f32(rt.f32(dt * y) + rt.x[i])          y = v[i] * 2
                                                                x[i] = dt * y + x[i]

The function is made from the first typed IR, as a syntax tree whose nodes stand where the user's own code stands: it is
compiled under the name of the user's file or cell, so breakpoints, steps and tracebacks name the user's lines, and the
user's variables are Python's local variables, with the user's names. The code of a device function runs in the
kernel's frame. If it is in the same file or cell it has its own lines, and a breakpoint there stops as well; a code
object has only one file, so code from another one has the line of the inlined call.

Derivatives are written in the same way: their operations stand where the primal ones do. `order.py` combines operations
into expressions and statements, `names.py` finds the names; generated code calls `support.py`.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from tinote.compiler.codegen.python.emitter import PythonEmitter
from tinote.compiler.codegen.python.handlers import HANDLERS
from tinote.compiler.codegen.python.names import identifier
from tinote.compiler.codegen.python.primitives import RUNTIME, attribute, call, write
from tinote.ir import nodes as ir
from tinote.runtime.sites import Site


class PythonModule(NamedTuple):
    """Generated code. `tree` defines one function, `name`, of a launch, the addresses of `arrays` and the scalar
    arguments. The launch has the `memories` of fields as attributes and makes the `temporaries`, both by name; `sites`
    gives the meaning of site numbers in the code.
    """

    tree: ast.Module
    name: str
    sites: tuple[Site, ...]
    arrays: dict[str, ir.Buffer]
    memories: dict[str, ir.Buffer]
    temporaries: dict[str, ir.Buffer]


def generate(fn: ir.Function, reports_overflow: bool = False, checks_division: bool = True) -> PythonModule:
    """Python code of a function in any form before offloading. Indices are always checked: a kernel must never access
    other memory.
    """
    return module_of(PythonEmitter(fn, HANDLERS, reports_overflow, checks_division))


def module_of(e: PythonEmitter) -> PythonModule:
    """Write the function of `e`."""
    for buffer in e.buffers:
        e.memory(buffer)
    fn = e.fn
    params = fn.region.params
    for v in params:
        e.env[v] = e.names.take(v.name, 0, e.uses.last[v])
    for name in e.temporaries:
        made = call(attribute("temporary"), ast.Constant(name))
        e.emit(ast.Assign([write(name)], made))
    e.ops(fn.region)
    e.emit(ast.Return(ast.Tuple([t.code for t in e.take(fn.region.yields)], ast.Load())))
    given = [ast.arg(name) for name in (RUNTIME, *e.arrays, *[e.env[v] for v in params])]
    name = identifier(fn.name)
    definition = ast.FunctionDef(name, ast.arguments([], given, None, [], [], None, []), e.out, [])
    if "type_params" in definition._fields:  # since Python 3.12
        definition.type_params = []  # type: ignore[attr-defined]
    e.locate(definition, fn.loc)
    return PythonModule(
        ast.Module([definition], []),
        name,
        tuple(e.sites),
        e.arrays,
        e.memories,
        e.temporaries,
    )
