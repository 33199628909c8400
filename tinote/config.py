"""Frozen options, set by `ti.init`."""

import os
from typing import NamedTuple

__all__ = ["Config"]

#: What the records are about that say how often a line was out of bounds (`bounds_check="ignore"`).
OUT_OF_BOUNDS = "out of bounds"


class Config(NamedTuple):
    """Everything `ti.init` can set. A kernel instance keeps the configuration it was compiled under.

    `arch` is what kernels run as: `cpu`, machine code, `gpu`, WGSL on a graphics card, or `python`, plain Python that a
    debugger can step through. `software_gpu`: a CPU may stand in for the card.

    `debug` runs the IR verifier after every step, and reports overflow of signed integers unless `overflow_check` is
    off; `bounds_check` checks what is not proved in range, or with "ignore" guards it; `fast_math` permits other
    roundings (see `ti.init`); `memory_limit` bounds the values saved by one launch, in bytes;
    `offline_cache` keeps machine code on disk; `print_ir` prints the IR after every step; `kernel_profiler` measures
    each task of each launch; `lanes` says which parallel loops run several iterations at once in vector registers:
    `auto`, those for which it pays, `always`, all that can, or `never`.
    """

    arch: str = "cpu"
    debug: bool = False
    overflow_check: bool = True
    default_fp: str = "f32"
    default_ip: str = "i32"
    fast_math: bool = True
    num_threads: int = os.cpu_count() or 1
    random_seed: int = 0
    bounds_check: bool | str = True
    opt_level: int = 3
    memory_limit: int = 4 << 30
    offline_cache: bool = True
    print_ir: bool = False
    kernel_profiler: bool = False
    lanes: str = "auto"
    software_gpu: bool = False

    @property
    def reports_overflow(self) -> bool:
        """Whether an operation on signed integers that does not fit stops the launch."""
        return self.debug and self.overflow_check
