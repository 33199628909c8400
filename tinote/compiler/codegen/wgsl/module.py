"""WGSL from a function that consists of tasks: one compute entry point a task.

A parallel task is a grid-stride loop, a serial one runs in a single invocation. Variables are `v0, v1, …`: no name of
the user's can meet a word of WGSL.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from tinote.compiler.codegen.sites import array_named, bounds_site, fault_site, first_index, print_site, shown_by
from tinote.compiler.codegen.wgsl import wide
from tinote.compiler.codegen.wgsl.primitives import Provided, expression
from tinote.compiler.codegen.wgsl.shader import (
    FAULTS,
    HEAD,
    LEFT,
    LOOP_ENDED,
    MAX_ARRAY_WORDS,
    PAYLOAD,
    PRINTED,
    RING_WORDS,
    SITE,
    TOO_MANY,
    Entry,
    Shader,
)
from tinote.compiler.codegen.wgsl.task_facts import sums_of, work_of
from tinote.compiler.codegen.wgsl.text import (
    WIDE,
    Features,
    Unsupported,
    literal,
    refusal,
    type_name,
    unit_of,
    words_of,
)
from tinote.errors import CompilerBug
from tinote.ir import primitives as p
from tinote.ir.nodes import (
    Atom,
    Atomic,
    Buffer,
    BufferKind,
    Check,
    Extent,
    FaultKind,
    For,
    Function,
    Get,
    If,
    Lit,
    Load,
    Local,
    MemoryOp,
    NewStack,
    Op,
    Pop,
    Prim,
    Print,
    Push,
    Region,
    Set,
    Store,
    Task,
    Var,
    While,
)  # fmt: skip
from tinote.ir.primitives import Primitive
from tinote.ir.query import buffers_of, definitions, trip_count, walk
from tinote.ir.types import Ref, Scalar, Stack, Tangents, Tensor, element_type, f32, f64, shape_of, u1, u32
from tinote.runtime.layout import PAYLOAD_WORDS, WORKGROUP
from tinote.runtime.sites import Site, SiteKind
from tinote.source import NOWHERE, Span

#: Values of a chunk of a stack without a bound. Chosen, not measured.
_CHUNK_VALUES = 32
_BUILTINS = "@builtin(global_invocation_id) at: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>"
#: Words of a large array that an iteration of the loop that clears it takes. Chosen, not measured.
_CLEARED_AT_ONCE = 16
#: Words that the local stacks of one task take together. Chosen, not measured.
_MAX_LOCAL_WORDS = 4096


def generate(fn: Function, features: Features) -> Shader:
    """The module of a function in `Form.TASKS` without tensors and private copies. Raises `KernelTargetError`."""
    return _Module(fn, features).shader()


class _Module:
    """What all tasks share: the words of `params` and `block`, helpers, sites."""

    def __init__(self, fn: Function, features: Features) -> None:
        self.fn = fn
        self.features = features
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
        # Four more: which iterations a dispatch is for.
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
        """Refuse what cannot be held, by its name and its line."""
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

    def shader(self) -> Shader:
        tasks = [op for op in self.fn.region.body if isinstance(op, Task)]
        entries = [_Task(self, f"task{n}", task).entry() for n, task in enumerate(tasks)]
        entries += [_Task(self, "results", None).entry()] if self.results else []
        floats = "@group(0) @binding(3) var<storage, read_write> float_arena: array<atomic<f32>>;\n"
        floats = floats if self.features.float_atomics else ""
        head = f"""\
@group(0) @binding(0) var<uniform> params: array<vec4<u32>, {self.param_words // 4}>;
@group(0) @binding(1) var<storage, read_write> block: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> scratch: array<u32>;
// The same binding several times: an entry point uses one of them.
@group(0) @binding(3) var<storage, read_write> arena: array<u32>;
@group(0) @binding(3) var<storage, read_write> shared_arena: array<atomic<u32>>;
{floats}var<private> nan_bits: u32 = 0x7fc00000u;
var<private> inf_bits: u32 = 0x7f800000u;
{wide.ALIAS}"""
        texts = "\n".join([head, *self.helpers.texts.values()])
        found = [(line, NOWHERE) for line in texts.splitlines()]
        return Shader(
            (*found, ("", NOWHERE), *self.lines),
            tuple(entries),
            tuple([(at, element_type(v.type)) for v, at in self.parameters.items()]),
            tuple([(at, b, axis) for (b, axis), at in self.extents.items()]),
            tuple([(at, b) for b, at in self.bases.items()]),
            self.param_words,
            tuple(self.results),
            self.block_words,
            self.ring,
            tuple([site for site, _ in self.sites]),
            tuple([types for _, types in self.sites]),
        )

    def number_of(self, site: Site, types: tuple[Scalar, ...]) -> int:
        """The number of a site whose words have these types."""
        return self.sites.setdefault((site, types), len(self.sites))


class _OpenStack(NamedTuple):
    """`slot`: the places of a value's words (`raw`) or of itself. `chain`: the piece of one without a bound."""

    t: Scalar
    top: str
    slot: Callable[[], list[str]]
    raw: bool
    chain: str = ""


class _Place(NamedTuple):
    """Where a number is: its words, or the word that its byte is in, and by how many bits to shift that. `floats`: the
    words are numbers of f32.
    """

    words: list[str]
    atomic: bool
    by: str = ""
    floats: bool = False


class _Task:
    """One entry point under construction."""

    def __init__(self, module: _Module, name: str, task: Task | None) -> None:
        self.m = module
        self.name = name
        self.task = task
        self.env: dict[Var, str] = {}
        #: what comes first: variables of the whole function, values from between the tasks
        self.head: list[tuple[str, Span]] = []
        self.lines: list[tuple[str, Span]] = []
        self.loc = NOWHERE
        self.indent = 1
        #: of each loop that is open, whether something in it may fail; whether anything in a loop may
        self.loops: list[bool] = []
        self.fails = False
        self.count = 0
        self.local_words = 0
        self.stacks: dict[Var, _OpenStack] = {}
        ops = list(walk(task.body)) if task else []
        memory = [op for op in ops if isinstance(op, Store | Atomic) and op.buffer.kind is not BufferKind.TEMPORARY]
        updates = [op for op in ops if isinstance(op, Atomic) and not op.plain]
        self.shared = any(op in updates or op.buffer.dtype.bits < 32 for op in memory)
        # All of a task's memory is of one type, which words are not: numbers of others are not taken for floats.
        loaded = [op for op in ops if isinstance(op, Load) and op.buffer.kind is not BufferKind.TEMPORARY]
        only_floats = all(op.buffer.dtype is f32 for op in (*memory, *loaded))
        adds = all(op.prim is p.add for op in updates if op.buffer.kind is not BufferKind.TEMPORARY)
        self.floats = module.features.float_atomics and self.shared and only_floats and adds
        #: arrays in scratch memory: at which word of the invocation's, how many values
        self.arrays: dict[Var, tuple[int, int]] = {}
        self.array_words = 0
        self.saves = any(isinstance(op, NewStack) or (isinstance(op, Local) and self.is_large(op)) for op in ops)
        #: totals that each invocation has for itself, and one of the updates that each stands for
        self.sums: dict[tuple[Buffer, tuple[Atom, ...]], tuple[str, Atomic]] = {}
        self.summed = sums_of(task.body) if task is not None and task.parallel else frozenset()
        # No atomic operation has 64 bits. Where iterations conflict over what is differentiated, gradients are those of
        # their order (`autodiff/keep_order.py`). Such a task runs in one invocation.
        self.alone = any(op.buffer.dtype.bits == 64 for op in updates) or (task is not None and task.ordered)

    # ---- text

    def do(self, line: str) -> None:
        self.lines.append(("  " * self.indent + line, self.loc))

    def name_for(self, what: str = "v") -> str:
        self.count += 1
        return f"{what}{self.count}"

    def value(self, text: str) -> str:
        """A name for the value of an expression."""
        name = self.name_for()
        self.do(f"let {name} = {text};")
        return name

    @contextmanager
    def nested(self, opening: str) -> Iterator[None]:
        self.do(opening)
        self.indent += 1
        if self.indent > self.m.features.nested:
            raise refusal(f"what stands in more than {self.m.features.nested} branches and loops", self.loc)
        yield
        self.indent -= 1
        self.do("}")

    @contextmanager
    def loop(self, opening: str) -> Iterator[None]:
        """A loop that is left where something fails, and with it those around."""
        self.loops.append(False)
        with self.nested(opening):
            yield
        if self.loops.pop():
            self.do("if (failed) { break; }" if self.loops else "if (failed) { return; }")
            if self.loops:
                self.loops[-1] = True

    def declare(self, line: str) -> None:
        """A variable of the whole function."""
        self.head.append(("  " + line, self.loc))

    def param(self, at: int, t: Scalar = u32) -> str:
        return self.from_words(t, [f"params[{k // 4}][{k % 4}]" for k in range(at, at + words_of(t))])

    def from_words(self, t: Scalar, words: Sequence[str]) -> str:
        ty = type_name(t)
        if isinstance(t, Tangents):
            size = words_of(t.scalar)
            each = [self.from_words(t.scalar, words[k : k + size]) for k in range(0, len(words), size)]
            return f"{ty}({', '.join(each)})"
        if ty == WIDE:
            self.m.helpers.provide("wide")
            return f"Wide({', '.join(words)})"
        if ty == "f64":
            self.m.helpers.provide("bits_f64")
            return f"f64_from(Wide({', '.join(words)}))"
        (word,) = words
        if t is u1:
            return f"({word} != 0u)"
        if t.kind == "f" and t.bits == 16:
            return f"unpack2x16float({word}).x"
        if t.bits < 32:
            return self.sign_extended(t, word)
        return word if ty == "u32" else f"bitcast<{ty}>({word})"

    def sign_extended(self, t: Scalar, word: str) -> str:
        wrapped = f"bitcast<{type_name(t)}>({word})"
        return f"{self.m.helpers.provide(f'wrap_{t.name}')}({wrapped})"

    def to_words(self, t: Scalar, value: str) -> list[str]:
        ty = type_name(t)
        if isinstance(t, Tangents):
            return [word for d in range(t.count) for word in self.to_words(t.scalar, f"{value}[{d}]")]
        if ty == "f64":
            self.m.helpers.provide("bits_f64")
            value, ty = self.value(f"f64_words({value})"), WIDE
        if ty == WIDE:
            return [f"{value}.x", f"{value}.y"]
        if t.kind == "f" and t.bits == 16:
            self.m.helpers.provide("wrap_f16")
            return [f"f16_bits({value})"]
        return [f"u32({value})" if t is u1 else value if ty == "u32" else f"bitcast<u32>({value})"]

    def use(self, a: Atom) -> str:
        if isinstance(a, Lit):
            if type_name(a.type) == WIDE:
                self.m.helpers.provide("wide")
            return literal(a)
        if a not in self.env:  # a parameter, or made between the tasks: cheap arithmetic, the load of a temporary
            outer = self.lines, self.indent, self.loc
            self.lines, self.indent = self.head, 1
            if a in self.m.parameters:
                self.env[a] = self.value(self.param(self.m.parameters[a], element_type(a.type)))
            else:
                self.op(self.made(a))
            self.lines, self.indent, self.loc = outer
        return self.env[a]

    def made(self, v: Var) -> Op:
        """What is made between the tasks. What it loads is as it was there: nothing has written it since."""
        op = self.m.made[v]
        if isinstance(op, Load):
            body = self.m.fn.region.body
            since = body[body.index(op) :]
            until = since[: since.index(self.task)] if self.task is not None else since
            for task in until:
                for inner in [inner for r in task.regions for inner in walk(r)]:
                    if isinstance(inner, Store | Atomic) and inner.buffer is op.buffer:
                        what = f"a task that writes '{op.buffer.name}', which a later one uses as it was,"
                        raise refusal(what, op.loc)
        return op

    # ---- the whole

    def entry(self) -> Entry:
        task, iterations = self.task, None
        parallel = task is not None and task.parallel and not self.alone
        size = WORKGROUP if parallel else 1
        if not parallel:
            # A workgroup of one invocation would have no others that leave here: Mesa's driver for CPUs runs the other
            # lanes of its vectors along, without their stores and loads, so that they may never come to a loop's end.
            self.do("if (me != 0u) { return; }")
        self.do(f"if (atomicLoad(&block[{FAULTS}]) != 0u) {{ return; }}")
        if task is None:
            for y, (at, t) in zip(self.m.fn.region.yields, self.m.results, strict=True):
                words = [f"block[{at + k}]" for k in range(words_of(t))]
                self.write(t, _Place(words, True), self.use(y))
        elif not task.parallel:
            # Once; the loop is there to be left, and drivers do not see that it ends by itself.
            with self.loop("for (var turn = me; turn < 1u; turn++) {"):
                self.region(task.body)
        else:
            iterations = self.grid_loop(task)
        stacks = [f"  let stacks = {1 + self.array_words}u; var sp = stacks;"] if self.saves else []
        ids = f"let me = at.x; let stride = groups.x * {size}u;"
        begin = [f"@compute @workgroup_size({WORKGROUP})", f"fn {self.name}({_BUILTINS}) {{", f"  {ids}"]
        if self.sums:
            begin = [f"fn {self.name}_iterations(me: u32, stride: u32) {{"]
        # The layout names all four bindings, and what a text does not use it need not have.
        loc = NOWHERE if task is None else task.loc
        found = [(line, loc) for line in (*begin, *stacks)]
        self.m.lines += [*found, *self.head, *self.lines, ("}", loc), ("", NOWHERE)]
        if self.sums:
            self.m.lines += [*self.reduction(ids, loc), ("", NOWHERE)]
        divisible = task is not None and task.parallel
        work = work_of(task.body) if task is not None and divisible else None
        return Entry(self.name, parallel, iterations, self.saves, bool(self.sums), divisible, work, self.array_words)

    def grid_loop(self, task: Task) -> int | None:
        """The iterations that a dispatch is for, by all invocations. Gives how many a launch has, if that is known."""
        lo, hi = task.args
        t = element_type(lo.type)
        known = trip_count(lo, hi)
        first, last = self.use(lo), self.use(hi)
        self.do(f"if (!{self.prim_text(p.lt, u1, (lo, hi), [first, last])}) {{ return; }}")
        count = self.prim_text(p.sub, t, (hi, lo), [self.value(last), self.value(first)])
        wide_index = type_name(t) == WIDE
        if wide_index:
            count = self.value(count)
            self.fail_unless(f"{count}.y == 0u", Site(SiteKind.ASSERT, task.loc, TOO_MANY), [])
        self.do(f"let iterations = {f'{count}.x' if wide_index else f'u32({count})'};")
        begin, most = (self.param(self.m.param_words - k) for k in (4, 3))
        self.do(f"let begin = min({begin}, iterations); let end = begin + min(iterations - begin, {most});")
        with self.nested("if (me == 0u && end < iterations) {"):
            self.do(f"atomicMax(&block[{LEFT}], iterations);")
        self.do("var iteration = begin + min(me, end - begin);")
        # Nothing wraps, though there may be as many iterations as words have values.
        with self.loop("for (; iteration < end; iteration += min(stride, end - iteration)) {"):
            number = "Wide(iteration, 0u)" if wide_index else f"{type_name(t)}(iteration)"
            self.env[task.body.params[0]] = self.value(self.prim_text(p.add, t, (lo, lo), [self.value(first), number]))
            if self.saves:
                self.do("sp = stacks;")
            self.region(task.body)
        self.fail_unless("iteration >= end", Site(SiteKind.ASSERT, task.loc, LOOP_ENDED), [])
        return known

    def reduction(self, ids: str, loc: Span) -> list[tuple[str, Span]]:
        """The entry point of a task with totals. The iterations are a function of their own, which every invocation
        comes back from, wherever it leaves them: all meet at the barriers. A group's totals are halved until there is
        one of each, which one invocation adds to what all share.
        """
        self.env, self.head, self.lines, self.loc, self.indent = {}, [], [], loc, 1
        sums = [(total, op, f"{k * WORKGROUP}u + lane") for k, (total, op) in enumerate(self.sums.values())]
        for total, op, _ in sums:
            self.do(f"{total} = {_neutral(op)};")
        self.do(f"{self.name}_iterations(me, stride);")
        lanes = f"{self.name}_lanes"
        for total, op, at in sums:
            self.do(f"{lanes}[{at}] = {self.to_words(op.buffer.dtype, total)[0]};")
        self.do("workgroupBarrier();")
        with self.nested(f"for (var half = {WORKGROUP // 2}u; half > 0u; half >>= 1u) {{"):
            with self.nested("if (lane < half) {"):
                for _, op, at in sums:
                    t, both = op.buffer.dtype, (op.value, op.value)
                    halves = [self.value(self.from_words(t, [f"{lanes}[{k}]"])) for k in (at, f"{at} + half")]
                    joined = self.value(self.prim_text(op.prim, t, both, halves))
                    self.do(f"{lanes}[{at}] = {self.to_words(t, joined)[0]};")
            self.do("workgroupBarrier();")
        with self.nested("if (lane == 0u) {"):
            for _, op, at in sums:
                self.loc = op.loc
                word = self.value(f"{lanes}[{at}]")
                with self.nested(f"if ({_is_not_neutral(op, word)}) {{"):  # else there may be no such element
                    self.add_to(op, self.value(self.from_words(op.buffer.dtype, [word])))
        private = [f"var<private> {total}: {type_name(op.buffer.dtype)};" for total, op, _ in sums]
        begin = [
            *private,
            f"var<workgroup> {lanes}: array<u32, {len(sums) * WORKGROUP}>;",
            f"@compute @workgroup_size({WORKGROUP})",
            f"fn {self.name}({_BUILTINS}, @builtin(local_invocation_index) lane: u32) {{",
            f"  {ids}",
        ]
        return [*[(line, loc) for line in begin], *self.head, *self.lines, ("}", loc)]

    def region(self, region: Region) -> list[str]:
        """The code of a region. What it takes from scratch memory goes back at its end."""
        makes = any(isinstance(op, NewStack) for op in region.body)
        mark = self.value("sp") if makes and not self.grows_outer(region) else ""
        for op in region.body:
            self.op(op)
        found = [self.use(y) for y in region.yields]
        if mark:
            self.do(f"sp = {mark};")
        return found

    def grows_outer(self, region: Region) -> bool:
        inner = {op.out for op in walk(region) if isinstance(op, NewStack)}
        pushes = [op for op in walk(region) if isinstance(op, Push) and op.args[0] not in inner]
        return any(self.stacks[op.args[0]].chain for op in pushes)  # type: ignore[index]

    def op(self, op: Op) -> None:
        handler = _HANDLERS.get(type(op))
        if handler is None:
            raise refusal(f"'{type(op).__name__}'", op.loc)
        outer, self.loc = self.loc, op.loc
        try:
            handler(self, op)
        except Unsupported as error:
            raise refusal(str(error), op.loc) from None
        self.loc = outer

    def prim(self, op: Prim) -> None:
        operands = [self.use(a) for a in op.args]
        if all(isinstance(a, Lit) for a in op.args):
            # A constant expression that wraps or divides by zero would be an error of the shader: these are none.
            operands = [self.hidden(element_type(a.type), x) for a, x in zip(op.args, operands, strict=True)]
        self.env[op.out] = self.value(self.prim_text(op.prim, element_type(op.out.type), op.args, operands))

    def hidden(self, t: Scalar, value: str) -> str:
        """The same as no constant."""
        name = self.name_for("c")
        self.do(f"var {name}: {type_name(t)} = {value};")
        return name

    def prim_text(self, prim: Primitive, t: Scalar, atoms: tuple[Atom, ...], operands: list[str]) -> str:
        return expression(self.m.helpers, prim, t, atoms, operands)

    # ---- control: what is carried, and what a branch gives, are `var`s; everything else is a `let`

    def cells(self, variables: tuple[Var, ...], initial: tuple[Atom, ...] = ()) -> list[str]:
        names = [self.name_for("c") for _ in variables]
        for k, (v, name) in enumerate(zip(variables, names, strict=True)):
            start = f" = {self.use(initial[k])}" if initial else ""
            self.do(f"var {name}: {type_name(element_type(v.type))}{start};")
        return names

    def assign(self, cells: list[str], values: list[str]) -> None:
        for cell, value in zip(cells, values, strict=True):
            self.do(f"{cell} = {value};")

    def bind(self, variables: tuple[Var, ...], cells: list[str]) -> None:
        for v, cell in zip(variables, cells, strict=True):
            self.env[v] = self.value(cell)

    def for_(self, op: For) -> None:
        lo, hi = self.use(op.lo), self.use(op.hi)
        cells, i, t = self.cells(op.outs, op.initial), self.name_for("n"), element_type(op.index.type)
        low, high = (lo, i) if op.reverse else (i, hi)
        one = literal(Lit(1, t))
        less = self.prim_text(p.lt, u1, (op.index, op.index), [low, high])
        move = f"{i} = {self.prim_text(p.sub if op.reverse else p.add, t, (op.index, op.index), [i, one])};"
        self.do(f"var {i}: {type_name(t)} = {hi if op.reverse else lo};")
        with self.loop("loop {"):
            self.do(f"if (!{less}) {{ break; }}")
            if op.reverse:
                self.do(move)
            self.bind(op.body.params[: 1 + len(cells)], [i, *cells])
            self.assign(cells, self.region(op.body))
            if not op.reverse:
                self.do(move)
        self.fail_unless(f"!({less})", Site(SiteKind.ASSERT, op.loc, LOOP_ENDED), [])
        self.bind(op.outs, cells)

    def while_(self, op: While) -> None:
        cells = self.cells(op.outs, op.initial)
        over = self.name_for("c")
        self.do(f"var {over} = 0u;")
        with self.loop("loop {"):
            self.bind(op.condition.params, cells)
            (condition,) = self.region(op.condition)
            self.do(f"{over} = u32({condition});")
            self.do(f"if (!{condition}) {{ break; }}")
            self.bind(op.body.params, cells)
            self.assign(cells, self.region(op.body))
        self.fail_unless(f"{over} == 0u", Site(SiteKind.ASSERT, op.loc, LOOP_ENDED), [])
        self.bind(op.outs, cells)

    def if_(self, op: If) -> None:
        cells = self.cells(op.outs)
        with self.nested(f"if ({self.use(op.condition)}) {{"):
            self.assign(cells, self.region(op.then))
        if op.orelse.body or op.orelse.yields:
            with self.nested("else {"):
                self.assign(cells, self.region(op.orelse))
        self.bind(op.outs, cells)

    # ---- memory

    def index(self, index: Atom) -> str:
        """An index in range as a word."""
        t, term = element_type(index.type), self.use(index)
        return f"{term}.x" if type_name(t) == WIDE else term if t is u32 else f"u32({term})"

    def row_major(self, indices: tuple[Atom, ...], extents: list[str]) -> str:
        """The number of a component: indices are in range, so that nothing wraps."""
        text = ""
        for index, extent in zip(indices, extents, strict=True):
            term = self.index(index)
            text = f"({text} * {extent} + {term})" if text else term
        return text or "0u"

    def extent_of(self, b: Buffer, axis: int) -> str:
        n = b.shape[axis]
        return self.param(self.m.extents[b, axis]) if n is None else f"{n}u"

    def place(self, op: MemoryOp) -> _Place:
        """Where a component is."""
        b = op.buffer
        size = words_of(b.dtype)
        if b.kind is BufferKind.TEMPORARY:
            extents = [f"{n}u" for n in (*b.shape, *b.element)]
            start = self.value(f"{self.m.temporaries[b]}u + {self.row_major(op.index, extents)} * {size}u")
            return _Place([f"block[{start} + {k}u]" for k in range(size)], True)
        array = "shared_arena" if self.shared else "arena"
        unit = unit_of(b.dtype)  # bases are counted in the same
        start = self.value(f"{self.param(self.m.bases[b])} + {self.offset(op, unit)}")
        if self.floats:
            return _Place([f"float_arena[{start}]"], True, floats=True)
        if unit == 4:
            return _Place([f"{array}[{start} + {k}u]" if k else f"{array}[{start}]" for k in range(size)], self.shared)
        scale = 4 // unit
        by = self.value(f"({start} & {scale - 1}u) * {8 * unit}u")
        return _Place([f"{array}[{start} >> {scale.bit_length() - 1}u]"], self.shared, by)

    def offset(self, op: MemoryOp, unit: int) -> str:
        """How far a component is from the begin of its buffer, in units of `unit` bytes."""
        b = op.buffer
        strides = b.strides
        components = op.index[b.rank :]
        terms: list[str] = []
        if strides is None:
            size = math.prod(b.element) * b.dtype.size
            extents = [self.extent_of(b, axis) for axis in range(b.rank)]
            terms.append(f"{self.row_major(op.index[: b.rank], extents)} * {size // unit}u")
        else:
            terms += [self.term(i, n // unit) for i, n in zip(op.index, strides, strict=False)]
        terms += [self.term(i, n // unit) for i, n in zip(components, b.element_strides, strict=True)]
        return " + ".join([term for term in terms if term]) or "0u"

    def term(self, index: Atom, stride: int) -> str:
        if isinstance(index, Lit):
            return f"{(int(index.value) * stride) & 0xFFFFFFFF}u" if index.value else ""
        return f"{self.index(index)} * {stride}u" if stride != 1 else self.index(index)

    def read(self, t: Scalar, place: _Place) -> str:
        if place.floats:
            return self.value(f"atomicLoad(&{place.words[0]})")
        words = [f"atomicLoad(&{w})" if place.atomic else w for w in place.words]
        if place.by:
            word = f"({words[0]} >> {place.by})"
            words = [f"({word} & 0xffu)" if t is u1 else word]
        return self.value(self.from_words(t, words))

    def write(self, t: Scalar, place: _Place, value: str) -> None:
        if place.floats:
            self.do(f"atomicStore(&{place.words[0]}, {value});")
            return
        words = self.to_words(t, value)
        if place.by:  # its neighbours in the same word are others' business
            mask = f"{(1 << 8 * t.size) - 1:#x}u"
            bits = self.value(f"({words[0]} & {mask}) << {place.by}")
            self.do(f"atomicAnd(&{place.words[0]}, ~({mask} << {place.by}));")
            self.do(f"atomicOr(&{place.words[0]}, {bits});")
            return
        for where, word in zip(place.words, words, strict=True):
            self.do(f"atomicStore(&{where}, {word});" if place.atomic else f"{where} = {word};")

    def load(self, op: Load) -> None:
        self.env[op.out] = self.read(op.buffer.dtype, self.place(op))

    def store(self, op: Store) -> None:
        value = self.use(op.value)
        self.write(op.buffer.dtype, self.place(op), value)

    def update(self, op: Atomic) -> None:
        value = self.use(op.value)
        if (op.buffer, op.index) not in self.summed or self.alone:
            self.add_to(op, value)
            return
        t = op.buffer.dtype
        if (op.buffer, op.index) not in self.sums:
            self.sums[op.buffer, op.index] = self.name_for(f"{self.name}_total"), op
        total, _ = self.sums[op.buffer, op.index]
        self.do(f"{total} = {self.prim_text(op.prim, t, (op.value, op.value), [total, value])};")

    def add_to(self, op: Atomic, value: str) -> None:
        """Update what is in memory."""
        t, place = op.buffer.dtype, self.place(op)
        prim = op.prim
        both = (op.value, op.value)
        if op.plain or t.bits == 64:
            old = self.read(t, place)
            self.write(t, place, self.value(self.prim_text(prim, t, both, [old, value])))
        elif isinstance(t, Tangents):
            one = Var(t.scalar)
            each = [
                self.exchange(t.scalar, prim, (one, one), _Place([where], place.atomic), f"{value}[{d}]")
                for d, where in enumerate(place.words)
            ]
            old = f"{type_name(t)}({', '.join(each)})"
        elif place.floats:
            old = self.value(f"atomicAdd(&{place.words[0]}, {value})")
        elif t.kind in "iu" and t.bits == 32 and (word := _WORDS.get(prim)) is not None:
            found = self.value(f"atomic{word}(&{place.words[0]}, {self.to_words(t, value)[0]})")
            old = self.from_words(t, [found])
        elif t.kind in "iu" and t.bits == 32 and prim in _ORDERED and type_name(t) == "u32":
            old = self.value(f"atomic{_ORDERED[prim]}(&{place.words[0]}, {value})")
        else:
            old = self.exchange(t, prim, both, place, value)
        if op.outs:
            self.env[op.out] = self.value(old)

    def exchange(self, t: Scalar, prim: Primitive, both: tuple[Atom, ...], place: _Place, value: str) -> str:
        """Compare and exchange until nobody was faster; gives the old value."""
        cell, (where,) = self.name_for("c"), place.words
        self.do(f"var {cell} = atomicLoad(&{where});")
        with self.nested("loop {"):
            word = f"({cell} >> {place.by})" if place.by else cell
            seen = self.value(self.from_words(t, [f"({word} & 0xffu)" if t is u1 and place.by else word]))
            (new,) = self.to_words(t, self.value(self.prim_text(prim, t, both, [seen, value])))
            if place.by:
                mask = f"{(1 << 8 * t.size) - 1:#x}u"
                new = f"({cell} & ~({mask} << {place.by})) | (({new} & {mask}) << {place.by})"
            found = self.name_for("r")
            self.do(f"let {found} = atomicCompareExchangeWeak(&{where}, {cell}, {new});")
            self.do(f"if ({found}.exchanged) {{ break; }}")
            self.do(f"{cell} = {found}.old_value;")
        word = f"({cell} >> {place.by})" if place.by else cell
        return self.from_words(t, [f"({word} & 0xffu)" if t is u1 and place.by else word])

    def extent(self, op: Extent) -> None:
        self.env[op.out] = self.value(f"i32({self.extent_of(op.buffer, op.axis)})")

    # ---- cells of the function: WGSL indexes a `var` array at run time

    def is_large(self, op: Local) -> bool:
        return math.prod(shape_of(op.out.type.content)) > self.m.features.indexed  # type: ignore[union-attr]

    def local(self, op: Local) -> None:
        content = op.out.type.content  # type: ignore[union-attr]
        if self.is_large(op):
            self.large(op)
            return
        name = self.env[op.out] = self.name_for("a")
        t, shape = type_name(element_type(content)), shape_of(content)
        if t == WIDE:
            self.m.helpers.provide("wide")
        ty = f"array<{t}, {max(math.prod(shape), 1)}>" if shape else t
        self.declare(f"var {name}: {ty};")
        self.do(f"{name} = {self.use(op.args[0]) if op.args else f'{ty}()'};")

    def large(self, op: Local) -> None:
        """An array in scratch memory."""
        content = op.out.type.content  # type: ignore[union-attr]
        count, size = math.prod(shape_of(content)), words_of(element_type(content))
        begin, self.array_words = 1 + self.array_words, self.array_words + count * size
        if op.args:
            raise CompilerBug("WGSL", f"a large array that begins with values: {op!r}")
        if self.array_words > MAX_ARRAY_WORDS:
            hint = f"keep it in a field: a GPU's task has {MAX_ARRAY_WORDS} words for such arrays"
            raise refusal(f"an array of {count} numbers among the variables of a kernel", op.loc, hint)
        self.arrays[op.out] = begin, count
        k, words = self.name_for("k"), count * size
        with self.nested(
            f"for (var {k} = 0u; {k} < {words - words % _CLEARED_AT_ONCE}u; {k} += {_CLEARED_AT_ONCE}u) {{"
        ):
            for step in range(_CLEARED_AT_ONCE):
                self.do(f"scratch[({begin + step}u + {k}) * stride + me] = 0u;")
        for step in range(words - words % _CLEARED_AT_ONCE, words):
            self.do(f"scratch[{begin + step}u * stride + me] = 0u;")

    def array_place(self, ref: Var, index: tuple[Atom, ...]) -> _Place:
        """Where a number of an array in scratch memory is."""
        (begin, count), content = self.arrays[ref], ref.type.content  # type: ignore[union-attr]
        size = words_of(element_type(content))
        # An index out of range is none of another invocation's.
        at = f"min({self.row_major(index, [f'{n}u' for n in shape_of(content)])}, {count - 1}u)"
        start = self.value(f"{begin}u + {at} * {size}u")
        return _Place([f"scratch[({start} + {w}u) * stride + me]" for w in range(size)], False)

    def cell(self, ref: Atom, index: tuple[Atom, ...]) -> str:
        assert isinstance(ref, Var) and isinstance(ref.type, Ref)
        shape = shape_of(ref.type.content)
        if not index:
            return self.env[ref]
        if all(isinstance(i, Lit) for i in index):
            at = 0
            for i, n in zip(index, shape, strict=True):
                at = at * n + int(i.value)  # type: ignore[union-attr]
            # An index out of range would be an error of the shader; a check before it reports it.
            return f"{self.env[ref]}[{min(max(at, 0), max(math.prod(shape) - 1, 0))}u]"
        return f"{self.env[ref]}[{self.row_major(index, [f'{n}u' for n in shape])}]"

    def get(self, op: Get) -> None:
        ref = op.args[0]
        if ref in self.arrays:
            t = element_type(ref.type.content)  # type: ignore[union-attr]
            self.env[op.out] = self.read(t, self.array_place(ref, op.args[1:]))  # type: ignore[arg-type]
            return
        self.env[op.out] = self.value(self.cell(op.args[0], op.args[1:]))

    def set_(self, op: Set) -> None:
        ref, value = op.args[0], self.use(op.args[-1])
        if ref in self.arrays:
            t = element_type(ref.type.content)  # type: ignore[union-attr]
            self.write(t, self.array_place(ref, op.args[1:-1]), value)  # type: ignore[arg-type]
            return
        self.do(f"{self.cell(op.args[0], op.args[1:-1])} = {value};")

    # ---- stacks: a local array; a piece of scratch memory; without a bound, pieces that know those beside them

    def new_stack(self, op: NewStack) -> None:
        content = op.out.type.content  # type: ignore[union-attr]
        if not isinstance(content, Scalar):
            raise CompilerBug("WGSL", f"a stack of tensors: {op!r}")
        t, name = content, self.name_for("s")
        top, size = f"{name}_top", words_of(content)
        self.declare(f"var {top}: u32; var {name}_at: u32;")
        self.do(f"{top} = {0 if op.args else _CHUNK_VALUES}u; {name}_at = 0u;")
        capacity = op.args[0] if op.args else None
        most = max(int(capacity.value), 1) if isinstance(capacity, Lit) else None
        if most is not None and most <= self.m.features.indexed and self.local_words + most * size <= _MAX_LOCAL_WORDS:
            self.local_words += most * size
            self.declare(f"var {name}: array<{type_name(t)}, {most}>;")
            self.stacks[op.out] = _OpenStack(t, top, lambda: [f"{name}[{top}]"], False)
            return
        skip = 0 if capacity is not None else 2
        if capacity is not None:
            asked = self.index(capacity)
            many = f"{self.use(capacity)}.y != 0u || " if type_name(element_type(capacity.type)) == WIDE else ""
            room = self.value(f"arrayLength(&scratch) / stride / {size}u")
            need = self.value(f"max({asked}, 1u)")
            self.fail_unless(f"!({many}{need} > {room})", Site(SiteKind.MEMORY, op.loc), [])
            self.do(f"{name}_at = sp; sp += {size}u * {need};")
            self.fail_unless("sp <= arrayLength(&scratch) / stride", Site(SiteKind.MEMORY, op.loc), [])

        def slot() -> list[str]:
            places = [f"{name}_at + {top} * {size}u + {skip + w}u" for w in range(size)]
            return [f"scratch[({place}) * stride + me]" for place in places]

        self.stacks[op.out] = _OpenStack(t, top, slot, True, "" if capacity is not None else f"{name}_at")

    def push(self, op: Push) -> None:
        stack, value = self.stacks[op.args[0]], self.use(op.args[1])  # type: ignore[index]
        if at := stack.chain:
            with self.nested(f"if ({stack.top} == {_CHUNK_VALUES}u) {{"):
                self.do(f"var next = 0u; if ({at} != 0u) {{ next = scratch[({at} + 1u) * stride + me]; }}")
                with self.nested("if (next == 0u) {"):
                    self.do(f"next = sp; sp += {2 + _CHUNK_VALUES * words_of(stack.t)}u;")
                    self.fail_unless("sp <= arrayLength(&scratch) / stride", Site(SiteKind.MEMORY, op.loc), [])
                    self.do(f"scratch[next * stride + me] = {at}; scratch[(next + 1u) * stride + me] = 0u;")
                    self.do(f"if ({at} != 0u) {{ scratch[({at} + 1u) * stride + me] = next; }}")
                self.do(f"{at} = next; {stack.top} = 0u;")
        if stack.raw:
            self.write(stack.t, _Place(stack.slot(), False), value)
        else:
            self.do(f"{stack.slot()[0]} = {value};")
        self.do(f"{stack.top} += 1u;")

    def pop(self, op: Pop) -> None:
        stack = self.stacks[op.args[0]]  # type: ignore[index]
        if at := stack.chain:
            self.do(f"if ({stack.top} == 0u) {{ {at} = scratch[{at} * stride + me]; {stack.top} = {_CHUNK_VALUES}u; }}")
        self.do(f"{stack.top} -= 1u;")
        places = stack.slot()
        self.env[op.out] = self.read(stack.t, _Place(places, False)) if stack.raw else self.value(places[0])

    # ---- faults: the first invocation to come writes its site; the task is left, later tasks do nothing. It is left
    # by breaking off its loops: of what comes after a `return`, drivers make a branch, and Mesa's driver for CPUs does
    # not run what stands in more than 80 of them.

    def fail_unless(self, good: str, site: Site, shown: list[tuple[Scalar, str]]) -> None:
        number = self.m.number_of(site, tuple([t for t, _ in shown]))
        with self.nested(f"if (!({good})) {{"):
            with self.nested(f"if (atomicAdd(&block[{FAULTS}], 1u) == 0u) {{"):
                self.do(f"atomicStore(&block[{SITE}], {number}u);")
                for k, (t, value) in enumerate(shown[:PAYLOAD_WORDS]):
                    words = [f"block[{PAYLOAD + 2 * k + w}]" for w in range(words_of(t))]
                    self.write(t, _Place(words, True), value)
            if not self.loops:
                self.do("return;")
                return
            if not self.fails:
                self.declare("var failed = false;")
            self.fails = self.loops[-1] = True
            self.do("failed = true;")
            self.do("break;")

    def check(self, op: Check) -> None:
        condition = op.args[0]
        if isinstance(condition, Lit) and condition.value:
            return
        if op.kind is not FaultKind.BOUNDS:
            shown = [(element_type(a.type), self.use(a)) for a in shown_by(op)]
            self.fail_unless(self.use(condition), fault_site(op), shown)
            return
        index, extent = op.args[1:3]
        known = int(extent.value) if isinstance(extent, Lit) else None
        site = bounds_site(self.m.all_buffers, op.text, op.axis, known, op.loc, first_index(op))
        shown = [(element_type(a.type), self.use(a)) for a in (index, extent)]
        array = array_named(self.m.all_buffers, op.text, op.axis)
        if array is not None:  # its whole shape, which nobody knew before the launch
            shown[1:] = [(u32, self.extent_of(array, axis)) for axis in range(array.rank)]
        self.fail_unless(self.use(condition), site, shown)

    # ---- prints: each takes its words of the ring at once, so that they stay together

    def print_(self, op: Print) -> None:
        types = [element_type(a.type) for a in op.args]
        values = [self.use(a) for a in op.args]
        number = self.m.number_of(print_site(op), tuple(types))
        size = 1 + sum(map(words_of, types))
        at = self.name_for("at")
        self.do(f"let {at} = atomicAdd(&block[{PRINTED}], {size}u);")
        with self.nested(f"if ({at} <= {RING_WORDS - size}u) {{"):
            self.do(f"atomicStore(&block[{self.m.ring}u + {at}], {number}u);")
            k = 1
            for t, value in zip(types, values, strict=True):
                words = [f"block[{self.m.ring}u + {at} + {k + w}u]" for w in range(words_of(t))]
                self.write(t, _Place(words, True), value)
                k += len(words)
        with self.nested("else {"):
            self.do(f"atomicAdd(&block[{PRINTED + 1}], 1u);")


def _neutral(op: Atomic) -> str:
    """What changes no number by an update, not even -0.0."""
    t = op.buffer.dtype
    if op.prim is p.add and t.kind == "f":
        return "bitcast<f32>(0x80000000u)"
    return literal(Lit(p.neutral(op.prim, t), t))


def _is_not_neutral(op: Atomic, word: str) -> str:
    """Whether a word is another number than the neutral one."""
    t = op.buffer.dtype
    if t.kind == "f":
        return f"{word} != 0x80000000u" if op.prim is p.add else f"({word} & 0x7fffffffu) <= 0x7f800000u"
    return f"{word} != {int(p.neutral(op.prim, t)) & 0xFFFFFFFF:#x}u"


#: The same on words of either sign.
_WORDS = {p.add: "Add", p.and_: "And", p.or_: "Or", p.xor: "Xor"}
_ORDERED = {p.minimum: "Min", p.maximum: "Max"}
_HANDLERS: dict[type[Op], Callable[..., None]] = {
    Prim: _Task.prim,
    Load: _Task.load,
    Store: _Task.store,
    Atomic: _Task.update,
    Extent: _Task.extent,
    For: _Task.for_,
    While: _Task.while_,
    If: _Task.if_,
    Local: _Task.local,
    Get: _Task.get,
    Set: _Task.set_,
    NewStack: _Task.new_stack,
    Push: _Task.push,
    Pop: _Task.pop,
    Check: _Task.check,
    Print: _Task.print_,
}
