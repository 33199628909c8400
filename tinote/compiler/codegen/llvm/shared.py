"""State shared by the functions of a module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from tinote.compiler.codegen.llvm.alias import Aliasing
from tinote.compiler.codegen.llvm.debug import DebugInfo
from tinote.compiler.codegen.llvm.layout import make_layout
from tinote.compiler.codegen.llvm.text import FunctionText, Metadata
from tinote.ir.lanes import LoadTile
from tinote.ir.nodes import Function, NewStack, Op
from tinote.ir.query import buffers_of, walk
from tinote.runtime.sites import Site, SiteKind
from tinote.source import Span

#: Contraction and approximate functions. Sums that may be reordered and roots that may be estimated have flags of their
#: own.
_FAST_MATH = " nsz contract afn"


class Options(NamedTuple):
    """Options of code generation.

    `fast_math`: contraction, approximate functions, estimates of reciprocal roots, reductions by + in another order.
    `passes/simplification/reassociate.py` applies its other rewrites, since it knows where no number overflows.
    `vector_width`: the vectors to prefer, in bits (0: the target's choice). `source`: the user's file. `line_tables`:
    debug locations go into the object, not only into LLVM's remarks and text. `profile`: measure each task. `fused`:
    the target multiplies and adds with one rounding. `numeric_extrema`: it has instructions for the minimum and maximum
    of floats that ignore NaN.
    """

    fast_math: bool = True
    vector_width: int = 512
    source: str = ""
    line_tables: bool = False
    profile: bool = False
    fused: bool = True
    numeric_extrema: bool = True


class Shared:
    """Layout, metadata, sites and functions of a module."""

    def __init__(self, fn: Function, options: Options, handlers: Mapping[type[Op], Callable[..., None]]) -> None:
        self.fn = fn
        self.options = options
        #: the handler of each kind of operation
        self.handlers = handlers
        self.flags = _FAST_MATH if options.fast_math else ""
        self.helpers: dict[str, str] = {}
        self.layout = make_layout(fn)
        self.metadata = Metadata()
        # Node 0 is empty, as `!invariant.load` requires.
        self.metadata.add("!{}")
        self.debug = DebugInfo(options.source or fn.loc.file, options.line_tables)
        self.buffers = buffers_of(fn)
        stacks = [op for op in walk(fn.region) if isinstance(op, NewStack | LoadTile)]
        self.aliasing = Aliasing(self.metadata, self.buffers, stacks)
        self.likely = self.metadata.add('!{!"branch_weights", i32 2000, i32 1}')
        self.unlikely = self.metadata.add('!{!"branch_weights", i32 1, i32 2000}')
        self.sites: list[Site] = []
        self._loop_sites: dict[Span, int] = {}
        self.functions: list[tuple[str, FunctionText]] = []
        self._parts = 0

    def add(self, header: str, function: FunctionText) -> None:
        """A complete function; `header` is its `define` up to the brace."""
        self.functions.append((header, function))

    def add_part(self, parameters: str, part: FunctionText) -> str:
        """A part of a task (`parts.py`); returns its name."""
        self._parts += 1
        self.add(f"define internal i32 @part_{self._parts}({parameters}) noinline #0", part)
        return f"@part_{self._parts}"

    def site(self, site: Site) -> int:
        """The number of a site."""
        self.sites.append(site)
        return len(self.sites) - 1

    def loop_site(self, loc: Span) -> int:
        """The site number by which an interrupted launch reports that it was in the loop at `loc`."""
        if loc not in self._loop_sites:
            self._loop_sites[loc] = self.site(Site(SiteKind.INTERRUPT, loc, self.fn.name))
        return self._loop_sites[loc]
