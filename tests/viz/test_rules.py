"""The rule view without a browser: what it says, how it would mend a program, what stays, what its page holds."""

from __future__ import annotations

import io
import itertools
import json
import linecache
import pickle
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from PIL import Image

import tinote as ti
from tests.autodiff.user import overwrites
from tests.autodiff.validated import collected, debugging, field  # noqa: F401
from tinote.errors import AccessRuleError, TinoteError
from tinote.lang.ad.access_rules.violations import Fix
from tinote.source import Span
from tinote.viz.access_rules.edits import edited
from tinote.viz.access_rules.facts import MOST_COLUMNS, MOST_STEPS, as_text, findings
from tinote.viz.access_rules.widget import RuleView
from tinote.viz.draw.pictures import CARD_MARGIN

pytestmark = overwrites


def marked(found: dict[str, Any]) -> list[tuple[str, str]]:
    """What is marked in the source, as (kind, text under the mark)."""
    rows = [row for source in found["sources"] for row in source["rows"]]
    return [(m["kind"], row["text"][m["begin"] : m["end"]]) for row in rows for m in row.get("marks", ())]


def concerned(found: dict[str, Any]) -> np.ndarray:
    """How many elements lie in each cell of the map."""
    counts = np.zeros(found["map"]["size"], int)
    for row, column, length, count, _ in found["map"]["runs"]:
        counts[row, column : column + length] = count
    return counts


@pytest.fixture
def changed_later() -> tuple[Any, Any, Callable[[int], None]]:
    """`x` (4 × 6), `loss`, and a program that reads all of `x`, launches others, and changes a part."""
    x, loss = field("x", 4, 6), field("loss")

    @ti.kernel
    def energy():
        for i, j in x:
            loss[None] += x[i, j] ** 2

    @ti.kernel
    def idle():
        pass

    @ti.kernel
    def scale():
        for i, j in x:
            if i == 1 and j > 3:
                x[i, j] *= 0.5 + 1.0

    def run(steps: int) -> None:
        energy()
        for _ in range(steps):
            idle()
        scale()

    return x, loss, run


def test_both_lines_the_launches_and_the_elements(changed_later):
    _, loss, run = changed_later
    (found,) = findings(collected(loss, lambda: run(3)))
    assert (found["rule"], found["times"]) == (1, 1)
    assert marked(found) == [("read", "x[i, j]"), ("write", "x[i, j] *= 0.5 + 1.0")]
    assert [(s["kind"], s["when"], s["name"], s["does"]) for s in found["chain"]] == [
        ("read", "launch 1", "energy", "reads x[1, 4]"),
        ("between", "launches 2 to 4", "idle × 3", ""),
        ("write", "launch 5", "scale", "changes x[1, 4]"),
    ]
    assert concerned(found).tolist() == [[0] * 6, [0, 0, 0, 0, 1, 1], [0] * 6, [0] * 6]
    assert found["map"]["count"] == "2 of 24 elements"


def test_the_functions_of_a_long_file_are_shown_and_no_more(changed_later):
    _, loss, run = changed_later
    (found,) = findings(collected(loss, lambda: run(0)))
    (source,) = found["sources"]
    texts = [row["text"].strip() for row in source["rows"] if "text" in row]
    assert texts[0] == "def energy():" and "def scale():" in texts and "def idle():" not in texts
    assert texts[-1] == "x[i, j] *= 0.5 + 1.0"
    assert sum(row.get("gap", 1) for row in source["rows"]) == len(linecache.getlines(__file__))


def test_the_fixes_are_edits_with_what_they_cost(changed_later):
    _, loss, run = changed_later
    (found,) = findings(collected(loss, lambda: run(0)))
    split, tape = found["fixes"]
    assert (split["before"], split["after"]) == ("x[i, j] *= 0.5 + 1.0", "x_new[i, j] = x[i, j] * (0.5 + 1.0)")
    assert split["memory"].startswith(f"{8 * 24} bytes") and "'x'" in split["declare"]
    assert tape["title"] == "Leave it to the tape" and "after" not in tape
    assert tape["memory"].startswith(f"At most {8 * 24} bytes: one copy")
    # A tape really keeps no more than the two columns that `scale` may write to.
    with ti.ad.Tape(loss) as unchecked:
        run(0)
    assert unchecked.copied_bytes == 8 * (4 * 2)


def test_arrays_of_others_cost_a_copy_for_each_content_that_is_read():
    x, loss, numbers = field("x"), field("loss"), np.ones((2, 3))

    @ti.kernel
    def read(a: ti.types.ndarray(dtype=ti.f64, ndim=2)):
        for i, j in a:
            loss[None] += x[None] * a[i, j]

    @ti.kernel
    def change(a: ti.types.ndarray(dtype=ti.f64, ndim=2)):
        a[1, 2] = 3.0

    def run() -> None:
        read(numbers)
        read(numbers)
        change(numbers)

    (found,) = findings(collected(loss, run))
    assert found["element"] == "a[1, 2]" and concerned(found).tolist() == [[0, 0, 0], [0, 0, 1]]
    assert found["fixes"][1]["memory"].startswith("At most 48 bytes for each launch that reads")
    with ti.ad.Tape(loss) as unchecked:
        run()
    assert unchecked.copied_bytes == 48  # one for both
    with ti.ad.Tape(loss) as unchecked:
        read(numbers)
        numbers[0, 0] = 7.0
        run()
    assert unchecked.copied_bytes == 2 * 48


def test_a_rule_that_is_broken_at_each_step_is_one_finding():
    x, loss = field("x", 5), field("loss")

    @ti.kernel
    def step():
        for i in x:
            loss[None] += x[i] ** 2
        for i in x:
            x[i] = 0.0

    def run() -> None:
        for _ in range(4):
            step()

    violations = collected(loss, run)
    found = findings(violations)
    assert sum(one["times"] for one in found) == len(violations) > len(found)
    assert max(one["times"] for one in found) == 4
    assert len({json.dumps(marked(one)) for one in found}) == len(found)


def test_a_long_chain_is_shortened():
    x, loss = field("x", 3), field("loss")

    @ti.kernel
    def read():
        loss[None] += x[0] ** 2

    @ti.kernel
    def one():
        pass

    @ti.kernel
    def other():
        pass

    @ti.kernel
    def change():
        x[0] = 1.0

    def run() -> None:
        read()
        for _ in range(20):
            one()
            other()
        change()

    (found,) = findings(collected(loss, run))
    assert len(found["chain"]) <= MOST_STEPS + 2
    shown = [re.findall(r"\d+", step["when"]) for step in found["chain"]]
    # Every launch is counted in one of the steps.
    assert shown[0] == ["1"] and shown[-1] == ["42"]
    assert all(int(after[0]) == int(before[-1]) + 1 for before, after in itertools.pairwise(shown))


def test_maps_of_other_shapes():
    point, line, deep, loss = field("point"), field("line", 1000), field("deep", 3, 2, 4), field("loss")
    shifted = field("shifted", 3, 3, offset=(-1, 7))
    vectors = ti.Vector.field(2, ti.f64, shape=3, needs_grad=True, name="vectors")

    @ti.kernel
    def read():
        loss[None] += point[None] + line[999] + line[0] + deep[1, 1, 2] + shifted[1, 8] + vectors[2].sum()

    @ti.kernel
    def write():
        point[None] = 1.0
        line[0] = 1.0
        line[999] = 1.0
        deep[1, 1, 2] = 1.0
        shifted[1, 8] = 1.0
        vectors[2][1] = 1.0

    found = {one["map"]["field"]: one for one in findings(collected(loss, lambda: (read(), write())))}
    assert found["point"]["map"]["rank"] == 0 and found["point"]["element"] == "point[None]"
    rows, columns = found["line"]["map"]["size"]
    assert rows == 1 and columns <= MOST_COLUMNS
    assert concerned(found["deep"]).tolist() == [[0, 0], [0, 1], [0, 0]] and found["deep"]["map"]["deep"] == 4
    assert found["deep"]["map"]["count"] == "1 of 24 elements"
    assert concerned(found["shifted"]).tolist() == [[0, 0, 0], [0, 0, 0], [0, 1, 0]]
    assert found["shifted"]["map"]["offset"] == [-1, 7] and found["shifted"]["element"] == "shifted[1, 8]"
    assert concerned(found["vectors"]).tolist() == [[0, 0, 1]]
    assert found["vectors"]["map"]["count"] == "1 of 3 elements"
    assert found["vectors"]["fixes"][0]["after"] == "vectors_new[2][1] = 1.0"


def test_a_million_elements_stay_small():
    x, loss = field("x", 1000, 1000), field("loss")

    @ti.kernel
    def read():
        for i, j in x:
            loss[None] += x[i, j]

    @ti.kernel
    def write():
        for i, j in x:
            if i < 500:
                x[i, j] = 0.0

    (found,) = findings(collected(loss, lambda: (read(), write())))
    assert concerned(found).sum() == 500_000
    assert len(json.dumps(found)) < 20_000


EDITS = """\
%%magic
def f(self):
    for i in x:
        x[i] = 2 * g(x[i],
                     3)
        self.x[i].y -= a + b; y[i] **= n
        v[i][0] = y[i] if i else 0
        ti.atomic_max(x[i], 3)
        k = x[i]
        « = 'é'; z[«] += 1
"""


@pytest.mark.parametrize(
    ("line", "under", "fix", "wanted"),
    [
        (4, "x[i]", Fix.ACCUMULATE, "x[i] += 2 * g(x[i],\n                     3)"),
        (4, "x[i]", Fix.DOUBLE_BUFFER, "x_next[i] = 2 * g(x[i],\n                     3)"),
        (6, "self.x[i].y", Fix.SPLIT, "self.x_new[i].y = self.x[i].y - (a + b)"),
        (6, "y[i] **=", Fix.DOUBLE_BUFFER, "y_next[i] = y[i] ** n"),
        (6, "y[i] **=", Fix.ACCUMULATE, None),
        (7, "v[i]", Fix.SPLIT, "v_new[i][0] = y[i] if i else 0"),
        (8, "ti.atomic", Fix.SPLIT, None),
        (9, "x[i]", Fix.SPLIT, None),
        (10, "z[k]", Fix.SPLIT, "z_new[k] = z[k] + 1"),
        (4, "x[i]", Fix.TAPE, None),
        (99, "", Fix.SPLIT, None),
    ],
)
def test_edits_keep_what_the_user_wrote(line, under, fix, wanted):
    text = EDITS.replace("«", "k")
    rows = text.splitlines(keepends=True)
    linecache.cache["<edits>"] = (len(text), None, rows, "<edits>")
    column = len(rows[line - 1][: rows[line - 1].index(under)].encode()) if line <= len(rows) else 0
    found = edited(Span("<edits>", line, column), fix)
    assert (found.after if found else None) == wanted
    assert found is None or found.before in text


def test_text_that_is_gone_or_no_python_gives_no_edit():
    assert edited(Span("<nobody knows>", 3), Fix.SPLIT) is None
    linecache.cache["<broken>"] = (9, None, ["x[i] = (\n"], "<broken>")
    assert edited(Span("<broken>", 1), Fix.SPLIT) is None


def test_an_inlined_function_shows_where_it_was_called():
    x, loss = field("x", 2), field("loss")

    @ti.func
    def put(i, value):
        x[i] = value

    @ti.kernel
    def both():
        loss[None] += x[0] ** 2
        put(0, 3.0)

    (found,) = findings(collected(loss, both))
    assert ("call", "put(0, 3.0)") in marked(found) and ("write", "x[i]") in marked(found)
    assert [step["kind"] for step in found["chain"]] == ["both"]


def test_text_and_picture_stay(changed_later):
    _, loss, run = changed_later
    with ti.ad.Tape(loss, validation="collect") as tape:
        run(2)
    view = ti.viz.violations(tape)
    data, metadata = view._repr_mimebundle_()
    text = data["text/plain"]
    assert "x[i, j] *= 0.5 + 1.0\n" in text and "^^^^^^^ read here, by launch 1, 'energy'" in text
    assert "launch 1 'energy' → launches 2 to 3 'idle × 2' → launch 4 'scale'" in text
    picture = np.asarray(Image.open(io.BytesIO(view.picture())).convert("RGB")).astype(int)
    assert picture.shape[1] == 2 * (metadata["image/png"]["width"] - 2 * CARD_MARGIN)
    # The elements are drawn in the colour of writing: 2 of 24 cells of a map that is at most 150 points high.
    red = (abs(picture - np.array([0xB0, 0x2A, 0x1E])).max(axis=2) < 12).sum()
    assert red > 2 * 40 * 40


def test_nothing_found_and_nothing_checked(changed_later):
    _, loss, _ = changed_later
    with ti.ad.Tape(loss, validation="collect") as tape:
        pass
    view = ti.viz.violations(tape)
    assert view.text() == as_text([]) == "no violation of the access rules"
    assert view.picture().startswith(b"\x89PNG")
    with ti.ad.Tape(loss) as unchecked:
        pass
    with pytest.raises(TinoteError, match=r'did not check.*\n.*validation="collect"'):
        ti.viz.violations(unchecked)
    with pytest.raises(TinoteError, match="tape must be a Tape, not a ScalarField"):
        ti.viz.violations(loss)


def test_the_page_holds_everything_and_escapes_it(changed_later, tmp_path):
    _, loss, run = changed_later
    (violation,) = collected(loss, lambda: run(0))
    hostile = "x[i] = '</script><script>alert(1)</script><!--'\n"
    linecache.cache["<hostile>"] = (len(hostile), None, [hostile], "<hostile>")
    span = violation.later.span
    object.__setattr__(violation.later, "span", span._replace(file="<hostile>", line=1, column=0, end_line=1))
    text = RuleView([violation]).save(tmp_path / "new" / "rules.html").read_text(encoding="utf-8")
    assert text.count("</script") == 3 and "<!--" not in text
    assert not re.search(r"""(?:src|href)\s*=|\bimport\b\s*[({"']|@import|url\(""", text)
    embedded = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert embedded and "alert(1)" in json.dumps(json.loads(embedded[1]))


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    made = InteractiveShell.instance()
    made.reset(new_session=True)
    made.run_line_magic("load_ext", "tinote")
    yield made
    made.run_line_magic("unload_ext", "tinote")


CELL = """\
import tinote as ti
ti.init(arch=ti.cpu, debug=True)
x = ti.field(ti.f32, shape=3, needs_grad=True, name="x")
loss = ti.field(ti.f32, shape=(), needs_grad=True, name="loss")

@ti.kernel
def read():
    for i in x:
        loss[None] += x[i] ** 2

@ti.kernel
def change():
    x[1] = 4.0

with ti.ad.Tape(loss, validation=True):
    read()
    change()
"""


def test_a_validated_tape_shows_it_by_itself(shell, monkeypatch):
    shown: list[Any] = []
    monkeypatch.setattr("tinote.viz.access_rules.widget.display", shown.append)
    monkeypatch.setattr("tinote.viz.access_rules.widget.audience", lambda: None)
    error = shell.run_cell(CELL, store_history=True).error_in_exec
    assert isinstance(error, AccessRuleError) and shown == [error]
    data, _ = shell.display_formatter.format(error)
    assert "x[1] = 4.0" in data["text/plain"] and "image/png" in data
    assert shell.display_formatter.format(pickle.loads(pickle.dumps(error)))[0].keys() == {"text/plain"}
    # No other error, and nothing once the extension is gone.
    shell.run_cell("1 / 0")
    shell.run_line_magic("unload_ext", "tinote")
    assert isinstance(shell.run_cell(CELL, store_history=True).error_in_exec, AccessRuleError)
    assert shown == [error]
    shell.run_line_magic("load_ext", "tinote")


def test_in_a_terminal_the_error_says_it(shell, capsys):
    shell.run_cell(CELL, store_history=True)
    printed = capsys.readouterr()
    assert (printed.out + printed.err).count("access rule 1") == 1
