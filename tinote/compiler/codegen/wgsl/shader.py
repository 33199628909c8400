"""The contents of a WGSL module, and its interface to a launch.

Every task binds the same four things, whatever it uses:

    0  params   uniform words: scalar arguments, extents, places in the arena; last, the first iteration of a dispatch
                and the most that it runs
    1  block    atomic words: number of faults, site, payload, prints, iterations left; then temporaries and results
    2  scratch  words for large arrays and for stacks; word k of invocation t at k · stride + t
    3  arena    words: all fields and arrays, each with the bytes that it has in the host's memory
"""

from __future__ import annotations

from typing import NamedTuple

from tinote.ir.nodes import Buffer
from tinote.ir.types import Scalar
from tinote.runtime.layout import PAYLOAD_WORDS
from tinote.runtime.sites import Site
from tinote.runtime.slices import Dispatch
from tinote.source import Span

#: Words of `block`.
FAULTS, SITE, PAYLOAD = 0, 1, 2
PRINTED = PAYLOAD + 2 * PAYLOAD_WORDS
#: The remaining iterations of an unfinished task; the start of temporaries.
LEFT = PRINTED + 2
HEAD = LEFT + 1
#: The fault of a loop that a driver has ended (Mesa's driver for CPUs does so after 65,535 iterations).
LOOP_ENDED = "the GPU's driver has ended this loop before its last iteration"
#: The fault of a parallel loop with more iterations than a word counts.
TOO_MANY = "a loop of 2**32 iterations or more cannot run in parallel on the GPU"
#: Words of scratch memory for an invocation's large arrays, at most: the size available to a single workgroup. Chosen,
#: not measured.
MAX_ARRAY_WORDS = 1 << 17
#: Words of the buffer for the prints of one launch. Chosen, not measured.
RING_WORDS = 1 << 16
PARAMS, BLOCK, SCRATCH, ARENA = range(4)


class Shader(NamedTuple):
    """A module: its lines with their source locations, and the contents of `params` and `block`. `bases`: the byte at
    which a buffer begins. `ring`: the place of prints, if there are some.
    """

    lines: tuple[tuple[str, Span], ...]
    entries: tuple[Dispatch, ...]
    parameters: tuple[tuple[int, Scalar], ...]
    extents: tuple[tuple[int, Buffer, int], ...]
    bases: tuple[tuple[int, Buffer], ...]
    param_words: int
    results: tuple[tuple[int, Scalar], ...]
    block_words: int
    ring: int | None
    sites: tuple[Site, ...]
    site_types: tuple[tuple[Scalar, ...], ...]

    @property
    def text(self) -> str:
        return "".join([f"{line}\n" for line, _ in self.lines])
