"""The stages of a kernel in the explorer: lines of text with their source locations.

    Python       the kernel's syntax tree, one node per line
    IR           what the front end emits, then the function after each step of the pipeline
    LLVM IR      as generated, and after LLVM's own passes
    assembly     of the host

A kernel that runs as plain Python has that as its last stage in place of LLVM IR and assembly.

Everything is computed on demand: making the list of stages runs the pipeline once more, a stage's lines
are printed when they are first read, and LLVM runs when one of its stages is read. Variables have one name through all
IR stages, so that stages line up by variable.
"""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tinote.autodiff.adjoints import adjoint_operations
from tinote.compiler.driver import Specialisation
from tinote.compiler.function_source import FunctionSource
from tinote.compiler.inspect.kinds import ASSEMBLY, IR, LLVM, SOURCE, SYNTAX_TREE, WGSL, StageKind
from tinote.compiler.inspect.native_text import Located, assembly_lines, llvm_lines
from tinote.compiler.inspect.vectorisation_remarks import LoopVerdict, judge_loops
from tinote.compiler.inspect.versions import Version, version_of
from tinote.compiler.pipeline import LOWERING, VECTORISATION, Snapshot, python_steps_for, run_pipeline, steps_on
from tinote.compiler.requests import GRADIENT, PRIMAL
from tinote.config import Config
from tinote.ir.nodes import Function, Op, Var
from tinote.ir.query import buffers_of, span_of, walk
from tinote.ir.text import Naming, show_lines
from tinote.lazy import lazy
from tinote.remarks import Remark
from tinote.source import NOWHERE, Span

if TYPE_CHECKING:
    from tinote.compiler.codegen.llvm import module as llvm_module
    from tinote.compiler.codegen.python import text as python_text
    from tinote.compiler.launch import gpu_launch, python_launch
    from tinote.runtime import jit, llvm_passes
    from tinote.runtime.llvm_passes import RanPass
else:
    llvm_module = lazy("tinote.compiler.codegen.llvm.module")
    python_text = lazy("tinote.compiler.codegen.python.text")
    gpu_launch = lazy("tinote.compiler.launch.gpu_launch")
    python_launch = lazy("tinote.compiler.launch.python_launch")
    jit = lazy("tinote.runtime.jit")
    llvm_passes = lazy("tinote.runtime.llvm_passes")


_Result = TypeVar("_Result")


class StageLine(NamedTuple):
    """A line of a stage.

    `span`: its source location; `block`: whether it opens a region, so that `span` covers further lines.

    In a gradient, `primal` is the result of the primal operation that this one was derived from, as the stages write
    it, and `adjoint` says that the line computes or stores an adjoint and does not just recompute a primal value. `op`:
    the operation of a line of IR.
    """

    text: str
    span: Span = NOWHERE
    block: bool = False
    adjoint: bool = False
    primal: str = ""
    op: Op | None = None

    @property
    def line(self) -> int:
        """The source line, 0 when there is none."""
        return self.span.line


class KernelSource(NamedTuple):
    """The source of a kernel or of a device function that it inlines; `first_line` counts in its file or cell."""

    name: str
    file: str
    first_line: int
    lines: tuple[str, ...]


class Stage:
    """One stage.

    `about` is a sentence on what it shows; a step of the pipeline has it in the step's module. `group` is the fixed
    point it belongs to, if any; `changed` is false if the lines equal those of the previous stage; `derived` says that
    its operations are the result of differentiation.

    `function` is the function of an IR stage.

    `seconds` is the time to reach the stage: the step alone in the pipeline, everything from the text on for LLVM's
    stages; `None` until `lines` is read. `operations` counts operations or instructions, likewise `None` until then.
    """

    def __init__(
        self,
        name: str,
        kind: StageKind,
        make: Callable[[], Sequence[StageLine]],
        *,
        about: str = "",
        group: str = "",
        seconds: float | None = None,
        operations: int | None = None,
        derived: bool = False,
        changed: bool = True,
        function: Function | None = None,
    ) -> None:
        self.name = name
        self.kind = kind
        self.about = about
        self.group = group
        self.seconds = seconds
        self.operations = operations
        self.derived = derived
        self.changed = changed
        self.function = function
        self._make = make

    @cached_property
    def lines(self) -> tuple[StageLine, ...]:
        """The text; computed when first read."""
        started = time.perf_counter()
        lines = tuple(self._make())
        if self.seconds is None:
            self.seconds = time.perf_counter() - started
        if self.operations is None:
            self.operations = sum(1 for line in lines if line.text[:1] in " \t" and line.text.strip())
        return lines

    @property
    def text(self) -> str:
        """The lines as one text."""
        return "".join(f"{line.text}\n" for line in self.lines)

    def __repr__(self) -> str:
        return f"<stage {self.group + ': ' if self.group else ''}{self.name}>"


class Target(NamedTuple):
    """The target of LLVM, in its own terms; `level`: its optimisation level."""

    triple: str
    cpu: str
    features: str
    level: int

    @property
    def command(self) -> str:
        """The equivalent command line of LLVM's tools for a file `kernel.ll`."""
        machine = f"-mtriple={self.triple} -mcpu={self.cpu} -mattr={self.features}"
        passes = f"opt -passes='default<O{self.level}>' {machine} kernel.ll -S -o optimised.ll"
        return f"{passes}\nllc -O{self.level} -relocation-model=pic {machine} optimised.ll -o kernel.s"


class Stages(NamedTuple):
    """The stages of a kernel or of its gradient. `sources`: its text, then those of the device functions that it
    inlines. `judge` runs LLVM and returns the verdicts on loops; None if there is no machine code. `passes` runs it
    pass by pass and returns a stage for each; None if there are none, or if they are already among the stages.
    `target`: the target of LLVM and its options. `config`: the options of the compilation. `remarks`: the decisions
    reported by the steps of the pipeline.
    """

    name: str
    gradient: bool
    sources: tuple[KernelSource, ...]
    stages: tuple[Stage, ...]
    judge: Callable[[], Sequence[LoopVerdict]] | None = None
    passes: Callable[[], Sequence[Stage]] | None = None
    target: Callable[[], Target] | None = None
    config: Config | None = None
    remarks: tuple[Remark, ...] = ()

    @property
    def passes_at(self) -> int:
        """The index of the first of LLVM's own passes, even while they are not among the stages."""
        return next(n for n, stage in enumerate(self.stages) if stage.kind is LLVM) + 1

    def with_passes(self) -> Stages:
        """The same with LLVM's own passes between its IR as generated and optimised. Runs LLVM."""
        if self.passes is None:
            return self
        at = self.passes_at
        stages = (*self.stages[:at], *self.passes(), *self.stages[at:])
        return self._replace(stages=stages, passes=None)

    @property
    def verdicts(self) -> Sequence[LoopVerdict]:
        """The verdicts on loops; none without machine code."""
        return () if self.judge is None else self.judge()

    @property
    def last(self) -> Function | None:
        """The function from which machine code is generated, before vectorisation: iterations are separate, and updates
        unchanged.
        """
        steps = [stage for stage in self.stages if stage.function is not None]
        before = (stage.function for stage, after in pairwise(steps) if after.name == VECTORISATION.name)
        return next(before, steps[-1].function if steps else None)

    @property
    def differentiated(self) -> Function | None:
        """The primal function of a gradient, in the form that is differentiated."""
        steps = [stage for stage in self.stages if stage.function is not None]
        return next((stage.function for stage, after in pairwise(steps) if after.derived), None)

    @property
    def unlowered(self) -> Function | None:
        """The last form before lowering, or the very last one where nothing is lowered."""
        steps = [stage for stage in self.stages if stage.function is not None]
        lowering = (stage.function for stage, after in pairwise(steps) if after.name == LOWERING[0].name)
        return next(lowering, self.last)

    @property
    def first_shown(self) -> int:
        """The index of the stage to open with: differentiation, or else what the pipeline ends with; of programs, the
        last one.
        """
        steps = [n for n, stage in enumerate(self.stages) if stage.kind is IR and stage.changed]
        for n in steps:
            if self.stages[n].derived:
                return n
        return steps[-1] if steps else len(self.stages) - 1


def stages_of(kernel: Specialisation | Version, gradient: bool = False) -> Stages:
    """The stages of one kernel, or of its gradient. Runs the pipeline; raises the errors of compilation."""
    version = kernel if isinstance(kernel, Version) else version_of(kernel)
    source, first, config = version.source, version.function, version.config
    snapshots: list[Snapshot] = []
    steps = steps_on(config.arch, GRADIENT if gradient else PRIMAL)
    with jit.compiled_for(version.cpu):
        last, context = run_pipeline(first, steps, config, snapshots.append)
    found = (python_stage(source.tree, source.file), *ir_stages(first, snapshots, version.front_end_seconds))
    made = Stages(
        source.name, gradient, _sources(version), found, config=config, remarks=tuple(dict.fromkeys(context.remarks))
    )
    if config.arch != "cpu":
        generated = (generated_stage if config.arch == "python" else wgsl_stage)(last, config)
        return made._replace(stages=(*found, generated))
    native = _Native(last, config, made.remarks, version.cpu)
    return made._replace(
        stages=(*found, *_native_stages(native)), judge=native.judge, passes=native.passes, target=native.target
    )


def python_of(specialisation: Specialisation, *, gradient: bool) -> Stage:
    """The plain Python of the kernel under `ti.init(arch=ti.python)`."""
    steps, config = python_steps_for(GRADIENT if gradient else PRIMAL), specialisation.config
    return generated_stage(run_pipeline(specialisation.lowered.function, steps, config)[0], config)


def wgsl_of(specialisation: Specialisation, *, gradient: bool) -> Stage:
    """The WGSL of the kernel under `ti.init(arch=ti.gpu)`. Raises `KernelTargetError`."""
    return wgsl_stage(specialisation.gpu_function(GRADIENT if gradient else PRIMAL), specialisation.config)


def has_gradient(specialisation: Specialisation) -> bool:
    """Whether the kernel touches memory that has a gradient."""
    return any(b.adjoint is not None for b in buffers_of(specialisation.lowered.function))


def _sources(version: Version) -> tuple[KernelSource, ...]:
    used = {(span.file, span.line) for op in walk(version.function.region) for span in op.loc.chain()}
    texts = [kernel_text(s) for s in (version.source, *version.functions)]
    # A device function that is captured but not called has no lines.
    return tuple(
        t for n, t in enumerate(texts) if not n or any((t.file, t.first_line + k) in used for k in range(len(t.lines)))
    )


def kernel_text(source: FunctionSource) -> KernelSource:
    """The source of a kernel or a device function, with its decorators."""
    lines = source.text.splitlines()
    tree = source.tree
    first = min([tree.lineno, *(d.lineno for d in tree.decorator_list)])
    return KernelSource(source.name, source.file, first, tuple(lines))


# Python


def python_stage(tree: ast.AST, file: str) -> Stage:
    """The syntax tree: a line for every node except names and constants, with its text."""
    lines = _tree_lines(tree, file)
    about = "The kernel as Python parsed it, a line for each node of its syntax tree."
    return Stage("syntax tree", SYNTAX_TREE, lambda: lines, about=about, seconds=0.0, operations=len(lines))


def _tree_lines(tree: ast.AST, file: str) -> list[StageLine]:
    lines: list[StageLine] = []

    def visit(node: ast.AST, role: str, indent: int) -> None:
        head = f"{'  ' * indent}{role}{type(node).__name__}"
        body = {name: value for name, value in ast.iter_fields(node) if isinstance(value, list) and name in _BODIES}
        lines.append(StageLine(f"{head}  {_gist(node)}".rstrip(), _span(node, file), bool(body)))
        for name, value in ast.iter_fields(node):
            if isinstance(node, ast.FunctionDef) and name != "body":
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.stmt) or (
                    isinstance(child, ast.expr) and not isinstance(child, ast.Name | ast.Constant)
                ):
                    visit(child, "" if isinstance(child, ast.stmt) and name == "body" else f"{name}: ", indent + 1)

    visit(tree, "", 0)
    return lines


_BODIES = ("body", "orelse")


def _gist(node: ast.AST) -> str:
    """The source text of a node, on one line."""
    if isinstance(node, ast.FunctionDef):
        return f"{node.name}({ast.unparse(node.args)})"
    if isinstance(node, ast.For):
        return f"{ast.unparse(node.target)} in …"
    if isinstance(node, ast.If | ast.While):
        return ast.unparse(node.test)
    if isinstance(node, ast.stmt | ast.expr):
        text = ast.unparse(node).splitlines()
        return text[0] + (" …" if len(text) > 1 else "")
    return ""


def _span(node: ast.AST, file: str) -> Span:
    if not isinstance(node, ast.stmt | ast.expr):
        return NOWHERE
    return Span(file, node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0)


# IR


def ir_stages(first: Function, snapshots: Sequence[Snapshot], front_end_seconds: float | None = None) -> list[Stage]:
    """The front end's function, and the function after every step, including those that changed nothing."""
    namer = _Namer([first, *(s.after for s in snapshots if s.after is not s.before)])
    about = "The kernel translated into typed IR, operation by operation, before anything is simplified."
    found = [_ir_stage("front end", "", first, namer, front_end_seconds or 0.0, True, about)]
    for snapshot in snapshots:
        group, _, name = snapshot.step.rpartition(": ")
        found.append(
            _ir_stage(name, group, snapshot.after, namer, snapshot.seconds, snapshot.after is not snapshot.before)
        )
    return found


def _ir_stage(
    name: str, group: str, fn: Function, namer: _Namer, seconds: float, changed: bool, about: str = ""
) -> Stage:
    operations = list(walk(fn.region))
    derived = any(op.origin is not None for op in operations)
    return Stage(
        name,
        IR,
        lambda: namer.lines(fn),
        about=about,
        group=group,
        seconds=seconds,
        operations=len(operations),
        derived=derived,
        changed=changed,
        function=fn,
    )


class _Namer:
    """Prints functions with the same names for the same variables, in any order of printing."""

    def __init__(self, functions: Sequence[Function]) -> None:
        self._waiting = list(functions)
        self._naming = Naming()
        self._printed: dict[Function, list[StageLine]] = {}

    def lines(self, fn: Function) -> list[StageLine]:
        found = self._printed.get(fn)
        if found is None:
            self._name_up_to(fn)
            adjoints = adjoint_operations(fn)
            found = self._printed[fn] = [
                self._line(text, op, fn, adjoints) for text, op in show_lines(fn, self._naming)
            ]
        return found

    def _name_up_to(self, fn: Function) -> None:
        while fn in self._waiting:
            earlier = self._waiting.pop(0)
            for var in earlier.region.params:
                self._naming.variable(var)
            for op in walk(earlier.region):
                for var in op.outs:
                    self._naming.variable(var)
                for region in op.regions:
                    for var in region.params:
                        self._naming.variable(var)

    def _line(self, text: str, op: Op | None, fn: Function, adjoints: set[Op]) -> StageLine:
        if op is None:
            return StageLine(text, fn.loc if text.startswith("func ") else NOWHERE, True)
        if op.origin is None:
            return StageLine(text, op.loc, bool(op.regions), op=op)
        primal = _known_by(op.origin)
        name = f"%{self._naming.variable(primal)}" if primal is not None else ""
        return StageLine(text, span_of(op), bool(op.regions), op in adjoints, name, op)


def _known_by(op: Op) -> Var | None:
    """The variable that identifies an operation: its first result, or the index of a loop without results."""
    if op.outs:
        return op.outs[0]
    return op.regions[0].params[0] if op.regions and op.regions[0].params else None


# plain Python


def generated_stage(fn: Function, config: Config) -> Stage:
    """The Python code for `ti.init(arch=ti.python)`."""

    def lines() -> list[StageLine]:
        module = python_launch.generated(fn, config)
        found: list[StageLine] = []
        for text, node in python_text.lines_of(module.tree):
            found.append(StageLine(text, _span(node, fn.loc.file), text.endswith(":")))
        return found

    about = "The Python that runs under `arch=ti.python`, where breakpoints stop."
    return Stage("plain Python", SOURCE, lines, about=about)


def wgsl_stage(fn: Function, config: Config) -> Stage:
    """The WGSL for `ti.init(arch=ti.gpu)`: on the session's device, or on one with f64 as its only feature."""

    def lines() -> list[StageLine]:
        shader = gpu_launch.generate(fn, gpu_launch.features_of(config))
        return [StageLine(line, loc, line.endswith("{")) for line, loc in shader.lines]

    about = "The shaders that run under `arch=ti.gpu`: an entry point for each task, after the functions it calls."
    return Stage("WGSL", WGSL, lines, about=about)


# LLVM


def _native_stages(native: _Native) -> list[Stage]:
    """LLVM's IR as generated and after its passes, and the assembly. LLVM is loaded when one of them is read."""
    return [
        Stage(
            "LLVM IR",
            LLVM,
            lambda: _stage_lines(llvm_lines(native.text)),
            about="The lowered function as LLVM's IR, before any of LLVM's passes.",
        ),
        Stage(
            "LLVM, optimised",
            LLVM,
            lambda: _stage_lines(llvm_lines(native.run(jit.optimise))),
            about="The module after all of LLVM's passes, from which machine code is made.",
        ),
        Stage(
            "assembly",
            ASSEMBLY,
            lambda: _stage_lines(assembly_lines(native.run(jit.assembly))),
            about="The machine code of this processor, as text.",
        ),
    ]


def _pass_stage(ran: RanPass) -> Stage:
    """The module after one of LLVM's passes."""
    loop = re.match(r"loop (\S+)", ran.unit)
    return Stage(
        f"{ran.name} {loop[1]}" if loop else ran.name,
        LLVM,
        lambda: _stage_lines(llvm_lines(ran.text)) if ran.changed else (),
        group=f"LLVM: {ran.function or 'module'}",
        seconds=0.0,
        changed=ran.changed,
    )


def _stage_lines(lines: Sequence[Located]) -> list[StageLine]:
    """Lines of LLVM as lines of a stage; a line without indentation opens a function."""
    return [StageLine(text, span, text[:1] not in " \t") for text, span in lines]


class _Native:
    """The compiled LLVM text, with line tables."""

    def __init__(self, fn: Function, config: Config, remarks: Sequence[Remark], cpu: str) -> None:
        self._fn = fn
        self._config = config
        self._remarks = remarks
        self._cpu = cpu

    def run(self, work: Callable[[str, int], _Result]) -> _Result:
        """What LLVM makes of the text, for the processor that it is meant for."""
        with jit.compiled_for(self._cpu):
            return work(self.text, self._config.opt_level)

    def judge(self) -> Sequence[LoopVerdict]:
        """The verdicts on loops: which are vectorised, and why others are not. LLVM runs once."""
        return self._verdicts

    @cached_property
    def _verdicts(self) -> Sequence[LoopVerdict]:
        return judge_loops((*self._remarks, *self.run(jit.remarks)), self._fn)

    def passes(self) -> list[Stage]:
        """A stage for each pass that LLVM runs."""
        return [_pass_stage(ran) for ran in llvm_passes.passes(self.text, self._config.opt_level, self._cpu)]

    def target(self) -> Target:
        """The target of the text."""
        with jit.compiled_for(self._cpu):
            host = jit.host()
        return Target(host.triple, host.cpu, host.features, self._config.opt_level)

    @cached_property
    def text(self) -> str:
        options = llvm_module.Options(
            fast_math=self._config.fast_math, line_tables=True, profile=self._config.kernel_profiler
        )
        with jit.compiled_for(self._cpu):
            return llvm_module.generate(self._fn, options).text
