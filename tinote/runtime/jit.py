"""From LLVM text to machine code in this process, and the views of it that the explorer shows.

One LLJIT lives as long as the process; every binary is a library of its own in it, linked against the native runtime
and the process's own symbols (libm). What cannot be resolved is a Python exception. A damaged object would abort the
process inside LLVM, so whoever loads one from disk checks a digest first.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache, partial, wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar

import llvmlite.binding as llvm
from llvmlite.binding.newpassmanagers import NewPassManager

from tinote.errors import CompilerBug, MachineError
from tinote.remarks import LLVM, Remark
from tinote.runtime import native
from tinote.runtime.digest import digest
from tinote.runtime.library import called_in, text_of
from tinote.runtime.store import open_store, package_stamp
from tinote.runtime.threads import CALLED, NativeRuntime, available_cores
from tinote.source import Span
from tinote.system import IS_WINDOWS, loaded_libraries, register_at_fork

#: What every browser has since 2023.
_WASM_TRIPLE = "wasm32-unknown-unknown"
_WASM_FEATURES = "+simd128,+bulk-memory,+sign-ext,+nontrapping-fptoint,+mutable-globals"
_RUNTIME_LIBRARY = "tinote.runtime"
# At which machine code is made of it. The text is optimised already, and a process that does not find the object on
# disk would wait (measured: 9 ms at 0, 50 ms at 1).
_RUNTIME_LEVEL = 0
#: Functions of the native runtime that are launched as kernels are.
_KERNELS = ("tn_clear", "tn_replay", "tn_replay_batch")


#: The environment variable that names the processor to compile for.
CPU_VARIABLE = "TINOTE_CPU"


class Host(NamedTuple):
    """The machine that code is compiled for. `features` in LLVM's spelling (`+avx2,-sse4a,...`), `vector_bits` the
    widest vector register.
    """

    triple: str
    cpu: str
    features: str
    vector_bits: int
    threads: int


class Binary:
    """Machine code in memory and the addresses of its entry points; the code stays as long as this object does."""

    __slots__ = ("__weakref__", "_addresses", "_library", "object_bytes", "runtime")

    def __init__(
        self, addresses: Mapping[str, int], library: object, object_bytes: int, runtime: NativeRuntime
    ) -> None:
        self._addresses = dict(addresses)
        self._library = library
        self.object_bytes = object_bytes
        self.runtime = runtime

    def address(self, name: str) -> int:
        """The address of an entry point; `KeyError` if it was not among those that were asked for."""
        return self._addresses[name]

    def __repr__(self) -> str:
        return f"Binary({', '.join(self._addresses)}; {self.object_bytes} bytes)"


class _Engine:
    """LLJIT with the native runtime linked in, and the target machines by optimisation level."""

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        # The reader of LLVM text would verify what has debug information itself, and end the process if it is not
        # valid.
        llvm.set_option("tinote", "-disable-auto-upgrade-debug-info")
        self.machines: dict[tuple[Host, int], llvm.TargetMachine] = {}
        # JITLink rather than the older linker: it keeps a library's sections together and refuses by an error what does
        # not fit. llvmlite does not have it on Windows.
        self.lljit = llvm.create_lljit_compiler(_create_machine(3), use_jit_link=not IS_WINDOWS, suppress_errors=True)
        self.counter = itertools.count()
        image = self._runtime_image()
        builder = llvm.JITLibraryBuilder().add_object_img(image).add_current_process()
        for name in (*CALLED, *_KERNELS):
            builder.export_symbol(name)
        # Workers may run in this library until the process ends; the module keeps it, and llvmlite disposes of nothing
        # while the interpreter shuts down.
        self.library = builder.link(self.lljit, _RUNTIME_LIBRARY)
        self.runtime = NativeRuntime({name: self.library[name] for name in CALLED})
        #: the functions of `library.py` that kernels have called so far
        self.functions: dict[str, object] = {}

    def _runtime_image(self) -> bytes:
        """The native runtime's object, from an earlier process if it can be."""
        store, key = open_store(), digest("runtime", machine_name(), package_stamp())
        image = store.get(key)
        if image is None:
            machine = self.machine(_RUNTIME_LEVEL)
            with _llvm_lock, _parsed(native.runtime_text(), machine, native.half_text()) as module:
                image = machine.emit_object(module)
            store.put(key, image)
        return image

    def machine(self, level: int) -> llvm.TargetMachine:
        key = host(), level
        found = self.machines.get(key)
        if found is None:
            found = self.machines[key] = _create_machine(level)
        return found


_engine: _Engine | None = None
# All work inside LLVM. It is serial anyway, remarks are an option of the whole process, and a fork waits for it:
# a child must not inherit a lock of LLVM that was held by a thread it does not have. llvmlite has a lock of its own
# around each call, which a thread that only drops an object holds without ours.
_llvm_lock = threading.RLock()
_llvmlite_lock = llvm.ffi.lib._lock


def _before_fork() -> None:
    _llvm_lock.acquire()
    _llvmlite_lock.__enter__()


def _after_fork() -> None:
    _llvmlite_lock.__exit__(None, None, None)
    _llvm_lock.release()


register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
_host: Host | None = None
_other_host: ContextVar[Host | None] = ContextVar("other_host", default=None)

_Inputs = ParamSpec("_Inputs")
_Result = TypeVar("_Result")


class _Work(threading.Thread):
    """A call that works inside LLVM, on a thread of its own."""

    def __init__(self, call: Callable[[], Any]) -> None:
        super().__init__(name="tinote in LLVM")
        self._call = call
        self._over = threading.Event()
        self._result: Any = None
        self._error: BaseException | None = None
        self.abandoned = False

    def run(self) -> None:
        try:
            self._result = self._call()
        except BaseException as error:
            self._error = error
        finally:
            self._over.set()

    def wait(self) -> Any:
        """The call's result, or what it raised. After an interrupt it is left alone, and ends before its next step."""
        try:
            self.start()
            self._over.wait()  # not `join`: interrupted, that takes a running thread for one that has ended (3.11)
        except BaseException:
            self.abandoned = True
            raise
        error, self._error = self._error, None
        if error is not None:
            raise error
        return self._result


class _AbandonedError(Exception):
    """Ends work whose result is no longer needed."""


def _begin_step() -> None:
    """Between two calls of LLVM."""
    thread = threading.current_thread()
    if isinstance(thread, _Work) and thread.abandoned:
        raise _AbandonedError


def _interruptible(work: Callable[_Inputs, _Result]) -> Callable[_Inputs, _Result]:
    """`work` inside LLVM, which an interrupt need not wait for.

    Python handles signals on the main thread alone, and not before a call of LLVM's returns, which may take seconds.
    So the main thread waits, and another one calls. It must not hold `_llvm_lock` then.
    """

    @wraps(work)
    def wait_for(*args: _Inputs.args, **kwargs: _Inputs.kwargs) -> _Result:
        if threading.current_thread() is not threading.main_thread():
            return work(*args, **kwargs)
        return _Work(partial(copy_context().run, work, *args, **kwargs)).wait()

    return wait_for


def _get_engine() -> _Engine:
    global _engine
    if _engine is None:
        with _llvm_lock:
            if _engine is None:
                made = _Engine()
                if _engine is None:  # a signal handler may have made one meanwhile, whose machine code is in use
                    _engine = made
    return _engine


def _create_machine(level: int) -> llvm.TargetMachine:
    machine = host()
    return llvm.Target.from_triple(machine.triple).create_target_machine(
        cpu=machine.cpu, features=machine.features, opt=level, reloc="pic", codemodel=_CODE_MODEL, jit=True
    )


# The linker on Windows may put data further away from code than what 32 bits can address.
_CODE_MODEL = "large" if IS_WINDOWS else "default"


class _Level(NamedTuple):
    """A processor with no more than `features`, besides those of the levels before it."""

    features: tuple[str, ...]
    vector_bits: int = 128


#: The levels of the x86-64 psABI (section 3.1.1, "Processor Architecture"), the lower first.
_X86_LEVELS = {
    "x86-64": _Level(("cmov", "cx8", "fxsr", "mmx", "sse", "sse2")),
    "x86-64-v2": _Level(("cx16", "sahf", "popcnt", "sse3", "ssse3", "sse4.1", "sse4.2")),
    "x86-64-v3": _Level(("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"), 256),
    "x86-64-v4": _Level(("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"), 512),
}


def host() -> Host:
    """The machine that code is compiled for, as LLVM names it: the one this process runs on, or less of it, if the
    environment variable `TINOTE_CPU` or the block around this says so (`host_like`).
    """
    global _host
    other = _other_host.get()
    if other is not None:
        return other
    if _host is None:
        _host = host_like(os.environ.get(CPU_VARIABLE, "").strip())
    return _host


@contextmanager
def compiled_for(cpu: str) -> Iterator[None]:
    """In this block code is compiled for another processor (`host_like`), to be looked at; "": for the usual one."""
    token = _other_host.set(host_like(cpu, "cpu=") if cpu else _other_host.get())
    try:
        yield
    finally:
        _other_host.reset(token)


def host_like(cpu: str, given: str = CPU_VARIABLE) -> Host:
    """The machine this process runs on, as if its processor were `cpu`: `native` (or nothing), what it is; `x86-64` and
    its levels `x86-64-v2` (vectors of 128 bits), `x86-64-v3` (of 256: AVX2) and `x86-64-v4` (of 512: AVX-512). Machine
    code for a level is the same on all machines that have it, and so are its entries in the cache.

    Raises `MachineError` for another name, and for a level that the processor does not reach: its code would not run.
    `given`: where the name comes from, for the message.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    triple, own, cores = llvm.get_process_triple(), llvm.get_host_cpu_features(), available_cores()
    if cpu in ("", "native"):
        bits = 512 if own.get("avx512f") else 256 if own.get("avx") else 128
        return Host(triple, llvm.get_host_cpu_name(), own.flatten(), bits, cores)
    levels = _X86_LEVELS if triple.startswith("x86_64") else {}
    if cpu not in levels:
        raise MachineError(
            f"{given} names no processor that is known here: {cpu!r}",
            hint=f"it may be {', '.join(['native', *levels])}",
        )
    names = list(levels)
    reached = names[: names.index(cpu) + 1]
    features = [feature for name in reached for feature in levels[name].features]
    # LLVM does not list what all processors of 64 bits have, nor names of its own for it.
    missing = [feature for feature in features if own.get(feature) is False]
    if missing:
        raise MachineError(
            f"{given} names a processor with features that this one lacks: {cpu} has {', '.join(missing)}",
            hint="machine code for it would not run here; native is what this processor has",
        )
    return Host(triple, cpu, ",".join([f"+{feature}" for feature in features]), levels[cpu].vector_bits, cores)


def machine_name() -> str:
    """Names the machine that code is compiled for and everything that compiles it below LLVM text: code for another
    name is another code.
    """
    return _name_of(host())


@cache
def _name_of(machine: Host) -> str:
    version = ".".join(map(str, llvm.llvm_version_info))
    # Which passes LLVM runs, and how, is decided in this file.
    own = os.stat(__file__)
    return f"{machine.triple} {machine.cpu} {machine.features} LLVM {version} {own.st_size} {own.st_mtime_ns}"


def object_key(code: str, level: int) -> str:
    """Where the store keeps the object file of the LLVM text that `code` identifies."""
    return digest("object", machine_name(), code, str(level))


def native_runtime() -> NativeRuntime:
    """The native runtime of this process, linked at the first call."""
    return _get_engine().runtime


def runtime_binary() -> Binary:
    """The kernels that the native runtime brings along."""
    engine = _get_engine()
    return Binary({name: engine.library[name] for name in _KERNELS}, engine.library, 0, engine.runtime)


#: Contexts of modules that an interrupt left behind in the middle of reading them.
_abandoned: list[object] = []


@contextmanager
def _parsed(text: str, machine: llvm.TargetMachine, *further: str) -> Iterator[llvm.ModuleRef]:
    """Text as a verified module in a context of its own (nothing accumulates in the global one), with what `further`
    texts define. Both end with the block, the module first: left to the garbage collector after an interrupt, they may
    end in the other order, and the process with them.
    """
    context = llvm.create_context()
    try:
        module = llvm.parse_assembly(text, context)
        for one in further:
            module.link_in(llvm.parse_assembly(one, context))
    except RuntimeError as error:
        raise CompilerBug("LLVM", str(error)) from error
    except BaseException:
        _abandoned.append(context)  # somewhere in the frames there may be a module
        raise
    with context, module:
        try:
            module.triple = machine.triple
            module.data_layout = str(machine.target_data)
            module.verify()
        except RuntimeError as error:
            raise CompilerBug("LLVM", str(error)) from error
        yield module


def _run_passes(module: llvm.ModuleRef, level: int, effort: _Effort, machine: llvm.TargetMachine) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    loops = not effort.why_no_vectors(level)
    options.loop_vectorization = options.loop_interleaving = options.loop_unrolling = loops
    options.slp_vectorization = level >= _VECTOR_LEVEL and effort.blocks
    builder = llvm.create_pass_builder(machine, options)
    manager = builder.getModulePassManager()
    try:
        manager.run(module, builder)
    finally:
        _end(manager)
    _settle_variants(module, builder)


def _end(manager: llvm.ModulePassManager) -> None:
    # The class inherits the empty `_dispose` of its first base (llvmlite 0.50) and would leak 80 kB a compilation.
    NewPassManager._dispose(manager)
    manager.detach()


def _settle_variants(module: llvm.ModuleRef, builder: llvm.PassBuilder) -> None:
    """Functions with variants on vectors (`codegen/llvm/variants.py`) were kept as they are until loops had taken
    theirs. Now what is not called is dropped, and what only looks for a rare case is inlined.
    """
    kept = (llvm.Linkage.weak_odr, llvm.Linkage.weak_any)
    variants = [function for function in module.functions if function.linkage in kept and not function.is_declaration]
    if not variants:
        return
    manager = llvm.create_new_module_pass_manager()
    for variant in variants:
        if variant.linkage is llvm.Linkage.weak_any:
            variant.add_function_attribute("alwaysinline")
        variant.linkage = llvm.Linkage.internal
    manager.add_always_inliner_pass()
    manager.add_global_dead_code_eliminate_pass()
    try:
        manager.run(module, builder)
    finally:
        _end(manager)


@contextmanager
def _optimised(text: str, level: int, machine: llvm.TargetMachine) -> Iterator[llvm.ModuleRef]:
    with _parsed(text, machine) as module:
        _begin_step()
        _run_passes(module, level, _effort_on(text), machine)
        _begin_step()
        yield module


def _to_object(text: str, level: int, machine: llvm.TargetMachine, enter: Callable[[str], None] | None = None) -> bytes:
    if enter is not None:
        enter("LLVM optimises")
    with _llvm_lock, _optimised(text, level, machine) as module:
        if enter is not None:
            enter("LLVM makes machine code")
        return machine.emit_object(module)


@_interruptible
def optimise(text: str, level: int = 3) -> str:
    """LLVM text after LLVM's own passes at a level 0..3."""
    with _llvm_lock, _optimised(text, level, _get_engine().machine(level)) as module:
        return str(module)


@_interruptible
def assembly(text: str, level: int = 3) -> str:
    """The host's assembly for LLVM text."""
    with _llvm_lock:
        machine = _get_engine().machine(_machine_level(text, level))
        with _optimised(text, level, machine) as module:
            return machine.emit_assembly(module)


@_interruptible
def emit_object(text: str, level: int = 3, enter: Callable[[str], None] | None = None) -> bytes:
    """The object file for LLVM text, relocatable; `link_object` takes it, in this process or in another one on the same
    machine. `enter` is called with what LLVM begins to do.
    """
    return _to_object(text, level, _get_engine().machine(_machine_level(text, level)), enter)


#: Instructions in one block from which on LLVM takes less care. The time that its selection and scheduling of
#: instructions take grows with the square of a block's length (measured, level 3 | 1 | 0: 6,600 instructions
#: 3.2 s | 0.7 s | 0.01 s; 20,000 instructions 17 s | 2.6 s | 0.05 s), and so does that of looking for vectors in it
#: (11,600 instructions: 9.4 s).
_LONG_BLOCK = 4_000
_ENDLESS_BLOCK = 16_000

#: Loops of one function times its instructions, from which on loops are neither vectorised nor unrolled: both look at
#: the whole function for each of its loops (measured: 400 loops in 5,250 instructions 5.5 s, 100 in 1,300 0.3 s).
_MANY_LOOPS = 400_000

#: The optimisation level from which on LLVM vectorises: its own default.
_VECTOR_LEVEL = 2


class _Effort(NamedTuple):
    """What LLVM may do to a module without taking much longer than in proportion to its length: work on `loops`, look
    for vectors in `blocks`, and make machine code at a level of at most `machine`.
    """

    loops: bool
    blocks: bool
    machine: int

    def why_no_vectors(self, level: int) -> str:
        """Why no loop is vectorised at an optimisation level; empty if loops may be."""
        if level < _VECTOR_LEVEL:
            return f"LLVM vectorises loops from opt_level={_VECTOR_LEVEL} on, and this is opt_level={level}"
        return "" if self.loops else "its kernel has so many loops and operations that LLVM would take seconds"


def _effort_on(text: str) -> _Effort:
    """The effort that a module's longest block and its function with the most loops allow."""
    longest_block = most_work = 0
    block = instructions = loops = 0
    seen: set[str] = set()
    for line in text.splitlines():
        if line[:1] == " ":
            block += 1
            if line.startswith("  br "):
                loops += any(rest.partition(",")[0] in seen for rest in line.split("label %")[1:])
            continue
        instructions += block
        longest_block, block = max(longest_block, block), 0
        if line.endswith(":"):
            seen.add(line[:-1])
        elif line == "}":
            most_work = max(most_work, loops * instructions)
            instructions = loops = 0
            seen.clear()
    machine = 3 if longest_block < _LONG_BLOCK else 1 if longest_block < _ENDLESS_BLOCK else 0
    return _Effort(most_work < _MANY_LOOPS, longest_block < _LONG_BLOCK, machine)


def _machine_level(text: str, level: int) -> int:
    """The level at which machine code is made from text that is optimised at `level`."""
    return min(level, _effort_on(text).machine)


def _link_function(engine: _Engine, name: str) -> None:
    """Have a function of `library.py` in the process: from an earlier one, if it can be."""
    if name in engine.functions:
        return
    store, key = open_store(), digest("library", name, machine_name(), package_stamp())
    image = store.get(key)
    if image is None:
        text = text_of(name)
        if text is None:
            raise CompilerBug("linking", f"nothing defines {name}")
        image = emit_object(text)
        store.put(key, image)
    builder = llvm.JITLibraryBuilder().add_object_img(image).add_current_process().export_symbol(name)
    with _llvm_lock:
        if name not in engine.functions:
            engine.functions[name] = builder.link(engine.lljit, name)


def _create_wasm_machine(level: int) -> llvm.TargetMachine:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(_WASM_TRIPLE).create_target_machine(
        cpu="generic", features=_WASM_FEATURES, opt=level, reloc="static", codemodel="default"
    )


@_interruptible
def emit_wasm_object(texts: Mapping[str, str], level: int = 3) -> bytes:
    """Kernels, by name, as one WebAssembly object with the runtime that launches them (`tn_replay`), for `wasm.link`.
    A kernel's entry gets its name.
    """
    renamed = [re.sub(r"@entry\(", f"@{name}(", text) for name, text in texts.items()]
    effort = _effort_on("\n".join(texts.values()))
    with _llvm_lock:
        machine = _create_wasm_machine(min(level, effort.machine))
        functions = [text_of(name) or "" for name in called_in("\n".join(renamed).encode())]
        with _parsed(native.wasm_text(), machine, *renamed, *functions) as module:
            for function in module.functions:
                # What LLVM's code generator itself may call must be there at the end.
                if not function.is_declaration and function.name.startswith("tn_") and function.name != "tn_replay":
                    function.linkage = llvm.Linkage.internal
            _begin_step()
            _run_passes(module, level, effort, machine)
            _begin_step()
            return machine.emit_object(module)


def link_object(image: bytes, entry_points: tuple[str, ...]) -> Binary:
    """Link an object file into this process. Raises `CompilerBug` naming the symbols that nothing defines."""
    engine = _get_engine()
    builder = llvm.JITLibraryBuilder().add_object_img(image).add_jit_library(_RUNTIME_LIBRARY).add_current_process()
    for name in called_in(image):
        _link_function(engine, name)
        builder.add_jit_library(name)
    for name in entry_points:
        builder.export_symbol(name)
    try:
        with _llvm_lock:
            library = builder.link(engine.lljit, f"tinote.{next(engine.counter)}")
    except RuntimeError as error:
        raise CompilerBug("linking", str(error)) from error
    return Binary({name: library[name] for name in entry_points}, library, len(image), engine.runtime)


def compile_module(text: str, *, level: int = 3, entry_points: tuple[str, ...]) -> Binary:
    """LLVM text to machine code: verified, optimised with loop and SLP vectorisation (levels 2 and 3), linked.

    Raises `CompilerBug` on text that is not valid and on symbols that nothing defines.
    """
    return compile_image(text, level=level, entry_points=entry_points)[1]


def compile_image(
    text: str, *, level: int = 3, entry_points: tuple[str, ...], enter: Callable[[str], None] | None = None
) -> tuple[bytes, Binary]:
    """The same, with the object file that was linked."""
    image = emit_object(text, level, enter)
    try:
        return image, link_object(image, entry_points)
    except CompilerBug as error:
        missing = _undefined(text)
        if not missing:
            raise
        raise CompilerBug("linking", f"nothing defines {', '.join(missing)}") from error


def _undefined(text: str) -> list[str]:
    """The functions that a module declares and neither the native runtime nor the process defines."""
    process = loaded_libraries()
    own = native.defined_functions(native.runtime_text())
    names = re.findall(r"^\s*declare\b[^@\n]*@\"?([\w.$]+)", text, re.MULTILINE)
    known = [name for name in names if name.startswith("llvm.") or name in own or text_of(name) is not None]
    return [name for name in names if name not in known and not any(hasattr(library, name) for library in process)]


_REMARK_OPTIONS = ("-pass-remarks", "-pass-remarks-missed", "-pass-remarks-analysis")
_REMARK_PASSES = "loop-vectorize|slp-vectorizer"
_REMARK_LINE = r"remark: (.*?):(\d+):(\d+): (.*)"
# A remark on dependent memory operations goes on in a line of its own, which says how they depend.
_REMARK_GOES_ON = r"(?:Backward|Forward|Unknown|Unsafe) .*dependence\b"
# What LLVM says of every loop when the options of `_run_passes` switch vectorisation off.
_SWITCHED_OFF = "only vectorizing loops that explicitly request it"


@_interruptible
def remarks(text: str, level: int = 3) -> list[Remark]:
    """What LLVM's vectorisers say about a module, in the order in which they say it: which loop they vectorised and how
    wide, or why not. The places are those of its debug information, line 0 where that has none.
    """
    with _llvm_lock, _standard_error() as captured:
        machine = _get_engine().machine(level)
        for option in _REMARK_OPTIONS:
            llvm.set_option("tinote", f"{option}={_REMARK_PASSES}")
        try:
            with _optimised(text, level, machine):
                pass
        finally:
            for option in _REMARK_OPTIONS:
                # A pattern that no pass name matches.
                llvm.set_option("tinote", f"{option}=^$")
    found: list[Remark] = []
    why_none = _effort_on(text).why_no_vectors(level)
    for line in captured:
        match = re.match(_REMARK_LINE, line)
        if match:
            said = match[4].replace(_SWITCHED_OFF, why_none) if why_none else match[4]
            found.append(Remark(LLVM, Span(match[1], int(match[2]), int(match[3]) - 1), said))
        elif found and re.match(_REMARK_GOES_ON, line):
            found[-1] = found[-1]._replace(text=f"{found[-1].text}\n{line}")
        else:
            # Another thread's words, caught by accident.
            sys.stderr.write(line + "\n")
    return found


@contextmanager
def _standard_error() -> Iterator[list[str]]:
    """Catches what is written to file descriptor 2, where LLVM writes; the list is filled at the end."""
    lines: list[str] = []
    with tempfile.TemporaryFile() as file:
        kept = os.dup(2)
        try:
            os.dup2(file.fileno(), 2)
            try:
                yield lines
            finally:
                os.dup2(kept, 2)
        finally:
            os.close(kept)
        file.seek(0)
        lines += file.read().decode(errors="replace").splitlines()
