"""The interpreter: runs IR of any form in plain Python, exactly as `primitives` defines it. The oracle of the tests.

Every result is rounded or wrapped to its type. Memory is reached through `Storage`, so that tests can put dictionaries,
fields or arrays behind it; temporaries, private copies and flat views are the interpreter's own affair:

    memory = DictMemory({x: [1.0, 2.0, 3.0]})
    interpret(fn, (3,), memory)
    memory.nested(x)

A scalar is an `int` (0 or 1 for truth values) or a `float`; a tensor is a flat tuple of its components in row-major
order inside, and a nested tuple where it is returned; lanes are a tuple of scalars. In the first form, where types
still mix, operands and stored values are converted to the type that type inference would give them. Integer division by
zero gives zero, as in machine code without checks; an index out of range is an error whether it is checked or not.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tinote.errors import (
    KernelAssertionError,
    KernelFiniteError,
    KernelIndexError,
    KernelMemoryError,
    KernelOverflowError,
    KernelRecursionError,
    KernelZeroDivisionError,
)
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.buffers import root_of
from tinote.ir.custom_vjp import CustomVJP
from tinote.ir.lanes import Broadcast, LoadTile, MaskedLoad, MaskedStore, Ramp, Reduce, StoreTile, lanes_of
from tinote.ir.memory import Index, Number, RunMemory, Storage, combined, flat_position
from tinote.ir.messages import formatted, split_message
from tinote.ir.primitives import Defaults
from tinote.ir.types import Lanes, Ref, Scalar, Stack, Tangents, Tensor, Tile, Type, element_type, shape_of, strengthen

Plan = tuple[Scalar, tuple[Scalar | None, ...]]
Value = Any  # Number, or a flat tuple of them for a tensor, or a list for a cell or stack

_DEFAULTS = Defaults()


class StepLimitError(Exception):
    """The function ran longer than the step limit."""


def interpret(
    fn: ir.Function,
    args: Sequence[Number],
    memory: Storage,
    *,
    defaults: Defaults = _DEFAULTS,
    on_print: Callable[[str], None] | None = None,
    step_limit: int = 10_000_000,
    order: Callable[[range], Iterable[int]] | None = None,
    observe: Callable[[ir.Op, Mapping[ir.Var, Value]], None] | None = None,
    one_lane: bool = False,
) -> tuple[Value, ...]:
    """Run `fn` on scalar arguments and `memory`, and give what it returns.

    `on_print` receives the text of each `print` (nothing is printed without it). `order` gives the order in which the
    iterations of a parallel loop run (a test that shuffles them finds iterations that are not independent).
    `observe` is called after each operation with the values of all variables so far. With `one_lane` only the first of
    the iterations that a loop in lanes runs together takes part. Raises the located errors of
    `tinote.errors` for faults of the program, and `StepLimitError` after `step_limit` operations.
    """
    machine = _Machine(memory, defaults, on_print, step_limit, order)
    machine.observe, machine.one_lane = observe, one_lane
    region = fn.region
    if len(args) != len(region.params):
        raise TypeError(f"{fn.name} takes {len(region.params)} arguments, not {len(args)}")
    for param, value in zip(region.params, args, strict=True):
        machine.env[param] = p.cast_number(machine.arithmetic.strong(element_type(param.type)), value)
    machine.body(region)
    return tuple([_nest(machine.as_type(y, y.type), shape_of(y.type)) for y in region.yields])


def _nest(value: Value, shape: Index) -> Value:
    """A flat tuple as nested tuples of `shape`."""
    if not shape:
        return value
    size = len(value) // shape[0]
    if len(shape) == 1:
        return tuple(value)
    return tuple([_nest(value[i * size : (i + 1) * size], shape[1:]) for i in range(shape[0])])


class _Arithmetic:
    """What elementwise primitives compute, with the types that the launch's defaults give to weak ones."""

    def __init__(self, defaults: Defaults) -> None:
        self._defaults = defaults
        self._plans: dict[ir.Prim, Plan] = {}

    def strong(self, t: Scalar) -> Scalar:
        """The type in which a weak type is computed."""
        return t if t.bits else strengthen(t, self._defaults.fp, self._defaults.ip)

    def result(self, op: ir.Prim, values: list[Value]) -> Value:
        """The result of an elementwise operation on these values."""
        plan = self._plans.get(op)
        if plan is None:
            plan = self._plans[op] = self._plan(op)
        return self._apply(op.prim, plan, values)

    def _plan(self, op: ir.Prim) -> Plan:
        """The scalar type of the result, and the one that each operand is converted to (None: has it already)."""
        prim = op.prim
        types = tuple([a.type for a in op.args])
        result = op.out.type
        operands: list[Scalar | None] = []
        for k, t in enumerate(types):
            dtype = element_type(t)
            wanted = dtype if prim.rule is None else self.strong(p.operand_type(prim, types, k, result, self._defaults))
            operands.append(None if wanted is dtype else wanted)
        return self.strong(element_type(result)), tuple(operands)

    def _apply(self, prim: p.Primitive, plan: Plan, values: list[Value]) -> Value:
        dtype, operands = plan
        count = 0
        for v in values:
            if isinstance(v, tuple):
                count = len(v)  # type: ignore[arg-type]
        if not count:
            found = self._scalar(prim, dtype.scalar if isinstance(dtype, Tangents) else dtype, operands, values)
            return p.cast_tangents(dtype, found) if isinstance(dtype, Tangents) else found
        if isinstance(dtype, Tangents):
            dtype = dtype.scalar
        results: list[Number] = []
        for k in range(count):
            results.append(self._scalar(prim, dtype, operands, [v[k] if isinstance(v, tuple) else v for v in values]))
        return tuple(results)

    def _scalar(
        self, prim: p.Primitive, dtype: Scalar, operands: tuple[Scalar | None, ...], values: list[Number]
    ) -> Number:
        if prim.rule is not None:
            values = [v if t is None else p.cast_number(t, v) for t, v in zip(operands, values, strict=True)]
        return p.evaluate(prim, dtype, *values)


class _Machine:
    """One run of one function: `env` holds the values of variables."""

    def __init__(
        self,
        memory: Storage,
        defaults: Defaults,
        on_print: Callable[[str], None] | None,
        step_limit: int,
        order: Callable[[range], Iterable[int]] | None,
    ) -> None:
        self.memory = RunMemory(memory)
        self.arithmetic = _Arithmetic(defaults)
        self.on_print = on_print
        self.steps = step_limit
        self.order = order
        self.observe: Callable[[ir.Op, Mapping[ir.Var, Value]], None] | None = None
        self.one_lane = False
        self.env: dict[ir.Var, Value] = {}
        self.actions: dict[type[ir.Op], Callable[[Any], None]] = {
            ir.Prim: self.prim,
            ir.Load: self.load,
            ir.Store: self.store,
            ir.Atomic: self.atomic,
            ir.Extent: self.extent,
            ir.For: self.for_,
            ir.While: self.while_,
            ir.If: self.if_,
            CustomVJP: lambda op: self.bind(op.outs, [self.value(a) for a in op.results]),
            ir.Local: self.local,
            ir.Get: self.get,
            ir.Set: self.set,
            ir.NewStack: self.new_stack,
            ir.Push: self.push,
            ir.Pop: self.pop,
            ir.Check: self.check,
            ir.Print: self.print,
            ir.Task: self.task,
            LoadTile: self.load_tile,
            StoreTile: self.store_tile,
            MaskedLoad: self.masked_load,
            MaskedStore: self.masked_store,
            Broadcast: lambda op: self.bind(op.outs, [(self.value(op.args[0]),) * op.out.type.lanes]),
            Ramp: self.ramp,
            Reduce: self.reduce,
        }

    # values and their types

    def value(self, atom: ir.Atom) -> Value:
        if isinstance(atom, ir.Var):
            return self.env[atom]
        return p.cast_tangents(atom.type, atom.value) if isinstance(atom.type, Tangents) else atom.value

    def as_type(self, atom: ir.Atom, t: Type) -> Value:
        """The value of `atom` where a value of type `t` is wanted."""
        value = self.value(atom)
        if atom.type == t and element_type(t).bits:
            return value
        dtype = self.arithmetic.strong(element_type(t))
        if isinstance(value, tuple):
            return tuple([p.cast_number(dtype, v) for v in value])  # type: ignore[misc]
        return p.cast_number(dtype, value)

    def bind(self, variables: Sequence[ir.Var], values: Sequence[Value]) -> None:
        for variable, value in zip(variables, values, strict=True):
            self.env[variable] = value

    def yields(self, region: ir.Region, outs: Sequence[ir.Var]) -> list[Value]:
        """What a region yields, in the types of the variables that it is for."""
        return [self.as_type(y, out.type) for y, out in zip(region.yields, outs, strict=True)]

    def body(self, region: ir.Region) -> None:
        for op in region.body:
            self.step()
            self.actions[type(op)](op)
            if self.observe is not None:
                self.observe(op, self.env)

    def step(self) -> None:
        self.steps -= 1
        if self.steps < 0:
            raise StepLimitError("the step limit is reached")

    # primitives

    def prim(self, op: ir.Prim) -> None:
        prim = op.prim
        values = [self.value(a) for a in op.args]
        out = op.out
        if prim is p.pack:
            assert isinstance(out.type, Tensor)
            dtype = out.type.dtype
            self.env[out] = tuple([self.as_type(a, dtype) for a in op.args])
        elif prim is p.extract:
            self.env[out] = values[0][self.component(op.args[0], values[1:], op)]
        elif prim is p.insert:
            position = self.component(op.args[0], values[1:-1], op)
            new = self.as_type(op.args[-1], element_type(op.args[0].type))
            self.env[out] = (*values[0][:position], new, *values[0][position + 1 :])
        elif prim is p.join_tangents:
            self.env[out] = tuple(values)
        elif prim is p.tangent_at:
            self.env[out] = values[0][int(values[1])]
        else:
            self.env[out] = self.arithmetic.result(op, values)

    def component(self, tensor: ir.Atom, index: Sequence[int], op: ir.Op) -> int:
        """The position of a component in the flat tuple."""
        t = tensor.type
        shape = shape_of(t.content if isinstance(t, Ref) else t)
        name = tensor.name if isinstance(tensor, ir.Var) else ""
        return flat_position(name or "local", shape, tuple(index), op)

    # memory

    def accessed(self, op: ir.Load | ir.Store | ir.Atomic) -> tuple[ir.Buffer, list[Index]]:
        """The buffer that an access really touches, and the full index of every component."""
        return self.memory.accessed(op.buffer, tuple([int(self.value(a)) for a in op.index]), op)

    def load(self, op: ir.Load) -> None:
        buffer, indices = self.accessed(op)
        values = [self.memory.load(buffer, index) for index in indices]
        self.env[op.out] = tuple(values) if isinstance(op.out.type, Tensor) else values[0]

    def store(self, op: ir.Store) -> None:
        buffer, indices = self.accessed(op)
        value = self.as_type(op.value, buffer.dtype)
        for k, index in enumerate(indices):
            self.memory.store(buffer, index, value[k] if isinstance(op.value.type, Tensor) else value)

    def atomic(self, op: ir.Atomic) -> None:
        buffer, indices = self.accessed(op)
        dtype = buffer.dtype
        value = self.as_type(op.value, dtype)
        old: list[Number] = []
        for k, index in enumerate(indices):
            old.append(self.memory.load(buffer, index))
            new = combined(op.prim, dtype, old[-1], value[k] if isinstance(op.value.type, Tensor) else value)
            self.memory.store(buffer, index, new)
        for out in op.outs:
            self.env[out] = tuple(old) if isinstance(out.type, Tensor) else old[0]

    def extent(self, op: ir.Extent) -> None:
        self.env[op.out] = self.memory.shape(root_of(op.buffer))[op.axis]

    # lanes

    def ramp(self, op: Ramp) -> None:
        t = op.out.type
        assert isinstance(t, Lanes)
        first, step = [int(self.value(a)) for a in op.args]
        self.env[op.out] = tuple([t.dtype.wrap(first + k * step) for k in range(t.lanes)])

    def reduce(self, op: Reduce) -> None:
        t = element_type(op.out.type)
        self.env[op.out] = functools.reduce(lambda a, b: op.prim.evaluate(t, a, b), self.value(op.args[0]))

    def active(self, op: MaskedLoad | MaskedStore) -> Iterable[tuple[int, ir.Buffer, Index]]:
        """The lanes that an access is for, and where in memory each has its element."""
        root, offset = root_of(op.buffer), self.value(op.index[0])
        apart = isinstance(op.index[0].type, Lanes)
        for lane, on in enumerate(self.value(op.mask)):
            if on:
                at = offset[lane] if apart else offset + lane * op.buffer.dtype.size
                yield lane, root, self.memory.unflatten(root, at, op)

    def masked_load(self, op: MaskedLoad) -> None:
        values = [p.neutral(p.add, op.buffer.dtype)] * len(self.value(op.mask))
        for lane, buffer, index in self.active(op):
            values[lane] = self.memory.load(buffer, index)
        self.env[op.out] = tuple(values)

    def masked_store(self, op: MaskedStore) -> None:
        value = self.value(op.value)
        for lane, buffer, index in self.active(op):
            self.memory.store(buffer, index, value[lane])

    def places(self, op: LoadTile | StoreTile) -> Iterable[tuple[int, int, ir.Buffer, Index]]:
        """The numbers of a tile: how many bytes into its row each is, the lane, and where it is in memory. Of the lanes
        that have a row.
        """
        root = root_of(op.buffer)
        first, step, width = [int(self.value(a)) for a in op.args[:3]]
        for lane, on in enumerate(self.value(op.mask)):
            for place in range(0, width if on else 0, op.buffer.dtype.size):
                yield place, lane, root, self.memory.unflatten(root, first + lane * step + place, op)

    def load_tile(self, op: LoadTile) -> None:
        size, count = op.buffer.dtype.size, len(self.value(op.mask))
        rows = {place: [p.neutral(p.add, op.buffer.dtype)] * count for place in range(0, self.value(op.width), size)}
        for place, lane, buffer, index in self.places(op):
            rows[place][lane] = self.memory.load(buffer, index)
        self.env[op.out] = {place: tuple(held) for place, held in rows.items()}  # type: ignore[assignment]

    def store_tile(self, op: StoreTile) -> None:
        rows = self.value(op.value)
        for place, lane, buffer, index in self.places(op):
            self.memory.store(buffer, index, rows[place][lane])

    def enter(self, region: ir.Region, index: int, hi: int) -> None:
        """Bind the index of a parallel loop, and which lanes are in its range if it runs in lanes."""
        self.env[region.params[0]] = index
        if self.one_lane:
            hi = index + 1
        for mask in region.params[1:]:
            assert isinstance(mask.type, Lanes)
            self.env[mask] = tuple([int(index + lane < hi) for lane in range(mask.type.lanes)])

    # control

    def for_(self, op: ir.For) -> None:
        lo, hi = int(self.value(op.lo)), int(self.value(op.hi))
        indices: Iterable[int] = range(lo, hi, lanes_of(op))
        if op.reverse:
            indices = range(hi - 1, lo - 1, -1)
        if op.parallel and self.order is not None:
            indices = self.order(range(lo, hi, lanes_of(op)))
        carried = [self.as_type(a, v.type) for a, v in zip(op.initial, op.carried, strict=True)]
        for i in indices:
            self.step()
            if op.parallel:
                self.enter(op.body, i, hi)
            else:
                self.env[op.index] = i
            self.bind(op.carried, carried)
            self.body(op.body)
            carried = self.yields(op.body, op.carried)
        self.bind(op.outs, carried)

    def while_(self, op: ir.While) -> None:
        condition, body = op.condition, op.body
        carried = [self.as_type(a, v.type) for a, v in zip(op.initial, condition.params, strict=True)]
        while True:
            self.step()
            self.bind(condition.params, carried)
            self.body(condition)
            if not self.value(condition.yields[0]):
                break
            self.bind(body.params, carried)
            self.body(body)
            carried = self.yields(body, body.params)
        self.bind(op.outs, carried)

    def if_(self, op: ir.If) -> None:
        region = op.then if self.value(op.condition) else op.orelse
        self.body(region)
        self.bind(op.outs, self.yields(region, op.outs))

    def task(self, op: ir.Task) -> None:
        for private in op.privates:
            self.memory.begin(private)
        if op.parallel:
            lo, hi = [int(self.value(a)) for a in op.args]
            indices: Iterable[int] = range(lo, hi, lanes_of(op))
            if self.order is not None:
                indices = self.order(indices)  # type: ignore[arg-type]
            for i in indices:
                self.step()
                self.enter(op.body, i, hi)
                self.body(op.body)
        else:
            self.body(op.body)
        for private in op.privates:
            self.memory.merge(private)

    # cells and stacks: lists

    def local(self, op: ir.Local) -> None:
        ref = op.out.type
        if isinstance(ref, Tile):
            zeros = (p.neutral(p.add, ref.content.dtype),) * ref.content.lanes
            places = range(0, self.value(op.args[0]), ref.content.dtype.size)
            self.env[op.out] = dict.fromkeys(places, zeros)  # type: ignore[assignment]
            return
        assert isinstance(ref, Ref)
        content = ref.content
        if op.args:
            start = self.as_type(op.args[0], content)
        else:
            zero = p.cast_tangents(element_type(content), p.neutral(p.add, element_type(content)))
            start = (zero,) * content.count if isinstance(content, Tensor) else zero
        self.env[op.out] = list(start) if isinstance(content, Tensor) else [start]  # type: ignore[arg-type]

    def get(self, op: ir.Get) -> None:
        cell = self.value(op.args[0])
        if isinstance(op.args[0].type, Tile):
            self.env[op.out] = tuple([cell[place][lane] for lane, place in self.places_in_tile(op)])
        elif isinstance(op.out.type, Tensor):
            self.env[op.out] = tuple(cell)
        else:
            self.env[op.out] = cell[self.cell_position(op.args[0], op.args[1:], op)]

    def set(self, op: ir.Set) -> None:
        cell = self.value(op.args[0])
        ref = op.args[0].type
        if isinstance(ref, Tile):
            value = self.value(op.args[2])
            for lane, place in self.places_in_tile(op):
                cell[place] = (*cell[place][:lane], value[lane], *cell[place][lane + 1 :])
            return
        assert isinstance(ref, Ref)
        if isinstance(ref.content, Tensor) and len(op.args) == 2:
            cell[:] = self.as_type(op.args[1], ref.content)
        else:
            position = self.cell_position(op.args[0], op.args[1:-1], op)
            cell[position] = self.as_type(op.args[-1], element_type(ref))

    def places_in_tile(self, op: ir.Get | ir.Set) -> Iterable[tuple[int, int]]:
        """Each lane, and which place of its own it accesses."""
        tile, place = op.args[0].type, self.value(op.args[1])
        assert isinstance(tile, Tile)
        apart = isinstance(op.args[1].type, Lanes)
        return [(lane, place[lane] if apart else place) for lane in range(tile.content.lanes)]

    def cell_position(self, cell: ir.Atom, index: tuple[ir.Atom, ...], op: ir.Op) -> int:
        return self.component(cell, [int(self.value(a)) for a in index], op)

    def new_stack(self, op: ir.NewStack) -> None:
        self.env[op.out] = []

    def push(self, op: ir.Push) -> None:
        stack = op.args[0].type
        assert isinstance(stack, Stack)
        self.value(op.args[0]).append(self.as_type(op.args[1], stack.content))

    def pop(self, op: ir.Pop) -> None:
        stack = self.value(op.args[0])
        if not stack:
            raise RuntimeError(f"more pops than pushes: {op!r}")
        self.env[op.out] = stack.pop()

    # messages

    def check(self, op: ir.Check) -> None:
        holds = self.value(op.args[0])
        if isinstance(op.args[0].type, Lanes):
            if all(holds):
                return
            op = self.in_lane(op, holds.index(0))
        elif holds:
            return
        if op.kind is ir.FaultKind.BOUNDS:
            i, n, *first = [int(self.value(a)) for a in op.args[1:]]
            text = f"index {i + sum(first)} is out of range for axis {op.axis} of '{op.text}', which has length {n}"
            raise KernelIndexError(text, op.loc)
        if op.kind is ir.FaultKind.DIVISION:
            raise KernelZeroDivisionError("integer division by zero", op.loc)
        if op.kind is ir.FaultKind.ASSERT:
            raise KernelAssertionError(self.message(op) or "assertion failed", op.loc)
        if op.kind is ir.FaultKind.MEMORY:
            raise KernelMemoryError(op.text or "out of memory for saved values", op.loc)
        if op.kind is ir.FaultKind.RECURSION:
            raise KernelRecursionError(op.text, op.loc)
        error = KernelFiniteError if op.kind is ir.FaultKind.FINITE else KernelOverflowError
        raise error(self.message(op) or "integer overflow", op.loc)

    def in_lane(self, op: ir.Check, lane: int) -> ir.Check:
        """A check on lanes as that of one lane."""
        shown: list[ir.Lit] = []
        for a in op.args[1:]:
            value = self.value(a)
            shown.append(ir.Lit(value[lane] if isinstance(a.type, Lanes) else value, element_type(a.type)))
        return ir.Check(op.kind, (op.args[0], *shown), op.text, op.axis, op.loc)

    def message(self, op: ir.Check) -> str:
        rest = iter(op.args[1:])
        return "".join([p if isinstance(p, str) else self.shown(next(rest), p.spec) for p in split_message(op.text)])

    def print(self, op: ir.Print) -> None:
        if self.on_print is None or op.about:
            return
        rest = iter(zip(op.args, op.specs, strict=True))
        self.on_print("".join([self.shown(*next(rest)) if part is None else part for part in op.parts]))

    def shown(self, atom: ir.Atom, spec: str = "") -> str:
        """A value as people read it."""
        if spec:
            value = _nest(self.value(atom), shape_of(atom.type))
            return formatted(value, spec)
        text = str(_nest(self.value(atom), shape_of(atom.type)))
        return text.replace("(", "[").replace(",)", "]").replace(")", "]")
