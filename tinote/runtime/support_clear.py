"""LLVM text of a kernel that the runtime brings along: memory is set to zero by all threads.

    tn_clear(block) -> status
        slot 0: where the memory is; slot 1: how many bytes

One core writes slower than memory takes it; and what a thread has cleared lies in its own cache.
"""

from __future__ import annotations

__all__ = ["TEXT"]

TEXT = """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define i32 @tn_clear(ptr %block) {
  %count.at = getelementptr i8, ptr %block, i64 $CLEAR_COUNT
  %count = load i64, ptr %count.at
  %status = call i32 @parallel(ptr %block, ptr @clear_piece, i64 0, i64 %count, i64 $CLEAR_GRAIN, i1 false)
  ret i32 %status
}

define internal i32 @clear_piece(ptr %block, i64 %low, i64 %high, i32 %index) {
  %memory.at = getelementptr i8, ptr %block, i64 $SLOTS
  %memory = load ptr, ptr %memory.at
  %first = getelementptr i8, ptr %memory, i64 %low
  %count = sub i64 %high, %low
  call void @llvm.memset.p0.i64(ptr %first, i8 0, i64 %count, i1 false)
  ret i32 0
}
"""
