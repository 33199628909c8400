"""`ti.ad.find_nan`: the operation, the line and the iteration in which the first NaN or infinity arose."""

import inspect
import math
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import array, scalar, session  # noqa: F401
from tests.properties.compare import difference, run
from tests.properties.smooth import generate_smooth
from tinote.compiler.passes.checks.check_finite import check_finite
from tinote.compiler.pipeline import run_pipeline, steps_for
from tinote.compiler.requests import Checks, Derivative, Request
from tinote.config import Config
from tinote.errors import DifferentiationError, KernelFiniteError
from tinote.ir.interpret import interpret
from tinote.ir.memory import DictMemory
from tinote.ir.nodes import MemoryOp
from tinote.ir.parse import parse
from tinote.ir.verify import Form, verify


def _line(report: Any) -> str:
    """The source line of the first finding, without what stands around it."""
    span = report.first.span
    return inspect.getsource(inspect.getmodule(_line)).splitlines()[span.line - 1].strip()  # type: ignore[arg-type]


def _differentiated(loss: Any, *launches: Any, keep: bool = False) -> Any:
    with ti.ad.Tape(loss, keep=keep) as tape:
        for launch in launches:
            launch()
    return tape


def test_the_backward_pass_alone_fails():
    x, y, loss = array(5), array(5), scalar()

    @ti.kernel
    def roots():
        for i in x:
            y[i] = 2.0 * ti.sqrt(x[i])

    @ti.kernel
    def total():
        for i in y:
            loss[None] += y[i]

    x.from_numpy(np.array([4.0, 1.0, 9.0, 0.0, 0.0]))
    tape = _differentiated(loss, roots, total)
    assert math.isinf(x.grad[3])
    report = ti.ad.find_nan(tape)
    assert report.primal is None and not report.searched_primal
    assert report.first.backward and (report.first.launch, report.first.kernel) == (1, "roots")
    assert report.first.iteration == {"i": 3}
    assert _line(report) == "y[i] = 2.0 * ti.sqrt(x[i])"


@pytest.mark.parametrize("keep", [False, True])
def test_a_division_that_only_its_derivative_cannot_bear(keep: bool):
    """1 / x is finite where its derivative, -1 / x**2, is not."""
    x, loss = array(2, 3), scalar()

    @ti.kernel
    def inverse():
        for i, j in x:
            loss[None] += 1.0 / x[i, j]

    x.fill(1.0)
    x[1, 2] = 1e-200
    report = ti.ad.find_nan(_differentiated(loss, inverse, keep=keep))
    assert report.primal is None and report.searched_primal is keep
    assert report.first.iteration == {"i": 1, "j": 2}
    assert report.first.message.startswith("in the derivative of div: ") and report.first.message.endswith("inf")
    assert _line(report) == "loss[None] += 1.0 / x[i, j]"
    assert "launch 1 of 1, the gradient of 'inverse'" in repr(report) and "^^^" in repr(report)


def _overwriting() -> tuple[Any, Any, list[Any]]:
    x, y, loss = array(5), array(5), scalar()

    @ti.kernel
    def roots(less: float):
        for i in x:
            y[i] = ti.sqrt(x[i] - less)

    @ti.kernel
    def doubled():
        for i in x:
            x[i] = y[i] * 2.0

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i]

    return x, loss, [lambda: roots(1.0), doubled, lambda: roots(1.0), doubled, total]


def test_a_program_that_overwrites_is_run_again_from_what_each_launch_read():
    x, loss, launches = _overwriting()
    x.from_numpy(np.array([20.0, 21.0, 1.09, 23.0, 24.0]))
    tape = _differentiated(loss, *launches, keep=True)
    values, gradients = x.to_numpy(), x.grad.to_numpy()
    report = ti.ad.find_nan(tape)
    first = report.primal
    assert first is not None and not first.backward
    assert (first.launch, first.launches, first.kernel, first.iteration) == (3, 5, "roots", {"i": 2})
    assert first.message.startswith("sqrt(-0.39") and first.message.endswith(" is nan")
    assert _line(report) == "y[i] = ti.sqrt(x[i] - less)"
    assert report.backward is not None and report.backward.backward
    # Nothing has changed, and it can be asked again.
    np.testing.assert_array_equal(values, x.to_numpy())
    np.testing.assert_array_equal(gradients, x.grad.to_numpy())
    assert loss.grad[None] == 1.0
    x.fill(7.0)
    assert repr(ti.ad.find_nan(tape)) == repr(report)
    assert (x.to_numpy() == 7.0).all()


@pytest.mark.parametrize("on_overwrite", ["auto", "unchecked"])
def test_what_is_written_behind_the_block_is_not_read(on_overwrite: Any):
    x, y, loss = array(4), array(4), scalar()
    view = y.numpy_view()

    @ti.kernel
    def quotient():
        for i in x:
            loss[None] += x[i] * x[i] / y[i]

    x.fill(2.0)
    y.from_numpy(np.array([1.0, 1.0, 0.0, 4.0]))
    with ti.ad.Tape(loss, keep=True, on_overwrite=on_overwrite) as tape:
        quotient()
    x.fill(math.nan)
    view[:] = 3.0
    report = ti.ad.find_nan(tape)
    assert report.primal is not None and report.primal.message == "4.0 / 0.0 is inf"
    assert report.primal.iteration == {"i": 2} and report.backward is not None
    assert (y.to_numpy() == 3.0).all() and np.isnan(x.to_numpy()).all()


def test_slices_of_one_field_are_run_again_from_what_they_held():
    """Launches read and write parts of the same field, alternately."""
    x, loss = array(2, 3), scalar()

    @ti.kernel
    def step(t: int, less: float):
        for i in range(3):
            x[t % 2, i] = ti.sqrt(x[(t + 1) % 2, i] - less) * x[t % 2, i]

    @ti.kernel
    def total():
        for i in range(3):
            loss[None] += x[0, i]

    def run() -> None:
        step(1, 1.0)  # 2.0 to 3.0
        step(0, 0.5)  # 5.0 to about 7.9
        x[0, 1] = 0.25
        step(1, 0.5)
        step(0, 0.0)
        total()

    x.from_numpy(np.array([[5.0, 5.0, 5.0], [1.5, 1.5, 1.5]]))
    with ti.ad.Tape(loss, keep=True) as tape:
        run()
    report = ti.ad.find_nan(tape)
    assert report.primal is not None
    assert (report.primal.launch, report.primal.iteration) == (3, {"i": 1})
    assert report.primal.message == "sqrt(-0.25) is nan"


def test_a_tape_that_let_go_of_values_is_refused():
    x, loss, launches = _overwriting()
    x.fill(30.0)
    tape = _differentiated(loss, *launches)
    with pytest.raises(DifferentiationError, match="let go of overwritten values") as refused:
        ti.ad.find_nan(tape)
    assert "keep=True" in refused.value.hint


def test_nothing_is_found_where_nothing_is():
    x, loss, launches = _overwriting()
    x.fill(30.0)
    report = ti.ad.find_nan(_differentiated(loss, *launches, keep=True))
    assert not report and report.first is None
    assert repr(report) == "no NaN and no infinity in the reverse sweep through 5 launches"


def test_what_a_select_does_not_take_is_no_finding():
    x, loss = array(4), scalar()

    @ti.kernel
    def guarded():
        for i in x:
            loss[None] += ti.select(x[i] > 0.0, 1.0 / x[i], 2.0) * ti.min(1.0 / x[i], 5.0)
            loss[None] += ti.log(x[i] - 2.0)

    x.from_numpy(np.array([4.0, 3.0, 0.0, 6.0]))
    report = ti.ad.find_nan(_differentiated(loss, guarded, keep=True))
    assert _line(report) == "loss[None] += ti.log(x[i] - 2.0)"
    assert report.first.message == "log(-2.0) is nan" and report.first.iteration == {"i": 2}


def test_inner_loops_and_branches():
    x, loss = array(3), scalar()

    @ti.kernel
    def nested():
        for i in x:
            s = 1.0
            for j in range(4):
                if j == 2:
                    s *= ti.acos(x[i] + j)
                k = 0
                while k < 2:
                    s += 0.1 * s
                    k += 1
            loss[None] += s

    x.from_numpy(np.array([-2.0, -1.5, 0.5]))
    report = ti.ad.find_nan(_differentiated(loss, nested, keep=True))
    assert report.primal is not None
    assert report.primal.message == report.backward.message == "acos(2.5) is nan"
    assert report.primal.iteration == {"i": 2, "j": 2}
    assert _line(report) == "s *= ti.acos(x[i] + j)"


def test_finite_numbers_that_add_up_to_infinity():
    ti.init(arch=ti.cpu)
    x, loss = ti.field(ti.f32, shape=8, needs_grad=True), ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i]

    x.fill(1e38)
    report = ti.ad.find_nan(_differentiated(loss, total, keep=True))
    assert report.primal is not None and report.backward is None
    assert report.primal.iteration == {"i": 3}
    assert report.primal.message == "loss[None] becomes inf when 1e+38 is put to it"


def test_what_came_from_outside_is_named_by_its_element():
    p = ti.Vector.field(2, ti.f64, shape=(4,), offset=(-2,), needs_grad=True)
    loss = scalar()

    @ti.kernel
    def squares():
        for i in p:
            loss[None] += p[i][0] * p[i][1]

    p.fill(1.0)
    p[1][1] = math.nan
    report = ti.ad.find_nan(_differentiated(loss, squares, keep=True))
    assert report.primal.message == "p[1][1] holds nan"
    assert report.backward.message == "p[1][1] holds nan"


def test_numpy_arguments_are_found_again_as_they_were():
    loss = scalar()

    @ti.kernel
    def weigh(w: ti.types.ndarray(), x: ti.template()):
        for i in x:
            loss[None] += w[i] / x[i]

    x = array(3)
    x.from_numpy(np.array([1.0, 2.0, 0.0]))
    weights = np.ones(3)
    tape = _differentiated(loss, lambda: weigh(weights, x), keep=True)
    weights[:] = 0.0
    report = ti.ad.find_nan(tape)
    assert report.primal.message == "1.0 / 0.0 is inf" and report.primal.iteration == {"i": 2}
    assert (weights == 0.0).all()


def test_a_gradient_of_its_own():
    x = ti.field(ti.f64, shape=3, needs_grad=True)
    y, loss = array(3), scalar()

    @ti.kernel
    def squares():
        for i in x:
            y[i] = ti.sqrt(x[i]) * x[i]

    @ti.kernel
    def total():
        for i in y:
            loss[None] += y[i]

    @ti.ad.grad_replaced
    def compute():
        squares()

    @ti.ad.grad_for(compute)
    def back():
        for i in range(3):
            x.grad[i] = 1.0 / max(x[i], 1e-300) * 1e300

    x.from_numpy(np.array([1.0, 1e-200, 1.0]))
    report = ti.ad.find_nan(_differentiated(loss, compute, total, keep=True))
    assert report.first.kernel == "compute" and report.first.message == (
        "this gradient of its own leaves inf in x.grad[1]"
    )


def test_the_kernels_of_a_gradient_of_its_own_are_searched():
    x, y, loss = array(3), array(3), scalar()

    @ti.kernel
    def roots():
        for i in x:
            y[i] = ti.sqrt(x[i])

    @ti.kernel
    def total():
        for i in y:
            loss[None] += y[i]

    @ti.ad.grad_replaced
    def compute():
        roots()

    @ti.ad.grad_for(compute)
    def back():
        roots.grad()

    x.from_numpy(np.array([1.0, 0.0, 1.0]))
    report = ti.ad.find_nan(_differentiated(loss, compute, total, keep=True))
    assert report.first.backward and report.first.kernel == "compute" and report.first.iteration == {"i": 1}
    assert _line(report) == "y[i] = ti.sqrt(x[i])"


def test_the_step_of_a_checkpointed_loop_is_reported():
    x, loss = scalar(), scalar()

    @ti.kernel
    def step():
        for _ in range(1):
            x[None] = ti.sqrt(x[None] - 1.0)

    @ti.kernel
    def measure():
        loss[None] += x[None]

    x[None] = 2.0
    with ti.ad.Tape(loss, keep=True) as tape:
        ti.ad.checkpoint(lambda t: step(), 4)
        measure()
    assert math.isnan(x.grad[None])
    report = ti.ad.find_nan(tape)
    assert report.backward.kernel.startswith("checkpoint of")
    assert [note.text for note in report.backward.notes] == ["in step(3) of this loop"]


def test_it_is_asked_behind_the_block_and_about_a_tape():
    x, loss = array(2), scalar()

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i]

    with ti.ad.Tape(loss) as tape:
        total()
        with pytest.raises(DifferentiationError, match="inside of a tape"):
            ti.ad.find_nan(tape)
    with pytest.raises(DifferentiationError, match="looks into a tape"):
        ti.ad.find_nan(loss)


def test_plain_python_finds_the_same():
    ti.init(arch=ti.python, default_fp=ti.f64)
    x, loss = array(3), scalar()

    @ti.kernel
    def logs():
        for i in x:
            loss[None] += ti.log(x[i])

    x.from_numpy(np.array([1.0, 2.0, -1.0]))
    report = ti.ad.find_nan(_differentiated(loss, logs, keep=True))
    assert report.primal.message == "log(-1.0) is nan" and report.primal.iteration == {"i": 2}


# ---- the pass

_PROGRAM = """
buffer @x: f32 field (4)
buffer @y: f32 field (4)
func f():
  %a: f32 = load @x[1i32]
  %b: f32 = sqrt %a
  %c: f32 = div 1.0f32, %b
  %d: f32 = add %b, %c
  store @y[0i32], %d
"""


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (4.0, ""),
        (0.0, "1.0 / 0.0 is inf"),
        (-1.0, "sqrt(-1.0) is nan"),
        (math.inf, "x[1] holds inf"),
    ],
)
def test_the_first_operation_is_blamed(value: float, message: str):
    fn = parse(_PROGRAM)
    checked = check_finite(fn)
    verify(checked, Form.SCALAR)
    memory = DictMemory()
    x, y = (op.buffer for op in fn.region.body if isinstance(op, MemoryOp))
    memory.store(x, (1,), value)
    if message:
        with pytest.raises(KernelFiniteError) as stopped:
            interpret(checked, (), memory)
        assert stopped.value.message == message
    else:
        interpret(checked, (), memory)
        assert memory.load(y, (0,)) == 2.5


def test_checks_change_nothing_where_all_is_finite():
    """Random smooth programs and their gradients compute the same with the checks in them."""
    strict = Config(debug=True, overflow_check=False, fast_math=False)
    compared = 0
    for seed in range(8):
        program = generate_smooth(seed)
        for derivative in (Derivative.NONE, Derivative.REVERSE):
            plain, checked = [steps_for(Request(derivative, checks=checks)) for checks in (Checks.NONE, Checks.FINITE)]
            try:
                wanted = run(program, run_pipeline(program.function, plain, strict)[0])
            except DifferentiationError:
                continue
            found = run(program, run_pipeline(program.function, checked, strict)[0])
            assert difference(program, wanted, found) == "", (seed, derivative)
            compared += 1
    assert compared > 8
