"""LLVM IR as text: module-level metadata, and the lines of one function under construction."""

from __future__ import annotations

from tinote.compiler.codegen.llvm.ranges import range_of
from tinote.compiler.codegen.llvm.widen import OWN_CALL, OWN_NAME, vector_name, widened
from tinote.ir.float_ranges import FloatRange, float_range
from tinote.ir.magnitudes import Magnitudes
from tinote.ir.nodes import Atom, Prim, Var


class Metadata:
    """Numbered metadata nodes of a module.

    Equal texts share a node unless they are `distinct`. Numbers begin at `first`.
    """

    __slots__ = ("_first", "_known", "_nodes")

    def __init__(self, first: int = 0) -> None:
        self._first = first
        self._nodes: list[str] = []
        self._known: dict[str, int] = {}

    def add(self, text: str) -> int:
        found = self._known.get(text)
        if found is None:
            found = self._known[text] = self._first + len(self._nodes)
            self._nodes.append(text)
        return found

    def distinct(self, text: str) -> int:
        """A node of its own; `{self}` in `text` stands for its number."""
        number = self._first + len(self._nodes)
        self._nodes.append(f"distinct {text.replace('{self}', f'!{number}')}")
        return number

    def lines(self) -> list[str]:
        return [f"!{k} = {text}" for k, text in enumerate(self._nodes, self._first)]


#: Bytes that the arrays of one function may take of the machine's stack: a thread's stack may be small. Chosen, not
#: measured.
_MAX_STACK_BYTES = 64 << 10


class FunctionText:
    """The instructions of a function: a head (allocas, pointers, arguments; runs first), a body, and cold blocks
    that stand at its end.

    Each line of the body comes with the number of its debug location (0: none), so that the text is available with and
    without them.
    """

    def __init__(self, flags: str = "", helpers: dict[str, str] | None = None, *, fused: bool = True) -> None:
        #: fast-math flags of floating point instructions, with a leading blank
        self.flags = flags
        #: whether the target multiplies and adds with one rounding
        self.fused = fused
        #: whether it has instructions for extrema that ignore NaN
        self.numeric_extrema = True
        #: helper functions that the module needs, name to text
        self.helpers: dict[str, str] = {} if helpers is None else helpers
        #: number of lanes of the code being emitted: 0 outside primitives on lanes
        self.lanes = 0
        #: known ranges of integer variables
        self.ranges: dict[Var, tuple[int, int]] = {}
        #: the applications of primitives so far, and the magnitudes of their results
        self.definitions: dict[Var, Prim] = {}
        self.magnitudes = Magnitudes(self.definitions)
        #: square roots, by name: the operand, and whether it is certainly positive and normal (or NaN)
        self.roots: dict[str, tuple[str, bool]] = {}
        #: whether the integer operation that is being emitted cannot wrap
        self.no_wrap = False
        #: whether the addition being emitted is part of a loop-carried sum
        self.summing = False
        self.head: list[str] = []
        self.lines: list[str] = []
        self.marks: list[int] = []
        self.cold: list[str] = []
        self.cold_marks: list[int] = []
        self.mark = 0
        #: the number of the function's debug information
        self.scope = 0
        self.block = "entry"
        self._values = 0
        self._labels = 0
        self._stack_left = _MAX_STACK_BYTES

    @property
    def sum_flags(self) -> str:
        """The flags of an addition that may be reordered."""
        return " reassoc nsz contract" if self.flags else ""

    @property
    def estimate_flags(self) -> str:
        """The flags of a root and of its reciprocal that may be estimated together."""
        return f"{self.flags} arcp" if self.flags else ""

    def float_range(self, atom: Atom) -> FloatRange:
        """The range of a float."""
        return float_range(atom, self.definitions, lambda a: range_of(self.ranges, a))

    def name(self) -> str:
        """A fresh value name."""
        self._values += 1
        return f"%v{self._values}"

    def label(self) -> str:
        """A fresh label."""
        self._labels += 1
        return f"b{self._labels}"

    def do(self, text: str) -> None:
        """An instruction without a value."""
        self.lines.append(text)
        self.marks.append(self.mark)

    def value(self, text: str) -> str:
        """An instruction with a value; returns its name."""
        if self.lanes:
            own = OWN_CALL.match(text)
            if own and not self._on_vectors(own["name"]):
                return self._in_parts(own["type"], own["name"], own["arguments"])
            text = widened(text, self.lanes)
        self._values += 1
        name = f"%v{self._values}"
        self.lines.append(f"{name} = {text}")
        self.marks.append(self.mark)
        return name

    def _on_vectors(self, name: str) -> bool:
        """Whether a helper function has a vector form, which is derived from its text if that does not branch."""
        wide = vector_name(name, self.lanes)
        if wide == name:
            return False
        if wide not in self.helpers:
            text = self.helpers[name]
            called = [one for one in OWN_NAME.findall(text) if one != name]
            if "br " in text or not all(self._on_vectors(one) for one in called):
                return False
            self.helpers[wide] = widened(text, self.lanes)
        return True

    def _in_parts(self, ty: str, name: str, arguments: str) -> str:
        """A call of a function without a form for this number of lanes: two calls for half of them, or one for each
        lane.
        """
        lanes, half = self.lanes, self.lanes // 2
        self.lanes = 0
        ends = [", ".join([f"i32 {k}" for k in range(start, start + half)]) for start in (0, half)]
        parts: list[str] = []
        for k in range(2):
            given: list[str] = []
            for argument in arguments.split(", "):
                t, _, operand = argument.partition(" ")
                if operand.startswith("%"):
                    vector = f"<{lanes} x {t}>"
                    operand = (
                        self.value(f"shufflevector {vector} {operand}, {vector} poison, <{half} x i32> <{ends[k]}>")
                        if half > 1
                        else self.value(f"extractelement {vector} {operand}, i64 {k}")
                    )
                given.append(f"{t} {operand}")
            self.lanes = half if half > 1 else 0
            parts.append(self.value(f"call {ty} {name}({', '.join(given)})"))
            self.lanes = 0
        if half > 1:
            every = ", ".join([f"i32 {k}" for k in range(lanes)])
            joined = ", ".join([f"<{half} x {ty}> {part}" for part in parts])
            result = self.value(f"shufflevector {joined}, <{lanes} x i32> <{every}>")
        else:
            first = self.value(f"insertelement <2 x {ty}> poison, {ty} {parts[0]}, i64 0")
            result = self.value(f"insertelement <2 x {ty}> {first}, {ty} {parts[1]}, i64 1")
        self.lanes = lanes
        return result

    def first(self, text: str) -> str:
        """An instruction with a value that runs once at the start of the function."""
        self._values += 1
        name = f"%v{self._values}"
        self.head.append(f"{name} = {text}")
        return name

    def fits_stack(self, size: int) -> bool:
        """Whether an array of `size` bytes still fits the function's share of the machine's stack; takes it if so."""
        if size > self._stack_left:
            return False
        self._stack_left -= size
        return True

    def hole(self) -> int:
        """A placeholder for an instruction that is not known yet; filled by `fill`."""
        self.lines.append("")
        self.marks.append(self.mark)
        return len(self.lines) - 1

    def fill(self, at: int, text: str) -> None:
        self.lines[at] = text

    def begin(self, label: str) -> None:
        """Start a block."""
        self.lines.append(f"{label}:")
        self.marks.append(0)
        self.block = label

    def cold_block(self, label: str, *lines: str) -> None:
        """A rarely executed block; it must end with a terminator."""
        self.cold.append(f"{label}:")
        self.cold_marks.append(0)
        for line in lines:
            self.cold.append(line)
            self.cold_marks.append(self.mark)

    def assemble(self, header: str, with_debug: bool) -> list[str]:
        """The function's lines. `header` is the `define` up to the brace."""
        lines = [f"{header} !dbg !{self.scope} {{" if with_debug else header + " {", "entry:"]
        lines += ["  " + line for line in self.head]
        for body, marks in ((self.lines, self.marks), (self.cold, self.cold_marks)):
            if with_debug:
                lines += [
                    f"  {line}, !dbg !{mark}" if mark else line if line[-1] == ":" else "  " + line
                    for line, mark in zip(body, marks, strict=True)
                ]
            else:
                lines += [line if line[-1] == ":" else "  " + line for line in body]
        lines.append("}")
        return lines
