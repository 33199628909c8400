"""Every name of the dialect that existing programs use has a use here, and does what it should."""

from __future__ import annotations

import linecache
import re
from typing import Any

import pytest

import tinote as ti
from tests.lang.named_expressions import EXPRESSIONS
from tests.lang.named_uses import HEADING, USES

#: What about 1,200 programs use, most used first; a few that are Python's own or stand for something else are left out.
NAMES = """
kernel field i32 f32 place i root dense grad to_numpy types ndarray Vector static func init Matrix ndrange fill
template ad Tape grouped f64 TaichiCompilationError sin ij vector FwdMode all GUI dual math vec3 random lazy_grad norm
sync atomic_add from_numpy TaichiSyntaxError real_func max vec2 cast min loop_config j exp matrix i64 f16 gpu cos
data_oriented struct u32 lazy_dual sqrt u64 transpose floor TaichiTypeError Window dataclass dot k cpu ESCAPE i16
normalized u8 vec4 reset sum outer_product log atomic_min Struct atomic_max u16 copy_from mat2 zero abs norm_sqr select
trace PRESS EXIT cross atan2 u1 svd ijk grad_for get_scalar_field determinant tanh grad_replaced polar_decompose AOS
DOWN FieldsBuilder LEFT LMB Layout MOTION MatrixNdarray PLYWriter PrefixSumExecutor RIGHT RMB SHIFT SOA SPACE
ScalarField TaichiAssertionError TaichiIndexError TaichiNameError TaichiRuntimeError TaichiRuntimeTypeError UP
VectorNdarray WHEEL acos add algorithms asin atomic_and atomic_mul atomic_or atomic_sub atomic_xor axes bit_cast
bit_shr ceil clamp clear_all_gradients clear_kernel_profiler_info clz cmul cols diag eig exception float16 float32
fract frexp get_max_num_indices i8 identity ijkl inf int32 int64 is_integral is_signed isinf isnan ivec2 ivec3 jk l
length log2 logical_not loop_unique mat3 mat4 misc mix nan no_grad normalize one ops parallel_sort pi popcnt pow
print_kernel_profiler_info profiler radians randn raw_div raw_mod ref rgb_to_hex rot_by_axis rot_yaw_pitch_roll
rotation2d rotation3d round rows rsqrt scale sign smoothstep solve static_assert static_print stop_grad sym_eig tan
translate uint16 uint32 uint64 uint8 unit util uvec2 uvec3 vdir x64 var parent snode destroy circles circle lines line
triangles triangle rect text arrow_field point_field set_image clear show get_event get_events is_pressed
get_cursor_pos get_key_event slider button label imread imwrite imshow imresize VideoManager
"""


def run(text: str, file: str) -> dict[str, Any]:
    """The namespace of a program, whose source stays known under this name."""
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, file, "exec"), namespace)
    return namespace


@pytest.mark.parametrize("topic", USES)
def test_uses(topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    for number, use in enumerate(USES[topic].split("---\n")):
        run(HEADING + use, f"{topic} {number}.py")


def test_expressions_give_the_same_in_kernels_and_in_python() -> None:
    body = "".join([f"    found[{at}] = {text}\n" for at, text in enumerate(EXPRESSIONS)])
    program = f"found = ti.field(ti.f64, shape={len(EXPRESSIONS)})\n@ti.kernel\ndef work():\n{body}work()\n"
    namespace = run(HEADING + program, "expressions.py")
    for (text, wanted), compiled in zip(EXPRESSIONS.items(), namespace["found"].to_numpy(), strict=True):
        assert compiled == pytest.approx(wanted, rel=1e-6), text
        assert float(eval(text, namespace)) == pytest.approx(wanted, rel=1e-6), text


def test_each_name_has_a_use() -> None:
    words = set(re.findall(r"\w+", " ".join([HEADING, *USES.values(), *EXPRESSIONS])))
    assert [name for name in NAMES.split() if name not in words] == []


def test_names_that_are_loaded_when_used_are_listed() -> None:
    assert {"ad", "math", "linalg", "tools", "viz", "GUI", "svd", "field"} <= set(dir(ti))
    assert not {"Any", "annotations", "importlib", "sys", "TYPE_CHECKING"} & set(dir(ti))
    assert set(ti.ad.__all__) <= set(dir(ti.ad))
