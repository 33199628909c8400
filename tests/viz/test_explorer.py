"""The explorer without a browser: the stages behind it, what it sends, what stays, what its own page holds."""

from __future__ import annotations

import base64
import io
import json
import re

import pytest
from PIL import Image

import tinote as ti
from tests.viz.explored import big_stages, line_of, parsed_stages
from tinote.autodiff.adjoints import adjoint_operations
from tinote.compiler.codegen.llvm import module as llvm
from tinote.compiler.inspect.explanations import explanation, summary
from tinote.compiler.inspect.glossary import GLOSSARY
from tinote.compiler.inspect.kinds import IR, KINDS, PROGRAM, SYNTAX_TREE, WGSL
from tinote.compiler.inspect.native_text import assembly_lines, llvm_lines
from tinote.compiler.inspect.stages import Stages, has_gradient, python_of, stages_of, wgsl_of
from tinote.compiler.pipeline import Fixpoint, steps_for
from tinote.compiler.requests import Checks, Derivative, Request
from tinote.errors import TinoteError
from tinote.ir.nodes import Atomic, Load, Prim
from tinote.ir.query import walk
from tinote.runtime import jit
from tinote.source import Span
from tinote.viz.explorer.widget import Explored, Explorer, ExplorerView, explore
from tinote.viz.notebook.page import NOTICE

HERE = __file__


@pytest.fixture
def energy():
    """A kernel with a gradient that calls a device function."""
    ti.init()
    x = ti.field(ti.f32, shape=8, needs_grad=True)
    total = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.func
    def squared(y):
        return y * y  # in the function

    @ti.kernel
    def energy():
        for i in x:
            total[None] += ti.sin(squared(x[i]))  # in the kernel

    return energy


def named(stages: Stages, name: str):
    return next(s for s in stages.stages if s.name == name)


def test_stages_run_from_the_syntax_tree_to_assembly(energy):
    stages = stages_of(energy.specialise())
    kinds = [s.kind for s in stages.stages]
    assert kinds == sorted(kinds, key=KINDS.index)
    assert [s.name for s in stages.stages if s.kind is not IR] == [
        "syntax tree",
        "LLVM IR",
        "LLVM, optimised",
        "assembly",
    ]
    assert stages.stages[1].name == "front end"
    assert stages.name == "energy" and not stages.gradient
    assert [t.name for t in stages.sources] == ["energy", "squared"]
    for stage in stages.stages:
        assert stage.lines
        assert stage.operations and stage.operations > 0
        assert stage.seconds is not None and stage.seconds >= 0


def test_on_a_gpu_the_last_stage_is_wgsl_that_leads_back_to_the_lines():
    ti.init(arch=ti.gpu, software_gpu=True)
    try:
        x = ti.field(ti.f32, shape=8)

        @ti.kernel
        def halve():
            for i in x:
                x[i] *= 0.5  # of the GPU

        stages = stages_of(halve.specialise())
        last = stages.stages[-1]
        assert last.name == "WGSL" and last.kind is WGSL
        assert not any(s.kind.native for s in stages.stages)
        assert last.text == halve.wgsl()
        spans = {line.span.line for line in last.lines if "arena[" in line.text and line.span.line}
        assert spans == {line_of(HERE, "# of the GPU")}
    finally:
        ti.init()


def test_the_source_is_the_users_own_text(energy):
    kernel, function = stages_of(energy.specialise()).sources
    with open(HERE, encoding="utf-8") as file:
        text = file.read().splitlines()
    for source in (kernel, function):
        assert source.file == HERE
        assert list(source.lines) == text[source.first_line - 1 : source.first_line - 1 + len(source.lines)]
        assert source.lines[0].strip().startswith("@ti.")


@pytest.mark.parametrize("gradient", [False, True])
def test_every_stage_leads_back_to_the_lines_it_comes_from(energy, gradient):
    kernel, function = line_of(HERE, "# in the kernel"), line_of(HERE, "# in the function")
    for stage in stages_of(energy.specialise(), gradient).stages:
        chains = {(span.file, span.line) for line in stage.lines for span in line.span.chain()}
        assert (HERE, kernel) in chains, stage
        if stage.kind is not SYNTAX_TREE:
            assert (HERE, function) in {(line.span.file, line.line) for line in stage.lines}, stage
        # Nothing claims to come from outside of the two functions.
        lines = {line for file, line in chains if file == HERE}
        assert all(function - 2 <= line <= kernel for line in lines), stage


def test_columns_are_those_of_the_expression(energy):
    stages = stages_of(energy.specialise())
    with open(HERE, encoding="utf-8") as file:
        text = file.read().splitlines()[line_of(HERE, "# in the kernel") - 1]
    (sine,) = [line for line in named(stages, "front end").lines if " = sin " in line.text]
    assert text[sine.span.column : sine.span.end_column] == "ti.sin(squared(x[i]))"
    # LLVM keeps where an expression begins.
    assert sine.span[:3] in {line.span[:3] for line in named(stages, "LLVM IR").lines}


def test_variables_keep_their_names_whichever_stage_is_read_first(energy):
    specialisation = energy.specialise()
    forwards, backwards = stages_of(specialisation), stages_of(specialisation)
    late = [s.text for s in reversed(backwards.stages) if s.kind is IR][::-1]
    early = [s.text for s in forwards.stages if s.kind is IR]
    assert late == early
    # One variable, one name: a line that a step does not touch is the same text before and after.
    before, after = parsed_stages("x")[3][0].text, parsed_stages("x")[3][2].text
    assert "%a: f32 = load @x[%i]" in before and "%a: f32 = load @x[%i]" in after


def test_a_step_without_change_has_the_lines_of_the_stage_before(energy):
    stages = stages_of(energy.specialise()).stages
    unchanged = [n for n, s in enumerate(stages) if not s.changed]
    assert unchanged
    assert all(stages[n].text == stages[n - 1].text for n in unchanged)
    changed = [n for n, s in enumerate(stages) if s.changed and s.kind is IR and n > 1]
    assert changed and any(stages[n].text != stages[n - 1].text for n in changed)


def test_llvm_runs_when_one_of_its_stages_is_read(energy, monkeypatch):
    specialisation = energy.specialise()
    runs: list[str] = []
    for module, name in ((llvm, "generate"), (jit, "optimise"), (jit, "assembly")):
        real = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *args, name=name, real=real: runs.append(name) or real(*args))
    stages = stages_of(specialisation).stages
    assert runs == [] and [s.seconds for s in stages[-3:]] == [None] * 3
    assert stages[-3].lines and runs == ["generate"]
    assert stages[-1].lines and runs == ["generate", "assembly"]
    assert stages[-1].lines and runs == ["generate", "assembly"]
    assert [s.seconds is None for s in stages[-3:]] == [False, True, False]


def test_adjoints_are_what_depends_on_gradients(energy):
    specialisation = energy.specialise()
    assert has_gradient(specialisation)
    assert adjoint_operations(specialisation.lowered.function) == set()
    for snapshot in specialisation.snapshots(gradient=True):
        operations = list(walk(snapshot.after.region))
        if not any(op.origin for op in operations):
            continue
        adjoints = adjoint_operations(snapshot.after)
        for op in operations:
            if isinstance(op, Atomic):
                assert op in adjoints, snapshot.step
            if isinstance(op, Load) and op.buffer.name == "total.grad":
                assert op in adjoints, snapshot.step
            if isinstance(op, Load) and op.buffer.name == "x":
                assert op not in adjoints, snapshot.step
            if isinstance(op, Prim) and op.prim.name in ("sin", "cos"):
                assert op not in adjoints, snapshot.step


def test_gradient_lines_name_the_primal_variable(energy):
    stages = stages_of(energy.specialise(), gradient=True)
    reverse = next(n for n, s in enumerate(stages.stages) if s.derived)
    before, after = stages.stages[reverse - 1], stages.stages[reverse]
    assert not any(line.adjoint or line.primal for line in before.lines)
    bound = {match[1] for line in before.lines if (match := re.match(r"\s*(%[\w.]+): ", line.text))}
    primals = {line.primal for line in after.lines if line.primal}
    assert primals and {p for p in primals if not p.startswith("%i")} <= bound
    assert any(line.adjoint for line in after.lines) and any(line.primal and not line.adjoint for line in after.lines)


LLVM = """\
; ModuleID = 'm'
define i32 @task_0(ptr %block) #0 !dbg !3 {
entry:                                            ; preds = %x
  %a = load float, ptr %block, align 4, !dbg !5, !alias.scope !9, !tbaa !8
  %b = fadd float %a, %a, !dbg !6
  %c = fadd float %b, %b, !dbg !7
  ret i32 0
}

attributes #0 = { nounwind }
!0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1, emissionKind: NoDebug)
!1 = !DIFile(filename: "a\\22b.py", directory: "")
!2 = !DIFile(filename: "lib.py", directory: "/d")
!3 = distinct !DISubprogram(name: "k, line: 99", scope: !1, file: !1, line: 4, unit: !0)
!4 = distinct !DISubprogram(name: "inlined", scope: !2, file: !2, line: 1, unit: !0)
!5 = !DILocation(line: 5, column: 9, scope: !3)
!6 = !DILocation(line: 2, column: 1, scope: !4, inlinedAt: !5)
!7 = !DILocation(line: 0, scope: !4, inlinedAt: !5)
!8 = !{!8}
!9 = !{!9}
"""


def test_llvm_lines_resolve_their_metadata_and_fold_it_away():
    here = Span('a"b.py', 5, 8)
    assert llvm_lines(LLVM) == [
        ("define i32 @task_0(ptr %block) #0 {", Span('a"b.py', 4, 0)),
        ("entry:  ; preds = %x", Span("<nowhere>", 0)),
        ("  %a = load float, ptr %block, align 4", here),
        ("  %b = fadd float %a, %a", Span("/d/lib.py", 2, 0, inlined_at=here)),
        ("  %c = fadd float %b, %b", here),
        ("  ret i32 0", Span("<nowhere>", 0)),
        ("}", Span("<nowhere>", 0)),
    ]


ASSEMBLY = """\
\t.file\t"<string>"
\t.section\t.rodata.cst4,"aM",@progbits,4
.LCPI0_0:
\t.long\t0x3f000000
.LCPI0_9:
\t.long\t0
\t.text
\t.globl\ttask_0
\t.type\ttask_0,@function
task_0:
.Lfunc_begin0:
\t.cfi_startproc
\t.file\t1 "/d" "a\\"b.py"
\t.loc\t1 4 3 prologue_end
\tvmulss\t.LCPI0_0(%rip), %xmm0, %xmm0 # constant
\t.loc\t1 0 3 is_stmt 0
\tpushq\t%rbp
.LBB0_4:                                # =>This Loop
\t.loc\t1 7 1
\tjne\t.LBB0_4
\tretq
\t.section\t.debug_abbrev,"",@progbits
\t.byte\t1
"""


def test_assembly_lines_resolve_their_directives_and_fold_them_away():
    nowhere = Span("<nowhere>", 0)
    assert assembly_lines(ASSEMBLY) == [
        (".LCPI0_0:", nowhere),
        ("    .long       0x3f000000    # 0.5", nowhere),
        ("", nowhere),
        ("task_0:", nowhere),
        ("    vmulss      .LCPI0_0(%rip), %xmm0, %xmm0", Span('/d/a"b.py', 4, 2)),
        ("    pushq       %rbp", nowhere),
        (".LBB0_4:", nowhere),
        ("    jne         .LBB0_4", Span('/d/a"b.py', 7, 0)),
        ("    retq", Span('/d/a"b.py', 7, 0)),
    ]


def test_a_state_names_the_stages_that_an_explorer_opens_with():
    views = [
        ExplorerView("kernel", lambda: parsed_stages("y = x * 0.5")),
        ExplorerView("gradient", lambda: big_stages(20)),
    ]
    shown = Explorer("two", views).opening["view"]["stages"]
    assert len({stage["key"] for stage in shown}) == len(shown)
    state = {"view": "gradient", "stage": "drop", "left": "exchange"}
    opening = Explorer("two", views, state=state).opening
    names = [stage["name"] for stage in opening["view"]["stages"]]
    assert opening["start"] == 1
    assert [names[stage["stage"]] for stage in opening["stages"]] == ["drop", "exchange"]
    # What there is no more is as usual.
    gone = Explorer("two", views, state={"view": "forward", "stage": "fuse", "left": "x", "line": "900"}).opening
    assert gone == Explorer("two", views).opening


def test_a_cell_that_runs_again_opens_the_explorer_as_it_was_left(monkeypatch):
    ti.init()
    x = ti.field(ti.f32, shape=8)

    @ti.kernel
    def left():
        for i in x:
            x[i] = 2.0 * x[i]

    monkeypatch.setattr("tinote.viz.explorer.widget.cell_id", lambda: "a cell")
    explorer = explore(left)
    assert explorer.state == {}
    explorer.state = {"view": "kernel", "stage": "front end", "line": "2", "in": "right"}
    again = explore(left)
    assert again.state == explorer.state
    stages = again.opening["view"]["stages"]
    assert stages[again.opening["stages"][0]["stage"]]["name"] == "front end"
    assert explore(left, state="").state == {}
    link = "file:///a/page.html#view=kernel&stage=syntax+tree&columns=4-9"
    assert explore(left, state=link).state == {"view": "kernel", "stage": "syntax tree", "columns": "4-9"}
    monkeypatch.setattr("tinote.viz.explorer.widget.cell_id", lambda: "another cell")
    assert explore(left).state == {}


def test_two_kernels_and_two_specialisations_stand_side_by_side(monkeypatch):
    ti.init()
    x = ti.field(ti.f32, shape=8)

    @ti.kernel
    def scaled(a: ti.template(), n: ti.i32):
        for i in a:
            a[i] = 2.0 * a[i] + n

    @ti.kernel
    def shifted():
        for i in x:
            x[i] = x[i] + 1.0

    y = ti.field(ti.f64, shape=8)
    scaled(x, 1)
    scaled(y, 1)
    narrow, wide = scaled.specialisations()
    explorer = explore(wide, compare_with=narrow)
    view = explorer.opening["view"]
    assert explorer.state == {"left": "previous"} and view["compared"] == "the other specialisation"
    (answer,) = ask(explorer, {"kind": "previous", "view": 0, "stage": view["start"]})
    now = explorer.opening["stages"][0]
    assert "f32" in answer["text"] and "f64" not in answer["text"] and "f64" in now["text"]
    # One source: every line of the one is tied to the same line as its like in the other.
    assert answer["fresh"] == [] and {*answer["places"][::3]} == {*now["places"][::3]}
    names = [re.findall(r"(%\w+): ", text) for text in (answer["text"], now["text"])]
    assert names[0] == names[1] != []  # the same operations at the same places, whatever their types
    explorer = explore(scaled, compare_with=shifted)
    assert explorer.opening["view"]["compared"] == "shifted" and "next to shifted" in repr(explorer._explored.text())
    (answer,) = ask(explorer, {"kind": "previous", "view": 0, "stage": explorer.opening["view"]["start"]})
    assert "problem" not in answer and "x" in answer["text"]
    assert explorer.opening["given"] == "scaled, compare_with=shifted"
    assert explore(scaled).opening["given"] == "scaled"
    monkeypatch.setattr("tinote.viz.explorer.widget.users_names", lambda: {"scaled": scaled})
    assert explore(wide, compare_with=narrow).opening["given"] == (
        "scaled.specialisations()[1], compare_with=scaled.specialisations()[0]"
    )
    with pytest.raises(TinoteError, match="only a kernel, a captured step or a tape can be explored"):
        explore(scaled, compare_with=print)


def test_a_word_of_the_glossary_means_one_thing():
    forms = [form.lower() for term in GLOSSARY for form in (term.name, *term.also)]
    assert len(set(forms)) == len(forms)
    assert [term.name for term in GLOSSARY] == sorted((term.name for term in GLOSSARY), key=str.lower)
    assert all(re.fullmatch(r"[A-Z].{20,130}\.", term.sentence) for term in GLOSSARY)
    # What the text of the IR has for these is explained.
    assert {"task", "yield", "push", "pop", "atomic", "buffer", "check", "extent"} <= set(forms)


def ask(explorer: Explorer, *messages: dict) -> list[dict]:
    """What an explorer sends when a page sends it `messages`."""
    sent: list[dict] = []
    explorer.send = lambda content, buffers=None: sent.append(content)  # type: ignore[method-assign]
    for message in messages:
        explorer._handle_custom_msg(message, [])
    return json.loads(json.dumps(sent))


def test_a_widget_brings_what_is_shown_first_and_other_lines_when_asked():
    views = [
        ExplorerView("kernel", lambda: parsed_stages("x = 1")),
        ExplorerView("gradient", lambda: pytest.fail("nobody asked")),
    ]
    explorer = Explorer("small", views)
    opening = json.loads(json.dumps(explorer.get_state("opening")["opening"]))
    view = opening["view"]
    assert (opening["titles"], opening["start"], view["view"]) == (["kernel", "gradient"], 0, 0)
    assert [(s["name"], s["group"], s["changed"], s["lines"]) for s in view["stages"]] == [
        ("front end", "", True, 0),
        ("infer_types", "", False, 0),
        ("fold", "simplify 1", True, 2),
    ]
    assert view["sources"] == [{"name": "small", "place": "cell", "first": 1, "lines": ["x = 1"]}]
    assert [s["operations"] for s in view["stages"]] == [5, 5, 4]
    # The stage that it opens on, and the one that this is compared with.
    assert [stage["stage"] for stage in opening["stages"]] == [2, 0]
    (stage,) = ask(explorer, {"kind": "stage", "view": 0, "stage": 2})
    assert stage == {"kind": "stage", **opening["stages"][0]}
    lines = stage["text"].split("\n")
    assert lines[-1].strip() == "store @x[%i], %b"
    assert len(stage["places"]) == 3 * len(lines) and stage["places"][-3] == 0


def test_what_is_shown_first_may_be_an_error():
    opening = Explorer("small", [ExplorerView("kernel", lambda: 1 / 0)]).opening
    assert "ZeroDivisionError" in opening["view"]["problem"] and opening["stages"] == []


def test_rows_of_an_inlined_expression_are_its_own_and_its_calls(energy):
    explored = Explored("energy", [ExplorerView("kernel", lambda: stages_of(energy.specialise()))], 0)
    view = explored.view(0)
    texts = [line for source in view["sources"] for line in source["lines"]]
    first = next(n for n, s in enumerate(view["stages"]) if s["name"] == "front end")
    stage = explored.stage(0, first)
    product = next(n for n, text in enumerate(stage["text"].split("\n")) if " = mul " in text)
    assert [texts[row].split("#")[1].strip() for row in stage["further"][product]] == [
        "in the function",
        "in the kernel",
    ]
    row, begin, end = stage["places"][3 * product : 3 * product + 3]
    assert texts[row][begin:end] == "y * y"


def test_columns_count_characters():
    source = 'π = "é"; y = x * 2'
    stages = parsed_stages(source)
    (loop,) = [line for line in stages.stages[0].lines if "for parallel" in line.text]
    begin = len('π = "é"; '.encode())
    moved = loop._replace(span=loop.span._replace(column=begin, end_column=begin + len("y = x * 2")))
    stages.stages[0].__dict__["lines"] = (moved,)
    places = Explored("x", [ExplorerView("kernel", lambda: stages)], 0).stage(0, 0)["places"]
    assert source[places[1] : places[2]] == "y = x * 2"


def test_a_gradient_that_is_refused_is_shown_as_its_error():
    ti.init()
    x = ti.field(ti.f32, shape=4, needs_grad=True)

    @ti.kernel
    def spin():
        for i in x:
            ti.atomic_max(x[0], x[i])

    explorer = explore(spin, gradient=True)
    view, kernel = ask(explorer, {"kind": "view", "view": 1}, {"kind": "view", "view": 0})
    assert "ti.atomic_max(x[0], x[i])" in view["problem"] and "^" in view["problem"]
    assert kernel["stages"]
    assert Image.open(io.BytesIO(explorer.picture())).width > 0


def test_a_stage_that_fails_says_so():
    stages = parsed_stages("x")
    stages.stages[2]._make = lambda: 1 / 0
    (sent,) = ask(Explorer("x", [ExplorerView("kernel", lambda: stages)]), {"kind": "stage", "view": 0, "stage": 2})
    assert "ZeroDivisionError" in sent["problem"] and "text" not in sent


def test_explore_takes_kernels_methods_and_specialisations(energy):
    assert repr(explore(energy)) == "<IR explorer of energy>"
    assert repr(explore(energy.specialise())) == "<IR explorer of energy>"
    x = ti.field(ti.f32, shape=4)

    class Model:
        @ti.kernel
        def advance(self, dt: ti.f32):
            for i in x:
                x[i] += dt

    model = Model()
    with pytest.raises(TinoteError, match="has not been called yet") as caught:
        explore(model.advance)
    assert "advance.specialise(…)" in str(caught.value)
    model.advance(0.5)
    explorer = explore(model.advance)
    # Without a gradient in reach there is nothing to switch to.
    assert explorer.opening["titles"] == ["kernel"] and explorer.label == "advance"
    assert explore(energy).opening["titles"] == ["kernel", "gradient"]
    with pytest.raises(TinoteError, match="only a kernel, a captured step or a tape can be explored"):
        explore(len)


def test_what_stays_is_a_picture_and_a_stable_text(energy):
    explorer = explore(energy, gradient=True)
    data, metadata = explorer._repr_mimebundle_()
    assert data["text/plain"] == "<IR explorer of energy>"
    assert set(data) == {"text/plain", "image/png"}  # nobody is watching
    picture = Image.open(io.BytesIO(base64.b64decode(data["image/png"])))
    assert picture.width == 2 * metadata["image/png"]["width"]
    assert 400 < picture.height < 4000
    # It shows text: a share of dark pixels, on a light ground.
    grey = picture.convert("L").histogram()
    assert 0.01 < sum(grey[:128]) / (picture.width * picture.height) < 0.2
    assert len(data["image/png"]) < 400_000


def test_a_long_stage_does_not_make_a_long_picture():
    stages = big_stages(3000)
    picture = Image.open(io.BytesIO(Explorer("big", [ExplorerView("kernel", lambda: stages)]).picture()))
    assert picture.height < 3000


def test_stages_of_very_different_times_have_a_picture():
    stages = parsed_stages("x")
    stages.stages[0].seconds, stages.stages[2].seconds = 40.0, 1e-7
    assert Image.open(io.BytesIO(Explorer("x", [ExplorerView("kernel", lambda: stages)]).picture())).width > 0


def test_the_page_of_its_own_escapes_what_it_shows(tmp_path):
    hostile = "</script><script>alert(1)</script><!-- \u2028 &"
    explorer = Explorer('<b>"x"</b>', [ExplorerView("kernel", lambda: parsed_stages(hostile))])
    page = explorer.save(tmp_path / "deep" / "page.html").read_text(encoding="utf-8")
    assert f"/*!\n{NOTICE}\n*/" in page
    assert "<title>&lt;b&gt;&quot;x&quot;&lt;/b&gt;: IR explorer</title>" in page
    assert "alert(1)</script>" not in page and "\u2028" not in page
    (embedded,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    data = json.loads(embedded)
    assert data["views"][0]["sources"][0]["lines"] == hostile.splitlines()
    assert set(data["stages"]) == {"0/0", "0/2"}
    fetched = page.replace('"http://www.w3.org/2000/svg"', "")  # the name of a language, which nothing asks for
    assert not re.search(r"(src|href)=|https?://|@import", fetched)


@pytest.mark.parametrize("gradient", [False, True])
def test_kernels_that_run_as_plain_python_have_a_picture(gradient):
    ti.init(arch=ti.python)
    x = ti.field(ti.f32, shape=4, needs_grad=True)

    @ti.kernel
    def double():
        for i in x:
            x[i] = 2.0 * x[i]

    double()
    picture = ti.viz.explore(double, gradient=gradient).picture()
    assert Image.open(io.BytesIO(picture)).size[0] > 900


def steps_of(steps) -> set[str]:
    """The names of all steps of a pipeline."""
    return {name for step in steps for name in (steps_of(step.steps) if isinstance(step, Fixpoint) else {step.name})}


def test_every_step_explains_itself_in_a_sentence():
    """The first sentence of its module, which the page shows above the lines."""
    requests = [
        *(Request(derivative, arguments=True) for derivative in Derivative if derivative is not Derivative.NONE),
        *(Request(checks=checks) for checks in Checks),
        Request(records=True),
    ]
    names = set().union(*(steps_of(steps_for(request)) for request in requests))
    assert len(names) >= 30
    for name in names:
        sentence = summary(name)
        assert re.fullmatch(r"[A-Z].{20,160}\.", sentence), (name, sentence)


def test_every_stage_has_its_sentence(energy):
    specialisation = energy.specialise()
    stages = stages_of(specialisation, gradient=True).with_passes().stages
    stages += (python_of(specialisation, gradient=True), wgsl_of(specialisation, gradient=True))
    assert {stage.kind for stage in stages} == {*KINDS} - {PROGRAM}
    # Of LLVM's passes, a new version may bring one that nobody has written about.
    silent = {stage.name for stage in stages if stage.changed and not explanation(stage)}
    assert not silent


def test_llvms_passes_are_shown_when_they_are_asked_for(energy):
    explored = explore(energy, gradient=True)._explored
    before = explored.view(1)
    answer = explored.passes(1)
    first, count = answer["inserted"]
    stages = answer["shown"]["stages"]
    assert before["passes"] and not answer["shown"]["passes"]
    assert [s["name"] for s in stages[:first] + stages[first + count :]] == [s["name"] for s in before["stages"]]
    assert stages[first - 1]["name"] == "LLVM IR" and stages[first + count]["name"] == "LLVM, optimised"
    changed = next(n for n, s in enumerate(stages) if s["group"].startswith("LLVM: ") and s["changed"])
    shown = explored.stage(1, changed)
    assert "define" in shown["text"] and "default<O3>" in shown["target"]["command"]
    # Asked for again, as by a second page, they are the same.
    assert explored.passes(1) == explored.passes(1)
    # A page of its own has them, and offers no more.
    saved = explored.everything()
    assert f"1/{changed}" in saved["stages"] and not saved["views"][1]["passes"] and not saved["views"][0]["passes"]


def test_passes_that_cannot_be_shown_say_why(energy, monkeypatch):
    monkeypatch.setattr("sys.executable", "/bin/false")
    answer = explore(energy, gradient=True)._explored.passes(1)
    assert "LLVM" in answer["problem"]


def test_the_old_name_of_the_kernel_to_compare_with_warns() -> None:
    @ti.kernel
    def first() -> ti.i32:
        return 1

    @ti.kernel
    def second() -> ti.i32:
        return 2

    first()
    second()
    with pytest.warns(DeprecationWarning, match="beside= of explore is now compare_with=") as caught:
        explorer = explore(first, beside=second)
    assert [one.filename for one in caught] == [__file__]
    assert explorer.opening["given"] == "first, compare_with=second"
