"""Where everything lies in a launch block, in the thread pool, in a print ring and in an arena.

The same numbers are used by generated code, by the support module's LLVM text and by Python; all are byte offsets
unless they say otherwise. A block pointer points *behind* a private header, so that offsets of generated code start at
zero and the runtime's own words are negative.
"""

from __future__ import annotations

__all__ = [
    "ARENAS",
    "FLAGS",
    "HEADER_BYTES",
    "LAST_TICK",
    "MAX_THREADS",
    "MEMORY_LIMIT",
    "NUM_THREADS",
    "PAYLOAD",
    "PAYLOAD_WORDS",
    "POOL",
    "PRINT_RING",
    "SCRATCH",
    "SCRATCH_STRIDE",
    "SITE",
    "SLOTS",
    "STATUS",
    "STATUS_ASSERT",
    "STATUS_BOUNDS",
    "STATUS_DIVISION",
    "STATUS_FINITE",
    "STATUS_INTERRUPT",
    "STATUS_LOST",
    "STATUS_MEMORY",
    "STATUS_OK",
    "STATUS_OVERFLOW",
    "STOP",
    "STOP_IDLE",
    "WORDS",
    "names",
]

# --- launch block, known to generated code ----------------------------------------------------------------------------
STATUS = 0  # i32, the first fault's code
SITE = 4  # i32, the first fault's site
PAYLOAD = 8  # i64[6], values that the fault's message shows
PAYLOAD_WORDS = 6
STOP = 56  # i32, non-zero: every thread of this launch stops with that status
FLAGS = 60  # i32, bit 0: launched by Python's main thread
POOL = 64  # ptr
PRINT_RING = 72  # ptr or null
SCRATCH = 80  # ptr, private copies
SCRATCH_STRIDE = 88  # i64, bytes a thread
NUM_THREADS = 96  # i32
LAST_TICK = 104  # i64, ns
ARENAS = 112  # ptr, null until used
MEMORY_LIMIT = 120  # i64, bytes
SLOTS = 128  # 8 bytes a slot from here on

# --- the block of the kernel that clears memory -----------------------------------------------------------------------
CLEAR_COUNT = SLOTS + 8  # i64, bytes; slot 0 is where they are
CLEAR_GRAIN = 256 << 10  # bytes for which waking another thread does not pay

# --- launch block, the runtime's own header ---------------------------------------------------------------------------
HEADER_BYTES = 128
ENTRY = -128  # ptr, the kernel's entry
THREAD_STATE = -120  # ptr, the launching thread's Python state while native code runs
THREAD = -112  # i64, pthread_self() of the launching thread
DRAIN = -104  # PyObject *, called to drain prints, or null
CLOCK_READ = -96  # i64, ns, when a poll last read the clock; 0: not yet
SKIP = -88  # i32, polls between two readings of the clock
LEFT = -84  # i32, polls left until the next reading
PYTHON_ERROR = -80  # i32, a Python exception is set and belongs to the launch's caller
COMMITTED = -72  # i64, bytes of arena chunks held
TICK_INTERVAL = -64  # i64, ns

STOP_IDLE = -1  # the stop word while nothing runs: a late stop request finds nothing to stop

STATUS_OK = 0
STATUS_INTERRUPT = 1
STATUS_BOUNDS = 2
STATUS_DIVISION = 3
STATUS_ASSERT = 4
STATUS_MEMORY = 5
STATUS_OVERFLOW = 6
STATUS_LOST = 7  # the process was forked inside a launch: the child has lost the workers that held pieces of it
STATUS_FINITE = 8

# --- thread pool, one cache line a concern ----------------------------------------------------------------------------
MAX_THREADS = 256
POOL_OWNER = 0  # i32, 1 while a launch uses the workers
POOL_QUIT = 4  # i32, workers return and no new ones start
POOL_WORKERS = 8  # i32, workers started
POOL_CORES = 12  # i32, cores this process may use
POOL_MAIN_THREAD = 16  # i64, pthread_self() of Python's main thread
POOL_SPIN = 24  # i64, ns that a worker spins before it parks
POOL_EPOCH = 32  # i32, counts forks
POOL_ALIVE = 36  # i32, workers that have not returned
POOL_PARKED = 64  # i32, workers that wait on the condition
POOL_REMAINING = 128  # i32, pieces that others than the caller run and have not finished
POOL_WAITING = 132  # i32, the caller waits on the condition
POOL_JOB = 192  # ptr
POOL_MUTEX = 256
POOL_WORK = 384  # condition: there is work
POOL_DONE = 512  # condition: the last piece is done
POOL_LINES = 640  # 64 bytes a worker
POOL_BYTES = POOL_LINES + 64 * MAX_THREADS
LINE_CLAIM = 0  # i32, 1: this worker's piece waits to be claimed
LINE_INDEX = 4  # i32
LINE_POOL = 8  # ptr

# --- job: one parallel loop, on the caller's stack --------------------------------------------------------------------
JOB_BLOCK = 0
JOB_TASK = 8
JOB_LOW = 16
JOB_COUNT = 24  # iterations
JOB_QUOTIENT = 32  # iterations a piece; the first JOB_REMAINDER pieces take one more
JOB_REMAINDER = 40
JOB_GRAIN = 48  # 0: static
JOB_RESULT = 64  # i32, the first non-zero status
JOB_NEXT = 128  # i64, iterations handed out so far (dynamic)
JOB_BYTES = 192

# --- print ring -------------------------------------------------------------------------------------------------------
RING_LOCK = 0
RING_HEAD = 8  # i64, words ever written
RING_TAIL = 16  # i64, words ever taken
RING_DROPPED = 24  # i64, records that did not fit
RING_CAPACITY = 32  # i64, words, a power of two
RING_WORDS = 64

# --- arenas and their chunks ------------------------------------------------------------------------------------------
ARENA_CURRENT = 0  # ptr, the chunk in use
ARENA_OFFSET = 8  # i64, bytes used in it
ARENA_FIRST = 16  # ptr
ARENA_BYTES = 64
CHUNK_NEXT = 0
CHUNK_PREVIOUS = 8
CHUNK_CAPACITY = 16
CHUNK_BASE = 24  # i64, capacity of all chunks before this one; base + offset is a mark
CHUNK_RAW = 32  # ptr, what malloc returned
CHUNK_DATA = 64
CHUNK_FIRST_CAPACITY = 256 << 10
CHUNK_MAX_CAPACITY = 64 << 20
CHUNK_OVERHEAD = 128  # header and alignment
ARENA_KEEP = 64 << 20  # bytes of chunks that a block keeps for its next launch

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


def names() -> dict[str, int]:
    """All constants above by name, for substitution into the support module's text."""
    return {name: value for name, value in globals().items() if name.isupper() and isinstance(value, int)}
