"""`@ti.kernel`.

A decorated function's source is memorised and nothing is compiled. The first call for each template signature
specialises and compiles it; later calls reuse that. What the code captured from outside (globals, device functions) is
compared by identity at each call, so that a changed constant or a re-run cell compiles afresh instead of giving a stale
answer.
"""

from __future__ import annotations

import ast
import functools
import struct
import types
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tinote.compiler.driver import BoundArray, Specialisation, bad_argument
from tinote.compiler.frontend.protocol import (
    ArgumentSpec,
    ArrayArgument,
    FunctionSource,
    StructArgument,
    TemplateArgument,
    ValueArgument,
    function_source,
    is_array,
    is_template,
    struct_of,
    type_of,
)
from tinote.compiler.modes import defaults_of
from tinote.config import Config
from tinote.errors import KernelTypeError, TinoteError, at_users_frames
from tinote.ir.types import Scalar, Tensor
from tinote.lang.func import plain_function
from tinote.lang.gradient import KernelGradient
from tinote.lang.identity import identity_of
from tinote.lang.instances import Instance, Instances, Listing
from tinote.lang.matrix import Matrix, Vector
from tinote.lang.ndarrays import ArrayBuffers, argument_error, refuse_read_only
from tinote.lang.structured import as_annotated, numbers_in
from tinote.lang.world import memory_of, recorder, world
from tinote.source import Span

__all__ = ["Instance", "Kernel", "data_oriented", "kernel", "template"]


def _one(types_: Sequence[Scalar | Tensor], values: tuple[Any, ...], as_tuple: bool) -> Any:
    """Scalars from a launch put together to what the kernel returns."""
    found: list[Any] = []
    at = 0
    for t in types_:
        if isinstance(t, Tensor):
            flat = values[at : at + t.count]
            at += t.count
            found.append(
                Vector(list(flat))
                if len(t.shape) == 1
                else Matrix([list(flat[r * t.shape[1] : (r + 1) * t.shape[1]]) for r in range(t.shape[0])])
            )
        else:
            found.append(values[at])
            at += 1
    return tuple(found) if as_tuple else found[0]


class Kernel:
    """A compiled function over fields. Calling it launches it; `grad` runs its reverse-mode derivative."""

    __tinote_kernel__ = True

    def __init__(self, function: types.FunctionType) -> None:
        functools.update_wrapper(self, function)
        self.__wrapped__: Callable[..., Any] = function
        self.source: FunctionSource = function_source(function)
        self._overrides: dict[str, Any] = {}
        self._parameters = self.source.parameters
        self._annotations: list[Any] | None = None
        self._instances: dict[tuple[Any, ...], Instance] = {}
        self._plain: Instance | None = None  # the only instance, when no parameter is a template
        self._retired: list[Instance] = []
        self._arrays = ArrayBuffers()

    def with_options(self, overrides: dict[str, Any]) -> Kernel:
        """This kernel, compiled with these fields of `Config` in place of the session's."""
        self._overrides = dict(overrides)
        return self

    def become(self, new: Kernel) -> None:
        """Take over the meaning of `new`, so that whoever holds this kernel uses it. Unchanged source keeps what was
        compiled.
        """
        same = (
            self._overrides == new._overrides
            and self.source.text == new.source.text
            and self.source.span == new.source.span
            and not self.source.closure
        )
        instances, plain, retired = self._instances, self._plain, self._retired
        self.__dict__.update(new.__dict__)
        if same:
            self._instances, self._plain, self._retired = instances, plain, retired

    @property
    def config(self) -> Config:
        """The options under which this kernel is compiled."""
        return replace(world.config, **self._overrides) if self._overrides else world.config

    @property
    def has_templates(self) -> bool:
        """Whether a parameter is a template or an array, so that compiling needs arguments."""
        return any(is_template(hint) or is_array(hint) for hint in self.annotations)

    def specialise_by_types(self) -> Specialisation:
        """The specialisation of a kernel without template parameters, compiled from its annotations alone."""
        defaults = defaults_of(self.config)
        arguments: list[Any] = []
        for hint in self.annotations:
            t = type_of(hint, defaults.fp, defaults.ip)
            arguments.append(Matrix(np.zeros(t.shape)) if isinstance(t, Tensor) else 0)
        return self.specialise(*arguments)

    # ---- signature

    @property
    def annotations(self) -> list[Any]:
        """What each parameter is annotated with, evaluated where the kernel was defined."""
        if self._annotations is None:
            found: list[Any] = []
            hints = self.__wrapped__.__annotations__
            scope = {
                **self.source.globals,
                **{k: c.cell_contents for k, c in self.source.closure.items() if _filled(c)},
            }
            for parameter in self._parameters:
                hint = hints.get(parameter.arg)
                if isinstance(hint, str):
                    hint = self._evaluated(parameter, hint, scope)
                if hint is None and not found and parameter.arg == "self":
                    hint = template()
                if hint is None:
                    raise KernelTypeError(
                        f"parameter '{parameter.arg}' of kernel '{self.source.name}' needs a type annotation",
                        self._span_of(parameter),
                        hint="write for example `n: ti.i32`, `x: ti.f32` or `field: ti.template()`",
                    )
                found.append(hint)
            self._annotations = found
        return self._annotations

    def _evaluated(self, parameter: ast.arg, hint: str, scope: dict[str, Any]) -> Any:
        """An annotation that is text (`from __future__ import annotations`)."""
        try:
            return eval(hint, scope)
        except TinoteError as error:
            raise type(error)(error.message, self._span_of(parameter), error.hint) from None
        except Exception as error:
            raise KernelTypeError(
                f"the annotation of parameter '{parameter.arg}' cannot be evaluated: {type(error).__name__}: {error}",
                self._span_of(parameter),
                hint="an annotation kept as text finds the names of its module and those that the kernel itself uses",
            ) from None

    def _span_of(self, parameter: ast.arg) -> Span:
        return Span(
            self.source.file,
            parameter.lineno,
            parameter.col_offset,
            parameter.end_lineno or 0,
            parameter.end_col_offset or 0,
        )

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        names = [q.arg for q in self._parameters]
        if not kwargs and len(args) == len(names):
            return args
        given = dict(zip(names, args, strict=False))
        if len(args) > len(names):
            raise KernelTypeError(
                f"kernel '{self.source.name}' takes {len(names)} arguments ({', '.join(names)}), but got {len(args)}",
                self.source.span,
            )
        for name, value in kwargs.items():
            if name not in names:
                raise KernelTypeError(f"kernel '{self.source.name}' has no parameter '{name}'", self.source.span)
            if name in given:
                raise KernelTypeError(f"kernel '{self.source.name}' got two values for '{name}'", self.source.span)
            given[name] = value
        missing = [n for n in names if n not in given and n not in self.source.defaults]
        if missing:
            raise KernelTypeError(
                f"kernel '{self.source.name}' takes {len(names)} argument{'s' if len(names) != 1 else ''} "
                f"({', '.join(names)}); missing: {', '.join(missing)}",
                self.source.span,
            )
        return tuple([given.get(n, self.source.defaults.get(n)) for n in names])

    def prepare(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Instance, tuple[Any, ...]]:
        """The instance for these arguments, compiled if need be, and the values of its launch: arrays, then scalars."""
        plain = self._plain
        if (
            plain is not None
            and not kwargs
            and len(args) == len(self._parameters)
            and plain.generation == world.generation
            and plain.is_current()
        ):
            return plain, args
        args = self._bind(args, kwargs)
        key: list[Any] = []
        arrays: list[BoundArray] = []
        values: list[Any] = []
        specs: list[ArgumentSpec] = []
        simple = True
        defaults = defaults_of(self.config)
        for parameter, hint, value in zip(self._parameters, self.annotations, args, strict=True):
            if is_template(hint):
                specs.append(TemplateArgument(value))
                key.append(identity_of(value))
                simple = False
                continue
            if is_array(hint):
                kind, bound = hint.bind(value, argument_error(self.source, parameter))
                specs.append(ArrayArgument(self._arrays.of(parameter.arg, kind)))
                key.append(kind)
                arrays.append(bound)
                simple = False
                continue
            info = struct_of(hint)
            if info is not None:
                specs.append(StructArgument(info))
                key.append(identity_of(hint))
                simple = False
                values.extend(numbers_in(hint, info, value, functools.partial(self._bad_argument, parameter, value)))
                continue
            t = type_of(hint, defaults.fp, defaults.ip)
            if t is None:
                raise KernelTypeError(
                    f"parameter '{parameter.arg}' of kernel '{self.source.name}' is annotated with {hint!r}, no type",
                    self._span_of(parameter),
                )
            specs.append(ValueArgument(t))
            if isinstance(t, Tensor):
                simple = False
                values.extend(self._components(parameter, t, value))
            else:
                values.append(value)
        identity = tuple(key)
        instance = self._instances.get(identity)
        if instance is None or instance.generation != world.generation or not instance.is_current():
            instance = self._specialise(identity, specs)
        if simple:
            self._plain = instance
        for array in arrays:
            if not array.writable:
                refuse_read_only(instance.specialisation, arrays)
        return instance, (*arrays, *values)

    def _specialise(self, identity: tuple[Any, ...], specs: list[ArgumentSpec]) -> Instance:
        old = self._instances.get(identity)
        for retired in self._retired:
            if (
                retired.generation == world.generation
                and retired.specialisation.arguments == tuple(specs)
                and retired.is_current()
            ):
                break
        else:
            specialisation = Specialisation(self.source, specs, self.config, memory_of)
            for warned in specialisation.warnings:
                warnings.warn_explicit(warned.message, UserWarning, warned.span.file, warned.span.line)
            retired = Instance(specialisation)
        if old is not None and old.generation == world.generation:
            self._retired = [old, *[r for r in self._retired if r.generation == world.generation and r is not retired]][
                :8
            ]
        self._instances = {k: v for k, v in self._instances.items() if v.generation == world.generation}
        self._instances[identity] = retired
        return retired

    def _components(self, parameter: ast.arg, t: Tensor, value: Any) -> list[Any]:
        source = value if isinstance(value, Matrix) else _matrix_or_none(value)
        if source is None or source.shape != t.shape:
            kind = "vector" if len(t.shape) == 1 else "matrix"
            raise self._bad_argument(parameter, value, f"a {kind} of shape {t.shape}")
        return source.values.ravel().tolist()

    def _bad_argument(self, parameter: ast.arg, value: Any, expected: str) -> KernelTypeError:
        return bad_argument(self.source.name, parameter.arg, expected, value, self._span_of(parameter))

    # ---- launching

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            instance, values = self.prepare(args, kwargs)
            instance.calls += 1
            if instance.needs_seed:
                instance.last_seed = world.next_seed()
                values = (*values, instance.last_seed)
            open_recorder = recorder.get()
            native = instance.primal
            if open_recorder is not None:
                native = open_recorder.launching(instance, values) or native
            try:
                results = native.launch(values)
            except (struct.error, OverflowError, TypeError, ValueError) as error:
                if isinstance(error, TinoteError):
                    raise
                self._explain(values, error)
                raise
            if open_recorder is not None:
                open_recorder.launched()
        except TinoteError as error:
            # The message shows the user's line; the frames below this one are the compiler's own.
            raise error.with_traceback(None) from None
        except KeyboardInterrupt as interrupt:
            raise at_users_frames(interrupt) from None
        if results:
            assert instance.returns is not None
            found = _one(instance.returns, results, instance.returns_tuple)
            return as_annotated(self.source, found) if instance.returns_tuple else found
        return None

    def _explain(self, values: tuple[Any, ...], error: Exception) -> None:
        """Raise a clear error when an argument did not fit its type; return when something else was wrong."""
        defaults = defaults_of(world.config)
        at = sum(map(is_array, self.annotations))
        for parameter, hint in zip(self._parameters, self.annotations, strict=True):
            info = struct_of(hint)
            if is_template(hint) or is_array(hint) or info is not None:
                t = None
            else:
                t = type_of(hint, defaults.fp, defaults.ip)
            if info is not None:
                at += info.count
            elif isinstance(t, Tensor):
                at += t.count
            elif t is not None:
                value = values[at]
                at += 1
                if not fits(t, value):
                    raise self._bad_argument(parameter, value, f"a number of type {t}") from None

    @property
    def grad(self) -> KernelGradient:
        """The gradient of this kernel, to be called with its arguments."""
        return KernelGradient(self)

    @property
    def instances(self) -> Instances:
        """The template signatures that were compiled, and older versions of them, whose captures have changed since."""
        return Instances(
            i for i in (*reversed(self._retired), *self._instances.values()) if i.generation == world.generation
        )

    def _latest(self) -> Instance:
        """The instance that was made last, made from the annotations alone if the kernel was not called yet."""
        if not any(i.generation == world.generation for i in self._instances.values()):
            if self.has_templates:
                raise KernelTypeError(
                    f"kernel '{self.source.name}' has not been called yet, so the types of its arguments are not known",
                    self.source.span,
                    hint="call it once",
                )
            self.specialise_by_types()
        return self.instances[-1]

    def ir(self, stage: str | None = None, *, gradient: bool = False) -> Listing:
        """The IR of the last instance after a step of the compiler, by default after the last step (`Instance.ir`)."""
        return self._latest().ir(stage, gradient=gradient)

    def llvm(self, optimised: bool = False, *, gradient: bool = False) -> Listing:
        """The LLVM IR of the last instance, as generated or after LLVM's own passes."""
        return self._latest().llvm(optimised, gradient=gradient)

    def asm(self, *, gradient: bool = False) -> Listing:
        """The assembly of the last instance."""
        return self._latest().asm(gradient=gradient)

    def specialise(self, *args: Any, **kwargs: Any) -> Specialisation:
        """The specialisation for these arguments, compiled but not launched."""
        return self.prepare(args, kwargs)[0].specialisation

    def specialisations(self) -> list[Specialisation]:
        """The specialisations that were compiled and are still valid."""
        return [i.specialisation for i in self._instances.values() if i.generation == world.generation]

    # ---- methods of classes

    def __get__(self, owner: Any, cls: type | None = None) -> Kernel | BoundKernel:
        return self if owner is None else BoundKernel(self, owner)

    def __repr__(self) -> str:
        return f"<kernel {self.source.name}({', '.join(q.arg for q in self._parameters)})>"


class BoundKernel:
    """A kernel that is a method, bound to its object."""

    __tinote_kernel__ = True

    def __init__(self, kernel: Kernel, owner: Any) -> None:
        self.kernel = kernel
        self.owner = owner

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.kernel(self.owner, *args, **kwargs)

    def prepare(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Instance, tuple[Any, ...]]:
        return self.kernel.prepare((self.owner, *args), kwargs)

    @property
    def grad(self) -> KernelGradient:
        return KernelGradient(self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "kernel":
            raise AttributeError(name)
        return getattr(self.kernel, name)

    def __repr__(self) -> str:
        return f"<bound {self.kernel!r}>"


class Template:
    """The annotation of a parameter that is a compile-time object: a field, a constant, anything."""

    __tinote_template__ = True

    def __call__(self) -> Template:
        return self

    def __repr__(self) -> str:
        return "ti.template()"


template = Template()


def kernel(function: Callable[..., Any]) -> Kernel:
    """Make a kernel of a function. Its outermost `for` loops run in parallel."""
    return Kernel(plain_function(function))


def data_oriented(cls: type) -> type:
    """Marks a class that has kernels as methods. They work in any class; existing programs write it."""
    if not isinstance(cls, type):
        raise KernelTypeError(f"data_oriented decorates a class, not {cls!r}")
    return cls


def _filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _matrix_or_none(value: Any) -> Matrix | None:
    if isinstance(value, int):  # which `Matrix` takes for a size
        return None
    try:
        return Matrix(value)
    except Exception:
        return None


def fits(t: Scalar, value: Any) -> bool:
    """Whether a Python value may be passed for a number of type `t`."""
    try:
        if t.kind == "f":
            float(value)
            return not isinstance(value, str)
        number = value.__index__()
    except (TypeError, ValueError, AttributeError):
        return False
    return t.lowest <= number <= t.highest
