"""The runtime in C, and the LLVM text that a compiler made from it for each platform.

Who uses tinote needs no compiler: the JIT makes machine code of the text, for the processor that it finds.
`python tinote/runtime/native/generate.py` makes the text and `layout.py` anew from the sources; a test fails when they
do not belong together.
"""

from __future__ import annotations

import platform
import re
import sys
from pathlib import Path

_PROCESSORS = {"amd64": "x86_64", "arm64": "aarch64"}
_SYSTEMS = {"darwin": "macos", "win32": "windows"}


def runtime_text(processor: str = "", system: str = "") -> str:
    """The runtime as LLVM text for a processor and an operating system, in the words of `platform.machine()` and
    `sys.platform`; by default those of this process. Raises `OSError` where there is none.
    """
    processor = (processor or platform.machine()).lower()
    system = system or sys.platform
    path = Path(__file__).with_name(f"{_PROCESSORS.get(processor, processor)}-{_SYSTEMS.get(system, system)}.ll")
    if not path.exists():
        raise OSError(
            f"tinote runs kernels on Linux, macOS and Windows, x86-64 and arm64; this is {system} on {processor}"
        )
    return path.read_text(encoding="utf-8")


def wasm_text() -> str:
    """The runtime of a WebAssembly module as LLVM text."""
    return Path(__file__).with_name("wasm32.ll").read_text(encoding="utf-8")


def half_text() -> str:
    """Conversions of f16 as LLVM text, for processors without instructions for them."""
    return Path(__file__).with_name("half.ll").read_text(encoding="utf-8")


def defined_functions(text: str) -> frozenset[str]:
    """The functions that LLVM text exports."""
    return frozenset(re.findall(r"^define (?!internal)[^@\n]*@(\w+)\(", text, re.MULTILINE))
