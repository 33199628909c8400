"""Memory layout of launch blocks, the thread pool and print rings.

The numbers are those of the runtime's C structures; generated code and Python use them by these names. All are byte
offsets unless they say otherwise. A block pointer points just past a private header, so that offsets of generated code
start at zero and the runtime's own words are negative.
"""

from __future__ import annotations

# --- made from native/layout.c: begin
# --- launch block, known to generated code
STATUS = 0  # i32, the first fault's code
SITE = 4  # i32, of the first fault, or of the loop that was interrupted; -1: not known
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
STATUS_RECURSION = 9  # calls nested too deeply

# --- thread pool
MAX_THREADS = 256  # workers and the caller
POOL_WORKERS = 8  # i32, workers started

# --- print ring
RING_CAPACITY = 32  # i64, words, a power of two
RING_WORDS = 64  # the records

# --- what a WebAssembly module and JavaScript tell each other
CONTROL_STOP = 0  # i32, non-zero: the launch under way stops
CONTROL_POLLS = 8  # i64, left until it stops by itself
CONTROL_HEAP = 16  # i64, where memory begins that nothing has a fixed place in
CONTROL_TOP = 24  # i64, of what launches have taken of it
CONTROL_LIMIT = 32  # i64, bytes of memory, at most

# --- replay: the types of numbers in memory
TYPE_F16 = 0  # f16
TYPE_F32 = 1  # f32
TYPE_F64 = 2  # f64
TYPE_I8 = 3  # i8
TYPE_I16 = 4  # i16
TYPE_I32 = 5  # i32
TYPE_I64 = 6  # i64
TYPE_U1 = 7  # u1
TYPE_U8 = 8  # u8
TYPE_U16 = 9  # u16
TYPE_U32 = 10  # u32
TYPE_U64 = 11  # u64

# --- replay: instructions, an operation and its operands, a word each
REPLAY_END = 0  # the number of the end
REPLAY_LAUNCH = 1  # block
REPLAY_CLEAR = 2  # address, bytes
REPLAY_COPY = 3  # bytes, to, from, rank, (extent, stride of each)…
REPLAY_FILL = 4  # type, register, whether it is real, address, rank, (extent, stride)…
REPLAY_STORE = 5  # type, register, whether it is real, address
REPLAY_LOAD = 6  # type, register, address
REPLAY_SEED = 7  # register, counter, what seeds begin with
REPLAY_REAL = 8  # register, integer register
REPLAY_EXACT = 9  # register, integer register
REPLAY_REALS = 10  # arithmetic, register, two operands
REPLAY_SELECT = 21  # register, a condition, what it gets if that holds, and if not
REPLAY_CALL = 22  # a function of the process, which reads and sets registers, and gives a status
REPLAY_INTEGERS = 11  # arithmetic, register, two operands
REPLAY_BRANCH = 12  # register, word to go on at if it is zero
REPLAY_CONVERT = 13  # type, to, type, from, rank, (extent, stride of each)…
REPLAY_TAKE = 14  # bytes, to, where it is said from where, bytes from one member to the next
REPLAY_GIVE = 15  # bytes, from, where it is said to where, bytes from one member to the next
REPLAY_MOVES = 16  # how many, (to, from)…
REPLAY_ADD_REALS = 17  # a + b: register, two operands, as the following
REPLAY_SUBTRACT_REALS = 18  # a - b
REPLAY_MULTIPLY_REALS = 19  # a * b
REPLAY_SCALE_REALS = 20  # a * b, b where that is 0

# --- replay: one thread's share of a batch
LANE_BYTES = 48  # of each
LANE_CODE = 0  # ptr, the instructions
LANE_REGISTERS = 8  # ptr
LANE_MEMBER = 24  # i64, the number of the member that runs
LANE_STATUS = 40  # i32, what its first fault was
LANE_SITE = 44  # i32, the word at which the instruction begins that failed

# --- replay: arithmetic
REPLAY_ADD = 0  # a + b
REPLAY_SUBTRACT = 1  # a - b
REPLAY_MULTIPLY = 2  # a * b
REPLAY_TRUE_DIVIDE = 3  # a / b
REPLAY_DIVIDE = 11  # a / b by IEEE 754: of 0, too
REPLAY_FLOOR_DIVIDE = 4  # a // b
REPLAY_REMAINDER = 5  # a % b
REPLAY_FLOAT_POWER = 6  # a ** b
REPLAY_NEGATIVE = 7  # -a
REPLAY_ABSOLUTE = 8  # |a|
REPLAY_SQRT = 9  # √a
REPLAY_SCALE = 10  # a * b, b where that is 0
REPLAY_LT = 12  # a < b
REPLAY_LE = 13  # a <= b
REPLAY_GT = 14  # a > b
REPLAY_GE = 15  # a >= b
REPLAY_EQ = 16  # a == b
REPLAY_NE = 17  # a != b
# --- made from native/layout.c: end

#: Invocations that run side by side on a GPU.
WORKGROUP = 64

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
