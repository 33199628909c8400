"""The life of a kernel as a user sees it: its instances, what is inside of them, and where its time goes."""

from __future__ import annotations

import functools
import gc
import re
import timeit
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.compiler.driver import binary_cache
from tinote.compiler.frontend.builtins.table import BUILTINS
from tinote.compiler.inspect.stages import stages_of
from tinote.compiler.protocol import FUNCTIONS, PYTHON_FUNCTIONS
from tinote.config import Config
from tinote.errors import FieldError, KernelTypeError, TinoteError
from tinote.lang.kernels import machine_ceilings
from tinote.lang.kernels.kernel import is_current
from tinote.runtime.profile import profile

SCALE = 3


@ti.kernel
def scaled(a: ti.i32) -> ti.i32:
    return a * SCALE


@ti.kernel
def chosen(a: ti.i32) -> ti.i32:
    s = 0
    for i in range(a):
        s = max(s, i)
    return s


@ti.func
def chosen_scale(a: Any) -> Any:
    return a * SCALE


@pytest.fixture(autouse=True)
def fresh() -> Any:
    ti.init()
    profile.clear()
    yield
    ti.reset()


# instances


def test_decorating_compiles_nothing() -> None:
    @ti.kernel
    def run(n: ti.template()):
        undefined_name(n)  # noqa: F821  found out when it is compiled

    assert run.instances == []
    assert "not called" in repr(run.instances)
    assert "not called" in run.instances._repr_html_()


def test_instances_list_signature_time_calls_and_hits() -> None:
    x, y = ti.field(ti.f32, shape=4), ti.field(ti.f32, shape=4)

    @ti.kernel
    def add(field: ti.template(), amount: ti.f32, k: ti.template()):
        for i in field:
            field[i] += amount * k * 0.12345

    add(x, 42, 2)
    add(x, 1, 2)
    add(y, 42, 2)
    add(y, 42, 3)
    first, second, third = add.instances
    assert first.signature == f"add(field={x!r}, amount: f32, k=2)"
    assert second.signature == f"add(field={y!r}, amount: f32, k=2)"
    assert third.signature.endswith("k=3)")
    assert [i.calls for i in add.instances] == [2, 1, 1]
    assert [i.cache_hits for i in add.instances] == [0, 1, 0], "the second has the same machine code as the first"
    assert first.seconds > 0 and second.seconds > 0
    lines = repr(add.instances).splitlines()
    assert lines[0].split("  ")[0] == "signature"
    assert len(lines) == 4
    assert re.search(r"current +\d+\.\d ms +memory +1 +1$", lines[2])
    page = add.instances._repr_html_()
    assert page.count("<tr>") == 4
    assert "&lt;field x: f32" in page, "text of the user's is escaped"
    assert repr(first).startswith(f"<instance {first.signature}: 2 calls, made in ")


def test_a_gradient_counts_in() -> None:
    x = ti.field(ti.f32, shape=(), needs_grad=True)

    y = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def run():
        y[None] += 0.73105857 * x[None] * x[None]  # a number of its own: no other test has made this machine code

    run()
    before = run.instances[0].seconds
    run.grad()
    assert run.instances[0].seconds > before
    assert "compiled, gradient: compiled" in repr(run.instances)


def test_a_changed_capture_keeps_both_versions() -> None:
    assert scaled(2) == 6
    globals()["SCALE"] = 10
    try:
        assert scaled(2) == 20
        older, newer = scaled.instances
        assert (older.calls, newer.calls) == (1, 1)
        assert (is_current(older), is_current(newer)) == (False, True)
        assert [
            line.split("  ")[1:] != [] and ("older" in line) for line in repr(scaled.instances).splitlines()[1:]
        ] == [
            True,
            False,
        ]
        assert scaled.specialisations() == [newer.specialisation]
    finally:
        globals()["SCALE"] = 3
    assert scaled(2) == 6
    assert older.calls == 2, "the first version is used again"
    assert len(scaled.instances) == 2


def test_a_name_of_pythons_that_becomes_the_users_recompiles() -> None:
    assert chosen(5) == 4
    globals()["max"] = ti.min
    try:
        assert chosen(5) == 0
    finally:
        del globals()["max"]
    assert chosen(5) == 4
    assert len(chosen.instances) == 2


def test_asking_what_has_changed_costs_no_more_than_a_few_calls_of_python() -> None:
    """Minima of many, taken in turns: neither the machine's speed nor what else runs on it is in them."""
    x, y = ti.field(ti.f32, shape=4), ti.field(ti.f32, shape=4)

    @ti.kernel
    def run(a: ti.f32):
        for i in x:
            x[i] = y[i] + chosen_scale(a) * SCALE

    run(1)
    (instance,) = run.instances
    captured = len(instance.specialisation.captures)
    assert captured >= 4
    asked, called = [], []
    for _ in range(200):
        asked.append(timeit.timeit(functools.partial(is_current, instance), number=50))
        called.append(timeit.timeit(lambda: None, number=50))
    assert min(asked) / captured < 10 * min(called)


def test_whole_field_helpers_have_no_kernels_to_compile() -> None:
    x = ti.field(ti.f32, shape=4)

    @ti.kernel
    def run():
        for i in x:
            x[i] += 1

    run()
    (instance,) = run.instances
    x.fill(2)
    x.from_numpy(x.to_numpy())
    run()
    assert run.instances == [instance]
    assert instance.calls == 2


def test_helpers_compile_nothing_for_any_shape() -> None:
    before = binary_cache.compiled
    for length in (1, 5, 64):
        x, y = ti.field(ti.i32, shape=length), ti.field(ti.i32, shape=length)
        v = ti.Vector.field(2, ti.f32, shape=(length, 3), needs_grad=True)
        a = ti.Vector.ndarray(3, ti.f64, shape=length)
        x.fill(2)
        y.copy_from(x)
        x[0] = 1
        ti.algorithms.parallel_sort(x, y)
        ti.algorithms.PrefixSumExecutor(length).run(y)
        assert y[length - 1] == 2 * length
        v.grad.fill(1.5)
        v.from_numpy(v.grad.to_numpy())
        assert v.numpy_view().sum() == 1.5 * 6 * length
        a.fill(1)
        assert a.to_numpy().shape == (length, 3)
    assert binary_cache.compiled == before


# looking inside


def make() -> Any:
    x = ti.field(ti.f32, shape=64, needs_grad=True)
    U = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def energy(k: ti.f32):
        for i in x:
            U[None] += k * x[i] ** 2

    return energy


def test_ir_of_every_stage() -> None:
    energy = make()
    energy(1)
    first, last = energy.ir("front end"), energy.ir()
    assert "func energy(%k: f32)" in first
    assert "for " in first
    assert "task parallel" in last
    assert "task parallel" not in first
    assert energy.ir("offload") != energy.ir("lower_access")
    assert energy.ir("fold") == energy.ir(energy_last_fold(energy))
    assert repr(last) == str(last), "it shows as it is at the end of a cell"
    assert "reverse" not in str(energy.ir("infer_types"))
    assert re.search(r"(store|add) @x.grad", energy.ir("reverse", gradient=True))
    assert not re.search(r"(store|add) @x.grad", last)
    with pytest.raises(TinoteError, match=r"no stage of 'energy' is called 'fuse'") as caught:
        energy.ir("fuse")
    assert "front end, infer_types" in caught.value.hint


def energy_last_fold(kernel: Any) -> str:
    stages = stages_of(kernel.instances[-1].specialisation).stages
    return [f"{s.group}: {s.name}" for s in stages if s.name == "fold"][-1]


def test_llvm_and_assembly() -> None:
    energy = make()
    energy(1)
    plain, optimised = energy.llvm(), energy.llvm(optimised=True)
    assert "define i32 @entry(ptr" in plain
    assert "define" in optimised
    assert plain != optimised
    assert re.search(r"^ +ret", energy.asm(), re.MULTILINE)
    assert energy.llvm(gradient=True) != plain
    assert energy.asm(gradient=True) != energy.asm()


def test_looking_before_the_first_call() -> None:
    energy = make()
    assert "task parallel" in energy.ir()
    assert energy.instances[0].calls == 0

    @ti.kernel
    def run(x: ti.template()):
        x[None] = 1

    for look in (run.ir, run.llvm, run.asm):
        with pytest.raises(KernelTypeError, match="has not been called yet"):
            look()
    run(ti.field(ti.i32, shape=()))
    assert "func run" in run.ir()


def test_looking_at_a_method() -> None:
    class Sim:
        def __init__(self) -> None:
            self.x = ti.field(ti.i32, shape=3)

        @ti.kernel
        def run(self):
            for i in self.x:
                self.x[i] = i

    sim = Sim()
    sim.run()
    assert "func run" in sim.run.ir()
    assert len(sim.run.instances) == 1
    with pytest.raises(AttributeError):
        _ = sim.run.nonsense


def test_print_ir(capsys: pytest.CaptureFixture[str]) -> None:
    ti.init(print_ir=True)
    energy = make()
    energy(1)
    printed = capsys.readouterr().out
    titles = re.findall(r"^==== (.*) \(\d+\.\d ms\) ====$", printed, re.MULTILINE)
    assert titles[0] == "energy: front end"
    assert "energy: offload" in titles
    assert printed.count("func energy(") == len(titles)
    energy(2)
    assert capsys.readouterr().out == "", "it is compiled once"
    energy.grad(1)
    assert "energy, gradient: reverse" in capsys.readouterr().out


# the profiler


def profiled() -> Any:
    x = ti.field(ti.f32, shape=20_000)
    U = ti.field(ti.f32, shape=())

    @ti.kernel
    def work(n: ti.i32) -> ti.f32:
        for i in x:
            for _ in range(n):
                x[i] = ti.sin(x[i]) + 1
        U[None] = 1
        for i in x:
            U[None] += x[i]
        return U[None]

    return work


def test_the_profiler_attributes_time_to_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    ti.init(kernel_profiler=True)
    work = profiled()
    for _ in range(3):
        work(200)
    table = ti.profiler.kernel_profiler_info()
    assert table[0].task == "work.0", "the loop that does all the work comes first"
    assert {row.count for row in table} == {3}
    assert table[0].least > 10 * sum(row.least for row in table if row.task != "work.0" and row.task != "work.2")
    assert table[0].least <= table[0].mean <= table[0].most <= table[0].total
    lines = open(__file__, encoding="utf-8").read().splitlines()  # noqa: SIM115
    assert lines[table[0].span.line - 1].strip() == "for i in x:"
    ti.profiler.print_kernel_profiler_info()
    printed = capsys.readouterr().out.splitlines()
    assert re.split(" {2,}", printed[0])[:4] == ["task", "place", "share", "launches"]
    assert printed[1].startswith("work.0")
    assert table._repr_html_().count("<tr>") == len(table) + 1
    whole = ti.profiler.query_kernel_profiler_info("work")
    assert whole is not None
    assert whole.count == 3
    assert whole.total == sum(row.total for row in table)
    assert (whole.counter, whole.min, whole.max) == (3, 1e-6 * whole.least, 1e-6 * whole.most)
    assert whole.avg == pytest.approx(1e-6 * whole.total / 3)
    one = ti.profiler.query_kernel_profiler_info("work.0")
    assert one == table[0]
    assert ti.profiler.get_kernel_profiler_total_time() == pytest.approx(1e-9 * whole.total)
    ti.profiler.print_kernel_profiler_info("trace")
    assert len(capsys.readouterr().out.splitlines()) == 1 + 3 * len(table)
    with pytest.raises(TinoteError, match="no profiler mode"):
        ti.profiler.print_kernel_profiler_info("all")
    ti.profiler.clear_kernel_profiler_info()
    assert ti.profiler.kernel_profiler_info() == []
    assert ti.profiler.query_kernel_profiler_info("work") is None
    assert "nothing was launched yet" in repr(ti.profiler.kernel_profiler_info())


def test_the_profiler_says_what_part_of_the_ceiling_a_task_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("bandwidth", "peak"):
        monkeypatch.setattr(machine_ceilings, name, lambda size, config, seen: 1e9)
    ti.init(kernel_profiler=True)
    x, count = ti.field(ti.f32, shape=1000), ti.field(ti.i32, shape=())
    array = np.ones(4096, np.float32)

    @ti.kernel
    def known(by: ti.f32, a: ti.types.ndarray()):
        for i in x:
            x[i] += by
        for i in range(a.shape[0]):
            a[i] = by

    @ti.kernel
    def draws():
        for i in x:
            x[i] = ti.random()

    @ti.kernel
    def of_memory():
        for i in range(count[None]):
            x[i] = 1.0

    def row(task: str) -> tuple[Any, str]:
        table = ti.profiler.kernel_profiler_info()
        return next((one, cells[-1]) for one, cells in zip(table, table._rows(), strict=True) if one.task == task)

    def expected(nbytes: int, nanoseconds: int) -> str:
        return f"{100 * nbytes / nanoseconds:.0f} %"

    for _ in range(3):
        known(1.0, array)
        draws()
        of_memory()
    for task, nbytes in (("known.0", 8 * 1000), ("known.2", 4 * 4096), ("draws.0", 4 * 1000)):
        measured, part = row(task)
        assert measured.least_of_last == measured.least and part == expected(nbytes, measured.least)
    assert row("of_memory.0")[1] == "—", "what the launch found in memory is not known any more"
    # Other arguments: the times of earlier launches say nothing about these.
    known(1.0, array[:64])
    measured, part = row("known.2")
    assert part == expected(4 * 64, measured.least_of_last)
    del known
    gc.collect()
    assert row("known.2")[1] == "—"


def test_a_launch_that_fails_is_measured_up_to_there() -> None:
    ti.init(kernel_profiler=True)
    x = ti.field(ti.i32, shape=4)

    @ti.kernel
    def run(n: ti.i32):
        for i in x:
            x[i] = i
        for i in range(n):
            x[i] = 1
        for i in x:
            x[i] = 7

    run(4)
    with pytest.raises(IndexError):
        run(5)
    last = ti.profiler.query_kernel_profiler_info("run.2")
    assert last is not None
    assert last.least == 0, "the task after the fault did not run"


def test_the_profiler_is_off_unless_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    profiled()(1)
    ti.profiler.print_kernel_profiler_info()
    assert "ti.init(kernel_profiler=True)" in capsys.readouterr().out
    assert "tn_now" not in profiled().llvm()


def test_gradients_are_measured_too() -> None:
    ti.init(kernel_profiler=True)
    energy = make()
    energy(1)
    energy.grad(1)
    assert {row.kernel for row in ti.profiler.kernel_profiler_info()} == {"energy", "energy.grad"}


def test_every_function_of_the_language_means_one_thing_in_kernels() -> None:
    """A primitive, a composition, or what the front end expands."""
    makers = {"Vector", "Matrix", "Struct", "func", "pyfunc", "real_func"}
    expanded = {name for name in BUILTINS if "." not in name and name not in makers}
    for name, function in FUNCTIONS.items():
        kinds = [hasattr(function, f"__tinote_{kind}__") for kind in ("primitive", "composed")]
        assert sum([*kinds, name in expanded]) == 1, name
    assert expanded <= FUNCTIONS.keys()
    assert set(PYTHON_FUNCTIONS.values()) <= set(FUNCTIONS.values())


# options


@pytest.mark.parametrize("name", ["num_threads", "opt_level", "random_seed", "memory_limit"])
def test_options_that_are_no_numbers_are_refused_at_once(name: str) -> None:
    for wrong in ("3", 1.5, [1]):
        with pytest.raises(FieldError, match=f"{name} must be"):
            ti.init(**{name: wrong})


@pytest.mark.parametrize(
    "options", [{"num_threads": 10**9}, {"random_seed": -(10**100)}, {"memory_limit": -5}, {"memory_limit": 10**30}]
)
def test_numbers_that_are_far_out_do_no_harm(options: dict[str, int]) -> None:
    ti.init(**options)
    x = ti.field(ti.f32, shape=5000)

    @ti.kernel
    def run() -> ti.i32:
        n = 0
        for i in x:
            x[i] = ti.random()
            n += x[i] < 1
        return n

    assert run() == 5000


def test_existing_programs_set_what_has_nothing_to_steer_here() -> None:
    ti.init(check_out_of_bound=False, ad_stack_size=16, default_cpu_block_dim=32, timeline=True, num_compile_threads=2)
    assert not ti.cfg.bounds_check
    with pytest.raises(FieldError, match="no option 'ad_stak_size'; did you mean 'ad_stack_size'"):
        ti.init(ad_stak_size=16)


@pytest.mark.parametrize("name", ["arch", *Config._fields])
def test_options_are_not_assigned(name: str) -> None:
    """An assignment would change what `ti.cfg` says, and nothing else."""
    ti.init()
    before = getattr(ti.cfg, name)
    with pytest.raises(FieldError, match=rf"ti\.init\({name}=…\)") as caught:
        setattr(ti.cfg, name, None)
    assert caught.value.span.file == __file__
    assert getattr(ti.cfg, name) == before
    with pytest.raises(AttributeError, match="no option 'bound_check'"):
        ti.cfg.bound_check = False
