"""The session's state: options, living fields, and the recorders that are notified of launches and writes."""

from __future__ import annotations

import platform
import sys
import warnings
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from numbers import Integral
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, Unpack

from tinote.compiler.protocol import unit_of
from tinote.compiler.requests import GRADIENT, Request
from tinote.completion import Documented
from tinote.config import Config
from tinote.errors import DifferentiationError, FieldError, Note, SerializationError, closest, suggestion
from tinote.ir.nodes import Buffer
from tinote.ir.types import BY_NUMPY_NAME, Scalar, f32, f64, i32, i64, scalar_named
from tinote.lang.index_regions import region_at
from tinote.lazy import lazy
from tinote.runtime import out_of_bounds
from tinote.runtime.memory import Memory
from tinote.runtime.owner import Owner
from tinote.runtime.pool import MOST_IDLE, pool
from tinote.runtime.seam import active_listener
from tinote.source import NOWHERE, Span, caller, span_at, users_frame

if TYPE_CHECKING:
    from tinote.runtime import gpu, out_of_bounds
else:
    gpu = lazy("tinote.runtime.gpu")  # programs that run on the CPU need nothing of it


class Arch(Documented):
    """A target that programs may ask for: the CPU, a GPU, or plain Python.

    A target that the machine does not have falls back to the CPU, with one warning. Names of the same target are equal:
    that of this machine's processor to `ti.cpu`, and those of the graphics interfaces that kernels can use to `ti.gpu`.

    Attributes
    ----------
    name : str
        The name in the package, such as 'cpu'.
    """

    __slots__ = ("name", "real")

    def __init__(self, name: str, real: bool) -> None:
        self.name = name
        #: whether each machine has it
        self.real = real

    @property
    def target(self) -> str:
        """What kernels would run on (`Config.arch`); its own name for what no kernel runs on."""
        if self.name == HOST:
            return "cpu"
        return "gpu" if self.name in _GPUS else self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Arch) and self.target == other.target

    def __hash__(self) -> int:
        return hash(self.target)

    def __repr__(self) -> str:
        return f"ti.{self.name}"


#: This machine's processor.
HOST = "arm64" if platform.machine().lower() in ("arm64", "aarch64") else "x64"
_OTHERS = ("arm64", "x64", "gpu", "cuda", "vulkan", "metal", "opengl", "gles", "amdgpu", "dx11", "dx12", "cc")
_ARCHES = {name: Arch(name, name in ("cpu", HOST, "python")) for name in ("cpu", "python", *_OTHERS)}
#: What means a GPU through Vulkan, Metal or DirectX 12, whichever the machine has.
_GPUS = ("gpu", "vulkan", "metal", "dx12")
#: What exists elsewhere and not here; most programs that name it want a GPU.
_NOT_THESE = ("cuda", "opengl", "gles", "amdgpu")


def arches() -> dict[str, Arch]:
    """Every target by its name."""
    return dict(_ARCHES)


class Recorder:
    """Base class of recorders (an open tape, a forward-mode block, …), which are called for each launch, and for what
    Python does to fields, in their context. Each method of this one does nothing.
    """

    #: whether a write from Python sets duals to zero
    clears_duals = False
    #: what numbers that Python reads belong to (`lang/data/traced.py`), if they matter
    trace: Any = None
    #: what `kernel.grad` runs meanwhile; None: it is refused
    gradients: Request | None = GRADIENT
    #: whether it differentiates nothing that runs now, so that others may record and differentiate meanwhile
    #: (`independent_recordings`)
    lets_record = False
    #: whether functions with a custom gradient run without being followed by their launches (else these must agree)
    takes_custom = True
    #: how many levels of derivatives around it have memory of their own (`ad/functional/forward.py`), and the
    #: greatest such number of the blocks that have recorded here
    depth = deepest = 0
    #: where it was opened, if that is known
    opened: Span | None = None
    #: the same for what is around it, as notes
    opened_within: Sequence[Note] = ()
    #: of one that is open (`owners.py`): who has opened it, in which thread, and how it is known there
    owner: Owner | None = None
    thread = 0
    reference: weakref.ref[Recorder] | None = None
    #: the gradients and duals that it computes, whether it does so now, and whether they are results, to be read later
    shadows: Set[Buffer] = frozenset()
    is_using = False
    leaves = False
    #: those of the same thread that it interrupts, if a signal handler has opened it while they compute derivatives
    interrupts: Sequence[Recorder] = ()
    #: what another recording has used at the same time, where that was opened, and whether one interrupts the other one
    met: tuple[Buffer, Span, bool] | None = None
    #: whether it is over
    has_ended = False
    #: the launch that is being recorded now: one that interrupts it is not a part of this
    under_way: tuple[Any, tuple[Any, ...]] | None = None
    #: the launch that others were notified of last
    announced: tuple[Any, tuple[Any, ...]] | None = None

    def opened_notes(self) -> list[Note]:
        """For the error of what cannot run inside of it: its line, and those of what is around."""
        own = [] if self.opened is None else [Note("inside of this", self.opened)]
        return list(dict.fromkeys([*own, *self.opened_within]))

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise SerializationError(
            f"an open recording ({type(self).__name__}) belongs to this process and cannot be sent to another one",
            caller(),
            hint="open it in the function that is sent",
        )

    @property
    def root(self) -> Recorder:
        """The recording below all blocks of pushforwards (`ad/functional/forward.py`)."""
        return self

    @property
    def lifts(self) -> list[Any]:
        """The blocks of pushforwards up to this one, the outermost first."""
        return []

    @property
    def next_depth(self) -> int:
        """A depth that nothing around uses."""
        return 1 + max([self.root.depth, *[block.depth for block in self.lifts]])

    @property
    def shadows_with_values(self) -> set[Buffer]:
        """The gradients and duals that hold values here: the results of derivatives inside of this one."""
        return set()

    def keep_gradients_apart(self) -> None:
        """A derivative inside of this one is about to compute gradients of its own."""

    def has_values(self, shadows: Collection[Buffer], span: Span) -> None:
        """These gradients or duals are results of a derivative inside of this one, at `span`: ordinary values."""

    def leaving_value(self, buffer: Buffer) -> AbstractContextManager[Buffer]:
        """A block in which such a gradient or dual gets its value; gives the place of that. Other memory is its own."""
        return nullcontext(buffer)

    def used(self) -> Mapping[Buffer, bool]:
        """The memory that it has used so far, and whether it has written there, as far as that is known."""
        return {}

    def meeting(self, other: Recorder) -> Buffer | None:
        """What one of the two has written and the other one has used."""
        own, others = self.used(), other.used()
        return next((buffer for buffer in own.keys() & others.keys() if own[buffer] or others[buffer]), None)

    def begin_duals(self, duals: Collection[Any]) -> None:
        """These are about to be used: they begin at zero, if this recording has not used them yet."""

    def begin_all_duals(self) -> None:
        """A derivative inside of this one is about to use duals: any."""

    def launching(self, instance: Any, values: tuple[Any, ...]) -> Any:
        """A kernel is about to be launched. Gives the machine code to run in place of the primal, if any."""

    def preparing_gradient(self) -> bool:
        """The gradient of a kernel is about to be launched directly. Gives whether fields have got shadows, so that
        its arguments are to be looked at again.
        """
        return False

    def launching_gradient(self, instance: Any, values: tuple[Any, ...]) -> Any:
        """It is launched with these values; gives the code."""
        return instance.specialisation.code(self.gradients)

    def launched(self) -> None:
        """The launch that was announced has completed. (One that raised has written fields, but does not count.)"""

    def writing(self, buffer: Buffer, position: Any, value: Any = None, source: Buffer | None = None) -> None:
        """Python is about to write to a field, at `position` in its array (of the field's shape followed by that
        of its elements; `...`: all of it): `value`, or all that is in the field `source`.
        """

    def sharing(self, buffer: Buffer) -> None:
        """Python is about to export an array, through which other code may write to a field from now on."""

    def reading(self, buffer: Buffer, position: tuple[int, ...], value: Any) -> Any:
        """Python reads the element of a field at `position`, a number or an array of its components. Gives what it
        gets: numbers that remember where they came from, if they matter to whoever records.
        """
        return value

    def number_at(self, buffer: Buffer, position: tuple[int, ...], value: float) -> Any:
        """The same for a number: an element, or a component of one."""
        return value

    def taking(self, buffer: Buffer) -> None:
        """Python takes a whole field out as an array."""

    def making(self, buffer: Buffer, of: Buffer | None = None) -> None:
        """A derivative has made an array, which is another one when it runs again; `of`: with the tangents of this."""

    def made_by_user(self, field: Any) -> None:
        """The program has made an array."""

    def overwriting_independently(self, buffer: Buffer) -> None:
        """What others record and differentiate meanwhile is about to write to a field."""

    def ran_independently(self, loaded: Collection[Buffer], written: Collection[Buffer]) -> None:
        """What others have recorded and differentiated meanwhile has read and written these fields and arrays."""

    def computing(self, computation: Any) -> None:
        """A computation on whole arrays, which has derivatives of its own, is asked for: run it."""
        for buffer in computation.inputs:
            self.taking(buffer)
        computation.compute()

    def running(self, program: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A captured step (`ti.capture`) is called: run it. By default as the function that it was."""
        return program.__tinote_step__(*args, **kwargs)


#: The recorder of this context, if one is open. Threads and tasks that were started elsewhere do not see it.
recorder: ContextVar[Recorder | None] = ContextVar("tinote_recorder", default=None)
#: that recorder, and how it is set: each launch and each tape asks, and looking a method up takes as long as calling it
present_recorder, set_recorder = recorder.get, recorder.set


def block_out_of_order(opened: Span) -> DifferentiationError:
    """The error of a `with` block of the user's that differentiates and ends where another recorder than its own is
    open. Blocks of one context end in the opposite order: generators, which go on where they were, could end them
    otherwise.
    """
    present = recorder.get()
    what = "the block ends in another thread or task than it began in, or an outer one has ended before"
    notes = []
    if present is not None:
        what = "the block ends before another one that was opened later and is still open"
        notes = [] if present.opened is None else [Note("the other one", present.opened)]
    hint = "a generator that differentiates yields before or after its block, not inside"
    return DifferentiationError(what, opened, hint=hint, notes=notes)


class OutsideWatcher(Protocol):
    """An open recording, as writes from outside of its context see it."""

    def launching_outside(self, instance: Any, values: tuple[Any, ...]) -> None:
        """A kernel is about to be launched in another context."""

    def overwriting_outside(self, buffer: Buffer, region: Any = None) -> None:
        """Elements of a field, by default all, are about to be written there."""

    def replaying_outside(self, memories: Iterable[Memory]) -> bool:
        """What a captured step does to this memory is about to be done there again, by one native call. Gives whether
        it may: launch by launch it would be notified.
        """
        ...


#: The recording that this context has opened itself: it is not among those that watch from outside.
own_watcher: ContextVar[OutsideWatcher | None] = ContextVar("tinote_watcher", default=None)
present_watcher, set_watcher = own_watcher.get, own_watcher.set


#: How far apart the seeds of sessions with neighbouring `random_seed` begin.
SEED_STEP = 0x9E3779B97F4A7C15

#: Of one buffer; then those of caches that are gone are looked for.
_MOST_ENTRIES = 64


class BufferCache(dict[Any, Any]):
    """What is known of some buffers, by a key that has their identities. An entry goes with the first of their fields
    (`Session.keep_for`).
    """


_NOTHING = object()


class OfBuffers(weakref.WeakKeyDictionary[Any, Any]):
    """What is known of buffers or fields, as long as they are alive. While they are counted over, another thread may
    make some, and others may go.
    """

    def items(self) -> Iterator[tuple[Any, Any]]:  # type: ignore[override]  # pyright: ignore
        for one in self:
            value = self.get(one, _NOTHING)
            if value is not _NOTHING:
                yield one, value

    def __iter__(self) -> Iterator[Any]:
        # Not of a copy: while CPython 3.11 makes a dictionary, the garbage collector may take entries of this one.
        for reference in list(self.data):  # type: ignore[attr-defined]  # pyright: ignore
            one = reference()
            if one is not None:
                yield one

    def values(self) -> Iterator[Any]:  # type: ignore[override]  # pyright: ignore
        return (value for _, value in self.items())


class Fields(OfBuffers):
    """The fields that are alive, the oldest first."""

    def add(self, field: Any) -> None:
        self[field] = None

    def discard(self, field: Any) -> None:
        self.pop(field, None)


class Session:
    """`config`: the options in force. `resets` counts resets: a field made before the last one is dead. `generation`
    counts what makes compiled kernels stale, too: instances of an earlier one are not used any more.
    """

    def __init__(self) -> None:
        self.config = Config()
        self.generation = 0
        self.resets = 0
        self.attached = 0  # counts gradients and duals that fields have got
        self.fields = Fields()
        self.memories: weakref.WeakKeyDictionary[Buffer, Memory] = OfBuffers()
        self.views: weakref.WeakKeyDictionary[Buffer, list[weakref.ref[Any]]] = OfBuffers()
        self.has_views = False  # whether there may be any; asked at each launch, where asking `views` would tell
        #: of all living fields, by what is asked (`owners.py`); empty: to be collected anew
        self.gradients: dict[Any, Any] = {}
        #: the owner of a gradient or dual, if another one than the session has computed it
        self.owners: weakref.WeakKeyDictionary[Buffer, Owner] = OfBuffers()
        self.has_owners = False  # whether there may be any; asked by each tape, where asking `owners` would tell
        #: of all contexts. One call adds or removes one, which neither a thread nor an interrupt can part.
        self.watchers: list[OutsideWatcher] = []
        #: how many launches there were of kernels that touch fields with a gradient (`kernels/changed_inputs.py`); that
        #: number when Python last wrote to what these read, and when a captured program last ran
        self.order = 0
        self.changed = self.replayed = -1
        self.changes: weakref.WeakKeyDictionary[Buffer, list[PythonWrite]] = OfBuffers()
        self.launches = 0
        self.warned: set[str] = set()
        self.on_reset: list[Any] = []
        self._entries: dict[Buffer, dict[tuple[int, Any], weakref.ref[BufferCache]]] = {}  # of each buffer

    def new_memory(self, nbytes: int, *, clear: bool = True) -> Memory:
        """Zeros, or, without `clear`, anything: on the device, where kernels run on one. Raises `MemoryError`."""
        if self.config.arch == "gpu":
            try:
                return gpu.ResidentMemory(gpu.open_device(self.config.software_gpu), nbytes, clear=clear)
            except gpu.NoDevice:  # it was lost; a launch says so
                pass
        return Memory(nbytes, clear=clear)

    def launching_together(self) -> AbstractContextManager[None]:
        """A context whose launches reach a device at once, where kernels run on one."""
        return gpu.together() if self.config.arch == "gpu" else nullcontext()

    @contextmanager
    def on_cpu(self) -> Iterator[None]:
        """A context in which kernels run on the CPU, also where others run on a GPU. They find all memory as it is."""
        if self.config.arch != "gpu":
            yield
            return
        for memory in list(self.memories.values()):
            memory.whole.to_host()  # what is copied there, and back, stays there
        outer, generation = self.config, self.generation
        self.config = outer._replace(arch="cpu", software_gpu=False)
        self.generation = other = ~generation  # kernels keep the instances of one other generation
        try:
            yield
        finally:
            self.config = outer
            self.generation = generation if self.generation == other else generation + 1

    def forget_instances(self) -> None:
        """Fields are gone that kernels may have been compiled for: they look again at what they captured."""
        self.generation += 1

    def keep_for(self, buffers: Iterable[Buffer], cache: BufferCache, key: Any) -> None:
        """The entry `key` of a cache holds these buffers: it goes when a field of theirs does."""
        for buffer in buffers:
            entries = self._entries.setdefault(buffer, {})
            if len(entries) > _MOST_ENTRIES:
                for one in [one for one, other in entries.items() if other() is None]:
                    del entries[one]
            entries[id(cache), key] = weakref.ref(cache)

    def drop_entries(self, buffer: Buffer) -> None:
        """The field of a buffer is gone."""
        for (_, key), known in self._entries.pop(buffer, {}).items():
            cache = known()
            if cache is not None:
                cache.pop(key, None)

    def next_seed(self) -> int:
        """The seed of the next launch that draws random numbers: different for each, the same sequence for the same
        `random_seed`.
        """
        count = self.launches = self.launches + 1  # of each thread another one
        found = (self.config.random_seed * SEED_STEP + count) & 0xFFFFFFFFFFFFFFFF
        listener = active_listener()
        return found if listener is None else listener.seed(found)

    def random_state(self) -> int:
        """Where the sequence of seeds is, whatever `random_seed` it began with."""
        return (self.config.random_seed * SEED_STEP + self.launches) & 0xFFFFFFFFFFFFFFFF

    def set_random_state(self, state: int) -> None:
        """Let the sequence of seeds go on from where `random_state` was."""
        self.launches = (state - self.config.random_seed * SEED_STEP) & 0xFFFFFFFFFFFFFFFF


session = Session()


def memory_of(buffer: Buffer) -> Memory:
    """The memory of a field's buffer."""
    return session.memories[buffer]


def forget_gradients() -> None:
    """A field came or went, or has another owner: collect gradients and duals anew when they are next asked for."""
    session.gradients = {}


def clears_duals() -> bool:
    """Whether a write from Python sets duals to zero: forward mode is on."""
    open_recorder = recorder.get()
    return open_recorder is not None and open_recorder.clears_duals


@contextmanager
def recording_as(other: Recorder | None) -> Iterator[None]:
    """A block in which `other` is called for launches and writes."""
    outer = recorder.get()
    try:
        recorder.set(other)
        yield
    except GeneratorExit:  # an interrupt has kept the block from ending, and its remains are collected, perhaps later
        if other is not None and recorder.get() is other:
            recorder.set(outer)
        raise
    except BaseException:
        recorder.set(outer)
        raise
    recorder.set(outer)


@contextmanager
def watching(watcher: OutsideWatcher) -> Iterator[None]:
    """A block in which `watcher` observes all contexts, this one included."""
    try:
        session.watchers.append(watcher)
        yield
    finally:
        if watcher in session.watchers:
            session.watchers.remove(watcher)


def end_watch(watcher: OutsideWatcher, before: OutsideWatcher | None) -> None:
    """The end of what `watch` began; `before` watched for this context."""
    if watcher in session.watchers:
        session.watchers.remove(watcher)
    set_watcher(before)


def may_replay(memories: Iterable[Memory], *knowing: OutsideWatcher) -> bool:
    """Whether a captured step that uses this memory may be replayed. `knowing`: recordings that know of it."""
    for watcher in tuple(session.watchers):
        if watcher not in knowing and not watcher.replaying_outside(memories):
            return False
    return True


@contextmanager
def independent_recordings() -> Iterator[None]:
    """A block that the recorder of this context does not see; to it, recordings of the block are those of another
    context.
    """
    watching = own_watcher.get()
    with recording_as(None):
        try:
            own_watcher.set(None)
            yield
        finally:
            own_watcher.set(watching)


def note_launch_outside(instance: Any, values: tuple[Any, ...]) -> None:
    """Tell the recordings of other contexts that a kernel is about to be launched."""
    own, open_recorder = own_watcher.get(), recorder.get()
    if open_recorder is not None:
        open_recorder.announced = instance, values  # of two that tell each other at the same time, one sees this
    try:
        for watcher in tuple(session.watchers):
            if watcher is not own:
                watcher.launching_outside(instance, values)
    except BaseException:
        if open_recorder is not None:
            open_recorder.announced = None
        raise


def note_python_write(buffer: Buffer, position: Any = ..., value: Any = None, source: Buffer | None = None) -> None:
    """Tell an open recorder that Python is about to write to a field (`Recorder.writing`), and those of other contexts,
    too.
    """
    open_recorder = recorder.get()
    if session.watchers and session.watchers != [open_recorder]:
        _tell_watchers(buffer, position)  # first: what the recorder makes of it changes duals
    if open_recorder is not None:
        open_recorder.writing(buffer, position, value, source)


def note_making(buffer: Buffer) -> None:
    """Tell an open recorder that a derivative has made an array (`Recorder.making`)."""
    open_recorder = recorder.get()
    if open_recorder is not None:
        open_recorder.making(buffer)


#: The largest number of Python's writes to one field that are remembered one by one.
_MOST_WRITES = 8


class PythonWrite:
    """Where Python wrote to a field, at a `position` of its array, and after how many launches (`Session.order`)."""

    __slots__ = ("code", "instruction", "order", "position")

    def __init__(self, position: Any, code: CodeType, instruction: int) -> None:
        self.order = session.order
        self.position = position
        self.code = code
        self.instruction = instruction

    def is_at(self, frame: FrameType, position: Any) -> bool:
        """Whether this line wrote there."""
        return self.code is frame.f_code and self.instruction == frame.f_lasti and self.position == position

    @property
    def span(self) -> Span:
        """The user's line."""
        return span_at(self.code, self.instruction)


def note_change(buffer: Buffer, position: Any) -> bool:
    """Python is about to write to what a kernel reads that touches fields with a gradient. Gives whether all of it is
    known to have changed, until the next launch.
    """
    order = session.changed = session.order
    writes = session.changes.get(buffer)
    if writes is None:
        writes = session.changes[buffer] = []
    usual = sys._getframe(2).f_back  # who has called the method that has called `Field._wrote`
    if usual is not None and len(writes) == 1 and writes[0].is_at(usual, position):  # as in the iteration before
        writes[0].order = order
        return position is ...
    frame = users_frame()
    if len(writes) >= _MOST_WRITES:
        position = ...
    writes[:] = [one for one in writes if position is not ... and one.position != position]
    writes.append(PythonWrite(position, frame.f_code, frame.f_lasti))
    return position is ...


def note_shared(buffer: Buffer) -> None:
    """Tell an open recorder, and those of other contexts, that Python makes an array to write to a field through."""
    open_recorder = recorder.get()
    if open_recorder is not None:
        open_recorder.sharing(buffer)
    _tell_watchers(buffer, ...)


def _tell_watchers(buffer: Buffer, position: Any) -> None:
    own = own_watcher.get()
    for watcher in tuple(session.watchers):
        if watcher is not own:
            watcher.overwriting_outside(buffer, region_at(buffer, position))


def note_overwriting(buffer: Buffer) -> None:
    """Tell the recorders of other contexts that a field is about to be written."""
    _tell_watchers(buffer, ...)


def note_taken(buffer: Buffer) -> None:
    """Tell an open recorder that Python takes a whole field out as an array."""
    open_recorder = recorder.get()
    if open_recorder is not None:
        open_recorder.taking(buffer)


def note_view(buffer: Buffer, base: Any) -> None:
    """Remember an exported array, through which other code may write to a field, as long as it lives."""
    known = [r for r in session.views.get(buffer, ()) if r() is not None]
    session.views[buffer] = [*known, weakref.ref(base)]
    session.has_views = True


def is_viewed(buffer: Buffer) -> bool:
    """Whether the field's memory may be written by others unnoticed."""
    known = session.views.get(buffer)
    return known is not None and any(r() is not None for r in known)


def are_viewed() -> bool:
    """Whether the memory of any field may be written by others unnoticed."""
    return any(map(is_viewed, list(session.views)))


def scalar_type(dtype: Any, where: Span = NOWHERE) -> Scalar:
    """The scalar type meant by `ti.f32`, `float`, `int`, `bool`, a NumPy type or its name. Raises `FieldError`."""
    if isinstance(dtype, Scalar):
        return dtype
    if unit_of(dtype) is not None:
        raise FieldError(
            f"{dtype!r} has a unit, which only fields, arguments, variables and results have",
            where,
            hint=f"write {dtype.scalar!r} here",
        )
    if dtype is float:
        return scalar_named(session.config.default_fp)
    if dtype is int:
        return scalar_named(session.config.default_ip)
    if dtype is bool:
        return scalar_named("u1")
    name = getattr(dtype, "__name__", None) or getattr(dtype, "name", None) or dtype
    found = BY_NUMPY_NAME.get(name)
    if dtype is None:
        raise FieldError("a type of numbers is missing", where, hint="give one: ti.f32, ti.f64, ti.i32, …")
    if found is None:
        raise FieldError(f"{dtype!r} is not a number type", where, hint="use ti.f32, ti.f64, ti.i32, ...")
    return found


# What existing programs set, and what has nothing to steer here: how other compilers work, where they keep things.
class _Unused(TypedDict, total=False):
    ad_stack_size: Any
    advanced_optimization: Any
    async_mode: Any
    cache_loop_invariant_global_vars: Any
    cfg_optimization: Any
    cpu_block_dim_adaptive: Any
    cuda_stack_limit: Any
    default_cpu_block_dim: Any
    default_gpu_block_dim: Any
    default_up: Any
    demote_dense_struct_fors: Any
    detect_read_only: Any
    device_memory_GB: Any
    device_memory_fraction: Any
    dynamic_index: Any
    enable_fallback: Any
    excepthook: Any
    flatten_if: Any
    force_scalarize_matrix: Any
    gdb_trigger: Any
    gpu_max_reg: Any
    half2_vectorization: Any
    kernel_profiler_output: Any
    log_level: Any
    lower_access: Any
    make_block_local: Any
    make_cpu_multithreading_loop: Any
    make_thread_local: Any
    max_block_dim: Any
    move_loop_invariant_outside_if: Any
    ndarray_use_cached_allocator: Any
    num_compile_threads: Any
    offline_cache_cleaning_factor: Any
    offline_cache_cleaning_policy: Any
    offline_cache_file_path: Any
    offline_cache_max_size_of_files: Any
    packed: Any
    print_accessor_ir: Any
    print_ir_dbg_info: Any
    print_kernel_asm: Any
    print_kernel_llvm_ir: Any
    print_kernel_llvm_ir_optimized: Any
    print_kernel_nvptx: Any
    print_preprocessed_ir: Any
    print_struct_llvm_ir: Any
    real_matrix: Any
    real_matrix_scalarize: Any
    require_version: Any
    saturating_grid_dim: Any
    short_circuit_operators: Any
    simplify_after_lower_access: Any
    simplify_before_lower_access: Any
    timeline: Any
    unrolling_limit: Any
    use_llvm: Any
    use_unified_memory: Any
    verbose: Any
    verbose_kernel_launches: Any
    vk_api_version: Any  # fmt: skip


class _Others(_Unused, total=False):
    """Options by the names that earlier versions of the dialect gave them, and the unused ones."""

    check_out_of_bound: bool
    cpu_max_num_threads: int


def init(
    arch: Any = None,
    *,
    debug: bool = False,
    default_fp: Any = f32,
    default_ip: Any = i32,
    fast_math: bool = True,
    num_threads: int | None = None,
    random_seed: int | None = None,
    bounds_check: bool | Literal["ignore"] = True,
    opt_level: int = 3,
    memory_limit: int | None = None,
    print_ir: bool = False,
    kernel_profiler: bool = False,
    lanes: str = "auto",
    offline_cache: bool = True,
    software_gpu: bool = False,
    **others: Unpack[_Others],
) -> None:
    """Start a session with these options; fields made before are gone.

    Parameters
    ----------
    arch : architecture or list of them, default ti.cpu
        `ti.cpu`; `ti.gpu` (or `ti.vulkan`, `ti.metal`, `ti.dx12`), which runs kernels on the graphics card through the
        library wgpu (extra `tinote-lang[gpu]`); or `ti.python`, which runs them as plain Python that a debugger can
        step through. What is not available falls back to the CPU with one warning; of a list, the first available one
        is used.
    debug : bool, default False
        Report overflow of signed integers, and verify each step of the compiler.
    default_fp, default_ip : number type, default ti.f32 and ti.i32
        The types of literals and of `float` and `int`.
    fast_math : bool, default True
        Permit other roundings than those of IEEE arithmetic (see Notes).
    num_threads : int, optional
        The most threads that a launch uses; by default one for each core.
    random_seed : int, optional
        The seed of `ti.random`.
    bounds_check : bool or "ignore", default True
        Check indices that are not proved to be in range. With "ignore", reads outside give 0 and writes there are
        dropped, and a warning at the end of the session says how often that happened, at which lines. With False,
        nothing is checked, and a wrong index reads or destroys memory that is not the field's.
    opt_level : int, default 3
        How much LLVM optimises, from 0 to 3.
    memory_limit : int, optional
        How many bytes one launch may save for its gradient, and a tape of what is overwritten.
    print_ir : bool, default False
        Print the IR after every step that changes it.
    kernel_profiler : bool, default False
        Measure the time of each task (`ti.profiler`).
    lanes : {"auto", "always", "never"}
        Which parallel loops run several iterations at once in vector registers, with masks for what they do
        differently: those for which it pays (`kernel.loops()` says which, and why others do not), all that can, or
        none. LLVM's own vectoriser is not affected.
    offline_cache : bool, default True
        Keep machine code on disk for later sessions.
    software_gpu : bool, default False
        Accept a software driver in place of a graphics card: slower than `ti.cpu`, but useful for tests.
    **others
        Options by the names of earlier versions of the dialect, and those that have no effect here.

    Raises
    ------
    FieldError
        For an option that does not exist, or a value that it cannot have.

    Notes
    -----
    With `fast_math` a result may be rounded differently from IEEE arithmetic in the order of the program: a product and
    an addition are one instruction, a division is a product with a reciprocal, functions are approximated to a few
    units in the last place, and the terms of a sum are added in another order. NaN and infinity stay what they are, and
    neither arises from finite numbers: where all intermediate results are finite, and the sum of the absolute values of
    what is added up is, too, so are the results of fast maths (which may keep a number that IEEE arithmetic loses to
    underflow, and then overflow where the real number does). Factors are never reordered so that a product on the way
    overflows or vanishes; up to two binary digits are lost next to the limits of a type. What depends on the last
    digit, such as the root of a difference of equal numbers, may differ.

    Examples
    --------
    >>> ti.init(arch=ti.cpu, default_fp=ti.f64, random_seed=7)
    >>> ti.cfg.default_fp
    f64
    """
    if default_fp not in (f32, f64):
        raise FieldError(f"default_fp must be ti.f32 or ti.f64, not {default_fp!r}")
    if default_ip not in (i32, i64):
        raise FieldError(f"default_ip must be ti.i32 or ti.i64, not {default_ip!r}")
    if opt_level not in (0, 1, 2, 3):
        raise FieldError(f"opt_level must be 0, 1, 2 or 3, not {opt_level!r}")
    if lanes not in ("auto", "always", "never"):
        raise FieldError(f"lanes must be 'auto', 'always' or 'never', not {lanes!r}")
    threads = num_threads if num_threads is not None else others.pop("cpu_max_num_threads", None)
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise FieldError(f"num_threads must be a positive integer, not {threads!r}")
    for option, given in (("random_seed", random_seed), ("memory_limit", memory_limit)):
        if given is not None and not isinstance(given, Integral):
            raise FieldError(f"{option} must be an integer, not {given!r}")
    bounds_check = others.pop("check_out_of_bound", bounds_check)
    if bounds_check not in (True, False, "ignore"):
        raise FieldError(f'bounds_check must be True, False or "ignore", not {bounds_check!r}', caller())
    for name in others:
        if name not in _Unused.__annotations__:
            close = suggestion(name, ["arch", *(init.__kwdefaults__ or ()), *_Unused.__annotations__])
            raise FieldError(f"ti.init has no option '{name}'{close}", caller())
    choices = list(arch) if isinstance(arch, list | tuple) else [_ARCHES["cpu"] if arch is None else arch]
    for choice in choices:
        if not isinstance(choice, Arch):
            meant = closest(choice, _ARCHES) if isinstance(choice, str) else ""
            named = meant if meant in ("", "cpu", "python") else "gpu"  # By which the others are meant.
            raise FieldError(f"{choice!r} is not an architecture", caller(), hint=f"use ti.{named or 'cpu'}")
    target, wanted, reason = _target(choices or [_ARCHES["cpu"]], bool(software_gpu))
    if target == "cpu" and not wanted.real and wanted.name not in session.warned:
        session.warned.add(wanted.name)
        warnings.warn(f"{wanted!r} is not available, so kernels run on the CPU{reason}", stacklevel=2)
    reset()
    config = Config(
        arch=target,
        debug=debug,
        default_fp=default_fp.name,
        default_ip=default_ip.name,
        fast_math=fast_math,
        random_seed=int(random_seed or 0),
        bounds_check=bounds_check,
        opt_level=opt_level,
        print_ir=bool(print_ir),
        kernel_profiler=bool(kernel_profiler),
        lanes=lanes,
        offline_cache=bool(offline_cache),
        software_gpu=bool(software_gpu) or (target == "gpu" and gpu.wants_software()),
    )
    if threads is not None:
        config = config._replace(num_threads=threads)
    if memory_limit is not None:
        config = config._replace(memory_limit=int(memory_limit))
    session.config = config
    pool.limit = min(MOST_IDLE, max(config.memory_limit, 0))


def gpu_backends() -> set[str]:
    """By which of the system's libraries kernels can run on a graphics card of this machine, or on what the session
    takes for one.
    """
    software = session.config.software_gpu or gpu.wants_software()
    try:
        return {one.backend for one in gpu.adapters() if software or not one.software}
    except gpu.NoDevice:
        return set()


def _target(choices: list[Arch], software: bool) -> tuple[str, Arch, str]:
    """What kernels run on (`Config.arch`), the choice that this is or that it stands in for, and why that is not
    available.
    """
    reason = ""
    for choice in choices:
        if choice.real:
            return "python" if choice.name == "python" else "cpu", choice, ""
        if choice.name in _GPUS and not reason:
            try:
                gpu.open_device(software or gpu.wants_software())
            except gpu.NoDevice as error:
                reason = f": {error}"
            else:
                return "gpu", choice, ""
    if not reason and choices[0].name in _NOT_THESE:
        reason = ": ti.gpu runs kernels on a GPU through Vulkan, Metal or DirectX 12"
    return "cpu", choices[0], reason


def reset() -> None:
    """End the session: drop all fields and options.

    A field from before raises an error when it is used; a NumPy view of one stays valid.

    Examples
    --------
    >>> x = ti.field(ti.f32, shape=3)
    >>> ti.reset()
    >>> x.to_numpy()
    FieldError:
    ...
    the field 'x' was made before ti.init() or ti.reset() and is gone
    help: run the cell that makes it again
    """
    out_of_bounds.report()
    session.forget_instances()
    session.resets += 1
    pool.trim()
    pool.limit = MOST_IDLE
    session.config = Config()
    session.launches = 0
    session.fields = Fields()
    session.gradients = {}
    session.views = OfBuffers()
    session.has_views = False
    session.owners.clear()
    session.has_owners = False
    for callback in list(session.on_reset):
        callback()
