"""The entry point of the front end: from a kernel's syntax tree and the arguments of one call to IR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tinote.compiler.frontend.descriptions import describe
from tinote.compiler.frontend.emitter import Emitter, Silenced
from tinote.compiler.frontend.expressions.structs import leaves_of
from tinote.compiler.frontend.functions.bodies import annotated_body, result_types, survey
from tinote.compiler.frontend.python.names import outside
from tinote.compiler.frontend.scopes import Annotated, FunctionFrame, Results
from tinote.compiler.frontend.syntax.handlers import HANDLERS
from tinote.compiler.frontend.values import POISON, ArrayValue, PackValue, StructValue, Value
from tinote.compiler.function_source import FunctionSource
from tinote.compiler.protocol import StructInfo, unit_of
from tinote.compiler.signature import (
    ArgumentSpec,
    ArrayArgument,
    Lowered,
    PackArgument,
    StructArgument,
    TemplateArgument,
)
from tinote.config import Config
from tinote.errors import TinoteError, raise_together, refusing_deep_nests
from tinote.ir.nodes import Atom, Function, Region, Var
from tinote.ir.types import Scalar, Tensor, indices_of

if TYPE_CHECKING:
    from tinote.ir.units import Unit

DEFAULT = Config()
#: Greatest number of errors of one kernel that are reported together. Chosen, not measured.
_MAX_ERRORS_SHOWN = 10


def lower(source: FunctionSource, arguments: Sequence[ArgumentSpec], config: Config = DEFAULT) -> Lowered:
    """Lower a kernel for one template signature. `arguments`: one for each parameter, in order.

    Raises `CompilationError`s: the first one found, with the others attached.
    """
    with refusing_deep_nests(source.name, source.span):
        return _lowered(Emitter(config, HANDLERS), source, arguments)


def _lowered(e: Emitter, source: FunctionSource, arguments: Sequence[ArgumentSpec]) -> Lowered:
    params: list[Var] = []
    e.b.loc = source.span
    with e.b.region() as opened:
        e.top = e.here()
        e.statement = e.top, 0
        frame = FunctionFrame(source, None, None, Results(e.here()))
        e.frame, e.scope = frame, frame.scope
        yields: tuple[Atom, ...] = ()
        returns: tuple[Scalar | Tensor, ...] | None = None
        is_tuple = False
        try:
            _bind_arguments(e, params, source, arguments)
            survey(e)
            annotated = frame.annotated = result_types(e, source)
            types = None if annotated is None else _returned_types(e, source, annotated)
            result = annotated_body(e, frame)
            if not e.errors:
                yields = _yields(e, source, annotated, result)
                returns = None if types is None else _flat(types)
                is_tuple = annotated is not None and (annotated.is_tuple or returns != annotated.types)
        except TinoteError as error:
            e.report(error)
        except Silenced:
            pass
    if e.errors:
        e.errors.sort(key=_order)
        raise_together(e.errors[:_MAX_ERRORS_SHOWN])
    if e.launch_seed is not None:
        params.append(e.launch_seed)
    region = Region(tuple(params), tuple(opened.body), yields)
    function = Function(source.name, region, source.span)
    return Lowered(
        function,
        tuple(e.captures.values()),
        returns,
        is_tuple,
        e.launch_seed is not None,
        tuple(e.warnings),
        e.reproducible,
        e.units,
    )


def _order(error: TinoteError) -> tuple[int, int]:
    """The key that sorts errors by the kernel's own lines."""
    outermost = error.span.chain()[-1]
    return outermost.line, outermost.column


def _bind_arguments(e: Emitter, params: list[Var], source: FunctionSource, arguments: Sequence[ArgumentSpec]) -> None:
    parameters = source.parameters
    assert len(parameters) == len(arguments), "the driver matches arguments with parameters"
    for parameter, argument in zip(parameters, arguments, strict=True):
        with e.at(parameter):
            e.bind(parameter.arg, _argument(e, params, parameter.arg, argument), "argument of the kernel")


def _argument(e: Emitter, params: list[Var], name: str, argument: ArgumentSpec) -> Any:
    if isinstance(argument, TemplateArgument):
        return outside(e, argument.value)
    if isinstance(argument, ArrayArgument):
        return ArrayValue(argument.buffer, argument.clamps)
    if isinstance(argument, PackArgument):
        members = {n: _argument(e, params, f"{name}_{n}", given) for n, given in argument.members.items()}
        return PackValue(members, argument.adds_at)
    if isinstance(argument, StructArgument):
        return _struct_argument(e, params, name, argument.info)
    return _parameter(e, params, name, argument.type, argument.unit)


def _struct_argument(e: Emitter, params: list[Var], name: str, info: StructInfo) -> StructValue:
    members: dict[str, Any] = {}
    for member, t in info.members.items():
        below = f"{name}_{member}"
        members[member] = (
            _struct_argument(e, params, below, t) if isinstance(t, StructInfo) else _parameter(e, params, below, t)
        )
    return StructValue(members, info)


def _parameter(e: Emitter, params: list[Var], name: str, t: Scalar | Tensor, unit: Unit | None = None) -> Value:
    def parameter(t: Scalar, name: str) -> Var:
        params.append(Var(t, name))
        if unit is not None:
            e.units[params[-1]] = unit
        return params[-1]

    if isinstance(t, Scalar):
        return Value(parameter(t, name))
    found: list[Atom] = [parameter(t.dtype, f"{name}_{'_'.join(map(str, index))}") for index in indices_of(t.shape)]
    return Value(e.b.pack(found, t, name))


def _yields(e: Emitter, source: FunctionSource, annotated: Annotated | None, result: Any) -> tuple[Atom, ...]:
    e.b.loc = e.frame.results.span or source.span
    if result is POISON:
        raise Silenced
    if annotated is None:
        if result is not None:
            e.error(
                "this kernel returns a value, and its type is not annotated",
                f"write `def {source.name}(…) -> ti.f32:` with the type it returns",
            )
        return ()
    parts = result if annotated.is_tuple else (result,)
    leaves = [leaf for part in parts for leaf in (leaves_of(part) if isinstance(part, StructValue) else [part])]
    found = [e.components(leaf) if leaf.shape else [leaf] for leaf in leaves]
    if len(found) == len(annotated.parts):
        for components, hint in zip(found, annotated.parts, strict=True):
            e.units |= {one.atom: unit for one in components if (unit := unit_of(hint)) and isinstance(one.atom, Var)}
    return tuple([component.atom for components in found for component in components])


def _returned_types(
    e: Emitter, source: FunctionSource, annotated: Annotated
) -> tuple[Scalar | Tensor | StructInfo, ...]:
    """The types that a kernel returns. Raises for an invalid annotation."""
    for part, t in zip(annotated.parts, annotated.types, strict=True):
        if t is None:
            e.error(
                f"a kernel cannot return {describe(part)}",
                "it returns numbers, vectors, matrices, structs, or tuples of them",
                source.tree.returns,
            )
    return tuple([t for t in annotated.types if t is not None])


def _flat(types: tuple[Scalar | Tensor | StructInfo, ...]) -> tuple[Scalar | Tensor, ...]:
    """The types with those of each struct's members in its place."""
    return tuple([leaf for t in types for leaf in (t.leaves() if isinstance(t, StructInfo) else (t,))])
