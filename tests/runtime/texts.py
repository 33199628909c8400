"""Small kernels as LLVM text that follow the launch ABI, for the tests of the runtime."""

from __future__ import annotations

__all__ = ["ADD_ONE", "DECLARATIONS", "kernel", "parallel"]

DECLARATIONS = """
declare i32 @tn_parallel_for(ptr, ptr, i64, i64, i64)
declare i32 @tn_parallel_for_dynamic(ptr, ptr, i64, i64, i64)
declare i32 @tn_poll(ptr, i32)
declare i32 @tn_fail(ptr, i32, i32, i32, ptr)
declare void @tn_print(ptr, i32, i32, ptr)
declare ptr @tn_arena_alloc(ptr, i32, i64)
declare i64 @tn_arena_mark(ptr, i32)
declare void @tn_arena_release(ptr, i32, i64)
"""

# Slot 0: a count that the kernel raises by one.
ADD_ONE = """
define i32 @entry(ptr %block) {
  %slot = getelementptr i8, ptr %block, i64 128
  %old = load i64, ptr %slot
  %new = add i64 %old, 1
  store i64 %new, ptr %slot
  ret i32 0
}
"""


def kernel(body: str, *tasks: str) -> str:
    """A module whose entry has `body`, with further functions."""
    return DECLARATIONS + "\n".join(tasks) + f"\ndefine i32 @entry(ptr %block) {{\nentry:\n{body}\n}}\n"


def parallel(loop_body: str, *, grain: int = 1, dynamic: bool = False) -> str:
    """A module with one parallel loop over [slot 0, slot 1).

    `loop_body` sees `%block`, `%i` and `%tid`, and ends by branching to `%next` or returning.
    """
    task = f"""
define i32 @task(ptr %block, i64 %low, i64 %high, i32 %tid) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ %low, %entry ], [ %following, %next ]
  %more = icmp slt i64 %i, %high
  br i1 %more, label %body, label %done
body:
{loop_body}
next:
  %following = add i64 %i, 1
  br label %loop
done:
  ret i32 0
}}
"""
    function = "tn_parallel_for_dynamic" if dynamic else "tn_parallel_for"
    return kernel(
        f"""
  %low.at = getelementptr i8, ptr %block, i64 128
  %high.at = getelementptr i8, ptr %block, i64 136
  %low = load i64, ptr %low.at
  %high = load i64, ptr %high.at
  %status = call i32 @{function}(ptr %block, ptr @task, i64 %low, i64 %high, i64 {grain})
  ret i32 %status""",
        task,
    )
