"""`ti.graph`: launches with named arguments. What it holds is in `tinote.lang.kernels.graphs`."""

from tinote.lang.kernels.graphs import Arg, ArgKind, Graph, GraphBuilder, Sequential

__all__ = ["Arg", "ArgKind", "Graph", "GraphBuilder", "Sequential"]
