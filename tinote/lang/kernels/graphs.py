"""`ti.graph`: kernels and their arguments, listed once and launched together, by name.

    n = ti.graph.Arg(ti.graph.ArgKind.SCALAR, "n", ti.i32)
    x = ti.graph.Arg(ti.graph.ArgKind.NDARRAY, "x", ti.f32, ndim=1)
    builder = ti.graph.GraphBuilder()
    builder.dispatch(scale, x, n)
    substeps = builder.create_sequential()
    substeps.dispatch(move, x)
    for _ in range(10):
        builder.append(substeps)
    graph = builder.compile()
    graph.run({"x": array, "n": 3})

A graph is its launches in their order: `run` puts the values in the place of the names and launches one after the
other, each as a call of its own, so that tapes record them and errors name their lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from tinote.completion import Documented
from tinote.errors import KernelArgumentError
from tinote.lang.kernels.parameters import Parameters
from tinote.source import caller


class ArgKind(Enum):
    """What an argument of a graph is."""

    SCALAR = "number"
    MATRIX = "vector or matrix"
    NDARRAY = "array"


class Arg:
    """An argument of a graph, for which `run` is given a value by its name.

    The kernels that get it check what is passed; the rest says what is meant.

    Parameters
    ----------
    tag : ArgKind
        What it is.
    name : str
        Its name.
    dtype : type, optional
        The type of the number, vector or matrix, or of an array's elements.
    ndim : int, optional
        The number of index dimensions of an array.
    field_dim : int, optional
        The old name of `ndim`.
    element_shape : sequence of int
        The shape of an array's elements.

    Raises
    ------
    KernelArgumentError
        For what does not go together.

    Examples
    --------
    >>> ti.graph.Arg(ti.graph.ArgKind.SCALAR, "dt", ti.f32).name
    'dt'
    """

    def __init__(
        self,
        tag: ArgKind,
        name: str,
        dtype: Any = None,
        ndim: int | None = None,
        field_dim: int | None = None,
        element_shape: Sequence[int] = (),
    ) -> None:
        if not isinstance(tag, ArgKind):
            known = ", ".join(f"ti.graph.ArgKind.{one.name}" for one in ArgKind)
            raise KernelArgumentError(f"{tag!r} is not a kind of argument", caller(), f"there are {known}")
        if not isinstance(name, str) or not name:
            raise KernelArgumentError(f"an argument of a graph needs a name, not {name!r}", caller())
        self.kind = tag
        self.name = name
        self.dtype = dtype
        self.ndim = field_dim if ndim is None else ndim
        self.element_shape = tuple(element_shape)

    def __repr__(self) -> str:
        return f"ti.graph.Arg({self.name!r}: {self.kind.value}{f' of {self.dtype!r}' if self.dtype else ''})"


class GraphLaunch(NamedTuple):
    """A kernel and its arguments, some of which are named."""

    kernel: Any
    args: tuple[Any, ...]


class Sequential(Documented):
    """A sequence of launches, as part of a graph.

    Methods
    -------
    append
    dispatch

    Examples
    --------
    >>> n = ti.field(ti.i32, shape=())
    >>> @ti.kernel
    ... def count():
    ...     n[None] += 1
    >>> builder = ti.graph.GraphBuilder()
    >>> twice = builder.create_sequential()
    >>> twice.dispatch(count)
    >>> for _ in range(2):
    ...     builder.append(twice)
    >>> builder.compile().run()
    >>> n[None]
    2
    """

    def __init__(self) -> None:
        self._parts: list[GraphLaunch | Sequential] = []

    def dispatch(self, kernel: Any, *args: Any) -> None:
        """Add a launch.

        Parameters
        ----------
        kernel : Kernel
            The kernel.
        *args
            For each parameter an `Arg`, or a value that is the same in every run; a field, which the kernel takes as a
            template, is such a value.

        Raises
        ------
        KernelArgumentError
            For what is not a kernel, or another number of arguments.

        Examples
        --------
        >>> x = ti.field(ti.f32, shape=2)
        >>> @ti.kernel
        ... def add(a: ti.f32):
        ...     for i in x:
        ...         x[i] += a
        >>> builder = ti.graph.GraphBuilder()
        >>> builder.dispatch(add, ti.graph.Arg(ti.graph.ArgKind.SCALAR, "a", ti.f32))
        >>> builder.dispatch(add, 10.0)
        >>> builder.compile().run({"a": 0.5})
        >>> x[0]
        10.5
        """
        if not hasattr(kernel, "__tinote_kernel__"):
            problem = f"a graph is made of kernels, not of {kernel!r}"
            raise KernelArgumentError(problem, caller(), "decorate it with `@ti.kernel`")
        bound = getattr(kernel, "args", ())
        parameters: Parameters = getattr(kernel, "kernel", kernel)._parameters
        parameters.in_order((*bound, *args), {})
        self._parts.append(GraphLaunch(kernel, args))

    def append(self, sequential: Sequential) -> None:
        """Add another sequence, with all launches that it has when the graph is compiled.

        Parameters
        ----------
        sequential : Sequential
            The sequence.

        Raises
        ------
        KernelArgumentError
            For what is not a sequence, and for one that this one is part of.

        Examples
        --------
        >>> n = ti.field(ti.i32, shape=())
        >>> @ti.kernel
        ... def count():
        ...     n[None] += 1
        >>> builder = ti.graph.GraphBuilder()
        >>> once = builder.create_sequential()
        >>> once.dispatch(count)
        >>> builder.append(once)
        >>> builder.append(once)
        >>> builder.compile().run()
        >>> n[None]
        2
        """
        if not isinstance(sequential, Sequential):
            problem = f"{sequential!r} is not a sequence of launches"
            raise KernelArgumentError(problem, caller(), "`create_sequential` makes one")
        if sequential.contains(self):
            raise KernelArgumentError("a sequence cannot be a part of itself", caller())
        self._parts.append(sequential)

    def contains(self, other: Sequential) -> bool:
        """Whether the other sequence is this one, or part of it."""
        return other is self or any(isinstance(part, Sequential) and part.contains(other) for part in self._parts)

    def launches(self) -> Iterator[GraphLaunch]:
        """All launches in their order."""
        for part in self._parts:
            if isinstance(part, Sequential):
                yield from part.launches()
            else:
                yield part


class GraphBuilder(Sequential):
    """Collects the launches of a graph.

    Methods
    -------
    compile
    create_sequential

    Examples
    --------
    >>> n = ti.field(ti.i32, shape=())
    >>> @ti.kernel
    ... def count():
    ...     n[None] += 1
    >>> builder = ti.graph.GraphBuilder()
    >>> for _ in range(3):
    ...     builder.dispatch(count)
    >>> builder.compile().run()
    >>> n[None]
    3
    """

    def create_sequential(self) -> Sequential:
        """An empty sequence for launches, to be appended once for each run.

        Returns
        -------
        Sequential
            The sequence, with `dispatch` and `append`.
        """
        return Sequential()

    def compile(self) -> Graph:
        """The graph of the launches so far.

        Returns
        -------
        Graph
            The graph, to be run with values for its arguments.
        """
        return Graph(tuple(self.launches()))


class Graph(Documented):
    """Launches whose arguments have names, which `ti.graph.GraphBuilder.compile` makes.

    Attributes
    ----------
    launches : tuple of GraphLaunch
        The launches in their order.

    Methods
    -------
    run

    Examples
    --------
    >>> @ti.kernel
    ... def fill(a: ti.types.ndarray(ndim=1), value: ti.f32):
    ...     for i in a:
    ...         a[i] = value
    >>> builder = ti.graph.GraphBuilder()
    >>> a = ti.graph.Arg(ti.graph.ArgKind.NDARRAY, "a", ti.f32, ndim=1)
    >>> builder.dispatch(fill, a, 2.0)
    >>> array = ti.ndarray(ti.f32, 3)
    >>> builder.compile().run({"a": array})
    >>> array.to_numpy()
    array([2., 2., 2.], dtype=float32)
    """

    def __init__(self, launches: tuple[GraphLaunch, ...]) -> None:
        self.launches = launches
        self.args = {arg.name: arg for launch in launches for arg in launch.args if isinstance(arg, Arg)}

    def run(self, args: Mapping[str, Any] | None = None) -> None:
        """Launch all kernels in their order.

        Parameters
        ----------
        args : mapping of str to object, optional
            A value for each name.

        Raises
        ------
        KernelArgumentError
            For names that are missing or that the graph does not have, before anything runs.

        Examples
        --------
        >>> x = ti.field(ti.f32, shape=2)
        >>> @ti.kernel
        ... def fill(a: ti.f32):
        ...     for i in x:
        ...         x[i] = a
        >>> builder = ti.graph.GraphBuilder()
        >>> builder.dispatch(fill, ti.graph.Arg(ti.graph.ArgKind.SCALAR, "a", ti.f32))
        >>> builder.compile().run({"a": 3.0})
        >>> x[1]
        3.0
        """
        given = dict(args or {})
        missing, further = self.args.keys() - given.keys(), given.keys() - self.args.keys()
        if missing or further:
            problem = f"needs a value for {_names(missing)}" if missing else f"has no argument {_names(further)}"
            raise KernelArgumentError(f"this graph {problem}", caller(), f"it has {_names(self.args)}")
        for kernel, parameters in self.launches:
            kernel(*[given[arg.name] if isinstance(arg, Arg) else arg for arg in parameters])

    def __repr__(self) -> str:
        count = len(self.launches)
        return f"<graph of {count} launch{'es' if count != 1 else ''}: {_names(self.args)}>"


def _names(names: Any) -> str:
    return ", ".join(f"'{name}'" for name in sorted(names)) or "no arguments"
