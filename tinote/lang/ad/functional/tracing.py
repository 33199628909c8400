"""Recordings in which arguments and results of kernels are differentiated too, and those that carry tangents along.

A tape differentiates fields. Here a launch may get a `Variable` for a float argument, and what it returns becomes one.
`Trace` records in order to go back, `Pushes` carries tangents forward, and `SecondOrder` does both: it launches
pushforwards and goes back with the pushforwards of their pullbacks, which is forward mode over reverse mode.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tinote.compiler.launch.native import Code
from tinote.compiler.requests import PRIMAL, Derivative, Request
from tinote.errors import DifferentiationError
from tinote.ir.types import Tensor
from tinote.lang.ad.functional.forward_mode import FwdMode
from tinote.lang.ad.functional.variables import Dual, Variable, Variables
from tinote.lang.ad.journal.events import Custom, Launch
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.ad.journal.old_values import SavingLaunch
from tinote.lang.ad.journal.sweep import Sweep
from tinote.lang.data.fields import Field
from tinote.lang.kernels.kernel import Instance
from tinote.lang.session.state import world

__all__ = ["Pushes", "SecondOrder", "Trace", "give_gradients_duals"]

_PUSHFORWARD = Request(Derivative.FORWARD, arguments=True)


class _Link(NamedTuple):
    """The variables that went into a launch, by position among its float arguments, and those that came out."""

    inputs: list[tuple[int, Variable]]
    outputs: list[Variable]
    floats: int  # how many float arguments the kernel has
    number: int  # of the launch


class _Launch:
    """A launch with variables, in place of its `Code`. `tangents`: the kernel's pushforward runs, not the kernel.
    `saving`: what runs in the kernel's place, if anything.
    """

    def __init__(
        self,
        variables: Variables,
        instance: Instance,
        number: int,
        saving: SavingLaunch | None = None,
        *,
        tangents: bool,
    ) -> None:
        self.variables = variables
        self.instance = instance
        self.number = number
        self.saving = saving
        self.tangents = tangents
        self.link = _Link([], [], 0, number)

    def launch(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run; the floats that the kernel returns come as variables."""
        self._refuse_tensors()
        specialisation = self.instance.specialisation
        arrays = len(specialisation.arrays)
        scalars = values[arrays:]
        code = specialisation.code(_PUSHFORWARD if self.tangents else PRIMAL)
        kinds = [t.kind for t in code.parameters[: len(scalars)]]
        floats = [value for kind, value in zip(kinds, scalars, strict=True) if kind == "f"]
        for kind, value in zip(kinds, scalars, strict=True):
            if kind != "f" and isinstance(value, Variable):
                float(value)  # which says what is wrong
        inputs = [(k, value) for k, value in enumerate(floats) if isinstance(value, Variable)]
        extra = [v.tangent if isinstance(v, Variable) else 0.0 for v in floats] if self.tangents else []
        results = (self.saving or code).launch((*_plain(values), *extra))
        returned = self._kinds_of_results(code)
        count = len(returned)
        tangents = iter(results[count:]) if self.tangents else iter(())
        found: list[Any] = []
        for kind, value in zip(returned, results[:count], strict=True):
            if kind == "f":
                found.append(self.variables.new(value, next(tangents, 0.0), after=self.number))
            else:
                found.append(value)
        outputs = [v for v in found if isinstance(v, Variable)]
        self.link = _Link(inputs, outputs, len(floats), self.number)
        return tuple(found)

    def _kinds_of_results(self, code: Code) -> list[str]:
        kinds = [t.kind for t in code.results]
        return kinds[: len(kinds) - self._returned_floats()] if self.tangents else kinds

    def _returned_floats(self) -> int:
        return sum(t.kind == "f" for t in self.instance.specialisation.returns or () if not isinstance(t, Tensor))

    def _refuse_tensors(self) -> None:
        specialisation = self.instance.specialisation
        for t in self.instance.specialisation.returns or ():
            if isinstance(t, Tensor) and t.dtype.kind == "f":
                raise DifferentiationError(
                    f"kernel '{specialisation.source.name}' returns a vector or matrix, which is not differentiated",
                    specialisation.source.span,
                    hint="return its components as a tuple of numbers, or leave it in a field",
                )


def _plain(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple([v.value if isinstance(v, Variable) else v for v in values])


class Trace(Journal):
    """A journal with `variables`. `reverse` starts from the gradients of fields and from `seed`."""

    derivative = Request(Derivative.REVERSE, arguments=True)
    #: whether launches carry tangents along
    tangents = False

    def __init__(self) -> None:
        super().__init__()
        self.variables = Variables()
        self.links: dict[int, _Link] = {}  # of each launch, by its identity
        self._launch: _Launch | None = None
        self._seed: tuple[Variable, Dual] | None = None

    # ---- what the recorder is told

    def launching(self, instance: Instance, values: tuple[Any, ...]) -> Any:
        saving = super().launching(instance, _plain(values))
        self._launch = _Launch(self.variables, instance, self.saved.count + 1, saving, tangents=self.tangents)
        return self._launch

    def launched(self) -> None:
        super().launched()
        assert self._launch is not None
        self.links[id(self.events[-1])] = self._launch.link
        self.variables.launches = self.saved.count

    def custom(self, custom: Custom) -> None:
        super().custom(custom)
        self.variables.launches = self.saved.count

    # ---- the reverse sweep

    def seed(self, variable: Variable, adjoint: float) -> None:
        """Start the reverse sweep with the adjoint of a result."""
        self._seed = variable, Dual(adjoint)

    def reverse(self, gradients: Request | None = None, *, restore: bool = True) -> None:
        self.variables.begin()
        if self._seed is not None:
            self.variables.accumulate(*self._seed)
        _TraceSweep(self).run(restore=restore)
        self.variables.unwind(0)


class _TraceSweep(Sweep):
    """A reverse sweep through launches with variables."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace.events, trace.saved, trace.derivative)
        self._trace = trace

    def launch(self, launch: Launch) -> None:
        variables, link = self._trace.variables, self._trace.links[id(launch)]
        variables.unwind(link.number)
        seeds = [variables.adjoint(v) for v in link.outputs]
        values = [*launch.values_back(), *[seed.value for seed in seeds]]
        if self._trace.tangents:
            given = [0.0] * link.floats
            for k, variable in link.inputs:
                given[k] = variable.tangent
            values += [*given, *[seed.tangent for seed in seeds]]
        results = launch.instance.specialisation.code(self._trace.derivative).launch(values)
        for k, variable in link.inputs:
            tangent = results[link.floats + k] if self._trace.tangents else 0.0
            variables.accumulate(variable, Dual(results[k], tangent))


class SecondOrder(Trace):
    """A journal whose launches carry tangents, and whose reverse sweep gives the tangents of gradients: in the duals of
    the gradients of fields, and in the tangents of the variables' adjoints.
    """

    derivative = Request(Derivative.FORWARD_OVER_REVERSE, arguments=True)
    saves_by = Request(Derivative.FORWARD, arguments=True, records=True)
    tangents = True
    clears_duals = True

    def custom(self, custom: Custom) -> None:
        raise DifferentiationError(
            f"'{custom.name}' replaces its gradient by one of its own, whose own derivative is not known",
            custom.place,
            hint="differentiate the gradient that ti.ad.grad gives by differences",
        )


class Pushes(FwdMode):
    """Forward mode for a function: tangents of fields in their duals, and those of numbers with the variables."""

    def __init__(self, params: list[Field], seeds: list[Any], variables: Variables) -> None:
        self._along([], params, seeds)
        self.variables = variables

    def launching(self, instance: Instance, values: tuple[Any, ...]) -> Any:
        self.follow(instance, _plain(values), varying=any(isinstance(v, Variable) for v in values))
        return _Launch(self.variables, instance, 1, tangents=True)


def give_gradients_duals() -> None:
    """Give every field that has a gradient a dual, if it has none, and its gradient too."""
    for field in list(world.fields):
        if field.buffer.primal is None and field.has_grad:
            for one in (field, field.grad):
                one.ensure_dual()
