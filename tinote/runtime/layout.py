"""Where everything lies in a launch block, in the thread pool and in a print ring.

The numbers are those of the runtime's C structures; generated code and Python use them by these names. All are byte
offsets unless they say otherwise. A block pointer points just past a private header, so that offsets of generated code
start at zero and the runtime's own words are negative.
"""

from __future__ import annotations

# --- made from native/layout.c: begin
# --- launch block, known to generated code
STATUS = 0  # i32, the first fault's code
SITE = 4  # i32, the first fault's site
PAYLOAD = 8  # i64[6], values that the fault's message shows
PAYLOAD_WORDS = 6  # how many
STOP = 56  # i32, non-zero: every thread of this launch stops with that status
POOL = 64  # ptr
PRINT_RING = 72  # ptr or null
SCRATCH = 80  # ptr, private copies
SCRATCH_STRIDE = 88  # i64, bytes a thread
NUM_THREADS = 96  # i32
LAST_TICK = 104  # i64, ns
MEMORY_LIMIT = 120  # i64, bytes
SLOTS = 128  # 8 bytes a slot from here on

# --- launch block, the runtime's own header
HEADER_BYTES = 128  # it ends where the block begins
ENTRY = -128  # ptr, the kernel's entry
DRAIN = -104  # PyObject *, called to drain prints, or null
COMMITTED = -72  # i64, bytes of arena chunks held

# --- stop word and statuses
STOP_IDLE = -1  # the stop word while nothing runs: a late stop request finds nothing to stop
STATUS_OK = 0  # no fault
STATUS_INTERRUPT = 1  # stopped, by a signal's handler or another thread
STATUS_BOUNDS = 2  # an index out of its range
STATUS_DIVISION = 3  # an integer division by zero
STATUS_ASSERT = 4  # a false assertion
STATUS_MEMORY = 5  # no memory for saved values
STATUS_OVERFLOW = 6  # a number that its type does not hold
STATUS_LOST = 7  # forked inside a launch: the child has lost the workers that held pieces of it
STATUS_FINITE = 8  # a NaN or an infinity where none may be

# --- thread pool
MAX_THREADS = 256  # workers and the caller
POOL_WORKERS = 8  # i32, workers started

# --- print ring
RING_CAPACITY = 32  # i64, words, a power of two
RING_WORDS = 64  # the records
# --- made from native/layout.c: end

#: How a number of each type stands in an 8-byte slot: format characters of `struct`, the number's own first.
WORDS = {
    "f16": "e6x",
    "f32": "f4x",
    "f64": "d",
    "i8": "b7x",
    "i16": "h6x",
    "i32": "i4x",
    "i64": "q",
    "u1": "?7x",
    "u8": "B7x",
    "u16": "H6x",
    "u32": "I4x",
    "u64": "Q",
}
