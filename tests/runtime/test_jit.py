"""From LLVM text to machine code: linking, errors, views, remarks."""

from __future__ import annotations

import ctypes
import math
import os
import platform
import re
import struct
from random import Random

import numpy as np
import pytest

from tests.runtime.processors import reached
from tests.runtime.texts import ADD_ONE
from tinote.errors import CompilerBug, MachineError
from tinote.runtime import jit, library
from tinote.source import Span

AXPY = """
define void @axpy(ptr noalias %x, ptr noalias %y, float %a, i64 %n) !dbg !4 {
entry:
  br label %loop, !dbg !7
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %x.at = getelementptr float, ptr %x, i64 %i
  %y.at = getelementptr float, ptr %y, i64 %i
  %x.value = load float, ptr %x.at, !dbg !8
  %y.value = load float, ptr %y.at, !dbg !8
  %product = fmul float %x.value, %a, !dbg !8
  %sum = fadd float %product, %y.value, !dbg !8
  store float %sum, ptr %y.at, !dbg !8
  %i.next = add nuw i64 %i, 1
  %more = icmp ult i64 %i.next, %n
  br i1 %more, label %loop, label %exit, !dbg !7
exit:
  ret void
}
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!3}
!0 = distinct !DICompileUnit(language: DW_LANG_Python, file: !1, producer: "t", isOptimized: true, runtimeVersion: 0,
  emissionKind: LineTablesOnly)
!1 = !DIFile(filename: "Cell In[5]", directory: "")
!3 = !{i32 2, !"Debug Info Version", i32 3}
!4 = distinct !DISubprogram(name: "axpy", file: !1, line: 2, type: !5, unit: !0, spFlags: DISPFlagDefinition)
!5 = !DISubroutineType(types: !6)
!6 = !{}
!7 = !DILocation(line: 3, column: 5, scope: !4)
!8 = !DILocation(line: 4, column: 9, scope: !4)
"""


def test_compiled_code_runs_at_every_level() -> None:
    for level in range(4):
        binary = jit.compile_module(ADD_ONE, level=level, entry_points=("entry",))
        words = (ctypes.c_int64 * 20)()
        words[16] = 41
        assert ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(binary.address("entry"))(ctypes.addressof(words)) == 0
        assert words[16] == 42


def test_libm_resolves() -> None:
    text = """
declare double @ldexp(double, i32)
define double @f(double %x) {
  %r = call double @ldexp(double %x, i32 3)
  ret double %r
}
"""
    binary = jit.compile_module(text, entry_points=("f",))
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(binary.address("f"))(1.5) == 12.0


@pytest.mark.parametrize(
    ("name", "real", "kind"), [("f32", "float", ctypes.c_float), ("f64", "double", ctypes.c_double)]
)
def test_integer_powers(name: str, real: str, kind: type) -> None:
    text = f"""
declare {real} @llvm.powi.{name}.i32({real}, i32)
define {real} @f({real} %x, i32 %n) {{
  %y = call {real} @llvm.powi.{name}.i32({real} %x, i32 %n)
  ret {real} %y
}}
"""
    for level in (0, 3):
        binary = jit.compile_module(text, level=level, entry_points=("f",))
        power = ctypes.CFUNCTYPE(kind, kind, ctypes.c_int)(binary.address("f"))
        for base in (2.0, -0.5, 1.0):
            for exponent in (0, 1, 2, 3, 7, 10, -1, -3, 31):
                assert power(base, exponent) == base**exponent
        assert power(2.0, -(2**31)) == 0.0
        assert power(-1.0, -(2**31)) == 1.0


def test_doubles_become_halves_in_one_rounding() -> None:
    text = """
define void @f(ptr %x, ptr %y) {
  %value = load double, ptr %x
  %half = fptrunc double %value to half
  store half %half, ptr %y
  ret void
}
"""
    binary = jit.compile_module(text, entry_points=("f",))
    convert = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(binary.address("f"))
    source, target = ctypes.c_double(), (ctypes.c_uint8 * 2)()
    random = Random(1)
    halves = [struct.unpack("<e", struct.pack("<H", random.randrange(0x7C00)))[0] for _ in range(300)]
    # Half-way points and their neighbours are where two roundings go wrong.
    middles = [
        (a + struct.unpack("<e", struct.pack("<H", n + 1))[0]) / 2 for a in halves if (n := _half_bits(a)) < 0x7BFF
    ]
    values = halves + [m * (1 + e) for m in middles for e in (0.0, 2.0**-40, -(2.0**-40), 2.0**-52)]
    values += [0.0, -0.0, 65519.999, 5e-324, 1e-8, float("inf"), *(-value for value in middles)]
    for value in values:
        source.value = value
        convert(ctypes.addressof(source), ctypes.addressof(target))
        assert bytes(target) == struct.pack("<e", value), value
    for value, bits in ((65520.0, 0x7C00), (1e300, 0x7C00), (-1e300, 0xFC00)):
        source.value = value
        convert(ctypes.addressof(source), ctypes.addressof(target))
        assert int.from_bytes(bytes(target), "little") == bits
    source.value = float("nan")
    convert(ctypes.addressof(source), ctypes.addressof(target))
    assert math.isnan(struct.unpack("<e", bytes(target))[0])


def _half_bits(value: float) -> int:
    return struct.unpack("<H", struct.pack("<e", value))[0]


def test_equal_names_in_two_binaries_do_not_meet() -> None:
    texts = [f"define i32 @entry(ptr %b) {{\n ret i32 {n}\n}}" for n in (5, 6)]
    first, second = (jit.compile_module(text, entry_points=("entry",)) for text in texts)
    call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
    assert call(first.address("entry"))(None) == 5
    assert call(second.address("entry"))(None) == 6


def test_an_unresolved_symbol_is_an_exception_that_names_it() -> None:
    text = (
        "declare void @no_such_function()\ndefine i32 @entry(ptr %b) {\n call void @no_such_function()\n ret i32 0\n}"
    )
    with pytest.raises(CompilerBug, match="nothing defines no_such_function"):
        jit.compile_module(text, entry_points=("entry",))
    with pytest.raises(CompilerBug, match="linking"):
        jit.link_object(jit.emit_object(text), ("entry",))
    # The JIT is not harmed.
    assert jit.compile_module(ADD_ONE, entry_points=("entry",)).address("entry")


def test_library_functions_are_there_for_all_binaries() -> None:
    name = "tn_library.test_twice"
    library.define(name, f"define i32 @{name}(i32 %a) {{\n  %b = shl i32 %a, 1\n  ret i32 %b\n}}\n")
    text = "declare i32 @{0}(i32)\ndefine i32 @entry(ptr %b) {{\n %c = call i32 @{0}(i32 {1})\n ret i32 %c\n}}"
    for number in (4, 7):
        binary = jit.compile_module(text.format(name, number), entry_points=("entry",))
        assert ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(binary.address("entry"))(None) == 2 * number
    with pytest.raises(CompilerBug, match=r"nothing defines tn_library\.unknown"):
        jit.compile_module(text.format("tn_library.unknown", 1), entry_points=("entry",))


def test_a_missing_entry_point_is_an_exception() -> None:
    with pytest.raises(CompilerBug):
        jit.compile_module(ADD_ONE, entry_points=("entry", "other"))


@pytest.mark.parametrize(
    "text",
    ["define i32 @entry(", "define i32 @entry(ptr %b) {\n ret i64 0\n}", "define void @f() {\n br label %nowhere\n}"],
)
def test_bad_text_is_an_exception(text: str) -> None:
    with pytest.raises(CompilerBug, match="LLVM"):
        jit.compile_module(text, entry_points=("entry",))


def test_invalid_module_is_refused_by_the_verifier() -> None:
    text = """
define i32 @f(i1 %c) {
entry:
  br i1 %c, label %a, label %b
a:
  %x = add i32 1, 2
  br label %b
b:
  ret i32 %x
}
"""
    with pytest.raises(CompilerBug, match="dominate"):
        jit.compile_module(text, entry_points=("f",))


def test_objects_link_again() -> None:
    image = jit.emit_object("define i32 @entry(ptr %b) {\n ret i32 77\n}")
    binaries = [jit.link_object(image, ("entry",)) for _ in range(3)]
    for binary in binaries:
        assert ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(binary.address("entry"))(None) == 77
    with pytest.raises(KeyError):
        binaries[0].address("task")


def test_views_of_the_code() -> None:
    assert "<4 x float>" in (text := jit.optimise(AXPY, 3)) or "<8 x float>" in text or "<16 x float>" in text
    assert " x float>" not in jit.optimise(AXPY, 0)
    assert "axpy:" in jit.assembly(AXPY, 2)


def test_remarks_are_in_the_lines_of_the_cell() -> None:
    before = os.stat(2)
    found = jit.remarks(AXPY, 3)
    vectorised = [remark for remark in found if "vectorized loop" in remark.text]
    assert [remark.loc for remark in vectorised] == [Span("Cell In[5]", 3, 4)]
    assert "width" in vectorised[0].text
    assert os.fstat(2).st_ino == before.st_ino


def test_remarks_are_off_again_afterwards(capfd: pytest.CaptureFixture[str]) -> None:
    assert jit.remarks(AXPY, 3)
    jit.optimise(AXPY, 3)
    assert capfd.readouterr().err == ""
    assert jit.remarks(AXPY, 3)


def test_a_loop_that_cannot_be_vectorised_says_why() -> None:
    text = AXPY.replace("%product = fmul float %x.value, %a", "%product = call float @opaque(float %x.value)")
    found = jit.remarks("declare float @opaque(float)\n" + text, 3)
    assert any("loop not vectorized" in remark.text for remark in found)
    assert not any(remark.text.startswith("vectorized loop") for remark in found)


@pytest.fixture(params=["", "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"])
def cpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A processor to compile for; this one where it does not reach the level."""
    name = request.param if request.param in reached() else ""
    monkeypatch.setattr(jit, "_host", jit.host_like(name))
    return name


def test_code_for_less_than_this_machine(cpu: str) -> None:
    text = jit.assembly(AXPY, 3)
    binary = jit.compile_module(AXPY, entry_points=("axpy",))
    assert binary.object_bytes
    bits = jit.host().vector_bits
    assert bits == jit.host_like(cpu).vector_bits
    if jit.host().triple.startswith("x86_64"):
        wider = {128: r"%[yz]mm", 256: r"%zmm|%[xy]mm(1[6-9]|2\d|3[01])\b", 512: r"%tmm"}[bits]
        assert not re.search(wider, text)
    name = jit.machine_name()
    assert not cpu or f" {cpu} " in name


def test_conversions_of_f16_without_instructions_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every f16 and what lies between two of them, as NumPy converts them, on a processor before F16C."""
    monkeypatch.setattr(jit, "_host", jit.host_like("x86-64-v2" if reached() else ""))
    text = """
define void @both(ptr %wide, ptr %narrow, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %wide.at = getelementptr float, ptr %wide, i64 %i
  %narrow.at = getelementptr half, ptr %narrow, i64 %i
  %value = load float, ptr %wide.at
  %short = fptrunc float %value to half
  store half %short, ptr %narrow.at
  %long = fpext half %short to float
  store float %long, ptr %wide.at
  %next = add nuw i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %exit
exit:
  ret void
}
"""
    exact = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
    exact = exact[np.isfinite(exact)]
    between = (np.sort(exact)[1:].astype(np.float64) + np.sort(exact)[:-1]) / 2
    others = np.array([65519.9, 65520, 65536, 1e30, -1e30, np.inf, -np.inf, np.nan, 2e-8, 1e-40, -1e-40], np.float32)
    middle = between.astype(np.float32)
    wide = np.concatenate(
        [exact, middle, np.nextafter(middle, np.float32(9)), np.nextafter(middle, -others[3]), others]
    )
    with np.errstate(over="ignore"):
        expected = wide.astype(np.float16)
    narrow = np.empty(len(wide), np.float16)
    binary = jit.compile_module(text, entry_points=("both",))
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(binary.address("both"))
    run(wide.ctypes.data, narrow.ctypes.data, len(wide))
    same = (narrow.view(np.uint16) == expected.view(np.uint16)) | (np.isnan(narrow) & np.isnan(expected))
    assert same.all(), (wide[~same][:5], narrow[~same][:5], expected[~same][:5])
    np.testing.assert_array_equal(wide, expected.astype(np.float32))


def test_code_for_levels_has_names_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    names = []
    for name in ("", *reached()):
        monkeypatch.setattr(jit, "_host", jit.host_like(name))
        names.append(jit.machine_name())
    assert len(set(names)) == len(names)


def test_the_environment_names_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("", "native", *reached()):
        monkeypatch.setattr(jit, "_host", None)
        monkeypatch.setenv("TINOTE_CPU", name)
        assert jit.host() == jit.host_like(name)


def test_a_processor_that_is_not_here_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MachineError, match=r"names no processor that is known here: 'pentium'[\s\S]*native"):
        jit.host_like("pentium")
    less = {"sse4.2": True, "avx": True, "avx2": False, "fma": False}
    monkeypatch.setattr(jit.llvm, "get_host_cpu_features", lambda: less)
    monkeypatch.setattr(jit.llvm, "get_process_triple", lambda: "x86_64-unknown-linux-gnu")
    assert jit.host_like("x86-64-v2").vector_bits == 128
    with pytest.raises(MachineError, match="x86-64-v3 has avx2, fma"):
        jit.host_like("x86-64-v3")


def test_host() -> None:
    host = jit.host()
    assert host.threads >= 1
    assert host.vector_bits in (128, 256, 512)
    assert host.triple.split("-")[0].replace("arm64", "aarch64") == platform.machine().replace("arm64", "aarch64")
