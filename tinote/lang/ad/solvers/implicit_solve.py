"""Solutions of F(x, θ) = 0 on the journal, where kernels compute F: the iterations are not differentiated; derivatives
come from the equation that the solution fulfils.

With the Jacobian J of F by x, the adjoint λ of Jᵀ λ = x̄ gives what the adjoints of θ grow by, -λᵀ ∂F/∂θ, by one
reverse sweep through F; the tangent is that of J ẋ = -Ḟ, where Ḟ is F's along θ̇ alone.

At second order the solution is followed by two Newton steps x - J⁻¹ F(x, θ), J being held: they change no value, and
each makes one more order of derivatives right, since such a step has no slope by x at a solution. F's launches and the
steps are records as any others, which have derivatives.

Method: the implicit function theorem; Griewank and Walther, "Evaluating Derivatives", 2nd ed., 2008, chapter 15. How
iterations whose slope vanishes gain an order: Gilbert, "Automatic differentiation and iterative processes", Optim.
Methods Softw. 1, 1992.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tinote.ir.nodes import Buffer
from tinote.lang.ad.custom import Inside
from tinote.lang.ad.functional.effects import Effects
from tinote.lang.ad.functional.forward import Forward
from tinote.lang.ad.functional.forward_mode import ForwardMode
from tinote.lang.ad.journal.custom_sweep import CustomSweep
from tinote.lang.ad.journal.events import Custom, NumberOf
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.ad.journal.operation import Computation, Rule, RunOperation
from tinote.lang.ad.journal.temporary_adjoints import NO_ADJOINTS, SweepAdjoints
from tinote.lang.ad.memory.effects import BlockEffects
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.data.fields import Field
from tinote.lang.kernels.access_region import whole_regions
from tinote.lang.session.state import memory_of, note_overwriting, recorder, recording_as
from tinote.runtime.memory import MemoryCopies
from tinote.runtime.seam import active_listener
from tinote.source import Span

Array = np.ndarray[Any, Any]
Arrays = Sequence[Array]
Product = Callable[[Array], Array]


class ImplicitSolve:
    """A solution that is asked for. `unknown` gets it; `run` computes F of what `point` holds (`unknown` itself, or
    memory that is nobody else's) into `result`. `right`: what stands on the right, F(x, θ) = right, if anything does.
    `name` and `span`: for errors.

    `solve()` finds the solution and leaves it in `unknown`, by launches and by writing fields. `linear(product,
    transposed)` gives a function that solves with the Jacobian, or its transpose, at the solution; `product` multiplies
    by the transpose.
    """

    def __init__(
        self,
        run: Callable[[], Any],
        unknown: Field,
        point: Field,
        result: Field,
        right: Field | None,
        solve: Callable[[], None],
        linear: Callable[[Product, bool], Product],
        name: str,
        span: Span,
    ) -> None:
        self._run = run
        self._unknown = unknown
        self._point = point
        self._result = result
        self._right = right
        self._solve = solve
        self._linear = linear
        self._name = name
        self._span = span

    def perform(self) -> None:
        """Solve, with derivatives for who records."""
        listener = active_listener()
        if listener is not None:
            listener.taking(f"{self._name}, whose number of iterations varies")
        found = recorder.get()
        if isinstance(found, Journal) and found.derivative.has_tangents:
            self._at_second_order(found, found)
        elif isinstance(found, Journal):
            self._on_journal(found)
        elif isinstance(found, ForwardMode) and not found.lifts:
            self._forward(found)
        elif isinstance(found, Forward):
            base = found.root
            lifts = len(found.lifts)
            is_within = lifts == 1 and isinstance(base, ForwardMode) and base.takes_blocks
            if is_within or (base.lets_record and lifts <= 2):
                self._forward_twice(found)
            elif lifts > 1 or not isinstance(base, Journal) or base.runs_again or base.derivative.has_tangents:
                found.refuse_custom(self._name, self._span)
            else:
                self._at_second_order(found, base)
        else:
            self._solve()

    # ---- reverse

    def _on_journal(self, tape: Journal) -> None:
        custom = Custom(self._name, self._span, lambda _: None)
        unknown = self._unknown.buffer
        with recording_as(Inside(tape, custom)):
            self._run()  # says what it reads and writes
            for field in (self._unknown, self._point):
                tape.overwriting(field.buffer)
        with recording_as(None):
            self._solve()
        known = {b for b in custom.loaded - custom.written if b is not self._point.buffer}
        if self._right is not None:
            known.add(self._right.buffer)
        scratch = custom.written - {unknown}
        custom.effects = BlockEffects(known | {unknown}, custom.written | {unknown}, scratch | {unknown})
        active = dict(tape.activity.spans)
        followed = any(tape.activity.follows(buffer) for buffer in known)
        if followed:
            tape.activity.gets_active(unknown, self._span)

        def reads_active(reached: set[Buffer]) -> set[Buffer]:
            if unknown.adjoint is not None or unknown in reached:
                return {buffer for buffer in known if buffer in active}
            return set()

        solution = self._unknown.held().copy()
        custom.gradient = lambda sweep: self._reverse(sweep, solution, active, custom.written)
        custom.reads_active = reads_active
        custom.lost = {}
        if followed and not self._computes_more(custom.written):
            # What F has left there is no solution: who reads it would have no derivative.
            custom.lost = {b: self._span for b in scratch if b.dtype.kind == "f" and b.primal is None}
        computed = [field.buffer for field in (self._point, self._result) if field.buffer is not unknown]
        custom.scratch = whole_regions(dict.fromkeys(computed))
        custom.again = self._perform_again
        custom.tells_gradients = True
        if followed or tape.activity.follows(unknown):
            tape.custom(custom)
        if followed:
            self._refresh(custom.written)

    def _perform_again(self, journal: Journal, of: NumberOf) -> dict[int, Any]:
        """Do the same in another recording, which is open."""
        self.perform()
        return {}

    def _reverse(self, sweep: CustomSweep, solution: Array, active: dict[Buffer, Span], written: set[Buffer]) -> None:
        adjoints = sweep.adjoints
        bar = adjoints.of(self._unknown.buffer)
        given = np.zeros(solution.size) if bar is None else numbers(bar).astype(np.float64).ravel()
        if bar is not None:
            numbers(bar)[...] = 0
        if not given.any():
            return
        for buffer in written:
            sweep.overwriting(buffer)
        sweep.overwriting(self._point.buffer)
        recorded: _Recorded | None = None

        def record() -> _Recorded:
            self._point.held()[...] = solution
            return _Recorded(self._run, self._point, self._result, active, adjoints)

        def transposed(vector: Array) -> Array:
            nonlocal recorded
            if recorded is None:
                recorded = record()
                kept.add_all(recorded.gradients)
            return recorded.transposed(vector)

        with self._leaving_gradients(active, adjoints) as kept:
            found = self._linear(transposed, True)(given)
        if recorded is not None:
            recorded.journal.forget()
        # What solves may have launched F elsewhere since.
        recorded = record()
        recorded.transposed(-found)
        recorded.clear()
        recorded.journal.forget()
        right = None if self._right is None else adjoints.of(self._right.buffer)
        if right is not None:
            array = numbers(right)
            array += found.reshape(array.shape).astype(array.dtype)

    @contextmanager
    def _leaving_gradients(self, active: dict[Buffer, Span], adjoints: SweepAdjoints) -> Iterator[MemoryCopies]:
        """A block after which gradients are what they were: those of `active` memory, and what is added."""
        copies = MemoryCopies()
        for buffer in active:
            bar = adjoints.of(buffer)
            if bar is not None:
                copies.add(memory_of(bar))
        try:
            yield copies
        finally:
            copies.put_back()

    # ---- second order

    def _at_second_order(self, found: Journal | Forward, tape: Journal) -> None:
        """`found`: what records the steps, `tape` itself or a block inside of it."""
        custom = Custom(self._name, self._span, lambda _: None)
        with recording_as(Inside(tape, custom)):
            self._run()  # says what it reads and writes
        found.writing(self._unknown.buffer, ..., 0.0)
        if self._point is not self._unknown:
            tape.overwriting(self._point.buffer)
        with recording_as(None):
            self._solve()
            self._point.held()[...] = self._unknown.held()
            rule = _Correction(self, custom.effects, self._linear(self._no_transpose, False))
        again = self._perform_again
        whole = Custom(self._name, self._span, lambda _: None, needs_fields=False, again=again)
        tape.custom(whole)
        before = len(tape.events)
        self._steps(rule, tape)
        whole.parts = len(tape.events) - before

    def _steps(self, rule: _Correction, tape: Journal | None) -> None:
        inputs = [self._unknown, self._result, *([] if self._right is None else [self._right])]
        for _ in range(2):
            if self._point is not self._unknown:
                self._point.copy_from(self._unknown)
            self._run()
            _Step(rule, tape, inputs, [self._unknown], self._name, self._span).run()
        self._refresh(rule.written)

    # ---- forward

    def _forward_twice(self, found: Forward) -> None:
        """In forward mode that `found` lies in."""
        base, effects = found.root, Effects()
        with effects.listening(), recording_as(base if base.lets_record else None):
            self._run()  # says what it reads and writes
            note_overwriting(self._point.buffer)
        found.writing(self._unknown.buffer, ..., 0.0)
        with recording_as(None):
            self._solve()
            self._point.held()[...] = self._unknown.held()
            rule = _Correction(self, effects, self._linear(self._no_transpose, False))
        self._steps(rule, None)

    def _forward(self, mode: ForwardMode) -> None:
        unknown, result = self._unknown.buffer, self._result.buffer
        with mode.nested(), recording_as(None):
            for buffer in (unknown, self._point.buffer):
                note_overwriting(buffer)
            self._solve()
        self._point.held()[...] = self._unknown.held()
        for buffer in (unknown, self._point.buffer):
            mode.writing(buffer, ...)  # it does not vary yet
        effects = Effects()
        with effects.listening():
            self._run()
        given = mode.tangent(result)
        along = None if self._right is None else mode.tangent(self._right.buffer)
        if given is None and along is None:
            return
        shape = numbers(unknown).shape
        parts = [
            sign * numbers(one).astype(np.float64) for sign, one in ((-1.0, given), (1.0, along)) if one is not None
        ]
        change: Array = parts[0] if len(parts) == 1 else parts[0] + parts[1]
        mode.duals.add(unknown)
        target = mode.tangent(unknown)
        if target is None:
            return
        with recording_as(None):
            linear = self._linear(self._no_transpose, False)
            if change.ndim == len(shape):
                numbers(target)[...] = linear(np.ravel(change)).reshape(shape)
            else:
                for k in range(change.shape[-1]):
                    numbers(target)[..., k] = linear(np.ravel(change[..., k])).reshape(shape)
            self._point.held()[...] = self._unknown.held()
        self._refresh(effects.written)

    def _computes_more(self, written: Collection[Buffer]) -> bool:
        """Whether F computes other fields on its way, which can be read afterwards."""
        return not {field.buffer for field in (self._unknown, self._point, self._result)}.issuperset(written)

    def _refresh(self, written: Collection[Buffer]) -> None:
        """Let these vary with the solution."""
        if self._computes_more(written):
            if self._point is not self._unknown:
                self._point.copy_from(self._unknown)
            self._run()

    @staticmethod
    def _no_transpose(_: Array) -> Array:
        raise NotImplementedError("forward mode multiplies by the Jacobian, not by its transpose")


class _Correction:
    """The rule of a Newton step from a solution, x - J⁻¹ (F - b), with the Jacobian J at the solution held."""

    def __init__(self, solve: ImplicitSolve, touched: BlockEffects, linear: Product) -> None:
        self._solve = solve
        self._linear = linear
        self._count = 2 if solve._right is None else 3
        #: what F reads and writes
        self.loaded, self.written = set(touched.loaded), set(touched.written)
        self._solution = solve._unknown.held().copy()
        self._kept = MemoryCopies()
        self._linear_transposed: Product | None = None
        self._recorded: _Recorded | None = None
        self._of: tuple[dict[Buffer, Span], SweepAdjoints] = {}, NO_ADJOINTS

    def values(self, inputs: Arrays) -> Arrays:
        """Those of the solution."""
        return [inputs[0]]

    def tangents(self, tangents: Arrays) -> Arrays:
        """One solve."""
        with self._untouched():
            return [tangents[0] - self._linear(_difference(tangents[1:]))]

    def adjoints(self, adjoints: Arrays) -> Arrays:
        """One solve with the transpose."""
        found = self._back(adjoints[0])
        return [adjoints[0], -found, found][: self._count]

    def adjoint_tangents(self, tangents: Arrays, adjoints: Arrays, adjoint_tangents: Arrays) -> Arrays:
        """The same, as the step is linear."""
        return self.adjoints(adjoint_tangents)

    def pushed(
        self, run: RunOperation, inputs: Sequence[Field], output: Field, tangents: Sequence[Field], target: Field
    ) -> None:
        """The same step of the tangents, as it is linear."""
        run(_CorrectionAlong(self), tangents, target)

    @contextmanager
    def within(self, active: dict[Buffer, Span], sweep: CustomSweep) -> Iterator[None]:
        """A part of a reverse sweep, in which memory without a gradient has its adjoints."""
        self._of = active, sweep.adjoints
        try:
            yield
        finally:
            self._of = {}, NO_ADJOINTS

    def _back(self, adjoint: Array) -> Array:
        if not adjoint.any():
            return np.zeros_like(adjoint)
        solve = self._solve
        with self._untouched(), solve._leaving_gradients(*self._of) as self._kept:
            solve._point.held()[...] = self._solution
            try:
                if self._linear_transposed is None:
                    self._linear_transposed = solve._linear(self._times_transpose, True)
                return self._linear_transposed(adjoint)
            finally:
                if self._recorded is not None:
                    self._recorded.journal.forget()
                    self._recorded = None

    def _times_transpose(self, vector: Array) -> Array:
        solve = self._solve
        if self._recorded is None:
            solve._point.held()[...] = self._solution
            self._recorded = _Recorded(solve._run, solve._point, solve._result, *self._of)
            self._kept.add_all(self._recorded.gradients)
        return self._recorded.transposed(vector)

    @contextmanager
    def _untouched(self) -> Iterator[None]:
        """A block after which what F and solves write, and its gradients and duals, are what they were."""
        solve = self._solve
        copies = MemoryCopies()
        for buffer in {*self.written, solve._point.buffer, solve._result.buffer, solve._unknown.buffer}:
            for one in (buffer, buffer.adjoint, buffer.tangent):
                if one is not None:
                    copies.add(memory_of(one))
        try:
            yield
        finally:
            copies.put_back()


class _CorrectionAlong(_Correction):
    """The rule of the step's tangents, of those of what it is computed of."""

    def __init__(self, of: _Correction) -> None:
        self.__dict__.update(of.__dict__)

    def values(self, inputs: Arrays) -> Arrays:
        """The step of the tangents."""
        return self.tangents(inputs)


class _Step(Computation):
    """Such a step. Its reverse finds what F reads as it was, to multiply by the Jacobian."""

    def __init__(self, rule: _Correction, tape: Journal | None, *args: Any) -> None:
        super().__init__(rule, *args)
        self._correction = rule
        self._tape = tape

    def further(self, rule: Rule, inputs: Sequence[Field], output: Field) -> Computation:
        assert isinstance(rule, _Correction)
        return _Step(rule, self._tape, inputs, [output], self.name, self.span)

    def record(self, followed: Sequence[bool], tangents: tuple[Arrays, Arrays] | None) -> Custom:
        assert self._tape is not None
        found = super().record(followed, tangents)
        found.needs_fields = True
        found.effects.loaded |= self._correction.loaded
        reverse, active = found.gradient, dict(self._tape.activity.spans)

        def within(sweep: CustomSweep) -> None:
            with self._correction.within(active, sweep), recording_as(None):
                reverse(sweep)

        found.gradient = within
        return found


def _difference(parts: Arrays) -> Array:
    return parts[0] if len(parts) == 1 else parts[0] - parts[1]


class _Recorded:
    """F as it was recorded at the solution, to be swept through in reverse any number of times."""

    def __init__(
        self,
        run: Callable[[], Any],
        point: Field,
        result: Field,
        active: dict[Buffer, Span],
        adjoints: SweepAdjoints,
    ) -> None:
        self._point = point
        self._result = result
        self._adjoints = adjoints
        self.journal = Journal()
        if active:
            self.journal.activity.hold(dict(active))
        with self.journal.recording():
            run()
        self.journal.lost_values()
        gradients = self.journal.shadows | {point.grad.buffer, result.grad.buffer}
        adjoints.use(gradients)
        #: the memory of the gradients that it adds to
        self.gradients = [memory_of(buffer) for buffer in gradients]

    def transposed(self, adjoint: Array) -> Array:
        """The adjoint of the point, and those of all that F reads, grown by what this adjoint of F gives them."""
        bar, given = self._point.grad.held(), self._result.grad.held()
        bar[...] = 0
        given[...] = adjoint.reshape(given.shape)
        self.journal.sweep().run_within(self._adjoints.with_numbers_apart(), (), restore=True)
        return bar.astype(np.float64).ravel()

    def clear(self) -> None:
        """Leave the adjoints of the point and of F zero."""
        for field in (self._point, self._result):
            field.grad.held()[...] = 0
