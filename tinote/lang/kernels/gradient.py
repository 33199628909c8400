"""`kernel.grad`: the gradient of one launch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, ParamSpec

from tinote.compiler.requests import GRADIENT
from tinote.errors import DifferentiationError, TinoteError, at_users_frames, broken_gradient_path, users_trace
from tinote.lang.kernels.arguments import Arguments, ExternalArray, arguments_of, declared_constant
from tinote.lang.kernels.changed_inputs import warn_of_changes
from tinote.lang.session.owners import claim, needs_no_claims
from tinote.lang.session.state import recorder
from tinote.lazy import lazy
from tinote.source import caller

if TYPE_CHECKING:
    from tinote.lang.kernels import roofline
    from tinote.lang.kernels.roofline import Roofline
else:
    roofline = lazy("tinote.lang.kernels.roofline")

P = ParamSpec("P")


class KernelGradient(Generic[P]):
    """`kernel.grad`: called with the kernel's arguments, it accumulates into the gradients of what the kernel reads,
    from the gradients of what it writes.
    """

    __slots__ = ("_kernel",)

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            open_recorder = recorder.get()
            request = GRADIENT if open_recorder is None else open_recorder.gradients
            if request is None:
                raise DifferentiationError(
                    f"the gradient of {self._kernel!r} runs inside of a tape, which would not know of it",
                    caller(),
                    hint="call it after the block, or in a function with a custom gradient",
                )
            instance, values = self._kernel.prepare(args, kwargs)
            if open_recorder is not None and open_recorder.preparing_gradient():
                instance, values = self._kernel.prepare(args, kwargs)
            facts = instance.specialisation.gradient_facts(request)
            facts.refuse_lost()
            arguments = arguments_of(instance, values, request)
            arguments.refuse_broken_paths()
            arguments.refuse_shared()
            if open_recorder is None:
                _refuse_nothing(arguments)
                warn_of_changes(self._kernel, instance, arguments, values)
            if instance.needs_seed:
                values = (*values, instance.last_seed)
            if open_recorder is None:
                native = instance.specialisation.code(request)
            else:
                native = open_recorder.launching_gradient(instance, values)
            if not needs_no_claims():
                claim(arguments.gradients, clear=False)
            native.launch(values)
        except TinoteError as error:
            raise error.with_traceback(users_trace(error)) from None
        except KeyboardInterrupt as interrupt:
            raise at_users_frames(interrupt) from None

    def roofline(self, /, *args: P.args, **kwargs: P.kwargs) -> Roofline:
        """What the gradient computes and moves, loop by loop, as `Kernel.roofline` says of a launch."""
        instance, values = self._kernel.prepare(args, kwargs)
        return roofline.roofline_of(instance, values, GRADIENT)

    def __repr__(self) -> str:
        return f"<gradient of {self._kernel!r}>"


def _refuse_nothing(arguments: Arguments) -> None:
    """Raise for a gradient that would come from nowhere: nothing that the kernel writes has one, and alone it gets no
    temporary adjoint.
    """
    if arguments.broken_paths and all(buffer.adjoint is None for buffer in arguments.accesses.written):
        path = arguments.broken_paths[0]
        raise broken_gradient_path(
            path.buffer.name,
            path.span,
            [],
            external=isinstance(path.buffer, ExternalArray),
            declared=declared_constant(path.buffer),
        )
