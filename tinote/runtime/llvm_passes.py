"""Runs LLVM's own passes on a module one by one.

    for ran in passes(text, level=3):
        print(ran.name, ran.unit, ran.changed)        # LICM  loop %body in function task_0  True

LLVM can print a module after each pass that changed it (`-print-changed`), on standard error, and once it has begun
to, it cannot be stopped. So a process of its own does it: with the same options, for the same machine, through the same
function as all code that is compiled (`jit.optimise`).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zlib
from typing import NamedTuple

from tinote.errors import CompilerBug
from tinote.runtime.jit import CPU_VARIABLE


class RanPass(NamedTuple):
    """A pass that ran: LLVM's name of it, without `Pass`; the function, loop or module that it ran on, in LLVM's words;
    and, where it changed that, the text of the whole module afterwards (compressed).
    """

    name: str
    unit: str
    compressed: bytes | None

    @property
    def changed(self) -> bool:
        """Whether it changed anything."""
        return self.compressed is not None

    @property
    def text(self) -> str:
        """The module afterwards; raises `ValueError` where the pass changed nothing."""
        if self.compressed is None:
            raise ValueError(f"{self.name} changed nothing")
        return zlib.decompress(self.compressed).decode()

    @property
    def function(self) -> str:
        """The function that it ran on, empty for the module."""
        found = re.search(r"in function (\S+)$", self.unit) or re.fullmatch(r"\(?([^\[\]()%]+)\)?", self.unit)
        return found[1] if found else ""


def passes(text: str, level: int = 3, cpu: str = "") -> list[RanPass]:
    """Every pass that LLVM runs on a module at a level 0..3, in order, for this processor or another one (`host_like`).
    Raises `CompilerBug` where that fails.
    """
    command = [sys.executable, "-c", _CHILD, json.dumps(sys.path), str(level)]
    environment = {**os.environ, **({CPU_VARIABLE: cpu} if cpu else {})}
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, errors="replace", check=False, env=environment
    )
    if done.returncode:
        raise CompilerBug("LLVM, pass by pass", done.stderr[-2000:])
    return _read(done.stderr)


_CHILD = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
import llvmlite.binding as llvm
from tinote.runtime import jit
text = sys.stdin.read()
for option in ("-print-changed", "-print-module-scope"):
    llvm.set_option("tinote", option)
jit.optimise(text, int(sys.argv[2]))
"""

_HEADER = re.compile(
    r"^\*\*\* IR (?:Dump After|Pass) (\S+) on (.+?)( omitted because no change| ignored| filtered out)? \*\*\*$"
)


def _read(printed: str) -> list[RanPass]:
    """The passes that LLVM's account lists, without the managers of other passes and without analyses."""
    found: list[RanPass] = []
    parts = re.split(r"^(?=\*\*\* IR )", printed, flags=re.MULTILINE)
    for part in parts:
        head, _, module = part.partition("\n")
        match = _HEADER.match(head)
        if match is None or match[3] == " ignored" or match[1].startswith(_ANALYSES):
            continue
        name = match[1].removesuffix("Pass")
        found.append(RanPass(name, match[2], None if match[3] else zlib.compress(module.strip().encode(), 1)))
    return found


_ANALYSES = ("RequireAnalysisPass", "InvalidateAnalysisPass", "InvalidateAllAnalysesPass")
