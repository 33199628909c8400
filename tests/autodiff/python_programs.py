"""Programs of Python around kernels, as trees: a function of a number `a` and an array `q` over the fields of
`LIBRARY`.

One that fails can be made smaller (`smaller`), and shows itself as Python that runs (`source`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tests.autodiff.python_library import FIELDS, LIBRARY, SCRATCH


@dataclass(frozen=True)
class Expr:
    """An expression of numbers: `form` with its `parts` put in. `lossy`: it takes a plain number out of its parts."""

    form: str
    parts: tuple[Expr, ...] = ()
    lossy: bool = False

    def __str__(self) -> str:
        return self.form.format(*self.parts)


@dataclass(frozen=True)
class Stmt:
    """A statement, or one with a block: `form` with the `parts` put in, the `body` indented below it, and `after` that.
    `lossy`: it makes constants of active numbers; `look`: it looks at values and does nothing else.
    """

    form: str
    parts: tuple[Expr, ...] = ()
    body: tuple[Stmt, ...] | None = None
    after: Stmt | None = None
    lossy: bool = False
    look: bool = False

    def lines(self, indent: str = "    ") -> list[str]:
        found = [indent + line for line in self.form.format(*self.parts).split("\n")]
        if self.body is not None:
            found += [line for one in self.body for line in one.lines(indent + "    ")] or [f"{indent}    pass"]
        return found + (self.after.lines(indent) if self.after else [])


@dataclass(frozen=True)
class Program:
    """`before` runs first, under a tape of its own that has ended when the program begins; it leaves numbers in the
    list `held`. `result`: what the program returns. Every field and array is used before anything may replace it: what
    Python writes to a field that no launch has used yet is what the field begins with.
    """

    seed: int
    before: tuple[Stmt, ...]
    body: tuple[Stmt, ...]
    result: Expr

    @property
    def text(self) -> str:
        before = [line for one in self.before for line in one.lines()]
        head = ["def before(held, log):", *(before or ["    pass"]), "", "", "def program(a, q, held, log):"]
        body = [line for one in self.body for line in one.lines()]
        return "\n".join([*head, "    begin(q)", *body, "    finish()", f"    return {self.result}", ""])

    @property
    def lossy(self) -> bool:
        """Whether plain numbers are taken out of active ones and come back: then a warning or an error may say so."""
        return any(one.lossy for one in walk(self))

    @property
    def may_warn(self) -> bool:
        """Whether plain numbers are taken out, or written as text that may be read, if only to look at them."""
        looks = [one.form for one in walk(self) if isinstance(one, Stmt) and one.look]
        return self.lossy or any(word in form for form in looks for word in ("float(", "str(", "repr(", "(f'"))

    def without_looks(self) -> Program:
        return replace(self, body=_without_looks(self.body))


def _only_looks(one: Stmt) -> bool:
    """Whether a program without this statement does the same: what it looks at may be what a kernel returns that writes
    to fields.
    """
    return one.look and not any(call in str(part) for part in one.parts for call in ("body.step(", "drift(", "take("))


def _without_looks(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    return tuple(
        [
            replace(one, body=None if one.body is None else _without_looks(one.body))
            for one in body
            if not _only_looks(one)
        ]
    )


def walk(program: Program) -> Iterator[Stmt | Expr]:
    """All statements and expressions of a program."""

    def expression(one: Expr) -> Iterator[Expr]:
        yield one
        for part in one.parts:
            yield from expression(part)

    def block(body: tuple[Stmt, ...]) -> Iterator[Stmt | Expr]:
        for one in body:
            yield one
            for part in one.parts:
                yield from expression(part)
            yield from block((*(one.body or ()), *([one.after] if one.after else [])))

    yield from block((*program.before, *program.body))
    yield from expression(program.result)


# ---- making smaller

ONE = Expr("0.5")


def smaller(program: Program) -> Iterator[Program]:
    """Programs with something less, those with much less first."""
    if program.before:
        yield replace(program, before=())
        for body in _blocks(program.before):
            yield replace(program, before=body)
    for body in _blocks(program.body):
        yield replace(program, body=body)
    for result in _expressions(program.result):
        yield replace(program, result=result)


def _blocks(body: tuple[Stmt, ...]) -> Iterator[tuple[Stmt, ...]]:
    size = len(body)
    while size:
        for start in range(0, len(body), size):
            yield body[:start] + body[start + size :]
        size //= 2
    for k, one in enumerate(body):
        for made in _statements(one):
            yield body[:k] + made + body[k + 1 :]


def _statements(one: Stmt) -> Iterator[tuple[Stmt, ...]]:
    if one.body is not None:
        yield one.body
        for inner in _blocks(one.body):
            yield (replace(one, body=inner),)
    if one.after is not None:
        for (made,) in _statements(one.after):
            yield (replace(one, after=made),)
    for k, part in enumerate(one.parts):
        for made in _expressions(part):
            yield (replace(one, parts=(*one.parts[:k], made, *one.parts[k + 1 :])),)


def _expressions(one: Expr) -> Iterator[Expr]:
    if one.parts or re.fullmatch(r"[\w.]+", one.form) is None:
        yield ONE
    yield from one.parts
    for k, part in enumerate(one.parts):
        if f"{{{k}}}" in one.form:
            for made in _expressions(part):
                yield replace(one, parts=(*one.parts[:k], made, *one.parts[k + 1 :]))


# ---- showing


def source(program: Program, start: dict[str, object], driver: str) -> str:
    """The program as Python that runs by itself: the kernels that it uses, the values it starts from, and `driver`."""
    text = program.text
    head, *parts = LIBRARY.split("\n\n\n")
    used: list[str] = []
    for part in reversed(parts):  # what a part uses stands before it
        name = re.search(
            r"^(?:def |class )?(\w+)", part[part.find("\n") + 1 :] if part[0] == "@" else part, re.MULTILINE
        )
        assert name is not None
        known = name[1].replace("Body", "body")
        if re.search(rf"\b{known}\b", "\n".join([text, *used])):
            used.insert(0, part)
    given = ["held, log = [], []", *[f"{name}.from_numpy(np.array({value}))" for name, value in SCRATCH.items()]]
    for name, value in start.items():
        if name in FIELDS:
            given.append(f"{name}.from_numpy(np.array({value!r}))")
        else:
            given.append(f"{name} = {value!r}" if name == "a" else f"{name} = np.array({value!r})")
    head = head.replace("both = ", "ti.init(default_fp=ti.f64)\nboth = ")
    if program.before:
        given += ["with ti.ad.Tape(loss):", "    before(held, log)"]
    return "\n\n\n".join([head, *used, text, "\n".join([*given, driver])])
