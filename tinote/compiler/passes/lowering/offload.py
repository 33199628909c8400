"""Splits the top of a function into tasks that run one after another: serial pieces and parallel loops.

    %s: f32 = load @s[]                        task serial:
    for parallel %i: i32 in 0i32 .. %n:            %s: f32 = load @s[]
      store @x[%i], %s                    ->       store @t[], %s                        (a temporary)
                                               task parallel %i: i32 in 0i32 .. %n:
                                                   %s.1: f32 = load @t[]
                                                   store @x[%i], %s.1

Tasks share no variables but the function's parameters. A value that a later task, the bounds of a parallel task or
the function's result needs goes through a temporary of rank 0; cheap arithmetic on parameters and literals is
repeated where it is used instead. A nest whose outer loop is short and has literal bounds is interchanged.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

from tinote.errors import CompilerBug
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.access import buffers_may_meet
from tinote.ir.buffers import root_of
from tinote.ir.prune import prune
from tinote.ir.query import free_variables, trip_count, walk
from tinote.ir.rewrite import Rewriter
from tinote.ir.types import Scalar, Tensor
from tinote.source import Span

#: The contents of one task: serial operations, or a parallel loop.
_Piece = list[ir.Op] | ir.For

#: Least number of iterations of an outer parallel loop that is not interchanged. Chosen, not measured.
_MIN_OUTER = 16
#: Cost of arithmetic that each task repeats rather than loads, in additions. Chosen, not measured.
_MAX_REPEATED_COST = 24.0


def offload(fn: ir.Function) -> ir.Function:
    """Split `fn` into tasks; a function that already consists of tasks is returned unchanged."""
    if all(isinstance(op, ir.Task | ir.Load) for op in fn.region.body) and not isinstance(_last(fn), ir.Load):
        return fn
    return fn.with_region(_Offloading(fn).region())


def _last(fn: ir.Function) -> ir.Op | None:
    """The last operation that is not the load of a result; a function with only loads has not been offloaded."""
    tasks = [op for op in fn.region.body if isinstance(op, ir.Task)]
    return tasks[-1] if tasks else fn.region.body[-1] if fn.region.body else None


class _Offloading:
    def __init__(self, fn: ir.Function) -> None:
        self.fn = fn
        self.parameters = set(fn.region.params)
        #: the operations at the top that bind a variable, and the piece each belongs to
        self.made: dict[ir.Var, ir.Op] = {}
        self.temporaries: dict[ir.Var, ir.Buffer] = {}
        self.repeatable: dict[ir.Var, float] = {}
        self.numbers = itertools.count()

    def region(self) -> ir.Region:
        pieces = self._pieces()
        yields = self.fn.region.yields
        # All values that leave their piece are known before any piece is built: they are stored where they are
        # computed.
        home: dict[ir.Var, int] = {}
        for number, piece in enumerate(pieces):
            if isinstance(piece, list):
                for op in piece:
                    for out in op.outs:
                        home[out] = number
                        self.made[out] = op
                        self._note_cost(out, op)
        for number, piece in enumerate(pieces):
            if isinstance(piece, ir.For):
                self._export(a for a in piece.args if type(a) is ir.Var)
                wanted = free_variables(piece.body)
            else:
                wanted = [v for v in free_variables(ir.Region((), tuple(piece))) if home.get(v) != number]
            self._export(v for v in wanted if v not in self.repeatable)
        self._export(y for y in yields if type(y) is ir.Var)

        body: list[ir.Op] = []
        for piece in pieces:
            body += self._parallel(piece) if isinstance(piece, ir.For) else self._serial(piece)
        results = tuple(self._between(y, body, self.fn.loc) for y in yields)
        return ir.Region(self.fn.region.params, tuple(body), results)

    def _pieces(self) -> list[_Piece]:
        pieces: list[_Piece] = []
        for op in self.fn.region.body:
            if isinstance(op, ir.For) and op.parallel:
                pieces.append(_inside_out(op))
            elif pieces and isinstance(pieces[-1], list):
                pieces[-1].append(op)
            else:
                pieces.append([op])
        return _with_stacks_in_one_piece(pieces)

    def _note_cost(self, out: ir.Var, op: ir.Op) -> None:
        """Whether a variable is cheap arithmetic on parameters, literals and extents: repeated rather than stored."""
        if isinstance(op, ir.Extent):
            self.repeatable[out] = 1.0
        elif isinstance(op, ir.Prim) and isinstance(out.type, Scalar) and op.prim is not p.random_bits:
            cost = op.prim.cost
            for a in op.args:
                if type(a) is ir.Var and a not in self.parameters:
                    cost += self.repeatable.get(a, math.inf)
            if cost <= _MAX_REPEATED_COST:
                self.repeatable[out] = cost

    def _export(self, variables: Iterable[ir.Var]) -> None:
        for v in variables:
            if v in self.parameters or v in self.temporaries:
                continue
            if not isinstance(v.type, Scalar | Tensor):
                raise CompilerBug("offload", f"{v!r} is used by several tasks")
            dtype, shape = (v.type, ()) if isinstance(v.type, Scalar) else v.type
            self.temporaries[v] = ir.Buffer(
                v.name or f"t{len(self.temporaries)}", dtype, (), shape, ir.BufferKind.TEMPORARY
            )

    def _name(self) -> str:
        return f"{self.fn.name}.{next(self.numbers)}"

    # building

    def _serial(self, piece: list[ir.Op]) -> list[ir.Op]:
        body = self._with_imports(ir.Region((), tuple(piece)), {v for op in piece for v in op.outs}).body
        out: list[ir.Op] = list(body)
        for op in piece:
            for v in op.outs:
                buffer = self.temporaries.get(v)
                if buffer is not None:
                    _store(out, buffer, v, op.loc)
        region = prune(ir.Region((), tuple(out)), keep_while=True)
        return [ir.Task(self._name(), (), region, parallel=False, loc=piece[0].loc)] if region.body else []

    def _parallel(self, loop: ir.For) -> list[ir.Op]:
        before: list[ir.Op] = []
        bounds = tuple(self._between(a, before, loop.loc) for a in loop.args[:2])
        body = self._with_imports(loop.body, set())
        task = ir.Task(self._name(), bounds, body, parallel=True, loc=loop.loc)
        task.ordered = loop.ordered
        task.vectorize = loop.vectorize
        return [*before, task]

    def _between(self, atom: ir.Atom, body: list[ir.Op], loc: Span) -> ir.Atom:
        """An atom as available between tasks.

        Loaded from its temporary unless it is a literal or parameter.
        """
        if type(atom) is ir.Lit or atom in self.parameters:
            return atom
        assert isinstance(atom, ir.Var)
        if not isinstance(atom.type, Scalar):
            raise CompilerBug("offload", f"{atom!r} is not a scalar but is needed between tasks")
        fresh = ir.Var(atom.type, atom.name)
        body.append(ir.Load(self.temporaries[atom], (), (fresh,), loc))
        return fresh

    def _with_imports(self, region: ir.Region, own: set[ir.Var]) -> ir.Region:
        """`region` with values from other pieces loaded or recomputed at its start."""
        head: list[ir.Op] = []
        env: dict[ir.Var, ir.Atom] = {}
        for v in free_variables(region):
            if v not in own and v not in self.parameters:
                self._import(v, head, env)
        if not env:
            return region
        inner = Rewriter(env).region(ir.Region((), region.body, region.yields))
        return ir.Region(region.params, (*head, *inner.body), inner.yields)

    def _import(self, v: ir.Var, head: list[ir.Op], env: dict[ir.Var, ir.Atom]) -> ir.Atom:
        waiting = [v]
        while waiting:
            one = waiting[-1]
            op = self.made[one]
            args = op.args if one in self.repeatable else ()
            missing = [a for a in args if type(a) is ir.Var and a not in self.parameters and a not in env]
            if missing and one not in env:
                waiting += missing
                continue
            waiting.pop()
            if one in env:
                continue
            fresh = ir.Var(one.type, one.name)
            if one in self.repeatable:
                head.append(op.rebuilt(tuple([env.get(a, a) if type(a) is ir.Var else a for a in args]), (), (fresh,)))
            else:
                _load(head, self.temporaries[one], fresh, op.loc)
            env[one] = fresh
        return env[v]


def _with_stacks_in_one_piece(pieces: list[_Piece]) -> list[_Piece]:
    """The pieces, reordered so that each stack is used only in the piece that creates it, since tasks share no stacks.

    A serial piece that only reads memory that is not written in between moves right before the one that pops its stack.
    Otherwise all pieces in between become serial, too.
    """
    stacks = [{op.out for op in _ops_of(piece) if isinstance(op, ir.NewStack)} for piece in pieces]
    if not any(stacks):
        return pieces
    used = [_used_by(piece) for piece in pieces]
    first = 0
    while first < len(pieces):
        users = [k for k in range(first + 1, len(pieces)) if stacks[first] & used[k]] if stacks[first] else []
        if not users:
            first += 1
            continue
        piece, last = pieces[first], users[-1]
        between = pieces[first + 1 : last]
        if len(users) == 1 and _commutes(_ops_of(piece), between):
            joined: list[_Piece] = [*between, [*_ops_of(piece), *_ops_of(pieces[last])]]
        else:
            ops = [op for one in pieces[first : last + 1] for op in _ops_of(one)]
            joined = [[_in_order(op) if isinstance(op, ir.For) else op for op in ops]]
        here = slice(first, last + 1)
        pieces[here] = joined
        stacks[here] = [{op.out for op in _ops_of(one) if isinstance(op, ir.NewStack)} for one in joined]
        used[here] = [_used_by(one) for one in joined]
    return pieces


def _ops_of(piece: _Piece) -> list[ir.Op]:
    return [piece] if isinstance(piece, ir.For) else piece


def _used_by(piece: _Piece) -> set[ir.Var]:
    return set(free_variables(ir.Region((), tuple(_ops_of(piece)))))


def _commutes(ops: list[ir.Op], others: list[_Piece]) -> bool:
    """Whether `ops` may run after `others` instead of before."""
    reads: set[ir.Buffer] = set()
    for op in walk(ir.Region((), tuple(ops))):
        if isinstance(op, ir.Load):
            reads.add(root_of(op.buffer))
        elif op.writes and not isinstance(op, ir.Push | ir.Pop):
            return False
    made = {out for op in ops for out in op.outs}
    for other in others:
        if made & _used_by(other):
            return False
        for op in walk(ir.Region((), tuple(_ops_of(other)))):
            if isinstance(op, ir.Store | ir.Atomic) and any(
                buffers_may_meet(root_of(op.buffer), read) for read in reads
            ):
                return False
    return True


def _in_order(op: ir.For) -> ir.For:
    """A loop as a serial one."""
    return ir.For(op.lo, op.hi, op.initial, op.body, op.outs, op.loc, reverse=op.reverse, origin=op.origin)


def _store(body: list[ir.Op], buffer: ir.Buffer, value: ir.Var, loc: Span) -> None:
    if isinstance(value.type, Scalar):
        body.append(ir.Store(buffer, (), value, loc))
        return
    for index in ir.component_indices(buffer.element):
        component = ir.Var(buffer.dtype)
        body.append(ir.Prim(p.extract, (value, *index), (component,), loc))
        body.append(ir.Store(buffer, index, component, loc))


def _load(body: list[ir.Op], buffer: ir.Buffer, out: ir.Var, loc: Span) -> None:
    if isinstance(out.type, Scalar):
        body.append(ir.Load(buffer, (), (out,), loc))
        return
    parts: list[ir.Atom] = []
    for index in ir.component_indices(buffer.element):
        component = ir.Var(buffer.dtype)
        body.append(ir.Load(buffer, index, (component,), loc))
        parts.append(component)
    body.append(ir.Prim(p.pack, tuple(parts), (out,), loc))


def _length(op: ir.For) -> float:
    """The number of iterations; infinite where it is not literal."""
    count = trip_count(op.lo, op.hi)
    return math.inf if count is None else count


def _inside_out(outer: ir.For) -> ir.For:
    """A nest of two parallel loops with a short outer one, interchanged, so that there is work for several threads."""
    body = outer.body.body
    if len(body) != 1 or not isinstance(body[0], ir.For) or not body[0].parallel or _length(outer) >= _MIN_OUTER:
        return outer
    inner = body[0]
    if outer.ordered or inner.ordered or outer.index in inner.args or _length(inner) <= _length(outer):
        return outer
    short = ir.For(outer.lo, outer.hi, (), ir.Region((outer.index,), inner.body.body), (), outer.loc, parallel=True)
    return ir.For(inner.lo, inner.hi, (), ir.Region((inner.index,), (short,)), (), inner.loc, parallel=True)
