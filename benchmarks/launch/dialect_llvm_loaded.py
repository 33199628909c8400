"""The same launches in a process that has loaded LLVM already, as one has that ran a kernel or Numba before."""

import llvmlite.binding  # noqa: F401

from benchmarks.launch.dialect import create

__all__ = ["create"]
