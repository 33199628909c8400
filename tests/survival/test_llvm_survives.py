"""What LLVM would end the process over: code that is not valid, and code that its own passes stumble over."""

from __future__ import annotations

from tests.survival.child import run_child

INVALID = """
from tinote.errors import CompilerBug
from tinote.runtime.jit import compile_module

TEXT = '''
define i32 @entry(i1 %c) !dbg !4 {
  br i1 %c, label %a, label %b, !dbg !7
a:
  %x = add i32 1, 2, !dbg !7
  br label %b, !dbg !7
b:
  ret i32 %x, !dbg !7
}
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!3}
!0 = distinct !DICompileUnit(language: DW_LANG_Python, file: !1, producer: "t", isOptimized: true, runtimeVersion: 0,
  emissionKind: LineTablesOnly)
!1 = !DIFile(filename: "cell", directory: "")
!3 = !{i32 2, !"Debug Info Version", i32 3}
!4 = distinct !DISubprogram(name: "entry", scope: !1, file: !1, line: 1, type: !5, unit: !0,
  spFlags: DISPFlagDefinition)
!5 = !DISubroutineType(types: !6)
!6 = !{null}
!7 = !DILocation(line: 2, column: 5, scope: !4)
'''
try:
    compile_module(TEXT, entry_points=("entry",))
except CompilerBug as error:
    assert "dominate" in str(error)
    print("refused")
"""

CONVERSIONS = """
from tests.codegen.native import execute
from tinote.compiler.codegen.llvm import module as llvm
from tinote.compiler.pipeline import run_pipeline, steps_for
from tinote.compiler.requests import PRIMAL
from tinote.config import Config
from tinote.ir.memory import DictMemory
from tinote.ir.parse import parse

TEXT = '''
buffer @f: u8 field (2)
buffer @g: f16 field (4)
buffer @q: i32[3] array (?)
func f(%n: i32):
  for parallel %i: i32 in 0i32 .. 4i32:
    %b: u8 = load @f[0i32]
    %s: i32 = sub %b, %n
    %x: f64 = add %s, 0.75f64
    %y: f16 = load @g[%i]
    %v: u8[3] = pack %x, %y, 0i32
    store @q[%i], %v
'''
source = parse(TEXT)
fn, _ = run_pipeline(source, steps_for(PRIMAL), Config(fast_math=False))
buffers = {b.name: b for b in llvm.generate(fn).layout.buffers}
contents = {"f": [9, 0], "g": [1.5, -2.0, 300.0, 7.25], "q": [[5] * 3] * 4}
memory = DictMemory({buffers[name]: held for name, held in contents.items()})
execute(fn, (2,), memory)
print(memory.nested(buffers["q"]))
"""


def test_invalid_code_with_debug_information_is_refused() -> None:
    assert run_child(INVALID).strip() == "refused"


def test_conversions_from_floats_of_several_widths_in_one_vector_loop() -> None:
    assert run_child(CONVERSIONS).strip() == "[[7, 1, 0], [7, 0, 0], [7, 255, 0], [7, 7, 0]]"
