"""Lowers recursive functions to a loop over a stack of activations, in the existing IR.

A recursive function cannot be inlined, and the IR has no calls. So mutually recursive functions are cut into blocks at
their recursive calls, and one `while` runs these blocks, one per iteration.

    def f(n):                        n, state, result, depth = cells;  push stack, END;  state = 0
        if n == 0:                   while state != END:
            return 1                     if state == 0:                                        (f begins)
        return n * f(n - 1)                  if n == 0: result = 1; state = pop stack; depth -= 1
                                             else:      check depth < MAX_CALL_DEPTH; depth += 1
                              ->                        push stack, n; push stack, 1; n = n - 1; state = 0
                                         else:                                                 (f after its call)
                                             n = pop stack
                                             result = n * result; state = pop stack; depth -= 1

A call pushes the values that its function needs afterwards, and the number of the block that continues; a `return` pops
that number. Arguments, results and values that live across blocks are in cells (registers of the running activation);
there is one stack for each pushed type.

There is no call operation because passes, differentiation, code generators and the interpreter support `while`, cells
and stacks already, so that nothing below the front end needs to know of recursion. The stacks are in the arena:
recursion of any depth leaves the machine's stacks of all threads alone, and an ordinary check limits the depth. Stacks
have an adjoint (a stack: `autodiff/reverse.py`), so recursion is differentiable. The cost is a jump by table for each
call and return, in place of the machine's own.

These operations exist only until `lower_recursion` has run:

    op  = RoutineCall  v… = routine a…
        | _Goto        end of a block, after which another one runs
        | _Suspend     end of a block that calls: routine a…, after whose return another block runs
        | _Return      end of a block and of its function
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from tinote.errors import KernelSyntaxError
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.build import Builder
from tinote.ir.query import walk
from tinote.ir.rewrite import clone_region
from tinote.ir.types import Ref, Scalar, Stack, Tensor, i32, u1
from tinote.source import NOWHERE, Span

#: Greatest depth of calls: an activation takes some hundred bytes, so all take some megabytes at most.
MAX_CALL_DEPTH = 10_000
#: The number of the block after the last.
_END_BLOCK = -1
#: Statements after a branch that are duplicated into its sides, at most. Chosen, not measured.
_MAX_REPEATED = 4


class Routine:
    """A function that calls itself, perhaps through others. `parameters`: a variable for each number, vector or matrix
    that it takes by value; `results`: the type of each that it returns. `region` is its body, with these as parameters
    and yields, once it is lowered.
    """

    __slots__ = ("entry", "name", "parameters", "region", "results", "returned")

    def __init__(self, name: str, parameters: Sequence[ir.Var], results: Sequence[Scalar | Tensor]) -> None:
        self.name = name
        self.parameters = tuple(parameters)
        self.results = tuple(results)
        self.region: ir.Region | None = None
        #: the cells that hold the arguments at its begin and the results at its end
        self.entry = tuple([_register(v) for v in parameters])
        self.returned = tuple([ir.Var(Ref(t), "result") for t in results])


class RoutineCall(ir.Op):
    """A call of a routine, until `lower_recursion` has replaced it: outs = routine args."""

    __slots__ = ("routine",)
    reads = True
    writes = True

    def __init__(self, routine: Routine, args: tuple[ir.Atom, ...], loc: Span) -> None:
        super().__init__(args, tuple([ir.Var(t) for t in routine.results]), (), loc)
        self.routine = routine


class _Goto(ir.Op):
    """The end of a block, after which `block` runs."""

    __slots__ = ("block",)

    def __init__(self, block: _Block, loc: Span) -> None:
        super().__init__((), (), (), loc)
        self.block = block


class _Suspend(ir.Op):
    """The end of a block that calls a routine; `block` runs after its return."""

    __slots__ = ("block", "routine")
    routine: Routine

    def __init__(self, call: RoutineCall, block: _Block) -> None:
        super().__init__(call.args, (), (), call.loc)
        self.routine = call.routine
        self.block = block


class _Return(ir.Op):
    """The end of a block and of its function."""

    __slots__ = ()


class _Block:
    """A block without recursive calls; its branches may end in different ways. `resumes`: at its start it pops the
    values pushed by the call before it.
    """

    __slots__ = ("body", "live", "number", "resumes", "routine")

    def __init__(self, routine: Routine, number: int, resumes: bool = False) -> None:
        self.routine = routine
        self.number = number
        self.resumes = resumes
        self.body: list[ir.Op] = []
        #: the registers that are live in its function from here on
        self.live: frozenset[ir.Var] = frozenset()


def lower_recursion(b: Builder, root: Routine, args: Sequence[ir.Atom]) -> list[ir.Var]:
    """Emit the call of a routine from outside the recursion; returns its results."""
    program = _Program(root)
    return program.emitted(b, args)


End = Callable[[list[ir.Op]], None]  # emits what follows a list of operations


class _Program:
    """All routines that `root` reaches, cut into blocks."""

    def __init__(self, root: Routine) -> None:
        self.root = root
        self.blocks: list[_Block] = []
        self.begins: dict[Routine, _Block] = {}
        #: the register of each value that is needed in another block than the one that computes it
        self.homes: dict[ir.Var, ir.Var] = {}
        #: the cells of the functions that more than one block uses
        self.registers: dict[ir.Var, Routine] = {}
        pending = [root]
        while pending:
            routine = pending.pop()
            if routine in self.begins:
                continue
            self.cut(routine)
            assert routine.region is not None
            pending += [op.routine for op in walk(routine.region) if isinstance(op, RoutineCall)]
        _Placement(self).run()
        self.find_live()

    # cutting

    def block(self, routine: Routine, *, resumes: bool = False) -> _Block:
        self.blocks.append(_Block(routine, len(self.blocks), resumes))
        return self.blocks[-1]

    def home(self, routine: Routine, cell: ir.Var, *values: ir.Var) -> None:
        """Let a cell be the register of values that are written to it wherever they are computed."""
        self.registers[cell] = routine
        self.homes.update(dict.fromkeys(values, cell))

    def cut(self, routine: Routine) -> None:
        region = routine.region
        assert region is not None
        begin = self.begins[routine] = self.block(routine)
        for v, cell in zip(routine.parameters, routine.entry, strict=True):
            self.home(routine, cell, v)

        def leave(out: list[ir.Op]) -> None:
            loc = out[-1].loc if out else NOWHERE
            out += [ir.Set((cell, y), (), (), loc) for cell, y in zip(routine.returned, region.yields, strict=True)]
            out.append(_Return(()))

        self.sequence(routine, region.body, begin.body, leave)

    def sequence(self, routine: Routine, ops: Sequence[ir.Op], out: list[ir.Op], end: End) -> None:
        """Add operations to a block; `end` adds the terminator to it or to the last of its successors."""
        for position, op in enumerate(ops):
            if isinstance(op, RoutineCall) or any(
                isinstance(inner, RoutineCall) for r in op.regions for inner in walk(r)
            ):
                rest = ops[position + 1 :]
                self.split(routine, op, out, lambda out, rest=rest: self.sequence(routine, rest, out, end))
                return
            out.append(op)
        end(out)

    def split(self, routine: Routine, op: ir.Op, out: list[ir.Op], end: End) -> None:
        if isinstance(op, RoutineCall):
            after = self.block(routine, resumes=True)
            after.body += [
                ir.Get((cell,), (v,), (), op.loc) for cell, v in zip(op.routine.returned, op.outs, strict=True)
            ]
            out.append(_Suspend(op, after))
            end(after.body)
        elif isinstance(op, ir.If):
            self.branch(routine, op, out, end)
        elif isinstance(op, ir.For) and not op.initial:
            self.counted_loop(routine, op, out, end)
        elif isinstance(op, ir.While) and not op.initial:
            self.loop(routine, op, out, end)
        else:
            raise KernelSyntaxError(
                f"`{routine.name}` cannot call itself from within a custom gradient", op.loc, "use a loop there"
            )

    def branch(self, routine: Routine, op: ir.If, out: list[ir.Op], end: End) -> None:
        cells = [_register(v) for v in op.outs]
        for v, cell in zip(op.outs, cells, strict=True):
            self.home(routine, cell, v)
        made = len(self.blocks)
        after: list[ir.Op] = []
        end(after)
        if not op.outs and made == len(self.blocks) and len(after) <= _MAX_REPEATED:

            def join(out: list[ir.Op], region: ir.Region) -> None:
                copy, _ = clone_region(ir.Region((), tuple(after)))
                out += copy.body
        else:
            block = self.block(routine)
            block.body = after

            def join(out: list[ir.Op], region: ir.Region) -> None:
                out += [ir.Set((cell, y), (), (), op.loc) for cell, y in zip(cells, region.yields, strict=True)]
                out.append(_Goto(block, op.loc))

        def side(region: ir.Region) -> ir.Region:
            inner: list[ir.Op] = []
            self.sequence(routine, region.body, inner, lambda out: join(out, region))
            return ir.Region((), tuple(inner))

        out.append(ir.If(op.condition, side(op.then), side(op.orelse), (), op.loc))

    def counted_loop(self, routine: Routine, op: ir.For, out: list[ir.Op], end: End) -> None:
        t = op.index.type
        assert isinstance(t, Scalar)
        cell = _register(op.index)
        self.home(routine, cell, op.index)
        head = self.block(routine)
        out += [ir.Set((cell, op.lo), (), (), op.loc), _Goto(head, op.loc)]
        inside: list[ir.Op] = []
        after: list[ir.Op] = []

        def again(out: list[ir.Op]) -> None:
            following = ir.Var(t)
            out += [
                ir.Prim(p.add, (op.index, ir.Lit(1, t)), (following,), op.loc),
                ir.Set((cell, following), (), (), op.loc),
                _Goto(head, op.loc),
            ]

        more = ir.Var(u1)
        self.sequence(routine, op.body.body, inside, again)
        end(after)
        head.body += [
            ir.Prim(p.lt, (op.index, op.hi), (more,), op.loc),
            ir.If(more, ir.Region((), tuple(inside)), ir.Region((), tuple(after)), (), op.loc),
        ]

    def loop(self, routine: Routine, op: ir.While, out: list[ir.Op], end: End) -> None:
        head = self.block(routine)
        out.append(_Goto(head, op.loc))

        def decide(out: list[ir.Op]) -> None:
            inside: list[ir.Op] = []
            after: list[ir.Op] = []
            self.sequence(routine, op.body.body, inside, lambda out: out.append(_Goto(head, op.loc)))
            end(after)
            (more,) = op.condition.yields
            out.append(ir.If(more, ir.Region((), tuple(inside)), ir.Region((), tuple(after)), (), op.loc))

        self.sequence(routine, op.condition.body, head.body, decide)

    # liveness: what a call has to save

    def find_live(self) -> None:
        """The registers live at the start of each block: a fixed point, because blocks form loops."""
        changed = True
        while changed:
            changed = False
            for block in reversed(self.blocks):
                live = self.live_before(block.body, frozenset(), block.routine)
                if live != block.live:
                    block.live, changed = live, True

    def live_before(self, ops: Sequence[ir.Op], live: frozenset[ir.Var], routine: Routine) -> frozenset[ir.Var]:
        for op in reversed(ops):
            if isinstance(op, _Goto | _Suspend):
                live = op.block.live
            elif isinstance(op, _Return):
                live = frozenset()
            elif isinstance(op, ir.If):
                live = self.live_before(op.then.body, live, routine) | self.live_before(op.orelse.body, live, routine)
            elif op.regions:
                live |= {cell for r in op.regions for inner in walk(r) for cell in self.read(inner, routine)}
            else:
                if isinstance(op, ir.Set) and len(op.args) == 2:
                    live -= {op.args[0]}
                live |= self.read(op, routine)
        return live

    def read(self, op: ir.Op, routine: Routine) -> frozenset[ir.Var]:
        """The register that an operation reads; a write to one component reads the others."""
        if isinstance(op, ir.Get) or (isinstance(op, ir.Set) and len(op.args) > 2):
            cell = op.args[0]
            if isinstance(cell, ir.Var) and self.registers.get(cell) is routine:
                return frozenset([cell])
        return frozenset()

    # the loop

    def emitted(self, b: Builder, args: Sequence[ir.Atom]) -> list[ir.Var]:
        written = {cell for routine in self.begins for cell in (*routine.entry, *routine.returned)}
        for cell in dict.fromkeys([*self.registers, *written]):
            b.emit(ir.Local((), (cell,), (), b.loc))
        saved = {cell: _content(cell) for block in self.blocks if block.resumes for cell in block.live}
        stacks = {t: ir.Var(Stack(t), "activations") for t in dict.fromkeys([i32, *saved.values()])}
        for stack in stacks.values():
            b.emit(ir.NewStack((), (stack,), (), b.loc))
        for cell, argument in zip(self.root.entry, args, strict=True):
            b.set(cell, argument)
        state = b.local(i32, ir.Lit(self.begins[self.root].number, i32), "state")
        depth = b.local(i32, ir.Lit(0, i32), "depth")
        b.emit(ir.Push((stacks[i32], ir.Lit(_END_BLOCK, i32)), (), (), b.loc))
        with b.region() as condition:
            more = b.prim(p.ne, b.get(state), ir.Lit(_END_BLOCK, i32))
        with b.region() as inside:
            _Dispatch(self, b, stacks, state, depth).among(self.blocks, b.get(state))
        b.emit(ir.While((), condition.close(more), inside.close(), (), b.loc))
        return [b.get(cell) for cell in self.root.returned]


class _Dispatch:
    """Emits the blocks and the dispatch among them."""

    def __init__(
        self, program: _Program, b: Builder, stacks: dict[Scalar | Tensor, ir.Var], state: ir.Var, depth: ir.Var
    ) -> None:
        self.program = program
        self.b = b
        self.stacks = stacks
        self.state = state
        self.depth = depth

    def among(self, blocks: Sequence[_Block], number: ir.Var) -> None:
        """The block of this number."""
        b = self.b
        if len(blocks) == 1:
            self.block(blocks[0])
            return
        middle = len(blocks) // 2
        earlier = b.prim(p.lt, number, ir.Lit(blocks[middle].number, i32))
        with b.region() as then:
            self.among(blocks[:middle], number)
        with b.region() as orelse:
            self.among(blocks[middle:], number)
        b.if_(earlier, then.close(), orelse.close())

    def block(self, block: _Block) -> None:
        if block.resumes:
            with self.located(block.body[0].loc if block.body else self.b.loc):
                for cell in reversed(self.saved(block)):
                    self.b.set(cell, self.popped(_content(cell)))
        self.ops(block.body)

    def saved(self, block: _Block) -> list[ir.Var]:
        """The values pushed by the call before a block, in order."""
        return [cell for cell in self.program.registers if cell in block.live]

    def popped(self, t: Scalar | Tensor) -> ir.Var:
        out = ir.Var(t)
        self.b.emit(ir.Pop((self.stacks[t],), (out,), (), self.b.loc))
        return out

    def ops(self, ops: Iterable[ir.Op]) -> None:
        b = self.b
        for op in ops:
            if isinstance(op, _Goto):
                self.go_to(op.block.number)
            elif isinstance(op, _Suspend):
                with self.located(op.loc):
                    self.suspended(op)
            elif isinstance(op, _Return):
                b.set(self.depth, b.prim(p.sub, b.get(self.depth), ir.Lit(1, i32)))
                b.set(self.state, self.popped(i32))
            elif isinstance(op, ir.If) and _ends(op):
                regions: list[ir.Region] = []
                for region in op.regions:
                    with b.region() as opened:
                        self.ops(region.body)
                    regions.append(opened.close())
                b.emit(op.rebuilt(op.args, tuple(regions)))
            else:
                b.emit(op)

    def go_to(self, number: int) -> None:
        self.b.set(self.state, ir.Lit(number, i32))

    def suspended(self, op: _Suspend) -> None:
        b = self.b
        depth = b.get(self.depth)
        fine = b.prim(p.lt, depth, ir.Lit(MAX_CALL_DEPTH, i32))
        text = f"`{op.routine.name}` is called from itself more than {MAX_CALL_DEPTH:,} times deep"
        b.emit(ir.Check(ir.FaultKind.RECURSION, (fine,), text, 0, op.loc))
        for cell in self.saved(op.block):
            b.emit(ir.Push((self.stacks[_content(cell)], b.get(cell)), (), (), b.loc))
        b.emit(ir.Push((self.stacks[i32], ir.Lit(op.block.number, i32)), (), (), b.loc))
        b.set(self.depth, b.prim(p.add, depth, ir.Lit(1, i32)))
        for cell, argument in zip(op.routine.entry, op.args, strict=True):
            b.set(cell, argument)
        self.go_to(self.program.begins[op.routine].number)

    @contextmanager
    def located(self, loc: Span) -> Iterator[None]:
        saved, self.b.loc = self.b.loc, loc
        try:
            yield
        finally:
            self.b.loc = saved


class _Placement:
    """Gives a register to each value and cell that several blocks use."""

    def __init__(self, program: _Program) -> None:
        self.program = program
        #: the block that computes each value or declares each cell, and its operation
        self.owner: dict[ir.Var, _Block] = {}
        #: the variables that each block uses
        self.used: dict[_Block, dict[ir.Var, ir.Op]] = {block: {} for block in program.blocks}

    def run(self) -> None:
        blocks = self.program.blocks
        for block in blocks:
            self.look(block.body, block)
        for block in blocks:
            for v, op in self.used[block].items():
                owner = self.owner.get(v)
                known = self.program.homes.get(v) if owner is None else None
                routine = owner.routine if owner is not None else self.program.registers.get(known)  # type: ignore[arg-type]
                if routine is not None and routine is not block.routine:
                    raise KernelSyntaxError(
                        f"`{block.routine.name}` and `{routine.name}` call each other, and one of them uses a variable "
                        "of the other's",
                        op.loc,
                        "pass its value as an argument",
                    )
                if owner is not None and owner is not block:
                    if isinstance(v.type, Ref):
                        self.program.registers[v] = block.routine
                    elif v not in self.program.homes:
                        self.program.home(block.routine, ir.Var(Ref(v.type), v.name), v)  # type: ignore[arg-type]
        for block in blocks:
            self.place(block)

    def look(self, ops: Iterable[ir.Op], block: _Block) -> None:
        for op in ops:
            for a in op.args:
                if isinstance(a, ir.Var):
                    self.used[block].setdefault(a, op)
            for v in op.outs:
                self.owner[v] = block
            for region in op.regions:
                self.owner.update(dict.fromkeys(region.params, block))
                self.look(region.body, block)
                for y in region.yields:
                    if isinstance(y, ir.Var):
                        self.used[block].setdefault(y, op)

    def place(self, block: _Block) -> None:
        """Make a block read its registers at the start, and write those of its results."""
        homes = self.program.homes
        start: list[ir.Op] = []
        env: dict[ir.Var, ir.Atom] = {}
        for v, op in self.used[block].items():
            if v in homes and self.owner.get(v) is not block:
                env[v] = read = ir.Var(v.type, v.name)
                start.append(ir.Get((homes[v],), (read,), (), op.loc))
        block.body = [*start, *self.placed(block.body, env)]

    def placed(self, ops: Sequence[ir.Op], env: dict[ir.Var, ir.Atom]) -> list[ir.Op]:
        registers, homes = self.program.registers, self.program.homes
        found: list[ir.Op] = []
        for op in ops:
            if isinstance(op, ir.Local) and op.out in registers:
                found += _started(op, env)
                continue
            regions = tuple(
                [
                    ir.Region(r.params, tuple(self.placed(r.body, env)), tuple([_get(env, y) for y in r.yields]))
                    for r in op.regions
                ]
            )
            found.append(op.rebuilt(tuple([_get(env, a) for a in op.args]), regions))
            found += [ir.Set((homes[v], v), (), (), op.loc) for v in op.outs if v in homes]
        return found


def _get(env: dict[ir.Var, ir.Atom], atom: ir.Atom) -> ir.Atom:
    return env.get(atom, atom) if isinstance(atom, ir.Var) else atom


def _started(op: ir.Local, env: dict[ir.Var, ir.Atom]) -> list[ir.Op]:
    """The declaration of a cell that is a register, as an assignment of its initial value."""
    if op.args:
        return [ir.Set((op.out, _get(env, op.args[0])), (), (), op.loc)]
    t = _content(op.out)
    if isinstance(t, Scalar):
        return [ir.Set((op.out, ir.Lit(0, t)), (), (), op.loc)]
    zeros = ir.Var(t)
    return [
        ir.Prim(p.pack, (ir.Lit(0, t.dtype),) * t.count, (zeros,), op.loc),
        ir.Set((op.out, zeros), (), (), op.loc),
    ]


def _ends(op: ir.If) -> bool:
    """Whether the two sides of a branch end their block."""
    last = op.then.body[-1] if op.then.body else None
    return isinstance(last, _Goto | _Suspend | _Return) or (isinstance(last, ir.If) and _ends(last))


def _register(v: ir.Var) -> ir.Var:
    assert isinstance(v.type, Scalar | Tensor)
    return ir.Var(Ref(v.type), v.name)


def _content(cell: ir.Var) -> Scalar | Tensor:
    assert isinstance(cell.type, Ref)
    return cell.type.content
