"""Device functions with a custom vector-Jacobian product (`ti.ad.grad_replaced`, `ti.ad.grad_for`).

r = polar(A)        what `polar` emits for A; then an operation that takes r and A and holds what its gradient
                    emits for A and the adjoint of r, as a region that only reverse mode looks into
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tinote.compiler.frontend.descriptions import describe
from tinote.compiler.frontend.functions.bodies import inline
from tinote.compiler.frontend.python.names import captured
from tinote.compiler.frontend.values import Value
from tinote.compiler.function_source import FunctionSource, function_of
from tinote.compiler.pysource.names import CaptureKind
from tinote.errors import Note
from tinote.ir.custom_vjp import CustomVJP
from tinote.ir.nodes import Atom, Load, MemoryOp, Op, Region, Store, Var
from tinote.ir.query import walk
from tinote.ir.types import element_type

if TYPE_CHECKING:
    from tinote.compiler.frontend.emitter import Emitter


def inline_custom_vjp(
    e: Emitter, source: FunctionSource, callee: Any, arguments: dict[str, Any], given: list[str]
) -> Any:
    """The result of calling `callee`, which has a custom VJP. `given`: the parameters that are values and have
    adjoints; the others are templates, and the object of a method.
    """
    replacement = callee.__tinote_replacement__
    gradient = captured(e, CaptureKind.ATTRIBUTE, replacement, "gradient", replacement.gradient)
    if gradient is None:
        e.error(
            f"the gradient of `{source.name}` is replaced, but no function was registered for it",
            f"decorate one with @ti.ad.grad_for({source.name})",
        )
    if arguments.keys() != {q.arg for q in source.parameters}:
        e.error(f"`{source.name}`, whose gradient is replaced, takes any number of arguments", "name its parameters")
    arguments = {q.arg: arguments[q.arg] for q in source.parameters}
    arguments |= {name: _value(e, source, name, arguments[name]) for name in given}
    with e.b.region() as opened:
        result = inline(e, source, arguments)
    for op in walk(Region((), tuple(opened.body))):
        _refuse_memory(e, op, source, "must depend on its arguments alone")
    e.splice(opened)
    parts = list(result) if isinstance(result, tuple | list) else [result]
    results = [e.as_value(e.force(part)) for part in parts if e.is_value(part)]
    if len(results) != len(parts) or any(r.dtype.kind != "f" for r in results):
        e.error(
            f"`{source.name}`, whose gradient is replaced, gives {describe(result)}",
            "let it return floating-point numbers, vectors and matrices",
        )
    seeds = tuple([Var(r.type, "d_result") for r in results])
    with e.b.region(*seeds) as adjoint:
        yields = _adjoints(e, source, gradient, arguments, given, seeds)
    for op in walk(Region((), tuple(adjoint.body))):
        _refuse_memory(e, op, function_of(gradient) or source, "computes with its arguments alone")
    inputs = tuple([arguments[name].atom for name in given])
    outs = tuple([Var(r.type, source.name) for r in results])
    e.b.emit(CustomVJP(tuple([r.atom for r in results]), inputs, adjoint.close(*yields), outs, e.b.loc))
    found = [Value(out) for out in outs]
    return type(result)(found) if isinstance(result, tuple | list) else found[0]


def _value(e: Emitter, source: FunctionSource, name: str, front: Any) -> Value:
    front = e.force(front)
    if not e.is_value(front):
        e.error(
            f"`{source.name}`, whose gradient is replaced, is called with {describe(front)} for `{name}`",
            "pass numbers, vectors and matrices, or make it a ti.template()",
        )
    return e.as_value(front)


def _adjoints(
    e: Emitter,
    source: FunctionSource,
    gradient: Any,
    arguments: dict[str, Any],
    given: list[str],
    seeds: tuple[Var, ...],
) -> tuple[Atom, ...]:
    """The adjoints of the arguments, computed by the gradient from those of the results."""
    vjp = function_of(gradient)
    assert vjp is not None
    values = [*arguments.values(), *[Value(seed) for seed in seeds]]
    if len(vjp.parameters) != len(values):
        e.error(
            f"`{vjp.name}`, the gradient of `{source.name}`, takes {len(vjp.parameters)} arguments, and not "
            f"{len(values)}",
            "it gets the arguments of the call, and then the adjoint of each result",
            notes=[Note("the gradient", vjp.span)],
        )
    found = inline(e, vjp, dict(zip([q.arg for q in vjp.parameters], values, strict=True)))
    parts = list(found) if isinstance(found, tuple) else [found]
    wanted = [arguments[name] for name in given]
    if len(parts) != len(wanted):
        e.error(
            f"`{vjp.name}` gives {len(parts)} adjoints, and `{source.name}` has {len(wanted)} arguments",
            "return one for each argument that is not a template, in their order",
            notes=[Note("the gradient", vjp.span)],
        )
    adjoints: list[Atom] = []
    for part, value in zip(parts, wanted, strict=True):
        if value.dtype.kind != "f":
            adjoints.append(value.atom)  # an integer has no adjoint: it is not used
            continue
        if not e.is_value(part) or e.shape(part) != value.shape:
            e.error(
                f"`{vjp.name}` gives {describe(part)} as the adjoint of {describe(value)}",
                notes=[Note("the gradient", vjp.span)],
            )
        adjoints.append(e.cast(part, element_type(value.type)).atom)
    return tuple(adjoints)


def _refuse_memory(e: Emitter, op: Op, source: FunctionSource, what: str) -> None:
    if isinstance(op, MemoryOp) and (not isinstance(op, Load) or op.buffer.adjoint is not None):
        verb = "reads" if isinstance(op, Load) else "writes" if isinstance(op, Store) else "changes"
        e.error(
            f"`{source.name}` {what}, and {verb} '{op.buffer.name}'",
            "pass what it needs, and return what it computes",
            notes=[Note("here", op.loc)],
        )
