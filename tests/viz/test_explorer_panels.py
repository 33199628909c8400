"""The explorer's panels: how tasks are scheduled, which loops are vectorised and why not the rest, what a
gradient costs.
"""

from __future__ import annotations

import pytest

import tinote as ti
from tests.viz.explored import line_of, located
from tinote.compiler.inspect.gradient_cost import gradient_costs
from tinote.compiler.inspect.schedule import plan_tasks
from tinote.compiler.inspect.stages import stages_of
from tinote.compiler.inspect.vectorisation_remarks import LoopVerdict, judge_loops
from tinote.ir.parse import parse
from tinote.remarks import LLVM, Remark
from tinote.source import Span
from tinote.viz.explorer.widget import Explored, ExplorerView, explore

HERE = __file__


@pytest.fixture
def kernels():
    """A kernel of several tasks, and one whose gradient saves values."""
    ti.init()
    y = ti.field(ti.f32, shape=1000)
    where = ti.field(ti.i32, shape=1000)
    x = ti.field(ti.f32, shape=16, needs_grad=True)
    weight = ti.field(ti.f32, shape=16, needs_grad=True)
    total = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def tasks(a: ti.f32):
        for i in y:  # scaled
            y[i] = y[i] * a + 1
        for i in range(1000):  # scattered
            y[where[i]] += 1.0  # atomic
        ti.loop_config(serialize=True)
        for i in range(1, 1000):  # serial
            y[i] = y[i - 1] * y[i]

    @ti.kernel
    def chain():
        for i in x:  # chained
            s = x[i]
            for k in range(5):  # turned
                s = s * ti.sin(s) + weight[k]
            total[None] += s

    tasks(0.5)
    return tasks, chain


def test_tasks_say_how_they_run(kernels):
    tasks, chain = kernels
    plans = tasks.tasks()
    assert [(p.parallel, p.iterations, [loop.width > 1 for loop in p.loops], p.checks) for p in plans] == [
        (True, 1000, [True], 0),
        (True, 1000, [False], 1),
        (False, 1, [False], 0),
    ]
    assert [p.span.line for p in plans[:2]] == [line_of(HERE, "# scaled"), line_of(HERE, "# scattered")]
    assert [p.reads for p in plans] == [("y",), ("where",), ("y",)]
    (atomic,) = plans[1].atomics
    assert (atomic.target, atomic.combine, atomic.plain, atomic.nested) == ("y", "add", False, False)
    assert atomic.span.line == line_of(HERE, "# atomic") and plans[0].atomics == ()
    (plan,) = plan_tasks(stages_of(chain.specialise()).last)
    (private,) = plan.privates
    assert (private.target, private.combine, private.nbytes) == ("total", "add", 4)
    assert plan.writes == ("total",)


def test_on_a_gpu_the_tasks_say_how_many_workgroups_they_run_in():
    ti.init(arch=ti.gpu, software_gpu=True)
    try:
        x = ti.field(ti.f32, shape=1000)

        @ti.kernel
        def halve(n: ti.i32):
            for i in x:
                x[i] *= 0.5
            for i in range(n):
                x[i % 1000] += 1
            x[0] = 3

        halve(3)
        plans = halve.tasks()
        assert plans[0].workgroups == (64, -(-1000 // 64)) and plans[2].workgroups == (1, 1)
        assert "16 of 64" in repr(plans) and "workgroups" in repr(plans) and "private copies" not in repr(plans)
        explored = Explored("halve", [ExplorerView("kernel", lambda: stages_of(halve.specialisations()[-1]))], 0)
        (table,) = explored.panel(0, "tasks")["tables"]
        at = table["columns"].index("workgroups")
        assert [row["cells"][at] for row in table["rows"]] == ["16 of 64", "at most 256 of 64", "1 of 1"]
    finally:
        ti.init()


def test_there_are_no_tasks_before_offloading(kernels):
    first = next(stage for stage in stages_of(kernels[1].specialise()).stages if stage.function is not None)
    assert plan_tasks(first.function) == ()


def test_llvm_judges_the_users_loops_alone(kernels):
    tasks, chain = kernels
    verdicts = {v.line: v for v in stages_of(tasks.specialisations()[-1]).judge()}
    assert verdicts[line_of(HERE, "# scaled")].width > 1
    scattered = verdicts[line_of(HERE, "# scattered")]
    assert scattered.width == 1 and scattered.reasons and "check" in scattered.advice
    serial = verdicts[line_of(HERE, "# serial")]
    assert serial.width == 1 and any("dependence" in reason for reason in serial.reasons)
    assert "earlier one" in serial.advice
    # What merges the private copies of a gradient is vectorised, but is no loop of the user's.
    kernel = line_of(HERE, "# chained")
    lines = {v.line for v in stages_of(chain.specialise(), gradient=True).judge()}
    assert lines and all(kernel <= line <= kernel + 4 for line in lines)


LOOPS = """\
buffer @x: f32 field (8)
func kernel():
  store @x[0i32], 0.0f32
  for %a: i32 in 0i32 .. 8i32:
    for %b: i32 in 0i32 .. 8i32:
      store @x[%b], 1.0f32
  for %c: i32 in 0i32 .. 8i32:
    store @x[%c], 1.0f32
  for %d: i32 in 0i32 .. 8i32:
    store @x[%d], 1.0f32
"""


def test_remarks_on_one_loop_become_one_verdict():
    texts = LOOPS.splitlines()

    def said(line: int, text: str) -> Remark:
        indent = len(texts[line - 1]) - len(texts[line - 1].lstrip())
        return Remark(LLVM, Span("cell", line, indent), text)

    found = judge_loops(
        [
            said(9, "vectorized loop (vectorization width: 4, interleaved count: 1)"),
            said(9, "vectorized loop (vectorization width: 16, interleaved count: 2)"),
            said(9, "vectorized loop (vectorization width: 8, interleaved count: 4)"),
            said(4, "loop not vectorized: call instruction cannot be vectorized"),
            said(4, "loop not vectorized: call instruction cannot be vectorized"),
            said(4, "loop not vectorized"),
            said(5, "loop not vectorized"),
            said(6, "Cannot SLP vectorize list: vectorization was impossible"),
            said(3, "vectorized loop (vectorization width: 8, interleaved count: 4)"),
            said(10, "loop not vectorized: cannot identify array bounds"),
            said(0, "vectorized loop (vectorization width: 8, interleaved count: 4)"),
            said(
                7,
                "loop not vectorized: unsafe dependent memory operations in loop. Use #pragma clang loop"
                " distribute(enable) to isolate them\nUnknown data dependence. Memory location is the same as"
                " accessed at a b.py:12:3",
            ),
        ],
        located(parse(LOOPS), "cell"),
    )
    dependent = "unsafe dependent memory operations in loop. Unknown data dependence. Memory location is the same as "
    assert [v[:6] for v in found] == [
        ("cell", 4, 2, 1, 1, ("call instruction cannot be vectorized",)),
        ("cell", 7, 2, 1, 1, (f"{dependent}accessed at line 12",)),
        ("cell", 9, 2, 16, 2, ("cannot identify array bounds",)),
    ]
    assert found[2].against == "in part not: cannot identify array bounds"
    assert isinstance(found[0], LoopVerdict) and "vector form" in found[0].advice and found[2].advice == ""


@ti.func
def weights(a):
    total = 0.0
    for k in range(40):  # in a function
        total += ti.sin(a * k)
    return total


def scattering():
    """Checks, atomics that are unrolled, a nest, and a loop of a function."""
    x, where, y = ti.field(ti.f32, 1000), ti.field(ti.i32, 1000), ti.field(ti.f32, (64, 64))

    @ti.kernel
    def run():
        for i in x:
            for k in ti.static(range(5)):
                x[where[i] + k] += weights(x[i])
        for i, j in y:
            y[i, j] = 2.0 * y[i, j]

    return run


def searching():
    """A loop that leaves at different times, in masked lanes."""
    x = ti.field(ti.f32, 4096)

    @ti.kernel
    def run():
        for i in x:
            n = 0
            while x[i] > 1.0 and n < 50:
                x[i] *= 0.5
                n += 1

    return run


def carrying():
    """A loop that runs in order, with another one inside."""
    x = ti.field(ti.f32, 1000)

    @ti.kernel
    def run():
        ti.loop_config(serialize=True)
        for i in range(1, 1000):
            s = 0.0
            for k in range(100):
                s += x[k]
            x[i] = x[i - 1] + s

    return run


@pytest.mark.optimised
@pytest.mark.parametrize("level", [1, 3])
@pytest.mark.parametrize("make", [scattering, searching, carrying])
def test_all_tables_and_badges_say_the_same_of_a_loop(make, level):
    ti.init(opt_level=level, offline_cache=False)
    try:
        kernel = make()
        kernel()
        loops, tasks = kernel.loops(), kernel.tasks()
        explored = Explored("run", [ExplorerView("kernel", lambda: stages_of(kernel.specialisations()[-1]))], 0)
        vectorisation, schedule = explored.panel(0, "loops"), explored.panel(0, "tasks")
    finally:
        ti.init()
    with open(HERE, encoding="utf-8") as file:
        texts = file.read().splitlines()
    assert loops and all(texts[one.line - 1].lstrip().startswith(("for ", "while ")) for one in loops)
    cells = [tuple(row["cells"]) for row in vectorisation["tables"][0]["rows"]]
    assert sorted(cells) == sorted(loops._rows())
    assert sorted(note["text"] for note in vectorisation["notes"]) == sorted(one.summary for one in loops)
    for task, row, shown in zip(tasks, schedule["tables"][0]["rows"], tasks._rows(), strict=True):
        assert task.schedule == row["cells"][2] == shown[2]
        assert set(task.loops) <= set(loops)
        assert (row["tone"] == "good") <= any(one.width > 1 for one in task.loops)
        for one in task.loops:
            if one.line == task.span.line and task.parallel:
                assert task.schedule.startswith(f"parallel, {one.summary}")
    # A loop is in the task that runs it.
    assert {one for task in tasks for one in task.loops} == set(loops)
    reasons = " ".join(one.against for one in loops)
    assert "explicitly request" not in reasons and ("opt_level=1" in reasons) == (level == 1 and make is not searching)


def test_a_gradient_says_what_it_saves_and_computes_again(kernels):
    stages = stages_of(kernels[1].specialise(), gradient=True)
    costs = gradient_costs(stages.unlowered, stages.last)
    body = line_of(HERE, "# turned") + 1
    carried, sine = costs.saved
    for saved in costs.saved:
        assert (saved.type, saved.size, saved.count, saved.per_iteration) == ("f32", 4, 5, True)
    assert carried.name == "s" and body - 1 <= carried.span.line <= body and sine.span.line == body
    again = {found.span.line: (found.again, found.factors) for found in costs.recomputed}
    assert again[body][0] > 0 and again[body][1] > 0  # the cosine is computed for the derivative only
    assert {(a.target, a.how) for a in costs.accumulated} == {("x.grad", "plain"), ("weight.grad", "private")}
    assert next(a.nbytes for a in costs.accumulated if a.how == "private") == 64


def test_the_panel_and_grad_cost_say_the_same(kernels):
    stages = stages_of(kernels[1].specialise(), gradient=True)
    cost = kernels[1].grad_cost()
    # The explorer shows the gradient that shares nothing with its launch.
    assert gradient_costs(stages.unlowered, stages.last) == (cost.saved, cost.recomputed, cost.accumulated, (), ())


def test_a_primal_has_no_costs(kernels):
    stages = stages_of(kernels[1].specialise())
    assert gradient_costs(stages.unlowered, stages.last) == ((), (), (), (), ())


def test_panels_are_tables_whose_rows_lead_to_the_source(kernels):
    tasks, chain = kernels
    explored = Explored("tasks", [ExplorerView("kernel", lambda: stages_of(tasks.specialisations()[-1]))], 0)
    view = explored.view(0)
    assert [name for name, _ in view["panels"]] == ["tasks", "loops"]
    texts = [line for source in view["sources"] for line in source["lines"]]
    for name in ("tasks", "loops"):
        panel = explored.panel(0, name)
        for table in panel["tables"]:
            for row in table["rows"]:
                assert len(row["cells"]) == len(table["columns"])
                assert row["place"][0] >= 0
    (table,) = explored.panel(0, "tasks")["tables"]
    assert [texts[row["place"][0]].split("#")[-1].strip() for row in table["rows"][:2]] == ["scaled", "scattered"]
    assert [row["tone"] for row in table["rows"]] == ["good", "costly", ""]
    notes = explored.panel(0, "loops")["notes"]
    assert {texts[note["row"]].split("#")[-1].strip(): note["tone"] for note in notes} == {
        "scaled": "good",
        "scattered": "costly",
        "serial": "costly",
    }
    (decided,) = [t for t in explored.panel(0, "loops")["tables"] if t["title"] == "What the compiler decided"]
    cells = [(texts[row["place"][0]].split("#")[-1].strip(), row["tone"], *row["cells"][1:]) for row in decided["rows"]]
    assert ("scaled", "good", "mark_vector_loops") in [row[:3] for row in cells]
    assert ("serial", "", "mark_vector_loops") in [row[:3] for row in cells if "another one may read" in row[3]]
    assert "costs" in dict(explore(chain, gradient=True)._explored.view(1)["panels"])


def test_a_panel_that_fails_says_so(kernels):
    stages = stages_of(kernels[1].specialise())._replace(judge=lambda: 1 / 0)
    assert (
        "ZeroDivisionError" in Explored("x", [ExplorerView("kernel", lambda: stages)], 0).panel(0, "loops")["problem"]
    )
