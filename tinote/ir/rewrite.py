"""The rewriter: a pass as an interpreter of the IR that re-emits it.

A pass subclasses `Rewriter` and overrides `on`, which sees each operation with its operands and regions already
rewritten and says what becomes of it:
`KEEP` (as it stands), `DROP`, or atoms that stand for its outs from here on. New operations are added before it by
`emit`. What did not change stays the same object, up to the function itself, so that `run(fn) is fn` means "nothing to
do".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_

from tinote.ir.nodes import Atom, For, Function, If, Op, Prim, Region, Var, While
from tinote.ir.primitive_record import Primitive
from tinote.ir.types import Type


def same(new: Sequence[object], old: Sequence[object]) -> bool:
    """Whether two sequences hold the very same objects."""
    return new is old or (len(new) == len(old) and all(map(is_, new, old)))


def remade(op: Op, args: tuple[Atom, ...], regions: tuple[Region, ...] = (), outs: tuple[Var, ...] | None = None) -> Op:
    """`op` with these operands, regions and, where they are given, outs; itself when they are the same objects."""
    kept = same(args, op.args) and same(regions, op.regions) and (outs is None or same(outs, op.outs))
    return op if kept else op.rebuilt(args, regions, outs)


def remade_region(
    region: Region,
    body: Sequence[Op],
    yields: tuple[Atom, ...] | None = None,
    params: tuple[Var, ...] | None = None,
) -> Region:
    """`region` with this body and, where they are given, yields and parameters; itself when they are the same
    objects.
    """
    yields = region.yields if yields is None else yields
    params = region.params if params is None else params
    kept = same(body, region.body) and same(yields, region.yields) and same(params, region.params)
    return region if kept else Region(params, tuple(body), yields)


def keeping(op: Op, kept: Sequence[int]) -> Op:
    """A loop or branch with only some of its outs, and of the values that it carries."""
    lead = 1 if isinstance(op, For) else 0
    regions: list[Region] = []
    for region in op.regions:
        params, yields = region.params, region.yields
        if not isinstance(op, If):
            params = (*params[:lead], *[params[lead + k] for k in kept])
        if not (isinstance(op, While) and region is op.condition):
            yields = tuple([yields[k] for k in kept])
        regions.append(Region(params, region.body, yields))
    args = op.args if isinstance(op, If) else (*op.args[: 2 * lead], *[op.args[2 * lead + k] for k in kept])
    return op.rebuilt(args, tuple(regions), tuple([op.outs[k] for k in kept]))


class Decision:
    """`KEEP` or `DROP`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


KEEP = Decision("KEEP")
DROP = Decision("DROP")


class Rewriting:
    """Code under construction: `env` maps variables to the atoms that replace them; `out` is the body."""

    def __init__(self, env: dict[Var, Atom] | None = None) -> None:
        self.env: dict[Var, Atom] = dict(env or {})
        self.out: list[Op] = []

    def get(self, atom: Atom) -> Atom:
        """What stands for `atom` now."""
        env = self.env
        while type(atom) is Var and atom in env:
            atom = env[atom]
        return atom

    def renamed(self, atoms: tuple[Atom, ...]) -> tuple[Atom, ...]:
        """What stands for `atoms` now; the same object when they stand for themselves."""
        env = self.env
        if env:
            for a in atoms:
                if type(a) is Var and a in env:
                    return tuple([self.get(a) for a in atoms])
        return atoms

    def emit(self, op: Op) -> Op:
        """Add an operation."""
        self.out.append(op)
        return op

    def apply(self, prim: Primitive, t: Type, near: Op, *args: Atom, name: str = "") -> Var:
        """Add the application of a primitive with a result of type `t`, on behalf of `near`. Returns the result."""
        out = Var(t, name)
        self.emit(Prim(prim, args, (out,), near.loc, near.origin))
        return out


class Rewriter(Rewriting):
    """Walks a function in order."""

    def enter(self, region: Region) -> None:
        """Called before a region's body is walked."""

    def leave(self, region: Region) -> None:
        """Called after a region's body was walked, before its result is built."""

    def on(self, op: Op) -> Decision | Sequence[Atom]:
        """Decide about an operation; its operands and regions are already rewritten."""
        return KEEP

    def visit(self, op: Op) -> None:
        """Rewrite one operation into `out`."""
        if op.regions:
            self.nest(op)
            return
        if self.env:
            args = self.renamed(op.args)
            if args is not op.args:
                op = op.rebuilt(args)
        decision = self.on(op)
        if decision is KEEP:
            self.out.append(op)
        else:
            self._replace(op, decision)

    def nest(self, op: Op) -> None:
        """Rewrite an operation that has regions. Override only to take one apart before it is walked, or to know what
        is around.
        """
        op = remade(op, self.renamed(op.args), tuple([self.region(r) for r in op.regions]))
        self._replace(op, self.on(op))

    def _replace(self, op: Op, decision: Decision | Sequence[Atom]) -> None:
        if decision is KEEP:
            self.out.append(op)
        elif decision is not DROP:
            assert not isinstance(decision, Decision)
            for out, atom in zip(op.outs, decision, strict=True):
                if atom is not out:
                    self.env[out] = atom

    def region(self, region: Region) -> Region:
        """`region` rewritten; itself when nothing in it changed."""
        saved, self.out = self.out, []
        self.enter(region)
        visit = self.visit
        for op in region.body:
            visit(op)
        yields = self.renamed(region.yields)
        self.leave(region)
        body, self.out = self.out, saved
        return remade_region(region, body, yields)

    def run(self, fn: Function) -> Function:
        """`fn` rewritten; itself when nothing changed."""
        return fn.with_region(self.region(fn.region))


class _Cloner(Rewriter):
    def enter(self, region: Region) -> None:
        for param in region.params:
            self.env[param] = Var(param.type, param.name)

    def visit(self, op: Op) -> None:
        args = tuple([self.get(a) for a in op.args])
        regions = tuple([self.region(r) for r in op.regions])
        outs = tuple([Var(v.type, v.name) for v in op.outs])
        self.out.append(op.rebuilt(args, regions, outs))
        self.env.update(zip(op.outs, outs, strict=True))

    def region(self, region: Region) -> Region:
        saved, self.out = self.out, []
        self.enter(region)
        for op in region.body:
            self.visit(op)
        body, self.out = tuple(self.out), saved
        params = tuple([self.env[q] for q in region.params])
        return Region(params, body, tuple([self.get(y) for y in region.yields]))  # type: ignore[arg-type]


def clone_region(region: Region, env: dict[Var, Atom] | None = None) -> tuple[Region, dict[Var, Atom]]:
    """A copy that binds fresh variables throughout, so that both can be in one function; with the map from old
    variables to new atoms.

    `env` says what free variables become; a parameter that is in `env` stays in the copy's parameter list as a fresh
    variable all the same.
    """
    cloner = _Cloner(env)
    copy = cloner.region(region)
    return copy, cloner.env


class Replacing(Rewriter):
    """Puts other operations in the place of some. Nothing is renamed."""

    def __init__(self, rewrites: Mapping[Op, Sequence[Op]]) -> None:
        super().__init__()
        self.rewrites = rewrites

    def visit(self, op: Op) -> None:
        new = self.rewrites.get(op)
        if new is None:
            super().visit(op)
        else:
            self.out += new


def with_body(fn: Function, body: Sequence[Op]) -> Function:
    """`fn` with other operations at its top; itself when they are the same objects."""
    return fn.with_region(remade_region(fn.region, body))
