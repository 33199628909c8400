"""`@ti.kernel`.

A decorated function's source is memorised and nothing is compiled. The first call for each template signature
specialises and compiles it; later calls reuse that. What the code captured from outside (globals, device functions) is
compared by identity at each call, so that a changed constant or a re-run cell compiles afresh instead of giving a stale
answer.
"""

from __future__ import annotations

import contextlib
import functools
import struct
import types
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

import numpy as np

from tinote.compiler.driver import Specialisation
from tinote.compiler.function_source import FunctionSource, function_source
from tinote.compiler.launch.native import BoundArray
from tinote.compiler.protocol import is_array, is_template, pack_of, struct_of, type_of
from tinote.compiler.pysource.codes import captured_by
from tinote.compiler.requests import defaults_of
from tinote.compiler.signature import ArgumentSpec
from tinote.compiler.single_flight import SingleFlight
from tinote.completion import Documented
from tinote.config import Config
from tinote.errors import CompilerBug, KernelTypeError, TinoteError, at_users_frames, no_attribute, users_trace
from tinote.ir.types import Tensor
from tinote.lang.data.matrix import Matrix
from tinote.lang.data.ndarrays import ArrayBuffers
from tinote.lang.kernels.aliasing import aliased, sharing_memory
from tinote.lang.kernels.arguments import refuse_shared_memory
from tinote.lang.kernels.binding import Binding
from tinote.lang.kernels.func import complete, parts_of, plain_function
from tinote.lang.kernels.gradient import KernelGradient
from tinote.lang.kernels.gradient_cost import GradientCost, cost_of
from tinote.lang.kernels.instance_table import InstanceTable
from tinote.lang.kernels.instances import Instance, Instances, Listing
from tinote.lang.kernels.loops import LoopTable, TaskTable
from tinote.lang.kernels.parameters import Parameters
from tinote.lang.kernels.unwritable import launch_on_copies, written_copies
from tinote.lang.session.missing import HABITS
from tinote.lang.session.state import independent_recordings, memory_of, note_launch_outside, present_recorder, session
from tinote.lang.shipping.references import evaluated_annotations, is_importable
from tinote.lang.shipping.tokens import Tokenised, tokenise
from tinote.lazy import lazy
from tinote.runtime.seam import active_listener, listeners

if TYPE_CHECKING:
    from tinote.compiler.inspect import schedule, stages, versions
    from tinote.compiler.inspect.versions import Version
    from tinote.lang.kernels import roofline
    from tinote.lang.kernels.roofline import Roofline
else:
    roofline = lazy("tinote.lang.kernels.roofline")
    schedule = lazy("tinote.compiler.inspect.schedule")
    stages = lazy("tinote.compiler.inspect.stages")
    versions = lazy("tinote.compiler.inspect.versions")


#: The parameters of a kernel and what it returns, for type checkers.
P = ParamSpec("P")
R = TypeVar("R")
#: The object of a kernel that is a method, and its further parameters.
Self = TypeVar("Self")
Further = ParamSpec("Further")
C = TypeVar("C", bound=type)

#: Instances of a kernel; from then on the oldest goes for each new one.
_INSTANCES_KEPT = 1000


class Kernel(Documented, Tokenised, Generic[P, R]):
    """A compiled function over fields and arrays, which `ti.kernel` returns: calling it launches it.

    It is compiled once for each combination of argument types and compile-time objects: an *instance*. Listings show
    the last one.

    Methods
    -------
    asm
    grad_cost
    ir
    llvm
    loops
    python
    specialisations
    specialise
    tasks
    wgsl

    Attributes
    ----------
    grad : KernelGradient
    instances : Instances

    Examples
    --------
    >>> x = ti.field(ti.f32, shape=8, needs_grad=True)
    >>> @ti.kernel
    ... def scale(a: ti.f32):
    ...     for i in x:
    ...         x[i] *= a
    >>> scale(2.0)
    >>> len(scale.instances)
    1
    """

    __tinote_kernel__ = True

    def __init__(self, function: types.FunctionType) -> None:
        functools.update_wrapper(self, function)
        self.__wrapped__: Callable[..., Any] = function
        self.source: FunctionSource = function_source(function)
        self._overrides: dict[str, Any] = {}
        self._parameters = Parameters(self.source)
        self._arrays = ArrayBuffers()
        self._binding: Binding | None = None
        self._types: tuple[Any, ...] = ()  # what `_instances` were made for, besides what their keys say
        self._instances = InstanceTable()
        #: the same two of options that come back (`Session.on_cpu`)
        self._aside: tuple[tuple[Any, ...], InstanceTable] = ((), InstanceTable())
        self._compiling = SingleFlight()
        self._earlier: Version | None = None

    def __copy__(self) -> Kernel:
        return self

    def __deepcopy__(self, memo: Any) -> Kernel:
        return self

    def __reduce__(self) -> str | tuple[Any, ...]:
        """It is pickled as what its module calls it, as functions are; where no module has it, cloudpickle takes it by
        value: its function with all that it names, and the text.
        """
        if is_importable(self):
            return self.__qualname__  # type: ignore[attr-defined,no-any-return]
        annotations = dict(zip(self._parameters.names, self._parameters.annotations, strict=True))
        state = {
            **parts_of(self, self.source),
            "annotations": evaluated_annotations(self.source) | annotations,
            "overrides": self._overrides,
            "is_method": self._parameters.is_method,
        }
        return object.__new__, (Kernel,), state, None, None, _arrive

    def _token_parts(self) -> Any:
        function = self.__wrapped__
        captured = captured_by(function) if isinstance(function, types.FunctionType) else {}
        return self.source.text, self._overrides, captured, evaluated_annotations(self.source)

    def with_options(self, overrides: dict[str, Any]) -> Kernel:
        """This kernel, compiled with these fields of `Config` in place of the session's."""
        self._overrides = dict(overrides)
        return self

    def become(self, new: Kernel) -> None:
        """Take over the meaning of `new`, so that all references to this kernel use it. Unchanged source keeps what was
        compiled.
        """
        same = (
            self._overrides == new._overrides
            and self.source.text == new.source.text
            and self.source.span == new.source.span
            and not self.source.closure
        )
        known = self._types, self._instances
        self.__dict__.update(new.__dict__)
        if same:
            self._types, self._instances = known
            self._binding = None  # that of `new` leads to its own instances

    def succeed(self, old: Kernel) -> None:
        """Take the place of `old`, a kernel of the same name: what it was compiled to last, if that is known, is this
        kernel's earlier version. One that is still up to date and has the same text hands on its own.
        """
        last = next(reversed(old._instances.alive()), None)
        if last is None or (old.source.text == self.source.text and is_current(last)):
            self._earlier = old._earlier
            return
        with contextlib.suppress(TinoteError, CompilerBug):  # it came from disk, and what it captured has changed since
            self._earlier = versions.version_of(last.specialisation).kept()

    def earlier(self) -> Version | Specialisation | None:
        """What this kernel was before its text, or something that it captured, changed last; None where that is not
        known.
        """
        older = self._instances.before_newest() if self.instances else None
        return self._earlier if older is None else older.specialisation

    @property
    def config(self) -> Config:
        """The options under which this kernel is compiled."""
        return session.config._replace(**self._overrides) if self._overrides else session.config

    @property
    def has_templates(self) -> bool:
        """Whether a parameter is a template, an array, a struct or a pack, so that compiling needs arguments."""
        asked = is_template, is_array, struct_of, pack_of
        return any(ask(hint) for hint in self._parameters.annotations for ask in asked)

    def specialise_by_types(self) -> Specialisation:
        """The specialisation of a kernel without template parameters, compiled from its annotations alone."""
        defaults = defaults_of(self.config)
        arguments: list[Any] = []
        for hint in self._parameters.annotations:
            t = type_of(hint, defaults.fp, defaults.ip)
            arguments.append(Matrix(np.zeros(t.shape)) if isinstance(t, Tensor) else 0)
        return self.specialise(*arguments)

    # ---- instances

    def prepare(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Instance, tuple[Any, ...]]:
        """The instance for these arguments, compiled if need be, and the values of its launch: arrays, then numbers."""
        binding = self._binding
        if binding is None or binding.generation != session.generation:
            binding = self._bind()
        try:
            key, values = binding.bind(*args, **kwargs) if kwargs else binding.bind(*args)
        except TypeError:
            self._parameters.in_order(args, kwargs)  # raises what says more
            raise
        arrays = binding.arrays
        if arrays < 2:
            instance = binding.instances.get(key)
            if binding.has_templates and instance is not None:
                instance = instance()
            if instance is None or not is_current(instance):
                instance = self._compiled(binding, key, args, kwargs)
        # A single array that is written in place, and none of the fields that are used by name, is all that there is.
        if arrays and (
            arrays > 1 or not values[0].writable or (instance.families and instance.sharing_memory_of(values[:1]))
        ):
            key, instance = self._with_arrays(binding, key, values[:arrays], args, kwargs)
        if listeners and (listener := active_listener()) is not None:
            listener.prepared(self, key, instance)
        return instance, values

    def launched_before(self, instance: Instance) -> Instance | None:
        """One for the same arguments that was launched before this one took its place."""
        return self._instances.launched_before(instance)

    def runs(self, key: tuple[Any, ...], instance: Instance) -> bool:
        """Whether a launch whose arguments have this key would run this instance, if it is current."""
        known = self._instances
        return known.get(key) is instance or known.find(key) is instance

    def _with_arrays(
        self,
        binding: Binding,
        key: tuple[Any, ...],
        arrays: tuple[BoundArray, ...],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> tuple[tuple[Any, ...], Instance]:
        """The instance for arguments with these arrays among them, and its key."""
        if len(arrays) > 1 and (sharing := sharing_memory(arrays)):
            key = aliased(key, sharing)
        instance = binding.instances.find(key)
        if instance is None or not is_current(instance):
            instance = self._compiled(binding, key, args, kwargs)
        if instance.families and (sharing := instance.sharing_memory_of(arrays)):
            key = aliased(key, sharing)
            instance = self._compiled(binding, key, args, kwargs)
        for array in arrays:
            if not array.writable:
                if written_copies(instance.specialisation, arrays):
                    instance.writes_copies = True
                break
        return key, instance

    def _compiled(
        self, binding: Binding, key: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Instance:
        """The instance with this key, compiled if need be."""
        instances = binding.instances
        with self._compiling(key):
            instance = instances.find(key)
            if instance is None or not is_current(instance):
                instance = self._specialise(instances, key, binding.specs(key, args, kwargs))
        return instance

    def _bind(self) -> Binding:
        """The way from arguments to instances under the present options. Instances made under others are dropped."""
        with self._compiling(None):
            binding = Binding(self._parameters, self._arrays, self.config, session.generation)
            made_for = (session.generation, *binding.types)
            if made_for != self._types:
                known, self._aside = self._aside, (self._types, self._instances)
                empty = InstanceTable(by_template=binding.has_templates)
                self._types, self._instances = known if known[0] == made_for else (made_for, empty)
                if self._aside[0][:1] != (~session.generation,):
                    self._aside = ((), InstanceTable())
            binding.instances = self._instances
            self._binding = binding
        return binding

    def _specialise(self, instances: InstanceTable, key: tuple[Any, ...], specs: list[ArgumentSpec]) -> Instance:
        found = instances.older(key)
        if found is None:
            specialisation = Specialisation(self.source, specs, self.config, memory_of)
            for warned in specialisation.warnings:
                warnings.warn_explicit(str(warned), UserWarning, warned.span.file, warned.span.line)
            found = Instance(specialisation)
        instances.put(key, found, _INSTANCES_KEPT)
        return found

    # ---- launching

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            # `__getattr__` makes each look at an attribute of a kernel slow, so there are few on this way.
            instance, values = _prepare(self, args, kwargs)
            open_recorder = present_recorder()
            if open_recorder is not None and open_recorder.under_way is not None:
                # A signal handler interrupts the launch that is being recorded, so that this one is not a part of it.
                refuse_shared_memory(open_recorder.under_way, (instance, values))
                with independent_recordings():
                    return self(*args, **kwargs)
            instance.calls += 1
            if instance.notes:
                session.order = instance.last = session.order + 1
                if instance.needs_seed:
                    instance.last_seed = session.next_seed()
                    values = (*values, instance.last_seed)
            native = instance.primal
            if session.watchers and session.watchers != [open_recorder]:
                note_launch_outside(instance, values)
            try:
                if open_recorder is not None:
                    open_recorder.under_way = instance, values
                    native = open_recorder.launching(instance, values) or native
                results = launch_on_copies(native.launch, values) if instance.writes_copies else native.launch(values)
                if open_recorder is not None:
                    open_recorder.launched()
            except (struct.error, OverflowError, TypeError, ValueError) as error:
                if isinstance(error, TinoteError):
                    raise
                if self._binding is not None:
                    self._binding.explain(values)
                raise
            finally:
                if open_recorder is not None:
                    open_recorder.under_way = None
        except TinoteError as error:
            # The message shows the user's line; the frames below this one are the compiler's own.
            raise error.with_traceback(users_trace(error)) from None
        except KeyboardInterrupt as interrupt:
            raise at_users_frames(interrupt) from None
        return instance.result(results) if results else None  # type: ignore[return-value]

    @property
    def grad(self) -> KernelGradient[P]:
        """The gradient of this kernel, to be called with its arguments."""
        return KernelGradient(self)

    def grad_cost(self, /, *args: Any, **kwargs: Any) -> GradientCost:
        """What the gradient of a launch would save, compute again and accumulate.

        Parameters
        ----------
        *args, **kwargs
            As in a call.

        Returns
        -------
        GradientCost
            A table.

        Examples
        --------
        >>> x = ti.field(ti.f32, shape=4, needs_grad=True)
        >>> @ti.kernel
        ... def square():
        ...     for i in x:
        ...         x[i] = x[i] * x[i]
        >>> print(square.grad_cost())
        the gradient of 'square' saves nothing
        operations computed again: 2 (line 4)
        atomic operations left: 0
        """
        return cost_of(*self.prepare(args, kwargs))

    def roofline(self, /, *args: Any, **kwargs: Any) -> Roofline:
        """What a launch computes and moves, loop by loop, compared with what this machine could.

        The kernel is compiled with clocks and launched ten times; what it writes is restored. What it has to move is
        each number once, however often it is loaded. What the machine moves and computes is measured the first time.
        Of a gradient: `kernel.grad.roofline`.

        Parameters
        ----------
        *args, **kwargs
            As in a call.

        Returns
        -------
        Roofline
            A table, with a row for each outermost loop: what bounds it, the factors that are lost and their causes,
            milliseconds, bytes, 10⁹ bytes and operations a second, and the part of the ceiling that this is.

        Raises
        ------
        KernelTargetError
            Unless kernels run on the CPU.

        Notes
        -----
        S. Williams, A. Waterman and D. Patterson, "Roofline", Communications of the ACM 52 (2009) 65. Operations are
        those of floating-point numbers, in additions: a division counts as 4, an exponential as 15.

        Examples
        --------
        >>> x = ti.field(ti.f32, shape=1 << 16)
        >>> @ti.kernel
        ... def halve():
        ...     for i in x:
        ...         x[i] = 0.5 * x[i]
        >>> [row] = halve.roofline()
        >>> row.bound, row.nbytes, row.operations
        ('memory', 524288, 65536)
        """
        return roofline.roofline_of(*self.prepare(args, kwargs))

    @property
    def instances(self) -> Instances:
        """The compiled template signatures, and older versions whose captures have changed since."""
        if self._types[:1] != (session.generation,):
            return Instances()
        return Instances([*self._instances.retired(), *self._instances.alive()])

    def _latest(self) -> Instance:
        """The instance that was made last, made from the annotations alone if the kernel was not called yet."""
        if not self.instances:
            if self.has_templates:
                raise KernelTypeError(
                    f"kernel '{self.source.name}' has not been called yet, so the types of its arguments are not known",
                    self.source.span,
                    hint="call it once",
                )
            self.specialise_by_types()
        return self.instances[-1]

    def ir(self, stage: str | None = None, *, gradient: bool = False) -> Listing:
        """The IR of the last instance after a step of the compiler.

        Parameters
        ----------
        stage : str, optional
            The name of the step; by default the last one.
        gradient : bool, default False
            Show that of its gradient.

        Returns
        -------
        Listing
            The text.

        Examples
        --------
        >>> @ti.kernel
        ... def add(a: ti.i32) -> ti.i32:
        ...     return a + 1
        >>> print(add.ir())
        buffer @t0: i32 temporary ()
        buffer @t0.flat: i32 temporary (?) flat @t0
        func add(%a: i32):
          task serial "add.0":
            %0: i32 = add %a, 1i32
            store @t0.flat[0i64], %0
          %1: i32 = load @t0[]
          return %1
        """
        return self._latest().ir(stage, gradient=gradient)

    def llvm(self, optimised: bool = False, *, gradient: bool = False) -> Listing:
        """The LLVM IR of the last instance.

        Parameters
        ----------
        optimised : bool, default False
            Show it after LLVM's own passes rather than as it is generated.
        gradient : bool, default False
            Show that of its gradient.

        Returns
        -------
        Listing
            The text.

        Examples
        --------
        >>> @ti.kernel
        ... def add(a: ti.i32) -> ti.i32:
        ...     return a + 1
        >>> "add i32" in str(add.llvm())
        True
        """
        return self._latest().llvm(optimised, gradient=gradient)

    def asm(self, *, gradient: bool = False) -> Listing:
        """The assembly of the last instance.

        Parameters
        ----------
        gradient : bool, default False
            Show that of its gradient.

        Returns
        -------
        Listing
            The text.

        Examples
        --------
        >>> @ti.kernel
        ... def add(a: ti.i32) -> ti.i32:
        ...     return a + 1
        >>> "ret" in str(add.asm())
        True
        """
        return self._latest().asm(gradient=gradient)

    def python(self, *, gradient: bool = False) -> Listing:
        """The last instance as plain Python: what `ti.init(arch=ti.python)` runs in place of machine code.

        Parameters
        ----------
        gradient : bool, default False
            Show that of its gradient.

        Returns
        -------
        Listing
            The text.

        Examples
        --------
        >>> @ti.kernel
        ... def add(a: ti.i32) -> ti.i32:
        ...     return a + 1
        >>> print(add.python())
        def add(rt, a):
            return (rt.i32(a + 1),)
        """
        return self._latest().python(gradient=gradient)

    def wgsl(self, *, gradient: bool = False) -> Listing:
        """The last instance as WGSL: what `ti.init(arch=ti.gpu)` runs in place of machine code.

        Parameters
        ----------
        gradient : bool, default False
            Show that of its gradient.

        Returns
        -------
        Listing
            The text.

        Examples
        --------
        >>> x = ti.field(ti.f32, shape=4)
        >>> @ti.kernel
        ... def fill():
        ...     for i in x:
        ...         x[i] = 1.0
        >>> "@compute" in str(fill.wgsl())
        True
        """
        return self._latest().wgsl(gradient=gradient)

    def loops(self, *, gradient: bool = False) -> LoopTable:
        """Which loops of the last instance are vectorised, how wide, or why not.

        LLVM compiles the kernel once more for this.

        Parameters
        ----------
        gradient : bool, default False
            Show those of its gradient.

        Returns
        -------
        LoopTable
            A row for each loop.

        Examples
        --------
        >>> x = ti.field(ti.f32, shape=64)
        >>> @ti.kernel
        ... def fill():
        ...     for i in x:
        ...         x[i] = 2.0 * i
        >>> [loop.line for loop in fill.loops()]
        [3]
        """
        return LoopTable(stages.stages_of(self._latest().specialisation, gradient).verdicts)

    def tasks(self, *, gradient: bool = False) -> TaskTable:
        """How a launch of the last instance runs: its tasks, what they share among threads, and what stays atomic.

        LLVM compiles the kernel once more for this, to say which loops are vectorised.

        Parameters
        ----------
        gradient : bool, default False
            Show those of its gradient.

        Returns
        -------
        TaskTable
            A row for each task.

        Examples
        --------
        >>> x = ti.field(ti.f32, shape=64)
        >>> @ti.kernel
        ... def fill():
        ...     for i in x:
        ...         x[i] = 2.0 * i
        >>> [task.iterations for task in fill.tasks()]
        [64]
        """
        return TaskTable(schedule.tasks_of(stages.stages_of(self._latest().specialisation, gradient)))

    def specialise(self, /, *args: Any, **kwargs: Any) -> Specialisation:
        """The specialisation for these arguments, compiled but not launched.

        Parameters
        ----------
        *args, **kwargs
            As in a call.

        Returns
        -------
        Specialisation
            What `ti.viz.explore` can show next to another one.

        Examples
        --------
        >>> @ti.kernel
        ... def length(a: ti.types.ndarray()) -> ti.i32:
        ...     return a.shape[0]
        >>> made = length.specialise(ti.ndarray(ti.f32, 3))
        >>> len(length.instances)
        1
        """
        return self.prepare(args, kwargs)[0].specialisation

    def specialisations(self) -> list[Specialisation]:
        """The specialisations that were compiled and are still valid.

        Returns
        -------
        list of Specialisation
            The oldest first.
        """
        return [one.specialisation for one in self._instances.alive()] if self.instances else []

    if not TYPE_CHECKING:  # a type checker would take every name for one that is there

        def __getattr__(self, name: str) -> Any:
            known = () if name.startswith("_") else dir(type(self))  # the compiler asks for names of its protocol
            raise no_attribute("a kernel", name, known, HABITS.get(name, ""))

    # ---- methods of classes

    def __set_name__(self, owner: type, name: str) -> None:
        self._parameters.is_method = True

    @overload
    def __get__(self, owner: None, cls: type | None = None) -> Kernel[P, R]: ...
    @overload
    def __get__(
        self: Kernel[Concatenate[Self, Further], R], owner: Self, cls: type | None = None
    ) -> BoundKernel[Further, R]: ...
    def __get__(self, owner: Any, cls: type | None = None) -> Any:
        return self if owner is None else BoundKernel(self, owner)

    def __repr__(self) -> str:
        return f"<kernel {self.source.name}({', '.join(self._parameters.names)})>"


def is_current(instance: Instance) -> bool:
    """Whether nothing that the code captured has changed. Tens of nanoseconds a captured name."""
    try:
        for owner, key, value in instance.names:
            if owner[key] is not value:
                return instance.specialisation.is_current()
        if not instance.further:
            return True
        for cell, value in instance.cells:
            if cell.cell_contents is not value:
                return instance.specialisation.is_current()
        for owner, key, value in instance.attributes:
            if getattr(owner, key) is not value:
                return instance.specialisation.is_current()
    except (KeyError, ValueError, AttributeError):  # a name was deleted
        return False
    for owner, key in instance.builtins:
        if key in owner:
            return instance.specialisation.is_current()
    return not instance.others or all(capture.unchanged() for capture in instance.others)


def _arrive(kernel: Kernel, state: dict[str, Any]) -> None:
    """A kernel comes from another process. Its function may still lack all but its code."""
    function = state["function"]
    Kernel.__init__(kernel, function)
    complete(kernel, kernel.source, state)
    kernel._overrides = state["overrides"]
    kernel._parameters.is_method = state["is_method"]


class BoundKernel(functools.partial[R], Generic[P, R]):
    """A kernel that is a method, bound to its object. Each call makes one, so it is what Python makes the fastest."""

    __tinote_kernel__ = True

    if TYPE_CHECKING:

        def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R: ...

    def __dask_tokenize__(self) -> Any:
        return tokenise((self.func, self.args, self.keywords))

    @property
    def kernel(self) -> Kernel:
        return self.func  # type: ignore[return-value]

    def prepare(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Instance, tuple[Any, ...]]:
        return self.kernel.prepare((*self.args, *args), kwargs)

    @property
    def grad(self) -> KernelGradient[P]:
        """The gradient of this kernel, to be called with its arguments."""
        return KernelGradient(self)

    def grad_cost(self, /, *args: Any, **kwargs: Any) -> GradientCost:
        """The same of a kernel."""
        return cost_of(*self.prepare(args, kwargs))

    def roofline(self, /, *args: Any, **kwargs: Any) -> Roofline:
        """The same of a kernel."""
        return roofline.roofline_of(*self.prepare(args, kwargs))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.kernel, name)

    def __repr__(self) -> str:
        return f"<bound {self.kernel!r}>"


# Looked up once: each launch calls it.
_prepare = Kernel.prepare


def kernel(function: Callable[P, R] = None) -> Kernel[P, R]:  # type: ignore[assignment]  # noqa: RUF013
    """Make a kernel of a function: its outermost `for` loops run in parallel.

    It calls device functions (`ti.func`) and plain functions, lambdas, methods and partial applications, all of which
    become part of it. It is compiled at its first launch, once for each combination of argument types.

    Parameters
    ----------
    function : callable
        The function, whose parameters have types: `n: ti.i32`, `v: ti.math.vec3`, `x: ti.types.ndarray()`, or
        `f: ti.template()` for what is known at compile time.

    Returns
    -------
    Kernel
        Called as the function is; `kernel.grad` runs its gradient.

    Raises
    ------
    KernelTypeError
        For what is not a function.

    Examples
    --------
    >>> x = ti.field(ti.f32, shape=4)
    >>> @ti.kernel
    ... def fill(a: ti.f32):
    ...     for i in x:
    ...         x[i] = a * i
    >>> fill(2.0)
    >>> x.to_numpy()
    array([0., 2., 4., 6.], dtype=float32)
    """
    plain = plain_function(function)
    made: Kernel[P, R] = Kernel(plain)
    old = _bound_to_name_of(plain)
    if isinstance(old, Kernel):
        made.succeed(old)
    return made


def _bound_to_name_of(function: Callable[..., Any]) -> Any:
    """What a module or class has under the name that a function is about to get there."""
    first, *rest = function.__qualname__.split(".")
    found = function.__globals__.get(first)  # type: ignore[attr-defined]
    for name in rest:
        found = vars(found).get(name) if isinstance(found, type) else None
    return found


def data_oriented(cls: C) -> C:
    """Mark a class that has kernels as methods.

    They work in any class; existing programs mark it.

    Parameters
    ----------
    cls : type
        The class.

    Returns
    -------
    type
        The same class.

    Raises
    ------
    KernelTypeError
        For what is not a class.

    Examples
    --------
    >>> @ti.data_oriented
    ... class Counter:
    ...     def __init__(self):
    ...         self.n = ti.field(ti.i32, shape=())
    ...     @ti.kernel
    ...     def count(self, to: ti.i32):
    ...         for i in range(to):
    ...             self.n[None] += 1
    >>> counter = Counter()
    >>> counter.count(5)
    >>> counter.n[None]
    5
    """
    if not isinstance(cls, type):
        raise KernelTypeError(f"data_oriented decorates a class, not {cls!r}")
    if "__dask_tokenize__" not in vars(cls):
        cls.__dask_tokenize__ = tokenise  # type: ignore[attr-defined]
    return cls
