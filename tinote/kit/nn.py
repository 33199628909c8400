"""Small neural networks: `ti.nn`.

    net = ti.nn.MLP([2, 16, 16, 1], "tanh", key=1)
    …
    y = net(x[i])                            # in a kernel: weights are fields, lanes go over the elements of the loop
    u, slope, bend = net.along(x[i], d)      # with its first and second derivative along d

    whole = ti.nn.Batched(net, x, y)           # for wider networks: products of matrices over fields of inputs
    whole.forward()

All of it is kernels and device functions, so it differentiates, is captured and runs in pages like any program. The
optimisers are in `optimisers.py`.
"""

# Annotations of kernels are values.
# pyright: reportInvalidTypeForm=false

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import tinote as ti
from tinote.completion import Documented
from tinote.errors import FieldError, suggestion
from tinote.kit.fields import FLOATS, place
from tinote.source import Span, caller

__all__ = ["MLP", "Batched", "Dense"]

#: Rows of a product that are made at once, so that a number that was loaded is used as often. Of 1, 2, 4, 8 and 16 the
#: fastest with vectors of 512 bits: for 64 × 64 × 1024, 228 of 250 billion operations a second; in a kernel, a gradient
#: takes 0.37 ms, where single rows take 0.90.
ROWS = 8
#: The same where each row has three sums; of 4 and 8 the faster one.
ROWS_ALONG = 4
#: Edge of the squares of a product that sums over a batch; of 4 and 8 the faster one.
SQUARE = 4


# activations: the value, and the first and the second derivative


@ti.func
def _identity(z):
    return z, 1.0, 0.0


@ti.func
def _relu(z):
    return ti.max(z, 0), 1.0 if z > 0 else 0.0, 0.0


@ti.func
def _tanh(z):
    y = ti.tanh(z)
    slope = 1 - y * y
    return y, slope, -2 * y * slope


@ti.func
def _sigmoid(z):
    y = 0.5 + 0.5 * ti.tanh(0.5 * z)  # finite for any z
    slope = y * (1 - y)
    return y, slope, slope * (1 - 2 * y)


@ti.func
def _silu(z):
    y, slope, bend = _sigmoid(z)
    return z * y, y + z * slope, 2 * slope + z * bend


@ti.func
def _softplus(z):
    y, slope, _ = _sigmoid(z)
    return ti.max(z, 0) + ti.log(1 + ti.exp(-ti.abs(z))), y, slope


@ti.func
def _gelu(z):
    part, density = 0.5 * ti.math.erfc(-ti.static(math.sqrt(0.5)) * z), ti.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    return z * part, part + z * density, density * (2 - z * z)


@ti.func
def _gelu_tanh(z):
    c = ti.static(math.sqrt(2 / math.pi))
    y, slope, bend = _tanh(c * (z + 0.044715 * z**3))
    first, second = c * (1 + 0.134145 * z * z), c * 0.26829 * z
    return (
        0.5 * z * (1 + y),
        0.5 * (1 + y) + 0.5 * z * slope * first,
        slope * first + 0.5 * z * (bend * first * first + slope * second),
    )


@ti.func
def _sin(z):
    return ti.sin(z), ti.cos(z), -ti.sin(z)


ACTIVATIONS = {
    "identity": _identity,
    "relu": _relu,
    "tanh": _tanh,
    "sigmoid": _sigmoid,
    "silu": _silu,
    "softplus": _softplus,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "sin": _sin,
}


@ti.func
def _tanh_slope(y):
    return 1 - y * y


@ti.func
def _sigmoid_slope(y):
    return y * (1 - y)


@ti.func
def _relu_slope(y):
    return 1.0 if y > 0 else 0.0


#: The slopes of those whose value says it: batches keep the value alone, and going back takes no other function.
SLOPES = {"tanh": _tanh_slope, "sigmoid": _sigmoid_slope, "relu": _relu_slope}

#: The variance of a weight between n inputs and m outputs: X. Glorot and Y. Bengio, AISTATS 2010; K. He and others,
#: ICCV 2015; Y. LeCun and others, "Efficient BackProp", 1998.
VARIANCES = {
    "glorot": lambda n, m: 2 / (n + m),
    "he": lambda n, m: 2 / n,
    "lecun": lambda n, m: 1 / n,
}


def _strips(count: int, width: int) -> tuple[tuple[int, int, int], ...]:
    """Rows in strips: for strips of a width the first row, their number and the width."""
    rest = count % width
    whole = ((0, count // width, width),) if count >= width else ()
    return (*whole, (count - rest, 1, rest)) if rest else whole


class Dense(Documented):
    """A dense layer, act(W x + b), for kernels and for networks.

    Parameters
    ----------
    inputs, outputs : int
        How many numbers go in and come out.
    activation : str or device function, default "identity"
        "identity", "relu", "tanh", "sigmoid", "silu", "softplus", "gelu", "gelu_tanh" (its approximation) or "sin"; or
        a function of one number, with which `along` is refused.
    init : str, default "glorot"
        How weights begin: normal numbers whose variance is 2 / (inputs + outputs) ("glorot"), 2 / inputs ("he") or
        1 / inputs ("lecun"). Biases begin as 0.
    key : int, default 0
        Of the stream of random numbers (`ti.sampling`) from which the weights begin.
    dtype : type, optional
        `ti.f32` or `ti.f64`; by default that of `ti.init`.
    needs_dual : bool, default False
        Whether the weights have duals, for `ti.ad.FwdMode`.

    Methods
    -------
    along
    begin

    Attributes
    ----------
    weight : Field
        The weights, of shape (outputs, inputs).
    bias : Field
        The biases, of shape (outputs,).
    parameters : dict of str to Field
        Both by name, for optimisers and `ti.save`.

    Raises
    ------
    FieldError
        For sizes, names or types that do not exist.

    Examples
    --------
    >>> layer = ti.nn.Dense(2, 3, "relu", dtype=ti.f64)
    >>> layer.weight.from_numpy([[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]])
    >>> layer.bias.fill(0.5)
    >>> @ti.kernel
    ... def show():
    ...     print(layer(ti.Vector([1.0, 2.0])))
    >>> show()
    [1.5, 2.5, 0.0]
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        activation: str | Callable[..., Any] = "identity",
        *,
        init: str = "glorot",
        key: int = 0,
        dtype: Any = None,
        needs_dual: bool = False,
    ) -> None:
        for count in (inputs, outputs):
            if not isinstance(count, int) or count < 1:
                raise FieldError(f"a layer has a positive number of inputs and of outputs, not {count!r}", caller())
        if isinstance(activation, str) and activation not in ACTIVATIONS:
            raise FieldError(f"there is no activation {activation!r}{suggestion(activation, ACTIVATIONS)}", caller())
        if init not in VARIANCES:
            raise FieldError(f"weights cannot begin as {init!r}{suggestion(init, VARIANCES)}", caller())
        dtype = ti.cfg.default_fp if dtype is None else dtype
        if dtype not in FLOATS:
            raise FieldError(f"weights are of f32 or of f64, not of {dtype}", caller())
        self.inputs, self.outputs, self.dtype = inputs, outputs, dtype
        #: the name, and the function: with its derivatives if it is one of ours
        self.activation = activation
        self.function = ACTIVATIONS[activation] if isinstance(activation, str) else activation
        self.has_jet = isinstance(activation, str)
        self.strips, self.strips_along = _strips(outputs, ROWS), _strips(outputs, ROWS_ALONG)
        self.deviation = math.sqrt(VARIANCES[init](inputs, outputs))
        options: Any = {"needs_grad": True, "needs_dual": needs_dual or None}
        self.weight: Any = ti.field(dtype, shape=(outputs, inputs), name="weight", **options)
        self.bias: Any = ti.field(dtype, shape=outputs, name="bias", **options)
        self.begin(key)

    @property
    def parameters(self) -> dict[str, Any]:
        """The fields of weights and of biases by name, for optimisers and `ti.save`."""
        return {"weight": self.weight, "bias": self.bias}

    def begin(self, key: int, layer: int = 0) -> None:
        """Let the weights be those of the beginning.

        Parameters
        ----------
        key : int
            Of the stream of random numbers.
        layer : int, default 0
            What tells layers of the same key apart.

        Examples
        --------
        >>> layer = ti.nn.Dense(2, 2, key=5)
        >>> first = layer.weight[0, 1]
        >>> layer.weight.fill(0)
        >>> layer.begin(5)
        >>> layer.weight[0, 1] == first
        True
        """
        self._begin(key, layer)

    @ti.kernel
    def _begin(self, key: ti.i32, layer: ti.i32):
        for j, k in self.weight:
            self.weight[j, k] = self.deviation * ti.sampling.stream(key, layer, j, k).normal()
        for j in self.bias:
            self.bias[j] = 0

    @ti.func
    def _activate(self, z):
        if ti.static(self.has_jet):
            return self.function(z)[0]
        else:
            return self.function(z)

    @ti.func
    def _numbers(self):
        return ti.Vector([ti.cast(0, self.dtype) for _ in ti.static(range(self.outputs))])

    @ti.func
    def _require(self, x):
        is_vector = ti.static(isinstance(x, ti.Matrix))
        ti.static_assert(is_vector, f"a layer of {self.inputs} inputs takes a vector: net(ti.Vector([x]))[0]")
        if ti.static(is_vector):
            ti.static_assert(
                x.m == 1 and x.n == self.inputs, f"a layer of {self.inputs} inputs gets {x.n} by {x.m} numbers"
            )

    @ti.func
    def __call__(self, x):
        self._require(x)
        y = self._numbers()
        for first, count, width in ti.static(self.strips):
            for strip in range(count):
                j = first + strip * width
                total = ti.Vector([self.bias[j + t] for t in ti.static(range(width))])
                for k in range(self.inputs):
                    value = x[k]
                    for t in ti.static(range(width)):
                        total[t] += self.weight[j + t, k] * value
                for t in ti.static(range(width)):
                    y[j + t] = self._activate(total[t])
        return y

    @ti.func
    def along(self, x, first, second):
        """The output where the input moves, with its first and second derivative.

        Parameters
        ----------
        x, first, second : vector
            The input, and its first and second derivative.

        Returns
        -------
        tuple of vector
            Those of the output.

        Examples
        --------
        >>> layer = ti.nn.Dense(1, 1, "sin", dtype=ti.f64)
        >>> layer.weight.fill(1.0)
        >>> @ti.kernel
        ... def show(t: ti.f64):
        ...     y, slope, bend = layer.along(ti.Vector([t]), ti.Vector([1.0]), ti.Vector([0.0]))
        ...     print(y[0], slope[0], bend[0])
        >>> show(0.0)
        0.0 1.0 0.0
        """
        ti.static_assert(self.has_jet, "derivatives along a direction need an activation that is given by its name")
        self._require(x)
        y, slopes, bends = self._numbers(), self._numbers(), self._numbers()
        for start, count, width in ti.static(self.strips_along):
            for strip in range(count):
                j = start + strip * width
                total = ti.Vector([self.bias[j + t] for t in ti.static(range(width))])
                rise, curve = 0 * total, 0 * total
                for k in range(self.inputs):
                    value, by_first, by_second = x[k], first[k], second[k]
                    for t in ti.static(range(width)):
                        weight = self.weight[j + t, k]
                        total[t] += weight * value
                        rise[t] += weight * by_first
                        curve[t] += weight * by_second
                for t in ti.static(range(width)):
                    y[j + t], slope, bend = self.function(total[t])
                    slopes[j + t] = slope * rise[t]
                    bends[j + t] = bend * rise[t] * rise[t] + slope * curve[t]
        return y, slopes, bends


class MLP(Documented):
    """A multilayer perceptron: dense layers one after another, with a last one that is linear.

    In a kernel, `net(x)` is its output for a vector: a vector, also of one number.

    Parameters
    ----------
    sizes : sequence of int
        How many numbers go in, how many each hidden layer has, and how many come out.
    activation : str or device function, default "tanh"
        Of the hidden layers, as that of `Dense`.
    init : str, default "glorot"
        How weights begin: "glorot", "he" or "lecun", as those of `Dense`.
    key : int, default 0
        Of the streams of random numbers (`ti.sampling`) from which the weights begin.
    dtype : type, optional
        `ti.f32` or `ti.f64`; by default that of `ti.init`.
    needs_dual : bool, default False
        Whether the weights have duals, for `ti.ad.FwdMode`.

    Methods
    -------
    along
    begin
    from_flax
    from_torch
    to_flax
    to_torch

    Attributes
    ----------
    layers : tuple of Dense
        The layers.
    parameters : dict of str to Field
        The weights and biases by name, for optimisers and `ti.save`: `weight_0`, `bias_0`, and so on.

    Raises
    ------
    FieldError
        For sizes, names or types that do not exist.

    Examples
    --------
    >>> import numpy as np
    >>> net = ti.nn.MLP([1, 8, 1], "tanh", key=1)
    >>> x = ti.Vector.field(1, ti.f32, shape=32)
    >>> x.from_numpy(np.linspace(-3, 3, 32, dtype=np.float32)[:, None])
    >>> loss = ti.field(ti.f32, shape=(), needs_grad=True)
    >>> @ti.kernel
    ... def measure():
    ...     for i in x:
    ...         loss[None] += (net(x[i])[0] - ti.sin(x[i][0])) ** 2 / 32
    >>> adam = ti.nn.Adam(net, 0.02)
    >>> @ti.capture
    ... def train():
    ...     with ti.ad.Tape(loss):
    ...         measure()
    ...     adam.step()
    >>> for _ in range(1000):
    ...     train()
    >>> loss[None] < 1e-3
    True
    """

    def __init__(
        self,
        sizes: Sequence[int],
        activation: str | Callable[..., Any] = "tanh",
        *,
        init: str = "glorot",
        key: int = 0,
        dtype: Any = None,
        needs_dual: bool = False,
    ) -> None:
        if len(sizes) < 2:
            raise FieldError(f"a network has a number of inputs and of outputs, not {list(sizes)}", caller())
        activations = [activation] * (len(sizes) - 2) + ["identity"]
        self.layers = tuple(
            [
                Dense(n, m, act, init=init, key=key, dtype=dtype, needs_dual=needs_dual)
                for n, m, act in zip(sizes[:-1], sizes[1:], activations, strict=True)
            ]
        )
        self.inputs, self.outputs, self.dtype = sizes[0], sizes[-1], self.layers[0].dtype
        self.begin(key)

    def begin(self, key: int) -> None:
        """Let the weights be those of the beginning.

        Parameters
        ----------
        key : int
            Of the streams of random numbers.

        Examples
        --------
        >>> net, other = ti.nn.MLP([2, 4, 1], key=1), ti.nn.MLP([2, 4, 1])
        >>> other.begin(1)
        >>> bool((net.layers[1].weight.to_numpy() == other.layers[1].weight.to_numpy()).all())
        True
        """
        for number, layer in enumerate(self.layers):
            layer.begin(key, number)

    @property
    def parameters(self) -> dict[str, Any]:
        """The fields of weights and of biases by name, for optimisers and `ti.save`."""
        named = enumerate(self.layers)
        return {f"{name}_{number}": field for number, layer in named for name, field in layer.parameters.items()}

    @ti.func
    def __call__(self, x):
        return self._through(0, x)

    @ti.func
    def _through(self, number: ti.template(), x):
        if ti.static(number == len(self.layers)):
            return x
        else:
            return self._through(ti.static(number + 1), self.layers[number](x))

    @ti.func
    def along(self, x, direction):
        """The output, and its first and second derivative along a direction of the input.

        These are made with the output, in one go, and are functions of weights and input like any other: a loss of
        them differentiates.

        Parameters
        ----------
        x : vector
            The input.
        direction : vector
            The direction; the derivatives are by what it is multiplied with.

        Returns
        -------
        tuple of vector
            The output, dy/dt and d²y/dt² of x + t direction at t = 0.

        References
        ----------
        A. Griewank and A. Walther, "Evaluating Derivatives", 2nd ed., 2008, chapter 13: Taylor arithmetic.

        Examples
        --------
        >>> net = ti.nn.MLP([2, 4, 1], "sin", dtype=ti.f64)
        >>> @ti.kernel
        ... def laplacian(x: ti.f64, y: ti.f64) -> ti.f64:
        ...     _, _, by_x = net.along(ti.Vector([x, y]), ti.Vector([1.0, 0.0]))
        ...     _, _, by_y = net.along(ti.Vector([x, y]), ti.Vector([0.0, 1.0]))
        ...     return by_x[0] + by_y[0]
        >>> laplacian(0.0, 0.0)  # of sines at 0
        0.0
        """
        return self._along(0, x, direction, 0 * direction)

    @ti.func
    def _along(self, number: ti.template(), x, first, second):
        if ti.static(number == len(self.layers)):
            return x, first, second
        else:
            y, slope, bend = self.layers[number].along(x, first, second)
            return self._along(ti.static(number + 1), y, slope, bend)

    def from_torch(self, state: Mapping[str, Any], names: Sequence[str] | None = None) -> None:
        """Take the weights of PyTorch's linear layers.

        Parameters
        ----------
        state : mapping of str to array
            What `state_dict()` gives, or arrays by such names: NAME.weight and NAME.bias of each layer, whose bias is
            0 if it is left out.
        names : sequence of str, optional
            Which layers, in order; by default all, in the order of `state`.

        Raises
        ------
        FieldError
            For names that are missing or unknown, and for arrays of another shape or type; then nothing has changed.

        Examples
        --------
        >>> import numpy as np
        >>> net = ti.nn.MLP([2, 3, 1])
        >>> net.from_torch({
        ...     "0.weight": np.ones((3, 2), np.float32), "0.bias": np.zeros(3, np.float32),
        ...     "2.weight": np.ones((1, 3), np.float32), "2.bias": np.zeros(1, np.float32),
        ... })
        >>> net.layers[0].weight[2, 1]
        1.0
        """
        found = [(path.rpartition("."), value) for path, value in state.items()]
        leaves = [(layer, name, value) for (layer, _, name), value in found]
        self._take(leaves, "weight", names, lambda weight: weight)

    def to_torch(self, names: Sequence[str] | None = None) -> dict[str, np.ndarray[Any, Any]]:
        """The weights by PyTorch's names.

        Parameters
        ----------
        names : sequence of str, optional
            Of the layers; by default those of `torch.nn.Sequential` with an activation after each: "0", "2", …

        Returns
        -------
        dict of str to numpy.ndarray
            For `load_state_dict`, each passed through `torch.as_tensor`.

        Examples
        --------
        >>> {name: value.shape for name, value in ti.nn.MLP([2, 3, 1]).to_torch().items()}
        {'0.weight': (3, 2), '0.bias': (3,), '2.weight': (1, 3), '2.bias': (1,)}
        """
        names = self._names(names, [f"{2 * number}" for number in range(len(self.layers))])
        rows = zip(names, self.layers, strict=True)
        return {f"{name}.{part}": field.to_numpy() for name, one in rows for part, field in one.parameters.items()}

    def from_flax(self, tree: Mapping[str, Any], names: Sequence[str] | None = None) -> None:
        """Take the weights of Flax's dense layers.

        Parameters
        ----------
        tree : mapping
            What `init` gives, {"params": {NAME: {"kernel": …, "bias": …}, …}}, or its part "params". A bias that is
            left out is 0.
        names : sequence of str, optional
            Which layers, in order, such as "Dense_0" or "body/Dense_0"; by default all, by the numbers in their names.

        Raises
        ------
        FieldError
            For names that are missing or unknown, and for arrays of another shape or type; then nothing has changed.

        Examples
        --------
        >>> import numpy as np
        >>> net = ti.nn.MLP([2, 1])
        >>> net.from_flax({"params": {"Dense_0": {"kernel": np.array([[1.0], [2.0]], np.float32)}}})
        >>> net.layers[0].weight[0, 1]
        2.0
        """
        tree = tree["params"] if set(tree) == {"params"} else tree
        leaves = sorted(_leaves(tree), key=lambda leaf: [int(n) if n.isdigit() else n for n in _PARTS.split(leaf[0])])
        self._take(leaves, "kernel", names, np.transpose)

    def to_flax(self, names: Sequence[str] | None = None) -> dict[str, Any]:
        """The weights as a tree of Flax.

        Parameters
        ----------
        names : sequence of str, optional
            Of the layers; by default "Dense_0", "Dense_1", …

        Returns
        -------
        dict
            {"params": {NAME: {"kernel": …, "bias": …}, …}}, of NumPy arrays.

        Examples
        --------
        >>> ti.nn.MLP([2, 3, 1]).to_flax()["params"]["Dense_0"]["kernel"].shape
        (2, 3)
        """
        names = self._names(names, [f"Dense_{number}" for number in range(len(self.layers))])
        rows = zip(names, self.layers, strict=True)
        params = {name: {"kernel": one.weight.to_numpy().T, "bias": one.bias.to_numpy()} for name, one in rows}
        return {"params": params}

    def _names(self, names: Sequence[str] | None, usual: list[str]) -> list[str]:
        names = usual if names is None else list(names)
        if len(names) != len(self.layers):
            raise FieldError(f"a network of {len(self.layers)} layers has as many names, not {len(names)}", caller())
        return names

    def _take(
        self, leaves: Sequence[tuple[str, str, Any]], weight: str, names: Sequence[str] | None, turn: Callable[..., Any]
    ) -> None:
        """Assign arrays, given as layer, name and array."""
        span = caller()
        found = dict[str, dict[str, Any]]()
        for layer, name, value in leaves:
            if names is None or layer in names:
                found.setdefault(layer, {})[name] = value
        wanted = self._names(names, list(found))
        values = list[tuple[Any, Any]]()
        for name, layer in zip(wanted, self.layers, strict=True):
            if name not in found:
                raise FieldError(f"there is no layer {name!r}{suggestion(name, [one[0] for one in leaves])}", span)
            arrays = found[name]
            if unknown := set(arrays) - {weight, "bias"}:
                raise FieldError(f"the layer {name!r} has {sorted(unknown)}, and a dense one {weight} and bias", span)
            if weight not in arrays:
                raise FieldError(f"the layer {name!r} has no {weight}", span)
            bias = arrays.get("bias", np.zeros(layer.outputs, FLOATS[layer.dtype]))
            values.append((layer.weight, _array(f"{name!r}, {weight}", arrays[weight], layer.weight, turn, span)))
            values.append((layer.bias, _array(f"{name!r}, bias", bias, layer.bias, lambda one: one, span)))
        for field, value in values:
            field.from_numpy(value)


_PARTS = re.compile(r"(\d+)")


def _leaves(tree: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str, Any]]:
    """The arrays of a tree: the path to each, its name, and itself."""
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{above}/{name}" if above else name)
        else:
            yield above, name, value


def _array(what: str, value: Any, field: Any, turn: Callable[..., Any], span: Span) -> Any:
    """An array for a field."""
    given = np.asarray(value)
    dtype = FLOATS[field.dtype]
    if given.dtype.kind != "f" or not np.can_cast(given.dtype, dtype):
        raise FieldError(
            f"{what} is of {given.dtype}, which does not fit in weights of {field.dtype}",
            span,
            hint="round it first, or make the network with dtype=ti.f64" if given.dtype.kind == "f" else "",
        )
    found = turn(given)
    if found.shape != field.shape:
        wanted = turn(np.empty(field.shape)).shape
        raise FieldError(f"{what} has the shape {given.shape}, and that of the network {wanted}", span)
    return np.ascontiguousarray(found, dtype)


# batches


class _Layer:
    """A dense layer over a batch: numbers lie as [row, element], with elements in lanes."""

    def __init__(self, layer: Dense, x: Any, needs_dual: bool | None) -> None:
        self.layer, self.x = layer, x
        options: Any = {"shape": (layer.outputs, x.shape[1]), "needs_grad": True, "needs_dual": needs_dual}
        self.y: Any = ti.field(layer.dtype, name="numbers of a layer", **options)
        #: the slope by the value of the activation, which then takes the place of the sum
        self.slope: Any = SLOPES.get(layer.activation) if isinstance(layer.activation, str) else None
        is_done = self.slope is not None or layer.activation == "identity"
        self.last: Any = self.y if is_done else ti.field(layer.dtype, name="outputs of a layer", **options)
        self.strips_back = _strips(layer.inputs, ROWS)
        self.squares = tuple([(a, b) for a in _strips(layer.outputs, SQUARE) for b in _strips(layer.inputs, SQUARE)])

    @ti.kernel
    def _multiply(self):
        for first, count, width in ti.static(self.layer.strips):
            for strip, b in ti.ndrange(count, self.x.shape[1]):
                j = first + strip * width
                total = ti.Vector([self.layer.bias[j + t] for t in ti.static(range(width))])
                for k in range(self.layer.inputs):
                    value = self.x[k, b]
                    for t in ti.static(range(width)):
                        total[t] += self.layer.weight[j + t, k] * value
                for t in ti.static(range(width)):
                    self.y[j + t, b] = total[t]

    @ti.kernel
    def _bend(self):
        for j, b in self.y:
            self.last[j, b] = self.layer._activate(self.y[j, b])

    @ti.kernel
    def _bend_back(self):
        """From the adjoints of the outputs to those of the sums."""
        for j, b in self.y:
            self.y.grad[j, b] *= self.slope(self.y[j, b])

    @ti.kernel
    def _multiply_back(self):
        """Add to the adjoint of x."""
        for first, count, width in ti.static(self.strips_back):
            for strip, b in ti.ndrange(count, self.x.shape[1]):
                k = first + strip * width
                total = ti.Vector([self.x.grad[k + t, b] for t in ti.static(range(width))])
                for j in range(self.layer.outputs):
                    value = self.y.grad[j, b]
                    for t in ti.static(range(width)):
                        total[t] += self.layer.weight[j, k + t] * value
                for t in ti.static(range(width)):
                    self.x.grad[k + t, b] = total[t]

    @ti.kernel
    def _sum_up(self):
        """Add to the adjoints of weights and biases, and clear that of the sums."""
        for rows, columns in ti.static(self.squares):
            for strip, other in ti.ndrange(rows[1], columns[1]):
                j, k = rows[0] + strip * rows[2], columns[0] + other * columns[2]
                total = ti.Matrix([[ti.cast(0, self.layer.dtype)] * columns[2]] * rows[2])
                for b in range(self.x.shape[1]):
                    for t, u in ti.static(ti.ndrange(rows[2], columns[2])):
                        total[t, u] += self.y.grad[j + t, b] * self.x[k + u, b]
                for t, u in ti.static(ti.ndrange(rows[2], columns[2])):
                    self.layer.weight.grad[j + t, k + u] += total[t, u]
        for j in self.layer.bias:
            total = ti.cast(0, self.layer.dtype)
            for b in range(self.x.shape[1]):
                total += self.y.grad[j, b]
            self.layer.bias.grad[j] += total
        for j, b in self.y:
            self.y.grad[j, b] = 0

    @ti.ad.grad_replaced
    def _apply(self) -> None:
        self._multiply()
        if self.slope is not None:
            self._bend()

    @ti.ad.grad_for(_apply)
    def _apply_adjoint(self) -> None:
        if self.slope is not None:
            self._bend_back()
        if self.x.has_grad:
            self._multiply_back()
        self._sum_up()

    def forward(self) -> None:
        self._apply()
        if self.last is not self.y:
            self._bend()


class Batched(Documented):
    """A network over all elements of a field, layer by layer, as products of matrices.

    The result is that of a kernel with `y[i] = net(x[i])`, and so are the derivatives. For layers of dozens of numbers
    this is twice as fast; for fewer, as fast.

    Parameters
    ----------
    net : MLP
        The network.
    x, y : Field
        Its inputs and outputs, of its type: fields of vectors, or of numbers whose last axis is as long as a vector
        (which may be left out for one number). All other axes count the elements, and are the same for both.

    Methods
    -------
    forward

    Raises
    ------
    FieldError
        For fields that do not fit.

    Examples
    --------
    >>> net = ti.nn.MLP([2, 64, 64, 1], "relu")
    >>> x = ti.Vector.field(2, ti.f32, shape=1000, needs_grad=True)
    >>> y = ti.field(ti.f32, shape=1000, needs_grad=True)
    >>> whole = ti.nn.Batched(net, x, y)
    >>> whole.forward()
    >>> y[0]
    0.0
    """

    def __init__(self, net: MLP, x: Any, y: Any) -> None:
        span = caller()
        if not isinstance(net, MLP):
            raise FieldError(f"a batch is of a network, ti.nn.MLP, not of {net!r}", span)
        self.net, self.x, self.y = net, x, y
        shapes = [_elements(field, count, net.dtype, span) for field, count in ((x, net.inputs), (y, net.outputs))]
        if shapes[0] != shapes[1]:
            raise FieldError(f"inputs of shape {shapes[0]} and outputs of shape {shapes[1]} are not of one batch", span)
        self.shape = shapes[0]
        needs_dual = x.has_dual or y.has_dual or net.layers[0].weight.has_dual or None
        self._first: Any = ti.field(
            net.dtype,
            shape=(net.inputs, math.prod(self.shape)),
            name="inputs",
            needs_grad=x.has_grad,
            needs_dual=needs_dual,
        )
        self._layers = list[_Layer]()
        self._last = self._first
        for layer in net.layers:
            self._layers.append(_Layer(layer, self._last, needs_dual))
            self._last = self._layers[-1].last

    @ti.kernel
    def _gather(self):
        for p in ti.grouped(self.x):
            if ti.static(isinstance(self.x, ti.MatrixField)):
                for k in ti.static(range(self.net.inputs)):
                    self._first[k, place(p, self.shape)] = self.x[p][k]
            elif ti.static(len(self.x.shape) > len(self.shape)):
                self._first[p[len(self.shape)], place(p, self.shape)] = self.x[p]
            else:
                self._first[0, place(p, self.shape)] = self.x[p]

    @ti.kernel
    def _scatter(self):
        for p in ti.grouped(self.y):
            if ti.static(isinstance(self.y, ti.MatrixField)):
                for k in ti.static(range(self.net.outputs)):
                    self.y[p][k] = self._last[k, place(p, self.shape)]
            elif ti.static(len(self.y.shape) > len(self.shape)):
                self.y[p] = self._last[p[len(self.shape)], place(p, self.shape)]
            else:
                self.y[p] = self._last[0, place(p, self.shape)]

    def forward(self) -> None:
        """Put the outputs for x into y.

        Examples
        --------
        >>> net = ti.nn.MLP([1, 1])
        >>> net.layers[0].weight.fill(2.0)
        >>> x, y = ti.field(ti.f32, shape=(2, 2)), ti.field(ti.f32, shape=(2, 2))
        >>> x.fill(3.0)
        >>> ti.nn.Batched(net, x, y).forward()
        >>> y.to_numpy().tolist()
        [[6.0, 6.0], [6.0, 6.0]]
        """
        self._gather()
        for layer in self._layers:
            layer.forward()
        self._scatter()


def _elements(field: Any, count: int, dtype: Any, span: Span) -> tuple[int, ...]:
    """The shape of a batch of vectors of `count` numbers."""
    if not isinstance(field, ti.Field):
        raise FieldError(f"inputs and outputs of a batch are fields, not {field!r}", span)
    if field.dtype != dtype:
        raise FieldError(f"'{field.name}' is of {field.dtype}, and the network of {dtype}", span)
    shape = tuple(field.shape)
    if isinstance(field, ti.MatrixField):
        if (field.n, field.m) != (count, 1):
            raise FieldError(f"'{field.name}' has vectors of {field.n}, and the network has {count}", span)
        return shape
    if shape and shape[-1] == count and count > 1:
        return shape[:-1]
    if count > 1:
        raise FieldError(
            f"'{field.name}' has the shape {shape}, whose last axis is not of {count}",
            span,
            hint=f"ti.Vector.field({count}, …), or numbers with a last axis of {count}",
        )
    return shape
