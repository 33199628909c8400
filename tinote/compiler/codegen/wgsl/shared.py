"""State shared by the tasks of a module."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from tinote.compiler.codegen.wgsl.features import Features, refusal
from tinote.compiler.codegen.wgsl.primitives import Provided
from tinote.compiler.codegen.wgsl.shader import HEAD, RING_WORDS
from tinote.compiler.codegen.wgsl.types import words_of
from tinote.ir.nodes import Buffer, BufferKind, Function, Op, Print, Var
from tinote.ir.query import buffers_of, definitions, walk
from tinote.ir.types import Ref, Scalar, Stack, Tangents, Tensor, element_type, f64
from tinote.runtime.sites import Site
from tinote.source import NOWHERE, Span


class SharedState:
    """State shared by all tasks: the words of `params` and `block`, helpers, sites."""

    def __init__(self, fn: Function, features: Features, handlers: Mapping[type[Op], Callable[..., None]]) -> None:
        self.fn = fn
        self.features = features
        #: the handler of each kind of operation
        self.handlers = handlers
        self.helpers = Provided()
        self.made = definitions(fn.region)
        self.all_buffers = buffers_of(fn)
        self.lines: list[tuple[str, Span]] = []
        self.sites: dict[tuple[Site, tuple[Scalar, ...]], int] = {}
        self.parameters: dict[Var, int] = {}
        self.extents: dict[tuple[Buffer, int], int] = {}
        self.bases: dict[Buffer, int] = {}
        self.temporaries: dict[Buffer, int] = {}
        self.check_types()
        at = 0
        for v in fn.region.params:
            self.parameters[v], at = at, at + words_of(element_type(v.type))
        here = HEAD
        for b in self.all_buffers:
            if b.kind is BufferKind.TEMPORARY:
                count = math.prod([n or 0 for n in b.shape]) * math.prod(b.element)
                self.temporaries[b], here = here, here + words_of(b.dtype) * count
                continue
            self.bases[b], at = at, at + 1
            for axis in [axis for axis, n in enumerate(b.shape) if n is None]:
                self.extents[b, axis], at = at, at + 1
        # Four more: the iterations of a dispatch.
        self.param_words = -(-at // 4) * 4 + 4
        self.results: list[tuple[int, Scalar]] = []
        for y in fn.region.yields:
            t = element_type(y.type)
            self.results.append((here, t))
            here += words_of(t)
        self.prints = any(isinstance(op, Print) for op in walk(fn.region))
        self.ring = here if self.prints else None
        self.block_words = here + (RING_WORDS if self.prints else 0)

    def check_types(self) -> None:
        """Refuse types that cannot be represented, with their name and line."""
        for b in self.all_buffers:
            self.check_type(b.dtype, f"'{b.name}' of {b.dtype}", NOWHERE)
        for op in walk(self.fn.region):
            for v in (*op.outs, *op.args):
                t = v.type
                if isinstance(t, Ref | Stack):
                    t = t.content
                if isinstance(t, Scalar | Tensor):
                    self.check_type(element_type(t), f"a number of {element_type(t)}", op.loc)

    def check_type(self, t: Scalar, what: str, loc: Span) -> None:
        if isinstance(t, Tangents):
            t = t.scalar
            if t.bits < 32:
                raise refusal(f"a derivative of {t} along several directions at once", loc or self.fn.loc)
        if t is f64 and not self.features.f64:
            hint = "use f32, or run this kernel with ti.init(arch=ti.cpu)"
            raise refusal(f"{what}, which this GPU does not have,", loc if loc.line else self.fn.loc, hint)

    def number_of(self, site: Site, types: tuple[Scalar, ...]) -> int:
        """The number of a site with words of these types."""
        return self.sites.setdefault((site, types), len(self.sites))
