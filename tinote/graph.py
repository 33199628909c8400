"""`ti.graph`: sequences of launches with named arguments, which one call runs."""

from tinote.lang.kernels.graphs import Arg, ArgKind, Graph, GraphBuilder, Sequential

__all__ = ["Arg", "ArgKind", "Graph", "GraphBuilder", "Sequential"]
