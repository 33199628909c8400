"""The project's habits, each as a test: style, types, layers, a light import, consistent packaging."""

from __future__ import annotations

import ast
import functools
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib import metadata
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest
from packaging.requirements import Requirement

from tinote import __version__
from tinote.distribution import NAME

PROJECT = Path(__file__).resolve().parents[1]
HEAVY = (
    "difflib",
    "llvmlite",
    "ipywidgets",
    "anywidget",
    "matplotlib",
    "IPython",
    "tqdm",
    "tinote.lang.ad",
    "tinote.lang.capture",
    "tinote.viz",
)

FIRST_GRADIENT = """\
import sys
import tinote as ti

ti.init()
x = ti.field(ti.f32, shape=(), needs_grad=True)
loss = ti.field(ti.f32, shape=(), needs_grad=True)

@ti.kernel
def square():
    loss[None] = x[None] ** 2

x[None] = 3.0
with ti.ad.Tape(loss):
    square()
print(x.grad[None], [name for name in ("tqdm", "importlib.metadata", "IPython") if name in sys.modules])
"""


def check(*command: str) -> None:
    """Runs a tool in the project's root; what it says is the message of the failure."""
    __tracebackhide__ = True
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"


def script(name: str) -> str:
    """A console script of the environment that runs the tests."""
    return str(Path(sys.executable).with_name(name))


def test_ruff_finds_nothing() -> None:
    check(sys.executable, "-m", "ruff", "check", "--output-format=concise", ".")


def test_code_is_formatted() -> None:
    check(sys.executable, "-m", "ruff", "format", "--check", ".")


def test_no_merge_has_left_its_marks() -> None:
    done = subprocess.run(
        ["git", "grep", "-nE", r"^(<{7} |>{7} )"], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, ""), done.stdout + done.stderr  # 1: nothing was found


def test_types_check() -> None:
    check(sys.executable, "-m", "pyright", "--pythonpath", sys.executable)


def test_imports_point_downwards() -> None:
    check(script("lint-imports"), "--no-cache")


MODULES = {
    ".".join(path.relative_to(PROJECT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((PROJECT / "tinote").rglob("*.py"))
}
# They compare the names of modules, and import none.
NAMES_ALONE = {"tinote.errors", "tinote.lang.capture.contents", "tinote.lang.shipping.references", "tinote.runtime.jit"}
SEEN = "if TYPE_CHECKING:\n    "


def seen_by_type_checkers(module: ast.Module) -> set[str]:
    """The modules that a module imports under `TYPE_CHECKING`."""
    found: set[str] = set()
    for block in ast.walk(module):
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING":
            for node in block.body:
                if isinstance(node, ast.ImportFrom) and node.module is not None:
                    found |= {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
    return found


def unseen_imports(module: ast.Module) -> list[tuple[int, str]]:
    """The lines that name modules of the package by a string, where no type checker sees an import of them."""
    seen = seen_by_type_checkers(module)
    found: list[tuple[int, str]] = []
    for node in ast.walk(module):
        match node:
            case ast.Constant(value=str(name)) if name in MODULES and "." in name and name not in seen:
                found.append((node.lineno, name))
            case ast.JoinedStr(values=[ast.Constant(value=str(name)), *_]) if name.startswith("tinote."):
                found.append((node.lineno, f"{name}…"))
    return found


@pytest.mark.parametrize(
    ("lines", "unseen"),
    [
        ("pipeline = lazy('tinote.compiler.pipeline')", True),
        (f"{SEEN}from tinote.compiler import pipeline\nelse:\n    pipeline = lazy('tinote.compiler.pipeline')", False),
        (f"{SEEN}from tinote.compiler import driver\nelse:\n    pipeline = lazy('tinote.compiler.pipeline')", True),
        (f"{SEEN}from tinote.viz.pages.export import page\nTABLE = {{'page': 'tinote.viz.pages.export'}}", False),
        ("importlib.import_module('tinote.compiler.pipeline')", True),
        ("load(f'tinote.compiler.{name}')", True),
        ("importlib.import_module('jax')", False),
    ],
)  # fmt: skip
def test_what_counts_as_an_import_that_no_tool_sees(lines: str, unseen: bool) -> None:
    assert bool(unseen_imports(ast.parse(lines))) == unseen


def test_every_import_of_the_package_is_seen_by_tools() -> None:
    """A module that is loaded when it is first used is imported under `TYPE_CHECKING` as well, where import-linter and
    type checkers read it.
    """
    sources = {name: path for name, path in MODULES.items() if name not in NAMES_ALONE}
    found = {name: unseen_imports(ast.parse(path.read_text(encoding="utf-8"))) for name, path in sources.items()}
    assert {name: lines for name, lines in found.items() if lines} == {}


def is_number(node: ast.expr | None) -> bool:
    """Whether an expression is a number, a tuple of numbers, or made of numbers by arithmetic."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return not isinstance(value, bool)
        case ast.UnaryOp(operand=operand):
            return is_number(operand)
        case ast.BinOp(left=left, right=right):
            return is_number(left) and is_number(right)
        case ast.Tuple(elts=[_, *_] as elements):
            return all(map(is_number, elements))
    return False


def unexplained_constants(text: str) -> list[str]:
    """The numbers with names of their own in a module that no comment `#:` above them explains."""
    lines, found = text.split("\n"), list[str]()
    for node in ast.parse(text).body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or not is_number(node.value):
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        names = [one.id for one in ast.walk(target) if isinstance(one, ast.Name)]
        above = lines[node.lineno - 2] if node.lineno > 1 else ""
        if all(re.fullmatch(r"_?[A-Z][A-Z0-9_]*", name) for name in names) and not above.startswith("#:"):
            found += names
    return found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("#: Iterations. Measured.\nMAX_TRIPS = 1 << 10", []),
        ("MAX_TRIPS = 1 << 10", ["MAX_TRIPS"]),
        ("# Iterations.\nMAX_TRIPS: int = 1 << 10", ["MAX_TRIPS"]),
        ("#: Iterations.\nMAX_TRIPS = 4\n_MIN_COST, _MAX_COST = 1.5, -2", ["_MIN_COST", "_MAX_COST"]),
        ("KINDS = (f32, f64)\nNAME = 'x'\nlimit = 3\nDEBUG = True", []),
    ],
)
def test_what_counts_as_a_constant_that_nothing_explains(text: str, found: list[str]) -> None:
    assert unexplained_constants(text) == found


def test_the_compilers_constants_say_what_they_count_and_where_they_come_from() -> None:
    """The unit of a threshold, and the measurement that it comes from or that there is none, stand above it."""
    layers = ("tinote.compiler.", "tinote.autodiff.", "tinote.ir.")
    sources = {name: path.read_text(encoding="utf-8") for name, path in MODULES.items() if name.startswith(layers)}
    assert {name: names for name, text in sources.items() if (names := unexplained_constants(text))} == {}


#: Lines of a class without docstrings. Chosen, not measured.
MOST_CLASS_LINES = 400
#: Classes that are longer: a number here may only become smaller, and goes when it is no longer needed.
LONG_CLASSES = {
    "tinote.lang.ad.journal.journal.Journal": 582,
}


def class_lines(module: ast.Module) -> Iterator[tuple[str, int]]:
    """The classes of a module, with the number of lines that each has besides docstrings."""
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef):
            yield node.name, _lines(node) - sum(_lines(one) for one in map(_docstring, ast.walk(node)) if one)


def _lines(node: ast.stmt) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def _docstring(node: ast.AST) -> ast.stmt | None:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(node) is not None:
        return node.body[0]
    return None


def repeated(names: Iterable[str]) -> set[str]:
    """Which public names are among these more than once."""
    return {name for name, count in Counter(names).items() if count > 1 and not name.startswith("_")}


@pytest.mark.parametrize(
    ("text", "lines", "twice"),
    [
        ("class A:\n    x = 1\n\n\nclass B:\n    class _C:\n        x = 1", {"A": 2, "B": 3, "_C": 2}, set()),
        ("@final\nclass A: ...\ndef f():\n    class A(B):\n        x = 1\n", {"A": 2}, {"A"}),
        ("class _A: ...\nclass _A: ...\ntext = 'class B: ...'", {"_A": 1}, set()),
        (
            'class A:\n    """Its\n    docstring."""\n    def f(self):\n        """f."""\n        return """\n"""',
            {"A": 4},
            set(),
        ),
    ],
)
def test_what_counts_as_a_class(text: str, lines: dict[str, int], twice: set[str]) -> None:
    found = list(class_lines(ast.parse(text)))
    assert (dict(found), repeated(name for name, _ in found)) == (lines, twice)


@functools.cache
def package_classes() -> list[tuple[str, str, int]]:
    """Every class of the package: its module, its name, its lines."""
    return [
        (module, name, lines)
        for module, path in MODULES.items()
        for name, lines in class_lines(ast.parse(path.read_text(encoding="utf-8")))
    ]


def test_a_public_class_has_a_name_of_its_own() -> None:
    """Private ones of different modules may be called the same."""
    classes = package_classes()
    assert len(classes) > 500
    twice = repeated(name for _, name, _ in classes)
    assert sorted(f"{name} of {module}" for module, name, _ in classes if name in twice) == []


def test_no_class_grows_long() -> None:
    """One of more lines is split by what its parts do."""
    found = {f"{module}.{name}": lines for module, name, lines in package_classes() if lines > MOST_CLASS_LINES}
    assert {name: lines for name, lines in found.items() if lines > LONG_CLASSES.get(name, MOST_CLASS_LINES)} == {}
    assert [name for name in LONG_CLASSES if name not in found] == []


#: What a file is called that has the same subject in each back end; CONTRIBUTING says what is in it.
ROOMS = {"cells", "checks", "control", "emitter", "handlers", "memory", "module", "primitives", "stacks"}


def test_the_back_ends_have_the_same_rooms() -> None:
    place = PROJECT / "tinote" / "compiler" / "codegen"
    files = {one: {path.stem for path in (place / one).glob("*.py")} for one in ("llvm", "wgsl", "python")}
    assert {one: ROOMS - names for one, names in files.items() if not names >= ROOMS} == {}
    # What the two that make text have beyond that has the same name, too.
    assert {"maths", "shared", "types"} <= files["llvm"] & files["wgsl"]
    guide = (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert {name for name in ROOMS | {"shared", "types"} if f"| `{name}.py` |" not in guide} == set()


def test_a_bare_import_is_light() -> None:
    program = f"import json, sys, tinote; print(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=600, check=True)
    assert json.loads(done.stdout) == []


def test_a_first_gradient_loads_no_progress_bars(tmp_path: Path) -> None:
    """They take a fifth of its time."""
    program = tmp_path / "first.py"
    program.write_text(FIRST_GRADIENT, encoding="utf-8")
    command = [sys.executable, str(program)]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=600, check=True)
    assert done.stdout.split() == ["6.0", "[]"]


def project_table() -> dict[str, object]:
    return tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_readme_shows_one_command_to_start_and_one_to_test() -> None:
    """`.ci/run` takes its command from here, so that the two cannot differ."""
    commands = re.findall(r"^python3 -m venv .*$", (PROJECT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    last = [command.split("&&")[-1].strip() for command in commands]
    assert last == [".venv/bin/tinote lab", ".venv/bin/pytest -n auto"]
    assert all("pip install" in command for command in commands)
    assert "'.[tutorials]'" in commands[0] and "'.[test]'" in commands[1]


def test_the_readme_is_a_front_page() -> None:
    text = (PROJECT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 800
    pictures = re.findall(r"(?:!\[[^\]]*\]\(|<img src=\")([^)\"]+)", text)
    assert len(pictures) >= 11 and all((PROJECT / picture).is_file() for picture in pictures)
    assert (PROJECT / "docs" / "pictures" / "film.gif").stat().st_size <= 3_000_000


def test_binder_pins_satisfy_the_requirements() -> None:
    lines = (PROJECT / "binder" / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    normal = {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in pins.items()}
    extras = project_table()["optional-dependencies"]
    assert [Requirement(text).extras for text in extras["tutorials"]] == [{"sweep"}]
    for text in [*project_table()["dependencies"], *extras["sweep"]]:
        requirement = Requirement(text)
        assert requirement.name in normal, f"{requirement.name} is not pinned for Binder"
        assert requirement.specifier.contains(normal[requirement.name]), text


def test_the_tests_run_on_this_tree() -> None:
    """An installed copy of an older version would pass where this one fails."""
    origin = subprocess.run(
        [sys.executable, "-c", "import tinote; print(tinote.__file__)"],
        cwd=PROJECT.parent,
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    assert Path(origin.stdout.strip()).resolve().parent == PROJECT / "tinote"
    assert metadata.version(NAME) == __version__ == project_table()["version"]


def test_notebooks_keep_their_pictures_and_no_error() -> None:
    """They are read on a code-hosting site, where nobody runs them."""
    files = sorted((PROJECT / "notebooks").glob("*.ipynb"))
    assert files
    for file in files:
        document = nbformat.read(file, as_version=4)
        nbformat.validate(document)
        outputs = [output for cell in document.cells for output in cell.get("outputs", [])]
        assert any("image/png" in output.get("data", {}) for output in outputs), f"{file.name} shows no picture"
        unexpected = [
            cell.source
            for cell in document.cells
            if "raises-exception" not in cell.metadata.get("tags", [])
            and any(output.output_type == "error" for output in cell.get("outputs", []))
        ]
        assert unexpected == [], file.name
        for error, view in pairwise([*outputs, {}]):
            if error.output_type == "error":
                shown = view.get("data", {}).get("text/html", "")
                assert f'class="tinote-error-view" role="group" aria-label="{error.ename}"' in shown, file.name
                assert str(Path.home()) not in shown and sys.prefix not in shown and str(PROJECT) not in shown


#: Installing from an index, with whatever tool: there `tinote` is another project's, and ours is not there.
FROM_AN_INDEX = re.compile(
    r"\b(?:(?:pip3?|pipx|conda|mamba) install|(?:uv|poetry|pdm) add|uvx|pipx run)"
    r"(?: +-{1,2}[\w-]+(?:[= ](?!tinote|['\"])[^\s-]\S*)?)* +[\"'`]?tinote\b"
)


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("pip install tinote", True),
        ("pip install 'tinote-lang[gpu]'", True),
        ("python -m pip install -U 'tinote[gpu]'", True),
        ("pip3 install --upgrade tinote==0.1.0", True),
        ("%pip install tinote", True),
        ("uv add tinote", True),
        ("uvx tinote lab", True),
        ("pip install -e .", False),
        ("pip install -e '.[gpu]'", False),
        ("pip install imageio-ffmpeg", False),
        ("pip uninstall tinote", False),
    ],
)
def test_what_counts_as_installing_from_an_index(line: str, wrong: bool) -> None:
    assert bool(FROM_AN_INDEX.search(line)) is wrong


def test_no_message_says_to_install_another_project() -> None:
    """The name is taken on the public index: messages name the library that is missing, the README an extra of the
    checkout.
    """
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=PROJECT, capture_output=True, text=True, check=True)
    names = [name for name in listed.stdout.split("\0") if name and name != "tests/test_gates.py"]
    assert len(names) > 100
    found = []
    for name in names:
        file = PROJECT / name
        if file.is_file():
            text = file.read_bytes().decode("utf-8", "replace")
            found += [f"{name}: {match[0]}" for match in FROM_AN_INDEX.finditer(text)]
    assert found == []


def test_the_workflow_and_the_hooks_run_the_projects_own_commands() -> None:
    workflow = (PROJECT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert re.search(r"^ +- run: \.ci/run$", workflow, re.MULTILINE) and (PROJECT / ".ci" / "run").is_file()
    site = (PROJECT / ".github" / "workflows" / "docs.yml").read_text(encoding="utf-8")
    tested, published = site.index("pytest --whole-site tests/browser/test_site.py"), site.index("deploy-pages")
    assert tested < site.index("sphinx-build -W --keep-going docs ") < published
    hooks = (PROJECT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    commands = re.findall(r"^ +entry: \.venv/bin/(\S+)", hooks, re.MULTILINE)
    assert commands == ["ruff", "ruff", "lint-imports", "pytest"]
    assert "tests/test_gates.py" in hooks


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "README.md"])
def test_the_guides_name_files_that_exist(name: str) -> None:
    guide = (PROJECT / name).read_text(encoding="utf-8")
    paths = re.findall(r"`((?:tinote|tests|benchmarks|notebooks|examples)/[\w./-]*)`", guide)
    paths += [path for path in re.findall(r"\]\(([^)#]+)\)", guide) if "://" not in path]
    assert len(set(paths)) > 20
    assert [path for path in paths if not (PROJECT / path).exists()] == []


def test_the_guide_names_the_folders_of_each_layer() -> None:
    guide = (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    layers = re.findall(r"^\| \d \| `(tinote/\w+/)`.*? \| (.*) \|$", guide, re.MULTILINE)
    assert len(layers) == 9
    for layer, words in layers:
        named = [PROJECT / layer / folder for folder in re.findall(r"`([\w/]+/)`", words)]
        assert [folder for folder in named if not folder.is_dir()] == []


def test_the_extension_for_jupyterlab_plays_views_with_the_scripts_of_today() -> None:
    """Mended by `python tinote/viz/labextensions/generate.py`."""
    place = PROJECT / "tinote/viz/labextensions/generate.py"
    command = "import json, runpy, sys; print(json.dumps(runpy.run_path(sys.argv[1])['generated']()))"
    done = subprocess.run([sys.executable, "-c", command, str(place)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    for name, text in json.loads(done.stdout).items():
        assert (place.parent / "tinote" / "static" / name).read_text("utf-8") == text, f"run {place.name}"
        assert "</script" not in text.lower() and "<!--" not in text


def test_the_changes_end_with_this_version() -> None:
    headings = re.findall(r"^## (.+)$", (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == "Unreleased" and project_table()["version"] in headings
    versions = re.split(r"^## ", (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert [one.partition("\n")[0] for one in versions if len(one.strip().splitlines()) > 61] == []
    cited = re.search(r"^version: (.*)$", (PROJECT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert cited is not None and cited[1] == project_table()["version"]


#: What playwright reads of a page once, as it is at that moment.
READS_ONCE = {
    "all_inner_texts",
    "all_text_contents",
    "bounding_box",
    "get_attribute",
    "inner_html",
    "inner_text",
    "input_value",
    "is_checked",
    "is_disabled",
    "is_editable",
    "is_enabled",
    "is_hidden",
    "is_visible",
    "text_content",
    "title",
}


def unwaited_reads(module: ast.Module, readers: frozenset[str] = frozenset()) -> list[tuple[int, str]]:
    """Where a test of a page reads it once after whatever it did, as (line, what): it should wait by `expect(locator)`,
    or read in a function that it gives to `poll`. What a page computes (`evaluate`) counts where it is asserted or
    returned. `readers` are functions of the tests that read a page; those inside of others are found.
    """
    found: list[tuple[int, str]] = []

    def look(node: ast.AST, used: bool, known: frozenset[str]) -> None:
        if isinstance(node, ast.Lambda) or (isinstance(node, ast.FunctionDef) and node.name in known):
            return
        if isinstance(node, ast.FunctionDef) and node in module.body:
            inner = {one for one in ast.walk(node) if isinstance(one, ast.FunctionDef)} - {node}
            known |= {one.name for one in inner if unwaited_reads(ast.Module([one], []), known)}
        if isinstance(node, ast.Call):
            method, name = getattr(node.func, "attr", None), getattr(node.func, "id", None)
            once = method in READS_ONCE or (method == "count" and not node.args)
            if once or name in known or (used and method in ("evaluate", "evaluate_all")):
                found.append((node.lineno, method or name))
        for child in ast.iter_child_nodes(node):
            look(child, used or isinstance(node, ast.Assert | ast.Return), known)

    look(module, False, readers)
    return found


@pytest.mark.parametrize(
    ("lines", "unwaited"),
    [
        ("assert button.is_visible()", True),
        ("texts = rows.all_inner_texts()", True),
        ("assert rows.count() == 3", True),
        ("assert page.evaluate('() => 1') == 1", True),
        ("found = [text for text in lit(page)]", True),
        ("assert lit(page) == []", True),
        ("poll(lambda: rows.count(), 3)", False),
        ("def width():\n        return graph.bounding_box()\n    poll(width, 3)", False),
        ("def width():\n        return graph.bounding_box()\n    assert width() == 3", True),
        ("expect(rows).to_have_count(3)", False),
        ("page.evaluate('() => act()')", False),
        ("assert text.count(',') == 3", False),
    ],
)
def test_what_counts_as_a_read_that_does_not_wait(lines: str, unwaited: bool) -> None:
    source = f"def lit(page):\n    return page.locator('.lit').all_inner_texts()\ndef test_it(page):\n    {lines}\n"
    assert bool(unwaited_reads(ast.parse(source), frozenset({"lit"}))) is unwaited


def test_browser_tests_wait_for_what_they_read() -> None:
    """On a busy machine what an action changes comes later than the next line of a test."""
    files = sorted((PROJECT / "tests" / "browser").glob("test_*.py"))
    modules = {file.name: ast.parse(file.read_text(encoding="utf-8")) for file in files}
    functions = [
        node
        for module in modules.values()
        for node in module.body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("test_") and not node.decorator_list
    ]
    readers: frozenset[str] = frozenset()
    while more := {node.name for node in functions if unwaited_reads(ast.Module([node], []), readers)}:
        readers |= more
    assert len(readers) > 3
    assert {name: found for name, module in modules.items() if (found := unwaited_reads(module, readers))} == {}
