"""Generators: device functions with `yield`. They are inlined at the loops over them, the loop's body at each `yield`.

    def evens(n):                   for k in evens(m):               for i in range(m):
        for i in range(n):              s += k               →           if i % 2 == 0:
            if i % 2 == 0:                                                   k = i
                yield i                                                      s += k

The body stays a part of the function around the loop, with its names and jumps. One that leaves the loop by `break` or
`return` also ends the generator: the flag that the loop was left is the one that the generator has returned.
"""

from __future__ import annotations

import ast
from typing import Any

from tinote.compiler.frontend import analysis
from tinote.compiler.frontend.emitter import Control, Emitter
from tinote.compiler.frontend.expressions.bindings import bind_target
from tinote.compiler.frontend.expressions.domains import check_unrolled
from tinote.compiler.frontend.functions.bodies import inline
from tinote.compiler.frontend.functions.jumps import returned_flag
from tinote.compiler.frontend.functions.statements import lower_iteration
from tinote.compiler.frontend.scopes import Completion, Consumer, LoweredLoop
from tinote.compiler.frontend.values import GeneratorCall, Value
from tinote.ir import primitives as p
from tinote.ir.nodes import false
from tinote.ir.types import u1


def loop_over(e: Emitter, node: ast.For, call: GeneratorCall, leaving: analysis.Jumps, options: dict[str, Any]) -> None:
    """Lower a loop over the items of a generator. With `serialize`, its own loops run in order."""
    loop = LoweredLoop()
    if leaving.breaks or leaving.returns:
        loop.broken = e.cell(u1, false, "broken")
    if leaving.returns:
        returned_flag(e)
    frame, scope, stopped = e.frame, e.scope, e.stopped

    def body(item: Any) -> Completion:
        inside = e.frame, e.scope, e.stopped, e.loop_options
        e.frame, e.scope, e.stopped, e.loop_options = frame, scope, stopped, {}
        try:
            with e.block("loop"):
                bind_target(e, node.target, item, "variable of a loop over a generator")
                completion = lower_iteration(e, loop, node.body)
            if leaving.returns and loop.broken is not None and frame.results.returned is not None:
                flags = [Value(e.b.get(flag)) for flag in (loop.broken, frame.results.returned)]
                e.b.set(loop.broken, e.prim(p.or_, *flags).atom)
            return completion
        finally:
            e.frame, e.scope, e.stopped, e.loop_options = inside

    in_order = int(bool(options.get("serialize") or options.get("parallelize") == 1))
    e.depth += in_order
    try:
        with e.at(node.iter):
            inline(e, call.source, call.arguments, call.scope, consumer=Consumer(body, loop.broken, options))
    finally:
        e.depth -= in_order


def yield_(e: Emitter, statement: ast.Expr, rest: list[ast.stmt], tail: bool) -> Completion | None:
    """Lower the body of the loop around the generator for one item."""
    node = statement.value
    assert isinstance(node, ast.Yield)
    consumer = e.frame.consumer
    if consumer is None:
        e.unsupported("`yield`", "it stands in a device function, `@ti.func`, that a `for` loops over")
    if node.value is None:
        e.error("this `yield` gives no value")
    item = e.evaluate(node.value)
    e.unrolled += 1
    check_unrolled(e, e.unrolled)
    completion = consumer.body(item)
    if consumer.left is None:
        return None
    e.frame.results.sets += 1
    return Completion.LEAVES if completion is Completion.LEAVES else None


def yield_from(e: Emitter, statement: ast.Expr, rest: list[ast.stmt], tail: bool) -> Completion | None:
    """Lower `yield from items` as the loop `for _ in items: yield _`."""
    node = statement.value
    assert isinstance(node, ast.YieldFrom)
    again = ast.Expr(ast.Yield(ast.Name("_", ast.Load())))
    loop = ast.For(ast.Name("_", ast.Store()), node.value, [again], [])
    for made in (loop, loop.target, again, *ast.walk(again.value)):
        ast.copy_location(made, statement)
    e.handlers.statements[ast.For](e, loop)
    return None


CONTROL: Control = {ast.Yield: yield_, ast.YieldFrom: yield_from}
