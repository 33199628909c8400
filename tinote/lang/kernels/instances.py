"""Instances of a kernel: one for each template signature that it was called with."""

from __future__ import annotations

import types
import weakref
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tinote.compiler.captures import Capture, same_constant
from tinote.compiler.driver import BoundCode, Origin, Specialisation
from tinote.compiler.launch.native import BoundArray
from tinote.compiler.pysource.names import CaptureKind
from tinote.compiler.requests import PRIMAL, Request
from tinote.compiler.signature import ArrayArgument, PackArgument, StructArgument, TemplateArgument
from tinote.errors import TinoteError
from tinote.ir.nodes import BufferKind
from tinote.ir.types import Scalar, Tensor
from tinote.lang.data.structured import results_of
from tinote.lang.kernels.aliasing import families_of, meet_views
from tinote.lang.kernels.changed_inputs import take_part
from tinote.lang.session.state import BufferCache, session
from tinote.lang.tables import ShownAsTable
from tinote.lazy import lazy

if TYPE_CHECKING:
    from tinote.compiler.inspect import kinds, stages
else:
    kinds = lazy("tinote.compiler.inspect.kinds")
    stages = lazy("tinote.compiler.inspect.stages")

_LONGEST_VALUE = 40


class Listing(str):
    """A program's text. Shows itself as it is, also at the end of a notebook cell."""

    def __repr__(self) -> str:
        return str(self)


class Instance:
    """One template signature of a kernel, ready to launch.

    `calls`: how often it was launched. `seconds`: what compiling it took, its gradient included if there is one.
    `cache_hits`: for how many of its binaries (primal, gradient, tangent) the machine code was there already, in memory
    or on disk (`origin`). `result` makes of a launch's numbers what the kernel returns.
    """

    __slots__ = (
        "__weakref__",
        "arguments",
        "attributes",
        "builtins",
        "by_memory",
        "calls",
        "cells",
        "checks",
        "families",
        "further",
        "kernel_name",
        "last",
        "last_seed",
        "names",
        "needs_seed",
        "notes",
        "others",
        "owner",
        "primal",
        "pushforwards",
        "result",
        "returns_floats",
        "specialisation",
        "taped",
        "with_temporaries",
        "writes_copies",
    )

    def __init__(self, specialisation: Specialisation) -> None:
        self.specialisation = specialisation
        self.owner: weakref.ref[Any] | None = None  # the field that keeps it (`instance_table.py`)
        self.arguments: Any = None  # what launches without arrays do to memory (`arguments.py`)
        self.by_memory = BufferCache()  # what recorded launches with arrays of ours do to memory
        self.taped: Any = None  # the same under a tape that gives no temporary gradients to what it touches
        self.with_temporaries: dict[Request, Any] = {}  # the same with temporary gradients
        self.kernel_name = specialisation.source.name
        self.primal = specialisation.code(PRIMAL)
        self.needs_seed = specialisation.uses_random
        touched = specialisation.accesses()
        fields = [b for b in (*touched.loaded, *touched.written) if b.kind is BufferKind.FIELD]
        #: the fields, and ndarrays used as such, whose memory or shadows it touches
        self.families = families_of(fields) if specialisation.arrays else frozenset()
        signature = specialisation.signature
        self.result = results_of(specialisation.source, signature.returns, signature.returns_tuple)
        #: how many of the numbers that a launch returns are floats
        self.returns_floats = sum([_floats(t) for t in signature.returns or ()])
        self.pushforwards: dict[Any, Instance] = {}  # by where tangents are (`ad/functional/tangent_fields.py`)
        self.writes_copies = False  # whether it was launched on an array of which it got a copy to write to
        self.calls = 0
        self.last = 0  # which launch of those that have an order its own was (`changed_inputs.py`); 0: it has none
        self.checks = 0  # how many of its gradients were compared with that
        self.notes = self.needs_seed or take_part(self)  # whether anything is noted at each launch
        self.last_seed = 0  # a gradient replays the draws of the launch before it
        names: list[tuple[dict[Any, Any], Any, Any]] = []
        builtins: list[tuple[dict[Any, Any], str]] = []
        cells: list[tuple[Any, Any]] = []
        attributes: list[tuple[Any, str, Any]] = []
        others: list[Capture] = []
        for c in specialisation.captures:
            owner = _owner_of(c)
            ours = isinstance(owner, dict) and (owner.get("__name__") or "").startswith("tinote")
            if c.kind is CaptureKind.CELL:
                cells.append((owner, c.value))
            elif c.kind is CaptureKind.BUILTIN:
                if not ours:
                    builtins.append((owner, c.key))
            elif c.kind in (CaptureKind.NAME, CaptureKind.ATTRIBUTE) and isinstance(owner, dict):
                if c.key in owner and not ours:
                    names.append((owner, c.key, c.value))
            elif c.kind is CaptureKind.ATTRIBUTE and c.is_same():
                attributes.append((owner, c.key, c.value))
            elif c.kind is CaptureKind.ATTRIBUTE and (method := _method_of(owner, c.key, c.value)) is not None:
                builtins.append((owner.__dict__, c.key))
                attributes += [(owner, "__class__", type(owner)), (type(owner), c.key, method)]
            else:
                others.append(c)
        #: what it captured, as `is_current` (`kernel.py`) asks for it
        self.names, self.cells, self.others = tuple(names), tuple(cells), tuple(others)
        self.builtins, self.attributes = tuple(builtins), tuple(attributes)
        self.further = bool(cells or builtins or attributes or others)

    def origin_of(self, code: Any) -> tuple[Specialisation, Request] | None:
        """The kernel and the request of some code: this kernel's, or that of a pushforward of it."""
        request = self.specialisation.request_of(code)
        if request is not None:
            return self.specialisation, request
        found = [one.origin_of(code) for one in list(self.pushforwards.values())]
        return next((one for one in found if one is not None), None)

    def sharing_memory_of(self, arrays: Sequence[BoundArray]) -> Sequence[int]:
        """The positions of arguments that have memory in common with what it uses by name."""
        if session.has_views and meet_views(arrays):
            return range(len(arrays))
        found: list[int] = []
        for k, array in enumerate(arrays):
            buffer = array.buffer
            if buffer is not None:
                while buffer.primal is not None:  # `family_of`, without a call at every launch
                    buffer = buffer.primal
                if buffer in self.families:
                    found.append(k)
        return found

    def tell_lookups(self, dependencies: Any) -> bool:
        """Tell what the code captured, each with its owner, its key and its value: names of namespaces, variables of
        outer functions, attributes. Gives whether that is all that `is_current` asks.
        """
        for owner, key, value in self.names:
            dependencies.name(owner, key, value)
        for owner, value in self.cells:
            dependencies.cell(owner, self.kernel_name, value)
        for owner, key, value in self.attributes:
            dependencies.attribute(owner, key, value)
        for owner, key in self.builtins:
            dependencies.absent(owner, key)
        return not self.others

    # ---- its code

    @property
    def signature(self) -> str:
        """The parameters as this instance has them: `x=<field …>` for a template, `n: i32` for a value."""
        source = self.specialisation.source
        pairs = zip(source.parameters, self.specialisation.arguments, strict=True)
        return f"{source.name}({', '.join(_argument(parameter.arg, argument) for parameter, argument in pairs)})"

    @property
    def seconds(self) -> float:
        specialisation = self.specialisation
        return specialisation.front_end_seconds + sum(native.seconds for _, native in specialisation.results())

    @property
    def cache_hits(self) -> int:
        return sum(native.cached for _, native in self.specialisation.results())

    @property
    def origin(self) -> Origin:
        """Where the primal's machine code came from."""
        return self.primal.origin

    # ---- looking inside

    def ir(self, stage: str | None = None, *, gradient: bool = False) -> Listing:
        """The IR after a step of the compiler (`"front end"`, `"offload"`, …), by default after the last. A step that
        ran several times shows its last run; `"simplify 2: fold"` names one.
        """
        found = [s for s in stages.stages_of(self.specialisation, gradient).stages if s.kind is kinds.IR]
        if stage is None:
            return Listing(found[-1].text)
        for candidate in reversed(found):
            if stage in (candidate.name, f"{candidate.group}: {candidate.name}"):
                return Listing(candidate.text)
        names = list(dict.fromkeys(s.name for s in found))
        raise TinoteError(
            f"no stage of '{self.kernel_name}' is called {stage!r}",
            self.specialisation.source.span,
            hint=f"there are {', '.join(names)}",
        )

    def llvm(self, optimised: bool = False, *, gradient: bool = False) -> Listing:
        """The LLVM IR, as generated or after LLVM's own passes."""
        return Listing(self._native(kinds.LLVM, gradient)[1 if optimised else 0].text)

    def asm(self, *, gradient: bool = False) -> Listing:
        """The machine code, as assembly."""
        return Listing(self._native(kinds.ASSEMBLY, gradient)[0].text)

    def python(self, *, gradient: bool = False) -> Listing:
        """The plain Python that `ti.init(arch=ti.python)` runs in place of machine code."""
        return Listing(stages.python_of(self.specialisation, gradient=gradient).text)

    def wgsl(self, *, gradient: bool = False) -> Listing:
        """The WGSL that `ti.init(arch=ti.gpu)` runs in place of machine code. Raises `KernelTargetError` for what it
        cannot say.
        """
        return Listing(stages.wgsl_of(self.specialisation, gradient=gradient).text)

    def _native(self, kind: kinds.StageKind, gradient: bool) -> list[Any]:
        """The stages after the IR that are of this kind."""
        if self.specialisation.config.arch == "python":
            raise TinoteError(
                f"'{self.kernel_name}' runs as plain Python: there is no machine code to show",
                self.specialisation.source.span,
                hint=f"see {self.kernel_name}.python(), or compile it with ti.init(arch=ti.cpu)",
            )
        if self.specialisation.config.arch == "gpu":
            raise TinoteError(
                f"'{self.kernel_name}' runs on a GPU: there is no machine code to show",
                self.specialisation.source.span,
                hint=f"see {self.kernel_name}.wgsl(), or compile it with ti.init(arch=ti.cpu)",
            )
        return [s for s in stages.stages_of(self.specialisation, gradient).stages if s.kind is kind]

    def __repr__(self) -> str:
        return f"<instance {self.signature}: {_count(self.calls, 'call')}, made in {1e3 * self.seconds:.1f} ms>"


def _floats(t: Scalar | Tensor) -> int:
    if isinstance(t, Tensor):
        return t.count if t.dtype.kind == "f" else 0
    return int(t.kind == "f")


def _method_of(owner: Any, key: str, value: Any) -> Any:
    """The function of a method, which the class of its object has; `None` for another attribute. The method itself is
    another object each time.
    """
    bound_to = getattr(value, "__self__", getattr(value, "__tinote_self__", None))
    names = getattr(owner, "__dict__", None)
    if bound_to is not owner or not isinstance(names, dict) or key in names:
        return None
    held: Any = getattr(type(owner), key, None)  # of a class method, another object each time
    is_method = hasattr(held, "__get__") and held is getattr(type(owner), key, None)
    return held if is_method and same_constant(held.__get__(owner), value) else None


def _owner_of(capture: Capture) -> Any:
    """Where a capture is looked up; of a module, its namespace, which is faster to ask."""
    if capture.kind is CaptureKind.ATTRIBUTE and isinstance(capture.owner, types.ModuleType):
        return capture.owner.__dict__
    return capture.owner


class Instances(ShownAsTable, list[Instance]):
    """A kernel's instances, the newest last; shows itself as a table."""

    _heads = ("signature", "version", "compile time", "machine code", "calls", "cache hits")
    _left = 4
    _nothing = "no instances: the kernel was not called"

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (
                instance.signature,
                "current" if instance.specialisation.is_current() else "older",
                f"{1e3 * instance.seconds:.1f} ms",
                _origins(instance.specialisation.results()),
                str(instance.calls),
                str(instance.cache_hits),
            )
            for instance in self
        ]

    def _repr_html_(self) -> str:
        return super()._repr_html_() if self else self._nothing


def _origins(compiled: Iterable[tuple[Request, BoundCode]]) -> str:
    return ", ".join(
        native.origin.value if request is PRIMAL else f"{request.name}: {native.origin.value}"
        for request, native in compiled
    )


def _argument(name: str, argument: Any) -> str:
    if isinstance(argument, TemplateArgument):
        text = repr(argument.value)
        return f"{name}={text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + '…'}"
    if isinstance(argument, ArrayArgument):
        return f"{name}: {argument.buffer.element_type!r} array of {_count(argument.buffer.rank, 'dimension')}"
    if isinstance(argument, StructArgument):
        return f"{name}: {argument.info.name}"
    if isinstance(argument, PackArgument):
        members = [(f".{member.lstrip('_')}", given) for member, given in argument.members.items()]
        return f"{name}: {', '.join(_argument(*one) for one in members)}"
    return f"{name}: {argument.type!r}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
