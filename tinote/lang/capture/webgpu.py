"""Functions of a page as compute shaders for WebGPU, run by `viz/static/engine/program_gpu.js`.

A function goes to the GPU in stages (`stages.py`), whose arithmetic the replay does in WebAssembly. The device's memory
is a copy of that of WebAssembly: a block has the same place in both.

The description of a function that can go there has `gpu`:

    registers   their address; the same numbers as those of the function
    places      word and place of each instruction of the replay that may fail
    root        a node: `stages`, each with the address of a launch block for the replay, the word at which its
                instructions begin, and its commands; `branch`: the register that says which of two `sides` follows
                (nodes, or null), or null

Commands are

    ["launch", shader, words of its parameters, [[word, type, operand]…], [[word, type, register]…], place]
    ["clear", address, bytes]
    ["copy", bytes of a run, to, from, [[extent, stride of `to`, stride of `from`]…]]
    ["fill", type, operand, address, [[extent, stride]…], place]
    ["load", type, register, address]

and the file's description has `views`, the shader that fills and copies them, and `shaders`:

    name        of the kernel
    text        WGSL
    params      words of parameters of a launch
    words       of its block
    entries     what is dispatched in order: name, whether it is parallel, its first and its last bound (a number, the
                position of an operand, or null), whether it keeps stacks, whether invocations sum up, and words of
                scratch memory that an invocation has for arrays
    sites       as those of `codes`, and the `types` of the words that each shows
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from tinote.compiler.launch.gpu_launch import ArgumentBound, Bound, ShaderOfKernel
from tinote.compiler.launch.native import Native
from tinote.ir.buffers import Buffer
from tinote.lang.capture.file_memory import FileMemory, GivenArrays
from tinote.lang.capture.instructions import NOWHERE_READY, Instructions, axes_of, run_of
from tinote.lang.capture.stages import DeviceStages
from tinote.program import operations as ops
from tinote.runtime import layout

#: Least number of IR operations of a step for which a GPU may be faster: some milliseconds in WebAssembly.
LEAST_OPERATIONS = 20_000_000
#: Assumed operations per iteration of a loop whose operations are unknown.
_UNKNOWN_OPERATIONS = 1000
#: Assumed iterations of a loop whose length is known only at launch.
_UNKNOWN_ITERATIONS = 10_000


def operations_of_launch(made: ShaderOfKernel) -> int:
    """The approximate number of operations of a launch."""
    total = 0
    for entry in made.shader.entries:
        known = entry.iterations if entry.iterations is not None else _UNKNOWN_ITERATIONS
        total += (known if entry.parallel else 1) * (_UNKNOWN_OPERATIONS if entry.work is None else entry.work)
    return total


def operations_of(stages: DeviceStages, shaders: Sequence[ShaderOfKernel]) -> int:
    """The approximate number of operations of a function's launches; `shaders` by the number of the code."""
    return sum(operations_of_launch(shaders[step.code]) for step in stages.commands() if isinstance(step, ops.Launch))


class FunctionOnGpu(Instructions):
    """One function of a file, for the device: its arithmetic as instructions, its commands as data. `blocks`: the
    addresses of the plan's blocks; `shaders`: by the number of the code in the plan, with their numbers in the file;
    `address_of`: the address of a shader's buffer other than an array.
    """

    def __init__(
        self,
        memory: FileMemory,
        captured: Any,
        stages: DeviceStages,
        blocks: Sequence[int],
        shaders: Sequence[tuple[int, ShaderOfKernel]],
        address_of: Callable[[Buffer, Native], int],
    ) -> None:
        super().__init__(captured.plan)
        self._memory = memory
        self._stages = stages
        self._blocks = blocks
        self._shaders = shaders
        self._address_of_buffer = address_of
        self._natives: Sequence[Native] = captured.tables.natives
        self._registers = memory.take(8 * self.most_cells)

    # ---- memory

    def block_address(self, number: int) -> int:
        return self._blocks[number]

    def register_address(self, number: int) -> int:
        return self._registers + 8 * number

    def launch_block(self, step: ops.Launch) -> tuple[int, memoryview]:
        raise AssertionError("the device launches")

    # ---- what the description says

    def described(self) -> dict[str, Any]:
        """Put it into memory, and describe its place."""
        memory = self._memory
        root = self._node(self._stages)
        code = memory.instructions(self.words)
        memory.fill(self._registers, struct.pack(f"<{len(self.cells)}q", *self.cells))
        nodes = [root]
        while nodes:
            node = nodes.pop()
            nodes += [side for side in node["sides"] if side is not None]
            for stage in node["stages"]:
                stage[0] = memory.replay_block(code + 8 * stage[1], self._registers)
        places = [[word, memory.place(span)] for word, span in self.spans.items()]
        return {"registers": self._registers, "places": places, "root": root}

    def _node(self, found: DeviceStages) -> dict[str, Any]:
        stages: list[list[Any]] = []
        for stage in found.stages:
            first = len(self.words)
            for step in stage.arithmetic:
                self._step(step)
            self._emit(None, layout.REPLAY_END, NOWHERE_READY)  # of no meaning after an end
            stages.append([0, first, [self._command(step) for step in stage.commands]])
        sides = [self._node(found.sides[taken]) if taken in found.sides else None for taken in (True, False)]
        return {"stages": stages, "branch": None if found.branch is None else found.branch.number, "sides": sides}

    def _command(self, step: ops.Operation) -> list[Any]:
        match step:
            case ops.Launch():
                return self._launch(step)
            case ops.Clear(block, offset, nbytes):
                return ["clear", self._blocks[block] + offset, nbytes]
            case ops.Copy(target, source):
                size, axes = run_of(target, source)
                axes = [(0, 0, 0)] if 0 in target.shape else axes
                return ["copy", size, self._address_of(target), self._address_of(source), axes]
            case ops.Fill(target, value, span):
                address, place = self._address_of(target), self._memory.place(span)
                return ["fill", target.type, operand_text(value), address, axes_of(target), place]
            case ops.LoadElement(register, source, _):
                return ["load", source.type, register.number, self._address_of(source)]
        raise AssertionError(f"no command: {step!r}")

    def _launch(self, step: ops.Launch) -> list[Any]:
        number, (shader, _) = self._shaders[step.code]
        native = self._natives[step.code]
        params = [0] * shader.param_words
        params[-3] = 0xFFFFFFFF  # all iterations
        arrays = GivenArrays(step, native, self._blocks)
        for at, buffer in shader.bases:
            address = arrays.address(buffer) if buffer in arrays else self._address_of_buffer(buffer, native)
            if address is not None:
                params[at] = (address - self._memory.base) // min(buffer.dtype.size, 4)
        for at, buffer, axis in shader.extents:
            params[at] = arrays.extent(buffer, axis)
        given = [
            [at, t.name, operand_text(operand)]
            for (at, t), operand in zip(shader.parameters, step.arguments, strict=True)
        ]
        # The step has only those results of the code that are used.
        places = dict(zip([offset for offset, _ in native.metadata_results()], shader.results, strict=True))
        results = [[places[offset][0], places[offset][1].name, register.number] for offset, _, register in step.results]
        return ["launch", number, params, given, results, self._memory.place(step.span)]


def operand_text(operand: ops.Operand) -> list[Any]:
    """An operand as a file has it."""
    if isinstance(operand, ops.Constant):
        return ["constant", operand.kind, str(operand.bits)]
    return [operand.kind, operand.number]


def described_shader(memory: FileMemory, name: str, made: ShaderOfKernel) -> dict[str, Any]:
    """A shader as a file has it."""
    shader = made.shader
    return {
        "name": name,
        "text": shader.text,
        "params": shader.param_words,
        "words": shader.block_words,
        "entries": [
            [e.name, e.parallel, *map(_bound_text, bounds), e.saves, e.sums, e.scratch]
            for e, bounds in zip(shader.entries, made.bounds, strict=True)
        ],
        "sites": [
            site | {"types": [t.name for t in types]}
            for site, types in zip(memory.sites(shader.sites), shader.site_types, strict=True)
        ],
    }


def _bound_text(bound: Bound) -> Any:
    return ["argument", bound.position] if isinstance(bound, ArgumentBound) else bound
