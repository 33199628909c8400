"""A kernel as plain Python bound to memory: the launch backend of `ti.python`.

`ti.init(arch=ti.python)` runs kernels this way. The function is compiled under the user's file or cell name, with the
user's own globals, and launched on the same memory that machine code uses; faults, prints, interrupts and `stop()` are
those of machine code. It is for looking at what a kernel does, with a debugger or without; it is hundreds of times
slower.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Sequence
from typing import Any

from tinote.compiler.codegen.python.module import PythonModule, generate
from tinote.compiler.codegen.python.support import Array, PythonLaunch, bytes_at
from tinote.compiler.launch.access_summary import TaskSummary, summarise
from tinote.compiler.launch.native import BoundArray, Origin, address_sources
from tinote.compiler.launch.text_code import TextCode
from tinote.config import Config
from tinote.errors import CompilerBug, KernelSyntaxError, TinoteError, noting_interruptions
from tinote.ir.nodes import Buffer, Function
from tinote.runtime.layout import WORDS
from tinote.runtime.memory import Memory
from tinote.runtime.profile import Clock, profile
from tinote.source import NOWHERE


def generated(fn: Function, config: Config) -> PythonModule:
    """The Python code of a function under these options."""
    return generate(fn, config.reports_overflow, bool(config.bounds_check))


class PythonCode(TextCode):
    """Generated Python bound to memory: `launch(values)` runs it, as that of machine code (`Native`) does. `namespace`:
    the user's globals, which a debugger that stops in the kernel finds there.
    """

    def __init__(
        self,
        fn: Function,
        config: Config,
        namespace: dict[str, Any],
        memory_of: Callable[[Buffer], Memory],
        arrays: Sequence[Buffer] = (),
    ) -> None:
        self._running: list[PythonLaunch] = []
        super().__init__(fn, Origin.PYTHON, [TaskSummary(fn.name, False, summarise(fn.region))])
        self._module = module = generated(fn, config)
        self._function = _compiled(module, fn, namespace)
        sources = address_sources(arrays)
        self._memories = {
            name: Array(buffer, memory_of(buffer).view(), _known(buffer))
            for name, buffer in module.memories.items()
            if buffer not in sources
            or sources[buffer][1] == 0  # a field's own, also where a launch gives it temporary shadows
        }
        self._bound_memories = [
            (name, buffer, *sources[buffer]) for name, buffer in module.memories.items() if name not in self._memories
        ]
        self._arrays = [(name, buffer, *sources[buffer]) for name, buffer in module.arrays.items()]
        self._returned = struct.Struct("<" + "".join([WORDS[t.name] for t in self.results]))
        self._memory_limit = config.memory_limit
        self._clock = Clock(0, fn.name, "plain Python", fn.loc) if config.kernel_profiler else None

    def launch(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Run with these arrays and then these scalar arguments (the launch seed, if any, last). Raises `struct.error`
        for a value that does not fit its type, and the located error of the kernel's first fault.
        """
        count = sum(isinstance(v, BoundArray) for v in values)
        numbers = self._given.unpack(self._given.pack(*values[count:]))
        arrays = {name: _bound(buffer, values[k], part) for name, buffer, k, part in self._arrays}
        memories = self._memories
        if self._bound_memories:
            bound = {name: _bound(buffer, values[k], part) for name, buffer, k, part in self._bound_memories}
            memories = {**memories, **bound}
        launch = PythonLaunch(self._module.sites, memories, self._module.temporaries, arrays, self._memory_limit)
        self._running.append(launch)
        started = time.perf_counter_ns()
        try:
            with noting_interruptions(f"interrupted in the kernel '{self._module.name}'", NOWHERE):
                results = self._function(launch, *arrays.values(), *numbers)
        except TinoteError:
            raise
        except (ArithmeticError, AttributeError, LookupError, NameError, TypeError, ValueError, struct.error) as error:
            raise CompilerBug("generated Python", f"{type(error).__name__}: {error}") from error
        finally:
            self._running.remove(launch)
            if self._clock is not None:
                profile.record([(self._clock, time.perf_counter_ns() - started)])
        return self._returned.unpack(self._returned.pack(*results))

    def writes_array(self, position: int) -> bool:
        """Whether a launch writes to the array at this position."""
        written = self.tasks[0].accesses.written
        return any(k == position and part == 0 and buffer in written for _, buffer, k, part in self._arrays)

    def stop(self) -> int:
        """Stop all launches of this kernel that run now, at the next iteration of a loop; returns how many."""
        running = list(self._running)
        for launch in running:
            launch.stopped = True
        return len(running)


def _compiled(module: PythonModule, fn: Function, namespace: dict[str, Any]) -> Callable[..., tuple[Any, ...]]:
    try:
        code = compile(module.tree, fn.loc.file, "exec", dont_inherit=True)
    except (RecursionError, SyntaxError, MemoryError) as error:
        raise KernelSyntaxError(
            f"'{fn.name}' is too large or nested too deeply to run as plain Python: {error}",
            fn.loc,
            "let ti.init(arch=ti.cpu) compile it",
        ) from None
    found: dict[str, Any] = {}
    exec(code, namespace, found)
    return found[module.name]


def _known(buffer: Buffer) -> tuple[int, ...]:
    return tuple([n or 0 for n in buffer.shape])


def _bound(buffer: Buffer, array: BoundArray, part: int) -> Array:
    """The memory of an array argument, of its gradient or of its dual."""
    address: Any = array[part]
    return Array(buffer, bytes_at(address, array.nbytes), array.shape, array.owner)
