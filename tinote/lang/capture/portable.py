"""Exports captured steps as a file that runs without Python, in a web page (`viz/static/engine/program.js`).

    made = portable([("step", step, (1e-3,)), ("energy", energy, ())], fields={"x": x})
    Path("gravity.tinote").write_bytes(made.encode())

A file holds one WebAssembly module (its kernels and the runtime), one memory, and any number of functions over both.
The same replay as in Python (`runtime/native/replay.c`) runs them: a function is a list of its instructions in memory,
with registers for its inputs.

The file, all numbers little-endian:

    8 bytes   "tinote\\0P"
    u32       the version, 1
    u32       bytes of what follows, unpacked
    zlib      u32 bytes of the description, the description (JSON in UTF-8), u32 bytes of the module, the module
              (WebAssembly), and memory from the description's `memory.base` on; after its end it is zero

The description:

    memory      base, end (bytes; from there on it is free), control (address of what `struct control` holds)
    prints      ring: the address of the records that kernels print to, words: how many they are; null where
                none prints
    launches    how many launches have drawn random numbers before
    parameters  name, kind ("f", "i" or "b") and value of each input of a function, shared by those that have the same
    fields      name, type, address, shape and strides (bytes) of each field that the page may read
    codes       name and sites (kind, place, text, parts or bounds) of each kernel, for messages
    functions   name; block: address of its launch block; registers: their address; inputs: parameter, register and
                kind; arguments: how many inputs are arguments; counter: the register of `launches`, or null;
                ends: result, and updates (parameter and operand); launches: word, code and launch block of each
                instruction that launches; places: word and place of each other that may fail
    places      file, line, column and text of places, which are numbers elsewhere
    shaders     for WebGPU, where one of the functions does much: as `webgpu.py` says; these functions have `gpu`

An operand is `["f" | "i" | "b" | "s", register]` or `["constant", kind, bits as text]`. Results are lists with their
kind first, as `Result` has them.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tinote.compiler.codegen.wgsl import views
from tinote.compiler.launch.gpu_launch import ShaderOfKernel
from tinote.compiler.launch.metadata import ExecutableMetadata
from tinote.compiler.launch.native import Native
from tinote.compiler.requests import Request
from tinote.errors import CaptureError, TinoteError
from tinote.ir.buffers import bytes_of
from tinote.ir.nodes import Buffer, BufferKind
from tinote.lang.capture.captured_function import CapturedFunction
from tinote.lang.capture.file_memory import FileMemory, GivenArrays
from tinote.lang.capture.instructions import Instructions, launch_key
from tinote.lang.capture.stages import DeviceStages, all_are_possible, stages_of
from tinote.lang.capture.webgpu import (
    LEAST_OPERATIONS,
    FunctionOnGpu,
    described_shader,
    operand_text,
    operations_of,
)
from tinote.lang.data.layout import array_over
from tinote.lang.session.state import session
from tinote.lazy import lazy
from tinote.program import operations as ops
from tinote.program.program import Path, Program
from tinote.runtime import layout, wasm
from tinote.runtime.memory import Memory
from tinote.runtime.sites import SiteKind
from tinote.source import caller

if TYPE_CHECKING:
    from tinote.runtime import jit
else:
    jit = lazy("tinote.runtime.jit")  # llvmlite takes long to load: not before something is to be compiled

MAGIC = b"tinote\0P"
VERSION = 1
#: The greatest size of a 32-bit WebAssembly memory.
_MOST_BYTES = (1 << 32) - (1 << 16)


class Portable:
    """The result of `portable`. `description`: that of the file; `module`: WebAssembly; `memory`: its bytes from
    `description["memory"]["base"]` on; `refused`: the functions that could not be exported, with the reason.
    """

    def __init__(
        self,
        description: dict[str, Any],
        module: bytes,
        memory: bytes,
        refused: Mapping[str, TinoteError] | None = None,
    ) -> None:
        self.description = description
        self.module = module
        self.memory = memory
        self.refused = dict(refused or {})

    def encode(self) -> bytes:
        """The file."""
        described = json.dumps(self.description, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
        body = b"".join(
            [
                struct.pack("<I", len(described)),
                described,
                struct.pack("<I", len(self.module)),
                self.module,
                self.memory,
            ]
        )
        return MAGIC + struct.pack("<II", VERSION, len(body)) + zlib.compress(body, 9)

    def __repr__(self) -> str:
        names = [one["name"] for one in self.description["functions"]]
        return f"<portable {', '.join(names)}; {len(self.module)} bytes of WebAssembly, {len(self.memory)} of memory>"


def read_portable(data: bytes) -> Portable:
    """The content of a file. Raises `ValueError` for data that is incomplete, or not such a file."""
    try:
        if data[:8] != MAGIC:
            raise ValueError("this is not a captured program")
        version, size = struct.unpack_from("<II", data, 8)
        if version != VERSION:
            raise ValueError(f"this captured program is of version {version}; known is {VERSION}")
        unpacker = zlib.decompressobj()
        body = unpacker.decompress(data[16:], size + 1)
        if len(body) != size or not unpacker.eof or unpacker.unused_data:
            raise ValueError("this captured program is damaged")
        (described,) = struct.unpack_from("<I", body)
        (code,) = struct.unpack_from("<I", body, 4 + described)
        at = 8 + described + code
        if at > size:
            raise ValueError("this captured program is damaged")
        return Portable(json.loads(body[4 : 4 + described]), body[8 + described : at], body[at:])
    except (zlib.error, struct.error, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"this captured program is damaged: {error}") from error


def portable(
    functions: Sequence[tuple[str, Any, Sequence[Any]]],
    fields: Mapping[str, Any] | None = None,
    *,
    unasked: bool = False,
) -> Portable:
    """Captured steps for a page.

    `functions`: a name, a function or the result of `ti.capture`, and its arguments; numbers among these may differ at
    each call. `fields`: those that may be read and written from outside, by name.

    Memory has its present contents; memory that each function clears or overwrites before reading it is left out unless
    it is among `fields`. A function that cannot be captured, or has no WebAssembly, is among `refused`; so is, with
    `unasked`, one that is not known to change only memory and numbers.
    """
    builder = _Builder()
    refused: dict[str, TinoteError] = {}
    with session.on_cpu():  # steps on a GPU are not captured
        for name, function, arguments in functions:
            try:
                program = (
                    function
                    if isinstance(function, CapturedFunction)
                    else CapturedFunction(function, (), unasked=unasked)
                )
                builder.add(name, program.captured(*arguments))
            except TinoteError as error:
                refused[name] = error
        description, module, memory = builder.build(fields or {})
    return Portable(description, module, memory, refused)


class _Code(NamedTuple):
    """A kernel for WebAssembly. `native`: the same for this machine; `overwritten`: the fields whose old contents a
    launch does not need; `entry`: the module's function that launches it.
    """

    native: Native
    specialisation: Any
    request: Request
    metadata: ExecutableMetadata
    overwritten: frozenset[Buffer]
    number: int
    entry: str


class _Builder(FileMemory):
    """Builds the functions of a file, and the layout of its memory."""

    def __init__(self) -> None:
        super().__init__()
        self._captured: list[tuple[str, Any]] = []
        self._codes: dict[Native, _Code] = {}
        #: of each text, the number of the first code that has it: the same kernel for other fields is the same text
        self._texts: dict[str, int] = {}
        self._parameters: dict[Any, int] = {}
        self._described: list[dict[str, Any]] = []
        self._private = 0
        self.entries: dict[str, int] = {}
        #: kernels as WGSL; None: this one cannot run on a GPU
        self._shaders: dict[Native, ShaderOfKernel | None] = {}
        #: where the buffers are that only shaders have
        self._saved: dict[tuple[Native, Buffer], int] = {}

    def add(self, name: str, captured: Any) -> None:
        """A function. Raises what keeps a kernel from being WebAssembly."""
        texts: dict[Native, tuple[Any, Request, ExecutableMetadata, str, frozenset[Buffer]]] = {}
        for native in captured.tables.natives:
            if native not in self._codes:
                found = captured.tables.origin(native)
                if found is None:
                    what = "this step runs what no kernel of its own is; it cannot go into a page"
                    raise CaptureError(what, caller())
                specialisation, request = found
                texts[native] = (specialisation, request, *specialisation.for_wasm(request))
        for native, (specialisation, request, metadata, text, overwritten) in texts.items():
            number = len(self._codes)
            entry = f"kernel_{self._texts.setdefault(text, number)}"
            self._codes[native] = _Code(native, specialisation, request, metadata, overwritten, number, entry)
        self._captured.append((name, captured))

    def build(self, fields: Mapping[str, Any]) -> tuple[dict[str, Any], bytes, bytes]:
        """The description, the module and memory."""
        texts = {f"kernel_{number}": text for text, number in self._texts.items()}
        image = jit.emit_wasm_object(texts, session.config.opt_level)
        module = wasm.link(image, ("tn_replay",), tuple(texts))
        self.entries = module.launched
        self.begin(module.end)
        private = max([code.metadata.scratch_bytes for code in self._codes.values()], default=0)
        self._private = self.take(private)
        functions, shaders = self._functions()
        described = [self._field(name, field) for name, field in fields.items()]
        forgotten = self._overwritten()
        shown = {id(field.memory.whole) for field in fields.values()}
        self.hold_blocks(forgotten, shown)
        end, memory = self.image()
        if end > _MOST_BYTES // 2:
            raise CaptureError("this has too much memory for a page", caller())
        description = {
            "memory": {"base": self.base, "end": end, "control": module.addresses["tn_control"]},
            "prints": self.described_prints(),
            "launches": session.launches,
            "parameters": self._described,
            "fields": described,
            "codes": [
                {"name": self._codes[native].specialisation.source.name, "sites": self.sites(code.metadata.sites)}
                for native, code in self._codes.items()
            ],
            "functions": functions,
            "shaders": shaders,
            "views": views.TEXT if any("gpu" in function for function in functions) else "",
            "places": self.described_places(),
        }
        return description, module.image, memory

    def _functions(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The description of functions and of shaders."""
        made = [_Function(self, name, captured) for name, captured in self._captured]
        functions = [function.described() for function in made]
        on_gpu = [self._stages(captured) for _, captured in self._captured]
        # A small function does not keep a device busy; it uses the device only if another one does.
        if max([0, *[operations for _, operations in on_gpu]]) < LEAST_OPERATIONS:
            return functions, []
        shaders: dict[str, tuple[int, dict[str, Any]]] = {}
        for function, described, (stages, _) in zip(made, functions, on_gpu, strict=True):
            if stages is None:
                continue
            known: list[tuple[int, ShaderOfKernel]] = []
            for native in function.captured.tables.natives:
                shader = self._shaders[native]
                assert shader is not None
                one = described_shader(self, self._codes[native].specialisation.source.name, shader)
                key = json.dumps(one)  # The same kernel for other fields is the same shader.
                known.append((shaders.setdefault(key, (len(shaders), one))[0], shader))
            described["gpu"] = FunctionOnGpu(
                self, function.captured, stages, function.blocks, known, self.shader_address
            ).described()
        return functions, [one for _, one in shaders.values()]

    def _stages(self, captured: Any) -> tuple[DeviceStages | None, int]:
        """A function in stages for a GPU, if possible, and its approximate number of operations there."""
        if not all_are_possible(captured.plan.root):
            return None, 0
        stages = stages_of(captured.plan.root)
        shaders = [self._shader(native) for native in captured.tables.natives]
        known = [shader for shader in shaders if shader is not None and shader.shader.ring is None]
        if len(known) < len(shaders):
            return None, 0
        return stages, operations_of(stages, known)

    def _shader(self, native: Native) -> ShaderOfKernel | None:
        if native not in self._shaders:
            code = self._codes[native]
            try:
                self._shaders[native] = code.specialisation.for_webgpu(code.request)
            except TinoteError:
                self._shaders[native] = None
        return self._shaders[native]

    # ---- memory

    def launch_block(self, step: ops.Launch, code: _Code, blocks: Sequence[int]) -> tuple[int, memoryview]:
        """The address of a launch block with addresses and extents, and its slots."""
        metadata, native = code.metadata, code.native
        content = bytearray(layout.HEADER_BYTES + layout.SLOTS + 8 * max(1, metadata.slots))
        address = self.take(len(content), content) + layout.HEADER_BYTES

        def put(offset: int, value: int) -> None:
            struct.pack_into("<q", content, layout.HEADER_BYTES + offset, value)

        put(layout.ENTRY, self.entries[code.entry])
        put(layout.SCRATCH, self._private)
        put(layout.SCRATCH_STRIDE, metadata.scratch_bytes)
        put(layout.NUM_THREADS, 1)
        if any(site.kind is SiteKind.PRINT for site in metadata.sites):
            put(layout.PRINT_RING, self.ring())
        put(layout.MEMORY_LIMIT, min(native.launcher.memory_limit, _MOST_BYTES))
        arrays = GivenArrays(step, native, blocks)
        for buffer, offset in metadata.pointers:
            put(
                offset,
                (arrays.address(buffer) or 0) if buffer in arrays else self._address(buffer, code.specialisation),
            )
        for buffer, axis, offset in metadata.extents:
            put(offset, arrays.extent(buffer, axis))
        return address, memoryview(content)[layout.HEADER_BYTES + layout.SLOTS :]

    def _address(self, buffer: Buffer, specialisation: Any) -> int:
        if buffer.kind is BufferKind.SAVED:  # of each launch its own
            return self.take(max(bytes_of(buffer) or 0, buffer.dtype.size))
        memory = specialisation.memory(buffer)
        return self.block(memory.whole) + memory.address - memory.whole.address

    def shader_address(self, buffer: Buffer, native: Native) -> int:
        """The address of a shader's buffer other than an array; a launch's own buffer is the same in all launches."""
        specialisation = self._codes[native].specialisation
        if buffer.kind is not BufferKind.SAVED:
            return self._address(buffer, specialisation)
        found = self._saved.get((native, buffer))
        if found is None:
            found = self._saved[native, buffer] = self._address(buffer, specialisation)
        return found

    def _overwritten(self) -> set[int]:
        """The blocks of session memory whose contents no function needs: each overwrites them completely first."""
        needed: set[int] = set()
        touched: set[int] = set()
        for _, captured in self._captured:
            memories = captured.tables.memories
            numbers = {id(memory): number for number, memory in enumerate(memories) if memory is not None}
            overwritten = [
                {numbers[one] for one in self._whole_blocks(native) if one in numbers}
                for native in captured.tables.natives
            ]
            for number in _needed(captured.plan, overwritten):
                if memories[number] is not None:
                    needed.add(id(memories[number]))
            touched |= numbers.keys()
        return touched - needed

    def _whole_blocks(self, native: Native) -> list[int]:
        """The blocks that a launch overwrites before it reads them: a field alone in its block."""
        code = self._codes[native]
        memories = [
            code.specialisation.memory(buffer) for buffer in code.overwritten if buffer.kind is BufferKind.FIELD
        ]
        return [id(memory.whole) for memory in memories if memory.nbytes == memory.whole.nbytes]

    # ---- what the description says

    def code(self, native: Native) -> _Code:
        """The number of a kernel, and its entry in the file."""
        return self._codes[native]

    def parameter(self, key: Any, name: str, kind: str, value: Any) -> int:
        """The number of a parameter; those with the same key are one."""
        known = self._parameters.get(key)
        if known is None:
            known = self._parameters[key] = len(self._described)
            names = {one["name"] for one in self._described}
            unique, count = name, 1
            while unique in names:
                count += 1
                unique = f"{name} ({count})"
            self._described.append({"name": unique, "kind": kind, "value": _number(kind, value)})
        return known

    def _field(self, name: str, field: Any) -> dict[str, Any]:
        if field.buffer.sparsity is not None:
            raise CaptureError(
                f"'{name}' is a sparse field, which pages cannot show", hint="copy it to a dense field in a kernel"
            )
        numbers = array_over(field.buffer, field.memory)
        whole = field.memory.whole
        address = self.block(whole) + numbers.__array_interface__["data"][0] - whole.address if numbers.size else 0
        return {
            "name": name,
            "type": field.dtype.name,
            "address": address,
            "shape": list(numbers.shape),
            "strides": list(numbers.strides),
        }


class _Function(Instructions):
    """One function of a file, in its memory."""

    def __init__(self, builder: _Builder, name: str, captured: Any) -> None:
        super().__init__(captured.plan)
        self._builder = builder
        self._name = name
        self.captured = captured
        self._launch_blocks: dict[Any, tuple[int, memoryview]] = {}
        self.blocks = [
            self._place_of(block, memory)
            for block, memory in zip(captured.plan.blocks, captured.tables.memories, strict=True)
        ]
        self._registers = builder.take(8 * self.most_cells)

    def _place_of(self, block: Any, memory: Memory | None) -> int:
        if memory is not None:
            return self._builder.block(memory)
        return self._builder.data(block.data) if block.kind == "data" else self._builder.take(block.nbytes)

    def _code(self, step: ops.Launch) -> _Code:
        return self._builder.code(self.captured.tables.natives[step.code])

    # ---- memory

    def block_address(self, number: int) -> int:
        return self.blocks[number]

    def register_address(self, number: int) -> int:
        return self._registers + 8 * number

    def launch_block(self, step: ops.Launch) -> tuple[int, memoryview]:
        key = launch_key(step)
        found = self._launch_blocks.get(key)
        if found is None:
            found = self._builder.launch_block(step, self._code(step), self.blocks)
            self._launch_blocks[key] = found
        return found

    def result_offsets(self, step: ops.Launch) -> list[int]:
        own = [offset - layout.SLOTS for offset, _ in self._code(step).metadata.results]
        known = [offset for offset, _ in self.captured.tables.natives[step.code].metadata_results()]
        return [own[known.index(offset)] for offset, _, _ in step.results]

    # ---- what the description says

    def described(self) -> dict[str, Any]:
        """Put it into memory, and describe its place."""
        builder = self._builder
        self.assemble()
        code = builder.instructions(self.words)
        builder.fill(self._registers, struct.pack(f"<{len(self.cells)}q", *self.cells))
        inputs = zip(self.captured.inputs, self.plan.inputs, strict=True)
        numbers = [builder.parameter(key, name, register.kind, value) for (key, name, value), register in inputs]
        first = self.captured.argument_count
        return {
            "name": self._name,
            "block": builder.replay_block(code, self._registers),
            "registers": self._registers,
            "inputs": [
                [n, register.number, register.kind] for n, register in zip(numbers, self.plan.inputs, strict=True)
            ],
            "arguments": first,
            "counter": self.counter_register if self.draws else None,
            "ends": [
                {
                    "result": _described_result(end.result),
                    "updates": [[numbers[first + place], operand_text(operand)] for place, operand in end.updates],
                }
                for end in self.ends
            ],
            "launches": [
                [word, self._code(step).number, self._launch_blocks[launch_key(step)][0], builder.place(step.span)]
                for word, step in self.launches.items()
            ],
            "places": [[word, builder.place(span)] for word, span in self.spans.items()],
        }


def _needed(plan: Program, overwritten: Sequence[set[int]]) -> set[int]:
    """Live-in analysis: the blocks of a plan whose initial contents are used. `overwritten`: by code, the blocks that a
    launch overwrites before it reads them.
    """
    needed: set[int] = set()

    def follow(path: Path, fresh: set[int]) -> None:
        """Those in `fresh` are overwritten by then."""
        for step in path.steps:
            whole = ops.filled_by(plan.blocks, step)
            if isinstance(step, ops.Launch):
                whole = overwritten[step.code] - {number for _, number, _ in step.pointers}
            needed.update(ops.used_by(plan.codes, step) - whole - fresh)
            fresh = fresh | (whole - needed)
        for side in path.sides.values():
            follow(side, fresh)

    follow(plan.root, set())
    return needed


def _number(kind: str, value: Any) -> Any:
    """A number in JSON: floats by their bits where JSON has none, integers as text where JavaScript has none."""
    if kind == "f":
        return float(value) if np.isfinite(value) else str(float(value))
    if kind == "b":
        return bool(value)
    return int(value) if abs(int(value)) <= 1 << 53 else str(int(value))


def _described_result(result: ops.Result) -> list[Any]:
    kind, parts = result
    match kind:
        case "constant":
            return [kind, parts[0] if isinstance(parts[0], str) else None]
        case "number" | "bool":
            return [kind, operand_text(parts[0])]
        case "vector" | "matrix":
            return [kind, list(parts[0]), [operand_text(one) for one in parts[2]]]
        case "dict":
            return [kind, [[str(key), _described_result(one)] for key, one in parts]]
        case "array":
            raise CaptureError("this step returns an array, which a page cannot use", caller(), "leave it in a field")
        case _:
            return [kind, [_described_result(one) for one in parts]]
